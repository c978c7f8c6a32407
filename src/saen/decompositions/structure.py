"""What graphs themselves say of their nodes: cores, triangles, rings, and distances to hubs."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeVar
from weakref import finalize

import numpy as np
from numpy.typing import NDArray

from saen._util.arrays import Array, offsets, ranges, row_blocks, segment_ids, segment_reduce
from saen._util.lazy import sparse
from saen.data.graphs import Graphs

MAX_RING = 8
"""Edges of the longest cycles that count as rings: longer ones hold their nodes loosely."""
ENTRIES_PER_BLOCK = 16
"""Times `BLOCK`, because every product of matrices also passes once over all columns."""
MAX_HUB_DISTANCE = 6
"""Nodes that are farther from a hub than this are as far as that."""


Labels = TypeVar("Labels")


def _once(labels_of: Callable[[Graphs], Labels]) -> Callable[[Graphs], Labels]:
    """The same function, which keeps what it found while the graphs are in memory.

    Fitting a decomposition asks for labels, and so does applying it, and so does the next one.
    """
    known: dict[int, Labels] = {}

    @wraps(labels_of)
    def kept(graphs: Graphs) -> Labels:
        key = id(graphs)
        if key not in known:
            found = labels_of(graphs)
            finalize(graphs, known.pop, key, None)
            known[key] = found
        return known[key]

    return kept


@_once
def core_numbers(graphs: Graphs) -> NDArray[np.int64]:
    """The largest k such that a node is in a subgraph of degrees at least k, shape (N,).

    Loops are left out, and directed graphs are taken as undirected ones.

    >>> core_numbers(Graphs.from_edge_lists([[(0, 1), (1, 2), (2, 0), (2, 3)]])).tolist()
    [2, 2, 2, 1]
    """
    near = graphs.without_loops().adjacency()
    lengths = np.diff(near.indptr)
    degrees = lengths.astype(np.int64)  # in what is left of the graphs
    core = np.zeros(graphs.n_nodes, dtype=np.int64)
    left = np.ones(graphs.n_nodes, dtype=np.bool_)
    rest = np.arange(graphs.n_nodes)
    while len(rest):
        k = degrees[rest].min()
        peeled = rest[degrees[rest] == k]
        while len(peeled):
            core[peeled] = k
            left[peeled] = False
            fallen = []
            for first, last in row_blocks(offsets(lengths[peeled])):
                block = peeled[first:last]
                touched = near.indices[ranges(near.indptr[block], lengths[block])]
                np.subtract.at(degrees, touched, 1)
                fallen.append(touched[left[touched] & (degrees[touched] <= k)])
            peeled = np.unique(np.concatenate(fallen))
        rest = rest[left[rest]]
    return core


@_once
def triangle_counts(graphs: Graphs) -> NDArray[np.int64]:
    """The number of triangles through every node, shape (N,).

    Loops are left out, and directed graphs are taken as undirected ones.

    >>> triangle_counts(Graphs.from_edge_lists([[(0, 1), (1, 2), (2, 0), (2, 3)]])).tolist()
    [1, 1, 1, 0]
    """
    near = graphs.without_loops().adjacency().astype(np.int32)
    degrees = np.diff(near.indptr).astype(np.int64)
    rows, columns = segment_ids(near.indptr), near.indices
    # Edges lead from the end of higher degree to the other: a triangle is then two of them from its
    # highest node u, to v and w, and the edge vw, found once from either side. Paths u, v, w
    # are no more than the smaller degrees of all edges' ends together.
    down = np.where(
        degrees[rows] == degrees[columns], rows > columns, degrees[rows] > degrees[columns]
    )
    edges = _kept(near, down)
    reached = np.minimum(edges @ degrees, np.repeat(graphs.sizes, graphs.sizes))
    counts = np.zeros(graphs.n_nodes, dtype=np.int64)
    for first, last in row_blocks(offsets(reached) // ENTRIES_PER_BLOCK):
        block = edges[first:last]
        closed = sparse.csr_array((block @ near).multiply(block))
        counts[first:last] += closed.sum(axis=1) // 2
        np.add.at(counts, closed.indices, closed.data)
    return counts


@_once
def ring_labels(graphs: Graphs) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Of every node the length of the shortest ring through it, and its number of ring edges.

    Both have shape (N,), and are 0 for a node of no ring; rings have at most `MAX_RING` edges.
    Neighbourhoods do not see them: from a node of a ring of six equal ones, however deep one looks,
    everything is as from one of a ring of seven. Loops are left out, and directed graphs are taken
    as undirected ones.

    >>> square = Graphs.from_edge_lists([[(0, 1), (1, 2), (2, 3), (3, 0), (3, 4)]])
    >>> [column.tolist() for column in ring_labels(square)]
    [[4, 4, 4, 4, 0], [2, 2, 2, 2, 0]]
    """
    near, inside = graphs.without_loops().adjacency(), core_numbers(graphs) >= 2
    near = _kept(near, inside[segment_ids(near.indptr)] & inside[near.indices])  # all cycles
    lengths = _ring_lengths(near, np.repeat(graphs.sizes, graphs.sizes))
    shortest = segment_reduce(np.minimum, np.where(lengths, lengths, MAX_RING + 1), near.indptr)
    edges = np.add.reduceat(np.append(lengths > 0, False), near.indptr[:-1], dtype=np.int64)
    alone = (np.diff(near.indptr) == 0) | (shortest > MAX_RING)
    return np.where(alone, 0, shortest), np.where(alone, 0, edges)


