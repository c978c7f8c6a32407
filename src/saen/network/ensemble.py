"""Many trainings over one compressed hierarchy: networks side by side, in groups that fit memory.

A `Plan` says how networks are trained on a dataset; `PartTraining` trains some for every part of
the data (every fold, say) and gives their outputs on the part's test examples.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from pathlib import Path

import numpy as np
import torch

from saen._util.arrays import Floats, distinct_with_inverse, offsets, segment_ids
from saen._util.executor import Tasks
from saen.data.compression import Compressed
from saen.errors import FileError
from saen.io import container
from saen.network.architecture import Architecture
from saen.network.batches import generator
from saen.network.loss import Task
from saen.network.model import SAEN
from saen.network.settings import (
    DivergenceError,
    DivergenceWarning,
    History,
    Part,
    Settings,
    as_rows,
)
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
    - `test_accuracy`, `test_loss` (epochs, networks): on the test examples, where asked for; NaN
      after epochs at which they were not measured.
    """

    outputs: list[Floats]
    loss: Floats
    test_accuracy: Floats | None
    test_loss: Floats | None

    def history(self, first: int, last: int) -> History:
        """The curves of some networks, tests as validation."""
        loss, accuracy = (
            [] if each is None else as_rows(each[:, first:last])
            for each in (self.test_loss, self.test_accuracy)
        )
        return History(self.loss[:, first:last].tolist(), [], loss, accuracy)


@dataclass(frozen=True)
class PartTraining:
    """Trains `plan.n_models` networks on every part, many side by side, and tests them.

    A network's result does not depend on those beside it, except for rounding.

    Parameters
    ----------
    plan, task : how and what to learn; `task.weights` (examples, 1) counts in the training of
        every part; `task.class_weights`, where given, has shape (classes, len(parts)), and
        `task.targets` may have shape (examples, len(parts), k).
    parts : what to train on and to test on.
    seed : decides, with a part's name and the number of the model, the initial weights.
    until : epochs to train, all of the settings' by default.
    test_every : measure loss and accuracy on the test examples after every so many epochs, and
        the last one; 0 is never.
    group_size : networks side by side; by default `choose_group_size`.
    folder, stage : finished groups are written there, under that name, and taken from there.
    progress : called with the network-epochs done since the last call.
    tasks : where groups are trained, by default here; the results are the same.
    """

    plan: Plan
    task: Task
    parts: Sequence[Part]
    seed: int = 0
    until: int | None = None
    test_every: int = 0
    group_size: int | None = None
    folder: Path | None = None
    stage: str = "networks"
    progress: Progress | None = None
    tasks: Tasks | None = None

    def submit(self) -> None:
        """Begin the tasks that `run` will wait for: the groups that are not finished."""
        for group in self._groups:
            if self.tasks is None or (group.file is not None and group.file.exists()):
                continue
            # The hierarchy is shared alone: all stages over it send it once.
            compressed = self.tasks.put(self.plan.compressed)
            received = partial(group.receive, self.progress)
            self.tasks.submit(group.name, received, _train_group, compressed, group.alone())

    def run(self) -> PartResults:
        """Train, and test."""
        self.submit()
        collected = [
            np.empty((len(part.test), self.plan.n_models, self.task.n_outputs), dtype=np.float64)
            for part in self.parts
        ]
        histories = []
        for group in self._groups:
            if self.tasks is not None and self.tasks.has(group.name):
                result = self.tasks.result(group.name)
                if isinstance(result, DivergenceError):
                    raise result
                rows, history = result
            else:
                rows, history = group.train_or_read(self.progress)
            histories.append((history, len(group.runs)))
            ends = np.cumsum([len(self.parts[part].test) for part, _ in group.runs])
            for (part, model), block in zip(group.runs, np.split(rows, ends[:-1]), strict=True):
                collected[part][:, model] = block

        def curves(name: str) -> Floats:
            each = [
                np.array(getattr(history, name), dtype=np.float64).reshape(-1, n)
                for history, n in histories
            ]
            return np.concatenate(each, axis=1)

        tests = ("validation_accuracy", "validation_loss")
        tested = [curves(name) if self.test_every else None for name in tests]
        return PartResults(collected, curves("loss"), *tested)

    @cached_property
    def _groups(self) -> list[_Group]:
        n_models = self.plan.n_models
        runs = [(part, model) for part in range(len(self.parts)) for model in range(n_models)]
        size = self.group_size or choose_group_size(self.plan, len(runs))
        groups = []
        for first in range(0, len(runs), size):
            name = f"{self.stage}-{first:04d}"
            file = None if self.folder is None else self.folder / f"{name}.saen"
            own = runs[first : first + size]
            how = self.seed, self.until, self.test_every
            groups.append(_Group(name, file, self.plan, self.task, self.parts, own, *how))
        return groups


