"""Tables of edges and of molecules, in CSV, TSV and Parquet."""

from __future__ import annotations

import sys
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from saen import Graphs, load_dataset
from saen.errors import FileError, InputError, MissingExtraError
from saen.io.formats.edge_tables import UnknownGraphsWarning
from saen.io.loading import stream_data
from saen.io.writing import write_data
from tests.io.refusals import bad_file


def table(file: Path, text: str) -> Path:
    file.write_text(text, encoding="utf-8", newline="")
    return file


EDGES = "graph,source,target\na,1,2\na,2,10\nb,x,y\n"


def test_table_edges_alone_are_enough(tmp_path: Path) -> None:
    graphs = load_dataset(table(tmp_path / "edges.csv", EDGES))
    assert graphs == Graphs.from_edge_lists([[(0, 1), (1, 2)], [(0, 1)]])
    assert graphs.name == "edges"


def test_table_integers_keep_their_order_and_may_be_of_any_size(tmp_path: Path) -> None:
    text = f"graph,source,target\n1,{10**18},-5\n1,3,{10**18}\n"
    assert load_dataset(table(tmp_path / "x.csv", text)) == Graphs.from_edge_lists(
        [[(2, 0), (1, 2)]]
    )


def test_table_graphs_are_in_the_order_of_the_labels(tmp_path: Path) -> None:
    table(tmp_path / "targets.csv", "graph,target\nb,0\na,1\n")
    graphs = load_dataset(table(tmp_path / "edges.csv", EDGES))
    assert (graphs.sizes.tolist(), graphs.targets.tolist()) == ([2, 3], [0, 1])


def test_table_numbers_and_texts_name_the_same_graphs_in_several_tables(tmp_path: Path) -> None:
    table(tmp_path / "targets.csv", "graph,target\n2,u\nx,v\n1,w\n")
    graphs = load_dataset(
        table(tmp_path / "edges.csv", "graph,source,target\n1,1,2\n2,1,2\nx,1,1\n")
    )
    assert graphs.sizes.tolist() == [2, 1, 2]
    table(tmp_path / "targets.csv", "graph,target\n2,u\n1,w\n")
    graphs = load_dataset(table(tmp_path / "edges.csv", "graph,source,target\n1,1,2\n2,1,1\n"))
    assert (graphs.sizes.tolist(), graphs.targets.tolist()) == ([1, 2], ["u", "w"])


def test_table_the_tables_may_be_anywhere_and_be_of_another_kind(tmp_path: Path) -> None:
    edges = table(tmp_path / "toy.tsv", EDGES.replace(",", "\t"))
    nodes = table(tmp_path / "n.csv", "graph,node,label\nb,y,1\nb,x,2\na,1,3\na,2,4\na,10,5\n")
    pd.DataFrame({"graph": ["a", "b"], "target": [0.5, 2]}).to_parquet(tmp_path / "l.parquet")
    graphs = load_dataset(edges, nodes_file=nodes, targets_file=tmp_path / "l.parquet")
    assert graphs.node_labels.tolist() == [3, 4, 5, 1, 2]
    assert graphs.targets.tolist() == [0.5, 2.0]
    assert graphs[1].indices.tolist() == [1, 0]


def test_table_the_tables_beside_are_found_by_name(tmp_path: Path) -> None:
    table(tmp_path / "toy_edges.csv", EDGES)
    table(tmp_path / "toy_targets.tsv", "graph\ttarget\na\t1\nb\t2\n")
    assert load_dataset(tmp_path / "toy_edges.csv").targets.tolist() == [1, 2]
    table(tmp_path / "toy.csv", EDGES)
    assert load_dataset(tmp_path / "toy.csv").targets.tolist() == [1, 2]


@pytest.mark.parametrize("name", ["labels.csv", "targets.csv"])
def test_label_is_an_alias_of_target(tmp_path: Path, name: str) -> None:
    edges = table(tmp_path / "edges.csv", EDGES)
    table(tmp_path / name, "graph,label\na,1\nb,2\n")
    assert load_dataset(edges).targets.tolist() == [1, 2]
    molecules = table(tmp_path / "x.csv", "smiles,label\nC,1\nCC,2\n")
    assert load_dataset(molecules).targets.tolist() == [1, 2]
    lines = table(tmp_path / "x.jsonl", '{"nodes": 1, "edges": [], "label": 3}\n')
    assert load_dataset(lines).targets.tolist() == [3]
    (tmp_path / "folder").mkdir()
    table(tmp_path / "folder" / "a.txt", "0 1\n")
    table(tmp_path / "folder" / name, "graph,label\na,4\n")
    assert load_dataset(tmp_path / "folder").targets.tolist() == [4]


