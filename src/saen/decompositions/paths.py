"""The paper's four-level example: graphs made of subgraphs made of shortest paths of nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from saen._util.arrays import Ints, offsets, ranges, row_blocks, segment_ids, segment_reduce
from saen._util.lazy import sparse
from saen.data.chunks import MIN_ENTRY_BYTES, Cut, physical_memory
from saen.data.compression import compress_stream
from saen.data.graphs import Direction, Graphs
from saen.data.hierarchy import Attributes, Hierarchy, Relation
from saen.data.identical import merge_objects
from saen.data.vocabulary import Vocabulary
from saen.decompositions.base import FITTED, Anchors, distinct_integers, integer, true_or_false
from saen.decompositions.edge_roles import EDGES_HELP, Links, coded_links
from saen.decompositions.ego import Ego, by_radius
from saen.decompositions.graph_base import GraphDecomposition
from saen.decompositions.node_labels import (
    DIRECTION_HELP,
    LABELS_HELP,
    rooted_attributes,
    uses_distance,
)
from saen.decompositions.path_parts import Steps, path_relations
from saen.decompositions.shortest_paths import Reader, shortest_paths

MAX_MEMBERS = 10**9
"""Of all subgraphs together, where equal ones are looked for."""


@dataclass(frozen=True)
class Paths(GraphDecomposition):
    """Shortest paths within the neighbourhood of every node.

    - level 0: nodes, distinguished by `node_labels` (see `Ego`);
    - level 1: shortest paths of at most `max_length` edges, the nodes with role `index i`;
    - level 2: for every node v and every radius r the subgraph induced by the nodes within
      distance r of v, made of its own shortest paths (which may be longer than those of the whole
      graph) with role `length k`; subgraph (v, i-th radius) is object v · len(radii) + i;
    - level 3: graphs, with the radius of each subgraph as its role.

    All shortest paths between two nodes count, but at most `cap`: those whose labels come first.
    A path and its reverse are one, read in the direction in which its labels come first, unless
    `both_ways` keeps both readings or `direction` gives the paths of a directed graph only one.

    `edges="roles"` gives the node at index i > 0 the role `index i KIND` by the edge that leads to
    it (kinds are those of `Ego`). `edges="objects"` adds the edges themselves to the bottom, after
    the nodes; the i-th edge of a path is its part with role `edge i`.

    A subgraph has about as many paths as pairs of nodes, which is very many in dense graphs and
    around hubs: keep the radii small there.

    >>> square = Graphs.from_edge_lists([[(0, 1), (1, 2), (2, 3), (3, 0)]])
    >>> hierarchy = Paths(radii=(1,), max_length=2).decompose(square)
    >>> hierarchy
    Hierarchy(4 nodes → 24 paths → 4 subgraphs → 1 graphs)
    >>> hierarchy.relations[1].matrix("length 2").sum(axis=1)  # one path through every centre
    array([1, 1, 1, 1])
    """

    name: ClassVar[str] = "paths"

    radii: tuple[int, ...] = field(default=(1, 2), metadata={"help": "radii of the subgraphs"})
    max_length: int = field(default=3, metadata={"help": "maximum number of edges of a path"})
    node_labels: str = field(default="auto", metadata={"help": LABELS_HELP})
    direction: Direction = field(default="both", metadata={"help": DIRECTION_HELP})
    edges: str = field(default="none", metadata={"help": EDGES_HELP})
    cap: int = field(
        default=16, metadata={"help": "maximum number of shortest paths between two nodes"}
    )
    both_ways: bool = field(default=False, metadata={"help": "read paths in both directions"})
    kinds: Vocabulary | None = field(default=None, kw_only=True, metadata=FITTED)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "radii", distinct_integers("radii", self.radii))
        object.__setattr__(self, "max_length", integer("max_length", self.max_length, 0))
        object.__setattr__(self, "cap", integer("cap", self.cap, 1, 2**31))
        true_or_false("both_ways", self.both_ways)

    def distances(self, graphs: Graphs) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The members of all subgraphs and their distances from the centres."""
        subgraphs = self._subgraphs(graphs)
        return subgraphs.nodes, subgraphs.distances

    def decompose(self, graphs: Graphs) -> Hierarchy:
        """The hierarchy of these graphs; once fitted, other labels and kinds are unseen."""
        subgraphs = self._subgraphs(graphs)
        attributes, members = self._members(graphs, subgraphs)
        relations = self._relations(graphs, attributes)(subgraphs, members)
        return Hierarchy(attributes, (*relations, by_radius(graphs, self.radii)), self._names())

    def cut(self, graphs: Graphs) -> Cut | None:
        """These graphs in chunks of subgraphs, unless distances are labels.

        Subgraphs with the same members are made once: around a hub there are very many. Very large
        graphs are not cut if most of their labels differ, since most of their paths then do too.
        """
        if uses_distance(self.node_labels):
            return None
        if Ego(self.radii, direction=self.direction).costs(graphs).sum() > MAX_MEMBERS:
            return None
        attributes = self.bottom(graphs)
        bottom, inverse, _ = merge_objects(attributes)
        large = self.costs(graphs).sum() * MIN_ENTRY_BYTES > physical_memory()
        if large and 2 * len(bottom) > len(inverse):
            return None
        made = self._relations(graphs, attributes)
        numbers, firsts, sizes = _distinct_subgraphs(graphs, self.radii, self.direction)

        def relations(start: int, stop: int) -> tuple[Relation, Relation]:
            subgraphs = self._subgraphs(graphs, firsts[start:stop])
            paths, owners = made(subgraphs, subgraphs.nodes)
            return paths.with_parts(inverse[paths.parts], len(bottom)), owners

        radii = np.array(self.radii)[firsts % len(self.radii)]
        costs = np.ceil(self._subgraph_costs(graphs, radii, sizes)).astype(np.int64)
        top = by_radius(graphs, self.radii)
        return Cut(bottom, inverse, costs, relations, numbers, top, self._names())

    def _names(self) -> tuple[str, ...]:
        return (self.bottom_name(), "paths", "subgraphs", "graphs")

    def _relations(
        self, graphs: Graphs, attributes: Attributes
    ) -> Callable[[_Subgraphs, Ints], tuple[Relation, Relation]]:
        """Makes R_1 and R_2 of subgraphs, whose members are these bottom objects."""
        steps = self._steps(graphs, attributes)
        ranks = content_ranks(attributes)
        all_ways = self.both_ways or self._one_way(graphs)

        def made(subgraphs: _Subgraphs, members: Ints) -> tuple[Relation, Relation]:
            induced, entries = subgraphs.induced(steps.adjacency)
            reader = Reader.of(induced, ranks[members])
            paths = shortest_paths(
                induced, self.max_length, both_ways=all_ways, cap=self.cap, ranks=reader.ranks
            )
            if not all_ways:
                paths = [reader.oriented(rows) for rows in paths]
            sizes = len(attributes), subgraphs.n
            return path_relations(paths, steps, reader, subgraphs.owners, sizes, members, entries)

        return made

    def anchors(self, graphs: Graphs) -> Anchors:
        """Subgraphs are centred on nodes; paths on none."""
        centres = np.repeat(np.arange(graphs.n_nodes), len(self.radii))
        return self.node_anchors(graphs, None, centres, None)

    def costs(self, graphs: Graphs) -> NDArray[np.int64]:
        """About how many entries all relations have per graph, shape (G,).

        Counts one path for every two nodes of a subgraph; where they have several, it is more.
        """
        near = graphs.without_loops().adjacency(self.direction).astype(np.float64)
        degrees, size = np.diff(near.indptr), np.repeat(graphs.sizes, graphs.sizes)
        # Of the edges at a node that was just reached, one may lead back.
        onward = 1.0 if self._one_way(graphs) else 1 - 1 / np.maximum(degrees, 1)
        ball = sphere = np.ones(graphs.n_nodes)
        total = np.zeros(graphs.n_nodes)
        for radius in range(max(self.radii) + 1):
            if radius:
                sphere = np.minimum(near @ (sphere if radius == 1 else sphere * onward), size)
                ball = np.minimum(ball + sphere, size)
            if radius in self.radii:
                total += self._subgraph_costs(graphs, radius, ball)
        return np.ceil(segment_reduce(np.add, total, graphs.node_offsets)).astype(np.int64)

    def _subgraph_costs(
        self, graphs: Graphs, radius: Ints | int, sizes: NDArray[Any]
    ) -> NDArray[np.float64]:
        """About how many entries subgraphs with so many members have."""
        one_way = self._one_way(graphs)
        readings = 1.0 if one_way or self.both_ways else 0.5
        links = 2 if graphs.directed and self.direction == "both" else 1
        parts = {"none": 1, "objects": 1 + links}.get(self.edges, links)
        length = self.max_length if one_way else np.minimum(self.max_length, 2 * radius)
        pairs = readings * sizes * (sizes - 1.0) * (length > 0)
        return np.asarray(1 + 2 * sizes + pairs * (2 + parts * length), dtype=np.float64)

    def _one_way(self, graphs: Graphs) -> bool:
        """Whether paths can be read in one direction only."""
        return graphs.directed and self.direction != "both"

    def _subgraphs(self, graphs: Graphs, which: Ints | None = None) -> _Subgraphs:
        if which is None:
            which = np.arange(graphs.n_nodes * len(self.radii))
        return _Subgraphs.of(graphs, self.radii, self.direction, which)

    def _members(self, graphs: Graphs, subgraphs: _Subgraphs) -> tuple[Attributes, Ints]:
        """Bottom attributes, and the bottom object of every member of every subgraph."""
        if not uses_distance(self.node_labels):
            return self.bottom(graphs), subgraphs.nodes
        return rooted_attributes(
            graphs,
            self.node_labels,
            self.vocabulary,
            self.direction,
            subgraphs.nodes,
            subgraphs.distances,
            self.node_bins,
        )

    def _steps(self, graphs: Graphs, attributes: Attributes) -> Steps:
        """Where paths may go, and the roles of what they meet there."""
        if self.edges == "objects":
            assert attributes.codes is not None
            links = Links.of(graphs, self.direction)
            objects = graphs.n_nodes + links.edges
            return Steps.through_objects(links, objects, attributes.codes[objects], self.max_length)
        if self.reads_kinds:
            coded = coded_links(self.with_kinds(graphs), self.direction, self.kinds)
            if coded is not None:
                return Steps.by_kind(*coded, self.max_length)
        adjacency = graphs.without_loops().adjacency(self.direction)
        return Steps.plain(adjacency, self.max_length)


