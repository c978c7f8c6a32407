"""From what stands in the files to `Graphs`: one record per graph, or whole columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from saen._util.arrays import Array, offsets, segment_ids
from saen._util.strings import plural
from saen.data.graphs import Graphs
from saen.errors import FileError, InputError
from saen.io.problems import BadGraphs
from saen.io.sources import FREE_NODES, check_text, check_width

Label = str | int | float

NODE_COLUMNS = ("node_labels", "node_attributes")
EDGE_COLUMNS = ("edge_labels", "edge_attributes")

LONGEST_LABEL = 1000  # of a graph: the targets are a column as wide as the longest

_KINDS = {"i": "whole numbers", "U": "strings", "f": "numbers"}


class Places(Protocol):
    """Where graphs stand, for messages."""

    @property
    def labels(self) -> Path:
        """The file that has the labels of graphs."""

    def graph(self, graph: int) -> str:
        """A graph in words, such as `line 3`."""

    def graph_error(self, graph: int, message: str) -> FileError:
        """The error for a graph."""


class EdgePlaces(Places, Protocol):
    """Where graphs and their edges stand, for messages."""

    def clash(self, later: int, earlier: int, what: str) -> FileError:
        """The error for an edge that repeats another one with other labels or attributes."""


def assemble(
    sizes: NDArray[np.int64],
    edges: NDArray[np.int64],
    columns: Mapping[str, Array],
    targets: Sequence[Label | None],
    *,
    directed: bool,
    name: str,
    places: EdgePlaces,
    found: BadGraphs,
) -> Graphs:
    """Graphs from columns over all of them; the bad ones go to `found` and are left out.

    `edges`, shape (E, 2), are numbered through the collection. An edge may be listed again, and an
    undirected one from its other end, with the same labels and attributes.
    """
    bad = np.zeros(len(sizes), dtype=np.bool_)
    graph_of = segment_ids(offsets(sizes))
    for later, earlier, what in _clashes(edges, columns, directed):
        graph = int(graph_of[edges[later, 0]])
        if not bad[graph]:
            bad[graph] = True
            found(places.clash(later, earlier, what))
    graphs = Graphs.from_edges(
        edges, sizes, directed=directed, duplicates="merge", name=name, **columns
    )
    return labelled(graphs, targets, places, found, bad)


def labelled(
    graphs: Graphs,
    targets: Sequence[Label | None],
    places: Places,
    found: BadGraphs,
    bad: NDArray[np.bool_] | None = None,
) -> Graphs:
    """The graphs that are not `bad`, with their targets; either all have one, or none has."""
    bad = np.zeros(len(graphs), dtype=np.bool_) if bad is None else bad.copy()
    for graph, target in enumerate(targets):
        if isinstance(target, str) and len(target) > LONGEST_LABEL and not bad[graph]:
            bad[graph] = True
            found(
                places.graph_error(
                    graph,
                    f"a label of {len(target):,} characters, at most {LONGEST_LABEL:,} can be",
                )
            )
    known = np.array([target is not None for target in targets], dtype=np.bool_)
    missing = np.flatnonzero(~known & ~bad).tolist()
    if (known & ~bad).any():
        if missing and not found.skip:
            have = "has" if len(missing) == 1 else "have"
            raise FileError(
                f"{len(missing):,} of {plural(len(graphs), 'graph')} {have} no label (the first is "
                f"{places.graph(missing[0])}): label all of them, or none",
                path=places.labels,
            )
        for graph in missing:
            bad[graph] = True
            found(places.graph_error(graph, "no label, which other graphs have"))
    kept = np.flatnonzero(~bad).tolist()
    graphs = graphs[kept] if bad.any() else graphs
    has_targets = len(kept) and known[kept].all()
    return graphs.with_targets(
        _targets([targets[graph] for graph in kept]) if has_targets else None
    )


def _clashes(
    edges: NDArray[np.int64], columns: Mapping[str, Array], directed: bool
) -> list[tuple[int, int, str]]:
    """Edges that repeat an earlier one with other labels or attributes, by their number."""
    per_edge = {key: columns[key] for key in EDGE_COLUMNS if key in columns}
    if not per_edge or not len(edges):
        return []
    ends = edges if directed else np.sort(edges, axis=1)
    codes = ends[:, 0] * (int(ends.max()) + 1) + ends[:, 1]
    order = np.argsort(codes, kind="stable")
    again = np.flatnonzero(codes[order][1:] == codes[order][:-1])
    out = []
    for key, column in per_edge.items():
        earlier, later = order[again], order[again + 1]
        unequal = column[later] != column[earlier]
        differs = unequal if unequal.ndim == 1 else unequal.any(axis=1)
        what = "another label" if key == "edge_labels" else "other attributes"
        pairs = zip(later[differs].tolist(), earlier[differs].tolist(), strict=True)
        out += [(*pair, what) for pair in pairs]
    return sorted(out)


def _targets(values: Sequence[Label | None]) -> Array:
    """Classes, or real numbers where one of them has a fraction."""
    if any(isinstance(value, str) for value in values):
        return np.array(values, dtype=np.str_)
    numbers = [value for value in values if isinstance(value, int | float)]
    if all(isinstance(n, int) or (n.is_integer() and abs(n) < 2**53) for n in numbers):
        return np.array(numbers).astype(np.int64)
    return np.array(numbers, dtype=np.float64)


def check_target(value: object) -> None:
    """Raise `InputError` for what is no label of a graph (or none, which is None)."""
    if value is None:
        return
    if isinstance(value, str):
        check_text([value], "labels of graphs")
        return
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InputError(f"the label of the graph must be a string or a number, not {value!r:.80}")
    if not abs(value) < (2**63 if isinstance(value, int) else 2.0**1023):
        raise InputError("the label of the graph is a number that does not fit into 64 bits")


@dataclass(frozen=True)
class Record:
    """One graph as it stands in a file: E `edges`, shape (E, 2), over nodes 0 … `size` - 1.

    `columns` are by their names in `Graphs`, `names` those of attributes where the file has any.
    """

    path: Path
    line: int | None
    size: int
    edges: NDArray[np.int64]
    columns: Mapping[str, Array] = field(default_factory=dict)
    names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    directed: bool = False
    target: Label | None = None

    def error(self, message: str) -> FileError:
        """The error for this graph."""
        return FileError(message, path=self.path, line=self.line)


class Records:
    """Collects graphs one by one; what does not go with those before it is a bad graph.

    `labels` is the file that graphs have their labels from.
    """

    def __init__(self, found: BadGraphs, labels: Path) -> None:
        self.found = found
        self.labels = labels
        self.records: list[Record] = []
        self.n_bytes = 0
        self._n_nodes = 0
        self._known: dict[str, tuple[object, str]] = {}

    def add(self, record: Record, n_bytes: int) -> None:
        """Take a graph that stood in `n_bytes` of text. Raises `FileError` where it is bad."""
        self.n_bytes += n_bytes
        if self._n_nodes + record.size > self.n_bytes + FREE_NODES:
            raise record.error(f"{record.size:,} nodes, which is too many for a file of this size")
        facts = _facts(record)
        for key, fact in facts.items():
            known, words = self._known.get(key, fact)
            if fact[0] != known:
                raise record.error(f"{fact[1]}, but graphs before it have {words}")
        self._known = facts | self._known
        self._n_nodes += record.size
        self.records.append(record)

    def graphs(self, name: str) -> Graphs:
        """All graphs so far."""
        sizes = np.array([record.size for record in self.records], dtype=np.int64)
        starts = offsets(sizes)
        edges = [r.edges + start for r, start in zip(self.records, starts[:-1], strict=True)]
        columns = {}
        for key in (*NODE_COLUMNS, *EDGE_COLUMNS):
            parts = [record.columns[key] for record in self.records if key in record.columns]
            if parts:
                self._check_width(key, parts)
                columns[key] = np.concatenate(parts)
        self._first_edges = offsets(np.array([len(record.edges) for record in self.records]))
        return assemble(
            sizes,
            np.concatenate([np.empty((0, 2), dtype=np.int64), *edges]),
            columns,
            [record.target for record in self.records],
            directed=self._directed(),
            name=name,
            places=self,
            found=self.found,
        )

    def _directed(self) -> bool:
        """As the graphs with edges are; where there are none, as they say."""
        known = [record.directed for record in self.records if len(record.edges)]
        return any(known or [record.directed for record in self.records])

    def _check_width(self, key: str, parts: list[Array]) -> None:
        if parts[0].dtype.kind == "U":
            longest = max(part.dtype.itemsize // 4 for part in parts)
            try:
                check_width(
                    longest, sum(p.size for p in parts), self.n_bytes, key.replace("_", " ")
                )
            except InputError as error:
                raise FileError(str(error), path=self.records[0].path) from None

    # -- places ------------------------------------------------------------------------------

    def graph(self, graph: int) -> str:
        """A graph in words."""
        record = self.records[graph]
        return record.path.name if record.line is None else f"line {record.line}"

    def graph_error(self, graph: int, message: str) -> FileError:
        """The error for a graph."""
        return self.records[graph].error(message)

    def clash(self, later: int, earlier: int, what: str) -> FileError:
        """The error for two edges of one graph."""
        graph = int(np.searchsorted(self._first_edges, later, side="right")) - 1
        first = int(self._first_edges[graph])
        return self.records[graph].error(
            f"edge {later - first} repeats edge {earlier - first} with {what}"
        )


def _facts(record: Record) -> dict[str, tuple[object, str]]:
    """What must be the same for all graphs, with words; a graph without edges has no say on them.

    Every fact has a value to compare and words to show.
    """
    direction = "directed" if record.directed else "undirected"
    out: dict[str, tuple[object, str]] = {}
    if len(record.edges):
        out["directed"] = (record.directed, f"{direction} edges")
    for keys, count in ((NODE_COLUMNS, record.size), (EDGE_COLUMNS, len(record.edges))):
        for key in keys if count else ():
            out[key] = _fact(key.replace("_", " "), record.columns.get(key), record.names.get(key))
    if record.target is not None:
        text = isinstance(record.target, str)
        out["target"] = (text, "a string as label" if text else "a number as label")
    return out


def _fact(what: str, column: Array | None, names: tuple[str, ...] | None) -> tuple[object, str]:
    if column is None:
        return None, f"no {what}"
    if column.dtype.kind == "f":
        listed = f" ({', '.join(names)})" if names else ""
        count = plural(column.shape[1], what.removesuffix("s"))
        return (column.shape[1], names), f"{count}{listed}"
    width = f" ({column.shape[1]} each)" if column.ndim == 2 else ""
    return (column.dtype.kind, column.shape[1:]), f"{_KINDS[column.dtype.kind]} as {what}{width}"
