"""`NestedData`: examples made of parts of parts, stated as plain Python."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from reprlib import repr as short
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from saen._util.arrays import Array, frozen, offsets, ranges
from saen._util.strings import plural
from saen.data.collection import (
    Dataset,
    Positions,
    check_pointers,
    checked_ids,
    checked_targets,
    concatenated,
    equal_columns,
)
from saen.data.content_hash import level_keys
from saen.data.hierarchy import Attributes, Hierarchy, Relation
from saen.data.vocabulary import Value, Vocabulary, as_value
from saen.errors import InputError

NO_ROLE = "part"
"""Stands in the alphabet of a level whose parents are all empty."""
NUMBER: Value = ("number",)
"""The label of bottom objects that are numbers, whose values are vectors of width 1."""


@dataclass(frozen=True, eq=False, repr=False, init=False)
class NestedData(Dataset):
    """An immutable collection of examples, each made of parts of parts, down to labels.

    An example is stated by its parts: a list or a generator of `(role, part)` pairs, or a mapping
    from roles to lists of parts. A part again has parts, or, on the bottom level, is a label: an
    integer, a string, or a tuple of these (a tuple is always a label), or a real number: 3 is a
    label, 3.0 is a number. Roles are strings. All labels of a collection lie equally deep. The
    order of parts means nothing; there may be none.

    Everything is read once, so generators will do, into flat arrays in which parts that one
    example repeats are stored once. `levels` names the levels, bottom first, and thereby says how
    deep labels lie; `targets` holds classes (n,) or real values (n,) or (n, k); `ids` (n,),
    integers or strings, name the examples in outputs (by default 0 … n - 1).

    >>> def sentence(text):
    ...     for word in text.split():
    ...         yield "word", word
    >>> def note(text):
    ...     for line in text.split(". "):
    ...         yield "sentence", sentence(line)
    >>> notes = ["the dog barks. the dog sleeps", "the cat sleeps"]
    >>> pets = NestedData(map(note, notes), ["dog", "cat"], levels=("words", "sentences", "notes"))
    >>> pets
    NestedData(7 words → 3 sentences → 2 notes; 2 classes)
    >>> pets[1].to_mappings()
    [{'sentence': [{'word': ['the', 'cat', 'sleeps']}]}]

    Raises `InputError`, which names the place, for anything else.
    """

    hierarchy: Hierarchy
    """The examples on top; parts that one of them repeats stand there once, with their count."""
    starts: tuple[NDArray[np.int64], ...]
    """For every level, bottom first, the first object of every example, and the total."""
    targets: Array | None
    name: str
    ids: Array
    extra: Mapping[str, Array] | None = None
    target_names: tuple[str, ...] = ()
    feature_names: tuple[str, ...] = ()

    def __init__(
        self,
        items: Iterable[Any],
        targets: ArrayLike | None = None,
        *,
        levels: Sequence[str] = (),
        name: str = "",
        ids: ArrayLike | None = None,
    ) -> None:
        names = level_names(levels)
        reader = _Reader(len(names) - 1 if names else None)
        for number, item in enumerate(items):
            try:
                reader.read(item)
            except _MisfitError as misfit:
                place = ", ".join([f"example {number}", *misfit.path])
                raise InputError(f"{place}: {misfit.trouble}") from None
        hierarchy, starts = reader.finish(names)
        if not names:
            hierarchy = replace(hierarchy, names=(*hierarchy.names[:-1], "examples"))
        n = len(hierarchy)
        self.__setstate__(
            {
                "hierarchy": hierarchy,
                "starts": tuple(map(frozen, starts)),
                "targets": checked_targets(targets, n),
                "name": name,
                "ids": checked_ids(ids, n),
            }
        )

    @classmethod
    def from_hierarchy(
        cls,
        hierarchy: Hierarchy,
        starts: Sequence[ArrayLike],
        targets: ArrayLike | None = None,
        *,
        name: str = "",
        ids: ArrayLike | None = None,
    ) -> NestedData:
        """Build from the fields `hierarchy` and `starts` of other nested data.

        Parameters
        ----------
        hierarchy : Hierarchy
            The field `hierarchy` of other nested data.
        starts : Sequence[ArrayLike]
            The field `starts` of other nested data.
        targets : ArrayLike | None, default=None
            One target per example, or several.
        name : str, default=''
            The name of the dataset.
        ids : ArrayLike | None, default=None
            One id per example. None: their positions.

        Raises
        ------
        InputError
            Unless the objects of every example lie side by side on every level.
        """
        n = len(hierarchy)
        pointers = tuple(np.asarray(each).astype(np.int64) for each in starts)
        for each in pointers:
            check_pointers("starts", each)
        ends = [int(each[-1]) for each in pointers]
        if ends != list(hierarchy.sizes) or any(len(each) != n + 1 for each in pointers):
            raise InputError("starts do not fit the hierarchy")
        for relation, below, above in zip(
            hierarchy.relations, pointers, pointers[1:], strict=False
        ):
            owner = np.repeat(np.arange(n), np.diff(relation.indptr[above]))
            if not np.array_equal(np.searchsorted(below, relation.parts, "right") - 1, owner):
                raise InputError("an example has parts of another")
        return cls._unchecked(
            hierarchy=hierarchy,
            starts=tuple(map(frozen, pointers)),
            targets=checked_targets(targets, n),
            name=name,
            ids=checked_ids(ids, n),
        )

    @staticmethod
    def concatenate(collections: Iterable[NestedData]) -> NestedData:
        """One collection of all examples, in order; roles of all, by name.

        >>> one, other = NestedData([{"a": [1]}]), NestedData([{"b": [2.5]}])
        >>> NestedData.concatenate([one, other]).to_mappings()
        [{'a': [1]}, {'b': [2.5]}]
        """
        parts = list(collections)
        shared = concatenated(parts)
        hierarchies = [part.hierarchy for part in parts]
        if len({hierarchy.names for hierarchy in hierarchies}) > 1:
            raise InputError("levels differ: " + " and ".join(map(repr, parts[:2])))
        alphabets = [
            tuple(sorted({role for each in level for role in each.alphabet}))
            for level in zip(*(hierarchy.relations for hierarchy in hierarchies), strict=True)
        ]
        numbers = any(hierarchy.attributes.vectors is not None for hierarchy in hierarchies)
        return NestedData._unchecked(
            **shared,
            hierarchy=Hierarchy.concatenate(
                replace(
                    hierarchy,
                    attributes=_with_vectors(hierarchy.attributes, numbers),
                    relations=tuple(map(Relation.over, hierarchy.relations, alphabets)),
                )
                for hierarchy in hierarchies
            ),
            starts=tuple(
                frozen(offsets(np.concatenate([np.diff(each) for each in level])))
                for level in zip(*(part.starts for part in parts), strict=True)
            ),
        )

    # -- what it is --------------------------------------------------------------------------

    @property
    def levels(self) -> tuple[str, ...]:
        """The names of the levels, bottom first."""
        return self.hierarchy.names

    def __len__(self) -> int:
        return len(self.hierarchy)

    def to_mappings(self) -> list[dict[str, list[Any]]]:
        """Every example as a mapping from roles to lists of parts, down to labels.

        >>> NestedData([[("b", 2), ("a", 7), ("b", 2)]]).to_mappings()
        [{'a': [7], 'b': [2, 2]}]
        """
        attributes = self.hierarchy.attributes
        assert attributes.codes is not None
        assert attributes.vocabulary is not None
        below: list[Any] = [attributes.vocabulary[code] for code in attributes.codes.tolist()]
        if attributes.vectors is not None:
            numbers = attributes.vectors[:, 0].tolist()
            below = [n if v == NUMBER else v for v, n in zip(below, numbers, strict=True)]
        for relation in self.hierarchy.relations:
            parents: list[Any] = [{} for _ in range(relation.n_parents)]
            columns = relation.roles, relation.parts, relation.multiplicity
            entries = zip(relation.parents.tolist(), *(c.tolist() for c in columns), strict=True)
            for row, role, part, count in entries:
                same = parents[row].setdefault(relation.alphabet[role], [])
                same.extend([below[part]] * count)
            below = parents
        return below

    def __eq__(self, other: object) -> bool:
        """The same examples in the same order with equal targets, whatever the order of parts."""
        if not isinstance(other, NestedData):
            return NotImplemented
        return (
            equal_columns(self.targets, other.targets)
            and self.levels == other.levels
            and np.array_equal(level_keys(self.hierarchy)[-1], level_keys(other.hierarchy)[-1])
        )

    def __repr__(self) -> str:
        return self._described(self.hierarchy.chain())

    def _take(self, rows: Positions) -> NestedData:
        # The objects of one example lie side by side on every level.
        first = [old[:-1][rows] for old in self.starts]
        starts = [offsets(np.diff(old)[rows]) for old in self.starts]
        objects = [ranges(f, np.diff(s)) for f, s in zip(first, starts, strict=True)]
        relations = []
        for level, relation in enumerate(self.hierarchy.relations):
            taken = relation.take(objects[level + 1])
            shift = np.repeat(
                starts[level][:-1] - first[level], np.diff(taken.indptr[starts[level + 1]])
            )
            relations.append(taken.with_parts(taken.parts + shift, int(starts[level][-1])))
        attributes = self.hierarchy.attributes.take(objects[0])
        return self._with(
            hierarchy=Hierarchy(attributes, tuple(relations), self.levels),
            starts=tuple(map(frozen, starts)),
            **self._per_example(rows),
        )


def _with_vectors(attributes: Attributes, numbers: bool) -> Attributes:
    if not numbers or attributes.vectors is not None:
        return attributes
    return replace(attributes, vectors=np.zeros((len(attributes), 1)))


def level_names(levels: Sequence[str]) -> tuple[str, ...]:
    """Names of levels, checked: none, or at least two, different from one another."""
    listed = isinstance(levels, Sequence) and not isinstance(levels, str)
    if not listed or not all(isinstance(name, str) and name for name in levels):
        raise InputError(f"levels must be names, bottom first, not {levels!r}")
    if len(levels) == 1 or len({*levels}) < len(levels):
        raise InputError(f"levels must be two or more different names, not {levels!r}")
    return tuple(levels)


# -- reading -----------------------------------------------------------------------------------


class _MisfitError(Exception):
    """A part that is not valid, and the path to it from the top."""

    def __init__(self, trouble: str, *path: str) -> None:
        super().__init__(trouble)
        self.trouble = trouble
        self.path = [*path]


@dataclass
class _Level:
    """The parents of one level so far, and those of the current example by content."""

    roles: dict[str, int] = field(default_factory=dict)
    lengths: array[int] = field(default_factory=lambda: array("q"))
    entries: array[int] = field(default_factory=lambda: array("q"))  # role, part, role, part, …
    ends: array[int] = field(default_factory=lambda: array("q"))
    known: dict[tuple[tuple[int, int], ...], int] = field(default_factory=dict)

    def number(self, parts: list[tuple[int, int]]) -> int:
        """The parent of these (role, part) pairs, added unless the current example has it."""
        parts.sort()
        content = tuple(parts)
        number = self.known.get(content)
        if number is None:
            number = self.known[content] = len(self.lengths)
            self.lengths.append(len(parts))
            for part in parts:
                self.entries.extend(part)
        return number

    def relation(self, n_parts: int) -> Relation:
        """The parents with their roles sorted by name, and equal parts counted."""
        alphabet = tuple(sorted(self.roles)) or (NO_ROLE,)
        place = np.argsort([self.roles[role] for role in alphabet if role in self.roles])
        roles, parts = np.array(self.entries, dtype=np.int64).reshape(-1, 2).T
        indptr = offsets(np.array(self.lengths, dtype=np.int64))
        return Relation(indptr, parts, place[roles], alphabet, n_parts).canonical()


class _Reader:
    """Examples as flat arrays, read one after another.

    `bottom` is how many levels below the top the labels lie, once that is known. Levels are counted
    from the top here: the depth may become known late, when the first parents are all empty.
    """

    def __init__(self, bottom: int | None) -> None:
        self.bottom = bottom
        self.levels: list[_Level] = []
        self.codes: dict[Value, int] = {}  # of all labels, in the order of their first appearance
        self.labels = array("q")  # the code of every bottom object
        self.numbers = array("d")  # its value, 0 for a label
        self.known: dict[Any, int] = {}  # the bottom objects of the current example
        self.ends = array("q")

    def read(self, example: Any) -> None:
        """Add an example; `_MisfitError` for anything else."""
        self.known.clear()
        for level in self.levels:
            level.known.clear()
        if not _has_parts(example):
            raise _MisfitError(f"expected parts, found {short(example)}")
        try:
            self._parent(example, 0)
        except RecursionError:
            raise _MisfitError("nested too deeply") from None
        self.ends.append(len(self.labels))
        for level in self.levels:
            level.ends.append(len(level.lengths))

    def _parent(self, parent: Any, depth: int) -> int:
        """The number of the object, on its level, that these parts make."""
        if depth == self.bottom:
            raise _MisfitError(f"expected a label, found parts {self._labels_lie()}")
        if depth == len(self.levels):
            self.levels.append(_Level())
        level = self.levels[depth]
        parts: list[tuple[int, int]] = []
        for pair in _pairs(parent):
            if not isinstance(pair, tuple | list) or len(pair) != 2:
                trouble = f"expected a (role, part) pair, found {short(pair)}"
                raise _MisfitError(trouble, f"part {len(parts)}")
            role, part = pair
            if not isinstance(role, str) or not role:
                trouble = f"a role is a non-empty string, found {short(role)}"
                raise _MisfitError(trouble, f"part {len(parts)}")
            code = level.roles.setdefault(role, len(level.roles))
            try:
                below = self._parent if _has_parts(part) else self._label
                parts.append((code, below(part, depth + 1)))
            except _MisfitError as misfit:
                place = sum(other == code for other, _ in parts)
                misfit.path.insert(0, f"part {place} of role {role!r}")
                raise
        return level.number(parts)

    def _label(self, value: Any, depth: int) -> int:
        """The number of the bottom object with this label."""
        number = 0.0
        content = value
        if isinstance(value, float | np.floating):
            number, value = float(value), NUMBER
            if not np.isfinite(number):
                raise _MisfitError(f"a number must be finite, found {number}")
            content = (float, number)  # 3.0 is not the label 3
        elif type(value) is not str and type(value) is not int:
            try:
                content = value = as_value(value)
            except InputError as error:
                raise _MisfitError(str(error)) from None
        if depth != self.bottom:
            if self.bottom is None and depth == len(self.levels):
                self.bottom = depth
            else:
                raise _MisfitError(
                    f"expected parts, found the label {short(value)} {self._labels_lie()}"
                )
        place = self.known.get(content)
        if place is None:
            place = self.known[content] = len(self.labels)
            self.labels.append(self.codes.setdefault(value, len(self.codes)))
            self.numbers.append(number)
        return place

    def _labels_lie(self) -> str:
        depth = len(self.levels) if self.bottom is None else self.bottom
        return f"(labels lie {plural(depth, 'level')} below the top)"

    def finish(self, names: tuple[str, ...]) -> tuple[Hierarchy, list[NDArray[np.int64]]]:
        """All examples as a hierarchy, and where on every level each of them begins."""
        depth = self.bottom or max(len(self.levels), 1)
        levels = [*self.levels, *(_Level() for _ in range(depth - len(self.levels)))]
        vocabulary = Vocabulary(self.codes)
        codes = vocabulary.codes(self.codes)[np.array(self.labels, dtype=np.int64)]
        relations: list[Relation] = []
        starts = [_starts(self.ends, len(self.ends))]
        for level in reversed(levels):
            n_parts = relations[-1].n_parents if relations else len(codes)
            relations.append(level.relation(n_parts))
            starts.append(_starts(level.ends, len(self.ends)))
        vectors = np.array(self.numbers).reshape(-1, 1) if NUMBER in vocabulary else None
        hierarchy = Hierarchy(Attributes(codes, vocabulary, vectors), tuple(relations), names)
        return hierarchy, starts


def _has_parts(part: Any) -> bool:
    return not isinstance(part, str | int | float | tuple | bytes) and hasattr(part, "__iter__")


def _pairs(parent: Any) -> Iterator[Any]:
    """The (role, part) pairs of a parent, in the given order."""
    if not isinstance(parent, Mapping):
        yield from parent
        return
    for role, parts in parent.items():
        if not _has_parts(parts) or isinstance(parts, Mapping):
            raise _MisfitError(f"expected a list of parts of role {role!r}, found {short(parts)}")
        for part in parts:
            yield role, part


def _starts(ends: array[int], n: int) -> NDArray[np.int64]:
    """Starts from ends; a level that appeared late was empty until then."""
    out = np.zeros(n + 1, dtype=np.int64)
    out[n + 1 - len(ends) :] = np.array(ends, dtype=np.int64)
    return out
