"""Domain compression: identical objects are merged, level by level, over a whole dataset.

Algorithm 1 of the paper, with the top level included. Two objects are identical if their bottom
attributes are, or if they consist of the same multiset of (role, unique part). Keys propose which
objects are identical (`saen.data.content_hash`); every object is then compared with the
representative of its group, so equality is proved. Unique objects are numbered by key, which makes
the result independent of the order and the grouping in which objects were seen: compressing shards
and merging them gives the same arrays as compressing everything at once.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import repeat
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from saen._util.arrays import (
    Array,
    Ints,
    codes_in_order,
    distinct_with_inverse,
    frozen,
    narrow,
    offsets,
    ranges,
    row_blocks,
    segment_ids,
    segment_reduce,
    smallest_unsigned,
)
from saen._util.lazy import LazyModule
from saen.data._collection import equal_columns
from saen.data.content_hash import Keys, attribute_keys, level_keys, row_keys
from saen.data.hierarchy import Attributes, Hierarchy, Relation
from saen.errors import InputError

if TYPE_CHECKING:
    from scipy import sparse
else:
    sparse = LazyModule("scipy.sparse")

_MAX_CHUNK_ENTRIES = 1 << 22  # of the uncompressed hierarchy, held by each thread
_MIN_CHUNK_ENTRIES = 1 << 20  # below, merging chunks takes longer than a second thread saves
_MAX_THREADS = 4
Apply = Callable[..., Iterable[Any]]
"""`map`, or that of a pool of threads."""
MAX_ENTRIES = 10**11
"""Entries of an uncompressed hierarchy that compressing it may take."""
MIN_ENTRY_BYTES = 5  # a part in 32 bits and a role in 8
_MIN_CUT = 16  # chunks below this fraction of the largest are decomposed at once
_MAX_INVERSE = 1 << 30  # objects of a level
_SAMPLE, _MIN_DISTINCT = 1 << 10, 0.99  # keys of a sample, and the share from which on they differ


@dataclass(frozen=True, eq=False, repr=False)
class Compressed:
    """A hierarchy of unique objects, and for every original object its unique one.

    - `hierarchy`: the unique objects of every level, with multiplicities on the relations;
    - `inverse[l]`: for every original object of level l its unique object, shape (|S_l|,), as in
      `numpy.unique`; None where a lower level was dropped to save memory;
    - `objects[l]`, `entries[l]`: how large the original was (entries of R_l; 0 for l = 0).
    """

    hierarchy: Hierarchy
    inverse: tuple[Ints | None, ...]
    objects: tuple[int, ...]
    entries: tuple[int, ...]

    def __post_init__(self) -> None:
        depth = self.hierarchy.depth
        if not len(self.inverse) == len(self.objects) == len(self.entries) == depth + 1:
            raise InputError(f"a hierarchy of {depth + 1} levels needs an inverse for each")
        if not all(isinstance(n, int | np.integer) for n in (*self.objects, *self.entries)):
            raise InputError("objects and entries must be integers")
        inverse = tuple(None if level is None else frozen(level) for level in self.inverse)
        for level, (column, size) in enumerate(zip(inverse, self.hierarchy.sizes, strict=True)):
            if column is None:
                continue
            if len(column) != self.objects[level]:
                raise InputError(
                    f"level {level}: the inverse has {len(column)} entries for "
                    f"{self.objects[level]} objects"
                )
            if column.ndim != 1 or column.dtype.kind not in "iu":
                raise InputError(f"level {level}: the inverse must be a flat array of integers")
            if len(column) and not 0 <= column.min() <= column.max() < size:
                raise InputError(
                    f"level {level} has {size} unique objects, but the inverse names "
                    f"{column.max() if column.max() >= size else column.min()}"
                )
        if inverse[-1] is None:
            raise InputError("the inverse of the top level is required")
        object.__setattr__(self, "inverse", inverse)

    def __len__(self) -> int:
        """Original objects of the top level."""
        return self.objects[-1]

    @property
    def top(self) -> Ints:
        """The unique object of every original object of the top level, shape (|S_L|,)."""
        return self.unique_of(len(self.inverse) - 1)

    def unique_of(self, level: int) -> Ints:
        """The unique object of every original object of a level, shape (|S_l|,)."""
        column = self.inverse[level]
        if column is None:
            raise InputError(f"the inverse of level {level} was dropped")
        return column

    def members(self, level: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The original objects of every unique object u: `objects[ptr[u]:ptr[u + 1]]`.

        Returns `(ptr, objects)`, shapes (unique + 1,) and (|S_l|,).
        """
        column = self.unique_of(level)
        counts = np.bincount(column, minlength=self.hierarchy.sizes[level])
        return offsets(counts), np.argsort(column, kind="stable")

    def matrices(self, level: int) -> tuple[sparse.csr_array, sparse.csr_array]:
        """The paper's C_l and D_l."""
        return _cd(self.unique_of(level), self.hierarchy.sizes[level])

    def decompress(self, level: int, rows: Array) -> Array:
        """H_l = D_l H_l^comp: one row per original object from one row per unique object."""
        return rows[self.unique_of(level)]

    @cached_property
    def keys(self) -> list[Keys]:
        """The content key of every unique object, level by level, shape (unique, 2)."""
        return level_keys(self.hierarchy)

    def top_only(self) -> Compressed:
        """Without the inverse of the lower levels, which training does not need."""
        dropped = (None,) * self.hierarchy.depth
        out = Compressed(self.hierarchy, (*dropped, self.top), self.objects, self.entries)
        vars(out).update({"keys": self.keys} if "keys" in vars(self) else {})
        return out

    def levels(self) -> list[dict[str, Any]]:
        """Per level, bottom first: objects and entries before and after compression."""
        return [
            {
                "level": level["level"],
                "name": level["name"],
                "objects": self.objects[level["level"]],
                "unique": level["objects"],
                "entries": self.entries[level["level"]],
                "entries_compressed": level["entries"],
            }
            for level in self.hierarchy.levels()
        ]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Compressed):
            return NotImplemented
        return (
            self.hierarchy == other.hierarchy
            and (self.objects, self.entries) == (other.objects, other.entries)
            and all(map(equal_columns, self.inverse, other.inverse))
        )

    def __repr__(self) -> str:
        levels = [
            f"{before:,} → {after:,} {name}"
            for before, after, name in zip(
                self.objects, self.hierarchy.sizes, self.hierarchy.names, strict=True
            )
        ]
        return f"Compressed({'; '.join(levels)})"


