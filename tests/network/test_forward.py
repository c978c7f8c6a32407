from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from saen import SAENClassifier, generate_threads
from saen.network import Architecture
from saen.network.forward import TrainedNetworks, _FirstLayer
from tests.references.networks import assert_close, make_network, random_hierarchy
from tests.refusals import refuses


@pytest.mark.parametrize(
    "options",
    [{"negative_slope": 1.5}, {"negative_slope": -0.5}, {"output_activation": True}],
    ids=str,
)
def test_forward_applies_any_activation(options: dict[str, Any]) -> None:
    hierarchy = random_hierarchy(3, kind="both")
    network = make_network(hierarchy, seeds=[0, 1], normalization="batch", **options).eval()
    outputs = TrainedNetworks.of(network).outputs(hierarchy)
    assert_close(outputs, network(hierarchy), 1e-12)


@pytest.mark.parametrize("parents", [slice(None), [0], [1]], ids=str)
def test_forward_projects_parts_or_aggregates_them_first_with_the_same_result(parents: Any) -> None:
    relation = random_hierarchy(5, n_roles=7).relations[0]
    relation = relation.take(np.arange(relation.n_parents)[parents])
    rng = np.random.default_rng(0)
    h = rng.normal(size=(relation.n_parts, 2, 3))
    layer = _FirstLayer(rng.normal(size=(2, 7, 3, 4)), rng.normal(size=(2, 4)))
    projected = layer.sums(relation, relation.parts, layer.mapped(h))
    assert_close(projected, layer.aggregate(relation, h), 1e-12)


@pytest.mark.parametrize("level", [None, 1, 2])
def test_forward_of_labels_by_a_table_gives_what_the_layers_give(
    monkeypatch: pytest.MonkeyPatch, level: int | None
) -> None:
    hierarchy = random_hierarchy(3)
    network = make_network(hierarchy, seeds=[0, 1], normalization="batch")
    by_table, by_layers = TrainedNetworks.of(network), TrainedNetworks.of(network)
    outputs = by_table.outputs(hierarchy, level)
    monkeypatch.setattr("saen.network.forward.MAX_TABLE", 0)
    assert_close(outputs, by_layers.outputs(hierarchy, level), 1e-12)
    assert by_table._label_table is not None
    assert by_layers._label_table is None


@pytest.mark.parametrize(("kind", "longest"), [("codes", 4096), ("both", 4096), ("both", 0)])
def test_forward_in_blocks_of_objects_gives_the_same(
    monkeypatch: pytest.MonkeyPatch, kind: str, longest: int
) -> None:
    hierarchy = random_hierarchy(3, n=20, kind=kind)
    trained = TrainedNetworks.of(make_network(hierarchy, seeds=[0, 1], normalization="batch"))
    expected = trained.outputs(hierarchy)
    monkeypatch.setattr("saen.network.forward.MAX_BLOCK", 1)
    monkeypatch.setattr("saen.network.forward.MAX_ROW_ENTRIES", longest)
    assert_close(trained.outputs(hierarchy), expected, 1e-12)


def test_forward_keeps_the_type_of_the_parameters_and_rounds_as_torch_does() -> None:
    hierarchy = random_hierarchy(3, n=100, kind="both", n_roles=5)
    network = make_network(hierarchy, seeds=[0, 1], normalization="batch").float().eval()
    outputs = TrainedNetworks.of(network).outputs(hierarchy)
    assert outputs.dtype == np.float32
    assert_close(outputs, network(hierarchy), 1e-6)


def test_forward_sees_what_is_done_to_the_network_of_an_estimator() -> None:
    threads = generate_threads(20, seed=1)
    model = SAENClassifier(epochs=1, inner_folds=0).fit(threads, threads.targets)
    before = model.predict_proba(threads)
    with torch.no_grad():
        model.network_.levels[-1].layers.biases[0].add_(1.0)
    assert (model.predict_proba(threads) != before).all()


def test_forward_of_other_data_or_parameters_is_refused() -> None:
    hierarchy = random_hierarchy(3)
    trained = TrainedNetworks.of(make_network(hierarchy))
    with refuses("this network was built for labels 5, the hierarchy has 4"):
        trained.outputs(random_hierarchy(3, n_labels=4))
    architecture = Architecture.over(hierarchy, [[3], [4, 3], [5, 2]])
    with refuses("the parameters do not have the shapes of the architecture"):
        TrainedNetworks(architecture, trained.state)
