"""`saen predict`: the predictions of a trained model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from saen._util.strings import plural
from saen.cli import options
from saen.cli.output import print_json, print_lines, say
from saen.errors import InputError
from saen.io.options import ReadOptions

if TYPE_CHECKING:
    from saen.jobs.predict import PredictionReport

MIN_FOR_RATE = 1000
"""Examples from which on the time per example says something."""


@options.reads_data
def command(
    model: options.ModelFile,
    data: options.Name,
    out: Annotated[
        str,
        typer.Option(
            "--out", "-o", help="A file (.csv, .jsonl, .parquet), or - for CSV on standard output."
        ),
    ] = "-",
    keep: options.Keep = None,
    vectors: options.VectorsFile = None,
    force: options.Force = False,
    device: options.Device = "auto",
    cluster: options.Cluster = None,
    cluster_timeout: options.ClusterTimeout = 300,
    json: options.AsJson = False,
    *,
    reading: ReadOptions,
) -> None:
    """Predict graphs or other data, with or without targets, with a trained model.

    Writes one row per example. Classification: id, prediction, one probability per class, and the
    agreement, the share of the model's members that predict the same class. Regression: the
    prediction and a 90 % prediction interval (lower, upper). With several targets, each has its own
    columns. Models of saen train --nearest add the nearest training graph, its similarity, and
    whether the two overlap.

    If the data have targets, the score is printed on standard error.

    Example: saen predict mutag.saen new-molecules.saen --out predictions.csv
    """
    options.import_estimators()
    from saen.cluster.executors import open_executor
    from saen.cluster.predict import predict_shards
    from saen.jobs.predict import predict_dataset
    from saen.report.summaries import count_examples, describe_scores

    path = None if out == "-" else Path(out)
    if path is None and json:
        raise InputError("--json needs --out FILE: predictions go to standard output")
    if cluster is not None and (keep or reading.skip_bad):
        raise InputError("options 'keep' and 'skip-bad' are for files that are not shards yet")
    if cluster is not None:
        with open_executor(cluster, cluster_timeout) as executor:
            result = predict_shards(model, data, executor, path, device=device, force=force)
    else:
        result = predict_dataset(
            model, data, path, reading, device=device, keep=keep or [], force=force, vectors=vectors
        )
    _warn_unseen(result)
    if result.structures >= MIN_FOR_RATE:
        rate = result.structures / result.seconds
        examples = count_examples(result.structures, result.takes)
        say(f"{examples} predicted, {rate:,.0f} per second")
    if json:
        print_json(result.to_json())
        return
    if result.scores:
        scores, *targets = describe_scores(result.scores)
        own = " (the training graphs: not an estimate)" if result.training else ""
        say(f"{scores} on {count_examples(result.scored, result.takes)} with targets{own}")
        for line in targets:
            say(line)
    if result.nearest:
        same, overlaps, unlike = (100 * result.nearest[key] for key in sorted(result.nearest))
        say(
            f"{same:.1f} % of graphs have all parts of a training graph, "
            f"{overlaps:.1f} % share rare parts with one, {unlike:.1f} % are unlike all of them"
        )
    if result.not_scored:
        say(f"not scored: {result.not_scored}")
    if path is not None:
        print_lines({"saved": f"{out} ({plural(result.structures, 'row')})"})


def _warn_unseen(result: PredictionReport) -> None:
    """Say which share of the bottom objects has labels that are new to the model."""
    if result.unseen == 0:
        return
    percent = 100 * result.unseen
    share = "all" if percent == 100 else f"{percent:.0f} %" if percent >= 1 else "less than 1 %"
    say(f"warning: {share} of the {result.bottom} have labels that the model has not seen")
