"""The paper's Eqs. 1 and 2, object by object, and small random data to test networks with."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from saen import Attributes, Hierarchy, Relation, Vocabulary
from saen.network import SAEN, Architecture, Task
from tests.references.hierarchies import entries_of

Floats = NDArray[np.float64]
EPSILON = 1e-5  # added to variances
MAX_LAG = 1e-5  # relative deviations up to which an aggregate did not vary in training
MAX_ROUNDING = 8  # the same of bottom vectors, in units of the last place

DEVICES = [
    "cpu",
    pytest.param(
        "cuda",
        marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device"),
    ),
]


# -- the network by its definition -------------------------------------------------------------


@dataclass
class Passed:
    """What one model makes of a hierarchy, level by level."""

    a: list[Floats]
    """a_l before normalization, (n_l, n(l) · d_{l-1}); at the bottom x, one-hot labels first."""
    moments: list[tuple[Floats, Floats]]
    """Weighted mean and variance of every column of a_l."""
    h: list[Floats]
    """h_l, (n_l, d_l); at the top the outputs."""


def forward(
    network: SAEN,
    hierarchy: Hierarchy,
    model: int = 0,
    weights: Floats | None = None,
    training: bool = False,
) -> Passed:
    """One model of a network over the original objects of a hierarchy, in float64.

    `weights` (n_L,) says how often the model's training uses each example; statistics over the
    objects of a level weight each by how often those examples use it.
    """
    state = {key: tensor.double().cpu().numpy() for key, tensor in network.state_dict().items()}
    shape = network.architecture
    uses = use_counts(hierarchy, np.ones(len(hierarchy)) if weights is None else weights)
    passed = Passed([], [], [])
    for level in range(hierarchy.depth + 1):
        if level == 0:
            a = bottom_attributes(hierarchy, state["levels.0.entries"][model], shape.labels)
            blocks = [
                state[key][model] for key in ("levels.0.table", "levels.0.map") if key in state
            ]
            W = np.vstack([np.empty((0, shape.layers[0][0])), *blocks])
            normalised = np.arange(a.shape[1]) >= a.shape[1] - shape.vectors
        else:
            relation = hierarchy.relations[level - 1]
            a = shift_and_aggregate(relation, passed.h[-1], shape.layers[level - 1][-1])
            W = state[f"levels.{level}.weight"][model]
            normalised = np.ones(a.shape[1], dtype=bool)
        mean, variance = weighted_moments(a, uses[level])
        passed.a.append(a)
        passed.moments.append((mean, variance))
        x = a.copy()
        if shape.normalization == "batch":
            if not training:
                mean, variance = (
                    np.concatenate(
                        [
                            np.zeros(a.shape[1] - normalised.sum()),
                            state[f"levels.{level}.norm.{moment}"][:, model].ravel(),
                        ]
                    )
                    for moment in ("mean", "variance")
                )
            for column in np.flatnonzero(normalised):
                x[:, column] -= mean[column]
                x[:, column] /= np.sqrt(variance[column] + EPSILON)
                limit = MAX_LAG if level else MAX_ROUNDING * torch.finfo(network.dtype).eps
                if not training and np.sqrt(variance[column]) <= limit * abs(mean[column]):
                    x[:, column] = 0.0
        if level:
            # A role that the model has not seen contributes nothing.
            seen = state[f"levels.{level}.seen"][:, model].astype(bool)
            x[:, ~np.repeat(seen, shape.layers[level - 1][-1])] = 0.0
        passed.h.append(
            extract(network, state, level, model, x @ W + state[f"levels.{level}.bias"][model])
        )
    return passed


def bottom_attributes(hierarchy: Hierarchy, entries: Floats, n_labels: int) -> Floats:
    """x of every bottom object: a one-hot over label entries (none if unseen), then its vector.

    `entries[label]` is the model's entry for a label, with the last for values that the vocabulary
    lacks; `n_labels` is the entry that rare labels share, anything beyond it is unseen.
    """
    attributes = hierarchy.attributes
    width = n_labels + 1 if n_labels else 0
    n_reals = 0 if attributes.vectors is None else attributes.vectors.shape[1]
    x = np.zeros((len(attributes), width + n_reals))
    for row in range(len(attributes)):
        if attributes.codes is not None and n_labels:
            entry = int(entries[attributes.codes[row]])
            if entry <= n_labels:
                x[row, entry] = 1.0
        if attributes.vectors is not None:
            x[row, width:] = attributes.vectors[row]
    return x


def shift_and_aggregate(relation: Relation, h: Floats, width: int) -> Floats:
    """Eq. 1: a_l(s) = Σ_π Σ_{s' ∈ R_{l,π}⁻¹(s)} z_π ⊗ h_{l-1}(s')."""
    a = np.zeros((relation.n_parents, relation.n_roles * width))
    for parent in range(relation.n_parents):
        for role, part, count in entries_of(relation, parent):
            z = np.zeros(relation.n_roles)
            z[role] = 1.0
            for _ in range(count):
                a[parent] += np.kron(z, h[part])
    return a


def extract(network: SAEN, state: dict[str, Any], level: int, model: int, first: Floats) -> Floats:
    """Eq. 2 from the first linear layer on: h_l(s) = f_l(a_l(s)); the output has no activation."""
    shape = network.architecture
    x = first
    for layer in range(1, len(shape.layers[level])):
        x = np.where(x > 0, x, shape.negative_slope * x)
        x = x @ state[f"levels.{level}.layers.weights.{layer - 1}"][model]
        x = x + state[f"levels.{level}.layers.biases.{layer - 1}"][model]
    if level == len(shape.layers) - 1:
        return x
    return np.where(x > 0, x, shape.negative_slope * x)


def use_counts(hierarchy: Hierarchy, top: Floats) -> list[Floats]:
    """w_{l-1} = Σ_π R_{l,π}ᵀ w_l: how often the examples use each object, bottom first."""
    uses = [np.asarray(top, dtype=np.float64)]
    for relation in reversed(hierarchy.relations):
        below = np.zeros(relation.n_parts)
        for parent in range(relation.n_parents):
            for _, part, count in entries_of(relation, parent):
                below[part] += count * uses[-1][parent]
        uses.append(below)
    return uses[::-1]


def weighted_moments(a: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Mean and variance of every column, each object counted as often as it is used."""
    mean, variance = np.zeros(a.shape[1]), np.zeros(a.shape[1])
    total = weights.sum()
    if total == 0:
        return mean, variance
    for row, weight in zip(a, weights, strict=True):
        mean += weight / total * row
    for row, weight in zip(a, weights, strict=True):
        variance += weight / total * (row - mean) ** 2
    return mean, variance


