"""`saen convert`: from one format of graphs to another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from saen._util.atomic import holds_input
from saen.cli import options
from saen.cli.output import print_json, print_line, print_lines, say
from saen.errors import FileError, InputError
from saen.io.reading import ReadOptions

if TYPE_CHECKING:
    from saen.data.graphs import Graphs
    from saen.data.nested import NestedData


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
        typer.Option(min=1, help="Levels of nested data below the top. [default: the deepest]"),
    ] = None,
    force: options.Force = False,
    json: options.AsJson = False,
    *,
    reading: ReadOptions,
) -> None:
    """Convert graphs from any format that can be read, or any JSON to nested data.

    Documents and nested data are converted to shards.

    Example: saen convert my-graphs/ my-graphs.saen
    """
    from saen.io.any_json import read_any_json
    from saen.io.loading import data_kind, input_files, load_dataset
    from saen.io.nested import write_nested
    from saen.io.shards import Shards, write_shards
    from saen.io.streaming import stream_data
    from saen.io.writing import output_files, write_graphs

    inputs = input_files(source, reading.nodes, reading.targets)
    written = "saen"
    files: Sequence[Path] = []
    if shards is None:
        written, files = output_files(out, format=format, force=force, inputs=inputs)
    elif any(holds_input(out, each) for each in inputs):
        raise FileError("is an input of this command: choose another output", path=out)
    elif format is not None:
        raise InputError("shards are .saen files: omit option 'format'")
    skipped: list[FileError] = []
    reading = replace(reading, report=skipped.append) if json else reading
    data: Graphs | NestedData | Shards
    if shards is not None:
        nested = [read_any_json(Path(source), reading, depth)] if kind == "nested" else None
        parts = nested or stream_data(source, data_kind(source), reading)
        data = write_shards(parts, out, shards, force=force)
        files = data.files
    elif kind == "nested":
        if written != "jsonl":
            raise InputError(f"nested data are written as .jsonl, not as {out.name}")
        data = read_any_json(Path(source), reading, depth)
        write_nested(data, out)
    else:
        data = load_dataset(source, reading)
        write_graphs(data, out, format=format, force=force)
        if data.extra and written == "tu":
            say(f"note: TUDataset files have no place for other columns: {', '.join(data.extra)}")
    if json:
        print_json(
            {
                "graphs": data.n_graphs if isinstance(data, Shards) else len(data),
                "files": [str(file) for file in files],
                "skipped": [str(error) for error in skipped],
            }
        )
        return
    print_line(f"{data!r}")
    for file in files if shards is None else [f"{out}: {shards} shards"]:
        print_lines({"written": str(file)})
