"""Contributions are the integrated gradients of their definition, and add up."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from saen import Hierarchy, compress
from saen.network import SAEN
from saen.network.attribution import Contributions, Passed
from tests.properties.strategies import hierarchies
from tests.references.hierarchies import entries_of
from tests.references.networks import forward, make_network, random_hierarchy

# -- the definition, object by object ----------------------------------------------------------


class Reference:
    """Integrated gradients of one model by autograd at many points, one occurrence at a time."""

    def __init__(self, network: SAEN, hierarchy: Hierarchy, model: int, weights: Any) -> None:
        self.network, self.hierarchy, self.model = network, hierarchy, model
        self.state = {key: t.double() for key, t in network.state_dict().items()}
        self.h = forward(network, hierarchy, model).h
        self.objects = [np.zeros(size) for size in hierarchy.sizes]
        self.entries = [np.zeros(relation.n_entries) for relation in hierarchy.relations]
        for top in range(len(hierarchy)):
            self._give(hierarchy.depth, top, np.asarray(weights, dtype=np.float64), 0.0)

    def _give(self, level: int, number: int, g: Any, share: float) -> None:
        """Hand down ⟨g, h⟩ + share from one occurrence of an object."""
        self.objects[level][number] += g @ self.h[level][number] + share
        if level == 0:
            return
        relation, width = self.hierarchy.relations[level - 1], self.h[level - 1].shape[1]
        first = int(relation.indptr[number])
        listed = list(entries_of(relation, number))
        a = np.zeros(relation.n_roles * width)
        for role, part, count in listed:
            a[role * width : (role + 1) * width] += count * self.h[level - 1][part]
        is_top = level == self.hierarchy.depth
        r = self._typical(level, len(a)) if is_top else np.zeros_like(a)
        G = self._integrated(level, r, a, g)
        empty = float(g @ self._f(level, torch.from_numpy(r)[None])[0].numpy()) + share
        instead = (G * r).reshape(relation.n_roles, width).sum(axis=1)
        in_role = [sum(n for each, _, n in listed if each == role) for role in range(len(instead))]
        lacking = sum(v for v, n in zip(instead, in_role, strict=True) if n == 0)
        for entry, (role, part, count) in enumerate(listed, start=first):
            told = count * G[role * width : (role + 1) * width]
            total = sum(n for _, _, n in listed)
            if is_top:
                part_share = -count * (instead[role] / in_role[role] + lacking / total)
            else:
                part_share = count * empty / total
            self.entries[level - 1][entry] += told @ self.h[level - 1][part] + part_share
            self._give(level - 1, part, told, part_share)

    def _typical(self, level: int, size: int) -> Any:
        """The mean aggregate of the training examples, or zeros where it is not known."""
        if self.network.architecture.normalization != "batch":
            return np.zeros(size)
        mean = self.state[f"levels.{level}.norm.mean"][:, self.model].ravel()
        seen = self.state[f"levels.{level}.seen"][:, self.model]
        return (mean * seen.repeat_interleave(size // len(seen))).numpy()

    def _integrated(self, level: int, r: Any, a: Any, g: Any, points: int = 4000) -> Any:
        t = (torch.arange(points).double() + 0.5) / points
        line = (torch.from_numpy(r) + t[:, None] * torch.from_numpy(a - r)).requires_grad_()
        (self._f(level, line) @ torch.from_numpy(g)).mean().backward()
        return line.grad.sum(dim=0).numpy()

    def _f(self, level: int, a: torch.Tensor) -> torch.Tensor:
        """f_l of aggregates, (n, n(l) · d)."""
        shape, prefix = self.network.architecture, f"levels.{level}"
        if shape.normalization == "batch":
            mean = self.state[f"{prefix}.norm.mean"][:, self.model].ravel()
            variance = self.state[f"{prefix}.norm.variance"][:, self.model].ravel()
            a = (a - mean) / torch.sqrt(variance + 1e-5)
        seen = self.state[f"{prefix}.seen"][:, self.model]
        a = a * seen.repeat_interleave(a.shape[1] // len(seen))
        x = (
            a @ self.state[f"{prefix}.weight"][self.model]
            + self.state[f"{prefix}.bias"][self.model]
        )
        for layer in range(len(shape.layers[level]) - 1):
            x = torch.nn.functional.leaky_relu(x, shape.negative_slope)
            x = x @ self.state[f"{prefix}.layers.weights.{layer}"][self.model]
            x = x + self.state[f"{prefix}.layers.biases.{layer}"][self.model]
        is_top = level == len(shape.layers) - 1
        return x if is_top else torch.nn.functional.leaky_relu(x, shape.negative_slope)


def gradients_of(n: int, network: SAEN, weights: Any) -> torch.Tensor:
    """The gradient of the mean over the models, for n examples."""
    row = torch.tensor(weights, dtype=torch.float64) / network.n_models
    return row.expand(n, network.n_models, -1)


def contributions_of(network: SAEN, hierarchy: Hierarchy, weights: Any) -> list[Contributions]:
    """Bottom first."""
    passed = Passed.through(network, hierarchy)
    levels = list(passed.contributions(gradients_of(len(hierarchy), network, weights)))
    return levels[::-1]


def with_statistics(network: SAEN, seed: int = 0) -> SAEN:
    """Running statistics that are not 0 and 1, and a role that one model never met."""
    generator = torch.Generator().manual_seed(seed)
    for key, buffer in network.named_buffers():
        if "norm.mean" in key:
            buffer.copy_(torch.randn(buffer.shape, generator=generator))
        elif "norm.variance" in key:
            buffer.copy_(torch.rand(buffer.shape, generator=generator) + 0.5)
        elif key.endswith("1.seen"):
            buffer[0, 0] = False
    return network


@pytest.mark.parametrize(("depth", "kind"), [(1, "codes"), (2, "both"), (3, "vectors")])
@pytest.mark.parametrize("normalization", ["none", "batch"])
def test_contributions_are_the_integrated_gradients_of_the_definition(depth, kind, normalization):
    hierarchy = random_hierarchy(depth, n=2, depth=depth, kind=kind)
    layers = [[3], *[[4]] * (depth - 1), [4, 2]]  # one activation per level: one step is exact
    options: dict[str, Any] = {
        "layers": layers,
        "normalization": normalization,
        "negative_slope": 0.1,
    }
    network = with_statistics(make_network(hierarchy, seeds=(3, 4), **options))
    contributions = contributions_of(network, hierarchy, [0.5, -1.0])
    references = [Reference(network, hierarchy, model, [0.5, -1.0]) for model in (0, 1)]
    for level in range(depth + 1):
        expected = np.mean([r.objects[level] for r in references], axis=0)
        tolerance = 2e-3 * np.abs(expected).max()
        np.testing.assert_allclose(contributions[level].objects, expected, atol=tolerance)
        if level:
            expected = np.mean([r.entries[level - 1] for r in references], axis=0)
            tolerance = 2e-3 * np.abs(expected).max()
            np.testing.assert_allclose(contributions[level].entries, expected, atol=tolerance)


def test_contributions_of_several_layers_converge_to_the_definition():
    hierarchy = random_hierarchy(5, n=3, depth=2)
    network = make_network(hierarchy, layers=[[4], [8, 6, 5], [6, 4, 1]], negative_slope=0.01)
    contributions = contributions_of(network, hierarchy, [1.0])
    reference = Reference(network, hierarchy, 0, [1.0])
    assert max(level.steps for level in contributions) > 2
    for level in (0, 1):
        moved = np.abs(contributions[level].objects - reference.objects[level]).sum()
        assert moved <= 0.02 * np.abs(reference.objects[level]).sum()


# -- laws --------------------------------------------------------------------------------------


@given(hierarchies(), st.integers(1, 2), st.sampled_from(["none", "batch"]), st.booleans())
def test_contributions_add_up_on_every_level(hierarchy, n_models, normalization, activated):
    options = {"normalization": normalization, "output_activation": activated}
    network = make_network(hierarchy, seeds=range(n_models), **options)
    network = with_statistics(network)
    contributions = contributions_of(network, hierarchy, [1.0, -0.5])
    outputs = network(hierarchy).detach().mean(dim=1).numpy() @ [1.0, -0.5]
    np.testing.assert_allclose(contributions[-1].objects, outputs, atol=1e-9)
    for level, relation in enumerate(hierarchy.relations, start=1):
        scale = 1e-9 * (
            1
            + np.abs(contributions[level].entries).sum()
            + np.abs(contributions[level].empty).sum()
        )
        parents = np.repeat(np.arange(relation.n_parents), np.diff(relation.indptr))
        given = np.bincount(parents, contributions[level].entries, minlength=relation.n_parents)
        keeps = np.diff(relation.indptr) == 0
        if level == hierarchy.depth:
            keeps[:] = True
        np.testing.assert_allclose(
            given + keeps * contributions[level].empty,
            contributions[level].objects,
            rtol=0,
            atol=scale,
        )
        received = np.bincount(
            relation.parts, contributions[level].entries, minlength=relation.n_parts
        )
        np.testing.assert_allclose(received, contributions[level - 1].objects, rtol=0, atol=scale)


@given(hierarchies(), st.sampled_from(["none", "batch"]))
def test_contributions_of_a_unique_object_are_those_of_its_copies(hierarchy, normalization):
    layers = [[3], *[[4]] * (hierarchy.depth - 1), [4, 1]]  # exact, whatever the steps
    network = make_network(hierarchy, layers=layers, normalization=normalization, seeds=(0, 1))
    network = with_statistics(network)
    compressed = compress(hierarchy)
    objects = contributions_of(network, hierarchy, [1.0])
    small = Passed.through(network, compressed.hierarchy)
    uses = torch.from_numpy(np.bincount(compressed.top, minlength=len(compressed.hierarchy)))
    gradients = gradients_of(len(compressed.hierarchy), network, [1.0]) * uses[:, None, None]
    unique = list(small.contributions(gradients))[::-1]
    for level, (many, few) in enumerate(zip(objects, unique, strict=True)):
        sums = np.bincount(compressed.unique_of(level), many.objects, minlength=len(few.objects))
        scale = 1e-9 * (1 + np.abs(many.objects).sum() + np.abs(many.empty).sum())
        np.testing.assert_allclose(few.objects, sums, rtol=0, atol=scale)
