"""Faults and kills at the system calls of the commands: see `campaign`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.faults.injection import compiler, start

pytestmark = pytest.mark.skipif(compiler() is None, reason="needs Linux and a C compiler")


def check(folder: Path, *arguments: str) -> None:
    done = start("tests.faults.campaign", [*arguments, "--out", str(folder)], folder)
    reports = [json.loads(file.read_text()) for file in sorted(folder.glob("*.json"))]
    assert [report["campaign"] for report in reports] == ["faults", "kills"]
    assert [report["found"] for report in reports] == [[], []]
    assert done.returncode == 0
    for report in reports:
        assert next(iter(report["counts"].values())) > 0


@pytest.mark.slow
def test_faults_of_writes_leave_an_error_message_and_nothing_else(tmp_path: Path) -> None:
    check(tmp_path, "--only", "convert, CSV", "--only", "convert, binary", "--every", "9")


@pytest.mark.slow
def test_faults_of_long_runs_are_resumed_from(tmp_path: Path) -> None:
    check(tmp_path, "--only", "train", "--only", "evaluate --out", "--every", "71")
