"""What a name or a path is: the one place that finds data and chooses the reader.

`load_dataset` loads graphs by name or path, `load_data` any kind of data, `read_graphs` the text
formats of graphs.
"""

from __future__ import annotations

import difflib
import hashlib
import os
import re
import warnings
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from saen._util.atomic import expand_user
from saen._util.progress import bar
from saen._util.strings import plural
from saen.data._collection import repeated_ids
from saen.data.documents import Documents
from saen.data.graphs import Graphs
from saen.data.nested import NestedData
from saen.errors import DatasetNotFoundError, FileError, InputError
from saen.io import container, edge_lists, graphml, jsonl, tables
from saen.io.catalog import (
    CatalogEntry,
    DownloadError,
    cache_folder,
    catalog,
    download,
    download_path,
    find_entry,
)
from saen.io.edge_tables import EDGES, read_edge_table, read_targets
from saen.io.rdkit import SMILES, read_smiles
from saen.io.records import BadGraphs, Records, Report, bad_graphs
from saen.io.tables import row_targets
from saen.io.text_files import BYTE_ORDER_MARK, numbered_lines, unreadable
from saen.io.tu import ENDINGS, TargetFile, read_tu

GENERATED = "threads"

ONE_GRAPH_SUFFIXES = (*graphml.SUFFIXES, *edge_lists.SUFFIXES)
SUFFIXES = (*jsonl.SUFFIXES, *tables.SUFFIXES, *ONE_GRAPH_SUFFIXES)
TARGET_FILES = ("targets.csv", "labels.csv")

# Part of the key of every cached copy: to be raised whenever the same text is parsed differently.
_PARSER_VERSION = 1


class DuplicateIdsWarning(UserWarning):
    """Two examples have the same id: nothing is lost, but outputs cannot tell them apart."""


class CacheWarning(UserWarning):
    """The cache could not be written: everything works, but the next load will be slow again."""


def load_dataset(
    name_or_path: str | os.PathLike[str],
    *,
    directed: bool = False,
    target: str | None = None,
    cache: bool = True,
    progress: bool | None = None,
    nodes: str | os.PathLike[str] | None = None,
    targets: str | os.PathLike[str] | None = None,
    skip_bad: bool = False,
    report: Report | None = None,
) -> Graphs:
    """Load graphs by name or from files.

    Looks for, in this order: a path (a folder or a zip in TUDataset's text format, a `.saen` file
    of graphs, or anything that `read_graphs` reads); `NAME.zip` or `NAME/` in the folders of
    `$SAEN_DATA`; the cache; the generated dataset `"threads"`; the public TUDataset site, from
    which a download is checked and kept in the cache. Names of the catalog may be in upper or
    lower case. A path that exists is never downloaded as a name.

    Parameters
    ----------
    name_or_path
        The name of a dataset, or the path of a file or folder.
    directed
        Whether the edges of TUDataset files, edge lists and edge tables are directed. The other
        formats say it themselves.
    target
        Of a table, the columns with the targets, separated by commas (by default `target`). Which
        TUDataset file has the targets: the graph `"labels"` or the graph `"attributes"`; by
        default the labels, or else the attributes.
    cache
        Whether to keep parsed TUDataset files, keyed by content, under `$SAEN_CACHE` (by default
        the system's cache folder).
    progress
        Whether to show a progress bar; by default on terminals.
    nodes, targets
        The tables that belong to an edge table or a folder, if they are not beside it.
    skip_bad, report
        Whether to skip bad graphs, and what to call with the error of each (see `read_graphs`).
        TUDataset and `.saen` files are read completely or not at all.

    Raises
    ------
    DatasetNotFoundError
        If there is no such dataset; the message lists all places that were searched.
    FileError
        If a file cannot be read.

    >>> load_dataset("threads")
    Graphs(threads: 300 graphs, ...; 2 classes)
    """
    table_files = {"nodes": nodes, "targets": targets}
    options = {"skip_bad": skip_bad, "report": report, "progress": progress}
    tu_options: dict[str, Any] = {"directed": directed, "target": target}
    entry = find_entry(str(name_or_path))
    name = entry.name if entry else str(name_or_path)
    path = _explicit_path(name_or_path) or locate(name)
    if path is None and Path(name_or_path).exists():
        path = Path(name_or_path)
    if path is not None:
        return _with_checked_ids(_load_path(path, cache, tu_options, table_files, options))
    if name.casefold() == GENERATED:
        from saen.io.threads import generate_threads

        _refuse(GENERATED, **tu_options, **table_files)
        return generate_threads()
    _refuse(name, **table_files)
    try:
        graphs = download(name, entry, progress=progress, **tu_options)
    except DownloadError as error:
        raise _not_found(name, entry, str(error)) from None
    if cache:
        _store_parsed(graphs, _parsed_path(download_path(name), **tu_options))
    return graphs


