"""What collections of examples share: numpy-style indexing, targets and concatenation."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any, NoReturn, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from saen._util.arrays import Array, frozen, owned
from saen._util.notebook import html_table
from saen._util.strings import did_you_mean, plural
from saen.errors import InputError

Positions = slice | NDArray[np.int64]
"""Positions within a collection, none negative; a slice has both ends and step 1."""

COMPUTED = ("rdkit",)
"""Names of features that are computed from the examples: no columns of `extra`."""
MISSING = ("", "na", "n/a", "nan", "none", "null", "-")
"""What stands in columns of text, in lower case, for a feature that is not known."""

_KINDS = dict.fromkeys("iub", "integers") | {"f": "real numbers", "U": "strings"}


class Collection(ABC):
    """Examples in a row, indexed as a one-dimensional array.

    An integer, a slice, a mask or an array of integers gives a collection of the same type, and so
    does every step of an iteration. `shape` and `ndim` are what scikit-learn's splitters look for.
    """

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def _take(self, rows: Positions) -> Self:
        """The examples at these positions, in this order."""

    @property
    def shape(self) -> tuple[int]:
        """`(number of examples,)`."""
        return (len(self),)

    @property
    def ndim(self) -> int:
        """1: a collection is a column of examples."""
        return 1

    def __getitem__(self, key: Any) -> Self:
        if isinstance(key, tuple) and len(key) == 2 and key[1] is Ellipsis:
            key = key[0]  # scikit-learn indexes arrays as X[rows, ...]
        return self._take(_positions(key, len(self)))

    def __iter__(self) -> Iterator[Self]:
        return (self[index] for index in range(len(self)))

    def __array__(self, *_: object, **__: object) -> NoReturn:
        """Refuse: scikit-learn asks for numbers where it looks at single columns of X."""
        raise InputError(
            f"{type(self).__name__} cannot be an array of numbers, as scikit-learn's bagging, "
            "permutation importance and others need: average models by saen.Classifier and "
            "n_models, and explain them by saen.explain_dataset"
        )


SHOWN_EXAMPLES = 5
"""In the table of a notebook."""


class Dataset(Collection):
    """A collection with targets, ids and a name: what `Graphs`, `Documents` and `NestedData` share.

    `ids`, shape (n,), name the examples in every output: integers or strings, by default the
    position of each in its input. They go along through indexing and concatenation; like the name
    of a collection, they say nothing about its content, so `==` and digests do not look at them.
    Nor do they look at `extra`, other columns of the input by name, (n,) each, and at
    `target_names`, one per target where the input names them, else none. Models read no column of
    `extra` but those that `feature_names` names: these are numbers about whole examples.
    """

    targets: Array | None
    name: str
    ids: Array
    extra: Mapping[str, Array] | None
    target_names: tuple[str, ...]
    feature_names: tuple[str, ...]

    @classmethod
    def _unchecked(cls, **fields: Any) -> Self:
        """Build without checks, from arrays that are right by construction.

        Fields that are left out have the defaults of the class.
        """
        self = cls.__new__(cls)
        self.__setstate__(fields)
        return self

    def __setstate__(self, state: dict[str, Any]) -> None:
        # Frozen, because numpy's own copies are writeable again.
        for key, value in state.items():
            vars(self)[key] = frozen(value) if isinstance(value, np.ndarray) else value

    def _with(self, **changes: Any) -> Self:
        # Without what an object remembers beside its fields, which changes may make untrue.
        own = {f.name: getattr(self, f.name) for f in fields(cast(Any, self))}
        return self._unchecked(**{**own, **changes})

    def with_targets(self, targets: ArrayLike | None, names: Sequence[str] = ()) -> Self:
        """The same examples with other targets (or none), and their names, if they have any.

        Parameters
        ----------
        targets : ArrayLike | None
            One target per example, or several. None: no targets.
        names : Sequence[str], default=()
            The names of several targets.

        Examples
        --------
        >>> from saen import Graphs
        >>> pair = Graphs.from_edge_lists([[(0, 1)]]).with_targets([[0, 1]], ["toxic", "soluble"])
        >>> pair.target_names
        ('toxic', 'soluble')
        """
        column = checked_targets(targets, len(self))
        return self._with(targets=column, target_names=checked_names(names, column))

    def with_ids(self, ids: ArrayLike | None) -> Self:
        """The same examples with other ids (None: their numbers)."""
        return self._with(ids=checked_ids(ids, len(self)))

    def with_extra(self, extra: Mapping[str, ArrayLike]) -> Self:
        """The same examples with other `extra` columns, one value per example in each.

        >>> from saen import Graphs
        >>> pair = Graphs.from_edge_lists([[(0, 1)]]).with_extra({"source": ["patent"]})
        >>> pair[0].extra["source"].tolist()
        ['patent']
        """
        columns = {name: np.array(values) for name, values in extra.items()}
        for name, column in columns.items():
            if column.shape != (len(self),):
                raise InputError(
                    f"column {name!r}: expected {len(self)} values, found shape {column.shape}"
                )
        names = tuple(name for name in self.feature_names if name in (*columns, *COMPUTED))
        frozen_columns = {name: frozen(column) for name, column in columns.items()}
        return self._with(extra=frozen_columns or None, feature_names=names)

    @property
    def features(self) -> NDArray[np.float64] | None:
        """The columns that `feature_names` name, (n, k), NaN where unknown; None without any."""
        extra = self.extra or {}
        columns = [extra[name] for name in self.feature_names if name in extra]
        return np.stack(columns, axis=1).astype(np.float64) if columns else None

    def with_features(self, features: Mapping[str, ArrayLike] | Sequence[str] | Array) -> Self:
        """The same examples with numbers about each that models read beside its parts.

        `features` are columns by name (also as a data frame), an array of shape (n, k), or the
        names of columns that `extra` has; `rdkit` stands for the descriptors of molecules. An
        empty list takes all features away. Missing numbers are NaN.

        Raises `InputError` for a column of text, and where there is none of that name.

        >>> from saen import Graphs
        >>> pair = Graphs.from_edge_lists([[(0, 1)]] * 2).with_features({"pH": [7.4, np.nan]})
        >>> pair.features.tolist(), pair[1:].feature_names
        ([[7.4], [nan]], ('pH',))
        """
        columns, names = dict(self.extra or {}), list[str]()
        if isinstance(features, np.ndarray) and features.dtype.kind != "U":
            table = features.reshape(len(features), -1).T
            features = {f"feature {number}": column for number, column in enumerate(table)}
        new = dict(features.items()) if hasattr(features, "items") else None
        for name in map(str, features):
            values = columns.get(name) if new is None else new[name]
            if values is None and name not in COMPUTED:
                known = f": choose from {', '.join(columns)}" if columns else ""
                hint = did_you_mean(name, [*columns]) or known
                raise InputError(f"no column {name!r} to read as a feature{hint[:200]}")
            names.append(name)
            if values is not None:
                columns[name] = _feature_column(name, as_column(name, values))
        changed = self.with_extra(columns)
        return self._with(extra=changed.extra, feature_names=tuple(dict.fromkeys(names)))

    def _per_example(self, rows: Positions) -> dict[str, Any]:
        """Targets, ids and extra columns of some examples."""
        targets = None if self.targets is None else self.targets[rows]
        extra = {name: frozen(column[rows]) for name, column in (self.extra or {}).items()} or None
        return {"targets": targets, "ids": self.ids[rows], "extra": extra}

    def _numbers(self, n: int) -> dict[str, list[int]]:
        """Columns about the sizes of the first n examples, for tables."""
        return {}

    def _repr_html_(self) -> str:
        """What notebooks show: the first examples as a table."""
        n = min(len(self), SHOWN_EXAMPLES)
        columns = {"id": self.ids[:n].tolist(), **self._numbers(n)}
        if self.targets is not None:
            several = self.targets[:n].reshape(n, n_targets(self.targets)).T.tolist()
            numbered = [f"target {k}" for k in range(len(several))]
            names = self.target_names or (numbered if len(several) > 1 else ["target"])
            columns |= dict(zip(names, several, strict=True))
        return html_table(repr(self), columns, len(self) - n)

    @property
    def description(self) -> str:
        """Name, content and targets in one line."""
        return repr(self).partition("(")[2][:-1]

    def _described(self, content: str, *extras: str) -> str:
        """For `repr`: name, content, targets and what else there is."""
        name = f"{self.name}: " if self.name else ""
        known = () if self.targets is None else (_describe_targets(self.targets),)
        after = "; " + ", ".join([*known, *extras]) if known or extras else ""
        return f"{type(self).__name__}({name}{content}{after})"


def concatenated(parts: Sequence[Dataset]) -> dict[str, Any]:
    """What examples of all parts have, in order; raises `InputError` if there are none."""
    if not parts:
        raise InputError("nothing to concatenate: the list of collections is empty")
    return {
        "targets": concatenate_columns("targets", [part.targets for part in parts]),
        "name": parts[0].name if len({part.name for part in parts}) == 1 else "",
        "ids": concatenate_values([part.ids for part in parts]),
        "extra": _joined_extra([part.extra or {} for part in parts]),
        "target_names": common_names([part.target_names for part in parts]),
        "feature_names": _common_features(parts),
    }


def _common_features(parts: Sequence[Dataset]) -> tuple[str, ...]:
    """The features of all parts, which must be the same."""
    names = parts[0].feature_names
    for number, part in enumerate(parts):
        if part.feature_names != names:
            raise InputError(f"collection {number} has other features than the first")
    return names


def _feature_column(name: str, column: Array) -> Array:
    """Numbers, NaN where there is none; text that is a number counts as one."""
    if column.dtype.kind == "U":
        texts = np.char.strip(column)
        texts = np.where(np.isin(np.char.lower(texts), MISSING), "nan", texts)
        wrong = [text for text in np.unique(texts).tolist() if not _is_number(text)]
        if wrong:
            raise InputError(
                f"column {name!r} cannot be a feature: {wrong[0]!r:.40} is not a number (write "
                "categories as one column of 0 and 1 each)"
            )
        return texts.astype(np.float64)
    if column.dtype.kind == "O":
        column = np.array([np.nan if value is None else value for value in column.tolist()])
    if column.dtype.kind not in "iufb":
        raise InputError(f"column {name!r} cannot be a feature: it does not hold numbers")
    return column.astype(np.float64)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _joined_extra(parts: list[Mapping[str, Array]]) -> dict[str, Array] | None:
    """The columns that all parts have."""
    names = [name for name in parts[0] if all(name in part for part in parts)]
    joined = {name: np.concatenate([part[name] for part in parts]) for name in names}
    return {name: frozen(column) for name, column in joined.items()} or None


def _positions(key: Any, n: int) -> Positions:
    if isinstance(key, int | np.integer) and not isinstance(key, bool):
        start = int(key) + (n if key < 0 else 0)
        if not 0 <= start < n:
            raise IndexError(f"index {key} is out of range for a collection of {n}")
        return slice(start, start + 1)
    if isinstance(key, slice):
        start, stop, step = key.indices(n)
        return slice(start, max(start, stop)) if step == 1 else np.arange(n)[key]
    rows = np.asarray(key)
    if rows.dtype == np.bool_:
        if rows.shape != (n,):
            raise InputError(f"a mask of shape {rows.shape} for a collection of {n}")
        return np.flatnonzero(rows)
    if rows.ndim != 1 or (rows.size and rows.dtype.kind not in "iu"):
        raise InputError("index by an integer, a slice, a mask or a flat array of integers")
    if rows.size and (rows.min() < -n or rows.max() >= n):
        raise IndexError(f"an index is out of range for a collection of {n}")
    rows = rows.astype(np.int64)
    return np.where(rows < 0, rows + n, rows)


# -- columns -----------------------------------------------------------------------------------


def as_column(name: str, values: ArrayLike) -> Array:
    """An array of values; strings held as objects (as in pandas) become numpy strings."""
    try:
        array = np.asarray(values)
    except ValueError:
        raise InputError(f"{name} differ in their number of columns") from None
    if array.dtype.kind in "OT" and all(isinstance(value, str) for value in array.flat):
        return array.astype(np.str_)
    return array


def check_column(name: str, column: Array, n: int, kinds: str) -> None:
    """Raise unless a column has n rows and a dtype of one of these kinds."""
    if column.ndim not in (1, 2) or len(column) != n:
        raise InputError(f"{name}: expected {n} rows, found shape {column.shape}")
    if column.dtype.kind not in kinds:
        allowed = "numbers" if "f" in kinds else "integers"
        raise InputError(f"{name} must be {allowed} or strings, not {column.dtype}")


def check_pointers(name: str, pointers: Array) -> None:
    """Raise unless an array holds the starts of segments, and the end of the last."""
    if pointers.ndim != 1 or len(pointers) == 0 or pointers.dtype.kind not in "iu":
        raise InputError(f"{name} must be a flat array of integers that starts with 0")
    if pointers[0] != 0 or (pointers[1:] < pointers[:-1]).any():
        raise InputError(f"{name} must start at 0 and never decrease")


def concatenate_columns(name: str, columns: Sequence[Array | None]) -> Array | None:
    """One column of all; None where nobody has it. All must have it, of one kind and width."""
    values = [column for column in columns if column is not None]
    if not values:
        return None
    if len(values) < len(columns):
        lacking = next(i for i, column in enumerate(columns) if column is None)
        raise InputError(f"collection {lacking} has no {name}")
    if len({(value.ndim, *value.shape[1:]) for value in values}) > 1:
        raise InputError(f"{name} differ in their number of columns")
    kinds = sorted({_KINDS[value.dtype.kind] for value in values})
    if len(kinds) > 1:
        raise InputError(f"{name} mix {' and '.join(kinds)}")
    if kinds == ["integers"] and np.result_type(*values).kind == "f":
        # numpy joins signed and unsigned 64-bit integers as floats.
        if max(int(value.max(initial=0)) for value in values) > np.iinfo(np.int64).max:
            raise InputError(f"{name} mix negative integers with some above 2**63")
        values = [value.astype(np.int64) for value in values]
    return np.concatenate(values)


# -- ids ---------------------------------------------------------------------------------------


def checked_ids(ids: ArrayLike | None, n: int) -> Array:
    """Ids of n examples as a read-only array of integers or strings; by default 0 … n - 1.

    >>> checked_ids(None, 3).tolist(), checked_ids(["a", "b"], 2).tolist()
    ([0, 1, 2], ['a', 'b'])
    """
    if ids is None:
        return frozen(np.arange(n))
    column = as_column("ids", ids)
    if column.size == 0:
        column = column.astype(np.int64)
    if column.shape != (n,):
        raise InputError(f"ids: expected {n}, one per example, found shape {column.shape}")
    if column.dtype.kind not in "iuU":
        raise InputError(f"ids must be integers or strings, not {column.dtype}")
    return owned(column)


def concatenate_values(columns: Sequence[Array]) -> Array:
    """All ids or targets in order; where some are strings, numbers become strings."""
    text = any(column.dtype.kind == "U" for column in columns)
    return np.concatenate([column.astype(np.str_) if text else column for column in columns])


def repeated_ids(ids: Array) -> list[Any]:
    """The ids that more than one example has, in ascending order.

    >>> repeated_ids(np.array([3, 1, 3]))
    [3]
    """
    ordered = np.sort(ids)
    repeated: list[Any] = np.unique(ordered[1:][ordered[1:] == ordered[:-1]]).tolist()
    return repeated


# -- targets -----------------------------------------------------------------------------------


def checked_targets(targets: ArrayLike | None, n: int) -> Array | None:
    """Targets of n examples as a read-only array: classes or numbers, (n,), or several, (n, t)."""
    if targets is None:
        return None
    column = as_column("targets", targets)
    check_column("targets", column, n, "iufUb")
    return owned(column)


def n_targets(targets: Array | None) -> int:
    """How many targets every example has.

    >>> n_targets(None), n_targets(np.zeros(5)), n_targets(np.zeros((5, 3)))
    (0, 1, 3)
    """
    return 0 if targets is None else 1 if targets.ndim == 1 else targets.shape[1]


def checked_names(names: Sequence[str], targets: Array | None) -> tuple[str, ...]:
    """The names of targets, one for each, or none at all."""
    if names and len(names) != n_targets(targets):
        raise InputError(f"{plural(len(names), 'name')} for {plural(n_targets(targets), 'target')}")
    return tuple(map(str, names))


def common_names(names: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """The names of targets that all parts of some data agree on; otherwise none."""
    return names[0] if len(set(names)) == 1 else ()


def known_targets(targets: Array) -> NDArray[np.bool_]:
    """Which targets are not missing: neither None nor NaN nor an empty string.

    >>> known_targets(np.array([[0.0, np.nan]])).tolist()
    [[True, False]]
    """
    if targets.dtype.kind == "O":
        missing = [value is None or value == "" or value != value for value in targets.flat]
        return ~np.array(missing, dtype=np.bool_).reshape(targets.shape)
    if targets.dtype.kind == "U":
        return np.asarray(targets != "", dtype=np.bool_)
    return ~np.isnan(targets) if targets.dtype.kind == "f" else np.ones(targets.shape, np.bool_)


def target_facts(targets: Array | None, names: Sequence[str] = ()) -> dict[str, dict[str, Any]]:
    """What is known of every target, by its name, or else its number.

    `known` and `missing` values, and `classes` with their counts, or `minimum` and `maximum` of
    real numbers (None where all are missing).

    >>> target_facts(np.array([["a", "b"], ["a", ""]]), ["x", "y"])["y"]
    {'known': 1, 'missing': 1, 'classes': {'b': 1}}
    """
    if targets is None:
        return {}
    columns = targets.reshape(len(targets), n_targets(targets)).T
    facts = map(_facts_of_target, columns)
    return dict(zip(names or map(str, range(len(columns))), facts, strict=True))


def targets_summary(targets: Array | None, names: Sequence[str] = ()) -> dict[str, Any]:
    """What summaries say of targets: `classes` of one target, or `targets` with several of them."""
    if n_targets(targets) > 1:
        return {"targets": target_facts(targets, names)}
    return class_counts(targets)


def _facts_of_target(column: Array) -> dict[str, Any]:
    values = column[known_targets(column)]
    facts: dict[str, Any] = {"known": len(values), "missing": len(column) - len(values)}
    if column.dtype.kind != "f":
        return facts | class_counts(values)
    ends = (float(values.min()), float(values.max())) if len(values) else (None, None)
    return facts | {"minimum": ends[0], "maximum": ends[1]}


def equal_columns(one: Array | None, other: Array | None) -> bool:
    """Whether two columns are the same, or both missing; NaN equals NaN."""
    if one is None or other is None:
        return one is other
    real = one.dtype.kind == other.dtype.kind == "f"
    return np.array_equal(one, other, equal_nan=real)


def _describe_targets(targets: Array) -> str:
    if targets.dtype.kind == "f":
        return "real targets" if targets.ndim == 1 else f"{targets.shape[1]} real targets"
    if targets.ndim == 2:
        return plural(targets.shape[1], "target")
    return plural(len(np.unique(targets)), "class", "classes")


def class_counts(targets: Array | None) -> dict[str, dict[str, int]]:
    """`{"classes": {class: examples}}` for summaries; empty without classes."""
    if targets is None or targets.dtype.kind == "f" or targets.ndim == 2:
        return {}
    values, counts = np.unique(targets, return_counts=True)
    return {"classes": {str(v): int(c) for v, c in zip(values, counts, strict=True)}}