# -- comparing ---------------------------------------------------------------------------------


def numbers(values: Any) -> Floats:
    """Anything as a float64 array."""
    if isinstance(values, torch.Tensor):
        values = values.detach().double().cpu().numpy()
    return np.asarray(values, dtype=np.float64)


def assert_close(
    actual: Any, expected: Any, tolerance: float, what: str = "", floor: float = 1e-300
) -> None:
    """Equal up to a share of the largest entry, or of `floor` where all are smaller."""
    one, other = numbers(actual), numbers(expected)
    assert one.shape == other.shape, f"{what}: shapes {one.shape} and {other.shape}"
    assert np.isfinite(other).all(), f"{what}: not finite"
    gap, size = np.abs(one - other).max(initial=0.0), np.abs(other).max(initial=0.0)
    assert gap <= tolerance * max(size, floor), f"{what}: off by {gap:.3g}, largest {size:.3g}"


def assert_same_state(one: SAEN, other: SAEN) -> None:
    """Two networks equal bit for bit, statistics included."""
    there = other.state_dict()
    for key, tensor in one.state_dict().items():
        assert torch.equal(tensor, there[key]), key


def of_model(network: SAEN, model: int) -> dict[str, torch.Tensor]:
    """Everything that one model owns."""
    return {
        key: tensor[:, model]
        if "norm.mean" in key or "norm.variance" in key or key.endswith("seen")
        else tensor[model]
        for key, tensor in network.state_dict().items()
    }


