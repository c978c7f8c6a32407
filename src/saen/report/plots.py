"""Pictures: a graph beside its hierarchy, a hierarchy beside its compressed form, sizes of levels.

Levels are rows (the top level above), objects are nodes, part-of relations are lines coloured by
role. What is too large is sampled, and the picture says so. Figures are objects of their own:
matplotlib's global state stays as it is.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from saen._util.arrays import Ints
from saen._util.atomic import atomic_write
from saen._util.strings import short_label
from saen.data.compression import compress
from saen.data.documents import Documents
from saen.data.graphs import Graphs
from saen.data.hierarchy import Attributes, Hierarchy
from saen.data.vocabulary import UNSEEN, Vocabulary
from saen.decompositions import Decomposition
from saen.decompositions.node_labels import label_columns
from saen.errors import InputError, MissingExtraError
from saen.report._layout import (
    LARGEST_GRAPH,
    LONGEST_ROW,
    Lines,
    layout,
    neighbourhood,
    positions,
    row_of,
    sampled,
    untangled,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.transforms import Transform

Floats = NDArray[np.float64]
Style = dict[str, Any]
NestedData = Any
"""Graphs, documents, or other structures, as the decomposition takes them."""

FORMATS = (".svg", ".png", ".pdf")
MOST_NUMBERS = 60  # multiplicities written on the lines of one relation
NARROW = 4.6  # inches: legible on a phone, two side by side on a page
SMALL_GRAPH, MOST_EDGES = 80, 600  # nodes and edges of one among many small figures

# Okabe and Ito's colours, which colour-blind readers tell apart, without those too pale for lines.
_ROLES = ("#D55E00", "#0072B2", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#555555")
_INK, _GREY = "#333333", "#999999"
_TITLE: Style = {"x": 0.01, "y": 0.975, "va": "top", "size": 12, "weight": "bold"}
_NOTE: Style = {"y": 0.02, "va": "bottom", "size": 8, "style": "italic"}


def draw_decomposition(
    structures: NestedData, decomposition: Decomposition, title: str | None = None
) -> Figure:
    """A graph beside its hierarchy, or the words of a document; other structures without.

    `structures` holds one structure, which `title` names.

    >>> from saen import Ego
    >>> path = Graphs.from_edge_lists([[(0, 1), (1, 2)]], name="path")
    >>> draw_decomposition(path, Ego(radii=(0, 1))).texts[0].get_text()
    'path: 3 nodes → 6 ego graphs → 1 graph'
    """
    figure = new_figure(12, 5.2)
    hierarchy = _hierarchy(structures, decomposition)
    shown = untangled(hierarchy, sampled(hierarchy))
    paint = node_paint = _Paint.of(hierarchy.attributes)
    _text(figure, f"{title or structures.name or 'structure'}: {_chain(hierarchy)}", **_TITLE)
    graphs = structures.sentences if isinstance(structures, Documents) else structures
    left = 0.14
    if isinstance(graphs, Graphs):
        left = 0.4
        if isinstance(structures, Documents):
            assert graphs.node_labels is not None
            words = [short_label(word) for word in graphs.node_labels.tolist()]
            node_paint = _Paint.plain(len(words), words)
        elif hierarchy.names[0] != "nodes" or hierarchy.sizes[0] != graphs.n_nodes:
            node_paint = _Paint.plain(graphs.n_nodes)  # the bottom objects are something else
        note = _draw_graph(figure.add_axes((0.01, 0.11, 0.26, 0.79)), graphs, node_paint)
        _text(figure, note, x=0.01, **_NOTE)
    axes = figure.add_axes((left, 0.11, 0.99 - left, 0.79))
    _draw_hierarchy(axes, "hierarchy", hierarchy, shown, paint)
    _text(figure, _omitted(hierarchy, shown), x=left, **_NOTE)
    return figure


def draw_compression(
    structures: NestedData, decomposition: Decomposition, title: str | None = None
) -> Figure:
    """The hierarchy of one structure beside its compressed form, where equal objects are one node.

    >>> from saen import Ego
    >>> path = Graphs.from_edge_lists([[(0, 1), (1, 2)]], name="path")
    >>> draw_compression(path, Ego(radii=(0, 1))).texts[0].get_text()
    'path: 3 nodes → 6 ego graphs → 1 graph, collapsed to 2 → 4 → 1'
    """
    figure = new_figure(12, 5.2)
    before = _hierarchy(structures, decomposition)
    compressed = compress(before)
    after = compressed.hierarchy
    objects = untangled(before, sampled(before))
    classes = untangled(
        after,
        [
            np.arange(size) if size <= LONGEST_ROW else np.unique(compressed.unique_of(level)[ids])
            for level, (size, ids) in enumerate(zip(after.sizes, objects, strict=True))
        ],
    )
    groups = []
    for level, size in enumerate(after.sizes):  # equal objects stand together, as their classes do
        group = positions(classes[level], size)[compressed.unique_of(level)[objects[level]]]
        order = np.argsort(group, kind="stable")
        objects[level] = objects[level][order]
        groups.append(group[order])
    members = [np.diff(compressed.members(level)[0]) for level in range(after.depth + 1)]
    left = figure.add_axes((0.11, 0.11, 0.41, 0.79))
    _draw_hierarchy(left, "hierarchy", before, objects, _Paint.of(before.attributes), groups)
    right = figure.add_axes((0.62, 0.11, 0.37, 0.79))
    paint = _Paint.of(after.attributes)
    _draw_hierarchy(right, "compressed", after, classes, paint, members=members)
    chain = f"{_chain(before)}, collapsed to {' → '.join(f'{size:,}' for size in after.sizes)}"
    _text(figure, f"{title or structures.name or 'structure'}: {chain}", **_TITLE)
    _text(figure, _omitted(before, objects), x=0.01, **_NOTE)
    key = "in or under a node: how many objects are equal; ×n, where there is room: n equal parts"
    _text(figure, f"{_omitted(after, classes)}\n{key}".strip(), x=0.55, **_NOTE)
    return figure


def draw_graphs(graphs: Graphs) -> list[Figure]:
    """Every graph as a small figure of its own; equal node labels have equal colours in all.

    Of large graphs a part is shown, and the figure says so.

    >>> len(draw_graphs(Graphs.from_edge_lists([[(0, 1), (1, 2)], [(0, 1)]])))
    2
    """
    paint = _Paint.plain(graphs.n_nodes)
    if graphs.node_labels is not None:
        vocabulary, codes = Vocabulary.fit(label_columns(graphs, "node"))
        paint = _Paint.of(Attributes(codes, vocabulary))
    figures = []
    for start, graph in zip(graphs.node_offsets.tolist(), graphs, strict=False):
        figure = new_figure(2.8, 2.8)
        axes = figure.add_axes((0.03, 0.13, 0.94, 0.84))
        mine = paint.take(np.arange(start, start + graph.n_nodes))
        note = _draw_graph(axes, graph, mine, SMALL_GRAPH, MOST_EDGES)
        _text(figure, textwrap.fill(note, 44), x=0.03, **{**_NOTE, "size": 7.5})
        figures.append(figure)
    return figures


def plot_levels(levels: Sequence[dict[str, Any]], title: str = "") -> Figure:
    """Objects and part-of entries of every level before and after compression, as bars.

    `levels` is what `Compressed.levels()` returns. The scales are logarithmic.
    """
    if not levels:
        raise InputError("nothing to draw: the list of levels is empty")
    figure = new_figure(10, 1.2 + 0.6 * len(levels))
    for panel, what in enumerate(("objects", "entries")):
        axes = figure.add_axes((0.11 + 0.45 * panel, 0.16, 0.43, 0.62))
        _draw_levels(axes, levels, what)
        if panel:
            axes.set_yticks([])
    corner: Style = {"loc": "upper right", "bbox_to_anchor": (0.99, 0.99)}
    figure.legend(*figure.axes[0].get_legend_handles_labels(), ncols=2, frameon=False, **corner)
    _text(figure, title, **_TITLE)
    return figure


def plot_level_sizes(levels: Sequence[dict[str, Any]], what: str) -> Figure:
    """The `objects` or the `entries` alone of `plot_levels`, in a narrow figure."""
    rows = 0.6 * len(levels[what == "entries" :])
    figure = new_figure(NARROW, rows + 0.8)
    axes = figure.add_axes((0.25, 0.35 / (rows + 0.8), 0.73, rows / (rows + 0.8)))
    _draw_levels(axes, levels, what)
    axes.set_ylim(0.5 if what == "entries" else -0.5, None)
    axes.legend(ncols=2, frameon=False, fontsize=9, loc="lower right", bbox_to_anchor=(1, 0.98))
    return figure


def _draw_levels(axes: Axes, levels: Sequence[dict[str, Any]], what: str) -> None:
    """Bars of every level that has such a thing: the bottom has no entries."""
    keys = (what, {"objects": "unique", "entries": "entries_compressed"}[what])
    rows = [row for row in levels if what == "objects" or row["level"] > 0]
    bars = ("before", 0.2, "#BBBBBB"), ("after", -0.2, _ROLES[1])
    for key, (label, shift, colour) in zip(keys, bars, strict=True):
        y = [row["level"] + shift for row in rows]
        # A logarithmic scale has no zero to begin at.
        widths = [max(row[key] - 0.5, 0) for row in rows]
        axes.barh(y, widths, 0.38, left=0.5, color=colour, label=label)
        beside: Style = {"xytext": (3, 0), "textcoords": "offset points", "color": _INK}
        for row, at in zip(rows, y, strict=True):
            end = (max(row[key], 0.5), at)
            axes.annotate(f"{row[key]:,}", end, va="center", size=8.5, **beside)
    widest = max(1, *(row[key] for row in levels for key in keys))
    # Room for the longest number at the end of the longest bar.
    share = (6 + 5.5 * len(f"{widest:,}")) / float(_points(axes)[0])
    axes.set(xscale="log", xlim=(0.5, 0.5 * (2 * widest) ** (1 / (1 - share))))
    axes.set_ylim(-0.5, len(levels) - 0.5)
    names = [short_label(row["name"], 24) for row in rows]
    axes.set_yticks([row["level"] for row in rows], names, parse_math=False)
    axes.set_title(what, size=10, loc="left", color=_INK)
    axes.tick_params(labelsize=9, labelcolor=_INK)
    axes.spines[["top", "right"]].set_visible(False)


def save_figure(figure: Figure, path: str | Path) -> None:
    """Write a figure as .svg, .png or .pdf, whole or not at all; equal figures give equal bytes.

    Raises `InputError` for another suffix and `FileError` where the file cannot be written.
    """
    import matplotlib as mpl

    target = Path(path)
    suffix = target.suffix.lower()
    if suffix not in FORMATS:
        raise InputError(f"cannot draw to {str(path)!r}: use {', '.join(FORMATS)}")
    undated = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(suffix)
    # Text stays text in SVG files: smaller, and it can be searched and read aloud.
    style: dict[Any, Any] = {"svg.hashsalt": "saen", "svg.fonttype": "none"}
    with atomic_write(target) as temporary, mpl.rc_context(style), temporary.open("wb") as file:
        figure.savefig(file, format=suffix[1:], dpi=150, metadata=undated)


# -- figures, words and colours ----------------------------------------------------------------


def new_figure(width: float, height: float) -> Figure:
    """An empty figure that no global state knows of."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError("matplotlib", extra="plots") from error
    return Figure(figsize=(width, height), facecolor="white")


