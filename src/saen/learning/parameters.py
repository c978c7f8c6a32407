"""Arguments of estimators as dataclass fields that know which values they accept."""

from __future__ import annotations

import inspect
import re
import sys
import textwrap
from collections.abc import Sequence
from dataclasses import Field, dataclass, field, fields
from numbers import Integral, Real
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from saen.errors import InputError

T = TypeVar("T")
WIDTH = 84
_SECTION = "\n\nParameters\n----------\n"
_ENTRY = re.compile(r"^(\w+)(?: : .*)?\n((?: {4}.*(?:\n|\Z))+)", re.MULTILINE)
"""An argument in a section of parameters, and the words on it."""
_TYPES = {Path: "path", Real: "float", None: "None", Sequence: "list of int"}


@dataclass(frozen=True)
class Interval:
    """Numbers of a kind between two ends, which belong to it or not; None stands for no end."""

    kind: type
    left: Any
    right: Any
    closed: str

    def __contains__(self, value: object) -> bool:
        if not isinstance(value, self.kind) or isinstance(value, bool):
            return False
        number: Any = value
        above = self.left is None or number > self.left
        below = self.right is None or number < self.right
        ends = {"left": (self.left,), "right": (self.right,), "both": (self.left, self.right)}
        return bool((above and below) or number in ends.get(self.closed, ()))

    def __str__(self) -> str:
        kind = "int" if self.kind is Integral else "float"
        low, high = self.left, self.right
        if high is None or high >= sys.maxsize:
            return f"{kind} {'≥' if self.closed in ('left', 'both') else '>'} {low}"
        left = "[" if self.closed in ("left", "both") else "("
        right = "]" if self.closed in ("right", "both") else ")"
        return f"{kind} in {left}{low}, {high}{right}"


SEED = (Interval(Integral, 0, 2**32 - 1, "both"), np.random.RandomState, None)
"""What scikit-learn takes as `random_state`."""


def parameter(default: Any, *accepts: Any, runtime: bool = False) -> Any:
    """An argument, and what it accepts: types, intervals, None, or a set of texts.

    `runtime` ones do not decide what is learned.
    """
    return field(default=default, metadata={"accepts": list(accepts), "runtime": runtime})


def documented(cls: type[T]) -> type[T]:
    """Tell in the docstring of a class of all arguments, before its examples.

    The classes that have them tell what they are, in their sections of parameters. What each of
    them accepts, and its default, are added.
    """
    words: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        words |= dict(_ENTRY.findall(inspect.cleandoc(vars(base).get("__doc__") or "")))
    known = sorted(arguments(cls), key=lambda argument: argument.metadata["runtime"])
    entries = [
        f"{each.name} : {_type_of(each)}, default={each.default!r}\n"
        + textwrap.indent(textwrap.fill(" ".join(words.get(each.name, "").split()), WIDTH), "    ")
        for each in known
    ]
    text, examples, code = inspect.cleandoc(cls.__doc__ or "").partition("\n\nExamples\n")
    listed = "\n".join(entries)
    cls.__doc__ = f"{text.partition(_SECTION)[0]}{_SECTION}{listed}{examples}{code}\n"
    return cls


def _type_of(argument: Field[Any]) -> str:
    """The values that an argument accepts, as docstrings write types."""
    words = []
    for each in argument.metadata["accepts"]:
        if isinstance(each, set):
            options = sorted(each, key=lambda option: (option != argument.default, option))
            words.append(f"{{{', '.join(map(repr, options))}}}")
        elif each in _TYPES:
            words.append(_TYPES[each])
        else:
            words.append(each.__name__ if isinstance(each, type) else str(each))
    words.sort(key=lambda word: word.startswith("{"))  # names after types
    return " or ".join(filter(None, [", ".join(words[:-1]), words[-1]]))


def _accepts(accepted: Any, value: Any) -> bool:
    """Whether a value is of a type, or among others; text is no sequence, and a list no text."""
    if accepted is None:
        return value is None
    if accepted is Sequence:
        return isinstance(value, Sequence | np.ndarray) and not isinstance(value, str)
    if isinstance(accepted, set):
        return isinstance(value, str) and value in accepted
    return isinstance(value, accepted) if isinstance(accepted, type) else value in accepted


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
    for argument in arguments(type(estimator)):
        value = getattr(estimator, argument.name)
        if not any(_accepts(each, value) for each in argument.metadata["accepts"]):
            raise InputError(
                f"{type(estimator).__name__}: {argument.name} must be {_type_of(argument)}, not "
                f"{value!r:.100}"
            )
    estimator._check()  # noqa: SLF001 - what only the class knows


class Parameters:
    """Arguments that are checked together."""

    def _check(self) -> None:
        """Raise `InputError` for arguments that their types and ranges do not rule out."""
        return
