"""Cross-validation: all trainings of all folds and repeats over shared compressed hierarchies.

Three ways to stop:

- `fixed`: the number of epochs is set in advance; the test folds are used once;
- `nested`: settings are chosen, for every fold, on inner folds of its training part, then the
  networks are trained again on all of it and the test fold is used once;
- `peek`: the best epoch of the test folds' mean curve, as some published numbers are obtained. It
  is optimistic, and only meant for comparison with such numbers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from saen._util.arrays import Array, Ints
from saen._util.json_files import write_json
from saen.errors import InputError
from saen.io.coerce import as_data
from saen.learning.estimators import (
    SAENClassifier,
    SAENRegressor,
    mean_and_scale,
    probabilities,
)
from saen.learning.evaluation import Evaluation
from saen.learning.metrics import Metric, find_metric, log_losses
from saen.learning.part_counts_models import PartCountsClassifier, PartCountsRegressor, fit_parts
from saen.learning.preparation import Data, Prepared
from saen.learning.splits import (
    Fold,
    Splits,
    check_splits,
    check_validation,
    inner_folds,
    make_splits,
    splits_to_json,
)
from saen.learning.targets import as_classes, as_numbers
from saen.network.ensemble import Part, PartResults, choose_group_size, train_parts
from saen.network.loss import Task
from saen.network.model import derive_seed

STOPS = ("fixed", "nested", "peek")
INNER_FOLDS = 3
"""Folds of a training part on which `nested` compares settings, unless told otherwise."""

Estimator = SAENClassifier | SAENRegressor | PartCountsClassifier | PartCountsRegressor
Grid = Sequence[dict[str, Any]]
Progress = Callable[[int, int], object]
"""Called with network-epochs done and their total."""


def cross_validate(
    estimator: Estimator,
    X: Data,
    y: ArrayLike,
    *,
    repeats: int = 10,
    folds: int = 10,
    seed: int = 0,
    test_size: float | None = None,
    groups: ArrayLike | None = None,
    splits: Sequence[Sequence[Fold]] | None = None,
    validation: Sequence[Ints] | None = None,
    stop: str = "fixed",
    grid: Grid = ({},),
    metric: str | None = None,
    inner: int = INNER_FOLDS,
    models_at_once: int | None = None,
    folder: Path | None = None,
    progress: Progress | None = None,
) -> Evaluation:
    """Train and test an estimator on every fold of every repeat, many networks at once.

    The data are decomposed and compressed once; compression never looks at targets. Each network
    sees the targets, labels and statistics of its own training part only; `auto` radii and batch
    sizes look at all examples, without their targets.

    Parameters
    ----------
    estimator, X, y : what to train, on which data, with one class or real number per example.
    repeats, folds, seed : folds, stratified by class; `seed` also replaces the estimator's
        `random_state`.
    test_size : test one random part of this share per repeat (hold-out), instead of folds.
    groups : (n,), examples of one group are never on both sides of a split.
    splits : splits of your own, per repeat a list of (train, test) indices: several folds that
        test every example once, or one fold (a hold-out).
    validation : per repeat of one fold, the examples on which `nested` chooses; they are not
        trained on.
    stop : `fixed`, `nested` or `peek`, see the module.
    grid : under `nested`, the settings to choose from.
    metric : what decides under `nested`, see `saen.learning.metrics`; by default accuracy, or the
        mean absolute error of numbers.
    inner : under `nested`, the folds of each training part on which settings are compared.
    models_at_once : networks trained side by side, by default as many as fit; for part counts,
        processes.
    folder : finished groups of networks are kept there, and a second call resumes from them.
    progress : called with network-epochs done and their total.

    >>> import saen
    >>> threads = saen.generate_threads(40, seed=1)
    >>> quick = SAENClassifier(epochs=3, n_models=1)
    >>> evaluation = cross_validate(quick, threads, threads.targets, repeats=1, folds=4)
    >>> evaluation.scores("roc_auc").shape
    (1, 4)
    """
    _check_protocol(estimator, stop, grid, inner, models_at_once, seed)
    problem: _Problem = (_Numbers if isinstance(estimator, SAENRegressor) else _Classes)(y)
    score = find_metric(metric, regression=problem.classes is None)
    data = as_data(X, estimator.spec.takes)
    targets = problem.targets
    if len(targets) != len(data):
        raise InputError(f"{len(data)} examples, but {len(targets)} targets")
    if splits is None:
        named = targets if problem.classes is None else problem.classes.astype(str)[targets]
        splits = make_splits(named, repeats, folds, seed, test_size=test_size, groups=groups)
    else:
        check_splits(splits, len(targets))
    if validation is not None:
        check_validation(validation, splits, len(targets))
    if folder is not None:
        write_json(folder / "splits.json", splits_to_json(Splits(splits, validation)), sealed=True)
    protocol = _Protocol(
        grid, score, inner, validation, None if groups is None else np.asarray(groups)
    )
    parts = [
        Part((repeat, fold), np.asarray(train), np.asarray(test))
        for repeat, each in enumerate(splits)
        for fold, (train, test) in enumerate(each)
    ]
    kind = _CountsTrainer if isinstance(estimator, PartCountsClassifier) else _Trainer
    trainer = kind(data, problem, seed, models_at_once, folder, progress)
    outer, chosen = _PROTOCOLS[stop](trainer, estimator, parts, protocol)
    outputs = np.full((len(splits), len(targets), *outer.outputs[0].shape[1:]), np.nan)
    for part, rows in zip(parts, outer.outputs, strict=True):
        outputs[part.name[0], part.test] = rows
    # Duplicates and ceilings are those of the estimator's own decomposition, whatever was chosen.
    compressed = trainer.prepare(estimator).compressed
    return Evaluation(
        problem.classes,
        targets,
        splits,
        outputs,
        compressed.top.astype(np.int64),
        outer.loss,
        dict(trainer.seconds),
        stop,
        score.name,
        chosen,
        compressed.levels(),
        dict(trainer.group_sizes),
    )


def _check_protocol(
    estimator: Estimator,
    stop: str,
    grid: Grid,
    inner: int,
    models_at_once: int | None,
    seed: int,
) -> None:
    estimator.validate()
    if isinstance(estimator, PartCountsRegressor):
        raise InputError("part counts are cross-validated for classes only, not for real numbers")
    if stop not in STOPS:
        raise InputError(f"stop is one of {', '.join(STOPS)}, not {stop!r}")
    if stop == "nested" and len(grid) < 2:
        raise InputError("nested needs a grid of at least two settings to choose from")
    if stop == "peek" and isinstance(estimator, SAENRegressor):
        raise InputError("peek looks at accuracies: use fixed or nested for real numbers")
    counts = isinstance(estimator, PartCountsClassifier)
    if stop == "peek" and (counts or estimator.epochs < 1):
        raise InputError("there is no epoch to choose: epochs must be at least 1")
    if not counts and estimator.patience is not None:
        raise InputError(
            "cross-validation does not stop early (patience): the training part is used in full, "
            "and test folds must not decide when to stop"
        )
    if inner < 2:
        raise InputError(f"inner must be an integer ≥ 2, not {inner}")
    if models_at_once is not None and models_at_once < 1:
        raise InputError(f"models_at_once must be an integer ≥ 1, not {models_at_once}")
    if not 0 <= seed < 2**31:
        raise InputError(f"seed must be an integer from 0 to {2**31 - 1}, not {seed}")


# -- the protocols -----------------------------------------------------------------------------


@dataclass(frozen=True)
class _Protocol:
    """How settings are chosen."""

    grid: Grid
    metric: Metric
    inner: int
    validation: Sequence[Ints] | None
    groups: Array | None

    def inner_parts(self, part: Part, targets: Array, seed: int) -> list[Part]:
        """The training part of a fold, split once more to compare settings on."""
        if self.validation is not None:
            return [Part((*part.name, 0), part.train, np.asarray(self.validation[part.name[0]]))]
        state = derive_seed((seed, *part.name), "inner folds") % 2**31
        groups = None if self.groups is None else self.groups[part.train]
        folds = inner_folds(targets[part.train], self.inner, state, groups)
        return [
            Part((*part.name, number), part.train[fit], part.train[check])
            for number, (fit, check) in enumerate(folds)
        ]


@dataclass(frozen=True)
class _Outer:
    """Predictions for every part's test examples, (tests, …) each, and training curves."""

    outputs: list[NDArray[np.float64]]
    loss: NDArray[np.float64]
    chosen: list[dict[str, Any]] = field(default_factory=list)
    """What the estimator itself chose inside every part's training examples."""


