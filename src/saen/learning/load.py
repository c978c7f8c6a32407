"""`saen.load`: any file that saen wrote."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from saen.io import container


def load(path: str | Path) -> Any:
    """Read what was saved: `Graphs`, `Hierarchy`, `Compressed` or an estimator, as the file says.

    Raises `FileError` for a file that is missing, damaged, foreign or of a newer format.
    """
    if container.read_header(path).kind != "model":
        return container.load(path)
    from saen.learning.persistence import load_estimator  # needs torch, which data do not

    return load_estimator(path)
