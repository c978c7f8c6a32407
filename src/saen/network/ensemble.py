"""Many trainings over one compressed hierarchy: networks side by side, in groups that fit memory.

A `Plan` says how networks are trained on a dataset; `train_parts` trains some for every part of the
data (every fold, say) and gives their outputs on the part's test examples.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from saen._util.arrays import distinct_with_inverse, offsets, segment_ids
from saen._util.executor import Tasks
from saen.data.compression import Compressed
from saen.errors import FileError
from saen.io import container
from saen.network.architecture import Architecture
from saen.network.batches import generator
from saen.network.loss import Task
from saen.network.model import SAEN
from saen.network.settings import DivergenceWarning, History, Part, Settings
from saen.network.training import outputs, train

MAX_STEP_ACTIVATIONS = 1 << 24
"""Activations of one training step of a group on a CPU: more fall out of the cache."""
MIN_GROUP_SIZE = 10
"""Networks that train side by side in any case: fewer leave a CPU waiting for Python."""
BYTES_PER_ACTIVATION = 16
"""Of GPU memory: a float32, its gradient, and what the passes keep of it."""

CPU = torch.device("cpu")
Seed = int | Sequence[int]
Progress = Callable[[int], object]
"""Called with the network-epochs done since the last call."""


@dataclass(frozen=True)
class Plan:
    """Everything that decides how networks train on a dataset, except which part they train on."""

    compressed: Compressed
    architecture: Architecture
    settings: Settings
    n_models: int = 1
    min_count: int = 1
    device: torch.device = CPU
    dtype: torch.dtype = torch.float32

    def network(self, seeds: Sequence[Seed]) -> SAEN:
        """Untrained networks on the plan's device, one per seed."""
        return SAEN(self.architecture, seeds, dtype=self.dtype).to(self.device)


@dataclass(frozen=True)
class PartResults:
    """What training on parts gave.

    - `outputs`: per part, of its `n_models` networks on its test examples, (tests, n_models, k);
    - `loss` (epochs, networks): training loss; networks are ordered by part, then model;
    - `test_accuracy`, `test_loss` (epochs, networks): on the test examples, where asked for.
    """

    outputs: list[NDArray[np.float64]]
    loss: NDArray[np.float64]
    test_accuracy: NDArray[np.float64] | None
    test_loss: NDArray[np.float64] | None


def train_parts(
    plan: Plan,
    task: Task,
    parts: Sequence[Part],
    *,
    seed: int = 0,
    until: int | None = None,
    test_curves: bool = False,
    group_size: int | None = None,
    folder: Path | None = None,
    stage: str = "networks",
    progress: Progress | None = None,
    tasks: Tasks | None = None,
) -> PartResults:
    """Train `plan.n_models` networks on every part, many side by side, and test them.

    A network's result does not depend on those beside it, except for rounding.

    Parameters
    ----------
    plan, task : how and what to learn; `task.weights` (examples, 1) counts in the training of
        every part; `task.class_weights`, where given, has shape (classes, len(parts)), and
        `task.targets` may have shape (examples, len(parts), k).
    parts : what to train on and to test on.
    seed : decides, with a part's name and the number of the model, the initial weights.
    until : epochs to train, all of the settings' by default.
    test_curves : whether to measure loss and accuracy on the test examples after every epoch.
    group_size : networks side by side; by default `choose_group_size`.
    folder, stage : finished groups are written there, under that name, and taken from there.
    progress : called with the network-epochs done since the last call.
    tasks : where groups are trained, by default here; the results are the same.
    """
    groups = _groups(plan, task, parts, seed, group_size)
    if tasks is not None:
        _submit(tasks, groups, until, test_curves, folder, stage, progress)
    collected = [
        np.empty((len(part.test), plan.n_models, task.n_outputs), dtype=np.float64)
        for part in parts
    ]
    histories = []
    for first, group in groups.items():
        name = f"{stage}-{first:04d}"
        file = None if folder is None else folder / f"{name}.saen"
        if tasks is not None and tasks.has(name):
            rows, history = tasks.result(name)
        else:
            rows, history = group.train_or_read(file, until, test_curves, progress)
        histories.append((history, len(group.runs)))
        ends = np.cumsum([len(parts[part].test) for part, _ in group.runs])
        for (part, model), block in zip(group.runs, np.split(rows, ends[:-1]), strict=True):
            collected[part][:, model] = block

    def curves(name: str) -> NDArray[np.float64]:
        return np.concatenate(
            [np.array(getattr(history, name)).reshape(-1, n) for history, n in histories], axis=1
        )

    tests = [
        curves(name) if test_curves else None for name in ("validation_accuracy", "validation_loss")
    ]
    return PartResults(collected, curves("loss"), *tests)


