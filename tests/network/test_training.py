from __future__ import annotations

import copy
import hashlib
import itertools
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from saen import Compressed, FileError, Graphs, Hierarchy, InputError, Vocabulary, compress, save
from saen.data.content_hash import level_keys
from saen.network import SAEN, Architecture, Settings, Task, train
from saen.network.batches import batch_numbers, seen_in_training
from saen.network.settings import DivergenceError, History
from saen.network.training import Adam, outputs
from tests.references.networks import (
    DEVICES,
    EPSILON,
    assert_close,
    assert_same_state,
    make_network,
    models_of,
    of_model,
    random_hierarchy,
    random_task,
    small_layers,
)
from tests.refusals import refuses

SEEDS: list[Any] = [0, (0, 1), 2, 3]
N = 32


@pytest.fixture(scope="module")
def hierarchy() -> Hierarchy:
    return random_hierarchy(0, n=N, patterns=20, kind="both")


def trained(
    data: Hierarchy | Compressed,
    task: Task,
    settings: Settings,
    seeds: list[Any] = SEEDS,
    *,
    device: str = "cpu",
    dtype: torch.dtype = torch.float64,
    run: dict[str, Any] | None = None,
    **options: Any,
) -> tuple[SAEN, History]:
    """A small network after training, and its history."""
    hierarchy = data.hierarchy if isinstance(data, Compressed) else data
    network = make_network(hierarchy, task.n_outputs, seeds, dtype=dtype, **options).to(device)
    return network, train(network, data, task, settings, **(run or {}))


