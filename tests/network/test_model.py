from __future__ import annotations

import copy
import pickle
import time
import tracemalloc
from typing import Any

import numpy as np
import pytest
import torch
from scipy import sparse
from torch.autograd import gradcheck

from saen import (
    SAEN,
    Architecture,
    Attributes,
    Ego,
    Graphs,
    Hierarchy,
    InputError,
    Relation,
    Vocabulary,
    compress,
)
from saen.network.batches import generator, seen_in_training
from saen.network.model import _Layers, _Level, _moments_of_parts, _WeightedMoments, derive_seed
from saen.network.sparse import SparseProduct, Unrolled
from tests.references.networks import (
    DEVICES,
    EPSILON,
    assert_close,
    assert_same_state,
    forward,
    make_network,
    of_model,
    random_hierarchy,
    weighted_moments,
)

CPU = torch.device("cpu")


def bags(*labels: str, vocabulary: Vocabulary | None = None) -> Hierarchy:
    """One structure per word, whose parts are its letters, all with one role."""
    letters = np.array([letter for word in labels for letter in word], dtype=np.str_)
    words = vocabulary or Vocabulary(letters.tolist())
    indptr = np.cumsum([0, *map(len, labels)])
    relation = Relation(
        indptr, np.arange(len(letters)), np.zeros(len(letters), int), ("letter",), len(letters)
    )
    return Hierarchy(Attributes(words.encode([letters]), words), (relation,))


# -- products and their gradients --------------------------------------------------------------


@pytest.mark.parametrize("device", DEVICES)
def test_a_sparse_product_is_the_dense_one_and_so_is_its_gradient(device: str) -> None:
    dense = sparse.random_array((7, 5), density=0.4, rng=np.random.default_rng(0)).toarray()
    product = SparseProduct.of(sparse.csr_array(dense), torch.float64, torch.device(device))
    x = torch.randn(5, 3, dtype=torch.float64, device=device, requires_grad=True)
    y = torch.randn(7, 3, dtype=torch.float64, device=device, requires_grad=True)
    assert_close(product @ x, dense @ x.detach().cpu().numpy(), 1e-14)
    assert_close(product.T @ y, dense.T @ y.detach().cpu().numpy(), 1e-14)
    assert gradcheck(lambda x: product @ x, (x,))
    assert gradcheck(lambda y: product.T @ y, (y,))


def test_weighted_moments_are_those_of_repeated_objects() -> None:
    rng = np.random.default_rng(0)
    a = rng.normal(size=(4, 2, 3, 2))
    uses = rng.integers(0, 4, (4, 3)).astype(np.float64)
    mean, variance = _WeightedMoments.apply(torch.from_numpy(a), torch.from_numpy(uses))
    for role in range(2):
        for model in range(3):
            repeated = np.repeat(a[:, role, model], uses[:, model].astype(int), axis=0)
            assert_close(mean[role, model], repeated.mean(axis=0), 1e-14)
            assert_close(variance[role, model], repeated.var(axis=0), 1e-14)
            expected = weighted_moments(a[:, role, model], uses[:, model])
            assert_close(mean[role, model], expected[0], 1e-14)


def test_the_gradient_of_weighted_moments_is_right() -> None:
    generator_ = torch.Generator().manual_seed(0)
    a = torch.randn(5, 2, 3, 2, generator=generator_, dtype=torch.float64, requires_grad=True)
    uses = torch.tensor([[1.0, 0, 2], [3, 0, 0], [0, 0, 0.5], [1, 0, 1], [2, 0, 1]]).double()
    assert gradcheck(lambda a: _WeightedMoments.apply(a, uses), (a,))


