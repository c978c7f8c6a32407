"""`Graphs`: a dataset of graphs as a handful of flat arrays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from saen._util.arrays import (
    Array,
    Ints,
    index_dtype,
    offsets,
    owned,
    ranges,
    row_blocks,
    segment_ids,
    segment_reduce,
)
from saen._util.lazy import sparse
from saen._util.strings import plural
from saen.data.adjacency import Entries, is_symmetric
from saen.data.collection import (
    Dataset,
    Positions,
    as_column,
    check_column,
    check_pointers,
    checked_ids,
    checked_names,
    concatenate_columns,
    concatenated,
    equal_columns,
    targets_summary,
)
from saen.errors import InputError

Direction = Literal["both", "out", "in"]

_PER_NODE = ("node_labels", "node_attributes")
_PER_ENTRY = ("edge_labels", "edge_attributes")
_COLUMNS = ("node_offsets", "indptr", "indices", *_PER_NODE, *_PER_ENTRY, "targets")


@dataclass(frozen=True, eq=False, repr=False)
class Graphs(Dataset):
    """An immutable, columnar collection of graphs.

    Nodes are numbered across all graphs: graph g owns nodes
    `node_offsets[g] … node_offsets[g + 1] - 1`, and the neighbours of node v are
    `indices[indptr[v] : indptr[v + 1]]`, sorted and distinct. An undirected edge is two entries,
    one from either end, a self-loop is one entry. Arrays are read-only; nothing that is passed in
    is ever changed, and arrays that a caller could still change are copied.

    Shapes, for G graphs, N nodes and E entries:

    - `node_offsets`: (G + 1,), `indptr`: (N + 1,), `indices`: (E,)
    - `node_labels`: (N,) or (N, k) integers or strings; `node_attributes`: (N, k) floats
    - `edge_labels`: (E,) or (E, k) integers or strings; `edge_attributes`: (E, k) floats
    - `targets`: (G,) classes (integers or strings) or (G,) or (G, k) floats
    - `ids`: (G,) integers or strings, the name of every graph in outputs; by default 0 … G - 1
    - `extra`: other columns of the input by name, (G,) each, which no model reads, except for
      those that `feature_names` names: see `with_features`
    - `target_names`: one per target, where the input names them

    Raises `InputError` for arrays that do not describe graphs.

    >>> two = Graphs.from_edge_lists([[(0, 1), (1, 2)], [(0, 0)]], targets=["path", "loop"])
    >>> two
    Graphs(2 graphs, 4 nodes, 3 edges (1 self-loop), undirected; 2 classes)
    >>> two[two.targets == "path"].degrees().tolist()
    [1, 2, 1]
    """

    node_offsets: NDArray[np.int64]
    indptr: NDArray[np.int64]
    indices: NDArray[np.signedinteger[Any]]
    node_labels: Array | None = None
    node_attributes: Array | None = None
    edge_labels: Array | None = None
    edge_attributes: Array | None = None
    targets: Array | None = None
    directed: bool = False
    name: str = ""
    ids: Array = None  # type: ignore[assignment]  # filled with row numbers
    extra: Mapping[str, Array] | None = None
    target_names: tuple[str, ...] = ()
    feature_names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for key in _COLUMNS:
            values = getattr(self, key)
            if values is not None:
                object.__setattr__(self, key, owned(_column(key, values)))
        _check_adjacency(self)
        object.__setattr__(self, "ids", checked_ids(self.ids, len(self)))
        _check_within(self.node_offsets, self.indptr, self.indices)
        _check_columns(self)
        names = checked_names(self.target_names, self.targets)
        object.__setattr__(self, "target_names", names)
        _check_symmetric(self)
        width = index_dtype(self.n_nodes)
        if self.indices.dtype != width:
            object.__setattr__(self, "indices", owned(self.indices.astype(width)))

    # -- construction ------------------------------------------------------------------------

    @classmethod
    def from_edges(
        cls,
        edges: ArrayLike | Entries,
        sizes: ArrayLike,
        *,
        directed: bool = False,
        duplicates: Literal["error", "merge"] = "error",
        node_labels: ArrayLike | None = None,
        node_attributes: ArrayLike | None = None,
        edge_labels: ArrayLike | None = None,
        edge_attributes: ArrayLike | None = None,
        targets: ArrayLike | None = None,
        name: str = "",
        ids: ArrayLike | None = None,
    ) -> Graphs:
        """Build from one edge array over the nodes of all graphs, numbered across graphs.

        Parameters
        ----------
        edges : ArrayLike | Entries
            Pairs of nodes, shape (E, 2). An undirected edge may be listed in one direction or in
            both; each direction keeps its own label and attributes, and a direction that is not
            listed takes those of the other.
        sizes : ArrayLike
            The number of nodes of each graph.
        directed : bool, default=False
            Whether edges have a direction.
        duplicates : Literal['error', 'merge'], default='error'
            What to do if the same pair is listed twice: raise an error, or keep the first.
        node_labels : ArrayLike | None, default=None
            Labels of nodes, shape (N,), or (N, k) for several.
        node_attributes : ArrayLike | None, default=None
            Real attributes of nodes, shape (N, d).
        edge_labels : ArrayLike | None, default=None
            Labels of edges, shape (E,) or (E, k).
        edge_attributes : ArrayLike | None, default=None
            Real attributes of edges, shape (E, d).
        targets : ArrayLike | None, default=None
            One target per graph, or several.
        name : str, default=''
            The name of the dataset.
        ids : ArrayLike | None, default=None
            One id per graph. None: their positions.

        Examples
        --------
        >>> Graphs.from_edges([(0, 1), (2, 3), (3, 4)], sizes=[2, 3])
        Graphs(2 graphs, 5 nodes, 3 edges, undirected)
        """
        if duplicates not in ("error", "merge"):
            raise InputError(f'duplicates must be "error" or "merge", not {duplicates!r}')
        counts = _counts(sizes)
        node_offsets = offsets(counts)
        per_edge: dict[str, Array] = {
            key: _column(key, value)
            for key, value in (("edge_labels", edge_labels), ("edge_attributes", edge_attributes))
            if value is not None
        }
        entries = (
            edges
            if isinstance(edges, Entries)  # from a reader, sorted and with values of its own
            else _sorted_entries(_pairs(edges), int(node_offsets[-1]), per_edge, duplicates)
        )
        _check_within(node_offsets, entries.indptr, entries.columns)
        if not directed:
            entries = entries.symmetrised(node_offsets)
        columns = {
            "node_labels": node_labels,
            "node_attributes": node_attributes,
            "targets": targets,
            **entries.values,
        }
        # `Entries` are sorted, distinct and symmetric: only the caller's columns need checks.
        graphs = cls._unchecked(
            node_offsets=node_offsets,
            indptr=entries.indptr,
            indices=entries.columns,
            directed=directed,
            name=name,
            ids=checked_ids(ids, len(counts)),
            **{
                key: owned(_column(key, values))
                for key, values in columns.items()
                if values is not None
            },
        )
        _check_columns(graphs)
        return graphs

    @classmethod
    def from_edge_lists(
        cls,
        edge_lists: Iterable[Sequence[tuple[int, int]]],
        sizes: Sequence[int] | None = None,
        **options: Any,
    ) -> Graphs:
        """Build from one list of node pairs per graph, nodes numbered from 0 in each.

        Parameters
        ----------
        edge_lists : Iterable[Sequence[tuple[int, int]]]
            One list of node pairs per graph.
        sizes : Sequence[int] | None, default=None
            The number of nodes of each graph. None: as many as its largest number asks for.
        **options : Any
            The other arguments of `from_edges`; columns of edges follow the lists one after
            another.

        Examples
        --------
        >>> Graphs.from_edge_lists([[(0, 1)], []], sizes=[2, 3]).sizes.tolist()
        [2, 3]
        """
        arrays = [
            _pairs(edges, f"graph {graph}: ").astype(np.int64, copy=False)
            for graph, edges in enumerate(edge_lists)
        ]
        if sizes is None:
            sizes = [int(pairs.max(initial=-1)) + 1 for pairs in arrays]
        counts = _counts(sizes)
        if len(counts) != len(arrays):
            raise InputError(f"{len(arrays)} edge lists, but {len(counts)} sizes")
        for graph, (pairs, size) in enumerate(zip(arrays, counts.tolist(), strict=True)):
            if pairs.size and (pairs.min() < 0 or pairs.max() >= size):
                raise InputError(
                    f"graph {graph} has {plural(size, 'node')}, numbered from 0, "
                    f"but an edge names "
                    f"{int(pairs.min()) if pairs.min() < 0 else int(pairs.max())}"
                )
        starts = offsets(counts)
        shifted = [pairs + start for pairs, start in zip(arrays, starts[:-1], strict=True)]
        edges = np.concatenate(shifted) if shifted else np.empty((0, 2), dtype=np.int64)
        return cls.from_edges(edges, counts, **options)

    @staticmethod
    def concatenate(collections: Iterable[Graphs]) -> Graphs:
        """One collection of all graphs, in order.

        Every part must have the same columns: a column that only some of them have raises an error.
        Ids are kept, even where two parts have the same; of `extra`, what all parts have.

        >>> one = Graphs.from_edge_lists([[(0, 1)]])
        >>> Graphs.concatenate([one, one, one])
        Graphs(3 graphs, 6 nodes, 3 edges, undirected)
        """
        parts = list(collections)
        per_graph = concatenated(parts)
        if len({part.directed for part in parts}) > 1:
            raise InputError("cannot concatenate directed with undirected graphs")
        nodes = offsets(np.array([part.n_nodes for part in parts]))
        width = index_dtype(int(nodes[-1]))
        return Graphs._unchecked(
            **per_graph,
            node_offsets=offsets(np.concatenate([part.sizes for part in parts])),
            indptr=offsets(np.concatenate([np.diff(part.indptr) for part in parts])),
            indices=np.concatenate(
                [
                    part.indices.astype(width) + width.type(start)
                    for part, start in zip(parts, nodes[:-1], strict=True)
                ]
            ),
            directed=parts[0].directed,
            **{
                key: concatenate_columns(_words(key), [getattr(part, key) for part in parts])
                for key in (*_PER_NODE, *_PER_ENTRY)
            },
        )

    def with_columns(self, **columns: ArrayLike | None) -> Graphs:
        """The same graphs with other columns, targets, ids or name; None removes a column.

        Raises `InputError` for a column that does not fit these graphs.

        >>> pair = Graphs.from_edge_lists([[(0, 1)]])
        >>> pair.with_columns(node_labels=["C", "O"], name="CO")
        Graphs(CO: 1 graph, 2 nodes, 1 edge, undirected; 2 node labels)
        """
        known = {*_PER_NODE, *_PER_ENTRY, "targets", "ids", "name"}
        if unknown := sorted({*columns} - known):
            raise InputError(f"graphs have no column {unknown[0]!r}")
        changes: dict[str, Any] = {
            key: values if values is None or key == "name" else owned(_column(key, values))
            for key, values in columns.items()
        }
        if "ids" in changes:
            changes["ids"] = checked_ids(changes["ids"], len(self))
        if "targets" in changes:
            changes["target_names"] = ()
        graphs = self._with(**changes)
        _check_columns(graphs)
        return graphs

    def as_undirected(self, *, check: bool = True) -> Graphs:
        """The same entries as undirected graphs.

        Raises `InputError` unless every edge has its reverse; `check=False` skips that check, which
        takes longer than all others together, for entries that are known to be symmetric.

        >>> Graphs.from_edge_lists([[(0, 1), (1, 0)]], directed=True).as_undirected().n_edges
        1
        """
        graphs = self._with(directed=False)
        if check:
            _check_symmetric(graphs)
        return graphs

    def without_loops(self) -> Graphs:
        """The same graphs with every self-loop removed.

        >>> Graphs.from_edge_lists([[(0, 0), (0, 1)]]).without_loops().n_edges
        1
        """
        if not self.n_loops:
            return self
        rows = segment_ids(self.indptr)
        proper = rows != self.indices
        columns = {
            key: getattr(self, key)[proper] for key in _PER_ENTRY if getattr(self, key) is not None
        }
        return self._with(
            indptr=offsets(np.bincount(rows[proper], minlength=self.n_nodes)),
            indices=self.indices[proper],
            **columns,
        )

    # -- what it is --------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.node_offsets) - 1

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Nodes per graph, shape (G,)."""
        return np.diff(self.node_offsets)

    @property
    def n_nodes(self) -> int:
        """Nodes of all graphs."""
        return int(self.node_offsets[-1])

    @property
    def n_loops(self) -> int:
        """Self-loops of all graphs."""
        return int(self._loops.sum())

    @property
    def n_edges(self) -> int:
        """Edges of all graphs: an undirected edge once, a self-loop once."""
        entries = len(self.indices)
        return entries if self.directed else (entries + self.n_loops) // 2

    @property
    def n_isolated(self) -> int:
        """Nodes without any edge (a self-loop is one)."""
        return int((self.degrees() == 0).sum())

    @cached_property
    def _loops(self) -> NDArray[np.bool_]:
        """For each node, whether it has a self-loop."""
        has_loop = np.zeros(self.n_nodes, dtype=np.bool_)
        numbers = np.arange(self.n_nodes, dtype=self.indices.dtype)
        for start, stop in row_blocks(self.indptr):
            rows = np.repeat(numbers[start:stop], np.diff(self.indptr[start : stop + 1]))
            own = self.indices[self.indptr[start] : self.indptr[stop]]
            has_loop[rows[rows == own]] = True
        return has_loop

    def adjacency(self, direction: Direction = "both") -> sparse.csr_array:
        """The Boolean adjacency matrix over all nodes, shape (N, N), block-diagonal.

        Row v holds the successors of v (`"out"`), its predecessors (`"in"`) or either (`"both"`);
        for undirected graphs these are the same. Self-loops are on the diagonal.
        """
        matrix = sparse.csr_array(
            (np.ones(len(self.indices), dtype=np.bool_), self.indices, self.indptr),
            shape=(self.n_nodes, self.n_nodes),
        )
        if not self.directed or direction == "out":
            return matrix
        transposed = sparse.csr_array(matrix.T)
        return transposed if direction == "in" else sparse.csr_array(matrix + transposed)

    def neighbours(self, direction: Direction = "both") -> tuple[Ints, Ints]:
        """The rows of `adjacency` as pointers, (N + 1,), and sorted nodes, self-loops included.

        >>> pointers, nodes = Graphs.from_edge_lists([[(0, 1), (1, 2)]]).neighbours()
        >>> nodes[pointers[1] : pointers[2]].tolist()
        [0, 2]
        """
        if not self.directed or direction == "out":
            return self.indptr, self.indices
        matrix = self.adjacency(direction)
        return matrix.indptr, matrix.indices

    def degrees(self, direction: Direction = "both") -> NDArray[np.int64]:
        """Degree of every node, shape (N,). A self-loop counts twice, as in networkx.

        In directed graphs `"both"` is in-degree plus out-degree, where a loop is one of each.
        """
        out = np.diff(self.indptr)
        if not self.directed:
            return out + self._loops
        into = np.bincount(self.indices, minlength=self.n_nodes)
        return {"out": out, "in": into, "both": out + into}[direction]

    def edges(self) -> NDArray[np.int64]:
        """Node pairs of all graphs, shape (`n_edges`, 2), numbered across the collection.

        Undirected edges come once, with the smaller number first.
        """
        rows = segment_ids(self.indptr)
        once = slice(None) if self.directed else rows <= self.indices
        return np.column_stack([rows[once], self.indices[once]]).astype(np.int64, copy=False)

    def summary(self) -> dict[str, Any]:
        """Statistics of the collection, with the averages of the paper's table.

        `average_max_degree` counts a self-loop twice.

        >>> Graphs.from_edge_lists([[(0, 1), (1, 2)]]).summary()["average_max_degree"]
        2.0
        """
        n_graphs = max(len(self), 1)
        largest = segment_reduce(np.maximum, self.degrees(), self.node_offsets)
        out: dict[str, Any] = {
            "graphs": len(self),
            "nodes": self.n_nodes,
            "edges": self.n_edges,
            "average_nodes": self.n_nodes / n_graphs,
            "average_edges": self.n_edges / n_graphs,
            "average_max_degree": float(largest.sum() / n_graphs),
            "self_loops": self.n_loops,
            "isolated_nodes": self.n_isolated,
            "directed": self.directed,
        }
        for key in (*_PER_NODE, *_PER_ENTRY):
            column = getattr(self, key)
            if column is None:
                out[key] = 0
            elif key.endswith("attributes"):
                out[key] = column.shape[1]
            else:
                out[key] = _n_distinct(column)
        return out | targets_summary(self.targets, self.target_names)

    def plot(self, index: int = 0) -> Any:
        """One graph as a `matplotlib` figure, its node labels as colours; of a large one a region.

        Raises `MissingExtraError` without matplotlib.

        >>> Graphs.from_edge_lists([[(0, 1), (1, 2)]]).plot().axes[0].has_data()
        True
        """
        from saen.report.graph_drawing import draw_graphs  # for convenience, like explain

        [figure] = draw_graphs(self[[index]], inches=4.5)
        return figure

    def _numbers(self, n: int) -> dict[str, list[int]]:
        return {"nodes": self.sizes[:n].tolist(), "edges": [each.n_edges for each in self[:n]]}

    def __repr__(self) -> str:
        extras = []
        if self.node_labels is not None:
            extras.append(plural(_n_distinct(self.node_labels), "node label"))
        if self.node_attributes is not None:
            extras.append(plural(self.node_attributes.shape[1], "node attribute"))
        if self.edge_labels is not None:
            extras.append("edge labels")
        if self.edge_attributes is not None:
            extras.append(plural(self.edge_attributes.shape[1], "edge attribute"))
        loops = f" ({plural(self.n_loops, 'self-loop')})" if self.n_loops else ""
        return self._described(
            f"{plural(len(self), 'graph')}, {plural(self.n_nodes, 'node')}, "
            f"{plural(self.n_edges, 'edge')}{loops}, "
            f"{'directed' if self.directed else 'undirected'}",
            *extras,
        )

    def __eq__(self, other: object) -> bool:
        """Same graphs in the same order with equal columns (names, ids and extra do not matter)."""
        if not isinstance(other, Graphs):
            return NotImplemented
        return (self.directed, self.feature_names) == (other.directed, other.feature_names) and all(
            equal_columns(getattr(self, key), getattr(other, key))
            for key in (*_COLUMNS, "features")
        )

    # -- indexing ----------------------------------------------------------------------------

    def _take(self, rows: Positions) -> Graphs:
        if isinstance(rows, slice):
            return self._span(rows.start, rows.stop)
        first, last = self.node_offsets[rows], self.node_offsets[rows + 1]
        nodes = ranges(first, last - first)
        begin, n_entries = self.indptr[first], self.indptr[last] - self.indptr[first]
        entries = ranges(begin, n_entries)
        node_offsets = offsets(last - first)
        shift = np.repeat(node_offsets[:-1] - first, n_entries)
        return self._with(
            node_offsets=node_offsets,
            indptr=offsets(np.diff(self.indptr)[nodes]),
            indices=(self.indices[entries] + shift).astype(index_dtype(int(node_offsets[-1]))),
            **self._columns(nodes, entries, rows),
        )

    def _span(self, start: int, stop: int) -> Graphs:
        """Consecutive graphs: views wherever no number has to change."""
        first, last = int(self.node_offsets[start]), int(self.node_offsets[stop])
        begin, end = int(self.indptr[first]), int(self.indptr[last])
        return self._with(
            node_offsets=self.node_offsets[start : stop + 1] - first,
            indptr=self.indptr[first : last + 1] - begin,
            indices=self.indices[begin:end] - self.indices.dtype.type(first),
            **self._columns(slice(first, last), slice(begin, end), slice(start, stop)),
        )

    def _columns(self, nodes: Any, entries: Any, graphs: Any) -> dict[str, Any]:
        out = self._per_example(graphs)
        for keys, rows in ((_PER_NODE, nodes), (_PER_ENTRY, entries)):
            for key in keys:
                column = getattr(self, key)
                if column is not None:
                    out[key] = column[rows]
        return out


