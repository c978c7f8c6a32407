"""`saen reproduce`: the paper's tables side by side with the published numbers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from saen.cli import options
from saen.cli.output import console, heading, print_json, table

if TYPE_CHECKING:
    from saen.paper.reproduce import Table


What = Literal["statistics", "parameters", "accuracy", "compression", "kernel", "all"]


def command(
    what: Annotated[What, typer.Argument(help="Which of the paper's tables.")],
    datasets: Annotated[
        str | None,
        typer.Option(help="Names separated by commas.", show_default="all that are available"),
    ] = None,
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Folder for tables, plots and runs.")
    ] = Path("results"),
    device: options.Device = "auto",
    json: options.AsJson = False,
) -> None:
    """Regenerate the paper's tables side by side with the published numbers.

    Accuracies come from the run directories under OUT/runs; missing runs are made (10 × 10-fold
    cross-validations: long on a CPU) and resumed if interrupted. A run with other settings than
    the table's raises an error.

    Example: saen reproduce compression --datasets IMDB-BINARY,IMDB-MULTI
    """
    from saen.paper.reproduce import reproduce

    names = None if datasets is None else datasets.split(",")
    tables = reproduce(what, names, out, device=device, say=_say)
    if json:
        print_json({name: each.data for name, each in tables.items()})
        return
    for each in tables.values():
        _print(each)


def _say(line: str) -> None:
    typer.echo(line, err=True)


def _print(result: Table) -> None:
    heading(f"\n{result.title}")
    shown = table(*result.columns)
    for row in result.rows:
        shown.add_row(*row)
    console().print(shown)
    for note in result.notes:
        console().print(note, style="dim", soft_wrap=True)