# -- data --------------------------------------------------------------------------------------


def random_hierarchy(
    seed: int,
    n: int = 30,
    depth: int = 2,
    kind: str = "codes",
    n_labels: int = 5,
    n_roles: int = 2,
    patterns: int = 8,
) -> Hierarchy:
    """A hierarchy in which objects of every level repeat, with unseen labels among them.

    Every level draws its objects from a few patterns, so there are duplicates to merge; a top of
    `n` examples, some of them equal.
    """
    rng = np.random.default_rng(seed)
    size = 3 * patterns
    codes = vocabulary = vectors = None
    if kind != "vectors":
        vocabulary = Vocabulary(f"label {i}" for i in range(n_labels))
        codes = rng.integers(-1, n_labels, size)
    if kind != "codes":
        vectors = rng.normal(size=(patterns, 3))[rng.integers(0, patterns, size)]
    relations = []
    for level in range(1, depth + 1):
        drawn = [
            (rng.integers(0, size, k), rng.integers(0, n_roles, k), rng.integers(1, 3, k))
            for k in rng.integers(0, 6, patterns)
        ]
        parents = n if level == depth else 3 * patterns
        objects = [drawn[i] for i in rng.integers(0, patterns, parents)]
        parts, roles, counts = (
            np.concatenate([entries[column] for entries in objects]) for column in range(3)
        )
        indptr = np.cumsum([0, *(len(entries[0]) for entries in objects)])
        alphabet = tuple(f"role {i}" for i in range(n_roles))
        relations.append(Relation(indptr, parts, roles, alphabet, size, counts))
        size = parents
    return Hierarchy(Attributes(codes, vocabulary, vectors), tuple(relations))


def small_layers(depth: int, outputs: int) -> list[list[int]]:
    """Layers of a small network: one at the bottom, two above, the output."""
    return [[3], *[[4, 3]] * (depth - 1), [4, outputs]]


def make_network(
    hierarchy: Hierarchy,
    outputs: int = 2,
    seeds: Any = (0,),
    layers: Any = None,
    dtype: torch.dtype = torch.float64,
    **options: Any,
) -> SAEN:
    """A small float64 network over a hierarchy, with random biases too."""
    shape = layers or small_layers(hierarchy.depth, outputs)
    network = SAEN(Architecture.over(hierarchy, shape, **options), seeds, dtype=dtype)
    with torch.no_grad():
        for model, seed in enumerate(seeds):
            # Biases start at zero: make them matter.
            generator = torch.Generator().manual_seed(int(np.sum(seed)) + 1)
            for parameter in network.parameters():
                if parameter.ndim == 2:
                    parameter[model] = 0.3 * torch.randn(
                        parameter.shape[1:], generator=generator, dtype=torch.float64
                    )
    return network


def random_task(seed: int, n: int, n_models: int, loss: str = "classes") -> Task:
    """Targets for n examples; every model trains on its own four fifths of them."""
    rng = np.random.default_rng(seed)
    weights = (rng.random((n, n_models)) < 0.8).astype(np.float64)
    if loss == "squares":
        return Task.regression(rng.normal(size=(n, 2)), weights)
    n_classes = 2 if loss == "binary" else 3
    return Task.classification(rng.integers(0, n_classes, n), weights, n_classes=n_classes)


def models_of(task: Task, models: Any) -> Task:
    """The same task for some of its models."""
    validation = None if task.validation is None else task.validation[:, models]
    return replace(task, weights=task.weights[:, models], validation=validation)