def data_kind(name_or_path: str | os.PathLike[str]) -> str:
    """What a name or path holds, from its suffix and first line, without reading the rest.

    `documents` (.conllu), `nested` (JSON lines with `parts`, or `"stdlib-functions"`), `molecules`
    (a table with a column `smiles`) or `graphs`.

    >>> data_kind("threads"), data_kind("corpus.conllu")
    ('graphs', 'documents')
    """
    path = Path(name_or_path).expanduser()
    if path.suffix == ".conllu":
        return "documents"
    if str(name_or_path) == "stdlib-functions" and not path.exists():
        return "nested"
    if not path.is_file():
        return "graphs"
    if path.suffix in jsonl.SUFFIXES:
        _, first = next(numbered_lines(path), (0, b""))
        keys = re.findall(rb'"[^"]*"(?=\s*:)', first)
        return "nested" if keys[:1] == [b'"levels"'] or b'"parts"' in keys else "graphs"
    if path.suffix in (".csv", ".tsv"):
        _, first = next(numbered_lines(path), (0, b""))
        names = re.split(rb"[,;\t]", first.removeprefix(BYTE_ORDER_MARK).lower())
        return "molecules" if SMILES.encode() in [n.strip(b' "\r\n') for n in names] else "graphs"
    return "graphs"


def load_data(
    name_or_path: str | os.PathLike[str],
    takes: str = "graphs",
    *,
    skip_bad: bool = False,
    report: Report | None = None,
) -> Graphs | Documents | NestedData:
    """Load the kind of data that a decomposition takes: graphs, documents or nested data.

    - `takes="graphs"`: `load_dataset`, with its `skip_bad` and `report`;
    - `takes="documents"`: `Documents` from a `.conllu` file;
    - `takes="nested"`: `NestedData` from a `.jsonl` file, or `"stdlib-functions"`.

    Documents and nested data are read completely or not at all.

    >>> load_data("threads")
    Graphs(threads: 300 graphs, ...; 2 classes)
    """
    path = expand_user(name_or_path)
    if takes == "graphs":
        return load_dataset(name_or_path, skip_bad=skip_bad, report=report)
    if takes == "documents":
        from saen.io.conllu import read_conllu

        if path.suffix != ".conllu":
            raise InputError(f"documents are read from .conllu files, not from {name_or_path}")
        return read_conllu(path)
    if takes == "nested":
        if str(name_or_path) == "stdlib-functions":
            from saen.io.stdlib import stdlib_functions

            return stdlib_functions()
        from saen.io.nested import read_nested

        if path.suffix not in jsonl.SUFFIXES:
            raise InputError(
                "nested data are read from .jsonl files, or generated by the name "
                f"stdlib-functions, not from {name_or_path}"
            )
        return read_nested(path)
    raise InputError(f"takes must be graphs, documents or nested, not {takes!r}")


