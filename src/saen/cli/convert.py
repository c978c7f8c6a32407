"""`saen convert`: from one format of graphs to another."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from saen.cli.app import MOST_REPORTED, AsJson, SkipBad, console, print_json
from saen.errors import FileError
from saen.io.loading import load_dataset
from saen.io.writing import output_files, write_graphs

Nodes = Annotated[
    Path | None, typer.Option(help="The table of nodes that belongs to a table of edges.")
]
TargetsFile = Annotated[
    Path | None,
    typer.Option("--targets", help="The table of targets of graphs. [default: targets.csv beside]"),
]
Directed = Annotated[
    bool, typer.Option(help="Read edge lists, tables of edges and TUDataset text as directed.")
]


class Format(StrEnum):
    """What a folder is to hold."""

    tu = "tu"
    graphml = "graphml"


def command(
    source: Annotated[str, typer.Argument(metavar="IN", help="Graphs: a name, file or folder.")],
    out: Annotated[
        Path,
        typer.Argument(
            metavar="OUT",
            help=".jsonl, .saen, .csv, .tsv or .parquet (tables of edges, nodes and labels), .zip "
            "(TUDataset text), or a folder.",
        ),
    ],
    format: Annotated[
        Format | None, typer.Option(help="What to write into a folder: tu or graphml.")
    ] = None,
    nodes: Nodes = None,
    targets: TargetsFile = None,
    directed: Directed = False,
    skip_bad: SkipBad = False,
    force: Annotated[bool, typer.Option("--force", help="Replace what is there.")] = False,
    json: AsJson = False,
) -> None:
    """Convert graphs from any format that can be read.

    Example: saen convert my-graphs/ my-graphs.saen
    """
    output_files(out, format=format, force=force)  # before the work
    skipped: list[FileError] = []
    graphs = load_dataset(
        source,
        directed=directed,
        nodes=nodes,
        targets=targets,
        skip_bad=skip_bad,
        report=skipped.append,
    )
    files = write_graphs(graphs, out, format=format, force=force)
    if json:
        print_json(
            {
                "graphs": len(graphs),
                "files": [str(file) for file in files],
                "skipped": [str(error) for error in skipped],
            }
        )
        return
    for error in skipped[:MOST_REPORTED]:
        typer.echo(f"saen: skipped: {error}", err=True)
    if len(skipped) > MOST_REPORTED:
        typer.echo(f"saen: skipped {len(skipped):,} in all", err=True)
    console().print(f"{graphs!r}", soft_wrap=True, markup=False)
    for file in files:
        console().print(f"written    {file}", soft_wrap=True, markup=False)
