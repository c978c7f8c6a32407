"""Training on compressed hierarchies against training on the original ones."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, Any

from benchmarks.data import LARGEST, available, load_problem, typical_step
from benchmarks.measure import measure, measured
from benchmarks.report import GB, check, quantity, table
from benchmarks.settings import Settings

if TYPE_CHECKING:
    from saen.data.hierarchy import Hierarchy
    from saen.network.ensemble import Plan

TITLE = "Compressed against uncompressed"

MIN_SPEEDUP = {"COLLAB": 8, "REDDIT-BINARY": 8, "IMDB-BINARY": 10, "IMDB-MULTI": 10, "NCI1": 15}
FURTHER = ("PROTEINS", "DD", LARGEST)  # in a full run
EXACT = "MUTAG"  # where the losses of both are compared in float64
NETWORKS = (10, 5, 3, 2, 1)
MAX_MEMORY = 10 * GB  # for the uncompressed networks, unless the run is full
NUMBERS_PER_ACTIVATION = 2.5  # in memory at once, gradients and scratch included
EPOCHS = 3  # after the first
MAX_SECONDS = 10.0  # after which no further epoch begins


class _EnoughError(Exception):
    """Ends a training between two epochs."""


# -- what is measured, each in its own process -------------------------------------------------


def epochs(
    dataset: str, compressed: bool, networks: int, memory: float, dtype: str
) -> dict[str, Any]:
    """Seconds of each epoch of networks, full batch: as many as fit into `memory`."""
    from saen.network.training import train

    problem = load_problem(dataset, "network", dtype=dtype, batch_size="all")
    plan = problem.plan
    data: Any = plan.compressed if compressed else problem.decomposition.decompose(problem.graphs)
    hierarchy = plan.compressed.hierarchy if compressed else data
    per_network = memory_per_network(plan, hierarchy)
    fitting = [n for n in NETWORKS if n <= networks and n * per_network <= memory]
    if not fitting:
        raise MemoryError(
            f"one network needs about {per_network / GB:.0f} GB, {memory / GB:.0f} allowed"
        )
    network = plan.network(range(fitting[0]))
    moments, losses = [perf_counter()], []

    def epoch_done(epoch: int, history: Any) -> None:
        moments.append(perf_counter())
        losses.append(history.loss[-1][0])
        if epoch > EPOCHS or (epoch > 1 and moments[-1] - moments[1] > MAX_SECONDS):
            raise _EnoughError

    with suppress(_EnoughError):
        train(
            network,
            data,
            problem.task(fitting[0]),
            plan.settings,
            n_batches=problem.n_batches,
            progress=epoch_done,
        )
    return {
        "seconds": {"epochs": moments[-1] - moments[0]},
        "epoch": typical_step(moments),
        "epochs": len(losses) - 1,
        "networks": fitting[0],
        "losses": losses,
        "objects": sum(hierarchy.sizes),
        "entries": sum(relation.n_entries for relation in hierarchy.relations),
    }


def memory_per_network(plan: Plan, hierarchy: Hierarchy) -> float:
    """Bytes that one network needs over a hierarchy, roughly."""
    layers = plan.architecture.layers
    per_object = [sum(layers[0])]
    for level, relation in enumerate(hierarchy.relations, start=1):
        per_object.append(relation.n_roles * layers[level - 1][-1] + sum(layers[level]))
    numbers = sum(n * width for n, width in zip(hierarchy.sizes, per_object, strict=True))
    return NUMBERS_PER_ACTIVATION * numbers * plan.dtype.itemsize


# -- the part ----------------------------------------------------------------------------------


def run(settings: Settings) -> dict[str, Any]:
    """One row per dataset, and one pair of trainings in float64."""
    names, skipped = available(MIN_SPEEDUP, settings, further=FURTHER)
    most = 0.7 * os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    memory = dict.fromkeys(names, most if settings.full else min(MAX_MEMORY, most))
    memory[LARGEST] = most  # its uncompressed networks need more than the others
    cases = {name: partial(_row, name, memory[name], settings) for name in names}
    rows = measured(cases, skipped)
    document: dict[str, Any] = {"rows": rows, "checks": [], "skipped": skipped}
    exact = {name: partial(_exact, name, most) for name in available([EXACT], settings)[0]}
    for result in measured(exact, skipped):
        document["exact"] = result
    if not settings.quick:
        document["checks"] = [check for row in rows for check in _checks(row)]
    return document


def _row(name: str, memory: float, settings: Settings) -> dict[str, Any]:
    runs: dict[str, list[dict[str, Any]]] = {"uncompressed": [], "compressed": []}
    networks = NETWORKS[0]
    # Long epochs vary little, so one process is enough; `full` repeats the processes too.
    for _ in range(settings.repeats if settings.full else 1):
        for way, results in runs.items():
            result = measure(
                epochs,
                dataset=name,
                compressed=way == "compressed",
                networks=networks,
                memory=1e18 if way == "compressed" else memory,
                dtype="float32",
            )
            networks = result["networks"]  # the same on either side
            results.append(result)
    ways = {
        way: {
            **results[0],
            "epoch": median(result["epoch"] for result in results),
            "peak_memory_bytes": max(result["peak_memory_bytes"] for result in results),
            "runs": len(results),
        }
        for way, results in runs.items()
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
    """The difference of the losses in float64, one network."""
    before, after = (
        measure(
            epochs, dataset=name, compressed=compressed, networks=1, memory=memory, dtype="float64"
        )
        for compressed in (False, True)
    )
    both = {"uncompressed": before, "compressed": after}
    return {"dataset": name, **both, "loss_difference": _difference(before, after)}


def _difference(before: Mapping[str, Any], after: Mapping[str, Any]) -> float:
    """The largest difference of the losses over the epochs that both have."""
    pairs = zip(before["losses"], after["losses"], strict=False)
    return max(abs(one - other) for one, other in pairs)


def _checks(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    name = row["dataset"]
    if name not in MIN_SPEEDUP:
        return []
    what = f"{name}, training compressed: faster than uncompressed"
    return [check(what, row["times_faster"], MIN_SPEEDUP[name], "times", at_least=True)]


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
        "One epoch of networks with the preset network, full batch, float32, with the same code on "
        f"the original and on the compressed hierarchy: median of up to {EPOCHS} epochs after the "
        "first. Ten networks at once, or as many as fit into memory uncompressed, the same number "
        "on either side. Memory is the peak of the process. The last column is the largest "
        "difference of the losses.\n",
        table((*headings, "memory", "after", "Δ loss"), rows),
    ]
    if "exact" in document:
        exact = document["exact"]
        sections.append(
            f"In float64, one network on {exact['dataset']}: the losses of the epochs differ by "
            f"at most {exact['loss_difference']:.0e}.\n"
        )
    return "\n".join(sections)
