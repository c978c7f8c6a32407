from __future__ import annotations

from collections import Counter

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
from saen.data.content_hash import attribute_keys, row_keys
from saen.data.identical import Rows, group, merge_parents
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


def test_compress_keeps_the_last_part_and_role_where_a_byte_ends():
    n = 257
    attributes = Attributes(vectors=np.arange(n, dtype=np.float64)[:, None])
    alphabet = tuple(map(str, range(n)))
    relation = Relation(np.arange(n + 1), np.arange(n), np.arange(n), alphabet, n)
    compressed = compress(Hierarchy(attributes, [relation]))
    merged = compressed.hierarchy.relations[0]
    assert merged.roles[compressed.top].tolist() == list(range(n))
    values = compressed.hierarchy.attributes.vectors[merged.parts, 0]
    assert values[compressed.top].tolist() == list(range(n))


@pytest.mark.parametrize("keys_collide", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_compress_merges_real_numbers_only_if_bit_identical(dtype, keys_collide, monkeypatch):
    if keys_collide:
        monkeypatch.setattr(saen.data.content_hash, "MASKS", (np.uint64(0), np.uint64(0)))
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


@pytest.mark.parametrize(("n", "repeats", "more"), [(1500, 1, []), (1500, 1, [100]), (300, 40, [])])
def test_group_orders_keys_whatever_lanes_they_share(n, repeats, more):
    """Sorted where most keys are distinct, hashed where most repeat; one lane is not enough."""
    numbers = np.arange(n, dtype=np.uint64)
    keys = np.column_stack([numbers, numbers])
    keys[101] = 100, 102  # shares a lane with the key before, the other with the key after
    objects = np.array([*range(n)] * repeats + more)
    np.random.default_rng(0).shuffle(objects)
    content = 9999 - objects  # ordered the other way round than keys
    groups, firsts = group(
        keys[objects], lambda a, b: content[a] == content[b], lambda row: (int(content[row]),)
    )
    assert groups.tolist() == objects.tolist()
    assert objects[firsts].tolist() == list(range(n))


def relation_of(rows, n_parts, n_roles=1):
    parts = np.array([part for row in rows for part in row], dtype=np.int64)
    indptr = np.cumsum([0, *map(len, rows)])
    return Relation(indptr, parts, np.zeros_like(parts), tuple("ab"[:n_roles]), n_parts)


@pytest.mark.parametrize(
    ("n_parts", "n_roles", "longest"),
    [(8, 2, 8), (2**16, 2, 3), (2**32, 1, 2), (2**32 + 1, 1, 1), (2**54, 1, 1)],
)
def test_rows_once_leaves_out_repeated_short_rows_alone(n_parts, n_roles, longest):
    """Short rows have parts that are the digits of an integer of 64 bits, and at most eight."""
    rng = np.random.default_rng(0)
    values = [*range(4), *range(n_parts - 4, n_parts)]
    rows = [[], [], *[[0]] * 200]
    rows += [[part] for part in values]
    for length in range(1, 10):
        row = [*values[::-1], 0][:length]
        rows += [row, *(rng.permutation(row).tolist() for _ in range(5)), row[::-1]]
    # Equal as integers of 64 bits, or as floating-point numbers.
    rows += [[n_parts - 1, n_parts - 1], [1, n_parts - 2], [n_parts - 2, n_parts - 2]]
    relation = relation_of(rows, n_parts, n_roles)
    every = Rows.of(relation, None, n_parts)
    once, places = Rows.once(relation, None, n_parts)
    counts = [sorted(Counter(row).items()) for row in rows]
    contents = [(*(p for p, _ in row), None, *(n for _, n in row)) for row in counts]
    assert [every.content(row) for row in range(len(rows))] == contents
    assert [once.content(place) for place in places.tolist()] == contents
    for row, content in enumerate(contents):
        same = {place for place, other in zip(places, contents, strict=True) if other == content}
        times = contents.count(content)
        assert len(same) == (1 if len(rows[row]) <= longest else times)


def test_rows_are_equal_where_their_parts_are():
    rows = [[1, 2], [2, 1], [1, 1], [1], [], [1, 3], []]
    found = Rows.of(relation_of(rows, 4), None, 4)
    mine, theirs = (axis.ravel() for axis in np.indices((7, 7)))
    expected = [sorted(rows[a]) == sorted(rows[b]) for a, b in zip(mine, theirs, strict=True)]
    assert found.equal(mine, theirs).tolist() == expected
    # Rows and codes whose numbers just pass 32 bits.
    for rows, n_parts in (([[2, 1]], 2**32), ([[2, 1], [3], [1]], 2**31)):
        wide = Rows.of(relation_of(rows, n_parts), None, n_parts)
        expected = [(*sorted(row), None, *[1] * len(row)) for row in rows]
        assert [wide.content(row) for row in range(len(rows))] == expected
    empty = Rows.of(relation_of([[], []], 4), None, 4)
    assert len(empty.codes) == len(empty.counts) == 0


def test_merge_parents_lets_threads_share_the_work():
    shared = []

    def apply(function, *arguments):
        shared.append(function.__name__)
        return map(function, *arguments)

    keys = attribute_keys(Attributes(vectors=np.arange(4, dtype=np.float64)[:, None]))
    relation = relation_of([[1, 2], [3], [2, 1]], 4)
    expected = merge_parents(relation, np.arange(4), keys)
    found = merge_parents(relation, np.arange(4), keys, apply=apply)
    assert shared == ["merged", "hash_block"]
    rows = Rows.of(relation, None, 4)
    known = row_keys(rows.indptr, rows.codes, rows.counts, keys, relation.alphabet)
    again = merge_parents(relation, np.arange(4), keys, known, apply)
    assert shared[2:] == ["merged"]
    for other in (found, again):
        assert all(map(same_arrays, other, expected))


@pytest.mark.parametrize("n_parts", [70_000, 2**40])  # sorted by digits, and as they are
def test_rows_of_many_parts_are_sorted_and_counted(n_parts):
    parts = np.random.default_rng(0).integers(0, n_parts, (9, 200))
    parts[0] = np.arange(200)[::-1]
    parts[:, 100:] = parts[:, :100]  # every part at least twice
    indptr = np.arange(0, parts.size + 1, 200)
    relation = Relation(indptr, parts.ravel(), np.zeros(parts.size, int), ("part",), n_parts)
    rows = Rows.of(relation, None, n_parts)
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
