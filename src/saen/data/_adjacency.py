"""Edge lists into adjacency: sorted, without duplicates, made symmetric."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from saen._util.arrays import BLOCK, Array, segment_ids
from saen._util.lazy import LazyModule
from saen.errors import InputError

if TYPE_CHECKING:
    from scipy import sparse
else:
    sparse = LazyModule("scipy.sparse")

MAX_SORTED = 10_000
"""Entries that are sorted in less time than scipy needs to transpose them, once it is imported."""


@dataclass(frozen=True)
class Entries:
    """Adjacency entries in CSR order with the columns that travel along."""

    indptr: NDArray[np.int64]
    columns: NDArray[np.signedinteger[Any]]
    values: dict[str, Array]

    @staticmethod
    def sorted(pairs: Array, n_nodes: int, values: dict[str, Array], duplicates: str) -> Entries:
        """From node pairs of shape (E, 2) in any order, with one value per pair and column."""
        rows, columns = pairs[:, 0], pairs[:, 1]
        if not _ascending(rows, columns):
            codes = rows.astype(np.int64) * max(n_nodes, 1) + columns
            if values or duplicates == "error":
                order = np.argsort(codes, kind="stable")
                codes = codes[order]
                values = {key: column[order] for key, column in values.items()}
            else:
                codes = np.sort(codes)
            first = np.ones(len(codes), dtype=np.bool_)
            first[1:] = codes[1:] != codes[:-1]
            if not first.all():
                if duplicates == "error":
                    again = divmod(int(codes[np.flatnonzero(~first)[0]]), max(n_nodes, 1))
                    raise InputError(
                        f"the edge {again[0]} → {again[1]} is listed more than once "
                        '(pass duplicates="merge" to keep the first)'
                    )
                codes = codes[first]
                values = {key: column[first] for key, column in values.items()}
            rows, columns = np.divmod(codes, max(n_nodes, 1))
        indptr = np.searchsorted(rows, np.arange(n_nodes + 1, dtype=rows.dtype))
        return Entries(indptr, np.array(columns, dtype=pairs.dtype), values)

    def symmetrised(self) -> Entries:
        """With the reverse of every entry that has none."""
        n_nodes = len(self.indptr) - 1
        if is_symmetric(self.indptr, self.columns):
            return self
        rows, order = segment_ids(self.indptr), by_column(self.indptr, self.columns)
        source = np.concatenate([np.arange(len(order)), order])
        columns = np.concatenate([self.columns, rows[order].astype(self.columns.dtype)])
        rows = np.concatenate([rows, self.columns[order]])
        # The listed direction stands first, so merging keeps its label.
        return Entries.sorted(
            np.column_stack([rows, columns]).astype(self.columns.dtype),
            n_nodes,
            {key: column[source] for key, column in self.values.items()},
            "merge",
        )


def is_symmetric(indptr: NDArray[np.int64], columns: NDArray[np.signedinteger[Any]]) -> bool:
    """Whether every entry of a CSR pattern with sorted rows stands in both directions."""
    if len(columns) <= MAX_SORTED:
        rows, order = segment_ids(indptr), by_column(indptr, columns)
        return np.array_equal(rows[order], columns) and np.array_equal(columns[order], rows)
    reverse = _transposed(indptr, columns, np.ones(len(columns), dtype=np.bool_))
    return np.array_equal(reverse.indices, columns) and np.array_equal(reverse.indptr, indptr)


def by_column(indptr: NDArray[np.int64], columns: Array) -> NDArray[np.int64]:
    """The positions of the entries of a CSR pattern, ordered by column, then row."""
    if len(columns) <= MAX_SORTED:
        return np.argsort(columns, kind="stable")
    positions: NDArray[np.int64] = _transposed(indptr, columns, np.arange(len(columns))).data
    return positions


def _transposed(indptr: NDArray[np.int64], columns: Array, values: Array) -> sparse.csr_array:
    shape = (len(indptr) - 1, len(indptr) - 1)
    return sparse.csr_array(sparse.csr_array((values, columns, indptr), shape=shape).T)


def _ascending(rows: Array, columns: Array) -> bool:
    """Whether pairs stand in strictly ascending order (no wide codes: files are mostly sorted)."""
    for start in range(0, len(rows) - 1, BLOCK):
        a, b = rows[start : start + BLOCK + 1], columns[start : start + BLOCK + 1]
        ok = a[1:] > a[:-1]
        ok |= (a[1:] == a[:-1]) & (b[1:] > b[:-1])
        if not ok.all():
            return False
    return True
