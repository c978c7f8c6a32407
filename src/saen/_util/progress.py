"""What long work shows (a bar on a terminal or in a notebook, else lines), and what it takes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from threading import Event, Thread
from time import perf_counter

from saen._util.notebook import in_notebook, notebook_bar

FIRST_LINE = 5.0
"""Seconds of a stage after which it has its first line; the next ones come ever later."""

notify: Callable[[str], object] | None = None
"""What prints a line where there is no terminal. The command line sets it; a library is silent."""


@contextmanager
def bar(label: str, total: int | None, shown: bool | None = None) -> Iterator[Callable[..., None]]:
    """A bar on stderr; call what it gives with the number done (and a note).

    `total` is None where nobody knows it. `shown` None shows it when stderr is a terminal, or in a
    notebook.
    """
    if shown is not False and in_notebook():
        with notebook_bar(label, total) as update:
            yield update
        return
    if not (sys.stderr.isatty() if shown is None else shown):
        counted = [0, total or 0]

        def count(done: int, note: str = "", total: int | None = None) -> None:
            counted[:] = done, total or counted[1]

        with _lines(label, counted) if shown is None else nullcontext():
            yield count
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    progress = Progress(
        TextColumn(label),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[note]}"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    with progress:
        task = progress.add_task(label, total=total, note="")

        def update(done: int, note: str = "", total: int | None = None) -> None:
            progress.update(task, completed=done, note=note, total=total)

        yield update


@contextmanager
def _lines(label: str, counted: list[int]) -> Iterator[None]:
    """Write how far a stage is after `FIRST_LINE` seconds, after twice as many, and so on.

    `counted` holds what is done and the total, 0 where nobody knows it.
    """
    write, start, ended = notify, perf_counter(), Event()
    if write is None:
        yield
        return

    def watch() -> None:
        wait = FIRST_LINE
        while not ended.wait(wait):
            done, total = counted
            share = f"{100 * done / total:.0f} % done, " if done and total else ""
            wait = perf_counter() - start
            write(f"{label}: {share}{wait:,.0f} s so far")

    Thread(target=watch, daemon=True).start()
    try:
        yield
    finally:
        ended.set()


@contextmanager
def timed(seconds: dict[str, float], step: str) -> Iterator[None]:
    """Add what a step takes to its seconds."""
    start = perf_counter()
    yield
    seconds[step] = seconds.get(step, 0.0) + perf_counter() - start
