from __future__ import annotations

from collections import Counter, deque
from collections.abc import Hashable
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from saen import Graphs, Hierarchy, InputError
from saen.data.compression import equivalent
from saen.decompositions import Paths
from saen.decompositions.shortest_paths import shortest_paths
from tests.properties.strategies import REALS, graph_collections
from tests.references import hierarchies as reference

DIRECTIONS = ["both", "out", "in"]
EVERYTHING = 10**6  # a cap that nothing reaches
radii_lists = st.lists(st.integers(0, 3), min_size=1, max_size=3, unique=True).map(tuple)


# -- slow and literal --------------------------------------------------------------------------


def distances(near: list[set[int]], root: int, members: set[int]) -> dict[int, int]:
    """From the root to every member that can be reached through members."""
    found = {root: 0}
    queue = deque([root])
    while queue:
        node = queue.popleft()
        for other in near[node] & members:
            if other not in found:
                found[other] = found[node] + 1
                queue.append(other)
    return found


def all_shortest(near: list[set[int]], members: set[int], longest: int) -> list[tuple[int, ...]]:
    """Walks between members that are no longer than the distance of their ends, both ways."""
    far = {member: distances(near, member, members) for member in members}
    walks = [(member,) for member in members]
    out = []
    for _ in range(longest + 1):
        out += [w for w in walks if len(w) - 1 == far[w[0]][w[-1]]]
        walks = [(*w, v) for w in walks for v in near[w[-1]] & members if v not in w]
    return out


@dataclass(frozen=True)
class Labelled:
    """Graphs beside the plain lists that they were made of."""

    graphs: Graphs
    sizes: list[int]
    edge_lists: list[list[tuple[int, int]]]
    directed: bool
    node_labels: list[list[str]]
    edge_labels: list[list[int]] | None

    def renamed(self, names: list[list[int]]) -> Graphs:
        """Node v of graph g becomes `names[g][v]`."""
        turned = [
            [(name[u], name[v]) for u, v in edges]
            for name, edges in zip(names, self.edge_lists, strict=True)
        ]
        labels = [
            [column[name.index(v)] for v in range(len(name))]
            for name, column in zip(names, self.node_labels, strict=True)
        ]
        return collection(turned, self.sizes, self.directed, labels, self.edge_labels)


def collection(edge_lists, sizes, directed, node_labels, edge_labels) -> Graphs:
    return Graphs.from_edge_lists(
        edge_lists,
        sizes,
        directed=directed,
        node_labels=np.array([*chain(*node_labels)], np.str_),
        edge_labels=None if edge_labels is None else np.array([*chain(*edge_labels)], np.int64),
    )


@st.composite
def labelled_graphs(draw: st.DrawFn) -> Labelled:
    """Few labels, many edges: paths that look alike, and several between two nodes."""
    drawn = draw(graph_collections())
    node_labels = [
        draw(st.lists(st.sampled_from("AB"), min_size=size, max_size=size)) for size in drawn.sizes
    ]
    edge_labels = None
    if draw(st.booleans()):
        edge_labels = [
            draw(st.lists(st.integers(0, 1), min_size=len(edges), max_size=len(edges)))
            for edges in drawn.edge_lists
        ]
    return Labelled(
        collection(drawn.edge_lists, drawn.sizes, drawn.directed, node_labels, edge_labels),
        drawn.sizes,
        drawn.edge_lists,
        drawn.directed,
        node_labels,
        edge_labels,
    )


def links_of(drawn: Labelled, graph: int, direction: str) -> dict[tuple[int, int], list[Any]]:
    """For every step from one node to another its links: (kind, edge as an object)."""
    label = drawn.node_labels[graph]
    out: dict[tuple[int, int], list[Any]] = {}
    for number, (u, v) in enumerate(drawn.edge_lists[graph]):
        own = () if drawn.edge_labels is None else (drawn.edge_labels[graph][number],)
        ends = (label[u], label[v]) if drawn.directed else tuple(sorted((label[u], label[v])))
        edge = ("edge", *ends, *own)
        ways = drawn.directed and direction == "both"
        if u != v and not (drawn.directed and direction == "in"):
            out.setdefault((u, v), []).append(((*own, "out") if ways else own, edge))
        if u != v and not (drawn.directed and direction == "out"):
            out.setdefault((v, u), []).append(((*own, "in") if ways else own, edge))
    return {step: sorted(links) for step, links in out.items()}


