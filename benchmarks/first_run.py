"""The first evaluation on a machine, and the next ones: whole processes, Python included."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

from benchmarks.data import available
from benchmarks.measure import ROOT, MeasurementError, measure, measured
from benchmarks.report import quantity, table
from benchmarks.settings import Settings

TITLE = "The first evaluation on a machine"

DATASET = "IMDB-BINARY"
COMMANDS = ("evaluate {name} --preset paper",)
FURTHER = ("evaluate {name} --repeats 1",)  # in a full run
QUICK = " --folds 2 --budget quick"


def first_and_next(line: str, repeats: int) -> dict[str, Any]:
    """Seconds of a command without bytecode, parsed data and compiled kernels, and with them."""
    seconds, reports = [], []
    with tempfile.TemporaryDirectory() as folder:
        caches = {
            "PYTHONPYCACHEPREFIX": "bytecode",
            "SAEN_CACHE": "parsed",
            "CUDA_CACHE_PATH": "kernels",
        }
        environment = {**os.environ, **{key: f"{folder}/{name}" for key, name in caches.items()}}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        for number in range(repeats + 1):
            command = [sys.executable, "-m", "saen", *line.split(), "--json"]
            start = perf_counter()
            done = subprocess.run(
                [*command, "--out", str(Path(folder) / str(number))],
                cwd=ROOT,
                env=environment,
                capture_output=True,
                text=True,
                check=False,
            )
            seconds.append(perf_counter() - start)
            if done.returncode:
                raise MeasurementError(done.stderr.strip().splitlines()[-1])
            reports.append(json.loads(done.stdout))
    return {
        "seconds": {"first": seconds[0], "next": median(seconds[1:])},
        "train": [report["seconds"]["train"] for report in reports],
        "device": reports[0]["device"],
        "accuracy": reports[0]["accuracy"]["mean"],
    }


def run(settings: Settings) -> dict[str, Any]:
    """One row per command, on the GPU if there is one."""
    names, skipped = available((DATASET,), settings)
    lines = (*COMMANDS, *FURTHER) if settings.full else COMMANDS
    if settings.quick:
        lines = tuple(line + QUICK for line in FURTHER)
    cases = {
        line: partial(_row, line, settings.repeats)
        for line in (line.format(name=name) for name in names for line in lines)
    }
    return {"rows": measured(cases, skipped), "checks": [], "skipped": skipped}


def _row(line: str, repeats: int) -> dict[str, Any]:
    result = measure(first_and_next, line=line, repeats=min(repeats, 2))
    return {"command": f"saen {line}", **result}


def markdown(document: Mapping[str, Any]) -> str:
    """The part's text."""
    rows = [
        (
            f"`{row['command']}`",
            row["device"],
            quantity(row["seconds"]["first"], "s"),
            quantity(row["train"][0], "s"),
            quantity(row["seconds"]["next"], "s"),
            quantity(row["train"][-1], "s"),
            f"{100 * row['accuracy']:.1f} %",
        )
        for row in document["rows"]
    ]
    return "\n".join(
        [
            "Whole processes. First: no bytecode of any library, no parsed dataset and no compiled "
            "kernels of CUDA's own cache; the files of the libraries may have been read before. "
            "Next: the median of later ones, with what the first has left.\n",
            table(
                (
                    "command",
                    "device",
                    "first",
                    "of training",
                    "next",
                    "of training",
                    "accuracy",
                ),
                rows,
                words=2,
            ),
        ]
    )
