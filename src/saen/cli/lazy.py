"""Commands that are imported when they are looked up: to list them, their names are enough."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from typing import Any, ClassVar

import typer
from typer.core import TyperCommand, TyperGroup


class LazyCommands(Mapping[str, Any]):
    """Commands by name, each from the module `saen.cli.NAME`.

    Such a module has a function `command`, or an `app` with commands of its own.
    """

    def __init__(self, names: Mapping[str, str]) -> None:
        self.names = names

    def __getitem__(self, name: str) -> Any:
        """The command, which is imported now."""
        if name not in self.names:
            raise KeyError(name)
        return _load(name)

    def __iter__(self) -> Iterator[str]:
        """Names of commands."""
        return iter(self.names)

    def __len__(self) -> int:
        """Number of commands."""
        return len(self.names)


@cache
def _load(name: str) -> Any:
    module = import_module(f"saen.cli.{name}")
    if hasattr(module, "app"):
        group = typer.main.get_group(module.app)
        group.name = name
        return group
    single = typer.Typer(add_completion=False)
    single.command(name)(module.command)
    return typer.main.get_command(single)


class LazyGroup(TyperGroup):
    """A group of lazy commands; `summaries` has the line that help and completion show of each."""

    summaries: ClassVar[Mapping[str, str]] = {}

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings | {"commands": LazyCommands(self.summaries)})
        listed = {name: TyperCommand(name, help=line) for name, line in self.summaries.items()}
        self.listing = TyperGroup(**settings | {"commands": listed})

    def list_commands(self, ctx: Any) -> list[str]:
        """Names of commands, in order."""
        return [*self.summaries]

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the help of the group."""
        self.listing.format_help(ctx, formatter)

    def shell_complete(self, ctx: Any, incomplete: str) -> Any:
        """Commands, or options, that start with what was typed."""
        context = typer.Context(self.listing, info_name=ctx.info_name)
        return self.listing.shell_complete(context, incomplete)
