from __future__ import annotations

import copy
from dataclasses import FrozenInstanceError, dataclass, replace
from itertools import pairwise

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from saen import Graphs
from saen.errors import InputError
from tests.refusals import refuses

# -- the slow reference: one Python object per graph ---------------------------------------------


@dataclass
class Plain:
    """One graph as lists and dictionaries; `edges` has every entry, an undirected edge twice."""

    labels: list[str]
    edges: dict[tuple[int, int], int]
    target: int

    @property
    def size(self):
        return len(self.labels)

    def neighbours(self, node):
        return sorted(target for source, target in self.edges if source == node)


def plain(graphs):
    """The same collection in plain Python, read entry by entry from the arrays."""
    out = []
    for number in range(len(graphs)):
        first, last = graphs.node_offsets[number], graphs.node_offsets[number + 1]
        edges = {}
        for node in range(first, last):
            for entry in range(graphs.indptr[node], graphs.indptr[node + 1]):
                ends = (node - int(first), int(graphs.indices[entry] - first))
                edges[ends] = int(graphs.edge_labels[entry])
        labels = [str(label) for label in graphs.node_labels[first:last]]
        out.append(Plain(labels, edges, int(graphs.targets[number])))
    return out


@dataclass
class Listed:
    """What a user has: the edges in any order, undirected ones from one end or from both."""

    labels: list[str]
    edges: dict[tuple[int, int], int]
    target: int

    def plain(self, directed):
        edges = dict(self.edges)
        if not directed:
            for (source, target), label in self.edges.items():
                edges.setdefault((target, source), label)
        return Plain(self.labels, edges, self.target)


def build(listed, directed):
    starts = np.cumsum([0, *(len(graph.labels) for graph in listed)]).tolist()
    pairs = [
        (source + start, target + start)
        for graph, start in zip(listed, starts[:-1], strict=True)
        for source, target in graph.edges
    ]
    return Graphs.from_edges(
        pairs,
        sizes=[len(graph.labels) for graph in listed],
        directed=directed,
        node_labels=np.array([label for graph in listed for label in graph.labels], dtype="U1"),
        edge_labels=np.array(
            [label for graph in listed for label in graph.edges.values()], dtype=np.int64
        ),
        targets=np.array([graph.target for graph in listed], dtype=np.int64),
    )


@st.composite
def listed_graphs(draw):
    labels = draw(st.lists(st.sampled_from("abc"), max_size=5))
    edges = {}
    if labels:
        end = st.integers(0, len(labels) - 1)
        edges = draw(st.dictionaries(st.tuples(end, end), st.integers(0, 9), max_size=8))
    return Listed(labels, edges, draw(st.integers(0, 1)))


@st.composite
def collections(draw):
    """A collection and the same in plain Python."""
    directed = draw(st.booleans())
    listed = draw(st.lists(listed_graphs(), max_size=5))
    return build(listed, directed), [graph.plain(directed) for graph in listed]


def small():
    """A path, two nodes that no edge joins, no nodes, and a loop."""
    return Graphs.from_edge_lists(
        [[(0, 1), (1, 2)], [], [], [(0, 0), (0, 1)]],
        sizes=[3, 2, 0, 2],
        node_labels=[3, 4, 3, 1, 1, 0, 0],
        edge_labels=["a", "b", "loop", "c"],
        targets=["path", "none", "empty", "loop"],
        name="small",
    )


# -- construction --------------------------------------------------------------------------------


@given(collections())
def test_a_collection_holds_exactly_the_graphs_it_was_built_from(pair):
    graphs, reference = pair
    assert plain(graphs) == reference
    assert len(graphs) == len(reference)
    assert graphs.sizes.tolist() == [graph.size for graph in reference]


@given(collections())
def test_what_from_edges_builds_passes_every_check_of_the_constructor(pair):
    graphs, _ = pair
    columns = {key: getattr(graphs, key) for key in ("node_labels", "edge_labels", "targets")}
    again = Graphs(
        graphs.node_offsets, graphs.indptr, graphs.indices, directed=graphs.directed, **columns
    )
    assert again == graphs


@given(st.lists(listed_graphs(), max_size=4), st.randoms(use_true_random=False))
def test_the_order_in_which_edges_are_listed_does_not_matter(listed, random):
    mixed = []
    for graph in listed:
        items = list(graph.edges.items())
        random.shuffle(items)
        mixed.append(replace(graph, edges=dict(items)))
    for directed in (False, True):
        assert build(mixed, directed) == build(listed, directed)