def _fixed(
    trainer: _Trainer, estimator: Estimator, parts: Sequence[Part], _: _Protocol
) -> tuple[_Outer, list[Any]]:
    trainer.expect(estimator, len(parts))
    outer = trainer.train("fixed", estimator, parts)[0]
    return outer, outer.chosen


def _nested(
    trainer: _Trainer, estimator: Estimator, parts: Sequence[Part], protocol: _Protocol
) -> tuple[_Outer, list[Any]]:
    """Every part is trained with the settings that did best on inner folds of its training."""
    grid = protocol.grid
    candidates = [clone(estimator).set_params(**settings) for settings in grid]
    inner = [protocol.inner_parts(part, trainer.problem.targets, trainer.seed) for part in parts]
    flat = [part for each in inner for part in each]
    for candidate in candidates:
        trainer.expect(candidate, len(flat))
    starts = np.cumsum([0, *map(len, inner)])
    scores, ties = (np.empty((len(candidates), len(parts))) for _ in range(2))
    for index, candidate in enumerate(candidates):
        result, _ = trainer.train(f"inner-{index}", candidate, flat)
        goodness, tie = _inner_scores(flat, result.outputs, trainer.problem, protocol.metric)
        for column, (first, last) in enumerate(pairwise(starts)):
            scores[index, column] = _mean_of_known(goodness[first:last])
            ties[index, column] = _mean_of_known(tie[first:last])
    best = choose_best(scores, ties)
    for index in best:
        trainer.expect(candidates[index], 1)
    tested: dict[int, NDArray[np.float64]] = {}
    inside: dict[int, dict[str, Any]] = {}
    curves = []
    for index in np.unique(best):
        columns = np.flatnonzero(best == index)
        result, _ = trainer.train(
            f"outer-{index}", candidates[index], [parts[column] for column in columns.tolist()]
        )
        tested |= dict(zip(columns.tolist(), result.outputs, strict=True))
        inside |= dict(zip(columns.tolist(), result.chosen, strict=False))
        curves.append(result.loss)
    longest = max(map(len, curves))
    padded = [np.pad(c, ((0, longest - len(c)), (0, 0)), constant_values=np.nan) for c in curves]
    outer = _Outer([tested[column] for column in range(len(parts))], np.concatenate(padded, axis=1))
    return outer, [{**grid[index], **inside.get(i, {})} for i, index in enumerate(best.tolist())]


