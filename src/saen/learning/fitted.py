"""What every fitted model tells about itself: what it reads, and why it predicts what it does."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from saen._util.lazy import LazyModule
from saen.data.hierarchy import Hierarchy
from saen.learning.preparation import Data

# Explanations build on models and are imported when one is asked for, not with the models.
explanation = LazyModule("saen.explanations.explanation")


class Fitted:
    """Estimators with a `schema_`: the hierarchy of the training data, without its objects."""

    schema_: Hierarchy

    @property
    def feature_names_(self) -> NDArray[np.object_]:
        """What `fit` saw on the bottom level, in order: labels as text, then real attributes.

        >>> import saen
        >>> path = saen.Graphs.from_edge_lists([[(0, 1)]] * 2, node_labels=["C", "O"] * 2)
        >>> model = saen.SAENClassifier(epochs=0).fit(path, ["a", "b"])
        >>> model.feature_names_.tolist(), model.schema_.names
        (['C', 'O'], ('nodes', 'ego graphs', 'graphs'))
        """
        attributes = self.schema_.attributes
        labels = [] if attributes.vocabulary is None else map(str, attributes.vocabulary)
        width = 0 if attributes.vectors is None else attributes.vectors.shape[1]
        return np.array([*labels, *(f"attribute {n}" for n in range(width))], dtype=object)

    def explain(self, X: Data, index: int | str = 0, *, target: Any = None, k: int = 10) -> Any:
        """What every part of an example contributes to its prediction: see `saen.explain`.

        >>> import saen
        >>> threads = saen.generate_threads(40, average_nodes=10, seed=1)
        >>> model = saen.PartCountsClassifier().fit(threads, threads.targets)
        >>> model.explain(threads, 3).index
        3
        """
        return explanation.explain(self, X, index, target=target, k=k)
