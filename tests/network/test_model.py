from __future__ import annotations

import copy
import pickle
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from torch.autograd import gradcheck

from saen import Attributes, Graphs, Hierarchy, InputError, Relation, Vocabulary, compress
from saen.data.content_hash import mix
from saen.decompositions import Ego
from saen.network import SAEN, Architecture
from saen.network.batches import generator, seen_in_training
from saen.network.model import LaterLayers, _draw
from saen.network.tensors import HierarchyTensors
from tests.references.networks import (
    assert_close,
    assert_same_state,
    make_network,
    of_model,
    random_hierarchy,
)
from tests.refusals import refuses


@pytest.mark.parametrize("normalization", ["none", "batch"])
@pytest.mark.parametrize("kind", ["codes", "vectors", "both"])
def test_network_gradients_are_those_of_its_outputs(kind: str, normalization: str) -> None:
    hierarchy = random_hierarchy(3, n=6, kind=kind, patterns=4, n_labels=2)
    network = make_network(hierarchy, seeds=[0, 1], normalization=normalization).train()
    names = [name for name, _ in network.named_parameters()]

    def outputs(*parameters: torch.Tensor) -> torch.Tensor:
        state = dict(zip(names, parameters, strict=True))
        return torch.func.functional_call(network, state, (hierarchy,))

    parameters = tuple(p.detach().clone().requires_grad_() for p in network.parameters())
    assert gradcheck(outputs, parameters, fast_mode=True)


def test_network_outputs_pass_through_the_activation_only_if_asked() -> None:
    hierarchy = random_hierarchy(3, n=6)
    options: dict[str, Any] = {"seeds": [0, 1], "negative_slope": 0.2, "dropout": 0.5}
    plain = make_network(hierarchy, **options)(hierarchy)
    network = make_network(hierarchy, **options, output_activation=True)
    assert (plain < 0).any()
    assert torch.equal(network(hierarchy), torch.where(plain < 0, 0.2 * plain, plain))
    outputs = network.train()(hierarchy)
    assert (outputs != 0).all()  # dropout is for hidden units


# -- architecture ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"layers": ((2,), (2,))},
            "3 levels need as many non-empty lists of layer sizes, found ((2,), (2,))",
        ),
        (
            {"layers": ((2,), (), (2,))},
            "3 levels need as many non-empty lists of layer sizes, found ((2,), (), (2,))",
        ),
        ({"layers": ((2,), (0,), (2,))}, "layer sizes must be 1 … 10,000: ((2,), (0,), (2,))"),
        ({"normalization": "layer"}, "normalization is one of batch, none, not 'layer'"),
        ({"dropout": 1.0}, "dropout must be at least 0 and below 1, not 1.0"),
        ({"dropout": -0.1}, "dropout must be at least 0 and below 1, not -0.1"),
    ],
)
def test_architectures_out_of_range_are_refused(options: dict[str, Any], message: str) -> None:
    valid = {"labels": 3, "vectors": 0, "roles": (1, 1), "layers": ((2,), (2,), (2,))}
    with refuses(message):
        Architecture(**(valid | options))


def test_network_without_seeds_is_refused() -> None:
    with pytest.raises(InputError, match="a network needs at least one seed"):
        SAEN(Architecture(2, 0, (1,), ((2,), (2,))), [])


@pytest.mark.parametrize("depth", [1, 2, 4])
def test_network_outputs_have_one_row_per_example_and_one_column_per_model(depth: int) -> None:
    hierarchy = random_hierarchy(0, n=5, depth=depth)
    network = make_network(hierarchy, outputs=3, seeds=[0, 1])
    assert network(hierarchy).shape == (5, 2, 3)
    assert network(compress(hierarchy)).shape == (5, 2, 3)
    for level, size in enumerate(hierarchy.sizes[:-1]):
        assert network(hierarchy, level=level).shape == (size, 2, 3)
    assert network(hierarchy, level=depth).shape == (5, 2, 4)


def test_network_representation_of_the_top_is_the_input_of_its_output_layer() -> None:
    hierarchy = random_hierarchy(0)
    network = make_network(hierarchy).eval()
    layers, h = network.level(2).layers, network(hierarchy, level=2)
    outputs = h[:, 0] @ layers.weights[-1][0] + layers.biases[-1][0]
    assert_close(outputs, network(hierarchy)[:, 0], 1e-14)


