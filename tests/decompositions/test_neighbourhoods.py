from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from saen import Graphs, Hierarchy, Vocabulary, compress, compress_graphs
from saen.decompositions import Neighbourhoods
from tests.properties.labelled import labelled_collections, values_of
from tests.properties.strategies import DrawnGraphs, graph_collections
from tests.references.hierarchies import entries_of, refined
from tests.refusals import refuses

DIRECTIONS = ["both", "out", "in"]
depths = st.integers(1, 4)


def read(relation, parent: int) -> Counter:
    """The multiset of (role name, part) of a parent."""
    found: Counter = Counter()
    for role, part, count in entries_of(relation, parent):
        found[relation.alphabet[role], part] += count
    return found


# -- parts of parts ----------------------------------------------------------------------------


def check_levels(
    hierarchy: Hierarchy, drawn: DrawnGraphs, depth: int, around: list[list[tuple[str, int]]]
) -> None:
    """Every object of every level against the (role, node) pairs around every node."""
    n = len(around)
    assert hierarchy.names[1:] == (
        *(f"depth ≤ {d + 1}" for d in range(depth)),
        "graphs",
    )
    assert hierarchy.sizes[1:] == (*(n * (d + 2) for d in range(depth)), len(drawn.sizes))
    for level, relation in enumerate(hierarchy.relations[:-1], start=1):
        for v, near in enumerate(around):
            for d in range(level):
                carried = read(relation, v * (level + 1) + d)
                assert carried == {("carry", v * level + d): 1}
            expected = Counter([("root", v * level + level - 1)])
            for role, u in near:
                expected[role, u * level + level - 1] += 1
            found = read(relation, v * (level + 1) + level)
            if level == 1:
                found = Counter({key: c for key, c in found.items() if key[0] != "edge"})
            assert found == expected
    first = 0
    for number, size in enumerate(drawn.sizes):
        own = range(first * (depth + 1), (first + size) * (depth + 1))
        top = {(f"depth {part % (depth + 1)}", part): 1 for part in own}
        assert read(hierarchy.relations[-1], number) == top
        first += size


def elements(drawn: DrawnGraphs, direction: str) -> list[list[tuple[str, int]]]:
    return [[("elem", u) for u in others] for others in drawn.neighbours(direction)]


@pytest.mark.parametrize("direction", DIRECTIONS)
@given(graph_collections(), depths)
def test_every_depth_gathers_a_node_and_its_neighbours(direction, drawn, depth):
    made = Neighbourhoods(depth, direction=direction).decompose(drawn.graphs)
    check_levels(made, drawn, depth, elements(drawn, direction))
    assert made.names[0] == "nodes"
    assert {relation.alphabet for relation in made.relations[:-1]} == {("root", "elem", "carry")}
    assert made.relations[-1].alphabet == tuple(f"depth {d}" for d in range(depth + 1))


@pytest.mark.parametrize("direction", DIRECTIONS)
@given(labelled_collections(), st.integers(1, 2))
def test_edges_as_roles_tell_neighbours_apart(direction, drawn, depth):
    made = Neighbourhoods(depth, direction=direction, edges="roles").decompose(drawn.graphs)
    links = drawn.links(direction)
    around = [[(" ".join(map(str, ["elem", *kind])), v) for v, kind, _ in near] for near in links]
    check_levels(made, drawn, depth, around)
    if drawn.graphs.edge_labels is not None or (drawn.directed and direction == "both"):
        names = {kind: f"elem {' '.join(map(str, kind))}" for near in links for _, kind, _ in near}
        expected = ("root", *(names[kind] for kind in Vocabulary(names)), "carry")
        assert {relation.alphabet for relation in made.relations[:-1]} == {expected}


