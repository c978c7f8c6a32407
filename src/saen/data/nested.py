"""`NestedData`: a collection of anything made of parts of parts, stated as plain Python."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from reprlib import repr as short
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from saen._util.arrays import Array, frozen, offsets, owned, ranges
from saen._util.strings import plural
from saen.data.content_hash import Keys, attribute_keys, row_keys
from saen.data.hierarchy import Attributes, Hierarchy, Relation
from saen.data.vocabulary import Value, Vocabulary, as_value
from saen.errors import InputError

NO_ROLE = "part"
"""Stands in the alphabet of a level whose parents are all empty."""


@dataclass(frozen=True, eq=False, repr=False, init=False)
class NestedData:
    """An immutable collection of structures, each made of parts of parts, down to labels.

    A whole is stated by its parts: a list or a generator of `(role, part)` pairs, or a mapping
    from roles to lists of parts. A part is again a whole, or, on the bottom level, a label: a whole
    number, a string, or a tuple of these. (A tuple is always a label.) Roles are strings. All
    labels of a collection lie equally deep. The order of parts means nothing; parents may be empty.

    Everything is read once, so generators will do, into flat arrays in which parts that one
    structure repeats are built once. `levels` names the levels, bottom first, and thereby says how
    deep labels lie; `targets` holds classes (n,) or real values (n,) or (n, k).

    Indexing with an integer, a slice, a mask or an array of indices gives another `NestedData`, and
    so does every step of an iteration (of one structure each).

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

    Raises `InputError`, which names the place, for what is none of this.
    """

    hierarchy: Hierarchy
    """The structures on top; what one of them repeats stands there once, with its count."""
    starts: tuple[NDArray[np.int64], ...]
    """For every level, bottom first, the first object of every structure, and their number."""
    targets: Array | None
    name: str

    def __init__(
        self,
        items: Iterable[Any],
        targets: ArrayLike | None = None,
        *,
        levels: Sequence[str] = (),
        name: str = "",
    ) -> None:
        names = level_names(levels)
        reader = _Reader(len(names) - 1 if names else None)
        for number, item in enumerate(items):
            try:
                reader.read(item)
            except _MisfitError as misfit:
                place = ", ".join([f"structure {number}", *misfit.path])
                raise InputError(f"{place}: {misfit.trouble}") from None
        hierarchy, starts = reader.finish(names)
        self._set(hierarchy, starts, _checked_targets(targets, len(hierarchy)), name)

    def _set(
        self,
        hierarchy: Hierarchy,
        starts: Sequence[NDArray[np.int64]],
        targets: Array | None,
        name: str,
    ) -> NestedData:
        object.__setattr__(self, "hierarchy", hierarchy)
        object.__setattr__(self, "starts", tuple(frozen(column) for column in starts))
        object.__setattr__(self, "targets", None if targets is None else frozen(targets))
        object.__setattr__(self, "name", name)
        return self

    def with_targets(self, targets: ArrayLike | None) -> NestedData:
        """The same structures with other targets (or none)."""
        checked = _checked_targets(targets, len(self))
        return _empty()._set(self.hierarchy, self.starts, checked, self.name)

    # -- what it is --------------------------------------------------------------------------

    @property
    def levels(self) -> tuple[str, ...]:
        """The names of the levels, bottom first."""
        return self.hierarchy.names

    def __len__(self) -> int:
        return len(self.hierarchy)

    @property
    def shape(self) -> tuple[int]:
        """`(number of structures,)`, so that scikit-learn's splitters take the collection whole."""
        return (len(self),)

    def to_mappings(self) -> list[dict[str, list[Any]]]:
        """Every structure as a mapping from roles to lists of parts, down to labels.

        >>> NestedData([[("b", 2), ("a", 7), ("b", 2)]]).to_mappings()
        [{'a': [7], 'b': [2, 2]}]
        """
        attributes = self.hierarchy.attributes
        assert attributes.codes is not None
        assert attributes.vocabulary is not None
        below: list[Any] = [attributes.vocabulary[code] for code in attributes.codes.tolist()]
        for relation in self.hierarchy.relations:
            parents: list[Any] = [{} for _ in range(relation.n_parents)]
            entries = relation.roles.tolist(), relation.parts.tolist(), _counts(relation).tolist()
            rows = np.repeat(np.arange(relation.n_parents), np.diff(relation.indptr)).tolist()
            for row, role, part, count in zip(rows, *entries, strict=True):
                same = parents[row].setdefault(relation.alphabet[role], [])
                same.extend([below[part]] * count)
            below = parents
        return below

    def __eq__(self, other: object) -> bool:
        """The same structures in the same order with equal targets, whatever the order of parts."""
        if not isinstance(other, NestedData):
            return NotImplemented
        mine, theirs = self.targets, other.targets
        if mine is not None and theirs is not None:
            same = np.array_equal(mine, theirs)
        else:
            same = mine is theirs
        return same and self.levels == other.levels and np.array_equal(self._keys(), other._keys())

    __hash__ = None  # type: ignore[assignment]

    def _keys(self) -> Keys:
        """The content key of every structure, shape (n, 2)."""
        keys = attribute_keys(self.hierarchy.attributes)
        for relation in self.hierarchy.relations:
            codes = relation.roles.astype(np.int64) * relation.n_parts + relation.parts
            keys = row_keys(relation.indptr, codes, _counts(relation), keys, relation.alphabet)
        return keys

    def __repr__(self) -> str:
        chain = " → ".join(
            f"{size:,} {name}" for size, name in zip(self.hierarchy.sizes, self.levels, strict=True)
        )
        extra = ""
        if self.targets is not None:
            real = self.targets.dtype.kind == "f"
            n_classes = len(np.unique(self.targets))
            extra = f"; {'real targets' if real else plural(n_classes, 'class', 'classes')}"
        return f"NestedData({self.name + ': ' if self.name else ''}{chain}{extra})"

    # -- slicing -----------------------------------------------------------------------------

    def __getitem__(self, key: Any) -> NestedData:
        if isinstance(key, tuple) and len(key) == 2 and key[1] is Ellipsis:
            key = key[0]  # scikit-learn slices arrays as X[rows, ...]
        return self._take(np.atleast_1d(np.arange(len(self))[key]))

    def __iter__(self) -> Iterator[NestedData]:
        return (self[number] for number in range(len(self)))

    def _take(self, rows: NDArray[np.int64]) -> NestedData:
        """The chosen structures; the objects of one lie side by side on every level."""
        starts = [offsets(np.diff(old)[rows]) for old in self.starts]
        objects = [ranges(o[rows], np.diff(s)) for o, s in zip(self.starts, starts, strict=True)]
        relations = []
        for level, relation in enumerate(self.hierarchy.relations):
            kept = relation.take(objects[level + 1])
            moved = starts[level][:-1] - self.starts[level][rows]
            n_entries = np.diff(kept.indptr[starts[level + 1]])
            parts = kept.parts + np.repeat(moved, n_entries)
            n_parts = int(starts[level][-1])
            relations.append(
                Relation(kept.indptr, parts, kept.roles, kept.alphabet, n_parts, kept.counts)
            )
        attributes = self.hierarchy.attributes.take(objects[0])
        hierarchy = Hierarchy(attributes, tuple(relations), self.levels)
        targets = None if self.targets is None else self.targets[rows]
        return _empty()._set(hierarchy, starts, targets, self.name)


