"""The scripts in examples/ run and show what they promise."""

import re
import runpy
from typing import Any

import pytest

from tests.docs.pages import ROOT

pytestmark = pytest.mark.slow


@pytest.fixture
def run(capsys, monkeypatch):
    """Run an example; returns what it printed and its variables."""

    def run(name: str, *arguments: Any) -> tuple[str, dict[str, Any]]:
        monkeypatch.setattr("sys.argv", [name, *map(str, arguments)])
        names = runpy.run_path(str(ROOT / "examples" / name), run_name="__main__")
        return capsys.readouterr().out, names

    return run


def percentages(pattern: str, printed: str) -> list[float]:
    return [float(number) for number in re.findall(pattern + r" +([\d.]+) %", printed)]


def test_threads_example_trains_and_predicts(run, tmp_path):
    printed, _ = run("threads.py", tmp_path)
    [accuracy] = percentages("10-fold accuracy on 270 threads:", printed)
    assert accuracy > 70
    assert (tmp_path / "evaluation.png").stat().st_size > 10_000


def test_functions_example_beats_the_majority_baseline(run):
    printed, _ = run("functions.py")
    [accuracy] = percentages("held-out functions:", printed)
    [baseline] = percentages("majority baseline:", printed)
    assert baseline < 20
    assert accuracy > 2 * baseline


def test_molecules_example_needs_bond_types_to_tell_isomers_apart(run):
    chem = pytest.importorskip("rdkit.Chem")
    formula = pytest.importorskip("rdkit.Chem.rdMolDescriptors").CalcMolFormula
    printed, names = run("molecules.py")
    for pair in names["pairs"]:
        assert len({formula(chem.MolFromSmiles(smiles)) for smiles in pair}) == 1
    assert len(set(map(chem.CanonSmiles, names["smiles"]))) == len(names["smiles"])
    without, with_bonds = percentages("bond types", printed)
    assert without == 50  # isomers are one graph, and stay together
    assert with_bonds > 95


def test_documents_example_needs_relations_to_tell_who_does_what(run):
    pytest.importorskip("conllu")
    printed, _ = run("documents.py")
    [bag] = percentages("bag of words", printed)
    [paths] = percentages("dependency paths", printed)
    [relations] = percentages("paths with relations", printed)
    assert bag == 50
    assert 60 < paths < 90
    assert relations > 98
