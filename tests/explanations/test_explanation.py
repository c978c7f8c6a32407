"""Contributions add up, mean what they say, and land on the parts that decide."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import softmax
from sklearn.exceptions import NotFittedError

import saen
from saen import (
    Attributes,
    Ego,
    Graphs,
    Hierarchy,
    InputError,
    Relation,
    SAENClassifier,
    SAENRegressor,
    Vocabulary,
    compress,
)
from saen.data.documents import Documents
from saen.data.nested import NestedData
from saen.explanations import attribution
from saen.explanations.attribution import Contributions, Passed
from saen.explanations.explanation import Explanation, explain, explain_collection
from tests.properties.strategies import hierarchies
from tests.references.hierarchies import entries_of
from tests.references.networks import forward, make_network, random_hierarchy

# -- the definition, object by object ----------------------------------------------------------


class Reference:
    """Integrated gradients of one model by autograd at many points, one occurrence at a time."""

    def __init__(self, network: saen.SAEN, hierarchy: Hierarchy, model: int, weights: Any) -> None:
        self.network, self.hierarchy, self.model = network, hierarchy, model
        self.state = {key: t.double() for key, t in network.state_dict().items()}
        self.h = forward(network, hierarchy, model).h
        self.objects = [np.zeros(size) for size in hierarchy.sizes]
        self.entries = [np.zeros(relation.n_entries) for relation in hierarchy.relations]
        for top in range(len(hierarchy)):
            self._give(hierarchy.depth, top, np.asarray(weights, dtype=np.float64), 0.0)

    def _give(self, level: int, number: int, g: Any, share: float) -> None:
        """Hand down ⟨g, h⟩ + share from one occurrence of an object."""
        self.objects[level][number] += g @ self.h[level][number] + share
        if level == 0:
            return
        relation, width = self.hierarchy.relations[level - 1], self.h[level - 1].shape[1]
        first = int(relation.indptr[number])
        listed = list(entries_of(relation, number))
        a = np.zeros(relation.n_roles * width)
        for role, part, count in listed:
            a[role * width : (role + 1) * width] += count * self.h[level - 1][part]
        G = self._integrated(level, a, g)
        empty = float(g @ self._f(level, torch.zeros(1, len(a)).double())[0].numpy()) + share
        is_top = level == self.hierarchy.depth
        for entry, (role, part, count) in enumerate(listed, start=first):
            told = count * G[role * width : (role + 1) * width]
            part_share = 0.0 if is_top else count * empty / sum(n for _, _, n in listed)
            self.entries[level - 1][entry] += told @ self.h[level - 1][part] + part_share
            self._give(level - 1, part, told, part_share)

    def _integrated(self, level: int, a: Any, g: Any, points: int = 4000) -> Any:
        t = (torch.arange(points).double() + 0.5) / points
        line = (t[:, None] * torch.from_numpy(a)).requires_grad_()
        (self._f(level, line) @ torch.from_numpy(g)).mean().backward()
        return line.grad.sum(dim=0).numpy()

    def _f(self, level: int, a: torch.Tensor) -> torch.Tensor:
        """f_l of aggregates, (n, n(l) · d)."""
        shape, prefix = self.network.architecture, f"levels.{level}"
        if shape.normalisation == "batch":
            mean = self.state[f"{prefix}.norm.mean"][:, self.model].ravel()
            variance = self.state[f"{prefix}.norm.variance"][:, self.model].ravel()
            a = (a - mean) / torch.sqrt(variance + 1e-5)
        seen = self.state[f"{prefix}.seen"][:, self.model]
        a = a * seen.repeat_interleave(a.shape[1] // len(seen))
        x = (
            a @ self.state[f"{prefix}.weight"][self.model]
            + self.state[f"{prefix}.bias"][self.model]
        )
        for layer in range(len(shape.layers[level]) - 1):
            x = torch.nn.functional.leaky_relu(x, shape.slope)
            x = x @ self.state[f"{prefix}.layers.weights.{layer}"][self.model]
            x = x + self.state[f"{prefix}.layers.biases.{layer}"][self.model]
        is_top = level == len(shape.layers) - 1
        return x if is_top else torch.nn.functional.leaky_relu(x, shape.slope)


def told_to(n: int, network: saen.SAEN, weights: Any) -> torch.Tensor:
    """The gradient of the mean over the models, for n structures."""
    row = torch.tensor(weights, dtype=torch.float64) / network.n_models
    return row.expand(n, network.n_models, -1)


def contributions_of(
    network: saen.SAEN, hierarchy: Hierarchy, weights: Any
) -> tuple[Passed, list[Contributions]]:
    """Bottom first."""
    passed = Passed.through(network, hierarchy)
    found = list(passed.contributions(told_to(len(hierarchy), network, weights)))
    return passed, found[::-1]


def with_statistics(network: saen.SAEN, seed: int = 0) -> saen.SAEN:
    """Running statistics that are not 0 and 1, and a role that one model never met."""
    generator = torch.Generator().manual_seed(seed)
    for key, buffer in network.named_buffers():
        if "norm.mean" in key:
            buffer.copy_(torch.randn(buffer.shape, generator=generator))
        elif "norm.variance" in key:
            buffer.copy_(torch.rand(buffer.shape, generator=generator) + 0.5)
        elif key.endswith("1.seen"):
            buffer[0, 0] = False
    return network


@pytest.mark.parametrize(("depth", "kind"), [(1, "codes"), (2, "both"), (3, "vectors")])
@pytest.mark.parametrize("normalisation", ["none", "batch"])
def test_contributions_are_the_integrated_gradients_of_the_definition(depth, kind, normalisation):
    hierarchy = random_hierarchy(depth, n=2, depth=depth, kind=kind)
    layers = [[3], *[[4]] * (depth - 1), [4, 2]]  # one activation per level: one step is exact
    options: dict[str, Any] = {"layers": layers, "normalisation": normalisation, "slope": 0.1}
    network = with_statistics(make_network(hierarchy, seeds=(3, 4), **options))
    _, found = contributions_of(network, hierarchy, [0.5, -1.0])
    references = [Reference(network, hierarchy, model, [0.5, -1.0]) for model in (0, 1)]
    for level in range(depth + 1):
        expected = np.mean([r.objects[level] for r in references], axis=0)
        tolerance = 2e-3 * np.abs(expected).max()
        np.testing.assert_allclose(found[level].objects, expected, atol=tolerance)
        if level:
            expected = np.mean([r.entries[level - 1] for r in references], axis=0)
            tolerance = 2e-3 * np.abs(expected).max()
            np.testing.assert_allclose(found[level].entries, expected, atol=tolerance)


def test_levels_of_several_layers_settle_near_the_definition():
    hierarchy = random_hierarchy(5, n=3, depth=2)
    network = make_network(hierarchy, layers=[[4], [8, 6, 5], [6, 4, 1]], slope=0.01)
    _, found = contributions_of(network, hierarchy, [1.0])
    reference = Reference(network, hierarchy, 0, [1.0])
    assert max(level.steps for level in found) > 2
    for level in (0, 1):
        moved = np.abs(found[level].objects - reference.objects[level]).sum()
        assert moved <= 0.02 * np.abs(reference.objects[level]).sum()


# -- laws --------------------------------------------------------------------------------------


@given(hierarchies(), st.integers(1, 2), st.sampled_from(["none", "batch"]))
def test_contributions_add_up_on_every_level(hierarchy, n_models, normalisation):
    network = make_network(hierarchy, seeds=range(n_models), normalisation=normalisation)
    network = with_statistics(network)
    _, found = contributions_of(network, hierarchy, [1.0, -0.5])
    outputs = network(hierarchy).detach().mean(dim=1).numpy() @ [1.0, -0.5]
    np.testing.assert_allclose(found[-1].objects, outputs, atol=1e-9)
    for level, relation in enumerate(hierarchy.relations, start=1):
        scale = 1e-9 * (1 + np.abs(found[level].entries).sum() + np.abs(found[level].empty).sum())
        parents = np.repeat(np.arange(relation.n_parents), np.diff(relation.indptr))
        given = np.bincount(parents, found[level].entries, minlength=relation.n_parents)
        keeps = np.diff(relation.indptr) == 0
        if level == hierarchy.depth:
            keeps[:] = True
        np.testing.assert_allclose(
            given + keeps * found[level].empty, found[level].objects, rtol=0, atol=scale
        )
        received = np.bincount(relation.parts, found[level].entries, minlength=relation.n_parts)
        np.testing.assert_allclose(received, found[level - 1].objects, rtol=0, atol=scale)


@given(hierarchies(), st.sampled_from(["none", "batch"]))
def test_a_class_contributes_what_its_members_do(hierarchy, normalisation):
    layers = [[3], *[[4]] * (hierarchy.depth - 1), [4, 1]]  # exact, whatever the steps
    network = make_network(hierarchy, layers=layers, normalisation=normalisation, seeds=(0, 1))
    network = with_statistics(network)
    compressed = compress(hierarchy)
    _, objects = contributions_of(network, hierarchy, [1.0])
    small = Passed.through(network, compressed.hierarchy)
    uses = torch.from_numpy(np.bincount(compressed.top, minlength=len(compressed.hierarchy)))
    told = told_to(len(compressed.hierarchy), network, [1.0]) * uses[:, None, None]
    classes = list(small.contributions(told))[::-1]
    for level, (many, few) in enumerate(zip(objects, classes, strict=True)):
        sums = np.bincount(compressed.unique_of(level), many.objects, minlength=len(few.objects))
        scale = 1e-9 * (1 + np.abs(many.objects).sum() + np.abs(many.empty).sum())
        np.testing.assert_allclose(few.objects, sums, rtol=0, atol=scale)


def test_a_linear_network_gives_every_bottom_object_its_closed_form():
    hierarchy = random_hierarchy(2, n=1, depth=2, kind="both")
    # Slope one makes the Leaky ReLU the identity.
    network = make_network(hierarchy, layers=[[3], [4], [1]], slope=1.0)
    _, (bottom, middle, top) = contributions_of(network, hierarchy, [1.0])
    state = {key: t.double().numpy() for key, t in network.state_dict().items()}
    h = forward(network, hierarchy).h[0]
    below, above = (state[f"levels.{level}.weight"][0] for level in (1, 2))
    bias = state["levels.1.bias"][0]
    expected = np.zeros(hierarchy.sizes[0])
    for role, part, count in entries_of(hierarchy.relations[1], 0):
        told = count * above[4 * role : 4 * role + 4, 0]
        inner = list(entries_of(hierarchy.relations[0], part))
        for inner_role, node, times in inner:
            W = below[3 * inner_role : 3 * inner_role + 3]
            share = (bias @ told) / sum(n for _, _, n in inner)
            expected[node] += times * (h[node] @ W @ told + share)
    assert np.abs(expected).sum() > 0
    np.testing.assert_allclose(bottom.objects, expected, atol=1e-12)
    np.testing.assert_allclose(top.empty, state["levels.2.bias"][0], atol=1e-12)
    assert (middle.steps, top.steps) == (2, 2)


# -- estimators --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def threads() -> Graphs:
    return saen.generate_threads(60, average_nodes=15, seed=1)


@pytest.fixture(scope="module")
def model(threads) -> SAENClassifier:
    return SAENClassifier(radii=(0, 1), epochs=8).fit(threads, threads.targets)


def assert_complete(found: Explanation) -> None:
    for level in found.balance():
        total = level.attributed + level.not_attributed
        assert total == pytest.approx(found.output, abs=1e-8)
    assert found.contributions[-1].tolist() == pytest.approx([found.output])


def test_an_explanation_adds_up_to_the_mean_logit_of_the_networks(threads, model):
    for index in (0, 7, 33):
        found = explain(model, threads, index)
        assert_complete(found)
        network = model.network_
        logits = network(compress(model.decomposition_.decompose(threads[index]))).detach()
        assert found.output == pytest.approx(logits.mean().item(), rel=1e-4)
        empty = Graphs.from_edge_lists([[]], sizes=[0])
        nothing = network(compress(model.decomposition_.decompose(empty))).detach()
        assert found.baseline == pytest.approx(nothing.mean().item(), rel=1e-4)
        assert [len(level) for level in found.contributions] == list(
            found.decomposed.hierarchy.sizes
        )


def test_the_logit_of_one_network_is_its_decision(threads):
    model = SAENClassifier(radii=(0, 1), epochs=2, n_models=1).fit(threads, threads.targets)
    found = [explain(model, threads, i) for i in range(4)]
    assert [e.output for e in found] == pytest.approx(
        model.decision_function(threads[:4]), abs=1e-4
    )
    assert [e.prediction for e in found] == model.predict(threads[:4]).tolist()
    assert {e.target for e in found} == {"questions"}


def test_asking_for_the_first_of_two_classes_turns_all_signs_round(threads, model):
    one, other = (explain(model, threads, 3, target=t) for t in ("questions", "discussion"))
    for a, b in zip(one.contributions, other.contributions, strict=True):
        np.testing.assert_allclose(a, -b)
    assert one.evidence(1.0) == other.evidence(-1.0) == "for questions"
    assert one.evidence(-1.0) == other.evidence(1.0) == "for discussion"


def test_of_many_classes_each_has_its_own_logit():
    graphs = saen.generate_threads(45, n_classes=3, average_nodes=12, seed=2)
    model = SAENClassifier(radii=(0, 1), epochs=3, n_models=1).fit(graphs, graphs.targets)
    usual = explain(model, graphs, 4)
    assert usual.target == usual.prediction == model.predict(graphs[4])[0]
    each = [explain(model, graphs, 4, target=name) for name in model.classes_]
    shares = softmax([found.output for found in each])
    np.testing.assert_allclose(shares, model.predict_proba(graphs[4])[0], atol=1e-4)
    for found in each:
        assert_complete(found)
        assert found.evidence(1.0) == f"for {found.target}"
        assert found.evidence(-1.0) == f"against {found.target}"


def test_a_regression_is_explained_in_the_units_of_y(threads):
    y = np.column_stack([threads.sizes * 10.0, -threads.sizes])
    model = SAENRegressor(radii=(0, 1), epochs=3).fit(threads, y)
    for column in (0, 1):
        found = explain(model, threads, 5, target=column)
        assert found.output == pytest.approx(model.predict(threads[5])[0, column], rel=1e-4)
        assert_complete(found)
    assert (found.classes, found.evidence(1.0), found.evidence(-1.0)) == ((), "higher", "lower")
    single = SAENRegressor(radii=(0, 1), epochs=1).fit(threads, threads.sizes)
    alone = explain(single, threads, 5)
    assert (alone.target, alone.output) == (0, pytest.approx(single.predict(threads[5])[0]))
    assert explain_collection(single, threads, k=2).targets == ("lower", "higher")


def test_the_order_of_nodes_does_not_matter(threads, model):
    graph = threads[8]
    order = np.random.default_rng(0).permutation(graph.n_nodes)
    turned = Graphs.from_edges(np.argsort(order)[graph.edges()], [graph.n_nodes])
    one, other = explain(model, graph), explain(model, turned)
    np.testing.assert_allclose(other.contributions[0], one.contributions[0][order], atol=1e-9)
    egos = (order[:, None] * 2 + np.arange(2)).ravel()
    np.testing.assert_allclose(other.contributions[1], one.contributions[1][egos], atol=1e-9)


def test_a_graph_without_nodes_is_explained_by_nothing(model):
    found = explain(model, Graphs.from_edge_lists([[]], sizes=[0]))
    assert found.output == pytest.approx(found.baseline)
    assert found.parts == ()
    assert found.top_parts(level=0) == []


def test_unseen_labels_and_isolated_nodes_are_explained_too(model):
    star = Graphs.from_edge_lists([[(0, i) for i in range(1, 300)]], sizes=[302])
    found = explain(model, star)
    assert_complete(found)
    assert any(part.what == "root unseen" for part in found.top_parts(1, 400))


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


def test_the_nodes_of_a_motif_that_decides_contribute_most():
    graphs, fresh = with_motif(0, 200), with_motif(1, 40)
    model = SAENClassifier("ego(radii=(1,))", epochs=20, n_models=1).fit(graphs, graphs.targets)
    assert (model.predict(fresh) == fresh.targets).mean() > 0.95
    hits = []
    for index in range(1, 40, 2):
        found = explain(model, fresh, index, k=1)
        motif = set(np.flatnonzero(fresh[index].node_labels != "C").tolist())
        hits.append(set(np.argsort(-found.contributions[0])[:2].tolist()) == motif)
        # The strongest ego graph holds both, and they are what counts inside it.
        best = found.parts[0]
        assert motif <= set(best.bottom.tolist())
        assert best.inside is not None
        assert best.inside.sum() == pytest.approx(best.contribution)
    assert np.mean(hits) >= 0.9


def test_parts_name_their_node_roles_and_labels(threads, model):
    found = explain(model, threads, 2, k=4)
    assert len(found.parts) == 4
    strengths = [abs(part.contribution) for part in found.parts]
    assert strengths == sorted(np.abs(found.contributions[1]), reverse=True)[:4]
    labels = model.decomposition_.decompose(threads[2]).attributes
    for part in found.parts:
        node, radius = divmod(part.number, 2)
        assert (part.level, part.node, part.roles) == (1, node, (f"radius {radius}",))
        assert part.what.startswith(f"root {labels.vocabulary[labels.codes[node]]}")
        near = threads[2].adjacency()[[node]].indices.tolist() if radius else []
        assert sorted({node, *near}) == part.bottom.tolist()
        assert part.inside.sum() == pytest.approx(part.contribution)
    node = found.top_parts(level=0, k=1)[0]
    assert (node.node, node.bottom.tolist()) == (node.number, [node.number])
    assert "root" in node.roles


@pytest.mark.parametrize(
    ("decomposition", "centred"),
    [
        ("ego(radii=(0, 1), edges=objects)", True),
        ("ego(radii=(0, 1), node_labels='degree,distance')", True),
        ("neighbourhoods(depth=2)", True),
        ("paths(radii=(1,), max_length=2)", True),
        ("nodes", True),
        ("edges", False),
    ],
)
def test_every_decomposition_of_graphs_is_explained(threads, decomposition, centred):
    model = SAENClassifier(decomposition, epochs=1, n_models=2).fit(threads, threads.targets)
    found = explain(model, threads, 1, k=3)
    assert_complete(found)
    for part in found.parts:
        assert (part.node is not None) == centred
        if part.node is not None:
            assert part.node in found.decomposed.nodes[part.bottom]
        assert part.inside.sum() == pytest.approx(part.contribution)
    nodes, edges = found.decomposed.nodes, found.decomposed.edges
    assert ((nodes >= 0) ^ (edges >= 0)).all()
    if "distance" in decomposition:
        labels = found.decomposed.hierarchy.attributes
        degrees = [labels.vocabulary[code][0] for code in labels.codes.tolist()]
        assert degrees == threads[1].degrees()[nodes].tolist()


def documents() -> Documents:
    good = [("dogs", 1, "nsubj"), ("win", None, "root")]
    bad = [("cats", 1, "nsubj"), ("lose", None, "root"), ("again", 1, "advmod")]
    return Documents.from_sentences(
        [[good, bad], [good], [bad, bad], [bad]] * 5, targets=["up", "up", "down", "down"] * 5
    )


def test_documents_are_explained_by_sentences_and_words():
    texts = documents()
    model = SAENClassifier("dependency_paths", epochs=20, n_models=1).fit(texts, texts.targets)
    found = explain(model, texts, 0, target="up")
    assert_complete(found)
    what = {part.what: part.contribution for part in found.parts}
    assert set(what) == {"dogs, win", "cats, lose, again"}
    assert what["dogs, win"] > what["cats, lose, again"]
    assert all(part.node is None for part in found.parts)
    best = explain_collection(model, texts, k=1).parts[0]
    assert best.part.what in what
    assert best.towards == ("up" if best.part.what == "dogs, win" else "down")


def test_nested_structures_are_explained_with_their_counts():
    pairs = [[("word", "yes")] * (3 - n) + [("word", "no")] * n for n in (0, 1, 2, 3)] * 6
    structures = NestedData(pairs, [0, 0, 1, 1] * 6, levels=("words", "notes"))
    model = SAENClassifier("nested", epochs=15, n_models=1).fit(structures, structures.targets)
    found = explain(model, structures, 1)
    assert_complete(found)
    by_word = {part.what: part.contribution for part in found.top_parts()}
    assert by_word["no"] > by_word["yes"]


def test_hierarchies_are_explained_as_they_are():
    hierarchy = random_hierarchy(2, n=20, depth=3)
    model = SAENClassifier(epochs=1, n_models=1).fit(hierarchy, np.arange(20) % 2)
    bare = 0
    for index in range(20):
        found = explain(model, hierarchy, index, k=1)
        assert_complete(found)
        assert found.decomposed.hierarchy.sizes == hierarchy.select([index]).sizes
        assert (found.settings, found.decomposed.graph) == ({}, None)
        bare += sum(
            int((np.diff(r.indptr) == 0).sum()) for r in found.decomposed.hierarchy.relations[:-1]
        )
    assert bare  # objects without parts are among them
    with pytest.raises(InputError, match="fitted on hierarchies: pass a Hierarchy"):
        explain(model, saen.generate_threads(3))


def test_json_holds_every_number_and_nothing_else(threads, model):
    found = explain(model, threads, 2, k=2)
    document = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert document["prediction"] == found.prediction
    assert document["classes"] == ["discussion", "questions"]
    assert document["parts"][0]["what"] == found.parts[0].what
    for level, values in enumerate(found.contributions):
        assert document["levels"][level]["contributions"] == values.tolist()
    entries = document["levels"][1]["entries"]
    assert entries["contribution"] == found.entries[0].tolist()
    assert set(entries["role"]) == {"root", "elem"}
    assert len(document["labels"]) == threads[2].n_nodes
    for array in (*found.contributions, *found.empty, *found.entries):
        assert not array.flags.writeable


# -- collections -------------------------------------------------------------------------------


def test_a_collection_is_the_sum_of_its_structures(threads, model):
    some = Graphs.concatenate([threads[:8], threads[2:5]])  # with duplicates
    collected = explain_collection(model, some, k=6)
    compressed = compress(model.decomposition_.decompose(some))
    totals = np.zeros(compressed.hierarchy.sizes[1])
    occurrences, holders = np.zeros_like(totals), np.zeros_like(totals)
    start = 0
    for index in range(len(some)):
        found = explain(model, some, index, k=1)
        classes = compressed.unique_of(1)[start : start + len(found.contributions[1])]
        start += len(classes)
        np.add.at(totals, classes, found.contributions[1])
        np.add.at(occurrences, classes, 1)
        holders[np.unique(classes)] += 1
    assert collected.targets == ("discussion", "questions")
    assert collected.occurrences.tolist() == occurrences.tolist()
    assert collected.examples.tolist() == holders.tolist()
    np.testing.assert_allclose(collected.means[:, 1] * occurrences, totals, atol=1e-8)
    np.testing.assert_allclose(collected.means[:, 0], -collected.means[:, 1])
    strongest = np.argsort(-np.abs(totals), kind="stable")[:6].tolist()
    assert [each.number for each in collected.parts] == strongest
    for each in collected.parts:
        assert each.total == pytest.approx(abs(totals[each.number]))
        assert each.towards == collected.targets[int(totals[each.number] > 0)]
        offset = int(some.node_offsets[each.index]) * 2
        assert compressed.unique_of(1)[offset + each.part.number] == each.number


def test_of_many_classes_parts_speak_for_the_one_they_raise_most():
    graphs = saen.generate_threads(45, n_classes=3, average_nodes=12, seed=2)
    model = SAENClassifier(radii=(0, 1), epochs=3, n_models=1).fit(graphs, graphs.targets)
    graphs = graphs[:6]
    collected = explain_collection(model, graphs, k=4)
    assert collected.targets == ("community 0", "community 1", "community 2")
    totals = collected.means * collected.occurrences[:, None]
    sums = np.zeros(3)
    for index in range(len(graphs)):
        each = [explain(model, graphs, index, target=name, k=1) for name in model.classes_]
        sums += [found.output - found.baseline for found in each]
    np.testing.assert_allclose(totals.sum(axis=0), sums, rtol=1e-6)
    for part in collected.parts:
        assert collected.targets.index(part.towards) == collected.means[part.number].argmax()
    assert json.loads(json.dumps(collected.to_json()))["parts"][0]["number"] == (
        collected.parts[0].number
    )


# -- mistakes ----------------------------------------------------------------------------------


def test_mistakes_are_named(threads, model):
    for index in (-1, 60):
        with pytest.raises(InputError, match=rf"no example {index}: they are 0 … 59"):
            explain(model, threads, index)
    with pytest.raises(InputError, match="no example 0: the data are empty"):
        explain(model, threads[:0])
    with pytest.raises(InputError, match="nothing to explain: the data are empty"):
        explain_collection(model, threads[:0])
    with pytest.raises(InputError, match="no class 'chat': choose from discussion, questions"):
        explain(model, threads, target="chat")
    with pytest.raises(InputError, match="towards all classes: omit the target"):
        explain_collection(model, threads, target="questions")
    with pytest.raises(InputError, match="parts lie on levels 0 … 1, not 2"):
        explain(model, threads).top_parts(level=2)
    with pytest.raises(NotFittedError):
        explain(SAENClassifier(), threads)
    with pytest.raises(InputError, match="explain takes a fitted estimator, not Ego"):
        explain(Ego(), threads)  # type: ignore[arg-type]
    regressor = SAENRegressor(radii=(0, 1), epochs=1).fit(threads, threads.sizes)
    with pytest.raises(InputError, match="no column of y '1': choose from 0"):
        explain(regressor, threads, target=1)


def test_another_vocabulary_of_roles_is_refused():
    hierarchy = random_hierarchy(3, n=8)
    model = SAENClassifier(epochs=0, n_models=1).fit(hierarchy, np.arange(8) % 2)
    relations = [replace(r, alphabet=("a", "b")) for r in hierarchy.relations]
    other = Hierarchy(hierarchy.attributes, tuple(relations), hierarchy.names)
    with pytest.raises(InputError, match="fitted on roles"):
        explain(model, other)


def test_a_network_that_is_not_finite_is_refused(threads):
    model = SAENClassifier(radii=(0, 1), epochs=0, n_models=1).fit(threads, threads.targets)
    with torch.no_grad():
        model.network_.levels[1].bias.fill_(float("nan"))
    with pytest.raises(InputError, match="the output of the network is not finite"):
        explain(model, threads)


def test_contributions_that_do_not_settle_are_refused(threads, model, monkeypatch):
    monkeypatch.setattr(attribution, "MOST_STEPS", 2)
    with pytest.raises(InputError, match="have not settled within 2 steps"):
        explain(model, threads)


def test_contributions_that_do_not_add_up_are_refused(threads, model, monkeypatch):
    monkeypatch.setattr(attribution, "_chord", lambda x, y, slope: torch.full_like(x, slope))
    with pytest.raises(InputError, match="contributions do not add up"):
        explain(model, threads)
    with pytest.raises(InputError, match="contributions do not add up"):
        explain_collection(model, threads)


def test_nothing_of_the_caller_s_is_changed(threads, model):
    before = {key: tensor.clone() for key, tensor in model.network_.state_dict().items()}
    model.network_.train()
    explain(model, threads, 1)
    explain_collection(model, threads, k=1)
    assert model.network_.dtype == torch.float32
    for key, tensor in model.network_.state_dict().items():
        assert torch.equal(tensor, before[key]), key


def test_an_object_without_parts_keeps_what_it_contributes():
    words = Attributes(np.array([0]), Vocabulary(["a"]))
    lower = Relation([0, 1, 1], [0], [0], ("part",), 1)  # the second object is empty
    upper = Relation([0, 2], [0, 1], [0, 0], ("part",), 2)
    network = make_network(Hierarchy(words, (lower, upper)), outputs=1)
    _, (bottom, middle, top) = contributions_of(network, Hierarchy(words, (lower, upper)), [1.0])
    assert middle.objects[1] == pytest.approx(middle.empty[1])
    assert bottom.objects[0] == pytest.approx(middle.objects[0])
    total = top.empty[0] + middle.objects[1] + bottom.objects[0]
    assert total == pytest.approx(top.objects[0])
