"""Data by name or path, whole or in parts: the one place that finds them and chooses the format.

`load_dataset` loads graphs, `load_data` any kind of data, `stream_data` either in parts.
"""

from __future__ import annotations

import difflib
import os
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from saen._util.ahead import ahead
from saen._util.arrays import Array
from saen._util.atomic import expand_user
from saen._util.strings import plural
from saen.data.collection import concatenate_values, n_targets, repeated_ids
from saen.data.documents import Documents
from saen.data.graphs import Graphs
from saen.data.nested import NestedData
from saen.errors import DatasetNotFoundError, FileError, InputError
from saen.io.formats.format import Format
from saen.io.formats.graph_files import SUFFIXES as ONE_GRAPH_SUFFIXES
from saen.io.formats.registry import FORMATS, SUFFIXES, check_options, find_format
from saen.io.formats.tudataset import TUDATASET, keep_parsed
from saen.io.options import ReadOptions
from saen.io.parsing.records import bad_graphs, targets_for
from saen.io.parsing.tables import split_names
from saen.io.sources.catalog import (
    CatalogEntry,
    DownloadError,
    catalog,
    download,
    download_path,
    find_entry,
)
from saen.io.sources.generated import GENERATED
from saen.io.sources.local import data_folders, holds_data, local_path
from saen.io.store.shards import KINDS

AnyData = TypeVar("AnyData", Graphs, Documents, NestedData)


class DuplicateIdsWarning(UserWarning):
    """Two examples have the same id: nothing is lost, but outputs cannot tell them apart."""


def load_dataset(
    name_or_path: str | os.PathLike[str], options: ReadOptions | None = None, **settings: Any
) -> Graphs:
    """Load graphs by name or from files.

    Looks for, in this order: a path (a file or folder in one of the formats of
    `saen.io.formats.registry`); `NAME.zip` or `NAME/` in the folders of `$SAEN_DATA`; the cache;
    the generated dataset `"threads"`; the public TUDataset site, from which a download is checked
    and kept in the cache. Names of the catalog may be in upper or lower case. A path that exists is
    never downloaded as a name.

    Parameters
    ----------
    name_or_path : str | os.PathLike[str]
        The name of a dataset, or the path of a file or folder.
    options : ReadOptions | None, default=None
        How to read it. With `skip_bad`, a graph that cannot be read is skipped, and the error goes
        to `report`, or into a `SkippedWarning` at the end; without it, the first one raises.
        TUDataset and `.saen` files are read completely or not at all.
    **settings : Any
        Fields of `ReadOptions` as keywords, such as `target="activity"`, `task="regression"`,
        `directed=True` or `skip_bad=True`.

    Raises
    ------
    DatasetNotFoundError
        If there is no such dataset; the message lists all places that were searched.
    FileError
        If a file cannot be read.

    Examples
    --------
    >>> load_dataset("threads")
    Graphs(threads: 300 graphs, ...; 2 classes)
    """
    graphs: Graphs = load_data(name_or_path, "graphs", options, **settings)
    return graphs


def load_data(
    name_or_path: str | os.PathLike[str],
    takes: str = "graphs",
    options: ReadOptions | None = None,
    **settings: Any,
) -> Any:
    """Load the kind of data that a decomposition takes: graphs, documents or nested data.

    Documents and nested data are read completely or not at all.

    Parameters
    ----------
    name_or_path : str | os.PathLike[str]
        The name of a dataset, or the path of a file or folder.
    takes : str, default='graphs'
        What to load: `"graphs"`, `"documents"` or `"nested"`.
    options : ReadOptions | None, default=None
        How to read it; see `load_dataset`.
    **settings : Any
        Fields of `ReadOptions` as keywords.

    Examples
    --------
    >>> load_data("threads")
    Graphs(threads: 300 graphs, ...; 2 classes)
    """
    options = replace(options or ReadOptions(), **settings)
    if takes not in KINDS:
        raise InputError(f"takes must be graphs, documents or nested, not {takes!r}")
    path = local_path(name_or_path)
    if path is None or (str(path) in GENERATED and not path.exists()):
        data = _named(str(name_or_path), takes, options)
    else:
        format = _format(path, takes, options)
        check_options(path.name, options, format.options)
        partial = options.partial_targets
        with bad_graphs(options.skip_bad, options.report, partial_targets=partial) as bad_graph:
            data = format.read(path, options, bad_graph)
        if not isinstance(data, KINDS[takes]):
            found, wanted = type(data).__name__, KINDS[takes].__name__
            raise FileError(f"contains a {found}, not {wanted}", path=path)
    one = {"graphs": "graph", "documents": "document"}.get(takes, "example")
    _warn_repeated_ids(data.ids, one)
    return _with_named_columns(data, options)


