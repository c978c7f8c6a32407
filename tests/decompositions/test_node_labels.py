from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import saen._util.arrays
from saen import Graphs, Vocabulary
from saen.decompositions.edge_roles import edge_values, nodes_and_edges
from saen.decompositions.node_labels import (
    core_numbers,
    label_columns,
    node_attributes,
    rooted_attributes,
    triangle_counts,
    uses_distance,
)
from tests.properties.labelled import values_of
from tests.properties.strategies import DrawnGraphs, graph_collections
from tests.references import hierarchies as reference
from tests.refusals import refuses


def simple_graphs(graphs: Graphs) -> list[nx.Graph]:
    """Undirected and without loops, as networkx has them."""
    out = []
    for graph in graphs:
        plain = nx.Graph()
        plain.add_nodes_from(range(graph.n_nodes))
        plain.add_edges_from((u, v) for u, v in graph.edges().tolist() if u != v)
        out.append(plain)
    return out


def cores(graphs: Graphs) -> list[int]:
    found = [(plain, nx.core_number(plain)) for plain in simple_graphs(graphs)]
    return [core[v] for plain, core in found for v in plain]


def triangles(graphs: Graphs) -> list[int]:
    found = [(plain, nx.triangles(plain)) for plain in simple_graphs(graphs)]
    return [through[v] for plain, through in found for v in plain]


@st.composite
def dense_graphs(draw: st.DrawFn) -> Graphs:
    """Some dozens of nodes with all sorts of core numbers."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    edge_lists, sizes, directed = [], [], draw(st.booleans())
    for size in draw(st.lists(st.integers(0, 40), min_size=1, max_size=3)):
        # The earlier of two nodes are, the likelier they are joined.
        chance = draw(st.floats(0.1, 2)) * np.exp(-np.add.outer(range(size), range(size)) / 20)
        joined = rng.random((size, size)) < chance
        edge_lists.append(np.argwhere(joined if directed else np.triu(joined)).tolist())
        sizes.append(size)
    return Graphs.from_edge_lists(edge_lists, sizes, directed=directed)


# -- counts ------------------------------------------------------------------------------------


@pytest.mark.parametrize("direction", ["both", "out", "in"])
@given(graph_collections(), st.integers(1, 5))
def test_cores_and_triangles_are_those_of_the_undirected_graph_without_loops(
    direction, drawn, per_doubling
):
    expected = {"core": cores(drawn.graphs), "triangles": triangles(drawn.graphs)}
    for name, values in expected.items():
        assert label_columns(drawn.graphs, name, direction)[0].tolist() == values
        for suffix, b in (("", 1), (f":{per_doubling}", per_doubling)):
            column = label_columns(drawn.graphs, f"log-{name}{suffix}", direction)[0]
            assert column.tolist() == [reference.log_bin(value, b) for value in values]


@given(dense_graphs(), st.integers(1, 100))
def test_networkx_agrees_on_denser_graphs_whatever_the_size_of_blocks(graphs, entries):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(saen._util.arrays, "BLOCK", entries)
        assert core_numbers(graphs).tolist() == cores(graphs)
        assert triangle_counts(graphs).tolist() == triangles(graphs)


def test_a_long_path_peels_from_both_ends():
    path = Graphs.from_edge_lists([[(v, v + 1) for v in range(500)]])
    assert set(core_numbers(path).tolist()) == {1}


def test_hubs_with_many_leaves_are_in_no_triangle():
    star = Graphs.from_edge_lists([[(0, leaf) for leaf in range(1, 3000)]])
    assert not triangle_counts(star).any()
    assert set(core_numbers(star).tolist()) == {1}


def test_counts_join_with_other_labels():
    graphs = Graphs.from_edge_lists(
        [[(0, 1), (1, 2), (2, 0), (2, 3)]], node_labels=np.array(["C", "C", "N", "O"])
    )
    attributes = node_attributes(graphs, "node, degree, core,triangles", None)
    assert values_of(attributes) == [
        *(("C", 2, 2, 1), ("C", 2, 2, 1), ("N", 3, 2, 1), ("O", 1, 1, 0)),
    ]


@pytest.mark.slow
def test_networkx_agrees_on_collaborations(dataset):
    graphs = dataset("COLLAB")[::50]
    assert core_numbers(graphs).tolist() == cores(graphs)
    assert triangle_counts(graphs).tolist() == triangles(graphs)


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
