"""Graphs from and to scipy's sparse matrices."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from saen._util.arrays import index_dtype, offsets, segment_ids
from saen.data.graphs import Graphs
from saen.errors import InputError
from saen.io.parsing.records import one_way_nodes


def from_scipy(
    matrices: Iterable[Any],
    *,
    node_labels: Sequence[ArrayLike] | None = None,
    targets: ArrayLike | None = None,
    directed: bool = False,
    weights: bool = False,
) -> Graphs:
    """Build from one square sparse adjacency matrix per graph; the matrices are not modified.

    Stored zeros are not edges, and repeated entries are summed first, as scipy does.

    Parameters
    ----------
    matrices : Iterable[Any]
        Square sparse matrices in any format, one per graph. A non-zero entry (i, j) is an edge from
        i to j.
    node_labels : Sequence[ArrayLike] | None, default=None
        One sequence of labels per matrix.
    targets : ArrayLike | None, default=None
        One target per matrix.
    directed : bool, default=False
        Whether edges have a direction; otherwise the pattern must be symmetric.
    weights : bool, default=False
        Whether to keep the values as `edge_attributes` with one column (the two directions of an
        edge may differ).

    Raises
    ------
    InputError
        For anything else; the message names the graph.

    Examples
    --------
    >>> from scipy import sparse
    >>> path = sparse.csr_array([[0, 2, 0], [2, 0, 0.5], [0, 0.5, 0]])
    >>> from_scipy([path, path], node_labels=[["a", "b", "a"]] * 2)
    Graphs(2 graphs, 6 nodes, 4 edges, undirected; 2 node labels)
    >>> from_scipy([path], weights=True).edge_attributes.ravel().tolist()
    [2.0, 2.0, 0.5, 0.5]
    """
    if sparse.issparse(matrices):
        raise InputError("expected a list of sparse matrices, found a single one: pass [matrix]")
    blocks = list(matrices)
    for number, matrix in enumerate(blocks):
        _check(number, matrix, weights)
    sizes = np.array([matrix.shape[0] for matrix in blocks], dtype=np.int64)
    starts = offsets(sizes)
    # A copy in canonical CSR: sorted, without duplicates and without stored zeros.
    whole = sparse.csr_array(sparse.block_diag(blocks)) if blocks else sparse.csr_array((0, 0))
    whole.sum_duplicates()
    whole.eliminate_zeros()
    one_way = np.empty(0) if directed else one_way_nodes(whole)
    if len(one_way):
        raise InputError(
            f"graph {segment_ids(starts)[one_way[0]]}: the matrix is not symmetric "
            "(pass directed=True, or matrix + matrix.T)"
        )
    return Graphs(
        node_offsets=starts,
        indptr=whole.indptr.astype(np.int64),
        indices=whole.indices.astype(index_dtype(starts[-1])),
        node_labels=None if node_labels is None else _labels(node_labels, sizes.tolist()),
        edge_attributes=whole.data.astype(np.float64)[:, None] if weights else None,
        targets=None if targets is None else np.asarray(targets),
        directed=directed,
    )


def to_scipy(graphs: Graphs, *, weights: bool = False) -> list[sparse.csr_array[Any]]:
    """Convert each graph to a square adjacency matrix in CSR: 1 for an edge from row to column.

    A matrix has no labels or targets: pass `[graph.node_labels for graph in graphs]` and
    `graphs.targets` to `from_scipy` to restore the graphs. Edge labels, node attributes and further
    edge attributes are not converted.

    Parameters
    ----------
    graphs : Graphs
        The graphs.
    weights : bool, default=False
        Whether the values are the one column of `edge_attributes`, instead of 1.

    Raises
    ------
    InputError
        If the weights are not one column, or one of them is 0, which would not be an edge in a
        sparse matrix.

    Examples
    --------
    >>> [path] = to_scipy(Graphs.from_edge_lists([[(0, 1), (1, 2)]]))
    >>> path.toarray()
    array([[0, 1, 0],
           [1, 0, 1],
           [0, 1, 0]])
    """
    values = _values(graphs) if weights else np.ones(len(graphs.indices), dtype=np.int64)
    return [
        sparse.csr_array(
            (
                values[graphs.indptr[first] : graphs.indptr[last]],
                graphs.indices[graphs.indptr[first] : graphs.indptr[last]] - first,
                graphs.indptr[first : last + 1] - graphs.indptr[first],
            ),
            shape=(last - first, last - first),
            copy=True,
        )
        for first, last in pairwise(graphs.node_offsets.tolist())
    ]


def _check(number: int, matrix: Any, weights: bool) -> None:
    is_sparse: bool = sparse.issparse(matrix)
    if not is_sparse:
        raise InputError(
            f"graph {number}: expected a scipy sparse matrix, found {type(matrix).__name__} "
            "(wrap it in scipy.sparse.csr_array)"
        )
    if len(matrix.shape) != 2 or matrix.shape[0] != matrix.shape[1]:
        raise InputError(
            f"graph {number}: an adjacency matrix must be square, but the shape is {matrix.shape}"
        )
    if weights and matrix.dtype.kind not in "iufb":
        raise InputError(f"graph {number}: weights must be real numbers, not {matrix.dtype}")


def _labels(node_labels: Sequence[ArrayLike], sizes: list[int]) -> Any:
    columns = [np.asarray(labels) for labels in node_labels]
    if len(columns) != len(sizes):
        raise InputError(f"{len(sizes)} matrices, but node labels for {len(columns)}")
    for number, (labels, size) in enumerate(zip(columns, sizes, strict=True)):
        if labels.ndim == 0 or len(labels) != size:
            raise InputError(
                f"graph {number} has {size} nodes, but node labels of shape {labels.shape}"
            )
    filled = [labels for labels in columns if labels.size]
    if len({labels.dtype.kind in "US" for labels in filled}) > 1:
        raise InputError("node labels mix integers and strings")
    if len({labels.shape[1:] for labels in filled}) > 1:
        raise InputError("node labels differ in their number of columns")
    return np.concatenate(filled) if filled else np.empty(0, dtype=np.int64)


def _values(graphs: Graphs) -> Any:
    column = graphs.edge_attributes
    if column is None or column.shape[1] != 1:
        found = "none" if column is None else f"{column.shape[1]} columns"
        raise InputError(f"weights must be one column of edge attributes, found {found}")
    zero = np.flatnonzero(column[:, 0] == 0)
    if len(zero):
        graph = int(np.searchsorted(graphs.indptr[graphs.node_offsets], zero[0], "right")) - 1
        raise InputError(
            f"graph {graph} has an edge of weight 0, which a sparse matrix cannot store"
        )
    return column[:, 0]
