"""What graphs themselves say of their nodes, against networkx."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import saen._util.arrays
from saen import Graphs
from saen.data.compression import compress
from saen.decompositions import Neighbourhoods
from saen.decompositions.node_labels import label_columns
from saen.decompositions.structure import (
    MAX_HUB_DISTANCE,
    MAX_RING,
    core_numbers,
    hub_distances,
    ring_labels,
    triangle_counts,
)
from tests.properties.strategies import graph_collections
from tests.references import hierarchies as reference


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


def rings(graphs: Graphs) -> list[list[int]]:
    """Shortest cycles through nodes, and the number of their edges on cycles: edge by edge."""
    shortest, edges = [], []
    for plain in simple_graphs(graphs):
        through: dict[int, list[int]] = {v: [] for v in plain}
        for u, v in list(plain.edges):
            plain.remove_edge(u, v)
            around = nx.single_source_shortest_path_length(plain, u, cutoff=MAX_RING - 1)
            plain.add_edge(u, v)
            if v in around:
                through[u].append(around[v] + 1)
                through[v].append(around[v] + 1)
        shortest += [min(each, default=0) for each in through.values()]
        edges += [len(each) for each in through.values()]
    return [shortest, edges]


def hubs(graphs: Graphs) -> list[int]:
    out = []
    for plain in simple_graphs(graphs):
        distance = {}
        for component in nx.connected_components(plain):
            highest = max(plain.degree[v] for v in component)
            sources = {v for v in component if plain.degree[v] == highest}
            distance |= nx.multi_source_dijkstra_path_length(plain, sources)
        out += [min(distance[v], MAX_HUB_DISTANCE) for v in plain]
    return out


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
        assert [each.tolist() for each in ring_labels(graphs)] == rings(graphs)
        assert hub_distances(graphs).tolist() == hubs(graphs)


def test_a_long_path_peels_from_both_ends():
    path = Graphs.from_edge_lists([[(v, v + 1) for v in range(500)]])
    assert set(core_numbers(path).tolist()) == {1}


def test_hubs_with_many_leaves_are_in_no_triangle():
    star = Graphs.from_edge_lists([[(0, leaf) for leaf in range(1, 3000)]])
    assert not triangle_counts(star).any()
    assert set(core_numbers(star).tolist()) == {1}


@st.composite
def chained_rings(draw: st.DrawFn) -> Graphs:
    """Rings of all lengths, hung together by paths, shared nodes and shared edges."""
    edge_lists = []
    for _ in range(draw(st.integers(1, 3))):
        edges, end = [], 0
        for length in draw(st.lists(st.integers(3, MAX_RING + 2), min_size=1, max_size=4)):
            ring = [end, *range(end + 1, end + length)]
            edges += [*zip(ring, [*ring[1:], end], strict=True)]
            last = ring[draw(st.integers(0, length - 1))]  # where the next one begins
            end = ring[-1] + 1
            edges.append((last, end))
            if draw(st.booleans()):  # closes one more ring
                edges.append((ring[draw(st.integers(0, length - 1))], end))
        edge_lists.append(edges)
    return Graphs.from_edge_lists(edge_lists, duplicates="merge")


@given(chained_rings(), st.integers(1, 1000))
def test_rings_are_the_shortest_cycles_through_edges(graphs, entries):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(saen._util.arrays, "BLOCK", entries)
        assert [each.tolist() for each in ring_labels(graphs)] == rings(graphs)


@pytest.mark.parametrize("direction", ["both", "out", "in"])
@given(graph_collections())
def test_rings_and_hubs_are_those_of_the_undirected_graph_without_loops(direction, drawn):
    columns = label_columns(drawn.graphs, "rings,hub", direction)
    assert [each.tolist() for each in columns] == [*rings(drawn.graphs), hubs(drawn.graphs)]


def test_rings_tell_apart_what_neighbourhoods_do_not():
    hexagon = [(v, (v + 1) % 6) for v in range(6)]
    two = [*((v, (v + 1) % 3) for v in range(3)), *((3 + v, 3 + (v + 1) % 3) for v in range(3))]
    both = Graphs.from_edge_lists([hexagon, two])
    tops = [
        compress(Neighbourhoods(4, node_labels=labels).decompose(both)).top.tolist()
        for labels in ("degree", "rings")
    ]
    assert [len({*each}) for each in tops] == [1, 2]


def test_a_path_longer_than_the_farthest_hub_counts():
    path = Graphs.from_edge_lists([[(0, 1), (0, 2), (0, 3), *((v, v + 1) for v in range(3, 30))]])
    assert hub_distances(path)[[0, 1, 3, 4, 20]].tolist() == [0, 1, 1, 2, MAX_HUB_DISTANCE]


@pytest.mark.slow
def test_networkx_agrees_on_collaborations(dataset):
    graphs = dataset("COLLAB")[::50]
    assert core_numbers(graphs).tolist() == cores(graphs)
    assert triangle_counts(graphs).tolist() == triangles(graphs)
    assert hub_distances(graphs).tolist() == hubs(graphs)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["NCI1", "PTC", "IMDB-BINARY"])
def test_networkx_agrees_on_rings(dataset, name):
    graphs = dataset(name)[::20]
    assert [each.tolist() for each in ring_labels(graphs)] == rings(graphs)
