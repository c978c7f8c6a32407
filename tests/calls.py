"""Calls that type checkers must refuse: `make lint` fails where mypy lets one pass."""

from __future__ import annotations

import saen
from saen import Classifier, Graphs, PartCountsRegressor, SAENClassifier


def refused(graphs: Graphs) -> None:
    """Not run: mypy reports every ignored line that is no error."""
    SAENClassifier(epoch=3)  # type: ignore[call-arg]
    Classifier(budget=1)  # type: ignore[arg-type]
    Classifier().fit(5, graphs.targets)  # type: ignore[arg-type]
    PartCountsRegressor().predict(graphs, 3)  # type: ignore[call-arg]
    saen.cross_validate(Classifier(), graphs, [0], n_fold=2)  # type: ignore[call-arg]
    Classifier.load("model.saen").predict_probabilities(graphs)  # type: ignore[attr-defined]
