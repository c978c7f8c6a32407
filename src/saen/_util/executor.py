"""`Executor`: what runs the independent tasks of a job, here or on other machines."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol


class Executor(Protocol):
    """Runs tasks: functions of a module, whose arguments and results travel between processes.

    The implementations are in `saen.cluster`. A task that dies with its worker is run again, so
    running it twice must do no harm.
    """

    def put(self, value: Any) -> Any:
        """Share a value with all tasks, once per machine: pass what this returns as an argument.

        Tasks receive the value itself, with read-only arrays.
        """

    def submit(self, name: str, function: Callable[..., Any], *arguments: Any) -> None:
        """Add a task; `name` identifies it in `completed` and in messages."""

    def completed(self) -> Iterator[tuple[str, Any]]:
        """Name and result of every task that was submitted, in the order in which they end.

        The first error is raised, and what has not run yet is dropped.
        """

    def close(self) -> None:
        """End the workers."""
