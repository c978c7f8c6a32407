"""Many trainings side by side: the same results as one by one, in groups chosen by rule."""

from __future__ import annotations

import threading
from dataclasses import replace

import numpy as np
import pytest
import torch
from numpy.testing import assert_array_equal

from saen import SAENClassifier, generate_threads
from saen._util.executor import Tasks
from saen.cluster.executors import SerialExecutor
from saen.io.store import container
from saen.network import ensemble
from saen.network.architecture import join_models
from saen.network.batches import seen_in_training
from saen.network.ensemble import Training, choose_group_size
from saen.network.loss import Task
from saen.network.settings import DivergenceWarning, Run
from saen.network.training import outputs, train
from tests.references.networks import assert_close

THREADS = generate_threads(30, seed=1)
CODES = np.unique(THREADS.targets, return_inverse=True)[1]
TASK = Task.classification(CODES)
FOLD_OF = np.arange(30) % 3


def run_of(fold, network):
    train, test = np.flatnonzero(fold != FOLD_OF), np.flatnonzero(fold == FOLD_OF)
    return Run((0, fold, network), train, test[:0], test, n_batches=2)


RUNS = [run_of(fold, network) for fold in range(3) for network in range(2)]


def make_plan(seed=1, **arguments):
    fixed = {"epochs": 3, "dtype": "float64", "device": "cpu"}
    estimator = SAENClassifier(**fixed | arguments)
    learner = estimator.learner()
    compressed = estimator.prepare(THREADS).decomposed(learner.spec, np.arange(30)).compressed
    return learner.plan(compressed, 1, seed)


CLASS_WEIGHTS = np.array([[1.0, 1.0, 1.0, 2.0, 3.0, 1.0], [1.0, 1.0, 2.0, 2.0, 4.0, 4.0]])
NUMBERS = THREADS.sizes[:, None, None] / np.arange(10.0, 70.0, 10.0)[:, None]  # of every run


@pytest.mark.parametrize("dropout", [0.0, 0.3])
@pytest.mark.parametrize("numbers", [False, True])
def test_networks_are_trained_as_if_alone(numbers, dropout):
    plan, done = make_plan(min_count=20, dropout=dropout), []
    task = replace(TASK, class_weights=CLASS_WEIGHTS)
    if numbers:
        task = Task("squares", NUMBERS, TASK.weights)
    results = Training(plan, task, RUNS, group_size=4, keep=True, progress=done.append).run()
    assert sum(done) == 6 * 3
    for number, run in enumerate(RUNS):
        weights = np.zeros((30, 1))
        weights[run.train] = 1
        hierarchy, top = plan.compressed.hierarchy, plan.compressed.top
        seen = seen_in_training(hierarchy, top, weights, 20)
        network = plan.network([run.seed], seen)
        own = Task.classification(CODES, weights, class_weights=CLASS_WEIGHTS[:, number])
        if numbers:
            own = Task("squares", NUMBERS[:, number], weights)
        how = {"min_count": 20, "n_batches": run.n_batches}
        history = train(network, plan.compressed, own, plan.settings, **how)
        unique = outputs(network, hierarchy).numpy()
        expected = unique[plan.compressed.top[run.test], 0]
        np.testing.assert_allclose(results.outputs[number], expected, atol=1e-9)
        np.testing.assert_allclose(results.loss[:, [number]], history.loss, atol=1e-9)
        for key, array in results.states[number].items():
            assert_close(array, network.state_dict()[key], 1e-9, key, floor=1e-5)
    assert not results.diverged.any()


def test_networks_with_other_numbers_of_batches_train_in_other_groups():
    runs = [replace(run, n_batches=1 + number % 2) for number, run in enumerate(RUNS)]
    together = Training(make_plan(), TASK, runs).run()
    for number, run in enumerate(runs):
        alone = Training(make_plan(), TASK, [run]).run()
        np.testing.assert_allclose(together.outputs[number], alone.outputs[0], atol=1e-9)
        np.testing.assert_allclose(together.loss[:, [number]], alone.loss, atol=1e-9)


