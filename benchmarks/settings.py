"""What a run of the benchmarks is asked to do."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

DATASETS = ("COLLAB", "REDDIT-BINARY")


@dataclass(frozen=True)
class Settings:
    """`quick` shrinks what is generated and drops the targets: it tries the machinery only."""

    out: Path
    datasets: tuple[str, ...] = DATASETS
    repeats: int = 3
    quick: bool = False
