"""Regenerate the figures, the tables and the command reference of the documentation.

    python docs/build.py            # everything (`make docs`)
    python docs/build.py --screenshots  # only the pictures of pages
    python docs/build.py --fast     # only what takes seconds: command reference and tables

Figures and measured sizes need the benchmark datasets (SAEN_DATA) and are left unchanged without
them. Accuracies come from docs/results/runs, made by `saen reproduce accuracy --out docs/results`.
"""

import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from importlib import metadata
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import typer
from packaging.requirements import Requirement

from saen._util.strings import human_bytes, plural
from saen.cli import app
from saen.decompositions import make_decomposition
from saen.io.loading import load_dataset
from saen.io.sources.catalog import catalog
from saen.io.sources.local import locate
from saen.learning.estimators import Classifier
from saen.paper import charts, reproduce, tables
from saen.report.figures import add_text, new_figure, save_figure
from saen.report.graph_drawing import NodeStyle, draw_graph
from saen.report.palette import GREY, INK

DOCS = Path(__file__).parent
RESULTS = DOCS / "results"
SENTENCES = """
# newdoc
1\tThe\tthe\tDET\t_\t_\t2\tdet\t_\t_
2\tdog\tdog\tNOUN\t_\t_\t3\tnsubj\t_\t_
3\tbit\tbite\tVERB\t_\t_\t0\troot\t_\t_
4\thim\the\tPRON\t_\t_\t3\tobj\t_\t_

1\tHe\the\tPRON\t_\t_\t2\tnsubj\t_\t_
2\thowled\thowl\tVERB\t_\t_\t0\troot\t_\t_
"""
FIGURES = {
    "decomposition": ("IMDB-BINARY", "--graph", "0", "--radii", "0,1"),
    "compression": ("IMDB-BINARY", "--graph", "0", "--radii", "0,1", "--figure", "compression"),
    "pairs": ("MUTAG", "--graph", "3", "-d", "pairs(max_distance=2)", "--figure", "compression"),
    "paths": ("MUTAG", "--graph", "3", "-d", "paths(radii=(1,), max_length=2)"),
    "neighbourhoods": ("MUTAG", "--graph", "3", "-d", "neighbourhoods(depth=2)"),
    "flat": ("MUTAG", "--graph", "3", "-d", "edges"),
    "nested": ("stdlib-functions", "--graph", "3", "-d", "nested"),
}
"""Arguments of `saen draw` for each figure."""
DECOMPOSITIONS = (
    "ego",
    "neighbourhoods",
    "pairs",
    "paths(radii=(1,), max_length=2)",
    "nodes",
    "edges",
)
README_DATASETS = ("REDDIT-BINARY", "COLLAB", "NCI1", "PROTEINS", "MUTAG")
README_MOLECULES = "bbbp"
EXAMPLE = 17
"""The molecule of MUTAG that is explained."""
MAX_ENTRIES = 10**8
"""Larger hierarchies are left out of the table of decompositions."""


def main() -> None:
    if "--screenshots" in sys.argv:
        take_screenshots()
        return
    if "--fast" not in sys.argv:
        names = [name for name in catalog() if locate(name)]
        if {"IMDB-BINARY", "MUTAG"} <= set(names):
            draw_figures()
        if names:
            measure_compression(names)
            measure_decompositions(names)
        else:
            print("no datasets (set SAEN_DATA): figures and sizes are unchanged")
        take_screenshots()
        replace_table(DOCS / "install.md", "extras", extras_table())
    (DOCS / "commands.md").write_text(command_reference(), encoding="utf-8")
    (DOCS / "reliability.md").write_text(reliability_page(), encoding="utf-8")
    kept = reproduce.accuracy([*catalog()], RESULTS / "runs", lambda missing: None)
    kept.write(RESULTS)
    save_figure(charts.plot_accuracy(kept.data), RESULTS / "accuracy.png")
    save_figure(charts.plot_gain(kept.data), RESULTS / "gain.png")
    measured = results("sizes_and_runtimes")
    reproduce.compression_table(measured).write(RESULTS)
    replace_table(DOCS / "compression.md", "compression", compression_table())
    replace_table(DOCS / "comparison.md", "peers", peers_table())
    replace_table(DOCS / "comparison.md", "molecules", molecules_table())
    replace_table(DOCS / "performance.md", "performance", performance_table())
    replace_table(DOCS.parent / "README.md", "accuracy", accuracy_table())
    replace_table(DOCS.parent / "README.md", "comparisons", comparisons_table())