@pytest.mark.parametrize("level", [-1, 3])
def test_network_refuses_a_level_that_does_not_exist(level: int) -> None:
    hierarchy = random_hierarchy(0)
    with pytest.raises(InputError, match=f"levels are 0 … 2, not {level}"):
        make_network(hierarchy)(hierarchy, level=level)


# -- weights -----------------------------------------------------------------------------------


def test_weights_depend_only_on_the_seed_of_their_model() -> None:
    architecture = Architecture.over(random_hierarchy(0), [[3], [4, 3], [4, 2]])
    many = SAEN(architecture, [5, (5, 1), 7, (7, 2, 3)])
    for model, seed in enumerate([5, (5, 1), 7, (7, 2, 3)]):
        alone = of_model(SAEN(architecture, [seed]), 0)
        for key, tensor in of_model(many, model).items():
            assert torch.equal(tensor, alone[key]), key


def test_weights_of_different_seeds_differ() -> None:
    architecture = Architecture.over(random_hierarchy(0), [[3], [4, 3], [4, 2]])
    network = SAEN(architecture, [0, 1, (0, 1), (1, 0), 2**31])
    for parameter in network.parameters():
        if parameter.ndim == 3:
            assert len({model.numpy().tobytes() for model in parameter.detach()}) == 5


def test_weights_are_the_same_in_both_precisions() -> None:
    architecture = Architecture.over(random_hierarchy(0), [[3], [4, 3], [4, 2]])
    single, double = SAEN(architecture, [3]), SAEN(architecture, [3], dtype=torch.float64)
    for a, b in zip(single.parameters(), double.parameters(), strict=True):
        assert (a.dtype, b.dtype) == (torch.float32, torch.float64)
        assert torch.equal(a, b.float())


def labelled(words: list[str], roles: list[str]) -> Hierarchy:
    """One example whose parts have all of these labels, in all of these roles."""
    n = len(words) * len(roles)
    entries = (
        np.repeat(np.arange(len(words)), len(roles)),
        np.tile(np.arange(len(roles)), len(words)),
    )
    relation = Relation([0, n], *entries, tuple(roles), len(words))
    attributes = Attributes(np.arange(len(words)), Vocabulary(words))
    return Hierarchy(attributes, (relation,))


def test_first_weights_of_a_label_or_role_do_not_depend_on_the_others() -> None:
    few, many = labelled(["b", "d"], ["x", "y"]), labelled(["a", "b", "c", "d"], ["z", "y", "x"])
    weights = np.ones((1, 2))
    seen_of_few = seen_in_training(few, np.zeros(1, int), weights)
    # Of the many labels and roles, those of the few are seen.
    labels = torch.tensor([[5, 1, 5, 3, 5]] * 2)
    seen_of_many = labels, [torch.tensor([[False], [True], [True]]).expand(-1, 2)]
    one, other = (
        SAEN(
            Architecture.over(hierarchy, [[3], [4, 2]]),
            [0, (1, 2)],
            schema=hierarchy,
            seen=seen,
        )
        for hierarchy, seen in ((few, seen_of_few), (many, seen_of_many))
    )
    assert torch.equal(one.bottom.table, other.bottom.table[:, [1, 3, 4]])
    assert len(torch.unique(other.bottom.table)) == other.bottom.table.numel()
    first, second = (n.level(1).weight.view(2, -1, 3, 4) for n in (one, other))
    assert torch.equal(first, second[:, [2, 1]])
    assert len(torch.unique(second)) == second.numel()
    for a, b in zip(
        one.level(1).layers.parameters(), other.level(1).layers.parameters(), strict=True
    ):
        assert torch.equal(a, b)


def test_first_weights_are_as_large_as_the_inputs_that_are_seen_ask_for() -> None:
    hierarchy = labelled(["a", "b"], [str(n) for n in range(40)])
    architecture = Architecture.over(hierarchy, [[50], [50, 2]])
    network = SAEN(architecture, [0], schema=hierarchy)
    entries, roles = torch.tensor([[0, 1, 3]]), [torch.zeros(40, 1, dtype=torch.bool)]
    roles[0][:10] = True
    part = SAEN(architecture, [0], schema=hierarchy, seen=(entries, roles))
    for each, n_seen in ((network, 40), (part, 10)):
        scale = each.level(1).weight.detach().std().item()
        assert scale == pytest.approx((n_seen * 50) ** -0.5, rel=0.02)


# -- statistics --------------------------------------------------------------------------------


