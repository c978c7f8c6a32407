"""Streams that are closed or lack characters, Ctrl-C at any moment."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import time
from itertools import product
from pathlib import Path

import pytest

from saen import PartCountsClassifier, SAENClassifier, generate_threads
from saen.cli import main
from tests.cli.commandline import fails, invoke

SAEN = [sys.executable, "-m", "saen"]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    threads = generate_threads(20, average_nodes=8, seed=1)
    one = PartCountsClassifier(C=1.0, inner_folds=0).fit(threads, threads.targets)
    path = tmp_path_factory.mktemp("model") / "m.saen"
    one.save(path)
    return path


def test_a_closed_standard_output_is_one_line() -> None:
    done = subprocess.run(
        "exec " + " ".join([*SAEN, "datasets", ">&-"]), shell=True, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (2, "saen: standard output is closed\n")


@pytest.mark.parametrize("command", [("datasets",), ("datasets", "--json"), ("--help",)])
def test_a_reader_that_leaves_ends_the_command_as_sigpipe_ends_others(
    command: tuple[str, ...],
) -> None:
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([*SAEN, *command], **pipes, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.returncode == 141


def test_predictions_reach_a_stream_that_lacks_their_characters(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tmp_path / os.fsdecode(b"bad\xff.jsonl")
    data.write_text('{"id": "\u00e9", "nodes": 2, "edges": [[0, 1]]}\n', encoding="utf-8")
    written, errors = io.BytesIO(), io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(written, "ascii", write_through=True))
    monkeypatch.setattr("sys.stderr", io.TextIOWrapper(errors, "ascii", write_through=True))
    monkeypatch.setattr("sys.argv", ["saen", "predict", str(model), str(data)])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert not stopped.value.code, errors.getvalue()
    assert written.getvalue().splitlines()[1].startswith(b"\\xe9,")
    data.write_text("[]\n")
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 2
    assert b"bad\\udcff.jsonl" in errors.getvalue()


def test_a_figure_of_a_file_whose_name_is_not_text_is_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    data = Path(os.fsdecode(b"bad\xff.jsonl"))
    data.write_text('{"nodes": 2, "edges": [[0, 1]]}\n')
    invoke("draw", data, "--out", "figure.svg")
    assert Path("figure.svg").is_file()


HOW = ("directly", "in a callback", "as an ImportError")
INTERRUPTED_IMPORT = """
import signal, sys, weakref
interrupted, how = sys.argv.pop(1), sys.argv.pop(1)
class Interrupting:
    def find_spec(self, name, *_):
        if name == interrupted:
            interrupt = lambda *_: signal.raise_signal(signal.SIGINT)
            if how == "in a callback":  # as of the locks of imports: Python ignores what it raises
                reference = weakref.ref(Interrupting(), interrupt)
                return
            try:
                interrupt()
            except KeyboardInterrupt:
                if how == "directly":
                    raise
                raise ImportError("initialization failed")
sys.meta_path.insert(0, Interrupting())
from saen.cli import main
main()
"""


@pytest.mark.parametrize(
    ("module", "how"),
    [
        *product(["saen.jobs.predict"], HOW),
        *(
            pytest.param(*each, marks=pytest.mark.slow)
            for each in [*product(["typer", "rich.console"], HOW[:2]), *product(["torch"], HOW)]
        ),
    ],
)
def test_ctrl_c_during_the_imports_is_one_line(
    module: str, how: str, model: Path, tmp_path: Path
) -> None:
    name = "predict"
    if module == "torch":  # which predictions do without, and so do explanations of part counts
        name, model = "explain", tmp_path / "networks.saen"
        threads = generate_threads(20, average_nodes=8, seed=1)
        SAENClassifier(epochs=0, inner_folds=0).fit(threads, threads.targets).save(model)
    command = [sys.executable, "-c", INTERRUPTED_IMPORT, module, how, name, str(model), "threads"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (130, "saen: interrupted\n")


LONG_COMPUTATION = """
import sys
import numpy as np
from scipy import sparse
import saen.jobs.inspect
from saen.cli import main

n = 25_000
hub = sparse.csr_array((np.ones(n, np.int8), (np.zeros(n, int), np.arange(n))), shape=(n, n))

def inspect_file(_):
    print("ready", flush=True)
    hub.T @ hub  # 600 million entries, in one call

saen.jobs.inspect.inspect_file = inspect_file
sys.argv = ["saen", "inspect", "x"]
main()
"""


@pytest.mark.slow
def test_ctrl_c_is_answered_in_the_middle_of_a_product() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", LONG_COMPUTATION],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    began = time.monotonic()
    _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (130, "saen: interrupted\n")
    assert time.monotonic() - began < 5


@pytest.mark.parametrize(
    ("name", "text", "command"),
    [
        ("a.toml", f"n_models = {'1' * 5000}\n", ("train", "threads", "-o", "m", "--preset")),
        ("a.jsonl", f'{{"edges": [[0, {"1" * 5000}]]}}\n', ("predict", "MODEL")),
        ("s.json", f'{{"repeats": {"1" * 5000}}}', ("evaluate", "threads", "--splits")),
        ("t.csv", f"smiles,target\nC,{'1' * 5000}\n", ("compress",)),
    ],
)
def test_integers_of_thousands_of_digits_are_one_short_line(
    name: str,
    text: str,
    command: tuple[str, ...],
    model: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(name).write_text(text)
    words = [str(model) if word == "MODEL" else word for word in command]
    assert len(fails(*words, name)) < 300
