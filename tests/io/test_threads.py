from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csgraph
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import cross_val_score

from saen._util.arrays import segment_ids, segment_reduce
from saen.data.graphs import Graphs
from saen.errors import InputError
from saen.io.sources.threads import _follow, _kinds_of_answers, _Users, generate_threads
from tests.io.refusals import refusal


def test_threads_the_same_arguments_give_the_same_graphs_and_another_seed_others():
    first = generate_threads(50, seed=3)
    assert first == generate_threads(50, seed=3)
    assert first != generate_threads(50, seed=4)


def test_threads_the_global_random_state_is_neither_used_nor_changed():
    np.random.seed(1)  # noqa: NPY002
    before = np.random.get_state()[1].tolist()  # noqa: NPY002
    first = generate_threads(20)
    assert np.random.get_state()[1].tolist() == before  # noqa: NPY002
    np.random.seed(2)  # noqa: NPY002
    assert generate_threads(20) == first


@pytest.mark.parametrize(("n_graphs", "n_classes"), [(300, 2), (103, 5), (40, 11), (41, 20)])
def test_threads_classes_are_balanced_up_to_one_and_mixed_in_order(n_graphs, n_classes):
    threads = generate_threads(n_graphs, n_classes=n_classes)
    counts = threads.summary()["classes"].values()
    assert len(threads) == sum(counts) == n_graphs
    assert len(counts) == n_classes
    assert max(counts) - min(counts) <= 1
    assert (np.sort(threads.targets) != threads.targets).any()


def test_threads_two_classes_have_names_and_more_are_numbered():
    assert set(generate_threads(4).targets) == {"discussion", "questions"}
    assert set(generate_threads(6, n_classes=3).targets) == {
        "community 0",
        "community 1",
        "community 2",
    }


@pytest.mark.parametrize("average", [4, 25.5, 300])
def test_threads_sizes_are_spread_widely_around_the_average(average):
    sizes = generate_threads(400, average_nodes=average).sizes
    assert sizes.mean() == pytest.approx(average, rel=0.02)
    assert sizes.min() >= 3
    if average > 20:
        assert sizes.max() > 4 * np.median(sizes)


def test_threads_graphs_are_unlabelled_undirected_simple_and_nearly_trees():
    threads = generate_threads(500, average_nodes=100)
    n_components = csgraph.connected_components(threads.adjacency())[0]
    cycles = threads.n_edges - threads.n_nodes + n_components
    assert not threads.directed
    assert threads.n_loops == 0
    assert threads.node_labels is None
    assert 0.05 * threads.n_nodes < cycles < 0.25 * threads.n_nodes
    assert len(threads) < n_components < 3 * len(threads)
    assert 0 < threads.n_isolated < 0.1 * len(threads)
    checked = Graphs(threads.node_offsets, threads.indptr, threads.indices)
    assert checked == threads.with_targets(None)


def test_threads_degrees_have_a_heavy_tail():
    threads = generate_threads(500, average_nodes=200)
    degrees = threads.degrees()
    largest = segment_reduce(np.maximum, degrees, threads.node_offsets)
    assert np.median(degrees) <= 2
    assert (largest / threads.sizes).mean() > 0.3
    assert 0.4 < (degrees == 1).mean() < 0.7


def test_threads_chains_of_copies_end_at_the_first_answer_that_is_none():
    # 1 answers 0; 2 copies 1; 3 copies 2; 4 copies 3; 5 answers 4.
    answered = np.array([0, 0, 1, 2, 3, 4])
    copies = np.array([False, False, True, True, True, False])
    assert _follow(answered, copies).tolist() == [0, 0, 0, 0, 0, 4]


def test_threads_habits_last_within_a_graph_and_never_reach_into_the_next():
    users = _Users.drawn(np.random.default_rng(0), 50, 20)
    habits = np.zeros((50, 7))
    habits[np.arange(50), np.arange(50) % 5] = 1  # graph g knows one kind of answer
    habits[:, 5:] = 0.9  # and everybody does as the one before
    kinds = _kinds_of_answers(np.random.default_rng(0), users, habits)
    assert kinds.tolist() == (users.graph % 5).tolist()


def test_threads_no_graphs_at_all_is_an_empty_collection():
    empty = generate_threads(0)
    assert len(empty) == empty.n_nodes == 0
    assert empty.targets.shape == (0,)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_graphs": -1}, "n_graphs must be an integer ≥ 0, not -1"),
        ({"n_graphs": 2.5}, "n_graphs must be an integer ≥ 0, not 2.5"),
        ({"n_classes": 1}, "n_classes must be an integer from 2 to 20, not 1"),
        ({"n_classes": 21}, "n_classes must be an integer from 2 to 20, not 21"),
        ({"average_nodes": 3}, "average_nodes must be a finite number ≥ 4, not 3"),
        ({"average_nodes": float("nan")}, "average_nodes must be a finite number ≥ 4, not nan"),
        ({"average_nodes": "60"}, "average_nodes must be a finite number ≥ 4, not '60'"),
        ({"seed": -1}, "seed must be an integer ≥ 0, not -1"),
        ({"seed": None}, "seed must be an integer ≥ 0, not None"),
    ],
)
def test_threads_arguments_that_are_invalid_are_named(arguments, message):
    assert refusal(InputError, generate_threads, **arguments) == message


def simple_statistics(graphs):
    """Nodes, edges, largest degree and leaves of each graph."""
    degrees, graph = graphs.degrees(), segment_ids(graphs.node_offsets)
    edges = np.bincount(graph, weights=degrees) / 2
    largest = segment_reduce(np.maximum, degrees, graphs.node_offsets)
    leaves = np.bincount(graph[degrees == 1], minlength=len(graphs))
    columns = [graphs.sizes, edges, largest, leaves]
    return np.column_stack(columns + [column / graphs.sizes for column in columns[1:]])


def degrees_of_neighbours(graphs):
    """How often each pair of (logarithmic) degrees is joined by an edge in each graph."""
    bins = np.minimum(np.log2(1 + graphs.degrees()) * 1.5, 11).astype(int)
    rows = segment_ids(graphs.indptr)
    graph = segment_ids(graphs.node_offsets)[rows]
    pairs = (graph * 12 + bins[rows]) * 12 + bins[graphs.indices]
    counts = np.bincount(pairs, minlength=len(graphs) * 144).reshape(len(graphs), 144)
    return counts / graphs.sizes[:, None]


def test_threads_the_degrees_of_neighbours_tell_the_classes_better_than_simple_statistics():
    threads = generate_threads(300, average_nodes=200)
    forest = RandomForestClassifier(40, min_samples_leaf=2, random_state=0)
    simple = cross_val_score(forest, simple_statistics(threads), threads.targets, cv=3).mean()
    richer = cross_val_score(forest, degrees_of_neighbours(threads), threads.targets, cv=3).mean()
    sizes = cross_val_score(forest, threads.sizes[:, None], threads.targets, cv=3).mean()
    assert 0.35 < sizes < 0.65
    assert 0.7 < simple < 0.9
    assert simple + 0.04 < richer < 1
