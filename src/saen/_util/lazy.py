"""Modules that are imported when they are first used, and those that may be missing."""

from __future__ import annotations

from importlib import import_module
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


def import_extra(module: str, library: str, *, extra: str) -> Any:
    """A module of an optional library; `MissingExtraError` says which extra to install."""
    try:
        return import_module(module)
    except ImportError:
        raise MissingExtraError(library, extra=extra) from None
