"""What notebooks show: tables, and progress bars without widgets."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from html import escape
from importlib import import_module
from time import monotonic
from typing import Any

MIN_SECONDS = 0.2
"""Between two pictures of a bar."""


def html_table(caption: str, columns: Mapping[str, Sequence[Any]], more: int = 0) -> str:
    """A table as HTML with a caption above; `more` rows are left out.

    >>> html_table("a & b", {"x": [1, 0.25], "y": ["<", None]})[:52]
    '<div><p>a &amp; b</p><table><tr><th>x</th><th>y</th>'
    """
    rows = [[f"<th>{escape(name)}</th>" for name in columns]]
    rows += [
        [f"<td>{escape(_cell(value))}</td>" for value in row]
        for row in zip(*columns.values(), strict=True)
    ]
    table = "".join(f"<tr>{''.join(row)}</tr>" for row in rows)
    rest = f"<p>… and {more:,} more</p>" if more > 0 else ""
    return f"<div><p>{escape(caption)}</p><table>{table}</table>{rest}</div>"


def _cell(value: Any) -> str:
    if value is None or value != value:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def in_notebook() -> bool:
    """Whether this process is the kernel of a notebook."""
    shell = sys.modules.get("IPython")
    return shell is not None and getattr(shell.get_ipython(), "kernel", None) is not None


@contextmanager
def notebook_bar(label: str, total: int | None) -> Iterator[Callable[..., None]]:
    """As `saen._util.progress.bar`, below the cell; it disappears in the end."""
    display = import_module("IPython.display").display
    handle = display({"text/html": escape(label)}, raw=True, display_id=True)
    size, last = total, 0.0

    def update(done: int, note: str = "", total: int | None = None) -> None:
        nonlocal size, last
        size = total or size
        if monotonic() - last < MIN_SECONDS:
            return
        last = monotonic()
        place = "" if size is None else f' value="{done}" max="{size}"'
        of = "" if size is None else f"/{size:,}"
        words = escape(f"{done:,}{of} {note}")
        html = f"{escape(label)} <progress{place}></progress> {words}"
        handle.update({"text/html": html}, raw=True)

    try:
        yield update
    finally:
        handle.update({"text/html": ""}, raw=True)
