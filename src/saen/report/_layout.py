"""Where the parts of a picture stand: arrays in, arrays out, nothing drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from saen._util.arrays import Floats, Ints, offsets, segment_ids
from saen.data.graphs import Graphs
from saen.data.hierarchy import Hierarchy, Relation

MAX_ROW = 120  # objects drawn of a level
MAX_NODES = 300  # drawn of a graph
GOLDEN = (5**0.5 - 1) / 2  # its multiples, modulo 1, fill the unit interval evenly


@dataclass(frozen=True)
class Lines:
    """Entries of a relation between shown objects, numbered as they stand in their rows.

    `bends` is 0, or … -½, ½ … for lines that join the same two objects in different roles.
    """

    parents: Ints
    parts: Ints
    roles: Ints
    counts: Ints
    bends: Floats

    @staticmethod
    def of(relation: Relation, parents: Ints, parts: Ints) -> Lines:
        """The entries between shown parents and shown parts."""
        taken = relation.take(parents).canonical()
        place = positions(parts, relation.n_parts)[taken.parts]
        shown = place >= 0
        parent, part, role = taken.parents[shown], place[shown], taken.roles[shown]
        order = np.lexsort((role, part, parent))
        pair = (parent * max(len(parts), 1) + part)[order]
        _, start, size = np.unique(pair, return_index=True, return_counts=True)
        bends = np.empty(len(pair))
        bends[order] = np.arange(len(pair)) - np.repeat(start + (size - 1) / 2, size)
        return Lines(parent, part, role, taken.multiplicity[shown], bends)

    def curves(self, level: int, parents: Floats, parts: Floats) -> Floats:
        """25 points from each parent down to its part, shape (n, 25, 2)."""
        t = np.linspace(0, 1, 25)
        start, end = parents[self.parents][:, None], parts[self.parts][:, None]
        x = start + (end - start) * t + 0.02 * self.bends[:, None] * np.sin(np.pi * t)
        return np.stack([x, np.broadcast_to(level - t, x.shape)], axis=2)


def positions(ids: Ints, n: int) -> Ints:
    """For each of n objects its position in `ids`, or -1."""
    out = np.full(n, -1)
    out[ids] = np.arange(len(ids))
    return out


def row_of(n: int, group: Ints | None) -> Floats:
    """n places in (0, 1), evenly, with a gap of one place between groups."""
    steps = np.arange(n, dtype=np.float64)
    if group is not None:
        steps[1:] += np.cumsum(np.diff(group) != 0)
    places: Floats = (steps + 0.5) / (steps.max(initial=0.0) + 1)
    return places


def sampled(hierarchy: Hierarchy) -> list[Ints]:
    """The objects to show of every level: all, or `MAX_ROW` of them, from the top down.

    Parents take turns in choosing parts, one of each role at a time, so that all keep some parts;
    and the parts that a parent chooses first come from all over it.
    """
    top = np.argsort(np.arange(len(hierarchy)) * GOLDEN % 1, kind="stable")[:MAX_ROW]
    shown: list[Ints] = [np.sort(top)]
    for relation in reversed(hierarchy.relations):
        if relation.n_parts <= MAX_ROW:
            shown.append(np.arange(relation.n_parts))
            continue
        taken = relation.take(shown[-1]).canonical()
        parents, roles = taken.parents, taken.roles.astype(np.int64)
        group = parents * taken.n_roles + roles  # ascends: the entries are canonical
        position = np.arange(len(group)) - np.searchsorted(group, group)
        turn = np.empty_like(position)
        turn[np.lexsort((position * GOLDEN % 1, group))] = position
        choices = taken.parts[np.lexsort((parents, roles, turn))]
        first = np.sort(np.unique(choices, return_index=True)[1])
        shown.append(np.sort(choices[first[:MAX_ROW]]))
    return shown[::-1]


def untangled(hierarchy: Hierarchy, shown: Sequence[Ints]) -> list[Ints]:
    """The shown objects of every level in an order with few crossings.

    What hangs together stands together, and there every object stands near the mean of what it is
    joined with: the first eigenvector of the normalised adjacency when each row is kept centred.
    """
    starts = offsets(np.array([len(ids) for ids in shown]))
    joined = np.zeros((starts[-1], starts[-1]))
    for level, relation in enumerate(hierarchy.relations, start=1):
        if min(len(shown[level]), len(shown[level - 1])) > 1:  # else it says nothing about order
            lines = Lines.of(relation, shown[level], shown[level - 1])
            joined[lines.parents + starts[level], lines.parts + starts[level - 1]] = 1.0
    joined += joined.T
    levels = segment_ids(starts)
    n, component = csgraph.connected_components(sparse.csr_array(joined))
    place = 3.0 * component
    for members in (np.flatnonzero(component == c) for c in range(n)):
        weight = np.maximum(joined[members].sum(axis=1), 1) ** 0.5
        rows = (levels[members, None] == np.unique(levels[members])) * weight[:, None]
        rows /= np.linalg.norm(rows, axis=0)
        centring = np.eye(len(members)) - rows @ rows.T
        links = joined[np.ix_(members, members)] / np.outer(weight, weight)
        wish = np.linalg.eigh(centring @ links @ centring)[1][:, -1] / weight
        # Rounded, so that objects in equal places keep their order.
        place[members] += np.round(wish / np.abs(wish).max(), 9)
    return [
        ids[np.argsort(place[start:stop], kind="stable")]
        for ids, start, stop in zip(shown, starts[:-1], starts[1:], strict=True)
    ]


def neighbourhood(graphs: Graphs, limit: int = MAX_NODES) -> Ints:
    """All nodes, or `limit` of them around the one of highest degree.

    In a tree of shortest paths, each node is farther from its parent than its siblings of higher
    degree: what is shown hangs together, and no hub fills the picture with its leaves.
    """
    if graphs.n_nodes <= limit:
        return np.arange(graphs.n_nodes)
    degrees = graphs.degrees()
    links = graphs.adjacency().astype(np.int8)
    order, parent = csgraph.breadth_first_order(links, int(degrees.argmax()))
    siblings = order[1:][np.lexsort((-degrees[order[1:]], parent[order[1:]]))]
    family = parent[siblings]
    step = np.ones(graphs.n_nodes)
    step[siblings] += (np.arange(len(siblings)) - np.searchsorted(family, family)) / 4
    far = np.full(graphs.n_nodes, np.inf)
    far[order[0]] = 0.0
    for node in order[1:].tolist():
        far[node] = far[parent[node]] + step[node]
    return np.sort(np.argsort(far, kind="stable")[:limit])


def layout(edges: Ints, n: int) -> Floats:
    """Places of n nodes, shape (n, 2), whose distances resemble those along the edges.

    Stress majorisation from classical scaling: deterministic, quick for hundreds of nodes.
    """
    if n < 2:
        return np.zeros((n, 2))
    links = sparse.csr_array((np.ones(len(edges)), (edges[:, 0], edges[:, 1])), shape=(n, n))
    distances = csgraph.shortest_path(links, directed=False, unweighted=True)
    apart = np.isinf(distances)
    distances[apart] = distances[~apart].max() / 2 + 1.5
    centring = np.eye(n) - 1 / n
    values, vectors = np.linalg.eigh(-0.5 * centring @ distances**2 @ centring)
    # Duplicates have one place in the scaling, up to rounding: a spiral tells them apart.
    turn = 2 * np.pi * GOLDEN * np.arange(n)
    spiral = np.sqrt(np.arange(n) / n) * np.array([np.cos(turn), np.sin(turn)])
    places: Floats = vectors[:, -2:] * np.sqrt(np.maximum(values[-2:], 0)) + 0.3 * spiral.T
    weights = (distances + np.eye(n)) ** -2 - np.eye(n)
    inverse = np.linalg.inv(np.diag(weights.sum(axis=1)) - weights + 1 / n)
    for _ in range(100):
        gaps = np.hypot(*(axis[:, None] - axis for axis in places.T))
        pull = weights * distances / np.maximum(gaps, 1e-9)
        places = inverse @ (pull.sum(axis=1)[:, None] * places - pull @ places)
    return places