@pytest.mark.parametrize("normalisation", ["none", "batch"])
@pytest.mark.parametrize("kind", ["codes", "vectors", "both"])
def test_the_gradient_of_the_whole_network_is_that_of_its_outputs(
    kind: str, normalisation: str
) -> None:
    hierarchy = random_hierarchy(3, n=6, kind=kind, patterns=4, n_labels=2)
    network = make_network(hierarchy, seeds=[0, 1], normalisation=normalisation).train()
    names = [name for name, _ in network.named_parameters()]

    def outputs(*parameters: torch.Tensor) -> torch.Tensor:
        made = dict(zip(names, parameters, strict=True))
        return torch.func.functional_call(network, made, (hierarchy,))

    parameters = tuple(p.detach().clone().requires_grad_() for p in network.parameters())
    assert gradcheck(outputs, parameters, fast_mode=True)


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
        ({"layers": ((2,), (0,), (2,))}, "layer sizes must be at least 1: ((2,), (0,), (2,))"),
        ({"normalisation": "layer"}, "normalisation is one of batch, none, not 'layer'"),
        ({"dropout": 1.0}, "dropout must be at least 0 and below 1, not 1.0"),
        ({"dropout": -0.1}, "dropout must be at least 0 and below 1, not -0.1"),
    ],
)
def test_an_architecture_that_makes_no_sense_is_refused(
    options: dict[str, Any], message: str
) -> None:
    sound = {"labels": 3, "vectors": 0, "roles": (1, 1), "layers": ((2,), (2,), (2,))}
    with pytest.raises(InputError) as raised:
        Architecture(**(sound | options))
    assert str(raised.value) == message


def test_a_network_needs_a_seed() -> None:
    hierarchy = bags("ab")
    with pytest.raises(InputError, match="a network needs at least one seed"):
        SAEN(Architecture.over(hierarchy, [[2], [2]]), [])


@pytest.mark.parametrize("depth", [1, 2, 4])
def test_outputs_have_one_row_per_structure_and_one_column_per_model(depth: int) -> None:
    hierarchy = random_hierarchy(0, n=5, depth=depth)
    network = make_network(hierarchy, outputs=3, seeds=[0, 1])
    assert network(hierarchy).shape == (5, 2, 3)
    assert network(compress(hierarchy)).shape == (5, 2, 3)
    for level, size in enumerate(hierarchy.sizes[:-1]):
        assert network(hierarchy, level=level).shape == (size, 2, 3)
    assert network(hierarchy, level=depth).shape == (5, 2, 4)  # what the output layer sees


def test_asked_for_by_number_the_top_gives_what_its_output_layer_sees() -> None:
    hierarchy = random_hierarchy(0)
    network = make_network(hierarchy).eval()
    layers = network.levels[-1].layers
    seen = network(hierarchy, level=2)
    assert_close(
        seen[:, 0] @ layers.weights[-1][0] + layers.biases[-1][0], network(hierarchy)[:, 0], 1e-14
    )


@pytest.mark.parametrize("level", [-1, 3])
def test_a_level_that_does_not_exist_is_refused(level: int) -> None:
    hierarchy = random_hierarchy(0)
    with pytest.raises(InputError, match=f"levels are 0 … 2, not {level}"):
        make_network(hierarchy)(hierarchy, level=level)


def test_the_last_layer_has_no_activation_and_every_other_one_has() -> None:
    hierarchy = bags("ab", "abb", "b")
    network = make_network(hierarchy, outputs=1, slope=0.0)
    assert (network(hierarchy, level=0) >= 0).all()
    assert (network(hierarchy, level=1) >= 0).all()
    with torch.no_grad():
        network.levels[-1].layers.biases[-1].fill_(-100.0)
    assert (network(hierarchy) < 0).all()


# -- weights -----------------------------------------------------------------------------------


def test_initial_weights_depend_on_the_models_own_seed_alone() -> None:
    architecture = Architecture.over(random_hierarchy(0), [[3], [4, 3], [4, 2]])
    many = SAEN(architecture, [5, (5, 1), 7, (7, 2, 3)])
    for model, seed in enumerate([5, (5, 1), 7, (7, 2, 3)]):
        alone = of_model(SAEN(architecture, [seed]), 0)
        for key, tensor in of_model(many, model).items():
            assert torch.equal(tensor, alone[key]), key


def test_different_seeds_give_different_weights() -> None:
    architecture = Architecture.over(random_hierarchy(0), [[3], [4, 3], [4, 2]])
    network = SAEN(architecture, [0, 1, (0, 1), (1, 0), 2**31])
    for parameter in network.parameters():
        if parameter.ndim == 3:
            assert len({model.numpy().tobytes() for model in parameter.detach()}) == 5


def test_initial_weights_are_the_same_in_both_precisions() -> None:
    architecture = Architecture.over(random_hierarchy(0), [[3], [4, 3], [4, 2]])
    single, double = SAEN(architecture, [3]), SAEN(architecture, [3], dtype=torch.float64)
    for a, b in zip(single.parameters(), double.parameters(), strict=True):
        assert (a.dtype, b.dtype) == (torch.float32, torch.float64)
        assert torch.equal(a, b.float())


