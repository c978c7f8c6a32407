"""Predicting from a saved model: one new graph, and many."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks.data import at_hand, classifier, collection
from benchmarks.measure import MeasurementError, Stopwatch, measure
from benchmarks.report import quantity, table
from benchmarks.settings import Settings

TITLE = "Predicting"

DATASETS = ("REDDIT-BINARY", "NCI1", "MUTAG")
SINGLE = 200  # graphs that are predicted one by one


# -- what is measured, each in its own process -------------------------------------------------


def fit(dataset: str, path: str) -> dict[str, Any]:
    """Train modern networks for an epoch and save them: how long predicting takes is the same."""
    graphs, watch = collection(dataset), Stopwatch()
    estimator = classifier(dataset, "modern", epochs=1)
    watch("fit", estimator.fit, graphs, graphs.targets)
    return {"seconds": watch.seconds, "bytes": estimator.save(path)}


def predict(dataset: str, path: str, single: int, repeats: int) -> dict[str, Any]:
    """Load the model, then the classes of graphs one by one, then of all at once."""
    from saen import SAENClassifier

    graphs, watch = collection(dataset), Stopwatch()
    model = watch("load", SAENClassifier.load, path)
    picked = np.linspace(0, len(graphs) - 1, min(single, len(graphs))).astype(np.int64)
    ones = [graphs[number : number + 1] for number in picked.tolist()]
    for one in ones[:10]:
        model.predict(one)
    latencies = []
    for one in ones:
        step = Stopwatch()
        step("one", model.predict, one)
        latencies.append(step.seconds["one"])
    watch.seconds["one by one"] = sum(latencies)
    rounds = []
    for _ in range(repeats):
        step = Stopwatch()
        step("all", model.predict, graphs)
        rounds.append(step.seconds["all"])
    watch.seconds["all"] = median(rounds)
    return {
        "seconds": watch.seconds,
        "graphs": len(graphs),
        "single": len(ones),
        "latency": median(latencies),
        "latency_95": float(np.percentile(latencies, 95)),
        "networks": model.n_models,
        "per_second": len(graphs) / median(rounds),
    }


# -- the part ----------------------------------------------------------------------------------


def run(settings: Settings) -> dict[str, Any]:
    """One row per dataset."""
    names, skipped = at_hand(DATASETS, settings)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            path = str(Path(folder) / f"{name}.saen")
            try:
                saved = measure(fit, dataset=name, path=path)
                single = 20 if settings.quick else SINGLE
                arguments = {"single": single, "repeats": settings.repeats}
                found = measure(predict, dataset=name, path=path, **arguments)
                rows.append({"dataset": name, "bytes": saved["bytes"], **found})
            except MeasurementError as error:
                skipped.append({"what": name, "reason": f"failed: {error}"})
    return {"rows": rows, "checks": [], "skipped": skipped}


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
            quantity(row["peak_memory_bytes"], "bytes"),
        )
        for row in document["rows"]
    ]
    headings = ("dataset", "networks", "file", "load", "one graph", "95th percentile")
    return "\n".join(
        [
            "Classes by a saved model of the modern shape, from graphs in memory: one graph at a "
            f"time (median and 95th percentile of up to {SINGLE}), and graphs a second where all "
            "of the collection are predicted at once. Decomposing and compressing are part of "
            "it.\n",
            table((*headings, "graphs a second", "peak memory"), rows),
        ]
    )
