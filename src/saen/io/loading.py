"""Finding a dataset by name or path: local copies first, then the public TUDataset site."""

from __future__ import annotations

import difflib
import hashlib
import os
import re
import sys
import tempfile
import warnings
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from saen.data.documents import Documents
from saen.data.graphs import Graphs
from saen.data.nested import NestedData
from saen.errors import DatasetNotFoundError, FileError, InputError
from saen.io import container
from saen.io.catalog import CatalogEntry, catalog, find_entry
from saen.io.folder import SUFFIXES as IN_FOLDERS
from saen.io.problems import Report
from saen.io.reading import JSON_LINES, SUFFIXES, read_graphs, reads
from saen.io.tu import ENDINGS, Target, read_tu

BASE_URL = "https://www.chrsmrrs.com/graphkerneldatasets"
GENERATED = "threads"

# Part of the key of every cached copy: to be raised whenever the same text reads differently.
_PARSER_VERSION = 1

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]*")


class CacheWarning(UserWarning):
    """The cache could not be written; everything works, but the next load will be slow again."""


def load_dataset(
    name_or_path: str | os.PathLike[str],
    *,
    directed: bool = False,
    target: Target | None = None,
    cache: bool = True,
    progress: bool | None = None,
    nodes: str | os.PathLike[str] | None = None,
    targets: str | os.PathLike[str] | None = None,
    skip_bad: bool = False,
    report: Report | None = None,
) -> Graphs:
    """Load a collection of graphs by name or from a file.

    Looks for, in this order: a path (a folder or a zip in TUDataset's text format, a `.saen` file
    of graphs, or whatever `saen.io.read_graphs` reads); `NAME.zip` or `NAME/` in the folders
    of `$SAEN_DATA`; the user's cache; the generated collection `"threads"`; the public TUDataset
    site, from which a download is checked and kept in the cache. The names of the catalog may be
    written in any case.

    `directed` and `target` are those of `read_tu`. Parsed TUDataset text is kept in a binary file
    under `$SAEN_CACHE` (by default the system's folder for caches), keyed by content; `cache=False`
    neither reads nor writes it. `progress` shows a bar, by default on terminals. The other options
    are those of `read_graphs`: `nodes` and `targets` for tables beside a table of edges, `skip_bad`
    and `report` for bad graphs. TUDataset text and binary files are read whole or not at all.

    Raises `DatasetNotFoundError`, which lists every place looked at, and `FileError` for a file
    that cannot be read.

    >>> load_dataset("threads")
    Graphs(threads: 300 graphs, ...; 2 classes)
    """
    options = {"nodes": nodes, "targets": targets, "skip_bad": skip_bad, "report": report}
    path = _as_path(name_or_path)
    if path is not None:
        return _load_file(path, directed, target, cache, progress=progress, **options)
    entry = find_entry(str(name_or_path))
    name = entry.name if entry else str(name_or_path)
    local = locate(name)
    if local is not None:
        return _load_file(local, directed, target, cache, progress=progress, **options)
    _refuse_tables(name, nodes, targets)
    if name.casefold() == GENERATED:
        from saen.io.threads import generate_threads

        _refuse_options(GENERATED, directed, target)
        return generate_threads()
    try:
        return _download(name, entry, directed, target, cache, progress)
    except _UnavailableError as error:
        raise _not_found(name, entry, str(error)) from None


def load_data(
    name_or_path: str | os.PathLike[str],
    takes: str = "graphs",
    *,
    skip_bad: bool = False,
    report: Report | None = None,
) -> Graphs | Documents | NestedData:
    """Load what a decomposition takes: graphs, documents or nested structures.

    - `takes="graphs"`: `load_dataset`, with its `skip_bad` and `report`;
    - `takes="documents"`: `Documents` from a `.conllu` file;
    - `takes="nested"`: `NestedData` from a `.jsonl` file of nested structures, or
      `"stdlib-functions"`.

    Documents and nested structures are read whole or not at all.

    >>> load_data("threads")
    Graphs(threads: 300 graphs, ...; 2 classes)
    """
    path = Path(name_or_path).expanduser()
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

        if path.suffix not in JSON_LINES:
            raise InputError(
                "nested structures are read from .jsonl files, or generated by the name "
                f"stdlib-functions, not from {name_or_path}"
            )
        return read_nested(path)
    raise InputError(f"takes is graphs, documents or nested, not {takes!r}")


def locate(name: str) -> Path | None:
    """The local copy that `load_dataset` would read for a name of a dataset; None without one."""
    entry = find_entry(name)
    for place in _places(entry.name if entry else name):
        if _holds_dataset(place):
            return place
    return None


def cache_folder() -> Path:
    """Where downloads and parsed copies are kept: `$SAEN_CACHE`, or the system's cache folder."""
    if os.environ.get("SAEN_CACHE"):
        return Path(os.environ["SAEN_CACHE"]).expanduser()
    import pooch  # type: ignore[import-untyped]

    return Path(pooch.os_cache("saen"))


# -- local files -------------------------------------------------------------------------------


