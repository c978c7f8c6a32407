from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from saen import Graphs, Hierarchy, InputError, Vocabulary, compress, compress_graphs
from saen.decompositions import Neighbourhoods
from tests.properties.strategies import DrawnGraphs, graph_collections
from tests.references import hierarchies as reference
from tests.references.hierarchies import entries_of, first_met

DIRECTIONS = ["both", "out", "in"]
depths = st.integers(1, 4)


@st.composite
def with_edge_labels(draw, drawn: DrawnGraphs, width: int = 1) -> tuple[Graphs, list[list]]:
    """The same graphs with one label, or a pair of them, on every edge."""
    one = st.sampled_from(["-", "=", "#"])
    kind = one if width == 1 else st.tuples(*[one] * width)
    labels = [draw(st.lists(kind, min_size=len(e), max_size=len(e))) for e in drawn.edge_lists]
    flat = [label for own in labels for label in own]
    column = np.array(flat, dtype=np.str_).reshape((-1,) if width == 1 else (-1, width))
    graphs = Graphs.from_edge_lists(
        drawn.edge_lists,
        drawn.sizes,
        directed=drawn.directed,
        node_labels=drawn.graphs.node_labels,
        edge_labels=column,
    )
    return graphs, labels


def read(relation, whole: int) -> Counter:
    """The multiset of (role name, part) of a whole."""
    found: Counter = Counter()
    for role, part, count in entries_of(relation, whole):
        found[relation.alphabet[role], part] += count
    return found


# -- parts of parts ----------------------------------------------------------------------------


def check_levels(hierarchy: Hierarchy, drawn: DrawnGraphs, depth: int, around) -> None:
    """Every object of every level against what `around(graph)` says lies around its nodes.

    `around` gives, for every node of a graph, a list of (role, node).
    """
    n = sum(drawn.sizes)
    assert hierarchy.names[1:] == (*(f"depth {d + 1}" for d in range(depth)), "graphs")
    assert hierarchy.sizes[1:] == (*(n * (d + 2) for d in range(depth)), len(drawn.sizes))
    first = 0
    for number, size in enumerate(drawn.sizes):
        near = around(number)
        for level, relation in enumerate(hierarchy.relations[:-1], start=1):
            for v in range(size):
                for d in range(level):
                    carried = read(relation, (first + v) * (level + 1) + d)
                    assert carried == {("carry", (first + v) * level + d): 1}
                expected = Counter([("root", (first + v) * level + level - 1)])
                for role, u in near[v]:
                    expected[role, (first + u) * level + level - 1] += 1
                found = read(relation, (first + v) * (level + 1) + level)
                if level == 1:
                    found = Counter({key: c for key, c in found.items() if key[0] != "edge"})
                assert found == expected
        top = {
            (f"depth {d}", (first + v) * (depth + 1) + d): 1
            for v in range(size)
            for d in range(depth + 1)
        }
        assert read(hierarchy.relations[-1], number) == top
        first += size


@pytest.mark.parametrize("direction", DIRECTIONS)
@given(graph_collections(), depths)
def test_every_depth_gathers_a_node_and_its_neighbours(direction, drawn, depth):
    made = Neighbourhoods(depth, direction=direction).decompose(drawn.graphs)

    def around(number):
        near = reference.neighbours(
            drawn.sizes[number], drawn.edge_lists[number], drawn.directed, direction
        )
        return [[("elem", u) for u in others if u != v] for v, others in enumerate(near)]

    check_levels(made, drawn, depth, around)
    assert made.names[0] == "nodes"
    assert {relation.alphabet for relation in made.relations[:-1]} == {("root", "elem", "carry")}
    assert made.relations[-1].alphabet == tuple(f"depth {d}" for d in range(depth + 1))


