"""The command line: `saen COMMAND`, one module per command."""

from __future__ import annotations

import os
import signal
import sys
from typing import Any, NoReturn

from saen.cli import (
    compress,
    convert,
    datasets,
    decompositions,
    draw,
    embed,
    evaluate,
    explain,
    inspect,
    plot,
    predict,
    reproduce,
    train,
    validate,
)
from saen.cli.app import app
from saen.cli.output import say
from saen.errors import SaenError

app.command("datasets")(datasets.command)
app.command("decompositions")(decompositions.command)
app.command("validate")(validate.command)
app.command("convert")(convert.command)
app.command("compress")(compress.command)
app.command("draw")(draw.command)
app.command("evaluate")(evaluate.command)
app.command("train")(train.command)
app.command("predict")(predict.command)
app.command("embed")(embed.command)
app.add_typer(plot.app, name="plot")
app.command("inspect")(inspect.command)
app.command("explain")(explain.command)
app.command("reproduce")(reproduce.command)

__all__ = ["app", "main"]


def main() -> None:
    """Run the command line; a user's mistake is one line on stderr and exit code 2."""
    signal.signal(signal.SIGTERM, _terminated)
    # torch reads this once, when it allocates its first tensor: huge pages for large tensors.
    os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")
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


def _terminated(*_: Any) -> NoReturn:
    """Leave by an exception, so that what is half-written is cleared away."""
    sys.exit(128 + signal.SIGTERM)


def _interrupted() -> NoReturn:
    print("saen: interrupted", file=sys.stderr)
    sys.exit(130)