def test_seeds_are_told_apart_by_the_whole_purpose() -> None:
    purposes = [
        *(f"epoch {epoch}" for epoch in range(1200)),
        *(f"dropout {level}" for level in range(12)),
        *("weights", "run", "partition", "held out"),
    ]
    assert len({derive_seed(0, purpose) for purpose in purposes}) == len(purposes)
    assert derive_seed((3, 4), "run") == derive_seed([3, 4], "run")
    assert derive_seed((3, 4), "run") != derive_seed((4, 3), "run")
    assert all(0 <= derive_seed(seed, "run") < 2**63 for seed in range(50))


def test_making_and_running_a_network_leaves_global_random_states_alone() -> None:
    hierarchy = random_hierarchy(0)
    before = torch.get_rng_state(), np.random.get_state()[1].tobytes()  # noqa: NPY002
    network = make_network(hierarchy, dropout=0.5, normalisation="batch").train()
    network(hierarchy, noise=generator(0, "test"))
    assert torch.equal(torch.get_rng_state(), before[0])
    assert np.random.get_state()[1].tobytes() == before[1]  # noqa: NPY002


# -- labels and roles --------------------------------------------------------------------------


def test_a_label_that_the_vocabulary_lacks_contributes_nothing() -> None:
    known = Vocabulary(["a", "b"])
    hierarchy = bags("ax", "ay", "xx", vocabulary=known)
    network = make_network(hierarchy, outputs=1).eval()
    made = network(hierarchy)
    assert torch.equal(made[0], made[1])
    bottom = network(hierarchy, level=0)
    bias = torch.nn.functional.leaky_relu(network.bottom.bias[0], network.architecture.slope)
    assert torch.equal(bottom[1, 0], bias)
    with torch.no_grad():
        network.bottom.table.mul_(7.0)
    assert torch.equal(network(hierarchy)[2], made[2])


def test_an_unseen_label_is_treated_alike_inside_and_outside_the_vocabulary() -> None:
    # In cross-validation the vocabulary knows the labels of test structures, in prediction not.
    words = ("aab", "bac", "abz")
    weights = np.array([[1.0], [1.0], [0.0]])
    for min_count in (1, 2):
        inside = bags(*words)
        outside = bags(*words, vocabulary=Vocabulary("abc"))
        made = []
        for hierarchy in (inside, outside):
            network = SAEN(Architecture.over(hierarchy, [[3], [4, 1]]), [0], dtype=torch.float64)
            met = seen_in_training(hierarchy, np.arange(3), weights, min_count)
            network.restrict_to_seen(*met)
            with torch.no_grad():
                for number, parameter in enumerate(network.parameters()):
                    values = torch.linspace(-1, 1, parameter[0].numel(), dtype=torch.float64)
                    parameter[0] = values.view(parameter[0].shape) + number
                # The same rows for a, b, c, and for the entry that rare labels share.
                rows = torch.arange(12, dtype=torch.float64).view(4, 3) / 7
                network.bottom.table[0, :3], network.bottom.table[0, -1] = rows[:3], rows[3]
            made.append(network.eval()(hierarchy))
        assert_close(made[0], made[1], 1e-14)


def test_rare_labels_share_one_entry_and_unseen_ones_use_it() -> None:
    hierarchy = bags("aab", "bac", "adx")
    weights = np.array([[1.0, 1.0], [1.0, 0.0], [0.0, 1.0]])
    entries, roles = seen_in_training(hierarchy, np.arange(3), weights, min_count=2)
    shared, unseen = 5, 6
    # Model 0 trains on aab and bac: c is rare. Model 1 on aab and adx: b, d and x are.
    assert entries.tolist() == [
        [0, 1, shared, shared, shared, shared],
        [0, shared, shared, shared, shared, shared],
    ]
    entries, _ = seen_in_training(hierarchy, np.arange(3), weights, min_count=1)
    assert entries.tolist() == [[0, 1, 2, unseen, unseen, unseen], [0, 1, unseen, 3, 4, unseen]]
    assert [seen.tolist() for seen in roles] == [[[True, True]]]


