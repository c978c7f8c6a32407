"""TUDatasets: folders and zips, of which a parsed copy is kept in the cache."""

from __future__ import annotations

import hashlib
import os
import shutil
import warnings
import zipfile
from pathlib import Path
from typing import Any

from saen._util.atomic import atomic_folder, atomic_write, scratch_folder
from saen.data.graphs import Graphs
from saen.errors import FileError
from saen.io.formats.checks import check_finite, check_replaceable
from saen.io.formats.format import Format
from saen.io.formats.tu import ENDINGS, READMES, TargetFile, read_tu, write_tu
from saen.io.options import ReadOptions
from saen.io.parsing.records import BadGraphs
from saen.io.store import container
from saen.io.store.cache import cache_folder

# Part of the key of every cached copy: to be raised whenever the same text is parsed differently.
_PARSER_VERSION = 2


class CacheWarning(UserWarning):
    """The cache could not be written: everything works, but the next load will be slow again."""


def read_tudataset(path: Path, options: ReadOptions, bad_graph: BadGraphs) -> Graphs:
    """Read a folder or a zip, or the copy of it that an earlier call has parsed."""
    settings: dict[str, Any] = {"directed": options.directed, "target": options.target}
    parsed = _parsed_path(path, **settings) if options.cache else None
    if parsed is not None:
        try:
            copy = container.load(parsed)
            if isinstance(copy, Graphs):
                return copy
        except FileError:
            pass  # no copy yet, or a damaged one: read the text (again)
    graphs = read_tu(path, **settings, partial_targets=options.partial_targets)
    if graphs.targets is not None or not options.partial_targets:  # the next one may need them
        _store_parsed(graphs, parsed)
    return graphs


def keep_parsed(graphs: Graphs, path: Path, options: ReadOptions) -> None:
    """Keep what was read from a path, so that `read_tudataset` need not parse it."""
    if options.cache:
        _store_parsed(graphs, _parsed_path(path, options.directed, options.target))  # type: ignore[arg-type]


def _parsed_path(path: Path, directed: bool, target: TargetFile | None) -> Path | None:
    """Where the parsed copy of this content, read with these options, is kept."""
    key = hashlib.blake2b(f"{_PARSER_VERSION} {directed} {target}".encode(), digest_size=16)
    try:
        if path.is_dir():
            for file in sorted(path.iterdir()):
                if file.name.endswith(ENDINGS) or file.name.lower() in READMES:
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


def _is_tudataset(path: Path, *_: object) -> bool:
    if path.is_dir():
        return any(path.glob("*_A.txt"))
    return path.is_file() and path.suffix == "" and zipfile.is_zipfile(path)


def _write(graphs: Graphs, path: Path) -> None:
    check_finite(graphs)
    if path.suffix == ".zip":
        with atomic_write(path) as temporary, scratch_folder(path) as scratch:
            write_tu(graphs, scratch, path.stem)
            _zip(scratch, temporary, path.stem)
        return
    check_replaceable(path)
    with atomic_folder(path) as folder:
        write_tu(graphs, folder, path.name)


def _zip(folder: Path, path: Path, name: str) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(folder.iterdir()):
            # Without the time of day, so that equal graphs make equal files.
            member = zipfile.ZipInfo(f"{name}/{file.name}")
            member.compress_type, member.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            member.file_size = file.stat().st_size
            with file.open("rb") as source, archive.open(member, "w") as sink:
                shutil.copyfileobj(source, sink)


TUDATASET = Format(
    "tu",
    "TUDataset files",
    (".zip",),
    "graphs",
    ("directed", "target"),
    read_tudataset,
    write=_write,
    holds=_is_tudataset,
    looks=_is_tudataset,
    folders=True,
)
