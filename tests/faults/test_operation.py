"""What operators do to a command: other users, limits, stops, races, other versions, huge input.

Each ends in a right result or in one clear line.
"""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import which
from typing import Any

import pytest

import saen
from saen._util.atomic import atomic_write
from saen.io.formats.tu import write_tu
from tests.cli.commandline import fails, invoke, run

SAEN = [sys.executable, "-m", "saen"]
AS_OTHERS = ("setpriv", "--bounding-set=-dac_override,-dac_read_search,-fowner")
"""Root whom the modes of files bind."""
COUNTS = ("--preset", "counts")

as_root = pytest.mark.skipif(
    not which("setpriv") or subprocess.run([*AS_OTHERS, "true"], check=False).returncode != 0,
    reason="nobody can give up privileges here",
)


def graph(number: int, **more: Any) -> dict[str, Any]:
    size = 2 + number % 4
    edges = [[node, node + 1] for node in range(size - 1)]
    return {"nodes": ["CNO"[number % 3]] * size, "edges": edges, **more}


def write(path: Path, lines: list[Any]) -> Path:
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    return path


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write(tmp_path / "data.jsonl", [graph(n, target=n % 2) for n in range(60)])


def command(
    *arguments: object, before: tuple[str, ...] = (), **how: Any
) -> subprocess.CompletedProcess[str]:
    words = [*before, *SAEN, *map(str, arguments)]
    return subprocess.run(words, capture_output=True, text=True, check=False, timeout=250, **how)


def one_line(done: subprocess.CompletedProcess[str]) -> str:
    """The message of a command that failed as it should."""
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr.strip().splitlines()[-1]


# -- huge input ------------------------------------------------------------------------------------


DEEP = 100_000
LONG = "x" * 10**6
SUFFIXES = {"id of a document": "conllu"}  # the others are JSON lines
HUGE: dict[str, tuple[str, str]] = {
    "extra key": ('{"nodes": 1, "edges": [], "x": ' + "[" * DEEP + "]" * DEEP + "}", "deeply"),
    "nodes": ('{"nodes": ' + "[" * DEEP + "]" * DEEP + ', "edges": []}', "deeply"),
    "target": ('{"nodes": 1, "edges": [], "target": ' + '{"a":' * DEEP, "deeply"),
    "parts": ('{"parts": ' + '{"a": [' * DEEP + "]}" * DEEP + "}", "deeply"),
    "id": (json.dumps({"id": LONG, "nodes": 1, "edges": []}), "an id of 1,000,000 char"),
    "id of a document": (
        f"# newdoc id = {LONG}\n1\ta\ta\tX\t_\t_\t0\troot\t_\t_\n",
        "an id of 1,000,000 char",
    ),
    "targets": (json.dumps(graph(0, target=[0.5] * 10**5)), "100,000 targets (at most 10,000)"),
}


@pytest.mark.parametrize("what", HUGE)
def test_huge_input_is_refused_in_a_line(what: str, tmp_path: Path) -> None:
    text, words = HUGE[what]
    suffix = SUFFIXES.get(what, "jsonl")
    if suffix == "conllu":
        pytest.importorskip("conllu")
    data = tmp_path / f"huge.{suffix}"
    data.write_text(text + "\n")
    message = fails("train", data, *COUNTS, "--out", tmp_path / "m.saen")
    assert words in message
    assert message.startswith(f"{data}, line 1: ")
    assert [*tmp_path.iterdir()] == [data]


def test_a_huge_decomposition_is_refused_in_a_short_line() -> None:
    message = fails("compress", "threads", "-d", "ego(radii=" + "(" * 30_000)
    assert message.startswith("a decomposition is written name or name(parameter=value, …), not")
    assert len(message) < 400


@pytest.mark.slow
def test_as_many_classes_as_examples_are_refused_with_a_forecast(tmp_path: Path) -> None:
    lines = [graph(n, target=f"class {n}") for n in range(10**5)]
    data = write(tmp_path / "classes.jsonl", lines)
    assert "100,000 classes and 100,000 examples" in fails(
        "train", data, *COUNTS, "--out", tmp_path / "m.saen"
    )


# -- users, folders, links -------------------------------------------------------------------------


