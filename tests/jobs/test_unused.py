"""Nothing in the data is ignored in silence; what is asked for must be there."""

import numpy as np
import pytest

from saen import (
    Classifier,
    Graphs,
    NestedData,
    PartCountsClassifier,
    SAENClassifier,
    make_decomposition,
)
from saen.decompositions import Ego
from saen.jobs.notes import unused_by, unused_information

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
    assert unused_by(Classifier(budget=budget).learner(), graphs) == unused_information(
        graphs, None
    )


def test_unused_is_empty_where_there_is_nothing_to_ignore():
    assert unused(Graphs.from_edge_lists(EDGES)) == []


def test_unused_gives_an_option_that_works():
    labelled = Graphs.from_edge_lists(EDGES, edge_labels=["x", "y"])
    weighted = Graphs.from_edge_lists(EDGES, edge_attributes=[[0.5], [1.5]])
    for graphs in (labelled, weighted):
        [line] = unused_information(graphs, Ego(radii=(0, 1)).fit(graphs))
        spec = line.partition('--decomposition "')[2].removesuffix('")')
        assert unused_information(graphs, make_decomposition(spec).fit(graphs)) == []


def test_unused_by_part_counts_advises_bins():
    counts = PartCountsClassifier().learner()
    graphs = Graphs.from_edge_lists(EDGES, node_labels=list("abc"), node_attributes=np.eye(3))
    [line] = unused_by(counts, graphs)
    assert line == (
        "node attributes are not used (use them with --node-labels node,attribute-bins)"
    )
    for labels, bad in (("node,attributes", True), ("node,attribute-bins", False)):
        lines = unused_by(PartCountsClassifier(node_labels=labels).learner(), graphs)
        assert [line.partition(",")[0] for line in lines] == (
            ["parts with real-valued attributes hardly ever repeat"] if bad else []
        )
    plain = Graphs.from_edge_lists(EDGES, node_attributes=np.eye(3))
    assert "bins with --node-labels attribute-bins" in unused_by(counts, plain)[0]
    assert unused_by(SAENClassifier().learner(), plain) == []


def test_many_columns_that_are_not_used_are_counted() -> None:
    data = NestedData([{"w": ["x"]}]).with_extra({f"c{i}": [1] for i in range(11)})
    [line] = unused_information(data, None)
    assert line == "11 columns not used: c0, c1, c2, c3, c4, c5, c6, c7 and 3 more"


def test_keys_of_nested_data_that_are_not_used_are_named() -> None:
    data = NestedData([{"w": ["x"]}]).with_extra({"lab": ["a"], "mass": [1.5]})
    assert unused_information(data, None) == ["2 columns not used: lab, mass"]


def test_the_column_that_molecules_are_made_of_is_used() -> None:
    graphs = Graphs.from_edge_lists(EDGES).with_extra({"Smiles": ["CCC"], "lab": ["a"]})
    assert unused_information(graphs, None) == ["1 column not used: lab"]
    renamed = graphs.with_extra({"structure": ["CCC"]})
    assert unused_information(renamed, None, read=["structure"]) == []
    assert unused_information(graphs, None, read=["smiles", "Lab"]) == []
