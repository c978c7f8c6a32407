"""The nodes within k steps of every node: as sparse matrices, from bits, or counted by label.

As bits, a step outwards is the union of the neighbours' sets, 64 nodes at a time. What is held
before the nodes are listed are two bits per radius and pair of nodes of a graph, and a block of
gathered rows.

Two steps around a neighbour of a hub reach all neighbours of the hub, so listing the nodes takes
time and memory quadratic in the degree of the hub. To count labels, what one hub or several have
around them is counted once for every set of hubs instead, and only who is reached otherwise is
listed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from saen._util.arrays import Ints, offsets, ranges, row_blocks, segment_ids, segment_reduce
from saen._util.lazy import sparse

BITS = 64
_WORD, _HALF = np.dtype("<u8"), np.dtype("<u4")
_HALVES_PER_BLOCK = 1 << 14  # listed at a time: half a megabyte of bits as bytes
_MAX_TABLE = 1 << 22  # counts by set of hubs and label


def k_hop_matrices(
    adjacency: sparse.csr_array, radii: Sequence[int], start: int, stop: int
) -> Iterator[sparse.csr_array]:
    """For every radius the Boolean matrix of nodes within that distance, shape (stop - start, N).

    The balls are those of the nodes from `start` to `stop`. Every node is in its own, so self-loops
    change nothing.

    >>> path = sparse.csr_array([[0, 1, 0], [1, 0, 1], [0, 1, 0]], dtype=np.bool_)
    >>> [ball.toarray().astype(int).tolist() for ball in k_hop_matrices(path, (0, 1), 0, 2)]
    [[[1, 0, 0], [0, 1, 0]], [[1, 1, 0], [1, 1, 1]]]
    """
    n = adjacency.shape[0]
    identity = sparse.csr_array((np.ones(n, np.bool_), np.arange(n), np.arange(n + 1)), (n, n))
    step = adjacency + identity
    first, second = identity, step
    if (start, stop) != (0, n):  # slices are copies
        first, second = identity[start:stop], step[start:stop]
    ball = first
    for radius in range(max(radii) + 1):
        if radius:
            ball = second if radius == 1 else ball @ step
        if radius in radii:
            yield ball


def shells(balls: Iterable[sparse.csr_array]) -> Iterator[sparse.csr_array]:
    """The nodes at distance 0, 1, … exactly, from the balls of all radii from 0 on.

    >>> path = sparse.csr_array([[0, 1, 0], [1, 0, 1], [0, 1, 0]], dtype=np.bool_)
    >>> [each.toarray().tolist() for each in shells(k_hop_matrices(path, (0, 1), 0, 1))]
    [[[1, 0, 0]], [[0, 1, 0]]]
    """
    inside = None
    for ball in balls:
        count = ball.astype(np.int8)
        yield count if inside is None else count - inside
        inside = count


# -- as bits ------------------------------------------------------------------------------------


def n_words(node_offsets: Ints) -> Ints:
    """Words of a row of each graph, shape (G,)."""
    words: Ints = -(-np.diff(node_offsets) // BITS)
    return words


def list_k_hops(
    pointers: Ints, nodes: Ints, node_offsets: Ints, radii: tuple[int, ...], dtype: np.dtype[Any]
) -> tuple[NDArray[np.int64], Ints, NDArray[np.int64]]:
    """The nodes within every radius of every node: where rows begin, the nodes, the roots' places.

    `pointers` and `nodes` are the neighbours of every node of several graphs. Rows are interleaved
    by node, and their nodes ascend.

    >>> path = np.array([0, 1, 3, 4]), np.array([1, 0, 2, 1])
    >>> indptr, members, roots = list_k_hops(*path, np.array([0, 3]), (0, 1), np.dtype(np.int32))
    >>> np.split(members, indptr[1:-1])[-1].tolist(), members[roots].tolist()
    ([1, 2], [0, 0, 1, 1, 2, 2])
    """
    work = offsets(n_words(node_offsets) * np.diff(pointers[node_offsets]))
    blocks = [
        _Rows.of(pointers, nodes, node_offsets[first : last + 1], radii)
        for first, last in row_blocks(work)
    ]
    starts = offsets(np.array([each.indptr[-1] for each in blocks], dtype=np.int64))
    members = np.empty(starts[-1], dtype=dtype)
    indptr, roots = [np.zeros(1, np.int64)], [np.empty(0, np.int64)]
    for block, start, stop in zip(blocks, starts[:-1], starts[1:], strict=True):
        block.list_into(members[start:stop])
        indptr.append(block.indptr[1:] + start)
        roots.append(block.roots + start)
    return np.concatenate(indptr), members, np.concatenate(roots)


@dataclass(frozen=True)
class _Rows:
    """The balls around the nodes of some graphs."""

    words: NDArray[np.uint64]
    shifts: NDArray[np.int64]
    """What is added to the place of a bit among those of all words to get its node, by word."""
    indptr: NDArray[np.int64]
    roots: NDArray[np.int64]

    @staticmethod
    def of(pointers: Ints, nodes: Ints, node_offsets: Ints, radii: tuple[int, ...]) -> _Rows:
        first, last = int(node_offsets[0]), int(node_offsets[-1])
        sizes, width = np.diff(node_offsets), len(radii)
        lengths = np.repeat(n_words(node_offsets), sizes)  # of one row of every node
        starts = offsets(lengths)
        firsts = np.repeat(node_offsets[:-1], sizes)
        own, bits = np.divmod(np.arange(first, last) - firsts, BITS)
        bits = np.left_shift(np.uint64(1), bits.astype(_WORD))
        # Every word of a node is the union of its neighbours' words at the same place.
        owner = segment_ids(starts)
        places = np.arange(len(owner)) - starts[owner]
        degrees = np.diff(pointers[first : last + 1])[owner]
        unions = offsets(degrees)
        blocks = list(row_blocks(unions))

        def gather(start: int, stop: int) -> Ints:
            own, number = owner[start:stop], degrees[start:stop]
            neighbours = nodes[ranges(pointers[first:last][own], number)] - first
            words: Ints = starts[neighbours] + np.repeat(places[start:stop], number)
            return words

        kept = [gather(*block) for block in blocks] if len(blocks) == 1 else None
        ball = np.zeros(len(owner), dtype=_WORD)
        ball[starts[:-1] + own] = bits
        words = np.empty(width * len(ball), dtype=_WORD)
        rows, steps = width * starts[owner] + places, lengths[owner]
        for radius in range(max(radii) + 1):
            if radius:
                before = ball.copy()
                for number, (start, stop) in enumerate(blocks):
                    gathered = gather(start, stop) if kept is None else kept[number]
                    ends = unions[start : stop + 1] - unions[start]
                    ball[start:stop] |= segment_reduce(np.bitwise_or, before[gathered], ends)
            if radius in radii:
                words[rows + radii.index(radius) * steps] = ball
        lengths, firsts, own, bits = (
            np.repeat(each, width) for each in (lengths, firsts, own, bits)
        )
        starts = offsets(lengths)
        shifts = np.repeat(firsts - BITS * starts[:-1], lengths)
        ends = offsets(np.bitwise_count(words))
        own += starts[:-1]
        below = np.bitwise_count(words[own] & (bits - np.uint64(1)))
        return _Rows(words, shifts, ends[starts], ends[own] + below)

    def list_into(self, out: Ints) -> None:
        """Write the nodes of all rows."""
        done, size = 0, 8 * _HALF.itemsize
        halves = self.words.view(_HALF)  # fewer zeros to pass over than in whole words
        for start in range(0, len(halves), _HALVES_PER_BLOCK):
            block = halves[start : start + _HALVES_PER_BLOCK]
            filled = np.flatnonzero(block)
            block = block[filled]
            filled += start
            bits = np.unpackbits(block.view(np.uint8), bitorder="little").view(np.bool_)
            members = np.flatnonzero(bits)
            shifts = self.shifts[filled >> 1]
            shifts += size * (filled - np.arange(len(filled)))
            members += np.repeat(shifts, np.bitwise_count(block))
            out[done : done + len(members)] = members
            done += len(members)


# -- counted ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LabelCounts:
    """The labels within a distance of every node, counted.

    >>> star = sparse.csr_array([[0, 1, 1], [1, 0, 0], [1, 0, 0]], dtype=np.bool_)
    >>> counts = LabelCounts.of(star, labels=np.array([1, 0, 0]), n_labels=2)
    >>> counts.within(1, 0, 3).toarray().tolist(), counts.within(2, 1, 2).toarray().tolist()
    ([[2, 1], [1, 1], [1, 1]], [[2, 1]])
    """

    step: sparse.csr_array
    """Who is at most one edge away, shape (N, N)."""
    labels: sparse.csr_array
    """One label per node, shape (N, labels)."""
    around: sparse.csr_array
    """The labels of those who are at most one edge away from any hub of a set, shape (2^hubs,
    labels); bit i of the number of a row stands for hub i."""
    near: NDArray[np.int64]
    """The hubs at most one edge away from every node, as a number of such a row, shape (N,)."""
    reached: NDArray[np.int64]
    """The hubs from which every node is at most one edge away, in the same way."""
    others: sparse.csr_array
    """`step` without its columns of hubs."""

    @staticmethod
    def of(adjacency: sparse.csr_array, labels: Ints, n_labels: int) -> LabelCounts:
        """For nodes with `labels`, shape (N,)."""
        n = adjacency.shape[0]
        step = sparse.csr_array(adjacency + sparse.eye_array(n, dtype=np.bool_, format="csr"))
        ones = np.ones(n, dtype=np.int64)
        one_hot = sparse.csr_array((ones, labels, np.arange(n + 1)), shape=(n, n_labels))
        hubs = _hubs(np.diff(step.indptr), n_labels)
        bits = np.int64(1) << np.arange(len(hubs))
        near = np.asarray(step[:, hubs].astype(np.int64) @ bits)
        reached = np.asarray(step[hubs].astype(np.int64).T @ bits)
        # Summing over either value of every bit gives, for every set, those whose hubs are all in
        # it; the ones reached from a set are all but those whose hubs are outside.
        table = np.bincount(reached * n_labels + labels, minlength=n_labels << len(hubs))
        table = table.reshape(*(2,) * len(hubs), n_labels)
        for axis in range(len(hubs)):
            table = table.cumsum(axis)
        table = table.reshape(1 << len(hubs), n_labels)
        light = np.ones(n, dtype=np.bool_)
        light[hubs] = False
        kept = light[step.indices]
        others = sparse.csr_array(
            (
                step.data[kept],
                step.indices[kept],
                offsets(np.bincount(segment_ids(step.indptr)[kept], minlength=n)),
            ),
            shape=step.shape,
        )
        around = sparse.csr_array(table[-1] - table[::-1])
        return LabelCounts(step, one_hot, around, near, reached, others)

    def costs(self, radius: int) -> NDArray[np.int64]:
        """About how many entries it takes to count up to radius 2, shape (N,)."""
        sizes = np.diff(self.step.indptr).astype(np.int64)
        if radius < 2:
            return sizes if radius else np.ones_like(sizes)
        listed = self.others.astype(np.int64) @ sizes
        return np.asarray(listed + np.diff(self.around.indptr)[self.near])

    def within(self, radius: int, start: int, stop: int) -> sparse.csr_array:
        """The counts of the nodes from `start` to `stop`, shape (stop - start, labels)."""
        if radius == 0:
            return self.labels[start:stop]
        if radius != 2:
            ball = self.step[start:stop]
            for _ in range(radius - 1):
                ball = ball @ self.step
            return self._counted(ball)
        listed = sparse.csr_array(self.others[start:stop] @ self.step)
        nodes = segment_ids(listed.indptr)
        near = self.near[start:stop]
        new = (near[nodes] & self.reached[listed.indices]) == 0
        indptr = offsets(np.bincount(nodes[new], minlength=stop - start))
        listed = sparse.csr_array((listed.data[new], listed.indices[new], indptr), listed.shape)
        return sparse.csr_array(self._counted(listed) + self.around[near])

    def _counted(self, ball: sparse.csr_array) -> sparse.csr_array:
        return sparse.csr_array(ball.astype(np.int64) @ self.labels)


def _hubs(sizes: Ints, n_labels: int) -> NDArray[np.int64]:
    """Nodes of high degree: each saves its square, and doubles the table that they need."""
    most = max((_MAX_TABLE // max(n_labels, 1)).bit_length() - 1, 0)
    first = np.argsort(-sizes, kind="stable")[:most]
    saved = sizes[first].astype(np.float64) ** 2
    worthwhile = saved > n_labels * 2.0 ** np.arange(len(first))
    return np.sort(first[np.logical_and.accumulate(worthwhile)])
