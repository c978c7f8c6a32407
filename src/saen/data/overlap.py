"""Overlap between examples: which of them share so many rare parts that it cannot be chance.

Two graphs may hold the same thing twice: one paper seen from two of its authors, a series of
analogues, a thread posted again. A model that was trained on one of them has seen a part of the
other. Such graphs are found here from the counts of unique parts alone, never from targets.

The *evidence* that examples i and j overlap is what their shared items say (`saen.data.rarity`),

    E_ij = Σ over items p of √(w_ip · w_jp) · s(min(c_ip, c_jp)),    s(c) = 2^(⅔ · floor(log2 c)),

where w_ip is the weight of item p at the size of example i, and c_ip how often i has it. Equal
parts of one example are not independent, so c of them count as about c^⅔. Only rare items count,
which at most a tenth of the examples have. The *content* S_i = E_ii is what there is to share.

*Chance* is modelled like this: of the items of i, another example j that has nothing to do with it
has each independently of the others, with the rate r of the item at the size of j, and c copies of
it with probability r^(c^⅔). Chernoff's inequality then bounds the evidence that any of the n - 1
other examples reaches with a probability of at most α, for every i and size of j:

    T_ij = min over θ of 1/θ · (ln(n / α) + Σ over p of ln E[exp(θ · w_ip · s(min(c_ip, C_p)))])

Two examples *overlap* if their evidence is at least twice what chance explains, and at least a
third of the content of the one that has less:

    E_ij ≥ 2 · max(T_ij, T_ji)    and    containment_ij = E_ij / min(S_i, S_j) ≥ ⅓.

The first keeps small examples apart, which are alike for want of variety: below a content of 2 T
nothing overlaps, not even duplicates. For independent parts 1 · T would do; the factor and the
second condition are for examples of one kind, whose parts are not independent: at 1.5 · T, 5 % of
400 independent graphs with nine of ten possible edges would overlap, at 1 · T 29 %.

Measured with `DECOMPOSITION` on collections of 400 to 4,000 generated, independent graphs, the
share that was taken for overlapping is 0 for trees, sparse, dense, scale-free, geometric and
small-world graphs, molecules, grids, cycles, stars, wheels and regular graphs of one degree, 0.1 %
for threads and long threads, at most 0.5 % for graphs made of random cliques and those with nine of
ten possible edges. Labels in wide bins are worse: `log-degree:4` has up to 5 % of long threads.
Graphs whose nodes are nearly all alike are not told apart: one or two numbers decide such a graph,
and each of its nodes repeats them, as the nodes of a large clique do that two graphs share. So of
graphs with 95 and 98 % of all edges up to 10 and 36 % were taken for overlapping, of regular ones
of any degree up to 68 %, of complete ones 67 %, and of complete bipartite ones 78 %.

The evidence of all pairs is a product of sparse matrices over items that few examples have, made
and thresholded in blocks: there is no n × n matrix. A pass over the entries takes longer than that
product in most collections. For very many examples *few* is lowered until the product takes about
2^29 operations and a hundred more per entry. The rarest items are left then, and pairs that share
many of the others seem to share less than they do. A million threads of 12 nodes take 16 seconds
and 2.7 GB on two cores, 12,000 of 390 nodes (REDDIT-MULTI-12K) 8 seconds (13 of CPU) and 1.4 GB.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from saen._util.arrays import Array, Floats, Ints, codes_in_order, distinct, narrow, offsets, ranges
from saen._util.lazy import csgraph, sparse
from saen.data.compression import Compressed
from saen.data.content_hash import Keys
from saen.data.evidence import MAX_LEVELS, Evidence, Rare, Rule, Shared, chance, matrix, rare_limit
from saen.data.rarity import Items, Rarity, Rates, find_keys
from saen.errors import InputError

DECOMPOSITION = "neighbourhoods(depth=2, node_labels='degree,triangles')"
"""A decomposition that suits graphs without labels: exact degrees, which bins would blur, and
triangles, which show the members of a dense part whatever is around it."""
MIN_CONTAINMENT = 1 / 3
MIN_STRENGTH = 2.0
FALSE_POSITIVES = 0.01
MAX_PARTS = 1024
"""Items of one example that an index keeps."""
UNLIKE = 0.05
"""Of the training examples, so many are less similar to another one than an example has to be that
is like them."""
_CUT = 16  # of the links of a group that is too large, one in so many goes at a time


# -- between the examples of a collection ------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Pairs:
    """Overlapping pairs of unique examples, each given by its first example, shapes (pairs,).

    - `similarity`: E / (S_i + S_j - E), the Jaccard index of what the two consist of;
    - `containment`: E / min(S_i, S_j), the share of the one of less content that is in the other;
    - `strength`: E / max(T_ij, T_ji), what they share in units of what chance explains.
    """

    first: Ints
    second: Ints
    similarity: Floats
    containment: Floats
    strength: Floats

    def __len__(self) -> int:
        return len(self.first)


@dataclass(frozen=True, eq=False)
class Nearest:
    """The most similar one of other examples for each of some examples, shapes (examples,).

    - `example`: its number, -1 where nothing rare is shared with any;
    - `similarity` and `containment`: with it, as in `Pairs`: 1 for an identical one, 0 for none;
    - `overlapping`: whether any of the others overlaps, be it the most similar one or not;
    - `unlike`: whether there is something rare in it, and the similarity is less than that of all
      but a twentieth of the others to their most similar ones.
    """

    example: Ints
    similarity: Floats
    containment: Floats
    overlapping: NDArray[np.bool_]
    unlike: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Overlap:
    """Which examples of a collection overlap; see `find_overlap`.

    - `pairs`: the pairs of unique examples that overlap;
    - `groups`: the number of every example's group, (n,): examples are of one group if a chain of
      overlapping pairs joins them; numbered by their first examples;
    - `duplicates`: which examples are identical to another one, (n,). Those are of one group if
      they have too much content to be identical by chance, or if they overlap with others.
    """

    pairs: Pairs
    groups: Ints
    duplicates: NDArray[np.bool_]
    min_containment: float
    min_strength: float
    false_positives: float
    _unique: Ints = field(repr=False)
    _evidence: Evidence = field(repr=False)
    _joined: NDArray[np.bool_] = field(repr=False)

    def __len__(self) -> int:
        """Examples."""
        return len(self.groups)

    @property
    def overlapping(self) -> NDArray[np.bool_]:
        """Which examples overlap with another one, (n,)."""
        several: NDArray[np.bool_] = (np.bincount(self.groups) > 1)[self.groups]
        return several

    @property
    def share(self) -> float:
        """The share of the examples that overlap with another one."""
        return float(self.overlapping.mean()) if len(self) else 0.0

    @property
    def n_groups(self) -> int:
        """Groups of at least two examples."""
        return int((np.bincount(self.groups) > 1).sum())

    def members(self) -> tuple[Ints, ...]:
        """The examples of every group of at least two, the largest group first."""
        order = np.argsort(self.groups, kind="stable")
        sizes = np.bincount(self.groups)
        each = np.split(order, np.cumsum(sizes)[:-1]) if len(self) else []
        return tuple(sorted((own for own in each if len(own) > 1), key=len, reverse=True))

    @property
    def largest(self) -> int:
        """Examples of the largest group."""
        return int(np.bincount(self.groups).max(initial=0))

    def split(self, max_size: int) -> Ints:
        """Groups of at most `max_size` examples, (n,), such as fit into a fold.

        Chains of overlapping pairs can join very many examples. In a group that is too large, the
        threshold is raised until its pieces fit: of the links that hold a piece together (those of
        a spanning tree of greatest containment), the weakest sixteenth goes at a time. Identical
        examples that are of one group stay together, whatever their number.

        Raises `InputError` unless `max_size` is at least 1.
        """
        if max_size < 1:
            raise InputError(f"max_size must be an integer ≥ 1, not {max_size}")
        n_rows = len(self._joined)
        uses = np.bincount(self._unique, minlength=n_rows)
        first, second, containment = self._spanning_forest()
        while True:
            labels = _components(first, second, n_rows)
            too_large = np.bincount(labels, uses)[labels] > max_size
            inside = np.flatnonzero(too_large[first])
            if not len(inside):
                return _example_groups(labels, self._unique, self._joined)
            order = inside[np.lexsort((containment[inside], labels[first[inside]]))]
            starts = np.flatnonzero(np.diff(labels[first[order]], prepend=-1))
            lengths = np.diff(starts, append=len(order))
            kept = np.ones(len(first), dtype=np.bool_)
            kept[order[ranges(starts, -(-lengths // _CUT))]] = False
            first, second, containment = first[kept], second[kept], containment[kept]

    def overlaps(self, examples: Ints, others: Ints) -> NDArray[np.bool_]:
        """Which of some examples overlap with any of the others, themselves and not by a chain."""
        there = np.zeros(len(self._joined))
        there[self._unique[others]] = 1.0
        found: NDArray[np.bool_] = (self._links @ there > 0)[self._unique[examples]]
        return found

    def apart(self, train: Ints, test: Ints) -> Ints:
        """The examples of `train` that overlap with none of `test`.

        Where `split` had to cut a chain, this leaves no overlap between training and test.
        """
        return train[~self.overlaps(train, test)]

    @cached_property
    def _links(self) -> sparse.csr_array:
        """Which unique examples overlap; those with identical ones, with themselves."""
        first, second = (self._unique[each] for each in (self.pairs.first, self.pairs.second))
        itself = np.flatnonzero(self._joined)
        ends = np.concatenate([first, second, itself]), np.concatenate([second, first, itself])
        n_rows = len(self._joined)
        return sparse.csr_array((np.ones(len(ends[0])), ends), shape=(n_rows, n_rows))

    def to_json(self) -> dict[str, Any]:
        """The numbers, without those of single examples."""
        return {
            "examples": len(self),
            "share": self.share,
            "groups": self.n_groups,
            "largest": self.largest,
            "pairs": len(self.pairs),
            "duplicates": float(self.duplicates.mean()) if len(self) else 0.0,
            "min_containment": self.min_containment,
            "min_strength": self.min_strength,
            "false_positives": self.false_positives,
        }

    def _spanning_forest(self) -> tuple[Ints, Ints, Floats]:
        pairs, n_rows = self.pairs, len(self._joined)
        ends = self._unique[pairs.first], self._unique[pairs.second]
        # The cheapest tree is that of the greatest containment; zeros would be no links.
        costs = sparse.csr_array((2.0 - pairs.containment, ends), shape=(n_rows, n_rows))
        tree = csgraph.minimum_spanning_tree(costs).tocoo()
        return tree.row, tree.col, 2.0 - tree.data


def find_overlap(
    compressed: Compressed,
    *,
    min_containment: float = MIN_CONTAINMENT,
    min_strength: float = MIN_STRENGTH,
    false_positives: float = FALSE_POSITIVES,
) -> Overlap:
    """Find the examples of a compressed collection that overlap, without looking at targets.

    Parameters
    ----------
    compressed : Compressed
        The compressed examples. The decomposition decides what counts as the same: parts that see
        less far are found closer to the border of what two examples share, parts that see farther
        are rarer. `DECOMPOSITION` suits graphs without labels, `neighbourhoods(depth=2)` graphs
        with node labels.
    min_containment : float, default=MIN_CONTAINMENT
        How much of the example with less content must be in the other.
    min_strength : float, default=MIN_STRENGTH
        How much the two must share, relative to what chance explains.
    false_positives : float, default=FALSE_POSITIVES
        α, the probability, under the chance model, that an example shares more than chance explains
        with any of the others.

    Raises
    ------
    InputError
        For shares that do not lie between 0 and 1 and a `min_strength` below 1.

    Examples
    --------
    >>> import networkx as nx
    >>> from saen import compress_graphs, from_networkx, make_decomposition
    >>> trees = [nx.random_labeled_tree(100, seed=seed) for seed in range(199)]
    >>> longer = nx.compose(trees[7], nx.path_graph(range(99, 120)))  # a tree with a tail
    >>> graphs = from_networkx([*trees, longer])
    >>> found = find_overlap(compress_graphs(graphs, make_decomposition(DECOMPOSITION)))
    >>> found.groups[[7, 199]].tolist(), found.share, found.largest
    ([7, 7], 0.01, 2)
    """
    _check_share("min_containment", min_containment)
    _check_share("false_positives", false_positives)
    if not isinstance(min_strength, Real) or not min_strength >= 1:
        raise InputError(f"min_strength must be a number ≥ 1, not {min_strength!r}")
    items = Items.of(compressed)
    rarity = Rarity.of(compressed, items)
    rare = Rare.of(compressed, items, rarity, _limit(rarity, items))
    shared = rare.only(rarity.items.find(items.keys) >= 0)
    codes = shared.codes(np.arange(len(items.keys)))
    evidence = Evidence(
        matrix(codes, distinct(codes[1]), len(items.sizes)),
        rare.content,
        chance(shared, rarity, false_positives),
        rarity.bins(items.sizes),
        compressed.keys[-1],
    )
    rule = Rule(min_containment, min_strength)
    first, second, compared = evidence.pairs(rule)
    unique, n_rows = compressed.top, len(items.sizes)
    joined = np.zeros(n_rows, dtype=np.bool_)
    several = np.flatnonzero((items.uses > 1) & (rare.content > 0))
    whole = evidence.compare(evidence, Shared(several, several, rare.content[several]))
    joined[several[rule.holds(whole)]] = True
    joined[first] = joined[second] = True
    examples = _first_examples(unique, n_rows)
    return Overlap(
        Pairs(examples[first], examples[second], *compared),
        _example_groups(_components(first, second, n_rows), unique, joined),
        (items.uses > 1)[unique],
        min_containment,
        min_strength,
        false_positives,
        unique,
        evidence,
        joined,
    )


# -- between new examples and those of a model -------------------------------------------------


@dataclass(frozen=True, eq=False)
class OverlapIndex:
    """What is kept of training examples to find out which new ones overlap with them.

    Everything is arrays (`arrays`, `from_arrays`), by content keys, so that it can be stored with a
    model and compared with any other collection that was decomposed alike: the rates of parts by
    the size of the example, and per unique example its rare items, by key, with their weights. Of
    an example of more than `max_parts` items those with the smallest keys stay, which are a sample,
    the same for all examples, and stand for the others.
    """

    rarity: Rarity
    limit: int
    false_positives: float
    typical: float  # a twentieth of the examples are less similar to the most similar other one
    examples: Ints  # the first of every unique one
    keys: Keys  # of the unique examples
    content: Floats
    thresholds: NDArray[np.float32]
    bins: Ints
    indptr: Ints  # of the entries of every unique example
    items: Ints
    levels: Ints
    weights: NDArray[np.float32]
    item_keys: Keys

    @staticmethod
    def of(
        compressed: Compressed,
        *,
        max_parts: int = MAX_PARTS,
        false_positives: float = FALSE_POSITIVES,
    ) -> OverlapIndex:
        """The index of a compressed collection.

        Raises `InputError` for `max_parts` below 1 and for shares that do not lie between 0 and 1.
        """
        if max_parts < 1:
            raise InputError(f"max_parts must be an integer ≥ 1, not {max_parts}")
        _check_share("false_positives", false_positives)
        items = Items.of(compressed)
        rarity, n_rows = Rarity.of(compressed, items).rounded(), len(items.sizes)
        limit = _limit(rarity, items)
        rare = Rare.of(compressed, items, rarity, limit)
        thresholds = chance(rare.only(rarity.items.find(items.keys) >= 0), rarity, false_positives)
        sorted_items = np.lexsort(items.keys.T[::-1])
        rank = np.empty_like(sorted_items)
        rank[sorted_items] = np.arange(len(sorted_items))
        order = np.lexsort((rank[rare.items], rare.rows))
        lengths = np.bincount(rare.rows, minlength=n_rows)
        kept_lengths = np.minimum(lengths, max_parts)
        kept = order[ranges(offsets(lengths)[:-1], kept_lengths)]
        # The evidence has the square root of the weight of this side.
        scale = (lengths / np.maximum(kept_lengths, 1)) ** 2
        used, numbers = np.unique(rank[rare.items[kept]], return_inverse=True)
        index = OverlapIndex(
            rarity,
            limit,
            false_positives,
            0.0,
            _first_examples(compressed.top, n_rows),
            compressed.keys[-1],
            rare.content,
            thresholds,
            rarity.bins(items.sizes),
            offsets(kept_lengths),
            numbers,
            rare.levels[kept].astype(np.uint8),
            (rare.weights[kept] * scale[rare.rows[kept]]).astype(np.float32),
            items.keys[sorted_items[used]],
        )
        return replace(index, typical=index._typical(compressed.top, items.uses))

    def nearest(self, compressed: Compressed) -> Nearest:
        """The most similar training example for each example of another collection.

        Raises `InputError` for a hierarchy of another depth.
        """
        items = Items.of(compressed)
        rare = Rare.of(compressed, items, self.rarity, self.limit)
        columns = find_keys(self.item_keys, items.keys)
        shared = rare.only(columns >= 0)
        codes = shared.codes(columns)
        known = distinct(codes[1])
        asked = Evidence(
            matrix(codes, known, len(items.sizes)),
            rare.content,
            chance(shared, self.rarity, self.false_positives),
            self.rarity.bins(items.sizes),
            compressed.keys[-1],
        )
        train = self._evidence(columns[columns >= 0], known)
        row, similarity, containment, overlapping = asked.nearest(
            train, Rule(MIN_CONTAINMENT, MIN_STRENGTH)
        )
        unlike = (similarity < self.typical) & (rare.content > 0)
        example, top = np.append(self.examples, -1)[row], compressed.top
        return Nearest(
            example[top], similarity[top], containment[top], overlapping[top], unlike[top]
        )

    def _typical(self, top: Ints, uses: Ints) -> float:
        columns = np.arange(len(self.item_keys))
        known = distinct(self._entries(columns).codes(columns)[1])
        similarity = self._evidence(columns, known).to_others()
        similarity[uses > 1] = 1.0
        each = similarity[top][self.content[top] > 0]
        return float(np.quantile(each, UNLIKE, method="lower")) if len(each) else 0.0

    def _entries(self, columns: Ints) -> Rare:
        """What the training examples have of some items."""
        asked = np.zeros(len(self.item_keys), dtype=np.bool_)
        asked[columns] = True
        rows = np.repeat(np.arange(len(self.content)), np.diff(self.indptr))
        levels, weights = self.levels.astype(np.int64), self.weights.astype(np.float64)
        return Rare(rows, self.items, levels, weights, self.items, self.content).only(asked)

    def _evidence(self, columns: Ints, known: Ints) -> Evidence:
        """Of the training examples, with the columns that others share."""
        codes = self._entries(columns).codes(np.arange(len(self.item_keys)))
        features = matrix(codes, known, len(self.content))
        return Evidence(features, self.content, self.thresholds, self.bins, self.keys)

    def arrays(self) -> dict[str, Array]:
        """Everything as named arrays, in the narrowest types that hold them."""
        rarity = self.rarity
        out: dict[str, Array] = {
            "numbers": np.array([rarity.n, self.limit]),
            "shares": np.array([self.false_positives, self.typical]),
            "edges": rarity.edges,
        }
        for name, rates in zip(
            _rate_names(len(rarity.levels)), (rarity.items, *rarity.levels), strict=True
        ):
            out |= {
                f"{name}.keys": rates.keys,
                f"{name}.examples": narrow(rates.examples),
                f"{name}.logs": rates.logs.astype(np.float32),
            }
        for name in _INDEX_ARRAYS:
            column = getattr(self, name)
            out[name] = narrow(column) if column.dtype.kind == "i" else column
        return out

    @staticmethod
    def from_arrays(arrays: Mapping[str, Array]) -> OverlapIndex:
        """The index that `arrays` gave; raises `InputError` for arrays that do not fit together."""
        n_levels = sum(name.endswith(".logs") for name in arrays) - 1
        items, *levels = (
            Rates(
                arrays[f"{name}.keys"],
                arrays[f"{name}.examples"].astype(np.int64),
                arrays[f"{name}.logs"].astype(np.float64),
            )
            for name in _rate_names(n_levels)
        )
        n, limit = arrays["numbers"].tolist()
        false_positives, typical = arrays["shares"].tolist()
        columns = {name: arrays[name] for name in _INDEX_ARRAYS}
        for name in _INTEGERS:
            columns[name] = columns[name].astype(np.int64)
        index = OverlapIndex(
            Rarity(n, arrays["edges"], items, tuple(levels)),
            limit,
            false_positives,
            typical,
            **columns,
        )
        index._check()
        return index

    def _check(self) -> None:
        n_rows, n_bins = len(self.examples), self.rarity.n_bins
        n_entries, rates = len(self.items), (self.rarity.items, *self.rarity.levels)
        fits = (
            self.keys.shape == (n_rows, 2)
            and self.content.shape == self.bins.shape == (n_rows,)
            and self.thresholds.shape == (n_rows, n_bins)
            and self.indptr.shape == (n_rows + 1,)
            and self.indptr[0] == 0
            and self.indptr[-1] == n_entries
            and (np.diff(self.indptr) >= 0).all()
            and self.levels.shape == self.weights.shape == (n_entries,)
            and self.item_keys.shape[1:] == (2,)
            and self.items.max(initial=-1) < len(self.item_keys)
            and self.bins.max(initial=0) < n_bins
            and self.levels.max(initial=0) < MAX_LEVELS
            and all(len(each.examples) == len(each.keys) + 1 for each in rates)
            and all(each.logs.shape == (len(each.examples), n_bins) for each in rates)
        )
        if not fits:
            raise InputError("the index of training examples does not fit together")


_INDEX_ARRAYS = tuple(each.name for each in fields(OverlapIndex))[4:]
_INTEGERS = ("examples", "bins", "indptr", "items")


def _rate_names(n_levels: int) -> tuple[str, ...]:
    return ("rates.items", *(f"rates.{level}" for level in range(n_levels)))


# -- helpers -----------------------------------------------------------------------------------


def _limit(rarity: Rarity, items: Items) -> int:
    return rare_limit(rarity.items.examples[:-1], rarity.n, len(items.rows))


def _components(first: Ints, second: Ints, n: int) -> NDArray[np.int32]:
    links = sparse.csr_array((np.ones(len(first)), (first, second)), shape=(n, n))
    labels: NDArray[np.int32] = csgraph.connected_components(links, directed=False)[1]
    return labels


def _example_groups(labels: Ints, unique: Ints, joined: NDArray[np.bool_]) -> Ints:
    """Groups of examples from those of unique ones; identical ones are apart unless `joined`."""
    alone = int(labels.max(initial=-1)) + 1 + np.arange(len(unique))
    groups = np.where(joined[unique], labels[unique], alone)
    return codes_in_order(groups.astype(np.uint64)).astype(np.int64)


def _first_examples(unique: Ints, n_rows: int) -> NDArray[np.int64]:
    """The first example of every unique one; -1 where there is none."""
    first = np.full(n_rows, -1)
    first[unique[::-1]] = np.arange(len(unique))[::-1]
    return first


def _check_share(name: str, value: float) -> None:
    if not isinstance(value, Real) or not 0 < value <= 1:
        raise InputError(f"{name} must lie between 0 and 1, not {value!r}")