@pytest.mark.parametrize("direction", DIRECTIONS)
@given(labelled_collections(), st.integers(1, 3))
def test_edges_as_objects_are_parts_of_their_ends(direction, drawn, depth):
    made = Neighbourhoods(depth, "degree", direction, "objects").decompose(drawn.graphs)
    check_levels(made, drawn, depth, elements(drawn, direction))
    assert made.names[0] == "nodes and edges"
    assert made.relations[0].alphabet == ("root", "elem", "edge", "carry")
    assert {r.alphabet for r in made.relations[1:-1]} <= {("root", "elem", "carry")}

    degrees, n = drawn.degrees(direction), sum(drawn.sizes)
    assert values_of(made.attributes) == [*degrees, *drawn.edge_values(degrees)]
    way = direction if drawn.directed else "both"
    expected = {
        (end, n + number)
        for number, (u, v, _) in enumerate(drawn.all_edges())
        for end in {"both": {u, v}, "out": {u}, "in": {v}}[way]
    }
    nodes, edges = made.relations[0].matrix("edge").nonzero()
    assert {(node // 2, edge) for node, edge in zip(nodes, edges, strict=True)} == expected


# -- compression is colour refinement ----------------------------------------------------------


def check_refinement(compressed, depth: int, colours: list[list[int]]) -> None:
    """The classes of (v, d), as built at level d and as carried to the top, are the colours."""
    new = [len(set(column)) for column in colours]
    for level in range(depth + 1):
        classes = compressed.unique_of(level).reshape(-1, level + 1)
        for d in range(level + 1):
            assert partition(classes[:, d]) == partition(np.array(colours[d], dtype=np.int64))
        assert compressed.hierarchy.sizes[level] == sum(new[: level + 1])


def partition(classes: np.ndarray) -> bytes:
    """The same for equal partitions: everyone's first fellow."""
    _, first, inverse = np.unique(classes, return_index=True, return_inverse=True)
    return first[inverse].tobytes()


@given(graph_collections(), depths)
def test_classes_are_the_colours_of_weisfeiler_and_lehman(drawn, depth):
    graphs = drawn.graphs
    labels = drawn.degrees() if graphs.node_labels is None else graphs.node_labels.tolist()
    compressed = compress(Neighbourhoods(depth).decompose(graphs))
    check_refinement(compressed, depth, refined(labels, drawn.neighbours(), depth))


@given(graph_collections(), st.sampled_from(["none", "roles", "objects"]))
def test_carrying_up_costs_one_entry_per_class(drawn, edges):
    made = Neighbourhoods(3, "degree", edges=edges)
    compressed = compress(made.decompose(drawn.graphs)).hierarchy
    for level, relation in enumerate(compressed.relations[:-1], start=1):
        carried = relation.matrix("carry").toarray()
        nodes = carried.shape[1] if level > 1 else len(set(drawn.graphs.degrees().tolist()))
        # Every class of the level below once: it has one part, once, and no other in that role.
        assert carried.sum() == nodes
        assert carried.max(initial=0) <= 1
        assert (carried.sum(axis=0) <= 1).all()
        rows = carried.any(axis=1)
        assert (np.diff(relation.indptr)[rows] == 1).all()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "depth"),
    [
        ("NCI1", 3),
        ("MUTAG", 4),
        ("PTC", 4),
        ("PROTEINS", 3),
        ("IMDB-BINARY", 3),
        ("REDDIT-BINARY", 2),
        ("DD", 2),
    ],
)
def test_classes_of_real_graphs_are_colours(name, depth, dataset):
    graphs = dataset(name)
    starts, others = graphs.indptr.tolist(), graphs.indices.tolist()
    rows = [others[a:b] for a, b in pairwise(starts)]
    near = [[u for u in row if u != v] for v, row in enumerate(rows)]
    if graphs.node_labels is None:
        kind, labels = "degree", [len(row) + (v in row) for v, row in enumerate(rows)]
    else:
        kind, labels = "node", graphs.node_labels.tolist()
    colours = refined(labels, near, depth)
    made = Neighbourhoods(depth, node_labels=kind).fit(graphs)
    check_refinement(compress_graphs(graphs, made), depth, colours)
    if name == "NCI1":
        assert [len(set(column)) for column in colours] == [37, 292, 4_058, 22_948]


# -- the promises of a decomposition -----------------------------------------------------------


@pytest.mark.parametrize("edges", ["none", "roles", "objects"])
@pytest.mark.parametrize("direction", DIRECTIONS)
@given(labelled_collections(), depths)
def test_costs_are_never_below_the_entries(direction, edges, drawn, depth):
    graphs = drawn.graphs
    made = Neighbourhoods(depth, "degree", direction, edges)
    costs = made.costs(graphs)
    assert costs.shape == (len(graphs),)
    for number, cost in enumerate(costs.tolist()):
        hierarchy = made.decompose(graphs[number])
        entries = sum(relation.n_entries for relation in hierarchy.relations)
        loops = graphs[number].n_loops
        by_kind = edges == "roles" and (drawn.directed or graphs.edge_labels is not None)
        exact = direction != "both" or by_kind or not drawn.directed
        assert entries <= cost
        if exact and not loops:
            assert entries == cost


def test_fitting_fixes_labels_and_vocabularies():
    one = Graphs.from_edge_lists([[(0, 1)]], node_labels=["C", "O"], edge_labels=[1])
    other = Graphs.from_edge_lists([[(0, 1)]], node_labels=["C", "N"], edge_labels=[2])
    made = Neighbourhoods(1, edges="roles").fit(one)
    assert (made.node_labels, made.edges) == ("node", "roles")
    assert (made.vocabulary, made.kinds) == (Vocabulary(["C", "O"]), Vocabulary([1]))
    later = made.decompose(other)
    assert later.attributes.codes.tolist() == [0, -1]
    assert later.relations[0].alphabet == ("root", "elem 1", "carry")
    assert made.fit(other).vocabulary == Vocabulary(["C", "N"])
    assert made.fit(other).kinds == Vocabulary([2])
    objects = replace(made, edges="objects").fit(one)
    assert objects.vocabulary == Vocabulary(["C", "O", ("edge", "C", "O", 1)])
    assert objects.decompose(other).attributes.codes.tolist() == [0, -1, -1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"depth": 0}, "depth must be an integer ≥ 1, not 0"),
        ({"depth": 1.5}, "depth must be an integer ≥ 1, not 1.5"),
    ],
)
def test_settings_that_make_no_sense_are_refused(arguments, message):
    with refuses(message):
        Neighbourhoods(**arguments)
