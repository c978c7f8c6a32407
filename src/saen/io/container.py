"""The `.saen` format: safetensors with JSON metadata, for graphs, hierarchies and models.

Files are written atomically, have a format version and a checksum, and are memory-mapped on load.
Integers are stored in the narrowest type that fits. There is no pickle: loading a foreign or
damaged file raises an error and never runs code.
"""

from __future__ import annotations

import json
import math
import mmap
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from safetensors import SafetensorError, safe_open

from saen._util.arrays import Array, index_dtype, narrow, smallest_unsigned
from saen._util.atomic import atomic_write
from saen._util.strings import short_label
from saen.data.compression import Compressed
from saen.data.documents import Documents
from saen.data.graphs import Graphs
from saen.data.hierarchy import Attributes, Hierarchy, Relation
from saen.data.nested import NestedData
from saen.data.vocabulary import Vocabulary
from saen.errors import FileError, InputError, SaenError
from saen.io.archive import FREE_BYTES, MAX_RATIO

FORMAT = "saen"
VERSION = 1

Storable = Graphs | Documents | NestedData | Hierarchy | Compressed
Data = TypeVar("Data", Graphs, Documents, NestedData)

_DTYPES = {
    "BOOL": np.bool_,
    "U8": np.uint8,
    "U16": np.uint16,
    "I32": np.int32,
    "U32": np.uint32,
    "F32": np.float32,
    "F64": np.float64,
    "I64": np.int64,
    "U64": np.uint64,
}
UNPACK_ERRORS = (
    SaenError,
    ArithmeticError,
    AttributeError,
    LookupError,
    MemoryError,
    RecursionError,
    RuntimeError,
    TypeError,
    ValueError,
)
"""What unpacking raises for contents that saen did not write."""

MAX_REASON = 200  # characters

_NAMES = {np.dtype(dtype): name for name, dtype in _DTYPES.items()}


def save(data: Storable, path: str | Path) -> int:
    """Write data, a hierarchy or a compressed hierarchy to a file; returns its size in bytes.

    Raises `FileError` if the file cannot be written.

    >>> from saen import load
    >>> folder = getfixture("tmp_path")
    >>> graphs = Graphs.from_edge_lists([[(0, 1)]])
    >>> _ = save(graphs, folder / "toy.saen")
    >>> load(folder / "toy.saen") == graphs
    True
    """
    if isinstance(data, Graphs):
        return write(path, "graphs", *_pack_graphs(data))
    if isinstance(data, Documents):
        return write(path, "documents", *_pack_documents(data))
    if isinstance(data, NestedData):
        return write(path, "nested", *_pack_nested(data))
    if isinstance(data, Hierarchy):
        return write(path, "hierarchy", *pack_hierarchy(data))
    if isinstance(data, Compressed):
        return write(path, "compressed", *_pack_compressed(data))
    raise InputError(f"cannot save a {type(data).__name__}")


def load(path: str | Path) -> Any:
    """Read a file that `save` wrote: data, a `Hierarchy` or a `Compressed`.

    Raises `FileError` if the file is missing, damaged, foreign or of a newer format.
    """
    kind, document, tensors = read(path)
    unpack = {
        "graphs": _unpack_graphs,
        "documents": _unpack_documents,
        "nested": _unpack_nested,
        "hierarchy": unpack_hierarchy,
        "compressed": _unpack_compressed,
    }.get(kind)
    if unpack is None:
        raise FileError(f"contains a {kind}, not data or a hierarchy", path=path)
    try:
        return unpack(document, tensors)
    except UNPACK_ERRORS as error:
        raise FileError(f"damaged: inconsistent content ({_reason(error)})", path=path) from error


def save_examples(
    compressed: Compressed, targets: Array | None, decomposition: Mapping[str, Any], path: Path
) -> int:
    """Write a compressed hierarchy with what training on it needs; the size of the file in bytes.

    `targets` (n,) or (n, t) are those of the examples, `decomposition` is the fitted one as JSON.
    `load` reads the hierarchy alone, `load_examples` all of it.
    """
    document, tensors = _pack_compressed(compressed)
    _pack_column("targets", targets, document, tensors)
    return write(path, "compressed", document | {"decomposition": decomposition}, tensors)


