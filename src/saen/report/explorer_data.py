"""What the script of the explorer page reads: flat columns of numbers, packed into text.

Whatever belongs to an example lies in one flat array for all of them, with the starts of each.
"""

from __future__ import annotations

import base64
import gzip
import json
import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from saen._util.arrays import Array, Floats, distinct_with_inverse, offsets, segment_ids
from saen._util.strings import short_label, visible
from saen.data.graphs import Graphs
from saen.explanations.exploration import Exploration, Occurrences
from saen.explanations.molecules import as_molecule
from saen.report._layout import GOLDEN, neighbourhood
from saen.report.embedding_map import MAX_POINTS, project
from saen.report.molecule_drawing import draw_molecule
from saen.report.palette import BLUE, CATEGORIES, GREY, INK, PALE, VERMILION

MAX_DRAWN_NODES = 200
"""Of one graph; of a larger one, the neighbourhood of its hub is drawn."""
MAX_NODES = 1_000_000
"""Drawn in a page, all graphs together: the others have no picture."""
MAX_MOLECULES = 2_000
"""Drawn by RDKit; more are drawn as graphs."""
MAX_ROWS = 4_000_000
"""Pairs of an example and a part in it: the parts beyond them are not listed."""
MAX_TEXT = 60  # characters of an id or a label
MAX_LABEL = 12  # characters in a node


def page_data(exploration: Exploration, fold: Array | None) -> dict[str, Any]:
    """Everything in the page, as plain lists; `fold` is that of every example."""
    n = len(exploration.ids)
    method = "tsne" if n <= MAX_POINTS["tsne"] else "pca"
    points = project(exploration.vectors, method)  # type: ignore[arg-type]
    parts = exploration.parts
    n_listed = n_listed_parts(exploration)
    shown = _shown_nodes(exploration.data)
    groups = exploration.overlap
    return {
        "noun": exploration.noun,
        "classes": list(exploration.classes),
        "colours": {
            "categories": list(CATEGORIES), "negative": BLUE, "positive": VERMILION,
            "grey": GREY, "pale": PALE, "ink": INK,
        },
        "columns": _columns(exploration, fold),
        "x": rounded(points[:, 0]),
        "y": rounded(points[:, 1]),
        "method": "t-SNE" if method == "tsne" else "PCA",
        "nearest": exploration.nearest.tolist(),
        "conflicts": [group.tolist() for group in exploration.conflicts],
        "overlap": groups and [group.tolist() for group in groups],
        "parts": {
            "what": list(parts.what[:n_listed]),
            "role": list(parts.roles[:n_listed]),
            "occurrences": parts.occurrences[:n_listed].tolist(),
            "examples": parts.examples[:n_listed].tolist(),
            "per_class": parts.per_class[:n_listed].tolist(),
            "means": [rounded(row) for row in parts.means[:n_listed]],
        },
        "rows": _part_rows(exploration.occurrences, n_listed, exploration.data, shown),
        "drawings": None if shown is None else _drawings(exploration, shown),
    }  # fmt: skip


def n_listed_parts(exploration: Exploration) -> int:
    """How many of the explored parts the page has room for, the strongest first."""
    total = np.cumsum(exploration.parts.examples)
    return max(int(np.searchsorted(total, MAX_ROWS, side="right")), 1)


