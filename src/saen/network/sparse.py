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

from saen._util.arrays import Array, offsets, ranges, row_blocks, segment_ids
from saen.data.hierarchy import Hierarchy, Relation
from saen.network.memory import use_huge_pages

use_huge_pages()  # before the first tensor

MOSTLY = 0.5
"""Share of (role, whole) pairs with parts below which the others are left out."""
MANY, BLOCK = 1 << 14, 1 << 9
"""Rows that are too many for the cache when all are added up at once, and how many are not."""


class SparseProduct:
    """A constant sparse matrix, whose transpose is kept beside it once it was needed.

    Recomputing the transpose on every backward pass is what makes stock autograd slow. With
    `blocks`, the columns come in so many blocks, and `matrix` has the rows of one block after those
    of the other: the product adds them up.
    """

    def __init__(
        self, matrix: Tensor, blocks: int = 1, turned: SparseProduct | None = None
    ) -> None:
        self.matrix, self.blocks = matrix, blocks
        self._turned = turned  # what this is the transpose of
        self._transpose: tuple[Tensor, int] | None = None

    @classmethod
    def of(
        cls, matrix: sparse.csr_array, dtype: torch.dtype, device: torch.device
    ) -> SparseProduct:
        """From scipy, converted once."""
        return cls(_csr(matrix, dtype, device))

    def __matmul__(self, dense: Tensor) -> Tensor:
        out: Tensor = _Multiply.apply(dense, self)  # type: ignore[no-untyped-call]
        return out

    @property
    def T(self) -> SparseProduct:  # noqa: N802
        """The transposed product."""
        if self._turned is not None:
            return self._turned
        if self._transpose is None:
            self._transpose = _transposed(self.matrix)
        # Made anew around the kept matrix: two that know each other would outlive their use.
        return SparseProduct(*self._transpose, turned=self)


class _Multiply(torch.autograd.Function):
    """Sparse times dense, whose gradient is the kept transpose times dense."""

    @staticmethod
    def forward(ctx: Any, dense: Tensor, product: SparseProduct) -> Tensor:
        ctx.product = product
        made = _multiply(product.matrix, dense.detach().contiguous())
        return made if product.blocks == 1 else made.view(product.blocks, -1, made.shape[1]).sum(0)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        # A product of this kind again, so that gradients have gradients.
        return ctx.product.T @ gradients[0], None


def _multiply(matrix: Tensor, dense: Tensor) -> Tensor:
    """A product of CSR and contiguous dense matrices."""
    if not _sums_rows(matrix):
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


def _sums_rows(matrix: Tensor) -> bool:
    """Whether torch is quicker at adding up rows than at multiplying."""
    return matrix.device.type == "cpu" and matrix.dtype == torch.float32


