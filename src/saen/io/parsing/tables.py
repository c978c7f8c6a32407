"""Tables of rows and named columns, read from CSV, TSV and Parquet."""

from __future__ import annotations

import csv
import io
import re
import warnings
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from saen._util.arrays import Array, Floats, Ints
from saen._util.lazy import import_extra, pd
from saen._util.strings import boolean_text, did_you_mean, plural
from saen.errors import FileError, InputError
from saen.io.options import ReadOptions, TaskName
from saen.io.parsing.archive import FREE_BYTES, MAX_RATIO
from saen.io.parsing.records import TargetValue
from saen.io.parsing.text_files import (
    FREE_CHARACTERS,
    check_width,
    decoded,
    exact_floats,
    numbered_lines,
    read_bytes,
    read_text,
)

SUFFIXES = (".csv", ".tsv", ".parquet")
"""Tables that `read_table` reads."""

MAX_COLUMNS = 10_000
PARQUET_ROWS = 1 << 16
"""Rows of a Parquet file that are decoded at a time."""

GAPS = {"", "nan", "inf", "-inf"}
"""What stands in a column of numbers, but is none."""
MISSING = {"", "nan", "na", "n/a", "#n/a", "<na>", "null", "none", "-", "?"}
"""What stands for a missing target, where all others are numbers."""

_INTEGER = re.compile(r"[+-]?[0-9]{1,4000}")
_REAL = re.compile(r"[+-]?([0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))([eE][+-]?[0-9]+)?")


class Table(ABC):
    """Columns by name; rows are numbered from 0."""

    path: Path
    n_bytes: int
    frame: pd.DataFrame
    broken: list[tuple[list[str], FileError]]
    """Rows with too many or too few columns, which are not rows of the table."""
    never_integers: frozenset[str] = frozenset()
    """Columns in which text that looks like an integer is text."""
    spelling: Mapping[str, str] = MappingProxyType({})
    """The names of columns as they are written, where that is not in lower case."""

    def __len__(self) -> int:
        """The number of rows."""
        return len(self.frame)

    @property
    def columns(self) -> tuple[str, ...]:
        """Their names, in lower case."""
        return tuple(self.frame.columns)

    def written(self, column: str) -> str:
        """The name of a column as the file writes it."""
        return self.spelling.get(column, column)

    def records(self) -> tuple[Ints, Ints]:
        """Where the rows, and the broken rows, are among all rows of the file."""
        return np.arange(len(self)), np.empty(0, dtype=np.int64)

    @abstractmethod
    def texts(self, column: str) -> pd.Series[str]:
        """A column as text; a missing value is empty."""

    @abstractmethod
    def place(self, row: int) -> str:
        """A row in words: its line, if the file has lines."""

    def error(self, row: int, message: str) -> FileError:
        """The error for a row."""
        return FileError(f"{self.place(row)}: {message}", path=self.path)

    def all_texts(self, column: str) -> pd.Series[str]:
        """As `texts`, but kept, because parts of the table ask again."""
        if column not in self._kept:
            self._kept[column] = self.texts(column)
        return self._kept[column]

    @cached_property
    def _kept(self) -> dict[str, pd.Series[str]]:
        return {}

    def values(self, column: str) -> pd.Series[Any]:
        """A column of integers (int64), or as text if one value is not an integer."""
        values = self.frame[column]
        fits = values.dtype.kind in "iu" and (values.dtype != np.uint64 or values.max() < 2**63)
        return values.astype(np.int64) if fits else self.texts(column)

    def array(self, column: str) -> Array:
        """A column as an array of numbers, Booleans or strings, shape (rows,)."""
        values = self.frame[column].to_numpy()
        return values if values.dtype.kind in "iufb" else self.texts(column).to_numpy().astype(str)

    def numbers(self, column: str) -> Floats:
        """A column of numbers; NaN for everything that is not a finite number."""
        values = self.frame[column]
        if values.dtype.kind not in "iuf":
            values = pd.to_numeric(self.texts(column), errors="coerce")
        out = values.to_numpy(dtype=np.float64)
        return np.where(np.isfinite(out), out, np.nan)

    def is_text(self, column: str) -> bool:
        """Whether a column holds text or Booleans, and nothing that is a number."""
        if self.frame[column].dtype.kind in "iuf":
            return False
        known = self.texts(column).str.strip().str.casefold()
        return bool(np.isnan(self.numbers(column)).all() and not set(known) <= GAPS)

    def labels(self, column: str, rows: NDArray[np.int64]) -> Array:
        """The labels in some rows: an array of integers or of strings, shape (rows,)."""
        values = self.values(column).iloc[rows]
        if values.dtype.kind != "i" and len(rows) < len(self) and column not in self.never_integers:
            # The only text may have been in the rows that are skipped.
            numbers = pd.to_numeric(values, errors="coerce")
            values = numbers if numbers.dtype == np.int64 else values
        if values.dtype.kind == "i":
            return values.to_numpy()
        longest = max(map(len, values), default=0)
        try:
            check_width(longest, len(values), self.n_bytes, f"values in column {column}")
        except InputError as error:
            raise FileError(str(error), path=self.path) from None
        return values.to_numpy(dtype=object).astype(np.str_)

    def part(self, start: int, stop: int) -> Table:
        """Rows from `start` to before `stop`; broken rows belong to the first part."""
        return _TablePart(self, start, stop)