def test_an_edge_listed_once_has_its_label_in_both_directions_and_listed_twice_its_own():
    once = Graphs.from_edges([(1, 0), (1, 2)], [3], edge_labels=[7, 8])
    assert once.edge_labels.tolist() == [7, 7, 8, 8]
    twice = Graphs.from_edges(
        [(1, 0), (1, 2), (0, 1)],
        [3],
        edge_labels=[7, 8, 9],
        edge_attributes=[[0.7, 7], [0.8, 8], [0.9, 9]],
    )
    assert twice.indices.tolist() == [1, 0, 2, 1]
    assert twice.edge_labels.tolist() == [9, 7, 8, 8]
    assert twice.edge_attributes[:, 0].tolist() == [0.9, 0.7, 0.8, 0.8]


def test_a_repeated_edge_is_an_error_unless_merged_and_then_the_first_counts():
    edges, labels = [(0, 1), (1, 1), (0, 1), (1, 1)], [1, 2, 3, 4]
    with refuses(
        'the edge 0 → 1 is listed more than once (pass duplicates="merge" to keep the first)'
    ):
        Graphs.from_edges(edges, [2], edge_labels=labels)
    merged = Graphs.from_edges(edges, [2], edge_labels=labels, duplicates="merge")
    assert merged.edges().tolist() == [[0, 1], [1, 1]]
    assert merged.edge_labels.tolist() == [1, 1, 2]
    assert Graphs.from_edges(edges, [2], duplicates="merge").edges().tolist() == [[0, 1], [1, 1]]


def test_edge_lists_are_numbered_from_zero_in_every_graph():
    graphs = small()
    assert graphs.edges().tolist() == [[0, 1], [1, 2], [5, 5], [5, 6]]
    assert graphs.edge_labels.tolist() == ["a", "a", "b", "b", "loop", "c", "c"]
    assert Graphs.from_edge_lists([[(0, 2)], []]).sizes.tolist() == [3, 0]
    assert len(Graphs.from_edge_lists(iter([]))) == 0
    unsigned = np.array([[0, 1]], dtype=np.uint64)
    assert Graphs.from_edge_lists([unsigned, unsigned]).edges().tolist() == [[0, 1], [2, 3]]


EDGE = [(0, 1)]


@pytest.mark.parametrize(
    ("edges", "sizes", "options", "message"),
    [
        ([(0, 2)], [2], {}, "edge 0 joins [0, 2], but there are 2 nodes, numbered from 0"),
        ([(0, 1), (-1, 0)], [2], {},
         "edge 1 joins [-1, 0], but there are 2 nodes, numbered from 0"),
        ([(0, 1)], [1, 1], {}, "graph 0 has an edge to a node outside of it"),
        ([(0, 1, 2), (3, 4, 5)], [9], {},
         "edges must be integers of shape (n, 2), not int64 (2, 3)"),
        ([(0, 1.5)], [2], {}, "edges must be integers of shape (n, 2), not float64 (1, 2)"),
        ([(0, 1), (1,)], [2], {}, "every edge must be a pair of integers"),
        (EDGE, [2.0], {}, "sizes must be one integer ≥ 0 per graph, its number of nodes"),
        (EDGE, [3, -1], {}, "sizes must be one integer ≥ 0 per graph, its number of nodes"),
        (EDGE, 2, {}, "sizes must be one integer ≥ 0 per graph, its number of nodes"),
        (EDGE, [2], {"node_labels": [1]}, "node labels: expected 2 rows, found shape (1,)"),
        (EDGE, [2], {"node_labels": [0.5, 1]},
         "node labels must be integers or strings, not float64"),
        (EDGE, [2], {"node_labels": [[1], [1, 2]]},
         "node labels differ in their number of columns"),
        (EDGE, [2], {"node_attributes": [[1], [2]]},
         "node attributes must be floating-point numbers of shape (n, k)"),
        (EDGE, [2], {"node_attributes": [1.0, 2.0]},
         "node attributes must be floating-point numbers of shape (n, k)"),
        (EDGE, [2], {"edge_labels": [1, 2]},
         "edge labels: expected 1 rows, one for each edge, found shape (2,)"),
        (EDGE, [2], {"targets": [1j]}, "targets must be numbers or strings, not complex128"),
        (EDGE, [2], {"duplicates": "sum"}, 'duplicates must be "error" or "merge", not \'sum\''),
    ],
)  # fmt: skip
def test_edges_that_make_no_graphs_are_refused(edges, sizes, options, message):
    with refuses(message):
        Graphs.from_edges(edges, sizes, **options)


