"""Whole cross-validations: on this machine, and as recorded on a GPU."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from typing import Any

from benchmarks.commands import command
from benchmarks.data import at_hand
from benchmarks.groups import grouped
from benchmarks.measure import ROOT, MeasurementError, measure
from benchmarks.report import check, quantity, table
from benchmarks.settings import Settings

TITLE = "Cross-validations from end to end"

SECONDS = {"MUTAG": 20, "IMDB-BINARY": 60, "COLLAB": 900}  # 10 x 10-fold, paper, two cores
EXTRAPOLATED = ("COLLAB",)  # in a run that is not full
AT_ONCE = 10
COMMAND = "saen evaluate {name} --preset paper --device cpu"
QUICK = " --repeats 1 --folds 2 --epochs 2"
RUNS = ROOT / "docs" / "results" / "runs" / "paper"
GPU = "H200"
GPU_SECONDS = {"COLLAB": 40, "DD": 60}
OTHER_GPU_SECONDS = 20


def run(settings: Settings) -> dict[str, Any]:
    """10 × 10-fold with the preset of the paper, here; and what the recorded runs took."""
    names, skipped = at_hand(tuple(SECONDS), settings)
    rows = []
    for name in names:
        try:
            if name in EXTRAPOLATED and not settings.full:
                rows.append(_extrapolated(name))
            else:
                rows.append(_whole(name, settings))
        except MeasurementError as error:
            skipped.append({"what": name, "reason": f"failed: {error}"})
    recorded = _recorded()
    checks = [] if settings.quick else _checks(rows, recorded)
    return {"rows": rows, "recorded": recorded, "checks": checks, "skipped": skipped}


def _whole(name: str, settings: Settings) -> dict[str, Any]:
    line = COMMAND.format(name=name) + (QUICK if settings.quick else "")
    with tempfile.TemporaryDirectory() as folder:
        found = measure(command, line=line, folder=folder)
    report = found.pop("printed")
    return {
        "dataset": name,
        "command": line,
        "seconds": found["seconds"]["total"],
        "cpu_seconds": found["cpu_seconds"],
        "peak_memory_bytes": found["peak_memory_bytes"],
        "accuracy": report["accuracy"]["mean"],
        "extrapolated": False,
    }


def _extrapolated(name: str) -> dict[str, Any]:
    """From a few epochs of a group: all networks take all epochs at that pace."""
    found = measure(
        grouped, dataset=name, preset="paper", repeats=10, device="cpu", at_once=AT_ONCE
    )
    training = found["networks"] * found["epochs"] * found["together"]
    return {
        "dataset": name,
        "command": COMMAND.format(name=name) + f" --at-once {AT_ONCE}",
        "seconds": found["seconds"]["load"] + found["seconds"]["prepare"] + training,
        "peak_memory_bytes": found["peak_memory_bytes"],
        "extrapolated": True,
    }


def _recorded() -> list[dict[str, Any]]:
    """10 × 10-fold runs on the GPU among the results that are kept."""
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
        checks.append(check(what, row["seconds"], SECONDS[row["dataset"]], "s"))
    for row in recorded:
        limit = GPU_SECONDS.get(row["dataset"], OTHER_GPU_SECONDS)
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
        "Whole commands, one run, from the parsed copy of the dataset. Extrapolated: loading and "
        f"compressing, then all networks for all epochs at the pace of a group of {AT_ONCE} over a "
        "few epochs; cutting batches and testing are left out.\n",
        table(("dataset", "command", "seconds", "CPU", "peak memory", "accuracy"), here, words=2),
    ]
    if recorded:
        sections += [
            "10 × 10-fold with the preset of the paper, as the runs under `docs/results/runs` "
            "recorded it:\n",
            table(("dataset", "device", "seconds", "of training", "accuracy"), recorded, words=2),
        ]
    return "\n".join(sections)
