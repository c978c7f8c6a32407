"""Labels and attributes of nodes or edges: from one Python value each to whole columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from saen._util.arrays import Array
from saen.errors import InputError
from saen.io.parsing.text_files import check_text, check_width

_NUMBERS = {int, float, bool}


@dataclass(frozen=True)
class Items:
    """Nodes or edges with their values by name; an `InputError` names the first that is wrong.

    `what` is "node" or "edge", `place` names one in messages. `n_bytes` is the size of the file
    that they come from: it bounds the memory they may take, and its numbers must be finite.
    """

    what: str
    data: Sequence[Mapping[str, Any]]
    place: Callable[[int], str]
    n_bytes: int | None = None

    def values(self, key: str) -> list[Any] | None:
        """The values of all under a key; None if none has it."""
        with suppress(KeyError):
            return [item[key] for item in self.data] or None
        present = [key in item for item in self.data]
        if any(present):
            wrong = self.place(present.index(False))
            raise InputError(f"{wrong} has no {key!r}, but others have one")
        return None

    def labels(self, key: str) -> Array | None:
        """The labels under a key, shape (n,), or (n, k) if each is a list or a tuple."""
        values = self.values(key)
        return None if values is None else self.label_array(values)

    def label_array(self, values: list[Any]) -> Array:
        """The labels in a list of their own."""
        if set(map(type, values)) - {list, tuple}:
            return self._plain_labels(values, 1)
        width = len(values[0])
        if not width or set(map(len, values)) != {width}:
            raise InputError(f"{self.what} labels with several values need one number of them")
        return self._plain_labels([*chain.from_iterable(values)], width).reshape(-1, width)

    def _plain_labels(self, values: list[Any], width: int) -> Array:
        kinds = set(map(type, values))
        text = all(issubclass(kind, str) for kind in kinds)
        if not text and not all(_is_integer(kind) for kind in kinds):
            self._refuse_labels(values, width)
        if text:
            check_text(values, f"{self.what} labels")
            if self.n_bytes is not None:
                longest = max(map(len, values))
                check_width(longest, len(values), self.n_bytes, f"{self.what} labels")
        try:
            return np.array(values, dtype=np.str_ if text else np.int64)
        except OverflowError:
            message = f"one of the {self.what} labels does not fit into 64 bits"
            raise InputError(message) from None

    def _refuse_labels(self, values: list[Any], width: int) -> None:
        for row, value in enumerate(values):
            label = f"{self.place(row // width)}: the label"
            if not isinstance(value, str) and not _is_integer(type(value)):
                raise InputError(f"{label} must be an integer or a string, not {value!r:.60}")
            if isinstance(value, str) != isinstance(values[0], str):
                raise InputError(
                    f"{label} is {value!r:.60}, but that of {self.place(0)} is "
                    f"{values[0]!r:.60}: use only strings or only integers"
                )

    def numbers(self, key: str) -> Array | None:
        """The numbers under a key, or flat lists of as many numbers each: floats, shape (n, k)."""
        values = self.values(key)
        if values is None:
            return None
        rows = values
        if set(map(type, values)) - {list, tuple}:
            plain = [value.tolist() if hasattr(value, "tolist") else value for value in values]
            rows = [value if isinstance(value, list | tuple) else (value,) for value in plain]
        table = None
        if len(set(map(len, rows))) == 1 and set(map(type, chain.from_iterable(rows))) <= _NUMBERS:
            with suppress(OverflowError):
                table = np.array(rows, dtype=np.float64)
        if table is None or (self.n_bytes is not None and not np.isfinite(table).all()):
            self._refuse_numbers(key, rows)
        return table

    def _refuse_numbers(self, key: str, rows: Sequence[Sequence[Any]]) -> None:
        finite = "" if self.n_bytes is None else "finite "
        for row, own in enumerate(rows):
            if not all(map(self._is_number, own)):
                raise InputError(
                    f"{self.place(row)}: {key!r} must be a {finite}number or a flat list of "
                    f"{finite}numbers, not {(own[0] if len(own) == 1 else own)!r:.60}"
                )
            if len(own) != len(rows[0]):
                raise InputError(
                    f"{self.place(row)}: {len(own)} numbers in {key!r}, but {len(rows[0])} in "
                    f"that of {self.place(0)}"
                )

    def _is_number(self, value: Any) -> bool:
        in_range = type(value) in _NUMBERS and abs(value) < 2.0**1023
        return in_range or (self.n_bytes is None and type(value) is float)


def _is_integer(kind: type) -> bool:
    return issubclass(kind, int | np.integer) and kind is not bool
