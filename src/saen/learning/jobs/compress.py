"""Decompose and compress a dataset, and report how much was saved."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

from saen._util.atomic import check_output
from saen._util.progress import bar
from saen.data.compression import Compressed, ceiling, compress_graphs
from saen.decompositions import Decomposition, make_decomposition
from saen.io.container import file_bytes, original_bytes, save
from saen.io.loading import catalog_entry, data_kind, input_files, load_data
from saen.io.reading import ReadOptions
from saen.learning.defaults import DECOMPOSITION_OF


@dataclass(frozen=True)
class CompressionReport:
    """A compressed dataset, its sizes before and after, and what compressing it took."""

    name: str
    decomposition: Decomposition
    compressed: Compressed
    ceiling: float | None
    seconds: dict[str, float]
    peak_memory: int | None

    def to_json(self) -> dict[str, Any]:
        """Levels, bytes, ceiling, seconds, memory and the decomposition."""
        before, after = original_bytes(self.compressed), file_bytes(self.compressed)
        return {
            "name": self.name,
            "levels": self.compressed.levels(),
            "bytes": {"original": before, "compressed": after, "ratio": after / before},
            "distinct_graphs": len(self.compressed.hierarchy),
            "ceiling": self.ceiling,
            "seconds": self.seconds,
            "peak_memory_bytes": self.peak_memory,
            "decomposition": self.decomposition.settings(),
        }


def dataset_decomposition(
    name: str,
    spec: str | None = None,
    *,
    radii: tuple[int, ...] | None = None,
    node_labels: str | None = None,
) -> Decomposition:
    """The decomposition to use for a dataset, by default that for its kind of data.

    Other defaults are the catalog's settings; graphs that it does not list are decomposed with
    their edge labels and directions as roles.

    >>> dataset_decomposition("MUTAG").settings()["radii"]
    [0, 1, 2, 3]
    """
    entry = catalog_entry(name)
    return make_decomposition(
        spec or DECOMPOSITION_OF.get(data_kind(name), "ego"),
        overrides={"radii": radii, "node_labels": node_labels},
        defaults={"edges": "auto"}
        if entry is None
        else {"radii": entry.radii, "node_labels": entry.node_labels},
    )


def compress_dataset(
    name: str,
    decomposition: Decomposition,
    out: Path | None = None,
    reading: ReadOptions | None = None,
    *,
    force: bool = False,
) -> CompressionReport:
    """Load, decompose and compress a dataset, and write the result to `out`.

    Of the inverse, that of the top level is kept: the file does not depend on how the data were
    cut. `saen.compress_graphs` keeps all of it.

    An existing file is overwritten only with `force`.

    >>> report = compress_dataset("threads", dataset_decomposition("threads", "nodes"))
    >>> [level["unique"] for level in report.to_json()["levels"]]
    [25, 300]
    """
    if out is not None:
        check_output(out, force=force, inputs=input_files(name))
    times = [perf_counter()]
    data = load_data(name, decomposition.takes, reading)
    times.append(perf_counter())
    fitted = decomposition.fit(data)
    times.append(perf_counter())
    with bar("compressing", len(data)) as update:
        compressed = compress_graphs(data, fitted, lower_inverse=False, progress=update)
    times.append(perf_counter())
    if out is not None:
        save(compressed, out)
        times.append(perf_counter())
    steps = ("load", "fit", "compress", "save")
    return CompressionReport(
        data.name or name,
        fitted,
        compressed,
        None
        if data.targets is None or data.targets.dtype.kind == "f"
        else ceiling(compressed.top, data.targets),
        {s: after - before for s, before, after in zip(steps, times, times[1:], strict=False)},
        peak_memory(),
    )


def peak_memory() -> int | None:
    """The largest resident size of this process so far, in bytes, where the system reports it."""
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
