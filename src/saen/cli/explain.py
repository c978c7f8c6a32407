"""`saen explain`: which parts carried a decision, or all decisions about a collection."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from saen.cli import options
from saen.cli.output import console, heading, print_json, report_skipped, table
from saen.errors import InputError
from saen.learning.runs import versions
from saen.report.plots import FORMATS, save_figure

if TYPE_CHECKING:
    from saen.explanations.explanation import CollectionExplanation, Explanation


def command(
    model: options.ModelFile,
    data: options.Name,
    graph: Annotated[
        int | None,
        typer.Option(
            "--graph", "-g", help="Number of the structure, from 0. [default: the collection]"
        ),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(help="The class to explain. [default: the second of two, else the predicted]"),
    ] = None,
    parts: Annotated[int, typer.Option(min=1, help="How many of the strongest parts.")] = 10,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="An .html page, a .json file, or an .svg, .png or .pdf."),
    ] = None,
    skip_bad: options.SkipBad = False,
    json: options.AsJson = False,
) -> None:
    """Say which parts of a structure, and what in them, carried a model's decision.

    Without --graph: which kinds of parts carry the decisions about the whole collection.

    Example: saen explain model.saen MUTAG --graph 17 --out report.html
    """
    _check_suffix(out)
    from saen.explanations.explanation import explain, explain_collection
    from saen.learning.jobs.job import load_input
    from saen.learning.jobs.predict import load_model, model_takes

    loaded = load_model(model, "cpu")
    with report_skipped() as report:
        structures = load_input(data, model_takes(loaded), skip_bad=skip_bad, report=report)
    name = structures.name or data
    about = {
        "model": model.name,
        "data": name,
        "estimator": type(loaded).__name__,
        "networks": loaded.network_.n_models,
        **versions(),
    }
    found: Explanation | CollectionExplanation
    if graph is None:
        found = explain_collection(loaded, structures, target=target, k=parts)
    else:
        found = explain(loaded, structures, graph, target=target, k=parts)
    document = {"about": about, **found.to_json()}
    if out is not None:
        _write(found, document, name, out)
    if json:
        print_json(document)
    else:
        _print(found, name)
        if out is not None:
            console().print(f"\nwritten    {out}", soft_wrap=True)


def _check_suffix(out: Path | None) -> None:
    known = (".html", ".json", *FORMATS)
    if out is not None and out.suffix.lower() not in known:
        raise InputError(f"cannot write {str(out)!r}: use {', '.join(known)}")


def _write(
    found: Explanation | CollectionExplanation, document: dict[str, Any], name: str, out: Path
) -> None:
    import json

    from saen._util.atomic import atomic_write
    from saen.explanations.explanation import Explanation
    from saen.report.explanation_page import (
        collection_page,
        draw_collection,
        draw_explanation,
        explanation_page,
    )

    suffix = out.suffix.lower()
    if suffix == ".json":
        with atomic_write(out) as temporary:
            temporary.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    elif isinstance(found, Explanation):
        title = f"{name}, {_one(found)} {found.index}"
        if suffix == ".html":
            explanation_page(found, title, document["about"]).write(out)
        else:
            save_figure(draw_explanation(found, f"{title}: {found.prediction}"), out)
    else:
        title = f"{name}: {found.name} that decide"
        if suffix == ".html":
            collection_page(found, title, document["about"]).write(out)
        else:
            save_figure(draw_collection(found, title), out)


def _one(found: Explanation) -> str:
    from saen.explanations.describe import singular

    return singular(found.whole.hierarchy.names[-1])


def _print(found: Explanation | CollectionExplanation, name: str) -> None:
    from rich.markup import escape

    from saen.explanations.explanation import Explanation

    rows: list[tuple[str, ...]]
    if isinstance(found, Explanation):
        heading(escape(f"{name}, {_one(found)} {found.index}: predicted {found.prediction}"))
        line = f"output {found.output:+.3f} for {found.target}, {found.baseline:+.3f} without parts"
        console().print(escape(line), soft_wrap=True)
        out = table("contribution", "number", "node")
        rows = [
            (
                f"{part.contribution:+.4f}",
                str(part.number),
                "" if part.node is None else str(part.node),
                found.speaks_for(part.contribution).removeprefix("for "),
                ", ".join(part.roles),
                part.what,
            )
            for part in found.parts
        ]
    else:
        heading(escape(f"{name}: {found.name} that decide"))
        out = table("mean", "total", "occurrences", "structures")
        rows = [
            (
                f"{each.mean:+.4f}",
                f"{each.total:+.1f}",
                f"{each.occurrences:,}",
                f"{each.structures:,}",
                each.towards,
                ", ".join(each.part.roles),
                each.part.what,
            )
            for each in found.parts
        ]
    for column in ("speaks for", "role", "made of"):
        out.add_column(column, justify="left")
    for row in rows:
        out.add_row(*map(escape, row))
    console().print(out)
