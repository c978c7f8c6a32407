"""Many trainings over one compressed hierarchy: networks side by side, in groups that fit memory.

A `Plan` says how networks are trained on a dataset; `Training` trains one for every `Run`, which
has examples of its own, and gives its outputs.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from queue import SimpleQueue
from threading import Event

import numpy as np
import torch
from threadpoolctl import threadpool_limits

from saen._util.arrays import Array, Floats, distinct_with_inverse, offsets, segment_ids
from saen._util.executor import Tasks
from saen.data.compression import Compressed
from saen.errors import FileError
from saen.io.store import container
from saen.network.architecture import Architecture, take_model
from saen.network.batches import generator, hierarchy_and_top, seen_in_training
from saen.network.loss import Task
from saen.network.model import SAEN, Seen
from saen.network.settings import DivergenceWarning, History, Run, Settings, as_rows, join_curves
from saen.network.training import advice_on_divergence, outputs, train

MAX_STEP_ACTIVATIONS = 1 << 24
"""Activations of one training step of a group on a CPU: more fall out of the cache."""
MAX_SHARED_ACTIVATIONS = 1 << 19
"""Of a step of one network: in larger steps a CPU does not wait for Python, and a network alone
computes its own examples only."""
BYTES_PER_ACTIVATION = 16
"""Of GPU memory: a float32, its gradient, and what the passes keep of it."""

CPU = torch.device("cpu")
Seed = int | Sequence[int]
Progress = Callable[[int], object]
"""Called with the network-epochs done since the last call."""


@dataclass(frozen=True)
class Plan:
    """Everything that decides how networks train on a dataset, except the examples of each."""

    compressed: Compressed
    architecture: Architecture
    settings: Settings
    min_count: int = 1
    device: torch.device = CPU
    dtype: torch.dtype = torch.float32

    def network(self, seeds: Sequence[Seed], seen: Seen | None = None) -> SAEN:
        """Untrained networks on the plan's device, one per seed, for what they will have seen."""
        schema = self.compressed.hierarchy
        return SAEN(self.architecture, seeds, dtype=self.dtype, schema=schema, seen=seen).to(
            self.device
        )

    def advice(self) -> str:
        """What may help a training that diverges."""
        return advice_on_divergence(self.compressed.hierarchy, self.settings)


@dataclass(frozen=True)
class Trained:
    """Networks after training, in the order of the runs.

    - `outputs`: of each network for the examples that it is asked about, (asked, k);
    - `loss` (epochs, networks): training loss;
    - `test_accuracy`, `test_loss` (epochs, networks): on the held-out examples, where asked for;
      NaN after epochs at which they were not measured;
    - `diverged` (networks,): which of them have no outputs;
    - `states`: the parameters of each network, if they are kept.
    """

    outputs: list[Floats]
    loss: Floats
    test_accuracy: Floats | None
    test_loss: Floats | None
    diverged: Array
    states: list[dict[str, Array]]

    def history(self, first: int, last: int) -> History:
        """The curves of some networks, tests as validation."""
        loss, accuracy = (
            [] if each is None else as_rows(each[:, first:last])
            for each in (self.test_loss, self.test_accuracy)
        )
        return History(as_rows(self.loss[:, first:last]), [], loss, accuracy)


