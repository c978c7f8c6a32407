"""`Decomposition`: what all of them share, and what one of your own has to define."""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from saen._util.arrays import segment_reduce
from saen._util.strings import did_you_mean
from saen.data.chunks import Cut
from saen.data.graphs import Graphs
from saen.data.hierarchy import Hierarchy
from saen.data.refinement import Refinement
from saen.data.vocabulary import Vocabulary
from saen.decompositions.words import object_words
from saen.errors import InputError

FITTED = {"fitted": Vocabulary}
"""Metadata of fields that `fit` fills, with their type; other fields are settings."""

Numbers = NDArray[np.int64]

MAX_STEPS = 1000
"""Larger radii, depths and lengths are refused: each step costs a pass over the data."""


@dataclass(frozen=True, eq=False)
class Anchors:
    """The node or the edge of the data that each object of a hierarchy stands for.

    Both fields have one entry per level, bottom first: an array with one number per object, -1 for
    an object that stands for none, or None where no object of the level stands for any.

    - `nodes`: the node that an object is or is centred on (in documents: the word);
    - `edges`: the edge that an object is, in the order of `Graphs.edges()`.
    """

    nodes: tuple[Numbers | None, ...]
    edges: tuple[Numbers | None, ...]


@dataclass(frozen=True)
class Decomposition(ABC):
    """Turns a dataset into a `Hierarchy`; the parts of one example never depend on another's.

    A subclass is a frozen dataclass whose fields are its settings (with a line of help under
    `metadata["help"]`). It defines `decompose`, which encodes bottom labels with `self.vocabulary`
    once that is fitted. The data are `Graphs`, unless `takes` says otherwise.
    """

    name: ClassVar[str] = ""
    """What the command line and saved files call it."""
    takes: ClassVar[str] = "graphs"
    """What it decomposes: `graphs`, `documents` or `nested`."""

    graded: ClassVar[bool] = False
    """Whether the roles of the top are in order of size, so that the first ones alone give the
    parts of a smaller radius or depth."""

    vocabulary: Vocabulary | None = field(default=None, kw_only=True, metadata=FITTED)

    @abstractmethod
    def decompose(self, data: Any) -> Hierarchy:
        """The hierarchy whose top level is `data`, in order.

        With a fitted vocabulary, other labels are unseen; without one it is built here.
        """

    def fit(self, data: Any) -> Self:
        """A copy with automatic settings resolved and the vocabularies of these data.

        The copy maps values beyond its vocabularies to unseen.
        """
        fresh = self.resolved(data)
        return replace(fresh, vocabulary=fresh.bottom_vocabulary(data))

    @property
    def learns_bins(self) -> bool:
        """Whether `fit` makes bins of attributes, which depend on the values that it sees."""
        return False

    def resolved(self, data: Any) -> Self:
        """A copy whose settings fit these data, with everything fitted except the vocabulary."""
        return replace(
            self, **dict.fromkeys(f.name for f in fields(self) if "fitted" in f.metadata)
        )

    def bottom_vocabulary(self, data: Any) -> Vocabulary | None:
        """The labels of the bottom objects; override it where `decompose` does much more."""
        return self.decompose(data).attributes.vocabulary

    def anchors(self, data: Any) -> Anchors | None:
        """The nodes and edges that the objects of `decompose(data)` stand for, if known."""
        return None

    def describe_label(self, label: Any) -> Any:
        """A bottom label as readers understand it; the label itself unless it is a code."""
        return label

    def describe(self, hierarchy: Hierarchy, level: int, numbers: Numbers) -> list[str]:
        """Objects of a level of a hierarchy of this decomposition, in words.

        Parameters
        ----------
        hierarchy : Hierarchy
            A hierarchy of this decomposition.
        level : int
            The level of the objects.
        numbers : Numbers
            Which of its objects to describe.
        """
        return object_words(hierarchy, level, numbers, self.describe_label)

    def costs(self, data: Any) -> Numbers:
        """About how many entries each example will have, shape (n,): chunks are cut by it."""
        if not isinstance(data, Graphs):
            return np.ones(len(data), dtype=np.int64)
        entries = np.diff(data.indptr) + 1
        return segment_reduce(np.add, entries, data.node_offsets).astype(np.int64)

    def cut(self, data: Any) -> Cut | None:
        """The hierarchy of `data` in chunks of what lies below the top, if that is possible.

        What `compress_graphs` makes of it is what `compress` makes of `decompose(data)`.
        """
        return None

    def refinement(self, data: Any) -> Refinement | None:
        """The hierarchy of `data` as objects that are made one level after another, if it is that.

        What `compress_graphs` makes of it is what `compress` makes of `decompose(data)`.
        """
        return None

    def settings(self) -> dict[str, Any]:
        """Name and parameters as JSON, without what `fit` fills."""
        values = {f.name: getattr(self, f.name) for f in fields(self) if "fitted" not in f.metadata}
        plain = {key: list(v) if isinstance(v, tuple) else v for key, v in values.items()}
        return {"name": self.name or type(self).__name__, **plain}


# -- checks of settings ------------------------------------------------------------------------


def integer(name: str, value: Any, least: int, most: int = MAX_STEPS) -> int:
    """The value as an integer; raises `InputError` unless it lies between `least` and `most`."""
    try:
        number = operator.index(value)
    except TypeError:
        number = least - 1
    if number < least:
        raise InputError(f"{name} must be an integer ≥ {least}, not {value!r}")
    if number > most:
        raise InputError(f"{name} must be at most {most}")
    return number


def distinct_integers(name: str, values: Any) -> tuple[int, ...]:
    """The values as distinct integers ≥ 0 in ascending order, at least one.

    >>> distinct_integers("radii", [1, 0])
    (0, 1)
    """
    try:
        numbers = tuple(sorted(operator.index(value) for value in values))
    except TypeError:
        numbers = ()
    if not numbers or len(set(numbers)) != len(numbers) or numbers[0] < 0:
        raise InputError(f"{name} must be one or more distinct integers ≥ 0, not {values!r}")
    if numbers[-1] > MAX_STEPS:
        raise InputError(f"{name} must be at most {MAX_STEPS}")
    return numbers


def true_or_false(name: str, value: Any) -> None:
    """Raise unless a setting is True or False."""
    if not isinstance(value, bool):
        raise InputError(f"{name} must be True or False, not {value!r}")


def one_of(name: str, value: Any, choices: Sequence[str]) -> None:
    """Raise unless a setting has one of its values."""
    if value not in choices:
        hint = did_you_mean(str(value), choices)
        raise InputError(f"{name} must be one of {', '.join(choices)}, not {value!r}{hint}")
