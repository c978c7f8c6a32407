"""The report: one JSON document, and the Markdown that is made from it and from nothing else."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from saen._util.atomic import atomic_write
from saen._util.strings import human_bytes

GB = 10**9


def check(
    what: str, measured: float, target: float, unit: str, *, at_least: bool = False
) -> dict[str, Any]:
    """A target beside what was measured: `unit` is s, bytes, times or nothing."""
    return {
        "what": what,
        "measured": measured,
        "target": target,
        "unit": unit,
        "at_least": at_least,
        "met": measured >= target if at_least else measured <= target,
    }


def table(headings: Sequence[str], rows: Iterable[Sequence[str]], words: int = 1) -> str:
    """A Markdown table: words in the first columns, numbers in the others."""
    lines = [headings, ["---"] * words + ["---:"] * (len(headings) - words), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines) + "\n"


def quantity(value: float, unit: str) -> str:
    """A number for people.

    >>> quantity(6.912, "s"), quantity(1.36e9, "bytes"), quantity(14.2, "times")
    ('6.91 s', '1.4 GB', '14.2 ×')
    """
    if unit == "bytes":
        return human_bytes(value)
    if unit == "times":
        return f"{value:.1f} ×"
    return f"{value:.2f} {unit}".strip()


def markdown(document: Mapping[str, Any], parts: Mapping[str, ModuleType]) -> str:
    """The whole report."""
    machine = document["machine"]
    libraries = ", ".join(f"{name} {version}" for name, version in machine["libraries"].items())
    gpu = f", one {machine['gpu']}" if "gpu" in machine else ""
    sections = [
        "# Benchmarks\n",
        "Written by `python -m benchmarks`, from `benchmarks.json` beside it.\n",
        f"{machine['cpu']}, {machine['cores']} cores, {human_bytes(machine['memory_bytes'])} of "
        f"memory{gpu}, {machine['system']}, Python {machine['python']}; {libraries}.\n",
    ]
    if document["quick"]:
        sections.append("**A quick run on small data, to try the machinery: no targets.**\n")
    done = {name: document["parts"][name] for name in parts if name in document["parts"]}
    checks = [row for part in done.values() for row in part["checks"]]
    if checks:
        sections += ["## Targets\n", _checks(checks)]
    for name, part in done.items():
        sections += [f"## {parts[name].TITLE}\n", parts[name].markdown(part)]
        if part["skipped"]:
            reasons = [f"- {row['what']}: {row['reason']}" for row in part["skipped"]]
            sections.append("Not measured:\n\n" + "\n".join(reasons) + "\n")
        before, after = (part["load_average"][moment] for moment in ("before", "after"))
        sections.append(
            f"Measured on {part['date']} in {part['wall_seconds']:.0f} s, at a load average of "
            f"{before:.1f} before and {after:.1f} after.\n"
        )
    return "\n".join(sections)


def _checks(checks: Sequence[Mapping[str, Any]]) -> str:
    return table(
        ("what", "measured", "target", ""),
        [
            (
                row["what"],
                quantity(row["measured"], row["unit"]),
                f"{'≥' if row['at_least'] else '≤'} {quantity(row['target'], row['unit'])}",
                "✓ met" if row["met"] else "✗ missed",
            )
            for row in checks
        ],
    )


def write(document: Mapping[str, Any], parts: Mapping[str, ModuleType], folder: Path) -> None:
    """Both files, the Markdown from what the JSON file holds."""
    text = json.dumps(document, indent=2) + "\n"
    for name, content in {"json": text, "md": markdown(json.loads(text), parts)}.items():
        with atomic_write(folder / f"benchmarks.{name}") as temporary:
            temporary.write_text(content, encoding="utf-8")