def _hierarchy(structures: NestedData, decomposition: Decomposition) -> Hierarchy:
    if len(structures) != 1:
        raise InputError(
            f"one {decomposition.takes.removesuffix('s')} can be drawn, not {len(structures)}: "
            f"choose one, as in {decomposition.takes}[3:4]"
        )
    return decomposition.decompose(structures)


def _points(axes: Axes) -> Floats:
    """Width and height of the axes in points."""
    box = axes.get_window_extent().transformed(axes.figure.dpi_scale_trans.inverted())
    return 72 * np.array([box.width, box.height])


def _raised(axes: Axes, points: float) -> Transform:
    """Data coordinates, moved up by so many points."""
    from matplotlib.transforms import ScaledTranslation

    return axes.transData + ScaledTranslation(0, points / 72, axes.figure.dpi_scale_trans)


def _text(where: Axes | Figure, text: str, *, x: float, y: float, **style: Any) -> None:
    """Text as it is: a dollar sign in a label is a dollar sign."""
    where.text(x, y, text, **{"color": _INK, "parse_math": False, **style})


def _count(number: int, name: str) -> str:
    singular = {"classes": "class"}.get(name, name.removesuffix("s"))
    return f"{number:,} {singular if number == 1 else name}"


def _chain(hierarchy: Hierarchy) -> str:
    return " → ".join(map(_count, hierarchy.sizes, hierarchy.names))


