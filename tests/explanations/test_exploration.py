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
from saen.explanations.explanation import contrasts, top_contributions


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
    found = explore(model, threads, k=10_000)
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
    found = explore(model_of(kind, threads), threads, k=10_000)
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


def contributions_of_parts(compressed, found):
    """What every unique part contributes to the first output of every example, entry by entry."""
    relation = compressed.hierarchy.relations[-1]
    out = np.zeros((len(compressed), relation.n_parts))
    for index, row in enumerate(compressed.top.tolist()):
        for entry in range(relation.indptr[row], relation.indptr[row + 1]):
            out[index, relation.parts[entry]] += found.entries[entry, 0]
    return out


def test_contrast_is_the_difference_of_means_between_predicted_classes(threads):
    model = model_of(NETWORKS, threads)
    compressed = model.compress(threads)
    found = top_contributions(model, compressed)
    literal = contributions_of_parts(compressed, found)
    second = model.predict(threads) == model.classes_[1]
    expected = literal[second].mean(axis=0) - literal[~second].mean(axis=0)
    np.testing.assert_allclose(contrasts(compressed, found)[:, 1], expected, atol=1e-10)


def test_contrasts_of_several_classes_and_of_numbers():
    graphs = saen.generate_threads(30, n_classes=3, average_nodes=8, seed=2)
    model = SAENClassifier(radii=(0, 1), epochs=2, n_models=1).fit(graphs, graphs.targets)
    compressed = model.compress(graphs)
    assert contrasts(compressed, top_contributions(model, compressed)).shape[1] == 3
    numbers = graphs.n_nodes * np.linspace(0, 1, len(graphs))
    regressor = SAENRegressor(radii=(0, 1), epochs=2, n_models=1).fit(graphs, numbers)
    compressed = regressor.compress(graphs)
    found = top_contributions(regressor, compressed)
    literal = contributions_of_parts(compressed, found)
    np.testing.assert_allclose(contrasts(compressed, found)[:, 0], literal.std(axis=0), atol=1e-9)
    explored = explore(regressor, graphs.with_targets(numbers), k=5)
    np.testing.assert_allclose(explored.errors, explored.predictions - numbers)
    assert explored.confidence is None


def test_a_part_that_all_graphs_have_alike_tells_nothing():
    edges = [[(0, 1)], [(0, 1), (1, 2)]] * 6
    graphs = Graphs.from_edge_lists(edges)
    y = np.array(["pair", "path"] * 6)
    model = SAENClassifier(decomposition="nodes", node_labels="degree", epochs=30).fit(graphs, y)
    compressed = model.compress(graphs)
    contrast = contrasts(compressed, top_contributions(model, compressed))
    # Both have two nodes of degree 1; only paths have one of degree 2.
    vocabulary = compressed.hierarchy.attributes.vocabulary
    by_degree = {str(vocabulary[i]): contrast[i].max() for i in range(len(contrast))}
    assert by_degree["2"] > by_degree["1"]


def test_duplicates_with_conflicting_targets_are_found(threads):
    targets = threads.targets.copy()
    targets[-1] = "discussion" if targets[2] == "questions" else "questions"
    graphs = threads.with_targets(targets)
    found = explore(model_of(NETWORKS, graphs), graphs, k=5)
    assert [group.tolist() for group in found.conflicts] == [[2, 26]]
    assert (found.nearest[24] == 0).any()
    assert not (found.nearest == np.arange(len(graphs))[:, None]).any()


def test_explore_refuses_what_it_cannot_show(threads):
    model = model_of(NETWORKS, threads)
    with pytest.raises(InputError, match="takes 3 to 50,000 examples, not 2"):
        explore(model, threads[:2])
    without = explore(model, threads.with_targets(None), k=3)
    assert without.targets is None
    assert without.errors is None
    assert without.to_json()["listed_parts"] == 3
