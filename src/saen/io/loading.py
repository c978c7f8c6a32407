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
from typing import Any, TypeVar

import numpy as np

from saen._util.arrays import Array
from saen._util.atomic import expand_user
from saen._util.progress import bar
from saen._util.strings import plural
from saen.data._collection import n_targets, repeated_ids
from saen.data.documents import Documents
from saen.data.graphs import Graphs
from saen.data.nested import NestedData
from saen.errors import DatasetNotFoundError, FileError, InputError
from saen.io.formats import edge_lists, graphml, jsonl
from saen.io.formats.edge_tables import EDGES, read_edge_table, read_targets, warn_unknown
from saen.io.formats.tu import ENDINGS, TargetFile, read_tu
from saen.io.libraries.rdkit import MOLECULE_SUFFIXES, SMILES, read_molecule_file, read_smiles
from saen.io.options import ReadOptions
from saen.io.parsing import tables
from saen.io.parsing.records import BadGraphs, Records, bad_graphs, targets_for
from saen.io.parsing.tables import split_names
from saen.io.parsing.text_files import numbered_lines, unreadable
from saen.io.sources.catalog import (
    CatalogEntry,
    DownloadError,
    cache_folder,
    catalog,
    download,
    download_path,
    find_entry,
)
from saen.io.store import container
from saen.io.store.shards import KINDS, is_shards, read_shards

GENERATED = "threads"
STDLIB = "stdlib-functions"

ONE_GRAPH_SUFFIXES = (*graphml.SUFFIXES, *edge_lists.SUFFIXES)
SUFFIXES = (*jsonl.SUFFIXES, *tables.SUFFIXES, *MOLECULE_SUFFIXES, *ONE_GRAPH_SUFFIXES)
TARGET_FILES = ("targets.csv", "labels.csv")

AnyData = TypeVar("AnyData", Graphs, Documents, NestedData)

# Part of the key of every cached copy: to be raised whenever the same text is parsed differently.
_PARSER_VERSION = 1


class DuplicateIdsWarning(UserWarning):
    """Two examples have the same id: nothing is lost, but outputs cannot tell them apart."""


class CacheWarning(UserWarning):
    """The cache could not be written: everything works, but the next load will be slow again."""


def load_dataset(
    name_or_path: str | os.PathLike[str],
    options: ReadOptions | None = None,
    *,
    cache: bool = True,
    **settings: Any,
) -> Graphs:
    """Load graphs by name or from files.

    Looks for, in this order: a path (a folder or a zip in TUDataset's text format, a `.saen` file
    of graphs, a folder of shards, or anything that `read_graphs` reads); `NAME.zip` or `NAME/` in
    the folders of `$SAEN_DATA`; the cache; the generated dataset `"threads"`; the public TUDataset
    site, from which a download is checked and kept in the cache. Names of the catalog may be in
    upper or lower case. A path that exists is never downloaded as a name.

    Parameters
    ----------
    name_or_path
        The name of a dataset, or the path of a file or folder.
    options, settings
        How to read it: `ReadOptions`, or its fields as keywords, such as `target="activity"`,
        `task="regression"`, `directed=True` or `skip_bad=True`. TUDataset and `.saen` files are
        read completely or not at all.
    cache
        Whether to keep parsed TUDataset files, keyed by content, under `$SAEN_CACHE` (by default
        the system's cache folder).

    Raises
    ------
    DatasetNotFoundError
        If there is no such dataset; the message lists all places that were searched.
    FileError
        If a file cannot be read.

    >>> load_dataset("threads")
    Graphs(threads: 300 graphs, ...; 2 classes)
    """
    options = _options(options, settings)
    return _finished(_load_graphs(name_or_path, options, cache), options)


def _load_graphs(name_or_path: str | os.PathLike[str], options: ReadOptions, cache: bool) -> Graphs:
    path = local_path(name_or_path)
    if path is not None:
        return _load_path(path, cache, options)
    entry = find_entry(str(name_or_path))
    name = entry.name if entry else str(name_or_path)
    if name.casefold() == GENERATED:
        from saen.io.sources.threads import generate_threads

        options.only(GENERATED)
        return generate_threads()
    tu = _tu_options(name, options)
    try:
        graphs = download(name, entry, progress=options.progress, **tu)
    except DownloadError as error:
        raise _not_found(name, entry, str(error)) from None
    if cache:
        _store_parsed(graphs, _parsed_path(download_path(name), **tu))
    return graphs