def _as_path(name_or_path: str | os.PathLike[str]) -> Path | None:
    """The path, if it is one rather than a name."""
    path = Path(name_or_path).expanduser()
    explicit = (
        not isinstance(name_or_path, str)
        or len(path.parts) != 1
        or path.is_absolute()
        or path.suffix in (".zip", ".saen", *SUFFIXES)
        or name_or_path.endswith(("/", os.sep))
    )
    # A folder that only happens to have the name of a dataset must not stand in its way.
    return path if explicit or _holds_dataset(path) else None


def _holds_dataset(path: Path) -> bool:
    try:
        return path.is_file() or (path.is_dir() and (_is_tu_folder(path) or reads(path)))
    except (OSError, FileError):
        return False


def _is_tu_folder(path: Path) -> bool:
    return path.is_dir() and any(path.glob("*_A.txt"))


def _data_folders() -> list[Path]:
    folders = os.environ.get("SAEN_DATA", "").split(os.pathsep)
    return [Path(folder).expanduser() for folder in folders if folder]


def _places(name: str) -> Iterator[Path]:
    for folder in _data_folders():
        yield folder / f"{name}.zip"
        yield folder / name
    yield _download_path(name)


def _load_file(
    path: Path, directed: bool, target: Target | None, cache: bool, **reading: Any
) -> Graphs:
    if not _is_tu_folder(path) and reads(path):
        if target is not None:
            raise InputError(f"{path.name}: the option target is for TUDataset text only")
        return read_graphs(path, directed=directed, **reading)
    _refuse_tables(path.name, reading["nodes"], reading["targets"])
    if path.suffix == ".saen" and not path.is_dir():
        _refuse_options(path.name, directed, target)
        loaded = container.load(path)
        if not isinstance(loaded, Graphs):
            raise FileError(
                f"holds a {type(loaded).__name__}, not a collection of graphs", path=path
            )
        return loaded
    if path.is_file() and path.suffix != ".zip" and not zipfile.is_zipfile(path):
        raise FileError(_unknown(path), path=path)
    if path.is_dir() and not _is_tu_folder(path) and not any(path.glob("*/*_A.txt")):
        raise FileError(
            "no graphs inside: expected the files of a TUDataset (NAME_A.txt and so on), or one "
            f"graph per file ({', '.join(IN_FOLDERS)})",
            path=path,
        )
    parsed = _parsed_path(path, directed, target) if cache else None
    if parsed is not None:
        try:
            copy = container.load(parsed)
            if isinstance(copy, Graphs):
                return copy
        except FileError:
            pass  # not there yet, or damaged: read the text (again)
    graphs = read_tu(path, directed=directed, target=target)
    if parsed is not None:
        _keep(graphs, parsed)
    return graphs


def _unknown(path: Path) -> str:
    if path.suffix == ".conllu":
        return "documents, not graphs: take a decomposition of documents, such as text"
    endings = ", ".join((".saen", ".zip", *SUFFIXES))
    return f"no format of graphs is known by this name (endings are {endings})"


def _refuse_tables(name: str, nodes: object, targets: object) -> None:
    if nodes is not None or targets is not None:
        raise InputError(
            f"{name}: the options nodes and targets are for tables of edges and folders"
        )


def _refuse_options(name: str, directed: bool, target: Target | None) -> None:
    if directed or target is not None:
        raise InputError(f"{name} is what it is: directed and target are for TUDataset text only")


# -- the cache of parsed text ------------------------------------------------------------------


def _parsed_path(path: Path, directed: bool, target: Target | None) -> Path | None:
    """Where the parsed copy of this content, read in this way, is kept."""
    key = hashlib.blake2b(f"{_PARSER_VERSION} {directed} {target}".encode(), digest_size=16)
    try:
        if path.is_dir():
            for file in sorted(path.iterdir()):
                if file.name.endswith(ENDINGS):
                    key.update(b"\n" + os.fsencode(file.name) + b" " + _digest(file))
        else:
            key.update(b"\n" + _digest(path))
    except OSError:
        return None  # the reader will say what is wrong
    return cache_folder() / "parsed" / f"{path.resolve().stem}-{key.hexdigest()}.saen"


def _digest(path: Path) -> bytes:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").digest()


def _keep(graphs: Graphs, parsed: Path) -> None:
    try:
        parsed.parent.mkdir(parents=True, exist_ok=True)
        container.save(graphs, parsed)
    except (OSError, FileError) as error:
        warnings.warn(
            f"the parsed dataset could not be cached ({error}); set SAEN_CACHE to a folder that "
            "can be written, or pass cache=False",
            CacheWarning,
            stacklevel=4,
        )


# -- downloading -------------------------------------------------------------------------------


class _UnavailableError(Exception):
    """Why a download came to nothing."""


def _download_path(name: str) -> Path:
    return cache_folder() / "datasets" / f"{name}.zip"