def _empty() -> NestedData:
    """A collection that is yet to be filled."""
    return NestedData.__new__(NestedData)


def _counts(relation: Relation) -> Array:
    return np.ones(relation.n_entries, np.int64) if relation.counts is None else relation.counts


def _checked_targets(targets: ArrayLike | None, n: int) -> Array | None:
    if targets is None:
        return None
    try:
        column = np.asarray(targets)
    except ValueError:
        raise InputError("targets differ in their number of columns") from None
    if column.dtype.kind in "OT" and all(isinstance(value, str) for value in column.flat):
        column = column.astype(np.str_)  # as pandas holds them
    if column.ndim not in (1, 2) or len(column) != n:
        raise InputError(f"targets: expected {n} rows, found shape {column.shape}")
    if column.dtype.kind not in "iufUb":
        raise InputError(f"targets must be numbers or strings, not {column.dtype}")
    return owned(column)


def level_names(levels: Sequence[str]) -> tuple[str, ...]:
    """Names of levels, checked: none, or at least two, different from one another."""
    listed = isinstance(levels, Sequence) and not isinstance(levels, str)
    if not listed or not all(isinstance(name, str) and name for name in levels):
        raise InputError(f"levels are names, bottom first, not {levels!r}")
    if len(levels) == 1 or len({*levels}) < len(levels):
        raise InputError(f"levels are two or more different names, not {levels!r}")
    return tuple(levels)


# -- reading -----------------------------------------------------------------------------------


class _MisfitError(Exception):
    """Something that is no part of a structure, and the way to it from the top."""

    def __init__(self, trouble: str, *path: str) -> None:
        super().__init__(trouble)
        self.trouble = trouble
        self.path = [*path]