def local_path(name_or_path: str | os.PathLike[str]) -> Path | None:
    """The file or folder that `load_dataset` would read; None for what it generates or downloads.

    A path that exists comes first, unless it is a folder without graphs and there is a local copy
    of a dataset with its name.
    """
    path = _explicit_path(name_or_path) or locate(str(name_or_path))
    if path is None and Path(name_or_path).exists():
        return Path(name_or_path)
    return path


def catalog_entry(name_or_path: str | os.PathLike[str]) -> CatalogEntry | None:
    """The catalog's entry for a name, not for a path that merely has the name of a dataset."""
    explicit = _explicit_path(name_or_path) is not None
    return None if explicit else find_entry(str(name_or_path))


def check_source(name_or_path: str | os.PathLike[str]) -> None:
    """Raise `FileError` if a path, rather than a name, does not exist.

    >>> check_source("no/such.jsonl")
    Traceback (most recent call last):
    saen.errors.FileError: no/such.jsonl: no such file or folder
    """
    path = _explicit_path(name_or_path)
    if path is not None and not path.exists() and str(name_or_path) != STDLIB:
        raise FileError("no such file or folder", path=path)


def _options(options: ReadOptions | None, settings: dict[str, Any]) -> ReadOptions:
    return replace(options or ReadOptions(), **settings)


def data_kind(name_or_path: str | os.PathLike[str]) -> str:
    """What a name or path holds, from its suffix and first line, without reading the rest.

    `documents` (.conllu), `nested` (JSON lines with `parts`, or `"stdlib-functions"`) or `graphs`;
    shards and .saen files say it themselves.

    >>> data_kind("threads"), data_kind("corpus.conllu")
    ('graphs', 'documents')
    """
    path = Path(name_or_path).expanduser()
    if path.suffix == ".conllu":
        return "documents"
    if is_shards(path):
        return read_shards(path).kind
    if path.suffix == ".saen" and path.is_file():
        kind = container.read_header(path).kind
        return kind if kind in KINDS else "graphs"
    if str(name_or_path) == STDLIB and not path.exists():
        return "nested"
    if path.suffix in jsonl.SUFFIXES and path.is_file():
        _, first = next(numbered_lines(path), (0, b""))
        keys = re.findall(rb'"[^"]*"(?=\s*:)', first)
        return "nested" if keys[:1] == [b'"levels"'] or b'"parts"' in keys else "graphs"
    return "graphs"


def load_data(
    name_or_path: str | os.PathLike[str],
    takes: str = "graphs",
    options: ReadOptions | None = None,
    **settings: Any,
) -> Graphs | Documents | NestedData:
    """Load the kind of data that a decomposition takes: graphs, documents or nested data.

    - `takes="graphs"`: `load_dataset`;
    - `takes="documents"`: `Documents` from a `.conllu` file;
    - `takes="nested"`: `NestedData` from a `.jsonl` file, or `"stdlib-functions"`;
    - both also from shards and `.saen` files.

    `options` and `settings` are those of `load_dataset`. Documents and nested data are read
    completely or not at all.

    >>> load_data("threads")
    Graphs(threads: 300 graphs, ...; 2 classes)
    """
    options = _options(options, settings)
    if takes == "graphs":
        return load_dataset(name_or_path, options)
    path = expand_user(name_or_path)
    if takes in KINDS and (path.suffix == ".saen" or is_shards(path)):
        stored: Any = _load_stored(path, takes, options)
        return _finished(stored, options)  # type: ignore[no-any-return]
    if takes == "documents":
        from saen.io.formats.conllu import read_conllu

        if path.suffix != ".conllu":
            raise InputError(f"documents are read from .conllu files, not from {name_or_path}")
        options.only(path.name, "target", "word")
        target = options.target or "target"
        word: Any = options.choice("word")
        partial = options.partial_targets
        documents = read_conllu(path, word=word, target=target, partial_targets=partial)
        return _finished(documents, options)
    if takes == "nested":
        if str(name_or_path) == STDLIB and not path.exists():
            from saen.io.sources.stdlib import stdlib_functions

            options.only(STDLIB)
            return stdlib_functions()
        from saen.io.formats.nested import read_nested

        if path.suffix not in jsonl.SUFFIXES:
            raise InputError(
                "nested data are read from .jsonl files, or generated by the name "
                f"stdlib-functions, not from {name_or_path}"
            )
        options.only(path.name, "target", "id")
        examples = read_nested(
            path,
            target=options.target,
            id=options.id,
            partial_targets=options.partial_targets,
            all_columns=options.all_columns,
        )
        return _finished(examples, options)
    raise InputError(f"takes must be graphs, documents or nested, not {takes!r}")


