"""Commands with next to nothing to do: what a user waits for before the first word."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

from benchmarks.measure import Stopwatch, measure
from benchmarks.report import check, quantity, table
from benchmarks.settings import Settings

TITLE = "Waiting for the first word"

MODEL, GRAPH = "model.saen", "graph.jsonl"
MAX_SECONDS = {
    ("-m", "saen", "--help"): 0.5,
    ("-m", "saen", "datasets"): 0.5,
    ("-m", "saen", "validate", GRAPH): 0.5,
    ("-m", "saen", "predict", "--wrong"): 0.5,
    ("-m", "saen", "predict", MODEL, GRAPH): 2.5,
}
"""Seconds that the arguments of Python may take."""
IMPORT = ("-c", "import torch")
"""To compare with."""


# -- what is measured, each in its own process -------------------------------------------------


def prepare(folder: str) -> dict[str, Any]:
    """Save a small model, and one small graph."""
    from saen import SAENClassifier, generate_threads
    from saen.io.writing import write_data

    threads, watch = generate_threads(40, average_nodes=20, seed=1), Stopwatch()
    model = SAENClassifier(epochs=1, inner_folds=0)
    watch("fit", model.fit, threads, threads.targets)
    write_data(threads[:1], Path(folder) / GRAPH)
    return {"seconds": watch.seconds, "bytes": model.save(Path(folder) / MODEL)}


def wait(arguments: list[str], folder: str, repeats: int) -> dict[str, Any]:
    """Median seconds, and CPU seconds, of a process, once its files are in the system's cache.

    Bytecode is among them, as it is once a package is installed.
    """
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(Path(folder) / "bytecode")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, *arguments]
    seconds, cpu = [], []
    for _ in range(repeats + 1):
        before, start = _cpu_of_children(), perf_counter()
        subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=False)
        seconds.append(perf_counter() - start)
        cpu.append(_cpu_of_children() - before)
    return {"seconds": {"wait": median(seconds[1:])}, "cpu": median(cpu[1:])}


def _cpu_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


# -- the part ----------------------------------------------------------------------------------


def run(settings: Settings) -> dict[str, Any]:
    """One row per command."""
    with tempfile.TemporaryDirectory() as folder:
        measure(prepare, folder=folder)
        rows = [
            {
                "command": _words(arguments),
                **measure(wait, arguments=arguments, folder=folder, repeats=settings.repeats),
            }
            for arguments in (list(MAX_SECONDS)[::4] if settings.quick else (*MAX_SECONDS, IMPORT))
        ]
    return {"rows": rows, "checks": [] if settings.quick else checks(rows), "skipped": []}


def checks(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Seconds of every command against its limit."""
    limits = zip(rows, MAX_SECONDS.values(), strict=False)
    return [check(f"`{row['command']}`", row["seconds"]["wait"], most, "s") for row, most in limits]


def _words(arguments: tuple[str, ...]) -> str:
    if arguments[0] == "-c":
        return f"python -c {json.dumps(arguments[1])}"
    return " ".join(arguments[1:])


def markdown(document: Mapping[str, Any]) -> str:
    """The part's text."""
    rows = [
        (f"`{row['command']}`", quantity(row["seconds"]["wait"], "s"), quantity(row["cpu"], "s"))
        for row in document["rows"]
    ]
    return "\n".join(
        [
            "Whole processes, Python included: help, the catalog, one graph of 20 nodes checked "
            "and predicted, and wrong usage. Targets are for idle cores: seconds depend on how "
            "busy the machine is.\n",
            table(("command", "seconds", "CPU"), rows),
        ]
    )
