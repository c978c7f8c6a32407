"""What models offer beside predictions: scores, schema, explanations, callbacks, warm starts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import saen
from saen.errors import InputError
from saen.learning.blend import BlendEstimator
from saen.learning.network_estimator import NetworkEstimator
from saen.learning.part_counts_models import PartCountsEstimator

THREADS = saen.generate_threads(40, average_nodes=12, seed=1)
SMALL: dict[str, Any] = {"epochs": 3, "n_models": 2, "inner_folds": 0}
COUNTS: dict[str, Any] = {"inner_folds": 0, "decomposition": "neighbourhoods(depth=1)"}
MODELS = [
    saen.SAENClassifier(**SMALL),
    saen.SAENRegressor(**SMALL),
    saen.SAENTransformer(**SMALL),
    saen.PartCountsClassifier(**COUNTS),
    saen.PartCountsRegressor(**COUNTS),
    saen.BlendClassifier(candidates=[saen.PartCountsClassifier(**COUNTS)]),
    saen.BlendRegressor(candidates=[saen.PartCountsRegressor(**COUNTS)]),
]


def targets(model: Any) -> Any:
    return THREADS.sizes.astype(float) if "Regressor" in str(type(model)) else THREADS.targets


def test_bases_of_estimators_are_abstract() -> None:
    for base in (NetworkEstimator, PartCountsEstimator, BlendEstimator):
        with pytest.raises(TypeError, match="abstract"):
            base()  # type: ignore[abstract]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_every_estimator_scores_explains_and_knows_what_it_reads(model: Any) -> None:
    model, y = clone(model), targets(model)
    assert not hasattr(model, "feature_names_")
    model.fit(THREADS, y)
    assert -10 < model.score(THREADS, y) <= 1
    explanation = model.explain(THREADS, 3, k=2)
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


# -- training --------------------------------------------------------------------------------------


def test_best_epoch_is_that_of_the_lowest_validation_loss(tmp_path: Path) -> None:
    model = saen.SAENClassifier(epochs=12, n_models=3, patience=2, inner_folds=0)
    model.fit(THREADS, THREADS.targets).save(tmp_path / "model.saen")
    losses = np.array(model.history_.validation_loss)
    assert model.best_epoch_.tolist() == (losses.argmin(axis=0) + 1).tolist()
    assert saen.load(tmp_path / "model.saen").best_epoch_.tolist() == model.best_epoch_.tolist()
    assert (model.best_epoch_ < len(losses)).any()
    plain = saen.SAENClassifier(**SMALL).fit(THREADS, THREADS.targets)
    assert plain.best_epoch_.tolist() == [3, 3]


def test_callback_sees_every_epoch_and_may_stop() -> None:
    seen = []

    def stop_at_two(epoch: int, history: Any) -> bool:
        seen.append((epoch, len(history.loss)))
        return epoch == 2

    model = saen.SAENClassifier(epochs=5, n_models=2, schedule="constant", callback=stop_at_two)
    model.fit(THREADS, THREADS.targets)
    assert seen == [(1, 1), (2, 2)]
    assert np.shape(model.history_.loss) == (2, 2)
    assert not model.history_.interrupted
    assert len(model.inner_history_.loss) == 2  # calibrated by networks of as many epochs
    two = saen.SAENClassifier(epochs=2, n_models=2, schedule="constant").fit(
        THREADS, THREADS.targets
    )
    np.testing.assert_array_equal(model.predict_proba(THREADS), two.predict_proba(THREADS))


def test_callback_that_cannot_be_called_is_refused() -> None:
    with pytest.raises(InputError, match="callback"):
        saen.SAENClassifier(callback=3).fit(THREADS, THREADS.targets)


def test_warm_start_goes_on_where_the_last_fit_ended() -> None:
    settings: dict[str, Any] = {"n_models": 2, "inner_folds": 0, "schedule": "constant"}
    model = saen.SAENClassifier(epochs=4, warm_start=True, **settings)
    model.fit(THREADS, THREADS.targets)
    before = model.network_
    first = model.history_.loss
    model.fit(THREADS, THREADS.targets)
    assert model.network_ is not before  # what an earlier reference holds does not change
    assert np.mean(model.history_.loss[0]) < np.mean(first[0])
    cold = saen.SAENClassifier(epochs=4, **settings).fit(THREADS, THREADS.targets)
    assert cold.history_.loss == first
    model.set_params(epochs=0).fit(THREADS, THREADS.targets)
    again = model.predict_proba(THREADS)
    # Labels that other data lack are not forgotten.
    np.testing.assert_array_equal(
        again, model.fit(THREADS[:20], THREADS.targets[:20]).predict_proba(THREADS)
    )


def test_warm_start_keeps_the_units_of_numbers() -> None:
    model = saen.SAENRegressor(epochs=2, n_models=1, inner_folds=0, warm_start=True)
    y = THREADS.sizes.astype(float)
    scale = model.fit(THREADS, y).scale_
    assert model.fit(THREADS, 10 * y).scale_ == scale


def test_warm_start_with_other_networks_or_classes_is_refused() -> None:
    model = saen.SAENClassifier(warm_start=True, **SMALL).fit(THREADS, THREADS.targets)
    with pytest.raises(InputError, match="y must hold the same ones"):
        model.fit(THREADS, np.arange(40) % 3)
    with pytest.raises(InputError, match="keep n_models, hidden"):
        model.set_params(n_models=3).fit(THREADS, THREADS.targets)
    assert model.predict(THREADS).shape == (40,)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_every_estimator_refuses_data_without_targets(model: Any) -> None:
    with pytest.raises(InputError, match="y is None: these data have no targets"):
        clone(model).fit(THREADS, None)
