"""Triton kernels of a training step on a GPU; see `saen.network.fused`.

Models are the last axis of every array, so that neighbouring threads read neighbouring numbers:
`a` (n, d, M), `uses` (n, M), outputs and their gradients (n, o, M), weights (d, o, M), moments
(d, M). Parameters and what follows their layout have models first. A program works for `BM` models,
`BN` rows, `BD` inputs and `BO` outputs, powers of two. Loops load `UNROLL` rows or columns before
they wait for any. Nothing is added by atomic operations, so results do not vary.
"""

from __future__ import annotations

import triton
import triton.language as tl

TINY = tl.constexpr(1e-30)
"""Less than any use; a smaller constant would make numbers of 64 bits."""


@triton.jit
def _program(n_models, n_columns, BM: tl.constexpr):
    """The models of this program and which of them exist, its columns, and its rows.

    One axis of programs, since the others end at 65,535. Those of the same rows are neighbours:
    what one of them has read, the others find in the cache. The columns are a block of one number:
    Triton's interpreter combines conditions on blocks with no others.
    """
    n_blocks = tl.cdiv(n_models, BM)
    program = tl.program_id(0)
    m = program % n_blocks * BM + tl.arange(0, BM)
    program = program // n_blocks
    return m, m < n_models, program % n_columns + tl.zeros([1], tl.int32), program // n_columns


@triton.jit(do_not_specialize=["n", "n_models", "d", "rows"])
def moments(
    a,
    uses,
    sums,
    means,
    squares,
    n,
    n_models,
    d,
    rows,
    UNROLL: tl.constexpr,
    BD: tl.constexpr,
    BM: tl.constexpr,
):
    """Total uses, mean and sum of squared deviations of a chunk of rows (Welford's formula)."""
    m, in_m, column, chunk = _program(n_models, tl.cdiv(d, BD), BM)
    r = tl.arange(0, UNROLL)[:, None, None]
    j = column * BD + tl.arange(0, BD)[None, :, None]
    m, in_m = m[None, None, :], in_m[None, None, :]
    in_cells = (j < d) & in_m
    first = chunk * rows
    last = tl.minimum(first + rows, n)
    total = tl.zeros([1, 1, BM], tl.float32)
    mean = tl.zeros([1, BD, BM], tl.float32)
    square = tl.zeros([1, BD, BM], tl.float32)
    # One pointer of 64 bits, not one per number: those would fill the registers.
    a += first.to(tl.int64) * d * n_models
    uses += first.to(tl.int64) * n_models
    for start in range(first, last, UNROLL):
        inside = start + r < last
        w = tl.load(uses + r * n_models + m, mask=inside & in_m, other=0.0)
        x = tl.load(a + (r * d + j) * n_models + m, mask=inside & in_cells, other=0.0)
        uses += UNROLL * n_models
        a += UNROLL * d * n_models
        total += tl.sum(w, 0)[None]
        change = x - mean
        mean += tl.sum(w * change, 0)[None] / tl.maximum(total, TINY)
        square += tl.sum(w * change * (x - mean), 0)[None]
    at = (chunk * d + j) * n_models + m
    tl.store(means + at, mean, mask=in_cells)
    tl.store(squares + at, square, mask=in_cells)
    tl.store(sums + chunk * n_models + m, total, mask=in_m & (column == 0))


