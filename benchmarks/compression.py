"""Training on collapsed hierarchies against training on the original ones."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, Any

from benchmarks.data import STAND_IN, at_hand, classification, classifier, collection, typical_step
from benchmarks.measure import MeasurementError, measure
from benchmarks.report import GB, check, quantity, table
from benchmarks.settings import Settings

if TYPE_CHECKING:
    from saen.data.hierarchy import Hierarchy
    from saen.learning.estimators import SAENClassifier

TITLE = "Compressed against uncompressed"

DATASETS = ("COLLAB", "REDDIT-BINARY", "IMDB-BINARY", "IMDB-MULTI", "NCI1", "PROTEINS", "DD")
FASTER = {"COLLAB": 8, "REDDIT-BINARY": 8, "IMDB-BINARY": 10, "IMDB-MULTI": 10, "NCI1": 15}
EXACT = "MUTAG"  # where the results of both are compared in float64
NETWORKS = (10, 5, 3, 2, 1)
MEMORY = 10 * GB  # for the uncompressed networks, in a run that is not full
HELD = 2.5  # numbers held at once for every activation, gradients and scratch included
EPOCHS = 3  # after the first
PATIENCE = 10.0  # seconds after which no further epoch is begun


class _EnoughError(Exception):
    """Ends a training between two epochs."""


# -- what is measured, each in its own process -------------------------------------------------


def epochs(
    dataset: str, collapsed: bool, networks: int, memory: float, dtype: str
) -> dict[str, Any]:
    """Seconds of each epoch of modern networks, full batch: as many as `memory` holds at most."""
    from saen.data.compression import compress_graphs
    from saen.network.training import train

    graphs = collection(dataset)
    estimator = classifier(dataset, "modern", dtype=dtype, batch_size="all")
    decomposition = estimator._chosen_decomposition(graphs).fit(graphs)
    structures: Any = (
        compress_graphs(graphs, decomposition, lower_inverse=False)
        if collapsed
        else decomposition.decompose(graphs)
    )
    hierarchy = structures.hierarchy if collapsed else structures
    fitting = [n for n in NETWORKS if n <= networks and n * needed(estimator, hierarchy) <= memory]
    if not fitting:
        gigabytes = needed(estimator, hierarchy) / GB
        raise MemoryError(f"one network needs about {gigabytes:.0f} GB, {memory / GB:.0f} allowed")
    task = classification(graphs, fitting[0])
    network = estimator._network(hierarchy, task.n_outputs, list(range(fitting[0])))
    moments, losses = [perf_counter()], []

    def epoch_done(epoch: int, history: Any) -> None:
        moments.append(perf_counter())
        losses.append(history.loss[-1][0])
        if epoch > EPOCHS or (epoch > 1 and moments[-1] - moments[1] > PATIENCE):
            raise _EnoughError

    with suppress(_EnoughError):
        train(network, structures, task, estimator._settings(len(graphs), 0), progress=epoch_done)
    return {
        "seconds": {"epochs": moments[-1] - moments[0]},
        "epoch": typical_step(moments),
        "epochs": len(losses) - 1,
        "networks": fitting[0],
        "losses": losses,
        "objects": sum(hierarchy.sizes),
        "entries": sum(relation.n_entries for relation in hierarchy.relations),
    }


def needed(estimator: SAENClassifier, hierarchy: Hierarchy) -> float:
    """Bytes that one network takes over a hierarchy, roughly: activations, then the relations."""
    layers = estimator._network(hierarchy, 1, [0]).architecture.layers
    per_object = [sum(layers[0])]
    for level, relation in enumerate(hierarchy.relations, start=1):
        per_object.append(relation.n_roles * layers[level - 1][-1] + sum(layers[level]))
    numbers = sum(n * width for n, width in zip(hierarchy.sizes, per_object, strict=True))
    return HELD * numbers * {"float32": 4, "float64": 8}[estimator.dtype]


# -- the part ----------------------------------------------------------------------------------


def run(settings: Settings) -> dict[str, Any]:
    """One row per dataset, and one pair of trainings in float64."""
    names, skipped = at_hand((*DATASETS, STAND_IN), settings)
    most = 0.7 * os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    memory = dict.fromkeys(names, most if settings.full else min(MEMORY, most))
    memory[STAND_IN] = most  # its uncompressed networks need more than the others
    rows = []
    for name in names:
        try:
            rows.append(_row(name, memory[name], settings))
        except MeasurementError as error:
            skipped.append({"what": name, "reason": f"failed: {error}"})
    document: dict[str, Any] = {"rows": rows, "checks": [], "skipped": skipped}
    for name in at_hand([EXACT], settings)[0]:
        document["exact"] = _exact(name, most)
    if not settings.quick:
        document["checks"] = [found for row in rows for found in _checks(row)]
    return document


def _row(name: str, memory: float, settings: Settings) -> dict[str, Any]:
    runs: dict[str, list[dict[str, Any]]] = {"uncompressed": [], "compressed": []}
    networks = NETWORKS[0]
    # Long epochs vary little: one process of several; `full` repeats the processes too.
    for _ in range(settings.repeats if settings.full else 1):
        for way, found in runs.items():
            collapsed = way == "compressed"
            made = measure(
                epochs,
                dataset=name,
                collapsed=collapsed,
                networks=networks,
                memory=1e18 if collapsed else memory,
                dtype="float32",
            )
            networks = made["networks"]  # the same on either side
            found.append(made)
    ways = {
        way: {
            **found[0],
            "epoch": median(run["epoch"] for run in found),
            "peak_memory_bytes": max(run["peak_memory_bytes"] for run in found),
            "runs": len(found),
        }
        for way, found in runs.items()
    }
    before, after = ways["uncompressed"], ways["compressed"]
    return {
        "dataset": name,
        "networks": networks,
        **ways,
        "loss_difference": _difference(before, after),
        "times_faster": before["epoch"] / after["epoch"],
        "times_less_memory": before["peak_memory_bytes"] / after["peak_memory_bytes"],
    }


def _exact(name: str, memory: float) -> dict[str, Any]:
    """Both ways in float64, one network: how far the losses are apart."""
    before, after = (
        measure(
            epochs, dataset=name, collapsed=collapsed, networks=1, memory=memory, dtype="float64"
        )
        for collapsed in (False, True)
    )
    both = {"uncompressed": before, "compressed": after}
    return {"dataset": name, **both, "loss_difference": _difference(before, after)}


def _difference(before: Mapping[str, Any], after: Mapping[str, Any]) -> float:
    """The largest difference of the losses over the epochs that both have."""
    pairs = zip(before["losses"], after["losses"], strict=False)
    return max(abs(one - other) for one, other in pairs)


def _checks(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    name = row["dataset"]
    if name not in FASTER:
        return []
    what = f"{name}, training compressed: faster than uncompressed"
    return [check(what, row["times_faster"], FASTER[name], "times", at_least=True)]


def markdown(document: Mapping[str, Any]) -> str:
    """The part's text."""
    rows = [
        (
            row["dataset"],
            f"{row['networks']}",
            f"{row['uncompressed']['entries']:,}",
            f"{row['compressed']['entries']:,}",
            f"{1e3 * row['uncompressed']['epoch']:.0f} ms",
            f"{1e3 * row['compressed']['epoch']:.1f} ms",
            quantity(row["times_faster"], "times"),
            quantity(row["uncompressed"]["peak_memory_bytes"], "bytes"),
            quantity(row["compressed"]["peak_memory_bytes"], "bytes"),
            f"{row['loss_difference']:.0e}",
        )
        for row in document["rows"]
    ]
    headings = ("dataset", "networks", "entries", "after", "epoch", "after", "faster")
    sections = [
        "One epoch of networks of the modern shape, full batch, float32, the same code and the "
        "same steps on the original and on the collapsed hierarchy: median of up to "
        f"{EPOCHS} epochs after the first. Ten networks at once, or as many as the memory that "
        "the run gives holds uncompressed, the same number on either side. Memory is the peak of "
        "the whole process. The last column is the largest difference of the losses.\n",
        table((*headings, "memory", "after", "Δ loss"), rows),
    ]
    if "exact" in document:
        exact = document["exact"]
        sections.append(
            f"In float64, one network on {exact['dataset']}: the losses of the epochs differ by "
            f"at most {exact['loss_difference']:.0e}.\n"
        )
    return "\n".join(sections)
