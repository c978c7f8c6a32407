"""One level of parts: graphs as bags of nodes or of edges."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from saen._util.arrays import Ints, segment_ids
from saen.data.graphs import Direction, Graphs
from saen.data.hierarchy import Attributes, Hierarchy, Relation
from saen.data.vocabulary import Vocabulary
from saen.decompositions.base import Anchors
from saen.decompositions.edge_roles import edge_values
from saen.decompositions.graph_base import GraphDecomposition
from saen.decompositions.node_labels import DIRECTION_HELP, LABELS_HELP, resolve_labels
from saen.decompositions.real_attributes import real_attributes


@dataclass(frozen=True)
class Nodes(GraphDecomposition):
    """Graphs made of their nodes, with role `node`: the simplest R-convolution.

    Nodes are distinguished by `node_labels`, and `direction` says which edges of a directed graph
    count in degrees (see `Ego`).

    >>> Nodes().decompose(Graphs.from_edge_lists([[(0, 1), (1, 2)]]))
    Hierarchy(3 nodes → 1 graphs)
    """

    name: ClassVar[str] = "nodes"

    node_labels: str = field(default="auto", metadata={"help": LABELS_HELP})
    direction: Direction = field(default="both", metadata={"help": DIRECTION_HELP})

    def decompose(self, graphs: Graphs) -> Hierarchy:
        """The hierarchy of these graphs; with a fitted vocabulary, other labels are unseen."""
        return _bags(self.bottom(graphs), graphs.node_offsets, "node", "nodes")

    def anchors(self, graphs: Graphs) -> Anchors:
        """Every bottom object is a node."""
        return self.node_anchors(graphs, None)


@dataclass(frozen=True)
class Edges(GraphDecomposition):
    """Graphs made of their edges, with role `edge`; isolated nodes do not show.

    An edge is distinguished by the `node_labels` of its two ends (in order for directed graphs)
    and by its own labels, where the graphs have any. With `attributes` among the labels its vector
    is the edge's own, from `Graphs.edge_attributes`; `attributes` alone uses nothing else.

    >>> path = Graphs.from_edge_lists([[(0, 1), (1, 2), (2, 3)]])
    >>> edges = Edges(node_labels="degree").decompose(path)
    >>> edges
    Hierarchy(3 edges → 1 graphs)
    >>> edges.attributes.vocabulary
    Vocabulary(('edge', 1, 2), ('edge', 2, 2))
    """

    name: ClassVar[str] = "edges"

    node_labels: str = field(default="auto", metadata={"help": LABELS_HELP})
    direction: Direction = field(default="both", metadata={"help": DIRECTION_HELP})

    def decompose(self, graphs: Graphs) -> Hierarchy:
        """The hierarchy of these graphs; with a fitted vocabulary, other edges are unseen."""
        first_ends = graphs.edges()[:, 0]  # ascending
        indptr = np.searchsorted(first_ends, graphs.node_offsets)
        return _bags(self.bottom(graphs), indptr, "edge", "edges")

    def anchors(self, graphs: Graphs) -> Anchors:
        """Every bottom object is an edge."""
        return Anchors((None, None), (np.arange(graphs.n_edges), None))

    def describe_label(self, label: Any) -> Any:
        """The labels of the two ends, and the edge's own, if it has any.

        >>> Edges().describe_label(("edge", "C", "O", "double"))
        'C to O, double'
        """
        _, *ends = label
        one, other = (self._end(end) for end in ends[:2])
        return ", ".join([f"{one} to {other}", *map(str, ends[2:])])

    def _end(self, label: Any) -> str:
        text = super().describe_label(label)
        return ",".join(map(str, text)) if isinstance(text, tuple) else str(text)

    def bottom(self, graphs: Graphs) -> Attributes:
        """Bottom attributes of all edges."""
        kinds = [kind.strip() for kind in resolve_labels(self.node_labels, graphs).split(",")]
        words = [kind for kind in kinds if kind != "attributes"]
        codes = known = vectors = None
        if words:
            local, values = edge_values(graphs, ",".join(words), self.direction, self.node_bins)
            known = Vocabulary(values) if self.vocabulary is None else self.vocabulary
            codes = known.codes(values)[local]
        if len(words) < len(kinds):
            listed = segment_ids(graphs.indptr) <= graphs.indices
            vectors = real_attributes(graphs, "edge")[graphs.directed | listed]
        return Attributes(codes, known, vectors)


def _bags(attributes: Attributes, indptr: Ints, role: str, bottom: str) -> Hierarchy:
    """Every graph a bag of consecutive bottom objects."""
    n = len(attributes)
    relation = Relation(indptr, np.arange(n), np.zeros(n, dtype=np.uint8), (role,), n)
    return Hierarchy(attributes, (relation,), (bottom, "graphs"))
