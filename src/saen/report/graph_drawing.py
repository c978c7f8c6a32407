"""`draw_graph`: one graph, its nodes and edges coloured by label or by contribution."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from saen._util.arrays import Floats, Ints
from saen._util.strings import short_label
from saen.data.graphs import Graphs
from saen.data.hierarchy import Attributes
from saen.data.vocabulary import UNSEEN, Vocabulary
from saen.decompositions.node_labels import label_columns
from saen.report._layout import MAX_NODES, layout, neighbourhood, positions
from saen.report.figures import (
    add_legend,
    add_note,
    add_text,
    evenly_spaced,
    new_figure,
    raised,
    size_in_points,
)
from saen.report.palette import GREY, INK, contribution_colours, label_colours, text_colours

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


MAX_EDGES = 3000  # drawn of one graph
MAX_SMALL_NODES, MAX_SMALL_EDGES = 80, 600  # drawn of one graph among many
MAX_LEGEND = 6  # labels in a legend
MAX_NUMBERED = 60  # nodes that have room for a number beside them


@dataclass(frozen=True)
class NodeStyle:
    """How objects look: the colour and the name of each label, and the label of each object.

    - `colours`: RGBA, shape (labels, 4); `names`: short text, shape (labels,);
    - `codes`: the label of every object, shape (n,);
    - `legend`: whether colours stand for labels, so that a legend can replace names that do not
      fit.
    """

    colours: Floats
    names: tuple[str, ...]
    codes: Ints
    legend: bool = False

    @classmethod
    def by_label(cls, attributes: Attributes) -> NodeStyle:
        """From pale to dark in the order of the vocabulary; white where unseen."""
        if attributes.codes is None or attributes.vocabulary is None:
            return cls.plain(len(attributes))
        values, codes = np.unique(attributes.codes, return_inverse=True)
        colours = label_colours(len(values))
        colours[values == UNSEEN] = 1.0
        known = attributes.vocabulary
        names = ["?" if code == UNSEEN else short_label(known[code]) for code in values.tolist()]
        return cls(colours, tuple(names), codes, legend=True)

    @classmethod
    def by_contribution(cls, values: Floats, names: Sequence[str]) -> NodeStyle:
        """By contributions between -1 and 1, each object with a name of its own."""
        return cls(contribution_colours(values), tuple(names), np.arange(len(values)))

    @classmethod
    def plain(cls, n: int, names: Sequence[str] | None = None) -> NodeStyle:
        """Grey, each object with a name of its own or none."""
        if names is None:
            return cls(_grey(1), ("",), np.zeros(n, np.int64))
        return cls(_grey(n), tuple(names), np.arange(n))

    def take(self, ids: Ints) -> NodeStyle:
        """The style of some of the objects."""
        return replace(self, codes=self.codes[ids])

    def labels(self) -> list[str]:
        """The name of every object."""
        return [self.names[code] for code in self.codes.tolist()]


def draw_graph(
    axes: Axes,
    graph: Graphs,
    nodes: NodeStyle,
    *,
    edge_values: Floats | None = None,
    centre: int | None = None,
    numbers: Sequence[str] = (),
    max_nodes: int = MAX_NODES,
    max_edges: int = MAX_EDGES,
) -> str:
    """Draw one graph; of a large one a connected region around the node of highest degree.

    `edge_values` are contributions between -1 and 1, shape (edges,); without them edges are grey.
    A thick rim marks `centre`; `numbers` of all nodes, if given, stand beside them in small graphs.
    Returns a note on what is left out, or nothing.
    """
    shown = neighbourhood(graph, max_nodes)
    if len(shown) == 0:
        axes.set_axis_off()
        return "the graph has no nodes"
    ends = positions(shown, graph.n_nodes)[graph.edges()]
    between = np.flatnonzero((ends >= 0).all(axis=1))
    places = layout(ends[between], len(shown))
    edges = _selected_edges(between, edge_values, max_edges)
    diameter = _fit(axes, places)
    colours = None if edge_values is None else contribution_colours(edge_values[edges])
    _draw_edges(axes, places, ends[edges], diameter, colours)
    if graph.directed:
        _draw_arrows(axes, places, ends[edges], colours)
    rims = np.where(shown == centre, 2.4, min(0.8, diameter / 12))
    style = nodes.take(shown)
    fits = draw_nodes(axes, "graph-nodes", places, diameter, style, linewidths=rims)
    if nodes.legend and not fits:
        _add_label_legend(axes, style)
    if numbers and len(shown) <= MAX_NUMBERED:
        beside: dict[str, Any] = {"size": 7, "color": INK, "zorder": 5}
        beside |= {"textcoords": "offset points", "xytext": (0.36 * diameter, 0.36 * diameter)}
        for place, node in zip(places.tolist(), shown.tolist(), strict=True):
            axes.annotate(numbers[node], place, **beside)
    notes = []
    if len(shown) < graph.n_nodes:
        notes.append(f"{len(shown)} of {graph.n_nodes:,} nodes, around the one of highest degree")
    if len(edges) < len(between):
        notes.append(f"{len(edges):,} of {len(between):,} edges")
    return f"showing {'; '.join(notes)}" if notes else ""


def draw_graphs(graphs: Graphs, inches: float = 2.8) -> list[Figure]:
    """Draw every graph as a small figure of its own; equal node labels have equal colours.

    Large graphs are sampled, and the figure says so.

    >>> len(draw_graphs(Graphs.from_edge_lists([[(0, 1), (1, 2)], [(0, 1)]])))
    2
    """
    style = NodeStyle.plain(graphs.n_nodes)
    if graphs.node_labels is not None:
        vocabulary, codes = Vocabulary.fit(label_columns(graphs, "node"))
        style = NodeStyle.by_label(Attributes(codes, vocabulary))
    figures = []
    for start, graph in zip(graphs.node_offsets.tolist(), graphs, strict=False):
        figure = new_figure(inches, inches)
        axes = figure.add_axes((0.03, 0.13, 0.94, 0.84))
        nodes = style.take(np.arange(start, start + graph.n_nodes))
        note = draw_graph(axes, graph, nodes, max_nodes=MAX_SMALL_NODES, max_edges=MAX_SMALL_EDGES)
        add_note(figure, textwrap.fill(note, 44), x=0.03, size=7.5)
        figures.append(figure)
    return figures


def draw_nodes(
    axes: Axes, name: str, places: Floats, diameter: float, style: NodeStyle, **options: Any
) -> bool:
    """Draw objects of a diameter in points, their names inside; whether all names fit.

    `options` are those of matplotlib's `scatter`.
    """
    options = {"linewidths": min(0.8, diameter / 12), **options}
    options |= {"s": diameter**2, "c": style.colours[style.codes], "edgecolors": INK, "zorder": 3}
    # Objects may stand at the edge of the axes.
    axes.scatter(places[:, 0], places[:, 1], gid=name, clip_on=False, **options)
    longest = max(map(len, style.names), default=0)
    if diameter < max(7.5, 2.4 * longest):
        return longest == 0
    colours = text_colours(style.colours)
    centred = {"ha": "center", "va": "center_baseline", "zorder": 4}
    for (x, y), code in zip(places.tolist(), style.codes.tolist(), strict=True):
        size = diameter * min(0.55, 1.35 / max(len(style.names[code]), 1))
        add_text(axes, style.names[code], x=x, y=y, size=size, color=colours[code], **centred)
    return True


def _selected_edges(between: Ints, values: Floats | None, limit: int) -> Ints:
    """The strongest of the edges, or where none has a value, edges from all over the graph."""
    if len(between) <= limit:
        return between
    if values is None or not values[between].any():
        return between[evenly_spaced(len(between), limit)]
    return np.sort(between[np.argsort(-np.abs(values[between]), kind="stable")[:limit]])


def _fit(axes: Axes, places: Floats) -> float:
    """Fit the axes to the places of nodes; the diameter of a node in points."""
    room = size_in_points(axes)
    largest = np.clip(room.min() / 6, 4, 22)
    diameter = float(np.clip(0.5 * room.min() / len(places) ** 0.5, 4, largest))
    low, high = places.min(axis=0), places.max(axis=0)
    # The same scale on both axes, with room for the dots and loops of the outermost nodes.
    per_point = float(((high - low) / (room - 2 * diameter - 4)).max()) or 1.0
    (left, bottom), (right, top) = (low + high + np.array([[-1], [1]]) * per_point * room) / 2
    axes.set_axis_off()
    axes.set(xlim=(left, right), ylim=(bottom, top))
    return diameter


def _draw_edges(
    axes: Axes, places: Floats, ends: Ints, diameter: float, colours: Floats | None
) -> None:
    """Lines, and for loops rings above their nodes; grey without colours, thicker with them."""
    from matplotlib.collections import LineCollection

    width = float(np.clip(14 / max(len(ends), 1) ** 0.5, 0.4, 1.4))
    width *= 1 if colours is None else 2.5
    loop = ends[:, 0] == ends[:, 1]
    line_colours: Any = GREY if colours is None else colours[~loop]
    ring_colours: Any = GREY if colours is None else colours[loop]
    lines = LineCollection(
        list(places[ends[~loop]]), colors=line_colours, linewidths=width, gid="graph-edges"
    )
    axes.add_collection(lines)
    x, y = places[ends[loop, 0]].T
    axes.scatter(
        x,
        y,
        s=(0.8 * diameter) ** 2,
        facecolors="none",
        edgecolors=ring_colours,
        linewidths=width,
        transform=raised(axes, 0.6 * diameter),
        gid="graph-loops",
    )


def _draw_arrows(axes: Axes, places: Floats, ends: Ints, colours: Floats | None) -> None:
    """Arrow heads past the middle of directed edges."""
    line = ends[:, 0] != ends[:, 1]
    start, end = places[ends[line, 0]], places[ends[line, 1]]
    ahead = (end - start) / np.maximum(np.linalg.norm(end - start, axis=1, keepdims=True), 1e-9)
    size = 8 if colours is None else 16
    axes.quiver(
        *(start + 0.62 * (end - start)).T,
        *ahead.T,
        color=GREY if colours is None else colours[line],
        gid="graph-arrows",
        width=0.01,
        headwidth=size,
        headlength=size,
        headaxislength=size,
        angles="xy",
        units="inches",
        scale_units="inches",
        scale=96 / size,
    )


def _add_label_legend(axes: Axes, style: NodeStyle) -> None:
    from matplotlib.lines import Line2D

    codes = evenly_spaced(len(style.names), MAX_LEGEND).tolist()
    dot: dict[str, Any] = {"linestyle": "none", "marker": "o", "markeredgecolor": INK}
    handles = [Line2D([], [], color=style.colours[code], **dot) for code in codes]
    names = [style.names[code] for code in codes]
    place: dict[str, Any] = {"bbox_to_anchor": (0.5, 0.02), "loc": "upper center"}
    add_legend(axes, handles, names, ncols=len(names), **place)


def _grey(n: int) -> Floats:
    return np.tile((0.9, 0.9, 0.9, 1.0), (n, 1))
