"""`HierarchyTensors`: a hierarchy as tensors on a device, ready for the network."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from saen._util.arrays import Ints
from saen.data.compression import Compressed
from saen.data.content_hash import level_keys
from saen.data.hierarchy import Hierarchy, Relation
from saen.network.aggregation import DenseRows, NonEmptyRows, ProjectFirst, nonempty_pairs

MIN_FILL_RATIO = 0.5
"""Share of (parent, role) pairs with parts below which the empty ones are left out."""


class _Source:
    """A hierarchy that can be taken again: given back while it is not needed."""

    def __init__(self, take: Callable[[], Hierarchy]) -> None:
        self._take = take
        self._taken: Hierarchy | None = None

    def __call__(self) -> Hierarchy:
        if self._taken is None:
            self._taken = self._take()
        return self._taken

    def relation(self, place: int) -> Relation:
        return self().relations[place]

    def release(self) -> None:
        self._taken = None


class RelationTensors:
    """R_l for the network; each way to aggregate over it is built when first used."""

    def __init__(
        self, take: Callable[[], Relation], dtype: torch.dtype, device: torch.device
    ) -> None:
        self._take, self._how = take, (dtype, device)
        relation = take()
        self.n_parents, self.n_parts = relation.n_parents, relation.n_parts
        self.n_roles, self.n_entries = relation.n_roles, relation.n_entries
        n_pairs = self.n_roles * self.n_parents
        n_nonempty = int(np.count_nonzero(nonempty_pairs(relation)))
        self.skips_empty_rows: bool = n_nonempty < MIN_FILL_RATIO * n_pairs
        self.n_rows = n_nonempty

    @cached_property
    def aggregate_first(self) -> DenseRows | NonEmptyRows:
        """Aggregates the parts, then applies the first layer."""
        way = NonEmptyRows if self.skips_empty_rows else DenseRows
        return way(self._take(), *self._how)

    @cached_property
    def project_first(self) -> ProjectFirst:
        """Applies the first layer to the parts, then aggregates."""
        return ProjectFirst(self._take(), *self._how)


class HierarchyTensors:
    """Bottom attributes and relations of a hierarchy as tensors.

    `multiplicity` (n_L,) says how many original examples each object of the top stands for. With
    `examples`, they are of these alone, and `release` gives back what was taken for them.
    """

    def __init__(
        self,
        data: Hierarchy | Compressed,
        *,
        dtype: torch.dtype,
        device: torch.device,
        examples: Ints | None = None,
    ) -> None:
        whole = data.hierarchy if isinstance(data, Compressed) else data
        self._source = _Source(lambda: whole if examples is None else whole[examples])
        hierarchy = self._source()
        attributes = hierarchy.attributes
        self.dtype, self.device = dtype, device
        self.codes: Tensor | None = None
        self.vectors: Tensor | None = None
        if attributes.codes is not None:
            self.codes = torch.from_numpy(attributes.codes.astype(np.int64)).to(device)
        if attributes.vectors is not None:
            self.vectors = torch.from_numpy(attributes.vectors.copy()).to(device, dtype)
        self.relations: list[RelationTensors] = [
            RelationTensors(partial(self._source.relation, place), dtype, device)
            for place in range(len(hierarchy.relations))
        ]
        if isinstance(data, Compressed):
            self.multiplicity = np.bincount(data.top, minlength=len(hierarchy))
        else:
            self.multiplicity = np.ones(len(hierarchy), dtype=np.int64)
        self._default_uses: list[Tensor] | None = None

    @property
    def n_bottom(self) -> int:
        """Objects of level 0."""
        return self.relations[0].n_parts

    @property
    def n_objects(self) -> int:
        """Objects of all levels."""
        return self.n_bottom + sum(relation.n_parents for relation in self.relations)

    @cached_property
    def keys(self) -> list[NDArray[np.uint64]]:
        """A number for every object of every level, bottom first, that says what it is: (n_l,)."""
        return [keys[:, 0] for keys in level_keys(self._source())]

    def release(self) -> None:
        """Give the hierarchy back, which is taken again for whatever was not asked for so far."""
        self._source.release()

    def uses(self, top: Tensor) -> list[Tensor]:
        """Weights of the objects of every level, bottom first, from those of the top: (n_l, M)."""
        weights = [top]
        for relation in reversed(self.relations):
            weights.append(relation.aggregate_first.part_uses(weights[-1]))
        return weights[::-1]

    def default_uses(self, n_models: int) -> list[Tensor]:
        """`uses` where every original example counts once in every model; the last are kept."""
        if self._default_uses is None or self._default_uses[0].shape[1] != n_models:
            with torch.inference_mode(False), torch.no_grad():
                top = torch.from_numpy(self.multiplicity).to(self.device, self.dtype)
                self._default_uses = self.uses(top[:, None].repeat(1, n_models))
        return self._default_uses
