"""Executors with faults."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from saen._util.executor import Executor
from saen.cluster.executors import SerialExecutor


class Killing:
    """A task of every stage of a job has a fault, the first time: it dies with its worker, say."""

    def __init__(self, inner: Executor, folder: Path, fault: Callable[..., Any]) -> None:
        self.inner, self.folder, self.fault = inner, folder, fault
        self.stages: list[Callable[..., Any]] = []

    def put(self, value: Any) -> Any:
        return self.inner.put(value)

    def submit(self, name: str, function: Callable[..., Any], *arguments: Any) -> None:
        if function in self.stages:
            self.inner.submit(name, function, *arguments)
            return
        self.stages.append(function)
        marker = self.folder / function.__name__
        self.inner.submit(name, self.fault, marker, function, *arguments)

    def completed(self) -> Iterator[tuple[str, Any]]:
        return self.inner.completed()

    def close(self) -> None:
        self.inner.close()


class Losing(Killing):
    """All tasks have the fault."""

    def submit(self, name: str, function: Callable[..., Any], *arguments: Any) -> None:
        self.inner.submit(name, self.fault, self.folder / name, function, *arguments)


class Stopping(SerialExecutor):
    """Stops as if by Ctrl-C after some tasks; `ran` lists those that ran."""

    def __init__(self, after: int) -> None:
        super().__init__()
        self.after, self.ran = after, list[str]()

    def completed(self) -> Iterator[tuple[str, Any]]:
        if len(self.ran) >= self.after:
            raise KeyboardInterrupt
        for name, result in super().completed():
            self.ran.append(name)
            yield name, result
            if len(self.ran) >= self.after:
                raise KeyboardInterrupt