def assert_same_models(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> None:
    for key, tensor in one.items():
        assert_close(tensor, other[key], 1e-9, key, floor=EPSILON)


def steps(batch_size: int | None) -> dict[str, Any]:
    """Twenty steps over 32 examples."""
    return {"batch_size": batch_size, "epochs": 20 if batch_size is None else 20 * batch_size // N}


def partition(hierarchy: Hierarchy, seed: int, n_batches: int) -> list[np.ndarray]:
    """The first ones of identical examples by their batch, which others do not decide."""
    keys, first = np.unique(level_keys(hierarchy)[-1], axis=0, return_index=True)
    numbers = batch_numbers(keys, np.arange(len(keys)), np.ones((len(keys), 1)), n_batches, seed)
    return [np.sort(first[numbers[:, 0] == number]) for number in range(n_batches)]


# -- many models at once -----------------------------------------------------------------------

WAYS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "plain": (steps(None), {}),
    "normalised": (steps(None), {"normalization": "batch"}),
    "mini-batches": (steps(8), {}),
    "normalised mini-batches": (steps(8), {"normalization": "batch"}),
    "dropout": (steps(8), {"dropout": 0.4}),
    "decay": (steps(8) | {"weight_decay": 0.05, "schedule": "cosine"}, {}),
    "everything": (
        steps(8) | {"weight_decay": 0.05, "schedule": "cosine"},
        {"normalization": "batch", "dropout": 0.4, "negative_slope": 0.2},
    ),
}


@pytest.mark.parametrize(
    ("way", "loss"),
    [
        *((way, "classes") for way in WAYS),
        ("everything", "binary"),
        ("everything", "squares"),
    ],
)
@pytest.mark.parametrize("device", DEVICES)
def test_ensemble_trains_like_its_models_alone_however_they_are_grouped(
    hierarchy: Hierarchy, device: str, way: str, loss: str
) -> None:
    settings, options = Settings(**WAYS[way][0]), WAYS[way][1]
    task = random_task(1, N, len(SEEDS), loss)
    # The last model has training examples in two batches of four.
    batches = partition(hierarchy, settings.seed, 4)
    task.weights[:, 3] = 0.0
    task.weights[np.concatenate([batches[1], batches[3]]), 3] = 1.0
    options = options | {"device": device, "run": {"n_batches": settings.n_batches(N)}}
    together, history = trained(hierarchy, task, settings, **options)
    for group in ([0], [1], [2], [3], [2, 0], [3, 1, 0]):
        network, alone = trained(
            hierarchy,
            models_of(task, group),
            settings,
            [SEEDS[model] for model in group],
            **options,
        )
        for place, model in enumerate(group):
            assert_same_models(of_model(network, place), of_model(together, model))
            assert_close(np.array(alone.loss)[:, place], np.array(history.loss)[:, model], 1e-9)


@pytest.mark.parametrize("normalization", ["none", "batch"])
def test_ensemble_leaves_a_model_without_training_examples_alone(
    hierarchy: Hierarchy, normalization: str
) -> None:
    task = random_task(1, N, 2)
    task.weights[:, 1] = 0.0
    settings = Settings(epochs=3, batch_size=8, weight_decay=0.1)
    network, history = trained(hierarchy, task, settings, [0, 1], normalization=normalization)
    fresh = make_network(hierarchy, 3, [0, 1], normalization=normalization)
    before = of_model(fresh, 1)
    for key, tensor in of_model(network, 1).items():
        if not key.endswith(("seen", "entries")):
            assert torch.equal(tensor, before[key]), key
    assert [row[1] for row in history.loss] == [0.0] * 3


def test_ensemble_skips_batches_in_which_a_model_has_no_examples(hierarchy: Hierarchy) -> None:
    # Beside another model on all batches, or alone on the only batch with its examples.
    rows = partition(hierarchy, 0, 4)[2]
    task = random_task(1, N, 2)
    task.weights[:, 1] = 0.0
    task.weights[rows, 1] = 1.0
    assert len(rows) > 1
    run = {"n_batches": 4}
    network, _ = trained(
        hierarchy, task, Settings(epochs=5), [0, 1], run=run, normalization="batch"
    )
    own = Task("classes", task.targets[rows], np.ones((len(rows), 1)), n_classes=3)
    alone, _ = trained(hierarchy[rows], own, Settings(epochs=5), [1], normalization="batch")
    assert_same_models(of_model(alone, 0), of_model(network, 1))


def test_adam_changes_only_active_models(hierarchy: Hierarchy) -> None:
    network = make_network(hierarchy, seeds=[0, 1, 2])
    adam = Adam(network, weight_decay=0.1)
    gradients = tuple(torch.ones_like(parameter) for parameter in network.parameters())
    active = torch.tensor([True, False, True])
    before = copy.deepcopy(network)
    adam.step(gradients, torch.tensor(0.1, dtype=torch.float64), active)
    for one, other in zip(network.parameters(), before.parameters(), strict=True):
        assert torch.equal(one[1], other[1])
        assert not (one[[0, 2]] == other[[0, 2]]).any()
    assert adam.steps.tolist() == [1, 0, 1]
    assert not adam.mean[1].any()
    assert not adam.square[1].any()


@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_adam_equals_that_of_torch_with_decoupled_decay_on_weights_only(
    hierarchy: Hierarchy, decay: float
) -> None:
    one = make_network(hierarchy, seeds=[0, 1, 2])
    other = copy.deepcopy(one)
    adam = Adam(one, decay)
    weights = [p for p in other.parameters() if p.ndim == 3]
    biases = [p for p in other.parameters() if p.ndim == 2]
    groups = [{"params": weights, "weight_decay": decay}, {"params": biases, "weight_decay": 0.0}]
    optimiser: Any = torch.optim.AdamW(groups, lr=0.05, eps=Adam.epsilon)
    if not decay:
        optimiser = torch.optim.Adam(other.parameters(), lr=0.05, eps=Adam.epsilon)
    targets = torch.linspace(-1, 1, N * 3 * 2, dtype=torch.float64).view(N, 3, 2)
    for step in range(30):
        rate = 0.05 / (1 + step)
        loss = (one(hierarchy) - targets).square().sum()
        gradients = torch.autograd.grad(loss, adam.parameters)
        adam.step(gradients, torch.tensor(rate, dtype=torch.float64), torch.ones(3).bool())
        for group in optimiser.param_groups:
            group["lr"] = rate
        optimiser.zero_grad()
        (other(hierarchy) - targets).square().sum().backward()
        optimiser.step()
    for a, b in zip(one.parameters(), other.parameters(), strict=True):
        assert_close(a, b, 1e-10)


# -- compression and duplicates ----------------------------------------------------------------


@pytest.mark.parametrize("loss", ["binary", "classes", "squares"])
@pytest.mark.parametrize("batch_size", [None, 8])
@pytest.mark.parametrize("dropout", [0.0, 0.4])
@pytest.mark.parametrize("normalization", ["none", "batch"])
@pytest.mark.parametrize("device", DEVICES)
def test_compressed_training_equals_training_on_the_original_data(
    hierarchy: Hierarchy,
    device: str,
    normalization: str,
    dropout: float,
    batch_size: int | None,
    loss: str,
) -> None:
    compressed = compress(hierarchy)
    assert len(compressed.hierarchy) < N, "there should be duplicates to merge"
    task = random_task(1, N, len(SEEDS), loss)
    task = replace(task, validation=1.0 - task.weights)
    settings = Settings(**steps(batch_size))
    way = {"normalization": normalization, "dropout": dropout, "device": device}
    one, original = trained(hierarchy, task, settings, **way)
    other, history = trained(compressed, task, settings, **way)
    for model in range(len(SEEDS)):
        assert_same_models(of_model(other, model), of_model(one, model))
    for column in ("loss", "accuracy", "validation_loss", "validation_accuracy"):
        assert_close(getattr(history, column), getattr(original, column), 1e-9, column)


@pytest.mark.parametrize("loss", ["binary", "classes", "squares"])
@pytest.mark.parametrize("normalization", ["none", "batch"])
def test_weights_of_two_equal_two_copies(
    hierarchy: Hierarchy, normalization: str, loss: str
) -> None:
    weights = np.random.default_rng(0).integers(0, 3, N)
    copies = np.repeat(np.arange(N), weights)
    task = random_task(1, N, 1, loss)
    task.weights[:, 0] = weights
    repeated = replace(task, targets=task.targets[copies], weights=np.ones((len(copies), 1)))
    settings = Settings(**steps(None))
    one, weighted = trained(hierarchy, task, settings, [0], normalization=normalization)
    other, copied = trained(hierarchy[copies], repeated, settings, [0], normalization=normalization)
    assert_same_models(of_model(one, 0), of_model(other, 0))
    assert_close(weighted.loss, copied.loss, 1e-9)


@pytest.mark.parametrize("n_batches", [1, 4])
@pytest.mark.parametrize("min_count", [1, 3])
def test_training_does_not_depend_on_the_number_of_test_examples_nor_on_their_labels(
    n_batches: int, min_count: int
) -> None:
    training = random_hierarchy(0, n=24, patterns=20)
    words = (*map(str, training.attributes.vocabulary), "label 9", "label 10")
    test = random_hierarchy(1, n=40, patterns=20, n_labels=7, n_roles=3)
    test = Hierarchy(replace(test.attributes, vocabulary=Vocabulary(words)), test.relations)
    relations = [
        replace(r, alphabet=o.alphabet)
        for r, o in zip(training.relations, test.relations, strict=True)
    ]
    attributes = training.attributes.recoded(test.attributes.vocabulary)
    both = Hierarchy.concatenate([Hierarchy(attributes, tuple(relations)), test])
    assert len(both.attributes.vocabulary) == 7
    assert both.relations[0].n_roles == 3
    alone, together = [
        trained_with_names(data, 24, Settings(epochs=5), min_count, n_batches)
        for data in (training, both)
    ]
    state, other = of_model(alone, 0), of_model(together, 0)
    place = [
        list(both.attributes.vocabulary).index(word) for word in training.attributes.vocabulary
    ]
    assert place != sorted(range(5)), "another label should stand between these"
    assert_close(other["levels.0.table"][[*place, -1]], state["levels.0.table"], 1e-9)
    for level in (1, 2):
        roles = len(state[f"levels.{level}.weight"])
        for key in ("bias", "layers.weights.0", "layers.biases.0"):
            assert_close(other[f"levels.{level}.{key}"], state[f"levels.{level}.{key}"], 1e-9)
        assert_close(other[f"levels.{level}.weight"][:roles], state[f"levels.{level}.weight"], 1e-9)
    assert_close(outputs(together, both)[:24], outputs(alone, training), 1e-9)


def trained_with_names(
    hierarchy: Hierarchy, n: int, settings: Settings, min_count: int, n_batches: int
) -> SAEN:
    """A network that learns from the first n examples; its weights begin by names."""
    weights = np.zeros((len(hierarchy), 1))
    weights[:n] = 1.0
    targets = np.arange(len(hierarchy)) % 3
    task = Task("classes", targets, weights, n_classes=3)
    seen = seen_in_training(hierarchy, np.arange(len(hierarchy)), weights, min_count)
    architecture = Architecture.over(hierarchy, small_layers(2, 3), normalization="batch")
    network = SAEN(architecture, [0], dtype=torch.float64, schema=hierarchy, seen=seen)
    train(network, hierarchy, task, settings, min_count=min_count, n_batches=n_batches, seen=seen)
    return network


@pytest.mark.parametrize("batch_size", [None, 8])
@pytest.mark.parametrize("min_count", [1, 3])
def test_training_does_not_depend_on_test_examples(batch_size: int | None, min_count: int) -> None:
    training = random_hierarchy(0, n=24, patterns=20)
    task = random_task(1, N, 1)
    task.weights[:24], task.weights[24:] = 1.0, 0.0
    networks = []
    for seed in (1, 2):
        test = random_hierarchy(seed, n=N - 24, patterns=20)
        both = Hierarchy.concatenate([training, test])
        for targets in (task.targets, np.append(task.targets[:24], (task.targets[24:] + 1) % 3)):
            networks.append(
                trained(
                    both,
                    replace(task, targets=targets),
                    Settings(**steps(batch_size)),
                    [0],
                    normalization="batch",
                    run={"min_count": min_count},
                )[0]
            )
    for network in networks[1:]:
        assert_same_models(of_model(network, 0), of_model(networks[0], 0))


# -- settings, schedule, history ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"epochs": -1}, "epochs must not be negative: -1"),
        ({"batch_size": 0}, "batch_size must be at least 1: 0"),
        ({"learning_rate": 0.0}, "learning_rate must be positive and weight_decay not negative"),
        (
            {"learning_rate": float("nan")},
            "learning_rate must be positive and weight_decay not negative",
        ),
        ({"weight_decay": -0.1}, "learning_rate must be positive and weight_decay not negative"),
        ({"schedule": "linear"}, "schedule is constant or cosine, not 'linear'"),
    ],
)
def test_settings_out_of_range_are_refused(settings: dict[str, Any], message: str) -> None:
    with refuses(message):
        Settings(**settings)


