"""Nothing in the data is ignored in silence; what is asked for must be there."""

import numpy as np
import pytest

from saen import BlendClassifier, Ego, Graphs, NestedData, make_decomposition
from saen.learning.unused import unused_by, unused_information

EDGES = [[(0, 1), (1, 2)]]


def unused(graphs, **settings):
    lines = unused_information(graphs, Ego(radii=(0, 1), **settings).fit(graphs))
    return [line.partition(" are ")[0].partition(" not ")[0] for line in lines]


def everything() -> Graphs:
    return Graphs.from_edge_lists(
        EDGES,
        directed=True,
        node_labels=["a", "b", "c"],
        node_attributes=np.zeros((3, 1)),
        edge_labels=["x", "y"],
        edge_attributes=np.zeros((2, 1)),
    ).with_extra({"mass": [1.0]})


def test_unused_names_everything_that_ego_ignores():
    graphs = everything()
    expected = ["edge labels", "edge directions", "edge attributes"]
    expected += ["node labels", "node attributes", "1 column"]
    assert unused(graphs, node_labels="degree") == expected
    assert unused(graphs, node_labels="node,attributes", edges="roles") == [
        "edge attributes",
        "1 column",
    ]
    assert unused(graphs, node_labels="node,attribute-bins:2", edges="bins") == ["1 column"]


@pytest.mark.parametrize("budget", ["quick", "normal"])
def test_unused_by_a_blend_is_what_validate_says(budget: str) -> None:
    graphs = everything()
    assert unused_by(BlendClassifier(budget=budget), graphs) == unused_information(graphs, None)


def test_unused_is_empty_where_there_is_nothing_to_ignore():
    assert unused(Graphs.from_edge_lists(EDGES)) == []


def test_unused_gives_an_option_that_works():
    labelled = Graphs.from_edge_lists(EDGES, edge_labels=["x", "y"])
    weighted = Graphs.from_edge_lists(EDGES, edge_attributes=[[0.5], [1.5]])
    for graphs in (labelled, weighted):
        [line] = unused_information(graphs, Ego(radii=(0, 1)).fit(graphs))
        spec = line.partition('--decomposition "')[2].removesuffix('")')
        assert unused_information(graphs, make_decomposition(spec).fit(graphs)) == []


def test_keys_of_nested_data_that_are_not_used_are_named() -> None:
    data = NestedData([{"w": ["x"]}]).with_extra({"lab": ["a"], "mass": [1.5]})
    assert unused_information(data, None) == ["2 columns not used: lab, mass"]


def test_the_column_that_molecules_are_made_of_is_used() -> None:
    graphs = Graphs.from_edge_lists(EDGES).with_extra({"Smiles": ["CCC"], "lab": ["a"]})
    assert unused_information(graphs, None) == ["1 column not used: lab"]
    renamed = graphs.with_extra({"structure": ["CCC"]})
    assert unused_information(renamed, None, smiles="structure") == []
    assert unused_information(graphs, None, groups="Lab") == []
