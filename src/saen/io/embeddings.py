"""Files of embeddings: the vectors that a model learned."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from tokenize import TokenError
from typing import Any

import numpy as np
from numpy.typing import NDArray

from saen._util.arrays import Array, Floats
from saen._util.atomic import atomic_write
from saen.errors import FileError
from saen.io.parsing.tables import read_table
from saen.io.result_tables import check_format, open_table
from saen.io.store import container
from saen.io.store.packing import pack_column, unpack_column

KIND = "embeddings"
FORMATS = (".parquet", ".csv", ".npy", ".safetensors")


@dataclass(frozen=True)
class Embedded:
    """The vectors of some objects of one level: `vectors[i]`, shape (width,), belongs to object
    `objects[i]` of graph (or document, …) `graphs[i]`."""

    graphs: NDArray[np.int64]
    objects: NDArray[np.int64]
    vectors: NDArray[np.float32]


def write_embeddings(
    path: Path,
    parts: Iterable[Embedded],
    ids: Array,
    targets: Array | None,
    level: str,
    *,
    lower: bool,
) -> tuple[int, int]:
    """Write vectors in the format of the suffix; returns their number and their width.

    Tables have the columns `id`, `object` (on a `lower` level), `target` (if there are any)
    and `e0`, `e1`, …; a .safetensors file has arrays `id`, `object`, `target` and `vectors`; an
    .npy file has only the vectors. Tables are written part by part, the others at once. `ids` and
    `targets` have one value per graph.
    """
    suffix = check_format(path, FORMATS)
    if suffix in (".csv", ".parquet"):
        count = width = 0
        with open_table(path) as write:
            for part in parts:
                vectors = {f"e{i}": column for i, column in enumerate(part.vectors.T)}
                write(_columns(part, ids, targets, lower) | vectors)
                count, width = count + len(part.vectors), part.vectors.shape[1]
        return count, width
    all_parts = list(parts)
    whole = Embedded(
        np.concatenate([part.graphs for part in all_parts]),
        np.concatenate([part.objects for part in all_parts]),
        np.concatenate([part.vectors for part in all_parts]),
    )
    if suffix == ".npy":
        with atomic_write(path) as temporary, temporary.open("wb") as file:
            np.save(file, whole.vectors, allow_pickle=False)
    else:
        document: dict[str, Any] = {"level": level}
        tensors = _columns(whole, ids, targets, lower) | {"vectors": whole.vectors}
        for key in ("id", "target"):
            pack_column(key, tensors.get(key), document, tensors)
        container.write(path, KIND, document, tensors)
    return whole.vectors.shape[0], whole.vectors.shape[1]


def read_embeddings(path: Path) -> tuple[Floats, dict[str, Array]]:
    """The vectors of a file that `write_embeddings` wrote, (n, width), and its other columns."""
    suffix = path.suffix.lower()
    if suffix == ".npy":
        return _checked(path, open_npy(path)), {}
    if suffix == ".safetensors":
        kind, document, tensors = container.read(path)
        if kind != KIND:
            raise FileError(f"contains a {kind}, not embeddings", path=path)
        columns = {key: unpack_column(key, document, tensors) for key in tensors}
        return _checked(path, columns.pop("vectors")), columns
    if suffix not in FORMATS:
        raise FileError(f"expected embeddings in {', '.join(FORMATS)}", path=path)
    table = read_table(path)
    names: list[str] = []
    while f"e{len(names)}" in table.columns:
        names.append(f"e{len(names)}")
    if not names:
        raise FileError("expected vectors in columns e0, e1, …, found none", path=path)
    vectors = np.column_stack([table.array(name) for name in names])
    return _checked(path, vectors), {
        name: table.array(name) for name in table.columns if name not in names
    }


# numpy reads the header as a Python literal, which can be wrong, or too deep, in many ways.
_NPY_ERRORS = (
    *(OSError, EOFError, MemoryError, OverflowError, RecursionError),
    *(SyntaxError, TokenError, TypeError, ValueError),
)


def open_npy(path: Path) -> Array:
    """The array of an .npy file, memory-mapped, so that no header asks for more memory."""
    try:
        with path.open("rb") as file:
            start = file.read(12)
        # numpy would first ask for as much memory as a header says that it is long.
        if start[6:7] >= b"\2" and int.from_bytes(start[8:], "little") > path.stat().st_size:
            raise ValueError("its header is cut off")
        array: Array = np.lib.format.open_memmap(path, mode="r")
    except FileNotFoundError:
        raise FileError("no such file", path=path) from None
    except _NPY_ERRORS as error:
        reason = str(error) or type(error).__name__
        raise FileError(f"invalid npy file: {reason}", path=path) from None
    return array


def _columns(part: Embedded, ids: Array, targets: Array | None, lower: bool) -> dict[str, Array]:
    columns: dict[str, Array] = {"id": ids[part.graphs]}
    if lower:
        columns["object"] = part.objects
    if targets is not None and targets.ndim == 1:
        columns["target"] = targets[part.graphs]
    return columns


def _checked(path: Path, vectors: Array) -> Floats:
    if vectors.ndim != 2 or vectors.dtype.kind not in "iuf":
        raise FileError(
            f"expected a matrix of numbers, found {vectors.dtype} of shape {vectors.shape}",
            path=path,
        )
    wide = vectors.astype(np.float64)
    if not np.isfinite(wide).all():
        raise FileError("a vector contains NaN or infinity", path=path)
    return wide
