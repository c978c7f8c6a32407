"""Many small graphs: read, and compressed, learned from and predicted without holding them all."""

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
from saen.io.sources.local import locate

TITLE = "Many small graphs"

N_READ, N_PREDICTED = 100_000, (20_000, 100_000)
NODES = 20
N_LARGE, N_FULL = 50_000, 1_000_000  # of the whole way; the second with --full
QUICK_DIVISOR = 200  # how many times fewer graphs a quick run generates
BEYOND_MEMORY = "REDDIT-MULTI-12K", "neighbourhoods(depth=3)"  # with --full

MIN_READING = 1 / 3
MAX_MEMORY = 1 * GB
MAX_GROWTH = 1.2
MAX_TRAINING_MEMORY = 2 * GB


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
        with Path(path).open("w", encoding="utf-8") as file:
            file.writelines(line(number) + "\n" for number in range(n_graphs))

    watch("generate", write)
    return {"seconds": watch.seconds, "bytes": Path(path).stat().st_size}


def generate_tables(path: str, n_graphs: int) -> dict[str, Any]:
    """The same as Parquet tables of edges, nodes and targets, with other draws."""
    import numpy as np
    import pyarrow as pa
    from pyarrow import parquet

    from saen.io.formats.edge_tables import beside

    draw, watch = np.random.default_rng(0), Stopwatch()
    labels = np.array(list("CNOSP"))
    child = np.arange(1, NODES)
    files = {kind: beside(Path(path), kind) for kind in ("nodes", "targets")}
    files["edges"] = Path(path)

    def columns(graphs: Any) -> dict[str, dict[str, Any]]:
        n = len(graphs)
        tree = (draw.random((n, NODES - 1)) * child).astype(np.int64)
        source = np.column_stack([tree, np.zeros(n, np.int64)])
        target = np.broadcast_to(np.append(child, NODES - 1), source.shape)
        per_edge, per_node = np.repeat(graphs, NODES), np.repeat(graphs, NODES)
        return {
            "edges": {"graph": per_edge, "source": source.ravel(), "target": target.ravel()},
            "nodes": {
                "graph": per_node,
                "node": np.tile(np.arange(NODES), n),
                "label": labels[draw.integers(0, 5, n * NODES)],
            },
            "targets": {"graph": graphs, "target": draw.integers(0, 2, n)},
        }

    def write() -> None:
        writers: dict[str, Any] = {}
        for start in range(0, n_graphs, 50_000):
            chunk = columns(np.arange(start, min(start + 50_000, n_graphs)))
            for kind, values in chunk.items():
                rows = pa.table(values)
                if kind not in writers:
                    writers[kind] = parquet.ParquetWriter(files[kind], rows.schema)
                writers[kind].write_table(rows)
        for writer in writers.values():
            writer.close()

    watch("generate", write)
    return {"seconds": watch.seconds, "bytes": sum(f.stat().st_size for f in files.values())}


def reading(path: str, repeats: int) -> dict[str, Any]:
    """CPU time to read a file, and of a loop that parses its lines and keeps nothing."""
    from saen.io.loading import load_dataset

    lines = Path(path).read_bytes().splitlines()

    def loop() -> None:
        for line in lines:
            json.loads(line)

    load_dataset(path)  # imports
    seconds = {
        "loop of json.loads": median(_cpu(loop) for _ in range(repeats)),
        "read_graphs": median(_cpu(lambda: load_dataset(path)) for _ in range(repeats)),
    }
    return {"seconds": seconds, "graphs": len(lines)}


def fit(path: str, model: str) -> dict[str, Any]:
    """Train three networks for one epoch on a file of graphs."""
    from saen import SAENClassifier, load_dataset

    graphs, watch = load_dataset(path), Stopwatch()
    estimator = SAENClassifier(epochs=1, n_models=3, inner_folds=0)
    watch("fit", estimator.fit, graphs, graphs.targets)
    estimator.save(model)
    return {"seconds": watch.seconds}