def load_examples(path: str | Path) -> tuple[Compressed, Array | None, dict[str, Any]]:
    """What `save_examples` wrote, memory-mapped: hierarchy, targets, decomposition as JSON.

    Raises `FileError` as `load` does, and if the file has a hierarchy alone.
    """
    kind, document, tensors = read(path)
    if kind != "compressed" or not isinstance(document.get("decomposition"), dict):
        raise FileError(
            "nothing to train on: compress the data again, with saen compress", path=path
        )
    try:
        compressed = _unpack_compressed(document, tensors)
        targets = _unpack_column("targets", document, tensors)
        if targets is not None and (targets.ndim not in (1, 2) or len(targets) != len(compressed)):
            raise InputError(f"{len(compressed)} examples, but targets of shape {targets.shape}")
    except UNPACK_ERRORS as error:
        raise FileError(f"damaged: inconsistent content ({_reason(error)})", path=path) from error
    return compressed, targets, document["decomposition"]


def file_bytes(data: Hierarchy | Compressed) -> int:
    """The size of the file that `save` would write, without writing it.

    For a `Compressed`, the inverse of the lower levels is left out: training does not need it.
    """
    if isinstance(data, Compressed):
        kind, (document, tensors) = "compressed", _pack_compressed(data.top_only())
    else:
        kind, (document, tensors) = "hierarchy", pack_hierarchy(data)
    return _file_size(document, {key: (t.dtype, t.shape) for key, t in tensors.items()}, kind)


def original_bytes(compressed: Compressed) -> int:
    """The size of the file of the uncompressed hierarchy, computed from its counts.

    Assumes that its relations have no multiplicities, as in the paper.
    """
    hierarchy = compressed.hierarchy
    document, tensors = pack_hierarchy(hierarchy)
    layout: dict[str, tuple[np.dtype[Any], tuple[int, ...]]] = {
        key: (tensors[key].dtype, (compressed.objects[0], *tensors[key].shape[1:]))
        for key in ("codes", "vectors")
        if key in tensors
    }
    for level in range(1, hierarchy.depth + 1):
        n_entries = compressed.entries[level]
        layout[f"{level}.indptr"] = smallest_unsigned(n_entries), (compressed.objects[level] + 1,)
        largest_part = max(compressed.objects[level - 1] - 1, 0)
        layout[f"{level}.parts"] = smallest_unsigned(largest_part), (n_entries,)
        layout[f"{level}.roles"] = tensors[f"{level}.roles"].dtype, (n_entries,)
        document["relations"][level - 1]["n_parts"] = compressed.objects[level - 1]
    return _file_size(document, layout, "hierarchy")


# -- the container -----------------------------------------------------------------------------


def write(
    path: str | Path,
    kind: str,
    document: Mapping[str, Any],
    tensors: Mapping[str, Array],
    *,
    durable: bool = True,
) -> int:
    """Write JSON and arrays to one file, atomically; returns its size in bytes.

    What is rewritten all the time need not be `durable`: see `atomic_write`.
    """
    arrays = {key: np.ascontiguousarray(array) for key, array in sorted(tensors.items())}
    metadata = _metadata(kind, document, arrays)
    header, keys = _header(metadata, {key: (a.dtype, a.shape) for key, a in arrays.items()})
    # Not by safetensors itself: it would leave a file of its own behind when it is killed.
    with atomic_write(path, durable=durable) as temporary, temporary.open("wb", 2**20) as file:
        size = file.write(header)
        for key in keys:
            size += file.write(arrays[key].reshape(-1).view(np.uint8).data)
    return size


@dataclass(frozen=True)
class Header:
    """Kind and format version of a file, its JSON, and the shapes of its arrays."""

    kind: str
    version: int
    document: dict[str, Any]
    shapes: dict[str, tuple[int, ...]]


def read_header(path: str | Path) -> Header:
    """Read the header of a file that `write` wrote; its arrays are neither read nor checked.

    >>> file = getfixture("tmp_path") / "toy.saen"
    >>> _ = save(Graphs.from_edge_lists([[(0, 1)]]), file)
    >>> header = read_header(file)
    >>> header.kind, header.version, header.shapes["node_offsets"]
    ('graphs', 1, (2,))

    Raises `FileError` if the file is missing, foreign or of a newer format.
    """
    metadata, shapes = _metadata_of(path)
    return Header(metadata["kind"], metadata["version"], metadata["document"], shapes)


