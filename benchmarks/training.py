"""Training: compressed against uncompressed, one network against a hundred."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.measure import MeasurementError, measure
from benchmarks.report import quantity, table
from benchmarks.settings import Settings
from saen import generate_threads, load_dataset
from saen.compression import compress_graphs
from saen.datasets import locate

TITLE = "Training"

DATASETS = ("MUTAG", "IMDB-BINARY", "IMDB-MULTI", "PROTEINS")
GENERATED = "threads"
TOGETHER = 100
EPOCHS = 4  # the first is for warming up


# -- what is measured, each in its own process -------------------------------------------------


def epochs(dataset: str, collapsed: bool, n_models: int, n_epochs: int) -> dict[str, Any]:
    """Seconds of each epoch of the default networks, full batch, in float64."""
    from saen.estimators import SAENClassifier
    from saen.tasks import Task
    from saen.training import train

    graphs = generate_threads(60, seed=0) if dataset == GENERATED else load_dataset(dataset)
    assert graphs.targets is not None
    estimator = SAENClassifier(dtype="float64", batch_size="all", epochs=n_epochs, device="cpu")
    decomposition = estimator._chosen_decomposition(graphs).fit(graphs)
    structures: Any = decomposition.decompose(graphs)
    if collapsed:
        structures = compress_graphs(graphs, decomposition, lower_classes=False)
    classes, targets = np.unique(graphs.targets, return_inverse=True)
    loss = "binary" if len(classes) == 2 else "classes"
    weights = np.ones((len(graphs), n_models))
    task = Task(loss, targets, weights, n_classes=len(classes))  # type: ignore[arg-type]
    hierarchy = structures.hierarchy if collapsed else structures
    network = estimator._network(hierarchy, task.n_outputs, list(range(n_models)))
    moments = [perf_counter()]
    history = train(
        network,
        structures,
        task,
        estimator._settings(len(graphs), 0),
        progress=lambda epoch, history: moments.append(perf_counter()),
    )
    return {
        "seconds": {"epochs": moments[-1] - moments[1]},
        "epoch": median(np.diff(moments)[1:].tolist()),
        "loss": history.loss[-1][0],
        "entries": sum(relation.n_entries for relation in hierarchy.relations),
    }


# -- the part ----------------------------------------------------------------------------------


def run(settings: Settings) -> dict[str, Any]:
    """One row per dataset at hand; the built-in collection where there is none."""
    rows, skipped = [], []
    names = [name for name in DATASETS if locate(name)] if not settings.quick else []
    for name in DATASETS:
        if name not in names and not settings.quick:
            skipped.append({"what": name, "reason": "not at hand: set SAEN_DATA"})
    for name in names or [GENERATED]:
        try:
            rows.append(_row(name, settings))
        except MeasurementError as error:
            skipped.append({"what": name, "reason": f"failed: {error}"})
    return {"rows": rows, "checks": [], "skipped": skipped}


def _row(name: str, settings: Settings) -> dict[str, Any]:
    together = 5 if settings.quick else TOGETHER
    ways = {
        "uncompressed": {"collapsed": False, "n_models": 1},
        "compressed": {"collapsed": True, "n_models": 1},
        "together": {"collapsed": True, "n_models": together},
    }
    found: dict[str, Any] = {}
    for way, options in ways.items():
        runs = [
            measure(epochs, dataset=name, n_epochs=EPOCHS, **options)
            for _ in range(settings.repeats)
        ]
        found[way] = {
            "epoch": median(run["epoch"] for run in runs),
            "peak_memory_bytes": max(run["peak_memory_bytes"] for run in runs),
            "loss": runs[0]["loss"],
            "entries": runs[0]["entries"],
        }
    before, after = found["uncompressed"], found["compressed"]
    return {
        "dataset": name,
        "networks": together,
        **found,
        "loss_difference": abs(before["loss"] - after["loss"]),
        "times_faster_compressed": before["epoch"] / after["epoch"],
        "times_faster_together": together * after["epoch"] / found["together"]["epoch"],
    }


def markdown(document: Mapping[str, Any]) -> str:
    """The part's text."""
    compressed = [
        (
            row["dataset"],
            f"{row['uncompressed']['entries']:,}",
            f"{row['compressed']['entries']:,}",
            f"{1e3 * row['uncompressed']['epoch']:.1f} ms",
            f"{1e3 * row['compressed']['epoch']:.1f} ms",
            quantity(row["times_faster_compressed"], "times"),
            quantity(row["uncompressed"]["peak_memory_bytes"], "bytes"),
            quantity(row["compressed"]["peak_memory_bytes"], "bytes"),
            f"{row['loss_difference']:.0e}",
        )
        for row in document["rows"]
    ]
    together = [
        (
            row["dataset"],
            f"{row['networks']}",
            f"{1e3 * row['compressed']['epoch'] * row['networks']:.0f} ms",
            f"{1e3 * row['together']['epoch']:.0f} ms",
            quantity(row["times_faster_together"], "times"),
            quantity(row["together"]["peak_memory_bytes"], "bytes"),
        )
        for row in document["rows"]
    ]
    return "\n".join(
        [
            "One epoch of one network of the default shape, full batch, float64, the same code and "
            "the same steps on the original and on the collapsed hierarchy; the last column is the "
            "difference of the losses after the last epoch.\n",
            table(
                (
                    "dataset",
                    "entries",
                    "after",
                    "before",
                    "after",
                    "faster",
                    "memory",
                    "after",
                    "Δ",
                ),
                compressed,
            ),
            "An epoch of many networks: one after another (their number times one) against all at "
            "once.\n",
            table(("dataset", "networks", "one by one", "at once", "faster", "memory"), together),
        ]
    )