def test_table_marks_windows_line_ends_capitals_blanks_and_quotes_are_read(tmp_path: Path) -> None:
    text = '\ufeffGraph, SOURCE ,target,label\r\n"a, or b", 1, 2,"say ""so"""\r\n\r\n'
    graphs = load_dataset(table(tmp_path / "x.csv", text))
    assert (graphs.n_edges, graphs.edge_labels.tolist()) == (1, ['say "so"'] * 2)


def test_table_the_numbers_that_pandas_gives_to_rows_are_ignored(tmp_path: Path) -> None:
    frame = pd.DataFrame({"graph": ["a", "a"], "source": [1, 2], "target": [2, 3]}, index=[5, 3])
    frame.to_csv(tmp_path / "x.csv")
    frame.to_parquet(tmp_path / "y.parquet")
    for name in ("x.csv", "y.parquet"):
        assert load_dataset(tmp_path / name) == Graphs.from_edge_lists([[(0, 1), (1, 2)]])


def test_table_identical_rows_are_merged_also_from_the_other_end(tmp_path: Path) -> None:
    text = "graph,source,target,label\na,1,2,x\na,1,2,x\na,2,1,x\n"
    assert load_dataset(table(tmp_path / "x.csv", text)).n_edges == 1
    both = load_dataset(tmp_path / "x.csv", directed=True)
    assert (both.directed, both.n_edges) == (True, 2)


LABELLED = "graph,source,target,label,w\n"


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ("", ": no rows below the header"),
        ("a,1,2,x,1\na,1,2\na,1,2,x,1\n", ", line 3: column 'label' is empty"),
        ("a,1,2,x,1\na,1,2,x,1,5\n", ", line 3: 6 columns, but 5 in the header"),
        ("a,1,2,x,1,5\na,1,2,x,1\n", ", line 2: 6 columns, but 5 in the header"),
        ("\n\na,1,,x,1\n", ", line 4: column 'target' is empty"),
        (",1,2,x,1\n", ", line 2: column 'graph' is empty"),
        ("a,1,2,x,1\na,3,2,,1\n", ", line 3: column 'label' is empty"),
        ("a,1,2,x,1\na,3,2,y,\n", ", line 3: '' in column 'w' is not a finite number"),
        ("a,1,2,x,nan\n", ", line 2: 'nan' in column 'w' is not a finite number"),
        ("a,1,2,x,1\na,1,3,x,inf\n", ", line 3: 'inf' in column 'w' is not a finite number"),
        ('a,1,2,"x\ny",1\na,1,3,x,hot\n', ", line 4: 'hot' in column 'w' is not a finite number"),
        ("a,1,2,x,1\nb,1,2,x,1\na,2,1,y,1\n", ", line 4: repeats the edge of line 2 with a "
                                              "different label"),
        ("a,1,2,x,1\na,2,1,x,2\n", ", line 3: repeats the edge of line 2 with different "
                                   "attributes"),
        ('a,1,2,x,1\na,1,3,"x,1\n', ", line 3: invalid CSV: unexpected end of data"),
    ],
)  # fmt: skip
def test_table_a_bad_row_is_named_by_its_line(tmp_path: Path, rows: str, reason: str) -> None:
    assert bad_file(table(tmp_path / "x.csv", LABELLED + rows)) == reason


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", ": the file is empty"),
        ("\ufeff \n", ": the file is empty"),
        ("graph,source\na,1\n", ": no column 'target': expected graph, source, target, found "
                                "graph, source"),
        (
            "1,2\n2,3\n",
            ": neither molecules (name their column with smiles=…) nor edges (which need the "
            "columns graph, source and target); columns: 1,2",
        ),
        ("graph,source,Source\na,1,1\n", ": two columns named 'source'"),
        (",".join(map(str, range(10_001))) + "\n", ": 10,001 columns (at most 10,000)"),
        ('graph,"so\nurce",target\na,1,1\n', ": no column 'source': expected graph, source, "
                                             "target, found graph, so urce, target"),
        ("graph,source,target\na,1,\0\n", ", line 2: contains a null character"),
    ],
)  # fmt: skip
def test_an_invalid_table_is_refused(tmp_path: Path, text: str, reason: str) -> None:
    assert bad_file(table(tmp_path / "x.csv", text)) == reason