def test_a_link_that_is_moved_while_a_file_is_written_changes_no_other_file(tmp_path: Path) -> None:
    mine, precious, link = tmp_path / "mine", tmp_path / "precious", tmp_path / "out"
    precious.write_text("precious")
    link.symlink_to(mine)
    with atomic_write(link) as temporary:
        temporary.write_text("new")
        link.unlink()
        link.symlink_to(precious)
    assert (mine.read_text(), precious.read_text()) == ("new", "precious")


def test_a_link_to_nowhere_is_refused_before_the_work(tmp_path: Path, data: Path) -> None:
    (tmp_path / "out").symlink_to(tmp_path / "no" / "m.saen")
    message = fails("train", data, *COUNTS, "--out", tmp_path / "out", "--force")
    assert message == f"{tmp_path / 'out'}: cannot be written (no such folder)"
    assert not (tmp_path / ".out.run").exists()


@pytest.mark.slow
@as_root
def test_a_home_and_folders_that_cannot_be_written_and_files_of_others(
    tmp_path: Path, data: Path
) -> None:
    """There is no cache then, which is a warning; an output that cannot be is a line."""
    write_tu(saen.load_dataset(data), tmp_path / "TOY")
    read_only, own = tmp_path / "read-only", tmp_path / "own"
    own.mkdir()
    read_only.mkdir(mode=0o555)
    environment = os.environ | {"HOME": str(read_only), "SAEN_CACHE": "", "TMPDIR": str(own)}
    how: dict[str, Any] = {"env": environment, "umask": 0o027, "before": AS_OTHERS}
    done = command("train", tmp_path / "TOY", *COUNTS, "--out", own / "m.saen", **how)
    assert done.returncode == 0, done.stderr
    assert "could not be cached" in done.stderr
    assert (own / "m.saen").stat().st_mode & 0o777 == 0o640
    assert {path.name for path in own.iterdir()} == {"m.saen"}
    for out in (read_only / "m.saen", read_only / "no" / "m.saen"):
        message = one_line(command("train", data, *COUNTS, "--out", out, **how))
        assert str(out.parent) in message
        assert "cannot be" in message
    (own / "m.saen").chmod(0o600)
    os.chown(own / "m.saen", 65534, 65534)
    message = one_line(command("predict", own / "m.saen", data, **how))
    assert "Permission denied" in message


# -- stops, clocks and races -----------------------------------------------------------------------


