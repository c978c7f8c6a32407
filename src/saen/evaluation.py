"""Cross-validation: all trainings of all folds and repeats over one compressed hierarchy.

Three ways to stop:

- `fixed`: the number of epochs is set in advance; the test folds are looked at once;
- `nested`: settings are chosen, for every fold, on an inner split of its training part, then the
  networks are trained anew on all of it and the test fold is looked at once;
- `peek`: the best epoch of the test folds' mean curve, as some published numbers are made. It
  flatters, and is here for comparison with such numbers only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold, StratifiedShuffleSplit
from sklearn.utils.class_weight import compute_class_weight

from saen import storage
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
from saen.hierarchy import Hierarchy
from saen.model import derive_seed
from saen.runs import Fold, read_json, splits_to_json, write_json
from saen.tasks import Task
from saen.training import History, outputs, train

STOPS = ("fixed", "nested", "peek")
GROUPS = (10, 30, 100, 300)
"""Sizes of groups of networks that are timed against each other."""
MOST_NUMBERS = {"cpu": 1 << 28, "cuda": 1 << 33}
"""Activations that one pass of a group may hold."""

Progress = Callable[[int, int], object]
"""Called with network-epochs done and their total."""


@dataclass(frozen=True)
class Evaluation:
    """What a repeated cross-validation found.

    - `classes` (C,), `targets` (n,): codes into them; `fold_of` (R, n): the fold that tests each
      structure; `probabilities` (R, n, C): by the networks that did not train on it;
    - `rows` (n,): equal structures have equal rows;
    - `loss` (epochs, networks): the training curves of the last stage;
    - `chosen`: under `nested` the settings of every repeat and fold; under `peek` the epoch;
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
    X: Structures,
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
    structures = as_structures(X)
    classes, targets = np.unique(np.asarray(y), return_inverse=True)
    if len(targets) != len(structures):
        raise InputError(f"{len(structures)} structures, but {len(targets)} targets")
    if len(classes) < 2:
        raise InputError(f"cross-validation needs at least two classes, y holds {len(classes)}")
    plan = make_splits(targets, repeats, folds, seed) if splits is None else splits
    if folder is not None:
        write_json(folder / "splits.json", splits_to_json(plan))
    work = _Work(structures, targets, classes, seed, models_at_once, folder, progress)
    outer = [
        _Training((repeat, fold), train, test)
        for repeat, parts in enumerate(plan)
        for fold, (train, test) in enumerate(parts)
    ]
    chosen: list[Any] = []
    if stop == "nested":
        picked = _choose(work, estimator, grid, outer)
        chosen = [grid[index] for index in picked]
        work.expect(estimator, grid, picked)
        made, rows, loss = _train_chosen(work, estimator, grid, outer, picked)
    elif stop == "peek":
        work.expect(clone(estimator).set_params(n_models=1), [{}, {}], [0, 1] * len(outer))
        made, rows, loss, epoch = _peek(work, estimator, outer)
        chosen = [{"epoch": epoch}]
    else:
        work.expect(estimator, [{}], [0] * len(outer))
        made, rows, loss = work.train("fixed", estimator, outer)
    fold_of = np.full((len(plan), len(targets)), -1)
    found = np.zeros((len(plan), len(targets), len(classes)))
    for column, training in enumerate(outer):
        repeat, fold = training.name
        fold_of[repeat, training.test] = fold
        found[repeat, training.test] = made[training.test, column]
    return Evaluation(
        classes, targets, fold_of, found, rows, loss, dict(work.seconds), stop, chosen
    )


# -- the protocols -----------------------------------------------------------------------------


@dataclass(frozen=True)
class _Training:
    """One training: which repeat and fold, what it learns from, what it is tested on."""

    name: tuple[int, int]
    train: NDArray[Any]
    test: NDArray[Any]


def _choose(
    work: _Work,
    estimator: SAENClassifier,
    grid: Sequence[dict[str, Any]],
    outer: Sequence[_Training],
) -> list[int]:
    """For every outer fold the settings that do best on an inner split of its training part."""
    inner = []
    for training in outer:
        state = derive_seed((work.seed, *training.name), "inner split") % 2**31
        splitter = StratifiedShuffleSplit(1, test_size=0.1, random_state=state)
        fit, check = next(splitter.split(training.train, work.targets[training.train]))
        inner.append(_Training(training.name, training.train[fit], training.train[check]))
    work.expect(estimator, grid, [i for i in range(len(grid)) for _ in inner])
    scores = np.zeros((len(grid), len(outer)))
    for index, settings in enumerate(grid):
        candidate = clone(estimator).set_params(**settings)
        made, _, _ = work.train(f"inner-{index}", candidate, inner)
        for column, training in enumerate(inner):
            truth = work.targets[training.test]
            answers = made[training.test, column]
            likelihood = np.log(np.maximum(answers[np.arange(len(truth)), truth], 1e-12)).mean()
            # Accuracy decides; the likelihood breaks ties, which small parts have many of.
            scores[index, column] = (answers.argmax(axis=1) == truth).mean() + 1e-6 * likelihood
    return [int(index) for index in scores.argmax(axis=0)]


