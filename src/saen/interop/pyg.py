"""Graphs from PyTorch Geometric's `Data` objects."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from saen.arrays import Array
from saen.edges import is_symmetric
from saen.errors import InputError
from saen.graphs import Graphs


def from_pyg(data: Iterable[Any]) -> Graphs:
    """One collection from PyG `Data` objects (anything with `edge_index` and `num_nodes`).

    Rows of `x` that are all one-hot become node labels, other `x` become node attributes; one
    number of `y` per graph becomes the target. Graphs are undirected when every edge is listed in
    both directions. The objects are not changed.
    """
    items = list(data)
    for number, item in enumerate(items):
        if not hasattr(item, "edge_index") or getattr(item, "num_nodes", None) is None:
            raise InputError(f"graph {number} is a {type(item).__name__}, not a PyG Data")
    sizes = np.array([int(item.num_nodes) for item in items], dtype=np.int64)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    pairs = [_array(item.edge_index).T + starts[i] for i, item in enumerate(items)]
    edges = np.concatenate([np.empty((0, 2), dtype=np.int64), *pairs])
    features = _stacked(items, "x")
    labels = attributes = None
    if features is not None:
        one_hot = ((features == 0) | (features == 1)).all() and (features.sum(axis=1) == 1).all()
        if one_hot and features.shape[1] > 1:
            labels = features.argmax(axis=1)
        else:
            attributes = features.astype(np.float64)
    graphs = Graphs.from_edges(
        edges,
        sizes,
        directed=True,
        node_labels=labels,
        node_attributes=attributes,
        targets=_targets(items),
        duplicates="merge",
    )
    symmetric = is_symmetric(graphs.indptr, graphs.indices)
    return graphs._with(directed=False) if symmetric else graphs


def _array(tensor: Any) -> Array:
    return np.asarray(tensor.detach().cpu())


def _stacked(items: list[Any], key: str) -> Array | None:
    values = [getattr(item, key, None) for item in items]
    present = [value is not None for value in values]
    if not any(present):
        return None
    if not all(present):
        raise InputError(f"graph {present.index(False)} has no {key}, but others do")
    arrays = [_array(value) for value in values]
    return np.concatenate([array.reshape(len(array), -1) for array in arrays])


def _targets(items: list[Any]) -> Array | None:
    targets = _stacked(items, "y")
    if targets is None or len(targets) != len(items):
        return None
    return targets[:, 0] if targets.shape[1] == 1 else targets
