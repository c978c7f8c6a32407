from __future__ import annotations

import copy
import subprocess
import sys
import zipfile
from typing import ClassVar

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from saen import Graphs
from saen._util.arrays import segment_ids
from saen.errors import InputError, MissingExtraError
from saen.io.libraries.pyg import from_pyg, to_pyg
from saen.io.sources.local import locate
from tests.io.refusals import refusal
from tests.properties.strategies import graph_collections

pyg = pytest.importorskip("torch_geometric.data")
FakeDataset = pytest.importorskip("torch_geometric.datasets").FakeDataset
TUDataset = pytest.importorskip("torch_geometric.datasets").TUDataset
DataLoader = pytest.importorskip("torch_geometric.loader").DataLoader

Data, Batch = pyg.Data, pyg.Batch


def edges(*pairs):
    """`edge_index` with every pair in both directions."""
    both = [pair for u, v in pairs for pair in (((u, v),) if u == v else ((u, v), (v, u)))]
    return torch.tensor(both, dtype=torch.int64).reshape(-1, 2).T


@st.composite
def labelled_collections(draw):
    """Graphs with any choice of columns; real numbers are exact in float32."""
    graphs = draw(graph_collections()).graphs
    n, e = graphs.n_nodes, len(graphs.indices)
    reals = st.sampled_from([0.0, 1.0, -2.5, 0.125])

    def labels(count):
        kinds = {
            "numbers": st.lists(st.integers(-5, 5), min_size=count, max_size=count).map(np.int64),
            "strings": st.lists(
                st.sampled_from(["C", "Cl", "é"]), min_size=count, max_size=count
            ).map(lambda column: np.array(column, dtype=np.str_)),
            "pairs": st.lists(
                st.tuples(st.integers(0, 1), st.integers(0, 1)), min_size=count, max_size=count
            ).map(lambda rows: np.array(rows, dtype=np.int64).reshape(-1, 2)),
        }
        return draw(st.one_of(st.none(), kinds[draw(st.sampled_from(sorted(kinds)))]))

    def attributes(count):
        width = draw(st.integers(0, 2))
        flat = draw(st.lists(reals, min_size=count * width, max_size=count * width))
        return np.array(flat).reshape(count, width) if width else None

    targets = draw(
        st.sampled_from(
            [None, np.arange(len(graphs)) - 1, np.arange(len(graphs)) / 4, np.eye(len(graphs), 3)]
        )
    )
    return Graphs(
        graphs.node_offsets,
        graphs.indptr,
        graphs.indices,
        node_labels=labels(n),
        node_attributes=attributes(n),
        edge_labels=labels(e),
        edge_attributes=attributes(e),
        targets=targets,
        directed=graphs.directed,
    )


def distinct(labels):
    return () if labels is None else np.unique(labels, axis=0)


# -- Graphs ------------------------------------------------------------------------------------


@given(labelled_collections())
def test_from_pyg_undoes_to_pyg(graphs):
    returned = from_pyg(
        to_pyg(graphs),
        directed=graphs.directed,
        node_labels=distinct(graphs.node_labels),
        edge_labels=distinct(graphs.edge_labels),
    )
    empty = ["edge_labels", "edge_attributes"] if not len(graphs.indices) else []
    empty += ["node_labels", "node_attributes"] if not graphs.n_nodes else []
    without = dict.fromkeys(empty)  # no labels, no names
    returned, graphs = returned._with(**without), graphs._with(**without)
    assert returned == graphs if len(graphs) else len(returned) == 0