def _omitted(hierarchy: Hierarchy, shown: Sequence[Ints]) -> str:
    """A note on what is left out, or nothing."""
    sampled = [
        f"{len(ids):,} of {_count(size, name)}"
        for ids, size, name in zip(shown, hierarchy.sizes, hierarchy.names, strict=True)
        if len(ids) < size
    ]
    return f"showing {', '.join(sampled)} and the lines between them" if sampled else ""


@dataclass(frozen=True)
class _Paint:
    """How objects look: shade (RGBA) and name of each label, and the label of each object."""

    shades: Floats
    names: tuple[str, ...]
    rank: Ints

    @staticmethod
    def of(attributes: Attributes) -> _Paint:
        """From pale to dark in the order of the vocabulary; white where unseen."""
        import matplotlib as mpl

        if attributes.codes is None or attributes.vocabulary is None:
            return _Paint.plain(len(attributes))
        codes, rank = np.unique(attributes.codes, return_inverse=True)
        shades = mpl.colormaps["YlGnBu"](np.linspace(0.1, 0.9, max(len(codes), 2)))[: len(codes)]
        shades[codes == UNSEEN] = 1.0
        known = attributes.vocabulary
        names = ["?" if code == UNSEEN else short_label(known[code]) for code in codes.tolist()]
        return _Paint(shades, tuple(names), rank)

    @staticmethod
    def plain(n: int, labels: Sequence[str] | None = None) -> _Paint:
        """Grey, each object with a label of its own or none."""
        names = ("",) if labels is None else tuple(labels)
        rank = np.zeros(n, np.int64) if labels is None else np.arange(n)
        return _Paint(np.tile((0.9, 0.9, 0.9, 1.0), (len(names), 1)), names, rank)

    def take(self, ids: Ints) -> _Paint:
        return _Paint(self.shades, self.names, self.rank[ids])

    def labels(self) -> list[str]:
        return [self.names[i] for i in self.rank.tolist()]


