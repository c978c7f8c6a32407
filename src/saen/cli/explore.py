"""`saen explore`: a whole dataset on one page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from saen._util.atomic import check_output
from saen.cli import options
from saen.cli.output import print_json, print_line
from saen.io.options import ReadOptions


@options.reads_data
def command(
    model: options.ModelFile,
    data: options.Name,
    out: Annotated[Path, typer.Option("--out", "-o", help="The .html page.")] = Path(
        "explore.html"
    ),
    parts: Annotated[
        int, typer.Option(min=1, help="How many of the unique parts to list, at most.")
    ] = 500,
    splits: Annotated[
        Path | None,
        typer.Option(help="The splits.json of a run directory: colour the map by fold."),
    ] = None,
    training: Annotated[
        str | None,
        typer.Option(help="The training data: show them too, and the nearest of them."),
    ] = None,
    vectors: options.VectorsFile = None,
    force: options.Force = False,
    json: options.AsJson = False,
    *,
    reading: ReadOptions,
) -> None:
    """Explore a dataset with a model: one page with a map, all graphs and all unique parts.

    The page needs no server and no network. Up to 50,000 examples.

    Example: saen explore model.saen MUTAG --out explore.html
    """
    import numpy as np

    options.import_estimators()
    from saen.errors import InputError
    from saen.explanations.exploration import explore
    from saen.io.parsing.records import skipped_records
    from saen.jobs.predict import describe_use, load_for_model, load_model, own_score
    from saen.learning.splits import splits_from_json
    from saen.report.explorer import check_bokeh, write_explorer

    if out.suffix.lower() != ".html":
        raise InputError(f"cannot write {str(out)!r}: the page is an .html file")
    if training is not None and splits is not None:
        raise InputError("--splits are those of the data alone: omit --training")
    check_output(out, force=force, inputs=[model, data, training, vectors])
    check_bokeh()
    loaded = load_model(model, "cpu", vectors=vectors)
    with skipped_records(reading) as (noting, skipped):
        examples = load_for_model(loaded, data, noting, model)
    fold = None
    if splits is not None:
        fold = np.full(len(examples), -1)
        known_splits = splits_from_json(splits, len(examples), skipped, reading.notify)
        for number, (_, test) in enumerate(known_splits.repeats[0]):
            fold[test] = number
    known = None
    if training is not None:
        known = load_for_model(loaded, training, reading, model)
    name = examples.name or data
    exploration = explore(loaded, examples, training=known, n_parts=parts, name=name)
    about = describe_use(loaded, model, name)
    write_explorer(
        out, exploration, fold=fold, about=about, out_of_fold=own_score(loaded, examples)
    )
    if json:
        print_json({"out": str(out), **exploration.to_json()})
        return
    print_line(exploration.description)
    print_line(f"saved      {out}")