# -- checks ------------------------------------------------------------------------------------


def _check_adjacency(graphs: Graphs) -> None:
    """Raise unless the adjacency is CSR with sorted rows."""
    for key in ("node_offsets", "indptr"):
        check_pointers(key, getattr(graphs, key))
    if len(graphs.indptr) != graphs.n_nodes + 1:
        raise InputError(
            f"indptr has {len(graphs.indptr)} entries, but {graphs.n_nodes} nodes need "
            f"{graphs.n_nodes + 1}"
        )
    if graphs.indices.ndim != 1 or graphs.indices.dtype.kind != "i":
        raise InputError("indices must be a flat array of signed integers")
    if graphs.indptr[-1] != len(graphs.indices):
        raise InputError(
            f"indptr ends at {graphs.indptr[-1]}, but there are {len(graphs.indices)} entries"
        )
    ascending = np.ones(len(graphs.indices) + 1, dtype=np.bool_)
    ascending[1:-1] = graphs.indices[1:] > graphs.indices[:-1]
    ascending[graphs.indptr] = True
    if not ascending.all():
        entry = int(np.flatnonzero(~ascending)[0])
        node = int(np.searchsorted(graphs.indptr, entry, side="right")) - 1
        raise InputError(f"the neighbours of node {node} are not sorted and distinct")


