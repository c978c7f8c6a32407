"""Commands as users type them, run in this process."""

import io
import json
from contextlib import redirect_stderr, redirect_stdout
from typing import Any
from unittest.mock import patch

import pytest
from click.testing import Result
from typer.testing import CliRunner

from saen.cli import app, main

runner = CliRunner()

SMALL: dict[str, Any] = {"epochs": 3, "n_models": 1, "device": "cpu", "hidden": [[4], [5, 4], [6]]}
"""A model that is quick to train."""


def invoke(*arguments: Any, code: int = 0, input: str | None = None) -> Result:
    """A command that must end with this exit code."""
    typed = [str(argument) for argument in arguments]
    result = runner.invoke(app, typed, input=input, catch_exceptions=False)
    assert result.exit_code == code, result.output
    return result


def run(*arguments: Any, code: int = 0, input: str | None = None) -> dict[str, Any]:
    """What a command says as JSON."""
    return json.loads(invoke(*arguments, "--json", code=code, input=input).stdout)


def fails(*arguments: Any) -> str:
    """What a mistake prints last: a message on stderr, with exit code 2 and no traceback."""
    errors = io.StringIO()
    with (
        patch("sys.argv", ["saen", *map(str, arguments)]),
        redirect_stdout(io.StringIO()),
        redirect_stderr(errors),
        pytest.raises(SystemExit) as stopped,
    ):
        main()
    assert stopped.value.code == 2
    assert "Traceback" not in errors.getvalue()
    _, saen, message = f"\n{errors.getvalue()}".rpartition("\nsaen: ")
    assert saen
    return message.removesuffix("\n")
