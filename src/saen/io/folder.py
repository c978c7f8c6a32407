"""A folder of files with one graph each, and their labels in `labels.csv`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from saen._util.progress import bar
from saen.data.graphs import Graphs
from saen.errors import FileError
from saen.io import edge_lists, graphml
from saen.io.edge_tables import LABELS
from saen.io.problems import BadGraphs
from saen.io.records import Label, Records
from saen.io.sources import unreadable
from saen.io.tables import Table, label_values, read_table

NAME = "labels.csv"

SUFFIXES = (*graphml.SUFFIXES, *edge_lists.SUFFIXES)


def graph_files(folder: Path) -> list[Path]:
    """The files of graphs in a folder, by name; those that end in `.txt` only without others."""
    try:
        files = sorted(file for file in folder.iterdir() if file.is_file())
    except OSError as error:
        raise unreadable(error, folder) from None
    known = [f for f in files if f.suffix in SUFFIXES and not f.name.startswith(".")]
    return [file for file in known if file.suffix != ".txt"] or known


def read_folder(
    files: list[Path],
    labels: Path | None,
    *,
    name: str,
    directed: bool,
    found: BadGraphs,
    progress: bool | None = None,
) -> Graphs:
    """Read one graph per file, in the order given.

    `labels` is a table with the columns `graph`, a file's name with or without its ending, and
    `label`. Edge lists are read as `directed` says; the other formats say it themselves.

    >>> folder = getfixture("tmp_path")
    >>> _ = (folder / "path.edgelist").write_text("0 1\\n1 2\\n")
    >>> _ = (folder / "ring.edgelist").write_text("0 1\\n1 2\\n2 0\\n")
    >>> _ = (folder / "labels.csv").write_text("graph,label\\nring,closed\\npath,open\\n")
    >>> graphs = read_folder(
    ...     graph_files(folder),
    ...     folder / "labels.csv",
    ...     name="toy",
    ...     directed=False,
    ...     found=BadGraphs(skip=False, report=print),
    ... )
    >>> graphs, graphs.targets.tolist()
    (Graphs(toy: 2 graphs, 6 nodes, 5 edges, undirected; 2 classes), ['open', 'closed'])
    """
    targets = {} if labels is None else dict(_targets(read_table(labels, LABELS), files, found))
    records = Records(found, labels or files[0].parent)
    with bar("reading graphs", len(files), progress) as update:
        for number, file in enumerate(files):
            try:
                record = (
                    graphml.read_networkx_file(file)
                    if file.suffix in graphml.SUFFIXES
                    else edge_lists.read_edgelist(file, directed)
                )
                records.add(replace(record, target=targets.get(file)), file.stat().st_size)
            except FileError as error:
                found(error)
            update(number + 1)
    return records.graphs(name)


def _targets(
    table: Table, files: list[Path], found: BadGraphs
) -> Iterator[tuple[Path, Label | None]]:
    """The label of every file that has one."""
    for _, error in table.broken:
        found(error)
    by_name = {file.stem: file for file in files} | {file.name: file for file in files}
    seen: set[Path] = set()
    names = [name.strip() for name in table.texts("graph")]
    values = label_values(table.texts("label").tolist())
    for row, (name, value) in enumerate(zip(names, values, strict=True)):
        file = by_name.get(name)
        if file is None:
            found(table.error(row, f"there is no file of the graph {name!r:.60}"))
        elif file in seen:
            found(table.error(row, f"the graph {name!r:.60} comes twice"))
        else:
            seen.add(file)
            yield file, value