def read_graphs(
    path: str | os.PathLike[str],
    *,
    directed: bool = False,
    nodes: str | os.PathLike[str] | None = None,
    targets: str | os.PathLike[str] | None = None,
    target: str | None = None,
    skip_bad: bool = False,
    report: Report | None = None,
    progress: bool | None = None,
) -> Graphs:
    """Read graphs from text files or Parquet, in the format of the suffix.

    - `.jsonl`, `.ndjson`: one JSON object per line and graph;
    - `.csv`, `.tsv`, `.parquet`: a table of edges (columns `graph`, `source`, `target`) with
      optional tables of `nodes` and `targets`, given or beside it (`nodes.csv` and `targets.csv`
      for `edges.csv`), or a table of molecules (column `smiles`);
    - `.graphml`, `.gml`, `.edgelist`, `.edges`, `.txt`: one graph, or a folder of them, with
      `targets`, given or from `targets.csv` in the folder.

    `target` names the columns of a table with the targets, separated by commas; the targets of a
    graph are then several, some of them perhaps missing.

    Edge lists and edge tables are `directed` if you say so; the other formats say it themselves. A
    bad graph raises `FileError` with file, line and reason; with `skip_bad` it is skipped, and the
    error goes to `report`, or into a `SkippedWarning` at the end. `progress` shows a progress bar,
    by default on terminals.

    >>> file = getfixture("tmp_path") / "toy.jsonl"
    >>> _ = file.write_text('{"nodes": 3, "edges": [[0, 1], [1, 2]]}')
    >>> read_graphs(file)
    Graphs(toy: 1 graph, 3 nodes, 2 edges, undirected)
    """
    path = expand_user(path)
    node_file, target_file = (
        None if file is None else expand_user(file) for file in (nodes, targets)
    )
    with bad_graphs(skip_bad, report) as bad_graph:
        if path.suffix in jsonl.SUFFIXES and not path.is_dir():
            _refuse(path.name, directed=directed, nodes=nodes, targets=targets, target=target)
            return jsonl.read_jsonl(path, bad_graph, progress)
        if path.suffix in tables.SUFFIXES and not path.is_dir():
            table = tables.read_table(path)
            if SMILES in table.columns:
                _refuse(path.name, directed=directed, nodes=nodes, targets=targets)
                return read_smiles(table, bad_graph, progress, target)
            tables.require(table, EDGES)
            return read_edge_table(table, node_file, target_file, directed, bad_graph, target)
        _refuse(path.name, nodes=nodes)
        files = _graph_files(path) if path.is_dir() else [path]
        if not files or not set(SUFFIXES) >= {file.suffix for file in files}:
            raise FileError(f"unknown format (known suffixes: {', '.join(SUFFIXES)})", path=path)
        if any(file.suffix in graphml.SUFFIXES for file in files):
            _refuse(path.name, directed=directed)
        if target_file is None and path.is_dir():
            candidates = (path / name for name in TARGET_FILES)
            target_file = next((file for file in candidates if file.is_file()), None)
        if target_file is None:
            _refuse(path.name, target=target)
        return _read_files(files, target_file, target, path.stem, directed, bad_graph, progress)


def locate(name: str) -> Path | None:
    """The local copy that `load_dataset` would read for the name of a dataset, if there is one."""
    entry = find_entry(name)
    known = entry.name if entry else name
    copies = [folder / file for folder in _data_folders() for file in (f"{known}.zip", known)]
    return next(filter(_holds_graphs, [*copies, download_path(known)]), None)


def _with_checked_ids(graphs: Graphs) -> Graphs:
    """The graphs themselves; warns if two have the same id."""
    repeated = repeated_ids(graphs.ids)
    if repeated:
        shown = ", ".join(map(repr, repeated[:3]))
        more = " …" if len(repeated) > 3 else ""
        warnings.warn(
            f"{plural(len(repeated), 'id')} used by more than one graph: {shown}{more}",
            DuplicateIdsWarning,
            stacklevel=3,
        )
    return graphs


# -- one graph per file ------------------------------------------------------------------------


