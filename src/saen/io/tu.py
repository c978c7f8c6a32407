"""The TUDataset text format: a handful of files of comma-separated numbers, one line per thing.

Big files are parsed chunk by chunk in worker threads while the main thread decompresses, and the
whole text is never in memory. A chunk that the fast parser does not take is read again line by
line, which gives either the right numbers or the first bad line.
"""

from __future__ import annotations

import csv
import io
import os
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from saen._util.arrays import Array, segment_ids
from saen._util.atomic import make_folder
from saen.data.graphs import Graphs
from saen.errors import FileError, InputError
from saen.io.archive import Member, members

Target = Literal["labels", "attributes"]

REQUIRED = ("A", "graph_indicator")
OPTIONAL = (
    "graph_labels",
    "graph_attributes",
    "node_labels",
    "node_attributes",
    "edge_labels",
    "edge_attributes",
)
ENDINGS = tuple(f"_{part}.txt" for part in (*REQUIRED, *OPTIONAL))
NAMES_ENDING = "_label_names.txt"

CHUNK_BYTES = 2**22
_EMPTY_GRAPHS = 2**20

# Before pandas 3.1, the default could be off by one in the last place.
_NEW_PANDAS = tuple(map(int, pd.__version__.split(".")[:2])) >= (3, 1)
EXACT = {} if _NEW_PANDAS else {"float_precision": "round_trip"}

_WHOLE = re.compile(rb"[+-]?[0-9]+")
_REAL = re.compile(rb"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")

Number = type[np.int64] | type[np.float64]


def read_tu(
    path: str | os.PathLike[str], *, directed: bool = False, target: Target | None = None
) -> Graphs:
    """Read a dataset in TUDataset's text format from a folder or a zip.

    The name of the dataset is that of its files (`NAME_A.txt`, `NAME_graph_indicator.txt`, …).
    Nodes keep their order within a graph, graphs are ordered by their number. An undirected
    edge may be listed from one end or from both; a line that repeats another one is dropped.

    `target` chooses what becomes `Graphs.targets`: the graph `"labels"` (whole numbers, as they
    stand in the file) or the graph `"attributes"` (real numbers); by default the labels if there
    are any, else the attributes.

    Raises `FileError` with file and line for anything that is not such a dataset.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for part, text in {
    ...         "A": "1, 2\\n2, 3\\n4, 5\\n",
    ...         "graph_indicator": "1\\n1\\n1\\n2\\n2\\n",
    ...         "graph_labels": "-1\\n1\\n",
    ...     }.items():
    ...         _ = Path(folder, f"toy_{part}.txt").write_text(text)
    ...     read_tu(folder)
    Graphs(toy: 2 graphs, 5 nodes, 3 edges, undirected; 2 classes)
    """
    if target not in (None, "labels", "attributes"):
        raise InputError(f"target must be 'labels' or 'attributes', not {target!r}")
    with members(Path(path)) as found, ThreadPoolExecutor(_workers()) as pool:
        name, files = _dataset_files(found, Path(path))
        return _Reader(files, pool).graphs(name, directed, target, Path(path))


def write_tu(graphs: Graphs, folder: Path, name: str | None = None) -> None:
    """Write the files of a dataset, `NAME_A.txt` and so on, into a folder.

    The name is that of the folder, unless you give another. Whole numbers stay as they are. Text
    becomes the numbers 1, 2, … in alphabetical order, which `NAME_label_names.txt` lists. Real
    targets are written as graph attributes. The format does not say whether edges are directed.

    >>> folder = getfixture("tmp_path") / "toy"
    >>> write_tu(Graphs.from_edge_lists([[(0, 1)], [(0, 0)]], targets=[1, -1]), folder)
    >>> read_tu(folder)
    Graphs(toy: 2 graphs, 3 nodes, 2 edges (1 self-loop), undirected; 2 classes)

    Raises `InputError` where the format cannot say that the last graph, without a target, is empty.
    """
    targets = graphs.targets
    if targets is None and len(graphs) and graphs.sizes[-1] == 0:
        raise InputError("the last graph is empty and without a target, which TUDataset cannot say")
    real = targets is not None and targets.dtype.kind == "f"
    columns = {
        "A": np.column_stack([segment_ids(graphs.indptr), graphs.indices]) + 1,
        "graph_indicator": segment_ids(graphs.node_offsets) + 1,
        "graph_attributes" if real else "graph_labels": targets,
        **{key: getattr(graphs, key) for key in OPTIONAL if not key.startswith("graph")},
    }
    name, names = name or folder.name, []
    make_folder(folder)
    for part, column in columns.items():
        if column is None or column.shape[1:] == (0,):
            continue
        if column.dtype.kind == "U":
            distinct, codes = np.unique(column, return_inverse=True)
            names += [f"{part} {n} {text}\n" for n, text in enumerate(distinct.tolist(), start=1)]
            column = codes.reshape(column.shape) + 1
        frame = pd.DataFrame(column.astype(np.int64) if column.dtype.kind == "b" else column)
        frame.to_csv(folder / f"{name}_{part}.txt", header=False, index=False)
    if names:
        (folder / f"{name}{NAMES_ENDING}").write_text("".join(names), encoding="utf-8")


