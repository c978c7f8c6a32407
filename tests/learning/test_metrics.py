"""Scores against plain counting."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import confusion_matrix

from saen.learning.metrics import calibrate, confusion, log_losses


@st.composite
def predictions(draw):
    """Targets (n,), probabilities (repeats, n, classes)."""
    n, classes = draw(st.integers(0, 8)), draw(st.integers(2, 4))
    seed = draw(st.integers(0, 2**32 - 1))
    random = np.random.default_rng(seed)
    # Few different numbers, so that ties and the edges of bins occur.
    weights = random.integers(
        1, draw(st.sampled_from([3, 1000])), (draw(st.integers(1, 3)), n, classes)
    )
    return random.integers(0, classes, n), weights / weights.sum(axis=2, keepdims=True)


@given(predictions(), st.integers(1, 12))
def test_the_calibration_error_is_the_weighted_gap_of_the_bins(given, bins):
    targets, probabilities = given
    members = {}
    for repeat in probabilities:
        for target, row in zip(targets, repeat, strict=True):
            confidence = max(row)
            place = min(math.floor(confidence * bins), bins - 1)
            members.setdefault(place, []).append(
                (confidence, list(row).index(confidence) == target)
            )
    found = calibrate(targets, probabilities, bins)
    error, total = 0.0, probabilities.shape[0] * len(targets)
    for place in range(bins):
        mine = members.get(place, [])
        assert found.counts[place] == len(mine)
        if mine:
            confidence = sum(c for c, _ in mine) / len(mine)
            accuracy = sum(right for _, right in mine) / len(mine)
            assert found.confidence[place] == pytest.approx(confidence)
            assert found.accuracy[place] == pytest.approx(accuracy)
            error += abs(accuracy - confidence) * len(mine) / total
    assert found.error == pytest.approx(error, abs=1e-12)


def test_sure_and_right_is_calibrated_and_sure_and_wrong_is_not():
    sure = [[1.0, 0.0], [0.0, 1.0]]
    assert calibrate([0, 1], sure).error == 0
    assert calibrate([0, 1], sure).counts.tolist() == [0] * 9 + [2]
    assert calibrate([1, 0], sure).error == 1


@given(predictions())
def test_confusions_are_those_of_scikit_learn_repeat_by_repeat(given):
    targets, probabilities = given
    n_classes = probabilities.shape[2]
    made = probabilities.argmax(axis=2)
    wanted = sum(
        confusion_matrix(targets, repeat, labels=range(n_classes)) if len(targets) else 0
        for repeat in made
    )
    np.testing.assert_array_equal(confusion(targets, made, n_classes), wanted)


@given(predictions())
def test_losses_are_means_over_repeats(given):
    targets, probabilities = given
    for test, target in enumerate(targets):
        each = [-math.log(repeat[test][target]) for repeat in probabilities]
        assert log_losses(targets, probabilities)[test] == pytest.approx(sum(each) / len(each))


def test_the_loss_of_the_impossible_is_finite():
    assert log_losses([0], [[[0.0, 1.0]]])[0] == pytest.approx(12 * math.log(10))