def read(path: str | Path) -> tuple[str, dict[str, Any], dict[str, Array]]:
    """Kind, JSON and memory-mapped arrays of a file that `write` wrote."""
    metadata, _ = _metadata_of(path)
    try:
        arrays = _map(Path(path))
    except (OSError, ValueError, KeyError) as error:
        raise FileError(f"not a readable saen file ({_reason(error)})", path=path) from error
    if metadata.pop("checksum", None) != _checksum(metadata, arrays):
        raise FileError("damaged: the checksum does not match", path=path)
    return metadata["kind"], metadata["document"], arrays


def read_examples(path: str | Path) -> tuple[Array | None, Array | None]:
    """Ids (None: row numbers) and targets, if any, of a file of data.

    The other arrays are neither read nor checked.
    """
    header, tensors = read_header(path), _map(Path(path))
    try:
        columns = _unpack_columns(("targets",), header.document, tensors)
    except UNPACK_ERRORS as error:
        raise FileError(f"damaged: inconsistent content ({_reason(error)})", path=path) from error
    return columns["ids"], columns["targets"]


def _metadata_of(path: str | Path) -> tuple[dict[str, Any], dict[str, tuple[int, ...]]]:
    """The metadata of a file, and the shapes of its arrays."""
    if Path(path).is_dir():
        raise FileError("is a folder, not a file", path=path)
    try:
        with safe_open(path, framework="numpy") as opened:  # checks the structure of the file
            metadata = opened.metadata() or {}
            shapes = {key: tuple(opened.get_slice(key).get_shape()) for key in opened.keys()}  # noqa: SIM118
    except FileNotFoundError as error:
        raise FileError("no such file", path=path) from error
    except (OSError, SafetensorError, ValueError) as error:
        raise FileError(f"not a readable saen file ({_reason(error)})", path=path) from error
    if FORMAT not in metadata:
        raise FileError("a safetensors file, but not written by saen", path=path)
    damaged = FileError("damaged: invalid metadata", path=path)
    try:
        header = json.loads(metadata[FORMAT])
        version = header["version"]
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise damaged from error
    if isinstance(version, int) and version > VERSION:
        raise FileError(
            f"format version {version}, but this saen reads up to {VERSION}: upgrade saen",
            path=path,
        )
    expected = {"version": int, "kind": str, "document": dict}
    if any(type(header.get(key)) is not kind for key, kind in expected.items()):
        raise damaged
    return header, shapes


def _map(path: Path) -> dict[str, Array]:
    with path.open("rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    length = int.from_bytes(mapped[:8], "little")
    header = json.loads(mapped[8 : 8 + length])
    arrays = {}
    for key, entry in sorted(header.items()):
        if key == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        dtype = np.dtype(_DTYPES[entry["dtype"]])
        flat = np.frombuffer(
            mapped, dtype, count=(end - begin) // dtype.itemsize, offset=8 + length + begin
        )
        arrays[key] = flat.reshape(entry["shape"])
    return arrays


def _metadata(
    kind: str, document: Mapping[str, Any], arrays: Mapping[str, Array]
) -> dict[str, str]:
    """One entry only: safetensors writes several in any order, and equal data make equal files."""
    # Through JSON and back, as the reader will see it: keys are strings, tuples are lists.
    header = json.loads(_json({"version": VERSION, "kind": kind, "document": document}))
    return {FORMAT: _json(header | {"checksum": _checksum(header, arrays)})}


def _checksum(header: Mapping[str, Any], arrays: Mapping[str, Array]) -> str:
    value = zlib.crc32(_json(header).encode())
    for key in sorted(arrays):
        array = arrays[key]
        value = zlib.crc32(f"{key} {array.dtype.str} {array.shape}".encode(), value)
        if array.size:
            value = zlib.crc32(array.reshape(-1).view(np.uint8).data, value)
    return f"{value:08x}"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=True, sort_keys=True, separators=(",", ":"))


