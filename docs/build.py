"""Redraw the figures and rewrite the tables of the documents from what the software reports.

    python docs/build.py [--accuracy]

Figures and the compression table need the benchmark datasets (SAEN_DATA); without them the files
that are there stay as they are. `--accuracy` also cross-validates the defaults on every dataset,
which takes long on a CPU.
"""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from saen.datasets import catalog, locate
from saen.paper import tables

DOCS = Path(__file__).parent
RESULTS = DOCS / "results"
REPEATS = 3


def saen(*arguments: str) -> str:
    """Standard output of a command."""
    command = [sys.executable, "-m", "saen", *arguments]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def draw_figures() -> None:
    for figure in ("decomposition", "compression"):
        out = DOCS / "figures" / f"{figure}.svg"
        options = ["--graph", "0", "--radii", "0,1", "--figure", figure, "--out", str(out)]
        saen("draw", "IMDB-BINARY", *options)


def compression_table(names: list[str]) -> str:
    path = RESULTS / "compression.json"
    reports = {name: json.loads(saen("compress", name, "--json")) for name in names}
    for report in reports.values():
        # Timings belong to the benchmarks, where they are repeated.
        del report["seconds"], report["peak_memory_bytes"]
    path.write_text(json.dumps(reports, indent=1) + "\n", encoding="utf-8")
    paper = tables()["sizes_and_runtimes"]
    lines = [
        "| dataset | entries | after | graphs | distinct | size | paper's | ceiling |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for name, report in reports.items():
        before = sum(level["entries"] for level in report["levels"])
        after = sum(level["entries_compressed"] for level in report["levels"])
        theirs = paper.get(name, {}).get("ratio")
        lines.append(
            f"| {name} | {before:,} | {after:,} | {report['levels'][-1]['objects']:,} "
            f"| {report['distinct_graphs']:,} | × {report['bytes']['ratio']:.3f} "
            f"| {'' if theirs is None else f'× {theirs:.2f}'} | {100 * report['ceiling']:.2f} % |"
        )
    note = (
        "Ego decomposition with the paper's radii and labels; entries of all part-of relations, "
        "file sizes as a ratio, and the accuracy that no fixed model can pass."
    )
    return "\n".join([*lines, "", note])


def accuracy_table() -> str | None:
    reports: list[dict[str, Any]] = [
        json.loads(path.read_text(encoding="utf-8"))
        for path in sorted((RESULTS / "modern").glob("*.json"))
    ]
    if not reports:
        return None
    order = {name: number for number, name in enumerate(catalog())}
    reports.sort(key=lambda report: order.get(report["dataset"], len(order)))
    lines = [
        "| dataset | accuracy | over folds | ceiling | twins in training | seconds | on |",
        "|---|---:|---:|---:|---:|---:|---|",
    ]
    for report in reports:
        accuracy = report["accuracy"]
        lines.append(
            f"| {report['dataset']} | {100 * accuracy['mean']:.1f} ± {100 * accuracy['std']:.1f} "
            f"| ± {100 * accuracy['std_folds']:.1f} | {100 * report['ceiling_folds']:.1f} % "
            f"| {100 * report['duplicates']['share']:.0f} % "
            f"| {sum(report['seconds'].values()):.0f} | {report['device']} |"
        )
    protocol = reports[0]["protocol"]
    note = (
        f"`SAENClassifier()` untouched, {protocol['repeats']} × {protocol['folds']}-fold "
        f"cross-validation, {protocol['epochs']} epochs fixed beforehand "
        f"(`saen evaluate NAME --repeats {protocol['repeats']}`); ± is the standard deviation over "
        "repeats. Seconds are for all trainings together."
    )
    return "\n".join([*lines, "", note])


def evaluate(names: list[str]) -> None:
    (RESULTS / "modern").mkdir(parents=True, exist_ok=True)
    for name in names:
        text = saen("evaluate", name, "--repeats", str(REPEATS), "--json")
        (RESULTS / "modern" / f"{name}.json").write_text(text, encoding="utf-8")


def replace_table(document: Path, table: str, text: str) -> None:
    """Put a table between its markers."""
    pattern = re.compile(rf"(<!-- table: {table} .*?-->\n).*?(<!-- end -->)", re.DOTALL)
    old = document.read_text(encoding="utf-8")
    document.write_text(pattern.sub(lambda m: f"{m[1]}\n{text}\n\n{m[2]}", old), encoding="utf-8")


def main() -> None:
    RESULTS.mkdir(exist_ok=True)
    readme = DOCS.parent / "README.md"
    here = [name for name in catalog() if locate(name)]
    if here:
        if "IMDB-BINARY" in here:
            draw_figures()
        replace_table(readme, "compression", compression_table(here))
    else:
        print("no datasets here (set SAEN_DATA): figures and the compression table stay")
    if "--accuracy" in sys.argv:
        evaluate(here)
    table = accuracy_table()
    if table is not None:
        replace_table(readme, "accuracy", table)


if __name__ == "__main__":
    main()
