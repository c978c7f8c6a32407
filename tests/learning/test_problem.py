"""Several targets at once, with gaps: one model, one score per target and their mean."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

import saen
from saen.data.collection import known_targets
from saen.errors import InputError
from saen.learning.problem import Problem, class_factors, encode_classes, mean_and_scale

THREADS = saen.generate_threads(120, average_nodes=12, seed=2)
QUICK = {"n_models": 2, "epochs": 20, "device": "cpu", "radii": (0, 1), "inner_folds": 0}
WHOLE = np.column_stack(
    [
        THREADS.targets == "questions",
        THREADS.sizes > np.median(THREADS.sizes),
        THREADS.sizes > np.quantile(THREADS.sizes, 0.8),
    ]
).astype(np.int64)
GAPS = np.random.default_rng(0).random(WHOLE.shape) < 0.3
Y = np.where(GAPS, np.nan, WHOLE)
RANKS = np.arange(120) % 7


@pytest.mark.parametrize(
    "y",
    [
        [[0, 1], [1, None], [None, 0]],
        np.array([[0, 1], [1, np.nan], [np.nan, 0]]),
        pd.DataFrame({"a": [0, 1, None], "b": [1, None, 0]}),
        np.array([["0", "1"], ["1", ""], ["", "0"]]),
        np.array([["n", "y"], ["y", ""], [None, "n"]], dtype=object),
    ],
    ids=["list", "floats", "frame", "strings", "objects"],
)
def test_missing_targets_are_none_nan_or_empty(y):
    assert encode_classes(y)[1].tolist() == [[0, 1], [1, -1], [-1, 0]]


def test_classes_of_several_targets_are_integers_where_all_are():
    classes, _ = encode_classes(Y)
    assert classes.dtype.kind == "i"
    assert classes.tolist() == [[0, 1]] * 3
    assert known_targets(np.array([[1, 2]])).all()


def test_infinity_and_fractions_are_not_classes():
    with pytest.raises(InputError, match="NaN or infinity"):
        encode_classes([[0.0, np.inf], [1.0, 0.0]])
    with pytest.raises(ValueError, match="continuous"):
        encode_classes([[0.0, 0.5], [1.0, 0.0]])


def test_one_model_learns_several_targets_with_gaps():
    model = saen.SAENClassifier(**QUICK).fit(THREADS[:80], Y[:80])
    proba = model.predict_proba(THREADS[80:])
    assert proba.shape == (40, 3)
    assert model.predict_each(THREADS[80:]).shape == (40, 2, 3)
    assert model.network_.architecture.layers[-1][-1] == 3
    np.testing.assert_array_equal(model.predict(THREADS[80:]), proba > 0.5)
    for target in (1, 2):
        assert roc_auc_score(WHOLE[80:, target], proba[:, target]) > 0.9
    assert model.decision_function(THREADS[80:]).shape == (40, 3)


def test_unknown_targets_do_not_matter():
    other = pd.DataFrame(Y).astype(object)
    other[GAPS] = None
    models = [saen.SAENClassifier(**QUICK).fit(THREADS, y) for y in (Y, other)]
    np.testing.assert_array_equal(*[model.predict_proba(THREADS) for model in models])


def test_names_come_from_a_data_frame_and_are_saved(tmp_path):
    frame = pd.DataFrame(Y, columns=["NR-AR", "big", "huge"])
    model = saen.SAENClassifier(**QUICK).fit(THREADS, frame)
    model.save(tmp_path / "model.saen")
    again = saen.load(tmp_path / "model.saen")
    assert again.target_names_ == ["NR-AR", "big", "huge"]
    np.testing.assert_array_equal(again.predict_proba(THREADS), model.predict_proba(THREADS))


def test_balanced_weights_are_those_of_each_target():
    problem = Problem.of(Y, regression=False)
    train = np.arange(60)
    task = problem.targets.task(problem, [train, np.arange(120)], "balanced")
    assert task.class_weights.shape == (6, 2)
    for column, rows in enumerate((train, np.arange(120))):
        codes = problem.values[rows]
        for target in range(3):
            known = codes[codes[:, target] >= 0, target]
            expected = len(known) / (2 * np.bincount(known))
            found = task.class_weights[[target, 3 + target], column]
            np.testing.assert_allclose(found, expected)
    model = saen.SAENClassifier(**QUICK, class_weight="balanced")
    assert model.fit(THREADS, Y).predict(THREADS).shape == (120, 3)


def test_weights_by_name_do_not_need_every_class_in_a_part():
    codes, classes = np.array([0, 0, 1, 1]), np.array(["a", "b", "c"])
    assert class_factors({"a": 2.0, "c": 3.0}, codes, classes).tolist() == [2.0, 1.0, 3.0]


@pytest.mark.parametrize("several", [False, True])
def test_part_counts_weigh_examples_by_their_classes(several):
    problem = Problem.of(Y if several else WHOLE[:, 0], regression=False, sample_weight=1 + RANKS)
    train, rows = np.arange(80), np.arange(40, 120)
    found = problem.targets.weighted(problem, train, rows, "balanced")
    factors = class_factors("balanced", problem.values[train], problem.targets.classes)
    for place, row in enumerate(rows):
        codes = np.atleast_1d(problem.values[row])
        for target, code in enumerate(codes):
            if code >= 0:
                factor = factors[target, code] if several else factors[code]
                expected = (1 + RANKS[row]) * factor
                assert np.atleast_1d(found[place])[target] == pytest.approx(expected)
    numbers = Problem.of(1.0 * RANKS, regression=True)
    with pytest.raises(InputError, match="class_weight is for classes"):
        numbers.targets.weighted(numbers, train, rows, "balanced")


def test_a_problem_is_checked_once():
    problem = Problem.of(["b", "a", "b"], regression=False, groups=["x", "y", "x"])
    assert (problem.values.tolist(), problem.weights.tolist()) == ([1, 0, 1], [1.0, 1.0, 1.0])
    assert (problem.groups[0] == problem.groups[2]) != (problem.groups[0] == problem.groups[1])
    for options, message in [
        ({"groups": [1, 2]}, "groups must have shape"),
        ({"sample_weight": [0, 0, 0]}, "zero everywhere|non-zero"),
        ({"sample_weight": [1, -1, 1]}, "a finite number ≥ 0"),
    ]:
        with pytest.raises(ValueError, match=message):
            Problem.of(["b", "a", "b"], regression=False, **options)
    with pytest.raises(InputError, match="y is None"):
        Problem.of(None, regression=True)


def test_numbers_are_learned_in_the_unit_of_their_training_examples():
    numbers = np.column_stack([RANKS, 100.0 * RANKS])
    numbers[:30, 1] = np.nan
    weights = np.arange(120) % 3 + 1.0
    problem = Problem.of(numbers, regression=True, sample_weight=weights)
    trains = [np.arange(60), np.arange(60, 120)]
    task = problem.targets.task(problem, trains, None)
    assert task.targets.shape == (120, 2, 2)
    for place, train in enumerate(trains):
        own = task.targets[train, place]
        known = np.isfinite(own)
        for column in range(2):
            values, w = own[known[:, column], column], weights[train][known[:, column]]
            assert np.average(values, weights=w) == pytest.approx(0, abs=1e-12)
            assert np.average(values**2, weights=w) == pytest.approx(1)
        unit = problem.targets.unit(problem, train)
        again = task.targets[:, place] * unit[1] + unit[0]
        np.testing.assert_allclose(again[np.isfinite(numbers)], numbers[np.isfinite(numbers)])


def test_evaluation_scores_every_target_and_their_mean():
    frame = pd.DataFrame(Y, columns=["a", "b", "c"])
    model = saen.SAENClassifier(**QUICK | {"n_models": 1, "inner_folds": 1})
    found = saen.cross_validate(model, THREADS, frame, n_repeats=1, n_folds=3, metric="roc_auc")
    scores = []
    for _, test in found.splits[0]:
        known = ~GAPS[test]
        scores.append(
            [
                roc_auc_score(WHOLE[test, t][known[:, t]], found.outputs[0, test, t][known[:, t]])
                for t in range(3)
            ]
        )
    document = found.to_json()
    expected = dict(zip("abc", np.mean(scores, axis=0), strict=True))
    assert document["targets"]["roc_auc"] == pytest.approx(expected)
    assert document["roc_auc"]["mean"] == pytest.approx(np.mean(scores))


def test_nested_chooses_by_the_mean_over_targets():
    model = saen.SAENClassifier(**QUICK | {"n_models": 1, "inner_folds": "auto"})
    grid = [{"epochs": 1}, {"epochs": 20}]
    options = {"n_repeats": 1, "n_folds": 2, "selection": "nested", "grid": grid, "inner_folds": 2}
    found = saen.cross_validate(model, THREADS, Y, metric="roc_auc", **options)
    best = max(found.tried, key=lambda each: each["score"])
    assert best["epochs"] in [each["epochs"] for each in found.chosen]
    assert all(0.5 < each["score"] <= 1 for each in found.tried)


def test_several_numbers_may_have_gaps():
    numbers = np.column_stack([THREADS.sizes, 3.0 * THREADS.sizes + 1])
    numbers[::4, 1] = np.nan
    model = saen.SAENRegressor(**QUICK | {"epochs": 40}).fit(THREADS, numbers)
    predicted = model.predict(THREADS)
    assert np.corrcoef(predicted[:, 1], THREADS.sizes)[0, 1] > 0.9
    single = saen.SAENRegressor(**QUICK | {"n_models": 1})
    found = saen.cross_validate(single, THREADS, numbers, n_repeats=1, n_folds=3)
    known = np.isfinite(numbers[:, 1])
    errors = np.abs(found.outputs[0] - numbers)
    folds = [errors[test] for _, test in found.splits[0]]
    assert list(found.target_scores()) == ["0", "1"]
    assert found.target_scores()["1"] == pytest.approx(
        np.mean([np.nanmean(fold[:, 1]) for fold in folds])
    )
    assert known.sum() == np.isfinite(errors[:, 1]).sum()


def test_targets_of_any_unit_have_a_standard_deviation():
    y = np.array([1.0, 2.0, 4.0])
    for unit in (1e-300, 1.0, 1e100):
        _, scale = mean_and_scale(unit * y, np.ones(3))
        assert scale == pytest.approx(unit * y.std())
