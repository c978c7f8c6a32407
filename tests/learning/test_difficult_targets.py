"""Targets and data at the edge: each is learned from or refused in one clear sentence."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import saen
from saen import InputError
from saen.learning.evaluation import cross_validate
from saen.network import Task
from saen.network.settings import DivergenceWarning

GRAPHS = saen.generate_threads(12, average_nodes=6, seed=2)
EMPTY = saen.Graphs.from_edge_lists([[]] * 12)
HALF = saen.Graphs.from_edge_lists([[]] * 6 + [[(0, k % 3)] for k in range(6)])
QUICK = {"epochs": 1, "n_models": 1, "radii": (0, 1)}
NUMBERS = [saen.SAENRegressor(**QUICK), saen.PartCountsRegressor(), saen.Regressor()]


def fit(model, y, graphs=GRAPHS):
    return model.fit(graphs, y)


def validate(model, y, graphs=GRAPHS):
    return cross_validate(model, graphs, y, n_repeats=1, n_folds=2)


@pytest.mark.parametrize("learn", [fit, validate])
@pytest.mark.parametrize(
    ("y", "message"),
    [
        (["a"] * 12, "at least two classes"),
        ([0.0, np.nan] * 6, "NaN or infinity, which is not a class"),
        (np.array([0.0, np.nan] * 6), "NaN or infinity, which is not a class"),
        ([0, None] * 6, "no class for example 1"),
        ([0, "a"] * 6, "mixes numbers and text"),
        ([True, 2] * 6, "mixes numbers and true or false"),
        (np.array([1, "b"] * 6, dtype=object), "mixes numbers and text"),
        ([0.25, 0.5] * 6, "continuous"),
        ([[0, 1]] * 12, "target '?0'? has 1 class"),
        ([[0, "a"], [1, "b"], [1, "c"]] * 4, "target '1' has 3 classes: of several targets"),
        ([0, 1] * 5, "12 examples, but 10 targets"),
    ],
)
def test_classes_that_cannot_be_learned_are_refused(learn, y, message):
    with pytest.raises(ValueError, match=message):
        learn(saen.SAENClassifier(**QUICK), y)


@pytest.mark.parametrize("model", NUMBERS)
@pytest.mark.parametrize("learn", [fit, validate])
@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([0.5, np.nan] * 6, "finite numbers"),
        ([0.5, np.inf] * 6, "finite numbers"),
        ([0.5, "a"] * 6, "finite numbers"),
        ([1e200, -1e200] * 6, "numbers beyond ±1e\\+100: rescale"),
        ([0.5, 1.5] * 5, "12 examples, but 10 targets"),
    ],
)
def test_numbers_that_cannot_be_learned_are_refused(learn, y, message, model):
    with pytest.raises(InputError, match=message):
        learn(model, y)


def test_cross_validation_of_equal_numbers_is_refused():
    with pytest.raises(InputError, match="all targets are equal"):
        validate(saen.SAENRegressor(**QUICK), [1.0] * 12)


def test_a_target_without_any_number_is_refused():
    y = np.column_stack([np.arange(12.0), np.full(12, np.nan)])
    for learn in (fit, validate):
        with pytest.raises(InputError, match="target '1' has no numbers to learn from"):
            learn(saen.SAENRegressor(**QUICK), y)


def test_one_graph_is_not_enough_for_classes_but_for_a_number():
    one = GRAPHS[:1]
    with pytest.raises(InputError, match="at least two classes, y holds 1 class"):
        fit(saen.SAENClassifier(**QUICK), ["a"], one)
    with pytest.raises(InputError, match="at least two classes, y holds 1"):
        validate(saen.SAENClassifier(**QUICK), ["a"], one)
    model = saen.SAENRegressor(**QUICK).fit(one, [2.5])
    assert np.isfinite(model.predict(GRAPHS)).all()


def test_no_graph_at_all_is_refused():
    with pytest.raises(InputError, match="at least two classes, y holds 0"):
        fit(saen.SAENClassifier(**QUICK), np.empty(0, dtype=np.int64), GRAPHS[:0])
    with pytest.raises(InputError, match="y is empty"):
        fit(saen.SAENRegressor(**QUICK), [], GRAPHS[:0])


@pytest.mark.parametrize("graphs", [EMPTY, HALF], ids=["all", "half"])
def test_empty_graphs_are_learned_from(graphs):
    y = np.array([0, 1] * 6)
    found = validate(saen.SAENClassifier(**QUICK), y, graphs)
    assert np.isfinite(found.outputs).all()
    model = fit(saen.SAENClassifier(**QUICK), y, graphs)
    alone = model.predict_proba(graphs)[:6]
    np.testing.assert_array_equal(alone, np.repeat(alone[:1], 6, axis=0))
    assert found.to_json()["duplicates"]["share"] >= 0.5


def test_a_class_with_one_member_is_learned_from():
    model = fit(saen.SAENClassifier(**QUICK), ["rare"] + ["a", "b"] * 5 + ["a"])
    assert model.predict_proba(GRAPHS).shape == (12, 3)


# -- divergence --------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [saen.SAENClassifier, saen.SAENRegressor])
@pytest.mark.parametrize("learn", [fit, validate])
def test_a_training_that_does_not_learn_says_so(kind, learn):
    classes = kind is saen.SAENClassifier
    y = np.arange(12) % 2 if classes else np.arange(12.0)
    model = kind(**{**QUICK, "epochs": 12, "learning_rate": 1e6})
    with pytest.warns(DivergenceWarning, match="models did not learn: the training loss never"):
        learn(model, y, EMPTY)  # which all look alike: no luck helps


def test_a_loss_that_falls_from_far_above_says_so():
    threads = saen.generate_threads(60, average_nodes=10, seed=1)  # several batches an epoch
    model = saen.SAENClassifier(**{**QUICK, "epochs": 20, "learning_rate": 1e6})
    with pytest.warns(DivergenceWarning, match="for a constant"):
        model.fit(threads, threads.targets)
    assert model.history_.loss[-1] < model.history_.loss[0]


def test_the_baseline_of_divergence_is_the_loss_of_the_class_frequencies():
    task = Task.classification([0, 0, 0, 1], np.array([[1, 1], [1, 0], [1, 0], [1, 1]]))
    entropy = -(0.75 * np.log(0.75) + 0.25 * np.log(0.25))
    np.testing.assert_allclose(task.constant_losses(), [entropy, np.log(2)])
    numbers = Task.regression([1.0, 3.0, 8.0], np.array([[1, 1], [1, 1], [0, 1]]))
    np.testing.assert_allclose(numbers.constant_losses(), [1.0, np.var([1.0, 3.0, 8.0])])


def test_a_training_that_learns_does_not_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit(saen.SAENClassifier(**{**QUICK, "epochs": 12}), GRAPHS.targets)


def test_a_loss_that_is_not_a_number_is_an_error():
    model = saen.SAENRegressor(
        **{**QUICK, "epochs": 12, "learning_rate": 1e30, "normalization": "none"}
    )
    with pytest.raises(InputError, match="training diverged in epoch"):
        validate(model, np.arange(12.0))


def test_peeking_at_a_training_that_diverges_is_an_error():
    model = saen.SAENClassifier(**{**QUICK, "epochs": 12, "learning_rate": 1e30})
    with pytest.raises(InputError, match=r"training diverged in epoch \d+ \(network 0 of 2\)"):
        cross_validate(model, GRAPHS, np.arange(12) % 2, n_repeats=1, n_folds=2, selection="peek")


def test_a_training_that_diverges_by_an_enormous_attribute_names_it():
    values = np.random.default_rng(0).normal(size=(GRAPHS.n_nodes, 2)) * [1, 1e30]
    graphs = GRAPHS.with_columns(node_attributes=values)
    model = saen.SAENClassifier(**QUICK, node_labels="degree,attributes")
    message = r"training diverged in epoch 1 .*: attribute 1 of the nodes reaches .*e\+30: correct"
    with pytest.raises(InputError, match=message):
        model.fit(graphs, GRAPHS.targets)


@pytest.mark.filterwarnings("ignore:The number of unique classes")
@pytest.mark.parametrize("learn", [fit, validate])
@pytest.mark.parametrize("model", [saen.SAENClassifier(), saen.PartCountsClassifier()])
def test_a_class_for_every_example_is_refused_with_a_forecast(model, learn):
    graphs = saen.Graphs.from_edge_lists([[(0, 1)]])[np.zeros(100_000, dtype=np.int64)]
    message = r"100,000 classes and 100,000 examples: .* 80\.0 GB"
    with pytest.raises(InputError, match=message):
        learn(model, np.arange(100_000), graphs)


def test_many_classes_over_many_features_are_refused_with_a_forecast(monkeypatch):
    monkeypatch.setattr("saen.learning.problem.MAX_SCORES", 40)
    with pytest.raises(InputError, match=r"3 classes and .* features: one number for each pair"):
        fit(saen.PartCountsClassifier(C=1.0, inner_folds=0), np.arange(12) % 3)
