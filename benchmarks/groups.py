"""A hundred trainings in groups against a hundred one after another."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.data import at_hand, classifier, collection, typical_step
from benchmarks.measure import MeasurementError, Stopwatch, measure
from benchmarks.report import check, quantity, table
from benchmarks.settings import Settings

TITLE = "A hundred trainings in groups"

PRESETS = ("paper", "modern")
DATASETS = ("MUTAG", "PTC", "IMDB-BINARY", "IMDB-MULTI")
FULL = (*DATASETS, "PROTEINS", "NCI1", "REDDIT-BINARY", "COLLAB", "DD")
FASTER = {"MUTAG": 8, "PTC": 6, "IMDB-BINARY": 3, "IMDB-MULTI": 3}  # preset paper, two cores
FASTER_GPU = 20  # for all
EPOCHS = 7  # that are timed, the first of them for warming up


# -- what is measured, each in its own process -------------------------------------------------


def grouped(
    dataset: str, preset: str, repeats: int, device: str, at_once: int | None = None
) -> dict[str, Any]:
    """Seconds of an epoch of one network, and of the group that `saen evaluate` would train.

    `at_once` is the size of the group where it is not to be chosen by timing.
    """
    from saen.learning.splits import make_splits
    from saen.network.ensemble import Trainer, Training

    watch = Stopwatch()
    graphs = watch("load", collection, dataset)
    estimator = classifier(dataset, preset, device=device)
    classes, targets = np.unique(np.asarray(graphs.targets), return_inverse=True)
    trainings = [
        Training((repeat, fold), train, test)
        for repeat, parts in enumerate(make_splits(targets, repeats, 10, seed=0))
        for fold, (train, test) in enumerate(parts)
    ]
    runs = [
        (training, model)
        for training in range(len(trainings))
        for model in range(estimator.n_models)
    ]
    with tempfile.TemporaryDirectory() as folder:
        trainer = Trainer(graphs, targets, classes, 0, at_once, Path(folder), None)
        compressed = watch("prepare", trainer.prepare, estimator)

        def epoch(size: int) -> float:
            moments = [0.0]
            trainer._group(
                "timing", estimator, compressed, trainings, runs[:size], until=EPOCHS, times=moments
            )
            return typical_step(moments)

        size = watch("choose", trainer._group_size, "fixed", estimator, compressed, trainings, runs)
        alone = watch("alone", epoch, 1)
        together = watch("together", epoch, size)
    return {
        "seconds": watch.seconds,
        "networks": len(runs),
        "at_once": size,
        "alone": alone,
        "together": together / size,
        "epochs": estimator.epochs,
    }


# -- the part ----------------------------------------------------------------------------------


def run(settings: Settings) -> dict[str, Any]:
    """One row per dataset and preset, on the GPU where there is one."""
    import torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    names, skipped = at_hand(FULL if settings.full else DATASETS, settings)
    if not settings.full and not settings.quick:
        others = ", ".join(name for name in FULL if name not in DATASETS)
        skipped.append({"what": others, "reason": "minutes of timing: --full"})
    rows = []
    for preset in PRESETS:
        for name in names:
            try:
                repeats = 2 if settings.quick else 10
                found = measure(
                    grouped, dataset=name, preset=preset, repeats=repeats, device=device
                )
                times = found["alone"] / found["together"]
                rows.append({"dataset": name, "preset": preset, **found, "times_faster": times})
            except MeasurementError as error:
                skipped.append({"what": f"{name}, {preset}", "reason": f"failed: {error}"})
    checks = [] if settings.quick else _checks(rows, device)
    return {"rows": rows, "device": device, "checks": checks, "skipped": skipped}


def _checks(rows: list[dict[str, Any]], device: str) -> list[dict[str, Any]]:
    checks = []
    for row in rows:
        target = FASTER_GPU if device == "cuda" else FASTER.get(row["dataset"])
        if row["preset"] == "paper" and target:
            what = f"{row['dataset']}, preset paper: 100 trainings faster in groups ({device})"
            checks.append(check(what, row["times_faster"], target, "times", at_least=True))
    if rows:
        least = min(rows, key=lambda row: row["times_faster"])
        what = f"the least of all: {least['dataset']}, preset {least['preset']} ({device})"
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
    headings = ("dataset", "preset", "networks", "epoch alone", "at once", "epoch in the group")
    return "\n".join(
        [
            "The networks of a 10 × 10-fold cross-validation (modern trains three for each "
            "training), with the batch size of the preset. One after another is an epoch of one "
            "network alone, times their number; in groups is an epoch of a group of the size that "
            "`saen evaluate` chooses by timing, divided by its size; medians over epochs, on "
            f"{document['device']}.\n",
            table((*headings, "faster"), rows, words=2),
        ]
    )