@pytest.mark.parametrize(
    ("edge_lists", "sizes", "message"),
    [
        ([[(0, 1)], [(0, 3)]], [2, 3], "graph 1 has 3 nodes, numbered from 0, but an edge names 3"),
        ([[(0, -1)]], None, "graph 0 has 1 node, numbered from 0, but an edge names -1"),
        ([[], [(0, 1, 2), (0, 1, 2)]], None,
         "graph 1: edges must be integers of shape (n, 2), not int64 (2, 3)"),
        ([[(0, 1), (0,)]], None, "graph 0: every edge must be a pair of integers"),
        ([[(0, 1)]], [2, 2], "1 edge lists, but 2 sizes"),
    ],
)  # fmt: skip
def test_edge_lists_that_make_no_graphs_are_refused(edge_lists, sizes, message):
    with refuses(message):
        Graphs.from_edge_lists(edge_lists, sizes)


GOOD = {"node_offsets": [0, 2, 3], "indptr": [0, 1, 2, 2], "indices": [1, 0]}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"indptr": [0.0, 1, 2, 2]}, "indptr must be a flat array of integers that starts with 0"),
        ({"node_offsets": [1, 2, 3]}, "node_offsets must start at 0 and never decrease"),
        ({"node_offsets": np.array([0, 3, 1], dtype=np.uint64)},
         "node_offsets must start at 0 and never decrease"),
        ({"indptr": [0, 2, 1, 2]}, "indptr must start at 0 and never decrease"),
        ({"node_offsets": [0, 2, 4]}, "indptr has 4 entries, but 4 nodes need 5"),
        ({"indptr": [0, 1, 2, 3]}, "indptr ends at 3, but there are 2 entries"),
        ({"indices": [1.0, 0.0]}, "indices must be a flat array of signed integers"),
        ({"indices": [[1, 0]]}, "indices must be a flat array of signed integers"),
        ({"indices": [2, 0]}, "graph 0 has an edge to a node outside of it"),
        ({"indices": [-1, 0]}, "graph 0 has an edge to a node outside of it"),
        ({"indptr": [0, 2, 4, 4], "indices": [1, 0, 0, 1]},
         "the neighbours of node 0 are not sorted and distinct"),
        ({"indptr": [0, 1, 3, 3], "indices": [1, 0, 0]},
         "the neighbours of node 1 are not sorted and distinct"),
        ({"indptr": [0, 1, 1, 1], "indices": [1]},
         "undirected graphs need every edge from both ends (or pass directed=True)"),
        ({"edge_labels": [1]}, "edge labels: expected 2 rows, found shape (1,)"),
        ({"targets": [1]}, "targets: expected 2 rows, found shape (1,)"),
        ({"edge_labels": [[[1]], [[2]]]}, "edge labels: expected 2 rows, found shape (2, 1, 1)"),
    ],
)  # fmt: skip
def test_arrays_that_make_no_graphs_are_refused(changes, message):
    assert len(Graphs(**GOOD)) == 2
    with refuses(message):
        Graphs(**{**GOOD, **changes})


def test_numbers_of_any_width_become_the_usual_ones():
    graphs = Graphs(
        np.array([0, 200], dtype=np.uint16),
        np.zeros(201, dtype=np.uint8),
        np.array([], dtype=np.int8),
    )
    assert graphs.node_offsets.dtype == graphs.indptr.dtype == np.int64
    assert graphs.indices.dtype == np.int32
    assert Graphs.concatenate([graphs, graphs])[1] == graphs
    assert graphs == Graphs.from_edges([], [200])
    assert len(Graphs([0], [0], [])) == 0


def test_strings_may_come_from_pandas_and_empty_columns_from_empty_lists():
    frame = pd.DataFrame({"target": ["yes", "no"], "number": [1, 2]})
    graphs = Graphs.from_edges([], [1, 1], targets=frame["target"], node_labels=frame["number"])
    assert graphs.targets.dtype.kind == "U"
    assert graphs[frame["target"] == "no"].node_labels.tolist() == [2]
    assert Graphs.from_edges([], [0], node_labels=[], edge_labels=[]).node_labels.shape == (0,)


