"""The fused layers of a level against the formulas of `model` and `aggregation`.

The kernels run on a GPU where there is one, and elsewhere in Triton's interpreter (`conftest`).
"""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from unittest.mock import Mock

import numpy as np
import pytest
import torch

from saen.network import fused
from saen.network.model import Level
from saen.network.training import Adam
from tests.references.networks import assert_close, make_network, random_hierarchy

SLOPE = 0.01
SHAPES = [(37, 5, 3, 4), (1, 1, 1, 1), (70, 18, 2, 1)]  # n, d, M, o


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
    uses[0] = 1.0
    gradient = torch.randn(n, o, m, generator=rng)
    if m > 1:  # a model without examples in this batch: nothing depends on its outputs
        uses[:, 1] = 0.0
        gradient[:, :, 1] = 0.0
    seen = torch.rand(d, m, generator=rng) > 0.2
    return {key: value.to(device) for key, value in numbers.items()}, *(
        each.to(device) for each in (uses, seen, gradient)
    )


def _leaves(numbers, dtype):
    return {key: value.to(dtype).requires_grad_() for key, value in numbers.items()}


def _close(found, expected):
    assert_close(found, expected, 1e-5, floor=1e-3)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_normalised_layer_and_its_gradients(device, shape):
    numbers, uses, seen, g = _random(device, *shape)
    if shape[0] == 1:
        g.zero_()  # one example has no variance: its gradient is rounding, a thousandfold
    single = _leaves(numbers, torch.float32)
    y, mean, variance, total = fused.normalised_layer(
        single["a"], uses, single["weight"], single["bias"], seen, 1e-5, SLOPE
    )
    found = torch.autograd.grad((y * g).sum(), tuple(single.values()))

    double, w = _leaves(numbers, torch.float64), uses.double()
    a, share = double["a"], w / w.sum(0).clamp_min(1e-30)
    expected_mean = (a * share[:, None]).sum(0)
    expected_variance = ((a - expected_mean).square() * share[:, None]).sum(0)
    normalised = (a - expected_mean) * (expected_variance + 1e-5).rsqrt() * seen
    x = torch.einsum("ndm,mdo->nom", normalised, double["weight"]) + double["bias"].T
    expected = torch.nn.functional.leaky_relu(x, SLOPE)
    if shape[0] > 1:
        _close(y, expected)
    _close(mean, expected_mean)
    _close(variance, expected_variance)
    _close(total, w.sum(0))
    gradients = torch.autograd.grad((expected * g).sum(), tuple(double.values()))
    for each, wanted in zip(found, gradients, strict=True):
        _close(each, wanted)


@pytest.mark.parametrize("slope", [SLOPE, 1.0])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_plain_layer_and_its_gradients(device, shape, slope):
    numbers, _, _, g = _random(device, *shape)
    results = []
    for dtype in (torch.float32, torch.float64):
        leaves = _leaves(numbers, dtype)
        if dtype == torch.float32:
            y = fused.plain_layer(leaves["a"], leaves["weight"], leaves["bias"], slope)
        else:
            x = torch.einsum("ndm,mdo->nom", leaves["a"], leaves["weight"]) + leaves["bias"].T
            y = torch.nn.functional.leaky_relu(x, slope)
        gradients = torch.autograd.grad((y * g).sum(), tuple(leaves.values()))
        results.append((y, *gradients))
    for found, expected in zip(*results, strict=True):
        _close(found, expected)


@pytest.mark.parametrize("normalisation", ["batch", "none"])
def test_a_training_step_equals_one_of_the_stock_layers(device, normalisation, monkeypatch):
    # A CPU would rather project parts first.
    monkeypatch.setattr(Level, "aggregation", lambda self, relation: relation.aggregate_first)
    hierarchy = random_hierarchy(0, n=30, patterns=20)
    results, layers = [], Mock(wraps=fused.plain_layer)
    monkeypatch.setattr(fused, "plain_layer", layers)
    for available in (True, False):
        monkeypatch.setattr(fused, "is_available", lambda device, answer=available: answer)
        network = make_network(hierarchy, 1, range(3), normalisation=normalisation)
        network = network.to(device, torch.float32).train()
        outputs = network(hierarchy)
        weights = torch.linspace(-1, 1, outputs.numel(), device=device).view_as(outputs)
        gradients = torch.autograd.grad((outputs * weights).sum(), Adam(network).parameters)
        buffers = [each for each in network.buffers() if each.is_floating_point()]
        results.append((outputs, *gradients, *buffers))
    assert layers.call_count == {"batch": 2, "none": 4}[normalisation]  # of two levels
    for found, expected in zip(*results, strict=True):
        _close(found, expected)


@pytest.mark.parametrize("changes", [{"dropout": 0.5}, {"slope": -0.1}])
def test_what_is_left_to_the_stock_layers(changes, monkeypatch):
    monkeypatch.setattr(Level, "aggregation", lambda self, relation: relation.aggregate_first)
    monkeypatch.setattr(fused, "is_available", lambda device: True)
    hierarchy, layers = random_hierarchy(0, n=20, patterns=10), Mock()
    monkeypatch.setattr(fused, "plain_layer", layers)
    monkeypatch.setattr(fused, "normalised_layer", layers)
    network = make_network(hierarchy, 1, range(2), **changes).float().train()
    network(hierarchy, None, np.random.default_rng(0))
    network.double()(hierarchy)
    layers.assert_not_called()
