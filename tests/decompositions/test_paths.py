from __future__ import annotations

from collections import Counter, deque
from collections.abc import Hashable
from dataclasses import replace
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from saen import Graphs, Hierarchy
from saen.data.compression import equivalent
from saen.decompositions import Ego, Paths
from saen.decompositions.shortest_paths import shortest_paths
from tests.properties.labelled import LabelledGraphs, labelled_collections
from tests.properties.strategies import REALS, graph_collections
from tests.references import hierarchies as reference
from tests.refusals import refuses

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


@st.composite
def labelled_graphs(draw: st.DrawFn) -> LabelledGraphs:
    """Few labels, many edges: paths that look alike, and several between two nodes."""
    drawn = draw(labelled_collections(width=draw(st.integers(0, 1))))
    n = sum(drawn.sizes)
    labels = np.array(draw(st.lists(st.sampled_from("AB"), min_size=n, max_size=n)), np.str_)
    return replace(drawn, graphs=drawn.graphs.with_columns(node_labels=labels))


def links_of(drawn: LabelledGraphs, direction: str) -> dict[tuple[int, int], list[Any]]:
    """For every step from one node to another its links: (kind, edge as an object)."""
    values = drawn.edge_values(drawn.graphs.node_labels.tolist())
    edges = {(u, v): value for (u, v, _), value in zip(drawn.all_edges(), values, strict=True)}
    out: dict[tuple[int, int], list[Any]] = {}
    for u, near in enumerate(drawn.links(direction)):
        for v, kind, ends in near:
            out.setdefault((u, v), []).append((kind, edges[ends]))
    return {step: sorted(links) for step, links in out.items()}


def expected_subgraphs(drawn: LabelledGraphs, paths: Paths) -> list[Hashable]:
    """What every subgraph is made of, as `reference.contents` says it."""
    parents: list[Hashable] = []
    one_way = drawn.directed and paths.direction != "both"
    with_distance = "distance" in paths.node_labels
    near, links = drawn.neighbours(paths.direction), links_of(drawn, paths.direction)
    labels = drawn.graphs.node_labels.tolist()
    place = {"none": None, "roles": 0, "objects": 1}[paths.edges]
    for root, radius in product(range(len(near)), paths.radii):
        members = reference.ball(near, root, radius)
        far = distances(near, root, members)

        def key(path, far=far):
            own = [(labels[v], far[v]) if with_distance else labels[v] for v in path]
            steps = () if place is None else pairwise(path)
            return own, [tuple(sorted(link[place] for link in links[step])) for step in steps]

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


@given(labelled_graphs(), options)
def test_every_option_makes_the_parts_that_it_says(drawn, chosen):
    paths = Paths(**chosen)
    hierarchy = paths.decompose(drawn.graphs)
    assert reference.contents(hierarchy)[2] == expected_subgraphs(drawn, paths)
    assert hierarchy.relations[2] == Ego(paths.radii).decompose(drawn.graphs).relations[1]
    assert hierarchy.names[1:] == ("paths", "subgraphs", "graphs")
    lengths = tuple(f"length {k}" for k in range(paths.max_length + 1))
    assert hierarchy.relations[1].alphabet == lengths
    if paths.edges == "none":
        indices = tuple(f"index {i}" for i in range(paths.max_length + 1))
        assert hierarchy.relations[0].alphabet == indices


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
    graphs = labelled(pairs, node_labels, edge_labels=np.array(edge_labels, np.int64))
    own = [[(label,) for label in edge_labels]]
    labelled_graph = LabelledGraphs(graphs, [size], [pairs], False, own)
    cap = data.draw(st.integers(1, 6))
    paths = Paths((2, 3), 3, "node", edges=edges, cap=cap, both_ways=both_ways)
    found = reference.contents(paths.decompose(graphs))[2]
    assert found == expected_subgraphs(labelled_graph, paths)


# -- what edges tell ---------------------------------------------------------------------------


def test_every_direction_of_an_edge_has_its_own_label():
    # Read from either end, the labels of the nodes are the same; 1, 2 comes before 3, 4.
    edges = [(0, 1), (1, 2), (2, 1), (1, 0)]
    line = labelled(edges, ["A", "B", "A"], edge_labels=np.array([3, 4, 1, 2]))
    assert longest_path(line) == [("index 0", 2), ("index 1 1", 1), ("index 2 2", 0)]


def longest_path(graph: Graphs) -> list[tuple[str, int]]:
    """(role, node) of the parts of the last path around node 1."""
    paths, subgraphs, _ = Paths((1,), 2, edges="roles").decompose(graph).relations
    entries = reference.entries_of(paths, int(subgraphs.take(np.array([1])).parts[-1]))
    return sorted((paths.alphabet[role], node) for role, node, _ in entries)


def test_two_links_of_a_step_are_told_from_one():
    # From either end, the smallest kinds are 0 out and then 0 in; one link comes before two.
    arrows = [(0, 1), (1, 0), (2, 1)]
    graph = labelled(arrows, ["A", "B", "A"], directed=True, edge_labels=np.array([0, 1, 0]))
    assert longest_path(graph) == [
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


# -- edge cases --------------------------------------------------------------------------------


def test_a_loop_is_no_step():
    loop = Graphs.from_edge_lists([[(0, 0), (0, 1)]])
    without = Paths(node_labels="degree", edges="objects").decompose(loop)
    assert without.sizes == (2 + 2, 6 + 6, 4, 1)
    assert 2 not in without.relations[0].parts  # the loop, among the bottom objects
    assert Paths(node_labels="degree").decompose(loop).sizes == (2, 12, 4, 1)


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
    ],
)
def test_settings_that_make_no_sense_are_refused(arguments, message):
    with refuses(message):
        Paths(**arguments)


# -- shortest paths of any graph ---------------------------------------------------------------


@pytest.mark.parametrize("both_ways", [False, True])
@given(graph_collections(directed=False), st.integers(0, 4))
def test_shortest_paths_stand_once_from_the_smaller_end_or_both_ways(both_ways, drawn, longest):
    found = shortest_paths(drawn.graphs.adjacency(), longest, both_ways=both_ways)
    near = drawn.neighbours()
    expected: list[tuple[int, ...]] = []
    for first, last in pairwise(drawn.graphs.node_offsets.tolist()):
        paths = all_shortest(near, set(range(first, last)), longest)
        expected += [path for path in paths if both_ways or path[0] <= path[-1]]
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
