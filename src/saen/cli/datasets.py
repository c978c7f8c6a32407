"""`saen datasets`: what there is, and how it compares with the paper's statistics."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from saen.cli import options
from saen.cli.output import console, heading, print_json, table


def command(
    name: Annotated[
        str | None, typer.Argument(help="A dataset; without it, the catalog is listed.")
    ] = None,
    json: options.AsJson = False,
) -> None:
    """List the catalog, or print the statistics of one dataset next to the paper's.

    Example: saen datasets MUTAG
    """
    if name is None:
        _list(json)
    else:
        _describe(name, json)


def _list(json: bool) -> None:
    from saen.io.sources.catalog import catalog
    from saen.io.sources.local import locate

    places = {entry.name: locate(entry.name) for entry in catalog().values()}
    if json:
        keys = ("name", "title", "group", "graphs", "classes")
        rows = [
            {key: getattr(entry, key) for key in keys}
            | {"present": place is not None, "path": str(place) if place else None}
            for entry, place in zip(catalog().values(), places.values(), strict=True)
        ]
        print_json({"datasets": rows})
        return
    out = table("name", "graphs", "classes", "available")
    out.add_column("description", justify="left")
    for entry in catalog().values():
        here = "yes" if places[entry.name] else "download" if entry.served else "no"
        out.add_row(entry.name, f"{entry.graphs:,}", str(entry.classes), here, entry.title)
    out.add_row(
        "threads", "300", "2", "built in", "Generated reply graphs: discussions vs. questions"
    )
    console().print(out)
    console().print("\nOther names of TUDataset are downloaded on first use.", style="dim")


def _describe(name: str, json: bool) -> None:
    from saen.io.loading import load_dataset
    from saen.io.sources.catalog import find_entry

    graphs = load_dataset(name)
    entry = find_entry(name)
    found = graphs.summary()
    paper = asdict(entry.paper) if entry is not None and entry.paper is not None else None
    if json:
        print_json({"name": graphs.name or name, **found, "paper": paper})
        return
    heading(graphs.name or name)
    out = table("", "this copy", "paper")
    for key, value in found.items():
        if key == "classes":
            shown = ", ".join(f"{label}: {count:,}" for label, count in value.items())
        else:
            shown = f"{value:,.2f}" if isinstance(value, float) else f"{value:,}"
            shown = str(value).lower() if isinstance(value, bool) else shown
        theirs = None if paper is None else paper.get(key)
        out.add_row(key.replace("_", " "), shown, "" if theirs is None else f"{theirs:,}")
    console().print(out)
    if entry is not None and entry.note:
        console().print(f"\n{entry.note}", style="dim")