# -- the paper's procedures --------------------------------------------------------------------


def compress(hierarchy: Hierarchy) -> Compressed:
    """DOMAIN-COMPRESSION: merge identical objects on every level, the top included.

    Raises `InputError` for anything but a `Hierarchy`.

    >>> from saen import Ego, Graphs
    >>> square, again = [(0, 1), (1, 2), (2, 3), (3, 0)], [(0, 2), (2, 1), (1, 3), (3, 0)]
    >>> compress(Ego(radii=(0, 1)).decompose(Graphs.from_edge_lists([square, again])))
    Compressed(8 → 1 nodes; 16 → 2 ego graphs; 2 → 1 graphs)
    """
    if not isinstance(hierarchy, Hierarchy):
        raise InputError(
            f"compress takes a Hierarchy, not {type(hierarchy).__name__}: decompose first, as in "
            "compress(Ego().decompose(graphs)), or use compress_graphs(graphs, Ego())"
        )
    return _compress(hierarchy.attributes, hierarchy.relations, hierarchy.names)


def _compress(
    bottom: Attributes,
    levels: Iterable[Relation],
    names: tuple[str, ...],
    known: Iterable[Keys | None] = repeat(None),
) -> Compressed:
    """Merge identical objects; the keys of the objects above the bottom may be `known`.

    Each of `levels` can be dropped before the next is made.
    """
    attributes, inverse, keys = _compress_attributes(bottom)
    relations, columns, unique_keys, entries = [], [narrow(inverse)], [keys], [0]
    for relation, own in zip(levels, known, strict=False):
        compressed, inverse, keys = _compress_relation(relation, columns[-1], keys, own)
        relations.append(compressed)
        columns.append(narrow(inverse))
        unique_keys.append(keys)
        entries.append(relation.n_entries)
    out = Compressed(
        Hierarchy(attributes, tuple(relations), names),
        tuple(columns),
        tuple(map(len, columns)),
        tuple(entries),
    )
    vars(out)["keys"] = unique_keys  # so that nobody computes them again
    return out


