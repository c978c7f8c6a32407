"""`python -m benchmarks [PART ...]`."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks import (
    cluster,
    commands,
    compression,
    evaluations,
    first_run,
    floor,
    gpu_peers,
    groups,
    growth,
    huge,
    large,
    machine,
    peers,
    pipeline,
    prediction,
    recording,
    report,
    reproduction,
    scale,
    serving,
    startup,
    steps,
    streams,
)
from benchmarks.measure import ROOT, say, stop_after
from benchmarks.settings import DATASETS, QUICK_DATASETS, Settings
from saen import catalog

PARTS = {
    "pipeline": pipeline,
    "scale": scale,
    "huge": huge,
    "compression": compression,
    "groups": groups,
    "evaluations": evaluations,
    "reproduction": reproduction,
    "peers": peers,
    "floor": floor,
    "steps": steps,
    "prediction": prediction,
    "serving": serving,
    "streams": streams,
    "large": large,
    "startup": startup,
    "commands": commands,
    "first_run": first_run,
    "recording": recording,
    "gpu_peers": gpu_peers,
    "cluster": cluster,
    "growth": growth,
}
LONG = ("cluster", "growth")
"""Parts that take many minutes: only if they are named, or in a full run."""
GPU = ("first_run", "recording", "gpu_peers", "steps")
"""Parts that `gpu` stands for."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure the parts that were asked for and write the report."""
    names, settings = _settings(arguments)
    settings.out.mkdir(parents=True, exist_ok=True)
    document = _earlier(settings)
    commit = machine.commit()
    failed = []
    for name in names:
        say(PARTS[name].TITLE)
        start, before = perf_counter(), os.getloadavg()[0]
        try:
            part = PARTS[name].run(settings)
        except Exception as error:  # the other parts are measured all the same
            failed.append(f"{name}: {type(error).__name__}: {error}")
            say(f"failed: {failed[-1]}")
            continue
        # What only full runs measure stays as one of them left it.
        if not (part.pop("left_to_full_runs", False) and name in document["parts"]):
            document["parts"][name] = {
                "date": date.today().isoformat(),
                "commit": commit,
                "wall_seconds": perf_counter() - start,
                "load_average": {"before": before, "after": os.getloadavg()[0]},
                **part,
            }
        # After every part: an interrupted run keeps what it has.
        report.write(document, PARTS, settings.out)
    print(report.markdown(document, PARTS))
    for line in report.missed(document):
        say(line)
    if failed:
        sys.exit(f"not measured: {'; '.join(failed)}")


def _settings(arguments: Sequence[str] | None) -> tuple[list[str], Settings]:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="Measure speed and memory."
    )
    parser.add_argument(
        "parts",
        nargs="*",
        metavar="PART",
        help=f"{', '.join(PARTS)}; all but {', '.join(LONG)} if none; gpu: {', '.join(GPU)}",
    )
    parser.add_argument(
        "--datasets", nargs="+", metavar="NAME", help="those of `pipeline` (default COLLAB ...)"
    )
    parser.add_argument(
        "--full",
        action="store_true",
        help="all parts and datasets; extrapolate only what would take more than an hour",
    )
    parser.add_argument("--repeats", type=int, help="runs per measurement (default 3, quick 1)")
    parser.add_argument("--quick", action="store_true", help="small data, about two minutes")
    parser.add_argument(
        "--within", type=float, metavar="SECONDS", help="leave out what would end later than that"
    )
    parser.add_argument("--out", type=Path, help="folder of the report (default docs/results)")
    options = parser.parse_args(arguments)
    parts = [part for name in options.parts for part in (GPU if name == "gpu" else (name,))]
    unknown = [name for name in parts if name not in PARTS]
    if unknown:
        parser.error(f"unknown part {unknown[0]!r}: choose from {', '.join(PARTS)}")
    repeats = (1 if options.quick else 3) if options.repeats is None else options.repeats
    if repeats < 1:
        parser.error(f"--repeats must be an integer ≥ 1, not {repeats}")
    if options.within is not None:
        stop_after(options.within)
    datasets = options.datasets or (QUICK_DATASETS if options.quick else DATASETS)
    # A quick run must not overwrite real numbers.
    default_folder = ROOT / (".benchmarks" if options.quick else "docs/results")
    settings = Settings(
        out=options.out or default_folder,
        datasets=tuple(catalog()) if options.full else tuple(datasets),
        repeats=repeats,
        quick=options.quick,
        full=options.full,
    )
    ordinary = [name for name in PARTS if options.full or options.quick or name not in LONG]
    return parts or ordinary, settings


def _earlier(settings: Settings) -> dict[str, Any]:
    """The report so far; parts from another machine, or with other libraries, say so."""
    document = {"machine": machine.describe(), "quick": settings.quick, "parts": {}}
    try:
        earlier = json.loads((settings.out / "benchmarks.json").read_text(encoding="utf-8"))
        if earlier["quick"] == settings.quick:
            same = earlier["machine"] == document["machine"]
            document["parts"] = {
                name: part if same else {"machine": earlier["machine"], **part}
                for name, part in earlier["parts"].items()
                if name in PARTS
            }
    except (OSError, ValueError, KeyError, TypeError):
        pass
    return document


if __name__ == "__main__":
    main()
