"""The kernels of a training step against the formulas of `model`, `aggregation` and `training`.

The kernels run on a GPU where there is one, and elsewhere in Triton's interpreter (`conftest`).
"""

from __future__ import annotations

import copy
from itertools import pairwise
from unittest.mock import Mock

import numpy as np
import pytest
import torch

from saen.data.compression import compress
from saen.network import fused
from saen.network.aggregation import RunningMoments
from saen.network.loss import Task
from saen.network.model import Level
from saen.network.settings import Settings
from saen.network.training import Adam, train
from tests.references.networks import assert_close, make_network, random_hierarchy, random_task

SLOPE = 0.01
SHAPES = [(18, 5, 3, 9), (1, 1, 1, 1), (20, 10, 2, 1), (0, 4, 2, 3)]  # n, d, M, o
N_ROLES = {1: 1, 4: 2, 5: 1, 10: 2, 36: 2}  # by d


@pytest.fixture
def device(kernel_device, monkeypatch):
    """Where the kernels run, with loops that small arrays would not enter twice."""
    monkeypatch.setattr(fused, "MAX_SUMMED", 32)
    monkeypatch.setattr(fused, "FOLDED_INPUTS", 4)
    monkeypatch.setattr(fused, "LOSS_ROWS", 4)
    monkeypatch.setattr(fused, "LABEL_ROWS", 2)
    monkeypatch.setattr(fused, "SMALL_ROWS", 16)
    return kernel_device


def _random(device, n, d, m, o):
    rng = torch.Generator().manual_seed(n)
    numbers = {
        "a": torch.randn(n, d, m, generator=rng) * 2 + 3,
        "weight": torch.randn(m, d, o, generator=rng),
        "bias": torch.randn(m, o, generator=rng),
    }
    uses = torch.randint(0, 4, (n, m), generator=rng).float()
    uses[:1] = 1.0
    gradient = torch.randn(n, o, m, generator=rng)
    if m > 1:  # a model without examples in this batch: nothing depends on its outputs
        uses[:, 1] = 0.0
        gradient[:, :, 1] = 0.0
    seen = torch.rand(N_ROLES[d], m, generator=rng) > 0.2
    return {key: value.to(device) for key, value in numbers.items()}, *(
        each.to(device) for each in (uses, seen, gradient)
    )


def _leaves(numbers, dtype):
    return {key: value.to(dtype).requires_grad_() for key, value in numbers.items()}


def _close(found, expected):
    assert_close(found, expected, 1e-5, floor=1e-3)


