"""Nested Python structures: random ones, and what they are, by plain recursion."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st

from saen import Attributes, Hierarchy, Relation, Vocabulary

LABELS = [0, 1, "1", "C", "", "π", (1, "1"), (1, 1), ("C",), (1, ("C", 0)), ()]
ROLES = ["x", "y", "ρ"]
NAMES = ("labels", "parts", "parents", "groups")

Item = list[tuple[str, Any]]


@st.composite
def items(draw: st.DrawFn, depth: int) -> Item:
    """A structure whose labels lie `depth` levels down, as lists of pairs.

    Parts are drawn from a few and their reversals, so that equal ones abound.
    """
    part = st.sampled_from(LABELS)
    if depth > 1:
        few = draw(st.lists(items(depth - 1), min_size=1, max_size=2))
        part = st.sampled_from(few + [item[::-1] for item in few])
    return draw(st.lists(st.tuples(st.sampled_from(ROLES), part), max_size=5))


@st.composite
def collections(draw: st.DrawFn, min_size: int = 0) -> tuple[list[Item], tuple[str, ...]]:
    """NestedData of one depth, and names of their levels."""
    depth = draw(st.integers(1, 3))
    return draw(st.lists(items(depth), min_size=min_size, max_size=4)), NAMES[: depth + 1]


def written(item: Item, form: Callable[[int], int], depth: int) -> Any:
    """The same structure as lists, mappings and generators, as `form` chooses for every parent."""
    pairs = [(role, part if depth == 1 else written(part, form, depth - 1)) for role, part in item]
    chosen = form(3)
    if chosen == 0:
        return pairs
    if chosen == 1:
        return (pair for pair in pairs)
    mapping: dict[str, Any] = {}
    for role, part in pairs:
        mapping.setdefault(role, []).append(part)
    return mapping if form(2) else {role: iter(parts) for role, parts in mapping.items()}


def shuffled(item: Item, order: Callable[[int], Sequence[int]], depth: int) -> Item:
    """The same structure with the parts of every parent in another order."""
    pairs = [
        (role, part if depth == 1 else shuffled(part, order, depth - 1)) for role, part in item
    ]
    return [pairs[place] for place in order(len(pairs))]


def content(item: Item, depth: int) -> Hashable:
    """What a parent is: the multiset of its (role, part)."""
    parts: Counter[Hashable] = Counter()
    for role, part in item:
        # Labels with their types: 1 is not "1", and a label is never a parent.
        parts[role, ("label", repr(part)) if depth == 1 else content(part, depth - 1)] += 1
    return frozenset(parts.items())


def of_mapping(mapping: dict[str, Any], depth: int) -> Item:
    """A structure of mappings as lists of pairs."""
    return [
        (role, part if depth == 1 else of_mapping(part, depth - 1))
        for role, parts in mapping.items()
        for part in parts
    ]


def parents_within(item: Item, depth: int, level: int) -> Iterator[Item]:
    """All parents of a level inside a structure, itself included."""
    if depth == level:
        yield item
    elif depth > 1:
        for _, part in item:
            yield from parents_within(part, depth - 1, level)


def labels_within(item: Item, depth: int) -> Iterator[Any]:
    """All labels of a structure."""
    for parent in parents_within(item, depth, 1):
        for _, label in parent:
            yield label


def roles_within(structures: list[Item], depth: int, level: int) -> list[str]:
    """The roles that parts of the parents of a level have."""
    found = {
        role for item in structures for parent in parents_within(item, depth, level)
        for role, _ in parent
    }  # fmt: skip
    return sorted(found)


def restricted(item: Item, roles: Sequence[Sequence[str]], depth: int) -> Item:
    """Without parts in other roles than those of their level (`roles[0]` are those of level 1)."""
    return [
        (role, part if depth == 1 else restricted(part, roles, depth - 1))
        for role, part in item
        if role in roles[depth - 1]
    ]


def naive(
    structures: list[Item],
    names: tuple[str, ...],
    roles: Sequence[Sequence[str]] | None = None,
    vocabulary: Vocabulary | None = None,
) -> Hierarchy:
    """The hierarchy in which every part is an object of its own, level by level from the top."""
    depth = len(names) - 1
    if roles is None:
        roles = [roles_within(structures, depth, level) for level in range(1, depth + 1)]
    level, relations = [restricted(item, roles, depth) for item in structures], []
    for below in range(depth - 1, -1, -1):
        alphabet = tuple(roles[below]) or ("part",)
        entries = [(alphabet.index(role), part) for item in level for role, part in item]
        relations.append(
            Relation(
                np.cumsum([0, *map(len, level)]),
                np.arange(len(entries)),
                np.array([role for role, _ in entries], dtype=np.int64),
                alphabet,
                len(entries),
            )
        )
        level = [part for _, part in entries]
    known = Vocabulary(level) if vocabulary is None else vocabulary
    return Hierarchy(Attributes(known.codes(level), known), tuple(relations[::-1]), names)
