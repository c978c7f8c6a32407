"""Edge lists: one graph per file, two node names per line."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from saen.errors import FileError
from saen.io.parsing.records import Record
from saen.io.parsing.text_files import read_text

SUFFIXES = (".edgelist", ".edges", ".txt")

_INTEGER = re.compile(r"-?[0-9]{1,4000}")


def read_edgelist(path: Path, directed: bool) -> Record:
    """Read one edge per line, separated by blanks, tabs or commas; a single name is a node.

    Nodes are sorted if all names are integers, else they are in the order of the file. `#` starts
    a comment. The `{}` of `networkx.write_edgelist` is allowed.

    >>> file = getfixture("tmp_path") / "path.edgelist"
    >>> _ = file.write_text("# a path and an isolated node\\n7 9\\n7, 8\\n5\\n")
    >>> record = read_edgelist(file, directed=False)
    >>> record.size, record.edges.tolist()
    (4, [[1, 3], [1, 2]])
    """
    lines = read_text(path).split("\n")
    rows = [line.partition("#")[0].replace(",", " ").split() for line in lines]
    if {len(row) for row in rows} - {0, 1, 2}:
        rows = [row[:-1] if len(row) == 3 and row[2] == "{}" else row for row in rows]
        for number, row in enumerate(rows, start=1):
            if len(row) > 2:
                message = (
                    f"{len(row)} columns, expected the two ends of an edge (weights and labels "
                    "stand in a table, GraphML or JSON lines)"
                )
                raise FileError(message, path=path, line=number)
    names = [*chain.from_iterable(rows)]
    if not names:
        raise FileError("no edges", path=path)
    numbers = all(map(_INTEGER.fullmatch, names))
    ids: Sequence[Any] = [*map(int, names)] if numbers else names
    place = {name: n for n, name in enumerate(sorted(set(ids)) if numbers else dict.fromkeys(ids))}
    ends = np.array([place[name] for name in ids], dtype=np.int64)
    widths = np.array([len(row) for row in rows])
    return Record(
        path,
        None,
        len(place),
        ends[np.repeat(widths == 2, widths)].reshape(-1, 2),
        directed=directed,
    )
