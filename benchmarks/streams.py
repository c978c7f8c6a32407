"""Many small graphs from JSON lines: reading them, and predicting them as they are read."""

from __future__ import annotations

import json
import random
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any

from benchmarks.measure import MeasurementError, Stopwatch, measure, peak_memory
from benchmarks.report import GB, check, quantity, table
from benchmarks.settings import Settings

TITLE = "Many small graphs"

N_READ, N_PREDICTED = 100_000, (20_000, 100_000)
NODES = 20
QUICK_DIVISOR = 50  # how many times fewer graphs a quick run generates

MIN_READING = 1 / 3
MAX_MEMORY = 1 * GB
MAX_GROWTH = 1.2


# -- what is measured, each in its own process -------------------------------------------------


def generate(path: str, n_graphs: int) -> dict[str, Any]:
    """Write random trees with one more edge, five node labels and two classes."""
    draw, watch = random.Random(0), Stopwatch()

    def line(number: int) -> str:
        edges = [[draw.randrange(node), node] for node in range(1, NODES)]
        nodes = draw.choices("CNOSP", k=NODES)
        target = draw.randrange(2)
        edges.append([0, NODES - 1])
        return json.dumps({"id": f"g{number}", "target": target, "nodes": nodes, "edges": edges})

    def write() -> None:
        Path(path).write_text("\n".join(map(line, range(n_graphs))) + "\n", encoding="utf-8")

    watch("generate", write)
    return {"seconds": watch.seconds, "bytes": Path(path).stat().st_size}


def reading(path: str, repeats: int) -> dict[str, Any]:
    """CPU time to read a file, and of a loop that parses its lines and keeps nothing."""
    from saen.io.loading import read_graphs

    lines = Path(path).read_bytes().splitlines()

    def loop() -> None:
        for line in lines:
            json.loads(line)

    read_graphs(path)  # imports
    seconds = {
        "loop of json.loads": median(_cpu(loop) for _ in range(repeats)),
        "read_graphs": median(_cpu(lambda: read_graphs(path)) for _ in range(repeats)),
    }
    return {"seconds": seconds, "graphs": len(lines)}


def fit(path: str, model: str) -> dict[str, Any]:
    """Train three networks for one epoch on a file of graphs."""
    from saen import SAENClassifier, load_dataset

    graphs, watch = load_dataset(path), Stopwatch()
    estimator = SAENClassifier(epochs=1)
    watch("fit", estimator.fit, graphs, graphs.targets)
    estimator.save(model)
    return {"seconds": watch.seconds}


def predicting(path: str, model: str, out: str) -> dict[str, Any]:
    """Predict a file, as `saen predict` does, after the imports."""
    from saen.learning.jobs.predict import predict_dataset

    before, watch = peak_memory(), Stopwatch()
    report = watch("predict", lambda: predict_dataset(Path(model), path, Path(out)))
    return {"seconds": watch.seconds, "graphs": report.structures, "imports_bytes": before}


def _cpu(function: Callable[[], object]) -> float:
    start = process_time()
    function()
    return process_time() - start


# -- the part ----------------------------------------------------------------------------------


def run(settings: Settings) -> dict[str, Any]:
    """One row for reading, one per number of graphs that are predicted."""
    divisor = QUICK_DIVISOR if settings.quick else 1
    document: dict[str, Any] = {"reading": [], "predicting": [], "checks": [], "skipped": []}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        try:
            _fill(document, folder, divisor, settings.repeats)
        except MeasurementError as error:
            document["skipped"].append({"what": TITLE, "reason": f"failed: {error}"})
            return document
    if not settings.quick:
        document["checks"] = _checks(document)
    return document


def _fill(document: dict[str, Any], folder: Path, divisor: int, repeats: int) -> None:
    path = str(folder / "read.jsonl")
    written = measure(generate, path=path, n_graphs=N_READ // divisor)
    document["reading"].append(
        {"bytes": written["bytes"], **measure(reading, path=path, repeats=repeats)}
    )
    sample, model = str(folder / "sample.jsonl"), str(folder / "model.saen")
    measure(generate, path=sample, n_graphs=2000 // divisor)
    measure(fit, path=sample, model=model)
    for n_graphs in N_PREDICTED:
        path, out = (str(folder / f"{n_graphs}.{suffix}") for suffix in ("jsonl", "csv"))
        measure(generate, path=path, n_graphs=n_graphs // divisor)
        document["predicting"].append(measure(predicting, path=path, model=model, out=out))


def _checks(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    (row,) = document["reading"]
    few, many = (each["peak_memory_bytes"] for each in document["predicting"])
    what = f"{document['predicting'][-1]['graphs']:,} graphs predicted from JSON lines"
    return [
        check(
            "speed of reading JSON lines, of a loop of json.loads",
            _speed(row),
            MIN_READING,
            "",
            at_least=True,
        ),
        check(f"peak memory of {what}", many, MAX_MEMORY, "bytes"),
        check("the same, of that of a fifth of them", many / few, MAX_GROWTH, ""),
    ]


def _speed(row: Mapping[str, Any]) -> float:
    seconds = row["seconds"]
    return float(seconds["loop of json.loads"] / seconds["read_graphs"])


def markdown(document: Mapping[str, Any]) -> str:
    """The part's text."""
    read = [
        (
            f"{row['graphs']:,}",
            quantity(row["bytes"], "bytes"),
            quantity(row["seconds"]["loop of json.loads"], "s"),
            quantity(row["seconds"]["read_graphs"], "s"),
            quantity(_speed(row), ""),
        )
        for row in document["reading"]
    ]
    predicted = [
        (
            f"{row['graphs']:,}",
            quantity(row["cpu_seconds"], "s"),
            f"{row['graphs'] / row['seconds']['predict']:,.0f}",
            quantity(row["imports_bytes"], "bytes"),
            quantity(row["peak_memory_bytes"], "bytes"),
        )
        for row in document["predicting"]
    ]
    return "\n".join(
        [
            f"Generated graphs of {NODES} nodes with labels and targets, as JSON lines. CPU time "
            "to read them with pyarrow, and of a loop of `json.loads` over the lines that keeps "
            "nothing.\n",
            table(("graphs", "file", "`json.loads`", "`read_graphs`", "speed of the loop"), read),
            "Predicted by three networks while they are read, as `saen predict` does.\n",
            table(
                ("graphs", "CPU", "graphs per second", "after imports", "peak memory"), predicted
            ),
        ]
    )
