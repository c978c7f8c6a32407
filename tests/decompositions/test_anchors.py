"""Which node or edge of the data the objects of a hierarchy stand for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from saen import Decomposition, Documents, Graphs, NestedData
from saen.decompositions import (
    Anchors,
    DependencyPaths,
    Edges,
    Ego,
    Neighbourhoods,
    Nested,
    Nodes,
    Pairs,
    Paths,
)
from tests.properties.labelled import labelled_collections

radii = st.lists(st.integers(0, 2), min_size=1, max_size=3, unique=True)
directions = st.sampled_from(["both", "out", "in"])


def named(graphs: Graphs) -> Graphs:
    """The same graphs, every node with a label of its own."""
    return graphs.with_columns(node_labels=np.arange(graphs.n_nodes))


def labels(hierarchy) -> list:
    return [hierarchy.attributes.vocabulary[code] for code in hierarchy.attributes.codes]


def roots(hierarchy, level: int) -> list[int]:
    """The bottom object that every object of a level has as its root, or is carried up from."""
    column = np.arange(hierarchy.sizes[0])
    for relation in hierarchy.relations[:level]:
        chain = np.isin(np.array(relation.alphabet)[relation.roles], ["root", "carry"])
        assert relation.parents[chain].tolist() == list(range(relation.n_parents))
        column = column[relation.parts[chain]]
    return column.tolist()


@given(labelled_collections(), radii, directions, st.sampled_from(["none", "roles", "objects"]))
def test_anchors_of_ego_graphs_are_their_roots(drawn, radii, direction, edges):
    graphs = named(drawn.graphs)
    ego = Ego(radii, "node", direction, edges)
    hierarchy, anchors = ego.decompose(graphs), ego.anchors(graphs)
    n, m = graphs.n_nodes, graphs.n_edges
    assert anchors.nodes[1].tolist() == roots(hierarchy, 1)
    assert anchors.nodes[2] is None
    assert anchors.edges[1:] == (None, None)
    if edges == "objects":
        assert anchors.nodes[0].tolist() == [*range(n), *[-1] * m]
        assert anchors.edges[0].tolist() == [*[-1] * n, *range(m)]
        ends = [value[1:3] for value in labels(hierarchy)[n:]]
        assert ends == [tuple(pair) for pair in graphs.edges().tolist()]
    else:
        assert anchors.nodes[0].tolist() == labels(hierarchy)
        assert anchors.edges[0] is None


@pytest.mark.parametrize("cls", [Ego, Paths])
@given(labelled_collections(), radii, directions)
def test_anchors_of_nodes_at_a_distance_are_the_nodes(cls, drawn, radii, direction):
    graphs = named(drawn.graphs)
    decomposition = cls(radii, node_labels="node,distance", direction=direction)
    nodes = [node for node, _ in labels(decomposition.decompose(graphs))]
    assert decomposition.anchors(graphs).nodes[0].tolist() == nodes


@given(labelled_collections(), st.integers(1, 3), st.sampled_from(["none", "objects"]))
def test_anchors_of_neighbourhoods_are_their_nodes(drawn, depth, edges):
    graphs = named(drawn.graphs)
    made = Neighbourhoods(depth, "node", edges=edges)
    hierarchy, anchors = made.decompose(graphs), made.anchors(graphs)
    for level in range(1, depth + 1):
        assert anchors.nodes[level].tolist() == roots(hierarchy, level)
    assert anchors.nodes[-1] is None


@given(labelled_collections(), radii)
def test_anchors_of_subgraphs_are_their_centres(drawn, radii):
    graphs = named(drawn.graphs)
    paths = Paths(radii, 1, "node")
    hierarchy, anchors = paths.decompose(graphs), paths.anchors(graphs)
    assert anchors.nodes[0].tolist() == labels(hierarchy)
    assert (anchors.nodes[1], anchors.nodes[3]) == (None, None)
    single = Paths([0], 0, "node").decompose(graphs).relations[1]  # every centre alone
    assert single.parts.tolist() == single.parents.tolist() == list(range(graphs.n_nodes))
    assert anchors.nodes[2].tolist() == np.repeat(np.arange(graphs.n_nodes), len(radii)).tolist()


@given(labelled_collections())
def test_anchors_of_pairs_are_those_of_nodes_alone(drawn):
    graphs = named(drawn.graphs)
    anchors = Pairs(2, "node").anchors(graphs)
    assert anchors.nodes[0].tolist() == labels(Pairs(2, "node").decompose(graphs))
    assert (anchors.nodes[1:], anchors.edges) == ((None, None), (None, None, None))


@given(labelled_collections())
def test_anchors_of_bags_are_their_nodes_and_edges(drawn):
    graphs = named(drawn.graphs)
    nodes, edges = Nodes("node").anchors(graphs), Edges("node").anchors(graphs)
    assert nodes.nodes[0].tolist() == labels(Nodes("node").decompose(graphs))
    assert (nodes.nodes[1], nodes.edges) == (None, (None, None))
    assert edges.nodes == (None, None)
    ends = [value[1:3] for value in labels(Edges("node").decompose(graphs))]
    assert [tuple(graphs.edges()[edge].tolist()) for edge in edges.edges[0]] == ends


def test_anchors_of_dependency_paths_are_words():
    bite = [("dogs", 1, "nsubj"), ("bite", None, "root"), ("men", 1, "obj")]
    documents = Documents.from_sentences([[bite], [bite, bite]])
    anchors = DependencyPaths().anchors(documents)
    assert anchors.nodes[0].tolist() == list(range(9))
    assert anchors.nodes[1:] == (None, None, None)
    assert anchors.edges == (None,) * 4


def test_anchors_are_unknown_unless_a_decomposition_says_them():
    @dataclass(frozen=True)
    class Own(Decomposition):
        def decompose(self, data):
            return Nodes().decompose(data)

    assert Own().anchors(Graphs.from_edge_lists([[(0, 1)]])) is None
    assert Nested().anchors(NestedData([{"x": [1]}])) is None
    assert isinstance(Nodes().anchors(Graphs.from_edge_lists([[(0, 1)]])), Anchors)
