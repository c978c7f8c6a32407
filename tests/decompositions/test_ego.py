from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from saen import Graphs, Hierarchy, SAENClassifier, Vocabulary, ceiling, compress, compress_graphs
from saen.decompositions import Ego
from saen.decompositions.edge_roles import nodes_and_edges
from saen.decompositions.node_labels import label_columns
from tests.properties.labelled import LabelledGraphs, labelled_collections, values_of
from tests.properties.strategies import graph_collections
from tests.references import hierarchies as reference
from tests.references.hierarchies import entries_of, named_entries
from tests.refusals import refuses

DIRECTIONS = ["both", "out", "in"]
radii_lists = st.lists(st.integers(0, 4), min_size=1, max_size=4, unique=True).map(tuple)


# -- ego graphs --------------------------------------------------------------------------------


@pytest.mark.parametrize("direction", DIRECTIONS)
@given(graph_collections(), radii_lists)
def test_ego_graphs_are_the_nodes_within_each_radius(direction, drawn, radii):
    hierarchy = Ego(radii, direction=direction).decompose(drawn.graphs)
    egos, graphs = hierarchy.relations
    radii = sorted(radii)
    near = drawn.neighbours(direction)
    for root in range(len(near)):
        for place, radius in enumerate(radii):
            nodes = reference.ball(near, root, radius)
            expected = sorted((int(node != root), node, 1) for node in nodes)
            assert sorted(entries_of(egos, root * len(radii) + place)) == expected
    first = 0
    for number, size in enumerate(drawn.sizes):
        own = range(first * len(radii), (first + size) * len(radii))
        assert entries_of(graphs, number) == [(ego % len(radii), ego, 1) for ego in own]
        first += size
    assert hierarchy.sizes == (first, first * len(radii), len(drawn.sizes))
    assert egos.alphabet == ("root", "elem")
    assert graphs.alphabet == tuple(f"radius {radius}" for radius in radii)
    assert egos.counts is None
    assert graphs.counts is None


@pytest.mark.parametrize("edges", ["none", "roles"])
@settings(max_examples=30)
@given(st.sampled_from(DIRECTIONS), labelled_collections(), radii_lists)
def test_few_nodes_are_decomposed_as_many(edges, direction, drawn, radii):
    kinds = Vocabulary(kind for around in drawn.links(direction) for _, kind, _ in around if kind)
    known = Vocabulary(kinds[::2]) if edges == "roles" and len(kinds) > 1 else None
    ego = Ego(radii, direction=direction, edges=edges, kinds=known)
    few = ego.decompose(drawn.graphs)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("saen.decompositions.ego.MAX_DENSE", -1)
        assert few == ego.decompose(drawn.graphs)


def test_a_loop_never_makes_a_node_its_own_element():
    loop = Graphs.from_edge_lists([[(0, 0), (0, 1)]])
    egos = Ego(radii=(0, 1, 2), node_labels="degree").decompose(loop)
    assert egos.relations[0].matrix("elem").toarray().tolist() == [
        *([0, 0], [0, 1], [0, 1]),
        *([0, 0], [1, 0], [1, 0]),
    ]
    assert egos.relations[0].matrix("root").toarray().tolist() == [[1, 0]] * 3 + [[0, 1]] * 3
    # … but it counts twice in the degree.
    assert [egos.attributes.vocabulary[code] for code in egos.attributes.codes] == [3, 1]


def test_there_may_be_more_radii_than_a_byte_counts():
    path = Graphs.from_edge_lists([[(0, 1)]])
    roles = Ego(radii=tuple(range(300))).decompose(path).relations[1].roles
    assert roles.tolist() == [*range(300), *range(300)]


# -- labels ------------------------------------------------------------------------------------


def labels_of(hierarchy: Hierarchy) -> list[object]:
    attributes = hierarchy.attributes
    return [attributes.vocabulary[code] for code in attributes.codes]


