"""The `.saen` format: safetensors with JSON metadata, for whatever `saen.io.store.packing` packs.

Files are written atomically, have a format version and a checksum, and are memory-mapped on load.
Integers are stored in the narrowest type that fits. There is no pickle: loading a foreign or
damaged file raises an error and never runs code.
"""

from __future__ import annotations

import json
import math
import mmap
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open

from saen._util.arrays import Array, smallest_unsigned
from saen._util.atomic import atomic_write
from saen._util.remote import local_copy
from saen._util.strings import short_label
from saen.data.collection import checked_names
from saen.data.compression import Compressed
from saen.data.hierarchy import Hierarchy
from saen.errors import FileError, InputError
from saen.io.store.packing import (
    KINDS,
    UNPACK_ERRORS,
    Storable,
    pack,
    pack_column,
    unpack,
    unpack_column,
    unpack_columns,
)

FORMAT = "saen"
VERSION = 1

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
MAX_REASON = 200  # characters
MAX_HEADER = 100_000_000  # bytes; safetensors reads no more

_NAMES = {np.dtype(dtype): name for name, dtype in _DTYPES.items()}


def save(data: Storable, path: str | Path) -> int:
    """Write data, a hierarchy or a compressed hierarchy to a file; returns its size in bytes.

    Parameters
    ----------
    data : Storable
        Data, a hierarchy or a compressed hierarchy.
    path : str | Path
        The file to write.

    Raises
    ------
    FileError
        If the file cannot be written.

    Examples
    --------
    >>> from saen import Graphs, load
    >>> folder = getfixture("tmp_path")
    >>> graphs = Graphs.from_edge_lists([[(0, 1)]])
    >>> _ = save(graphs, folder / "toy.saen")
    >>> load(folder / "toy.saen") == graphs
    True
    """
    return write(path, *pack(data))


def load(path: str | Path) -> Any:
    """Read a file that `save` wrote: data, a `Hierarchy` or a `Compressed`.

    Raises `FileError` if the file is missing, damaged, foreign or of a newer format.
    """
    kind, document, tensors = read(path)
    if kind not in KINDS:
        raise FileError(f"contains a {kind}, not data or a hierarchy", path=path)
    with consistent(path):
        return unpack(kind, document, tensors)


@dataclass(frozen=True)
class StoredExamples:
    """A compressed hierarchy with what training on it needs.

    `targets` (n,) or (n, t) are those of the examples, with their names, if they have any;
    `decomposition` is the fitted one as JSON; `features` (n, k) are numbers about the examples.
    """

    compressed: Compressed
    decomposition: Mapping[str, Any]
    targets: Array | None
    target_names: tuple[str, ...] = ()
    features: Array | None = None
    feature_names: tuple[str, ...] = ()


def save_examples(examples: StoredExamples, path: Path) -> int:
    """Write compressed examples to a file; returns its size in bytes.

    `load` reads the hierarchy alone, `load_examples` all of it.
    """
    kind, document, tensors = pack(examples.compressed)
    document["decomposition"] = examples.decomposition
    pack_column("targets", examples.targets, document, tensors)
    if examples.target_names:
        document["target_names"] = list(examples.target_names)
    if examples.features is not None:
        document["features"], tensors["features"] = list(examples.feature_names), examples.features
    return write(path, kind, document, tensors)


def load_examples(path: str | Path) -> StoredExamples:
    """What `save_examples` wrote, memory-mapped.

    Raises `FileError` as `load` does, and if the file has a hierarchy alone.
    """
    kind, document, tensors = read(path)
    if kind != "compressed" or not isinstance(document.get("decomposition"), dict):
        raise FileError(
            "nothing to train on: compress the data again, with saen compress", path=path
        )
    with consistent(path):
        compressed = unpack(kind, document, tensors)
        targets = unpack_column("targets", document, tensors)
        if targets is not None and (targets.ndim not in (1, 2) or len(targets) != len(compressed)):
            raise InputError(f"{len(compressed)} examples, but targets of shape {targets.shape}")
        names = checked_names(document.get("target_names", ()), targets)
        features, known = tensors.get("features"), tuple(map(str, document.get("features", ())))
        if features is not None and features.shape != (len(compressed), len(known)):
            raise InputError(f"{len(known)} features, but numbers of shape {features.shape}")
    return StoredExamples(compressed, document["decomposition"], targets, names, features, known)