def _workers() -> int:
    return min(3, os.cpu_count() or 1)


def _dataset_files(found: list[Member], path: Path) -> tuple[str, dict[str, Member]]:
    """The name of the only dataset among the files, and its files by what they hold."""
    stems: dict[tuple[str, str], None] = {}
    for member in found:
        # macOS adds shadow copies with the same endings.
        if member.filename.startswith("._") or "__MACOSX" in member.folder.split("/"):
            continue
        for part in REQUIRED:
            stem = member.filename.removesuffix(f"_{part}.txt")
            if stem and stem != member.filename:
                stems[member.folder, stem] = None
    if not stems:
        inner = sorted(path.glob("*/*_A.txt")) if path.is_dir() else []
        hint = f"; did you mean {inner[0].parent}?" if inner else ""
        raise FileError(f"not a TUDataset: there is no file *_A.txt inside{hint}", path=path)
    if len(stems) > 1:
        names = ", ".join("/".join(filter(None, stem)) for stem in sorted(stems))
        raise FileError(f"holds more than one dataset: {names}", path=path)
    ((folder, name),) = stems
    files = {
        part: member
        for member in found
        for part in (*REQUIRED, *OPTIONAL)
        if member.folder == folder and member.filename == f"{name}_{part}.txt"
    }
    for part in REQUIRED:
        if part not in files:
            raise FileError(f"{name}_{part}.txt is missing", path=path)
    return name, files


