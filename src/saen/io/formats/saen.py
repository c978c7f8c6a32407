"""The `.saen` format as a format of data: one file, or a folder of shards."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from saen.io.formats.format import Format
from saen.io.options import ReadOptions
from saen.io.parsing.records import BadGraphs
from saen.io.store import container
from saen.io.store.shards import KINDS, is_shards, read_shards


def _kind(path: Path) -> str:
    kind = container.read_header(path).kind if path.is_file() else ""
    return kind if kind in KINDS else "graphs"


def _read(path: Path, _: ReadOptions, __: BadGraphs) -> Any:
    return container.load(path)


def _read_shards(path: Path, _: ReadOptions, __: BadGraphs) -> Any:
    return read_shards(path).load()


def _stream_shards(path: Path, _: ReadOptions, __: BadGraphs) -> Iterator[Any]:
    shards = read_shards(path)
    return (shards.read(number) for number in range(len(shards)))


SAEN = Format("saen", ".saen files", (".saen",), _kind, (), _read, write=container.save)
SHARDS = Format(
    "shards",
    "shards",
    (),
    lambda path: read_shards(path).kind,
    (),
    _read_shards,
    _stream_shards,
    holds=is_shards,
)
