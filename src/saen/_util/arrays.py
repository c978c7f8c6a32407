"""Array helpers shared by the columnar classes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

BLOCK = 1 << 18
"""Entries handled at a time: small enough for the cache, large enough for numpy."""
MIN_HASHED = 1 << 16
"""Values from which on a hash table is faster than sorting, its library's import apart."""

Array = NDArray[Any]
Ints = NDArray[np.integer[Any]]
Floats = NDArray[np.float64]
Apply = Callable[..., Iterable[Any]]
"""`map`, or that of a pool of threads."""


def frozen(array: ArrayLike) -> Array:
    """A read-only view of `array` (a copy only where the input is not an array yet)."""
    view = np.asarray(array).view()
    view.flags.writeable = False
    return view


def owned(array: ArrayLike) -> Array:
    """A read-only array that nobody else can change: a copy wherever somebody still could.

    >>> mine = np.array([1, 2])
    >>> ours = owned(mine)
    >>> mine[0] = 9
    >>> ours.tolist(), owned(ours) is ours
    ([1, 2], True)
    """
    out = np.asarray(array)
    holder: Any = out
    while isinstance(holder, np.ndarray):
        if holder.flags.writeable:
            out = out.copy()
            out.flags.writeable = False
            break
        holder = holder.base
    return out


def offsets(lengths: Ints) -> NDArray[np.int64]:
    """Start of every segment, and the end of the last: cumulative sum with a leading zero.

    >>> offsets(np.array([2, 0, 3])).tolist()
    [0, 2, 2, 5]
    """
    out = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=out[1:])
    return out


def ranges(starts: Ints, lengths: Ints) -> NDArray[np.int64]:
    """The concatenation of `arange(start, start + length)` over all pairs.

    >>> ranges(np.array([5, 0]), np.array([2, 3])).tolist()
    [5, 6, 0, 1, 2]
    """
    ends = offsets(lengths)
    return np.repeat(starts - ends[:-1], lengths) + np.arange(ends[-1])


def segment_ids(pointers: Ints) -> NDArray[np.int64]:
    """For every entry of a segmented array, the number of its segment.

    >>> segment_ids(np.array([0, 2, 2, 5])).tolist()
    [0, 0, 2, 2, 2]
    """
    return np.repeat(np.arange(len(pointers) - 1), np.diff(pointers))


def segment_reduce(ufunc: np.ufunc, values: Array, pointers: Ints, empty: Any = 0) -> Array:
    """`ufunc.reduce` over every segment; empty segments give `empty`.

    `np.ufunc.reduceat` alone returns a neighbour's value for an empty segment.

    >>> segment_reduce(np.add, np.array([1, 2, 3, 4, 5]), np.array([0, 2, 2, 5])).tolist()
    [3, 0, 12]
    """
    filled = pointers[1:] > pointers[:-1]
    out = np.full((len(pointers) - 1, *values.shape[1:]), empty, dtype=values.dtype)
    if filled.any():
        out[filled] = ufunc.reduceat(values, pointers[:-1][filled])
    return out


def distinct(values: Ints) -> Ints:
    """The distinct integers in ascending order, as `np.unique`, which is slow for very many.

    >>> distinct(np.array([3, 1, 3])).tolist()
    [1, 3]
    """
    ordered = np.sort(values)
    new = np.ones(len(ordered), dtype=np.bool_)
    new[1:] = ordered[1:] != ordered[:-1]
    return ordered[new]


def distinct_with_inverse(values: Array) -> tuple[Array, NDArray[np.int64]]:
    """As `np.unique` with the inverse, without sorting where integers lie close together.

    >>> [array.tolist() for array in distinct_with_inverse(np.array([7, 5, 7], np.int8))]
    [[5, 7], [1, 0, 1]]
    """
    if values.dtype.kind in "iu" and len(values):
        low, high = int(values.min()), int(values.max())
        if 0 <= low <= high < 8 * len(values):
            low = 0  # nothing to subtract
        if high - low < 8 * len(values):
            wide = values.astype(np.uint64 if values.dtype == np.uint64 else np.int64, copy=False)
            shifted = wide - wide.dtype.type(low) if low else wide
            places = shifted.astype(np.int64, copy=False)
            present = np.zeros(high - low + 1, dtype=np.bool_)
            present[places] = True
            distinct = (np.flatnonzero(present).astype(wide.dtype) + wide.dtype.type(low)).astype(
                values.dtype
            )
            return distinct, (np.cumsum(present) - 1)[places]
    return np.unique(values, return_inverse=True)


def codes_in_order(values: Array) -> Ints:
    """Equal values (n,) numbered by their first appearance: many uint64 by a hash table.

    >>> codes_in_order(np.array([7, 5, 7], np.uint64)).tolist()
    [0, 1, 0]
    """
    if len(values) < MIN_HASHED or values.dtype != np.uint64:
        _, first, inverse = np.unique(values, return_index=True, return_inverse=True)
        return cast(Ints, np.argsort(np.argsort(first))[inverse])
    try:
        pa: Any = import_module("pyarrow")  # imported in a tenth of the time of pandas
    except ImportError:
        return cast(Ints, import_module("pandas").factorize(values)[0])
    # Not by `pa.array`, which imports pandas to see whether that is what it gets.
    buffer = pa.py_buffer(np.ascontiguousarray(values))
    column = pa.Array.from_buffers(pa.uint64(), len(values), [None, buffer])
    return cast(Ints, np.from_dlpack(column.dictionary_encode().indices))


def smallest_unsigned(largest: int) -> np.dtype[Any]:
    """The narrowest unsigned integer type that holds `largest`.

    >>> [smallest_unsigned(n).name for n in (255, 256, 70_000, 2**32)]
    ['uint8', 'uint16', 'uint32', 'uint64']
    """
    return np.min_scalar_type(max(int(largest), 0))


def index_dtype(largest: int) -> np.dtype[np.signedinteger[Any]]:
    """The type of indices: 32 bits where they hold `largest`, else 64.

    >>> [index_dtype(n).name for n in (2**31 - 1, 2**31)]
    ['int32', 'int64']
    """
    return np.dtype(np.int32 if largest <= np.iinfo(np.int32).max else np.int64)


def narrow(array: Ints) -> Ints:
    """The same non-negative integers in the narrowest unsigned type that holds them."""
    dtype = smallest_unsigned(array.max(initial=0))
    same_bits = dtype.itemsize == array.itemsize and array.dtype.isnative
    return array.view(dtype) if same_bits else array.astype(dtype)


def row_blocks(indptr: Ints) -> Iterator[tuple[int, int]]:
    """Spans of rows with at most `BLOCK` entries, wherever one row allows it."""
    start, n_rows = 0, len(indptr) - 1
    while start < n_rows:
        stop = int(np.searchsorted(indptr, indptr[start] + BLOCK, side="right")) - 1
        stop = min(max(stop, start + 1), n_rows)
        yield start, stop
        start = stop


def chunk_ends(costs: Ints, limit: int) -> list[int]:
    """Ends of consecutive chunks whose costs stay under `limit` wherever one graph allows it."""
    total = np.cumsum(costs)
    ends: list[int] = []
    start = 0
    while start < len(costs):
        spent = int(total[start - 1]) if start else 0
        stop = max(int(np.searchsorted(total, spent + limit, side="right")), start + 1)
        ends.append(stop)
        start = stop
    return ends or [0]