def compressing(path: str, decomposition: str, out: str) -> dict[str, Any]:
    """Compress a dataset into a file, as `saen compress` does."""
    from saen.jobs.compress import compress_dataset, dataset_decomposition

    watch = Stopwatch()
    asked = dataset_decomposition(path, decomposition)
    report = watch("compress", lambda: compress_dataset(path, asked, Path(out)))
    return {"seconds": watch.seconds, "graphs": len(report.compressed)}


def training(path: str, model: str) -> dict[str, Any]:
    """One epoch of networks over a compressed file, one per inner fold, as `saen train`."""
    from saen.jobs.job import Job
    from saen.jobs.train import train_model

    watch, job = Stopwatch(), Job(path, "network", {"epochs": 1})
    report = watch("train", lambda: train_model(job, Path(model)))
    return {"seconds": watch.seconds, "graphs": report.facts.structures}


def predicting(path: str, model: str, out: str) -> dict[str, Any]:
    """Predict a file, as `saen predict` does, after the imports."""
    from saen.jobs.predict import predict_dataset

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
    document: dict[str, Any] = {"reading": [], "predicting": [], "large": [], "beyond": []}
    document |= {"checks": [], "skipped": []}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        try:
            _fill(document, folder, divisor, settings.repeats)
            n_graphs = N_FULL if settings.full else N_LARGE // divisor
            document["large"] = _whole_way(folder, n_graphs)
            if settings.full and locate(BEYOND_MEMORY[0]):
                document["beyond"] = _beyond_memory(folder)
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


def _whole_way(folder: Path, n_graphs: int) -> list[dict[str, Any]]:
    """One row per step: compress, train, and predict from both formats."""
    lines, tables = folder / "large.jsonl", folder / "large_edges.parquet"
    compressed, model = folder / "large.saen", folder / "large-model.saen"
    measure(generate, path=str(lines), n_graphs=n_graphs)
    steps: dict[str, tuple[Callable[..., dict[str, Any]], dict[str, str]]] = {
        "compress JSON lines": (compressing, {"path": str(lines), "out": str(compressed)}),
        "train one epoch": (training, {"path": str(compressed), "model": str(model)}),
        "predict JSON lines": (predicting, {"path": str(lines), "out": str(folder / "1.csv")}),
        "compress Parquet": (compressing, {"path": str(tables), "out": str(folder / "2.saen")}),
        "predict Parquet": (predicting, {"path": str(tables), "out": str(folder / "2.csv")}),
    }
    rows = []
    for step, (function, arguments) in steps.items():
        if function is compressing:
            arguments["decomposition"] = "ego"
        elif function is predicting:
            arguments["model"] = str(model)
        if step == "compress Parquet":
            lines.unlink()
            measure(generate_tables, path=str(tables), n_graphs=n_graphs)
        rows.append({"step": step, **measure(function, **arguments)})
    return rows


def _beyond_memory(folder: Path) -> list[dict[str, Any]]:
    """A hierarchy of deep neighbourhoods of large graphs: compressed, then trained on."""
    name, decomposition = BEYOND_MEMORY
    file, model = str(folder / "deep.saen"), str(folder / "deep-model.saen")
    return [
        {
            "step": f"compress {name}, {decomposition}",
            **measure(compressing, path=name, decomposition=decomposition, out=file),
        },
        {"step": "train one epoch on that", **measure(training, path=file, model=model)},
    ]


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
        *(
            check(f"peak memory: {row['step']}", row["peak_memory_bytes"], limit, "bytes")
            for row in (*document["large"], *document["beyond"])
            for word, limit in (("predict", MAX_MEMORY), ("train", MAX_TRAINING_MEMORY))
            if row["step"].startswith(word)
        ),
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
    large = [
        (
            row["step"],
            f"{row['graphs']:,}",
            quantity(row["seconds"]["total"], "s"),
            quantity(row["cpu_seconds"], "s"),
            f"{row['graphs'] / row['cpu_seconds']:,.0f}",
            quantity(row["peak_memory_bytes"], "bytes"),
        )
        for row in (*document["large"], *document["beyond"])
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
            "The whole way: compressed while they are read (ego graphs of radius 0 and 1), one "
            "network trained on the compressed file (one epoch, another to calibrate), "
            "predicted.\n",
            table(
                ("step", "graphs", "seconds", "CPU", "graphs per CPU second", "peak memory"), large
            ),
        ]
    )
