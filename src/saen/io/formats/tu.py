"""The TUDataset text format: files of comma-separated numbers, one line per node, edge or graph.

Big files are parsed in chunks by worker threads while the main thread decompresses, and the whole
text is never in memory. A chunk that the fast parser rejects is parsed again line by line, which
gives either the right numbers or the first bad line.
"""

from __future__ import annotations

import csv
import io
import os
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sized
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from saen._util.arrays import Array, index_dtype, segment_ids
from saen._util.atomic import make_folder
from saen._util.lazy import pd
from saen._util.strings import plural
from saen.data.adjacency import EdgeBlock, Entries
from saen.data.graphs import Graphs
from saen.errors import FileError, InputError
from saen.io.parsing.archive import Member, members
from saen.io.parsing.records import check_id, clashing_edges
from saen.io.parsing.text_files import BYTE_ORDER_MARK, check_width, decoded, exact_floats

TargetFile = Literal["labels", "attributes"]
"""Which file has the targets: `NAME_graph_labels.txt` or `NAME_graph_attributes.txt`."""

REQUIRED = ("A", "graph_indicator")
OPTIONAL = (
    "graph_labels",
    "graph_attributes",
    "node_labels",
    "node_attributes",
    "edge_labels",
    "edge_attributes",
)
ENDINGS = tuple(f"_{part}.txt" for part in (*REQUIRED, *OPTIONAL, "graph_ids"))
NAMES_ENDING = "_label_names.txt"
IDS, README = "graph_ids", "README"
READMES = ("readme.txt", "readme")

CHUNK_BYTES = 2**22
MIN_EDGE_BYTES = 4  # "1,2" and the end of the line
MAX_EMPTY_GRAPHS = 2**20
MAX_COLUMNS = 10_000
MAX_README = 2**20  # bytes

_INTEGER = re.compile(rb"[+-]?[0-9]+")
_REAL = re.compile(rb"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")

Number = type[np.int64] | type[np.float64]
Block = TypeVar("Block", bound=Sized)