@contextmanager
def started(*arguments: object) -> Iterator[subprocess.Popen[str]]:
    words = [*SAEN, *map(str, arguments)]
    with subprocess.Popen(words, stdout=-1, stderr=-1, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def wait_for(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


SLOW_TRAINING = ("--preset", "network", "--epochs", "400", "--models", "2")


@pytest.mark.slow
def test_two_trainings_with_one_output_and_a_stopped_one(tmp_path: Path, data: Path) -> None:
    out, other = tmp_path / "m.saen", tmp_path / "other.saen"
    run_folder = tmp_path / ".m.saen.run"
    with started("train", data, *SLOW_TRAINING, "--out", out) as first:
        wait_for(lambda: run_folder.exists() and len([*run_folder.iterdir()]) > 1)
        message = one_line(command("train", data, *SLOW_TRAINING, "--out", out))
        assert "another process" in message
        first.send_signal(signal.SIGSTOP)
        time.sleep(float(os.environ.get("SAEN_STOPPED_SECONDS", 5)))  # 60 was tried
        first.send_signal(signal.SIGCONT)
        _, errors = first.communicate(timeout=200)
        assert first.returncode == 0, errors
    assert command("train", data, *SLOW_TRAINING, "--out", other).returncode == 0
    models = [saen.load(path) for path in (out, other)]
    graphs = saen.load_dataset(data)
    expected, found = (model.predict_proba(graphs) for model in models)
    assert (expected == found).all()


def test_nothing_is_measured_by_a_clock_that_may_jump() -> None:
    files = Path(saen.__file__).parent.rglob("*.py")
    assert not [file for file in files if re.search(r"\btime\.time\b", file.read_text("utf-8"))]


# -- other data, settings, versions and formats ----------------------------------------------------


def test_a_model_of_a_future_format_asks_for_a_newer_saen(
    tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from saen.io.store import container

    monkeypatch.setattr(container, "VERSION", container.VERSION + 1)
    invoke("train", data, *COUNTS, "--out", tmp_path / "m.saen")
    monkeypatch.undo()
    for words in (("predict", "m.saen", data), ("inspect", "m.saen"), ("serve", "m.saen")):
        message = fails(*(tmp_path / word if word == "m.saen" else word for word in words))
        assert "upgrade saen" in message


WITHOUT = """
import sys
for name in {blocked!r}:
    sys.modules[name] = None
from saen.cli import main
sys.argv[0] = "saen"
main()
"""


@pytest.mark.parametrize(
    ("extra", "blocked", "name", "text"),
    [
        ("chem", ["rdkit"], "m.smi", "CC a\n"),
        pytest.param(
            *("text", ["conllu", "conllu.parser"]),
            *("d.conllu", "1\ta\ta\tX\t_\t_\t0\troot\t_\t_\n"),
            marks=pytest.mark.slow,
        ),
        pytest.param("parquet", ["pyarrow"], "e.parquet", "PAR1", marks=pytest.mark.slow),
    ],
)
def test_models_used_without_the_extra_of_their_data_say_which_to_install(
    extra: str, blocked: list[str], name: str, text: str, tmp_path: Path, data: Path
) -> None:
    if extra == "text":
        pytest.importorskip("conllu")
        lines = [f"# target = {n % 2}\n1\tw{n % 2}\tw\tX\t_\t_\t0\troot\t_\t_\n" for n in range(24)]
        data = tmp_path / "t.conllu"
        data.write_text("\n".join(lines))
    invoke("train", data, *COUNTS, "--out", tmp_path / "m.saen")
    new = tmp_path / name
    new.write_text(text)
    code = WITHOUT.format(blocked=blocked)
    words = [sys.executable, "-c", code, "predict", str(tmp_path / "m.saen"), str(new)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert f'pip install "saen[{extra}]"' in one_line(done)


@pytest.mark.slow
@pytest.mark.parametrize("changed", ["data", "settings", "versions"])
def test_runs_that_are_resumed_after_a_change_are_refused_and_start_over_by_force(
    changed: str, tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from saen.jobs import train

    out, settings = tmp_path / "m.saen", ["--epochs", 30, "--preset", "network"]

    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(train, "_write_model", interrupted)
    invoke("train", data, *settings, "--out", out, code=130)
    monkeypatch.undo()
    if changed == "data":
        write(data, [graph(n, target=(n + 1) % 2) for n in range(60)])
    elif changed == "settings":
        settings[1] = 31
    else:
        now = train.versions()
        monkeypatch.setattr(train, "versions", lambda: now | {"numpy": "1.0"})
    message = fails("train", data, *settings, "--out", out)
    assert "--force" in message
    assert not out.exists()
    again = run("train", data, *settings, "--out", out, "--force")
    fresh = run("train", data, *settings, "--out", tmp_path / "fresh.saen")
    assert again["out_of_fold"] == fresh["out_of_fold"]


# -- memory ----------------------------------------------------------------------------------------


NO_MEMORY = [
    MemoryError(),
    MemoryError("Unable to allocate 477. MiB"),
    RuntimeError("can't start new thread"),
    ImportError("libx.so: failed to map segment from shared object"),
]


@pytest.mark.parametrize("error", NO_MEMORY, ids=str)
def test_a_lack_of_memory_is_one_line(
    error: Exception, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from saen.jobs import train

    def fail(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr(train, "train_model", fail)
    assert fails("train", data, "--out", "m.saen").startswith("not enough memory: ")


@pytest.mark.slow
def test_half_a_gigabyte_to_train_on_in_two_is_one_line(tmp_path: Path) -> None:
    data = tmp_path / "data.jsonl"
    block = "".join(f"{json.dumps(graph(n, target=n % 2))}\n" for n in range(10_000))
    with data.open("w") as file:
        while file.tell() < 500_000_000:
            file.write(block)

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (2_000_000_000, 2_000_000_000))

    done = command("train", data, *COUNTS, "--out", tmp_path / "m.saen", preexec_fn=limit)
    assert one_line(done).startswith("saen: not enough memory: ")
    assert [*tmp_path.iterdir()] == [data]
