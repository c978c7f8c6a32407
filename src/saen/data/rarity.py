"""How rare parts are among examples of one size, and what their being there says.

An *item* is a part of an example with its role. How rare it is depends on the size of the example:
nearly every large graph has a node of degree 12. The size here is √(parts · distinct parts),
between the two ways of counting, and examples are put into bins of about equal numbers by it. The
rate of an item in a bin is the share of the examples in that bin and (at half weight) the two next
to it that have the item, with one example more that has it as often as examples of its size have
it over the whole collection; but at most four times the share of all examples that have it, or
what many examples of one size share would never be rare.

What an item says is what its own parts do not say already. A leaf beside a node of degree 57 is
rare, but it is as rare as nodes of degree 57 are: 50 such leaves are one fact. So the weight of an
item is its rate beside that of the rarest of its parts,

    w = log(min over parts of their rates / rate of the item),    w = -log(rate) at the bottom,

and an object that consists of one object alone (role `carry` of `neighbourhoods`) is that object.
Along the hierarchy these weights add up to -log of a probability (a chain rule).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from saen._util.arrays import (
    Array,
    Floats,
    Ints,
    distinct_with_inverse,
    offsets,
    ranges,
    segment_reduce,
)
from saen._util.lazy import sparse
from saen.data.compression import Compressed
from saen.data.content_hash import Keys, value_keys
from saen.data.hierarchy import Relation
from saen.errors import InputError

MIN_BIN = 100
"""Examples per bin of sizes, on average, at least."""
MAX_BINS = 32
MAX_LIFT = 4.0
"""How many times its rate in the whole collection the rate of an item in a bin can be."""
_NEXT_BIN = 0.5  # the weight of the bins beside an example's own
_MAX_GATHERED = 1 << 22  # entries of parts looked at together
_ROLE_FACTOR = np.uint64(0x9E3779B97F4A7C15)  # odd: keys stay apart


@dataclass(frozen=True, eq=False)
class Items:
    """What the unique examples consist of: one entry per unique example and item.

    - `rows`, `items`, `counts`: the entries, (entries,);
    - `parts`: the object below the top that every item is, (items,); `keys`: what it is in any
      collection, (items, 2);
    - `sizes`: of the unique examples, (rows,); `uses`: how many examples each stands for, (rows,).
    """

    rows: Ints
    items: Ints
    counts: Ints
    parts: Ints
    keys: Keys
    sizes: Floats
    uses: Ints

    @staticmethod
    def of(compressed: Compressed) -> Items:
        """The parts of the top objects, told apart by their roles."""
        relation = compressed.hierarchy.relations[-1]
        n_rows, width = relation.n_parents, max(relation.n_parts, 1)
        codes = relation.roles.astype(np.int64) * width + relation.parts
        known, items = distinct_with_inverse(codes)
        roles, parts = np.divmod(known, width)
        names = value_keys(list(relation.alphabet), "role")
        rows, counts = relation.parents, relation.multiplicity
        n_parts = np.bincount(rows, counts, minlength=n_rows)
        return Items(
            rows,
            items,
            counts,
            parts,
            compressed.keys[-2][parts] * _ROLE_FACTOR + names[roles],
            np.sqrt(n_parts * np.bincount(rows, minlength=n_rows)),
            np.bincount(compressed.top, minlength=n_rows),
        )


@dataclass(frozen=True, eq=False)
class Rates:
    """In which share of the examples of every bin the objects of a kind are, in logarithms.

    - `keys`: of the objects that at least two examples have, (objects, 2), sorted;
    - `examples`: how many have each, and 1 at the end, (objects + 1,);
    - `logs`: log rates, and at the end those of an object that one example has, or none, shape
      (objects + 1, bins). So the place -1 stands for all of those.
    """

    keys: Keys
    examples: Ints
    logs: Floats

    def find(self, keys: Keys) -> NDArray[np.int64]:
        """The place of every key, -1 where fewer than two examples have it."""
        return find_keys(self.keys, keys)


def find_keys(known: Keys, keys: Keys) -> NDArray[np.int64]:
    """The place of every key among those `known`, which are sorted by both lanes; -1 for others.

    >>> one, other = np.array([[1, 5], [2, 6]], np.uint64), np.array([[2, 6], [1, 7]], np.uint64)
    >>> find_keys(one, other).tolist()
    [1, -1]
    """
    if not len(known):
        return np.full(len(keys), -1)
    # The first lane alone tells 2^32 objects apart; of equal ones, the second is missed.
    places = np.minimum(np.searchsorted(known[:, 0], keys[:, 0]), len(known) - 1)
    return np.where((known[places] == keys).all(axis=1), places, -1)


@dataclass(frozen=True, eq=False)
class Rarity:
    """Rates of items and of the objects that they are made of, by the size of the example.

    - `n`: the examples; `edges`: where bins of sizes end, (bins - 1,);
    - `items`; `levels`: of levels 0 … L - 2, for the parts of the items.
    """

    n: int
    edges: Floats
    items: Rates
    levels: tuple[Rates, ...]

    @staticmethod
    def of(compressed: Compressed, items: Items) -> Rarity:
        """The rates in a collection."""
        edges = _bin_edges(items.sizes, items.uses)
        bins = np.searchsorted(edges, items.sizes, side="right")
        n_bins = len(edges) + 1
        examples = np.bincount(bins, items.uses, minlength=n_bins)
        sums = np.bincount(bins, items.uses * items.sizes, minlength=n_bins)
        table = _Counted(
            items.uses,
            bins,
            _with_neighbours(examples),
            sums / np.maximum(examples, 1) / max(sums.sum(), 1.0),
        )
        levels = [
            table.rates(rows, objects, compressed.keys[level])
            for level, rows, objects in _contents(compressed)
        ]
        return Rarity(
            len(compressed),
            edges,
            table.rates(items.rows, items.items, items.keys),
            tuple(levels[::-1]),
        )

    def rounded(self) -> Rarity:
        """With rates as they are stored, in 32 bits."""
        items, *levels = (
            Rates(each.keys, each.examples, each.logs.astype(np.float32).astype(np.float64))
            for each in (self.items, *self.levels)
        )
        return Rarity(self.n, self.edges, items, tuple(levels))

    @property
    def n_bins(self) -> int:
        """Bins of sizes."""
        return len(self.edges) + 1

    def bins(self, sizes: Floats) -> NDArray[np.int64]:
        """The bin of every size."""
        return np.searchsorted(self.edges, sizes, side="right")

    def weights(self, compressed: Compressed, items: Items, places: Ints) -> Floats:
        """What every entry says at the size of its example, ≥ 0, (entries,).

        `places` are those of the items among the rates. Raises `InputError` for a hierarchy of
        another depth.
        """
        hierarchy = compressed.hierarchy
        if hierarchy.depth != len(self.levels) + 1:
            raise InputError(
                f"the hierarchies differ: {len(self.levels) + 1} and {hierarchy.depth} levels "
                "above the bottom"
            )
        codes = items.items.astype(np.int64) * self.n_bins + self.bins(items.sizes)[items.rows]
        pairs, entries = distinct_with_inverse(codes)
        numbers, bins = np.divmod(pairs, self.n_bins)
        out = np.zeros(len(pairs))
        pending, objects = np.arange(len(pairs)), items.parts[numbers]
        own = self.items.logs[places[numbers], bins]
        for level in range(hierarchy.depth - 1, 0, -1):
            relation, rates = hierarchy.relations[level - 1], self.levels[level - 1]
            parts = rates.find(compressed.keys[level - 1])
            starts = relation.indptr[objects].astype(np.int64)
            lengths = relation.indptr[objects + 1] - starts
            alone = _single(relation)[objects]
            several = np.flatnonzero(~alone)
            for some in _chunks(lengths[several]):
                chosen = several[some]
                entry = ranges(starts[chosen], lengths[chosen])
                around = np.repeat(bins[pending[chosen]], lengths[chosen])
                found = rates.logs[parts[relation.parts[entry]], around]
                rarest = segment_reduce(np.minimum, found, offsets(lengths[chosen]))
                out[pending[chosen]] = rarest - own[chosen]
            pending = pending[alone]
            objects = relation.parts[starts[alone]].astype(np.int64)
            own = rates.logs[parts[objects], bins[pending]]
        out[pending] = -own
        return np.maximum(out, 0.0)[entries]


@dataclass(frozen=True, eq=False)
class _Counted:
    """What rates are counted with: the uses and bins of rows, the totals and shares of bins."""

    uses: Ints
    bins: Ints
    totals: Floats
    shares: Floats  # of the sizes of all examples, that of an average example of the bin

    def rates(self, rows: Ints, objects: Ints, keys: Keys) -> Rates:
        """The rates of the objects of a kind, from entries (row, object)."""
        n_bins = len(self.totals)
        examples = np.bincount(objects, self.uses[rows], minlength=len(keys)).astype(np.int64)
        several = np.flatnonzero(examples > 1)
        several = several[np.lexsort((keys[several, 1], keys[several, 0]))]
        place = np.full(len(keys), -1)
        place[several] = np.arange(len(several))
        places = place[objects]
        used = places >= 0
        codes = places[used] * n_bins + self.bins[rows[used]]
        size = len(several) * n_bins
        counts = np.ones((len(several) + 1, n_bins))  # in its own bin, what is there once is there
        by_bin = np.bincount(codes, self.uses[rows[used]], minlength=size)
        counts[:-1] = _with_neighbours(by_bin.reshape(-1, n_bins))
        known = np.append(examples[several], 1)
        expected = -np.expm1(-known[:, None] * self.shares)
        rates = (counts + expected) / (self.totals + 1)
        everywhere = (known + 1) / (self.uses.sum() + 1)
        rates = np.minimum(rates, MAX_LIFT * everywhere[:, None])
        # In a bin of examples without parts nothing is ever found.
        return Rates(keys[several], known, np.log(np.maximum(rates, np.finfo(np.float64).tiny)))


def _contents(compressed: Compressed) -> Iterator[tuple[int, Ints, Ints]]:
    """The objects of levels L - 2 … 0 that every unique example contains, as (row, object)."""
    hierarchy = compressed.hierarchy
    contained = _incidence(hierarchy.relations[-1])
    for level in range(hierarchy.depth - 2, -1, -1):
        contained = contained @ _incidence(hierarchy.relations[level])
        rows = np.repeat(np.arange(len(hierarchy)), np.diff(contained.indptr))
        yield level, rows, contained.indices


def _incidence(relation: Relation) -> sparse.csr_array:
    """Which parts a parent has, without how often."""
    data = np.ones(relation.n_entries, dtype=np.bool_)  # products are `or`, and cannot overflow
    parts, indptr = relation.parts.astype(np.int32), relation.indptr.astype(np.int64)
    matrix = sparse.csr_array((data, parts, indptr), shape=(relation.n_parents, relation.n_parts))
    matrix.sum_duplicates()
    return matrix


def _single(relation: Relation) -> NDArray[np.bool_]:
    """Which parents consist of one part alone."""
    totals = segment_reduce(np.add, relation.multiplicity, relation.indptr.astype(np.int64))
    single: NDArray[np.bool_] = totals == 1
    return single


def _chunks(lengths: Ints) -> Iterator[slice]:
    """Consecutive ones with about `_MAX_GATHERED` entries together."""
    ends = np.cumsum(lengths)
    start = 0
    while start < len(lengths):
        done = int(ends[start - 1]) if start else 0
        stop = max(int(np.searchsorted(ends, done + _MAX_GATHERED, side="right")), start + 1)
        yield slice(start, stop)
        start = stop


def _bin_edges(sizes: Floats, uses: Ints) -> Floats:
    """Sizes that divide the examples into bins of about equal numbers."""
    n = int(uses.sum())
    n_bins = min(max(n // MIN_BIN, 1), MAX_BINS)
    order = np.argsort(sizes, kind="stable")
    ranks = np.arange(1, n_bins) * n // n_bins
    firsts = np.searchsorted(np.cumsum(uses[order]), ranks, side="right")
    edges: Floats = np.unique(sizes[order][firsts])
    inside: Floats = edges[edges > sizes.min(initial=np.inf)]
    return inside


def _with_neighbours(counts: Array) -> Floats:
    """Counts per bin, along the last axis, with those of the bins beside it at half weight."""
    out = counts.astype(np.float64)
    out[..., 1:] += _NEXT_BIN * counts[..., :-1]
    out[..., :-1] += _NEXT_BIN * counts[..., 1:]
    return out
