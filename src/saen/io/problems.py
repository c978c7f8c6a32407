"""Bad graphs: the first one stops the reading, or all of them are left out and reported."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from saen._util.strings import plural
from saen.errors import FileError

Report = Callable[[FileError], None]
"""What is called with the error of every graph that is left out."""

_NAMED = 5


class SkippedWarning(UserWarning):
    """Graphs were left out, and nobody asked for a report of them."""


@dataclass(frozen=True)
class BadGraphs:
    """To be called with the error of every bad graph: raises it, or reports it and lets go on."""

    skip: bool
    report: Report

    def __call__(self, error: FileError) -> None:
        """Raise or report."""
        if not self.skip:
            raise error
        self.report(error)


@contextmanager
def bad_graphs(skip_bad: bool, report: Report | None) -> Iterator[BadGraphs]:
    """Where bad graphs go; with neither a stop nor a report, a warning at the end counts them.

    >>> noted = []
    >>> with bad_graphs(True, noted.append) as found:
    ...     found(FileError("nonsense", path="a.jsonl", line=3))
    >>> print(noted[0])
    a.jsonl, line 3: nonsense
    """
    skipped: list[FileError] = []
    yield BadGraphs(skip_bad, report or skipped.append)
    if skipped:
        named = "; ".join(map(str, skipped[:_NAMED]))
        more = f"; and {len(skipped) - _NAMED:,} more" if len(skipped) > _NAMED else ""
        warnings.warn(
            f"left out {plural(len(skipped), 'bad graph')}: {named}{more}",
            SkippedWarning,
            stacklevel=5,
        )