class _Reader:
    """Reads the files of one dataset and checks them against each other."""

    def __init__(self, files: dict[str, Member], pool: ThreadPoolExecutor) -> None:
        self.files = files
        self.pool = pool

    def graphs(self, name: str, directed: bool, target: Target | None, path: Path) -> Graphs:
        targets, counted = self._targets(target, path)
        graph_of, n_graphs = self._graph_of(None if targets is None else len(targets), counted)
        edges = self._edges(graph_of)
        node_columns: dict[str, Array] = {
            key: self._column(key, len(graph_of), "graph_indicator", "node")
            for key in ("node_labels", "node_attributes")
            if key in self.files
        }
        edge_columns: dict[str, Array] = {
            key: self._column(key, len(edges), "A", "edge")
            for key in ("edge_labels", "edge_attributes")
            if key in self.files
        }
        self._check_repeated(edges, edge_columns)
        sizes = np.bincount(graph_of, minlength=n_graphs)
        if (graph_of[1:] < graph_of[:-1]).any():
            order = np.argsort(graph_of, kind="stable")
            renumbered = np.empty(len(order), dtype=edges.dtype)
            renumbered[order] = np.arange(len(order), dtype=edges.dtype)
            edges = renumbered[edges]
            node_columns = {key: column[order] for key, column in node_columns.items()}
        return Graphs.from_edges(
            edges,
            sizes,
            directed=directed,
            duplicates="merge",
            targets=targets,
            name=name,
            **node_columns,
            **edge_columns,
        )

    def _targets(self, target: Target | None, path: Path) -> tuple[Array | None, str]:
        """One target per graph, and the file that counts the graphs."""
        if target is not None and f"graph_{target}" not in self.files:
            raise FileError(f"there are no graph {target} to use as targets", path=path)
        for kind in (target,) if target else ("labels", "attributes"):
            if f"graph_{kind}" in self.files:
                table = self._table(f"graph_{kind}", np.int64 if kind == "labels" else np.float64)
                wide = table.astype(np.int64) if kind == "labels" else table
                return (wide[:, 0] if wide.shape[1] == 1 else wide), f"graph_{kind}"
        return None, ""

    def _graph_of(self, n_graphs: int | None, counted: str) -> tuple[NDArray[np.int64], int]:
        """The graph of every node, numbered from 0, and the number of graphs."""
        table = self._table("graph_indicator", np.int64, columns=1)
        numbers = table[:, 0].astype(np.int64, copy=False)
        largest = int(numbers.max(initial=0))
        outside = numbers < 1
        if n_graphs is not None and largest > n_graphs:
            outside |= numbers > n_graphs
        if outside.any():
            row = int(np.flatnonzero(outside)[0])
            known = (
                f"{self.files[counted].filename} has {_count(n_graphs or 0, 'line')}"
                if counted and numbers[row] > 0
                else "graphs are numbered from 1"
            )
            raise self._error("graph_indicator", row, f"graph {numbers[row]}, but {known}")
        # Without a file of labels, one wrong number could ask for any amount of empty graphs.
        if n_graphs is None and largest > len(numbers) + _EMPTY_GRAPHS:
            row = int(np.argmax(numbers))
            only = f"there are only {_count(len(numbers), 'node')}"
            raise self._error("graph_indicator", row, f"graph {largest}, but {only}")
        return numbers - 1, largest if n_graphs is None else n_graphs

    def _edges(self, graph_of: NDArray[np.int64]) -> Array:
        n_nodes = len(graph_of)
        width = np.int32 if n_nodes < 2**31 else np.int64
        indicator = self.files["graph_indicator"].filename
        narrow_graph_of = graph_of.astype(width)

        def checked(pairs: Array) -> Array:
            if pairs.min() < 1 or pairs.max() > n_nodes:
                row, column = np.argwhere((pairs < 1) | (pairs > n_nodes))[0]
                number = int(pairs[row, column])
                known = (
                    f"{indicator} has {_count(n_nodes, 'line')}"
                    if number > 0
                    else "nodes are numbered from 1"
                )
                raise _BadLineError(int(row), f"node {number}, but {known}")
            ends = (pairs - 1).astype(width)
            across = narrow_graph_of[ends[:, 0]] != narrow_graph_of[ends[:, 1]]
            if across.any():
                row = int(np.flatnonzero(across)[0])
                first, second = (int(node) for node in pairs[row])
                raise _BadLineError(
                    row,
                    f"an edge across two graphs: node {first} is in graph "
                    f"{graph_of[first - 1] + 1}, node {second} in graph "
                    f"{graph_of[second - 1] + 1}",
                )
            return ends

        return self._table("A", np.int64, columns=2, convert=checked)

    def _column(self, part: str, length: int, other: str, what: str) -> Array:
        labels = part.endswith("labels")
        table = self._table(part, np.int64 if labels else np.float64)
        if len(table) != length:
            raise FileError(
                f"{_count(len(table), 'line')}, but {self.files[other].filename} has "
                f"{_count(length, 'line')}: one for each {what} is needed in both",
                path=self.files[part].place,
            )
        return table[:, 0] if labels and table.shape[1] == 1 else table

    def _check_repeated(self, edges: Array, columns: dict[str, Array]) -> None:
        """An edge may come twice only with the same labels and attributes."""
        if not columns or not len(edges):
            return
        codes = edges[:, 0].astype(np.int64) * (int(edges.max()) + 1) + edges[:, 1]
        order = np.argsort(codes, kind="stable")
        again = np.flatnonzero(codes[order][1:] == codes[order][:-1])
        for part, column in columns.items():
            earlier, later = order[again], order[again + 1]
            differs = column[later] != column[earlier]
            rows = later[differs if differs.ndim == 1 else differs.any(axis=1)]
            if len(rows):
                row = int(rows.min())
                ends = " → ".join(str(end + 1) for end in edges[row])
                raise self._error(
                    "A", row, f"the edge {ends} comes again, with other {part.replace('_', ' ')}"
                )

    def _table(
        self,
        part: str,
        number: Number,
        columns: int | None = None,
        convert: Callable[[Array], Array] | None = None,
    ) -> Array:
        """All numbers of a file, shape (lines, columns); `convert` sees them chunk by chunk."""
        chunks = _line_chunks(self.files[part], CHUNK_BYTES)
        first = next(chunks, b"")
        if columns is None:
            columns = first.partition(b"\n")[0].count(b",") + 1
        if not first:
            return np.empty((0, columns), dtype=np.int32 if number is np.int64 else number)
        tables: list[Array] = []
        parse = partial(_parse, columns=columns, number=number, convert=convert or _narrowed)
        try:
            for table in _map_in_order(self.pool, parse, chain([first], chunks)):
                tables.append(table)
        except _BadLineError as bad:
            raise self._error(part, sum(map(len, tables)) + bad.row, bad.message) from None
        return tables[0] if len(tables) == 1 else np.concatenate(tables)

    def _error(self, part: str, row: int, message: str) -> FileError:
        return FileError(message, path=self.files[part].place, line=row + 1)


def _map_in_order(
    pool: ThreadPoolExecutor, work: Callable[[bytes], Array], chunks: Iterable[bytes]
) -> Iterator[Array]:
    """`map` over worker threads, never more than a few chunks ahead of the results."""
    pending: deque[Future[Array]] = deque()
    for chunk in chunks:
        pending.append(pool.submit(work, chunk))
        if len(pending) > _workers():
            yield pending.popleft().result()
    while pending:
        yield pending.popleft().result()


