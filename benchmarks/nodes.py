"""A Ray cluster of three nodes on one machine: `python -m benchmarks.nodes`.

Every node is a network namespace with an address and one CPU; the link of the third is slow. Needs
Linux and the rights to make namespaces; nothing of it is seen outside of the one it starts with.
Files are read and written directly, as on a shared disk: the bytes that are counted are Ray's.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from time import perf_counter, sleep
from typing import Any

from benchmarks.machine import describe
from benchmarks.measure import ROOT, say
from benchmarks.report import quantity, table

NODES = 39  # per graph
PORT = 6379
SLOW = "100mbit"
"""Of the link of the third node, both ways."""
RANGES = 4
AHEAD = 10**9
RAY = (sys.executable, "-m", "ray.scripts.scripts")
SAEN = (sys.executable, "-m", "saen")


@dataclass
class Nodes:
    """The nodes that run, by number, with the largest memory of each, and CPU by process."""

    folder: Path
    running: dict[int, subprocess.Popen[bytes]] = field(default_factory=dict)
    memory: dict[int, int] = field(default_factory=dict)
    cpu: dict[tuple[int, int], float] = field(default_factory=dict)

    def command(self, number: int, *command: str, **options: Any) -> subprocess.Popen[bytes]:
        """A process on a node."""
        environment = os.environ | {
            "HOME": str(self.folder),
            "RAY_ADDRESS": f"{address(1)}:{PORT}",
            "PYTHONPATH": str(ROOT / "src"),
        }
        core = str((number - 1) % (os.cpu_count() or 1))
        inside = ("ip", "netns", "exec", f"node{number}", "taskset", "-c", core)
        return subprocess.Popen([*inside, *command], env=environment, **options)

    def start(self, number: int) -> None:
        """Start Ray on a node, and wait until it is in the cluster."""
        head = ("--head", "--port", str(PORT), "--include-dashboard=false")
        place = head if number == 1 else ("--address", f"{address(1)}:{PORT}")
        temporary = ("--temp-dir", str(self.folder / "ray")) if number == 1 else ()
        own = ("--node-ip-address", address(number), "--num-cpus", "1")
        store = ("--object-store-memory", "300000000", "--block")
        log = (self.folder / f"node{number}.log").open("ab")
        with log:
            self.running[number] = self.command(
                number, *RAY, "start", *place, *own, *temporary, *store, stdout=log, stderr=log
            )
        code = "import ray; ray.init(log_to_driver=False); print(ray.nodes())"
        for _ in range(30):
            asked = self.command(1, sys.executable, "-c", code, stdout=-1, stderr=-3)
            if f"'{address(number)}'" in alive(asked.communicate()[0].decode()):
                return
            sleep(1)
        raise SystemExit(f"node {number} did not start: see {log.name}")

    def kill(self, number: int) -> None:
        """End everything on a node, as if its plug were pulled."""
        for process in pids(number):
            os.kill(process, signal.SIGKILL)
        self.running.pop(number).wait()

    def watch(self) -> None:
        """Note the memory and the seconds of all processes of every node, again and again."""
        while True:
            for number in list(self.running):
                processes = pids(number)
                used = sum(anonymous(process) for process in processes)
                self.memory[number] = max(self.memory.get(number, 0), used)
                for key in [(number, process) for process in processes]:
                    self.cpu[key] = max(self.cpu.get(key, 0.0), seconds(key[1]))
            sleep(0.3)

    def used(self) -> dict[int, float]:
        """Seconds of CPU of every node so far."""
        total = dict.fromkeys(self.running, 0.0)
        for (number, _), each in dict(self.cpu).items():
            total[number] = total.get(number, 0) + each
        return total


def alive(shown: str) -> str:
    """Of what Ray says of its nodes, what it says of living ones."""
    return " ".join(part for part in shown.split("{'NodeID'") if "'Alive': True" in part)


def address(number: int) -> str:
    return f"10.77.0.{number}"


def pids(number: int) -> list[int]:
    shown = subprocess.run(["ip", "netns", "pids", f"node{number}"], stdout=-1, check=False)
    return [int(pid) for pid in shown.stdout.split()]


def anonymous(process: int) -> int:
    """Bytes of memory that a process has for itself, and of Ray's shared objects."""
    try:
        status = Path(f"/proc/{process}/status").read_text(encoding="ascii")
    except OSError:
        return 0
    fields = dict(line.split(":", 1) for line in status.splitlines())
    return 1024 * int(fields.get("RssAnon", "0 kB").split()[0])


