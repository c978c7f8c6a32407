"""Disks that fill up: a write that fails midway leaves one line and nothing else."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

resource = pytest.importorskip("resource")

LIMIT = 4096  # bytes that a file may have


def run_with_small_files(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command line in a process whose files may not grow past the limit."""
    return subprocess.run(
        [sys.executable, "-m", "saen", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (LIMIT, LIMIT)),
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "out"),
    [
        (("convert", "threads", "own.saen"), "own.saen"),
        (("convert", "threads", "own.jsonl"), "own.jsonl"),
        (("compress", "threads", "--out", "small.saen"), "small.saen"),
        (("draw", "threads", "--out", "figure.svg"), "figure.svg"),
    ],
)
def test_a_write_that_fails_midway_says_so_and_leaves_nothing(tmp_path, arguments, out):
    done = run_with_small_files(tmp_path, *arguments)
    assert done.returncode == 2, done.stderr
    message = rf"saen: {re.escape(out)}: cannot be written \(.*File too large.*\)"
    assert re.fullmatch(message, done.stderr.strip()), done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_model_that_cannot_be_written_leaves_no_model(tmp_path):
    options = ("--epochs", "1", "--models", "1", "--no-holdout")
    done = run_with_small_files(tmp_path, "train", "threads", "--out", "model.saen", *options)
    assert done.returncode == 2, done.stderr
    last = done.stderr.strip().splitlines()[-1]
    assert re.fullmatch(r"saen: .*: cannot be written \(.*File too large.*\)", last), last
    assert not (tmp_path / "model.saen").exists()
