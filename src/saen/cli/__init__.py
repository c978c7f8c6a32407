"""The command line: `saen COMMAND`, one module per command."""

from __future__ import annotations

import sys
from typing import NoReturn

from saen.cli import compress, datasets, decompositions, draw, evaluate, reproduce
from saen.cli.app import app
from saen.errors import SaenError

app.command("datasets")(datasets.command)
app.command("decompositions")(decompositions.command)
app.command("compress")(compress.command)
app.command("draw")(draw.command)
app.command("evaluate")(evaluate.command)
app.command("reproduce")(reproduce.command)

__all__ = ["app", "main"]


def main() -> None:
    """Run the command line; a user's mistake is one line on stderr and exit code 2."""
    try:
        app()
    except (SaenError, OSError) as error:
        # An OSError is a file that may not be read or written, where no reader said more.
        print(f"saen: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        _interrupted()
    except SystemExit as stopped:
        if stopped.code == 130:  # what typer makes of Ctrl-C
            _interrupted()
        raise


def _interrupted() -> NoReturn:
    print("saen: interrupted", file=sys.stderr)
    sys.exit(130)