@given(labelled_collections())
def test_pyg_data_hold_what_networks_need(graphs):
    for number, item in enumerate(to_pyg(graphs)):
        one = graphs[number]
        assert item.validate()
        assert item.num_nodes == one.n_nodes
        assert item.edge_index.dtype == torch.int64
        assert item.edge_index.tolist() == [segment_ids(one.indptr).tolist(), one.indices.tolist()]
        for key, labels, attributes in (
            ("x", one.node_labels, one.node_attributes),
            ("edge_attr", one.edge_labels, one.edge_attributes),
        ):
            width = 0 if attributes is None else attributes.shape[1]
            assert (key in item) == (labels is not None or width > 0)
            if key in item:
                assert item[key].dtype == torch.float32
                assert width == 0 or item[key][:, :width].tolist() == attributes.tolist()
                assert labels is None or (item[key][:, width:].sum(dim=1) == 1).all()
        if one.targets is not None:
            assert item.y.tolist() == one.targets.tolist()


def test_pyg_columns_of_labels_are_the_sorted_labels_of_the_whole_collection():
    graphs = Graphs.from_edge_lists(
        [[(0, 1)], [(0, 1)]],
        node_labels=["O", "C", "Cl", "C"],
        edge_labels=[7, -1],
        targets=["wet", "dry"],
    )
    first, second = to_pyg(graphs)
    assert first.x.tolist() == [[0, 0, 1], [1, 0, 0]]
    assert second.x.tolist() == [[0, 1, 0], [1, 0, 0]]
    assert first.edge_attr.tolist() == [[0, 1], [0, 1]]
    assert [first.y.tolist(), second.y.tolist()] == [[1], [0]]


def test_pyg_tensors_are_copies_of_their_own():
    graphs = Graphs.from_edge_lists([[(0, 1)], [(0, 1)]], node_attributes=np.ones((4, 1)))
    first, second = to_pyg(graphs)
    first.x[:] = 5
    first.edge_index[:] = 0
    assert graphs.node_attributes.tolist() == [[1.0]] * 4
    assert second.x.tolist() == [[1.0], [1.0]]
    assert first.x.untyped_storage().nbytes() == 2 * 4


def path(**columns):
    return Data(edge_index=edges((0, 1), (1, 2)), **columns)


def test_pyg_integers_and_one_hot_rows_are_labels_and_the_rest_are_attributes():
    whole = from_pyg([path(x=torch.tensor([[6], [7], [6]]))])
    assert whole.node_labels.tolist() == [6, 7, 6]
    assert whole.node_attributes is None
    several = from_pyg([path(x=torch.tensor([[6, 0], [7, 1], [6, 1]]))])
    assert several.node_labels.tolist() == [[6, 0], [7, 1], [6, 1]]
    one_hot = from_pyg([path(x=torch.tensor([[0.0, 1], [1, 0], [0, 1]]))])
    assert one_hot.node_labels.tolist() == [1, 0, 1]
    real = from_pyg([path(x=torch.tensor([[0.0, 1], [1, 1], [0, 1]]))])
    assert real.node_labels is None
    assert real.node_attributes.tolist() == [[0, 1], [1, 1], [0, 1]]
    constant = from_pyg([path(x=torch.ones(3, 1))])
    assert constant.node_labels is None
    assert constant.node_attributes.tolist() == [[1.0]] * 3
    flat = from_pyg([path(x=torch.tensor([0.5, 1, 2]))])
    assert flat.node_attributes.tolist() == [[0.5], [1.0], [2.0]]


def test_edge_attr_is_read_like_x_and_stays_with_its_edge():
    index = torch.tensor([[1, 0, 2, 1], [0, 1, 1, 2]])
    kinds = torch.tensor([10, 1, 21, 12])
    graphs = from_pyg([Data(edge_index=index, edge_attr=kinds, num_nodes=3)])
    assert not graphs.directed
    assert graphs.edge_labels.tolist() == [1, 10, 12, 21]  # entries 01, 10, 12, 21
    real = from_pyg([Data(edge_index=index, edge_attr=kinds / 4, num_nodes=3)])
    assert real.edge_attributes.ravel().tolist() == [0.25, 2.5, 3.0, 5.25]
    named = from_pyg(
        [Data(edge_index=index, edge_attr=torch.eye(2)[[0, 0, 1, 1]], num_nodes=3)],
        edge_labels=["single", "double"],
    )
    assert named.edge_labels.tolist() == ["single", "single", "double", "double"]


