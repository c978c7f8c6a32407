"""Decompositions: from graphs to levels of parts of parts."""

from saen.decompositions.base import Decomposition
from saen.decompositions.ego import Ego

__all__ = ["Decomposition", "Ego"]
