"""Targets as arrays: classes or real numbers, checked before anything is learned."""

from __future__ import annotations

from numbers import Number
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.multiclass import check_classification_targets

from saen._util.arrays import Array
from saen.errors import InputError


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


def as_numbers(y: ArrayLike) -> NDArray[np.float64]:
    """Finite real numbers, shape (n,) or (n, k); `InputError` for anything else.

    >>> as_numbers([1, 2.5]).tolist()
    [1.0, 2.5]
    """
    try:
        values = np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError("y must be finite numbers of shape (n,) or (n, k)") from None
    if values.ndim not in (1, 2) or not np.isfinite(values).all():
        raise InputError("y must be finite numbers of shape (n,) or (n, k)")
    return values


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