# -- the graph ---------------------------------------------------------------------------------


def _draw_graph(
    axes: Axes,
    graphs: Graphs,
    paint: _Paint,
    most: int = LARGEST_GRAPH,
    most_edges: int | None = None,
) -> str:
    """Draw the graph; a note on what is left out, or nothing."""
    from matplotlib.collections import LineCollection
    from matplotlib.lines import Line2D

    kept = neighbourhood(graphs, most)
    edges = positions(kept, graphs.n_nodes)[graphs.edges()]
    edges = edges[(edges >= 0).all(axis=1)]
    places = layout(edges, len(kept))
    n_edges = len(edges)
    if most_edges is not None:
        edges = edges[:: max(-(-n_edges // most_edges), 1)]
    paint = paint.take(kept)
    size = float(np.clip(0.5 * _points(axes).min() / max(len(kept), 1) ** 0.5, 4, 20))
    thin = float(np.clip(14 / max(len(edges), 1) ** 0.5, 0.4, 1.4))
    axes.set_axis_off()
    axes.set_aspect("equal", adjustable="datalim")
    loop = edges[:, 0] == edges[:, 1]
    start, end = places[edges[~loop, 0]], places[edges[~loop, 1]]
    axes.add_collection(
        LineCollection(list(np.stack([start, end], axis=1)), colors=_GREY, linewidths=thin)
    )
    if graphs.directed:
        at, ahead = start + 0.62 * (end - start), end - start
        ahead = ahead / np.maximum(np.linalg.norm(ahead, axis=1, keepdims=True), 1e-9)
        head: Style = {"width": 0.01, "headwidth": 8, "headlength": 8, "headaxislength": 8}
        head |= {"angles": "xy", "units": "inches", "scale_units": "inches", "scale": 12}
        axes.quiver(*at.T, *ahead.T, color=_GREY, gid="graph-arrows", **head)
    ring: Style = {"s": (0.8 * size) ** 2, "facecolors": "none", "edgecolors": _GREY}
    ring |= {"linewidths": thin, "transform": _raised(axes, 0.6 * size), "gid": "graph-loops"}
    axes.scatter(*places[edges[loop, 0]].T, **ring)
    if not _draw_nodes(axes, "graph-nodes", places, size, paint):
        chosen = np.unique(np.linspace(0, len(paint.names) - 1, 6).astype(np.int64)).tolist()
        dot: Style = {"linestyle": "none", "marker": "o", "markeredgecolor": _INK}
        handles = [Line2D([], [], color=paint.shades[i], **dot) for i in chosen]
        names = [paint.names[i] for i in chosen]
        _add_legend(axes, handles, names, (0.5, 0.02), loc="upper center", ncols=len(names))
    if not len(kept):
        return "the graph has no nodes"
    notes = []
    if len(kept) < graphs.n_nodes:
        notes += [f"{len(kept)} of {graphs.n_nodes:,} nodes", "around the one of highest degree"]
    if len(edges) < n_edges:
        notes.append(f"{len(edges):,} of {n_edges:,} edges")
    return f"showing {', '.join(notes)}" if notes else ""


# -- the hierarchy -----------------------------------------------------------------------------


def _draw_hierarchy(
    axes: Axes,
    name: str,
    hierarchy: Hierarchy,
    shown: Sequence[Ints],
    paint: _Paint,
    groups: Sequence[Ints] | None = None,
    members: Sequence[Ints] | None = None,
) -> None:
    """Draw the shown objects of every level, left to right, and the lines between them.

    `groups` sets unequal objects apart; `members` makes it a picture of classes of those sizes.
    """
    axes.set_axis_off()
    axes.set(xlim=(0, 1), ylim=(-0.2, hierarchy.depth + 0.1))
    rows = [row_of(len(ids), groups[i] if groups else None) for i, ids in enumerate(shown)]
    used = 0
    for level, relation in enumerate(hierarchy.relations, start=1):
        colours = [_ROLES[(used + role) % len(_ROLES)] for role in range(relation.n_roles)]
        used += relation.n_roles
        lines = Lines.of(relation, shown[level], shown[level - 1])
        curves = lines.curves(level, rows[level], rows[level - 1])
        _draw_lines(axes, f"{name}-relation-{level}", lines, curves, colours)
        toward_parts = len(rows[level]) >= len(rows[level - 1])
        _draw_numbers(axes, lines, curves if toward_parts else curves[:, ::-1], colours)
        if members is None:
            _draw_roles(axes, level - 0.5, relation.alphabet, colours)
    for level, (ids, x) in enumerate(zip(shown, rows, strict=True)):
        pitch = float(_points(axes)[0] * np.diff(x).min(initial=1.0))
        diameter = float(np.clip(0.8 * pitch, 2.5, 20))
        sizes = None if members is None else [str(n) for n in members[level][ids].tolist()]
        look = paint.take(ids) if level == 0 else _Paint.plain(len(ids), sizes)
        places = np.column_stack([x, np.full(len(x), level)])
        shape = "s" if level else "o"
        fits = _draw_nodes(axes, f"{name}-level-{level}", places, diameter, look, shape)
        if level == 0:
            captions = sizes or []
            if not fits:
                numbers = [""] * len(ids) if sizes is None else [f" ({n})" for n in sizes]
                captions = [a + b for a, b in zip(look.labels(), numbers, strict=True)]
            _draw_captions(axes, x, captions, pitch, diameter)
        what = hierarchy.names[level] if members is None else "unique objects"
        heading = _count(hierarchy.sizes[level], what)
        if len(ids) < hierarchy.sizes[level]:
            heading = f"{len(ids):,} of {heading}"
        style = {"ha": "right", "va": "center", "size": 9.5, "weight": "bold"}
        _text(axes, textwrap.fill(heading, 14), x=-0.02, y=level, **style)


def _draw_nodes(
    axes: Axes, name: str, places: Floats, diameter: float, paint: _Paint, shape: str = "o"
) -> bool:
    """Draw nodes of a diameter in points with their labels inside; whether the labels fit."""
    style: Style = {"s": diameter**2, "c": paint.shades[paint.rank], "marker": shape, "gid": name}
    style |= {"edgecolors": _INK, "linewidths": min(0.8, diameter / 12), "zorder": 3}
    style["clip_on"] = False  # the top row stands at the edge
    axes.scatter(places[:, 0], places[:, 1], **style)
    longest = max(map(len, paint.names), default=0)
    if diameter < max(7.5, 2.4 * longest):
        return longest == 0
    dark = paint.shades[:, :3] @ (0.299, 0.587, 0.114) < 0.5
    for (x, y), i in zip(places.tolist(), paint.rank.tolist(), strict=True):
        size = diameter * min(0.55, 1.35 / max(len(paint.names[i]), 1))
        style = {"ha": "center", "va": "center_baseline", "size": size, "zorder": 4}
        style["color"] = "white" if dark[i] else "black"
        _text(axes, paint.names[i], x=x, y=y, **style)
    return True


def _draw_captions(
    axes: Axes, x: Floats, captions: list[str], pitch: float, diameter: float
) -> None:
    """Text under the bottom row, upright where it would run into its neighbours."""
    size = min(8.0, 0.9 * pitch)
    if not captions or size < 5.5:
        return
    upright = max(map(len, captions)) * 0.65 * size > pitch
    under = _raised(axes, -diameter / 2 - 3)
    style = {"ha": "center", "va": "top", "size": size, "rotation": 90 * upright}
    for at, caption in zip(x.tolist(), captions, strict=True):
        _text(axes, caption, x=at, y=0, transform=under, **style)


def _draw_roles(axes: Axes, y: float, alphabet: Sequence[str], colours: Sequence[str]) -> None:
    from matplotlib.lines import Line2D

    # As many lines of text as there is room for between two levels.
    room = int(_points(axes)[1] / np.ptp(axes.get_ylim()) / 13) - 2
    most = len(alphabet) if len(alphabet) <= room else max(room - 1, 1)
    names = [short_label(role, 18) for role in alphabet[:most]]
    handles = [Line2D([], [], color=colour, linewidth=2) for colour in colours[: len(names)]]
    if len(names) < len(alphabet):
        names.append(f"… {len(alphabet)} roles")
        handles.append(Line2D([], [], color="none"))
    low, high = axes.get_ylim()
    _add_legend(axes, handles, names, (0.0, (y - low) / (high - low)), loc="center right")


def _add_legend(
    axes: Axes,
    handles: Sequence[Any],
    names: Sequence[str],
    at: tuple[float, float],
    **options: Any,
) -> None:
    from matplotlib.legend import Legend

    options |= {"frameon": False, "fontsize": 8.5, "labelcolor": _INK, "columnspacing": 1.2}
    options |= {"handlelength": 1.0, "handletextpad": 0.5, "bbox_transform": axes.transAxes}
    legend = Legend(axes, handles, names, bbox_to_anchor=at, **options)
    for text in legend.get_texts():
        text.set_parse_math(False)
    axes.add_artist(legend)


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


def _draw_numbers(axes: Axes, lines: Lines, curves: Floats, colours: Sequence[str]) -> None:
    """Multiplicities, the largest first, each at the first free spot along its line."""
    from matplotlib.colors import to_rgb

    scale = _points(axes) / (1, np.ptp(axes.get_ylim()))
    several = np.flatnonzero(lines.counts > 1)
    several = several[np.argsort(-lines.counts[several], kind="stable")][:MOST_NUMBERS]
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
            _text(axes, text, x=x, y=y, color=colour, **style)
