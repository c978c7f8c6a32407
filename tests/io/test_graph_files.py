"""Folders of files with one graph each: GraphML, GML, edge lists, and their labels."""

from __future__ import annotations

import os
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from saen import FileError, Graphs, InputError, load_dataset
from saen.io.formats.edge_tables import UnknownGraphsWarning
from saen.io.options import ReadOptions
from tests.io.refusals import bad_file, refusal
from tests.properties.plain import PlainGraphs, plain_graphs

EDGELIST = "0 1\n1 2\n"
GML = 'graph [\n node [ id 1 label "O" ]\n node [ id 2 label "H" ]\n edge [ source 1 target 2 ]\n]'
NAMESPACE = "http://graphml.graphdrawing.org/xmlns"


def graphml(body: str, keys: str = "", kind: str = "undirected") -> str:
    return (
        f'<?xml version="1.0" encoding="UTF-8"?>\n<graphml xmlns="{NAMESPACE}">{keys}'
        f'<graph edgedefault="{kind}">{body}</graph></graphml>'
    )


def put(folder: Path, **files: str) -> Path:
    """Files by their names, in which the last underscore stands for the dot."""
    for name, text in files.items():
        stem, _, suffix = name.rpartition("_")
        (folder / f"{stem}.{suffix}").write_text(text, encoding="utf-8", newline="")
    return folder


@given(plain_graphs(), st.booleans())
def test_folder_what_networkx_writes_is_read(
    tmp_path_factory: pytest.TempPathFactory, plain: PlainGraphs, gml: bool
) -> None:
    folder = tmp_path_factory.mktemp("networkx")
    for graph, size in enumerate(plain.sizes):
        one = nx.DiGraph() if plain.directed else nx.Graph()
        one.add_nodes_from(range(size))
        one.add_edges_from(plain.edges[graph], weight=0.5)
        if gml:
            nx.write_gml(one, folder / f"{graph}.gml")
        else:
            nx.write_graphml(one, folder / f"{graph}.graphml")
    found = load_dataset(folder)
    expected = plain.graphs()
    np.testing.assert_array_equal(found.indptr, expected.indptr)
    np.testing.assert_array_equal(found.indices, expected.indices)
    if found.n_edges:
        assert found.directed == plain.directed
        assert set(found.edge_attributes.flat) == {0.5}


@given(plain_graphs(), st.sampled_from([" ", "\t", ",", " , "]), st.sampled_from(["\n", "\r\n"]))
def test_edge_lists_read_as_the_graph_that_they_list(
    tmp_path_factory: pytest.TempPathFactory, plain: PlainGraphs, separator: str, end: str
) -> None:
    folder = tmp_path_factory.mktemp("lists")
    for graph, (size, edges) in enumerate(zip(plain.sizes, plain.edges, strict=True)):
        # Names far apart that keep the order; a line of its own for every node.
        lines = ["# a comment", *(f"{10**17 * v - 5}" for v in range(size)), ""]
        lines += [f"{10**17 * u - 5}{separator}{10**17 * v - 5} # edge" for u, v in edges]
        if size:
            (folder / f"{graph}.edgelist").write_text(end.join(lines), newline="")
    if not any(plain.sizes):
        return
    kept = [graph for graph, size in enumerate(plain.sizes) if size]
    expected = Graphs.from_edge_lists(
        [plain.edges[graph] for graph in kept],
        [plain.sizes[graph] for graph in kept],
        directed=plain.directed,
    )
    assert load_dataset(folder, directed=plain.directed) == expected


def test_edge_lists_of_networkx_and_names_of_any_kind_are_read(tmp_path: Path) -> None:
    nx.write_edgelist(nx.Graph([("b", "a"), ("a", "c")]), tmp_path / "x.edges")
    graphs = load_dataset(tmp_path / "x.edges")
    assert graphs == Graphs.from_edge_lists([[(0, 1), (1, 2)]])
    assert graphs.name == "x"
    (tmp_path / "y.txt").write_text("1 a\na 1\n07 7\n")
    assert load_dataset(tmp_path / "y.txt").sizes.tolist() == [4]


def test_targets_name_files_with_or_without_their_suffix(tmp_path: Path) -> None:
    put(tmp_path, a_txt=EDGELIST, b_txt="0 0\n", targets_csv='graph,target\nb.txt,"x, y"\n"a",z\n')
    graphs = load_dataset(tmp_path)
    assert (graphs.sizes.tolist(), graphs.targets.tolist()) == ([3, 1], ["z", "x, y"])
    assert graphs.name == tmp_path.name


