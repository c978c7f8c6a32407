"""Whatever users pass as structures, as what a decomposition takes."""

from __future__ import annotations

from typing import Any

from saen.errors import InputError
from saen.graphs import Graphs
from saen.hierarchy import Hierarchy
from saen.interop.networkx import from_networkx
from saen.interop.pyg import from_pyg


def as_structures(X: Any, takes: str = "graphs") -> Any:
    """A collection for a decomposition that takes graphs, or for another as it is.

    >>> import networkx as nx
    >>> as_structures([nx.path_graph(3), nx.cycle_graph(4)])
    Graphs(2 graphs, 7 vertices, 6 edges, undirected)
    """
    if isinstance(X, Graphs | Hierarchy) or takes != "graphs":
        return X
    try:
        items = list(X)
    except TypeError:
        items = []
    if items and hasattr(items[0], "edge_index"):
        return from_pyg(items)
    if items and hasattr(items[0], "adjacency") and hasattr(items[0], "nodes"):
        return from_networkx(items)
    raise InputError(
        "X must be saen.Graphs, a list of networkx graphs or of PyG Data, or a saen.Hierarchy, "
        f"not {type(X).__name__}"
    )
