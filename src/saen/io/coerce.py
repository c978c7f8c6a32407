"""Whatever users pass as structures, as what a decomposition takes."""

from __future__ import annotations

from typing import Any

from saen.data.graphs import Graphs
from saen.data.hierarchy import Hierarchy
from saen.errors import InputError
from saen.io.networkx import from_networkx
from saen.io.pyg import from_pyg
from saen.io.rdkit import from_rdkit


def as_data(X: Any, takes: str = "graphs") -> Any:
    """A collection for a decomposition that takes graphs, or for another as it is.

    >>> import networkx as nx
    >>> as_data([nx.path_graph(3), nx.cycle_graph(4)])
    Graphs(2 graphs, 7 nodes, 6 edges, undirected)
    """
    if isinstance(X, Graphs | Hierarchy) or takes != "graphs":
        return X
    if hasattr(X, "edge_index"):
        return from_pyg(X)
    try:
        items = list(X)
    except TypeError:
        items = []
    if items and hasattr(items[0], "edge_index"):
        return from_pyg(items)
    if items and hasattr(items[0], "adjacency") and hasattr(items[0], "nodes"):
        return from_networkx(items)
    if items and hasattr(items[0], "GetAtoms"):
        return from_rdkit(items)
    if items and isinstance(items[0], str) and not isinstance(X, str):
        raise InputError("X holds strings: if they are SMILES, pass saen.from_smiles(X)")
    raise InputError(
        "X must be saen.Graphs, a list of networkx graphs, of PyG Data or of RDKit molecules, "
        f"or a saen.Hierarchy, not {type(X).__name__}"
    )
