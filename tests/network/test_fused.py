"""The kernels of a training step against the formulas of `model`, `aggregation` and `training`.

The kernels run on a GPU where there is one, and elsewhere in Triton's interpreter (`conftest`).
"""

from __future__ import annotations

import copy
from importlib.metadata import PackageNotFoundError, version
from unittest.mock import Mock

import numpy as np
import pytest
import torch

from saen.network import fused
from saen.network.aggregation import RunningMoments
from saen.network.model import Level
from saen.network.training import Adam
from tests.references.networks import assert_close, make_network, random_hierarchy

SLOPE = 0.01
SHAPES = [(18, 5, 3, 9), (1, 1, 1, 1), (20, 10, 2, 1), (0, 4, 2, 3)]  # n, d, M, o
N_ROLES = {1: 1, 4: 2, 5: 1, 10: 2}  # by d


def _interpreter() -> str | None:
    """Why the kernels cannot be interpreted here."""
    try:
        found = tuple(int(part) for part in version("triton").split(".")[:2])
    except PackageNotFoundError:
        return "Triton is not installed"
    # Earlier ones convert arrays to numbers in a way that numpy 2.4 refuses.
    return None if found >= (3, 9) else "the interpreter needs Triton 3.9"


@pytest.fixture
def device(monkeypatch):
    """A GPU if there is one; else the CPU, with the kernels interpreted."""
    # Loops that small arrays would not enter twice.
    monkeypatch.setattr(fused, "MAX_SUMMED", 32)
    monkeypatch.setattr(fused, "FOLDED_INPUTS", 4)
    if torch.cuda.is_available():
        yield torch.device("cuda")
        return
    if (reason := _interpreter()) is not None:
        pytest.skip(reason)
    monkeypatch.setattr(fused, "is_available", lambda device: True)
    yield torch.device("cpu")


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


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_normalised_layer_its_gradients_and_running_moments(device, shape):
    numbers, uses, seen, g = _random(device, *shape)
    n, d, m, _ = shape
    if n == 1:
        g.zero_()  # one example has no variance: its gradient is rounding, a thousandfold
    norm = RunningMoments(m, len(seen), d // len(seen)).to(device)
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


@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_adam_equals_that_of_other_devices(device, decay, monkeypatch):
    network = make_network(random_hierarchy(0, n=10, patterns=5), 1, range(3))
    network = network.to(device, torch.float32)
    other = copy.deepcopy(network)
    adam = Adam(network, decay)
    monkeypatch.setattr(fused, "is_available", lambda device: False)
    stock = Adam(other, decay)
    rng = torch.Generator().manual_seed(0)
    for step in range(3):
        gradients = tuple(
            torch.randn(each.shape, generator=rng).to(device) for each in adam.parameters
        )
        rate = torch.tensor(0.05 / (1 + step), dtype=torch.float64, device=device)
        active = torch.tensor([True, step == 1, False], device=device)
        for each in (adam, stock):
            each.step(gradients, rate, active)
    assert adam.steps.tolist() == stock.steps.tolist() == [3.0, 1.0, 0.0]
    for found, expected in zip(
        (*adam.parameters, adam.mean, adam.square),
        (*stock.parameters, stock.mean, stock.square),
        strict=True,
    ):
        assert torch.equal(found[2], expected[2])  # never active
        assert_close(found, expected, 1e-6)


@pytest.mark.parametrize("normalisation", ["batch", "none"])
def test_a_training_step_equals_one_of_the_stock_layers(device, normalisation, monkeypatch):
    # A CPU would rather project parts first.
    monkeypatch.setattr(Level, "aggregation", lambda self, relation: relation.aggregate_first)
    hierarchy = random_hierarchy(0, n=6, patterns=4)
    results, layers = [], Mock(wraps=fused.layer)
    monkeypatch.setattr(fused, "layer", layers)
    for available in (True, False):
        monkeypatch.setattr(fused, "is_available", lambda device, answer=available: answer)
        network = make_network(hierarchy, 1, range(3), normalisation=normalisation)
        network = network.to(device, torch.float32).train()
        outputs = network(hierarchy)
        weights = torch.linspace(-1, 1, outputs.numel(), device=device).view_as(outputs)
        gradients = torch.autograd.grad((outputs * weights).sum(), Adam(network).parameters)
        buffers = [each for each in network.buffers() if each.is_floating_point()]
        results.append((outputs, *gradients, *buffers))
    assert layers.call_count == 4  # of two levels
    for found, expected in zip(*results, strict=True):
        _close(found, expected)


@pytest.mark.parametrize("changes", [{"dropout": 0.5}, {"slope": -0.1}])
def test_what_is_left_to_the_stock_layers(changes, monkeypatch):
    monkeypatch.setattr(Level, "aggregation", lambda self, relation: relation.aggregate_first)
    monkeypatch.setattr(fused, "is_available", lambda device: True)
    hierarchy, layers = random_hierarchy(0, n=20, patterns=10), Mock()
    monkeypatch.setattr(fused, "layer", layers)
    network = make_network(hierarchy, 1, range(2), **changes).float().train()
    network(hierarchy, None, np.random.default_rng(0))
    network.double()(hierarchy)
    layers.assert_not_called()
