"""Run directories: settings, splits and results of a long run, which survive its interruption."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock, Timeout
from numpy.typing import NDArray

from saen._util.arrays import Ints
from saen._util.atomic import is_temporary, make_folder
from saen._util.json_files import read_json, write_json
from saen._version import __version__
from saen.data.vocabulary import Vocabulary
from saen.errors import FileError, InputError

Fold = tuple[Ints, Ints]
"""Training and test structures of one fold."""

SETTINGS = "settings.json"
"""The file that makes a folder a run directory."""


@contextmanager
def open_run(
    folder: str | Path,
    settings: dict[str, Any],
    *,
    anew: bool = False,
    advice: str = "choose another folder",
) -> Iterator[Path]:
    """Enter a run directory alone; a directory with a run of other settings is refused.

    `settings` decide how the run ends; they are written when the run starts and compared when it
    goes on. With `anew`, a run of other settings makes place for this one. A folder with files
    that are not a run's is refused, whatever their names.
    """
    path = make_folder(folder)
    _refuse_foreign(path)
    lock = FileLock(path / ".lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise FileError(
            "another process is working in this run directory: wait for it, or choose another",
            path=path,
        ) from None
    except OSError as error:
        raise FileError(f"cannot be written ({error.strerror})", path=path) from None
    try:
        kept = path / SETTINGS
        changed = _changed(kept, settings) if kept.exists() else []
        if changed and not anew:
            raise InputError(
                f"{path} holds a run with other settings ({', '.join(changed)}): {advice}"
            )
        if changed:
            # The settings last: an interrupted removal leaves a run without some of its results.
            for file in sorted(_files(path), key=lambda file: file == kept):
                file.unlink()
        if not kept.exists():
            write_json(kept, settings, sealed=True)
        yield path
    finally:
        lock.release()


def _refuse_foreign(path: Path) -> None:
    """Raise if a folder has files, but is not a run directory."""
    files = _files(path)
    if files and path / SETTINGS not in files:
        raise FileError(
            f"is not a run directory, and contains {min(files).name}: choose a new or empty folder",
            path=path,
        )
    if files:
        read_json(path / SETTINGS, sealed=True)


def _files(path: Path) -> list[Path]:
    """All files of a run directory but the lock and what killed writes left."""
    try:
        return [f for f in path.iterdir() if f.name != ".lock" and not is_temporary(f)]
    except OSError as error:
        raise FileError(f"cannot be used as a folder ({error.strerror})", path=path) from None


def _changed(kept: Path, settings: dict[str, Any]) -> list[str]:
    """The settings that are not as they were."""
    known = read_json(kept, sealed=True)
    plain = json.loads(json.dumps(settings))
    return sorted(k for k in {*known, *plain} if known.get(k) != plain.get(k))


def versions() -> dict[str, str]:
    """Of everything that decides the digits of a result."""
    libraries = ("torch", "numpy", "scipy", "scikit-learn")
    return {
        "python": platform.python_version(),
        "saen": __version__,
        **{library: version(library) for library in libraries},
    }


def digest(*things: Any) -> str:
    """What a run is about: a digest of collections, whatever their names, and of arrays.

    >>> from saen import Graphs
    >>> one, two = (Graphs.from_edge_lists([[(0, 1)]], name=name) for name in "ab")
    >>> digest(one) == digest(two), digest(one) == digest(one, np.zeros(1))
    (True, False)
    """
    state = hashlib.blake2b(digest_size=16)
    for column in _columns(things):
        state.update(f"{column.dtype.str} {column.shape}".encode())
        state.update(np.ascontiguousarray(column).tobytes())
    return state.hexdigest()


def _columns(thing: Any) -> Iterator[NDArray[Any]]:
    """All arrays of a thing, and all that can be written as one."""
    if isinstance(thing, np.ndarray):
        yield thing
    elif is_dataclass(thing):
        for field in fields(thing):
            if field.name != "name":
                yield from _columns(getattr(thing, field.name))
    elif isinstance(thing, list | tuple | Vocabulary):
        for part in thing:
            yield from _columns(part)
    elif isinstance(thing, str | int):
        yield np.array(thing)


def splits_to_json(splits: Sequence[Sequence[Fold]]) -> dict[str, Any]:
    """Splits as JSON: `repeats`, a list of lists of folds with `train` and `test` indices."""
    return {
        "repeats": [
            [{"train": train.tolist(), "test": test.tolist()} for train, test in folds]
            for folds in splits
        ]
    }


def splits_from_json(path: Path, n: int) -> list[list[Fold]]:
    """The inverse of `splits_to_json` for a dataset of `n` examples, checked."""
    document = read_json(path)
    try:
        splits: list[list[Fold]] = [
            [(_indices(fold["train"]), _indices(fold["test"])) for fold in folds]
            for folds in document["repeats"]
        ]
    except (KeyError, TypeError, ValueError, OverflowError):
        raise FileError(
            'expected {"repeats": [[{"train": […], "test": […]}, …], …]}', path=path
        ) from None
    try:
        check_splits(splits, n)
    except InputError as error:
        raise FileError(str(error), path=path) from None
    return splits


def check_splits(splits: Sequence[Sequence[Fold]], n: int) -> None:
    """Raise `InputError` unless every repeat tests each of `n` examples once, trained on others.

    >>> check_splits([[([0, 1], [2]), ([2], [0, 1])]], 3)
    >>> check_splits([[([0, 1], [1, 2]), ([2], [0])]], 3)
    Traceback (most recent call last):
        ...
    saen.errors.InputError: repeat 0, fold 0 trains on examples that it tests
    """
    if not splits:
        raise InputError("there are no repeats")
    if len({len(folds) for folds in splits}) > 1:
        raise InputError("every repeat needs the same number of folds")
    for repeat, folds in enumerate(splits):
        if any(len(test) == 0 for _, test in folds):
            raise InputError(f"repeat {repeat} has a fold without test examples")
        tested = np.concatenate([test for _, test in folds]) if folds else np.empty(0, np.int64)
        if not np.array_equal(np.sort(tested), np.arange(n)):
            raise InputError(f"repeat {repeat} must test each of the {n} examples exactly once")
        for fold, (train, test) in enumerate(folds):
            if len(np.intersect1d(train, test)):
                raise InputError(f"repeat {repeat}, fold {fold} trains on examples that it tests")
            if len(train) == 0 or np.min(train) < 0 or np.max(train) >= n:
                raise InputError(
                    f"repeat {repeat}, fold {fold} needs training indices from 0 to {n - 1}"
                )


def _indices(values: Any) -> Ints:
    return np.array(values, dtype=np.int64)
