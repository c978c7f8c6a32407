"""The content of text files, checked before it is parsed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from saen.errors import FileError, InputError

# What a file may ask for beyond its own size. Without these limits a few bytes, such as a count of
# nodes or one long label among many short ones, could claim any amount of memory.
FREE_NODES = 2**20
FREE_CHARACTERS = 2**24
CHARACTERS_PER_BYTE = 16

BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def read_bytes(path: Path) -> bytes:
    """Read all bytes of a file; `FileError` if that fails."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise unreadable(error, path) from None


def unreadable(error: OSError, path: Path) -> FileError:
    """Describe why the system could not open a file or folder."""
    if isinstance(error, FileNotFoundError):
        return FileError("no such file or folder", path=path)
    return FileError(f"cannot be read ({error.strerror or error})", path=path)


def decoded(data: bytes, path: Path, line: int = 1) -> str:
    """Decode UTF-8 without its byte-order mark; `line` is the number of the first line.

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
            "contains a null character",
            path=path,
            line=line + text[: text.index("\0")].count("\n"),
        )
    return text.removeprefix("\ufeff") if line == 1 else text


def read_text(path: Path) -> str:
    """Read a text file that is not blank; `FileError` names the line that is not UTF-8."""
    return text_of(read_bytes(path), path)


def text_of(data: bytes, path: Path) -> str:
    """Decode the content of a file, which must not be blank."""
    if not data.removeprefix(BYTE_ORDER_MARK).strip():
        raise FileError("the file is empty", path=path)
    return decoded(data, path)


def is_blank(line: bytes) -> bool:
    """Whether a line has nothing but space, or a byte-order mark."""
    return not line.removeprefix(BYTE_ORDER_MARK).strip()


def numbered_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Number and bytes of every line that is not blank, counted from 1."""
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                if not is_blank(line):
                    yield number, line
    except OSError as error:
        raise unreadable(error, path) from None


def parse_json_line(data: bytes, path: Path, line: int, decoder: json.JSONDecoder) -> Any:
    """Parse one line of JSON; `FileError` with the line if it is invalid."""
    text = decoded(data, path, line)
    try:
        return decoder.decode(text)
    except RecursionError:
        reason = "nested too deeply"
    except InputError as error:
        reason = str(error)
    except json.JSONDecodeError as error:
        reason = f"invalid JSON: {error.msg} at column {error.pos + 1} (one object per line)"
    except ValueError:
        reason = "a number has too many digits"
    raise FileError(reason, path=path, line=line)


def exact_floats() -> dict[str, str]:
    """Options of `pandas.read_csv` that parse floats exactly."""
    import pandas as pd

    # Before 3.1, the default parser could be off by one in the last place.
    new = tuple(map(int, pd.__version__.split(".")[:2])) >= (3, 1)
    return {} if new else {"float_precision": "round_trip"}


def check_width(longest: int, count: int, n_bytes: int, what: str) -> None:
    """Refuse a text column that needs far more memory than the file it comes from.

    Columns are as wide as their longest text. Raises `InputError`.
    """
    if longest * count > FREE_CHARACTERS + CHARACTERS_PER_BYTE * n_bytes:
        raise InputError(f"one of {count:,} {what} has {longest:,} characters, which is too long")


def check_text(texts: Sequence[str], what: str) -> None:
    """Raise `InputError` for text that arrays or files cannot store.

    >>> check_text(["a", "b\\0"], "node labels")
    Traceback (most recent call last):
        ...
    saen.errors.InputError: one of the node labels contains a null character
    """
    joined = "".join(texts)
    if "\0" in joined:
        raise InputError(f"one of the {what} contains a null character")
    if not joined.isascii():
        try:
            joined.encode()
        except UnicodeEncodeError:
            raise InputError(f"one of the {what} contains an unpaired surrogate") from None