def _file_size(
    document: Mapping[str, Any],
    layout: Mapping[str, tuple[np.dtype[Any], tuple[int, ...]]],
    kind: str,
) -> int:
    """Bytes of the file that `write` would write."""
    header, _ = _header(_metadata(kind, document, {}), layout)
    return len(header) + sum(dtype.itemsize * math.prod(shape) for dtype, shape in layout.values())


def _header(
    metadata: dict[str, str], layout: Mapping[str, tuple[np.dtype[Any], tuple[int, ...]]]
) -> tuple[bytes, list[str]]:
    """How a safetensors file begins: a length, and JSON padded to eight bytes; keys in order."""
    header: dict[str, Any] = {"__metadata__": metadata}
    end = 0
    # safetensors lays out wide types first, in the order of its own list of types.
    order = {np.dtype(dtype): rank for rank, dtype in enumerate(_DTYPES.values())}
    keys = sorted(layout, key=lambda key: (-order[layout[key][0]], key))
    for key in keys:
        dtype, shape = layout[key]
        start, end = end, end + dtype.itemsize * math.prod(shape)
        header[key] = {"dtype": _NAMES[dtype], "shape": list(shape), "data_offsets": [start, end]}
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text, keys


def _reason(error: BaseException) -> str:
    text = (error.strerror if isinstance(error, OSError) else None) or str(error)
    return short_label(text or type(error).__name__, MAX_REASON)


# -- the contents ------------------------------------------------------------------------------


def _pack_graphs(graphs: Graphs) -> tuple[dict[str, Any], dict[str, Array]]:
    document: dict[str, Any] = {"name": graphs.name, "directed": graphs.directed}
    tensors: dict[str, Array] = {
        "node_offsets": narrow(graphs.node_offsets),
        "indptr": narrow(graphs.indptr),
        "indices": narrow(graphs.indices),
    }
    _pack_columns(graphs, _GRAPH_COLUMNS, document, tensors)
    return document, tensors


_GRAPH_COLUMNS = ("node_labels", "node_attributes", "edge_labels", "edge_attributes", "targets")


def _pack_columns(
    data: Graphs | Documents | NestedData,
    keys: tuple[str, ...],
    document: dict[str, Any],
    tensors: dict[str, Array],
) -> None:
    """Add columns, ids and other columns of the input."""
    for key in keys:
        _pack_column(key, getattr(data, key), document, tensors)
    if not np.array_equal(data.ids, np.arange(len(data))):
        tensors |= _pack_values("ids", data.ids)
    if data.extra:
        document["extra"] = [*data.extra]
        for number, column in enumerate(data.extra.values()):
            tensors |= _pack_values(f"extra.{number}", column)


def _pack_column(
    key: str, column: Array | None, document: dict[str, Any], tensors: dict[str, Array]
) -> None:
    """Add labels, attributes or targets, if there are any; strings are codes of their values."""
    if column is None:
        return
    if column.dtype.kind == "U":
        values, codes = np.unique(column, return_inverse=True)
        tensors[key] = narrow(codes.reshape(column.shape))
        document[f"{key}.values"] = values.tolist()
    elif column.dtype.kind in "iu":
        natural = column.min(initial=0) >= 0
        tensors[key] = narrow(column) if natural else _at_least(np.int32, column)
    else:
        tensors[key] = _at_least(np.float32, column) if column.dtype.kind == "f" else column


def _unpack_column(key: str, document: dict[str, Any], tensors: dict[str, Array]) -> Array | None:
    """The inverse of `_pack_column`."""
    if key not in tensors:
        return None
    column = tensors[key]
    if f"{key}.values" in document:
        return _strings(document[f"{key}.values"], column.size)[column]
    return _signed(column) if column.dtype.kind == "u" else column


def _pack_values(key: str, column: Array) -> dict[str, Array]:
    """Ids or another column: numbers, Booleans, or text as UTF-8 with the end of each."""
    if column.dtype.kind != "U":
        kinds = {"u": np.uint64, "i": np.int64, "b": np.bool_}
        return {key: column.astype(kinds.get(column.dtype.kind, np.float64))}
    texts = [text.encode() for text in column.tolist()]
    ends = np.cumsum([len(text) for text in texts], dtype=np.int64)
    return {key: np.frombuffer(b"".join(texts), dtype=np.uint8), f"{key}.ends": ends}