def _graph_files(folder: Path) -> list[Path]:
    """The files of graphs in a folder, by name; `.txt` files only if there are no others."""
    try:
        files = sorted(file for file in folder.iterdir() if file.is_file())
    except OSError as error:
        raise unreadable(error, folder) from None
    known = [f for f in files if f.suffix in ONE_GRAPH_SUFFIXES and not f.name.startswith(".")]
    return [file for file in known if file.suffix != ".txt"] or known


def _read_files(
    files: list[Path],
    target_file: Path | None,
    target: str | None,
    name: str,
    directed: bool,
    bad_graph: BadGraphs,
    progress: bool | None,
) -> Graphs:
    """Read one graph per file; a table names the files, with or without suffix, and targets."""
    targets = {}
    if target_file is not None:
        targets = dict(_file_targets(target_file, target, files, bad_graph))
    records = Records(bad_graph, target_file or files[0].parent)
    with bar("reading graphs", len(files), progress) as update:
        for number, file in enumerate(files, start=1):
            try:
                record = (
                    graphml.read_graphml(file)
                    if file.suffix in graphml.SUFFIXES
                    else edge_lists.read_edgelist(file, directed)
                )
                record = replace(record, target=targets.get(file), id=file.stem)
                records.add(record, file.stat().st_size)
            except FileError as error:
                bad_graph(error)
            update(number)
    return records.graphs(name)


def _file_targets(
    target_file: Path, target: str | None, files: list[Path], bad_graph: BadGraphs
) -> Iterator[tuple[Path, Any]]:
    table, columns = read_targets(target_file, target)
    for _, error in table.broken:
        bad_graph(error)
    by_name = {file.stem: file for file in files} | {file.name: file for file in files}
    seen: set[Path] = set()
    names = [name.strip() for name in table.texts("graph")]
    values = row_targets([table.texts(column).tolist() for column in columns])
    for row, (name, value) in enumerate(zip(names, values, strict=True)):
        file = by_name.get(name)
        if file is None:
            bad_graph(table.error(row, f"there is no file for graph {name!r:.60}"))
        elif file in seen:
            bad_graph(table.error(row, f"graph {name!r:.60} is listed twice"))
        else:
            seen.add(file)
            yield file, value


# -- paths -------------------------------------------------------------------------------------


def _explicit_path(name_or_path: str | os.PathLike[str]) -> Path | None:
    """The path, if it is one rather than a name."""
    path = expand_user(name_or_path)
    explicit = (
        not isinstance(name_or_path, str)
        or len(path.parts) != 1
        or path.is_absolute()
        or path.suffix in (".zip", ".saen", *SUFFIXES)
        or name_or_path.endswith(("/", os.sep))
    )
    # A folder without graphs must not hide a local dataset of the same name.
    return path if explicit or _holds_graphs(path) else None


def _holds_graphs(path: Path) -> bool:
    try:
        return path.is_file() or (path.is_dir() and (_is_tu_folder(path) or _is_readable(path)))
    except (OSError, FileError):
        return False


def _is_readable(path: Path) -> bool:
    """Whether `read_graphs` reads a file, by its suffix, or a folder, by its files."""
    return bool(_graph_files(path)) if path.is_dir() else path.suffix in SUFFIXES


def _is_tu_folder(path: Path) -> bool:
    return path.is_dir() and any(path.glob("*_A.txt"))


def _data_folders() -> list[Path]:
    folders = os.environ.get("SAEN_DATA", "").split(os.pathsep)
    return [expand_user(folder) for folder in folders if folder]