def test_rarity_counts_structures_and_not_occurrences() -> None:
    hierarchy = bags("aaaa", "b", "b")
    entries, _ = seen_in_training(hierarchy, np.arange(3), np.ones((3, 1)), min_count=2)
    assert entries.tolist() == [[2, 1, 2]]
    duplicates = compress(hierarchy)
    again, _ = seen_in_training(duplicates.hierarchy, duplicates.top, np.ones((3, 1)), min_count=2)
    assert again.tolist() == entries.tolist()


def test_a_role_that_a_model_never_met_contributes_nothing() -> None:
    hierarchy = random_hierarchy(1)
    network = make_network(hierarchy, seeds=[0, 1]).eval()
    before = network(hierarchy)
    network.levels[2].seen[1, 0] = False
    after = network(hierarchy)
    assert torch.equal(before[:, 1], after[:, 1])
    assert not torch.equal(before[:, 0], after[:, 0])
    with torch.no_grad():
        network.levels[2].weight[0, network.levels[2].below :] = 1e6
    assert torch.equal(network(hierarchy)[:, 0], after[:, 0])
    assert_close(after[:, 0], forward(network, hierarchy, 0).h[-1], 1e-12)


def test_a_hundred_thousand_labels_cost_no_more_than_their_table() -> None:
    n = 100_000
    vocabulary = Vocabulary(range(n))
    relation = Relation(np.arange(0, n + 1, 500), np.arange(n), np.zeros(n, np.uint8), ("word",), n)
    hierarchy = Hierarchy(Attributes(np.arange(n, dtype=np.int32), vocabulary), (relation,))
    started = time.perf_counter()
    tracemalloc.start()
    network = SAEN(Architecture.over(hierarchy, [[4], [4, 2]], normalisation="batch"), [0, 1])
    met = seen_in_training(hierarchy, np.arange(200), np.ones((200, 2)), min_count=1)
    network.restrict_to_seen(*met)
    outputs = network.train()(hierarchy)
    outputs.square().sum().backward()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert outputs.shape == (200, 2, 2)
    assert network.bottom.table.grad.shape == (2, n + 1, 4)
    # One byte for every pair of object and label would be 10 GB.
    assert peak < 200e6
    assert time.perf_counter() - started < 30


# -- statistics --------------------------------------------------------------------------------


def test_running_statistics_start_with_the_first_batch_and_then_follow_slowly() -> None:
    first, second = random_hierarchy(0), random_hierarchy(1)
    network = make_network(first, seeds=[0], normalisation="batch").train()
    passed = []
    for hierarchy in (first, second):
        passed.append(forward(network, hierarchy, training=True))
        network(hierarchy)
    for level in (1, 2):
        norm = network.levels[level].norm
        for moment, index in (("mean", 0), ("variance", 1)):
            expected = 0.9 * passed[0].moments[level][index] + 0.1 * passed[1].moments[level][index]
            assert_close(getattr(norm, moment)[:, 0].ravel(), expected, 1e-12, floor=EPSILON)


def test_without_weights_every_original_structure_counts_once() -> None:
    hierarchy = random_hierarchy(0)
    compressed = compress(hierarchy)
    assert len(compressed.hierarchy) < len(hierarchy)
    one = make_network(hierarchy, seeds=[0, 1], normalisation="batch").train()
    other = make_network(hierarchy, seeds=[0, 1], normalisation="batch").train()
    assert_close(one(compressed), other(hierarchy), 1e-10)
    for (key, a), (_, b) in zip(one.named_buffers(), other.named_buffers(), strict=True):
        assert_close(a, b, 1e-10, key, floor=EPSILON)


def test_predicting_changes_no_statistics() -> None:
    hierarchy = random_hierarchy(0)
    network = make_network(hierarchy, normalisation="batch").train()
    network(hierarchy)
    before = copy.deepcopy(network)
    network.eval()
    network(random_hierarchy(1))
    assert_same_state(network, before)


def test_a_model_with_nothing_in_a_batch_keeps_its_statistics() -> None:
    hierarchy = random_hierarchy(0)
    network = make_network(hierarchy, seeds=[0, 1], normalisation="batch").train()
    network(hierarchy)
    before = copy.deepcopy(network)
    top = torch.ones(len(hierarchy), 2, dtype=torch.float64)
    top[:, 1] = 0
    other = random_hierarchy(1)
    network(other, network.unroll(other).uses(top))
    for key, tensor in of_model(network, 1).items():
        assert torch.equal(tensor, of_model(before, 1)[key]), key
    assert not torch.equal(network.levels[1].norm.mean, before.levels[1].norm.mean)