def submit_parts(
    tasks: Tasks,
    plan: Plan,
    task: Task,
    parts: Sequence[Part],
    *,
    seed: int = 0,
    until: int | None = None,
    test_curves: bool = False,
    group_size: int | None = None,
    folder: Path | None = None,
    stage: str = "networks",
    progress: Progress | None = None,
) -> None:
    """Begin what `train_parts` with the same arguments will wait for."""
    groups = _groups(plan, task, parts, seed, group_size)
    _submit(tasks, groups, until, test_curves, folder, stage, progress)


def _groups(
    plan: Plan, task: Task, parts: Sequence[Part], seed: int, group_size: int | None
) -> dict[int, _Group]:
    """Networks that train side by side, by the number of the first."""
    runs = [(part, model) for part in range(len(parts)) for model in range(plan.n_models)]
    size = group_size or choose_group_size(plan, len(runs))
    return {
        first: _Group(plan, task, parts, runs[first : first + size], seed)
        for first in range(0, len(runs), size)
    }


def _submit(
    tasks: Tasks,
    groups: dict[int, _Group],
    until: int | None,
    validate: bool,
    folder: Path | None,
    stage: str,
    progress: Progress | None,
) -> None:
    """Submit the groups that are not finished."""
    for first, group in groups.items():
        name = f"{stage}-{first:04d}"
        file = None if folder is None else folder / f"{name}.saen"
        if file is not None and file.exists():
            continue
        plan = group.plan
        # Shared alone: all stages over one hierarchy send it once.
        compressed = tasks.put(plan.compressed)
        rest = tuple(getattr(plan, f.name) for f in fields(plan) if f.name != "compressed")
        received = partial(group.receive, file, progress)
        task = compressed, rest, group.alone(), until, validate
        tasks.submit(name, received, _train_group, *task)


