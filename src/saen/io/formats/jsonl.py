"""JSON lines: one graph per line."""

from __future__ import annotations

import io
import json
from collections.abc import Container, Iterator
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from saen._util.arrays import Array
from saen._util.atomic import atomic_write
from saen._util.progress import bar
from saen._util.strings import did_you_mean
from saen.data.graphs import Graphs
from saen.errors import FileError, InputError
from saen.io.formats.checks import check_plain
from saen.io.formats.format import Format
from saen.io.formats.jsonl_blocks import read_block
from saen.io.libraries.plain_graphs import plain_graphs
from saen.io.options import ReadOptions
from saen.io.parsing.columns import LABEL, Choice, Items, text_columns
from saen.io.parsing.records import BadGraphs, Record, Records, as_target, check_id
from saen.io.parsing.tables import split_names
from saen.io.parsing.text_files import is_blank, parse_json_line, unreadable

SUFFIXES = (".jsonl", ".ndjson")

EXAMPLE = '{"nodes": ["C", "O"], "edges": [[0, 1]], "target": "a"}'
KEYS = ("nodes", "edges", "target", "id", "directed")
STRUCTURE = {"node": ("id",), "edge": ("source", "target")}
"""Keys of nodes and edges that are neither labels nor attributes."""
ATTRIBUTES = "attributes"
"""The key of a list of numbers."""

_CHOSEN = ("target", "id")  # keys that options name, and a model remembers
_COLUMNS = ("node_label", "node_attribute", "edge_label", "edge_weight")

_OPTIONAL = ("target", "directed")  # misspelt, they would be missed in silence
# `label` is an alias of `target`; networkx.node_link_data writes the others.
_ALSO_ALLOWED = ("label", "multigraph", "graph")

PART_BYTES = 2**22
"""Text of the graphs that a stream holds at a time, about."""

_BLOCK_BYTES = 2**22  # parsed at once


def read_jsonl(path: Path, options: ReadOptions, bad_graph: BadGraphs) -> Graphs:
    """Read a file of JSON lines; keys that saen does not know become `extra` columns.

    >>> file = getfixture("tmp_path") / "water.jsonl"
    >>> _ = file.write_text(
    ...     '{"nodes": ["O", "H", "H"], "edges": [[0, 1], [0, 2]], "target": "wet"}\\n'
    ... )
    >>> read_jsonl(file, ReadOptions(), BadGraphs(skip=False, report=print))
    Graphs(water: 1 graph, 3 nodes, 2 edges, undirected; 1 class, 2 node labels)
    """
    [graphs] = _parts(path, options, bad_graph, every=None)
    return graphs


def stream_jsonl(path: Path, options: ReadOptions, bad_graph: BadGraphs) -> Iterator[Graphs]:
    """Read a file of JSON lines in parts of about `PART_BYTES` bytes.

    Graphs of all parts must match, as those of one file that `read_jsonl` reads.
    """
    return _parts(path, options, bad_graph, PART_BYTES)


def _parts(
    path: Path, options: ReadOptions, bad_graph: BadGraphs, every: int | None
) -> Iterator[Graphs]:
    records = Records(bad_graph, path)
    for option in _CHOSEN:
        options.usual(option, ())  # which remembers what is named
    said: set[str] = set()
    line, row, done, since = 1, 0, 0, 0
    have_targets: set[bool] = set()

    def collected() -> Graphs:
        graphs = records.graphs(path.stem)
        have_targets.update([graphs.targets is not None] if len(graphs) else [])
        if not options.partial_targets and len(have_targets) > 1:
            raise FileError(
                f"some graphs before line {line} have a target, others have none; either all "
                "graphs need one, or none",
                path=path,
            )
        return graphs

    with bar("reading graphs", _size(path), options.progress) as update:
        for data in _blocks(path):
            row += _add(data, records, path, line, row, options, said)
            line += data.count(b"\n")
            done, since = done + len(data), since + len(data)
            update(done)
            if every is not None and since >= every:
                since = 0
                yield collected()
    if not row:
        raise FileError("the file is empty", path=path)
    if said and options.notify is not None:
        options.notify(f"{path.name}: {'; '.join(sorted(said))}"[:400])
    if every is None or since:
        yield collected()


