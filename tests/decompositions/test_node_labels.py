from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from saen import Graphs, Vocabulary
from saen.decompositions.edge_roles import edge_values, nodes_and_edges
from saen.decompositions.node_labels import (
    label_columns,
    node_attributes,
    rooted_attributes,
    uses_distance,
)
from tests.properties.labelled import values_of
from tests.properties.strategies import DrawnGraphs, graph_collections
from tests.refusals import refuses


def test_counts_join_with_other_labels():
    graphs = Graphs.from_edge_lists(
        [[(0, 1), (1, 2), (2, 0), (2, 3)]], node_labels=np.array(["C", "C", "N", "O"])
    )
    attributes = node_attributes(graphs, "node, degree, core,triangles", None)
    assert values_of(attributes) == [
        *(("C", 2, 2, 1), ("C", 2, 2, 1), ("N", 3, 2, 1), ("O", 1, 1, 0)),
    ]
    attributes = node_attributes(graphs, "hub,rings,node", None)
    assert values_of(attributes) == [
        *((1, 3, 2, "C"), (1, 3, 2, "C"), (0, 3, 2, "N"), (1, 0, 0, "O")),
    ]


# -- distances to a root -----------------------------------------------------------------------


@given(graph_collections(), st.data())
def test_pairs_of_node_and_distance_that_occur_are_the_objects(drawn, data):
    graphs = drawn.graphs
    entries = data.draw(
        st.lists(
            st.tuples(st.integers(0, max(graphs.n_nodes - 1, 0)), st.integers(0, 5)),
            max_size=20 if graphs.n_nodes else 0,
        )
    )
    nodes, distances = np.array(entries, dtype=np.int64).reshape(-1, 2).T
    spec = "distance,degree" if graphs.node_labels is None else "node,distance,degree"
    attributes, parts = rooted_attributes(graphs, spec, None, "both", nodes, distances)
    pairs = sorted(set(entries))
    labels = all_labels(drawn)
    assert values_of(attributes) == [(*labels[v], d) for v, d in pairs]
    assert parts.tolist() == [pairs.index(entry) for entry in entries]
    # With a vocabulary, pairs that it lacks are unseen: a label with another distance, too.
    known = Vocabulary([(*labels[v], d) for v, d in pairs[::2]])
    again, _ = rooted_attributes(graphs, spec, known, "both", nodes, distances)
    values = [(*labels[v], d) for v, d in pairs]
    assert values_of(again) == [value if value in known else "unseen" for value in values]


def all_labels(drawn: DrawnGraphs) -> list[tuple[object, ...]]:
    degrees = drawn.degrees()
    if drawn.graphs.node_labels is None:
        return [(degree,) for degree in degrees]
    return list(zip(drawn.graphs.node_labels.tolist(), degrees, strict=True))


def test_vectors_go_with_distances():
    graphs = Graphs.from_edge_lists([[(0, 1)]], node_attributes=[[0.5], [1.5]])
    nodes, distances = np.array([0, 1, 1]), np.array([0, 1, 0])
    attributes, parts = rooted_attributes(
        graphs, "attributes,distance", None, "both", nodes, distances
    )
    assert attributes.vectors.tolist() == [[0.5], [1.5], [1.5]]
    assert values_of(attributes) == [0, 0, 1]
    assert parts.tolist() == [0, 2, 1]


def test_a_large_distance_of_one_node_makes_no_table_for_the_others():
    graphs = Graphs.from_edge_lists([[]], sizes=[100_000])
    nodes, distances = np.array([3, 99_999]), np.array([1_000_000, 0])
    attributes, parts = rooted_attributes(graphs, "distance", None, "both", nodes, distances)
    assert values_of(attributes) == [1_000_000, 0]
    assert parts.tolist() == [0, 1]


def test_the_label_distance_is_recognised_by_itself():
    assert uses_distance("node, distance")
    assert not uses_distance("node,log-degree:2")
    assert not uses_distance("auto")


@pytest.mark.parametrize("use", [label_columns, edge_values, node_attributes, nodes_and_edges])
def test_distance_is_refused_where_there_is_no_root(use):
    arguments = [None] if use in (node_attributes, nodes_and_edges) else []
    with refuses("the label 'distance' needs a root: use it with ego or paths"):
        use(Graphs.from_edge_lists([[(0, 1)]]), "degree,distance", *arguments)


def test_vectors_that_the_graphs_do_not_have_are_refused_with_distances_too():
    with refuses("these graphs have no node attributes"):
        rooted_attributes(
            Graphs.from_edge_lists([[(0, 1)]]),
            *("attributes,distance", None, "both", np.array([0]), np.array([0])),
        )
