"""Tasks on Ray: what holds for all executors, and what Ray leaves behind."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from tempfile import gettempdir

import pytest

from saen import Graphs
from saen._util.atomic import temporary_folder
from saen._util.executor import Executor
from saen.cluster.executors import SerialExecutor, open_executor
from saen.errors import FileError, InputError, WorkerError
from tests.cluster import tasks
from tests.cluster.faulty import Killing, Losing
from tests.cluster.jobs import run_jobs, write_input
from tests.cluster.rays import ray_cluster

pytestmark = [
    pytest.mark.slow,
    # Not imported here: the executor sets what Ray reads when it is imported.
    pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed (saen[ray])"),
]


@pytest.fixture(scope="module")
def executor() -> Iterator[Executor]:
    """On a cluster of two nodes with one CPU each, of which the second may be lost."""
    checks = {"initial_delay_ms": 0, "period_ms": 300, "failure_threshold": 3}
    with ray_cluster(1, **{f"health_check_{key}": n for key, n in checks.items()}) as cluster:
        cluster.add_node(num_cpus=1)
        with open_executor("ray") as opened:
            yield opened


def test_ray_returns_every_result_once_and_shares_arrays(executor: Executor) -> None:
    shared = executor.put(Graphs.from_edge_lists([[(0, 1)], [(0, 2)]]))
    for number in range(5):
        executor.submit(f"task {number}", tasks.double, number)
    executor.submit("shared", tasks.describe, shared, 2)
    results = dict(executor.completed())
    assert results.pop("shared") == (10, False)
    assert results == {f"task {n}": 2 * n for n in range(5)}


def test_ray_tasks_whose_worker_is_killed_run_again(executor: Executor, tmp_path: Path) -> None:
    for number in range(2):
        executor.submit(f"task {number}", tasks.die_once, tmp_path / str(number), number)
    assert dict(executor.completed()) == {f"task {n}": n for n in range(2)}


def test_errors_of_ray_tasks_arrive_as_they_are(executor: Executor, tmp_path: Path) -> None:
    executor.submit("shard 2", tasks.refuse, tmp_path / "count", 17)
    with pytest.raises(InputError, match=r"^shard 2: graph 17 has no nodes$"):
        list(executor.completed())
    assert (tmp_path / "count").read_text() == "x"
    executor.submit("shard 3", tasks.exhaust, 0)
    with pytest.raises(WorkerError, match="shard 3: not enough memory"):
        list(executor.completed())
    executor.submit("broken", tasks.fail, 0)
    with pytest.raises(ZeroDivisionError):
        list(executor.completed())


def test_results_that_arrive_after_an_error_do_no_harm(
    executor: Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ray aborts the process if a task is cancelled whose result arrives at that moment."""
    monkeypatch.setattr("ray.cancel", None)
    for number in range(20):
        executor.submit("wrong", tasks.refuse_file, Path("a"))
        for delay in range(6):
            executor.submit(f"task {delay}", time.sleep, 0.004 * delay)
        with pytest.raises(FileError):
            list(executor.completed())
        executor.submit("next", tasks.double, number)
        assert list(executor.completed()) == [("next", 2 * number)]


def test_a_ray_task_that_always_dies_is_given_up(executor: Executor) -> None:
    executor.submit("shard 9", tasks.die, 0)
    with pytest.raises(WorkerError, match="shard 9: its worker died 4 times"):
        list(executor.completed())


def test_a_connection_that_exists_is_used_and_left_open(executor: Executor) -> None:
    with open_executor("ray") as second:
        second.submit("task", tasks.double, 4)
        assert list(second.completed()) == [("task", 8)]
    executor.submit("still open", tasks.double, 5)
    assert list(executor.completed()) == [("still open", 10)]


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, bytes]]:
    """The input of the jobs, and what they give without a cluster."""
    folder = tmp_path_factory.mktemp("jobs")
    write_input(folder)
    return folder, run_jobs(folder, SerialExecutor(), folder / "out")


def test_jobs_on_ray_whose_workers_are_killed_give_the_same_files(
    executor: Executor, done: tuple[Path, dict[str, bytes]], tmp_path: Path
) -> None:
    (tmp_path / "markers").mkdir()
    killing = Killing(executor, tmp_path / "markers", tasks.die_after)
    assert run_jobs(done[0], killing, tmp_path / "out") == done[1]
    assert len(list((tmp_path / "markers").iterdir())) == len(killing.stages) == 6


