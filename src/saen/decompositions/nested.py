"""NestedData that already are parts of parts, taken as they are."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from saen._util.arrays import offsets, segment_ids
from saen.data.hierarchy import Attributes, Hierarchy, Relation
from saen.data.nested import NO_ROLE, NestedData, level_names
from saen.data.vocabulary import Vocabulary
from saen.decompositions.base import FITTED, Decomposition
from saen.errors import InputError


@dataclass(frozen=True)
class Nested(Decomposition):
    """Parts of parts as `NestedData` state them, with as many levels as they have.

    `levels` names the levels, bottom first; without it they are called as the structures call
    them. The roles of every level stand in the order of their names; once fitted, parts in other
    roles are left out, with all that only they are made of.

    Within a structure, equal parts are one object with a count: objects of the lower levels are
    what a structure is made of, not how often.

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
        default=(), metadata={"help": "names of the levels, bottom first, if not the structures'"}
    )
    roles: Vocabulary | None = field(default=None, kw_only=True, metadata=FITTED)

    def __post_init__(self) -> None:
        object.__setattr__(self, "levels", level_names(self.levels))

    def fit(self, structures: NestedData) -> Nested:
        """A copy that knows the levels, labels and roles of these structures."""
        made = replace(self, vocabulary=None, roles=None).decompose(structures)
        used = [
            (level, role)
            for level, relation in enumerate(made.relations, start=1)
            for role in _used_roles(relation)
        ]
        vocabulary = made.attributes.vocabulary
        return replace(self, levels=made.names, vocabulary=vocabulary, roles=Vocabulary(used))

    def decompose(self, structures: NestedData) -> Hierarchy:
        """The hierarchy of these structures; once fitted, other labels are unseen."""
        if not isinstance(structures, NestedData):
            raise InputError(
                f"nested takes saen.NestedData, not {type(structures).__name__}: "
                "state a list as saen.NestedData(list)"
            )
        given = structures.hierarchy
        names = self.levels or given.names
        relations = _deepened(given, len(names) - 1)
        if len(relations) != len(names) - 1:
            raise InputError(
                f"structures of {given.depth + 1} levels, but {len(names)} names: "
                f"{', '.join(names)}"
            )
        known = self.vocabulary
        attributes = given.attributes.recoded(
            known if known is not None else _used_labels(given.attributes)
        )
        made = [
            _over(relation, self._alphabet(level, relation))
            for level, relation in enumerate(relations, start=1)
        ]
        hierarchy = Hierarchy(attributes, tuple(made), names)
        return hierarchy if self.roles is None else hierarchy[np.arange(len(hierarchy))]

    def costs(self, structures: NestedData) -> NDArray[np.int64]:
        """Entries of all relations per structure, shape (n,)."""
        total = np.diff(structures.starts[0])
        for relation, starts in zip(
            structures.hierarchy.relations, structures.starts[1:], strict=True
        ):
            total = total + np.diff(relation.indptr[starts])
        return total.astype(np.int64)

    def _alphabet(self, level: int, relation: Relation) -> tuple[str, ...]:
        if self.roles is None:
            return _used_roles(relation) or (NO_ROLE,)
        known: list[tuple[int, str]] = list(self.roles)  # type: ignore[arg-type]
        return tuple(role for at, role in known if at == level) or (NO_ROLE,)


def _deepened(hierarchy: Hierarchy, depth: int) -> tuple[Relation, ...]:
    """The relations; structures without any label may lie above levels that they do not reach."""
    missing = 0 if len(hierarchy.attributes) else max(depth - hierarchy.depth, 0)
    none = np.zeros(0, dtype=np.int64)
    empty = Relation(np.zeros(1, dtype=np.int64), none, none, (NO_ROLE,), 0)
    return (*[empty] * missing, *hierarchy.relations)


def _used_labels(attributes: Attributes) -> Vocabulary:
    assert attributes.codes is not None
    assert attributes.vocabulary is not None
    return Vocabulary(attributes.vocabulary[code] for code in np.unique(attributes.codes).tolist())


def _used_roles(relation: Relation) -> tuple[str, ...]:
    return tuple(relation.alphabet[role] for role in np.unique(relation.roles).tolist())


def _over(relation: Relation, alphabet: tuple[str, ...]) -> Relation:
    """The same parents over another alphabet; parts in roles that it lacks are left out."""
    if relation.alphabet == alphabet:
        return relation
    place = {role: number for number, role in enumerate(alphabet)}
    roles = np.array([place.get(role, -1) for role in relation.alphabet])[relation.roles]
    kept = np.flatnonzero(roles >= 0)
    rows = segment_ids(relation.indptr)[kept]
    return Relation(
        offsets(np.bincount(rows, minlength=relation.n_parents)),
        relation.parts[kept],
        roles[kept],
        alphabet,
        relation.n_parts,
        None if relation.counts is None else relation.counts[kept],
    )
