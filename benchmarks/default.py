"""What the default costs and what it reaches, beside the blend of up to 26 candidates before it.

`python -m benchmarks.default cost [NAME ...]` runs `saen train NAME`, whole commands, and writes
docs/results/default/NAME.json for each: CPU and wall seconds, peak memory, the score that training
reports; with preset `counts` beside it, and on a GPU with `--gpu`. The names of
benchmarks/generated.py are datasets, too. `python -m benchmarks.default page` puts these beside the
runs of the accuracy table (docs/results/runs/best, and runs/before of the blend before), and
writes docs/results/default.md.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from scipy.special import stdtrit

import saen
from benchmarks import machine
from benchmarks.generated import SETS
from benchmarks.measure import ROOT, say
from saen.io.sources.catalog import catalog
from saen.learning.comparison import verdict
from saen.paper.reproduce import FOLDS, percent_interval

RESULTS = ROOT / "docs" / "results"
SEEDS = 3
FORECAST = re.compile("training will take about (.*)")
INTERVAL, MEMORY_INTERVALS = 0.05, 3
"""Seconds between looks at the process, and looks between those at its memory: these take time."""
MAX_SECONDS = 60
"""Trainings that take more CPU seconds are run with the first seed only."""


def cost(name: str, gpu: bool) -> dict[str, Any]:
    """What training on a dataset takes, with some seeds, with `counts`, and on a GPU."""
    with TemporaryDirectory() as folder:
        data = name
        if name in SETS:
            data = str(Path(folder) / "data.saen")
            saen.save(SETS[name](), data)
        default = [train(data, "best", seed=0)]
        if default[0]["cpu_seconds"] <= MAX_SECONDS:
            default += [train(data, "best", seed=seed) for seed in range(1, SEEDS)]
        return {
            "name": name,
            "default": default,
            "counts": train(data, "counts", seed=0),
            "gpu": train(data, "best", seed=0, device="cuda") if gpu else None,
            "machine": machine.describe(),
            "commit": machine.commit(),
        }


def train(data: str, preset: str, seed: int, device: str = "cpu") -> dict[str, Any]:
    """The whole command: CPU and wall seconds, the largest memory, and its score."""
    with TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "saen", "train", data, "--json", "--out", f"{folder}/out"]
        command += ["--preset", preset, "--seed", str(seed), "--device", device]
        printed, notes = Path(folder) / "printed", Path(folder) / "notes"
        start, peak = os.times().elapsed, 0
        with printed.open("wb") as file, notes.open("wb") as errors:
            process = subprocess.Popen(command, stdout=file, stderr=errors, start_new_session=True)
        ended, looks = 0, 0
        while not ended:
            time.sleep(INTERVAL)
            ended, process.returncode, usage = os.wait4(process.pid, os.WNOHANG)
            looks += 1
            if looks % MEMORY_INTERVALS == 0:
                peak = max(peak, memory(process.pid))
        seconds = os.times().elapsed - start
        scores = json.loads(printed.read_bytes())["out_of_fold"]
        return {
            "seed": seed,
            "cpu_seconds": usage.ru_utime + usage.ru_stime,
            "wall_seconds": seconds,
            "peak_bytes": peak,
            "load_average": os.getloadavg()[0],
            "forecast": next(iter(FORECAST.findall(notes.read_text(encoding="utf-8"))), None),
            "out_of_fold": {key: scores[key] for key in ("accuracy", "log_loss")},
        }


def memory(session: int) -> int:
    """Bytes of all processes of a session, what they share counted once; 0 where they ended."""
    total = 0
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            if int(status.read_text().rpartition(")")[2].split()[3]) == session:
                shares = (status.parent / "smaps_rollup").read_text()
                total += int(shares.partition("\nPss:")[2].split(maxsplit=1)[0]) * 1024
        except (OSError, IndexError):  # it has just ended
            continue
    return total


def page(results: Path) -> str:
    """All that was measured, for a document."""
    files = sorted((results / "default").glob("*.json"))
    costs = sorted(map(_read, files), key=lambda each: each["default"][0]["cpu_seconds"])
    best, before = (
        {name: _read(file) for name in catalog() if (file := runs / name / "summary.json").exists()}
        for runs in (results / "runs" / "best", results / "runs" / "before")
    )
    described = {json.dumps([each["machine"]["cpu"], each["machine"]["cores"]]) for each in costs}
    machines = "; ".join(f"{cores} cores of {cpu}" for cpu, cores in map(json.loads, described))
    rows = [_accuracy_row(name, best[name], before[name]) for name in best]
    losses = [_change(best[name], before[name], "log_loss")[0] for name in best]
    return "\n".join(
        [
            "# The default: cost and accuracy",
            "",
            "## What `saen train` costs",
            "",
            f"Whole commands, with {machines}: CPU and wall seconds (on the machine's GPU in "
            "brackets, where that was measured), the load average of the machine, and the peak "
            "memory of seed 0; CPU seconds also as multiples of those of "
            "preset `counts`, the first candidate alone. Forecast: what the command said before it "
            "began to train, of that alone and of idle cores, if it was more than ten seconds. "
            "Sets whose names are descriptions are generated (`benchmarks/generated.py`); the "
            "score is the one that training prints.",
            "",
            "| dataset | CPU s | × `counts` | wall s | load | MB | forecast | score out of fold |",
            "|---|---:|---:|---:|---:|---:|---:|---:|",
            *map(_cost_row, costs),
            "",
            "## What it reaches",
            "",
            f"{FOLDS}-fold cross-validation with the same folds: accuracy in percent and log loss "
            "of the default, and of the blend before, which tried up to 26 candidates, twice. "
            "Their differences are over the repeats that both have. The intervals (95 %) are "
            "corrected for the overlap of training parts; those of differences are unpaired and "
            "too wide, since of the runs before only means with intervals were kept.",
            "",
            "| dataset | accuracy | before | difference | log loss | before | difference |",
            "|---|---:|---:|---:|---:|---:|---:|",
            *rows,
            "",
            f"Mean change of the log loss over {len(losses)} datasets: {np.mean(losses):+.4f}; "
            f"largest: {max(losses):+.4f}.",
            "",
            "## What training says of itself",
            "",
            "The score out of fold that `saen train` prints, with the weights of the blend "
            "cross-fitted, less the mean over outer folds, by preset `best`: what is left is the "
            "bias of the former. It is trained on less than a fold's training part is, and "
            "chooses nothing by what it scores.",
            "",
            "| dataset | accuracy | log loss | seeds |",
            "|---|---:|---:|---:|",
            *(_bias_row(each, best[each["name"]]) for each in costs if each["name"] in best),
            "",
            "## What it chose",
            "",
            "Mean weights over all folds:",
            "",
            *(f"- {name}: {_members(run)}" for name, run in best.items()),
            "",
        ]
    )


def _read(file: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return document


def _cost_row(row: dict[str, Any]) -> str:
    default, gpu = row["default"][0], row["gpu"]
    cells = (
        row["name"],
        f"{default['cpu_seconds']:.1f}",
        f"{default['cpu_seconds'] / row['counts']['cpu_seconds']:.1f}",
        f"{default['wall_seconds']:.1f}" + ("" if gpu is None else f" ({gpu['wall_seconds']:.1f})"),
        f"{default['load_average']:.1f}",
        f"{default['peak_bytes'] / 1e6:,.0f}",
        default["forecast"] or "",
        f"{100 * default['out_of_fold']['accuracy']:.1f} %",
    )
    return f"| {' | '.join(cells)} |"


def _accuracy_row(name: str, best: dict[str, Any], before: dict[str, Any]) -> str:
    points, start, end = (100 * each for each in _change(best, before, "accuracy"))
    change, least, most = _change(best, before, "log_loss")
    cells = (
        name,
        percent_interval(best["accuracy"]),
        percent_interval(before["accuracy"]),
        f"{points:+.1f} ({start:+.1f} to {end:+.1f}), {verdict(start, end)}",
        f"{best['log_loss']['mean']:.4f}",
        f"{before['log_loss']['mean']:.4f}",
        f"{change:+.4f} ({least:+.4f} to {most:+.4f})",
    )
    return f"| {' | '.join(cells)} |"


def _change(one: dict[str, Any], other: dict[str, Any], metric: str) -> tuple[float, float, float]:
    """The difference of two runs' means, with its interval as of `saen.compare`, unpaired.

    Over the repeats that both have, whose folds are the same.
    """
    repeats = min(run["protocol"]["repeats"] for run in (one, other))
    means, variances = [], []
    for run in (one, other):
        low, high = run[metric]["interval"]
        folds = run["protocol"]["repeats"] * FOLDS
        error = (high - low) / 2 / stdtrit(folds - 1, 0.975)
        means.append(np.mean(run[metric]["per_repeat"][:repeats]))
        variances.append(error**2 * _spread(repeats * FOLDS) / _spread(folds))
    total = sum(variances)
    freedom = total**2 / sum(each**2 / (repeats * FOLDS - 1) for each in variances)
    half = float(stdtrit(freedom, 0.975) * np.sqrt(total))
    mean = float(means[0] - means[1])
    return mean, mean - half, mean + half


def _spread(folds: int) -> float:
    """The variance of a mean over so many folds, which share training examples, of one of each."""
    return 1 / folds + 1 / (FOLDS - 1)


def _bias_row(row: dict[str, Any], best: dict[str, Any]) -> str:
    accuracy, loss = (
        np.mean([each["out_of_fold"][key] for each in row["default"]]) - best[key]["mean"]
        for key in ("accuracy", "log_loss")
    )
    return f"| {row['name']} | {100 * accuracy:+.2f} | {loss:+.4f} | {len(row['default'])} |"


def _members(best: dict[str, Any]) -> str:
    tried = sorted(best["tried"], key=lambda each: -each["weight"])
    return "; ".join(f"{each['candidate']} {each['weight']:.2f}" for each in tried)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, or write the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.default", description=__doc__)
    parser.add_argument("what", choices=("cost", "page"))
    parser.add_argument("names", nargs="*", help="by default all")
    parser.add_argument("--gpu", action="store_true", help="train on the GPU, too")
    parser.add_argument("--out", type=Path, default=RESULTS, help="the folder of results")
    given = parser.parse_args(arguments)
    if given.what == "page":
        (given.out / "default.md").write_text(page(given.out), encoding="utf-8")
        return
    folder = given.out / "default"
    folder.mkdir(parents=True, exist_ok=True)
    for name in given.names or (*catalog(), *SETS):
        say(name)
        document = json.dumps(cost(name, given.gpu), indent=1) + "\n"
        file = folder / f"{name.replace(' ', '-').replace(',', '')}.json"
        file.write_text(document, encoding="utf-8")


if __name__ == "__main__":
    main()
