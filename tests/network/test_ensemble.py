"""Many trainings side by side: the same results as one by one, in groups chosen by rule."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from saen import SAENClassifier, generate_threads
from saen._util.executor import Tasks
from saen.cluster.executors import SerialExecutor
from saen.io import container
from saen.network import ensemble
from saen.network.ensemble import MIN_GROUP_SIZE, PartTraining, choose_group_size
from saen.network.loss import Task
from saen.network.settings import DivergenceWarning, Part
from saen.network.training import outputs, train

THREADS = generate_threads(30, seed=1)
CODES = np.unique(THREADS.targets, return_inverse=True)[1]
TASK = Task.classification(CODES)
PARTS = [Part((0, fold), np.flatnonzero(np.arange(30) % 3 != fold), np.arange(fold, 30, 3))
         for fold in range(3)]  # fmt: skip


def make_plan(**arguments):
    fixed = {"epochs": 3, "n_models": 2, "dtype": "float64", "device": "cpu"}
    estimator = SAENClassifier(**fixed | arguments)
    return estimator.plan(estimator.prepare(THREADS), 1)


CLASS_WEIGHTS = np.array([[1.0, 1.0, 1.0], [1.0, 2.0, 4.0]])
NUMBERS = THREADS.sizes[:, None, None] / np.array([10.0, 20.0, 30.0])[:, None]  # of every part


@pytest.mark.parametrize("numbers", [False, True])
def test_parts_are_trained_as_if_alone(numbers):
    plan, done = make_plan(min_count=20), []
    task = replace(TASK, class_weights=CLASS_WEIGHTS)
    if numbers:
        task = Task("squares", NUMBERS, TASK.weights)
    how = {"seed": 5, "group_size": 4, "progress": done.append}
    results = PartTraining(plan, task, PARTS, **how).run()
    assert sum(done) == 3 * 2 * 3
    for number, part in enumerate(PARTS):
        weights = np.zeros((30, 2))
        weights[part.train] = 1
        network = plan.network([(5, 0, number, model) for model in range(2)])
        own = Task.classification(CODES, weights, class_weights=CLASS_WEIGHTS[:, number])
        if numbers:
            own = Task("squares", NUMBERS[:, number], weights)
        history = train(network, plan.compressed, own, plan.settings, min_count=20)
        unique = outputs(network, plan.compressed.hierarchy).numpy()
        expected = unique[plan.compressed.top[part.test]]
        np.testing.assert_allclose(results.outputs[number], expected, atol=1e-9)
        curves = results.loss[:, 2 * number : 2 * number + 2]
        np.testing.assert_allclose(curves, history.loss, atol=1e-9)


def test_finished_groups_are_read_instead_of_trained(tmp_path, monkeypatch):
    plan, done, checkpoints = make_plan(), [], []

    def spy(*arguments, checkpoint, **options):
        checkpoints.append(checkpoint.name)
        return train(*arguments, checkpoint=checkpoint, **options)

    monkeypatch.setattr(ensemble, "train", spy)
    how = {"folder": tmp_path, "group_size": 2, "progress": done.append}
    first = PartTraining(plan, TASK, PARTS, **how).run()
    assert sum(done) == 3 * 2 * 3
    assert checkpoints == [f"networks-000{first}.checkpoint" for first in (0, 2, 4)]
    monkeypatch.setattr(ensemble, "train", None)
    done.clear()
    second = PartTraining(plan, TASK, PARTS, **how).run()
    assert sum(done) == 3 * 2 * 3
    for one, other in zip(first.outputs, second.outputs, strict=True):
        np.testing.assert_array_equal(one, other)
    assert not list(tmp_path.glob("*.checkpoint"))


class Recorded(SerialExecutor):
    """Keeps what is sent."""

    def __init__(self):
        super().__init__()
        self.sent = []

    def submit(self, name, function, *arguments):
        self.sent.append(arguments)
        super().submit(name, function, *arguments)


def test_groups_in_tasks_give_what_is_trained_here(tmp_path):
    plan, done, executor = make_plan(), [], Recorded()
    task = replace(TASK, class_weights=CLASS_WEIGHTS)
    here = PartTraining(plan, task, PARTS, seed=5, group_size=4).run()
    how = {"seed": 5, "group_size": 4, "folder": tmp_path, "progress": done.append}
    there = PartTraining(plan, task, PARTS, tasks=Tasks(executor), **how).run()
    np.testing.assert_array_equal(there.outputs, here.outputs)
    np.testing.assert_array_equal(there.loss, here.loss)
    assert done == [3 * 4, 3 * 2]
    for compressed, group in executor.sent:  # the hierarchy once, and not as a part of a group
        assert (compressed is plan.compressed, group.plan.compressed, group.file) == (1, None, None)
    files = sorted(tmp_path.iterdir())
    assert [file.name for file in files] == ["networks-0000.saen", "networks-0004.saen"]
    kind, document, _ = container.read(files[1])
    assert (kind, document["networks"]) == ("predictions", 2)
    files[1].unlink()
    tasks = Tasks(SerialExecutor())
    again = PartTraining(plan, task, PARTS, tasks=tasks, **how).run()
    assert [tasks.has(file.stem) for file in files] == [False, True]
    np.testing.assert_array_equal(again.outputs, here.outputs)


def test_groups_in_tasks_warn_here_of_what_diverged_there():
    plan = make_plan(epochs=12, learning_rate=1e3, normalisation="none")
    with pytest.warns(DivergenceWarning, match="did not learn"):
        PartTraining(plan, TASK, PARTS, tasks=Tasks(SerialExecutor())).run()


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
    results = PartTraining(make_plan(), TASK, PARTS, test_every=2).run()
    assert results.test_accuracy.shape == results.loss.shape == (3, 6)
    assert np.isnan(results.test_loss[0]).all()
    assert np.isfinite(results.test_loss[1:]).all()
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
