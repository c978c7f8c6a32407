"""The content of files of text, checked before anything is made of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from saen.errors import FileError, InputError

# What a file may ask for beyond its own size. Without these limits a few bytes, such as a count of
# nodes or one long label among many short ones, could claim any amount of memory.
FREE_NODES = 2**20
FREE_CHARACTERS = 2**24
CHARACTERS_PER_BYTE = 16

MARK = b"\xef\xbb\xbf"


def read_bytes(path: Path) -> bytes:
    """All bytes of a file; `FileError` where it cannot be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise unreadable(error, path) from None


def unreadable(error: OSError, path: Path) -> FileError:
    """The error for a file or folder that the system does not give."""
    if isinstance(error, FileNotFoundError):
        return FileError("no such file or folder", path=path)
    return FileError(f"cannot be read ({error.strerror or error})", path=path)


def decoded(data: bytes, path: Path, line: int = 1) -> str:
    """Text in UTF-8 without its byte-order mark; `line` is the number of its first line.

    >>> decoded("\\ufeffé".encode(), Path("names.csv"))
    'é'
    >>> decoded(b"ab\\ncaf\\xe9", Path("names.csv"))
    Traceback (most recent call last):
        ...
    saen.errors.FileError: names.csv, line 2: not UTF-8 (byte 0xe9 at column 4)
    """
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        before = data[: error.start].split(b"\n")
        wrong = f"byte 0x{data[error.start]:02x} at column {len(before[-1]) + 1}"
        raise FileError(f"not UTF-8 ({wrong})", path=path, line=line + len(before) - 1) from None
    if "\0" in text:
        raise FileError(
            "not text (a null character)",
            path=path,
            line=line + text[: text.index("\0")].count("\n"),
        )
    return text.removeprefix("\ufeff") if line == 1 else text


def read_text(path: Path) -> str:
    """The text of a file, or a `FileError` that names the line."""
    return text_of(read_bytes(path), path)


def text_of(data: bytes, path: Path) -> str:
    """The text of the bytes of a file, which must not be blank."""
    if not data.removeprefix(MARK).strip():
        raise FileError("the file is empty", path=path)
    return decoded(data, path)


def check_width(longest: int, count: int, n_bytes: int, what: str) -> None:
    """Refuse a column of text that takes far more room than the file that it is from.

    Columns are as wide as their longest text. Raises `InputError`.
    """
    if longest * count > FREE_CHARACTERS + CHARACTERS_PER_BYTE * n_bytes:
        raise InputError(
            f"the longest of {count:,} {what} has {longest:,} characters, which is too long for "
            "a column of labels"
        )


def check_text(texts: Sequence[str], what: str) -> None:
    """Raise `InputError` for text that arrays or files cannot keep.

    >>> check_text(["a", "b\\0"], "labels of nodes")
    Traceback (most recent call last):
        ...
    saen.errors.InputError: one of the labels of nodes holds a null character
    """
    joined = "".join(texts)
    if "\0" in joined:
        raise InputError(f"one of the {what} holds a null character")
    if not joined.isascii():
        try:
            joined.encode()
        except UnicodeEncodeError:
            raise InputError(f"one of the {what} holds half of a surrogate pair") from None
