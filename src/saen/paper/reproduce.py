"""The paper's tables again, with our numbers beside its own."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from saen.compression import compress_graphs
from saen.datasets import CatalogEntry, catalog, load_dataset
from saen.decompositions import Ego
from saen.errors import FileError
from saen.paper import tables
from saen.paper.timing import measure
from saen.presets import load_preset
from saen.runs import read_json
from saen.storage import file_bytes, original_bytes
from saen.text import human_bytes

PRESETS = {"paper": 10, "modern": 3}
"""Presets whose accuracies are tabulated, and the repeats of their cross-validation."""
EPOCHS = 10
TIME_LIMIT = 100
"""Uncompressed trainings stop after so many times the compressed one's seconds."""
MEMORY_LIMIT = 16 * 10**9

Say = Callable[[str], object]


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
        """`NAME.md` and `NAME.json`."""
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise FileError(f"cannot be used as a folder ({error.strerror})", path=folder) from None
        text = f"# {self.title}\n\n{self.markdown()}"
        (folder / f"{self.name}.md").write_text(text, encoding="utf-8")
        document = json.dumps(self.data, indent=1) + "\n"
        (folder / f"{self.name}.json").write_text(document, encoding="utf-8")


def statistics(names: Sequence[str]) -> Table:
    """Size, average number of vertices and average maximum degree."""
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
                str(ours.get("normalisation", preset.defaults["normalisation"])),
                str(ours.get("min_count", 1)),
            )
        )
        data[name] = {**preset.defaults, **ours}
    columns = (
        "dataset", "radii", "S_0", "S_1", "S_2", "same here", "epochs", "batch", "normalisation",
        "rare below",
    )  # fmt: skip
    note = "Epochs, batch, normalisation and the treatment of rare labels were not published."
    return Table("parameters", "Parameters", columns, rows, data, [note])


def accuracy(names: Sequence[str], runs: Path, evaluate: Callable[[str, str, Path], None]) -> Table:
    """Accuracies of the paper's methods and of ours; runs that are not there are made."""
    published = tables()["accuracy"]
    rows, data = [], {}
    for name in (n for n in names if n in published):
        ours = {}
        for preset in PRESETS:
            folder = runs / preset / name
            if not (folder / "summary.json").exists():
                evaluate(name, preset, folder)
            ours[preset] = read_json(folder / "summary.json")
        theirs = published[name]
        gain = 100 * ours["paper"]["accuracy"]["mean"] - theirs["SAEN"][0]
        rows.append(
            (
                name,
                *(_mean_std(theirs.get(method)) for method in ("DGK", "PATCHY-SAN", "SAEN")),
                _ours(ours["paper"]),
                f"{gain:+.2f}",
                _ours(ours["modern"]),
            )
        )
        data[name] = {
            "published": theirs,
            **{
                preset: {key: run[key] for key in ("accuracy", "protocol", "device", "seconds")}
                for preset, run in ours.items()
            },
        }
    columns = ("dataset", "DGK", "PATCHY-SAN", "SAEN, paper", "preset paper", "Δ", "preset modern")
    note = (
        "Percent; ± is the standard deviation over repeats. Preset `paper`: 10 × 10-fold; preset "
        "`modern`: 3 × 10-fold; epochs fixed beforehand. Every number is in the `summary.json` of "
        "its run directory under `runs/`, with settings, versions and device. Both presets were "
        "chosen on these collections with other seeds (paper-settings.md, modern-settings.md): "
        "read them as somewhat optimistic."
    )
    return Table("accuracy", "Accuracy", columns, rows, data, [note])


def compression(names: Sequence[str], say: Say) -> Table:
    """File sizes, and the runtime of one training, before and after compression."""
    published = tables()["sizes_and_runtimes"]
    rows, data = [], {}
    for name in (n for n in names if n in published):
        say(f"{name}: sizes and runtimes")
        entry, theirs = catalog()[name], published[name]
        graphs = load_dataset(name)
        compressed = compress_graphs(graphs, Ego(entry.radii, entry.labels).fit(graphs))
        before, after = original_bytes(compressed), file_bytes(compressed)
        timings = {preset: _timing(name, preset) for preset in PRESETS}
        rows.append(
            (
                name,
                f"{theirs['ratio']:.2f}",
                f"{human_bytes(before)} → {human_bytes(after)}",
                f"{after / before:.3f}",
                f"{theirs['speedup']}" if "speedup" in theirs else theirs["seconds"],
                *(timing["shown"] for timing in timings.values()),
            )
        )
        data[name] = {"bytes": {"original": before, "compressed": after}, "timings": timings}
    columns = ("dataset", "ratio, paper", "size", "ratio", "speed-up, paper", *PRESETS)
    note = (
        f"Speed-up of {EPOCHS} full-batch epochs of one network on the CPU, in brackets "
        "microseconds per entry and epoch without and with compression: the same code runs both. "
        f"TO: more than {TIME_LIMIT} times the compressed time; "
        f"OOM: more than {human_bytes(MEMORY_LIMIT)}."
    )
    return Table("sizes_and_runtimes", "Sizes and runtimes", columns, rows, data, [note])


def _timing(name: str, preset: str) -> dict[str, Any]:
    common: dict[str, Any] = {"epochs": EPOCHS, "memory_limit": MEMORY_LIMIT}
    after = measure(name, preset, collapsed=True, time_limit=None, **common)
    if "failed" in after:
        return {"compressed": after, "shown": after["failed"]}
    # Building the uncompressed matrices is not what is timed, but must end too.
    limit = TIME_LIMIT * after["seconds"] + 300
    before = measure(name, preset, collapsed=False, time_limit=limit, **common)
    if "failed" not in before and before["seconds"] > TIME_LIMIT * after["seconds"]:
        before = {"failed": "TO"}
    if "failed" in before:
        return {"original": before, "compressed": after, "shown": before["failed"]}
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
    return "" if pair is None else f"{pair[0]:.2f} ± {pair[1]:.2f}"


def _ours(run: dict[str, Any]) -> str:
    return _mean_std([100 * run["accuracy"]["mean"], 100 * run["accuracy"]["std"]])
