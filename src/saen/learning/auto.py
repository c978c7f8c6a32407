"""What `auto` means: every rule in one place, with its reason.

Chosen by cross-validation on the benchmark datasets with seeds of its own, for all of them at once;
nothing depends on a dataset's name. A rule looks at the training examples of a fold and at nothing
else.

- inner folds: 5 below 500 examples, 3 below 8,000, else one split. Losses on few held-out examples
  hardly tell models apart; a tenth of many does.
- radii: 0, 1, … 3 while ego graphs have at most 16 nodes on average. Larger ones cost more than all
  else and are nearly unique.
- depth of part counts: 5, less where there are many nodes. Deeper parts hardly ever repeat.
- layers: 32; 32, 16; 32. Wider ones cost more and are not better.
- batch size: a sixteenth of the training examples, from 16 to 100: about 16 steps per epoch.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from saen._util.arrays import Array, Floats, Ints, segment_reduce
from saen.data.content_hash import mix
from saen.data.graphs import Graphs
from saen.decompositions import Ego

DECOMPOSITION_OF = {"documents": "dependency_paths", "nested": "nested"}
"""The decomposition for a kind of data, where it is not the estimator's default."""

FEW_EXAMPLES, MANY_EXAMPLES = 500, 8000
"""Below the first there are five inner folds, from the second on a single split."""
MIN_INNER_EXAMPLES = 10
"""Fewer training examples are not split once more."""
FREQUENT = 100
"""Members of a class that a single split tells enough about."""
INNER_TEST_SIZE = 0.1
"""Share of the training examples that a single inner split holds out."""
MAX_INNER_TEST = 10_000
"""Examples that a single inner split holds out at most: enough for a temperature or a quantile."""

MAX_RADIUS = 3
MAX_MEAN_EGO_NODES = 16
"""Nodes that the ego graphs of a radius may have on average."""
SAMPLE_GRAPHS = 100
"""Training graphs whose ego graphs are counted."""
MAX_SAMPLE_ENTRIES = 1 << 26
"""Ego graphs that might have more nodes than this in all are not even counted."""
MAX_DEPTH = 5
"""Of neighbourhoods whose parts are counted."""
MAX_DEPTH_ENTRIES = 30_000_000
"""Nodes and neighbours of all graphs, times the depth, that part counts may take apart."""


def inner_folds(values: Array, class_sizes: Ints, *, grouped: bool = False) -> int:
    """Inner folds of training examples; 1 is a single split.

    That must hold out some of every class, and groups may be too large for it.

    >>> targets = [np.arange(n) % 2 for n in (300, 3000, 30000)]
    >>> [inner_folds(each, np.bincount(each)) for each in targets]
    [5, 3, 1]
    """
    if len(values) < FEW_EXAMPLES:
        return 5 if class_sizes.max() == 0 or class_sizes.max() >= 5 else 3
    frequent = values.ndim == 1 and (class_sizes.max() == 0 or class_sizes.min() >= FREQUENT)
    return 1 if len(values) >= MANY_EXAMPLES and frequent and not grouped else 3


def hidden(depth: int) -> tuple[tuple[int, ...], ...]:
    """Hidden layers of every level, bottom first, without the output layer.

    >>> hidden(2)
    ((32,), (32, 16), (32,))
    """
    return ((32,), *[(32, 16)] * (depth - 1), (32,))


def batch_size(n: int) -> int:
    """Examples per step of n training examples."""
    return int(np.clip(n // 16, 16, 100))


def radii(facts: GraphFacts, train: Ints) -> tuple[int, ...]:
    """Radii 0, 1, … 3, as long as ego graphs stay small in a sample of the training graphs.

    >>> path = Graphs.from_edge_lists([[(0, 1), (1, 2)]])
    >>> radii(GraphFacts.of(path), np.array([0]))
    (0, 1, 2, 3)
    """
    order = np.argsort(facts.marks[train], kind="stable")
    sample = train[order[:SAMPLE_GRAPHS]]
    for radius in range(2, MAX_RADIUS + 1):
        sizes = facts.ego_nodes(sample, radius)
        if sizes is None or sizes.sum() > MAX_MEAN_EGO_NODES * facts.nodes[sample].sum():
            return tuple(range(radius))
    return tuple(range(MAX_RADIUS + 1))


def depth(facts: GraphFacts, train: Ints) -> int:
    """The depth of neighbourhoods for part counts: 5, or less for large collections, at least 2.

    >>> depth(GraphFacts.of(Graphs.from_edge_lists([[(0, 1), (1, 2)]])), np.array([0]))
    5
    """
    entries = int(facts.nodes[train].sum() + facts.links[train].sum())
    return int(np.clip(MAX_DEPTH_ENTRIES // max(entries, 1), 2, MAX_DEPTH))


@dataclass(frozen=True, eq=False)
class GraphFacts:
    """Of every graph what rules look at, so that each fold adds up those of its training graphs.

    - `nodes`, `links`: nodes, and neighbours of all nodes; `max_degree`: neighbours of one node;
    - `marks`: numbers that order graphs at random, but by what they are: samples of the training
      graphs of several folds have most graphs in common.
    """

    graphs: Graphs
    nodes: Ints
    links: Ints
    max_degree: Ints
    marks: NDArray[np.uint64]
    _ego_nodes: dict[int, Floats] = field(default_factory=dict, repr=False)

    @staticmethod
    def of(graphs: Graphs) -> GraphFacts:
        """Those of all graphs."""
        starts, degrees = graphs.node_offsets, np.diff(graphs.indptr).astype(np.int64)
        mixed = mix(degrees.astype(np.uint64))
        return GraphFacts(
            graphs,
            np.diff(starts).astype(np.int64),
            segment_reduce(np.add, degrees, starts).astype(np.int64),
            segment_reduce(np.maximum, degrees, starts).astype(np.int64),
            mix(segment_reduce(np.add, mixed, starts)),
        )

    def ego_nodes(self, sample: Ints, radius: int) -> Floats | None:
        """Nodes of all ego graphs of some graphs, (m,), None where these are too many to count."""
        ego = Ego((radius,), "degree")
        if ego.costs(self.graphs[sample]).sum() > MAX_SAMPLE_ENTRIES:
            return None
        known = self._ego_nodes.setdefault(radius, np.full(len(self.nodes), np.nan))
        new = sample[np.isnan(known[sample])]
        if len(new):
            hierarchy = ego.decompose(self.graphs[new])
            relation, top = hierarchy.relations[0], hierarchy.relations[1]
            entries = segment_reduce(np.add, relation.multiplicity, relation.indptr)
            known[new] = np.bincount(top.parents, entries[top.parts], minlength=len(new))
        return known[sample]