def _unpack_values(tensors: dict[str, Array], key: str) -> Array | None:
    if f"{key}.ends" not in tensors:
        return tensors.get(key)
    data, ends = tensors[key].tobytes(), tensors[f"{key}.ends"].tolist()
    starts = [0, *ends[:-1]]
    texts = [data[a:b].decode() for a, b in zip(starts, ends, strict=True)]
    return _strings(texts, len(texts))


def _strings(texts: list[str], n_rows: int) -> Array:
    """An array of strings, if `n_rows` of the longest are not far more than there is in the file.

    numpy gives every string of an array the space of the longest.
    """
    stored = sum(map(len, texts)) + n_rows
    if 4 * max(map(len, texts), default=0) * n_rows > max(FREE_BYTES, MAX_RATIO * stored):
        raise InputError("a string is far too long for an array of all")
    return np.array(texts, dtype=np.str_)


def _unpack_graphs(document: dict[str, Any], tensors: dict[str, Array]) -> Graphs:
    columns = _unpack_columns(_GRAPH_COLUMNS, document, tensors)
    indices = tensors["indices"]
    # Narrow unsigned on disk, signed in memory; of one width they are the same bytes.
    wide = index_dtype(len(tensors["indptr"]) - 1)
    same = indices.dtype.itemsize == wide.itemsize
    _check_below(len(tensors["indptr"]), indices)
    # The checksum vouches for symmetry, which takes longer to check than everything else.
    graphs = Graphs(
        node_offsets=tensors["node_offsets"].astype(np.int64),
        indptr=tensors["indptr"].astype(np.int64),
        indices=indices.view(wide) if same else indices.astype(wide),
        directed=True,
        name=str(document["name"]),
        **columns,
    )
    graphs = _with_extra(graphs, document, tensors)
    return graphs if document["directed"] else graphs.as_undirected(check=False)


def _unpack_columns(
    keys: tuple[str, ...], document: dict[str, Any], tensors: dict[str, Array]
) -> dict[str, Any]:
    """The inverse of `_pack_columns`."""
    columns = {key: _unpack_column(key, document, tensors) for key in keys}
    return columns | {"ids": _unpack_values(tensors, "ids")}


def _with_extra(data: Data, document: dict[str, Any], tensors: dict[str, Array]) -> Data:
    """The examples with the other columns of the input, if there are any."""
    extra = {
        str(name): tensors[f"extra.{number}"] if column is None else column
        for number, name in enumerate(document.get("extra", ()))
        for column in [_unpack_values(tensors, f"extra.{number}")]
    }
    return data.with_extra(extra) if extra else data


def _pack_documents(documents: Documents) -> tuple[dict[str, Any], dict[str, Array]]:
    sentences, columns = _pack_graphs(documents.sentences.with_ids(None))
    document: dict[str, Any] = {"name": documents.name, "sentences": sentences}
    tensors = {f"sentences.{key}": column for key, column in columns.items()}
    tensors["offsets"] = narrow(documents.offsets)
    _pack_columns(documents, ("targets",), document, tensors)
    return document, tensors


def _unpack_documents(document: dict[str, Any], tensors: dict[str, Array]) -> Documents:
    columns = {
        key.removeprefix("sentences."): column
        for key, column in tensors.items()
        if key.startswith("sentences.")
    }
    documents = Documents(
        _unpack_graphs(document["sentences"], columns),
        tensors["offsets"].astype(np.int64),
        name=str(document["name"]),
        **_unpack_columns(("targets",), document, tensors),
    )
    return _with_extra(documents, document, tensors)


def _pack_nested(data: NestedData) -> tuple[dict[str, Any], dict[str, Array]]:
    document, tensors = pack_hierarchy(data.hierarchy)
    document["name"] = data.name
    tensors |= {f"{level}.starts": narrow(starts) for level, starts in enumerate(data.starts)}
    _pack_columns(data, ("targets",), document, tensors)
    return document, tensors


