"""Counts of unique parts as sparse features: what a linear model needs, without a network.

The unique parts of a compressed hierarchy, counted per example, are an explicit feature map. Over
`neighbourhoods` they are the features of the Weisfeiler-Lehman subtree kernel; encoded in unary, a
count c becomes the features "at least 1", …, "at least c", whose inner product Σ min(x, y) is the
Weisfeiler-Lehman optimal-assignment kernel.

Thresholds that no example of `fit` tells apart share one column: where the counts of a part in
`fit` are v_1 < v_2 < …, "at least v_{i-1} + 1", …, "at least v_i" are equal there, and become one
column with value √(v_i - v_{i-1}). All inner products with examples of `fit` stay exact, also those
of new examples whose counts lie between two of the v_i, which get the matching fraction.

Most parts of large graphs are in one training example only. A linear model reads all such columns
of one example and role as one (`Encoder.joined`): again no inner product with a training example
changes, and there may be twenty times fewer columns.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from saen._util.arrays import (
    Array,
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
from saen.errors import InputError

PartIds = NDArray[np.uint64]
"""Parts by content: the role, then the 128 bits of the key, (parts, 3)."""

SHARES = "shares"
"""The norm of forests of classes: the shares of the parts, and their number in the last column."""
ENCODINGS = ("counts", "unary")
_MAX_COUNT = 1 << 31  # counts and places of parts share one int64


# -- counting ----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class PartTable:
    """How often every unique example has each part: a CSR with one row per unique example.

    - `ids`: of the parts, sorted, (parts, 3);
    - `indptr`, `parts`, `counts`: the entries, those of the top relation in order;
    - `top`: the row of every example, (n,).
    """

    ids: PartIds
    indptr: Ints
    parts: Ints
    counts: Ints
    top: Ints

    @property
    def rows(self) -> NDArray[np.int64]:
        """The row of every entry."""
        return segment_ids(self.indptr)

    @property
    def n_rows(self) -> int:
        """Unique examples."""
        return len(self.indptr) - 1

    def inside(self, depth: int | None = None) -> NDArray[np.bool_]:
        """Which entries are of parts up to a depth, None for all, (entries,)."""
        if depth is None:
            return np.ones(len(self.parts), dtype=np.bool_)
        return (self.ids[:, 0] <= depth)[self.parts]

    def sizes(self, depth: int | None = None) -> Floats:
        """How many parts every row has, up to a depth, (rows,)."""
        return self.summed(self.inside(depth) * self.counts)

    def summed(self, values: Array) -> Floats:
        """The sum of values of the entries over every row, (rows,)."""
        return np.bincount(self.rows, values, minlength=self.n_rows).astype(np.float64)

    def up_to(self, depth: int) -> PartTable:
        """Without the parts beyond a depth."""
        inside, n = self.inside(depth), int((self.ids[:, 0] <= depth).sum())
        lengths = np.bincount(self.rows[inside], minlength=self.n_rows)
        parts, counts = self.parts[inside], self.counts[inside]
        return PartTable(self.ids[:n], offsets(lengths), parts, counts, self.top)

    def take(self, examples: Ints) -> PartTable:
        """The table of some of the examples, in their order."""
        rows, top = np.unique(self.top[examples], return_inverse=True)
        lengths = np.diff(self.indptr)[rows]  # the types of rows and of parts are narrow
        entries = ranges(self.indptr[rows].astype(np.int64), lengths)
        return PartTable(
            self.ids,
            offsets(lengths),
            self.parts[entries],
            self.counts[entries],
            top,
        )


def count_parts(compressed: Compressed) -> PartTable:
    """Count the unique parts of the level below the top; roles tell them apart, too."""
    if compressed.hierarchy.depth == 0:
        raise InputError("these data have one level only: there are no parts to count")
    relation = compressed.hierarchy.relations[-1]
    codes = relation.roles.astype(np.int64) * relation.n_parts + relation.parts
    unique, parts = distinct_with_inverse(codes)
    roles, places = np.divmod(unique, max(relation.n_parts, 1))
    ids = np.column_stack([roles.astype(np.uint64), compressed.keys[-2][places]])
    counts = relation.multiplicity.astype(np.int64)
    return PartTable(ids, relation.indptr, parts, counts, compressed.top)


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
        occurrences = uses[table.rows] * table.counts * table.inside(depth)
        total = int(occurrences.sum())
        return int(occurrences[~self.seen].sum()) / total if total else 0.0


@dataclass(frozen=True, eq=False)
class Encoder:
    """The columns that the training examples fix.

    - `ids`: the parts that have features, sorted, (parts, 3);
    - `starts`: the first feature of each, (parts + 1,);
    - `thresholds`: the count up to which each feature counts (`unary`), (features,);
    - `columns`, `factors`: the column of each feature and what multiplies it there, (features,); a
      column of its own for each if None.
    """

    encoding: str
    ids: PartIds
    starts: Ints
    thresholds: Ints
    columns: Ints | None = None
    factors: Floats | None = None

    @staticmethod
    def fit(
        table: PartTable,
        uses: Ints,
        *,
        encoding: str = "unary",
        max_thresholds: int | None = None,
        min_graphs: int = 1,
    ) -> Encoder:
        """Fix the columns by the rows that are used, `uses` times each, shape (rows,)."""
        used = uses[table.rows] > 0
        graphs = np.bincount(table.parts, uses[table.rows], minlength=len(table.ids))
        kept = np.flatnonzero(graphs >= max(min_graphs, 1))
        kept = kept[np.lexsort(table.ids[kept].T[::-1])]
        if encoding == "counts":
            starts = _narrow(np.arange(len(kept) + 1))
            return Encoder(encoding, table.ids[kept], starts, starts[:0])
        place = np.full(len(table.ids), -1)
        place[kept] = np.arange(len(kept))
        places = place[table.parts]
        used &= places >= 0
        codes = distinct(places[used] * _MAX_COUNT + _capped(table.counts[used]))
        parts, thresholds = np.divmod(codes, _MAX_COUNT)
        starts = offsets(np.bincount(parts, minlength=len(kept)))
        if max_thresholds is not None:
            chosen = _spaced(parts, starts, max_thresholds)
            parts, thresholds = parts[chosen], thresholds[chosen]
            starts = offsets(np.bincount(parts, minlength=len(kept)))
        return Encoder(encoding, table.ids[kept], _narrow(starts), _narrow(thresholds))

    def check(self) -> None:
        """Raise unless parts, columns and thresholds are such as `Encoder.fit` makes."""
        ids, starts, thresholds = self.ids, self.starts, self.thresholds
        integers = all(each.dtype.kind in "iu" and each.ndim == 1 for each in (starts, thresholds))
        if (
            self.encoding not in ENCODINGS
            or not integers
            or ids.shape != (len(starts) - 1, 3)
            or starts[0] != 0
            or (starts[1:] <= starts[:-1]).any()
        ):
            raise InputError("the parts do not match their columns")
        if self.encoding == "unary":
            first = np.zeros(len(thresholds), dtype=np.bool_)
            if len(thresholds) != starts[-1] or (thresholds < 1).any():
                raise InputError("the thresholds do not match their columns")
            first[starts[:-1]] = True
            if (first[1:] | (thresholds[1:] > thresholds[:-1])).sum() < len(thresholds) - 1:
                raise InputError("the thresholds of a part must increase")
        elif starts[-1] != len(ids):
            raise InputError("a part must have one column of counts")
        columns, factors = self.columns, self.factors
        if (columns is None) != (factors is None):
            raise InputError("joined columns need factors")
        if columns is not None and factors is not None:
            if columns.dtype.kind not in "iu" or factors.dtype != np.float64:
                raise InputError("joined columns are of other types")
            if not columns.shape == factors.shape == (starts[-1],) or (columns < 0).any():
                raise InputError("the features do not match their columns")
            if not np.isfinite(factors).all():
                raise InputError("the factors of columns must be finite")

    def first_parts(self, n: int) -> Encoder:
        """With the first `n` parts alone, all those of some roles."""
        starts = self.starts[: n + 1]
        features = slice(int(starts[-1]))
        return Encoder(
            self.encoding,
            self.ids[:n],
            starts,
            self.thresholds[features],
            None if self.columns is None else self.columns[features],
            None if self.factors is None else self.factors[features],
        )

    def joined(self, rows: sparse.csr_array) -> Encoder:
        """With one column for all features of a role that one and the same of these rows has.

        `rows` are the features of all training examples. The column is as long as its features
        together, so no inner product with these rows changes.
        """
        n = self.n_features
        entries = np.flatnonzero((np.bincount(rows.indices, minlength=n) == 1)[rows.indices])
        own, values = rows.indices[entries], rows.data[entries]  # features of one row
        roles = np.repeat(self.ids[:, 0], np.diff(self.starts))[own].astype(np.int64)
        groups = roles * rows.shape[0] + segment_ids(rows.indptr)[entries]
        order = np.argsort(own)  # the first feature stands for its group: roles stay in order
        own, values, groups = own[order], values[order], groups[order]
        _, first, inverse = np.unique(groups, return_index=True, return_inverse=True)
        standing, factors = np.arange(n), np.ones(n)
        standing[own] = own[first][inverse]
        factors[own] = values / np.sqrt(np.bincount(inverse, values**2))[inverse]
        number = np.cumsum(standing == np.arange(n)) - 1
        return replace(self, columns=_narrow(number[standing]), factors=factors)

    @property
    def n_features(self) -> int:
        """How many features there are, joined or not."""
        return int(self.starts[-1])

    @property
    def n_columns(self) -> int:
        """How many columns the features have."""
        return self.n_features if self.columns is None else int(self.columns.max(initial=-1)) + 1

    def encode(self, table: PartTable) -> Encoded:
        """The features of every row of a table."""
        places = self.match(table.ids)[table.parts]
        known = places >= 0
        seen = np.flatnonzero(known)
        places, counts = places[seen], _capped(table.counts[seen])
        if self.encoding == "counts":
            return self.in_columns(Encoded(seen, places, counts.astype(np.float64), known))
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
        return self.in_columns(Encoded(seen[entry], columns, heights / widths, known))

    def in_columns(self, features: Encoded) -> Encoded:
        """Features with columns of their own, in those that they are joined in."""
        if self.columns is None or self.factors is None:
            return features
        values = features.values * self.factors[features.columns]
        return features._replace(columns=self.columns[features.columns], values=values)

    def squared_lengths(self, table: PartTable, depth: int | None = None) -> Floats:
        """Of the rows, counting all parts up to a depth, (rows,).

        Also those without a column: training examples have columns for all of their parts, and a
        new example whose unseen parts did not count would be too long beside them.
        """
        counts = _capped(table.counts).astype(np.float64)
        squares = counts if self.encoding == "unary" else counts**2
        return table.summed(table.inside(depth) * squares)

    def match(self, ids: PartIds) -> NDArray[np.int64]:
        """For every part its place among those that have columns, -1 where it has none."""
        if np.array_equal(self.ids, ids):  # the parts of the training examples themselves
            return np.arange(len(ids))
        codes, order = self._by_code
        wanted, missing = _part_codes(ids), np.arange(len(ids))
        place, found = np.searchsorted(codes, wanted), np.full(len(ids), -1)
        while len(missing):  # once, unless parts with equal codes are not equal
            missing = missing[place[missing] < len(codes)]
            missing = missing[codes[place[missing]] == wanted[missing]]
            known = order[place[missing]]
            same = (self.ids[known] == ids[missing]).all(axis=1)
            found[missing[same]] = known[same]
            missing = missing[~same]
            place[missing] += 1
        return found

    @cached_property
    def _by_code(self) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
        """The codes of the parts, ascending, and the part of each."""
        codes = _part_codes(self.ids)
        order = np.argsort(codes, kind="stable")
        return codes[order], order


def _part_codes(ids: PartIds) -> NDArray[np.uint64]:
    """A number for every part, by its role and half of its key."""
    codes: NDArray[np.uint64] = ids[:, 1] + ids[:, 0] * np.uint64(0x9E3779B97F4A7C15)
    return codes


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


def _narrow(numbers: Ints) -> Ints:
    """In 32 bits where they suffice."""
    return numbers.astype(index_dtype(int(numbers.max(initial=0))), copy=False)


def _capped(counts: Ints) -> NDArray[np.int64]:
    return np.minimum(counts, _MAX_COUNT - 1).astype(np.int64)


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
