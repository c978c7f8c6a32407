"""The catalog of the paper's datasets, and downloads from the public TUDataset site."""

from __future__ import annotations

import hashlib
import re
import time
import tomllib
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import Literal

import numpy as np

from saen._util.atomic import make_folder, scratch_folder
from saen._util.progress import bar
from saen._util.strings import human_bytes
from saen.data.graphs import Graphs
from saen.errors import FileError
from saen.io.formats.tu import TargetFile, read_tu
from saen.io.store.cache import cache_folder

BASE_URL = "https://www.chrsmrrs.com/graphkerneldatasets"

MAX_BYTES = 2**31
"""Of a download."""
MAX_SECONDS = 1800.0
"""That a download may take in all."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]*")


@dataclass(frozen=True)
class PaperStatistics:
    """A row of the paper's table of statistics."""

    graphs: int
    average_nodes: float
    average_max_degree: float


@dataclass(frozen=True)
class CatalogEntry:
    """One dataset of the catalog.

    `graphs` and `classes` are exact counts; `radii` and `node_labels` are the paper's settings for
    the ego decomposition; `served` says whether the public TUDataset site has it, and `sha256` is
    the `content_digest` of the copy that the results of saen were computed on.
    """

    name: str
    title: str
    group: Literal["social", "bioinformatics"]
    task: Literal["classification"]
    graphs: int
    classes: int
    radii: tuple[int, ...]
    node_labels: str
    paper: PaperStatistics | None = None
    served: bool = True
    sha256: str | None = None
    note: str = ""
    aliases: tuple[str, ...] = ()


@cache
def catalog() -> Mapping[str, CatalogEntry]:
    """The datasets by name, in the order of the paper's tables.

    >>> entry = catalog()["IMDB-MULTI"]
    >>> entry.graphs, entry.classes, entry.radii, entry.node_labels
    (1500, 3, (0, 1, 2), 'degree')
    """
    text = (files("saen.io.sources") / "catalog.toml").read_text(encoding="utf-8")
    entries = {}
    for name, fields in tomllib.loads(text).items():
        paper = fields.pop("paper", None)
        entries[name] = CatalogEntry(
            name=name,
            paper=PaperStatistics(**paper) if paper else None,
            radii=tuple(fields.pop("radii")),
            aliases=tuple(fields.pop("aliases", ())),
            **fields,
        )
    return MappingProxyType(entries)


def find_entry(name: str) -> CatalogEntry | None:
    """The entry with that name or alias, in upper or lower case.

    >>> find_entry("d&d").name, find_entry("reddit-5k").name, find_entry("QM9")
    ('DD', 'REDDIT-MULTI-5K', None)
    """
    for entry in catalog().values():
        if name.casefold() in (known.casefold() for known in (entry.name, *entry.aliases)):
            return entry
    return None


# -- downloads ---------------------------------------------------------------------------------


class DownloadError(Exception):
    """A dataset could not be downloaded."""


class OtherVersionWarning(UserWarning):
    """A downloaded dataset is not the copy that the results of saen were computed on."""


def content_digest(graphs: Graphs) -> str:
    """The SHA-256 digest of edges, node labels and targets, in their order.

    It does not depend on how a zip was packed or on how its text was written.
    """
    state = hashlib.sha256()
    for key in ("node_offsets", "indptr", "indices", "node_labels", "targets"):
        column = getattr(graphs, key)
        if column is None:
            continue
        dtype = {"U": np.str_, "f": "<f8"}.get(column.dtype.kind, "<i8")
        plain = np.ascontiguousarray(column.astype(dtype))
        state.update(f"{key} {plain.dtype.str} {plain.shape} ".encode())
        state.update(plain.view(np.uint8).data if plain.size else b"")
    return state.hexdigest()


def download_path(name: str) -> Path:
    """Where the download of a dataset is kept."""
    return cache_folder() / "datasets" / f"{name}.zip"


