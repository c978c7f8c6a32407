"""Decompositions: from graphs to levels of parts of parts."""

from saen.decompositions.base import Decomposition
from saen.decompositions.ego import Ego

DECOMPOSITIONS: dict[str, type[Decomposition]] = {"ego": Ego}
"""By the name that the command line and saved files use."""

__all__ = ["DECOMPOSITIONS", "Decomposition", "Ego"]
