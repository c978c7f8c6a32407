"""Large datasets: REDDIT-MULTI, threads of growing size, and ego graphs of large radius.

Whatever makes a dataset larger (more graphs, larger graphs, larger radii), the time to decompose
and compress it should grow only with the number of entries of its relations.
"""

from __future__ import annotations

import tempfile
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks.data import LARGEST, available, dataset_graphs, empty_cache, not_available
from benchmarks.measure import MeasurementError, Stopwatch, measure, typical
from benchmarks.report import GB, check, quantity, table
from benchmarks.settings import Settings
from saen import compress, compress_graphs, generate_threads, load_dataset, save
from saen._util.strings import plural
from saen.data.compression import Compressed
from saen.decompositions import Ego
from saen.errors import MissingExtraError
from saen.io.sources.local import locate
from saen.report.figures import new_figure, open_frame
from saen.report.palette import BLUE, GREY

TITLE = "Large datasets"

DATASETS = (LARGEST, "REDDIT-MULTI-5K")
BALLS = {"REDDIT-BINARY": (0, 1, 2), "DD": (0, 1, 2, 3)}
HALVINGS = 4  # sizes in the scaling plot: all graphs, half of them, …
GROWTH: dict[str, list[dict[str, Any]]] = {
    "nodes per graph": [
        {"n_graphs": 1000, "average_nodes": nodes, "radius": 1}
        for nodes in (100, 200, 400, 800, 1600)
    ],
    "radius": [{"n_graphs": 2000, "average_nodes": 60, "radius": radius} for radius in range(5)],
}
QUICK_DIVISOR = 200  # how many times fewer graphs grow in a quick run

MAX_DIRECT_SECONDS, MAX_DIRECT_MEMORY = 60, 8 * GB
MAX_STREAMING_MEMORY = 2 * GB
MAX_BALLS_MEMORY = 4 * GB
MAX_SLOPE = 1.05


# -- what is measured, each in its own process -------------------------------------------------


def read(name: str, path: str) -> dict[str, Any]:
    """Read a dataset, with an empty cache from its zip, and save it."""
    watch = Stopwatch()
    graphs = watch("read", dataset_graphs, name)
    save(graphs, path)
    return {"seconds": watch.seconds, "nodes": graphs.n_nodes}


def direct(path: str, every: int) -> dict[str, Any]:
    """Decompose every so-manieth graph of a dataset at once, then compress."""
    graphs = load_dataset(path)[::every]
    watch = Stopwatch()
    hierarchy = watch("decompose", Ego((0, 1)).decompose, graphs)
    compressed = watch("compress", compress, hierarchy)
    return {"seconds": watch.seconds, **_facts(compressed)}


def grown(n_graphs: int, average_nodes: float, radius: int, repeats: int) -> dict[str, Any]:
    """Decompose generated graphs and compress them, a few times."""
    graphs = generate_threads(n_graphs, average_nodes=average_nodes)
    ego = Ego(tuple(range(radius + 1)))
    runs = []
    for _ in range(repeats):
        watch = Stopwatch()
        hierarchy = watch("decompose", ego.decompose, graphs)
        compressed = watch("compress", compress, hierarchy)
        runs.append(watch.seconds)
    seconds = {step: median(run[step] for run in runs) for step in runs[0]}
    return {"seconds": seconds, "entries": sum(compressed.entries)}


def streaming(path: str, radii: Sequence[int]) -> dict[str, Any]:
    """Decompose and compress chunk by chunk."""
    graphs = load_dataset(path)
    watch = Stopwatch()
    ego = watch("fit", Ego(tuple(radii)).fit, graphs)
    compressed = watch("decompose and compress", compress_graphs, graphs, ego)
    return {"seconds": watch.seconds, **_facts(compressed)}


def _facts(compressed: Compressed) -> dict[str, Any]:
    """Unique objects are ordered by content: equal datasets have equal numbers."""
    return {
        "graphs": len(compressed),
        "entries": sum(compressed.entries),
        "classes": list(compressed.hierarchy.sizes),
        "checksum": zlib.crc32(compressed.top.astype(np.int64).tobytes()),
    }


# -- the part ----------------------------------------------------------------------------------


def run(settings: Settings) -> dict[str, Any]:
    """Large datasets direct and streaming, time against entries, ego graphs of large radius."""
    names, skipped = available(DATASETS, settings)
    document: dict[str, Any] = {"rows": [], "balls": [], "checks": [], "skipped": skipped}
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            path = Path(folder) / f"{name}.saen"
            try:
                row = _row(name, path, settings.repeats)
                document["rows"].append(row)
                if name == names[0]:
                    document["scaling"] = _scaling(path, row["direct"], settings)
            except MeasurementError as error:
                document["skipped"].append({"what": name, "reason": f"failed: {error}"})
        for name, radii in BALLS.items():
            _add_balls(document, name, radii, settings, folder)
    document["growth"] = {}
    for what, steps in GROWTH.items():
        try:
            document["growth"][what] = _growth(what, steps, settings)
        except MeasurementError as error:
            document["skipped"].append({"what": f"growing {what}", "reason": f"failed: {error}"})
    if "scaling" in document:
        try:
            curves = {"graphs": document["scaling"], **document["growth"]}
            _figure(curves).savefig(settings.out / "scaling.png")
            document["scaling"]["figure"] = "scaling.png"
        except MissingExtraError as error:
            document["skipped"].append({"what": "scaling.png", "reason": str(error)})
    if not settings.quick:
        document["checks"] = _checks(document)
    return document


