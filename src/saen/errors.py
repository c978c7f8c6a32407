"""The one family of errors that `saen` raises on purpose.

Every message names what was found, what was expected and, where there is one, the fix. The command
line prints the message alone and exits with code 2; in Python, `except saen.SaenError` catches all.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

MAX_MESSAGE = 1000
"""Characters of the longest message: files and libraries may put anything into one."""


def printable(text: str) -> str:
    """The text with control characters, which could command a terminal, written as in Python.

    >>> printable("a\\x1b[31m")
    'a\\\\x1b[31m'
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\n" else repr(c)[1:-1] for c in text)


class SaenError(Exception):
    """Base of every error that is the fault of an input rather than of the library.

    >>> len(str(SaenError("x" * 10_000)))
    1000
    """

    def __init__(self, message: str = "") -> None:
        text = printable(message[: 2 * MAX_MESSAGE])
        if len(message) > MAX_MESSAGE or len(text) > MAX_MESSAGE:
            start, end = text[: MAX_MESSAGE - 203], printable(message[-200:])[-200:]
            text = f"{start} … {end}"
        super().__init__(text)

    def __reduce__(self) -> tuple[Any, ...]:
        # Pickled by what it holds: a subclass may take other arguments than its message.
        return _restore, (type(self), self.args, self.__dict__)


class InputError(SaenError, ValueError):
    """An argument or an in-memory object does not make sense."""


class FileError(SaenError):
    """A file is missing, malformed, damaged, foreign or of a newer format.

    `reason` is the message without the place: `path` and `line`, if any. `record` is the position,
    from 0, of the graph that it is about among all of the input, where a reader knows it.

    >>> print(FileError("'x' is not an integer", path="toy_A.txt", line=3))
    toy_A.txt, line 3: 'x' is not an integer
    """

    def __init__(
        self,
        message: str,
        *,
        path: str | Path,
        line: int | None = None,
        record: int | None = None,
    ) -> None:
        place = f"{path}, line {line}" if line is not None else f"{path}"
        super().__init__(" ".join(f"{place}: {message}".splitlines()))
        self.reason = message
        self.path: Path = Path(path)
        self.line = line
        self.record = record


class DatasetNotFoundError(SaenError, LookupError):
    """No dataset of that name, here or where it could be downloaded from."""


class MissingExtraError(SaenError, ImportError):
    """An optional library is not installed.

    >>> print(MissingExtraError("matplotlib", extra="plots"))
    this needs matplotlib: pip install "saen[plots]"
    """

    def __init__(self, library: str, *, extra: str) -> None:
        super().__init__(f'this needs {library}: pip install "saen[{extra}]"')


class WorkerError(SaenError):
    """A worker of a cluster was lost, runs out of memory or does not fit the others."""


def _restore(kind: type[SaenError], args: tuple[Any, ...], state: dict[str, Any]) -> SaenError:
    error = kind.__new__(kind)
    error.args = args
    error.__dict__.update(state)
    return error
