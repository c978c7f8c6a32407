"""Cross-validation: all trainings of all folds and repeats over shared compressed hierarchies.

Three ways to stop:

- `fixed`: the number of epochs is set in advance; the test folds are used once;
- `nested`: settings are chosen, for every fold, on an inner split of its training part, then the
  networks are trained again on all of it and the test fold is used once;
- `peek`: the best epoch of the test folds' mean curve, as some published numbers are obtained. It
  is optimistic, and only meant for comparison with such numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold, StratifiedShuffleSplit

from saen._util.json_files import write_json
from saen.data.compression import ceiling
from saen.errors import InputError
from saen.io.coerce import as_data
from saen.learning.estimators import SAENClassifier, classification_task, probabilities
from saen.learning.part_counts_models import PartCountsClassifier, fit_parts
from saen.learning.preparation import Data, Prepared
from saen.learning.runs import Fold, check_splits, splits_to_json
from saen.network.ensemble import Part, PartResults, choose_group_size, train_parts
from saen.network.model import derive_seed

STOPS = ("fixed", "nested", "peek")
INNER_TEST_SIZE = 0.1
"""Share of a training part on which `nested` compares settings."""

Grid = Sequence[dict[str, Any]]
Progress = Callable[[int, int], object]
"""Called with network-epochs done and their total."""


@dataclass(frozen=True)
class Evaluation:
    """The result of a repeated cross-validation.

    - `classes` (C,), `targets` (n,): codes into them; `fold_of` (R, n): the fold that tests each
      example; `probabilities` (R, n, C): by the networks that did not train on it;
    - `rows` (n,): identical examples have equal rows;
    - `loss` (epochs, networks): training curves of all networks of the final stage, NaN where a
      network trained for fewer epochs;
    - `chosen`: under `nested` the settings of every repeat and fold; under `peek` the epoch; for
      part counts also what they chose on inner folds;
    - `levels`: of the hierarchy, before and after compression;
    - `seconds`: per step; `models_at_once`: networks trained side by side, per stage.
    """

    classes: NDArray[Any]
    targets: NDArray[np.int64]
    fold_of: NDArray[np.int64]
    probabilities: NDArray[np.float64]
    rows: NDArray[np.int64]
    loss: NDArray[np.float64]
    seconds: dict[str, float]
    stop: str = "fixed"
    chosen: list[Any] = field(default_factory=list)
    levels: list[dict[str, Any]] = field(default_factory=list)
    models_at_once: dict[str, int] = field(default_factory=dict)

    @property
    def predictions(self) -> NDArray[np.int64]:
        """Predicted codes, (R, n)."""
        codes: NDArray[np.int64] = self.probabilities.argmax(axis=2)
        return codes

    def accuracies(self) -> NDArray[np.float64]:
        """Accuracy of every fold, (R, folds)."""
        correct = self.predictions == self.targets
        n_folds = int(self.fold_of.max()) + 1
        return np.array(
            [
                [correct[r][self.fold_of[r] == fold].mean() for fold in range(n_folds)]
                for r in range(len(correct))
            ]
        )

    def fold_ceiling(self) -> float:
        """The mean over folds of the accuracy that no single model can exceed on the test part."""
        parts = [
            np.flatnonzero(fold_of == fold)
            for fold_of in self.fold_of
            for fold in np.unique(fold_of)
        ]
        return float(np.mean([ceiling(self.rows[test], self.targets[test]) for test in parts]))

    def duplicates(self) -> NDArray[np.bool_]:
        """Which test examples are identical to one of their training part, (R, n)."""
        out = np.zeros(self.fold_of.shape, dtype=np.bool_)
        in_all = np.bincount(self.rows)
        for repeat, fold_of in enumerate(self.fold_of):
            pair = self.rows * (int(fold_of.max()) + 1) + fold_of
            in_fold = np.bincount(pair, minlength=int(pair.max()) + 1)[pair]
            out[repeat] = in_all[self.rows] > in_fold
        return out

    def to_json(self) -> dict[str, Any]:
        """Accuracy, ceilings and the share of duplicates."""
        folds = self.accuracies()
        per_repeat = folds.mean(axis=1)
        correct, duplicates = self.predictions == self.targets, self.duplicates()
        return {
            "accuracy": {
                "mean": float(per_repeat.mean()),
                "std": float(per_repeat.std()),
                "per_repeat": per_repeat.tolist(),
                "std_folds": float(folds.std()),
            },
            "ceiling": ceiling(self.rows, self.targets),
            "ceiling_folds": self.fold_ceiling(),
            "duplicates": {
                "share": float(duplicates.mean()),
                "accuracy": _mean(correct[duplicates]),
                "accuracy_rest": _mean(correct[~duplicates]),
            },
            "chosen": self.chosen,
            "models_at_once": self.models_at_once,
            "seconds": self.seconds,
        }


def make_splits(targets: ArrayLike, repeats: int, folds: int, seed: int) -> list[list[Fold]]:
    """Stratified folds for every repeat, by scikit-learn's splitter with recorded seeds.

    >>> splits = make_splits([0, 1] * 10, repeats=2, folds=5, seed=0)
    >>> len(splits), len(splits[0]), splits[0][0][1].shape
    (2, 5, (4,))
    """
    y = np.asarray(targets)
    _, counts = np.unique(y, return_counts=True)
    if repeats < 1 or folds < 2:
        raise InputError(f"at least 1 repeat and 2 folds are needed, not {repeats} and {folds}")
    if counts.min() < folds:
        raise InputError(f"a class has only {counts.min()} members: use at most that many folds")
    seeds = range(seed, seed + repeats)
    splitters = [StratifiedKFold(folds, shuffle=True, random_state=state) for state in seeds]
    return [list(splitter.split(np.empty(len(y)), y)) for splitter in splitters]


def cross_validate(
    estimator: SAENClassifier | PartCountsClassifier,
    X: Data,
    y: ArrayLike,
    *,
    repeats: int = 10,
    folds: int = 10,
    seed: int = 0,
    stop: str = "fixed",
    grid: Grid = ({},),
    splits: Sequence[Sequence[Fold]] | None = None,
    models_at_once: int | None = None,
    folder: Path | None = None,
    progress: Progress | None = None,
) -> Evaluation:
    """Train and test a classifier on every fold of every repeat, many networks at once.

    The data are decomposed and compressed once; compression never looks at targets. Each network
    sees the targets, labels and statistics of its own training part only; `auto` radii and batch
    sizes look at all examples, without their targets.

    Parameters
    ----------
    estimator, X, y : what to train, on which data, with one class per example.
    repeats, folds, seed : stratified folds; `seed` also replaces the estimator's `random_state`.
    stop : `fixed`, `nested` or `peek`, see the module.
    grid : under `nested`, the settings to choose from.
    splits : folds of your own, per repeat a list of (train, test) indices.
    models_at_once : networks trained side by side, by default as many as fit; for part counts,
        processes.
    folder : finished groups of networks are kept there, and a second call resumes from them.
    progress : called with network-epochs done and their total.

    >>> import saen
    >>> threads = saen.generate_threads(40, seed=1)
    >>> quick = SAENClassifier(epochs=3, n_models=1)
    >>> evaluation = cross_validate(quick, threads, threads.targets, repeats=1, folds=4)
    >>> evaluation.accuracies().shape
    (1, 4)
    """
    _check_protocol(estimator, stop, grid, models_at_once, seed)
    data = as_data(X, estimator.spec.takes)
    labels = np.asarray(y)
    classes, targets = np.unique(labels, return_inverse=True)
    if len(targets) != len(data):
        raise InputError(f"{len(data)} examples, but {len(targets)} targets")
    if len(classes) < 2:
        raise InputError(f"cross-validation needs at least two classes, y holds {len(classes)}")
    if splits is None:
        splits = make_splits(targets, repeats, folds, seed)
    else:
        check_splits(splits, len(targets))
    if folder is not None:
        write_json(folder / "splits.json", splits_to_json(splits))
    parts = [
        Part((repeat, fold), train, test)
        for repeat, each in enumerate(splits)
        for fold, (train, test) in enumerate(each)
    ]
    kind = _CountsTrainer if isinstance(estimator, PartCountsClassifier) else _Trainer
    trainer = kind(data, labels, targets, len(classes), seed, models_at_once, folder, progress)
    outer, chosen = _PROTOCOLS[stop](trainer, estimator, parts, grid)
    fold_of = np.full((len(splits), len(targets)), -1)
    tested = np.zeros((len(splits), len(targets), len(classes)))
    for part, rows in zip(parts, outer.probabilities, strict=True):
        repeat, fold = part.name
        fold_of[repeat, part.test] = fold
        tested[repeat, part.test] = rows
    # Duplicates and ceilings are those of the estimator's own decomposition, whatever was chosen.
    compressed = trainer.prepare(estimator).compressed
    return Evaluation(
        classes,
        targets,
        fold_of,
        tested,
        compressed.top.astype(np.int64),
        outer.loss,
        dict(trainer.seconds),
        stop,
        chosen,
        compressed.levels(),
        dict(trainer.group_sizes),
    )


def _check_protocol(
    estimator: SAENClassifier | PartCountsClassifier,
    stop: str,
    grid: Grid,
    models_at_once: int | None,
    seed: int,
) -> None:
    estimator.validate()
    if stop not in STOPS:
        raise InputError(f"stop is one of {', '.join(STOPS)}, not {stop!r}")
    if stop == "nested" and len(grid) < 2:
        raise InputError("nested needs a grid of at least two settings to choose from")
    counts = isinstance(estimator, PartCountsClassifier)
    if stop == "peek" and (counts or estimator.epochs < 1):
        raise InputError("there is no epoch to choose: epochs must be at least 1")
    if not counts and estimator.patience is not None:
        raise InputError(
            "cross-validation does not stop early (patience): the training part is used in full, "
            "and test folds must not decide when to stop"
        )
    if models_at_once is not None and models_at_once < 1:
        raise InputError(f"models_at_once must be an integer ≥ 1, not {models_at_once}")
    if not 0 <= seed < 2**31:
        raise InputError(f"seed must be an integer from 0 to {2**31 - 1}, not {seed}")


# -- the protocols -----------------------------------------------------------------------------


@dataclass(frozen=True)
class _Outer:
    """Class probabilities of every part's test examples, (tests, C) each, and training curves."""

    probabilities: list[NDArray[np.float64]]
    loss: NDArray[np.float64]
    chosen: list[dict[str, Any]] = field(default_factory=list)
    """What the estimator itself chose inside every part's training examples."""


