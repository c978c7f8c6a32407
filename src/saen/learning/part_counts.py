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
from dataclasses import KW_ONLY, dataclass, field
from numbers import Integral
from typing import ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import TransformerMixin
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

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
from saen.decompositions import Decomposition
from saen.errors import InputError
from saen.learning.decomposing import Decomposing
from saen.learning.parameters import parameter
from saen.learning.preparation import (
    Data,
    Prepared,
)

PartIds = NDArray[np.uint64]
"""Parts by content: level and role in one number, then the 128 bits of the key, (parts, 3)."""

SHARES = "shares"
"""The norm of forests of classes: the shares of the parts, and their number in the last column."""
_ROLE_BITS = 32
MAX_ROLE = (1 << _ROLE_BITS) - 1
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
        first = (np.uint64(level) << np.uint64(_ROLE_BITS)) + roles.astype(np.uint64)
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
    return _narrow(sparse.csr_array((encoded.values, (rows, encoded.columns)), shape=shape))


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
    return _narrow(sparse.hstack([scaled, sizes], format="csr"))


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


def _narrow(matrix: sparse.csr_array) -> sparse.csr_array:
    """Indices of 32 bits where they suffice: many estimators take no wider ones."""
    dtype = index_dtype(max(matrix.nnz, *matrix.shape))
    matrix.indices = matrix.indices.astype(dtype, copy=False)
    matrix.indptr = matrix.indptr.astype(dtype, copy=False)
    return matrix


# -- the transformer ---------------------------------------------------------------------------

MAX_FEATURES = 1 << 26
"""Columns that parts are hashed to: a linear model keeps half a gigabyte of weights for them."""
_AT_LEAST_ONE = Interval(Integral, 1, None, closed="left")
ENCODINGS = ("counts", "unary")


@dataclass(eq=False, repr=False)
class CountSettings(Decomposing):
    """The arguments that `PartCounts` and the linear models over part counts share."""

    decomposition: str | Decomposition = parameter(
        "neighbourhoods", str, HasMethods(["fit", "decompose", "costs"])
    )
    _: KW_ONLY
    levels: str | Sequence[int] = parameter("auto", StrOptions({"auto"}), "array-like")
    encoding: str = parameter("unary", StrOptions(set(ENCODINGS)))
    max_count: int | None = parameter(None, _AT_LEAST_ONE, None)
    max_thresholds: int | None = parameter(None, _AT_LEAST_ONE, None)
    n_features: int | None = parameter(
        None, Interval(Integral, 1, MAX_FEATURES, closed="both"), None
    )
    norm: str | None = parameter("l2", StrOptions({"l2"}), None)
    min_graphs: int = parameter(1, _AT_LEAST_ONE)

    _deep: ClassVar[bool] = True

    def count(self, prepared: Prepared) -> PartTable:
        """The parts of prepared data, counted per example."""
        return count_parts(prepared.compressed, self.levels)

    def fit_encoder(self, table: PartTable) -> Encoder:
        """The columns that the examples of a table fix."""
        return Encoder.fit(
            table,
            np.bincount(table.top, minlength=table.n_rows),
            encoding=self.encoding,
            max_count=self.max_count,
            max_thresholds=self.max_thresholds,
            min_graphs=self.min_graphs,
            n_features=self.n_features,
        )

    def _begin_fit(self, X: Data) -> tuple[Prepared, PartTable]:
        prepared = self.prepare(self._some_data(X))
        table = self.count(prepared)
        self._fitted_to(prepared)
        return prepared, table


