"""The candidates that blends try by default."""

from itertools import product

import numpy as np
import pytest

import saen
from saen.learning import candidates
from saen.learning.candidates import BUDGETS, DENSE, FEW, RING_DEGREE, RULES, Facts
from saen.learning.decomposing import Decompositions
from saen.learning.models.counts import CountsLearner
from saen.learning.models.networks import NetworkLearner
from saen.learning.parameters import validate

BOND = [(0, 1), (1, 2)]
RING = [(i, (i + 1) % 6) for i in range(6)]
CLIQUE = [(i, j) for i in range(6) for j in range(i)]
HUB = [(0, i) for i in range(1, RING_DEGREE + 2)]
MAX_NORMAL = 8
"""Candidates that the table promises at most, unless more are asked for."""


def listed(data, train=None, **options):
    """The learner of every candidate, by its name."""
    prepared = Decompositions(data)
    train = np.arange(len(data)) if train is None else train
    found = candidates.default_candidates(prepared, train, **options)
    learners = {each.title: each.learner for each in found}
    assert len(learners) == len(found)
    return learners


def graphs(edges=BOND, **columns):
    return saen.Graphs.from_edge_lists([edges, edges], **columns)


def molecules(**columns):
    return graphs(RING, node_labels=list("CCCCCN") * 2, **columns)


def labels_of(data, **options):
    return [learner.arguments.node_labels for learner in listed(data, **options).values()]


def kinds_of_facts():
    """Facts of all kinds of data, with few and with many examples."""
    sizes = [(10, 10), (10, 10 * DENSE)]  # sparse and dense
    flags = product([False, True], repeat=3)
    labels = [(False, False, False), (True, False, False), (True, True, False), (True, True, True)]
    for (nodes, links), n, degree, own, (attributes, edges, numbers) in product(
        sizes, (10, FEW), (3, RING_DEGREE + 1), labels, flags
    ):
        yield Facts(n, nodes, links, degree, *own, attributes, edges, numbers)


def test_candidates_grow_with_the_budget():
    threads = saen.generate_threads(20, seed=1)
    lists = [listed(threads, budget=budget) for budget in BUDGETS]
    assert len(lists[0]) < len(lists[1]) < len(lists[2])
    assert set(lists[0]) <= set(lists[1]) <= set(lists[2])
    assert all(isinstance(each, CountsLearner) for each in lists[0].values())


def test_candidates_are_few_and_differ_from_each_other():
    assert len({rule.name for rule in RULES}) == len(RULES)
    for facts in kinds_of_facts():
        found = [rule for rule in RULES if rule.when(facts)]
        learners = [rule.learner("cpu", **rule.arguments(facts)) for rule in found]
        for learner in learners:
            validate(learner.arguments)
        keys = [repr(learner.key()) for learner in learners]
        assert len({*keys}) == len(keys), facts
        usual = [rule for rule in found if rule.budget != "thorough"]
        assert 1 < len(usual) <= MAX_NORMAL, facts


@pytest.mark.parametrize("numbers", [False, True])
@pytest.mark.parametrize("data", [graphs(), molecules(), graphs(CLIQUE)], ids=["path", "ring", "k"])
def test_candidates_count_parts_with_and_without_the_size_of_a_graph(numbers, data):
    own = listed(data, numbers=numbers)
    norms = own["part counts"].arguments.norm, own["part counts (sizes)"].arguments.norm
    assert norms == ((None, "l2") if numbers else ("l2", None))


def test_candidates_look_at_training_graphs_alone():
    both = saen.Graphs.from_edge_lists([CLIQUE] * 3 + [BOND] * 3)
    first, second = (listed(both, np.arange(3) + start) for start in (0, 3))
    assert "part counts (triangles)" in first
    assert "part counts (hubs)" in second
    assert first.keys() == listed(both[:3]).keys()
    assert second.keys() == listed(both[3:]).keys()
    part = Decompositions(both)[3:]
    found = candidates.default_candidates(part, np.arange(3))
    assert [each.title for each in found] == [*second]


def test_candidates_use_edge_labels_and_directions_as_roles():
    own = {"node_labels": list("CCCCOC")}
    for data, roles in (
        (graphs(**own), False),
        (graphs(**own, edge_labels=["single", "double"] * 2), True),
        (graphs(**own, directed=True), True),
    ):
        prepared, train = Decompositions(data), np.arange(2)
        edges = {
            prepared.decomposed(each.learner.spec, train).decomposition.edges
            for each in candidates.default_candidates(prepared, train, budget="thorough")
            if "pairs" not in each.title  # these read only how far nodes are apart
        }
        assert edges == {"roles" if roles else "none"}


def test_candidates_try_edge_weights_in_bins():
    own = {"node_labels": list("CCCCOC")}
    data = graphs(**own, edge_attributes=[[0.1], [0.2], [0.3], [0.4]])
    assert "part counts (edge bins)" in listed(data, budget="quick")
    weighted = {"part counts (edge bins)", "edge networks (attributes)"}
    assert weighted <= {*listed(data)}
    assert not weighted & {*listed(graphs(**own), budget="thorough")}