def test_statistics_do_not_change_in_prediction() -> None:
    hierarchy = random_hierarchy(0)
    network = make_network(hierarchy, normalization="batch").train()
    network(hierarchy)
    before = copy.deepcopy(network)
    network.eval()
    network(random_hierarchy(1))
    assert_same_state(network, before)


def test_statistics_of_a_model_without_examples_in_a_batch_do_not_change() -> None:
    hierarchy = random_hierarchy(0)
    network = make_network(hierarchy, seeds=[0, 1], normalization="batch").train()
    network(hierarchy)
    before = copy.deepcopy(network)
    top = torch.ones(len(hierarchy), 2, dtype=torch.float64)
    top[:, 1] = 0
    other = random_hierarchy(1)
    network(other, network.to_tensors(other).uses(top))
    for key, tensor in of_model(network, 1).items():
        assert torch.equal(tensor, of_model(before, 1)[key]), key
    assert not torch.equal(network.levels[1].norm.mean, before.levels[1].norm.mean)


# -- dropout -----------------------------------------------------------------------------------


def test_dropout_drops_its_share_of_units_and_scales_the_rest() -> None:
    architecture = Architecture(2, 0, (1,), ((2,), (50, 2)), dropout=0.3)
    layers = LaterLayers(architecture, 1, 4)
    layers.offsets.copy_(torch.tensor([0.0, 0.1, 0.55, 0.99]))
    x = torch.ones(4, 400, 50)
    keys = mix(np.arange(400, dtype=np.uint64))
    dropped = layers.activate(x, partial(_draw, generator(0, "test"), keys))
    assert set(torch.unique(dropped).tolist()) == {0.0, np.float32(1 / 0.7)}
    assert (dropped == 0).double().mean(dim=(1, 2)).numpy() == pytest.approx(0.3, abs=0.01)
    assert len({mask.numpy().tobytes() for mask in dropped}) == 4
    assert torch.equal(layers.eval().activate(x, partial(_draw, generator(0, "test"), keys)), x)


def test_dropout_draws_uniform_numbers_of_objects_units_and_times() -> None:
    keys, noise = mix(np.arange(300, dtype=np.uint64)), generator(0, "test")
    draws = torch.stack([_draw(noise, keys, 40) for _ in range(3)])
    counts, _ = np.histogram(draws, bins=10, range=(0, 1))
    assert counts == pytest.approx(3600, rel=0.05)
    flat = draws.reshape(3, -1)
    assert (torch.corrcoef(flat).fill_diagonal_(0).abs() < 0.03).all()
    assert len(torch.unique(flat)) == flat.numel()


def test_dropout_of_an_example_does_not_depend_on_the_other_examples() -> None:
    hierarchy = random_hierarchy(0)
    network = make_network(hierarchy, seeds=[3, 4], dropout=0.5).train()
    whole = network(hierarchy, noise=generator(0, "test"))
    rows = np.array([7, 2, 20])
    assert_close(network(hierarchy[rows], noise=generator(0, "test")), whole[rows], 1e-12)
    assert_close(network(compress(hierarchy), noise=generator(0, "test")), whole, 1e-12)
    assert not torch.equal(whole, network(hierarchy))


def test_dropout_of_a_model_does_not_depend_on_the_other_models() -> None:
    hierarchy = random_hierarchy(0)
    together = make_network(hierarchy, seeds=[3, 4, 5], dropout=0.5).train()
    alone = make_network(hierarchy, seeds=[5], dropout=0.5).train()
    one = together(hierarchy, noise=generator(0, "test"))[:, 2]
    other = alone(hierarchy, noise=generator(0, "test"))[:, 0]
    assert_close(one, other, 1e-12)
    assert not torch.equal(together(hierarchy, noise=generator(1, "test"))[:, 2], one)


# -- tensors and devices -----------------------------------------------------------------------


def test_network_builds_its_tensors_once() -> None:
    hierarchy = random_hierarchy(0)
    network = make_network(hierarchy, normalization="batch").train()
    for data in (compress(hierarchy), hierarchy):
        tensors = network.to_tensors(data)
        relation, uses = tensors.relations[0], tensors.default_uses(1)
        aggregation = network.level(1).aggregation(relation)
        network(data).sum().backward()
        assert network.to_tensors(data) is tensors
        assert tensors.default_uses(1) is uses
        assert network.level(1).aggregation(relation) is aggregation


