"""`saen validate`: what is in a file, and what is wrong with it."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from saen._util.strings import plural
from saen.cli import options
from saen.cli.output import heading, print_json, print_line
from saen.data.documents import Documents
from saen.data.graphs import Graphs
from saen.data.nested import NestedData
from saen.errors import FileError
from saen.io.loading import data_kind, load_data, load_dataset

Data = Graphs | Documents | NestedData


def command(
    source: Annotated[str, typer.Argument(metavar="FILE", help="A file, folder or name.")],
    nodes: options.NodesFile = None,
    targets: options.TargetsFile = None,
    directed: options.Directed = False,
    limit: Annotated[int, typer.Option(min=0, help="How many problems to list.")] = 20,
    json: options.AsJson = False,
) -> None:
    """Say what a file holds, and name every line that cannot be used.

    Exit code 2 where there is any. Example: saen validate my-graphs.jsonl
    """
    problems: list[FileError] = []
    found: Data | None
    try:
        kind = data_kind(source)
        if kind in ("graphs", "molecules"):
            found = load_dataset(
                source,
                directed=directed,
                nodes=nodes,
                targets=targets,
                skip_bad=True,
                report=problems.append,
            )
        else:
            found = load_data(source, kind)
    except FileError as error:  # there is no going on after it
        found = None
        problems.append(error)
    problems.sort(key=lambda error: (str(error.path), error.line or 0))
    if json:
        print_json(_report(source, found, problems, limit))
    else:
        _print(source, found, problems, limit)
    if problems:
        raise typer.Exit(2)


def _report(
    source: str,
    found: Data | None,
    problems: list[FileError],
    limit: int,
) -> dict[str, Any]:
    return {
        "ok": not problems,
        "count": 0 if found is None else len(found),
        "summary": found.summary() if isinstance(found, Graphs) else None,
        "unused": _unused(source, found),
        "n_problems": len(problems),
        "problems": [
            {"path": str(error.path), "line": error.line, "message": str(error)}
            for error in problems[:limit]
        ],
    }


def _print(
    source: str,
    found: Data | None,
    problems: list[FileError],
    limit: int,
) -> None:
    heading(source)
    if found is not None:
        print_line(f"{found!r}")
    if isinstance(found, Graphs):
        for line in [*_summary(found), *map("note: {}".format, _unused(source, found))]:
            print_line(line)
    if not problems:
        print_line("no problems")
        return
    print_line(plural(len(problems), "problem"))
    for error in problems[:limit]:
        print_line(f"  {error}")
    if len(problems) > limit:
        print_line(f"  … and {len(problems) - limit:,} more")


def _unused(source: str, data: Data | None) -> list[str]:
    from saen.learning.unused import unused_by_default

    return unused_by_default(source, data)


def _summary(graphs: Graphs) -> list[str]:
    facts = graphs.summary()
    keys = ("average_nodes", "average_edges", "average_max_degree")
    lines = [f"{key.replace('_', ' '):20}{facts[key]:,.2f}" for key in keys]
    lines.append(f"{'isolated nodes':20}{facts['isolated_nodes']:,}")
    if "classes" in facts:
        counts = ", ".join(f"{label}: {count:,}" for label, count in facts["classes"].items())
        lines.append(f"{'classes':20}{counts}")
    elif graphs.targets is None:
        lines.append(f"{'targets':20}none: graphs can be predicted, but not trained on")
    else:
        lines.append(
            f"{'targets':20}real numbers from {graphs.targets.min():g} to {graphs.targets.max():g}"
        )
    return lines