def _row(name: str, path: Path, repeats: int) -> dict[str, Any]:
    cold = empty_cache(name, path.parent)
    first = measure(read, environment=cold, name=name, path=str(path))
    runs = range(repeats)
    whole = typical(measure(direct, path=str(path), every=1) for _ in runs)
    chunks = typical(measure(streaming, path=str(path), radii=[0, 1]) for _ in runs)
    same = all(whole[key] == chunks[key] for key in ("graphs", "entries", "classes", "checksum"))
    facts = {"graphs": whole["graphs"], "nodes": first["nodes"], "entries": whole["entries"]}
    results = {"read": first, "direct": whole, "streaming": chunks, "same_result": same}
    return {"dataset": name, **facts, **results}


def _scaling(path: Path, largest: Mapping[str, Any], settings: Settings) -> dict[str, Any]:
    """Seconds against entries for larger and larger subsets of one dataset, and the slope."""
    n_halvings = 1 if settings.quick else HALVINGS
    runs = [
        # Direct, on one thread: streaming uses a second one only if there are several chunks.
        typical(
            measure(direct, path=str(path), every=1 << halvings) for _ in range(settings.repeats)
        )
        for halvings in range(n_halvings, 0, -1)
    ]
    points = [
        {"graphs": run["graphs"], "entries": run["entries"], "seconds": run["seconds"]["total"]}
        for run in (*runs, largest)
    ]
    return _fitted([{"label": f"{point['graphs']:,} graphs", **point} for point in points])


