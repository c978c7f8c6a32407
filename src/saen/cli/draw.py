"""`saen draw`: one example and its decomposition, or a hierarchy before and after compression."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from saen.cli import options
from saen.cli.output import print_json, print_line
from saen.errors import InputError, printable
from saen.io.options import ReadOptions


@options.reads_data
def command(
    name: options.Name,
    graph: Annotated[int, typer.Option("--graph", "-g", help="Index of the example, from 0.")] = 0,
    figure: Annotated[
        Literal["decomposition", "compression"],
        typer.Option(help="The example and its hierarchy, or before and after compression."),
    ] = "decomposition",
    out: Annotated[Path, typer.Option("--out", "-o", help="An .svg, .png or .pdf file.")] = Path(
        "figure.svg"
    ),
    decomposition: options.DecompositionName = None,
    radii: options.Radii = None,
    node_labels: options.NodeLabels = None,
    force: options.Force = False,
    json: options.AsJson = False,
    *,
    reading: ReadOptions,
) -> None:
    """Draw one example next to its decomposition, or its hierarchy before and after compression.

    Example: saen draw IMDB-BINARY --graph 3 --figure compression --out figure.svg
    """
    from saen.io.loading import load_data
    from saen.jobs.compress import dataset_decomposition
    from saen.report.figures import check_figure, save_figure
    from saen.report.hierarchy_drawing import draw_compression, draw_decomposition

    check_figure(out, force=force, inputs=[name])
    parsed = dataset_decomposition(
        name, decomposition, radii=options.parse_radii(radii), node_labels=node_labels
    )
    data = load_data(name, parsed.takes, reading)
    parsed = parsed.fit(data)
    what = parsed.takes.removesuffix("s")
    if not 0 <= graph < len(data):
        raise InputError(f"there is no {what} {graph}: the {parsed.takes} are 0 … {len(data) - 1}")
    draw = draw_decomposition if figure == "decomposition" else draw_compression
    title = printable(f"{data.name or name}, {what} {graph}")
    save_figure(draw(data[graph : graph + 1], parsed, title), out)
    if json:
        print_json({"figure": str(out), "graph": graph, "decomposition": parsed.settings()})
    else:
        print_line(f"saved      {out}")
