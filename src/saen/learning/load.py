"""`saen.load`: any file that saen wrote; `save` and `load` of the estimators."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self

from saen.errors import InputError
from saen.io import container


def load(path: str | Path, *, vectors: str | Path | None = None) -> Any:
    """Read what was saved: `Graphs`, `Hierarchy`, `Compressed` or an estimator, as the file says.

    `vectors` is the file of word vectors of a model that was trained with one.

    Raises `FileError` for a file that is missing, damaged, foreign or of a newer format.
    """
    if container.read_header(path).kind != "model":
        return container.load(path)
    from saen.learning.persistence import load_estimator  # needs scikit-learn, which data do not

    return load_estimator(path, vectors=vectors)


class Savable:
    """Estimators that are written to one file, and read back by their class.

    `reading_` is how the data were read that `saen train` fitted them to, by the names of
    `ReadOptions`: new data are read in the same way.
    """

    reading_: Mapping[str, str] = MappingProxyType({})

    def save(self, path: str | Path) -> int:
        """Write the fitted estimator to one file (no pickle); its size in bytes."""
        from saen.learning.persistence import save_estimator

        return save_estimator(self, path)  # type: ignore[arg-type]

    @classmethod
    def load(cls, path: str | Path, *, vectors: str | Path | None = None) -> Self:
        """Read an estimator of this class that `save` wrote; see `saen.load`."""
        from saen.learning.persistence import load_estimator

        loaded = load_estimator(path, vectors=vectors)
        if not isinstance(loaded, cls):
            raise InputError(f"{path} holds a {type(loaded).__name__}, not a {cls.__name__}")
        return loaded
