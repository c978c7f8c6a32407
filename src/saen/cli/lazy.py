"""Commands that are imported when they are run: to list them, their names are enough."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import Any, ClassVar

import typer
from typer.core import TyperCommand, TyperGroup


class LazyGroup(TyperGroup):
    """A group whose `summaries` have the name of each command and its line in help and completion.

    A command is the function `command` of the module `saen.cli.NAME`, or its `app` with commands
    of its own.
    """

    summaries: ClassVar[Mapping[str, str]] = {}

    def __init__(self, **settings: Any) -> None:
        listed = {name: TyperCommand(name, help=line) for name, line in self.summaries.items()}
        super().__init__(**settings | {"commands": listed})

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that was typed, which is imported now, and its arguments."""
        name, listed, rest = super().resolve_command(ctx, args)
        return name, listed and load_command(listed.name or ""), rest


@cache
def load_command(name: str) -> Any:
    """The command of a module."""
    module = import_module(f"saen.cli.{name}")
    if hasattr(module, "app"):
        group = typer.main.get_group(module.app)
        group.name = name
        return group
    single = typer.Typer(add_completion=False)
    single.command(name)(module.command)
    return typer.main.get_command(single)
