"""Tasks on a Ray cluster: Ray core tasks, and nothing else of Ray."""

from __future__ import annotations

import os
import secrets
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

from saen.cluster.executors import MAX_RETRIES, Task, out_of_memory, run_task
from saen.errors import MissingExtraError, SaenError, WorkerError
from saen.jobs.store import versions

_OBJECT_STORE_BYTES = 1 << 30
"""Of a cluster that is started here: what does not fit is spilled to disk."""


class RayExecutor:
    """Tasks on Ray: on the cluster this process is connected to, a running one, or a new one.

    - `address`: `ray://HOST:PORT`, or None for the running cluster (`$RAY_ADDRESS`), or else a new
      one on this machine, which ends with the executor;
    - `workers`: start a new one with this many workers.

    The versions of saen, Python and the libraries are compared on all machines; `WorkerError` where
    they differ.
    """

    def __init__(self, address: str | None = None, workers: int | None = None) -> None:
        address = address or os.environ.get("RAY_ADDRESS")
        start = workers is not None or address is None
        ray = self._ray = _import_ray(start=start)
        self._owned = not ray.is_initialized()
        self._folder: str | None = None
        if self._owned and start:
            self._folder = tempfile.mkdtemp(prefix="saen-ray-", dir=_short_folder())
            _start_here(ray, workers, self._folder)
        elif self._owned:
            try:
                ray.init(address, log_to_driver=False, logging_level="ERROR")
            except (ConnectionError, RuntimeError, ValueError) as error:
                reason = str(error).strip().partition("\n")[0]
                raise WorkerError(f"no Ray cluster at {address} ({reason})") from None
        self._run = ray.remote(num_cpus=1, max_retries=MAX_RETRIES)(_run_parts)
        self._running: dict[Any, Task] = {}
        try:
            self._compare_versions()
        except BaseException:
            self.close()
            raise

    def put(self, value: Any) -> Any:
        """Put a value into the object store."""
        return self._ray.put(value)

    def submit(self, name: str, function: Callable[..., Any], *arguments: Any) -> None:
        """Add a task."""
        reference = self._run.options(name=name).remote(name, function, *arguments)
        self._running[reference] = Task(name, function, ())

    def completed(self) -> Iterator[tuple[str, Any]]:
        """Results as they come."""
        ray = self._ray
        while self._running:
            [reference], _ = ray.wait(list(self._running), num_returns=1)
            task = self._running.pop(reference)
            try:
                result, error = ray.get(reference)
            except ray.exceptions.OutOfMemoryError:
                error = out_of_memory(task.name)
            except ray.exceptions.WorkerCrashedError:
                error = WorkerError(
                    f"{task.name}: its worker died {MAX_RETRIES + 1} times, as it does when memory "
                    "runs out; use more and smaller shards (saen convert --shards)"
                )
            except ray.exceptions.RayTaskError as failed:
                self._drop()
                raise failed.as_instanceof_cause() from None
            except ray.exceptions.RaySystemError as failed:
                error = WorkerError(f"{task.name}: Ray failed ({failed})")
            if error is not None:
                self._drop()
                raise error
            yield task.name, result

    def close(self) -> None:
        """Drop what still runs, and leave the cluster as it was found."""
        if self._ray.is_initialized():
            self._drop()
            if self._owned:
                self._ray.shutdown()
            if self._folder is not None:
                shutil.rmtree(self._folder, ignore_errors=True)

    def _drop(self) -> None:
        for reference in self._running:
            self._ray.cancel(reference, force=True)
        self._running.clear()

    def _compare_versions(self) -> None:
        ray = self._ray
        here = versions()
        probe = ray.remote(num_cpus=0, max_retries=MAX_RETRIES)(_worker_versions)
        strategy = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy
        nodes = [node for node in ray.nodes() if node["Alive"]]
        found = [
            probe.options(scheduling_strategy=strategy(node["NodeID"], soft=False)).remote()
            for node in nodes
        ]
        for node, reference in zip(nodes, found, strict=True):
            try:
                there = ray.get(reference)
            except ray.exceptions.RayError as error:
                raise WorkerError(
                    f"{node['NodeManagerAddress']}: saen cannot be imported there ({error})"
                ) from None
            for library, version in here.items():
                if there[library] != version:
                    raise WorkerError(
                        f"{node['NodeManagerAddress']} has {library} {there[library]}, but here is "
                        f"{version}: install the same versions on all machines"
                    )


def _worker_versions() -> dict[str, str]:
    return versions()


def _run_parts(
    name: str, function: Callable[..., Any], *arguments: Any
) -> tuple[Any, SaenError | None]:
    return run_task(Task(name, function, arguments))


def _import_ray(*, start: bool) -> Any:
    # Ray reads all of these when it is imported.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is reported to its makers
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    if start and "ray" not in sys.modules:
        # The services of a cluster that is started here listen on the loopback interface only, and
        # the token that protects them is not written to the home folder.
        os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
        os.environ.setdefault("RAY_AUTH_MODE", "token")
        os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
    try:
        import ray
        import ray.util.scheduling_strategies
    except ImportError:
        raise MissingExtraError("Ray", extra="ray") from None
    return ray


def _short_folder() -> str | None:
    """Where to make Ray's folder: the path of a socket has about a hundred characters at most."""
    return None if len(tempfile.gettempdir()) < 24 else "/tmp"


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