def test_table_text_that_is_not_utf_8_is_named_by_line_and_column(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_bytes(b"graph,source,target\na,1,2\na,caf\xe9,2\n")
    assert bad_file(tmp_path / "x.csv") == ", line 3: not UTF-8 (byte 0xe9 at column 6)"


NO_TARGET = (
    "1 of 2 graphs has no target (first: 'b'); either all graphs need one, or none (skip_bad=True "
    "skips those without)"
)


@pytest.mark.parametrize(
    ("kind", "text", "reason"),
    [
        ("nodes", "graph,node\na,1\na,2\na,10\nb,x\nb,y\na,2\n",
         "nodes.csv, line 7: node '2' of this graph is listed twice"),
        ("nodes", "graph,node\na,1\na,2\nb,x\nb,y\nb,10\n",
         "edges.csv, line 3: target '10' is not a node of this graph in nodes.csv"),
        ("nodes", "graph,node\na,1\na,10\nb,x\nb,y\n",
         "edges.csv, line 3: source '2' is not a node of this graph in nodes.csv"),
        ("nodes", "graph,node,label\na,1,C\na,2,\na,10,C\nb,x,C\nb,y,C\n",
         "nodes.csv, line 3: column 'label' is empty"),
        ("nodes", "graph,label\na,1\n",
         "nodes.csv: no column 'node': expected graph, node, found graph, label"),
        ("targets", "graph,target\na,1\nb,2\na,1\n",
         "targets.csv, line 4: graph 'a' is listed twice"),
        ("targets", "graph,target\na,1\n", f"targets.csv: {NO_TARGET}"),
        ("targets", "graph,target\na,1\nb,\n", f"targets.csv: {NO_TARGET}"),
        ("targets", "graph,target\na,x\nb,NaN\n", f"targets.csv: {NO_TARGET}"),
        ("targets", "graph,target\na,1,2\nb,2\n",
         "targets.csv, line 2: 3 columns, but 2 in the header"),
    ],
)  # fmt: skip
def test_tables_that_do_not_go_together(tmp_path: Path, kind: str, text: str, reason: str) -> None:
    table(tmp_path / "edges.csv", EDGES)
    table(tmp_path / f"{kind}.csv", text)
    assert bad_file(tmp_path / "edges.csv", named=tmp_path) == f"/{reason}"


def test_table_bad_graphs_are_skipped_with_all_their_rows(tmp_path: Path) -> None:
    text = (
        "graph,source,target,label,w\n"
        "a,1,2,5,1\n"
        "b,1,2,5,1\n"
        "c,1,2,5,x\n"
        "b,1,3,5\n"
        "c,1,3,5,x\n"
        "d,1,2,5,1,7\n"
        "d,1,3,5,1\n"
        "e,4,4,5,1\n"
        "f,1,2,5,1\n"
        "f,2,1,6,1\n"
    )
    table(tmp_path / "targets.csv", "graph,target\nf,0\ne,1\nd,1\nc,1\nb,1\na,0\nz,1\n")
    reported: list[FileError] = []
    edges = table(tmp_path / "edges.csv", text)
    with pytest.warns(UnknownGraphsWarning, match="1 row without a graph, not used .first: 'z'"):
        graphs = load_dataset(edges, skip_bad=True, report=reported.append)
    assert graphs.sizes.tolist() == [1, 2]
    assert graphs.targets.tolist() == [1, 0]
    assert graphs.edge_labels.tolist() == [5, 5, 5]
    assert sorted((error.path.name, error.line) for error in reported) == [
        ("edges.csv", 4), ("edges.csv", 5), ("edges.csv", 7), ("edges.csv", 11)
    ]  # fmt: skip


def test_table_what_is_left_reads_as_if_the_bad_rows_had_never_been_there(tmp_path: Path) -> None:
    good = "graph,source,target,label\na,1,2,5\nb,2,1,6\n"
    bad = {"c,1,2,\n", "c,1,2,x\nc,1\n", "c,1,2,3,4\nc,1,2,x\n"}
    labels = "graph,target\na,0\nb,1\n"
    expected = load_dataset(table(tmp_path / "x.csv", good)).with_targets([0, 1])
    assert expected.edge_labels.dtype == np.int64
    table(tmp_path / "targets.csv", labels + "c,text\n")
    for rows in bad:
        file = table(tmp_path / "edges.csv", good + rows)
        assert load_dataset(file, skip_bad=True, report=[].append) == expected
    columns = {"source": [1, 2, 1], "target": [2, 1, 2], "label": [5, 6, None]}
    file = parquet(tmp_path / "x.parquet", graph=["a", "b", "c"], **columns)
    pd.read_parquet(file).convert_dtypes().to_parquet(file)
    found = load_dataset(
        file, targets_file=tmp_path / "targets.csv", skip_bad=True, report=[].append
    )
    assert found == expected


def test_table_labels_missing_for_some_are_skipped_when_asked(tmp_path: Path) -> None:
    table(tmp_path / "targets.csv", "graph,target\na,1\n")
    reported: list[FileError] = []
    graphs = load_dataset(
        table(tmp_path / "edges.csv", EDGES), skip_bad=True, report=reported.append
    )
    assert (graphs.sizes.tolist(), graphs.targets.tolist()) == ([3], [1])
    assert (
        str(reported[0])
        == f"{tmp_path}/targets.csv: graph 'b': no target, but other graphs have one"
    )


@pytest.mark.slow
def test_table_short_rows_of_a_wide_table_take_no_memory(tmp_path: Path) -> None:
    header = "graph,source,target," + ",".join(f"x{n}" for n in range(900))
    file = table(tmp_path / "x.csv", header + "\n" + "a\n" * 25_000)
    tracemalloc.start()
    try:
        assert bad_file(file) == ", line 2: 1 column, but 903 in the header"
        assert tracemalloc.get_traced_memory()[1] < 2**27 + 300 * file.stat().st_size
    finally:
        tracemalloc.stop()


def test_table_one_long_label_among_many_takes_no_memory(tmp_path: Path) -> None:
    rows = [f"a,{n},{n},x\n" for n in range(20_000)]
    text = "graph,source,target,label\na,0,1," + "y" * 5_000 + "\n" + "".join(rows)
    file = table(tmp_path / "x.csv", text)
    assert bad_file(file) == (
        ": one of 20,001 values in column label has 5,000 characters, which is too long"
    )


# -- Parquet -----------------------------------------------------------------------------------


def parquet(file: Path, **columns: Any) -> Path:
    pd.DataFrame(columns).to_parquet(file)
    return file


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ({"target": [2, None]}, ": row 1: column 'target' is empty"),
        ({"label": ["a", None]}, ": row 1: column 'label' is empty"),
        ({"w": [0.5, float("nan")]}, ": row 1: '' in column 'w' is not a finite number"),
        ({"w": [[1], [2]]}, ": column 'w' has type list<element: int64>, expected numbers or text"),
        ({"label": ["a", "b"], "target": [2, 2]}, ": row 1: repeats the edge of row 0 with a "
                                                  "different label"),
    ],
)  # fmt: skip
def test_table_a_bad_row_of_parquet_is_named_by_its_number(
    tmp_path: Path, columns: dict[str, Any], reason: str
) -> None:
    base = {"graph": ["a", "a"], "source": [1, 1], "target": [2, 3]}
    assert bad_file(parquet(tmp_path / "x.parquet", **base | columns)) == reason


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.uint64])
def test_table_integers_of_any_width_are_integers(tmp_path: Path, dtype: Any) -> None:
    one = np.array([1], dtype=dtype)
    file = parquet(tmp_path / "x.parquet", graph=one, source=one, target=one + one, label=one)
    graphs = load_dataset(file)
    assert (graphs.edge_labels.dtype, graphs.edge_labels.tolist()) == (np.int64, [1, 1])


