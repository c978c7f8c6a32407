"""Commands as users type them, run in this process."""

import json
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from saen.cli import app, main

runner = CliRunner()


def invoke(*arguments: Any, code: int = 0) -> Result:
    """A command that must end with this exit code."""
    result = runner.invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)
    assert result.exit_code == code, result.output
    return result


def run(*arguments: Any, code: int = 0) -> dict[str, Any]:
    """What a command says as JSON."""
    return json.loads(invoke(*arguments, "--json", code=code).stdout)


def fails(monkeypatch: pytest.MonkeyPatch, capsys: Any, *arguments: Any) -> str:
    """What a mistake prints last: a message on stderr, with exit code 2 and no traceback."""
    monkeypatch.setattr("sys.argv", ["saen", *map(str, arguments)])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 2
    captured = capsys.readouterr()
    assert "Traceback" not in captured.err
    _, saen, message = f"\n{captured.err}".rpartition("\nsaen: ")
    assert saen
    return message.removesuffix("\n")
