"""Groups of examples that splits keep together."""

from __future__ import annotations

import pytest

import saen
from saen import InputError
from saen.errors import FileError
from saen.io.options import ReadOptions
from saen.io.parsing.records import skipped_records
from saen.jobs.groups import load_groups

THREADS = saen.generate_threads(24, average_nodes=8, seed=2)
QUICK = {"epochs": 1, "n_models": 1, "radii": (0, 1)}


def test_groups_come_from_a_column_a_file_or_scaffolds(tmp_path):
    chem = pytest.importorskip("rdkit.Chem", reason="needs the extra 'chem'")
    table = tmp_path / "molecules.csv"
    table.write_text("smiles,target,Lab\nCc1ccccc1,0.5,A\nOc1ccccc1,1.5,B\nCCO,2.5,A\n")

    def groups(name, source=table, **reading):
        plain = ReadOptions(report=lambda error: None, **reading)
        with skipped_records(plain) as (options, skipped):
            data = THREADS[:3] if source == "threads" else saen.load_dataset(source, options)
        return load_groups(str(name), str(source), data, plain, skipped).tolist()

    assert groups("lab") == ["A", "B", "A"]
    assert groups("scaffold") == ["c1ccccc1", "c1ccccc1", "(no rings)"]
    renamed = tmp_path / "renamed.csv"
    renamed.write_text(table.read_text().replace("smiles", "structure", 1))
    assert groups("scaffold", renamed, smiles="Structure")[2] == "(no rings)"
    skipped = tmp_path / "skipped.csv"
    skipped.write_text("id,smiles,lab\na,c1ccccc,A\na,CCO,B\nc,Oc1ccccc1,C\n")
    assert groups("scaffold", skipped, skip_bad=True) == ["(no rings)", "c1ccccc1"]
    assert groups("lab", skipped, skip_bad=True) == ["B", "C"]
    assert groups("ID", skipped, skip_bad=True) == ["a", "c"]
    lines = tmp_path / "groups.txt"
    lines.write_text("x\ny\nx\n")
    assert groups(lines, "threads") == ["x", "y", "x"]
    assert groups(lines, skipped, skip_bad=True) == ["y", "x"]
    lines.write_text("x\ny\nx\nx\n")
    with pytest.raises(FileError, match="4 groups for 3 examples"):
        groups(lines, "threads")
    with pytest.raises(InputError, match="a column or key of the data, a file"):
        groups("nothing")
    with pytest.raises(InputError, match=r"not 'labb' \(did you mean Lab\?\)"):
        groups("labb")
    with pytest.raises(InputError, match="table with a column 'smiles' or an SDF, not threads"):
        groups("scaffold", "threads")
    blocks = [chem.MolToMolBlock(chem.MolFromSmiles(text)) for text in ("Cc1ccccc1", "CCO")]
    (tmp_path / "molecules.sdf").write_text("".join(f"{block}$$$$\n" for block in blocks))
    assert groups("scaffold", tmp_path / "molecules.sdf") == ["c1ccccc1", "(no rings)"]
    saen.save(saen.load_dataset(tmp_path / "molecules.sdf"), tmp_path / "own.saen")
    assert groups("scaffold", tmp_path / "own.saen") == ["c1ccccc1", "(no rings)"]


def test_groups_with_empty_cells_are_refused(tmp_path):
    table = tmp_path / "molecules.csv"
    table.write_text("id,smiles,target,lab\na,C,0,A\nb,CC,1,\nc,CCC,0,\n")
    with pytest.raises(InputError, match=r"2 of 3 examples have no group in 'lab' \(first: b\)"):
        load_groups("lab", str(table), saen.load_dataset(table), ReadOptions())