def test_schedule_falls_as_a_cosine_from_the_full_rate_to_zero() -> None:
    cosine = Settings(epochs=10, learning_rate=0.2, schedule="cosine")
    assert cosine.rate(0) == 0.2
    assert cosine.rate(2.5) == pytest.approx(0.2 * 0.5 * (1 + np.cos(np.pi / 4)))
    assert cosine.rate(5) == pytest.approx(0.1)
    assert cosine.rate(10) == pytest.approx(0.0)
    constant = Settings(epochs=10, learning_rate=0.2)
    assert {constant.rate(epoch) for epoch in (0, 0.5, 5, 10)} == {0.2}


def test_schedule_changes_every_step_and_the_batch_order_every_epoch(
    hierarchy: Hierarchy, monkeypatch: pytest.MonkeyPatch
) -> None:
    rates, sums = [], []
    step, losses = Adam.step, Task.losses

    def noted_step(self: Adam, gradients: Any, rate: torch.Tensor, *models: Any) -> None:
        rates.append(float(rate))
        step(self, gradients, rate, *models)

    def noted_losses(self: Task, made: Any, targets: Any) -> Any:
        sums.append(float(targets[..., 2:].sum()))  # identifies the batch
        return losses(self, made, targets)

    monkeypatch.setattr(Adam, "step", noted_step)
    monkeypatch.setattr(Task, "losses", noted_losses)
    settings = Settings(epochs=6, batch_size=8, learning_rate=0.1, schedule="cosine")
    trained(hierarchy, random_task(1, N, 1, "squares"), settings, [0])
    assert rates == [settings.rate(k / 4) for k in range(24)]
    assert all(a > b for a, b in itertools.pairwise(rates))
    epochs = [tuple(sums[4 * epoch : 4 * epoch + 4]) for epoch in range(6)]
    assert len(set(epochs)) > 3
    assert len({tuple(sorted(epoch)) for epoch in epochs}) == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"weights": np.ones((N, 3))}, "weights must have shape (32, 2), not (32, 3)"),
        ({"targets": np.zeros(N - 1, int)}, "32 examples, but 31 targets"),
        ({"weights": -np.ones((N, 2))}, "weights must be finite and not negative"),
        ({"weights": np.full((N, 2), np.nan)}, "weights must be finite and not negative"),
        ({"targets": np.array(["a", "b"] * 16)}, "targets must be class codes from 0 to 2"),
        ({"targets": np.full(N, 3)}, "targets must be class codes from 0 to 2"),
        ({"targets": np.full(N, -1)}, "targets must be class codes from 0 to 2"),
        (
            {"loss": "squares", "targets": np.full((N, 3), np.inf)},
            "targets of a regression must be finite numbers of shape (G, k)",
        ),
        (
            {"loss": "binary", "n_classes": 2, "targets": np.zeros(N, int)},
            "the last layer has 3 units, the task needs 1",
        ),
    ],
)
def test_task_that_does_not_fit_is_refused(
    hierarchy: Hierarchy, change: dict[str, Any], message: str
) -> None:
    network = make_network(hierarchy, 3, [0, 1])
    with refuses(message):
        train(network, hierarchy, replace(random_task(0, N, 2), **change), Settings(epochs=1))


