"""An operator serves a model: the FastAPI example, and a model that loads without any extra."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import saen
from tests.docs.pages import ROOT

EXTRAS = "matplotlib bokeh rdkit pyarrow conllu spacy torch_geometric fastapi ray"
"""What prediction does not need: everything beyond the dependencies."""

BLOCKED = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {extras!r}.split():
            raise ModuleNotFoundError(f"no module named {{name}}", name=name)

sys.meta_path.insert(0, Missing())
import saen

model = saen.load({model!r})
threads = saen.generate_threads(4, average_nodes=12, seed=5)
print(type(model).__name__, *model.predict(threads))
assert model.explain(threads, 0).gap < 1e-6
assert not set({extras!r}.split()) & set(sys.modules)
"""


@pytest.fixture(scope="module")
def threads() -> Any:
    return saen.generate_threads(30, average_nodes=12, seed=1)


@pytest.fixture(scope="module")
def model_file(threads: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path: Path = tmp_path_factory.mktemp("serving") / "threads.saen"
    model = saen.SAENClassifier(epochs=2, n_models=1, inner_folds=0)
    model.fit(threads, threads.targets).save(path)
    return path


def test_model_loads_and_predicts_without_any_extra(model_file: Path) -> None:
    code = BLOCKED.format(extras=EXTRAS, model=str(model_file))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    name, *predicted = done.stdout.split()
    assert name == "SAENClassifier"
    expected = saen.load(model_file).predict(saen.generate_threads(4, average_nodes=12, seed=5))
    assert predicted == expected.tolist()


def test_handler_predicts_graphs_and_names_mistakes(
    model_file: Path, threads: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    client_class = pytest.importorskip("fastapi.testclient").TestClient
    monkeypatch.setenv("SAEN_MODEL", str(model_file))
    client = client_class(runpy.run_path(str(ROOT / "examples" / "serve.py"))["app"])
    body = [
        {"id": f"t{n}", "nodes": int(graph.n_nodes), "edges": graph.edges().tolist()}
        for n, graph in enumerate(threads[i : i + 1] for i in range(3))
    ]
    answer = client.post("/predict", json=body)
    assert answer.status_code == 200, answer.text
    model = saen.load(model_file)
    assert [each["prediction"] for each in answer.json()] == model.predict(threads[:3]).tolist()
    assert [each["id"] for each in answer.json()] == ["t0", "t1", "t2"]
    assert sum(answer.json()[0]["probabilities"].values()) == pytest.approx(1)
    wrong = client.post("/predict", json=[{"nodes": 2, "edges": [[0, 5]]}])
    assert wrong.status_code == 422
    assert "an edge names 5" in wrong.json()["detail"]
    mixed = client.post("/predict", json=[body[0], {"nodes": ["C"], "edges": []}])
    assert "either all graphs have node labels" in mixed.json()["detail"]
    for huge in ({"nodes": 10**12, "edges": []}, {"nodes": -1, "edges": []}):
        assert client.post("/predict", json=[huge]).status_code == 422
    assert client.post("/predict", json=[{"nodes": 1, "edges": []}] * 1001).status_code == 422