def saen(*arguments: str) -> str:
    """Standard output of a command."""
    command = [sys.executable, "-m", "saen", *arguments]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def results(name: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text("utf-8"))
    return document


def write_results(name: str, document: dict[str, Any]) -> None:
    (RESULTS / f"{name}.json").write_text(json.dumps(document, indent=1) + "\n", "utf-8")


def replace_table(page: Path, table: str, text: str) -> None:
    """Put a table between its markers."""
    pattern = re.compile(rf"(<!-- table: {table} .*?-->\n).*?(<!-- end -->)", re.DOTALL)
    old = page.read_text(encoding="utf-8")
    page.write_text(pattern.sub(lambda m: f"{m[1]}\n{text}\n\n{m[2]}", old), encoding="utf-8")


# -- command reference -------------------------------------------------------------------------


def command_reference() -> str:
    """The page commands.md: every command with its arguments and options."""
    root: Any = typer.main.get_command(app)
    commands = [*_commands(root, typer.Context(root, info_name="saen"))]
    lines = ["# Command reference", "", root.help, "", "| command | |", "|---|---|"]
    for path, command, _ in commands:
        lines.append(f"| [`{path}`](#{path.replace(' ', '-')}) | {_summary(command)} |")
    lines += ["", root.epilog, "", "This page is generated from `--help` by `make docs`."]
    reading: dict[str, str] = {}
    for path, command, context in commands:
        usage = " ".join(command.collect_usage_pieces(context))
        lines += ["", f"## {path}", "", _example_as_code(command.help), "", "```text"]
        lines += [f"{path} {usage}", "```", ""]
        for panel, options in _panels(command, context).items():
            if panel == "Data" and len(options) > 3:
                reading |= options
                lines += ["Data: options of [reading data](#reading-data).", ""]
            else:
                lines += [f"{panel}:", "", *options.values(), ""]
        lines.pop()
    lines += ["", "## Reading data", "", "Options of all commands that read data.", ""]
    return "\n".join([*lines, *reading.values()]) + "\n"


def _panels(command: Any, context: Any) -> dict[str, dict[str, str]]:
    """Lines about arguments and options, by panel and name."""
    panels: dict[str, dict[str, str]] = {}
    for each in command.get_params(context):
        if "--help" not in each.opts and (record := each.get_help_record(context)):
            name, description = record
            kind = "Arguments" if each.param_type_name == "argument" else "Options"
            panel = panels.setdefault(each.rich_help_panel or kind, {})
            panel[each.name] = f"- `{name}`: {description.strip()}"
    return panels


def _commands(group: Any, context: Any) -> Iterator[tuple[str, Any, Any]]:
    """All commands below a group, as typed, with the context that formats their help."""
    for name in group.list_commands(context):
        _, command, _ = group.resolve_command(context, [name])
        inner = typer.Context(command, info_name=name, parent=context)
        if hasattr(command, "list_commands"):
            yield from _commands(command, inner)
        else:
            yield inner.command_path, command, inner


def _summary(command: Any) -> str:
    return str(command.help).split("\n\n")[0].replace("\n", " ")


def _example_as_code(text: str) -> str:
    return re.sub(r"Example: (.+)", r"Example: `\1`", text)


# -- reliability -------------------------------------------------------------------------------


RELIABILITY = """
# Reliability

What `saen` is tested against beyond ordinary tests, with the counts of the last campaigns. Each
campaign is a command that anybody can repeat; this page is generated from what the commands wrote
to `docs/results/reliability` (`make docs`).

What must hold after a fault: a command ends with all its files, or with one line that says what is
wrong. It never shows a traceback or leaves a half-written file under a final name, and ends with
the same bytes as an undisturbed command when it is repeated. What is promised about interruptions,
locks, threads and processes is on the pages [evaluate](evaluate.md#splits-and-run-directories) and
[training](training.md#guarantees); limits of numbers are on [limits](limits.md#numbers).
"""


