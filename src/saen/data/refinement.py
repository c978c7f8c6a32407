"""Compression of hierarchies that refine their nodes level by level, as neighbourhoods do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from saen._util.arrays import Apply, Ints, narrow
from saen.data.compression import Compressed
from saen.data.content_hash import Keys, row_keys
from saen.data.hierarchy import Attributes, Hierarchy, Relation
from saen.data.identical import Rows, group, merge_objects, merge_parents, merge_rows


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


def compress_refinement(
    refinement: Refinement,
    lower_inverse: bool,
    apply: Apply,
    progress: Callable[[int], object] | None,
) -> Compressed:
    """What `compress` makes of the whole hierarchy; of what is carried up, only unique objects."""
    n, depth, top = refinement.n, len(refinement.steps), refinement.top
    attributes, inverse, keys = merge_objects(refinement.bottom)
    below = narrow(inverse)  # the unique objects of what a step names
    reached = below[:n, None]  # of every v the unique (v, 0), (v, 1), … on this level
    relations: list[Relation] = []
    all_keys: list[Keys] = [keys]
    columns: list[Ints | None] = [below]
    objects, entries = [len(below)], [0]
    for level, step in enumerate(refinement.steps, start=1):
        rows, places = Rows.once(step, below, len(keys), apply)
        row_key = row_keys(rows.indptr, rows.codes, rows.counts, keys, step.alphabet, apply)
        groups, firsts = group(row_key, partial(rows.equal, apply=apply), rows.content)
        older = np.unique(reached) if level == 1 else np.arange(len(keys))
        carried = Rows.carrying(older, step.n_roles - 1, len(keys), rows.codes.dtype)
        old_key = row_keys(carried.indptr, carried.codes, carried.counts, keys, step.alphabet)
        both = carried.followed_by(rows.take(firsts))
        row_key = np.concatenate([old_key, row_key[firsts]])
        del rows
        relation, inverse, firsts = merge_rows(both, row_key, step.alphabet, len(keys))
        numbers = narrow(inverse)
        renumbered = np.empty(len(keys), dtype=numbers.dtype)
        renumbered[older] = numbers[: len(older)]
        below = numbers[len(older) :][groups][places]
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
    relation, inverse, keys = merge_parents(top, reached.ravel(), keys, apply=apply)
    if progress is not None:
        progress(top.n_parents)
    if not lower_inverse:
        columns[depth] = None
    return Compressed(
        Hierarchy(attributes, (*relations, relation), refinement.names),
        (*columns, narrow(inverse)),
        (*objects, top.n_parents),
        (*entries, top.n_entries),
        [*all_keys, keys],
    )
