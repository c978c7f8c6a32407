"""Executors: the same results from all, whatever dies."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from saen import Graphs
from saen._util.executor import Executor
from saen.cluster.executors import LocalExecutor, SerialExecutor, open_executor
from saen.errors import FileError, InputError, MissingExtraError, WorkerError
from tests.cluster import tasks
from tests.cluster.faulty import Killing
from tests.cluster.jobs import run_jobs, write_input


@pytest.fixture(scope="module", params=["serial", "local:2"])
def executor(request: pytest.FixtureRequest) -> Iterator[Executor]:
    with open_executor(request.param) as opened:
        yield opened


def test_executors_return_every_result_once(executor: Executor) -> None:
    for number in range(7):
        executor.submit(f"task {number}", tasks.double, number)
    assert dict(executor.completed()) == {f"task {n}": 2 * n for n in range(7)}
    assert list(executor.completed()) == []


def test_executors_share_values_whose_arrays_are_read_only(executor: Executor) -> None:
    graphs = Graphs.from_edge_lists([[(0, 1)], [(0, 2)]])
    shared, empty = executor.put(graphs), executor.put(graphs[:0])
    executor.submit("full", tasks.describe, shared, 2)
    executor.submit("empty", tasks.describe, empty, 2)
    assert dict(executor.completed()) == {"full": (10, False), "empty": (0, False)}


def test_an_input_error_arrives_as_it_is_with_the_name_of_the_task_and_is_not_retried(
    executor: Executor, tmp_path: Path
) -> None:
    counter = tmp_path / "count"
    executor.submit("shard part-00002.saen", tasks.refuse, counter, 17)
    with pytest.raises(InputError, match=r"^shard part-00002.saen: graph 17 has no nodes$"):
        list(executor.completed())
    assert counter.read_text() == "x"
    executor.submit("next", tasks.double, 4)  # the executor works on
    assert list(executor.completed()) == [("next", 8)]


def test_a_file_error_keeps_its_path_and_line(executor: Executor, tmp_path: Path) -> None:
    executor.submit("part-00001.saen", tasks.refuse_file, tmp_path / "part-00001.saen")
    with pytest.raises(FileError, match=r"^.*part-00001.saen, line 7: damaged$") as raised:
        list(executor.completed())
    assert (raised.value.path, raised.value.line) == (tmp_path / "part-00001.saen", 7)


def test_a_task_without_memory_says_which_shard_and_what_to_do(executor: Executor) -> None:
    executor.submit("shard 3", tasks.exhaust, 0)
    with pytest.raises(WorkerError, match="shard 3: not enough memory; use more and smaller"):
        list(executor.completed())


def test_a_bug_is_raised_as_it_is(executor: Executor) -> None:
    executor.submit("broken", tasks.fail, 0)
    with pytest.raises(ZeroDivisionError, match="a bug"):
        list(executor.completed())


def test_local_tasks_whose_worker_is_killed_run_again(tmp_path: Path) -> None:
    with open_executor("local:2") as executor:
        for number in range(2):
            executor.submit(f"task {number}", tasks.die_once, tmp_path / str(number), number)
        assert dict(executor.completed()) == {f"task {n}": n for n in range(2)}


@pytest.mark.slow
def test_jobs_in_processes_that_are_killed_give_the_same_files(tmp_path: Path) -> None:
    write_input(tmp_path)
    (tmp_path / "markers").mkdir()
    here = run_jobs(tmp_path, SerialExecutor(), tmp_path / "here")
    with open_executor("local:2") as inner:
        executor = Killing(inner, tmp_path / "markers", tasks.die_after)
        assert run_jobs(tmp_path, executor, tmp_path / "there") == here
        assert len(list((tmp_path / "markers").iterdir())) == len(executor.stages) == 6
        inner.submit("threads", tasks.threads, 0)
        assert list(inner.completed()) == [("threads", 1)]


def test_a_local_task_that_always_kills_its_worker_is_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("saen.cluster.executors.MAX_RETRIES", 1)
    with open_executor("local:1") as executor:
        executor.submit("shard 9", tasks.die, 0)
        with pytest.raises(WorkerError, match="shard 9: its worker died 2 times"):
            list(executor.completed())


def test_local_workers_end_and_clean_up_when_their_driver_is_killed(tmp_path: Path) -> None:
    driver = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import sys; from pathlib import Path\n"
            "from saen.cluster.executors import LocalExecutor\n"
            "from tests.cluster import tasks\n"
            "if __name__ == '__main__':\n"
            " executor = LocalExecutor(2)\n"
            " for n in range(2): executor.submit(str(n), tasks.announce, Path(sys.argv[1]), 60)\n"
            " list(executor.completed())",
            str(tmp_path),
        ],
        env=os.environ | {"PYTHONPATH": os.pathsep.join([p for p in sys.path if p] + ["."])},
    )
    _until(lambda: len(list(tmp_path.iterdir())) == 2)
    workers = [int(file.name) for file in tmp_path.iterdir()]
    driver.kill()
    driver.wait()
    _until(lambda: not any(_alive(worker) for worker in workers))


def test_closing_an_executor_ends_its_workers(tmp_path: Path) -> None:
    executor = LocalExecutor(1)
    executor.submit("long", tasks.announce, tmp_path, 60)
    _until(lambda: any(tmp_path.iterdir()))
    [worker] = [int(file.name) for file in tmp_path.iterdir()]
    executor.close()
    _until(lambda: not _alive(worker))


@pytest.mark.parametrize("spec", ["", "locl", "local:x", "spark", "ray://host"])
def test_other_specifications_are_refused(spec: str) -> None:
    with pytest.raises(InputError, match="a cluster is serial, local:N, ray"), open_executor(spec):
        pass


def test_no_worker_at_all_is_refused() -> None:
    with pytest.raises(InputError, match="at least one worker"), open_executor("local:0"):
        pass


def test_without_ray_the_message_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError, match=r"saen\[ray\]"), open_executor("ray"):
        pass


def _until(condition: object, seconds: float = 30) -> None:
    start = time.monotonic()
    while not condition():  # type: ignore[operator]
        assert time.monotonic() - start < seconds
        time.sleep(0.05)


def _alive(process: int) -> bool:
    try:
        status = Path(f"/proc/{process}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return status.rpartition(")")[2].split()[0] != "Z"
