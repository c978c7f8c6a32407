"""Pairs of nodes by their distance: what the shortest-path kernel counts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from saen._util.arrays import Ints, index_dtype, offsets, segment_ids, smallest_unsigned
from saen.data.graphs import Direction, Graphs
from saen.data.hierarchy import Hierarchy, Relation
from saen.decompositions.base import Anchors, integer
from saen.decompositions.ego import Ego
from saen.decompositions.graph_base import GraphDecomposition
from saen.decompositions.k_hop import k_hop_matrices, shells
from saen.decompositions.node_labels import DIRECTION_HELP, LABELS_HELP


@dataclass(frozen=True)
class Pairs(GraphDecomposition):
    """Pairs of nodes at every distance up to `max_distance`.

    - level 0: nodes, distinguished by `node_labels` (see `Ego`);
    - level 1: for every two nodes with a shortest path of at most `max_distance` edges the pair of
      them, both with role `end`; and every node alone, at distance 0. Where `direction` gives the
      paths of a directed graph one direction, they have the roles `from` and `to`;
    - level 2: graphs, with the distance as the role of each pair.

    Counted, these are the features of the shortest-path kernel (Borgwardt and Kriegel, 2005), and
    of molecules the atom pairs of Carhart, Smith and Venkataraghavan (1985). They tell what lies
    far apart, where neighbourhoods see all that lies near.

    A graph of n nodes has up to n² / 2 pairs: keep `max_distance` small for large graphs.

    >>> path = Graphs.from_edge_lists([[(0, 1), (1, 2)]])
    >>> hierarchy = Pairs(max_distance=2).decompose(path)
    >>> hierarchy
    Hierarchy(3 nodes → 6 pairs → 1 graphs)
    >>> hierarchy.relations[1].matrix("distance 2").sum()
    np.int64(1)
    """

    name: ClassVar[str] = "pairs"
    graded: ClassVar[bool] = True

    max_distance: int = field(default=4, metadata={"help": "maximum distance of two nodes"})
    node_labels: str = field(default="auto", metadata={"help": LABELS_HELP})
    direction: Direction = field(default="both", metadata={"help": DIRECTION_HELP})

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "max_distance", integer("max_distance", self.max_distance, 0))

    def decompose(self, graphs: Graphs) -> Hierarchy:
        """The hierarchy of these graphs; with a fitted vocabulary, other labels are unseen."""
        bottom, n = self.bottom(graphs), graphs.n_nodes
        first, second, distance = self._pairs(graphs)
        n_pairs, apart = len(first), distance > 0
        indptr = offsets(1 + apart)
        parts = np.empty(indptr[-1], dtype=index_dtype(n))
        parts[indptr[:-1]] = first
        parts[indptr[1:][apart] - 1] = second[apart]
        roles = np.zeros(len(parts), dtype=np.uint8)
        if self._ordered(graphs):
            roles[indptr[1:][apart] - 1] = 1
        top = Relation(
            np.searchsorted(first, graphs.node_offsets),
            np.arange(n_pairs, dtype=index_dtype(n_pairs)),
            distance.astype(smallest_unsigned(self.max_distance)),
            tuple(f"distance {length}" for length in range(self.max_distance + 1)),
            n_pairs,
        )
        names = ("from", "to") if self._ordered(graphs) else ("end",)
        ends = Relation(indptr, parts, roles, names, n)
        return Hierarchy(bottom, (ends, top), ("nodes", "pairs", "graphs"))

    def anchors(self, graphs: Graphs) -> Anchors:
        """Pairs are centred on no node."""
        return self.node_anchors(graphs, None, None)

    def costs(self, graphs: Graphs) -> NDArray[np.int64]:
        """Upper bound of the entries of R_1 per graph, shape (G,)."""
        balls = Ego((self.max_distance,), direction=self.direction).costs(graphs)
        return balls * (2 if self._ordered(graphs) else 1)  # both ends of a pair, from one or each

    def _ordered(self, graphs: Graphs) -> bool:
        """Whether the two ends of a pair are told apart."""
        return graphs.directed and self.direction != "both"

    def _pairs(self, graphs: Graphs) -> tuple[Ints, Ints, Ints]:
        """First node, second node and distance of all pairs, by their first node."""
        radii = range(self.max_distance + 1)
        balls = k_hop_matrices(graphs.adjacency(self.direction), radii, 0, graphs.n_nodes)
        none: Ints = np.empty(0, dtype=np.int64)
        columns = [(none, none, none)]
        for distance, sphere in enumerate(shells(balls)):
            if sphere.nnz == 0:  # nobody is that far apart, or farther
                break
            first, second = segment_ids(sphere.indptr), sphere.indices
            if not self._ordered(graphs):
                once = first <= second
                first, second = first[once], second[once]
            columns.append((first, second, np.full(len(first), distance)))
        first, second, distances = map(np.concatenate, zip(*columns, strict=True))
        order = np.argsort(first, kind="stable")
        return first[order], second[order], distances[order]
