"""A training step on a GPU in few kernels and few passes over memory: layers and optimiser.

A training step of many small networks moves far more bytes than it multiplies numbers. Stock
kernels write every intermediate result, and sum the gradient of a weight matrix of ten by five over
a million rows with one block of threads. Here a level reads its aggregates once for the moments,
once for the layer and twice for the gradients, and models are the last axis of everything.
Steps of small batches consist of kernels that take a few microseconds whatever they do, so what
several stock kernels would do to the parameters is one. `saen.network.aggregation`, `model` and
`training` hold the same formulas for any device.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

if TYPE_CHECKING:
    from saen.network.aggregation import RunningMoments

MAX_WIDTH = 16
"""Units of a layer, and numbers per aggregate, above which matrix products of the libraries win."""
MODELS = 32
"""That a program works for: the threads of a warp, and one line of memory."""
MERGED_MODELS = 8
"""That a program works for which merges chunks or folds: a quarter of a line, and more programs."""
REGISTERS = 32
"""Sums that a thread keeps."""
MAX_COLUMNS = 8
"""Of inputs or outputs that a program reads at a time."""
MAX_UNROLL = 4
"""Rows or columns that a program loads before it waits for any of them."""
MAX_LOADS = 80
"""Of a thread in these rows or columns: each takes one register, and its address two more."""
PROGRAMS = 4096
"""That fill any GPU: rows are cut into more chunks only below this."""
MAX_CHUNKS = 256
"""Of rows that are summed."""
MIN_ROWS = 16
"""Of a chunk."""
MAX_SUMMED = 4096
"""Numbers of several chunks that a program loads before it adds them to its sums."""
FOLDED_INPUTS = 64
"""Of a layer whose weights a program folds at a time."""
PARAMETERS = 256
"""That a program of the optimiser changes."""


def is_available(device: torch.device) -> bool:
    """Whether the kernels run on a device: a GPU, where Triton is installed."""
    return device.type == "cuda" and _has_triton()


@cache
def _has_triton() -> bool:
    return find_spec("triton") is not None


def layer(
    a: Tensor,
    weight: Tensor,
    bias: Tensor,
    slope: float,
    seen: Tensor | None = None,
    uses: Tensor | None = None,
    norm: RunningMoments | None = None,
) -> Tensor:
    """Leaky ReLU of inputs, normalised or not, times weights: (n, o, M).

    - `a` (n, d, M): the inputs, for the first layer of a level the aggregates of all roles;
    - `weight` (M, d, o) and `bias` (M, o);
    - `slope`: ≥ 0, of the Leaky ReLU; 1 for none;
    - `seen` (roles, M): whether a model has seen the role; others contribute nothing;
    - `uses` (n, M) and `norm`: normalise by the moments of `a`, each row weighted by its uses, and
      move the running ones.
    """
    y: Tensor = _Layer.apply(a, weight, bias, slope, seen, uses, norm)  # type: ignore[no-untyped-call]
    return y


class _Layer(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        a: Tensor,
        weight: Tensor,
        bias: Tensor,
        slope: float,
        seen: Tensor | None,
        uses: Tensor | None,
        norm: RunningMoments | None,
    ) -> Tensor:
        a = a.contiguous()
        moments: Sequence[Tensor] = ()
        if norm is not None and uses is not None:
            uses = uses.contiguous()
            moments = _moments(a, uses, norm)
        folded, folded_bias = _fold(weight.contiguous(), bias.contiguous(), seen, moments, norm)
        y = _forward(a, folded, folded_bias, slope)
        ctx.save_for_backward(a, y, folded, seen, uses, *moments)
        ctx.slope, ctx.epsilon = slope, 0.0 if norm is None else norm.epsilon
        return y

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        a, y, folded, seen, uses, *moments = ctx.saved_tensors
        g = gradients[0].contiguous()
        sums = _weight_gradient(a, g, y, ctx.slope)
        of_weight, of_bias, factors = _unfold(sums, folded, seen, moments, ctx.epsilon)
        of_a = None
        if ctx.needs_input_grad[0]:
            of_a = _input_gradient(a, g, y, folded, ctx.slope, uses, factors)
        return of_a, of_weight, of_bias, None, None, None, None


def _moments(a: Tensor, uses: Tensor, norm: RunningMoments) -> tuple[Tensor, Tensor, Tensor]:
    """Mean and variance of a, (d, M), each row weighted by its uses, and the total of these."""
    from saen.network import kernels

    n, d, n_models = a.shape
    block, columns = _models_block(n_models), min(_block(d), MAX_COLUMNS)
    n_programs = -(-n_models // block) * -(-d // columns)
    n_chunks, rows = _chunks(n, n_programs)
    sums = a.new_empty(n_chunks, n_models)
    means, squares = (a.new_empty(n_chunks, d, n_models) for _ in range(2))
    kernels.moments[(n_programs * n_chunks,)](
        a, uses, sums, means, squares, n, n_models, d, rows,
        UNROLL=_unroll(columns + 1, rows), BD=columns, BM=block, num_warps=1,
    )  # fmt: skip
    mean, variance = (a.new_empty(d, n_models) for _ in range(2))
    total = a.new_empty(n_models)
    block = min(block, MERGED_MODELS)
    kernels.merge_moments[(-(-n_models // block) * d,)](
        sums, means, squares, mean, variance, total,
        norm.mean, norm.variance, norm.started.view(torch.uint8),
        n_chunks, n_models, d, norm.mean.shape[2], norm.momentum, BK=_block(n_chunks), BM=block,
    )  # fmt: skip
    return mean, variance, total


def _fold(
    weight: Tensor,
    bias: Tensor,
    seen: Tensor | None,
    moments: Sequence[Tensor],
    norm: RunningMoments | None,
) -> tuple[Tensor, Tensor]:
    """Weights (d, o, M) and bias (o, M) for inputs that are not normalised."""
    from saen.network import kernels

    n_models, d, o = weight.shape
    folded, folded_bias = weight.new_empty(d, o, n_models), weight.new_empty(o, n_models)
    block = min(_models_block(n_models), MERGED_MODELS)
    kernels.fold[(-(-n_models // block) * o,)](
        weight, bias, *_seen(seen, d), *(moments or (None, None, None)),
        None if norm is None else norm.started.view(torch.uint8), folded, folded_bias,
        n_models, d, o, 0.0 if norm is None else norm.epsilon,
        BD=min(_block(d), FOLDED_INPUTS), BM=block,
    )  # fmt: skip
    return folded, folded_bias


def _forward(a: Tensor, weight: Tensor, bias: Tensor, slope: float) -> Tensor:
    from saen.network import kernels

    n, d, n_models = a.shape
    o, block = weight.shape[1], _models_block(n_models)
    outputs = min(_block(o), MAX_COLUMNS)
    rows = max(REGISTERS // outputs, 1)
    n_programs = -(-n_models // block) * -(-o // outputs)
    y = a.new_empty(n, o, n_models)
    kernels.layer[(n_programs * max(-(-n // rows), 1),)](
        a, weight, bias, y, n, n_models, d, o, slope,
        UNROLL=_unroll(rows + outputs, d), BN=rows, BO=outputs, BM=block, num_warps=1,
    )  # fmt: skip
    return y


def _weight_gradient(a: Tensor, g: Tensor, y: Tensor, slope: float) -> Tensor:
    """Gradients of weights and, in the last row, bias by chunks of rows, (chunks, d + 1, o, M)."""
    from saen.network import kernels

    n, d, n_models = a.shape
    o, block = g.shape[1], _models_block(n_models)
    outputs = min(_block(o), MAX_COLUMNS)
    columns = min(_block(d + 1), MAX_COLUMNS, max(REGISTERS // outputs, 1))
    n_programs = -(-n_models // block) * -(-(d + 1) // columns) * -(-o // outputs)
    n_chunks, rows = _chunks(n, n_programs)
    sums = a.new_empty(n_chunks, d + 1, o, n_models)
    kernels.weight_gradient[(n_programs * n_chunks,)](
        a, g, None if slope == 1.0 else y, sums, n, n_models, d, o, rows, slope,
        UNROLL=_unroll(2 * outputs + columns, rows), BD=columns, BO=outputs, BM=block, num_warps=1,
    )  # fmt: skip
    return sums


def _unfold(
    sums: Tensor,
    folded: Tensor,
    seen: Tensor | None,
    moments: Sequence[Tensor],
    epsilon: float,
) -> tuple[Tensor, Tensor, Sequence[Tensor]]:
    """Gradients of weight (M, d, o) and bias (M, o), and the two factors of `_input_gradient`."""
    from saen.network import kernels

    d, o, n_models = folded.shape
    of_weight, of_bias = sums.new_empty(n_models, d, o), sums.new_empty(n_models, o)
    factors = [torch.empty_like(each) for each in moments[:2]]
    outputs, block = _block(o), min(_models_block(n_models), MERGED_MODELS)
    at_once = min(_block(len(sums)), max(MAX_SUMMED // (outputs * block), 1))
    kernels.unfold[(-(-n_models // block) * (d + 1),)](
        sums, folded, *_seen(seen, d), *(moments or (None, None, None)),
        of_weight, of_bias, *(factors or (None, None)), len(sums), n_models, d, o, epsilon,
        BK=at_once, BO=outputs, BM=block,
    )  # fmt: skip
    return of_weight, of_bias, factors


def _input_gradient(
    a: Tensor,
    g: Tensor,
    y: Tensor,
    weight: Tensor,
    slope: float,
    uses: Tensor | None,
    factors: Sequence[Tensor],
) -> Tensor:
    """The gradient of a; through its moments it gets uses · (factor · a + other factor)."""
    from saen.network import kernels

    n, d, n_models = a.shape
    o, out, block = g.shape[1], torch.empty_like(a), _models_block(n_models)
    columns = min(_block(d), MAX_COLUMNS)
    rows = max(REGISTERS // columns, 1)
    n_programs = -(-n_models // block) * -(-d // columns)
    kernels.input_gradient[(n_programs * max(-(-n // rows), 1),)](
        a, g, None if slope == 1.0 else y, weight, uses, *(factors or (None, None)), out,
        n, n_models, d, o, slope,
        UNROLL=_unroll(2 * rows + columns, o), BN=rows, BD=columns, BM=block, num_warps=1,
    )  # fmt: skip
    return out


def addresses(parameters: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    """Where every parameter of the first model lies, and how far from there that of the next one.

    Both (P,), in bytes and in numbers, for contiguous `parameters` (M, …) that stay where they are.
    """
    places, distances = [], []
    for parameter in parameters:
        size = parameter[0].numel()
        places.append(parameter.data_ptr() + torch.arange(size) * parameter.element_size())
        distances.append(torch.full((size,), size))
    device = parameters[0].device
    return torch.cat(places).to(device), torch.cat(distances).to(device)


def adam(
    places: tuple[Tensor, Tensor],
    gradient: Tensor,
    mean: Tensor,
    square: Tensor,
    steps: Tensor,
    rate: Tensor,
    active: Tensor,
    decay: Tensor | None,
    betas: tuple[float, float],
    epsilon: float,
) -> None:
    """A step of `saen.network.training.Adam` in place; `places` are the parameters' `addresses`."""
    from saen.network import kernels

    n_models, size = gradient.shape
    kernels.adam[(n_models * -(-size // PARAMETERS),)](
        gradient, *places, mean, square, steps, rate, active.view(torch.uint8), decay,
        n_models, size, *betas, epsilon, BP=PARAMETERS,
    )  # fmt: skip


def _seen(seen: Tensor | None, d: int) -> tuple[Tensor | None, int]:
    """Which roles were seen, and the numbers per role."""
    return (None, d) if seen is None else (seen.view(torch.uint8), d // len(seen))


def _block(size: int) -> int:
    """The smallest power of two that fits, at least 4: every size is compiled."""
    return max(4, 1 << (size - 1).bit_length())


def _unroll(n_loads: int, size: int) -> int:
    """How many of a loop's `size` steps, of so many loads each, are one: a power of two."""
    limit = min(MAX_UNROLL, MAX_LOADS // n_loads, size)
    return 1 << max(limit.bit_length() - 1, 0)


def _models_block(n_models: int) -> int:
    return min(MODELS, 1 << (n_models - 1).bit_length())


def _chunks(n: int, n_programs: int) -> tuple[int, int]:
    """How many chunks to cut n rows into that are summed, and the rows of each.

    `n_programs` work on every chunk.
    """
    most = min(max(PROGRAMS // n_programs, 1), MAX_CHUNKS)
    rows = max(-(-n // most), MIN_ROWS)
    return max(-(-n // rows), 1), rows