def test_history_has_a_row_per_epoch_and_a_column_per_model(hierarchy: Hierarchy) -> None:
    task = random_task(1, N, len(SEEDS))
    _, history = trained(hierarchy, task, Settings(epochs=3, batch_size=8))
    assert np.shape(history.loss) == np.shape(history.accuracy) == (3, 4)
    assert (history.validation_loss, history.validation_accuracy) == ([], [])
    assert not history.interrupted
    task = replace(task, validation=1.0 - task.weights)
    _, history = trained(hierarchy, task, Settings(epochs=3, batch_size=8))
    assert np.shape(history.validation_loss) == np.shape(history.validation_accuracy) == (3, 4)
    _, history = trained(hierarchy, task, Settings(epochs=0))
    assert history.loss == []


def test_validation_is_measured_after_every_so_many_epochs_and_the_last(
    hierarchy: Hierarchy,
) -> None:
    task = random_task(1, N, len(SEEDS))
    task = replace(task, validation=1.0 - task.weights)
    settings = Settings(epochs=5, batch_size=8)
    _, always = trained(hierarchy, task, settings)
    _, some = trained(hierarchy, task, settings, run={"validate_every": 2})
    assert some.loss == always.loss
    for epoch, row in enumerate(some.validation_loss, start=1):
        known = always.validation_loss[epoch - 1]
        assert row == (known if epoch in (2, 4, 5) else [None] * len(SEEDS))
    with refuses("validate_every must be an integer ≥ 1, not 0"):
        trained(hierarchy, task, settings, run={"validate_every": 0})


