"""Domain compression: identical objects are merged, level by level, over a whole dataset.

Algorithm 1 of the paper, with the top level included. Two objects are identical if their bottom
attributes are, or if they consist of the same multiset of (role, unique part), which
`saen.data.identical` finds out. Unique objects are numbered by key, which makes the result
independent of the order and the grouping in which objects were seen: compressing shards and merging
them gives the same arrays as compressing everything at once (`saen.data.chunks` does so).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import InitVar, dataclass
from functools import cached_property
from itertools import repeat
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from saen._util.arrays import (
    Array,
    Ints,
    frozen,
    narrow,
    offsets,
)
from saen._util.lazy import sparse
from saen.data.collection import equal_columns
from saen.data.content_hash import Keys, attribute_keys, level_keys
from saen.data.hierarchy import Attributes, Hierarchy, Relation
from saen.data.identical import merge_objects, merge_parents
from saen.errors import InputError


@dataclass(frozen=True, eq=False, repr=False)
class Compressed:
    """A hierarchy of unique objects, and for every original object its unique one.

    - `hierarchy`: the unique objects of every level, with multiplicities on the relations;
    - `inverse[l]`: for every original object of level l its unique object, shape (|S_l|,), as in
      `numpy.unique`; None where a lower level was dropped to save memory;
    - `objects[l]`, `entries[l]`: how large the original was (entries of R_l; 0 for l = 0);
    - `known_keys`: the `keys`, where whoever made it has them already.
    """

    hierarchy: Hierarchy
    inverse: tuple[Ints | None, ...]
    objects: tuple[int, ...]
    entries: tuple[int, ...]
    known_keys: InitVar[list[Keys] | None] = None

    def __post_init__(self, known_keys: list[Keys] | None) -> None:
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
        if known_keys is not None:
            object.__setattr__(self, "keys", known_keys)

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
        """H_l = D_l H_l^comp: one row per original object from one row per unique object.

        Parameters
        ----------
        level : int
            The level, 0 for the bottom.
        rows : Array
            One row per unique object of the level.
        """
        return rows[self.unique_of(level)]

    @cached_property
    def keys(self) -> list[Keys]:
        """The content key of every unique object, level by level, shape (unique, 2)."""
        return level_keys(self.hierarchy)

    def of_examples(self, examples: Ints | slice) -> Compressed:
        """Of some objects of the top level, over the same unique objects."""
        top = self.top[examples]
        return Compressed(
            self.hierarchy,
            (*[None] * self.hierarchy.depth, top),
            (*self.objects[:-1], len(top)),
            self.entries,
            vars(self).get("keys"),
        )

    def top_only(self) -> Compressed:
        """Without the inverse of the lower levels, which training does not need."""
        return self.of_examples(slice(None))

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

    Parameters
    ----------
    hierarchy : Hierarchy
        The objects of every level.

    Raises
    ------
    InputError
        For anything but a `Hierarchy`.

    Examples
    --------
    >>> from saen import Graphs
    >>> from saen.decompositions import Ego
    >>> square, again = [(0, 1), (1, 2), (2, 3), (3, 0)], [(0, 2), (2, 1), (1, 3), (3, 0)]
    >>> compress(Ego(radii=(0, 1)).decompose(Graphs.from_edge_lists([square, again])))
    Compressed(8 → 1 nodes; 16 → 2 ego graphs; 2 → 1 graphs)
    """
    if not isinstance(hierarchy, Hierarchy):
        raise InputError(
            f"compress takes a Hierarchy, not {type(hierarchy).__name__}: decompose first, as in "
            "compress(Ego().decompose(graphs)), or use compress_graphs(graphs, Ego())"
        )
    return compress_levels(hierarchy.attributes, hierarchy.relations, hierarchy.names)


def compress_levels(
    bottom: Attributes,
    levels: Iterable[Relation],
    names: tuple[str, ...],
    known: Iterable[Keys | None] = repeat(None),
) -> Compressed:
    """Merge identical objects; the keys of the objects above the bottom may be `known`.

    Each of `levels` can be dropped before the next is made.
    """
    attributes, inverse, keys = merge_objects(bottom)
    relations, columns, unique_keys, entries = [], [narrow(inverse)], [keys], [0]
    for relation, own in zip(levels, known, strict=False):
        compressed, inverse, keys = merge_parents(relation, columns[-1], keys, own)
        relations.append(compressed)
        columns.append(narrow(inverse))
        unique_keys.append(keys)
        entries.append(relation.n_entries)
    return Compressed(
        Hierarchy(attributes, tuple(relations), names),
        tuple(columns),
        tuple(map(len, columns)),
        tuple(entries),
        unique_keys,
    )


