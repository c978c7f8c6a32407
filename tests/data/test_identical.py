from __future__ import annotations

import numpy as np
import pytest

import saen.data.content_hash
from saen import (
    Attributes,
    Hierarchy,
    Relation,
    Vocabulary,
    compress,
    merge,
)
from saen.data.identical import Rows
from tests.references import hierarchies as reference
from tests.references.hierarchies import same_arrays


def bags(n: int, *parents: list[int]) -> Relation:
    """Parents that are bags of parts with one role."""
    parts = np.array([part for parent in parents for part in parent], dtype=np.int64)
    indptr = np.cumsum([0, *map(len, parents)])
    return Relation(indptr, parts, np.zeros_like(parts), ("part",), n)


def test_compress_adds_counts_only_where_parts_were_merged():
    labels = Attributes(np.array([0, 0, 1]), Vocabulary(["a", "b"]))
    duplicates = compress(Hierarchy(labels, [bags(3, [0, 1], [2])]))
    assert sorted(duplicates.hierarchy.relations[0].counts.tolist()) == [1, 2]
    alone = compress(Hierarchy(labels, [bags(3, [0, 2], [2])]))
    assert alone.hierarchy.relations[0].counts is None


@pytest.mark.parametrize("n", [300, 5_000, 70_000])
def test_compress_handles_large_levels_like_small_ones(n):
    """Rows × codes pass 2^16 and 2^32 on the way."""
    numbers = np.random.default_rng(n).permutation(n)
    attributes = Attributes(vectors=numbers[:, None].astype(np.float64))
    # Parents i and n - 1 - i have the same two parts, in another order.
    parts = np.column_stack([np.arange(n), np.arange(n)[::-1]]).ravel()
    pairs = Relation(np.arange(n + 1) * 2, parts, np.zeros(2 * n, int), ("part",), n)
    compressed = compress(Hierarchy(attributes, [pairs]))
    assert compressed.hierarchy.sizes == (n, n // 2)
    assert np.array_equal(compressed.top, compressed.top[::-1])
    assert len(np.unique(compressed.top)) == n // 2
    pairs = compressed.hierarchy.relations[0]
    values = compressed.hierarchy.attributes.vectors[pairs.parts, 0].reshape(-1, 2)
    expected = np.sort(np.column_stack([numbers, numbers[::-1]]), axis=1)
    assert np.array_equal(np.sort(values, axis=1)[compressed.top], expected)


def test_compress_tells_roles_and_parts_apart_whose_codes_pass_32_bits():
    n = 70_000
    attributes = Attributes(vectors=np.arange(n, dtype=np.float64)[:, None])
    role, part = divmod(2**32, n)  # their code is that of role 0 and part 0, cut to 32 bits
    alphabet = tuple(map(str, range(role + 1)))
    relation = Relation(np.arange(3), np.array([0, part]), np.array([0, role]), alphabet, n)
    compressed = compress(Hierarchy(attributes, [relation]))
    merged = compressed.hierarchy.relations[0]
    assert sorted(merged.roles.tolist()) == [0, role]
    values = compressed.hierarchy.attributes.vectors[merged.parts, 0]
    assert values[compressed.top].tolist() == [0, part]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_compress_merges_real_numbers_only_if_bit_identical(dtype):
    reals = np.array([[0.1 + 0.2], [0.3], [0.3], [0.0], [-0.0], [0.0]], dtype=np.float64)
    close = np.nextafter(dtype(1), dtype(2))
    reals = np.vstack([reals.astype(dtype), [[1], [close]]]).astype(dtype)
    compressed = compress(Hierarchy(Attributes(vectors=reals), [bags(8, list(range(8)))]))
    # 0.1 + 0.2 differs from 0.3 in 64 bits only; -0.0 has other bits than 0.0 in both.
    expected = [0, 1, 1, 2, 3, 2, 4, 5] if dtype is np.float64 else [0, 0, 0, 1, 2, 1, 3, 4]
    assert reference.first_met(compressed.unique_of(0).tolist()) == expected
    restored = compressed.decompress(0, compressed.hierarchy.attributes.vectors)
    assert restored.tobytes() == reals.tobytes()


def test_compress_tells_a_thousand_collisions_apart(monkeypatch):
    rng = np.random.default_rng(0)
    parents = [rng.integers(0, 40, rng.integers(0, 4)).tolist() for _ in range(1000)]
    labels = Attributes(np.arange(40) % 13, Vocabulary([*range(9), "a", "b", (1, 2), (1, "2")]))
    hierarchy = Hierarchy(labels, [bags(40, *parents)])
    expected = compress(hierarchy)
    monkeypatch.setattr(saen.data.content_hash, "MASKS", (np.uint64(15), np.uint64(15)))
    found = compress(hierarchy)
    assert len(np.unique(found.keys[1], axis=0)) < found.hierarchy.sizes[1]
    for level in range(2):
        assert reference.first_met(found.unique_of(level).tolist()) == reference.first_met(
            expected.unique_of(level).tolist()
        )
    halves = [hierarchy[np.arange(500)], hierarchy[np.arange(500, 1000)]]
    merged = merge([compress(half) for half in halves])
    assert same_arrays(merged, compress(Hierarchy.concatenate(halves)))


@pytest.mark.parametrize(("n_parts", "n_rows"), [(3, 2), (2**16, 2), (2**40, 1)])
def test_rows_once_leaves_out_repeated_short_rows_alone(n_parts, n_rows):
    """The parts of 2^16 · 2 codes are digits of rows of three, those of 2^40 of rows of one."""
    high = n_parts - 1
    rows = [[0, high], [high, 0], [0, high], [0], [0], [high, high, 0], [high, 0, high], []] * 3
    rows += [*[[0]] * 30, [0, high] * 20, [high, 0] * 20]
    indptr = np.cumsum([0, *map(len, rows)])
    parts = np.array([part for row in rows for part in row])
    relation = Relation(indptr, parts, np.zeros_like(parts), ("a", "b"), n_parts)
    every = Rows.of(relation, None, n_parts)
    once, places = Rows.once(relation, None, n_parts)
    found = [once.content(place) for place in places.tolist()]
    assert found == [every.content(row) for row in range(len(rows))]
    short = [place for place, row in zip(places, rows, strict=True) if len(row) == n_rows]
    assert len(set(short)) == 1
    assert len(set(places[-2:])) == 2  # long rows are left to keys and comparison


def test_rows_of_many_parts_are_sorted_and_counted():
    parts = np.random.default_rng(0).integers(0, 70_000, (9, 200))
    parts[:, 100:] = parts[:, :100]  # every part at least twice
    indptr = np.arange(0, parts.size + 1, 200)
    relation = Relation(indptr, parts.ravel(), np.zeros(parts.size, int), ("part",), 70_000)
    rows = Rows.of(relation, None, 70_000)
    for number, row in enumerate(parts):
        distinct, counts = np.unique(row, return_counts=True)
        assert rows.content(number) == (*distinct.tolist(), None, *counts.tolist())


@pytest.mark.parametrize("weighted", [False, True])
def test_rows_sorted_by_transposing_a_matrix_are_the_same(monkeypatch, weighted):
    rng = np.random.default_rng(0)
    lengths = rng.integers(0, 40, 60)
    parts, roles, counts = (rng.integers(0, high, lengths.sum()) for high in (50, 2, 300))
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    relation = Relation(indptr, parts, roles, ("a", "b"), 50, counts + 1 if weighted else None)
    by_sorting = Rows.of(relation, None, 50)
    monkeypatch.setattr("saen.data.identical._MIN_TRANSPOSED", 0)
    transposed = Rows.of(relation, None, 50)
    for key in ("indptr", "codes", "counts"):
        assert same_arrays(getattr(by_sorting, key), getattr(transposed, key))
