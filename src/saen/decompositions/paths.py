"""The paper's four-level example: graphs made of subgraphs made of shortest paths of nodes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from saen._util.arrays import (
    Ints,
    narrow,
    offsets,
    ranges,
    segment_ids,
    segment_reduce,
    smallest_unsigned,
)
from saen.data.graphs import Direction, Graphs
from saen.data.hierarchy import Attributes, Hierarchy, Relation
from saen.data.vocabulary import UNSEEN, Vocabulary
from saen.decompositions.base import FITTED, Decomposition, one_of, whole_number, whole_numbers
from saen.decompositions.edge_roles import (
    EDGES,
    WAYS,
    Links,
    bottom_attributes,
    bottom_name,
    coded_links,
    edges_of,
    kind_names,
)
from saen.decompositions.ego import by_radius
from saen.decompositions.node_labels import (
    DIRECTIONS,
    LABELS,
    check_labels,
    knows_root,
    resolve_labels,
    rooted_attributes,
)
from saen.decompositions.shortest_paths import Reader, Rows, shortest_paths
from saen.errors import InputError

Triples = tuple[Ints, Ints, Ints]
"""(whole, part, role) of every entry, three arrays of shape (entries,)."""


@dataclass(frozen=True)
class Paths(Decomposition):
    """Shortest paths within the neighbourhood of every node.

    - level 0: nodes, told apart by `node_labels` (see `Ego`);
    - level 1: shortest paths of at most `max_length` edges, the nodes with role `index i`;
    - level 2: for every node v and every radius r the subgraph induced by the nodes within
      distance r of v, made of its own shortest paths (which may be longer than those of the whole
      graph) with role `length k`; subgraph (v, i-th radius) is object v · len(radii) + i;
    - level 3: graphs, with the radius of each subgraph as its role.

    All shortest paths between two nodes count, but at most `cap`: those whose labels come first.
    A path and its reverse are one, read in the direction in which its labels come first, unless
    `both_ways` keeps both readings or `direction` gives the paths of a directed graph only one.

    `edges="roles"` gives the node at index i > 0 the role `index i KIND` by the label and, in
    directed graphs followed both ways, the direction of the edge that leads to it; kinds that `fit`
    did not see are left out, and graphs without edge labels and directions are decomposed as with
    `none`. `edges="objects"` adds the edges themselves to the bottom, after the nodes; the i-th
    edge of a path is its part with role `edge i`.

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
    max_length: int = field(default=3, metadata={"help": "edges of a path at most"})
    node_labels: str = field(default="auto", metadata={"help": LABELS})
    direction: Direction = field(default="both", metadata={"help": DIRECTIONS})
    edges: str = field(default="none", metadata={"help": EDGES})
    cap: int = field(default=16, metadata={"help": "shortest paths between two nodes at most"})
    both_ways: bool = field(default=False, metadata={"help": "read paths in both directions"})
    kinds: Vocabulary | None = field(default=None, kw_only=True, metadata=FITTED)

    def __post_init__(self) -> None:
        object.__setattr__(self, "radii", whole_numbers("radii", self.radii))
        object.__setattr__(self, "max_length", whole_number("max_length", self.max_length, 0))
        object.__setattr__(self, "cap", whole_number("cap", self.cap, 1))
        one_of("direction", self.direction, ("both", "out", "in"))
        one_of("edges", self.edges, WAYS)
        if not isinstance(self.both_ways, bool):
            raise InputError(f"both_ways is True or False, not {self.both_ways!r}")
        check_labels(self.node_labels)
        if self.edges == "objects" and knows_root(self.node_labels):
            raise InputError("edges as objects have no distance to a root: leave 'distance' out")

    def fit(self, graphs: Graphs) -> Paths:
        """A copy with labels and edges resolved, and the vocabularies of these graphs."""
        labels = resolve_labels(self.node_labels, graphs)
        found = edges_of(graphs, self.edges, self.direction)
        fresh = replace(self, node_labels=labels, vocabulary=None, **found)
        # Only distances to a root depend on the subgraphs.
        radii = self.radii if knows_root(labels) else ()
        subgraphs = _Subgraphs.of(graphs, radii, self.direction)
        return replace(fresh, vocabulary=fresh._bottom(graphs, subgraphs)[0].vocabulary)

    def decompose(self, graphs: Graphs) -> Hierarchy:
        """The hierarchy of these graphs; once fitted, other labels and kinds are unseen."""
        subgraphs = _Subgraphs.of(graphs, self.radii, self.direction)
        attributes, members = self._bottom(graphs, subgraphs)
        steps = self._steps(graphs, attributes)
        induced, entries = subgraphs.induced(steps.adjacency)
        reader = Reader.of(induced, content_ranks(attributes)[members])
        all_ways = self.both_ways or self._one_way(graphs)
        paths = shortest_paths(
            induced, self.max_length, both_ways=all_ways, cap=self.cap, ranks=reader.ranks
        )
        if not all_ways:
            paths = [reader.oriented(rows) for rows in paths]
        sizes = np.array([len(rows) for rows in paths])
        owners = np.concatenate([subgraphs.owners[rows[:, 0]] for rows in paths])
        number = np.empty(len(owners), dtype=np.int64)
        number[np.argsort(owners, kind="stable")] = np.arange(len(owners))
        triples: list[Triples] = []
        for rows, own in zip(paths, np.split(number, np.cumsum(sizes)[:-1]), strict=True):
            taken = None if steps.links is None else entries[reader.steps(rows)]
            path, parts, roles = steps.parts(members[rows], taken)
            triples.append((own[path], parts, roles))
        lengths = tuple(f"length {length}" for length in range(self.max_length + 1))
        return Hierarchy(
            attributes,
            (
                _relation(triples, steps.alphabet, len(owners), len(attributes)),
                _relation(
                    [(owners, number, np.repeat(np.arange(len(paths)), sizes))],
                    lengths,
                    subgraphs.n,
                    len(owners),
                ),
                by_radius(graphs, self.radii),
            ),
            (
                bottom_name(self.edges),
                "paths",
                "subgraphs",
                "graphs",
            ),
        )

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
        parts = {"none": 1, "roles": links, "objects": 1 + links}[self.edges]
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

    def _bottom(self, graphs: Graphs, subgraphs: _Subgraphs) -> tuple[Attributes, Ints]:
        """Bottom attributes, and the bottom object of every member of every subgraph."""
        given = graphs, resolve_labels(self.node_labels, graphs), self.vocabulary, self.direction
        if knows_root(self.node_labels):
            return rooted_attributes(*given, subgraphs.nodes, subgraphs.distances)
        return bottom_attributes(*given, self.edges), subgraphs.nodes

    def _steps(self, graphs: Graphs, attributes: Attributes) -> _Steps:
        """Where paths may go, and the roles of what they meet there."""
        indices = tuple(f"index {i}" for i in range(self.max_length + 1))
        steps = range(1, self.max_length + 1)
        if self.edges == "objects":
            assert attributes.codes is not None
            links = Links.of(graphs, self.direction)
            objects = graphs.n_nodes + links.edges
            names = (*indices, *(f"edge {i}" for i in steps))
            roles = np.full(len(objects), len(indices))
            codes = attributes.codes[objects]
            return _Steps.along(links, codes, names, roles=roles, width=1, objects=objects)
        if self.edges == "roles":
            found = coded_links(graphs, self.direction, self.kinds)
            if found is not None:
                links, kinds, codes = found
                named = (f"index {i} {kind}" for i in steps for kind in kind_names(kinds))
                roles = np.where(codes == UNSEEN, UNSEEN, codes + 1)
                return _Steps.along(
                    links, codes, (indices[0], *named), roles=roles, width=len(kinds)
                )
        return _Steps(graphs.without_loops().adjacency(self.direction), indices)


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
        kept = members[heads] == wanted
        indptr = offsets(np.bincount(tails[kept], minlength=m))
        entries = entries[kept]
        graph = sparse.csr_array((adjacency.data[entries], heads[kept], indptr), shape=(m, m))
        return graph, entries