def _transposed(matrix: Tensor) -> tuple[Tensor, int]:
    """The transpose of a matrix, and the number of blocks that its columns come in."""
    n, m = matrix.shape
    counts, columns, starts = _arrays(matrix)
    rows = segment_ids(starts)
    blocks = -(-n // BLOCK)
    # Many rows that are added up into few: block by block, so that they are still in the cache
    # when the next of the few needs them.
    if n <= MANY or m * blocks > len(counts) // 8 or not _sums_rows(matrix):
        blocks = 1
    at = columns if blocks == 1 else rows // BLOCK * m + columns
    turned = sparse.csr_array((counts, (at, rows)), shape=(blocks * m, n))
    return _csr(turned, matrix.dtype, matrix.device), blocks


@dataclass
class Rows:
    """The (role, whole) pairs that have parts, sorted by role: P of them.

    Role π has `lengths[π]` of them; `gather @ Y` adds the rows of every whole, (n, P) by (P, w).
    """

    parents: Tensor
    lengths: list[int]
    gather: SparseProduct


@dataclass
class UnrolledRelation:
    """R_l for the network: rows R_{l,π} H are `by_role @ H`, (n · roles, m) times (m, w).

    Where most of these rows would be empty, `rows` lists the others, and `by_role` has only them.
    `joined @ [H W_1; …]` is Σ_π R_{l,π} (H W_π), (n, roles · m) times (roles · m, w): the same sum
    once the first layer has been applied to the parts. Each is built when first asked for.
    """

    n_parents: int
    n_parts: int
    n_roles: int
    n_entries: int
    n_rows: int
    rows: Rows | None
    _build: Callable[[str], SparseProduct]
    _built: dict[str, SparseProduct] = field(default_factory=dict)
    _spread: tuple[Tensor, Tensor] | None = None

    @property
    def by_role(self) -> SparseProduct:
        """Rows (whole, role), or those of `rows`, columns parts."""
        return self._get("by_role")

    @property
    def joined(self) -> SparseProduct:
        """Rows parents, columns (role, part)."""
        return self._get("joined")

    def _get(self, form: str) -> SparseProduct:
        if form not in self._built:
            self._built[form] = self._build(form)
        return self._built[form]

    def spread(self, uses: Tensor) -> Tensor:
        """How the numbers of parts in the parents spread, (M, roles, 1 + m, m); uses are (n, M).

        The first row of a role is r, the numbers in a whole on average; the others are F, where
        FᵀF = C is their covariance. So the aggregates of a role have the mean rᵀH, and the variance
        is the sum of the squares of FH, column by column: they need not be made for it. (HᵀCH would
        lose the digits of small variances.) The last answer is remembered, for uses that stay as
        they are.
        """
        if self._spread is None or self._spread[0] is not uses:
            with torch.inference_mode(False):
                self._spread = (uses, _spread(self, uses))
        return self._spread[1]

    def uses(self, weights: Tensor) -> Tensor:
        """w_{l-1} = Σ_π R_{l,π}ᵀ w_l: how often each part is used, (n, M) to (m, M)."""
        if self.rows is None:
            return self.by_role.T @ weights.repeat_interleave(self.n_roles, 0)
        return self.by_role.T @ weights[self.rows.parents]


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
        return self.n_bottom + sum(relation.n_parents for relation in self.relations)

    def uses(self, top: Tensor) -> list[Tensor]:
        """Weights of the objects of every level, bottom first, from those of the top: (n_l, M)."""
        weights = [top]
        for relation in reversed(self.relations):
            weights.append(relation.uses(weights[-1]))
        return weights[::-1]


def _unroll(relation: Relation, dtype: torch.dtype, device: torch.device) -> UnrolledRelation:
    n, m, k = relation.n_parents, relation.n_parts, relation.n_roles
    parents = segment_ids(relation.indptr)
    roles = relation.roles.astype(np.int64)
    used = np.zeros(k * n, dtype=np.bool_)
    used[roles * n + parents] = True
    n_rows = int(np.count_nonzero(used))
    rows = None
    if n_rows < MOSTLY * k * n:
        pairs = np.flatnonzero(used)
        ones = np.ones(n_rows)
        gather = sparse.csr_array((ones, (pairs % n, np.arange(n_rows))), shape=(n, n_rows))
        rows = Rows(
            torch.from_numpy(pairs % n).to(device),
            np.bincount(pairs // n, minlength=k).tolist(),
            SparseProduct.of(gather, dtype, device),
        )

    def build(form: str) -> SparseProduct:
        parts = relation.parts.astype(np.int64)
        counts = relation.multiplicity
        at, shape = parents, (n, k * m)
        if form == "joined":
            parts = roles * m + parts
        elif rows is None:
            at, shape = parents * k + roles, (n * k, m)
        else:
            at, shape = (np.cumsum(used) - 1)[roles * n + parents], (n_rows, m)
        matrix = sparse.csr_array((counts.astype(np.float64), (at, parts)), shape=shape)
        return SparseProduct.of(matrix, dtype, device)

    return UnrolledRelation(n, m, k, relation.n_entries, n_rows, rows, build)


def _spread(relation: UnrolledRelation, uses: Tensor) -> Tensor:
    n, m, k = relation.n_parents, relation.n_parts, relation.n_roles
    counts, columns, starts = _arrays(relation.joined.matrix)
    numbers = sparse.csr_array((counts.astype(np.float64), columns, starts), (n, k * m))
    share = uses.double().cpu().numpy()
    share = share / np.maximum(share.sum(0), np.finfo(np.float64).tiny)
    mean = (numbers.T @ share).reshape(k, 1, m, share.shape[1])
    # Entries lie by whole and role, and those of one whole and role come in all pairs.
    parents = segment_ids(starts)
    groups = parents * k + columns // max(m, 1)
    sizes = np.bincount(groups, minlength=n * k)
    squares = np.zeros((k * m * m, share.shape[1]))
    ends = offsets(sizes)
    for start, stop in row_blocks(offsets((sizes**2).reshape(n, k).sum(1))):
        block = slice(starts[start], starts[stop])
        partners = sizes[groups[block]]
        one = np.repeat(np.arange(block.start, block.stop), partners)
        other = ranges(ends[groups[block]], partners)
        at = columns[one].astype(np.int64) * m + columns[other] % m
        values = numbers.data[one] * numbers.data[other]
        shape = (len(squares), stop - start)
        squares += sparse.csr_array((values, (at, parents[one] - start)), shape) @ share[start:stop]
    squares = squares.reshape(k, m, m, share.shape[1])
    covariance = (squares - mean * mean.transpose(0, 2, 1, 3)).transpose(3, 0, 1, 2)
    values, vectors = np.linalg.eigh(covariance)
    out = np.empty((*covariance.shape[:2], 1 + m, m))
    out[:, :, 0] = mean[:, 0].transpose(2, 0, 1)
    out[:, :, 1:] = (vectors * np.sqrt(np.maximum(values, 0.0))[:, :, None]).swapaxes(2, 3)
    return torch.from_numpy(out).to(uses.device, uses.dtype)


def _arrays(matrix: Tensor) -> tuple[Array, Array, Array]:
    """Values, columns and starts of the rows of a CSR matrix."""
    parts = (matrix.values(), matrix.col_indices(), matrix.crow_indices())
    values, columns, starts = (part.cpu().numpy() for part in parts)
    return values, columns, starts


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
