"""The paper's tables again, with our numbers beside its own."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from saen._util.atomic import atomic_write, make_folder
from saen._util.json_files import read_json, write_json
from saen._util.progress import bar
from saen._util.strings import did_you_mean, human_bytes
from saen.data.chunks import compress_graphs
from saen.decompositions import Ego
from saen.errors import DatasetNotFoundError, FileError, InputError
from saen.io.loading import load_dataset
from saen.io.sources.catalog import CatalogEntry, catalog, find_entry
from saen.io.sources.local import locate
from saen.io.store.container import file_bytes, original_bytes
from saen.jobs.evaluate import Protocol, evaluate_dataset
from saen.jobs.groups import OVERLAP
from saen.jobs.job import Job
from saen.jobs.store import SUMMARY
from saen.learning.comparison import verdict
from saen.learning.decomposing import Decompositions
from saen.learning.presets import load_preset
from saen.paper import tables
from saen.paper.charts import plot_accuracy, plot_compression, plot_gain
from saen.paper.kernel import COSTS, DEPTHS, evaluate_kernel
from saen.paper.timing import measure
from saen.report.figures import save_figure

FOLDS = 10
TIMED = ("paper", "network")
"""Presets whose trainings are timed with and without compression."""
EPOCHS = 20
ROUNDS, PATIENCE = 5, 40.0
"""Pairs of timings at most, and seconds after which no further pair is begun."""
TIME_LIMIT = 100
"""Uncompressed trainings stop after so many times the compressed one's seconds."""
MEMORY_LIMIT = 16 * 10**9


@dataclass(frozen=True)
class Run:
    """A kind of cross-validation, with the seed 0; `overrides` replace settings of the preset."""

    preset: str
    repeats: int
    selection: str = "fixed"
    overrides: Mapping[str, Any] = field(default_factory=dict)
    groups: str | None = None

    def __str__(self) -> str:
        changed = "".join(f", {key} {value}" for key, value in self.overrides.items())
        changed += "" if self.groups is None else f", groups by {self.groups}"
        return f"{self.repeats} × {FOLDS}-fold, preset {self.preset}{changed}, {self.selection}"


AS_WRITTEN = {
    "normalization": "none",
    "schedule": "constant",
    "min_count": 1,
    "output_activation": True,
}
"""What turns the preset `paper` into the network that the paper describes."""

RUNS = {
    "written": Run("paper", 10, overrides=AS_WRITTEN),
    "paper": Run("paper", 10),
    "network": Run("network", 3),
    "best": Run("best", 3),
    "overlap": Run("best", 1, groups=OVERLAP),
}
"""The runs whose accuracies are tabulated, by the folder that they are kept in."""
LONG = ("REDDIT-MULTI-5K", "REDDIT-MULTI-12K")
"""Ten folds of preset `best` take more than ten minutes on two cores: one repeat, and no groups."""


def runs_of(name: str) -> dict[str, Run]:
    """The runs on a dataset, by kind."""
    once = {"best": replace(RUNS["best"], repeats=1)} if name in LONG else {}
    runs = RUNS | once
    return {kind: run for kind, run in runs.items() if run.groups is None or name not in LONG}


Say = Callable[[str], object]
Missing = Sequence[tuple[str, Run, Path]]
"""Runs to make: on which dataset, of which kind, in which folder."""


@dataclass(frozen=True)
class Table:
    """A table of text, and the numbers that it shows."""

    name: str
    title: str
    columns: tuple[str, ...]
    rows: list[tuple[str, ...]]
    data: dict[str, Any]
    notes: list[str] = field(default_factory=list)

    def markdown(self) -> str:
        """The table for a document."""
        lines = [
            f"| {' | '.join(self.columns)} |",
            f"|---|{'---:|' * (len(self.columns) - 1)}",
            *(f"| {' | '.join(row)} |" for row in self.rows),
            "",
            *self.notes,
        ]
        return "\n".join(lines).rstrip() + "\n"

    def write(self, folder: Path) -> None:
        """`NAME.md` and `NAME.json`, each whole or not at all."""
        make_folder(folder)
        with atomic_write(folder / f"{self.name}.md") as temporary:
            text = f"# {self.title}\n\n{self.markdown()}"
            temporary.write_text(text, encoding="utf-8")
        write_json(folder / f"{self.name}.json", self.data)


