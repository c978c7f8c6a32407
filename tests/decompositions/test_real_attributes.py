"""Attributes that are not numbers for networks are refused, with their graph and place."""

import numpy as np
import pytest

import saen
from saen.errors import InputError

N = 12


def graphs(what, wild=None):
    """Paths of three nodes, one of whose attributes may be wild: of graph c, the last."""
    shape = (3 * N if what == "node" else 2 * N, 2)
    values = np.random.default_rng(0).normal(size=shape)
    if wild is not None:
        values[8 if what == "node" else 5, 1] = wild
    return saen.Graphs.from_edge_lists(
        [[(0, 1), (1, 2)]] * N,
        ids=[*"abcdefghijkl"],
        targets=[0, 1] * (N // 2),
        **{f"{what}_attributes": values},
    )


READERS = [
    ("node", {"node_labels": "attributes"}),
    ("node", {"node_labels": "attribute-bins:2"}),
    ("node", {"node_labels": "attributes,distance"}),
    ("edge", {"decomposition": "edges", "node_labels": "attributes"}),
    ("edge", {"decomposition": "ego(edges=bins)", "node_labels": "degree"}),
]


@pytest.mark.parametrize(("what", "settings"), READERS)
@pytest.mark.parametrize("wild", [1e300, -1e39, np.inf, np.nan])
def test_attributes_beyond_32_bits_are_refused_by_fit_and_predict(what, settings, wild):
    model = saen.SAENClassifier(**settings, epochs=1, n_models=1)
    message = f"graph c: {what} attribute 1 is {wild:g}".replace("+", r"\+")
    with pytest.raises(InputError, match=rf"{message}, expected a number within ±3.4e\+38"):
        model.fit(graphs(what, wild), [0, 1] * (N // 2))
    model.fit(graphs(what), [0, 1] * (N // 2))
    with pytest.raises(InputError, match=message):
        model.predict(graphs(what, wild))
    assert len(model.predict(graphs(what, 1e30 if "bins" in str(settings) else 9.0))) == N


def test_attributes_that_nothing_reads_may_be_anything():
    model = saen.SAENClassifier(node_labels="degree", epochs=1, n_models=1)
    assert len(model.fit(graphs("node", 1e300), [0, 1] * (N // 2)).predict(graphs("node"))) == N
