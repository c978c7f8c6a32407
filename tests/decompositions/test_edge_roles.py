from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from saen import Graphs, InputError, Vocabulary
from saen.decompositions import Ego, Neighbourhoods, Paths, make_decomposition
from saen.decompositions.edge_roles import Links, edge_values, kind_names, nodes_and_edges
from tests.properties.labelled import labelled_collections, values_of
from tests.properties.strategies import graph_collections
from tests.references.hierarchies import named_entries
from tests.refusals import refuses

DIRECTIONS = ["both", "out", "in"]


# -- who is joined with whom, and how ----------------------------------------------------------


@pytest.mark.parametrize("direction", DIRECTIONS)
@given(labelled_collections())
def test_links_are_the_neighbours_with_the_kinds_and_numbers_of_their_edges(direction, drawn):
    links = Links.of(drawn.graphs, direction)
    numbers = {(u, v): number for number, (u, v, _) in enumerate(drawn.all_edges())}
    expected = drawn.links(direction)
    assert len(links.indptr) == len(expected) + 1
    kinds = list(zip(*(kind.tolist() for kind in links.kinds), strict=True))
    for node, around in enumerate(expected):
        own = range(links.indptr[node], links.indptr[node + 1])
        found = [
            (int(links.neighbours[e]), kinds[e] if kinds else (), int(links.edges[e])) for e in own
        ]
        assert [neighbour for neighbour, _, _ in found] == sorted(v for v, _, _ in around)
        assert sorted(found) == sorted((v, kind, numbers[ends]) for v, kind, ends in around)
    has_labels = drawn.graphs.edge_labels is not None
    assert bool(links.kinds) == (has_labels or (drawn.directed and direction == "both"))


@given(labelled_collections())
def test_edges_are_numbered_as_the_graphs_list_them(drawn):
    assert drawn.graphs.edges().tolist() == [[u, v] for u, v, _ in drawn.all_edges()]


def test_each_side_of_an_undirected_edge_sees_its_own_label():
    edge = Graphs.from_edges([(0, 1), (1, 0)], [2], edge_labels=["there", "back"])
    assert Links.of(edge).kinds[0].tolist() == ["there", "back"]
    assert Links.of(edge).edges.tolist() == [0, 0]


def test_kinds_are_called_by_their_parts():
    assert kind_names(Vocabulary([7, "a"])) == ["7", "a"]
    assert kind_names(Vocabulary([("a", 7, "out"), ("a", 7, "in")])) == ["a 7 in", "a 7 out"]


# -- edges as roles ----------------------------------------------------------------------------


@pytest.mark.parametrize("edges", ["roles", "objects"])
@pytest.mark.parametrize("decomposition", [Ego((0, 1, 2)), Neighbourhoods(2)])
@given(st.booleans(), st.sampled_from([1, 1, 2]), st.data())
def test_kinds_of_edges_that_were_not_fitted_are_left_out(
    decomposition, edges, directed, width, data
):
    known, new = (data.draw(labelled_collections(directed, width)) for _ in range(2))
    fitted = replace(decomposition, node_labels="degree", edges=edges).fit(known.graphs)
    free = replace(fitted, vocabulary=None, kinds=None)
    found, fresh = fitted.decompose(new.graphs), free.decompose(new.graphs)
    names = fitted.decompose(known.graphs).relations[0].alphabet
    assert found.relations[0].alphabet == names
    assert found.attributes == fresh.attributes.recoded(fitted.vocabulary)
    for number in range(found.relations[0].n_parents):
        kept = [entry for entry in named_entries(fresh, number) if entry[0] in names]
        assert named_entries(found, number) == kept


@pytest.mark.parametrize("decomposition", [Ego((0, 1, 2)), Neighbourhoods(2), Paths((1,))])
@pytest.mark.parametrize("direction", DIRECTIONS)
@given(st.data())
def test_edges_without_labels_and_directions_have_no_roles(decomposition, direction, data):
    drawn = data.draw(graph_collections(directed=False if direction == "both" else None))
    plain = replace(decomposition, direction=direction)
    with_roles = replace(plain, edges="auto")
    assert with_roles.decompose(drawn.graphs) == plain.decompose(drawn.graphs)
    assert with_roles.fit(drawn.graphs) == plain.fit(drawn.graphs)
    with refuses("edges='roles' needs edge labels or directions, but these graphs have neither"):
        replace(plain, edges="roles").fit(drawn.graphs)


@pytest.mark.parametrize("decomposition", [Ego(), Neighbourhoods(), Paths()])
def test_graphs_without_the_kinds_that_were_fitted_are_refused(decomposition):
    bonds = Graphs.from_edge_lists([[(0, 1), (1, 2)]], edge_labels=["single", "double"])
    fitted = replace(decomposition, edges="roles").fit(bonds)
    with refuses(
        "these graphs have neither edge labels nor directions, but the decomposition was fitted "
        "on edges of the kinds double, single"
    ):
        fitted.decompose(Graphs.from_edge_lists([[(0, 1)]]))


