"""What speaks for two examples holding the same thing, and how much of it chance explains.

The formulas are in `saen.data.overlap`; here they are arrays over unique examples.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from saen._util.arrays import Array, Floats, Ints, segment_ids, segment_reduce
from saen._util.lazy import sparse
from saen.data.compression import Compressed
from saen.data.content_hash import Keys
from saen.data.rarity import Items, Rarity, find_keys

MAX_SHARE = 0.1
"""Of the examples: items that more of them have are not rare."""
MIN_EXAMPLES = 50
"""Items that at most so many examples have are rare in any collection."""
MAX_PRODUCTS = 1 << 29
"""Products of entries that the evidence between all examples may take, whatever their number."""
PRODUCTS_PER_ENTRY = 100
COPIES_EXPONENT = 2 / 3
"""How many independent copies c equal parts of one example are worth: c to this power."""

_THETAS = np.array([0.1, 0.2, 0.35, 0.5, 0.7])
MAX_LEVELS = 64
_BLOCK_PRODUCTS = 1 << 24
_BLOCK_ENTRIES = 1 << 20


def rare_limit(examples: Ints, n: int, n_entries: int) -> int:
    """How many of `n` examples may have a rare item; `examples` says how many have each.

    A tenth of them, or fewer where comparing all that share an item would take too long.
    """
    limit = max(int(n * MAX_SHARE), MIN_EXAMPLES)
    numbers, items = np.unique(examples[examples <= limit], return_counts=True)
    budget = MAX_PRODUCTS + PRODUCTS_PER_ENTRY * n_entries
    products = np.cumsum(numbers.astype(np.float64) ** 2 * items)
    over = np.flatnonzero(products > budget)
    return max(int(numbers[over[0]]) - 1, 1) if len(over) else limit


@dataclass(frozen=True, eq=False)
class Rare:
    """The rare items of unique examples, with what they say: one entry for each, by example.

    `levels` are floor(log2 count), `places` those of the items among the rates (-1: in fewer than
    two examples). `content` is S, (rows,).
    """

    rows: Ints
    items: Ints
    levels: Ints
    weights: Floats
    places: Ints
    content: Floats

    @staticmethod
    def of(compressed: Compressed, items: Items, rarity: Rarity, limit: int) -> Rare:
        """The items that at most `limit` examples have, and that say anything."""
        places = rarity.items.find(items.keys)
        weights = rarity.weights(compressed, items, places)
        rare = (rarity.items.examples[places] <= limit)[items.items]
        kept = np.flatnonzero(rare & (items.uses > 0)[items.rows] & (weights > 0))
        rows, numbers, weights = items.rows[kept], items.items[kept], weights[kept]
        levels = np.frexp(items.counts[kept])[1].astype(np.int64) - 1
        worth = weights * copies(levels)
        content = np.bincount(rows, worth, minlength=len(items.sizes)).astype(np.float64)
        return Rare(rows, numbers, levels, weights, places[numbers], content)

    def only(self, items: NDArray[np.bool_]) -> Rare:
        """The entries of some of the items; the content stays that of all."""
        kept = np.flatnonzero(items[self.items])
        return Rare(
            self.rows[kept],
            self.items[kept],
            self.levels[kept],
            self.weights[kept],
            self.places[kept],
            self.content,
        )

    def codes(self, columns: Ints) -> tuple[Ints, Ints, Floats]:
        """Features (row, code, value) whose inner product is the evidence; a column per item.

        A count of 2^k to 2^(k+1) - 1 is the features "at least 1", "at least 2", "at least 4", …,
        "at least 2^k" of its item, which `codes` tell apart.
        """
        entry, level = _up_to(self.levels)
        steps = copies(level) - np.where(level > 0, copies(level - 1), 0.0)
        values = np.sqrt(self.weights[entry] * steps)
        return self.rows[entry], columns[self.items[entry]] * MAX_LEVELS + level, values


def copies(levels: Ints) -> Floats:
    """s(2^level): what so many copies of a part count."""
    worth: Floats = np.exp2(COPIES_EXPONENT * levels)
    return worth


def _up_to(levels: Ints) -> tuple[Ints, Ints]:
    """For every entry the levels 0 … its own: (entry, level)."""
    lengths = levels.astype(np.int64) + 1
    entry = np.repeat(np.arange(len(levels)), lengths)
    return entry, np.arange(len(entry)) - np.repeat(np.cumsum(lengths) - lengths, lengths)


def chance(rare: Rare, rarity: Rarity, false_positives: float) -> NDArray[np.float32]:
    """T: the evidence that another example reaches by chance, by the bin of its size, (rows, bins).

    `rare` holds the items that others can share.
    """
    n_rows = len(rare.content)
    out = np.empty((n_rows, rarity.n_bins), dtype=np.float32)
    bound = np.log(max(rarity.n, 1) / false_positives)
    starts = np.searchsorted(rare.rows, np.arange(n_rows + 1))
    begin = 0
    while begin < n_rows:
        end = int(np.searchsorted(starts, starts[begin] + _BLOCK_ENTRIES, side="right")) - 1
        end = max(end, begin + 1)
        own = slice(int(starts[begin]), int(starts[end]))
        for number, moments in enumerate(_log_moments(rare, own, begin, end - begin, rarity)):
            out[begin:end, number] = ((moments + bound) / _THETAS[:, None]).min(axis=0)
        begin = end
    return out


def _log_moments(
    rare: Rare, own: slice, first: int, n_rows: int, rarity: Rarity
) -> Iterator[Floats]:
    """For every bin, Σ over items of ln E[exp(θ w s(min(c, C)))], (thetas, rows)."""
    entry, level = _up_to(rare.levels[own])
    rows, places = rare.rows[own][entry] - first, rare.places[own][entry]
    weights, worth = rare.weights[own][entry], copies(level)
    step = weights * (worth - np.where(level > 0, copies(level - 1), 0.0))
    # ln(e^{θ w s(2^k)} - e^{θ w s(2^(k-1))}), where the powers may overflow
    rates = rarity.items.logs
    rises = [theta * weights * worth + np.log(-np.expm1(-theta * step)) for theta in _THETAS]
    for number in range(rarity.n_bins):
        reached = worth * rates[:, number][places]  # ln r^(c^⅔)
        moments = np.empty((len(_THETAS), n_rows))
        for row, rise in enumerate(rises):
            exponent = rise + reached
            # ln(1 + e^x) of numbers of any size
            terms = np.maximum(exponent, 0.0) + np.log1p(np.exp(-np.abs(exponent)))
            moments[row] = np.bincount(rows, terms, minlength=n_rows)
        yield moments


class Shared(NamedTuple):
    """Pairs of examples with their evidence, (pairs,)."""

    mine: Ints
    theirs: Ints
    evidence: Floats


class Compared(NamedTuple):
    """Of pairs: E / (S_i + S_j - E), E / min(S_i, S_j), and E / max(T_ij, T_ji), (pairs,)."""

    similarity: Floats
    containment: Floats
    strength: Floats


class Rule(NamedTuple):
    """What a pair needs to overlap."""

    min_containment: float
    min_strength: float

    def holds(self, compared: Compared) -> NDArray[np.bool_]:
        """Which pairs overlap."""
        enough: NDArray[np.bool_] = compared.strength >= self.min_strength
        return enough & (compared.containment >= self.min_containment)


@dataclass(frozen=True, eq=False)
class Evidence:
    """What can be compared of unique examples.

    - `features`: their inner products are E, (rows, columns);
    - `content`: S, (rows,); `thresholds`: T, (rows, bins); `bins`: of their sizes, (rows,);
    - `keys`: of the examples as wholes, sorted, (rows, 2).
    """

    features: sparse.csr_array
    content: Floats
    thresholds: NDArray[np.float32]
    bins: Ints
    keys: Keys

    def __len__(self) -> int:
        return len(self.content)

    def compare(self, other: Evidence, shared: Shared) -> Compared:
        """How alike pairs are that share so much evidence."""
        mine, theirs, evidence = shared
        by_chance = np.maximum(
            self.thresholds[mine, other.bins[theirs]], other.thresholds[theirs, self.bins[mine]]
        )
        one, two = self.content[mine], other.content[theirs]
        return Compared(
            evidence / (one + two - evidence),
            np.minimum(evidence / np.minimum(one, two), 1.0),
            evidence / by_chance,
        )

    def shared(self, other: Evidence) -> Iterator[Shared]:
        """E of all pairs that share anything, by mine, in blocks."""
        columns = other.features.T.tocsr()
        for begin, end in self._blocks(columns):
            yield _entries(self.features[begin:end] @ columns, begin)

    def pairs(self, rule: Rule) -> tuple[Ints, Ints, Compared]:
        """Pairs of these examples that overlap, in order."""
        nobody, nothing = np.empty(0, dtype=np.int64), np.empty(0)
        blocks: list[tuple[Ints, ...]] = [(nobody, nobody)]
        found: list[Compared] = [Compared(nothing, nothing, nothing)]
        # Few share more than chance explains at any size; rounding is left to the comparison.
        least = (1 - 1e-9) * rule.min_strength * self.thresholds.min(axis=1).astype(np.float64)
        for begin, end in self._blocks(self.features.T.tocsr()):
            columns = self.features[begin:].T.tocsr()  # examples before were met with these
            block = self.features[begin:end] @ columns
            enough = block.data >= np.repeat(least[begin:end], np.diff(block.indptr))
            places = np.flatnonzero(enough)
            first = np.searchsorted(block.indptr, places, side="right") - 1
            second, evidence = block.indices[places], block.data[places]
            later = np.flatnonzero(first < second)
            shared = Shared(first[later] + begin, second[later] + begin, evidence[later])
            compared = self.compare(self, shared)
            over = np.flatnonzero(rule.holds(compared))
            over = over[np.lexsort((shared.theirs[over], shared.mine[over]))]
            blocks.append((shared.mine[over], shared.theirs[over]))
            found.append(Compared(*(each[over] for each in compared)))
        ones, others = (np.concatenate(each) for each in zip(*blocks, strict=True))
        return ones, others, Compared(*map(np.concatenate, zip(*found, strict=True)))

    def nearest(self, train: Evidence, rule: Rule) -> tuple[Ints, Floats, Floats, Array]:
        """The most similar one of `train` for each of these examples.

        Returns its row or -1, similarity and containment, and whether any of `train` overlaps.
        """
        row = find_keys(train.keys, self.keys)
        identical = row >= 0
        similarity = identical.astype(np.float64)
        containment = similarity.copy()
        overlapping = np.zeros(len(self), dtype=np.bool_)
        for shared in self.shared(train):
            starts = np.flatnonzero(np.diff(shared.mine, prepend=-1))
            if not len(starts):
                continue
            rows, lengths = shared.mine[starts], np.diff(starts, append=len(shared.mine))
            compared = self.compare(train, shared)
            overlapping[rows] = np.logical_or.reduceat(rule.holds(compared), starts)
            best = np.maximum.reduceat(compared.similarity, starts)
            ties = compared.similarity == np.repeat(best, lengths)
            # Rows of products are in no order: of equally similar ones the first is sought.
            first = np.minimum.reduceat(np.where(ties, shared.theirs, len(train)), starts)
            chosen = ties & (shared.theirs == np.repeat(first, lengths))
            places = np.flatnonzero(chosen)
            new = ~identical[rows]
            row[rows[new]], similarity[rows[new]] = first[new], best[new]
            containment[rows[new]] = compared.containment[places[new]]
        return row, similarity, containment, overlapping

    def to_others(self) -> Floats:
        """The similarity of each of these examples to the most similar other one, (rows,)."""
        out = np.zeros(len(self))
        for shared in self.shared(self):
            other = shared.mine != shared.theirs
            compared = self.compare(self, Shared(*(each[other] for each in shared)))
            np.maximum.at(out, shared.mine[other], compared.similarity)
        return out

    def _blocks(self, columns: sparse.csr_array) -> Iterator[tuple[int, int]]:
        """Spans of examples whose products with all others take so much work and memory."""
        uses = np.diff(columns.indptr)[self.features.indices].astype(np.int64)
        ends = np.cumsum(segment_reduce(np.add, uses, self.features.indptr))
        begin = 0
        while begin < len(self):
            done = int(ends[begin - 1]) if begin else 0
            end = int(np.searchsorted(ends, done + _BLOCK_PRODUCTS, side="right"))
            yield begin, max(end, begin + 1)
            begin = max(end, begin + 1)


def _entries(block: sparse.csr_array, begin: int) -> Shared:
    return Shared(segment_ids(block.indptr) + begin, block.indices, block.data)


def matrix(codes: tuple[Ints, Ints, Floats], known: Ints, n_rows: int) -> sparse.csr_array:
    """Features with a column for every one of the codes `known`; others are left out."""
    rows, numbers, values = codes
    if not len(known):
        return sparse.csr_array((n_rows, 1))
    places = np.minimum(np.searchsorted(known, numbers), len(known) - 1)
    kept = np.flatnonzero(known[places] == numbers)
    return sparse.csr_array((values[kept], (rows[kept], places[kept])), shape=(n_rows, len(known)))