class _TablePart(Table):
    """Some rows of a table."""

    def __init__(self, whole: Table, start: int, stop: int) -> None:
        self._whole, self._rows = whole, slice(start, stop)
        self.path, self.n_bytes = whole.path, whole.n_bytes
        self.frame = whole.frame.iloc[self._rows].reset_index(drop=True)
        self.broken = whole.broken if start == 0 else []
        self.never_integers, self.spelling = whole.never_integers, whole.spelling

    def records(self) -> tuple[Ints, Ints]:
        rows, broken = self._whole.records()
        return rows[self._rows], broken[: len(self.broken)]

    def texts(self, column: str) -> pd.Series[str]:
        return self._whole.all_texts(column).iloc[self._rows].reset_index(drop=True)

    def place(self, row: int) -> str:
        return self._whole.place(self._rows.start + row)

    def error(self, row: int, message: str) -> FileError:
        return self._whole.error(self._rows.start + row, message)


def read_table(path: Path, required: Sequence[str] = ()) -> Table:
    """Read a table with at least one row and the `required` columns (names in lower case).

    >>> file = getfixture("tmp_path") / "targets.csv"
    >>> _ = file.write_text("Graph,target\\n1,yes\\n")
    >>> read_table(file, ["graph", "target"]).columns
    ('graph', 'target')
    """
    table = ParquetRows(path).read() if path.suffix == ".parquet" else _CsvTable(path)
    require(table, required)
    if not len(table):
        no_rows = FileError("no rows below the header", path=path)
        raise table.broken[0][1] if table.broken else no_rows
    return table


def column_names(path: Path) -> tuple[str, ...]:
    """The names of the columns of a table, in lower case; none of a file without a header."""
    if path.suffix == ".parquet":
        return ParquetRows(path, whole=False).columns
    _, line = next(numbered_lines(path), (1, b""))
    header = decoded(line, path)
    separator = _separator(header, "\t" if path.suffix == ".tsv" else ",")
    try:
        fields = next(csv.reader([header], delimiter=separator, skipinitialspace=True), [])
    except csv.Error:  # which the reader reports
        return ()
    return tuple(map(column_name, fields))


def table_parts(path: Path, rows: int) -> Iterator[Table]:
    """A table in parts of so many rows; Parquet is read part by part."""
    if path.suffix == ".parquet":
        file = ParquetRows(path, whole=False)
        if len(file):
            return file.parts([*range(rows, len(file), rows), len(file)])
    table = read_table(path)
    return (table.part(start, start + rows) for start in range(0, len(table), rows))


def require(table: Table | ParquetRows, columns: Sequence[str]) -> None:
    """Raise `FileError` if a table lacks one of these columns."""
    for column in columns:
        if column not in table.columns:
            what = ", which says which graph a row is about" if column == "graph" else ""
            found = ", ".join(table.spelling.get(name, name) for name in table.columns)[:200]
            raise FileError(
                f"no column {column!r}{what}: expected {', '.join(columns)}, found {found}",
                path=table.path,
            )


TARGET_COLUMNS = ("target", "label")
ID_COLUMNS = ("id", "name")
"""Columns that hold targets and ids where none is chosen, the first that there is."""
ROW_INDEX = ("", "__index_level_0__")
"""The names under which pandas writes its row index."""


