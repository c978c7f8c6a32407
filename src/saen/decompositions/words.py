"""Objects of a hierarchy in words: what explanations say, and what columns of counts are called."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Any

import numpy as np

from saen._util.arrays import Ints
from saen._util.strings import short_label, some_of
from saen.data.hierarchy import Hierarchy
from saen.data.nested import NUMBER
from saen.data.vocabulary import UNSEEN

MAX_DESCRIPTION = 100  # characters
MAX_LABELS = 6  # different ones that are listed


def label_words(
    hierarchy: Hierarchy, describe_label: Callable[[Any], Any], numbers: Ints
) -> list[str]:
    """The labels of bottom objects."""
    attributes = hierarchy.attributes
    vectors = None if attributes.vectors is None else attributes.vectors[numbers]
    if attributes.codes is None or attributes.vocabulary is None:
        assert vectors is not None
        rows = vectors[:, :4].tolist()
        return [f"({', '.join(f'{value:.3g}' for value in row)})" for row in rows]

    def word(code: int) -> str:
        label = "unseen" if code == UNSEEN else describe_label(vocabulary[code])
        text = " · ".join(map(str, label)) if isinstance(label, tuple) else label
        return short_label(text, 40)

    vocabulary, codes = attributes.vocabulary, attributes.codes[numbers].tolist()
    words = {code: word(code) for code in set(codes)}
    return [
        f"{vectors[i, 0]:.4g}"
        if vectors is not None and code != UNSEEN and vocabulary[code] == NUMBER
        else words[code]
        for i, code in enumerate(codes)
    ]


def object_words(
    hierarchy: Hierarchy, level: int, numbers: Ints, describe_label: Callable[[Any], Any]
) -> list[str]:
    """The labels that objects are made of: by role on level 1, above in the order of the bottom."""
    if level == 0:
        return label_words(hierarchy, describe_label, numbers)
    if level > 1:
        below: list[str] = []
        for number in numbers.tolist():
            objects = np.array([number])
            for relation in reversed(hierarchy.relations[:level]):
                objects = relation.parts_of(objects)
            labels = label_words(hierarchy, describe_label, objects)
            below.append(counted((label, 1) for label in labels))
        return [short_label(text, MAX_DESCRIPTION) for text in below]
    own = hierarchy.relations[0].take(numbers).canonical()
    labels = label_words(hierarchy, describe_label, own.parts.astype(np.int64))
    entries = list(zip(own.roles.tolist(), labels, own.multiplicity.tolist(), strict=True))
    return [
        short_label(by_role(own.alphabet, entries[start:stop]), MAX_DESCRIPTION)
        for start, stop in pairwise(own.indptr.tolist())
    ]


def by_role(alphabet: tuple[str, ...], entries: list[tuple[int, str, int]]) -> str:
    """The labels in every role.

    >>> by_role(("root", "elem"), [(0, "C", 1), (1, "C", 2), (1, "O", 1)])
    'C next to C ×2, O'
    """
    listed: dict[str, list[tuple[str, int]]] = {}
    for role, label, n in entries:
        listed.setdefault(alphabet[role], []).append((label, n))
    if ROOT not in listed:
        return "; ".join(f"{role} {counted(labels)}" for role, labels in listed.items())
    around = [
        (f"{role.removeprefix(NEIGHBOUR).strip()} {label}".strip(), n)
        for role, labels in listed.items()
        for label, n in labels
        if role != ROOT
    ]
    return around_words(counted(listed[ROOT]), [counted(around)] if around else [])


ROOT, NEIGHBOUR = "root", "elem"
"""The role of the node at the centre, and what those of its neighbours begin with."""


def around_words(centre: str, rings: list[str]) -> str:
    """A node and what lies one step, two steps, … from it.

    >>> around_words("C", ["C ×2, O", "N"]), around_words("C", [""]), around_words("C", [])
    ('C next to C ×2, O; 2 steps: N', 'C alone', 'C')
    """
    if not rings:
        return centre
    further = [f"; {n} steps: {ring}" for n, ring in enumerate(rings[1:], 2) if ring]
    return centre + (f" next to {rings[0]}" if rings[0] else " alone") + "".join(further)


def counted(labels: Iterable[tuple[str, int]]) -> str:
    """Labels with how many there are of each, in their order.

    >>> counted([("C", 1), ("O", 1), ("C", 2)])
    'C ×3, O'
    """
    counts: dict[str, int] = {}
    for label, n in labels:
        counts[label] = counts.get(label, 0) + n
    return some_of([f"{label} ×{n}" if n > 1 else label for label, n in counts.items()], MAX_LABELS)
