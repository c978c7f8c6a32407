"""Message passing as parts of parts: every node with its neighbours, one depth after another."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from saen._util.arrays import (
    Ints,
    index_dtype,
    offsets,
    segment_ids,
    segment_reduce,
    smallest_unsigned,
)
from saen._util.lazy import sparse
from saen._util.strings import short_label
from saen.data.graphs import Direction, Graphs
from saen.data.hierarchy import Hierarchy, Relation
from saen.data.refinement import Refinement
from saen.data.vocabulary import Vocabulary
from saen.decompositions.base import FITTED, Anchors, integer
from saen.decompositions.edge_roles import EDGES_HELP, KnownLinks
from saen.decompositions.graph_base import GraphDecomposition
from saen.decompositions.node_labels import DIRECTION_HELP, LABELS_HELP
from saen.decompositions.words import (
    MAX_DESCRIPTION,
    NEIGHBOUR,
    ROOT,
    around_words,
    counted,
    label_words,
)


@dataclass(frozen=True)
class Neighbourhoods(GraphDecomposition):
    """Unrolled message passing: the neighbourhood of every node, one step deeper at a time.

    - level 0: nodes, distinguished by `node_labels` (see `Ego`);
    - level l = 1 … depth: for every node v the object (v, l), made of v's (v, l - 1) with role
      `root` and of its neighbours' (u, l - 1) with role `elem`; the shallower objects (v, d),
      d < l, are carried up by one-part objects with role `carry`. Object (v, d) of level l is
      number v · (l + 1) + d;
    - top: graphs, gathering the objects of every depth d = 0 … depth with role `depth d`.

    Compressing it is Weisfeiler-Lehman colour refinement: the unique objects of depth d are the
    colours after d rounds.

    `edges="roles"` gives neighbours the role `elem KIND`, as in `Ego`. `edges="objects"` adds the
    edges themselves to the bottom, after the nodes; those at v are parts of (v, 1) with role
    `edge`.

    >>> path = Graphs.from_edge_lists([[(0, 1), (1, 2)]])
    >>> hierarchy = Neighbourhoods(depth=2).decompose(path)
    >>> hierarchy
    Hierarchy(3 nodes → 6 depth ≤ 1 → 9 depth ≤ 2 → 1 graphs)
    >>> hierarchy.relations[0].matrix("elem").toarray()[3]  # (node 1, depth 1)
    array([1, 0, 1])
    """

    name: ClassVar[str] = "neighbourhoods"
    graded: ClassVar[bool] = True

    depth: int = field(default=3, metadata={"help": "rounds of gathering neighbours"})
    node_labels: str = field(default="auto", metadata={"help": LABELS_HELP})
    direction: Direction = field(default="both", metadata={"help": DIRECTION_HELP})
    edges: str = field(default="none", metadata={"help": EDGES_HELP})
    kinds: Vocabulary | None = field(default=None, kw_only=True, metadata=FITTED)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "depth", integer("depth", self.depth, 1))

    def decompose(self, graphs: Graphs) -> Hierarchy:
        """The hierarchy of these graphs; once fitted, other labels and kinds are unseen."""
        bottom = self.bottom(graphs)
        first, around = self._steps(graphs)
        relations = [first.gathered(len(bottom), 1, 2)]
        for level in range(2, self.depth + 1):
            relations.append(around.gathered(relations[-1].n_parents, level, level + 1))
        return Hierarchy(bottom, (*relations, self._graphs(graphs)), self._names())

    def refinement(self, graphs: Graphs) -> Refinement:
        """One level after another: what is carried up need not be compared again."""
        bottom = self.bottom(graphs)
        first, around = self._steps(graphs)
        step = around.gathered(graphs.n_nodes, 1, 1)
        steps = [step if first is around else first.gathered(len(bottom), 1, 1)]
        steps += [step] * (self.depth - 1)
        return Refinement(bottom, graphs.n_nodes, steps, self._graphs(graphs), self._names())

    def _names(self) -> tuple[str, ...]:
        depths = (f"depth ≤ {level}" for level in range(1, self.depth + 1))
        return (self.bottom_name(), *depths, "graphs")

    def _steps(self, graphs: Graphs) -> tuple[_Around, _Around]:
        """What lies around nodes in the first step, and in the following ones."""
        around = self._around(graphs)
        edges = self.edges == "objects"
        return (around.with_edges(graphs, self.direction) if edges else around), around

    def anchors(self, graphs: Graphs) -> Anchors:
        """Object (v, d) stands for node v."""
        nodes = np.arange(graphs.n_nodes)
        upper = [np.repeat(nodes, level + 1) for level in range(1, self.depth + 1)]
        return self.node_anchors(graphs, *upper, None)

    def describe(self, hierarchy: Hierarchy, level: int, numbers: Ints) -> list[str]:
        """A node, its neighbours, and what is 2, 3, … steps away (walks that do not turn back).

        Parameters
        ----------
        hierarchy : Hierarchy
            A hierarchy of this decomposition.
        level : int
            The level of the objects.
        numbers : Ints
            Which of its objects to describe.
        """
        every = np.arange(hierarchy.sizes[0] + 1)
        labels = label_words(hierarchy, self.describe_label, every[:-1])
        names, codes = np.unique(labels, return_inverse=True)
        near = sparse.csr_array((np.ones_like(codes), codes, every), (len(codes), len(names)))
        rings, columns, depth = [near], [names.tolist()], np.zeros_like(codes)
        before = near
        for step, relation in enumerate(hierarchy.relations[:level], 1):
            root, carry = relation.matrix(ROOT), relation.matrix("carry")
            roles = [role for role in relation.alphabet if role.startswith(NEIGHBOUR)]
            around = [relation.matrix(role) for role in roles] or [0 * root]
            links = sum(around[1:], around[0])
            ring = far = links @ near
            words = columns[0]
            if step == 1:
                ring = sparse.hstack([matrix @ near for matrix in around], format="csr")
                kinds = [role.removeprefix(NEIGHBOUR) for role in roles] or [""]
                words = [f"{kind} {name}".strip() for kind in kinds for name in words]
            elif self.direction == "both":
                turning = links.sum(axis=1) - (step > 2)
                ring = far = sparse.csr_array(far - (root @ before).multiply(turning[:, None]))
            own = root + carry
            depth = np.maximum(own @ depth, step * (np.diff(root.indptr) > 0))
            before, near = own @ near, far
            rings = [*(own @ each for each in rings), ring]
            columns.append(words)

        def in_words(ring: int, number: int) -> str:
            matrix, words = rings[ring], columns[ring]
            own = slice(matrix.indptr[number], matrix.indptr[number + 1])
            counts = zip(matrix.indices[own].tolist(), matrix.data[own].tolist(), strict=True)
            listed = sorted((-n, words[column]) for column, n in counts if n > 0)
            return counted((word, -n) for n, word in listed)

        texts = []
        for number in numbers.tolist():
            centre, *others = (in_words(ring, number) for ring in range(depth[number] + 1))
            texts.append(short_label(around_words(centre, others), MAX_DESCRIPTION))
        return texts

    def costs(self, graphs: Graphs) -> NDArray[np.int64]:
        """Upper bound of the entries of all relations per graph, shape (G,)."""
        # Level l has l + 1 entries per node beside its links, the top one per depth.
        fixed = (self.depth + 1) * (self.depth + 2) // 2 - 1 + self.depth + 1
        times = self.depth + (self.edges == "objects")
        entries = fixed + times * graphs.degrees(self.direction)
        return segment_reduce(np.add, entries, graphs.node_offsets).astype(np.int64)

    def _around(self, graphs: Graphs) -> _Around:
        """The neighbours of every node, by kind of link where edges are roles."""
        if self.reads_kinds:
            links = KnownLinks.of(self.with_kinds(graphs), self.direction, self.kinds)
            if links is not None:
                n, ends = graphs.n_nodes, (links.nodes, links.neighbours)
                return _Around(n, *ends, links.codes + 1, links.roles)
        adjacency = graphs.adjacency(self.direction)
        nodes = segment_ids(adjacency.indptr)
        proper = nodes != adjacency.indices  # a loop makes no node its own neighbour
        others = adjacency.indices[proper]
        elem = np.ones(len(others), dtype=np.uint8)
        return _Around(graphs.n_nodes, nodes[proper], others, elem, ("elem",))

    def _graphs(self, graphs: Graphs) -> Relation:
        """R_L: the objects of every node belong to its graph with their depth as role."""
        depths = np.arange(self.depth + 1).astype(smallest_unsigned(self.depth))
        n_objects = graphs.n_nodes * len(depths)
        return Relation(
            graphs.node_offsets * len(depths),
            np.arange(n_objects, dtype=index_dtype(n_objects)),
            np.tile(depths, graphs.n_nodes),
            tuple(f"depth {depth}" for depth in depths.tolist()),
            n_objects,
        )


@dataclass(frozen=True)
class _Around:
    """What lies around every node, sorted by node: other objects with their roles.

    Role 0 is `root`; those of `names` are numbered from 1 on, and `carry` comes last.
    """

    n_nodes: int
    nodes: Ints
    others: Ints
    roles: Ints
    names: tuple[str, ...]

    def with_edges(self, graphs: Graphs, direction: Direction) -> _Around:
        """Beside the neighbours, the edges at every node, numbered after all nodes."""
        ends = graphs.edges()
        if graphs.directed and direction != "both":
            ends = ends[:, :1] if direction == "out" else ends[:, 1:]
        own = np.ones(ends.shape, dtype=np.bool_)
        own[:, 1:] = ends[:, 1:] != ends[:, :1]  # a loop is one edge at its node
        edges, _ = np.nonzero(own)
        nodes = np.concatenate([self.nodes, ends[own]])
        others = np.concatenate([self.others, edges + self.n_nodes])
        roles = np.concatenate([self.roles, np.full(len(edges), len(self.names) + 1)])
        order = np.argsort(nodes, kind="stable")
        names = (*self.names, "edge")
        return _Around(self.n_nodes, nodes[order], others[order], roles[order], names)

    def gathered(self, n_parts: int, below: int, width: int) -> Relation:
        """R_l: object (v, l) is (v, l - 1) and what is around it; (v, d < l) is carried up.

        Nodes have `below` objects on the level below, of which the last is (v, l - 1), and `width`
        on this one, of which the last is (v, l).
        """
        n = self.n_nodes
        lengths = np.ones((n, width), dtype=np.int64)
        lengths[:, -1] += np.bincount(self.nodes, minlength=n)
        indptr = offsets(lengths.ravel())
        carry = len(self.names) + 1
        parts = np.empty(indptr[-1], dtype=index_dtype(n_parts))
        roles = np.empty(indptr[-1], dtype=smallest_unsigned(carry))
        # Every object begins with its own node: carried, or the root of the new depth.
        own = np.minimum(np.arange(width), below - 1)
        parts[indptr[:-1]] = (np.arange(n)[:, None] * below + own).ravel()
        roles[indptr[:-1]] = np.tile([carry] * (width - 1) + [0], n)
        place = np.arange(len(self.nodes)) + (self.nodes + 1) * width
        parts[place] = self.others.astype(parts.dtype) * below + (below - 1)
        roles[place] = self.roles
        return Relation(indptr, parts, roles, ("root", *self.names, "carry"), n_parts)
