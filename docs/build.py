"""Redraw the figures and rewrite the tables of the documents from what the software reports.

    python docs/build.py

Figures and measured sizes need the benchmark datasets (SAEN_DATA); without them the files that are
there stay as they are. Accuracies are taken from docs/results, where
`saen reproduce accuracy --out docs/results` put them.
"""

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from saen._util.strings import human_bytes, plural
from saen.decompositions import make_decomposition
from saen.io.catalog import catalog
from saen.io.loading import load_dataset, locate
from saen.paper import tables

DOCS = Path(__file__).parent
RESULTS = DOCS / "results"


def saen(*arguments: str) -> str:
    """Standard output of a command."""
    command = [sys.executable, "-m", "saen", *arguments]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


SENTENCES = """
# newdoc
1\tThe\tthe\tDET\t_\t_\t2\tdet\t_\t_
2\tdog\tdog\tNOUN\t_\t_\t3\tnsubj\t_\t_
3\tbit\tbite\tVERB\t_\t_\t0\troot\t_\t_
4\thim\the\tPRON\t_\t_\t3\tobj\t_\t_

1\tHe\the\tPRON\t_\t_\t2\tnsubj\t_\t_
2\thowled\thowl\tVERB\t_\t_\t0\troot\t_\t_
"""
DRAWN = {
    "paths": ("MUTAG", "paths(radii=(1,), max_length=2)"),
    "neighbourhoods": ("MUTAG", "neighbourhoods(depth=2)"),
    "flat": ("MUTAG", "edges"),
    "nested": ("stdlib-functions", "nested"),
}
"""Dataset and decomposition of the figures of the pages."""
TABULATED = ("ego", "paths(radii=(1,), max_length=2)", "neighbourhoods", "nodes", "edges")
MOST_ENTRIES = 10**8
"""Hierarchies that might have more are left out of the table."""


def draw_figures() -> None:
    for figure in ("decomposition", "compression"):
        out = DOCS / "figures" / f"{figure}.svg"
        options = ["--graph", "0", "--radii", "0,1", "--figure", figure, "--out", str(out)]
        saen("draw", "IMDB-BINARY", *options)
    for figure, (name, decomposition) in DRAWN.items():
        out = DOCS / "figures" / f"{figure}.svg"
        saen("draw", name, "--graph", "3", "-d", decomposition, "--out", str(out))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "two sentences.conllu"
        path.write_text(SENTENCES.lstrip(), encoding="utf-8")
        saen(
            "draw",
            str(path),
            "-d",
            "dependency_paths(max_length=3)",
            "--out",
            f"{DOCS}/figures/text.svg",
        )
        model = str(Path(folder) / "model.saen")
        saen("train", "MUTAG", "--out", model, "--no-holdout")
        out = str(DOCS / "figures" / "explanation.svg")
        saen("explain", model, "MUTAG", "--graph", "17", "--out", out)


def decompositions_table(names: list[str]) -> None:
    """Sizes before and after compression, by dataset and decomposition, into docs/results."""
    reports: dict[str, dict[str, Any]] = {name: {} for name in names}
    lines = [
        "# Sizes by decomposition",
        "",
        "Objects and entries of all levels before and after collapsing equal objects, and the size "
        "of the file after against before. Written by `make docs`.",
        "",
        "| dataset | decomposition | levels | objects | after | entries | after | size |",
        "|---|---|---|---:|---:|---:|---:|---:|",
    ]
    for name in names:
        graphs = load_dataset(name)
        for decomposition in TABULATED:
            if make_decomposition(decomposition).costs(graphs).sum() > MOST_ENTRIES:
                lines.append(f"| {name} | {decomposition} | too large | | | | | |")
                continue
            report = json.loads(saen("compress", name, "-d", decomposition, "--json"))
            kept = ("levels", "bytes", "decomposition", "distinct_graphs", "ceiling")
            reports[name][decomposition] = {key: report[key] for key in kept}
            levels = report["levels"]
            total = {key: sum(level[key] for level in levels) for key in levels[1] if key != "name"}
            lines.append(
                f"| {name} | {decomposition} | {len(levels)} | {total['objects']:,} "
                f"| {total['classes']:,} | {total['entries']:,} | {total['entries_compressed']:,} "
                f"| × {report['bytes']['ratio']:.3f} |"
            )
    (RESULTS / "decompositions.json").write_text(json.dumps(reports, indent=1) + "\n", "utf-8")
    (RESULTS / "decompositions.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


def measure_compression(names: list[str]) -> None:
    """What `saen compress` says of every dataset, into docs/results."""
    reports = results("compression")
    for name in names:
        report = reports[name] = json.loads(saen("compress", name, "--json"))
        # Timings belong to the benchmarks, where they are repeated.
        del report["seconds"], report["peak_memory_bytes"]
    (RESULTS / "compression.json").write_text(json.dumps(reports, indent=1) + "\n", "utf-8")


def results(name: str) -> dict[str, Any]:
    """A file of results, by dataset."""
    document: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text("utf-8"))
    return document


