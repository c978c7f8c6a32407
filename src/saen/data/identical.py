"""Which objects are identical: keys propose it, comparison proves it.

Objects of equal content keys (`saen.data.content_hash`) are groups; every object is then compared
with the representative of its group, so equality is proved. Unique objects are numbered by key.
Parents of few parts are compared before, as integers that have their parts as digits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from saen._util.arrays import (
    Apply,
    Array,
    Ints,
    codes_in_order,
    distinct_with_inverse,
    index_dtype,
    narrow,
    offsets,
    ranges,
    row_blocks,
    segment_ids,
    smallest_unsigned,
)
from saen._util.lazy import sparse
from saen.data.content_hash import Keys, attribute_keys, row_keys
from saen.data.hierarchy import Attributes, Relation

_MAX_SHORT = 8  # entries of rows that are compared as one integer
_MIN_TRANSPOSED = 10_000  # entries; fewer are sorted before scipy is imported
_MIN_RADIX_LENGTH = 64  # entries of a row from which on a radix sort is faster
_MAX_SAMPLED_KEYS = 1 << 10  # looked at to tell whether keys mostly differ
_MIN_DISTINCT_SHARE = 0.99  # of a sample from which on they do


@dataclass(frozen=True)
class Rows:
    """Parents in canonical form: sorted distinct codes role · n_parts + part, with counts."""

    indptr: NDArray[np.int64]
    codes: Ints
    counts: Ints

    @staticmethod
    def of(
        relation: Relation, unique_parts: Ints | None, n_unique: int, apply: Apply = map
    ) -> Rows:
        """R_l D_{l-1}: the parts of every parent replaced by unique parts, with counts.

        `unique_parts` is None where the parts are unique already. Blocks of rows are made by
        `apply`.
        """
        return Rows._made(relation, unique_parts, n_unique, apply, all_rows=True)[0]

    @staticmethod
    def once(
        relation: Relation, unique_parts: Ints | None, n_unique: int, apply: Apply = map
    ) -> tuple[Rows, Ints]:
        """What `of` gives without most of the short rows that repeat, and the row of each parent.

        Most parents of many datasets have a few parts. Such a row is one integer, which is compared
        instead of hashing and proving.
        """
        return Rows._made(relation, unique_parts, n_unique, apply, all_rows=False)

    @staticmethod
    def _made(
        relation: Relation, unique_parts: Ints | None, n_unique: int, apply: Apply, all_rows: bool
    ) -> tuple[Rows, Ints]:
        n_codes = max(relation.n_roles * n_unique, 1)
        width = np.dtype(np.uint32 if n_codes < 2**32 else np.int64)
        indptr = relation.indptr.astype(np.int64, copy=False)
        if relation.n_entries == 0:
            everyone = np.arange(relation.n_parents)
            return Rows(indptr, np.empty(0, width), np.empty(0, np.uint8)), everyone

        def merged(start: int, stop: int) -> tuple[Ints, Ints, Ints, Ints]:
            entries = slice(int(indptr[start]), int(indptr[stop]))
            local = indptr[start : stop + 1] - indptr[start]
            block = relation.roles[entries].astype(width) * width.type(n_unique)
            parts = relation.parts[entries]
            if unique_parts is not None:
                parts = unique_parts[parts]
            block += parts.astype(width, copy=False)
            weights = None if relation.counts is None else relation.counts[entries]
            places: Ints = np.arange(stop - start, dtype=np.int32)
            if weights is None and not all_rows:
                local, block, places = _without_repeats(local, block, n_codes)
            lengths, codes, counts = _merge_entries(local, block, weights, n_codes)
            return lengths, codes.astype(width, copy=False), counts, places

        blocks = list(apply(merged, *zip(*row_blocks(indptr), strict=True)))
        places = np.empty(relation.n_parents, dtype=index_dtype(relation.n_parents))
        first = n_rows = 0
        for lengths, _, _, own in blocks:
            np.add(own, n_rows, out=places[first : first + len(own)])
            first += len(own)
            n_rows += len(lengths)
        lengths, codes, counts = (
            np.concatenate(column) for column in zip(*(block[:3] for block in blocks), strict=True)
        )
        return Rows(offsets(lengths), codes, counts), places

    @staticmethod
    def carrying(parts: Ints, role: int, n_unique: int, dtype: np.dtype[Any]) -> Rows:
        """Parents of one part each."""
        codes = parts.astype(dtype) + dtype.type(role * n_unique)
        return Rows(np.arange(len(parts) + 1), codes, np.ones(len(parts), np.uint8))

    def take(self, rows: Ints) -> Rows:
        """Some of these parents."""
        lengths = np.diff(self.indptr)[rows]
        entries = ranges(self.indptr[rows], lengths)
        return Rows(offsets(lengths), self.codes[entries], self.counts[entries])

    def followed_by(self, other: Rows) -> Rows:
        """These parents, then others."""
        return Rows(
            np.concatenate([self.indptr, self.indptr[-1] + other.indptr[1:]]),
            np.concatenate([self.codes, other.codes]),
            np.concatenate([self.counts, other.counts]),
        )

    def equal(self, mine: Ints, theirs: Ints, apply: Apply = map) -> NDArray[np.bool_]:
        """Row by row, whether two lists of parents consist of the same parts."""
        lengths = np.diff(self.indptr)
        same: NDArray[np.bool_] = lengths[mine] == lengths[theirs]
        candidates = np.flatnonzero(same)
        n = lengths[mine[candidates]]

        def compare(start: int, stop: int) -> None:
            rows, size = candidates[start:stop], n[start:stop]
            a = ranges(self.indptr[mine[rows]], size)
            b = ranges(self.indptr[theirs[rows]], size)
            differs = (self.codes[a] != self.codes[b]) | (self.counts[a] != self.counts[b])
            same[rows[segment_ids(offsets(size))[differs]]] = False

        if len(candidates):
            list(apply(compare, *zip(*row_blocks(offsets(n)), strict=True)))
        return same

    def content(self, row: int) -> tuple[Any, ...]:
        """What tells rows apart; only for keys that collide."""
        entries = slice(int(self.indptr[row]), int(self.indptr[row + 1]))
        return (*self.codes[entries].tolist(), None, *self.counts[entries].tolist())


def _without_repeats(
    indptr: NDArray[np.int64], codes: Ints, n_codes: int
) -> tuple[NDArray[np.int64], Ints, Ints]:
    """Rows without those short ones that others repeat: pointers, codes, every old row's new one.

    A row is short if its sorted codes are the digits of a 64-bit integer.
    """
    longest = max(n for n in range(_MAX_SHORT + 1) if n_codes**n <= 2**64)
    lengths = np.minimum(np.diff(indptr), longest + 1).astype(np.uint8)
    kept = [np.flatnonzero(lengths > longest)]
    places = np.empty(len(lengths), dtype=np.int32)
    places[kept[0]] = np.arange(len(kept[0]), dtype=np.int32)
    n_kept = len(kept[0])
    for length in range(longest + 1) if 2 * n_kept <= len(lengths) else ():
        own = np.flatnonzero(lengths == length)
        starts = indptr[own]
        columns = [codes[starts + place] for place in range(length)]
        for first in range(length):  # odd-even transposition sort
            for place in range(first % 2, length - 1, 2):
                pair = columns[place : place + 2]
                columns[place : place + 2] = np.minimum(*pair), np.maximum(*pair)
        words = columns[0].astype(np.uint64) if columns else np.zeros(len(own), dtype=np.uint64)
        for column in columns[1:]:
            words *= np.uint64(n_codes)
            words += column.astype(np.uint64, copy=False)
        groups, members = _numbered(words)
        places[own] = groups + np.int32(n_kept)
        kept.append(own[members])
        n_kept += len(members)
    if 2 * n_kept > len(lengths):
        return indptr, codes, np.arange(len(lengths), dtype=np.int32)
    rows = np.concatenate(kept)
    sizes = np.diff(indptr)[rows]
    return offsets(sizes), codes[ranges(indptr[rows], sizes)], places


def _numbered(values: NDArray[np.uint64]) -> tuple[Ints, Ints]:
    """The group of every value, and a member of every group of equal values."""
    width = index_dtype(len(values))
    positions = np.arange(len(values), dtype=width)
    n_values = int(values.max(initial=0)) + 1
    if n_values <= len(values):  # a table of all values
        places = values.view(np.int64)
        members = np.full(n_values, -1, dtype=width)
        members[places] = positions
        present = members >= 0
        return (np.cumsum(present, dtype=width) - 1)[places], members[present]
    groups = codes_in_order(values)
    members = np.empty(int(groups.max(initial=-1)) + 1, dtype=width)
    members[groups] = positions
    return groups, members


def _merge_entries(
    indptr: NDArray[np.int64], codes: Ints, counts: Ints | None, n_codes: int
) -> tuple[Ints, Ints, Ints]:
    """Sort the codes of every row and count equal ones: (row lengths, codes, counts)."""
    n_rows = len(indptr) - 1
    ascending = np.ones(len(codes) + 1, dtype=np.bool_)
    np.greater(codes[1:], codes[:-1], out=ascending[1:-1])
    ascending[indptr] = True
    if ascending.all():  # as in shards that are merged: their unique objects keep their order
        merged = np.ones(len(codes), np.uint8) if counts is None else narrow(counts)
        return np.diff(indptr), codes, merged
    if max(n_codes, _MIN_TRANSPOSED) <= len(codes):  # sorted by transposing a matrix twice
        data = np.ones(len(codes), np.int32) if counts is None else counts.astype(np.int64)
        columns = codes.astype(np.int32)
        matrix = sparse.csr_array((data, columns, indptr), shape=(n_rows, n_codes)).tocsc().tocsr()
        matrix.sum_duplicates()
        return np.diff(matrix.indptr), matrix.indices, narrow(matrix.data)
    width = np.dtype(np.uint32 if n_rows * n_codes < 2**32 else np.int64)  # fewer bytes to sort
    base = np.arange(n_rows, dtype=width) * width.type(n_codes)
    keys = np.repeat(base, np.diff(indptr))
    keys += codes.astype(width, copy=False)
    # Stable sorts use that rows stand in order already; twice as fast as others on some machines.
    if counts is None:
        if width == np.uint32 and len(keys) > _MIN_RADIX_LENGTH * n_rows:
            for shift in (0, 16):  # of 16 bits, numpy makes a radix sort
                digits = (keys >> np.uint32(shift)).astype(np.uint16)
                keys = keys[np.argsort(digits, kind="stable")]
        else:
            keys.sort(kind="stable")
        first = np.flatnonzero(_changes(keys))
        merged = np.diff(first, append=len(keys))
    else:
        order = np.argsort(keys, kind="stable")
        keys = keys[order]
        first = np.flatnonzero(_changes(keys))
        weights = counts[order].astype(np.int64)
        merged = np.add.reduceat(weights, first) if len(first) else weights
    lengths = np.diff(np.searchsorted(first, indptr))
    distinct = keys[first]
    distinct -= np.repeat(base, lengths)
    return lengths, distinct, narrow(merged)


def group(
    keys: Keys,
    equal: Callable[[Ints, Ints], NDArray[np.bool_]],
    content: Callable[[int], tuple[Any, ...]],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Groups of identical objects, ordered by key: every object's group, every group's first.

    Objects of one key that turn out to differ are split into groups ordered by content.
    """
    groups, representatives = _by_key(keys)
    others = np.flatnonzero(representatives[groups] != np.arange(len(keys)))
    collided = np.unique(groups[others[~equal(others, representatives[groups[others]])]])
    if not len(collided):
        return groups, representatives
    return _split(groups, representatives, set(collided.tolist()), content)


