"""The paper's four-level example: graphs made of subgraphs made of shortest paths of nodes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from saen._util.arrays import Ints, offsets, ranges, segment_ids, segment_reduce
from saen._util.lazy import LazyModule
from saen.data.graphs import Direction, Graphs
from saen.data.hierarchy import Attributes, Hierarchy
from saen.data.vocabulary import Vocabulary
from saen.decompositions.base import FITTED, Anchors, distinct_integers, integer, true_or_false
from saen.decompositions.edge_roles import EDGES_HELP, Links, coded_links
from saen.decompositions.ego import by_radius
from saen.decompositions.graph_base import GraphDecomposition
from saen.decompositions.node_labels import (
    DIRECTION_HELP,
    LABELS_HELP,
    rooted_attributes,
    uses_distance,
)
from saen.decompositions.path_parts import Steps, path_relations
from saen.decompositions.shortest_paths import Reader, shortest_paths

if TYPE_CHECKING:
    from scipy import sparse
else:
    sparse = LazyModule("scipy.sparse")


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
        steps = self._steps(graphs, attributes)
        induced, entries = subgraphs.induced(steps.adjacency)
        reader = Reader.of(induced, content_ranks(attributes)[members])
        all_ways = self.both_ways or self._one_way(graphs)
        paths = shortest_paths(
            induced, self.max_length, both_ways=all_ways, cap=self.cap, ranks=reader.ranks
        )
        if not all_ways:
            paths = [reader.oriented(rows) for rows in paths]
        sizes = len(attributes), subgraphs.n
        relations = path_relations(paths, steps, reader, subgraphs.owners, sizes, members, entries)
        return Hierarchy(
            attributes,
            (*relations, by_radius(graphs, self.radii)),
            (self.bottom_name(), "paths", "subgraphs", "graphs"),
        )

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
        one_way = self._one_way(graphs)
        # Of the edges at a node that was just reached, one may lead back.
        onward = 1.0 if one_way else 1 - 1 / np.maximum(degrees, 1)
        readings = 1.0 if one_way or self.both_ways else 0.5
        links = 2 if graphs.directed and self.direction == "both" else 1
        parts = {"none": 1, "objects": 1 + links}.get(self.edges, links)
        ball = sphere = np.ones(graphs.n_nodes)
        total = np.zeros(graphs.n_nodes)
        for radius in range(max(self.radii) + 1):
            if radius:
                sphere = np.minimum(near @ (sphere if radius == 1 else sphere * onward), size)
                ball = np.minimum(ball + sphere, size)
            if radius in self.radii:
                length = self.max_length if one_way else min(self.max_length, 2 * radius)
                pairs = readings * ball * (ball - 1) * (length > 0)
                total += 1 + 2 * ball + pairs * (2 + parts * length)
        return np.ceil(segment_reduce(np.add, total, graphs.node_offsets)).astype(np.int64)

    def _one_way(self, graphs: Graphs) -> bool:
        """Whether paths can be read in one direction only."""
        return graphs.directed and self.direction != "both"

    def _subgraphs(self, graphs: Graphs) -> _Subgraphs:
        return _Subgraphs.of(graphs, self.radii, self.direction)

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
        )

    def _steps(self, graphs: Graphs, attributes: Attributes) -> Steps:
        """Where paths may go, and the roles of what they meet there."""
        if self.edges == "objects":
            assert attributes.codes is not None
            links = Links.of(graphs, self.direction)
            objects = graphs.n_nodes + links.edges
            return Steps.through_objects(links, objects, attributes.codes[objects], self.max_length)
        if self.reads_kinds:
            coded = coded_links(graphs, self.direction, self.kinds)
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
    def of(graphs: Graphs, radii: tuple[int, ...], direction: Direction) -> _Subgraphs:
        """Subgraph v · len(radii) + i holds the nodes within the i-th radius of v."""
        n, farthest = graphs.n_nodes, max(radii, default=0)
        ball = sparse.eye_array(n, dtype=np.bool_, format="csr")
        step = sparse.csr_array(graphs.adjacency(direction) + ball)
        inside = ball.astype(np.int64)  # in how many of the balls of radius 0, 1, … a node is
        for _ in range(farthest):
            ball = sparse.csr_array(ball @ step)
            inside = inside + ball.astype(np.int64)
        distances = farthest + 1 - inside.data
        entry, place = np.nonzero(distances[:, None] <= np.array(radii, dtype=np.int64))
        owners = segment_ids(inside.indptr)[entry] * len(radii) + place
        nodes = inside.indices[entry].astype(np.int64)
        order = np.lexsort((nodes, owners))
        return _Subgraphs(n * len(radii), owners[order], nodes[order], distances[entry[order]])

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