def reliability_page() -> str:
    """The page reliability.md: what every campaign in docs/results/reliability did and found."""
    lines = [RELIABILITY.strip()]
    for file in sorted((RESULTS / "reliability").glob("*.json")):
        report = json.loads(file.read_text("utf-8"))
        title = report["campaign"]
        lines += ["", f"## {title[0].upper()}{title[1:]}", ""]
        if about := report.get("about"):
            lines += [about, ""]
        lines += [f"Command: `{report['command']}`", "", "| what | count |", "|---|---:|"]
        lines += [f"| {_cell(key)} | {_cell(value)} |" for key, value in report["counts"].items()]
        if kinds := report.get("kinds"):
            lines += ["", "| kind of file | inputs | accepted | branches |", "|---|---:|---:|---:|"]
            lines += [
                f"| {name} | {each['inputs']:,} | {each['accepted']:.1%} | {each['branches']:,} |"
                for name, each in kinds.items()
            ]
        mended = report.get("mended", {})
        found = [f"- {_cell(each)}" for each in report["found"] if each not in mended]
        if found or not mended:
            lines += ["", *(["Found:", "", *found] if found else ["This run found nothing."])]
        if mended:
            lines += ["", "Found by this run and fixed since; the input is a test now:", ""]
            lines += [f"- {_cell(each)} (`{file}`)" for each, file in mended.items()]
        if survivors := report.get("survivors"):
            lines += ["", "| why mutants may survive | mutants | of functions |", "|---|---:|---|"]
            for reason in dict.fromkeys(each["reason"] for each in survivors if each["reason"]):
                own = [each["function"] for each in survivors if each["reason"] == reason]
                names = sorted({f"`{_function_name(function)}`" for function in own})
                lines.append(f"| {_cell(reason)} | {len(own)} | {', '.join(names)} |")
        if fixed := report.get("found before and fixed"):
            lines += ["", "Found before and fixed:", "", *(f"- {_cell(each)}" for each in fixed)]
    return "\n".join(lines) + "\n"


def _function_name(mangled: str) -> str:
    """What mutmut calls `splits.x_inner_folds` or `ensemble.xǁPlanǁnetwork`, without the x."""
    module, _, name = mangled.rpartition(".")
    return f"{module.rpartition('.')[2]}.{name[1:].lstrip('_ǁ').replace('ǁ', '.')}"


def _cell(value: Any) -> str:
    """A number or words for one cell of a table, or one item of a list."""
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    words = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return " ".join(words.replace("|", "\\|").split())


# -- sizes of installations --------------------------------------------------------------------


EXTRAS = {
    "plots": "figures, reports and explanations as pages",
    "explore": "[the interactive page](explore.md)",
    "chem": "SMILES, SDF, [molecules](chemistry.md)",
    "text": "CoNLL-U, [documents](documents.md)",
    "parquet": "Parquet tables",
    "cloud": "[object stores](cluster.md#object-stores)",
    "pyg": "PyTorch Geometric `Data`",
    "serve": "[predictions over HTTP](serving.md)",
    "ray": "[clusters](cluster.md)",
}


def extras_table() -> str:
    """What each extra adds to an installation without any, as it is installed here."""
    base = _installed("saen", "")
    lines = ["| extra | for | installs | adds |", "|---|---|---|---:|"]
    for extra, purpose in EXTRAS.items():
        own = [each for each in _required("saen", extra) if each not in base]
        added = _installed("saen", extra) - base
        size = human_bytes(sum(map(_size, added)))
        lines.append(f"| `{extra}` | {purpose} | {', '.join(own)} | {size} |")
    total = sum(map(_size, base - {"torch"}))
    torch = f"PyTorch's CPU-only build {human_bytes(_size('torch'))}"
    return "\n".join([*lines, "", f"Without extras: {human_bytes(total)}, and {torch}."])


def _required(name: str, extra: str) -> list[str]:
    """Installed distributions that one requires, with an extra or without."""
    wanted = map(Requirement, metadata.requires(name) or [])
    chosen = [r for r in wanted if r.marker is None or r.marker.evaluate({"extra": extra})]
    names = [re.sub("[-_.]+", "-", each.name).lower() for each in chosen]
    return [each for each in names if any(metadata.distributions(name=each))]


def _installed(name: str, extra: str) -> set[str]:
    """All that one distribution needs."""
    found, new = set[str](), _required(name, extra)
    while new:
        found.update(new)
        new = [each for one in new for each in _required(one, "") if each not in found]
    return found


