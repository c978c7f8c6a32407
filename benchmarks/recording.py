"""Epochs of the networks that `saen` trains by default, with and without CUDA graphs."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.data import LARGEST, available, dataset_graphs, typical_step
from benchmarks.measure import Stopwatch, measure, measured
from benchmarks.report import quantity, table
from benchmarks.settings import Settings

if TYPE_CHECKING:
    from saen.learning.models.networks import NetworkLearner

TITLE = "Recorded training steps"

DATASETS = ("COLLAB", LARGEST, "NCI1", "PROTEINS")  # the last has attributes
WIDTHS, ALL_WIDTHS = (32,), (8, 16, 32, 64)  # the default; those of a full run
EPOCHS = 6  # the first is eager and the second records
FOLDS = 10


# -- what is measured, in its own process ------------------------------------------------------


def epochs(dataset: str, widths: list[int], device: str, folds: int) -> dict[str, Any]:
    """Seconds of an epoch of all networks of ten folds, for layers of every width."""
    from unittest.mock import patch

    from saen.learning.decomposing import Decompositions
    from saen.learning.problem import Problem
    from saen.learning.splits import Fold, make_splits
    from saen.network.cuda_graphs import Recorder
    from saen.network.ensemble import Training, choose_group_size
    from saen.network.loss import Task

    watch, graphs = Stopwatch(), dataset_graphs(dataset)
    data, every = Decompositions(graphs), np.arange(len(graphs))
    problem = Problem.of(graphs.targets, regression=False)
    name, learner = first_networks(data, device)
    compressed = watch("compress", lambda: data.decomposed(learner.spec, every)).compressed
    runs = [
        run
        for train, test in make_splits(problem.values, 1, folds, seed=0)[0]
        for run in learner._runs(
            Fold(train, test).split_inside(problem, learner.arguments.inner_folds, 0), 0
        )
    ]
    runs = [run for run in runs if run.n_batches == runs[0].n_batches]  # nearly always all
    task = Task.classification(problem.values)

    def eager(_: Recorder, number: int, run: Any) -> None:
        run()

    def seconds(plan: Any, recorded: bool) -> float:
        # The networks of several groups come one after another: only the first is timed.
        size = choose_group_size(plan, len(runs), runs[0].n_batches)
        moments = [perf_counter()]
        training = Training(
            plan,
            task,
            runs[:size],
            until=EPOCHS,
            group_size=size,
            progress=lambda _: moments.append(perf_counter()),
        )
        with nullcontext() if recorded else patch.object(Recorder, "step", eager):
            training.run()
        return typical_step(moments[1:]) / size

    rows = []
    for width in widths:
        sized = resized(learner, width, compressed.hierarchy.depth)
        plan = sized.plan(compressed, task.n_outputs, 0)
        row = {
            "width": width,
            "recorded": watch(f"{width}, recorded", seconds, plan, True),
            "eager": watch(f"{width}, eager", seconds, plan, False),
            "at_once": choose_group_size(plan, len(runs), runs[0].n_batches),
        }
        rows.append(row)
    return {
        "seconds": watch.seconds,
        "dataset": dataset,
        "candidate": name,
        "networks": len(runs),
        "steps": runs[0].n_batches,
        "widths": rows,
    }


def first_networks(data: Any, device: str) -> tuple[str, NetworkLearner]:
    """The first networks among the candidates of a blend, where it tries any by default."""
    from saen.learning.candidates import default_candidates
    from saen.learning.models.networks import NetworkLearner

    return next(
        (candidate.title, candidate.learner)
        for budget in ("normal", "thorough")
        for candidate in default_candidates(
            data, np.arange(len(data)), budget=budget, device=device
        )
        if isinstance(candidate.learner, NetworkLearner)
    )


def resized(learner: NetworkLearner, width: int, depth: int) -> NetworkLearner:
    """The same with wider or narrower layers: 32 is what `auto` means."""
    from saen.learning import auto

    hidden = [[size * width // 32 for size in sizes] for sizes in auto.hidden(depth)]
    return replace(learner, arguments=replace(learner.arguments, hidden=hidden))


# -- the part ----------------------------------------------------------------------------------


def run(settings: Settings) -> dict[str, Any]:
    """Only where there is a GPU; a quick run is a test of the code on any machine."""
    import torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    document: dict[str, Any] = {"device": device, "rows": [], "checks": [], "skipped": []}
    if device == "cpu" and not settings.quick:
        document["skipped"] = [{"what": TITLE, "reason": "no GPU"}]
        return {**document, "left_to_full_runs": True}
    names, document["skipped"] = available(DATASETS, settings)
    widths, folds = ALL_WIDTHS if settings.full else WIDTHS, FOLDS
    if settings.quick:
        widths, folds = ALL_WIDTHS[:1], 2
    cases = {
        name: partial(
            measure, epochs, dataset=name, widths=list(widths), device=device, folds=folds
        )
        for name in names
    }
    document["rows"] = measured(cases, document["skipped"])
    return document


def markdown(document: Mapping[str, Any]) -> str:
    """The part's text."""
    if not document["rows"]:
        return ""
    rows = [
        (
            row["dataset"],
            row["candidate"],
            str(each["width"]),
            f"{each['at_once']} of {row['networks']}",
            str(row["steps"]),
            f"{1e3 * each['eager'] * each['at_once']:.0f} ms",
            f"{1e3 * each['recorded'] * each['at_once']:.0f} ms",
            quantity(each["eager"] / each["recorded"], "times"),
        )
        for row in document["rows"]
        for each in row["widths"]
    ]
    return "\n".join(
        [
            "An epoch of the networks that a blend tries first (budget `normal`, or `thorough` "
            "where that tries none), for all ten folds of a cross-validation side by side, as many "
            "as fit into memory: every step run by PyTorch as it comes, and recorded once as a "
            "CUDA graph, then replayed. Median of the epochs after the recording, on "
            f"{document['device']}. A width of 32 is the default.\n",
            table(
                (
                    "dataset",
                    "networks",
                    "width",
                    "at once",
                    "steps",
                    "eager",
                    "recorded",
                    "faster",
                ),
                rows,
                words=2,
            ),
        ]
    )