def test_pyg_names_stand_for_the_last_columns_or_for_integers():
    x = torch.tensor([[0.5, 0, 1], [2.5, 1, 0], [1.0, 0, 1]])
    mixed = from_pyg([path(x=x)], node_labels=["C", "O"])
    assert mixed.node_labels.tolist() == ["O", "C", "O"]
    assert mixed.node_attributes.tolist() == [[0.5], [2.5], [1.0]]
    numbered = from_pyg([path(x=torch.tensor([2, 0, 1]))], node_labels=["C", "N", "O"])
    assert numbered.node_labels.tolist() == ["O", "C", "N"]
    plain = from_pyg([path(x=torch.eye(3))], node_labels=())
    assert plain.node_labels is None
    assert plain.node_attributes.tolist() == np.eye(3).tolist()
    assert from_pyg([path(x=torch.eye(3))], node_labels=range(3)).node_labels.tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("targets", "expected"),
    [
        ([torch.tensor([1]), torch.tensor([0])], [1, 0]),
        ([torch.tensor(1.5), torch.tensor(2.5)], [1.5, 2.5]),
        ([torch.ones(1, 2), torch.zeros(1, 2)], [[1.0, 1.0], [0.0, 0.0]]),
        ([3, 4], [3, 4]),
        ([torch.tensor([1, 2, 3]), torch.tensor([1, 2, 3])], None),  # one per node
        ([torch.tensor([1, 2]), torch.tensor([])], None),
    ],
)
def test_pyg_one_row_of_y_per_graph_is_its_target(targets, expected):
    found = from_pyg([path(y=y, num_nodes=3) for y in targets]).targets
    assert found is None if expected is None else found.tolist() == expected


def test_pyg_graphs_are_undirected_where_all_edges_stand_both_ways_or_where_that_is_said():
    arrow = Data(edge_index=torch.tensor([[0], [1]]), num_nodes=2)
    edge = Data(edge_index=edges((0, 1)), num_nodes=2)
    assert not from_pyg([edge]).directed
    assert from_pyg([edge], directed=True).directed
    assert from_pyg([edge, arrow]).directed
    assert from_pyg([edge, arrow]).indices.tolist() == [1, 0, 3]
    assert refusal(InputError, from_pyg, [edge, arrow], directed=False) == (
        "graph 1 has an edge in one direction only (pass directed=True, or transform with "
        "ToUndirected)"
    )


def test_pyg_edges_that_are_listed_twice_are_merged():
    index = torch.tensor([[0, 1, 0, 0], [1, 0, 1, 0]])
    graphs = from_pyg([Data(edge_index=index, edge_attr=torch.tensor([1, 2, 3, 4]), num_nodes=2)])
    assert graphs.indices.tolist() == [0, 1, 0]
    assert graphs.edge_labels.tolist() == [4, 1, 2]


class InFolder(pyg.InMemoryDataset):
    """A dataset that keeps what it processed on disk."""

    items: ClassVar[list] = []

    @property
    def processed_file_names(self):
        return "data.pt"

    def process(self):
        made = [self.pre_transform(item) if self.pre_transform else item for item in self.items]
        self.save(made, self.processed_paths[0])

    def __init__(self, root, **options):
        super().__init__(root, log=False, **options)
        self.load(self.processed_paths[0])


class OneByOne(pyg.Dataset):
    """A dataset that is not in memory."""

    def __init__(self, items, transform=None):
        self.items = items
        super().__init__(transform=transform)

    def len(self):
        return len(self.items)

    def get(self, idx):
        return self.items[idx]


