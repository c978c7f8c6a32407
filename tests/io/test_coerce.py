"""Data of other libraries, as they are passed to estimators."""

from __future__ import annotations

import warnings

import networkx as nx
import pandas as pd
import pytest

import saen
from saen.errors import InputError
from saen.io.libraries.coerce import as_data


def test_text_of_networkx_graphs_is_labels_and_numbers_are_attributes() -> None:
    graph = nx.path_graph(2)
    nx.set_node_attributes(graph, "C", "label")
    nx.set_node_attributes(graph, {0: "ring", 1: "chain"}, "place")
    nx.set_node_attributes(graph, 0.5, "charge")
    nx.set_edge_attributes(graph, 1.5, "weight")
    read = as_data([graph])
    assert read.node_labels.tolist() == [["C", "ring"], ["C", "chain"]]
    assert (read.node_attributes.tolist(), read.edge_attributes.tolist()) == (
        [[0.5], [0.5]],
        [[1.5], [1.5]],
    )
    nx.set_node_attributes(graph, {0: {"a": 1}, 1: None}, "other")
    with pytest.warns(UserWarning, match="attributes of nodes not read: 'other'"):
        as_data([graph])


def test_attributes_of_networkx_graphs_are_named_by_the_first_few_of_many() -> None:
    graph = nx.path_graph(2)
    for number in range(7):
        nx.set_node_attributes(graph, {0: 0.5}, f"a long name of column {number}")
    names = ", ".join(f"'a long name of column {number}'" for number in range(5))
    with pytest.warns(UserWarning, match=rf"not read: {names} and 2 others"):
        as_data([graph])


def test_attributes_of_networkx_graphs_are_warned_of_once_at_the_line_of_the_user() -> None:
    graphs = [nx.path_graph(n) for n in range(2, 14)]
    for graph in graphs:
        nx.set_edge_attributes(graph, None, "weight")
    for model in (
        saen.SAENClassifier(epochs=1, n_models=1),
        saen.Classifier(candidates=[saen.PartCountsClassifier(C=1.0, depth=1)]),
    ):
        for use in (
            lambda model=model: model.fit(graphs, [0, 1] * 6),
            lambda model=model: model.predict(graphs),
            lambda model=model: model.predict(graphs[:1]),
        ):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                use()
            unread = [each for each in caught if "not read" in str(each.message)]
            assert [each.filename for each in unread] == [__file__]


def test_a_data_frame_is_not_a_list_of_graphs() -> None:
    table = pd.DataFrame({"graph": [nx.path_graph(2), nx.path_graph(3)]})
    with pytest.raises(InputError, match="X is a table: pass its column of graphs"):
        as_data(table)
    assert len(as_data(table["graph"])) == 2


def test_a_single_graph_or_molecule_is_no_list() -> None:
    with pytest.raises(InputError, match=r"X is a single DiGraph: pass a list, \[X\]"):
        as_data(nx.DiGraph([(0, 1)]))
    chem = pytest.importorskip("rdkit.Chem")
    with pytest.raises(InputError, match="X is a single Mol: pass"):
        as_data(chem.MolFromSmiles("CCO"))