def _fixed(
    trainer: _Trainer, estimator: SAENClassifier, parts: Sequence[Part], _: Grid
) -> tuple[_Outer, list[Any]]:
    trainer.expect(estimator, len(parts))
    outer = trainer.train("fixed", estimator, parts)[0]
    return outer, outer.chosen


def _nested(
    trainer: _Trainer, estimator: SAENClassifier, parts: Sequence[Part], grid: Grid
) -> tuple[_Outer, list[Any]]:
    """Every part is trained with the settings that did best on an inner split of its training."""
    candidates = [clone(estimator).set_params(**settings) for settings in grid]
    inner = [_inner_part(part, trainer) for part in parts]
    for candidate in candidates:
        trainer.expect(candidate, len(inner))
    scores = np.array(
        [
            [
                _score(rows, trainer.targets[part.test])
                for part, rows in zip(inner, result.probabilities, strict=True)
            ]
            for index, candidate in enumerate(candidates)
            for result, _ in [trainer.train(f"inner-{index}", candidate, inner)]
        ]
    )
    best = scores.argmax(axis=0)
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
        tested |= dict(zip(columns.tolist(), result.probabilities, strict=True))
        inside |= dict(zip(columns.tolist(), result.chosen, strict=False))
        curves.append(result.loss)
    longest = max(map(len, curves))
    padded = [np.pad(c, ((0, longest - len(c)), (0, 0)), constant_values=np.nan) for c in curves]
    outer = _Outer([tested[column] for column in range(len(parts))], np.concatenate(padded, axis=1))
    return outer, [{**grid[index], **inside.get(i, {})} for i, index in enumerate(best.tolist())]


