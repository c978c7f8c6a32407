"""Measurements, each in a fresh process: caches are cold, and the peak of the resident memory is
that of the measurement alone.
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from math import inf
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, TypeVar

ROOT = Path(__file__).resolve().parents[1]
TIMEOUT_SECONDS = 1800

_deadline = inf

T = TypeVar("T")


class MeasurementError(Exception):
    """The process of a measurement ended without a result."""


def stop_after(seconds: float) -> None:
    """Let measurements fail that would end later than that from now on."""
    global _deadline
    _deadline = perf_counter() + seconds


class Stopwatch:
    """Seconds per step, in the order of the steps."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def __call__(self, step: str, function: Callable[..., T], *arguments: Any) -> T:
        start = perf_counter()
        result = function(*arguments)
        self.seconds[step] = perf_counter() - start
        return result


def measure(
    function: Callable[..., dict[str, Any]],
    *,
    environment: Mapping[str, str] | None = None,
    limit: int = TIMEOUT_SECONDS,
    **arguments: Any,
) -> dict[str, Any]:
    """What `function(**arguments)` returns in a process of its own, and what that process used.

    Arguments and result travel as JSON. The result holds `seconds` by step, to which `total` is
    added here, with `cpu_seconds` (of all threads: much less than the total means a busy machine)
    and `peak_memory_bytes`. Raises `MeasurementError` if it fails or takes more than `limit`
    seconds, or if the time of `stop_after` is over.
    """
    left = min(float(limit), _deadline - perf_counter())
    if left <= 0:
        raise MeasurementError("no time was left")
    command = [sys.executable, "-m", "benchmarks.measure", function.__module__, function.__name__]
    try:
        done = subprocess.run(
            [*command, json.dumps(arguments)],
            capture_output=True,
            text=True,
            cwd=ROOT,
            # Huge pages for large tensors, as in the command line.
            env={"THP_MEM_ALLOC_ENABLE": "1", **os.environ, **(environment or {})},
            timeout=left,
        )
    except subprocess.TimeoutExpired as error:
        raise MeasurementError(f"took more than {left:.0f} s") from error
    if done.returncode:
        reason = done.stderr.strip().splitlines() or [f"ended with status {done.returncode}"]
        raise MeasurementError(reason[-1])
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    result["seconds"]["total"] = sum(result["seconds"].values())
    say(f"  {function.__name__} {_described(arguments)}: {result['seconds']['total']:.2f} s")
    return result


def measured(
    cases: Mapping[str, Callable[[], dict[str, Any]]], skipped: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """The results of the cases; those that fail are added to `skipped` with the reason."""
    rows = []
    for name, case in cases.items():
        try:
            rows.append(case())
        except MeasurementError as error:
            skipped.append({"what": name, "reason": f"failed: {error}"})
    return rows


def typical(runs: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """One result for several runs: median seconds of every step, largest memory.

    The median of the totals need not be the sum of the medians.
    """
    results = list(runs)
    steps = results[0]["seconds"]
    return {
        **results[0],
        "seconds": {
            step: statistics.median(run["seconds"][step] for run in results) for step in steps
        },
        "cpu_seconds": statistics.median(run["cpu_seconds"] for run in results),
        "peak_memory_bytes": max(run["peak_memory_bytes"] for run in results),
        "runs": len(results),
    }


def peak_memory() -> int:
    """The largest resident size of this process so far, in bytes."""
    try:
        # The maximum that getrusage gives on Linux survives exec: it may be that of the parent.
        status = Path("/proc/self/status").read_text()
        return int(status.partition("VmHWM:")[2].split(maxsplit=1)[0]) * 1024
    except (OSError, IndexError):
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024


def say(line: str) -> None:
    """Print progress to stderr."""
    print(line, file=sys.stderr, flush=True)


def _described(arguments: Mapping[str, Any]) -> str:
    return " ".join(
        Path(value).name if isinstance(value, str) else str(value) for value in arguments.values()
    )


def _main(module: str, name: str, arguments: str) -> None:
    function = getattr(importlib.import_module(module), name)
    start = process_time()
    result = function(**json.loads(arguments))
    used = {"cpu_seconds": process_time() - start, "peak_memory_bytes": peak_memory()}
    print("\n" + json.dumps({**result, **used}))


if __name__ == "__main__":
    _main(*sys.argv[1:])
