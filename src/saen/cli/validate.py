"""`saen validate`: what is in a file, and what is wrong with it."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Annotated

import typer

from saen._util.strings import plural
from saen.cli import options
from saen.cli.output import heading, print_json, print_line
from saen.data.documents import Documents
from saen.data.graphs import Graphs
from saen.data.nested import NestedData
from saen.errors import FileError
from saen.io.loading import data_kind, load_data
from saen.io.reading import ReadOptions


@partial(options.reads_data, without="skip_bad")
def command(
    source: Annotated[str, typer.Argument(metavar="FILE", help="A file, folder or name.")],
    limit: Annotated[int, typer.Option(min=0, help="How many problems to list.")] = 20,
    json: options.AsJson = False,
    *,
    reading: ReadOptions,
) -> None:
    """Check a file: describe its content and list every line with a problem.

    The exit code is 2 if there are problems. Example: saen validate my-graphs.jsonl
    """
    from saen.learning.unused import unused_by_default

    problems: list[FileError] = []
    found: Graphs | Documents | NestedData | None
    try:
        all_bad = replace(reading, skip_bad=True, report=problems.append)
        found = load_data(source, data_kind(source), all_bad)
    except FileError as error:  # there is no going on after it
        found = None
        problems.append(error)
    problems.sort(key=lambda error: (str(error.path), error.line or 0))
    unused = unused_by_default(source, found)
    if json:
        print_json(
            {
                "ok": not problems,
                "count": 0 if found is None else len(found),
                "summary": found.summary() if isinstance(found, Graphs) else None,
                "unused": unused,
                "n_problems": len(problems),
                "problems": [
                    {"path": str(error.path), "line": error.line, "message": str(error)}
                    for error in problems[:limit]
                ],
            }
        )
    else:
        heading(source)
        for line in [*_description(found), *map("note: {}".format, unused)]:
            print_line(line)
        print_line(plural(len(problems), "problem") if problems else "no problems")
        for problem in problems[:limit]:
            print_line(f"  {problem}")
        if len(problems) > limit:
            print_line(f"  … and {len(problems) - limit:,} more")
    if problems:
        raise typer.Exit(2)


def _description(found: Graphs | Documents | NestedData | None) -> list[str]:
    no_targets = "none: graphs can be predicted, but not trained on (--target names them)"
    if not isinstance(found, Graphs):
        if found is None or found.targets is not None:
            return [] if found is None else [repr(found)]
        return [repr(found), f"{'targets':20}{no_targets.replace('graphs', 'examples')}"]
    facts = found.summary()
    keys = ("average_nodes", "average_edges", "average_max_degree")
    lines = {key.replace("_", " "): f"{facts[key]:,.2f}" for key in keys}
    lines["isolated nodes"] = f"{facts['isolated_nodes']:,}"
    if "classes" in facts:
        counts = facts["classes"].items()
        lines["classes"] = ", ".join(f"{label}: {count:,}" for label, count in counts)
    elif found.targets is None:
        lines["targets"] = no_targets
    else:
        lines["targets"] = f"real numbers from {found.targets.min():g} to {found.targets.max():g}"
    return [repr(found), *(f"{name:20}{words}" for name, words in lines.items())]
