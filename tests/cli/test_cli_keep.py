"""`saen predict --keep`: columns of the input beside the predictions."""

import pytest

import saen
from saen.errors import InputError
from saen.io import streaming
from saen.io.reading import ReadOptions
from saen.learning.jobs.predict import predict_dataset


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
    monkeypatch.setattr(streaming, "MOLECULES_PER_PART", 2)
    assert predict(["all"]) == whole
    with pytest.raises(InputError, match=r"no column 'bach' to keep .did you mean"):
        predict(["bach"])


def test_tables_of_molecules_in_parts_name_the_rows_of_the_table(tmp_path, monkeypatch):
    pytest.importorskip("rdkit")
    monkeypatch.setattr(streaming, "MOLECULES_PER_PART", 2)
    table = tmp_path / "m.csv"
    table.write_text("smiles,target\nCC,1\nCO,0\nCCO,1\nbad(,0\nC,0\n")
    errors = []
    parts = [*streaming.stream_dataset(table, ReadOptions(skip_bad=True, report=errors.append))]
    assert [part.ids.tolist() for part in parts] == [["CC", "CO"], ["CCO"], ["C"]]
    assert [part.targets.tolist() for part in parts] == [[1, 0], [1], [0]]
    assert len(errors) == 1
    assert str(errors[0]).startswith(f"{table}, line 5: ")
