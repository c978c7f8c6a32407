"""What every decomposition offers."""

from __future__ import annotations

from typing import Any, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from saen.graphs import Graphs
from saen.hierarchy import Hierarchy


@runtime_checkable
class Decomposition(Protocol):
    """Turns graphs into a `Hierarchy`, graph by graph: no graph's parts depend on another's.

    An implementation is an immutable object that holds its settings and, once fitted, a vocabulary.
    """

    def fit(self, graphs: Graphs) -> Self:
        """A copy that knows the vocabulary of these graphs; values beyond it become unseen."""
        ...

    def decompose(self, graphs: Graphs) -> Hierarchy:
        """The hierarchy whose top level is `graphs`, in order."""
        ...

    def costs(self, graphs: Graphs) -> NDArray[np.int64]:
        """An upper bound of the entries that each graph will take, shape (G,)."""
        ...

    def settings(self) -> dict[str, Any]:
        """Name and parameters as JSON, enough to build it again."""
        ...
