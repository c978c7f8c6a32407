from __future__ import annotations

import copy

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from saen.data.graphs import Graphs
from saen.errors import InputError
from saen.io.libraries.networkx import from_networkx, to_networkx
from saen.io.libraries.scipy import from_scipy, to_scipy
from tests.io.refusals import refusal
from tests.properties.strategies import graph_collections

NAMES = ["a", "b", 7, (1, 2), 3.5, frozenset(), True]
LABELS = {
    "none": None,
    "numbers": st.integers(-(2**40), 2**40),
    "strings": st.text(alphabet="aé \n0", max_size=3),
    "tuples": st.tuples(st.integers(0, 3), st.integers(0, 3)),
}


@st.composite
def networkx_collections(draw):
    """Graphs of one direction: loops, isolated nodes, empty graphs, labels of one kind."""
    kind = nx.DiGraph if draw(st.booleans()) else nx.Graph
    node_labels, edge_labels = (LABELS[draw(st.sampled_from(sorted(LABELS)))] for _ in range(2))
    out = []
    for _ in range(draw(st.integers(0, 3))):
        graph = kind()
        names = draw(st.permutations(NAMES))
        for name in names[: draw(st.integers(0, 5))]:
            graph.add_node(name, **({} if node_labels is None else {"label": draw(node_labels)}))
        if len(graph):
            ends = st.sampled_from(list(graph))
            for source, target in draw(st.lists(st.tuples(ends, ends), max_size=8)):
                data = {} if edge_labels is None else {"label": draw(edge_labels)}
                graph.add_edge(source, target, **data)
        out.append(graph)
    return out


def numbered(graph):
    return nx.relabel_nodes(graph, {name: number for number, name in enumerate(graph)})


def content(graph):
    return type(graph), list(graph.nodes(data=True)), list(graph.edges(data=True)), graph.graph


@settings(max_examples=80, deadline=None)
@given(networkx_collections())
def test_to_and_from_networkx_undo_each_other_up_to_the_names_of_nodes(originals):
    before = copy.deepcopy(originals)
    graphs = from_networkx(originals, targets=range(len(originals)))
    returned = to_networkx(graphs)
    assert from_networkx(returned, targets=graphs.targets) == graphs
    assert graphs.degrees().tolist() == [d for graph in originals for _, d in graph.degree]
    assert [graph.graph.pop("target") for graph in returned] == [*range(len(originals))]
    assert [content(graph) for graph in originals] == [content(graph) for graph in before]
    assert len(returned) == len(originals) == len(graphs)
    for mine, theirs in zip(returned, originals, strict=True):
        assert list(mine) == list(range(len(theirs)))
        assert nx.utils.graphs_equal(mine, numbered(theirs))


@pytest.mark.parametrize("directed", [False, True])
def test_networkx_real_attributes_of_nodes_and_edges_come_back(directed):
    graphs = Graphs.from_edges(
        [(0, 1), (1, 2), (2, 2), (3, 4)],
        sizes=[3, 0, 2],
        directed=directed,
        node_attributes=np.array([[0.5, np.nan], [1, 2], [3, 4], [5, 6], [7, -0.0]]),
        edge_attributes=np.array([[1.5], [np.nan], [np.inf], [4]]),
        edge_labels=["x", "y", "z", "x"],
    )
    names = ["attributes"]
    returned = from_networkx(to_networkx(graphs), node_attributes=names, edge_attributes=names)
    assert returned == graphs


def test_networkx_named_attributes_become_columns_in_the_order_given():
    graph = nx.Graph()
    graph.add_node("a", mass=1, place=[0.0, 2.5], heavy=True)
    graph.add_node("b", mass=np.float32(2), place=(1, 3), heavy=False)
    graph.add_edge("a", "b", length=2)
    graphs = from_networkx(
        [graph], node_attributes=["place", "mass", "heavy"], edge_attributes=["length"]
    )
    assert graphs.node_attributes.tolist() == [[0.0, 2.5, 1.0, 1.0], [1.0, 3.0, 2.0, 0.0]]
    assert graphs.edge_attributes.tolist() == [[2.0], [2.0]]
    assert graphs.node_labels is None


