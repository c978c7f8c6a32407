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
from itertools import chain
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

if TYPE_CHECKING:
    from saen.network.aggregation import RunningMoments

FUSES_PRODUCTS = True
"""Whether `products` sums the rows of small sparse products; else the libraries do."""
FUSES_LABELS = True
"""Whether `lookup` is the bottom level of networks that read labels; else stock operations are."""
FUSES_LOSSES = True
"""Whether `loss` computes the gradients of outputs; else stock operations do."""
FUSES_SMALL_LAYERS = True
"""Whether layers of few rows are one kernel each way; else they are made like all others."""

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
LARGE = 1 << 11
"""Numbers of a model's parameter whose gradients are not copied before the optimiser reads them."""
MAX_COUNTED = 1 << 12
"""Parameters of a model that one program of the optimiser changes if it counts the step too."""
MAX_SMALL_ROWS = 256
"""Of layers that one program computes for a model."""
MAX_NORMALISED_ROWS = 128
"""Of such a layer if it is normalised: the program holds all of them."""
MAX_SMALL_INPUTS = 128
"""Of such a layer: a program reads as many at a time as a layer has outputs."""
SMALL_ROWS = 64
"""That it computes at a time otherwise: with more, registers are spilled."""
LABEL_ROWS = 4
"""Objects of a chunk whose gradients are those of labels, at least."""
LOSS_ROWS = 128
"""Examples whose losses a program computes at a time, at most."""
LOSS_OUTPUTS = 512
"""Of one model that a program reads at a time."""
LOSS_MODELS = 4
"""That a program computes the losses of."""
MAX_LOSS_ROWS = 1 << 11
"""Examples of a batch above which the sums of the libraries win: a program sums all of them."""


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
    is_small = (
        FUSES_SMALL_LAYERS
        and norm is not None
        and len(a) <= MAX_NORMALISED_ROWS
        and a.shape[1] <= MAX_SMALL_INPUTS
        and weight.shape[2] <= MAX_WIDTH
    )
    function = _SmallNormalisedLayer if is_small else _Layer
    y: Tensor = function.apply(a, weight, bias, slope, seen, uses, norm)  # type: ignore[no-untyped-call]
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
    kernels.unfold[(-(-n_models // block) * (d + 1),)](
        sums, folded, *_seen(seen, d), *(moments or (None, None, None)),
        of_weight, of_bias, *(factors or (None, None)), len(sums), n_models, d, o, epsilon,
        BK=_summed_at_once(len(sums), outputs * block), BO=outputs, BM=block,
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


def later_layers(
    h: Tensor, weights: Sequence[Tensor], biases: Sequence[Tensor], slopes: Sequence[float]
) -> Tensor:
    """The layers of a level after the first, without normalisation: (n, d, M) to (n, o, M)."""
    if not FUSES_SMALL_LAYERS or len(h) > MAX_SMALL_ROWS:
        for weight, bias, slope in zip(weights, biases, slopes, strict=True):
            h = layer(h, weight, bias, slope)
        return h
    for start in range(0, len(weights), 2):
        two = slice(start, start + 2)
        parameters = chain.from_iterable(zip(weights[two], biases[two], strict=True))
        h = _SmallLayers.apply(h, slopes[two], *parameters)  # type: ignore[no-untyped-call]
    return h


class _SmallLayers(torch.autograd.Function):
    """One or two layers, forwards and backwards in one kernel each: a program for every model."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, slopes: Sequence[float], *parameters: Tensor) -> Tensor:
        x, parameters = x.contiguous(), tuple(each.contiguous() for each in parameters)
        y = x.new_empty(len(x), parameters[-1].shape[1], x.shape[2])
        _small_layers(x, slopes, parameters, y)
        ctx.save_for_backward(x, *parameters)
        ctx.slopes = slopes
        return y

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        x, *parameters = ctx.saved_tensors
        of_x, of_parameters = torch.empty_like(x), [torch.empty_like(each) for each in parameters]
        g = gradients[0].contiguous()
        _small_layers(x, ctx.slopes, parameters, of_x, g, of_parameters)
        return of_x, None, *of_parameters


def _small_layers(
    x: Tensor,
    slopes: Sequence[float],
    parameters: Sequence[Tensor],
    out: Tensor,
    gradient: Tensor | None = None,
    of_parameters: Sequence[Tensor | None] = (),
) -> None:
    from saen.network import kernels

    n, d, n_models = x.shape
    of_parameters = [*of_parameters, None, None, None, None][:4]
    kernels.small_layers[(n_models,)](
        x, *[*parameters, None, None][:4], out, gradient, *of_parameters,
        n, n_models, d, parameters[0].shape[2], parameters[-1].shape[1], slopes[0], slopes[-1],
        BN=SMALL_ROWS, B=MAX_WIDTH, num_warps=8,
    )  # fmt: skip


class _SmallNormalisedLayer(torch.autograd.Function):
    """`_Layer` with normalisation in one kernel each way: a program for every model."""

    @staticmethod
    def forward(
        ctx: Any,
        a: Tensor,
        weight: Tensor,
        bias: Tensor,
        slope: float,
        seen: Tensor | None,
        uses: Tensor,
        norm: RunningMoments,
    ) -> Tensor:
        a, weight, uses = a.contiguous(), weight.contiguous(), uses.contiguous()
        y = a.new_empty(len(a), weight.shape[2], a.shape[2])
        _normalised_layer(a, uses, weight, seen, norm, slope, y, bias=bias.contiguous())
        ctx.save_for_backward(a, uses, weight, seen, y)
        ctx.slope, ctx.norm = slope, norm
        return y

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        a, uses, weight, seen, y = ctx.saved_tensors
        of_a, of_weight = torch.empty_like(a), torch.empty_like(weight)
        of_bias = weight.new_empty(len(weight), weight.shape[2])
        given = y, gradients[0].contiguous(), of_weight, of_bias
        _normalised_layer(a, uses, weight, seen, ctx.norm, ctx.slope, of_a, *given)
        return of_a, of_weight, of_bias, None, None, None, None


def _normalised_layer(
    a: Tensor,
    uses: Tensor,
    weight: Tensor,
    seen: Tensor | None,
    norm: RunningMoments,
    slope: float,
    out: Tensor,
    y: Tensor | None = None,
    gradient: Tensor | None = None,
    of_weight: Tensor | None = None,
    of_bias: Tensor | None = None,
    *,
    bias: Tensor | None = None,
) -> None:
    from saen.network import kernels

    n, d, n_models = a.shape
    rows = SMALL_ROWS if n <= SMALL_ROWS else MAX_NORMALISED_ROWS
    n_programs = 1 if gradient is None else -(-d // MAX_WIDTH)
    kernels.normalised_layer[(n_models, n_programs)](
        a, uses, weight, bias, None if seen is None else seen.view(torch.uint8), norm.mean.shape[2],
        norm.mean, norm.variance, norm.started.view(torch.uint8),
        out, y, gradient, of_weight, of_bias, n, n_models, d, weight.shape[2],
        norm.momentum, norm.epsilon, slope, BN=rows, B=MAX_WIDTH, num_warps=8,
    )  # fmt: skip


def lookup(table: Tensor, bias: Tensor, entries: Tensor, codes: Tensor, slope: float) -> Tensor:
    """Leaky ReLU of the rows of labels, plus bias: (n, d, M).

    - `table` (M, V + 1, d) and `bias` (M, d);
    - `entries` (M, V + 1): the row of every label and, last, of code -1: its own; V; or V + 1 for
      none;
    - `codes` (n,): the labels of the objects, all different;
    - `slope`: ≥ 0, of the Leaky ReLU; 1 for none.
    """
    y: Tensor = _Lookup.apply(table, bias, entries, codes, slope)  # type: ignore[no-untyped-call]
    return y


class _Lookup(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, table: Tensor, bias: Tensor, entries: Tensor, codes: Tensor, slope: float
    ) -> Tensor:
        from saen.network import kernels

        n_models, n_rows, d = table.shape
        y, block = table.new_empty(len(codes), d, n_models), _models_block(n_models)
        if len(codes):
            kernels.lookup[(-(-n_models // block) * len(codes),)](
                table.contiguous(), bias.contiguous(), entries, codes, y,
                n_models, n_rows - 1, d, slope, BD=_block(d), BM=block, num_warps=1,
            )  # fmt: skip
        ctx.save_for_backward(y, entries, codes)
        ctx.slope, ctx.n_rows = slope, n_rows
        return y

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        from saen.network import kernels

        y, entries, codes = ctx.saved_tensors
        n, d, n_models = y.shape
        g, block = gradients[0].contiguous(), _models_block(n_models)
        n_chunks, rows = _chunks(n, -(-n_models // block), LABEL_ROWS)
        of_table = y.new_zeros(n_models, ctx.n_rows, d)
        of_bias, sums = y.new_empty(n_models, d), y.new_empty(n_chunks, 2, d, n_models)
        kernels.label_gradient[(-(-n_models // block) * n_chunks,)](
            g, y, entries, codes, of_table, sums, n, n_models, ctx.n_rows - 1, d, rows, ctx.slope,
            UNROLL=LABEL_ROWS, BD=_block(d), BM=block, num_warps=1,
        )  # fmt: skip
        columns, block = _block(d), min(block, MERGED_MODELS)
        kernels.merge_labels[(-(-n_models // block) * 2,)](
            sums, of_table, of_bias, n_chunks, n_models, ctx.n_rows - 1, d,
            BK=_summed_at_once(n_chunks, columns * block), BD=columns, BM=block,
        )  # fmt: skip
        return of_table, of_bias, None, None, None


def can_fuse_loss(outputs: Tensor) -> bool:
    """Whether `loss` applies to these outputs (n, M, k)."""
    return (
        FUSES_LOSSES
        and outputs.dtype == torch.float32
        and len(outputs) <= MAX_LOSS_ROWS
        and outputs.shape[2] <= MAX_WIDTH
        and is_available(outputs.device)
    )


def loss(outputs: Tensor, histograms: Tensor, totals: Tensor) -> Tensor:
    """What has the gradient of the sum of the models' mean losses, by `Task.losses`; no value.

    - `outputs` (n, M, k);
    - `histograms`: (n, M, k) of classes, or (n, M, 2k) of the two classes of logistic outputs;
    - `totals` (3, M): gets the losses of every model added, their weight and that of the correctly
      classified examples.
    """
    result: Tensor = _Loss.apply(outputs, histograms, totals)  # type: ignore[no-untyped-call]
    return result


class _Loss(torch.autograd.Function):
    """A scalar, since torch would import half a second of others for gradients that are given."""

    @staticmethod
    def forward(ctx: Any, outputs: Tensor, histograms: Tensor, totals: Tensor) -> Tensor:
        ctx.save_for_backward(_loss_gradient(outputs, histograms, totals))
        return outputs.new_empty(())

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *_: Tensor) -> tuple[Tensor | None, ...]:
        return ctx.saved_tensors[0], None, None


def _loss_gradient(outputs: Tensor, histograms: Tensor, totals: Tensor) -> Tensor:
    from saen.network import kernels

    z = outputs.detach().transpose(1, 2).contiguous()
    n, k, n_models = z.shape
    gradient, block = torch.empty_like(z), min(_models_block(n_models), LOSS_MODELS)
    columns = 1 << (k - 1).bit_length()
    kernels.loss[(-(-n_models // block),)](
        z, histograms.contiguous(), totals, gradient, n, n_models, k,
        IS_BINARY=histograms.shape[2] == 2 * k,
        BN=min(LOSS_ROWS, LOSS_OUTPUTS // columns), BK=columns, BM=block, num_warps=8,
    )  # fmt: skip
    return gradient.transpose(1, 2)


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
    gradients: Sequence[Tensor],
    moments: tuple[Tensor, Tensor],
    steps: Tensor,
    rate: Tensor,
    models: tuple[Tensor, Tensor | None],
    decay: Tensor | None,
    betas: tuple[float, float],
    epsilon: float,
) -> None:
    """A step of `saen.network.training.Adam` in place; `places` are the parameters' `addresses`.

    `models` that take part are active and, where given, running ones, both (M,) Boolean. Gradients
    of large tables are read where they are, those of all other parameters as one.
    """
    from saen.network import kernels

    (n_models, total), (active, running) = moments[0].shape, models
    flat = [gradient.reshape(n_models, -1) for gradient in gradients]
    n_large = next((i for i, each in enumerate(flat) if each.shape[1] < LARGE), len(flat))
    first, parts = 0, [each.contiguous() for each in flat[:n_large]]
    if n_large < len(flat):
        parts.append(torch.cat(flat[n_large:], dim=1))
    # The last one may count the step: no other program reads the count any more.
    is_counted = parts[-1].shape[1] <= MAX_COUNTED
    for part in parts:
        size, counts = part.shape[1], part is parts[-1] and is_counted
        block = max(1 << (size - 1).bit_length(), PARAMETERS) if counts else PARAMETERS
        kernels.adam[(n_models * -(-size // block),)](
            part, *places, *moments, steps, rate, active.view(torch.uint8),
            None if running is None else running.view(torch.uint8), decay,
            n_models, first, size, total, *betas, epsilon,
            COUNTS=counts, BP=block, num_warps=max(block // PARAMETERS, 4),
        )  # fmt: skip
        first += size
    if not is_counted:
        steps += active if running is None else active & running


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


def _summed_at_once(n_chunks: int, size: int) -> int:
    """Of chunks of this size, how many a program loads before it adds them: a power of two."""
    return min(_block(n_chunks), max(MAX_SUMMED // size, 1))


def _chunks(n: int, n_programs: int, least: int = MIN_ROWS) -> tuple[int, int]:
    """How many chunks to cut n rows into that are summed, and the rows of each.

    `n_programs` work on every chunk, which has at `least` so many rows.
    """
    most = min(max(PROGRAMS // n_programs, 1), MAX_CHUNKS)
    rows = max(-(-n // most), least)
    return max(-(-n // rows), 1), rows
