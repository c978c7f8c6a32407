"""The paper's decomposition (EGNN): graphs made of ego graphs made of nodes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from saen._util.arrays import (
    Ints,
    index_dtype,
    offsets,
    ranges,
    row_blocks,
    segment_ids,
    segment_reduce,
    smallest_unsigned,
)
from saen._util.lazy import sparse
from saen.data.chunks import MIN_ENTRY_BYTES, Cut, physical_memory
from saen.data.graphs import Direction, Graphs
from saen.data.hierarchy import Attributes, Hierarchy, Relation
from saen.data.identical import merge_objects
from saen.data.vocabulary import Vocabulary
from saen.decompositions.base import FITTED, Anchors, distinct_integers
from saen.decompositions.edge_roles import EDGES_HELP, KnownLinks
from saen.decompositions.graph_base import GraphDecomposition
from saen.decompositions.k_hop import LabelCounts, k_hop_matrices, list_k_hops, n_words, shells
from saen.decompositions.node_labels import (
    DIRECTION_HELP,
    LABELS_HELP,
    rooted_attributes,
    uses_distance,
)

ROLES = ("root", "elem")
MAX_DENSE = 64
"""Nodes up to which their distances are a dense matrix: making a sparse one takes longer."""
MIN_PER_WORD = 7
"""Nodes in a ball, per 64 of its graph, from which on bits are faster than a sparse matrix."""
MAX_SAMPLED_GRAPHS = 1 << 8
"""Graphs, at most, whose balls are estimated to choose between the two."""


@dataclass(frozen=True)
class Ego(GraphDecomposition):
    """Ego graphs of every node and every radius.

    - level 0: nodes, distinguished by `node_labels`: `node`, `degree`, `core`, `triangles` (these
      three also in bins: `log-degree:b` …), `rings`, `hub`, `attributes`, `distance` (to the root:
      the objects are then nodes at a distance), or several joined by commas; `auto` is `node`
      where the graphs have labels, else `log-degree:4`, with `attributes` if there are any;
    - level 1: for every node v and every radius r the nodes within distance r of v, with role
      `root` for v itself and `elem` for the others; ego graph (v, i-th radius) is object
      v · len(radii) + i;
    - level 2: graphs, with the radius of each ego graph as its role.

    `direction` says which edges of a directed graph to follow (and to count in degrees).

    `edges="roles"` gives the neighbours of the root the role `elem KIND` by the label and, in
    directed graphs followed both ways, the direction of their edge; kinds that `fit` did not see
    are left out, and graphs without edge labels and directions are decomposed as with `none`.
    `edges="objects"` adds the edges to level 0, after the nodes; those between the nodes of
    an ego graph, loops included, are its parts with role `edge`.

    >>> triangle = Graphs.from_edge_lists([[(0, 1), (1, 2), (2, 0)]])
    >>> hierarchy = Ego(radii=(0, 1)).decompose(triangle)
    >>> hierarchy
    Hierarchy(3 nodes → 6 ego graphs → 1 graphs)
    >>> hierarchy.relations[0].matrix("elem").toarray()[1]  # radius 1 around node 0
    array([0, 1, 1])
    """

    name: ClassVar[str] = "ego"
    graded: ClassVar[bool] = True

    radii: tuple[int, ...] = field(default=(0, 1), metadata={"help": "radii of the ego graphs"})
    node_labels: str = field(default="auto", metadata={"help": LABELS_HELP})
    direction: Direction = field(default="both", metadata={"help": DIRECTION_HELP})
    edges: str = field(default="none", metadata={"help": EDGES_HELP})
    kinds: Vocabulary | None = field(default=None, kw_only=True, metadata=FITTED)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "radii", distinct_integers("radii", self.radii))

    def decompose(self, graphs: Graphs) -> Hierarchy:
        """The hierarchy of these graphs; once fitted, other labels and kinds of edge are unseen."""
        links = self._links(graphs)
        simple = self.edges != "objects" and not uses_distance(self.node_labels)
        once = links is None or not graphs.directed or self.direction != "both"
        if simple and once and graphs.n_nodes <= MAX_DENSE:
            bottom, egos = self.bottom(graphs), self._few_ego_graphs(graphs, links)
        elif simple and links is None:
            bottom, egos = self.bottom(graphs), self._ego_graphs(graphs)
        else:
            bottom, egos = self._detailed(graphs, links, 0, graphs.n_nodes)
        relations = (egos, by_radius(graphs, self.radii))
        return Hierarchy(bottom, relations, self._names())

    def cut(self, graphs: Graphs) -> Cut | None:
        """One graph in chunks of its nodes, unless distances are labels.

        Where the parts are nodes by label alone, they are counted (see `LabelCounts`). Graphs whose
        ego graphs would not fit into memory even then are not cut.
        """
        if len(graphs) != 1 or uses_distance(self.node_labels):
            return None
        bottom, inverse, _ = merge_objects(self.bottom(graphs))
        costs = self._root_costs(graphs).astype(np.int64)
        held = np.minimum(costs, len(bottom) * len(self.radii)).sum(dtype=np.float64)
        if held * MIN_ENTRY_BYTES > physical_memory():
            return None
        links = self._links(graphs)
        if links is None and self.edges != "objects":
            counts = LabelCounts.of(graphs.adjacency(self.direction), inverse, len(bottom))
            if max(self.radii) <= 2:
                costs = sum(map(counts.costs, self.radii), np.zeros_like(costs))

            def relations(start: int, stop: int) -> tuple[Relation]:
                return (_counted(counts, self.radii, start, stop),)
        else:

            def relations(start: int, stop: int) -> tuple[Relation]:
                _, egos = self._detailed(graphs, links, start, stop)
                return (egos.with_parts(inverse[egos.parts], len(bottom)),)

        top = by_radius(graphs, self.radii)
        return Cut(bottom, inverse, costs, relations, np.arange(top.n_parts), top, self._names())

    def _links(self, graphs: Graphs) -> KnownLinks | None:
        """Links by kind, where their kinds are roles."""
        if not self.reads_kinds:
            return None
        return KnownLinks.of(self.with_kinds(graphs), self.direction, self.kinds)

    def _names(self) -> tuple[str, ...]:
        return (self.bottom_name(), "ego graphs", "graphs")

    def anchors(self, graphs: Graphs) -> Anchors:
        """Ego graphs are centred on their roots; a node at a distance is that node."""
        roots = np.repeat(np.arange(graphs.n_nodes), len(self.radii))
        return self.node_anchors(graphs, roots, None)

    def costs(self, graphs: Graphs) -> NDArray[np.int64]:
        """Upper bound of the entries of R_1 per graph, shape (G,)."""
        if max(self.radii) <= 1 and self.edges == "none" and not graphs.directed:
            near: NDArray[np.int64] = np.diff(graphs.indptr[graphs.node_offsets])
            return graphs.sizes * len(self.radii) + near * int(1 in self.radii)
        costs = self._root_costs(graphs)
        return segment_reduce(np.add, costs, graphs.node_offsets).astype(np.int64)

    def _root_costs(self, graphs: Graphs) -> NDArray[np.float64]:
        """The same per node, shape (N,)."""
        pointers, nodes = graphs.neighbours(self.direction)
        near = np.diff(pointers)
        twice = graphs.directed and self.reads_kinds  # neighbours both ways
        ball = np.ones(graphs.n_nodes)
        total = np.zeros(graphs.n_nodes)
        for radius in range(max(self.radii) + 1):
            if radius == 1:
                ball = 1.0 + near
            elif radius > 1:
                reached = ball + segment_reduce(np.add, ball[nodes], pointers)
                ball = np.minimum(reached, np.repeat(graphs.sizes, graphs.sizes))
            if radius in self.radii:
                total += ball
                if self.edges == "objects":
                    total += _max_edges(graphs, ball)
                elif twice and radius:
                    total += graphs.degrees(self.direction) - near
        return total

    def _few_ego_graphs(self, graphs: Graphs, links: KnownLinks | None) -> Relation:
        """R_1 of few nodes, from the matrix of their distances; links join a pair once."""
        n = graphs.n_nodes
        pointers, nodes = graphs.neighbours(self.direction)
        ball, step = np.eye(n, dtype=np.float32), np.eye(n, dtype=np.float32)
        step[segment_ids(pointers), nodes] = 1
        distances = (ball == 0).astype(np.int64)  # the number of balls that a node is not in
        roles = distances.copy()
        for _ in range(max(self.radii)):
            ball = np.minimum(ball @ step, 1)
            distances += ball == 0
        if links is not None:
            distances[distances == 1] = max(self.radii) + 1  # kinds that are not known
            distances[links.nodes, links.neighbours] = 1
            roles[links.nodes, links.neighbours] = len(ROLES) + links.codes
        within = distances[:, None] <= np.array(self.radii)[:, None]
        roots, _, parts = within.nonzero()
        alphabet = ROLES if links is None else ROLES + links.roles
        return Relation(
            offsets(within.sum(axis=2).ravel()),
            parts,
            roles[roots, parts].astype(smallest_unsigned(len(alphabet) - 1)),
            alphabet,
            n,
        )

    def _ego_graphs(self, graphs: Graphs) -> Relation:
        """R_1: nodes within every radius of every node, rows interleaved by node."""
        n, width = graphs.n_nodes, len(self.radii)
        proper = graphs.without_loops()
        if max(self.radii) > 1 and self._fills_words(graphs):
            near = proper.neighbours(self.direction)
            indptr, parts, roots = list_k_hops(
                *near, graphs.node_offsets, self.radii, index_dtype(n)
            )
            others = np.ones(len(parts), dtype=np.bool_)
            others[roots] = False
            return Relation(indptr, parts, others.view(np.uint8), ROLES, n)
        around: dict[int, tuple[Ints, Ints]] = {}
        if 1 in self.radii:
            around[self.radii.index(1)] = proper.neighbours(self.direction)
        far = [radius for radius in self.radii if radius > 1]
        if far:
            balls = k_hop_matrices(proper.adjacency(self.direction), far, 0, n)
            for radius, ball in zip(far, balls, strict=True):
                around[self.radii.index(radius)] = _without_roots(ball)
        lengths = np.ones((n, width), dtype=np.int64)
        for place, (pointers, _) in around.items():
            lengths[:, place] += np.diff(pointers)
        indptr = offsets(lengths.ravel())
        others = np.ones(indptr[-1], dtype=np.bool_)
        others[indptr[:-1]] = False
        parts = np.empty(indptr[-1], dtype=index_dtype(n))
        parts[indptr[:-1]] = np.repeat(np.arange(n, dtype=parts.dtype), width)
        for place, (pointers, members) in around.items():
            if len(around) == 1:
                parts[others] = members
                continue
            starts = indptr[:-1].reshape(n, width)[:, place] + 1
            # In blocks, because fresh memory for whole-length temporaries costs more than the work.
            for first, last in row_blocks(pointers):
                own = pointers[first : last + 1]
                parts[ranges(starts[first:last], np.diff(own))] = members[own[0] : own[-1]]
        return Relation(indptr, parts, others.view(np.uint8), ROLES, n)  # root: 0, elem: 1

    def _fills_words(self, graphs: Graphs) -> bool:
        """Whether balls are large parts of their graphs, by the bounds of some of the graphs."""
        sample = graphs[:: len(graphs) // MAX_SAMPLED_GRAPHS + 1]
        entries = self._root_costs(sample).sum() / max(sample.n_nodes, 1) * graphs.n_nodes
        words = int(graphs.sizes @ n_words(graphs.node_offsets)) * len(self.radii)
        return bool(entries >= MIN_PER_WORD * words)

    def _detailed(
        self, graphs: Graphs, links: KnownLinks | None, start: int, stop: int
    ) -> tuple[Attributes, Relation]:
        """Bottom and R_1 where neighbours have kinds, edges are parts, or distances are labels.

        The ego graphs are those of the nodes from `start` to `stop`.
        """
        balls = self._all_k_hops(graphs, start, stop)
        alphabet = ROLES if links is None else ROLES + links.roles
        runs: list[_Run] = []
        for distance, sphere in enumerate(shells(balls)):
            places = [place for place, radius in enumerate(self.radii) if radius >= distance]
            if links is not None and distance == 1:
                own = slice(*np.searchsorted(links.nodes, [start, stop]))
                near = offsets(np.bincount(links.nodes[own] - start, minlength=stop - start))
                kinds = len(ROLES) + links.codes[own]
                runs += [_Run(p, near, links.neighbours[own], kinds, 1) for p in places]
            else:
                role = min(distance, 1)
                runs += [_Run(p, sphere.indptr, sphere.indices, role, distance) for p in places]
        if self.edges == "objects":
            alphabet = (*ROLES, "edge")
            for place, radius in enumerate(self.radii):
                pointers, edges = _induced(balls[radius], graphs)
                runs.append(_Run(place, pointers, graphs.n_nodes + edges, len(ROLES), 0))
        indptr, parts, roles, distances = _interleaved(runs, stop - start, len(self.radii))
        if uses_distance(self.node_labels):
            bottom, parts = rooted_attributes(
                graphs,
                self.node_labels,
                self.vocabulary,
                self.direction,
                parts,
                distances,
                self.node_bins,
            )
        else:
            bottom = self.bottom(graphs)
        width = smallest_unsigned(len(alphabet) - 1)
        return bottom, Relation(indptr, parts, roles.astype(width), alphabet, len(bottom))

    def distances(self, graphs: Graphs) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """All pairs of a node and its distance from some root, each once."""
        balls = self._all_k_hops(graphs, 0, graphs.n_nodes)
        nodes = [np.flatnonzero(np.bincount(sphere.indices)) for sphere in shells(balls)]
        return np.concatenate(nodes), segment_ids(offsets(np.array(list(map(len, nodes)))))

    def _all_k_hops(self, graphs: Graphs, start: int, stop: int) -> list[sparse.csr_array]:
        """The balls of every radius up to the largest."""
        radii = tuple(range(max(self.radii) + 1))
        return list(k_hop_matrices(graphs.adjacency(self.direction), radii, start, stop))


def by_radius(graphs: Graphs, radii: tuple[int, ...]) -> Relation:
    """R_L over one part per node and radius, with the radius as its role."""
    n_parts = graphs.n_nodes * len(radii)
    width = smallest_unsigned(len(radii) - 1)
    roles = np.tile(np.arange(len(radii)).astype(width), graphs.n_nodes)
    names = tuple(f"radius {radius}" for radius in radii)
    indptr = graphs.node_offsets * len(radii)
    return Relation(indptr, np.arange(n_parts, dtype=index_dtype(n_parts)), roles, names, n_parts)


def _counted(counts: LabelCounts, radii: tuple[int, ...], start: int, stop: int) -> Relation:
    """R_1 over labels instead of nodes, for the nodes from `start` to `stop`."""
    n, n_labels = stop - start, counts.labels.shape[1]
    roots = counts.labels[start:stop]
    balls = [
        sparse.hstack([roots, counts.within(radius, start, stop) - roots], format="csr")
        for radius in radii
    ]
    by_node = (np.arange(n)[:, None] + n * np.arange(len(radii))).ravel()
    rows = sparse.csr_array(sparse.vstack(balls, format="csr")[by_node])
    roles, parts = np.divmod(rows.indices, n_labels)
    return Relation(rows.indptr, parts, roles.astype(np.uint8), ROLES, n_labels, counts=rows.data)


def _without_roots(ball: sparse.csr_array) -> tuple[Ints, Ints]:
    """Pointers and nodes of balls, each without its root."""
    others = np.flatnonzero(ball.indices != segment_ids(ball.indptr))
    return ball.indptr - np.arange(len(ball.indptr)), ball.indices[others]


@dataclass(frozen=True)
class _Run:
    """Parts at one distance of the ego graphs of the radius at `place`: one CSR over the roots."""

    place: int
    indptr: Ints
    parts: Ints
    roles: Ints | int
    distance: int


def _interleaved(
    runs: list[_Run], n: int, width: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """All runs as one CSR over ego graphs: pointers, and of every entry part, role and distance."""
    lengths = np.zeros((n, width), dtype=np.int64)
    for run in runs:
        lengths[:, run.place] += np.diff(run.indptr)
    indptr = offsets(lengths.ravel())
    free = indptr[:-1].reshape(n, width).copy()  # where the next run of each ego graph begins
    parts, roles, distances = (np.empty(indptr[-1], dtype=np.int64) for _ in range(3))
    for run in runs:
        own = np.diff(run.indptr)
        entries = ranges(free[:, run.place], own)
        parts[entries], roles[entries], distances[entries] = run.parts, run.roles, run.distance
        free[:, run.place] += own
    return indptr, parts, roles, distances


def _induced(ball: sparse.csr_array, graphs: Graphs) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The edges of `graphs.edges()` with both ends in each ball, loops included: one CSR."""
    edges = graphs.edges()
    ends = sparse.csr_array(
        (np.ones(edges.size, np.int8), (edges.T.ravel(), np.tile(np.arange(len(edges)), 2))),
        shape=(graphs.n_nodes, len(edges)),
    )
    lengths, inside = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    # Blocks of 16 · BLOCK entries, because every product also passes once over all edges.
    for first, last in row_blocks(offsets(ball @ np.diff(ends.indptr)) // 16):
        met = sparse.csr_array(ball[first:last].astype(np.int8) @ ends)
        both = met.data == 2  # both ends, or a loop, whose one end counts twice
        lengths.append(np.bincount(segment_ids(met.indptr)[both], minlength=last - first))
        inside.append(met.indices[both].astype(np.int64))
    return offsets(np.concatenate(lengths)), np.concatenate(inside)


def _max_edges(graphs: Graphs, ball: NDArray[np.float64]) -> NDArray[np.float64]:
    """Upper bound of the edges among that many nodes around each node, shape (N,)."""
    edges = segment_reduce(np.add, graphs.degrees(), graphs.node_offsets) / 2
    all_edges: NDArray[np.float64] = np.repeat(edges, graphs.sizes)
    return np.minimum(all_edges, ball * ball if graphs.directed else ball * (ball + 1) / 2)
