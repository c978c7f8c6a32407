"""Graphs from and to other libraries; each library is imported only when it is used."""

from saen.interop.networkx import from_networkx, to_networkx
from saen.interop.pyg import ToHierarchy, from_pyg, hierarchy_from_pyg, to_pyg
from saen.interop.rdkit import from_rdkit, from_smiles, to_rdkit
from saen.interop.scipy import from_scipy, to_scipy

__all__ = [
    "ToHierarchy",
    "from_networkx",
    "from_pyg",
    "from_rdkit",
    "from_scipy",
    "from_smiles",
    "hierarchy_from_pyg",
    "to_networkx",
    "to_pyg",
    "to_rdkit",
    "to_scipy",
]