def _by_key(keys: Keys) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The group of every key and an object of every group; groups are ordered by key."""
    if _mostly_distinct(keys[:, 0]):  # a hash table would be large, and its order another sort
        order = np.argsort(keys[:, 0])
        new = _changes(keys[order, 0])
        if (new | ~_changes(keys[order, 1])).all():
            groups = np.empty(len(keys), dtype=np.int64)
            groups[order] = np.cumsum(new) - 1
            return groups, order[new]
    else:
        # Hash on one lane, which is enough unless the other disagrees; only the groups are sorted.
        codes, members = _numbered(keys[:, 0])
        if (keys[members, 1][codes] == keys[:, 1]).all():
            order = np.argsort(keys[members, 0])
            rank = np.empty_like(order)
            rank[order] = np.arange(len(order))
            return rank[codes], members[order].astype(np.int64)
    order = np.lexsort((keys[:, 1], keys[:, 0]))
    new = _changes(keys[order, 0]) | _changes(keys[order, 1])
    groups = np.empty(len(keys), dtype=np.int64)
    groups[order] = np.cumsum(new) - 1
    return groups, order[new]


def _mostly_distinct(values: NDArray[np.uint64]) -> bool:
    """Whether few values of a sample are equal."""
    sample = values[:: len(values) // _MAX_SAMPLED_KEYS + 1]
    return len(np.unique(sample)) >= _MIN_DISTINCT_SHARE * len(sample)


def _split(
    groups: NDArray[np.int64],
    representatives: NDArray[np.int64],
    collided: set[int],
    content: Callable[[int], tuple[Any, ...]],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Divide the groups whose key is shared by different objects."""
    out = np.empty_like(groups)
    firsts: list[int] = []
    for group in range(len(representatives)):
        if group not in collided:
            out[groups == group] = len(firsts)
            firsts.append(int(representatives[group]))
            continue
        by_content: dict[tuple[Any, ...], list[int]] = {}
        for member in np.flatnonzero(groups == group).tolist():
            by_content.setdefault(content(member), []).append(member)
        for _, members in sorted(by_content.items(), key=lambda item: repr(item[0])):
            out[members] = len(firsts)
            firsts.append(members[0])
    return out, np.array(firsts, dtype=np.int64)


