"""The training loop: epochs, early stopping, checkpoints, interruption."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from saen._util.arrays import Array
from saen.data.compression import Compressed
from saen.data.hierarchy import Hierarchy
from saen.errors import FileError, InputError
from saen.io import container
from saen.network.adam import Adam
from saen.network.batches import Batch, cut_batches, generator, hierarchy_and_top, seen_in_training
from saen.network.cuda_graphs import Recorder
from saen.network.loss import Task
from saen.network.memory import kept_memory
from saen.network.model import SAEN
from saen.network.sparse import Unrolled

FEW_NUMBERS = 1 << 20
"""Activations of a batch below which one thread is quicker than several."""


@dataclass(frozen=True)
class Settings:
    """How to train.

    - `batch_size`: graphs per step, None for all of them;
    - `schedule`: `constant`, or `cosine` from `learning_rate` to zero over the epochs;
    - `weight_decay`: decoupled from the gradient, on weights and not on biases;
    - `patience`: stop a model after this many epochs without a better validation loss, and keep
      its best weights; None trains all epochs;
    - `seed`: order of the batches and shared draws of dropout. Weights have their own seeds.
    """

    epochs: int = 100
    batch_size: int | None = None
    learning_rate: float = 0.01
    schedule: str = "constant"
    weight_decay: float = 0.0
    patience: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if self.epochs < 0:
            raise InputError(f"epochs must not be negative: {self.epochs}")
        if self.batch_size is not None and self.batch_size < 1:
            raise InputError(f"batch_size must be at least 1: {self.batch_size}")
        if not self.learning_rate > 0 or self.weight_decay < 0:
            raise InputError("learning_rate must be positive and weight_decay not negative")
        if self.schedule not in ("constant", "cosine"):
            raise InputError(f"schedule is constant or cosine, not {self.schedule!r}")

    def rate(self, epoch: float) -> float:
        """The learning rate after that many epochs."""
        if self.schedule == "constant":
            return self.learning_rate
        share = min(epoch / max(self.epochs, 1), 1.0)
        return self.learning_rate * 0.5 * (1.0 + float(np.cos(np.pi * share)))


@dataclass
class History:
    """Per epoch and model, (epochs, M): loss and accuracy while training, and on validation."""

    loss: list[list[float]] = field(default_factory=list)
    accuracy: list[list[float]] = field(default_factory=list)
    validation_loss: list[list[float]] = field(default_factory=list)
    validation_accuracy: list[list[float]] = field(default_factory=list)
    interrupted: bool = False


def train(
    network: SAEN,
    structures: Hierarchy | Compressed,
    task: Task,
    settings: Settings,
    *,
    min_count: int = 1,
    checkpoint: str | Path | None = None,
    every: int = 10,
    until: int | None = None,
    progress: Callable[[int, History], object] | None = None,
) -> History:
    """Train all models of the network in place, for all epochs or `until` so many are done.

    `checkpoint` names a file that is rewritten `every` so many epochs; where it exists and belongs
    to the same run, training goes on from it and ends with the weights of an undisturbed run.
    Ctrl-C stops after restoring the end of the last whole epoch; `History.interrupted` says so.
    """
    if every < 1:
        raise InputError(f"a checkpoint is written every 1 or more epochs, not {every}")
    hierarchy, top = hierarchy_and_top(structures)
    network.check_fits(hierarchy)
    _check(network, task, len(top))
    network.restrict_to_seen(*seen_in_training(hierarchy, top, task.weights, min_count))
    batches = cut_batches(network, structures, task, settings.batch_size, settings.seed)
    checks = None
    if task.validation is not None:
        whole = Task(
            task.loss, task.targets, task.validation, None, task.class_weights, task.n_classes
        )
        checks = cut_batches(network, structures, whole, settings.batch_size, settings.seed)
    run = _Run(network, Adam(network, settings.weight_decay), settings, task)
    fingerprint = ""
    if checkpoint is not None:
        fingerprint = _fingerprint(network, structures, task, settings, min_count)
    if checkpoint is not None and Path(checkpoint).exists():
        run.resume(checkpoint, fingerprint)
    try:
        last = settings.epochs if until is None else min(until, settings.epochs)
        with _threads_for(network, batches), kept_memory():
            while run.epoch < last and not run.all_stopped():
                run.train_epoch(batches)
                run.check_finite()
                if checks is not None:
                    run.validate(checks)
                if checkpoint is not None and run.epoch % every == 0:
                    run.save(checkpoint, fingerprint)
                run.snapshot()
                if progress is not None:
                    progress(run.epoch, run.history)
    except KeyboardInterrupt:
        run.back_to_snapshot()
        run.history.interrupted = True
    if checkpoint is not None and not run.history.interrupted:
        run.save(checkpoint, fingerprint)
    run.keep_best()  # not in the checkpoint, from which training may go on
    network.eval()
    return run.history


@contextmanager
def _threads_for(network: SAEN, batches: list[Batch]) -> Iterator[None]:
    """One thread while batches are small: waiting for a second would take longer than the work."""
    widest = max(size for sizes in network.architecture.layers for size in sizes)
    largest = max((batch.unrolled.n_objects for batch in batches), default=0)
    before = torch.get_num_threads()
    if largest * network.n_models * widest < FEW_NUMBERS:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


class _Run:
    """The moving parts of one training."""

    def __init__(self, network: SAEN, adam: Adam, settings: Settings, task: Task) -> None:
        self.network, self.adam, self.settings, self.task = network, adam, settings, task
        self.epoch = 0
        self.history = History()
        n_models = network.n_models
        self.best_loss = torch.full(
            (n_models,), torch.inf, dtype=network.dtype, device=network.device
        )
        self.best_epoch = torch.zeros(n_models, dtype=torch.int64, device=network.device)
        self.best: dict[str, Tensor] = {}
        self.last: dict[str, Tensor] = {}
        # What a step reads and adds to stays in one place, where recorded steps find it.
        self.rate = torch.zeros((), dtype=torch.float64, device=network.device)
        self.learning = torch.ones(n_models, dtype=torch.bool, device=network.device)
        self.totals = torch.zeros(3, n_models, dtype=network.dtype, device=network.device)
        drops = network.architecture.dropout > 0  # masks are drawn outside of the device
        self.recorded = Recorder() if network.device.type == "cuda" and not drops else None
        self.snapshot()

    def stopped(self) -> Tensor:
        """Models whose patience is over, (M,)."""
        if self.settings.patience is None or not self.best:
            return torch.zeros_like(self.best_epoch, dtype=torch.bool)
        return self.epoch - self.best_epoch >= self.settings.patience

    def all_stopped(self) -> bool:
        return bool(self.stopped().all())

    def train_epoch(self, batches: list[Batch]) -> None:
        if not self.network.training:  # at first, and after validation or a caller's predictions
            self.network.train()
        self.learning.copy_(~self.stopped())
        self.totals.zero_()
        noise = generator(self.settings.seed, f"epoch {self.epoch}")
        for step, index in enumerate(noise.permutation(len(batches))):
            self.rate.fill_(self.settings.rate(self.epoch + step / len(batches)))
            if self.recorded is None:
                self.step(batches[index], noise)
            else:
                self.recorded.step(int(index), partial(self.step, batches[index], None))
        loss, weight, correct = self.totals.double().cpu().numpy()
        weight = np.maximum(weight, np.finfo(np.float64).tiny)
        self.history.loss.append((loss / weight).tolist())
        self.history.accuracy.append((correct / weight).tolist())
        self.epoch += 1

    def step(self, batch: Batch, noise: np.random.Generator | None) -> None:
        """One step over a batch, by the `rate`, of the models that are `learning`."""
        outputs = self.network(batch.unrolled, batch.uses, noise)
        loss, weight = self.task.losses(outputs, batch.rows)
        mean = loss / weight.clamp_min(torch.finfo(weight.dtype).tiny)
        gradients = torch.autograd.grad(mean.sum(), self.adam.parameters)
        self.adam.step(gradients, self.rate, batch.active & self.learning)
        with torch.no_grad():
            self.totals += torch.stack([loss, weight, self.task.correct(outputs, batch.rows)])

    @torch.no_grad()
    def check_finite(self) -> None:
        """Raise when a model has left the numbers: nothing that it learns later makes sense."""
        flat = torch.cat([parameter.flatten(1) for parameter in self.adam.parameters], dim=1)
        sound = np.isfinite(self.history.loss[-1]) & torch.isfinite(flat).all(1).cpu().numpy()
        if not sound.all():
            raise InputError(
                f"training diverged in epoch {self.epoch} (model {int(np.argmin(sound))} of "
                f"{len(sound)}): lower learning_rate (now {self.settings.learning_rate:g}), or "
                "normalise the aggregates"
            )

    @torch.no_grad()
    def validate(self, checks: list[Batch]) -> None:
        self.network.eval()
        totals = torch.zeros_like(self.best_loss).repeat(3, 1)
        for batch in checks:
            outputs = self.network(batch.unrolled)
            loss, weight = self.task.losses(outputs, batch.rows)
            totals += torch.stack([loss, weight, self.task.correct(outputs, batch.rows)])
        weight = totals[1].clamp_min(torch.finfo(totals.dtype).tiny)
        loss = totals[0] / weight
        better = (loss < self.best_loss) & ~self.stopped()
        self.best_loss = torch.where(better, loss, self.best_loss)
        self.best_epoch[better] = self.epoch
        for key, tensor in _per_model(self.network).items():
            kept = self.best.setdefault(key, tensor.clone())
            kept[better] = tensor[better]
        self.history.validation_loss.append(loss.tolist())
        self.history.validation_accuracy.append((totals[2] / weight).tolist())

    def keep_best(self) -> None:
        """Every model back to the epoch that did best on validation."""
        if self.settings.patience is None or not self.best:
            return
        for key, tensor in _per_model(self.network).items():
            tensor.copy_(self.best[key])

    def snapshot(self) -> None:
        self.last = {key: tensor.clone() for key, tensor in self.network.state_dict().items()}
        self.whole_epochs = self.epoch

    def back_to_snapshot(self) -> None:
        self.network.load_state_dict(self.last)
        for column in ("loss", "accuracy", "validation_loss", "validation_accuracy"):
            del getattr(self.history, column)[self.whole_epochs :]

    def save(self, path: str | Path, fingerprint: str) -> None:
        tensors = {f"network.{key}": value for key, value in self.network.state_dict().items()}
        tensors |= {f"best.{key}": value for key, value in self.best.items()}
        tensors |= self.adam.state()
        tensors |= {"best_loss": self.best_loss, "best_epoch": self.best_epoch}
        document = {
            "epoch": self.epoch,
            "history": asdict(self.history),
            "fingerprint": fingerprint,
        }
        arrays = {key: tensor.detach().cpu().numpy() for key, tensor in tensors.items()}
        container.write(path, "checkpoint", document, arrays)

    def resume(self, path: str | Path, fingerprint: str) -> None:
        kind, document, arrays = container.read(path)
        if kind != "checkpoint" or document.get("fingerprint") != fingerprint:
            raise FileError(
                "this is not a checkpoint of the same run (data, settings and seeds): "
                "delete it or choose another name",
                path=path,
            )
        tensors = {key: torch.from_numpy(array.copy()) for key, array in arrays.items()}
        self.network.load_state_dict(_with_prefix(tensors, "network."))
        self.best = {
            key: value.to(self.network.device)
            for key, value in _with_prefix(tensors, "best.").items()
        }
        self.adam.restore(tensors)
        self.best_loss = tensors["best_loss"].to(self.network.device)
        self.best_epoch = tensors["best_epoch"].to(self.network.device)
        self.epoch = int(document["epoch"])
        self.history = History(**document["history"])
        self.snapshot()


@torch.no_grad()
def outputs(
    network: SAEN,
    hierarchy: Hierarchy,
    *,
    level: int | None = None,
    budget: int = 1 << 27,
) -> Tensor:
    """Outputs of the top level, (n_L, M, outputs), or representations of a lower one.

    The top is taken in pieces when all numbers of one pass would be more than `budget`.
    """
    network.check_fits(hierarchy)
    network.eval()
    widest = max(size for sizes in network.architecture.layers for size in sizes)
    needed = sum(hierarchy.sizes) * network.n_models * widest
    if level is not None or needed <= budget:
        made = Unrolled.of(hierarchy, dtype=network.dtype, device=network.device)
        out: Tensor = network(made, level=level)
        return out
    pieces = np.array_split(np.arange(len(hierarchy)), min(-(-needed // budget), len(hierarchy)))
    return torch.cat(
        [
            network(Unrolled.of(hierarchy[p], dtype=network.dtype, device=network.device))
            for p in pieces
        ]
    )


def _check(network: SAEN, task: Task, n: int) -> None:
    if task.weights.shape != (n, network.n_models):
        raise InputError(
            f"weights must have shape ({n}, {network.n_models}), not {task.weights.shape}"
        )
    if len(task.targets) != n:
        raise InputError(f"{n} structures, but {len(task.targets)} targets")
    if not np.isfinite(task.weights).all() or (task.weights < 0).any():
        raise InputError("weights must be finite and not negative")
    if task.loss == "squares":
        if task.targets.ndim != 2 or not np.isfinite(task.targets).all():
            raise InputError("targets of a regression must be finite numbers of shape (G, k)")
    elif task.targets.dtype.kind not in "iu" or not (
        task.targets.min(initial=0) >= 0 and task.targets.max(initial=0) < max(task.n_classes, 1)
    ):
        raise InputError(f"targets must be class codes from 0 to {task.n_classes - 1}")
    outputs_ = network.architecture.layers[-1][-1]
    if outputs_ != task.n_outputs:
        raise InputError(f"the last layer has {outputs_} units, the task needs {task.n_outputs}")


def _per_model(network: SAEN) -> dict[str, Tensor]:
    """Everything that a model owns, with the models on the first axis (views)."""
    return {
        key: tensor.transpose(0, 1) if "norm.mean" in key or "norm.variance" in key else tensor
        for key, tensor in network.state_dict().items()
        if not key.endswith("seen")
    }


def _with_prefix(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {key.removeprefix(prefix): t for key, t in tensors.items() if key.startswith(prefix)}


def _fingerprint(
    network: SAEN,
    structures: Hierarchy | Compressed,
    task: Task,
    settings: Settings,
    min_count: int,
) -> str:
    """A digest of everything that decides how a run ends."""
    digest = hashlib.blake2b(digest_size=16)
    described = {
        "architecture": asdict(network.architecture),
        "settings": asdict(settings),
        "loss": task.loss,
        "min_count": min_count,
    }
    digest.update(json.dumps(described, sort_keys=True).encode())
    for array in _arrays_of(network, structures, task):
        if array is None:
            digest.update(b"none")
            continue
        digest.update(f"{array.dtype.str} {array.shape}".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def _arrays_of(
    network: SAEN, structures: Hierarchy | Compressed, task: Task
) -> Iterator[Array | None]:
    yield from (parameter.detach().cpu().numpy() for parameter in network.parameters())
    hierarchy, top = hierarchy_and_top(structures)
    yield from (top, hierarchy.attributes.codes, hierarchy.attributes.vectors)
    for relation in hierarchy.relations:
        yield from (relation.indptr, relation.parts, relation.roles, relation.counts)
    yield from (task.targets, task.weights, task.validation, task.class_weights)