def test_networks_are_asked_about_held_out_examples_and_then_about_tests():
    [whole] = Training(make_plan(), TASK, RUNS[:1]).run().outputs
    asked = replace(RUNS[0], held_out=RUNS[0].test[[3, 1]], test=RUNS[0].test[[0, 1, 1]])
    [rows] = Training(make_plan(), TASK, [asked]).run().outputs
    np.testing.assert_allclose(rows, whole[[3, 1, 0, 1, 1]], atol=1e-12)


def test_networks_of_other_groups_are_joined_and_predict_the_same():
    plan = make_plan()
    results = Training(plan, TASK, RUNS, group_size=4, keep=True).run()
    network = plan.network([0] * 6)
    state = join_models(results.states)
    network.load_state_dict({key: torch.from_numpy(array) for key, array in state.items()})
    found = outputs(network, plan.compressed.hierarchy).numpy()[plan.compressed.top]
    for number, run in enumerate(RUNS):
        np.testing.assert_allclose(found[run.test, number], results.outputs[number], atol=1e-12)
    assert Training(plan, TASK, RUNS).run().states == [{}] * 6


def test_networks_that_diverge_do_not_disturb_the_others():
    values = NUMBERS.copy()
    values[:, 2] = np.nan
    values[RUNS[2].train, 2] = 1e160  # whose square is infinite
    task = Task("squares", values, TASK.weights)
    results = Training(make_plan(), task, RUNS, test_every=1).run()
    assert results.diverged.tolist() == [number == 2 for number in range(6)]
    others = [0, 1, 3, 4, 5]
    alone = Training(
        make_plan(), replace(task, targets=values[:, others]), [RUNS[n] for n in others]
    ).run()
    for place, number in enumerate(others):
        np.testing.assert_allclose(results.outputs[number], alone.outputs[place], atol=1e-9)
    assert np.isnan(results.loss[:, 2]).all()
    np.testing.assert_allclose(results.loss[:, others], alone.loss, atol=1e-9)


def test_finished_groups_are_read_instead_of_trained(tmp_path, monkeypatch):
    plan, done, checkpoints = make_plan(), [], []

    def spy(*arguments, checkpoint, **options):
        checkpoints.append(checkpoint.name)
        return train(*arguments, checkpoint=checkpoint, **options)

    monkeypatch.setattr(ensemble, "train", spy)
    how = {"folder": tmp_path, "group_size": 2, "keep": True, "progress": done.append}
    first = Training(plan, TASK, RUNS, **how).run()
    assert sum(done) == 6 * 3
    assert checkpoints == [f"networks-000{group}.checkpoint" for group in (0, 1, 2)]
    monkeypatch.setattr(ensemble, "train", None)
    done.clear()
    second = Training(plan, TASK, RUNS, **how).run()
    assert sum(done) == 6 * 3
    for one, other in zip(first.outputs, second.outputs, strict=True):
        np.testing.assert_array_equal(one, other)
    for one, other in zip(first.states, second.states, strict=True):
        for key, array in one.items():
            np.testing.assert_array_equal(array, other[key])
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
    here = Training(plan, task, RUNS, group_size=4).run()
    how = {"group_size": 4, "folder": tmp_path, "progress": done.append}
    there = Training(plan, task, RUNS, tasks=Tasks(executor), **how).run()
    np.testing.assert_array_equal(there.outputs, here.outputs)
    np.testing.assert_array_equal(there.loss, here.loss)
    assert done == [3 * 4, 3 * 2]
    for compressed, group in executor.sent:  # the hierarchy once, and not as a part of a group
        assert (compressed is plan.compressed, group.plan.compressed, group.file) == (1, None, None)
    files = sorted(tmp_path.iterdir())
    assert [file.name for file in files] == ["networks-0000.saen", "networks-0001.saen"]
    kind, document, _ = container.read(files[1])
    assert (kind, document["networks"]) == ("predictions", 2)
    files[1].unlink()
    tasks = Tasks(SerialExecutor())
    again = Training(plan, task, RUNS, tasks=tasks, **how).run()
    assert [tasks.has(file.stem) for file in files] == [False, True]
    np.testing.assert_array_equal(again.outputs, here.outputs)


