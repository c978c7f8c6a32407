"""Generated datasets of kinds that the public ones lack; each a function of a seed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import saen
from saen._util.arrays import Ints, offsets, segment_ids

ELEMENTS = np.array(["C", "N", "O", "S"])
SHARES = (0.74, 0.12, 0.11, 0.03)


def molecules(n_graphs: int, seed: int = 0, nodes: int = 25, share: float = 1 / 28) -> saen.Graphs:
    """Chains with branches and rings, of four elements; one class is a `share` of all.

    Graphs are of that class by chance, the more likely the more of their N are next to an O.
    """
    draw = np.random.default_rng(seed)
    sizes = np.clip(draw.poisson(nodes, n_graphs), 6, None)
    edges, labels = _branched(draw, sizes), draw.choice(ELEMENTS, sizes.sum(), p=SHARES)
    source, target = labels[edges[:, 0]], labels[edges[:, 1]]
    found = ((source == "N") & (target == "O")) | ((source == "O") & (target == "N"))
    graph = segment_ids(offsets(sizes))
    pairs = np.bincount(graph[edges[found, 0]], minlength=n_graphs)
    score = pairs + draw.gumbel(0, 0.5, n_graphs)
    y = np.where(score >= np.quantile(score, 1 - share), "active", "inactive")
    return saen.Graphs.from_edges(
        edges, sizes, node_labels=labels, targets=y, duplicates="merge", name="molecules"
    )


def classes(n_graphs: int = 3900, n_classes: int = 100, seed: int = 0) -> saen.Graphs:
    """Branched graphs of 30 nodes with eight labels, whose shares are those of their class."""
    draw = np.random.default_rng(seed)
    sizes = np.full(n_graphs, 30)
    y = draw.permutation(np.arange(n_graphs) % n_classes)
    habits = draw.dirichlet(np.ones(8), n_classes).cumsum(axis=1)[y]
    places = draw.random(sizes.sum())[:, None]
    labels = (places > habits[segment_ids(offsets(sizes))]).sum(axis=1).clip(max=7)
    return saen.Graphs.from_edges(
        _branched(draw, sizes),
        sizes,
        node_labels=labels,
        targets=y,
        duplicates="merge",
        name="classes",
    )


def large(n_graphs: int = 20_000, seed: int = 0) -> saen.Graphs:
    """Threads of 100 users."""
    return saen.generate_threads(n_graphs, average_nodes=100, seed=seed)


def digraphs(n_graphs: int = 455, seed: int = 0) -> saen.Graphs:
    """Directed graphs like syntax trees: 30 labels, an attribute of nodes, weights of edges."""
    draw = np.random.default_rng(seed)
    sizes = draw.integers(30, 200, n_graphs)
    y = np.arange(n_graphs) % 2
    edges, graph = _branched(draw, sizes), segment_ids(offsets(sizes))
    own = (y * 2)[graph]
    return saen.Graphs.from_edges(
        edges,
        sizes,
        directed=True,
        duplicates="merge",
        node_labels=draw.geometric(0.15 + 0.02 * own).clip(max=30),
        node_attributes=draw.normal(0.1 * own, 1.0, len(graph))[:, None],
        edge_attributes=draw.exponential(1 + 0.1 * own[edges[:, 0]], len(edges))[:, None],
        targets=y,
        name="digraphs",
    )


SETS: dict[str, Callable[[], saen.Graphs]] = {
    "100 classes": classes,
    "20,000 graphs": large,
    "digraphs": digraphs,
    "41,000 molecules": lambda: molecules(41_000),
    "500,000 molecules": lambda: molecules(500_000),
}


def _branched(draw: np.random.Generator, sizes: Ints) -> Ints:
    """Edges of trees whose nodes join one of the last few before them, and some rings of six."""
    starts = offsets(sizes)
    place = np.arange(starts[-1]) - np.repeat(starts[:-1], sizes)
    back = np.minimum(draw.geometric(0.7, len(place)), place)
    child = np.flatnonzero(place > 0)
    ring = np.flatnonzero((place >= 5) & (draw.random(len(place)) < 0.06))
    return np.concatenate(
        [np.column_stack([child, child - back[child]]), np.column_stack([ring, ring - 5])]
    )
