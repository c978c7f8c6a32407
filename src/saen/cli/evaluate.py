"""`saen evaluate`: repeated stratified cross-validation, all trainings at once."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from saen.cli import options
from saen.cli.output import command_line, heading, print_json, print_lines, print_tried, say
from saen.io.options import ReadOptions

if TYPE_CHECKING:
    from saen.jobs.evaluate import EvaluationReport


@options.reads_data
def command(
    name: options.Name,
    preset: options.PresetName = "best",
    budget: options.Budget = None,
    decomposition: options.OtherDecomposition = None,
    node_labels: options.OtherNodeLabels = None,
    radii: options.OtherRadii = None,
    selection: Annotated[
        Literal["fixed", "nested", "peek"],
        typer.Option(
            help="fixed: settings set in advance; nested: settings of the preset's grid chosen on "
            "inner folds; peek: best epoch on the test folds, as in some papers."
        ),
    ] = "fixed",
    repeats: Annotated[
        int | None,
        typer.Option(min=1, help="Cross-validations with different folds.", show_default="10"),
    ] = None,
    folds: Annotated[
        int | None, typer.Option(min=2, help="Folds of each cross-validation.", show_default="10")
    ] = None,
    seed: options.Seed = 0,
    test_size: Annotated[
        float | None,
        typer.Option(
            help="Hold out this share once per repeat, instead of folds.", show_default="folds"
        ),
    ] = None,
    groups: options.Groups = None,
    splits: Annotated[
        Path | None,
        typer.Option(
            help="Splits from a JSON file: a run directory's, or train, valid and test.",
            show_default="random, stratified",
        ),
    ] = None,
    metric: options.Metric = None,
    epochs: options.Epochs = None,
    n_models: Annotated[
        int | None,
        typer.Option(
            "--models", min=1, help="Networks per inner fold.", show_default="the preset's"
        ),
    ] = None,
    parallel_models: Annotated[
        int | None,
        typer.Option(min=1, help="Networks trained side by side.", show_default="as many as fit"),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Run directory: keeps all results, to resume from."),
    ] = None,
    device: options.Device = "auto",
    cluster: options.Cluster = None,
    cluster_timeout: options.ClusterTimeout = 300,
    plot: Annotated[Path | None, typer.Option(help="Plot learning curves and confusion.")] = None,
    page: options.ReportPage = None,
    predictions: Annotated[
        Path | None,
        typer.Option(
            help="Write a table of all predictions for test folds: a file (.csv, .jsonl, .parquet)."
        ),
    ] = None,
    keep: options.Keep = None,
    force: options.Force = False,
    json: options.AsJson = False,
    *,
    reading: ReadOptions,
) -> None:
    """Cross-validate a model and report its scores.

    Example: saen evaluate MUTAG --repeats 3 --out runs/mutag
    """
    options.import_estimators()
    from saen._util.atomic import check_output
    from saen.cluster.executors import open_executor
    from saen.io.result_tables import FORMATS, check_format
    from saen.jobs.evaluate import Protocol, evaluate_dataset
    from saen.jobs.job import Job
    from saen.report.charts import plot_evaluation
    from saen.report.evaluation_page import check_report
    from saen.report.figures import check_figure, save_figure
    from saen.report.job_pages import write_evaluation_report

    if page is not None:
        check_report(page, force=force, inputs=[name, splits])
    if plot is not None:
        check_figure(plot, force=force, inputs=[name, splits])
    if predictions is not None:
        check_format(predictions, FORMATS)
        check_output(predictions, force=force, inputs=[name, splits])
    overrides = options.overrides(decomposition, node_labels, radii, epochs, n_models, budget)
    job = Job(name, preset, overrides, seed, device, reading)
    protocol = Protocol(
        selection, repeats, folds, splits, parallel_models, metric, test_size, groups
    )
    with open_executor(cluster, cluster_timeout) if cluster else nullcontext() as executor:
        report = evaluate_dataset(job, protocol, out, executor, keep=keep or [], notify=say)
    if predictions is not None:
        report.write_predictions(predictions)
    if json:
        print_json(report.to_json())
    else:
        _print(report)
    if plot is not None:
        save_figure(plot_evaluation(report.evaluation, _title(report)), plot)
    if page is not None:
        write_evaluation_report(page, report, command_line(), splits, reading.target)


def _title(report: EvaluationReport) -> str:
    from saen.report.summaries import describe_protocol

    return f"{report.recorded['dataset']}: {describe_protocol(report.recorded)}"


def _print(report: EvaluationReport) -> None:
    from saen.report.summaries import describe_evaluation, describe_selection

    heading(f"{_title(report)}, preset {report.recorded['preset']}, {describe_selection(report)}")
    print_lines(describe_evaluation(report))
    metric = report.evaluation.metrics[report.evaluation.metric]
    print_tried([each for each in report.evaluation.tried if "candidate" in each], metric)
