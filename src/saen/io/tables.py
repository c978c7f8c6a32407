"""Tables of rows and named columns: CSV, TSV and Parquet."""

from __future__ import annotations

import csv
import io
import re
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from saen._util.arrays import Array
from saen._util.strings import plural
from saen.errors import FileError, InputError, MissingExtraError
from saen.io.archive import FREE_BYTES, MAX_RATIO
from saen.io.records import Label
from saen.io.sources import FREE_CHARACTERS, check_width, read_bytes, read_text
from saen.io.tu import EXACT

SUFFIXES = (".csv", ".tsv", ".parquet")

MAX_COLUMNS = 1000

_WHOLE = re.compile(r"[+-]?[0-9]{1,4000}")
_REAL = re.compile(r"[+-]?([0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))([eE][+-]?[0-9]+)?")


class Table(ABC):
    """Columns by name; rows are counted from 0."""

    path: Path
    n_bytes: int
    columns: tuple[str, ...]
    broken: list[tuple[list[str], FileError]]
    """Rows with too many or too few columns, which are no rows of the table."""

    @abstractmethod
    def __len__(self) -> int:
        """The number of rows."""

    @abstractmethod
    def _column(self, column: str) -> pd.Series[Any]:
        """A column in the type that it has."""

    @abstractmethod
    def texts(self, column: str) -> pd.Series[str]:
        """A column as text; a missing value is empty."""

    @abstractmethod
    def place(self, row: int) -> str:
        """A row in words: its line where there are lines."""

    @abstractmethod
    def error(self, row: int, message: str) -> FileError:
        """The error for a row."""

    def values(self, column: str) -> pd.Series[Any]:
        """A column of whole numbers (int64), or as text where one value is none."""
        found = self._column(column)
        whole = found.dtype.kind in "iu" and (found.dtype != np.uint64 or found.max() < 2**63)
        return found.astype(np.int64) if whole else self.texts(column)

    def numbers(self, column: str) -> NDArray[np.float64]:
        """A column of numbers; NaN where there is no finite one."""
        found = self._column(column)
        if found.dtype.kind not in "iuf":
            found = pd.to_numeric(self.texts(column), errors="coerce")
        out = found.to_numpy(dtype=np.float64)
        return np.where(np.isfinite(out), out, np.nan)

    def labels(self, column: str, rows: NDArray[np.int64]) -> Array:
        """The labels in some rows: an array of whole numbers or of strings, shape (rows,)."""
        values = self.values(column).iloc[rows]
        if values.dtype.kind != "i" and len(rows) < len(self) and self._may_be_whole(column):
            # What was text may have been in the rows that are left out.
            whole = pd.to_numeric(values, errors="coerce")
            values = whole if whole.dtype == np.int64 else values
        if values.dtype.kind == "i":
            return values.to_numpy()
        longest = max(map(len, values), default=0)
        try:
            check_width(longest, len(values), self.n_bytes, f"values of the column {column}")
        except InputError as error:
            raise FileError(str(error), path=self.path) from None
        return values.to_numpy(dtype=object).astype(np.str_)

    def _may_be_whole(self, column: str) -> bool:
        """Whether text that looks like a whole number is one."""
        return True


def read_table(path: Path, required: Sequence[str] = ()) -> Table:
    """Read a table that has rows and the columns that are needed, by their names in small letters.

    >>> file = getfixture("tmp_path") / "labels.csv"
    >>> _ = file.write_text("Graph,label\\n1,yes\\n")
    >>> read_table(file, ["graph", "label"]).columns
    ('graph', 'label')
    """
    table: Table = _ParquetTable(path) if path.suffix == ".parquet" else _CsvTable(path)
    require(table, required)
    if not len(table):
        no_rows = FileError("no rows below the names of the columns", path=path)
        raise table.broken[0][1] if table.broken else no_rows
    return table


def require(table: Table, columns: Sequence[str]) -> None:
    """Raise `FileError` where a table does not have the columns that are needed."""
    for column in columns:
        if column not in table.columns:
            raise FileError(
                f"no column {column}: expected {', '.join(columns)}, found "
                f"{', '.join(table.columns)[:200]}",
                path=table.path,
            )