def statistics(names: Sequence[str]) -> Table:
    """Size, average number of nodes and average maximum degree."""
    rows, data = [], {}
    for entry in _published(names):
        found, paper = load_dataset(entry.name).summary(), entry.paper
        assert paper is not None
        cells = [entry.name]
        for key in ("graphs", "average_nodes", "average_max_degree"):
            ours, theirs = found[key], getattr(paper, key)
            digits = 0 if key == "graphs" else 2
            cells += [
                f"{theirs:,.{digits}f}",
                f"{ours:,.{digits}f}",
                f"{ours - theirs:+.{digits}f}",
            ]
        rows.append(tuple(cells))
        data[entry.name] = {k: found[k] for k in ("graphs", "average_nodes", "average_max_degree")}
    columns = ("dataset", "size", "ours", "Δ", "nodes", "ours", "Δ", "max degree", "ours", "Δ")
    return Table("statistics", "Statistics of the datasets", columns, rows, data)


def parameters(names: Sequence[str]) -> Table:
    """Radii and layers as published, and what the preset adds to them."""
    preset, published = load_preset("paper"), tables()["parameters"]
    rows, data = [], {}
    for name in (n for n in names if n in published):
        ours = preset.datasets[name]
        rows.append(
            (
                name,
                ", ".join(map(str, published[name]["radii"])),
                *("-".join(map(str, sizes)) for sizes in published[name]["layers"]),
                "yes" if ours["layers"] == published[name]["layers"] else "no",
                str(ours["epochs"]),
                str(ours.get("batch_size", "auto")),
                str(ours.get("normalization", preset.defaults["normalization"])),
                str(ours.get("min_count", 1)),
            )
        )
        data[name] = {**preset.defaults, **ours}
    columns = (
        "dataset", "radii", "S_0", "S_1", "S_2", "same here", "epochs", "batch", "normalization",
        "rare below",
    )  # fmt: skip
    note = "Epochs, batch, normalization and the treatment of rare labels were not published."
    return Table("parameters", "Parameters", columns, rows, data, [note])


TABLES = ("statistics", "parameters", "accuracy", "compression", "kernel")


def reproduce(
    what: str, datasets: Sequence[str] | None, out: Path, *, device: str = "auto", say: Say
) -> dict[str, Table]:
    """Make one of the paper's tables, or `all`, with our numbers beside it; write it to a folder.

    `datasets` None means all that are available. Tables and plots go to `out`, runs to `out/runs`.
    """
    needs_data = what != "parameters"
    if datasets is None:
        names = _datasets_at_hand() if needs_data else list(catalog())
    else:
        names = _known_names(datasets)
    makers: dict[str, Callable[[], Table]] = {
        "statistics": lambda: statistics(names),
        "parameters": lambda: parameters(names),
        "accuracy": lambda: accuracy(
            names, out / "runs", lambda missing: make_runs(missing, device, say)
        ),
        "compression": lambda: compression(names, say),
        "kernel": lambda: kernel(names, say),
    }
    made = {one: makers[one]() for one in (TABLES if what == "all" else (what,))}
    made = {one: table for one, table in made.items() if table.rows}
    if not made:
        raise InputError(f"the paper's table has none of {', '.join(names)}")
    for table in made.values():
        table.write(out)
    if "accuracy" in made:
        save_figure(plot_accuracy(made["accuracy"].data), out / "accuracy.png")
        save_figure(plot_gain(made["accuracy"].data), out / "gain.png")
    if "compression" in made:
        figure = plot_compression(made["compression"].data)
        save_figure(figure, out / "sizes_and_runtimes.png")
    return made


