"""`saen convert`: from one format to another."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

import typer

from saen.cli import options
from saen.cli.output import print_json, print_line, print_lines, say
from saen.errors import FileError
from saen.io.options import ReadOptions


@options.reads_data
def command(
    source: Annotated[
        str, typer.Argument(metavar="DATA", help="A name, file or folder, or - for stdin.")
    ],
    out: Annotated[
        Path,
        typer.Argument(
            metavar="OUT",
            help=".jsonl, .saen, .csv, .tsv or .parquet (tables of edges, nodes and targets), .zip "
            "(TUDataset text), or a folder.",
        ),
    ],
    shards: Annotated[
        int | None,
        typer.Option(help="Write a folder of this many parts, which a cluster reads one by one."),
    ] = None,
    format: Annotated[
        Literal["tu", "graphml"] | None,
        typer.Option(help="What to write into a folder: tu or graphml."),
    ] = None,
    kind: Annotated[
        Literal["nested"] | None,
        typer.Option("--as", help="Read any JSON as nested data: objects and lists become parts."),
    ] = None,
    depth: Annotated[
        int | None,
        typer.Option(
            min=1, help="Levels of nested data below the top.", show_default="the deepest"
        ),
    ] = None,
    force: options.Force = False,
    json: options.AsJson = False,
    *,
    reading: ReadOptions,
) -> None:
    """Convert data from any format that can be read, or any JSON to nested data.

    Documents are written as .saen, nested data as .saen or .jsonl, both also as shards.

    Example: saen convert my-graphs/ my-graphs.saen
    """
    from saen.io.conversion import convert

    skipped: list[FileError] = []
    reading = replace(reading, report=skipped.append) if json else reading
    result = convert(
        source, out, reading, shards=shards, format=format, kind=kind, depth=depth, force=force
    )
    if result.lost:
        say(f"note: TUDataset files have no place for other columns: {', '.join(result.lost)}")
    if json:
        print_json(
            {
                "graphs": len(result),
                "files": [str(file) for file in result.files],
                "skipped": [str(error) for error in skipped],
            }
        )
        return
    print_line(result.data.description)
    for file in result.files if shards is None else [f"{out}: {shards} shards"]:
        print_lines({"saved": str(file)})
