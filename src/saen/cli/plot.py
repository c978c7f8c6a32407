"""`saen plot`: charts of what the other commands wrote."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from saen._util.strings import did_you_mean
from saen.cli import options
from saen.cli.output import console, print_json
from saen.errors import InputError

app = typer.Typer(no_args_is_help=True, help="Draw what the other commands wrote.")


class Method(StrEnum):
    """How vectors are brought onto a plane."""

    pca = "pca"
    tsne = "tsne"


@app.command()
def embeddings(
    file: Annotated[Path, typer.Argument(help="Vectors that saen embed wrote.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="An .svg, .png or .pdf file.")] = Path(
        "map.png"
    ),
    method: Annotated[
        Method, typer.Option(help="pca: the two directions of most variance; tsne: neighbours.")
    ] = Method.pca,
    by: Annotated[
        str | None,
        typer.Option(help="Column that colours the points. [default: target, where there is one]"),
    ] = None,
    seed: options.Seed = 0,
    json: options.AsJson = False,
) -> None:
    """Draw vectors as a map: one point each, coloured by class.

    Example: saen plot embeddings mutag.parquet --method tsne --by target --out map.png
    """
    from saen.io.embeddings import read_embeddings
    from saen.report.maps import plot_embeddings, project, sampled
    from saen.report.plots import save_figure

    vectors, columns = read_embeddings(file)
    column = "target" if by is None and "target" in columns else by
    if column is not None and column not in columns:
        known = ", ".join(columns) or "there is none beside the vectors"
        raise InputError(f"{file} has no column {column!r}{did_you_mean(column, columns)}: {known}")
    rows = sampled(len(vectors), method.value)
    points = project(vectors[rows], method.value, seed=seed)
    groups = None if column is None else columns[column][rows]
    shown = f"{len(rows):,} of {len(vectors):,}" if len(rows) < len(vectors) else f"{len(rows):,}"
    title = f"{file.stem}: {shown} vectors, {'t-SNE' if method is Method.tsne else 'PCA'}"
    save_figure(plot_embeddings(points, groups, column or "", title), out)
    if json:
        print_json({"figure": str(out), "points": len(rows), "method": method.value, "by": column})
    else:
        console().print(f"written    {out}", soft_wrap=True)
