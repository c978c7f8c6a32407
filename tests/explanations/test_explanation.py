"""Explanations add up, mean what they say, and find the parts that decide."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.special import softmax
from sklearn.exceptions import NotFittedError

import saen
from saen import (
    Documents,
    Graphs,
    Hierarchy,
    InputError,
    NestedData,
    SAENClassifier,
    SAENRegressor,
    compress,
    explain,
    explain_dataset,
)
from saen.decompositions import Ego, Neighbourhoods
from saen.decompositions.node_labels import describe_label
from saen.explanations.describe import DecomposedExample
from saen.explanations.explanation import Explanation
from saen.learning.decomposing import Decompositions
from saen.learning.models.base import Member
from saen.learning.models.blend import FittedBlend
from saen.network import attribution
from tests.references.networks import random_hierarchy


@pytest.fixture(scope="module")
def threads() -> Graphs:
    return saen.generate_threads(60, average_nodes=15, seed=1)


@pytest.fixture(scope="module")
def model(threads) -> SAENClassifier:
    return SAENClassifier(radii=(0, 1), epochs=8).fit(threads, threads.targets)


def assert_complete(explanation: Explanation) -> None:
    for level in explanation.balance():
        total = level.attributed + level.not_attributed
        assert total == pytest.approx(explanation.output, abs=1e-8)
    assert explanation.contributions[-1].tolist() == pytest.approx([explanation.output])


def test_explain_adds_up_to_the_mean_logit_of_the_networks(threads, model):
    for index in (0, 7, 33):
        explanation = explain(model, threads, index, target="questions")
        assert_complete(explanation)
        network = model.network_
        logits = network(compress(model.decomposition_.decompose(threads[index]))).detach()
        assert explanation.output == pytest.approx(logits.mean().item(), rel=1e-4)
        assert explanation.reference == "the average graph of the training data"
        assert explanation.probability == pytest.approx(
            model.predict_proba(threads[index : index + 1])[0, 1]
        )
        assert [len(level) for level in explanation.contributions] == list(
            explanation.decomposed.hierarchy.sizes
        )


def test_explain_of_the_first_of_two_classes_flips_all_signs(threads, model):
    one, other = (explain(model, threads, 3, target=t) for t in ("questions", "discussion"))
    for a, b in zip(one.contributions, other.contributions, strict=True):
        np.testing.assert_allclose(a, -b)
    assert explain(model, threads, 3).target == one.prediction == other.prediction
    assert one.probability + other.probability == pytest.approx(1)
    assert one.evidence(1.0) == other.evidence(-1.0) == "for questions"
    assert one.evidence(-1.0) == other.evidence(1.0) == "for discussion"


def test_explain_of_many_classes_explains_one_logit_each():
    graphs = saen.generate_threads(45, n_classes=3, average_nodes=12, seed=2)
    model = SAENClassifier(radii=(0, 1), epochs=3, n_models=1, inner_folds=0)
    model.fit(graphs, graphs.targets)
    usual = explain(model, graphs, 4)
    assert usual.target == usual.prediction == model.predict(graphs[4])[0]
    each = [explain(model, graphs, 4, target=name) for name in model.classes_]
    shares = softmax([explanation.output for explanation in each])
    np.testing.assert_allclose(shares, model.predict_proba(graphs[4])[0], atol=1e-4)
    for explanation in each:
        assert_complete(explanation)
        assert explanation.evidence(1.0) == f"for {explanation.target}"
        assert explanation.evidence(-1.0) == f"against {explanation.target}"


def test_explain_of_a_regression_is_in_the_units_of_y(threads):
    y = np.column_stack([threads.sizes * 10.0, -threads.sizes])
    model = SAENRegressor(radii=(0, 1), epochs=3).fit(threads, y)
    for column in (0, 1):
        explanation = explain(model, threads, 5, target=column)
        assert explanation.output == pytest.approx(model.predict(threads[5])[0, column], rel=1e-4)
        assert_complete(explanation)
    assert (explanation.classes, explanation.evidence(1.0), explanation.evidence(-1.0)) == (
        (),
        "higher",
        "lower",
    )
    single = SAENRegressor(radii=(0, 1), epochs=1).fit(threads, threads.sizes)
    alone = explain(single, threads, 5)
    assert (alone.target, alone.output) == (0, pytest.approx(single.predict(threads[5])[0]))
    assert explain_dataset(single, threads, n_parts=2).targets == ("lower", "higher")


def test_explain_does_not_depend_on_the_order_of_nodes(threads, model):
    graph = threads[8]
    order = np.random.default_rng(0).permutation(graph.n_nodes)
    turned = Graphs.from_edges(np.argsort(order)[graph.edges()], [graph.n_nodes])
    one, other = explain(model, graph), explain(model, turned)
    np.testing.assert_allclose(other.contributions[0], one.contributions[0][order], atol=1e-9)
    egos = (order[:, None] * 2 + np.arange(2)).ravel()
    np.testing.assert_allclose(other.contributions[1], one.contributions[1][egos], atol=1e-9)


def test_explain_of_a_graph_without_nodes_is_the_baseline(model):
    explanation = explain(model, Graphs.from_edge_lists([[]], sizes=[0]))
    assert explanation.output == pytest.approx(explanation.baseline)
    assert explanation.parts == ()
    assert explanation.top_parts(level=0) == ()


def test_explain_takes_unseen_labels_and_isolated_nodes(model):
    star = Graphs.from_edge_lists([[(0, i) for i in range(1, 300)]], sizes=[302])
    explanation = explain(model, star)
    assert_complete(explanation)
    assert any(part.what == "unseen" for part in explanation.top_parts(1, 400))


def with_motif(seed: int, n: int) -> Graphs:
    """Random trees with one N and one O: neighbours in class 1, apart in class 0."""
    rng = np.random.default_rng(seed)
    edge_lists, labels = [], []
    for number in range(n):
        parents = [int(rng.integers(0, i)) for i in range(1, 12)]
        letters = np.full(12, "C")
        one = int(rng.integers(1, 12))
        near = {parents[one - 1], *(i + 1 for i, p in enumerate(parents) if p == one)}
        pool = near if number % 2 else set(range(12)) - near - {one}
        letters[one], letters[int(rng.choice(sorted(pool)))] = "N", "O"
        edge_lists.append([(p, i + 1) for i, p in enumerate(parents)])
        labels.append(letters)
    return Graphs.from_edge_lists(
        edge_lists, [12] * n, node_labels=np.concatenate(labels), targets=np.arange(n) % 2
    )


def test_explain_finds_the_nodes_of_a_motif_that_decides():
    graphs, fresh = with_motif(0, 200), with_motif(1, 40)
    # Single networks may decide by where the motif is not; which ones, the seed says.
    model = SAENClassifier("ego(radii=(1,))", epochs=20, random_state=1)
    model.fit(graphs, graphs.targets)
    assert (model.predict(fresh) == fresh.targets).mean() > 0.95
    hits = []
    for index in range(1, 40, 2):
        explanation = explain(model, fresh, index, n_parts=1)
        motif = set(np.flatnonzero(fresh[index].node_labels != "C").tolist())
        hits.append(set(np.argsort(-explanation.contributions[0])[:2].tolist()) == motif)
        # The strongest ego graph holds both, and they are what counts inside it.
        best = explanation.parts[0]
        assert motif <= set(best.bottom.tolist())
        assert best.inside is not None
        assert best.inside.sum() * best.count == pytest.approx(best.contribution)
    assert np.mean(hits) >= 0.9


@pytest.mark.parametrize("kind", [SAENClassifier, saen.PartCountsClassifier])
def test_parts_hand_down_what_they_contribute_group_by_group(kind, threads):
    """All groups in one pass, whatever they have in common, as each of them alone."""
    model = kind("neighbourhoods(depth=2)").fit(threads, threads.targets).fitted_
    one = Decompositions(threads[3:4])
    hierarchy = model.decomposition.decompose(one.data)
    found = model.explained(hierarchy, np.ones(1), one)
    groups = [np.array(own) for own in ([0], [1, 4], [4], [0, 1, 2, 3])]
    together = found.inside(groups)
    for group, values in zip(groups, together, strict=True):
        scale = np.abs(found.objects[-2][group]).max()
        np.testing.assert_allclose(values, found.inside([group])[0], atol=0.02 * scale)
        assert values.sum() == pytest.approx(found.objects[-2][group].sum())


def test_parts_name_their_node_roles_and_labels(threads, model):
    explanation = explain(model, threads, 2, n_parts=4)
    assert len(explanation.parts) == 4
    strengths = [abs(part.contribution) for part in explanation.parts]
    assert strengths == sorted(strengths, reverse=True)
    every = explanation.top_parts(n_parts=10_000)
    assert sum(part.count for part in every) <= len(explanation.contributions[1])
    total = sum(part.contribution for part in every)
    assert total == pytest.approx(explanation.contributions[1].sum())
    regions = {tuple(part.bottom.tolist()) for part in every if part.count == 1}
    assert len(regions) == sum(part.count == 1 for part in every)  # no place twice
    labels = model.decomposition_.decompose(threads[2]).attributes
    for part in explanation.parts:
        node, radius = divmod(part.number, 2)
        assert (part.level, part.node) == (1, node)
        assert f"radius {radius}" in part.roles
        label = describe_label("log-degree:4", labels.vocabulary[labels.codes[node]])
        assert part.what.startswith(label)
        near = threads[2].adjacency()[[node]].indices.tolist() if radius else []
        assert sorted({node, *near}) == part.bottom.tolist()
    node = explanation.top_parts(level=0, n_parts=1)[0]
    assert (node.node, node.bottom.tolist()) == (node.number, [node.number])
    assert "root" in node.roles


@pytest.mark.parametrize(
    ("decomposition", "centred"),
    [
        ("ego(radii=(0, 1), edges=objects)", True),
        ("ego(radii=(0, 1), node_labels='degree,distance')", True),
        ("neighbourhoods(depth=2)", True),
        ("paths(radii=(1,), max_length=2)", True),
        ("pairs(max_distance=2)", False),
        ("nodes", True),
        ("edges", False),
    ],
)
def test_explain_takes_every_decomposition_of_graphs(threads, decomposition, centred):
    model = SAENClassifier(decomposition, epochs=1, n_models=2).fit(threads, threads.targets)
    explanation = explain(model, threads, 1, n_parts=3)
    assert_complete(explanation)
    for part in explanation.parts:
        assert (part.node is not None) == centred
        if part.node is not None:
            assert part.node in explanation.decomposed.nodes[part.bottom]
        if part.count == 1:
            assert part.inside.sum() == pytest.approx(part.contribution)
    nodes, edges = explanation.decomposed.nodes, explanation.decomposed.edges
    assert ((nodes >= 0) ^ (edges >= 0)).all()
    if "degree,distance" in decomposition:
        labels = explanation.decomposed.hierarchy.attributes
        degrees = [labels.vocabulary[code][0] for code in labels.codes.tolist()]
        assert degrees == threads[1].degrees()[nodes].tolist()


def documents() -> Documents:
    good = [("dogs", 1, "nsubj"), ("win", None, "root")]
    bad = [("cats", 1, "nsubj"), ("lose", None, "root"), ("again", 1, "advmod")]
    return Documents.from_sentences(
        [[good, bad], [good], [bad, bad], [bad]] * 5, targets=["up", "up", "down", "down"] * 5
    )


def test_explain_of_documents_is_by_sentences_and_words():
    texts = documents()
    model = SAENClassifier("dependency_paths", epochs=20, n_models=1).fit(texts, texts.targets)
    explanation = explain(model, texts, 0, target="up")
    assert_complete(explanation)
    what = {part.what: part.contribution for part in explanation.parts}
    assert set(what) == {"dogs, win", "cats, lose, again"}
    assert what["dogs, win"] > what["cats, lose, again"]
    assert all(part.node is None for part in explanation.parts)
    best = explain_dataset(model, texts, n_parts=1).parts[0]
    assert best.part.what in what
    assert best.towards == ("up" if best.part.what == "dogs, win" else "down")


def test_explain_of_nested_data_counts_their_parts():
    pairs = [[("word", "yes")] * (3 - n) + [("word", "no")] * n for n in (0, 1, 2, 3)] * 6
    data = NestedData(pairs, [0, 0, 1, 1] * 6, levels=("words", "notes"))
    model = SAENClassifier("nested", epochs=15, n_models=1).fit(data, data.targets)
    explanation = explain(model, data, 1, target=1)
    assert_complete(explanation)
    by_word = {part.what: part.contribution for part in explanation.top_parts()}
    assert [part.count for part in explanation.top_parts()] in ([1, 2], [2, 1])
    assert by_word["no"] > by_word["yes"]


def test_explain_describes_numbers_by_their_values():
    data = NestedData([{"size": [2.5], "name": ["x"]}])
    example = DecomposedExample(data.hierarchy)
    assert sorted(example.describe(0, np.arange(2))) == ["2.5", "x"]


def test_explain_takes_hierarchies_as_they_are():
    hierarchy = random_hierarchy(2, n=20, depth=3)
    model = SAENClassifier(epochs=1, n_models=1).fit(hierarchy, np.arange(20) % 2)
    bare = 0
    for index in range(20):
        explanation = explain(model, hierarchy, index, n_parts=1)
        assert_complete(explanation)
        assert explanation.decomposed.hierarchy.sizes == hierarchy[[index]].sizes
        assert (explanation.settings, explanation.decomposed.graph) == ({}, None)
        bare += sum(
            int((np.diff(r.indptr) == 0).sum())
            for r in explanation.decomposed.hierarchy.relations[:-1]
        )
    assert bare  # objects without parts are among them
    with pytest.raises(InputError, match="fitted on hierarchies: pass a Hierarchy"):
        explain(model, saen.generate_threads(3))


def test_explanation_json_holds_every_number(threads, model):
    explanation = explain(model, threads, 2, n_parts=2)
    document = json.loads(json.dumps(explanation.to_json(), allow_nan=False))
    assert document["prediction"] == explanation.prediction
    assert document["classes"] == ["discussion", "questions"]
    assert document["parts"][0]["what"] == explanation.parts[0].what
    for level, values in enumerate(explanation.contributions):
        assert document["levels"][level]["contributions"] == values.tolist()
    entries = document["levels"][1]["entries"]
    assert entries["contribution"] == explanation.entries[0].tolist()
    assert set(entries["role"]) == {"root", "elem"}
    assert len(document["labels"]) == threads[2].n_nodes
    for array in (*explanation.contributions, *explanation.empty, *explanation.entries):
        assert not array.flags.writeable


# -- mistakes ----------------------------------------------------------------------------------


def test_explain_names_mistakes(threads, model):
    for index in (-1, 60):
        with pytest.raises(InputError, match=rf"no example {index}: the examples are 0 … 59"):
            explain(model, threads, index)
    with pytest.raises(InputError, match="no example 0: the data are empty"):
        explain(model, threads[:0])
    with pytest.raises(InputError, match="nothing to explain: the data are empty"):
        explain_dataset(model, threads[:0])
    with pytest.raises(InputError, match="no class 'chat': choose from discussion, questions"):
        explain(model, threads, target="chat")
    with pytest.raises(InputError, match="towards all classes: omit the target"):
        explain_dataset(model, threads, target="questions")
    with pytest.raises(InputError, match="parts lie on levels 0 … 1, not 2"):
        explain(model, threads).top_parts(level=2)
    with pytest.raises(NotFittedError):
        explain(SAENClassifier(), threads)
    with pytest.raises(InputError, match="explain takes a fitted estimator, not Ego"):
        explain(Ego(), threads)  # type: ignore[arg-type]
    regressor = SAENRegressor(radii=(0, 1), epochs=1).fit(threads, threads.sizes)
    with pytest.raises(InputError, match="no column of y '1': choose from 0"):
        explain(regressor, threads, target=1)


def test_explain_refuses_other_roles():
    hierarchy = random_hierarchy(3, n=8)
    model = SAENClassifier(epochs=0, n_models=1).fit(hierarchy, np.arange(8) % 2)
    relations = [replace(r, alphabet=("a", "b")) for r in hierarchy.relations]
    other = Hierarchy(hierarchy.attributes, tuple(relations), hierarchy.names)
    with pytest.raises(InputError, match="fitted on roles"):
        explain(model, other)


def test_explain_refuses_a_network_that_is_not_finite(threads):
    model = SAENClassifier(radii=(0, 1), epochs=0, n_models=1).fit(threads, threads.targets)
    with torch.no_grad():
        model.network_.levels[1].bias.fill_(float("nan"))
    with pytest.raises(InputError, match="is NaN or infinite"):
        explain(model, threads)


def test_explain_refuses_contributions_that_do_not_converge(threads, model, monkeypatch):
    monkeypatch.setattr(attribution, "MAX_STEPS", 2)
    with pytest.raises(InputError, match="did not converge within 2 steps"):
        explain(model, threads)


def test_explain_refuses_contributions_that_do_not_add_up(threads, model, monkeypatch):
    monkeypatch.setattr(attribution, "_chord", lambda x, y, slope: torch.full_like(x, slope))
    with pytest.raises(InputError, match="contributions do not add up"):
        explain(model, threads)
    with pytest.raises(InputError, match="contributions do not add up"):
        explain_dataset(model, threads)


def test_explain_leaves_the_model_unchanged(threads, model):
    before = {key: tensor.clone() for key, tensor in model.network_.state_dict().items()}
    model.network_.train()
    explain(model, threads, 1)
    explain_dataset(model, threads, n_parts=1)
    assert model.network_.dtype == torch.float32
    for key, tensor in model.network_.state_dict().items():
        assert torch.equal(tensor, before[key]), key


def test_explain_of_a_blend_is_about_its_class_and_sums_nodes_over_its_members(threads):
    candidates = [
        saen.PartCountsClassifier("neighbourhoods(depth=1)"),
        SAENClassifier(radii=(0, 1), epochs=4, n_models=1, inner_folds=0),
    ]
    blend = saen.Classifier(candidates=candidates).fit(threads, threads.targets)
    weights = (0.6, 0.4)
    members = [SAENClassifier(radii=(0, 1), epochs=4, n_models=1, inner_folds=0), candidates[0]]
    for member in members:
        member.fit(threads, threads.targets)
    named = [
        Member(name, each.fitted_, weight, None)
        for name, each, weight in zip(("networks", "counts"), members, weights, strict=True)
    ]
    blend.fitted_ = FittedBlend.of(named, blend.fitted_.calibration)
    explanation = explain(blend, threads, 3)
    assert explanation.prediction == blend.predict(threads[3:4])[0]
    place = list(blend.classes_).index(explanation.target)
    assert explanation.probability == pytest.approx(blend.predict_proba(threads[3:4])[0, place])
    each = [explain(member, threads, 3, target=explanation.target) for member in members]
    nodes, _ = explanation.on_graph()
    differences = [w * (e.output - e.baseline) for w, e in zip(weights, each, strict=True)]
    assert nodes.sum() == pytest.approx(sum(differences))
    assert len(nodes) == threads[3].n_nodes
    np.testing.assert_array_equal(explanation.contributions[1], each[0].contributions[1])
    shown = explanation.to_json()["members"]
    assert [(m["name"], m["weight"]) for m in shown] == [("networks", 0.6), ("counts", 0.4)]
    found = saen.explore(blend, threads, n_parts=5)
    assert found.predictions.tolist() == blend.predict(threads).tolist()
    np.testing.assert_allclose(found.confidence, blend.predict_proba(threads).max(axis=1))
    assert found.explained == "networks, 60 % of this blend"
    assert explain_dataset(blend, threads).explained == found.explained


def test_parts_at_the_same_places_are_one_and_molecules_are_told_in_smiles():
    pytest.importorskip("rdkit", reason="needs the extra 'chem'")
    graphs = saen.from_smiles(["CC(=O)O", "c1ccccc1O", "CCO", "CC(=O)OC"] * 3)
    model = saen.PartCountsRegressor("neighbourhoods(depth=3)", depth=3, C=1.0)
    model.fit(graphs, graphs.sizes.astype(float))
    explanation = explain(model, graphs, 0, n_parts=20)
    assert_complete(explanation)
    by_name = {part.name: part for part in explanation.parts}
    assert len(by_name) == len(explanation.parts)
    # All of acetic acid: four atoms at depth 2 and the middle one at depths 1 to 3, and so on.
    whole = by_name["CC(=O)O"]
    assert (whole.count, whole.bottom.tolist()) == (1, [0, 1, 2, 3])
    assert set(whole.roles) == {"depth 1", "depth 2", "depth 3"}
    assert (by_name["O"].count, by_name["O"].everywhere.tolist()) == (2, [2, 3])
    assert "*C(*)=O" in by_name
    assert sum(part.contribution for part in explanation.parts) == pytest.approx(
        explanation.output - explanation.baseline
    )
    strongest = explanation.parts[0]
    assert f"{strongest.name} ({strongest.contribution:+.3g})" in explanation.sentence


def test_neighbourhoods_are_told_by_steps_whatever_the_order_of_nodes():
    labels = ["C", "N", "O", "C", "F"]
    path = Graphs.from_edge_lists([[(0, 1), (1, 2), (2, 3), (3, 4)]], node_labels=labels)
    other = Graphs.from_edge_lists([[(4, 3), (3, 2), (2, 1), (1, 0)]], node_labels=labels[::-1])
    decomposition = Neighbourhoods(depth=3).fit(path)
    words = [
        decomposition.describe(decomposition.decompose(graph), 3, np.arange(20))
        for graph in (path, other)
    ]
    assert sorted(words[0]) == sorted(words[1])
    assert words[0][8:12] == [
        "O",
        "O next to C, N",
        "O next to C, N; 2 steps: C, F",
        "O next to C, N; 2 steps: C, F",
    ]
    lone = Graphs.from_edge_lists([[]], [1], node_labels=["C"])
    assert decomposition.describe(decomposition.decompose(lone), 2, np.arange(3)) == [
        "C", "C alone", "C alone",
    ]  # fmt: skip


def test_explain_leaves_out_parts_that_contribute_nothing(threads):
    model = saen.PartCountsClassifier("neighbourhoods(depth=2)", depth=0, inner_folds=0)
    explanation = model.fit(threads, threads.targets).explain(threads, 0)
    assert explanation.parts
    assert all(part.contribution for part in explanation.parts)
    assert_complete(explanation)
