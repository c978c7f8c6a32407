"""The defaults of the estimators: what `auto` means for radii, depth, layers and batches.

Chosen by cross-validation on the benchmark datasets with seeds of its own, for all of them at
once; nothing depends on a dataset's name. What was tried: docs/results/modern-settings.md.
"""

from __future__ import annotations

import numpy as np

from saen.data.graphs import Graphs
from saen.decompositions import Ego

MAX_RADIUS = 3
MAX_MEAN_EGO_NODES = 16
"""Nodes that the ego graphs of a radius may have on average."""
SAMPLE_GRAPHS = 100
"""Graphs, evenly spaced over the dataset, whose ego graphs are counted."""
MAX_DEPTH = 5
"""Of neighbourhoods whose parts are counted."""
MAX_DEPTH_ENTRIES = 30_000_000
"""Nodes and neighbours of all graphs, times the depth, that part counts may take apart."""
MAX_SAMPLE_ENTRIES = 1 << 26
"""Ego graphs that might have more nodes than this in all are not even counted."""

MANY_EXAMPLES = 2000
"""From here on, a tenth of the examples is enough to calibrate on."""

DECOMPOSITION_OF = {"documents": "dependency_paths", "nested": "nested"}
"""The decomposition for a kind of data, where it is not the estimator's default."""


def default_radii(graphs: Graphs) -> tuple[int, ...]:
    """Radii 0, 1, … up to 3, as long as ego graphs stay small in a sample of the graphs.

    >>> default_radii(Graphs.from_edge_lists([[(0, 1), (1, 2)]]))
    (0, 1, 2, 3)
    """
    sample = graphs[:: max(len(graphs) // SAMPLE_GRAPHS, 1)]
    for radius in range(2, MAX_RADIUS + 1):
        ego = Ego((radius,), "degree")
        affordable = ego.costs(sample).sum() <= MAX_SAMPLE_ENTRIES
        if not affordable or ego.decompose(sample).relations[0].n_entries > (
            MAX_MEAN_EGO_NODES * sample.n_nodes
        ):
            return tuple(range(radius))
    return tuple(range(MAX_RADIUS + 1))


def default_depth(graphs: Graphs) -> int:
    """The depth of neighbourhoods for part counts: 5, or less for large collections, at least 2.

    >>> default_depth(Graphs.from_edge_lists([[(0, 1), (1, 2)]]))
    5
    """
    entries = graphs.n_nodes + len(graphs.indices)
    return int(np.clip(MAX_DEPTH_ENTRIES // max(entries, 1), 2, MAX_DEPTH))


def default_hidden(depth: int) -> tuple[tuple[int, ...], ...]:
    """Hidden layers of every level, bottom first, without the output layer.

    >>> default_hidden(2)
    ((32,), (32, 16), (32,))
    """
    return ((32,), *[(32, 16)] * (depth - 1), (32,))


def default_batch_size(n: int) -> int:
    """Examples per step: a sixteenth of the dataset, but at least 16 and at most 100."""
    return int(np.clip(n // 16, 16, 100))


def default_inner_folds(n: int) -> int:
    """Inner folds of n training examples to calibrate on: three, or one split of many examples.

    >>> default_inner_folds(200), default_inner_folds(5000)
    (3, 1)
    """
    return 3 if n < MANY_EXAMPLES else 1
