"""Shards on executors: CPU seconds of all processes against one process."""

from __future__ import annotations

import os
import resource
import tempfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks.measure import measure, measured
from benchmarks.report import check, quantity, table
from benchmarks.settings import Settings

TITLE = "Clusters"

SPECS = ("serial", "local:2", "ray:2")
JOBS = ("compress", "partitions", "predict", "evaluate")
GRAPHS, N_SHARDS = 12_000, 48
NODES = 391  # per graph, as in REDDIT-MULTI-12K
LIMITS = {"compress": 1.35, "predict": 1.35, "evaluate": 1.2}
MAX_WALL = 0.75  # against serial, on two idle cores
MAX_MOVED, MAX_GROWN = 20e6, 50e6  # bytes, of `partitions`


# -- what is measured, each in its own process -------------------------------------------------


def write(folder: str, graphs: int, shards: int) -> dict[str, Any]:
    """Write shards of generated threads, each with a seed of its own, and a model."""
    from saen import SAENClassifier, generate_threads
    from saen.io.store.shards import write_shards

    start = perf_counter()
    size = -(-graphs // shards)
    parts = (generate_threads(size, average_nodes=NODES, seed=seed) for seed in range(shards))
    written = write_shards(parts, Path(folder) / "shards")
    sample = generate_threads(100, average_nodes=40, seed=0)
    SAENClassifier(epochs=1).fit(sample, sample.targets).save(Path(folder) / "model.saen")
    return {"seconds": {"write": perf_counter() - start}, "graphs": written.n_graphs}


def work(folder: str, job: str, spec: str, evaluated: int) -> dict[str, Any]:
    """One job on one executor: wall and CPU seconds, the executor's start not counted."""
    from saen import SAENClassifier, generate_threads
    from saen.cluster.compress import compress_into_partitions, compress_shards
    from saen.cluster.executors import open_executor
    from saen.cluster.predict import predict_shards
    from saen.decompositions import Ego
    from saen.learning.evaluation import cross_validate

    place, moved, grown = Path(folder), 0, 0
    sample = generate_threads(evaluated, average_nodes=60, seed=1)
    with open_executor(spec) as executor:
        for number in range(4):  # imports of the workers are not the job's
            executor.submit(f"warm {number}", _import)
        list(executor.completed())
        start, before = perf_counter(), _cpu(spec)
        memory = _resident()
        if job == "compress":
            compress_shards(place / "shards", Ego(), executor, place / f"{spec}.saen", force=True)
        elif job == "partitions":
            out = place / f"{spec}-parts"
            result = compress_into_partitions(place / "shards", Ego(), executor, out, 4)
            moved, grown = result.compressed.moved, _resident() - memory
        elif job == "predict":
            model, out = place / "model.saen", place / f"{spec}.csv"
            predict_shards(model, place / "shards", executor, out, force=True)
        else:
            estimator = SAENClassifier(epochs=30)
            options = {"n_repeats": 1, "n_folds": 10, "parallel_models": 2, "executor": executor}
            cross_validate(estimator, sample, sample.targets, **options)
        wall, used = perf_counter() - start, _cpu(spec) - before
    return {"seconds": {job: wall}, "used": used, "moved": moved, "grown": grown}


def _import() -> None:
    from saen.cluster import compress, predict  # noqa: F401


def _resident() -> int:
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.partition("VmRSS:")[2].split(maxsplit=1)[0]) * 1024


def _cpu(spec: str) -> float:
    """CPU seconds of this process and of those that it has started, Ray's included."""
    own = resource.getrusage(resource.RUSAGE_SELF)
    total, ticks = own.ru_utime + own.ru_stime, 100
    if spec == "serial":
        return total
    parents: dict[int, int] = {}
    used: dict[int, float] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents[int(folder.name)] = int(fields[1])
        used[int(folder.name)] = (int(fields[11]) + int(fields[12])) / ticks

    ours, grew = {os.getpid()}, True
    while grew:
        new = {pid for pid, parent in parents.items() if parent in ours} - ours
        ours, grew = ours | new, bool(new)
    return total + sum(used[pid] for pid in ours - {os.getpid()} if pid in used)


