"""Small sparse products on a GPU in one or two kernels, where cuSPARSE takes four.

A row of the product is a weighted sum of rows of the dense factor. Long rows are cut into pieces,
so that no program works much longer than the others: a first kernel sums every piece, a second one
the pieces of the rows that were cut. Nothing is added by atomic operations.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from saen._util.arrays import Ints, ranges
from saen.network import fused

MAX_TABLE = 1 << 23
"""Numbers of a dense factor that stays in the cache of a GPU."""
MAX_GATHERED = 1 << 26
"""Numbers that a product gathers above which cuSPARSE's kernels take long enough to pay."""
MAX_WHOLE = 64
"""Entries of the longest row above which rows are cut."""
MIN_PIECE = 32
"""Entries of a piece of a row that is cut."""
UNROLL = 8
"""Entries of a piece whose rows a program loads before it waits for any of them."""
COLUMNS = 128
"""Of a program, four for each thread of a warp. With more warps the compiler saves registers
instead, and waits for every second load."""


class Sums(NamedTuple):
    """Ranges of entries that are summed: where they start and stop, and the row of each sum."""

    starts: Tensor
    stops: Tensor
    targets: Tensor


class Rows:
    """The rows of a sparse matrix as sums of pieces; cut when first multiplied here."""

    def __init__(self, csr: Tensor) -> None:
        self.csr = csr

    def can_multiply(self, dense: Tensor) -> bool:
        """Whether the product with `dense` is one of those that are faster here."""
        return (
            fused.FUSES_PRODUCTS
            and fused.is_available(dense.device)
            and dense.dtype == torch.float32
            and 0 < dense.numel() <= MAX_TABLE
            and self.csr.values().numel() * dense.shape[1] <= MAX_GATHERED
        )

    def multiply(self, dense: Tensor) -> Tensor:
        """The product with a contiguous matrix."""
        pieces, of_pieces = self._sums
        # The sums of pieces lie behind the rows of the product.
        out = dense.new_empty(len(pieces.starts) + len(of_pieces.starts), dense.shape[1])
        _sum(dense, self.csr.col_indices(), self.csr.values(), pieces, out)
        _sum(out, None, None, of_pieces, out)
        return out[: len(self.csr)]

    @cached_property
    def _sums(self) -> tuple[Sums, Sums]:
        """Of the entries of pieces, longest first; and of the pieces of rows that were cut."""
        indptr = self.csr.crow_indices().cpu().numpy().astype(np.int64)
        lengths, n = np.diff(indptr), len(indptr) - 1
        size = longest = int(lengths.max(initial=1))
        if longest > MAX_WHOLE:  # about as many pieces as entries of a piece
            size = max(MIN_PIECE, 1 << round(np.log2(longest) / 2))
        n_pieces = np.maximum(-(-lengths // size), 1)
        starts = np.repeat(indptr[:-1], n_pieces) + size * ranges(np.zeros_like(lengths), n_pieces)
        stops = np.minimum(starts + size, np.repeat(indptr[1:], n_pieces))
        is_cut = n_pieces > 1
        of_cut = np.repeat(is_cut, n_pieces)
        targets = np.where(of_cut, n + np.cumsum(of_cut) - 1, np.repeat(np.arange(n), n_pieces))
        order = np.argsort(starts - stops, kind="stable")
        ends = n + np.cumsum(n_pieces[is_cut])
        return (
            self._to_device(starts[order], stops[order], targets[order]),
            self._to_device(ends - n_pieces[is_cut], ends, np.flatnonzero(is_cut)),
        )

    def _to_device(self, *arrays: Ints) -> Sums:
        device = self.csr.device
        return Sums(*(torch.from_numpy(each.astype(np.int32)).to(device) for each in arrays))


def _sum(
    dense: Tensor, columns: Tensor | None, values: Tensor | None, sums: Sums, out: Tensor
) -> None:
    from saen.network import kernels

    if not len(sums.starts):
        return
    width = dense.shape[1]
    align = next(each for each in (4, 2, 1) if width % each == 0)
    kernels.sum_rows[(len(sums.starts) * -(-width // COLUMNS),)](
        dense, columns, values, *sums, out, width // align,
        ALIGN=align, UNROLL=UNROLL, BW=COLUMNS, num_warps=1,
    )  # fmt: skip
