"""Graphs, documents, nested data and hierarchies as JSON and arrays, as they stand in files.

Integers are packed in the narrowest type that fits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np

from saen._util.arrays import Array, index_dtype, narrow, smallest_unsigned
from saen.data.compression import Compressed
from saen.data.documents import Documents
from saen.data.graphs import Graphs
from saen.data.hierarchy import Attributes, Hierarchy, Relation
from saen.data.nested import NestedData
from saen.data.vocabulary import Vocabulary
from saen.errors import InputError, SaenError
from saen.io.parsing.archive import FREE_BYTES, MAX_RATIO

Storable = Graphs | Documents | NestedData | Hierarchy | Compressed
Data = TypeVar("Data", Graphs, Documents, NestedData)
T = TypeVar("T")

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


def pack(data: Storable) -> tuple[str, dict[str, Any], dict[str, Array]]:
    """The kind of the data, and the data as JSON and arrays.

    Raises `InputError` for anything that files do not hold.
    """
    for kind, (cls, pack_one, _) in KINDS.items():
        if isinstance(data, cls):
            return kind, *pack_one(data)
    raise InputError(f"cannot save a {type(data).__name__}")


def unpack(kind: str, document: dict[str, Any], tensors: dict[str, Array]) -> Any:
    """The inverse of `pack`; raises `UNPACK_ERRORS` for what it did not make."""
    return KINDS[kind][2](document, tensors)


def under(prefix: str, tensors: Mapping[str, T]) -> dict[str, T]:
    """The arrays whose names begin with a prefix, without it."""
    return {key.removeprefix(prefix): t for key, t in tensors.items() if key.startswith(prefix)}


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
    """Add columns, ids, names of targets and other columns of the input."""
    for key in keys:
        pack_column(key, getattr(data, key), document, tensors)
    if not np.array_equal(data.ids, np.arange(len(data))):
        tensors |= _pack_values("ids", data.ids)
    if data.target_names:
        document["target_names"] = list(data.target_names)
    if data.extra:
        document["extra"] = [*data.extra]
        for number, column in enumerate(data.extra.values()):
            tensors |= _pack_values(f"extra.{number}", column)
    if data.feature_names:
        document["features"] = list(data.feature_names)


def pack_column(
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


def unpack_column(key: str, document: dict[str, Any], tensors: dict[str, Array]) -> Any:
    """The inverse of `pack_column`; None if there is no such column."""
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
    columns = unpack_columns(_GRAPH_COLUMNS, document, tensors)
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
    graphs = _completed(graphs, document, tensors)
    return graphs if document["directed"] else graphs.as_undirected(check=False)


def unpack_columns(
    keys: tuple[str, ...], document: dict[str, Any], tensors: dict[str, Array]
) -> dict[str, Any]:
    """The inverse of `_pack_columns`."""
    columns = {key: unpack_column(key, document, tensors) for key in keys}
    return columns | {"ids": _unpack_values(tensors, "ids")}


def _completed(data: Data, document: dict[str, Any], tensors: dict[str, Array]) -> Data:
    """The examples with the names of their targets and other columns of the input, if any."""
    if "target_names" in document:
        data = data.with_targets(data.targets, document["target_names"])
    extra = {
        str(name): tensors[f"extra.{number}"] if column is None else column
        for number, name in enumerate(document.get("extra", ()))
        for column in [_unpack_values(tensors, f"extra.{number}")]
    }
    data = data.with_extra(extra) if extra else data
    return data.with_features(document["features"]) if "features" in document else data


def _pack_documents(documents: Documents) -> tuple[dict[str, Any], dict[str, Array]]:
    sentences, columns = _pack_graphs(documents.sentences.with_ids(None))
    document: dict[str, Any] = {"name": documents.name, "sentences": sentences}
    tensors = {f"sentences.{key}": column for key, column in columns.items()}
    tensors["offsets"] = narrow(documents.offsets)
    _pack_columns(documents, ("targets",), document, tensors)
    return document, tensors


def _unpack_documents(document: dict[str, Any], tensors: dict[str, Array]) -> Documents:
    documents = Documents(
        _unpack_graphs(document["sentences"], under("sentences.", tensors)),
        tensors["offsets"].astype(np.int64),
        name=str(document["name"]),
        **unpack_columns(("targets",), document, tensors),
    )
    return _completed(documents, document, tensors)


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
        **unpack_columns(("targets",), document, tensors),
    )
    return _completed(data, document, tensors)


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


KINDS: dict[str, tuple[type, Callable[[Any], Any], Callable[[Any, Any], Any]]] = {
    "graphs": (Graphs, _pack_graphs, _unpack_graphs),
    "documents": (Documents, _pack_documents, _unpack_documents),
    "nested": (NestedData, _pack_nested, _unpack_nested),
    "hierarchy": (Hierarchy, pack_hierarchy, unpack_hierarchy),
    "compressed": (Compressed, _pack_compressed, _unpack_compressed),
}
"""What files hold, by the name of its kind: how it is packed and unpacked."""
