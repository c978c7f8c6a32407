"""One network trained by several processes, each with its own part of the examples.

Needs nothing but `torch.distributed` (gloo on CPUs, nccl on GPUs). The processes start with equal
weights; in every step each runs over its own examples, statistics, losses and gradients are summed
over all, and all take the same step. The result is that of one process with all examples.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor

from saen.data.compression import Compressed
from saen.data.hierarchy import Hierarchy
from saen.errors import InputError
from saen.network.aggregation import Moments, RunningMoments
from saen.network.batches import (
    Batch,
    batch_examples,
    cut_batch,
    generator,
    hierarchy_and_top,
    seen_in_training,
)
from saen.network.loss import Floats, Task
from saen.network.model import SAEN
from saen.network.settings import DivergenceError, History, Settings
from saen.network.training import Adam, advice_on_divergence


def train_data_parallel(
    network: SAEN,
    data: Hierarchy | Compressed,
    task: Task,
    settings: Settings,
    *,
    min_count: int = 1,
    progress: Callable[[int, History], object] | None = None,
) -> History:
    """Train a network in place, together with the other processes of the default process group.

    Call it in every process, after `torch.distributed.init_process_group`, with networks of equal
    seeds and the same settings. Batches are those of one process with the examples of all, in the
    order of the ranks.

    Parameters
    ----------
    network : of the same architecture and seeds everywhere, without dropout.
    data, task : the examples of this process, which may be none; labels and roles must be coded
        alike everywhere, as by one fitted decomposition.
    settings : how to train; `patience` is not supported.
    min_count : labels in fewer training examples than this, of all processes, share one entry.
    progress : called with the number of epochs done and the history after every epoch.

    Returns the losses and accuracies over the examples of all processes.

    Raises `InputError` for dropout or patience, and if network, data and task do not fit, and
    `DivergenceError` if a loss becomes infinite or NaN.
    """
    if network.architecture.dropout:
        raise InputError("data-parallel training does not support dropout: set dropout=0")
    if settings.patience is not None or task.validation is not None:
        raise InputError("data-parallel training does not support early stopping (patience)")
    hierarchy, top = hierarchy_and_top(data)
    network.architecture.check_fits(hierarchy)
    task.check(len(top), network.n_models)
    seen = seen_in_training(hierarchy, top, task.weights, min_count, _total)
    network.restrict_to_seen(*seen)
    batches = [
        cut_batch(network, hierarchy, top, examples, task)
        for examples in _own_examples(len(top), settings)
    ]
    norms = [module for module in network.modules() if isinstance(module, RunningMoments)]
    for norm in norms:
        norm.combine = _combine
    adam, history = Adam(network, settings.weight_decay), History()
    network.train()
    try:
        for epoch in range(settings.epochs):
            totals = torch.zeros(3, network.n_models, dtype=network.dtype, device=network.device)
            order = generator(settings.seed, f"epoch {epoch}").permutation(len(batches))
            for step, index in enumerate(order):
                rate = settings.rate(epoch + step / len(batches))
                totals += _step(network, task, adam, batches[index], rate)
            loss, weight, correct = totals.double().cpu().numpy()
            weight = np.maximum(weight, np.finfo(np.float64).tiny)
            history.loss.append((loss / weight).tolist())
            history.accuracy.append((correct / weight).tolist())
            if not np.isfinite(loss).all():
                advice = advice_on_divergence(hierarchy, settings)
                raise DivergenceError(f"epoch {epoch + 1}", advice)
            if progress is not None:
                progress(epoch + 1, history)
    finally:
        for norm in norms:
            norm.combine = None
    network.eval()
    return history


def _own_examples(n: int, settings: Settings) -> list[Any]:
    """The examples of this process in every batch of all processes."""
    sizes = np.zeros(dist.get_world_size())
    sizes[dist.get_rank()] = n
    ends = np.cumsum(_total(sizes)).astype(np.int64)
    stop = int(ends[dist.get_rank()])
    start = stop - n
    batches = batch_examples(int(ends[-1]), settings.batch_size, settings.seed)
    return [each[(each >= start) & (each < stop)] - start for each in batches]


def _step(network: SAEN, task: Task, adam: Adam, batch: Batch, rate: float) -> Tensor:
    """One step of all processes; the loss, weight and correct weight of all examples, (3, M)."""
    outputs = network(batch.tensors, batch.uses)
    loss, weight = task.losses(outputs, batch.targets)
    with torch.no_grad():
        totals = torch.stack([loss.detach(), weight, task.correct(outputs, batch.targets)])
        dist.all_reduce(totals)
        active = batch.active.to(weight.dtype)
        dist.all_reduce(active)
    mean = loss / totals[1].clamp_min(torch.finfo(weight.dtype).tiny)
    gradients = torch.autograd.grad(
        mean.sum(), adam.parameters, allow_unused=True, materialize_grads=True
    )
    flat = torch.cat([gradient.flatten() for gradient in gradients])
    dist.all_reduce(flat)
    parts = torch.split(flat, [gradient.numel() for gradient in gradients])
    summed = tuple(part.view_as(g) for part, g in zip(parts, gradients, strict=True))
    adam.step(summed, torch.tensor(rate, dtype=torch.float64, device=flat.device), active > 0)
    return totals


def _combine(moments: Moments, uses: Tensor) -> tuple[Moments, Tensor]:
    """Chan's formula: mean and variance of all from those of each process, and the total uses."""
    mean, variance = moments
    total = uses.clone()
    dist.all_reduce(total)
    share = (uses / total.clamp_min(torch.finfo(total.dtype).tiny))[:, None]
    whole: Tensor = _Sum.apply(mean * share)  # type: ignore[no-untyped-call]
    spread: Tensor = _Sum.apply((variance + (mean - whole).square()) * share)  # type: ignore[no-untyped-call]
    return (whole, spread), total


class _Sum(torch.autograd.Function):
    """The sum over all processes; so is its gradient, since all of them read it."""

    @staticmethod
    def forward(ctx: Any, value: Tensor) -> Tensor:
        # In one layout everywhere: numbers are added by their place in memory.
        total = value.clone(memory_format=torch.contiguous_format)
        dist.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        total = gradients[0].clone(memory_format=torch.contiguous_format)
        dist.all_reduce(total)
        return total


def _total(counts: Floats) -> Floats:
    tensor = torch.from_numpy(np.ascontiguousarray(counts, dtype=np.float64))
    if dist.get_backend() == "nccl":
        tensor = tensor.cuda()
    dist.all_reduce(tensor)
    return tensor.cpu().numpy()