def seconds(process: int) -> float:
    """CPU seconds of a process so far."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2]
    except OSError:
        return 0.0
    user, system = fields.split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def moved(number: int) -> int:
    """Bytes that a node has sent and received."""
    place = "/sys/class/net/eth0/statistics"
    inside = ["ip", "netns", "exec", f"node{number}", "cat", f"{place}/rx_bytes"]
    shown = subprocess.run([*inside, f"{place}/tx_bytes"], stdout=-1, check=True).stdout
    return sum(map(int, shown.split()))


@contextmanager
def network(folder: Path) -> Iterator[Nodes]:
    """Three namespaces on one bridge, and Ray on the first."""

    def ip(words: str) -> None:
        subprocess.run(words.split(), check=True)

    ip("mount -t tmpfs none /run")
    ip("ip link set lo up")
    ip("ip link add switch type bridge")
    ip("ip link set switch up")
    for number in (1, 2, 3):
        name, link = f"node{number}", f"link{number}"
        ip(f"ip netns add {name}")
        ip(f"ip link add {link} type veth peer name eth0 netns {name}")
        ip(f"ip link set {link} master switch up")
        ip(f"ip -n {name} addr add {address(number)}/24 dev eth0")
        ip(f"ip -n {name} link set eth0 up")
        ip(f"ip -n {name} link set lo up")
    limit = f"root tbf rate {SLOW} burst 64kb latency 50ms"
    ip(f"tc qdisc add dev link3 {limit}")
    ip(f"ip netns exec node3 tc qdisc add dev eth0 {limit}")
    os.environ |= {
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN": secrets.token_hex(32),
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_worker_niceness": "0",  # else anything else that runs goes first
        "RAY_health_check_period_ms": "1000",
        "RAY_health_check_timeout_ms": "2000",
        "OMP_NUM_THREADS": "1",
    }
    nodes = Nodes(folder)
    try:
        nodes.start(1)
        threading.Thread(target=nodes.watch, daemon=True).start()
        yield nodes
    finally:
        for number in list(nodes.running):
            nodes.kill(number)


def stage(nodes: Nodes, name: str, *arguments: object, kill: bool = False) -> dict[str, Any]:
    """One command on the first node; in the middle of it, the second node may be killed."""
    before, used = {number: moved(number) for number in nodes.running}, nodes.used()
    nodes.memory.clear()
    started = sorted(nodes.running)
    start = perf_counter()
    command = nodes.command(1, *SAEN, *map(str, arguments), stdout=-3, stderr=-1)
    if kill:
        out = Path(str(arguments[-1]))
        beside = f".{out.name}.run" if name == "train" else f"{out.name}.parts"
        parts = out if "--partitions" in arguments else out.with_name(beside)
        pattern = {"merge": "level-1-*", "train": "*"}.get(name, "*.saen")
        while command.poll() is None and len([*parts.glob(pattern)]) < 1 + 3 * ("comp" in name):
            sleep(0.02)
        busy = command.poll() is None
        nodes.kill(2)
    _, errors = command.communicate()
    row = {
        "stage": name,
        "nodes": started,
        "killed": 2 if kill else None,
        "seconds": perf_counter() - start,
        "cpu": {number: each - used.get(number, 0) for number, each in nodes.used().items()},
        "code": command.returncode,
        "said": errors.decode().strip(),
        "moved": {n: moved(n) - before.get(n, 0) for n in nodes.running},
        "memory": dict(nodes.memory),
    }
    if command.returncode or (kill and not busy):
        raise SystemExit(f"{name} failed, or was over too soon: {row}")
    say(f"  {name}: {row['seconds']:.1f} s")
    return row


def content(path: Path) -> dict[str, bytes]:
    """Files to compare, by name."""
    files = sorted(path.glob("*.saen")) if path.is_dir() else [path]
    return {file.name if path.is_dir() else "file": file.read_bytes() for file in files}


def join(shards: Path, ranges: Path, out: Path) -> None:
    """Write the ranges as one file to train on."""
    from saen.cluster.compress import resolve_over_shards
    from saen.cluster.executors import SerialExecutor
    from saen.cluster.partitions import read_partitions
    from saen.decompositions.registry import decomposition_to_json
    from saen.io.store.container import StoredExamples, save_examples
    from saen.io.store.shards import read_shards
    from saen.jobs.compress import dataset_decomposition

    found, partitions = read_shards(shards), read_partitions(ranges)
    ego = resolve_over_shards(dataset_decomposition(str(shards)), found, SerialExecutor())
    fitted = decomposition_to_json(replace(ego, vocabulary=partitions.vocabulary))
    columns = found.targets(), found.target_names()
    save_examples(StoredExamples(partitions.join(), fitted, *columns), out)


def write(graphs: int, n_shards: int, folder: Path) -> None:
    """The shards, each with a seed of its own."""
    from saen import generate_threads
    from saen.io.store.shards import write_shards

    size = graphs // n_shards
    parts = (generate_threads(size, average_nodes=NODES, seed=seed) for seed in range(n_shards))
    write_shards(parts, folder / "shards")


def speed(folder: Path) -> Iterator[dict[str, Any]]:
    """Compress on one node, then on two."""
    ranged = ("compress", folder / "shards", "--cluster", "ray", "--partitions", RANGES, "--out")
    with network(folder) as nodes:
        yield stage(nodes, "compress", *ranged, folder / "one")
        nodes.start(2)
        yield stage(nodes, "compress", *ranged, folder / "two")
    if content(folder / "one") != content(folder / "two"):
        raise SystemExit("one node and two give different files")


def faults(folder: Path) -> Iterator[dict[str, Any]]:
    """All stages on three nodes, of which one is killed in each."""
    shards, same = folder / "shards", list[bool]()
    cluster = ("--cluster", "ray")
    ranged = ("compress", shards, *cluster, "--partitions", RANGES, "--out")
    reference = content(folder / "one")
    with network(folder) as nodes:
        nodes.start(2)
        nodes.start(3)
        for name in ("compress", "merge"):
            yield stage(nodes, name, *ranged, folder / f"killed-{name}", kill=True)
            same.append(content(folder / f"killed-{name}") == reference)
            nodes.start(2)
        join(shards, folder / "one", folder / "all.saen")
        model = folder / "model.saen"
        fit = ("train", folder / "all.saen", "--preset", "network", "--epochs", 1, "--out", model)
        yield stage(nodes, "train", *fit, kill=True)
        nodes.start(2)
        predict = ("predict", model, shards, *cluster, "--out")
        yield stage(nodes, "predict", *predict, folder / "three.csv")
        yield stage(nodes, "predict", *predict, folder / "killed.csv", kill=True)
        same.append(content(folder / "three.csv") == content(folder / "killed.csv"))
    if not all(same):
        raise SystemExit(f"results differ: {same}")


def markdown(document: Mapping[str, Any]) -> str:
    """The page."""

    def numbers(row: Mapping[str, Any], key: str, unit: str = "bytes") -> str:
        return ", ".join(quantity(value, unit) for _, value in sorted(row[key].items()))

    rows = document["rows"]
    cells = [
        (
            row["stage"] + (", a node killed" if row["killed"] else ""),
            str(len(row["nodes"])),
            f"{row['seconds']:.1f} s",
            numbers(row, "cpu", "s"),
            numbers(row, "moved"),
            numbers(row, "memory"),
        )
        for row in rows
    ]
    one, two = rows[0]["seconds"], rows[1]["seconds"]
    work, (share, *_) = sum(rows[0]["cpu"].values()), sorted(rows[1]["cpu"].values(), reverse=True)
    times = AHEAD / document["graphs"]
    load, cores = document["load_average"], document["machine"]["cores"]
    busy = f"The load average of the machine was {load:.1f}" + (
        ": wall times are too long, and their ratio says little." if load > cores else "."
    )
    size = {key: quantity(value, "bytes") for key, value in document["bytes"].items()}
    ahead = {key: quantity(value * times, "bytes") for key, value in document["bytes"].items()}
    headings = (
        "stage",
        "nodes",
        "wall",
        "CPU by node",
        "sent and received by node",
        "peak memory by node",
    )
    return "\n".join(
        [
            "# A cluster of three nodes\n",
            f"{document['graphs']:,} generated threads of {NODES} nodes on average in "
            f"{document['shards']} shards, on Ray: three nodes with one core and an address each, "
            f"in network namespaces of one machine with {document['machine']['cores']} cores; the "
            f"link of the third is limited to {SLOW.removesuffix('mbit')} Mbit/s. Three nodes "
            "share two cores: their times show that it works, not how fast it is.\n",
            table(headings, cells, words=2),
            "Files are on a disk that all nodes see, and not counted there: what is sent is Ray's. "
            f"Through the disk go the shards ({size['shards']}), what is split of them for the "
            f"ranges ({size['split']}) and the ranges ({size['ranges']}). Memory is what the "
            "processes of a node have for themselves, Ray's own included. `compress` and `merge` "
            f"are `saen compress --partitions {RANGES}`, which lost its second node while shards "
            "were compressed, or merged; all files are the same byte for byte as those of one "
            "node. Training runs in the command alone, and loses nothing with a node.\n",
            f"{busy} From one node to two, compressing was {one / two:.2f} times as fast; the "
            f"busier node had {100 * share / work:.0f} % of the CPU time of one alone, which makes "
            f"it {work / share:.2f} times as fast where cores are idle. The first node "
            "also runs the command and Ray's head, some seconds of each time.\n",
            f"In proportion, a billion such graphs are {work * times / 3600:,.0f} core hours, "
            f"{ahead['shards']} of shards, {ahead['split']} of splits and at most "
            f"{ahead['ranges']} of ranges (unique objects grow more slowly than graphs, see "
            "[Benchmarks](benchmarks.md#growth)).\n",
            f"Measured on {document['date']} by `python -m benchmarks.nodes`.\n",
        ]
    )


def main() -> None:
    """Measure in a namespace of its own and write the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.nodes", description=__doc__)
    parser.add_argument("--graphs", type=int, default=1_000_000)
    parser.add_argument("--shards", type=int, default=96)
    parser.add_argument("--folder", type=Path, required=True, help="for shards and results")
    parser.add_argument("part", choices=("write", "speed", "faults"), help="one after the other")
    parser.add_argument("--out", type=Path, default=ROOT / "docs/results")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if not options.inside:
        again = [sys.executable, "-m", "benchmarks.nodes", *sys.argv[1:], "--inside"]
        raise SystemExit(subprocess.run(["unshare", "-m", "-n", *again], cwd=ROOT).returncode)
    if options.part == "write":
        write(options.graphs, options.shards, options.folder)
        return
    earlier, rows = _earlier(options.out / "nodes.json"), list[dict[str, Any]]()
    for row in (speed if options.part == "speed" else faults)(options.folder):
        rows.append(row)
        both = [*rows, *earlier[len(rows) :]] if options.part == "speed" else earlier[:2] + rows
        if len(both) > 1:
            record(both, options.folder, options.out)


def _earlier(file: Path) -> list[dict[str, Any]]:
    return json.loads(file.read_text(encoding="utf-8"))["rows"] if file.exists() else []


def record(rows: list[dict[str, Any]], folder: Path, out: Path) -> None:
    """Write what was measured so far, and the page."""
    from saen.cluster.partitions import read_partitions
    from saen.io.store.shards import read_shards

    shards, ranges = read_shards(folder / "shards"), read_partitions(folder / "one")
    document = {
        "date": date.today().isoformat(),
        "machine": describe(),
        "load_average": os.getloadavg()[1],
        "graphs": shards.n_graphs,
        "shards": len(shards),
        "bytes": {
            "shards": sum(shard.bytes for shard in shards.shards),
            "split": ranges.moved,
            "ranges": sum(file.stat().st_size for file in ranges.files),
        },
        "rows": rows,
    }
    text = json.dumps(document, indent=1)
    (out / "nodes.json").write_text(f"{text}\n", encoding="utf-8")
    (out / "nodes.md").write_text(markdown(document), encoding="utf-8")


if __name__ == "__main__":
    main()