@dataclass(frozen=True)
class _Subgraphs:
    """The members of all subgraphs, one subgraph after another, nodes ascending in each."""

    n: int
    owners: NDArray[np.int64]
    nodes: NDArray[np.int64]
    distances: NDArray[np.int64]

    @staticmethod
    def of(graphs: Graphs, radii: tuple[int, ...], direction: Direction, which: Ints) -> _Subgraphs:
        """Subgraph v · len(radii) + i holds the nodes within the i-th radius of v.

        Those numbered `which` are wanted.
        """
        centres, place = np.divmod(which, len(radii))
        roots, row = np.unique(centres, return_inverse=True)
        wanted = np.full((len(roots), len(radii)), -1, dtype=np.int64)
        wanted[row, place] = np.arange(len(which))
        farthest = max(radii)
        step = _step(graphs, direction)
        ball = sparse.eye_array(graphs.n_nodes, dtype=np.bool_, format="csr")[roots]
        inside = ball.astype(np.int64)  # in how many of the balls of radius 0, 1, … a node is
        for _ in range(farthest):
            ball = sparse.csr_array(ball @ step)
            inside = inside + ball.astype(np.int64)
        distances = farthest + 1 - inside.data
        root = segment_ids(inside.indptr)
        holds = (distances[:, None] <= np.array(radii, dtype=np.int64)) & (wanted[root] >= 0)
        entry, place = np.nonzero(holds)
        owners = wanted[root[entry], place]
        nodes = inside.indices[entry].astype(np.int64)
        order = np.lexsort((nodes, owners))
        return _Subgraphs(len(which), owners[order], nodes[order], distances[entry[order]])

    def induced(self, adjacency: sparse.csr_array) -> tuple[sparse.csr_array, NDArray[np.int64]]:
        """The induced subgraphs side by side as one graph over the M members, shape (M, M).

        Its entries have the values of those of `adjacency` that they come from, whose numbers are
        returned as well.
        """
        n, m = adjacency.shape[0], len(self.nodes)
        members = self.owners * n + self.nodes  # ascending
        degrees = np.diff(adjacency.indptr)[self.nodes]
        entries = ranges(adjacency.indptr[self.nodes], degrees)
        tails = np.repeat(np.arange(m), degrees)
        wanted = self.owners[tails] * n + adjacency.indices[entries]
        heads = np.searchsorted(members, wanted)
        heads[heads == m] = 0
        inside = members[heads] == wanted
        indptr = offsets(np.bincount(tails[inside], minlength=m))
        entries = entries[inside]
        graph = sparse.csr_array((adjacency.data[entries], heads[inside], indptr), shape=(m, m))
        return graph, entries