def label_values(texts: Sequence[str]) -> list[Label | None]:
    """Labels of graphs from text: numbers where all are, else text; None where it is empty.

    >>> label_values(["1", "", "0"]), label_values(["1", "x"]), label_values(["0.5", "1"])
    ([1, None, 0], ['1', 'x'], [0.5, 1])
    """
    known = [None if text.strip().casefold() in ("", "nan") else text.strip() for text in texts]
    numeric = [None if text is None else _number(text) for text in known]
    return list(numeric) if numeric.count(None) == known.count(None) else list(known)


def _number(text: str) -> int | float | None:
    if _WHOLE.fullmatch(text):
        return int(text) if abs(int(text)) < 2**63 else None
    return float(text) if _REAL.fullmatch(text) and abs(float(text)) < 2.0**1023 else None


# -- CSV ---------------------------------------------------------------------------------------


class _CsvTable(Table):
    """A file of separated values with a header, in UTF-8."""

    def __init__(self, path: Path) -> None:
        self._text = read_text(path)
        self._separator = "\t" if path.suffix == ".tsv" else ","
        self.path = path
        self.n_bytes = len(self._text)
        self.columns = _names(next(self._rows(), (1, []))[1], path)
        self.broken = []
        self._frame = self._read()

    def __len__(self) -> int:
        return len(self._frame)

    def _column(self, column: str) -> pd.Series[Any]:
        return self._frame[column]

    def texts(self, column: str) -> pd.Series[str]:
        found = self._frame[column]
        if pd.api.types.is_string_dtype(found):
            return found
        # Numbers, and yes and no, have lost how they were written.
        return self._parse(usecols=[self.columns.index(column)], dtype=str).iloc[:, 0]

    def place(self, row: int) -> str:
        return f"line {self._line(row)}"

    def error(self, row: int, message: str) -> FileError:
        return FileError(message, path=self.path, line=self._line(row))

    def _line(self, row: int) -> int:
        # Where odd quotes or lone carriage returns count as lines for one parser only, the last.
        return self._lines[min(row, len(self._lines) - 1)] if self._lines else 1

    def _read(self) -> pd.DataFrame:
        # More cells than characters: rows are broken, and to fill them up could take any memory.
        n_cells = self._text.count("\n") * len(self.columns)
        frame = None if n_cells > len(self._text) + FREE_CHARACTERS else self._parsed()
        if frame is None:
            self._take_out_broken()
            frame = self._parsed()
        if frame is None:
            raise FileError("not readable as CSV", path=self.path)
        frame.columns = pd.Index(self.columns)
        return frame

    def _parsed(self) -> pd.DataFrame | None:
        """The table, or None where a row is broken."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error", pd.errors.ParserWarning)
                frame = self._parse(**EXACT)
        except (ValueError, OverflowError, pd.errors.ParserWarning):
            return None
        return frame if frame.shape[1] == len(self.columns) else None

    def _parse(self, **options: Any) -> pd.DataFrame:
        frame: pd.DataFrame = pd.read_csv(
            io.StringIO(self._text),
            sep=self._separator,
            engine="c",
            skipinitialspace=True,
            na_filter=False,
            low_memory=False,
            index_col=False,
            **options,
        )
        return frame

    def _take_out_broken(self) -> None:
        """Row by row, leave only those that have all columns."""
        kept, lines = io.StringIO(), []
        writer = csv.writer(kept, delimiter=self._separator, lineterminator="\n")
        for line, fields in self._rows():
            if len(fields) == len(self.columns):
                writer.writerow(fields)
                lines.append(line)
            else:
                found = f"{plural(len(fields), 'column')}, expected {len(self.columns)}"
                self.broken.append((fields, FileError(found, path=self.path, line=line)))
        self._text = kept.getvalue()
        self._lines = lines[1:]

    def _rows(self) -> Iterator[tuple[int, list[str]]]:
        """The fields of every row that is not blank, and the line that it begins at."""
        reader = csv.reader(
            io.StringIO(self._text, newline=""),
            delimiter=self._separator,
            skipinitialspace=True,
            strict=True,
        )
        line = 1
        try:
            for fields in reader:
                if len(fields) > 1 or (fields and fields[0].strip(" \t")):
                    yield line, fields
                line = reader.line_num + 1
        except csv.Error as error:
            raise FileError(f"not readable as CSV ({error})", path=self.path, line=line) from None

    @cached_property
    def _lines(self) -> list[int]:
        return [line for line, _ in self._rows()][1:]


def _names(header: Sequence[str], path: Path) -> tuple[str, ...]:
    """The names of columns in small letters."""
    if len(header) > MAX_COLUMNS:
        raise FileError(f"{len(header):,} columns, expected at most {MAX_COLUMNS:,}", path=path)
    names = tuple(" ".join(name.split()).casefold() for name in header)
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise FileError(f"two columns are called {twice!r}", path=path)
    return names


# -- Parquet -----------------------------------------------------------------------------------


class _ParquetTable(Table):
    """A Parquet file, read by pyarrow."""

    def __init__(self, path: Path) -> None:
        arrow, parquet = pyarrow()
        data = read_bytes(path)
        if not data:
            raise FileError("the file is empty", path=path)
        self.path = path
        self.n_bytes = len(data)
        self.broken = []
        try:
            source = arrow.BufferReader(data)
            schema = parquet.read_schema(source)
            self.columns = _names(schema.names, path)
            texts = [f.name for f in schema if _is_text(arrow.types, f.type)]
            whole = [arrow.types.is_integer(field.type) for field in schema]
            self._whole = {c for c, is_whole in zip(self.columns, whole, strict=True) if is_whole}
            # Kept as codes of their distinct values: a few bytes may repeat a long text any times.
            file = parquet.ParquetFile(source, read_dictionary=texts, pre_buffer=False)
            self._check(file.metadata, schema, arrow.types)
            # In one thread: with several, one crashed after a damaged file had been refused.
            self._table = file.read(use_threads=False)
        except FileError:
            raise
        except Exception as error:
            # What pyarrow makes of a damaged file is an error of any kind.
            reason = " ".join(str(error).split())[:200] or type(error).__name__
            raise FileError(f"not readable as Parquet ({reason})", path=path) from None

    def _check(self, claims: Any, schema: Any, types: Any) -> None:
        groups = (claims.row_group(group).total_byte_size for group in range(claims.num_row_groups))
        claimed = claims.num_rows * claims.num_columns * 8 + sum(groups)
        if claimed > max(FREE_BYTES, MAX_RATIO * self.n_bytes):
            raise FileError(
                f"refused: {self.n_bytes:,} bytes that claim to hold {claims.num_rows:,} rows of "
                f"{plural(claims.num_columns, 'column')} look like a compression bomb",
                path=self.path,
            )
        for field in schema:
            number = types.is_integer(field.type) or types.is_floating(field.type)
            if not (number or types.is_boolean(field.type) or _is_text(types, field.type)):
                raise FileError(
                    f"the column {field.name} holds {field.type}, expected numbers or text",
                    path=self.path,
                )

    def __len__(self) -> int:
        return int(self._table.num_rows)

    def _column(self, column: str) -> pd.Series[Any]:
        arrow = self._table.column(self.columns.index(column))
        found: pd.Series[Any] = arrow.to_pandas(integer_object_nulls=True)
        return found

    def _may_be_whole(self, column: str) -> bool:
        return column in self._whole

    def texts(self, column: str) -> pd.Series[str]:
        codes, distinct = pd.factorize(self._column(column))
        texts = np.array([*map(str, distinct), ""], dtype=object)  # the last is for code -1
        return pd.Series(texts[codes], dtype=object)

    def place(self, row: int) -> str:
        return f"row {row}"

    def error(self, row: int, message: str) -> FileError:
        return FileError(f"row {row}: {message}", path=self.path)


def _is_text(types: Any, kind: Any) -> bool:
    value = kind.value_type if types.is_dictionary(kind) else kind
    return bool(types.is_string(value) or types.is_large_string(value))


def pyarrow() -> tuple[ModuleType, ModuleType]:
    """The library and its module for Parquet; `MissingExtraError` without it."""
    try:
        import pyarrow  # type: ignore[import-untyped]
        import pyarrow.parquet  # type: ignore[import-untyped]
    except ImportError:
        raise MissingExtraError("pyarrow", extra="parquet") from None
    return pyarrow, pyarrow.parquet