def stream_data(
    name_or_path: str | os.PathLike[str], takes: str = "graphs", options: ReadOptions | None = None
) -> Iterator[Any]:
    """What `load_data` loads, in parts that are read while the caller works on the last one.

    JSON lines, tables of molecules, Parquet tables of edges that list the rows of each graph
    together, and shards come in several parts, everything else in one. A bad graph raises when its
    part is read.

    Parameters
    ----------
    name_or_path : str | os.PathLike[str]
        The name of a dataset, or the path of a file or folder.
    takes : str, default='graphs'
        What to load: `"graphs"`, `"documents"` or `"nested"`.
    options : ReadOptions | None, default=None
        How to read it; see `load_dataset`.

    Examples
    --------
    >>> file = getfixture("tmp_path") / "toy.jsonl"
    >>> _ = file.write_text('{"nodes": 3, "edges": [[0, 1], [1, 2]]}')
    >>> [*stream_data(file)]
    [Graphs(toy: 1 graph, 3 nodes, 2 edges, undirected)]
    """
    options = options or ReadOptions()
    path = local_path(name_or_path)
    format = None if path is None or not path.exists() else _format(path, takes, options)
    ids: list[Array] = []
    partial = options.partial_targets
    with bad_graphs(options.skip_bad, options.report, partial_targets=partial) as bad_graph:
        parts = None
        if format is not None and format.stream is not None and path is not None:
            check_options(path.name, options, format.options)
            if format.kind_of(path) != takes:
                raise FileError(f"contains {format.kind_of(path)}, not {takes}", path=path)
            parts = format.stream(path, replace(options, progress=False), bad_graph)
        for part in () if parts is None else ahead(parts):
            ids.append(part.ids)
            yield _with_named_columns(part, options)
    if parts is None:
        yield load_data(name_or_path, takes, options)
    else:
        _warn_repeated_ids(concatenate_values(ids), "graph" if takes == "graphs" else "example")


def data_kind(name_or_path: str | os.PathLike[str]) -> str:
    """What a name or path holds, from its suffix and first line, without reading the rest.

    `graphs`, `documents` or `nested`.

    >>> data_kind("threads"), data_kind("corpus.conllu")
    ('graphs', 'documents')
    """
    path = expand_user(name_or_path)
    if str(name_or_path) in GENERATED and not path.exists():
        return GENERATED[str(name_or_path)][0]
    format = find_format(path)
    return "graphs" if format is None else format.kind_of(path)


def _named(name: str, takes: str, options: ReadOptions) -> Any:
    """Data that are generated, or else downloaded."""
    entry = find_entry(name)
    known = entry.name if entry else name
    if known.casefold() in GENERATED:
        kind, generate = GENERATED[known.casefold()]
        if kind == takes:
            check_options(known, options)
            return generate()
        raise _other_kind(known, kind, takes)
    if takes != "graphs":
        raise _other_kind(known, "graphs", takes) if entry else _unknown(Path(name))
    check_options(known, options, TUDATASET.options)
    settings: dict[str, Any] = {"directed": options.directed, "target": options.target}
    try:
        graphs = download(known, entry, progress=options.progress, **settings)
    except DownloadError as error:
        raise _not_found(known, entry, str(error)) from None
    keep_parsed(graphs, download_path(known), options)
    return graphs


