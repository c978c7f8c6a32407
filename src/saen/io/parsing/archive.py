"""The files of a dataset, in a folder or in an untrusted zip.

Nothing is ever extracted to disk: the members of a zip are streamed, and an archive that could do
harm if it were extracted is rejected.
"""

from __future__ import annotations

import lzma
import re
import stat
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO

from saen.errors import FileError

# The size that a zip may claim. Numbers as text compress well (COLLAB's 362 MB by a factor of 35,
# a column of equal labels by thousands), so the ratio counts only beyond the free allowance.
MAX_BYTES = 8 * 2**30
MAX_RATIO = 250
FREE_BYTES = 2**28

# Compressed bytes per step. LZMA and bzip2 return everything that a step contains, so a small step
# bounds the memory that a hostile stream can ask for.
_STEP = 2**14
_PLAIN_STEP = 2**20

_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    EOFError,
    OSError,
    ValueError,
    RuntimeError,
    MemoryError,
)


@dataclass(frozen=True)
class Member:
    """One file: its `name` in the archive, its full `place` for messages, its `size` in bytes.

    It is read `step` bytes at a time.
    """

    name: str
    place: Path
    size: int
    open: Callable[[], IO[bytes]]
    step: int = _STEP

    @property
    def folder(self) -> str:
        """The part of the name before the last slash (empty at the top)."""
        return self.name.rpartition("/")[0]

    @property
    def filename(self) -> str:
        """The part of the name after the last slash."""
        return self.name.rpartition("/")[2]

    def blocks(self) -> Iterator[bytes]:
        """The content in blocks. Raises `FileError` if it cannot be read to the end."""
        count = 0
        try:
            with self.open() as handle:
                while block := handle.read1(self.step):  # type: ignore[attr-defined]
                    count += len(block)
                    yield block
        except _DAMAGE as error:
            raise FileError(f"cannot be read: {_reason(error)}", path=self.place) from error
        if count != self.size:
            raise FileError(f"damaged: {count} bytes, expected {self.size}", path=self.place)


@contextmanager
def members(path: Path) -> Iterator[list[Member]]:
    """The files directly in a folder, or all files in a zip that is safe to read.

    A zip is rejected if a member has an absolute path, a `..`, a backslash or a drive letter, is a
    link or a device, is encrypted or duplicated, or if its claimed size is implausible.
    """
    if path.is_dir():
        yield _folder_members(path)
    elif path.is_file():
        try:
            archive = zipfile.ZipFile(path)
        except _DAMAGE as error:
            raise FileError(f"not a readable zip: {_reason(error)}", path=path) from error
        with archive:
            _check(archive, path)
            yield [
                Member(
                    info.filename, path / info.filename, info.file_size, partial(archive.open, info)
                )
                for info in archive.infolist()
                if not info.is_dir()
            ]
    else:
        raise FileError("no such file or folder", path=path)


def _folder_members(path: Path) -> list[Member]:
    try:
        files = sorted(file for file in path.iterdir() if file.is_file())
        return [Member(f.name, f, f.stat().st_size, _opener(f), _PLAIN_STEP) for f in files]
    except OSError as error:
        raise FileError(f"cannot be read: {_reason(error)}", path=path) from error


def _opener(file: Path) -> Callable[[], IO[bytes]]:
    return lambda: file.open("rb")


def _check(archive: zipfile.ZipFile, path: Path) -> None:
    seen: set[str] = set()
    for info in archive.infolist():
        problem = _problem(info)
        if info.filename in seen:
            problem = "is listed twice"
        if problem:
            raise FileError(f"refused: the member {info.orig_filename!r} {problem}", path=path)
        seen.add(info.filename)
    total = sum(info.file_size for info in archive.infolist())
    if total > min(MAX_BYTES, max(FREE_BYTES, MAX_RATIO * path.stat().st_size)):
        raise FileError(
            f"refused: {path.stat().st_size:,} bytes that unpack to {total:,} look like a "
            "compression bomb; if you trust the file, extract it and pass the folder",
            path=path,
        )


def _problem(info: zipfile.ZipInfo) -> str | None:
    name = info.orig_filename
    if not name:
        return "has no name"
    if "\\" in name or "\0" in name:
        return "has a backslash or a null in its name"
    if name.startswith("/") or re.match(r"[A-Za-z]:", name):
        return "has an absolute path"
    if ".." in name.split("/"):
        return "points outside the archive"
    if stat.S_IFMT(info.external_attr >> 16) not in (0, stat.S_IFREG, stat.S_IFDIR):
        return "is a link or a special file"
    if info.flag_bits & 1:
        return "is encrypted"
    return None


def _reason(error: Exception) -> str:
    """What went wrong, in words (some errors of the standard library have no message)."""
    if isinstance(error, EOFError):
        return "unexpected end of file"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error) or type(error).__name__
