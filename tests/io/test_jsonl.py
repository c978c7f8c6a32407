"""JSON lines: what is read, and every way in which a line can be wrong."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from saen import FileError, Graphs, load_dataset
from saen.io.formats.jsonl import EXAMPLE
from saen.io.formats.nested import read_nested
from saen.io.parsing.records import SkippedWarning
from saen.io.writing import write_data
from tests.io.refusals import bad_file
from tests.properties.plain import PlainGraphs, plain_graphs


def written(folder: Path, *lines: Any, name: str = "x.jsonl") -> Path:
    """A file of these lines; what is no text is written as JSON."""
    file = folder / name
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    file.write_text("\n".join(texts) + "\n", encoding="utf-8", newline="")
    return file


def as_line(plain: PlainGraphs, graph: int, ids: bool, objects: bool) -> dict[str, Any]:
    """One graph, in one of the ways in which the format can say it."""
    size = plain.sizes[graph]
    names: list[Any] = [f"n{v}" if v % 2 else v for v in range(size)] if ids else list(range(size))
    nodes: Any = [{"id": name} if ids else {} for name in names]
    for key, column in (("label", plain.node_labels), ("attributes", plain.node_attributes)):
        for node, value in zip(nodes, column[graph] if column else [], strict=bool(column)):
            node[key] = value
    if not ids and not objects and plain.node_attributes is None:
        nodes = size if plain.node_labels is None else plain.node_labels[graph]
    edges: Any = [[names[u], names[v]] for u, v in plain.edges[graph]]
    if objects or plain.edge_labels or plain.edge_attributes:
        edges = [{"source": u, "target": v} for u, v in edges]
        for key, column in (("label", plain.edge_labels), ("attributes", plain.edge_attributes)):
            for edge, value in zip(edges, column[graph] if column else [], strict=bool(column)):
                edge[key] = value
    line: dict[str, Any] = {"nodes": nodes, "edges": edges, "id": f"graph {graph}"}
    if plain.directed:
        line["directed"] = True
    if plain.targets is not None:
        line["label"] = plain.targets[graph]
    return line


@pytest.mark.parametrize(
    ("read", "known"), [(load_dataset, {"nodes": 1, "edges": []}), (read_nested, {"parts": {}})]
)
def test_jsonl_another_key_on_every_line_is_refused(
    tmp_path: Path, read: Any, known: dict[str, Any]
) -> None:
    """Columns of keys that no model reads would take space and time quadratic in the lines."""
    file = written(tmp_path, *(known | {f"k{line}": 1} for line in range(1100)))
    with pytest.raises(FileError, match=r"x\.jsonl.*: 1,100 different keys that no model reads"):
        read(file)


@given(plain_graphs(), st.booleans(), st.booleans())
def test_jsonl_every_way_to_write_a_graph_reads_as_that_graph(
    tmp_path_factory: pytest.TempPathFactory, plain: PlainGraphs, ids: bool, objects: bool
) -> None:
    lines = [as_line(plain, graph, ids, objects) for graph in range(len(plain.sizes))]
    file = written(tmp_path_factory.mktemp("jsonl"), *lines)
    assert load_dataset(file) == plain.graphs()


def test_jsonl_several_columns_of_labels_are_kept(tmp_path: Path) -> None:
    graphs = Graphs.from_edge_lists(
        [[(0, 1)]], node_labels=[[1, 2], [3, 4]], edge_labels=[["a", "b"]]
    )
    write_data(graphs, tmp_path / "x.jsonl")
    assert load_dataset(tmp_path / "x.jsonl") == graphs


def test_jsonl_data_are_named_after_the_file_and_blank_lines_are_ignored(
    tmp_path: Path,
) -> None:
    file = written(tmp_path, "", {"nodes": 2, "edges": [[0, 1]]}, "  ", {"nodes": 1, "edges": []})
    graphs = load_dataset(file)
    assert (graphs.name, graphs.sizes.tolist(), graphs.targets) == ("x", [2, 1], None)


def test_jsonl_a_mark_and_windows_line_ends_are_no_part_of_the_text(tmp_path: Path) -> None:
    file = tmp_path / "x.ndjson"
    file.write_bytes(
        b'\xef\xbb\xbf{"nodes": ["\xc3\xa9"], "edges": []}\r\n{"nodes": ["a"], "edges": []}\r\n'
    )
    assert load_dataset(file).node_labels.tolist() == ["é", "a"]


def test_jsonl_what_networkx_writes_as_node_link_data_is_read(tmp_path: Path) -> None:
    import networkx as nx

    graph = nx.Graph([("a", "b"), ("b", "c")])
    nx.set_node_attributes(graph, {"a": 1, "b": 2, "c": 1}, "label")
    file = written(tmp_path, nx.node_link_data(graph, edges="edges"))
    expected = Graphs.from_edge_lists([[(0, 1), (1, 2)]], node_labels=[1, 2, 1])
    assert load_dataset(file) == expected


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (["a", "b"], np.array(["a", "b"])),
        ([1, -2], np.array([1, -2])),
        ([1, 2.0], np.array([1, 2])),
        ([1, 2.5], np.array([1.0, 2.5])),
        ([None, None], None),
    ],
)
def test_jsonl_labels_are_classes_unless_one_has_a_fraction(
    tmp_path: Path, labels: list[Any], expected: Any
) -> None:
    lines = [{"nodes": 1, "edges": [], "target": label} for label in labels]
    targets = load_dataset(written(tmp_path, *lines)).targets
    if expected is None:
        assert targets is None
    else:
        assert targets.dtype.kind == expected.dtype.kind
        np.testing.assert_array_equal(targets, expected)


@pytest.mark.parametrize(
    ("targets", "expected"),
    [([True, False], ["true", "false"]), ([[True, 0], [None, 1]], [["true", "0"], ["", "1"]])],
)
def test_jsonl_true_and_false_are_classes(tmp_path: Path, targets: Any, expected: Any) -> None:
    file = tmp_path / "x.jsonl"
    lines = (json.dumps({"nodes": 1, "edges": [], "target": target}) for target in targets)
    file.write_text("\n".join(lines))
    assert load_dataset(file).targets.tolist() == expected


def test_jsonl_identical_edges_are_merged(tmp_path: Path) -> None:
    file = written(tmp_path, {"nodes": 2, "edges": [[0, 1], [1, 0], [0, 1], [1, 1], [1, 1]]})
    assert load_dataset(file) == Graphs.from_edge_lists([[(0, 1), (1, 1)]])


def test_jsonl_the_two_directions_of_directed_edges_are_two_edges(tmp_path: Path) -> None:
    edges = [{"source": 0, "target": 1, "label": "a"}, {"source": 1, "target": 0, "label": "b"}]
    file = written(tmp_path, {"nodes": 2, "edges": edges, "directed": True})
    assert load_dataset(file).edge_labels.tolist() == ["a", "b"]


GOOD = {"nodes": [1, 2], "edges": [[0, 1]], "target": "a"}


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{ ]", "invalid JSON: Expecting property name enclosed in double quotes at column 3 (one "
                "object per line)"),
        ("[1, 2]", "expected one object per graph, found [1, 2]"),
        ({"parts": {"a": [1]}}, "nested data, not a graph: use a decomposition such as "
                                "nested"),
        ({"levels": ["words", "notes"]}, "nested data, not a graph: use a decomposition "
                                         "such as nested"),
        ({"edges": []}, f"no 'nodes': a graph is a line such as {EXAMPLE}"),
        ({"nodes": 1}, f"no 'edges': a graph is a line such as {EXAMPLE}"),
        ({"Smiles": "CCO", "target": 1}, "no 'nodes': for molecules, use a table with a column "
                                         '"smiles" (.csv), or a .smi file'),
        ({"nodes": [{"id": 0}], "links": []}, "no 'edges': with networkx, use "
                                              'node_link_data(graph, edges="edges")'),
        ({"nodes": 1, "edges": [], "tarket": 1}, 'the graph has an unknown key "tarket"; '
         "known keys: nodes, edges, target, id, directed (did you mean target?)"),
        ({"nodes": -1, "edges": []}, "'nodes' must be at least 0, not -1"),
        ({"nodes": 1.5, "edges": []}, "'nodes' must be a count or a list, not 1.5"),
        ({"nodes": True, "edges": []}, "'nodes' must be a count or a list, not true"),
        ({"nodes": 10**18, "edges": []}, "1,000,000,000,000,000,000 nodes are too many for a "
                                         "file of this size"),
        ({"nodes": 1, "edges": {}}, "'edges' must be a list, not {}"),
        ({"nodes": 3, "edges": [[0, 1], [0, 1, 2]]}, "edge 1 must be a pair, not [0, 1, 2]"),
        ({"nodes": 3, "edges": [0]}, "edge 0 must be a pair, not 0"),
        ({"nodes": 3, "edges": [{"source": 0, "target": 1}, [0, 1]]},
         "edge 1 must be an object, not [0, 1]"),
        ({"nodes": 3, "edges": [{"source": 0}]}, "edge 0 has no 'target'"),
        ({"nodes": 3, "edges": [[0, 1], [0, 3]]}, "edge 1 refers to node 3, but nodes without "
                                                  "ids are numbered 0 … 2"),
        ({"nodes": 3, "edges": [[0, -1]]}, "edge 0 refers to node -1, but nodes without ids are "
                                           "numbered 0 … 2"),
        ({"nodes": 3, "edges": [[0, 10**18]]}, "edge 0 refers to node 1000000000000000000, but "
                                               "nodes without ids are numbered 0 … 2"),
        ({"nodes": 3, "edges": [[0, 10**30]]}, f"edge 0 refers to node {10**30}, but nodes "
                                               "without ids are numbered 0 … 2"),
        ({"nodes": 0, "edges": [[0, 0]]}, "edge 0 refers to node 0, but there are no nodes"),
        ({"nodes": 3, "edges": [[0, True]]}, "edge 0 refers to node true, but nodes without ids "
                                             "are numbered 0 … 2"),
        ({"nodes": 3, "edges": [["a", 0]]}, 'edge 0 refers to node "a", but nodes without ids '
                                            "are numbered 0 … 2"),
        ({"nodes": [{"id": "a"}, {"id": "b"}], "edges": [["a", "c"]]},
         'edge 0 refers to node "c", but no node has that id'),
        ({"nodes": [{"id": 1}, {"id": 1}], "edges": []}, "two nodes have the id 1"),
        ({"nodes": [{"id": 1}, {}], "edges": []}, "node 1 has no 'id', but others have one"),
        ({"nodes": [{"id": [1]}], "edges": []}, "node 0: the id must be an integer or a string, "
                                                "not [1]"),
        ({"nodes": [{"x": 1}, {"x": "?"}], "edges": []},
         "node 1: 'x' must be a finite number or a flat list of finite numbers, not '?'"),
        ({"nodes": [1, "a"], "edges": []}, "node 1: the label is 'a', but that of node 0 is 1: "
                                           "use only strings or only integers"),
        (r'{"nodes": ["\ud800"], "edges": []}', "one of the node labels contains an unpaired "
                                                "surrogate"),
        ('{"nodes": [{"attributes": [NaN]}], "edges": []}',
         "NaN is not supported: numbers must be finite"),
        ({"nodes": 1, "edges": [], "directed": 1}, "'directed' must be true or false, not 1"),
        ({"nodes": 1, "edges": [], "target": [[1]]}, "the target must be a string, a number, "
                                                   "true or false, not [[1]]"),
        ({"nodes": 1, "edges": [], "target": {}}, "the target must be a string, a number, true "
                                                  "or false, not {}"),
        ({"nodes": 1, "edges": [], "target": 10**30}, "the target does not fit into 64 bits"),
        ({"nodes": 1, "edges": [], "target": 1e308}, "the target is beyond the range of numbers: "
                                                     "rescale the targets"),
        ({"nodes": 1, "edges": [], "label": "a\0"}, "one of the targets contains a null character"),
        ({"nodes": 1, "edges": [], "label": 1, "target": 1}, "both 'target' and its alias 'label'"),
        ({"nodes": 2, "edges": [{"source": 0, "target": 1, "label": "a"},
                                {"source": 1, "target": 0, "label": "b"}]},
         "edge 1 repeats edge 0 with a different label"),
        ({"nodes": 2, "edges": [{"source": 0, "target": 1, "attributes": [1]},
                                {"source": 0, "target": 1, "attributes": [2]}]},
         "edge 1 repeats edge 0 with different attributes"),
        ('{"a":' * 100_000, "nested too deeply"),
        ("1" * 10_000, "a number has too many digits"),
    ],
)  # fmt: skip
def test_jsonl_a_bad_line_is_named_with_its_reason(tmp_path: Path, line: Any, reason: str) -> None:
    # First, so that it is not compared with another graph.
    assert bad_file(written(tmp_path, "", line)) == f", line 2: {reason}"


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ({"nodes": 2, "edges": [[0, 1]], "target": "a"},
         "no node labels, but earlier graphs have integer node labels"),
        ({"nodes": ["C", "N"], "edges": [[0, 1]], "target": "a"},
         "string node labels, but earlier graphs have integer node labels"),
        ({"nodes": [[1, 2]], "edges": [], "target": "a"},
         "integer node labels with 2 columns, but earlier graphs have integer node labels"),
        ({"nodes": [1], "edges": [[0, 0]], "directed": True, "target": "a"},
         "directed edges, but earlier graphs have undirected edges"),
        ({"nodes": [1], "edges": [{"source": 0, "target": 0, "attributes": [1]}], "target": "a"},
         "1 edge attribute, but earlier graphs have no edge attributes"),
        ({"nodes": [1], "edges": [], "target": 1},
         "a number as target, but earlier graphs have a string as target"),
    ],
)  # fmt: skip
def test_jsonl_graphs_of_one_file_go_together(tmp_path: Path, line: Any, reason: str) -> None:
    assert bad_file(written(tmp_path, GOOD, line)) == f", line 2: {reason}"


def test_jsonl_graphs_without_nodes_or_edges_go_with_any(tmp_path: Path) -> None:
    empty = {"nodes": [], "edges": [], "target": "b"}
    alone = {"nodes": [3], "edges": [], "directed": True, "target": "b"}
    for lines in ((GOOD, empty, alone), (empty, alone, GOOD)):
        graphs = load_dataset(written(tmp_path, *lines))
        assert (len(graphs), graphs.directed) == (3, False)


def test_jsonl_an_empty_file_is_an_error(tmp_path: Path) -> None:
    for content in (b"", b"\n \r\n", b"\xef\xbb\xbf\n"):
        (tmp_path / "x.jsonl").write_bytes(content)
        assert bad_file(tmp_path / "x.jsonl") == ": the file is empty"


def test_jsonl_a_file_that_is_not_there_or_is_a_folder(tmp_path: Path) -> None:
    assert bad_file(tmp_path / "no.jsonl") == ": no such file or folder"


def test_jsonl_text_that_is_not_utf_8_is_named_by_line_and_column(tmp_path: Path) -> None:
    file = tmp_path / "x.jsonl"
    file.write_bytes(b'{"nodes": 1, "edges": []}\n{"nodes": ["caf\xe9"], "edges": []}\n')
    assert bad_file(file) == ", line 2: not UTF-8 (byte 0xe9 at column 16)"


def test_jsonl_labels_of_some_graphs_only_are_an_error_that_counts_them(tmp_path: Path) -> None:
    bare = {"nodes": [1, 2], "edges": [[0, 1]]}
    assert bad_file(written(tmp_path, GOOD, bare, GOOD, bare)) == (
        ": 2 of 4 graphs have no target (first: line 2); either all graphs need one, or none "
        "(skip_bad=True skips those without)"
    )
    assert bad_file(written(tmp_path, bare, GOOD)) == (
        ": 1 of 2 graphs has no target (first: line 1); either all graphs need one, or none "
        "(skip_bad=True skips those without)"
    )


# -- leaving bad graphs out --------------------------------------------------------------------


def test_jsonl_bad_graphs_are_skipped_and_reported(tmp_path: Path) -> None:
    clash = {"nodes": [1, 2], "edges": [[0, 1], [0, 5]], "target": "b"}
    bare = {"nodes": [3], "edges": []}
    file = written(tmp_path, GOOD, clash, "nonsense", {**GOOD, "target": "b"}, bare)
    reported: list[FileError] = []
    graphs = load_dataset(file, skip_bad=True, report=reported.append)
    assert graphs == Graphs.from_edge_lists(
        [[(0, 1)], [(0, 1)]], node_labels=[1, 2, 1, 2], targets=["a", "b"]
    )
    assert [(error.path, error.line) for error in reported] == [(file, 2), (file, 3), (file, 5)]
    assert str(reported[2]).endswith("no target, but other graphs have one")


def test_jsonl_edges_that_contradict_each_other_spoil_their_graph_only(tmp_path: Path) -> None:
    edges = [{"source": 0, "target": 1, "label": "a"}, {"source": 0, "target": 1, "label": "b"}]
    bad, good = {"nodes": 2, "edges": edges}, {"nodes": 3, "edges": edges[1:]}
    reported: list[FileError] = []
    graphs = load_dataset(written(tmp_path, good, bad, good), skip_bad=True, report=reported.append)
    assert graphs.sizes.tolist() == [3, 3]
    assert [error.line for error in reported] == [2]


def test_jsonl_without_a_report_a_warning_counts_what_was_skipped(tmp_path: Path) -> None:
    file = written(tmp_path, GOOD, *["{"] * 7)
    with pytest.warns(SkippedWarning, match=r"skipped 7 bad graphs: .*line 2: .*; and 2 more"):
        assert len(load_dataset(file, skip_bad=True)) == 1


def test_jsonl_nothing_is_left_of_a_file_of_bad_graphs(tmp_path: Path) -> None:
    reported: list[FileError] = []
    graphs = load_dataset(written(tmp_path, "{", "}"), skip_bad=True, report=reported.append)
    assert (len(graphs), len(reported)) == (0, 2)


# -- memory ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "lines",
    [
        # Each is harmless alone.
        ['{"nodes": 1000000, "edges": []}'] * 50,
        ['{"nodes": ["' + "x" * 5_000 + '"' + ', ""' * 20_000 + '], "edges": []}'],
        [f'{{"nodes": ["{text}"], "edges": []}}' for text in ["x" * 20_000, *[""] * 5000]],
        [f'{{"nodes": 0, "edges": [], "label": "{text}"}}' for text in ["x" * 20_000, *"a" * 5000]],
    ],
    ids=["counts", "one long label", "long and short graphs", "labels of graphs"],
)  # fmt: skip
def test_jsonl_a_small_file_cannot_claim_much_memory(tmp_path: Path, lines: list[str]) -> None:
    file = written(tmp_path, *lines)
    tracemalloc.start()
    try:
        with pytest.raises(FileError, match=r"too many|too long|at most"):
            load_dataset(file)
        assert tracemalloc.get_traced_memory()[1] < 2**27 + 300 * file.stat().st_size
    finally:
        tracemalloc.stop()


def test_several_targets_are_a_list(tmp_path: Path) -> None:
    lines = [{"nodes": 1, "edges": [], "target": t} for t in ([1, None], [0, 1], [None, 0])]
    graphs = load_dataset(written(tmp_path, *lines))
    assert graphs.targets.tolist() == [["1", ""], ["0", "1"], ["", "0"]]
    numbers = [{"nodes": 1, "edges": [], "target": t} for t in ([0.5, None], [2, 1])]
    values = load_dataset(written(tmp_path, *numbers)).targets
    np.testing.assert_array_equal(values, [[0.5, np.nan], [2, 1]])


@pytest.mark.parametrize("target", [[], [[1]], [{}]])
def test_lists_that_are_not_targets_are_refused(tmp_path: Path, target: Any) -> None:
    file = written(tmp_path, {"nodes": 1, "edges": [], "target": target})
    assert "the target must be a string, a number, true or false" in bad_file(file)


def test_graphs_have_the_same_number_of_targets(tmp_path: Path) -> None:
    lines = [{"nodes": 1, "edges": [], "target": t} for t in ([1, 0], [1])]
    assert "a list of 1 target" in bad_file(written(tmp_path, *lines))


def test_jsonl_other_keys_of_nodes_and_edges_are_columns(tmp_path: Path) -> None:
    nodes = [{"id": 4, "role": "N", "x": 1, "on": [2]}, {"id": 7, "role": "S", "x": 2, "on": [3]}]
    edges = [{"source": 4, "target": 7, "weight": 0.5, "via": "mail"}]
    file, notes = written(tmp_path, *[{"nodes": nodes, "edges": edges}] * 2), list[str]()
    [graph, _] = graphs = load_dataset(file, notify=notes.append)
    assert (graph.node_labels.tolist(), graph.node_attributes.tolist()) == (["N", "S"], [[1], [2]])
    assert graph.edge_labels.tolist() == ["mail"] * 2
    assert graph.edge_attributes.tolist() == [[0.5]] * 2
    assert notes == [
        f"{file.name}: 'role' read as node labels, 'x' as node attributes, 'on' not read; "
        "'via' read as edge labels, 'weight' as edge attributes"
    ]
    named = {"node_label": "x", "node_attribute": "on", "edge_label": "", "edge_weight": "weight"}
    graph = load_dataset(file, **named)[0]
    assert (graph.node_labels.tolist(), graph.node_attributes.tolist()) == ([1, 2], [[2], [3]])
    assert graph.edge_labels is None
    monthly = [{"nodes": [{**node, "month": "May"} for node in nodes], "edges": edges}]
    with pytest.raises(FileError, match="line 2: "):
        load_dataset(written(tmp_path, {"nodes": nodes, "edges": edges}, *monthly))
    assert len(graphs) == 2
