"""Every format that is written is read back, and writing is atomic."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from saen import FileError, Graphs, InputError, load, load_dataset
from saen.io.formats.edge_tables import tables_of
from saen.io.formats.tu import read_tu, write_tu
from saen.io.result_tables import write_table
from saen.io.writing import write_data
from tests.io.refusals import refusal
from tests.properties.plain import PlainGraphs, plain_graphs

# Text that looks like a number, or has blanks at its ends, does not come back from every format.
plain_words = st.sampled_from(["C", "N", "é", "two words", 'quo"te', "com,ma", "<&>", "π", "x\ty"])

TWO = Graphs.from_edge_lists([[(0, 1), (1, 2)], [(0, 1)]], targets=["long", "short"])


# -- round trips -------------------------------------------------------------------------------


def as_numbers(graphs: Graphs) -> Graphs:
    """Text as TUDataset files have it: its place in alphabetical order."""
    columns = {}
    for key in ("node_labels", "edge_labels", "targets"):
        column = getattr(graphs, key)
        if column is not None and column.dtype.kind == "U":
            columns[key] = np.unique(column, return_inverse=True)[1] + 1
    return graphs._with(**columns)


ANY_GRAPHS = ["x.jsonl", "x.ndjson", "x.saen", "graphml"]
TABLES = ["edges.csv", "edges.tsv", "edges.parquet"]
TU = ["x.zip", "tu"]


@pytest.mark.parametrize("name", [*ANY_GRAPHS, *TABLES, *TU])
@given(plain_graphs(text=plain_words))
def test_write_then_read_gives_the_same_graphs(
    name: str, tmp_path_factory: pytest.TempPathFactory, plain: PlainGraphs
) -> None:
    assume(name in ANY_GRAPHS or (all(plain.sizes) and any(plain.edges)))
    out, graphs = tmp_path_factory.mktemp("out") / name, plain.graphs()
    write_data(graphs, out, format=None if out.suffix else name)
    found = load_dataset(out, directed=plain.directed and name not in ANY_GRAPHS)
    assert found == (as_numbers(graphs) if name in TU else graphs)
    assert found.name == out.stem or name == "x.saen"


@given(plain_graphs(min_size=1, text=plain_words), st.integers(0, 2**32 - 1))
def test_tables_read_the_same_whatever_the_order_of_their_rows(
    tmp_path_factory: pytest.TempPathFactory, plain: PlainGraphs, seed: int
) -> None:
    assume(any(plain.edges))
    folder, graphs = tmp_path_factory.mktemp("tables"), plain.graphs()
    for kind, columns in tables_of(graphs).items():
        frame = pd.DataFrame(columns)
        rows = frame.sample(frac=1, random_state=seed)
        if kind == "nodes":  # those of a graph keep their order
            rows = rows.sort_values("node", kind="stable")
        write_table({**(frame if kind == "targets" else rows)}, folder / f"{kind}.csv", ".csv")
    assert load_dataset(folder / "edges.csv", directed=plain.directed) == graphs


def test_write_names_of_labels_are_listed_beside_the_numbers_of_tudataset_text(
    tmp_path: Path,
) -> None:
    write_tu(TWO, tmp_path / "toy")
    names = (tmp_path / "toy" / "toy_label_names.txt").read_text(encoding="utf-8")
    assert names == "graph_labels 1 long\ngraph_labels 2 short\n"
    with zipfile.ZipFile(write_data(TWO, tmp_path / "toy.zip")[0]) as archive:
        assert "toy/toy_A.txt" in archive.namelist()


def test_write_several_real_targets_are_kept_by_tudataset_text_and_binary_files(
    tmp_path: Path,
) -> None:
    graphs = TWO.with_targets(np.array([[0.5, 1], [2, 3]]))
    write_data(graphs, tmp_path / "tu", format="tu")
    assert read_tu(tmp_path / "tu") == graphs
    write_data(graphs, tmp_path / "x.saen")
    assert load(tmp_path / "x.saen") == graphs


@pytest.mark.parametrize(
    ("graphs", "name", "message"),
    [
        (TWO.with_targets(np.array([[0.5, 1], [2, 3]])), "x.jsonl",
         "targets must be one class or number per graph; only .saen stores others"),
        (TWO.with_targets([True, False]), "x.csv",
         "targets must be one class or number per graph; only .saen stores others"),
        (TWO.with_targets([0.5, np.nan]), "x.jsonl",
         "targets contain NaN or infinity, which only .saen stores"),
        (Graphs.from_edge_lists([[(0, 1)]], node_attributes=[[1.0], [np.inf]]), "tu",
         "node attributes contain NaN or infinity, which only .saen stores"),
        (Graphs.from_edge_lists([[(0, 1), (1, 0)]], edge_labels=["a", "b"]), "x.jsonl",
         "graph 0: the two directions of edge 0 – 1 have different edge labels, but jsonl stores "
         "only one"),
        (Graphs.from_edge_lists([[(0, 1)], []]), "x.csv",
         "graph 1 has no nodes, which an edge table cannot store"),
        (Graphs.from_edge_lists([[]], [3]), "x.csv",
         "an edge table needs at least one edge"),
        (TWO[:0], "x.jsonl", "there are no graphs to write"),
        (TWO[:0], "tu", "there are no graphs to write"),
        (Graphs.from_edge_lists([[(0, 1)], []]), "tu",
         "TUDataset files cannot end with an empty graph without a target"),
        (TWO.with_targets(["a", ""]), "x.csv", "targets: csv cannot store empty text"),
        (Graphs.from_edge_lists([[(0, 1)]], node_labels=["a", "\x01"]), "graphml",
         "node labels: a character that XML cannot store"),
        (TWO.with_targets(["a", "\ud800"]), "x.csv",
         "a label contains an unpaired surrogate, which is not text"),
    ],
)  # fmt: skip
def test_write_what_a_format_cannot_hold_is_refused_and_leaves_nothing(
    tmp_path: Path, graphs: Graphs, name: str, message: str
) -> None:
    assert (
        refusal(
            InputError, write_data, graphs, tmp_path / name, format=None if "." in name else name
        )
        == message
    )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "format", "message"),
    [
        ("x.txt", None, "graphs are written as .saen, .zip, .jsonl, .ndjson, .csv, .tsv, .parquet, "
         "or as shards with shards=…, not as x.txt; for a folder, use "
         'format="tu" or format="graphml"'),
        ("x.jsonl", "tu", "x.jsonl: the suffix means jsonl, not tu"),
        ("x", "gml",
         "format must be one of saen, tu, zip, jsonl, ndjson, table, csv, tsv, parquet, graphml, "
         "not 'gml'"),
    ],
)  # fmt: skip
def test_write_names_and_formats_must_agree(
    tmp_path: Path, name: str, format: str | None, message: str
) -> None:
    assert refusal(InputError, write_data, TWO, tmp_path / name, format=format) == message


# -- existing files ---------------------------------------------------------------------------


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
def test_write_existing_files_are_overwritten_only_with_force(
    tmp_path: Path, name: str, format: str | None, other: str
) -> None:
    write_data(TWO[:1], tmp_path / name, format=format)
    with pytest.raises(FileError, match=r"already exists"):
        write_data(TWO, tmp_path / name, format=format)
    if other != name:
        (tmp_path / name).unlink()
        with pytest.raises(FileError, match=other):
            write_data(TWO, tmp_path / name, format=format)
    write_data(TWO, tmp_path / name, format=format, force=True)
    assert len(load_dataset(tmp_path / name)) == 2
    assert not [file for file in tmp_path.iterdir() if file.name.startswith(".")]


def test_write_only_a_folder_of_graphs_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    write_data(TWO, tmp_path / "out", format="graphml")  # an empty folder is no loss
    (tmp_path / "out" / "thesis.tex").write_text("years of work")
    with pytest.raises(FileError, match=r"out: contains thesis\.tex, which would be lost"):
        write_data(TWO, tmp_path / "out", format="tu", force=True)
    assert len(load_dataset(tmp_path / "out")) == 2
    (tmp_path / "file").write_text("x")
    with pytest.raises(FileError, match="is a file, expected a folder"):
        write_data(TWO, tmp_path / "file", format="tu", force=True)


@pytest.mark.parametrize("name", ["x.jsonl", "edges.csv", "x.zip", "out"])
def test_a_write_that_fails_leaves_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    format = "tu" if name == "out" else None
    write_data(TWO[:1], tmp_path / name, format=format)
    before = {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()}

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("saen.io.formats.jsonl.plain_graphs", full)
    monkeypatch.setattr("saen.io.formats.edge_tables.write_table", full)
    monkeypatch.setattr("saen.io.formats.tudataset.write_tu", full)
    with pytest.raises(FileError, match=rf"{name}: cannot be written \(No space left on device\)"):
        write_data(TWO, tmp_path / name, format=format, force=True)
    assert {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()} == before


def test_write_a_folder_that_cannot_be_put_in_place_gives_way_to_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_data(TWO[:1], tmp_path / "out", format="graphml")
    replace = Path.replace

    def fail(path: Path, target: Path) -> Path:
        if path.name == "new":
            raise OSError(18, "Invalid cross-device link")
        return replace(path, target)

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(FileError, match=r"out: cannot be written \(Invalid cross-device link\)"):
        write_data(TWO, tmp_path / "out", format="graphml", force=True)
    assert load_dataset(tmp_path / "out").sizes.tolist() == [3]
    assert [file.name for file in tmp_path.iterdir()] == ["out"]


def test_equal_graphs_make_equal_zips_whatever_the_time(tmp_path: Path) -> None:
    write_data(TWO, tmp_path / "two.zip")
    with zipfile.ZipFile(tmp_path / "two.zip") as archive:
        assert {member.date_time for member in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
        assert {member.compress_type for member in archive.infolist()} == {zipfile.ZIP_DEFLATED}