def compute_cd(matrix: Any) -> tuple[sparse.csr_array, sparse.csr_array]:
    """COMPUTE-CD: matrices C and D with M = D · CM and CD = I, from the equal rows of M.

    `matrix` is dense or scipy sparse, shape (n, p). Unique rows are numbered by first appearance,
    as in the paper's example. Raises `InputError` for anything but a matrix.

    >>> M = np.array([[0, 0, 0], [1, 0, 1], [1, 1, 0], [0, 0, 0], [1, 1, 0]])
    >>> C, D = compute_cd(M)
    >>> (C @ M).astype(int)
    array([[0, 0, 0],
           [1, 0, 1],
           [1, 1, 0]])
    >>> C.toarray()
    array([[0.5, 0. , 0. , 0.5, 0. ],
           [0. , 1. , 0. , 0. , 0. ],
           [0. , 0. , 0.5, 0. , 0.5]])
    >>> D.toarray().astype(int)
    array([[1, 0, 0],
           [0, 1, 0],
           [0, 0, 1],
           [1, 0, 0],
           [0, 0, 1]])
    """
    rows = sparse.csr_array(matrix).copy()
    if rows.ndim != 2:
        raise InputError(f"a matrix has two axes, found shape {rows.shape}")
    rows.sum_duplicates()
    rows.eliminate_zeros()  # also -0.0, which equals 0.0 here
    _, codes = np.unique(rows.data, return_inverse=True)
    relation = Relation(
        rows.indptr, rows.indices, np.zeros(rows.nnz, np.uint8), ("row",), rows.shape[1], codes + 1
    )
    labels = Attributes(vectors=np.arange(rows.shape[1], dtype=np.float64)[:, None])
    _, by_key, _ = _compress_relation(relation, np.arange(rows.shape[1]), attribute_keys(labels))
    _, first, inverse = np.unique(by_key, return_index=True, return_inverse=True)
    order = np.empty(len(first), dtype=np.int64)
    order[np.argsort(first)] = np.arange(len(first))
    return _cd(order[inverse], len(first))


def _cd(inverse: Ints, n_unique: int) -> tuple[sparse.csr_array, sparse.csr_array]:
    n = len(inverse)
    D = sparse.csr_array((np.ones(n), (np.arange(n), inverse)), shape=(n, n_unique))
    sizes = np.bincount(inverse, minlength=n_unique)
    C = sparse.csr_array((1.0 / sizes[inverse], (inverse, np.arange(n))), shape=(n_unique, n))
    return C, D


# -- shards and streams ------------------------------------------------------------------------


def merge(shards: Iterable[Compressed]) -> Compressed:
    """One compressed dataset of all shards, in order: the same as compressing everything at once.

    The unique objects of the shards are themselves a (small) hierarchy, so merging is compressing
    it. Raises `InputError` for an empty list and for shards whose levels or roles differ.
    """
    parts = list(shards)
    if not parts:
        raise InputError("nothing to merge: the list of shards is empty")
    if len(parts) == 1:
        return parts[0]
    joined = _compress(
        *Hierarchy.concatenated_levels([part.hierarchy for part in parts]),
        parts[0].hierarchy.names,
        (np.concatenate(keys) for keys in zip(*(part.keys[1:] for part in parts), strict=True)),
    )
    columns: list[Ints | None] = []
    for level in range(joined.hierarchy.depth + 1):
        starts = offsets(np.array([part.hierarchy.sizes[level] for part in parts]))
        renumbered = [
            None
            if part.inverse[level] is None
            else joined.unique_of(level)[start:stop][part.unique_of(level)]
            for part, start, stop in zip(parts, starts[:-1], starts[1:], strict=True)
        ]
        present = [column for column in renumbered if column is not None]
        columns.append(np.concatenate(present) if len(present) == len(parts) else None)
    out = Compressed(
        joined.hierarchy,
        tuple(columns),
        tuple(np.sum([part.objects for part in parts], axis=0).tolist()),
        tuple(np.sum([part.entries for part in parts], axis=0).tolist()),
    )
    vars(out)["keys"] = joined.keys
    return out


def extend(compressed: Compressed, hierarchy: Hierarchy) -> Compressed:
    """Add the data of another hierarchy; unique objects that exist already are reused."""
    return merge([compressed, compress(hierarchy)])


def merge_objects(attributes: Attributes) -> tuple[Attributes, NDArray[np.int64]]:
    """The unique bottom objects in the order of their keys, and the inverse."""
    small, inverse, _ = _compress_attributes(attributes)
    return small, inverse


def merge_parents(relation: Relation, keys: Keys) -> tuple[Relation, NDArray[np.int64]]:
    """The unique parents in the order of their keys, and the inverse.

    The parts are unique already, and `keys` are the content keys of the parents.
    """
    rows = _Rows.of(relation, None, relation.n_parts)
    merged, inverse, _ = _merged(rows, keys, relation.alphabet, relation.n_parts)
    return merged, inverse


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


