from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given

from saen import Graphs, Hierarchy
from saen.data.vocabulary import UNSEEN
from saen.decompositions import Edges, Nodes
from tests.properties.labelled import labelled_collections
from tests.properties.strategies import graph_collections
from tests.references import hierarchies as reference

DIRECTIONS = ["both", "out", "in"]


def bags(hierarchy: Hierarchy) -> list[Counter]:
    """For every graph the multiset of the labels of its parts."""
    relation, attributes = hierarchy.relations[0], hierarchy.attributes
    assert relation.counts is None
    assert sorted(relation.parts.tolist()) == list(range(len(attributes)))
    values = [None if c == UNSEEN else attributes.vocabulary[c] for c in attributes.codes]
    return [
        Counter(values[part] for _, part, _ in reference.entries_of(relation, graph))
        for graph in range(len(hierarchy))
    ]


def by_graph(values: list, starts: np.ndarray) -> list[Counter]:
    return [Counter(values[first:last]) for first, last in pairwise(starts.tolist())]


@pytest.mark.parametrize("direction", DIRECTIONS)
@given(graph_collections())
def test_a_graph_is_a_bag_of_its_nodes(direction, drawn):
    made = Nodes("degree", direction).decompose(drawn.graphs)
    assert made.names == ("nodes", "graphs")
    assert made.relations[0].alphabet == ("node",)
    assert bags(made) == by_graph(drawn.degrees(direction), drawn.graphs.node_offsets)


@pytest.mark.parametrize("direction", DIRECTIONS)
@given(labelled_collections())
def test_a_graph_is_a_bag_of_its_edges(direction, drawn):
    made = Edges("degree", direction).decompose(drawn.graphs)
    assert made.names == ("edges", "graphs")
    assert made.relations[0].alphabet == ("edge",)
    values = drawn.edge_values(drawn.degrees(direction))
    assert bags(made) == by_graph(values, np.cumsum([0, *map(len, drawn.edge_lists)]))


@pytest.mark.parametrize("directed", [False, True])
def test_vectors_of_edges_are_their_own(directed):
    vectors = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    graphs = Graphs.from_edge_lists(
        [[(1, 0), (1, 2), (0, 0)]],
        directed=directed,
        edge_attributes=vectors,
        node_labels=["O", "C", "C"],
    )
    assert graphs.edges().tolist() == [[0, 0], [1, 0] if directed else [0, 1], [1, 2]]
    alone = Edges("attributes").fit(graphs).decompose(graphs).attributes
    assert alone.codes is None
    assert alone.vectors.tolist() == vectors[[2, 0, 1]].tolist()
    beside = Edges("attributes, node").decompose(graphs).attributes
    assert beside.vectors.tolist() == alone.vectors.tolist()
    assert [beside.vocabulary[code] for code in beside.codes] == [
        ("edge", "O", "O"),
        ("edge", "C", "O"),
        ("edge", "C", "C"),
    ]


def test_vectors_of_nodes_are_those_of_the_graphs():
    vectors = np.linspace(0, 1, 6).reshape(3, 2)
    graphs = Graphs.from_edge_lists([[(0, 1)], []], sizes=[2, 1], node_attributes=vectors)
    assert Nodes("attributes").decompose(graphs).attributes.vectors.tolist() == vectors.tolist()
