"""`saen draw`: the paper's two figures for any graph."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from saen.cli.app import (
    AsJson,
    DecompositionName,
    Labels,
    Name,
    Radii,
    chosen_decomposition,
    console,
    print_json,
)
from saen.datasets import load_dataset
from saen.errors import InputError
from saen.plots import draw_compression, draw_decomposition, save_figure


class Figure(StrEnum):
    """Which of the two figures."""

    decomposition = "decomposition"
    compression = "compression"


def command(
    name: Name,
    graph: Annotated[int, typer.Option("--graph", "-g", help="Number of the graph, from 0.")] = 0,
    figure: Annotated[
        Figure,
        typer.Option(help="The graph beside its parts, or the parts beside their classes."),
    ] = Figure.decomposition,
    out: Annotated[Path, typer.Option(help="An .svg, .png or .pdf file.")] = Path("figure.svg"),
    decomposition: DecompositionName = "ego",
    radii: Radii = None,
    labels: Labels = None,
    json: AsJson = False,
) -> None:
    """Draw one graph beside its decomposition, or its decomposition beside the collapsed one.

    Example: saen draw IMDB-BINARY --graph 3 --figure compression --out figure.svg
    """
    graphs = load_dataset(name)
    if not 0 <= graph < len(graphs):
        raise InputError(f"there is no graph {graph}: the graphs are 0 … {len(graphs) - 1}")
    chosen = chosen_decomposition(name, decomposition, radii, labels)
    function = draw_decomposition if figure is Figure.decomposition else draw_compression
    title = f"{graphs.name or name}, graph {graph}"
    save_figure(function(graphs[graph], chosen, title), out)
    if json:
        print_json({"figure": str(out), "graph": graph, "decomposition": chosen.settings()})
    else:
        console().print(f"written    {out}", soft_wrap=True)
