"""Writing tables: of results, as they come, and of graphs."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from math import isfinite
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from saen._util.arrays import Array
from saen._util.atomic import atomic_write
from saen._util.lazy import LazyModule
from saen.errors import InputError
from saen.io.parsing.tables import pyarrow

if TYPE_CHECKING:
    import pandas as pd
else:
    pd = LazyModule("pandas")

FORMATS = (".csv", ".jsonl", ".parquet")
"""Tables that `open_table` writes."""

# Networks compute with 7 significant digits; more would only be noise.
_DIGITS = "%.7g"

Columns = Mapping[str, Array]
"""Named columns of equal length."""
Write = Callable[[Columns], None]
"""Adds rows to a table. The first call decides its columns."""


def write_table(columns: Columns, path: Path, suffix: str) -> None:
    """Write a table that `read_table` reads back exactly, in the format of the suffix."""
    frame = pd.DataFrame(columns)
    if suffix == ".parquet":
        pyarrow()
        frame.to_parquet(path, engine="pyarrow", index=False)
        return
    separator = "\t" if suffix == ".tsv" else ","
    with path.open("w", encoding="utf-8", newline="") as out:
        out.write(separator.join(frame.columns) + "\n")
        frame.to_csv(
            out,
            sep=separator,
            header=False,
            index=False,
            lineterminator="\n",
            quoting=csv.QUOTE_NONNUMERIC,  # keeps leading and trailing blanks
        )


@contextmanager
def open_table(path: Path | None) -> Iterator[Write]:
    """Open a table to add rows to, in the format of the suffix; None writes CSV to stdout.

    The file is replaced when the block ends; if the block fails, the old file stays.

    >>> import numpy as np
    >>> file = getfixture("tmp_path") / "table.csv"
    >>> with open_table(file) as write:
    ...     write({"graph": np.array([0]), "p": np.array([0.25])})
    ...     write({"graph": np.array([1]), "p": np.array([1 / 3])})
    >>> print(file.read_text())
    graph,p
    0,0.25
    1,0.3333333
    <BLANKLINE>
    """
    if path is None:
        yield _csv(sys.stdout)
        return
    suffix = check_format(path, FORMATS)
    if suffix == ".parquet":
        with atomic_write(path) as temporary, _parquet(temporary) as write:
            yield write
        return
    with atomic_write(path) as temporary, temporary.open("w", encoding="utf-8") as file:
        yield _csv(file) if suffix == ".csv" else _json_lines(file)


def check_format(path: Path, formats: tuple[str, ...]) -> str:
    """The suffix of a path; `InputError` unless it is one of `formats`."""
    suffix = path.suffix.lower()
    if suffix not in formats:
        raise InputError(f"cannot write {str(path)!r}: use {', '.join(formats)}")
    return suffix


def _csv(file: IO[str]) -> Write:
    started, rows = False, csv.writer(file, lineterminator="\n")

    def write(columns: Columns) -> None:
        nonlocal started
        if not started:
            rows.writerow(columns)
        rows.writerows(zip(*(_csv_cells(column) for column in columns.values()), strict=True))
        file.flush()
        started = True

    return write


def _csv_cells(column: Array) -> list[Any]:
    """As pandas writes them, which takes as long to import as to predict: nothing for missing."""
    if column.dtype.kind == "f":
        return [_DIGITS % value if value == value else "" for value in column.tolist()]
    return [value if value == value else "" for value in column.tolist()]


def _json_lines(file: IO[str]) -> Write:
    def write(columns: Columns) -> None:
        lists = [
            [float(_DIGITS % value) if isfinite(value) else None for value in column.tolist()]
            if column.dtype.kind == "f"
            else column.tolist()
            for column in columns.values()
        ]
        for row in zip(*lists, strict=True):
            file.write(json.dumps(dict(zip(columns, row, strict=True))) + "\n")
        file.flush()

    return write


@contextmanager
def _parquet(path: Path) -> Iterator[Write]:
    arrow, parquet = pyarrow()
    writer: Any = None

    def write(columns: Columns) -> None:
        nonlocal writer
        table = arrow.table({name: arrow.array(column) for name, column in columns.items()})
        if writer is None:
            writer = parquet.ParquetWriter(path, table.schema)
        writer.write_table(table)

    try:
        yield write
    finally:
        if writer is not None:
            writer.close()
