"""Node and edge attributes as decompositions read them: numbers that networks can compute with."""

from __future__ import annotations

from typing import Literal

import numpy as np

from saen._util.arrays import Array
from saen.data.graphs import Graphs
from saen.errors import InputError

MAX_ATTRIBUTE = float(np.finfo(np.float32).max)


def real_attributes(graphs: Graphs, what: Literal["node", "edge"]) -> Array:
    """Attributes of all nodes, (N, k), or of all entries of the adjacency, (E, k).

    Raises `InputError` if there are none, or for one that is NaN or does not fit into 32 bits.

    >>> path = Graphs.from_edge_lists([[(0, 1)]], node_attributes=[[0.5], [1e300]], ids=["a"])
    >>> real_attributes(path, "node")
    Traceback (most recent call last):
    saen.errors.InputError: graph a: node attribute 0 is 1e+300, expected a number within ±3.4e+38
    """
    values: Array | None = getattr(graphs, f"{what}_attributes")
    if values is None:
        raise InputError(f"these graphs have no {what} attributes")
    if values.size and not (values.min() >= -MAX_ATTRIBUTE and values.max() <= MAX_ATTRIBUTE):
        row, column = np.argwhere(~(np.abs(values) <= MAX_ATTRIBUTE))[0]
        node = row if what == "node" else np.searchsorted(graphs.indptr, row, side="right") - 1
        graph = graphs.ids[np.searchsorted(graphs.node_offsets, node, side="right") - 1]
        raise InputError(
            f"graph {graph}: {what} attribute {column} is {values[row, column]:g}, expected a "
            f"number within ±{MAX_ATTRIBUTE:.1e}"
        )
    return values
