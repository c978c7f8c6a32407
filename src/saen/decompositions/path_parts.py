"""Paths as objects: made of nodes (and edges) by index, and parts of what they lie in by length."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from saen._util.arrays import (
    Ints,
    narrow,
    offsets,
    ranges,
    segment_ids,
    segment_reduce,
    smallest_unsigned,
)
from saen._util.lazy import sparse
from saen.data.hierarchy import Relation
from saen.data.vocabulary import UNSEEN, Vocabulary
from saen.decompositions.edge_roles import Links, kind_names
from saen.decompositions.shortest_paths import Reader

Triples = tuple[Ints, Ints, Ints]
"""(parent, part, role) of every entry, three arrays of shape (entries,)."""


def path_relations(
    paths: list[Ints],
    steps: Steps,
    reader: Reader,
    owners: Ints,
    sizes: tuple[int, int],
    members: Ints | None = None,
    entries: Ints | None = None,
) -> tuple[Relation, Relation]:
    """R_1, the parts of paths, and R_2, the paths of their owners with their lengths as roles.

    `paths[k]` are those of length k, shape (paths, k + 1), over the nodes that `reader` reads;
    `owners` says in which subgraph or sentence each node lies. `sizes` are the numbers of bottom
    objects and owners. Where nodes are not bottom objects, `members` gives the bottom object of
    each, and `entries` the entry of `steps.adjacency` behind each one that `reader` reads.

    Paths are numbered by owner, then by length.
    """
    n_bottom, n_owners = sizes
    counts = np.array([len(rows) for rows in paths])
    lengths = np.repeat(np.arange(len(paths)), counts)
    owner = np.concatenate([owners[rows[:, 0]] for rows in paths])
    order = np.argsort(owner, kind="stable")
    numbers = np.empty_like(order)
    numbers[order] = np.arange(len(order))
    triples: list[Triples] = []
    for rows, own in zip(paths, np.split(numbers, np.cumsum(counts)[:-1]), strict=True):
        taken: Ints | None = None
        if steps.links is not None:
            taken = reader.steps(rows) if entries is None else entries[reader.steps(rows)]
        path, parts, roles = steps.parts(rows if members is None else members[rows], taken)
        triples.append((own[path], parts, roles))
    names = tuple(f"length {length}" for length in range(len(paths)))
    return (
        _relation(triples, steps.alphabet, len(order), n_bottom),
        _relation([(owner, numbers, lengths)], names, n_owners, len(order)),
    )


@dataclass(frozen=True)
class Steps:
    """Where paths may go from every node, without loops, and the roles of their parts.

    The values of `adjacency` order its entries by the content of `links`, if there are any.
    """

    adjacency: sparse.csr_array
    alphabet: tuple[str, ...]
    links: LinkParts | None = None

    @staticmethod
    def plain(adjacency: sparse.csr_array, max_length: int) -> Steps:
        """Steps along edges that are all alike: the node at index i has the role `index i`."""
        return Steps(adjacency, _indices(max_length))

    @staticmethod
    def by_kind(links: Links, kinds: Vocabulary, codes: Ints, max_length: int) -> Steps:
        """Nodes have the role `index i KIND` by the kind of the link that leads to them."""
        names = [
            f"index {i} {kind}" for i in range(1, max_length + 1) for kind in kind_names(kinds)
        ]
        roles = np.where(codes == UNSEEN, UNSEEN, codes + 1)
        return Steps._along(links, codes, ("index 0", *names), roles=roles, width=len(kinds))

    @staticmethod
    def through_objects(links: Links, objects: Ints, codes: Ints, max_length: int) -> Steps:
        """The i-th link of a path is its part with role `edge i`: `objects`, with `codes`."""
        indices = _indices(max_length)
        names = (*indices, *(f"edge {i}" for i in range(1, max_length + 1)))
        roles = np.full(len(objects), len(indices))
        return Steps._along(links, codes, names, roles=roles, width=1, objects=objects)

    @staticmethod
    def _along(links: Links, codes: Ints, alphabet: tuple[str, ...], **parts: Any) -> Steps:
        n = len(links.indptr) - 1
        tails, heads = segment_ids(links.indptr), links.neighbours
        first = np.ones(len(heads), dtype=np.bool_)
        first[1:] = (tails[1:] != tails[:-1]) | (heads[1:] != heads[:-1])
        pointers = np.append(np.flatnonzero(first), len(heads))
        # At most two links join two nodes, one each way: lowest and highest code say which.
        low = segment_reduce(np.minimum, codes, pointers).astype(np.int64)
        high = segment_reduce(np.maximum, codes, pointers).astype(np.int64)
        second = np.where(np.diff(pointers) > 1, high + 1, -1)
        values = low * (int(codes.max(initial=0)) + 3) + second
        indptr = offsets(np.bincount(tails[first], minlength=n))
        adjacency = sparse.csr_array((values, heads[first], indptr), shape=(n, n))
        return Steps(adjacency, alphabet, LinkParts(pointers, **parts))

    def parts(self, rows: Ints, entries: Ints | None) -> Triples:
        """(path, part, role) of the parts of paths over bottom objects, shape (paths, k + 1).

        `entries` of `adjacency` lead from each to the next, shape (paths, k); only links need them.
        """
        if self.links is None or entries is None:
            return _by_index(rows)
        nodes = _by_index(rows[:, :1] if self.links.objects is None else rows)
        both = zip(nodes, self.links.parts(rows, entries), strict=True)
        path, parts, roles = (np.concatenate(column) for column in both)
        return path, parts, roles


@dataclass(frozen=True)
class LinkParts:
    """What links add to paths: objects of their own, or roles of the nodes that they lead to.

    The links of adjacency entry e are `pointers[e] … pointers[e + 1] - 1`: one, or two where a
    directed graph has edges both ways. Their roles at the first step of a path are `roles`, -1
    where they have none; at every further step they are greater by `width`.
    """

    pointers: Ints
    roles: Ints
    width: int
    objects: Ints | None = None

    def parts(self, rows: Ints, entries: Ints) -> Triples:
        """(path, part, role) of the links of all entries, shape (paths, k), that paths take."""
        counts = np.diff(self.pointers)[entries.ravel()]
        link = ranges(self.pointers[entries.ravel()], counts)
        path, step = np.indices(entries.shape).reshape(2, -1).repeat(counts, axis=1)
        seen = self.roles[link] != UNSEEN
        path, step, link = path[seen], step[seen], link[seen]
        parts = rows[path, step + 1] if self.objects is None else self.objects[link]
        return path, parts, self.roles[link] + step * self.width


def _indices(max_length: int) -> tuple[str, ...]:
    return tuple(f"index {i}" for i in range(max_length + 1))


def _by_index(rows: Ints) -> Triples:
    """(path, part, role) of parts whose roles are their places in the row."""
    path, index = np.indices(rows.shape).reshape(2, -1)
    return path, rows.ravel(), index


def _relation(
    triples: list[Triples], alphabet: tuple[str, ...], n_parents: int, n_parts: int
) -> Relation:
    """From (parent, part, role) in any order."""
    parents, parts, roles = (np.concatenate(column) for column in zip(*triples, strict=True))
    order = np.argsort(parents, kind="stable")
    return Relation(
        offsets(np.bincount(parents, minlength=n_parents)),
        narrow(parts)[order],
        roles.astype(smallest_unsigned(len(alphabet) - 1))[order],
        alphabet,
        n_parts,
    )