def _size(name: str) -> int:
    files = metadata.files(name) or []
    return sum(each.size or 0 for each in files)


# -- figures and measurements ------------------------------------------------------------------


def draw_figures() -> None:
    figures = DOCS / "figures"
    for figure, arguments in FIGURES.items():
        saen("draw", *arguments, "--out", str(figures / f"{figure}.svg"), "--force")
    with tempfile.TemporaryDirectory() as folder:
        document = Path(folder) / "two sentences.conllu"
        document.write_text(SENTENCES.lstrip(), encoding="utf-8")
        decomposition = "dependency_paths(max_length=3)"
        text = str(figures / "text.svg")
        saen("draw", str(document), "-d", decomposition, "--out", text, "--force")
        model = str(Path(folder) / "model.saen")
        saen("train", "MUTAG", "--preset", "network", "--out", model)
        out = str(figures / "explanation.svg")
        saen("explain", model, "MUTAG", "--graph", str(EXAMPLE), "--out", out, "--force")
    draw_overview()


def draw_overview() -> None:
    """A molecule, its unique parts with their counts, and what they contribute to a prediction."""
    molecules = load_dataset("MUTAG")
    model = Classifier(budget="quick", random_state=0).fit(molecules, molecules.targets)
    atoms, _ = model.explain(molecules, EXAMPLE).on_graph()
    molecule = molecules[EXAMPLE : EXAMPLE + 1]
    symbols = np.ravel(molecule.node_labels).tolist()
    pointers, neighbours = molecule.neighbours()
    parts = Counter(
        (symbol, *sorted(symbols[node] for node in neighbours[start:stop]))
        for symbol, (start, stop) in zip(symbols, pairwise(pointers.tolist()), strict=True)
    ).most_common()
    figure = new_figure(9, 4.6)
    figure.set_facecolor("white")
    titles = {0.17: "a graph", 0.5: f"{len(parts)} unique parts", 0.83: "contributions"}
    for x, title in {**titles, 0.32: "→", 0.68: "→"}.items():
        add_text(figure, title, x=x, y=0.93, ha="center", size=21)
    plain = NodeStyle.plain(len(atoms), symbols)
    coloured = NodeStyle.by_contribution(atoms / np.abs(atoms).max(), symbols)
    for left, style in ((0.0, plain), (0.665, coloured)):
        draw_graph(figure.add_axes((left, 0.0, 0.335, 0.9)), molecule, style)
    for number, (part, count) in enumerate(parts):
        row, column = divmod(number, 2)
        x, y = 0.35 + 0.165 * column, 0.66 - 0.22 * row
        _draw_star(figure.add_axes((x, y, 0.095, 0.2)), part)
        add_text(figure, f"× {count}", x=x + 0.1, y=y + 0.1, va="center", size=19)
    save_figure(figure, DOCS / "figures" / "overview.svg")


def _draw_star(axes: Any, labels: tuple[str, ...]) -> None:
    """A node in the middle and its neighbours around it."""
    turns = 0.25 + np.arange(len(labels) - 1) / max(len(labels) - 1, 1)
    angles = 2 * np.pi * turns
    places = np.vstack([[0.0, 0.0], np.stack([np.cos(angles), np.sin(angles)], axis=1)])
    if len(labels) == 2:
        places -= places.mean(axis=0)
    for place in places[1:]:
        axes.plot(*zip(places[0], place, strict=True), color=GREY, zorder=1)
    rims = [2.4, *[0.8] * (len(labels) - 1)]
    axes.scatter(*places.T, s=260, color="#E6E6E6", edgecolor=INK, linewidths=rims, zorder=2)
    for place, label in zip(places, labels, strict=True):
        axes.text(*place, label, ha="center", va="center", size=12, color=INK, zorder=3)
    axes.set(xlim=(-1.5, 1.5), ylim=(-1.5, 1.5), aspect="equal")
    axes.set_axis_off()


SCREENSHOTS = {"explorer": 1600, "report": 1200, "why": 1100, "molecule": 1100}
"""Pages, and how many pixels of their height are shown."""