def test_candidates_try_attributes_both_with_and_without():
    data = graphs(node_labels=list("CCCCOC"), node_attributes=np.ones((6, 2)))
    for budget in BUDGETS:
        used = ["attribute" in each for each in labels_of(data, budget=budget)]
        assert any(used)
        assert not all(used)


def test_candidates_learn_attributes_over_neighbourhoods_where_graphs_are_few(monkeypatch):
    data = graphs(node_labels=list("CCCCOC"), node_attributes=np.ones((6, 2)))
    deep = listed(data)["neighbourhood networks (attributes)"]
    assert deep.arguments.node_labels == "node,attributes"
    made = Decompositions(data).decomposed(deep.spec, np.arange(2)).decomposition
    assert made.name == "neighbourhoods"
    monkeypatch.setattr(candidates, "FEW", 2)
    assert "neighbourhood networks (attributes)" not in listed(data)
    assert "ego networks (attributes)" in listed(data)


def test_candidates_train_networks_only_where_they_pay_unless_there_is_time():
    def networks(data, budget):
        own = listed(data, budget=budget)
        return {name for name, each in own.items() if isinstance(each, NetworkLearner)}

    attributes = {"node_attributes": np.ones((6, 2))}
    for data, pays in (
        (graphs(), True),
        (graphs(**attributes), True),
        (graphs(node_labels=list("CCCCOC")), False),
        (graphs(node_labels=list("CCCCOC"), **attributes), True),
        (molecules(), False),
        (graphs(CLIQUE), True),
    ):
        assert bool(networks(data, "normal")) == pays
        assert networks(data, "thorough")


def test_candidates_have_no_networks_on_too_many_nodes_and_edges(monkeypatch):
    data = graphs(edge_attributes=[[0.1], [0.2], [0.3], [0.4]])
    kinds = {type(each) for each in listed(data, budget="thorough").values()}
    assert kinds == {CountsLearner, NetworkLearner}
    monkeypatch.setattr(candidates, "MAX_LINKS", data.n_nodes + len(data.indices) - 1)
    kinds = {type(each) for each in listed(data, budget="thorough").values()}
    assert kinds == {CountsLearner}


@pytest.mark.parametrize("numbers", [False, True])
def test_candidates_of_other_data_use_their_decomposition(numbers):
    nested = saen.NestedData([{"word": ["a"]}, {"word": ["b", "c"]}])
    own = listed(nested, decomposition="nested", numbers=numbers)
    assert {each.spec.takes for each in own.values()} == {"nested"}
    assert [type(each) for each in own.values()] == [CountsLearner, NetworkLearner]
    assert own["part counts"].arguments.norm == (None if numbers else "l2")


def test_candidates_have_the_decomposition_that_is_asked_for():
    own = listed(molecules(), decomposition="edges", budget="thorough")
    assert {each.spec.decomposition for each in own.values()} == {"edges"}


def test_candidates_train_on_the_device_that_is_asked_for():
    own = listed(saen.generate_threads(20, seed=1), device="cpu", budget="thorough")
    networks = [each for each in own.values() if isinstance(each, NetworkLearner)]
    assert {each.arguments.device for each in networks} == {"cpu"}


@pytest.mark.parametrize("numbers", [False, True])
def test_candidates_count_pairs_in_few_graphs_like_molecules(numbers, monkeypatch):
    pairs = ["part counts (pairs)", "part counts (pairs, sizes)"]
    own = listed(molecules(), numbers=numbers)
    assert {own[name].arguments.norm for name in pairs} == {"l2", None}
    assert not {*pairs} & {*listed(graphs(), numbers=numbers, budget="thorough")}
    monkeypatch.setattr(candidates, "FEW", 2)
    assert not {*pairs} & {*listed(molecules(), numbers=numbers, budget="thorough")}


def test_candidates_use_triangles_in_dense_graphs_and_hubs_in_sparse_ones():
    for edges, used in ((CLIQUE, "triangles"), (BOND, "hub")):
        labels = labels_of(graphs(edges))
        assert [word for word in ("triangles", "hub") if any(word in each for each in labels)] == [
            used
        ]


def test_candidates_look_for_rings_in_labelled_graphs_like_molecules_only():
    for data, used in (
        (molecules(), True),
        (graphs(RING), False),
        (graphs(CLIQUE, node_labels=list("CCCCCN") * 2), False),
        (graphs(HUB, node_labels=["C"] * 2 * (len(HUB) + 1)), False),
    ):
        assert any("rings" in each for each in labels_of(data, budget="thorough")) == used


def test_candidates_grow_forests_on_few_labelled_graphs_that_are_no_molecules(monkeypatch):
    data = graphs(HUB, node_labels=["C"] * 2 * (len(HUB) + 1))
    assert listed(data)["part counts (forest)"].arguments.model == "forest"
    assert "part counts (forest)" not in listed(data, budget="quick")
    for other in (graphs(), molecules()):
        assert "part counts (forest)" not in listed(other, budget="thorough")
    monkeypatch.setattr(candidates, "MAX_FOREST_EXAMPLES", 1)
    assert "part counts (forest)" not in listed(data, budget="thorough")
