"""Who is within a distance of every node, and who is exactly that far away, as sparse matrices."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from saen._util.lazy import sparse


def ball_matrices(
    adjacency: sparse.csr_array, radii: Sequence[int], start: int, stop: int
) -> Iterator[sparse.csr_array]:
    """For every radius the Boolean matrix of nodes within that distance, shape (stop - start, N).

    The balls are those of the nodes from `start` to `stop`. Every node is in its own, so self-loops
    change nothing.

    >>> path = sparse.csr_array([[0, 1, 0], [1, 0, 1], [0, 1, 0]], dtype=np.bool_)
    >>> [ball.toarray().astype(int).tolist() for ball in ball_matrices(path, (0, 1), 0, 2)]
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


def spheres(balls: Iterable[sparse.csr_array]) -> Iterator[sparse.csr_array]:
    """The nodes at distance 0, 1, … exactly, from the balls of all radii from 0 on.

    >>> path = sparse.csr_array([[0, 1, 0], [1, 0, 1], [0, 1, 0]], dtype=np.bool_)
    >>> [each.toarray().tolist() for each in spheres(ball_matrices(path, (0, 1), 0, 1))]
    [[[1, 0, 0]], [[0, 1, 0]]]
    """
    inside = None
    for ball in balls:
        count = ball.astype(np.int8)
        yield count if inside is None else count - inside
        inside = count
