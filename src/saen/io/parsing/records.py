"""From the content of files to `Graphs`: one record per graph, or whole columns.

A graph that cannot be used stops the reading, or is skipped and reported (`BadGraphs`).
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from saen._util.arrays import Array, offsets, segment_ids
from saen._util.lazy import sparse
from saen._util.strings import boolean_text, plural
from saen.data.graphs import Graphs
from saen.errors import FileError, InputError
from saen.io.options import ReadOptions, TaskName
from saen.io.parsing.columns import Choice
from saen.io.parsing.text_files import FREE_NODES, check_text, check_width

TargetValue = str | int | float

NODE_COLUMNS = ("node_labels", "node_attributes")
EDGE_COLUMNS = ("edge_labels", "edge_attributes")

MAX_TARGETS = 10_000  # of one example, as many as a table has columns
MAX_TARGET_LENGTH = 1000  # the array of targets is as wide as the longest
_MAX_LISTED = 5
_FREE_CELLS = 1_000_000
_MAX_CELLS_PER_VALUE = 100

_NO_COUNTS = np.empty(0, dtype=np.int64)
_KINDS = {"i": "integer", "U": "string"}

Report = Callable[[FileError], None]
"""Called with the error of every graph that is skipped."""


class SkippedWarning(UserWarning):
    """Graphs were skipped, and no `report` was passed."""


@dataclass(frozen=True)
class BadGraphs:
    """Called with the error of every bad graph: raises it, or reports it to skip the graph.

    With `partial_targets`, what is wrong with a target does not make a graph bad.
    """

    skip: bool
    report: Report
    partial_targets: bool = False

    def __call__(self, error: FileError) -> None:
        """Raise or report."""
        if not self.skip:
            raise error
        self.report(error)


@contextmanager
def bad_graphs(
    skip_bad: bool, report: Report | None, *, partial_targets: bool = False
) -> Iterator[BadGraphs]:
    """Raise the first error, or skip bad graphs; without a `report`, a warning lists them.

    >>> errors = []
    >>> with bad_graphs(True, errors.append) as bad:
    ...     bad(FileError("invalid", path="a.jsonl", line=3))
    >>> print(errors[0])
    a.jsonl, line 3: invalid
    """
    skipped: list[FileError] = []
    yield BadGraphs(skip_bad, report or skipped.append, partial_targets)
    if skipped:
        listed = "; ".join(map(str, skipped[:_MAX_LISTED]))
        n_more = len(skipped) - _MAX_LISTED
        more = f"; and {n_more:,} more" if n_more > 0 else ""
        warnings.warn(
            f"skipped {plural(len(skipped), 'bad graph')}: {listed}{more}",
            SkippedWarning,
            stacklevel=5,
        )


@contextmanager
def skipped_records(options: ReadOptions) -> Iterator[tuple[ReadOptions, list[int | None]]]:
    """The same options, and a list of the records that are skipped while data are read with them.

    None stands for one whose position in the input is not known.
    """
    skipped: list[int | None] = []
    with bad_graphs(options.skip_bad, options.report) as bad_graph:

        def report(error: FileError) -> None:
            skipped.append(error.record)
            bad_graph.report(error)

        yield replace(options, report=report), skipped


class Places(Protocol):
    """Where graphs are in their files, for messages."""

    @property
    def target_file(self) -> Path:
        """The file that has the targets."""

    def graph(self, graph: int) -> str:
        """A graph in words, such as `line 3`."""

    def graph_error(self, graph: int, message: str) -> FileError:
        """The error for a graph."""


class EdgePlaces(Places, Protocol):
    """Where graphs and their edges are in their files, for messages."""

    def clash(self, later: int, earlier: int, what: str) -> FileError:
        """The error for an edge that repeats another one with a different label or attributes."""


def assemble(
    sizes: NDArray[np.int64],
    edges: NDArray[np.int64],
    columns: Mapping[str, Array],
    targets: Sequence[Any],
    *,
    directed: bool,
    name: str,
    ids: ArrayLike,
    extra: Mapping[str, Array] | None = None,
    places: EdgePlaces,
    bad_graph: BadGraphs,
) -> Graphs:
    """Build graphs from columns over all of them; bad ones go to `bad_graph` and are skipped.

    `edges`, shape (E, 2), number the nodes through the collection. An edge may be repeated, and an
    undirected one also from its other end, with the same label and attributes.
    """
    bad = np.zeros(len(sizes), dtype=np.bool_)
    graph_of = segment_ids(offsets(sizes))
    for later, earlier, what in clashing_edges(edges, columns, directed):
        graph = int(graph_of[edges[later, 0]])
        if not bad[graph]:
            bad[graph] = True
            bad_graph(places.clash(later, earlier, what))
    graphs = Graphs.from_edges(
        edges, sizes, directed=directed, duplicates="merge", name=name, ids=ids, **columns
    )
    return with_targets(graphs.with_extra(extra or {}), targets, places, bad_graph, bad)


def with_targets(
    graphs: Graphs,
    targets: Sequence[Any],
    places: Places,
    bad_graph: BadGraphs,
    bad: NDArray[np.bool_] | None = None,
) -> Graphs:
    """The graphs that are not `bad`, with their targets: either all have one, or none has.

    A target may be a list of several, some of them None.
    """
    if bad_graph.partial_targets:
        if bad is not None:
            targets = [targets[graph] for graph in np.flatnonzero(~bad).tolist()]
            graphs = graphs[~bad]
        return graphs.with_targets(partial_targets(targets))
    bad = np.zeros(len(graphs), dtype=np.bool_) if bad is None else bad.copy()
    for graph, target in enumerate(targets):
        longest = _text_width(target)
        if longest > MAX_TARGET_LENGTH and not bad[graph]:
            bad[graph] = True
            message = f"a target of {longest:,} characters (at most {MAX_TARGET_LENGTH:,})"
            bad_graph(places.graph_error(graph, message))
    for graph, word in _words_among_numbers(targets):
        if not bad[graph]:
            bad[graph] = True
            message = f"target {word!r} is not a number, as others are (skip_bad=True leaves such "
            bad_graph(places.graph_error(graph, message + 'out, task="classification" reads them)'))
    known = np.array([target is not None for target in targets], dtype=np.bool_)
    missing = np.flatnonzero(~known & ~bad).tolist()
    if (known & ~bad).any():
        if missing and not bad_graph.skip:
            have = "has" if len(missing) == 1 else "have"
            raise FileError(
                f"{len(missing):,} of {plural(len(graphs), 'graph')} {have} no target (first: "
                f"{places.graph(missing[0])}); either all graphs need one, or none (skip_bad=True "
                "skips those without)",
                path=places.target_file,
            )
        for graph in missing:
            bad[graph] = True
            bad_graph(places.graph_error(graph, "no target, but other graphs have one"))
    good = np.flatnonzero(~bad).tolist()
    graphs = graphs[good] if bad.any() else graphs
    has_targets = len(good) and known[good].all()
    return graphs.with_targets(
        _target_array([targets[graph] for graph in good]) if has_targets else None
    )


def _words_among_numbers(targets: Sequence[Any]) -> list[tuple[int, str]]:
    """Targets of text, each with its graph, where others of the same column are real numbers."""
    columns = zip(*map(_several, targets), strict=False)
    real = [any(isinstance(value, float) for value in column) for column in columns]
    if not any(real):
        return []
    return [
        (graph, value)
        for graph, target in enumerate(targets)
        for value, numbers in zip(_several(target), real, strict=False)
        if numbers and isinstance(value, str)
    ]


def partial_targets(targets: Sequence[Any]) -> Array | None:
    """Targets with gaps as an array: NaN among real numbers, else empty text; None without any.

    Gaps are also lists of several targets that are not as long as the first, and text that is too
    long. Numbers among text are text: what predictions are compared with knows which it can use.

    >>> partial_targets(["a", None]).tolist(), partial_targets([None, [1.5, 2]]).tolist()
    (['a', ''], [[nan, nan], [1.5, 2.0]])
    """
    first = next((target for target in targets if target is not None), None)
    if first is None:
        return None
    shape = _n_values(first)
    gap = None if shape is None else [None] * shape

    def fits(target: Any) -> bool:
        known = target is not None and _n_values(target) == shape
        return known and _text_width(target) <= MAX_TARGET_LENGTH

    return _target_array([target if fits(target) else gap for target in targets])


def _n_values(target: Any) -> int | None:
    return len(target) if isinstance(target, list) else None


def _text_width(target: Any) -> int:
    return max((len(text) for text in _several(target) if isinstance(text, str)), default=0)


def clashing_edges(
    edges: Array, columns: Mapping[str, Array], directed: bool
) -> list[tuple[int, int, str]]:
    """Edges that repeat an earlier one with a different label or attributes.

    The result has the indices of the later and of the earlier edge, and what differs.
    """
    per_edge = {key: columns[key] for key in EDGE_COLUMNS if key in columns}
    if not per_edge or not len(edges):
        return []
    ends = edges.astype(np.int64) if directed else np.sort(edges, axis=1).astype(np.int64)
    codes = ends[:, 0] * (int(ends.max()) + 1) + ends[:, 1]
    order = np.argsort(codes, kind="stable")
    again = np.flatnonzero(codes[order][1:] == codes[order][:-1])
    earlier, later = order[again], order[again + 1]
    out = []
    for key, column in per_edge.items():
        unequal = column[later] != column[earlier]
        differs = unequal if unequal.ndim == 1 else unequal.any(axis=1)
        what = "a different label" if key == "edge_labels" else "different attributes"
        pairs = zip(later[differs].tolist(), earlier[differs].tolist(), strict=True)
        out += [(*pair, what) for pair in pairs]
    return sorted(out)


def one_way_nodes(adjacency: sparse.csr_array[Any]) -> Array:
    """The nodes, in order, with an edge that is listed in one direction only."""
    pattern = adjacency.astype(np.bool_).astype(np.int8)
    return np.unique((pattern - pattern.T).nonzero()[0])


def _target_array(targets: Sequence[Any]) -> Array:
    """Classes, or real numbers if one of them has a fraction.

    Several targets of each graph give a table; missing classes in it are empty strings, which
    makes strings of the others too, and missing numbers NaN.
    """
    values = list(targets)
    if any(isinstance(target, list) for target in targets):
        values = [value for target in targets for value in _several(target)]
    shape = (len(targets), -1) if isinstance(targets[0], list) else (len(targets),)
    known = [value for value in values if value is not None]
    if not any(isinstance(value, str) for value in known):
        if not all(isinstance(n, int) or (n.is_integer() and abs(n) < 2**53) for n in known):
            return np.array(values, dtype=np.float64).reshape(shape)  # None becomes NaN
        whole = [None if value is None else int(value) for value in values]
        if len(known) == len(values):
            return np.array(whole, dtype=np.int64).reshape(shape)
        values = whole
    texts = ["" if value is None else str(value) for value in values]
    return np.array(texts, dtype=np.str_).reshape(shape)


def _several(target: Any) -> list[Any]:
    return target if isinstance(target, list) else [target]


def id_array(values: Sequence[int | str]) -> Array:
    """Ids as an array: integers, or strings where one of them is.

    >>> id_array([3, 4]).tolist(), id_array(["a", 1]).tolist()
    ([3, 4], ['a', '1'])
    """
    text = any(isinstance(value, str) for value in values)
    return np.array([*map(str, values)] if text else values, dtype=np.str_ if text else np.int64)


def extra_columns(rows: Sequence[Mapping[str, Any]]) -> dict[str, Array]:
    """Values that no model reads, by name: numbers, Booleans, else text.

    >>> columns = extra_columns([{"a": 1, "b": "x"}, {"b": 3}, {"a": 2.5, "b": [1]}])
    >>> columns["a"].tolist(), columns["b"].tolist()
    ([1.0, nan, 2.5], ['x', '3', '[1]'])
    """
    names = dict.fromkeys(name for row in rows for name in row)
    n_values = sum(map(len, rows))
    if len(names) * len(rows) > max(_FREE_CELLS, _MAX_CELLS_PER_VALUE * n_values):
        raise InputError(
            f"{len(names):,} different keys that no model reads, each on few lines: write them as "
            "one object under one key"
        )
    return {name: _plain_column([row.get(name) for row in rows]) for name in names}


def _plain_column(values: Sequence[Any]) -> Array:
    kinds = set(map(type, values))
    if kinds in ({bool}, {int}) and all(abs(value) < 2**63 for value in values):
        return np.array(values)
    if kinds <= {int, float, type(None)} and kinds != {type(None)}:
        with suppress(OverflowError):  # an integer beyond all floats is kept as text
            return np.array(values, dtype=np.float64)
    texts = [v if isinstance(v, str) else "" if v is None else json.dumps(v) for v in values]
    check_text(texts, "values")
    return np.array(texts, dtype=np.str_)


def targets_for(targets: Array, task: TaskName) -> Array:
    """Targets as classes or as real numbers.

    >>> targets_for(np.array([1, 2]), "regression").tolist()
    [1.0, 2.0]
    """
    real = targets.dtype.kind == "f"
    if task == "regression" and not real:
        try:
            missing = targets == "" if targets.dtype.kind == "U" else False
            return np.where(missing, "nan", targets).astype(np.float64)
        except ValueError as error:
            raise InputError(f"a regression needs numbers as targets ({error})") from None
    if task == "classification" and real:
        known = targets[~np.isnan(targets)]
        fractions = known[known != np.floor(known)]
        if len(fractions):
            raise InputError(
                f"classes are text or integers, but a target is {fractions[0]:g}: use "
                "task regression"
            )
        whole = np.array([f"{value:.0f}" for value in targets.ravel()]).reshape(targets.shape)
        return (
            np.where(whole == "nan", "", whole)
            if len(known) < targets.size
            else (targets.astype(np.int64))
        )
    return targets


def check_id(value: object) -> None:
    """Raise `InputError` unless a value can be the id of a graph (None for none)."""
    if isinstance(value, str):
        check_text([value], "ids")
        if len(value) > MAX_TARGET_LENGTH:
            raise InputError(f"an id of {len(value):,} characters (at most {MAX_TARGET_LENGTH:,})")
    elif isinstance(value, bool) or not isinstance(value, int | None):
        raise InputError(f"the id must be an integer or a string, not {value!r:.80}")
    elif value is not None and not abs(value) < 2**63:
        raise InputError("the id does not fit into 64 bits")


def as_target(value: object) -> Any:
    """A target of JSON (None for none), or a list of them: true and false become text.

    Raises `InputError` for what cannot be a target.

    >>> as_target([True, 2, None])
    ['true', 2, None]
    """
    if isinstance(value, list) and value and not any(isinstance(each, list) for each in value):
        if len(value) > MAX_TARGETS:
            raise InputError(f"{len(value):,} targets (at most {MAX_TARGETS:,})")
        return [as_target(each) for each in value]
    if isinstance(value, bool):
        return boolean_text(value)
    if isinstance(value, str):
        check_text([value], "targets")
    elif isinstance(value, int):
        if not abs(value) < 2**63:
            raise InputError("the target does not fit into 64 bits")
    elif isinstance(value, float):
        if not abs(value) < 2.0**1023:
            raise InputError("the target is beyond the range of numbers: rescale the targets")
    elif value is not None:
        raise InputError(f"the target must be a string, a number, true or false, not {value!r:.80}")
    return value


@dataclass(frozen=True)
class Record:
    """One graph as its file describes it: E `edges`, shape (E, 2), over nodes 0 … `size` - 1.

    `columns` are named as in `Graphs`; `names` are those of attributes, if the file has any. `row`
    is the position of the graph in the input, bad graphs counted; `id` is its own, or that
    position. `choices` say which columns were read as what.
    """

    path: Path
    line: int | None
    size: int
    edges: NDArray[np.int64]
    columns: Mapping[str, Array] = field(default_factory=dict)
    names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    directed: bool = False
    target: Any = None
    id: int | str = 0
    extra: Mapping[str, Any] = field(default_factory=dict)
    row: int = 0
    choices: tuple[Choice, ...] = ()

    def block(self) -> Block:
        """The graph as a block of its own."""
        return Block(
            self.path,
            [self.line],
            [self.row],
            np.array([self.size], dtype=np.int64),
            np.array([len(self.edges)], dtype=np.int64),
            self.edges,
            self.columns,
            self.directed,
            [self.target],
            [self.id],
            self.names,
            [self.extra] if self.extra else [],
        )


@dataclass(frozen=True)
class Block:
    """Graphs of one file with the same columns: `edges`, shape (E, 2), number nodes in each graph.

    `sizes` and `edge_counts` have one entry per graph, and so have `lines`, `rows`, `targets` and
    `ids`.
    """

    path: Path
    lines: Sequence[int | None]
    rows: Sequence[int]
    sizes: NDArray[np.int64]
    edge_counts: NDArray[np.int64]
    edges: NDArray[np.int64]
    columns: Mapping[str, Array]
    directed: bool
    targets: Sequence[Any]
    ids: Sequence[int | str]
    names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    extra: Sequence[Mapping[str, Any]] = ()

    def error(self, graph: int, message: str) -> FileError:
        """The error for a graph."""
        line, row = self.lines[graph], self.rows[graph]
        return FileError(message, path=self.path, line=line, record=row)


class Records:
    """Collects graphs; one that does not match those before it is a bad graph.

    `target_file` is the file that the targets come from.
    """

    def __init__(self, bad_graph: BadGraphs, target_file: Path) -> None:
        self.bad_graph = bad_graph
        self.target_file = target_file
        self._blocks: list[Block] = []
        self._n_bytes = 0
        self._n_nodes = 0
        self._expected: dict[str, tuple[object, str]] = {}

    def add(self, record: Record, n_bytes: int) -> None:
        """Add a graph that took `n_bytes` of text. Raises `FileError` if it is bad."""
        self._n_bytes += n_bytes
        if record.size > self._n_bytes + FREE_NODES:  # also what is too large for an array
            message = f"{record.size:,} nodes are too many for a file of this size"
            raise FileError(message, path=record.path, line=record.line)
        self.add_block(record.block(), 0)

    def add_block(self, block: Block, n_bytes: int) -> None:
        """Add graphs that took `n_bytes` of text.

        Raises `FileError`, and adds none, if one of them is bad.
        """
        n_nodes = int(block.sizes.sum())
        if self._n_nodes + n_nodes > self._n_bytes + n_bytes + FREE_NODES:
            raise block.error(0, f"{n_nodes:,} nodes are too many for a file of this size")
        schema = _schema(block)
        if self.bad_graph.partial_targets:
            schema.pop("target", None)
        for key, (value, words) in schema.items():
            expected, expected_words = self._expected.get(key, (value, words))
            if value != expected:
                raise block.error(0, f"{words}, but earlier graphs have {expected_words}")
        self._expected = schema | self._expected
        self._n_bytes += n_bytes
        self._n_nodes += n_nodes
        self._blocks.append(block)

    def graphs(self, name: str) -> Graphs:
        """The graphs that were added since the last call."""
        self._collected, self._blocks = self._blocks, []
        blocks = self._collected
        sizes = np.concatenate([_NO_COUNTS, *(block.sizes for block in blocks)])
        edge_counts = np.concatenate([_NO_COUNTS, *(block.edge_counts for block in blocks)])
        edges = np.concatenate([np.empty((0, 2), np.int64), *(block.edges for block in blocks)])
        edges += np.repeat(offsets(sizes)[:-1], edge_counts)[:, None]
        columns = {}
        for key in (*NODE_COLUMNS, *EDGE_COLUMNS):
            parts = [block.columns[key] for block in blocks if key in block.columns]
            if parts:
                self._check_width(key, parts)
                columns[key] = np.concatenate(parts)
        self._first_graphs = offsets(np.array([len(b.sizes) for b in blocks], dtype=np.int64))
        self._first_edges = offsets(edge_counts)
        return assemble(
            sizes,
            edges,
            columns,
            [target for block in blocks for target in block.targets],
            directed=_directed(blocks),
            name=name,
            ids=id_array([graph_id for block in blocks for graph_id in block.ids]),
            extra=self._extra(blocks),
            places=self,
            bad_graph=self.bad_graph,
        )

    def _extra(self, blocks: Sequence[Block]) -> dict[str, Array]:
        if not any(block.extra for block in blocks):
            return {}
        rows = [extra for block in blocks for extra in (block.extra or [{}] * len(block.sizes))]
        try:
            columns = extra_columns(rows)
        except InputError as error:
            raise FileError(str(error), path=blocks[0].path) from None
        for name, column in columns.items():
            self._check_width(f"values of {name!r}", [column])
        return columns

    def _check_width(self, key: str, parts: list[Array]) -> None:
        if parts[0].dtype.kind == "U":
            longest = max(part.dtype.itemsize // 4 for part in parts)
            count = sum(part.size for part in parts)
            try:
                check_width(longest, count, self._n_bytes, key.replace("_", " "))
            except InputError as error:
                raise FileError(str(error), path=self._collected[0].path) from None

    # -- places ------------------------------------------------------------------------------

    def _place(self, graph: int) -> tuple[Block, int]:
        """The block of a graph, and the position of the graph in it."""
        number = int(np.searchsorted(self._first_graphs, graph, side="right")) - 1
        return self._collected[number], graph - int(self._first_graphs[number])

    def graph(self, graph: int) -> str:
        """A graph in words."""
        block, position = self._place(graph)
        line = block.lines[position]
        return block.path.name if line is None else f"line {line}"

    def graph_error(self, graph: int, message: str) -> FileError:
        """The error for a graph."""
        block, position = self._place(graph)
        return block.error(position, message)

    def clash(self, later: int, earlier: int, what: str) -> FileError:
        """The error for two edges of one graph."""
        graph = int(np.searchsorted(self._first_edges, later, side="right")) - 1
        first = int(self._first_edges[graph])
        message = f"edge {later - first} repeats edge {earlier - first} with {what}"
        return self.graph_error(graph, message)


def _directed(blocks: Sequence[Block]) -> bool:
    """As the graphs with edges are; if there are none, as they say."""
    known = [block.directed for block in blocks if len(block.edges)]
    return any(known or [block.directed for block in blocks])


def _schema(block: Block) -> dict[str, tuple[object, str]]:
    """What all graphs must share: values to compare, each with words to show.

    Graphs without nodes or edges say nothing about their columns.
    """
    direction = "directed" if block.directed else "undirected"
    out: dict[str, tuple[object, str]] = {}
    if len(block.edges):
        out["directed"] = (block.directed, f"{direction} edges")
    for keys, count in ((NODE_COLUMNS, block.sizes.any()), (EDGE_COLUMNS, len(block.edges))):
        for key in keys if count else ():
            what = key.replace("_", " ")
            out[key] = _column_schema(what, block.columns.get(key), block.names.get(key))
    target = block.targets[0]
    if isinstance(target, list):
        count = len(target)
        out["target"] = (count, f"a list of {plural(count, 'target')}")
    elif target is not None:
        text = isinstance(target, str)
        out["target"] = (text, "a string as target" if text else "a number as target")
    return out


def _column_schema(
    what: str, column: Array | None, names: tuple[str, ...] | None
) -> tuple[object, str]:
    if column is None:
        return None, f"no {what}"
    if column.dtype.kind == "f":
        listed = f" ({', '.join(names)})" if names else ""
        count = plural(column.shape[1], what.removesuffix("s"))
        return (column.shape[1], names), f"{count}{listed}"
    width = f" with {column.shape[1]} columns" if column.ndim == 2 else ""
    listed = f" ({', '.join(names)})" if names else ""
    shown = f"{_KINDS[column.dtype.kind]} {what}{width}{listed}"
    return (column.dtype.kind, column.shape[1:], names or ()), shown