def test_jobs_on_ray_that_lose_a_node_give_the_same_files(
    executor: Executor, done: tuple[Path, dict[str, bytes]], tmp_path: Path
) -> None:
    import ray

    (tmp_path / "driver").write_text(ray.get_runtime_context().get_node_id())
    losing = Losing(executor, tmp_path, tasks.lose_node)
    assert run_jobs(done[0], losing, tmp_path / "out") == done[1]
    assert (tmp_path / "lost").exists()
    assert sum(node["Alive"] for node in ray.nodes()) == 1


def test_ray_is_silent_on_loopback_only_and_nothing_stays_whether_it_ends_or_is_killed(
    tmp_path: Path,
) -> None:
    before = {*Path(gettempdir()).glob(".saen.*")}
    killed, ended, started = (tmp_path / name for name in ("killed", "ended", "started"))
    for folder in (killed, ended, started):
        folder.mkdir()
    with _driver(  # both at once: starting Ray takes a while
        killed,
        "import sys; from pathlib import Path\n"
        "from saen.cluster.executors import open_executor\n"
        "from tests.cluster import tasks\n"
        "with open_executor('ray:1') as executor:\n"
        "    executor.submit('long', tasks.announce, Path(sys.argv[1]), 600)\n"
        "    list(executor.completed())\n",
        str(started),
    ) as driver:
        try:
            with _driver(
                ended,
                "import subprocess; from pathlib import Path\n"
                "from saen.cluster.executors import open_executor\n"
                "from tests.cluster.tasks import processes\n"
                "with open_executor('ray:1') as executor:\n"
                "    executor.submit('task', max, 3, 4)\n"
                "    print(list(executor.completed()))\n"
                "    status = Path('/proc/self/status').read_text()\n"
                "    print(int(status.split('SigCgt:')[1].split()[0], 16) >> 4 & 1)\n"
                "    own = [f'pid={pid},' for pid in processes(Path.home())]\n"
                "    shown = subprocess.run(['ss', '-ltnpH'], capture_output=True, text=True)\n"
                "    for line in shown.stdout.splitlines():\n"
                "        if any(pid in line for pid in own):\n"
                "            print(line)\n",
            ) as other:
                shown, warned = other.communicate()
            assert other.returncode == 0
            assert warned == ""
            first, trapped, *sockets = shown.splitlines()
            assert first == "[('task', 4)]"
            assert trapped == "0"  # Ray's handlers, which abort on SIGTERM, include SIGTRAP
            rays = [line for line in sockets if "ray" in line or "gcs_server" in line]
            assert rays
            assert all("127.0.0.1" in line.split()[3] for line in rays)
            assert not (ended / ".ray").exists()
            _until_gone(ended, 5)
            while not any(started.iterdir()):
                assert driver.poll() is None
                time.sleep(0.1)
            commands = " ".join(tasks.processes(killed).values())
            new = {*Path(gettempdir()).glob(".saen.*")} - before
            [left] = [folder for folder in new if str(folder) in commands]
            assert new == {left}
        finally:
            driver.kill()
    # Ray's two agents notice at once, but try for a minute to tell the cluster that is gone.
    _until_gone(killed, 15, but="Agent")
    assert left.exists()
    temporary_folder().rmdir()  # of the next command
    assert not left.exists()


def _driver(home: Path, code: str, *arguments: str) -> subprocess.Popen[str]:
    """A process of its own with this home folder, and nothing of this one's settings of Ray."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("RAY_")}
    path = os.pathsep.join([*filter(None, sys.path), str(Path.cwd())])
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        env=environment | {"HOME": str(home), "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _until_gone(home: Path, seconds: float, but: str = "nothing") -> None:
    """Wait for the end of all processes with this home folder but those named so."""

    def left() -> list[str]:
        return [command for command in tasks.processes(home).values() if but not in command]

    deadline = time.monotonic() + seconds
    while left() and time.monotonic() < deadline:
        time.sleep(0.2)
    assert left() == []