def packed(document: dict[str, Any]) -> str:
    """JSON, compressed, as text; the same content gives the same bytes."""
    text = json.dumps(document, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    # JSON has escaped some of them itself.
    text = re.sub(r"(?<!\\)((?:\\\\)*)\\u00([01].)", r"\1⟨U+00\2⟩", visible(text))
    data = gzip.compress(text.encode("utf-8", errors="replace"), compresslevel=6, mtime=0)
    return base64.b64encode(data).decode("ascii")


def _columns(exploration: Exploration, fold: Array | None) -> dict[str, list[Any]]:
    """The columns of the table of examples."""
    columns: dict[str, list[Any]] = {
        "id": _texts(exploration.ids),
        "prediction": _plain(exploration.predictions),
    }
    if exploration.targets is not None:
        columns["target"] = _plain(exploration.targets)
    if exploration.confidence is not None:
        columns["confidence"] = rounded(exploration.confidence)
    if exploration.errors is not None:
        wrong = exploration.errors
        columns["error"] = (
            ["wrong" if each else "right" for each in wrong.tolist()]
            if exploration.classes
            else rounded(wrong)
        )
    if fold is not None:
        columns["fold"] = _texts(fold)
    if exploration.training is not None:
        columns["set"] = ["training" if each else "new" for each in exploration.training.tolist()]
    if exploration.overlap:
        numbers = np.full(len(exploration.ids), "", dtype=object)
        for number, group in enumerate(exploration.overlap):
            numbers[group] = f"group {number + 1}"
        columns["overlap"] = numbers.tolist()
    return columns


def _shown_nodes(data: Any) -> NDArray[np.bool_] | None:
    """Which nodes of all graphs are drawn; None for data that are no graphs.

    If there are too many, graphs from all over the data are drawn, and the others not at all.
    """
    if not isinstance(data, Graphs):
        return None
    sizes = data.sizes
    turn = np.argsort(np.arange(len(data)) * GOLDEN % 1, kind="stable")
    total = np.cumsum(np.minimum(sizes, MAX_DRAWN_NODES)[turn])
    drawn = np.zeros(len(data), dtype=np.bool_)
    drawn[turn[total <= MAX_NODES]] = True
    large = sizes > MAX_DRAWN_NODES
    shown = np.repeat(drawn & ~large, sizes)
    for i in np.flatnonzero(drawn & large).tolist():
        around = neighbourhood(data[i : i + 1], MAX_DRAWN_NODES)
        shown[data.node_offsets[i] + around] = True
    return shown


def _drawings(exploration: Exploration, shown: NDArray[np.bool_]) -> dict[str, Any]:
    """Nodes of all drawn graphs, numbered in their graph, and edges between them.

    Edges are pairs of places among the drawn nodes of their graph.
    """
    graphs, found = exploration.data, exploration.occurrences
    starts, owner = graphs.node_offsets, segment_ids(graphs.node_offsets)
    nodes = np.flatnonzero(shown)
    node_starts = np.searchsorted(nodes, starts)
    place = np.cumsum(shown) - 1 - node_starts[owner]
    edges = graphs.edges()
    edges = edges[shown[edges].all(axis=1)]
    anchored = found.nodes >= 0
    centre = (starts[segment_ids(found.starts)] + found.nodes)[anchored]
    values = np.bincount(centre, found.contributions[anchored], minlength=graphs.n_nodes)
    labels = graphs.degrees() if graphs.node_labels is None else graphs.node_labels
    distinct, codes = distinct_with_inverse(labels[nodes])
    return {
        "sizes": graphs.sizes.tolist(),
        "starts": node_starts.tolist(),
        "nodes": (nodes - starts[owner[nodes]]).tolist(),
        "names": [short_label(str(label), MAX_LABEL) for label in distinct.tolist()],
        "labels": codes.tolist(),
        "values": rounded(values[nodes]),
        "edge_starts": (2 * np.searchsorted(edges[:, 0], starts)).tolist(),
        "edges": place[edges].ravel().tolist(),
        "molecules": _molecules(graphs, values.astype(np.float64)),
    }


def _molecules(graphs: Graphs, values: Floats) -> list[str]:
    """Every molecule as SVG, its atoms coloured by values; none where a graph is no molecule."""
    drawn: list[str] = []
    if len(graphs) > MAX_MOLECULES:
        return drawn
    for index, graph in enumerate(graphs):
        molecule = as_molecule(graph)
        if molecule is None:
            return []
        own = values[graphs.node_offsets[index] : graphs.node_offsets[index + 1]]
        shares = own / (np.abs(own).max(initial=0.0) or 1.0)
        shares[shares == 0] = 1e-9  # every atom has a place to click on
        svg = draw_molecule(molecule, shares, np.zeros(graph.n_edges), numbers=False).decode()
        drawn.append(svg[svg.index("<svg") :])
    return drawn


def _part_rows(
    found: Occurrences, n_listed: int, data: Any, shown: NDArray[np.bool_] | None
) -> dict[str, list[Any]]:
    """The listed parts of every example: part, contribution, how often, and the drawn nodes."""
    n = len(found.starts) - 1
    listed = (found.parts >= 0) & (found.parts < n_listed)
    codes = (segment_ids(found.starts) * n_listed + found.parts)[listed]
    rows, row, times = np.unique(codes, return_inverse=True, return_counts=True)
    values = np.bincount(row, found.contributions[listed], minlength=len(rows))
    examples, parts = np.divmod(rows, n_listed)
    around, centres = np.empty(0, np.int64), np.empty(0, np.int64)
    if shown is not None:
        nodes, own = found.nodes[listed], data.node_offsets[examples[row]]
        drawn = (nodes >= 0) & shown[own + nodes]
        width = int(data.sizes.max(initial=1))
        around, centres = np.divmod(np.unique(row[drawn] * width + nodes[drawn]), width)
    return {
        "starts": np.searchsorted(examples, np.arange(n + 1)).tolist(),
        "parts": parts.tolist(),
        "values": rounded(values),
        "times": times.tolist(),
        "node_starts": offsets(np.bincount(around, minlength=len(rows))).tolist(),
        "nodes": centres.tolist(),
    }


def rounded(values: Array) -> list[float]:
    """To four digits, as numbers with a short text.

    >>> rounded(np.array([0.123456, -98765.0]))
    [0.1235, -98760.0]
    """
    values = np.asarray(values, dtype=np.float64)
    size = np.abs(values)
    exponent = np.floor(np.log10(size, where=size > 0, out=np.zeros_like(size))).astype(np.int64)
    # Whole powers of ten are exact, their inverses are not: multiply or divide.
    power = 10.0 ** np.minimum(np.abs(3 - exponent), 300)
    small = exponent <= 3
    whole = np.round(np.where(small, values * power, values / power))
    rounded: list[float] = np.where(small, whole / power, whole * power).tolist()
    return rounded


def _texts(values: Array) -> list[str]:
    return [short_label(str(value), MAX_TEXT) for value in values.tolist()]


def _plain(values: Array) -> list[Any]:
    return rounded(values) if values.dtype.kind == "f" else _texts(values)
