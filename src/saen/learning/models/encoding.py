"""Counts of unique parts as sparse features: what a linear model needs, without a network.

The unique parts of a compressed hierarchy, counted per example, are an explicit feature map. Over
`neighbourhoods` they are the features of the Weisfeiler-Lehman subtree kernel; encoded in unary, a
count c becomes the features "at least 1", …, "at least c", whose inner product Σ min(x, y) is the
Weisfeiler-Lehman optimal-assignment kernel.

Thresholds that no example of `fit` tells apart share one column: where the counts of a part in
`fit` are v_1 < v_2 < …, "at least v_{i-1} + 1", …, "at least v_i" are equal there, and become one
column with value √(v_i - v_{i-1}). All inner products with examples of `fit` stay exact, also those
of new examples whose counts lie between two of the v_i, which get the matching fraction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from saen._util.arrays import (
    Floats,
    Ints,
    distinct,
    distinct_with_inverse,
    index_dtype,
    offsets,
    ranges,
    segment_ids,
)
from saen.data.compression import Compressed
from saen.data.hierarchy import Hierarchy
from saen.errors import InputError

PartIds = NDArray[np.uint64]
"""Parts by content: level and role in one number, then the 128 bits of the key, (parts, 3)."""

SHARES = "shares"
"""The norm of forests of classes: the shares of the parts, and their number in the last column."""
ROLE_BITS = 32
ENCODINGS = ("counts", "unary")
MAX_ROLE = (1 << ROLE_BITS) - 1
_MAX_COUNT = 1 << 31  # counts and places of parts share one int64


# -- counting ----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class PartTable:
    """How often every unique example has each part: a CSR with one row per unique example.

    - `ids`: of the parts, sorted, (parts, 3); on the level below the top a part is told apart by
      its role, too;
    - `indptr`, `parts`, `counts`: the entries; `source`: for entries of the level below the top,
      the entry of the top relation that they are, else -1;
    - `top`: the row of every example, (n,).
    """

    ids: PartIds
    indptr: Ints
    parts: Ints
    counts: Ints
    source: Ints
    top: Ints

    @property
    def rows(self) -> NDArray[np.int64]:
        """The row of every entry."""
        return segment_ids(self.indptr)

    @property
    def n_rows(self) -> int:
        """Unique examples."""
        return len(self.indptr) - 1

    def last_place(self, depth: int | None) -> np.uint64:
        """Level and role, in one number, of the last parts up to a depth; None: of all parts."""
        last = np.uint64(self.ids[:, 0].max(initial=0))
        return last if depth is None else (last & ~np.uint64(MAX_ROLE)) + np.uint64(depth)

    def sizes(self, depth: int | None = None) -> Floats:
        """How many parts every row has, up to a depth, (rows,)."""
        inside = (self.ids[:, 0] <= self.last_place(depth))[self.parts]
        return np.bincount(self.rows, inside * self.counts, minlength=self.n_rows).astype(
            np.float64
        )

    def up_to(self, depth: int) -> PartTable:
        """Without the parts beyond a depth."""
        n = int(np.searchsorted(self.ids[:, 0], self.last_place(depth), side="right"))
        inside = self.parts < n
        lengths = np.bincount(self.rows[inside], minlength=self.n_rows)
        parts, counts, source = self.parts[inside], self.counts[inside], self.source[inside]
        return PartTable(self.ids[:n], offsets(lengths), parts, counts, source, self.top)

    def take(self, examples: Ints) -> PartTable:
        """The table of some of the examples, in their order."""
        rows, top = np.unique(self.top[examples], return_inverse=True)
        lengths = self.indptr[rows + 1] - self.indptr[rows]
        entries = ranges(self.indptr[rows], lengths)
        return PartTable(
            self.ids,
            offsets(lengths),
            self.parts[entries],
            self.counts[entries],
            self.source[entries],
            top,
        )


def count_parts(compressed: Compressed, levels: Sequence[int] | str = "auto") -> PartTable:
    """Count the unique parts of these levels; `auto` is the level below the top.

    Levels further down are counted through all levels between, whatever the roles.
    """
    hierarchy = compressed.hierarchy
    depth = hierarchy.depth
    try:
        chosen = [depth - 1] if isinstance(levels, str) else sorted(set(map(int, levels)))
    except (TypeError, ValueError):
        chosen = []
    if not chosen or not all(0 <= level < depth for level in chosen):
        raise InputError(f"levels of parts are 0 … {depth - 1}, not {levels!r}")
    ids, rows, columns, counts, sources, n_parts = [], [], [], [], [], 0
    for level in chosen:
        keys = compressed.keys[level]
        if level == depth - 1:
            relation = hierarchy.relations[-1]
            codes = relation.roles.astype(np.int64) * relation.n_parts + relation.parts
            unique, places = distinct_with_inverse(codes)
            roles, parts = np.divmod(unique, max(relation.n_parts, 1))
            rows.append(relation.parents)
            counts.append(relation.multiplicity)
            sources.append(np.arange(relation.n_entries))
        else:
            below = _counted_below(hierarchy, level)
            parts, places = distinct_with_inverse(below.indices)
            roles = np.zeros(len(parts), dtype=np.int64)
            rows.append(segment_ids(below.indptr))
            counts.append(below.data)
            sources.append(np.full(below.nnz, -1))
        first = (np.uint64(level) << np.uint64(ROLE_BITS)) + roles.astype(np.uint64)
        ids.append(np.column_stack([first, keys[parts].astype(np.uint64)]))
        columns.append(places + n_parts)
        n_parts += len(parts)
    row, column = np.concatenate(rows), np.concatenate(columns).astype(np.int64)
    order = np.argsort(row, kind="stable")
    return PartTable(
        np.concatenate(ids),
        offsets(np.bincount(row, minlength=len(hierarchy))),
        column[order],
        np.concatenate(counts).astype(np.int64)[order],
        np.concatenate(sources).astype(np.int64)[order],
        compressed.top,
    )


def _counted_below(hierarchy: Hierarchy, level: int) -> sparse.csr_array:
    """How often every top object contains each object of a level, through all levels between."""

    def flat(number: int) -> sparse.csr_array:
        relation = hierarchy.relations[number]
        entries = (relation.multiplicity, relation.parts.astype(np.int64), relation.indptr)
        return sparse.csr_array(entries, shape=(relation.n_parents, relation.n_parts))

    out = flat(hierarchy.depth - 1)
    for number in range(hierarchy.depth - 2, level - 1, -1):
        out = out @ flat(number)
    out.sum_duplicates()
    return out


# -- encoding ----------------------------------------------------------------------------------


class Encoded(NamedTuple):
    """Features of the rows of a table, by the entries that they come from.

    Column `columns[i]` has `values[i]` from entry `entries[i]`; `seen[e]` says whether entry e has
    a column.
    """

    entries: Ints
    columns: Ints
    values: Floats
    seen: NDArray[np.bool_]

    def unseen_share(self, table: PartTable, depth: int | None = None) -> float:
        """The share of part occurrences, over all examples of the table, that have no column.

        Of parts up to a depth, if one is given.
        """
        uses = np.bincount(table.top, minlength=table.n_rows)
        inside = table.ids[:, 0] <= table.last_place(depth)
        occurrences = uses[table.rows] * table.counts * inside[table.parts]
        total = int(occurrences.sum())
        return int(occurrences[~self.seen].sum()) / total if total else 0.0


@dataclass(frozen=True, eq=False)
class Encoder:
    """The columns that the training examples fix.

    - `ids`: the parts that have columns, sorted, (parts, 3);
    - `starts`: the first column of each, (parts + 1,);
    - `thresholds`: the count up to which each column counts (`unary`), (columns,);
    - `occupied`: with hashing, which of the columns are in use, (n_features,); there are no parts.
    """

    encoding: str
    max_count: int | None
    ids: PartIds
    starts: Ints
    thresholds: Ints
    occupied: NDArray[np.bool_] | None = None

    @staticmethod
    def fit(
        table: PartTable,
        uses: Ints,
        *,
        encoding: str = "unary",
        max_count: int | None = None,
        max_thresholds: int | None = None,
        min_graphs: int = 1,
        n_features: int | None = None,
    ) -> Encoder:
        """Fix the columns by the rows that are used, `uses` times each, shape (rows,)."""
        used = uses[table.rows] > 0
        if n_features is not None:
            empty = Encoder(
                encoding,
                max_count,
                table.ids[:0],
                np.zeros(1, dtype=np.int64),
                np.zeros(0, dtype=np.int64),
                np.ones(n_features, dtype=np.bool_),
            )
            encoded = empty.encode(table)
            rows = table.rows[encoded.entries]
            pairs = distinct(rows * n_features + encoded.columns)
            graphs = np.bincount(
                pairs % n_features, uses[pairs // n_features], minlength=n_features
            )
            return Encoder(
                encoding, max_count, empty.ids, empty.starts, empty.thresholds, graphs >= min_graphs
            )
        graphs = np.bincount(table.parts, uses[table.rows], minlength=len(table.ids))
        kept = np.flatnonzero(graphs >= max(min_graphs, 1))
        kept = kept[np.lexsort(table.ids[kept].T[::-1])]
        if encoding == "counts":
            starts = np.arange(len(kept) + 1)
            return Encoder(encoding, max_count, table.ids[kept], starts, starts[:0])
        place = np.full(len(table.ids), -1)
        place[kept] = np.arange(len(kept))
        places = place[table.parts]
        used &= places >= 0
        counts = _capped(table.counts[used], max_count)
        parts, thresholds = np.divmod(distinct(places[used] * _MAX_COUNT + counts), _MAX_COUNT)
        starts = offsets(np.bincount(parts, minlength=len(kept)))
        if max_thresholds is not None:
            chosen = _spaced(parts, starts, max_thresholds)
            parts, thresholds = parts[chosen], thresholds[chosen]
            starts = offsets(np.bincount(parts, minlength=len(kept)))
        return Encoder(encoding, max_count, table.ids[kept], starts, thresholds)

    def check(self) -> None:
        """Raise unless parts, columns and thresholds are such as `Encoder.fit` makes."""
        ids, starts, thresholds = self.ids, self.starts, self.thresholds
        integers = all(each.dtype.kind in "iu" and each.ndim == 1 for each in (starts, thresholds))
        if (
            self.encoding not in ENCODINGS
            or not (self.max_count is None or 1 <= self.max_count < 2**31)
            or not integers
            or ids.shape != (len(starts) - 1, 3)
            or starts[0] != 0
            or (starts[1:] <= starts[:-1]).any()
        ):
            raise InputError("the parts do not match their columns")
        if self.occupied is not None:
            if len(ids) or self.occupied.dtype != np.bool_ or self.occupied.ndim != 1:
                raise InputError("the hashed columns are wrong")
        elif self.encoding == "unary":
            first = np.zeros(len(thresholds), dtype=np.bool_)
            if len(thresholds) != starts[-1] or (thresholds < 1).any():
                raise InputError("the thresholds do not match their columns")
            first[starts[:-1]] = True
            if (first[1:] | (thresholds[1:] > thresholds[:-1])).sum() < len(thresholds) - 1:
                raise InputError("the thresholds of a part must increase")
        elif starts[-1] != len(ids):
            raise InputError("a part must have one column of counts")

    def first_parts(self, n: int) -> Encoder:
        """With the first `n` parts alone."""
        starts = self.starts[: n + 1]
        thresholds = self.thresholds[: starts[-1]]
        return Encoder(self.encoding, self.max_count, self.ids[:n], starts, thresholds)

    @property
    def n_columns(self) -> int:
        """How many features there are."""
        return int(self.starts[-1]) if self.occupied is None else len(self.occupied)

    def encode(self, table: PartTable, places: Ints | None = None) -> Encoded:
        """The features of every row of a table; `places` are what `match` gives."""
        counts = _capped(table.counts, self.max_count)
        if self.occupied is not None:
            return self._hashed(table, counts)
        places = (self.match(table.ids) if places is None else places)[table.parts]
        known = places >= 0
        seen = np.flatnonzero(known)
        places, counts = places[seen], counts[seen]
        if self.encoding == "counts":
            return Encoded(seen, places, counts.astype(np.float64), known)
        first = self.starts[places]
        codes = segment_ids(self.starts) * _MAX_COUNT + self.thresholds
        full = np.searchsorted(codes, places * _MAX_COUNT + counts, side="right") - first
        # Beside the columns that are full, the fraction of one more, if there is one.
        last = self.starts[places + 1] - first
        before = np.where(full > 0, self.thresholds[np.maximum(first + full - 1, first)], 0)
        partial = (full < last) & (counts > before)
        lengths = full + partial
        ends = np.cumsum(lengths)
        entry = np.repeat(np.arange(len(seen)), lengths)
        within = np.arange(len(entry)) - np.repeat(ends - lengths, lengths)
        columns = first[entry] + within
        below = np.where(columns > first[entry], self.thresholds[np.maximum(columns - 1, 0)], 0)
        widths = np.sqrt((self.thresholds[columns] - below).astype(np.float64))
        heights = np.minimum(self.thresholds[columns], counts[entry]) - below
        return Encoded(seen[entry], columns, heights / widths, known)

    def squared_lengths(self, table: PartTable, depth: int | None = None) -> Floats:
        """Of the rows, counting all parts up to a depth, (rows,).

        Also those without a column: training examples have columns for all of their parts, and a
        new example whose unseen parts did not count would be too long beside them.
        """
        counts = _capped(table.counts, self.max_count).astype(np.float64)
        inside = (table.ids[:, 0] <= table.last_place(depth))[table.parts]
        squares = inside * (counts if self.encoding == "unary" else counts**2)
        return np.bincount(table.rows, squares, minlength=table.n_rows).astype(np.float64)

    def match(self, ids: PartIds) -> NDArray[np.int64]:
        """For every part its place among those that have columns, -1 where it has none."""
        if np.array_equal(self.ids, ids):  # the parts of the training examples themselves
            return np.arange(len(ids))
        both = np.concatenate([self.ids, ids])
        order = np.lexsort(both.T)  # stable: of equal parts, a known one stands first
        new = np.ones(len(both), dtype=np.bool_)
        new[1:] = (both[order[1:]] != both[order[:-1]]).any(axis=1)
        first = np.empty(len(both), dtype=np.int64)
        first[order] = order[new][np.cumsum(new) - 1]
        found = first[len(self.ids) :]
        return np.where(found < len(self.ids), found, -1)

    def _hashed(self, table: PartTable, counts: Ints) -> Encoded:
        assert self.occupied is not None
        keys = _mixed(table.ids[:, 0] ^ _mixed(table.ids[:, 1] ^ _mixed(table.ids[:, 2])))
        if self.encoding == "counts":
            entry, values = np.arange(len(counts)), counts.astype(np.float64)
            hashes = keys[table.parts]
        else:
            entry = np.repeat(np.arange(len(counts)), counts)
            ends = np.cumsum(counts)
            number = np.arange(len(entry)) - np.repeat(ends - counts, counts)
            values = np.ones(len(entry))
            hashes = _mixed(keys[table.parts[entry]] ^ number.astype(np.uint64))
        columns = (hashes % np.uint64(len(self.occupied))).astype(np.int64)
        signs = np.where(hashes >> np.uint64(63), 1.0, -1.0)  # collisions cancel on average
        seen = self.occupied[columns]
        entry, columns, values = entry[seen], columns[seen], (signs * values)[seen]
        known = np.bincount(entry, minlength=len(counts)) > 0
        return Encoded(entry, columns, values, known)


def _spaced(parts: Ints, starts: Ints, limit: int) -> NDArray[np.bool_]:
    """Which thresholds stay where a part has too many: the first ones, then fewer and fewer.

    >>> starts = np.array([0, 2, 22])
    >>> chosen = _spaced(np.repeat([0, 1], [2, 20]), starts, limit=8)
    >>> np.flatnonzero(chosen[:2]).tolist(), np.flatnonzero(chosen[2:]).tolist()
    ([0, 1], [0, 1, 2, 3, 5, 8, 13, 19])
    """
    sizes = np.diff(starts)[parts]
    rank = np.arange(len(parts)) - starts[parts]
    # Every threshold falls into a bin by the logarithm of its rank; the last of a bin stays.
    bins = np.floor(limit * np.log1p(rank) / np.log1p(sizes))
    last = np.ones(len(parts), dtype=np.bool_)
    last[:-1] = (bins[1:] != bins[:-1]) | (parts[1:] != parts[:-1])
    chosen: NDArray[np.bool_] = last | (sizes <= limit)
    return chosen


def _capped(counts: Ints, max_count: int | None) -> NDArray[np.int64]:
    limit = _MAX_COUNT - 1 if max_count is None else max_count
    return np.minimum(counts, limit).astype(np.int64)


def _mixed(values: PartIds) -> PartIds:
    """A bijection of 64 bits that spreads them (splitmix64)."""
    values = values + np.uint64(0x9E3779B97F4A7C15)
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def feature_rows(encoded: Encoded, table: PartTable, n_columns: int) -> sparse.csr_array:
    """The features before scaling, one row per unique example, (rows, n_columns)."""
    rows = table.rows[encoded.entries]
    shape = (table.n_rows, n_columns)
    return narrow(sparse.csr_array((encoded.values, (rows, encoded.columns)), shape=shape))


def scaled_rows(
    features: sparse.csr_array,
    encoder: Encoder,
    table: PartTable,
    norm: str | None,
    depth: int | None = None,
) -> sparse.csr_array:
    """Features of the rows of a table, scaled by a norm; with `SHARES`, one column more."""
    scaled = scale_rows(features, row_scales(encoder, table, norm, depth))
    if norm != SHARES:
        return scaled
    sizes = sparse.csr_array(table.sizes(depth)[:, None])
    return narrow(sparse.hstack([scaled, sizes], format="csr"))


def row_scales(
    encoder: Encoder, table: PartTable, norm: str | None, depth: int | None = None
) -> Floats:
    """The factor of every row: 1, or 1 / its length or size (1 for an empty row), (rows,)."""
    if norm is None:
        return np.ones(table.n_rows)
    if norm == SHARES:
        return 1 / np.maximum(table.sizes(depth), 1.0)
    squares = encoder.squared_lengths(table, depth)
    return 1 / np.sqrt(np.where(squares > 0, squares, 1.0))


def scale_rows(matrix: sparse.csr_array, factors: Floats) -> sparse.csr_array:
    """The matrix with every row multiplied by its factor."""
    values = matrix.data * np.repeat(factors, np.diff(matrix.indptr))
    return sparse.csr_array((values, matrix.indices, matrix.indptr), shape=matrix.shape)


def narrow(matrix: sparse.csr_array) -> sparse.csr_array:
    """Indices of 32 bits where they suffice: many estimators take no wider ones."""
    dtype = index_dtype(max(matrix.nnz, *matrix.shape))
    matrix.indices = matrix.indices.astype(dtype, copy=False)
    matrix.indptr = matrix.indptr.astype(dtype, copy=False)
    return matrix
