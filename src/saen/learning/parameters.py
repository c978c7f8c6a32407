"""Arguments of estimators as dataclass fields that know which values they accept."""

from __future__ import annotations

from dataclasses import Field, field, fields
from typing import Any

from sklearn.utils._param_validation import (
    HasMethods,
    Interval,
    InvalidParameterError,
    StrOptions,
    validate_parameter_constraints,
)

from saen.errors import InputError

__all__ = ["HasMethods", "Interval", "Parameters", "StrOptions", "parameter", "settings_of"]


def parameter(default: Any, *accepts: Any, runtime: bool = False) -> Any:
    """An argument with the values that it accepts; `runtime` ones do not decide what is learned."""
    return field(default=default, metadata={"accepts": list(accepts), "runtime": runtime})


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


class Parameters:
    """Arguments that are checked together."""

    def validate(self) -> None:
        """Raise `InputError` for an argument of the wrong type or out of range."""
        accepts = {f.name: f.metadata["accepts"] for f in arguments(type(self))}
        values = {name: getattr(self, name) for name in accepts}
        try:
            validate_parameter_constraints(accepts, values, type(self).__name__)
        except InvalidParameterError as error:
            raise InputError(str(error)) from None
