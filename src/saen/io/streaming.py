"""Data in parts, so that memory does not grow with the size of a file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from saen._util.ahead import ahead
from saen._util.arrays import Array
from saen._util.atomic import expand_user
from saen.data._collection import concatenate_values
from saen.data.graphs import Graphs
from saen.errors import FileError
from saen.io.formats import jsonl
from saen.io.formats.edge_tables import stream_edge_tables
from saen.io.libraries.rdkit import SMILES, read_smiles
from saen.io.loading import load_data, load_dataset, warn_repeated_ids, with_named_columns
from saen.io.options import ReadOptions
from saen.io.parsing.records import BadGraphs, bad_graphs
from saen.io.parsing.tables import SUFFIXES, ParquetRows, Table, read_table
from saen.io.parsing.text_files import numbered_lines
from saen.io.store.shards import is_shards, read_shards

MOLECULES_PER_PART = 20_000


def stream_dataset(
    name_or_path: str | os.PathLike[str], options: ReadOptions | None = None
) -> Iterator[Graphs]:
    """What `load_dataset` loads, in parts that are read while the caller works on the last one.

    JSON lines, tables of molecules, Parquet tables of edges that list the rows of each graph
    together, and shards come in several parts, everything else in one. A bad graph raises when its
    part is read.

    >>> file = getfixture("tmp_path") / "toy.jsonl"
    >>> _ = file.write_text('{"nodes": 3, "edges": [[0, 1], [1, 2]]}')
    >>> [*stream_dataset(file)]
    [Graphs(toy: 1 graph, 3 nodes, 2 edges, undirected)]
    """
    options = options or ReadOptions()
    path = expand_user(name_or_path)
    ids: list[Array] = []
    partial = options.partial_targets
    with bad_graphs(options.skip_bad, options.report, partial_targets=partial) as bad_graph:
        quiet = replace(options, progress=False)
        parts = _parts(path, quiet, bad_graph)
        for part in () if parts is None else ahead(parts):
            ids.append(part.ids)
            yield with_named_columns(part, options)
    if parts is None:
        yield load_dataset(name_or_path, options)
    else:
        warn_repeated_ids(concatenate_values(ids), "graph")


def _parts(path: Path, options: ReadOptions, bad_graph: BadGraphs) -> Iterator[Graphs] | None:
    """The graphs of a file or of shards in parts, or None if they have to be read at once."""
    if is_shards(path):
        options.only(path.name)
        return _shards(path, "graphs")
    if not path.is_file():
        return None
    if path.suffix in jsonl.SUFFIXES:
        options.only(path.name, "target", "id")
        return jsonl.stream_jsonl(path, options, bad_graph)
    if path.suffix in SUFFIXES and _has_molecules(path, options):
        options.only(path.name, "target", "id", "smiles", "chem")
        return _molecules(path, options, bad_graph)
    if path.suffix == ".parquet":
        options.only(path.name, "directed", "target", "id", "nodes", "targets")
        return stream_edge_tables(path, options, bad_graph)
    return None


def stream_data(
    name_or_path: str | os.PathLike[str], takes: str = "graphs", options: ReadOptions | None = None
) -> Iterator[Any]:
    """What `load_data` loads, in parts: graphs as `stream_dataset` does, others by shards.

    >>> [len(part) for part in stream_data("threads")]
    [300]
    """
    options, path = options or ReadOptions(), expand_user(name_or_path)
    if takes == "graphs":
        yield from stream_dataset(name_or_path, options)
    elif is_shards(path) and options.task is None:
        options.only(path.name)
        yield from ahead(_shards(path, takes))
    else:
        yield load_data(name_or_path, takes, options)


def _shards(path: Path, takes: str) -> Iterator[Any]:
    shards = read_shards(path)
    if shards.kind != takes:
        raise FileError(f"contains {shards.kind}, not {takes}", path=path)
    return (shards.read(number) for number in range(len(shards)))


def _has_molecules(path: Path, options: ReadOptions) -> bool:
    """Whether a table has a column of molecules, by its header."""
    if options.smiles is not None:
        return True
    if path.suffix == ".parquet":
        return SMILES in ParquetRows(path, whole=False).columns
    _, header = next(numbered_lines(path), (0, b""))
    return SMILES.encode() in header.lower()


def _molecules(path: Path, options: ReadOptions, bad_graph: BadGraphs) -> Iterator[Graphs]:
    for table in _table_parts(path):
        yield read_smiles(table, options, bad_graph)
        options = replace(options, notify=None)  # say once what was found


def _table_parts(path: Path) -> Iterator[Table]:
    if path.suffix == ".parquet":
        file = ParquetRows(path, whole=False)
        if len(file):
            ends = range(MOLECULES_PER_PART, len(file), MOLECULES_PER_PART)
            return file.parts([*ends, len(file)])
    table = read_table(path)
    starts = range(0, len(table), MOLECULES_PER_PART)
    return (table.part(start, start + MOLECULES_PER_PART) for start in starts)
