"""`python -m benchmarks.default [DATASET ...]`: what the default costs, and what it reaches.

For every dataset: `saen train` with the default and with preset `counts`, as whole commands (CPU
seconds, wall seconds, peak memory); its accuracy and log loss on the ten folds of seed 0, beside
those of the blend that tried up to 26 candidates (docs/results/runs/best); and the score that
training itself reports, out of fold, less that of the ten folds, over three seeds. Writes
docs/results/default.json and .md; datasets that are not named keep their rows. The names of
benchmarks/generated.py are datasets, too: of these, only the cost is measured.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import saen
from benchmarks.generated import SETS
from benchmarks.measure import ROOT, say

DATASETS = ("MUTAG", "PTC", "IMDB-BINARY", "IMDB-MULTI", "NCI1", "PROTEINS")
OUT = ROOT / "docs" / "results"
SEEDS = range(3)
MAX_SEEDS_SECONDS = 300
"""Ten folds that take longer are run with one seed."""


def train(name: str, preset: str) -> dict[str, Any]:
    """The whole command: CPU and wall seconds, and the largest resident size."""
    with TemporaryDirectory() as folder:
        data = name
        if name in SETS:
            data = str(Path(folder) / "data.saen")
            saen.save(SETS[name](), data)
        command = [sys.executable, "-m", "saen", "train", data, "--preset", preset]
        start = os.times()
        process = subprocess.Popen(
            [*command, "--out", str(Path(folder) / "model.saen"), "--json"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        assert process.stdout is not None
        document = json.loads(process.stdout.read())
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = status
    return {
        "cpu_seconds": usage.ru_utime + usage.ru_stime,
        "wall_seconds": os.times().elapsed - start.elapsed,
        "peak_bytes": usage.ru_maxrss * 1024,
        "load_average": os.getloadavg()[0],
        "out_of_fold": document["out_of_fold"]["accuracy"],
    }


def folds(name: str) -> list[dict[str, Any]]:
    """Ten folds of some seeds, and what a fit to all data says of itself."""
    graphs, rows = saen.load_dataset(name), []
    for seed in SEEDS:
        start = os.times()
        model = saen.Classifier(random_state=seed, progress=False)
        evaluation = saen.cross_validate(
            model, graphs, graphs.targets, n_repeats=1, n_folds=10, random_state=seed
        )
        tested = evaluation.summary("accuracy")["mean"], evaluation.summary("log_loss")["mean"]
        itself = model.fit(graphs, graphs.targets).evaluation_
        assert itself is not None
        pooled = itself.pooled()
        rows.append(
            {
                "seed": seed,
                "accuracy": tested[0],
                "log_loss": tested[1],
                "fold_accuracies": evaluation.scores("accuracy")[0].tolist(),
                "interval": evaluation.summary("accuracy")["interval"],
                "out_of_fold": pooled["accuracy"],
                "out_of_fold_loss": pooled["log_loss"],
                "tried": evaluation.tried,
            }
        )
        if os.times().elapsed - start.elapsed > MAX_SEEDS_SECONDS:
            break
    return rows


def report(document: dict[str, Any]) -> str:
    """The results as a page."""
    lines = [
        "# The default: cost and accuracy",
        "",
        "`saen train DATASET`, whole command, two cores. Accuracy (percent, with a corrected 95 %",
        "interval) and log loss: ten folds of seed 0, beside `best before`, the blend that tried",
        "up to 26 candidates, on the same folds. Out of fold: what training reports, less the",
        "score on ten folds; the mean over the seeds.",
        "",
        "| dataset | CPU s | × `counts` | wall s | MB | accuracy | log loss | best before "
        "| out of fold |",
        "|---|---:|---:|---:|---:|---|---:|---|---|",
    ]
    for name, row in document.items():
        default, counts = row["default"], row["counts"]
        cost = (
            f"| {name} | {default['cpu_seconds']:.1f} "
            f"| {default['cpu_seconds'] / counts['cpu_seconds']:.1f} "
            f"| {default['wall_seconds']:.0f} (load {default['load_average']:.1f}) "
            f"| {default['peak_bytes'] / 1e6:.0f} "
        )
        if not row["folds"]:
            lines.append(f"{cost}| {100 * default['out_of_fold']:.2f} out of fold | | | |")
            continue
        first, before = row["folds"][0], _before(name)
        low, high = (100 * end for end in first["interval"])
        accuracy = np.mean([each["out_of_fold"] - each["accuracy"] for each in row["folds"]])
        loss = np.mean([each["out_of_fold_loss"] - each["log_loss"] for each in row["folds"]])
        lines.append(
            f"{cost}| {100 * first['accuracy']:.2f} ({low:.1f} to {high:.1f}) "
            f"| {first['log_loss']:.4f} | {before} "
            f"| {100 * accuracy:+.2f} points, {loss:+.4f} ({len(row['folds'])} seeds) |"
        )
    members = [
        f"- {name}: "
        + "; ".join(
            f"{each['candidate']} {each['weight']:.2f}"
            for each in sorted(row["folds"][0]["tried"], key=lambda each: -each["weight"])
        )
        for name, row in document.items()
        if row["folds"]
    ]
    return "\n".join([*lines, "", "Mean weights over the folds of seed 0:", "", *members]) + "\n"


def _before(name: str) -> str:
    file = OUT / "runs" / "best" / name / "summary.json"
    known = json.loads(file.read_text(encoding="utf-8"))
    accuracy, loss = (known[key]["per_repeat"][0] for key in ("accuracy", "log_loss"))
    return f"{100 * accuracy:.2f}, {loss:.4f}"


def main() -> None:
    """Measure the datasets that were named."""
    file = OUT / "default.json"
    document = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    for name in sys.argv[1:] or DATASETS:
        say(name)
        document[name] = {
            "default": train(name, "best"),
            "counts": train(name, "counts"),
            "folds": [] if name in SETS else folds(name),
        }
        file.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
        (OUT / "default.md").write_text(report(document), encoding="utf-8")


if __name__ == "__main__":
    main()
