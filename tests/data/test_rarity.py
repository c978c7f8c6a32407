from __future__ import annotations

import numpy as np
import pytest

from saen import Graphs, compress, compress_graphs, make_decomposition
from saen.data import rarity
from saen.data.rarity import Items, Rarity, find_keys


def stars(leaves) -> Graphs:
    """Stars of so many leaves."""
    return Graphs.from_edge_lists([[(0, leaf) for leaf in range(1, n + 1)] for n in leaves])


def weighed(graphs, depth=1):
    """The weight of every item of every graph: {(role, count): weight}."""
    decomposition = make_decomposition(f"neighbourhoods(depth={depth}, node_labels='degree')")
    compressed = compress_graphs(graphs, decomposition)
    items = Items.of(compressed)
    found = Rarity.of(compressed, items)
    weights = found.weights(compressed, items, found.items.find(items.keys))
    relation = compressed.hierarchy.relations[-1]
    out = []
    for row in compressed.top.tolist():
        own = slice(int(relation.indptr[row]), int(relation.indptr[row + 1]))
        entries = zip(
            relation.roles[own].tolist(), items.counts[own].tolist(), weights[own], strict=True
        )
        out.append({(role, count): weight for role, count, weight in entries})
    return out


def test_rarity_counts_one_fact_once():
    """A hub of degree 57 says all there is to say; 57 leaves at such a hub are nothing new."""
    weights = weighed(stars([57] + [3, 4, 5, 6] * 60), depth=2)[0]
    assert weights[0, 1] > 4  # a node of degree 57
    assert weights[0, 57] < 0.02  # leaves, which all stars have
    for depth in (1, 2):
        assert weights[depth, 1] == weights[depth, 57] == 0  # the hub's neighbours, the leaves' hub


def test_rarity_is_that_among_examples_of_about_one_size():
    """Stars of 40 leaves are a third of the stars, but two thirds of the larger ones."""
    weights = weighed(stars([3] * 300 + [40] * 200 + [50] * 100))
    assert len(weights) == 600
    beside = (300 + 100) / 2  # of other sizes, in the bins beside, at half weight
    assert weights[300][0, 1] == pytest.approx(-np.log(200 / (200 + beside)), abs=0.05)
    assert weights[599][0, 1] == pytest.approx(-np.log(100 / (100 + 200 / 2)), abs=0.05)


def test_rarity_within_one_size_is_at_most_four_times_that_everywhere(monkeypatch):
    """All large ones have it: it is rare still, with 40 among 1,000."""
    monkeypatch.setattr(rarity, "MIN_BIN", 20)
    monkeypatch.setattr(rarity, "_NEXT_BIN", 0.0)
    weights = weighed(stars([*range(3, 35)] * 30 + [100] * 40))
    assert weights[-1][0, 1] == pytest.approx(-np.log(4 * 41 / 1001))


def test_rarity_finds_keys_by_both_lanes():
    known = np.array([[1, 1], [1, 2], [5, 0]], dtype=np.uint64)
    asked = np.array([[5, 0], [1, 1], [2, 2], [9, 9], [5, 1]], dtype=np.uint64)
    assert find_keys(known, asked).tolist() == [2, 0, -1, -1, -1]
    assert find_keys(known[:0], asked).tolist() == [-1] * 5


def test_rarity_tells_equal_parts_of_different_roles_apart():
    graphs = stars([2, 3, 4])
    compressed = compress(make_decomposition("ego(radii=[0, 1, 2, 3])").decompose(graphs))
    items = Items.of(compressed)
    relation = compressed.hierarchy.relations[-1]
    assert len(np.unique(items.keys, axis=0)) == len(items.parts) > len(np.unique(items.parts))
    assert items.sizes.tolist() == [
        np.sqrt(relation.multiplicity[a:b].sum() * (b - a))
        for a, b in zip(relation.indptr[:-1], relation.indptr[1:], strict=True)
    ]


def test_rarity_puts_about_equal_numbers_into_bins(monkeypatch):
    monkeypatch.setattr(rarity, "MIN_BIN", 10)
    sizes = np.random.default_rng(0).permutation(np.arange(200.0))
    edges = rarity._bin_edges(sizes, np.ones(200, np.int64))
    assert len(edges) == 19
    assert set(np.bincount(np.searchsorted(edges, sizes, side="right"))) <= {9, 10, 11}
    assert len(rarity._bin_edges(np.full(200, 7.0), np.ones(200, np.int64))) == 0
    assert len(rarity._bin_edges(sizes[:5], np.ones(5, np.int64))) == 0