def _train_group(
    compressed: Compressed, group: _Group
) -> tuple[Floats, History, list[str]] | DivergenceError:
    """Outputs, curves and warnings of a group.

    A divergence is returned: raised here, it would end the tasks of other stages.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", DivergenceWarning)
        plan = replace(group.plan, compressed=compressed)
        try:
            rows, history = replace(group, plan=plan).train_or_read(None)
        except DivergenceError as error:
            return error
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


def _read_group(file: Path) -> tuple[Floats, History]:
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

    name: str
    file: Path | None
    plan: Plan
    task: Task
    parts: Sequence[Part]
    runs: Sequence[tuple[int, int]]
    seed: int
    until: int | None
    test_every: int

    def train_or_read(self, progress: Progress | None) -> tuple[Floats, History]:
        """Outputs on the test examples, one run after the other, (Σ tests, k), and the curves."""
        if self.file is None:
            return self._train(None, progress)
        checkpoint = self.file.with_suffix(".checkpoint")
        if self.file.exists():
            rows, history = _read_group(self.file)
            if progress is not None:
                progress(len(self.runs) * len(history.loss))
        else:
            try:
                rows, history = self._train(checkpoint, progress)
            except DivergenceError:
                checkpoint.unlink(missing_ok=True)
                raise
            self._write(self.file, rows, history)
        checkpoint.unlink(missing_ok=True)  # it may be of a run that was killed between the two
        return rows, history

    def alone(self) -> _Group:
        """Without files, the hierarchy, and parts and targets that it does not train on."""
        used = sorted({part for part, _ in self.runs})
        number = {part: place for place, part in enumerate(used)}
        return replace(
            self,
            file=None,
            plan=replace(self.plan, compressed=None),  # type: ignore[arg-type]
            task=_task_of(self.task, used),
            parts=[self.parts[part] for part in used],
            runs=[(number[part], model) for part, model in self.runs],
        )

    def receive(
        self, progress: Progress | None, result: tuple[Floats, History, list[str]] | DivergenceError
    ) -> tuple[Floats, History] | DivergenceError:
        """What a task returned: keep it in a file, and warn here as the task did there."""
        if isinstance(result, DivergenceError):
            return result
        rows, history, messages = result
        for message in messages:
            warnings.warn(message, DivergenceWarning, stacklevel=4)
        if self.file is not None:
            self._write(self.file, rows, history)
        if progress is not None:
            progress(len(self.runs) * len(history.loss))
        return rows, history

    def _write(self, file: Path, rows: Floats, history: History) -> None:
        document = {"history": asdict(history), "networks": len(self.runs)}
        container.write(file, "predictions", document, {"outputs": rows})

    def _train(self, checkpoint: Path | None, progress: Progress | None) -> tuple[Floats, History]:
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
            self._task(),
            plan.settings,
            min_count=plan.min_count,
            checkpoint=checkpoint,
            until=self.until,
            validate_every=max(self.test_every, 1),
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

    def _task(self) -> Task:
        weights, tested = (np.zeros((len(self.task.targets), len(self.runs))) for _ in range(2))
        for position, (part, _) in enumerate(self.runs):
            train, test = self.parts[part].train, self.parts[part].test
            weights[train, position] = self.task.weights[train, 0]
            tested[test, position] = self.task.weights[test, 0]
        own = _task_of(self.task, [part for part, _ in self.runs])
        return replace(own, weights=weights, validation=tested if self.test_every else None)


def _task_of(task: Task, parts: list[int]) -> Task:
    """The task with the targets and class weights of these parts, in this order."""
    factors = task.class_weights
    return replace(
        task,
        targets=task.targets[:, parts] if task.targets.ndim == 3 else task.targets,
        class_weights=None if factors is None else factors[:, parts],
    )