def fake(n=5, **options):
    torch.manual_seed(0)
    return FakeDataset(n, avg_num_nodes=9, avg_degree=3, num_channels=4, edge_dim=2, **options)


def test_pyg_every_form_of_a_collection_gives_the_same_graphs(tmp_path, monkeypatch):
    dataset = fake()
    items = [dataset[i] for i in range(len(dataset))]
    monkeypatch.setattr(InFolder, "items", items)
    before = copy.deepcopy(items)
    expected = from_pyg(items)
    for item, same in zip(items, before, strict=True):
        assert all(torch.equal(item[key], same[key]) for key in ("x", "edge_index", "edge_attr"))
    assert len(expected) == 5
    assert expected.node_attributes.shape == (expected.n_nodes, 4)
    assert expected.edge_attributes.shape == (len(expected.indices), 2)
    assert expected.targets.shape == (5,)
    forms = {
        "dataset": dataset,
        "iterator": iter(items),
        "batch": Batch.from_data_list(items),
        "list of batches": [Batch.from_data_list(items[:2]), *items[2:]],
        "loader": DataLoader(items, batch_size=2),
        "on disk": InFolder(tmp_path),
        "one by one": OneByOne(items),
    }
    for name, form in forms.items():
        assert from_pyg(form) == expected, name
    assert from_pyg(items[0]) == from_pyg(dataset[:1]) == expected[:1]
    assert from_pyg(dataset[torch.tensor([3, 1])]) == expected[[3, 1]]


def test_pyg_a_transform_of_a_dataset_is_followed():
    def relabelled(data):
        data = copy.copy(data)
        data.x = torch.zeros(data.num_nodes, dtype=torch.int64)
        return data

    assert (from_pyg(fake(transform=relabelled)).node_labels == 0).all()


def test_pyg_no_graphs_empty_graphs_and_a_single_node():
    assert from_pyg([]) == Graphs.from_edge_lists([])
    assert to_pyg(Graphs.from_edge_lists([])) == []
    nothing, one = Data(edge_index=edges(), num_nodes=0), Data(edge_index=edges(), num_nodes=1)
    loop = Data(edge_index=edges((0, 0)), num_nodes=1)
    graphs = from_pyg([nothing, one, loop])
    assert graphs.sizes.tolist() == [0, 1, 1]
    assert graphs.n_loops == graphs.n_edges == 1
    assert [item.num_nodes for item in to_pyg(graphs)] == [0, 1, 1]
    assert [item.edge_index.shape for item in to_pyg(graphs)] == [(2, 0), (2, 0), (2, 1)]
    empty = Data(edge_index=edges(), x=torch.empty(0, 3))
    assert from_pyg([empty, path(x=torch.eye(3))]).node_labels.tolist() == [0, 1, 2]


NAMES = {"node_labels": ["C", "N"]}


@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        (3, {}, "expected PyG Data, a Batch, a dataset or a list, found int"),
        ([path(), "x"], {}, "graph 1 is a str, not a PyG Data"),
        ([pyg.HeteroData()], {}, "graph 0 is a HeteroData, not a PyG Data"),
        ([path(), Data(num_nodes=3)], {}, "graph 1 has no edge_index (use shape (2, 0) for no "),
        ([Data(edge_index=torch.zeros(2, 1), num_nodes=2)], {}, "graph 0: edge_index must be inte"),
        ([path(), Data(edge_index=edges((0, 1)).T[:1])], {},
         "graph 1: edge_index must be integers"),
        ([path(), Data(edge_index=edges((0, 3)), num_nodes=3)], {},
         "graph 1 has 3 nodes, numbered"),
        ([Data(edge_index=edges((0, -1)), num_nodes=3)], {}, "graph 0 has 3 nodes, numbered from"),
        ([path(x=torch.eye(3)), path(num_nodes=3)], {}, "graph 1 has no x, but others do"),
        ([path(x=torch.eye(3)), path(x=torch.ones(3, 2))], {},
         "graph 1: 2 columns of x, but graph"),
        ([path(edge_attr=torch.ones(3, 2))], {},
         "graph 0: edge_attr must have one row for each of"),
        ([path(x=torch.ones(2, 3), num_nodes=3)], {}, "graph 0: x must have one row for each of 3"),
        ([path(num_nodes=3)], NAMES, "2 label names, but the graphs have no x"),
        ([path(x=torch.ones(3, 1))], NAMES, "2 label names, but x has 1 columns"),
        ([path(x=torch.eye(3))], NAMES, "graph 0, row 0 of x is [1.0, 0.0, 0.0]: not one-hot in "),
        ([path(x=torch.tensor([0, 1, 2]))], NAMES, "graph 0, row 2 of x is [2]: not an index of 2"),
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore:Unable to accurately infer 'num_nodes'")
def test_pyg_data_that_are_invalid_are_named(data, options, message):
    assert refusal(InputError, from_pyg, data, **options).startswith(message)


