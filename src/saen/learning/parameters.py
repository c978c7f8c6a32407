"""Arguments of estimators as dataclass fields that know which values they accept."""

from __future__ import annotations

import inspect
import sys
import textwrap
from dataclasses import Field, field, fields
from numbers import Integral, Real
from pathlib import Path
from typing import Any, TypeVar

from sklearn.utils._param_validation import (
    HasMethods,
    Interval,
    InvalidParameterError,
    StrOptions,
    validate_parameter_constraints,
)

from saen.errors import InputError

__all__ = ["HasMethods", "Interval", "Parameters", "StrOptions", "parameter", "settings_of"]

T = TypeVar("T")
WIDTH = 84
_TYPES = {
    str: "str",
    Path: "path",
    Real: "float",
    list: "list",
    tuple: "tuple",
    dict: "dict",
    None: "None",
    "boolean": "bool",
    "array-like": "list of int",
    "random_state": "int, RandomState or None",
}


def parameter(default: Any, *accepts: Any, doc: str = "", runtime: bool = False) -> Any:
    """An argument with the values that it accepts and its entry in the docstring.

    `runtime` arguments do not decide what is learned. An argument without `doc` has that of the
    base class.
    """
    return field(
        default=default, metadata={"accepts": list(accepts), "doc": doc, "runtime": runtime}
    )


def documented(cls: type[T]) -> type[T]:
    """Add an entry for every argument to the docstring of a class, before its examples."""
    known = [getattr(base, "__dataclass_fields__", {}) for base in cls.__mro__]
    names = inspect.signature(cls).parameters
    entries = []
    for name in sorted(names, key=lambda name: known[0][name].metadata["runtime"]):
        docs = [each[name].metadata["doc"] for each in known if name in each]
        words = textwrap.indent(textwrap.fill(next(filter(None, docs)), WIDTH), "    ")
        kind, default = _type_of(known[0][name]), known[0][name].default
        entries.append(f"{name} : {kind}, default={default!r}\n{words}")
    text, examples, code = inspect.cleandoc(cls.__doc__ or "").partition("\n\nExamples\n")
    listed = "\n".join(entries)
    cls.__doc__ = f"{text}\n\nParameters\n----------\n{listed}{examples}{code}\n"
    return cls


def _type_of(argument: Field[Any]) -> str:
    """The values that an argument accepts, as docstrings write types."""
    words = []
    for each in argument.metadata["accepts"]:
        if isinstance(each, StrOptions):
            options = sorted(each.options, key=lambda option: (option != argument.default, option))
            words.append(f"{{{', '.join(map(repr, options))}}}")
        elif isinstance(each, Interval):
            words.append(_range(each))
        elif isinstance(each, HasMethods):
            words.append("Decomposition")
        else:
            words.append(_TYPES[each])
    return " or ".join(filter(None, [", ".join(words[:-1]), words[-1]]))


def _range(interval: Interval) -> str:
    """The numbers of an interval."""
    kind = "int" if interval.type is Integral else "float"
    low, high, closed = interval.left, interval.right, interval.closed
    if low is None:
        return kind
    if high is None or high >= sys.maxsize:
        return f"{kind} {'≥' if closed in ('left', 'both') else '>'} {low}"
    left = "[" if closed in ("left", "both") else "("
    right = "]" if closed in ("right", "both") else ")"
    return f"{kind} in {left}{low}, {high}{right}"


def arguments(cls: type) -> list[Field[Any]]:
    """The fields of a class that are arguments, in order."""
    return [f for f in fields(cls) if f.init]


def setting_names(cls: type) -> tuple[str, ...]:
    """The arguments that decide what is learned: what presets may set and models record."""
    return tuple(f.name for f in arguments(cls) if not f.metadata["runtime"])


def settings_of(estimator: Any) -> dict[str, Any]:
    """The values of these arguments, by name."""
    return {name: getattr(estimator, name) for name in setting_names(type(estimator))}


def clone_with(estimator: Any, **changes: Any) -> Any:
    """An unfitted copy of arguments, with changes."""
    own = {f.name: getattr(estimator, f.name) for f in arguments(type(estimator))}
    return type(estimator)(**own | changes)


def validate(estimator: Parameters) -> None:
    """Raise `InputError` for an argument of the wrong type or out of range."""
    accepts = {f.name: f.metadata["accepts"] for f in arguments(type(estimator))}
    values = {name: getattr(estimator, name) for name in accepts}
    try:
        validate_parameter_constraints(accepts, values, type(estimator).__name__)
    except InvalidParameterError as error:
        raise InputError(str(error)) from None
    estimator._check()  # noqa: SLF001 - what only the class knows


class Parameters:
    """Arguments that are checked together."""

    def _check(self) -> None:
        """Raise `InputError` for arguments that their types and ranges do not rule out."""
        return