def expected_subgraphs(drawn: Labelled, paths: Paths) -> list[Hashable]:
    """What every subgraph is made of, as `reference.contents` says it."""
    parents: list[Hashable] = []
    one_way = drawn.directed and paths.direction != "both"
    with_distance = "distance" in paths.node_labels
    for graph, (size, edges) in enumerate(zip(drawn.sizes, drawn.edge_lists, strict=True)):
        near = reference.neighbours(size, edges, drawn.directed, paths.direction)
        links = links_of(drawn, graph, paths.direction)
        for root in range(size):
            for radius in paths.radii:
                members = reference.ball(near, root, radius)
                far = distances(near, root, members)

                def label(node, graph=graph, far=far):
                    own = drawn.node_labels[graph][node]
                    return (own, far[node]) if with_distance else own

                def told(path, links=links):
                    place = {"none": None, "roles": 0, "objects": 1}[paths.edges]
                    steps = pairwise(path)
                    if place is None:
                        return []
                    return [tuple(sorted(link[place] for link in links[step])) for step in steps]

                def key(path, label=label, told=told):
                    return [label(node) for node in path], told(path)

                groups: dict[Any, list[Any]] = {}
                for path in all_shortest(near, members, paths.max_length):
                    if one_way or paths.both_ways:
                        groups.setdefault((path[0], path[-1]), []).append(path)
                    elif path[0] <= path[-1]:
                        read = min(path, path[::-1], key=key)
                        groups.setdefault((path[0], path[-1]), []).append(read)
                parts: Counter[Hashable] = Counter()
                for group in groups.values():
                    for path in sorted(group, key=key)[: paths.cap]:
                        content = path_content(key(path), paths.edges)
                        parts[f"length {len(path) - 1}", content] += 1
                parents.append(frozenset(parts.items()))
    return parents


def path_content(key: tuple[list[Any], list[Any]], edges: str) -> Hashable:
    labels, steps = key
    parts: Counter[Hashable] = Counter()
    for i, label in enumerate(labels):
        bottom = ("label", label), None
        if edges == "roles" and i and steps[i - 1] != ((),):
            for kind in steps[i - 1]:
                parts[f"index {i} {' '.join(map(str, kind))}", bottom] += 1
        else:
            parts[f"index {i}", bottom] += 1
    if edges == "objects":
        for i, step in enumerate(steps, start=1):
            for edge in step:
                parts[f"edge {i}", (("label", edge), None)] += 1
    return frozenset(parts.items())


options = st.fixed_dictionaries(
    {
        "radii": radii_lists,
        "max_length": st.integers(0, 4),
        "node_labels": st.sampled_from(["node", "node", "node,distance"]),
        "direction": st.sampled_from(DIRECTIONS),
        "edges": st.sampled_from(["none", "roles", "objects"]),
        "cap": st.sampled_from([1, 1, 2, 3, EVERYTHING]),
        "both_ways": st.booleans(),
    }
).filter(lambda o: not (o["edges"] == "objects" and "distance" in o["node_labels"]))


# -- subgraphs, paths, nodes ----------------------------------------------------------------


def sequences(hierarchy: Hierarchy, subgraph: int) -> list[tuple[int, ...]]:
    """The paths of a subgraph as nodes in the order of their indices."""
    paths, subgraphs = hierarchy.relations[:2]
    out = []
    for length, path, count in reference.entries_of(subgraphs, subgraph):
        entries = sorted(reference.entries_of(paths, path))
        assert [(role, number) for role, _, number in entries] == [
            (i, 1) for i in range(length + 1)
        ]
        assert count == 1
        out.append(tuple(node for _, node, _ in entries))
    return out


