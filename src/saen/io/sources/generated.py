"""Data that are generated, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from saen.io.sources.stdlib import stdlib_functions
from saen.io.sources.threads import generate_threads

GENERATED: Mapping[str, tuple[str, Callable[[], Any]]] = {
    "threads": ("graphs", generate_threads),
    "stdlib-functions": ("nested", stdlib_functions),
}
"""The kind of each, and the function that makes it."""