@dataclass(frozen=True)
class Training:
    """Trains a network for every run, many side by side, and asks it about examples.

    A network's result does not depend on those beside it, except for rounding.

    Parameters
    ----------
    plan, task : how and what to learn; `task.weights` (examples, 1) counts in every run;
        `task.class_weights`, where given, has shape (classes, runs), and `task.targets` may have
        shape (examples, runs, k).
    runs : the networks.
    until : epochs to train, all of the settings' by default.
    test_every : measure loss and accuracy on the held-out examples after every so many epochs, and
        the last one; 0 is never.
    group_size : networks side by side; by default `choose_group_size`.
    folder, stage : finished groups are written there, under that name, and taken from there.
    keep : whether the parameters are wanted.
    progress : called with the network-epochs done since the last call.
    tasks : where groups are trained, by default here; the results are the same.
    """

    plan: Plan
    task: Task
    runs: Sequence[Run]
    until: int | None = None
    test_every: int = 0
    group_size: int | None = None
    folder: Path | None = None
    stage: str = "networks"
    keep: bool = False
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

    def run(self) -> Trained:
        """Train, and ask."""
        self.submit()
        with threadpool_limits(1, user_api="blas"):  # numpy's threads would keep cores busy waiting
            given = self._results()
        results: dict[int, tuple[Floats, dict[str, Array]]] = {}
        curves: list[tuple[History, Sequence[int]]] = []
        for group, (rows, states, history) in zip(self._groups, given, strict=True):
            ends = np.cumsum([len(self.runs[number].asked) for number in group.numbers])
            for place, (number, block) in enumerate(
                zip(group.numbers, np.split(rows, ends[:-1]), strict=True)
            ):
                results[number] = block, take_model(states, place) if self.keep else {}
            curves.append((history, group.numbers))
        order = np.argsort(np.concatenate([numbers for _, numbers in curves]))

        def joined(name: str) -> Floats:
            each = join_curves([getattr(history, name) for history, _ in curves])
            return each[:, order] if each.size else np.empty((0, len(order)))

        diverged = np.zeros(len(self.runs), dtype=np.bool_)
        for history, numbers in curves:
            diverged[[numbers[place] for place in history.diverged]] = True
        rows_of, states_of = zip(*(results[n] for n in range(len(self.runs))), strict=True)
        return Trained(
            outputs=list(rows_of),
            loss=joined("loss"),
            test_accuracy=joined("validation_accuracy") if self.test_every else None,
            test_loss=joined("validation_loss") if self.test_every else None,
            diverged=diverged,
            states=list(states_of),
        )

    def _results(self) -> list[_Result]:
        """What the groups give; trained here, those of a CPU side by side."""
        if self.tasks is not None:
            return [
                self.tasks.result(group.name)
                if self.tasks.has(group.name)
                else group.train_or_read(self.progress)
                for group in self._groups
            ]
        if self.plan.device.type == "cpu" and min(len(self._groups), torch.get_num_threads()) > 1:
            return _train_in_threads(self._groups, self.progress)
        return [group.train_or_read(self.progress) for group in self._groups]

    @cached_property
    def _groups(self) -> list[_Group]:
        groups: list[_Group] = []
        n_batches = np.array([run.n_batches for run in self.runs])
        for number in np.unique(n_batches).tolist():
            numbers = np.flatnonzero(n_batches == number)
            size = self.group_size or choose_group_size(self.plan, len(numbers), number)
            for first in range(0, len(numbers), size):
                own = numbers[first : first + size].tolist()
                name = f"{self.stage}-{len(groups):04d}"
                file = None if self.folder is None else self.folder / f"{name}.saen"
                how = self.until, self.test_every, self.keep
                task = _task_of(self.task, own)
                groups.append(
                    _Group(name, file, self.plan, task, [self.runs[n] for n in own], own, *how)
                )
        return groups


_Result = tuple[Floats, dict[str, Array], History]
"""Outputs, one run after the other, (Σ asked, k), parameters if they are kept, and curves."""


def _train_in_threads(groups: Sequence[_Group], progress: Progress | None) -> list[_Result]:
    """As many groups at a time as there are cores, each on one of them.

    A second core makes one network hardly faster: its steps are a chain of short operations, after
    each of which all threads wait for the last.
    """
    n_threads, stop, steps = torch.get_num_threads(), Event(), SimpleQueue[int]()
    results = []
    torch.set_num_threads(1)  # threads that begin now take it over
    try:
        with ThreadPoolExecutor(n_threads) as pool:
            try:
                begun = [pool.submit(each.train_or_read, steps.put, stop.is_set) for each in groups]
                for future in begun:
                    future.add_done_callback(lambda _: steps.put(0))
                    while not (future.done() and steps.empty()):
                        done = steps.get()  # here, since what shows progress knows no threads
                        if progress is not None:
                            progress(done)
                    results.append(future.result())
            finally:  # also where Ctrl-C or an error ends this thread
                stop.set()
                pool.shutdown(wait=False, cancel_futures=True)
    finally:
        torch.set_num_threads(n_threads)
    return results


