"""The parameters of several networks, taken apart and joined."""

from __future__ import annotations

import numpy as np
import pytest

from saen.network import SAEN
from saen.network.architecture import check_state, join_models, take_model
from tests.references.networks import assert_close, make_network, of_model, random_hierarchy


@pytest.mark.parametrize("kind", ["codes", "vectors", "both"])
def test_networks_taken_apart_and_joined_are_the_same(kind: str) -> None:
    hierarchy = random_hierarchy(3, kind=kind)
    network = make_network(hierarchy, seeds=[0, 1, 2], normalization="batch")
    network.train()(hierarchy)
    state = {key: tensor.numpy() for key, tensor in network.eval().state_dict().items()}
    apart = [take_model(state, model) for model in range(3)]
    for model, own in enumerate(apart):
        check_state(network.architecture, own)
        for key, tensor in of_model(network, model).items():
            np.testing.assert_array_equal(own[key].squeeze(), tensor.numpy().squeeze(), key)
        alone = SAEN.from_state(network.architecture, own)
        assert_close(alone(hierarchy)[:, 0], network(hierarchy)[:, model], 1e-12)
    joined = join_models(apart)
    assert joined.keys() == state.keys()
    for key, array in state.items():
        np.testing.assert_array_equal(joined[key], array, key)
        assert joined[key].dtype == array.dtype
    other = SAEN.from_state(network.architecture, join_models([apart[2], apart[0]]))
    assert_close(other(hierarchy), network(hierarchy)[:, [2, 0]], 1e-12)
