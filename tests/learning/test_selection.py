"""Weights of blends, and the best of some settings."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from saen.learning.selection import blend_weights


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
