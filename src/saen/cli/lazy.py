"""Commands that are imported when they are run, and modules that a command does without."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any, ClassVar

import typer
from typer.core import TyperCommand, TyperGroup

from saen.cli.panels import Command, without_types


class LazyGroup(TyperGroup):
    """A group whose `panels` hold the name of each command and its line in help and completion.

    A command is the function `command` of the module `saen.cli.NAME`, or its `app` with commands
    of its own.
    """

    panels: ClassVar[Mapping[str, Mapping[str, str]]] = {}

    def __init__(self, **settings: Any) -> None:
        listed = {
            name: TyperCommand(name, help=line, rich_help_panel=panel)
            for panel, commands in self.panels.items()
            for name, line in commands.items()
        }
        super().__init__(**settings | {"commands": listed})

    def get_params(self, ctx: Any) -> list[Any]:
        """The options before a command."""
        return without_types(super().get_params(ctx))

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
    single.command(name, cls=Command)(module.command)
    return typer.main.get_command(single)


class _StandIn(ModuleType):
    """In place of a module that another one imports, and seldom uses."""

    def __getattr__(self, attribute: str) -> Any:
        """Import the module after all; `inspect` asks every module for its file."""
        if attribute == "__file__":
            raise AttributeError(attribute)
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(import_module(self.__name__), attribute)


def import_without(module: str, *seldom_used: str) -> None:
    """Import a module, but not yet those that it imports for a few of its functions.

    These are imported when something in them is used, by whomever.

    >>> import_without("textwrap", "re")
    """
    stand_ins = {name: _StandIn(name) for name in seldom_used if name not in sys.modules}
    sys.modules.update(stand_ins)
    try:
        import_module(module)
    finally:
        for name, stand_in in stand_ins.items():
            if sys.modules.get(name) is stand_in:
                del sys.modules[name]
