"""Edges that another library keeps once, without a direction."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from saen._util.arrays import segment_ids
from saen.data.graphs import Graphs
from saen.errors import InputError


def check_both_directions(graphs: Graphs, library: str) -> None:
    """Raise where the two directions of an undirected edge differ in labels or attributes."""
    entries = np.arange(len(graphs.indices))
    square = (graphs.n_nodes, graphs.n_nodes)
    matrix = sparse.csr_array((entries, graphs.indices, graphs.indptr), shape=square)
    opposite = sparse.csr_array(matrix.T).data
    for key in ("edge_labels", "edge_attributes"):
        column = getattr(graphs, key)
        if column is None:
            continue
        differ = column != column[opposite]
        if column.dtype.kind == "f":
            differ &= ~(np.isnan(column) & np.isnan(column[opposite]))
        if differ.any():
            entry = int(np.flatnonzero(differ.reshape(len(column), -1).any(axis=1))[0])
            source, target = int(segment_ids(graphs.indptr)[entry]), int(graphs.indices[entry])
            graph = int(segment_ids(graphs.node_offsets)[source])
            start = int(graphs.node_offsets[graph])
            raise InputError(
                f"graph {graph}: the two directions of the edge {source - start} – "
                f"{target - start} differ in their {key.replace('_', ' ')}, "
                f"and {library} keeps only one"
            )