@pytest.mark.parametrize("direction", DIRECTIONS)
@given(graph_collections(), st.integers(1, 9))
def test_degrees_count_the_ends_of_edges(direction, drawn, per_doubling):
    expected = drawn.degrees(direction)
    ego = Ego(node_labels="degree", direction=direction)
    assert labels_of(ego.decompose(drawn.graphs)) == expected
    binned = Ego(node_labels=f"log-degree:{per_doubling}", direction=direction)
    assert labels_of(binned.decompose(drawn.graphs)) == [
        reference.log_bin(degree, per_doubling) for degree in expected
    ]
    pair = Ego(node_labels="degree, log-degree", direction=direction)
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
    assert labels_of(Ego(node_labels="node").decompose(graphs)) == ["C", "C", "O", "C", "N"]
    assert labels_of(Ego(node_labels="node,degree").decompose(graphs)) == [
        *(("C", 1), ("C", 1)),
        *(("O", 1), ("C", 2), ("N", 1)),
    ]
    assert labels_of(Ego(node_labels="degree,node").decompose(graphs))[2] == (1, "O")
    two_columns = labelled(node_labels=np.array([[1, 2], [1, 3], [1, 2], [0, 0], [1, 2]]))
    assert labels_of(Ego().decompose(two_columns)) == [(1, 2), (1, 3), (1, 2), (0, 0), (1, 2)]


def test_node_labels_are_the_default_and_degrees_where_there_are_none():
    assert Ego().fit(labelled()).node_labels == "log-degree:4"
    attributed = labelled(node_attributes=np.zeros((5, 2)))
    assert Ego(node_labels="core,auto").fit(attributed).node_labels == (
        "core,log-degree:4,attributes"
    )
    assert Ego().fit(labelled(node_labels=np.arange(5))).node_labels == "node"
    assert Ego(node_labels="degree").fit(labelled(node_labels=np.arange(5))).node_labels == "degree"


def test_attributes_are_vectors_alone_or_beside_labels():
    vectors = np.linspace(0, 1, 10).reshape(5, 2)
    graphs = labelled(node_attributes=vectors)
    alone = Ego(node_labels="attributes").fit(graphs).decompose(graphs).attributes
    assert alone.codes is None
    assert np.array_equal(alone.vectors, vectors)
    both = Ego(node_labels="attributes,degree").decompose(graphs)
    assert np.array_equal(both.attributes.vectors, vectors)
    assert labels_of(both) == [1, 1, 1, 2, 1]


# -- what edges tell, and distances ------------------------------------------------------------


def distances(drawn: LabelledGraphs, direction: str, largest: int) -> list[dict[int, int]]:
    """For every node the nodes that it reaches and how far they are, up to a radius."""
    near, out = drawn.neighbours(direction), []
    for root in range(len(near)):
        far: dict[int, int] = {}
        for radius in range(largest + 1):
            for node in reference.ball(near, root, radius):
                far.setdefault(node, radius)
        out.append(far)
    return out


def near_and_far(
    drawn: LabelledGraphs, direction: str, root: int, far: dict[int, int], radius: int
):
    """(role, node, distance) of the parts of an ego graph with `edges="roles"`."""
    has_kinds = drawn.graphs.edge_labels is not None or (drawn.directed and direction == "both")
    for node, distance in far.items():
        if distance <= radius and (distance != 1 or not has_kinds):
            yield "elem" if distance else "root", node, distance
    if has_kinds and radius:
        for neighbour, kind, _ in drawn.links(direction)[root]:
            yield f"elem {' '.join(map(str, kind))}", neighbour, 1


@pytest.mark.parametrize("direction", DIRECTIONS)
@given(labelled_collections(), radii_lists)
def test_neighbours_have_the_kinds_of_their_edges_as_roles(direction, drawn, radii):
    hierarchy = Ego(radii, direction=direction, edges="roles").decompose(drawn.graphs)
    plain = Ego(radii, direction=direction).decompose(drawn.graphs)
    assert hierarchy.attributes == plain.attributes
    assert hierarchy.relations[1] == plain.relations[1]
    for root, far in enumerate(distances(drawn, direction, max(radii))):
        for place, radius in enumerate(sorted(radii)):
            parts = near_and_far(drawn, direction, root, far, radius)
            expected = sorted((role, node) for role, node, _ in parts)
            assert named_entries(hierarchy, root * len(radii) + place) == expected
    kinds = {kind for around in drawn.links(direction) for _, kind, _ in around} - {()}
    names = [f"elem {' '.join(map(str, kind))}" for kind in Vocabulary(kinds)]
    assert hierarchy.relations[0].alphabet == ("root", "elem", *names)


