"""Graphs and hierarchies from and to PyTorch Geometric."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import ModuleType
from typing import Any

import numpy as np
from scipy import sparse

from saen._util.arrays import Array, offsets, segment_ids
from saen.data._adjacency import is_symmetric
from saen.data.graphs import Graphs
from saen.data.hierarchy import Attributes, Hierarchy, Relation
from saen.data.vocabulary import Vocabulary
from saen.errors import InputError, MissingExtraError

Names = Sequence[Any]


def from_pyg(
    data: Any,
    *,
    directed: bool | None = None,
    node_labels: Names | None = None,
    edge_labels: Names | None = None,
) -> Graphs:
    """Build from PyG's `Data`, `Batch`, dataset, loader or list of `Data`, which stay as they are.

    - `x` of whole numbers, or of rows that are all one-hot (several columns), becomes node labels;
      other `x` becomes node attributes. `edge_attr` likewise for edges.
    - `node_labels` says more: the names of labels. The last columns of `x`, one per name, must
      then be one-hot, and those before them are attributes (so does `TUDataset` write both); or
      `x` holds positions in the names as whole numbers. `()` makes all of `x` attributes.
      `edge_labels` likewise for `edge_attr`.
    - `y` becomes the targets where it has one row per graph.
    - `directed=None` takes the graphs as undirected where every edge of all of them stands in both
      directions. Edges that are listed more than once are merged; the first one's label is kept.

    Raises `InputError`, naming the graph, for anything else, and `MissingExtraError` where PyTorch
    Geometric is not installed.

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
    nodes = _Features.stacked(items, "x", "nodes", starts).split(node_labels)
    edges = _Features.stacked(items, "edge_attr", "edges", offsets(counts)).split(edge_labels)
    graphs = Graphs.from_edges(
        np.concatenate([np.empty((0, 2), dtype=np.int64), *shifted]),
        sizes,
        directed=True,
        node_labels=nodes[0],
        node_attributes=nodes[1],
        edge_labels=edges[0],
        edge_attributes=edges[1],
        targets=_targets(items),
        duplicates="merge",
    )
    if directed or (directed is None and not is_symmetric(graphs.indptr, graphs.indices)):
        return graphs
    _check_symmetric(graphs)
    return graphs.as_undirected(check=False)


def to_pyg(graphs: Graphs) -> list[Any]:
    """One PyG `Data` per graph, ready for PyG's layers.

    - `x`: real attributes, then labels as one-hot, as `TUDataset` has them, or nothing where there
      are neither (then `num_nodes` is set); `edge_attr` likewise. Columns of labels are the
      distinct labels of the whole collection in sorted order, `np.unique(labels, axis=0)`: convert
      first, split into training and test graphs afterwards.
    - `edge_index`: undirected edges in both directions, self-loops once.
    - `y`: one row per graph; classes that are strings become their position in
      `np.unique(targets)`.

    Real numbers become PyTorch's default type (float32). With the distinct labels as
    `node_labels` and `edge_labels`, `from_pyg` reads the rest back. Raises `MissingExtraError`
    where PyTorch Geometric is not installed.

    >>> two = Graphs.from_edge_lists([[(0, 1)], [(0, 1)]], node_labels=["C", "O", "C", "N"])
    >>> first, second = to_pyg(two)
    >>> second
    Data(x=[2, 3], edge_index=[2, 2])
    >>> second.x.tolist()  # C, N, O
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    """
    make = _pyg().Data
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
        out.append(make(**tensors))
    return out


