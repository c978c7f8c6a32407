"""Random collections as plain lists, to be written by hand in any format."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

from saen import Graphs

WORDS = ["C", "N", "é", "two words", " blank ", 'quo"te', "com,ma", "line\nend", "#", "π", "tab\t"]
NUMBERS = [0, 1, -3, 7, 2**40]
REALS = [0.5, -0.25, 1e-300, 1e300, 3.0, 0.1 + 0.2]

words = st.sampled_from(WORDS)
numbers = st.sampled_from(NUMBERS)
reals = st.sampled_from(REALS)


@dataclass(frozen=True)
class PlainGraphs:
    """A collection as lists: `edges[g]` are the edges of graph g, and so on; None without them."""

    sizes: list[int]
    edges: list[list[tuple[int, int]]]
    directed: bool
    node_labels: list[list[Any]] | None
    node_attributes: list[list[list[float]]] | None
    edge_labels: list[list[Any]] | None
    edge_attributes: list[list[list[float]]] | None
    targets: list[Any] | None

    def graphs(self) -> Graphs:
        """What a reader is to make of it."""

        def column(values: list[list[Any]] | None, attributes: bool = False) -> Any:
            flat = None if values is None else [value for own in values for value in own]
            if not flat:
                return None  # a file without any node or edge does not say
            return np.array(flat, dtype=np.float64 if attributes else None)

        return Graphs.from_edge_lists(
            self.edges,
            self.sizes,
            directed=self.directed,
            node_labels=column(self.node_labels),
            node_attributes=column(self.node_attributes, attributes=True),
            edge_labels=column(self.edge_labels),
            edge_attributes=column(self.edge_attributes, attributes=True),
            targets=self.targets,
        )


@st.composite
def plain_graphs(
    draw: st.DrawFn,
    *,
    directed: bool | None = None,
    min_size: int = 0,
    text: st.SearchStrategy[str] = words,
) -> PlainGraphs:
    """At least one graph of at least `min_size` nodes, with loops and isolated nodes."""
    arrows = draw(st.booleans()) if directed is None else directed
    sizes = draw(st.lists(st.integers(min_size, 5), min_size=1, max_size=4))
    edges = []
    for size in sizes:
        node = st.integers(0, max(size - 1, 0))
        pair = st.tuples(node, node)
        key = (lambda edge: edge) if arrows else (lambda edge: tuple(sorted(edge)))
        edges.append(draw(st.lists(pair, max_size=6 if size else 0, unique_by=key)))

    def columns(counts: list[int]) -> tuple[Any, Any]:
        label = draw(st.sampled_from([None, text, numbers]))
        width = draw(st.sampled_from([None, 1, 2, 11]))
        row = None if width is None else st.lists(reals, min_size=width, max_size=width)
        return tuple(
            None
            if values is None
            else [draw(st.lists(values, min_size=count, max_size=count)) for count in counts]
            for values in (label, row)
        )

    # Several kinds in one column of targets would be refused; whole reals come back as classes.
    kind = draw(st.sampled_from([None, text, numbers, st.sampled_from([0.5, -1.25])]))
    count = len(sizes)
    return PlainGraphs(
        sizes,
        edges,
        arrows,
        *columns(sizes),
        *columns([len(own) for own in edges]),
        None if kind is None else draw(st.lists(kind, min_size=count, max_size=count)),
    )
