"""What classifiers and regressors of all kinds share, with one target or several."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.validation import check_is_fitted

from saen._util.arrays import Array, Floats
from saen.data._collection import known_targets
from saen.errors import InputError
from saen.learning.calibration import IntervalMixin
from saen.learning.targets import Targets, as_numbers, given

MAX_CLASS_WEIGHT = 1e30
"""Well within float32."""


class ClassPredictor(ClassifierMixin):
    """Classifiers with `predict_proba`: of C classes, or of t targets with two classes each.

    `classes_` is (C,), or (t, 2) with `target_names_`.
    """

    classes_: Array
    target_names_: list[str]
    predict_proba: Any

    @property
    def several_(self) -> bool:
        """Whether there are several targets, of two classes each."""
        check_is_fitted(self, "classes_")
        return self.classes_.ndim == 2

    def classes_at(self, proba: Floats) -> Array:
        """The most probable classes, (n,) or (n, t), by probabilities as of `predict_proba`."""
        if self.several_:
            several: Array = np.where(proba > 0.5, self.classes_[:, 1], self.classes_[:, 0])
            return several
        result: Array = self.classes_[proba.argmax(axis=1)]
        return result

    def predict(self, X: Any) -> Array:
        """The most probable class of every example, shape (n,), or (n, t) of several targets."""
        return self.classes_at(self.predict_proba(X))

    def predict_log_proba(self, X: Any) -> Floats:
        """Logarithms of the class probabilities, shape (n, classes)."""
        logarithms: Floats = np.log(np.maximum(self.predict_proba(X), np.finfo(np.float64).tiny))
        return logarithms

    def score(self, X: Any, y: Targets, sample_weight: ArrayLike | None = None) -> float:
        """The accuracy; of several targets, the mean of theirs over the examples where known."""
        if not self.several_:
            return float(super().score(X, given(y), sample_weight))
        right, weights = self.predict(X) == (table := np.asarray(given(y))), known_targets(table)
        if sample_weight is not None:
            weights = weights * np.asarray(sample_weight)[:, None]
        counted = weights.any(axis=0)
        return float(np.average(right[:, counted], axis=0, weights=weights[:, counted]).mean())


class NumberPredictor(IntervalMixin, RegressorMixin):
    """Regressors of one number, or of several with gaps."""

    def score(self, X: Any, y: Targets, sample_weight: ArrayLike | None = None) -> float:
        """R²; of several numbers, the mean of theirs over the examples where known."""
        from sklearn.metrics import r2_score  # slow to import

        true, predicted = as_numbers(given(y)), self.predict(X)
        columns = zip(
            true.reshape(len(true), -1).T, predicted.reshape(len(true), -1).T, strict=True
        )
        weights = np.ones(len(true)) if sample_weight is None else np.asarray(sample_weight)
        known = [(*pair, np.isfinite(pair[0])) for pair in columns]
        return float(np.mean([r2_score(a[i], b[i], sample_weight=weights[i]) for a, b, i in known]))


def class_factors(class_weight: Any, codes: Array, classes: Array) -> Floats:
    """The factor of every class, from the examples that count, (C,), or (t, 2) of t targets.

    `class_weight` is as for scikit-learn, `codes` are (n,), or (n, t) with -1 where a target is
    unknown. A class without examples has no effect, and no influence if weights are balanced.

    >>> codes, classes = np.array([0, 0, 0, 1]), np.array(["a", "b"])
    >>> class_factors("balanced", codes, classes).round(2).tolist()
    [0.67, 2.0]
    """
    if codes.ndim == 2:
        columns = zip(codes.T, classes, strict=True)
        return np.stack([class_factors(class_weight, c[c >= 0], own) for c, own in columns])
    for name, weight in class_weight.items() if isinstance(class_weight, dict) else ():
        if not isinstance(weight, int | float | np.number) or not 0 <= weight <= MAX_CLASS_WEIGHT:
            raise InputError(
                f"class_weight: the weight of {name!r} must be a number from 0 to "
                f"{MAX_CLASS_WEIGHT:g}"
            )
    factors = np.ones(len(classes))
    if isinstance(class_weight, dict):
        factors[:] = compute_class_weight(class_weight, classes=classes, y=classes)
    elif class_weight is not None:
        known = np.unique(codes)
        factors[known] = compute_class_weight(class_weight, classes=known, y=codes)
    return factors