def find_column(table: Table, chosen: str | None, usual: Sequence[str] = ()) -> str | None:
    """The chosen column, else the first of the usual ones that there is.

    Raises `FileError` if the chosen one is not there.
    """
    if chosen is None:
        return next((name for name in map(column_name, usual) if name in table.columns), None)
    name = column_name(chosen)
    if name not in table.columns:
        known = [*map(table.written, table.columns)]
        hint = did_you_mean(chosen, known) or f": choose from {', '.join(known)[:200]}"
        raise FileError(f"no column {chosen!r}{hint}", path=table.path)
    return name


ALL = "all"
"""Stands for all columns of numbers that are nothing else, as targets."""


def split_names(text: str) -> list[str]:
    """Names that are separated by commas; one that has commas itself stands in double quotes.

    >>> split_names('NR-AR, SR-p53, "IC50, nM"')
    ['NR-AR', 'SR-p53', 'IC50, nM']
    """
    names = next(csv.reader([text], skipinitialspace=True), [])
    return [name.strip() for name in names if name.strip()]


def join_names(names: Sequence[str]) -> str:
    """Names as `split_names` reads them; a single one as it is, which may be several names.

    >>> join_names(["a, b"]), join_names(["a, b", "c"])
    ('a, b', '"a, b",c')
    """
    if len(names) == 1:
        return names[0]
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(names)
    return line.getvalue()


def target_columns(
    table: Table,
    chosen: str | None = None,
    *,
    partial: bool = False,
    others: Collection[str | None] = (),
) -> list[str | None]:
    """The columns that hold targets: the `chosen` ones, separated by commas, else the usual one.

    `all` are all columns of numbers but `others`, which hold something else.

    Empty if none is chosen and there is no usual one; for a column that is not there a `FileError`,
    or None with `partial`, where others are.
    """
    if chosen is None:
        usual = find_column(table, None, TARGET_COLUMNS)
        return [] if usual is None else [usual]
    if chosen == ALL and ALL not in table.columns:
        rest = [n for n in table.columns if n.strip() and n not in (*others, *ROW_INDEX)]
        numbers = [name for name in rest if _are_numbers(table.texts(name).tolist())]
        if not numbers:
            raise FileError("no columns of numbers to learn", path=table.path)
        return [*numbers]
    names = [chosen] if column_name(chosen) in table.columns else split_names(chosen)
    if not partial:
        return [find_column(table, name) for name in names]
    known = [name if name in table.columns else None for name in map(column_name, names)]
    return known if any(known) else []


def _are_numbers(texts: Sequence[str]) -> bool:
    known = [value for value in target_values(texts) if value is not None]
    return bool(known) and not isinstance(known[0], str)


def row_targets(columns: Sequence[Sequence[str]], task: TaskName | None = None) -> list[Any]:
    """The target of every row from one column of text, or a list of targets from several.

    >>> row_targets([["a", ""]]), row_targets([["0", "1"], ["", "0.5"]])
    (['a', None], [[0, None], [1, 0.5]])
    """
    values = [target_values(column, task) for column in columns]
    return values[0] if len(values) == 1 else [list(row) for row in zip(*values, strict=True)]


@dataclass(frozen=True)
class Targets:
    """Which columns of a table with one row per graph hold targets, ids and other values."""

    table: Table
    targets: list[str | None]
    id: str | None
    extra: list[str]
    task: TaskName | None = None
    chosen: str | None = None

    @classmethod
    def of(cls, table: Table, options: ReadOptions, source: str) -> Targets:
        """The columns that `options` name, or the usual ones; `source` is what they are about."""
        own_id = find_column(table, options.id, options.usual("id", ID_COLUMNS))
        features = [column_name(name) for name in options.names("features") or ()]
        chosen = options.like.get("target")
        targets = target_columns(table, chosen, partial=True) if chosen else []
        if options.target or not targets:
            chosen = options.target
            targets = target_columns(
                table,
                options.target,
                partial=options.partial_targets,
                others=(source, own_id, *ID_COLUMNS, *features),
            )
        if options.target and options.remember is not None:
            names = [table.written(name) for name in targets if name is not None]
            options.remember("target", join_names(names))
        read = {*ROW_INDEX} if options.all_columns else {source, own_id, *targets, *ROW_INDEX}
        extra = [name for name in table.columns if name not in read and name.strip()]
        return cls(table, targets, own_id, extra, options.task, chosen)

    def notify(self, options: ReadOptions, **found: str | None) -> None:
        """Say what was found by name, rather than named by the options."""
        written = self.table.written
        targets = ", ".join(written(name) for name in self.targets if name)
        options.found(
            self.table.path.name,
            **found,
            targets=targets if targets and not options.target else None,
            ids=written(self.id) if self.id and options.id is None else None,
        )

    @property
    def names(self) -> list[str]:
        """The names of several targets as written, none of a single one."""
        if len(self.targets) < 2:
            return []
        wanted = self.targets if None not in self.targets else split_names(self.chosen or "")
        each = zip(self.targets, wanted, strict=True)
        return [self.table.written(known) if known else str(name) for known, name in each]

    def values(self, rows: NDArray[np.int64]) -> list[Any]:
        """The targets of some rows; None where there is none, and for row -1.

        Text among numbers stays text there, for `with_targets` to refuse.
        """
        if not self.targets:
            return [None] * len(rows)
        n, table = len(self.table), self.table
        columns = ([*([""] * n if c is None else table.texts(c)), ""] for c in self.targets)
        own = [[texts[row] for row in rows.tolist()] for texts in columns]
        return row_targets(own, self.task)

    def others(self, rows: NDArray[np.int64], also: str | None = None) -> dict[str, Array]:
        """The other columns of some rows, and the column `also`, by their names as written."""
        table, kept = self.table, {*self.extra, also}
        return {table.written(n): table.array(n)[rows] for n in table.columns if n in kept}


