"""The command line: `saen COMMAND`, one module per command."""

from __future__ import annotations

import sys

from saen.cli.app import app
from saen.cli.compress import compress
from saen.cli.datasets import datasets
from saen.cli.draw import draw
from saen.cli.evaluate import evaluate
from saen.errors import SaenError

app.command()(datasets)
app.command()(compress)
app.command()(draw)
app.command()(evaluate)

__all__ = ["app", "main"]


def main() -> None:
    """Run the command line; a user's mistake is one line on stderr and exit code 2."""
    try:
        app()
    except SaenError as error:
        print(f"saen: {error}", file=sys.stderr)
        sys.exit(2)