def _peek(
    trainer: _Trainer, estimator: SAENClassifier, parts: Sequence[Part], grid: Grid
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


def _inner_part(part: Part, trainer: _Trainer) -> Part:
    """The training part of a fold, split once more to compare settings on."""
    state = derive_seed((trainer.seed, *part.name), "inner split") % 2**31
    splitter = StratifiedShuffleSplit(1, test_size=INNER_TEST_SIZE, random_state=state)
    fit, check = next(splitter.split(part.train, trainer.targets[part.train]))
    return Part(part.name, part.train[fit], part.train[check])


def _score(rows: NDArray[np.float64], truth: NDArray[np.int64]) -> float:
    """Accuracy decides; the likelihood breaks ties, of which small parts have many."""
    likelihood = np.log(np.maximum(rows[np.arange(len(truth)), truth], 1e-12)).mean()
    return float((rows.argmax(axis=1) == truth).mean() + 1e-6 * likelihood)


def _mean(values: NDArray[np.bool_]) -> float | None:
    return float(values.mean()) if len(values) else None


@dataclass
class _Trainer:
    """Trains estimators on parts of one dataset; equal decompositions share a hierarchy."""

    data: Any
    labels: NDArray[Any]
    targets: NDArray[np.int64]
    n_classes: int
    seed: int
    models_at_once: int | None
    folder: Path | None
    progress: Progress | None

    def __post_init__(self) -> None:
        self.seconds = {"compress": 0.0, "train": 0.0}
        self.group_sizes: dict[str, int] = {}
        self.done = self.total = 0
        self._prepared: dict[str, Prepared] = {}

    def expect(self, estimator: SAENClassifier, n_parts: int) -> None:
        """Add coming trainings to the total that progress counts to."""
        self.total += estimator.epochs * estimator.n_models * n_parts

    def prepare(self, estimator: SAENClassifier) -> Prepared:
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
        estimator: SAENClassifier,
        parts: Sequence[Part],
        *,
        until: int | None = None,
        test_curves: bool = False,
    ) -> tuple[_Outer, PartResults]:
        """Probabilities of the tests of every part, averaged over its networks, and the details."""
        prepared = self.prepare(estimator)
        start = perf_counter()
        task = classification_task(
            self.targets,
            self.n_classes,
            np.empty((len(self.targets), 0)),
            self._class_weights(estimator, parts),
        )
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
        means = [probabilities(rows).mean(axis=1) for rows in result.outputs]
        return _Outer(means, result.loss), result

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
            self.labels,
            pairs,
            [estimator],
            seed=self.seed,
            n_jobs=self.models_at_once,
            progress=lambda _: self._advance(1),
        )
        self.seconds["train"] += perf_counter() - start
        chosen = [{"depth": linear.depth, "C": linear.C} for linear, _ in results]
        return _Outer([rows for _, rows in results], np.empty((0, len(parts))), chosen), None
