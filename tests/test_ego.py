from __future__ import annotations

import math

import numpy as np
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st
from properties.strategies import graph_collections
from reference import entries_of

from saen import Decomposition, Ego, Graphs, Hierarchy, InputError, Vocabulary, equivalent
from saen.decompositions.labels import label_columns
from saen.vocabulary import UNSEEN

DIRECTIONS = ["both", "out", "in"]
radii_lists = st.lists(st.integers(0, 4), min_size=1, max_size=4, unique=True).map(tuple)


# -- ego graphs --------------------------------------------------------------------------------


@pytest.mark.parametrize("direction", DIRECTIONS)
@given(graph_collections(), radii_lists)
def test_ego_graphs_are_the_vertices_within_each_radius(direction, drawn, radii):
    hierarchy = Ego(radii, direction=direction).decompose(drawn.graphs)
    egos, graphs = hierarchy.relations
    radii = sorted(radii)
    first = 0
    for number, (size, edges) in enumerate(zip(drawn.sizes, drawn.edge_lists, strict=True)):
        near = reference.neighbours(size, edges, drawn.directed, direction)
        expected_egos = []
        for root in range(size):
            for place, radius in enumerate(radii):
                ego = (first + root) * len(radii) + place
                expected_egos.append((place, ego, 1))
                expected = [
                    (0 if vertex == root else 1, first + vertex, 1)
                    for vertex in reference.ball(near, root, radius)
                ]
                assert sorted(entries_of(egos, ego)) == sorted(expected)
        assert sorted(entries_of(graphs, number)) == sorted(expected_egos)
        first += size
    assert hierarchy.sizes == (first, first * len(radii), len(drawn.sizes))
    assert egos.alphabet == ("root", "elem")
    assert graphs.alphabet == tuple(f"radius {radius}" for radius in radii)
    assert egos.counts is None
    assert graphs.counts is None


@given(graph_collections(), st.integers(0, 3))
def test_networkx_agrees_on_ego_graphs(drawn, radius):
    networkx = pytest.importorskip("networkx")
    egos = Ego((radius,)).decompose(drawn.graphs).relations[0]
    first = 0
    for size, edges in zip(drawn.sizes, drawn.edge_lists, strict=True):
        graph = networkx.DiGraph() if drawn.directed else networkx.Graph()
        graph.add_nodes_from(range(size))
        graph.add_edges_from(edges)
        for root in range(size):
            ego = networkx.ego_graph(graph, root, radius=radius, undirected=True)
            parts = [part - first for _, part, _ in entries_of(egos, first + root)]
            assert sorted(parts) == sorted(ego.nodes)
        first += size


def test_a_loop_never_makes_a_vertex_its_own_element():
    loop = Graphs.from_edge_lists([[(0, 0), (0, 1)]])
    egos = Ego(radii=(0, 1, 2), labels="degree").decompose(loop)
    assert egos.relations[0].matrix("elem").toarray().tolist() == [
        *([0, 0], [0, 1], [0, 1]),
        *([0, 0], [1, 0], [1, 0]),
    ]
    assert egos.relations[0].matrix("root").toarray().tolist() == [[1, 0]] * 3 + [[0, 1]] * 3
    # … but it counts twice in the degree.
    assert [egos.attributes.vocabulary[code] for code in egos.attributes.codes] == [3, 1]


def test_a_hub_is_within_reach_of_all_its_leaves():
    star = Graphs.from_edge_lists([[(0, leaf) for leaf in range(1, 301)]])
    egos = Ego(radii=(0, 1, 2)).decompose(star).relations[0]
    lengths = np.diff(egos.indptr).reshape(-1, 3)
    assert lengths[0].tolist() == [1, 301, 301]
    assert (lengths[1:] == [1, 2, 301]).all()


def test_an_isolated_vertex_is_alone_in_every_radius():
    alone = Graphs.from_edge_lists([[]], sizes=[1])
    hierarchy = Ego(radii=(0, 1, 5)).decompose(alone)
    assert hierarchy.relations[0].matrix("root").toarray().tolist() == [[1]] * 3
    assert hierarchy.relations[0].matrix("elem").nnz == 0


def test_there_may_be_more_radii_than_a_byte_counts():
    path = Graphs.from_edge_lists([[(0, 1)]])
    roles = Ego(radii=tuple(range(300))).decompose(path).relations[1].roles
    assert roles.tolist() == [*range(300), *range(300)]


