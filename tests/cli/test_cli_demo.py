"""What one sees first: `saen` alone, and `saen demo`."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from saen.cli.app import FIRST_STEPS, Commands
from tests.cli.commandline import fails, invoke


def test_saen_alone_shows_the_first_commands_with_an_example_each() -> None:
    shown = invoke().stdout
    assert shown.strip() == FIRST_STEPS.strip()
    commands = [shlex.split(line)[1] for line in shown.splitlines() if line.startswith("  saen ")]
    assert commands == ["validate", "train", "predict", "explain", "evaluate"]
    assert set(commands) < {name for panel in Commands.panels.values() for name in panel}
    assert max(map(len, shown.splitlines())) < 100


def test_demo_walks_through_them_and_leaves_files_to_look_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shown = invoke("demo").stdout
    steps = re.findall(r"^\$ saen (\w+)", shown, re.M)
    assert steps == ["validate", "train", "predict", "explain", "evaluate"]
    for words in ("no problems", "out of fold", "new-4,", "log-odds of", "ROC-AUC"):
        assert words in shown
    files = {path.name for path in Path("saen-demo").iterdir()}
    assert files == {"threads.jsonl", "new.jsonl", "model.saen"}
    assert "already exists" in fails("demo")
    assert "no problems" in invoke("demo", "--force").stdout