def _step(graphs: Graphs, direction: Direction) -> sparse.csr_array:
    """Who is at most one edge away, shape (N, N)."""
    identity = sparse.eye_array(graphs.n_nodes, dtype=np.bool_, format="csr")
    return sparse.csr_array(graphs.adjacency(direction) + identity)


def _distinct_subgraphs(
    graphs: Graphs, radii: tuple[int, ...], direction: Direction
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Which subgraphs have the same members.

    For every subgraph its number among the distinct ones, and of these the first subgraph and the
    number of members.
    """
    n, step = graphs.n_nodes, _step(graphs, direction)
    near = graphs.without_loops().adjacency(direction)
    alike, _ = _same_rows(near, np.arange(n), 1)
    alike[np.diff(near.indptr) == 0] = n + np.flatnonzero(np.diff(near.indptr) == 0)
    numbers = np.empty((n, len(radii)), dtype=np.int64)
    firsts, sizes = [], []
    count = 0
    for place, radius in enumerate(radii):
        # Nodes with the same neighbours have the same nodes within every radius from 2 on, if
        # all neighbours have an edge back.
        shared = alike if radius > 1 and not graphs.directed else np.arange(n)
        _, some, every = np.unique(shared, return_index=True, return_inverse=True)
        groups, lengths = _same_rows(step, some, radius)
        _, first = np.unique(groups, return_index=True)
        numbers[:, place] = count + groups[every]
        firsts.append(some[first] * len(radii) + place)
        sizes.append(lengths)
        count += len(first)
    return numbers.ravel(), np.concatenate(firsts), np.concatenate(sizes)


def _same_rows(
    matrix: sparse.csr_array, rows: Ints, power: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The rows of a power of a Boolean matrix: a number of each, the same for equal ones alone.

    Returns these numbers and, for each of them, the number of entries of the row.
    """
    n = matrix.shape[0]
    if power == 0:
        return np.arange(len(rows)), np.ones(len(rows), dtype=np.int64)
    # Compressing a hierarchy whose bottom objects all differ merges exactly the equal rows.
    bottom = Attributes(vectors=np.arange(n, dtype=np.float64)[:, None])
    sizes = np.diff(matrix.indptr).astype(np.float64)
    for _ in range(power - 1):
        sizes = np.minimum(matrix @ sizes, n)

    def hierarchies() -> Iterator[Hierarchy]:
        for start, stop in row_blocks(offsets(sizes[rows].astype(np.int64)) // 16):
            block = matrix[rows[start:stop]]
            for _ in range(power - 1):
                block = sparse.csr_array(block @ matrix)
            roles = np.zeros(block.nnz, dtype=np.uint8)
            yield Hierarchy(bottom, (Relation(block.indptr, block.indices, roles, ("member",), n),))

    merged = compress_stream(hierarchies(), lower_inverse=False)
    return merged.top.astype(np.int64), np.diff(merged.hierarchy.relations[0].indptr)


def content_ranks(attributes: Attributes) -> NDArray[np.int64]:
    """Numbers that order bottom objects by content: by their codes, then by their vectors.

    Equal content has equal ranks, and no other.

    >>> content_ranks(Attributes(vectors=np.array([[0.5], [-1.0], [-0.0], [0.0], [0.5]]))).tolist()
    [3, 0, 1, 2, 3]
    """
    columns: list[NDArray[np.int64]] = []
    if attributes.codes is not None:
        columns.append(attributes.codes.astype(np.int64))
    if attributes.vectors is not None:
        bits = attributes.vectors.astype(np.float64).view(np.int64)
        # Flipping the other bits of negative numbers makes them ascend, and -0.0 comes before 0.0.
        columns.extend((bits ^ ((bits >> 63) & np.iinfo(np.int64).max)).T)
    order = np.lexsort(columns[::-1]) if columns else np.arange(len(attributes))
    new = np.zeros(len(attributes), dtype=np.bool_)
    for column in columns:
        new[1:] |= column[order][1:] != column[order][:-1]
    ranks = np.empty(len(attributes), dtype=np.int64)
    ranks[order] = np.cumsum(new)
    return ranks
