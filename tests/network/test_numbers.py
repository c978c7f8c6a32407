"""Sums over very many parts: what float32 keeps of them, after compression."""

from __future__ import annotations

import numpy as np
import torch

from saen import Attributes, Hierarchy, Relation, Vocabulary, compress
from saen.network import SAEN, Architecture


def hub(counts: np.ndarray) -> Hierarchy:
    """One parent with so many of each part."""
    n = len(counts)
    parts = Attributes(np.arange(n, dtype=np.int32), Vocabulary(range(n)))
    roles = np.zeros(n, dtype=np.int64)
    relation = Relation(np.array([0, n]), np.arange(n), roles, ("part",), n, counts=counts)
    return Hierarchy(parts, [relation], ("parts", "hubs"))


def assert_float32_is_enough(hierarchy: Hierarchy) -> None:
    architecture = Architecture.over(hierarchy, layers=[[8], [8, 2]], negative_slope=0.2)
    rough, exact = (
        SAEN(architecture, seeds=range(3), dtype=dtype)(hierarchy).detach().double()
        for dtype in (torch.float32, torch.float64)
    )
    assert (rough - exact).abs().max() <= 1e-5 * exact.abs().max()


def test_a_hub_of_a_million_parts_is_summed_to_1e_5_of_float64():
    n = 10**6
    codes = np.random.default_rng(0).integers(0, 50, n).astype(np.int32)
    relation = Relation(np.array([0, n]), np.arange(n), np.zeros(n, np.int64), ("part",), n)
    star = Hierarchy(Attributes(codes, Vocabulary(range(50))), [relation], ("parts", "hubs"))
    compressed = compress(star).hierarchy
    counts = compressed.relations[0].counts
    assert counts is not None
    assert counts.sum() == n
    assert_float32_is_enough(compressed)


def test_counts_beyond_what_float32_holds_exactly_are_rounded_and_nothing_else():
    for largest in (2**24, 2**31, 2**53):
        counts = np.array([largest + 1, largest - 1, 3, 1])
        hierarchy = hub(counts)
        merged = compress(hierarchy).hierarchy.relations[0].counts
        assert merged is not None
        assert sorted(merged.tolist()) == sorted(counts.tolist())
        assert_float32_is_enough(hierarchy)


def test_counts_of_merged_parts_are_added_in_64_bits():
    """Two identical parts with 2^31 - 1 occurrences each are one with twice as many."""
    labels = Attributes(np.zeros(2, dtype=np.int32), Vocabulary(range(1)))
    counts = np.array([2**31 - 1, 2**31 - 1])
    relation = Relation(np.array([0, 2]), np.arange(2), np.zeros(2, int), ("part",), 2, counts)
    merged = compress(Hierarchy(labels, [relation], ("parts", "hubs"))).hierarchy.relations[0]
    assert merged.counts is not None
    assert merged.counts.tolist() == [2**32 - 2]
