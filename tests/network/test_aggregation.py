from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.autograd import gradcheck

from saen import Attributes, Hierarchy, Relation, Vocabulary
from saen.network import Architecture
from saen.network.aggregation import ProjectFirst, weighted_moments
from saen.network.model import Level
from saen.network.tensors import RelationTensors
from tests.references.networks import EPSILON, assert_close, forward, make_network, random_hierarchy
from tests.references.networks import weighted_moments as reference_moments

CPU = torch.device("cpu")


def test_weighted_moments_are_those_of_repeated_rows() -> None:
    rng = np.random.default_rng(0)
    a = rng.normal(size=(4, 2, 3, 2))
    uses = rng.integers(0, 4, (4, 3)).astype(np.float64)
    mean, variance = weighted_moments(torch.from_numpy(a), torch.from_numpy(uses))
    for role in range(2):
        for model in range(3):
            repeated = np.repeat(a[:, role, model], uses[:, model].astype(int), axis=0)
            expected = reference_moments(repeated, np.ones(len(repeated)))
            assert_close(mean[role, model], expected[0], 1e-14)
            assert_close(variance[role, model], expected[1], 1e-14)


def test_weighted_moments_have_the_right_gradient() -> None:
    generator = torch.Generator().manual_seed(0)
    a = torch.randn(5, 2, 3, 2, generator=generator, dtype=torch.float64, requires_grad=True)
    uses = torch.tensor([[1.0, 0, 2], [3, 0, 0], [0, 0, 0.5], [1, 0, 1], [2, 0, 1]]).double()
    assert gradcheck(lambda a: weighted_moments(a, uses), (a,))


@given(st.integers(0, 2**32 - 1))
def test_count_moments_are_mean_and_covariance_of_the_dense_counts(seed: int) -> None:
    generator = np.random.default_rng(seed)
    n, m, k, models = generator.integers(1, 6, 4)
    numbers = generator.integers(-2, 4, (k, n, m)).clip(0)
    parents, roles, parts = np.nonzero(numbers.transpose(1, 0, 2))
    indptr = np.searchsorted(parents, np.arange(n + 1))
    alphabet = tuple(map(str, range(k)))
    relation = Relation(indptr, parts, roles, alphabet, m, numbers[roles, parents, parts])
    aggregation = ProjectFirst(relation, torch.float64, CPU)
    uses = torch.from_numpy(generator.integers(0, 3, (n, models)).astype(float))
    moments = aggregation.count_moments(uses)
    assert aggregation.count_moments(uses) is moments
    for model in range(models):
        if not uses[:, model].sum():
            assert moments[model].abs().max() < 1e-12
            continue
        for role in range(k):
            mean = np.average(numbers[role], axis=0, weights=uses[:, model])
            deviations = numbers[role] - mean
            share = uses[:, model] / uses[:, model].sum()
            covariance = deviations.T @ np.diag(share) @ deviations
            r, F = moments[model, role, 0].numpy(), moments[model, role, 1:].numpy()
            assert np.abs(r - mean).max() < 1e-12
            assert np.abs(F.T @ F - covariance).max() < 1e-12


def test_count_moments_keep_the_digits_of_small_variances() -> None:
    # Every parent has one part: the variance of the aggregates is that of the parts.
    n, m = 60, 6
    rng = np.random.default_rng(0)
    parts = rng.integers(0, m, n)
    relation = Relation(np.arange(n + 1), parts, np.zeros(n, int), ("a",), m)
    h = torch.from_numpy(100 + 0.1 * rng.standard_normal((m, 1, 4))).float()
    mean, variance = ProjectFirst(relation, torch.float32, CPU).moments(h, torch.ones(n, 1))
    rows = h.double().numpy()[parts, 0]
    assert np.abs(mean[0, 0].numpy() / rows.mean(0) - 1).max() < 1e-6
    assert np.abs(variance[0, 0].numpy() / rows.var(0) - 1).max() < 1e-3


@pytest.mark.parametrize(
    ("n_parents", "n_parts", "normalization", "projects_first"),
    [
        (1000, 10, "none", True),
        (1000, 10, "batch", True),
        (1000, 400, "none", True),
        (1000, 400, "batch", False),  # 400² covariances cost more than 1000 rows
        (10, 1000, "none", False),
    ],
)
def test_aggregation_is_chosen_by_counting_multiplications(
    n_parents: int, n_parts: int, normalization: str, projects_first: bool
) -> None:
    level = Level(Architecture(2, 0, (2,), ((8,), (8,)), normalization=normalization), 1, 1)
    parts, roles = np.arange(n_parents) % n_parts, np.zeros(n_parents, int)
    relation = Relation(np.arange(n_parents + 1), parts, roles, ("a", "b"), n_parts)
    tensors = RelationTensors(lambda: relation, torch.float64, CPU)
    assert isinstance(level.aggregation(tensors), ProjectFirst) == projects_first


def test_running_moments_start_with_the_first_batch_and_then_follow_slowly() -> None:
    first, second = random_hierarchy(0), random_hierarchy(1)
    network = make_network(first, seeds=[0], normalization="batch").train()
    passed = []
    for hierarchy in (first, second):
        passed.append(forward(network, hierarchy, training=True))
        network(hierarchy)
    for level in (1, 2):
        norm = network.level(level).norm
        for moment, index in (("mean", 0), ("variance", 1)):
            expected = 0.9 * passed[0].moments[level][index] + 0.1 * passed[1].moments[level][index]
            assert_close(getattr(norm, moment)[:, 0].ravel(), expected, 1e-12, floor=EPSILON)


def test_relations_with_few_filled_rows_skip_the_empty_ones() -> None:
    labels = Attributes(np.zeros(3, int), Vocabulary([0]))
    roles = tuple(f"role {i}" for i in range(10))
    relation = Relation(np.array([0, 2, 3]), np.arange(3), np.array([0, 0, 5]), roles, 3)
    network = make_network(Hierarchy(labels, (relation,)))
    tensors = network.to_tensors(Hierarchy(labels, (relation,)))
    assert tensors.relations[0].skips_empty_rows
    assert tensors.relations[0].n_rows == 2
