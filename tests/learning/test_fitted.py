"""What all estimators offer beside predictions: scores, schema, explanations, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import saen
from saen.errors import InputError
from saen.learning.estimators import ClassPredictor, Estimator, NumberPredictor
from saen.learning.models.base import Fitted, Learner

THREADS = saen.generate_threads(40, average_nodes=12, seed=1)
SMALL: dict[str, Any] = {"epochs": 3, "n_models": 2, "inner_folds": 0}
COUNTS: dict[str, Any] = {"inner_folds": 0, "decomposition": "neighbourhoods(depth=1)"}
MODELS = [
    saen.SAENClassifier(**SMALL),
    saen.SAENRegressor(**SMALL),
    saen.SAENTransformer(**SMALL),
    saen.PartCountsClassifier(**COUNTS),
    saen.PartCountsRegressor(**COUNTS),
    saen.Classifier(candidates=[saen.PartCountsClassifier(**COUNTS)]),
    saen.Regressor(candidates=[saen.PartCountsRegressor(**COUNTS)]),
]


def targets(model: Any) -> Any:
    return THREADS.sizes.astype(float) if "Regressor" in str(type(model)) else THREADS.targets


def test_bases_of_models_are_abstract() -> None:
    for base in (Learner, Fitted, Estimator, ClassPredictor, NumberPredictor):
        with pytest.raises(TypeError, match="abstract"):
            base()  # type: ignore[abstract]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_every_estimator_scores_explains_and_knows_what_it_reads(model: Any) -> None:
    model, y = clone(model), targets(model)
    assert not hasattr(model, "feature_names_")
    model.fit(THREADS, y)
    assert -10 < model.score(THREADS, y) <= 1
    explanation = model.explain(THREADS, 3, n_parts=2)
    assert explanation.index == 3
    assert explanation.output == saen.explain(model, THREADS, 3).output
    assert len(model.feature_names_) > 2
    if hasattr(model, "classes_"):
        proba = model.predict_proba(THREADS)
        np.testing.assert_allclose(np.exp(model.predict_log_proba(THREADS)), proba, atol=1e-12)


def test_feature_names_are_labels_and_attributes_of_the_bottom_level() -> None:
    graphs = saen.Graphs.from_edge_lists(
        [[(0, 1)], [(0, 1)]], node_labels=["C", "O", "C", "N"], node_attributes=np.ones((4, 2))
    )
    model = saen.SAENClassifier(node_labels="node,attributes", epochs=0).fit(graphs, [0, 1])
    assert model.feature_names_.tolist() == ["C", "N", "O", "attribute 0", "attribute 1"]
    wider = saen.Graphs.from_edge_lists(
        [[(0, 1)]], node_labels=["C", "O"], node_attributes=np.ones((2, 3))
    )
    with pytest.raises(InputError):
        model.predict(wider)


def test_score_of_several_targets_is_the_mean_over_known_ones() -> None:
    y = np.column_stack([THREADS.targets, np.where(THREADS.sizes > 12, "large", "small")])
    gaps = y.astype(object)
    gaps[::4, 1] = None
    model = saen.SAENClassifier(**SMALL).fit(THREADS, gaps)
    right = model.predict(THREADS) == y
    known = np.arange(40) % 4 != 0
    expected = (right[:, 0].mean() + right[known, 1].mean()) / 2
    assert model.score(THREADS, gaps) == pytest.approx(expected)


def test_score_of_several_numbers_is_the_mean_over_known_ones() -> None:
    y = np.column_stack([THREADS.sizes, THREADS.sizes**2]).astype(float)
    y[::4, 1] = np.nan
    model = saen.SAENRegressor(**SMALL).fit(THREADS, y)
    assert np.isfinite(model.score(THREADS, y))
    first, second = (
        saen.SAENRegressor(**SMALL).fit(THREADS, y[:, :1]).score(THREADS, y[:, :1]),
        model.score(THREADS, y),
    )
    assert first != second


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_every_estimator_refuses_data_without_targets(model: Any) -> None:
    with pytest.raises(InputError, match="y is None: these data have no targets"):
        clone(model).fit(THREADS, None)
