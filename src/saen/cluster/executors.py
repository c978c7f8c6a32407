"""Executors: tasks in this process, in processes of this machine, or on a Ray cluster."""

from __future__ import annotations

import multiprocessing
import os
import re
import shutil
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from threadpoolctl import threadpool_limits

from saen._util.atomic import temporary_folder
from saen._util.executor import Executor
from saen.errors import InputError, SaenError, WorkerError
from saen.io.store import container
from saen.network.memory import claim_process

MAX_RETRIES = 3
"""How often a task whose worker died is run again."""
TIMEOUT = 300.0
"""Seconds to wait for the workers of a cluster that has none."""
SPECS = "serial, local:N, ray or ray://HOST:PORT"


class Call(NamedTuple):
    """A function with its arguments, and what messages call it."""

    name: str
    function: Callable[..., Any]
    arguments: Sequence[Any]


@contextmanager
def open_executor(spec: str, timeout: float = TIMEOUT) -> Iterator[Executor]:
    """The executor that a specification names, closed when the block ends.

    - `serial`: one task after the other, in this process;
    - `local:N`: N processes on this machine, `local` one per core;
    - `ray`: the running Ray cluster (`$RAY_ADDRESS`, or the connection of this process), or else
      one that is started on this machine and stopped at the end; `ray:N` starts one with N workers;
    - `ray://HOST:PORT`: a Ray cluster elsewhere.

    `timeout` is in seconds: how long to wait while a Ray cluster has no CPUs.

    Raises `InputError` for other words, and `MissingExtraError` where Ray is not installed.

    >>> with open_executor("serial") as executor:
    ...     executor.submit("the larger", max, 3, 4)
    ...     list(executor.completed())
    [('the larger', 4)]
    """
    executor = _make(spec, timeout)
    try:
        yield executor
    finally:
        executor.close()


def _make(spec: str, timeout: float) -> Executor:
    if spec == "serial":
        return SerialExecutor()
    match = re.fullmatch(r"(local|ray)(?::([0-9]+))?", spec)
    if match is None and not re.fullmatch(r"ray://[^/\s]+:[0-9]+", spec):
        raise InputError(f"a cluster is {SPECS}, not {spec!r}")
    count = match[2] if match else None
    if count is not None and int(count) < 1:
        raise InputError(f"{spec}: at least one worker is needed")
    if match and match[1] == "local":
        return LocalExecutor(int(count) if count else os.cpu_count() or 1)
    from saen.cluster.ray_executor import RayExecutor

    if match is None:
        return RayExecutor(spec, timeout=timeout)
    return RayExecutor(workers=int(count) if count else None, timeout=timeout)


def run_task(task: Call) -> tuple[Any, SaenError | None]:
    """The result of a task, or the error that says what is wrong with its input."""
    try:
        return task.function(*task.arguments), None
    except SaenError as error:
        if task.name not in str(error):
            error.args = (f"{task.name}: {error}", *error.args[1:])
        return None, error
    except MemoryError:
        return None, out_of_memory(task.name)


def out_of_memory(name: str) -> WorkerError:
    """What to say of a task that does not fit the memory of its worker."""
    return WorkerError(
        f"{name}: not enough memory; use more and smaller shards (convert with shards=N), or "
        "fewer workers per machine"
    )


class SerialExecutor:
    """One task after the other, in this process."""

    def __init__(self) -> None:
        self._tasks: deque[Call] = deque()

    def put(self, value: Any) -> Any:
        """The value itself."""
        return value

    def submit(self, name: str, function: Callable[..., Any], *arguments: Any) -> None:
        """Add a task."""
        self._tasks.append(Call(name, function, arguments))

    def completed(self) -> Iterator[tuple[str, Any]]:
        """Run the tasks, in order."""
        while self._tasks:
            task = self._tasks.popleft()
            result, error = run_task(task)
            if error is not None:
                self._tasks.clear()
                raise error
            yield task.name, result

    def close(self) -> None:
        """Nothing to end."""


# -- processes of this machine -----------------------------------------------------------------


@dataclass(frozen=True)
class _Shared:
    """A value in a file that workers map into memory."""

    file: Path


