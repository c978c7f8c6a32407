"""Compression in chunks, in parallel, without ever holding the whole uncompressed hierarchy."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from saen._util.arrays import (
    Apply,
    Array,
    Ints,
    chunk_ends,
    narrow,
    offsets,
    ranges,
    segment_reduce,
)
from saen.data.compression import Compressed, compress, compress_levels, merge_stream
from saen.data.hierarchy import Attributes, Hierarchy, Relation
from saen.data.identical import merge_parents
from saen.data.refinement import Refinement, compress_refinement
from saen.errors import InputError

_MAX_CHUNK_ENTRIES = 1 << 22  # of the uncompressed hierarchy, held by each thread
_MIN_CHUNK_ENTRIES = 1 << 20  # below, merging chunks takes longer than a second thread saves
_MAX_THREADS = 4
MAX_ENTRIES = 10**11
"""Entries of an uncompressed hierarchy that compressing it may take."""
MIN_ENTRY_BYTES = 5  # a part in 32 bits and a role in 8
_MIN_CUT = 16  # chunks below this fraction of the largest are decomposed at once
_MAX_INVERSE = 1 << 30  # objects of a level


@dataclass(frozen=True)
class Cut:
    """A hierarchy that is made in chunks of the objects just below its top.

    These objects are made one *root* after another (an ego graph has the roots of all its radii
    together); roots that are known to give identical objects are made once.

    - `bottom`, `inverse`: the unique bottom objects and the inverse, from `merge_objects`;
    - `costs`: about how many entries it takes to make what belongs to each root;
    - `relations(start, stop)`: the relations below the top for these roots alone. The bottom
      objects are the unique ones, and the objects of a level stand in the order of their parents;
      every one belongs to one parent;
    - `numbers`: of every object just below the top, its number among those that are made;
    - `top`: the last relation, of all examples;
    - `names`: of all levels.
    """

    bottom: Attributes
    inverse: Ints
    costs: Ints
    relations: Callable[[int, int], Sequence[Relation]]
    numbers: Ints
    top: Relation
    names: tuple[str, ...]


class Decomposer(Protocol):
    """What compression needs to know of a decomposition.

    One that can be cut has `cut` as well, one that refines has `refinement`.
    """

    @property
    def takes(self) -> str:
        """The kind of data: graphs, documents or nested."""

    def costs(self, data: Any, /) -> Ints:
        """About how many entries the hierarchy of each example has at most."""

    def decompose(self, data: Any, /) -> Hierarchy:
        """The hierarchy of a part of the data."""


def compress_graphs(
    graphs: Any,
    decomposition: Decomposer,
    *,
    lower_inverse: bool = True,
    progress: Callable[[int], object] | None = None,
) -> Compressed:
    """Decompose and compress in chunks, without ever holding the whole uncompressed hierarchy.

    Chunks are compressed in parallel; the result does not depend on how many, except that the lower
    objects of `inverse` are in the order of the chunks.

    Parameters
    ----------
    graphs : Any
        Graphs, or whatever else the decomposition takes: documents or nested data.
    decomposition : Decomposer
        How to decompose them. Decompositions that can be cut (see `Decomposition.cut`) make even
        one large graph in chunks; those that refine (see `Decomposition.refinement`) go level by
        level, and the threads share each of them.
    lower_inverse : bool, default=True
        Whether to keep the unique object of every object below the top level, too. That of a cut
        level with more than a billion objects is dropped in any case.
    progress : Callable[[int], object] | None, default=None
        Called with the number of graphs done after each chunk, or with the share of levels done as
        a number of graphs.

    Raises
    ------
    InputError
        With a forecast for work that would never end or never fit.

    Examples
    --------
    >>> from saen import generate_threads
    >>> from saen.decompositions import Ego
    >>> threads = generate_threads(20, seed=1)
    >>> ego = Ego(radii=(0, 1)).fit(threads)
    >>> compress_graphs(threads, ego) == compress(ego.decompose(threads))
    True
    """
    costs = decomposition.costs(graphs)
    none: Callable[[Any], None] = lambda data: None  # noqa: E731
    make_cut: Callable[[Any], Cut | None] = getattr(decomposition, "cut", none)
    refine: Callable[[Any], Refinement | None] = getattr(decomposition, "refinement", none)
    _check_feasible(costs, lambda example: make_cut(graphs[example : example + 1]))
    n_threads = min(os.cpu_count() or 1, _MAX_THREADS)
    limit = _MAX_CHUNK_ENTRIES
    if not lower_inverse:  # whose order depends on the chunks, and must not on the machine
        share = -(-int(costs.sum()) // n_threads)
        share += min(int(costs.max(initial=0)), share // 8)  # examples are whole: no small last one
        limit = min(max(share, _MIN_CHUNK_ENTRIES), _MAX_CHUNK_ENTRIES)
    ends = chunk_ends(costs, limit)

    def shard(start: int, stop: int, apply: Apply = map) -> Compressed:
        part = graphs[start:stop]
        worthwhile = costs[start:stop].sum() > limit // _MIN_CUT
        cut = make_cut(part) if worthwhile else None
        if cut is not None:
            return _compress_cut(cut, limit, lower_inverse, apply)
        compressed = compress(decomposition.decompose(part))
        return compressed if lower_inverse else compressed.top_only()

    def shards(results: Iterable[Compressed]) -> Iterator[Compressed]:
        for stop, compressed in zip(ends, results, strict=True):
            yield compressed
            if progress is not None:
                progress(stop)

    refinement = refine(graphs)
    small = costs.sum() <= limit  # starting a thread takes longer than a small graph
    if small and refinement is None:
        return merge_stream(shards(map(shard, [0], ends)))
    # numpy releases the interpreter lock while it sorts and gathers, so threads are enough.
    pool = ThreadPoolExecutor(n_threads)
    try:
        if refinement is not None:
            apply = map if small else pool.map
            return compress_refinement(refinement, lower_inverse, apply, progress)
        if len(ends) == 1:  # the threads share one large graph
            return merge_stream(shards([shard(0, ends[0], pool.map)]))
        return merge_stream(shards(pool.map(shard, [0, *ends[:-1]], ends)))
    finally:
        pool.shutdown(wait=False, cancel_futures=True)  # Ctrl-C does not wait for a large chunk


def _compress_cut(cut: Cut, limit: int, lower_inverse: bool, apply: Apply) -> Compressed:
    """What `compress` makes of the whole hierarchy, from chunks of its roots."""
    depth = len(cut.names) - 1

    def part(start: int, stop: int) -> Compressed:
        relations = cut.relations(start, stop)
        compressed = compress_levels(cut.bottom, relations, cut.names[:-1])
        return compressed if lower_inverse else compressed.top_only()

    ends = chunk_ends(cut.costs, limit)
    merged = merge_stream(apply(part, [0, *ends[:-1]], ends))
    unique = merged.top[cut.numbers]
    top, inverse, keys = merge_parents(cut.top, unique, merged.keys[-1])

    # The original has what is made once as often as it is used. Its entries have no counts, and
    # every object below the roots is a part of one parent, so there are as many as entries.
    columns: list[Ints | None] = [inverse, unique if lower_inverse else None]
    objects, entries = [len(inverse), len(unique)], [cut.top.n_entries]
    uses: Array = np.bincount(unique, minlength=merged.hierarchy.sizes[-1])
    which: Ints | None = cut.numbers if lower_inverse else None  # of the objects that are made
    for level in range(depth - 1, 0, -1):
        relation = merged.hierarchy.relations[level - 1]
        sizes = segment_reduce(np.add, relation.multiplicity.astype(np.int64), relation.indptr)
        entries.append(round(float(uses @ sizes)))
        if level == 1:
            break
        objects.append(entries[-1])
        weights = relation.multiplicity * uses[relation.parents]
        uses = np.bincount(relation.parts, weights, minlength=relation.n_parts)
        if which is not None and objects[-1] <= _MAX_INVERSE:
            lengths = sizes[merged.unique_of(level)]
            which = ranges(offsets(lengths)[:-1][which], lengths[which])
            columns.append(merged.unique_of(level - 1)[which])
        else:
            which = None
            columns.append(None)
    columns.append(cut.inverse if lower_inverse else None)
    return Compressed(
        Hierarchy(merged.hierarchy.attributes, (*merged.hierarchy.relations, top), cut.names),
        tuple(None if column is None else narrow(column) for column in columns[::-1]),
        (len(cut.inverse), *objects[::-1]),
        (0, *entries[::-1]),
        [*merged.keys, keys],
    )


def _check_feasible(costs: NDArray[Any], cut: Callable[[int], Cut | None]) -> None:
    """Raise `InputError` with a forecast if a decomposition would have far too many entries."""
    totals = costs.astype(np.float64)
    pieces = totals.copy()  # what is made at once
    if not _infeasible(totals, pieces):
        return
    certain = 0.0
    for example in np.argsort(-costs, kind="stable")[: np.sum(costs > _MAX_CHUNK_ENTRIES)]:
        in_chunks = cut(int(example))
        if in_chunks is not None:
            totals[example] = in_chunks.costs.sum(dtype=np.float64)
            pieces[example] = in_chunks.costs.max()
        certain += totals[example]
        if certain > MAX_ENTRIES:
            break
    if _infeasible(totals, pieces):
        largest = int(np.argmax(totals))
        limit = f"at most {MAX_ENTRIES:.0e}, and what fits into memory for one example"
        raise InputError(
            f"the decomposition would have up to {totals.sum():.1e} entries ({limit}), "
            f"{totals[largest]:.1e} of them in example {largest}: choose smaller radii, "
            "another decomposition such as neighbourhoods, or fewer or smaller examples"
        )


def _infeasible(totals: NDArray[np.float64], pieces: NDArray[np.float64]) -> bool:
    held = pieces.max(initial=0) * MIN_ENTRY_BYTES
    return bool(totals.sum() > MAX_ENTRIES or held > physical_memory())


def physical_memory() -> float:
    """Bytes of memory that this machine has; infinite where that is unknown."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):  # not on Windows
        return np.inf