def test_networkx_labels_are_taken_from_the_attribute_that_is_named_or_not_at_all():
    graph = nx.path_graph(2)
    nx.set_node_attributes(graph, {0: "C", 1: "N"}, "element")
    nx.set_node_attributes(graph, 1, "label")
    nx.set_edge_attributes(graph, 2, "bond")
    graphs = from_networkx([graph], node_label="element", edge_label="bond")
    assert graphs.node_labels.tolist() == ["C", "N"]
    assert graphs.edge_labels.tolist() == [2, 2]
    both = from_networkx([graph], node_label=["element", "label"], edge_attributes=None)
    assert both.node_labels.tolist() == [["C", "1"], ["N", "1"]]
    bare = from_networkx([graph], node_label=None, edge_attributes=["bond"])
    assert bare.node_labels is None
    assert (bare.edge_labels, bare.edge_attributes.tolist()) == (None, [[2.0], [2.0]])


def test_targets_come_from_the_argument_alone():
    graph = nx.path_graph(2, create_using=nx.Graph)
    graph.graph["target"] = 3
    assert from_networkx([graph]).targets is None
    assert from_networkx([graph], targets=[1.5]).targets.tolist() == [1.5]


def test_networkx_no_graphs_and_no_nodes_are_no_problem():
    assert from_networkx([]) == from_scipy([]) == Graphs.from_edge_lists([])
    assert to_networkx(Graphs.from_edge_lists([])) == []
    assert from_networkx(iter([nx.Graph(), nx.Graph()])).sizes.tolist() == [0, 0]
    [empty] = to_networkx(Graphs.from_edges([], sizes=[0]))
    assert len(empty) == 0


def labelled(labels, kind=nx.Graph):
    graph = kind()
    for number, label in enumerate(labels):
        graph.add_node(f"n{number}", **({} if label is None else {"label": label}))
    return graph


@pytest.mark.parametrize(
    ("graphs", "options", "message"),
    [
        (nx.path_graph(2), {}, "expected a list of networkx graphs, found a single one: pass "),
        ([nx.Graph(), "a"], {}, "graph 1: expected a networkx graph, found str"),
        ([nx.MultiGraph()], {}, "graph 0 is a MultiGraph: merge its parallel edges with netw"),
        ([nx.DiGraph(), nx.MultiDiGraph()], {}, "graph 1 is a MultiDiGraph: merge its parallel"),
        ([nx.Graph(), nx.DiGraph()], {}, "graph 1 is directed, but earlier graphs are not: conv"),
        ([labelled([1]), labelled([2, None])], {}, "graph 1, node 'n1' has no 'label', but oth"),
        ([nx.path_graph(2)], {"node_label": "atom"}, "no node has 'atom'"),
        ([nx.path_graph(2)], {"edge_label": "bond"}, "no edge has 'bond'"),
        ([labelled([1.0])], {}, "graph 0, node 'n0': the label must be an integer or a string, "),
        ([labelled([1])], {"node_label": ["label", "mass"]}, "no node has 'mass': choose from "),
        ([labelled([1])], {"node_attributes": ["mass"]}, "no node has 'mass': choose from label"),
        ([labelled(["x"])], {"node_attributes": ["label"]}, "graph 0, node 'n0': 'label' must be"),
        ([labelled([1])], {"targets": [1, 2]}, "targets: expected 1 rows, found shape (2,)"),
        ([nx.Graph([("a", "b", {"label": 1}), ("b", "c")])], {}, "graph 0, edge ('b', 'c') has no"),
    ],
)
def test_networkx_graphs_that_are_invalid_are_named(graphs, options, message):
    assert refusal(InputError, from_networkx, graphs, **options).startswith(message)