# -- immutability --------------------------------------------------------------------------------


def test_the_arrays_cannot_be_written_to_nor_replaced():
    graphs = small()
    for derived in (graphs, graphs[1:], graphs[[0, 3]], Graphs.concatenate([graphs, graphs])):
        for key in ("node_offsets", "indptr", "indices", "node_labels", "edge_labels", "targets"):
            with pytest.raises(ValueError, match="read-only"):
                getattr(derived, key)[...] = 0
            with pytest.raises(FrozenInstanceError):
                setattr(derived, key, None)


def test_a_copy_is_as_immutable_as_the_original():
    graphs = small()
    for copied in (copy.copy(graphs), copy.deepcopy(graphs)):
        assert copied == graphs
        assert not copied.indices.flags.writeable
        assert not copied.targets.flags.writeable


def columns_of_one_edge():
    return {
        "node_labels": np.array([1, 2]),
        "node_attributes": np.array([[1.0], [2.0]]),
        "edge_labels": np.array([1, 2]),
        "edge_attributes": np.array([[1.0], [2.0]]),
        "targets": np.array([5]),
    }


def test_what_is_passed_in_stays_as_it_is_and_may_be_changed_afterwards():
    given_ones = {
        "node_offsets": np.array([0, 2]),
        "indptr": np.array([0, 1, 2]),
        "indices": np.array([1, 0], dtype=np.int32),
        **columns_of_one_edge(),
    }
    before = copy.deepcopy(given_ones)
    graphs = Graphs(**given_ones)
    unchanged = Graphs(**before)
    for key, array in given_ones.items():
        assert array.flags.writeable
        assert np.array_equal(array, before[key])
        array[...] = 0
    assert graphs == unchanged


def test_edges_and_columns_passed_to_from_edges_may_be_changed_afterwards():
    for edges, n_labels in (([[0, 1], [1, 0]], 2), ([[0, 1]], 1)):
        edges, columns = np.array(edges, dtype=np.int32), columns_of_one_edge()
        for key in ("edge_labels", "edge_attributes"):
            columns[key] = columns[key][:n_labels]
        sizes = np.array([2])
        for directed in (False, True):
            graphs = Graphs.from_edges(edges, sizes, directed=directed, **columns)
            unchanged = copy.deepcopy(graphs)
            kept = copy.deepcopy((edges, sizes, columns))
            for array in (edges, sizes, *columns.values()):
                array[...] = 0
            assert graphs == unchanged
            edges, sizes, columns = kept


# -- slicing -------------------------------------------------------------------------------------


@given(collections(), st.data())
def test_an_array_of_indices_picks_in_its_order_with_repetitions(pair, data):
    graphs, reference = pair
    size = len(reference)
    chosen = data.draw(st.lists(st.integers(-size, size - 1), max_size=6)) if size else []
    picked = [reference[index] for index in chosen]
    dtype = data.draw(st.sampled_from([np.int8, np.int32, np.int64]))
    for key in (chosen, np.array(chosen, dtype=dtype), (np.array(chosen, dtype=dtype), ...)):
        assert plain(graphs[key]) == picked


def test_every_column_follows_its_graph():
    graphs = Graphs.from_edges(
        [(0, 1), (3, 2), (4, 4)],
        sizes=[2, 2, 1],
        directed=True,
        node_labels=[[0, 5], [1, 5], [2, 5], [3, 5], [4, 5]],
        node_attributes=np.arange(10.0).reshape(5, 2),
        edge_labels=["x", "y", "z"],
        edge_attributes=[[0.5], [1.5], [2.5]],
        targets=np.array([[0.0, 1.0], [2.0, 3.0], [4.0, np.nan]]),
    )
    picked = graphs[[2, 1]]
    assert picked.node_labels.tolist() == [[4, 5], [2, 5], [3, 5]]
    assert picked.node_attributes.tolist() == [[8, 9], [4, 5], [6, 7]]
    assert picked.edge_labels.tolist() == ["z", "y"]
    assert picked.edge_attributes.tolist() == [[2.5], [1.5]]
    assert picked.edges().tolist() == [[0, 0], [2, 1]]
    assert Graphs.concatenate([graphs[:1], graphs[1:]]) == graphs


# -- concatenation -------------------------------------------------------------------------------


