"""Overlap by its formulas, in loops over all pairs of examples."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable
from functools import cache
from typing import Any

from saen import Hierarchy
from tests.references.hierarchies import contents, entries_of

THETAS = (0.1, 0.2, 0.35, 0.5, 0.7)
EXPONENT = 2 / 3


class Collection:
    """A collection whose examples, or those of others with it, are compared."""

    def __init__(
        self,
        hierarchy: Hierarchy,
        *,
        min_bin: int = 100,
        max_bins: int = 32,
        max_share: float = 0.1,
        min_examples: int = 50,
    ) -> None:
        self.depth = hierarchy.depth
        self.examples = examples_of(hierarchy)
        self.n = len(self.examples)
        self.limit = max(int(self.n * max_share), min_examples)
        self.sizes = [size(items) for items, _ in self.examples]
        n_bins = min(max(self.n // min_bin, 1), max_bins)
        ascending = sorted(self.sizes)
        edges = {ascending[k * self.n // n_bins] for k in range(1, n_bins)}
        self.edges = sorted(edge for edge in edges if edge > ascending[0])
        self.n_bins = len(self.edges) + 1
        self.bins = [self.bin(each) for each in self.sizes]
        self.rate = cache(self._rate)
        self.count = cache(self._count)
        self._known: dict[tuple[Hashable, ...], Any] = {}  # by the identity of the items

    def bin(self, size: float) -> int:
        return sum(edge <= size for edge in self.edges)

    def has(self, example: int, level: int | None, what: Hashable) -> bool:
        """Whether an example has an item (`level` None), or an object of a level."""
        items, objects = self.examples[example]
        return what in (items if level is None else objects[level])

    def _count(self, level: int | None, what: Hashable) -> int:
        return sum(self.has(example, level, what) for example in range(self.n))

    def _rate(self, level: int | None, what: Hashable, bin: int) -> float:
        nearby = {bin: 1.0, bin - 1: 0.5, bin + 1: 0.5}
        total = sum(nearby.get(each, 0.0) for each in self.bins)
        number = self.count(level, what)
        if number > 1:
            having = sum(
                nearby.get(self.bins[example], 0.0)
                for example in range(self.n)
                if self.has(example, level, what)
            )
        else:
            having, number = 1.0, 1
        own = [s for s, each in zip(self.sizes, self.bins, strict=True) if each == bin]
        share = sum(own) / max(len(own), 1) / max(sum(self.sizes), 1.0)
        rate = (having + 1 - math.exp(-number * share)) / (total + 1)
        return min(rate, 4 * (number + 1) / (self.n + 1))

    def weight(self, item: tuple[str, Hashable], bin: int) -> float:
        own, level, what = self.rate(None, item, bin), self.depth - 1, item[1]
        while level > 0:
            parts = dict(what)  # {(role, part): count}
            if sum(parts.values()) == 1:
                level -= 1
                ((_, what),) = parts
                own = self.rate(level, what, bin)
                continue
            rarest = min((self.rate(level - 1, part, bin) for _, part in parts), default=1.0)
            return max(math.log(rarest / own), 0.0)
        return -math.log(own)

    def weights(self, items: Counter[tuple[str, Hashable]]) -> dict[Hashable, float]:
        """Of the rare items of an example."""

        def known() -> dict[Hashable, float]:
            bin = self.bin(size(items))
            rare = (item for item in items if self.count(None, item) <= self.limit)
            return {item: self.weight(item, bin) for item in rare}

        return self._once(("weights", id(items)), known)

    def _once(self, what: tuple[Hashable, ...], function: Callable[[], Any]) -> Any:
        """What the function gives, which is called once."""
        if what not in self._known:
            self._known[what] = function()
        return self._known[what]

    def content(self, items: Counter[tuple[str, Hashable]]) -> float:
        weights = self.weights(items)
        return self._once(
            ("content", id(items)),
            lambda: sum(w * copies(items[item]) for item, w in weights.items()),
        )

    def evidence(
        self, one: Counter[Hashable], other: Counter[Hashable], at_least: int = 1
    ) -> float:
        """E, of the items that `at_least` so many examples have."""
        mine, theirs = self.weights(one), self.weights(other)
        return self._once(
            ("evidence", id(one), id(other), at_least),
            lambda: sum(
                math.sqrt(mine[item] * theirs[item]) * copies(min(one[item], other[item]))
                for item in mine.keys() & theirs.keys()
                if self.count(None, item) >= at_least
            ),
        )

    def by_chance(
        self, items: Counter[Hashable], bin: int, alpha: float = 0.01, at_least: int = 2
    ) -> float:
        """T, of the items that `at_least` so many examples have."""
        return self._once(
            ("chance", id(items), bin, alpha, at_least),
            lambda: self._by_chance(items, bin, alpha, at_least),
        )

    def _by_chance(self, items: Counter[Hashable], bin: int, alpha: float, at_least: int) -> float:
        shared = {i: w for i, w in self.weights(items).items() if self.count(None, i) >= at_least}
        bound = math.log(self.n / alpha)
        return min(
            (bound + sum(self._moment(theta, w, items[i], i, bin) for i, w in shared.items()))
            / theta
            for theta in THETAS
        )

    def _moment(self, theta: float, weight: float, count: int, item: Hashable, bin: int) -> float:
        """Σ over levels k of ln(1 + (e^{θ w s(2^k)} - e^{θ w s(2^(k-1))}) r^{s(2^k)})."""
        rate, out, before = self.rate(None, item, bin), 0.0, 0.0
        for level in range(math.floor(math.log2(count)) + 1):
            worth = copies(2**level)
            rise = math.exp(theta * weight * worth) - math.exp(theta * weight * before)
            out += math.log1p(rise * rate**worth)
            before = worth
        return out

    def similarity(self, one: Counter[Hashable], other: Counter[Hashable]) -> float:
        shared = self.evidence(one, other)
        return shared / (self.content(one) + self.content(other) - shared) if shared else 0.0

    def containment(self, one: Counter[Hashable], other: Counter[Hashable]) -> float:
        least = min(self.content(one), self.content(other))
        return min(self.evidence(one, other) / least, 1.0) if least else 0.0

    def strength(self, one: Counter[Hashable], other: Counter[Hashable], alpha: float) -> float:
        chance = max(
            self.by_chance(one, self.bin(size(other)), alpha),
            self.by_chance(other, self.bin(size(one)), alpha),
        )
        return ratio(self.evidence(one, other), chance)

    def strength_of_new(self, new: Counter[Hashable], known: Counter[Hashable], alpha: float):
        """Of a new example, which can share what one training example has."""
        chance = max(
            self.by_chance(new, self.bin(size(known)), alpha, 1),
            self.by_chance(known, self.bin(size(new)), alpha),
        )
        return ratio(self.evidence(new, known), chance)

    def typical(self) -> float:
        """A twentieth of the examples are less similar to the most similar other one."""
        known = [items for items, _ in self.examples]
        best = [
            1.0
            if known.count(one) > 1
            else max((self.similarity(one, other) for other in known if other != one), default=0.0)
            for one in known
            if self.content(one)
        ]
        return sorted(best)[math.floor((len(best) - 1) * 0.05)] if best else 0.0


def ratio(evidence: float, chance: float) -> float:
    """Evidence in units of chance: nothing shared is none, even where nothing can be by chance."""
    return evidence / chance if evidence else 0.0


def size(items: Counter[Hashable]) -> float:
    return math.sqrt(items.total() * len(items))


def copies(count: int) -> float:
    return 2 ** (EXPONENT * math.floor(math.log2(count)))


def examples_of(
    hierarchy: Hierarchy,
) -> list[tuple[Counter[tuple[str, Hashable]], list[set[Hashable]]]]:
    """Of every example its items, (role, part) with counts, and its objects on levels 0 … L - 2."""
    what = contents(hierarchy)
    out = []
    for example in range(len(hierarchy)):
        items: Counter[tuple[str, Hashable]] = Counter()
        inside = {example}
        objects: list[set[Hashable]] = [set() for _ in range(hierarchy.depth - 1)]
        for level in range(hierarchy.depth, 0, -1):
            relation = hierarchy.relations[level - 1]
            below = set()
            for parent in inside:
                for role, part, count in entries_of(relation, parent):
                    below.add(part)
                    if level == hierarchy.depth:
                        items[relation.alphabet[role], what[level - 1][part]] += count
            if level < hierarchy.depth:
                objects[level - 1] = {what[level - 1][part] for part in below}
            inside = below
        out.append((items, objects))
    return out


def groups(n: int, pairs: list[tuple[int, int]]) -> list[int]:
    """Connected components, numbered by their first members."""
    out = list(range(n))
    changed = True
    while changed:
        changed = False
        for i, j in pairs:
            least = min(out[i], out[j])
            changed |= out[i] != out[j]
            out[i] = out[j] = least
    numbers: dict[int, int] = {}
    return [numbers.setdefault(each, len(numbers)) for each in out]