@pytest.mark.parametrize("radii", [(0,), (1,), (0, 1, 2)])
def test_empty_graphs_and_empty_collections_have_a_decomposition(radii):
    ego = Ego(radii=radii)
    assert ego.decompose(Graphs.from_edge_lists([])).sizes == (0, 0, 0)
    assert ego.decompose(Graphs.from_edge_lists([[], []], sizes=[0, 0])).sizes == (0, 0, 2)


@pytest.mark.parametrize("directed", [False, True])
@given(st.data())
def test_no_graph_depends_on_another(directed, data):
    ego = Ego(radii=(0, 2), labels="degree")
    one, other = (data.draw(graph_collections(directed)) for _ in range(2))
    together = Graphs.concatenate([g.graphs._with(node_labels=None) for g in (one, other)])
    apart = Hierarchy.concatenate([ego.decompose(one.graphs), ego.decompose(other.graphs)])
    assert ego.decompose(together) == apart


# -- labels ------------------------------------------------------------------------------------


def labels_of(hierarchy: Hierarchy) -> list[object]:
    attributes = hierarchy.attributes
    return [attributes.vocabulary[code] for code in attributes.codes]


@pytest.mark.parametrize("direction", DIRECTIONS)
@given(graph_collections(), st.integers(1, 9))
def test_degrees_count_the_ends_of_edges(direction, drawn, per_doubling):
    expected = [
        degree
        for size, edges in zip(drawn.sizes, drawn.edge_lists, strict=True)
        for degree in reference.degrees(size, edges, drawn.directed, direction)
    ]
    ego = Ego(labels="degree", direction=direction)
    assert labels_of(ego.decompose(drawn.graphs)) == expected
    binned = Ego(labels=f"log-degree:{per_doubling}", direction=direction)
    assert labels_of(binned.decompose(drawn.graphs)) == [
        reference.log_bin(degree, per_doubling) for degree in expected
    ]
    pair = Ego(labels="degree, log-degree", direction=direction)
    assert labels_of(pair.decompose(drawn.graphs)) == [
        (degree, reference.log_bin(degree, 1)) for degree in expected
    ]


@pytest.mark.parametrize("per_doubling", [1, 2, 3, 8])
def test_a_bin_begins_exactly_at_its_power_of_two(per_doubling):
    stars = Graphs.from_edge_lists(
        [
            [(0, leaf) for leaf in range(1, degree + 1)]
            for k in range(1, 11)
            for degree in (2**k - 2, 2**k - 1, 2**k)
        ]
    )
    hubs = stars.node_offsets[:-1][stars.sizes > 0]
    column = label_columns(stars, f"log-degree:{per_doubling}")[0]
    for degree, found in zip(stars.degrees()[hubs], column[hubs], strict=True):
        assert found == reference.log_bin(int(degree), per_doubling)
        assert math.isclose(found, per_doubling * math.log2(1 + degree), abs_tol=1)


def labelled(**columns) -> Graphs:
    return Graphs.from_edge_lists([[(0, 1)], [(0, 1), (1, 2)]], **columns)


def test_several_labels_are_a_tuple():
    graphs = labelled(node_labels=np.array(["C", "C", "O", "C", "N"]))
    assert labels_of(Ego(labels="node").decompose(graphs)) == ["C", "C", "O", "C", "N"]
    assert labels_of(Ego(labels="node,degree").decompose(graphs)) == [
        *(("C", 1), ("C", 1)),
        *(("O", 1), ("C", 2), ("N", 1)),
    ]
    assert labels_of(Ego(labels="degree,node").decompose(graphs))[2] == (1, "O")
    two_columns = labelled(node_labels=np.array([[1, 2], [1, 3], [1, 2], [0, 0], [1, 2]]))
    assert labels_of(Ego().decompose(two_columns)) == [(1, 2), (1, 3), (1, 2), (0, 0), (1, 2)]


def test_node_labels_are_the_default_and_degrees_where_there_are_none():
    assert Ego().fit(labelled()).labels == "degree"
    assert Ego().fit(labelled(node_labels=np.arange(5))).labels == "node"
    assert Ego(labels="degree").fit(labelled(node_labels=np.arange(5))).labels == "degree"


def test_attributes_are_vectors_alone_or_beside_labels():
    vectors = np.linspace(0, 1, 10).reshape(5, 2)
    graphs = labelled(node_attributes=vectors)
    alone = Ego(labels="attributes").fit(graphs).decompose(graphs).attributes
    assert alone.codes is None
    assert np.array_equal(alone.vectors, vectors)
    both = Ego(labels="attributes,degree").decompose(graphs)
    assert np.array_equal(both.attributes.vectors, vectors)
    assert labels_of(both) == [1, 1, 1, 2, 1]


