"""scikit-learn's base classes: without types they would let any argument pass."""

# ruff: noqa: D101, D102
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from saen._util.arrays import Array

    class BaseEstimator:
        def get_params(self, deep: bool = True) -> dict[str, Any]: ...
        def set_params(self, **params: Any) -> Self: ...
        def __sklearn_tags__(self) -> Any: ...

    class ClassifierMixin(BaseEstimator):
        def score(self, X: Any, y: Any, sample_weight: Any = None) -> float: ...

    class RegressorMixin(ClassifierMixin): ...

    class TransformerMixin(BaseEstimator):
        def fit_transform(self, X: Any, y: Any = None) -> Any: ...
        def set_output(self, *, transform: str | None = None) -> Self: ...

    class ClassNamePrefixFeaturesOutMixin(BaseEstimator):
        def get_feature_names_out(self, input_features: Any = None) -> Array: ...

else:
    from sklearn.base import (
        BaseEstimator,
        ClassifierMixin,
        ClassNamePrefixFeaturesOutMixin,
        RegressorMixin,
        TransformerMixin,
    )

__all__ = [
    "BaseEstimator",
    "ClassNamePrefixFeaturesOutMixin",
    "ClassifierMixin",
    "RegressorMixin",
    "TransformerMixin",
]