# -- dropout -----------------------------------------------------------------------------------


def test_dropout_drops_its_share_of_units_and_scales_the_rest() -> None:
    architecture = Architecture.over(bags("ab"), [[2], [50, 2]], dropout=0.3)
    layers = _Layers(architecture, 1, 4)
    layers.offsets.copy_(torch.tensor([0.0, 0.1, 0.55, 0.99]))
    x = torch.ones(4, 400, 50)
    dropped = layers._activate(x, generator(0, "test"))
    assert set(torch.unique(dropped).tolist()) == {0.0, np.float32(1 / 0.7)}
    assert (dropped == 0).double().mean(dim=(1, 2)).numpy() == pytest.approx(0.3, abs=0.01)
    assert len({mask.numpy().tobytes() for mask in dropped}) == 4
    assert torch.equal(layers.eval()._activate(x, generator(0, "test")), x)


def test_dropout_of_a_model_does_not_depend_on_its_company() -> None:
    hierarchy = random_hierarchy(0)
    together = make_network(hierarchy, seeds=[3, 4, 5], dropout=0.5).train()
    alone = make_network(hierarchy, seeds=[5], dropout=0.5).train()
    one = together(hierarchy, noise=generator(0, "test"))[:, 2]
    other = alone(hierarchy, noise=generator(0, "test"))[:, 0]
    assert_close(one, other, 1e-12)
    assert not torch.equal(together(hierarchy, noise=generator(1, "test"))[:, 2], one)


# -- where and how it runs ---------------------------------------------------------------------


def test_the_side_of_the_first_layer_is_chosen_by_counting() -> None:
    def choose(n_parents: int, n_parts: int, below: int, size: int, **options: str) -> bool:
        architecture = Architecture(2, 0, (2,), ((below,), (size,)), **options)
        parts = np.arange(n_parents) % n_parts
        relation = Relation(
            np.arange(n_parents + 1), parts, np.zeros(n_parents, int), ("a", "b"), n_parts
        )
        codes = Attributes(np.zeros(n_parts, int), Vocabulary([0, 1]))
        made = Unrolled.of(Hierarchy(codes, (relation,)), dtype=torch.float64, device=CPU)
        level = _Level(architecture, 1, 1)
        return level._parts_first(made.relations[0])

    assert choose(n_parents=1000, n_parts=10, below=8, size=8)
    assert choose(n_parents=1000, n_parts=400, below=8, size=8)
    assert not choose(n_parents=1000, n_parts=400, below=8, size=8, normalisation="batch")
    assert not choose(n_parents=10, n_parts=1000, below=8, size=8)


def test_relations_and_transposes_are_made_once() -> None:
    hierarchy = random_hierarchy(0)
    network = make_network(hierarchy, normalisation="batch").train()
    unrolled = network.unroll(hierarchy)
    network(hierarchy)
    product = unrolled.relations[0].by_role
    matrix, transpose = product.matrix, product.T
    network(hierarchy).sum().backward()
    assert network.unroll(hierarchy) is unrolled
    assert unrolled.relations[0].by_role.matrix is matrix
    assert unrolled.relations[0].by_role.T.matrix is transpose.matrix
    assert transpose.T is product


def test_what_statistics_need_is_counted_once() -> None:
    hierarchy = random_hierarchy(0)
    compressed = compress(hierarchy)
    network = make_network(hierarchy, normalisation="batch").train()
    for structures in (compressed, network.unroll(hierarchy)):
        uses = network._uses(structures, None)
        assert uses is not None
        assert network._uses(structures, None) is uses
    assert network._uses(compressed, None) is not uses
    assert network.eval()._uses(compressed, None) is None


def test_a_network_that_ran_in_inference_mode_learns_later() -> None:
    hierarchy = random_hierarchy(0)
    network = make_network(hierarchy, normalisation="batch").train()
    with torch.inference_mode():
        network(hierarchy)
    network(hierarchy).sum().backward()
    assert all(parameter.grad is not None for parameter in network.parameters())


