"""Explanations as pictures and pages: contributions drawn on the graph, parts in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from saen._util.arrays import Ints
from saen._util.strings import plural, short_label
from saen.data.graphs import Graphs
from saen.errors import InputError
from saen.explanations.describe import Part, Whole, singular
from saen.explanations.explanation import CollectionExplanation, Explanation
from saen.report._layout import layout, neighbourhood, positions
from saen.report.page import Page
from saen.report.plots import new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]
Style = dict[str, Any]

_INK, _GREY = "#333333", "#999999"
# Okabe and Ito's blue and vermilion, which colour-blind readers tell apart.
_AGAINST, _FOR = "#0072B2", "#D55E00"
_MOST = (300, 3000)  # nodes and edges drawn of a graph
_MOST_IN_PART = (60, 300)


def draw_explanation(found: Explanation, title: str = "") -> Figure:
    """The contributions of nodes and edges, drawn on the graph itself.

    Raises `InputError` for a structure that is no graph, or whose bottom objects are neither
    nodes nor edges.
    """
    graph = found.whole.graph
    if graph is None or not can_be_drawn(found.whole):
        raise InputError(
            "only graphs whose bottom objects are nodes or edges can be drawn: "
            "write an .html or .json file"
        )
    figure = new_figure(6.4, 5.6)
    axes = figure.add_axes((0.02, 0.15, 0.96, 0.76))
    nodes, edges = _on_graph(found.whole, found.contributions[0])
    scale = max(np.abs(nodes).max(initial=0.0), np.abs(edges).max(initial=0.0))
    note = _draw_graph(axes, graph, nodes, edges, _labels(found.whole), scale, _MOST)
    _add_scale(figure, scale, *map(found.speaks_for, (-1.0, 1.0)))
    style: Style = {"color": _INK, "parse_math": False, "x": 0.02}
    figure.text(y=0.97, s=title, va="top", size=12, weight="bold", **style)
    figure.text(y=0.015, s=note, va="bottom", size=8, style="italic", **style)
    return figure


def draw_part(whole: Whole, part: Part, scale: float = 0.0) -> Figure:
    """The nodes of a part and the edges between them, coloured by what they did inside it.

    A thick ring marks the node that the part lies around.
    """
    assert whole.graph is not None
    inside = np.zeros(len(part.bottom)) if part.inside is None else part.inside
    values = np.zeros(whole.hierarchy.sizes[0])
    values[part.bottom] = inside
    nodes, edges = _on_graph(whole, values)
    kept = _region(whole, part)
    figure = new_figure(1.6, 1.3)
    axes = figure.add_axes((0.03, 0.03, 0.94, 0.94))
    ends = positions(kept, whole.graph.n_nodes)[whole.graph.edges()]
    own = (ends >= 0).all(axis=1)
    graph = Graphs.from_edges(ends[own], [len(kept)], directed=whole.graph.directed)
    labels = _labels(whole)
    centre = -1 if part.node is None else int(positions(kept, whole.graph.n_nodes)[part.node])
    _draw_graph(
        axes,
        graph,
        nodes[kept],
        edges[own],
        [labels[i] for i in kept.tolist()],
        scale,
        _MOST_IN_PART,
        centre,
    )
    return figure


def draw_collection(found: CollectionExplanation, title: str = "") -> Figure:
    """The strongest classes of parts as bars: what all their occurrences contribute together."""
    n = len(found.parts)
    figure = new_figure(8.4, 1.2 + 0.42 * n)
    axes = figure.add_axes((0.52, 0.6 / (1.2 + 0.42 * n), 0.45, 0.42 * n / (1.2 + 0.42 * n)))
    palette = [*(_AGAINST, _FOR), "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#555555"]
    colours = {name: palette[i % len(palette)] for i, name in enumerate(found.targets)}
    for name in dict.fromkeys(each.towards for each in found.parts):
        mine = [i for i, each in enumerate(found.parts) if each.towards == name]
        totals = [found.parts[i].total for i in mine]
        axes.barh(mine, totals, 0.7, color=colours[name], label=short_label(f"for {name}", 30))
    words = [
        short_label(f"{', '.join(each.part.roles)}: {each.part.what}", 52) for each in found.parts
    ]
    axes.set_yticks(range(n), words, parse_math=False)
    axes.set(ylim=(n - 0.5, -0.5))
    axes.set_xlabel("contribution of all occurrences", size=9)
    axes.tick_params(labelsize=8.5, labelcolor=_INK)
    axes.spines[["top", "right"]].set_visible(False)
    if n:
        for text in axes.legend(frameon=False, fontsize=9, loc="lower right").get_texts():
            text.set_parse_math(False)
    figure.text(0.01, 0.985, title, va="top", size=12, weight="bold", color=_INK, parse_math=False)
    return figure


def explanation_page(found: Explanation, title: str, about: Mapping[str, Any]) -> Page:
    """A page about one structure; `about` says how it was made."""
    hierarchy = found.whole.hierarchy
    page = Page(title)
    page.add_paragraph(_verdict(found))
    drawn = can_be_drawn(found.whole)
    if drawn:
        page.add_figure(
            draw_explanation(found),
            f"What the {hierarchy.names[0]} contributed, over all parts that they belong to.",
        )
    page.add_heading(f"The strongest {hierarchy.names[-2]}")
    strengths = [np.abs(part.inside).max() for part in found.parts if part.inside is not None]
    scale = float(max(strengths, default=0.0))
    rows = [
        [
            *([draw_part(found.whole, part, scale)] if drawn else []),
            *_part_row(found, part),
        ]
        for part in found.parts
    ]
    columns = [*(["picture"] if drawn else []), "part", "role", "contribution", "speaks"]
    page.add_table([*columns, "made of"], rows)
    if drawn and rows:
        page.add_paragraph(
            "Pictures show the nodes of a part, coloured by what each contributed inside it; a "
            "thick ring marks the node that it lies around.",
            note=True,
        )
    for level in range(hierarchy.depth - 2, -1, -1):
        page.add_heading(f"The strongest {hierarchy.names[level]}")
        parts = found.top_parts(level, max(len(found.parts), 1))
        page.add_table([*columns[drawn:], "made of"], [_part_row(found, part) for part in parts])
    page.add_heading("Do the contributions add up?")
    rows = [
        [name, given, stayed, given + stayed, found.output]
        for name, stayed, given in found.balance()
    ]
    page.add_table(["level", "contributed", "stayed above", "sum", "output"], rows)
    explained = abs(found.output - found.baseline)
    share = f"{found.gap / explained:.1e} of what is explained" if explained else "nothing"
    page.add_paragraph(
        f"Complete: on every level, baseline and contributions differ from the output by at most "
        f"{found.gap:.1e} ({share}). Integrals took at most {plural(found.steps, 'step')}.",
        note=True,
    )
    _add_about(page, found.settings, about)
    return page


def collection_page(found: CollectionExplanation, title: str, about: Mapping[str, Any]) -> Page:
    """A page about a whole collection; `about` says how it was made."""
    page = Page(title)
    page.add_paragraph(
        f"The {plural(found.n_structures, 'structure')} consist of "
        f"{plural(int(found.occurrences.sum()), 'part')} ({found.name}), of which "
        f"{len(found.means):,} differ. Below are the {len(found.parts)} classes of equal parts "
        "whose occurrences together contribute most to the decisions of the network."
    )
    drawn = any(can_be_drawn(each.whole) for each in found.parts)
    columns = ["speaks for", "mean", "total", "occurrences", "structures", "role", "made of"]
    rows = []
    for each in found.parts:
        picture = draw_part(each.whole, each.part) if can_be_drawn(each.whole) else None
        rows.append(
            [
                *([picture] if drawn else []),
                each.towards,
                each.mean,
                each.total,
                each.occurrences,
                each.structures,
                _unbroken(", ".join(each.part.roles)),
                each.part.what,
                f"structure {each.example}, {_name(each.whole, each.part)}",
            ]
        )
    page.add_table([*(["picture"] if drawn else []), *columns, "example"], rows)
    page.add_paragraph(
        "Mean: contribution per occurrence to the logit of the class that the part speaks for most "
        "(to the predicted number, for a regression). "
        "In every structure, baseline and contributions add up to the output within "
        f"{found.gap:.1e}.",
        note=True,
    )
    _add_about(page, found.settings, about)
    return page


def can_be_drawn(whole: Whole) -> bool:
    """Whether the bottom objects are nodes or edges of a graph that has any."""
    return bool((whole.nodes >= 0).any() or (whole.edges >= 0).any())


# -- words -------------------------------------------------------------------------------------


def _verdict(found: Explanation) -> str:
    if not found.classes:
        return (
            f"Predicted: {found.prediction}. Explained is column {found.target}: "
            f"{found.output:.4g}, of which {found.baseline:.4g} without any parts. "
            "Positive contributions raise it."
        )
    what = "log-odds" if len(found.classes) == 2 else "logit"
    return (
        f"Predicted: {found.prediction}. Explained is the {what} of {found.target}, "
        f"{found.output:+.3f}, which would be {found.baseline:+.3f} without any parts. Positive "
        f"contributions speak for {found.target}."
    )


def _name(whole: Whole, part: Part) -> str:
    name = singular(whole.hierarchy.names[part.level])
    around = part.level and part.node is not None
    words = f"{name} of node {part.node}" if around else f"{name} {part.number}"
    return _unbroken(words)


def _unbroken(words: str) -> str:
    """Words that stay on one line."""
    return words.replace(" ", "\N{NO-BREAK SPACE}")


def _part_row(found: Explanation, part: Part) -> list[Any]:
    return [
        _name(found.whole, part),
        _unbroken(", ".join(part.roles)),
        part.contribution,
        found.speaks_for(part.contribution),
        part.what,
    ]


def _add_about(page: Page, settings: Mapping[str, Any], about: Mapping[str, Any]) -> None:
    page.add_heading("Settings")
    words = {f"decomposition: {key}": value for key, value in settings.items()}
    page.add_pairs({key: str(value) for key, value in {**about, **words}.items()})


# -- pictures ----------------------------------------------------------------------------------


def _on_graph(whole: Whole, values: Floats) -> tuple[Floats, Floats]:
    """Values of bottom objects as values of nodes, (N,), and of edges, (E,)."""
    assert whole.graph is not None
    sums = []
    for places, n in (whole.nodes, whole.graph.n_nodes), (whole.edges, whole.graph.n_edges):
        own = places >= 0
        sums.append(np.bincount(places[own], values[own], minlength=n).astype(np.float64))
    return sums[0], sums[1]


def _labels(whole: Whole) -> list[str]:
    """Short labels of all nodes; nothing where a node is several objects, or none."""
    assert whole.graph is not None
    labels = [""] * whole.graph.n_nodes
    if whole.hierarchy.attributes.codes is None or (np.bincount(whole.nodes + 1)[1:] > 1).any():
        return labels
    for number, node in enumerate(whole.nodes.tolist()):
        if node >= 0:
            labels[node] = short_label(whole.label(number))
    return labels


def _region(whole: Whole, part: Part) -> Ints:
    """The nodes of a part, ascending: its own, and the ends of its edges."""
    assert whole.graph is not None
    nodes, edges = whole.nodes[part.bottom], whole.edges[part.bottom]
    ends = whole.graph.edges()[edges[edges >= 0]]
    return np.unique(np.concatenate([nodes[nodes >= 0], ends.ravel()]))


def _draw_graph(
    axes: Axes,
    graph: Graphs,
    nodes: Floats,
    edges: Floats,
    labels: Sequence[str],
    scale: float,
    most: tuple[int, int],
    centre: int = -1,
) -> str:
    """Draw the graph with its nodes and edges coloured; a note on what is left out.

    `most` says how many nodes and edges are drawn at most.
    """
    kept = neighbourhood(graph, most[0])
    ends = positions(kept, graph.n_nodes)[graph.edges()]
    between = np.flatnonzero((ends >= 0).all(axis=1))
    places = layout(ends[between], len(kept))
    # The strongest edges, or where none has a value, edges from all over the graph.
    order = np.argsort(-np.abs(edges[between]), kind="stable")
    step = 1 if edges.any() else max(-(-len(between) // most[1]), 1)
    shown = np.sort(between[order[::step][: most[1]]])
    box = axes.get_window_extent()
    room = 72 * np.array([box.width, box.height]) / axes.figure.dpi  # in points
    largest = np.clip(room.min() / 6, 4, 22)
    size = float(np.clip(0.5 * room.min() / max(len(kept), 1) ** 0.5, 4, largest))
    low, high = (places.min(axis=0), places.max(axis=0)) if len(places) else np.zeros((2, 2))
    # The same scale on both axes, with room for the dots and loops of the outermost nodes.
    per_point = float(((high - low) / (room - 2 * size - 4)).max()) or 1.0
    (left, bottom), (right, top) = (low + high + np.array([[-1], [1]]) * per_point * room) / 2
    axes.set_axis_off()
    axes.set(xlim=(left, right), ylim=(bottom, top))
    lines = _shades(edges[shown], scale) if edges.any() else None
    _draw_edges(axes, places, ends[shown], lines, size, graph.directed)
    rims = np.where(kept == centre, 2.4, min(0.8, size / 12))
    words = [labels[i] for i in kept.tolist()]
    _draw_nodes(axes, places, _shades(nodes[kept], scale), words, size, rims)
    notes = []
    if len(kept) < graph.n_nodes:
        where = "around the one of highest degree"
        notes.append(f"{len(kept)} of {graph.n_nodes:,} nodes, {where}")
    if len(shown) < len(between):
        notes.append(f"{len(shown):,} of {len(between):,} edges between them")
    return f"showing {'; '.join(notes)}" if notes else ""


def _draw_edges(
    axes: Axes, places: Floats, ends: Ints, shades: Floats | None, size: float, directed: bool
) -> None:
    """Lines, arrow heads where edges have a direction, and rings for loops; grey without shades."""
    from matplotlib.collections import LineCollection

    thin = float(np.clip(14 / max(len(ends), 1) ** 0.5, 0.4, 1.4)) * (1 if shades is None else 2.5)
    loop = ends[:, 0] == ends[:, 1]
    colours: Any = (_GREY, _GREY) if shades is None else (shades[~loop], shades[loop])
    start, end = places[ends[~loop, 0]], places[ends[~loop, 1]]
    lines = list(np.stack([start, end], axis=1))
    axes.add_collection(LineCollection(lines, colors=colours[0], linewidths=thin, gid="edges"))
    if directed:
        ahead = end - start
        ahead = ahead / np.maximum(np.linalg.norm(ahead, axis=1, keepdims=True), 1e-9)
        wide = 8 if shades is None else 16
        head: Style = {"width": 0.01, "headwidth": wide, "headlength": wide, "headaxislength": wide}
        head |= {"angles": "xy", "units": "inches", "scale_units": "inches", "scale": 96 / wide}
        axes.quiver(*(start + 0.62 * (end - start)).T, *ahead.T, color=colours[0], **head)
    ring: Style = {"s": (1.7 * size) ** 2, "facecolors": "none", "edgecolors": colours[1]}
    axes.scatter(*places[ends[loop, 0]].T, linewidths=thin, **ring)


def _draw_nodes(
    axes: Axes, places: Floats, shades: Floats, words: Sequence[str], size: float, rims: Floats
) -> None:
    """Dots of a size in points, with their labels where these fit."""
    style: Style = {"s": size**2, "c": shades, "edgecolors": _INK, "linewidths": rims, "zorder": 3}
    axes.scatter(places[:, 0], places[:, 1], gid="nodes", **style)
    if size < max(7.5, 2.4 * max(map(len, words), default=0)):
        return
    dark = shades[:, :3] @ (0.299, 0.587, 0.114) < 0.5
    for (x, y), word, pale in zip(places.tolist(), words, dark.tolist(), strict=True):
        style = {"ha": "center", "va": "center_baseline", "zorder": 4, "parse_math": False}
        style |= {"size": size * min(0.55, 1.35 / max(len(word), 1))}
        axes.text(x, y, word, color="white" if pale else "black", **style)


def _shades(values: Floats, scale: float) -> Floats:
    """The colours of values between -scale and scale, (n, 4)."""
    shades: Floats = _colormap()(0.5 + 0.5 * values / (scale or 1.0))
    return shades


def _colormap() -> Colormap:
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("contributions", [_AGAINST, "#F7F7F7", _FOR])


def _add_scale(figure: Figure, scale: float, negative: str, positive: str) -> None:
    """A bar of the colours with the largest value at either end, and what each end speaks for."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    limit = scale or 1.0
    axes = figure.add_axes((0.3, 0.1, 0.4, 0.025))
    shades = ScalarMappable(Normalize(-limit, limit), _colormap())
    bar = figure.colorbar(shades, cax=axes, orientation="horizontal")
    bar.set_ticks([-limit, 0, limit], labels=[f"{-limit:.2g}", "0", f"{limit:.2g}"])
    axes.tick_params(labelsize=8, labelcolor=_INK)
    style: Style = {"color": _INK, "size": 9, "parse_math": False, "va": "center"}
    figure.text(0.285, 0.112, short_label(negative, 30), ha="right", **style)
    figure.text(0.715, 0.112, short_label(positive, 30), ha="left", **style)
