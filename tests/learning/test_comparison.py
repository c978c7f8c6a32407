"""Comparisons of evaluations: above, level or below by a corrected interval."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import saen
from saen.learning.comparison import compare
from saen.learning.evaluation import Evaluation
from saen.learning.splits import make_splits
from tests.refusals import refuses

N = 200


def evaluation(skill, *, seed=0, folds_seed=0, n_repeats=2, n_folds=5, n=N) -> Evaluation:
    """Of a model that is right on `skill` of the examples, whose easy ones are always the same."""
    targets = np.arange(n) % 2
    splits = make_splits(targets.astype(str), n_repeats, n_folds, folds_seed)
    easy = np.random.default_rng(3).random((1, n))
    noise = np.random.default_rng(seed).random((n_repeats, n))
    right = 0.9 * easy + 0.1 * noise < skill
    second = np.where(right, targets, 1 - targets) * 0.8 + 0.1
    outputs = np.stack([1 - second, second], axis=2)
    return Evaluation(
        classes=np.array(["a", "b"]),
        targets=targets,
        splits=splits,
        outputs=outputs,
        rows=np.arange(n),
        loss=np.empty((0, 0)),
        seconds={},
    )


def test_comparison_on_the_same_folds_is_paired_by_hand():
    one, other = evaluation(0.7, seed=1), evaluation(0.65, seed=2)
    found = compare(one, other)
    d = (one.accuracies() - other.accuracies()).ravel()
    half = stats.t.ppf(0.975, 9) * np.sqrt((1 / 10 + 1 / 4) * d.var(ddof=1))
    assert (found.paired, found.folds) == (True, 10)
    assert found.difference == pytest.approx(d.mean())
    assert found.interval == pytest.approx((d.mean() - half, d.mean() + half))


def test_comparison_on_other_folds_adds_both_variances():
    one, other = evaluation(0.7, seed=1), evaluation(0.65, seed=2, folds_seed=9, n_folds=10)
    found = compare(one, other)
    a, b = one.accuracies().ravel(), other.accuracies().ravel()
    variances = (1 / 10 + 1 / 4) * a.var(ddof=1), (1 / 20 + 1 / 9) * b.var(ddof=1)
    degrees = sum(variances) ** 2 / (variances[0] ** 2 / 9 + variances[1] ** 2 / 19)
    half = stats.t.ppf(0.975, degrees) * np.sqrt(sum(variances))
    assert not found.paired
    assert found.interval == pytest.approx((found.difference - half, found.difference + half))


def test_pairing_tells_more_than_independent_folds_do():
    one, other = evaluation(0.7, seed=1), evaluation(0.6, seed=2)
    apart = evaluation(0.6, seed=2, folds_seed=9)
    paired, unpaired = (compare(one, each).interval for each in (other, apart))
    assert paired[1] - paired[0] < 0.8 * (unpaired[1] - unpaired[0])
    assert compare(one, other).verdict == "above"
    assert compare(other, one).verdict == "below"
    assert compare(one, one).verdict == "level"


def test_repeats_that_both_have_are_paired():
    short, long = evaluation(0.7, seed=1, n_repeats=1), evaluation(0.65, seed=2, n_repeats=3)
    first = replace(
        long, splits=[*short.splits, *long.splits[1:]], outputs=long.outputs
    )  # the seed of folds depends on the number of repeats
    found = compare(short, first)
    assert (found.paired, found.folds) == (True, 5)


def test_a_smaller_loss_is_above():
    good, bad = evaluation(0.9, seed=1), evaluation(0.5, seed=2)
    found = compare(good, bad, "log_loss")
    assert found.difference < 0
    assert found.verdict == "above"


def test_published_scores_are_compared_by_our_interval():
    one = evaluation(0.7)
    low, high = one.summary("accuracy")["interval"]
    assert [compare(one, score).verdict for score in (low - 0.01, low + 0.01, high + 0.01)] == [
        "above",
        "level",
        "below",
    ]


def test_comparison_as_text_and_json():
    found = compare(evaluation(0.9, seed=1), evaluation(0.5, seed=2))
    assert str(found).startswith("above: accuracy +")
    assert "paired over 10 folds" in str(found)
    document = json.loads(json.dumps(found.to_json()))
    assert document["metric"] == "accuracy"
    assert document["verdict"] == "above"
    single = replace(evaluation(0.7), splits=[evaluation(0.7).splits[0][:1]])
    assert "no interval" in str(compare(single, single))


def test_classes_are_not_compared_with_numbers():
    numbers = replace(evaluation(0.7), classes=None, metric="mae", outputs=np.zeros((2, N)))
    with refuses("one evaluation predicts classes, the other numbers"):
        compare(evaluation(0.7), numbers)


def test_models_are_compared_from_python():
    threads = saen.generate_threads(80, seed=1)
    one, other = (
        saen.cross_validate(model, threads, threads.targets, n_repeats=1, n_folds=4)
        for model in (saen.PartCountsClassifier(), saen.PartCountsClassifier(depth=0))
    )
    assert saen.compare(one, other).paired