def _download(
    name: str,
    entry: CatalogEntry | None,
    directed: bool,
    target: Target | None,
    cache: bool,
    progress: bool | None,
) -> Graphs:
    if entry is not None and not entry.served:
        raise _UnavailableError(f"the TUDataset site does not have it: {entry.note}")
    if not _NAME.fullmatch(name):
        raise _UnavailableError("the TUDataset site has no such names")
    url = f"{BASE_URL}/{name}.zip"
    final = _download_path(name)
    try:
        final.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary_name = tempfile.mkstemp(dir=final.parent, prefix=f".{name}.")
    except OSError as error:
        raise _UnavailableError(
            f"{url}: no download, because {final.parent} cannot be written ({error.strerror}); "
            "set SAEN_CACHE to a folder that can"
        ) from error
    os.close(handle)
    temporary = Path(temporary_name)
    try:
        _fetch(url, temporary, progress)
        graphs = _checked(temporary, url, entry, directed, target)
        temporary.chmod(0o644)  # temporary files are private, a cache need not be
        temporary.replace(final)
    finally:
        temporary.unlink(missing_ok=True)
    parsed = _parsed_path(final, directed, target) if cache else None
    if parsed is not None:
        _keep(graphs, parsed)
    return graphs


def _fetch(url: str, file: Path, progress: bool | None) -> None:
    import pooch

    with _progress_bar(
        Path(url).name, sys.stderr.isatty() if progress is None else progress
    ) as bar:
        download = pooch.HTTPDownloader(
            progressbar=bar or False, chunk_size=2**16, timeout=(10, 60)
        )
        try:
            download(url, str(file), None)
        except OSError as error:  # the errors of requests are such
            status = getattr(getattr(error, "response", None), "status_code", None)
            if status == 404:
                reason = "the site has no dataset of that name"
            elif status is not None:
                reason = f"the site answered with error {status}"
            else:
                reason = f"the download failed ({type(error).__name__}); are you online?"
            raise _UnavailableError(f"{url}: {reason}") from error


def _checked(
    file: Path, url: str, entry: CatalogEntry | None, directed: bool, target: Target | None
) -> Graphs:
    """The graphs in a downloaded file, if they are what the catalog says."""
    if entry is not None and entry.sha256 not in (None, _digest(file).hex()):
        raise _UnavailableError(f"{url}: the download is not the known file (its SHA-256 differs)")
    try:
        graphs = read_tu(file, directed=directed, target=target)
    except FileError as error:
        reason = str(error).replace(str(file), url)
        raise _UnavailableError(f"the download is not the dataset: {reason}") from error
    if entry is not None:
        targets = graphs.targets
        n_classes = len(set(targets.tolist())) if targets is not None and targets.ndim == 1 else 0
        counts = (len(graphs), n_classes)
        if counts != (entry.graphs, entry.classes):
            raise _UnavailableError(
                f"{url}: the download has {counts[0]} graphs in {counts[1]} classes, but "
                f"{entry.name} has {entry.graphs} in {entry.classes}"
            )
    return graphs


class _Bar:
    """A progress bar with the few methods that pooch calls."""

    def __init__(self, title: str) -> None:
        from rich import progress
        from rich.console import Console

        self._progress = progress.Progress(
            progress.TextColumn("{task.description}"),
            progress.BarColumn(),
            progress.DownloadColumn(),
            progress.TransferSpeedColumn(),
            progress.TimeRemainingColumn(),
            console=Console(stderr=True),
        )
        self._task = self._progress.add_task(title, total=None)

    @property
    def total(self) -> float | None:
        return self._progress.tasks[0].total

    @total.setter
    def total(self, n_bytes: int) -> None:
        self._progress.start()
        self._progress.update(self._task, total=n_bytes or None)

    def update(self, n_bytes: int) -> None:
        self._progress.advance(self._task, n_bytes)

    def reset(self) -> None:
        self._progress.update(self._task, completed=0)

    def close(self) -> None:
        self._progress.stop()


@contextmanager
def _progress_bar(title: str, shown: bool) -> Iterator[_Bar | None]:
    bar = _Bar(title) if shown else None
    try:
        yield bar
    finally:
        if bar is not None:
            bar.close()


def _not_found(name: str, entry: CatalogEntry | None, download: str) -> DatasetNotFoundError:
    folders = [
        f"  $SAEN_DATA: {folder / name}.zip and {folder / name}" for folder in _data_folders()
    ]
    looked = [
        f"  path: {Path.cwd() / name}",
        *(folders or ["  $SAEN_DATA: not set"]),
        f"  cache: {_download_path(name)}",
        f"  download: {download}",
    ]
    names = [*catalog(), GENERATED, *(alias for e in catalog().values() for alias in e.aliases)]
    folded = {known.casefold(): known for known in names}
    near = difflib.get_close_matches(name.casefold(), folded, n=3) if entry is None else []
    hints = [f"Did you mean {' or '.join(folded[match] for match in near)}?"] if near else []
    hints.append(
        f"To use a copy of your own, pass its path, or set SAEN_DATA to the folder of {name}.zip."
    )
    return DatasetNotFoundError(
        "\n".join([f"no dataset {name!r} could be loaded. Looked at", *looked, *hints])
    )
