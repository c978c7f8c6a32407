"""The training loop: epochs, optimiser, checkpoints, interruption."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from saen._util.digests import digest_of
from saen.data.compression import Compressed
from saen.data.hierarchy import Hierarchy
from saen.errors import FileError, InputError
from saen.io.store import container
from saen.io.store.packing import under
from saen.network.batches import (
    Batch,
    Batches,
    cut_batches,
    cut_validation_batches,
    generator,
    hierarchy_and_top,
    seen_in_training,
)
from saen.network.cuda_graphs import Recorder
from saen.network.devices import compute_after_fork
from saen.network.forward import MAX_ACTIVATIONS, passes
from saen.network.loss import Task
from saen.network.memory import reused_memory
from saen.network.model import SAEN, Seen
from saen.network.settings import DivergenceError, DivergenceWarning, History, Settings
from saen.network.tensors import HierarchyTensors

MIN_PARALLEL_ACTIVATIONS = 1 << 20
"""Activations of a batch below which one thread is faster than several."""


MIN_EPOCHS_TO_LEARN = 10
"""Epochs after which a loss that is still above that of a constant prediction is a failure."""


MAX_LOSS_RATIO = 10
"""Of a loss to that of a constant prediction: beyond it, a loss that falls is a failure too."""


MAX_USUAL_ATTRIBUTE = 1e6
"""Above which an attribute is the likely reason for a training that diverges."""


def train(
    network: SAEN,
    data: Hierarchy | Compressed,
    task: Task,
    settings: Settings,
    *,
    min_count: int = 1,
    checkpoint: str | Path | None = None,
    every: int = 10,
    until: int | None = None,
    validate_every: int = 1,
    progress: Callable[[int, History], object] | None = None,
    n_batches: int | None = None,
    seen: Seen | None = None,
    tolerant: bool = False,
    interrupted: Callable[[], bool] | None = None,
) -> History:
    """Train all models of a network in place.

    Returns the losses and accuracies per epoch and model. Ctrl-C ends training with the weights of
    the last completed epoch and sets `History.interrupted`.

    Warns (`DivergenceWarning`) of models that did not learn: their loss never fell below that of
    always predicting the class frequencies, or the mean of the numbers.

    Parameters
    ----------
    network : SAEN
        M models.
    data : Hierarchy | Compressed
        G examples, compressed or not; the result is the same.
    task : Task
        Targets and weights of the examples.
    settings : Settings
        How to train.
    min_count : int, default=1
        Labels in fewer training examples than this share one entry.
    checkpoint : str | Path | None, default=None
        A file that is rewritten `every` so many epochs. If it exists and belongs to the same run,
        training resumes from it and ends with the weights of an uninterrupted run.
    every : int, default=10
        Epochs between checkpoints.
    until : int | None, default=None
        Stop after this many epochs of the schedule.
    validate_every : int, default=1
        Measure the validation loss after every so many epochs, and the last one.
    progress : Callable[[int, History], object] | None, default=None
        Called with the number of epochs done and the history after every epoch; training ends early
        where it returns True.
    n_batches : int | None, default=None
        Steps per epoch. None: as many as batches of the settings' size need.
    seen : Seen | None, default=None
        What `seen_in_training` gives, if it is known already.
    tolerant : bool, default=False
        Whether to go on without models that diverge, which `History.diverged` lists.
    interrupted : Callable[[], bool] | None, default=None
        Asked before every step: where it returns True, training ends as by Ctrl-C, which reaches
        the main thread alone.

    Raises
    ------
    InputError
        If network, data and task do not fit each other.
    DivergenceError
        If a loss becomes infinite or NaN.
    FileError
        If the checkpoint belongs to another run.

    Examples
    --------
    >>> import saen
    >>> threads = saen.generate_threads(40, seed=0)
    >>> from saen.network import SAEN, Architecture, Settings, Task, train
    >>> compressed = saen.compress_graphs(threads, saen.decompositions.Ego().fit(threads))
    >>> codes = np.unique(threads.targets, return_inverse=True)[1]
    >>> task = Task.classification(codes, n_models=3)
    >>> layers = [[8], [8], [task.n_outputs]]
    >>> network = SAEN(Architecture.over(compressed.hierarchy, layers), seeds=range(3))
    >>> history = train(network, compressed, task, Settings(epochs=5, batch_size=10))
    >>> np.shape(history.loss)
    (5, 3)
    """
    compute_after_fork()
    for name, number in (("every", every), ("validate_every", validate_every)):
        if number < 1:
            raise InputError(f"{name} must be an integer ≥ 1, not {number}")
    hierarchy, top = hierarchy_and_top(data)
    network.architecture.check_fits(hierarchy)
    task.check(len(top), network.n_models)
    n_outputs = network.architecture.layers[-1][-1]
    if n_outputs != task.n_outputs:
        raise InputError(f"the last layer has {n_outputs} units, the task needs {task.n_outputs}")
    network.restrict_to_seen(*(seen or seen_in_training(hierarchy, top, task.weights, min_count)))
    if n_batches is None:
        n_batches = settings.n_batches(int((task.weights > 0).sum(axis=0).max(initial=0)))
    batches = cut_batches(network, data, task, n_batches, settings.seed)
    validation_batches = None
    if task.validation is not None:
        held_out = replace(task, weights=task.validation, validation=None)
        validation_batches = cut_validation_batches(network, data, held_out, n_batches)
    run = _Run(network, settings, task, tolerant, interrupted)
    fingerprint = ""
    if checkpoint is not None:
        fingerprint = _fingerprint(network, data, task, settings, min_count)
        if Path(checkpoint).exists():
            run.resume(checkpoint, fingerprint)
    last = settings.epochs if until is None else min(until, settings.epochs)
    try:
        with _threads_for(network, batches), reused_memory():
            while run.epoch < last and not run.stopped():
                run.train_epoch(batches)
                run.check_finite(hierarchy)
                if validation_batches is not None:
                    if run.epoch == last or run.epoch % validate_every == 0:
                        run.validate(validation_batches)
                    else:
                        run.skip_validation()
                if checkpoint is not None and run.epoch % every == 0:
                    run.save(checkpoint, fingerprint)
                run.snapshot()
                if progress is not None and progress(run.epoch, run.history) is True:
                    break
    except KeyboardInterrupt:
        run.restore_snapshot()
        run.history.interrupted = True
    if checkpoint is not None and not run.history.interrupted:
        run.save(checkpoint, fingerprint)
    if not run.history.interrupted:
        _warn_of_divergence(run.history, task, settings)
    network.eval()
    return run.history


def _warn_of_divergence(history: History, task: Task, settings: Settings) -> None:
    """Warn of models whose loss was above that of a constant prediction in every epoch."""
    if len(history.loss) < MIN_EPOCHS_TO_LEARN:
        return
    baseline = task.constant_losses()
    losses = np.array(history.loss, dtype=np.float64)
    # The first loss is in part that of the initial weights. One that falls and is not far off may
    # only need more epochs.
    above = (losses[1:] > baseline).all(axis=0)
    far_off = losses[-1] > MAX_LOSS_RATIO * np.maximum(baseline, 1.0)
    diverged = np.flatnonzero(above & (far_off | (losses[-1] >= losses[0])))
    if len(diverged):
        first = diverged[0]
        warnings.warn(
            f"{len(diverged)} of {len(baseline)} models did not learn: the training loss never "
            f"fell below that of a constant prediction in {len(history.loss)} epochs "
            f"({history.loss[-1][first]:.3g} at the end, {baseline[first]:.3g} for a constant): "
            f"lower learning_rate (now {settings.learning_rate:g})",
            DivergenceWarning,
            stacklevel=3,
        )


def advice_on_divergence(hierarchy: Hierarchy, settings: Settings) -> str:
    """What may help: another scale of the attribute with the largest values, or smaller steps.

    >>> from saen import Graphs
    >>> from saen.decompositions import Edges
    >>> weighted = Graphs.from_edge_lists([[(0, 1), (1, 2)]], edge_attributes=[[0.5], [1e20]])
    >>> advice_on_divergence(Edges(node_labels="attributes").decompose(weighted), Settings())
    'attribute 0 of the edges reaches 1e+20: correct or rescale it'
    """
    vectors = hierarchy.attributes.vectors
    if vectors is not None and vectors.size:
        largest = np.abs(vectors).max(axis=0)
        column = int(largest.argmax())
        if largest[column] > MAX_USUAL_ATTRIBUTE:
            where = f"attribute {column} of the {hierarchy.names[0]}"
            return f"{where} reaches {largest[column]:.4g}: correct or rescale it"
    rate = f"lower learning_rate (now {settings.learning_rate:g}; on the command line in a preset)"
    return f"{rate}, or normalise the aggregates"


@contextmanager
def _threads_for(network: SAEN, batches: Batches) -> Iterator[None]:
    """One thread for small batches: waiting for a second one would take longer than the work."""
    n_objects = max((batch.tensors.n_objects for batch in batches.kept), default=0)
    n_threads = torch.get_num_threads()
    if n_objects * network.n_models * network.architecture.width < MIN_PARALLEL_ACTIVATIONS:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(n_threads)


class Adam:
    """Adam for M models at once; a model that is not active in a step does not change.

    Moments are kept as (M, P) for the P parameters of one model; steps are counted per model.
    """

    betas: ClassVar[tuple[float, float]] = (0.9, 0.999)
    epsilon: ClassVar[float] = 1e-6

    def __init__(self, network: SAEN, weight_decay: float = 0.0) -> None:
        self.parameters: list[Tensor] = list(network.parameters())
        self.sizes: list[int] = [parameter[0].numel() for parameter in self.parameters]
        dtype, device = network.dtype, network.device
        self.mean: Tensor = torch.zeros(
            network.n_models, sum(self.sizes), dtype=dtype, device=device
        )
        self.square: Tensor = torch.zeros_like(self.mean)
        self.steps: Tensor = torch.zeros(network.n_models, dtype=torch.float64, device=device)
        decays = [
            torch.full((size,), weight_decay if parameter.ndim == 3 else 0.0, dtype=dtype)
            for size, parameter in zip(self.sizes, self.parameters, strict=True)
        ]
        self.decay: Tensor | None = torch.cat(decays).to(device) if weight_decay else None

    @torch.no_grad()
    def step(self, gradients: tuple[Tensor, ...], rate: Tensor, active: Tensor) -> None:
        """One step of the `active` models, (M,) Boolean; the learning `rate` is a float64 one."""
        n_models = len(self.steps)
        gradient = torch.cat([g.reshape(n_models, -1) for g in gradients], dim=1)
        self.steps += active
        mask = active.to(gradient.dtype)[:, None]
        self.mean.lerp_(gradient, (1 - self.betas[0]) * mask)
        self.square.lerp_(gradient.square_(), (1 - self.betas[1]) * mask)
        steps = self.steps.clamp_min(1.0)[:, None]
        size = (rate / (1 - self.betas[0] ** steps)).to(gradient.dtype) * mask
        correction = (1 - self.betas[1] ** steps).sqrt().to(gradient.dtype)
        change = size * self.mean / (self.square.sqrt() / correction + self.epsilon)
        if self.decay is not None:
            current = torch.cat([p.reshape(n_models, -1) for p in self.parameters], dim=1)
            change += current * (self.decay * rate) * mask
        parts = torch.split(change, self.sizes, dim=1)
        for parameter, part in zip(self.parameters, parts, strict=True):
            parameter.sub_(part.view_as(parameter))

    def state(self) -> dict[str, Tensor]:
        """The tensors of a checkpoint, for `restore`."""
        return {"adam.mean": self.mean, "adam.square": self.square, "adam.steps": self.steps}

    def restore(self, state: dict[str, Tensor]) -> None:
        """Continue from a `state`."""
        for key, tensor in self.state().items():
            tensor.copy_(state[key])


class _Run:
    """The state of one training run."""

    def __init__(
        self,
        network: SAEN,
        settings: Settings,
        task: Task,
        tolerant: bool = False,
        interrupted: Callable[[], bool] | None = None,
    ) -> None:
        self.network, self.settings, self.task = network, settings, task
        self.tolerant, self.interrupted = tolerant, interrupted
        self.adam = Adam(network, settings.weight_decay)
        self.epoch = 0
        self.history = History()
        n_models, dtype, device = network.n_models, network.dtype, network.device
        # Steps read and update these in place: recorded CUDA graphs need fixed addresses.
        self.rate = torch.zeros((), dtype=torch.float64, device=device)
        self.running = torch.ones(n_models, dtype=torch.bool, device=device)
        self.totals = torch.zeros(3, n_models, dtype=dtype, device=device)
        # Dropout masks are drawn on the CPU, so steps with dropout cannot be recorded.
        records = device.type == "cuda" and not network.architecture.dropout
        self.recorder = Recorder() if records else None
        self.snapshot()

    def stopped(self) -> bool:
        """Whether all models have diverged."""
        return len(self.history.diverged) == self.network.n_models

    def train_epoch(self, batches: Batches) -> None:
        if not self.network.training:  # at first, and after validation or a caller's predictions
            self.network.train()
        self.running[self.history.diverged] = False
        self.totals.zero_()
        noise = generator(self.settings.seed, f"epoch {self.epoch}")
        order = noise.permutation(len(batches))
        for step, (index, batch) in enumerate(zip(order, batches.in_order(order), strict=True)):
            if self.interrupted is not None and self.interrupted():
                raise KeyboardInterrupt
            self.rate.fill_(self.settings.rate(self.epoch + step / len(batches)))
            if self.recorder is not None and index < len(batches.kept):
                self.recorder.step(int(index), partial(self.step, batch, None))
            else:
                self.step(batch, noise)
        loss, weight, correct = self.totals.double().cpu().numpy()
        weight = np.maximum(weight, np.finfo(np.float64).tiny)
        self.history.loss.append((loss / weight).tolist())
        self.history.accuracy.append((correct / weight).tolist())
        self.epoch += 1

    def step(self, batch: Batch, noise: np.random.Generator | None) -> None:
        """One optimiser step of the `running` models that have examples in the batch."""
        outputs = self.network(batch.tensors, batch.uses, noise)
        batch.tensors.release()
        loss, weight = self.task.losses(outputs, batch.targets)
        mean = loss / weight.clamp_min(torch.finfo(weight.dtype).tiny)
        gradients = torch.autograd.grad(mean.sum(), self.adam.parameters)
        self.adam.step(gradients, self.rate, batch.active & self.running)
        with torch.no_grad():
            self.totals += torch.stack([loss, weight, self.task.correct(outputs, batch.targets)])

    @torch.no_grad()
    def check_finite(self, hierarchy: Hierarchy) -> None:
        """Raise if a loss or parameter is NaN or infinite; or list its model and go on."""
        flat = torch.cat([parameter.flatten(1) for parameter in self.adam.parameters], dim=1)
        losses = np.array(self.history.loss[-1], dtype=np.float64)
        finite = np.isfinite(losses) & torch.isfinite(flat).all(1).cpu().numpy()
        finite[self.history.diverged] = False
        if finite.all():
            return
        if not self.tolerant:
            raise DivergenceError(
                f"epoch {self.epoch} (model {int(np.argmin(finite))} of {len(finite)})",
                advice_on_divergence(hierarchy, self.settings),
            )
        self.history.diverged = np.flatnonzero(~finite).tolist()
        for column in (self.history.loss, self.history.accuracy):
            column[-1] = self._known(column[-1])

    def _known(self, row: list[float | None]) -> list[float | None]:
        """A row of the history, with None for models that have diverged."""
        diverged = self.history.diverged
        return [None if model in diverged else value for model, value in enumerate(row)]

    @torch.no_grad()
    def validate(self, batches: Batches) -> None:
        self.network.eval()
        totals = torch.zeros_like(self.totals)
        for batch in batches:
            outputs = self.network(batch.tensors)
            batch.tensors.release()
            loss, weight = self.task.losses(outputs, batch.targets)
            totals += torch.stack([loss, weight, self.task.correct(outputs, batch.targets)])
        weight = totals[1].clamp_min(torch.finfo(totals.dtype).tiny)
        loss = totals[0] / weight
        self.history.validation_loss.append(self._known(loss.tolist()))
        self.history.validation_accuracy.append(self._known((totals[2] / weight).tolist()))

    def skip_validation(self) -> None:
        nothing: list[float | None] = [None] * self.network.n_models
        self.history.validation_loss.append(nothing)
        self.history.validation_accuracy.append(nothing)

    def snapshot(self) -> None:
        """Remember the network at the end of an epoch, for `restore_snapshot`."""
        self.completed_epochs = self.epoch
        self.state = {key: tensor.clone() for key, tensor in self.network.state_dict().items()}

    def restore_snapshot(self) -> None:
        self.network.load_state_dict(self.state)
        for column in ("loss", "accuracy", "validation_loss", "validation_accuracy"):
            del getattr(self.history, column)[self.completed_epochs :]

    def save(self, path: str | Path, fingerprint: str) -> None:
        tensors = {f"network.{key}": value for key, value in self.network.state_dict().items()}
        tensors |= self.adam.state()
        document = {
            "epoch": self.epoch,
            "history": asdict(self.history),
            "fingerprint": fingerprint,
        }
        arrays = {key: tensor.detach().cpu().numpy() for key, tensor in tensors.items()}
        container.write(path, "checkpoint", document, arrays, durable=False)

    def resume(self, path: str | Path, fingerprint: str) -> None:
        kind, document, arrays = container.read(path)
        if kind != "checkpoint" or document.get("fingerprint") != fingerprint:
            raise FileError(
                "this is not a checkpoint of the same run (data, settings and seeds): "
                "delete it or choose another name",
                path=path,
            )
        device = self.network.device
        tensors = {key: torch.from_numpy(array.copy()).to(device) for key, array in arrays.items()}
        self.network.load_state_dict(under("network.", tensors))
        self.adam.restore(tensors)
        self.epoch = int(document["epoch"])
        self.history = History(**document["history"])
        self.snapshot()


@torch.no_grad()
def outputs(
    network: SAEN,
    hierarchy: Hierarchy,
    *,
    level: int | None = None,
    budget: int | None = None,
) -> Tensor:
    """Outputs of the top level, (n_L, M, outputs), or the representations h_l of a `level`.

    The network is set to evaluation mode. Outputs are computed in several passes if one pass would
    need more than `budget` activations, by default `MAX_ACTIVATIONS`.
    """
    budget = budget or MAX_ACTIVATIONS.get(network.device.type, MAX_ACTIVATIONS["cpu"])
    network.architecture.check_fits(hierarchy)
    network.eval()

    def forward(part: Hierarchy) -> Tensor:
        tensors = HierarchyTensors(part, dtype=network.dtype, device=network.device)
        result: Tensor = network(tensors, level=level)
        return result

    if level is not None:
        return forward(hierarchy)
    per_object = network.n_models * network.architecture.width
    return torch.cat([forward(part) for part in passes(hierarchy, per_object, budget)])


def _fingerprint(
    network: SAEN,
    data: Hierarchy | Compressed,
    task: Task,
    settings: Settings,
    min_count: int,
) -> str:
    """A digest of everything that determines the result of a run."""
    hierarchy, top = hierarchy_and_top(data)
    relations = [(r.indptr, r.parts, r.roles, r.counts) for r in hierarchy.relations]
    return digest_of(
        [network.architecture, settings, task.loss, min_count],
        *(parameter.detach().cpu().numpy() for parameter in network.parameters()),
        *(top, hierarchy.attributes.codes, hierarchy.attributes.vectors),
        *chain.from_iterable(relations),
        *(task.targets, task.weights, task.validation, task.class_weights),
    )
