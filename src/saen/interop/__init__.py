"""Structures from and to other libraries; each library is imported only when it is used."""

from saen.interop.conllu import read_conllu
from saen.interop.networkx import from_networkx, to_networkx
from saen.interop.pyg import ToHierarchy, from_pyg, hierarchy_from_pyg, to_pyg
from saen.interop.rdkit import from_rdkit, from_smiles, to_rdkit
from saen.interop.scipy import from_scipy, to_scipy
from saen.interop.spacy import from_spacy
from saen.interop.vectors import read_word_vectors

__all__ = [
    "ToHierarchy",
    "from_networkx",
    "from_pyg",
    "from_rdkit",
    "from_scipy",
    "from_smiles",
    "from_spacy",
    "hierarchy_from_pyg",
    "read_conllu",
    "read_word_vectors",
    "to_networkx",
    "to_pyg",
    "to_rdkit",
    "to_scipy",
]
