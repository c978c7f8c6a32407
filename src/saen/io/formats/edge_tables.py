"""Graphs as tables: one row per edge, and optional tables with one row per node and per graph."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from saen._util.arrays import Array, offsets, segment_ids
from saen._util.atomic import atomic_write, expand_user
from saen._util.lazy import pd
from saen._util.strings import plural
from saen.data.collection import repeated_ids
from saen.data.graphs import Graphs
from saen.errors import FileError, InputError
from saen.io.formats.checks import check_storable
from saen.io.formats.format import Format
from saen.io.libraries.rdkit import looks_like_smiles
from saen.io.options import ReadOptions
from saen.io.parsing.columns import (
    Choice,
    beside_each_other,
    numbered,
)
from saen.io.parsing.records import BadGraphs, assemble
from saen.io.parsing.tables import (
    ROW_INDEX,
    SUFFIXES,
    ParquetRows,
    Table,
    Targets,
    join_names,
    read_table,
    require,
)
from saen.io.result_tables import write_table

EDGES = ("graph", "source", "target")
NODES = ("graph", "node")

ROWS_PER_PART = 1 << 18
"""Edges of the graphs that a stream holds at a time, about."""

Ints = NDArray[np.int64]


def beside(path: Path, kind: str) -> Path:
    """The table of nodes or targets that belongs to a table of edges.

    >>> beside(Path("edges.csv"), "nodes").name, beside(Path("toy.csv"), "targets").name
    ('nodes.csv', 'toy_targets.csv')
    """
    before, edges, after = path.stem.rpartition("edges")
    return path.with_name((before + kind + after if edges else f"{after}_{kind}") + path.suffix)


class UnknownGraphsWarning(UserWarning):
    """Rows of a table of targets were ignored, since there are no such graphs."""


def read_targets(path: Path, options: ReadOptions) -> Targets | None:
    """Read a table with a column `graph` and columns with targets or ids.

    They are `target` (or its alias `label`) and `id` or `name`, or those that `options` name. None
    for a table that cannot be read, where it was found by name and targets may be missing.
    """
    try:
        return _targets_of(read_table(path), options)
    except FileError as error:
        if (
            not options.partial_targets
            or options.targets_file is not None
            or options.id is not None
        ):
            raise
        if options.notify is not None:
            options.notify(f"not read: {error}")
        return None


def _targets_of(table: Table, options: ReadOptions) -> Targets:
    require(table, ("graph",))
    targets = Targets.of(table, options, "graph")
    if not targets.targets and not targets.id and not options.partial_targets:
        known = ", ".join(map(table.written, table.columns))[:200]
        raise FileError(f"no column 'target': name one with target=…, of {known}", path=table.path)
    targets.notify(options)
    return targets


def warn_unknown(path: Path, names: Sequence[object]) -> None:
    """Count rows of a table of targets for which there is no graph."""
    if names:
        warnings.warn(
            f"{path.name}: {plural(len(names), 'row')} without a graph, not used (first: "
            f"{_shown(names[0])})",
            UnknownGraphsWarning,
            stacklevel=2,
        )


def read_edge_table(table: Table, options: ReadOptions, bad_graph: BadGraphs) -> Graphs:
    """Read graphs from a table of edges, with tables of nodes and targets if there are any.

    >>> folder = getfixture("tmp_path")
    >>> _ = (folder / "edges.csv").write_text("graph,source,target\\na,1,2\\na,2,3\\nb,1,2\\n")
    >>> _ = (folder / "targets.csv").write_text("graph,target\\nb,short\\na,long\\n")
    >>> edges = read_table(folder / "edges.csv")
    >>> graphs = read_edge_table(edges, ReadOptions(), BadGraphs(skip=False, report=print))
    >>> graphs.sizes.tolist(), graphs.targets.tolist()
    ([2, 3], ['short', 'long'])
    """
    nodes, targets = _other_tables(table.path, options)
    node_table = None if nodes is None else read_table(nodes, NODES)
    rows = None if targets is None else read_targets(targets, options)
    return _Tables(table, node_table, rows, bad_graph).graphs(options)


def stream_edge_tables(
    path: Path, options: ReadOptions, bad_graph: BadGraphs
) -> Iterator[Graphs] | None:
    """What `read_edge_table` reads from Parquet, in parts; None if that needs the whole.

    All tables must be Parquet and list the graphs in the same order, the rows of each together, as
    `saen convert` writes them.
    """
    nodes, targets = _other_tables(path, options)
    paths = [file for file in (targets, nodes, path) if file is not None]
    if any(file.suffix != ".parquet" or not file.is_file() for file in paths):
        return None
    try:
        files = [ParquetRows(file, whole=False) for file in paths]
    except FileError as error:
        if options.partial_targets and error.path == targets:
            return None
        raise
    for file, required in zip(reversed(files), (EDGES, NODES), strict=False):
        if file.path != targets:
            require(file, required)
    if not all("graph" in file.columns and len(file) for file in files):
        return None
    ends = _common_ends(files)
    if ends is None:
        return None

    def parts() -> Iterator[Graphs]:
        said = options
        streams = [file.parts(each.tolist()) for file, each in zip(files, ends, strict=True)]
        for tables in zip(*streams, strict=True):
            rows = None if targets is None else _targets_of(tables[0], said)
            listed = None if nodes is None else tables[-2]
            yield _Tables(tables[-1], listed, rows, bad_graph).graphs(said)
            said = replace(options, notify=None)  # say once what was found

    return parts()


def _common_ends(files: Sequence[ParquetRows]) -> list[Ints] | None:
    """Where to cut each table so that its parts have the same graphs; None if there is no way.

    The first table names the graphs; the others may lack some.
    """
    runs = [_runs(file) for file in files]
    names = pd.Index(runs[0][0])
    if not names.is_unique or names.hasnans:
        return None
    stops = np.zeros((len(files), len(names)), dtype=np.int64)  # rows up to each graph's last
    for table, (graphs, lengths) in enumerate(runs):
        place = names.get_indexer(pd.Index(graphs))
        if (place < 0).any() or (np.diff(place) <= 0).any():
            return None
        stops[table, place] = lengths
    stops = np.cumsum(stops, axis=1)
    cuts, start = [], np.zeros(len(files), dtype=np.int64)
    while (start < stops[:, -1]).all():
        # As many graphs as have ROWS_PER_PART rows of edges, but some rows of every table.
        cut = int(np.searchsorted(stops[-1], start[-1] + ROWS_PER_PART, side="right")) - 1
        least = max(
            int(np.searchsorted(row, s, side="right")) for row, s in zip(stops, start, strict=True)
        )
        cuts.append(max(cut, least))
        start = stops[:, cuts[-1]]
    if not cuts:
        return None
    cuts[-1] = len(names) - 1  # graphs without edges at the end
    return list(stops[:, cuts])


def _runs(file: ParquetRows) -> tuple[Array, Ints]:
    """The graphs of a table in order, and how many rows in a row each has."""
    names: list[Array] = []
    lengths: list[Ints] = []
    for values in file.column("graph"):
        starts = np.flatnonzero(np.append(True, values[1:] != values[:-1]))
        own = np.diff(starts, append=len(values))
        if names and names[-1][-1] == values[0]:
            lengths[-1][-1] += own[0]
            starts, own = starts[1:], own[1:]
        if len(own):
            names.append(values[starts])
            lengths.append(own)
    joined = np.concatenate(names)
    if joined.dtype.kind not in "iu":
        joined = pd.Series(joined).str.strip().to_numpy()
    return joined, np.concatenate(lengths)


def _other_tables(path: Path, options: ReadOptions) -> tuple[Path | None, Path | None]:
    """The tables of nodes and of targets that belong to a table of edges, if there are any."""
    nodes, targets = (
        _find_beside(path, *kinds) if file is None else expand_user(file)
        for file, kinds in (
            (options.nodes_file, ("nodes",)),
            (options.targets_file, ("targets", "labels")),
        )
    )
    need_targets(path, options, targets)
    return nodes, targets


def need_targets(path: Path, options: ReadOptions, targets: Path | None) -> None:
    """Raise `FileError` if options name columns of a table of targets, and there is none."""
    wanted = options.id if options.partial_targets else options.target or options.id
    if wanted is not None and targets is None:
        raise FileError(f"no table of targets with the column {wanted!r}", path=path)


def _find_beside(path: Path, *kinds: str) -> Path | None:
    """The first table of these kinds beside a table of edges, in its format or in another."""
    for kind in kinds:
        for suffix in (path.suffix, *SUFFIXES):
            file = beside(path, kind).with_suffix(suffix)
            if file.is_file():
                return file
    return None


@dataclass(frozen=True)
class _Part:
    """A table, and the index of the graph that each of its rows belongs to."""

    table: Table
    graph_of: Ints


@dataclass(frozen=True)
class _Nodes:
    """The ends of each edge, shape (E, 2), the size of each graph, and the row of each node in
    the table of nodes, if there is one."""

    ends: Ints
    sizes: Ints
    rows: Ints


class _Tables:
    """The tables of one dataset, whose graphs and nodes get numbers."""

    def __init__(
        self,
        edges: Table,
        nodes: Table | None,
        rows: Targets | None,
        bad_graph: BadGraphs,
    ) -> None:
        self.rows_of_graphs = rows
        targets = None if rows is None else rows.table
        # Graphs are in the order of the targets, then of the nodes, then of the edges.
        tables = [table for table in (targets, nodes, edges) if table is not None]
        codes, self.names = _codes([(table, "graph") for table in tables])
        self.bad_graph = bad_graph
        self.bad = np.zeros(len(self.names), dtype=np.bool_)
        parts = [_Part(*pair) for pair in zip(tables, codes, strict=True)]
        self.edges = parts[-1]
        self.nodes = None if nodes is None else parts[-2]
        self.targets = None if targets is None else parts[0]
        for part in parts:
            if part is not self.targets or not bad_graph.partial_targets:
                self._check_broken(part.table)
                self._check_filled(part, "graph")

    def graphs(self, options: ReadOptions) -> Graphs:
        """All graphs that are not bad."""
        row_of = self._target_rows()
        for column in ("source", "target"):
            self._check_filled(self.edges, column)
        nodes = self._nodes_of_edges() if self.nodes is None else self._listed_nodes(self.nodes)
        self._check_present(nodes.sizes)
        edge_choice = self._chosen(self.edges, "edge", options)
        node_choice = None if self.nodes is None else self._chosen(self.nodes, "node", options)
        # Bad graphs have been reported; from here on they are left out.
        good = np.flatnonzero(~self.bad)
        good_nodes = ~self.bad[segment_ids(offsets(nodes.sizes))]
        self.rows = np.flatnonzero(~self.bad[self.edges.graph_of])
        columns = _columns(self.edges.table, edge_choice, self.rows)
        if self.nodes is not None and node_choice is not None:
            columns |= _columns(self.nodes.table, node_choice, nodes.rows[good_nodes])
        self.names = self.names[good]
        targets, ids, extra = self._about_graphs(row_of[good])
        if options.all_columns:
            graph = "graph" if self.targets is None else self.targets.table.written("graph")
            extra[graph] = (
                self.names if self.names.dtype.kind == "i" else self.names.astype(np.str_)
            )
        return assemble(
            nodes.sizes[good],
            (np.cumsum(good_nodes) - 1)[nodes.ends[self.rows]],
            columns,
            targets,
            directed=options.directed,
            name=self.edges.table.path.stem,
            ids=ids,
            extra=extra,
            places=self,
            bad_graph=self.bad_graph,
        )

    # -- nodes ----------------------------------------------------------------------------

    def _nodes_of_edges(self) -> _Nodes:
        """The nodes that the edges name."""
        edges = self.edges
        codes, names = _codes([(edges.table, c) for c in ("source", "target")], ascending=True)
        keys = edges.graph_of[:, None] * len(names) + np.column_stack(codes)
        distinct, places = np.unique(keys, return_inverse=True)
        sizes = np.bincount(distinct // len(names), minlength=len(self.bad))
        return _Nodes(places.reshape(-1, 2), sizes, np.empty(0, dtype=np.int64))

    def _listed_nodes(self, nodes: _Part) -> _Nodes:
        """The nodes of the table of nodes, in its order."""
        edges = self.edges
        self._check_filled(nodes, "node")
        (listed, *ends), names = _codes(
            [(nodes.table, "node"), (edges.table, "source"), (edges.table, "target")]
        )
        keys = nodes.graph_of * len(names) + listed
        self._flag(
            nodes,
            np.flatnonzero(pd.Series(keys).duplicated()),
            lambda row: f"node {_shown(names[listed[row]])} of this graph is listed twice",
        )
        distinct, first = np.unique(keys, return_index=True)
        order = np.argsort(nodes.graph_of, kind="stable")
        place = np.argsort(order)
        places = []
        for column, codes in zip(("source", "target"), ends, strict=True):
            wanted = edges.graph_of * len(names) + codes
            at = np.minimum(np.searchsorted(distinct, wanted), len(distinct) - 1)
            self._flag(
                edges,
                np.flatnonzero(distinct[at] != wanted),
                self._unknown_node(column, names[codes]),
            )
            places.append(place[first[at]])
        sizes = np.bincount(nodes.graph_of, minlength=len(self.bad))
        return _Nodes(np.column_stack(places), sizes, order)

    def _unknown_node(self, column: str, names: NDArray[Any]) -> Callable[[int], str]:
        assert self.nodes is not None
        table = self.nodes.table.path.name
        return lambda row: f"{column} {_shown(names[row])} is not a node of this graph in {table}"

    # -- targets -----------------------------------------------------------------------------

    def _target_rows(self) -> Ints:
        """The row of every graph in the table of targets, -1 without one."""
        row_of = np.full(len(self.names), -1)
        if self.targets is not None:
            graph_of = self.targets.graph_of
            again = np.flatnonzero(pd.Series(graph_of).duplicated())
            row_of[graph_of] = np.arange(len(graph_of))
            if self.bad_graph.partial_targets:
                row_of[graph_of[again]] = -1
                return row_of
            self._flag(
                self.targets,
                again,
                lambda row: f"graph {self.graph(graph_of[row])} is listed twice",
            )
        return row_of

    def _about_graphs(self, rows: Ints) -> tuple[list[Any], Array, dict[str, Array]]:
        """Targets, ids and extra columns of the graphs with these rows in the table of targets."""
        names = self.names if self.names.dtype.kind == "i" else self.names.astype(np.str_)
        if self.rows_of_graphs is None:
            return [None] * len(rows), names, {}
        about, table, known = self.rows_of_graphs, self.rows_of_graphs.table, rows >= 0
        if about.id is not None:
            own = table.labels(about.id, rows[known])
            names = names.astype(np.result_type(names, own)) if not known.all() else own.copy()
            names[known] = own
        extra = {}
        for name in about.extra:
            column = table.array(name)[rows]
            if not known.all():
                column = column.astype(np.str_ if column.dtype.kind == "U" else np.float64)
                column[~known] = "" if column.dtype.kind == "U" else np.nan
            extra[table.written(name)] = column
        return about.values(rows), names, extra

    # -- bad graphs --------------------------------------------------------------------------

    def _flag(self, part: _Part, rows: Ints, message: Callable[[int], str]) -> None:
        """Report the first of these rows for every graph that was good so far."""
        rows = np.sort(rows)
        first = np.unique(part.graph_of[rows], return_index=True)[1]
        for row in rows[np.sort(first)].tolist():
            graph = part.graph_of[row]
            if not self.bad[graph]:
                self.bad[graph] = True
                self.bad_graph(part.table.error(row, message(row)))

    def _check_broken(self, table: Table) -> None:
        if table.broken:
            place = table.columns.index("graph")
            code = {str(name): number for number, name in enumerate(self.names)}
            for fields, error in table.broken:
                graph = code.get(fields[place].strip()) if place < len(fields) else None
                if graph is not None:
                    self.bad[graph] = True
                self.bad_graph(error)

    def _check_filled(self, part: _Part, column: str) -> None:
        values = part.table.values(column)
        if values.dtype.kind != "i":
            empty = np.flatnonzero(values.str.strip() == "")
            self._flag(part, empty, lambda _: f"column {column!r} is empty")

    def _chosen(self, part: _Part, what: str, options: ReadOptions) -> Choice:
        """Which columns hold labels and attributes; their values are checked."""
        table = part.table
        free = [c for c in table.columns if c not in (*EDGES, *NODES, *ROW_INDEX)]
        try:
            choice = Choice.by(what, {c: table.is_text(c) for c in free}, options)
        except InputError as error:
            raise FileError(str(error), path=table.path) from None
        if options.notify is not None and (line := choice.line()):
            options.notify(f"{table.path.name}: {line}")
        if "label" in choice.labels:
            self._check_filled(part, "label")
        for column in choice.attributes:
            wrong = np.flatnonzero(np.isnan(table.numbers(column)))
            if len(wrong):
                self._flag(part, wrong, _not_a_number(table, column))
        return choice

    def _check_present(self, sizes: Ints) -> None:
        """Leave out graphs that only the table of targets has."""
        if self.targets is not None:
            unknown = np.flatnonzero((sizes == 0) & ~self.bad)
            self.bad[unknown] = True
            warn_unknown(self.targets.table.path, self.names[unknown].tolist())

    # -- places ------------------------------------------------------------------------------

    @property
    def target_file(self) -> Path:
        """The file that has the targets."""
        return (self.targets or self.edges).table.path

    def graph(self, graph: int) -> str:
        """The name of a graph."""
        return _shown(self.names[graph])

    def graph_error(self, graph: int, message: str) -> FileError:
        """The error for a graph."""
        return FileError(f"graph {self.graph(graph)}: {message}", path=self.target_file)

    def clash(self, later: int, earlier: int, what: str) -> FileError:
        """The error for two rows of one edge."""
        table = self.edges.table
        first = table.place(int(self.rows[earlier]))
        return table.error(int(self.rows[later]), f"repeats the edge of {first} with {what}")


def _columns(table: Table, choice: Choice, rows: Ints) -> dict[str, Array]:
    """Labels and attributes of some rows."""
    out: dict[str, Array] = {}
    labels = beside_each_other([table.labels(column, rows) for column in choice.labels])
    if labels is not None:
        out[f"{choice.what}_labels"] = labels
    columns = [table.numbers(column)[rows] for column in choice.attributes]
    if columns:
        out[f"{choice.what}_attributes"] = np.column_stack(columns)
    return out


def _not_a_number(table: Table, column: str) -> Callable[[int], str]:
    texts = table.texts(column)
    return lambda row: f"{texts.iloc[row]!r:.40} in column {column!r} is not a finite number"


def _shown(name: object) -> str:
    return f"{str(name)!r:.60}"


def _codes(
    columns: list[tuple[Table, str]], ascending: bool = False
) -> tuple[list[Ints], NDArray[Any]]:
    """Codes for the values of several columns together, and the values.

    Codes follow the first occurrence; with `ascending`, integers are sorted.
    """
    parts: list[pd.Series[Any]] = [table.values(column) for table, column in columns]
    integers = all(part.dtype.kind == "i" for part in parts)
    if not integers:
        parts = [table.texts(column).str.strip() for table, column in columns]
    lengths = np.cumsum([len(part) for part in parts])[:-1]
    joined = np.concatenate([part.to_numpy(dtype=None if integers else object) for part in parts])
    codes, names = pd.factorize(joined, sort=ascending and integers)
    return np.split(codes.astype(np.int64), lengths), names


# -- writing -----------------------------------------------------------------------------------


def tables_of(graphs: Graphs) -> dict[str, dict[str, Array]]:
    """The tables of edges, nodes and targets, which `read_edge_table` reads back.

    Graphs are named by their ids, or numbered if two of them have the same.

    >>> tables = tables_of(Graphs.from_edge_lists([[(0, 1)]], targets=["a"]))
    >>> {kind: ",".join(columns) for kind, columns in tables.items()}
    {'edges': 'graph,source,target', 'nodes': 'graph,node', 'targets': 'graph,target'}
    """
    graph_of = segment_ids(graphs.node_offsets)
    ends = graphs.edges()
    starts = graphs.node_offsets[graph_of]
    entries = segment_ids(graphs.indptr)
    listed = slice(None) if graphs.directed else entries <= graphs.indices
    texts = map(str, graphs.ids.tolist())
    names_graphs = not repeated_ids(graphs.ids) and all(
        text == text.strip() != "" for text in texts
    )
    ids = graphs.ids if names_graphs else np.arange(len(graphs))
    edges: dict[str, Array] = {
        "graph": ids[graph_of[ends[:, 0]]],
        "source": ends[:, 0] - starts[ends[:, 0]],
        "target": ends[:, 1] - starts[ends[:, 0]],
    }
    nodes: dict[str, Array] = {"graph": ids[graph_of], "node": np.arange(graphs.n_nodes) - starts}
    for columns, labels, attributes, rows in (
        (edges, graphs.edge_labels, graphs.edge_attributes, listed),
        (nodes, graphs.node_labels, graphs.node_attributes, slice(None)),
    ):
        if labels is not None:
            several = [labels] if labels.ndim == 1 else labels.T
            for name, values in zip(numbered("label", len(several)), several, strict=True):
                columns["label" if labels.ndim == 1 else name] = values[rows]
        if attributes is not None:
            names = numbered("attribute", attributes.shape[1])
            columns |= dict(zip(names, attributes[rows].T, strict=True))
    targets: dict[str, Array] = {
        "graph": ids,
        "target": np.full(len(graphs), "") if graphs.targets is None else graphs.targets,
    }
    if not names_graphs:
        targets["id"] = graphs.ids
    targets |= {
        name: column for name, column in (graphs.extra or {}).items() if name not in targets
    }
    return {"edges": edges, "nodes": nodes, "targets": targets}


def _read(path: Path, options: ReadOptions, bad_graph: BadGraphs) -> Graphs:
    table = read_table(path)
    if not {*EDGES} & {*table.columns}:
        raise FileError(_neither(table), path=path)
    require(table, EDGES)
    return read_edge_table(table, options, bad_graph)


def _neither(table: Table) -> str:
    """What to say of a table with neither edges nor a column called `smiles`."""
    alike = [table.written(name) for name in table.columns if looks_like_smiles(table.texts(name))]
    columns = join_names([*map(table.written, table.columns)])[:200]
    if alike and looks_like_smiles(alike[:1]):
        return f"no header: the first line must name the columns, not be a row ({columns})"
    if alike:
        return (
            "no column 'smiles': name the column of molecules with smiles=…; columns: "
            f"{columns}; {alike[0]!r} looks like SMILES"
        )
    return (
        "neither molecules (name their column with smiles=…) nor edges (which need the columns "
        f"graph, source and target); columns: {columns}"
    )


def _files(path: Path) -> list[Path]:
    return [path, *(beside(path, kind) for kind in ("nodes", "targets"))]


def _write(graphs: Graphs, path: Path) -> None:
    check_storable(graphs, path.suffix[1:])
    if not graphs.n_edges:
        raise InputError("an edge table needs at least one edge")
    if (graphs.sizes == 0).any():
        empty = int(np.argmin(graphs.sizes))
        raise InputError(f"graph {empty} has no nodes, which an edge table cannot store")
    with ExitStack() as stack:  # all are written before the first is replaced
        for file, columns in zip(_files(path), tables_of(graphs).values(), strict=True):
            write_table(columns, stack.enter_context(atomic_write(file)), file.suffix)
        # The edges come last: until then nobody reads old and new tables together.
        path.unlink(missing_ok=True)


EDGE_TABLES = Format(
    "table",
    "edge tables",
    SUFFIXES,
    "graphs",
    (
        *("directed", "target", "id", "nodes_file", "targets_file"),
        *("node_label", "node_attribute", "edge_label", "edge_weight"),
    ),
    _read,
    stream_edge_tables,
    _write,
    _files,
)
