"""Shift Aggregate Extract Networks: learn from graphs and other things made of parts."""

from saen.errors import (
    DatasetNotFoundError,
    FileError,
    InputError,
    MissingExtraError,
    SaenError,
)
from saen.graphs import Graphs

__version__ = "0.1.0"

__all__ = [
    "DatasetNotFoundError",
    "FileError",
    "Graphs",
    "InputError",
    "MissingExtraError",
    "SaenError",
]