def _growth(what: str, steps: list[dict[str, Any]], settings: Settings) -> dict[str, Any]:
    """Seconds against entries as the graphs or the radii grow, and the slope."""
    points = []
    for step in steps[:2] if settings.quick else steps:
        divisor = QUICK_DIVISOR if settings.quick else 1
        arguments = {**step, "n_graphs": step["n_graphs"] // divisor}
        result = measure(grown, **arguments, repeats=settings.repeats)
        label = f"radius {step['radius']}" if what == "radius" else f"{step['average_nodes']:,}"
        seconds = result["seconds"]["total"]
        points.append({"label": label, **step, "entries": result["entries"], "seconds": seconds})
    return _fitted(points)


def _fitted(points: list[dict[str, Any]]) -> dict[str, Any]:
    """The points with the line through their logarithms."""
    logs = np.log([[point["entries"], point["seconds"]] for point in points])
    slope, intercept = np.polyfit(logs[:, 0], logs[:, 1], 1)
    return {"points": points, "slope": float(slope), "intercept": float(intercept)}


def _add_balls(
    document: dict[str, Any], name: str, radii: tuple[int, ...], settings: Settings, cache: str
) -> None:
    what = f"{name} at radius {max(radii)}"
    place = locate(name)
    if settings.quick:
        document["skipped"].append({"what": what, "reason": "too large for a quick run"})
        return
    if place is None:
        document["skipped"].append({**not_available(name), "what": what})
        return
    try:
        arguments = {"path": str(place.resolve()), "radii": list(radii)}
        result = measure(streaming, environment={"SAEN_CACHE": cache}, **arguments)
        document["balls"].append({"dataset": name, "radii": list(radii), "streaming": result})
    except MeasurementError as error:
        document["skipped"].append({"what": what, "reason": f"failed: {error}"})


def _checks(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    checks = []
    for row in document["rows"]:
        if row["dataset"] != LARGEST:
            continue
        seconds = row["read"]["seconds"]["total"] + row["direct"]["seconds"]["total"]
        whole, chunks = (row[way]["peak_memory_bytes"] for way in ("direct", "streaming"))
        checks += [
            check(f"{LARGEST}: read, decomposed, compressed", seconds, MAX_DIRECT_SECONDS, "s"),
            check(f"{LARGEST}: peak memory", whole, MAX_DIRECT_MEMORY, "bytes"),
            check(f"{LARGEST}, streaming: peak memory", chunks, MAX_STREAMING_MEMORY, "bytes"),
        ]
    for row in document["balls"]:
        memory = row["streaming"]["peak_memory_bytes"]
        what = f"{row['dataset']} at radius {max(row['radii'])}: peak memory"
        checks.append(check(what, memory, MAX_BALLS_MEMORY, "bytes"))
    if "scaling" in document:
        slope = document["scaling"]["slope"]
        checks.append(check("time against entries: slope of the logarithms", slope, MAX_SLOPE, ""))
    for what, curve in document["growth"].items():
        words = f"time against entries, growing {what}: slope of the logarithms"
        checks.append(check(words, curve["slope"], MAX_SLOPE, ""))
    return checks


def markdown(document: Mapping[str, Any]) -> str:
    """Large datasets, then scaling, then large radii."""
    sections = []
    rows = document.get("rows", [])  # earlier runs measured generated graphs
    if rows:
        runs = plural(rows[0]["direct"]["runs"], "process", "processes")
        sections += [
            "Reading the zip with an empty cache (one process); ego graphs of radius 0 and 1, "
            f"decomposed at once or in chunks: median seconds of {runs} each, largest memory:\n",
            table(
                (
                    "dataset",
                    "mode",
                    "nodes",
                    "entries",
                    "seconds",
                    "CPU",
                    "peak memory",
                    "result",
                ),
                [cells for row in rows for cells in _ways(row)],
                words=2,
            ),
        ]
    if "scaling" in document:
        sections.append(_scaling_markdown(document["scaling"], document["growth"]))
    if document["balls"]:
        sections += [
            "Ego graphs of large radius, decomposed and compressed chunk by chunk, one run:\n",
            table(
                ("dataset", "radii", "entries", "unique ego graphs", "seconds", "peak memory"),
                [_ball(row) for row in document["balls"]],
            ),
        ]
    return "\n".join(sections)


def _ways(row: Mapping[str, Any]) -> list[tuple[str, ...]]:
    same = "the same" if row["same_result"] else "**different**"
    results = {"read": "", "direct": "", "streaming": same}
    return [
        (
            row["dataset"],
            way,
            f"{row['nodes']:,}",
            f"{row['entries']:,}",
            quantity(row[way]["seconds"]["total"], "s"),
            quantity(row[way]["cpu_seconds"], "s"),
            quantity(row[way]["peak_memory_bytes"], "bytes"),
            result,
        )
        for way, result in results.items()
    ]


def _scaling_markdown(scaling: Mapping[str, Any], growth: Mapping[str, Mapping[str, Any]]) -> str:
    figure = f"![time against entries]({scaling['figure']})\n" if "figure" in scaling else ""
    words = [
        f"Subsets of the first: time grows as entries^{scaling['slope']:.2f}.\n",
        *(
            f"Growing {what} of generated threads: time grows as entries^{curve['slope']:.2f}.\n"
            for what, curve in growth.items()
        ),
    ]
    tables = [_points(curve["points"]) for curve in (scaling, *growth.values())]
    pairs = (text for pair in zip(words, tables, strict=True) for text in pair)
    return "\n".join(filter(None, (*pairs, figure)))


def _points(points: Sequence[Mapping[str, Any]]) -> str:
    return table(
        ("size", "entries", "seconds", "million entries per second"),
        [
            (
                point["label"],
                f"{point['entries']:,}",
                quantity(point["seconds"], "s"),
                f"{point['entries'] / point['seconds'] / 1e6:.1f}",
            )
            for point in points
        ],
    )


def _ball(row: Mapping[str, Any]) -> tuple[str, ...]:
    result = row["streaming"]
    return (
        row["dataset"],
        ", ".join(map(str, row["radii"])),
        f"{result['entries']:,}",
        f"{result['classes'][1]:,}",
        quantity(result["seconds"]["total"], "s"),
        quantity(result["peak_memory_bytes"], "bytes"),
    )


def _figure(curves: Mapping[str, Mapping[str, Any]]) -> Any:
    """Time against entries, both logarithmic, with the fitted line: one panel per curve."""
    figure = new_figure(4.6 * len(curves), 4.2)
    panels = figure.subplots(1, len(curves), squeeze=False)[0]
    for axes, (what, curve) in zip(panels, curves.items(), strict=True):
        _panel(axes, what, curve)
    figure.tight_layout()
    return figure


def _panel(axes: Any, what: str, curve: Mapping[str, Any]) -> None:
    from matplotlib import ticker

    entries = np.array([point["entries"] for point in curve["points"]], dtype=float)
    seconds = np.array([point["seconds"] for point in curve["points"]])
    fitted = np.exp(curve["intercept"]) * entries ** curve["slope"]
    millions = entries / 1e6
    axes.plot(millions, fitted, color=GREY, label=f"fitted slope {curve['slope']:.2f}")
    axes.plot(millions, seconds, "o", color=BLUE, label="measured (median)")
    below: dict[str, Any] = {"xytext": (7, -11), "textcoords": "offset points", "size": 8}
    for point, *place in zip(curve["points"], millions, seconds, strict=True):
        axes.annotate(point["label"], place, **below)
    axes.set(
        xscale="log",
        yscale="log",
        xlabel="million entries of the relations",
        ylabel="seconds to decompose and compress",
        title=f"Growing {what}",
    )
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5), numticks=12))
        axis.set_major_formatter(ticker.FormatStrFormatter("%g"))
        axis.set_minor_locator(ticker.NullLocator())
    axes.margins(x=0.3, y=0.12)
    open_frame(axes)
    axes.legend(frameon=False, loc="upper left")