def test_small_variances_of_large_numbers_are_found_from_the_parts_too() -> None:
    # Every whole has one part: the variance of the aggregates is that of the parts.
    n, m = 60, 6
    generator_ = np.random.default_rng(0)
    parts = generator_.integers(0, m, n)
    relation = Relation(np.arange(n + 1), parts, np.zeros(n, int), ("a",), m)
    codes = Attributes(np.zeros(m, int), Vocabulary([0]))
    made = Unrolled.of(Hierarchy(codes, (relation,)), dtype=torch.float32, device=CPU)
    h = torch.from_numpy(100 + 0.1 * generator_.standard_normal((m, 1, 4))).float()
    mean, variance = _moments_of_parts(h, made.relations[0].spread(torch.ones(n, 1)))
    rows = h.double().numpy()[parts, 0]
    assert np.abs(mean[0, 0].numpy() / rows.mean(0) - 1).max() < 1e-6
    assert np.abs(variance[0, 0].numpy() / rows.var(0) - 1).max() < 1e-3


def test_a_converted_network_takes_its_relations_along() -> None:
    hierarchy = random_hierarchy(0)
    network = make_network(hierarchy)
    made = network(hierarchy)
    single = network.float()
    assert single(hierarchy).dtype == torch.float32
    assert_close(single(hierarchy), made, 1e-5)


def test_a_hierarchy_of_another_precision_is_refused() -> None:
    hierarchy = random_hierarchy(0)
    network = make_network(hierarchy)
    with pytest.raises(InputError) as raised:
        network(Unrolled.of(hierarchy, dtype=torch.float32, device=CPU))
    assert str(raised.value) == (
        "the network is torch.float64 on cpu, the hierarchy torch.float32 on cpu: "
        "unroll it with network.unroll(hierarchy)"
    )


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")
def test_a_network_moves_between_devices_with_its_relations() -> None:
    hierarchy = random_hierarchy(0, kind="both")
    network = make_network(hierarchy, seeds=[0, 1], normalisation="batch").train()
    made = network(hierarchy)
    stale = network.unroll(hierarchy)
    network.to("cuda")
    there = network(hierarchy)
    assert there.device.type == "cuda"
    assert_close(there, made, 1e-10)
    with pytest.raises(InputError, match=r"on cuda:0, the hierarchy torch.float64 on cpu"):
        network(stale)
    network.to("cpu")
    assert_close(network(hierarchy), made, 1e-10)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"n_labels": 4}, "this network was built for labels 5, the hierarchy has 4"),
        ({"kind": "both"}, "this network was built for vectors 0, the hierarchy has 3"),
        ({"depth": 1}, "this network was built for roles (2, 2), the hierarchy has (2,)"),
        ({"n_roles": 3}, "this network was built for roles (2, 2), the hierarchy has (3, 3)"),
    ],
)
def test_a_hierarchy_of_another_shape_is_refused(other: dict[str, Any], message: str) -> None:
    network = make_network(random_hierarchy(0))
    with pytest.raises(InputError) as raised:
        network(random_hierarchy(0, **other))
    assert str(raised.value) == message


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("normalisation", ["none", "batch"])
def test_structures_without_parts_are_structures_too(normalisation: str, training: bool) -> None:
    graphs = Graphs.from_edge_lists([[], [], [(0, 1)]], [0, 0, 2])
    hierarchy = Ego().decompose(graphs)
    network = make_network(hierarchy, normalisation=normalisation).train(training)
    made = network(hierarchy)
    assert torch.isfinite(made).all()
    assert torch.equal(made[0], made[1])
    # A batch, or a collection to predict, may hold nothing else.
    empty = network(hierarchy[[0, 1]])
    assert torch.isfinite(empty).all()
    assert network(hierarchy[[]]).shape == (0, 1, 2)


def test_networks_pickle_and_copy_without_the_hierarchies_they_met() -> None:
    hierarchy = random_hierarchy(0, n=400)
    network = make_network(hierarchy, seeds=[0, 1], normalisation="batch")
    fresh = len(pickle.dumps(network))
    made = network.eval()(hierarchy)
    assert len(pickle.dumps(network)) == fresh
    for twin in (pickle.loads(pickle.dumps(network)), copy.deepcopy(network)):
        assert torch.equal(twin(hierarchy), made)
