"""Whole commands on generated graphs in place of REDDIT-MULTI-5K and -12K."""

from __future__ import annotations

import io
import json
import tempfile
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.data import like
from benchmarks.measure import Stopwatch, measure, measured
from benchmarks.report import quantity, table
from benchmarks.settings import Settings
from saen.io.tu import write_tu

TITLE = "Commands at the size of REDDIT-MULTI"

DATASETS = ("REDDIT-MULTI-5K", "REDDIT-MULTI-12K")
COMMANDS = {
    "statistics": "saen reproduce statistics --datasets {name}",
    "evaluate": "saen evaluate {name} --preset paper --repeats 1 --folds 2 --epochs 1",
}
QUICK_DIVISOR = 20  # how many times fewer graphs a quick run generates


# -- what is measured, each in its own process -------------------------------------------------


def generate(name: str, folder: str, divisor: int) -> dict[str, Any]:
    """Generate graphs like those of a dataset and write them as text."""
    watch = Stopwatch()
    graphs = watch("generate", like, name, divisor)
    watch("write", write_tu, graphs, Path(folder) / name)
    return {"seconds": watch.seconds, "graphs": len(graphs), "nodes": graphs.n_nodes}


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
    names = DATASETS if settings.full else DATASETS[-1:]
    skipped = [
        {"what": name, "reason": "smaller than the other: --full"}
        for name in DATASETS
        if name not in names
    ]
    divisor = QUICK_DIVISOR if settings.quick else 1
    rows = measured({name: partial(_row, name, divisor) for name in names}, skipped)
    return {"rows": rows, "checks": [], "skipped": skipped}


def _row(name: str, divisor: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        generated = measure(generate, name=name, folder=folder, divisor=divisor)
        environment = {"SAEN_DATA": folder, "SAEN_CACHE": str(Path(folder) / "cache")}
        results = {
            what: measure(
                command, environment=environment, line=line.format(name=name), folder=folder
            )
            for what, line in COMMANDS.items()
        }
    statistics = results["statistics"].pop("printed")["statistics"][name]
    evaluation = results["evaluate"].pop("printed")
    return {
        "dataset": name,
        "graphs": generated["graphs"],
        "nodes": generated["nodes"],
        "generate": generated,
        **results,
        "read": statistics,
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
    ]
    return "\n".join(
        [
            "Whole commands on generated threads, as many, as large and in as many classes as the "
            "graphs of the dataset: first from text with an empty cache, then from the cached "
            "parse; one run.\n",
            table(
                ("in place of", "command", "graphs", "nodes", "seconds", "CPU", "peak memory"),
                rows,
                words=2,
            ),
        ]
    )
