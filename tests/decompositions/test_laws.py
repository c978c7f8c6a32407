"""The laws of `check_decomposition`, over all decompositions, many settings and random data."""

from __future__ import annotations

import json
from itertools import product

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from saen import Decomposition, Documents, Graphs, NestedData
from saen.decompositions import (
    DependencyPaths,
    Edges,
    Ego,
    Neighbourhoods,
    Nested,
    Nodes,
    Pairs,
    Paths,
)
from saen.decompositions.registry import decomposition_from_json, decomposition_to_json
from saen.testing import check_decomposition
from tests.properties.labelled import labelled_collections
from tests.properties.texts import drawn_documents
from tests.references.nested import collections

LABELS = ["auto", "node,log-degree:2", "core", "attributes,triangles", "attributes", "rings,hub"]
DISTANCES = ["distance", "degree,distance", "attributes,distance"]
EDGES = ["none", "auto", "objects"]
DIRECTIONS = ["both", "out", "in"]


def graph_decompositions(rooted: bool) -> list[dict[str, str]]:
    """Settings of labels, directions and edges that go together."""
    return [
        {"node_labels": labels, "direction": direction, "edges": edges}
        for labels, direction, edges in product(LABELS + DISTANCES * rooted, DIRECTIONS, EDGES)
        if edges != "objects" or not {"attributes", "distance"} & {*labels.split(",")}
    ]


bags = st.builds(
    lambda cls, labels, direction: cls(labels, direction),
    st.sampled_from([Nodes, Edges]),
    st.sampled_from(LABELS),
    st.sampled_from(DIRECTIONS),
)
radii = st.lists(st.integers(0, 3), min_size=1, max_size=3, unique=True)
egos = st.builds(
    lambda radii, common: Ego(radii, **common),
    radii,
    st.sampled_from(graph_decompositions(rooted=True)),
)
neighbourhoods = st.builds(
    lambda depth, common: Neighbourhoods(depth, **common),
    st.integers(1, 3),
    st.sampled_from(graph_decompositions(rooted=False)),
)
pairs = st.builds(Pairs, st.integers(0, 3), st.sampled_from(LABELS), st.sampled_from(DIRECTIONS))
paths = st.builds(
    lambda radii, length, cap, both, common: Paths(
        [min(radius, 2) for radius in radii][:1], length, cap=cap, both_ways=both, **common
    ),
    radii,
    st.integers(0, 3),
    st.sampled_from([1, 2, 16]),
    st.booleans(),
    st.sampled_from(graph_decompositions(rooted=True)),
)
texts = st.builds(
    DependencyPaths,
    st.integers(0, 4),
    sentences=st.sampled_from(["none", "position"]),
    relations=st.booleans(),
    both_ways=st.booleans(),
)


@pytest.mark.parametrize(
    "decomposition", [Ego(), Neighbourhoods(), Pairs(), Paths(), Nodes(), Edges()]
)
def test_decompositions_keep_the_laws_on_graphs_of_all_kinds(decomposition):
    check_decomposition(decomposition)


@pytest.mark.parametrize("kind", ["bags", "egos", "neighbourhoods", "pairs", "paths"])
@settings(max_examples=8)
@given(st.data())
def test_decompositions_keep_the_laws_with_any_settings(kind, data):
    decomposition = data.draw(globals()[kind])
    check_decomposition(decomposition)


@pytest.mark.parametrize("kind", ["bags", "egos", "neighbourhoods", "pairs", "paths"])
@given(labelled_collections(), st.data())
def test_decompositions_keep_the_laws_on_random_graphs(kind, drawn, data):
    assume(len(drawn.graphs) >= 2)
    decomposition = data.draw(
        globals()[kind].filter(lambda d: not {"attributes", "node,log-degree:2"} & _kinds(d))
    )
    check_in_small_blocks(decomposition, drawn.graphs, data)


def _kinds(decomposition: Decomposition) -> set[str]:
    return {decomposition.node_labels, *decomposition.node_labels.split(",")}


@given(drawn_documents(labelled=True), texts, st.data())
def test_dependency_paths_keep_the_laws_on_random_documents(documents, decomposition, data):
    assume(len(documents) >= 2)
    check_in_small_blocks(decomposition, documents, data)


@given(collections(min_size=2), st.booleans())
def test_nested_keeps_the_laws_on_random_data(drawn, named):
    items, levels = drawn
    check_decomposition(Nested(levels if named else ()), NestedData(items, levels=levels))


def check_in_small_blocks(
    decomposition: Decomposition, examples: Graphs | Documents, data: st.DataObject
) -> None:
    """The laws, and a file, with work cut into pieces of any size."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("saen._util.arrays.BLOCK", data.draw(st.sampled_from([3, 50, 1 << 18])))
        chunk = data.draw(st.sampled_from([20, 1 << 22]))
        patch.setattr("saen.data.chunks._MAX_CHUNK_ENTRIES", chunk)
        check_decomposition(decomposition, examples)
    fitted = decomposition.fit(examples)
    assert decomposition_from_json(json.loads(json.dumps(decomposition_to_json(fitted)))) == fitted
    assert fitted.fit(examples) == fitted
