from __future__ import annotations

import os
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest

import saen.data.chunks
import saen.data.compression
from saen import (
    Attributes,
    Graphs,
    Hierarchy,
    InputError,
    Relation,
    Vocabulary,
    compress,
    compress_graphs,
)
from saen._util.arrays import offsets
from saen.data.chunks import Cut, physical_memory
from saen.data.identical import merge_objects
from saen.decompositions import Ego, Paths
from tests.references.hierarchies import same_arrays
from tests.refusals import refuses


def star(n):
    return Graphs.from_edge_lists([np.column_stack([np.zeros(n, np.int64), np.arange(1, n + 1)])])


def owned_parts(lengths, parts=None, n_parts=None):
    """Parents of so many parts each: those given, or parts of their own, in order."""
    parts = np.arange(sum(lengths)) if parts is None else parts
    n_parts = len(parts) if n_parts is None else n_parts
    return Relation(offsets(lengths), parts, np.zeros_like(parts), ("part",), n_parts)


class Numbers:
    """Somebody else's decomposition, of numbers: a number is what its example costs, too."""

    takes = "numbers"

    def costs(self, data):
        return data

    def decompose(self, data):
        bottom = Attributes(vectors=data[:, None].astype(np.float64))
        return Hierarchy(bottom, [owned_parts(np.ones_like(data))])


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


def test_compress_graphs_makes_a_chunk_for_every_thread_if_the_order_is_free(monkeypatch):
    def ends(n_cores, lower_inverse):
        done: list[int] = []
        monkeypatch.setattr(os, "cpu_count", lambda: n_cores)
        data = np.ones(30, dtype=np.int64)
        options = {"lower_inverse": lower_inverse, "progress": done.append}
        compressed = compress_graphs(data, Numbers(), **options)
        assert compressed.hierarchy.sizes == (1, 1)
        return done

    monkeypatch.setattr(saen.data.chunks, "_MIN_CHUNK_ENTRIES", 1)
    assert ends(4, lower_inverse=False) == [9, 18, 27, 30]  # 8, and an example as whole ones are
    assert ends(None, lower_inverse=False) == [30]
    assert ends(4, lower_inverse=True) == [30]  # the same on every machine