def test_edge_columns_that_differ_by_direction_do_not_fit_into_networkx():
    graphs = Graphs.from_edges(
        [(0, 1), (2, 3), (3, 2)], sizes=[2, 2], edge_labels=[[1, 1], [1, 2], [1, 3]]
    )
    assert refusal(InputError, to_networkx, graphs) == (
        "graph 1: the two directions of edge 0 – 1 have different edge labels, "
        "but networkx stores only one"
    )


FORMATS = ["csr", "csc", "coo", "lil", "dok", "dia", "bsr"]


@settings(max_examples=50, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.integers(0, 5),
            st.sets(st.tuples(st.integers(0, 4), st.integers(0, 4))),
            st.sampled_from(FORMATS),
            st.booleans(),
        ),
        max_size=3,
    ),
    st.booleans(),
)
def test_from_scipy_agrees_with_networkx_in_every_format(drawn, directed):
    matrices, originals = [], []
    for size, pairs, layout, as_matrix in drawn:
        dense = np.zeros((size, size), dtype=np.int64)
        for row, column in pairs:
            if row < size and column < size:
                dense[row, column] = 1
                if not directed:
                    dense[column, row] = 1
        if size == 0 and layout in ("dia", "bsr"):
            layout = "csr"
        kind = f"{layout}_{'matrix' if as_matrix else 'array'}"
        matrices.append(getattr(sparse, kind)(dense))
        create = nx.DiGraph if directed else nx.Graph
        originals.append(nx.from_numpy_array(dense, create_using=create))
    before = [matrix.copy() for matrix in matrices]
    graphs = from_scipy(matrices, directed=directed)
    expected = from_networkx(originals, edge_attributes=None)
    assert graphs == (expected if matrices else Graphs.from_edges([], [], directed=directed))
    for matrix, unchanged in zip(matrices, before, strict=True):
        assert type(matrix) is type(unchanged)
        assert (matrix != unchanged).nnz == 0 if matrix.shape[0] else matrix.shape == (0, 0)


def test_scipy_stored_zeros_are_no_edges_and_repeated_entries_are_added_first():
    rows, columns = [0, 1, 1, 2, 0, 2, 0, 2], [1, 0, 2, 1, 2, 0, 2, 0]
    values = [1.0, 1.0, 0.0, 0.0, 2.0, 2.0, -2.0, 3.0]
    matrix = sparse.coo_array((values, (rows, columns)), shape=(3, 3))
    with pytest.raises(InputError, match="graph 0: the matrix is not symmetric"):
        from_scipy([matrix])
    graphs = from_scipy([matrix], directed=True, weights=True)
    assert graphs.edges().tolist() == [[0, 1], [1, 0], [2, 0]]
    assert graphs.edge_attributes.tolist() == [[1.0], [1.0], [5.0]]
    assert matrix.nnz == 8


def test_scipy_an_unsorted_matrix_is_read_and_left_unsorted():
    matrix = sparse.csr_array(([1, 2, 1, 2], [2, 1, 0, 0], [0, 2, 3, 4]), shape=(3, 3))
    before = copy.deepcopy(matrix)
    graphs = from_scipy([matrix], weights=True)
    assert graphs.edges().tolist() == [[0, 1], [0, 2]]
    assert graphs.edge_attributes.ravel().tolist() == [2, 1, 1, 2]
    for key in ("data", "indices", "indptr"):
        assert getattr(matrix, key).tolist() == getattr(before, key).tolist()
        assert getattr(matrix, key).flags.writeable


def test_scipy_values_do_not_matter_without_weights():
    matrix = sparse.csr_array([[0, 0.5], [-3, np.nan]])
    graphs = from_scipy([matrix])
    assert graphs.edge_attributes is None
    assert graphs == from_scipy([matrix != 0])


