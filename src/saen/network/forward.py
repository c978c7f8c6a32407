"""The forward pass in numpy: what trained networks compute for new data on a CPU.

The same numbers as `SAEN` in evaluation mode, up to rounding. It needs no torch, and nothing to be
converted: on small data it is ten times as fast, on large ones about as fast.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from saen._util.arrays import Array, offsets
from saen.data.hierarchy import Attributes, Hierarchy, Relation
from saen.network.architecture import EPSILON, Architecture, check_state

Floats = NDArray[np.floating[Any]]
MAX_ACTIVATIONS = {"cpu": 1 << 25, "cuda": 1 << 27}
"""Activations of one pass over a hierarchy that is only read, on a device."""
MAX_PRODUCT = 1 << 18
"""Multiplications up to which OpenBLAS uses one thread: more wait for each other on busy cores."""
MAX_ROW_ENTRIES = 1 << 12
"""Entries of a row above which it is summed in float64: float32 loses a digit per factor of ten."""


class TrainedNetworks:
    """M networks of one architecture, by the parameters that `SAEN.state_dict` gave, as arrays.

    Raises `InputError` where names, shapes or types of the parameters are wrong.

    >>> from saen import SAEN, Ego, Graphs
    >>> path = Ego().decompose(Graphs.from_edge_lists([[(0, 1), (1, 2)]]))
    >>> network = SAEN(Architecture.over(path, layers=[[4], [4], [2]]), seeds=[0, 1, 2])
    >>> TrainedNetworks.of(network).outputs(path).shape
    (1, 3, 2)
    """

    def __init__(self, architecture: Architecture, state: Mapping[str, Array]) -> None:
        check_state(architecture, state)
        self.architecture, self.state = architecture, state
        self.n_models = len(state["levels.0.bias"])
        self.dtype = state["levels.0.bias"].dtype
        self._levels = [self._level(level) for level in range(1, len(architecture.layers))]

    @classmethod
    def of(cls, network: Any) -> TrainedNetworks:
        """The parameters of a `SAEN`, which are copied only if they are not on the CPU."""
        tensors = network.state_dict()
        return cls(network.architecture, {key: t.cpu().numpy() for key, t in tensors.items()})

    def outputs(
        self,
        hierarchy: Hierarchy,
        level: int | None = None,
        *,
        budget: int = MAX_ACTIVATIONS["cpu"],
    ) -> Floats:
        """Outputs of the top level, (n_L, M, outputs), or the representations h_l of a `level`.

        For the top level these are the inputs of its output layer. Outputs are computed in several
        passes if one would need more than `budget` activations.
        """
        self.architecture.check_fits(hierarchy)
        # What is too large is infinite, and found by those who use it.
        with np.errstate(all="ignore"):
            if level is not None:
                return self._forward(hierarchy, level)
            parts = passes(hierarchy, self.n_models * self.architecture.width, budget)
            results = [self._forward(part, None) for part in parts]
            return results[0] if len(results) == 1 else np.concatenate(results)

    def _forward(self, hierarchy: Hierarchy, level: int | None) -> Floats:
        top = len(self._levels)
        h = self._extract(0, self._bottom(hierarchy.attributes))
        for number in range(1, (top if level is None else level) + 1):
            x = self._levels[number - 1].apply(hierarchy.relations[number - 1], h)
            h = self._extract(number, x, hidden=number == level == top)
        return h

    def _bottom(self, attributes: Attributes) -> Floats:
        """The first layer of f_0: a row of the label table, a map of the vectors, or their sum."""
        state, n_models = self.state, self.n_models
        x = np.tile(state["levels.0.bias"], (len(attributes), 1, 1))
        if attributes.codes is not None and "levels.0.table" in state:
            entries = state["levels.0.entries"][:, attributes.codes].T  # the last for code -1
            known = np.minimum(entries, self.architecture.labels)
            x += state["levels.0.table"][np.arange(n_models), known] * (entries == known)[..., None]
        if attributes.vectors is not None and "levels.0.map" in state:
            weight = state["levels.0.map"]
            if self.architecture.normalisation == "batch":
                mean, scale = (each[:, 0] for each in self._moments(0))
                weight = weight * scale[..., None]
                x -= np.matmul(mean[:, None], weight)[:, 0]
            vectors = attributes.vectors.astype(self.dtype)[:, None]
            side_by_side = weight.swapaxes(0, 1).reshape(1, vectors.shape[2], -1)
            x += _matmul(vectors, side_by_side).reshape(x.shape)
        return x

    def _level(self, level: int) -> _FirstLayer:
        """The first layer of f_l, with normalisation and unseen roles folded into its weights."""
        state, key = self.state, f"levels.{level}"
        seen, bias = state[f"{key}.seen"].T, state[f"{key}.bias"]
        weight = state[f"{key}.weight"]
        weight = weight.reshape(*seen.shape, -1, weight.shape[2]) * seen[..., None, None]
        if self.architecture.normalisation == "batch":
            mean, scale = self._moments(level)
            weight = weight * scale[..., None]
            bias = bias - (mean[..., None] * weight).sum((1, 2))
        return _FirstLayer(weight, bias)

    def _moments(self, level: int) -> tuple[Floats, Floats]:
        """Running mean and 1 / standard deviation of a_l, (M, roles, d)."""
        mean, variance = (
            self.state[f"levels.{level}.norm.{key}"].swapaxes(0, 1) for key in ("mean", "variance")
        )
        return mean, 1 / np.sqrt(variance + self.dtype.type(EPSILON))

    def _extract(self, level: int, x: Floats, *, hidden: bool = False) -> Floats:
        """The layers of f_l after the first, (n, M, d); with `hidden` the input of the last."""
        sizes, top = self.architecture.layers[level], level == len(self._levels)
        last = len(sizes) - 2
        for layer in range(last + 1):
            x = self._activate(x)
            if hidden and layer == last:
                return x
            key = f"levels.{level}.layers"
            x = _matmul(x, self.state[f"{key}.weights.{layer}"])
            x += self.state[f"{key}.biases.{layer}"]
        return x if top and not self.architecture.output_activation else self._activate(x)

    def _activate(self, x: Floats) -> Floats:
        """Leaky ReLU, in place."""
        slope = self.dtype.type(self.architecture.slope)
        (np.maximum if slope <= 1 else np.minimum)(x, slope * x, out=x)
        return x


@dataclass(frozen=True)
class _FirstLayer:
    """x = Σ_π (R_{l,π} H) W_π + b: Eq. 1 and the first layer of Eq. 2."""

    weight: Floats  # (M, roles, d, out)
    bias: Floats  # (M, out)

    def apply(self, relation: Relation, h: Floats) -> Floats:
        """x, (n, M, out), from H = h_{l-1}, (m, M, d), with the fewer multiplications."""
        _, n_roles, d, size = self.weight.shape
        entries = relation.n_entries
        project = size * (entries + relation.n_parts * n_roles * d)
        # At most: fewer where parents have no parts in some roles.
        n_rows = min(entries, n_roles * relation.n_parents)
        aggregate = d * (entries + n_rows * size)
        x = (self._project if project <= aggregate else self._aggregate)(relation, h)
        x += self.bias
        return x

    def _project(self, relation: Relation, h: Floats) -> Floats:
        """Σ_π R_{l,π} (H W_π): the layer is applied to the parts, which are fewer."""
        n_models, n_roles, d, size = self.weight.shape
        weight = self.weight.swapaxes(1, 2).reshape(n_models, d, n_roles * size)
        mapped = _matmul(h, weight).reshape(len(h), n_models, n_roles, size).swapaxes(1, 2)
        columns = relation.parts.astype(np.int64) * n_roles + relation.roles
        shape = (relation.n_parents, len(h) * n_roles)
        counts = relation.multiplicity.astype(h.dtype)
        matrix = sparse.csr_array((counts, columns, relation.indptr), shape=shape)
        return _product(matrix, mapped.reshape(shape[1], n_models, size))

    def _aggregate(self, relation: Relation, h: Floats) -> Floats:
        """Σ_π (R_{l,π} H) W_π, with only the rows of (role, parent) pairs that have parts."""
        n_models, n_roles, _, size = self.weight.shape
        n = relation.n_parents
        pairs = relation.roles.astype(np.int64) * n + relation.parents
        used = np.zeros(n_roles * n, dtype=np.bool_)
        used[pairs] = True
        rows = np.cumsum(used) - 1
        counts = relation.multiplicity.astype(h.dtype)
        shape = (int(rows[-1]) + 1 if len(rows) else 0, len(h))
        a = _product(sparse.csr_array((counts, (rows[pairs], relation.parts)), shape=shape), h)
        ends = offsets(used.reshape(n_roles, n).sum(axis=1))
        parents = np.flatnonzero(used) % max(n, 1)
        x = np.zeros((n, n_models, size), h.dtype)
        for role in range(n_roles):
            own = slice(ends[role], ends[role + 1])
            x[parents[own]] += _matmul(a[own], self.weight[:, role])
        return x


def passes(hierarchy: Hierarchy, per_object: int, budget: int) -> Iterator[Hierarchy]:
    """The hierarchy, or its examples in as many parts as keep to a budget of activations."""
    n_passes = -(-sum(hierarchy.sizes) * per_object // budget)
    if n_passes <= 1 or len(hierarchy) <= 1:
        yield hierarchy
        return
    for part in np.array_split(np.arange(len(hierarchy)), min(n_passes, len(hierarchy))):
        yield hierarchy[part]


def _matmul(x: Floats, weight: Floats) -> Floats:
    """Every model's own product, (n, M, d) with (M, d, out) to (n, M, out)."""
    n, (n_models, d, size) = len(x), weight.shape
    out = np.empty((n, n_models, size), x.dtype)
    block = max(MAX_PRODUCT // (d * size), 1)
    whole = n - n % block
    for rows, length in ((slice(whole), block), (slice(whole, n), n - whole)):
        if length:
            np.matmul(
                x[rows].reshape(-1, length, n_models, d).swapaxes(1, 2),
                weight,
                out=out[rows].reshape(-1, length, n_models, size).swapaxes(1, 2),
            )
    return out


def _product(matrix: sparse.csr_array, dense: Floats) -> Floats:
    """Sums of rows of (m, M, d)."""
    rows = dense.reshape(len(dense), dense.shape[1] * dense.shape[2])
    if np.diff(matrix.indptr).max(initial=0) > MAX_ROW_ENTRIES:
        rows = rows.astype(np.float64)
    product: Floats = (matrix @ rows).astype(dense.dtype, copy=False)
    return product.reshape(matrix.shape[0], *dense.shape[1:])
