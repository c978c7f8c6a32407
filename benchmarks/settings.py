"""The options of a run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

DATASETS = ("COLLAB", "REDDIT-BINARY")
QUICK_DATASETS = ("MUTAG",)


@dataclass(frozen=True)
class Settings:
    """Options of a run.

    `quick` uses small data and drops the targets: a smoke test of a minute or two. `full` measures
    more datasets, measures what is extrapolated otherwise, and lets the uncompressed networks use
    most of the machine's memory.
    """

    out: Path
    datasets: tuple[str, ...] = DATASETS
    repeats: int = 3
    quick: bool = False
    full: bool = False
