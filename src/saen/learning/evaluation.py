"""`Evaluation`: the predictions of a cross-validation, and every score of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from saen._util.arrays import Array, Floats, Ints
from saen.data.compression import ceiling
from saen.learning.calibration import COVERAGE
from saen.learning.metrics import (
    CLASSIFICATION_METRICS,
    REGRESSION_METRICS,
    Metric,
    corrected_interval,
    find_metric,
)
from saen.learning.splits import Fold


@dataclass(frozen=True)
class Evaluation:
    """The result of a repeated cross-validation or hold-out of n examples.

    - `classes` (C,), or (t, 2) of t targets, or None for real numbers;
    - `targets`: codes into the classes, (n,), or (n, t) with -1 where unknown; or numbers, (n,), or
      (n, t) with NaN where unknown;
    - `splits`: per repeat its folds, (train, test) indices each;
    - `outputs`: by networks that did not train on the example, probabilities (R, n, C) or numbers
      (R, n); of several targets, probabilities of the second classes, or numbers, (R, n, t); NaN
      where a repeat does not test it;
    - `rows` (n,): examples that look identical to the model have equal rows; `same` (n,): those
      that are identical as data have equal numbers, by default the rows;
    - `loss` (epochs, networks): training curves of all networks of the final stage, NaN where a
      network trained for fewer epochs;
    - `seconds`: per step; `stop`, `metric`: the protocol;
    - `chosen`: under `nested` the settings of every repeat and fold; under `peek` the epoch;
    - `levels`: of the hierarchy, before and after compression;
    - `models_at_once`: networks trained side by side, per stage;
    - `tried`: under `nested` every candidate with its mean inner score and mean weight;
    - `target_names`: of several targets;
    - `radius`: of the intervals around predicted numbers, shaped as `outputs`, if there are any;
    - `validation_loss` (epochs, networks): curves on inner folds of the training parts, if any.
    """

    classes: NDArray[Any] | None
    targets: Array
    splits: Sequence[Sequence[Fold]]
    outputs: Floats
    rows: NDArray[np.int64]
    loss: Floats
    seconds: dict[str, float]
    stop: str = "fixed"
    metric: str = "accuracy"
    chosen: list[Any] = field(default_factory=list)
    levels: list[dict[str, Any]] = field(default_factory=list)
    models_at_once: dict[str, int] = field(default_factory=dict)
    tried: list[dict[str, Any]] = field(default_factory=list)
    target_names: list[str] = field(default_factory=list)
    radius: Floats | None = None
    validation_loss: Floats | None = None
    same: NDArray[np.int64] | None = None

    @cached_property
    def fold_of(self) -> NDArray[np.int64]:
        """The fold that tests each example, (R, n); -1 where a repeat does not test it."""
        out = np.full((len(self.splits), len(self.targets)), -1)
        for repeat, fold, _, test in self._folds():
            out[repeat, test] = fold
        return out

    def _folds(self) -> Iterator[tuple[int, int, Ints, Ints]]:
        """Repeat, number, training and test examples of all folds."""
        for repeat, folds in enumerate(self.splits):
            for fold, (train, test) in enumerate(folds):
                yield repeat, fold, train, test

    @property
    def loss_name(self) -> str:
        """What the networks minimise."""
        return "squared error, standardised" if self.classes is None else "cross entropy"

    @property
    def curves(self) -> dict[str, Floats]:
        """Losses of all networks by name, (epochs, networks) each."""
        inner = self.validation_loss
        return {"training": self.loss} | ({} if inner is None else {"inner validation": inner})

    @property
    def probabilities(self) -> Floats:
        """Class probabilities, (R, n, C), or (R, n, t) of several targets."""
        assert self.classes is not None, "numbers are predicted, not classes"
        return self.outputs

    @property
    def predictions(self) -> Array:
        """Predicted codes or numbers, (R, n, …); of use only where `fold_of` is not -1."""
        if self.classes is None:
            return self.outputs
        several = self.classes.ndim == 2
        return (self.outputs > 0.5).astype(np.int64) if several else self.outputs.argmax(axis=2)

    def tested(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """All tests in a row: the repeat and the example of each."""
        repeats, examples = np.nonzero(self.fold_of >= 0)
        return repeats, examples

    @property
    def metrics(self) -> dict[str, Metric]:
        """The metrics that apply, by name."""
        return REGRESSION_METRICS if self.classes is None else CLASSIFICATION_METRICS

    def scores(self, metric: str | None = None) -> Floats:
        """A metric, by default the chosen one, of every fold, (R, folds); NaN if not defined.

        Of several targets, the mean of their scores.
        """
        score = self._metric(metric)
        each = [
            score(self.targets[t], self.outputs[repeat, t]) for repeat, _, _, t in self._folds()
        ]
        return np.array(each).reshape(len(self.splits), -1)

    def target_scores(self, metric: str | None = None) -> dict[str, float | None]:
        """The mean of a metric over all folds, for each of several targets; None if not defined."""
        score = self._metric(metric)
        folds = np.stack(
            [score.each(self.targets[t], self.outputs[r, t]) for r, _, _, t in self._folds()]
        )
        columns = [column[np.isfinite(column)] for column in folds.T]
        means = [float(column.mean()) if len(column) else None for column in columns]
        return dict(zip(self.target_names, means, strict=True))

    def _metric(self, name: str | None) -> Metric:
        return find_metric(name or self.metric, regression=self.classes is None)

    def accuracies(self) -> Floats:
        """Accuracy of every fold, (R, folds)."""
        return self.scores("accuracy")

    def summary(self, metric: str | None = None) -> dict[str, Any]:
        """Mean and spread of a metric over repeats and folds.

        `std` is the standard deviation over repeats, if there are several; `interval` the
        corrected resampled 95 % interval (see `corrected_interval`), if there are several scores.
        """
        folds = self.scores(metric)
        scored = np.isfinite(folds)
        if not scored.any():
            return {"mean": None, "per_repeat": [None] * len(folds)}
        sums = np.where(scored, folds, 0.0).sum(axis=1)
        counts = scored.sum(axis=1)
        per_repeat = sums / np.where(counts > 0, counts, np.nan)
        known = per_repeat[np.isfinite(per_repeat)]
        result = {
            "mean": float(known.mean()),
            "per_repeat": [float(v) if np.isfinite(v) else None for v in per_repeat],
        }
        if len(known) > 1:
            result["std"] = float(known.std())
        if scored.sum() > 1:
            result["std_folds"] = float(folds[scored].std())
            result["interval"] = corrected_interval(
                folds[scored], self._test_share(), self._metric(metric).bounds
            )
        return result

    def fold_ceiling(self) -> float:
        """The mean over folds of the accuracy that no single model can exceed on the test part."""
        tests = [test for _, _, _, test in self._folds()]
        return float(np.mean([ceiling(self.rows[test], self.targets[test]) for test in tests]))

    def duplicates(self) -> NDArray[np.bool_]:
        """Which test examples are identical to one of their training part, (R, n)."""
        return self._in_training(self.rows if self.same is None else self.same)

    def _in_training(self, numbers: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which test examples have the number of one of their training part, (R, n)."""
        out = np.zeros((len(self.splits), len(self.targets)), dtype=np.bool_)
        for repeat, _, train, test in self._folds():
            out[repeat, test] = np.isin(numbers[test], numbers[train])
        return out

    def _shares(self) -> dict[str, float]:
        """The share of tests that are identical to a training example, and that look so."""
        tested = self.fold_of >= 0
        alike = self._in_training(self.rows)
        return {
            "share": float(self.duplicates()[tested].mean()),
            "look_identical": float(alike[tested].mean()),
        }

    def to_json(self) -> dict[str, Any]:
        """Every metric, baselines, ceilings and the share of duplicates."""
        return {
            "metric": self.metric,
            **{name: self.summary(name) for name in self.metrics},
            **(self._of_numbers() if self.classes is None else self._of_classes()),
            **(
                {"targets": {name: self.target_scores(name) for name in self.metrics}}
                if self.target_names
                else {}
            ),
            "chosen": self.chosen,
            **({"tried": self.tried} if self.tried else {}),
            "models_at_once": self.models_at_once,
            "seconds": self.seconds,
        }

    def _of_classes(self) -> dict[str, Any]:
        tested, duplicates = self.fold_of >= 0, self.duplicates()
        if self.targets.ndim == 2:
            return {"duplicates": self._shares()}
        correct = self.predictions == self.targets
        baseline = [
            np.mean(self.targets[test] == _most_frequent(self.targets[train]))
            for _, _, train, test in self._folds()
        ]
        return {
            "majority": float(np.mean(baseline)),
            "ceiling": ceiling(self.rows, self.targets),
            "ceiling_folds": self.fold_ceiling(),
            "duplicates": {
                **self._shares(),
                "accuracy": _mean(correct[tested & duplicates]),
                "accuracy_rest": _mean(correct[tested & ~duplicates]),
            },
        }

    def _of_numbers(self) -> dict[str, Any]:
        baseline = [
            np.nanmean(np.abs(self.targets[test] - np.nanmean(self.targets[train], axis=0)))
            for _, _, train, test in self._folds()
        ]
        return {
            "mae_of_mean": float(np.mean(baseline)),
            **({} if self.radius is None else {"intervals": self._of_intervals()}),
            "duplicates": self._shares(),
        }

    def _of_intervals(self) -> dict[str, float]:
        """The share of tests within their intervals, and the mean width of these."""
        assert self.radius is not None
        tested = np.isfinite(self.outputs) & np.isfinite(self.targets)
        inside = np.abs(self.outputs - self.targets) <= self.radius
        return {
            "coverage": COVERAGE,
            "observed": float(inside[tested].mean()),
            "width": float(2 * self.radius[tested].mean()),
        }

    def _test_share(self) -> float:
        """Test examples per training example, the mean over folds."""
        return float(np.mean([len(test) / len(train) for _, _, train, test in self._folds()]))


def _most_frequent(targets: Array) -> Any:
    classes, counts = np.unique(targets, return_counts=True)
    return classes[counts.argmax()]


def _mean(values: NDArray[np.bool_]) -> float | None:
    return float(values.mean()) if len(values) else None