def merge_objects(
    attributes: Attributes,
) -> tuple[Attributes, Ints, Keys]:
    """C_0 and D_0 in effect: unique bottom objects, the inverse, and the keys."""
    if attributes.vectors is None:
        # Equal codes are equal values: nothing to hash per object.
        assert attributes.codes is not None
        present, inverse = distinct_with_inverse(attributes.codes)
        small = Attributes(present.astype(np.int32), attributes.vocabulary)
    else:
        small, inverse = attributes, np.arange(len(attributes))
    keys = attribute_keys(small)

    columns: list[Array] = []
    if small.vectors is not None:
        columns.append(small.vectors.view(f"u{small.vectors.itemsize}"))
    if small.codes is not None:
        columns.append(small.codes[:, None])

    def equal(mine: Ints, theirs: Ints) -> NDArray[np.bool_]:
        same = np.ones(len(mine), dtype=np.bool_)
        for column in columns:
            same &= (column[mine] == column[theirs]).all(axis=1)
        return same

    def content(row: int) -> tuple[Any, ...]:
        out: list[Any] = []
        if small.vectors is not None:
            out += small.vectors[row].astype(np.float64).view(np.uint64).tolist()
        if small.codes is not None and small.vocabulary is not None:
            code = int(small.codes[row])
            # Values, not codes: codes depend on what else the vocabulary holds.
            out.append(None if code < 0 else small.vocabulary[code])
        return tuple(out)

    groups, representatives = group(keys, equal, content)
    return small.take(representatives), groups[inverse], keys[representatives]