def _load_path(
    path: Path,
    cache: bool,
    tu_options: dict[str, Any],
    table_files: dict[str, Any],
    options: dict[str, Any],
) -> Graphs:
    if not _is_tu_folder(path) and _is_readable(path):
        return read_graphs(path, **tu_options, **table_files, **options)
    _refuse(path.name, **table_files)
    if path.suffix == ".saen" and not path.is_dir():
        _refuse(path.name, **tu_options)
        graphs = container.load(path)
        if not isinstance(graphs, Graphs):
            raise FileError(f"contains a {type(graphs).__name__}, not Graphs", path=path)
        return graphs
    if path.suffix == ".conllu":
        raise FileError("documents, not graphs: use a decomposition such as text", path=path)
    if path.is_file() and path.suffix != ".zip" and not zipfile.is_zipfile(path):
        suffixes = ", ".join((".saen", ".zip", *SUFFIXES))
        raise FileError(f"unknown format (known suffixes: {suffixes})", path=path)
    if path.is_dir() and not _is_tu_folder(path) and not any(path.glob("*/*_A.txt")):
        raise FileError(
            "no graphs in this folder: expected TUDataset files (NAME_A.txt, …) or one graph per "
            f"file ({', '.join(ONE_GRAPH_SUFFIXES)})",
            path=path,
        )
    parsed = _parsed_path(path, **tu_options) if cache else None
    if parsed is not None:
        try:
            copy = container.load(parsed)
            if isinstance(copy, Graphs):
                return copy
        except FileError:
            pass  # no copy yet, or a damaged one: read the text (again)
    graphs = read_tu(path, **tu_options)
    _store_parsed(graphs, parsed)
    return graphs


_APPLY_TO = {
    "directed": "TUDataset files, edge lists and edge tables",
    "target": "TUDataset files and tables of targets",
    "nodes": "edge tables",
    "targets": "edge tables and folders with one graph per file",
}


def _refuse(name: str, **options: object) -> None:
    """Raise if an option is set that this kind of data does not have."""
    for option, value in options.items():
        if value:
            raise InputError(f"{name}: option {option!r} applies only to {_APPLY_TO[option]}")


def _not_found(name: str, entry: CatalogEntry | None, reason: str) -> DatasetNotFoundError:
    folders = [f"  $SAEN_DATA: {folder / name}[.zip]" for folder in _data_folders()]
    searched = [
        f"  path: {Path.cwd() / name}",
        *(folders or ["  $SAEN_DATA: not set"]),
        f"  cache: {download_path(name)}",
        f"  download: {reason}",
    ]
    names = [*catalog(), GENERATED, *(alias for e in catalog().values() for alias in e.aliases)]
    folded = {known.casefold(): known for known in names}
    near = difflib.get_close_matches(name.casefold(), folded, n=3) if entry is None else []
    hints = [f"Did you mean {' or '.join(folded[match] for match in near)}?"] if near else []
    hints.append(
        f"To use your own copy, pass its path, or set SAEN_DATA to the folder of {name}.zip."
    )
    return DatasetNotFoundError(
        "\n".join([f"dataset {name!r} not found. Searched", *searched, *hints])
    )


# -- the cache of parsed text ------------------------------------------------------------------


def _parsed_path(path: Path, directed: bool, target: TargetFile | None) -> Path | None:
    """Where the parsed copy of this content, read with these options, is kept."""
    key = hashlib.blake2b(f"{_PARSER_VERSION} {directed} {target}".encode(), digest_size=16)
    try:
        if path.is_dir():
            for file in sorted(path.iterdir()):
                if file.name.endswith(ENDINGS):
                    key.update(b"\n" + os.fsencode(file.name) + b" " + _digest(file))
        else:
            key.update(b"\n" + _digest(path))
    except OSError:
        return None  # the reader reports what is wrong
    return cache_folder() / "parsed" / f"{path.resolve().stem}-{key.hexdigest()}.saen"


def _digest(path: Path) -> bytes:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").digest()


def _store_parsed(graphs: Graphs, parsed: Path | None) -> None:
    if parsed is None:
        return
    try:
        parsed.parent.mkdir(parents=True, exist_ok=True)
        container.save(graphs, parsed)
    except (OSError, FileError) as error:
        warnings.warn(
            f"the parsed dataset could not be cached ({error}); set SAEN_CACHE to a writable "
            "folder, or pass cache=False",
            CacheWarning,
            stacklevel=4,
        )
