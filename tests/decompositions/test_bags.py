from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from saen import Graphs, Hierarchy, InputError
from saen.data.vocabulary import UNSEEN
from saen.decompositions import Edges, Nodes
from tests.properties.strategies import graph_collections
from tests.references import hierarchies as reference

DIRECTIONS = ["both", "out", "in"]
BOTH = [Nodes, Edges]


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


@st.composite
def edge_labels(draw, drawn) -> list[list[str]]:
    label = st.sampled_from(["-", "="])
    return [draw(st.lists(label, min_size=len(e), max_size=len(e))) for e in drawn.edge_lists]


def with_edge_labels(drawn, labels) -> Graphs:
    flat = [label for own in labels for label in own]
    return Graphs.from_edge_lists(
        drawn.edge_lists,
        drawn.sizes,
        directed=drawn.directed,
        edge_labels=np.array(flat, dtype=np.str_),
    )


@pytest.mark.parametrize("direction", DIRECTIONS)
@given(graph_collections())
def test_a_graph_is_a_bag_of_its_nodes(direction, drawn):
    made = Nodes("degree", direction).decompose(drawn.graphs)
    assert made.names == ("nodes", "graphs")
    assert made.relations[0].alphabet == ("node",)
    assert bags(made) == [
        Counter(reference.degrees(size, edges, drawn.directed, direction))
        for size, edges in zip(drawn.sizes, drawn.edge_lists, strict=True)
    ]


@pytest.mark.parametrize("direction", DIRECTIONS)
@given(graph_collections(), st.data())
def test_a_graph_is_a_bag_of_its_edges(direction, drawn, data):
    labels = data.draw(edge_labels(drawn))
    made = Edges("degree", direction).decompose(with_edge_labels(drawn, labels))
    plain = Edges("degree", direction).decompose(drawn.graphs)
    assert made.names == plain.names == ("edges", "graphs")
    assert made.relations[0].alphabet == ("edge",)
    expected = []
    for size, edges, own in zip(drawn.sizes, drawn.edge_lists, labels, strict=True):
        degrees = reference.degrees(size, edges, drawn.directed, direction)
        ends = [(degrees[u], degrees[v]) for u, v in edges]
        ends = ends if drawn.directed else [tuple(sorted(pair)) for pair in ends]
        expected.append(Counter(("edge", *e, label) for e, label in zip(ends, own, strict=True)))
    assert bags(made) == expected
    assert bags(plain) == [
        sum((Counter({value[:3]: count}) for value, count in bag.items()), Counter())
        for bag in expected
    ]


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


@pytest.mark.parametrize(
    ("decomposition", "message"),
    [
        (Edges("attributes"), "these graphs have no edge attributes"),
        (Nodes("attributes"), "these graphs have no node attributes"),
        (Edges("node"), "these graphs have no node labels: use node_labels='degree'"),
    ],
)
def test_labels_that_the_graphs_do_not_have_are_refused(decomposition, message):
    with pytest.raises(InputError) as error:
        decomposition.decompose(Graphs.from_edge_lists([[(0, 1)]]))
    assert str(error.value) == message


@pytest.mark.parametrize("kind", BOTH)
def test_settings_that_make_no_sense_are_refused(kind):
    with pytest.raises(InputError) as error:
        kind(direction="up")
    assert str(error.value) == "direction must be one of both, out, in, not 'up'"
    with pytest.raises(InputError) as error:
        kind(node_labels="degree:2")
    assert str(error.value) == "the label 'degree' takes no argument, found 'degree:2'"
