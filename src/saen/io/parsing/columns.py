"""Labels and attributes of nodes or edges: from one Python value each to whole columns."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from saen._util.arrays import Array
from saen._util.strings import did_you_mean
from saen.errors import InputError
from saen.io.options import ReadOptions
from saen.io.parsing.text_files import (
    CHARACTERS_PER_BYTE,
    FREE_CHARACTERS,
    check_text,
    check_width,
)

_NUMBERS = {int, float, bool}
LABEL = "label"
_LABEL = re.compile(r"label(_\d+)?")

ATTRIBUTES_OPTION = {"node": "node_attribute", "edge": "edge_weight"}


@dataclass(frozen=True)
class Choice:
    """Which columns of nodes or edges, `what`, are labels and attributes; others are not read."""

    what: str
    labels: tuple[str, ...]
    attributes: tuple[str, ...]
    unread: tuple[str, ...]

    @classmethod
    def of(
        cls,
        what: str,
        columns: Mapping[str, bool | None],
        labels: Sequence[str] | None = None,
        attributes: Sequence[str] | None = None,
    ) -> Choice:
        """The columns that are named; else all text and `label` are labels, numbers attributes.

        What is not named is in alphabetical order, `label` first.

        `columns` says of each whether it is text; None for what is neither text nor numbers.

        >>> Choice.of("node", {"x": False, "kind": True, "label": False}).line()
        "'label', 'kind' read as node labels, 'x' as node attributes"
        """
        for name in (*(labels or ()), *(attributes or ())):
            if name not in columns:
                known = f": choose from {', '.join(columns)[:200]}" if columns else ""
                raise InputError(f"no {what} has {name!r}{did_you_mean(name, columns) or known}")
        columns = dict(sorted(columns.items(), key=lambda each: _place(each[0])))
        if labels is None:
            usual = [n for n, text in columns.items() if text or _LABEL.fullmatch(n)]
            labels = [name for name in usual if name not in (attributes or ())]
        if attributes is None:
            numbers = [n for n, text in columns.items() if text is False]
            attributes = [n for n in numbers if n not in labels and not _LABEL.fullmatch(n)]
        rest = [name for name in columns if name not in (*labels, *attributes)]
        return cls(what, tuple(labels), tuple(attributes), tuple(rest))

    @classmethod
    def by(cls, what: str, columns: Mapping[str, bool | None], options: ReadOptions) -> Choice:
        """The columns that `options` name; else those of a model's data, if any of them is there.

        >>> like = ReadOptions(like={"node_label": "Kind"})
        >>> Choice.by("node", {"mood": True, "kind": True}, like).labels
        ('kind',)
        """
        from saen.io.parsing.tables import column_name, join_names  # which need this module

        spelled = {column_name(str(name)): name for name in columns}
        named: list[list[str] | None] = []
        for option in (f"{what}_label", ATTRIBUTES_OPTION[what]):
            names = options.names(option)
            own = None if names is None else [spelled.get(column_name(n), n) for n in names]
            other = getattr(options, option) is None and own and not {*own} & {*columns}
            named.append(None if other else own)
        choice = cls.of(what, columns, *named)
        if options.remember is not None:
            for option, read in (
                (f"{what}_label", choice.labels),
                (ATTRIBUTES_OPTION[what], choice.attributes),
            ):
                if read and read != (LABEL,):
                    options.remember(option, join_names(read))
        return choice

    def line(self) -> str | None:
        """What is read as what in one line; None where there is only the usual column."""
        if not self.unread and not self.attributes and self.labels in ((), ("label",)):
            return None
        kinds = (
            (self.labels, f"as {self.what} labels"),
            (self.attributes, f"as {self.what} attributes"),
        )
        found = [f"{_listed(names)} {kind}" for names, kind in kinds if names]
        found = [found[0].replace(" as ", " read as "), *found[1:]] if found else []
        return ", ".join([*found, *([f"{_listed(self.unread)} not read"] if self.unread else [])])


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - 8} more" if len(names) > 8 else ""
    return ", ".join(f"{name!r:.40}" for name in names[:8]) + more


def numbered(name: str, count: int) -> list[str]:
    """Names of several columns, padded so that they sort by number.

    >>> numbered("label", 2)
    ['label_0', 'label_1']
    """
    digits = len(str(max(count - 1, 0)))
    return [f"{name}_{number:0{digits}}" for number in range(count)]


def beside_each_other(columns: Sequence[Array]) -> Array | None:
    """Labels of one column (n,), or of several (n, k): integers, or else text.

    >>> beside_each_other([np.array([1, 2]), np.array(["a", "b"])]).tolist()
    [['1', 'a'], ['2', 'b']]
    """
    if len(columns) < 2:
        return columns[0] if columns else None
    if any(column.dtype.kind == "U" for column in columns):
        columns = [column.astype(np.str_) for column in columns]
    return np.column_stack(columns)


def text_columns(rows: Iterable[Mapping[Any, Any]]) -> dict[str, bool | None]:
    """The names of all values in alphabetical order, `label` first, each with whether it is text.

    One with a number is not; None for one that is neither text nor numbers.

    >>> text_columns([{"z": 1, "name": "a", "label": 3}, {"at": [1, 2], "z": "?"}])
    {'label': False, 'at': None, 'name': True, 'z': False}
    """
    kinds: dict[str, bool | None] = {}
    for row in rows:
        for name, value in row.items():
            if isinstance(value, int | float | np.number):
                kinds[name] = False
            elif isinstance(value, str):
                kinds[name] = kinds.get(name) is not False
            else:
                kinds.setdefault(name, None)
    return {name: kinds[name] for name in sorted(kinds, key=_place)}


def _place(name: Any) -> tuple[bool, str]:
    """What to sort columns by: models read them by position, whatever the order of a file."""
    return name != LABEL, str(name)


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

    def chosen(self, choice: Choice) -> tuple[dict[str, Array], dict[str, tuple[str, ...]]]:
        """Labels and attributes as `Graphs` calls them, and the names of their columns."""
        n_columns = len(choice.labels) + len(choice.attributes)
        limit = FREE_CHARACTERS + CHARACTERS_PER_BYTE * (self.n_bytes or 0)
        if self.n_bytes is not None and n_columns * len(self.data) > limit:
            raise InputError(f"{n_columns:,} attributes are too many for a file of this size")
        columns: dict[str, Array] = {}
        names: dict[str, tuple[str, ...]] = {}
        for key, read in (("labels", self._labels), ("attributes", self._numbers)):
            column, own = read(choice), getattr(choice, key)
            if column is not None:
                columns[f"{self.what}_{key}"] = column
                names[f"{self.what}_{key}"] = () if own == (LABEL,) else own
        return columns, names

    def _labels(self, choice: Choice) -> Array | None:
        """All columns of labels; text that some have not is empty."""
        columns = []
        for name in choice.labels:
            texts = [item.get(name, "") for item in self.data]
            short = name != LABEL and set(map(type, texts)) == {str}
            column = self.label_array(texts) if short else self.labels(name)
            if column is not None:
                columns += [column] if column.ndim == 1 else [*column.T]
        return beside_each_other(columns)

    def _numbers(self, choice: Choice) -> Array | None:
        """All columns of attributes."""
        columns = [self.numbers(name) for name in choice.attributes]
        known = [column for column in columns if column is not None]
        return np.column_stack(known) if known else None

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
