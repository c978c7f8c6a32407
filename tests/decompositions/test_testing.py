"""Decompositions that break one law each, and what the check says about them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import numpy as np
import pytest

from saen import Attributes, Decomposition, Graphs, Hierarchy, Relation
from saen.data.compression import Compressed
from saen.data.nested import NestedData
from saen.data.vocabulary import UNSEEN
from saen.decompositions import Ego, Nested
from saen.network import SAEN
from saen.testing import _example_graphs, _renumbered, check_decomposition
from tests.refusals import refuses


def graphs(directed: bool = False) -> Graphs:
    return _example_graphs(directed)


def complaint(decomposition: Decomposition, structures: Any = None) -> str:
    with pytest.raises(AssertionError) as error:
        check_decomposition(decomposition, structures)
    return str(error.value)


# -- those that keep the laws ------------------------------------------------------------------


def test_a_fitted_decomposition_is_tried_from_the_start():
    check_decomposition(Ego(radii=(0, 1)).fit(graphs()[1:2]))


def test_structures_of_ones_own_can_be_tried():
    check_decomposition(
        Ego(node_labels="degree"), Graphs.from_edge_lists([[(0, 1)], [(0, 1), (1, 2)]])
    )
    check_decomposition(Nested(), NestedData([[("x", 1)], [("y", 2), ("y", 2)], []]))


def test_there_must_be_something_to_try_it_on():
    with refuses("Nested takes nested: pass some data"):
        check_decomposition(Nested())
    with refuses("a check needs two examples or more, not 1"):
        check_decomposition(Ego(), graphs()[:1])


# -- the graphs that are tried -----------------------------------------------------------------


@pytest.mark.parametrize("directed", [False, True])
def test_there_are_graphs_of_all_kinds_and_labels_that_half_of_them_lack(directed):
    tried = graphs(directed)
    assert tried.directed == directed
    assert {0, 1} < set(tried.sizes.tolist())
    assert tried.n_loops > 2
    assert tried.n_isolated > 2
    half = len(tried) // 2
    assert set(tried[half:].node_labels.tolist()) - set(tried[:half].node_labels.tolist()) == {"c"}
    assert set(tried[half:].edge_labels.tolist()) - set(tried[:half].edge_labels.tolist()) == {3}
    assert tried == graphs(directed)


@pytest.mark.parametrize("directed", [False, True])
def test_renumbering_keeps_every_graph_and_moves_its_nodes(directed):
    networkx = pytest.importorskip("networkx")
    before = graphs(directed)
    after = _renumbered(before)
    assert after != before
    for one, other in zip(before, after, strict=True):
        assert networkx.is_isomorphic(
            as_networkx(one),
            as_networkx(other),
            node_match=lambda a, b: a == b,
            edge_match=lambda a, b: a == b,
        )


def as_networkx(graph: Graphs) -> Any:
    networkx = pytest.importorskip("networkx")
    out = networkx.DiGraph()  # both directions of an undirected edge have labels of their own
    for node in range(graph.n_nodes):
        label = str(graph.node_labels[node]), graph.node_attributes[node].tolist()
        out.add_node(node, label=label)
    rows = np.repeat(np.arange(graph.n_nodes), np.diff(graph.indptr))
    for entry, (u, v) in enumerate(zip(rows.tolist(), graph.indices.tolist(), strict=True)):
        out.add_edge(u, v, label=int(graph.edge_labels[entry]))
    return out


# -- one broken law each -----------------------------------------------------------------------

BROKEN: list[Any] = []
"""What goes wrong after ego graphs were made, and what the check says of it."""


def breaks(message: str) -> Callable[[Any], Any]:
    def add(function: Any) -> Any:
        BROKEN.append(pytest.param(function, message, id=function.__name__))
        return function

    return add


def broken(**methods: Any) -> Decomposition:
    """Ego graphs with methods that break a law."""
    return dataclass(frozen=True)(type("Broken", (Ego,), methods))()


def spoilt(function: Callable[[Hierarchy, Graphs, Ego], Any]) -> Decomposition:
    return broken(decompose=lambda ego, graphs: function(Ego.decompose(ego, graphs), graphs, ego))


def with_codes(hierarchy: Hierarchy, codes: Any) -> Hierarchy:
    attributes = Attributes(np.asarray(codes), hierarchy.attributes.vocabulary)
    return Hierarchy(attributes, hierarchy.relations, hierarchy.names)


ON_TOP = "decompose returns a Hierarchy with one top-level object per example"
FITTED = "once fitted, vocabulary and roles stay, and new labels are unseen"
ALONE = "the parts of an example do not depend on other examples"


@breaks(f"{ON_TOP} (returned tuple)")
def something_else_than_a_hierarchy(hierarchy, graphs, ego):
    return hierarchy.sizes


@breaks(f"{ON_TOP} (17 examples, 16 objects)")
def too_few_objects_on_top(hierarchy, graphs, ego):
    return hierarchy[np.arange(len(graphs) - 1)]


@breaks(
    f"{ON_TOP} (ValueError: zero-size array to reduction operation maximum which has no identity)"
)
def failing_on_an_empty_collection(hierarchy, graphs, ego):
    return hierarchy[np.arange(len(graphs))] if graphs.sizes.max() else hierarchy


@breaks("the same data give the same hierarchy (a second run gives another hierarchy)")
def another_hierarchy_on_every_run(hierarchy, graphs, ego, runs=count()):  # noqa: B008
    return with_codes(hierarchy, np.full(graphs.n_nodes, next(runs) % 2))


@breaks(f"{FITTED} (the vocabulary becomes Vocabulary('a', 'c'))")
def a_vocabulary_that_is_never_used(hierarchy, graphs, ego):
    return Ego(ego.radii).decompose(graphs)


@breaks(f"{FITTED} (16 labels are new, 0 unseen)")
def new_labels_that_are_taken_for_known_ones(hierarchy, graphs, ego):
    return with_codes(hierarchy, np.maximum(hierarchy.attributes.codes, 0))


@breaks(f"{FITTED} (KeyError: 'c')")
def new_labels_that_make_it_fail(hierarchy, graphs, ego):
    if (hierarchy.attributes.codes == UNSEEN).any():
        raise KeyError("c")
    return hierarchy


@breaks(f"{FITTED} (the roles of level 1 become root, elem, edge 1, edge 3)")
def roles_that_depend_on_the_collection(hierarchy, graphs, ego):
    egos, top = hierarchy.relations
    labels = [f"edge {label}" for label in np.unique(graphs.edge_labels)]
    egos = Relation(egos.indptr, egos.parts, egos.roles, (*egos.alphabet, *labels), egos.n_parts)
    return Hierarchy(hierarchy.attributes, (egos, top), hierarchy.names)


@breaks(f"{ALONE} (example 0 becomes another)")
def structures_out_of_order(hierarchy, graphs, ego):
    return hierarchy[np.arange(len(graphs))[::-1]]


@pytest.mark.parametrize(("decompose", "message"), BROKEN)
def test_a_broken_law_is_named(decompose, message):
    assert complaint(spoilt(decompose)) == f"Broken: {message}"


def test_parts_that_depend_on_other_structures():
    def decompose(hierarchy, graphs, ego):
        alone = len(graphs) == 1
        made = Ego((2 if alone else 0,), vocabulary=ego.vocabulary).decompose(graphs)
        egos, top = made.relations
        top = Relation(top.indptr, top.parts, top.roles, ("radius",), top.n_parts)
        return Hierarchy(made.attributes, (egos, top), made.names)

    found = complaint(spoilt(decompose))
    law, _, trouble = found.rpartition(" (3 unique of ego graphs become ")  # a, b and c
    assert law == f"Broken: {ALONE}"
    assert int(trouble.rstrip(")")) > 3


def test_parts_that_depend_on_the_numbering():
    def decompose(hierarchy, graphs, ego):
        first = graphs.node_offsets[:-1][graphs.sizes > 0]
        codes = np.zeros_like(hierarchy.attributes.codes)
        codes[first] = 1
        return with_codes(hierarchy, codes)

    # All nodes alike but the first: no label is unseen, and the numbering shows.
    assert complaint(spoilt(decompose), Graphs.concatenate([graphs()[:8]] * 2)).startswith(
        "Broken: the numbering of nodes does not matter ("
    )


@pytest.mark.parametrize(
    ("fit", "found"),
    [
        (
            lambda ego, graphs: replace(Ego.fit(ego, graphs), radii=(0, 2)),
            "the fitted decomposition gives another hierarchy",
        ),
        (lambda ego, graphs: Ego(ego.radii).fit(graphs), "fit returns Ego"),
    ],
)
def test_fitting_that_changes_something(fit, found):
    law = "fitting does not change the hierarchy of the fitted data"
    assert complaint(broken(fit=fit)) == f"Broken: {law} ({found})"


@pytest.mark.parametrize(
    ("spoil", "found"),
    [
        (lambda nodes, egos, top: (nodes, egos), "nodes of 2 levels, expected 3"),
        (
            lambda nodes, egos, top: (nodes[1:], egos, top),
            "nodes of level 0 are int64 of shape (67,)",
        ),
        (
            lambda nodes, egos, top: (nodes, egos - 2, top),
            "nodes of level 1 are not all between -1 and 67",
        ),
        (
            lambda nodes, egos, top: (nodes, egos[::-1], top),
            "nodes of level 1 belong to other examples",
        ),
    ],
)
def test_anchors_that_do_not_fit(spoil, found):
    def anchors(ego, graphs):
        right = Ego.anchors(ego, graphs)
        return replace(right, nodes=spoil(*right.nodes))

    law = "anchors name nodes and edges of the same example"
    assert complaint(broken(anchors=anchors)) == f"Broken: {law} ({found})"


@pytest.mark.parametrize(
    ("costs", "found"),
    [
        (lambda graphs: np.ones(len(graphs) + 1, np.int64), "returned int64 of shape (18,)"),
        (lambda graphs: np.ones(len(graphs)), "returned float64 of shape (17,)"),
        (lambda graphs: -np.ones(len(graphs), np.int64), "one is -1"),
        (
            lambda graphs: [1] * len(graphs),
            "AttributeError: 'list' object has no attribute 'shape'",
        ),
    ],
)
def test_costs_that_are_none(costs, found):
    made = broken(costs=lambda ego, graphs: costs(graphs))
    assert complaint(made) == f"Broken: costs are one integer ≥ 0 per example ({found})"


def test_settings_that_are_no_json():
    @dataclass(frozen=True)
    class Broken(Ego):
        wanted: frozenset[int] = frozenset({1})

    assert complaint(Broken()) == (
        "Broken: settings are JSON and rebuild the decomposition "
        "(TypeError: Object of type frozenset is not JSON serializable)"
    )


def test_settings_that_build_something_else():
    @dataclass(frozen=True)
    class Broken(Ego):
        scale: int = 1

        def settings(self):
            return {"name": "broken", "scale": 2 * self.scale}

    assert complaint(Broken()) == (
        "Broken: settings are JSON and rebuild the decomposition "
        "({'name': 'broken', 'scale': 2} become {'name': 'broken', 'scale': 4})"
    )


def test_settings_that_leave_something_out():
    class Broken(Ego):
        def settings(self):
            return {"name": "broken"}

    assert complaint(Broken((0, 3))) == (
        "Broken: settings are JSON and rebuild the decomposition "
        "(the rebuilt decomposition gives another hierarchy)"
    )


def test_numbers_that_no_network_can_bear():
    def decompose(hierarchy, graphs, ego):
        vectors = np.full((graphs.n_nodes, 1), 1e200)
        return Hierarchy(Attributes(vectors=vectors), hierarchy.relations, hierarchy.names)

    assert complaint(spoilt(decompose)).startswith("Broken: networks train on it (")


# A decomposition cannot break these: they are promises of the library.


@pytest.mark.parametrize(
    ("spoil", "found"),
    [
        (lambda C, D: (2 * C, D), "CD is not I on level 0"),
        (lambda C, D: (C, D[:, ::-1]), "CD is not I on level 0"),
        (lambda C, D: (C[::-1], D[:, ::-1]), ""),
        (lambda C, D: (C[:, ::-1], D[::-1]), "M is not DCM on level 0"),
    ],
)
def test_compression_that_loses_something(monkeypatch, spoil, found):
    right = Compressed.matrices
    monkeypatch.setattr(Compressed, "matrices", lambda self, level: spoil(*right(self, level)))
    if found:
        assert complaint(Ego()) == f"Ego: compression is lossless ({found})"
    else:  # classes in another order are as good
        check_decomposition(Ego())


def test_chunks_that_differ_from_the_whole(monkeypatch):
    monkeypatch.setattr("saen.testing.compress_graphs", lambda graphs, ego, **options: None)
    assert complaint(Ego()) == (
        "Ego: compression is lossless (compress_graphs differs from compress)"
    )


def test_networks_that_compute_something_else(monkeypatch):
    class Other(SAEN):
        def forward(self, structures, *rest, **options):
            shift = 1e-3 if isinstance(structures, Compressed) else 0
            return super().forward(structures, *rest, **options) + shift

    monkeypatch.setattr("saen.testing.SAEN", Other)
    assert complaint(Ego()).startswith(
        "Ego: networks compute the same on compressed data (outputs differ by "
    )
