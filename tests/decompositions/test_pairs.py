from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from saen import Graphs, Hierarchy, PartCounts, compress_graphs
from saen.decompositions import Pairs
from tests.properties.strategies import DrawnGraphs, graph_collections
from tests.references import hierarchies as reference
from tests.refusals import refuses

DIRECTIONS = ["both", "out", "in"]
max_distances = st.integers(0, 4)


def expected_pairs(drawn: DrawnGraphs, max_distance: int, direction: str) -> list[list[tuple]]:
    """(distance, first, second) of the pairs of every graph, by breadth-first search."""
    near = drawn.neighbours(direction)
    ordered = drawn.directed and direction != "both"
    starts = np.cumsum([0, *drawn.sizes]).tolist()
    graphs: list[list[tuple]] = []
    for first, last in pairwise(starts):
        pairs = []
        for root in range(first, last):
            inside: set[int] = set()
            for distance in range(max_distance + 1):
                ball = reference.ball(near, root, distance)
                pairs += [(distance, root, v) for v in ball - inside if ordered or root <= v]
                inside = ball
        graphs.append(sorted(pairs))
    return graphs


def listed_pairs(hierarchy: Hierarchy) -> list[list[tuple]]:
    """The same of a hierarchy, whose pairs name their ends by role."""
    ends, graphs = hierarchy.relations
    out = []
    for number in range(len(hierarchy)):
        pairs = []
        for distance, pair, count in reference.entries_of(graphs, number):
            assert count == 1
            parts = [part for _, part, _ in sorted(reference.entries_of(ends, pair))]
            assert len(parts) == (2 if distance else 1)
            pairs.append((distance, parts[0], parts[-1]))
        out.append(sorted(pairs))
    return out


@pytest.mark.parametrize("direction", DIRECTIONS)
@given(graph_collections(), max_distances)
def test_pairs_are_the_nodes_at_every_distance(direction, drawn, max_distance):
    hierarchy = Pairs(max_distance, direction=direction).decompose(drawn.graphs)
    assert listed_pairs(hierarchy) == expected_pairs(drawn, max_distance, direction)
    ends, graphs = hierarchy.relations
    assert hierarchy.names == ("nodes", "pairs", "graphs")
    assert graphs.alphabet == tuple(f"distance {d}" for d in range(max_distance + 1))
    ordered = drawn.directed and direction != "both"
    assert ends.alphabet == (("from", "to") if ordered else ("end",))


@given(graph_collections(directed=False), max_distances)
def test_pairs_counted_are_the_features_of_the_shortest_path_kernel(drawn, max_distance):
    features = PartCounts(
        f"pairs(max_distance={max_distance})", node_labels="degree", encoding="counts", norm=None
    )
    if not len(drawn.graphs):
        return
    rows = features.fit_transform(drawn.graphs)
    degrees = drawn.degrees()
    bags = [
        Counter((d, *sorted((degrees[u], degrees[v]))) for d, u, v in pairs)
        for pairs in expected_pairs(drawn, max_distance, "both")
    ]
    kernel = [[sum(a[key] * b[key] for key in a) for b in bags] for a in bags]
    assert (rows @ rows.T).toarray().tolist() == kernel


@pytest.mark.parametrize("direction", DIRECTIONS)
@given(graph_collections(), max_distances)
def test_costs_of_pairs_are_not_exceeded(direction, drawn, max_distance):
    pairs = Pairs(max_distance, direction=direction)
    ends = pairs.decompose(drawn.graphs).relations
    entries = [
        sum(len(reference.entries_of(ends[0], p)) for _, p, _ in reference.entries_of(ends[1], g))
        for g in range(len(drawn.graphs))
    ]
    assert (pairs.costs(drawn.graphs) >= entries).all()


def test_pairs_at_a_distance_tell_apart_what_lies_near_does_not():
    """Hexagons with two marked nodes, which are two or three edges apart."""
    ring = [(i, (i + 1) % 6) for i in range(6)]
    graphs = Graphs.from_edge_lists(
        [ring, ring], node_labels=list("OCOCCC") + list("OCCOCC"), targets=[0, 1]
    )
    near, far = (compress_graphs(graphs, Pairs(d, "node").fit(graphs)).hierarchy for d in (1, 2))
    assert len(near) == 1
    assert len(far) == 2


def test_pairs_refuse_what_has_no_meaning():
    with refuses("max_distance must be an integer ≥ 0, not -1"):
        Pairs(max_distance=-1)
    with refuses("the label 'distance' needs a root: use it with ego or paths"):
        Pairs(node_labels="distance").fit(Graphs.from_edge_lists([[(0, 1)]]))
