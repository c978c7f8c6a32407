"""Weights of blends, and the best of some settings."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import saen
from saen.learning.metrics import find_metric
from saen.learning.preparation import Preparations
from saen.learning.selection import (
    FEW_EXAMPLES,
    GREEDY_ROUNDS,
    Candidate,
    Inner,
    Trials,
    blend,
    blend_by,
    blend_weights,
    mixture_weights,
    try_candidates,
    usual_inner_folds,
)
from saen.learning.trainers import Classes, Numbers, Trainer
from saen.network.settings import Part


def squares(truth):
    return lambda rows: (rows - truth) ** 2


def log_losses(truth):
    return lambda rows: -np.log(np.maximum(rows[:, np.arange(len(truth)), truth], 1e-12))


def test_blend_weights_leave_out_what_only_makes_it_worse():
    rng = np.random.default_rng(0)
    truth = rng.normal(size=200)
    good = truth + 0.1 * rng.normal(size=200)
    weights = blend_weights(np.stack([good, -truth, np.full(200, 9.0)]), squares(truth))
    np.testing.assert_allclose(weights, [1, 0, 0])


def test_blend_weights_use_models_that_err_in_different_places():
    rng = np.random.default_rng(1)
    truth = rng.integers(2, size=400)
    logits = (2 * truth - 1)[None] + 2 * rng.normal(size=(2, 400))
    positive = 1 / (1 + np.exp(-logits))
    rows = np.stack([1 - positive, positive], axis=-1)
    weights = blend_weights(rows, log_losses(truth))
    assert weights.min() > 0.3
    losses = log_losses(truth)
    mixed = losses(np.tensordot(weights, rows, 1)[None]).mean()
    assert mixed < losses(rows).mean(axis=1).min()


@settings(max_examples=30, deadline=None)
@given(arrays(np.float64, (4, 12), elements=st.floats(-5, 5)))
def test_blend_weights_are_shares_and_never_worse_than_the_best_candidate(rows):
    truth = np.linspace(-1, 1, 12)
    weights = blend_weights(rows, squares(truth))
    assert weights.min() >= 0
    assert np.isclose(weights.sum(), 1)
    alone = squares(truth)(rows).mean(axis=1)
    # Greedy steps come close to the optimum, which is no worse than the best alone.
    assert squares(truth)(weights @ rows).mean() <= alone.min() * 1.1 + 1e-9


def test_blend_of_few_examples_is_the_most_likely_mixture():
    """With one imagined example for every candidate: no other weights are more likely."""
    rows, truth = noisy_candidates()
    right = rows[:, np.arange(len(truth)), truth]

    def evidence(weights):
        return np.log(weights @ right).sum() + np.log(weights).sum()

    weights = weights_of(rows, truth)
    np.testing.assert_array_equal(weights, mixture_weights(right, np.ones(len(right))))
    assert np.isclose(weights.sum(), 1)
    rng = np.random.default_rng(0)
    for spread in (0.001, 0.01, 0.1, 1.0):
        for _ in range(50):
            other = weights * np.exp(spread * rng.normal(size=len(weights)))
            assert evidence(other / other.sum()) < evidence(weights) + 1e-9


def test_blend_of_few_examples_counts_candidates_with_half_a_prior_as_halves():
    """A candidate that is listed twice, with half the prior each, has the weight that it had."""
    rows, truth = noisy_candidates()
    right = rows[:, np.arange(len(truth)), truth]
    once = mixture_weights(right, np.ones(len(right)))
    priors = np.array([*np.ones(len(right) - 1), 0.5, 0.5])
    twice = mixture_weights(np.concatenate([right, right[-1:]]), priors)
    np.testing.assert_allclose(twice[:-2], once[:-1], atol=1e-6)
    np.testing.assert_allclose(twice[-2:], once[-1] / 2, atol=1e-6)


@pytest.mark.parametrize("n", [20, 100, 400])
def test_blend_of_few_examples_shares_among_equals_and_not_with_nonsense(n):
    truth = np.arange(n) % 2
    good = of_two_classes(0.5 + 0.4 * (2 * truth - 1))
    rows = np.stack([good, good, 1 - good])
    weights = weights_of(rows, truth)
    assert np.isclose(weights[0], weights[1])
    assert weights[2] < 2 / (n + 3)


def test_blend_of_few_examples_with_several_targets_counts_known_ones():
    rng = np.random.default_rng(0)
    truth = rng.integers(-1, 2, size=(50, 3))
    rows = rng.random((2, 50, 3))
    problem = Classes(np.where(truth < 0, np.nan, truth))
    unused = np.zeros((2, 1))
    trials = Trials([0, 1], [rows], [problem.targets], [[]], unused, unused, [], {}, {}, np.ones(2))
    right = np.where(truth == 1, rows, 1 - rows)[:, truth >= 0]
    expected = mixture_weights(right, np.ones(2))
    np.testing.assert_allclose(blend(trials, problem)[:, 0], expected)


def test_curves_of_trials_end_with_the_loss_of_what_they_predicted():
    threads = saen.generate_threads(40, average_nodes=8, seed=1)
    network = saen.SAENClassifier(epochs=23, n_models=1, radii=(0, 1), random_state=0)
    counts = saen.PartCountsClassifier("neighbourhoods(depth=1)", C=1.0, depth=1)
    candidates = [Candidate({}, each, each) for each in (counts, network)]
    trainer = Trainer(Preparations(threads), Classes(threads.targets))
    parts = [Part((0, i), np.arange(20) + 20 * i, np.empty(0, np.int64)) for i in range(2)]
    inner = Inner(find_metric("accuracy", regression=False), 2)
    trials = try_candidates(trainer, candidates, parts, inner)
    assert list(trials.curves) == [1]
    for part, history in enumerate(trials.curves[1]):
        measured = [epoch for epoch, row in enumerate(history.validation_loss, 1) if row[0]]
        assert measured == [*range(2, 23, 2), 23]
        for fold, where in enumerate(trials.folds[part]):
            rows, truth = trials.held_out[part][1:, where], trials.truth[part][where]
            expected = log_losses(truth)(rows).mean()
            assert history.validation_loss[-1][fold] == pytest.approx(expected, rel=1e-4)


# -- by a metric -------------------------------------------------------------------------------


def weights_of(rows, truth, metric=None, folds=1):
    """The weights of one part whose held-out examples are in equal inner folds."""
    numbers = truth.dtype.kind == "f"
    problem = Numbers(truth) if numbers else Classes(truth)
    unused = np.zeros((len(rows), 1))
    size = len(truth) // folds
    slices = [slice(size * i, size * (i + 1)) for i in range(folds)]
    trials = Trials(
        [*range(len(rows))],
        [rows],
        [truth],
        [slices],
        unused,
        unused,
        [],
        {},
        {},
        np.ones(len(rows)),
    )
    rule = blend if metric is None else blend_by(find_metric(metric, regression=numbers))
    return rule(trials, problem)[:, 0]


def slow_greedy(rows, key):
    """Shares of the rounds in which the best sum by `key` was that with each candidate."""
    chosen = []
    for _ in range(GREEDY_ROUNDS):
        averages = [np.mean([*rows[chosen], each], axis=0) for each in rows]
        chosen.append(max(range(len(rows)), key=lambda i: key(averages[i])))
    return np.bincount(chosen, minlength=len(rows)) / GREEDY_ROUNDS


def pairs_in_order(truth, scores):
    """ROC-AUC: the share of pairs of both classes whose scores are in order, half of equal ones."""
    differences = scores[truth == 1][:, None] - scores[truth == 0]
    return (np.sign(differences) / 2 + 0.5).mean()


def of_two_classes(positive):
    return np.stack([1 - positive, positive], axis=-1)


def noisy_candidates(n=60, seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.permutation(np.arange(n) % 2)
    noise = rng.normal(size=(4, n)) * np.array([0.8, 1.0, 1.5, 4.0])[:, None]
    return of_two_classes(1 / (1 + np.exp(-(2 * truth - 1 + noise)))), truth


def test_blend_by_a_metric_is_a_literal_greedy_selection():
    rows, truth = noisy_candidates()
    loss = log_losses(truth)

    def key(average):
        folds = zip(np.split(truth, 3), np.split(average[:, 1], 3), strict=True)
        score = np.mean([pairs_in_order(y, scores) for y, scores in folds])
        return round(score, 9), -loss(average[None]).mean()

    weights = weights_of(rows, truth, "roc_auc", folds=3)
    np.testing.assert_allclose(weights, slow_greedy(rows, key))
    assert (weights > 0).sum() > 1
    assert not np.array_equal(weights, weights_of(rows, truth))


def test_blend_of_many_examples_without_a_metric_selects_by_loss_alone():
    rows, truth = noisy_candidates(FEW_EXAMPLES)
    loss = log_losses(truth)
    counts, total = np.zeros(4), np.zeros_like(rows[0])
    for number in range(1, GREEDY_ROUNDS + 1):
        best = loss((total + rows) / number).mean(axis=1).argmin()
        counts[best] += 1
        total = total + rows[best]
    np.testing.assert_array_equal(weights_of(rows, truth), counts / GREEDY_ROUNDS)


def test_blend_by_roc_auc_prefers_the_right_order_to_sure_probabilities():
    truth = np.arange(40) % 2
    order = 0.5 + 1e-3 * (2 * truth - 1)  # nothing wrong, nothing sure
    sure = np.where(np.arange(40) < 36, truth, 1 - truth) * 0.8 + 0.1
    rows = of_two_classes(np.stack([sure, order]))
    assert blend_weights(rows, log_losses(truth)).tolist() == [1, 0]
    weights = weights_of(rows, truth, "roc_auc")
    assert pairs_in_order(truth, weights @ rows[..., 1]) == 1
    assert weights[1] == 1


def test_blend_by_a_metric_takes_the_lesser_loss_of_equal_scores():
    truth = np.arange(40) % 2
    positive = np.stack([0.5 + each * (2 * truth - 1) for each in (0.1, 0.3, 0.2)])
    assert weights_of(of_two_classes(positive), truth, "accuracy").tolist() == [0, 1, 0]


@pytest.mark.parametrize(("n", "tests"), [(400, [80] * 5), (600, [200] * 3), (9000, [900])])
def test_inner_folds_go_by_the_number_of_examples(n, tests):
    part = Part((0, 0), np.arange(n), np.arange(n, n + 1))
    inner = Inner(find_metric("accuracy", regression=False), "auto")
    parts = inner.parts(part, np.arange(n + 1) % 2, seed=0)
    assert [len(each.test) for each in parts] == tests
    for each in parts:
        both = np.concatenate([each.train, each.test])
        assert np.array_equal(np.sort(both), part.train)


def test_one_inner_split_of_many_needs_frequent_classes_and_no_groups():
    many = np.arange(9000) % 3
    rare = np.where(np.arange(9000) < 50, 3, many)
    assert usual_inner_folds(many) == 1
    assert usual_inner_folds(many / 2) == 1  # numbers
    assert usual_inner_folds(rare) == 3
    assert usual_inner_folds(many, grouped=True) == 3
    assert usual_inner_folds(np.stack([many % 2, many % 2], axis=1)) == 3
    assert usual_inner_folds(np.arange(40) // 4) == 3  # no class has five members


def test_blend_by_a_metric_does_not_compare_predictions_across_inner_folds():
    truth = np.arange(40) % 2
    shifted = np.repeat([0.1, 0.8], 20) + 0.1 * truth  # in order within each fold
    flawed = np.where(np.arange(40) % 20 < 17, truth, 1 - truth) * 0.8 + 0.1
    rows = of_two_classes(np.stack([flawed, shifted]))
    apart, together = (weights_of(rows, truth, "roc_auc", folds=n)[1] for n in (2, 1))
    assert apart > 0.8 > together


def test_blend_by_a_metric_that_is_not_defined_goes_by_loss():
    rows, truth = noisy_candidates()
    rows, truth = rows[:, np.argsort(truth, kind="stable")], np.sort(truth)
    np.testing.assert_array_equal(
        weights_of(rows, truth, "roc_auc", folds=2), blend_weights(rows, log_losses(truth))
    )
    # Of three folds only the one in the middle has both classes: it decides alone.
    middle = slice(20, 40)
    loss = log_losses(truth)

    def key(average):
        score = pairs_in_order(truth[middle], average[middle, 1])
        return round(score, 9), -loss(average[None]).mean()

    found = weights_of(rows, truth, "roc_auc", folds=3)
    np.testing.assert_allclose(found, slow_greedy(rows, key))


@pytest.mark.parametrize("unit", [1e-9, 1e9])
def test_blend_of_numbers_by_mae_is_the_same_in_any_units(unit):
    truth = np.linspace(0, 1, 50)
    far = truth + np.where(np.arange(50) == 7, 9.0, 0.01)
    rows = np.stack([truth + 0.5, far])
    weights = weights_of(unit * rows, unit * truth, "mae")
    np.testing.assert_array_equal(weights, weights_of(rows, truth, "mae"))
    assert not np.array_equal(weights, weights_of(unit * rows, unit * truth))


def test_blend_of_numbers_by_mae_forgives_one_large_error():
    truth = np.linspace(0, 1, 50)
    far = truth + np.where(np.arange(50) == 7, 9.0, 0.01)
    rows = np.stack([truth + 0.5, far])

    def key(average):
        return -round(np.abs(average - truth).mean(), 9), -np.square(average - truth).mean()

    weights = weights_of(rows, truth, "mae")
    np.testing.assert_allclose(weights, slow_greedy(rows, key))
    assert weights[1] > 0.5 > weights_of(rows, truth)[1]