@pytest.mark.parametrize("loss", ["binary", "classes"])
def test_history_has_the_loss_and_accuracy_of_the_training_examples(
    hierarchy: Hierarchy, loss: str
) -> None:
    task = random_task(1, N, 2, loss)
    network = make_network(hierarchy, task.n_outputs, [0, 1])
    before = network(hierarchy).detach()
    history = train(network, hierarchy, task, Settings(epochs=1))
    for model in range(2):
        rows = np.flatnonzero(task.weights[:, model])
        z, targets = before[rows, model], torch.from_numpy(task.targets[rows])
        if loss == "binary":  # one logistic unit
            z = torch.cat([torch.zeros_like(z), z], dim=1)
        expected = torch.nn.functional.cross_entropy(z, targets)
        assert_close(history.loss[0][model], expected, 1e-12)
        accuracy = (z.argmax(1) == targets).double().mean()
        assert_close(history.accuracy[0][model], accuracy, 1e-12)


def test_class_weights_multiply_the_loss_of_their_class(hierarchy: Hierarchy) -> None:
    task = random_task(1, N, 2)
    factors = np.array([1.0, 2.5, 0.5])
    settings = Settings(epochs=5, batch_size=8)
    one, _ = trained(hierarchy, replace(task, class_weights=factors), settings, [0, 1])
    # Without normalization, whose statistics are weighted too, this equals weighted examples.
    weighted = replace(task, weights=task.weights * factors[task.targets][:, None])
    other, _ = trained(hierarchy, weighted, settings, [0, 1])
    for model in range(2):
        assert_same_models(of_model(one, model), of_model(other, model))
    own = replace(task, class_weights=np.column_stack([factors, np.ones(3)]))
    apart, _ = trained(hierarchy, own, settings, [0, 1])
    plain, _ = trained(hierarchy, task, settings, [0, 1])
    assert_same_models(of_model(apart, 0), of_model(one, 0))
    assert_same_models(of_model(apart, 1), of_model(plain, 1))


def test_training_learns() -> None:
    hierarchy = random_hierarchy(0, n=60, patterns=40)
    labels = np.bincount(
        np.repeat(np.arange(60), np.diff(hierarchy.relations[1].indptr)), minlength=60
    )
    task = Task("binary", (labels > np.median(labels)).astype(int), np.ones((60, 2)), n_classes=2)
    _, history = trained(
        hierarchy, task, Settings(epochs=60, batch_size=16), [0, 1], normalization="batch"
    )
    assert max(history.loss[-1]) < 0.5 * min(history.loss[0])
    assert min(history.accuracy[-1]) > 0.9


# -- validation ---------------------------------------------------------------------------------


def test_validation_does_not_change_training(hierarchy: Hierarchy) -> None:
    task = random_task(1, N, 2)
    settings = Settings(epochs=6, batch_size=8)
    validated, history = trained(
        hierarchy, replace(task, validation=1.0 - task.weights), settings, [0, 1]
    )
    plain, _ = trained(hierarchy, task, settings, [0, 1])
    assert len(history.validation_loss) == 6
    assert_same_state(validated, plain)


# -- edge cases --------------------------------------------------------------------------------


