"""Scores: how good predictions are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtrit

from saen._util.arrays import Array, Floats
from saen._util.lazy import sklearn_metrics, stats
from saen.errors import InputError

MIN_PROBABILITY = 1e-12
"""Smaller probabilities are raised to this, so that log losses stay finite."""


@dataclass(frozen=True, eq=False)
class Reliability:
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
    calibration: Reliability

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
    - `mae`: mean absolute error, and `interval`, its 95 % interval (None for one example);
    - `mae_of_mean`: mean absolute error of always predicting the mean.
    """

    r2: float | None
    rmse: float
    mae: float
    interval: tuple[float, float] | None
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
    y : ArrayLike
        True classes, shape (n,).
    proba : ArrayLike
        Probabilities, shape (n, C), or (repeats, n, C) for repeated predictions, which count as
        separate predictions.
    classes : ArrayLike
        The class of each column, shape (C,), as in `classes_` of an estimator.

    Raises
    ------
    InputError
        Where there is nothing to score or a true class is unknown.

    Examples
    --------
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
    precision, recall, _, support = sklearn_metrics.precision_recall_fscore_support(
        repeated, predicted, labels=labels, zero_division=np.nan
    )
    correct = int((repeated == predicted).sum())
    interval = stats.binomtest(correct, len(repeated)).proportion_ci(0.95, "wilson")
    return ClassificationScores(
        accuracy=correct / len(repeated),
        interval=(float(interval.low), float(interval.high)),
        majority=float(support.max() / len(repeated)),
        log_loss=float(log_losses(targets, rows).mean()),
        confusion=sklearn_metrics.confusion_matrix(repeated, predicted, labels=labels),
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
    y : ArrayLike
        True and predicted numbers, shape (n,) or (n, k); of several, true ones may be NaN.
    prediction : ArrayLike
        True and predicted numbers, shape (n,) or (n, k); of several, true ones may be NaN.
    baseline : ArrayLike | None, default=None
        What `mae_of_mean` predicts for every example, such as the mean of the training targets; by
        default the mean of `y`. A number, shape (k,), or the shape of `y`.

    Raises
    ------
    InputError
        Where there is nothing to score.

    Examples
    --------
    >>> regression_scores([1.0, 2.0, 3.0], [1.0, 2.0, 4.0]).r2
    0.5
    """
    true = np.asarray(y, dtype=np.float64)
    if true.size == 0:
        raise InputError("there are no predictions to score")
    true = true.reshape(len(true), -1)
    predicted = np.asarray(prediction, dtype=np.float64).reshape(true.shape)
    misses = np.abs(true - predicted)
    misses = np.nanmean(misses[np.isfinite(misses).any(axis=1)], axis=1)
    mean = np.nanmean(true, axis=0) if baseline is None else np.asarray(baseline)
    mean = mean.reshape(true.shape) if mean.shape == np.shape(y) else mean
    r2, rmse, mae = (
        REGRESSION_METRICS[name].each(true, predicted) for name in ("r2", "rmse", "mae")
    )
    return RegressionScores(
        r2=float(r2.mean()) if np.isfinite(r2).all() else None,
        rmse=float(np.nanmean(rmse)),
        mae=float(np.nanmean(mae)),
        interval=_interval(misses) if len(misses) > 1 else None,
        mae_of_mean=float(np.nanmean(np.abs(true - mean))),
    )


def several_scores(targets: Array, outputs: Floats, names: Sequence[str]) -> dict[str, Any]:
    """The mean of every metric over several targets, and under `targets` those of each by name.

    Targets and outputs as for `Metric.each`; None where a metric is not defined.

    >>> codes, proba = np.array([[0, 1], [1, -1]]), np.array([[0.1, 0.3], [0.6, 0.9]])
    >>> scores = several_scores(codes, proba, "ab")
    >>> scores["accuracy"], scores["targets"]["a"]["accuracy"], scores["targets"]["b"]["roc_auc"]
    (0.5, 1.0, None)
    """
    regression = targets.dtype.kind == "f"
    metrics = REGRESSION_METRICS if regression else CLASSIFICATION_METRICS
    each = {name: metric.each(targets, outputs) for name, metric in metrics.items()}
    means = {name: metric(targets, outputs) for name, metric in metrics.items()}
    return {
        **{name: value if np.isfinite(value) else None for name, value in means.items()},
        "targets": {
            target: {
                name: float(scores[k]) if np.isfinite(scores[k]) else None
                for name, scores in each.items()
            }
            for k, target in enumerate(names)
        },
    }


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
        true, predicted = (class_codes_of(values, classes) for values in (targets, predictions))
        return {"accuracy": float((true == predicted).mean())} if (true >= 0).any() else {}
    if targets.dtype.kind not in "iuf":
        return {}
    scores = regression_scores(targets, predictions)
    return ({} if scores.r2 is None else {"r2": scores.r2}) | {"mae": scores.mae}


def class_codes_of(values: Array, classes: Array) -> NDArray[np.int64]:
    """The place of each value among the classes, compared as text; -1 for none.

    >>> class_codes_of(np.array([1, 3]), np.array(["0", "1"])).tolist()
    [1, -1]
    """
    # By distinct values: a million texts would take long.
    distinct, codes = np.unique(values, return_inverse=True)
    place = {text: code for code, text in enumerate(classes.astype(str).tolist())}
    known = [place.get(text, -1) for text in distinct.astype(str).tolist()]
    return np.array(known, dtype=np.int64)[codes]


def calibrate(targets: ArrayLike, probabilities: ArrayLike, bins: int = 10) -> Reliability:
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
    return Reliability(
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


# -- metrics by name ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Metric:
    """A score by name.

    - `name`: in options and JSON; `title`: in words;
    - `function`: from the indices of the true classes (n,) and probabilities (n, C), or from true
      and predicted numbers (n,), to the score; NaN where it is not defined;
    - `higher_is_better`, and `percent`: whether it is shown in percent;
    - `bounds`: between which every score lies.
    """

    name: str
    title: str
    function: Callable[[Array, Floats], float]
    higher_is_better: bool = True
    percent: bool = False
    bounds: tuple[float, float] = (0.0, 1.0)

    def __call__(self, targets: ArrayLike, outputs: ArrayLike) -> float:
        """The score of these predictions; of several targets, the mean of their scores.

        >>> CLASSIFICATION_METRICS["roc_auc"]([0, 0, 1], [[0.9, 0.1], [0.6, 0.4], [0.2, 0.8]])
        1.0
        """
        scores = self.each(targets, outputs)
        defined = scores[np.isfinite(scores)]
        return float(defined.mean()) if len(defined) else np.nan

    def each(self, targets: ArrayLike, outputs: ArrayLike) -> Floats:
        """The score of every target, (t,); NaN where it is not defined.

        Several targets are class codes (n, t), -1 where unknown, with the probabilities of class 1,
        (n, t); or numbers (n, t), NaN where unknown.

        >>> CLASSIFICATION_METRICS["accuracy"].each([[0, 1], [1, -1]], [[0.1, 0.3], [0.6, 0.9]])
        array([1., 0.])
        """
        true, rows = np.asarray(targets), np.asarray(outputs, dtype=np.float64)
        if true.ndim == 1:
            return np.array([self.function(true, rows)])
        classes = true.dtype.kind in "iu"
        known = true >= 0 if classes else np.isfinite(true)
        scores = np.full(true.shape[1], np.nan)
        for target in np.flatnonzero(known.any(axis=0)).tolist():
            tested = known[:, target]
            column = rows[tested, target]
            if classes:
                column = np.column_stack([1 - column, column])
            scores[target] = self.function(true[tested, target], column)
        return scores

    def goodness(self, score: Floats) -> Floats:
        """The score turned so that more is better."""
        return score if self.higher_is_better else -score

    def show(self, value: float) -> str:
        """A value as text, without the unit.

        >>> CLASSIFICATION_METRICS["accuracy"].show(0.5), REGRESSION_METRICS["mae"].show(0.5)
        ('50.0', '0.5')
        """
        return f"{100 * value:.1f}" if self.percent else f"{value:.4g}"

    @property
    def unit(self) -> str:
        """What stands behind a value that is shown."""
        return " %" if self.percent else ""


# Scores of folds are computed by the thousand, so these are a few array operations each. Checking
# their arguments takes scikit-learn's functions, which give the same numbers, far longer.


def _one_vs_rest(function: Callable[[Floats, Floats], float], codes: Array, rows: Floats) -> float:
    """The mean over classes of the score of one class against the rest; of two, the second only.

    Classes that have no or all examples are left out. `function` gets the numbers of examples of
    the class, and of the others, at every threshold from the highest score down.
    """
    columns = range(rows.shape[1]) if rows.shape[1] > 2 else (1,)
    each = [
        function(*_above_thresholds(codes == code, rows[:, code]))
        for code in columns
        if 0 < (codes == code).sum() < len(codes)
    ]
    return float(np.mean(each)) if each else np.nan


def _above_thresholds(positive: Array, scores: Floats) -> tuple[Floats, Floats]:
    order = np.argsort(-scores)  # of equal scores, in any order: only their ends count
    ends = np.append(np.flatnonzero(np.diff(scores[order])), len(order) - 1)
    true = np.cumsum(positive[order], dtype=np.float64)[ends]
    return true, ends + 1 - true


def _roc_auc(true: Floats, false: Floats) -> float:
    area = np.trapezoid(np.append(0.0, true), np.append(0.0, false))
    return float(area / (true[-1] * false[-1]))


def _average_precision(true: Floats, false: Floats) -> float:
    return float((np.diff(true, prepend=0.0) * true / (true + false)).sum() / true[-1])


def _confusion(codes: Array, rows: Floats) -> Floats:
    """How many examples of each class are predicted as each class, (C, C)."""
    n = rows.shape[1]
    pairs = codes.astype(np.int64) * n + rows.argmax(axis=1)
    counts: Floats = np.bincount(pairs, minlength=n * n).reshape(n, n).astype(np.float64)
    return counts


def _accuracy(codes: Array, rows: Floats) -> float:
    return float((rows.argmax(axis=1) == codes).mean())


def _balanced_accuracy(codes: Array, rows: Floats) -> float:
    counts = _confusion(codes, rows)
    present = counts.sum(axis=1) > 0
    return float((np.diag(counts)[present] / counts.sum(axis=1)[present]).mean())


def _f1(codes: Array, rows: Floats) -> float:
    counts = _confusion(codes, rows)
    both = counts.sum(axis=0) + counts.sum(axis=1)
    return float((2 * np.diag(counts)[both > 0] / both[both > 0]).mean())


def _mcc(codes: Array, rows: Floats) -> float:
    counts = _confusion(codes, rows)
    true, predicted, n = counts.sum(axis=1), counts.sum(axis=0), counts.sum()
    if (true > 0).sum() < 2:
        return np.nan
    scale = np.sqrt((n * n - true @ true) * (n * n - predicted @ predicted))
    return float((np.trace(counts) * n - true @ predicted) / scale) if scale else 0.0


def _unit(values: Array) -> Any:
    """A power of two near the largest number: squares of what it divides stay within range."""
    return np.ldexp(1.0, np.frexp(np.abs(values).max())[1])


def _interval(errors: Floats) -> tuple[float, float]:
    """Student's 95 % interval of the mean of absolute errors."""
    unit, n = _unit(errors), len(errors)
    radius = stats.t.ppf(0.975, n - 1) * (errors / unit).std(ddof=1) / n**0.5
    mean = (errors / unit).mean()
    return float(unit * max(mean - radius, 0.0)), float(unit * (mean + radius))


def _r2(true: Array, predicted: Floats) -> float:
    if (true == true[0]).all():
        return np.nan
    unit = _unit(true)
    with np.errstate(over="ignore"):  # minus infinity is not defined
        squares = ((true - predicted) / unit) ** 2
        return float(1 - squares.sum() / (((true - true.mean()) / unit) ** 2).sum())


def _mae(true: Array, predicted: Floats) -> float:
    return float(np.abs(true - predicted).mean())


def _rmse(true: Array, predicted: Floats) -> float:
    misses = true - predicted
    unit = _unit(misses)
    return float(unit * np.sqrt(np.mean((misses / unit) ** 2)))


CLASSIFICATION_METRICS = {
    metric.name: metric
    for metric in (
        Metric("accuracy", "accuracy", _accuracy, percent=True),
        Metric("balanced_accuracy", "balanced accuracy", _balanced_accuracy, percent=True),
        Metric("f1", "F1 (macro)", _f1, percent=True),
        Metric("roc_auc", "ROC-AUC", partial(_one_vs_rest, _roc_auc), percent=True),
        Metric(
            "average_precision",
            "average precision",
            partial(_one_vs_rest, _average_precision),
            percent=True,
        ),
        Metric(
            "log_loss",
            "log loss",
            lambda y, p: log_losses(y, p[None]).mean(),
            False,
            bounds=(0.0, np.inf),
        ),
        Metric("mcc", "Matthews correlation", _mcc, bounds=(-1.0, 1.0)),
    )
}
"""What a classification can be scored by; the first is the default."""

REGRESSION_METRICS = {
    metric.name: metric
    for metric in (
        Metric("mae", "mean absolute error", _mae, False, bounds=(0.0, np.inf)),
        Metric("rmse", "root mean squared error", _rmse, False, bounds=(0.0, np.inf)),
        Metric("r2", "R²", _r2, bounds=(-np.inf, 1.0)),
    )
}
"""What a regression can be scored by; the first is the default."""


def find_metric(name: str | None, *, regression: bool) -> Metric:
    """The metric of that name, or the default; `InputError` for one that does not apply.

    >>> find_metric(None, regression=True).name
    'mae'
    """
    metrics = REGRESSION_METRICS if regression else CLASSIFICATION_METRICS
    if name is None:
        return next(iter(metrics.values()))
    if name not in metrics:
        task = "real numbers" if regression else "classes"
        raise InputError(f"metric for {task} is one of {', '.join(metrics)}, not {name!r}")
    return metrics[name]


def corrected_interval(
    scores: ArrayLike, test_share: float, bounds: tuple[float, float] = (-np.inf, np.inf)
) -> tuple[float, float] | None:
    """A 95 % interval for the mean of scores whose training parts overlap (Nadeau and Bengio).

    None for fewer than two scores.

    Parameters
    ----------
    scores : ArrayLike
        One score per fold of every repeat, shape (J,).
    test_share : float
        Test examples per training example, 1/9 for ten folds, see `corrected_variance`.
    bounds : tuple[float, float], default=(-np.inf, np.inf)
        Between which scores lie. The interval of a t distribution knows nothing of them; what is
        beyond them is cut off.

    Examples
    --------
    >>> low, high = corrected_interval([0.8, 0.9, 0.7, 0.8], 1 / 3)
    >>> round(low, 3), round(high, 3)
    (0.602, 0.998)
    """
    values = np.asarray(scores, dtype=np.float64)
    n = len(values)
    if n < 2:
        return None
    half = float(stdtrit(n - 1, 0.975) * np.sqrt(corrected_variance(values, test_share)))
    low, high = np.clip(values.mean() + np.array([-half, half]), *bounds)
    return float(low), float(high)


def corrected_variance(scores: Floats, test_share: float) -> float:
    """The variance of the mean of J scores whose training parts overlap (Nadeau and Bengio).

    It is (1/J + test_share) times that of the scores, where independent scores would have 1/J.
    """
    return float((1 / len(scores) + test_share) * scores.var(ddof=1))
