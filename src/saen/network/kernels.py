"""Triton kernels of a level's layers in training; see `saen.network.fused`.

Models are the last axis of every array, so that neighbouring threads read neighbouring numbers:
`a` (n, d, M), `uses` (n, M), outputs and their gradients (n, o, M), weights (d, o, M), moments
(d, M). A program is one warp and works for `BM` models; `BO` is a power of two that o fits in.
Nothing is added by atomic operations, so results do not vary.
"""

from __future__ import annotations

import triton
import triton.language as tl

TINY = tl.constexpr(1e-30)
"""Less than any use; a smaller constant would make numbers of 64 bits."""


@triton.jit
def _models(n_models, BM: tl.constexpr):
    """The models of this program, and which of them exist."""
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    return m, m < n_models


@triton.jit(do_not_specialize=["n", "n_models", "d", "rows"])
def moments(
    a, uses, sums, means, squares, n, n_models, d, rows, BD: tl.constexpr, BM: tl.constexpr
):
    """Total uses, mean and sum of squared deviations of a chunk of rows (Welford's formula)."""
    m, in_m = _models(n_models, BM)
    chunk = tl.program_id(1)
    j = tl.program_id(2) * BD + tl.arange(0, BD)
    cells = j[:, None] * n_models + m[None, :]
    in_cells = (j < d)[:, None] & in_m[None, :]
    first = chunk * rows
    last = tl.minimum(first + rows, n)
    total = tl.zeros([1, BM], tl.float32)
    mean = tl.zeros([BD, BM], tl.float32)
    square = tl.zeros([BD, BM], tl.float32)
    # One pointer of 64 bits, not one per number: those would fill the registers.
    a += first.to(tl.int64) * d * n_models
    uses += first.to(tl.int64) * n_models
    for _ in range(first, last):
        w = tl.load(uses + m[None, :], mask=in_m[None, :], other=0.0)
        x = tl.load(a + cells, mask=in_cells, other=0.0)
        uses += n_models
        a += d * n_models
        total += w
        change = x - mean
        mean += change * (w / tl.maximum(total, TINY))
        square += w * change * (x - mean)
    at = chunk * d * n_models
    tl.store(means + at + cells, mean, mask=in_cells)
    tl.store(squares + at + cells, square, mask=in_cells)
    tl.store(sums + chunk * n_models + m[None, :], total, mask=in_m[None, :])


@triton.jit(do_not_specialize=["n_chunks", "n_models", "d"])
def merge_moments(
    sums,
    means,
    squares,
    mean_out,
    variance_out,
    total_out,
    n_chunks,
    n_models,
    d,
    BK: tl.constexpr,
    BM: tl.constexpr,
):
    """Mean and variance of one column from those of all chunks."""
    m, in_m = _models(n_models, BM)
    column = tl.program_id(1)
    chunk = tl.arange(0, BK)
    inside = (chunk < n_chunks)[:, None] & in_m[None, :]
    at = (chunk[:, None] * d + column) * n_models + m[None, :]
    w = tl.load(sums + chunk[:, None] * n_models + m[None, :], mask=inside, other=0.0)
    x = tl.load(means + at, mask=inside, other=0.0)
    total = tl.sum(w, 0)
    share = w / tl.maximum(total, TINY)[None, :]
    mean = tl.sum(share * x, 0)
    deviation = x - mean[None, :]
    square = tl.load(squares + at, mask=inside, other=0.0) / tl.maximum(total, TINY)[None, :]
    variance = tl.sum(square + share * deviation * deviation, 0)
    tl.store(mean_out + column * n_models + m, mean, mask=in_m)
    tl.store(variance_out + column * n_models + m, variance, mask=in_m)
    tl.store(total_out + m, total, mask=in_m)