def _add(
    data: bytes,
    records: Records,
    path: Path,
    first_line: int,
    first_row: int,
    options: ReadOptions,
    said: set[str],
) -> int:
    """Add the graphs of some lines, all at once or else one by one; how many lines have one."""
    chosen = any(getattr(options, key) or key in options.like for key in _CHOSEN)
    usual = not (chosen or options.all_columns or _names_columns(options))
    block = read_block(data, path, first_line, first_row) if usual else None
    if block is not None:
        with suppress(FileError):  # below, the error names the graph
            records.add_block(block, len(data))
            return len(block.lines)
    row = first_row
    for line, text in enumerate(io.BytesIO(data), start=first_line):
        if not is_blank(text):
            try:
                record = _record(text, path, line, row, options)
                records.add(record, len(text))
                said.update(filter(None, (each.line() for each in record.choices)))
            except FileError as error:
                error.record = row
                records.bad_graph(error)
            row += 1
    return row - first_row


def _blocks(path: Path) -> Iterator[bytes]:
    """The file in blocks of whole lines."""
    try:
        with path.open("rb") as file:
            while data := file.read(_BLOCK_BYTES):
                yield data if data.endswith(b"\n") else data + file.readline()
    except OSError as error:
        raise unreadable(error, path) from None


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError as error:
        raise unreadable(error, path) from None


def _refuse(constant: str) -> None:
    raise InputError(f"{constant} is not supported: numbers must be finite")


_DECODER = json.JSONDecoder(parse_constant=_refuse)


def _record(data: bytes, path: Path, line: int, row: int, options: ReadOptions) -> Record:
    document = parse_json_line(data, path, line, _DECODER)
    try:
        if not isinstance(document, dict):
            raise InputError(f"expected one object per graph, found {_shown(document)}")
        target, own_id, extra = _about(document, options)
        size, position, nodes = _nodes(document["nodes"], len(data), options)
        edges, ends = _edges(document["edges"], size, position, len(data), options)
        return Record(
            path,
            line,
            size,
            edges,
            nodes.columns | ends.columns,
            nodes.names | ends.names,
            directed=document.get("directed", False),
            target=target,
            id=row if own_id is None else own_id,
            extra=extra,
            row=row,
            choices=(*nodes.choices, *ends.choices),
        )
    except RecursionError:  # of an error message that shows what is nested deeply
        raise FileError("nested too deeply", path=path, line=line) from None
    except InputError as error:
        raise FileError(str(error), path=path, line=line) from None


def _about(document: dict[str, Any], options: ReadOptions) -> tuple[Any, Any, dict[str, Any]]:
    """Target, id and extra values of a graph, whose keys are checked."""
    if "parts" in document or [*document] == ["levels"]:
        raise InputError("nested data, not a graph: use a decomposition such as nested")
    partial = options.partial_targets
    keys = (_key(document, option, options) for option in _CHOSEN)
    target, own_id, rest = example_keys(document, *keys, partial=partial)
    for key in ("nodes", "edges"):
        if key not in document:
            raise InputError(f"no {key!r}: {_how_to_give(document)}")
    directed = document.get("directed", False)
    if not isinstance(directed, bool):
        raise InputError(f"'directed' must be true or false, not {_shown(directed)}")
    known = {"nodes", "edges", "directed", *_ALSO_ALLOWED[1:]}
    extra = {key: value for key, value in rest.items() if key not in known}
    optional = _OPTIONAL[1:] if partial else _OPTIONAL
    misspelt = [key for key in extra if key not in KEYS and did_you_mean(key, optional)]
    if misspelt:
        raise InputError(
            f"the graph has an unknown key {_shown(misspelt[0])}; known keys: {', '.join(KEYS)}"
            f"{did_you_mean(misspelt[0], KEYS)}"
        )
    if options.all_columns:
        extra = all_keys(document, options.id, known)
    return target, own_id, extra


def _key(document: dict[str, Any], option: str, options: ReadOptions) -> str | None:
    """The key that an option names, else that of a model's data where the graph has it."""
    given: str | None = getattr(options, option)
    before = options.like.get(option, "") if given is None else ""
    return before if {*split_names(before)} & {*document} else given