@pytest.mark.parametrize("direction", DIRECTIONS)
@given(graph_collections(), radii_lists, st.integers(0, 4))
def test_subgraphs_hold_all_shortest_paths_of_their_own(direction, drawn, radii, longest):
    decomposition = Paths(radii, longest, direction=direction, cap=EVERYTHING)
    hierarchy = decomposition.decompose(drawn.graphs)
    radii = sorted(radii)
    one_way = drawn.directed and direction != "both"
    first = n_paths = 0
    for number, (size, edges) in enumerate(zip(drawn.sizes, drawn.edge_lists, strict=True)):
        near = reference.neighbours(size, edges, drawn.directed, direction)
        owned = []
        for root in range(size):
            for place, radius in enumerate(radii):
                subgraph = (first + root) * len(radii) + place
                owned.append((place, subgraph, 1))
                found = sequences(hierarchy, subgraph)
                expected = [
                    tuple(first + node for node in path)
                    for path in all_shortest(near, reference.ball(near, root, radius), longest)
                    if one_way or path[0] <= path[-1]
                ]
                if not one_way:
                    found = [min(path, path[::-1]) for path in found]
                    expected = [min(path, path[::-1]) for path in expected]
                assert sorted(found) == sorted(expected)
                n_paths += len(found)
        assert sorted(reference.entries_of(hierarchy.relations[2], number)) == sorted(owned)
        first += size
    assert hierarchy.sizes == (first, n_paths, first * len(radii), len(drawn.sizes))
    assert hierarchy.names == ("nodes", "paths", "subgraphs", "graphs")
    assert [relation.alphabet for relation in hierarchy.relations] == [
        tuple(f"index {i}" for i in range(longest + 1)),
        tuple(f"length {k}" for k in range(longest + 1)),
        tuple(f"radius {radius}" for radius in radii),
    ]


@given(labelled_graphs(), options)
def test_every_option_makes_the_parts_that_it_says(drawn, chosen):
    paths = Paths(**chosen)
    found = reference.contents(paths.decompose(drawn.graphs))[2]
    assert found == expected_subgraphs(drawn, paths)


@given(graph_collections(directed=False), st.integers(0, 2))
def test_networkx_agrees(drawn, radius):
    networkx = pytest.importorskip("networkx")
    hierarchy = Paths((radius,), 3, cap=EVERYTHING).decompose(drawn.graphs)
    first = 0
    for size, edges in zip(drawn.sizes, drawn.edge_lists, strict=True):
        graph = networkx.Graph()
        graph.add_nodes_from(range(first, first + size))
        graph.add_edges_from((first + u, first + v) for u, v in edges)
        for root in graph:
            ego = networkx.ego_graph(graph, root, radius=radius)
            expected = [
                tuple(path)
                for u in ego
                for v in ego
                if u <= v and networkx.shortest_path_length(ego, u, v) <= 3
                for path in networkx.all_shortest_paths(ego, u, v)
            ]
            found = [min(path, path[::-1]) for path in sequences(hierarchy, root)]
            assert sorted(found) == sorted(expected)
        first += size


def labelled(edges, labels, **others) -> Graphs:
    return Graphs.from_edge_lists([edges], [len(labels)], node_labels=np.array(labels), **others)


def readings(graphs: Graphs, subgraph: int = 0, **settings) -> list[str]:
    hierarchy = Paths(node_labels="node", **settings).decompose(graphs)
    letters = [hierarchy.attributes.vocabulary[code] for code in hierarchy.attributes.codes]
    return sorted("".join(letters[v] for v in path) for path in sequences(hierarchy, subgraph))


def test_a_path_is_read_from_the_label_that_comes_first():
    line = labelled([(0, 1), (1, 2), (2, 3)], ["D", "A", "C", "B"])
    assert readings(line, radii=(3,)) == [
        *("A", "AC", "ACB", "AD", "B", "BC", "BCAD", "C", "CAD", "D"),
    ]
    both = readings(line, radii=(3,), both_ways=True)
    assert both == sorted(
        [*"ABCD", "AC", "CA", "ACB", "BCA", "AD", "DA", "BC", "CB", "BCAD", "DACB", "CAD", "DAC"]
    )