@pytest.mark.parametrize(("epochs", "rate"), [(3, 1e200), (1, float("inf"))])
def test_training_that_diverges_is_an_error(hierarchy: Hierarchy, epochs: int, rate: float) -> None:
    settings = Settings(epochs=epochs, learning_rate=rate)
    with pytest.raises(InputError, match=r"training diverged in epoch \d \(model 0 of 1\): lower"):
        trained(hierarchy, random_task(1, N, 1, "squares"), settings, [0])


@pytest.mark.parametrize("batch_size", [None, 8])
def test_models_that_diverge_are_listed_and_do_not_disturb_the_others(
    hierarchy: Hierarchy, tmp_path: Path, batch_size: int | None
) -> None:
    task = random_task(1, N, 3)
    task = replace(task, validation=1.0 - task.weights)
    settings = Settings(epochs=4, batch_size=batch_size)
    options: dict[str, Any] = {"normalization": "batch", "dropout": 0.3}
    run = {"n_batches": settings.n_batches(N), "tolerant": True}

    def train_all(**more: Any) -> tuple[SAEN, History]:
        network = make_network(hierarchy, task.n_outputs, [0, 1, 2], **options)
        with torch.no_grad():
            network.level(1).weight[1, 0] = torch.nan
        return network, train(network, hierarchy, task, settings, **run | more)

    network, history = train_all()
    assert history.diverged == [1]
    for row in (*history.loss, *history.accuracy):
        assert [value is None for value in row] == [False, True, False]
    for row in (*history.validation_loss, *history.validation_accuracy):
        assert [value is None for value in row] == [False, True, False]
    others = models_of(task, [0, 2])
    undisturbed, alone = trained(hierarchy, others, settings, [0, 2], run=run, **options)
    assert alone.diverged == []
    for place, model in enumerate((0, 2)):
        assert_same_models(of_model(network, model), of_model(undisturbed, place))
        assert_close(
            np.array(history.validation_loss, dtype=float)[:, model],
            np.array(alone.validation_loss)[:, place],
            1e-9,
        )
    # What is resumed knows who has diverged.
    checkpoint = tmp_path / "run.saen"
    train_all(checkpoint=checkpoint, until=2)
    again, resumed = train_all(checkpoint=checkpoint)
    assert resumed == history
    assert_same_models(of_model(again, 0), of_model(network, 0))
    with pytest.raises(DivergenceError, match=r"in epoch 1 \(model 1 of 3\)"):
        train_all(tolerant=False)


def test_training_ends_when_all_models_have_diverged(hierarchy: Hierarchy) -> None:
    task = random_task(1, N, 2, "squares")
    settings = Settings(epochs=20, learning_rate=1e200)
    _, history = trained(hierarchy, task, settings, [0, 1], run={"tolerant": True})
    assert history.diverged == [0, 1]
    assert len(history.loss) < 20


@pytest.mark.parametrize("normalization", ["none", "batch"])
def test_training_takes_batches_of_examples_without_parts(normalization: str) -> None:
    hierarchy = random_hierarchy(0, n=8)
    empty = Hierarchy(
        hierarchy.attributes,
        (
            hierarchy.relations[0],
            replace(
                hierarchy.relations[1],
                indptr=np.zeros(9, int),
                parts=np.empty(0, int),
                roles=np.empty(0, int),
                counts=None,
            ),
        ),
    )
    both = Hierarchy.concatenate([hierarchy, empty])
    task = random_task(0, 16, 1)
    network, history = trained(
        both, task, Settings(epochs=3, batch_size=1), [0], normalization=normalization
    )
    assert np.isfinite(history.loss).all()
    assert torch.isfinite(outputs(network, empty)).all()


def test_training_without_examples_leaves_the_network_unchanged(hierarchy: Hierarchy) -> None:
    task = Task("classes", np.empty(0, int), np.empty((0, 1)), n_classes=3)
    network, history = trained(hierarchy[[]], task, Settings(epochs=2), [0])
    assert history.loss == [[0.0], [0.0]]
    for a, b in zip(
        network.parameters(), make_network(hierarchy, 3, [0]).parameters(), strict=True
    ):
        assert torch.equal(a, b)


def test_outputs_in_several_passes_are_the_same(hierarchy: Hierarchy) -> None:
    network = make_network(hierarchy, seeds=[0, 1], normalization="batch")
    network.train()(hierarchy)
    whole = outputs(network, hierarchy)
    assert_close(outputs(network, hierarchy, budget=1000), whole, 1e-12)
    assert_close(outputs(network, hierarchy, budget=1), whole, 1e-12)


# -- determinism -------------------------------------------------------------------------------


