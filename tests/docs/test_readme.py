"""The first Python example of the README is typed: strict users of mypy can copy it."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import ROOT


@pytest.mark.slow
def test_readme_first_example_passes_mypy_strict(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    example = re.findall(r"^```python\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)[0]
    assert "saen.Classifier" in example
    (tmp_path / "example.py").write_text(example + "reveal_type(model)\n", encoding="utf-8")
    # With the project's settings, so that what `make lint` knows is not analysed again.
    command = [sys.executable, "-m", "mypy", "--strict", str(tmp_path / "example.py")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "estimators.Classifier" in done.stdout