def test_equal_ends_leave_the_choice_to_what_is_between():
    line = labelled([(0, 1), (1, 2), (2, 3)], ["A", "C", "B", "A"])
    assert "ABCA" in readings(line, radii=(3,))
    assert "ACBA" not in readings(line, radii=(3,))


def test_paths_within_a_subgraph_may_be_longer_than_in_the_graph():
    # Within distance 2 of a node, a ring of 7 is a chain of 5: the other way round is left out.
    ring = Graphs.from_edge_lists([[(i, (i + 1) % 7) for i in range(7)]])
    paths = Paths((2, 7), 4).decompose(ring)
    assert Counter(map(len, sequences(paths, 0))) == {1: 5, 2: 4, 3: 3, 4: 2, 5: 1}
    assert Counter(map(len, sequences(paths, 1))) == {1: 7, 2: 7, 3: 7, 4: 7}


# -- which of several shortest paths -----------------------------------------------------------


def bundle(labels: str) -> Graphs:
    """Two ends and as many paths of length 2 between them as there are labels."""
    middle = range(2, 2 + len(labels))
    edges = [(end, node) for node in middle for end in (0, 1)]
    return labelled(edges, ["X", "Y", *labels])


def test_of_many_paths_those_with_the_smallest_labels_are_kept():
    def between(labels, **settings):
        found = readings(bundle(labels), subgraph=0, radii=(2,), **settings)
        return [path for path in found if path[0] in "XY" and path[-1] in "XY" and len(path) == 3]

    assert between("DBCBA", cap=3) == ["XAY", "XBY", "XBY"]
    assert between("BDACB", cap=3) == ["XAY", "XBY", "XBY"]
    assert between("DBCBA", cap=1) == ["XAY"]
    assert between("DBCBA", cap=5) == ["XAY", "XBY", "XBY", "XCY", "XDY"]
    assert between("DBCBA", cap=2, both_ways=True) == ["XAY", "XBY", "YAX", "YBX"]
    assert len(between("A" * 40)) == Paths().cap


@pytest.mark.parametrize("order", [(0, 1, 2, 3, 4, 5), (5, 3, 4, 1, 2, 0)])
def test_the_smaller_reading_decides_which_paths_are_kept(order):
    # X to X through A or B, then A or C: XAAX, XACX, and the other way XABX and XCBX.
    edges = [(0, 1), (0, 2), (1, 3), (1, 4), (2, 3), (2, 4), (3, 5), (4, 5)]
    labels = [letter for _, letter in sorted(zip(order, "XABACX", strict=True))]
    graph = labelled([(order[u], order[v]) for u, v in edges], labels)

    def longest(**chosen):
        found = readings(graph, subgraph=0, radii=(3,), **chosen)
        return [path for path in found if len(path) == 4 and path[0] == path[-1] == "X"]

    assert longest() == ["XAAX", "XABX", "XACX", "XBCX"]
    assert longest(cap=2) == ["XAAX", "XABX"]
    assert longest(cap=1, both_ways=True) == ["XAAX", "XAAX"]


@st.composite
def layered(draw: st.DrawFn) -> tuple[list[tuple[int, int]], int]:
    """Layers of nodes, mostly joined to the next: many shortest paths between the ends."""
    widths = draw(st.lists(st.integers(1, 3), min_size=3, max_size=4))
    starts = np.cumsum([0, *widths])
    layers = [list(range(a, b)) for a, b in pairwise(starts)]
    edges = [(u, v) for one, other in pairwise(layers) for u in one for v in other]
    missing = draw(st.sets(st.sampled_from(edges), max_size=3))
    edges = [edge for edge in edges if edge not in missing]
    return edges, int(starts[-1])


