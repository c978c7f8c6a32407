"""The accuracy column of the paper, all eleven datasets in one process, from the cached parse."""

from __future__ import annotations

from collections.abc import Mapping
from time import perf_counter
from typing import Any

from benchmarks.data import THREADS, available
from benchmarks.measure import MeasurementError, measure
from benchmarks.report import check, quantity, table
from benchmarks.settings import Settings

TITLE = "The paper's experiments in one process"

SOCIAL = (
    "COLLAB",
    "IMDB-BINARY",
    "IMDB-MULTI",
    "REDDIT-BINARY",
    "REDDIT-MULTI-5K",
    "REDDIT-MULTI-12K",
)
OTHERS = ("MUTAG", "PTC", "NCI1", "PROTEINS", "DD")
ALONE = "IMDB-BINARY"
MAX_SECONDS = {"cuda": 60, "cpu": 900}  # all eleven; on a CPU the social networks
MAX_SECONDS_ALONE = {"cuda": 6}


# -- what is measured, in its own process ------------------------------------------------------


def reproduce(datasets: list[str], device: str, quick: bool = False) -> dict[str, Any]:
    """Seconds from the first import to the last summary of 10 × 10-fold, preset paper."""
    import tempfile
    from pathlib import Path

    start = perf_counter()
    import json

    from saen.paper.reproduce import Run, make_runs

    began: dict[str, float] = {"imports": start}
    with tempfile.TemporaryDirectory() as folder:
        run = Run("paper", 1, overrides={"epochs": 2}) if quick else Run("paper", 10)
        missing = [(name, run, Path(folder) / name) for name in datasets]
        make_runs(
            missing, device, lambda line: began.update({line.partition(":")[0]: perf_counter()})
        )
        end = perf_counter()
        summaries = {
            name: json.loads((place / "summary.json").read_text("utf-8"))
            for name, _, place in missing
        }
    moments = [*began.values(), end]
    return {
        "seconds": {name: moments[i + 1] - moments[i] for i, name in enumerate(began)},
        "accuracies": {name: each["accuracy"]["mean"] for name, each in summaries.items()},
        "training": {name: each["seconds"]["train"] for name, each in summaries.items()},
    }


def parse(datasets: list[str]) -> dict[str, Any]:
    """Fill the cache."""
    from saen import load_dataset

    start = perf_counter()
    for name in datasets:
        load_dataset(name)
    return {"seconds": {"parse": perf_counter() - start}}


# -- the part ----------------------------------------------------------------------------------


def run(settings: Settings) -> dict[str, Any]:
    """On a GPU all datasets, and one alone; on a CPU the social networks, if the run is full."""
    import torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    names, skipped = available((*SOCIAL, *OTHERS) if device == "cuda" else SOCIAL, settings)
    document: dict[str, Any] = {"device": device, "rows": [], "checks": [], "skipped": skipped}
    if device == "cpu" and not (settings.full or settings.quick):
        skipped.append({"what": "the social networks", "reason": "a quarter of an hour: --full"})
        return {**document, "left_to_full_runs": True}
    try:
        if names != [THREADS]:
            measure(parse, datasets=names)
        if device == "cuda" and ALONE in names:
            alone = measure(reproduce, datasets=[ALONE], device=device)
            document["rows"].append({"what": ALONE, **alone})
        together = measure(reproduce, datasets=names, device=device, quick=settings.quick)
        document["rows"].append({"what": f"all {len(names)}", **together})
    except MeasurementError as error:
        skipped.append({"what": device, "reason": f"failed: {error}"})
    if not settings.quick:
        limits = (MAX_SECONDS_ALONE, MAX_SECONDS) if len(document["rows"]) > 1 else (MAX_SECONDS,)
        document["checks"] = [
            check(
                f"{row['what']}, 10 × 10-fold, preset paper ({device})",
                row["seconds"]["total"],
                limit[device],
                "s",
            )
            for row, limit in zip(document["rows"], limits, strict=True)
        ]
    return document


def markdown(document: Mapping[str, Any]) -> str:
    """The part's text."""
    sections = []
    for row in document["rows"]:
        steps = [
            (
                name,
                quantity(seconds, "s"),
                quantity(row["training"][name], "s") if name in row["training"] else "",
                f"{100 * row['accuracies'][name]:.1f} %" if name in row["accuracies"] else "",
            )
            for name, seconds in row["seconds"].items()
        ]
        sections += [
            f"{row['what']}, on {document['device']}:\n",
            table(("step", "seconds", "of training", "accuracy"), steps),
        ]
    if not sections:
        return ""
    return "\n".join(
        [
            "What `saen reproduce accuracy` does for the preset of the paper, 10 × 10-fold, in one "
            "process, imports included. Each dataset is loaded, decomposed and compressed while "
            "the one before is trained on; the step of a dataset begins when its training "
            "begins.\n",
            *sections,
        ]
    )