def _datasets_at_hand() -> list[str]:
    names = [name for name in catalog() if locate(name)]
    if not names:
        raise DatasetNotFoundError(
            "none of the paper's datasets is here: set SAEN_DATA to their folder, or name those to "
            "download with --datasets"
        )
    return names


def _known_names(datasets: Sequence[str]) -> list[str]:
    names = []
    for name in datasets:
        entry = find_entry(name.strip())
        if entry is None:
            raise InputError(f"{name!r} is not in the catalog{did_you_mean(name, catalog())}")
        names.append(entry.name)
    return list(dict.fromkeys(names))


def make_runs(missing: Missing, device: str, say: Say) -> None:
    """Make runs of the accuracy table, one after the other.

    While one trains, the data of the next are loaded, decomposed and compressed; all runs on a
    dataset that come one after the other share them.
    """
    jobs = [Job(name, run.preset, run.overrides, device=device) for name, run, _ in missing]
    known: dict[str, Decompositions] = {}

    def prepare(job: Job) -> Decompositions:
        if job.data not in known:
            known.clear()
            known[job.data] = Decompositions(job.load())
        data = known[job.data]
        every = np.arange(len(data))
        data.decomposed(job.estimator(data.data.targets).learner().spec, every)
        return data

    with ThreadPoolExecutor(1) as thread, bar("runs", len(missing)) as update:
        coming = [thread.submit(prepare, job) for job in jobs[:1]]
        for place, (job, (name, run, folder)) in enumerate(zip(jobs, missing, strict=True)):
            data = coming.pop().result()
            coming += [thread.submit(prepare, each) for each in jobs[place + 1 : place + 2]]
            say(f"{name}: {run}")

            def progress(done: int, total: int, place: int = place, name: str = name) -> None:
                update(place + done / max(total, 1), note=name)

            protocol = Protocol(run.selection, run.repeats, FOLDS, groups=run.groups)
            evaluate_dataset(job, protocol, folder, known=data, progress=progress)


def accuracy(names: Sequence[str], runs: Path, make: Callable[[Missing], object]) -> Table:
    """Accuracies of the paper's methods and of ours; `make` makes the runs that are not there.

    The cells of runs that it does not make are empty. `runs` holds a folder per kind of run with a
    run directory per dataset. Raises `InputError` where one holds another run than the table says.
    """
    published = tables()["accuracy"]
    wanted = {
        name: {kind: (run, runs / kind / name) for kind, run in runs_of(name).items()}
        for name in names
        if name in published
    }
    missing = [
        (name, run, folder)
        for name, kinds in wanted.items()
        for run, folder in kinds.values()
        if not (folder / SUMMARY).exists()
    ]
    if missing:
        make(missing)
    data = {
        name: {
            "published": published[name],
            **{
                kind: _result(folder / SUMMARY, name, run)
                for kind, (run, folder) in each.items()
                if (folder / SUMMARY).exists()
            },
        }
        for name, each in wanted.items()
    }
    rows = [_accuracy_row(name, row) for name, row in data.items()]
    columns = (
        "dataset", "DGK", "PATCHY-SAN", "SAEN, paper", "as written", "preset paper", "Δ",
    )  # fmt: skip
    repeats = {kind: run.repeats for kind, run in RUNS.items()}
    once = "".join(f", 1 on {name}" for name in LONG if "best" in data.get(name, {}))
    note = (
        "Percent: mean, with a 95 % interval corrected for the overlap of training parts, of "
        f"{FOLDS}-fold cross-validation ({repeats['paper']} repeats for the preset `paper` as in "
        f"the paper, {repeats['network']} for `network`, {repeats['best']} for `best`{once}). The "
        "paper's own numbers are printed as there, with the standard deviation over repeats, "
        "which says how much the folds matter and not how much the data do. Δ: our mean less the "
        "paper's, and whether our interval is above or below that, or holds it (level). Without "
        "duplicates: `best` on the test graphs that are not identical to a training graph. "
        f"Grouped by overlap: `best`, {repeats['overlap']} × {FOLDS}-fold, with graphs that are "
        "made of the same thing in one fold ([overlap](../overlap.md)). As written: the preset "
        "`paper` without what is not in the paper, that is without normalization, cosine schedule "
        "and shared entries for rare degrees, and with the Leaky ReLU on all units, outputs "
        "included. All presets fix everything beforehand; what the paper leaves open we chose on "
        "these datasets with other seeds ([preset paper](paper-settings.md)): read them as "
        "somewhat optimistic. `best` chooses and weights networks and part counts for each fold on "
        "inner folds of its training part; its list of candidates was made looking at some of "
        "these datasets with other seeds. Every number is in the `summary.json` of its run under "
        "`runs/`, with settings, versions and device."
    )
    notes = ["## The presets `network` and `best`", "", *_presets(data), "", note, *_members(data)]
    return Table("accuracy", "Accuracy", columns, rows, data, notes)


