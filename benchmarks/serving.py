"""A server under load: latency, throughput, and its memory after many requests."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.measure import MeasurementError, measure
from benchmarks.report import check, quantity, table
from benchmarks.settings import Settings

TITLE = "Serving"

NODES = 60
CLIENTS, BATCH = 8, 500
N_REQUESTS = 10_000  # of the test of memory; N_FULL with --full
N_FULL = 50_000
MALFORMED = 10  # every tenth request is
MAX_LATENCY_MS, MAX_GROWTH = 20, 5e6
WARM = 500  # requests after which memory is first looked at


def train(path: str) -> dict[str, Any]:
    """Train part counts on generated threads."""
    from saen import PartCountsClassifier, generate_threads

    start = perf_counter()
    threads = generate_threads(300, average_nodes=NODES, seed=0)
    PartCountsClassifier().fit(threads, threads.targets).save(path)
    return {"seconds": {"train": perf_counter() - start}}


def load(path: str, requests: int) -> dict[str, Any]:
    """Start a server; ask one by one, in batches and from several clients; then many more times."""
    from saen import generate_threads
    from saen.io.writing import write_data

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "threads.jsonl"
        write_data(generate_threads(BATCH, average_nodes=NODES, seed=1), file)
        graphs = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    one = [json.dumps({"examples": [graph]}).encode() for graph in graphs[:100]]
    mixed = [*one, *(one[0][:-1] for _ in range(len(one) // (MALFORMED - 1)))]
    with _server(path) as port:
        _ask(port, one, WARM, 1)  # imports and caches
        alone = _ask(port, one, 300, 1)
        start = perf_counter()
        several = _ask(port, one, 1000, CLIENTS)
        seconds_several = perf_counter() - start
        batches = _ask(port, [json.dumps({"examples": graphs}).encode()], 10, 1)
        before = _memory(port)
        _ask(port, mixed, requests, CLIENTS)
        after = _memory(port)
    return {
        "seconds": {"one by one": sum(alone), "clients": seconds_several, "batches": sum(batches)},
        "latency_ms": [1000 * float(np.percentile(alone, share)) for share in (50, 95)],
        "busy_latency_ms": [1000 * float(np.percentile(several, share)) for share in (50, 95)],
        "per_second": 1000 / seconds_several,
        "batched_per_second": BATCH * len(batches) / sum(batches),
        "requests": requests,
        "memory_bytes": after,
        "grown_bytes": after - before,
    }


@contextmanager
def _server(path: str) -> Iterator[int]:
    """`saen serve` in a process of its own: its port."""
    command = [sys.executable, "-m", "saen", "serve", path, "--port", "0"]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    with subprocess.Popen(command, stderr=-1, text=True, env=environment) as process:
        assert process.stderr is not None
        try:
            yield int(process.stderr.readline().split(" (")[0].rpartition(":")[2])
        finally:
            process.send_signal(signal.SIGTERM)


def _ask(port: int, bodies: list[bytes], requests: int, clients: int) -> list[float]:
    """Seconds of every request."""

    def client(number: int) -> list[float]:
        connection = http.client.HTTPConnection("127.0.0.1", port)
        seconds = []
        for request in range(number, requests, clients):
            start = perf_counter()
            body = bodies[request % len(bodies)]
            connection.request("POST", "/predict", body, {"content-type": "application/json"})
            connection.getresponse().read()
            seconds.append(perf_counter() - start)
        return seconds

    with ThreadPoolExecutor(clients) as pool:
        return [each for some in pool.map(client, range(clients)) for each in some]


def _memory(port: int) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request("GET", "/metrics")
    return int(connection.getresponse().read().rsplit(maxsplit=1)[1])


def run(settings: Settings) -> dict[str, Any]:
    """One server under load."""
    document: dict[str, Any] = {"rows": [], "checks": [], "skipped": []}
    if find_spec("uvicorn") is None:
        document["skipped"].append({"what": TITLE, "reason": "uvicorn is not installed"})
        return document
    requests = 50 if settings.quick else N_FULL if settings.full else N_REQUESTS
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "model.saen")
        try:
            measure(train, path=path)
            document["rows"] = [row := measure(load, path=path, requests=requests)]
        except MeasurementError as error:
            document["skipped"].append({"what": TITLE, "reason": f"failed: {error}"})
            return document
    if not settings.quick:
        document["checks"] = [
            check(
                "server: median latency of one graph, ms", row["latency_ms"][0], MAX_LATENCY_MS, ""
            ),
            check(
                f"server: memory grown over {requests:,} requests",
                row["grown_bytes"],
                MAX_GROWTH,
                "bytes",
            ),
        ]
    return document


def markdown(document: Mapping[str, Any]) -> str:
    """The part's text."""
    lines = [
        (what, quantity(middle, "ms"), quantity(high, "ms"), f"{rate:,.0f}")
        for row in document["rows"]
        for what, (middle, high), rate in (
            ("one client, one graph", row["latency_ms"], 1000 / row["latency_ms"][0]),
            (f"{CLIENTS} clients, one graph each", row["busy_latency_ms"], row["per_second"]),
        )
    ]
    text = "".join(
        f"In batches of {BATCH}: {row['batched_per_second']:,.0f} graphs per second. After "
        f"{row['requests']:,} more requests, every tenth malformed, the server had grown by "
        f"{quantity(row['grown_bytes'], 'bytes')} to {quantity(row['memory_bytes'], 'bytes')}.\n"
        for row in document["rows"]
    )
    return "\n".join(
        [
            f"`saen serve` with part counts of generated threads of {NODES} nodes; clients and "
            "server share the cores.\n",
            table(("requests", "median", "95 %", "graphs per second"), lines),
            text,
        ]
    )