def read_graphs(
    path: str | os.PathLike[str], options: ReadOptions | None = None, **settings: Any
) -> Graphs:
    """Read graphs from text files or Parquet, in the format of the suffix.

    - `.jsonl`, `.ndjson`: one JSON object per line and graph;
    - `.csv`, `.tsv`, `.parquet`: a table of edges (columns `graph`, `source`, `target`) with
      optional tables of `nodes` and `targets`, given or beside it (`nodes.csv` and `targets.csv`
      for `edges.csv`), or a table of molecules (column `smiles`);
    - `.smi`, `.sdf`: molecules;
    - `.graphml`, `.gml`, `.edgelist`, `.edges`, `.txt`: one graph, or a folder of them, with
      `targets`, given or from `targets.csv` in the folder.

    `options` and `settings` are those of `load_dataset`. A bad graph raises `FileError` with file,
    line and reason; with `skip_bad` it is skipped, and the error goes to `report`, or into a
    `SkippedWarning` at the end.

    >>> file = getfixture("tmp_path") / "toy.jsonl"
    >>> _ = file.write_text('{"nodes": 3, "edges": [[0, 1], [1, 2]]}')
    >>> read_graphs(file)
    Graphs(toy: 1 graph, 3 nodes, 2 edges, undirected)
    """
    options, path = _options(options, settings), expand_user(path)
    partial = options.partial_targets
    with bad_graphs(options.skip_bad, options.report, partial_targets=partial) as bad_graph:
        if path.is_dir():
            return _read_files(_graph_files(path), path, options, bad_graph)
        if path.suffix in jsonl.SUFFIXES:
            options.only(path.name, "target", "id")
            return jsonl.read_jsonl(path, options, bad_graph)
        if path.suffix in MOLECULE_SUFFIXES:
            options.only(path.name, "chem", *(("target", "id") if path.suffix == ".sdf" else ()))
            return read_molecule_file(path, options, bad_graph)
        if path.suffix in tables.SUFFIXES:
            table = tables.read_table(path)
            if options.smiles is not None or SMILES in table.columns:
                options.only(path.name, "target", "id", "smiles", "chem")
                return read_smiles(table, options, bad_graph)
            tables.require(table, EDGES)
            options.only(path.name, "directed", "target", "id", "nodes", "targets")
            return read_edge_table(table, options, bad_graph)
        return _read_files([path], path, options, bad_graph)


def locate(name: str) -> Path | None:
    """The local copy that `load_dataset` would read for the name of a dataset, if there is one."""
    entry = find_entry(name)
    known = entry.name if entry else name
    copies = [folder / file for folder in _data_folders() for file in (f"{known}.zip", known)]
    return next(filter(_holds_graphs, [*copies, download_path(known)]), None)


def input_files(*sources: object) -> list[object]:
    """What a command reads, for `check_output`: paths, and for names their local copies."""
    return [*sources, *(locate(source) for source in sources if isinstance(source, str))]


def _finished(data: AnyData, options: ReadOptions) -> AnyData:
    """The data with targets as asked for; warns if two examples have the same id."""
    warn_repeated_ids(data.ids, {Graphs: "graph", Documents: "document"}.get(type(data), "example"))
    return with_named_columns(data, options)


def with_named_columns(data: AnyData, options: ReadOptions) -> AnyData:
    """The data with the features that the options name, and with targets for the task."""
    names = options.chosen_features()
    if names:
        spelling = {each.casefold(): each for each in data.extra or ()}
        own = [
            each if each in (data.extra or ()) else spelling.get(each.casefold(), each)
            for each in names
        ]
        data = data.with_features(own)
    return _with_named_targets(data, options)


def _with_named_targets(data: AnyData, options: ReadOptions) -> AnyData:
    if data.targets is None:
        return data
    targets = data.targets
    if options.task is not None:
        try:
            targets = targets_for(targets, options.task)
        except InputError:
            if not options.partial_targets:
                raise
    names = split_names(options.target or "")
    known = len(names) == n_targets(targets)
    return data.with_targets(targets, names if known else data.target_names)


