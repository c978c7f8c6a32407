"""`saen draw`: the paper's two figures for any graph or other structure."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from saen.cli import options
from saen.cli.output import console, print_json
from saen.errors import InputError
from saen.io.loading import load_data
from saen.learning.jobs.compress import dataset_decomposition
from saen.report.plots import draw_compression, draw_decomposition, save_figure


class Figure(StrEnum):
    """Which of the two figures."""

    decomposition = "decomposition"
    compression = "compression"


def command(
    name: options.Name,
    graph: Annotated[
        int, typer.Option("--graph", "-g", help="Number of the structure, from 0.")
    ] = 0,
    figure: Annotated[
        Figure,
        typer.Option(help="The graph beside its parts, or the parts beside their classes."),
    ] = Figure.decomposition,
    out: Annotated[Path, typer.Option("--out", "-o", help="An .svg, .png or .pdf file.")] = Path(
        "figure.svg"
    ),
    decomposition: options.DecompositionName = "ego",
    radii: options.Radii = None,
    node_labels: options.NodeLabels = None,
    json: options.AsJson = False,
) -> None:
    """Draw one graph beside its decomposition, or its decomposition beside the collapsed one.

    Example: saen draw IMDB-BINARY --graph 3 --figure compression --out figure.svg
    """
    chosen = dataset_decomposition(
        name, decomposition, radii=options.parse_radii(radii), node_labels=node_labels
    )
    structures = load_data(name, chosen.takes)
    what = chosen.takes.removesuffix("s")
    if not 0 <= graph < len(structures):
        raise InputError(
            f"there is no {what} {graph}: the {chosen.takes} are 0 … {len(structures) - 1}"
        )
    function = draw_decomposition if figure is Figure.decomposition else draw_compression
    title = f"{structures.name or name}, {what} {graph}"
    save_figure(function(structures[graph : graph + 1], chosen, title), out)
    if json:
        print_json({"figure": str(out), "graph": graph, "decomposition": chosen.settings()})
    else:
        console().print(f"written    {out}", soft_wrap=True)
