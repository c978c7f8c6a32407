"""Arguments of estimators as dataclass fields that know which values they accept."""

from __future__ import annotations

from dataclasses import Field, field, fields
from typing import Any

from sklearn.utils._param_validation import InvalidParameterError

from saen.errors import InputError


def parameter(default: Any, *accepts: Any, runtime: bool = False) -> Any:
    """An argument with the values that it accepts; `runtime` ones do not decide what is learned."""
    return field(default=default, metadata={"accepts": list(accepts), "runtime": runtime})


def arguments(cls: type) -> list[Field[Any]]:
    """The fields of a class that are arguments, in order."""
    return [f for f in fields(cls) if f.init]


class Parameters:
    """Names and checks of the arguments of estimators whose X is no table.

    Goes before scikit-learn's `BaseEstimator`.
    """

    _validate_params: Any

    @classmethod
    def setting_names(cls) -> tuple[str, ...]:
        """The arguments that decide what is learned: what presets may set and models record."""
        return tuple(f.name for f in arguments(cls) if not f.metadata["runtime"])

    @property
    def _parameter_constraints(self) -> dict[str, list[Any]]:
        """What `_validate_params` of scikit-learn looks at."""
        return {f.name: f.metadata["accepts"] for f in arguments(type(self))}

    def validate(self) -> None:
        """Raise `InputError` for an argument of the wrong type or out of range."""
        try:
            self._validate_params()
        except InvalidParameterError as error:
            raise InputError(str(error)) from None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.two_d_array = False
        return tags
