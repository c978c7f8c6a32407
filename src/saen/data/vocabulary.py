"""`Vocabulary`: the finite, ordered set of values that categorical attributes take."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from saen._util.arrays import Array, distinct_with_inverse
from saen.errors import InputError

Value = int | str | tuple[Any, ...]

UNSEEN = -1
"""The code of a value that a fitted vocabulary does not hold."""
MAX_LOOKED_UP = 128
"""Rows that are looked up one by one: numpy takes longer to find their distinct values."""


class Vocabulary(Sequence[Value]):
    """Distinct labels in canonical order; the code of a label is its position.

    A label is an integer, a string, or a tuple (in JSON: a list) of these. Integers come before
    strings, strings before tuples, so that the order does not depend on where the labels were met
    first, and 1 is not "1".

    >>> Vocabulary(["C", 7, "B", 7])
    Vocabulary(7, 'B', 'C')
    >>> Vocabulary(["C", "N"]).encode([np.array(["N", "C", "O"])]).tolist()
    [1, 0, -1]
    """

    def __init__(self, values: Iterable[Value] = ()) -> None:
        self._values = tuple(sorted({as_value(value) for value in values}, key=_rank))
        self._codes = {value: code for code, value in enumerate(self._values)}

    @classmethod
    def fit(cls, columns: Sequence[Array]) -> tuple[Vocabulary, NDArray[np.int32]]:
        """The vocabulary of the rows of one or several label columns, and every row's code.

        One column gives plain values, several give tuples. Columns are arrays of shape (n,).
        """
        _check_columns(columns)
        local, values = _distinct(columns)
        vocabulary = cls(values)
        return vocabulary, vocabulary.codes(values)[local]

    def encode(self, columns: Sequence[Array]) -> NDArray[np.int32]:
        """The code of every row, shape (n,); `UNSEEN` for a row that is not in the vocabulary."""
        _check_columns(columns)
        if len(columns[0]) <= MAX_LOOKED_UP:
            values = [column.tolist() for column in columns]
            rows = values[0] if len(values) == 1 else zip(*values, strict=True)
            return np.array([self._codes.get(row, UNSEEN) for row in rows], dtype=np.int32)
        local, distinct = _distinct(columns)
        return self.codes(distinct)[local]

    def union(self, other: Vocabulary) -> Vocabulary:
        """All values of both."""
        return self if self == other else Vocabulary((*self._values, *other._values))

    def recode(self, other: Vocabulary) -> NDArray[np.int32]:
        """For every code of this vocabulary, then for `UNSEEN`, its code in `other`.

        The last entry serves `UNSEEN` (-1) when the result is indexed by codes.
        """
        return np.append(other.codes(self._values), np.int32(UNSEEN))

    def codes(self, values: Iterable[Value]) -> NDArray[np.int32]:
        """The code of every value; `UNSEEN` for those that are not in the vocabulary."""
        codes = [self._codes.get(as_value(value), UNSEEN) for value in values]
        return np.array(codes, dtype=np.int32)

    def __getitem__(self, code: Any) -> Any:
        return self._values[code]

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[Value]:
        return iter(self._values)

    def __contains__(self, value: object) -> bool:
        return value in self._codes

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Vocabulary) and self._values == other._values

    def __hash__(self) -> int:
        return hash(self._values)

    def __repr__(self) -> str:
        shown = [repr(value) for value in self._values[:8]]
        if len(self) > 8:
            shown.append(f"… {len(self)} in all")
        return f"Vocabulary({', '.join(shown)})"

    def to_json(self) -> list[Any]:
        """Values as JSON: integers, strings, and lists for tuples."""
        return list(self)

    @classmethod
    def from_json(cls, values: Iterable[Any]) -> Vocabulary:
        """The inverse of `to_json`."""
        return cls(values)


def _check_columns(columns: Sequence[Array]) -> None:
    """Raise unless these are flat columns of labels, equally long."""
    if not columns:
        raise InputError("a label needs at least one column")
    for column in columns:
        if column.ndim != 1 or len(column) != len(columns[0]):
            raise InputError(f"label columns must be flat and equally long, not {column.shape}")
        if column.dtype.kind not in "Uiu":
            raise InputError(f"labels must be integers or strings, not {column.dtype}")


def _distinct(columns: Sequence[Array]) -> tuple[NDArray[np.int64], list[Value]]:
    """Row codes into a list of distinct values."""
    codes = np.zeros(len(columns[0]), dtype=np.int64)
    parts: list[tuple[NDArray[np.int64], list[Any]]] = []
    for column in columns:
        uniques, inverse = distinct_with_inverse(column)
        if parts:
            _, codes = distinct_with_inverse(codes * max(len(uniques), 1) + inverse)
        else:
            codes = inverse
        parts.append((inverse, uniques.tolist()))
    first = np.zeros(int(codes.max(initial=-1)) + 1, dtype=np.int64)
    first[codes] = np.arange(len(codes))
    rows = [[uniques[i] for i in inverse[first].tolist()] for inverse, uniques in parts]
    if len(rows) == 1:
        return codes, rows[0]
    return codes, list(zip(*rows, strict=True))


def as_value(value: Any) -> Value:
    """The label as Python's own int, str or tuple."""
    if isinstance(value, str):
        return str(value)
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        return int(value)
    if isinstance(value, tuple | list):
        return tuple(as_value(part) for part in value)
    raise InputError(f"a label must be an integer, a string or a tuple of these, not {value!r}")


def _rank(value: Value) -> tuple[Any, ...]:
    if isinstance(value, int):
        return (0, value)
    if isinstance(value, str):
        return (1, value)
    return (2, len(value), *(_rank(part) for part in value))
