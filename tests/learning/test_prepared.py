"""Data prepared once: sliced, searched, predicted."""

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV

import saen
from saen.errors import InputError
from saen.learning import preparation

THREADS = saen.generate_threads(40, average_nodes=15, seed=1)


def test_prepared_in_a_grid_search_is_decomposed_once(monkeypatch):
    calls = []
    original = preparation.compress_graphs
    monkeypatch.setattr(
        preparation, "compress_graphs", lambda *a, **k: calls.append(1) or original(*a, **k)
    )
    model = saen.SAENClassifier(n_models=1)
    search = GridSearchCV(model, {"epochs": [1, 2]}, cv=2)
    search.fit(model.prepare(THREADS), THREADS.targets)
    assert len(calls) == 1
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_prepared_parts_are_predicted_as_in_the_whole():
    model = saen.SAENClassifier(epochs=2)
    prepared = model.prepare(THREADS)
    model.fit(prepared[5:], THREADS.targets[5:])
    rows = np.array([7, 3, 3, 39])
    np.testing.assert_array_equal(
        model.predict_proba(prepared[rows]), model.predict_proba(prepared)[rows]
    )
    np.testing.assert_allclose(
        model.predict_proba(prepared[rows]), model.predict_proba(THREADS[rows]), atol=1e-6
    )


def test_prepared_parts_are_not_for_other_settings():
    prepared = saen.SAENClassifier(radii=(0, 1)).prepare(THREADS)
    with pytest.raises(InputError, match="prepare the data anew"):
        saen.SAENClassifier(radii=(0,)).fit(prepared[:20], THREADS.targets[:20])


def test_log_probabilities_are_the_logarithms_of_probabilities():
    model = saen.SAENClassifier(epochs=1).fit(THREADS, THREADS.targets)
    np.testing.assert_allclose(
        np.exp(model.predict_log_proba(THREADS)), model.predict_proba(THREADS)
    )


@pytest.mark.parametrize("kind", [saen.SAENClassifier, saen.SAENRegressor])
def test_one_small_graph_is_predicted_as_in_company(kind, monkeypatch):
    y = THREADS.sizes % 2
    model = kind(epochs=2, dtype="float64").fit(THREADS, y)
    predict = model.predict if kind is saen.SAENRegressor else model.predict_proba
    together = predict(THREADS)
    monkeypatch.setattr(kind, "compress", None)  # which one small graph does not need
    alone = np.concatenate([predict(one) for one in THREADS])
    np.testing.assert_allclose(alone, together, rtol=1e-10)


def test_one_large_graph_is_compressed(monkeypatch):
    model = saen.SAENClassifier(epochs=1).fit(THREADS, THREADS.targets)
    small = model.predict_proba(THREADS[3])
    monkeypatch.setattr("saen.learning.estimators.MAX_UNCOMPRESSED", 10)
    calls = []
    compress = model.compress
    monkeypatch.setattr(model, "compress", lambda X: calls.append(1) or compress(X))
    np.testing.assert_allclose(model.predict_proba(THREADS[3]), small, atol=1e-6)
    assert calls
