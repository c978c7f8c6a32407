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
from saen.paper.reproduce import FOLDS

RESULTS = ROOT / "docs" / "results"
SEEDS = 3
INTERVAL, MEMORY_INTERVALS = 0.05, 10
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
        printed, start, peak = Path(folder) / "printed", os.times().elapsed, 0
        with printed.open("wb") as file:
            process = subprocess.Popen(
                command, stdout=file, stderr=subprocess.DEVNULL, start_new_session=True
            )
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
    names = [each["name"] for each in costs if each["name"] not in SETS]
    best = {name: _read(results / "runs" / "best" / name / "summary.json") for name in names}
    before = {name: _read(results / "runs" / "before" / name / "summary.json") for name in names}
    described = {json.dumps([each["machine"]["cpu"], each["machine"]["cores"]]) for each in costs}
    machines = "; ".join(f"{cores} cores of {cpu}" for cpu, cores in map(json.loads, described))
    rows = [_accuracy_row(name, best[name], before[name]) for name in names]
    losses = [_change(best[name], before[name], "log_loss") for name in names]
    return "\n".join(
        [
            "# The default: cost and accuracy",
            "",
            "## What `saen train` costs",
            "",
            f"Whole commands, with {machines}: CPU and wall seconds and the peak memory of seed 0, "
            "and CPU seconds as multiples of those of preset `counts`, the first candidate "
            "alone. `GPU`: wall seconds of the same command on the machine's GPU, where that was "
            "measured. Sets whose names are descriptions are generated "
            "(`benchmarks/generated.py`); the score is the one that training prints.",
            "",
            "| dataset | CPU s | × `counts` | wall s | GPU wall s | MB | score out of fold |",
            "|---|---:|---:|---:|---:|---:|---:|",
            *map(_cost_row, costs),
            "",
            "## What it reaches",
            "",
            f"{FOLDS}-fold cross-validation with the same folds: accuracy in percent and log loss "
            "of the default, and how far they are from `before`, the blend that tried up to 26 "
            "candidates, twice. The intervals (95 %) are corrected for the overlap of training "
            "parts; those of differences are unpaired and too wide, since of the runs before only "
            "means and deviations over folds were kept.",
            "",
            "| dataset | accuracy | less before | log loss | less before |",
            "|---|---:|---:|---:|---:|",
            *rows,
            "",
            f"Mean change of the log loss: {np.mean([mean for mean, *_ in losses]):+.4f}; largest: "
            f"{max(mean for mean, *_ in losses):+.4f}.",
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
            *(f"- {name}: {_members(best[name])}" for name in names),
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
        f"{default['wall_seconds']:.1f}",
        "" if gpu is None else f"{gpu['wall_seconds']:.1f}",
        f"{default['peak_bytes'] / 1e6:,.0f}",
        f"{100 * default['out_of_fold']['accuracy']:.1f} %",
    )
    return f"| {' | '.join(cells)} |"


def _accuracy_row(name: str, best: dict[str, Any], before: dict[str, Any]) -> str:
    accuracy, loss = best["accuracy"], best["log_loss"]
    low, high = (100 * end for end in accuracy["interval"])
    points, start, end = (100 * each for each in _change(best, before, "accuracy"))
    change, least, most = _change(best, before, "log_loss")
    return (
        f"| {name} | {100 * accuracy['mean']:.1f} ({low:.1f} to {high:.1f}) "
        f"| {points:+.1f} ({start:+.1f} to {end:+.1f}), {verdict(start, end)} "
        f"| {loss['mean']:.4f} | {change:+.4f} ({least:+.4f} to {most:+.4f}) |"
    )


def _change(one: dict[str, Any], other: dict[str, Any], metric: str) -> tuple[float, float, float]:
    """The difference of two runs' means, with its interval as of `saen.compare`, unpaired."""
    scores = [run[metric] for run in (one, other)]
    counts = np.array([run["protocol"]["repeats"] * FOLDS for run in (one, other)])
    deviations = np.array([each["std_folds"] for each in scores])
    variances = deviations**2 * (1 / counts + 1 / (FOLDS - 1))
    total = variances.sum()
    freedom = total**2 / (variances**2 / (counts - 1)).sum()
    half = float(stdtrit(freedom, 0.975) * np.sqrt(total))
    mean = scores[0]["mean"] - scores[1]["mean"]
    return mean, mean - half, mean + half


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