def compression_table() -> str:
    paper = tables()["sizes_and_runtimes"]
    lines = [
        "| dataset | entries | after | graphs | distinct | size | paper's | ceiling |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for name, report in results("compression").items():
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
    """The paper's accuracies, ours, and what collapsing leaves of each dataset."""
    sizes = results("compression")
    lines = [
        "| dataset | SAEN in the paper | preset `paper` | `modern`, nested | size, collapsed |",
        "|---|---:|---:|---:|---:|",
    ]
    for name, found in results("accuracy").items():
        mean, std = found["published"]["SAEN"]
        ours = [found[run]["accuracy"] for run in ("paper", "nested")]
        shown = [f"{100 * each['mean']:.2f} ± {100 * each['std']:.2f}" for each in ours]
        ratio = f"× {sizes[name]['bytes']['ratio']:.3f}" if name in sizes else ""
        lines.append(f"| {name} | {mean:.2f} ± {std:.2f} | {' | '.join(shown)} | {ratio} |")
    return "\n".join(lines)


def performance_table() -> str:
    """A few lines of the benchmarks, in the form in which docs/results/benchmarks.md has them."""
    parts = results("benchmarks")["parts"]
    lines = ["| what | measured |", "|---|---:|"]
    for row in parts["pipeline"]["rows"]:
        about = f"{row['dataset']} ({row['entries']:,} part-of entries), from its zip to collapsed"
        for way, when in (("cold", "the first time"), ("warm", "from then on")):
            found = row[way]
            memory = human_bytes(found["peak_memory_bytes"])
            lines.append(f"| {about}, {when} | {found['seconds']['total']:.2f} s, {memory} |")
        if row.get("times_faster"):
            lines.append(
                f"| {row['dataset']}: speed against PyTorch Geometric reading the same text "
                f"| {row['times_faster']:.1f} × |"
            )
    for row in parts["scale"]["generated"]:
        found = row["streaming"]
        lines.append(
            f"| a collection {row['collection']} ({row['nodes']:,} nodes), decomposed and "
            f"collapsed chunk by chunk | {found['seconds']['total']:.2f} s, "
            f"{human_bytes(found['peak_memory_bytes'])} |"
        )
    for row in parts["compression"]["rows"]:
        lines.append(
            f"| {row['dataset']}: speed of training {plural(row['networks'], 'network')}, "
            f"collapsed against not | {row['times_faster']:.1f} × |"
        )
    for row in parts["groups"]["rows"]:
        if row["preset"] == "paper":
            lines.append(
                f"| {row['dataset']}: speed of {row['networks']} trainings of the preset paper in "
                f"groups, against one by one | {row['times_faster']:.1f} × |"
            )
    for row in parts["peers"]["rows"]:
        if row["way"] == "gin" and "times_evaluation" in row:
            about = "" if "accuracy" in row else " (extrapolated)"
            lines.append(
                f"| {row['dataset']}: speed of a 10-fold cross-validation, against a GIN of "
                f"PyTorch Geometric{about} | {row['times_evaluation']:.1f} × |"
            )
    for row in parts["evaluations"]["rows"]:
        about = " (extrapolated)" if row["extrapolated"] else ""
        lines.append(
            f"| {row['dataset']}: 10 × 10-fold cross-validation, preset paper{about} "
            f"| {row['seconds']:.2f} s |"
        )
    for row in parts["prediction"]["rows"]:
        lines.append(
            f"| {row['dataset']}: class of one new graph; of many "
            f"| {1e3 * row['latency']:.1f} ms; {row['per_second']:,.0f} graphs a second |"
        )
    return "\n".join(lines)


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
        if {"IMDB-BINARY", "MUTAG"} <= set(here):
            draw_figures()
        measure_compression(here)
        decompositions_table(here)
    else:
        print("no datasets here (set SAEN_DATA): figures and sizes stay")
    replace_table(DOCS / "compression.md", "compression", compression_table())
    replace_table(DOCS / "performance.md", "performance", performance_table())
    replace_table(readme, "accuracy", accuracy_table())


if __name__ == "__main__":
    main()
