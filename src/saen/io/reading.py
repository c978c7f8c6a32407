"""Which reader for which path."""

from __future__ import annotations

import os
from pathlib import Path

from saen.data.graphs import Graphs
from saen.errors import FileError, InputError
from saen.io import edge_lists, graphml, tables
from saen.io.edge_tables import EDGES, read_edge_table
from saen.io.folder import NAME, graph_files, read_folder
from saen.io.jsonl import read_jsonl
from saen.io.problems import Report, bad_graphs
from saen.io.smiles import COLUMN, read_smiles
from saen.io.tables import read_table, require

JSON_LINES = (".jsonl", ".ndjson")
SUFFIXES = (*JSON_LINES, *tables.SUFFIXES, *graphml.SUFFIXES, *edge_lists.SUFFIXES)


def reads(path: Path) -> bool:
    """Whether a file, by its ending, or a folder, by its files, is one for `read_graphs`."""
    return bool(graph_files(path)) if path.is_dir() else path.suffix in SUFFIXES


def read_graphs(
    path: str | os.PathLike[str],
    *,
    directed: bool = False,
    nodes: str | os.PathLike[str] | None = None,
    targets: str | os.PathLike[str] | None = None,
    skip_bad: bool = False,
    report: Report | None = None,
    progress: bool | None = None,
) -> Graphs:
    """Read graphs from files of text (and Parquet), as the ending of the name says.

    - `.jsonl`, `.ndjson`: one JSON object per line and graph;
    - `.csv`, `.tsv`, `.parquet`: a table of edges (columns `graph`, `source`, `target`), with
      tables of `nodes` and `targets` where they are given or lie beside it (`nodes.csv` and
      `targets.csv` for `edges.csv`), or a table of molecules (column `smiles`);
    - `.graphml`, `.gml`, `.edgelist`, `.edges`, `.txt`: one graph, or a folder of them, with
      `targets` from `targets.csv` in the folder.

    Edge lists and tables of edges are `directed` if you say so; the other formats say it
    themselves. A bad graph raises `FileError` with file, line and reason; with `skip_bad` it is
    left out, and the error goes to `report`, or into a `SkippedWarning` at the end. `progress`
    shows a bar, by default on terminals.

    >>> file = getfixture("tmp_path") / "toy.jsonl"
    >>> _ = file.write_text('{"nodes": 3, "edges": [[0, 1], [1, 2]]}')
    >>> read_graphs(file)
    Graphs(toy: 1 graph, 3 nodes, 2 edges, undirected)
    """
    place = Path(path).expanduser()
    node_file, label_file = (None if f is None else Path(f).expanduser() for f in (nodes, targets))
    with bad_graphs(skip_bad, report) as found:
        if place.suffix in JSON_LINES and not place.is_dir():
            _refuse(place, directed=directed, nodes=nodes, targets=targets)
            return read_jsonl(place, found, progress)
        if place.suffix in tables.SUFFIXES and not place.is_dir():
            table = read_table(place)
            if COLUMN in table.columns:
                _refuse(place, directed=directed, nodes=nodes, targets=targets)
                return read_smiles(table, found, progress)
            require(table, EDGES)
            return read_edge_table(table, node_file, label_file, directed, found)
        _refuse(place, nodes=nodes)
        files = graph_files(place) if place.is_dir() else [place]
        if not files or not set(SUFFIXES) >= {file.suffix for file in files}:
            raise FileError(f"not a file of graphs, which end in {', '.join(SUFFIXES)}", path=place)
        if any(file.suffix in graphml.SUFFIXES for file in files):
            _refuse(place, directed=directed)
        if label_file is None and place.is_dir() and (place / NAME).is_file():
            label_file = place / NAME
        return read_folder(
            files, label_file, name=place.stem, directed=directed, found=found, progress=progress
        )


def _refuse(path: Path, **options: object) -> None:
    """Options that a format has no use for are a mistake."""
    for name, value in options.items():
        if value:
            raise InputError(f"{path.name}: files of this kind do not take the option {name}")