def test_without_pyg_the_message_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch_geometric.data", None)
    for call in (from_pyg, to_pyg):
        with pytest.raises(MissingExtraError, match=r'pip install "saen\[pyg\]"'):
            call(Graphs.from_edge_lists([]))


def test_pyg_optional_and_slow_libraries_are_imported_only_when_used():
    script = (
        "import sys, saen.io.loading, saen.io.libraries.coerce\n"
        "sys.exit(bool({'networkx', 'rdkit', 'torch', 'torch_geometric'} & {*sys.modules}))"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


def test_pyg_the_benchmark_reader_of_pyg_and_ours_agree(dataset, tmp_path):
    ours = dataset("MUTAG")
    raw = tmp_path / "MUTAG" / "raw"
    raw.mkdir(parents=True)
    with zipfile.ZipFile(locate("MUTAG")) as archive:
        for member in archive.namelist():
            if member.endswith(".txt"):
                (raw / member.rsplit("/", 1)[-1]).write_bytes(archive.read(member))
    theirs = from_pyg(TUDataset(str(tmp_path), "MUTAG"))
    assert theirs.indices.tolist() == ours.indices.tolist()
    assert theirs.node_offsets.tolist() == ours.node_offsets.tolist()
    # PyG keeps the codes, of which the README says what they are.
    elements = np.array(["C", "N", "O", "F", "I", "Cl", "Br"])
    bonds = np.array(["aromatic", "single", "double", "triple"])
    assert elements[theirs.node_labels].tolist() == ours.node_labels.tolist()
    assert bonds[theirs.edge_labels].tolist() == ours.edge_labels.tolist()
    classes = np.unique(ours.targets, return_inverse=True)[1]
    assert theirs.targets.tolist() == classes.tolist()


def test_pyg_other_attributes_are_labels_and_numbers_where_they_are_named():
    data = Data(edge_index=torch.tensor([[0], [1]]), x=torch.tensor([[1, 2], [3, 4]]))
    data.z, data.pos, data.kind = torch.tensor([6, 8]), torch.rand(2, 3), torch.tensor([5])
    graphs = from_pyg(
        [data], node_label="z", node_attributes=["pos"], edge_label=["kind"], directed=True
    )
    assert graphs.node_labels.tolist() == [[1, 2, 6], [3, 4, 8]]
    assert graphs.node_attributes.tolist() == data.pos.double().tolist()
    assert graphs.edge_labels.tolist() == [5]
    with pytest.raises(InputError, match="'pos' must be integers to be labels of nodes"):
        from_pyg([data], node_label="pos")
    with pytest.raises(InputError, match=r"no 'velocity' .choose from edge_index, kind, pos, x, z"):
        from_pyg([data], node_attributes=["velocity"])
    with pytest.raises(InputError, match=r"no 'kin' .did you mean kind"):
        from_pyg([data], node_label=["z", "kin"])
