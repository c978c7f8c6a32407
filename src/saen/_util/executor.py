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

        The value is what `saen.io.store.container.save` writes: data, a hierarchy or a compressed
        one. Tasks receive the value itself, with read-only arrays.
        """

    def submit(self, name: str, function: Callable[..., Any], *arguments: Any) -> None:
        """Add a task; `name` identifies it in `completed` and in messages."""

    def completed(self) -> Iterator[tuple[str, Any]]:
        """Name and result of every task that was submitted, in the order in which they end.

        The first error is raised, and what has not run yet is dropped.
        """

    def close(self) -> None:
        """End the workers."""


class Tasks:
    """Tasks of several stages of a job on one executor, and their results by name.

    A value is shared once, however often it is `put`; a task that was submitted is not submitted
    again.
    """

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self._shared: dict[int, tuple[Any, Any]] = {}  # the value too, so that its id stays taken
        self._received: dict[str, Callable[[Any], Any]] = {}
        self._results: dict[str, Any] = {}

    def put(self, value: Any) -> Any:
        """Share a value with all tasks."""
        if id(value) not in self._shared:
            self._shared[id(value)] = value, self._executor.put(value)
        return self._shared[id(value)][1]

    def submit(
        self,
        name: str,
        received: Callable[[Any], Any],
        function: Callable[..., Any],
        *arguments: Any,
    ) -> None:
        """Add a task, unless there is one of this name; its result is passed to `received`."""
        if name not in self._received:
            self._received[name] = received
            self._executor.submit(name, function, *arguments)

    def has(self, name: str) -> bool:
        """Whether a task of this name was submitted."""
        return name in self._received

    def result(self, name: str) -> Any:
        """What `received` made of the result of a task, once: waits for it."""
        while name not in self._results:
            done, result = next(self._executor.completed())
            self._results[done] = self._received[done](result)
        return self._results.pop(name)
