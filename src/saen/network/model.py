"""`SAEN`: shift by role, aggregate by sum, extract with an MLP, for many networks at once.

Every parameter has a leading axis of models: M networks of one shape run over one shared hierarchy,
and one network is an ensemble of one. Representations of level l have shape (n_l, M, d_l).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from saen._util.arrays import Array
from saen._util.seeds import derive_seed
from saen.data.compression import Compressed
from saen.data.content_hash import mix, value_keys
from saen.data.hierarchy import Hierarchy, Relation
from saen.errors import InputError
from saen.network.aggregation import Aggregation, RunningMoments, weighted_moments
from saen.network.architecture import Architecture, check_state
from saen.network.devices import compute_after_fork
from saen.network.tensors import HierarchyTensors, RelationTensors

MOMENTS_COST = 30
"""Multiplications that take as long as one aggregate's share of computing the moments."""


Seen = tuple[Tensor, Sequence[Tensor]]
"""Arguments of `SAEN.restrict_to_seen`."""
Draw = Callable[[int], Tensor]
"""Draws so many numbers between 0 and 1 for each of some objects, (n, units)."""


class SAEN(nn.Module):
    """M Shift Aggregate Extract Networks of one architecture.

    Call it with a `Hierarchy` for the outputs of its top level, shape (n_L, M, outputs), or with a
    `Compressed` for those of the original objects, in their order.

    - `architecture`: the shape of every network;
    - `seeds`: one per network, an integer or a tuple of integers;
    - `dtype`: floating-point type of the parameters;
    - `schema`: a hierarchy with the names of labels and roles, by default their numbers. The first
      weights of a label or role depend on the seed and its name;
    - `seen`: which of them each network sees in its training, see `restrict_to_seen`; by default
      all.

    Raises `InputError` without seeds, or when called with a hierarchy that does not fit.

    >>> from saen import Graphs
    >>> from saen.decompositions import Ego
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
        schema: Hierarchy | None = None,
        seen: Seen | None = None,
    ) -> None:
        super().__init__()
        compute_after_fork()
        self.architecture = architecture
        self.n_models: int = len(seeds)
        if not seeds:
            raise InputError("a network needs at least one seed")
        self.depth: int = len(architecture.roles)
        levels = [Level(architecture, level, self.n_models) for level in range(1, self.depth + 1)]
        self.levels = nn.ModuleList([BottomLevel(architecture, self.n_models), *levels])
        self.to(dtype)
        if not self.bottom.bias.is_meta:
            self._initialise(seeds, schema, seen)
        self._cached: tuple[Hierarchy | Compressed, HierarchyTensors] | None = None

    @classmethod
    def from_state(cls, architecture: Architecture, state: Mapping[str, Array]) -> SAEN:
        """Networks in evaluation mode with the parameters that `state_dict` gave, as arrays.

        Names, shapes and types are compared before any memory is used. Raises `InputError`.

        Parameters
        ----------
        architecture : Architecture
            Sizes of the networks.
        state : Mapping[str, Array]
            Arrays by name, as `state_dict` gives them.

        Examples
        --------
        >>> network = SAEN(Architecture(3, 0, (2,), ((8,), (8, 1))), seeds=[0, 1])
        >>> arrays = {key: tensor.numpy() for key, tensor in network.state_dict().items()}
        >>> SAEN.from_state(network.architecture, arrays).n_models
        2
        """
        check_state(architecture, state)
        tensors = {key: torch.from_numpy(array.copy()) for key, array in state.items()}
        bias = tensors["levels.0.bias"]
        with torch.device("meta"):
            network = cls(architecture, range(len(bias)), dtype=bias.dtype)
        network.load_state_dict(tensors, assign=True)
        return network.eval()

    @torch.no_grad()
    def _initialise(
        self, seeds: Sequence[int | Sequence[int]], schema: Hierarchy | None, seen: Seen | None
    ) -> None:
        """Draw the weights of labels and roles by their names: others have no influence on them."""
        for place, module in enumerate(m for m in self.modules() if isinstance(m, LaterLayers)):
            draws = [derive_seed(seed, f"dropout {place}") / 2**63 for seed in seeds]
            module.offsets.copy_(torch.tensor(draws))
        if seen is not None:
            self.restrict_to_seen(*seen)
        for name, parameter in self.named_parameters():
            if parameter.ndim < 3:
                parameter.zero_()
                continue
            _, n_rows, size = parameter.shape
            rows, fan_in = np.arange(n_rows, dtype=np.uint64), np.full(len(seeds), float(n_rows))
            if parameter is self.bottom.table:
                rows = _label_keys(n_rows, schema)
                # A row of the label table is the only input of its object: fan-in one.
                # Beside vectors it corrects what they say, and starts at zero.
                fan_in[:] = 3.0 if self.bottom.map is None else np.inf
            for number in range(1, self.depth + 1):
                level = self.level(number)
                if parameter is level.weight:
                    relation = None if schema is None else schema.relations[number - 1]
                    rows = _role_keys(level, relation)
                    fan_in[:] = np.maximum(level.seen.sum(0).numpy(), 1) * level.below
            salts = [derive_seed(seed, f"weights {name}") for seed in seeds]
            units = np.array(salts, dtype=np.uint64)[:, None, None] + np.arange(
                size, dtype=np.uint64
            )
            draw = (mix(mix(units) ^ mix(rows)[:, None]) >> np.uint64(11)) * 2.0**-52 - 1.0
            bound = np.sqrt(3.0 / fan_in)[:, None, None]
            parameter.copy_(torch.from_numpy(draw * bound))

    @property
    def bottom(self) -> BottomLevel:
        """f_0, the network of the bottom level."""
        module = self.levels[0]
        assert isinstance(module, BottomLevel)
        return module

    def level(self, level: int) -> Level:
        """f_l, the network of a level 1 … L."""
        module = self.levels[level]
        assert isinstance(module, Level)
        return module

    @property
    def device(self) -> torch.device:
        """The device of the parameters."""
        return next(self.parameters()).device

    @property
    def dtype(self) -> torch.dtype:
        """The floating-point type of the parameters."""
        return next(self.parameters()).dtype

    def _apply(self, fn: Any, recurse: bool = True) -> SAEN:
        self._cached = None  # built for another device or dtype
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        return self

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_cached": None}

    def to_tensors(self, data: Hierarchy | Compressed) -> HierarchyTensors:
        """The data as tensors on the device of the parameters; the last result is kept."""
        if self._cached is None or self._cached[0] is not data:
            self.architecture.check_fits(data.hierarchy if isinstance(data, Compressed) else data)
            with torch.inference_mode(False):
                tensors = HierarchyTensors(data, dtype=self.dtype, device=self.device)
            self._cached = (data, tensors)
        return self._cached[1]

    def forward(
        self,
        data: Hierarchy | Compressed | HierarchyTensors,
        uses: Sequence[Tensor] | None = None,
        noise: np.random.Generator | None = None,
        level: int | None = None,
    ) -> Tensor:
        """Outputs of the top level, or the representations h_l of a `level`.

        Parameters
        ----------
        data : Hierarchy | Compressed | HierarchyTensors
            The data to run over.
        uses : Sequence[Tensor] | None, default=None
            w_l, the weight of every object in each model's normalization statistics, one tensor
            (n_l, M) per level; read in training mode only. None: every example of the top counts
            once.
        noise : np.random.Generator | None, default=None
            Draws the dropout masks in training mode; no dropout without it.
        level : int | None, default=None
            The level whose representations to return, (n_l, M, d_l). For the top level they are the
            inputs of its output layer.

        Raises
        ------
        InputError
            For data that does not fit, or a level that does not exist.
        """
        compute_after_fork()
        if isinstance(data, Compressed):
            unique_h = self.forward(self.to_tensors(data), uses, noise, level)
            unique = data.unique_of(data.hierarchy.depth if level is None else level)
            return unique_h[torch.from_numpy(unique.astype(np.int64)).to(self.device)]
        tensors = self.to_tensors(data) if isinstance(data, Hierarchy) else data
        if tensors.device != self.device or tensors.dtype != self.dtype:
            raise InputError(
                f"the network is {self.dtype} on {self.device}, the hierarchy {tensors.dtype} "
                f"on {tensors.device}: convert it with network.to_tensors(hierarchy)"
            )
        last = self.depth if level is None else level
        if not 0 <= last <= self.depth:
            raise InputError(f"levels are 0 … {self.depth}, not {level}")
        if uses is None and self.training and self.architecture.normalization != "none":
            uses = tensors.default_uses(self.n_models)
        w: Sequence[Tensor | None] = [None] * (self.depth + 1) if uses is None else uses
        h: Tensor = self.bottom(tensors, w[0])
        for index in range(1, last + 1):
            hidden = level == index == self.depth
            draw = None
            if noise is not None and self.training and self.architecture.dropout:
                draw = partial(_draw, noise, tensors.keys[index])
            h = self.levels[index](tensors.relations[index - 1], h, w[index], draw, hidden)
        return h

    def restrict_to_seen(self, labels: Tensor, roles: Sequence[Tensor]) -> None:
        """Set which table entry each label uses in each model, and which roles it has seen.

        Parameters
        ----------
        labels : Tensor
            The entry of every label and, last, of values outside the vocabulary, (M, V + 1); V is
            the entry that rare labels share, V + 1 means unseen: such labels contribute nothing.
        roles : Sequence[Tensor]
            Per relation, whether each model has seen the role, (n(l), M); others contribute
            nothing.
        """
        self.bottom.entries.copy_(labels)
        for level, seen in enumerate(roles, start=1):
            self.level(level).seen.copy_(seen)


def _draw(noise: np.random.Generator, keys: NDArray[np.uint64], units: int) -> Tensor:
    """Numbers that depend on what each object is, and not on those beside it."""
    salt = noise.integers(1 << 63, dtype=np.uint64)
    columns = mix(salt + np.arange(units, dtype=np.uint64))
    return torch.from_numpy((mix(keys[:, None] ^ columns) >> np.uint64(11)) * 2.0**-53)


def _label_keys(n_rows: int, schema: Hierarchy | None) -> NDArray[np.uint64]:
    """A number for every label, and last for the entry that rare labels share."""
    known = None if schema is None else schema.attributes.vocabulary
    labels = range(n_rows - 1) if known is None else known
    keys = [value_keys(list(labels), "label"), value_keys([""], "rare")]
    return np.concatenate(keys)[:, 0] if n_rows > 1 else keys[1][:, 0]


def _role_keys(level: Level, relation: Relation | None) -> NDArray[np.uint64]:
    """A number for every pair of a role and a unit below."""
    roles = tuple(map(str, range(level.n_roles))) if relation is None else relation.alphabet
    units = mix(np.arange(level.below, dtype=np.uint64))
    return (value_keys(list(roles), "role")[:, :1] + units).reshape(-1)


class BottomLevel(nn.Module):
    """f_0: a row of the label table, a linear map of the vectors, or their sum; then layers."""

    entries: Tensor

    def __init__(self, architecture: Architecture, n_models: int) -> None:
        super().__init__()
        size = architecture.layers[0][0]
        self.table: nn.Parameter | None = None
        self.map: nn.Parameter | None = None
        if architecture.labels:
            # One row more than labels: the entry that rare labels share.
            self.table = nn.Parameter(torch.empty(n_models, architecture.labels + 1, size))
        if architecture.vectors:
            self.map = nn.Parameter(torch.empty(n_models, architecture.vectors, size))
        self.bias: nn.Parameter = nn.Parameter(torch.empty(n_models, size))
        self.norm: RunningMoments = RunningMoments(0, n_models, 1, architecture.vectors)
        self.normalised: bool = architecture.normalization == "batch" and architecture.vectors > 0
        self.layers: LaterLayers = LaterLayers(architecture, 0, n_models)
        # The last column is for code -1, a value outside the vocabulary: unseen.
        entries = torch.arange(architecture.labels + 1).repeat(n_models, 1)
        entries[:, -1] = architecture.labels + 1
        self.register_buffer("entries", entries)

    def forward(self, tensors: HierarchyTensors, uses: Tensor | None) -> Tensor:
        """h_0, (n_0, M, d_0)."""
        n_models = len(self.bias)
        x = self.bias[:, None].expand(n_models, tensors.n_bottom, -1)
        if tensors.codes is not None and self.table is not None:
            x = x + self._lookup(self.table, tensors.codes)
        if tensors.vectors is not None and self.map is not None:
            x = x + self._project(self.map, tensors.vectors, uses)
        h: Tensor = self.layers(x, None)
        return h.transpose(0, 1).contiguous()

    def _lookup(self, table: Tensor, codes: Tensor) -> Tensor:
        """Rows of the table for every object and model, (M, n, d); zero where unseen."""
        rows = nn.functional.pad(table, (0, 0, 0, 1))  # the entry of unseen labels: zeros
        index = self.entries[:, codes][:, :, None].expand(-1, -1, rows.shape[2])
        return torch.gather(rows, 1, index)

    def _project(self, weight: Tensor, vectors: Tensor, uses: Tensor | None) -> Tensor:
        """The linear map of the vectors, normalised or not, (M, n, d)."""
        if not self.normalised:
            return torch.einsum("nk,mko->mno", vectors, weight)
        if self.training and uses is not None:
            rows = vectors[:, None, None].expand(-1, 1, len(weight), -1)
            mean, scale = self.norm(weighted_moments(rows, uses), uses)
        else:
            mean, scale = self.norm.running()
        shift = torch.bmm((mean * scale)[0][:, None], weight)
        return torch.einsum("nk,mko->mno", vectors, weight * scale[0, :, :, None]) - shift


class Level(nn.Module):
    """f_l for l > 0 with the aggregation before it: Eqs. 1 and 2 of the paper."""

    seen: Tensor

    def __init__(self, architecture: Architecture, level: int, n_models: int) -> None:
        super().__init__()
        self.n_roles: int = architecture.roles[level - 1]
        self.below, size = architecture.layers[level - 1][-1], architecture.layers[level][0]
        self.weight: nn.Parameter = nn.Parameter(
            torch.empty(n_models, self.n_roles * self.below, size)
        )
        self.bias: nn.Parameter = nn.Parameter(torch.empty(n_models, size))
        self.normalised: bool = architecture.normalization == "batch"
        self.norm: RunningMoments = RunningMoments(level, n_models, self.n_roles, self.below)
        self.layers: LaterLayers = LaterLayers(architecture, level, n_models)
        self.register_buffer("seen", torch.ones(self.n_roles, n_models, dtype=torch.bool))

    def forward(
        self,
        relation: RelationTensors,
        h: Tensor,
        uses: Tensor | None,
        draw: Draw | None,
        hidden: bool = False,
    ) -> Tensor:
        """h_l from h_{l-1}, (n_l, M, d_l); with `hidden` the input of the last layer."""
        aggregation = self.aggregation(relation)
        # Eq. 1: a_l(s) = Σ_π Σ_{s' ∈ R_{l,π}⁻¹(s)} z_π ⊗ h_{l-1}(s')
        a = aggregation.aggregate(h)
        statistics = None
        if self.normalised and self.training and uses is not None:
            statistics = self.norm(aggregation.moments(a, uses), uses)
        # Eq. 2: h_l(s) = f_l(a_l(s)), the first layer and then the others
        x = aggregation.linear(a, *self.first_layer(statistics))
        h = self.layers(x, draw, hidden)
        return h.transpose(0, 1).contiguous()

    def first_layer(self, statistics: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
        """W by role, (roles, M, d, out), and b, (M, out), for aggregates that are not normalised.

        ((a - mean) · scale) W + b is a W' + b': normalization is folded into the weights, with
        these `statistics` (mean and scale) or by default the running ones. The weights of roles
        that a model has not seen are zero.
        """
        weight = self.weight.view(len(self.bias), self.n_roles, self.below, -1).transpose(0, 1)
        weight = weight * self.seen[:, :, None, None]
        if not self.normalised:
            return weight, self.bias
        mean, scale = statistics or self.norm.running()
        weight = weight * scale[..., None]
        return weight, self.bias - (mean[..., None] * weight).sum((0, 2))

    def typical(self) -> Tensor | None:
        """The mean aggregate of the training objects, (roles, M, d), where normalization knows it.

        It is zero for roles that a model has not seen.
        """
        if not self.normalised:
            return None
        return self.norm.running()[0] * self.seen[:, :, None]

    def aggregation(self, relation: RelationTensors) -> Aggregation:
        """The way to aggregate over a relation that takes fewer multiplications."""
        size, with_moments = self.weight.shape[2], self.normalised and self.training
        per_row, per_part = size, self.n_roles * self.below
        if with_moments:
            per_row += MOMENTS_COST
            per_part += self.n_roles * relation.n_parts
        aggregate_first = self.below * (relation.n_entries + relation.n_rows * per_row)
        project_first = size * (relation.n_entries + relation.n_parts * per_part)
        # Projecting first needs the covariance of the part counts, which takes long to compute
        # where parts are many; a GPU computes the moments of the aggregates in less time than that.
        n_covariances = self.n_roles * relation.n_parts**2
        too_many = 4 * n_covariances > relation.n_rows * self.below
        if project_first >= aggregate_first or (
            with_moments and (too_many or self.weight.device.type != "cpu")
        ):
            return relation.aggregate_first
        return relation.project_first


class LaterLayers(nn.Module):
    """The layers of f_l after the first: Leaky ReLU, dropout and linear maps, on (M, n, d)."""

    offsets: Tensor

    def __init__(self, architecture: Architecture, level: int, n_models: int) -> None:
        super().__init__()
        self.slope: float = architecture.negative_slope
        self.dropout: float = architecture.dropout if level else 0.0
        self.is_top: bool = level == len(architecture.roles)
        self.ends_linear: bool = self.is_top and not architecture.output_activation
        pairs = list(pairwise(architecture.layers[level]))
        self.weights = nn.ParameterList(
            [nn.Parameter(torch.empty(n_models, i, o)) for i, o in pairs]
        )
        self.biases = nn.ParameterList([nn.Parameter(torch.empty(n_models, o)) for _, o in pairs])
        self.register_buffer("offsets", torch.zeros(n_models))

    def forward(self, x: Tensor, draw: Draw | None, hidden: bool = False) -> Tensor:
        """The level's output, or with `hidden` the input of its last layer."""
        last = len(self.weights) - 1
        for layer, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            x = self.activate(x, draw)
            if hidden and layer == last:
                return x
            x = torch.baddbmm(bias[:, None], x, weight)
        if self.ends_linear:
            return x
        return self.activate(x, None if self.is_top else draw)  # outputs are never dropped

    def activate(self, x: Tensor, draw: Draw | None) -> Tensor:
        """Leaky ReLU, then in training dropout."""
        x = nn.functional.leaky_relu(x, self.slope)
        if not self.training or not self.dropout or draw is None:
            return x
        # All models share one draw, rotated on the unit circle by each model's own offset: the
        # masks of a model are uniform and do not depend on which models train beside it.
        shared = draw(x.shape[2]).to(x.device)
        mask = (shared + self.offsets[:, None, None]) % 1.0 >= self.dropout
        return x * mask / (1.0 - self.dropout)