def download(
    name: str,
    entry: CatalogEntry | None,
    *,
    directed: bool = False,
    target: TargetFile | None = None,
    progress: bool | None = None,
) -> Graphs:
    """Download a dataset from the TUDataset site and keep it in the cache.

    Only a file that can be read, with the numbers of graphs and classes of the catalog, is kept;
    if its content is not what the catalog knows, an `OtherVersionWarning` says so. Raises
    `DownloadError`, also for what is too large or takes too long.
    """
    if entry is not None and not entry.served:
        raise DownloadError(f"not available from the TUDataset site: {entry.note}")
    if not _NAME.fullmatch(name):
        raise DownloadError("not a name that the TUDataset site uses")
    url, final = f"{BASE_URL}/{name}.zip", download_path(name)
    try:
        make_folder(final.parent)
        with scratch_folder(final) as folder:
            file = _retrieve(url, folder, progress)
            graphs = _read_checked(file, url, entry, directed, target)
            file.chmod(0o644)  # temporary files are private, a cache need not be
            file.replace(final)
    except (OSError, FileError) as error:
        reason = getattr(error, "strerror", None) or getattr(error, "reason", error)
        raise DownloadError(
            f"{url}: {final.parent} is not writable ({reason}); set SAEN_CACHE to a folder that is"
        ) from error
    return graphs


def _retrieve(url: str, folder: Path, progress: bool | None) -> Path:
    from urllib3.exceptions import HTTPError

    file = folder / Path(url).name
    try:
        _fetch(url, file, progress)
        return file
    except (OSError, HTTPError) as error:  # OSError is the base of all errors of requests
        status = getattr(getattr(error, "response", None), "status_code", None)
        if status == 404:
            reason = "the site has no dataset of that name"
        elif status is not None:
            reason = f"the site answered with error {status}"
        else:
            reason = f"the download failed ({type(error).__name__}); are you online?"
        raise DownloadError(f"{url}: {reason}") from error


def _fetch(url: str, out: Path, progress: bool | None) -> None:
    """Write what is at a URL to a file, up to `MAX_BYTES` and for up to `MAX_SECONDS`.

    A URL of HTTPS may redirect to others of HTTPS only.
    """
    import requests

    deadline = time.monotonic() + MAX_SECONDS
    with requests.get(url, stream=True, timeout=(10, 60)) as response:
        response.raise_for_status()
        visited = [url, *(each.url for each in response.history), response.url]
        if url.startswith("https:") and not all(each.startswith("https:") for each in visited):
            raise DownloadError(f"{url}: the site redirects to an address that is not HTTPS")
        announced = _announced(response.headers.get("Content-Length", ""))
        received = 0
        with (
            bar(Path(url).name, announced, progress) as update,
            out.open("wb") as file,
        ):
            # As it arrives: a chunk of a given size could take for ever to fill.
            while chunk := response.raw.read1(2**16, decode_content=True):
                received += len(chunk)
                if max(received, announced) > MAX_BYTES:
                    raise DownloadError(f"{url}: larger than {human_bytes(MAX_BYTES)}")
                if time.monotonic() > deadline:
                    raise DownloadError(f"{url}: not complete after {MAX_SECONDS:g} seconds")
                file.write(chunk)
                update(received)
    if received < announced:
        raise requests.exceptions.ConnectionError("the connection was closed")


def _announced(length: str) -> int:
    """The bytes that a site says it sends, 0 if it says nothing that can be understood."""
    return int(length) if re.fullmatch("[0-9]{1,18}", length) else 0


def _read_checked(
    file: Path, url: str, entry: CatalogEntry | None, directed: bool, target: TargetFile | None
) -> Graphs:
    """The graphs in a downloaded file, which must match the catalog."""
    try:
        graphs = read_tu(file, directed=directed, target=target)
    except FileError as error:
        reason = str(error).replace(str(file), url)
        raise DownloadError(f"the file is not a valid dataset: {reason}") from error
    if entry is not None:
        targets = graphs.targets
        n_classes = len(set(targets.tolist())) if targets is not None and targets.ndim == 1 else 0
        if (len(graphs), n_classes) != (entry.graphs, entry.classes):
            raise DownloadError(
                f"{url}: the file has {len(graphs)} graphs in {n_classes} classes, but "
                f"{entry.name} has {entry.graphs} in {entry.classes}"
            )
        as_usual = not directed and target is None
        if entry.sha256 and as_usual and content_digest(graphs) != entry.sha256:
            warnings.warn(
                f"{url} has as many graphs and classes as {entry.name} should have, but is "
                "another version than that of saen's published results: numbers may differ",
                OtherVersionWarning,
                stacklevel=2,
            )
    return graphs
