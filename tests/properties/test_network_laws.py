"""Laws of the network on random hierarchies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from saen import Attributes, Compressed, Hierarchy, Relation, Vocabulary, compress
from saen.network import SAEN, Task
from saen.network.architecture import NORMALIZATIONS, Architecture
from saen.network.batches import cut_batches, hierarchy_and_top, seen_in_training
from saen.network.forward import TrainedNetworks
from saen.network.model import Level
from saen.network.tensors import HierarchyTensors, RelationTensors
from tests.properties.strategies import hierarchies, orders, reordered
from tests.references import networks as reference
from tests.references.networks import DEVICES, assert_close, make_network, numbers

MODELS = 2
TOLERANCE = 1e-10
# With the statistics of the batch: see `gentle`.
TOLERANCE_IN_TRAINING = 1e-7


def gentle(hierarchy: Hierarchy) -> Hierarchy:
    """The same hierarchy with counts up to three.

    Where all objects of a level agree, normalising multiplies the rounding of their aggregate by
    1 / √ε. That is no matter for the laws, unless aggregates are huge and levels many.
    """
    relations = [
        r if r.counts is None else replace(r, counts=1 + r.counts % 3) for r in hierarchy.relations
    ]
    return Hierarchy(hierarchy.attributes, tuple(relations), hierarchy.names)


random_hierarchies = hierarchies().map(gentle)
seeds = st.integers(0, 2**32 - 1)
normalizations = st.sampled_from(NORMALIZATIONS)


@st.composite
def architectures(draw: st.DrawFn, depth: int, outputs: int) -> list[list[int]]:
    """Layer sizes of every level, one to three layers each."""
    sizes = st.lists(st.integers(1, 4), min_size=1, max_size=3)
    return [*(draw(sizes) for _ in range(depth)), [*draw(st.lists(st.integers(1, 4))), outputs]]


@st.composite
def networks(draw: st.DrawFn, hierarchy: Hierarchy, outputs: int = 2, device: str = "cpu") -> SAEN:
    """Two float64 networks over a hierarchy, of any shape, with statistics of their own."""
    network = make_network(
        hierarchy,
        seeds=[draw(seeds), draw(seeds)],
        layers=draw(architectures(hierarchy.depth, outputs)),
        normalization=draw(normalizations),
        negative_slope=draw(st.sampled_from([0.0, 0.01, 0.2])),
    )
    rng = np.random.default_rng(draw(seeds))
    for key, buffer in network.named_buffers():
        if key.endswith(("norm.mean", "norm.variance")):
            buffer.copy_(torch.from_numpy(rng.uniform(0.5, 2.0, buffer.shape)))
    return network.to(device)


@st.composite
def tasks(draw: st.DrawFn, n: int) -> Task:
    """Any targets, some with gaps; every model trains on some examples, perhaps repeatedly."""
    rng = np.random.default_rng(draw(seeds))
    weights = rng.integers(0, 3, (n, MODELS)).astype(np.float64)
    loss = draw(st.sampled_from(["binary", "several", "classes", "squares"]))
    if loss == "squares":
        gaps = rng.random((n, 2)) < draw(st.sampled_from([0.0, 0.3]))
        return Task("squares", np.where(gaps, np.nan, rng.normal(size=(n, 2))), weights)
    if loss == "several":
        factors = draw(st.sampled_from([None, rng.uniform(0.5, 2.0, 6)]))
        targets = rng.integers(-1, 2, (n, 3))
        return Task("binary", targets, weights, class_weights=factors, n_classes=2)
    n_classes = 2 if loss == "binary" else 3
    class_weights = draw(st.sampled_from([None, rng.uniform(0.5, 2.0, n_classes)]))
    targets = rng.integers(0, n_classes, n)
    return Task(loss, targets, weights, class_weights=class_weights, n_classes=n_classes)


def copied(network: SAEN) -> SAEN:
    """Another network with the same weights and statistics."""
    other = SAEN(network.architecture, [0] * network.n_models, dtype=network.dtype)
    other.load_state_dict(network.state_dict())
    return other.to(network.device)


def learn_from(
    network: SAEN, data: Hierarchy | Compressed, task: Task
) -> tuple[torch.Tensor, torch.Tensor, list[torch.Tensor]]:
    """Outputs of the examples, mean losses and gradients of one full training batch.

    Outputs are those of each model for its training examples, and zero for others.
    """
    network.train()
    [batch] = cut_batches(network, data, task, 1, seed=0)
    made = network(batch.tensors, batch.uses)
    loss, weight = task.losses(made, batch.targets)
    losses = loss / weight.clamp_min(1e-300)
    _, top = hierarchy_and_top(data)
    trained = task.weights > 0
    reached = trained.any(axis=1)
    outputs = torch.zeros(*trained.shape, task.n_outputs, dtype=made.dtype, device=made.device)
    outputs[torch.from_numpy(reached)] = made[np.unique(top[reached], return_inverse=True)[1]]
    outputs *= torch.from_numpy(trained)[..., None].to(outputs)
    return outputs, losses, list(torch.autograd.grad(losses.sum(), list(network.parameters())))


def assert_same_gradients(
    one: list[torch.Tensor], other: list[torch.Tensor], tolerance: float = TOLERANCE
) -> None:
    """Equal up to a share of the largest entry; where a gradient vanishes, up to rounding."""
    largest = max((float(g.abs().max()) for g in other if g.numel()), default=0.0)
    for a, b in zip(one, other, strict=True):
        gap = np.abs(numbers(a) - numbers(b)).max(initial=0.0)
        size = np.abs(numbers(b)).max(initial=0.0)
        assert gap <= tolerance * (size + largest / 10), f"{gap:.3g} of {size:.3g}, {largest:.3g}"


def assert_same_statistics(one: SAEN, other: SAEN) -> None:
    for (key, a), (_, b) in zip(one.named_buffers(), other.named_buffers(), strict=True):
        assert_close(a, b, TOLERANCE, key, floor=reference.EPSILON)


# -- the equations -----------------------------------------------------------------------------


@given(st.data())
@pytest.mark.parametrize("training", [False, True], ids=["predicting", "training"])
@pytest.mark.parametrize("device", DEVICES)
def test_network_levels_are_what_the_papers_equations_say(
    device: str, training: bool, data: st.DataObject
) -> None:
    hierarchy = data.draw(random_hierarchies)
    network = data.draw(networks(hierarchy, device=device)).train(training)
    weights = np.array(
        data.draw(
            st.lists(
                st.integers(0, 3),
                min_size=len(hierarchy) * MODELS,
                max_size=len(hierarchy) * MODELS,
            )
        ),
        dtype=np.float64,
    )
    weights = weights.reshape(len(hierarchy), MODELS)
    uses = network.to_tensors(hierarchy).uses(torch.from_numpy(weights).to(device))
    expected = [
        reference.forward(network, hierarchy, model, weights[:, model], training)
        for model in range(MODELS)
    ]
    made = [network(hierarchy, uses, level=level) for level in range(hierarchy.depth)]
    made.append(network(hierarchy, uses))
    for level, h in enumerate(made):
        for model in range(MODELS):
            assert_close(h[:, model], expected[model].h[level], TOLERANCE, f"level {level}")


@given(st.data())
def test_uses_count_how_often_examples_use_each_object(data: st.DataObject) -> None:
    hierarchy = data.draw(hierarchies())
    network = make_network(hierarchy)
    top = np.random.default_rng(data.draw(seeds)).uniform(0.0, 2.0, len(hierarchy))
    made = network.to_tensors(hierarchy).uses(torch.from_numpy(top)[:, None])
    for uses, expected in zip(made, reference.use_counts(hierarchy, top), strict=True):
        assert_close(uses[:, 0], expected, 1e-12)


@given(st.data())
def test_unseen_labels_and_roles_contribute_nothing(
    data: st.DataObject,
) -> None:
    hierarchy = data.draw(random_hierarchies)
    network = data.draw(networks(hierarchy))
    weights = np.array(
        [[data.draw(st.integers(0, 1)) for _ in range(MODELS)] for _ in range(len(hierarchy))]
    ).reshape(len(hierarchy), MODELS)
    min_count = data.draw(st.integers(1, 2))
    seen = seen_in_training(hierarchy, np.arange(len(hierarchy)), weights, min_count)
    for model in range(MODELS):
        labels, roles = contained_in(hierarchy, np.flatnonzero(weights[:, model]))
        rare = {label for label, count in labels.items() if count < min_count}
        shared = network.architecture.labels
        entries = [
            shared
            if label in rare or (rare and label not in labels)
            else label
            if label in labels
            else shared + 1
            for label in [*range(shared), None]
        ]
        assert seen[0][model].tolist() == entries
        for level, seen_roles in enumerate(seen[1]):
            assert np.flatnonzero(seen_roles[:, model]).tolist() == sorted(roles[level])
    network.restrict_to_seen(*seen)
    made = network.eval()(hierarchy)
    for model in range(MODELS):
        assert_close(made[:, model], reference.forward(network, hierarchy, model).h[-1], TOLERANCE)


@given(st.data())
def test_forward_in_numpy_gives_what_the_network_gives(data: st.DataObject) -> None:
    hierarchy = data.draw(random_hierarchies)
    network = data.draw(networks(hierarchy)).eval()
    weights = np.random.default_rng(data.draw(seeds)).integers(0, 2, (len(hierarchy), MODELS))
    network.restrict_to_seen(*seen_in_training(hierarchy, np.arange(len(hierarchy)), weights))
    trained = TrainedNetworks.of(network)
    for level in (*range(hierarchy.depth + 1), None):
        h = network(hierarchy, level=level)
        assert_close(trained.outputs(hierarchy, level), h, TOLERANCE, f"level {level}")
    every_example = trained.outputs(hierarchy, budget=1)
    assert_close(every_example, trained.outputs(hierarchy), TOLERANCE)


def contained_in(hierarchy: Hierarchy, rows: np.ndarray) -> tuple[dict[int, int], list[set[int]]]:
    """In how many of the examples each label occurs, and the roles that occur on every level."""
    labels: dict[int, int] = {}
    roles: list[set[int]] = [set() for _ in hierarchy.relations]
    for row in rows:
        here = {int(row)}
        for level in range(hierarchy.depth, 0, -1):
            below = set()
            for parent in here:
                for role, part, _ in reference.entries_of(hierarchy.relations[level - 1], parent):
                    roles[level - 1].add(role)
                    below.add(part)
            here = below
        codes = hierarchy.attributes.codes
        held = set() if codes is None else {int(codes[part]) for part in here} - {-1}
        for label in held:
            labels[label] = labels.get(label, 0) + 1
    return labels, roles


# -- compression -------------------------------------------------------------------------------


@given(st.data())
@pytest.mark.parametrize("device", DEVICES)
def test_compressed_outputs_losses_and_gradients_are_those_of_the_original(
    device: str, data: st.DataObject
) -> None:
    hierarchy = data.draw(random_hierarchies)
    compressed = compress(hierarchy)
    task = data.draw(tasks(len(hierarchy)))
    network = data.draw(networks(hierarchy, task.n_outputs, device))
    other = copied(network)
    outputs, losses, gradients = learn_from(network, hierarchy, task)
    outputs_comp, losses_comp, gradients_comp = learn_from(other, compressed, task)
    assert_close(outputs_comp, outputs, TOLERANCE)
    assert_close(losses_comp, losses, TOLERANCE)
    assert_same_gradients(gradients_comp, gradients)
    assert_same_statistics(other, network)


@given(st.data())
def test_compressed_levels_expand_to_those_of_the_original(data: st.DataObject) -> None:
    hierarchy = data.draw(random_hierarchies)
    training = data.draw(st.booleans())
    network = data.draw(networks(hierarchy)).train(training)
    other = copied(network).train(training)
    compressed = compress(hierarchy)
    for level in [*range(hierarchy.depth + 1), None]:
        h = network(hierarchy, level=level)
        h_comp = other(compressed, level=level)
        assert_close(h_comp, h, TOLERANCE, f"level {level}")


@given(st.data())
def test_histograms_give_the_losses_of_the_single_targets(data: st.DataObject) -> None:
    n_rows, n = data.draw(st.integers(1, 4)), data.draw(st.integers(0, 8))
    task = data.draw(tasks(n))
    row_of = np.array(data.draw(st.lists(st.integers(0, n_rows - 1), min_size=n, max_size=n)), int)
    rng = np.random.default_rng(data.draw(seeds))
    outputs = torch.from_numpy(rng.normal(size=(n_rows, MODELS, task.n_outputs)))
    everything = np.arange(n)
    merged = torch.from_numpy(task.histograms(everything, row_of, n_rows, task.weights))
    single = torch.from_numpy(task.histograms(everything, everything, n, task.weights))
    for a, b in zip(
        task.losses(outputs, merged), task.losses(outputs[row_of], single), strict=True
    ):
        assert_close(a, b, 1e-12)
    assert_close(task.correct(outputs, merged), task.correct(outputs[row_of], single), 1e-12)


# -- symmetries --------------------------------------------------------------------------------


@given(st.data())
def test_permutation_of_objects_and_entries_changes_nothing(data: st.DataObject) -> None:
    hierarchy = data.draw(random_hierarchies)
    task = data.draw(tasks(len(hierarchy)))
    network = data.draw(networks(hierarchy, task.n_outputs))
    order = data.draw(orders(hierarchy))
    shuffled = replace(task, targets=task.targets[order[-1]], weights=task.weights[order[-1]])
    other = copied(network)
    outputs, losses, gradients = learn_from(network, hierarchy, task)
    permuted, losses_too, gradients_too = learn_from(other, reordered(hierarchy, order), shuffled)
    assert_close(permuted, outputs[order[-1]], TOLERANCE)
    assert_close(losses_too, losses, TOLERANCE)
    assert_same_gradients(gradients_too, gradients)
    assert_same_statistics(other, network)


@given(st.data())
def test_predictions_do_not_depend_on_the_other_examples(data: st.DataObject) -> None:
    hierarchy = data.draw(random_hierarchies)
    network = data.draw(networks(hierarchy)).eval()
    rows = np.array(data.draw(st.lists(st.sampled_from(range(max(len(hierarchy), 1))))), int)
    rows = rows[rows < len(hierarchy)]
    assert_close(network(hierarchy[rows]), network(hierarchy)[rows], TOLERANCE)


@given(st.data())
@pytest.mark.parametrize("device", DEVICES)
def test_aggregation_gives_the_same_before_and_after_the_first_layer(
    device: str, data: st.DataObject
) -> None:
    hierarchy = data.draw(hierarchies())
    task = data.draw(tasks(len(hierarchy)))
    network = data.draw(networks(hierarchy, task.n_outputs, device)).train(data.draw(st.booleans()))
    direction = torch.from_numpy(
        np.random.default_rng(data.draw(seeds)).normal(
            size=(len(hierarchy), MODELS, task.n_outputs)
        )
    ).to(device)

    def run(choose: Callable[[Level, RelationTensors], Any]) -> tuple[torch.Tensor, list[Any]]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Level, "aggregation", choose)
            outputs = network(hierarchy)
        gradients = torch.autograd.grad((outputs * direction).sum(), list(network.parameters()))
        return outputs, list(gradients)

    before = run(lambda self, relation: relation.project_first)
    after = run(lambda self, relation: relation.aggregate_first)
    # A batch without any variance magnifies rounding, and moments are made in two ways.
    tolerance = TOLERANCE_IN_TRAINING if network.training else TOLERANCE
    assert_close(before[0], after[0], tolerance)
    assert_same_gradients(before[1], after[1], tolerance)


@given(st.data())
def test_ensemble_outputs_and_gradients_are_those_of_its_models_alone(data: st.DataObject) -> None:
    hierarchy = data.draw(random_hierarchies)
    task = data.draw(tasks(len(hierarchy)))
    network = data.draw(networks(hierarchy, task.n_outputs))
    model = data.draw(st.integers(0, MODELS - 1))
    alone = SAEN(network.architecture, [0], dtype=network.dtype)
    state = reference.of_model(network, model)
    for key, tensor in alone.state_dict().items():
        tensor.copy_(state[key].reshape(tensor.shape))
    outputs, losses, gradients = learn_from(network, hierarchy, task)
    alone_too = learn_from(alone, hierarchy, reference.models_of(task, [model]))
    assert_close(outputs[:, [model]], alone_too[0], TOLERANCE)
    assert_close(losses[[model]], alone_too[1], TOLERANCE)
    assert_same_gradients([g[[model]] for g in gradients], alone_too[2])


@pytest.mark.parametrize("device", DEVICES)
@given(data=st.data())
def test_aggregation_gives_the_same_without_empty_rows(device: str, data: st.DataObject) -> None:
    hierarchy = data.draw(random_hierarchies)
    network = data.draw(networks(hierarchy, device=device))
    network.train(data.draw(st.booleans()))
    start = {key: value.clone() for key, value in network.state_dict().items()}
    weights = np.random.default_rng(data.draw(seeds)).uniform(0, 2, (len(hierarchy), MODELS))
    results = []
    for min_fill_ratio in (0.0, 2.0):  # all rows, only those with parts
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("saen.network.tensors.MIN_FILL_RATIO", min_fill_ratio)
            network.load_state_dict(start)
            tensors = HierarchyTensors(hierarchy, dtype=network.dtype, device=network.device)
            uses = tensors.uses(torch.from_numpy(weights).to(network.device))
            outputs = network(tensors, uses)
            gradients = torch.autograd.grad(
                outputs.square().sum(), list(network.parameters()), allow_unused=True
            )
            results.append([outputs, *uses, *gradients, *network.state_dict().values()])
        for relation in tensors.relations:
            assert relation.skips_empty_rows == (min_fill_ratio > 0 and relation.n_parents > 0)
    # Gradients that are zero but for rounding are judged by the largest of all.
    largest = max(np.abs(numbers(one)).max(initial=1.0) for one in results[0] if one is not None)
    tolerance = TOLERANCE_IN_TRAINING if network.training else TOLERANCE
    for one, other in zip(*results, strict=True):
        if one is not None:
            assert_close(numbers(one), numbers(other), tolerance, floor=largest)


@pytest.mark.parametrize("n", [100_000, 1_000_000])
def test_compressed_equals_uncompressed_in_float32_at_hubs(n):
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 10, n).astype(np.int32)
    entries = np.r_[np.arange(n), 0, 1, 2]
    hub = Relation([0, n, n + 3], entries, np.zeros(n + 3, np.int64), ("part",), n)
    hierarchy = Hierarchy(Attributes(codes, Vocabulary(range(10))), (hub,), ("nodes", "graphs"))
    network = SAEN(Architecture.over(hierarchy, [[8], [8, 3]]), seeds=[0, 1]).eval()
    with torch.no_grad():
        whole, small = network(hierarchy), network(compress(hierarchy))
    assert (whole - small).abs().max() < 1e-5 * whole.abs().max()
    assert_close(TrainedNetworks.of(network).outputs(hierarchy), small, 1e-5)
