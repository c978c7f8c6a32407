"""Which file or folder a name or a path means."""

from __future__ import annotations

import os
from pathlib import Path

from saen._util.atomic import expand_user
from saen._util.remote import is_file, is_remote
from saen.errors import FileError
from saen.io.formats.registry import SUFFIXES, find_format
from saen.io.sources.catalog import CatalogEntry, download_path, find_entry
from saen.io.sources.generated import GENERATED


def local_path(name_or_path: str | os.PathLike[str]) -> Path | None:
    """The file or folder that `load_data` would read; None for what it generates or downloads.

    A path that exists comes first, unless it is a folder without data and there is a local copy of
    a dataset with its name.
    """
    path = _explicit_path(name_or_path) or locate(str(name_or_path))
    if path is None and Path(name_or_path).exists():
        return Path(name_or_path)
    return path


def locate(name: str) -> Path | None:
    """The local copy that `load_data` would read for the name of a dataset, if there is one."""
    entry = find_entry(name)
    known = entry.name if entry else name
    copies = [folder / file for folder in data_folders() for file in (f"{known}.zip", known)]
    return next(filter(holds_data, [*copies, download_path(known)]), None)


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
    if path is not None and is_remote(path):
        if not (is_file(path / "shards.json") or is_file(path)):
            raise FileError("no such file, or folder of shards", path=path)
    elif path is not None and not path.exists() and str(name_or_path) not in GENERATED:
        raise FileError("no such file or folder", path=path)


def input_files(*sources: object) -> list[object]:
    """What a command reads, for `check_output`: paths, and for names their local copies."""
    return [*sources, *(locate(source) for source in sources if isinstance(source, str))]


def holds_data(path: Path) -> bool:
    """Whether there is a file, or a folder in a known format."""
    try:
        return path.is_file() or (path.is_dir() and find_format(path) is not None)
    except (OSError, FileError):
        return False


def data_folders() -> list[Path]:
    """The folders of `$SAEN_DATA`."""
    folders = os.environ.get("SAEN_DATA", "").split(os.pathsep)
    return [expand_user(folder) for folder in folders if folder]


def _explicit_path(name_or_path: str | os.PathLike[str]) -> Path | None:
    """The path, if it is one rather than a name."""
    path = expand_user(name_or_path)
    explicit = (
        not isinstance(name_or_path, str)
        or len(path.parts) != 1
        or path.is_absolute()
        or path.suffix in SUFFIXES
        or name_or_path.endswith(("/", os.sep))
    )
    # A folder without data must not hide a local dataset of the same name.
    return path if explicit or holds_data(path) else None