@given(collections(), st.data())
def test_the_parts_of_a_collection_concatenate_to_the_whole(pair, data):
    graphs, reference = pair
    cuts = sorted(data.draw(st.lists(st.integers(0, len(graphs)), max_size=3)))
    bounds = [0, *cuts, len(graphs)]
    parts = [graphs[start:stop] for start, stop in pairwise(bounds)]
    whole = Graphs.concatenate(parts)
    assert whole == graphs
    assert plain(whole) == reference


def bare(**columns):
    return Graphs.from_edges([(0, 1)], [2], **columns)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ([bare(), bare(directed=True)], "cannot concatenate directed with undirected graphs"),
        ([bare(), bare(node_labels=[1, 2])], "collection 0 has no node labels"),
        ([bare(node_labels=[1, 2]), bare(node_labels=[[1, 2], [1, 2]])],
         "node labels differ in their number of columns"),
        ([bare(node_labels=[1, 2]), bare(node_labels=["1", "2"])],
         "node labels mix integers and strings"),
        ([bare(targets=[1]), bare(targets=[1.0])], "targets mix integers and real numbers"),
    ],
)  # fmt: skip
def test_collections_that_do_not_fit_together_are_refused(parts, message):
    with refuses(message):
        Graphs.concatenate(parts)


def test_signed_and_unsigned_labels_stay_whole_numbers():
    unsigned = bare(node_labels=np.array([1, 2], dtype=np.uint64))
    joined = Graphs.concatenate([unsigned, bare(node_labels=[-1, 2])])
    assert joined.node_labels.dtype == np.int64
    assert joined.node_labels.tolist() == [1, 2, -1, 2]
    huge = bare(node_labels=np.array([1, 2**63], dtype=np.uint64))
    with pytest.raises(InputError, match="negative integers with some above"):
        Graphs.concatenate([huge, bare(node_labels=[-1, 2])])


# -- equality ------------------------------------------------------------------------------------


def test_equality_means_the_same_graphs_and_columns_in_the_same_order():
    graphs = small()
    assert graphs == small()
    assert graphs == replace(graphs, name="other")
    assert graphs != graphs[::-1]
    assert graphs != graphs[:3]
    assert graphs != graphs.without_loops()
    assert graphs != "small"
    assert Graphs.from_edges([], [2]) != Graphs.from_edges([], [2], directed=True)


# -- what it is ----------------------------------------------------------------------------------


def as_networkx(graph, directed):
    out = nx.DiGraph() if directed else nx.Graph()
    out.add_nodes_from(range(graph.size))
    out.add_edges_from(graph.edges)
    return out


@given(collections())
def test_degrees_and_counts_agree_with_networkx(pair):
    graphs, reference = pair
    theirs = [as_networkx(graph, graphs.directed) for graph in reference]
    assert graphs.degrees().tolist() == [d for graph in theirs for _, d in graph.degree]
    assert graphs.n_edges == sum(graph.number_of_edges() for graph in theirs)
    assert graphs.n_loops == sum(nx.number_of_selfloops(graph) for graph in theirs)
    assert graphs.n_isolated == sum(len(list(nx.isolates(graph))) for graph in theirs)
    assert graphs.n_nodes == sum(len(graph) for graph in theirs)
    if graphs.directed:
        assert graphs.degrees("out").tolist() == [d for g in theirs for _, d in g.out_degree]
        assert graphs.degrees("in").tolist() == [d for g in theirs for _, d in g.in_degree]
    else:
        assert graphs.degrees("in").tolist() == graphs.degrees("out").tolist()


@given(collections())
def test_the_adjacency_matrix_has_the_neighbours_of_either_direction(pair):
    graphs, reference = pair
    starts = graphs.node_offsets.tolist()
    pairs = {
        (start + source, start + target)
        for graph, start in zip(reference, starts[:-1], strict=True)
        for source, target in graph.edges
    }
    reverse = {(target, source) for source, target in pairs}
    for direction, expected in (("out", pairs), ("in", reverse), ("both", pairs | reverse)):
        matrix = graphs.adjacency(direction)
        assert matrix.shape == (graphs.n_nodes, graphs.n_nodes)
        assert matrix.dtype == np.bool_
        assert set(zip(*(ends.tolist() for ends in matrix.nonzero()), strict=True)) == expected
        pointers, nodes = graphs.neighbours(direction)
        assert [
            np.repeat(np.arange(graphs.n_nodes), np.diff(pointers)).tolist(),
            nodes.tolist(),
        ] == [ends.tolist() for ends in matrix.nonzero()]