def _train_chosen(
    work: _Work,
    estimator: SAENClassifier,
    grid: Sequence[dict[str, Any]],
    outer: Sequence[_Training],
    picked: Sequence[int],
) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.float64]]:
    """Train every outer fold anew with the settings that were chosen for it."""
    made = np.zeros((len(work.targets), len(outer), work.n_classes))
    # Twins and ceilings are those of the estimator's own decomposition, whatever was chosen.
    rows = work.prepare(estimator).top.astype(np.int64)
    loss = np.empty((0, 0))
    for index, settings in enumerate(grid):
        columns = [column for column, choice in enumerate(picked) if choice == index]
        if columns:
            candidate = clone(estimator).set_params(**settings)
            part, _, loss = work.train(
                f"outer-{index}", candidate, [outer[column] for column in columns]
            )
            made[:, columns] = part
    return made, rows, loss


def _peek(
    work: _Work, estimator: SAENClassifier, outer: Sequence[_Training]
) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.float64], int]:
    """The epoch at which the mean test accuracy is best, trained again up to just there."""
    single = clone(estimator).set_params(n_models=1)
    curves: list[NDArray[np.float64]] = []
    work.train("peek", single, outer, curves=curves)
    epoch = int(np.concatenate(curves, axis=1).mean(axis=1).argmax()) + 1
    made, rows, loss = work.train("peeked", single, outer, until=epoch)
    return made, rows, loss, epoch


# -- the work ----------------------------------------------------------------------------------


