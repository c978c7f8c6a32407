"""`Relation` and `Hierarchy`: data as levels of parts of parts, each part with a role."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from saen._util.arrays import (
    Array,
    Ints,
    frozen,
    narrow,
    offsets,
    ranges,
    segment_ids,
    segment_reduce,
    smallest_unsigned,
)
from saen._util.lazy import sparse
from saen.data.collection import Collection, Positions, check_pointers, equal_columns
from saen.data.vocabulary import UNSEEN, Vocabulary
from saen.errors import InputError

MAX_SORTED_SHARE = 0.1
"""Of entries to the parts of a level: up to it, sorting them is faster than a mask of all parts."""


@dataclass(frozen=True, eq=False, repr=False)
class Attributes:
    """X, what is known about the objects of the bottom level.

    Categorical `codes` into a `vocabulary` (shape (n,), `UNSEEN` for a value it does not hold),
    real `vectors` (shape (n, p)), or both. A one-hot matrix is never stored; `matrix` builds the
    paper's X.
    """

    codes: NDArray[np.signedinteger[Any]] | None = None
    vocabulary: Vocabulary | None = None
    vectors: NDArray[np.floating[Any]] | None = None

    def __post_init__(self) -> None:
        if self.codes is None and self.vectors is None:
            raise InputError("bottom attributes need codes, vectors or both")
        if (self.codes is None) != (self.vocabulary is None):
            raise InputError("codes and a vocabulary go together")
        if self.codes is not None and self.vocabulary is not None:
            codes = frozen(self.codes)
            if codes.ndim != 1 or codes.dtype.kind != "i":
                raise InputError("codes must be a flat array of signed integers")
            lowest, highest = codes.min(initial=0), codes.max(initial=-1)
            if lowest < UNSEEN or highest >= len(self.vocabulary):
                raise InputError(
                    f"codes must lie between {UNSEEN} (unseen) and {len(self.vocabulary) - 1}, "
                    f"found {lowest if lowest < UNSEEN else highest}"
                )
            object.__setattr__(self, "codes", codes)
        if self.vectors is not None:
            vectors = frozen(self.vectors)
            if vectors.ndim != 2 or vectors.dtype not in (np.float32, np.float64):
                raise InputError("vectors must be float32 or float64 of shape (n, p)")
            if self.codes is not None and len(self.codes) != len(vectors):
                raise InputError(f"{len(self.codes)} codes, but {len(vectors)} vectors")
            if not np.isfinite(vectors).all():
                row = int(np.flatnonzero(~np.isfinite(vectors).all(axis=1))[0])
                raise InputError(f"the vector of bottom object {row} is not finite")
            object.__setattr__(self, "vectors", vectors)

    def __len__(self) -> int:
        column = self.codes if self.codes is not None else self.vectors
        return 0 if column is None else len(column)

    @property
    def kind(self) -> tuple[bool, int | None]:
        """Whether there are codes, and how wide the vectors are; only equal kinds concatenate."""
        return self.codes is not None, None if self.vectors is None else self.vectors.shape[1]

    @property
    def width(self) -> int:
        """p, the columns that `matrix` has: one per value of the vocabulary, one per number."""
        words = 0 if self.vocabulary is None else len(self.vocabulary)
        return words + (0 if self.vectors is None else self.vectors.shape[1])

    def take(self, rows: Any) -> Attributes:
        """The attributes of these objects."""
        return Attributes(
            None if self.codes is None else self.codes[rows],
            self.vocabulary,
            None if self.vectors is None else self.vectors[rows],
        )

    def recoded(self, vocabulary: Vocabulary) -> Attributes:
        """The same attributes over another vocabulary; values that it lacks become `UNSEEN`."""
        if self.codes is None or self.vocabulary is None or self.vocabulary == vocabulary:
            return self
        return Attributes(self.vocabulary.recode(vocabulary)[self.codes], vocabulary, self.vectors)

    def matrix(self) -> sparse.csr_array:
        """The paper's X, shape (n, p): one-hot codes (a zero row where unseen), then vectors."""
        blocks = []
        if self.codes is not None and self.vocabulary is not None:
            seen = np.flatnonzero(self.codes != UNSEEN)
            shape = (len(self), len(self.vocabulary))
            ones = np.ones(len(seen))
            blocks.append(sparse.csr_array((ones, (seen, self.codes[seen])), shape=shape))
        if self.vectors is not None:
            blocks.append(sparse.csr_array(self.vectors))
        return sparse.csr_array(sparse.hstack(blocks, format="csr"))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Attributes):
            return NotImplemented
        return (
            self.vocabulary == other.vocabulary
            and equal_columns(self.codes, other.codes)
            and equal_columns(self.vectors, other.vectors)
        )

    def __repr__(self) -> str:
        words = "" if self.vocabulary is None else f", {len(self.vocabulary)} labels"
        reals = "" if self.vectors is None else f", vectors of {self.vectors.shape[1]}"
        return f"Attributes({len(self):,} objects{words}{reals})"