@given(collections())
def test_edges_come_once_and_build_the_same_graphs_again(pair):
    graphs, _ = pair
    edges = graphs.edges()
    assert edges.shape == (graphs.n_edges, 2)
    if not graphs.directed:
        assert (edges[:, 0] <= edges[:, 1]).all()
    again = Graphs.from_edges(edges, graphs.sizes, directed=graphs.directed)
    assert np.array_equal(again.indices, graphs.indices)
    assert np.array_equal(again.indptr, graphs.indptr)


@given(collections())
def test_without_loops_only_the_loops_are_gone(pair):
    graphs, reference = pair
    for graph in reference:
        graph.edges = {ends: label for ends, label in graph.edges.items() if ends[0] != ends[1]}
    assert plain(graphs.without_loops()) == reference
    assert graphs.without_loops().n_loops == 0


def test_loops_are_those_of_a_subset_after_they_were_counted_in_all():
    graphs = Graphs.from_edge_lists([[(0, 0), (0, 1)], [(0, 1), (1, 1)], [(0, 1)]])
    assert [graphs.n_loops, *(graph.n_loops for graph in graphs)] == [2, 1, 1, 0]
    assert graphs[[2, 0]].degrees().tolist() == [1, 1, 3, 1]


@given(collections())
def test_the_summary_agrees_with_counting_one_by_one(pair):
    graphs, reference = pair
    theirs = [as_networkx(graph, graphs.directed) for graph in reference]
    largest = [max((d for _, d in graph.degree), default=0) for graph in theirs]
    count = max(len(reference), 1)
    labels = {label for graph in reference for label in graph.labels}
    edge_labels = {label for graph in reference for label in graph.edges.values()}
    targets = [graph.target for graph in reference]
    assert graphs.summary() == {
        "graphs": len(reference),
        "nodes": sum(len(graph) for graph in theirs),
        "edges": sum(graph.number_of_edges() for graph in theirs),
        "average_nodes": sum(len(graph) for graph in theirs) / count,
        "average_edges": sum(graph.number_of_edges() for graph in theirs) / count,
        "average_max_degree": sum(largest) / count,
        "self_loops": sum(nx.number_of_selfloops(graph) for graph in theirs),
        "isolated_nodes": sum(len(list(nx.isolates(graph))) for graph in theirs),
        "directed": graphs.directed,
        "node_labels": len(labels),
        "node_attributes": 0,
        "edge_labels": len(edge_labels),
        "edge_attributes": 0,
        "classes": {str(target): targets.count(target) for target in sorted(set(targets))},
    }


def test_an_empty_collection_answers_every_question():
    for empty in (Graphs.from_edge_lists([]), small()[:0], small()[[]], small()[2]):
        assert empty.n_nodes == empty.n_edges == empty.n_loops == empty.n_isolated == 0
        assert empty.degrees().shape == (0,)
        assert empty.edges().shape == (0, 2)
        assert empty.adjacency().shape == (0, 0)
        assert empty.summary()["average_max_degree"] == 0
        assert empty.without_loops() == empty
        assert list(empty) == ([empty] if len(empty) else [])
        assert Graphs.concatenate([empty, empty])[: len(empty)] == empty
        assert "0 nodes" in repr(empty)


@pytest.mark.parametrize(
    ("graphs", "expected"),
    [
        (Graphs.from_edge_lists([]), "Graphs(0 graphs, 0 nodes, 0 edges, undirected)"),
        (
            small(),
            "Graphs(small: 4 graphs, 7 nodes, 4 edges (1 self-loop), undirected; 4 classes, "
            "4 node labels, edge labels)",
        ),
        (
            small()[:0],
            "Graphs(small: 0 graphs, 0 nodes, 0 edges, undirected; 0 classes, 0 node labels, "
            "edge labels)",
        ),
        (
            Graphs.from_edges(
                [(0, 1)],
                [1200],
                directed=True,
                targets=[0.5],
                node_labels=[[1, 1]] * 1200,
                node_attributes=np.zeros((1200, 2)),
                edge_attributes=[[1.0]],
            ),
            "Graphs(1 graph, 1,200 nodes, 1 edge, directed; real targets, 1 node label, "
            "2 node attributes, 1 edge attribute)",
        ),
    ],
)
def test_the_repr_says_what_there_is(graphs, expected):
    assert repr(graphs) == expected