@dataclass(frozen=True)
class Refinement:
    """A hierarchy with a new object (v, l) of every v on every level l, made of those below it.

    The older objects (v, d), d < l, are carried up to level l by one-part objects: number
    v · (l + 1) + d is (v, d).

    - `bottom`: the bottom objects, of which the first `n` are the (v, 0);
    - `steps`: per level the parts of (v, l) alone, which are bottom objects (l = 1) or (u, l - 1),
      numbered by u. The last role is that of what is carried up;
    - `top`: the last relation, of all examples;
    - `names`: of all levels.
    """

    bottom: Attributes
    n: int
    steps: Sequence[Relation]
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


def compress_stream(hierarchies: Iterable[Hierarchy], *, lower_inverse: bool = True) -> Compressed:
    """Compress hierarchies that arrive one after another, holding one of them at a time.

    The result equals `compress` of their concatenation. Without `lower_inverse`, only the inverse
    of the top level is kept. Raises `InputError` if there are none.
    """
    shards = (compress(hierarchy) for hierarchy in hierarchies)
    return merge_stream(shard if lower_inverse else shard.top_only() for shard in shards)


def compress_graphs(
    graphs: Any,
    decomposition: Decomposer,
    *,
    lower_inverse: bool = True,
    progress: Callable[[int], object] | None = None,
) -> Compressed:
    """Decompose and compress in chunks, without ever holding the whole uncompressed hierarchy.

    `graphs` may be whatever else the decomposition takes: documents or nested data. Chunks are
    compressed in parallel; the result does not depend on how many, except that the lower objects
    of `inverse` are in the order of the chunks. Decompositions that can be cut (see
    `Decomposition.cut`) make even one large graph in chunks; those that refine (see
    `Decomposition.refinement`) go level by level, and the threads share each of them. Without
    `lower_inverse`, only the inverse of the top level is kept; that of a cut level with more than a
    billion objects is dropped in any case. `progress` is called with the number of graphs done
    after each chunk, or with the share of levels done as a number of graphs.

    Raises `InputError` with a forecast for work that would never end or never fit.

    >>> from saen import Ego, generate_threads
    >>> threads = generate_threads(20, seed=1)
    >>> ego = Ego(radii=(0, 1)).fit(threads)
    >>> compress_graphs(threads, ego) == compress(ego.decompose(threads))
    True
    """
    costs = decomposition.costs(graphs)
    none: Callable[[Any], None] = lambda data: None  # noqa: E731
    make_cut: Callable[[Any], Cut | None] = getattr(decomposition, "cut", none)
    refine: Callable[[Any], Refinement | None] = getattr(decomposition, "refinement", none)
    _refuse_hopeless(costs, lambda example: make_cut(graphs[example : example + 1]))
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
            return _compress_refinement(refinement, lower_inverse, apply, progress)
        if len(ends) == 1:  # the threads share one large graph
            return merge_stream(shards([shard(0, ends[0], pool.map)]))
        return merge_stream(shards(pool.map(shard, [0, *ends[:-1]], ends)))
    finally:
        pool.shutdown(wait=False, cancel_futures=True)  # Ctrl-C does not wait for a large chunk


