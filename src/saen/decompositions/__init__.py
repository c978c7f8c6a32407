"""Decompositions: from graphs, documents and other structures to levels of parts of parts."""

from saen.decompositions.base import Decomposition
from saen.decompositions.ego import Ego
from saen.decompositions.flat import Edges, Vertices
from saen.decompositions.neighbourhoods import Neighbourhoods
from saen.decompositions.nested import Nested
from saen.decompositions.paths import Paths
from saen.decompositions.registry import DECOMPOSITIONS, make_decomposition
from saen.decompositions.text import Text

__all__ = [
    "DECOMPOSITIONS",
    "Decomposition",
    "Edges",
    "Ego",
    "Neighbourhoods",
    "Nested",
    "Paths",
    "Text",
    "Vertices",
    "make_decomposition",
]
