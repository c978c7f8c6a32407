"""All jobs that run on executors, on little data: their outputs must not depend on the executor."""

from __future__ import annotations

from pathlib import Path

from saen import SAENClassifier, generate_threads, load
from saen._util.executor import Executor
from saen.cluster.compress import compress_into_partitions, compress_shards
from saen.cluster.predict import predict_shards
from saen.decompositions import Ego
from saen.io.store.shards import split_graphs, write_shards
from saen.learning.evaluation import cross_validate

GRAPHS = generate_threads(20, average_nodes=8, seed=1)


def write_input(folder: Path) -> None:
    """Shards and a model."""
    write_shards(split_graphs(GRAPHS, 2), folder / "shards")
    model = SAENClassifier(epochs=1).fit(GRAPHS, GRAPHS.targets)
    model.save(folder / "model.saen")


def run_jobs(folder: Path, executor: Executor, out: Path) -> dict[str, bytes]:
    """Compress, merge by ranges, predict and evaluate: what each of them gives."""
    out.mkdir()
    shards = folder / "shards"
    compress_shards(shards, Ego(), executor, out / "compressed.saen")
    parts = compress_into_partitions(shards, Ego(), executor, out / "parts", 2)
    assert parts.compressed.join() == load(out / "compressed.saen")
    predict_shards(folder / "model.saen", shards, executor, out / "predictions.csv")
    evaluation = cross_validate(
        SAENClassifier(epochs=2),
        GRAPHS,
        GRAPHS.targets,
        n_repeats=1,
        n_folds=2,
        parallel_models=1,
        executor=executor,
    )
    files = {file.name: file.read_bytes() for file in out.iterdir() if file.is_file()}
    return files | {"outputs": evaluation.outputs.tobytes(), "loss": evaluation.loss.tobytes()}