def target_values(
    texts: Sequence[str], task: TaskName | None = "classification"
) -> list[TargetValue | None]:
    """Targets from text: numbers if all of them are, else text; None for a missing one.

    Where numbers are wanted, or half of them at least are and some have a fraction, those stay
    numbers, and only the others are text.

    >>> target_values(["1", "", "0"]), target_values(["1", "x"]), target_values(["0.5", "n/a"])
    ([1, None, 0], ['1', 'x'], [0.5, None])
    >>> target_values([">10", "2.5", "n/a", "3"], None)
    ['>10', 2.5, None, 3.0]
    """
    known = [None if text.strip().casefold() in ("", "nan") else text.strip() for text in texts]
    numeric = [None if text is None else _number(text) for text in known]
    numbers = [value for value in numeric if value is not None]
    words = {text for text, value in zip(known, numeric, strict=True) if text and value is None}
    if not words or (numbers and {*map(str.casefold, words)} <= MISSING):
        return list(numeric)
    n_words = len(known) - known.count(None) - len(numbers)
    fractions = len(numbers) >= n_words and any(value != int(value) for value in numbers)
    if task == "classification" or not numbers or not (fractions or task == "regression"):
        return list(known)
    return [
        (None if text is None or text.casefold() in MISSING else text)
        if value is None
        else float(value)
        for text, value in zip(known, numeric, strict=True)
    ]


def _number(text: str) -> int | float | None:
    if _INTEGER.fullmatch(text):
        return int(text) if abs(int(text)) < 2**63 else None
    return float(text) if _REAL.fullmatch(text) and abs(float(text)) < 2.0**1023 else None


# -- CSV ---------------------------------------------------------------------------------------


