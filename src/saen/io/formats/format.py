"""`Format`: what there is to know about one way of writing data to files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from saen.io.options import ReadOptions
from saen.io.parsing.records import BadGraphs

Read = Callable[[Path, ReadOptions, BadGraphs], Any]
Stream = Callable[[Path, ReadOptions, BadGraphs], Iterator[Any] | None]


def _one(path: Path) -> list[Path]:
    return [path]


def _never(*_: object) -> bool:
    return False


@dataclass(frozen=True)
class Format:
    """One format of files; `saen.io.formats.registry` lists all of them.

    Parameters
    ----------
    name : as `saen convert --format` writes it, and `title` in words, in the plural.
    suffixes : of its files, in lower case.
    kind : what it holds (graphs, documents or nested), or a function that looks into a file.
    options : the fields of `ReadOptions` that mean something for it. All others are rejected.
    read : all data of a path; a bad graph goes to the third argument.
    stream : the same in parts, or None for files that have to be read at once.
    write : writes data to a path, atomically; `InputError` for what the format cannot store.
    files : all files that `write` makes for a path.
    holds : whether a path without one of the suffixes, such as a folder, is in this format.
    looks : whether a file is in this format rather than in the next one with the same suffix.
    writes : the suffixes of files that `write` makes, by default all.
    folders : whether `write` makes a folder, where a path has no suffix.
    """

    name: str
    title: str
    suffixes: tuple[str, ...]
    kind: str | Callable[[Path], str]
    options: tuple[str, ...]
    read: Read
    stream: Stream | None = None
    write: Callable[[Any, Path], object] | None = None
    files: Callable[[Path], list[Path]] = _one
    holds: Callable[[Path], bool] = _never
    looks: Callable[[Path, ReadOptions], bool] = _never
    writes: tuple[str, ...] | None = None
    folders: bool = False

    @property
    def written(self) -> tuple[str, ...]:
        """The suffixes of files that `write` makes."""
        if self.write is None:
            return ()
        return self.suffixes if self.writes is None else self.writes

    def matches(self, path: Path) -> bool:
        """Whether a path may be in this format, by its suffix or, of a folder, its files."""
        return (path.suffix in self.suffixes and not path.is_dir()) or self.holds(path)

    def kind_of(self, path: Path) -> str:
        """What a path in this format holds."""
        return self.kind if isinstance(self.kind, str) else self.kind(path)
