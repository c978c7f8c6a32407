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
    print_levels,
    print_lines,
    print_tried,
    say,
)
from saen.errors import InputError
from saen.io.reading import ReadOptions

if TYPE_CHECKING:
    from saen.learning.jobs.train import DataFacts

MAX_LISTED_CLASSES = 8


@options.reads_data
def command(
    data: options.Name,
    out: Annotated[Path, typer.Option("--out", "-o", help="Write the model here.")],
    preset: options.OptionalPreset = None,
    budget: options.Budget = None,
    decomposition: options.OtherDecomposition = None,
    node_labels: options.OtherNodeLabels = None,
    radii: options.OtherRadii = None,
    epochs: options.Epochs = None,
    models: Annotated[
        int | None, typer.Option(min=1, help="Networks to average. [default: the preset's]")
    ] = None,
    test_size: Annotated[
        float, typer.Option(help="Share held out to estimate how good the model is.")
    ] = 0.1,
    holdout: Annotated[
        bool, typer.Option(help="Estimate on a held-out part; the model learns from all data.")
    ] = True,
    seed: options.Seed = 0,
    device: options.Device = "auto",
    force: options.Force = False,
    page: options.ReportPage = None,
    json: options.AsJson = False,
    *,
    reading: ReadOptions,
) -> None:
    """Train a model on your data, estimate how good it is, and write it to one file.

    Predicts classes if the targets are classes, numbers if they are real numbers. A file of saen
    compress need not fit into memory. Interrupted, the same command resumes to the same model.

    Example: saen train MUTAG --out mutag.saen --models 5
    """
    options.import_estimators()
    from saen.learning.jobs.job import Job, default_preset
    from saen.learning.jobs.train import DataFacts, HoldOut, train_model
    from saen.learning.preparation import is_compressed
    from saen.report.evaluation_page import check_report
    from saen.report.job_pages import write_training_report
    from saen.report.summaries import describe_hold_out, describe_model, describe_times

    if page is not None:
        if is_compressed(data):
            raise InputError("--report shows the data themselves: it cannot be of compressed ones")
        check_report(page, force=force, inputs=[data, out])
    overrides = options.overrides(decomposition, node_labels, radii, epochs, models, budget)
    limited, preset = not (preset or budget), preset or default_preset(overrides)

    def show(part: str | DataFacts | HoldOut) -> None:
        if isinstance(part, str):
            say(part)
        elif isinstance(part, DataFacts) and not json:
            _print_facts(part)
        elif isinstance(part, HoldOut) and not json:
            print_lines(describe_hold_out(part))

    job = Job(data, preset, overrides, seed, device, reading)
    held_out = test_size if holdout else None
    result = train_model(job, out, test_size=held_out, force=force, limited=limited, notify=show)
    if page is not None:
        write_training_report(page, result, command_line(), preset)
    if json:
        print_json(result.to_json())
        return
    print_tried(getattr(result.model, "tried_", []), result.inner_metric)
    model = f"{describe_model(result.model)}, trained on all {result.facts.structures:,}"
    print_lines(
        {
            "written": f"{result.path} ({human_bytes(result.bytes)}): {model}",
            "time": describe_times(result.seconds),
        }
    )


def _print_facts(facts: DataFacts) -> None:
    from saen.report.summaries import describe_ceiling, describe_decomposition

    heading(facts.description)
    lines = {}
    if facts.classes is not None:
        listed = [f"{name}: {n:,}" for name, n in list(facts.classes.items())[:MAX_LISTED_CLASSES]]
        more = len(facts.classes) - len(listed)
        lines["classes"] = ", ".join(listed) + (f" and {more} more" if more else "")
    if facts.decomposition is not None:
        lines["parts"] = describe_decomposition(facts.decomposition, facts.candidates)
    if facts.ceiling is not None and facts.ceiling < 1:
        lines["ceiling"] = describe_ceiling(facts.ceiling, facts.decomposition, facts.candidates)
    print_lines(lines)
    print_levels(facts.levels)
