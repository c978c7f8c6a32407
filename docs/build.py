"""Redraw the figures and rewrite the tables of the documents from what the software reports.

    python docs/build.py

Figures and the compression table need the benchmark datasets (SAEN_DATA); without them the files
that are there stay as they are. Accuracies are taken from docs/results, where
`saen reproduce accuracy --out docs/results` put them.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

from saen.datasets import catalog, locate
from saen.paper import tables

DOCS = Path(__file__).parent
RESULTS = DOCS / "results"


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


def accuracy_table() -> str:
    """What `saen reproduce accuracy` wrote, without its heading."""
    text = (RESULTS / "accuracy.md").read_text(encoding="utf-8")
    return text.partition("\n\n")[2].strip()


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
    replace_table(readme, "accuracy", accuracy_table())


if __name__ == "__main__":
    main()
