"""Modules that are imported when they are first used, and those that may be missing."""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import Any

from saen.errors import MissingExtraError


class LazyModule:
    """Stands for a module that takes long to import, until something in it is used.

    Assign it under the module's usual name in the `else` branch of `if TYPE_CHECKING: import …`.

    >>> decimal = LazyModule("decimal")
    >>> decimal.Decimal("0.1") * 3
    Decimal('0.3')
    """

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __getattr__(self, attribute: str) -> Any:
        """Import the module and look up the attribute there."""
        return getattr(import_module(self.__name__), attribute)


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


def import_extra(module: str, library: str, *, extra: str) -> Any:
    """A module of an optional library; `MissingExtraError` says which extra to install."""
    try:
        return import_module(module)
    except ImportError:
        raise MissingExtraError(library, extra=extra) from None