def _check_within(
    node_offsets: NDArray[np.int64],
    indptr: NDArray[np.int64],
    indices: NDArray[np.signedinteger[Any]],
) -> None:
    """Raise unless edges stay within their graphs."""
    graph_entries = indptr[node_offsets]
    lowest = segment_reduce(np.minimum, indices, graph_entries, empty=0)
    highest = segment_reduce(np.maximum, indices, graph_entries, empty=-1)
    used = np.diff(graph_entries) > 0
    outside = used & ((lowest < node_offsets[:-1]) | (highest >= node_offsets[1:]))
    if outside.any():
        raise InputError(
            f"graph {int(np.flatnonzero(outside)[0])} has an edge to a node outside of it"
        )


def _check_columns(graphs: Graphs) -> None:
    lengths = dict.fromkeys(_PER_NODE, graphs.n_nodes)
    lengths |= dict.fromkeys(_PER_ENTRY, len(graphs.indices))
    for key, expected in {**lengths, "targets": len(graphs)}.items():
        column = getattr(graphs, key)
        if column is None:
            continue
        kinds = {"labels": "iuU", "targets": "iufUb", "attributes": "f"}[key.split("_")[-1]]
        if kinds == "f" and (column.ndim != 2 or column.dtype.kind != "f"):
            raise InputError(f"{_words(key)} must be floating-point numbers of shape (n, k)")
        check_column(_words(key), column, expected, kinds)


