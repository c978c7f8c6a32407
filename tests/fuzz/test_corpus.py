"""The corpus of the fuzzer: good files, and inputs that were once a problem."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fuzz.kinds import KINDS, survive

REPORT = Path(__file__).parents[2] / "docs" / "results" / "reliability" / "fuzz.json"
CORPUS = sorted(file for file in (Path(__file__).parent / "corpus").glob("*/*"))


@pytest.mark.parametrize("file", CORPUS, ids=lambda file: f"{file.parent.name}/{file.name}")
def test_readers_survive_the_corpus(tmp_path: Path, file: Path) -> None:
    accepted = survive(KINDS[file.parent.name], tmp_path / "input", file.read_bytes())
    assert accepted or not file.name.startswith("good")


def test_corpus_has_good_files_of_every_kind() -> None:
    assert {file.parent.name for file in CORPUS if file.name.startswith("good")} == set(KINDS)


def test_problems_reported_as_mended_are_in_the_corpus() -> None:
    report = json.loads(REPORT.read_text(encoding="utf-8"))
    mended = report.get("mended", {})
    assert mended.keys() <= set(report["found"])
    assert set(mended.values()) <= {f"{file.parent.name}/{file.name}" for file in CORPUS}


@pytest.mark.slow
def test_readers_survive_half_a_minute_of_fuzzing(tmp_path: Path) -> None:
    pytest.importorskip("atheris", reason="needs atheris, which has no wheel for this platform")
    command = [sys.executable, "-m", "tests.fuzz", "--seconds", "30", "--folder", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[2])
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