@dataclass(eq=False, repr=False)
class PartCounts(TransformerMixin, CountSettings):
    """How often each unique part occurs in each example, as sparse features.

    `X` is whatever the estimators take: `Graphs`, a list of networkx graphs, of PyG `Data` or of
    RDKit molecules, other data that the decomposition reads, or a ready `Hierarchy`. Columns are
    fixed by `fit`: parts that it did not see have none. Equal parts are found by content key, all
    128 bits of it.

    Parameters
    ----------
    decomposition, radii, node_labels : as for `SAENClassifier`; the depth of `neighbourhoods`, if
        not given, is 5, or less for large collections.
    levels : which levels' objects are counted, 0 being the bottom; `auto` is the level below the
        top, whose parts are counted by role.
    encoding : `counts`, or `unary`: a count c becomes the features "at least 1", …, "at least c",
        whose inner product is Σ min(x, y). Thresholds that no example of `fit` tells apart share
        a column, without any change of the inner products.
    max_count : larger counts are taken for this one.
    max_thresholds : at most about so many columns per part in unary: the first thresholds exact,
        then ever wider apart, with counts between them interpolated.
    n_features : hash into so many columns, instead of one per part (and threshold).
    norm : `l2` divides rows by their length (in unary, that of the unary vector), None does not.
        Parts without a column count, so that inner products are those of the normalised kernel.
    min_graphs : leave out parts that fewer examples of `fit` have (with hashing: columns).

    After `fit`: `decomposition_` (None over a `Hierarchy`), `schema_`, `encoder_`,
    `n_features_out_`, and `unseen_share_`: the share of part occurrences in the last `transform`
    that have no column.

    >>> from saen import Graphs
    >>> path, star = [(0, 1), (1, 2), (2, 3)], [(0, 1), (0, 2), (0, 3)]
    >>> graphs = Graphs.from_edge_lists([path, star], node_labels=["C"] * 8)
    >>> features = PartCounts("neighbourhoods(depth=1)", encoding="counts", norm=None)
    >>> features.fit_transform(graphs).toarray()
    array([[4., 0., 2., 2.],
           [4., 1., 3., 0.]])
    >>> unary = PartCounts("neighbourhoods(depth=1)", norm=None).fit_transform(graphs)
    >>> (unary @ unary.T).toarray().round(6)  # Σ min(x, y)
    array([[8., 6.],
           [6., 8.]])
    """

    encoder_: Encoder = field(init=False)
    n_features_out_: int = field(init=False)
    unseen_share_: float = field(init=False)

    def fit(self, X: Data, y: object = None) -> Self:
        """Fix the columns by the parts of these examples."""
        self._fit(X)
        return self

    def fit_transform(self, X: Data, y: object = None) -> sparse.csr_array:
        """`fit(X).transform(X)`, decomposed and compressed once."""
        return self._features(self._fit(X))

    def transform(self, X: Data) -> sparse.csr_array:
        """Features of examples, shape (n, `n_features_out_`), float64."""
        check_is_fitted(self, "encoder_")
        return self._features(count_parts(self.compress(X), self.levels))

    def get_feature_names_out(self, input_features: object = None) -> NDArray[np.object_]:
        """What every column counts: a role (or level), a part by its key, and a threshold."""
        check_is_fitted(self, "encoder_")
        encoder = self.encoder_
        if encoder.occupied is not None:
            return np.array([f"hash {i}" for i in range(encoder.n_columns)], dtype=np.object_)
        names = [self._part_name(*part) for part in encoder.ids.tolist()]
        if self.encoding == "unary":
            pairs = zip(segment_ids(encoder.starts), encoder.thresholds.tolist(), strict=True)
            names = [f"{names[part]} ≥ {threshold}" for part, threshold in pairs]
        return np.array(names, dtype=np.object_)

    def _part_name(self, place: int, one: int, other: int) -> str:
        level, role = divmod(place, 1 << _ROLE_BITS)
        top = level == self.schema_.depth - 1
        where = self.schema_.relations[-1].alphabet[role] if top else self.schema_.names[level]
        return f"{where} > {one:016x}{other:016x}"

    def _fit(self, X: Data) -> PartTable:
        _, table = self._begin_fit(X)
        self.encoder_ = self.fit_encoder(table)
        self.n_features_out_ = self.encoder_.n_columns
        return table

    def _features(self, table: PartTable) -> sparse.csr_array:
        encoded = self.encoder_.encode(table)
        self.unseen_share_ = encoded.unseen_share(table)
        rows = feature_rows(encoded, table, self.n_features_out_)
        return _narrow(scaled_rows(rows, self.encoder_, table, self.norm)[table.top])
