"""Many trainings in groups: one compressed hierarchy, timed group sizes, results that are kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.class_weight import compute_class_weight

from saen._util.json_files import read_json, write_json
from saen.data.compression import Compressed, compress, compress_graphs
from saen.data.hierarchy import Hierarchy
from saen.io import container
from saen.learning.estimators import SAENClassifier, chosen_device, probabilities
from saen.network.loss import Task
from saen.network.training import History, outputs, train

GROUPS = {"cpu": (1, 3, 10, 30, 100, 300), "cuda": (10, 30, 100, 300)}
"""Sizes of groups of networks that are timed against each other."""
FIRST = 10
"""The size that is timed first: larger ones are tried while they pay, smaller ones if none did."""
MOST_NUMBERS = {"cpu": 1 << 28, "cuda": 1 << 33}
"""Activations that one pass of a group may hold."""

Progress = Callable[[int, int], object]
"""Called with network-epochs done and their total."""


@dataclass(frozen=True)
class Training:
    """One training: which repeat and fold, what it learns from, what it is tested on."""

    name: tuple[int, int]
    train: NDArray[Any]
    test: NDArray[Any]


class Trainer:
    """Trains lists of networks in groups, remembers hierarchies, keeps results in a folder."""

    def __init__(
        self,
        structures: Any,
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
            self._prepared[key] = compress_graphs(self.structures, fitted, lower_inverse=False)
            self.seconds["decompose"] += between - start
            self.seconds["compress"] += perf_counter() - between
        return self._prepared[key]

    def train(
        self,
        stage: str,
        estimator: SAENClassifier,
        trainings: Sequence[Training],
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
        trainings: Sequence[Training],
        group: Sequence[tuple[int, int]],
        *,
        until: int | None = None,
        validate: bool = False,
        times: list[float] | None = None,
    ) -> Result:
        """Train one group of networks, or take its result from the folder."""
        kept = None if self.folder is None or times is not None else self.folder / f"{name}.saen"
        if kept is not None and kept.exists():
            result = Result.read(kept)
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
            return Result(np.empty((0, 0, 0)), history)
        rows = probabilities(outputs(network, compressed.hierarchy).double().cpu().numpy())
        result = Result(rows[compressed.top], history)
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
        trainings: Sequence[Training],
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
        device = chosen_device(estimator.device).type
        largest = MOST_NUMBERS[device] // max(sum(compressed.hierarchy.sizes) * widest, 1)
        sizes = [size for size in GROUPS[device] if size <= max(largest, FIRST)]
        sizes = [size for size in sizes if size < len(runs)]
        if FIRST < len(runs) <= min(largest, 2 * GROUPS[device][-1]):
            sizes.append(len(runs))

        def seconds(size: int) -> float:
            """Of one epoch of one network in a group of that size."""
            times = [perf_counter()]
            part = runs[:size]
            self._group("timing", estimator, compressed, trainings, part, until=3, times=times)
            return float(min(np.diff(times)[1:], default=np.inf)) / size

        best, cost = len(runs), np.inf
        if len(runs) > FIRST:
            best, cost = cheapest(sizes, seconds) if len(sizes) > 1 else (FIRST, np.inf)
        if note is not None:
            write_json(note, {"models_at_once": best, "seconds_per_network_epoch": cost})
        return best

    def _advance(self, network_epochs: int) -> None:
        self.done += network_epochs
        if self.progress is not None:
            self.progress(self.done, self.total)


def cheapest(sizes: Sequence[int], seconds: Callable[[int], float]) -> tuple[int, float]:
    """The size that costs least, with its cost; sizes are timed from `FIRST` on.

    Larger ones are tried while they pay, smaller ones where the larger did not.

    >>> cheapest([1, 3, 10, 30], {10: 2.0, 30: 2.5, 3: 1.5, 1: 1.8}.get)
    (3, 1.5)
    """
    best, cost = FIRST, seconds(FIRST)
    larger = [size for size in sizes if size > FIRST]
    smaller = [size for size in sizes if size < FIRST][::-1]
    for others in (larger, smaller):
        for size in others if best == FIRST else ():
            each = seconds(size)
            if each > 1.1 * cost:
                break  # the group has fallen out of the cache, or does too little at once
            if each < cost:
                best, cost = size, each
    return best, cost


@dataclass(frozen=True)
class Result:
    """What is kept of a trained group: probabilities (n, M, C) and curves."""

    probabilities: NDArray[np.float64]
    history: History

    def write(self, path: Path) -> None:
        """Keep it in one file."""
        document = {"history": asdict(self.history)}
        container.write(path, "predictions", document, {"probabilities": self.probabilities})

    @classmethod
    def read(cls, path: Path) -> Result:
        """The inverse of `write`."""
        _, document, tensors = container.read(path)
        return cls(np.array(tensors["probabilities"]), History(**document["history"]))