@given(graph_collections(directed=False), graph_collections(directed=False))
def test_with_a_fitted_vocabulary_other_labels_are_unseen(known, new):
    ego = Ego(labels="degree").fit(known.graphs)
    free = Ego(labels="degree")
    attributes = ego.decompose(new.graphs).attributes
    seen = set(labels_of(free.decompose(known.graphs)))
    assert attributes.vocabulary == Vocabulary(seen)
    for code, label in zip(attributes.codes, labels_of(free.decompose(new.graphs)), strict=True):
        if label in seen:
            assert attributes.vocabulary[code] == label
        else:
            assert code == UNSEEN
    # What was fitted is decomposed as without fitting.
    assert ego.decompose(known.graphs) == free.decompose(known.graphs)


# -- the promises of a decomposition -----------------------------------------------------------


@pytest.mark.parametrize("direction", DIRECTIONS)
@given(graph_collections(), radii_lists)
def test_costs_are_never_below_the_entries(direction, drawn, radii):
    ego = Ego(radii, direction=direction)
    costs = ego.costs(drawn.graphs)
    egos = ego.decompose(drawn.graphs).relations[0]
    entries = np.diff(egos.indptr[drawn.graphs.node_offsets * len(radii)])
    assert costs.shape == entries.shape
    assert (costs >= entries).all()
    assert (costs <= drawn.graphs.sizes**2 * len(radii)).all()


@given(graph_collections(directed=False))
def test_costs_are_exact_up_to_radius_one_without_loops(drawn):
    graphs = drawn.graphs.without_loops()
    ego = Ego(radii=(0, 1))
    egos = ego.decompose(graphs).relations[0]
    assert ego.costs(graphs).tolist() == np.diff(egos.indptr[graphs.node_offsets * 2]).tolist()


@given(graph_collections(), st.data())
def test_the_numbering_of_vertices_does_not_matter(drawn, data):
    edge_lists = []
    for size, edges in zip(drawn.sizes, drawn.edge_lists, strict=True):
        name = data.draw(st.permutations(range(size)))
        edge_lists.append([(name[u], name[v]) for u, v in edges])
    renamed = Graphs.from_edge_lists(edge_lists, drawn.sizes, directed=drawn.directed)
    ego = Ego(radii=(0, 1, 2), labels="degree")
    assert equivalent(ego.decompose(drawn.graphs), ego.decompose(renamed))


def test_settings_are_json_and_build_it_again():
    ego = Ego(radii=(2, 0), labels="log-degree:4", direction="in")
    assert isinstance(ego, Decomposition)
    settings = ego.settings()
    assert settings == {
        "name": "ego",
        "radii": [0, 2],
        "labels": "log-degree:4",
        "direction": "in",
    }
    assert Ego(**{key: value for key, value in settings.items() if key != "name"}) == ego


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"radii": ()}, "radii must be distinct whole numbers from 0 on, at least one: ()"),
        ({"radii": (1, 1)}, "radii must be distinct whole numbers from 0 on, at least one: (1, 1)"),
        ({"radii": (-1,)}, "radii must be distinct whole numbers from 0 on, at least one: (-1,)"),
        ({"radii": (0.5,)}, "radii must be whole numbers, found (0.5,)"),
        ({"radii": 1}, "radii must be whole numbers, found 1"),
        ({"direction": "up"}, "direction is both, out or in, not 'up'"),
        (
            {"labels": "degre"},
            "unknown label 'degre' (did you mean degree?): "
            "choose from node, degree, log-degree, attributes",
        ),
        (
            {"labels": "node,?"},
            "unknown label '?': choose from node, degree, log-degree, attributes",
        ),
        ({"labels": "degree:2"}, "the label 'degree' takes no argument, found 'degree:2'"),
        (
            {"labels": "log-degree:x"},
            "log-degree:b needs a whole number of bins per doubling, found 'log-degree:x'",
        ),
        (
            {"labels": "log-degree:²"},
            "log-degree:b needs a whole number of bins per doubling, found 'log-degree:²'",
        ),
        (
            {"labels": "log-degree:0"},
            "log-degree:b needs a whole number of bins per doubling, found 'log-degree:0'",
        ),
    ],
)
def test_settings_that_make_no_sense_are_refused(arguments, message):
    with pytest.raises(InputError) as error:
        Ego(**arguments)
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ("node", "these graphs have no node labels: use labels='degree'"),
        ("attributes", "these graphs have no node attributes"),
    ],
)
def test_labels_that_the_graphs_do_not_have_are_refused(labels, message):
    with pytest.raises(InputError) as error:
        Ego(labels=labels).decompose(labelled())
    assert str(error.value) == message