def _how_to_give(document: dict[str, Any]) -> str:
    """What a line without nodes or edges should be instead, by what it has."""
    keys = {key.casefold() for key in document}
    if "smiles" in keys:
        return 'for molecules, use a table with a column "smiles" (.csv), or a .smi file'
    if "links" in keys:
        return 'with networkx, use node_link_data(graph, edges="edges")'
    nested = "" if keys & {"nodes", "edges"} else '; convert with kind="nested" reads any JSON'
    return f"a graph is a line such as {EXAMPLE}{nested}"


def all_keys(
    document: dict[str, Any], own_id: str | None, without: Container[str]
) -> dict[str, Any]:
    """What is under all keys but some, and but the usual one of ids, which each example has."""
    return {k: v for k, v in document.items() if k not in without and (own_id or k != "id")}


def example_keys(
    document: dict[str, Any], target: str | None, own_id: str | None, *, partial: bool = False
) -> tuple[Any, Any, dict[str, Any]]:
    """The target (see `as_target`) and id of an example, and what is under its other keys.

    `target` and `own_id` are the keys to take them from, several targets separated by commas. With
    `partial`, a target that is missing or cannot be read is None.

    >>> example_keys({"a": 1, "b": 2, "c": 3}, "a", None)
    (1, None, {'b': 2, 'c': 3})
    """
    if target is None and "label" in document and "target" in document and not partial:
        raise InputError("both 'target' and its alias 'label'")
    usual = "label" if "label" in document and "target" not in document else "target"
    keys = [usual] if target is None else split_names(target)
    for key in [*(keys if target and not partial else ()), *([own_id] if own_id else ())]:
        if key not in document and len(keys) == 1:
            raise InputError(f"no {key!r}{did_you_mean(key, document)}")
    values = [document.get(key) for key in keys]
    read = _partial_target if partial else as_target
    targets = read(values[0] if len(keys) == 1 else values)
    name = document.get(own_id or "id")
    check_id(name)
    rest = {k: v for k, v in document.items() if k not in (*keys, own_id or "id")}
    return targets, name, rest


def _partial_target(value: Any) -> Any:
    with suppress(InputError):
        return as_target(value)
    return None


# -- nodes and edges ---------------------------------------------------------------------------


def _nodes(
    nodes: Any, n_bytes: int, options: ReadOptions
) -> tuple[int, dict[int | str, int] | None, _Columns]:
    """Their number, the position of each by its id (None without ids), and their columns."""
    if isinstance(nodes, int) and not isinstance(nodes, bool):
        if nodes < 0:
            raise InputError(f"'nodes' must be at least 0, not {nodes}")
        return nodes, None, _Columns()
    if not isinstance(nodes, list):
        raise InputError(f"'nodes' must be a count or a list, not {_shown(nodes)}")
    if not nodes:
        return 0, None, _Columns()
    items = Items("node", nodes, "node {}".format, n_bytes)
    if not isinstance(nodes[0], dict):
        return len(nodes), None, _Columns({"node_labels": items.label_array(nodes)})
    columns = _columns(items, options)
    ids = items.values("id")
    return len(nodes), None if ids is None else _positions(ids), columns


class _Columns(NamedTuple):
    """Columns of nodes or edges, their names, and how they were chosen."""

    columns: dict[str, Array] = {}  # noqa: RUF012
    names: dict[str, tuple[str, ...]] = {}  # noqa: RUF012
    choices: tuple[Choice, ...] = ()


def _positions(ids: list[Any]) -> dict[int | str, int]:
    position: dict[int | str, int] = {}
    for node, name in enumerate(ids):
        if type(name) not in (int, str):
            raise InputError(
                f"node {node}: the id must be an integer or a string, not {_shown(name)}"
            )
        if position.setdefault(name, node) != node:
            raise InputError(f"two nodes have the id {_shown(name)}")
    return position


