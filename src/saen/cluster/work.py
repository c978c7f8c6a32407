"""Where tasks leave their results until all are there."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from saen._util.atomic import remove_folder
from saen.jobs.store import open_run


@contextmanager
def work_folder(out: Path | None, settings: dict[str, Any]) -> Iterator[Path]:
    """A folder beside `out`, which is kept if the block fails and found again by the next run.

    `settings` decide the results: those of other settings are removed. Without `out`, a temporary
    folder of this machine.
    """
    if out is None:
        with tempfile.TemporaryDirectory(prefix="saen-") as name:
            yield Path(name)
        return
    folder = out.with_name(f"{out.name}.parts")
    with open_run(folder, settings, anew=True) as work:
        yield work
    remove_folder(folder)