@pytest.mark.parametrize("width", [1, 2])
@pytest.mark.parametrize("direction", DIRECTIONS)
@given(graph_collections(), st.integers(1, 2), st.data())
def test_edges_as_roles_tell_neighbours_apart(direction, width, drawn, depth, data):
    graphs, labels = data.draw(with_edge_labels(drawn, width))
    made = Neighbourhoods(depth, direction=direction, edges="roles").decompose(graphs)
    both_ways = drawn.directed and direction == "both"
    kinds = set()

    def role(label, way):
        words = [label] if width == 1 else list(label)
        return " ".join(["elem", *words, *([way] if both_ways else [])])

    def around(number):
        near = [[] for _ in range(drawn.sizes[number])]
        for (u, v), label in zip(drawn.edge_lists[number], labels[number], strict=True):
            if u != v and (not drawn.directed or direction != "in"):
                near[u].append((role(label, "out"), v))
            if u != v and (not drawn.directed or direction != "out"):
                near[v].append((role(label, "in"), u))
        kinds.update(name for links in near for name, _ in links)
        return near

    check_levels(made, drawn, depth, around)
    for relation in made.relations[:-1]:
        assert relation.alphabet[0] == "root"
        assert relation.alphabet[-1] == "carry"
        assert relation.alphabet[1:-1] == tuple(sorted(kinds))


@given(graph_collections(directed=True))
def test_without_labels_the_kinds_are_the_directions(drawn):
    made = Neighbourhoods(1, edges="roles").decompose(drawn.graphs)
    first = 0
    for size, edges in zip(drawn.sizes, drawn.edge_lists, strict=True):
        for v in range(size):
            out = {("elem out", first + b): 1 for a, b in edges if a == v != b}
            into = {("elem in", first + a): 1 for a, b in edges if b == v != a}
            own = {("root", first + v): 1}
            assert read(made.relations[0], 2 * (first + v) + 1) == own | out | into
        first += size


@given(graph_collections(directed=False), depths)
def test_without_labels_and_directions_roles_are_none(drawn, depth):
    plain, roles = (Neighbourhoods(depth, edges=edges) for edges in ("none", "roles"))
    assert roles.decompose(drawn.graphs) == plain.decompose(drawn.graphs)
    assert roles.fit(drawn.graphs) == plain.fit(drawn.graphs)


@pytest.mark.parametrize("direction", DIRECTIONS)
@given(graph_collections(), st.integers(1, 3), st.data())
def test_edges_as_objects_are_parts_of_their_ends(direction, drawn, depth, data):
    graphs, labels = data.draw(with_edge_labels(drawn))
    made = Neighbourhoods(depth, "degree", direction, "objects").decompose(graphs)

    def around(number):
        near = reference.neighbours(
            drawn.sizes[number], drawn.edge_lists[number], drawn.directed, direction
        )
        return [[("elem", u) for u in others if u != v] for v, others in enumerate(near)]

    check_levels(made, drawn, depth, around)
    assert made.names[0] == "nodes and edges"
    assert made.relations[0].alphabet == ("root", "elem", "edge", "carry")
    assert {r.alphabet for r in made.relations[1:-1]} <= {("root", "elem", "carry")}

    values = [made.attributes.vocabulary[code] for code in made.attributes.codes]
    n = sum(drawn.sizes)
    assert len(values) == n + sum(map(len, drawn.edge_lists))
    first = 0
    for number, size in enumerate(drawn.sizes):
        edges = drawn.edge_lists[number]
        degrees = reference.degrees(size, edges, drawn.directed, direction)
        assert values[first : first + size] == degrees
        expected = [Counter() for _ in range(size)]
        for (u, v), label in zip(edges, labels[number], strict=True):
            ends = [degrees[u], degrees[v]]
            value = ("edge", *(ends if drawn.directed else sorted(ends)), label)
            sees = {"both": {u, v}, "out": {u}, "in": {v}}[direction if drawn.directed else "both"]
            for node in sees:
                expected[node][value] += 1
        for v in range(size):
            found = Counter()
            for (role, part), count in read(made.relations[0], 2 * (first + v) + 1).items():
                if role == "edge":
                    assert part >= n
                    found[values[part]] += count
            assert found == expected[v]
        first += size


def test_a_loop_never_makes_a_node_its_own_element():
    loop = Graphs.from_edge_lists([[(0, 0), (0, 1)]], edge_labels=["o", "-"])
    for edges, role in (("none", "elem"), ("objects", "elem"), ("roles", "elem -")):
        level = Neighbourhoods(1, "degree", edges=edges).decompose(loop).relations[0]
        assert level.matrix(role).toarray()[:, :2].tolist() == [[0, 0], [0, 1], [0, 0], [1, 0]]
    assert "elem o" not in level.alphabet
    # … but as an edge it is there, once.
    level = Neighbourhoods(1, "degree", edges="objects").decompose(loop).relations[0]
    assert level.matrix("edge").toarray().tolist() == [[0] * 4, [0, 0, 1, 1], [0] * 4, [0, 0, 0, 1]]