def _presets(data: dict[str, Any]) -> list[str]:
    """What the presets of today reach beside the paper's, for a document."""
    lines = [
        "| dataset | `network` | `best` | Δ | without duplicates | grouped by overlap |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for name, row in data.items():
        ours = {kind: percent_interval(row[kind]["accuracy"]) for kind in RUNS if kind in row}
        beside = rest = ""
        if "best" in row:
            beside = _beside(row["best"]["accuracy"], row["published"]["SAEN"][0])
            share = row["best"]["duplicates"]["accuracy_rest"]
            rest = "" if share is None else f"{100 * share:.1f}"
        cells = [ours.get(kind, "") for kind in ("network", "best", "overlap")]
        lines.append(f"| {' | '.join([name, *cells[:2], beside, rest, cells[2]])} |")
    return lines


def _members(data: dict[str, Any]) -> list[str]:
    """What `best` chose on every dataset, for a document."""
    lines = []
    for name, row in ((name, row) for name, row in data.items() if "best" in row):
        tried = sorted(row["best"]["tried"], key=lambda each: -each["weight"])
        members = "; ".join(
            f"{each['candidate']} {each['weight']:.2f}" for each in tried if each["weight"] > 0
        )
        lines.append(f"| {name} | {members} |")
    note = (
        "Mean weights over all folds; every fold chooses for itself. What it costs, and "
        "how accurate the default was before: [the default](default.md)."
    )
    heading = "| dataset | members of `best` |"
    return ["", "## What `best` chose", "", heading, "|---|---|", *lines, "", note]


def _accuracy_row(name: str, row: dict[str, Any]) -> tuple[str, ...]:
    theirs, ours = row["published"], {kind: row[kind]["accuracy"] for kind in RUNS if kind in row}
    return (
        name,
        *(_mean_std(theirs.get(method)).partition(" ")[0] for method in ("DGK", "PATCHY-SAN")),
        _mean_std(theirs["SAEN"]),
        *(percent_interval(ours[kind]) if kind in ours else "" for kind in ("written", "paper")),
        _beside(ours["paper"], theirs["SAEN"][0]) if "paper" in ours else "",
    )


def percent_interval(summary: Mapping[str, Any]) -> str:
    """A mean with its interval, in percent."""
    low, high = (100 * end for end in summary["interval"])
    return f"{100 * summary['mean']:.1f} ({low:.1f} to {high:.1f})"


def _beside(summary: Mapping[str, Any], published: float) -> str:
    """Where our score is beside a published one."""
    low, high = (100 * end - published for end in summary["interval"])
    return f"{100 * summary['mean'] - published:+.1f}, {verdict(low, high)}"


def _result(path: Path, name: str, run: Run) -> dict[str, Any]:
    """What the summary of a run says, if it is the run that the table says."""
    preset = load_preset(run.preset)
    expected = {
        "dataset": name,
        "preset": run.preset,
        "repeats": run.repeats,
        "folds": FOLDS,
        "selection": run.selection,
        "seed": 0,
        "grid": preset.grid if run.selection == "nested" else {},
        **preset.settings(name),
        **run.overrides,
        "groups": run.groups,
    }
    summary = read_json(path)
    try:
        found = {key: summary[key] for key in ("dataset", "preset", "seed", "grid")}
        found |= summary["protocol"] | summary["settings"]
        found["groups"] = summary.get("groups", {}).get("by")
        kept = ("accuracy", "protocol", "device", "duplicates")
        result = {key: summary[key] for key in kept}
        if run.preset == "best":
            result["tried"] = summary["tried"]
    except (KeyError, TypeError):
        raise FileError("does not hold the summary of a run", path=path) from None
    differing = [
        f"{key} is {_shown(found, key)}, not {_shown(expected, key)}"
        for key in {**expected, **found}
        if found.get(key) != expected.get(key)
    ]
    if differing:
        raise InputError(f"{path} is of another run than the table's: {'; '.join(differing)}")
    return result


def _shown(settings: dict[str, Any], key: str) -> str:
    return json.dumps(settings[key]) if key in settings else "left out"


def compression(names: Sequence[str], say: Say) -> Table:
    """File sizes, and the runtime of one training, before and after compression."""
    published = tables()["sizes_and_runtimes"]
    data = {}
    for name in (n for n in names if n in published):
        say(f"{name}: sizes and runtimes")
        entry = catalog()[name]
        graphs = load_dataset(name)
        compressed = compress_graphs(graphs, Ego(entry.radii, entry.node_labels).fit(graphs))
        data[name] = {
            "published": published[name],
            "bytes": {
                "original": original_bytes(compressed),
                "compressed": file_bytes(compressed),
            },
            "timings": {preset: _timing(name, preset) for preset in TIMED},
            "date": date.today().isoformat(),
        }
    return compression_table(data)


def compression_table(data: dict[str, Any]) -> Table:
    """The table of sizes and runtimes, from what was measured."""
    rows = [_compression_row(name, row) for name, row in data.items()]
    columns = ("dataset", "ratio, paper", "size", "ratio", "speed-up, paper", *TIMED)
    note = (
        f"Speed-up of the median of {EPOCHS} full-batch epochs of one network on the CPU (the "
        f"median of up to {ROUNDS} pairs of runs, as many as begin within {PATIENCE:.0f} s), in "
        "brackets microseconds per entry and epoch without and with compression: the same code "
        f"runs both. TO: more than {TIME_LIMIT} times the compressed time; "
        f"OOM: decomposing and training take more than {human_bytes(MEMORY_LIMIT)}. "
        f"Measured on {' and '.join(sorted({row['date'] for row in data.values()}))}."
    )
    files = (
        "Size: of an uncompressed .saen file with the hierarchy, before merging (labels of all "
        "nodes; parts and roles of all ego graphs and graphs, in the smallest integers that hold "
        "them) and after (the same of the unique ones with counts, and the unique graph of every "
        'graph); without targets. The paper\'s sizes are of "the preprocessed datasets", files of '
        "another format, so the ratios are not of the same files.\n"
    )
    return Table("sizes_and_runtimes", "Sizes and runtimes", columns, rows, data, [files, note])


def _compression_row(name: str, row: dict[str, Any]) -> tuple[str, ...]:
    theirs, (before, after) = row["published"], row["bytes"].values()
    speedup = f"{theirs['speedup']}" if "speedup" in theirs else theirs["seconds"]
    return (
        name,
        f"{theirs['ratio']:.2f}",
        f"{human_bytes(before)} → {human_bytes(after)}",
        f"{after / before:.3f}",
        f"≥ {speedup}" if theirs["seconds"] == "TO" else speedup,
        *(timing["shown"] for timing in row["timings"].values()),
    )


def kernel(names: Sequence[str], say: Say) -> Table:
    """Accuracy of a graph kernel with a support vector machine beside the one that is quoted."""
    published, run = tables()["kernel"], RUNS["best"]
    data = {}
    for name in (n for n in names if n in published):
        say(f"{name}: Weisfeiler-Lehman subtree kernel")
        found = evaluate_kernel(load_dataset(name), repeats=run.repeats, folds=FOLDS)
        data[name] = {"published": published[name], **found}
    rows = [_kernel_row(name, row) for name, row in data.items()]
    columns = ("dataset", "WL subtree, quoted", "WL subtree, here", "Δ", "depths chosen")
    note = (
        f"Percent, with a corrected 95 % interval: {run.repeats} repeats of {FOLDS}-fold "
        "cross-validation (seed 0) of a support vector machine on the cosines of the counts of "
        f"Weisfeiler-Lehman colours after 0 … depth rounds. Depth ({_listed(DEPTHS)}) and C "
        f"({_listed(COSTS)}) are chosen for each fold on an inner split of its training part."
    )
    return Table("kernel", "The Weisfeiler-Lehman subtree kernel", columns, rows, data, [note])


def _kernel_row(name: str, row: dict[str, Any]) -> tuple[str, ...]:
    ours, theirs = 100 * row["accuracy"]["mean"], row["published"]
    return (
        name,
        f"{theirs:.2f}",
        percent_interval(row["accuracy"]),
        f"{ours - theirs:+.2f}",
        _listed(sorted({choice["depth"] for choice in row["chosen"]})),
    )


def _timing(name: str, preset: str) -> dict[str, Any]:
    """The pair of timings, with and without compression, whose speed-up is the median."""
    rounds: list[dict[str, Any]] = []
    start = perf_counter()
    while not rounds or (len(rounds) < ROUNDS and perf_counter() - start < PATIENCE):
        found = _pair(name, preset)
        if any("failed" in found.get(way, {}) for way in ("original", "compressed")):
            if not rounds:
                return found
            break  # of a busy machine: what was measured before counts
        rounds.append(found)
    rounds.sort(key=lambda found: found["speedup"])
    return {**rounds[(len(rounds) - 1) // 2], "speedups": [found["speedup"] for found in rounds]}


def _pair(name: str, preset: str) -> dict[str, Any]:
    common: dict[str, Any] = {"epochs": EPOCHS, "memory_limit": MEMORY_LIMIT}
    after = measure(name, preset, compressed=True, time_limit=None, **common)
    if "failed" in after:
        return {"compressed": after, "shown": after["failed"]}
    # Building the uncompressed matrices is not what is timed, but must end too.
    limit = TIME_LIMIT * after["seconds"] + 300
    before = measure(name, preset, compressed=False, time_limit=limit, **common)
    if "failed" not in before and before["seconds"] > TIME_LIMIT * after["seconds"]:
        before = {"failed": "TO"}
    if "failed" in before:
        found = {"original": before, "compressed": after, "shown": before["failed"]}
        # Ended for its time, it would have taken more than this.
        return {**found, "speedup": TIME_LIMIT} if before["failed"] == "TO" else found
    each = [1e6 * run["seconds"] / run["epochs"] / run["entries"] for run in (before, after)]
    speedup = before["seconds"] / after["seconds"]
    return {
        "original": before,
        "compressed": after,
        "speedup": speedup,
        "shown": f"{speedup:.1f} × ({each[0]:.2f}, {each[1]:.2f})",
    }


def _published(names: Sequence[str]) -> list[CatalogEntry]:
    return [catalog()[name] for name in names if catalog()[name].paper is not None]


def _mean_std(pair: Sequence[float] | None) -> str:
    if pair is None:
        return ""
    return f"{pair[0]:.2f} ± {pair[1]:.2f}"


def _listed(values: Sequence[float]) -> str:
    return ", ".join(f"{value:g}" for value in values)
