"""The nodes within a distance of every node, as bits: a row of a graph's nodes for every ball.

A step outwards is the union of the neighbours' balls, 64 nodes at a time. What is held before the
nodes are listed is a bit per pair of nodes of a graph, so that nothing large is made but the list.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from saen._util.arrays import Ints, offsets, ranges, row_blocks, segment_ids, segment_reduce

BITS = 64
_WORD, _HALF = np.dtype("<u8"), np.dtype("<u4")
_HALVES_PER_BLOCK = 1 << 14  # listed at a time: half a megabyte of bits as bytes


def n_words(node_offsets: Ints) -> Ints:
    """Words of a row of each graph, shape (G,)."""
    words: Ints = -(-np.diff(node_offsets) // BITS)
    return words


def list_balls(
    pointers: Ints, nodes: Ints, node_offsets: Ints, radii: tuple[int, ...], dtype: np.dtype[Any]
) -> tuple[NDArray[np.int64], Ints, NDArray[np.int64]]:
    """The nodes within every radius of every node: where rows begin, the nodes, the roots' places.

    `pointers` and `nodes` are the neighbours of every node of several graphs. Rows are interleaved
    by node, and their nodes ascend.

    >>> path = np.array([0, 1, 3, 4]), np.array([1, 0, 2, 1])
    >>> indptr, members, roots = list_balls(*path, np.array([0, 3]), (0, 1), np.dtype(np.int32))
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
        neighbours = nodes[ranges(pointers[first:last][owner], degrees)] - first
        unions, gathered = offsets(degrees), starts[neighbours] + np.repeat(places, degrees)
        ball = np.zeros(len(owner), dtype=_WORD)
        ball[starts[:-1] + own] = bits
        words = np.empty(width * len(ball), dtype=_WORD)
        rows, steps = width * starts[owner] + places, lengths[owner]
        for radius in range(max(radii) + 1):
            if radius:
                ball |= segment_reduce(np.bitwise_or, ball[gathered], unions)
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
            nodes = np.flatnonzero(bits)
            shifts = self.shifts[filled >> 1]
            shifts += size * (filled - np.arange(len(filled)))
            nodes += np.repeat(shifts, np.bitwise_count(block))
            out[done : done + len(nodes)] = nodes
            done += len(nodes)