@given(layered(), st.sampled_from(["none", "roles", "objects"]), st.booleans(), st.data())
def test_the_cap_chooses_by_content(drawn, edges, both_ways, data):
    pairs, size = drawn
    node_labels = data.draw(st.lists(st.sampled_from("ABC"), min_size=size, max_size=size))
    edge_labels = data.draw(st.lists(st.integers(0, 1), min_size=len(pairs), max_size=len(pairs)))
    graphs = collection([pairs], [size], False, [node_labels], [edge_labels])
    labelled_graph = Labelled(graphs, [size], [pairs], False, [node_labels], [edge_labels])
    cap = data.draw(st.integers(1, 6))
    paths = Paths((2, 3), 3, "node", edges=edges, cap=cap, both_ways=both_ways)
    found = reference.contents(paths.decompose(graphs))[2]
    assert found == expected_subgraphs(labelled_graph, paths)


# -- what edges tell ---------------------------------------------------------------------------


def test_edges_can_be_roles():
    line = labelled([(0, 1), (1, 2)], ["A", "B", "A"], edge_labels=np.array([2, 1]))
    hierarchy = Paths((2,), 2, edges="roles").decompose(line)
    paths = hierarchy.relations[0]
    assert paths.alphabet == ("index 0", "index 1 1", "index 1 2", "index 2 1", "index 2 2")
    # From node 2, where the label of the first edge is smaller.
    longest = int(hierarchy.relations[1].take(np.array([0])).parts[-1])
    assert sorted(reference.entries_of(paths, longest)) == [(0, 2, 1), (1, 1, 1), (4, 0, 1)]


def test_every_direction_of_an_edge_has_its_own_label():
    # Read from either end, the labels of the nodes are the same; 1, 2 comes before 3, 4.
    edges = [(0, 1), (1, 2), (2, 1), (1, 0)]
    line = labelled(edges, ["A", "B", "A"], edge_labels=np.array([3, 4, 1, 2]))
    hierarchy = Paths((1,), 2, edges="roles").decompose(line)
    longest = int(hierarchy.relations[1].take(np.array([1])).parts[-1])
    names = hierarchy.relations[0].alphabet
    entries = reference.entries_of(hierarchy.relations[0], longest)
    assert sorted((names[role], node) for role, node, _ in entries) == [
        ("index 0", 2),
        ("index 1 1", 1),
        ("index 2 2", 0),
    ]


def test_edges_both_ways_are_two_links_of_one_path():
    pair = Graphs.from_edge_lists([[(0, 1), (1, 0)]], directed=True, node_labels=np.array([5, 6]))
    paths = Paths((1,), 1, edges="roles").decompose(pair).relations[0]
    assert paths.alphabet == ("index 0", "index 1 in", "index 1 out")
    assert [sorted(reference.entries_of(paths, path)) for path in range(3)] == [
        [(0, 0, 1)],
        [(0, 1, 1)],
        [(0, 0, 1), (1, 1, 1), (2, 1, 1)],
    ]
    objects = Paths((1,), 1, edges="objects").decompose(pair)
    assert objects.names[0] == "nodes and edges"
    assert objects.relations[0].alphabet == ("index 0", "index 1", "edge 1")
    assert sorted(reference.entries_of(objects.relations[0], 2)) == [
        *((0, 0, 1), (1, 1, 1)),
        *((2, 2, 1), (2, 3, 1)),
    ]


def test_two_links_of_a_step_are_told_from_one():
    # From either end, the smallest kinds are 0 out and then 0 in; one link comes before two.
    arrows = [(0, 1), (1, 0), (2, 1)]
    graph = labelled(arrows, ["A", "B", "A"], directed=True, edge_labels=np.array([0, 1, 0]))
    hierarchy = Paths((1,), 2, edges="roles").decompose(graph)
    longest = int(hierarchy.relations[1].take(np.array([1])).parts[-1])
    names = hierarchy.relations[0].alphabet
    entries = reference.entries_of(hierarchy.relations[0], longest)
    assert sorted((names[role], node) for role, node, _ in entries) == [
        ("index 0", 2),
        ("index 1 0 out", 1),
        ("index 2 0 in", 0),
        ("index 2 1 out", 0),
    ]