def _compress_refinement(
    refinement: Refinement,
    lower_inverse: bool,
    apply: Apply,
    progress: Callable[[int], object] | None,
) -> Compressed:
    """What `compress` makes of the whole hierarchy; of what is carried up, only unique objects."""
    n, depth, top = refinement.n, len(refinement.steps), refinement.top
    attributes, inverse, keys = _compress_attributes(refinement.bottom)
    below = narrow(inverse)  # the unique objects of what a step names
    reached = below[:n, None]  # of every v the unique (v, 0), (v, 1), … on this level
    relations: list[Relation] = []
    all_keys: list[Keys] = [keys]
    columns: list[Ints | None] = [below]
    objects, entries = [len(below)], [0]
    for level, step in enumerate(refinement.steps, start=1):
        rows = _Rows.of(step, below, len(keys), apply)
        row_key = row_keys(rows.indptr, rows.codes, rows.counts, keys, step.alphabet, apply)
        below, firsts = _group(row_key, partial(rows.equal, apply=apply), rows.content)
        older = np.unique(reached) if level == 1 else np.arange(len(keys))
        carried = _Rows.carrying(older, step.n_roles - 1, len(keys), rows.codes.dtype)
        old_key = row_keys(carried.indptr, carried.codes, carried.counts, keys, step.alphabet)
        both = carried.followed_by(rows.take(firsts))
        row_key = np.concatenate([old_key, row_key[firsts]])
        del rows
        relation, inverse, firsts = _merged(both, row_key, step.alphabet, len(keys))
        numbers = narrow(inverse)
        renumbered = np.empty(len(keys), dtype=numbers.dtype)
        renumbered[older] = numbers[: len(older)]
        below = numbers[len(older) :][below]
        reached = np.column_stack([renumbered[reached], below])
        keys = row_key[firsts]
        relations.append(relation)
        all_keys.append(keys)
        columns.append(reached.ravel())
        objects.append(reached.size)
        entries.append(n * level + step.n_entries)
        if not lower_inverse:
            columns[level - 1] = None
        if progress is not None:
            progress(top.n_parents * level // (depth + 1))
    relation, inverse, keys = _compress_relation(top, reached.ravel(), keys, apply=apply)
    if progress is not None:
        progress(top.n_parents)
    if not lower_inverse:
        columns[depth] = None
    out = Compressed(
        Hierarchy(attributes, (*relations, relation), refinement.names),
        (*columns, narrow(inverse)),
        (*objects, top.n_parents),
        (*entries, top.n_entries),
    )
    vars(out)["keys"] = [*all_keys, keys]
    return out


def _compress_cut(cut: Cut, limit: int, lower_inverse: bool, apply: Apply) -> Compressed:
    """What `compress` makes of the whole hierarchy, from chunks of its roots."""
    depth = len(cut.names) - 1

    def part(start: int, stop: int) -> Compressed:
        relations = cut.relations(start, stop)
        compressed = _compress(cut.bottom, relations, cut.names[:-1])
        return compressed if lower_inverse else compressed.top_only()

    ends = chunk_ends(cut.costs, limit)
    merged = merge_stream(apply(part, [0, *ends[:-1]], ends))
    unique = merged.top[cut.numbers]
    top, inverse, keys = _compress_relation(cut.top, unique, merged.keys[-1])

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
    out = Compressed(
        Hierarchy(merged.hierarchy.attributes, (*merged.hierarchy.relations, top), cut.names),
        tuple(None if column is None else narrow(column) for column in columns[::-1]),
        (len(cut.inverse), *objects[::-1]),
        (0, *entries[::-1]),
    )
    vars(out)["keys"] = [*merged.keys, keys]
    return out


def _refuse_hopeless(costs: NDArray[Any], cut: Callable[[int], Cut | None]) -> None:
    """Raise `InputError` with a forecast if a decomposition would have far too many entries."""
    totals = costs.astype(np.float64)
    pieces = totals.copy()  # what is made at once
    if not _hopeless(totals, pieces):
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
    if _hopeless(totals, pieces):
        largest = int(np.argmax(totals))
        limit = f"at most {MAX_ENTRIES:.0e}, and what fits into memory for one example"
        raise InputError(
            f"the decomposition would have up to {totals.sum():.1e} entries ({limit}), "
            f"{totals[largest]:.1e} of them in example {largest}: choose smaller radii, "
            "another decomposition such as neighbourhoods, or fewer or smaller examples"
        )


def _hopeless(totals: NDArray[np.float64], pieces: NDArray[np.float64]) -> bool:
    held = pieces.max(initial=0) * MIN_ENTRY_BYTES
    return bool(totals.sum() > MAX_ENTRIES or held > physical_memory())


def physical_memory() -> float:
    """Bytes of memory that this machine has; infinite where that is unknown."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):  # not on Windows
        return float("inf")


def merge_stream(shards: Iterable[Compressed]) -> Compressed:
    """What `merge` gives, of shards that come one after another: they are merged as they come.

    Raises `InputError` if there are none.
    """
    merged: Compressed | None = None
    waiting: list[Compressed] = []
    for shard in shards:
        waiting.append(shard)
        # Merging when the shards outgrow the collection keeps the total work n log n.
        if merged is None or _weight(waiting) > _weight([merged]):
            merged = merge(waiting if merged is None else [merged, *waiting])
            waiting = []
    if merged is None:
        raise InputError("nothing to compress: there are no hierarchies")
    return merge([merged, *waiting])


def _weight(parts: list[Compressed]) -> int:
    return sum(relation.n_entries for part in parts for relation in part.hierarchy.relations)


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


# -- uses --------------------------------------------------------------------------------------


def ceiling(unique: ArrayLike, targets: ArrayLike) -> float:
    """The accuracy that no single model can exceed: identical graphs get identical predictions.

    `unique` is the unique graph of every graph (`Compressed.top`), `targets` its class, both of
    shape (G,). Raises `InputError` if the shapes differ.

    >>> ceiling([0, 0, 0, 1], ["a", "a", "b", "b"])
    0.75
    """
    rows, classes = np.asarray(unique), np.asarray(targets)
    if rows.ndim != 1 or rows.shape != classes.shape:
        raise InputError(
            "expected one unique graph and one target per graph, found shapes "
            f"{rows.shape} and {classes.shape}"
        )
    if not len(rows):
        return 1.0
    _, codes = np.unique(classes, return_inverse=True)
    counts = sparse.csr_array((np.ones(len(rows)), (rows, codes)))  # of (unique graph, class)
    return float(counts.max(axis=1).sum() / len(rows))


def equivalent(one: Hierarchy, other: Hierarchy) -> bool:
    """Whether two hierarchies hold the same objects on every level, up to reordering.

    >>> from saen import Ego, Graphs
    >>> ego = Ego(radii=(0, 1))
    >>> a = Graphs.from_edge_lists([[(0, 1), (1, 2)], [(0, 1)]])
    >>> equivalent(ego.decompose(a), ego.decompose(a[::-1]))
    True
    """
    if one.names != other.names or one.sizes != other.sizes:
        return False
    if one.attributes.kind != other.attributes.kind:
        return False
    if any(r.alphabet != s.alphabet for r, s in zip(one.relations, other.relations, strict=True)):
        return False
    both = merge([compress(one), compress(other)])
    return all(
        np.array_equal(
            np.bincount(both.unique_of(level)[:size], minlength=both.hierarchy.sizes[level]),
            np.bincount(both.unique_of(level)[size:], minlength=both.hierarchy.sizes[level]),
        )
        for level, size in enumerate(one.sizes)
    )


# -- grouping: propose by key, prove by comparison ---------------------------------------------


@dataclass(frozen=True)
class _Rows:
    """Parents in canonical form: sorted distinct codes role · n_parts + part, with counts."""

    indptr: NDArray[np.int64]
    codes: Ints
    counts: Ints

    @staticmethod
    def of(
        relation: Relation, unique_parts: Ints | None, n_unique: int, apply: Apply = map
    ) -> _Rows:
        """R_l D_{l-1}: the parts of every parent replaced by unique parts, with counts.

        `unique_parts` is None where the parts are unique already. Blocks of rows are made by
        `apply`.
        """
        n_codes = max(relation.n_roles * n_unique, 1)
        width = np.dtype(np.uint32 if n_codes < 2**32 else np.int64)
        indptr = relation.indptr.astype(np.int64, copy=False)
        if relation.n_entries == 0:
            return _Rows(indptr, np.empty(0, width), np.empty(0, np.uint8))

        def merged(start: int, stop: int) -> tuple[Ints, Ints, Ints]:
            entries = slice(int(indptr[start]), int(indptr[stop]))
            local = indptr[start : stop + 1] - indptr[start]
            block = relation.roles[entries].astype(width) * width.type(n_unique)
            parts = relation.parts[entries]
            if unique_parts is not None:
                parts = unique_parts[parts]
            block += parts.astype(width, copy=False)
            weights = None if relation.counts is None else relation.counts[entries]
            lengths, codes, counts = _merge_entries(local, block, weights, n_codes)
            return lengths, codes.astype(width, copy=False), counts

        blocks = list(apply(merged, *zip(*row_blocks(indptr), strict=True)))
        lengths, codes, counts = (np.concatenate(column) for column in zip(*blocks, strict=True))
        return _Rows(offsets(lengths), codes, counts)

    @staticmethod
    def carrying(parts: Ints, role: int, n_unique: int, dtype: np.dtype[Any]) -> _Rows:
        """Parents of one part each."""
        codes = parts.astype(dtype) + dtype.type(role * n_unique)
        return _Rows(np.arange(len(parts) + 1), codes, np.ones(len(parts), np.uint8))

    def take(self, rows: Ints) -> _Rows:
        """Some of these parents."""
        lengths = np.diff(self.indptr)[rows]
        entries = ranges(self.indptr[rows], lengths)
        return _Rows(offsets(lengths), self.codes[entries], self.counts[entries])

    def followed_by(self, other: _Rows) -> _Rows:
        """These parents, then others."""
        return _Rows(
            np.concatenate([self.indptr, self.indptr[-1] + other.indptr[1:]]),
            np.concatenate([self.codes, other.codes]),
            np.concatenate([self.counts, other.counts]),
        )

    def equal(self, mine: Ints, theirs: Ints, apply: Apply = map) -> NDArray[np.bool_]:
        """Row by row, whether two lists of parents consist of the same parts."""
        lengths = np.diff(self.indptr)
        same: NDArray[np.bool_] = lengths[mine] == lengths[theirs]
        candidates = np.flatnonzero(same)
        n = lengths[mine[candidates]]

        def compare(start: int, stop: int) -> None:
            rows, size = candidates[start:stop], n[start:stop]
            a = ranges(self.indptr[mine[rows]], size)
            b = ranges(self.indptr[theirs[rows]], size)
            differs = (self.codes[a] != self.codes[b]) | (self.counts[a] != self.counts[b])
            same[rows[segment_ids(offsets(size))[differs]]] = False

        if len(candidates):
            list(apply(compare, *zip(*row_blocks(offsets(n)), strict=True)))
        return same

    def content(self, row: int) -> tuple[Any, ...]:
        """What tells rows apart; only for keys that collide."""
        entries = slice(int(self.indptr[row]), int(self.indptr[row + 1]))
        return (*self.codes[entries].tolist(), None, *self.counts[entries].tolist())


def _merge_entries(
    indptr: NDArray[np.int64], codes: Ints, counts: Ints | None, n_codes: int
) -> tuple[Ints, Ints, Ints]:
    """Sort the codes of every row and count equal ones: (row lengths, codes, counts)."""
    n_rows = len(indptr) - 1
    width = np.dtype(np.uint32 if n_rows * n_codes < 2**32 else np.int64)  # fewer bytes to sort
    base = np.arange(n_rows, dtype=width) * width.type(n_codes)
    keys = np.repeat(base, np.diff(indptr))
    keys += codes.astype(width, copy=False)
    # Stable sorts use that rows stand in order already; twice as fast as others on some machines.
    if counts is None:
        keys.sort(kind="stable")
        first = np.flatnonzero(_changes(keys))
        merged = np.diff(first, append=len(keys))
    else:
        order = np.argsort(keys, kind="stable")
        keys = keys[order]
        first = np.flatnonzero(_changes(keys))
        weights = counts[order].astype(np.int64)
        merged = np.add.reduceat(weights, first) if len(first) else weights
    lengths = np.diff(np.searchsorted(first, indptr))
    distinct = keys[first]
    distinct -= np.repeat(base, lengths)
    return lengths, distinct, narrow(merged)


def _group(
    keys: Keys,
    equal: Callable[[Ints, Ints], NDArray[np.bool_]],
    content: Callable[[int], tuple[Any, ...]],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Groups of identical objects, ordered by key: every object's group, every group's first.

    Objects of one key that turn out to differ are split into groups ordered by content.
    """
    groups, representatives = _by_key(keys)
    others = np.flatnonzero(representatives[groups] != np.arange(len(keys)))
    collided = np.unique(groups[others[~equal(others, representatives[groups[others]])]])
    if not len(collided):
        return groups, representatives
    return _split(groups, representatives, set(collided.tolist()), content)


def _by_key(keys: Keys) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The group of every key and an object of every group; groups are ordered by key."""
    if _mostly_distinct(keys[:, 0]):  # a hash table would be large, and its order another sort
        order = np.argsort(keys[:, 0])
        new = _changes(keys[order, 0])
        if (new | ~_changes(keys[order, 1])).all():
            groups = np.empty(len(keys), dtype=np.int64)
            groups[order] = np.cumsum(new) - 1
            return groups, order[new]
    else:
        # Hash on one lane, which is enough unless the other disagrees; only the groups are sorted.
        codes = codes_in_order(keys[:, 0])
        first = np.flatnonzero(np.diff(np.maximum.accumulate(codes), prepend=-1))
        if (keys[first, 1][codes] == keys[:, 1]).all():
            order = np.argsort(keys[first, 0])
            rank = np.empty_like(order)
            rank[order] = np.arange(len(order))
            return rank[codes], first[order]
    order = np.lexsort((keys[:, 1], keys[:, 0]))
    new = _changes(keys[order, 0]) | _changes(keys[order, 1])
    groups = np.empty(len(keys), dtype=np.int64)
    groups[order] = np.cumsum(new) - 1
    return groups, order[new]


def _mostly_distinct(values: NDArray[np.uint64]) -> bool:
    """Whether few values of a sample are equal."""
    sample = values[:: len(values) // _SAMPLE + 1]
    return len(np.unique(sample)) >= _MIN_DISTINCT * len(sample)


def _split(
    groups: NDArray[np.int64],
    representatives: NDArray[np.int64],
    collided: set[int],
    content: Callable[[int], tuple[Any, ...]],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Divide the groups whose key is shared by different objects."""
    out = np.empty_like(groups)
    firsts: list[int] = []
    for group in range(len(representatives)):
        if group not in collided:
            out[groups == group] = len(firsts)
            firsts.append(int(representatives[group]))
            continue
        by_content: dict[tuple[Any, ...], list[int]] = {}
        for member in np.flatnonzero(groups == group).tolist():
            by_content.setdefault(content(member), []).append(member)
        for _, members in sorted(by_content.items(), key=lambda item: repr(item[0])):
            out[members] = len(firsts)
            firsts.append(members[0])
    return out, np.array(firsts, dtype=np.int64)


def _compress_attributes(
    attributes: Attributes,
) -> tuple[Attributes, NDArray[np.int64], Keys]:
    """C_0 and D_0 in effect: unique bottom objects, the inverse, and the keys."""
    if attributes.vectors is None:
        # Equal codes are equal values: nothing to hash per object.
        assert attributes.codes is not None
        present, inverse = distinct_with_inverse(attributes.codes)
        small = Attributes(present.astype(np.int32), attributes.vocabulary)
    else:
        small, inverse = attributes, np.arange(len(attributes))
    keys = attribute_keys(small)

    columns: list[Array] = []
    if small.vectors is not None:
        columns.append(small.vectors.view(f"u{small.vectors.itemsize}"))
    if small.codes is not None:
        columns.append(small.codes[:, None])

    def equal(mine: Ints, theirs: Ints) -> NDArray[np.bool_]:
        same = np.ones(len(mine), dtype=np.bool_)
        for column in columns:
            same &= (column[mine] == column[theirs]).all(axis=1)
        return same

    def content(row: int) -> tuple[Any, ...]:
        out: list[Any] = []
        if small.vectors is not None:
            out += small.vectors[row].astype(np.float64).view(np.uint64).tolist()
        if small.codes is not None and small.vocabulary is not None:
            code = int(small.codes[row])
            # Values, not codes: codes depend on what else the vocabulary holds.
            out.append(None if code < 0 else small.vocabulary[code])
        return tuple(out)

    groups, representatives = _group(keys, equal, content)
    return small.take(representatives), groups[inverse], keys[representatives]


def _compress_relation(
    relation: Relation,
    unique_parts: Ints,
    part_keys: Keys,
    keys: Keys | None = None,
    apply: Apply = map,
) -> tuple[Relation, NDArray[np.int64], Keys]:
    """C_l and D_l in effect: the unique parents, the inverse, and the keys.

    `keys` are those of the parents, if they are known.
    """
    rows = _Rows.of(relation, unique_parts, len(part_keys), apply)
    if keys is None:
        keys = row_keys(rows.indptr, rows.codes, rows.counts, part_keys, relation.alphabet, apply)
    merged, inverse, representatives = _merged(rows, keys, relation.alphabet, len(part_keys))
    return merged, inverse, keys[representatives]


def _merged(
    rows: _Rows, keys: Keys, alphabet: tuple[str, ...], n_parts: int
) -> tuple[Relation, NDArray[np.int64], NDArray[np.int64]]:
    """The unique parents in the order of their keys, the inverse, and one parent of each."""
    inverse, representatives = _group(keys, rows.equal, rows.content)
    lengths = np.diff(rows.indptr)[representatives]
    indptr = offsets(lengths)
    parts = np.empty(indptr[-1], dtype=smallest_unsigned(n_parts - 1))
    roles = np.empty(indptr[-1], dtype=smallest_unsigned(len(alphabet) - 1))
    counts = np.empty(indptr[-1], dtype=rows.counts.dtype)
    for start, stop in row_blocks(indptr):
        entries = ranges(rows.indptr[representatives[start:stop]], lengths[start:stop])
        own = slice(indptr[start], indptr[stop])
        roles[own], parts[own] = np.divmod(rows.codes[entries], max(n_parts, 1))
        counts[own] = rows.counts[entries]
    merged = Relation(
        indptr,
        narrow(parts),
        narrow(roles),
        alphabet,
        n_parts,
        None if (counts == 1).all() else narrow(counts),
    )
    return merged, inverse, representatives


def _changes(values: Array) -> NDArray[np.bool_]:
    """Where a sorted array starts a new value."""
    out = np.ones(len(values), dtype=np.bool_)
    out[1:] = values[1:] != values[:-1]
    return out
