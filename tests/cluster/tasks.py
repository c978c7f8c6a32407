"""Tasks for executors: workers import them from here."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

from saen import Graphs
from saen.errors import FileError, InputError


def double(number: int) -> int:
    return 2 * number


def describe(graphs: Graphs, factor: int) -> tuple[int, bool]:
    return graphs.n_nodes * factor, bool(graphs.indices.flags.writeable)


def threads(_: int) -> int:
    import torch

    return torch.get_num_threads()


def die_once(marker: Path, number: int) -> int:
    """Dies with its worker, the first time."""
    try:
        marker.touch(exist_ok=False)
    except FileExistsError:
        return number
    os.kill(os.getpid(), signal.SIGKILL)
    return -1


def die(_: int) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def refuse(counter: Path, number: int) -> None:
    with counter.open("a") as file:
        file.write("x")
    raise InputError(f"graph {number} has no nodes")


def refuse_file(path: Path) -> None:
    raise FileError("damaged", path=path, line=7)


def exhaust(_: int) -> None:
    raise MemoryError


def fail(_: int) -> None:
    raise ZeroDivisionError("a bug")


def announce(folder: Path, seconds: float) -> None:
    """Says which process works, and works on."""
    (folder / str(os.getpid())).touch()
    time.sleep(seconds)


def die_after(marker: Path, function: Any, *arguments: Any) -> Any:
    """Dies with its worker after the work, the first time."""
    result = function(*arguments)
    die_once(marker, 0)
    return result


def lose_node(marker: Path, function: Any, *arguments: Any) -> Any:
    """Ends the Ray node that it runs on, with all that runs there, the first time.

    On the node of the driver it waits until the other is lost: two tasks are needed.
    """
    import ray

    lost, driver = marker.parent / "lost", marker.parent / "driver"
    if ray.get_runtime_context().get_node_id() != driver.read_text() and not lost.exists():
        lost.touch()
        os.kill(os.getppid(), signal.SIGKILL)  # the raylet
        os._exit(1)
    while not lost.exists():
        time.sleep(0.05)
    return function(*arguments)


def processes(home: Path) -> dict[int, str]:
    """Processes that were started with this home folder, and their commands."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if f"HOME={home}".encode() in (folder / "environ").read_bytes().split(b"\0"):
                found[int(folder.name)] = (folder / "cmdline").read_text().replace("\0", " ")
        except OSError:
            continue
    return found
