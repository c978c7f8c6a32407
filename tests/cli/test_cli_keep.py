"""`saen predict --keep`: columns of the input beside the predictions."""

import csv
import json

import pandas as pd
import pytest

import saen
from saen.errors import InputError
from saen.io.formats import molecules as molecule_files
from saen.io.loading import stream_data
from saen.io.options import ReadOptions
from saen.jobs.predict import predict_dataset
from tests.cli.commandline import fails, invoke


def test_keep_copies_columns_of_good_rows(tmp_path, monkeypatch):
    pytest.importorskip("rdkit")
    table = tmp_path / "m.csv"
    table.write_text("smiles,id,Batch,mass\nCC,e1,b1,30\nbad(,e2,b2,0\nCO,e3,b3,32\n")
    molecules = saen.from_smiles(["CC", "CO", "CCO", "CCC"])
    model, out = tmp_path / "model.saen", tmp_path / "out.csv"
    saen.SAENClassifier(epochs=1, n_models=1).fit(molecules, [0, 1, 1, 0]).save(model)

    def predict(keep):
        reading = ReadOptions(skip_bad=True, report=lambda error: None)
        predict_dataset(model, str(table), out, reading, keep=keep, force=True)
        return [line.split(",")[:3] for line in out.read_text().splitlines()]

    table_rows = predict(["batch"])
    assert table_rows[0] == ["id", "Batch", "prediction"]
    assert [row[:2] for row in table_rows[1:]] == [["e1", "b1"], ["e3", "b3"]]
    assert predict(["all"])[0] == ["id", "smiles", "Batch"]  # which is not the id here
    assert [row[1] for row in predict(["smiles"])] == ["smiles", "CC", "CO"]
    whole = predict(["all"])
    monkeypatch.setattr(molecule_files, "MOLECULES_PER_PART", 2)
    assert predict(["all"]) == whole
    with pytest.raises(InputError, match=r"no column 'bach' to keep .did you mean"):
        predict(["bach"])


def test_tables_of_molecules_in_parts_name_the_rows_of_the_table(tmp_path, monkeypatch):
    pytest.importorskip("rdkit")
    monkeypatch.setattr(molecule_files, "MOLECULES_PER_PART", 2)
    table = tmp_path / "m.csv"
    table.write_text("smiles,target\nCC,1\nCO,0\nCCO,1\nbad(,0\nC,0\n")
    errors = []
    parts = [*stream_data(table, "graphs", ReadOptions(skip_bad=True, report=errors.append))]
    assert [part.ids.tolist() for part in parts] == [["CC", "CO"], ["CCO"], ["C"]]
    assert [part.targets.tolist() for part in parts] == [[1, 0], [1], [0]]
    assert len(errors) == 1
    assert str(errors[0]).startswith(f"{table}, line 5: ")


def kept(model, data, keep, **reading):
    """The names of all columns before the prediction, and the values of these columns."""
    out = data.parent / "predictions.csv"
    predict_dataset(model, str(data), out, ReadOptions(**reading), keep=keep.split(","), force=True)
    header, *rows = csv.reader(out.read_text().splitlines())
    n = header.index("prediction")
    return header[:n], [row[:n] for row in rows]


@pytest.fixture(scope="module")
def paths(tmp_path_factory):
    """A model of paths, which tells those of two nodes from those of three."""
    graphs = saen.Graphs.from_edge_lists([[(0, 1)], [(0, 1), (1, 2)]] * 4)
    model = tmp_path_factory.mktemp("model") / "model.saen"
    saen.PartCountsClassifier(inner_folds=0).fit(graphs, [0, 1] * 4).save(model)
    return model


def test_keep_copies_targets_and_ids_under_the_names_in_a_table_of_molecules(tmp_path, paths):
    pytest.importorskip("rdkit")
    table = tmp_path / "m.csv"
    table.write_text("Code,smiles,pIC50,Batch\na,CC,6.5,b1\nb,CO,,b2\n")
    options = {"target": "pIC50", "id": "code"}
    assert kept(paths, table, "pIC50", **options) == (["id", "pIC50"], [["a", "6.5"], ["b", ""]])
    assert kept(paths, table, "code,id", **options)[0] == ["id", "Code"]
    assert kept(paths, table, "all", **options) == (
        ["id", "Code", "smiles", "pIC50", "Batch"],
        [["a", "a", "CC", "6.5", "b1"], ["b", "b", "CO", "", "b2"]],
    )
    assert kept(paths, table, "all")[0] == ["id", "Code", "smiles", "pIC50", "Batch"]
    table.write_text("smiles,id,label\nCC,a,1\nCO,b,0\n")
    assert kept(paths, table, "all") == (
        ["id", "smiles", "label"],
        [["a", "CC", "1"], ["b", "CO", "0"]],
    )
    sdf = tmp_path / "m.sdf"
    block = "acid\n\n\n  1  0  0  0  0  0  0  0  0  0999 V2000\n" + "    0.0000" * 3
    sdf.write_text(f"{block} C   0  0\nM  END\n>  <pIC50>\n6.5\n\n$$$$\n")
    assert kept(paths, sdf, "all", target="pIC50") == (
        ["id", "pIC50", "smiles"],
        [["acid", "6.5", "C"]],
    )


