"""`SAEN`: shift by role, aggregate by sum, extract by an MLP, for one network or a hundred at once.

Every parameter has a leading axis of models: M networks of one shape run over one shared hierarchy,
and one network is an ensemble of one. Representations of level l have shape (n_l, M, d_l).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from saen.data.compression import Compressed
from saen.data.hierarchy import Hierarchy
from saen.errors import InputError
from saen.network.sparse import Rows, Unrolled, UnrolledRelation

NORMALISATIONS = ("batch", "none")
MOMENTS = 30
"""Multiplications that take as long as one number's part in the moments of all aggregates."""


@dataclass(frozen=True)
class Architecture:
    """Everything that fixes the shape of a network.

    - `labels`: size of the bottom vocabulary (0 without), `vectors`: width of the bottom vectors;
    - `roles`: n(1), …, n(L);
    - `layers`: the sizes of the layers of every level, bottom first, the output layer included;
    - `slope`: of the Leaky ReLU that follows every layer but the very last;
    - `normalisation`: `batch` normalises the aggregates of every level above the bottom (and bottom
      vectors) by the mean and variance of the training objects, `none` leaves them;
    - `dropout`: share of units dropped after each hidden layer above the bottom.
    """

    labels: int
    vectors: int
    roles: tuple[int, ...]
    layers: tuple[tuple[int, ...], ...]
    slope: float = 0.01
    normalisation: str = "none"
    dropout: float = 0.0

    def __post_init__(self) -> None:
        if len(self.layers) != len(self.roles) + 1 or not all(self.layers):
            raise InputError(
                f"{len(self.roles) + 1} levels need as many non-empty lists of layer sizes, "
                f"found {self.layers}"
            )
        if any(size < 1 for sizes in self.layers for size in sizes):
            raise InputError(f"layer sizes must be at least 1: {self.layers}")
        if self.normalisation not in NORMALISATIONS:
            raise InputError(
                f"normalisation is one of {', '.join(NORMALISATIONS)}, not {self.normalisation!r}"
            )
        if not 0 <= self.dropout < 1:
            raise InputError(f"dropout must be at least 0 and below 1, not {self.dropout}")

    @classmethod
    def over(
        cls, hierarchy: Hierarchy, layers: Sequence[Sequence[int]], **options: Any
    ) -> Architecture:
        """The architecture with these layers for hierarchies like this one."""
        attributes = hierarchy.attributes
        return cls(
            labels=0 if attributes.vocabulary is None else len(attributes.vocabulary),
            vectors=0 if attributes.vectors is None else attributes.vectors.shape[1],
            roles=tuple(relation.n_roles for relation in hierarchy.relations),
            layers=tuple(tuple(int(size) for size in sizes) for sizes in layers),
            **options,
        )


