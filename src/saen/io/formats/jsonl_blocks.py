"""JSON lines as whole columns: many lines that are written alike, parsed at once by pyarrow.

`read_block` gives up (None) on whatever it does not know, and on whatever looks wrong: then each
line is parsed and checked by `saen.io.formats.jsonl`, which accepts the same graphs and says what
is wrong.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from saen._util.arrays import Array
from saen._util.lazy import import_extra
from saen.errors import InputError, MissingExtraError
from saen.io.parsing.records import MAX_TARGET_LENGTH, Block
from saen.io.parsing.text_files import BYTE_ORDER_MARK, check_text, check_width

MIN_BYTES = 2**16
"""Text that is read line by line before pyarrow is imported."""

_MAX_NODES = 2**31  # of one graph: the sum over a block fits into 64 bits
_SPARE = 2**27  # bytes, more than a block and a new thread need
_MAX_EXACT = 2.0**53  # integers from here on are not exact as floats


class _UnknownError(Exception):
    """These lines have to be read one by one."""


def read_block(data: bytes, path: Path, line: int, row: int) -> Block | None:
    """The graphs of consecutive lines, the first of them `line` and graph number `row` of its file.

    >>> data = b'{"nodes": ["O", "H"], "edges": [[0, 1]]}\\n' * 10_000
    >>> read_block(data, Path("x.jsonl"), 1, 0).sizes.sum()
    np.int64(20000)
    >>> read_block(data[:-1] + b" ?", Path("x.jsonl"), 1, 0) is None
    True
    """
    if len(data) < MIN_BYTES:
        return None
    with suppress(_UnknownError, InputError, UnicodeDecodeError, MissingExtraError):
        return _block(data, path, line, row)
    return None


def _block(data: bytes, path: Path, line: int, row: int) -> Block:
    text = data.removeprefix(BYTE_ORDER_MARK) if line == 1 else data
    text = (text.replace(b"\r\n", b"\n") if b"\r" in text else text).rstrip(b"\n")
    n_lines = text.count(b"\n") + 1
    # Together with the number of objects below: exactly one object per line.
    _require(text[:1] == b"{" and text[-1:] == b"}" and text.count(b"}\n{") == n_lines - 1)
    if not text.isascii():
        text.decode()
    columns = _parsed(text, n_lines)
    lines, rows = range(line, line + n_lines), range(row, row + n_lines)
    sizes, node_columns = _nodes(columns.pop("nodes"), len(text))
    edge_counts, edges, edge_columns = _edges(columns.pop("edges"), len(text))
    limits = np.repeat(sizes, edge_counts)[:, None]
    _require(((edges >= 0) & (edges < limits)).all())
    directed = columns.get("directed")
    direction = False if directed is None else directed[0].as_py()
    _require(directed is None or directed.true_count == (n_lines if direction else 0))
    target = columns.get("target", columns.get("label"))
    return Block(
        path,
        lines,
        rows,
        sizes,
        edge_counts,
        edges,
        node_columns | edge_columns,
        direction,
        [None] * n_lines if target is None else _targets(target),
        rows if "id" not in columns else _ids(columns["id"]),
    )


def _require(condition: object) -> None:
    if not condition:
        raise _UnknownError


# -- parsing -----------------------------------------------------------------------------------


def _parsed(text: bytes, n_lines: int) -> dict[str, Any]:
    """The values of each key, as arrow arrays without nulls."""
    arrow = import_extra("pyarrow", "pyarrow", extra="parquet")
    arrow_json = import_module("pyarrow.json")
    schema = _schema(text.partition(b"\n")[0], arrow)
    # Where memory lacks, the C library ends the process in pyarrow's thread: better an error here.
    np.empty(_SPARE, np.uint8)
    try:
        table = arrow_json.read_json(
            io.BytesIO(text),
            read_options=arrow_json.ReadOptions(use_threads=False, block_size=len(text) + 1),
            parse_options=arrow_json.ParseOptions(
                explicit_schema=schema, unexpected_field_behavior="error"
            ),
        )
    except (arrow.ArrowException, OverflowError):
        raise _UnknownError from None
    _require(table.num_rows == n_lines)
    columns = {name: table[name].combine_chunks() for name in table.column_names}
    _require(not any(map(_has_nulls, columns.values())))
    return columns


def _schema(first: bytes, arrow: Any) -> Any:
    """The types of all graphs, from the first one."""
    try:
        document = json.loads(first)
    except (ValueError, RecursionError):
        raise _UnknownError from None
    _require({"nodes", "edges"} <= set(document) and not {"label", "target"} <= set(document))
    numbers = dict.fromkeys((int, float), arrow.float64())
    kinds: dict[str, Callable[[Any], Any]] = {
        "nodes": lambda value: _nodes_type(value, arrow),
        "edges": lambda value: _edges_type(value, arrow),
        "target": lambda value: _plain_type(value, {str: arrow.string(), **numbers}),
        "label": lambda value: _plain_type(value, {str: arrow.string(), **numbers}),
        "id": lambda value: _plain_type(value, {str: arrow.string(), int: arrow.int64()}),
        "directed": lambda value: _plain_type(value, {bool: arrow.bool_()}),
    }
    _require(set(kinds) >= set(document))
    return arrow.schema([(key, kinds[key](value)) for key, value in document.items()])


def _plain_type(value: Any, types: dict[type, Any]) -> Any:
    _require(type(value) in types)
    return types[type(value)]


def _nodes_type(nodes: Any, arrow: Any) -> Any:
    if type(nodes) is int:
        return arrow.int64()
    _require(type(nodes) is list and nodes)
    if type(nodes[0]) is dict:
        return arrow.list_(arrow.struct(_column_types(nodes[0], arrow)))
    return arrow.list_(_plain_type(nodes[0], {str: arrow.string(), int: arrow.int64()}))


def _edges_type(edges: Any, arrow: Any) -> Any:
    _require(type(edges) is list)
    if not edges or type(edges[0]) is list:
        return arrow.list_(arrow.list_(arrow.int64()))
    _require(type(edges[0]) is dict and {"source", "target"} <= set(edges[0]))
    own = {key: value for key, value in edges[0].items() if key not in ("source", "target")}
    ends = [("source", arrow.int64()), ("target", arrow.int64())]
    return arrow.list_(arrow.struct([*ends, *_column_types(own, arrow)]))


def _column_types(item: dict[str, Any], arrow: Any) -> list[tuple[str, Any]]:
    """The types of the label and the attributes of a node or an edge."""
    _require({"label", "attributes"} >= set(item) and item)
    out = []
    if "label" in item:
        types = {str: arrow.string(), int: arrow.int64()}
        out.append(("label", _plain_type(item["label"], types)))
    if "attributes" in item:
        types = dict.fromkeys((int, float), arrow.float64())
        out.append(
            (
                "attributes",
                _plain_type(item["attributes"], {**types, list: arrow.list_(arrow.float64())}),
            )
        )
    return out


def _has_nulls(array: Any) -> bool:
    if array.null_count:
        return True
    if hasattr(array, "flatten"):
        parts = array.flatten()  # of lists their items, of structures a list of their fields
        return any(map(_has_nulls, parts if isinstance(parts, list) else [parts]))
    return False


# -- columns -----------------------------------------------------------------------------------


def _lengths(lists: Any) -> NDArray[np.int64]:
    return np.diff(_array(lists.offsets)).astype(np.int64)


def _nodes(nodes: Any, n_bytes: int) -> tuple[NDArray[np.int64], dict[str, Array]]:
    """The size of each graph, and the columns of all nodes."""
    if not hasattr(nodes, "offsets"):
        sizes: NDArray[np.int64] = _array(nodes)
        _require(((sizes >= 0) & (sizes < _MAX_NODES)).all())
        return sizes, {}
    items = nodes.flatten()
    columns = (
        _columns("node", items, n_bytes)
        if hasattr(items, "field")
        else {"node_labels": _labels(items, n_bytes, "node labels")}
    )
    return _lengths(nodes), columns


def _edges(
    edges: Any, n_bytes: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], dict[str, Array]]:
    """The number of edges of each graph, their ends, shape (E, 2), and the columns of all edges."""
    items = edges.flatten()
    if hasattr(items, "field"):
        ends = np.column_stack([items.field(key).to_numpy() for key in ("source", "target")])
        return _lengths(edges), ends, _columns("edge", items, n_bytes) if len(items) else {}
    _require((_lengths(items) == 2).all())
    return _lengths(edges), items.flatten().to_numpy().reshape(-1, 2), {}


def _columns(what: str, items: Any, n_bytes: int) -> dict[str, Array]:
    names = {field.name for field in items.type}
    columns: dict[str, Array] = {}
    if "label" in names:
        key = f"{what}_labels"
        columns[key] = _labels(items.field("label"), n_bytes, key.replace("_", " "))
    if "attributes" in names:
        columns[f"{what}_attributes"] = _numbers(items.field("attributes"))
    return columns


def _labels(values: Any, n_bytes: int, what: str) -> Array:
    if not hasattr(values, "dictionary_encode") or str(values.type) == "int64":
        return _array(values)
    encoded = values.dictionary_encode()
    distinct = encoded.dictionary.to_pylist()
    check_text(distinct, what)
    check_width(max(map(len, distinct)), len(values), n_bytes, what)
    return np.array(distinct, dtype=np.str_)[_array(encoded.indices)]


def _numbers(values: Any) -> Array:
    """Numbers, or flat lists of as many numbers each, shape (n, k)."""
    width = 1
    if hasattr(values, "offsets"):
        lengths = _lengths(values)
        width = int(lengths[0])
        _require(width and (lengths == width).all())
        values = values.flatten()
    numbers = _array(values)
    _require(np.isfinite(numbers).all())
    return numbers.reshape(-1, width)


def _array(values: Any) -> Array:
    out: Array = values.to_numpy()
    return out


def _targets(values: Any) -> list[Any]:
    targets: list[Any] = values.to_pylist()
    if str(values.type) == "string":
        check_text(targets, "targets")
    else:
        _require((np.abs(_array(values)) < _MAX_EXACT).all())
    return targets


def _ids(values: Any) -> list[Any]:
    ids: list[Any] = values.to_pylist()
    if str(values.type) == "string":
        check_text(ids, "ids")
        _require(max(map(len, ids)) <= MAX_TARGET_LENGTH)
    return ids