def test_kinds_of_edges_that_were_not_fitted_are_left_out():
    known = labelled([(0, 1)], ["A", "B"], edge_labels=np.array([1]))
    new = labelled([(0, 1), (1, 2)], ["A", "B", "C"], edge_labels=np.array([1, 7]))
    fitted = Paths((2,), 2, edges="roles").fit(known)
    paths = fitted.decompose(new).relations[0]
    assert paths.alphabet == ("index 0", "index 1 1", "index 2 1")
    contents = [sorted(reference.entries_of(paths, path)) for path in range(6)]
    assert contents == [
        *([(0, 0, 1)], [(0, 1, 1)], [(0, 2, 1)]),
        *([(0, 0, 1), (1, 1, 1)], [(0, 2, 1)]),  # C is unseen, so its code comes first
        [(0, 2, 1), (2, 0, 1)],
    ]
    without = labelled([(0, 1)], ["A", "B"])
    with pytest.raises(InputError) as error:
        fitted.decompose(without)
    assert str(error.value) == (
        "these graphs have neither edge labels nor directions, but the decomposition was fitted "
        "on edges of the kinds 1"
    )
    assert Paths(edges="roles").fit(without).edges == "none"
    assert equivalent(
        Paths(edges="roles").decompose(without), Paths(edges="none").decompose(without)
    )


# -- edge cases --------------------------------------------------------------------------------


def test_an_isolated_node_is_one_path_of_length_0_in_every_radius():
    alone = Graphs.from_edge_lists([[]], sizes=[1])
    hierarchy = Paths((0, 1, 5)).decompose(alone)
    assert hierarchy.sizes == (1, 3, 3, 1)
    assert hierarchy.relations[1].matrix("length 0").toarray().tolist() == np.eye(3).tolist()


def test_a_loop_is_no_step():
    loop = Graphs.from_edge_lists([[(0, 0), (0, 1)]])
    without = Paths(node_labels="degree", edges="objects").decompose(loop)
    assert without.sizes == (2 + 2, 6 + 6, 4, 1)
    assert 2 not in without.relations[0].parts  # the loop, among the bottom objects
    assert Paths(node_labels="degree").decompose(loop).sizes == (2, 12, 4, 1)


def test_radius_0_holds_the_root_alone():
    triangle = Graphs.from_edge_lists([[(0, 1), (1, 2), (2, 0)]])
    hierarchy = Paths((0,)).decompose(triangle)
    assert hierarchy.sizes == (3, 3, 3, 1)
    assert hierarchy.relations[0].matrix("index 0").toarray().tolist() == np.eye(3).tolist()


# -- the promises of a decomposition -----------------------------------------------------------


@given(layered(), st.data())
def test_vectors_order_paths_where_labels_do_not(drawn, data):
    pairs, size = drawn
    values = data.draw(st.lists(st.sampled_from(REALS), min_size=2 * size, max_size=2 * size))
    vectors = np.array(values).reshape(size, 2)
    cap = data.draw(st.integers(1, 3))
    name = np.array(data.draw(st.permutations(range(size))))
    renamed = [(int(name[u]), int(name[v])) for u, v in pairs]
    labels = data.draw(st.sampled_from(["attributes", "degree,attributes", "attributes,distance"]))
    paths = Paths((1, 2), node_labels=labels, cap=cap)
    one = Graphs.from_edge_lists([pairs], [size], node_attributes=vectors)
    other = Graphs.from_edge_lists([renamed], [size], node_attributes=vectors[np.argsort(name)])
    assert equivalent(paths.decompose(one), paths.decompose(other))


@given(labelled_graphs(), options)
def test_costs_hold_one_path_for_every_two_nodes(drawn, chosen):
    radii = tuple(radius for radius in chosen["radii"] if radius < 3) or (2,)
    paths = Paths(**(chosen | {"cap": 1, "radii": radii}))
    entries = [
        sum(relation.n_entries for relation in paths.decompose(graph).relations)
        for graph in drawn.graphs
    ]
    assert (paths.costs(drawn.graphs) >= entries).all()


