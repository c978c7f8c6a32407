"""A hierarchy as tensors on a device, ready to be multiplied: what the network is unrolled over."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor, nn

from saen.arrays import segment_ids
from saen.hierarchy import Hierarchy, Relation

MOSTLY = 0.5
"""Share of (role, whole) pairs with parts below which the others are left out."""


@dataclass
class SparseProduct:
    """A constant sparse matrix with its transpose kept beside it.

    Recomputing the transpose on every backward pass is what makes stock autograd slow.
    """

    matrix: Tensor
    transpose: Tensor

    @classmethod
    def of(
        cls, matrix: sparse.csr_array, dtype: torch.dtype, device: torch.device
    ) -> SparseProduct:
        """From scipy, converted once."""
        return cls(_csr(matrix, dtype, device), _csr(sparse.csr_array(matrix.T), dtype, device))

    def __matmul__(self, dense: Tensor) -> Tensor:
        out: Tensor = _Multiply.apply(dense, self.matrix, self.transpose)  # type: ignore[no-untyped-call]
        return out

    @property
    def T(self) -> SparseProduct:  # noqa: N802
        """The transposed product, sharing both matrices."""
        return SparseProduct(self.transpose, self.matrix)


class _Multiply(torch.autograd.Function):
    """Sparse times dense, whose gradient is the kept transpose times dense."""

    @staticmethod
    def forward(ctx: Any, dense: Tensor, matrix: Tensor, transpose: Tensor) -> Tensor:
        ctx.matrix, ctx.transpose = matrix, transpose
        return _multiply(matrix, dense.detach().contiguous())

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        # As a product of this kind again, so that gradients have gradients.
        return _Multiply.apply(gradients[0], ctx.transpose, ctx.matrix), None, None  # type: ignore[no-untyped-call]


def _multiply(matrix: Tensor, dense: Tensor) -> Tensor:
    """A product of CSR and contiguous dense matrices."""
    if dense.is_cuda or dense.dtype != torch.float32:
        return matrix @ dense
    # Rows of the product are weighted sums of rows: two to four times as fast as the product of
    # matrices, which writes zeros, copies them, and then adds to the copy.
    return nn.functional.embedding_bag(
        matrix.col_indices(),
        dense,
        matrix.crow_indices(),
        mode="sum",
        per_sample_weights=matrix.values(),
        include_last_offset=True,
    )


@dataclass
class Rows:
    """The (role, whole) pairs that have parts, sorted by role: P of them.

    Those of role π are `starts[π] … starts[π + 1] - 1`; `gather @ Y` adds the rows of every whole,
    (n, P) times (P, w).
    """

    wholes: Tensor
    starts: list[int]
    gather: SparseProduct


@dataclass
class UnrolledRelation:
    """R_l for the network. `by_role @ H` stacks R_{l,π} H over roles: (roles · n, m) times (m, w).

    Where most of these rows would be empty, `rows` lists the others, and `by_role` has only them.
    `joined @ [H W_1; …]` is Σ_π R_{l,π} (H W_π), (n, roles · m) times (roles · m, w): the same sum
    once the first layer has been applied to the parts. Each is built when first asked for.
    """

    n_wholes: int
    n_parts: int
    n_roles: int
    n_entries: int
    n_rows: int
    rows: Rows | None
    _build: Callable[[str], SparseProduct]
    _built: dict[str, SparseProduct] = field(default_factory=dict)

    @property
    def by_role(self) -> SparseProduct:
        """Rows (role, whole), columns parts."""
        return self._get("by_role")

    @property
    def joined(self) -> SparseProduct:
        """Rows wholes, columns (role, part)."""
        return self._get("joined")

    def _get(self, form: str) -> SparseProduct:
        if form not in self._built:
            self._built[form] = self._build(form)
        return self._built[form]

    def uses(self, weights: Tensor) -> Tensor:
        """w_{l-1} = Σ_π R_{l,π}ᵀ w_l: how often each part is used, (n, M) to (m, M)."""
        spread = weights.repeat(self.n_roles, 1) if self.rows is None else weights[self.rows.wholes]
        return self.by_role.T @ spread


@dataclass
class Unrolled:
    """Bottom attributes and relations of a hierarchy as tensors."""

    codes: Tensor | None
    vectors: Tensor | None
    relations: list[UnrolledRelation]
    device: torch.device
    dtype: torch.dtype

    @classmethod
    def of(cls, hierarchy: Hierarchy, *, dtype: torch.dtype, device: torch.device) -> Unrolled:
        """Convert a hierarchy; sparse matrices are made when the network first needs them."""
        attributes = hierarchy.attributes
        codes = vectors = None
        if attributes.codes is not None:
            codes = torch.from_numpy(attributes.codes.astype(np.int64)).to(device)
        if attributes.vectors is not None:
            vectors = torch.from_numpy(attributes.vectors.copy()).to(device, dtype)
        relations = [_unroll(relation, dtype, device) for relation in hierarchy.relations]
        return cls(codes, vectors, relations, device, dtype)

    @property
    def n_bottom(self) -> int:
        """Objects of level 0."""
        return self.relations[0].n_parts

    @property
    def n_objects(self) -> int:
        """Objects of all levels."""
        return self.n_bottom + sum(relation.n_wholes for relation in self.relations)

    def uses(self, top: Tensor) -> list[Tensor]:
        """Weights of the objects of every level, bottom first, from those of the top: (n_l, M)."""
        weights = [top]
        for relation in reversed(self.relations):
            weights.append(relation.uses(weights[-1]))
        return weights[::-1]


def _unroll(relation: Relation, dtype: torch.dtype, device: torch.device) -> UnrolledRelation:
    n, m, k = relation.n_wholes, relation.n_parts, relation.n_roles
    wholes = segment_ids(relation.indptr)
    roles = relation.roles.astype(np.int64)
    used = np.zeros(k * n, dtype=np.bool_)
    used[roles * n + wholes] = True
    n_rows = int(np.count_nonzero(used))
    rows = None
    if n_rows < MOSTLY * k * n:
        pairs = np.flatnonzero(used)
        ones = np.ones(n_rows)
        gather = sparse.csr_array((ones, (pairs % n, np.arange(n_rows))), shape=(n, n_rows))
        rows = Rows(
            torch.from_numpy(pairs % n).to(device),
            np.searchsorted(pairs, np.arange(k + 1) * n).tolist(),
            SparseProduct.of(gather, dtype, device),
        )

    def build(form: str) -> SparseProduct:
        parts = relation.parts.astype(np.int64)
        counts = np.ones(len(parts)) if relation.counts is None else relation.counts
        at, shape = wholes, (n, k * m)
        if form == "joined":
            parts = roles * m + parts
        else:
            at, shape = roles * n + wholes, (k * n, m)
            if rows is not None:
                at, shape = (np.cumsum(used) - 1)[at], (n_rows, m)
        matrix = sparse.csr_array((counts.astype(np.float64), (at, parts)), shape=shape)
        return SparseProduct.of(matrix, dtype, device)

    return UnrolledRelation(n, m, k, relation.n_entries, n_rows, rows, build)


def _csr(matrix: sparse.csr_array, dtype: torch.dtype, device: torch.device) -> Tensor:
    def indices(array: NDArray[Any]) -> Tensor:
        return torch.from_numpy(array.astype(np.int32))

    with warnings.catch_warnings():
        # torch announces once per process that CSR is in beta and that it does not check it.
        warnings.filterwarnings(
            "ignore", message=".*Sparse (CSR tensor support|invariant checks).*"
        )
        return torch.sparse_csr_tensor(
            indices(matrix.indptr),
            indices(matrix.indices),
            torch.from_numpy(matrix.data).to(dtype),
            size=matrix.shape,
            check_invariants=False,
        ).to(device)
