"""What decompositions of graphs share: node labels, directions, and what edges contribute."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np

from saen.data.graphs import Direction, Graphs
from saen.data.hierarchy import Attributes
from saen.data.vocabulary import Vocabulary
from saen.decompositions.base import Anchors, Decomposition, Numbers, one_of
from saen.decompositions.edge_roles import EDGE_MODES, Links, nodes_and_edges
from saen.decompositions.node_labels import (
    NEEDS_ROOT,
    check_labels,
    describe_label,
    distance_pairs,
    node_attributes,
    resolve_labels,
    rooted_attributes,
    uses_distance,
)
from saen.errors import InputError


class GraphDecomposition(Decomposition):
    """Base class of the decompositions of graphs.

    The settings named here are dataclass fields of the subclasses, in an order of their own.
    """

    node_labels: str
    direction: Direction
    edges: str = "none"

    def __post_init__(self) -> None:
        one_of("direction", self.direction, ("both", "out", "in"))
        one_of("edges", self.edges, EDGE_MODES)
        check_labels(self.node_labels)
        if self.edges == "objects" and uses_distance(self.node_labels):
            raise InputError(
                "edges='objects' have no distance to the root: leave the label 'distance' out, "
                "or use edges='roles'"
            )

    def resolved(self, graphs: Graphs) -> Self:
        """A copy with labels and edge kinds of these graphs; `auto` becomes `roles` or `none`."""
        changes: dict[str, Any] = {"node_labels": resolve_labels(self.node_labels, graphs)}
        if self.reads_kinds:
            columns = Links.of(graphs, self.direction).kinds if self._has_kinds(graphs) else []
            if self.edges == "roles" and not columns:
                raise InputError(
                    "edges='roles' needs edge labels or directions, but these graphs have neither"
                )
            changes["edges"] = "roles" if columns else "none"
            changes["kinds"] = Vocabulary.fit(columns)[0] if columns else None
        return replace(super().resolved(graphs), **changes)

    def _has_kinds(self, graphs: Graphs) -> bool:
        return graphs.edge_labels is not None or (graphs.directed and self.direction == "both")

    @property
    def reads_kinds(self) -> bool:
        """Whether edge labels and directions are roles, where the graphs have any."""
        return self.edges in ("roles", "auto")

    def bottom(self, graphs: Graphs) -> Attributes:
        """Bottom attributes of all nodes, followed by all edges where these are objects."""
        attributes = nodes_and_edges if self.edges == "objects" else node_attributes
        labels = resolve_labels(self.node_labels, graphs)
        return attributes(graphs, labels, self.vocabulary, self.direction)

    def distances(self, graphs: Graphs) -> tuple[Numbers, Numbers]:
        """Nodes and their distances from some root, for labels with `distance`."""
        raise InputError(NEEDS_ROOT)

    def bottom_vocabulary(self, graphs: Graphs) -> Vocabulary | None:
        """The labels of the bottom objects."""
        if not uses_distance(self.node_labels):
            return self.bottom(graphs).vocabulary
        pairs = self.distances(graphs)
        bottom, _ = rooted_attributes(graphs, self.node_labels, None, self.direction, *pairs)
        return bottom.vocabulary

    def describe_label(self, label: Any) -> Any:
        """The label with ranges of numbers instead of the numbers of logarithmic bins."""
        return describe_label(self.node_labels, label)

    def bottom_name(self) -> str:
        """What the bottom level is called."""
        return "nodes and edges" if self.edges == "objects" else "nodes"

    def node_anchors(self, graphs: Graphs, *upper: Numbers | None) -> Anchors:
        """Anchors with the nodes of the upper levels, and what the bottom objects are."""
        nodes, n_edges = np.arange(graphs.n_nodes), graphs.n_edges
        if uses_distance(self.node_labels):
            nodes, _, _ = distance_pairs(graphs.n_nodes, *self.distances(graphs))
        edges: Numbers | None = None
        if self.edges == "objects":
            edges = np.concatenate([np.full(len(nodes), -1), np.arange(n_edges)])
            nodes = np.concatenate([nodes, np.full(n_edges, -1)])
        return Anchors((nodes, *upper), (edges, *[None] * len(upper)))
