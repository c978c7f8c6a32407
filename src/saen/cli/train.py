"""`saen train`: a model of one's own data, with an estimate of how good it is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from saen._util.strings import human_bytes
from saen.cli import options
from saen.cli.output import (
    command_line,
    heading,
    print_json,
    print_lines,
    print_tried,
    say,
)
from saen.errors import InputError
from saen.io.options import ReadOptions

if TYPE_CHECKING:
    from saen.jobs.train import DataFacts

MAX_LISTED_CLASSES = 8


@options.reads_data
def command(
    data: options.Name,
    out: Annotated[Path, typer.Option("--out", "-o", help="Write the model here.")],
    preset: options.PresetName = "best",
    budget: options.Budget = None,
    decomposition: options.OtherDecomposition = None,
    node_labels: options.OtherNodeLabels = None,
    radii: options.OtherRadii = None,
    epochs: options.Epochs = None,
    models: Annotated[
        int | None,
        typer.Option(min=1, help="Networks per inner fold.", show_default="the preset's"),
    ] = None,
    groups: options.Groups = None,
    hold_out: Annotated[
        float | None,
        typer.Option(
            help="Also hold out this share of the data to estimate the score; the saved model is "
            "always trained on all data.",
            show_default="no hold-out",
        ),
    ] = None,
    nearest: Annotated[
        bool,
        typer.Option(
            "--nearest",
            help="Keep ids and content keys of the training graphs in the model, so that predict "
            "adds the nearest one.",
        ),
    ] = False,
    seed: options.Seed = 0,
    device: options.Device = "auto",
    force: options.Force = False,
    page: options.ReportPage = None,
    json: options.AsJson = False,
    *,
    reading: ReadOptions,
) -> None:
    """Train a model on your data, estimate its accuracy, and save it to one file.

    Classification or regression, depending on the targets. Files written by saen compress are
    memory-mapped. If interrupted, repeat the command to resume; the result is identical.

    The score comes from cross-validation: every example is predicted by models trained without it.

    Example: saen train MUTAG --out mutag.saen
    """
    options.import_estimators()
    from saen.jobs.job import Job
    from saen.jobs.train import DataFacts, Estimate, train_model
    from saen.learning.decomposing import is_compressed
    from saen.report.evaluation_page import check_report
    from saen.report.job_pages import write_training_report
    from saen.report.summaries import count_examples, describe_estimate, describe_times

    if page is not None:
        if is_compressed(data):
            raise InputError("--report shows the data themselves: it cannot be of compressed ones")
        check_report(page, force=force, inputs=[data, out])
    overrides = options.overrides(decomposition, node_labels, radii, epochs, models, budget)
    estimates: list[dict[str, str]] = []

    def show(part: str | DataFacts | Estimate) -> None:
        if isinstance(part, str):
            say(part)
        elif isinstance(part, DataFacts) and not json:
            _print_facts(part)
        elif isinstance(part, Estimate):
            estimates.append(describe_estimate(part))

    job = Job(data, preset, overrides, seed, device, reading)
    result = train_model(
        job, out, groups=groups, hold_out=hold_out, nearest=nearest, force=force, notify=show
    )
    if page is not None:
        write_training_report(page, result, command_line())
    if json:
        print_json(result.to_json())
        return
    print_tried(result.model.tried_, result.inner_metric)
    examples = count_examples(result.facts.structures, result.takes)
    # The table above has the members of a blend.
    words = result.model.fitted_.in_words.partition(" (")[0]
    model = f"{words}, trained on all {examples}"
    for lines in estimates:
        print_lines(lines)
    print_lines(
        {
            "saved": f"{result.path} ({human_bytes(result.bytes)}): {model}",
            "time": describe_times(result.seconds),
        }
    )


def _print_facts(facts: DataFacts) -> None:
    from saen.report.summaries import describe_ceiling, describe_decomposition

    heading(facts.description)
    lines = {}
    if facts.classes is not None:
        listed = [f"{name} {n:,}" for name, n in list(facts.classes.items())[:MAX_LISTED_CLASSES]]
        more = len(facts.classes) - len(listed)
        lines["classes"] = ", ".join(listed) + (f" and {more} more" if more else "")
    if facts.decomposition is not None and facts.candidates == 1:
        lines["parts"] = describe_decomposition(facts.decomposition)
    if facts.ceiling is not None and facts.ceiling < 1:
        lines["ceiling"] = describe_ceiling(facts.ceiling, facts.decomposition, facts.candidates)
    print_lines(lines)
