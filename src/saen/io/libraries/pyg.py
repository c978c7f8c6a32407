"""Graphs from and to PyTorch Geometric."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from scipy import sparse

from saen._util.arrays import Array, offsets, segment_ids
from saen._util.lazy import import_extra
from saen._util.strings import did_you_mean
from saen.data.graphs import Graphs
from saen.errors import InputError
from saen.io.parsing.columns import beside_each_other
from saen.io.parsing.records import one_way_nodes

Names = Sequence[Any]


def from_pyg(
    data: Any,
    *,
    directed: bool | None = None,
    node_label: str | Sequence[str] = (),
    node_attributes: Sequence[str] = (),
    edge_label: str | Sequence[str] = (),
    edge_attributes: Sequence[str] = (),
    node_labels: Names | None = None,
    edge_labels: Names | None = None,
) -> Graphs:
    """Build from PyG's `Data`, `Batch`, dataset, loader or list of `Data`, without changing them.

    - `x` of integers, or with one-hot rows only (several columns), becomes node labels; any other
      `x` becomes node attributes. `edge_attr` likewise for edges.
    - `y` becomes the targets if it has one row per graph.
    - Duplicate edges are merged; the first label is kept.

    Parameters
    ----------
    data : Any
        A `Data`, `Batch`, dataset, loader or list of `Data`.
    directed : bool | None, default=None
        Whether edges have a direction. None: undirected if every edge of all graphs is listed in
        both directions.
    node_label : str | Sequence[str], default=()
        Other integer attributes of nodes, such as `"z"`; each column is a label of its own.
    node_attributes : Sequence[str], default=()
        Other real attributes of nodes, such as `["pos"]`.
    edge_label : str | Sequence[str], default=()
        Other integer attributes of edges.
    edge_attributes : Sequence[str], default=()
        Other real attributes of edges.
    node_labels : Names | None, default=None
        The names of labels. The last columns of `x`, one per name, must then be one-hot, and those
        before them are attributes (as in `TUDataset`); or `x` holds integers that index the names.
        `()` makes all of `x` attributes.
    edge_labels : Names | None, default=None
        The same for `edge_attr`.

    Raises
    ------
    InputError
        For anything else; the message names the graph.
    MissingExtraError
        If PyTorch Geometric is not installed.

    Examples
    --------
    >>> import torch
    >>> from torch_geometric.data import Data
    >>> path = Data(edge_index=torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]), x=torch.eye(3))
    >>> graphs = from_pyg([path], node_labels=["C", "N", "O"])
    >>> graphs
    Graphs(1 graph, 3 nodes, 2 edges, undirected; 3 node labels)
    >>> graphs.node_labels.tolist()
    ['C', 'N', 'O']
    """
    items = _items(data)
    sizes = np.array([item.num_nodes for item in items], dtype=np.int64)
    starts = offsets(sizes)
    pairs = [_pairs(number, item) for number, item in enumerate(items)]
    counts = np.array([len(edges) for edges in pairs], dtype=np.int64)
    shifted = [edges + start for edges, start in zip(pairs, starts[:-1], strict=True)]
    edges = np.concatenate([np.empty((0, 2), dtype=np.int64), *shifted])
    nodes = _Features.stacked(items, "x", "nodes", starts).split(node_labels)
    nodes = _with_others(items, nodes, "nodes", starts, node_label, node_attributes)
    ends = offsets(counts)
    entries = _Features.stacked(items, "edge_attr", "edges", ends).split(edge_labels)
    entries = _with_others(items, entries, "edges", ends, edge_label, edge_attributes)
    ones = np.ones(len(edges), dtype=np.bool_)
    one_way = one_way_nodes(sparse.csr_array((ones, edges.T), shape=(starts[-1], starts[-1])))
    if directed is False and len(one_way):
        graph = int(segment_ids(starts)[one_way[0]])
        raise InputError(
            f"graph {graph} has an edge in one direction only (pass directed=True, or transform "
            "with ToUndirected)"
        )
    return Graphs.from_edges(
        edges,
        sizes,
        directed=bool(directed or len(one_way)),
        node_labels=nodes[0],
        node_attributes=nodes[1],
        edge_labels=entries[0],
        edge_attributes=entries[1],
        targets=_targets(items),
        duplicates="merge",
    )


def to_pyg(graphs: Graphs) -> list[Any]:
    """Convert each graph to a PyG `Data`, ready for PyG's layers.

    - `x`: real attributes, then one-hot labels, as in `TUDataset`; if there are neither,
      `num_nodes` is set instead. `edge_attr` likewise. The one-hot columns are the distinct labels
      of all graphs in sorted order, `np.unique(labels, axis=0)`: convert first, split into
      training and test graphs afterwards.
    - `edge_index`: undirected edges in both directions, self-loops once.
    - `y`: one row per graph; string classes become their index in `np.unique(targets)`.

    Real numbers get PyTorch's default type (float32). With the distinct labels as `node_labels`
    and `edge_labels`, `from_pyg` restores the graphs. Raises `MissingExtraError` if PyTorch
    Geometric is not installed.

    Parameters
    ----------
    graphs : Graphs
        The graphs.

    Examples
    --------
    >>> two = Graphs.from_edge_lists([[(0, 1)], [(0, 1)]], node_labels=["C", "O", "C", "N"])
    >>> first, second = to_pyg(two)
    >>> second
    Data(x=[2, 3], edge_index=[2, 2])
    >>> second.x.tolist()  # C, N, O
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    """
    make_data = _pyg().Data
    starts, entries = graphs.node_offsets.tolist(), graphs.indptr[graphs.node_offsets].tolist()
    rows = segment_ids(graphs.indptr)
    ends = np.stack([rows, graphs.indices])
    x = _columns(graphs.node_labels, graphs.node_attributes)
    edge_attr = _columns(graphs.edge_labels, graphs.edge_attributes)
    y = graphs.targets
    if y is not None and y.dtype.kind == "U":
        y = np.unique(y, return_inverse=True)[1]
    out = []
    for number, ((first, last), (begin, end)) in enumerate(
        zip(pairwise(starts), pairwise(entries), strict=True)
    ):
        values = {"edge_index": ends[:, begin:end] - first}
        if x is not None:
            values["x"] = x[first:last]
        if edge_attr is not None:
            values["edge_attr"] = edge_attr[begin:end]
        if y is not None:
            values["y"] = y[number : number + 1]
        tensors: dict[str, Any] = {key: _tensor(value) for key, value in values.items()}
        if x is None:
            tensors["num_nodes"] = last - first
        out.append(make_data(**tensors))
    return out


# -- reading -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Features:
    """`x` or `edge_attr` of all graphs: rows (n, k), and where those of each graph start."""

    key: str
    values: Array | None
    starts: Array

    @staticmethod
    def stacked(items: list[Any], key: str, what: str, starts: Array) -> _Features:
        arrays = _arrays(items, key)
        for number, (array, count) in enumerate(zip(arrays, np.diff(starts), strict=False)):
            if array.ndim != 2 or len(array) != count:
                raise InputError(
                    f"graph {number}: {key} must have one row for each of {count} {what}, "
                    f"found shape {array.shape}"
                )
            if array.shape[1] != arrays[0].shape[1]:
                raise InputError(
                    f"graph {number}: {array.shape[1]} columns of {key}, but graph 0 has "
                    f"{arrays[0].shape[1]}"
                )
        return _Features(key, np.concatenate(arrays) if arrays else None, starts)

    def split(self, names: Names | None) -> tuple[Array | None, Array | None]:
        """Labels and attributes."""
        values = self.values
        if values is None:
            if names is not None and len(names):
                raise InputError(f"{len(names)} label names, but the graphs have no {self.key}")
            return None, None
        n_columns = values.shape[1]
        integers = values.dtype.kind in "iu"
        if names is None:
            if integers:
                return values[:, 0] if n_columns == 1 else values, None
            if n_columns > 1 and not len(_not_one_hot(values)):
                return values.argmax(axis=1), None
            return None, values.astype(np.float64)
        width = len(names)
        if width == 0:
            return None, values.astype(np.float64)
        if integers and n_columns == 1:
            codes = values[:, 0]
            self._refuse(
                np.flatnonzero((codes < 0) | (codes >= width)), f"not an index of {width} names"
            )
            return np.asarray(list(names))[codes], None
        if width > n_columns:
            raise InputError(f"{width} label names, but {self.key} has {n_columns} columns")
        last = values[:, n_columns - width :]
        self._refuse(_not_one_hot(last), f"not one-hot in the last {width} columns")
        before = values[:, : n_columns - width].astype(np.float64)
        return np.asarray(list(names))[last.argmax(axis=1)], before if before.shape[1] else None

    def _refuse(self, rows: Array, reason: str) -> None:
        if len(rows):
            graph = int(np.searchsorted(self.starts, rows[0], side="right")) - 1
            place = int(rows[0] - self.starts[graph])
            assert self.values is not None
            raise InputError(
                f"graph {graph}, row {place} of {self.key} is {self.values[rows[0]].tolist()}: "
                f"{reason}"
            )


def _with_others(
    items: list[Any],
    known: tuple[Array | None, Array | None],
    what: str,
    starts: Array,
    labels: str | Sequence[str],
    attributes: Sequence[str],
) -> tuple[Array | None, Array | None]:
    """Labels and attributes, and beside them those under other keys."""
    columns, numbers = ([] if each is None else [*np.atleast_2d(each.T)] for each in known)

    def values_of(key: str) -> Array:
        values = _Features.stacked(items, key, what, starts).values
        if values is None:
            known = sorted({name for item in items for name in item.keys()})  # noqa: SIM118
            hint = did_you_mean(key, known) or f" (choose from {', '.join(known)})"
            raise InputError(f"the graphs have no {key!r}{hint}")
        return values

    for key in [labels] if isinstance(labels, str) else labels:
        values = values_of(key)
        if values.dtype.kind not in "iu":
            raise InputError(f"{key!r} must be integers to be labels of {what}")
        columns += [*values.T]
    for key in attributes:
        values = values_of(key)
        numbers += [*values.T.astype(np.float64)]
    return beside_each_other(columns), np.column_stack(numbers) if numbers else None


def _items(data: Any) -> list[Any]:
    """The `Data` objects of a list, batch, dataset or loader."""
    pyg = _pyg()
    try:
        groups = [data] if isinstance(data, pyg.Data) else list(data)
    except TypeError:
        raise InputError(
            f"expected PyG Data, a Batch, a dataset or a list, found {type(data).__name__}"
        ) from None
    items: list[Any] = []
    for group in groups:
        items += group.to_data_list() if isinstance(group, pyg.Batch) else [group]
    for number, item in enumerate(items):
        if not hasattr(item, "edge_index") or getattr(item, "num_nodes", None) is None:
            raise InputError(f"graph {number} is a {type(item).__name__}, not a PyG Data")
        if item.edge_index is None:
            raise InputError(f"graph {number} has no edge_index (use shape (2, 0) for no edges)")
    return items


def _pairs(number: int, item: Any) -> Array:
    edges = _array(item.edge_index)
    if edges.ndim != 2 or edges.shape[0] != 2 or edges.dtype.kind not in "iu":
        raise InputError(
            f"graph {number}: edge_index must be integers of shape (2, n), "
            f"not {edges.dtype} {edges.shape}"
        )
    if edges.size and (edges.min() < 0 or edges.max() >= item.num_nodes):
        wrong = edges.min() if edges.min() < 0 else edges.max()
        raise InputError(
            f"graph {number} has {item.num_nodes} nodes, numbered from 0, but edge_index "
            f"contains {wrong}"
        )
    return edges.T


def _array(values: Any) -> Array:
    return np.asarray(values.detach().cpu() if hasattr(values, "detach") else values)


def _arrays(items: list[Any], key: str) -> list[Array]:
    """One array of rows per graph; empty if no graph has any."""
    values = [getattr(item, key, None) for item in items]
    present = [value is not None for value in values]
    if not any(present):
        return []
    if not all(present):
        raise InputError(f"graph {present.index(False)} has no {key}, but others do")
    arrays = [np.atleast_1d(_array(value)) for value in values]
    return [array[:, None] if array.ndim == 1 else array for array in arrays]


def _targets(items: list[Any]) -> Array | None:
    rows = _arrays(items, "y")
    if not rows or any(row.shape != (1, rows[0].shape[1]) for row in rows):
        return None
    targets = np.concatenate(rows)
    return targets[:, 0] if targets.shape[1] == 1 else targets


def _not_one_hot(values: Array) -> Array:
    """The indices of rows other than zeros and a single one."""
    binary = ((values == 0) | (values == 1)).all(axis=1)
    return np.flatnonzero(~binary | (values.sum(axis=1) != 1))


# -- writing -----------------------------------------------------------------------------------


def _columns(labels: Array | None, attributes: Array | None) -> Array | None:
    """Attributes, then one-hot labels, shape (n, k)."""
    blocks = [] if attributes is None else [attributes]
    if labels is not None:
        distinct, codes = np.unique(labels, axis=0, return_inverse=True)
        one_hot = np.zeros((len(labels), len(distinct)))
        one_hot[np.arange(len(labels)), codes.ravel()] = 1
        blocks.append(one_hot)
    return np.concatenate(blocks, axis=1) if blocks else None


def _tensor(values: Array) -> Any:
    """A copy as a tensor: integers as int64, real numbers in PyTorch's default type."""
    kind = torch.get_default_dtype() if values.dtype.kind == "f" else torch.int64
    return torch.tensor(values, dtype=kind)


def _pyg() -> Any:
    return import_extra("torch_geometric.data", "torch-geometric", extra="pyg")
