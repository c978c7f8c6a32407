"""What decompositions of graphs share: node labels, directions, and what edges contribute."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from saen.data.graphs import Direction, Graphs
from saen.data.hierarchy import Attributes
from saen.data.vocabulary import Vocabulary
from saen.decompositions.base import Anchors, Decomposition, Numbers, one_of
from saen.decompositions.bins import Bins
from saen.decompositions.edge_roles import (
    EDGE_BINS,
    EDGE_MODES,
    Links,
    nodes_and_edges,
    with_binned_edges,
)
from saen.decompositions.node_labels import (
    NEEDS_ROOT,
    check_labels,
    describe_label,
    distance_pairs,
    fit_bins,
    node_attributes,
    resolve_labels,
    rooted_attributes,
    uses_bins,
    uses_distance,
)
from saen.decompositions.real_attributes import real_attributes
from saen.errors import InputError


@dataclass(frozen=True)
class _Binned(Decomposition):
    """The bins that `fit` makes of attributes that serve as labels or roles."""

    node_bins: Bins | None = field(
        default=None, kw_only=True, repr=False, metadata={"fitted": Bins}
    )
    edge_bins: Bins | None = field(
        default=None, kw_only=True, repr=False, metadata={"fitted": Bins}
    )


class GraphDecomposition(_Binned):
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
        labels = resolve_labels(self.node_labels, graphs)
        changes: dict[str, Any] = {"node_labels": labels, "node_bins": fit_bins(graphs, labels)}
        if self.edges == "bins" and graphs.edge_attributes is not None:
            changes["edge_bins"] = Bins.fit(real_attributes(graphs, "edge"), EDGE_BINS)
        if self.reads_kinds:
            kinds = self.with_kinds(graphs)
            columns = Links.of(kinds, self.direction).kinds if self._has_kinds(kinds) else []
            if self.edges == "roles" and not columns:
                raise InputError(
                    "edges='roles' needs edge labels or directions, but these graphs have neither"
                )
            if self.edges != "bins":
                changes["edges"] = "roles" if columns else "none"
            changes["kinds"] = Vocabulary.fit(columns)[0] if columns else None
        return replace(super().resolved(graphs), **changes)

    def _has_kinds(self, graphs: Graphs) -> bool:
        return graphs.edge_labels is not None or (graphs.directed and self.direction == "both")

    @property
    def reads_kinds(self) -> bool:
        """Whether edge labels and directions are roles, where the graphs have any."""
        return self.edges in ("roles", "auto", "bins")

    @property
    def learns_bins(self) -> bool:
        """Whether `fit` makes bins of attributes, which depend on the values that it sees."""
        return self.edges == "bins" or uses_bins(self.node_labels)

    def with_kinds(self, graphs: Graphs) -> Graphs:
        """The graphs with everything that distinguishes roles of edges as their labels."""
        return with_binned_edges(graphs, self.edge_bins) if self.edges == "bins" else graphs

    def bottom(self, graphs: Graphs) -> Attributes:
        """Bottom attributes of all nodes, followed by all edges where these are objects."""
        attributes = nodes_and_edges if self.edges == "objects" else node_attributes
        labels = resolve_labels(self.node_labels, graphs)
        return attributes(graphs, labels, self.vocabulary, self.direction, self.node_bins)

    def distances(self, graphs: Graphs) -> tuple[Numbers, Numbers]:
        """Nodes and their distances from some root, for labels with `distance`."""
        raise InputError(NEEDS_ROOT)

    def bottom_vocabulary(self, graphs: Graphs) -> Vocabulary | None:
        """The labels of the bottom objects."""
        if not uses_distance(self.node_labels):
            return self.bottom(graphs).vocabulary
        pairs = self.distances(graphs)
        bottom, _ = rooted_attributes(
            graphs, self.node_labels, None, self.direction, *pairs, self.node_bins
        )
        return bottom.vocabulary

    def describe_label(self, label: Any) -> Any:
        """The label in words, with ranges of numbers instead of the numbers of bins."""
        if self.edges == "objects" and isinstance(label, tuple) and label[0] == "edge":
            kind, *ends = label[:3]
            texts = [describe_label(self.node_labels, end, self.node_bins) for end in ends]
            return (kind, *texts, *label[3:])
        return describe_label(self.node_labels, label, self.node_bins)

    def bottom_name(self) -> str:
        """What the bottom level is called."""
        return "nodes and edges" if self.edges == "objects" else "nodes"

    def node_anchors(self, graphs: Graphs, *upper: Numbers | None) -> Anchors:
        """Anchors with the nodes of the upper levels, and what the bottom objects are.

        Parameters
        ----------
        graphs : Graphs
            The graphs.
        *upper : Numbers | None
            Per level above the bottom, the node of every object, if there is one.
        """
        nodes, n_edges = np.arange(graphs.n_nodes), graphs.n_edges
        if uses_distance(self.node_labels):
            nodes, _, _ = distance_pairs(graphs.n_nodes, *self.distances(graphs))
        edges: Numbers | None = None
        if self.edges == "objects":
            edges = np.concatenate([np.full(len(nodes), -1), np.arange(n_edges)])
            nodes = np.concatenate([nodes, np.full(n_edges, -1)])
        return Anchors((nodes, *upper), (edges, *[None] * len(upper)))
