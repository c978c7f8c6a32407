"""Targets as arrays: classes or real numbers, checked before anything is learned."""

from __future__ import annotations

from numbers import Number
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight

from saen._util.arrays import Array, Floats, Ints
from saen._util.strings import human_bytes, plural
from saen.data._collection import known_targets
from saen.errors import InputError

MAX_SCORES = 5 * 10**8
"""Pairs of an example, or a feature, and a class."""
Targets = ArrayLike | None
"""What `fit` takes as y: `graphs.targets` is None for graphs without targets, which is refused."""

MAX_TARGET = 1e100
"""Larger numbers to learn are refused: their squares are too large for float64."""


def given(y: Targets) -> ArrayLike:
    """The targets; `InputError` where there are none."""
    if y is None:
        raise InputError("y is None: these data have no targets to learn from")
    return y


def as_classes(y: ArrayLike) -> Array:
    """Classes as an array of integers, Booleans or strings, shape (n,).

    Raises `InputError` for missing, infinite or fractional values, for values of different types,
    and for any other shape.

    >>> as_classes(["a", "b"]).shape
    (2,)
    >>> as_classes([1, "a"])
    Traceback (most recent call last):
        ...
    saen.errors.InputError: y mixes numbers and text: write all classes the same way
    """
    _check_types(y)
    labels = np.asarray(y)
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise InputError("y holds NaN or infinity, which is not a class")
    check_classification_targets(labels)
    if labels.ndim != 1:
        raise InputError(f"y must hold one class per example, not have shape {labels.shape}")
    return labels


def class_codes(labels: Array) -> tuple[Array, NDArray[np.int64]]:
    """The distinct classes in order, and the place of every label among them, shape (n,).

    Raises `InputError` with a forecast where one number per example and class is too much.

    >>> class_codes(np.array(["b", "a", "b"]))[1].tolist()
    [1, 0, 1]
    """
    classes, codes = np.unique(labels, return_inverse=True)
    check_scores(len(labels), len(classes), "examples")
    return classes, codes


def check_scores(rows: int, n_classes: int, what: str) -> None:
    """Raise `InputError` if a matrix of `rows` by `n_classes` would not fit into memory."""
    if rows * n_classes > MAX_SCORES:
        raise InputError(
            f"{n_classes:,} classes and {rows:,} {what}: one number for each pair would take "
            f"{human_bytes(8.0 * rows * n_classes)}, several times over; if the targets are "
            "numbers, write them with a decimal point, else merge rare classes"
        )


def encode_classes(y: ArrayLike) -> tuple[Array, Ints]:
    """Classes, and the code of every example.

    For one target, y of shape (n,): classes (C,) and codes (n,). For several targets with two
    classes each, y of shape (n, t): classes (t, 2) and codes (n, t), -1 where y is missing (None,
    NaN or an empty string).

    >>> encode_classes(["b", "a", "b"])
    (array(['a', 'b'], dtype='<U1'), array([1, 0, 1]))
    >>> encode_classes([[0, 1], [1, np.nan], [1, 0]])[1].tolist()
    [[0, 1], [1, -1], [1, 0]]
    """
    if np.ndim(y) != 2:
        return class_codes(as_classes(y))
    table = np.asarray(y)
    known = known_targets(table)
    codes = np.full(table.shape, -1, dtype=np.int64)
    pairs = []
    for column, name in enumerate(target_names(y)):
        rows = known[:, column]
        values, codes[rows, column] = np.unique(
            _plain_classes(table[rows, column]), return_inverse=True
        )
        if len(values) != 2:
            raise InputError(
                f"target {name!r} has {plural(len(values), 'class', 'classes')}: of several "
                "targets at once, each must have two classes (or all be real numbers)"
            )
        pairs.append(values)
    return np.stack(pairs), codes


