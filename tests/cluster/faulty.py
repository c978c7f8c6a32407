"""Executors with faults."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from saen._util.executor import Executor
from saen.cluster.executors import SerialExecutor


class Killing:
    """Every task dies with its worker, the first time; `fault` says when."""

    def __init__(self, inner: Executor, folder: Path, fault: Callable[..., Any]) -> None:
        self.inner, self.folder, self.fault, self.count = inner, folder, fault, 0

    def put(self, value: Any) -> Any:
        return self.inner.put(value)

    def submit(self, name: str, function: Callable[..., Any], *arguments: Any) -> None:
        self.count += 1
        marker = self.folder / str(self.count)
        self.inner.submit(name, self.fault, marker, function, *arguments)

    def completed(self) -> Iterator[tuple[str, Any]]:
        return self.inner.completed()

    def close(self) -> None:
        self.inner.close()


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
