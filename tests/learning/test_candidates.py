"""The candidates that blends try by default."""

import numpy as np
import pytest

import saen
from saen.learning import candidates
from saen.learning.candidates import BUDGETS, default_candidates, too_many

BOND = [(0, 1), (1, 2)]


def names(data, **options):
    return [each.name["candidate"] for each in default_candidates(data, **options)]


def graphs(**columns):
    return saen.Graphs.from_edge_lists([BOND, BOND], **columns)


def test_candidates_grow_with_the_budget():
    threads = saen.generate_threads(20, seed=1)
    lists = [names(threads, budget=budget) for budget in BUDGETS]
    assert len(lists[0]) < len(lists[1]) <= len(lists[2])
    assert set(lists[0]) <= set(lists[1]) <= set(lists[2])


def test_candidates_have_a_forest_where_examples_are_few(monkeypatch):
    threads = saen.generate_threads(20, seed=1)
    assert "part counts, forest" in names(threads, budget="thorough")
    monkeypatch.setattr(candidates, "MAX_FOREST_EXAMPLES", 19)
    assert "part counts, forest" not in names(threads, budget="thorough")


@pytest.mark.parametrize(
    ("data", "budget"), [(saen.generate_threads(20, seed=1), "normal"), (None, "thorough")]
)
def test_candidates_have_a_quarter_of_the_epochs_too(monkeypatch, data, budget):
    """By default where graphs are few, otherwise with a thorough budget; two lengths are as one."""
    listed = default_candidates(data, budget=budget)
    networks = {
        each.name["candidate"]: each
        for each in listed
        if isinstance(each.estimator, saen.SAENClassifier)
    }
    assert all(each.prior == 0.5 for each in networks.values())
    counts = [each for each in listed if each.name["candidate"] not in networks]
    assert all(each.prior == 1 for each in counts)
    full = [name for name in networks if "epochs" not in name]
    assert len(networks) == 2 * len(full) > 0
    for name in full:
        epochs = networks[name].estimator.epochs // 4
        short = networks[f"{name}, {epochs} epochs"]
        assert (short.estimator.epochs, short.trial.epochs, short.trial.n_models) == (
            epochs,
            epochs,
            1,
        )
        own = networks[name].estimator.get_params()
        assert short.estimator.get_params() == {**own, "epochs": epochs}
    monkeypatch.setattr(candidates, "LARGE", 20)
    assert not any("epochs" in name for name in names(data))
    assert all(each.prior == 1 for each in default_candidates(data))


def test_candidates_have_networks_over_single_nodes_on_few_labelled_graphs(monkeypatch):
    data = graphs(node_labels=list("CCCCOC"))
    assert "node networks" in names(data)
    assert "node networks" not in names(graphs())
    monkeypatch.setattr(candidates, "LARGE", 2)
    assert "node networks" not in names(data)


def test_candidates_use_edge_labels_and_directions_as_roles():
    plain = graphs(node_labels=list("CCCCOC"))
    bonds = graphs(node_labels=list("CCCCOC"), edge_labels=["single", "double"] * 2)
    arrows = graphs(node_labels=list("CCCCOC"), directed=True)
    for data, roles in ((plain, False), (bonds, True), (arrows, True)):
        edges = {
            each.estimator.prepare(data).decomposition.edges
            for each in default_candidates(data)
            # these read no edges at all, or only how far nodes are apart
            if not each.title.startswith(("node networks", "part counts, pairs"))
        }
        assert edges == {"roles" if roles else "none"}


def test_candidates_try_edge_weights_in_bins():
    data = graphs(node_labels=list("CCCCOC"), edge_attributes=[[0.1], [0.2], [0.3], [0.4]])
    weighted = {"part counts, edge bins", "edge networks, attributes"}
    assert weighted <= set(names(data, budget="quick"))
    assert not weighted & set(names(graphs(node_labels=list("CCCCOC"))))


def test_candidates_try_attributes_both_with_and_without():
    data = graphs(node_labels=list("CCCCOC"), node_attributes=np.ones((6, 2)))
    used = ["attributes" in each.estimator.node_labels for each in default_candidates(data)]
    assert any(used)
    assert not all(used)


def test_candidates_learn_attributes_for_longer_and_over_neighbourhoods(monkeypatch):
    data = graphs(node_labels=list("CCCCOC"), node_attributes=np.ones((6, 2)))
    listed = {each.title: each.estimator for each in default_candidates(data)}
    assert listed["ego networks, attributes"].epochs > listed["ego networks"].epochs
    deep = listed["neighbourhood networks, attributes"]
    assert deep.node_labels == "node,attributes"
    assert deep.prepare(data).decomposition.name == "neighbourhoods"
    monkeypatch.setattr(candidates, "LARGE", 2)
    assert "neighbourhood networks, attributes" not in names(data)
    assert "neighbourhood networks, attributes" in names(data, budget="thorough")


