"""Where tasks leave their results until all are there."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from saen._util.atomic import atomic_write, remove_folder, temporary_folder
from saen._util.executor import Executor
from saen._util.remote import is_remote
from saen.errors import FileError
from saen.io.store import container
from saen.jobs.store import open_run


@dataclass(frozen=True)
class Work:
    """A folder for the files that tasks make; if it is not `shared`, they send them back."""

    folder: Path
    shared: bool = True

    def make(
        self,
        files: Mapping[str, Path],
        executor: Executor,
        function: Callable[..., Any],
        arguments: Callable[[int], tuple[Any, ...]],
    ) -> Iterator[str]:
        """Run a task for every file that is missing or damaged; names as the files are there.

        `function(file, *arguments(number))` writes the file of a name.
        """
        ready = []
        for number, (name, file) in enumerate(files.items()):
            if _is_whole(file):
                ready.append(name)
            elif self.shared:
                executor.submit(name, function, file, *arguments(number))
            else:
                executor.submit(name, _send, function, *arguments(number))
        yield from ready
        for name, content in executor.completed():
            if not self.shared:
                with atomic_write(files[name], durable=False) as temporary:
                    temporary.write_bytes(content)
            yield name


def _send(function: Callable[..., Any], *arguments: Any) -> bytes:
    """The content of the file that a task makes, for a folder that its machine does not see."""
    folder = temporary_folder()
    try:
        function(folder / "result.saen", *arguments)
        return (folder / "result.saen").read_bytes()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _is_whole(file: Path) -> bool:
    """Whether a file is there and undamaged; disks fill, machines crash."""
    if not file.exists():
        return False
    try:
        container.read(file)
    except FileError:
        return False
    return True


@contextmanager
def work_folder(out: Path | None, settings: dict[str, Any]) -> Iterator[Work]:
    """A folder beside `out`, which is kept if the block fails and found again by the next run.

    `settings` decide the results: those of other settings are removed. Without `out`, or
    where it is in an object store, a temporary folder of this machine, which others do not see.
    """
    if out is None or is_remote(out):
        private = temporary_folder()
        try:
            yield Work(private, shared=False)
        finally:
            shutil.rmtree(private, ignore_errors=True)
        return
    folder = out.absolute().with_name(f"{out.name}.parts")
    with open_run(folder, settings, anew=True) as work:
        yield Work(work)
    remove_folder(folder)
