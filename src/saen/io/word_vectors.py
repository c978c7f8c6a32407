"""Word vectors in the text format of word2vec, GloVe and fastText: one word per line."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from io import BufferedReader
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from saen._util.strings import plural
from saen.errors import FileError, InputError

_HEADER = re.compile(rb"(\d{1,18}) (\d{1,9})")  # more digits are a word and its number

Lines = Iterator[tuple[int, bytes]]


@dataclass(frozen=True)
class VectorsFile:
    """A file of word vectors as a model remembers it: its name, for messages, and its content.

    >>> file = getfixture("tmp_path") / "small.txt"
    >>> _ = file.write_text("dog 1 0 0.5\\n")
    >>> VectorsFile.of(file).name
    'small.txt'
    """

    name: str
    sha256: str

    @classmethod
    def of(cls, path: str | os.PathLike[str]) -> VectorsFile:
        """The file at that path, which is read whole."""
        return cls(Path(path).name, _sha256(Path(path)))

    def check(self, path: str | os.PathLike[str] | None) -> str | os.PathLike[str]:
        """The path, if its file has the same content.

        Raises `InputError` if there is no path, `FileError` for another file.
        """
        if path is None:
            raise InputError(
                f"trained with the word vectors of {self.name!r}: name that file again, with "
                "vectors=FILE"
            )
        if _sha256(Path(path)) != self.sha256:
            raise FileError(
                f"not the word vectors that the model was trained with: those of {self.name!r} "
                f"have the SHA-256 digest {self.sha256}",
                path=Path(path),
            )
        return path

    def to_json(self) -> dict[str, str]:
        """Name and digest."""
        return dict(vars(self))

    @classmethod
    def from_json(cls, document: Any) -> VectorsFile:
        """The inverse of `to_json`."""
        return cls(str(document["name"]), str(document["sha256"]))


def _sha256(path: Path) -> str:
    with _opened(path) as file:
        status = os.fstat(file.fileno())
        return _sha256_of(path.absolute(), status.st_ino, status.st_size, status.st_mtime_ns)


@lru_cache(maxsize=16)
def _sha256_of(path: Path, *_version: int) -> str:
    """Read once for all chunks of a dataset, as long as the file is not written to."""
    with _opened(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_word_vectors(
    path: str | os.PathLike[str], words: Iterable[str] | None = None
) -> tuple[list[str], NDArray[np.float32]]:
    """Read word vectors, of all words or only of `words`.

    Returns n words in the order of the file and their vectors, shape (n, d). The first line may be
    `count d`, as word2vec and fastText write it; without it, d is the length of the first vector.
    Words may contain spaces (some of GloVe's do); of a duplicate word the first vector is used.
    Only the lines of requested words are parsed, so that a few words of a big file are read fast.

    Raises `FileError` with the line if a vector is too short, too long or not all finite numbers.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "small.txt")
    ...     _ = path.write_text("2 3\\ndog 1 0 0.5\\nman 0 1 0.5\\n")
    ...     read_word_vectors(path, ["man", "cat"])
    (['man'], array([[0. , 1. , 0.5]], dtype=float32))
    """
    path = Path(path)
    wanted = None if words is None else set(words)
    # The end of a word with spaces is known only after splitting the line, which is slow.
    beginnings = None if wanted is None else {w.partition(" ")[0].encode() for w in wanted}
    vectors: dict[str, NDArray[np.float32]] = {}
    n_lines = 0
    with _opened(path) as file:
        announced, width, lines = _shape(_lines(file), path)
        for number, line in lines:
            n_lines += 1
            if beginnings is None or line.partition(b" ")[0] in beginnings:
                word, vector = _entry(line, width, path, number)
                if wanted is None or word in wanted:
                    vectors.setdefault(word, vector)
    if announced is not None and n_lines < announced:
        raise FileError(
            f"ends after {plural(n_lines, 'word')}, but its first line announces {announced:,}",
            path=path,
        )
    return list(vectors), np.array(list(vectors.values()), dtype=np.float32).reshape(-1, width)


@contextmanager
def _opened(path: Path) -> Iterator[BufferedReader]:
    if path.exists() and not path.is_file():
        raise FileError("not a regular file", path=path)  # a pipe or device may never end
    try:
        with path.open("rb") as file:
            yield file
    except OSError as error:
        raise FileError(f"cannot be read ({error.strerror})", path=path) from None


def _lines(file: BufferedReader) -> Lines:
    """Numbered lines without trailing blanks; blank lines are skipped."""
    for number, line in enumerate(file, start=1):
        if stripped := line.rstrip():
            yield number, stripped


def _shape(lines: Lines, path: Path) -> tuple[int | None, int, Lines]:
    """The announced number of words, the length of the vectors, and the lines of the words."""
    number, first = next(lines, (1, b""))
    header = _HEADER.fullmatch(first)
    width = int(header[2]) if header else len(first.split(b" ")) - 1
    if width < 1:
        found = "an empty file" if not first else "a line without numbers"
        raise FileError(f"expected a word and its vector, found {found}", path=path, line=number)
    if header:
        return int(header[1]), width, lines
    return None, width, chain([(number, first)], lines)


def _entry(line: bytes, width: int, path: Path, number: int) -> tuple[str, NDArray[np.float32]]:
    """The word of a line and its vector, shape (d,)."""
    word, *fields = line.rsplit(b" ", min(width, len(line)))
    # An extra number would look like the end of a word with spaces.
    surplus = word.split(b" ")[1:]
    if len(fields) < width or (surplus and _reals(surplus) is not None):
        count = plural(len(fields) + len(surplus), "number")
        raise FileError(f"{count}, expected {width}", path=path, line=number)
    values = _reals(fields)
    if values is None:
        wrong = next(field for field in fields if _reals([field]) is None)
        shown = wrong.decode(errors="backslashreplace")
        raise FileError(f"{shown!r} is not a number", path=path, line=number)
    with np.errstate(over="ignore"):
        vector = np.array(values).astype(np.float32)
    if not np.isfinite(vector).all():
        raise FileError("a number that is not finite", path=path, line=number)
    try:
        return word.decode(), vector
    except UnicodeDecodeError:
        raise FileError(f"the word {word!r} is not UTF-8", path=path, line=number) from None


def _reals(fields: list[bytes]) -> list[float] | None:
    try:
        return [float(field) for field in fields]
    except ValueError:
        return None
