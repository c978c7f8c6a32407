"""In-memory data of any library, converted to what a decomposition takes."""

from __future__ import annotations

from typing import Any

from saen.data.documents import Documents
from saen.data.graphs import Graphs
from saen.data.hierarchy import Hierarchy
from saen.data.nested import NestedData
from saen.errors import InputError


def as_data(X: Any, takes: str = "graphs") -> Any:
    """Convert graphs of another library to `Graphs`; everything else is returned unchanged.

    Raises `InputError` if `takes` is `"graphs"` and `X` is not a known kind of graphs.

    >>> import networkx as nx
    >>> as_data([nx.path_graph(3), nx.cycle_graph(4)])
    Graphs(2 graphs, 7 nodes, 6 edges, undirected)
    """
    if isinstance(X, Graphs | Hierarchy) or takes != "graphs":
        return X
    try:
        items = [X] if hasattr(X, "edge_index") else list(X)
    except TypeError:
        items = []
    if isinstance(X, list | tuple) and not items:
        raise InputError("X is empty: there are no graphs")
    first = items[0] if items else None
    if hasattr(first, "edge_index"):
        from saen.io.libraries.pyg import from_pyg

        return from_pyg(items)
    if hasattr(first, "adjacency") and hasattr(first, "nodes"):
        from saen.io.libraries.networkx import from_networkx

        return from_networkx(items)
    if hasattr(first, "GetAtoms"):
        from saen.io.libraries.rdkit import from_rdkit

        return from_rdkit(items)
    if hasattr(X, "adjacency") or hasattr(X, "GetAtoms"):
        raise InputError(f"X is a single {type(X).__name__}: pass a list, [X]")
    if hasattr(X, "columns"):
        raise InputError("X is a table: pass its column of graphs, or for SMILES saen.from_smiles")
    if isinstance(first, str) and not isinstance(X, str):
        raise InputError("X holds strings: if they are SMILES, pass saen.from_smiles(X)")
    if isinstance(X, NestedData | Documents):
        name = "nested" if isinstance(X, NestedData) else "dependency_paths"
        raise InputError(
            f"X is {type(X).__name__}, but this estimator reads graphs: "
            f"set its decomposition, such as SAENClassifier({name!r})"
        )
    raise InputError(
        "X must be saen.Graphs, a list of networkx graphs, of PyG Data or of RDKit molecules, "
        f"or a saen.Hierarchy, not {type(X).__name__}"
    )
