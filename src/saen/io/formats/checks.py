"""What a format cannot store, found before anything is written."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from saen._util.strings import plural
from saen.data.graphs import Graphs
from saen.errors import FileError, InputError
from saen.io.formats.tu import ENDINGS, NAMES_ENDING
from saen.io.libraries.plain_graphs import check_both_directions

TARGET_FILES = ("targets.csv", "labels.csv")
"""The tables of targets of a folder with one graph per file."""

_NOT_IN_XML = re.compile(r"[^\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_OF_GRAPHS = (".graphml", *TARGET_FILES, NAMES_ENDING, *ENDINGS)


def check_finite(graphs: Graphs) -> None:
    """Raise `InputError` for graphs with gaps, or none at all, which only .saen stores."""
    if not len(graphs):
        raise InputError("there are no graphs to write")
    for key in ("node_attributes", "edge_attributes", "targets"):
        column = getattr(graphs, key)
        if column is not None and column.dtype.kind == "f" and not np.isfinite(column).all():
            raise InputError(
                f"{key.replace('_', ' ')} contain NaN or infinity, which only .saen stores"
            )
    targets = graphs.targets
    if targets is not None and targets.ndim > 1 and targets.dtype.kind == "U":
        missing = int((targets == "").sum())
        if missing:
            raise InputError(f"targets have {plural(missing, 'gap')}, which only .saen stores")


def check_plain(graphs: Graphs, format: str) -> None:
    """Raise `InputError` unless a format with one target per graph and each edge once can do."""
    check_finite(graphs)
    targets = graphs.targets
    if targets is not None and (targets.ndim > 1 or targets.dtype.kind == "b"):
        raise InputError("targets must be one class or number per graph; only .saen stores others")
    if not graphs.directed:
        check_both_directions(graphs, format)


def check_storable(graphs: Graphs, format: str) -> None:
    """Raise `InputError` unless a format of named columns of values can store the graphs."""
    check_plain(graphs, format)
    for key in ("node_labels", "edge_labels", "targets"):
        column = getattr(graphs, key)
        if column is None or column.dtype.kind != "U":
            continue
        distinct = np.unique(column).tolist()
        if "" in distinct:
            raise InputError(f"{key.replace('_', ' ')}: {format} cannot store empty text")
        if format == "graphml" and any(_NOT_IN_XML.search(text) for text in distinct):
            raise InputError(f"{key.replace('_', ' ')}: a character that XML cannot store")


def check_replaceable(path: Path) -> None:
    """Raise `FileError` unless a path is absent or a folder with nothing but graphs."""
    if not path.exists():
        return
    if not path.is_dir():
        raise FileError("is a file, expected a folder", path=path)
    for file in sorted(path.iterdir()):
        if not file.is_file() or not file.name.endswith(_OF_GRAPHS):
            raise FileError(f"contains {file.name}, which would be lost", path=path)