def file_bytes(data: Hierarchy | Compressed) -> int:
    """The size of the file that `save` would write, without writing it.

    For a `Compressed`, the inverse of the lower levels is left out: training does not need it.
    """
    kind, document, tensors = pack(data.top_only() if isinstance(data, Compressed) else data)
    return _file_size(document, {key: (t.dtype, t.shape) for key, t in tensors.items()}, kind)


def original_bytes(compressed: Compressed) -> int:
    """The size of the file of the uncompressed hierarchy, computed from its counts.

    Assumes that its relations have no multiplicities, as in the paper.
    """
    hierarchy = compressed.hierarchy
    _, document, tensors = pack(hierarchy)
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

    path: Path
    kind: str
    version: int
    document: dict[str, Any]
    shapes: dict[str, tuple[int, ...]]


def read_header(path: str | Path) -> Header:
    """Read the header of a file that `write` wrote; its arrays are neither read nor checked.

    >>> from saen import Graphs
    >>> file = getfixture("tmp_path") / "toy.saen"
    >>> _ = save(Graphs.from_edge_lists([[(0, 1)]]), file)
    >>> header = read_header(file)
    >>> header.kind, header.version, header.shapes["node_offsets"]
    ('graphs', 1, (2,))

    Raises `FileError` if the file is missing, foreign or of a newer format.
    """
    with local_copy(path) as local:
        metadata, shapes = _metadata_of(local)
    return Header(Path(path), metadata["kind"], metadata["version"], metadata["document"], shapes)


def is_container(path: str | Path) -> bool:
    """Whether a file begins as safetensors do, with the length of a header and the header.

    >>> file = getfixture("tmp_path") / "text.jsonl"
    >>> _ = file.write_text('{"nodes": 2, "edges": [[0, 1]]}')
    >>> is_container(file)
    False
    """
    with Path(path).open("rb") as file:
        start = file.read(9)
    return start[8:] == b"{" and int.from_bytes(start[:8], "little") < MAX_HEADER


def read(path: str | Path) -> tuple[str, dict[str, Any], dict[str, Array]]:
    """Kind, JSON and memory-mapped arrays of a file that `write` wrote."""
    with local_copy(path) as local:
        return _read(local)


def _read(path: Path) -> tuple[str, dict[str, Any], dict[str, Array]]:
    metadata, _ = _metadata_of(path)
    try:
        arrays = _map(path)
    except (OSError, ValueError, KeyError) as error:
        raise FileError(f"not a readable saen file ({_reason(error)})", path=path) from error
    if metadata.pop("checksum", None) != _checksum(metadata, arrays):
        raise FileError("damaged: the checksum does not match", path=path)
    return metadata["kind"], metadata["document"], arrays


def read_examples(path: str | Path) -> tuple[Array | None, Array | None, tuple[str, ...]]:
    """Ids (None: row numbers) and targets, if any, of a file of data, and the names of targets.

    The other arrays are neither read nor checked.
    """
    with local_copy(path) as local:
        header, tensors = read_header(local), _map(local)
    with consistent(path):
        columns = unpack_columns(("targets",), header.document, tensors)
        names = checked_names(header.document.get("target_names", ()), columns["targets"])
    return columns["ids"], columns["targets"], names


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


@contextmanager
def consistent(path: str | Path, what: str = "damaged: inconsistent content") -> Iterator[None]:
    """What unpacking raises for contents that saen did not write becomes a `FileError`."""
    try:
        yield
    except FileError:
        raise
    except UNPACK_ERRORS as error:
        raise FileError(f"{what} ({_reason(error)})", path=path) from error


def _reason(error: BaseException) -> str:
    text = (error.strerror if isinstance(error, OSError) else None) or str(error)
    return short_label(text or type(error).__name__, MAX_REASON)