def _edges(
    edges: Any, size: int, position: dict[int | str, int] | None, n_bytes: int, options: ReadOptions
) -> tuple[NDArray[np.int64], _Columns]:
    """Pairs of node positions, shape (E, 2), and the columns of the edges."""
    if not isinstance(edges, list):
        raise InputError(f"'edges' must be a list, not {_shown(edges)}")
    columns = _Columns()
    ends: list[Any]
    if edges and isinstance(edges[0], dict):
        items = Items("edge", edges, "edge {}".format, n_bytes)
        columns = _columns(items, options)
        sources, targets = items.values("source"), items.values("target")
        if sources is None or targets is None:
            raise InputError(f"edge 0 has no {'source' if sources is None else 'target'!r}")
        ends = [*chain.from_iterable(zip(sources, targets, strict=True))]
    else:
        if set(map(type, edges)) - {list} or set(map(len, edges)) - {2}:
            wrong = next(e for e, p in enumerate(edges) if type(p) is not list or len(p) != 2)
            raise InputError(f"edge {wrong} must be a pair, not {_shown(edges[wrong])}")
        ends = [*chain.from_iterable(edges)]
    return _pairs(ends, size, position), columns


def _pairs(ends: list[Any], size: int, position: dict[int | str, int] | None) -> NDArray[np.int64]:
    """The nodes that edges refer to, as positions, shape (E, 2)."""
    kinds: set[type]
    known: Container[Any]
    if position is None:
        kinds, known = {int}, range(min(size, np.iinfo(np.int64).max))
        reason = f"nodes without ids are numbered 0 … {size - 1}" if size else "there are no nodes"
    else:
        kinds, known, reason = {int, str}, position, "no node has that id"
    if kinds >= set(map(type, ends)):
        with suppress(OverflowError, KeyError):
            places = ends if position is None else [position[name] for name in ends]
            pairs = np.array(places, dtype=np.int64).reshape(-1, 2)
            if ((pairs >= 0) & (pairs < size)).all():
                return pairs
    wrong = next(e for e, name in enumerate(ends) if type(name) not in kinds or name not in known)
    raise InputError(f"edge {wrong // 2} refers to node {_shown(ends[wrong])}, but {reason}")


def _names_columns(options: ReadOptions) -> bool:
    """Whether columns of nodes or edges are named other than `label`, here or for a model."""
    given = any(getattr(options, option) is not None for option in _COLUMNS)
    return given or any(options.like.get(option, LABEL) != LABEL for option in _COLUMNS)


def _columns(items: Items, options: ReadOptions) -> _Columns:
    """Labels and attributes; keys of other names as in GraphML."""
    what, objects = items.what, items.data
    if set(map(type, objects)) - {dict}:
        number = next(number for number, item in enumerate(objects) if type(item) is not dict)
        raise InputError(f"{what} {number} must be an object, not {_shown(objects[number])}")
    others = set().union(*objects).difference(STRUCTURE[what], (LABEL, ATTRIBUTES))
    if not (others or _names_columns(options)):
        columns = {
            f"{what}_labels": items.labels(LABEL),
            f"{what}_attributes": items.numbers(ATTRIBUTES),
        }
        return _Columns({key: column for key, column in columns.items() if column is not None})
    kinds = text_columns(objects)
    kinds |= {ATTRIBUTES: False} if ATTRIBUTES in kinds else {}
    own = {key: kind for key, kind in kinds.items() if key not in STRUCTURE[what]}
    choice = Choice.by(what, own, options)
    return _Columns(*items.chosen(choice), (choice,))


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 60 else text[:60] + "…"


# -- writing -----------------------------------------------------------------------------------


def write_jsonl(graphs: Graphs, file: Path) -> None:
    """Write one line per graph, in the format that `read_jsonl` reads."""
    check_plain(graphs, "jsonl")
    document: dict[str, Any]
    named = not np.array_equal(graphs.ids, np.arange(len(graphs)))
    with atomic_write(file) as temporary, temporary.open("w", encoding="utf-8") as out:
        for graph in plain_graphs(graphs):
            document = {
                k: v for k, v in graph.extra.items() if k not in (*KEYS, "label") and v == v
            }
            document |= {"id": graph.id} if named else {}
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


JSON_LINES = Format(
    "jsonl",
    "JSON lines",
    SUFFIXES,
    "graphs",
    (*_CHOSEN, *_COLUMNS),
    read_jsonl,
    stream_jsonl,
    write_jsonl,
)