def read_tu(
    path: str | os.PathLike[str],
    *,
    directed: bool = False,
    target: TargetFile | None = None,
    partial_targets: bool = False,
) -> Graphs:
    """Read a dataset in TUDataset's text format from a folder or a zip.

    The name of the dataset is that of its files (`NAME_A.txt`, `NAME_graph_indicator.txt`, …).
    Nodes keep their order within a graph, graphs are ordered by their number. An undirected
    edge may be listed in one direction or in both; duplicate lines are ignored. Where a README
    next to them explains the codes of node or edge labels (`0  C`), the labels are those.

    Parameters
    ----------
    path : str | os.PathLike[str]
        A folder or a zip.
    directed : bool, default=False
        Whether edges have a direction.
    target : TargetFile | None, default=None
        What becomes `Graphs.targets`: the graph `"labels"` (integers, as in the file) or the graph
        `"attributes"` (real numbers). None: the labels if there are any, else the attributes.
    partial_targets : bool, default=False
        Whether to read graphs without targets where these files are missing or wrong.

    Raises
    ------
    FileError
        With file and line for anything else.

    Examples
    --------
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
    with members(Path(path)) as all_files, ThreadPoolExecutor(_workers()) as pool:
        name, files = _dataset_files(all_files, Path(path))
        reader = _Reader(files, pool)
        return reader.graphs(name, directed, target, Path(path), partial_targets)


def write_tu(graphs: Graphs, folder: Path, name: str | None = None) -> None:
    """Write the files of a dataset, `NAME_A.txt` and so on, into a folder.

    The name is that of the folder by default. Text becomes the numbers 1, 2, … in alphabetical
    order, listed in `NAME_label_names.txt`. Real targets are written as graph attributes. Ids other
    than 0, 1, … go to `NAME_graph_ids.txt`, which `read_tu` reads back. The format does not say
    whether edges are directed.

    >>> folder = getfixture("tmp_path") / "toy"
    >>> write_tu(Graphs.from_edge_lists([[(0, 1)], [(0, 0)]], targets=[1, -1]), folder)
    >>> read_tu(folder)
    Graphs(toy: 2 graphs, 3 nodes, 2 edges (1 self-loop), undirected; 2 classes)

    Raises `InputError` if the last graph is empty and without a target: the format cannot say so.
    """
    targets = graphs.targets
    if targets is None and len(graphs) and graphs.sizes[-1] == 0:
        raise InputError("TUDataset files cannot end with an empty graph without a target")
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
    if not np.array_equal(graphs.ids, np.arange(len(graphs))):
        lines = [str(own).replace("\n", " ") + "\n" for own in graphs.ids.tolist()]
        (folder / f"{name}_{IDS}.txt").write_text("".join(lines), encoding="utf-8", newline="\n")
    if names:
        (folder / f"{name}{NAMES_ENDING}").write_text("".join(names), encoding="utf-8")


def _workers() -> int:
    return min(3, os.cpu_count() or 1)


def _dataset_files(all_files: list[Member], path: Path) -> tuple[str, dict[str, Member]]:
    """The name of the only dataset among the files, and its files by content."""
    stems: dict[tuple[str, str], None] = {}
    for member in all_files:
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
        raise FileError(f"not a TUDataset: no file named *_A.txt{hint}", path=path)
    if len(stems) > 1:
        names = ", ".join("/".join(filter(None, stem)) for stem in sorted(stems))
        raise FileError(f"contains more than one dataset: {names}", path=path)
    ((folder, name),) = stems
    files = {
        part: member
        for member in all_files
        for part in (*REQUIRED, *OPTIONAL, IDS)
        if member.folder == folder and member.filename == f"{name}_{part}.txt"
    }
    for part in REQUIRED:
        if part not in files:
            raise FileError(f"{name}_{part}.txt is missing", path=path)
    for member in all_files:
        if member.folder == folder and member.filename.lower() in READMES:
            files[README] = member
    return name, files


def label_names(readme: str) -> dict[str, dict[int, str]]:
    """What the codes of node and edge labels stand for, as the READMEs of such datasets list it.

    >>> label_names("Node labels:\\n\\n  0  C\\n  1  N\\n\\nEdge labels:\\n  0  single\\n")
    {'node_labels': {0: 'C', 1: 'N'}, 'edge_labels': {0: 'single'}}
    """
    names: dict[str, dict[int, str]] = {}
    own: dict[int, str] = {}
    for line in readme.splitlines():
        if heading := re.match(r"\s*(node|edge) labels\b", line, re.IGNORECASE):
            own = names.setdefault(f"{heading[1].lower()}_labels", {})
        elif row := re.fullmatch(r"\s*(\d{1,9})\s+(\S.{0,39}?)\s*", line):
            own.setdefault(int(row[1]), row[2])
        elif line.strip() and not (line.strip() == "Component 0:" and not own):
            own = {}
    return {part: codes for part, codes in names.items() if codes}


class _Reader:
    """Reads the files of one dataset and checks them against each other."""

    def __init__(self, files: dict[str, Member], pool: ThreadPoolExecutor) -> None:
        self.files = files
        self.pool = pool
        readme = files.get(README)
        known = readme is not None and readme.size <= MAX_README
        text = b"".join(readme.blocks()).decode("utf-8", "replace") if readme and known else ""
        self.names = label_names(text)

    def graphs(
        self, name: str, directed: bool, target: TargetFile | None, path: Path, partial: bool
    ) -> Graphs:
        targets, counted = None, ""
        try:
            targets, counted = self._targets(target, path)
        except FileError:
            if not partial:
                raise
        known = None if targets is None or partial else len(targets)
        graph_of, n_graphs = self._graph_of(known, counted)
        if targets is not None and len(targets) < n_graphs:
            targets = None
        elif targets is not None:
            n_graphs = len(targets)
        in_order = bool((graph_of[1:] >= graph_of[:-1]).all())
        edges: Array | Entries
        if in_order and not {"edge_labels", "edge_attributes"} & self.files.keys():
            edges, edge_columns = self._entries(graph_of), {}
        else:
            pairs = self._table("A", np.int64, 2, self._ends(graph_of))
            edge_columns = self._columns("edge", len(pairs), "A")
            for row, earlier, what in clashing_edges(pairs, edge_columns, directed=True):
                raise self._error("A", row, f"repeats the edge of line {earlier + 1} with {what}")
            edges = pairs
        node_columns = self._columns("node", len(graph_of), "graph_indicator")
        sizes = np.bincount(graph_of, minlength=n_graphs)
        if not in_order:
            order = np.argsort(graph_of, kind="stable")
            renumbered = np.empty(len(order), dtype=pairs.dtype)
            renumbered[order] = np.arange(len(order), dtype=pairs.dtype)
            edges = renumbered[pairs]
            node_columns = {key: column[order] for key, column in node_columns.items()}
        return Graphs.from_edges(
            edges,
            sizes,
            directed=directed,
            duplicates="merge",
            targets=targets,
            name=name,
            ids=self._ids(n_graphs),
            **node_columns,
            **edge_columns,
        )

    def _targets(self, target: TargetFile | None, path: Path) -> tuple[Array | None, str]:
        """One target per graph, and the file with one line per graph."""
        if target is not None and f"graph_{target}" not in self.files:
            raise FileError(f"no graph {target} to use as targets", path=path)
        for kind in (target,) if target else ("labels", "attributes"):
            if f"graph_{kind}" in self.files:
                table = self._table(f"graph_{kind}", np.int64 if kind == "labels" else np.float64)
                wide = table.astype(np.int64) if kind == "labels" else table
                return (wide[:, 0] if wide.shape[1] == 1 else wide), f"graph_{kind}"
        return None, ""

    def _ids(self, n_graphs: int) -> Array | None:
        """One id per graph, as text or as integers where all are."""
        if IDS not in self.files:
            return None
        member = self.files[IDS]
        text = decoded(b"".join(member.blocks()), Path(member.place))
        lines = text.removesuffix("\n").split("\n") if text else []
        if len(lines) != n_graphs:
            raise FileError(
                f"{plural(len(lines), 'line')}, but there are {plural(n_graphs, 'graph')}",
                path=member.place,
            )
        try:
            for line in lines:
                check_id(line)
            check_width(max(map(len, lines), default=0), len(lines), len(text), "ids")
        except InputError as error:
            raise FileError(str(error), path=member.place) from None
        integers = all(re.fullmatch(r"-?[0-9]{1,18}", line) for line in lines)
        return np.array(lines, dtype=np.int64 if integers else np.str_)

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
                f"{self.files[counted].filename} has {plural(n_graphs or 0, 'line')}"
                if counted and numbers[row] > 0
                else "graphs are numbered from 1"
            )
            raise self._error("graph_indicator", row, f"graph {numbers[row]}, but {known}")
        # Without targets, one wrong number could ask for any number of empty graphs.
        if n_graphs is None and largest > len(numbers) + MAX_EMPTY_GRAPHS:
            row = int(np.argmax(numbers))
            only = f"there are only {plural(len(numbers), 'node')}"
            raise self._error("graph_indicator", row, f"graph {largest}, but {only}")
        return numbers - 1, largest if n_graphs is None else n_graphs

    def _entries(self, graph_of: NDArray[np.int64]) -> Entries:
        """The edges as adjacency, sorted where the file is not."""
        ends = self._ends(graph_of)
        blocks = self._tables("A", np.int64, 2, lambda pairs: EdgeBlock.of(*ends(pairs).T))
        return Entries.joined(blocks, len(graph_of), self.files["A"].size // MIN_EDGE_BYTES + 1)

    def _ends(self, graph_of: NDArray[np.int64]) -> Callable[[Array], Array]:
        """A function of node pairs from the file: numbered from 0, each within one graph."""
        n_nodes = len(graph_of)
        width = index_dtype(n_nodes)
        indicator = self.files["graph_indicator"].filename
        narrow_graph_of = graph_of.astype(width)

        def checked(pairs: Array) -> Array:
            if pairs.min(initial=1) < 1 or pairs.max(initial=1) > max(n_nodes, 1):
                row, column = np.argwhere((pairs < 1) | (pairs > n_nodes))[0]
                number = int(pairs[row, column])
                known = (
                    f"{indicator} has {plural(n_nodes, 'line')}"
                    if number > 0
                    else "nodes are numbered from 1"
                )
                raise _BadLineError(int(row), f"node {number}, but {known}")
            ends = pairs.astype(width)
            ends -= width.type(1)
            across = narrow_graph_of[ends[:, 0]] != narrow_graph_of[ends[:, 1]]
            if across.any():
                row = int(np.flatnonzero(across)[0])
                first, second = (int(node) for node in pairs[row])
                raise _BadLineError(
                    row,
                    f"an edge between two graphs: node {first} is in graph "
                    f"{graph_of[first - 1] + 1}, node {second} in graph {graph_of[second - 1] + 1}",
                )
            return ends

        return checked

    def _columns(self, what: str, length: int, other: str) -> dict[str, Array]:
        """Labels and attributes of nodes or edges; `other` is the file with a line for each."""
        out: dict[str, Array] = {}
        for kind, number in (("labels", np.int64), ("attributes", np.float64)):
            part = f"{what}_{kind}"
            if part not in self.files:
                continue
            table = self._table(part, number)
            if len(table) != length:
                raise FileError(
                    f"{plural(len(table), 'line')}, but {self.files[other].filename} has "
                    f"{plural(length, 'line')}: both need one per {what}",
                    path=self.files[part].place,
                )
            out[part] = table[:, 0] if kind == "labels" and table.shape[1] == 1 else table
            names = self.names.get(part, {})
            codes, inverse = np.unique(out[part], return_inverse=True)
            if kind == "labels" and out[part].ndim == 1 and names.keys() >= set(codes.tolist()):
                words = np.array([names[code] for code in codes.tolist()], dtype=np.str_)
                out[part] = words[inverse]
        return out

    def _table(
        self,
        part: str,
        number: Number,
        columns: int | None = None,
        convert: Callable[[Array], Array] | None = None,
    ) -> Array:
        """All numbers of a file, shape (lines, columns); `convert` sees them chunk by chunk."""
        tables = list(self._tables(part, number, columns, convert or _narrowed))
        return tables[0] if len(tables) == 1 else np.concatenate(tables)

    def _tables(
        self, part: str, number: Number, columns: int | None, convert: Callable[[Array], Block]
    ) -> Iterator[Block]:
        """What `convert` makes of the numbers of each chunk of lines; at least one chunk."""
        chunks = _line_chunks(self.files[part], CHUNK_BYTES)
        first = next(chunks, b"")
        if columns is None:
            columns = first.partition(b"\n")[0].count(b",") + 1
            if columns > MAX_COLUMNS:
                raise self._error(part, 0, f"{columns:,} columns (at most {MAX_COLUMNS:,})")
        if not first:
            yield convert(np.empty((0, columns), dtype=number))
            return
        work = partial(_parse, columns=columns, number=number, convert=convert, arrow=_arrow())
        n_rows = 0
        try:
            for table in _map_in_order(self.pool, work, chain([first], chunks)):
                yield table
                n_rows += len(table)
        except _BadLineError as bad:
            raise self._error(part, n_rows + bad.row, bad.message) from None

    def _error(self, part: str, row: int, message: str) -> FileError:
        return FileError(message, path=self.files[part].place, line=row + 1)


def _map_in_order(
    pool: ThreadPoolExecutor, work: Callable[[bytes], Block], chunks: Iterable[bytes]
) -> Iterator[Block]:
    """`map` over worker threads, never more than a few chunks ahead of the results."""
    pending: deque[Future[Block]] = deque()
    for chunk in chunks:
        pending.append(pool.submit(work, chunk))
        if len(pending) > _workers():
            yield pending.popleft().result()
    while pending:
        yield pending.popleft().result()


def _line_chunks(member: Member, size: int) -> Iterator[bytes]:
    """Complete lines, about `size` bytes at a time, without a newline at the end.

    Drops a byte-order mark, and blank lines at the end of the file: a chunk ends with its last
    line that is not blank, and blank lines after it go to the next chunk.
    """
    mark = BYTE_ORDER_MARK
    held: list[bytes] = []
    length = 0
    for block in member.blocks():
        held.append(block)
        length += len(block)
        if length < size:
            continue
        text = b"".join(held).removeprefix(mark)
        end = text.rfind(b"\n")
        if end < 0:
            raise FileError(f"a line has more than {size:,} bytes", path=member.place)
        mark = b""
        lines = text[:end]
        if not lines or lines[-1:].isspace():
            # Only blank lines: they are reported by the parser.
            lines = lines.rstrip() or text[: end + 1]
        yield lines
        held = [text[text.find(b"\n", len(lines) - 1) + 1 :]]
        length = len(held[0])
    last = b"".join(held).removeprefix(mark).rstrip()
    if last:
        yield last


class _BadLineError(Exception):
    """An invalid line, counted from 0 within its chunk."""

    def __init__(self, row: int, message: str) -> None:
        super().__init__(message)
        self.row = row
        self.message = message


def _parse(
    chunk: bytes, columns: int, number: Number, convert: Callable[[Array], Block], arrow: Any
) -> Block:
    integers = number is np.int64
    table = _parse_arrow(chunk, columns, arrow) if integers and arrow is not None else None
    if table is None:
        table = _parse_fast(chunk, columns, number)
    return convert(_parse_lines(chunk, columns, number) if table is None else table)


def _arrow() -> Any:
    """The module pyarrow, if it is installed: it is imported in a tenth of the time of pandas."""
    try:
        import_module("pyarrow.csv")
        return import_module("pyarrow")
    except ImportError:
        return None


def _parse_arrow(chunk: bytes, columns: int, arrow: Any) -> Array | None:
    """The integers of 32 bits of a chunk without anything unusual, shape (lines, columns)."""
    # The parser would end a line at a lone carriage return, and read hexadecimal numbers.
    if any(mark in chunk for mark in (b"\r", b"x", b"X")):
        return None
    names = [str(column) for column in range(columns)]
    csv = arrow.csv
    try:
        table = csv.read_csv(
            arrow.BufferReader(chunk),
            csv.ReadOptions(use_threads=False, block_size=len(chunk) + 1, column_names=names),
            csv.ParseOptions(quote_char=False, ignore_empty_lines=False),
            csv.ConvertOptions(column_types=dict.fromkeys(names, "int32"), null_values=[]),
        )
    except ValueError:  # of which pyarrow's own errors are
        return None
    # Every column in one piece: what follows reads them one by one.
    # By DLPack, for `to_numpy` imports pandas.
    return np.stack([np.from_dlpack(column.combine_chunks()) for column in table.columns]).T


def _parse_fast(chunk: bytes, columns: int, number: Number) -> Array | None:
    """The numbers of a valid chunk, shape (lines, columns); None if it is invalid."""
    if b"\r" in chunk:
        chunk = chunk.replace(b"\r\n", b"\n")
    # The parser would end a line at a lone carriage return and a number at a null.
    if b"\r" in chunk or b"\0" in chunk:
        return None
    # The integer type is inferred: asked for it, the parser would accept "1.0" as well.
    options: dict[str, Any] = {} if number is np.int64 else {"dtype": number, **exact_floats()}
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
        raise ValueError("an empty line")
    fields = [field.strip() for field in line.split(b",")]
    if len(fields) != columns:
        raise ValueError(f"{plural(len(fields), 'column')}, expected {columns}")
    pattern, what = (_INTEGER, "an integer") if number is np.int64 else (_REAL, "a finite number")
    for field in fields:
        if not pattern.fullmatch(field):
            raise ValueError(f"{_shown(field)} is not {what}")
    if number is np.int64:
        integers = [int(field) for field in fields if len(field) < 30]
        if len(integers) < columns or min(integers) < -(2**63) or max(integers) >= 2**63:
            raise ValueError("a number does not fit into 64 bits")
        return integers
    reals = [float(field) for field in fields]
    if not np.isfinite(reals).all():
        raise ValueError("a number is too large")
    return reals


def _shown(field: bytes) -> str:
    text = field.decode("utf-8", errors="backslashreplace")
    return repr(text if len(text) <= 40 else text[:40] + "…")


def _narrowed(table: Array) -> Array:
    """32 bits where they are enough."""
    if table.dtype == np.int64 and -(2**31) <= table.min(initial=0) <= table.max(initial=0) < 2**31:
        return table.astype(np.int32)
    return table
