"""Word vectors in the text format of word2vec, GloVe and fastText: one word per line."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from saen._util.strings import plural
from saen.errors import FileError

_HEADER = re.compile(rb"(\d+) (\d+)")

Lines = Iterator[tuple[int, bytes]]


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
    announced, width, lines = _shape(_lines(path), path)
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


def _lines(path: Path) -> Lines:
    """Numbered lines without trailing blanks; blank lines are skipped."""
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                if stripped := line.rstrip():
                    yield number, stripped
    except OSError as error:
        raise FileError(f"cannot be read ({error.strerror})", path=path) from None


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
    word, *fields = line.rsplit(b" ", width)
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
