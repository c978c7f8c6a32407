"""The command line: `saen COMMAND`, one module per command."""

from __future__ import annotations

import gc
import io
import os
import signal
import sys
import threading
import time
import warnings
from _thread import interrupt_main, start_new_thread
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn


def _interrupted() -> NoReturn:
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, lambda *_: None)  # programs such as timeout send it twice
    print("saen: interrupted", file=sys.stderr)
    _leave(130)


def _leave(code: int) -> NoReturn:
    """Exit; threads in the middle of a long computation are not waited for."""
    others = [each for each in threading.enumerate() if each is not threading.main_thread()]
    if not all(thread.daemon for thread in others):
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


@contextmanager
def _repeat_lost_ctrl_c() -> Iterator[None]:
    """Raise KeyboardInterrupt again where Python ignores it: in finalizers and weakref callbacks.

    The import system has such a callback for every module, so Ctrl-C during imports may meet it.
    """
    usual = sys.unraisablehook

    def repeat(lost: Any) -> None:
        if issubclass(lost.exc_type, KeyboardInterrupt):
            start_new_thread(interrupt_soon, ())  # here and now, it would be ignored again
        else:
            usual(lost)

    def interrupt_soon() -> None:
        time.sleep(0.01)
        interrupt_main()

    sys.unraisablehook = repeat
    try:
        yield
    finally:
        sys.unraisablehook = usual


try:
    with _repeat_lost_ctrl_c():  # these imports take a moment
        from saen._util import progress
        from saen.cli.app import app
        from saen.cli.output import say
        from saen.errors import SaenError
        from saen.network.memory import claim_process
except KeyboardInterrupt:
    _interrupted()

__all__ = ["app", "main"]

NO_MEMORY = (
    "can't start new thread",
    "can't allocate memory",
    "Cannot allocate memory",
    "failed to map segment",
)
"""What libraries say, in errors of other types than MemoryError, where there is none left."""
PATIENCE = 1.5
"""Seconds after Ctrl-C in which Python gets to act on it."""
SIGPIPE = 13
"""The signal that ends other programs whose reader has left; Windows has no name for it."""
_sigterm = threading.Event()


def main() -> None:
    """Run the command line; a user's mistake is one line on stderr and exit code 2."""
    _check_streams()
    signal.signal(signal.SIGTERM, _terminated)
    # Imports make hundreds of thousands of objects that stay: collecting garbage among them again
    # and again takes some tenths of a second.
    gc.set_threshold(100_000, 50, 50)
    # torch reads this once, when it allocates its first tensor: huge pages for large tensors.
    os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")
    claim_process()
    warnings.showwarning = _warning_printer()
    progress.notify = say
    # `check_targets` says it once, with the option to use.
    warnings.filterwarnings("ignore", "The number of unique classes", UserWarning)
    try:
        with _watch_for_ctrl_c(), _repeat_lost_ctrl_c():
            app()
    except (SaenError, OSError) as error:
        # An OSError is a file that may not be read or written, where no reader said more.
        say(str(error))
        sys.exit(2)
    except (MemoryError, RuntimeError, ImportError) as error:
        if not isinstance(error, MemoryError) and not any(map(str(error).__contains__, NO_MEMORY)):
            raise
        say(f"not enough memory: {' '.join(str(error).split()) or 'no more is given'}"[:300])
        _leave(2)
    except KeyboardInterrupt:
        _interrupted()
    except SystemExit as stopped:
        if stopped.code == 130:  # what typer makes of Ctrl-C
            _interrupted()
        if _sigterm.is_set():  # Ray makes an exit with 1 of it
            _leave(128 + signal.SIGTERM)
        if isinstance(stopped.__context__, BrokenPipeError):  # for which typer exits with 1
            _leave(128 + SIGPIPE)
        raise


def _check_streams() -> None:
    """Streams that take any text: what their encoding lacks is written as in Python."""
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115, PTH123 - open as long as Python runs
    if sys.stdout is None:  # closed, as by >&-
        say("standard output is closed")
        sys.exit(2)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


@contextmanager
def _watch_for_ctrl_c() -> Iterator[None]:
    """End the process if a single long computation keeps Python from seeing Ctrl-C.

    Python raises KeyboardInterrupt between two of its own instructions; numpy and scipy may work
    for minutes in one. Half-written files have names that the next run clears away.
    """
    if threading.current_thread() is not threading.main_thread() or os.name == "nt":
        yield
        return
    seen = threading.Event()

    def handle(*_: Any) -> NoReturn:
        seen.set()
        raise KeyboardInterrupt

    def watch() -> None:
        while received := os.read(reader, 1):
            if received[0] == signal.SIGINT and not seen.wait(PATIENCE):
                print("saen: interrupted", file=sys.stderr, flush=True)
                os._exit(130)
        os.close(reader)

    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    threading.Thread(target=watch, daemon=True).start()
    usual = signal.signal(signal.SIGINT, handle)
    before = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)  # written to by the system
    try:
        yield
    except Exception:
        if seen.is_set():  # some libraries make an ImportError of it
            raise KeyboardInterrupt from None
        raise
    finally:
        signal.set_wakeup_fd(before)
        signal.signal(signal.SIGINT, usual)
        os.close(writer)


def _warning_printer() -> Callable[..., None]:
    """Prints every warning once: a hold-out and the training after it often have the same."""
    shown: set[str] = set()

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        if str(message) not in shown:
            shown.add(str(message))
            say(f"warning: {message}")

    return show


def _terminated(*_: Any) -> NoReturn:
    """Leave by an exception, so that what is half-written is cleared away."""
    _sigterm.set()
    sys.exit(128 + signal.SIGTERM)
