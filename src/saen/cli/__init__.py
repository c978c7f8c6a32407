"""The command line: `saen COMMAND`, one module per command."""

from __future__ import annotations

import os
import signal
import sys
import warnings
from typing import Any, NoReturn

from saen.cli.app import app
from saen.cli.output import say
from saen.errors import SaenError

__all__ = ["app", "main"]


def main() -> None:
    """Run the command line; a user's mistake is one line on stderr and exit code 2."""
    signal.signal(signal.SIGTERM, _terminated)
    # torch reads this once, when it allocates its first tensor: huge pages for large tensors.
    os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")
    warnings.showwarning = _print_warning
    try:
        app()
    except (SaenError, OSError) as error:
        # An OSError is a file that may not be read or written, where no reader said more.
        say(str(error))
        sys.exit(2)
    except KeyboardInterrupt:
        _interrupted()
    except SystemExit as stopped:
        if stopped.code == 130:  # what typer makes of Ctrl-C
            _interrupted()
        raise


def _print_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    print(f"saen: warning: {message}", file=sys.stderr)


def _terminated(*_: Any) -> NoReturn:
    """Leave by an exception, so that what is half-written is cleared away."""
    sys.exit(128 + signal.SIGTERM)


def _interrupted() -> NoReturn:
    print("saen: interrupted", file=sys.stderr)
    sys.exit(130)