def compute_cd(matrix: Any) -> tuple[sparse.csr_array, sparse.csr_array]:
    """COMPUTE-CD: matrices C and D with M = D · CM and CD = I, from the equal rows of M.

    Unique rows are numbered by first appearance, as in the paper's example.

    Parameters
    ----------
    matrix : Any
        The matrix M, dense or scipy sparse, shape (n, p).

    Examples
    --------
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
    _, by_key, _ = merge_parents(relation, np.arange(rows.shape[1]), attribute_keys(labels))
    _, first, inverse = np.unique(by_key, return_index=True, return_inverse=True)
    return _cd(np.argsort(np.argsort(first))[inverse], len(first))


def _cd(inverse: Ints, n_unique: int) -> tuple[sparse.csr_array, sparse.csr_array]:
    n = len(inverse)
    D = sparse.csr_array((np.ones(n), (np.arange(n), inverse)), shape=(n, n_unique))
    sizes = np.bincount(inverse)
    C = sparse.csr_array((1.0 / sizes[inverse], (inverse, np.arange(n))), shape=(n_unique, n))
    return C, D


# -- shards and streams ------------------------------------------------------------------------


def merge(shards: Iterable[Compressed]) -> Compressed:
    """One compressed dataset of all shards, in order: the same as compressing everything at once.

    The unique objects of the shards are themselves a (small) hierarchy, so merging is compressing
    it. Raises `InputError` for an empty list and for shards whose levels or roles differ.

    Parameters
    ----------
    shards : Iterable[Compressed]
        Compressed datasets with the same levels and roles.
    """
    parts = list(shards)
    if not parts:
        raise InputError("nothing to merge: the list of shards is empty")
    if len(parts) == 1:
        return parts[0]
    joined = compress_levels(
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
    return Compressed(
        joined.hierarchy,
        tuple(columns),
        tuple(np.sum([part.objects for part in parts], axis=0).tolist()),
        tuple(np.sum([part.entries for part in parts], axis=0).tolist()),
        joined.keys,
    )


def extend(compressed: Compressed, hierarchy: Hierarchy) -> Compressed:
    """Add the data of another hierarchy; unique objects that exist already are reused.

    Parameters
    ----------
    compressed : Compressed
        What is compressed already.
    hierarchy : Hierarchy
        The data to add, with the same levels and roles.
    """
    return merge([compressed, compress(hierarchy)])


def compress_stream(hierarchies: Iterable[Hierarchy], *, lower_inverse: bool = True) -> Compressed:
    """Compress hierarchies that arrive one after another, holding one of them at a time.

    The result equals `compress` of their concatenation.

    Parameters
    ----------
    hierarchies : Iterable[Hierarchy]
        Hierarchies with the same levels and roles.
    lower_inverse : bool, default=True
        Whether to keep the unique object of every object below the top level, too.
    """
    shards = (compress(hierarchy) for hierarchy in hierarchies)
    return merge_stream(shard if lower_inverse else shard.top_only() for shard in shards)


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


# -- uses --------------------------------------------------------------------------------------


def ceiling(unique: ArrayLike, targets: ArrayLike) -> float:
    """The accuracy that no single model can exceed: identical graphs get identical predictions.

    Parameters
    ----------
    unique : ArrayLike
        The unique graph of every graph (`Compressed.top`), shape (G,).
    targets : ArrayLike
        The class of every graph, shape (G,).

    Examples
    --------
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

    Parameters
    ----------
    one : Hierarchy
        A hierarchy.
    other : Hierarchy
        The hierarchy to compare it with.

    Examples
    --------
    >>> from saen import Graphs
    >>> from saen.decompositions import Ego
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
            np.bincount(both.unique_of(level)[:size]), np.bincount(both.unique_of(level)[size:])
        )
        for level, size in enumerate(one.sizes)
    )
