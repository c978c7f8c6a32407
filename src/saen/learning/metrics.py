"""Scores: how good predictions are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import binomtest
from sklearn.metrics import (
    accuracy_score,
    confusion_matrix,
    mean_absolute_error,
    precision_recall_fscore_support,
    r2_score,
    root_mean_squared_error,
)

from saen._util.arrays import Array
from saen.errors import InputError

Floats = NDArray[np.float64]

MIN_PROBABILITY = 1e-12
"""Smaller probabilities are raised to this, so that log losses stay finite."""


@dataclass(frozen=True, eq=False)
class Calibration:
    """Predictions binned by confidence, in bins of equal width from 0 to 1.

    - `confidence`: mean confidence of each bin, shape (bins,);
    - `accuracy`: share of correct predictions in each bin, shape (bins,);
    - `counts`: number of predictions in each bin, shape (bins,).

    The first two are 0 for empty bins.
    """

    confidence: Floats
    accuracy: Floats
    counts: NDArray[np.int64]

    @property
    def error(self) -> float:
        """The expected calibration error: the mean gap of the bins, weighted by their counts."""
        gaps = np.abs(self.accuracy - self.confidence)
        return float(gaps @ self.counts / max(self.counts.sum(), 1))


@dataclass(frozen=True, eq=False)
class ClassificationScores:
    """Scores of predicted probabilities.

    - `accuracy` and its 95 % Wilson `interval`;
    - `majority`: accuracy of always predicting the most frequent class;
    - `log_loss`: mean over all predictions;
    - `confusion`: counts by true class (row) and predicted class (column), shape (C, C);
    - `recall`, `precision`: per class, shape (C,), NaN where there is nothing to divide by;
    - `calibration`: accuracy by confidence.
    """

    accuracy: float
    interval: tuple[float, float]
    majority: float
    log_loss: float
    confusion: NDArray[np.int64]
    recall: Floats
    precision: Floats
    calibration: Calibration

    def to_json(self) -> dict[str, Any]:
        """As plain numbers and lists."""
        return {
            "accuracy": self.accuracy,
            "interval": list(self.interval),
            "majority": self.majority,
            "log_loss": self.log_loss,
            "calibration_error": self.calibration.error,
            "confusion": self.confusion.tolist(),
        }


@dataclass(frozen=True)
class RegressionScores:
    """Scores of predicted numbers; with several targets, their means.

    - `r2`: scikit-learn's R², None where the true values are all equal;
    - `rmse`: root mean squared error;
    - `mae`: mean absolute error, and `mae_error`, its standard error (None for one example);
    - `mae_of_mean`: mean absolute error of always predicting the mean.
    """

    r2: float | None
    rmse: float
    mae: float
    mae_error: float | None
    mae_of_mean: float

    def to_json(self) -> dict[str, Any]:
        """As plain numbers."""
        return dict(vars(self))


def classification_scores(
    y: ArrayLike, proba: ArrayLike, classes: ArrayLike
) -> ClassificationScores:
    """Score probabilities against true classes.

    Parameters
    ----------
    y
        True classes, shape (n,).
    proba
        Probabilities, shape (n, C), or (repeats, n, C) for repeated predictions, which count
        as separate predictions.
    classes
        The class of each column, shape (C,), as in `classes_` of an estimator.

    Raises `InputError` where there is nothing to score or a true class is unknown.

    >>> scores = classification_scores(["a", "b"], [[0.9, 0.1], [0.6, 0.4]], ["a", "b"])
    >>> scores.accuracy, scores.confusion.tolist()
    (0.5, [[1, 0], [1, 0]])
    """
    true, names = np.asarray(y), np.asarray(classes)
    rows = np.asarray(proba, dtype=np.float64)
    if rows.size == 0:
        raise InputError("there are no predictions to score")
    rows = rows.reshape(-1, len(true), len(names))
    unknown = np.setdiff1d(true, names)
    if len(unknown):
        raise InputError(f"unknown class {str(unknown[0])!r} among the true classes")
    order = np.argsort(names)
    targets = order[np.searchsorted(names, true, sorter=order)]
    repeated = np.tile(targets, len(rows))
    predicted = rows.argmax(axis=-1).ravel()
    labels = np.arange(len(names))
    precision, recall, _, support = precision_recall_fscore_support(
        repeated, predicted, labels=labels, zero_division=np.nan
    )
    correct = int(accuracy_score(repeated, predicted, normalize=False))
    interval = binomtest(correct, len(repeated)).proportion_ci(0.95, "wilson")
    return ClassificationScores(
        accuracy=correct / len(repeated),
        interval=(float(interval.low), float(interval.high)),
        majority=float(support.max() / len(repeated)),
        log_loss=float(log_losses(targets, rows).mean()),
        confusion=confusion_matrix(repeated, predicted, labels=labels),
        recall=recall,
        precision=precision,
        calibration=calibrate(targets, rows),
    )


def regression_scores(
    y: ArrayLike, prediction: ArrayLike, baseline: ArrayLike | None = None
) -> RegressionScores:
    """Score predicted numbers against true ones.

    Parameters
    ----------
    y, prediction
        True and predicted numbers, shape (n,) or (n, k).
    baseline
        What `mae_of_mean` predicts for every example, such as the mean of the training targets;
        by default the mean of `y`. A number or shape (k,).

    Raises `InputError` where there is nothing to score.

    >>> regression_scores([1.0, 2.0, 3.0], [1.0, 2.0, 4.0]).r2
    0.5
    """
    true = np.asarray(y, dtype=np.float64)
    if true.size == 0:
        raise InputError("there are no predictions to score")
    true = true.reshape(len(true), -1)
    predicted = np.asarray(prediction, dtype=np.float64).reshape(true.shape)
    misses = np.abs(true - predicted).mean(axis=1)
    mean = true.mean(axis=0) if baseline is None else np.broadcast_to(baseline, true.shape[1:])
    constant = (true == true[0]).all(axis=0).any()
    return RegressionScores(
        r2=None if constant else float(r2_score(true, predicted)),
        rmse=float(root_mean_squared_error(true, predicted)),
        mae=float(mean_absolute_error(true, predicted)),
        mae_error=float(misses.std(ddof=1) / len(true) ** 0.5) if len(true) > 1 else None,
        mae_of_mean=float(np.abs(true - mean).mean()),
    )


def prediction_scores(
    classes: Array | None, targets: Array | None, predictions: Array
) -> dict[str, float]:
    """`accuracy`, or `r2` and `mae`, of predictions; empty where the targets do not allow it.

    `classes` (C,) are those that can be predicted, or None for numbers; `targets` (n,) the true
    values, if there are any; `predictions` (n,). Classes are compared as text: class 1 of a model
    is the class "1" of a table.

    >>> prediction_scores(np.array([0, 1]), np.array(["1", "0"]), np.array([1, 1]))
    {'accuracy': 0.5}
    """
    if targets is None or targets.ndim != 1 or len(predictions) != len(targets) or not len(targets):
        return {}
    if classes is not None:
        true = targets.astype(str)
        if not np.isin(true, classes.astype(str)).any():
            return {}
        return {"accuracy": float(accuracy_score(true, predictions.astype(str)))}
    if targets.dtype.kind not in "iuf":
        return {}
    scores = regression_scores(targets, predictions)
    return ({} if scores.r2 is None else {"r2": scores.r2}) | {"mae": scores.mae}


def calibrate(targets: ArrayLike, probabilities: ArrayLike, bins: int = 10) -> Calibration:
    """Bin predictions by the probability of the predicted class.

    `targets` are indices of the true classes, shape (n,); `probabilities` have shape (…, n, C).

    >>> round(calibrate([0, 1, 1], [[0.75, 0.25], [0.75, 0.25], [0.25, 0.75]]).error, 3)
    0.083
    """
    rows = np.asarray(probabilities, dtype=np.float64)
    confidence = rows.max(axis=-1)
    correct = rows.argmax(axis=-1) == np.asarray(targets)
    bin_of = np.minimum((confidence * bins).astype(np.int64), bins - 1).ravel()
    counts = np.bincount(bin_of, minlength=bins)
    n = np.maximum(counts, 1)
    return Calibration(
        np.bincount(bin_of, confidence.ravel(), bins) / n,
        np.bincount(bin_of, correct.ravel().astype(np.float64), bins) / n,
        counts,
    )


def log_losses(targets: ArrayLike, probabilities: ArrayLike) -> Floats:
    """Minus the log of the probability of the true class, the mean over repeats, shape (n,).

    `targets` are indices of the true classes, shape (n,); `probabilities` (repeats, n, C).

    >>> log_losses([0, 1], [[[1.0, 0.0], [0.5, 0.5]]]).round(3).tolist()
    [0.0, 0.693]
    """
    rows = np.asarray(probabilities, dtype=np.float64)
    true = rows[:, np.arange(rows.shape[1]), np.asarray(targets, dtype=np.int64)]
    losses: Floats = -np.log(np.maximum(true, MIN_PROBABILITY)).mean(axis=0) + 0.0
    return losses
