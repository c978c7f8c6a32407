"""Ids from files to `Graphs`, `Documents` and `NestedData`, and back to files."""

import json

import pytest

import saen
from saen.io.formats.conllu import read_conllu
from saen.io.formats.nested import read_nested, write_nested
from saen.io.loading import load_dataset


def _lines(path, *documents):
    path.write_text("".join(json.dumps(document) + "\n" for document in documents))
    return path


def test_ids_of_json_lines_are_read(tmp_path):
    file = _lines(
        tmp_path / "g.jsonl", {"id": "x", "nodes": 2, "edges": [[0, 1]]}, {"nodes": 1, "edges": []}
    )
    assert load_dataset(file).ids.tolist() == ["x", "1"]


def test_ids_without_any_are_rows_of_the_input_though_bad_ones_are_skipped(tmp_path):
    good, bad = {"nodes": 2, "edges": [[0, 1]]}, {"nodes": 2, "edges": [[0, 9]]}
    file = _lines(tmp_path / "g.jsonl", good, bad, good, bad, good)
    graphs = load_dataset(file, skip_bad=True, report=lambda error: None)
    assert graphs.ids.tolist() == [0, 2, 4]


@pytest.mark.parametrize("bad_id", [1.5, [1], True, 2**70])
def test_ids_that_are_neither_integers_nor_strings_are_refused(tmp_path, bad_id):
    file = _lines(tmp_path / "g.jsonl", {"id": bad_id, "nodes": 1, "edges": []})
    with pytest.raises(saen.FileError, match=r"line 1: the id"):
        load_dataset(file)


def test_ids_of_edge_tables_are_the_names_of_graphs(tmp_path):
    (tmp_path / "edges.csv").write_text("graph,source,target\nb,1,2\na,1,2\n")
    assert load_dataset(tmp_path / "edges.csv").ids.tolist() == ["b", "a"]


def test_ids_of_files_are_their_stems(tmp_path):
    for name in ("first", "second"):
        (tmp_path / f"{name}.edgelist").write_text("1 2\n")
    assert load_dataset(tmp_path).ids.tolist() == ["first", "second"]


@pytest.mark.parametrize(
    ("header", "ids"),
    [("smiles,id", ["7", "9"]), ("smiles,Name", ["7", "9"]), ("smiles,mass", ["CC", "CO"])],
)
def test_ids_of_molecules_are_a_column_or_their_smiles(tmp_path, header, ids):
    pytest.importorskip("rdkit")
    file = tmp_path / "m.csv"
    file.write_text(f"{header}\nCC,7\nnot a molecule,8\nCO,9\n")
    graphs = load_dataset(file, skip_bad=True, report=lambda error: None)
    assert [*map(str, graphs.ids.tolist())] == ids


def test_ids_of_documents_are_those_of_the_corpus():
    text = "# newdoc id = d1\n1\tyes\tyes\tX\t_\t_\t0\troot\t_\t_\n\n"
    documents = read_conllu(text + text.replace("d1", "d2"))
    assert documents.ids.tolist() == ["d1", "d2"]


def test_ids_of_nested_data_come_back(tmp_path):
    data = saen.NestedData([{"word": ["x"]}, {"word": ["y"]}], ids=["one", "two"])
    write_nested(data, tmp_path / "n.jsonl")
    assert read_nested(tmp_path / "n.jsonl").ids.tolist() == ["one", "two"]