def _peek(
    trainer: _Trainer, estimator: Estimator, parts: Sequence[Part], protocol: _Protocol
) -> tuple[_Outer, list[Any]]:
    """The epoch at which the mean test accuracy is best, trained again up to just there."""
    single = clone(estimator).set_params(n_models=1)
    trainer.expect(single, 2 * len(parts))
    _, watched = trainer.train("peek", single, parts, test_curves=True)
    assert watched.test_accuracy is not None
    epoch = int(watched.test_accuracy.mean(axis=1).argmax()) + 1
    outer, _ = trainer.train("peeked", single, parts, until=epoch)
    return outer, [{"epoch": epoch}]


_PROTOCOLS = {"fixed": _fixed, "nested": _nested, "peek": _peek}


def _inner_scores(
    parts: Sequence[Part], outputs: Sequence[NDArray[np.float64]], problem: _Problem, metric: Metric
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Per inner part its score, more is better, and what breaks ties."""
    truths = [problem.targets[part.test] for part in parts]
    pairs = list(zip(truths, outputs, strict=True))
    scores = np.array([metric(truth, rows) for truth, rows in pairs])
    return metric.goodness(scores), np.array([problem.tie_break(*pair) for pair in pairs])


def choose_best(scores: NDArray[np.float64], ties: NDArray[np.float64]) -> NDArray[np.int64]:
    """The best setting (row) for every part (column), (parts,); the first of equal ones.

    `scores` decide and `ties` among equal scores, of which small parts have many; more is better,
    NaN is worst.

    >>> choose_best(np.array([[0.5, 0.7], [0.5, 0.6]]), np.array([[-2.0, -2.0], [-1.0, -1.0]]))
    array([1, 0])
    """
    comparable = np.nan_to_num(np.round(scores, 9), nan=-np.inf)
    tied = comparable == comparable.max(axis=0)
    best: NDArray[np.int64] = np.where(tied, np.nan_to_num(ties, nan=-1e300), -np.inf).argmax(0)
    return best


def _mean_of_known(values: NDArray[np.float64]) -> float:
    known = values[np.isfinite(values)]
    return float(known.mean()) if len(known) else np.nan


# -- what is learned ---------------------------------------------------------------------------


class _Problem(ABC):
    """The targets: what the networks of parts learn, and what their outputs mean.

    - `classes` (C,), None for real numbers;
    - `targets` (n,): codes of the classes, or numbers.
    """

    classes: Array | None
    targets: Array

    @abstractmethod
    def task(self, estimator: Any, parts: Sequence[Part]) -> Task:
        """What to learn from the training examples of each part, and of nothing else."""

    @abstractmethod
    def predictions(
        self, outputs: Sequence[NDArray[np.float64]], parts: Sequence[Part]
    ) -> list[NDArray[np.float64]]:
        """Per part the mean prediction of its networks, from outputs (tests, n_models, k)."""

    @abstractmethod
    def tie_break(self, truth: Array, predicted: NDArray[np.float64]) -> float:
        """How good predictions are where their scores are equal; more is better."""


class _Classes(_Problem):
    def __init__(self, y: ArrayLike) -> None:
        self.labels = as_classes(y)
        self.classes, self.targets = np.unique(self.labels, return_inverse=True)
        if len(self.classes) < 2:
            n = len(self.classes)
            raise InputError(f"cross-validation needs at least two classes, y holds {n}")

    def task(self, estimator: SAENClassifier, parts: Sequence[Part]) -> Task:
        assert self.classes is not None
        return Task.classification(
            self.targets,
            n_classes=len(self.classes),
            class_weights=self._class_weights(estimator, parts),
        )

    def _class_weights(
        self, estimator: SAENClassifier, parts: Sequence[Part]
    ) -> NDArray[np.float64] | None:
        """From every part's own training examples, (C, parts)."""
        if estimator.class_weight is None:
            return None
        columns = []
        for part in parts:
            weights = np.zeros(len(self.labels))
            weights[part.train] = 1.0
            columns.append(estimator.class_weights(self.labels, weights))
        return np.column_stack(columns)  # type: ignore[arg-type]

    def predictions(
        self, outputs: Sequence[NDArray[np.float64]], parts: Sequence[Part]
    ) -> list[NDArray[np.float64]]:
        return [probabilities(rows).mean(axis=1) for rows in outputs]

    def tie_break(self, truth: Array, predicted: NDArray[np.float64]) -> float:
        return -float(log_losses(truth, predicted[None]).mean())


class _Numbers(_Problem):
    """Every part learns numbers standardised by its own training examples."""

    def __init__(self, y: ArrayLike) -> None:
        self.classes = None
        self.targets = as_numbers(y)
        if self.targets.ndim != 1:
            raise InputError(f"{self.targets.shape[1]} numbers per example: choose one of them")
        if (self.targets == self.targets[:1]).all():
            raise InputError("all targets are equal, there is nothing to learn")

    def task(self, estimator: SAENRegressor, parts: Sequence[Part]) -> Task:
        columns = [(self.targets - mean) / scale for mean, scale in map(self._units, parts)]
        return Task("squares", np.stack(columns, axis=1)[..., None], np.ones((len(columns[0]), 1)))

    def predictions(
        self, outputs: Sequence[NDArray[np.float64]], parts: Sequence[Part]
    ) -> list[NDArray[np.float64]]:
        units = map(self._units, parts)
        return [
            rows[..., 0].mean(axis=1) * scale + mean
            for rows, (mean, scale) in zip(outputs, units, strict=True)
        ]

    def tie_break(self, truth: Array, predicted: NDArray[np.float64]) -> float:
        return -float(np.square(truth - predicted).mean())

    def _units(self, part: Part) -> tuple[Array, Array]:
        return mean_and_scale(self.targets[part.train], np.ones(len(part.train)))


@dataclass
class _Trainer:
    """Trains estimators on parts of one dataset; equal decompositions share a hierarchy."""

    data: Any
    problem: _Problem
    seed: int
    models_at_once: int | None
    folder: Path | None
    progress: Progress | None

    def __post_init__(self) -> None:
        self.seconds = {"compress": 0.0, "train": 0.0}
        self.group_sizes: dict[str, int] = {}
        self.done = self.total = 0
        self._prepared: dict[str, Prepared] = {}

    def expect(self, estimator: Estimator, n_parts: int) -> None:
        """Add coming trainings to the total that progress counts to."""
        self.total += estimator.epochs * estimator.n_models * n_parts

    def prepare(self, estimator: Estimator) -> Prepared:
        """The data as the estimator decomposes them, compressed."""
        key = repr(estimator.spec)
        if key not in self._prepared:
            start = perf_counter()
            self._prepared[key] = estimator.prepare(self.data)
            self.seconds["compress"] += perf_counter() - start
        return self._prepared[key]

    def train(
        self,
        stage: str,
        estimator: Estimator,
        parts: Sequence[Part],
        *,
        until: int | None = None,
        test_curves: bool = False,
    ) -> tuple[_Outer, PartResults]:
        """Predictions for the tests of every part, averaged over its networks, and the details."""
        prepared = self.prepare(estimator)
        start = perf_counter()
        task = self.problem.task(estimator, parts)
        plan = estimator.plan(prepared, task.n_outputs, self.seed)
        size = self.models_at_once or choose_group_size(plan, plan.n_models * len(parts))
        self.group_sizes[stage] = size
        result = train_parts(
            plan,
            task,
            parts,
            seed=self.seed,
            until=until,
            test_curves=test_curves,
            group_size=size,
            folder=self.folder,
            stage=stage,
            progress=self._advance,
        )
        self.seconds["train"] += perf_counter() - start
        return _Outer(self.problem.predictions(result.outputs, parts), result.loss), result

    def _advance(self, network_epochs: int) -> None:
        self.done += network_epochs
        if self.progress is not None:
            self.progress(self.done, self.total)


class _CountsTrainer(_Trainer):
    """Fits linear models over part counts: columns and choices from each part's training alone."""

    def expect(self, estimator: Any, n_parts: int) -> None:
        """Progress counts models."""
        self.total += n_parts

    def train(
        self,
        stage: str,
        estimator: Any,
        parts: Sequence[Part],
        *,
        until: int | None = None,
        test_curves: bool = False,
    ) -> tuple[_Outer, Any]:
        """Probabilities of the tests of every part, and what was chosen for it; no curves."""
        prepared = self.prepare(estimator)
        start = perf_counter()
        pairs = [(part.train, part.test) for part in parts]
        [results] = fit_parts(
            prepared,
            np.asarray(self.problem.classes)[self.problem.targets],
            pairs,
            [estimator],
            seed=self.seed,
            n_jobs=self.models_at_once,
            progress=lambda _: self._advance(1),
        )
        self.seconds["train"] += perf_counter() - start
        chosen = [{"depth": linear.depth, "C": linear.C} for linear, _ in results]
        return _Outer([rows for _, rows in results], np.empty((0, len(parts))), chosen), None
