"""`Decomposition`: what all of them share, and all that one of your own has to say."""

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
from saen.data.graphs import Graphs
from saen.data.hierarchy import Hierarchy
from saen.data.vocabulary import Vocabulary
from saen.errors import InputError

FITTED = {"fitted": True}
"""Metadata of fields that `fit` fills with a `Vocabulary`; other fields are what users set."""


@dataclass(frozen=True)
class Decomposition(ABC):
    """Turns a collection of structures into a `Hierarchy`, one by one: no structure's parts depend
    on another's.

    A subclass is a frozen dataclass whose fields are its settings (with a line of help under
    `metadata["help"]`), and defines `decompose`, which encodes bottom labels with
    `self.vocabulary` once that is fitted. The structures are `Graphs`, unless `takes` says
    otherwise.
    """

    name: ClassVar[str] = ""
    """What the command line and saved files call it."""
    takes: ClassVar[str] = "graphs"
    """What it takes apart: `graphs`, `documents` or `nested`."""

    graded: ClassVar[bool] = False
    """Whether the roles of the top are in order of size, so that the first ones alone give the
    parts of a smaller radius or depth."""

    vocabulary: Vocabulary | None = field(default=None, kw_only=True, metadata=FITTED)

    @abstractmethod
    def decompose(self, structures: Any) -> Hierarchy:
        """The hierarchy whose top level is `structures`, in order.

        With a fitted vocabulary, other labels are unseen; without one it is built here.
        """

    def fit(self, structures: Any) -> Self:
        """A copy that knows the vocabulary of these structures; values beyond it become unseen."""
        made = replace(self, vocabulary=None).decompose(structures)
        return replace(self, vocabulary=made.attributes.vocabulary)

    def costs(self, structures: Any) -> NDArray[np.int64]:
        """About how many entries each structure will take, shape (n,): chunks are cut by it."""
        if not isinstance(structures, Graphs):
            return np.ones(len(structures), dtype=np.int64)
        entries = np.diff(structures.indptr) + 1
        return segment_reduce(np.add, entries, structures.node_offsets).astype(np.int64)

    def settings(self) -> dict[str, Any]:
        """Name and parameters as JSON, without what `fit` found."""
        made = {f.name: getattr(self, f.name) for f in fields(self) if "fitted" not in f.metadata}
        plain = {key: list(v) if isinstance(v, tuple) else v for key, v in made.items()}
        return {"name": self.name or type(self).__name__, **plain}


def whole_numbers(name: str, values: Any, least: int = 0) -> tuple[int, ...]:
    """Distinct whole numbers in ascending order.

    >>> whole_numbers("radii", [1, 0])
    (0, 1)
    """
    try:
        numbers = tuple(sorted(operator.index(value) for value in values))
    except TypeError:
        raise InputError(f"{name} must be whole numbers, found {values!r}") from None
    if not numbers or len(set(numbers)) != len(numbers) or numbers[0] < least:
        raise InputError(
            f"{name} must be distinct whole numbers from {least} on, at least one: {values!r}"
        )
    return numbers


def whole_number(name: str, value: Any, least: int) -> int:
    """One whole number, not below `least`."""
    try:
        number = operator.index(value)
    except TypeError:
        raise InputError(f"{name} must be a whole number, found {value!r}") from None
    if number < least:
        raise InputError(f"{name} must be at least {least}, found {number}")
    return number


def one_of(name: str, value: Any, choices: Sequence[str]) -> None:
    """Raise unless a parameter has one of its values."""
    if value not in choices:
        hint = did_you_mean(str(value), choices)
        raise InputError(f"{name} is one of {', '.join(choices)}, not {value!r}{hint}")
