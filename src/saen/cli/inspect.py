"""`saen inspect`: what a file is."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from saen._util.strings import human_bytes
from saen.cli import options
from saen.cli.output import console, heading, print_json, table

_MOST_SHOWN = 12  # entries of a list


def command(
    file: Annotated[Path, typer.Argument(help="A file or folder that saen wrote.")],
    json: options.AsJson = False,
) -> None:
    """Describe a file: its kind, versions, sizes and settings.

    Recognises datasets, shards, hierarchies, models, checkpoints, predictions, embeddings and run
    directories. Only headers are read. Use saen validate for your own data files.

    Example: saen inspect mutag.saen
    """
    from saen.jobs.inspect import inspect_file

    found = inspect_file(file)
    if json:
        print_json({"file": str(file), **found})
        return
    heading(f"{file}: {found.pop('kind')}")
    found["bytes"] = human_bytes(found["bytes"])
    out = table("", "")
    out.columns[1].justify = "left"
    out.show_header = False
    for key, value in found.items():
        if isinstance(value, dict):
            for inner, item in value.items():
                out.add_row(f"{key}: {inner}", _shown(item))
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            for number, item in enumerate(value):
                known = {k.replace("_", " "): v for k, v in item.items() if v not in ([], None)}
                words = ", ".join(f"{k} {_shown(v)}" for k, v in known.items())
                out.add_row(f"{key}: {number}", words)
        else:
            out.add_row(key.replace("_", " "), _shown(value))
    console().print(out)


def _shown(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "–"}[value]
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list):
        if value and isinstance(value[0], list):
            return " ".join(f"[{_shown(inner)}]" for inner in value)
        more = f" … {len(value):,} in all" if len(value) > _MOST_SHOWN else ""
        return ", ".join(map(_shown, value[:_MOST_SHOWN])) + more
    return str(value)
