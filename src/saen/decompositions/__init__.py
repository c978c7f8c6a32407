"""Decompositions: from graphs, documents and nested data to hierarchies of parts."""

from saen.decompositions.bags import Edges, Nodes
from saen.decompositions.base import Anchors, Decomposition
from saen.decompositions.dependency_paths import DependencyPaths
from saen.decompositions.ego import Ego
from saen.decompositions.neighbourhoods import Neighbourhoods
from saen.decompositions.nested import Nested
from saen.decompositions.pairs import Pairs
from saen.decompositions.paths import Paths
from saen.decompositions.registry import DECOMPOSITIONS, decomposition_class, make_decomposition

__all__ = [
    "DECOMPOSITIONS",
    "Anchors",
    "Decomposition",
    "DependencyPaths",
    "Edges",
    "Ego",
    "Neighbourhoods",
    "Nested",
    "Nodes",
    "Pairs",
    "Paths",
    "decomposition_class",
    "make_decomposition",
]
