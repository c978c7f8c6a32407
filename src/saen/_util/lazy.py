"""Modules that are imported when they are first used, and those that may be missing."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from saen.errors import MissingExtraError


class LazyModule:
    """Stands for a module that takes long to import, until something in it is used.

    >>> decimal = LazyModule("decimal")
    >>> decimal.Decimal("0.1") * 3
    Decimal('0.3')
    """

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __getattr__(self, attribute: str) -> Any:
        """Import the module and look up the attribute there."""
        return getattr(import_module(self.__name__), attribute)


if TYPE_CHECKING:
    import pandas as pd
    import torch as torch
    from scipy import sparse as sparse
    from scipy import stats as stats
    from scipy.sparse import csgraph as csgraph
    from sklearn import metrics as sklearn_metrics
    from sklearn import model_selection as model_selection
else:
    csgraph, sparse = LazyModule("scipy.sparse.csgraph"), LazyModule("scipy.sparse")
    model_selection = LazyModule("sklearn.model_selection")
    pd, torch, stats = LazyModule("pandas"), LazyModule("torch"), LazyModule("scipy.stats")
    sklearn_metrics = LazyModule("sklearn.metrics")

__all__ = [
    "LazyModule",
    "csgraph",
    "import_extra",
    "model_selection",
    "pd",
    "sklearn_metrics",
    "sparse",
    "stats",
    "torch",
]


def import_extra(module: str, library: str, *, extra: str) -> Any:
    """A module of an optional library; `MissingExtraError` says which extra to install."""
    try:
        return import_module(module)
    except ImportError:
        raise MissingExtraError(library, extra=extra) from None
