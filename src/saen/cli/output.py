"""What commands print: tables and lines for people, JSON for machines, messages on stderr."""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any, TextIO, cast

from rich.console import Console
from rich.table import Table
from rich.text import Text

from saen._util.json_files import finite
from saen.errors import FileError, printable

if TYPE_CHECKING:
    from saen.learning.metrics import Metric

_BLANKS = re.compile(r" +(?=\n)")
_ASCII = str.maketrans(
    {"→": "->", "×": "x", "±": "+-", "…": "...", "–": "-", "−": "-", "²": "2", "≤": "<="}
)

_ARGUMENT = re.compile(
    r"(?<![\w.])(?<!\w\()(device|directed|force|format|hold_out|id|kind|largest_fragment"
    r"|node_labels?|shards|skip_bad|smiles|target|task|timeout|vectors)"
    r'=(True|…|[A-Z]+\b|"[\w-]+")'
)
_OPTION = re.compile(r"\boption '(\w+)'")
MAX_REPORTED_RECORDS = 10
"""Skipped records that are listed one by one."""


def console() -> Console:
    """Where tables for people go."""
    out = Console(
        highlight=False, markup=False, emoji=False, file=cast("IO[str]", _Plain(sys.stdout))
    )
    if not out.is_terminal:
        out.width = 160  # a pipe has no edge to wrap at
    return out


class _Plain:
    """A stream without what could break it: what comes from data is text, and nothing else.

    Control characters are shown as they are written in Python, and so are characters that the
    encoding of the stream lacks.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write text as far as the encoding has it; common symbols become ASCII.

        Tables fill their last column with blanks, which are left out.
        """
        return self._stream.write(_encodable(_BLANKS.sub("", text), self._stream.encoding))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _encodable(text: str, encoding: str | None) -> str:
    """The text with what an encoding lacks written in ASCII.

    >>> _encodable("3 → 1, é", "ascii")
    '3 -> 1, \\\\xe9'
    """
    encoding = encoding or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        plain = text.translate(_ASCII)
        return plain.encode(encoding, "backslashreplace").decode(encoding)
    return text


def heading(text: str) -> None:
    """A line in bold."""
    console().print(printable(text), style="bold", soft_wrap=True)


def print_line(text: str) -> None:
    """A line as it is, with arguments of Python as options."""
    console().print(printable(in_options(text)), soft_wrap=True)


def print_lines(lines: Mapping[str, str]) -> None:
    """Names and what is to be said of them, one line each."""
    width = max([11, *map(len, lines)]) + 1
    for name, words in lines.items():
        print_line(f"{name:<{width}}{words}")


def print_json(document: Mapping[str, Any]) -> None:
    """One JSON object on stdout; a number that is not finite is null."""
    print(json.dumps(finite(document), indent=2, allow_nan=False))


def say(message: str) -> None:
    """A message on stderr, with arguments of Python as options."""
    text = in_options(f"saen: {message}")
    print(_encodable(printable(text), sys.stderr.encoding), file=sys.stderr)


def in_options(message: str) -> str:
    """Arguments that a message names, as the command line writes them.

    >>> in_options('use force=True, task="regression" or target=…, not ego(directed=True)')
    'use --force, --task regression or --target, not ego(directed=True)'
    >>> in_options("option 'skip_bad' applies only to files")
    'option --skip-bad applies only to files'
    """

    def option(found: re.Match[str]) -> str:
        name, value = found[1].replace("_", "-"), found[2].strip('"')
        name = {"kind": "as", "timeout": "cluster-timeout"}.get(name, name)
        return f"--{name}" if value in ("True", "…") else f"--{name} {value}"

    named = _OPTION.sub(lambda found: f"option --{found[1].replace('_', '-')}", message)
    return _ARGUMENT.sub(option, named)


class DataTable(Table):
    """A table whose cells are text from data: neither markup nor control characters."""

    def add_row(self, *cells: Any, **options: Any) -> None:
        """Add a row of text."""
        super().add_row(*(Text(printable(str(cell))) for cell in cells), **options)


def table(*columns: str) -> DataTable:
    """A table whose first column is text and whose other columns are numbers."""
    out = DataTable(box=None, pad_edge=False)
    for index, column in enumerate(columns):
        out.add_column(column, justify="right" if index else "left")
    return out


def print_levels(levels: list[dict[str, Any]]) -> None:
    """Objects and entries of every level, before and after compression."""
    out = table("level", "objects", "unique", "entries", "compressed")
    for level in levels:
        entries = (f"{level['entries']:,}", f"{level['entries_compressed']:,}")
        out.add_row(
            f"{level['level']}  {level['name']}",
            f"{level['objects']:,}",
            f"{level['unique']:,}",
            *(entries if level["level"] else ("", "")),
        )
    console().print(out)


def print_tried(tried: list[dict[str, Any]], metric: Metric) -> None:
    """The candidates of a blend, if any, by weight, with a cross-validated metric."""
    from saen.report.summaries import candidate_rows

    out = table("candidate", f"CV {metric.title}", "weight")
    for row in candidate_rows(tried, metric):
        out.add_row(*row)
    if tried:
        console().print(out)


@contextmanager
def report_skipped() -> Iterator[Callable[[FileError], None]]:
    """What to call with the error of every skipped record; the first few are listed on stderr."""
    skipped = 0

    def report(error: FileError) -> None:
        nonlocal skipped
        skipped += 1
        if skipped <= MAX_REPORTED_RECORDS:
            say(f"skipped: {error}")

    yield report
    if skipped > MAX_REPORTED_RECORDS:
        say(f"skipped {skipped:,} records in total")


def command_line() -> str:
    """The command that is running, as it was typed."""
    return shlex.join(["saen", *sys.argv[1:]])
