"""`saen embed`: the vectors that a trained model has learned."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from saen.cli import options
from saen.cli.output import print_json, print_lines
from saen.errors import InputError
from saen.io.options import ReadOptions


@options.reads_data
def command(
    model: options.ModelFile,
    data: options.Name,
    out: Annotated[
        Path, typer.Option("--out", "-o", help="A .parquet, .csv, .npy or .safetensors file.")
    ],
    level: Annotated[
        str | None,
        typer.Option(
            help="Whose vectors: a level's number (0 is the bottom) or the name of its objects.",
            show_default="the top, one vector per example",
        ),
    ] = None,
    vectors: options.VectorsFile = None,
    force: options.Force = False,
    device: options.Device = "auto",
    cluster: options.Cluster = None,
    cluster_timeout: options.ClusterTimeout = 300,
    json: options.AsJson = False,
    *,
    reading: ReadOptions,
) -> None:
    """Write the learned vectors (embeddings) of graphs or other data, or of their parts.

    Every row begins with the id of its example and, below the top, the number of its object there.

    Example: saen embed mutag.saen MUTAG --level 1 --out ego-graphs.parquet
    """
    options.import_estimators()
    from saen.cluster.executors import open_executor
    from saen.cluster.predict import embed_shards
    from saen.jobs.predict import embed_dataset

    if cluster is not None and reading.skip_bad:
        raise InputError("option 'skip_bad' is for files that are not shards yet")
    if cluster is not None:
        with open_executor(cluster, cluster_timeout) as executor:
            result = embed_shards(
                model, data, executor, out, level=level, device=device, force=force
            )
    else:
        result = embed_dataset(
            model, data, out, reading, level=level, device=device, force=force, vectors=vectors
        )
    if json:
        print_json(result.to_json())
    else:
        print_lines({"saved": f"{out}: {result.rows:,} {result.name} × {result.width}"})