@dataclass
class _Level:
    """The parents of one level so far, and those of the structure at hand by their contents."""

    roles: dict[str, int] = field(default_factory=dict)
    lengths: array[int] = field(default_factory=lambda: array("q"))
    entries: array[int] = field(default_factory=lambda: array("q"))  # role, part, role, part, …
    ends: array[int] = field(default_factory=lambda: array("q"))
    known: dict[tuple[tuple[int, int], ...], int] = field(default_factory=dict)

    def number(self, parts: list[tuple[int, int]]) -> int:
        """The whole made of these (role, part), which is added where the structure lacks it."""
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
    """NestedData as flat arrays, read one after another.

    `bottom` is how many steps below a structure labels lie, once that is known. Levels are counted
    from the top here: where labels lie may come out late, when the first parents are all empty.
    """

    def __init__(self, bottom: int | None) -> None:
        self.bottom = bottom
        self.levels: list[_Level] = []
        self.codes: dict[Value, int] = {}  # of all labels, in the order of their first appearance
        self.labels = array("q")  # the code of every bottom object
        self.known: dict[Value, int] = {}  # the bottom objects of the structure at hand
        self.ends = array("q")

    def read(self, structure: Any) -> None:
        """Add a structure; `_MisfitError` where it is none."""
        self.known.clear()
        for level in self.levels:
            level.known.clear()
        if not _is_whole(structure):
            raise _MisfitError(f"expected parts, found {short(structure)}")
        try:
            self._whole(structure, 0)
        except RecursionError:
            raise _MisfitError("nested too deeply") from None
        self.ends.append(len(self.labels))
        for level in self.levels:
            level.ends.append(len(level.lengths))

    def _whole(self, whole: Any, depth: int) -> int:
        """The number of the object, on its level, that these parts make."""
        if depth == self.bottom:
            raise _MisfitError(f"expected a label, found parts {self._labels_lie()}")
        if depth == len(self.levels):
            self.levels.append(_Level())
        level = self.levels[depth]
        parts: list[tuple[int, int]] = []
        for pair in _pairs(whole):
            if not isinstance(pair, tuple | list) or len(pair) != 2:
                trouble = f"expected a (role, part) pair, found {short(pair)}"
                raise _MisfitError(trouble, f"part {len(parts)}")
            role, part = pair
            if not isinstance(role, str) or not role:
                trouble = f"a role is a string, and not an empty one: found {short(role)}"
                raise _MisfitError(trouble, f"part {len(parts)}")
            code = level.roles.setdefault(role, len(level.roles))
            try:
                below = self._whole if _is_whole(part) else self._label
                parts.append((code, below(part, depth + 1)))
            except _MisfitError as misfit:
                place = sum(other == code for other, _ in parts)
                misfit.path.insert(0, f"part {place} of role {role!r}")
                raise
        return level.number(parts)

    def _label(self, value: Any, depth: int) -> int:
        """The number of the bottom object with this label."""
        if type(value) is not str and type(value) is not int:
            try:
                value = as_value(value)
            except InputError as error:
                raise _MisfitError(str(error)) from None
        if depth != self.bottom:
            if self.bottom is None and depth == len(self.levels):
                self.bottom = depth
            else:
                raise _MisfitError(
                    f"expected parts, found the label {short(value)} {self._labels_lie()}"
                )
        number = self.known.get(value)
        if number is None:
            number = self.known[value] = len(self.labels)
            self.labels.append(self.codes.setdefault(value, len(self.codes)))
        return number

    def _labels_lie(self) -> str:
        depth = len(self.levels) if self.bottom is None else self.bottom
        return f"(labels lie {plural(depth, 'level')} below a structure)"

    def finish(self, names: tuple[str, ...]) -> tuple[Hierarchy, list[NDArray[np.int64]]]:
        """All structures as a hierarchy, and where on every level each of them begins."""
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
        hierarchy = Hierarchy(Attributes(codes, vocabulary), tuple(relations), names)
        return hierarchy, starts


def _is_whole(part: Any) -> bool:
    return not isinstance(part, str | int | tuple | bytes) and hasattr(part, "__iter__")


def _pairs(whole: Any) -> Iterator[Any]:
    """The (role, part) pairs of a whole, in the order in which they are given."""
    if not isinstance(whole, Mapping):
        yield from whole
        return
    for role, parts in whole.items():
        if not _is_whole(parts) or isinstance(parts, Mapping):
            raise _MisfitError(f"expected a list of parts of role {role!r}, found {short(parts)}")
        for part in parts:
            yield role, part


def _starts(ends: array[int], n: int) -> NDArray[np.int64]:
    """Starts from ends; a level that was not there at first was empty till then."""
    out = np.zeros(n + 1, dtype=np.int64)
    out[n + 1 - len(ends) :] = np.array(ends, dtype=np.int64)
    return out