def test_keep_copies_targets_and_ids_under_the_names_in_json_lines(tmp_path, paths):
    lines = tmp_path / "g.jsonl"
    graph = {"nodes": 2, "edges": [[0, 1]]}
    first = {**graph, "code": "x", "size": 3, "label": "a", "id": 7}
    lines.write_text(json.dumps(first) + "\n" + json.dumps({**graph, "code": "y"}) + "\n")
    options = {"target": "size", "id": "code"}
    assert kept(paths, lines, "size,code", **options) == (
        ["id", "size", "code"],
        [["x", "3", "x"], ["y", "", "y"]],
    )
    assert kept(paths, lines, "all")[0] == ["id", "code", "size", "label"]
    assert kept(paths, lines, "id,label") == (["id", "label"], [["7", "a"], ["1", ""]])


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_keep_copies_targets_and_ids_under_the_names_in_tables_of_edges(tmp_path, paths, suffix):
    edges = tmp_path / f"edges.{suffix}"
    frame = pd.DataFrame({"graph": ["a", "b"], "source": [0, 0], "target": [1, 1]})
    (frame.to_csv if suffix == "csv" else frame.to_parquet)(edges, index=False)
    assert kept(paths, edges, "all") == (["id", "graph"], [["a", "a"], ["b", "b"]])
    (tmp_path / "targets.csv").write_text("Graph,Target,code\nb,1,x\n")
    assert kept(paths, edges, "all", id="code") == (
        ["id", "Graph", "Target", "code"],
        [["x", "b", "1", "x"], ["a", "a", "", ""]],
    )


def test_keep_copies_targets_of_a_folder_and_of_nested_data(tmp_path, paths):
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "a.txt").write_text("0 1\n")
    (folder / "targets.csv").write_text("graph,target\na,yes\n")
    (folder / "b.txt").write_text("0 1\n")
    assert kept(paths, folder, "target")[1] == [["a", "yes"], ["b", ""]]
    pets = saen.NestedData([{"word": ["dog"]}, {"word": ["cat"]}] * 4)
    model = tmp_path / "nested.saen"
    saen.PartCountsClassifier("nested", inner_folds=0).fit(pets, ["a", "b"] * 4).save(model)
    lines = tmp_path / "pets.jsonl"
    lines.write_text('{"parts": {"word": ["dog"]}, "kind": "a", "note": "x"}\n')
    assert kept(model, lines, "all", target="kind") == (["id", "kind", "note"], [["0", "a", "x"]])


def test_evaluate_writes_its_predictions_with_kept_columns(tmp_path):
    lines = [
        {"nodes": 2 + n % 2, "edges": [[0, 1]], "target": "ab"[n % 2], "lab": n} for n in range(8)
    ]
    data, out = tmp_path / "data.jsonl", tmp_path / "out.csv"
    data.write_text("\n".join(map(json.dumps, lines)))
    options = ["evaluate", data, "--preset", "counts", "--repeats", 1, "--folds", 2]
    options += ["--predictions", out]
    assert "no column 'bach' to keep" in fails(*options, "--keep", "bach")
    assert not out.exists()
    invoke(*options, "--keep", "lab")
    rows = [row.split(",")[:5] for row in out.read_text().splitlines()]
    assert rows[0] == ["id", "lab", "repeat", "fold", "target"]
    assert [[row[1], row[4]] for row in rows[1:]] == [[str(n), "ab"[n % 2]] for n in range(8)]
    assert "already exists" in fails(*options)
    assert "cannot write" in fails(*options[:-1], tmp_path / "out.xlsx")


def test_kept_columns_have_all_digits_and_never_hide_what_is_computed(tmp_path):
    data = tmp_path / "g.jsonl"
    mass = 123456.7890123
    lines = [
        {"nodes": 2 + n % 3, "edges": [[0, 1]], "target": n / 7, "prediction": n, "mass": mass}
        for n in range(20)
    ]
    data.write_text("\n".join(map(json.dumps, lines)))
    model, out = tmp_path / "m.saen", tmp_path / "p.csv"
    invoke("train", data, "--preset", "counts", "--out", model)
    for keep in (["mass,prediction"], ["mass", "--keep", "prediction"]):
        invoke("predict", model, data, "--keep", *keep, "--out", out, "--force")
        rows = pd.read_csv(out)
        assert [*rows][:4] == ["id", "mass", "input_prediction", "prediction"]
    assert (rows["mass"] == mass).all()
    assert rows["input_prediction"].tolist() == [*range(20)]
    lines = tmp_path / "p.jsonl"
    invoke("predict", model, data, "--keep", "mass", "--out", lines)
    assert json.loads(lines.read_text().splitlines()[0])["mass"] == mass
    few = ("--preset", "counts", "--repeats", 1, "--folds", 3)
    invoke("evaluate", data, *few, "--keep", "all", "--predictions", out, "--force")
    rows = pd.read_csv(out).sort_values("id")
    assert [*rows][:6] == ["id", "input_prediction", "mass", "repeat", "fold", "target"]
    assert rows["target"].tolist() == [n / 7 for n in range(20)]
    assert rows["input_prediction"].tolist() == [*range(20)]
