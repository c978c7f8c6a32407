"""Cross-validations from end to end: on this machine, and as recorded on a GPU."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from typing import Any

from benchmarks.commands import evaluated
from benchmarks.data import available
from benchmarks.groups import grouped
from benchmarks.measure import ROOT, measure, measured
from benchmarks.report import check, quantity, table
from benchmarks.settings import Settings

TITLE = "Cross-validations from end to end"

MAX_SECONDS = {"MUTAG": 20, "IMDB-BINARY": 60, "COLLAB": 900}  # 10 x 10-fold, paper, two cores
EXTRAPOLATED = ("COLLAB",)  # unless the run is full
AT_ONCE = 10
COMMAND = "saen evaluate {name} --preset paper --device cpu"
QUICK = " --repeats 1 --folds 2 --epochs 2"
RUNS = ROOT / "docs" / "results" / "runs" / "paper"
GPU = "H200"
MAX_GPU_SECONDS = {"COLLAB": 40, "DD": 60}
MAX_GPU_SECONDS_OTHERS = 20


def run(settings: Settings) -> dict[str, Any]:
    """10 × 10-fold with the preset of the paper, here and in the recorded runs."""
    names, skipped = available(MAX_SECONDS, settings)
    extrapolated = () if settings.full else EXTRAPOLATED
    cases = {
        name: partial(_extrapolated if name in extrapolated else _complete, name, settings)
        for name in names
    }
    rows = measured(cases, skipped)
    recorded = _recorded()
    checks = [] if settings.quick else _checks(rows, recorded)
    return {"rows": rows, "recorded": recorded, "checks": checks, "skipped": skipped}


def _complete(name: str, settings: Settings) -> dict[str, Any]:
    line = COMMAND.format(name=name) + (QUICK if settings.quick else "")
    result = evaluated(line)
    return {"dataset": name, **result, "seconds": result["seconds"]["total"], "extrapolated": False}


def _extrapolated(name: str, settings: Settings) -> dict[str, Any]:
    """From a few epochs of one group to all epochs of all networks."""
    result = measure(
        grouped, dataset=name, preset="paper", repeats=10, device="cpu", at_once=AT_ONCE
    )
    training = result["networks"] * result["epochs"] * result["together"]
    return {
        "dataset": name,
        "command": COMMAND.format(name=name) + f" --at-once {AT_ONCE}",
        "seconds": result["seconds"]["load"] + training,
        "peak_memory_bytes": result["peak_memory_bytes"],
        "extrapolated": True,
    }


def _recorded() -> list[dict[str, Any]]:
    """The stored results of 10 × 10-fold runs on the GPU."""
    reports = [
        json.loads(path.read_text(encoding="utf-8")) for path in sorted(RUNS.glob("*/summary.json"))
    ]
    return [
        {
            "dataset": report["dataset"],
            "device": report["device"],
            "seconds": sum(report["seconds"].values()),
            "training": report["seconds"]["train"],
            "accuracy": report["accuracy"]["mean"],
        }
        for report in reports
        if GPU in report["device"]
        and (report["protocol"]["repeats"], report["protocol"]["folds"]) == (10, 10)
    ]


def _checks(rows: list[dict[str, Any]], recorded: list[dict[str, Any]]) -> list[dict[str, Any]]:
    checks = []
    for row in rows:
        what = f"{row['dataset']}, 10 × 10-fold, preset paper"
        what += ", extrapolated" if row["extrapolated"] else ""
        checks.append(check(what, row["seconds"], MAX_SECONDS[row["dataset"]], "s"))
    for row in recorded:
        limit = MAX_GPU_SECONDS.get(row["dataset"], MAX_GPU_SECONDS_OTHERS)
        what = f"{row['dataset']}, 10 × 10-fold, preset paper, one {GPU} (recorded)"
        checks.append(check(what, row["seconds"], limit, "s"))
    return checks


def markdown(document: Mapping[str, Any]) -> str:
    """The part's text."""
    here = [
        (
            row["dataset"],
            f"`{row['command']}`",
            quantity(row["seconds"], "s") + (" (extrapolated)" if row["extrapolated"] else ""),
            quantity(row["cpu_seconds"], "s") if "cpu_seconds" in row else "",
            quantity(row["peak_memory_bytes"], "bytes"),
            f"{100 * row['accuracy']:.1f} %" if "accuracy" in row else "",
        )
        for row in document["rows"]
    ]
    recorded = [
        (
            row["dataset"],
            row["device"],
            quantity(row["seconds"], "s"),
            quantity(row["training"], "s"),
            f"{100 * row['accuracy']:.1f} %",
        )
        for row in document["recorded"]
    ]
    sections = [
        "Whole commands, one run, from the cached parse of the dataset. Extrapolated: loading and "
        f"compressing, then all networks for all epochs at the speed of a group of {AT_ONCE} over "
        "a few epochs; cutting batches and testing are left out.\n",
        table(("dataset", "command", "seconds", "CPU", "peak memory", "accuracy"), here, words=2),
    ]
    if recorded:
        sections += [
            "10 × 10-fold with the preset of the paper, as the runs under `docs/results/runs` "
            "recorded it:\n",
            table(("dataset", "device", "seconds", "of training", "accuracy"), recorded, words=2),
        ]
    return "\n".join(sections)