def test_table_damaged_parquet_is_a_file_error(tmp_path: Path) -> None:
    file = parquet(tmp_path / "x.parquet", graph=["a"], source=[1], target=[2])
    data = file.read_bytes()
    for content, reason in (
        (b"", ": the file is empty"),
        (data[:-10], ": invalid Parquet"),
        (b"nonsense", ": invalid Parquet"),
    ):
        file.write_bytes(content)
        assert bad_file(file).startswith(reason)


def test_table_parquet_that_claims_too_much_is_refused(tmp_path: Path) -> None:
    n = 30_000_000
    zeros = np.zeros(n, dtype=np.int8)
    file = parquet(tmp_path / "x.parquet", graph=zeros, source=zeros, target=zeros)
    assert bad_file(file).endswith(
        "bytes that claim 30,000,000 rows of 3 columns look like a compression bomb"
    )


def test_table_without_pyarrow_the_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = parquet(tmp_path / "x.parquet", graph=["a"], source=[1], target=[2])
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(
        MissingExtraError, match=r'this needs pyarrow: pip install "saen\[parquet\]"'
    ):
        load_dataset(file)


# -- molecules ---------------------------------------------------------------------------------

MOLECULES = "name,smiles,target\nethanol,CCO,0\nbenzene,c1ccccc1,1\n"


