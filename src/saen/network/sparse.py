"""`SparseMatrix`: a constant sparse matrix that multiplies dense tensors, with fast gradients."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import torch
from scipy import sparse
from torch import Tensor, nn

from saen._util.arrays import Ints, index_dtype, offsets, ranges, segment_ids

MAX_CACHED_ROWS = 1 << 14
"""Rows of a dense factor above which summing them in one pass falls out of the CPU cache."""
ROWS_PER_BLOCK = 1 << 9
"""Rows of a dense factor that are summed at a time when there are more than that."""
MIN_ENTRIES_PER_ROW = 8
"""Average entries per row below which splitting a matrix into blocks does not pay."""
MAX_ROW_ENTRIES = 1 << 12
"""Entries of a row above which it is summed in pieces: float32 loses a digit per factor of ten."""
ENTRIES_PER_PIECE = 1 << 8

Starts = list[Tensor]
"""Where rows begin among the entries; or pieces of rows, then pieces of pieces, at last rows."""


class SparseMatrix:
    """A constant sparse matrix in CSR format, whose transpose is computed once and kept.

    Stock autograd recomputes the transpose on every backward pass, which dominates its cost. With
    `n_blocks` > 1 the columns are split into that many blocks and `csr` stacks the row blocks, each
    rotated to begin with row `first`: the product sums over them.
    """

    def __init__(
        self,
        csr: Tensor,
        n_blocks: int = 1,
        first: int = 0,
        starts: Starts | None = None,
        *,
        transpose_of: SparseMatrix | None = None,
    ) -> None:
        self.csr, self.n_blocks, self.first = csr, n_blocks, first
        self.starts: Starts = [csr.crow_indices()] if starts is None else starts
        self._transpose_of = transpose_of
        self._transposed: tuple[Tensor, int, int, Starts] | None = None

    @classmethod
    def from_scipy(
        cls, matrix: sparse.csr_array, dtype: torch.dtype, device: torch.device
    ) -> SparseMatrix:
        """Convert a scipy matrix."""
        csr = _to_torch(matrix, dtype, device)
        return cls(csr, starts=_starts(csr))

    def to_scipy(self) -> sparse.csr_array:
        """The entries as a float64 scipy matrix."""
        values, columns, starts = (
            part.cpu().numpy()
            for part in (self.csr.values(), self.csr.col_indices(), self.csr.crow_indices())
        )
        n, m = self.csr.shape
        return sparse.csr_array((values.astype(np.float64), columns, starts), (n, m))

    def __matmul__(self, dense: Tensor) -> Tensor:
        product: Tensor = _Multiply.apply(dense, self)  # type: ignore[no-untyped-call]
        return product

    @property
    def T(self) -> SparseMatrix:  # noqa: N802
        """The transpose."""
        if self._transpose_of is not None:
            return self._transpose_of
        if self._transposed is None:
            self._transposed = self._transpose()
        # A new wrapper around the kept tensor: two objects that refer to each other would only be
        # freed by the garbage collector.
        return SparseMatrix(*self._transposed, transpose_of=self)

    def _transpose(self) -> tuple[Tensor, int, int, Starts]:
        n, m = self.csr.shape
        matrix = self.to_scipy()
        rows: Ints = segment_ids(matrix.indptr)
        columns, values = matrix.indices, matrix.data
        n_blocks, first = -(-n // ROWS_PER_BLOCK), 0
        # Many rows summed into few: block by block, the rows stay in the cache.
        if (
            n <= MAX_CACHED_ROWS
            or m * n_blocks >= matrix.nnz // MIN_ENTRIES_PER_ROW
            or not _uses_embedding_bag(self.csr)
        ):
            n_blocks = 1
        else:
            # The first sum of a block takes all of its rows, with weight zero where they are not
            # part of it, because rows come from memory much faster in order.
            first = int(np.bincount(columns).argmax())
            others = np.setdiff1d(rows, rows[columns == first])
            rows = np.concatenate([rows, others])
            columns = np.concatenate([columns, np.full(len(others), first)])
            values = np.concatenate([values, np.zeros(len(others))])
            columns = rows // ROWS_PER_BLOCK * m + (columns - first) % m
        transposed = sparse.csr_array((values, (columns, rows)), shape=(n_blocks * m, n))
        csr = _to_torch(transposed, self.csr.dtype, self.csr.device)
        return csr, n_blocks, first, _starts(csr)


class _Multiply(torch.autograd.Function):
    """Sparse times dense; the gradient is the kept transpose times dense."""

    @staticmethod
    def forward(ctx: Any, dense: Tensor, matrix: SparseMatrix) -> Tensor:
        ctx.matrix = matrix
        product = _multiply(matrix.csr, matrix.starts, dense.detach().contiguous())
        if matrix.n_blocks == 1:
            return product
        return product.view(matrix.n_blocks, -1, product.shape[1]).sum(0).roll(matrix.first, 0)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        # Differentiable itself, so that second derivatives exist.
        return ctx.matrix.T @ gradients[0], None


def _multiply(csr: Tensor, starts: Starts, dense: Tensor) -> Tensor:
    if not _uses_embedding_bag(csr):
        return csr @ dense
    # Rows of the product are weighted sums of rows. This is two to four times as fast as torch's
    # CSR product, which writes zeros, copies them, and then adds to the copy.
    sums = _sum_rows(csr.col_indices(), dense, starts[0], csr.values())
    for following in starts[1:]:
        sums = _sum_rows(torch.arange(len(sums), dtype=following.dtype), sums, following)
    return sums


def _sum_rows(rows: Tensor, dense: Tensor, starts: Tensor, weights: Tensor | None = None) -> Tensor:
    return nn.functional.embedding_bag(
        rows, dense, starts, mode="sum", per_sample_weights=weights, include_last_offset=True
    )


def _starts(csr: Tensor) -> Starts:
    """The rows, with those of too many entries cut into pieces as often as need be."""
    rows = csr.crow_indices()
    if not _uses_embedding_bag(csr):
        return [rows]
    starts = rows.numpy().astype(np.int64)
    cuts, limit = [], MAX_ROW_ENTRIES
    while (lengths := np.diff(starts)).max(initial=0) > limit:
        n_pieces = np.where(lengths > limit, -(-lengths // ENTRIES_PER_PIECE), 1)
        begins = ranges(np.zeros(len(n_pieces), np.int64), n_pieces) * ENTRIES_PER_PIECE
        begins += np.repeat(starts[:-1], n_pieces)
        cuts.append(torch.from_numpy(np.append(begins, starts[-1])).to(rows.dtype))
        starts, limit = offsets(n_pieces), ENTRIES_PER_PIECE
    return [*cuts, torch.from_numpy(starts).to(rows.dtype)] if cuts else [rows]


def _uses_embedding_bag(csr: Tensor) -> bool:
    return csr.device.type == "cpu" and csr.dtype == torch.float32


def _to_torch(matrix: sparse.csr_array, dtype: torch.dtype, device: torch.device) -> Tensor:
    with warnings.catch_warnings():
        # torch warns once per process that CSR support is in beta and that it is not checked.
        warnings.filterwarnings(
            "ignore", message=".*Sparse (CSR tensor support|invariant checks).*"
        )
        wide = index_dtype(max(matrix.nnz, *matrix.shape))
        return torch.sparse_csr_tensor(
            torch.from_numpy(matrix.indptr.astype(wide)),
            torch.from_numpy(matrix.indices.astype(wide)),
            torch.from_numpy(matrix.data).to(dtype),
            size=matrix.shape,
            check_invariants=False,
        ).to(device)
