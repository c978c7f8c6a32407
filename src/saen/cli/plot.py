"""`saen plot`: charts of what other commands wrote."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from saen.cli import options
from saen.cli.output import print_json, print_line
from saen.cli.panels import Command

app: typer.Typer = typer.Typer(no_args_is_help=True, help="Plot what other commands wrote.")


@app.command(cls=Command)
def embeddings(
    file: Annotated[Path, typer.Argument(help="Vectors that saen embed wrote.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="An .svg, .png or .pdf file.")] = Path(
        "map.png"
    ),
    method: Annotated[
        Literal["pca", "tsne"],
        typer.Option(help="pca: the two directions of most variance; tsne: neighbours."),
    ] = "pca",
    by: Annotated[
        str | None,
        typer.Option(
            help="Column that colours the points.", show_default="target, where there is one"
        ),
    ] = None,
    seed: options.Seed = 0,
    force: options.Force = False,
    json: options.AsJson = False,
) -> None:
    """Draw embeddings as a map: one point per vector, coloured by class.

    Example: saen plot embeddings mutag.parquet --method tsne --by target --out map.png
    """
    from saen.report.embedding_map import draw_embedding_map
    from saen.report.figures import check_figure

    check_figure(out, force=force, inputs=[file])
    result = draw_embedding_map(file, out, method=method, by=by, seed=seed)
    if json:
        print_json(result.to_json())
    else:
        print_line(f"saved      {out}")