class _CsvTable(Table):
    """A file of separated values with a header, in UTF-8."""

    def __init__(self, path: Path) -> None:
        self._text = read_text(path)
        self._separator = _separator(self._text, "\t" if path.suffix == ".tsv" else ",")
        self.path = path
        self.n_bytes = len(self._text)
        header = next(self._rows(), (1, []))[1]
        self._names = _names(header, path)
        self.spelling = _spelling(header)
        self.broken = []
        self._records: list[int] = []
        self.frame = self._read()

    def records(self) -> tuple[Ints, Ints]:
        if not self.broken:
            return super().records()
        every = np.arange(len(self._records) + len(self.broken))
        return np.array(self._records, dtype=np.int64), np.setdiff1d(every, self._records)

    def texts(self, column: str) -> pd.Series[str]:
        values = self.frame[column]
        if pd.api.types.is_string_dtype(values):
            return values
        # Numbers and Booleans have lost how they were written.
        return self._parse(usecols=[self.columns.index(column)], dtype=str).iloc[:, 0]

    def place(self, row: int) -> str:
        return f"line {self._line(row)}"

    def error(self, row: int, message: str) -> FileError:
        return FileError(message, path=self.path, line=self._line(row))

    def _line(self, row: int) -> int:
        # Odd quotes or lone carriage returns can be lines for one parser only: then the last one.
        return self._lines[min(row, len(self._lines) - 1)] if self._lines else 1

    def _read(self) -> pd.DataFrame:
        # More cells than characters: rows are broken, and filling them could take any memory.
        n_cells = self._text.count("\n") * len(self._names)
        frame = None if n_cells > len(self._text) + FREE_CHARACTERS else self._parsed()
        if frame is None:
            self._remove_broken_rows()
            frame = self._parsed()
        if frame is None:
            raise FileError("invalid CSV", path=self.path)
        frame.columns = pd.Index(self._names)
        return frame

    def _parsed(self) -> pd.DataFrame | None:
        """The table, or None if a row is broken."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error", pd.errors.ParserWarning)
                frame = self._parse(**exact_floats())
        except (ValueError, OverflowError, pd.errors.ParserWarning):
            return None
        return frame if frame.shape[1] == len(self._names) else None

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

    def _remove_broken_rows(self) -> None:
        """Leave only the rows that have all columns."""
        good, lines = io.StringIO(), []
        writer = csv.writer(good, delimiter=self._separator, lineterminator="\n")
        for row, (line, fields) in enumerate(self._rows()):
            if len(fields) == len(self._names):
                writer.writerow(fields)
                lines.append(line)
                self._records.append(row - 1)
            else:
                message = f"{plural(len(fields), 'column')}, but {len(self._names)} in the header"
                self.broken.append((fields, FileError(message, path=self.path, line=line)))
        self._text = good.getvalue()
        self._lines, self._records = lines[1:], self._records[1:]  # without the header

    def _rows(self) -> Iterator[tuple[int, list[str]]]:
        """The first line and the fields of every row that is not blank."""
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
            raise FileError(f"invalid CSV: {error}", path=self.path, line=line) from None

    @cached_property
    def _lines(self) -> list[int]:
        return [line for line, _ in self._rows()][1:]


def _separator(text: str, usual: str) -> str:
    """What the header has most outside of quotes: `;`, tabs or commas; the usual one where equal.

    >>> _separator("smiles;IC50, nM;target\\n", ","), _separator("smiles\\n", ",")
    (';', ',')
    """
    header = re.sub(r'"[^"]*"', "", text.lstrip().partition("\n")[0])
    separators: list[str] = [usual, *";\t,"]
    return max(separators, key=lambda each: header.count(each))


def _names(header: Sequence[str], path: Path) -> tuple[str, ...]:
    """Column names in lower case."""
    if len(header) > MAX_COLUMNS:
        raise FileError(f"{len(header):,} columns (at most {MAX_COLUMNS:,})", path=path)
    names = tuple(map(column_name, header))
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise FileError(f"two columns named {twice!r}", path=path)
    return names


def _spelling(header: Sequence[str]) -> dict[str, str]:
    """From names in lower case to names as they are written."""
    return {column_name(name): " ".join(name.split()) for name in header}


def column_name(text: str) -> str:
    """The name of a column in lower case, without line ends and double blanks."""
    return " ".join(text.split()).casefold()


# -- Parquet -----------------------------------------------------------------------------------


class _ParquetTable(Table):
    """Rows of a Parquet file, read by pyarrow; the first of them is row `start` of the file."""

    def __init__(self, file: ParquetRows, rows: Any, start: int = 0) -> None:
        self.path, self.n_bytes, self._start = file.path, file.n_bytes, start
        self.broken = []
        self.never_integers = file.never_integers
        self.spelling, self._texts = file.spelling, file.texts
        with _invalid_parquet(file.path):
            self.frame = rows.to_pandas(integer_object_nulls=True, ignore_metadata=True)
        self.frame.columns = pd.Index(file.columns)

    def records(self) -> tuple[Ints, Ints]:
        rows, broken = super().records()
        return self._start + rows, broken

    def texts(self, column: str) -> pd.Series[str]:
        codes, distinct = pd.factorize(self.frame[column])
        words = [boolean_text(v) if isinstance(v, bool | np.bool_) else str(v) for v in distinct]
        texts = np.array([*words, ""], dtype=object)  # the last is for code -1
        return pd.Series(texts[codes], dtype=object)

    def is_text(self, column: str) -> bool:
        return column in self._texts  # of all rows, of which these are a part

    def place(self, row: int) -> str:
        return f"row {self._start + row}"


class ParquetRows:
    """An open Parquet file whose types are checked, to be read whole or in ranges of rows."""

    def __init__(self, path: Path, *, whole: bool = True) -> None:
        self._arrow, parquet = pyarrow()
        types = self._arrow.types
        data = read_bytes(path) if whole else None
        self.path = path
        self.n_bytes: int = path.stat().st_size if data is None else len(data)
        if not self.n_bytes:
            raise FileError("the file is empty", path=path)
        with _invalid_parquet(path):
            arrow = self._arrow
            source = arrow.OSFile(str(path)) if data is None else arrow.BufferReader(data)
            schema = parquet.read_schema(source)
            self.columns: tuple[str, ...] = _names(schema.names, path)
            self._stored = dict(zip(self.columns, schema.names, strict=True))
            self.spelling: Mapping[str, str] = _spelling(schema.names)
            texts = [f.name for f in schema if _is_text(types, f.type)]
            self.texts: frozenset[str] = frozenset(
                column
                for column, field in zip(self.columns, schema, strict=True)
                if types.is_boolean(field.type) or _is_text(types, field.type)
            )
            self.never_integers: frozenset[str] = frozenset(
                column
                for column, field in zip(self.columns, schema, strict=True)
                if not types.is_integer(field.type)
            )
            # As codes of their distinct values: a few bytes may repeat a long text many times.
            self._file = parquet.ParquetFile(source, read_dictionary=texts, pre_buffer=False)
            self._check(self._file.metadata, schema, types)

    def __len__(self) -> int:
        """The number of rows."""
        return int(self._file.metadata.num_rows)

    def read(self) -> Table:
        """All rows."""
        with _invalid_parquet(self.path):
            # Several threads crashed after a damaged file had been refused.
            rows = self._file.read(use_threads=False)
        return _ParquetTable(self, rows)

    def column(self, name: str) -> Iterator[Array]:
        """The values of one column, some rows at a time."""
        for batch in self._batches([self._stored[name]]):
            yield batch.column(0).to_pandas(integer_object_nulls=True).to_numpy()

    def parts(self, ends: Sequence[int]) -> Iterator[Table]:
        """The rows up to each of `ends`, from the end before; none of the parts is empty."""
        batches, start = self._batches(None), 0
        waiting: list[Any] = []
        for end in ends:
            while sum(batch.num_rows for batch in waiting) < end - start:
                waiting.append(next(batches))
            with _invalid_parquet(self.path):
                rows = self._arrow.Table.from_batches(waiting)
                waiting = rows.slice(end - start).to_batches()
                rows = rows.slice(0, end - start)
            yield _ParquetTable(self, rows, start)
            start = end

    def _batches(self, columns: list[str] | None) -> Iterator[Any]:
        with _invalid_parquet(self.path):
            yield from self._file.iter_batches(PARQUET_ROWS, columns=columns, use_threads=False)

    def _check(self, claims: Any, schema: Any, types: Any) -> None:
        groups = (claims.row_group(group).total_byte_size for group in range(claims.num_row_groups))
        claimed = claims.num_rows * claims.num_columns * 8 + sum(groups)
        if claimed > max(FREE_BYTES, MAX_RATIO * self.n_bytes):
            raise FileError(
                f"refused: {self.n_bytes:,} bytes that claim {claims.num_rows:,} rows of "
                f"{plural(claims.num_columns, 'column')} look like a compression bomb",
                path=self.path,
            )
        for field in schema:
            number = types.is_integer(field.type) or types.is_floating(field.type)
            if not (number or types.is_boolean(field.type) or _is_text(types, field.type)):
                raise FileError(
                    f"column {field.name!r} has type {field.type}, expected numbers or text",
                    path=self.path,
                )


@contextmanager
def _invalid_parquet(path: Path) -> Iterator[None]:
    """Errors of any kind, which pyarrow raises for a damaged file, become a `FileError`."""
    try:
        yield
    except FileError:
        raise
    except Exception as error:
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise FileError(f"invalid Parquet: {reason}", path=path) from None


def _is_text(types: Any, kind: Any) -> bool:
    value = kind.value_type if types.is_dictionary(kind) else kind
    return bool(types.is_string(value) or types.is_large_string(value))


def pyarrow() -> tuple[Any, Any]:
    """`pyarrow` and `pyarrow.parquet`; `MissingExtraError` if they are not installed."""
    names = ("pyarrow", "pyarrow.parquet")
    arrow, parquet = (import_extra(name, "pyarrow", extra="parquet") for name in names)
    return arrow, parquet
