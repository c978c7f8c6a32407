"""The catalog of the paper's datasets: what they are, how large, with which settings."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Literal


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
    the digest of the zip that it serves, where that is known.
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
    text = (files("saen.io") / "catalog.toml").read_text(encoding="utf-8")
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
    """The entry of that name or alias, in whatever case it is written.

    >>> find_entry("d&d").name, find_entry("reddit-5k").name, find_entry("QM9")
    ('DD', 'REDDIT-MULTI-5K', None)
    """
    for entry in catalog().values():
        if name.casefold() in (known.casefold() for known in (entry.name, *entry.aliases)):
            return entry
    return None
