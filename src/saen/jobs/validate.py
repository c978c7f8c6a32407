"""Check data: what is in them, what a model would not use, and what is wrong."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

from saen.data.documents import Documents
from saen.data.graphs import Graphs
from saen.data.nested import NestedData
from saen.data.overlap import Overlap
from saen.decompositions.real_attributes import real_attributes
from saen.errors import FileError, InputError
from saen.io.formats.molecules import SMILES
from saen.io.loading import data_kind, load_data
from saen.io.options import ReadOptions
from saen.jobs.notes import molecule_lines, name_lines, stereo_lines, unused_information
from saen.learning.overlap import overlap

MIN_OVERLAP = 20
"""Graphs that overlap is looked for in: what two of fewer share is not rare."""
MAX_LINES = 5
"""Lines that are listed of one complaint."""


@dataclass(frozen=True)
class ValidationReport:
    """What `validate_dataset` found.

    - `data`: what could be read, None if nothing could;
    - `unused`: what no model reads, in one line each;
    - `overlap`: graphs that share more rare parts than chance explains, None if nothing could be
      read, or no graphs;
    - `problems`: by file and line, those with the same reason in the same file together.
    """

    data: Graphs | Documents | NestedData | None
    unused: list[str]
    problems: list[list[FileError]]
    overlap: Overlap | None = None

    @property
    def n_problems(self) -> int:
        """How many records have one."""
        return sum(map(len, self.problems))

    def complaints(self) -> list[str]:
        """The problems in words, with the first lines of each."""
        return [_complaint(group) for group in self.problems]

    def to_json(self, limit: int) -> dict[str, Any]:
        """The content and at most `limit` problems as plain numbers, lists and strings."""
        return {
            "ok": not self.problems,
            "count": 0 if self.data is None else len(self.data),
            "summary": self.data.summary() if isinstance(self.data, Graphs) else None,
            "unused": self.unused,
            "overlap": None if self.overlap is None else self.overlap.to_json(),
            "n_problems": self.n_problems,
            "problems": [
                {
                    "path": str(group[0].path),
                    "line": group[0].line,
                    "message": str(group[0]),
                    "count": len(group),
                }
                for group in self.problems[:limit]
            ],
        }


def validate_dataset(source: str, reading: ReadOptions | None = None) -> ValidationReport:
    """Read data as far as possible, and collect every problem.

    >>> file = getfixture("tmp_path") / "x.jsonl"
    >>> _ = file.write_text('{"nodes": 1, "edges": []}\\n{}\\n{}\\n')
    >>> report = validate_dataset(str(file))
    >>> report.data, report.n_problems, len(report.problems)
    (Graphs(x: 1 graph, 1 node, 0 edges, undirected), 2, 1)
    """
    reading = reading or ReadOptions()
    problems: list[FileError] = []
    data: Graphs | Documents | NestedData | None
    try:
        all_bad = replace(reading, skip_bad=True, report=problems.append)
        data = load_data(source, data_kind(source), all_bad)
    except FileError as error:  # there is no going on after it
        data = None
        problems.append(error)
    if isinstance(data, Graphs):
        problems += _extreme_attributes(data, source)
    groups: dict[tuple[str, str], list[FileError]] = {}
    for each in sorted(problems, key=lambda each: (str(each.path), each.line or 0)):
        groups.setdefault((str(each.path), each.reason), []).append(each)
    # The preset `best` reads all labels, attributes and directions; others say what they do not.
    unused = unused_information(data, None, read=[reading.smiles or SMILES])
    if isinstance(data, Graphs):
        unused += [*name_lines(data), *stereo_lines(data)]
        skipped = [each.record for each in problems]
        unused += molecule_lines(source, data, reading, skipped, command="saen evaluate")
    enough = isinstance(data, Graphs) and len(data) >= MIN_OVERLAP
    found = overlap(data) if enough else None
    return ValidationReport(data, unused, [*groups.values()], found)


def _extreme_attributes(graphs: Graphs, source: str) -> Iterator[FileError]:
    """The first node and edge attribute, if any, that models refuse to read."""
    kinds: tuple[Literal["node", "edge"], ...] = "node", "edge"
    for kind in kinds:
        if getattr(graphs, f"{kind}_attributes") is not None:
            try:
                real_attributes(graphs, kind)
            except InputError as error:
                yield FileError(str(error), path=source)


def _complaint(group: list[FileError]) -> str:
    first, *others = group
    if not others:
        return str(first)
    lines = ", ".join(str(error.line) for error in group[:MAX_LINES])
    more = f" and {len(group) - MAX_LINES:,} more" if len(group) > MAX_LINES else ""
    return f"{first.path}, lines {lines}{more}: {first.reason}"
