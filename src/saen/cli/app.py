"""The application, and the options that stand before a command."""

from __future__ import annotations

from typing import Annotated

import typer

from saen._version import __version__

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Learn from graphs and other structured data: decompose, compress, train, explain.",
    epilog="Exit codes: 0 success, 2 invalid input (one line on stderr), 130 interrupted by "
    "Ctrl-C, 143 terminated. An interrupted command leaves no half-written file.",
)


def _version(show: bool) -> None:
    if show:
        print(f"saen {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Options that stand before the command."""
