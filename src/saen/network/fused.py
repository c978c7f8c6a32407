"""The layers of a level in training on a GPU, in as few passes over memory as possible.

A training step of many small networks moves far more bytes than it multiplies numbers. Stock
kernels write every intermediate result, and sum the gradient of a weight matrix of ten by five over
a million rows with one block of threads. Here a level reads its aggregates once for the moments,
once for the layer and twice for the gradients, and models are the last axis of everything.
`saen.network.aggregation` and `saen.network.model` hold the same formulas for any device.
"""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor

MAX_WIDTH = 16
"""Units of a layer, and numbers per aggregate, above which matrix products of the libraries win."""
MODELS = 32
"""That a program works for: the threads of a warp, and one line of memory."""
REGISTERS = 32
"""Sums that a thread keeps."""
MAX_COLUMNS = 8
"""Of the aggregates that a program reads at a time."""
MAX_CHUNKS = 256
"""Of rows that are summed: with models and roles enough programs for any GPU."""
MIN_ROWS = 16
"""Of a chunk."""


def is_available(device: torch.device) -> bool:
    """Whether the kernels run on a device: a GPU, where Triton is installed."""
    return device.type == "cuda" and _has_triton()


@cache
def _has_triton() -> bool:
    return find_spec("triton") is not None


