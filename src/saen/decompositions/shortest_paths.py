"""Shortest paths of many graphs at once: rows of nodes, extended by one edge at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from saen._util.arrays import Array, Ints, offsets, ranges, row_blocks, segment_ids
from saen._util.lazy import sparse


def shortest_paths(
    adjacency: sparse.csr_array,
    max_length: int,
    *,
    both_ways: bool = False,
    cap: int | None = None,
    ranks: Ints | None = None,
) -> list[Ints]:
    """All shortest paths of length 0 … `max_length`: element k has shape (paths, k + 1).

    `adjacency` is one graph or the disjoint union of many, shape (n, n), its columns sorted and
    distinct; every stored entry is an edge, loops change nothing. A row holds the nodes of a
    path in order. Symmetric graphs give every path once, from its smaller end to its larger;
    `both_ways` gives both readings, and is what directed graphs need.

    Of more than `cap` paths from one node to another only those with the smallest content are
    kept: the `ranks` of their nodes, shape (n,), then the values of their entries in
    `adjacency`. Without `both_ways` the content of a path is the smaller of its two readings.
    Among paths of equal content any may be chosen.

    >>> square = sparse.csr_array([[0, 1, 0, 1], [1, 0, 1, 0], [0, 1, 0, 1], [1, 0, 1, 0]])
    >>> nodes, edges, diagonals = shortest_paths(square, 2)
    >>> edges.tolist()
    [[0, 1], [0, 3], [1, 2], [2, 3]]
    >>> diagonals.tolist()
    [[0, 1, 2], [0, 3, 2], [1, 0, 3], [1, 2, 3]]
    >>> shortest_paths(square, 2, cap=1, ranks=np.array([0, 2, 0, 1]))[2].tolist()
    [[0, 3, 2], [1, 0, 3]]
    """
    n = adjacency.shape[0]
    reader = Reader.of(adjacency, np.zeros(n, dtype=np.int64) if ranks is None else ranks)
    step = sparse.csr_array(
        (np.ones(adjacency.nnz, dtype=np.bool_), adjacency.indices, adjacency.indptr), (n, n)
    )
    into = sparse.csr_array(step.T)
    pairs = known = sparse.eye_array(n, dtype=np.bool_, format="csr")
    paths = _Paths(np.arange(n, dtype=np.int64)[:, None], np.arange(n + 1))
    by_length = [paths.rows]
    for _ in range(max_length):
        beyond = sparse.csr_array(pairs @ step)
        beyond.sort_indices()
        beyond = sparse.csr_array(beyond > known)
        paths = paths.extended(pairs, beyond, into, reader, cap)
        by_length.append(paths.rows if both_ways else paths.once(reader, cap))
        pairs, known = beyond, sparse.csr_array(known + beyond)
    return by_length


@dataclass(frozen=True)
class Reader:
    """What the paths of a graph say: the ranks of their nodes, then the values of their steps.

    >>> path = sparse.csr_array([[0, 7, 0], [6, 0, 5], [0, 4, 0]])
    >>> reader = Reader.of(path, np.array([2, 0, 1]))
    >>> reader.read(np.array([[0, 1, 2], [2, 1, 0]])).tolist()
    [[2, 0, 1, 7, 5], [1, 0, 2, 4, 6]]
    >>> reader.oriented(np.array([[0, 1, 2]])).tolist()
    [[2, 1, 0]]
    """

    adjacency: sparse.csr_array
    ranks: Ints
    codes: NDArray[np.int64]
    """The ends of every entry of `adjacency` as one number; they ascend."""

    @staticmethod
    def of(adjacency: sparse.csr_array, ranks: Ints) -> Reader:
        """The reader of a graph whose nodes have `ranks`, shape (n,)."""
        return Reader(adjacency, ranks, _codes(adjacency))

    def steps(self, rows: Ints) -> Ints:
        """The entry of the adjacency that every step of every path takes, shape (paths, k)."""
        return np.searchsorted(self.codes, rows[:, :-1] * self.adjacency.shape[0] + rows[:, 1:])

    def read(self, rows: Ints) -> Array:
        """The content of every path, shape (paths, 2k + 1), or (paths, k + 1) without values.

        Boolean entries have no values.
        """
        if self.adjacency.dtype == np.bool_:
            return self.ranks[rows]
        return np.concatenate([self.ranks[rows], self.adjacency.data[self.steps(rows)]], axis=1)

    def oriented(self, rows: Ints) -> Ints:
        """Every path in the direction in which its content is smaller."""
        onward, back = self.read(rows), self.read(rows[:, ::-1])
        place = np.arange(len(rows)), (onward != back).argmax(axis=1)  # the first that differs
        return np.where((back[place] < onward[place])[:, None], rows[:, ::-1], rows)


@dataclass(frozen=True)
class _Paths:
    """The shortest paths of one length, those of the i-th pair of ends at `pointers[i]` on."""

    rows: Ints
    pointers: Ints

    def extended(
        self,
        pairs: sparse.csr_array,
        beyond: sparse.csr_array,
        into: sparse.csr_array,
        reader: Reader,
        cap: int | None,
    ) -> _Paths:
        """Those between the pairs `beyond`, one edge further apart than `pairs`.

        Row v of `into` holds the nodes with an edge to v.
        """
        firsts, lasts = segment_ids(beyond.indptr), beyond.indices
        sizes = np.diff(self.pointers)
        # The last node but one is near the first and has an edge to the last: look for it among
        # the fewer of the two.
        near, before = np.diff(pairs.indptr)[firsts], np.diff(into.indptr)[lasts]
        look_near = near.sum() <= before.sum()
        codes = _codes(into if look_near else pairs)
        rows, counts = [np.empty((0, self.rows.shape[1] + 1), np.int64)], [np.empty(0, np.int64)]
        for start, stop in row_blocks(offsets(near if look_near else before)):
            u, v = firsts[start:stop], lasts[start:stop]
            if look_near:
                pair = np.repeat(np.arange(stop - start), near[start:stop])
                place = ranges(pairs.indptr[u], near[start:stop])
                _, exists = _find(
                    codes, v[pair].astype(np.int64) * into.shape[0] + pairs.indices[place]
                )
            else:
                pair = np.repeat(np.arange(stop - start), before[start:stop])
                nodes = into.indices[ranges(into.indptr[v], before[start:stop])]
                place, exists = _find(codes, u[pair] * into.shape[0] + nodes)
            pair, place = pair[exists], place[exists]
            pair = np.repeat(pair, sizes[place])
            extended = np.column_stack(
                [self.rows[ranges(self.pointers[place], sizes[place])], v[pair]]
            )
            if cap is not None:
                # A path among the smallest begins with one among the smallest: the rest can go now.
                smallest = _smallest(pair, extended, reader.read, cap)
                pair, extended = pair[smallest], extended[smallest]
            rows.append(extended)
            counts.append(np.bincount(pair, minlength=stop - start))
        return _Paths(np.concatenate(rows), offsets(np.concatenate(counts)))

    def once(self, reader: Reader, cap: int | None) -> Ints:
        """One reading of paths that stand both ways, from the smaller end to the larger."""
        onward = self.rows[:, 0] < self.rows[:, -1]
        if cap is None:
            return self.rows[onward]
        # With fewer than `cap` each way nothing was dropped; else either way may have kept others.
        full = np.repeat(np.diff(self.pointers) >= cap, np.diff(self.pointers))
        both = np.where(onward[:, None], self.rows, self.rows[:, ::-1])[full]
        both = both[np.lexsort(both.T[::-1])]
        new = np.ones(len(both), dtype=np.bool_)
        new[1:] = (both[1:] != both[:-1]).any(axis=1)
        both = both[new]
        _, ends = np.unique(both[:, 0] * len(reader.ranks) + both[:, -1], return_inverse=True)
        smallest = _smallest(ends, both, lambda rows: reader.read(reader.oriented(rows)), cap)
        return np.concatenate([self.rows[onward & ~full], both[smallest]])


def _codes(pairs: sparse.csr_array) -> NDArray[np.int64]:
    """Row and column of every entry as one number; they ascend."""
    return segment_ids(pairs.indptr) * pairs.shape[0] + pairs.indices


def _find(
    codes: NDArray[np.int64], wanted: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Where each number would stand among ascending ones, and whether it does."""
    place = np.searchsorted(codes, wanted)
    return place, np.take(codes, place, mode="clip") == wanted


def _smallest(
    pairs: NDArray[np.int64], rows: Ints, read: Callable[[Ints], Array], cap: int
) -> NDArray[np.bool_]:
    """Whether each path is among the `cap` of its pair, a small number, with the least content."""
    smallest = np.ones(len(pairs), dtype=np.bool_)
    crowded = np.flatnonzero(np.bincount(pairs)[pairs] > cap)
    order = crowded[np.lexsort((*read(rows[crowded]).T[::-1], pairs[crowded]))]
    later = pairs[order][cap:] == pairs[order][:-cap]
    smallest[order[cap:][later]] = False
    return smallest