def _unpack_nested(document: dict[str, Any], tensors: dict[str, Array]) -> NestedData:
    hierarchy = unpack_hierarchy(document, tensors)
    data = NestedData.from_hierarchy(
        hierarchy,
        [tensors[f"{level}.starts"] for level in range(hierarchy.depth + 1)],
        name=str(document["name"]),
        **_unpack_columns(("targets",), document, tensors),
    )
    return _with_extra(data, document, tensors)


def _at_least(dtype: type[np.generic], column: Array) -> Array:
    """The column in `dtype` or its own type, whichever is wider, in the machine's byte order."""
    return column.astype(np.result_type(dtype, column.dtype), copy=False)


def _signed(column: Array) -> Array:
    """Labels as int64, unless one needs 64 unsigned bits."""
    return column if column.max(initial=0) > np.iinfo(np.int64).max else column.astype(np.int64)


def pack_hierarchy(hierarchy: Hierarchy) -> tuple[dict[str, Any], dict[str, Array]]:
    """A hierarchy as JSON and arrays in their narrowest types."""
    attributes = hierarchy.attributes
    document: dict[str, Any] = {
        "names": list(hierarchy.names),
        "vocabulary": None if attributes.vocabulary is None else attributes.vocabulary.to_json(),
        "relations": [
            {"alphabet": list(r.alphabet), "n_parts": r.n_parts} for r in hierarchy.relations
        ],
    }
    tensors: dict[str, Array] = {}
    if attributes.codes is not None:
        # One is added, so that unseen (-1) is 0; the type fits the whole vocabulary.
        wide = smallest_unsigned(len(attributes.vocabulary or ()))
        tensors["codes"] = (attributes.codes.astype(np.int64) + 1).astype(wide)
    if attributes.vectors is not None:
        tensors["vectors"] = attributes.vectors
    for level, relation in enumerate(hierarchy.relations, start=1):
        tensors[f"{level}.indptr"] = narrow(relation.indptr)
        tensors[f"{level}.parts"] = relation.parts.astype(smallest_unsigned(relation.n_parts - 1))
        tensors[f"{level}.roles"] = relation.roles.astype(smallest_unsigned(relation.n_roles - 1))
        if relation.counts is not None:
            tensors[f"{level}.counts"] = narrow(relation.counts)
    return document, tensors


def unpack_hierarchy(document: dict[str, Any], tensors: dict[str, Array]) -> Hierarchy:
    """The inverse of `pack_hierarchy`."""
    values = document["vocabulary"]
    vocabulary = None if values is None else Vocabulary.from_json(values)
    codes = tensors.get("codes")
    if codes is not None:
        _check_below(1 + len(vocabulary or ()), codes)
        codes = codes.astype(np.int32) - 1
    attributes = Attributes(codes, vocabulary, tensors.get("vectors"))
    relations = [
        Relation(
            tensors[f"{level}.indptr"],
            tensors[f"{level}.parts"],
            tensors[f"{level}.roles"],
            tuple(entry["alphabet"]),
            int(entry["n_parts"]),
            tensors.get(f"{level}.counts"),
        )
        for level, entry in enumerate(document["relations"], start=1)
    ]
    return Hierarchy(attributes, tuple(relations), tuple(document["names"]))


def _check_below(limit: int, numbers: Array) -> None:
    """Raise unless these are integers from 0 to `limit` - 1, before they become narrower ones."""
    if numbers.dtype.kind not in "iu" or (
        numbers.size and not 0 <= int(numbers.min()) <= int(numbers.max()) < limit
    ):
        raise InputError(f"expected integers below {limit}")


def _pack_compressed(compressed: Compressed) -> tuple[dict[str, Any], dict[str, Array]]:
    document, tensors = pack_hierarchy(compressed.hierarchy)
    document["objects"] = list(compressed.objects)
    document["entries"] = list(compressed.entries)
    for level, column in enumerate(compressed.inverse):
        if column is not None:
            tensors[f"{level}.inverse"] = narrow(column)
    return document, tensors


def _unpack_compressed(document: dict[str, Any], tensors: dict[str, Array]) -> Compressed:
    hierarchy = unpack_hierarchy(document, tensors)
    return Compressed(
        hierarchy,
        tuple(tensors.get(f"{level}.inverse") for level in range(hierarchy.depth + 1)),
        tuple(document["objects"]),
        tuple(document["entries"]),
    )
