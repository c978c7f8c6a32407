"""What is said of molecules: salts, repeated molecules, stereoisomers and scaffolds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import saen
from saen.errors import FileError
from saen.io.options import ReadOptions
from saen.jobs.groups import load_groups
from saen.jobs.job import Job
from saen.jobs.train import train_model
from saen.jobs.validate import validate_dataset

pytest.importorskip("rdkit")

MESS = """No,Structure,"IC50, nM",pH,note,Log P
1,CCO,3.5,7.1,x,0.1
2,OCC,4.5,,y,0.2
3,c1ccccc1,7.5,7.0,x,1.2
4,Cc1ccccc1,1.5,7.2,z,0.3
5,C[C@H](N)O,5.5,7.3,z,2.3
6,C[C@@H](N)O,2.5,7.3,z,2.1
7,CCCCl.[Na+],5.5,7.3,z,2.3
"""


@pytest.fixture
def mess(tmp_path: Path) -> Path:
    path = tmp_path / "mess.csv"
    path.write_text(MESS)
    return path


def test_columns_whose_names_have_commas(mess: Path) -> None:
    one = saen.load_dataset(mess, smiles="Structure", target="IC50, nM")
    assert one.targets.tolist() == [3.5, 4.5, 7.5, 1.5, 5.5, 2.5, 5.5]  # type: ignore[union-attr]
    two = saen.load_dataset(mess, smiles="Structure", target='"IC50, nM",Log P')
    assert two.target_names == ("IC50, nM", "Log P")
    every = saen.load_dataset(mess, smiles="Structure", target="all", id="No", features="pH")
    assert every.target_names == ("IC50, nM", "Log P")
    assert np.isnan(every.features).sum() == 1  # type: ignore[arg-type]


def test_a_table_without_smiles_says_which_column_looks_like_them(mess: Path) -> None:
    with pytest.raises(FileError, match=r"with smiles=…; columns: .*'Structure' looks like SMILES"):
        saen.load_dataset(mess)


def test_a_table_without_a_header_says_so(tmp_path: Path) -> None:
    (tmp_path / "bare.csv").write_text("CC(=O)O,a\nCCO,b\n")
    with pytest.raises(FileError, match=r"no header: the first line .* row \(CC\(=O\)O,a\)"):
        saen.load_dataset(tmp_path / "bare.csv")


@pytest.mark.parametrize("order", ["CC(=O)O acid\nCCO ol\n", "id smiles\nacid CC(=O)O\nol CCO\n"])
def test_smi_files_have_names_behind_or_before_the_smiles(tmp_path: Path, order: str) -> None:
    (tmp_path / "x.smi").write_text(order)
    molecules = saen.load_dataset(tmp_path / "x.smi")
    assert (molecules.ids.tolist(), molecules.sizes.tolist()) == (["acid", "ol"], [4, 3])


def test_bad_molecules_name_the_option_that_leaves_them_out(tmp_path: Path) -> None:
    path = tmp_path / "bad.csv"
    path.write_text("smiles,target\nCCO,1.5\nC(C,2.5\n")
    with pytest.raises(FileError, match=r"line 3: 'C\(C': invalid SMILES.*skip_bad=True"):
        saen.load_dataset(path)


def test_largest_fragments_are_read_where_they_are_asked_for(mess: Path, tmp_path: Path) -> None:
    said: list[str] = []
    reading = ReadOptions(smiles="Structure", target="Log P", notify=said.append)
    whole = saen.load_dataset(mess, reading)
    assert any("1 molecule of several fragments" in line for line in said)
    largest = saen.load_dataset(mess, reading, largest_fragment=True)
    assert (whole.n_nodes - largest.n_nodes, len(largest)) == (1, len(whole))
    how = ReadOptions(smiles="Structure", target="Log P", largest_fragment=True)
    job = Job(str(mess), "counts", {"C": 1.0, "depth": 1, "inner_folds": 0}, reading=how)
    report = train_model(job, tmp_path / "m.saen")
    assert report.model.origin_.reading["largest_fragment"] == "yes"
    assert saen.load(tmp_path / "m.saen").origin_.reading == report.model.origin_.reading


def test_repeated_molecules_and_stereoisomers_are_told_of(mess: Path) -> None:
    reading = ReadOptions(smiles="Structure", target="Log P")
    notes = "\n".join(validate_dataset(str(mess), reading).unused)
    assert "2 molecules differ from another one in stereochemistry alone" in notes
    assert "1 molecule on several rows (2 in all), 1 of them with different targets" in notes
    assert "29 % of molecules share their scaffold" in notes
    data = saen.load_dataset(mess, reading)
    groups = load_groups("molecule", str(mess), data, reading)
    assert (groups[0] == groups[1], groups[4] == groups[5]) == (True, True)
    assert len(set(groups.tolist())) == 5


def test_words_among_measured_numbers_are_missing_or_bad_rows(tmp_path: Path) -> None:
    path = tmp_path / "measured.csv"
    path.write_text("smiles,target\nCCO,1.5\nCCC,n/a\nCCN,>10\nCCCl,2\n\nCCF,3\n")
    with pytest.raises(FileError, match=r"line 4: target '>10' is not a number.*skip_bad=True"):
        saen.load_dataset(path)
    skipped: list[Any] = []
    data = saen.load_dataset(path, skip_bad=True, report=skipped.append)
    assert data.targets.tolist() == [1.5, 2.0, 3.0]  # type: ignore[union-attr]
    assert [str(each).rpartition("line ")[2][0] for each in skipped] == ["4", "3"]
    new = saen.load_dataset(path, partial_targets=True)
    assert new.targets.tolist() == ["1.5", "", ">10", "2.0", "3.0"]  # type: ignore[union-attr]
    classes = saen.load_dataset(path, task="classification", skip_bad=True, report=skipped.append)
    assert classes.targets.tolist() == ["1.5", "n/a", ">10", "2", "3"]  # type: ignore[union-attr]
