"""`saen reproduce`: the paper's tables again, with our numbers beside its own."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from saen._util.strings import did_you_mean
from saen.cli.app import AsJson, Device, console, heading, print_json, table
from saen.errors import DatasetNotFoundError, InputError
from saen.io.catalog import catalog, find_entry
from saen.io.loading import locate

if TYPE_CHECKING:
    from saen.paper.reproduce import Evaluate, Run, Table


class What(StrEnum):
    """Which of the paper's tables."""

    statistics = "statistics"
    parameters = "parameters"
    accuracy = "accuracy"
    compression = "compression"
    kernel = "kernel"
    all = "all"


def command(
    what: Annotated[What, typer.Argument(help="Which of the paper's tables.")] = What.all,
    datasets: Annotated[
        str | None, typer.Option(help="Names joined by commas. [default: all that are here]")
    ] = None,
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Folder for tables, pictures and runs.")
    ] = Path("results"),
    device: Device = "auto",
    json: AsJson = False,
) -> None:
    """Make the paper's tables again, with our numbers beside its own.

    Accuracies come from the run directories under OUT/runs; runs that are not there are made
    (10 × 10-fold cross-validations: long on a CPU) and go on where they were interrupted. A run
    made otherwise than the table says is refused.

    Example: saen reproduce compression --datasets IMDB-BINARY,IMDB-MULTI
    """
    from saen.paper import reproduce
    from saen.paper.charts import plot_accuracy, plot_compression, plot_gain
    from saen.report.figures import save_figure

    needs_data = what is not What.parameters
    names = _chosen(datasets) if needs_data or datasets is not None else list(catalog())
    tables: dict[What, Callable[[], Table]] = {
        What.statistics: lambda: reproduce.statistics(names),
        What.parameters: lambda: reproduce.parameters(names),
        What.accuracy: lambda: reproduce.accuracy(names, out / "runs", _evaluator(device)),
        What.compression: lambda: reproduce.compression(names, _say),
        What.kernel: lambda: reproduce.kernel(names, _say),
    }
    made: dict[What, Table] = {}
    for one in tables if what is What.all else [what]:
        found = tables[one]()
        if not found.rows:
            continue  # not every table of the paper has every dataset
        made[one] = found
        found.write(out)
        if not json:
            _print(found)
    if not made:
        raise InputError(f"the paper's table has none of {', '.join(names)}")
    if What.accuracy in made:
        save_figure(plot_accuracy(made[What.accuracy].data), out / "accuracy.png")
        save_figure(plot_gain(made[What.accuracy].data), out / "gain.png")
    if What.compression in made:
        save_figure(plot_compression(made[What.compression].data), out / "sizes_and_runtimes.png")
    if json:
        print_json({one.value: found.data for one, found in made.items()})


def _chosen(datasets: str | None) -> list[str]:
    if datasets is None:
        here = [name for name in catalog() if locate(name)]
        if not here:
            raise DatasetNotFoundError(
                "none of the paper's datasets is here: set SAEN_DATA to their folder, or name "
                "those to download with --datasets"
            )
        return here
    names = []
    for name in datasets.split(","):
        entry = find_entry(name.strip())
        if entry is None:
            raise InputError(f"{name!r} is not in the catalog{did_you_mean(name, catalog())}")
        names.append(entry.name)
    return list(dict.fromkeys(names))


def _evaluator(device: str) -> Evaluate:
    from saen.cli.evaluate import evaluate_dataset
    from saen.paper.reproduce import FOLDS

    def evaluate(name: str, run: Run, folder: Path) -> None:
        _say(f"{name}: {run}")
        evaluate_dataset(
            name,
            preset=run.preset,
            stop=run.stop,
            repeats=run.repeats,
            folds=FOLDS,
            out=folder,
            device=device,
        )

    return evaluate


def _say(line: str) -> None:
    typer.echo(line, err=True)


def _print(made: Table) -> None:
    heading(f"\n{made.title}")
    shown = table(*made.columns)
    for row in made.rows:
        shown.add_row(*row)
    console().print(shown)
    for note in made.notes:
        console().print(note, style="dim", soft_wrap=True)
