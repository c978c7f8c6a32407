"""Cross-validation: all trainings of all folds and repeats over one compressed hierarchy.

Three ways to stop:

- `fixed`: the number of epochs is set in advance; the test folds are looked at once;
- `nested`: settings are chosen, for every fold, on an inner split of its training part, then the
  networks are trained anew on all of it and the test fold is looked at once;
- `peek`: the best epoch of the test folds' mean curve, as some published numbers are made. It
  flatters, and is here for comparison with such numbers only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold, StratifiedShuffleSplit

from saen._util.json_files import write_json
from saen.data.compression import ceiling
from saen.errors import InputError
from saen.io.coerce import as_data
from saen.learning.estimators import Data, SAENClassifier
from saen.learning.runs import Fold, splits_to_json
from saen.network.ensemble import Progress, Trainer, Training
from saen.network.model import derive_seed

STOPS = ("fixed", "nested", "peek")


@dataclass(frozen=True)
class Evaluation:
    """What a repeated cross-validation found.

    - `classes` (C,), `targets` (n,): codes into them; `fold_of` (R, n): the fold that tests each
      structure; `probabilities` (R, n, C): by the networks that did not train on it;
    - `rows` (n,): equal structures have equal rows;
    - `loss` (epochs, networks): the training curves of the last stage;
    - `chosen`: under `nested` the settings of every repeat and fold; under `peek` the epoch;
    - `levels`: of the hierarchy, before and after compression;
    - `seconds`: per step.
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

    @property
    def predictions(self) -> NDArray[np.int64]:
        """Predicted codes, (R, n)."""
        codes: NDArray[np.int64] = self.probabilities.argmax(axis=2)
        return codes

    def accuracies(self) -> NDArray[np.float64]:
        """Accuracy of every fold, (R, folds)."""
        right = self.predictions == self.targets
        n_folds = int(self.fold_of.max()) + 1
        return np.array(
            [
                [right[r][self.fold_of[r] == fold].mean() for fold in range(n_folds)]
                for r in range(len(right))
            ]
        )

    def fold_ceiling(self) -> float:
        """The mean over folds of what one fixed model could reach on the fold's test part."""
        parts = [
            np.flatnonzero(fold_of == fold)
            for fold_of in self.fold_of
            for fold in np.unique(fold_of)
        ]
        return float(np.mean([ceiling(self.rows[test], self.targets[test]) for test in parts]))

    def duplicates(self) -> NDArray[np.bool_]:
        """Which tests have an identical structure in their training part, (R, n)."""
        out = np.zeros(self.fold_of.shape, dtype=np.bool_)
        in_all = np.bincount(self.rows)
        for repeat, fold_of in enumerate(self.fold_of):
            pair = self.rows * (int(fold_of.max()) + 1) + fold_of
            in_fold = np.bincount(pair, minlength=int(pair.max()) + 1)[pair]
            out[repeat] = in_all[self.rows] > in_fold
        return out

    def report(self) -> dict[str, Any]:
        """Accuracy, ceilings and the share of duplicates as one JSON document."""
        folds = self.accuracies()
        per_repeat = folds.mean(axis=1)
        right, duplicates = self.predictions == self.targets, self.duplicates()
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
                "accuracy": float(right[duplicates].mean()) if duplicates.any() else None,
                "accuracy_rest": float(right[~duplicates].mean()) if (~duplicates).any() else None,
            },
            "chosen": self.chosen,
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
    estimator: SAENClassifier,
    X: Data,
    y: ArrayLike,
    *,
    repeats: int = 10,
    folds: int = 10,
    seed: int = 0,
    stop: str = "fixed",
    grid: Sequence[dict[str, Any]] = ({},),
    splits: Sequence[Sequence[Fold]] | None = None,
    models_at_once: int | None = None,
    folder: Path | None = None,
    progress: Progress | None = None,
) -> Evaluation:
    """Train and test an estimator on every fold of every repeat, many networks at once.

    The structures are decomposed and compressed once; compression never looks at targets. Each
    network sees the targets, labels and statistics of its own training part only; what `auto`
    radii and batch sizes look at is the structures of all. `seed` takes the place of the
    estimator's `random_state`. Under `nested`,
    `grid` lists the settings to choose from. `models_at_once` None times a few group sizes and
    takes the cheapest. With a `folder`, finished groups of networks are kept there and a second
    call goes on from them.

    >>> import saen
    >>> threads = saen.generate_threads(40, seed=1)
    >>> quick = SAENClassifier(epochs=3, n_models=1)
    >>> found = cross_validate(quick, threads, threads.targets, repeats=1, folds=4)
    >>> found.accuracies().shape
    (1, 4)
    """
    if stop not in STOPS:
        raise InputError(f"stop is one of {', '.join(STOPS)}, not {stop!r}")
    if stop == "nested" and len(grid) < 2:
        raise InputError("nested needs a grid of at least two settings to choose from")
    if stop == "peek" and estimator.epochs < 1:
        raise InputError("there is no epoch to choose: epochs must be at least 1")
    if estimator.patience is not None:
        raise InputError(
            "cross-validation does not stop early (patience): a training part is used whole, and "
            "test folds must not decide when to stop"
        )
    estimator._check_arguments()
    if models_at_once is not None and models_at_once < 1:
        raise InputError(f"at least 1 network trains at once, not {models_at_once}")
    if not 0 <= seed < 2**31:
        raise InputError(f"seed must be a number from 0 to {2**31 - 1}, not {seed}")
    structures = as_data(X, estimator._takes())
    classes, targets = np.unique(np.asarray(y), return_inverse=True)
    if len(targets) != len(structures):
        raise InputError(f"{len(structures)} structures, but {len(targets)} targets")
    if len(classes) < 2:
        raise InputError(f"cross-validation needs at least two classes, y holds {len(classes)}")
    plan = make_splits(targets, repeats, folds, seed) if splits is None else splits
    if folder is not None:
        write_json(folder / "splits.json", splits_to_json(plan))
    trainer = Trainer(structures, targets, classes, seed, models_at_once, folder, progress)
    outer = [
        Training((repeat, fold), train, test)
        for repeat, parts in enumerate(plan)
        for fold, (train, test) in enumerate(parts)
    ]
    chosen: list[Any] = []
    if stop == "nested":
        picked = _choose(trainer, estimator, grid, outer)
        chosen = [grid[index] for index in picked]
        trainer.expect(estimator, grid, picked)
        made, rows, loss = _train_chosen(trainer, estimator, grid, outer, picked)
    elif stop == "peek":
        trainer.expect(clone(estimator).set_params(n_models=1), [{}, {}], [0, 1] * len(outer))
        made, rows, loss, epoch = _peek(trainer, estimator, outer)
        chosen = [{"epoch": epoch}]
    else:
        trainer.expect(estimator, [{}], [0] * len(outer))
        made, rows, loss = trainer.train("fixed", estimator, outer)
    fold_of = np.full((len(plan), len(targets)), -1)
    found = np.zeros((len(plan), len(targets), len(classes)))
    for column, training in enumerate(outer):
        repeat, fold = training.name
        fold_of[repeat, training.test] = fold
        found[repeat, training.test] = made[training.test, column]
    levels = trainer.prepare(estimator).levels()
    return Evaluation(
        classes, targets, fold_of, found, rows, loss, dict(trainer.seconds), stop, chosen, levels
    )


