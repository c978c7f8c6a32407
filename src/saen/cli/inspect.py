"""`saen inspect`: what a file is."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from saen._util.strings import human_bytes
from saen.cli import options
from saen.cli.output import console, heading, print_json, print_lines, table

_MOST_SHOWN = 12  # entries of a list
_NAMES = {"numbers": "parameters", "labels": "node labels", "examples": "training examples"}


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
    lines = {"size": human_bytes(found.pop("bytes"))}
    if {"saen", "format"} <= set(found):
        lines["written by"] = f"saen {found.pop('saen')} (format {found.pop('format')})"
    tables: dict[str, list[dict[str, Any]]] = {}
    for key, value in found.items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            tables[key] = value
        elif key == "out_of_fold":
            lines["out of fold"] = _score(value)
        elif isinstance(value, dict):
            if words := _settings(value):
                lines[_words(key)] = words
        else:
            lines[_words(key)] = _shown(value)
    print_lines(lines)
    if "members" in tables:  # candidates that are members are listed once
        names = {each["candidate"] for each in tables["members"]}
        others = [each for each in tables.pop("tried", []) if each["candidate"] not in names]
        tables |= {"other candidates": others} if others else {}
    for key, rows in tables.items():
        _print_table(key, rows)


def _print_table(name: str, rows: list[dict[str, Any]]) -> None:
    """One row per part of a file, one column per fact that any of them has."""
    columns = [key for key in rows[0] if any(row.get(key) not in ([], None) for row in rows)]
    out = table(name, *map(_words, columns[1:]))
    for row in rows:
        out.add_row(*(_shown(row.get(key)) for key in columns))
    console().print(out)


def _score(score: dict[str, Any]) -> str:
    """Scores, in percent if they are shares, and the interval of the first."""
    interval = score.pop("interval", None)

    def shown(name: str, value: float) -> str:
        return f"{100 * value:.1f} %" if name in ("accuracy", "roc_auc") else f"{value:.4g}"

    words = [f"{_words(name)} {shown(name, value)}" for name, value in score.items()]
    if interval:
        ends = " to ".join(shown(next(iter(score)), end) for end in interval)
        words[0] += f" (95 % interval {ends})"
    return ", ".join(words)


def _settings(values: dict[str, Any]) -> str:
    """Settings in one line, without those that are not set."""
    known = {key: value for key, value in values.items() if value not in (None, "auto", [], {})}
    first = [str(known.pop("name"))] if "name" in known else []
    return ", ".join([*first, *(f"{_words(key)} {_shown(each)}" for key, each in known.items())])


def _words(key: str) -> str:
    """A key as people read it."""
    return _NAMES.get(key, key.replace("_", " "))


def _shown(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "–"}[value]
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, list):
        if value and isinstance(value[0], list):
            return " ".join(f"[{_shown(inner)}]" for inner in value)
        more = f" … {len(value):,} in all" if len(value) > _MOST_SHOWN else ""
        return ", ".join(map(_shown, value[:_MOST_SHOWN])) + more
    return str(value)
