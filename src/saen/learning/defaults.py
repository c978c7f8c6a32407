"""The modern recipe: what the estimators do when they are told nothing.

Chosen by cross-validation on the benchmark collections with seeds of its own, for all of them at
once; none of it depends on a collection's name. What was tried: docs/results/modern-settings.md.
"""

from __future__ import annotations

import numpy as np

from saen.data.graphs import Graphs
from saen.decompositions import Ego

LARGEST_RADIUS = 3
LARGEST_EGO = 16
"""Nodes that the ego graphs of a radius may have on average."""
SAMPLE = 100
"""Graphs, evenly spaced over the collection, whose ego graphs are counted."""
MOST_ENTRIES = 1 << 26
"""Ego graphs that might have more nodes than this in all are not even counted."""


def modern_labels(graphs: Graphs) -> str:
    """Node labels where there are any; else degrees in four bins per doubling.

    Plain degrees of hubs are nearly unique and let a network recognise single graphs.
    """
    if graphs.node_labels is not None:
        return "node"
    return "log-degree:4" if graphs.node_attributes is None else "log-degree:4,attributes"


def modern_radii(graphs: Graphs) -> tuple[int, ...]:
    """Radii 0, 1, … up to 3, as long as ego graphs stay small in a sample of the graphs.

    >>> modern_radii(Graphs.from_edge_lists([[(0, 1), (1, 2)]]))
    (0, 1, 2, 3)
    """
    sample = graphs[:: max(len(graphs) // SAMPLE, 1)]
    for radius in range(2, LARGEST_RADIUS + 1):
        ego = Ego((radius,), "degree")
        affordable = ego.costs(sample).sum() <= MOST_ENTRIES
        if not affordable or ego.decompose(sample).relations[0].n_entries > (
            LARGEST_EGO * sample.n_nodes
        ):
            return tuple(range(radius))
    return tuple(range(LARGEST_RADIUS + 1))


def modern_hidden(depth: int) -> tuple[tuple[int, ...], ...]:
    """Hidden layers of every level, bottom first, without the output layer.

    >>> modern_hidden(2)
    ((32,), (32, 16), (32,))
    """
    return ((32,), *[(32, 16)] * (depth - 1), (32,))


def modern_batch_size(n: int) -> int:
    """Graphs per step: a sixteenth of the collection, but at least 16 and at most 100."""
    return int(np.clip(n // 16, 16, 100))