def take_screenshots() -> None:
    """Pages about generated threads and the chemistry tutorial in a browser; needs Chromium."""
    from playwright.sync_api import sync_playwright

    browser = next(filter(None, map(shutil.which, ("chromium", "google-chrome"))), None)
    if browser is None:
        print("no Chromium: screenshots are unchanged")
        return
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        model, pages = f"{folder}/threads.saen", {n: f"{folder}/{n}.html" for n in SCREENSHOTS}
        train = ("train", "threads", "--preset", "network", "--out", model)
        saen(*train, "--report", pages["report"])
        saen("explore", model, "threads", "--out", pages["explorer"])
        saen("explain", model, "threads", "--graph", "17", "--out", pages["why"])
        tutorial = (DOCS / "chemistry.md").read_text(encoding="utf-8")
        for name, table in re.findall(r'```text title="(\w+\.csv)"\n(.*?)```', tutorial, re.DOTALL):
            Path(folder, name).write_text(table, encoding="utf-8")
        acids = ("--preset", "counts", "--out", f"{folder}/acids.saen")
        saen("train", f"{folder}/molecules.csv", *acids)
        why = ("--graph", "0", "--parts", "3", "--out", pages["molecule"])
        saen("explain", f"{folder}/acids.saen", f"{folder}/new.csv", *why)
        chromium = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        for name, height in SCREENSHOTS.items():
            page = chromium.new_page(viewport={"width": 1280, "height": height})
            page.goto(Path(pages[name]).as_uri())
            if name == "explorer":
                page.wait_for_selector("body[data-ready=yes]")
                page.get_by_role("button", name="draw graph 3 beside").first.click()
                page.locator("#parts tbody button").first.click()
                page.evaluate("scrollTo(0, 0)")
                page.wait_for_timeout(500)
            page.screenshot(path=DOCS / "figures" / f"{name}.png")
        chromium.close()


def measure_compression(names: list[str]) -> None:
    """Write docs/results/compression.json from `saen compress`."""
    reports = results("compression")
    for name in names:
        report = reports[name] = json.loads(saen("compress", name, "--json"))
        # Timings belong to the benchmarks, where they are repeated.
        del report["seconds"], report["peak_memory_bytes"]
    write_results("compression", {name: reports[name] for name in catalog() if name in reports})