@pytest.mark.parametrize("direction", DIRECTIONS)
@given(labelled_collections(), radii_lists)
def test_edges_between_the_nodes_of_an_ego_graph_are_its_parts(direction, drawn, radii):
    ego = Ego(radii, node_labels="degree", direction=direction, edges="objects")
    hierarchy = ego.decompose(drawn.graphs)
    assert hierarchy.attributes == nodes_and_edges(drawn.graphs, "degree", None, direction)
    assert hierarchy.relations[0].alphabet == ("root", "elem", "edge")
    assert hierarchy.names == ("nodes and edges", "ego graphs", "graphs")
    n, edges = drawn.graphs.n_nodes, drawn.all_edges()
    for root, far in enumerate(distances(drawn, direction, max(radii))):
        for place, radius in enumerate(sorted(radii)):
            ball = {node for node, distance in far.items() if distance <= radius}
            expected = [("root" if node == root else "elem", node) for node in ball]
            expected += [
                ("edge", n + number) for number, (u, v, _) in enumerate(edges) if {u, v} <= ball
            ]
            assert named_entries(hierarchy, root * len(radii) + place) == sorted(expected)


@pytest.mark.parametrize("edges", ["none", "roles"])
@given(st.sampled_from(DIRECTIONS), labelled_collections(), radii_lists)
def test_with_distances_the_bottom_is_the_nodes_at_distances(edges, direction, drawn, radii):
    ego = Ego(radii, node_labels="degree,distance", direction=direction, edges=edges)
    hierarchy = ego.decompose(drawn.graphs)
    values = values_of(hierarchy.attributes)
    degrees = labels_of(Ego(node_labels="degree", direction=direction).decompose(drawn.graphs))
    met: set[tuple[int, int]] = set()
    for root, far in enumerate(distances(drawn, direction, max(radii))):
        for place, radius in enumerate(sorted(radii)):
            if edges == "roles":
                expected = list(near_and_far(drawn, direction, root, far, radius))
            else:
                expected = [
                    ("elem" if distance else "root", node, distance)
                    for node, distance in far.items()
                    if distance <= radius
                ]
            found = [
                (role, values[part])
                for role, part in named_entries(hierarchy, root * len(radii) + place)
            ]
            assert sorted(found) == sorted((role, (degrees[v], d)) for role, v, d in expected)
            met |= {(v, d) for _, v, d in expected}
    assert values == [(degrees[v], d) for v, d in sorted(met)]


def test_vectors_stand_beside_distances():
    vectors = np.linspace(0, 1, 10).reshape(5, 2)
    graphs = labelled(node_attributes=vectors)
    made = Ego((1,), node_labels="attributes,distance").fit(graphs).decompose(graphs).attributes
    assert values_of(made) == [0, 1] * 5
    assert np.array_equal(made.vectors, vectors.repeat(2, axis=0))


def test_edges_that_are_parts_may_be_counted_in_blocks(monkeypatch):
    rng = np.random.default_rng(0)
    edges = np.argwhere(np.triu(rng.random((30, 30)) < 0.2))
    graphs = Graphs.from_edge_lists([edges.tolist()] * 2)
    ego = Ego((0, 1, 2), node_labels="degree", edges="objects")
    whole = ego.decompose(graphs)
    monkeypatch.setattr("saen._util.arrays.BLOCK", 3)
    assert ego.decompose(graphs) == whole


# -- chemistry: what only the bonds tell -------------------------------------------------------