# -- edges as objects --------------------------------------------------------------------------


@pytest.mark.parametrize("direction", DIRECTIONS)
@given(labelled_collections())
def test_the_value_of_an_edge_is_the_labels_of_its_ends_and_its_own(direction, drawn):
    codes, values = edge_values(drawn.graphs, "degree", direction)
    expected = drawn.edge_values(drawn.degrees(direction))
    assert [values[code] for code in codes] == expected
    assert len(values) == len(set(values)) == len(set(expected))
    if drawn.graphs.node_labels is not None:
        labels = drawn.graphs.node_labels.tolist()
        ends = list(zip(labels, drawn.degrees(direction), strict=True))
        codes, values = edge_values(drawn.graphs, "node,degree", direction)
        assert [values[code] for code in codes] == drawn.edge_values(ends)


@given(labelled_collections())
def test_bottom_objects_are_the_nodes_then_the_edges(drawn):
    nodes = drawn.degrees()
    expected = [*nodes, *drawn.edge_values(nodes)]
    attributes = nodes_and_edges(drawn.graphs, "degree", None)
    assert values_of(attributes) == expected
    assert attributes.vocabulary == Vocabulary(expected)


def test_edges_as_objects_leave_no_room_for_node_attributes():
    graphs = Graphs.from_edge_lists([[(0, 1)]], node_attributes=[[0.5], [1.5]])
    with refuses("edges as objects have no node attributes: leave 'attributes' out"):
        nodes_and_edges(graphs, "degree,attributes", None)


def test_the_kind_of_a_single_label_is_the_label_itself():
    graphs = Graphs.from_edge_lists([[(0, 1)]], edge_labels=[1])
    assert Vocabulary.fit(Links.of(graphs).kinds)[0] == Vocabulary([1])


def test_a_disagreement_of_the_two_directions_is_settled_whatever_the_numbering():
    found = []
    for labels in (["b", "a"], ["a", "b"]):  # 0 → 1 and 1 → 0, and the same with 0 and 1 swapped
        graphs = Graphs(
            node_offsets=[0, 2], indptr=[0, 1, 2], indices=np.array([1, 0]), edge_labels=labels
        )
        found.append(edge_values(graphs, "degree")[1])
    assert found[0] == found[1] == [("edge", 1, 1, "a")]


def test_kinds_of_another_make_are_refused_instead_of_unseen():
    arrows = Graphs.from_edge_lists([[(0, 1), (1, 2)]], edge_labels=["tcp", "udp"], directed=True)
    lines = Graphs.from_edge_lists([[(0, 1), (1, 2)]], edge_labels=["tcp", "udp"])
    for decomposition in (Ego(edges="roles"), Neighbourhoods(edges="roles"), Paths(edges="roles")):
        for seen, new, advice in (
            (arrows, lines, ", whose edges have a direction"),
            (lines, arrows, ", whose edges have no direction"),
        ):
            fitted = decomposition.fit(seen)
            with pytest.raises(InputError, match=f"read them as the training data{advice}$"):
                fitted.decompose(new)


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("edges", ["roles", "bins"])
@pytest.mark.parametrize("kind", [Ego, Neighbourhoods, Paths])
def test_a_graph_without_edges_is_the_same_alone_as_among_others(kind, edges, directed):
    known = {"edge_labels": np.array(["tcp", "udp"])}
    if edges == "bins":
        known = {"edge_attributes": np.array([[1.0], [2.0]])}
    linked = Graphs.from_edge_lists([[(0, 1), (1, 2)]], directed=directed, **known)
    lone = Graphs.from_edge_lists([[]], [1], directed=directed)
    none = {key: each[:0] for key, each in known.items()}
    alike = Graphs.from_edge_lists([[]], [1], directed=directed, **none)
    fitted = kind(edges=edges).fit(linked)
    both = fitted.decompose(Graphs.concatenate([linked, alike]))
    assert fitted.decompose(lone)[0] == both[1] == fitted.decompose(alike)[0]


@pytest.mark.parametrize("name", ["ego(radii=(0, 1), edges=roles)", "neighbourhoods(edges=roles)"])
def test_directions_are_never_taken_for_labels(name):
    labelled = Graphs.from_edge_lists([[(0, 1), (1, 2)]], edge_labels=["x", "y"])
    arrows = Graphs.from_edge_lists([[(0, 1), (1, 2)]], directed=True)
    ways = Graphs.from_edge_lists([[(0, 1), (1, 2)]], edge_labels=["in", "other"])
    for fitted, other in ((labelled, arrows), (arrows, labelled), (ways, arrows)):
        decomposition = make_decomposition(name).fit(fitted)
        assert decomposition.decompose(fitted).relations
        with pytest.raises(InputError, match="not of the kinds"):
            decomposition.decompose(other)
    one_way = make_decomposition(name).fit(ways)
    unseen = Graphs.from_edge_lists([[(0, 1)]], edge_labels=["new"])
    assert one_way.decompose(unseen).relations  # a label may be unseen