@dataclass(frozen=True)
class _Steps:
    """Where paths may go from every node, without loops, and the roles of what they meet.

    The values of `adjacency` order its entries by what `links` say, if they say anything.
    """

    adjacency: sparse.csr_array
    alphabet: tuple[str, ...]
    links: _LinkParts | None = None

    @staticmethod
    def along(links: Links, codes: Ints, alphabet: tuple[str, ...], **parts: Any) -> _Steps:
        """Steps along links whose content has `codes`; the other `parts` are `_LinkParts`'."""
        n = len(links.indptr) - 1
        tails, heads = segment_ids(links.indptr), links.neighbours
        first = np.ones(len(heads), dtype=np.bool_)
        first[1:] = (tails[1:] != tails[:-1]) | (heads[1:] != heads[:-1])
        pointers = np.append(np.flatnonzero(first), len(heads))
        low = segment_reduce(np.minimum, codes, pointers).astype(np.int64)
        high = segment_reduce(np.maximum, codes, pointers).astype(np.int64)
        second = np.where(np.diff(pointers) > 1, high + 1, -1)
        values = low * (int(codes.max(initial=0)) + 3) + second
        indptr = offsets(np.bincount(tails[first], minlength=n))
        adjacency = sparse.csr_array((values, heads[first], indptr), shape=(n, n))
        return _Steps(adjacency, alphabet, _LinkParts(pointers, **parts))

    def parts(self, rows: Ints, entries: Rows | None) -> Triples:
        """(path, part, role) of the parts of paths over bottom objects, shape (paths, k + 1).

        `entries` of `adjacency` lead from each to the next, shape (paths, k); only links need them.
        """
        if self.links is None or entries is None:
            return _by_index(rows)
        nodes = _by_index(rows[:, :1] if self.links.objects is None else rows)
        both = zip(nodes, self.links.parts(rows, entries), strict=True)
        path, parts, roles = (np.concatenate(column) for column in both)
        return path, parts, roles


