"""What a figure shows: its collections by identifier, and its texts."""

from __future__ import annotations

from typing import Any

import numpy as np

from saen import Graphs
from saen.decompositions import Ego

HOUSE = [(0, 1), (1, 2), (2, 3), (3, 1), (3, 4)]


def collaboration() -> Graphs:
    """Twenty nodes in four cliques that share node 0."""
    cliques = [range(6), [0, *range(6, 11)], [0, *range(11, 14)], [0, *range(14, 20)]]
    edges = {(a, b) for clique in cliques for a in clique for b in clique if a < b}
    return Graphs.from_edge_lists([sorted(edges)], name="collaboration")


def thread(n: int = 2000) -> Graphs:
    """A tree in which half of the nodes answer the first one."""
    random = np.random.default_rng(3)
    parents = [0 if random.random() < 0.5 else int(random.integers(i)) for i in range(1, n)]
    return Graphs.from_edge_lists([list(zip(parents, range(1, n), strict=True))], name="thread")


SMALL = {
    "house": (Graphs.from_edge_lists([HOUSE]), Ego((0, 1))),
    "collaboration": (collaboration(), Ego((0, 1, 2))),
    "loops and isolated nodes": (
        Graphs.from_edge_lists([[(0, 0), (0, 1), (2, 2)]], sizes=[5]),
        Ego((0, 1)),
    ),
    "directed": (Graphs.from_edge_lists([[(0, 1), (1, 0), (1, 1)]], directed=True), Ego((0, 1))),
    "no nodes": (Graphs.from_edge_lists([[]], sizes=[0]), Ego((0, 1))),
    "one node": (Graphs.from_edge_lists([[]], sizes=[1]), Ego((0,))),
}
LARGE = (thread(), Ego((0, 1)))


def artists(figure: Any) -> dict[str, Any]:
    """Collections of a figure by their identifiers."""
    return {c.get_gid(): c for axes in figure.axes for c in axes.collections if c.get_gid()}


def texts(figure: Any) -> list[str]:
    from matplotlib.text import Text

    inside = [t.get_text() for axes in figure.axes for t in axes.findobj(Text)]
    return [text for text in [*inside, *(t.get_text() for t in figure.texts)] if text]
