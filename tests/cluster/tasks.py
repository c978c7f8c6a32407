"""Tasks for executors: workers import them from here."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np

from saen.errors import FileError, InputError


def double(number: int) -> int:
    return 2 * number


def describe(array: np.ndarray[Any, Any], factor: int) -> tuple[float, bool]:
    return float(array.sum()) * factor, bool(array.flags.writeable)


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


def sleep_and_return(number: int) -> int:
    time.sleep(0.05 * (3 - number))
    return number


def die_before(marker: Path, function: Any, *arguments: Any) -> Any:
    """Dies with its worker before the work, the first time."""
    die_once(marker, 0)
    return function(*arguments)


def die_after(marker: Path, function: Any, *arguments: Any) -> Any:
    """Dies with its worker after the work, the first time."""
    result = function(*arguments)
    die_once(marker, 0)
    return result
