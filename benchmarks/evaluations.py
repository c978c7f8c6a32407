"""Cross-validations from end to end, on a CPU; `reproduction` has those on a GPU."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from benchmarks.commands import evaluated
from benchmarks.data import available
from benchmarks.groups import grouped
from benchmarks.measure import measure, measured
from benchmarks.report import check, quantity, table
from benchmarks.settings import Settings

TITLE = "Cross-validations from end to end"

MAX_SECONDS = {"MUTAG": 20, "IMDB-BINARY": 60, "COLLAB": 900}  # 10 x 10-fold, paper, two cores
EXTRAPOLATED = ("COLLAB",)  # unless the run is full
AT_ONCE = 10
COMMAND = "saen evaluate {name} --preset paper --device cpu"
QUICK = " --repeats 1 --folds 2 --epochs 2"


def run(settings: Settings) -> dict[str, Any]:
    """10 × 10-fold with the preset of the paper."""
    names, skipped = available(MAX_SECONDS, settings)
    extrapolated = () if settings.full else EXTRAPOLATED
    cases = {
        name: partial(_extrapolated if name in extrapolated else _complete, name, settings)
        for name in names
    }
    rows = measured(cases, skipped)
    checks = [] if settings.quick else _checks(rows)
    return {"rows": rows, "checks": checks, "skipped": skipped}


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
        "command": COMMAND.format(name=name) + f" --parallel-models {AT_ONCE}",
        "seconds": result["seconds"]["load"] + training,
        "peak_memory_bytes": result["peak_memory_bytes"],
        "extrapolated": True,
    }


def _checks(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    checks = []
    for row in rows:
        what = f"{row['dataset']}, 10 × 10-fold, preset paper"
        what += ", extrapolated" if row["extrapolated"] else ""
        checks.append(check(what, row["seconds"], MAX_SECONDS[row["dataset"]], "s"))
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
    sections = (
        "Whole commands, one run, from the cached parse of the dataset. Extrapolated: loading and "
        f"compressing, then all networks for all epochs at the speed of a group of {AT_ONCE} over "
        "a few epochs; cutting batches and testing are left out.\n",
        table(("dataset", "command", "seconds", "CPU", "peak memory", "accuracy"), here, words=2),
    )
    return "\n".join(sections)
