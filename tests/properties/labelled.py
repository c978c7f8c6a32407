"""Random graphs with labels on their edges, beside the plain lists that they were made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

from saen import Graphs
from tests.properties.strategies import DrawnGraphs, graph_collections

Value = tuple[Any, ...]


@dataclass(frozen=True)
class LabelledGraphs(DrawnGraphs):
    """`edge_labels[g][i]` are the labels of the i-th listed edge of graph g, or () without any."""

    edge_labels: list[list[Value]]

    def links(self, direction: str) -> list[list[tuple[int, Value, tuple[int, int]]]]:
        """For every node of the collection (neighbour, kind, listed edge), all in global numbers.

        The kind is the labels of the edge, then out or in for directed graphs followed both ways.
        """
        out: list[list[tuple[int, Value, tuple[int, int]]]] = [[] for _ in range(sum(self.sizes))]
        both_ways = self.directed and direction == "both"
        for u, v, labels in self.all_edges():
            if u == v:
                continue
            if not self.directed or direction in ("both", "out"):
                out[u].append((v, labels + (("out",) if both_ways else ()), (u, v)))
            if not self.directed or direction in ("both", "in"):
                out[v].append((u, labels + (("in",) if both_ways else ()), (u, v)))
        return out

    def all_edges(self) -> list[tuple[int, int, Value]]:
        """(source, target, labels) of all graphs in canonical order, undirected smaller first."""
        found, first = [], 0
        for size, edges, labels in zip(self.sizes, self.edge_lists, self.edge_labels, strict=True):
            for (u, v), own in zip(edges, labels, strict=True):
                ends = (u, v) if self.directed else (min(u, v), max(u, v))
                found.append((first + ends[0], first + ends[1], own))
            first += size
        return sorted(found)

    def edge_values(self, ends: list[Any]) -> list[Value]:
        """The labels of all edges as objects, from the labels of all nodes."""
        return [
            ("edge", *(pair if self.directed else sorted(pair)), *labels)
            for u, v, labels in self.all_edges()
            for pair in [[ends[u], ends[v]]]
        ]


@st.composite
def labelled_collections(
    draw: st.DrawFn, directed: bool | None = None, width: int | None = None
) -> LabelledGraphs:
    """`graph_collections` whose edges have no label, one (numbers or strings), or two."""
    drawn = draw(graph_collections(directed))
    width = draw(st.sampled_from([0, 1, 1, 2])) if width is None else width
    value = st.sampled_from(["a", "b", "π"]) if draw(st.booleans()) else st.integers(-1, 1)
    labels = [
        [tuple(draw(value) for _ in range(width)) for _ in edges] for edges in drawn.edge_lists
    ]
    column = None
    if width:
        rows = [row for graph in labels for row in graph]
        column = np.array(rows).reshape(-1, width) if rows else np.empty((0, width), np.int64)
        column = column[:, 0] if width == 1 else column
    graphs = Graphs.from_edge_lists(
        drawn.edge_lists,
        drawn.sizes,
        directed=drawn.directed,
        node_labels=drawn.graphs.node_labels,
        edge_labels=column,
    )
    return LabelledGraphs(graphs, drawn.sizes, drawn.edge_lists, drawn.directed, labels)


def values_of(attributes: Any) -> list[Any]:
    """The label of every bottom object, `unseen` where the vocabulary lacks it."""
    return ["unseen" if code < 0 else attributes.vocabulary[code] for code in attributes.codes]
