"""Progress bars: shown on a terminal, silent in a pipe."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn


@contextmanager
def bar(label: str, total: int | None, shown: bool | None = None) -> Iterator[Callable[..., None]]:
    """A bar on stderr; call what it gives with the number done (and a note).

    `total` is None where nobody knows it. `shown` None shows it when stderr is a terminal.
    """
    progress = Progress(
        TextColumn(label),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[note]}"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
        disable=not (sys.stderr.isatty() if shown is None else shown),
    )
    with progress:
        task = progress.add_task(label, total=total, note="")

        def update(done: int, note: str = "", total: int | None = None) -> None:
            progress.update(task, completed=done, note=note, total=total)

        yield update
