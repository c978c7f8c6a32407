"""Targets and losses: several targets at once, with gaps."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from saen.errors import InputError
from saen.network.loss import Task

CODES = np.array([[0, 1, -1], [1, -1, -1], [1, 0, 1], [0, 0, 0]])
NUMBERS = np.array([[0.5, np.nan], [1.0, 2.0], [np.nan, np.nan], [-1.0, 4.0]])
WEIGHTS = np.array([[1.0, 0.0], [2.0, 1.0], [1.0, 1.0], [0.0, 3.0]])
RNG = np.random.default_rng(0)


def losses_of(task, outputs):
    everything = np.arange(len(task.targets))
    histograms = task.histograms(everything, everything, len(everything), task.weights)
    return [t.numpy() for t in task.losses(outputs, torch.from_numpy(histograms))]


def test_several_targets_have_one_logistic_loss_for_each_known_one():
    task = Task.classification(CODES, WEIGHTS)
    outputs = torch.from_numpy(RNG.normal(size=(4, 2, 3)))
    loss, weight = losses_of(task, outputs)
    expected, count = np.zeros(2), np.zeros(2)
    for example, target in zip(*np.nonzero(CODES >= 0), strict=True):
        for model in range(2):
            margin = (2 * CODES[example, target] - 1) * outputs[example, model, target].item()
            expected[model] += WEIGHTS[example, model] * np.log1p(np.exp(-margin))
            count[model] += WEIGHTS[example, model]
    assert task.n_outputs == 3
    np.testing.assert_allclose(loss, expected)
    np.testing.assert_allclose(weight, count)


def test_numbers_have_squared_errors_of_the_known_ones():
    task = Task.regression(NUMBERS, WEIGHTS)
    outputs = torch.from_numpy(RNG.normal(size=(4, 2, 2)))
    errors = np.nan_to_num((outputs.numpy() - NUMBERS[:, None]) ** 2)
    loss, weight = losses_of(task, outputs)
    np.testing.assert_allclose(loss, (WEIGHTS[..., None] * errors).sum(axis=(0, 2)))
    known = np.isfinite(NUMBERS)[:, None] * WEIGHTS[..., None]
    np.testing.assert_allclose(weight, known.mean(axis=2).sum(axis=0))


def test_one_target_as_a_matrix_is_the_same_task():
    flat, column = Task.classification(CODES[:, 0]), Task.classification(CODES[:, :1])
    outputs = torch.from_numpy(RNG.normal(size=(4, 1, 1)))
    np.testing.assert_array_equal(losses_of(flat, outputs), losses_of(column, outputs))


def test_constant_losses_are_the_least_of_constant_outputs():
    task = Task.classification(CODES, WEIGHTS)
    shares = [np.average(c[c >= 0], weights=WEIGHTS[c >= 0, 0]) for c in CODES.T]
    logits = np.clip(np.log(np.array(shares) / (1 - np.array(shares)).clip(1e-30)), -30, 30)
    outputs = torch.from_numpy(np.broadcast_to(logits, (4, 2, 3)).copy())
    loss, weight = losses_of(task, outputs)
    assert task.constant_losses()[0] == pytest.approx(loss[0] / weight[0])
    numbers = Task.regression(NUMBERS, WEIGHTS)
    means = [np.average(c[np.isfinite(c)], weights=WEIGHTS[np.isfinite(c), 0]) for c in NUMBERS.T]
    outputs = torch.from_numpy(np.broadcast_to(means, (4, 2, 2)).copy())
    loss, weight = losses_of(numbers, outputs)
    assert numbers.constant_losses()[0] == pytest.approx(loss[0] / weight[0])


def test_codes_of_several_targets_are_0_1_or_unknown():
    with pytest.raises(InputError, match="class codes from 0 to 1"):
        Task("binary", CODES - 1, WEIGHTS, n_classes=2).check(4, 2)
    with pytest.raises(InputError, match="integers ≥ 0"):
        Task.classification([-1, 0])
