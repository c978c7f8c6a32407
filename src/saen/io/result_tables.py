"""Writing tables: of results, as they come, and of graphs."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from math import isfinite
from pathlib import Path
from typing import IO, Any, Protocol

from saen._util.arrays import Array
from saen._util.atomic import atomic_write
from saen._util.lazy import pd
from saen.errors import InputError
from saen.io.parsing.tables import pyarrow

FORMATS = (".csv", ".jsonl", ".parquet")
"""Tables that `open_table` writes."""

# Networks compute with 7 significant digits; more would only be noise.
_DIGITS = "%.7g"

Columns = Mapping[str, Array]
"""Named columns of equal length."""


class Write(Protocol):
    """Adds rows to a table. The first call decides its columns."""

    def __call__(self, columns: Columns, exact: Collection[str] = ()) -> None:
        """Add rows; `exact` columns have all digits of their numbers, others what is no noise."""


def beside(copied: Columns, computed: Columns) -> dict[str, Array]:
    """Columns of the input after the first of those computed, the id, and before the others.

    One that has the name of a computed column becomes `input_NAME`.

    >>> import numpy as np
    >>> one = np.ones(1)
    >>> list(beside({"mass": one, "id": one}, {"id": one, "prediction": one}))
    ['id', 'mass', 'input_id', 'prediction']
    """
    renamed = {f"input_{name}" if name in computed else name: copied[name] for name in copied}
    first = next(iter(computed))
    return {first: computed[first], **renamed, **computed}


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

    def write(columns: Columns, exact: Collection[str] = ()) -> None:
        nonlocal started
        if not started:
            rows.writerow(columns)
        cells = (_csv_cells(column, name in exact) for name, column in columns.items())
        rows.writerows(zip(*cells, strict=True))
        file.flush()
        started = True

    return write


def _csv_cells(column: Array, exact: bool) -> list[Any]:
    """As pandas writes them, which takes as long to import as to predict: nothing for missing."""
    if column.dtype.kind == "f":
        shown = [str(v).removesuffix(".0") if exact else _DIGITS % v for v in column.tolist()]
        return ["" if text == "nan" else text for text in shown]
    return [value if value == value else "" for value in column.tolist()]


def _json_lines(file: IO[str]) -> Write:
    def write(columns: Columns, exact: Collection[str] = ()) -> None:
        lists = [_json_cells(column, name in exact) for name, column in columns.items()]
        for row in zip(*lists, strict=True):
            file.write(json.dumps(dict(zip(columns, row, strict=True))) + "\n")
        file.flush()

    return write


def _json_cells(column: Array, exact: bool) -> list[Any]:
    if column.dtype.kind != "f":
        return column.tolist()  # type: ignore[no-any-return]
    return [
        (value if exact else float(_DIGITS % value)) if isfinite(value) else None
        for value in column.tolist()
    ]


@contextmanager
def _parquet(path: Path) -> Iterator[Write]:
    arrow, parquet = pyarrow()
    writer: Any = None

    def write(columns: Columns, exact: Collection[str] = ()) -> None:
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
