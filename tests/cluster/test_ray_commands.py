"""Commands on Ray clusters that lack something: workers, folders, versions, or the cluster."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from tempfile import gettempdir
from typing import Any

import pytest

from saen import SAENClassifier, generate_threads
from saen.io.store.shards import split_graphs, write_shards
from tests.cluster import tasks
from tests.cluster.rays import ray_cluster

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed (saen[ray])"),
]
GRAPHS = generate_threads(40, average_nodes=8, seed=1)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with shards, a model, and a home."""
    folder = tmp_path_factory.mktemp("place")
    write_shards(split_graphs(GRAPHS, 4), folder / "shards")
    large = (generate_threads(1_000, average_nodes=300, seed=seed) for seed in range(8))
    write_shards(large, folder / "long")
    SAENClassifier(epochs=1).fit(GRAPHS, GRAPHS.targets).save(folder / "model.saen")
    (folder / "home").mkdir()
    return folder


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """A cluster whose head has no CPUs."""
    with ray_cluster(0) as made:
        yield made


def start(place: Path, *arguments: object, **environment: str) -> subprocess.Popen[str]:
    path = os.pathsep.join([*filter(None, sys.path), str(Path.cwd())])
    return subprocess.Popen(
        [sys.executable, "-m", "saen", *map(str, arguments)],
        cwd=place,
        env=os.environ | {"PYTHONPATH": path, "HOME": str(place / "home")} | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process: subprocess.Popen[str], code: int = 0) -> tuple[str, list[str]]:
    """The output of a command, and its messages without those that say how far it is.

    A slow machine has some of these, a fast one none.
    """
    out, err = process.communicate(timeout=200)
    assert process.returncode == code, err
    lines = err.splitlines()
    return out, [line for line in lines if not re.fullmatch(r"saen: .+ [\d,]+ s so far", line)]


def says(process: subprocess.Popen[str], words: str) -> bool:
    """Wait until a command says so, or ends without."""
    assert process.stderr is not None
    return any(words in line for line in process.stderr)


def test_without_cpus_it_says_so_gives_up_and_works_with_a_late_worker(
    cluster: Any, place: Path
) -> None:
    start_time = time.monotonic()
    command = ("compress", "shards", "--cluster", "ray")
    _, (first, last) = finish(start(place, *command, "--cluster-timeout", "5"), 2)
    assert "waiting for workers: 0 CPUs in the cluster" in first
    assert last.startswith("saen: still 0 CPUs in the cluster after 5 seconds: start workers")
    assert time.monotonic() - start_time < 100  # and not 300, without the option
    late = start(place, *command, "--out", "late.saen")
    assert says(late, "waiting for workers")
    node = cluster.add_node(num_cpus=1)
    try:
        finish(late)  # relative paths, and the worker's folder is another
        assert (place / "late.saen").exists()
        direct = finish(start(place, "predict", "model.saen", "shards", "--cluster", "serial"))
        assert finish(start(place, "predict", "model.saen", "shards", "--cluster", "ray")) == direct
        finish(start(place, "compress", "shards", "--cluster", "ray"))
    finally:
        cluster.remove_node(node)


def test_a_machine_with_other_versions_gets_no_tasks(
    cluster: Any, place: Path, tmp_path: Path
) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "from importlib import metadata\n"
        "known = metadata.version\n"
        "metadata.version = lambda name: '1.0' if name == 'scipy' else known(name)\n"
    )
    path = os.pathsep.join([str(tmp_path), *filter(None, sys.path)])
    other = cluster.add_node(num_cpus=1, env_vars={"PYTHONPATH": path})
    nodes = [other]
    try:
        command = ("compress", "shards", "--cluster", "ray")
        _, [line] = finish(start(place, *command), 2)
        assert "has scipy 1.0, but here is" in line
        assert line.endswith("install the same versions on all machines")
        nodes.append(cluster.add_node(num_cpus=1))
        _, lines = finish(start(place, *command))
        assert all("this machine gets no tasks" in line for line in lines)
    finally:
        for node in nodes:
            cluster.remove_node(node)


def test_a_machine_that_does_not_see_the_folder_is_named_with_the_path(
    cluster: Any, place: Path, tmp_path: Path
) -> None:
    address = os.environ["RAY_ADDRESS"]
    hidden = (
        f"mount -t tmpfs none {place} && exec {sys.executable} -m ray.scripts.scripts start "
        f"--address {address} --num-cpus 1 --block"
    )
    if subprocess.run(["unshare", "-m", "true"], check=False, capture_output=True).returncode:
        pytest.skip("this user may not make mount namespaces")
    with subprocess.Popen(
        ["unshare", "-m", "sh", "-c", hidden],
        env=os.environ | {"HOME": str(tmp_path)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as node:
        try:
            line = finish(start(place, "compress", "shards", "--cluster", "ray"), 2)[1][-1]
            assert f"has no {place}" in line
            assert "all machines must see it under this path" in line
        finally:
            node.terminate()
            for process in tasks.processes(tmp_path):
                os.kill(process, signal.SIGKILL)


def mapped(process: subprocess.Popen[str], library: str) -> bool:
    return library in Path(f"/proc/{process.pid}/maps").read_text()


MOMENTS: dict[str, tuple[str, Callable[[subprocess.Popen[str], Path, Path], bool]]] = {
    "it imports Ray": ("ray", lambda process, home, out: mapped(process, "_raylet")),
    "it waits": ("ray", lambda process, home, out: says(process, "waiting for workers")),
    "Ray starts": (
        "ray:1",
        lambda process, home, out: "gcs_server" in " ".join(tasks.processes(home).values()),
    ),
    "it works": (
        "ray:1",
        lambda process, home, out: any(out.parent.glob("out.saen.parts/shard-*")),
    ),
}


@pytest.mark.parametrize("moment", MOMENTS)
def test_sigterm_ends_a_command_on_ray_with_143_and_no_stack_trace(
    cluster: Any, place: Path, tmp_path: Path, moment: str
) -> None:
    spec, there = MOMENTS[moment]
    (tmp_path / "home").mkdir()
    environment = {"HOME": str(tmp_path / "home")}
    if spec == "ray:1":
        environment["RAY_ADDRESS"] = ""
    out = tmp_path / "out.saen"
    process = start(place, "compress", "long", "--cluster", spec, "--out", out, **environment)
    while not there(process, tmp_path / "home", out):
        assert process.poll() is None
        time.sleep(0.02)
    process.terminate()
    assert finish(process, 143)[1] == []
    assert not out.exists()
    assert not list(Path(gettempdir()).glob(f".saen.*-{process.pid}-*"))


def test_an_address_without_a_cluster_is_one_line_at_once(place: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    begun = time.monotonic()
    address = f"127.0.0.1:{port}"
    for spec, environment in [("ray", {"RAY_ADDRESS": address}), (f"ray://{address}", {})]:
        command = ("compress", "shards", "--cluster", spec)
        _, [line] = finish(start(place, *command, **environment), 2)
        assert line.startswith("saen: no Ray cluster at ")
        assert f"{address} (" in line
    assert time.monotonic() - begun < 20


def test_a_port_of_another_program_is_one_line_soon(place: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        address = f"127.0.0.1:{other.getsockname()[1]}"
        begun = time.monotonic()
        command = ("compress", "shards", "--cluster", "ray")
        _, [line] = finish(start(place, *command, RAY_ADDRESS=address), 2)
    assert line.startswith(f"saen: no Ray cluster at {address} (")
    assert time.monotonic() - begun < 45
