from __future__ import annotations

import time

import numpy as np
import pytest

import saen.data.chunks
from saen import (
    Ego,
    Graphs,
    InputError,
    compress,
    compress_graphs,
)
from saen.decompositions import Paths
from tests.references.hierarchies import same_arrays


def star(n):
    return Graphs.from_edge_lists([np.column_stack([np.zeros(n, np.int64), np.arange(1, n + 1)])])


def test_compress_graphs_reports_progress_in_graphs(monkeypatch):
    graphs = Graphs.from_edge_lists([[(0, 1)]] * 10)
    ego = Ego(radii=(0, 1))
    # One graph takes 2 + 4 entries.
    monkeypatch.setattr(saen.data.chunks, "_MAX_CHUNK_ENTRIES", 20)
    done: list[int] = []
    compressed = compress_graphs(graphs, ego, progress=done.append)
    assert done == [3, 6, 9, 10]
    assert same_arrays(compressed, compress(ego.decompose(graphs)))


def test_compress_graphs_makes_a_large_graph_a_chunk_of_its_own(monkeypatch):
    star = [(0, leaf) for leaf in range(1, 50)]
    graphs = Graphs.from_edge_lists([[(0, 1)], star, [(0, 1)], star])
    monkeypatch.setattr(saen.data.chunks, "_MAX_CHUNK_ENTRIES", 10)
    done: list[int] = []
    compressed = compress_graphs(graphs, Ego(radii=(0, 1)), progress=done.append)
    assert done == [1, 2, 3, 4]
    assert compressed.hierarchy.sizes[2] == 2


def test_compress_graphs_counts_what_lies_around_a_hub_without_listing_it():
    # 10^10 entries: every leaf has all others within distance 2.
    compressed = compress_graphs(star(10**5), Ego(radii=(0, 2)), lower_inverse=False)
    assert compressed.entries == (0, (10**5 + 1) * (10**5 + 2), 2 * (10**5 + 1))
    assert compressed.hierarchy.sizes == (2, 4, 1)


def test_compress_graphs_makes_paths_of_equal_subgraphs_once(monkeypatch):
    small = star(30)
    paths = Paths(radii=(1, 2), max_length=2)
    direct = compress(paths.decompose(small))
    cut = paths.cut(small)
    assert len(cut.costs) == 32  # every leaf with the hub, and everything at radius 1 and 2
    monkeypatch.setattr(saen.data.chunks, "_MAX_CHUNK_ENTRIES", 50)
    assert same_arrays(compress_graphs(small, paths), direct)
    monkeypatch.setattr(saen.data.chunks, "_MAX_INVERSE", 1000)
    without = compress_graphs(small, paths)
    assert [column is None for column in without.inverse] == [False, True, False, False]
    assert without.hierarchy == direct.hierarchy


def test_compress_refuses_hopeless_work_with_a_forecast(monkeypatch):
    before = time.monotonic()
    with pytest.raises(InputError, match=r"up to 1\.0e\+12 entries .* of them in example 0"):
        compress_graphs(star(10**6), Ego(radii=(3,)))
    assert time.monotonic() - before < 20
    small = star(1000)
    monkeypatch.setattr(saen.data.chunks, "physical_memory", lambda: 5e6)
    with pytest.raises(InputError, match=r"1\.0e\+06 of them in example 0: choose smaller radii"):
        compress_graphs(small, Ego(radii=(2,)))
    assert len(compress_graphs(small, Ego(radii=(1,)))) == 1