def test_compress_graphs_that_is_interrupted_does_not_wait_for_chunks(monkeypatch):
    monkeypatch.setattr(saen.data.chunks, "_MAX_CHUNK_ENTRIES", 1)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    before, interrupted = set(threading.enumerate()), threading.Event()
    begun: list[int] = []
    in_time: list[bool] = []

    class Slow(Numbers):
        def decompose(self, data):
            begun.append(data[0])
            if data[0] > 1:
                in_time.append(interrupted.wait(timeout=10))
            return super().decompose(data)

    def interrupt(_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as error:
        compress_graphs(np.arange(1, 20), Slow(), progress=interrupt)
    interrupted.set()
    for thread in set(threading.enumerate()) - before:
        thread.join()
    assert all(in_time)
    assert len(begun) <= 3  # the first, and one in each thread
    del error  # until here, what it refers to keeps the other chunks from being forgotten


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


def test_compress_graphs_cuts_hierarchies_of_many_levels(monkeypatch):
    rng = np.random.default_rng(0)
    labels = Attributes(np.array([0, 1, 2, 1, 0]), Vocabulary("abc"))
    bottom, inverse, _ = merge_objects(labels)
    # Twelve roots of 20 parts in all, which have 8 parts, which have one or two labels.
    lengths = [rng.integers(1, 3, 8), np.array([0, 1] * 8 + [0] * 4), np.array([1, 2, 2] * 4)]
    parts = rng.integers(0, 5, lengths[0].sum())
    names = ("labels", "pairs", "bags", "roots", "all")
    top = owned_parts(np.array([12]))
    own = [owned_parts(lengths[0], parts, 5), *map(owned_parts, lengths[1:]), top]

    def relations(start, stop):
        made = []
        for level in (2, 1):
            made.insert(0, owned_parts(lengths[level][start:stop]))
            start, stop = offsets(lengths[level])[[start, stop]]
        entries = slice(*offsets(lengths[0])[[start, stop]])
        return [owned_parts(lengths[0][start:stop], inverse[parts[entries]], 3), *made]

    class Deep(Numbers):
        def cut(self, data):
            costs = np.ones(12, dtype=np.int64)
            return Cut(bottom, inverse, costs, relations, np.arange(12), top, names)

    direct = compress(Hierarchy(labels, own, names))
    assert direct.objects == (5, 8, 20, 12, 1)
    monkeypatch.setattr(saen.data.chunks, "_MAX_CHUNK_ENTRIES", 5)
    monkeypatch.setattr(saen.data.chunks, "_MAX_INVERSE", 20)
    monkeypatch.setattr(saen.data.compression, "level_keys", None)  # they are known
    cut = compress_graphs(np.array([100]), Deep())
    assert same_arrays(cut, direct)
    assert all(map(np.array_equal, cut.keys, direct.keys))
    monkeypatch.setattr(saen.data.chunks, "_MAX_INVERSE", 19)
    without = compress_graphs(np.array([100]), Deep())
    assert [column is None for column in without.inverse] == [False, True, True, False, False]
    assert (without.objects, without.entries) == (direct.objects, direct.entries)


def test_compress_rejects_infeasible_work_with_a_forecast(monkeypatch):
    before = time.monotonic()
    with pytest.raises(InputError, match=r"up to 1\.0e\+12 entries .* of them in example 0"):
        compress_graphs(star(10**6), Ego(radii=(3,)))
    assert time.monotonic() - before < 20
    small = star(1000)
    monkeypatch.setattr(saen.data.chunks, "physical_memory", lambda: 5e6)
    with pytest.raises(InputError, match=r"1\.0e\+06 of them in example 0: choose smaller radii"):
        compress_graphs(small, Ego(radii=(2,)))
    assert len(compress_graphs(small, Ego(radii=(1,)))) == 1


def test_compress_takes_what_just_fits_and_refuses_one_entry_more(monkeypatch):
    monkeypatch.setattr(saen.data.chunks, "MAX_ENTRIES", 50)
    assert len(compress_graphs(np.array([20, 30]), Numbers())) == 2
    with pytest.raises(InputError, match=r"up to 5\.1e\+01 entries"):
        compress_graphs(np.array([20, 31]), Numbers())
    monkeypatch.setattr(saen.data.chunks, "MAX_ENTRIES", 1000)
    monkeypatch.setattr(saen.data.chunks, "physical_memory", lambda: 250.0)
    assert len(compress_graphs(np.array([20, 50]), Numbers())) == 2  # of five bytes each
    with pytest.raises(InputError, match=r"5\.1e\+01 of them in example 1"):
        compress_graphs(np.array([20, 51]), Numbers())


def test_compress_forecasts_what_cut_examples_cost_as_long_as_there_is_hope(monkeypatch):
    monkeypatch.setattr(saen.data.chunks, "MAX_ENTRIES", 100)
    monkeypatch.setattr(saen.data.chunks, "_MAX_CHUNK_ENTRIES", 10)
    seen: list[list[int]] = []

    class Cuttable(Numbers):
        def cut(self, data):
            seen.append(data.tolist())
            costs = {500: [51, 9], 400: [40], 300: [30], 200: [2**62, 2**62]}
            return SimpleNamespace(costs=np.array(costs[data[0]]))

    with refuses(
        "the decomposition would have up to 1.6e+02 entries (at most 1e+02, and what fits into "
        "memory for one example), 6.0e+01 of them in example 1: choose smaller radii, "
        "another decomposition such as neighbourhoods, or fewer or smaller examples"
    ):
        compress_graphs(np.array([20, 500, 5, 400, 300]), Cuttable())
    assert seen == [[500], [400], [300]]  # 100 would be fine, 130 is not, whatever 20 turns out
    monkeypatch.setattr(saen.data.chunks, "physical_memory", lambda: 250.0)
    with pytest.raises(InputError, match=r"6\.0e\+01 of them in example 0"):
        compress_graphs(np.array([500, 10]), Cuttable())
    assert seen[3:] == [[500]]  # a small example is made as it is
    with pytest.raises(InputError, match=r", 9\.2e\+18 of them in example 0"):
        compress_graphs(np.array([200]), Cuttable())


def test_compress_takes_a_large_example_whose_chunks_are_small(monkeypatch):
    monkeypatch.setattr(saen.data.chunks, "_MAX_CHUNK_ENTRIES", 10_000)
    monkeypatch.setattr(saen.data.chunks, "physical_memory", lambda: 100_000.0)
    ego = Ego(radii=(2,))
    assert ego.costs(star(300)).sum() * saen.data.chunks.MIN_ENTRY_BYTES > 100_000
    assert len(compress_graphs(star(300), ego, lower_inverse=False)) == 1


def test_physical_memory_is_that_of_the_machine_or_unknown(monkeypatch):
    if hasattr(os, "sysconf"):
        assert physical_memory() == os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    monkeypatch.delattr(os, "sysconf", raising=False)  # as on Windows
    assert physical_memory() == np.inf