def _line_chunks(member: Member, size: int) -> Iterator[bytes]:
    """Whole lines, about `size` bytes at a time, without a newline at the end.

    Drops a byte-order mark, and blank lines at the very end of the file: a chunk ends with its last
    line that is not blank, and the blank ones wait for what follows.
    """
    mark = b"\xef\xbb\xbf"
    held: list[bytes] = []
    length = 0
    for block in member.blocks():
        held.append(block)
        length += len(block)
        if length < size:
            continue
        text = b"".join(held).removeprefix(mark)
        lines = text[: text.rfind(b"\n") + 1]
        if not lines:
            raise FileError(
                f"not a file of numbers: a line of more than {size:,} bytes", path=member.place
            )
        mark = b""
        # Nothing but blank lines: let them through, to be reported.
        filled = lines.rstrip() or lines
        yield filled
        held = [text[text.find(b"\n", len(filled) - 1) + 1 :]]
        length = len(held[0])
    last = b"".join(held).removeprefix(mark).rstrip()
    if last:
        yield last


class _BadLineError(Exception):
    """A line that makes no sense, counted from 0 within its chunk."""

    def __init__(self, row: int, message: str) -> None:
        super().__init__(message)
        self.row = row
        self.message = message


def _parse(chunk: bytes, columns: int, number: Number, convert: Callable[[Array], Array]) -> Array:
    table = _parse_fast(chunk, columns, number)
    return convert(_parse_lines(chunk, columns, number) if table is None else table)


def _parse_fast(chunk: bytes, columns: int, number: Number) -> Array | None:
    """The numbers of a well-formed chunk, shape (lines, columns); None if it is not one."""
    if b"\r" in chunk:
        chunk = chunk.replace(b"\r\n", b"\n")
    # The parser would end a line at a lone carriage return and a number at a null.
    if b"\r" in chunk or b"\0" in chunk:
        return None
    # Whole numbers are inferred, never asked for: asked, the parser would take "1.0" as well.
    options: dict[str, Any] = {} if number is np.int64 else {"dtype": number, **EXACT}
    try:
        frame = pd.read_csv(
            io.BytesIO(chunk),
            engine="c",
            header=None,
            skipinitialspace=True,
            skip_blank_lines=False,
            na_filter=False,
            quoting=csv.QUOTE_NONE,
            low_memory=False,
            **options,
        )
    except (ValueError, OverflowError):
        return None
    if frame.shape[1] != columns or not (frame.dtypes == number).all():
        return None
    table = frame.to_numpy()
    return table if number is np.int64 or np.isfinite(table).all() else None


def _parse_lines(chunk: bytes, columns: int, number: Number) -> Array:
    rows = []
    for row, line in enumerate(chunk.split(b"\n")):
        try:
            rows.append(_parse_line(line, columns, number))
        except ValueError as problem:
            raise _BadLineError(row, str(problem)) from None
    return np.array(rows, dtype=number)


def _parse_line(line: bytes, columns: int, number: Number) -> list[int] | list[float]:
    if not line.strip():
        raise ValueError("an empty line between the numbers")
    fields = [field.strip() for field in line.split(b",")]
    if len(fields) != columns:
        raise ValueError(f"{_count(len(fields), 'column')}, expected {columns}")
    pattern, what = (_WHOLE, "a whole number") if number is np.int64 else (_REAL, "a number")
    for field in fields:
        if not pattern.fullmatch(field):
            missing = " (missing and infinite values are not supported)"
            special = number is np.float64 and re.fullmatch(
                rb"(?i)[+-]?(nan|na|null|none|inf|infinity)?", field
            )
            raise ValueError(f"{_shown(field)} is not {what}{missing if special else ''}")
    if number is np.int64:
        whole = [int(field) for field in fields if len(field) < 30]
        if len(whole) < columns or min(whole) < -(2**63) or max(whole) >= 2**63:
            raise ValueError("a number that does not fit into 64 bits")
        return whole
    real = [float(field) for field in fields]
    if not np.isfinite(real).all():
        raise ValueError("a number that is too large")
    return real


def _shown(field: bytes) -> str:
    text = field.decode("utf-8", errors="backslashreplace")
    return repr(text if len(text) <= 40 else text[:40] + "…")


def _narrowed(table: Array) -> Array:
    """32 bits where they are enough."""
    if table.dtype == np.int64 and table.min() >= -(2**31) and table.max() < 2**31:
        return table.astype(np.int32)
    return table


def _count(number: int, what: str) -> str:
    many = {"node": "nodes"}.get(what, what + "s")
    return f"{number:,} {what if number == 1 else many}"
