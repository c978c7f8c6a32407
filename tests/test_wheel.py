"""What a wheel holds, and what a user's type checker makes of it."""

from __future__ import annotations

import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

from tests.docs.pages import ROOT

pytestmark = pytest.mark.slow

SCRIPT = """
import saen

model = saen.Classifier(budget="quick", random_state=0)
threads = saen.generate_threads(40)
reveal_type(model.fit(threads, threads.targets))
saen.generate_threads(n_graphs="many")
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", folder, ROOT]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if "No matching distribution found for hatchling" in done.stderr:
        pytest.skip("the build backend cannot be installed here")
    assert done.returncode == 0, done.stderr
    [file] = folder.glob("*.whl")
    return file


def test_a_wheel_holds_the_package_with_its_data_and_nothing_else(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    files = (file for file in (ROOT / "src").rglob("*") if file.is_file())
    own = {file.relative_to(ROOT / "src").as_posix() for file in files}
    own = {name for name in own if "__pycache__" not in name and ".egg-info" not in name}
    assert {name for name in names if ".dist-info/" not in name} == own
    assert {"saen/py.typed", "saen/learning/presets/best.toml"} <= names
    metadata = {Path(name).name for name in names - own}
    assert {"METADATA", "entry_points.txt", "LICENSE"} <= metadata


def test_a_script_that_uses_the_wheel_is_typed(wheel: Path, tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    venv.create(tmp_path / "env")
    [packages] = (tmp_path / "env").glob("[Ll]ib/**/site-packages")
    zipfile.ZipFile(wheel).extractall(packages)
    script = tmp_path / "script.py"
    script.write_text(SCRIPT, encoding="utf-8")
    binary = "Scripts/python.exe" if sys.platform == "win32" else "bin/python"
    command = [sys.executable, "-m", "mypy", "--python-executable", tmp_path / "env" / binary]
    done = subprocess.run([*command, script], capture_output=True, text=True, cwd=tmp_path)
    assert "saen.learning.estimators.Classifier" in done.stdout, done.stdout
    assert 'incompatible type "str"; expected "int"' in done.stdout, done.stdout
    assert "Found 1 error in 1 file" in done.stdout, done.stdout
