"""From the zip to the compressed hierarchy, step by step, compared with PyTorch Geometric."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.data import not_available
from benchmarks.machine import installed
from benchmarks.measure import MeasurementError, Stopwatch, measure, measured, typical
from benchmarks.report import GB, check, quantity, table
from benchmarks.settings import Settings
from saen import compress_graphs, load_dataset
from saen._util.strings import plural
from saen.decompositions import Ego
from saen.io.parsing.archive import members
from saen.io.sources.catalog import find_entry
from saen.io.sources.local import locate

TITLE = "From a zip to a compressed hierarchy"

MAX_SECONDS = {"COLLAB": {"cold": 12, "warm": 5}, "REDDIT-BINARY": {"cold": 6, "warm": 3}}
MAX_MEMORY = 3 * GB
MIN_SPEEDUP = {"COLLAB": 15, "REDDIT-BINARY": 8}  # against PyTorch Geometric
WAYS = {"cold": "zip, empty cache", "warm": "cached parse", "text": "unpacked text, empty cache"}


# -- what is measured, each in its own process -------------------------------------------------


def steps(path: str, radii: list[int], node_labels: str) -> dict[str, Any]:
    """Load, then decompose and compress chunk by chunk, as `saen compress` does."""
    watch = Stopwatch()
    graphs = watch("load", load_dataset, path)
    ego = watch("vocabulary", Ego(tuple(radii), node_labels).fit, graphs)
    compressed = watch("compress", partial(compress_graphs, graphs, ego, lower_inverse=False))
    return {
        "seconds": watch.seconds,
        "graphs": len(graphs),
        "nodes": graphs.n_nodes,
        "entries": sum(compressed.entries),
    }


def pytorch_geometric(root: str, name: str) -> dict[str, Any]:
    """PyTorch Geometric's own processing of the unpacked text."""
    from torch_geometric.datasets import TUDataset  # type: ignore[import-untyped]

    watch = Stopwatch()
    dataset = watch("process", TUDataset, root, name)
    return {"seconds": watch.seconds, "graphs": len(dataset)}


# -- the part ----------------------------------------------------------------------------------


def run(settings: Settings) -> dict[str, Any]:
    """One row per available dataset."""
    places = {name: locate(name) for name in settings.datasets}
    skipped: list[dict[str, Any]] = [
        not_available(name) for name, place in places.items() if place is None
    ]
    cases = {
        name: partial(_row, name, place, settings.repeats)
        for name, place in places.items()
        if place
    }
    rows = measured(cases, skipped)
    checks = [] if settings.quick else [check for row in rows for check in _checks(row)]
    return {"rows": rows, "checks": checks, "skipped": skipped}


def _row(name: str, place: Path, repeats: int) -> dict[str, Any]:
    entry = find_entry(name)
    settings = {
        "radii": [0, 1] if entry is None else list(entry.radii),
        "node_labels": "auto" if entry is None else entry.node_labels,
    }
    runs: dict[str, list[dict[str, Any]]] = {way: [] for way in WAYS}
    with tempfile.TemporaryDirectory() as folder:
        text = _unpacked(place, Path(folder) / name / "raw")
        for _ in range(repeats):
            with tempfile.TemporaryDirectory() as cache:
                fresh = {"SAEN_CACHE": cache}
                for way, source in (("cold", place), ("warm", place), ("text", text)):
                    runs[way].append(
                        measure(steps, environment=fresh, path=str(source.resolve()), **settings)
                    )
        peer = _peer(folder, name)
    ways = {way: typical(results) for way, results in runs.items()}
    facts = {key: ways["cold"][key] for key in ("graphs", "nodes", "entries")}
    row = {"dataset": name, **settings, **facts, **ways, "pytorch_geometric": peer}
    if "seconds" in peer:
        row["times_faster"] = peer["seconds"]["total"] / ways["text"]["seconds"]["total"]
    return row


def _unpacked(place: Path, raw: Path) -> Path:
    """The text of a dataset in a folder, where PyTorch Geometric looks for it."""
    raw.parent.mkdir(parents=True)
    if place.is_dir():
        raw.symlink_to(place.resolve(), target_is_directory=True)
        return raw
    raw.mkdir()
    with members(place) as files:
        for member in files:
            with (raw / member.filename).open("wb") as file:
                file.writelines(member.blocks())
    return raw


def _peer(root: str, name: str) -> dict[str, Any]:
    """Once: it takes minutes, and its variation is small compared with the difference."""
    version = installed("torch-geometric")
    if version is None:
        return {"missing": "torch-geometric is not installed: pip install 'saen[bench]'"}
    try:
        return {"version": version, **measure(pytorch_geometric, root=root, name=name)}
    except MeasurementError as error:
        return {"missing": f"failed: {error}"}


def _checks(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    name = row["dataset"]
    checks = []
    for way, limit in MAX_SECONDS.get(name, {}).items():
        what = f"{name}, {WAYS[way]}"
        checks.append(check(what, row[way]["seconds"]["total"], limit, "s"))
        memory = row[way]["peak_memory_bytes"]
        checks.append(check(f"{what}: peak memory", memory, MAX_MEMORY, "bytes"))
    if name in MIN_SPEEDUP and "times_faster" in row:
        what = f"{name}, from text: faster than PyTorch Geometric"
        checks.append(check(what, row["times_faster"], MIN_SPEEDUP[name], "times", at_least=True))
    return checks


def markdown(document: Mapping[str, Any]) -> str:
    """The table of steps, then the comparison with PyTorch Geometric."""
    rows = document["rows"]
    if not rows:
        return ""
    runs = plural(rows[0]["cold"]["runs"], "process", "processes")
    steps_table = table(
        ("dataset", "from", "load", "vocabulary", "compress", "total", "CPU", "peak memory"),
        [
            (
                row["dataset"],
                words,
                *(quantity(seconds, "s") for seconds in row[way]["seconds"].values()),
                quantity(row[way]["cpu_seconds"], "s"),
                quantity(row[way]["peak_memory_bytes"], "bytes"),
            )
            for row in rows
            for way, words in WAYS.items()
        ],
        words=2,
    )
    return "\n".join(
        [
            f"Ego decomposition with the paper's radii and labels; median seconds of {runs} "
            "each, without imports; largest memory. An empty cache is filled by the run.\n",
            steps_table,
            "Compared with PyTorch Geometric's `TUDataset`, one run, both from the same unpacked "
            "text (its result is the graphs, ours the compressed hierarchy; both leave a binary "
            "copy on disk):\n",
            table(
                ("dataset", "entries", "saen", "PyTorch Geometric", "faster", "its peak memory"),
                [_comparison(row) for row in rows],
            ),
        ]
    )


def _comparison(row: Mapping[str, Any]) -> tuple[str, ...]:
    ours = row["text"]["seconds"]["total"]
    known = (row["dataset"], f"{row['entries']:,}", quantity(ours, "s"))
    peer = row["pytorch_geometric"]
    if "missing" in peer:
        return (*known, peer["missing"], "", "")
    return (
        *known,
        quantity(peer["seconds"]["total"], "s"),
        quantity(row["times_faster"], "times"),
        quantity(peer["peak_memory_bytes"], "bytes"),
    )
