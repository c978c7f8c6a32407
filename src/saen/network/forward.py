"""The forward pass in numpy: what trained networks compute for new data on a CPU.

The same numbers as `SAEN` in evaluation mode, up to rounding. It needs no torch, and nothing to be
converted: on small data it is ten times as fast, on large ones about as fast.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from saen._util.arrays import Array, Ints, offsets
from saen.data.hierarchy import Attributes, Hierarchy, Relation
from saen.network.architecture import (
    EPSILON,
    Architecture,
    check_state,
    max_constant_deviation,
)

Floats = NDArray[np.floating[Any]]
MAX_ACTIVATIONS = {"cpu": 1 << 23, "cuda": 1 << 27}
"""Activations of one pass over a hierarchy that is only read, on a device."""
MAX_PRODUCT = 1 << 18
"""Multiplications up to which OpenBLAS uses one thread: more wait for each other on busy cores."""
MAX_BLOCK = 1 << 18
"""Activations that are computed at a time, so that they stay in the cache."""
MAX_TABLE = 1 << 17
"""Numbers of a table of what all labels contribute, which is made once, whatever the data."""
MAX_ROW_ENTRIES = 1 << 12
"""Entries of a row above which it is summed in float64: float32 loses a digit per factor of ten."""


class TrainedNetworks:
    """M networks of one architecture, by the parameters that `SAEN.state_dict` gave, as arrays.

    Raises `InputError` where names, shapes or types of the parameters are wrong.

    >>> from saen import Graphs
    >>> from saen.decompositions import Ego
    >>> from saen.network import SAEN
    >>> path = Ego().decompose(Graphs.from_edge_lists([[(0, 1), (1, 2)]]))
    >>> network = SAEN(Architecture.over(path, layers=[[4], [4], [2]]), seeds=[0, 1, 2])
    >>> TrainedNetworks.of(network).outputs(path).shape
    (1, 3, 2)
    """

    def __init__(self, architecture: Architecture, state: Mapping[str, Array]) -> None:
        check_state(architecture, state)
        self.architecture, self.state = architecture, state
        self.n_models: int = len(state["levels.0.bias"])
        self.dtype: np.dtype[Any] = state["levels.0.bias"].dtype
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
        top, attributes = len(self._levels), hierarchy.attributes
        table = None if level == 0 else self._label_table
        h = self._extract(0, self._bottom(attributes)) if table is None else table
        for number in range(1, (top if level is None else level) + 1):
            layer, relation = self._levels[number - 1], hierarchy.relations[number - 1]
            labels = attributes.codes if number == 1 and table is not None else None
            mapped = table
            if labels is None:
                mapped = layer.mapped(h) if layer.projects(relation) else None
            results = []
            for start, stop in self._blocks(relation, h if mapped is None else mapped):
                own = relation.span(start, stop)
                if mapped is None:
                    x = layer.aggregate(own, h)
                else:
                    x = layer.sums(own, own.parts if labels is None else labels[own.parts], mapped)
                results.append(self._extract(number, x, hidden=number == level == top))
            h = results[0] if len(results) == 1 else np.concatenate(results)
        return h

    def _blocks(self, relation: Relation, of_parts: Floats) -> Iterator[tuple[int, int]]:
        """Spans of parents whose activations the cache holds: at least one."""
        n = max(relation.n_parents, 1)
        rows = max(MAX_BLOCK // (self.n_models * self.architecture.width), 1)
        # Where rows are summed in float64, what is known of all parts is converted once.
        if of_parts.size > MAX_BLOCK and _longest(relation.indptr) > MAX_ROW_ENTRIES:
            rows = n
        return ((start, min(start + rows, relation.n_parents)) for start in range(0, n, rows))

    @cached_property
    def _label_table(self) -> Floats | None:
        """What parts add to the first layer of f_1 by label and role, (labels, roles, M, out).

        The last label is the unseen one, where the code -1 finds it. None where labels are not all
        that is known of the bottom objects, or too many.
        """
        if "levels.0.table" not in self.state or "levels.0.map" in self.state:
            return None
        entries, weight = self.state["levels.0.entries"], self._levels[0].weight
        if entries.shape[1] * weight[..., 0, :].size > MAX_TABLE:
            return None
        x = np.tile(self.state["levels.0.bias"], (entries.shape[1], 1, 1))
        h = self._extract(0, self._add_labels(x, np.arange(entries.shape[1])))
        return self._levels[0].mapped(h)

    def _bottom(self, attributes: Attributes) -> Floats:
        """The first layer of f_0: a row of the label table, a map of the vectors, or their sum."""
        state = self.state
        x = np.tile(state["levels.0.bias"], (len(attributes), 1, 1))
        if attributes.codes is not None and "levels.0.table" in state:
            x = self._add_labels(x, attributes.codes)
        if attributes.vectors is not None and "levels.0.map" in state:
            weight = state["levels.0.map"]
            if self.architecture.normalization == "batch":
                mean, scale = (each[:, 0] for each in self._moments(0))
                weight = weight * scale[..., None]
                x -= np.matmul(mean[:, None], weight)[:, 0]
            vectors = attributes.vectors.astype(self.dtype)[:, None]
            side_by_side = weight.swapaxes(0, 1).reshape(1, vectors.shape[2], -1)
            x += _matmul(vectors, side_by_side).reshape(x.shape)
        return x

    def _add_labels(self, x: Floats, codes: Ints) -> Floats:
        """The rows of the label table added, in place."""
        entries = self.state["levels.0.entries"][:, codes].T  # the last for code -1
        known = np.minimum(entries, self.architecture.labels)
        rows = self.state["levels.0.table"][np.arange(self.n_models), known]
        x += rows * (entries == known)[..., None]
        return x

    def _level(self, level: int) -> _FirstLayer:
        """The first layer of f_l, with normalization and unseen roles folded into its weights."""
        state, key = self.state, f"levels.{level}"
        seen, bias = state[f"{key}.seen"].T, state[f"{key}.bias"]
        weight = state[f"{key}.weight"]
        weight = weight.reshape(*seen.shape, -1, weight.shape[2]) * seen[..., None, None]
        if self.architecture.normalization == "batch":
            mean, scale = self._moments(level)
            weight = weight * scale[..., None]
            bias = bias - (mean[..., None] * weight).sum((1, 2))
        return _FirstLayer(weight, bias)

    def _moments(self, level: int) -> tuple[Floats, Floats]:
        """Mean of a_l and 1 / standard deviation, 0 for what was constant, (M, roles, d) both."""
        mean, variance = (
            self.state[f"levels.{level}.norm.{key}"].swapaxes(0, 1) for key in ("mean", "variance")
        )
        limit = max_constant_deviation(level, float(np.finfo(self.dtype).eps))
        varies = variance > np.square(self.dtype.type(limit) * mean)
        return mean, varies / np.sqrt(variance + self.dtype.type(EPSILON))

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
        slope = self.dtype.type(self.architecture.negative_slope)
        (np.maximum if slope <= 1 else np.minimum)(x, slope * x, out=x)
        return x


@dataclass(frozen=True)
class _FirstLayer:
    """x = Σ_π (R_{l,π} H) W_π + b: Eq. 1 and the first layer of Eq. 2."""

    weight: Floats  # (M, roles, d, out)
    bias: Floats  # (M, out)

    def projects(self, relation: Relation) -> bool:
        """Whether it takes fewer multiplications to apply the layer to the parts first."""
        _, n_roles, d, size = self.weight.shape
        entries = relation.n_entries
        project = size * (entries + relation.n_parts * n_roles * d)
        # At most: fewer where parents have no parts in some roles.
        n_rows = min(entries, n_roles * relation.n_parents)
        return bool(project <= d * (entries + n_rows * size))

    def mapped(self, h: Floats) -> Floats:
        """H W_π of every role, (m, roles, M, out)."""
        n_models, n_roles, d, size = self.weight.shape
        weight = self.weight.swapaxes(1, 2).reshape(n_models, d, n_roles * size)
        by_model = _matmul(h, weight).reshape(len(h), n_models, n_roles, size)
        return np.ascontiguousarray(by_model.swapaxes(1, 2))

    def sums(self, relation: Relation, parts: Ints, mapped: Floats) -> Floats:
        """x = Σ_π R_{l,π} (H W_π) + b: the layer was applied to the parts, which are fewer.

        The entries have other `parts`, rows of `mapped`, where -1 is the last one.
        """
        m, n_roles, n_models, size = mapped.shape
        columns = parts.astype(np.int64) * n_roles + relation.roles
        columns[columns < 0] += m * n_roles
        shape = (relation.n_parents, m * n_roles)
        counts = relation.multiplicity.astype(mapped.dtype)
        matrix = sparse.csr_array((counts, columns, relation.indptr), shape=shape)
        x = _product(matrix, mapped.reshape(shape[1], n_models, size))
        x += self.bias
        return x

    def aggregate(self, relation: Relation, h: Floats) -> Floats:
        """x = Σ_π (R_{l,π} H) W_π + b, with only the (role, parent) pairs that have parts."""
        n_roles = self.weight.shape[1]
        n, m = relation.n_parents, len(h)
        if n == 1 and n_roles * h.size <= MAX_PRODUCT:
            return self._aggregate_one(relation, h)
        pairs = relation.roles.astype(np.int64) * n + relation.parents
        used = np.zeros(n_roles * n, dtype=np.bool_)
        used[pairs] = True
        rows = np.cumsum(used) - 1
        counts = relation.multiplicity.astype(h.dtype)
        shape = (int(rows[-1]) + 1 if len(rows) else 0, m)
        a = _product(sparse.csr_array((counts, (rows[pairs], relation.parts)), shape=shape), h)
        ends = offsets(used.reshape(n_roles, n).sum(axis=1))
        parents = np.flatnonzero(used) % max(n, 1)
        x = np.tile(self.bias, (n, 1, 1))
        for role in range(n_roles):
            own = slice(ends[role], ends[role + 1])
            x[parents[own]] += _matmul(a[own], self.weight[:, role])
        return x

    def _aggregate_one(self, relation: Relation, h: Floats) -> Floats:
        """The same for a single parent, by a dense matrix (roles, parts)."""
        n_models, n_roles, d, size = self.weight.shape
        entries = relation.roles.astype(np.int64) * len(h) + relation.parts
        counts = np.bincount(entries, relation.counts, n_roles * len(h)).astype(h.dtype)
        a = counts.reshape(n_roles, len(h)) @ h.reshape(len(h), n_models * d)
        side_by_side = a.reshape(n_roles, n_models, d).swapaxes(0, 1)
        weight = self.weight.reshape(n_models, n_roles * d, size)
        return _matmul(side_by_side.reshape(1, n_models, n_roles * d), weight) + self.bias


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
    if _longest(matrix.indptr) > MAX_ROW_ENTRIES:
        rows = rows.astype(np.float64)
    product: Floats = (matrix @ rows).astype(dense.dtype, copy=False)
    return product.reshape(matrix.shape[0], *dense.shape[1:])


def _longest(pointers: Ints) -> int:
    """Entries of the longest row."""
    return int(np.diff(pointers).max(initial=0))