@dataclass(frozen=True, eq=False, repr=False)
class Relation:
    """R_l = [R_{l,1} … R_{l,n(l)}]: which parts make up each object of a level, and as what.

    One CSR over the parents: the entries of parent s are `indptr[s] … indptr[s + 1] - 1`, and
    entry e says that part `parts[e]` of the level below belongs to s with role
    `alphabet[roles[e]]`, `counts[e]` times (once, where `counts` is None). The order of a parent's
    entries means nothing; parents may be empty.

    >>> pair = Relation([0, 2], parts=[4, 3], roles=[0, 1], alphabet=("root", "elem"), n_parts=5)
    >>> pair
    Relation(1 parents, 5 parts, 2 entries, roles: root, elem)
    >>> pair.matrix(1).toarray()  # R_{l,elem}
    array([[0, 0, 0, 1, 0]])
    """

    indptr: NDArray[np.integer[Any]]
    parts: NDArray[np.integer[Any]]
    roles: NDArray[np.integer[Any]]
    alphabet: tuple[str, ...]
    n_parts: int
    counts: NDArray[np.integer[Any]] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "alphabet", tuple(self.alphabet))
        object.__setattr__(self, "n_parts", int(self.n_parts))
        for key in ("indptr", "parts", "roles", "counts"):
            value = getattr(self, key)
            if value is None:
                continue
            array = frozen(value)
            if array.size == 0 and array.dtype.kind not in "iu":
                array = frozen(array.astype(np.int64))
            if array.ndim != 1 or array.dtype.kind not in "iu":
                raise InputError(f"{key} must be a flat array of integers")
            if array.dtype == np.uint64:  # no index in numpy 2.1
                array = frozen(array.astype(np.int64))
            object.__setattr__(self, key, array)
        if not self.alphabet or len(set(self.alphabet)) != len(self.alphabet):
            raise InputError(f"role names must be distinct and at least one: {self.alphabet}")
        if not all(isinstance(role, str) and role for role in self.alphabet):
            raise InputError(f"role names must be non-empty strings: {self.alphabet}")
        check_pointers("indptr", self.indptr)
        if not int(self.indptr[-1]) == len(self.parts) == len(self.roles):
            raise InputError(
                f"indptr ends at {self.indptr[-1]}, with {len(self.parts)} parts and "
                f"{len(self.roles)} roles"
            )
        if self.counts is not None and len(self.counts) != len(self.parts):
            raise InputError(f"{len(self.parts)} parts, but {len(self.counts)} counts")
        if len(self.parts):
            if self.parts.min() < 0 or self.parts.max() >= self.n_parts:
                raise InputError(f"parts must lie between 0 and {self.n_parts - 1}")
            if self.roles.min() < 0 or self.roles.max() >= len(self.alphabet):
                raise InputError(f"roles must lie between 0 and {len(self.alphabet) - 1}")
            if self.counts is not None and self.counts.min() < 1:
                raise InputError("counts must be at least 1")

    @property
    def n_parents(self) -> int:
        """|S_l|."""
        return len(self.indptr) - 1

    @property
    def n_entries(self) -> int:
        """Stored entries: distinct (parent, part, role) once a relation is canonical."""
        return len(self.parts)

    @property
    def n_roles(self) -> int:
        """n(l), the size of the alphabet."""
        return len(self.alphabet)

    @property
    def multiplicity(self) -> NDArray[np.int64]:
        """How often every entry counts, shape (entries,): `counts`, or ones.

        >>> Relation([0, 2], [4, 3], [0, 0], ("elem",), n_parts=5).multiplicity
        array([1, 1])
        """
        if self.counts is None:
            return np.ones(self.n_entries, dtype=np.int64)
        return self.counts.astype(np.int64, copy=False)

    def shared(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """A value per parent, shared equally by its parts: n·e_i / N_i, shape (entries,).

        >>> Relation([0, 2], [4, 3], [0, 0], ("elem",), n_parts=5).shared(np.array([3.0]))
        array([1.5, 1.5])
        """
        counts = self.multiplicity
        sizes = segment_reduce(np.add, counts, self.indptr)
        shares: NDArray[np.float64] = counts * (values / np.maximum(sizes, 1))[self.parents]
        return shares

    @property
    def parents(self) -> NDArray[np.int64]:
        """The parent of every entry, shape (entries,)."""
        return segment_ids(self.indptr)

    def matrix(self, role: int | str | None = None) -> sparse.csr_array:
        """R_{l,π} of one role, shape (n, m), or the concatenated R_l, shape (n, n(l) · m)."""
        rows, data = self.parents, self.multiplicity
        columns = self.parts.astype(np.int64)
        if role is None:
            columns = columns + self.roles.astype(np.int64) * self.n_parts
            shape = (self.n_parents, self.n_roles * self.n_parts)
            return sparse.csr_array((data, (rows, columns)), shape=shape)
        index = self.alphabet.index(role) if role in self.alphabet else role
        if index not in range(self.n_roles):
            raise InputError(f"no role {role!r}: choose from {', '.join(self.alphabet)}")
        own = self.roles == index
        shape = (self.n_parents, self.n_parts)
        return sparse.csr_array((data[own], (rows[own], columns[own])), shape=shape)

    def canonical(self) -> Relation:
        """Entries sorted by (role, part) within each parent, equal ones merged into counts."""
        matrix = self.matrix()
        matrix.sum_duplicates()
        roles, parts = np.divmod(matrix.indices.astype(np.int64), max(self.n_parts, 1))
        counts = None if (matrix.data == 1).all() else matrix.data
        return Relation(matrix.indptr, parts, roles, self.alphabet, self.n_parts, counts)

    def take(self, parents: Ints) -> Relation:
        """These parents, over the same parts."""
        starts = self.indptr[parents].astype(np.int64)
        lengths = self.indptr[np.asarray(parents) + 1].astype(np.int64) - starts
        entries = ranges(starts, lengths)
        return Relation(
            offsets(lengths),
            self.parts[entries],
            self.roles[entries],
            self.alphabet,
            self.n_parts,
            None if self.counts is None else self.counts[entries],
        )

    def parts_of(self, parents: Ints) -> Ints:
        """The distinct parts of some parents, ascending."""
        starts = self.indptr[parents].astype(np.int64)
        lengths = self.indptr[np.asarray(parents) + 1].astype(np.int64) - starts
        distinct: Ints = np.unique(self.parts[ranges(starts, lengths)])
        return distinct

    def span(self, start: int, stop: int) -> Relation:
        """The parents from `start` to `stop`, over the same parts: no copies.

        Parameters
        ----------
        start : int
            The first parent.
        stop : int
            The parent after the last.

        Examples
        --------
        >>> Relation([0, 1, 3], [4, 3, 2], [0, 0, 0], ("elem",), n_parts=5).span(1, 2).parts
        array([3, 2])
        """
        if (start, stop) == (0, self.n_parents):
            return self
        indptr = self.indptr[start : stop + 1]
        own = slice(int(indptr[0]), int(indptr[-1]))
        return replace(
            self,
            indptr=indptr - indptr[0],
            parts=self.parts[own],
            roles=self.roles[own],
            counts=None if self.counts is None else self.counts[own],
        )

    def over(self, alphabet: tuple[str, ...]) -> Relation:
        """The same parents over another alphabet; parts in roles that it lacks are left out."""
        if self.alphabet == alphabet:
            return self
        place = {role: number for number, role in enumerate(alphabet)}
        roles = np.array([place.get(role, -1) for role in self.alphabet])[self.roles]
        known = np.flatnonzero(roles >= 0)
        return Relation(
            offsets(np.bincount(self.parents[known], minlength=self.n_parents)),
            self.parts[known],
            roles[known],
            alphabet,
            self.n_parts,
            None if self.counts is None else self.counts[known],
        )

    def with_parts(self, parts: Ints, n_parts: int) -> Relation:
        """The same entries over other parts: `parts`, shape (entries,), out of `n_parts`.

        Parameters
        ----------
        parts : Ints
            The part of every entry, shape (entries,).
        n_parts : int
            The number of objects one level down.
        """
        return replace(self, parts=parts, n_parts=n_parts)

    def __eq__(self, other: object) -> bool:
        """Same parents over the same parts; the order of a parent's entries does not matter."""
        if not isinstance(other, Relation):
            return NotImplemented
        if (self.alphabet, self.n_parts) != (other.alphabet, other.n_parts):
            return False
        a, b = self.canonical(), other.canonical()
        return all(
            np.array_equal(getattr(a, key), getattr(b, key))
            for key in ("indptr", "parts", "roles", "multiplicity")
        )

    def __repr__(self) -> str:
        roles = ", ".join(self.alphabet[:6]) + (" …" if self.n_roles > 6 else "")
        return (
            f"Relation({self.n_parents:,} parents, {self.n_parts:,} parts, "
            f"{self.n_entries:,} entries, roles: {roles})"
        )


@dataclass(frozen=True, eq=False, repr=False)
class Hierarchy(Collection):
    """An H-decomposition ({S_l}, {R_{l,π}}, X): bottom attributes and one relation per level above.

    `relations[l - 1]` is R_l, whose parents are the objects of level l and whose parts are those of
    level l - 1. `names` says what the objects of each level are, bottom first. L = 1 is Haussler's
    R-convolution.

    Indexing gives the hierarchy of some objects of the top level, with everything below them.

    >>> words = Attributes(np.array([0, 1, 0]), Vocabulary(["dog", "the"]))
    >>> bag = Relation([0, 3], [0, 1, 2], [0, 0, 0], ("word",), n_parts=3)
    >>> Hierarchy(words, [bag], names=("words", "sentences"))
    Hierarchy(3 words → 1 sentences)
    >>> bags = Relation([0, 2, 3], [0, 1, 2], [0, 0, 0], ("word",), n_parts=3)
    >>> Hierarchy(words, [bags])[[1]].sizes
    (1, 1)
    """

    attributes: Attributes
    relations: tuple[Relation, ...]
    names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "relations", tuple(self.relations))
        if not self.relations:
            raise InputError("a hierarchy needs at least one relation")
        n_parts = len(self.attributes)
        for level, relation in enumerate(self.relations, start=1):
            if relation.n_parts != n_parts:
                raise InputError(
                    f"relation {level} has {relation.n_parts} parts, but level {level - 1} "
                    f"has {n_parts} objects"
                )
            n_parts = relation.n_parents
        names = tuple(self.names) or tuple(f"level {level}" for level in range(self.depth + 1))
        if len(names) != self.depth + 1:
            raise InputError(f"{self.depth + 1} levels, but {len(names)} names")
        object.__setattr__(self, "names", names)

    @property
    def depth(self) -> int:
        """L, the number of relations."""
        return len(self.relations)

    @property
    def sizes(self) -> tuple[int, ...]:
        """|S_0|, …, |S_L|."""
        return (len(self.attributes), *(relation.n_parents for relation in self.relations))

    def __len__(self) -> int:
        """Objects of the top level."""
        return self.sizes[-1]

    def _take(self, rows: Positions) -> Hierarchy:
        wanted: Ints = np.arange(rows.start, rows.stop) if isinstance(rows, slice) else rows
        relations: list[Relation] = []
        for relation in reversed(self.relations):
            taken = relation.take(wanted)
            wanted, numbers = _distinct(taken.parts, relation.n_parts)
            relations.append(taken.with_parts(numbers, len(wanted)))
        return Hierarchy(self.attributes.take(wanted), tuple(reversed(relations)), self.names)

    @staticmethod
    def concatenate(hierarchies: Iterable[Hierarchy]) -> Hierarchy:
        """All objects of all hierarchies, level by level, in order.

        Role alphabets and level names must agree; vocabularies are merged.
        """
        parts = list(hierarchies)
        attributes, relations = Hierarchy.concatenated_levels(parts)
        return Hierarchy(attributes, tuple(relations), parts[0].names)

    @staticmethod
    def concatenated_levels(
        parts: Sequence[Hierarchy],
    ) -> tuple[Attributes, Iterator[Relation]]:
        """What `concatenate` holds, one relation after another, bottom first."""
        if not parts:
            raise InputError("nothing to concatenate: the list of hierarchies is empty")
        first = parts[0]
        for other in parts[1:]:
            if other.names != first.names:
                raise InputError(f"levels differ: {first.names} and {other.names}")
            for level, (r, s) in enumerate(zip(first.relations, other.relations, strict=True), 1):
                if r.alphabet != s.alphabet:
                    raise InputError(f"roles of level {level} differ: {r.alphabet}, {s.alphabet}")
        attributes = _joined_attributes([part.attributes for part in parts])
        relations = (
            _joined_relations([part.relations[level] for part in parts])
            for level in range(first.depth)
        )
        return attributes, relations

    def levels(self) -> list[dict[str, Any]]:
        """Statistics per level, bottom first: name, objects, entries below, roles."""
        out: list[dict[str, Any]] = [
            {"level": 0, "name": self.names[0], "objects": self.sizes[0], "entries": 0, "roles": []}
        ]
        for level, relation in enumerate(self.relations, start=1):
            out.append(
                {
                    "level": level,
                    "name": self.names[level],
                    "objects": relation.n_parents,
                    "entries": relation.n_entries,
                    "roles": list(relation.alphabet),
                }
            )
        return out

    def __eq__(self, other: object) -> bool:
        """Whether all levels have the same objects in the same order.

        `saen.data.compression.equivalent` compares up to order.
        """
        if not isinstance(other, Hierarchy):
            return NotImplemented
        return all(getattr(self, f.name) == getattr(other, f.name) for f in fields(self))

    def __repr__(self) -> str:
        return f"Hierarchy({self.chain()})"

    def chain(self) -> str:
        """The levels in words, bottom first: `3 nodes → 1 graphs`."""
        return " → ".join(f"{n:,} {name}" for n, name in zip(self.sizes, self.names, strict=True))


