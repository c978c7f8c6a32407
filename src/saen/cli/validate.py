"""`saen validate`: what is in a file, and what is wrong with it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from saen._util.strings import plural
from saen.cli import options
from saen.cli.output import heading, print_json, print_line
from saen.io.reading import ReadOptions

if TYPE_CHECKING:
    from saen.data.documents import Documents
    from saen.data.graphs import Graphs
    from saen.data.nested import NestedData


@partial(options.reads_data, without="skip_bad")
def command(
    source: Annotated[
        str, typer.Argument(metavar="FILE", help="A file, folder or name, or - for stdin.")
    ],
    limit: Annotated[int, typer.Option(min=0, help="How many different problems to list.")] = 20,
    json: options.AsJson = False,
    *,
    reading: ReadOptions,
) -> None:
    """Check a file: describe its content and list its problems with their lines.

    The exit code is 2 if there are problems. Example: saen validate my-graphs.jsonl
    """
    from saen.learning.jobs.validate import validate_dataset

    report = validate_dataset(source, reading)
    if json:
        print_json(report.to_json(limit))
    else:
        heading(source)
        for line in [*_description(report.data), *map("note: {}".format, report.unused)]:
            print_line(line)
        print_line(plural(report.n_problems, "problem") if report.problems else "no problems")
        for complaint in report.complaints()[:limit]:
            print_line(f"  {complaint}")
        if len(report.problems) > limit:
            print_line(f"  … and {sum(map(len, report.problems[limit:])):,} more")
    if report.problems:
        raise typer.Exit(2)


def _description(found: Graphs | Documents | NestedData | None) -> list[str]:
    from saen.data.graphs import Graphs

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