def test_targets_may_be_in_another_folder(tmp_path: Path) -> None:
    (tmp_path / "graphs").mkdir()
    put(tmp_path / "graphs", a_edges=EDGELIST)
    put(tmp_path, truth_tsv="graph\ttarget\na\t3\n")
    assert load_dataset(
        tmp_path / "graphs", targets_file=tmp_path / "truth.tsv"
    ).targets.tolist() == [3]


def test_folder_other_files_in_the_folder_are_ignored(tmp_path: Path) -> None:
    put(tmp_path, a_gml=GML, README_txt="Two atoms.", notes_md="x", **{"._a_gml": "nonsense"})
    assert load_dataset(tmp_path).node_labels.tolist() == ["O", "H"]


def test_a_folder_is_found_by_its_bare_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine").mkdir()
    put(tmp_path / "mine", a_gml=GML)
    assert load_dataset("mine").n_nodes == 2


def test_folder_defaults_of_graphml_are_values_of_the_nodes(tmp_path: Path) -> None:
    keys = (
        '<key id="d" for="node" attr.name="label" attr.type="string"><default>C</default></key>'
        '<key id="w" for="edge" attr.name="w" attr.type="int"><default>3</default></key>'
    )
    body = '<node id="a"/><node id="b"><data key="d">N</data></node><edge source="a" target="b"/>'
    graphs = load_dataset(put(tmp_path, a_graphml=graphml(body, keys)))
    assert graphs.node_labels.tolist() == ["C", "N"]
    assert graphs.edge_attributes.tolist() == [[3.0], [3.0]]


def test_folder_parallel_edges_of_graphml_are_merged_where_they_are_identical(
    tmp_path: Path,
) -> None:
    body = (
        '<node id="a"/><node id="b"/>'
        + '<edge source="a" target="b"/><edge source="b" target="a"/>'
    )
    assert load_dataset(put(tmp_path, a_graphml=graphml(body))).n_edges == 1


def test_folder_numbers_are_attributes_by_name_and_text_is_named(tmp_path: Path) -> None:
    text = 'graph [ node [ id 0 y 2 x 0.5 name "n" where [ x 3 ] ] node [ id 1 x 7 y 1 name "m" ] ]'
    notes: list[str] = []
    graphs = load_dataset(put(tmp_path, a_gml=text), ReadOptions(notify=notes.append))
    assert (graphs.node_labels.tolist(), graphs.node_attributes.tolist()) == (
        ["n", "m"],
        [[0.5, 2], [7, 1]],
    )
    taken = "'name' read as node labels, 'x', 'y' as node attributes, 'where' not read"
    assert notes == [f"{tmp_path.name}: {taken}"]


def test_folder_labels_and_attributes_are_those_that_are_named(tmp_path: Path) -> None:
    text = """graph [
        node [ id 0 kind "a" place "in" x 1 y 2 ] node [ id 1 kind "b" x 3 y 4 ]
        edge [ source 0 target 1 type "up" w 0.5 ]
    ]"""
    file = put(tmp_path, a_gml=text)
    every = load_dataset(file)
    assert every.node_labels.tolist() == [["a", "in"], ["b", ""]]
    assert every.node_attributes.tolist() == [[1, 2], [3, 4]]
    assert (every.edge_labels.tolist(), every.edge_attributes.tolist()) == (
        ["up", "up"],
        [[0.5], [0.5]],
    )
    some = load_dataset(
        file, node_label="x,kind", node_attribute="y", edge_label="", edge_weight=""
    )
    assert some.node_labels.tolist() == [["1", "a"], ["3", "b"]]
    assert some.node_attributes.tolist() == [[2], [4]]
    assert some.edge_labels is None
    assert some.edge_attributes is None
    with pytest.raises(FileError, match=r"a\.gml: no node has 'knd' .did you mean kind"):
        load_dataset(file, node_label="knd")


