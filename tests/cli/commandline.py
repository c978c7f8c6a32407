"""Commands as users type them, run in this process."""

import json
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from saen.cli import app, main

runner = CliRunner()


def invoke(*arguments: Any) -> Result:
    """A command that must succeed."""
    result = runner.invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result


def run(*arguments: Any) -> dict[str, Any]:
    """What a command says as JSON."""
    return json.loads(invoke(*arguments, "--json").stdout)


def fails(monkeypatch: pytest.MonkeyPatch, capsys: Any, *arguments: Any) -> str:
    """What a mistake prints: one line on stderr, with exit code 2 and without a traceback."""
    monkeypatch.setattr("sys.argv", ["saen", *map(str, arguments)])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 2
    captured = capsys.readouterr()
    assert "Traceback" not in captured.err
    *_, last = captured.err.splitlines()
    assert last.startswith("saen: ")
    return last.removeprefix("saen: ")
