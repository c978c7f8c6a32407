"""What all commands share: the application, its options, output for people and for machines."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from saen._version import __version__
from saen.data.documents import Documents
from saen.data.graphs import Graphs
from saen.data.nested import NestedData
from saen.decompositions import Decomposition, make_decomposition
from saen.errors import FileError, InputError
from saen.io.catalog import find_entry
from saen.io.loading import load_data, load_dataset

MOST_REPORTED = 10
"""Lines about things that were left out."""

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Learn from graphs and other things made of parts: decompose, collapse, train.",
    epilog="Exit codes: 0 done, 2 a mistake in the input (one line on stderr), 130 interrupted by "
    "Ctrl-C, 143 terminated. What was interrupted leaves no half-written file.",
)

Name = Annotated[
    str,
    typer.Argument(
        help="A dataset's name, or a file or folder: TUDataset, JSON lines, "
        "tables, GraphML, GML, edge lists, SMILES, saen."
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
DecompositionName = Annotated[
    str,
    typer.Option(
        "--decomposition",
        "-d",
        help="How structures are taken apart: a name or name(parameter=value, …), as listed by "
        "saen decompositions.",
    ),
]
Radii = Annotated[
    str | None, typer.Option(help="Radii of ego graphs, such as 0,1. [default: the paper's]")
]
NodeLabels = Annotated[
    str | None,
    typer.Option(
        help="Node labels: node, degree, log-degree:b, attributes, or several joined by commas. "
        "[default: the paper's, else node labels, else the degree]"
    ),
]
OtherDecomposition = Annotated[
    str | None,
    typer.Option(
        "--decomposition",
        "-d",
        help="Instead of the preset's: a name or name(parameter=value, …), as listed by "
        "saen decompositions.",
    ),
]
OtherNodeLabels = Annotated[str | None, typer.Option(help="Node labels instead of the preset's.")]
OtherRadii = Annotated[
    str | None, typer.Option("--radii", help="Radii such as 0,1 instead of the preset's.")
]
PresetName = Annotated[str, typer.Option(help="modern, paper, or a .toml file.")]
Epochs = Annotated[int | None, typer.Option(help="Instead of the preset's.")]
Seed = Annotated[int, typer.Option(help="Decides splits, weights and batches.")]
Device = Annotated[str, typer.Option(help="auto, cpu or cuda.")]
ReportPage = Annotated[
    Path | None,
    typer.Option("--report", help="Write an HTML page about data, training and predictions here."),
]
SkipBad = Annotated[
    bool, typer.Option("--skip-bad", help="Leave out what cannot be read, and say what it was.")
]


def _version(show: bool) -> None:
    if show:
        print(f"saen {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Options that stand before the command."""


def chosen_decomposition(
    dataset: str, text: str, radii: str | None, node_labels: str | None
) -> Decomposition:
    """The decomposition that the options ask for, with the catalog's settings as defaults."""
    entry = find_entry(dataset)
    return make_decomposition(
        text,
        overrides={
            "radii": None if radii is None else parse_radii(radii),
            "node_labels": node_labels,
        },
        defaults={} if entry is None else {"radii": entry.radii, "node_labels": entry.node_labels},
    )


def parse_radii(text: str) -> tuple[int, ...]:
    """Whole numbers joined by commas."""
    try:
        return tuple(int(radius) for radius in text.split(","))
    except ValueError:
        raise InputError(f"radii are whole numbers such as 0,1, not {text!r}") from None


def read_input(
    name: str,
    takes: str,
    *,
    target: str | None = None,
    skip_bad: bool = False,
    taker: str = "this decomposition",
) -> Graphs | Documents | NestedData:
    """The collection of a command's argument; what is left out is named on stderr.

    `taker` is what wants it, for the message where it is no such thing.
    """
    skipped = 0

    def report(error: FileError) -> None:
        nonlocal skipped
        skipped += 1
        if skipped <= MOST_REPORTED:
            typer.echo(f"saen: skipped: {error}", err=True)

    structures: Graphs | Documents | NestedData
    wanted: Any = target
    if takes == "graphs":
        structures = load_dataset(name, target=wanted, skip_bad=skip_bad, report=report)
    elif target is not None:
        raise InputError(f"--target chooses among the targets of graphs, not of {takes}")
    else:
        try:
            structures = load_data(name, takes, skip_bad=skip_bad, report=report)
        except InputError as error:
            raise InputError(f"{taker} takes {takes}: {error}") from None
    if skipped > MOST_REPORTED:
        typer.echo(f"saen: skipped {skipped:,} in all", err=True)
    return structures


def command_line() -> str:
    """The command that is running, as it was typed."""
    return shlex.join(["saen", *sys.argv[1:]])


def console() -> Console:
    """Where tables for people go."""
    out = Console(highlight=False)
    if not out.is_terminal:
        out.width = 160  # a pipe has no edge to wrap at
    return out


def heading(text: str) -> None:
    """A line in bold."""
    console().print(text, style="bold", soft_wrap=True)


def table(*columns: str) -> Table:
    """A table whose first column is text and whose other columns are numbers."""
    out = Table(box=None, pad_edge=False)
    for index, column in enumerate(columns):
        out.add_column(column, justify="right" if index else "left")
    return out


def level_table(levels: list[dict[str, Any]]) -> Table:
    """Objects and entries of every level, before and after collapsing."""
    out = table("level", "objects", "unique", "entries", "after")
    for level in levels:
        entries = (f"{level['entries']:,}", f"{level['entries_compressed']:,}")
        out.add_row(
            f"{level['level']}  {level['name']}",
            f"{level['objects']:,}",
            f"{level['unique']:,}",
            *(entries if level["level"] else ("", "")),
        )
    return out


def described(settings: dict[str, Any]) -> str:
    """A decomposition by its settings, in words."""
    shown = {
        key: ",".join(map(str, value)) if isinstance(value, list) else str(value)
        for key, value in settings.items()
        if key != "name"
    }
    words = ", ".join(f"{key} {value}" for key, value in shown.items())
    return f"{settings['name']} decomposition ({words})"


def print_json(document: dict[str, Any]) -> None:
    """One JSON object on stdout."""
    print(json.dumps(document, indent=2))
