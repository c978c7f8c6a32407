"""Files in object stores, such as `s3://bucket/shards`, through pyarrow's file systems.

A URL is passed around as a `Path`, which keeps one of its slashes; everything that opens one asks
here first.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

from saen.errors import FileError, MissingExtraError

_URL = re.compile(r"(file|s3|gs|gcs|abfs|abfss|hdfs):/+(.+)")
T = TypeVar("T")


def is_remote(path: str | os.PathLike[str]) -> bool:
    """Whether a path is a URL of an object store.

    >>> is_remote("s3://bucket/shards"), is_remote(Path("s3://bucket") / "shards"), is_remote("s3")
    (True, True, False)
    """
    return _URL.fullmatch(str(path)) is not None


def absolute(path: Path) -> Path:
    """The path from the root, which means the same file in another working directory."""
    return path if is_remote(path) else path.absolute()


def is_file(path: str | os.PathLike[str]) -> bool:
    """Whether there is a file at a path or URL."""
    if not is_remote(path):
        return Path(path).is_file()
    return _ask(Path(path), lambda store, place: bool(store.get_file_info(place).is_file))


def upload(file: Path, path: Path) -> None:
    """Copy a file of this machine to a URL; it appears there when all of it has arrived."""

    def copy(store: Any, place: str) -> None:
        fs = _file_systems()
        local = fs.LocalFileSystem()
        if isinstance(store, fs.LocalFileSystem):
            store.create_dir(str(Path(place).parent))
        fs.copy_files(str(file), place, source_filesystem=local, destination_filesystem=store)

    _ask(path, copy)


@contextmanager
def local_copy(path: str | os.PathLike[str]) -> Iterator[Path]:
    """The file itself or, for a URL, a copy on this machine for as long as the block runs.

    On POSIX, what is mapped into memory stays there. A `FileError` about the copy names the URL.
    """
    source = Path(path)
    if not is_remote(source):
        yield source
        return

    def fetch(store: Any, place: str) -> None:
        fs = _file_systems()
        local = fs.LocalFileSystem()
        fs.copy_files(place, str(copy), source_filesystem=store, destination_filesystem=local)

    with TemporaryDirectory(prefix="saen-") as folder:
        copy = Path(folder, source.name)
        _ask(source, fetch)
        try:
            yield copy
        except FileError as error:
            if error.path != copy:
                raise
            raise FileError(error.reason, path=_shown(source), line=error.line) from None


def _shown(path: Path) -> str:
    """The URL as its owner writes it."""
    scheme, place = _URL.fullmatch(str(path)).groups()  # type: ignore[union-attr]
    return f"{scheme}://{'/' if scheme == 'file' else ''}{place}"


def _ask(path: Path, function: Callable[[Any, str], T]) -> T:
    """What a function of a file system and of a path on it gives."""
    # What has less than 5 MB is uploaded in one request then, not in three.
    how = "?allow_delayed_open=true" if _shown(path).startswith("s3:") else ""
    try:
        return function(*_file_systems().FileSystem.from_uri(_shown(path) + how))
    except FileNotFoundError:
        raise FileError("no such file", path=_shown(path)) from None
    except (OSError, ValueError) as error:
        reason = str(error).partition("\n")[0]
        raise FileError(f"cannot be read or written ({reason})", path=_shown(path)) from None


def _file_systems() -> Any:
    try:
        return import_module("pyarrow.fs")
    except ImportError:
        raise MissingExtraError("pyarrow", extra="cloud") from None
