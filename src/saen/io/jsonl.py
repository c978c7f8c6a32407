"""JSON lines: one graph per line."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from saen._util.arrays import Array
from saen._util.progress import bar
from saen._util.strings import did_you_mean, plural
from saen.data.graphs import Graphs
from saen.errors import FileError, InputError
from saen.io.records import BadGraphs, Record, Records, check_id, check_target, plain_graphs
from saen.io.text_files import (
    check_text,
    check_width,
    numbered_lines,
    parse_json_line,
    unreadable,
)

SUFFIXES = (".jsonl", ".ndjson")

KEYS = ("nodes", "edges", "target", "id", "directed")
NODE_KEYS = ("id", "label", "attributes")
EDGE_KEYS = ("source", "target", "label", "attributes")

# `label` is an alias of `target`; networkx.node_link_data writes the others.
_ALSO_ALLOWED = ("label", "multigraph", "graph")

_LINES_PER_UPDATE = 256  # of the progress bar


def read_jsonl(path: Path, bad_graph: BadGraphs, progress: bool | None = None) -> Graphs:
    """Read a file of JSON lines.

    >>> file = getfixture("tmp_path") / "water.jsonl"
    >>> _ = file.write_text(
    ...     '{"nodes": ["O", "H", "H"], "edges": [[0, 1], [0, 2]], "target": "wet"}\\n'
    ... )
    >>> read_jsonl(file, BadGraphs(skip=False, report=print))
    Graphs(water: 1 graph, 3 nodes, 2 edges, undirected; 1 class, 2 node labels)
    """
    records = Records(bad_graph, path)
    line = 0
    with bar("reading graphs", _count_lines(path), progress) as update:
        for row, (line, data) in enumerate(numbered_lines(path)):
            if line % _LINES_PER_UPDATE == 0:
                update(line)
            try:
                records.add(_record(data, path, line, row), len(data))
            except FileError as error:
                bad_graph(error)
    if not line:
        raise FileError("the file is empty", path=path)
    return records.graphs(path.stem)


def _count_lines(path: Path) -> int:
    try:
        with path.open("rb") as file:
            return sum(block.count(b"\n") for block in iter(lambda: file.read(2**20), b"")) + 1
    except OSError as error:
        raise unreadable(error, path) from None


def _refuse(constant: str) -> None:
    raise InputError(f"{constant} is not supported: numbers must be finite")


_DECODER = json.JSONDecoder(parse_constant=_refuse)


def _record(data: bytes, path: Path, line: int, row: int) -> Record:
    document = parse_json_line(data, path, line, _DECODER)
    try:
        if not isinstance(document, dict):
            raise InputError(f"expected one object per graph, found {_shown(document)}")
        return _graph(document, path, line, row, len(data))
    except RecursionError:  # of an error message that shows what is nested deeply
        raise FileError("nested too deeply", path=path, line=line) from None
    except InputError as error:
        raise FileError(str(error), path=path, line=line) from None


def _graph(document: dict[str, Any], path: Path, line: int, row: int, n_bytes: int) -> Record:
    if "parts" in document or [*document] == ["levels"]:
        raise InputError("nested data, not a graph: use a decomposition such as nested")
    _check_keys([document], KEYS, "the graph", _ALSO_ALLOWED)
    for key in ("nodes", "edges"):
        if key not in document:
            raise InputError(f"no {key!r}")
    if "label" in document and "target" in document:
        raise InputError("both 'target' and its alias 'label'")
    target = document.get("target", document.get("label"))
    directed = document.get("directed", False)
    if not isinstance(directed, bool):
        raise InputError(f"'directed' must be true or false, not {_shown(directed)}")
    check_target(target)
    own_id = document.get("id")
    check_id(own_id)
    size, position, columns = _nodes(document["nodes"], n_bytes)
    edges, edge_columns = _edges(document["edges"], size, position, n_bytes)
    return Record(
        path,
        line,
        size,
        edges,
        columns | edge_columns,
        directed=directed,
        target=target,
        id=row if own_id is None else own_id,
    )


# -- nodes and edges ---------------------------------------------------------------------------


def _nodes(nodes: Any, n_bytes: int) -> tuple[int, dict[int | str, int] | None, dict[str, Array]]:
    """Their number, the position of each by its id (None without ids), and their columns."""
    if isinstance(nodes, int) and not isinstance(nodes, bool):
        if nodes < 0:
            raise InputError(f"'nodes' must be at least 0, not {nodes}")
        return nodes, None, {}
    if not isinstance(nodes, list):
        raise InputError(f"'nodes' must be a count or a list, not {_shown(nodes)}")
    if not nodes:
        return 0, None, {}
    if not isinstance(nodes[0], dict):
        return len(nodes), None, {"node_labels": label_array(nodes, "node", n_bytes)}
    _check_keys(nodes, NODE_KEYS, "node")
    ids = _values(nodes, "id", "node")
    position = None if ids is None else _positions(ids)
    return len(nodes), position, _columns(nodes, "node", n_bytes)


def _positions(ids: list[Any]) -> dict[int | str, int]:
    if set(map(type, ids)) - {int, str}:
        wrong = next(node for node, name in enumerate(ids) if type(name) not in (int, str))
        raise InputError(
            f"node {wrong}: the id must be an integer or a string, not {_shown(ids[wrong])}"
        )
    position = dict(zip(ids, range(len(ids)), strict=True))
    if len(position) < len(ids):
        twice = next(name for node, name in enumerate(ids) if position[name] != node)
        raise InputError(f"two nodes have the id {_shown(twice)}")
    return position


def _edges(
    edges: Any, size: int, position: dict[int | str, int] | None, n_bytes: int
) -> tuple[NDArray[np.int64], dict[str, Array]]:
    """Pairs of node positions, shape (E, 2), and the columns of the edges."""
    if not isinstance(edges, list):
        raise InputError(f"'edges' must be a list, not {_shown(edges)}")
    columns: dict[str, Array] = {}
    ends: list[Any]
    if edges and isinstance(edges[0], dict):
        _check_keys(edges, EDGE_KEYS, "edge")
        sources, targets = (_values(edges, key, "edge") for key in ("source", "target"))
        if sources is None or targets is None:
            raise InputError(f"edge 0 has no {'source' if sources is None else 'target'!r}")
        ends = [*chain.from_iterable(zip(sources, targets, strict=True))]
        columns = _columns(edges, "edge", n_bytes)
    else:
        if set(map(type, edges)) - {list} or set(map(len, edges)) - {2}:
            wrong = next(e for e, p in enumerate(edges) if type(p) is not list or len(p) != 2)
            raise InputError(f"edge {wrong} must be a pair, not {_shown(edges[wrong])}")
        ends = [*chain.from_iterable(edges)]
    return _pairs(ends, size, position), columns


def _pairs(ends: list[Any], size: int, position: dict[int | str, int] | None) -> NDArray[np.int64]:
    """The nodes that edges refer to, as positions, shape (E, 2)."""
    if position is not None:
        if set(map(type, ends)) - {int, str} or not position.keys() >= set(ends):
            wrong = next(
                end
                for end, name in enumerate(ends)
                if type(name) not in (int, str) or name not in position
            )
            raise InputError(
                f"edge {wrong // 2} refers to node {_shown(ends[wrong])}, but no node has that id"
            )
        return np.array([position[name] for name in ends], dtype=np.int64).reshape(-1, 2)
    if set(map(type, ends)) <= {int}:
        try:
            pairs = np.array(ends, dtype=np.int64).reshape(-1, 2)
        except OverflowError:
            pass  # out of range, which is reported below
        else:
            if pairs.size == 0 or (pairs.min() >= 0 and pairs.max() < size):
                return pairs
    numbered = f"nodes without ids are numbered 0 … {size - 1}" if size else "there are no nodes"
    wrong = next(e for e, node in enumerate(ends) if type(node) is not int or not 0 <= node < size)
    raise InputError(f"edge {wrong // 2} refers to node {_shown(ends[wrong])}, but {numbered}")


def _columns(objects: list[dict[str, Any]], what: str, n_bytes: int) -> dict[str, Array]:
    out = {}
    labels = _values(objects, "label", what)
    if labels is not None:
        out[f"{what}_labels"] = label_array(labels, what, n_bytes)
    attributes = _values(objects, "attributes", what)
    if attributes is not None:
        out[f"{what}_attributes"] = _attribute_array(attributes, what)
    return out


def _check_keys(
    objects: Sequence[Any], known: tuple[str, ...], what: str, also_allowed: tuple[str, ...] = ()
) -> None:
    if set(map(type, objects)) - {dict}:
        number = next(number for number, item in enumerate(objects) if type(item) is not dict)
        raise InputError(f"{what} {number} must be an object, not {_shown(objects[number])}")
    unknown = set().union(*objects).difference(known, also_allowed)
    if unknown:
        key = min(unknown)
        number = next(number for number, item in enumerate(objects) if key in item)
        place = what if what == "the graph" else f"{what} {number}"
        raise InputError(
            f"{place} has an unknown key {_shown(key)}; known keys: {', '.join(known)}"
            f"{did_you_mean(key, known)}"
        )


def _values(objects: list[dict[str, Any]], key: str, what: str) -> list[Any] | None:
    """The values of all objects under a key; None if no object has it."""
    missing = object()
    values = [item.get(key, missing) for item in objects]
    if missing not in values:
        return values
    if all(value is missing for value in values):
        return None
    raise InputError(f"{what} {values.index(missing)} has no {key!r}, but others have one")


# -- labels and attributes ---------------------------------------------------------------------


def label_array(values: list[Any], what: str, n_bytes: int) -> Array:
    """Labels, shape (n,), or (n, k) if each is a list; `InputError` names the first bad one."""
    if set(map(type, values)) == {list}:
        widths = {len(value) for value in values}
        if widths == {0} or len(widths) > 1:
            raise InputError(f"{what} labels that are lists must have one length, at least 1")
        flat = [*chain.from_iterable(values)]
        return _plain_labels(flat, what, n_bytes, len(values[0])).reshape(len(values), -1)
    return _plain_labels(values, what, n_bytes, 1)


def _plain_labels(values: list[Any], what: str, n_bytes: int, width: int) -> Array:
    kinds = set(map(type, values))
    if kinds == {int}:
        try:
            return np.array(values, dtype=np.int64)
        except OverflowError:
            raise InputError(f"one of the {what} labels does not fit into 64 bits") from None
    if kinds == {str}:
        check_text(values, f"{what} labels")
        check_width(max(map(len, values)), len(values), n_bytes, f"{what} labels")
        return np.array(values, dtype=np.str_)
    for number, value in enumerate(values):
        if type(value) not in (int, str):
            raise InputError(
                f"{what} {number // width}: the label must be an integer or a string, not "
                f"{_shown(value)}"
            )
    number = next(n for n, value in enumerate(values) if type(value) is not type(values[0]))
    raise InputError(
        f"{what} {number // width}: the label is {_shown(values[number])}, but that of {what} 0 is "
        f"{_shown(values[0])}: use only strings or only integers"
    )


def _attribute_array(values: list[Any], what: str) -> Array:
    """Attributes as floats, shape (n, k)."""
    lists = set(map(type, values)) == {list}
    if not lists or set(map(type, chain.from_iterable(values))) - {int, float}:
        wrong = next(
            number
            for number, value in enumerate(values)
            if type(value) is not list or set(map(type, value)) - {int, float}
        )
        raise InputError(
            f"{what} {wrong}: the attributes must be a list of numbers, not {_shown(values[wrong])}"
        )
    width = len(values[0])
    if set(map(len, values)) != {width}:
        wrong = next(number for number, value in enumerate(values) if len(value) != width)
        raise InputError(
            f"{what} {wrong}: {plural(len(values[wrong]), 'attribute')}, but {what} 0 has {width}"
        )
    try:
        table = np.array(values, dtype=np.float64).reshape(len(values), width)
    except OverflowError:
        table = np.full((1, 1), np.inf)
    if not np.isfinite(table).all():
        raise InputError(f"one of the {what} attributes is too large")
    return table


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 60 else text[:60] + "…"


# -- writing -----------------------------------------------------------------------------------


def write_jsonl(graphs: Graphs, file: Path) -> None:
    """Write one line per graph, in the format that `read_jsonl` reads."""
    named = not np.array_equal(graphs.ids, np.arange(len(graphs)))
    with file.open("w", encoding="utf-8") as out:
        for graph in plain_graphs(graphs):
            document: dict[str, Any] = {"id": graph.id} if named else {}
            if graphs.targets is not None:
                document["target"] = graph.target
            if graphs.directed:
                document["directed"] = True
            document["nodes"] = (
                graph.node_data()
                if "attributes" in graph.nodes
                else (graph.nodes.get("label", graph.size))
            )
            document["edges"] = (
                graph.pairs
                if not graph.edges
                else [
                    {"source": source, "target": target, **data}
                    for (source, target), data in zip(graph.pairs, graph.edge_data(), strict=True)
                ]
            )
            out.write(json.dumps(document) + "\n")