@dataclass(frozen=True)
class _LinkParts:
    """What links add to paths: objects of their own, or roles of the nodes that they lead to.

    The links of adjacency entry e are `pointers[e] … pointers[e + 1] - 1`: one, or two where a
    directed graph has edges both ways. Their roles at the first step of a path are `roles`, -1
    where they have none; at every further step they are greater by `width`.
    """

    pointers: Ints
    roles: Ints
    width: int
    objects: Ints | None = None

    def parts(self, rows: Ints, entries: Rows) -> Triples:
        """(path, part, role) of the links of all entries, shape (paths, k), that paths take."""
        counts = np.diff(self.pointers)[entries.ravel()]
        link = ranges(self.pointers[entries.ravel()], counts)
        path, step = np.indices(entries.shape).reshape(2, -1).repeat(counts, axis=1)
        kept = self.roles[link] != UNSEEN
        path, step, link = path[kept], step[kept], link[kept]
        parts = rows[path, step + 1] if self.objects is None else self.objects[link]
        return path, parts, self.roles[link] + step * self.width


def _by_index(rows: Ints) -> Triples:
    """(path, part, role) of parts whose roles are their places in the row."""
    path, index = np.indices(rows.shape).reshape(2, -1)
    return path, rows.ravel(), index


def _relation(
    triples: list[Triples], alphabet: tuple[str, ...], n_parents: int, n_parts: int
) -> Relation:
    """From (whole, part, role) in any order."""
    parents, parts, roles = (np.concatenate(column) for column in zip(*triples, strict=True))
    order = np.argsort(parents, kind="stable")
    return Relation(
        offsets(np.bincount(parents, minlength=n_parents)),
        narrow(parts)[order],
        roles.astype(smallest_unsigned(len(alphabet) - 1))[order],
        alphabet,
        n_parts,
    )


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