def merge_parents(
    relation: Relation,
    unique_parts: Ints,
    part_keys: Keys,
    keys: Keys | None = None,
    apply: Apply = map,
) -> tuple[Relation, Ints, Keys]:
    """C_l and D_l in effect: the unique parents, the inverse, and the keys.

    `keys` are those of the parents, if they are known.
    """
    places: Ints | slice = slice(None)
    if keys is None:
        rows, places = Rows.once(relation, unique_parts, len(part_keys), apply)
        keys = row_keys(rows.indptr, rows.codes, rows.counts, part_keys, relation.alphabet, apply)
    else:
        rows = Rows.of(relation, unique_parts, len(part_keys), apply)
    merged, inverse, representatives = merge_rows(rows, keys, relation.alphabet, len(part_keys))
    return merged, narrow(inverse)[places], keys[representatives]


def merge_rows(
    rows: Rows, keys: Keys, alphabet: tuple[str, ...], n_parts: int
) -> tuple[Relation, NDArray[np.int64], NDArray[np.int64]]:
    """The unique parents in the order of their keys, the inverse, and one parent of each."""
    inverse, representatives = group(keys, rows.equal, rows.content)
    lengths = np.diff(rows.indptr)[representatives]
    indptr = offsets(lengths)
    parts = np.empty(indptr[-1], dtype=smallest_unsigned(n_parts - 1))
    roles = np.empty(indptr[-1], dtype=smallest_unsigned(len(alphabet) - 1))
    counts = np.empty(indptr[-1], dtype=rows.counts.dtype)
    for start, stop in row_blocks(indptr):
        entries = ranges(rows.indptr[representatives[start:stop]], lengths[start:stop])
        own = slice(indptr[start], indptr[stop])
        roles[own], parts[own] = np.divmod(rows.codes[entries], max(n_parts, 1))
        counts[own] = rows.counts[entries]
    merged = Relation(
        indptr,
        narrow(parts),
        narrow(roles),
        alphabet,
        n_parts,
        None if (counts == 1).all() else narrow(counts),
    )
    return merged, inverse, representatives


def _changes(values: Array) -> NDArray[np.bool_]:
    """Where a sorted array starts a new value."""
    out = np.ones(len(values), dtype=np.bool_)
    out[1:] = values[1:] != values[:-1]
    return out
