"""What commands print: tables and lines for people, JSON for machines, messages on stderr."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import typer
from rich.console import Console
from rich.table import Table

from saen.errors import FileError

MAX_REPORTED_RECORDS = 10
"""Skipped records that are listed one by one."""


def console() -> Console:
    """Where tables for people go."""
    out = Console(highlight=False)
    if not out.is_terminal:
        out.width = 160  # a pipe has no edge to wrap at
    return out


def heading(text: str) -> None:
    """A line in bold."""
    console().print(text, style="bold", soft_wrap=True, markup=False)


def print_line(text: str) -> None:
    """A line as it is."""
    console().print(text, soft_wrap=True, markup=False)


def print_lines(lines: Mapping[str, str]) -> None:
    """Names and what is to be said of them, one line each."""
    width = max(10, *map(len, lines)) + 1
    for name, words in lines.items():
        print_line(f"{name:<{width}}{words}")


def print_json(document: Mapping[str, Any]) -> None:
    """One JSON object on stdout."""
    print(json.dumps(document, indent=2))


def say(message: str) -> None:
    """A message on stderr."""
    typer.echo(f"saen: {message}", err=True)


def table(*columns: str) -> Table:
    """A table whose first column is text and whose other columns are numbers."""
    out = Table(box=None, pad_edge=False)
    for index, column in enumerate(columns):
        out.add_column(column, justify="right" if index else "left")
    return out


def print_levels(levels: list[dict[str, Any]]) -> None:
    """Objects and entries of every level, before and after compression."""
    out = table("level", "objects", "unique", "entries", "after")
    for level in levels:
        entries = (f"{level['entries']:,}", f"{level['entries_compressed']:,}")
        out.add_row(
            f"{level['level']}  {level['name']}",
            f"{level['objects']:,}",
            f"{level['unique']:,}",
            *(entries if level["level"] else ("", "")),
        )
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
