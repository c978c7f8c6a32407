"""An operator uses a model where there is no extra: it loads, predicts and explains."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import saen

EXTRAS = "matplotlib bokeh rdkit pyarrow conllu spacy torch_geometric fastapi uvicorn ray"
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


@pytest.mark.slow
def test_model_loads_and_predicts_without_any_extra(model_file: Path) -> None:
    code = BLOCKED.format(extras=EXTRAS, model=str(model_file))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    name, *predicted = done.stdout.split()
    assert name == "SAENClassifier"
    expected = saen.load(model_file).predict(saen.generate_threads(4, average_nodes=12, seed=5))
    assert predicted == expected.tolist()