def test_molecules_are_read_from_a_column_of_smiles(tmp_path: Path) -> None:
    pytest.importorskip("rdkit")
    from saen.io.libraries.rdkit import from_smiles

    graphs = load_dataset(table(tmp_path / "toy.csv", MOLECULES))
    assert graphs == from_smiles(["CCO", "c1ccccc1"], targets=[0, 1])
    assert graphs.name == "toy"
    parquet(tmp_path / "x.parquet", SMILES=["CCO"])
    assert load_dataset(tmp_path / "x.parquet") == from_smiles(["CCO"])


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "smiles\nCCO\nCC(\n",
            ", line 3: 'CC(': invalid SMILES: syntax error around position 3 "
            "(skip_bad=True leaves such molecules out)",
        ),
        ('smiles,target\n\nCCO,1\n"",1\n', ", line 4: column 'smiles' is empty"),
        ("smiles,target\nCCO,1\nCC,\n", ": 1 of 2 graphs has no target (first: line 3); "
                                       "either all graphs need one, or none (skip_bad=True skips "
                                       "those without)"),
        ("smiles,target\nCCO,1\nCC,1,2\n", ", line 3: 3 columns, but 2 in the header"),
    ],
)  # fmt: skip
def test_table_a_bad_molecule_is_named_by_its_line(tmp_path: Path, text: str, reason: str) -> None:
    pytest.importorskip("rdkit")
    assert bad_file(table(tmp_path / "x.csv", text)) == reason


def test_table_bad_molecules_are_skipped(tmp_path: Path) -> None:
    pytest.importorskip("rdkit")
    reported: list[FileError] = []
    text = "smiles,target\nCCO,1\nCC(,2\nC=O=C,2\nC,\nO,3\n"
    graphs = load_dataset(table(tmp_path / "x.csv", text), skip_bad=True, report=reported.append)
    assert (graphs.sizes.tolist(), graphs.targets.tolist()) == ([3, 1], [1, 3])
    assert [error.line for error in reported] == [3, 4, 5]


@pytest.mark.parametrize("option", ["nodes_file", "targets_file", "directed"])
def test_table_options_that_a_format_has_no_use_for_are_refused(
    tmp_path: Path, option: str
) -> None:
    with pytest.raises(InputError, match=f"toy.csv: option '{option}' applies only to"):
        load_dataset(table(tmp_path / "toy.csv", MOLECULES), **{option: "x"})


TOX = "smiles,NR-AR,SR-p53\nCCO,0,1\nc1ccccc1,1,\nCC,,0\n"


