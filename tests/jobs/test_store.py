"""Run directories: one process at a time, and no lock outlives its process."""

from __future__ import annotations

import errno
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from filelock import FileLock

from saen.errors import FileError
from saen.jobs.evaluate import Protocol, evaluate_dataset
from saen.jobs.job import Job
from saen.jobs.store import open_run

HOLD = """
import sys
from saen.jobs.store import open_run
with open_run(sys.argv[1], {"seed": 1}):
    print("holding", flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_run_directory_is_for_one_process_until_that_dies(tmp_path: Path, ending: int) -> None:
    folder = tmp_path / "run"
    other = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    with other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"holding\n"
        with (
            pytest.raises(FileError, match="another process is working"),
            open_run(folder, {"seed": 1}),
        ):
            pass
        other.send_signal(ending)
        other.wait(timeout=60)
    assert (folder / ".lock").exists() or ending != signal.SIGKILL
    with open_run(folder, {"seed": 1}) as path:
        assert path == folder


def test_a_lock_file_without_a_process_is_no_lock(tmp_path: Path) -> None:
    (tmp_path / ".lock").write_text("of another host, another day")
    with open_run(tmp_path, {"seed": 1}):
        pass


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (NotImplementedError(), "without locks"),  # what some versions of filelock raise
        (OSError(errno.ENOLCK, "No locks available"), "No locks available"),
    ],
)
def test_a_file_system_without_locks_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, message: str
) -> None:
    def acquire(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(FileLock, "acquire", acquire)
    with pytest.raises(FileError, match=message), open_run(tmp_path, {}):
        pass


@pytest.mark.parametrize("preset", ["counts", "network"])
def test_a_damaged_file_of_a_run_comes_with_what_to_remove(tmp_path: Path, preset: str) -> None:
    overrides = {"epochs": 1, "inner_folds": 0} if preset == "network" else {}
    job, protocol = Job("threads", preset, overrides), Protocol(repeats=1, folds=2)
    whole = evaluate_dataset(job, protocol, tmp_path)
    damaged = sorted(tmp_path.glob("*.saen"))[0]
    content = damaged.read_bytes()
    for changed in (content[:-1] + bytes([content[-1] ^ 1]), content[: len(content) // 2], b""):
        damaged.write_bytes(changed)
        with pytest.raises(FileError, match=r"remove this file and run the same command") as raised:
            evaluate_dataset(job, protocol, tmp_path)
        assert raised.value.path == damaged
    damaged.unlink()
    again = evaluate_dataset(job, protocol, tmp_path)
    assert (again.evaluation.outputs == whole.evaluation.outputs).all()
    settings = tmp_path / "settings.json"
    settings.write_text(settings.read_text().replace("threads", "other"))
    with pytest.raises(FileError, match=r"or remove .* if a run of saen left it"):
        evaluate_dataset(job, protocol, tmp_path)


def test_a_full_disk_is_no_reason_to_remove_a_file(tmp_path: Path) -> None:
    full = FileError("cannot be written (No space left)", path=tmp_path / "run" / "settings.json")
    with pytest.raises(FileError, match=r"No space left\)$"), open_run(tmp_path / "run", {}):
        raise full
