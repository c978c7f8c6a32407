"""`saen compress`: collapse a dataset, say how much was saved, keep the result."""

from __future__ import annotations

import sys
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any

import typer

from saen._util.progress import bar
from saen._util.strings import human_bytes
from saen.cli.app import (
    AsJson,
    DecompositionName,
    Name,
    NodeLabels,
    Radii,
    chosen_decomposition,
    console,
    described,
    heading,
    level_table,
    print_json,
)
from saen.data.compression import Compressed, ceiling, compress_graphs
from saen.io.container import file_bytes, original_bytes, save
from saen.io.loading import load_data
from saen.report.charts import plot_levels
from saen.report.figures import save_figure


def command(
    name: Name,
    decomposition: DecompositionName = "ego",
    radii: Radii = None,
    node_labels: NodeLabels = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Write the compressed hierarchy here.")
    ] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw objects before and after.")] = None,
    json: AsJson = False,
) -> None:
    """Decompose a dataset and collapse equal objects on every level.

    Example: saen compress IMDB-MULTI --radii 0,1,2 --out imdb.saen
    """
    times: dict[str, float] = {}
    chosen = chosen_decomposition(name, decomposition, radii, node_labels)
    start = perf_counter()
    structures = load_data(name, chosen.takes)
    times["load"] = perf_counter() - start
    start = perf_counter()
    chosen = chosen.fit(structures)
    times["fit"] = perf_counter() - start
    start = perf_counter()
    with bar("decomposing and collapsing", len(structures)) as update:
        compressed = compress_graphs(structures, chosen, progress=update)
    times["compress"] = perf_counter() - start
    if out is not None:
        start = perf_counter()
        save(compressed, out)
        times["save"] = perf_counter() - start
    report = _report(structures, compressed, times) | {"decomposition": chosen.settings()}
    if plot is not None:
        title = f"{structures.name or name}: what is left after collapsing equal objects"
        save_figure(plot_levels(compressed.levels(), title), plot)
    if json:
        print_json(report)
    else:
        _print(structures.name or name, report, out)


def _report(structures: Any, compressed: Compressed, times: dict[str, float]) -> dict[str, Any]:
    before, after = original_bytes(compressed), file_bytes(compressed)
    targets = structures.targets
    has_classes = targets is not None and targets.dtype.kind != "f"
    return {
        "name": structures.name,
        "levels": compressed.levels(),
        "bytes": {"original": before, "compressed": after, "ratio": after / before},
        "distinct_graphs": len(compressed.hierarchy),
        "ceiling": ceiling(compressed.top, targets) if has_classes else None,
        "seconds": times,
        "peak_memory_bytes": peak_memory(),
    }


def peak_memory() -> int | None:
    """The largest resident size of this process so far, in bytes, where the system tells."""
    try:
        # What getrusage gives on Linux survives exec: it may be the parent's.
        status = Path("/proc/self/status").read_text(encoding="ascii")
        return int(status.partition("VmHWM:")[2].split(maxsplit=1)[0]) * 1024
    except (OSError, IndexError, ValueError):
        pass
    try:
        import resource
    except ImportError:  # Windows
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def _print(name: str, report: dict[str, Any], out: Path | None) -> None:
    heading(f"{name}, {described(report['decomposition'])}")
    console().print(level_table(report["levels"]))
    size, top = report["bytes"], report["levels"][-1]
    lines = [
        f"size       {human_bytes(size['original'])} → {human_bytes(size['compressed'])} "
        f"(ratio {size['ratio']:.3f})",
        f"distinct   {report['distinct_graphs']:,} of {top['objects']:,} {top['name']}",
    ]
    if report["ceiling"] is not None:
        lines.append(
            f"ceiling    {100 * report['ceiling']:.2f} % accuracy: no single fixed model that "
            "sees these parts can do better"
        )
    times = ", ".join(f"{step} {seconds:.2f} s" for step, seconds in report["seconds"].items())
    lines.append(f"time       {times}")
    if report["peak_memory_bytes"] is not None:
        lines.append(f"memory     {human_bytes(report['peak_memory_bytes'])} at most")
    if out is not None:
        lines.append(f"written    {out}")
    console().print("\n" + "\n".join(lines), soft_wrap=True)
