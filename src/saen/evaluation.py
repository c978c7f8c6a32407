"""Cross-validation: all trainings of all folds and repeats over one compressed hierarchy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold
from sklearn.utils.class_weight import compute_class_weight

from saen.arrays import Ints
from saen.compression import Compressed, ceiling, compress, compress_graphs
from saen.errors import InputError
from saen.estimators import (
    SAENClassifier,
    Structures,
    as_structures,
    chosen_device,
    probabilities,
)
from saen.graphs import Graphs
from saen.model import SAEN
from saen.tasks import Task
from saen.training import History, outputs, train

Fold = tuple[Ints, Ints]
"""Training and test structures of one fold."""

MODELS_AT_ONCE = {"cpu": 30, "cuda": 300}
"""How many networks train side by side: on a CPU more of them fall out of the cache."""


@dataclass(frozen=True)
class Evaluation:
    """What a repeated cross-validation found.

    - `classes` (C,), `targets` (n,): codes into them; `fold_of` (R, n): the fold that tests each
      structure; `probabilities` (R, n, C): by the models that did not train on it;
    - `rows` (n,): equal structures have equal rows; `seconds`: per step; `history`: per group of
      models that trained together.
    """

    classes: NDArray[Any]
    targets: NDArray[np.int64]
    fold_of: NDArray[np.int64]
    probabilities: NDArray[np.float64]
    rows: NDArray[np.int64]
    seconds: dict[str, float]
    history: list[History] = field(default_factory=list)

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
        return float(
            np.mean(
                [
                    ceiling(self.rows[test], self.targets[test])
                    for fold_of in self.fold_of
                    for test in (np.flatnonzero(fold_of == f) for f in np.unique(fold_of))
                ]
            )
        )

    def twins(self) -> NDArray[np.bool_]:
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
        right, twins = self.predictions == self.targets, self.twins()
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
                "share": float(twins.mean()),
                "accuracy": float(right[twins].mean()) if twins.any() else None,
                "accuracy_rest": float(right[~twins].mean()) if (~twins).any() else None,
            },
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
    splitters = [
        StratifiedKFold(folds, shuffle=True, random_state=seed + repeat)
        for repeat in range(repeats)
    ]
    return [list(splitter.split(np.empty(len(y)), y)) for splitter in splitters]


def cross_validate(
    estimator: SAENClassifier,
    X: Structures,
    y: ArrayLike,
    *,
    repeats: int = 10,
    folds: int = 10,
    seed: int = 0,
    splits: Sequence[Sequence[Fold]] | None = None,
    models_at_once: int | None = None,
    progress: Callable[[int, int, History], object] | None = None,
) -> Evaluation:
    """Train and test an estimator on every fold of every repeat, many networks at once.

    The structures are decomposed and compressed once; compression never looks at targets. Each
    network sees the targets, labels and statistics of its own training part only. `progress` is
    called with the trainings finished before this group, the epoch, and the history so far.

    >>> import saen
    >>> threads = saen.generate_threads(40, seed=1)
    >>> quick = SAENClassifier(epochs=3, n_models=1)
    >>> found = cross_validate(quick, threads, threads.targets, repeats=1, folds=4)
    >>> found.accuracies().shape
    (1, 4)
    """
    structures = as_structures(X)
    classes, targets = np.unique(np.asarray(y), return_inverse=True)
    if len(targets) != len(structures):
        raise InputError(f"{len(structures)} structures, but {len(targets)} targets")
    if len(classes) < 2:
        raise InputError(f"cross-validation needs at least two classes, y holds {len(classes)}")
    plan = make_splits(targets, repeats, folds, seed) if splits is None else splits
    estimator = clone(estimator)
    compressed, seconds = _prepare(estimator, structures)
    runs = [
        (repeat, fold, model)
        for repeat, parts in enumerate(plan)
        for fold in range(len(parts))
        for model in range(estimator.n_models)
    ]
    fold_of = np.full((len(plan), len(targets)), -1)
    for repeat, parts in enumerate(plan):
        for fold, (_, test) in enumerate(parts):
            fold_of[repeat, test] = fold
    found = np.zeros((len(plan), len(targets), len(classes)))
    start = perf_counter()
    histories = []
    at_once = models_at_once or MODELS_AT_ONCE.get(chosen_device(estimator.device).type, 30)
    for first in range(0, len(runs), at_once):
        group = runs[first : first + at_once]
        network, history = _train_group(
            estimator, compressed, targets, len(classes), plan, group, seed, first, progress
        )
        histories.append(history)
        made = outputs(network, compressed.hierarchy).double().cpu().numpy()
        tested = probabilities(made)[compressed.top]
        for column, (repeat, fold, _) in enumerate(group):
            test = plan[repeat][fold][1]
            found[repeat, test] += tested[test, column] / estimator.n_models
    seconds["train"] = perf_counter() - start
    rows = compressed.top.astype(np.int64)
    return Evaluation(classes, targets, fold_of, found, rows, seconds, histories)


def _prepare(estimator: SAENClassifier, structures: Any) -> tuple[Compressed, dict[str, float]]:
    start = perf_counter()
    if not isinstance(structures, Graphs):
        return compress(structures), {"decompose": 0.0, "compress": perf_counter() - start}
    decomposition = estimator._chosen_decomposition(structures).fit(structures)
    fitted = perf_counter()
    compressed = compress_graphs(structures, decomposition, lower_classes=False)
    return compressed, {"decompose": fitted - start, "compress": perf_counter() - fitted}


def _train_group(
    estimator: SAENClassifier,
    compressed: Compressed,
    targets: NDArray[np.int64],
    n_classes: int,
    plan: Sequence[Sequence[Fold]],
    group: Sequence[tuple[int, int, int]],
    seed: int,
    finished: int,
    progress: Callable[[int, int, History], object] | None,
) -> tuple[SAEN, History]:
    weights = np.zeros((len(targets), len(group)))
    for column, (repeat, fold, _) in enumerate(group):
        weights[plan[repeat][fold][0], column] = 1.0
    class_weights = None
    if estimator.class_weight is not None:
        # Of every model's own training part, (C, M).
        labels = np.arange(n_classes)
        columns = [
            compute_class_weight(estimator.class_weight, classes=labels, y=targets[column > 0])
            for column in weights.T
        ]
        class_weights = np.column_stack(columns)
    task = Task(
        "binary" if n_classes == 2 else "classes",
        targets,
        weights,
        class_weights=class_weights,
        n_classes=n_classes,
    )
    network = estimator._network(
        compressed.hierarchy, task.n_outputs, [(seed, *run) for run in group]
    )

    def shown(epoch: int, history: History) -> None:
        if progress is not None:
            progress(finished, epoch, history)

    settings = estimator._settings(len(targets), seed)
    history = train(
        network, compressed, task, settings, min_count=estimator.min_count, progress=shown
    )
    if history.interrupted:
        raise KeyboardInterrupt
    return network, history
