"""Pictures of hierarchies: a graph beside its hierarchy, a hierarchy beside its compressed form.

Levels are rows (the top level above), objects are nodes, part-of relations are lines coloured by
role. What is too large is sampled, and the picture says so.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from saen._util.arrays import Floats, Ints
from saen._util.strings import short_label
from saen.data.compression import Compressed, compress
from saen.data.documents import Documents
from saen.data.graphs import Graphs
from saen.data.hierarchy import Hierarchy
from saen.data.nested import NestedData
from saen.decompositions import Decomposition
from saen.errors import InputError
from saen.explanations.describe import singular
from saen.report._layout import MAX_ROW, Lines, positions, row_of, sampled, untangled
from saen.report.figures import (
    add_legend,
    add_note,
    add_text,
    add_title,
    new_figure,
    raised,
    size_in_points,
)
from saen.report.graph_drawing import NodeStyle, draw_graph, draw_nodes
from saen.report.palette import BLUE, CATEGORIES, VERMILION

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Data = Graphs | Documents | NestedData

MAX_MULTIPLICITIES = 60  # written on the lines of one relation
# The first role (the root of an ego graph) is rare and the second common: the brighter one first.
ROLE_COLOURS = (VERMILION, BLUE, *CATEGORIES[2:])


def draw_decomposition(
    data: Data, decomposition: Decomposition, title: str | None = None
) -> Figure:
    """Draw one example beside its hierarchy; nested data have the hierarchy only.

    Parameters
    ----------
    data : Data
        One graph, document or nested example, such as `graphs[3:4]`.
    decomposition : Decomposition
        What gives the hierarchy.
    title : str | None, default=None
        The name of the example; by default that of the data.

    Raises
    ------
    InputError
        For more than one example.
    MissingExtraError
        Without matplotlib.

    Examples
    --------
    >>> from saen.decompositions import Ego
    >>> path = Graphs.from_edge_lists([[(0, 1), (1, 2)]], name="path")
    >>> draw_decomposition(path, Ego(radii=(0, 1))).texts[0].get_text()
    'path: 3 nodes → 6 ego graphs → 1 graph'
    """
    figure = new_figure(12, 5.2)
    hierarchy = _decompose_one(data, decomposition)
    panel = _Panel("hierarchy", hierarchy, untangled(hierarchy, sampled(hierarchy)))
    add_title(figure, f"{title or data.name or 'example'}: {_chain(hierarchy)}")
    left = 0.14
    if not isinstance(data, NestedData):
        left = 0.4
        graph = data.sentences if isinstance(data, Documents) else data
        style = (
            _word_style(graph)
            if isinstance(data, Documents)
            else _node_style(graph, hierarchy, decomposition)
        )
        add_note(figure, draw_graph(figure.add_axes((0.01, 0.11, 0.26, 0.79)), graph, style))
    panel.draw(figure.add_axes((left, 0.11, 0.99 - left, 0.79)))
    add_note(figure, panel.note(), x=left)
    return figure


def draw_compression(data: Data, decomposition: Decomposition, title: str | None = None) -> Figure:
    """Draw the hierarchy of one example next to its compressed form.

    In the compressed form identical objects are one node, which says how many there are.

    Parameters
    ----------
    data : Data
        One example.
    decomposition : Decomposition
        How to decompose it.
    title : str | None, default=None
        The title. None: names and numbers of objects.

    Raises
    ------
    InputError
        For more than one example.
    MissingExtraError
        Without matplotlib.

    Examples
    --------
    >>> from saen.decompositions import Ego
    >>> path = Graphs.from_edge_lists([[(0, 1), (1, 2)]], name="path")
    >>> draw_compression(path, Ego(radii=(0, 1))).texts[0].get_text()
    'path: 3 nodes → 6 ego graphs → 1 graph, compressed to 2 → 4 → 1'
    """
    figure = new_figure(12, 5.2)
    before = _decompose_one(data, decomposition)
    compressed = compress(before)
    left, right = _compression_panels(before, compressed)
    sizes = " → ".join(f"{size:,}" for size in compressed.hierarchy.sizes)
    chain = f"{_chain(before)}, compressed to {sizes}"
    add_title(figure, f"{title or data.name or 'example'}: {chain}")
    left.draw(figure.add_axes((0.11, 0.11, 0.41, 0.79)))
    right.draw(figure.add_axes((0.62, 0.11, 0.37, 0.79)))
    add_note(figure, left.note())
    key = "number in or under a node: identical objects; ×n: n identical parts"
    add_note(figure, f"{right.note()}\n{key}".strip(), x=0.55)
    return figure


def _decompose_one(data: Data, decomposition: Decomposition) -> Hierarchy:
    if len(data) != 1:
        one = decomposition.takes.removesuffix("s")
        raise InputError(
            f"can draw one {one}, not {len(data)}: select one, as in {decomposition.takes}[3:4]"
        )
    return decomposition.decompose(data)


def _compression_panels(before: Hierarchy, compressed: Compressed) -> tuple[_Panel, _Panel]:
    """The hierarchy with identical objects side by side, and the compressed one."""
    after = compressed.hierarchy
    objects = untangled(before, sampled(before))
    unique = untangled(
        after,
        [
            np.arange(size) if size <= MAX_ROW else np.unique(compressed.unique_of(level)[ids])
            for level, (size, ids) in enumerate(zip(after.sizes, objects, strict=True))
        ],
    )
    groups = []
    for level, size in enumerate(after.sizes):
        group = positions(unique[level], size)[compressed.unique_of(level)[objects[level]]]
        order = np.argsort(group, kind="stable")
        objects[level] = objects[level][order]
        groups.append(group[order])
    copies = [np.diff(compressed.members(level)[0]) for level in range(after.depth + 1)]
    left = _Panel("hierarchy", before, objects, groups=groups)
    return left, _Panel("compressed", after, unique, copies=copies)


def _word_style(sentences: Graphs) -> NodeStyle:
    assert sentences.node_labels is not None
    words = [short_label(word) for word in sentences.node_labels.tolist()]
    return NodeStyle.plain(len(words), words)


def _node_style(graph: Graphs, hierarchy: Hierarchy, decomposition: Decomposition) -> NodeStyle:
    """That of the bottom objects where these are the nodes, else plain."""
    anchors = decomposition.anchors(graph)
    nodes = None if anchors is None else anchors.nodes[0]
    if nodes is not None and np.array_equal(nodes, np.arange(graph.n_nodes)):
        return NodeStyle.by_label(hierarchy.attributes)
    return NodeStyle.plain(graph.n_nodes)


def _count(number: int, name: str) -> str:
    return f"{number:,} {singular(name) if number == 1 else name}"


def _chain(hierarchy: Hierarchy) -> str:
    return " → ".join(map(_count, hierarchy.sizes, hierarchy.names))


# -- one hierarchy -----------------------------------------------------------------------------


@dataclass(frozen=True)
class _Panel:
    """One hierarchy: the objects to show of every level, left to right.

    - `groups`: where they change along a row, objects are set apart;
    - `copies`: for a compressed hierarchy, how many identical objects each unique one stands for.
    """

    name: str
    hierarchy: Hierarchy
    shown: Sequence[Ints]
    groups: Sequence[Ints] | None = None
    copies: Sequence[Ints] | None = None

    @cached_property
    def rows(self) -> list[Floats]:
        """The place of every shown object in its row."""
        return [
            row_of(len(ids), None if self.groups is None else self.groups[level])
            for level, ids in enumerate(self.shown)
        ]

    def note(self) -> str:
        """A note on what is left out, or nothing."""
        sampled = [
            f"{len(ids):,} of {_count(size, name)}"
            for ids, size, name in zip(
                self.shown, self.hierarchy.sizes, self.hierarchy.names, strict=True
            )
            if len(ids) < size
        ]
        return f"showing {', '.join(sampled)} and the lines between them" if sampled else ""

    def draw(self, axes: Axes) -> None:
        """Draw the shown objects of every level and the lines between them."""
        axes.set_axis_off()
        axes.set(xlim=(0, 1), ylim=(-0.2, self.hierarchy.depth + 0.1))
        first_colour = 0
        for level, relation in enumerate(self.hierarchy.relations, start=1):
            colours = [
                ROLE_COLOURS[(first_colour + role) % len(ROLE_COLOURS)]
                for role in range(relation.n_roles)
            ]
            first_colour += relation.n_roles
            self._draw_relation(axes, level, colours)
        for level in range(self.hierarchy.depth + 1):
            self._draw_level(axes, level)

    def _draw_relation(self, axes: Axes, level: int, colours: Sequence[str]) -> None:
        """The lines from the objects of a level down to their parts."""
        relation = self.hierarchy.relations[level - 1]
        lines = Lines.of(relation, self.shown[level], self.shown[level - 1])
        curves = lines.curves(level, self.rows[level], self.rows[level - 1])
        _draw_lines(axes, f"{self.name}-relation-{level}", lines, curves, colours)
        toward_parts = len(self.rows[level]) >= len(self.rows[level - 1])
        _draw_multiplicities(axes, lines, curves if toward_parts else curves[:, ::-1], colours)
        if self.copies is None:
            _draw_roles(axes, level - 0.5, relation.alphabet, colours)

    def _draw_level(self, axes: Axes, level: int) -> None:
        ids, x = self.shown[level], self.rows[level]
        pitch = float(size_in_points(axes)[0] * np.diff(x).min(initial=1.0))
        diameter = float(np.clip(0.8 * pitch, 2.5, 20))
        copies = None if self.copies is None else [str(n) for n in self.copies[level][ids].tolist()]
        places = np.column_stack([x, np.full(len(x), level)])
        gid = f"{self.name}-level-{level}"
        if level:
            style = NodeStyle.plain(len(ids), copies)
            draw_nodes(axes, gid, places, diameter, style, marker="s")
        else:
            style = NodeStyle.by_label(self.hierarchy.attributes).take(ids)
            captions = copies or []
            if not draw_nodes(axes, gid, places, diameter, style):
                suffixes = [""] * len(ids) if copies is None else [f" ({n})" for n in copies]
                captions = [a + b for a, b in zip(style.labels(), suffixes, strict=True)]
            _draw_captions(axes, x, captions, pitch, diameter)
        what = self.hierarchy.names[level] if self.copies is None else "unique objects"
        heading = _count(self.hierarchy.sizes[level], what)
        if len(ids) < self.hierarchy.sizes[level]:
            heading = f"{len(ids):,} of {heading}"
        bold: dict[str, Any] = {"ha": "right", "va": "center", "size": 9.5, "weight": "bold"}
        add_text(axes, textwrap.fill(heading, 14), x=-0.02, y=level, **bold)


def _draw_captions(
    axes: Axes, x: Floats, captions: list[str], pitch: float, diameter: float
) -> None:
    """Text under the bottom row, upright where it would run into its neighbours."""
    size = min(8.0, 0.9 * pitch)
    if not captions or size < 5.5:
        return
    upright = max(map(len, captions)) * 0.65 * size > pitch
    under = raised(axes, -diameter / 2 - 3)
    style = {"ha": "center", "va": "top", "size": size, "rotation": 90 * upright}
    for at, caption in zip(x.tolist(), captions, strict=True):
        add_text(axes, caption, x=at, y=0, transform=under, **style)


def _draw_roles(axes: Axes, y: float, alphabet: Sequence[str], colours: Sequence[str]) -> None:
    """The roles of a relation beside it, as many as there is room for between two levels."""
    from matplotlib.lines import Line2D

    room = int(size_in_points(axes)[1] / np.ptp(axes.get_ylim()) / 13) - 2
    limit = len(alphabet) if len(alphabet) <= room else max(room - 1, 1)
    names = [short_label(role, 18) for role in alphabet[:limit]]
    handles = [Line2D([], [], color=colour, linewidth=2) for colour in colours[: len(names)]]
    if len(names) < len(alphabet):
        names.append(f"… {len(alphabet)} roles")
        handles.append(Line2D([], [], color="none"))
    low, high = axes.get_ylim()
    at = (0.0, (y - low) / (high - low))
    add_legend(axes, handles, names, bbox_to_anchor=at, loc="center right")


def _draw_lines(
    axes: Axes, name: str, lines: Lines, curves: Floats, colours: Sequence[str]
) -> None:
    """Many lines are thin and translucent; rare roles lie on top of common ones."""
    from matplotlib.collections import LineCollection

    per_role = np.bincount(lines.roles, minlength=len(colours))
    widths = np.minimum(1 + 0.3 * np.log2(lines.counts), 3)
    for role in np.argsort(-per_role, kind="stable").tolist():
        mine = np.flatnonzero(lines.roles == role)
        if len(mine) == 0:
            continue
        paths = [curves[i] if lines.bends[i] else curves[i, [0, -1]] for i in mine.tolist()]
        thin, alpha = np.clip(np.array([11, 8]) / len(mine) ** 0.5, (0.5, 0.3), (1.3, 0.85))
        style = {"linewidths": thin * widths[mine], "alpha": float(alpha), "gid": f"{name}-{role}"}
        axes.add_collection(LineCollection(paths, colors=colours[role], **style))


def _draw_multiplicities(axes: Axes, lines: Lines, curves: Floats, colours: Sequence[str]) -> None:
    """Multiplicities, the largest first, each at the first free spot along its line."""
    from matplotlib.colors import to_rgb

    scale = size_in_points(axes) / (1, np.ptp(axes.get_ylim()))
    several = np.flatnonzero(lines.counts > 1)
    several = several[np.argsort(-lines.counts[several], kind="stable")][:MAX_MULTIPLICITIES]
    box = {"facecolor": "white", "edgecolor": "none", "alpha": 0.85, "pad": 0.5}
    style = {"ha": "center", "va": "center", "size": 7.5, "bbox": box, "zorder": 2.5}
    taken = np.empty((0, 3))  # x, y and half the width of the texts so far
    for line in several.tolist():
        text = f"×{lines.counts[line]:,}"
        half = 2.3 * len(text) + 1.5
        spots = curves[line, 4:-4]
        gaps = np.abs(spots[:, None] - taken[:, :2]) * scale
        free = ((gaps[..., 0] > half + taken[:, 2]) | (gaps[..., 1] > 9)).all(axis=1)
        if free.any():
            x, y = spots[free.argmax()].tolist()
            taken = np.vstack([taken, (x, y, half)])
            colour = tuple(0.7 * c for c in to_rgb(colours[lines.roles[line]]))
            add_text(axes, text, x=x, y=y, color=colour, **style)