@dataclass(frozen=True)
class ToHierarchy:
    """A PyG transform that attaches the hierarchy of a graph: `transform=` or `pre_transform=`.

    Graphs become `HierarchyData` with the attributes that are listed there, which PyG's loaders
    batch as they batch the rest; `hierarchy_from_pyg` makes a `Hierarchy` of a batch. The
    decomposition must be fitted, so that a label has the same code in every graph. The other
    arguments are those of `from_pyg`; that graphs are directed must be said.

    >>> import torch
    >>> from torch_geometric.data import Batch
    >>> from saen import Ego, generate_threads
    >>> threads = generate_threads(4)
    >>> transform = ToHierarchy(Ego((0, 1), "degree").fit(threads))
    >>> batch = Batch.from_data_list([transform(graph) for graph in to_pyg(threads)])
    >>> batch.part_index_2.shape[1] == 2 * threads.n_nodes  # an ego graph per node and radius
    True
    >>> hierarchy_from_pyg(batch) == transform.decomposition.decompose(threads)
    True
    """

    decomposition: Any
    directed: bool = False
    node_labels: Names | None = None
    edge_labels: Names | None = None

    def __post_init__(self) -> None:
        _hierarchy_data()  # a saved dataset is read only once the class of its graphs is known
        if self.decomposition.takes != "graphs":
            name, takes = type(self.decomposition).__name__, self.decomposition.takes
            raise InputError(f"PyG has graphs, but {name} takes {takes} apart")

    def __call__(self, data: Any) -> Any:
        """The graph with its hierarchy; `data` itself is left as it is."""
        names = _hierarchy_data()
        if not isinstance(data, _pyg().Data) or isinstance(data, _pyg().Batch):
            raise InputError(f"expected a single PyG Data, found {type(data).__name__}")
        if type(data).__inc__ not in (_pyg().Data.__inc__, names.HierarchyData.__inc__):
            raise InputError(
                f"{type(data).__name__} has an __inc__ of its own, which HierarchyData would lose"
            )
        graph = from_pyg(
            [data],
            directed=self.directed,
            node_labels=self.node_labels,
            edge_labels=self.edge_labels,
        )
        hierarchy = self.decomposition.decompose(graph)
        if hierarchy.attributes.vocabulary is not None and self.decomposition.vocabulary is None:
            raise InputError(
                "the decomposition is not fitted, so labels would have other codes in every "
                "graph: pass decomposition.fit(from_pyg(dataset))"
            )
        # Of a graph that was taken apart before, perhaps into more levels, only the graph is kept.
        own = {key: v for key, v in data.to_dict().items() if not key.startswith(names.PREFIXES)}
        return names.HierarchyData.from_dict({**own, **_attached(hierarchy)})


def hierarchy_from_pyg(data: Any) -> Hierarchy:
    """The hierarchy that `ToHierarchy` attached, of one graph or of all graphs of a batch.

    Equal to the decomposition of these graphs as one collection. Raises `InputError` where nothing
    is attached, or not by the same decomposition.
    """
    names = _hierarchy_data()
    if not isinstance(data, names.HierarchyData):
        raise InputError(f"expected a graph or a batch of ToHierarchy, found {type(data).__name__}")
    texts = data.hierarchy_schema
    distinct = {texts} if isinstance(texts, str) else set(texts)
    if len(distinct) > 1:
        raise InputError(
            "the graphs of this batch were decomposed in different ways: use one ToHierarchy"
        )
    schema = json.loads(distinct.pop())
    sizes = _array(data.level_sizes).sum(axis=0).tolist()
    relations = []
    for level, alphabet in enumerate(schema["roles"], start=1):
        parents, parts = _array(data[f"{names.PARTS}{level}"])
        order = np.argsort(parents, kind="stable")
        roles, counts = (
            _array(data[f"{key}{level}"])[order] for key in (names.ROLES, names.COUNTS)
        )
        indptr = offsets(np.bincount(parents, minlength=sizes[level]))
        alone = None if (counts == 1).all() else counts
        relations.append(Relation(indptr, parts[order], roles, alphabet, sizes[level - 1], alone))
    codes = vocabulary = vectors = None
    if schema["vocabulary"] is not None:
        vocabulary = Vocabulary.from_json(schema["vocabulary"])
        codes = _array(data.bottom_codes).astype(np.int32)
    if "bottom_vectors" in data:
        vectors = _array(data.bottom_vectors)
    return Hierarchy(Attributes(codes, vocabulary, vectors), tuple(relations), schema["names"])