@triton.jit(do_not_specialize=["n_chunks", "n_models", "d", "below"])
def merge_moments(
    sums,
    means,
    squares,
    mean_out,
    variance_out,
    total_out,
    running_mean,
    running_variance,
    started,
    n_chunks,
    n_models,
    d,
    below,
    momentum,
    BK: tl.constexpr,
    BM: tl.constexpr,
):
    """Mean and variance of one column from those of all chunks; moves the running ones.

    These are (roles, M, d / roles) and change for models with uses alone: from the first batch to
    its moments, since `fold` sets `started` once all columns have read it.
    """
    m, in_m, column, _ = _program(n_models, d, BM)
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
    tl.store(total_out + m, total, mask=in_m & (column == 0))
    is_later = tl.load(started + m, mask=in_m, other=0) != 0
    at = (column // below * n_models + m) * below + column % below
    old_mean = tl.load(running_mean + at, mask=in_m, other=0.0)
    old_variance = tl.load(running_variance + at, mask=in_m, other=0.0)
    mean = tl.where(is_later, old_mean + momentum * (mean - old_mean), mean)
    variance = tl.where(is_later, old_variance + momentum * (variance - old_variance), variance)
    tl.store(running_mean + at, mean, mask=in_m & (total > 0))
    tl.store(running_variance + at, variance, mask=in_m & (total > 0))


@triton.jit(do_not_specialize=["n_models", "d", "o", "below"])
def fold(
    weight,
    bias,
    seen,
    below,
    mean,
    variance,
    total,
    started,
    folded,
    folded_bias,
    n_models,
    d,
    o,
    epsilon,
    BD: tl.constexpr,
    BM: tl.constexpr,
):
    """Weights of one output by models last, with the normalisation of the inputs folded in.

    ((a - mean) · scale) W + b is a W' + b'. The weights of roles that a model has not seen are
    zero. Models with uses are marked as `started`: see `merge_moments`.
    """
    m, in_m, k, _ = _program(n_models, o, BM)
    m, in_m = m[None, :], in_m[None, :]
    shift = tl.zeros([BD, BM], tl.float32)
    for start in range(0, d, BD):
        j = start + tl.arange(0, BD)[:, None]
        inside = (j < d) & in_m
        w = tl.load(weight + (m * d + j) * o + k, mask=inside, other=0.0)
        if seen is not None:
            is_seen = tl.load(seen + j // below * n_models + m, mask=inside, other=0) != 0
            w = tl.where(is_seen, w, 0.0)
        if mean is not None:
            w *= tl.rsqrt(tl.load(variance + j * n_models + m, mask=inside, other=1.0) + epsilon)
            shift += w * tl.load(mean + j * n_models + m, mask=inside, other=0.0)
        tl.store(folded + (j * o + k) * n_models + m, w, mask=inside)
    b = tl.load(bias + m * o + k, mask=in_m, other=0.0) - tl.sum(shift, 0)[None]
    tl.store(folded_bias + k * n_models + m, b, mask=in_m)
    if mean is not None:
        is_active = tl.load(total + m, mask=in_m, other=0.0) > 0
        tl.store(started + m, is_active.to(tl.uint8), mask=in_m & is_active & (k == 0))


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
    UNROLL: tl.constexpr,
    BN: tl.constexpr,
    BO: tl.constexpr,
    BM: tl.constexpr,
):
    """Leaky ReLU of a W + b."""
    m, in_m, column, block = _program(n_models, tl.cdiv(o, BO), BM)
    first = block * BN
    i = tl.arange(0, BN)[:, None, None]
    m, in_m = m[None, None, :], in_m[None, None, :]
    k = column * BO + tl.arange(0, BO)[None, :, None]
    in_rows, in_outputs = (first + i < n) & in_m, (k < o) & in_m
    a += first.to(tl.int64) * d * n_models
    out += first.to(tl.int64) * o * n_models
    x = tl.zeros([BN, BO, BM], tl.float32)
    zero = tl.zeros([1], tl.int32)
    for start in range(0, d, UNROLL):
        for step in tl.static_range(UNROLL):
            j = start + step
            inside = zero + j < d
            at = a + j * n_models + (i * d * n_models + m)
            value = tl.load(at, mask=in_rows & inside, other=0.0)
            at = weight + j * o * n_models + (k * n_models + m)
            x += value * tl.load(at, mask=in_outputs & inside, other=0.0)
    x += tl.load(bias + k * n_models + m, mask=in_outputs, other=0.0)
    x = tl.where(x > 0, x, x * slope)
    tl.store(out + (i * o + k) * n_models + m, x, mask=in_rows & in_outputs)


@triton.jit(do_not_specialize=["n", "n_models", "d", "o", "rows"])
def weight_gradient(
    a,
    gradient,
    y,
    sums,
    n,
    n_models,
    d,
    o,
    rows,
    slope,
    UNROLL: tl.constexpr,
    BD: tl.constexpr,
    BO: tl.constexpr,
    BM: tl.constexpr,
):
    """Gradients of weights, summed over a chunk of rows: (chunks, d + 1, o, M).

    The bias is the weight of a last column of ones. Without `y` there is no activation.
    """
    n_outputs = tl.cdiv(o, BO)
    m, in_m, column, chunk = _program(n_models, tl.cdiv(d + 1, BD) * n_outputs, BM)
    m, in_m = m[None, None, :], in_m[None, None, :]
    j = column // n_outputs * BD + tl.arange(0, BD)[:, None, None]
    k = column % n_outputs * BO + tl.arange(0, BO)[None, :, None]
    in_inputs, in_outputs = (j < d) & in_m, (k < o) & in_m
    ones = tl.where((j == d) & in_m, 1.0, 0.0)
    first = chunk * rows
    last = tl.minimum(first + rows, n)
    of_weight = tl.zeros([BD, BO, BM], tl.float32)
    zero = tl.zeros([1], tl.int32)
    a += first.to(tl.int64) * d * n_models
    gradient += first.to(tl.int64) * o * n_models
    if y is not None:
        y += first.to(tl.int64) * o * n_models
    at = k * n_models + m
    for start in range(0, last - first, UNROLL):
        for step in tl.static_range(UNROLL):
            row = start + step
            inside = zero + row < last - first
            before = row * o * n_models
            g = tl.load(gradient + before + at, mask=in_outputs & inside, other=0.0)
            if y is not None:
                is_positive = tl.load(y + before + at, mask=in_outputs & inside, other=0.0) > 0
                g = tl.where(is_positive, g, g * slope)
            x = tl.load(
                a + row * d * n_models + (j * n_models + m), mask=in_inputs & inside, other=ones
            )
            of_weight += x * g
    sums += chunk.to(tl.int64) * (d + 1) * o * n_models
    tl.store(sums + (j * o + k) * n_models + m, of_weight, mask=(j <= d) & in_outputs)


@triton.jit
def _sum_chunks(
    sums, at, inside, size, n_chunks, BK: tl.constexpr, BO: tl.constexpr, BM: tl.constexpr
):
    """The sum over chunks, each of which has this `size`."""
    chunk = tl.arange(0, BK)[:, None, None]
    parts = tl.zeros([BK, BO, BM], tl.float32)
    for start in range(0, n_chunks, BK):
        mask = (start + chunk < n_chunks) & inside[None]
        parts += tl.load(sums + chunk * size + at[None], mask=mask, other=0.0)
        sums += tl.cast(size, tl.int64) * BK
    return tl.sum(parts, 0)


@triton.jit(do_not_specialize=["n_chunks", "n_models", "d", "o", "below"])
def unfold(
    sums,
    folded,
    seen,
    below,
    mean,
    variance,
    total,
    of_weight,
    of_bias,
    slopes,
    shifts,
    n_chunks,
    n_models,
    d,
    o,
    epsilon,
    BK: tl.constexpr,
    BO: tl.constexpr,
    BM: tl.constexpr,
):
    """Gradients of the parameters that were folded: of the weights of one input, or of the bias.

    Through its moments, the gradient of a_i gets w_i (slope · a_i + shift), whose factors per
    column are stored too.
    """
    m, in_m, j, _ = _program(n_models, d + 1, BM)
    m, in_m = m[None, :], in_m[None, :]
    k = tl.arange(0, BO)[:, None]
    at, inside, size = k * n_models + m, (k < o) & in_m, (d + 1) * o * n_models
    is_weight = j < d
    column = j * o * n_models + at
    g = _sum_chunks(sums, column, inside, size, n_chunks, BK, BO, BM)
    if mean is not None:
        # y = a W' + b - Σ mean W', where W' = W · scale and scale = (variance + ε)^-½
        of_shift = _sum_chunks(sums, d * o * n_models + at, inside, size, n_chunks, BK, BO, BM)
        in_moments = in_m & is_weight
        center = tl.load(mean + j * n_models + m, mask=in_moments, other=0.0)
        scale = tl.rsqrt(tl.load(variance + j * n_models + m, mask=in_moments, other=0.0) + epsilon)
        w = tl.load(folded + column, mask=inside & is_weight, other=0.0)
        g -= center * of_shift
        # ∂mean/∂a_i = w_i / Σw and ∂variance/∂a_i = 2 w_i (a_i - mean) / Σw
        share = 1 / tl.maximum(tl.load(total + m, mask=in_m, other=0.0), TINY)
        steep = -tl.sum(g * w, 0)[None] * scale * scale * share
        shift = -tl.sum(w * of_shift, 0)[None] * share - steep * center
        tl.store(slopes + j * n_models + m, steep, mask=in_moments)
        tl.store(shifts + j * n_models + m, shift, mask=in_moments)
        g = tl.where(is_weight, g * scale, g)
    if seen is not None:
        is_seen = tl.load(seen + j // below * n_models + m, mask=in_m & is_weight, other=1) != 0
        g = tl.where(is_seen, g, 0.0)
    tl.store(of_weight + (m * d + j) * o + k, g, mask=inside & is_weight)
    tl.store(of_bias + m * o + k, g, mask=inside & (j == d))


@triton.jit(do_not_specialize=["n", "n_models", "d", "o"])
def input_gradient(
    a,
    gradient,
    y,
    weight,
    uses,
    slopes,
    shifts,
    out,
    n,
    n_models,
    d,
    o,
    slope,
    UNROLL: tl.constexpr,
    BN: tl.constexpr,
    BD: tl.constexpr,
    BM: tl.constexpr,
):
    """The gradient of `BD` columns of a: through the weights, and the moments that normalise it.

    Without `y` there is no activation, without `slopes` no normalisation.
    """
    m, in_m, column, block = _program(n_models, tl.cdiv(d, BD), BM)
    first = block * BN
    i = tl.arange(0, BN)[:, None, None]
    m, in_m = m[None, None, :], in_m[None, None, :]
    j = column * BD + tl.arange(0, BD)[None, :, None]
    in_rows, in_inputs = (first + i < n) & in_m, (j < d) & in_m
    a += first.to(tl.int64) * d * n_models
    out += first.to(tl.int64) * d * n_models
    gradient += first.to(tl.int64) * o * n_models
    if y is not None:
        y += first.to(tl.int64) * o * n_models
    of_a = tl.zeros([BN, BD, BM], tl.float32)
    zero = tl.zeros([1], tl.int32)
    at = i * o * n_models + m
    for start in range(0, o, UNROLL):
        for step in tl.static_range(UNROLL):
            before = (start + step) * n_models
            inside = zero + start + step < o
            g = tl.load(gradient + before + at, mask=in_rows & inside, other=0.0)
            if y is not None:
                is_positive = tl.load(y + before + at, mask=in_rows & inside, other=0.0) > 0
                g = tl.where(is_positive, g, g * slope)
            w = tl.load(
                weight + before + (j * o * n_models + m), mask=in_inputs & inside, other=0.0
            )
            of_a += g * w
    at = (i * d + j) * n_models + m
    if slopes is not None:
        x = tl.load(a + at, mask=in_rows & in_inputs, other=0.0)
        uses += first.to(tl.int64) * n_models
        u = tl.load(uses + i * n_models + m, mask=in_rows, other=0.0)
        moment = j * n_models + m
        steep = tl.load(slopes + moment, mask=in_inputs, other=0.0)
        shift = tl.load(shifts + moment, mask=in_inputs, other=0.0)
        of_a += u * (x * steep + shift)
    tl.store(out + at, of_a, mask=in_rows & in_inputs)


@triton.jit(do_not_specialize=["n_models", "first", "size", "total"])
def adam(
    gradient,
    addresses,
    strides,
    mean,
    square,
    steps,
    rate,
    active,
    running,
    decay,
    n_models,
    first,
    size,
    total,
    BETA_1: tl.constexpr,
    BETA_2: tl.constexpr,
    EPSILON: tl.constexpr,
    COUNTS: tl.constexpr,
    BP: tl.constexpr,
):
    """A step of Adam for `BP` parameters of one model, if it is active and running.

    They are some of the `size` parameters from the `first` of `total` on, of which `gradient` is
    (M, size). `addresses` (total,) are where the parameters of the first model lie, and `strides`
    (total,) how many numbers from there those of the next one. The moments are (M, total). If a
    program `COUNTS` the step, it is the only one of its model.
    """
    program = tl.program_id(0)
    model = program % n_models
    p = program // n_models * BP + tl.arange(0, BP)
    zero = tl.zeros([1], tl.int32)
    takes_part = tl.load(active + model + zero) != 0
    if running is not None:
        takes_part = takes_part & (tl.load(running + model + zero) != 0)
    inside = (p < size) & takes_part
    g = tl.load(gradient + model.to(tl.int64) * size + p, mask=inside, other=0.0)
    p += first
    at = model.to(tl.int64) * total + p
    # 1 - β^t in 64 bits, as the steps t and the rate are
    t = tl.load(steps + model) + 1
    correction_1 = 1 - tl.exp(t * tl.log(tl.full([], BETA_1, tl.float64)))
    correction_2 = 1 - tl.exp(t * tl.log(tl.full([], BETA_2, tl.float64)))
    step = tl.load(rate)
    v = tl.load(mean + at, mask=inside, other=0.0)
    s = tl.load(square + at, mask=inside, other=0.0)
    v += (g - v) * (1 - BETA_1)
    s += (g * g - s) * (1 - BETA_2)
    tl.store(mean + at, v, mask=inside)
    tl.store(square + at, s, mask=inside)
    parameter = tl.load(addresses + p, mask=inside, other=0).to(tl.pointer_type(tl.float32))
    parameter += tl.load(strides + p, mask=inside, other=0) * model
    value = tl.load(parameter, mask=inside, other=0.0)
    change = (step / correction_1).to(tl.float32) * v
    change /= tl.sqrt(s) / tl.sqrt(correction_2).to(tl.float32) + EPSILON
    if decay is not None:
        change += value * (tl.load(decay + p, mask=inside, other=0.0) * step.to(tl.float32))
    tl.store(parameter, value - change, mask=inside)
    if COUNTS:
        tl.debug_barrier()  # every warp has read the old count
        tl.store(steps + model + zero, t, mask=takes_part)


@triton.jit(do_not_specialize=["n_models", "n_labels", "d"])
def lookup(
    table,
    bias,
    entries,
    codes,
    out,
    n_models,
    n_labels,
    d,
    slope,
    BD: tl.constexpr,
    BM: tl.constexpr,
):
    """Leaky ReLU of the table's row for the label of one object, plus the bias.

    An entry beyond the table is an unseen label, whose row is zero.
    """
    m, in_m, _, i = _program(n_models, 1, BM)
    m, in_m = m[None, :], in_m[None, :]
    k = tl.arange(0, BD)[:, None]
    inside = (k < d) & in_m
    _, entry = _entry(entries, codes, i, m, in_m, n_labels)
    at = (m.to(tl.int64) * (n_labels + 1) + entry) * d + k
    x = tl.load(table + at, mask=inside & (entry <= n_labels), other=0.0)
    x += tl.load(bias + m * d + k, mask=inside, other=0.0)
    x = tl.where(x > 0, x, x * slope)
    tl.store(out + (i.to(tl.int64) * d + k) * n_models + m, x, mask=inside)


@triton.jit
def _entry(entries, codes, i, m, in_m, n_labels):
    """The label of object i, `n_labels` outside of the vocabulary, and its entry in every model."""
    code = tl.load(codes + i + tl.zeros([1, 1], tl.int64))
    code = tl.where(code < 0, n_labels, code)
    at = m.to(tl.int64) * (n_labels + 1) + code
    return code, tl.load(entries + at, mask=in_m, other=0)


@triton.jit(do_not_specialize=["n", "n_models", "n_labels", "d", "rows"])
def label_gradient(
    gradient,
    y,
    entries,
    codes,
    of_table,
    sums,
    n,
    n_models,
    n_labels,
    d,
    rows,
    slope,
    UNROLL: tl.constexpr,
    BD: tl.constexpr,
    BM: tl.constexpr,
):
    """Gradients of the labels' own rows of the table, for a chunk of objects of different labels.

    Their sums over the chunk are stored as (chunks, 2, d, M): of all objects, for the bias, and of
    those whose labels share the last entry.
    """
    m, in_m, _, chunk = _program(n_models, 1, BM)
    m, in_m = m[None, :], in_m[None, :]
    k = tl.arange(0, BD)[:, None]
    inside = (k < d) & in_m
    first = chunk * rows
    last = tl.minimum(first + rows, n)
    of_all = tl.zeros([BD, BM], tl.float32)
    of_shared = tl.zeros([BD, BM], tl.float32)
    zero = tl.zeros([1, 1], tl.int32)
    for start in range(first, last, UNROLL):
        for step in tl.static_range(UNROLL):
            i = tl.minimum(start + step, last - 1)
            is_next = inside & (zero + start + step < last)
            at = (i.to(tl.int64) * d + k) * n_models + m
            g = tl.load(gradient + at, mask=is_next, other=0.0)
            is_positive = tl.load(y + at, mask=is_next, other=0.0) > 0
            g = tl.where(is_positive, g, g * slope)
            code, entry = _entry(entries, codes, i, m, in_m, n_labels)
            of_all += g
            of_shared += tl.where(entry == n_labels, g, 0.0)
            at = (m.to(tl.int64) * (n_labels + 1) + code) * d + k
            tl.store(of_table + at, g, mask=is_next & (entry == code) & (code < n_labels))
    sums += chunk.to(tl.int64) * 2 * d * n_models
    tl.store(sums + k * n_models + m, of_all, mask=inside)
    tl.store(sums + (d + k) * n_models + m, of_shared, mask=inside)


@triton.jit(do_not_specialize=["n_chunks", "n_models", "n_labels", "d"])
def merge_labels(
    sums,
    of_table,
    of_bias,
    n_chunks,
    n_models,
    n_labels,
    d,
    BK: tl.constexpr,
    BD: tl.constexpr,
    BM: tl.constexpr,
):
    """Gradients of the bias, and of the table's last row, from the sums of `label_gradient`."""
    m, in_m, which, _ = _program(n_models, 2, BM)
    m, in_m = m[None, :], in_m[None, :]
    k = tl.arange(0, BD)[:, None]
    inside = (k < d) & in_m
    at = (which * d + k) * n_models + m
    g = _sum_chunks(sums, at, inside, 2 * d * n_models, n_chunks, BK, BD, BM)
    tl.store(of_bias + m * d + k, g, mask=inside & (which == 0))
    at = (m.to(tl.int64) * (n_labels + 1) + n_labels) * d + k
    tl.store(of_table + at, g, mask=inside & (which == 1))


@triton.jit(do_not_specialize=["n", "n_models", "k"])
def loss(
    outputs,
    histograms,
    totals,
    gradient,
    n,
    n_models,
    k,
    IS_BINARY: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
    BM: tl.constexpr,
):
    """The gradient of the mean loss of every model; adds its losses, weights and hits to `totals`.

    Outputs (n, k, M), histograms (n, M, k), or (n, M, 2k) for the first and the second classes of
    k logistic outputs; `totals` (3, M).
    """
    models = tl.program_id(0) * BM + tl.arange(0, BM)
    in_models = models < n_models
    m = models[None, None, :]
    c = tl.arange(0, BK)[None, :, None]
    r = tl.arange(0, BN)[:, None, None]
    in_cells = (c < k) & in_models[None, None, :]
    n_columns = 2 * k if IS_BINARY else k
    weights = tl.zeros([BN, BK, BM], tl.float32)
    for start in range(0, n, BN):
        inside = (start + r < n) & in_cells
        at = ((start + r) * n_models + m) * n_columns + c
        weights += tl.load(histograms + at, mask=inside, other=0.0)
        if IS_BINARY:
            weights += tl.load(histograms + at + k, mask=inside, other=0.0)
    weight = tl.sum(tl.sum(weights, 0), 0)
    share = (1 / tl.maximum(weight, TINY))[None, None, :]
    losses = tl.zeros([BN, BK, BM], tl.float32)
    correct = tl.zeros([BN, BK, BM], tl.float32)
    for start in range(0, n, BN):
        inside = (start + r < n) & in_cells
        at = ((start + r) * k + c) * n_models + m
        z = tl.load(outputs + at, mask=inside, other=0.0)
        place = ((start + r) * n_models + m) * n_columns + c
        h = tl.load(histograms + place, mask=inside, other=0.0)
        if IS_BINARY:
            second = tl.load(histograms + place + k, mask=inside, other=0.0)
            small = tl.exp(-tl.abs(z))
            # log(1 + small) to all digits where 1 + small has lost some of them
            sum_ = 1 + small
            is_lost = sum_ == 1
            log = tl.where(is_lost, small, tl.log(sum_) * small / tl.where(is_lost, 1.0, sum_ - 1))
            losses += h * (tl.maximum(z, 0.0) + log) + second * (tl.maximum(-z, 0.0) + log)
            # The logistic function of |z| and of -|z|
            of_larger, of_smaller = 1 / sum_, small / sum_
            g = h * tl.where(z > 0, of_larger, of_smaller)
            g -= second * tl.where(z > 0, of_smaller, of_larger)
            correct += tl.where(z > 0, second, h)
        else:
            best = tl.max(tl.where(c < k, z, float("-inf")), 1)[:, None, :]
            z = tl.where(c < k, z - best, 0.0)
            e = tl.where(c < k, tl.exp(z), 0.0)
            sum_ = tl.sum(e, 1)[:, None, :]
            losses += h * (tl.log(sum_) - z)
            g = e / sum_ * tl.sum(h, 1)[:, None, :] - h
            predicted = tl.min(tl.where(z == 0, c, BK), 1)[:, None, :]
            correct += tl.where(c == predicted, h, 0.0)
        tl.store(gradient + at, g * share, mask=inside)
    at = totals + models
    loss_sum = tl.sum(tl.sum(losses, 0), 0) + tl.load(at, mask=in_models, other=0.0)
    tl.store(at, loss_sum, mask=in_models)
    at += n_models
    tl.store(at, weight + tl.load(at, mask=in_models, other=0.0), mask=in_models)
    at += n_models
    hits = tl.sum(tl.sum(correct, 0), 0) + tl.load(at, mask=in_models, other=0.0)
    tl.store(at, hits, mask=in_models)


@triton.jit(do_not_specialize=["units"])
def sum_rows(
    dense,
    columns,
    values,
    starts,
    stops,
    targets,
    out,
    units,
    ALIGN: tl.constexpr,
    UNROLL: tl.constexpr,
    BW: tl.constexpr,
):
    """A weighted sum of rows of `dense`: `BW` columns of a piece of a row of a sparse product.

    The entries of the piece lie between `starts` and `stops`, and the sum goes to the row `targets`
    of `out`. Without `columns` the entries are themselves rows, each of weight one. Rows have
    `units` times `ALIGN` numbers: so the compiler knows which addresses are multiples.
    """
    width = units * ALIGN
    n_blocks = tl.cdiv(width, BW)
    program = tl.program_id(0)
    piece = program // n_blocks
    c = program % n_blocks * BW + tl.arange(0, BW)[None, :]
    inside = c < width
    first, last = tl.load(starts + piece), tl.load(stops + piece)
    e = tl.arange(0, UNROLL)[:, None]
    x = tl.zeros([1, BW], tl.float32)
    for start in range(first, last, UNROLL):
        entry = start + e
        is_entry = entry < last
        row = entry
        if columns is not None:
            row = tl.load(columns + entry, mask=is_entry, other=0)
        value = tl.load(dense + (row.to(tl.int64) * width + c), mask=is_entry & inside, other=0.0)
        if values is not None:
            value *= tl.load(values + entry, mask=is_entry, other=0.0)
        x += tl.sum(value, 0)[None, :]
    at = out + tl.load(targets + piece).to(tl.int64) * width + c
    tl.store(at, x, mask=inside)


@triton.jit(do_not_specialize=["n", "n_models", "d", "o", "k"])
def small_layers(
    x,
    weight,
    bias,
    weight_2,
    bias_2,
    out,
    gradient,
    of_weight,
    of_bias,
    of_weight_2,
    of_bias_2,
    n,
    n_models,
    d,
    o,
    k,
    slope,
    slope_2,
    BN: tl.constexpr,
    B: tl.constexpr,
):
    """One or two layers of at most `B` units of one model, or with `gradient` their gradients.

    `out` gets the outputs, or the gradient of x.
    """
    m = tl.program_id(0)
    i = tl.arange(0, BN)[:, None]
    row, column = tl.arange(0, B)[:, None], tl.arange(0, B)[None, :]
    n_outputs = o if weight_2 is None else k
    at, inside = (m * d + row) * o + column, (row < d) & (column < o)
    w = tl.load(weight + at, mask=inside, other=0.0)
    b = tl.load(bias + m * o + column, mask=column < o, other=0.0)
    sum_w, sum_b = tl.zeros([B, B], tl.float32), tl.zeros([BN, B], tl.float32)
    if weight_2 is not None:
        at_2, inside_2 = (m * o + row) * k + column, (row < o) & (column < k)
        w_2 = tl.load(weight_2 + at_2, mask=inside_2, other=0.0)
        b_2 = tl.load(bias_2 + m * k + column, mask=column < k, other=0.0)
        sum_w_2, sum_b_2 = tl.zeros([B, B], tl.float32), tl.zeros([BN, B], tl.float32)
    for start in range(0, n, BN):
        in_rows = start + i < n
        place = ((start + i) * d + column) * n_models + m
        h = tl.load(x + place, mask=in_rows & (column < d), other=0.0)
        y = tl.dot(h, w, input_precision="ieee") + b
        y = tl.where(y > 0, y, y * slope)
        z = y
        if weight_2 is not None:
            z = tl.dot(y, w_2, input_precision="ieee") + b_2
            z = tl.where(z > 0, z, z * slope_2)
        of_outputs = ((start + i) * n_outputs + column) * n_models + m
        in_outputs = in_rows & (column < n_outputs)
        if gradient is None:
            tl.store(out + of_outputs, z, mask=in_outputs)
        else:
            g = tl.load(gradient + of_outputs, mask=in_outputs, other=0.0)
            if weight_2 is not None:
                g = tl.where(z > 0, g, g * slope_2)
                sum_w_2 += tl.dot(tl.trans(y), g, input_precision="ieee")
                sum_b_2 += g
                g = tl.dot(g, tl.trans(w_2), input_precision="ieee")
            g = tl.where(y > 0, g, g * slope)
            sum_w += tl.dot(tl.trans(h), g, input_precision="ieee")
            sum_b += g
            g = tl.dot(g, tl.trans(w), input_precision="ieee")
            tl.store(out + place, g, mask=in_rows & (column < d))
    if gradient is not None:
        tl.store(of_weight + at, sum_w, mask=inside)
        tl.store(of_bias + m * o + column, tl.sum(sum_b, 0)[None, :], mask=column < o)
        if weight_2 is not None:
            tl.store(of_weight_2 + at_2, sum_w_2, mask=inside_2)
            tl.store(of_bias_2 + m * k + column, tl.sum(sum_b_2, 0)[None, :], mask=column < k)


@triton.jit(do_not_specialize=["n", "n_models", "d", "o", "below"])
def normalised_layer(
    a,
    uses,
    weight,
    bias,
    seen,
    below,
    running_mean,
    running_variance,
    started,
    out,
    y,
    gradient,
    of_weight,
    of_bias,
    n,
    n_models,
    d,
    o,
    momentum,
    epsilon,
    slope,
    BN: tl.constexpr,
    B: tl.constexpr,
):
    """A layer of one model over at most `BN` rows, normalised; with `gradient` its gradients.

    `out` gets the outputs, at most `B`, or the gradient of a. Normalised is by the moments of all
    rows, weighted by their uses, `B` columns at a time; the running ones move on the way forward.
    There, one program adds up all columns; gradients have a program for every `B` of them.
    """
    m = tl.program_id(0)
    first = tl.program_id(1) * B
    last = d
    i = tl.arange(0, BN)[:, None]
    row, column = tl.arange(0, B)[:, None], tl.arange(0, B)[None, :]
    in_rows = i < n
    u = tl.load(uses + i * n_models + m, mask=in_rows, other=0.0)
    total = tl.sum(u, 0)[None, :]
    share = u / tl.maximum(total, TINY)
    of_outputs, in_outputs = (i * o + column) * n_models + m, in_rows & (column < o)
    x = tl.zeros([BN, B], tl.float32)
    g = tl.zeros([BN, B], tl.float32)
    zero = tl.zeros([1, 1], tl.int32)
    if gradient is None:
        is_later = tl.load(started + m + zero) != 0
    else:
        g = tl.load(gradient + of_outputs, mask=in_outputs, other=0.0)
        is_positive = tl.load(y + of_outputs, mask=in_outputs, other=0.0) > 0
        g = tl.where(is_positive, g, g * slope)
        if first == 0:
            tl.store(of_bias + m * o + column, tl.sum(g, 0)[None, :], mask=column < o)
        last = tl.minimum(first + B, d)
    for start in range(first, last, B):
        j = start + column
        place = (i * d + j) * n_models + m
        h = tl.load(a + place, mask=in_rows & (j < d), other=0.0)
        mean = tl.sum(share * h, 0)[None, :]
        h -= mean
        variance = tl.sum(share * h * h, 0)[None, :]
        scale = tl.rsqrt(variance + epsilon)
        h *= scale
        at, inside = (m * d + start + row) * o + column, (start + row < d) & (column < o)
        w = tl.load(weight + at, mask=inside, other=0.0)
        if seen is not None:
            role = (start + row) // below * n_models + m
            is_seen = tl.load(seen + role, mask=start + row < d, other=0) != 0
            w = tl.where(is_seen, w, 0.0)
        if gradient is None:
            x += tl.dot(h, w, input_precision="ieee")
            moment, in_moments = (j // below * n_models + m) * below + j % below, j < d
            old_mean = tl.load(running_mean + moment, mask=in_moments, other=0.0)
            old_variance = tl.load(running_variance + moment, mask=in_moments, other=0.0)
            mean = tl.where(is_later, old_mean + momentum * (mean - old_mean), mean)
            change = momentum * (variance - old_variance)
            variance = tl.where(is_later, old_variance + change, variance)
            tl.store(running_mean + moment, mean, mask=in_moments & (total > 0))
            tl.store(running_variance + moment, variance, mask=in_moments & (total > 0))
        else:
            of_w = tl.dot(tl.trans(h), g, input_precision="ieee")
            if seen is not None:
                of_w = tl.where(is_seen, of_w, 0.0)
            tl.store(of_weight + at, of_w, mask=inside)
            of_h = tl.dot(g, tl.trans(w), input_precision="ieee")
            # Of mean and variance: ∂mean/∂a_i = share_i, ∂variance/∂a_i = 2 share_i (a_i - mean)
            of_moments = tl.sum(of_h, 0)[None, :] + h * tl.sum(of_h * h, 0)[None, :]
            of_h = scale * (of_h - share * of_moments)
            tl.store(out + place, of_h, mask=in_rows & (j < d))
    if gradient is None:
        x += tl.load(bias + m * o + column, mask=column < o, other=0.0)
        x = tl.where(x > 0, x, x * slope)
        tl.store(out + of_outputs, x, mask=in_outputs)
        tl.store(started + m + zero, (total > 0).to(tl.uint8), mask=total > 0)
