"""Every format that is written is read back; `saen convert` and `saen validate`."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from saen import FileError, Graphs, InputError, generate_threads, load, load_dataset, save
from saen.cli import app, main
from saen.data.nested import NestedData
from saen.io.loading import load_data
from saen.io.nested import write_nested
from saen.io.tu import read_tu, write_tu
from saen.io.writing import write_graphs
from tests.properties.plain import PlainGraphs, plain_graphs

# Text that looks like a number, or has blanks at its ends, does not come back from every format.
plain_words = st.sampled_from(["C", "N", "é", "two words", 'quo"te', "com,ma", "<&>", "π", "x\ty"])

TWO = Graphs.from_edge_lists([[(0, 1), (1, 2)], [(0, 1)]], targets=["long", "short"])


def from_runner(*arguments: object) -> Any:
    return CliRunner().invoke(
        app, [str(argument) for argument in arguments], catch_exceptions=False
    )


def fails(monkeypatch: pytest.MonkeyPatch, capsys: Any, *arguments: object) -> str:
    monkeypatch.setattr("sys.argv", ["saen", *map(str, arguments)])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 2
    return capsys.readouterr().err


# -- round trips -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["x.jsonl", "x.ndjson", "x.saen", "graphml"])
@given(plain_graphs(text=plain_words))
def test_what_is_written_is_read_back(
    name: str, tmp_path_factory: pytest.TempPathFactory, plain: PlainGraphs
) -> None:
    out = tmp_path_factory.mktemp("out") / name
    write_graphs(plain.graphs(), out, format="graphml" if name == "graphml" else None)
    assert load_dataset(out) == plain.graphs()


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet"])
@given(plain_graphs(min_size=1, text=plain_words).filter(lambda plain: any(plain.edges)))
def test_tables_that_are_written_are_read_back(
    suffix: str, tmp_path_factory: pytest.TempPathFactory, plain: PlainGraphs
) -> None:
    out = tmp_path_factory.mktemp("out") / f"edges{suffix}"
    write_graphs(plain.graphs(), out)
    assert load_dataset(out, directed=plain.directed) == plain.graphs()


@pytest.mark.parametrize("name", ["x.zip", "tu"])
@given(plain_graphs(min_size=1, text=plain_words).filter(lambda plain: any(plain.edges)))
def test_tudataset_text_that_is_written_is_read_back_with_numbers_for_text(
    name: str, tmp_path_factory: pytest.TempPathFactory, plain: PlainGraphs
) -> None:
    out = tmp_path_factory.mktemp("out") / name
    graphs = plain.graphs()
    write_graphs(graphs, out, format="tu")
    found = read_tu(out, directed=plain.directed)
    assert found.name == out.stem
    for key in ("node_offsets", "indptr", "indices", "node_attributes", "edge_attributes"):
        np.testing.assert_array_equal(getattr(found, key), getattr(graphs, key))
    for key in ("node_labels", "edge_labels", "targets"):
        expected = getattr(graphs, key)
        if expected is not None and expected.dtype.kind == "U":
            expected = [1 + sorted(set(expected.tolist())).index(text) for text in expected]
        np.testing.assert_array_equal(getattr(found, key), expected)


def test_names_of_labels_stand_beside_the_numbers_of_tudataset_text(tmp_path: Path) -> None:
    write_tu(TWO, tmp_path / "toy")
    names = (tmp_path / "toy" / "toy_label_names.txt").read_text(encoding="utf-8")
    assert names == "graph_labels 1 long\ngraph_labels 2 short\n"
    with zipfile.ZipFile(write_graphs(TWO, tmp_path / "toy.zip")[0]) as archive:
        assert "toy/toy_A.txt" in archive.namelist()


def test_several_real_targets_are_kept_by_tudataset_text_and_binary_files(tmp_path: Path) -> None:
    graphs = TWO.with_targets(np.array([[0.5, 1], [2, 3]]))
    write_graphs(graphs, tmp_path / "tu", format="tu")
    assert read_tu(tmp_path / "tu") == graphs
    write_graphs(graphs, tmp_path / "x.saen")
    assert load(tmp_path / "x.saen") == graphs


@pytest.mark.parametrize(
    ("graphs", "name", "message"),
    [
        (TWO.with_targets(np.array([[0.5, 1], [2, 3]])), "x.jsonl",
         "one label or number per graph can be written; only .saen keeps others"),
        (TWO.with_targets([True, False]), "x.csv",
         "one label or number per graph can be written; only .saen keeps others"),
        (TWO.with_targets([0.5, np.nan]), "x.jsonl",
         "targets are missing or infinite: only .saen keeps them"),
        (Graphs.from_edge_lists([[(0, 1)]], node_attributes=[[1.0], [np.inf]]), "tu",
         "node attributes are missing or infinite: only .saen keeps them"),
        (Graphs.from_edge_lists([[(0, 1), (1, 0)]], edge_labels=["a", "b"]), "x.jsonl",
         "graph 0: the two directions of the edge 0 – 1 differ in their edge labels, and a file of "
         "jsonl keeps only one"),
        (Graphs.from_edge_lists([[(0, 1)]], node_labels=[[1, 2], [3, 4]]), "x.csv",
         "node labels have 2 columns, and csv keeps one"),
        (Graphs.from_edge_lists([[(0, 1)], []]), "x.csv",
         "graph 1 has no nodes, which a table of edges cannot say"),
        (Graphs.from_edge_lists([[]], [3]), "x.csv",
         "no graph has an edge, and a table of edges needs one"),
        (TWO[:0], "x.jsonl", "there are no graphs to write"),
        (TWO[:0], "tu", "there are no graphs to write"),
        (Graphs.from_edge_lists([[(0, 1)], []]), "tu",
         "the last graph is empty and without a target, which TUDataset cannot say"),
        (TWO.with_targets(["a", ""]), "x.csv", "targets: an empty text, which csv does not keep"),
        (Graphs.from_edge_lists([[(0, 1)]], node_labels=["a", "\x01"]), "graphml",
         "node labels: a character that XML does not keep"),
        (TWO.with_targets(["a", "\ud800"]), "x.csv",
         "a label holds half of a surrogate pair, which is no text"),
    ],
)  # fmt: skip
def test_what_a_format_cannot_hold_is_refused_and_leaves_nothing(
    tmp_path: Path, graphs: Graphs, name: str, message: str
) -> None:
    with pytest.raises(InputError) as caught:
        write_graphs(graphs, tmp_path / name, format=None if "." in name else name)
    assert str(caught.value) == message
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "format", "message"),
    [
        ("x.txt", None, "x.txt: no format is known by this name (endings are .saen, .zip, .jsonl, "
         ".ndjson, .csv, .tsv, .parquet); for a folder, say --format tu or --format graphml"),
        ("x.jsonl", "tu", "x.jsonl is the name of a file of jsonl, not of tu"),
        ("x", "gml", "the format is one of jsonl, saen, csv, tsv, parquet, tu, graphml, not 'gml'"),
    ],
)  # fmt: skip
def test_names_and_formats_must_agree(
    tmp_path: Path, name: str, format: str | None, message: str
) -> None:
    with pytest.raises(InputError) as caught:
        write_graphs(TWO, tmp_path / name, format=format)
    assert str(caught.value) == message


# -- what is there already ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "format", "other"),
    [
        ("x.jsonl", None, "x.jsonl"),
        ("x.saen", None, "x.saen"),
        ("x.zip", None, "x.zip"),
        ("edges.csv", None, "nodes.csv"),
        ("out", "tu", "out"),
        ("out", "graphml", "out"),
    ],
)
def test_what_is_there_stays_unless_forced(
    tmp_path: Path, name: str, format: str | None, other: str
) -> None:
    write_graphs(TWO[:1], tmp_path / name, format=format)
    with pytest.raises(FileError, match=r"is there already, and stays without --force"):
        write_graphs(TWO, tmp_path / name, format=format)
    if other != name:
        (tmp_path / name).unlink()
        with pytest.raises(FileError, match=other):
            write_graphs(TWO, tmp_path / name, format=format)
    write_graphs(TWO, tmp_path / name, format=format, force=True)
    assert len(load_dataset(tmp_path / name)) == 2
    assert not [file for file in tmp_path.iterdir() if file.name.startswith(".")]


def test_only_a_folder_of_graphs_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    write_graphs(TWO, tmp_path / "out", format="graphml")  # an empty folder is no loss
    (tmp_path / "out" / "thesis.tex").write_text("years of work")
    with pytest.raises(FileError, match=r"out: holds thesis\.tex, which would be lost"):
        write_graphs(TWO, tmp_path / "out", format="tu", force=True)
    assert len(load_dataset(tmp_path / "out")) == 2
    (tmp_path / "file").write_text("x")
    with pytest.raises(FileError, match="is a file, expected a folder"):
        write_graphs(TWO, tmp_path / "file", format="tu", force=True)


@pytest.mark.parametrize("name", ["x.jsonl", "edges.csv", "x.zip", "out"])
def test_a_write_that_fails_leaves_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    format = "tu" if name == "out" else None
    write_graphs(TWO[:1], tmp_path / name, format=format)
    before = {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()}

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("saen.io.writing.write_jsonl", full)
    monkeypatch.setattr("saen.io.writing._write_table", full)
    monkeypatch.setattr("saen.io.writing.write_tu", full)
    with pytest.raises(FileError, match=rf"{name}: cannot be written \(No space left on device\)"):
        write_graphs(TWO, tmp_path / name, format=format, force=True)
    assert {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()} == before


def test_a_folder_that_cannot_be_put_in_place_gives_way_to_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_graphs(TWO[:1], tmp_path / "out", format="graphml")
    replace = Path.replace

    def fail(path: Path, target: Path) -> Path:
        if path.name == "new":
            raise OSError(18, "Invalid cross-device link")
        return replace(path, target)

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(FileError, match=r"out: cannot be written \(Invalid cross-device link\)"):
        write_graphs(TWO, tmp_path / "out", format="graphml", force=True)
    assert load_dataset(tmp_path / "out").sizes.tolist() == [3]
    assert [file.name for file in tmp_path.iterdir()] == ["out"]


# -- loading what a decomposition takes --------------------------------------------------------


def test_structures_are_loaded_as_a_decomposition_takes_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nested = NestedData([{"word": ["the", "dog"]}], ["a"], levels=("words", "notes"))
    write_nested(nested, tmp_path / "notes.jsonl")
    assert load_data(tmp_path / "notes.jsonl", "nested") == nested
    monkeypatch.setattr("saen.io.stdlib.stdlib_functions", lambda: nested)
    assert load_data("stdlib-functions", "nested") is nested
    write_graphs(TWO, tmp_path / "x.jsonl")
    assert load_data(str(tmp_path / "x.jsonl")) == TWO
    with pytest.raises(FileError, match="a nested structure, not a graph: take a decomposition"):
        load_data(tmp_path / "notes.jsonl", "graphs")
    with pytest.raises(FileError, match="expected the keys 'parts'"):
        load_data(tmp_path / "x.jsonl", "nested")


def test_documents_are_loaded_from_conllu(tmp_path: Path) -> None:
    pytest.importorskip("conllu")
    (tmp_path / "x.conllu").write_text("1\tGo\tgo\tVERB\t_\t_\t0\troot\t_\t_\n\n")
    documents = load_data(tmp_path / "x.conllu", "documents")
    assert documents.words.tolist() == ["go"]
    with pytest.raises(FileError, match="documents, not graphs: take a decomposition of documents"):
        load_dataset(tmp_path / "x.conllu")


@pytest.mark.parametrize(
    ("name", "takes", "message"),
    [
        ("x.txt", "documents", "documents are read from .conllu files, not from x.txt"),
        ("MUTAG", "nested", "nested structures are read from .jsonl files, or generated by the "
                                "name stdlib-functions, not from MUTAG"),
        ("x", "pictures", "takes is graphs, documents or nested, not 'pictures'"),
    ],
)  # fmt: skip
def test_other_things_cannot_be_loaded(name: str, takes: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        load_data(name, takes)
    assert str(caught.value) == message


def test_options_of_tables_are_refused_for_other_data(tmp_path: Path) -> None:
    save(TWO, tmp_path / "x.saen")
    for name in (tmp_path / "x.saen", "threads"):
        with pytest.raises(InputError, match="the options nodes and targets are for tables"):
            load_dataset(name, targets="x.csv")
    write_graphs(TWO, tmp_path / "x.jsonl")
    with pytest.raises(InputError, match="the option target is for TUDataset text only"):
        load_dataset(tmp_path / "x.jsonl", target="labels")


def test_a_file_of_an_unknown_kind_lists_what_can_be_read(tmp_path: Path) -> None:
    (tmp_path / "x.docx").write_text("x")
    with pytest.raises(FileError, match=r"endings are \.saen, \.zip, \.jsonl, \.ndjson, \.csv"):
        load_dataset(tmp_path / "x.docx")


# -- the command line --------------------------------------------------------------------------


def test_a_newcomer_converts_checks_and_compresses_a_folder(tmp_path: Path) -> None:
    threads = generate_threads(20, average_nodes=8, seed=1)
    write_graphs(threads, tmp_path / "mine", format="graphml")
    shown = from_runner("convert", tmp_path / "mine", tmp_path / "mine.jsonl")
    assert shown.exit_code == 0
    assert f"written    {tmp_path / 'mine.jsonl'}" in shown.stdout
    assert load_dataset(tmp_path / "mine.jsonl") == threads
    checked = from_runner("validate", tmp_path / "mine.jsonl")
    assert checked.exit_code == 0
    assert "20 graphs" in checked.stdout
    assert "no problems" in checked.stdout
    assert "classes             discussion: 10, questions: 10" in checked.stdout
    report = json.loads(from_runner("compress", tmp_path / "mine.jsonl", "--json").stdout)
    assert report["levels"][-1]["objects"] == 20


def test_convert_reports_files_and_what_was_skipped(tmp_path: Path) -> None:
    file = tmp_path / "x.jsonl"
    file.write_text('{"nodes": 1, "edges": [[0, 0]]}\n' + "nonsense\n" * 12)
    result = from_runner("convert", file, tmp_path / "y.csv", "--skip-bad", "--json")
    document = json.loads(result.stdout)
    assert document["graphs"] == 1
    assert document["files"] == [str(tmp_path / f"y{end}.csv") for end in ("", "_nodes", "_labels")]
    assert len(document["skipped"]) == 12
    result = from_runner("convert", file, tmp_path / "y.csv", "--skip-bad", "--force")
    assert result.stderr.count("saen: skipped: ") == 10
    assert "saen: skipped 12 records in total" in result.stderr


def test_validate_names_offending_lines_with_exit_code_2(tmp_path: Path) -> None:
    file = tmp_path / "x.jsonl"
    file.write_text('{"nodes": 2, "edges": [[0, 1]]}\n{"nodes": 2, "edges": [[0, 2]]}\n\n{\n{\n')
    result = from_runner("validate", file, "--limit", 2)
    assert result.exit_code == 2
    assert "1 graph, 2 nodes, 1 edge" in result.stdout
    assert "labels              none: graphs can be predicted, but not trained on" in result.stdout
    assert "3 problems\n" in result.stdout
    assert f"  {file}, line 2: edge 0 names the node 2, but the nodes are" in result.stdout
    assert "  … and 1 more" in result.stdout
    assert "line 5" not in result.stdout
    result = from_runner("validate", file, "--json")
    document = json.loads(result.stdout)
    assert result.exit_code == 2
    assert (document["ok"], document["count"], document["n_problems"]) == (False, 1, 3)
    assert [problem["line"] for problem in document["problems"]] == [2, 4, 5]
    assert document["summary"]["edges"] == 1


def test_validate_takes_a_file_that_cannot_be_read_at_all(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("graph,source\n1,2\n")
    result = from_runner("validate", tmp_path / "x.csv", "--json")
    document = json.loads(result.stdout)
    assert (result.exit_code, document["count"], document["n_problems"]) == (2, 0, 1)
    assert "no column target" in document["problems"][0]["message"]


def test_validate_looks_at_structures_and_real_targets_too(tmp_path: Path) -> None:
    write_nested(NestedData([{"word": ["the", "dog"]}]), tmp_path / "notes.jsonl")
    result = from_runner("validate", tmp_path / "notes.jsonl", "--takes", "nested")
    assert (result.exit_code, "no problems" in result.stdout) == (0, True)
    write_graphs(TWO.with_targets([0.5, -2]), tmp_path / "x.jsonl")
    shown = from_runner("validate", tmp_path / "x.jsonl").stdout
    assert "targets             real numbers from -2 to 0.5" in shown


def test_tables_are_named_by_options(tmp_path: Path) -> None:
    (tmp_path / "e.csv").write_text("graph,source,target\na,1,2\n")
    (tmp_path / "n.csv").write_text("graph,node\na,1\na,2\na,3\n")
    (tmp_path / "l.csv").write_text("graph,label\na,yes\n")
    options = ["--nodes", tmp_path / "n.csv", "--targets", tmp_path / "l.csv", "--directed"]
    from_runner("convert", tmp_path / "e.csv", tmp_path / "x.saen", *options)
    expected = Graphs.from_edge_lists([[(0, 1)]], [3], directed=True, targets=["yes"])
    assert load(tmp_path / "x.saen") == expected
    assert from_runner("validate", tmp_path / "e.csv", *options).exit_code == 0


def test_mistakes_are_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write_graphs(TWO, tmp_path / "x.jsonl")
    error = fails(monkeypatch, capsys, "convert", "no.jsonl", "x.jsonl")
    assert error == "saen: x.jsonl: is there already, and stays without --force (force=True)\n"
    error = fails(monkeypatch, capsys, "convert", "x.jsonl", "out")
    assert "for a folder, say --format tu or --format graphml" in error
    (tmp_path / "bad.jsonl").write_text("{}\n")
    error = fails(monkeypatch, capsys, "convert", "bad.jsonl", "y.jsonl")
    assert error == "saen: bad.jsonl, line 1: no 'nodes'\n"
    assert not (tmp_path / "y.jsonl").exists()