KEY = '<key id="d" for="node" attr.name="x" attr.type="{}"/>'
TWO = '<node id="a"/><node id="b"/>'
DATA = '<node id="a"><data key="d">{}</data></node>'


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({"a_edgelist": ""}, "/a.edgelist: the file is empty"),
        ({"a_edgelist": "# nothing\n"}, "/a.edgelist: no edges"),
        ({"a_edgelist": "0 1\n\n0 1 5\n"}, "/a.edgelist, line 3: 3 columns, expected the two ends "
         "of an edge (weights and labels stand in a table, GraphML or JSON lines)"),
        ({"a_gml": ""}, "/a.gml: the file is empty"),
        ({"a_gml": "graph [ node [ id 1 ]"}, "/a.gml: invalid gml: expected ']', found EOF "
                                             "at (2, 1)"),
        ({"a_gml": "graph [ node 5 ]"}, "/a.gml: invalid gml: 'int' object has no "
                                        "attribute 'pop'"),
        ({"a_gml": "graph [ node [ id 1 x NAN ] ]"}, "/a.gml: node 1: 'x' must be a finite number "
         "or a flat list of finite numbers, not nan"),
        ({"a_gml": "graph [ node [ id 1 x 1 ] node [ id 2 ] ]"}, "/a.gml: node 2 has no 'x', but "
                                                                 "others have one"),
        ({"a_gml": 'graph [ node [ id 1 x 1 ] node [ id 2 x "a" ] ]'}, "/a.gml: node 2: 'x' must "
         "be a finite number or a flat list of finite numbers, not 'a'"),
        ({"a_gml": "graph [ node [ id 1 label 1.5 ] ]"}, "/a.gml: node 1: the label must be an "
                                                         "integer or a string, not 1.5"),
        ({"a_gml": "graph [ " + "a [ " * 10_000}, "/a.gml: nested too deeply"),
        ({"a_graphml": ""}, "/a.graphml: the file is empty"),
        ({"a_graphml": "<graphml>"}, "/a.graphml: invalid graphml: no element found: line 1, "
                                     "column 9"),
        ({"a_graphml": "<graphml/>"}, "/a.graphml: 0 graphs, expected one per file"),
        ({"a_graphml": graphml('<node id="a"/><node id="a"/>')}, "/a.graphml: two nodes have the "
                                                                 "id 'a'"),
        ({"a_graphml": graphml('<node id="a"/><edge source="a" target="b"/>')},
         "/a.graphml: an edge refers to node 'b', but no node has that id"),
        ({"a_graphml": graphml('<node id="a"><graph><node id="b"/></graph></node>')},
         "/a.graphml: nested graphs are not supported"),
        ({"a_graphml": graphml(DATA.format("one"), KEY.format("int"))},
         "/a.graphml: invalid graphml: invalid literal for int() with base 10: 'one'"),
        ({"a_gml": GML, "b_gml": "graph [ node [ id 1 ] ]"},
         "/b.gml: no node labels, but earlier graphs have string node labels"),
        ({"a_gml": "graph [ node [ id 1 x 1 ] ]", "b_gml": "graph [ node [ id 1 y 1 ] ]"},
         "/b.gml: 1 node attribute (y), but earlier graphs have 1 node attribute (x)"),
        ({"a_txt": EDGELIST, "targets_csv": "graph,target\na,1\na.txt,1\n"},
         "/targets.csv, line 3: graph 'a.txt' is listed twice"),
        ({"a_txt": EDGELIST, "b_txt": EDGELIST, "targets_csv": "graph,target\nb,1\n"},
         "/targets.csv: 1 of 2 graphs has no target (first: a.txt); either all graphs need one, or "
         "none (skip_bad=True skips those without)"),
        ({"a_txt": EDGELIST, "targets_csv": "a,1\nb,2\n"},
         "/targets.csv: no column 'graph', which says which graph a row is about: expected graph, "
         "found a, 1"),
    ],
)  # fmt: skip
def test_folder_a_bad_file_is_named_with_its_reason(
    tmp_path: Path, files: dict[str, str], reason: str
) -> None:
    assert bad_file(put(tmp_path, **files)) == reason


def test_folder_bad_files_are_skipped(tmp_path: Path) -> None:
    put(tmp_path, a_txt=EDGELIST, b_txt="1 2 3\n", c_txt="5 5\n", d_txt=EDGELIST)
    put(tmp_path, targets_csv="graph,target\na,1\nb,1\nc,2\nx,2\n")
    reported: list[FileError] = []
    with pytest.warns(UnknownGraphsWarning, match="targets.csv: 1 row without a graph"):
        graphs = load_dataset(tmp_path, skip_bad=True, report=reported.append)
    assert (graphs.sizes.tolist(), graphs.targets.tolist()) == ([3, 1], [1, 2])
    names = [(error.path.name, error.line) for error in reported]
    assert names == [("b.txt", 1), ("d.txt", None)]


