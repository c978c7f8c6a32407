"""Attributes in bins: as node labels and as roles of edges."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.cluster import KMeans

import saen
from saen import Graphs, InputError
from saen.decompositions.bins import Bins
from saen.decompositions.registry import (
    decomposition_from_json,
    decomposition_to_json,
    make_decomposition,
)

RNG = np.random.default_rng(0)
PATHS = [[(0, 1), (1, 2)]] * 4


def test_bins_of_one_number_are_equally_full():
    values = RNG.lognormal(size=(1000, 1))
    bins = Bins.fit(values, 8)
    assert np.bincount(bins.encode(values)).tolist() == [125] * 8
    assert bins.encode([[-1e9], [1e9]]).tolist() == [0, 7]


def test_bins_of_equal_numbers_are_few():
    assert len(Bins.fit(np.array([[0.0]] * 9 + [[1.0]]), 4).edges) == 1
    assert Bins.fit(np.empty((0, 1)), 4).encode(np.array([[3.0]])).tolist() == [0]
    assert Bins.fit(np.zeros((5, 3)), 4).encode(np.ones((2, 3))).tolist() == [0, 0]


def test_bins_of_vectors_are_clusters_whatever_the_units():
    centres = np.array([[0.0, 0.0], [9.0, 0.0], [0.0, 9.0]])
    kinds = RNG.integers(3, size=300)
    values = centres[kinds] + RNG.normal(size=(300, 2))
    for units in ([1.0, 1.0], [1e-6, 1e6]):
        labels = Bins.fit(values * units, 3).encode(values * units)
        assert len({*zip(labels.tolist(), kinds.tolist(), strict=True)}) == 3
    expected = KMeans(3, n_init=1, random_state=0).fit(values / values.std(axis=0))
    assert Bins.fit(values, 3).encode(values).tolist() == expected.labels_.tolist()


@pytest.mark.parametrize(
    "damage",
    [
        {"edges": [1.0, 1.0]},
        {"edges": [float("nan")]},
        {"scale": [0.0]},
        {"scale": [1.0], "centres": [[1.0, 2.0]]},
    ],
)
def test_bins_that_do_not_fit_together_are_refused(damage):
    with pytest.raises(InputError, match="bins of attributes"):
        Bins.from_json({"edges": [], "scale": [], "centres": []} | damage)


def weighted(**columns):
    return Graphs.from_edge_lists(
        PATHS,
        node_attributes=RNG.normal(size=(12, 2)),
        edge_attributes=np.arange(8.0)[:, None],
        **columns,
    )


@pytest.mark.parametrize("spec", ["ego", "neighbourhoods", "paths", "nodes", "edges"])
def test_bins_are_kept_by_fitted_decompositions(spec):
    graphs = weighted()
    fitted = make_decomposition(f"{spec}(node_labels='attribute-bins:3')").fit(graphs)
    assert len(fitted.vocabulary) <= 6
    again = decomposition_from_json(decomposition_to_json(fitted))
    assert again == fitted
    # New graphs fall into the old bins, however few they are.
    part, whole = again.decompose(graphs[2:3]), fitted.decompose(graphs)[[2]]
    assert part.attributes.codes.tolist() == whole.attributes.codes.tolist()


@pytest.mark.parametrize(
    "spec", ["ego(edges=bins)", "neighbourhoods(edges=bins)", "paths(edges=bins)"]
)
@pytest.mark.parametrize("labels", [None, [1, 2] * 4])
def test_edge_weights_in_bins_are_roles(spec, labels):
    graphs = weighted(edge_labels=labels)
    fitted = make_decomposition(spec, overrides={"node_labels": "degree"}).fit(graphs)
    assert len(fitted.kinds) == (4 if labels is None else 8)
    assert decomposition_from_json(decomposition_to_json(fitted)) == fitted
    one, whole = fitted.decompose(graphs[1:2]), fitted.decompose(graphs)[[1]]
    assert [r.alphabet for r in one.relations] == [r.alphabet for r in whole.relations]
    assert one.relations[0].roles.tolist() == whole.relations[0].roles.tolist()
    if (cut := fitted.cut(graphs[1:2])) is not None:
        assert cut.relations(0, 3)[0].alphabet == one.relations[0].alphabet


def test_bins_without_attributes_are_refused():
    plain = Graphs.from_edge_lists(PATHS)
    with pytest.raises(InputError, match="no node attributes"):
        make_decomposition("ego(node_labels='attribute-bins')").fit(plain)
    with pytest.raises(InputError, match="needs edge attributes"):
        make_decomposition("ego(edges=bins)").fit(plain)
    with pytest.raises(InputError, match="integer from 2 to 1000"):
        make_decomposition("ego(node_labels='attribute-bins:1')")
    fitted = make_decomposition("ego(node_labels='attribute-bins:3')").fit(weighted())
    with pytest.raises(InputError, match="bins of 2 attributes, but there are 3"):
        fitted.decompose(plain.with_columns(node_attributes=np.zeros((12, 3))))


def test_bins_are_described_by_their_numbers():
    graphs = Graphs.from_edge_lists(PATHS, node_attributes=np.arange(12.0)[:, None])
    fitted = make_decomposition("nodes(node_labels='degree,attribute-bins:3')").fit(graphs)
    texts = {fitted.describe_label(label)[1] for label in fitted.vocabulary}
    assert texts == {"< 3.667", "3.667 to 7.333", "≥ 7.333"}


def proteins(n: int, seed: int) -> Graphs:
    """Chains with three node labels that say nothing, and 18 attributes around eight kinds.

    The two classes have the kinds in different shares.
    """
    rng = np.random.default_rng(seed)
    sizes, targets = np.full(n, 12), np.arange(n) % 2
    shares = np.array([[5, 5, 5, 5, 1, 1, 1, 1], [1, 1, 1, 1, 5, 5, 5, 5]]) / 24
    kinds = np.concatenate([rng.choice(8, size=12, p=shares[each]) for each in targets])
    centres = np.random.default_rng(0).normal(size=(8, 18))
    units = 10.0 ** np.linspace(-2, 2, 18)
    return Graphs.from_edge_lists(
        [[(i, i + 1) for i in range(11)]] * n,
        sizes.tolist(),
        node_labels=rng.integers(3, size=12 * n),
        node_attributes=(centres[kinds] + 0.7 * rng.normal(size=(12 * n, 18))) * units,
        targets=targets,
    )


def test_attribute_bins_are_chosen_where_they_help(tmp_path):
    graphs = proteins(120, seed=1)
    learner = saen.Classifier(budget="quick").learner()
    listed = learner.candidates(saen.Classifier().prepare(graphs), np.arange(120))
    assert listed[-1].learner.arguments.node_labels == "node,attribute-bins"
    train, test = graphs[:80], graphs[80:]
    alone = saen.PartCountsClassifier(node_labels="node").fit(train, train.targets)
    blend = saen.Classifier(budget="quick").fit(train, train.targets)
    assert blend.members_[0].model.decomposition.node_labels == "node,attribute-bins"
    assert blend.score(test, test.targets) > 0.85 > alone.score(test, test.targets) + 0.1
    blend.save(tmp_path / "blend.saen")
    again = saen.load(tmp_path / "blend.saen")
    np.testing.assert_array_equal(again.predict_proba(test), blend.predict_proba(test))


def test_bins_are_those_of_the_training_part():
    graphs = proteins(40, seed=2)
    shifted = graphs.node_attributes.copy()
    shifted[30 * 12 :] *= 1000  # those of the test part
    model = saen.PartCountsClassifier("neighbourhoods(depth=1,node_labels='attribute-bins:4')")
    splits = [[(np.arange(30), np.arange(30, 40))]]
    blend = saen.Classifier(candidates=[model], inner_folds=2)
    weights = (np.arange(40) < 30).astype(float)
    for estimator in (model, blend):
        scores = [
            saen.cross_validate(estimator, data, graphs.targets, splits=splits).chosen
            for data in (graphs, graphs.with_columns(node_attributes=shifted))
        ]
        assert scores[0] == scores[1]
    fitted = [
        blend.fit(data, graphs.targets, sample_weight=weights).members_[0].model.decomposition
        for data in (graphs, graphs.with_columns(node_attributes=shifted))
    ]
    assert fitted[0] == fitted[1]
    alone = clone(model).fit(graphs, graphs.targets, sample_weight=weights)
    assert alone.decomposition_ == fitted[0]
    prepared = blend.prepare(graphs)
    np.testing.assert_array_equal(
        blend.fit(prepared, graphs.targets, sample_weight=weights).predict_proba(prepared),
        blend.predict_proba(graphs),
    )
