"""`saen embed`: the vectors that a trained model has for graphs, or for their parts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from saen._util.progress import bar
from saen.cli.app import AsJson, Device, Name, SkipBad, console, print_json, read_input
from saen.cli.predict import ModelFile, load_model, takes

if TYPE_CHECKING:
    from saen.io.embeddings import Embedded


def command(
    model: ModelFile,
    data: Name,
    out: Annotated[
        Path, typer.Option("--out", "-o", help="A .parquet, .csv, .npy or .safetensors file.")
    ],
    level: Annotated[
        str | None,
        typer.Option(
            help="Whose vectors: a level's number (0 is the bottom) or the name of its objects. "
            "[default: the top, one vector per structure]"
        ),
    ] = None,
    skip_bad: SkipBad = False,
    device: Device = "auto",
    json: AsJson = False,
) -> None:
    """Write the vectors that a trained model has learned for structures or for their parts.

    Every row says which graph it belongs to and, below the top, the number of its object there.

    Example: saen embed mutag.saen MUTAG --level 1 --out ego-graphs.parquet
    """
    from saen.io.embeddings import FORMATS, write_embeddings
    from saen.io.tables import check_format
    from saen.learning.prediction import embed_chunks, level_number

    check_format(out, FORMATS)
    loaded = load_model(model, device)
    depth = loaded.schema_.depth
    chosen = depth if level is None else level_number(loaded.schema_, level)
    name = loaded.schema_.names[chosen]
    structures = read_input(data, takes(loaded), skip_bad=skip_bad, taker=str(model))

    def parts() -> Iterator[Embedded]:
        with bar("embedding", len(structures)) as update:
            for part in embed_chunks(loaded, structures, chosen):
                yield part
                update(int(part.graphs[-1]) + 1 if len(part.graphs) else 0)

    count, width = write_embeddings(out, parts(), structures.targets, name, lower=chosen < depth)
    if json:
        print_json({"out": str(out), "level": chosen, "name": name, "rows": count, "width": width})
    else:
        console().print(f"written    {out}: {count:,} {name} × {width}", soft_wrap=True)