def _kept(matrix: sparse.csr_array, keep: NDArray[np.bool_]) -> sparse.csr_array:
    """The matrix with these of its entries."""
    rows = segment_ids(matrix.indptr)[keep]
    indptr = offsets(np.bincount(rows, minlength=matrix.shape[0]))
    return sparse.csr_array((matrix.data[keep], matrix.indices[keep], indptr), shape=matrix.shape)


def _ring_lengths(near: sparse.csr_array, sizes: Array) -> NDArray[np.int64]:
    """The length of the shortest ring through every entry of a symmetric matrix, 0 for none.

    `sizes` are those of the nodes' graphs, (N,).
    """
    rows, columns = segment_ids(near.indptr), near.indices
    lengths = np.where(_in_triangles(near), 3, 0)
    # Of the others, both directions have one ring: it is looked for from the end of lower degree.
    degrees = np.diff(near.indptr)
    down = (degrees[rows] < degrees[columns]) | (
        (degrees[rows] == degrees[columns]) & (rows < columns)
    )
    open_edges = np.flatnonzero(down & (lengths == 0))
    reached = np.ones(len(sizes))  # nodes at the ends of walks, at most
    for _ in range(MAX_RING - 1):
        reached = np.minimum(near @ reached, sizes)
    bound = reached[rows[open_edges]].astype(np.int64)
    for first, last in row_blocks(offsets(bound) // ENTRIES_PER_BLOCK):
        block = open_edges[first:last]
        lengths[block] = _returns(near, rows[block], columns[block])
    both = sparse.csr_array((lengths, columns, near.indptr), shape=near.shape)
    found: NDArray[np.int64] = np.maximum(lengths, sparse.csr_array(both.T).data)
    return found


def _in_triangles(near: sparse.csr_array) -> NDArray[np.bool_]:
    """Whether an entry is the side of a triangle."""
    counts = near.astype(np.int32)
    inside = np.zeros(len(near.indices), dtype=np.bool_)
    for first, last in row_blocks(offsets(near @ np.diff(near.indptr)) // ENTRIES_PER_BLOCK):
        block = counts[first:last]
        sides = sparse.csr_array(block + (block @ counts).multiply(block))  # 1 + its triangles
        sides.sort_indices()
        inside[near.indptr[first] : near.indptr[last]] = sides.data > 1
    return inside


def _returns(near: sparse.csr_array, starts: Array, ends: Array) -> NDArray[np.int64]:
    """The lengths of the shortest rings through edges from `starts` to `ends`, both (k,)."""
    lengths = np.zeros(len(starts), dtype=np.int64)
    left = np.arange(len(starts))
    reached = near[starts]
    for length in range(2, MAX_RING + 1):
        # Walks from the start of `length - 1` steps. One that comes back to its start is cut off
        # there, so that none takes the edge itself but for the first step.
        row = segment_ids(reached.indptr)
        at_end = reached.indices == ends[left[row]]
        if length > 2:
            lengths[left[row[at_end]]] = length
        open_rows = np.flatnonzero(lengths[left] == 0)
        keep = (reached.indices != starts[left[row]]) & ~at_end
        reached = _kept(reached, keep)[open_rows]
        left = left[open_rows]
        if length < MAX_RING:
            reached = reached @ near
    return lengths


@_once
def hub_distances(graphs: Graphs) -> NDArray[np.int64]:
    """The distance of every node to the nearest hub, at most `MAX_HUB_DISTANCE`, shape (N,).

    The hubs of a component are its nodes of highest degree. Loops are left out, and directed graphs
    are taken as undirected ones.

    >>> star = Graphs.from_edge_lists([[(0, 1), (0, 2), (0, 3), (3, 4)]])
    >>> hub_distances(star).tolist()
    [0, 1, 1, 1, 2]
    """
    near = graphs.without_loops().adjacency()
    degrees = np.diff(near.indptr)
    n_components, component = sparse.csgraph.connected_components(near, directed=False)
    highest = np.zeros(n_components, dtype=degrees.dtype)
    np.maximum.at(highest, component, degrees)
    distances = np.full(graphs.n_nodes, MAX_HUB_DISTANCE)
    place = np.empty(graphs.n_nodes, dtype=near.indices.dtype)
    reached = np.flatnonzero(degrees == highest[component])
    distances[reached] = 0
    for distance in range(1, MAX_HUB_DISTANCE):
        around = near.indices[ranges(near.indptr[reached], degrees[reached])]
        around = around[distances[around] > distance]
        place[around] = np.arange(len(around))
        reached = around[place[around] == np.arange(len(around))]  # each node once
        distances[reached] = distance
    return distances
