from __future__ import annotations

import numpy as np
import pytest

from saen._util import arrays
from saen.data import adjacency
from saen.data.adjacency import EdgeBlock, Entries, by_column, is_symmetric
from saen.data.graphs import Graphs


@pytest.mark.parametrize("max_sorted", [0, 10**9], ids=["scipy", "sorted"])
def test_adjacency_is_transposed_by_scipy_or_by_sorting_with_the_same_result(
    max_sorted: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(adjacency, "MAX_SORTED", max_sorted)
    pairs = np.unique(np.random.default_rng(0).integers(0, 30, (200, 2)), axis=0)
    listed = Entries.sorted(pairs, 30, {"number": np.arange(len(pairs))}, "error")
    order = by_column(listed.indptr, listed.columns)
    assert order.tolist() == np.lexsort((pairs[:, 0], pairs[:, 1])).tolist()
    both = listed.symmetrised(np.array([0, 30]))
    assert not is_symmetric(listed.indptr, listed.columns, np.array([0, 30]))
    assert is_symmetric(both.indptr, both.columns, np.array([0, 30]))
    plain = Entries.sorted(pairs, 30, {}, "error").symmetrised(np.array([0, 30]))
    assert np.array_equal(plain.indptr, both.indptr)
    assert np.array_equal(plain.columns, both.columns)
    assert (plain.indptr.dtype, plain.columns.dtype) == (both.indptr.dtype, both.columns.dtype)
    numbers = {tuple(pair): number for number, pair in enumerate(pairs.tolist())}
    rows = np.repeat(np.arange(30), np.diff(both.indptr)).tolist()
    found = zip(rows, both.columns.tolist(), both.values["number"].tolist(), strict=True)
    assert all(numbers.get((a, b), numbers.get((b, a))) == number for a, b, number in found)


def test_adjacency_of_many_graphs_is_symmetric_if_every_block_of_them_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(adjacency, "MAX_SORTED", 0)
    monkeypatch.setattr(arrays, "BLOCK", 3)
    graphs = Graphs.from_edge_lists([[(0, 1), (1, 2)], [], [(0, 0)], [(0, 1)], [(1, 3), (0, 2)]])
    pattern = graphs.indptr, graphs.indices, graphs.node_offsets
    assert is_symmetric(*pattern)
    indices = graphs.indices.copy()
    indices[-1] -= 1
    assert not is_symmetric(graphs.indptr, indices, graphs.node_offsets)
    pointers = graphs.indptr.copy()
    pointers[-2] += 1
    assert not is_symmetric(pointers, graphs.indices, graphs.node_offsets)


@pytest.mark.parametrize("order", ["ascending", "by row", "any", "with repetitions"])
def test_entries_joined_from_blocks_are_those_of_sorted_pairs(order: str) -> None:
    rng = np.random.default_rng(3)
    pairs = np.unique(rng.integers(0, 20, (90, 2)), axis=0)
    if order == "by row":
        pairs = pairs[np.lexsort((rng.random(len(pairs)), pairs[:, 0]))]
    elif order != "ascending":
        pairs = rng.permutation(np.concatenate([pairs, pairs] if "with" in order else [pairs]))
    blocks = [EdgeBlock.of(*block.T) for block in np.split(pairs, [0, 7, 8, 8, 50])]
    joined = Entries.joined(blocks, 20, len(pairs) + 5)
    expected = Entries.sorted(pairs, 20, {}, "merge")
    assert joined.indptr.tolist() == expected.indptr.tolist()
    assert joined.columns.tolist() == expected.columns.tolist()
