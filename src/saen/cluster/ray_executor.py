"""Tasks on a Ray cluster: Ray core tasks, and nothing else of Ray."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import signal
import socket
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import Any

from saen._util.atomic import temporary_folder
from saen._util.remote import is_remote
from saen.cluster.executors import MAX_RETRIES, TIMEOUT, Call, out_of_memory, run_task
from saen.errors import FileError, MissingExtraError, SaenError, WorkerError
from saen.jobs.store import versions

_OBJECT_STORE_BYTES = 1 << 30
"""Of a cluster that is started here: what does not fit is spilled to disk."""
_CONNECT_SECONDS = 10.0
"""A head that has not answered by then is not there."""
_PATIENCE = 3.0
"""Seconds without a result after which the workers are counted."""


class RayExecutor:
    """Tasks on Ray: on the cluster this process is connected to, a running one, or a new one.

    - `address`: `ray://HOST:PORT`, or None for the running cluster (`$RAY_ADDRESS`), or else a new
      one on this machine, which ends with the executor;
    - `workers`: start a new one with this many workers;
    - `timeout`: seconds to wait while no machine of the cluster has a CPU, then `WorkerError`.

    The connection is made with the first task. Every task compares the versions of saen, Python and
    the libraries: a machine where they differ gets no more tasks, and `WorkerError` is raised where
    no other machine is left.
    """

    def __init__(
        self, address: str | None = None, workers: int | None = None, timeout: float = TIMEOUT
    ) -> None:
        self._address = None if workers else address or os.environ.get("RAY_ADDRESS")
        self._workers, self._timeout = workers, timeout
        self._ray = _import_ray(start=self._address is None)
        self._owned = False
        self._folder: Path | None = None
        self._submit: Any = None
        self._running: dict[Any, Call] = {}
        self._refused: dict[str, str] = {}  # what is wrong with a node, by its id

    def put(self, value: Any) -> Any:
        """Put a value into the object store."""
        self._connect()
        return self._ray.put(value)

    def submit(self, name: str, function: Callable[..., Any], *arguments: Any) -> None:
        """Add a task."""
        self._connect()
        self._start(Call(name, function, arguments))

    def completed(self) -> Iterator[tuple[str, Any]]:
        """Results as they come."""
        ray = self._ray
        while self._running:
            reference = self._wait()
            task = self._running.pop(reference)
            result: Any = None
            error: SaenError | None
            try:
                refused, unseen, result, error = ray.get(reference)
            except ray.exceptions.OutOfMemoryError:
                error = out_of_memory(task.name)
            except ray.exceptions.WorkerCrashedError:
                error = WorkerError(
                    f"{task.name}: its worker died {MAX_RETRIES + 1} times, as it does when memory "
                    "runs out; use more and smaller shards (convert with shards=N)"
                )
            except ray.exceptions.RayTaskError as failed:
                self._running.clear()
                raise failed.as_instanceof_cause() from None
            except ray.exceptions.RayError as failed:
                error = WorkerError(f"{task.name}: Ray failed ({_first_line(failed)})")
            else:
                if refused is not None:
                    self._refuse(*refused)
                    self._start(task)
                    continue
                if unseen is not None and unseen[1].exists():
                    error = WorkerError(
                        f"{task.name}: {unseen[0]} has no {unseen[1]}: all machines must see it "
                        "under this path"
                    )
            if error is not None:
                self._running.clear()
                raise error
            yield task.name, result

    def close(self) -> None:
        """Leave the cluster as it was found; what still runs ends with the connection.

        Nothing is cancelled: a result that arrives at that moment makes Ray abort the process. On a
        connection that was there before, tasks that have been submitted run to their end.
        """
        if self._owned and self._ray.is_initialized():
            with _own_sigterm():
                self._ray.shutdown()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _connect(self) -> None:
        """Connect to the cluster, unless that is done."""
        if self._submit is not None:
            return
        ray = self._ray
        self._owned = not ray.is_initialized()
        if self._owned:
            with _own_sigterm():
                if self._address is None:
                    self._folder = temporary_folder(_short_folder())
                    _start_here(ray, self._workers, str(self._folder))
                else:
                    self._join(self._address)
        self._submit = ray.remote(num_cpus=1, max_retries=MAX_RETRIES)(_compared_first())

    def _join(self, address: str) -> None:
        try:
            if match := re.fullmatch(r"(?:ray://)?\[?([^/\s]+?)\]?:([0-9]+)", address):
                _check_answers(match[1], int(match[2]))
            self._ray.init(address, log_to_driver=False, logging_level="ERROR")
        except (OSError, RuntimeError, ValueError) as error:
            raise WorkerError(f"no Ray cluster at {address} ({_first_line(error)})") from None

    def _start(self, task: Call) -> None:
        ray, shared = self._ray, dict[int, Any]()
        for place, argument in enumerate(task.arguments):
            if isinstance(argument, ray.ObjectRef):
                shared[place] = argument
        plain = [None if n in shared else a for n, a in enumerate(task.arguments)]
        # As bytes: on a machine with another saen, versions must be compared before it is read.
        content = ray.cloudpickle.dumps(task._replace(arguments=plain))
        elsewhere = {"ray.io/node-id": f"!in({','.join(self._refused)})"} if self._refused else None
        run = self._submit.options(name=task.name, label_selector=elsewhere)
        self._running[run.remote(versions(), content, shared)] = task

    def _wait(self) -> Any:
        """The next task that has ended; `WorkerError` if there are no workers for too long."""
        start, said = monotonic(), False
        while True:
            ready, _ = self._ray.wait(list(self._running), num_returns=1, timeout=_PATIENCE)
            if ready:
                return ready[0]
            if self._has_workers():
                start, said = monotonic(), False
            elif monotonic() - start >= self._timeout:
                self._running.clear()
                raise WorkerError(
                    f"still 0 CPUs in the cluster after {self._timeout:g} seconds: start workers, "
                    "or wait longer with timeout=…"
                )
            elif not said:
                said = True
                warnings.warn(
                    "waiting for workers: 0 CPUs in the cluster (for at most "
                    f"{self._timeout:g} seconds, see timeout=…)",
                    stacklevel=2,
                )

    def _has_workers(self) -> bool:
        return any(
            node["Alive"] and node["NodeID"] not in self._refused and node["Resources"].get("CPU")
            for node in self._ray.nodes()
        )

    def _refuse(self, node: str, reason: str) -> None:
        """Give no more tasks to a machine."""
        if node not in self._refused:
            self._refused[node] = reason
            if not self._has_workers():
                self._running.clear()
                raise WorkerError(f"{reason}: install the same versions on all machines")
            warnings.warn(f"{reason}: this machine gets no tasks", stacklevel=2)


def _compared_first() -> Callable[..., Any]:
    """What runs on workers; a function in a function, which travels whole, without saen."""

    def run(here: dict[str, str], content: bytes, shared: dict[int, Any]) -> Any:
        import ray

        context, address = ray.get_runtime_context(), ray.util.get_node_ip_address()  # type: ignore[no-untyped-call]
        try:
            from saen.jobs.store import versions

            there = versions()
            library = next((key for key in here if there.get(key) != here[key]), None)
            reason = library and (
                f"{address} has {library} {there.get(library)}, but here is {here[library]}"
            )
        except Exception as failed:  # whatever another version raises
            reason = f"saen cannot be imported on {address} ({failed})"
        if reason is not None:
            return (context.get_node_id(), reason), None, None, None
        from saen.cluster.ray_executor import run_and_look

        task, values = ray.cloudpickle.loads(content), ray.get([*shared.values()])
        for place, value in zip(shared, values, strict=True):
            task.arguments[place] = value
        missing, result, failed_with = run_and_look(task)
        return None, missing and (address, missing), result, failed_with

    return run


def run_and_look(task: Call) -> tuple[Path | None, Any, SaenError | None]:
    """Run a task; also the outermost folder, or the file, that it did not find, if that is all."""
    result, error = run_task(task)
    if not isinstance(error, FileError) or is_remote(error.path):
        return None, result, error
    places = [*reversed(error.path.parents), error.path]
    return next((place for place in places if not place.exists()), None), result, error


def _check_answers(host: str, port: int) -> None:
    """Raise unless there is a gRPC server: Ray itself tries for minutes, and says a hundred lines.

    It begins with its settings (HTTP/2 frames of type 4) as soon as it has got those of a client.
    """
    with socket.create_connection((host, port), _CONNECT_SECONDS) as probe:
        if os.environ.get("RAY_USE_TLS", "0") == "0":
            probe.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0")
            if probe.recv(4)[3:] != b"\4":
                raise ConnectionError("something else answers there")


def _first_line(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0]


@contextmanager
def _own_sigterm() -> Iterator[None]:
    """Keep what this process does on SIGTERM: Ray would print a stack trace, and exit with 1."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    except SystemExit:  # of its own handlers, with other codes
        sys.exit(128 + signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, before)


def _import_ray(*, start: bool) -> Any:
    # Ray reads all of these when it is imported.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is reported to its makers
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    os.environ.setdefault("RAY_DISABLE_FAILURE_SIGNAL_HANDLER", "1")  # stack traces on SIGTERM
    if start and "ray" not in sys.modules:
        # The services of a cluster that is started here listen on the loopback interface only, and
        # the token that protects them is not written to the home folder.
        os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
        os.environ.setdefault("RAY_AUTH_MODE", "token")
        os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
    try:
        import ray
    except ImportError:
        raise MissingExtraError("Ray", extra="ray") from None
    return ray


def _short_folder() -> str | None:
    """Where to make Ray's folder: the path of a socket has about a hundred characters at most."""
    return None if len(tempfile.gettempdir()) < 12 else "/tmp"


def _start_here(ray: Any, workers: int | None, folder: str) -> None:
    """Start Ray on this machine, without dashboard and messages."""
    ray.init(
        "local",
        num_cpus=workers,
        include_dashboard=False,
        log_to_driver=False,
        configure_logging=False,
        logging_level="ERROR",
        object_store_memory=_OBJECT_STORE_BYTES,
        _temp_dir=folder,
    )
