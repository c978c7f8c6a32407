"""Trains estimators, networks or part counts, on many parts of one dataset."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from itertools import pairwise
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from saen._util.arrays import Array, Floats
from saen._util.executor import Tasks
from saen._util.lazy import LazyModule
from saen.errors import InputError
from saen.io import container
from saen.learning.calibration import (
    COVERAGE,
    interval_radius,
    probabilities,
    temperature_of,
    tempered,
)
from saen.learning.estimators import SAENClassifier, SAENRegressor
from saen.learning.metrics import MIN_PROBABILITY, log_losses
from saen.learning.part_counts_models import (
    PartCountsClassifier,
    PartCountsEstimator,
    PartCountsRegressor,
    PartFit,
    fit_parts,
)
from saen.learning.preparation import Preparations, Prepared
from saen.learning.splits import Fold
from saen.learning.targets import as_numbers, encode_classes, mean_and_scale
from saen.network.settings import Part, curve_step

if TYPE_CHECKING:
    from saen.network import ensemble, loss
    from saen.network.ensemble import PartResults, PartTraining
    from saen.network.loss import Task
else:  # training needs torch, which a blend of trained models does not
    ensemble, loss = LazyModule("saen.network.ensemble"), LazyModule("saen.network.loss")

Estimator = SAENClassifier | SAENRegressor | PartCountsClassifier | PartCountsRegressor
Progress = Callable[[int, int], object]
"""Called with network-epochs (of part counts: models) done and their total."""


# -- what is learned ---------------------------------------------------------------------------


class Problem(ABC):
    """The targets: what the networks of parts learn, and what their outputs mean.

    - `classes` (C,), or (t, 2) of t targets, None for real numbers;
    - `targets`: codes of the classes, (n,), or (n, t) with -1 where unknown; or numbers, (n,), or
      (n, k) with NaN where unknown;
    - `labels`: the targets as given.
    """

    classes: Array | None
    targets: Array
    labels: Array

    @abstractmethod
    def task(self, estimator: Any, parts: Sequence[Part]) -> Task:
        """What to learn from the training examples of each part, and of nothing else."""

    @abstractmethod
    def predictions(self, outputs: Sequence[Floats], parts: Sequence[Part]) -> list[Floats]:
        """Per part the mean prediction of its networks, from outputs (tests, n_models, k)."""

    @abstractmethod
    def losses(self, truth: Array, predicted: Floats) -> Floats:
        """How bad several predictions, (k, n, C) or (k, n), are: log losses or squares, (k, n)."""

    @abstractmethod
    def likelihoods(self, truth: Array, predicted: Floats) -> Floats | None:
        """What several predictions, (k, n, …), give the known targets, (k, m); None for numbers."""

    @abstractmethod
    def calibrated(
        self, predicted: Floats, held_out: Floats, truth: Array
    ) -> tuple[Floats, Array | None]:
        """Predictions as those of held-out examples, whose truth is known, ask for.

        And for numbers the radius of their intervals.
        """


class Classes(Problem):
    """One of several classes per example, or several targets."""

    classes: Array

    def __init__(self, y: ArrayLike) -> None:
        self.labels = np.asarray(y)
        self.classes, self.targets = encode_classes(y)
        if self.classes.shape[-1] < 2:
            n = len(self.classes)
            raise InputError(f"cross-validation needs at least two classes, y holds {n}")

    @property
    def several(self) -> bool:
        """Whether there are several targets, of two classes each."""
        return self.classes.ndim == 2

    def task(self, estimator: SAENClassifier, parts: Sequence[Part]) -> Task:
        """Classes, weighted as the estimator says."""
        return loss.Task.classification(
            self.targets,
            n_classes=self.classes.shape[-1],
            class_weights=estimator.class_weights(
                self.targets, self.classes, [part.train for part in parts]
            ),
        )

    def predictions(self, outputs: Sequence[Floats], parts: Sequence[Part]) -> list[Floats]:
        """Mean probabilities."""
        return [probabilities(rows, several=self.several).mean(axis=1) for rows in outputs]

    def losses(self, truth: Array, predicted: Floats) -> Floats:
        """Log losses; of several targets, the mean over the known ones."""
        if not self.several:
            return np.stack([log_losses(truth, rows[None]) for rows in predicted])
        right = np.where(truth == 1, predicted, 1 - predicted)
        return _mean_of_known(-np.log(np.maximum(right, MIN_PROBABILITY)), truth >= 0)

    def likelihoods(self, truth: Array, predicted: Floats) -> Floats:
        """The probabilities of the true classes."""
        if self.several:
            right = np.where(truth == 1, predicted, 1 - predicted)[:, truth >= 0]
        else:
            right = predicted[:, np.arange(len(truth)), truth]
        return np.maximum(right, MIN_PROBABILITY)

    def calibrated(
        self, predicted: Floats, held_out: Floats, truth: Array
    ) -> tuple[Floats, Array | None]:
        """At the temperature that suits the held-out examples."""
        temperature = temperature_of(held_out, truth, np.ones(len(truth)))
        return tempered(predicted, temperature, several=self.several), None


class Numbers(Problem):
    """Every part learns numbers standardised by its own training examples."""

    def __init__(self, y: ArrayLike) -> None:
        self.classes = None
        self.targets = self.labels = as_numbers(y)
        if (np.nanmin(self.targets, axis=0) == np.nanmax(self.targets, axis=0)).any():
            raise InputError("all targets are equal, there is nothing to learn")

    def task(self, estimator: SAENRegressor, parts: Sequence[Part]) -> Task:
        """Standardised numbers."""
        columns = [(self.targets - mean) / scale for mean, scale in map(self._units, parts)]
        own = np.stack(columns, axis=1).reshape(len(self.targets), len(parts), -1)
        return loss.Task("squares", own, np.ones((len(own), 1)))

    def predictions(self, outputs: Sequence[Floats], parts: Sequence[Part]) -> list[Floats]:
        """Mean numbers, in the units of the targets."""
        units = map(self._units, parts)
        return [
            rows.mean(axis=1).reshape(-1, *mean.shape) * scale + mean
            for rows, (mean, scale) in zip(outputs, units, strict=True)
        ]

    def losses(self, truth: Array, predicted: Floats) -> Floats:
        """Squared errors; of several numbers, the mean over the known ones, standardised."""
        if truth.ndim == 1:
            return np.square(truth - predicted)
        _, scale = mean_and_scale(truth, np.ones(len(truth)))
        return _mean_of_known(np.square((truth - predicted) / scale), np.isfinite(truth))

    def likelihoods(self, truth: Array, predicted: Floats) -> None:
        """None: how numbers scatter is not known."""

    def calibrated(
        self, predicted: Floats, held_out: Floats, truth: Array
    ) -> tuple[Floats, Array | None]:
        """As they are, with the radius that covers the errors of most held-out examples."""
        return predicted, np.asarray(interval_radius(np.abs(held_out - truth), COVERAGE))

    def _units(self, part: Part) -> tuple[Array, Array]:
        return mean_and_scale(self.targets[part.train], np.ones(len(part.train)))


def _mean_of_known(values: Floats, known: Array) -> Floats:
    """The mean over the last axis of what is known, 0 where nothing is."""
    sums = np.where(known, values, 0.0).sum(axis=-1)
    result: Floats = sums / np.maximum(known.sum(axis=-1), 1)
    return result


# -- training ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class PartOutputs:
    """What training on parts gave.

    - `outputs`: per part the predictions for its test examples, (tests, …);
    - `loss` (epochs, networks): training curves, none of part counts;
    - `chosen`: what the estimator itself chose inside every part's training examples;
    - `radius`: per part that of the intervals of numbers, once they are calibrated;
    - `validation_loss` (epochs, networks): curves on inner folds, if there were any, NaN after
      epochs at which they were not measured.
    """

    outputs: list[Floats]
    loss: Floats
    chosen: list[dict[str, Any]] = field(default_factory=list)
    radius: list[Array] = field(default_factory=list)
    validation_loss: Floats | None = None


def curve_interval(estimator: Estimator) -> int:
    """Epochs between two measurements of its networks on held-out examples; part counts have none.

    >>> curve_interval(SAENClassifier(epochs=40)), curve_interval(PartCountsClassifier())
    (4, 0)
    """
    return 0 if isinstance(estimator, PartCountsEstimator) else curve_step(estimator.epochs)


@dataclass
class Trainer:
    """Trains estimators on parts of one dataset; equal decompositions share a hierarchy.

    What is finished is kept in `folder`, under the name of its stage and a digest of the estimator
    and the parts, and taken from there: a run that is resumed with other candidates trains them.
    Groups of networks are trained in `tasks`, if there are any.
    """

    preparations: Preparations
    problem: Problem
    seed: int = 0
    models_at_once: int | None = None
    folder: Path | None = None
    progress: Progress | None = None
    tasks: Tasks | None = None

    def __post_init__(self) -> None:
        self.seconds = {"compress": 0.0, "train": 0.0}
        self.group_sizes: dict[str, int] = {}
        self.done = self.total = 0

    def expect(self, estimator: Estimator, n_parts: int) -> None:
        """Add coming trainings to the total that progress counts to."""
        counts = isinstance(estimator, PartCountsEstimator)
        self.total += n_parts * (1 if counts else estimator.epochs * estimator.n_models)

    def prepare(self, estimator: Estimator) -> Prepared:
        """The data as the estimator decomposes them, compressed."""
        start = perf_counter()
        prepared = self.preparations.of(estimator)
        self.seconds["compress"] += perf_counter() - start
        return prepared

    def train(self, stage: str, estimator: Estimator, parts: Sequence[Part]) -> PartOutputs:
        """Train on every part, and predict its test examples."""
        if isinstance(estimator, PartCountsEstimator):
            return self.train_counts(stage, estimator, parts)[0]
        return self.train_networks(stage, estimator, parts)[0]

    def train_networks(
        self,
        stage: str,
        estimator: SAENClassifier | SAENRegressor,
        parts: Sequence[Part],
        *,
        until: int | None = None,
        test_every: int = 0,
    ) -> tuple[PartOutputs, PartResults]:
        """Predictions for the tests of every part, averaged over its networks, and the details."""
        prepared = self.prepare(estimator)
        start = perf_counter()
        training = self._training(stage, estimator, prepared, parts, until, test_every)
        result = training.run()
        self.seconds["train"] += perf_counter() - start
        return PartOutputs(self.problem.predictions(result.outputs, parts), result.loss), result

    def start(
        self,
        stage: str,
        estimator: Estimator,
        parts: Sequence[Part],
        *,
        test_every: int = 0,
    ) -> None:
        """Begin the tasks that training of this stage will wait for; part counts have none."""
        if self.tasks is not None and parts and not isinstance(estimator, PartCountsEstimator):
            prepared = self.prepare(estimator)
            self._training(stage, estimator, prepared, parts, None, test_every).submit()

    def _training(
        self,
        stage: str,
        estimator: SAENClassifier | SAENRegressor,
        prepared: Prepared,
        parts: Sequence[Part],
        until: int | None,
        test_every: int,
    ) -> PartTraining:
        task = self.problem.task(estimator, parts)
        plan = estimator.plan(prepared, task.n_outputs, self.seed)
        size = self.models_at_once or ensemble.choose_group_size(plan, plan.n_models * len(parts))
        self.group_sizes[stage] = size
        return ensemble.PartTraining(
            plan,
            task,
            parts,
            self.seed,
            until,
            test_every,
            size,
            self.folder,
            _file_name(stage, estimator, parts),
            self._advance,
            self.tasks,
        )

    def inner_parts(
        self, estimator: Estimator, parts: Sequence[Part], groups: Array | None
    ) -> list[list[Part]]:
        """Every part split once more as `fit` would, to calibrate on; part counts do it alone."""
        if isinstance(estimator, PartCountsEstimator) or estimator.epochs == 0:
            return [[] for _ in parts]
        return [
            estimator.inner_parts(
                part.train, self.problem.targets, self.seed, name=part.name, groups=groups
            )
            for part in parts
        ]

    def calibrate_networks(
        self,
        stage: str,
        estimator: SAENClassifier | SAENRegressor,
        inner: Sequence[Sequence[Part]],
        tested: PartOutputs,
    ) -> PartOutputs:
        """Predictions of parts, calibrated by networks that are trained on their inner parts."""
        flat = [part for each in inner for part in each]
        if not flat:
            return tested
        held_out, result = self.train_networks(
            f"{stage}-calibration", estimator, flat, test_every=curve_interval(estimator)
        )
        ends = pairwise(np.cumsum([0, *map(len, inner)]))
        pairs = [
            (
                np.concatenate(held_out.outputs[first:last]),
                np.concatenate([self.problem.targets[part.test] for part in flat[first:last]]),
            )
            for first, last in ends
        ]
        tested = replace(tested, validation_loss=result.test_loss)
        return self.calibrated(tested, *zip(*pairs, strict=True))

    def calibrated(
        self, tested: PartOutputs, held_out: Sequence[Floats], truth: Sequence[Array]
    ) -> PartOutputs:
        """Predictions of parts, calibrated by those for held-out examples of each part."""
        triples = zip(tested.outputs, held_out, truth, strict=True)
        results = [self.problem.calibrated(*triple) for triple in triples]
        radius = [r for _, r in results if r is not None]
        return replace(tested, outputs=[rows for rows, _ in results], radius=radius)

    def train_counts(
        self,
        stage: str,
        estimator: PartCountsEstimator,
        parts: Sequence[Part],
        folds: Sequence[list[Fold]] | None = None,
    ) -> tuple[PartOutputs, list[Floats]]:
        """Predictions for the tests of every part, and for the held-out examples of its folds.

        `folds` are those on which the estimator chooses, in place of its own. Columns and choices
        come from each part's training examples alone.
        """
        name = _file_name(stage, estimator, parts)
        file = None if self.folder is None else self.folder / f"{name}.saen"
        if file is not None and file.exists():
            _, document, arrays = container.read(file)
            self._advance(len(parts))
            chosen = document["chosen"]
        else:
            if estimator.spec.learns_bins:
                each = [None] * len(parts) if folds is None else [[own] for own in folds]
                pairs = zip(parts, each, strict=True)
                results = [r for part, own in pairs for r in self._fit(estimator, [part], own)]
            else:
                results = self._fit(estimator, parts, folds)
            none = np.empty(0)
            chosen, arrays = [fit.model.choices for fit in results], {}
            for i, fit in enumerate(results):
                arrays[f"tested.{i}"] = fit.tested
                arrays[f"held_out.{i}"] = none if fit.held_out is None else fit.held_out
                if fit.model.errors is not None:
                    radius = interval_radius(fit.model.errors, COVERAGE)
                    arrays[f"radius.{i}"] = radius.reshape(fit.tested.shape[1:])
            if file is not None:
                container.write(file, "predictions", {"chosen": chosen}, arrays)

        def of_parts(name: str) -> list[Floats]:
            keys = (f"{name}.{i}" for i in range(len(parts)))
            return [arrays[key] for key in keys if key in arrays]

        curves = np.empty((0, len(parts)))
        tested = PartOutputs(of_parts("tested"), curves, chosen, of_parts("radius"))
        return tested, of_parts("held_out")

    def _fit(
        self,
        estimator: PartCountsEstimator,
        parts: Sequence[Part],
        folds: Sequence[list[Fold]] | None,
    ) -> list[PartFit]:
        """Part counts of some parts, which share a decomposition, or of one with its own bins."""
        start = perf_counter()
        prepared = self.preparations.fitted_on(estimator, parts[0].train)
        prepared_at = perf_counter()
        [results] = fit_parts(
            prepared,
            self.problem.labels,
            [(part.train, part.test) for part in parts],
            [estimator],
            folds=folds,
            seed=self.seed,
            n_jobs=self.models_at_once,
            progress=lambda _: self._advance(1),
        )
        self.seconds["compress"] += prepared_at - start
        self.seconds["train"] += perf_counter() - prepared_at
        return results

    def _advance(self, work: int) -> None:
        self.done += work
        if self.progress is not None:
            self.progress(self.done, self.total)


def _file_name(stage: str, estimator: Estimator, parts: Sequence[Part]) -> str:
    """The name of what an estimator gives on some parts: another estimator has another."""
    settings = type(estimator).__name__, sorted(estimator.get_params().items())
    content = repr((settings, [part.name for part in parts]))
    return f"{stage}-{blake2b(content.encode(), digest_size=4).hexdigest()}"