def digest(network: SAEN) -> str:
    result = hashlib.blake2b()
    for key, tensor in sorted(network.state_dict().items()):
        result.update(key.encode() + tensor.numpy().tobytes())
    return result.hexdigest()


def long_run(
    seed: int = 0, run: dict[str, Any] | None = None, epochs: int = 12
) -> tuple[SAEN, History]:
    """Mini-batches, normalization, dropout, decay and validation, in float32."""
    hierarchy = random_hierarchy(0, n=N, patterns=20, kind="both")
    task = random_task(1, N, 2)
    task = replace(task, validation=1.0 - task.weights)
    settings = Settings(
        epochs=epochs,
        batch_size=8,
        weight_decay=0.01,
        schedule="cosine",
        seed=seed,
    )
    options = {"normalization": "batch", "dropout": 0.3, "dtype": torch.float32}
    return trained(compress(hierarchy), task, settings, [0, 1], run=run, **options)


def test_training_with_the_same_seed_gives_the_same_bits() -> None:
    first, second, other = long_run(), long_run(), long_run(seed=1)
    assert_same_state(first[0], second[0])
    assert first[1] == second[1]
    assert first[1].loss != other[1].loss


@pytest.mark.slow
def test_training_in_another_process_gives_the_same_bits() -> None:
    script = "import test_training as t; print(t.digest(t.long_run()[0]))"
    process = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env=environment(),
        timeout=120,
    )
    assert process.stdout.strip() == digest(long_run()[0])


def environment() -> dict[str, str]:
    """Of a process that can import the library and these tests."""
    paths = [str(Path(__file__).parent), *filter(None, sys.path)]
    return os.environ | {"PYTHONPATH": os.pathsep.join(paths)}


# -- interruption and checkpoints --------------------------------------------------------------


class Killed(BaseException):
    """Raised in place of a signal."""


def raising(error: type[BaseException], at: int) -> Callable[[int, History], None]:
    """A progress callback that raises after an epoch."""

    def progress(epoch: int, history: History) -> None:
        if epoch == at:
            raise error

    return progress


def test_interrupted_run_keeps_its_last_completed_epoch(hierarchy: Hierarchy) -> None:
    task = random_task(1, N, 2)
    settings = Settings(epochs=9, batch_size=8)
    run = {"progress": raising(KeyboardInterrupt, at=4)}
    network, history = trained(hierarchy, task, settings, [0, 1], run=run)
    assert history.interrupted
    assert len(history.loss) == len(history.accuracy) == 4
    shorter, _ = trained(hierarchy, task, replace(settings, epochs=4), [0, 1])
    assert_same_state(network, shorter)
    assert not network.training


