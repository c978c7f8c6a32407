"""`draw_graph` shows nodes, edges, loops and directions, or says what it leaves out."""

from __future__ import annotations

import numpy as np
import pytest

from saen import Graphs
from saen.report.figures import new_figure
from saen.report.graph_drawing import (
    MAX_SMALL_EDGES,
    MAX_SMALL_NODES,
    NodeStyle,
    draw_graph,
    draw_graphs,
)
from saen.report.palette import contribution_colours
from tests.report.pictures import SMALL, artists

pytest.importorskip("matplotlib", reason="needs the extra 'plots'")


def drawn(graph: Graphs, **options):
    figure = new_figure(3, 3)
    note = draw_graph(figure.subplots(), graph, NodeStyle.plain(graph.n_nodes), **options)
    return artists(figure), note


def test_draw_graph_shows_loops_as_rings_and_directions_as_arrows():
    shown, _ = drawn(SMALL["loops and isolated nodes"][0])
    assert len(shown["graph-nodes"].get_offsets()) == 5
    assert len(shown["graph-loops"].get_offsets()) == 2
    assert "graph-arrows" not in shown
    shown, _ = drawn(SMALL["directed"][0])
    assert len(shown["graph-loops"].get_offsets()) == 1
    assert len(shown["graph-arrows"].get_offsets()) == 2


def test_draw_graph_shows_the_strongest_edges_in_their_colours():
    star = Graphs.from_edge_lists([[(0, leaf) for leaf in range(1, 9)]])
    values = np.linspace(-1, 0.5, 8)
    shown, note = drawn(star, edge_values=values, max_edges=3)
    strongest = np.sort(np.argsort(-np.abs(values))[:3])
    np.testing.assert_allclose(
        shown["graph-edges"].get_colors(), contribution_colours(values[strongest])
    )
    assert note == "showing 3 of 8 edges"


def test_draw_graphs_draws_small_graphs_completely_and_says_what_is_left_out_of_large_ones():
    star = [(0, leaf) for leaf in range(1, 200)]
    clique = np.argwhere(np.triu(np.ones((60, 60)), 1)).tolist()
    graphs = Graphs.from_edge_lists([[(0, 1), (1, 2)], star, clique, []], sizes=[3, 200, 60, 0])
    figures = draw_graphs(graphs)
    shown = [artists(figure) for figure in figures[:3]]
    assert [len(each["graph-nodes"].get_offsets()) for each in shown] == [3, MAX_SMALL_NODES, 60]
    edges = [len(each["graph-edges"].get_segments()) for each in shown]
    assert edges == [2, MAX_SMALL_NODES - 1, MAX_SMALL_EDGES]
    assert [figure.texts[0].get_text().replace("\n", " ") for figure in figures] == [
        "",
        f"showing {MAX_SMALL_NODES} of 200 nodes, around the one of highest degree",
        f"showing {MAX_SMALL_EDGES} of 1,770 edges",
        "the graph has no nodes",
    ]


def test_draw_graphs_gives_equal_labels_equal_colours():
    graphs = Graphs.from_edge_lists([[(0, 1)], [(0, 1)]], node_labels=["C", "N", "N", "O"])
    one, other = (artists(figure)["graph-nodes"].get_facecolors() for figure in draw_graphs(graphs))
    np.testing.assert_array_equal(one[1], other[0])
    assert not np.array_equal(one[0], other[1])