# -- reading -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Features:
    """`x` or `edge_attr` of all graphs: rows (n, k), and where those of each graph start."""

    key: str
    values: Array | None
    starts: Array

    @staticmethod
    def stacked(items: list[Any], key: str, what: str, starts: Array) -> _Features:
        found = _arrays(items, key)
        for number, (array, count) in enumerate(zip(found, np.diff(starts), strict=False)):
            if array.ndim != 2 or len(array) != count:
                raise InputError(
                    f"graph {number}: {key} must have one row for each of {count} {what}, "
                    f"found shape {array.shape}"
                )
            if array.shape[1] != found[0].shape[1]:
                raise InputError(
                    f"graph {number}: {array.shape[1]} columns of {key}, but graph 0 has "
                    f"{found[0].shape[1]}"
                )
        return _Features(key, np.concatenate(found) if found else None, starts)

    def split(self, names: Names | None) -> tuple[Array | None, Array | None]:
        """Labels and attributes."""
        values = self.values
        if values is None:
            if names is not None and len(names):
                raise InputError(f"names of {len(names)} labels, but the graphs have no {self.key}")
            return None, None
        n_columns = values.shape[1]
        whole = values.dtype.kind in "iu"
        if names is None:
            if whole:
                return values[:, 0] if n_columns == 1 else values, None
            if n_columns > 1 and not len(_not_one_hot(values)):
                return values.argmax(axis=1), None
            return None, values.astype(np.float64)
        width = len(names)
        if width == 0:
            return None, values.astype(np.float64)
        if whole and n_columns == 1:
            codes = values[:, 0]
            self._refuse(
                np.flatnonzero((codes < 0) | (codes >= width)), f"no position in {width} names"
            )
            return np.asarray(list(names))[codes], None
        if width > n_columns:
            raise InputError(f"names of {width} labels, but {self.key} has {n_columns} columns")
        last = values[:, n_columns - width :]
        self._refuse(_not_one_hot(last), f"not one-hot in the last {width} columns")
        before = values[:, : n_columns - width].astype(np.float64)
        return np.asarray(list(names))[last.argmax(axis=1)], before if before.shape[1] else None

    def _refuse(self, rows: Array, trouble: str) -> None:
        if len(rows):
            graph = int(np.searchsorted(self.starts, rows[0], side="right")) - 1
            place = int(rows[0] - self.starts[graph])
            assert self.values is not None
            raise InputError(
                f"graph {graph}, row {place} of {self.key} is {self.values[rows[0]].tolist()}: "
                f"{trouble}"
            )


def _items(data: Any) -> list[Any]:
    """The `Data` objects of a collection in any of its forms."""
    pyg = _pyg()
    items: list[Any] = []
    for item in [data] if isinstance(data, pyg.Data) else _listed(data):
        items.extend(item.to_data_list() if isinstance(item, pyg.Batch) else [item])
    for number, item in enumerate(items):
        if not hasattr(item, "edge_index") or getattr(item, "num_nodes", None) is None:
            raise InputError(f"graph {number} is a {type(item).__name__}, not a PyG Data")
        if item.edge_index is None:
            raise InputError(
                f"graph {number} has no edge_index (one of shape (2, 0) means no edges)"
            )
    return items


def _listed(data: Iterable[Any]) -> list[Any]:
    try:
        return list(data)
    except TypeError:
        raise InputError(
            f"expected PyG Data, a Batch, a dataset or a list, found {type(data).__name__}"
        ) from None


