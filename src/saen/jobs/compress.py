"""Decompose and compress a dataset, and report how much was saved."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from time import perf_counter
from typing import Any

from saen._util.arrays import Array
from saen._util.atomic import check_output
from saen._util.memory import peak_memory
from saen._util.progress import bar
from saen.data.chunks import compress_graphs
from saen.data.collection import concatenate_values
from saen.data.compression import Compressed, ceiling, merge_stream
from saen.decompositions import Decomposition, make_decomposition
from saen.decompositions.registry import decomposition_to_json
from saen.io.loading import data_kind, load_data, stream_data
from saen.io.options import ReadOptions
from saen.io.sources.catalog import find_entry
from saen.io.sources.local import catalog_entry, input_files
from saen.io.store.container import StoredExamples, file_bytes, original_bytes, save_examples
from saen.io.store.shards import is_shards, read_shards
from saen.learning.auto import DECOMPOSITION_OF
from saen.learning.decomposing import DifferentKindsError, fitted_fields, joined_fit


@dataclass(frozen=True)
class CompressionReport:
    """A compressed dataset, its sizes before and after, and what compressing it took.

    `compressed` is a `Compressed`, or what is as large: see `saen.cluster.compress`.
    """

    name: str
    decomposition: Decomposition
    compressed: Any
    ceiling: float | None
    seconds: dict[str, float]
    peak_memory: int | None

    def to_json(self) -> dict[str, Any]:
        """Levels, bytes, ceiling, seconds, memory and the decomposition."""
        levels = self.compressed.levels()
        return {
            "name": self.name,
            "levels": levels,
            **self._sizes(),
            "distinct_graphs": levels[-1]["unique"],
            "ceiling": self.ceiling,
            "seconds": self.seconds,
            "peak_memory_bytes": self.peak_memory,
            "decomposition": self.decomposition.settings(),
        }

    def _sizes(self) -> dict[str, Any]:
        before, after = original_bytes(self.compressed), file_bytes(self.compressed)
        return {"bytes": {"original": before, "compressed": after, "ratio": after / before}}


def known_ceiling(top: Array, targets: Array | None) -> float | None:
    """The ceiling of one class per example; None of numbers, several targets or none."""
    if targets is None or targets.dtype.kind == "f" or targets.ndim != 1:
        return None
    return ceiling(top, targets)


def step_seconds(steps: tuple[str, ...], times: list[float]) -> dict[str, float]:
    """The seconds of every step, from the times at which they began and the last one ended.

    >>> step_seconds(("load", "fit", "save"), [10.0, 10.5, 12.5])
    {'load': 0.5, 'fit': 2.0}
    """
    return {s: after - before for s, before, after in zip(steps, times, times[1:], strict=False)}


def dataset_decomposition(
    name: str,
    spec: str | None = None,
    *,
    radii: tuple[int, ...] | None = None,
    node_labels: str | None = None,
) -> Decomposition:
    """The decomposition to use for a dataset, by default that for its kind of data.

    Other defaults are the catalog's settings, also for shards of its datasets; graphs that it does
    not list are decomposed with their edge labels and directions as roles.

    >>> dataset_decomposition("MUTAG").settings()["radii"]
    [0, 1, 2, 3]
    """
    entry = find_entry(read_shards(name).catalog) if is_shards(name) else catalog_entry(name)
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

    Files that can be read in parts (see `stream_data`) are, while the part before is compressed:
    memory grows with the result and the targets, not with the file. The result is the same.

    The file has the targets and the decomposition too: `saen train` reads it.
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
    parts = _stream(name, decomposition.takes, reading)
    first, second = next(parts), next(parts, None)
    times.append(perf_counter())
    if second is None:
        result = _compress_whole(first, decomposition, times)
    else:
        reading = reading or ReadOptions()
        result = _compress_parts(chain([first, second], parts), name, decomposition, reading, times)
    fitted, compressed, targets, names, title, features, feature_names = result
    times.append(perf_counter())
    if out is not None:
        document = decomposition_to_json(fitted)
        stored = StoredExamples(compressed, document, targets, names, features, feature_names)
        save_examples(stored, out)
        times.append(perf_counter())
    return CompressionReport(
        title or name,
        fitted,
        compressed,
        known_ceiling(compressed.top, targets),
        step_seconds(("load", "fit", "compress", "save"), times),
        peak_memory(),
    )


_Result = tuple[
    Decomposition, Compressed, Array | None, tuple[str, ...], str, Array | None, tuple[str, ...]
]
"""The fitted decomposition, the compressed data, their targets with names, their name, and their
features with names."""


def _stream(name: str, takes: str, reading: ReadOptions | None) -> Iterator[Any]:
    """The data in parts, where the format allows it."""
    if takes == "graphs":
        return stream_data(name, takes, reading)
    return iter([load_data(name, takes, reading)])


def _compress_whole(data: Any, decomposition: Decomposition, times: list[float]) -> _Result:
    fitted = decomposition.fit(data)
    times.append(perf_counter())
    with bar("compressing", len(data)) as update:
        compressed = compress_graphs(data, fitted, lower_inverse=False, progress=update)
    about = (data.targets, data.target_names, data.name, data.features, data.feature_names)
    return fitted, compressed, *about


def _compress_parts(
    parts: Iterator[Any],
    name: str,
    decomposition: Decomposition,
    reading: ReadOptions,
    times: list[float],
) -> _Result:
    """Compress each part while the next is read, and merge the results as they come.

    The vocabulary is that of all parts together. What else is fitted decides the names of roles,
    which the parts must share: where there is any, they are read twice.
    """
    again = replace(reading, notify=None, report=lambda _: None)  # what was said is not repeated
    targets: list[Array] = []
    features: list[Array] = []
    names: tuple[str, ...] = ()
    feature_names: tuple[str, ...] = ()
    title = ""
    try:
        first = next(parts)
        fitted, parts = decomposition.resolved(first), chain([first], parts)
        if fitted_fields(fitted):
            for part in parts:
                fitted = joined_fit(fitted, decomposition.resolved(part))
            parts = _stream(name, decomposition.takes, again)
        times.append(perf_counter())

        def shards() -> Iterator[Compressed]:
            nonlocal names, title, feature_names
            done = 0
            with bar("compressing", None) as update:
                for part in parts:
                    joined_fit(fitted, decomposition.resolved(part))  # or it is of another kind
                    yield compress_graphs(part, fitted, lower_inverse=False)
                    targets.extend([] if part.targets is None else [part.targets])
                    features.extend([] if part.features is None else [part.features])
                    feature_names = part.feature_names
                    names, title, done = part.target_names, part.name, done + len(part)
                    update(done)

        compressed = merge_stream(shards())
    except DifferentKindsError:  # of graphs without nodes or edges; the whole has them all
        return _compress_whole(load_data(name, decomposition.takes, again), decomposition, times)
    vocabulary = compressed.hierarchy.attributes.vocabulary
    joined = concatenate_values(targets) if targets else None
    numbers = concatenate_values(features) if features else None
    about = (joined, names, title, numbers, feature_names)
    return replace(fitted, vocabulary=vocabulary), compressed, *about
