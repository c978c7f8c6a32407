"""The paper's decomposition (EGNN): graphs made of ego graphs made of vertices."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from saen.arrays import offsets, row_blocks, segment_ids, segment_reduce, smallest_unsigned
from saen.decompositions.base import Decomposition, one_of, whole_numbers
from saen.decompositions.labels import (
    DIRECTIONS,
    LABELS,
    check_labels,
    resolve_labels,
    vertex_attributes,
)
from saen.graphs import Direction, Graphs
from saen.hierarchy import Hierarchy, Relation

ROLES = ("root", "elem")


@dataclass(frozen=True)
class Ego(Decomposition):
    """Ego graphs of every vertex and every radius.

    - level 0: vertices, told apart by `labels`: `node`, `degree`, `log-degree:b`, `attributes`, or
      several joined by commas; `auto` is `node` where the graphs have labels, else `degree`;
    - level 1: for every vertex v and every radius r the vertices within distance r of v, with role
      `root` for v itself and `elem` for the others; ego graph (v, i-th radius) is object
      v · len(radii) + i;
    - level 2: graphs, with the radius of each ego graph as its role.

    `direction` says which edges of a directed graph to follow (and to count in degrees).

    >>> triangle = Graphs.from_edge_lists([[(0, 1), (1, 2), (2, 0)]])
    >>> hierarchy = Ego(radii=(0, 1)).decompose(triangle)
    >>> hierarchy
    Hierarchy(3 vertices → 6 ego graphs → 1 graphs)
    >>> hierarchy.relations[0].matrix("elem").toarray()[1]  # radius 1 around vertex 0
    array([0, 1, 1])
    """

    name: ClassVar[str] = "ego"

    radii: tuple[int, ...] = field(default=(0, 1), metadata={"help": "radii of the ego graphs"})
    labels: str = field(default="auto", metadata={"help": LABELS})
    direction: Direction = field(default="both", metadata={"help": DIRECTIONS})

    def __post_init__(self) -> None:
        object.__setattr__(self, "radii", whole_numbers("radii", self.radii))
        one_of("direction", self.direction, ("both", "out", "in"))
        check_labels(self.labels)

    def fit(self, graphs: Graphs) -> Ego:
        """A copy with the labels resolved and the vocabulary of these graphs."""
        labels = resolve_labels(self.labels, graphs)
        attributes = vertex_attributes(graphs, labels, None, self.direction)
        return replace(self, labels=labels, vocabulary=attributes.vocabulary)

    def decompose(self, graphs: Graphs) -> Hierarchy:
        """The hierarchy of these graphs; with a fitted vocabulary, other labels are unseen."""
        labels = resolve_labels(self.labels, graphs)
        return Hierarchy(
            vertex_attributes(graphs, labels, self.vocabulary, self.direction),
            (self._ego_graphs(graphs), self._graphs(graphs)),
            ("vertices", "ego graphs", "graphs"),
        )

    def costs(self, graphs: Graphs) -> NDArray[np.int64]:
        """Upper bound of the entries of R_1 per graph, shape (G,)."""
        adjacency = graphs.adjacency(self.direction)
        size = np.repeat(graphs.sizes, graphs.sizes).astype(np.float64)
        ball = np.ones(graphs.n_nodes)
        total = np.zeros(graphs.n_nodes)
        for radius in range(max(self.radii) + 1):
            if radius == 1:
                ball = np.minimum(1.0 + np.diff(adjacency.indptr), size)
            elif radius > 1:
                ball = np.minimum(ball + adjacency.astype(np.float32) @ ball, size)
            if radius in self.radii:
                total += ball
        return segment_reduce(np.add, total, graphs.node_offsets).astype(np.int64)

    def _ego_graphs(self, graphs: Graphs) -> Relation:
        """R_1: vertices within every radius of every vertex, rows interleaved by vertex."""
        balls = _balls(graphs.adjacency(self.direction), self.radii)
        n, width = graphs.n_nodes, len(self.radii)
        lengths = np.column_stack([np.diff(ball.indptr) for ball in balls])
        indptr = offsets(lengths.ravel())
        starts = indptr[:-1].reshape(n, width)
        parts = np.empty(indptr[-1], dtype=np.int32 if n < 2**31 else np.int64)
        roles = np.ones(indptr[-1], dtype=np.uint8)  # elem
        for i, ball in enumerate(balls):
            # In blocks, because fresh memory for whole-length temporaries costs more than the work.
            for first, last in row_blocks(ball.indptr):
                own = ball.indptr[first : last + 1]
                # The i-th ball of a vertex moves as a whole to its place among the vertex's balls.
                shift = np.repeat(starts[first:last, i] - own[:-1], lengths[first:last, i])
                place = shift + np.arange(own[0], own[-1])
                members = ball.indices[own[0] : own[-1]]
                parts[place] = members
                roots = members == first + segment_ids(own - own[0])
                roles[place[roots]] = 0  # root
        return Relation(indptr, parts, roles, ROLES, n)

    def _graphs(self, graphs: Graphs) -> Relation:
        """R_2: every ego graph belongs to its graph with its radius as role."""
        n_egos = graphs.n_nodes * len(self.radii)
        width = smallest_unsigned(len(self.radii) - 1)
        roles = np.tile(np.arange(len(self.radii)).astype(width), graphs.n_nodes)
        names = tuple(f"radius {radius}" for radius in self.radii)
        indptr = graphs.node_offsets * len(self.radii)
        return Relation(indptr, np.arange(n_egos, dtype=np.int64), roles, names, n_egos)


def _balls(adjacency: sparse.csr_array, radii: tuple[int, ...]) -> list[sparse.csr_array]:
    """For every radius the Boolean matrix of vertices within that distance, shape (N, N).

    Every vertex is in its own ball, so self-loops change nothing.
    """
    identity = sparse.eye_array(adjacency.shape[0], dtype=np.bool_, format="csr")
    step = sparse.csr_array(adjacency + identity)
    balls, ball = [], identity
    for radius in range(max(radii) + 1):
        if radius:
            ball = step if radius == 1 else sparse.csr_array(ball @ step)
        if radius in radii:
            balls.append(ball)
    return balls
