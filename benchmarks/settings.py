"""What a run of the benchmarks is asked to do."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

DATASETS = ("COLLAB", "REDDIT-BINARY")


@dataclass(frozen=True)
class Settings:
    """`quick` shrinks everything and drops the targets: it tries the machinery only.

    `full` measures more datasets, runs whole what is extrapolated otherwise, and lets the
    uncompressed networks have most of the machine's memory.
    """

    out: Path
    datasets: tuple[str, ...] = DATASETS
    repeats: int = 3
    quick: bool = False
    full: bool = False