def _check_symmetric(graphs: Graphs) -> None:
    if not graphs.directed and not is_symmetric(graphs.indptr, graphs.indices, graphs.node_offsets):
        raise InputError("undirected graphs need every edge from both ends (or pass directed=True)")


def _pairs(edges: ArrayLike, place: str = "") -> Array:
    """Edges as an integer array of shape (n, 2)."""
    try:
        pairs = np.asarray(edges)
    except ValueError:
        raise InputError(f"{place}every edge must be a pair of integers") from None
    if pairs.size == 0:
        return np.empty((0, 2), dtype=np.int64)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu":
        raise InputError(
            f"{place}edges must be integers of shape (n, 2), not {pairs.dtype} {pairs.shape}"
        )
    return pairs


def _sorted_entries(
    pairs: Array, n_nodes: int, per_edge: dict[str, Array], duplicates: str
) -> Entries:
    """Entries of pairs that must be nodes, with columns that must have one row per pair."""
    if pairs.size and (pairs.min() < 0 or pairs.max() >= n_nodes):
        row = int(np.flatnonzero(((pairs < 0) | (pairs >= n_nodes)).any(axis=1))[0])
        raise InputError(
            f"edge {row} joins {pairs[row].tolist()}, but there are "
            f"{plural(n_nodes, 'node')}, numbered from 0"
        )
    for key, column in per_edge.items():
        if column.shape[:1] != (len(pairs),):
            raise InputError(
                f"{_words(key)}: expected {len(pairs)} rows, one for each edge, "
                f"found shape {column.shape}"
            )
    width = index_dtype(n_nodes)
    return Entries.sorted(pairs.astype(width, copy=False), n_nodes, per_edge, duplicates)


def _counts(sizes: ArrayLike) -> NDArray[np.int64]:
    counts = np.asarray(sizes)
    if counts.ndim != 1 or (counts.size and counts.dtype.kind not in "iu") or (counts < 0).any():
        raise InputError("sizes must be one integer ≥ 0 per graph, its number of nodes")
    return counts.astype(np.int64)


def _column(key: str, values: ArrayLike) -> Array:
    """As an array, in the type that is asked for wherever that is the same thing."""
    array = as_column(_words(key), values)
    if key in ("node_offsets", "indptr") and array.dtype.kind in "iu":
        return array.astype(np.int64, copy=False)
    if array.size == 0 and array.dtype.kind == "f" and key.endswith(("indices", "labels")):
        return array.astype(np.int64)  # an empty list
    return array


def _words(key: str) -> str:
    return key.replace("_", " ")


def _n_distinct(labels: Array) -> int:
    return len(np.unique(labels, axis=0)) if labels.size else 0
