"""How often every label occurs within a distance of every node, without listing who is there.

A ball of radius 2 around a neighbour of a hub holds all neighbours of the hub, so listing the balls
around them takes time and memory quadratic in the degree of the hub. What one hub or several have
around them is counted once for every set of hubs instead, and only who is reached otherwise is
listed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from saen._util.arrays import Ints, offsets, segment_ids
from saen._util.lazy import sparse

_MAX_TABLE = 1 << 22  # counts by set of hubs and label


@dataclass(frozen=True)
class BallCounts:
    """The labels within a distance of every node, counted.

    >>> star = sparse.csr_array([[0, 1, 1], [1, 0, 0], [1, 0, 0]], dtype=np.bool_)
    >>> counts = BallCounts.of(star, labels=np.array([1, 0, 0]), n_labels=2)
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
    def of(adjacency: sparse.csr_array, labels: Ints, n_labels: int) -> BallCounts:
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
        return BallCounts(step, one_hot, around, near, reached, others)

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