# -- the protocols -----------------------------------------------------------------------------


def _choose(
    trainer: Trainer,
    estimator: SAENClassifier,
    grid: Sequence[dict[str, Any]],
    outer: Sequence[Training],
) -> list[int]:
    """For every outer fold the settings that do best on an inner split of its training part."""
    inner = []
    for training in outer:
        state = derive_seed((trainer.seed, *training.name), "inner split") % 2**31
        splitter = StratifiedShuffleSplit(1, test_size=0.1, random_state=state)
        fit, check = next(splitter.split(training.train, trainer.targets[training.train]))
        inner.append(Training(training.name, training.train[fit], training.train[check]))
    trainer.expect(estimator, grid, [i for i in range(len(grid)) for _ in inner])
    scores = np.zeros((len(grid), len(outer)))
    for index, settings in enumerate(grid):
        candidate = clone(estimator).set_params(**settings)
        made, _, _ = trainer.train(f"inner-{index}", candidate, inner)
        for column, training in enumerate(inner):
            truth = trainer.targets[training.test]
            answers = made[training.test, column]
            likelihood = np.log(np.maximum(answers[np.arange(len(truth)), truth], 1e-12)).mean()
            # Accuracy decides; the likelihood breaks ties, which small parts have many of.
            scores[index, column] = (answers.argmax(axis=1) == truth).mean() + 1e-6 * likelihood
    return [int(index) for index in scores.argmax(axis=0)]


def _train_chosen(
    trainer: Trainer,
    estimator: SAENClassifier,
    grid: Sequence[dict[str, Any]],
    outer: Sequence[Training],
    picked: Sequence[int],
) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.float64]]:
    """Train every outer fold anew with the settings that were chosen for it."""
    made = np.zeros((len(trainer.targets), len(outer), trainer.n_classes))
    # Duplicates and ceilings are those of the estimator's own decomposition, whatever was chosen.
    rows = trainer.prepare(estimator).top.astype(np.int64)
    loss = np.empty((0, 0))
    for index, settings in enumerate(grid):
        columns = [column for column, choice in enumerate(picked) if choice == index]
        if columns:
            candidate = clone(estimator).set_params(**settings)
            part, _, loss = trainer.train(
                f"outer-{index}", candidate, [outer[column] for column in columns]
            )
            made[:, columns] = part
    return made, rows, loss


def _peek(
    trainer: Trainer, estimator: SAENClassifier, outer: Sequence[Training]
) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.float64], int]:
    """The epoch at which the mean test accuracy is best, trained again up to just there."""
    single = clone(estimator).set_params(n_models=1)
    curves: list[NDArray[np.float64]] = []
    trainer.train("peek", single, outer, curves=curves)
    epoch = int(np.concatenate(curves, axis=1).mean(axis=1).argmax()) + 1
    made, rows, loss = trainer.train("peeked", single, outer, until=epoch)
    return made, rows, loss, epoch