def _train_group(
    compressed: Compressed, rest: tuple[Any, ...], group: _Group, until: int | None, validate: bool
) -> tuple[NDArray[np.float64], History, list[str]]:
    """Outputs, curves and warnings of a group."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", DivergenceWarning)
        group = replace(group, plan=Plan(compressed, *rest))
        rows, history = group.train_or_read(None, until, validate, None)
    messages = [str(w.message) for w in caught if issubclass(w.category, DivergenceWarning)]
    return rows, history, messages


def choose_group_size(plan: Plan, n_networks: int) -> int:
    """How many networks to train side by side: by rule, so that a repeated run gives the same bits.

    On a CPU as many as one training step keeps in the cache, on a GPU as many as fit its memory.
    """
    widest = max(size for sizes in plan.architecture.layers for size in sizes)
    if plan.device.type == "cuda":
        memory = torch.cuda.get_device_properties(plan.device).total_memory
        limit, objects = memory // BYTES_PER_ACTIVATION, sum(plan.compressed.hierarchy.sizes)
    else:
        limit, objects = MAX_STEP_ACTIVATIONS, _objects_per_step(plan)
    size = max(limit // max(objects * widest, 1), MIN_GROUP_SIZE)
    n_groups = -(-n_networks // min(size, n_networks))
    return -(-n_networks // n_groups)  # groups of about equal size


def _objects_per_step(plan: Plan) -> int:
    """Objects of all levels that a batch of the usual size reaches, by the example of one batch."""
    n, batch_size = len(plan.compressed), plan.settings.batch_size
    hierarchy = plan.compressed.hierarchy
    if batch_size is None or batch_size >= n:
        return sum(hierarchy.sizes)
    batch = generator(plan.settings.seed, "group size").permutation(n)[:batch_size]
    return sum(hierarchy[np.unique(plan.compressed.top[batch])].sizes)


def _read_group(file: Path) -> tuple[NDArray[np.float64], History]:
    """Outputs and curves of a finished group."""
    _, document, tensors = container.read(file)
    try:
        history = History(**document["history"])
        len(history.loss)
        return np.array(tensors["outputs"]), history
    except (KeyError, TypeError) as error:
        raise FileError(f"damaged: inconsistent content ({error})", path=file) from None


@dataclass(frozen=True)
class _Group:
    """Networks that train side by side: pairs of a part and a number of a model."""

    plan: Plan
    task: Task
    parts: Sequence[Part]
    runs: Sequence[tuple[int, int]]
    seed: int

    def train_or_read(
        self, file: Path | None, until: int | None, validate: bool, progress: Progress | None
    ) -> tuple[NDArray[np.float64], History]:
        """Outputs on the test examples, one run after the other, (Σ tests, k), and the curves."""
        checkpoint = None if file is None else file.with_suffix(".checkpoint")
        if file is not None and checkpoint is not None and file.exists():
            checkpoint.unlink(missing_ok=True)  # of a run that was killed between the two
            rows, history = _read_group(file)
            if progress is not None:
                progress(len(self.runs) * len(history.loss))
            return rows, history
        rows, history = self._train(checkpoint, until, validate, progress)
        if file is not None and checkpoint is not None:
            self._write(file, rows, history)
            checkpoint.unlink(missing_ok=True)
        return rows, history

    def alone(self) -> _Group:
        """Without the plan, and with nothing of the parts and targets that it does not train on."""
        used = sorted({part for part, _ in self.runs})
        number = {part: place for place, part in enumerate(used)}
        task = self.task
        return _Group(
            None,  # type: ignore[arg-type]
            replace(
                task,
                targets=task.targets[:, used] if task.targets.ndim == 3 else task.targets,
                class_weights=None if task.class_weights is None else task.class_weights[:, used],
            ),
            [self.parts[part] for part in used],
            [(number[part], model) for part, model in self.runs],
            self.seed,
        )

    def receive(
        self,
        file: Path | None,
        progress: Progress | None,
        result: tuple[NDArray[np.float64], History, list[str]],
    ) -> tuple[NDArray[np.float64], History]:
        """What a task returned: keep it in a file, and warn here as the task did there."""
        rows, history, messages = result
        for message in messages:
            warnings.warn(message, DivergenceWarning, stacklevel=4)
        if file is not None:
            self._write(file, rows, history)
        if progress is not None:
            progress(len(self.runs) * len(history.loss))
        return rows, history

    def _write(self, file: Path, rows: NDArray[np.float64], history: History) -> None:
        document = {"history": asdict(history), "networks": len(self.runs)}
        container.write(file, "predictions", document, {"outputs": rows})

    def _train(
        self, checkpoint: Path | None, until: int | None, validate: bool, progress: Progress | None
    ) -> tuple[NDArray[np.float64], History]:
        plan, compressed = self.plan, self.plan.compressed
        seeds = [(self.seed, *self.parts[part].name, model) for part, model in self.runs]
        network = plan.network(seeds)
        done = 0

        def epoch_done(epoch: int, _: History) -> None:
            nonlocal done
            if progress is not None:
                progress((epoch - done) * len(self.runs))
            done = epoch

        history = train(
            network,
            compressed,
            self._task(validate),
            plan.settings,
            min_count=plan.min_count,
            checkpoint=checkpoint,
            until=until,
            progress=epoch_done,
        )
        if history.interrupted:
            raise KeyboardInterrupt
        tests = [self.parts[part].test for part, _ in self.runs]
        tested = np.concatenate([compressed.top[test] for test in tests])
        unique, place = distinct_with_inverse(tested)
        hierarchy = compressed.hierarchy
        reached = hierarchy if len(unique) == len(hierarchy) else hierarchy[unique]
        found = outputs(network, reached).double().cpu().numpy()
        return found[place, segment_ids(offsets(np.array(list(map(len, tests)))))], history

    def _task(self, validate: bool) -> Task:
        weights, tested = (np.zeros((len(self.task.targets), len(self.runs))) for _ in range(2))
        for position, (part, _) in enumerate(self.runs):
            train, test = self.parts[part].train, self.parts[part].test
            weights[train, position] = self.task.weights[train, 0]
            tested[test, position] = self.task.weights[test, 0]
        part_of = [part for part, _ in self.runs]
        targets, class_weights = self.task.targets, self.task.class_weights
        if class_weights is not None:
            class_weights = class_weights[:, part_of]
        return replace(
            self.task,
            targets=targets[:, part_of] if targets.ndim == 3 else targets,
            weights=weights,
            validation=tested if validate else None,
            class_weights=class_weights,
        )
