"""Edge lists into adjacency: sorted, without duplicates, made symmetric."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from saen._util.arrays import BLOCK, Array, index_dtype, offsets, row_blocks, segment_ids
from saen._util.lazy import sparse
from saen.errors import InputError

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
            bits = max(n_nodes - 1, 0).bit_length()
            codes = rows.astype(np.int64) << bits
            codes |= columns
            # Stable sorts use what is in order already: edges mostly stand graph by graph.
            if values or duplicates == "error":
                order = np.argsort(codes, kind="stable")
                codes = codes[order]
                values = {key: column[order] for key, column in values.items()}
            else:
                codes.sort(kind="stable")
            first = np.ones(len(codes), dtype=np.bool_)
            first[1:] = codes[1:] != codes[:-1]
            if not first.all():
                if duplicates == "error":
                    again = int(codes[np.flatnonzero(~first)[0]])
                    raise InputError(
                        f"the edge {again >> bits} → {again & (2**bits - 1)} is listed more than "
                        'once (pass duplicates="merge" to keep the first)'
                    )
                codes = codes[first]
                values = {key: column[first] for key, column in values.items()}
            rows, columns = codes >> bits, codes & (2**bits - 1)
        indptr = offsets(np.bincount(rows, minlength=n_nodes))
        return Entries(indptr, np.array(columns, dtype=pairs.dtype), values)

    @staticmethod
    def joined(blocks: Iterable[EdgeBlock], n_nodes: int, max_edges: int) -> Entries:
        """From blocks of node pairs without values; the same pair twice is kept once.

        There are at most `max_edges` pairs. Blocks in ascending order are never made pairs again.
        """
        width = index_dtype(n_nodes)
        columns = np.empty(max_edges, dtype=width)  # pages that nothing is written to cost nothing
        rows, lengths = [np.empty(0, width)], [np.empty(0, np.int64)]
        n_edges, last, ascending = 0, (-1, -1), True
        for block in blocks:
            columns[n_edges : n_edges + len(block)] = block.columns
            n_edges += len(block)
            rows.append(block.rows)
            lengths.append(block.lengths)
            if len(block):
                first = int(block.rows[0]), int(block.columns[0])
                ascending = ascending and block.ascending and first > last
                last = int(block.rows[-1]), int(block.columns[-1])
        columns.resize(n_edges, refcheck=False)
        row, length = np.concatenate(rows), np.concatenate(lengths)
        if ascending:
            counts = np.bincount(row, weights=length, minlength=n_nodes)
            return Entries(offsets(counts.astype(np.int64)), columns, {})
        pairs = np.stack([np.repeat(row, length), columns]).T
        return Entries.sorted(pairs, n_nodes, {}, "merge")

    def symmetrised(self, node_offsets: NDArray[np.int64]) -> Entries:
        """With the reverse of every entry that has none; entries stay within their graphs."""
        n_nodes = len(self.indptr) - 1
        if is_symmetric(self.indptr, self.columns, node_offsets):
            return self
        if not self.values and len(self.columns) > MAX_SORTED:
            listed = sparse.csr_array(
                (np.ones(len(self.columns), np.bool_), self.columns, self.indptr),
                shape=(n_nodes, n_nodes),
            )
            both = listed + sparse.csr_array(listed.T)
            columns = both.indices.astype(self.columns.dtype, copy=False)
            return Entries(both.indptr.astype(np.int64), columns, {})
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


@dataclass(frozen=True)
class EdgeBlock:
    """Some node pairs, the first node of each once per run of equal ones."""

    rows: Array
    lengths: NDArray[np.int64]
    columns: Array
    ascending: bool

    def __len__(self) -> int:
        return len(self.columns)

    @staticmethod
    def of(rows: Array, columns: Array) -> EdgeBlock:
        """From the first and the second node of every pair."""
        new = np.ones(len(rows), dtype=np.bool_)
        np.not_equal(rows[1:], rows[:-1], out=new[1:])
        starts = np.flatnonzero(new)
        runs = rows[starts]
        new[1:] |= columns[1:] > columns[:-1]
        ascending = bool((runs[1:] > runs[:-1]).all() and new.all())
        return EdgeBlock(runs, np.diff(starts, append=len(rows)), columns, ascending)


def is_symmetric(
    indptr: NDArray[np.int64],
    columns: NDArray[np.signedinteger[Any]],
    node_offsets: NDArray[np.int64],
) -> bool:
    """Whether every entry of a CSR pattern with sorted rows stands in both directions.

    Entries stay within the segments of `node_offsets`.
    """
    if len(columns) <= MAX_SORTED:
        rows, order = segment_ids(indptr), by_column(indptr, columns)
        return np.array_equal(rows[order], columns) and np.array_equal(columns[order], rows)
    # Some graphs at a time, which the cache holds.
    for start, stop in row_blocks(indptr[node_offsets]):
        first, last = node_offsets[start], node_offsets[stop]
        pointers = indptr[first : last + 1] - indptr[first]
        own = columns[indptr[first] : indptr[last]] - columns.dtype.type(first)
        reverse = _transposed(pointers, own, np.ones(len(own), dtype=np.bool_))
        if not np.array_equal(reverse.indices, own):
            return False
        if not np.array_equal(reverse.indptr, pointers):
            return False
    return True


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
