"""Whole commands on the largest datasets."""

from __future__ import annotations

import io
import json
import tempfile
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.data import THREADS, available, empty_cache
from benchmarks.measure import Stopwatch, measure, measured
from benchmarks.report import quantity, table
from benchmarks.settings import Settings
from saen import load_dataset

TITLE = "Commands on REDDIT-MULTI"

DATASETS = ("REDDIT-MULTI-5K", "REDDIT-MULTI-12K")
COMMANDS = {
    "statistics": "saen reproduce statistics --datasets {name}",
    "evaluate": "saen evaluate {name} --preset paper --repeats 1 --folds 2 --epochs 1",
}


# -- what is measured, each in its own process -------------------------------------------------


def command(line: str, folder: str) -> dict[str, Any]:
    """Run a command of `saen` that writes below a folder, and return what it prints."""
    from saen.cli import app

    _, what, *arguments = line.split()
    watch, printed = Stopwatch(), io.StringIO()
    options = ["--out", str(Path(folder) / what), "--json"]
    with redirect_stdout(printed):
        watch(what, lambda: app([what, *arguments, *options], standalone_mode=False))
    return {"seconds": watch.seconds, "printed": json.loads(printed.getvalue())}


def evaluated(line: str, function: Callable[..., dict[str, Any]] = command) -> dict[str, Any]:
    """What measuring a `saen evaluate` gives, and its report."""
    with tempfile.TemporaryDirectory() as folder:
        result = measure(function, line=line, folder=folder)
    report = result.pop("printed")
    accuracy = report["accuracy"]["mean"]
    return {**result, "command": line, "accuracy": accuracy, "train": report["seconds"]["train"]}


# -- the part ----------------------------------------------------------------------------------


def run(settings: Settings) -> dict[str, Any]:
    """One row per dataset: statistics from an empty cache, then a short cross-validation."""
    names, skipped = available(DATASETS[-1:], settings, further=DATASETS[:-1])
    rows = measured({name: partial(_row, name) for name in names}, skipped)
    return {"rows": rows, "checks": [], "skipped": skipped}


def _row(name: str) -> dict[str, Any]:
    # The paper has no statistics of generated threads, which quick runs take.
    lines = {what: line for what, line in COMMANDS.items() if name != THREADS or what == "evaluate"}
    with tempfile.TemporaryDirectory() as folder:
        environment = empty_cache(name, Path(folder) / "cache")
        results = {
            what: measure(
                command, environment=environment, line=line.format(name=name), folder=folder
            )
            for what, line in lines.items()
        }
    evaluation = results["evaluate"].pop("printed")
    if "statistics" in results:
        read = results["statistics"].pop("printed")["statistics"][name]
        nodes = round(read["average_nodes"] * read["graphs"])
    else:
        threads = load_dataset(name)
        read, nodes = {"graphs": len(threads)}, threads.n_nodes
    return {
        "dataset": name,
        "graphs": read["graphs"],
        "nodes": nodes,
        **results,
        "accuracy": evaluation["accuracy"]["mean"],
        "device": evaluation["device"],
    }


def markdown(document: Mapping[str, Any]) -> str:
    """The part's text."""
    rows = [
        (
            row["dataset"],
            f"`{COMMANDS[what].format(name=row['dataset'])}`",
            f"{row['graphs']:,}",
            f"{row['nodes']:,}",
            quantity(row[what]["seconds"]["total"], "s"),
            quantity(row[what]["cpu_seconds"], "s"),
            quantity(row[what]["peak_memory_bytes"], "bytes"),
        )
        for row in document["rows"]
        for what in COMMANDS
        if what in row
    ]
    return "\n".join(
        [
            "Whole commands, first from the zip with an empty cache, then from the cached parse; "
            "one run.\n",
            table(
                ("dataset", "command", "graphs", "nodes", "seconds", "CPU", "peak memory"),
                rows,
                words=2,
            ),
        ]
    )
