"""Data of other libraries, as they are passed to estimators."""

from __future__ import annotations

import networkx as nx
import pandas as pd
import pytest

from saen.errors import InputError
from saen.io.coerce import as_data


def test_attributes_of_networkx_graphs_that_are_not_read_are_named() -> None:
    graph = nx.path_graph(2)
    nx.set_node_attributes(graph, "C", "label")
    assert as_data([graph]).node_labels.tolist() == ["C", "C"]  # without a warning
    nx.set_node_attributes(graph, 0.5, "charge")
    nx.set_edge_attributes(graph, 1.5, "weight")
    with pytest.warns(UserWarning, match=r"not read: node 'charge', edge 'weight' \(only 'label'"):
        as_data([graph])


def test_a_data_frame_is_not_a_list_of_graphs() -> None:
    table = pd.DataFrame({"graph": [nx.path_graph(2), nx.path_graph(3)]})
    with pytest.raises(InputError, match="X is a table: pass its column of graphs"):
        as_data(table)
    assert len(as_data(table["graph"])) == 2
