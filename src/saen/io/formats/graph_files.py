"""One graph per file: a single one, or all in a folder, with their targets in a table."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from saen._util.atomic import atomic_folder, expand_user
from saen._util.progress import bar
from saen.data.graphs import Graphs
from saen.errors import FileError
from saen.io.formats import edge_lists, graphml
from saen.io.formats.checks import TARGET_FILES, check_replaceable, check_storable
from saen.io.formats.edge_tables import need_targets, read_targets, warn_unknown
from saen.io.formats.format import Format
from saen.io.options import ReadOptions
from saen.io.parsing.records import BadGraphs, Records
from saen.io.parsing.tables import Targets
from saen.io.parsing.text_files import unreadable
from saen.io.result_tables import write_table

SUFFIXES = (*graphml.SUFFIXES, *edge_lists.SUFFIXES)


def graph_files(folder: Path) -> list[Path]:
    """The files of graphs in a folder, by name; `.txt` files only if there are no others."""
    try:
        files = sorted(file for file in folder.iterdir() if file.is_file())
    except OSError as error:
        raise unreadable(error, folder) from None
    known = [f for f in files if f.suffix in SUFFIXES and not f.name.startswith(".")]
    return [file for file in known if file.suffix != ".txt"] or known


def read_graph_files(path: Path, options: ReadOptions, bad_graph: BadGraphs) -> Graphs:
    """Read a file, or all files of a folder: GraphML, GML or edge lists.

    A table, by default `targets.csv` in the folder, names the files, with or without suffix, and
    has their targets.

    >>> folder = getfixture("tmp_path")
    >>> _ = (folder / "path.edgelist").write_text("1 2\\n2 3\\n")
    >>> _ = (folder / "targets.csv").write_text("graph,target\\npath,long\\n")
    >>> graphs = read_graph_files(folder, ReadOptions(), BadGraphs(skip=False, report=print))
    >>> graphs.ids.tolist(), graphs.sizes.tolist(), graphs.targets.tolist()
    (['path'], [3], ['long'])
    """
    files = graph_files(path) if path.is_dir() else [path]
    target_file = None if options.targets_file is None else expand_user(options.targets_file)
    if target_file is None and path.is_dir():
        candidates = (path / name for name in TARGET_FILES)
        target_file = next((file for file in candidates if file.is_file()), None)
    need_targets(path, options, target_file)
    rows: dict[Path, dict[str, Any]] = {}
    if target_file is not None:
        about = read_targets(target_file, options)
        rows = {} if about is None else dict(_file_rows(about, files, bad_graph))
    name = path.name or path.resolve().name  # of the folder "."
    records = Records(bad_graph, target_file or files[0].parent)
    lines: set[str] = set()
    with bar("reading graphs", len(files), options.progress) as update:
        for row, file in enumerate(files):
            try:
                record = (
                    graphml.read_graphml(file, options)
                    if file.suffix in graphml.SUFFIXES
                    else edge_lists.read_edgelist(file, options.directed)
                )
                record = replace(record, **{"id": file.stem, "row": row, **rows.get(file, {})})
                records.add(record, file.stat().st_size)
                lines.update(filter(None, (each.line() for each in record.choices)))
            except FileError as error:
                error.record = row
                bad_graph(error)
            update(row + 1)
    if lines and options.notify is not None:
        options.notify(f"{name}: {'; '.join(sorted(lines))}"[:400])
    return records.graphs(path.stem or name)


def _file_rows(
    targets: Targets, files: list[Path], bad_graph: BadGraphs
) -> Iterator[tuple[Path, dict[str, Any]]]:
    """What the table of targets says about each file: its target, id and extra columns."""
    table = targets.table
    for _, error in () if bad_graph.partial_targets else table.broken:
        bad_graph(error)
    by_name = {file.stem: file for file in files} | {file.name: file for file in files}
    seen: set[Path] = set()
    unknown: list[str] = []
    rows = np.arange(len(table))
    values = targets.values(rows)
    ids = None if targets.id is None else table.labels(targets.id, rows).tolist()
    extra = {name: column.tolist() for name, column in targets.others(rows).items()}
    for row, name in enumerate(table.texts("graph").str.strip()):
        file = by_name.get(name)
        if file is None:
            unknown.append(name)
        elif file in seen and bad_graph.partial_targets:
            continue  # the first row counts
        elif file in seen:
            bad_graph(table.error(row, f"graph {name!r:.60} is listed twice"))
        else:
            seen.add(file)
            found = {"target": values[row], "extra": {key: c[row] for key, c in extra.items()}}
            yield file, found | ({} if ids is None else {"id": ids[row]})
    warn_unknown(table.path, unknown)


def _folder_of(suffixes: tuple[str, ...]) -> Callable[[Path], bool]:
    """Whether a folder has a file with one of the suffixes among its graphs."""
    return lambda path: path.is_dir() and any(f.suffix in suffixes for f in graph_files(path))


def write_graphml_folder(graphs: Graphs, path: Path) -> None:
    """Write one GraphML file per graph, and their targets, into a folder."""
    check_storable(graphs, "graphml")
    check_replaceable(path)
    with atomic_folder(path) as temporary:
        names = np.array(graphml.write_graphml(graphs, temporary))
        columns = {**(graphs.extra or {}), "graph": names, "id": graphs.ids}
        if graphs.targets is not None:
            columns["target"] = graphs.targets
        write_table(columns, temporary / TARGET_FILES[0], ".csv")


GRAPHML = Format(
    "graphml",
    "GraphML and GML files",
    graphml.SUFFIXES,
    "graphs",
    (
        *("targets_file", "target", "id"),
        *("node_label", "node_attribute", "edge_label", "edge_weight"),
    ),
    read_graph_files,
    write=write_graphml_folder,
    holds=_folder_of(graphml.SUFFIXES),
    writes=(),
    folders=True,
)
EDGE_LISTS = Format(
    "edgelist",
    "edge lists",
    edge_lists.SUFFIXES,
    "graphs",
    ("directed", "targets_file", "target", "id"),
    read_graph_files,
    holds=_folder_of(edge_lists.SUFFIXES),
)
