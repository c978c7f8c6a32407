"""Tables that are written as they come: CSV, JSON lines or Parquet, whole or not at all."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import pandas as pd

from saen._util.arrays import Array
from saen._util.atomic import atomic_write
from saen.errors import FileError, InputError, MissingExtraError

if TYPE_CHECKING:
    from types import ModuleType

Columns = Mapping[str, Array]
"""Named columns of equal length."""
Write = Callable[[Columns], None]
"""Adds rows to a table. The first call decides its columns."""

FORMATS = (".csv", ".jsonl", ".parquet")
# Networks compute with 7 significant digits; more would only be noise.
_DIGITS = "%.7g"


@contextmanager
def open_table(path: Path | None) -> Iterator[Write]:
    """A table to add rows to, in the format that the suffix names; None is CSV on stdout.

    A file takes its place when the block is done; a block that fails leaves what was there before.

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


def read_table(path: Path) -> dict[str, Array]:
    """The columns of a .csv or .parquet file; `FileError` for what is none.

    >>> file = getfixture("tmp_path") / "table.csv"
    >>> _ = file.write_text("graph,target\\n0,yes\\n1,no\\n")
    >>> {name: column.tolist() for name, column in read_table(file).items()}
    {'graph': [0, 1], 'target': ['yes', 'no']}
    """
    try:
        if path.suffix == ".parquet":
            frame = import_pyarrow("pyarrow.parquet").read_table(path).to_pandas()
        else:
            frame = pd.read_csv(path, keep_default_na=False)
    except FileNotFoundError:
        raise FileError("no such file", path=path) from None
    except (OSError, ValueError) as error:  # what pandas and pyarrow raise is of these kinds
        reason = str(error).partition("\n")[0]
        raise FileError(f"not readable as {path.suffix[1:]} ({reason})", path=path) from None
    return {str(name): _plain(frame[name]) for name in frame.columns}


def check_format(path: Path, formats: tuple[str, ...]) -> str:
    """The suffix of a path, if it is one of these."""
    suffix = path.suffix.lower()
    if suffix not in formats:
        raise InputError(f"cannot write {str(path)!r}: use {', '.join(formats)}")
    return suffix


def _plain(column: Any) -> Array:
    """Numbers, or strings as numpy has them."""
    values: Array = column.to_numpy()
    return values if values.dtype.kind in "iufb" else values.astype(str)


def _csv(file: IO[str]) -> Write:
    started = False

    def write(columns: Columns) -> None:
        nonlocal started
        frame = pd.DataFrame(dict(columns))
        frame.to_csv(
            file, header=not started, index=False, float_format=_DIGITS, lineterminator="\n"
        )
        file.flush()
        started = True

    return write


def _json_lines(file: IO[str]) -> Write:
    def write(columns: Columns) -> None:
        lists = [
            [float(_DIGITS % value) for value in column.tolist()]
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
    arrow, parquet = import_pyarrow("pyarrow"), import_pyarrow("pyarrow.parquet")
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


def import_pyarrow(name: str) -> ModuleType:
    """A module of pyarrow; `MissingExtraError` without the library."""
    from importlib import import_module

    try:
        return import_module(name)
    except ImportError as error:
        raise MissingExtraError("pyarrow", extra="parquet") from error