def rings(n: int, seed: int) -> Graphs:
    """Rings of six atoms with tails, in pairs that differ in the order of the ring's bonds alone.

    Single and double bonds alternate in one class and stand together in the other, so that both
    classes have equally many of them.
    """
    rng = np.random.default_rng(seed)
    edge_lists, bonds, atoms = [], [], []
    for _ in range(n // 2):
        tail = [(int(rng.integers(0, new)), new) for new in range(6, 6 + rng.integers(0, 4))]
        tail_bonds = rng.integers(1, 3, len(tail)).tolist()
        for ring_bonds in ([1, 2, 1, 2, 1, 2], [1, 1, 1, 2, 2, 2]):
            edge_lists.append([(v, (v + 1) % 6) for v in range(6)] + tail)
            bonds += ring_bonds + tail_bonds
            atoms += ["C"] * 6 + ["O"] * len(tail)
    return Graphs.from_edge_lists(
        edge_lists,
        node_labels=np.array(atoms),
        edge_labels=np.array(bonds),
        targets=np.arange(n) % 2,
    )


def test_bonds_that_are_ignored_leave_the_classes_the_same():
    graphs = rings(120, seed=1)
    for edges, best in (("none", 0.5), ("roles", 1.0), ("objects", 1.0)):
        made = compress_graphs(graphs, Ego((0, 1), edges=edges).fit(graphs))
        assert ceiling(made.top, graphs.targets) == best


@pytest.mark.parametrize("edges", ["roles", "objects"])
def test_a_class_that_depends_on_bonds_alone_is_learnt(edges):
    train, test = rings(80, seed=1), rings(40, seed=2)
    model = SAENClassifier(f"ego(edges={edges})", radii=(0, 1), n_models=1, epochs=30)
    assert model.fit(train, train.targets).score(test, test.targets) > 0.95


# -- the promises of a decomposition -----------------------------------------------------------


MODES = [
    {"node_labels": "degree"},
    {"node_labels": "degree", "edges": "roles"},
    {"node_labels": "degree", "edges": "objects"},
    {"node_labels": "core,distance"},
    {"node_labels": "triangles,distance", "edges": "roles"},
]


@pytest.mark.parametrize("mode", MODES, ids=str)
@settings(max_examples=15)
@given(st.sampled_from(DIRECTIONS), labelled_collections(), radii_lists)
def test_costs_bound_the_entries_whatever_edges_tell(mode, direction, drawn, radii):
    ego = Ego(radii, direction=direction, **mode)
    egos = ego.decompose(drawn.graphs).relations[0]
    entries = np.diff(egos.indptr[drawn.graphs.node_offsets * len(radii)])
    assert (ego.costs(drawn.graphs) >= entries).all()


@given(graph_collections(directed=False))
def test_costs_are_exact_up_to_radius_one_without_loops(drawn):
    graphs = drawn.graphs.without_loops()
    ego = Ego(radii=(0, 1))
    egos = ego.decompose(graphs).relations[0]
    assert ego.costs(graphs).tolist() == np.diff(egos.indptr[graphs.node_offsets * 2]).tolist()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"radii": ()}, "radii must be one or more distinct integers ≥ 0, not ()"),
        ({"radii": (1, 1)}, "radii must be one or more distinct integers ≥ 0, not (1, 1)"),
        ({"radii": (-1,)}, "radii must be one or more distinct integers ≥ 0, not (-1,)"),
        ({"radii": (0.5,)}, "radii must be one or more distinct integers ≥ 0, not (0.5,)"),
        ({"radii": 1}, "radii must be one or more distinct integers ≥ 0, not 1"),
    ],
)
def test_settings_that_make_no_sense_are_refused(arguments, message):
    with refuses(message):
        Ego(**arguments)


def test_ego_with_binned_edges_is_the_same_in_chunks(monkeypatch):
    graph = Graphs.from_edge_lists(
        [[(0, 1), (0, 2), (0, 3), (2, 3)]], edge_attributes=[[0.1], [0.9], [0.9], [0.1]]
    )
    ego = Ego(radii=(1, 2), edges="bins").fit(graph)
    monkeypatch.setattr("saen.data.chunks._MAX_CHUNK_ENTRIES", 1)
    assert compress_graphs(graph, ego) == compress(ego.decompose(graph))
