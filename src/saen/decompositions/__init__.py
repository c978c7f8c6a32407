"""Decompositions: from graphs, documents and other structures to levels of parts of parts."""

from saen.decompositions.base import Decomposition
from saen.decompositions.ego import Ego
from saen.decompositions.registry import DECOMPOSITIONS, make_decomposition

__all__ = ["DECOMPOSITIONS", "Decomposition", "Ego", "make_decomposition"]
