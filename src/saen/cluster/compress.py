"""Compress a folder of shards: every shard is a task, and their results are merged."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from saen._util.atomic import check_output, holds_input
from saen._util.executor import Executor
from saen._util.memory import peak_memory
from saen._util.progress import bar
from saen._util.remote import is_remote
from saen.cluster.partitions import Partitions, merge_by_ranges, read_partitions
from saen.cluster.work import Work, work_folder
from saen.data.chunks import compress_graphs
from saen.data.compression import merge
from saen.decompositions import Decomposition
from saen.decompositions.registry import decomposition_to_json
from saen.errors import FileError, InputError
from saen.io.store import container
from saen.io.store.container import StoredExamples, load, save, save_examples
from saen.io.store.shards import Shards, read_shards
from saen.jobs.compress import (
    CompressionReport,
    known_ceiling,
    step_seconds,
)
from saen.jobs.store import open_run, versions
from saen.learning.decomposing import DifferentKindsError, fitted_fields, joined_fit


class PartitionReport(CompressionReport):
    """A dataset compressed into ranges, its `Partitions`, and what that took."""

    compressed: Partitions

    def _sizes(self) -> dict[str, Any]:
        partitions = self.compressed
        size = sum(file.stat().st_size for file in partitions.files)
        return {
            "bytes": {"compressed": size, "moved": partitions.moved},
            "partitions": len(partitions.unique[0]),
        }


def compress_shards(
    folder: str | Path,
    decomposition: Decomposition,
    executor: Executor,
    out: Path | None = None,
    *,
    force: bool = False,
) -> CompressionReport:
    """Compress every shard in a task, merge the results, and write the result to `out`.

    The file is what `compress_dataset` writes for the same graphs in one piece. What the tasks
    leave is kept in the folder `OUT.parts` until `out` is written; if the work is interrupted,
    only what is missing there is done again. An existing file is overwritten only with `force`.

    >>> from saen import generate_threads
    >>> from saen.decompositions import Ego
    >>> from saen.cluster.executors import SerialExecutor
    >>> from saen.io.store.shards import split_graphs, write_shards
    >>> folder = getfixture("tmp_path") / "threads"
    >>> _ = write_shards(split_graphs(generate_threads(40, seed=1), 4), folder)
    >>> report = compress_shards(folder, Ego(), SerialExecutor())
    >>> report.compressed.objects[-1]
    40
    """
    shards = read_shards(folder)
    if out is not None:
        check_output(out, force=force, inputs=[folder])
    times = [perf_counter()]
    fitted = resolve_over_shards(decomposition, shards, executor)
    times.append(perf_counter())
    with work_folder(out, _settings(shards, fitted)) as work:
        files = _compress_each(shards, fitted, executor, work)
        times.append(perf_counter())
        compressed = merge([load(file) for file in files])
        times.append(perf_counter())
        fitted = replace(fitted, vocabulary=compressed.hierarchy.attributes.vocabulary)
        targets = shards.targets()
        if out is not None:
            names, document = shards.target_names(), decomposition_to_json(fitted)
            save_examples(StoredExamples(compressed, document, targets, names), out)
            times.append(perf_counter())
    return CompressionReport(
        shards.name or str(folder),
        fitted,
        compressed,
        known_ceiling(compressed.top, targets),
        step_seconds(("fit", "compress", "merge", "save"), times),
        peak_memory(),
    )


def compress_into_partitions(
    folder: str | Path,
    decomposition: Decomposition,
    executor: Executor,
    out: Path,
    partitions: int,
    *,
    force: bool = False,
) -> PartitionReport:
    """Compress every shard in a task and merge the results by ranges of keys into a folder.

    No task holds everything: see `saen.cluster.partitions`. If the work is interrupted, only what
    is missing in the folder is done again; a folder with a run of other settings is overwritten
    only with `force`.
    """
    shards = read_shards(folder)
    if is_remote(out):
        raise FileError(
            "partitions are merged in a folder that all machines see, not in an object store",
            path=out,
        )
    if holds_input(out, shards.folder):
        raise FileError("is an input of this command: choose another output", path=out)
    times = [perf_counter()]
    fitted = resolve_over_shards(decomposition, shards, executor)
    times.append(perf_counter())
    settings = _settings(shards, fitted) | {"partitions": partitions}
    with open_run(
        out.absolute(), settings, anew=force, advice="choose another folder, or use force=True"
    ) as run:
        work = Work(run)
        files = _compress_each(shards, fitted, executor, work)
        times.append(perf_counter())
        try:
            result = read_partitions(run)
        except FileError:
            result = merge_by_ranges(files, work, partitions, executor)
        times.append(perf_counter())
    tops = [container.read(file)[2]["top"] for file in result.files[-len(shards) :]]
    return PartitionReport(
        shards.name or str(folder),
        replace(fitted, vocabulary=result.vocabulary),
        result,
        known_ceiling(np.concatenate(tops), shards.targets()),
        step_seconds(("fit", "compress", "merge"), times),
        peak_memory(),
    )


def resolve_over_shards(
    decomposition: Decomposition, shards: Shards, executor: Executor
) -> Decomposition:
    """A copy whose settings fit all shards, with everything fitted that must be the same for all.

    Kinds of edges and roles of nested data become names of roles: where there are any, all shards
    are looked at. Node labels need no first pass, but whether nested data have numbers does: it is
    in their vocabulary.
    """
    if decomposition.takes != shards.kind:
        raise InputError(
            f"these shards hold {shards.kind}, but {decomposition.name} reads {decomposition.takes}"
        )
    first = _resolve(shards.one(0), decomposition)
    if not fitted_fields(first):
        return first
    for number in range(1, len(shards)):
        executor.submit(shards.shards[number].file, _resolve, shards.one(number), decomposition)
    for file, other in executor.completed():
        try:
            first = joined_fit(first, other)
        except DifferentKindsError as error:
            raise InputError(f"{file}: {error}") from None
    return first


def _resolve(shard: Shards, decomposition: Decomposition) -> Decomposition:
    data = shard.read(0)
    return decomposition.fit(data) if shard.kind == "nested" else decomposition.resolved(data)


def _compress_each(
    shards: Shards, decomposition: Decomposition, executor: Executor, work: Work
) -> list[Path]:
    """The files of the compressed shards; those that are missing are made in tasks."""
    files = {s.file: work.folder / f"shard-{n:05d}.saen" for n, s in enumerate(shards.shards)}
    graphs, done = {shard.file: shard.graphs for shard in shards.shards}, 0
    with bar("compressing", shards.n_graphs) as update:
        for name in work.make(
            files, executor, _compress_shard, lambda number: (shards.one(number), decomposition)
        ):
            done += graphs[name]
            update(done)
    return list(files.values())


def _compress_shard(file: Path, shard: Shards, decomposition: Decomposition) -> None:
    save(compress_graphs(shard.read(0), decomposition, lower_inverse=False), file)


def _settings(shards: Shards, decomposition: Decomposition) -> dict[str, Any]:
    """What decides the result."""
    fitted = {name: getattr(decomposition, name) for name in fitted_fields(decomposition)}
    return {
        "shards": shards.digest(),
        "decomposition": decomposition.settings(),
        "fitted": {name: list(known) for name, known in fitted.items()},
        "versions": versions(),
    }