class _Work:
    """Trains lists of networks in groups, remembers hierarchies, keeps results in a folder."""

    def __init__(
        self,
        structures: Graphs | Hierarchy,
        targets: NDArray[np.int64],
        classes: NDArray[Any],
        seed: int,
        models_at_once: int | None,
        folder: Path | None,
        progress: Progress | None,
    ) -> None:
        self.structures = structures
        self.targets = targets
        self.classes = classes
        self.n_classes = len(classes)
        self.seed = seed
        self.models_at_once = models_at_once
        self.folder = folder
        self.progress = progress
        self.seconds = {"decompose": 0.0, "compress": 0.0, "train": 0.0}
        self.done = self.total = 0
        self._prepared: dict[str, Compressed] = {}

    def expect(
        self, estimator: SAENClassifier, grid: Sequence[dict[str, Any]], picked: Sequence[int]
    ) -> None:
        """Add the network-epochs of coming trainings to the total that progress counts to."""
        for index in picked:
            settings = {**estimator.get_params(), **grid[index]}
            self.total += int(settings["epochs"] * settings["n_models"])

    def prepare(self, estimator: SAENClassifier) -> Compressed:
        """The compressed hierarchy that an estimator works on; equal decompositions share it."""
        if isinstance(self.structures, Hierarchy):
            if "" not in self._prepared:
                self._prepared[""] = compress(self.structures)
            return self._prepared[""]
        start = perf_counter()
        chosen = estimator._chosen_decomposition(self.structures)
        key = repr(chosen)
        if key not in self._prepared:
            fitted = chosen.fit(self.structures)
            between = perf_counter()
            self._prepared[key] = compress_graphs(self.structures, fitted, lower_classes=False)
            self.seconds["decompose"] += between - start
            self.seconds["compress"] += perf_counter() - between
        return self._prepared[key]

    def train(
        self,
        stage: str,
        estimator: SAENClassifier,
        trainings: Sequence[_Training],
        *,
        until: int | None = None,
        curves: list[NDArray[np.float64]] | None = None,
    ) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.float64]]:
        """Probabilities of all structures by every training, (n, T, C), rows and loss curves.

        Each training is `n_models` networks, whose probabilities are averaged. With `curves`, test
        accuracies per epoch, (epochs, networks), are appended to it.
        """
        compressed = self.prepare(estimator)
        start = perf_counter()
        runs = [
            (column, model)
            for column in range(len(trainings))
            for model in range(estimator.n_models)
        ]
        size = self._group_size(stage, estimator, compressed, trainings, runs)
        made = np.zeros((len(self.targets), len(trainings), self.n_classes))
        losses = []
        for first in range(0, len(runs), size):
            group = runs[first : first + size]
            result = self._group(
                f"{stage}-{first:04d}",
                estimator,
                compressed,
                trainings,
                group,
                until=until,
                validate=curves is not None,
            )
            for position, (column, _) in enumerate(group):
                made[:, column] += result.probabilities[:, position] / estimator.n_models
            losses.append(np.array(result.history.loss).reshape(-1, len(group)))
            if curves is not None:
                curves.append(np.array(result.history.validation_accuracy))
        self.seconds["train"] += perf_counter() - start
        rows = compressed.top.astype(np.int64)
        return made, rows, np.concatenate(losses, axis=1)

    def _group(
        self,
        name: str,
        estimator: SAENClassifier,
        compressed: Compressed,
        trainings: Sequence[_Training],
        group: Sequence[tuple[int, int]],
        *,
        until: int | None = None,
        validate: bool = False,
        times: list[float] | None = None,
    ) -> _Result:
        """Train one group of networks, or take its result from the folder."""
        kept = None if self.folder is None or times is not None else self.folder / f"{name}.saen"
        if kept is not None and kept.exists():
            result = _Result.read(kept)
            self._advance(len(group) * len(result.history.loss))
            return result
        weights, tested = (np.zeros((len(self.targets), len(group))) for _ in range(2))
        for position, (column, _) in enumerate(group):
            weights[trainings[column].train, position] = 1.0
            tested[trainings[column].test, position] = 1.0
        task = Task(
            "binary" if self.n_classes == 2 else "classes",
            self.targets,
            weights,
            tested if validate else None,
            class_weights=self._class_weights(estimator, weights),
            n_classes=self.n_classes,
        )
        seeds = [(self.seed, *trainings[column].name, model) for column, model in group]
        network = estimator._network(compressed.hierarchy, task.n_outputs, seeds)
        settings = estimator._settings(len(self.targets), self.seed)
        done = self.done

        def epoch_done(epoch: int, history: History) -> None:
            if times is not None:
                times.append(perf_counter())
            else:
                self._advance(done + epoch * len(group) - self.done)

        checkpoint = None if kept is None else kept.with_suffix(".checkpoint")
        history = train(
            network,
            compressed,
            task,
            settings,
            min_count=estimator.min_count,
            checkpoint=checkpoint,
            until=until,
            progress=epoch_done,
        )
        if history.interrupted:
            raise KeyboardInterrupt
        if times is not None:
            return _Result(np.empty((0, 0, 0)), history)
        rows = probabilities(outputs(network, compressed.hierarchy).double().cpu().numpy())
        result = _Result(rows[compressed.top], history)
        if kept is not None and checkpoint is not None:
            result.write(kept)
            checkpoint.unlink(missing_ok=True)
        return result

    def _class_weights(
        self, estimator: SAENClassifier, weights: NDArray[np.float64]
    ) -> NDArray[np.float64] | None:
        """Of every network's own training part, (C, M)."""
        if estimator.class_weight is None:
            return None
        labels = self.classes[self.targets]
        return np.column_stack(
            [
                compute_class_weight(
                    estimator.class_weight, classes=self.classes, y=labels[column > 0]
                )
                for column in weights.T
            ]
        )

    def _group_size(
        self,
        stage: str,
        estimator: SAENClassifier,
        compressed: Compressed,
        trainings: Sequence[_Training],
        runs: Sequence[tuple[int, int]],
    ) -> int:
        """How many networks to train at once: given, recorded, or the cheapest of those timed."""
        if self.models_at_once is not None:
            return self.models_at_once
        note = None if self.folder is None else self.folder / f"{stage}-group.json"
        if note is not None and note.exists():
            return int(read_json(note)["models_at_once"])
        layers = estimator._network(compressed.hierarchy, 1, [0]).architecture.layers
        widest = max(width for sizes in layers for width in sizes)
        largest = MOST_NUMBERS[chosen_device(estimator.device).type] // (
            max(sum(compressed.hierarchy.sizes) * widest, 1)
        )
        sizes = [size for size in GROUPS if size <= max(largest, GROUPS[0]) and size < len(runs)]
        if largest >= len(runs) and len(runs) <= 2 * GROUPS[-1]:
            sizes.append(len(runs))
        best, cost = sizes[0] if sizes else len(runs), np.inf
        for size in sizes if len(sizes) > 1 else []:
            times = [perf_counter()]
            part = runs[:size]
            self._group("timing", estimator, compressed, trainings, part, until=3, times=times)
            each = min(np.diff(times)[1:], default=np.inf) / size
            if each > 1.1 * cost:
                break  # larger groups have fallen out of the cache
            if each < cost:
                best, cost = size, each
        if note is not None:
            write_json(note, {"models_at_once": best, "seconds_per_network_epoch": cost})
        return best

    def _advance(self, network_epochs: int) -> None:
        self.done += network_epochs
        if self.progress is not None:
            self.progress(self.done, self.total)


@dataclass(frozen=True)
class _Result:
    """What is kept of a trained group: probabilities (n, M, C) and curves."""

    probabilities: NDArray[np.float64]
    history: History

    def write(self, path: Path) -> None:
        document = {"history": asdict(self.history)}
        storage.write(path, "predictions", document, {"probabilities": self.probabilities})

    @classmethod
    def read(cls, path: Path) -> _Result:
        _, document, tensors = storage.read(path)
        return cls(np.array(tensors["probabilities"]), History(**document["history"]))