@triton.jit(do_not_specialize=["n", "n_models", "d", "o"])
def layer(
    a,
    weight,
    bias,
    out,
    n,
    n_models,
    d,
    o,
    slope,
    BN: tl.constexpr,
    BO: tl.constexpr,
    BM: tl.constexpr,
):
    """Leaky ReLU of a W + b."""
    m, in_m = _models(n_models, BM)
    first = tl.program_id(1) * BN
    i = tl.arange(0, BN)[:, None, None]
    m, in_m = m[None, None, :], in_m[None, None, :]
    k = tl.arange(0, BO)[None, :, None]
    in_rows, in_outputs = (first + i < n) & in_m, (k < o) & in_m
    a += first.to(tl.int64) * d * n_models
    out += first.to(tl.int64) * o * n_models
    x = tl.zeros([BN, BO, BM], tl.float32)
    for _ in range(d):
        value = tl.load(a + i * d * n_models + m, mask=in_rows, other=0.0)
        x += value * tl.load(weight + k * n_models + m, mask=in_outputs, other=0.0)
        a += n_models
        weight += o * n_models
    x += tl.load(bias + k * n_models + m, mask=in_outputs, other=0.0)
    x = tl.where(x > 0, x, x * slope)
    tl.store(out + (i * o + k) * n_models + m, x, mask=in_rows & in_outputs)


@triton.jit(do_not_specialize=["n", "n_models", "d", "o", "rows"])
def weight_gradient(
    a,
    gradient,
    weight_sums,
    bias_sums,
    n,
    n_models,
    d,
    o,
    rows,
    BD: tl.constexpr,
    BO: tl.constexpr,
    BM: tl.constexpr,
):
    """Gradients of the bias and of the weights of `BD` columns, summed over a chunk of rows."""
    m, in_m = _models(n_models, BM)
    chunk = tl.program_id(1)
    m, in_m = m[None, None, :], in_m[None, None, :]
    j = tl.program_id(2) * BD + tl.arange(0, BD)[:, None, None]
    k = tl.arange(0, BO)[None, :, None]
    in_inputs, in_outputs = (j < d) & in_m, (k < o) & in_m
    first = chunk * rows
    last = tl.minimum(first + rows, n)
    of_weight = tl.zeros([BD, BO, BM], tl.float32)
    of_bias = tl.zeros([1, BO, BM], tl.float32)
    a += first.to(tl.int64) * d * n_models
    gradient += first.to(tl.int64) * o * n_models
    for _ in range(first, last):
        g = tl.load(gradient + k * n_models + m, mask=in_outputs, other=0.0)
        x = tl.load(a + j * n_models + m, mask=in_inputs, other=0.0)
        gradient += o * n_models
        a += d * n_models
        of_weight += x * g
        of_bias += g
    weight_sums += chunk.to(tl.int64) * d * o * n_models
    tl.store(weight_sums + (j * o + k) * n_models + m, of_weight, mask=in_inputs & in_outputs)
    tl.store(bias_sums + (chunk * o + k) * n_models + m, of_bias, mask=in_outputs)


@triton.jit(do_not_specialize=["n", "n_models", "d", "o"])
def input_gradient(
    a,
    gradient,
    weight,
    uses,
    slopes,
    shifts,
    out,
    n,
    n_models,
    d,
    o,
    NORMALISED: tl.constexpr,
    BN: tl.constexpr,
    BD: tl.constexpr,
    BM: tl.constexpr,
):
    """The gradient of `BD` columns of a: through the weights, and the moments that normalise it."""
    m, in_m = _models(n_models, BM)
    first = tl.program_id(1) * BN
    i = tl.arange(0, BN)[:, None, None]
    m, in_m = m[None, None, :], in_m[None, None, :]
    j = tl.program_id(2) * BD + tl.arange(0, BD)[None, :, None]
    in_rows, in_inputs = (first + i < n) & in_m, (j < d) & in_m
    a += first.to(tl.int64) * d * n_models
    out += first.to(tl.int64) * d * n_models
    uses += first.to(tl.int64) * n_models
    gradient += first.to(tl.int64) * o * n_models
    of_a = tl.zeros([BN, BD, BM], tl.float32)
    for _ in range(o):
        g = tl.load(gradient + i * o * n_models + m, mask=in_rows, other=0.0)
        of_a += g * tl.load(weight + j * o * n_models + m, mask=in_inputs, other=0.0)
        gradient += n_models
        weight += n_models
    at = (i * d + j) * n_models + m
    if NORMALISED:
        x = tl.load(a + at, mask=in_rows & in_inputs, other=0.0)
        u = tl.load(uses + i * n_models + m, mask=in_rows, other=0.0)
        moment = j * n_models + m
        steep = tl.load(slopes + moment, mask=in_inputs, other=0.0)
        shift = tl.load(shifts + moment, mask=in_inputs, other=0.0)
        of_a += u * (x * steep + shift)
    tl.store(out + at, of_a, mask=in_rows & in_inputs)
