"""Explanations of all predictions: sums over examples, and parts that tell the classes apart."""

from __future__ import annotations

import json

import numpy as np
import pytest

import saen
from saen import Graphs, SAENClassifier, SAENRegressor, compress, explain, explain_dataset
from saen.explanations.dataset import contrasts, top_contributions


@pytest.fixture(scope="module")
def threads() -> Graphs:
    return saen.generate_threads(60, average_nodes=15, seed=1)


@pytest.fixture(scope="module")
def model(threads) -> SAENClassifier:
    return SAENClassifier(radii=(0, 1), epochs=3, n_models=2).fit(threads, threads.targets)


def test_explain_dataset_is_the_sum_over_examples(threads, model):
    some = Graphs.concatenate([threads[:8], threads[2:5]])  # with duplicates
    collected = explain_dataset(model, some, n_parts=6)
    compressed = compress(model.decomposition_.decompose(some))
    totals = np.zeros(compressed.hierarchy.sizes[1])
    occurrences, holders = np.zeros_like(totals), np.zeros_like(totals)
    start = 0
    for index in range(len(some)):
        explanation = explain(model, some, index, target="questions", n_parts=1)
        unique = compressed.unique_of(1)[start : start + len(explanation.contributions[1])]
        start += len(unique)
        np.add.at(totals, unique, explanation.contributions[1])
        np.add.at(occurrences, unique, 1)
        holders[np.unique(unique)] += 1
    assert collected.targets == ("discussion", "questions")
    assert collected.occurrences.tolist() == occurrences.tolist()
    assert collected.examples.tolist() == holders.tolist()
    np.testing.assert_allclose(collected.means[:, 1] * occurrences, totals, atol=1e-8)
    np.testing.assert_allclose(collected.means[:, 0], -collected.means[:, 1])
    assert len(collected.parts) == 6
    for each in collected.parts:
        assert each.same[0] == each.number
        assert each.total == pytest.approx(totals[list(each.same)].sum())
        assert each.towards == collected.targets[int(each.mean > 0)]
        offset = int(some.node_offsets[each.index]) * 2
        assert compressed.unique_of(1)[offset + each.part.number] == each.number


def test_explain_dataset_of_many_classes_names_the_one_that_a_part_raises_most():
    graphs = saen.generate_threads(45, n_classes=3, average_nodes=12, seed=2)
    model = SAENClassifier(radii=(0, 1), epochs=3, n_models=1).fit(graphs, graphs.targets)
    graphs = graphs[:6]
    collected = explain_dataset(model, graphs, n_parts=4)
    assert collected.targets == ("community 0", "community 1", "community 2")
    totals = collected.means * collected.occurrences[:, None]
    sums = np.zeros(3)
    for index in range(len(graphs)):
        each = [explain(model, graphs, index, target=name, n_parts=1) for name in model.classes_]
        sums += [explanation.output - explanation.baseline for explanation in each]
    np.testing.assert_allclose(totals.sum(axis=0), sums, rtol=1e-6)
    for part in collected.parts:
        means = totals[list(part.same)].sum(axis=0)
        assert collected.targets.index(part.towards) == means.argmax()
    assert json.loads(json.dumps(collected.to_json()))["parts"][0]["number"] == (
        collected.parts[0].number
    )


def contributions_of_parts(compressed, found):
    """What every unique part contributes to the first output of every example, entry by entry."""
    relation = compressed.hierarchy.relations[-1]
    out = np.zeros((len(compressed), relation.n_parts))
    for index, row in enumerate(compressed.top.tolist()):
        for entry in range(relation.indptr[row], relation.indptr[row + 1]):
            out[index, relation.parts[entry]] += found.entries[entry, 0]
    return out


def test_contrast_is_the_difference_of_means_between_predicted_classes(threads, model):
    compressed = model.compress(threads)
    found = top_contributions(model.fitted_, compressed)
    literal = contributions_of_parts(compressed, found)
    second = model.predict(threads) == model.classes_[1]
    expected = literal[second].mean(axis=0) - literal[~second].mean(axis=0)
    np.testing.assert_allclose(contrasts(compressed, found)[:, 1], expected, atol=1e-10)


def test_contrasts_of_several_classes_and_of_numbers():
    graphs = saen.generate_threads(30, n_classes=3, average_nodes=8, seed=2)
    model = SAENClassifier(radii=(0, 1), epochs=2, n_models=1).fit(graphs, graphs.targets)
    compressed = model.compress(graphs)
    assert contrasts(compressed, top_contributions(model.fitted_, compressed)).shape[1] == 3
    numbers = graphs.n_nodes * np.linspace(0, 1, len(graphs))
    regressor = SAENRegressor(radii=(0, 1), epochs=2, n_models=1).fit(graphs, numbers)
    compressed = regressor.compress(graphs)
    found = top_contributions(regressor.fitted_, compressed)
    literal = contributions_of_parts(compressed, found)
    np.testing.assert_allclose(contrasts(compressed, found)[:, 0], literal.std(axis=0), atol=1e-9)


def test_a_part_that_all_graphs_have_alike_tells_nothing():
    edges = [[(0, 1)], [(0, 1), (1, 2)]] * 6
    graphs = Graphs.from_edge_lists(edges)
    y = np.array(["pair", "path"] * 6)
    model = SAENClassifier(decomposition="nodes", node_labels="degree", epochs=30).fit(graphs, y)
    compressed = model.compress(graphs)
    contrast = contrasts(compressed, top_contributions(model.fitted_, compressed))
    # Both have two nodes of degree 1; only paths have one of degree 2.
    vocabulary = compressed.hierarchy.attributes.vocabulary
    by_degree = {str(vocabulary[i]): contrast[i].max() for i in range(len(contrast))}
    assert by_degree["2"] > by_degree["1"]