# -- compression is colour refinement ----------------------------------------------------------


def refined(colours: list, near: list[list[int]], rounds: int) -> list[list[int]]:
    """Weisfeiler-Lehman: the colour of every node after 0, 1, … rounds, numbered as met."""
    out = [first_met(colours)]
    for _ in range(rounds):
        old = out[-1]
        out.append(
            first_met(
                [(old[v], tuple(sorted([old[u] for u in near[v]]))) for v in range(len(near))]
            )
        )
    return out


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
    near, degrees, first = [], [], 0
    for size, edges in zip(drawn.sizes, drawn.edge_lists, strict=True):
        for v, others in enumerate(reference.neighbours(size, edges, drawn.directed, "both")):
            near.append([first + u for u in others if u != v])
        degrees += reference.degrees(size, edges, drawn.directed, "both")
        first += size
    labels = degrees if graphs.node_labels is None else graphs.node_labels.tolist()
    compressed = compress(Neighbourhoods(depth).decompose(graphs))
    check_refinement(compressed, depth, refined(labels, near, depth))


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
        labels = [len(row) + (v in row) for v, row in enumerate(rows)]
    else:
        labels = graphs.node_labels.tolist()
    colours = refined(labels, near, depth)
    made = Neighbourhoods(depth).fit(graphs)
    check_refinement(compress_graphs(graphs, made), depth, colours)
    if name == "NCI1":
        assert [len(set(column)) for column in colours] == [37, 292, 4_058, 22_948]


# -- the promises of a decomposition -----------------------------------------------------------


@pytest.mark.parametrize("edges", ["none", "roles", "objects"])
@pytest.mark.parametrize("direction", DIRECTIONS)
@given(graph_collections(), depths, st.data())
def test_costs_are_never_below_the_entries(direction, edges, drawn, depth, data):
    graphs, _ = data.draw(with_edge_labels(drawn))
    made = Neighbourhoods(depth, "degree", direction, edges)
    costs = made.costs(graphs)
    assert costs.shape == (len(graphs),)
    for number, cost in enumerate(costs.tolist()):
        hierarchy = made.decompose(graphs[number])
        entries = sum(relation.n_entries for relation in hierarchy.relations)
        loops = graphs[number].n_loops
        exact = direction != "both" or edges == "roles" or not drawn.directed
        assert entries <= cost
        if exact and not loops:
            assert entries == cost


@given(graph_collections(), st.data())
def test_kinds_of_edges_that_fit_did_not_see_are_left_out(drawn, data):
    graphs, labels = data.draw(with_edge_labels(drawn))
    unknown = data.draw(st.sampled_from(["-", "=", "#"]))
    kept = [
        [edge for edge, label in zip(edges, own, strict=True) if label != unknown]
        for edges, own in zip(drawn.edge_lists, labels, strict=True)
    ]
    flat = [label for own in labels for label in own if label != unknown]
    known = Graphs.from_edge_lists(
        kept,
        drawn.sizes,
        directed=drawn.directed,
        node_labels=np.zeros(sum(drawn.sizes), dtype=np.int64),
        edge_labels=np.array(flat, dtype=np.str_),
    )
    labelled = graphs.with_columns(node_labels=known.node_labels)
    made = Neighbourhoods(2, edges="roles").fit(known)
    assert made.decompose(labelled) == made.decompose(known)
    # What was fitted is decomposed as without fitting.
    assert made.decompose(known) == Neighbourhoods(2, edges="roles").decompose(known)


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
        ({"direction": "up"}, "direction must be one of both, out, in, not 'up'"),
        (
            {"edges": "role"},
            "edges must be one of none, roles, auto, objects, not 'role' (did you mean roles?)",
        ),
        ({"node_labels": "degree:2"}, "the label 'degree' takes no argument, found 'degree:2'"),
    ],
)
def test_settings_that_make_no_sense_are_refused(arguments, message):
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        Neighbourhoods(**arguments)


def test_edges_as_objects_have_no_vectors():
    graphs = Graphs.from_edge_lists([[(0, 1)]], node_attributes=np.ones((2, 3)))
    vectors = Neighbourhoods(1, "attributes").decompose(graphs).attributes.vectors
    assert vectors.shape == (2, 3)
    with pytest.raises(InputError, match="edges as objects have no node attributes"):
        Neighbourhoods(1, "attributes,degree", edges="objects").decompose(graphs)