def _distinct(parts: Ints, n_parts: int) -> tuple[Ints, Ints]:
    """The distinct ones of some parts in ascending order, and the position of each among them."""
    if len(parts) < n_parts * MAX_SORTED_SHARE:  # nothing as long as the whole level
        distinct, numbers = np.unique(parts, return_inverse=True)
        return distinct.astype(np.int64), numbers
    used = np.zeros(n_parts, dtype=np.bool_)
    used[parts] = True
    return np.flatnonzero(used), (np.cumsum(used) - 1)[parts]


def _joined_attributes(parts: Sequence[Attributes]) -> Attributes:
    if len({part.kind for part in parts}) > 1:
        raise InputError("bottom attributes differ in kind (codes, vectors, or their width)")
    vocabulary = parts[0].vocabulary
    codes = vectors = None
    if vocabulary is not None:
        for part in parts[1:]:
            assert part.vocabulary is not None
            vocabulary = vocabulary.union(part.vocabulary)
        codes = np.concatenate([part.recoded(vocabulary).codes for part in parts])
    if parts[0].vectors is not None:
        vectors = np.concatenate([part.vectors for part in parts])
    return Attributes(codes, vocabulary, vectors)


def _joined_relations(parts: Sequence[Relation]) -> Relation:
    below = offsets(np.array([part.n_parts for part in parts]))
    part, role = smallest_unsigned(below[-1]), smallest_unsigned(parts[0].n_roles - 1)
    counts: Array | None = None
    if any(part.counts is not None for part in parts):
        counts = np.concatenate(
            [
                np.ones(p.n_entries, np.uint8) if p.counts is None else narrow(p.counts)
                for p in parts
            ]
        )
    return Relation(
        offsets(np.concatenate([np.diff(part.indptr) for part in parts])),
        np.concatenate(
            [p.parts.astype(part) + part.type(b) for p, b in zip(parts, below[:-1], strict=True)]
        ),
        # One type for all: numpy joins signed and unsigned 64-bit integers as floats.
        np.concatenate([p.roles.astype(role, copy=False) for p in parts]),
        parts[0].alphabet,
        int(below[-1]),
        counts,
    )