def test_scipy_node_labels_of_matrices_come_one_sequence_each():
    edge, nothing = sparse.csr_array([[0, 1], [1, 0]]), sparse.csr_array((0, 0))
    graphs = from_scipy(
        [edge, nothing, edge], node_labels=[["a", "bb"], [], ["c", "d"]], targets=[1, 2, 1]
    )
    assert graphs.node_labels.tolist() == ["a", "bb", "c", "d"]
    assert graphs.targets.tolist() == [1, 2, 1]
    assert from_scipy([nothing], node_labels=[[]]).node_labels.shape == (0,)


ONE, TWO = sparse.csr_array((1, 1)), sparse.csr_array((2, 2))


@pytest.mark.parametrize(
    ("matrices", "options", "message"),
    [
        (TWO, {}, "expected a list of sparse matrices, found a single one: pass [matrix]"),
        ([np.eye(2)], {}, "graph 0: expected a scipy sparse matrix, found ndarray (wrap it in "),
        ([TWO, sparse.csr_array((2, 3))], {}, "graph 1: an adjacency matrix must be square, but "),
        ([sparse.coo_array([1, 0])], {}, "graph 0: an adjacency matrix must be square, but the "),
        ([ONE, sparse.csr_array([[0, 1], [0, 0]])], {}, "graph 1: the matrix is not symmetric "),
        ([ONE], {"node_labels": []}, "1 matrices, but node labels for 0"),
        ([ONE, TWO], {"node_labels": [[1], [1]]}, "graph 1 has 2 nodes, but node labels of shape "),
        ([ONE] * 2, {"node_labels": [[1], ["a"]]}, "node labels mix integers and strings"),
        ([ONE] * 2, {"node_labels": [[1], [[1, 2]]]}, "node labels differ in their number of "),
        ([sparse.csr_array([[1j]])], {"weights": True}, "graph 0: weights must be real numbers"),
    ],
)
def test_scipy_matrices_that_are_invalid_are_named(matrices, options, message):
    assert refusal(InputError, from_scipy, matrices, **options).startswith(message)


@given(graph_collections(), st.booleans())
def test_from_scipy_undoes_to_scipy(drawn, weights):
    graphs = drawn.graphs.with_targets(np.arange(len(drawn.graphs)))
    if weights:
        values = np.arange(len(graphs.indices))[:, None] / 4 - 100
        graphs = graphs._with(edge_attributes=values)
    matrices = to_scipy(graphs, weights=weights)
    assert all(matrix.format == "csr" and matrix.has_canonical_format for matrix in matrices)
    assert weights or all((matrix.data == 1).all() for matrix in matrices)
    labels = None
    if graphs.node_labels is not None and graphs.n_nodes:
        labels = [graph.node_labels for graph in graphs]
    elif graphs.node_labels is not None:
        graphs = graphs._with(node_labels=None)
    returned = from_scipy(
        matrices,
        node_labels=labels,
        targets=graphs.targets,
        directed=graphs.directed,
        weights=weights,
    )
    assert returned == graphs


def test_scipy_matrices_are_copies_that_can_be_changed():
    graphs = Graphs.from_edge_lists([[(0, 1)]], edge_attributes=[[2.0]])
    [matrix] = to_scipy(graphs, weights=True)
    matrix.data[:] = 5
    matrix.indices[:] = 0
    assert graphs.edge_attributes.tolist() == [[2.0], [2.0]]
    assert graphs.indices.tolist() == [1, 0]


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        (None, "weights must be one column of edge attributes, found none"),
        (np.ones((2, 2)), "weights must be one column of edge attributes, found 2 columns"),
        (
            np.array([[1.0], [0.0]]),
            "graph 2 has an edge of weight 0, which a sparse matrix cannot store",
        ),
    ],
)
def test_scipy_weights_that_no_matrix_can_hold_are_named(attributes, message):
    graphs = Graphs.from_edges([(0, 1), (2, 3)], [2, 0, 2], edge_attributes=attributes)
    assert refusal(InputError, to_scipy, graphs, weights=True) == message
