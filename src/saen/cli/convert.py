"""`saen convert`: from one format of graphs to another."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from saen.cli import options
from saen.cli.output import print_json, print_line, print_lines, report_skipped
from saen.errors import FileError


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
    nodes: options.NodesFile = None,
    targets: options.TargetsFile = None,
    directed: options.Directed = False,
    skip_bad: options.SkipBad = False,
    force: options.Force = False,
    json: options.AsJson = False,
) -> None:
    """Convert graphs from any format that can be read.

    Example: saen convert my-graphs/ my-graphs.saen
    """
    from saen.io.loading import input_files, load_dataset
    from saen.io.writing import output_files, write_graphs

    output_files(out, format=format, force=force, inputs=input_files(source, nodes, targets))
    skipped: list[FileError] = []
    with report_skipped() as report:
        graphs = load_dataset(
            source,
            directed=directed,
            nodes=nodes,
            targets=targets,
            skip_bad=skip_bad,
            report=skipped.append if json else report,
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
    print_line(f"{graphs!r}")
    for file in files:
        print_lines({"written": str(file)})
