"""`saen convert`: from one format of graphs to another."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

import typer

from saen.cli import options
from saen.cli.output import print_json, print_line, print_lines
from saen.errors import FileError
from saen.io.reading import ReadOptions


@options.reads_data
def command(
    source: Annotated[str, typer.Argument(metavar="IN", help="Graphs: a name, file or folder.")],
    out: Annotated[
        Path,
        typer.Argument(
            metavar="OUT",
            help=".jsonl, .saen, .csv, .tsv or .parquet (tables of edges, nodes and targets), .zip "
            "(TUDataset text), or a folder.",
        ),
    ],
    format: Annotated[
        Literal["tu", "graphml"] | None,
        typer.Option(help="What to write into a folder: tu or graphml."),
    ] = None,
    force: options.Force = False,
    json: options.AsJson = False,
    *,
    reading: ReadOptions,
) -> None:
    """Convert graphs from any format that can be read.

    Example: saen convert my-graphs/ my-graphs.saen
    """
    from saen.io.loading import load_dataset
    from saen.io.writing import output_files, write_graphs

    inputs = [source, reading.nodes, reading.targets]
    output_files(out, format=format, force=force, inputs=inputs)
    skipped: list[FileError] = []
    graphs = load_dataset(source, replace(reading, report=skipped.append) if json else reading)
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
    print_line(f"{graphs!r}")
    for file in files:
        print_lines({"written": str(file)})
