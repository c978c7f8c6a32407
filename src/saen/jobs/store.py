"""Run directories: settings, splits and results of a long run, which survive its interruption."""

from __future__ import annotations

import json
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock, Timeout
from numpy.typing import NDArray

from saen._util.atomic import is_temporary, make_folder
from saen._util.digests import digest_of
from saen._util.json_files import read_json, write_json
from saen._version import __version__
from saen.data.vocabulary import Vocabulary
from saen.errors import FileError, InputError

SETTINGS = "settings.json"
"""The file that makes a folder a run directory."""
SUMMARY = "summary.json"
"""The file of an evaluation that is finished."""
RESUME = "run the same command again to resume"
"""What to say when a run that has begun is interrupted."""
RESUMING = "resuming an interrupted run"
"""What to say when it goes on."""


@contextmanager
def open_run(
    folder: str | Path,
    settings: dict[str, Any],
    *,
    anew: bool = False,
    advice: str = "choose another folder",
) -> Iterator[Path]:
    """Enter a run directory alone; a directory with a run of other settings is rejected.

    `settings` decide how the run ends; they are written when the run starts and compared when it
    continues. With `anew`, a run of other settings is replaced by this one. A folder with files
    that are not a run's is rejected, whatever their names. What is wrong with a file of the run,
    now or in the block, comes with what to remove. The lock is the operating system's: it ends with
    the process, however that dies, and the file `.lock` that stays means nothing.
    """
    path = make_folder(folder)
    with _naming_what_to_remove(path):
        _refuse_foreign(path)
    lock = FileLock(path / ".lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise FileError(
            "another process is working in this run directory: wait for it, or choose another",
            path=path,
        ) from None
    except NotImplementedError:
        raise FileError("is on a file system without locks: choose another", path=path) from None
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
        with _naming_what_to_remove(path):
            yield path
    finally:
        lock.release()


@contextmanager
def _naming_what_to_remove(folder: Path) -> Iterator[None]:
    """Add to an error about a file of a run that its command makes it again, once it is gone."""
    try:
        yield
    except FileError as error:
        own = error.path.parent.absolute() == folder.absolute()
        if not own or error.reason.startswith("cannot be") or not error.path.is_file():
            raise
        advice = "remove this file and run the same command again"
        if error.path.name == SETTINGS:  # of another program, perhaps
            advice = f"choose another folder, or remove {folder} if a run of saen left it"
        raise FileError(f"{error.reason}; {advice}", path=error.path) from None


def has_begun(folder: Path) -> bool:
    """Whether a run has finished anything that it can resume from."""
    return any(file.suffix in (".checkpoint", ".saen") for file in _files(folder))


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
    """What a run is about: a digest of collections, whatever their names and ids, and of arrays.

    Ids and other columns that no model reads change no result: an interrupted run goes on when the
    same data come back with other ids.

    >>> from saen import Graphs
    >>> one, two = (Graphs.from_edge_lists([[(0, 1)]], name=name) for name in "ab")
    >>> digest(one) == digest(two), digest(one) == digest(one, np.zeros(1))
    (True, False)
    """
    return digest_of(*_columns(things))


def _columns(thing: Any) -> Iterator[NDArray[Any]]:
    """All arrays of a thing, and all that can be written as one."""
    if isinstance(thing, np.ndarray):
        yield thing
    elif is_dataclass(thing):
        for field in fields(thing):
            if field.name not in ("name", "ids", "extra", "target_names", "feature_names"):
                yield from _columns(getattr(thing, field.name))
        yield from _columns(getattr(thing, "features", None))
    elif isinstance(thing, list | tuple | Vocabulary):
        for part in thing:
            yield from _columns(part)
    elif isinstance(thing, str | int):
        yield np.array(thing)
