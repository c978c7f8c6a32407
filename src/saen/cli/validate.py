"""`saen validate`: what is in a file, and what is wrong with it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from saen._util.strings import plural
from saen.cli import options
from saen.cli.output import heading, print_json, print_line
from saen.io.options import ReadOptions

if TYPE_CHECKING:
    from saen.data.documents import Documents
    from saen.data.graphs import Graphs
    from saen.data.nested import NestedData

MAX_CLASSES = 20  # listed in one line


@partial(options.reads_data, without="skip_bad")
def command(
    source: Annotated[
        str, typer.Argument(metavar="DATA", help="A file, folder or name, or - for stdin.")
    ],
    limit: Annotated[int, typer.Option(min=0, help="How many different problems to list.")] = 20,
    json: options.AsJson = False,
    *,
    reading: ReadOptions,
) -> None:
    """Check a file: describe its content and list its problems with their lines.

    The exit code is 2 if there are problems. Example: saen validate my-graphs.jsonl
    """
    from saen.jobs.validate import validate_dataset

    report = validate_dataset(source, reading)
    if json:
        print_json(report.to_json(limit))
    else:
        rest = " (--skip-bad of other commands reads the rest)" if report.data is not None else ""
        n = plural(report.n_problems, "problem")
        heading(f"{source}: {n}{rest}" if report.problems else f"{source}: no problems")
        for complaint in report.complaints()[:limit]:
            print_line(f"  {complaint}")
        if len(report.problems) > limit:
            print_line(f"  … and {sum(map(len, report.problems[limit:])):,} more")
        for line in [*_description(report.data), *map("note: {}".format, report.unused)]:
            print_line(line)
        found = report.overlap
        if found is not None and found.share:
            print_line(
                f"overlap: {100 * found.share:.1f} % of graphs share rare parts with another "
                f"graph; largest group {found.largest:,} (saen evaluate --groups overlap)"
            )
    if report.problems:
        raise typer.Exit(2)


def _description(found: Graphs | Documents | NestedData | None) -> list[str]:
    from saen.data.graphs import Graphs

    if found is None:
        return []
    lines = {}
    if isinstance(found, Graphs):
        facts = found.summary()
        keys = ("average_nodes", "average_edges", "average_max_degree")
        lines = {key.replace("_", " "): f"{facts[key]:,.2f}" for key in keys}
        lines["isolated nodes"] = f"{facts['isolated_nodes']:,}"
    lines |= _targets(found, "graphs" if isinstance(found, Graphs) else "examples")
    width = max(20, *(len(name) + 2 for name in lines))
    return [found.description, *(f"{name:{width}}{words}" for name, words in lines.items())]


def _targets(found: Graphs | Documents | NestedData, examples: str) -> dict[str, str]:
    """One line per target: its classes or its range, and how many values are missing."""
    from saen.data.collection import target_facts

    facts = target_facts(found.targets, found.target_names)
    if not facts:
        no_targets = f"none: {examples} can be predicted, but not trained on (--target names them)"
        return {"targets": no_targets}
    if len(facts) > 1:
        return {f"target {name}": _target(each) for name, each in facts.items()}
    return {"classes" if "classes" in each else "targets": _target(each) for each in facts.values()}


def _target(facts: dict[str, Any]) -> str:
    gaps = f"; {facts['missing']:,} missing" if facts["missing"] else ""
    if not facts["known"]:
        return "no values"
    if "classes" not in facts:
        return f"real numbers from {facts['minimum']:g} to {facts['maximum']:g}{gaps}"
    counts = list(facts["classes"].items())
    more = f" and {len(counts) - MAX_CLASSES:,} more classes" if len(counts) > MAX_CLASSES else ""
    shown = ", ".join(f"{label}: {count:,}" for label, count in counts[:MAX_CLASSES])
    return f"{shown}{more}{gaps}"
