"""What all commands have in common: names of options, examples, completion."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import typer

from saen.cli import app
from saen.cli.panels import PANELS
from tests.cli.commandline import invoke

# The same thing has the same name everywhere.
SHORT = {"--out": "-o", "--decomposition": "-d", "--graph": "-g"}


def commands(group: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name in group.commands:
        _, command, _ = group.resolve_command(typer.Context(group), [name])
        if hasattr(command, "commands"):
            yield from commands(command, (*path, name))
        else:
            yield (*path, name), command


COMMANDS = dict(commands(typer.main.get_command(app)))


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_every_command_shows_an_example_of_itself(path: tuple[str, ...]) -> None:
    name = () if path == ("decompositions",) else path
    assert f"Example: saen {' '.join(name)}" in COMMANDS[path].help
    assert invoke(*path, "--help").exit_code == 0


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_options_have_the_same_names_everywhere_and_say_what_they_do(
    path: tuple[str, ...],
) -> None:
    options = {option.opts[0]: option for option in COMMANDS[path].params if option.opts}
    spellings = {
        name for option in options.values() for name in (*option.opts, *option.secondary_opts)
    }
    assert "--json" in options or path in [("demo",), ("serve",)]  # a walk, and a server
    for name, option in options.items():
        if name.startswith("--"):
            assert option.help, f"{' '.join(path)} {name}"
            assert len(option.opts) == 1 or name in SHORT
        if name in SHORT:
            assert SHORT[name] in option.opts, f"{' '.join(path)} {name}"
    assert not {"--output", "--n-models", "--random-state", "--overwrite", "--labels"} & spellings


NO_DEFAULT = {
    "--cluster-timeout",
    "--keep",
    "--nodes-file",
    "--out",
    "--partitions",
    "--plot",
    "--predictions",
    "--report",
    "--shards",
    "--training",
    "--vectors",
    "--format",
    "--as",
    "--splits",
}
"""Options that do nothing unless they are given."""


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_help_shows_the_default_of_every_option(
    path: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "400")
    lines = invoke(*path, "--help").stdout.splitlines()
    for option in COMMANDS[path].params:
        name = option.opts[0]
        if not name.startswith("--") or option.required or getattr(option, "is_flag", False):
            continue
        if option.default is None and not isinstance(option.show_default, str):
            assert name in NO_DEFAULT, name
            continue
        [line] = [line for line in lines if line.lstrip("│ *").startswith(f"{name} ")]
        default = option.show_default if isinstance(option.show_default, str) else option.default
        assert "[default: " in line
        assert str(default) in line.partition("[default: ")[2], name


def test_options_of_train_and_evaluate_are_in_panels() -> None:
    for path in (("train",), ("evaluate",)):
        command = COMMANDS[path]
        shown = command.get_params(typer.Context(command))
        panels = [each.rich_help_panel for each in shown if each.param_type_name == "option"]
        assert list(dict.fromkeys(panels)) == list(PANELS)


def test_exit_codes_are_in_the_help() -> None:
    told = " ".join(invoke("--help").stdout.split())
    for words in ("0 success", "2 invalid input", "130 interrupted", "143 terminated"):
        assert words in told


@pytest.mark.slow
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_can_complete_commands_and_options(shell: str) -> None:
    def complete(**environment: str) -> str:
        code = "from saen.cli import app; app(prog_name='saen')"
        done = subprocess.run(
            [sys.executable, "-c", code],
            env=os.environ | environment,
            capture_output=True,
            text=True,
            check=False,
        )
        return done.stdout

    script = complete(_SAEN_COMPLETE=f"source_{shell}")
    assert "_SAEN_COMPLETE" in script
    asked = {
        "bash": {"COMP_WORDS": "saen tr", "COMP_CWORD": "1"},
        "zsh": {"_TYPER_COMPLETE_ARGS": "saen tr"},
        "fish": {"_TYPER_COMPLETE_ARGS": "saen tr", "_TYPER_COMPLETE_FISH_ACTION": "get-args"},
    }[shell]
    assert "train" in complete(_SAEN_COMPLETE=f"complete_{shell}", **asked)
