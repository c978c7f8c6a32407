"""`explore`: everything that its page shows, against literal loops over `explain`."""

import numpy as np
import pytest

import saen
from saen import (
    Graphs,
    InputError,
    PartCountsClassifier,
    SAENClassifier,
    SAENRegressor,
    explain,
    explore,
)
from saen.explanations import exploration


@pytest.fixture(scope="module")
def threads():
    graphs = saen.generate_threads(24, average_nodes=10, seed=4)
    return Graphs.concatenate([graphs, graphs[:3]])  # with duplicates


def model_of(kind, graphs):
    return kind.fit(graphs, graphs.targets)


NETWORKS = SAENClassifier(radii=(0, 1), epochs=3, n_models=2)
MODELS = [NETWORKS, PartCountsClassifier(depth=2, C=1.0)]


@pytest.mark.parametrize("kind", MODELS, ids=["networks", "counts"])
def test_contributions_of_occurrences_add_up_to_the_explanation_of_the_prediction(threads, kind):
    model = model_of(kind, threads)
    found = explore(model, threads, n_parts=10_000)
    starts = found.occurrences.starts
    for index in (0, 5, 24):
        mine = slice(starts[index], starts[index + 1])
        one = explain(model, threads, index, target=found.predictions[index])
        total = found.occurrences.contributions[mine].sum()
        assert total == pytest.approx(one.output - one.baseline, abs=1e-8)
        by_object = np.sort(one.entries[-1])
        np.testing.assert_allclose(
            np.sort(found.occurrences.contributions[mine]), by_object, atol=1e-8
        )
        nodes = found.occurrences.nodes[mine]
        assert nodes.min() >= 0
        assert nodes.max() == threads[index].n_nodes - 1


@pytest.mark.parametrize("kind", MODELS, ids=["networks", "counts"])
def test_unique_parts_say_where_they_occur(threads, kind):
    found = explore(model_of(kind, threads), threads, n_parts=10_000)
    parts, starts = found.parts, found.occurrences.starts
    assert len(parts.what) == found.n_unique_parts
    owners = np.repeat(np.arange(len(threads)), np.diff(starts))
    for number in range(0, len(parts.what), 7):
        here = found.occurrences.parts == number
        assert parts.occurrences[number] == here.sum()
        assert parts.members[number].tolist() == np.unique(owners[here]).tolist()
        assert parts.examples[number] == len(parts.members[number])
        classes = threads.targets[parts.members[number]]
        counted = [(classes == name).sum() for name in found.classes]
        assert parts.per_class[number].tolist() == counted
    assert (np.diff(parts.strength) <= 1e-12).all()


def test_duplicates_with_conflicting_targets_are_found(threads):
    targets = threads.targets.copy()
    targets[-1] = "discussion" if targets[2] == "questions" else "questions"
    graphs = threads.with_targets(targets)
    found = explore(model_of(NETWORKS, graphs), graphs, n_parts=5)
    assert [group.tolist() for group in found.conflicts] == [[2, 26]]
    assert (found.nearest[24] == 0).any()
    assert not (found.nearest == np.arange(len(graphs))[:, None]).any()


def test_nearest_training_examples_of_new_ones(threads):
    model = model_of(NETWORKS, threads)
    new = saen.generate_threads(4, average_nodes=10, seed=9)
    found = explore(model, new, training=threads, n_parts=5)
    assert found.training.tolist() == [True] * len(threads) + [False] * 4
    distances = np.linalg.norm(found.vectors[:, None] - found.vectors[None, :27], axis=2)
    distances[np.arange(27), np.arange(27)] = np.inf
    rows = np.arange(len(distances))[:, None]
    expected = np.sort(distances, axis=1)[:, :5]
    np.testing.assert_allclose(distances[rows, found.nearest], expected, atol=1e-6)
    without = explore(model, new.with_targets(None), training=threads, n_parts=5)
    assert without.targets is None


def test_explore_refuses_what_it_cannot_show(threads):
    model = model_of(NETWORKS, threads)
    with pytest.raises(InputError, match="takes 3 to 50,000 examples, not 2"):
        explore(model, threads[:2])
    without = explore(model, threads.with_targets(None), n_parts=3)
    assert without.targets is None
    assert without.errors is None
    assert without.to_json()["listed_parts"] == 3


def test_explore_of_numbers_has_errors_and_no_confidence(threads):
    numbers = threads.n_nodes * np.linspace(0, 1, len(threads))
    regressor = SAENRegressor(radii=(0, 1), epochs=2, n_models=1).fit(threads, numbers)
    explored = explore(regressor, threads.with_targets(numbers), n_parts=5)
    np.testing.assert_allclose(explored.errors, explored.predictions - numbers)
    assert explored.confidence is None


def test_overlapping_graphs_are_groups_the_largest_first(threads):
    """Threads that hold one large tree; of those alone, none overlap."""
    rng = np.random.default_rng(0)
    tree = [(int(rng.integers(max(i - 12, 0), i)), i) for i in range(1, 150)]
    grown = [[*tree, *((i, 150 + i) for i in range(k))] for k in range(5)]
    more = saen.Graphs.from_edge_lists(grown, targets=["questions"] * 5)
    both = saen.Graphs.concatenate([threads.with_ids(None), more]).with_ids(None)
    model = model_of(NETWORKS, threads)
    found = explore(model, both, n_parts=5).overlap
    assert [group.tolist() for group in found] == [[*range(27, 32)]]
    assert explore(model, threads, n_parts=5).overlap == ()


@pytest.fixture
def small_cells(monkeypatch):
    monkeypatch.setattr(exploration, "MAX_EXACT", 50)
    monkeypatch.setattr(exploration, "CELL_SIZE", 10)
    monkeypatch.setattr(exploration, "N_CELLS", 8)


def distances(vectors, nearest):
    return np.linalg.norm(vectors[:, None] - vectors[nearest], axis=2)


def exact_neighbours(vectors, candidates):
    between = np.linalg.norm(vectors[:, None] - vectors[candidates], axis=2)
    between[candidates, np.arange(len(candidates))] = np.inf
    return candidates[np.argsort(between, axis=1)[:, :5]]


@pytest.mark.parametrize("share", [1.0, 0.5])
def test_neighbours_of_many_examples_are_looked_for_nearby(small_cells, monkeypatch, share):
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(20, 6))[rng.integers(20, size=600)] * 3 + rng.normal(size=(600, 6))
    among = np.arange(600) < 600 * share
    candidates = np.flatnonzero(among)
    nearest = exploration._nearest(vectors, None if share == 1 else among)
    exact = exact_neighbours(vectors, candidates)
    assert among[nearest].all()
    assert (nearest != np.arange(600)[:, None]).all()
    assert all(len({*row}) == 5 for row in nearest.tolist())
    assert distances(vectors, nearest).mean() < 1.05 * distances(vectors, exact).mean()
    monkeypatch.setattr(exploration, "N_CELLS", 600)
    assert (np.sort(exploration._nearest(vectors, among)) == np.sort(exact)).all()


def test_neighbours_of_equal_examples_are_compared_with_a_few_of_them(small_cells):
    vectors = np.zeros((400, 3))
    vectors[:7] = np.arange(21).reshape(7, 3) + 1
    blocks = [*exploration._blocks(vectors, np.arange(400))]
    assert sorted(np.concatenate([queries for queries, _ in blocks])) == [*range(400)]
    assert max(len(near) for _, near in blocks) <= 8 * 20
    nearest = exploration._nearest(vectors, None)
    assert (nearest != np.arange(400)[:, None]).all()
    assert (distances(vectors, nearest)[7:] == 0).all()