def warn_repeated_ids(ids: Array, one: str) -> None:
    """Warn if two examples, each called `one`, have the same id."""
    repeated = repeated_ids(ids)
    if repeated:
        shown = ", ".join(map(repr, repeated[:3]))
        more = " …" if len(repeated) > 3 else ""
        warnings.warn(
            f"{plural(len(repeated), 'id')} used by more than one {one}: {shown}{more} "
            "(--id COLUMN names others)",
            DuplicateIdsWarning,
            stacklevel=4,
        )


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
    files: list[Path], source: Path, options: ReadOptions, bad_graph: BadGraphs
) -> Graphs:
    """Read one graph per file; a table names the files, with or without suffix, and targets."""
    if not files or not set(ONE_GRAPH_SUFFIXES) >= {file.suffix for file in files}:
        raise FileError(f"unknown format (known suffixes: {', '.join(SUFFIXES)})", path=source)
    target_file = None if options.targets is None else expand_user(options.targets)
    if target_file is None and source.is_dir():
        candidates = (source / name for name in TARGET_FILES)
        target_file = next((file for file in candidates if file.is_file()), None)
    own = any(file.suffix in graphml.SUFFIXES for file in files)
    known = [] if own else ["directed"]
    known += [] if target_file is None else ["targets", "target", "id"]
    options.only(source.name, *known)
    rows: dict[Path, dict[str, Any]] = {}
    if target_file is not None:
        about = read_targets(target_file, options)
        rows = {} if about is None else dict(_file_rows(about, files, bad_graph))
    records = Records(bad_graph, target_file or files[0].parent)
    unread: set[str] = set()
    with bar("reading graphs", len(files), options.progress) as update:
        for row, file in enumerate(files):
            try:
                record = (
                    graphml.read_graphml(file)
                    if file.suffix in graphml.SUFFIXES
                    else edge_lists.read_edgelist(file, options.directed)
                )
                record = replace(record, **{"id": file.stem, "row": row, **rows.get(file, {})})
                records.add(record, file.stat().st_size)
                unread |= record.unread
            except FileError as error:
                error.record = row
                bad_graph(error)
            update(row + 1)
    if unread and options.notify is not None:
        names = ", ".join(sorted(unread))[:200]
        options.notify(f"{source.name}: attributes of text not read: {names} (only 'label' is)")
    return records.graphs(source.stem)


def _file_rows(
    targets: tables.Targets, files: list[Path], bad_graph: BadGraphs
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
        return path.is_file() or (
            path.is_dir() and (_is_tu_folder(path) or _is_readable(path) or is_shards(path))
        )
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


def _load_path(path: Path, cache: bool, options: ReadOptions) -> Graphs:
    if not _is_tu_folder(path) and _is_readable(path):
        return read_graphs(path, options)
    if is_shards(path) or (path.suffix == ".saen" and not path.is_dir()):
        stored: Graphs = _load_stored(path, "graphs", options)
        return stored
    if path.suffix == ".conllu":
        raise FileError(
            "documents, not graphs: train, evaluate and predict read them as they are", path=path
        )
    if path.is_file() and path.suffix != ".zip" and not zipfile.is_zipfile(path):
        suffixes = ", ".join((".saen", ".zip", *SUFFIXES))
        raise FileError(f"unknown format (known suffixes: {suffixes})", path=path)
    if path.is_dir() and not _is_tu_folder(path) and not any(path.glob("*/*_A.txt")):
        raise FileError(
            "no graphs in this folder: expected TUDataset files (NAME_A.txt, …) or one graph per "
            f"file ({', '.join(ONE_GRAPH_SUFFIXES)}){_elsewhere(path)}",
            path=path,
        )
    tu = _tu_options(path.name, options)
    parsed = _parsed_path(path, **tu) if cache else None
    if parsed is not None:
        try:
            copy = container.load(parsed)
            if isinstance(copy, Graphs):
                return copy
        except FileError:
            pass  # no copy yet, or a damaged one: read the text (again)
    graphs = read_tu(path, **tu)
    _store_parsed(graphs, parsed)
    return graphs


def _elsewhere(folder: Path) -> str:
    """Where a folder without graphs of its own has some: a file, or folders in it."""
    inside = sorted(folder.iterdir())
    files = [file for file in inside if file.is_file() and _is_readable(file)]
    if files:
        edges = [file for file in files if file.stem.endswith("edges")]
        return f"; did you mean {(edges or files)[0]}?"
    below = [each.name for each in inside if each.is_dir() and _holds_graphs(each)]
    names = ", ".join(below[:3])
    return f"; folders in it ({names}) are not read: move their files here" if below else ""


def _load_stored(path: Path, takes: str, options: ReadOptions) -> Any:
    """The content of shards or of a .saen file, which must be of this kind."""
    options.only(path.name)
    data = read_shards(path).load() if is_shards(path) else container.load(path)
    if not isinstance(data, KINDS[takes]):
        raise FileError(f"contains a {type(data).__name__}, not {KINDS[takes].__name__}", path=path)
    return data


def _tu_options(name: str, options: ReadOptions) -> dict[str, Any]:
    options.only(name, "directed", "target")
    return {"directed": options.directed, "target": options.target}


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
            stacklevel=5,
        )