class LocalExecutor:
    """Processes of this machine, each with one thread; a task whose process dies is run again.

    Every worker is a pool of one process, so that a broken pool tells which task it ran.
    """

    def __init__(self, workers: int) -> None:
        self._tasks: deque[Call] = deque()
        self._retries: dict[str, int] = {}
        self._values = 0
        self._folder = temporary_folder()
        self._pools: list[ProcessPoolExecutor | None] = [None] * workers
        self._running: dict[Future[Any], tuple[int, Call]] = {}

    def put(self, value: Any) -> Any:
        """Write a value to a file for the workers to map."""
        self._values += 1
        file = self._folder / f"{self._values}.saen"
        container.save(value, file)
        return _Shared(file)

    def submit(self, name: str, function: Callable[..., Any], *arguments: Any) -> None:
        """Add a task; it starts when a worker is free."""
        self._tasks.append(Call(name, function, arguments))
        self._start()

    def completed(self) -> Iterator[tuple[str, Any]]:
        """Results as they come."""
        while self._running:
            done, _ = wait(self._running, return_when=FIRST_COMPLETED)
            for future in done:
                worker, task = self._running.pop(future)
                try:
                    result, error = future.result()
                except BrokenProcessPool:
                    self._pools[worker] = None
                    error = self._retry(task)
                    if error is None:
                        continue
                except BaseException:
                    self._drop()
                    raise
                if error is not None:
                    self._drop()
                    raise error
                self._start()
                yield task.name, result
            self._start()

    def close(self) -> None:
        """End the workers, whatever they do, and remove the shared values."""
        self._drop()
        mine = {pool for pool in self._pools if pool is not None}
        for pool in mine:
            pool.shutdown(wait=False, cancel_futures=True)
        self._pools = [None] * len(self._pools)
        shutil.rmtree(self._folder, ignore_errors=True)  # workers see that it is gone, and end

    def _retry(self, task: Call) -> SaenError | None:
        """Put a task that died back in front; an error if it died too often."""
        self._retries[task.name] = self._retries.get(task.name, 0) + 1
        if self._retries[task.name] <= MAX_RETRIES:
            self._tasks.appendleft(task)
            return None
        return WorkerError(
            f"{task.name}: its worker died {MAX_RETRIES + 1} times, as it does when memory runs "
            "out; use more and smaller shards (convert with shards=N), or fewer workers"
        )

    def _start(self) -> None:
        """Give tasks to the workers that have none."""
        busy = {worker for worker, _ in self._running.values()}
        for worker in range(len(self._pools)):
            if worker in busy or not self._tasks:
                continue
            task = self._tasks.popleft()
            pool = self._pools[worker]
            if pool is None:
                pool = self._pools[worker] = ProcessPoolExecutor(
                    1,
                    mp_context=multiprocessing.get_context("spawn"),
                    initializer=_start_worker,
                    initargs=(self._folder,),
                )
            try:
                self._running[pool.submit(_run_shared, task)] = (worker, task)
            except BrokenProcessPool:  # it died while it was idle
                self._pools[worker] = None
                self._tasks.appendleft(task)
                self._start()
                return

    def _drop(self) -> None:
        self._tasks.clear()
        self._running.clear()


_WATCH_SECONDS = 1.0


def _start_worker(folder: Path) -> None:
    """One thread of torch and of BLAS libraries per worker; it ends with the process it serves."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that it serves
    os.environ["OMP_NUM_THREADS"] = "1"  # before torch is imported
    threadpool_limits(1)
    claim_process()
    parent = multiprocessing.parent_process()

    def watch() -> None:
        while folder.exists() and parent is not None and parent.is_alive():
            parent.join(_WATCH_SECONDS)
        shutil.rmtree(folder, ignore_errors=True)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _run_shared(task: Call) -> tuple[Any, SaenError | None]:
    arguments = tuple(_load(a) if isinstance(a, _Shared) else a for a in task.arguments)
    return run_task(task._replace(arguments=arguments))


@lru_cache(maxsize=4)
def _load(shared: _Shared) -> Any:
    return container.load(shared.file)
