"""The paper's published numbers, as data."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any

__all__ = ["tables"]


@cache
def tables() -> dict[str, Any]:
    """The tables of the paper by name; every number as printed there.

    >>> tables()["sizes_and_runtimes"]["COLLAB"]["ratio"]
    0.38
    """
    return tomllib.loads((files("saen.paper") / "tables.toml").read_text(encoding="utf-8"))