def normalised_layer(
    a: Tensor,
    uses: Tensor,
    weight: Tensor,
    bias: Tensor,
    seen: Tensor,
    epsilon: float,
    slope: float,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Leaky ReLU of normalised aggregates times weights, and the moments that normalised them.

    - `a` (n, d, M): the aggregates of all roles; `uses` (n, M);
    - `weight` (M, d, o) and `bias` (M, o) of the layer, before normalisation is folded in;
    - `seen` (d, M): whether the role of a column was seen; others contribute nothing;
    - `slope`: ≥ 0, of the Leaky ReLU; 1 for none.

    Returns the outputs (n, o, M), mean and variance (d, M), and the total uses (M,).
    """
    results: tuple[Tensor, Tensor, Tensor, Tensor] = _NormalisedLayer.apply(  # type: ignore[no-untyped-call]
        a, uses, weight.permute(1, 2, 0) * seen[:, None], bias.T, epsilon, slope
    )
    return results


def plain_layer(a: Tensor, weight: Tensor, bias: Tensor, slope: float) -> Tensor:
    """Leaky ReLU of a linear map: `a` (n, d, M), `weight` (M, d, o); (n, o, M)."""
    y: Tensor = _PlainLayer.apply(a, weight.permute(1, 2, 0), bias.T, slope)  # type: ignore[no-untyped-call]
    return y


class _NormalisedLayer(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        a: Tensor,
        uses: Tensor,
        weight: Tensor,
        bias: Tensor,
        epsilon: float,
        slope: float,
    ) -> tuple[Tensor, ...]:
        a, uses, weight = a.contiguous(), uses.contiguous(), weight.contiguous()
        mean, variance, total = _moments(a, uses)
        scale = (variance + epsilon).rsqrt()
        folded = weight * scale[:, None]
        y = _forward(a, folded, bias - (mean[:, None] * folded).sum(0), slope)
        ctx.save_for_backward(a, uses, weight, mean, scale, total, folded, y)
        ctx.slope = slope
        ctx.mark_non_differentiable(mean, variance, total)
        return y, mean, variance, total

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        a, uses, weight, mean, scale, total, folded, y = ctx.saved_tensors
        g = _before_activation(gradients[0], y, ctx.slope)
        of_folded, of_bias = _weight_gradients(a, g)
        # y = a W' + b - Σ mean W', where W' = W · scale and scale = (variance + ε)^-½
        of_folded = of_folded - mean[:, None] * of_bias
        of_variance = (of_folded * weight).sum(1) * scale**3 * -0.5
        of_mean = -(folded * of_bias).sum(1)
        # ∂mean/∂a_i = w_i / Σw and ∂variance/∂a_i = 2 w_i (a_i - mean) / Σw
        share = 1 / total.clamp_min(torch.finfo(total.dtype).tiny)
        slopes = 2 * of_variance * share
        of_a = _input_gradient(a, g, folded, (uses, slopes, of_mean * share - slopes * mean))
        return of_a, None, of_folded * scale[:, None], of_bias, None, None


class _PlainLayer(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, a: Tensor, weight: Tensor, bias: Tensor, slope: float) -> Tensor:
        a, weight = a.contiguous(), weight.contiguous()
        y = _forward(a, weight, bias, slope)
        ctx.save_for_backward(a, weight, y)
        ctx.slope = slope
        return y

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        a, weight, y = ctx.saved_tensors
        g = _before_activation(gradients[0], y, ctx.slope)
        of_weight, of_bias = _weight_gradients(a, g)
        return _input_gradient(a, g, weight), of_weight, of_bias, None


def _before_activation(gradient: Tensor, y: Tensor, slope: float) -> Tensor:
    """The gradient at the input of the Leaky ReLU, whose output has the sign of its input."""
    if slope == 1.0:
        return gradient.contiguous()
    before: Tensor = torch.ops.aten.leaky_relu_backward(gradient.contiguous(), y, slope, True)
    return before


def _moments(a: Tensor, uses: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Mean and variance of a, (d, M), each row weighted by its uses, and the total of these."""
    from saen.network import kernels

    n, d, n_models = a.shape
    block, columns = _models_block(n_models), min(_block(d), MAX_COLUMNS)
    n_blocks, (n_chunks, rows) = -(-n_models // block), _chunks(n)
    sums = a.new_empty(n_chunks, n_models)
    means, squares = (a.new_empty(n_chunks, d, n_models) for _ in range(2))
    kernels.moments[n_blocks, n_chunks, -(-d // columns)](
        a, uses, sums, means, squares, n, n_models, d, rows, BD=columns, BM=block, num_warps=1
    )
    mean, variance = (a.new_empty(d, n_models) for _ in range(2))
    total = a.new_empty(n_models)
    kernels.merge_moments[n_blocks, d](
        sums,
        means,
        squares,
        mean,
        variance,
        total,
        n_chunks,
        n_models,
        d,
        BK=_block(n_chunks),
        BM=block,
    )
    return mean, variance, total


def _forward(a: Tensor, weight: Tensor, bias: Tensor, slope: float) -> Tensor:
    from saen.network import kernels

    n, d, n_models = a.shape
    o, block = weight.shape[1], _models_block(n_models)
    outputs = _block(o)
    rows = max(REGISTERS // outputs, 1)
    y = a.new_empty(n, o, n_models)
    kernels.layer[-(-n_models // block), max(-(-n // rows), 1)](
        a,
        weight,
        bias.contiguous(),
        y,
        n,
        n_models,
        d,
        o,
        slope,
        BN=rows,
        BO=outputs,
        BM=block,
        num_warps=1,
    )
    return y


def _weight_gradients(a: Tensor, g: Tensor) -> tuple[Tensor, Tensor]:
    """Gradients of weights (d, o, M) and bias (o, M)."""
    from saen.network import kernels

    n, d, n_models = a.shape
    o, block, (n_chunks, rows) = g.shape[1], _models_block(n_models), _chunks(n)
    outputs = _block(o)
    columns = min(_block(d), MAX_COLUMNS, max(REGISTERS // outputs, 1))
    weight_sums = a.new_empty(n_chunks, d, o, n_models)
    bias_sums = a.new_empty(n_chunks, o, n_models)
    kernels.weight_gradient[-(-n_models // block), n_chunks, -(-d // columns)](
        a, g, weight_sums, bias_sums, n, n_models, d, o, rows,
        BD=columns, BO=outputs, BM=block, num_warps=1,
    )  # fmt: skip
    return weight_sums.sum(0), bias_sums.sum(0)


def _input_gradient(
    a: Tensor,
    g: Tensor,
    weight: Tensor,
    moments: tuple[Tensor, Tensor, Tensor] | None = None,
) -> Tensor:
    """The gradient of a; `moments` are uses, slope and shift of w_i (slope · a_i + shift)."""
    from saen.network import kernels

    n, d, n_models = a.shape
    out, block = torch.empty_like(a), _models_block(n_models)
    uses, slopes, shifts = moments or (a, a, a)  # not read without
    columns = min(_block(d), MAX_COLUMNS)
    rows = max(REGISTERS // columns, 1)
    kernels.input_gradient[-(-n_models // block), max(-(-n // rows), 1), -(-d // columns)](
        a, g, weight, uses, slopes, shifts, out, n, n_models, d, g.shape[1],
        NORMALISED=moments is not None, BN=rows, BD=columns, BM=block, num_warps=1,
    )  # fmt: skip
    return out


def _block(size: int) -> int:
    """The smallest power of two that fits, at least 4: every size is compiled."""
    return max(4, 1 << (size - 1).bit_length())


def _models_block(n_models: int) -> int:
    return min(MODELS, 1 << (n_models - 1).bit_length())


def _chunks(n: int) -> tuple[int, int]:
    """How many chunks to cut n rows into that are summed, and the rows of each."""
    rows = max(-(-n // MAX_CHUNKS), MIN_ROWS)
    return max(-(-n // rows), 1), rows
