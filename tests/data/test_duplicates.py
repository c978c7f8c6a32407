"""Examples that are the same as data: against a literal test of isomorphism, and by hand."""

from __future__ import annotations

from itertools import combinations

import networkx as nx
import numpy as np
import pytest

import saen
from saen import Documents, Graphs, NestedData
from saen.data.duplicates import identical_examples
from saen.io.libraries.networkx import from_networkx, to_networkx

SHAPES = {
    "triangles": nx.disjoint_union(nx.cycle_graph(3), nx.cycle_graph(3)),
    "hexagon": nx.cycle_graph(6),
    "petersen": nx.petersen_graph(),
    "prism": nx.circular_ladder_graph(5),  # three neighbours each, as in Petersen's graph
    "clique": nx.complete_graph(30),
    "star": nx.star_graph(200),
    "stars": nx.disjoint_union_all([nx.star_graph(3)] * 5),
    "tree": nx.balanced_tree(2, 4),
    "bipartite": nx.Graph(nx.complete_bipartite_graph(4, 5).edges),
    "nodes": nx.empty_graph(4),
    "none": nx.empty_graph(0),
}


def shuffled(graphs: Graphs, rng: np.random.Generator) -> Graphs:
    """The same graphs with their nodes in another order."""
    starts = zip(graphs.node_offsets[:-1], graphs.sizes, strict=True)
    place = np.concatenate([s + rng.permutation(n) for s, n in starts] + [np.empty(0, int)])
    sources = np.repeat(np.arange(graphs.n_nodes), np.diff(graphs.indptr))
    columns = {}
    for key in ("node_labels", "node_attributes", "edge_labels", "edge_attributes"):
        values = getattr(graphs, key)
        if values is not None:
            columns[key] = values[np.argsort(place)] if key.startswith("node") else values
    edges = np.column_stack([place[sources], place[graphs.indices]])
    return Graphs.from_edges(edges, graphs.sizes, directed=graphs.directed, **columns)


def drawn(rng: np.random.Generator, *, directed: bool, labelled: bool) -> Graphs:
    """Small graphs, many of which are the same."""
    edge_lists, sizes = [], []
    for _ in range(40):
        size = int(rng.integers(1, 5))
        pairs = [(i, j) for i in range(size) for j in range(size) if directed or i <= j]
        edge_lists.append([pair for pair in pairs if rng.random() < 0.5])
        sizes.append(size)
    n_edges = sum(map(len, edge_lists))
    columns = {
        "node_labels": rng.integers(2, size=sum(sizes)),
        "edge_attributes": rng.integers(2, size=(n_edges, 1)).astype(float),
    }
    return Graphs.from_edge_lists(
        edge_lists, sizes, directed=directed, **(columns if labelled else {})
    )


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("labelled", [False, True])
@pytest.mark.parametrize("directed", [False, True])
def test_duplicates_are_the_isomorphic_graphs(directed, labelled, seed):
    graphs = drawn(np.random.default_rng(seed), directed=directed, labelled=labelled)
    found = identical_examples(graphs)
    plain = to_networkx(graphs)

    def same(one, other):
        return one == other

    for one, other in combinations(range(len(graphs)), 2):
        isomorphic = nx.is_isomorphic(plain[one], plain[other], same, same)
        assert isomorphic == (found[one] == found[other]), (one, other)
    assert (found <= np.arange(len(graphs))).all()
    assert (found[found] == found).all()


def test_duplicates_do_not_depend_on_the_order_of_the_nodes():
    graphs = from_networkx(SHAPES.values())
    for seed in range(5):
        again = shuffled(graphs, np.random.default_rng(seed))
        found = identical_examples(Graphs.concatenate([graphs, again]))
        assert found.tolist() == [*range(len(SHAPES))] * 2


def test_duplicates_have_the_same_labels_attributes_and_directions():
    edges = [[(0, 1)]] * 3
    assert identical_examples(Graphs.from_edge_lists(edges)).tolist() == [0, 0, 0]
    for columns in (
        {"node_labels": ["a", "b", "b", "a", "a", "a"]},
        {"node_labels": [[1, 2], [3, 4], [3, 4], [1, 2], [1, 4], [3, 2]]},
        {"node_attributes": [[0.0], [1.0], [1.0], [-0.0], [0.0], [1.5]]},
        {"edge_labels": ["x", "x", "y"]},
        {"edge_attributes": [[0.5], [0.5], [0.25]]},
    ):
        found = identical_examples(Graphs.from_edge_lists(edges, **columns))
        assert found.tolist() == [0, 0, 2], columns
    arrows = [[(0, 1), (0, 2)], [(1, 0), (1, 2)], [(1, 0), (2, 0)]]
    assert identical_examples(Graphs.from_edge_lists(arrows, directed=True)).tolist() == [0, 0, 2]
    with_targets = Graphs.from_edge_lists(edges, targets=[1, 2, 3], ids=["a", "b", "c"])
    assert identical_examples(with_targets).tolist() == [0, 0, 0]


def test_duplicates_of_colliding_keys_are_compared(monkeypatch):
    """Keys that say nothing make no two graphs the same."""
    graphs = from_networkx([nx.path_graph(4), nx.star_graph(3), nx.path_graph(4)])
    monkeypatch.setattr("saen.data.content_hash.MASKS", (np.uint64(0), np.uint64(0)))
    assert identical_examples(graphs).tolist() == [0, 1, 0]


def test_duplicates_among_documents_have_the_same_sentences_in_order():
    yes, no = [("yes", None, "root")], [("no", None, "root")]
    pair = [("yes", 1, "x"), ("no", None, "root")]
    documents = [[yes, no], [no, yes], [yes, no], [pair], [[*pair[::-1]][:1]], [pair], [yes], []]
    documents[4] = [[("yes", 1, "y"), ("no", None, "root")]]
    found = identical_examples(Documents.from_sentences(documents[:-1]))
    assert found.tolist() == [0, 1, 0, 3, 4, 3, 6]


def test_duplicates_among_nested_data_have_the_same_parts():
    pets = NestedData([{"w": ["a", "b"]}, {"w": ["b", "a"]}, {"w": ["a"]}, {"v": ["a", "b"]}])
    assert identical_examples(pets).tolist() == [0, 0, 2, 3]


def test_duplicates_of_no_graphs_are_none():
    assert identical_examples(Graphs.from_edge_lists([])).tolist() == []
    assert identical_examples(Graphs.from_edge_lists([[], []], [0, 0])).tolist() == [0, 0]
    assert identical_examples(saen.generate_threads(50, seed=1)).max() < 50