@pytest.mark.parametrize(
    "edges",
    [
        [(0, leaf) for leaf in range(1, 40)],
        [(u, v) for v in range(30) for u in range(v)],
        [(v, v + 1) for v in range(200)],
    ],
    ids=["star", "clique", "chain"],
)
@pytest.mark.parametrize("radius", [0, 1, 2, 3])
def test_costs_are_not_far_from_the_entries(edges, radius):
    graph = Graphs.from_edge_lists([edges])
    paths = Paths((radius,))
    entries = sum(relation.n_entries for relation in paths.decompose(graph).relations)
    assert entries <= paths.costs(graph)[0] <= 2 * entries


@pytest.mark.parametrize("edges", ["none", "roles", "objects"])
def test_costs_count_both_links_of_a_step(edges):
    arrows = [(u, v) for u in range(9) for v in range(9) if u != v]
    graph = Graphs.from_edge_lists([arrows], directed=True)
    paths = Paths((1,), 1, edges=edges)
    entries = sum(relation.n_entries for relation in paths.decompose(graph).relations)
    assert paths.costs(graph).tolist() == [entries]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"radii": ()}, "radii must be one or more distinct integers ≥ 0, not ()"),
        ({"max_length": -1}, "max_length must be an integer ≥ 0, not -1"),
        ({"max_length": 1.5}, "max_length must be an integer ≥ 0, not 1.5"),
        ({"cap": 0}, "cap must be an integer ≥ 1, not 0"),
        ({"cap": None}, "cap must be an integer ≥ 1, not None"),
        ({"both_ways": "no"}, "both_ways must be True or False, not 'no'"),
        ({"direction": "up"}, "direction must be one of both, out, in, not 'up'"),
        (
            {"edges": "rolls"},
            "edges must be one of none, roles, auto, objects, not 'rolls' (did you mean roles?)",
        ),
        (
            {"edges": "objects", "node_labels": "node,distance"},
            "edges='objects' have no distance to the root: leave the label 'distance' out, "
            "or use edges='roles'",
        ),
    ],
)
def test_settings_that_make_no_sense_are_refused(arguments, message):
    with pytest.raises(InputError) as error:
        Paths(**arguments)
    assert str(error.value) == message


# -- shortest paths of any graph ---------------------------------------------------------------


@pytest.mark.parametrize("both_ways", [False, True])
@given(graph_collections(directed=False), st.integers(0, 4))
def test_shortest_paths_stand_once_from_the_smaller_end_or_both_ways(both_ways, drawn, longest):
    found = shortest_paths(drawn.graphs.adjacency(), longest, both_ways=both_ways)
    expected: list[tuple[int, ...]] = []
    for first, size, edges in zip(
        drawn.graphs.node_offsets.tolist(), drawn.sizes, drawn.edge_lists, strict=False
    ):
        near = reference.neighbours(size, edges, False, "both")
        paths = all_shortest(near, set(range(size)), longest)
        expected += [tuple(first + v for v in p) for p in paths if both_ways or p[0] <= p[-1]]
    assert [rows.shape[1] for rows in found] == list(range(1, longest + 2))
    assert all(rows.dtype == np.int64 for rows in found)
    assert sorted(tuple(row) for rows in found for row in rows.tolist()) == sorted(expected)


def test_explicit_zeros_are_edges():
    arrow = sparse.csr_array(([0], [1], [0, 1, 1]), shape=(2, 2))
    assert shortest_paths(arrow, 1, both_ways=True)[1].tolist() == [[0, 1]]


# -- real graphs -------------------------------------------------------------------------------


def test_proteins_have_the_paths_that_networkx_finds(dataset):
    networkx = pytest.importorskip("networkx")
    graphs = dataset("PROTEINS")[:4]
    lengths = Paths((2,), cap=EVERYTHING).decompose(graphs).relations[1]
    whole = networkx.Graph(graphs.edges().tolist())
    for root in range(0, graphs.n_nodes, 5):
        ego = networkx.ego_graph(whole, root, radius=2)
        expected: Counter[int] = Counter()
        for u in ego:
            for v in ego:
                paths = list(networkx.all_shortest_paths(ego, u, v)) if u <= v else []
                expected.update(len(path) - 1 for path in paths if len(path) <= 4)
        found = Counter(role for role, _, _ in reference.entries_of(lengths, root))
        assert found == expected
