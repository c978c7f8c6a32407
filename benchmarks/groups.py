"""A hundred trainings in groups against a hundred one after another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.data import available, classifier, load_problem, typical_step
from benchmarks.measure import Stopwatch, measure, measured
from benchmarks.report import check, quantity, table
from benchmarks.settings import Settings

TITLE = "A hundred trainings in groups"

PRESETS = ("paper", "network")
DATASETS = ("MUTAG", "PTC", "IMDB-BINARY", "IMDB-MULTI")
FULL = (*DATASETS, "PROTEINS", "NCI1", "REDDIT-BINARY", "COLLAB", "DD")
MIN_SPEEDUP = {"MUTAG": 8, "PTC": 6, "IMDB-BINARY": 3, "IMDB-MULTI": 3}  # preset paper, two cores
MIN_SPEEDUP_GPU = 20  # all datasets
EPOCHS = 7  # that are timed, the first of them as warm-up


# -- what is measured, each in its own process -------------------------------------------------


def grouped(
    dataset: str, preset: str, repeats: int, device: str, at_once: int | None = None
) -> dict[str, Any]:
    """Seconds of an epoch of one network, and of the group that `saen evaluate` would train.

    `at_once` is the size of the group, by default that of `saen evaluate`.
    """
    from saen.learning.problem import Problem
    from saen.learning.splits import Fold, make_splits
    from saen.network.ensemble import choose_group_size
    from saen.network.training import train

    watch = Stopwatch()
    problem = watch("load", lambda: load_problem(dataset, preset, device=device))
    plan, n = problem.plan, len(problem.graphs)
    estimator = classifier(dataset, preset)
    targets = Problem.of(problem.codes, regression=False)
    runs = [
        run
        for parts in make_splits(problem.codes, repeats, 10, seed=0)
        for train_part, test in parts
        for run in estimator.learner()._runs(
            Fold(train_part, test).split_inside(targets, estimator.inner_folds, 0), 0
        )
    ]
    n_networks = len(runs)
    weights = np.zeros((n, n_networks))
    for column, each in enumerate(runs):
        weights[each.train, column] = 1.0

    def epoch(size: int) -> float:
        moments = [perf_counter()]
        train(
            plan.network(range(size)),
            plan.compressed,
            replace(problem.task(size), weights=weights[:, :size]),
            plan.settings,
            min_count=plan.min_count,
            until=EPOCHS,
            n_batches=runs[0].n_batches,
            progress=lambda *_: moments.append(perf_counter()),
        )
        return typical_step(moments)

    size = at_once or choose_group_size(plan, n_networks, runs[0].n_batches)
    alone = watch("alone", epoch, 1)
    together = watch("together", epoch, size)
    return {
        "seconds": watch.seconds,
        "networks": n_networks,
        "at_once": size,
        "alone": alone,
        "together": together / size,
        "epochs": plan.settings.epochs,
    }


# -- the part ----------------------------------------------------------------------------------


def run(settings: Settings) -> dict[str, Any]:
    """One row per dataset and preset, on the GPU if there is one."""
    import torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    names, skipped = available(FULL if settings.full else DATASETS, settings)
    if not settings.full and not settings.quick:
        others = ", ".join(name for name in FULL if name not in DATASETS)
        skipped.append({"what": others, "reason": "takes minutes: --full"})
    repeats = 2 if settings.quick else 10
    cases = {
        f"{name}, {preset}": partial(_row, name, preset, repeats, device)
        for preset in PRESETS
        for name in names
    }
    rows = measured(cases, skipped)
    checks = [] if settings.quick else _checks(rows, device)
    return {"rows": rows, "device": device, "checks": checks, "skipped": skipped}


def _row(name: str, preset: str, repeats: int, device: str) -> dict[str, Any]:
    result = measure(grouped, dataset=name, preset=preset, repeats=repeats, device=device)
    speedup = result["alone"] / result["together"]
    return {"dataset": name, "preset": preset, **result, "times_faster": speedup}


def _checks(rows: list[dict[str, Any]], device: str) -> list[dict[str, Any]]:
    checks = []
    for row in rows:
        target = MIN_SPEEDUP_GPU if device == "cuda" else MIN_SPEEDUP.get(row["dataset"])
        if row["preset"] == "paper" and target:
            what = f"{row['dataset']}, preset paper: 100 trainings faster in groups ({device})"
            checks.append(check(what, row["times_faster"], target, "times", at_least=True))
    if rows:
        least = min(rows, key=lambda row: row["times_faster"])
        what = f"the smallest speedup: {least['dataset']}, preset {least['preset']} ({device})"
        checks.append(check(what, least["times_faster"], 1, "times", at_least=True))
    return checks


def markdown(document: Mapping[str, Any]) -> str:
    """The part's text."""
    rows = [
        (
            row["dataset"],
            row["preset"],
            f"{row['networks']}",
            f"{1e3 * row['alone']:.1f} ms",
            f"{row['at_once']}",
            f"{1e3 * row['together']:.2f} ms",
            quantity(row["times_faster"], "times"),
        )
        for row in document["rows"]
    ]
    headings = ("dataset", "preset", "networks", "epoch alone", "group size", "epoch in the group")
    return "\n".join(
        [
            "The networks of a 10 × 10-fold cross-validation (network trains one per inner fold), "
            "with the batch size of the preset. One after another: an epoch of one network alone, "
            "times their number. In groups: an epoch of a group of the size that `saen evaluate` "
            f"uses, divided by its size. Medians over epochs, on {document['device']}.\n",
            table((*headings, "faster"), rows, words=2),
        ]
    )
