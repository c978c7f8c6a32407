"""Nested data, which already consist of parts of parts, as they are."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from saen.data.hierarchy import Attributes, Hierarchy, Relation
from saen.data.nested import NO_ROLE, NUMBER, NestedData, level_names
from saen.data.vocabulary import Vocabulary
from saen.decompositions.base import FITTED, Decomposition
from saen.errors import InputError


@dataclass(frozen=True)
class Nested(Decomposition):
    """Parts of parts as `NestedData` state them, with as many levels as they have.

    `levels` names the levels, bottom first; without it they have the names of the data. The roles
    of every level are ordered by name; once fitted, parts in other roles are left out, with
    everything that only they consist of. Numbers at the bottom are real attributes.

    Within an example, equal parts are one object with a count.

    >>> pairs = [("word", "the"), ("word", "dog"), ("word", "the")]
    >>> nested = Nested(levels=("words", "sentences"))
    >>> hierarchy = nested.decompose(NestedData([pairs]))
    >>> hierarchy
    Hierarchy(2 words → 1 sentences)
    >>> hierarchy.attributes.vocabulary, hierarchy.relations[0].matrix("word").toarray()
    (Vocabulary('dog', 'the'), array([[2, 1]]))
    """

    name: ClassVar[str] = "nested"
    takes: ClassVar[str] = "nested"

    levels: tuple[str, ...] = field(
        default=(),
        metadata={"help": "names of the levels, bottom first, instead of those of the data"},
    )
    roles: Vocabulary | None = field(default=None, kw_only=True, metadata=FITTED)

    def __post_init__(self) -> None:
        object.__setattr__(self, "levels", level_names(self.levels))

    def resolved(self, data: NestedData) -> Nested:
        """A copy with the levels and roles of these data."""
        hierarchy = super().resolved(data).decompose(data)
        used = [
            (level, role)
            for level, relation in enumerate(hierarchy.relations, start=1)
            for role in _used_roles(relation)
        ]
        return replace(self, levels=hierarchy.names, vocabulary=None, roles=Vocabulary(used))

    def bottom_vocabulary(self, data: NestedData) -> Vocabulary:
        """The labels of the bottom objects."""
        return _used_labels(data.hierarchy.attributes)

    def decompose(self, data: NestedData) -> Hierarchy:
        """The hierarchy of these data; once fitted, other labels are unseen."""
        if not isinstance(data, NestedData):
            raise InputError(
                f"nested takes saen.NestedData, not {type(data).__name__}: "
                "convert a list with saen.NestedData(list)"
            )
        names = self.levels or data.levels
        relations = _deepened(data.hierarchy, len(names) - 1)
        if len(relations) != len(names) - 1:
            raise InputError(
                f"the data have {data.hierarchy.depth + 1} levels, but there are {len(names)} "
                f"names: {', '.join(names)}"
            )
        attributes = data.hierarchy.attributes
        known = _used_labels(attributes) if self.vocabulary is None else self.vocabulary
        recoded = [
            relation.over(self._alphabet(level, relation))
            for level, relation in enumerate(relations, start=1)
        ]
        hierarchy = Hierarchy(_with_numbers(attributes.recoded(known)), tuple(recoded), names)
        return hierarchy if self.roles is None else hierarchy[:]

    def costs(self, data: NestedData) -> NDArray[np.int64]:
        """Entries of all relations per example, shape (n,)."""
        total = np.diff(data.starts[0])
        for relation, starts in zip(data.hierarchy.relations, data.starts[1:], strict=True):
            total = total + np.diff(relation.indptr[starts])
        return total.astype(np.int64)

    def _alphabet(self, level: int, relation: Relation) -> tuple[str, ...]:
        if self.roles is None:
            return _used_roles(relation) or (NO_ROLE,)
        known: list[tuple[int, str]] = list(self.roles)  # type: ignore[arg-type]
        return tuple(role for at, role in known if at == level) or (NO_ROLE,)


def _deepened(hierarchy: Hierarchy, depth: int) -> tuple[Relation, ...]:
    """The relations; data without any labels may have fewer levels than declared."""
    missing = 0 if len(hierarchy.attributes) else max(depth - hierarchy.depth, 0)
    none = np.zeros(0, dtype=np.int64)
    empty = Relation(np.zeros(1, dtype=np.int64), none, none, (NO_ROLE,), 0)
    return (*[empty] * missing, *hierarchy.relations)


def _with_numbers(attributes: Attributes) -> Attributes:
    """With vectors if, and only if, the vocabulary knows numbers."""
    vectors = attributes.vectors
    if NUMBER not in (attributes.vocabulary or ()):
        vectors = None
    elif vectors is None:
        vectors = np.zeros((len(attributes), 1))
    return replace(attributes, vectors=vectors)


def _used_labels(attributes: Attributes) -> Vocabulary:
    assert attributes.codes is not None
    assert attributes.vocabulary is not None
    return Vocabulary(attributes.vocabulary[code] for code in np.unique(attributes.codes).tolist())


def _used_roles(relation: Relation) -> tuple[str, ...]:
    return tuple(relation.alphabet[role] for role in np.unique(relation.roles).tolist())