def test_tensors_take_what_they_gave_back_again() -> None:
    hierarchy = random_hierarchy(0)
    network = make_network(hierarchy, dropout=0.5).eval()
    examples = np.arange(0, len(hierarchy), 2)
    how = {"dtype": network.dtype, "device": network.device}
    tensors = HierarchyTensors(hierarchy, **how, examples=examples)
    tensors.release()
    assert torch.equal(network(tensors), network(hierarchy[examples]))
    tensors.release()
    whole = HierarchyTensors(hierarchy[examples], **how)
    for one, other in zip(tensors.relations, whole.relations, strict=True):
        for way in ("aggregate_first", "project_first"):
            matrices = (getattr(each, way).matrix.to_scipy() for each in (one, other))
            assert (next(matrices) != next(matrices)).nnz == 0
    assert all(map(np.array_equal, tensors.keys, whole.keys))


def test_network_that_ran_in_inference_mode_can_be_trained() -> None:
    hierarchy = random_hierarchy(0)
    network = make_network(hierarchy, normalization="batch").train()
    with torch.inference_mode():
        network(hierarchy)
    network(hierarchy).sum().backward()
    assert all(parameter.grad is not None for parameter in network.parameters())


def test_network_converted_to_another_precision_rebuilds_its_tensors() -> None:
    hierarchy = random_hierarchy(0)
    network = make_network(hierarchy)
    outputs = network(hierarchy)
    single = network.float()
    assert single(hierarchy).dtype == torch.float32
    assert_close(single(hierarchy), outputs, 1e-5)


def test_network_refuses_tensors_of_another_precision() -> None:
    hierarchy = random_hierarchy(0)
    network = make_network(hierarchy)
    with refuses(
        "the network is torch.float64 on cpu, the hierarchy torch.float32 on cpu: "
        "convert it with network.to_tensors(hierarchy)"
    ):
        network(HierarchyTensors(hierarchy, dtype=torch.float32, device=torch.device("cpu")))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")
def test_network_moves_between_devices() -> None:
    hierarchy = random_hierarchy(0, kind="both")
    network = make_network(hierarchy, seeds=[0, 1], normalization="batch").train()
    outputs = network(hierarchy)
    stale = network.to_tensors(hierarchy)
    network.to("cuda")
    there = network(hierarchy)
    assert there.device.type == "cuda"
    assert_close(there, outputs, 1e-10)
    with pytest.raises(InputError, match=r"on cuda:0, the hierarchy torch.float64 on cpu"):
        network(stale)
    network.to("cpu")
    assert_close(network(hierarchy), outputs, 1e-10)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"n_labels": 4}, "this network was built for labels 5, the hierarchy has 4"),
        ({"kind": "both"}, "this network was built for vectors 0, the hierarchy has 3"),
        ({"depth": 1}, "this network was built for roles (2, 2), the hierarchy has (2,)"),
        ({"n_roles": 3}, "this network was built for roles (2, 2), the hierarchy has (3, 3)"),
    ],
)
def test_network_refuses_a_hierarchy_of_another_shape(other: dict[str, Any], message: str) -> None:
    network = make_network(random_hierarchy(0))
    with refuses(message):
        network(random_hierarchy(0, **other))


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("normalization", ["none", "batch"])
def test_network_takes_examples_without_parts(normalization: str, training: bool) -> None:
    graphs = Graphs.from_edge_lists([[], [], [(0, 1)]], [0, 0, 2])
    hierarchy = Ego().decompose(graphs)
    network = make_network(hierarchy, normalization=normalization).train(training)
    outputs = network(hierarchy)
    assert torch.isfinite(outputs).all()
    assert torch.equal(outputs[0], outputs[1])
    # A batch, or a dataset to predict, may contain nothing else.
    assert torch.isfinite(network(hierarchy[[0, 1]])).all()
    assert network(hierarchy[[]]).shape == (0, 1, 2)


def test_network_is_pickled_and_copied_without_its_tensors() -> None:
    hierarchy = random_hierarchy(0, n=400)
    network = make_network(hierarchy, seeds=[0, 1], normalization="batch")
    fresh = len(pickle.dumps(network))
    outputs = network.eval()(hierarchy)
    assert len(pickle.dumps(network)) == fresh
    for copied in (pickle.loads(pickle.dumps(network)), copy.deepcopy(network)):
        assert torch.equal(copied(hierarchy), outputs)