def _format(path: Path, takes: str, options: ReadOptions) -> Format:
    """The format of a path, which must hold what is asked for."""
    format = find_format(path, options, takes)
    if format is None:
        raise _unknown(path)
    # What a file of several kinds holds is seen when it is read.
    if isinstance(format.kind, str) and format.kind != takes:
        raise _other_kind(path, format.kind, takes)
    return format


def _other_kind(path: str | Path, kind: str, takes: str) -> FileError:
    # What a .saen file holds, it says itself.
    formats = [each for each in FORMATS if each.kind == takes or not isinstance(each.kind, str)]
    names = [name for name, (known, _) in GENERATED.items() if known == takes]
    listed = ", ".join(dict.fromkeys([*(s for each in formats for s in each.suffixes), *names]))
    return FileError(f"holds {kind}, not {takes}, which are read from {listed}", path=path)


def _with_named_columns(data: AnyData, options: ReadOptions) -> AnyData:
    """The data with the features that the options name, and with targets for the task."""
    names = options.names("features")
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
    names = data.target_names or tuple(split_names(options.target or ""))
    return data.with_targets(targets, names if len(names) == n_targets(targets) else ())


def _warn_repeated_ids(ids: Array, one: str) -> None:
    """Warn if two examples, each called `one`, have the same id."""
    repeated = repeated_ids(ids)
    if repeated:
        shown = ", ".join(map(repr, repeated[:3]))
        more = " …" if len(repeated) > 3 else ""
        warnings.warn(
            f"{plural(len(repeated), 'id')} used by more than one {one}: {shown}{more} "
            "(id=COLUMN names others)",
            DuplicateIdsWarning,
            stacklevel=4,
        )


# -- what is not there -------------------------------------------------------------------------


def _unknown(path: Path) -> FileError:
    """The error for a path in no known format."""
    if not path.exists():
        return FileError("no such file or folder", path=path)
    if path.is_file():
        return FileError(f"unknown format (known suffixes: {', '.join(SUFFIXES)})", path=path)
    return FileError(
        "no graphs in this folder: expected TUDataset files (NAME_A.txt, …) or one graph per "
        f"file ({', '.join(ONE_GRAPH_SUFFIXES)}){_elsewhere(path)}",
        path=path,
    )


def _elsewhere(folder: Path) -> str:
    """Where a folder without data of its own has some: a file, or folders in it."""
    inside = sorted(folder.iterdir())
    files = [file for file in inside if file.is_file() and file.suffix in SUFFIXES]
    if files:
        edges = [file for file in files if file.stem.endswith("edges")]
        return f"; did you mean {(edges or files)[0]}?"
    below = [each for each in inside if each.is_dir() and holds_data(each)]
    if len(below) == 1:
        return f"; did you mean {below[0]}?"
    names = ", ".join(each.name for each in below[:3])
    return f"; folders in it ({names}) are not read: move their files here" if below else ""


def _not_found(name: str, entry: CatalogEntry | None, reason: str) -> DatasetNotFoundError:
    folders = [f"  $SAEN_DATA: {folder / name}[.zip]" for folder in data_folders()]
    searched = [
        f"  path: {Path.cwd() / name}",
        *(folders or ["  $SAEN_DATA: not set"]),
        f"  cache: {download_path(name)}",
        f"  download: {reason}",
    ]
    names = [*catalog(), *GENERATED, *(alias for e in catalog().values() for alias in e.aliases)]
    folded = {known.casefold(): known for known in names}
    near = difflib.get_close_matches(name.casefold(), folded, n=3) if entry is None else []
    hints = [f"Did you mean {' or '.join(folded[match] for match in near)}?"] if near else []
    hints.append(
        f"To use your own copy, pass its path, or set SAEN_DATA to the folder of {name}.zip."
    )
    return DatasetNotFoundError(
        "\n".join([f"dataset {name!r} not found. Searched", *searched, *hints])
    )