def _pairs(number: int, item: Any) -> Array:
    edges = _array(item.edge_index)
    if edges.ndim != 2 or edges.shape[0] != 2 or edges.dtype.kind not in "iu":
        raise InputError(
            f"graph {number}: edge_index must be whole numbers of shape (2, n), "
            f"not {edges.dtype} {edges.shape}"
        )
    if edges.size and (edges.min() < 0 or edges.max() >= item.num_nodes):
        wrong = edges.min() if edges.min() < 0 else edges.max()
        raise InputError(
            f"graph {number} has {item.num_nodes} nodes, numbered from 0, but edge_index "
            f"names {wrong}"
        )
    return edges.T


def _array(values: Any) -> Array:
    return np.asarray(values.detach().cpu() if hasattr(values, "detach") else values)


def _arrays(items: list[Any], key: str) -> list[Array]:
    """One array of rows per graph, or nothing where no graph has any."""
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
    """Rows that are anything but zeros and a single one."""
    binary = ((values == 0) | (values == 1)).all(axis=1)
    return np.flatnonzero(~binary | (values.sum(axis=1) != 1))


def _check_symmetric(graphs: Graphs) -> None:
    if is_symmetric(graphs.indptr, graphs.indices):
        return
    matrix = graphs.adjacency("out").astype(np.int8)
    lacking = sparse.coo_array(matrix - matrix.T)
    node = int(lacking.coords[0][lacking.data != 0].min())
    graph = int(segment_ids(graphs.node_offsets)[node])
    raise InputError(
        f"graph {graph} has an edge in one direction only (pass directed=True, or transform with "
        "ToUndirected)"
    )


# -- writing -----------------------------------------------------------------------------------


def _columns(labels: Array | None, attributes: Array | None) -> Array | None:
    """Attributes, then labels as one-hot, shape (n, k)."""
    blocks = [] if attributes is None else [attributes]
    if labels is not None:
        distinct, codes = np.unique(labels, axis=0, return_inverse=True)
        one_hot = np.zeros((len(labels), len(distinct)))
        one_hot[np.arange(len(labels)), codes.ravel()] = 1
        blocks.append(one_hot)
    return np.concatenate(blocks, axis=1) if blocks else None


def _tensor(values: Array) -> Any:
    """A copy as a tensor: whole numbers as int64, real ones in PyTorch's default type."""
    import torch

    kind = torch.get_default_dtype() if values.dtype.kind == "f" else torch.int64
    return torch.tensor(values, dtype=kind)


def _attached(hierarchy: Hierarchy) -> dict[str, Any]:
    """The attributes of `HierarchyData` beyond those of the graph."""
    import torch

    names = _hierarchy_data()
    attributes = hierarchy.attributes
    vocabulary = attributes.vocabulary
    out: dict[str, Any] = {
        "level_sizes": torch.tensor([hierarchy.sizes]),
        "hierarchy_schema": json.dumps(
            {
                "names": hierarchy.names,
                "roles": [relation.alphabet for relation in hierarchy.relations],
                "vocabulary": None if vocabulary is None else vocabulary.to_json(),
            }
        ),
    }
    if attributes.codes is not None:
        out["bottom_codes"] = _tensor(attributes.codes)
    if attributes.vectors is not None:
        out["bottom_vectors"] = torch.tensor(attributes.vectors)
    for level, relation in enumerate(hierarchy.relations, start=1):
        ends = np.stack([segment_ids(relation.indptr), relation.parts.astype(np.int64)])
        out[f"{names.PARTS}{level}"] = _tensor(ends)
        out[f"{names.ROLES}{level}"] = _tensor(relation.roles)
        out[f"{names.COUNTS}{level}"] = _tensor(relation.multiplicity)
    return out


def _pyg() -> ModuleType:
    try:
        import torch_geometric.data  # type: ignore[import-untyped]
    except ImportError:
        raise MissingExtraError("torch-geometric", extra="pyg") from None
    module: ModuleType = torch_geometric.data
    return module


def _hierarchy_data() -> ModuleType:
    _pyg()
    import saen.io.pyg_data

    return saen.io.pyg_data