def test_groups_in_tasks_warn_here_of_what_did_not_learn_there():
    plan = make_plan(epochs=12, learning_rate=1e3, normalization="none")
    with pytest.warns(DivergenceWarning, match="did not learn"):
        Training(plan, TASK, RUNS, tasks=Tasks(SerialExecutor())).run()


def test_networks_are_made_on_the_device_of_the_plan():
    plan = replace(make_plan(), device=torch.device("meta"))
    assert next(plan.network([0]).parameters()).device == plan.device


def test_networks_are_trained_until_the_epoch_that_is_asked_for():
    results = Training(make_plan(), TASK, RUNS, until=1).run()
    assert results.loss.shape == (1, 6)
    assert results.test_accuracy is None
    assert results.test_loss is None


def test_curves_on_held_out_examples_are_measured_on_request():
    runs = [replace(run, held_out=run.test, test=run.test[:0]) for run in RUNS]
    results = Training(make_plan(), TASK, runs, test_every=2).run()
    assert results.test_accuracy.shape == results.loss.shape == (3, 6)
    assert np.isnan(results.test_loss[0]).all()
    assert np.isfinite(results.test_loss[1:]).all()
    final = (results.outputs[0][:, 0] > 0) == CODES[runs[0].held_out]
    assert results.test_accuracy[-1, 0] == pytest.approx(final.mean())
    history = results.history(2, 4)
    assert history.validation_loss[0] == [None, None]
    assert np.array_equal(history.validation_loss[1:], results.test_loss[1:, 2:4])


@pytest.fixture
def cores():
    """Two of them, whatever the machine and the settings of the tests."""
    torch.set_num_threads(2)
    yield 2
    torch.set_num_threads(1)


def test_groups_on_several_cores_give_what_they_give_one_by_one(tmp_path, cores):
    plan, done, main = make_plan(dtype="float32"), [], threading.get_ident()

    def progress(epochs):
        assert threading.get_ident() == main
        done.append(epochs)

    how = {"group_size": 1, "keep": True, "test_every": 1}
    together = Training(plan, TASK, RUNS, folder=tmp_path, progress=progress, **how).run()
    assert sum(done) == len(RUNS) * 3
    assert len([*tmp_path.iterdir()]) == len(RUNS)
    assert torch.get_num_threads() == cores
    torch.set_num_threads(1)
    alone = Training(plan, TASK, RUNS, **how).run()
    for one, other in zip(together.outputs, alone.outputs, strict=True):
        assert_array_equal(one, other)
    assert_array_equal(together.loss, alone.loss)
    for one, other in zip(together.states, alone.states, strict=True):
        assert {key: each.tobytes() for key, each in one.items()} == {
            key: each.tobytes() for key, each in other.items()
        }


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_what_stops_one_thread_stops_the_others_and_leaves_none_behind(cores, error):
    epochs = 100_000  # the test would time out
    plan = make_plan()
    plan = replace(plan, settings=replace(plan.settings, epochs=epochs, schedule="constant"))
    before = threading.active_count()

    def progress(_):
        raise error

    with pytest.raises(error):
        Training(plan, TASK, RUNS, group_size=1, progress=progress).run()
    assert threading.active_count() == before
    assert torch.get_num_threads() == cores


def test_group_size_follows_the_activations_of_a_step(monkeypatch):
    plan = make_plan()
    assert choose_group_size(plan, 300, 1) == 300
    objects = sum(plan.compressed.hierarchy.sizes)
    monkeypatch.setattr(ensemble, "MAX_STEP_ACTIVATIONS", 40 * 32 * objects)
    assert choose_group_size(plan, 100, 1) == 34  # three groups, about equal
    assert choose_group_size(plan, 100, 6) > 34
    monkeypatch.setattr(ensemble, "MAX_SHARED_ACTIVATIONS", 32 * objects - 1)
    assert choose_group_size(plan, 100, 1) == 1
    assert choose_group_size(plan, 100, 6) > 34