class SAEN(nn.Module):
    """Shift Aggregate Extract Networks, M of them, over any hierarchy of a given architecture.

    Calling it with a `Hierarchy` gives the outputs of its top level, shape (n_L, M, outputs); with
    a `Compressed`, those of the original objects, in their order.

    `seeds` has one entry (an integer or a tuple of integers) per model; initial weights depend on
    nothing else.

    >>> from saen import Ego, Graphs
    >>> path = Ego().decompose(Graphs.from_edge_lists([[(0, 1), (1, 2)]]))
    >>> network = SAEN(Architecture.over(path, layers=[[4], [4], [2]]), seeds=[0, 1, 2])
    >>> network(path).shape
    torch.Size([1, 3, 2])
    """

    def __init__(
        self,
        architecture: Architecture,
        seeds: Sequence[int | Sequence[int]] = (0,),
        *,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        super().__init__()
        self.architecture = architecture
        self.n_models = len(seeds)
        if not seeds:
            raise InputError("a network needs at least one seed")
        bottom = _Bottom(architecture, self.n_models)
        self.levels = nn.ModuleList(
            [
                bottom,
                *(
                    _Level(architecture, level, self.n_models)
                    for level in range(1, bottom.depth + 1)
                ),
            ]
        )
        self.to(dtype)
        self._initialise(seeds)
        self._cached: tuple[Hierarchy, Unrolled] | None = None
        self._counted: tuple[Compressed | Unrolled, Sequence[Tensor]] | None = None

    def _initialise(self, seeds: Sequence[int | Sequence[int]]) -> None:
        layers = [module for module in self.modules() if isinstance(module, _Layers)]
        with torch.no_grad():
            for model, seed in enumerate(seeds):
                for level, module in enumerate(layers):
                    module.offsets[model] = derive_seed(seed, f"dropout {level}") / 2**63
                generator = torch.Generator().manual_seed(derive_seed(seed, "weights"))
                for parameter in self.parameters():
                    fan_in = parameter.shape[1] if parameter.ndim == 3 else 0
                    draw = torch.rand(parameter.shape[1:], generator=generator, dtype=torch.float64)
                    bound = (3.0 / fan_in) ** 0.5 if fan_in else 0.0
                    if parameter is self.bottom.table:
                        # A row of the label table is the whole input of its object: fan-in one.
                        # Beside vectors it is a correction of what they say, and starts at none.
                        bound = 1.0 if self.bottom.map is None else 0.0
                    parameter[model] = (2 * draw - 1) * bound

    @property
    def bottom(self) -> _Bottom:
        """f_0, the network of the bottom level."""
        level = self.levels[0]
        assert isinstance(level, _Bottom)
        return level

    @property
    def device(self) -> torch.device:
        """Where the parameters are."""
        return next(self.parameters()).device

    @property
    def dtype(self) -> torch.dtype:
        """The floating-point type of the parameters."""
        return next(self.parameters()).dtype

    def _apply(self, fn: Any, recurse: bool = True) -> SAEN:
        self._cached = self._counted = None  # made anew where the parameters went
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        return self

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_cached": None, "_counted": None}

    def unroll(self, hierarchy: Hierarchy) -> Unrolled:
        """The hierarchy as tensors beside the parameters; the last one is remembered."""
        if self._cached is None or self._cached[0] is not hierarchy:
            self.check_fits(hierarchy)
            made = Unrolled.of(hierarchy, dtype=self.dtype, device=self.device)
            self._cached = (hierarchy, made)
        return self._cached[1]

    def check_fits(self, hierarchy: Hierarchy) -> None:
        """Raise for a hierarchy of another vocabulary size, vector width or number of roles."""
        here = self.architecture
        there = Architecture.over(hierarchy, [[1]] * (hierarchy.depth + 1))
        for what in ("labels", "vectors", "roles"):
            if getattr(here, what) != getattr(there, what):
                raise InputError(
                    f"this network was built for {what} {getattr(here, what)}, "
                    f"the hierarchy has {getattr(there, what)}"
                )

    def forward(
        self,
        structures: Hierarchy | Compressed | Unrolled,
        uses: Sequence[Tensor] | None = None,
        noise: np.random.Generator | None = None,
        level: int | None = None,
    ) -> Tensor:
        """Outputs of the top level, or the representations h_l of a `level`.

        For the top level these are the activations that its output layer sees.
        In training mode with normalisation, `uses` gives the weight of every object in each
        model's statistics, level by level, shapes (n_l, M); without it every object of the top
        counts once. `noise` draws the dropout masks.
        """
        if isinstance(structures, Compressed):
            rows = self.forward(structures.hierarchy, self._uses(structures, uses), noise, level)
            at = structures.unique_of(structures.hierarchy.depth if level is None else level)
            return rows[torch.from_numpy(at.astype(np.int64)).to(rows.device)]
        if isinstance(structures, Hierarchy):
            structures = self.unroll(structures)
        uses = self._uses(structures, uses)
        if structures.device != self.device or structures.dtype != self.dtype:
            raise InputError(
                f"the network is {self.dtype} on {self.device}, the hierarchy {structures.dtype} "
                f"on {structures.device}: unroll it with network.unroll(hierarchy)"
            )
        last = len(structures.relations) if level is None else level
        if not 0 <= last <= len(structures.relations):
            raise InputError(f"levels are 0 … {len(structures.relations)}, not {level}")
        h: Tensor = self.bottom(structures, uses[0] if uses is not None else None)
        for index in range(1, last + 1):
            weight = uses[index] if uses is not None else None
            # Asked for by number, the top gives what its output layer sees.
            hidden = level == index == len(structures.relations)
            h = self.levels[index](structures.relations[index - 1], h, weight, noise, hidden)
        return h

    def _uses(
        self, structures: Compressed | Unrolled, uses: Sequence[Tensor] | None
    ) -> Sequence[Tensor] | None:
        """The given weights, or where statistics need some, one for every structure.

        The last such weights are remembered, and with them what relations know of their spread.
        """
        if uses is not None or not self.training or self.architecture.normalisation == "none":
            return uses
        if self._counted is None or self._counted[0] is not structures:
            if isinstance(structures, Compressed):
                counts = np.bincount(structures.top, minlength=len(structures.hierarchy))
                top, unrolled = torch.from_numpy(counts), self.unroll(structures.hierarchy)
            else:
                top, unrolled = torch.ones(structures.relations[-1].n_parents), structures
            top = top.to(self.device, self.dtype)[:, None].repeat(1, self.n_models)
            with torch.inference_mode(False), torch.no_grad():
                self._counted = (structures, unrolled.uses(top.clone()))
        return self._counted[1]

    def restrict_to_seen(self, labels: Tensor, roles: Sequence[Tensor]) -> None:
        """Say which entry each label uses in each model, and which roles each model has met.

        `labels` (M, V + 1): row of the label table for every label and, last, for values that the
        vocabulary lacks; V is the shared entry of rare labels, V + 1 stands for unseen ones, which
        contribute nothing. `roles[l - 1]` (n(l), M): an unseen role
        contributes nothing either.
        """
        self.bottom.entries.copy_(labels)
        for module, seen in zip(self.levels[1:], roles, strict=True):
            assert isinstance(module, _Level)
            module.seen.copy_(seen)


def derive_seed(seed: int | Sequence[int], purpose: str) -> int:
    """A 63-bit seed for one purpose, from a seed or a tuple of them, independent of all others.

    >>> derive_seed(0, "weights") != derive_seed(0, "batches")
    True
    """
    parts = [seed] if isinstance(seed, int | np.integer) else list(seed)
    # The whole name counts, however long: cut, "epoch 100" and "epoch 101" would be one.
    words = [*(int(part) % 2**32 for part in parts), int.from_bytes(purpose.encode(), "little")]
    return int(np.random.SeedSequence(words).generate_state(1, np.uint64)[0] >> np.uint64(1))


class _Layers(nn.Module):
    """The layers after the first: Leaky ReLU, dropout and linear maps, on (M, n, d)."""

    offsets: Tensor

    def __init__(self, architecture: Architecture, level: int, n_models: int) -> None:
        super().__init__()
        sizes = architecture.layers[level]
        self.slope = architecture.slope
        self.dropout = architecture.dropout if level else 0.0
        self.is_top = level == len(architecture.roles)
        pairs = list(pairwise(sizes))
        self.weights = nn.ParameterList(
            [nn.Parameter(torch.empty(n_models, i, o)) for i, o in pairs]
        )
        self.biases = nn.ParameterList([nn.Parameter(torch.empty(n_models, o)) for _, o in pairs])
        self.register_buffer("offsets", torch.zeros(n_models))

    def forward(self, x: Tensor, noise: np.random.Generator | None, hidden: bool = False) -> Tensor:
        """The level's output, or with `hidden` the last activations before it."""
        last = len(self.weights) - 1
        for layer, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            x = self._activate(x, noise)
            if hidden and layer == last:
                return x
            x = torch.baddbmm(bias[:, None], x, weight)
        return x if self.is_top else self._activate(x, noise)

    def _activate(self, x: Tensor, noise: np.random.Generator | None) -> Tensor:
        x = nn.functional.leaky_relu(x, self.slope)
        if not self.training or not self.dropout or noise is None:
            return x
        # One shared draw, moved round the unit circle by each model's own offset: the masks of a
        # model are uniform and do not depend on which models train beside it.
        shared = torch.from_numpy(noise.random((x.shape[1], x.shape[2]))).to(x.device)
        kept = (shared + self.offsets[:, None, None]) % 1.0 >= self.dropout
        return x * kept / (1.0 - self.dropout)


class _Bottom(nn.Module):
    """f_0: a row of the label table, a linear map of the vectors, or their sum; then layers."""

    entries: Tensor

    def __init__(self, architecture: Architecture, n_models: int) -> None:
        super().__init__()
        self.depth = len(architecture.roles)
        size = architecture.layers[0][0]
        self.n_labels = architecture.labels
        self.table: nn.Parameter | None = None
        self.map: nn.Parameter | None = None
        if architecture.labels:
            # One row more than labels: the entry that rare labels share.
            self.table = nn.Parameter(torch.empty(n_models, architecture.labels + 1, size))
        if architecture.vectors:
            self.map = nn.Parameter(torch.empty(n_models, architecture.vectors, size))
        self.bias = nn.Parameter(torch.empty(n_models, size))
        self.norm = _Statistics(n_models, 1, architecture.vectors)
        self.normalised = architecture.normalisation == "batch" and architecture.vectors > 0
        self.layers = _Layers(architecture, 0, n_models)
        # The column after the last label is for code -1, a value that the vocabulary lacks: unseen.
        own = torch.arange(architecture.labels + 1).repeat(n_models, 1)
        own[:, -1] = architecture.labels + 1
        self.register_buffer("entries", own)

    def forward(self, unrolled: Unrolled, uses: Tensor | None) -> Tensor:
        n, n_models = unrolled.n_bottom, len(self.bias)
        x = self.bias[:, None].expand(n_models, n, -1)
        if unrolled.codes is not None and self.table is not None:
            x = x + self._lookup(unrolled.codes)
        if unrolled.vectors is not None and self.map is not None:
            weight, shift = self.map, None
            if self.normalised:
                a = unrolled.vectors[:, None, None].expand(n, 1, n_models, -1)
                if self.training and uses is not None:
                    mean, scale = self.norm(*_WeightedMoments.apply(a, uses), uses)  # type: ignore[no-untyped-call]
                else:
                    mean, scale = self.norm.running()
                weight = weight * scale[0, :, :, None]
                shift = torch.bmm((mean * scale)[0][:, None], self.map)
            x = x + torch.einsum("nk,mko->mno", unrolled.vectors, weight)
            x = x if shift is None else x - shift
        out: Tensor = self.layers(x, None)
        return out.transpose(0, 1).contiguous()

    def _lookup(self, codes: Tensor) -> Tensor:
        """Rows of the table for every object and model, (M, n, d); zero where unseen."""
        assert self.table is not None
        entries = self.entries[:, codes]
        rows = nn.functional.pad(self.table, (0, 0, 0, 1))  # the row of the unseen: zeros
        index = entries[:, :, None].expand(-1, -1, rows.shape[2])
        return torch.gather(rows, 1, index)


class _Level(nn.Module):
    """f_l for l > 0: aggregates by role, normalised or not, then the layers of the level."""

    seen: Tensor

    def __init__(self, architecture: Architecture, level: int, n_models: int) -> None:
        super().__init__()
        self.n_roles = architecture.roles[level - 1]
        below, size = architecture.layers[level - 1][-1], architecture.layers[level][0]
        self.below = below
        self.weight = nn.Parameter(torch.empty(n_models, self.n_roles * below, size))
        self.bias = nn.Parameter(torch.empty(n_models, size))
        self.normalised = architecture.normalisation == "batch"
        self.norm = _Statistics(n_models, self.n_roles, below)
        self.layers = _Layers(architecture, level, n_models)
        self.register_buffer("seen", torch.ones(self.n_roles, n_models, dtype=torch.bool))

    def forward(
        self,
        relation: UnrolledRelation,
        h: Tensor,
        uses: Tensor | None,
        noise: np.random.Generator | None,
        hidden: bool = False,
    ) -> Tensor:
        # (roles, M, d, out): the block of every role, zero where a model never met the role.
        weight = self.weight.view(len(self.bias), self.n_roles, self.below, -1).transpose(0, 1)
        weight = weight * self.seen[:, :, None, None]
        bias: Tensor = self.bias
        a = None if self._parts_first(relation) else self._aggregate(relation, h)
        if self.normalised:
            weight, bias = self._folded(weight, *self._statistics(relation, h, a, uses))
        if a is None:
            x = self._map_then_aggregate(relation, h, weight, bias)
        else:
            x = self._first_layer(relation, a, weight, bias)
        out: Tensor = self.layers(x, noise, hidden)
        return out.transpose(0, 1).contiguous()

    def _aggregate(self, relation: UnrolledRelation, h: Tensor) -> Tensor:
        """a_l = Σ_π z_π ⊗ Σ h_{l-1}: (n, roles, M, d), or (P, M, d) where few rows have parts."""
        flat = relation.by_role @ h.flatten(1)
        if relation.rows is not None:
            return flat.view(-1, *h.shape[1:])
        return flat.view(relation.n_parents, self.n_roles, *h.shape[1:])

    def _statistics(
        self, relation: UnrolledRelation, h: Tensor, a: Tensor | None, uses: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Mean and 1 / standard deviation of the aggregates, whether they are there or not."""
        if not self.training or uses is None:
            return self.norm.running()
        if a is None:
            moments = _moments_of_parts(h, relation.spread(uses))
        elif relation.rows is None:
            moments = _WeightedMoments.apply(a, uses)  # type: ignore[no-untyped-call]
        else:
            moments = _moments_of_rows(a, uses, relation.rows)
        mean, scale = self.norm(*moments, uses)
        return mean, scale

    def _first_layer(
        self, relation: UnrolledRelation, a: Tensor, weight: Tensor, bias: Tensor
    ) -> Tensor:
        if relation.rows is None:
            x = bias[:, None]
            # Unbound, not indexed: gradients of parts are joined once, not added to zeros.
            for part, block in zip(a.unbind(1), weight.unbind(), strict=True):
                x = torch.baddbmm(x, part.transpose(0, 1), block)
            return x
        parts = torch.split(a, relation.rows.lengths)
        mapped = torch.cat(
            [
                torch.bmm(part.transpose(0, 1), block)
                for part, block in zip(parts, weight.unbind(), strict=True)
            ],
            dim=1,
        )
        flat = relation.rows.gather @ mapped.transpose(0, 1).flatten(1)
        return (flat.view(relation.n_parents, *bias.shape) + bias).transpose(0, 1)

    def _map_then_aggregate(
        self, relation: UnrolledRelation, h: Tensor, weight: Tensor, bias: Tensor
    ) -> Tensor:
        """Σ_π R_π (H W_π), which equals Σ_π (R_π H) W_π."""
        mapped = torch.einsum("nmd,rmdo->rnmo", h, weight)
        flat = relation.joined @ mapped.flatten(0, 1).flatten(1)
        return (flat.view(relation.n_parents, *bias.shape) + bias).transpose(0, 1)

    def _parts_first(self, relation: UnrolledRelation) -> bool:
        """Whether mapping the parts before aggregating takes fewer multiplications."""
        n_roles, below, size = self.n_roles, self.below, self.weight.shape[2]
        per_row, per_part = size, n_roles * below
        if self.normalised and self.training:
            # Moments need the spread of the parts instead, which takes long to make where parts are
            # many; a GPU goes over its aggregates in less time than that.
            small = 4 * n_roles * relation.n_parts**2 <= relation.n_rows * below
            if self.weight.is_cuda or not small:
                return False
            per_row += MOMENTS
            per_part += n_roles * relation.n_parts
        after = below * (relation.n_entries + relation.n_rows * per_row)
        before = size * (relation.n_entries + relation.n_parts * per_part)
        return before < after

    def _folded(self, weight: Tensor, mean: Tensor, scale: Tensor) -> tuple[Tensor, Tensor]:
        """((a - mean) · scale) W + b as a W' + b': the aggregates are never rewritten."""
        weight = weight * scale[..., None]
        return weight, self.bias - (mean[..., None] * weight).sum((0, 2))


class _Statistics(nn.Module):
    """Weighted mean and variance of aggregates (n, roles, M, d), per model, and their running mean.

    Objects weigh as often as the model's training structures use them, so collapsed and original
    objects give the same statistics and no model's statistics see its test structures.
    """

    mean: Tensor
    variance: Tensor
    started: Tensor
    momentum = 0.1
    epsilon = 1e-5

    def __init__(self, n_models: int, n_roles: int, width: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(n_roles, n_models, width))
        self.register_buffer("variance", torch.ones(n_roles, n_models, width))
        self.register_buffer("started", torch.zeros(n_models, dtype=torch.bool))

    def forward(self, mean: Tensor, variance: Tensor, uses: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and 1 / standard deviation, (roles, M, d), of a batch, which is remembered."""
        with torch.no_grad():
            self._remember(mean, variance, uses.sum(0) > 0)
        return mean, (variance + self.epsilon).rsqrt()

    def running(self) -> tuple[Tensor, Tensor]:
        """Mean and 1 / standard deviation over training so far."""
        return self.mean, (self.variance + self.epsilon).rsqrt()

    def _remember(self, mean: Tensor, variance: Tensor, active: Tensor) -> None:
        """Move the running statistics of the models that have something in this batch."""
        # The first batch counts whole: an average that starts at 0 and 1 would take long to forget.
        step = torch.full_like(mean[0, :, :1], self.momentum)
        step.masked_fill_(~self.started[:, None], 1.0).mul_(active[:, None])
        self.mean.lerp_(mean, step)
        self.variance.lerp_(variance, step)
        self.started.logical_or_(active)


def _moments_of_parts(h: Tensor, spread: Tensor) -> tuple[Tensor, Tensor]:
    """Weighted mean and variance, (roles, M, d), of aggregates of parts (m, M, d), not made."""
    n_models, n_roles, _, m = spread.shape
    parts = h.transpose(0, 1)
    # rᵀH and FH of every role at once.
    sums = torch.bmm(spread.flatten(1, 2), parts).view(n_models, n_roles, 1 + m, -1)
    variance = sums[:, :, 1:].square().sum(2)
    return sums[:, :, 0].transpose(0, 1), variance.transpose(0, 1)


def _moments_of_rows(a: Tensor, uses: Tensor, rows: Rows) -> tuple[Tensor, Tensor]:
    """Weighted mean and variance of aggregates (P, M, d) whose missing rows are zero."""
    share = (uses / uses.sum(0).clamp_min(torch.finfo(uses.dtype).tiny))[rows.parents, :, None]
    parts, shares = (torch.split(each, rows.lengths) for each in (a, share))
    mean = torch.stack([(part * w).sum(0) for part, w in zip(parts, shares, strict=True)])
    present = torch.stack([w.sum(0) for w in shares])
    squares = [
        ((part - centre).square() * w).sum(0)
        for part, centre, w in zip(parts, mean.unbind(), shares, strict=True)
    ]
    return mean, torch.stack(squares) + (1 - present) * mean.square()


class _WeightedMoments(torch.autograd.Function):
    """Weighted mean and variance over the objects, without keeping anything of their size."""

    @staticmethod
    def forward(ctx: Any, a: Tensor, uses: Tensor) -> tuple[Tensor, Tensor]:
        share = uses / uses.sum(0).clamp_min(torch.finfo(uses.dtype).tiny)  # (n, M)
        # Products and sums in the layout of `a`: an einsum would rewrite it model by model.
        scratch = a * share[:, None, :, None]
        mean = scratch.sum(0)
        deviation = torch.sub(a, mean, out=scratch)
        variance = deviation.square_().mul_(share[:, None, :, None]).sum(0)
        ctx.save_for_backward(a, share, mean)
        return mean, variance

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        a, share, mean = ctx.saved_tensors
        g_mean, g_variance = gradients
        # d variance / d mean vanishes: the weighted deviations sum to zero. What is left,
        # (2 (a - mean) g_variance + g_mean) share, is linear in a.
        slope = 2 * g_variance
        out = torch.addcmul(g_mean - slope * mean, a, slope)
        return out.mul_(share[:, None, :, None]), None