def _expected(leaves, slope, seen=None, uses=None, norm=None):
    """What `fused.layer` returns and does to the running moments, by stock operations."""
    a, (d, m) = leaves["a"], leaves["a"].shape[1:]
    if uses is not None:
        share = uses / uses.sum(0).clamp_min(1e-30)
        mean = (a * share[:, None]).sum(0)
        variance = ((a - mean).square() * share[:, None]).sum(0)
        by_role = (each.detach().view(-1, d // norm.mean.shape[0], m) for each in (mean, variance))
        norm.update(*(each.transpose(1, 2) for each in by_role), active=uses.sum(0) > 0)
        a = (a - mean) * (variance + norm.epsilon).rsqrt()
    if seen is not None:
        a = a * seen.repeat_interleave(d // len(seen), 0)
    x = torch.einsum("ndm,mdo->nom", a, leaves["weight"]) + leaves["bias"].T
    return torch.nn.functional.leaky_relu(x, slope)


@pytest.mark.parametrize(
    ("shape", "small"),
    [(shape, False) for shape in SHAPES] + [((18, 5, 3, 9), True), ((7, 36, 2, 3), True)],
    ids=str,
)
def test_normalised_layer_its_gradients_and_running_moments(device, shape, small, monkeypatch):
    monkeypatch.setattr(fused, "FUSES_SMALL_LAYERS", small)
    numbers, uses, seen, g = _random(device, *shape)
    n, d, m, _ = shape
    if n == 1:
        g.zero_()  # one example has no variance: its gradient is rounding, a thousandfold
    norm = RunningMoments(1, m, len(seen), d // len(seen)).to(device)
    norm.mean.fill_(5.0)
    norm.started[0] = True  # this is the first batch of others
    expected_norm = copy.deepcopy(norm).double()
    single, double = _leaves(numbers, torch.float32), _leaves(numbers, torch.float64)
    y = fused.layer(*single.values(), SLOPE, seen, uses, norm)
    expected = _expected(double, SLOPE, seen, uses.double(), expected_norm)
    if n != 1:
        _close(y, expected)
    for found, wanted in zip(norm.buffers(), expected_norm.buffers(), strict=True):
        _close(found.double(), wanted.double())
    gradients = torch.autograd.grad((y * g).sum(), tuple(single.values()))
    for found, wanted in zip(
        gradients, torch.autograd.grad((expected * g).sum(), tuple(double.values())), strict=True
    ):
        _close(found, wanted)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_layer_without_normalisation_and_its_gradients(device, shape):
    slope = 1.0 if shape[1] == 10 else SLOPE
    numbers, _, seen, g = _random(device, *shape)
    seen = seen if shape[0] > 1 else None
    single, double = _leaves(numbers, torch.float32), _leaves(numbers, torch.float64)
    y = fused.layer(*single.values(), slope, seen)
    expected = _expected(double, slope, seen)
    _close(y, expected)
    for found, wanted in zip(
        torch.autograd.grad((y * g).sum(), tuple(single.values())),
        torch.autograd.grad((expected * g).sum(), tuple(double.values())),
        strict=True,
    ):
        _close(found, wanted)


@pytest.mark.parametrize("widths", [(3, 5, 1), (2, 16, 3, 2), (4, 2)], ids=str)
def test_later_layers_and_their_gradients(device, widths, monkeypatch):
    if len(widths) == 2:
        monkeypatch.setattr(fused, "MAX_SMALL_ROWS", 17)
    rng, n, m = torch.Generator().manual_seed(0), 18, 2
    numbers = {"h": torch.randn(n, widths[0], m, generator=rng)}
    for layer, (d, o) in enumerate(pairwise(widths)):
        numbers[f"weight {layer}"] = torch.randn(m, d, o, generator=rng)
        numbers[f"bias {layer}"] = torch.randn(m, o, generator=rng)
    g = torch.randn(n, widths[-1], m, generator=rng).to(device)
    slopes = [SLOPE] * (len(widths) - 2) + [1.0]
    single, double = (
        _leaves({key: each.to(device) for key, each in numbers.items()}, dtype)
        for dtype in (torch.float32, torch.float64)
    )
    h, *parameters = single.values()
    y = fused.later_layers(h, parameters[::2], parameters[1::2], slopes)
    expected, *parameters = double.values()
    for weight, bias, slope in zip(parameters[::2], parameters[1::2], slopes, strict=True):
        expected = torch.einsum("ndm,mdo->nom", expected, weight) + bias.T
        expected = torch.nn.functional.leaky_relu(expected, slope)
    _close(y, expected)
    for found, wanted in zip(
        torch.autograd.grad((y * g).sum(), tuple(single.values())),
        torch.autograd.grad((expected * g).sum(), tuple(double.values())),
        strict=True,
    ):
        _close(found, wanted)


def test_lookup_and_its_gradients(device):
    n_models, n_labels, d = 3, 6, 5
    rng = torch.Generator().manual_seed(0)
    numbers = {
        "table": torch.randn(n_models, n_labels + 1, d, generator=rng),
        "bias": torch.randn(n_models, d, generator=rng),
    }
    codes = torch.tensor([4, 0, -1, 2, 5])
    entries = torch.arange(n_labels + 1).repeat(n_models, 1)
    entries[:, -1] = n_labels + 1  # unseen
    entries[1, [0, 5, -1]] = n_labels  # shared
    entries[2, [1, 2]] = n_labels + 1
    gradient = torch.randn(len(codes), d, n_models, generator=rng)
    single, double = (
        _leaves({key: each.to(device) for key, each in numbers.items()}, dtype)
        for dtype in (torch.float32, torch.float64)
    )
    gradient, codes, entries = (each.to(device) for each in (gradient, codes, entries))
    y = fused.lookup(*single.values(), entries, codes, SLOPE)
    rows = torch.nn.functional.pad(double["table"], (0, 0, 0, 1))
    found = torch.stack([rows[m, entries[m, codes]] for m in range(n_models)], 2)
    expected = torch.nn.functional.leaky_relu(found + double["bias"].T, SLOPE)
    _close(y, expected)
    for found, wanted in zip(
        torch.autograd.grad((y * gradient).sum(), tuple(single.values())),
        torch.autograd.grad((expected * gradient).sum(), tuple(double.values())),
        strict=True,
    ):
        _close(found, wanted)


@pytest.mark.parametrize(("n_targets", "n_classes"), [(1, 2), (3, 2), (1, 3)])
def test_losses_and_their_gradients(device, n_targets, n_classes):
    rng, n, n_models = np.random.default_rng(0), 7, 3
    codes = rng.integers(0, n_classes, (n, n_targets))
    codes[2, 1:] = -1  # unknown
    weights = rng.integers(0, 3, (n, n_models)).astype(np.float64)
    weights[:, 1] = 0.0  # no examples in this batch
    task = Task.classification(
        codes if n_targets > 1 else codes[:, 0],
        n_classes=n_classes,
        class_weights=rng.random((n_classes * n_targets, n_models)),
    )
    histograms = task.histograms(np.arange(n), np.arange(n), n, weights)
    histograms = torch.from_numpy(histograms).to(device)
    outputs = torch.from_numpy(rng.normal(size=(n, n_models, task.n_outputs)) * 10).to(device)
    outputs[0] = torch.linspace(-90, 90, outputs[0].numel()).view_as(outputs[0])
    totals = torch.ones(3, n_models, device=device)
    single = outputs.float().requires_grad_()
    [gradient] = torch.autograd.grad(fused.loss(single, histograms.float(), totals), single)
    outputs.requires_grad_()
    loss, weight = task.losses(outputs, histograms)
    mean = loss / weight.clamp_min(1e-30)
    _close(gradient, torch.autograd.grad(mean.sum(), outputs)[0])
    for found, wanted in zip(
        totals - 1, (loss, weight, task.correct(outputs, histograms)), strict=True
    ):
        _close(found, wanted)


def test_loss_keeps_the_digits_of_confident_outputs(device):
    histograms = torch.tensor([[[0.0, 1.0]]], device=device)
    totals = torch.zeros(3, 1, device=device)
    outputs = torch.full((1, 1, 1), 18.0, device=device, requires_grad=True)
    [gradient] = torch.autograd.grad(fused.loss(outputs, histograms, totals), outputs)
    assert totals[0].item() == pytest.approx(np.log1p(np.exp(-18)), rel=1e-5)
    assert gradient.item() == pytest.approx(-np.exp(-18), rel=1e-5)


@pytest.mark.parametrize(("decay", "large", "counted"), [(0.0, 8, 2048), (0.1, 99, 2)])
def test_adam_equals_that_of_other_devices(device, decay, large, counted, monkeypatch):
    monkeypatch.setattr(fused, "LARGE", large)  # so is the table of labels if it is 8
    monkeypatch.setattr(fused, "MAX_COUNTED", counted)
    network = make_network(random_hierarchy(0, n=10, patterns=5), 1, range(3))
    network = network.to(device, torch.float32)
    other = copy.deepcopy(network)
    adam = Adam(network, decay)
    monkeypatch.setattr(fused, "is_available", lambda device: False)
    stock = Adam(other, decay)
    rng = torch.Generator().manual_seed(0)
    for step in range(3):
        gradients = tuple(
            torch.randn(len(each), each.shape[1] + 1, *each.shape[2:], generator=rng)[:, 1:].to(
                device
            )
            for each in adam.parameters
        )
        rate = torch.tensor(0.05 / (1 + step), dtype=torch.float64, device=device)
        active = torch.tensor([True, True, False], device=device)
        running = torch.tensor([True, step == 1, True], device=device)
        for each in (adam, stock):
            each.step(gradients, rate, active, running)
    assert adam.steps.tolist() == stock.steps.tolist() == [3.0, 1.0, 0.0]
    for found, expected in zip(
        (*adam.parameters, adam.mean, adam.square),
        (*stock.parameters, stock.mean, stock.square),
        strict=True,
    ):
        assert torch.equal(found[2], expected[2])  # never active
        assert_close(found, expected, 1e-6)


def test_a_training_step_equals_one_of_the_stock_layers(device, monkeypatch):
    # A CPU would rather project parts first.
    monkeypatch.setattr(Level, "aggregation", lambda self, relation: relation.aggregate_first)
    hierarchy = compress(random_hierarchy(0, n=6, patterns=4)).hierarchy  # labels are distinct
    results, layers, lookups = [], Mock(wraps=fused.layer), Mock(wraps=fused.lookup)
    monkeypatch.setattr(fused, "layer", layers)
    monkeypatch.setattr(fused, "lookup", lookups)
    for available in (True, False):
        monkeypatch.setattr(fused, "is_available", lambda device, answer=available: answer)
        network = make_network(hierarchy, 1, range(3), normalisation="batch")
        network = network.to(device, torch.float32).train()
        outputs = network(hierarchy)
        weights = torch.linspace(-1, 1, outputs.numel(), device=device).view_as(outputs)
        gradients = torch.autograd.grad((outputs * weights).sum(), Adam(network).parameters)
        buffers = [each for each in network.buffers() if each.is_floating_point()]
        results.append((outputs, *gradients, *buffers))
    assert layers.call_count == 2  # of two levels
    assert lookups.call_count == 1
    for found, expected in zip(*results, strict=True):
        _close(found, expected)


def test_training_gives_the_losses_and_weights_of_stock_operations(device, monkeypatch):
    monkeypatch.setattr(Level, "aggregation", lambda self, relation: relation.aggregate_first)
    hierarchy, results = random_hierarchy(0, n=6, patterns=3), []
    task = random_task(0, 6, 3)
    losses = Mock(wraps=fused.loss)
    monkeypatch.setattr(fused, "loss", losses)
    for available in (True, False):
        monkeypatch.setattr(fused, "is_available", lambda device, answer=available: answer)
        network = make_network(hierarchy, 3, range(3), [[3], [2], [3]]).to(device, torch.float32)
        history = train(network, compress(hierarchy), task, Settings(epochs=1), min_count=4)
        results.append([history.loss, history.accuracy, *network.state_dict().values()])
    assert losses.call_count == 1
    for found, expected in zip(*results, strict=True):
        assert_close(found, expected, 1e-4, floor=1e-3)


@pytest.mark.parametrize("changes", [{"dropout": 0.5}, {"slope": -0.1}])
def test_what_is_left_to_the_stock_layers(changes, monkeypatch):
    monkeypatch.setattr(Level, "aggregation", lambda self, relation: relation.aggregate_first)
    monkeypatch.setattr(fused, "is_available", lambda device: True)
    monkeypatch.setattr(fused, "FUSES_PRODUCTS", False)
    hierarchy, layers = random_hierarchy(0, n=20, patterns=10), Mock()
    monkeypatch.setattr(fused, "layer", layers)
    network = make_network(hierarchy, 1, range(2), **changes).float().train()
    network(hierarchy, None, np.random.default_rng(0))
    network.double()(hierarchy)
    layers.assert_not_called()