LAUGHS = (
    '<?xml version="1.0"?><!DOCTYPE graphml [<!ENTITY a0 "ha">'
    + "".join(f'<!ENTITY a{n + 1} "{f"&a{n};" * 10}">' for n in range(11))
    + f']><graphml xmlns="{NAMESPACE}"><graph><node id="&a11;"/></graph></graphml>'
)


def test_folder_entities_are_not_expanded(tmp_path: Path) -> None:
    put(tmp_path, a_graphml=LAUGHS)
    assert (
        bad_file(tmp_path) == "/a.graphml: refused: document types (<!DOCTYPE …>) are not supported"
    )


SECRET = "the content of another file"


@pytest.mark.parametrize(
    "entity",
    [
        '<!ENTITY x SYSTEM "secret.txt">',
        '<!ENTITY x SYSTEM "http://127.0.0.1:9/secret">',
        '<!ENTITY % x SYSTEM "secret.txt"> %x;',
        '<!ENTITY x PUBLIC "a" "secret.txt">',
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_folder_external_entities_are_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, entity: str, encoding: str
) -> None:
    (tmp_path / "secret.txt").write_text(SECRET)
    monkeypatch.chdir(tmp_path)
    _, _, text = graphml('<node id="a&x;"/>').partition("\n")
    text = f'<?xml version="1.0" encoding="{encoding}"?><!DOCTYPE graphml [{entity}]>{text}'
    file = tmp_path / "a.graphml"
    file.write_bytes(text.encode(encoding))
    with pytest.raises(FileError, match=r"document types .* are not supported") as raised:
        load_dataset(file)
    assert SECRET not in str(raised.value)


def test_folder_defaults_of_many_attributes_take_no_memory(tmp_path: Path) -> None:
    keys = "".join(
        f'<key id="k{n}" for="node" attr.name="x{n}" attr.type="int"><default>0</default></key>'
        for n in range(3000)
    )
    put(tmp_path, a_graphml=graphml("".join(f'<node id="{n}"/>' for n in range(9000)), keys))
    assert bad_file(tmp_path) == "/a.graphml: 3,000 attributes are too many for a file of this size"


def test_a_folder_without_graphs_says_what_was_expected(tmp_path: Path) -> None:
    put(tmp_path, notes_md="x")
    assert bad_file(tmp_path).startswith(": no graphs in this folder")
    assert refusal(FileError, load_dataset, tmp_path) == (
        f"{tmp_path}: no graphs in this folder: expected TUDataset files (NAME_A.txt, …) or "
        "one graph per file (.graphml, .gml, .edgelist, .edges, .txt)"
    )
    (tmp_path / "ring").mkdir()
    put(tmp_path / "ring", a_edgelist="0 1")
    assert refusal(FileError, load_dataset, tmp_path).endswith(
        f"; did you mean {tmp_path / 'ring'}?"
    )
    put(tmp_path, a_csv="", toy_edges_csv="")
    assert refusal(FileError, load_dataset, tmp_path).endswith(
        f"; did you mean {tmp_path / 'toy_edges.csv'}?"
    )
    (tmp_path / "outer" / "inner").mkdir(parents=True)
    put(tmp_path / "outer" / "inner", MUTAG_A_txt="")
    with pytest.raises(FileError, match=r"did you mean .*inner\?"):
        load_dataset(tmp_path / "outer")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read all")
def test_a_folder_without_permission_is_a_file_error(tmp_path: Path) -> None:
    put(tmp_path, a_gml=GML)
    tmp_path.chmod(0)
    try:
        with pytest.raises(FileError, match=r": cannot be read \(Permission denied\)$"):
            load_dataset(tmp_path)
    finally:
        tmp_path.chmod(0o700)


def test_folder_only_formats_that_do_not_say_it_are_made_directed(tmp_path: Path) -> None:
    put(tmp_path, a_gml=GML)
    with pytest.raises(InputError, match="option 'directed' applies only to"):
        load_dataset(tmp_path, directed=True)
