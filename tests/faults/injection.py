"""One fault at a time in the system calls of a command, in forked processes.

A process that runs with `shim.c` preloaded imports everything once, and forks for every command:
thousands of injections take minutes. See `campaign` for what is injected and what must hold.
"""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

SHIM = Path(__file__).with_name("shim.c")
TIME_LIMIT = 300
"""Seconds after which a command hangs."""

SPACE = ("open", "write", "fsync", "truncate", "mkdir", "sendfile", "copy_file_range", "link")
"""Calls that a full disk makes fail."""


@dataclass(frozen=True)
class Fault:
    """What happens at a call: an error, or a signal.

    - `calls`: the calls that it happens to, None for all;
    - `lasting`: all later calls that need space fail as well;
    - `torn`: half of a write is done before.
    """

    name: str
    error: int = 0
    signal: int = 0
    calls: tuple[str, ...] | None = None
    lasting: bool = False
    torn: bool = False


ERRORS = (
    Fault("disk full", errno.ENOSPC, calls=SPACE, lasting=True, torn=True),
    Fault("permission denied", errno.EACCES, calls=("open", "rename", "remove", "mkdir", "chmod")),
    Fault("I/O error", errno.EIO),
)
KILLS = (
    Fault("SIGKILL", signal=signal.SIGKILL),
    Fault("SIGKILL within a write", signal=signal.SIGKILL, calls=("write",), torn=True),
    Fault("SIGTERM", signal=signal.SIGTERM),
    Fault("SIGINT", signal=signal.SIGINT),
)


@dataclass(frozen=True)
class Outcome:
    """Exit code (negative: the signal that ended it), stderr, calls as `name path`, imports."""

    code: int
    stderr: str
    calls: list[str]
    modules: list[str]


def compiler() -> str | None:
    """A C compiler, where shared libraries can be preloaded."""
    return shutil.which("cc") if sys.platform == "linux" else None


def start(module: str, arguments: Sequence[str], build: Path) -> subprocess.CompletedProcess[str]:
    """Run a Python module with the shim preloaded, which is compiled into a folder."""
    library = build / "shim.so"
    cc = compiler()
    assert cc is not None, "there is no C compiler"
    command = [cc, "-shared", "-fPIC", "-O1", "-o", str(library), str(SHIM), "-ldl"]
    subprocess.run(command, check=True)
    environment = os.environ | {"LD_PRELOAD": str(library), "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        [sys.executable, "-m", module, *arguments], env=environment, text=True, check=False
    )


def run(
    arguments: Sequence[str], folder: Path, log: Path, fault: Fault | None = None, at: int = -1
) -> Outcome:
    """A command in a folder, in a forked process, with a fault at one of its calls."""
    calls, errors, imports = (log.with_suffix(f".{kind}") for kind in ("calls", "err", "imports"))
    imports.write_text("")
    process = os.fork()
    if process == 0:
        try:
            _run_here(arguments, folder, calls, errors, imports, fault, at)
        finally:
            os._exit(1)
    code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    lines = calls.read_text().splitlines()
    return Outcome(
        code,
        errors.read_text(),
        [line.partition(" ")[2] for line in lines],
        imports.read_text().split(),
    )


def _run_here(
    arguments: Sequence[str],
    folder: Path,
    calls: Path,
    errors: Path,
    imports: Path,
    fault: Fault | None,
    at: int,
) -> None:
    known = set(sys.modules)
    for stream, target in ((1, Path(os.devnull)), (2, errors)):
        file = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(file, stream)
    sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w")
    log = os.open(calls, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.chdir(folder)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.alarm(TIME_LIMIT)
    _stop_clocks()
    sys.argv = ["saen", *arguments]
    shim = ctypes.CDLL(None)
    fault = fault or Fault("none")
    shim.arm(
        os.fsencode(folder), ctypes.c_long(at), fault.error, fault.signal,
        fault.lasting, fault.torn, log,
    )  # fmt: skip
    from saen.cli import main

    code = 0
    try:
        main()
    except SystemExit as stopped:
        code = stopped.code if isinstance(stopped.code, int) else int(stopped.code is not None)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        code = 1
    if fault.name == "none":
        imports.write_text("\n".join(sorted(set(sys.modules) - known)))
    sys.stderr.flush()
    os._exit(code)


def _stop_clocks() -> None:
    """Equal runs write equal seconds."""
    for name, module in list(sys.modules.items()):
        if name.startswith("saen.") and "perf_counter" in vars(module):
            module.perf_counter = lambda: 0.0  # type: ignore[attr-defined]
