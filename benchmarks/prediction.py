"""Prediction with a saved model: one new graph, and many; and why it predicts what it does."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.data import available, classifier, dataset_graphs
from benchmarks.measure import Stopwatch, measure, measured
from benchmarks.report import check, quantity, table
from benchmarks.settings import Settings

if TYPE_CHECKING:
    from saen import Graphs, SAENClassifier

TITLE = "Prediction"

DATASETS = ("REDDIT-BINARY", "NCI1", "MUTAG")
N_SINGLE = 200  # graphs that are predicted one by one
MIN_PER_SECOND = {"REDDIT-BINARY": 9000}
MAX_LATENCY_MS = 1
MAX_EXPLANATION = {"NCI1": 10}


# -- what is measured, each in its own process -------------------------------------------------


def fit(dataset: str, path: str) -> dict[str, Any]:
    """Train networks for one epoch and save them: enough to time their predictions."""
    graphs, watch = dataset_graphs(dataset), Stopwatch()
    estimator = classifier(dataset, "network", epochs=1)
    watch("fit", estimator.fit, graphs, graphs.targets)
    return {"seconds": watch.seconds, "bytes": estimator.save(path)}


def predict(dataset: str, path: str, single: int, repeats: int) -> dict[str, Any]:
    """Load the model, then the classes of graphs one by one, then of all at once."""
    from saen import SAENClassifier

    graphs, watch = dataset_graphs(dataset), Stopwatch()
    model = watch("load", SAENClassifier.load, path)
    picked = np.linspace(0, len(graphs) - 1, min(single, len(graphs))).astype(np.int64)
    ones = [graphs[number : number + 1] for number in picked.tolist()]
    for one in ones[:10]:
        model.predict(one)
    latencies = [_seconds(model, one) for one in ones]
    watch.seconds["one by one"] = sum(latencies)
    watch.seconds["all"] = median(_seconds(model, graphs) for _ in range(repeats))
    return {
        "seconds": watch.seconds,
        "graphs": len(graphs),
        "single": len(ones),
        "latency": median(latencies),
        "latency_95": float(np.percentile(latencies, 95)),
        "networks": model.fitted_.n_models,
        "per_second": len(graphs) / watch.seconds["all"],
    }


def explain(dataset: str, path: str) -> dict[str, Any]:
    """Load the model, then explain its predictions for all graphs."""
    from saen import SAENClassifier, explain_dataset

    graphs, watch = dataset_graphs(dataset), Stopwatch()
    watch("explain", explain_dataset, SAENClassifier.load(path), graphs)
    return {"seconds": watch.seconds}


def _seconds(model: SAENClassifier, graphs: Graphs) -> float:
    start = perf_counter()
    model.predict(graphs)
    return perf_counter() - start


# -- the part ----------------------------------------------------------------------------------


def run(settings: Settings) -> dict[str, Any]:
    """One row per dataset."""
    names, skipped = available(DATASETS, settings)
    rows = measured({name: partial(_row, name, settings) for name in names}, skipped)
    checks = [] if settings.quick else [each for row in rows for each in _checks(row)]
    return {"rows": rows, "checks": checks, "skipped": skipped}


def _checks(row: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    name = row["dataset"]
    yield check(f"{name}, prediction of one graph", 1e3 * row["latency"], MAX_LATENCY_MS, "ms")
    if name in MIN_PER_SECOND:
        what = f"{name}, graphs predicted per second"
        yield check(what, row["per_second"], MIN_PER_SECOND[name], "", at_least=True)
    if name in MAX_EXPLANATION:
        what = f"{name}, all predictions explained"
        yield check(what, row["explained"], MAX_EXPLANATION[name], "s")


def _row(name: str, settings: Settings) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        place = {"dataset": name, "path": str(Path(folder) / f"{name}.saen")}
        saved = measure(fit, **place)
        single = 20 if settings.quick else N_SINGLE
        result = measure(predict, **place, single=single, repeats=settings.repeats)
        explained = measure(explain, **place)["seconds"]["explain"]
    return {"dataset": name, "bytes": saved["bytes"], **result, "explained": explained}


def markdown(document: Mapping[str, Any]) -> str:
    """The part's text."""
    rows = [
        (
            row["dataset"],
            f"{row['networks']}",
            quantity(row["bytes"], "bytes"),
            f"{1e3 * row['seconds']['load']:.0f} ms",
            f"{1e3 * row['latency']:.1f} ms",
            f"{1e3 * row['latency_95']:.1f} ms",
            f"{row['per_second']:,.0f}",
            quantity(row["explained"], "s"),
            quantity(row["peak_memory_bytes"], "bytes"),
        )
        for row in document["rows"]
    ]
    headings = ("dataset", "networks", "file", "load", "one graph", "95th percentile")
    return "\n".join(
        [
            "Predicted classes of graphs in memory, by a saved model with the preset network: "
            f"one graph at a time (median and 95th percentile of up to {N_SINGLE}), and all graphs "
            "of the dataset at once; and the explanation of all of them. Decomposition and "
            "compression are included.\n",
            table((*headings, "graphs per second", "explain all", "peak memory"), rows),
        ]
    )
