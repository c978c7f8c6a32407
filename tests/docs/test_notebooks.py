"""The notebooks run, cell by cell in one namespace, and are kept without output."""

import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.docs.pages import ROOT

NOTEBOOKS = sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))
NEEDS = {"molecules": ["rdkit", "matplotlib"], "your-own-decomposition": ["matplotlib"]}


def cells(notebook: Path) -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    return [cell for cell in listed if cell["cell_type"] == "code"]


def test_notebooks_are_those_that_the_page_lists() -> None:
    listed = (ROOT / "docs" / "examples.md").read_text(encoding="utf-8")
    assert len(NOTEBOOKS) == 3
    for notebook in NOTEBOOKS:
        assert f"(../examples/notebooks/{notebook.name})" in listed


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_is_kept_without_output(notebook: Path) -> None:
    for cell in cells(notebook):
        assert cell["outputs"] == []
        assert cell["execution_count"] is None
        compile("".join(cell["source"]), notebook.name, "exec")


@pytest.mark.slow
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_runs(notebook: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in NEEDS.get(notebook.stem, []):
        pytest.importorskip(module)
    monkeypatch.chdir(tmp_path)
    # A module of its own, as __main__ is in Jupyter: saved models refer to classes by it.
    kernel = ModuleType("kernel_of_the_notebook")
    monkeypatch.setitem(sys.modules, kernel.__name__, kernel)
    for number, cell in enumerate(cells(notebook)):
        code = compile("".join(cell["source"]), f"{notebook.name}[{number}]", "exec")
        exec(code, kernel.__dict__)
    if notebook.stem == "molecules":
        assert kernel.evaluation.accuracies().mean() > 0.9
        assert kernel.ceiling == 0.5
        assert {"report.html", "why.html"} <= {path.name for path in tmp_path.iterdir()}
    elif notebook.stem == "your-own-decomposition":
        assert kernel.model.score(kernel.graphs[80:], kernel.targets[80:]) > 0.8
    else:
        assert kernel.scores.mean() > 0.7
        assert kernel.n == len(kernel.threads)