def measure_decompositions(names: list[str]) -> None:
    """Write docs/results/decompositions.{json,md}: sizes by dataset and decomposition."""
    reports: dict[str, dict[str, Any]] = {name: {} for name in names}
    lines = [
        "# Sizes by decomposition",
        "",
        "Objects and part-of entries of all levels, before and after merging identical objects, "
        "and the size of the compressed file relative to the uncompressed one. Written by "
        "`make docs`.",
        "",
        "| dataset | decomposition | levels | objects | unique | entries | compressed | size |",
        "|---|---|---|---:|---:|---:|---:|---:|",
    ]
    for name in names:
        graphs = load_dataset(name)
        for decomposition in DECOMPOSITIONS:
            if make_decomposition(decomposition).costs(graphs).sum() > MAX_ENTRIES:
                lines.append(f"| {name} | {decomposition} | too large | | | | | |")
                continue
            report = json.loads(saen("compress", name, "-d", decomposition, "--json"))
            keys = ("levels", "bytes", "decomposition", "distinct_graphs", "ceiling")
            reports[name][decomposition] = {key: report[key] for key in keys}
            levels = report["levels"]
            total = {key: sum(level[key] for level in levels) for key in levels[1] if key != "name"}
            lines.append(
                f"| {name} | {decomposition} | {len(levels)} | {total['objects']:,} "
                f"| {total['unique']:,} | {total['entries']:,} | {total['entries_compressed']:,} "
                f"| × {report['bytes']['ratio']:.3f} |"
            )
    write_results("decompositions", reports)
    (RESULTS / "decompositions.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


# -- tables from docs/results ------------------------------------------------------------------


def compression_table() -> str:
    paper = tables()["sizes_and_runtimes"]
    lines = [
        "| dataset | entries | compressed | graphs | unique | size | paper | ceiling |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for name, report in results("compression").items():
        before = sum(level["entries"] for level in report["levels"])
        after = sum(level["entries_compressed"] for level in report["levels"])
        published = paper.get(name, {}).get("ratio")
        lines.append(
            f"| {name} | {before:,} | {after:,} | {report['levels'][-1]['objects']:,} "
            f"| {report['distinct_graphs']:,} | × {report['bytes']['ratio']:.3f} "
            f"| {'' if published is None else f'× {published:.2f}'} "
            f"| {100 * report['ceiling']:.2f} % |"
        )
    note = (
        "Ego decomposition with the paper's radii and node labels. Entries: part-of relations of "
        "all levels. Size: compressed file relative to uncompressed. Ceiling: the accuracy that no "
        "single model reading this decomposition can exceed."
    )
    return "\n".join([*lines, "", note])


def accuracy_table() -> str:
    """Accuracy of the default and published ones, for a few datasets of different kinds."""
    accuracies, statistics = results("accuracy"), results("statistics")
    lines = [
        "| dataset | graphs | saen, default | SAEN, as published | PATCHY-SAN, as published |",
        "|---|---:|---:|---:|---:|",
    ]
    for name in README_DATASETS:
        row = accuracies[name]
        published = [row["published"].get(each) for each in ("SAEN", "PATCHY-SAN")]
        cells = [reproduce.percent_interval(row["best"]["accuracy"])]
        cells += ["–" if each is None else f"{each[0]:.1f}" for each in published]
        graphs = f"{statistics[name]['graphs']:,}"
        lines.append(f"| {name} | {graphs} | {' | '.join(cells)} |")
    return "\n".join(lines)


def peers_table() -> str:
    """Time, memory and accuracy of a 10-fold cross-validation, by dataset and library."""
    peers = {
        "saen": "saen",
        "gin": "GIN, PyTorch Geometric",
        "weisfeiler_lehman": "WL kernel and SVM, GraKeL",
    }
    lines = [
        "| dataset | method | 10-fold cross-validation | peak memory | accuracy |",
        "|---|---|---:|---:|---:|",
    ]
    for row in results("benchmarks")["parts"]["peers"]["rows"]:
        if row["way"] in peers:
            measured = "accuracy" in row
            accuracy = f"{100 * row['accuracy']:.1f} %" if measured else ""
            lines.append(
                f"| {row['dataset']} | {peers[row['way']]} "
                f"| {row['evaluation']:.2f} s{'' if measured else ' (extrapolated)'} "
                f"| {human_bytes(row['peak_memory_bytes'])} "
                f"| {accuracy} |"
            )
    lines.append(_measured("peers"))
    return "\n".join(lines)


def comparisons_table() -> str:
    """Time and score of cross-validations and of molecules, next to other libraries."""
    ways = {"saen": "", "gin": "GIN ", "weisfeiler_lehman": "WL kernel "}
    rows = results("benchmarks")["parts"]["peers"]["rows"]
    lines = ["| task | saen | others |", "|---|---:|---|"]
    for name in dict.fromkeys(row["dataset"] for row in rows):
        own = {row["way"]: row for row in rows if row["dataset"] == name}
        ours, *others = (word + _time_and_accuracy(own[way]) for way, word in ways.items())
        lines.append(f"| {name}, ten folds | {ours} | {'; '.join(others)} |")
    molecules = results("molecules")["sets"][README_MOLECULES]
    peers = ("default", "chemprop", "descriptors + forest")
    ours, *others = (
        f"{row['cpu_seconds']:.0f} s, {sum(row['scores']) / len(row['scores']):.3f}"
        for row in (molecules[each] for each in peers)
    )
    cells = "; ".join(f"{peer} {each}" for peer, each in zip(peers[1:], others, strict=True))
    lines.append(f"| {README_MOLECULES.upper()}, scaffold splits, ROC-AUC | {ours} | {cells} |")
    lines.append(_measured("peers", what="Ten folds measured"))
    return "\n".join(lines)


def _time_and_accuracy(row: dict[str, Any]) -> str:
    seconds = f"{row['evaluation']:,.{0 if row['evaluation'] >= 100 else 2}f} s"
    if "accuracy" in row:
        return f"{seconds}, {100 * row['accuracy']:.1f} %"
    return f"{seconds} (extrapolated)"


def molecules_table() -> str:
    """Mean scores over the splits of every set of molecules, by model; of some splits none."""
    sets = results("molecules")["sets"]
    titles = [
        f"{name}, {'RMSE' if rows['default']['coverage'] else 'ROC-AUC'}"
        for name, rows in sets.items()
    ]
    lines = [f"| | {' | '.join(titles)} | CPU s, set by set |", "|---|" + "---:|" * (len(sets) + 1)]
    models = dict.fromkeys(model for rows in sets.values() for model in rows)
    for model in models:
        cells, seconds = [], []
        for rows in sets.values():
            row = rows.get(model)
            whole = row is not None and None not in row["scores"]
            cells.append(f"{sum(row['scores']) / len(row['scores']):.3f}" if whole else "–")
            seconds.append(f"{row['cpu_seconds']:.0f}" if whole else "–")
        lines.append(f"| {model} | {' | '.join(cells)} | {', '.join(seconds)} |")
    return "\n".join(lines)


def _measured(*names: str, what: str = "Measured") -> str:
    """When parts of the benchmarks were measured, and with which code."""
    parts = [results("benchmarks")["parts"][name] for name in names]
    dates = sorted({part["date"] for part in parts})
    commits = {part.get("commit") for part in parts}
    code = (
        "an older version of the code"
        if None in commits
        else f"commit {', '.join(sorted(commits))}"
    )
    return f"\n{what} on {' to '.join(dict.fromkeys((dates[0], dates[-1])))} with {code}."


def performance_table() -> str:
    """A selection of docs/results/benchmarks.json."""
    parts = results("benchmarks")["parts"]
    lines = ["| what | measured |", "|---|---:|"]
    for row in parts["reproduction"]["rows"]:
        lines.append(
            f"| 10 × 10-fold cross-validation, preset paper, {_datasets(row)}, whole process "
            f"on two cores | {row['seconds']['total']:.2f} s |"
        )
    for row in parts["pipeline"]["rows"]:
        task = f"{row['dataset']} ({row['entries']:,} part-of entries), from zip to compressed"
        for way, when in (("cold", "empty cache"), ("warm", "cached")):
            run = row[way]
            memory = human_bytes(run["peak_memory_bytes"])
            lines.append(f"| {task}, {when} | {run['seconds']['total']:.2f} s, {memory} |")
        if row.get("times_faster"):
            lines.append(
                f"| {row['dataset']}: speed-up over PyTorch Geometric reading the same text "
                f"| {row['times_faster']:.1f} × |"
            )
    for row in parts["scale"].get("rows", []):  # earlier runs measured generated graphs
        run = row["streaming"]
        lines.append(
            f"| {row['dataset']} ({row['nodes']:,} nodes), decomposed and compressed in chunks "
            f"| {run['seconds']['total']:.2f} s, "
            f"{human_bytes(run['peak_memory_bytes'])} |"
        )
    for row in parts["compression"]["rows"]:
        lines.append(
            f"| {row['dataset']}: speed-up of training {plural(row['networks'], 'network')} "
            f"by compression | {row['times_faster']:.1f} × |"
        )
    for row in parts["groups"]["rows"]:
        if row["preset"] == "paper":
            lines.append(
                f"| {row['dataset']}: speed-up of training {row['networks']} networks (preset "
                f"paper) as ensembles instead of one by one | {row['times_faster']:.1f} × |"
            )
    for row in parts["peers"]["rows"]:
        if row["way"] == "gin" and "times_evaluation" in row:
            note = "" if "accuracy" in row else " (extrapolated)"
            lines.append(
                f"| {row['dataset']}: speed-up of 10-fold cross-validation over a PyTorch "
                f"Geometric GIN{note} | {row['times_evaluation']:.1f} × |"
            )
    for row in parts["evaluations"]["rows"]:
        note = " (extrapolated)" if row["extrapolated"] else ""
        lines.append(
            f"| {row['dataset']}: 10 × 10-fold cross-validation, preset paper{note} "
            f"| {row['seconds']:.2f} s |"
        )
    for row in parts["prediction"]["rows"]:
        lines.append(
            f"| {row['dataset']}: latency for one graph; throughput "
            f"| {1e3 * row['latency']:.1f} ms; {row['per_second']:,.0f} graphs per second |"
        )
    used = ("reproduction", "pipeline", "scale", "compression", "groups", "peers", "evaluations")
    lines.append(_measured(*used, "prediction"))
    return "\n".join(lines)


def _datasets(row: dict[str, Any]) -> str:
    """The datasets of a run of the paper's experiments."""
    names = list(row["accuracies"])
    return names[0] if len(names) == 1 else f"{len(names)} datasets"


if __name__ == "__main__":
    main()