def test_interrupted_epoch_leaves_no_trace(
    hierarchy: Hierarchy, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = random_task(1, N, 2)
    task = replace(task, validation=1.0 - task.weights)
    settings = Settings(epochs=9, batch_size=8)
    step, taken = Adam.step, []

    def interrupted(self: Adam, *arguments: Any) -> None:
        step(self, *arguments)
        taken.append(1)
        if len(taken) == 4 * 3 + 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(Adam, "step", interrupted)
    network, history = trained(hierarchy, task, settings, [0, 1], normalization="batch")
    monkeypatch.undo()
    assert history.interrupted
    assert len(history.loss) == len(history.validation_loss) == 3
    expected, _ = trained(
        hierarchy, task, replace(settings, epochs=3), [0, 1], normalization="batch"
    )
    assert_same_state(network, expected)


@pytest.mark.parametrize("every", [1, 3, 100])
def test_checkpoint_of_a_killed_run_resumes_to_the_same_bits(tmp_path: Path, every: int) -> None:
    undisturbed, history = long_run()
    checkpoint = tmp_path / "run.saen"
    run = {"checkpoint": checkpoint, "every": every}
    for at in (2, 5, 11):
        try:
            network, resumed = long_run(run=run | {"progress": raising(Killed, at)})
        except Killed:
            continue
    network, resumed = long_run(run=run)
    assert_same_state(network, undisturbed)
    assert resumed == history
    # And a finished run is not trained any further.
    again, resumed = long_run(run=run)
    assert_same_state(again, undisturbed)
    assert resumed == history
    assert [path.name for path in tmp_path.iterdir()] == ["run.saen"]


def test_checkpoint_of_a_shorter_run_is_continued(tmp_path: Path) -> None:
    undisturbed, history = long_run()
    run = {"checkpoint": tmp_path / "run.saen"}
    _, half = long_run(run=run | {"until": 7})
    assert len(half.loss) == 7
    network, resumed = long_run(run=run)
    assert_same_state(network, undisturbed)
    assert resumed == history


@pytest.mark.parametrize(
    "change",
    [
        "seed",
        "weights",
        "settings",
        "targets",
        "training part",
        "validation part",
        "class weights",
        "labels",
        "vectors",
        "counts",
        "min_count",
        "duplicates",
    ],
)
def test_checkpoint_of_another_run_is_refused(tmp_path: Path, change: str) -> None:
    path = tmp_path / "run.saen"
    hierarchy = random_hierarchy(0, n=N, patterns=20, kind="both")
    compressed = compress(hierarchy)
    task = random_task(1, N, 1)
    task = replace(task, validation=1.0 - task.weights)
    settings, seeds, min_count = Settings(epochs=2), [0], 1
    trained(compressed, task, settings, seeds, run={"checkpoint": path})
    before = path.read_bytes()

    small, top = compressed.hierarchy, compressed.top.copy()
    attributes, relations = small.attributes, list(small.relations)
    if change == "seed":
        seeds = [1]
    elif change == "settings":
        settings = Settings(epochs=2, learning_rate=0.02)
    elif change == "targets":
        task = replace(task, targets=(task.targets + 1) % 3)
    elif change in ("training part", "weights"):
        task.weights[0] = 1.0 - task.weights[0] if change == "training part" else 0.5
    elif change == "validation part":
        task.validation[0] = 0.5
    elif change == "class weights":
        task = replace(task, class_weights=np.array([1.0, 2.0, 1.0]))
    elif change == "labels":
        attributes = replace(attributes, codes=np.roll(attributes.codes, 1))
    elif change == "vectors":
        attributes = replace(attributes, vectors=np.roll(attributes.vectors, 1))
    elif change == "counts":
        relations[1] = replace(relations[1], counts=relations[1].counts + 1)
    elif change == "min_count":
        min_count = 2
    elif change == "duplicates":
        top = np.roll(top, 1)
    other = Compressed(
        Hierarchy(attributes, tuple(relations), small.names),
        (None, None, top),
        compressed.objects,
        compressed.entries,
    )
    with refuses(
        f"{path}: this is not a checkpoint of the same run (data, settings and seeds): "
        "delete it or choose another name",
        FileError,
    ):
        trained(other, task, settings, seeds, run={"checkpoint": path, "min_count": min_count})
    assert path.read_bytes() == before


def test_checkpoint_that_is_another_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.saen"
    save(Graphs.from_edge_lists([[(0, 1)]]), path)
    for message in (r"run\.saen: this is not a checkpoint", r"run\.saen: not a readable saen file"):
        before = path.read_bytes()
        with pytest.raises(FileError, match=message):
            long_run(run={"checkpoint": path}, epochs=2)
        assert path.read_bytes() == before
        path.write_bytes(b"not a saen file at all")


KILLABLE = textwrap.dedent(
    """
    import sys
    import signal
    # Jobs in the background of a shell ignore Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    import test_training as t

    def progress(epoch, history):
        print(epoch, flush=True)

    print("ready", flush=True)
    run = {"checkpoint": sys.argv[1], "every": 1, "progress": progress}
    network, history = t.long_run(run=run, epochs=300)
    print("interrupted", len(history.loss)) if history.interrupted else print("done")
    print(t.digest(network), flush=True)
    """
)


def start(checkpoint: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", KILLABLE, str(checkpoint)],
        stdout=subprocess.PIPE,
        text=True,
        env=environment(),
    )


@pytest.mark.slow
def test_interrupted_process_ends_cleanly(tmp_path: Path) -> None:
    with start(tmp_path / "run.saen") as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line == "5\n":
                break
        process.send_signal(signal.SIGINT)
        lines = process.stdout.read().split()
    assert process.returncode == 0
    assert lines[-3] == "interrupted"
    epochs = int(lines[-2])
    assert 5 <= epochs < 300
    # The weights are those of the best epoch so far, as this run stops early.
    until = digest(long_run(epochs=300, run={"until": epochs})[0])
    assert lines[-1] == until


def test_training_allows_callbacks_that_predict(hierarchy: Hierarchy) -> None:
    task = random_task(1, N, len(SEEDS), "binary")
    settings = Settings(epochs=4, learning_rate=0.05)
    options: dict[str, Any] = {"normalization": "batch", "dropout": 0.2}
    undisturbed = trained(hierarchy, task, settings, **options)[1]
    network = make_network(hierarchy, task.n_outputs, SEEDS, **options)
    seen = train(
        network, hierarchy, task, settings, progress=lambda *_: outputs(network, hierarchy)
    )
    assert seen.loss == undisturbed.loss