def _train_group(compressed: Compressed, group: _Group) -> tuple[_Result, list[str]]:
    """What a group gives, and its warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", DivergenceWarning)
        plan = replace(group.plan, compressed=compressed)
        result = replace(group, plan=plan).train_or_read(None)
    messages = [str(w.message) for w in caught if issubclass(w.category, DivergenceWarning)]
    return result, messages


def choose_group_size(plan: Plan, n_networks: int, n_batches: int) -> int:
    """How many networks to train side by side: by rule, so that a repeated run gives the same bits.

    On a CPU as many as one training step keeps in the cache, one where steps are long in any case;
    on a GPU as many as fit its memory.
    """
    widest = max(size for sizes in plan.architecture.layers for size in sizes)
    if plan.device.type == "cuda":
        memory = torch.cuda.get_device_properties(plan.device).total_memory
        limit, objects = memory // BYTES_PER_ACTIVATION, sum(plan.compressed.hierarchy.sizes)
    else:
        limit, objects = MAX_STEP_ACTIVATIONS, _objects_per_step(plan, n_batches)
        if objects * widest > MAX_SHARED_ACTIVATIONS:
            return 1
    size = max(limit // max(objects * widest, 1), 1)
    n_groups = -(-n_networks // min(size, n_networks))
    return -(-n_networks // n_groups)  # groups of about equal size


def _objects_per_step(plan: Plan, n_batches: int) -> int:
    """Objects of all levels that a batch of the usual size reaches, by the example of one batch."""
    n, hierarchy = len(plan.compressed), plan.compressed.hierarchy
    if n_batches == 1:
        return sum(hierarchy.sizes)
    batch = generator(plan.settings.seed, "group size").permutation(n)[: -(-n // n_batches)]
    return sum(hierarchy[np.unique(plan.compressed.top[batch])].sizes)


def _read_group(file: Path) -> _Result:
    """What a finished group gave."""
    _, document, tensors = container.read(file)
    try:
        history = History(**document["history"])
        len(history.loss)
        arrays = {key: np.array(array) for key, array in tensors.items()}
        return arrays.pop("outputs"), arrays, history
    except (KeyError, TypeError) as error:
        raise FileError(f"damaged: inconsistent content ({error})", path=file) from None


@dataclass(frozen=True)
class _Group:
    """Networks that train side by side; `numbers` are those of their runs."""

    name: str
    file: Path | None
    plan: Plan
    task: Task
    runs: Sequence[Run]
    numbers: Sequence[int]
    until: int | None
    test_every: int
    keep: bool

    def train_or_read(
        self, progress: Progress | None, interrupted: Callable[[], bool] | None = None
    ) -> _Result:
        """What the networks give, from the file if they are finished."""
        if self.file is None:
            return self._train(None, progress, interrupted)
        checkpoint = self.file.with_suffix(".checkpoint")
        if self.file.exists():
            result = _read_group(self.file)
            if progress is not None:
                progress(len(self.runs) * len(result[2].loss))
        else:
            result = self._train(checkpoint, progress, interrupted)
            self._write(self.file, result)
        checkpoint.unlink(missing_ok=True)  # it may be of a run that was killed between the two
        return result

    def alone(self) -> _Group:
        """Without files and the hierarchy."""
        plan = replace(self.plan, compressed=None)  # type: ignore[arg-type]
        return replace(self, file=None, plan=plan)

    def receive(self, progress: Progress | None, received: tuple[_Result, list[str]]) -> _Result:
        """What a task returned: keep it in a file, and warn here as the task did there."""
        result, messages = received
        for message in messages:
            warnings.warn(message, DivergenceWarning, stacklevel=4)
        if self.file is not None:
            self._write(self.file, result)
        if progress is not None:
            progress(len(self.runs) * len(result[2].loss))
        return result

    def _write(self, file: Path, result: _Result) -> None:
        rows, states, history = result
        document = {"history": asdict(history), "networks": len(self.runs)}
        container.write(file, "predictions", document, {"outputs": rows, **states})

    def _train(
        self,
        checkpoint: Path | None,
        progress: Progress | None,
        interrupted: Callable[[], bool] | None,
    ) -> _Result:
        plan, compressed, task = self.plan, self.plan.compressed, self._task()
        hierarchy, top = hierarchy_and_top(compressed)
        seen = seen_in_training(hierarchy, top, task.weights, plan.min_count)
        network = plan.network([run.seed for run in self.runs], seen)
        done = 0

        def epoch_done(epoch: int, _: History) -> None:
            nonlocal done
            if progress is not None:
                progress((epoch - done) * len(self.runs))
            done = epoch

        history = train(
            network,
            compressed,
            task,
            plan.settings,
            min_count=plan.min_count,
            checkpoint=checkpoint,
            until=self.until,
            validate_every=max(self.test_every, 1),
            progress=epoch_done,
            n_batches=self.runs[0].n_batches,
            seen=seen,
            tolerant=True,
            interrupted=interrupted,
        )
        if history.interrupted:
            raise KeyboardInterrupt
        asked = [run.asked for run in self.runs]
        tested = np.concatenate([compressed.top[each] for each in asked])
        unique, place = distinct_with_inverse(tested)
        reached = hierarchy if len(unique) == len(hierarchy) else hierarchy[unique]
        found = outputs(network, reached).double().cpu().numpy()
        rows = found[place, segment_ids(offsets(np.array(list(map(len, asked)))))]
        state = network.state_dict() if self.keep else {}
        return rows, {key: tensor.cpu().numpy() for key, tensor in state.items()}, history

    def _task(self) -> Task:
        weights, tested = (np.zeros((len(self.task.targets), len(self.runs))) for _ in range(2))
        for place, run in enumerate(self.runs):
            weights[run.train, place] = self.task.weights[run.train, 0]
            tested[run.held_out, place] = self.task.weights[run.held_out, 0]
        return replace(self.task, weights=weights, validation=tested if self.test_every else None)


def _task_of(task: Task, runs: list[int]) -> Task:
    """The task with the targets and class weights of these runs, in this order."""
    factors = task.class_weights
    return replace(
        task,
        targets=task.targets[:, runs] if task.targets.ndim == 3 else task.targets,
        class_weights=None if factors is None else factors[:, runs],
    )
