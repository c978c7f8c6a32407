"""Samples keep every role, rows have few crossings, layouts keep distances."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from saen import Graphs, Hierarchy, Relation
from saen.decompositions import Ego
from saen.report._layout import (
    MAX_NODES,
    MAX_ROW,
    Lines,
    layout,
    neighbourhood,
    sampled,
    untangled,
)
from tests.report.pictures import LARGE


def test_lines_of_several_roles_between_two_objects_bend_apart() -> None:
    relation = Relation([0, 3], [0, 0, 1], [0, 1, 0], ("root", "elem"), n_parts=2)
    bends = Lines.of(relation, np.arange(1), np.arange(2)).bends
    assert sorted(bends.tolist()) == [-0.5, 0.0, 0.5]


def test_sampled_objects_keep_every_role_and_some_parts() -> None:
    graphs, ego = LARGE
    hierarchy = ego.decompose(graphs)
    shown = sampled(hierarchy)
    for level, relation in enumerate(hierarchy.relations, start=1):
        lines = Lines.of(relation, shown[level], shown[level - 1])
        assert np.bincount(lines.parents, minlength=len(shown[level])).min() >= 1
        assert set(lines.roles.tolist()) == set(range(relation.n_roles))
    by_radius = np.bincount(hierarchy.relations[1].roles[shown[1]])
    assert by_radius.tolist() == [MAX_ROW // 2, MAX_ROW // 2]


def test_neighbourhood_of_a_large_graph_is_connected() -> None:
    graphs, _ = LARGE
    kept = neighbourhood(graphs)
    assert len(kept) == MAX_NODES
    assert int(graphs.degrees().argmax()) in kept
    inside = np.isin(graphs.edges(), kept).all(axis=1)
    assert inside.sum() == MAX_NODES - 1  # a tree again
    around_the_hub = (graphs.edges()[inside] == graphs.degrees().argmax()).any(axis=1)
    assert around_the_hub.mean() < 0.6  # though it has more neighbours than there is room for
    assert graphs.degrees().max() > MAX_NODES


def crossings(hierarchy: Hierarchy, shown: list[Any]) -> int:
    total = 0
    for level, relation in enumerate(hierarchy.relations, start=1):
        lines = Lines.of(relation, shown[level], shown[level - 1])
        left = lines.parents[:, None] < lines.parents
        total += int((left & (lines.parts[:, None] > lines.parts)).sum())
    return total


def test_untangled_rows_keep_the_objects_and_have_few_crossings() -> None:
    order = np.random.default_rng(0).permutation(30)
    path = Graphs.from_edge_lists([list(zip(order[:-1].tolist(), order[1:].tolist(), strict=True))])
    hierarchy = Ego((0, 1)).decompose(path)
    shown = sampled(hierarchy)
    ordered = untangled(hierarchy, shown)
    assert [sorted(ids.tolist()) for ids in ordered] == [ids.tolist() for ids in shown]
    assert crossings(hierarchy, ordered) < 0.1 * crossings(hierarchy, shown)
    standing = ordered[0].tolist()
    assert order.tolist() in (standing, standing[::-1])


def test_layout_of_a_path_is_a_line() -> None:
    places = layout(np.column_stack([np.arange(9), np.arange(1, 10)]), 10)
    gaps = np.linalg.norm(np.diff(places, axis=0), axis=1)
    np.testing.assert_allclose(gaps, 1, atol=0.05)
    assert np.linalg.norm(places[-1] - places[0]) > 8.5


@pytest.mark.parametrize("n", [2, 5, 40])
@pytest.mark.parametrize("dense", [False, True])
def test_layout_gives_every_node_a_place_of_its_own(n: int, dense: bool) -> None:
    edges = np.argwhere(np.triu(np.ones((n, n)), 1)) if dense else np.empty((0, 2), np.int64)
    places = layout(edges, n)
    apart = np.linalg.norm(places[:, None] - places, axis=2) + np.eye(n)
    assert np.isfinite(places).all()
    assert apart.min() > 0.05
