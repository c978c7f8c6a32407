"""Many trainings side by side: the same results as one by one, in groups chosen by rule."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from saen import SAENClassifier, generate_threads
from saen.network import ensemble
from saen.network.ensemble import MIN_GROUP_SIZE, PartTraining, choose_group_size
from saen.network.loss import Task
from saen.network.settings import Part
from saen.network.training import outputs, train

THREADS = generate_threads(30, seed=1)
CODES = np.unique(THREADS.targets, return_inverse=True)[1]
TASK = Task.classification(CODES)
PARTS = [Part((0, fold), np.flatnonzero(np.arange(30) % 3 != fold), np.arange(fold, 30, 3))
         for fold in range(3)]  # fmt: skip


def make_plan(**arguments):
    estimator = SAENClassifier(epochs=3, n_models=2, dtype="float64", device="cpu", **arguments)
    return estimator.plan(estimator.prepare(THREADS), 1)


def test_parts_are_trained_as_if_alone():
    plan = make_plan()
    results = PartTraining(plan, TASK, PARTS, seed=5, group_size=4).run()
    for number, part in enumerate(PARTS):
        weights = np.zeros((30, 2))
        weights[part.train] = 1
        network = plan.network([(5, 0, number, model) for model in range(2)])
        history = train(
            network, plan.compressed, Task.classification(CODES, weights), plan.settings
        )
        unique = outputs(network, plan.compressed.hierarchy).numpy()
        expected = unique[plan.compressed.top[part.test]]
        np.testing.assert_allclose(results.outputs[number], expected, atol=1e-9)
        curves = results.loss[:, 2 * number : 2 * number + 2]
        np.testing.assert_allclose(curves, history.loss, atol=1e-9)


def test_finished_groups_are_read_instead_of_trained(tmp_path, monkeypatch):
    plan, done = make_plan(), []
    how = {"folder": tmp_path, "group_size": 2, "progress": done.append}
    first = PartTraining(plan, TASK, PARTS, **how).run()
    assert sum(done) == 3 * 2 * 3
    monkeypatch.setattr(ensemble, "train", None)
    done.clear()
    second = PartTraining(plan, TASK, PARTS, **how).run()
    assert sum(done) == 3 * 2 * 3
    for one, other in zip(first.outputs, second.outputs, strict=True):
        np.testing.assert_array_equal(one, other)
    assert not list(tmp_path.glob("*.checkpoint"))


def test_networks_are_made_on_the_device_of_the_plan():
    plan = replace(make_plan(), device=torch.device("meta"))
    assert next(plan.network([0]).parameters()).device == plan.device


def test_parts_are_trained_until_the_epoch_that_is_asked_for():
    plan = make_plan()
    results = PartTraining(plan, TASK, PARTS, until=1).run()
    assert results.loss.shape == (1, 6)
    assert results.test_accuracy is None
    assert results.test_loss is None


def test_curves_on_tests_are_measured_on_request():
    results = PartTraining(make_plan(), TASK, PARTS, test_curves=True).run()
    assert results.test_accuracy.shape == results.loss.shape == (3, 6)
    final = (results.outputs[0][:, 0, 0] > 0) == CODES[PARTS[0].test]
    assert results.test_accuracy[-1, 0] == pytest.approx(final.mean())


def test_group_size_follows_the_activations_of_a_step(monkeypatch):
    plan = make_plan(batch_size="all")
    assert choose_group_size(plan, 300) == 300
    monkeypatch.setattr(ensemble, "MAX_STEP_ACTIVATIONS", 1)
    assert choose_group_size(plan, 4) == 4
    assert choose_group_size(plan, 300) == MIN_GROUP_SIZE
    objects = sum(plan.compressed.hierarchy.sizes)
    monkeypatch.setattr(ensemble, "MAX_STEP_ACTIVATIONS", 40 * 32 * objects)
    assert choose_group_size(plan, 100) == 34  # three groups, about equal
    assert choose_group_size(make_plan(batch_size=5), 100) > 34
