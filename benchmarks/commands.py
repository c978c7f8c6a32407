"""Whole commands on generated collections that stand in for REDDIT-MULTI-5K and -12K."""

from __future__ import annotations

import io
import json
import tempfile
from collections.abc import Mapping
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

from benchmarks.measure import MeasurementError, Stopwatch, measure
from benchmarks.report import quantity, table
from benchmarks.settings import Settings
from saen import catalog, generate_threads
from saen.io.tu import write_tu

TITLE = "Commands at the size of REDDIT-MULTI"

DATASETS = ("REDDIT-MULTI-5K", "REDDIT-MULTI-12K")
COMMANDS = {
    "statistics": "saen reproduce statistics --datasets {name}",
    "evaluate": "saen evaluate {name} --preset paper --repeats 1 --folds 2 --epochs 1",
}
QUICK = 20  # how much smaller the collections of a quick run are


# -- what is measured, each in its own process -------------------------------------------------


def generate(name: str, folder: str, smaller: int) -> dict[str, Any]:
    """Generate graphs as many and as large as the dataset's, in as many classes, as text."""
    entry, watch = catalog()[name], Stopwatch()
    assert entry.paper is not None
    size = {"n_classes": entry.classes, "average_nodes": entry.paper.average_nodes}
    graphs = watch("generate", lambda: generate_threads(entry.graphs // smaller, **size))
    watch("write", write_tu, graphs, Path(folder) / name)
    return {"seconds": watch.seconds, "graphs": len(graphs), "nodes": graphs.n_nodes}


def command(line: str, folder: str) -> dict[str, Any]:
    """Run a command of `saen` with what it writes under a folder; what it printed."""
    from saen.cli import app

    _, what, *arguments = line.split()
    watch, printed = Stopwatch(), io.StringIO()
    places = ["--out", str(Path(folder) / what)]
    with redirect_stdout(printed):
        watch(what, lambda: app([what, *arguments, *places, "--json"], standalone_mode=False))
    return {"seconds": watch.seconds, "printed": json.loads(printed.getvalue())}


# -- the part ----------------------------------------------------------------------------------


def run(settings: Settings) -> dict[str, Any]:
    """One row per collection: statistics from an empty cache, then a short cross-validation."""
    rows, skipped = [], []
    names = DATASETS if settings.full or settings.quick else DATASETS[-1:]
    skipped += [
        {"what": name, "reason": "smaller than the other: --full"}
        for name in DATASETS
        if name not in names
    ]
    for name in names:
        try:
            rows.append(_row(name, QUICK if settings.quick else 1))
        except MeasurementError as error:
            skipped.append({"what": name, "reason": f"failed: {error}"})
    return {"rows": rows, "checks": [], "skipped": skipped}


def _row(name: str, smaller: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        made = measure(generate, name=name, folder=folder, smaller=smaller)
        environment = {"SAEN_DATA": folder, "SAEN_CACHE": str(Path(folder) / "cache")}
        found = {
            what: measure(
                command, environment=environment, line=line.format(name=name), folder=folder
            )
            for what, line in COMMANDS.items()
        }
    statistics = found["statistics"].pop("printed")["statistics"][name]
    evaluation = found["evaluate"].pop("printed")
    return {
        "dataset": name,
        "graphs": made["graphs"],
        "nodes": made["nodes"],
        "generate": made,
        **found,
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
            "graphs of the dataset: first from text with an empty cache, then from the parsed "
            "copy; one run.\n",
            table(
                ("in place of", "command", "graphs", "nodes", "seconds", "CPU", "peak memory"),
                rows,
                words=2,
            ),
        ]
    )