# -- the part ----------------------------------------------------------------------------------


def run(settings: Settings) -> dict[str, Any]:
    """One row per job and executor."""
    graphs, shards = (60, 6) if settings.quick else (GRAPHS, N_SHARDS)
    skipped: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        measure(write, folder=folder, graphs=graphs, shards=shards)
        evaluated = 60 if settings.quick else 1_000
        rows = measured(
            {
                f"{job} {spec}": partial(_row, folder, job, spec, evaluated)
                for job in (JOBS[:1] if settings.quick else JOBS)
                for spec in (SPECS[:2] if settings.quick else SPECS)
            },
            skipped,
        )
    alone = {row["job"]: row for row in rows if row["spec"] == "serial"}
    for row in rows:
        serial = alone.get(row["job"])
        row["ratio"] = row["used"] / max(serial["used"], 1e-9) if serial else None
        row["wall_ratio"] = _wall(row) / max(_wall(serial), 1e-9) if serial else None
    return {
        "graphs": graphs,
        "shards": shards,
        "rows": rows,
        "checks": [] if settings.quick else _checks(rows),
        "skipped": skipped,
    }


def _wall(row: Mapping[str, Any]) -> float:
    return float(row["seconds"][row["job"]])


def _checks(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    checks = []
    for row in (row for row in rows if row["spec"] == "ray:2" and row["ratio"] is not None):
        name = f"{row['job']}, {row['spec']}"
        if row["job"] in LIMITS:
            limit = LIMITS[row["job"]]
            checks += [
                check(f"{name}: CPU against serial", row["ratio"], limit, "times"),
                check(f"{name}: wall against serial", row["wall_ratio"], MAX_WALL, "times"),
            ]
        if row["moved"]:
            checks += [
                check(f"{name}: bytes moved", row["moved"], MAX_MOVED, "bytes"),
                check(f"{name}: growth of the driver", row["grown"], MAX_GROWN, "bytes"),
            ]
    return checks


def _row(folder: str, job: str, spec: str, evaluated: int) -> dict[str, Any]:
    result = measure(work, folder=folder, job=job, spec=spec, evaluated=evaluated)
    return {"job": job, "spec": spec, **result}


def markdown(document: Mapping[str, Any]) -> str:
    """The part's text."""
    rows = [
        (
            row["job"],
            row["spec"],
            f"{row['used']:.1f} s",
            "" if row["ratio"] is None else f"{row['ratio']:.2f} ×",
            f"{_wall(row):.1f} s",
            "" if row["wall_ratio"] is None else f"{row['wall_ratio']:.2f} ×",
            quantity(row["moved"], "bytes") if row["moved"] else "",
            quantity(row["grown"], "bytes") if row["grown"] else "",
        )
        for row in document["rows"]
    ]
    text = [
        f"{document['graphs']:,} generated threads of {NODES} nodes in {document['shards']} "
        "shards: CPU seconds of all processes, against one process that does the same. Wall "
        "seconds say little on a busy machine.\n",
        table(
            (
                "job",
                "executor",
                "CPU",
                "against serial",
                "wall",
                "against serial",
                "moved",
                "driver's memory",
            ),
            rows,
            words=2,
        ),
    ]
    moved = [row["moved"] for row in document["rows"] if row["moved"]]
    if moved:
        text.append(
            "Bytes that go from the shards to the ranges (`partitions`) grow in proportion to the "
            f"shards: {quantity(max(moved) / document['graphs'] * 10**9, 'bytes')} for a billion "
            f"graphs in shards of {document['graphs'] // document['shards']}.\n"
        )
    return "\n".join(text)