def _plain_classes(values: Array) -> Array:
    """Classes of one target without gaps; whole numbers among floats are integers."""
    labels = as_classes(values.tolist() if values.dtype.kind == "O" else values)
    return labels.astype(np.int64) if labels.dtype.kind == "f" else labels


def target_names(y: Any) -> list[str]:
    """Names of several targets: the columns of a data frame, or 0, 1, …"""
    columns = getattr(y, "columns", range(np.shape(y)[1]))
    return [str(column) for column in columns]


def as_numbers(y: ArrayLike) -> Floats:
    """Finite real numbers, shape (n,) or (n, k); `InputError` for anything else.

    Of several numbers per example, some may be missing (NaN), if not all of a column.

    >>> as_numbers([1, 2.5]).tolist()
    [1.0, 2.5]
    """
    try:
        values = np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError("y must be finite numbers of shape (n,) or (n, k)") from None
    if (
        values.ndim not in (1, 2)
        or np.isinf(values).any()
        or (values.ndim == 1 and np.isnan(values).any())
    ):
        raise InputError("y must be finite numbers of shape (n,) or (n, k)")
    if np.nanmax(np.abs(values), initial=0) > MAX_TARGET:
        raise InputError(f"y holds numbers beyond ±{MAX_TARGET:g}: rescale the targets")
    if values.ndim == 2 and len(values):
        empty = np.flatnonzero(np.isnan(values).all(axis=0))
        if len(empty):
            name = target_names(y)[empty[0]]
            raise InputError(f"target {name!r} has no numbers to learn from: leave it out")
    return values


def mean_and_scale(values: Array, weights: Floats) -> tuple[Array, Array]:
    """Weighted mean and standard deviation (1 where it is 0) of known targets, shape () or (k,).

    >>> mean, scale = mean_and_scale(np.array([1.0, 3.0, 9.0]), np.array([1.0, 1.0, 0.0]))
    >>> float(mean), float(scale)
    (2.0, 1.0)
    """
    known = np.isfinite(values)
    counted = known * weights.reshape(-1, *[1] * (values.ndim - 1))
    total = np.maximum(counted.sum(axis=0), np.finfo(np.float64).tiny)
    mean = (counted * np.where(known, values, 0.0)).sum(axis=0) / total
    gaps = np.where(known, values - mean, 0.0)
    # A power of two, so that squares of tiny numbers do not vanish and others keep their bits.
    unit = np.ldexp(1.0, np.frexp(np.abs(gaps).max(axis=0, initial=0.0))[1])
    deviation = unit * np.sqrt((counted * (gaps / unit) ** 2).sum(axis=0) / total)
    return mean, np.where(deviation > 0, deviation, 1.0)


def sample_weights(sample_weight: ArrayLike | None, n: int) -> Floats:
    """One finite weight per example, not negative and not all zero, shape (n, 1)."""
    if sample_weight is None:
        return np.ones((n, 1))
    weights: Floats = _check_sample_weight(
        sample_weight, np.empty((n, 1)), dtype=np.float64, ensure_non_negative=True
    )
    if not weights.any():
        raise InputError("sample_weight is zero everywhere: there is nothing to learn from")
    return weights[:, None]


def _check_types(y: Any) -> None:
    """Raise for a list, or an array of objects, with missing values or with several types."""
    if isinstance(y, np.ndarray) and y.dtype.kind != "O":
        return
    values = y.ravel() if isinstance(y, np.ndarray) else y
    kinds = set()
    for number, value in enumerate(values):
        if value is None:
            raise InputError(f"y has no class for example {number}")
        if isinstance(value, bool | np.bool_):
            kinds.add("true or false")
        elif isinstance(value, Number):
            kinds.add("numbers")
        elif isinstance(value, str):
            kinds.add("text")
        elif not isinstance(value, list | tuple | np.ndarray):
            kinds.add(type(value).__name__)
    if len(kinds) > 1:
        raise InputError(f"y mixes {' and '.join(sorted(kinds))}: write all classes the same way")