def test_several_targets_are_columns_of_a_table(tmp_path: Path) -> None:
    pytest.importorskip("rdkit")
    file = table(tmp_path / "tox.csv", TOX)
    graphs = load_dataset(file, target="NR-AR, SR-p53")
    assert graphs.targets.tolist() == [["0", "1"], ["1", ""], ["", "0"]]
    known = load_dataset(file, target="SR-p53", skip_bad=True, report=lambda _: None)
    assert known.targets.tolist() == [1, 0]
    assert "2 targets" in repr(graphs)
    numbers = table(tmp_path / "numbers.csv", "smiles,a,b\nCCO,0.5,1\nCC,,2\n")
    np.testing.assert_array_equal(
        load_dataset(numbers, target="a,b").targets, [[0.5, 1.0], [np.nan, 2.0]]
    )
    with pytest.raises(FileError, match="no column 'NR-RA' \\(did you mean NR-AR"):
        load_dataset(file, target="NR-RA")


def test_several_targets_are_columns_beside_edges(tmp_path: Path) -> None:
    edges = table(tmp_path / "edges.csv", "graph,source,target\na,1,2\nb,1,2\n")
    with pytest.raises(FileError, match="no table of targets"):
        load_dataset(edges, target="x,y")
    table(tmp_path / "targets.csv", "graph,x,y\nb,1,0\na,0,1\n")
    assert load_dataset(edges, target="x,y").targets.tolist() == [[1, 0], [0, 1]]


# -- several labels and attributes ------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_table_text_is_labels_and_numbers_are_attributes(tmp_path: Path, suffix: str) -> None:
    edges = {"graph": ["a"] * 2, "source": [1, 2], "target": [2, 3], "bond": ["s", "d"]}
    nodes = {
        "graph": ["a"] * 3,
        "node": [1, 2, 3],
        "kind": ["C", "N", ""],
        "x": [1, 2, 3],
        "ring": [True, False, True],
    }
    for name, columns in (("edges", edges | {"w": [0.5, 1.5]}), ("nodes", nodes)):
        frame = pd.DataFrame(columns)
        file = tmp_path / f"{name}{suffix}"
        frame.to_csv(file, index=False) if suffix == ".csv" else frame.to_parquet(file)
    notes: list[str] = []
    file = tmp_path / f"edges{suffix}"
    graphs = load_dataset(file, notify=notes.append)
    true, false = ("True", "False") if suffix == ".csv" else ("true", "false")
    assert graphs.node_labels.tolist() == [["C", true], ["N", false], ["", true]]
    assert graphs.node_attributes.tolist() == [[1], [2], [3]]
    assert graphs.edge_labels.tolist() == ["s", "s", "d", "d"]
    assert graphs.edge_attributes.tolist() == [[0.5], [0.5], [1.5], [1.5]]
    assert notes == [
        f"edges{suffix}: 'bond' read as edge labels, 'w' as edge attributes",
        f"nodes{suffix}: 'kind', 'ring' read as node labels, 'x' as node attributes",
    ]
    some = load_dataset(file, node_label="X", node_attribute="", edge_weight="w", edge_label="")
    assert (some.node_labels.tolist(), some.node_attributes) == ([1, 2, 3], None)
    assert (some.edge_labels, some.edge_attributes.shape) == (None, (4, 1))
    [part] = stream_data(file)
    assert part == graphs
    with pytest.raises(FileError, match="no node has 'colour': choose from kind, x, ring"):
        load_dataset(file, node_label="colour")


def test_table_one_word_among_numbers_is_an_error(tmp_path: Path) -> None:
    file = table(tmp_path / "edges.csv", "graph,source,target,w\na,1,2,1\na,2,3,hot\n")
    assert bad_file(file) == ", line 3: 'hot' in column 'w' is not a finite number"
    assert load_dataset(file, edge_label="w").edge_labels.tolist() == ["1", "1", "hot", "hot"]


@pytest.mark.parametrize("out", ["edges.csv", "folder"])
def test_several_labels_are_written_and_read_back(tmp_path: Path, out: str) -> None:
    graphs = Graphs.from_edge_lists(
        [[(0, 1)], [(0, 1), (1, 2)]],
        node_labels=[[1, 2], [3, 4], [1, 1], [2, 2], [3, 3]],
        edge_labels=[["a", "b"], ["c", "d"], ["e", "f"]],
        node_attributes=[[0.5, 1], [1, 2], [2, 3], [3, 4], [4, 5]],
    )
    format = None if out.endswith("csv") else "graphml"
    write_data(graphs, tmp_path / out, format=format)
    assert load_dataset(tmp_path / out) == graphs
