"""Predict or embed a folder of shards: every shard is a task, which leaves one file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from saen._util.arrays import Array
from saen._util.atomic import check_output
from saen._util.digests import file_checksum
from saen._util.executor import Executor
from saen._util.progress import bar
from saen._util.remote import absolute
from saen.cluster.work import Work, work_folder
from saen.errors import InputError
from saen.io.embeddings import FORMATS as EMBEDDING_FORMATS
from saen.io.embeddings import Embedded, write_embeddings
from saen.io.result_tables import FORMATS, check_format
from saen.io.store import container
from saen.io.store.packing import pack_column, unpack_column
from saen.io.store.shards import Shards, read_shards
from saen.jobs.predict import (
    EmbeddingReport,
    PredictionReport,
    chosen_level,
    load_model,
    nearest_columns,
    write_predictions,
)
from saen.jobs.store import versions
from saen.learning.prediction import Predicted, embed_chunks, predict_chunks


def predict_shards(
    model_file: Path,
    folder: str | Path,
    executor: Executor,
    out: Path | None = None,
    *,
    device: str = "auto",
    force: bool = False,
) -> PredictionReport:
    """Predict every shard in a task, and write one row per graph to `out`, or to standard output.

    Rows are those of `predict_dataset`. If the work is interrupted, only what is missing in the
    folder `OUT.parts` is done again. An existing file is overwritten only with `force`.
    """
    shards = read_shards(folder)
    if out is not None:
        check_format(out, FORMATS)
        check_output(out, force=force, inputs=[model_file, folder])
    model = load_model(model_file, "cpu")
    _check_takes(model, shards)
    settings = _settings("predict", model_file, shards, device)
    with work_folder(out, settings) as work:
        arguments = (absolute(model_file), device)
        files = _run(shards, executor, work, _predict_shard, arguments)
        return write_predictions(model, out, map(_predicted_rows, files, shards.files))


def _predicted_rows(file: Path, shard: Path) -> tuple[Predicted, Array | None, tuple[str, ...]]:
    _, document, tensors = container.read(file)
    columns = {key: unpack_column(key, document, tensors) for key in document["columns"]}
    found = Predicted(0, columns, document["unseen"], document["objects"])
    _, targets, names = container.read_examples(shard)
    return found, targets, names


def embed_shards(
    model_file: Path,
    folder: str | Path,
    executor: Executor,
    out: Path,
    *,
    level: str | None = None,
    device: str = "auto",
    force: bool = False,
) -> EmbeddingReport:
    """Write the learned vectors of the objects of a level, every shard in a task.

    Rows are those of `embed_dataset`; interrupted work is as in `predict_shards`.
    """
    shards = read_shards(folder)
    check_format(out, EMBEDDING_FORMATS)
    check_output(out, force=force, inputs=[model_file, folder])
    model = load_model(model_file, "cpu")
    _check_takes(model, shards)
    number, name, lower = chosen_level(model, level)
    settings = _settings("embed", model_file, shards, device) | {"level": number}
    with work_folder(out, settings) as work:
        arguments = (absolute(model_file), device, number)
        files = list(_run(shards, executor, work, _embed_shard, arguments))

        def parts() -> Iterator[Embedded]:
            start = 0
            for file, shard in zip(files, shards.shards, strict=True):
                tensors = container.read(file)[2]
                yield Embedded(tensors["graphs"] + start, tensors["objects"], tensors["vectors"])
                start += shard.graphs

        rows, width = write_embeddings(
            out, parts(), shards.ids(), shards.targets(), name, lower=lower
        )
    return EmbeddingReport(str(out), number, name, rows, width)


def _check_takes(model: Any, shards: Shards) -> None:
    takes = model.fitted_.takes
    if takes != shards.kind:
        raise InputError(f"these shards hold {shards.kind}, but this model reads {takes}")


def _settings(job: str, model_file: Path, shards: Shards, device: str) -> dict[str, Any]:
    """What decides the results."""
    return {
        "job": job,
        "model": file_checksum(Path(model_file)),
        "shards": shards.digest(),
        "device": device,
        "versions": versions(),
    }


def _run(
    shards: Shards,
    executor: Executor,
    work: Work,
    function: Callable[..., int],
    arguments: tuple[Any, ...],
) -> Iterator[Path]:
    """The file that the task of every shard leaves, in order, as soon as it is there."""
    files = {s.file: work.folder / f"shard-{n:05d}.saen" for n, s in enumerate(shards.shards)}
    graphs, done = {shard.file: shard.graphs for shard in shards.shards}, 0
    ready: set[str] = set()
    waiting = list(files)
    with bar("graphs", shards.n_graphs) as update:
        for name in work.make(
            files, executor, function, lambda number: (shards.one(number), *arguments)
        ):
            ready.add(name)
            done += graphs[name]
            update(done)
            while waiting and waiting[0] in ready:
                yield files[waiting.pop(0)]


def _predict_shard(file: Path, shard: Shards, model_file: Path, device: str) -> int:
    model, graphs = load_model(model_file, device), shard.read(0)
    parts = list(predict_chunks(model.fitted_, graphs))
    columns = {
        key: np.concatenate([part.columns[key] for part in parts]) for key in parts[0].columns
    }
    columns = {"id": graphs.ids, **columns, **nearest_columns(model, graphs)}
    document: dict[str, Any] = {"columns": list(columns)}
    tensors: dict[str, Array] = {}
    for key, column in columns.items():
        pack_column(key, column, document, tensors)
    document["unseen"] = sum(part.unseen for part in parts)
    document["objects"] = sum(part.objects for part in parts)
    return container.write(file, "predictions", document, tensors)


def _embed_shard(file: Path, shard: Shards, model_file: Path, device: str, level: int) -> int:
    model, graphs = load_model(model_file, device), shard.read(0)
    parts = list(embed_chunks(model.fitted_, graphs, level))
    tensors = {
        key: np.concatenate([getattr(part, key) for part in parts])
        for key in ("graphs", "objects", "vectors")
    }
    return container.write(file, "vectors", {}, tensors)