@pytest.mark.parametrize("numbers", [False, True])
def test_candidates_of_other_data_use_their_decomposition(numbers):
    candidates = default_candidates(None, "dependency_paths", numbers=numbers)
    assert {each.estimator.spec.takes for each in candidates} == {"documents"}
    kinds = {type(each.estimator).__name__ for each in candidates}
    ending = "Regressor" if numbers else "Classifier"
    assert kinds == {f"PartCounts{ending}", f"SAEN{ending}"}


def test_candidates_are_tried_with_one_network_and_fitted_with_several():
    networks = [
        each
        for each in default_candidates(saen.generate_threads(20, seed=1))
        if isinstance(each.estimator, saen.SAENClassifier)
    ]
    assert networks
    assert all(each.trial.n_models == 1 < each.estimator.n_models for each in networks)


@pytest.mark.parametrize("columns", [{}, {"node_labels": list("CCCCOC")}])
@pytest.mark.parametrize("numbers", [False, True])
def test_candidates_differ_from_each_other(numbers, columns):
    listed = default_candidates(graphs(**columns), numbers=numbers, budget="thorough")
    settings = [repr((type(e.estimator), e.estimator.get_params())) for e in listed]
    assert len({*settings}) == len(settings)
    norms = {each.name["candidate"]: getattr(each.estimator, "norm", "") for each in listed}
    own = ("part counts, shares", "l2") if numbers else ("part counts, sizes", None)
    assert norms["part counts"] == (None if numbers else "l2")
    assert own in norms.items()


@pytest.mark.parametrize("numbers", [False, True])
def test_candidates_count_pairs_in_few_graphs_like_molecules(numbers, monkeypatch):
    data = graphs(node_labels=list("CCCCOC"))
    other = "part counts, pairs, shares" if numbers else "part counts, pairs, sizes"
    listed = {each.title: each for each in default_candidates(data, numbers=numbers)}
    norms = [listed[title].estimator.norm for title in ("part counts, pairs", other)]
    assert {*norms} == {"l2", None}
    assert "part counts, pairs" not in names(graphs(), numbers=numbers)
    monkeypatch.setattr(candidates, "LARGE", 2)
    assert "part counts, pairs" not in names(data, numbers=numbers)


def test_candidates_use_triangles_in_dense_graphs_only():
    clique = [(i, j) for i in range(6) for j in range(i)]
    path = [(i, i + 1) for i in range(6)]
    for edges, used in ((clique, True), (path, False)):
        data = saen.Graphs.from_edge_lists([edges, edges])
        labels = [each.estimator.node_labels for each in default_candidates(data)]
        assert any("triangles" in each for each in labels) == used


def labels_of(data, **options):
    return [each.estimator.node_labels for each in default_candidates(data, **options)]


def test_candidates_look_for_rings_in_labelled_graphs_like_molecules_only(monkeypatch):
    ring = [(i, (i + 1) % 6) for i in range(6)]
    clique = [(i, j) for i in range(6) for j in range(i)]
    for edges, columns, used in (
        (ring, {"node_labels": list("CCCCCN") * 2}, True),
        (ring, {}, False),
        (clique, {"node_labels": list("CCCCCN") * 2}, False),
    ):
        data = saen.Graphs.from_edge_lists([edges, edges], **columns)
        assert any("rings" in each for each in labels_of(data)) == used
        assert any("hub" in each for each in labels_of(data)) == (edges is ring and not used)
    monkeypatch.setattr(candidates, "RING_DEGREE", 1)
    data = saen.Graphs.from_edge_lists([ring, ring], node_labels=list("CCCCCN") * 2)
    assert not any("rings" in each for each in labels_of(data))


def test_candidates_grow_forests_by_default_on_few_labelled_graphs(monkeypatch):
    data = graphs(node_labels=list("CCCCOC"))
    assert "part counts, forest" in names(data)
    assert "part counts, forest" not in names(graphs())
    monkeypatch.setattr(candidates, "LARGE", 2)
    assert "part counts, forest" not in names(data)
    assert "part counts, forest" in names(data, budget="thorough")


def test_candidates_have_limits_of_examples_and_entries(monkeypatch):
    assert too_many(graphs()) is None
    monkeypatch.setattr("saen.learning.candidates.MAX_ENTRIES", 10)
    assert too_many(graphs()) == "14 nodes and neighbours (more than 10)"
