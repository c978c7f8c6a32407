"""Pictures of explanations: contributions of nodes and edges, drawn on the graph itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from saen._util.arrays import Floats, Ints
from saen._util.strings import short_label
from saen.data.graphs import Graphs
from saen.errors import InputError
from saen.explanations.dataset import DatasetExplanation
from saen.explanations.describe import DecomposedExample, Part
from saen.explanations.explanation import Explanation
from saen.report._layout import positions
from saen.report.figures import add_note, add_text, add_title, new_figure, open_frame
from saen.report.graph_drawing import NodeStyle, draw_graph
from saen.report.molecule_drawing import draw_molecule
from saen.report.palette import CATEGORIES, INK, contribution_map

if TYPE_CHECKING:
    from matplotlib.figure import Figure


MAX_PART_NODES, MAX_PART_EDGES = 60, 300  # drawn of one part
MAX_FOCUS = 120  # nodes drawn of a graph


def draw_explanation(explanation: Explanation, title: str = "") -> Figure:
    """Draw the contributions of nodes and edges on the graph.

    Parameters
    ----------
    explanation : Explanation
        What `explain` returned.
    title : str, default=''
        The title.

    Raises
    ------
    InputError
        For an example that is not a graph, or whose bottom objects are neither nodes nor edges.
    MissingExtraError
        Without matplotlib.

    Examples
    --------
    >>> import saen
    >>> threads = saen.generate_threads(30, average_nodes=12, seed=1)
    >>> model = saen.SAENClassifier(epochs=1).fit(threads, threads.targets)
    >>> figure = draw_explanation(saen.explain(model, threads, 3))
    """
    example = explanation.decomposed
    graph = example.graph
    if graph is None or not can_draw(example):
        raise InputError(
            "only graphs whose bottom objects are nodes or edges can be drawn: "
            "write an .html or .json file"
        )
    figure = new_figure(6.4, 5.6)
    nodes, edges = explanation.on_graph()
    names = _node_names(graph)
    numbers = [str(node) for node in range(graph.n_nodes)]
    focus, note = _focus(explanation, nodes)
    if focus is not None:
        ends = positions(focus.shown, graph.n_nodes)[graph.edges()]
        own = (ends >= 0).all(axis=1)
        graph = Graphs.from_edges(ends[own], [len(focus.shown)], directed=graph.directed)
        nodes, edges = np.where(focus.coloured, nodes, 0.0)[focus.shown], edges[own]
        names, numbers = (
            [words[i] if focus.coloured[i] else "" for i in focus.shown.tolist()]
            for words in (names, numbers)
        )
    scale = float(max(np.abs(nodes).max(initial=0.0), np.abs(edges).max(initial=0.0))) or 1.0
    left_out = draw_graph(
        figure.add_axes((0.02, 0.15, 0.96, 0.76)),
        graph,
        NodeStyle.by_contribution(nodes / scale, names),
        edge_values=edges / scale if edges.any() else None,
        numbers=numbers,
    )
    _add_scale(figure, scale, explanation.evidence(-1.0), explanation.evidence(1.0))
    add_title(figure, title)
    add_note(figure, note or left_out)
    return figure


class _Focus(NamedTuple):
    """The nodes of a large graph that are drawn, and which of all nodes are coloured."""

    shown: Ints
    coloured: NDArray[np.bool_]


def _focus(explanation: Explanation, values: Floats) -> tuple[_Focus | None, str]:
    """The nodes of the strongest parts of a large graph and what surrounds them, and a note."""
    example = explanation.decomposed
    graph = example.graph
    assert graph is not None
    if graph.n_nodes <= MAX_FOCUS:
        return None, ""
    chosen = np.zeros(graph.n_nodes, dtype=np.bool_)
    for part in explanation.parts:
        region = example.region(part.bottom)
        strongest = region[np.argsort(-np.abs(values[region]), kind="stable")[:MAX_PART_NODES]]
        if chosen.any() and chosen.sum() + len(strongest) > MAX_FOCUS // 2:
            break
        chosen[strongest] = True
    near = np.asarray(graph.adjacency() @ chosen.astype(np.int64)) > 0
    around = np.flatnonzero(near & ~chosen)[: MAX_FOCUS - int(chosen.sum())]
    shown = np.union1d(np.flatnonzero(chosen), around)
    note = f"{len(shown)} of {graph.n_nodes:,} nodes: the strongest parts, and white what is near"
    return _Focus(shown, chosen), note


def draw_as_molecule(
    explanation: Explanation, *, png: bool = False, small: bool = False
) -> bytes | None:
    """The contributions on a molecule as an SVG or PNG file; None where the graph is none."""
    molecule = explanation.decomposed.molecule
    if molecule is None:
        return None
    atoms, bonds = explanation.on_graph()
    scale = float(max(np.abs(atoms).max(initial=0.0), np.abs(bonds).max(initial=0.0))) or 1.0
    return draw_molecule(molecule, atoms / scale, bonds / scale, png=png, small=small)


def draw_part(example: DecomposedExample, part: Part, scale: float = 0.0) -> Figure | bytes:
    """Draw a part: on a molecule, all its places in the colour of its contribution, as SVG.

    Of another graph, the nodes of the part and the edges between them, coloured by contributions
    inside it; a thick ring marks the node at the centre. ± `scale` has full colour.
    """
    assert example.graph is not None
    if example.molecule is not None:
        share = np.clip(part.contribution / (scale or abs(part.contribution) or 1.0), -1, 1)
        share = np.copysign(max(abs(share), 0.35), share)
        nodes, edges = np.zeros(example.graph.n_nodes), np.zeros(example.graph.n_edges)
        nodes[example.region(part.bottom if part.everywhere is None else part.everywhere)] = share
        edges[(nodes[example.graph.edges()] != 0).all(axis=1)] = share
        return draw_molecule(example.molecule, nodes, edges, small=True)
    inside = np.full(len(part.bottom), part.contribution) if part.inside is None else part.inside
    values = np.zeros(example.hierarchy.sizes[0])
    values[part.bottom] = inside / (scale or 1.0)
    nodes, edges = example.on_graph(values)
    region = example.region(part.bottom)
    place = positions(region, example.graph.n_nodes)
    ends = place[example.graph.edges()]
    own = (ends >= 0).all(axis=1)
    names = _node_names(example.graph)
    figure = new_figure(*((1.6, 1.3) if len(region) > 1 else (0.6, 0.5)))
    draw_graph(
        figure.add_axes((0.03, 0.03, 0.94, 0.94)),
        Graphs.from_edges(ends[own], [len(region)], directed=example.graph.directed),
        NodeStyle.by_contribution(nodes[region], [names[i] for i in region.tolist()]),
        edge_values=edges[own] if edges.any() else None,
        centre=None if part.node is None else int(place[part.node]),
        max_nodes=MAX_PART_NODES,
        max_edges=MAX_PART_EDGES,
    )
    return figure


def draw_dataset(explanation: DatasetExplanation, title: str = "") -> Figure:
    """Draw the total contributions of the strongest unique parts as bars.

    Parameters
    ----------
    explanation : DatasetExplanation
        What `explain_dataset` returned.
    title : str, default=''
        The title.

    Raises
    ------
    MissingExtraError
        Without matplotlib.

    Examples
    --------
    >>> import saen
    >>> threads = saen.generate_threads(30, average_nodes=12, seed=1)
    >>> model = saen.SAENClassifier(epochs=1).fit(threads, threads.targets)
    >>> figure = draw_dataset(saen.explain_dataset(model, threads))
    """
    parts = explanation.parts
    height = 1.2 + 0.42 * len(parts)
    figure = new_figure(8.4, height)
    axes = figure.add_axes((0.52, 0.6 / height, 0.45, 0.42 * len(parts) / height))
    for number, name in enumerate(explanation.targets):
        mine = [i for i, each in enumerate(parts) if each.towards == name]
        if mine:
            totals = [parts[i].total for i in mine]
            colour = CATEGORIES[number % len(CATEGORIES)]
            axes.barh(mine, totals, 0.7, color=colour, label=short_label(f"for {name}", 30))
    words = [short_label(each.part.name, 52) for each in parts]
    axes.set_yticks(range(len(parts)), words, parse_math=False)
    axes.set(ylim=(len(parts) - 0.5, -0.5))
    axes.set_xlabel("contribution of all occurrences", size=9)
    axes.tick_params(labelsize=8.5, labelcolor=INK)
    open_frame(axes)
    if parts:
        for text in axes.legend(frameon=False, fontsize=9, loc="lower right").get_texts():
            text.set_parse_math(False)
    add_title(figure, title)
    return figure


def can_draw(example: DecomposedExample) -> bool:
    """Whether the bottom objects are nodes or edges of a graph that has any."""
    if example.graph is None:
        return False
    return bool((example.nodes >= 0).any() or (example.edges >= 0).any())


def _node_names(graph: Graphs) -> list[str]:
    """Short labels of all nodes, empty where they have none."""
    if graph.node_labels is None:
        return [""] * graph.n_nodes
    rows = graph.node_labels.tolist()
    return [short_label(tuple(row) if isinstance(row, list) else row) for row in rows]


def _add_scale(figure: Figure, limit: float, negative: str, positive: str) -> None:
    """A bar of the colours with the largest value at either end, and what each end means."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    axes = figure.add_axes((0.3, 0.1, 0.4, 0.025))
    colours = ScalarMappable(Normalize(-limit, limit), contribution_map())
    bar = figure.colorbar(colours, cax=axes, orientation="horizontal")
    bar.set_ticks([-limit, 0, limit], labels=[f"{-limit:.2g}", "0", f"{limit:.2g}"])
    axes.tick_params(labelsize=8, labelcolor=INK)
    style: dict[str, Any] = {"size": 9, "va": "center"}
    add_text(figure, short_label(negative, 30), x=0.285, y=0.112, ha="right", **style)
    add_text(figure, short_label(positive, 30), x=0.715, y=0.112, ha="left", **style)
