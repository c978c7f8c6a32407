"""Which examples of a dataset are the same, as data: whatever a decomposition sees of them.

Two graphs are the same if some order of their nodes makes all of their arrays equal. Content keys
propose it: nodes get keys from their labels and attributes and from the edges and keys of their
neighbours, again and again (colour refinement), and nodes that still have the same key are told
apart one after another. Then the arrays, in the order of the keys, are compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from saen._util.arrays import Array, Ints, offsets, ranges, segment_ids, segment_reduce
from saen.data.compression import compress
from saen.data.content_hash import Keys, row_keys, value_keys
from saen.data.documents import Documents
from saen.data.graphs import Graphs
from saen.data.hierarchy import Hierarchy
from saen.data.nested import NestedData
from saen.data.vocabulary import Value

MAX_STEPS = 2_000_000
"""Nodes and edges that are looked at, about, to order the nodes of one graph."""
NODES_PER_BATCH = 1 << 16
"""Nodes of the graphs that are ordered together."""


def identical_examples(data: Graphs | Documents | NestedData | Hierarchy) -> NDArray[np.int64]:
    """Equal numbers for examples that are the same as data, (n,): that of the first of them.

    Graphs are the same if they have the same nodes and edges with the same labels and attributes,
    whatever the order of the nodes; documents if they have the same sentences in the same order;
    nested data if they have the same parts in the same roles. Targets and ids do not matter.

    Graphs that are very symmetric, and large or strongly regular, may be missed: only what is
    proved counts.

    >>> bonds = [[(0, 1), (1, 2)], [(0, 1), (1, 2)], [(2, 0), (0, 1)]]
    >>> atoms = ["C", "C", "O", "O", "C", "O", "C", "O", "C"]
    >>> identical_examples(Graphs.from_edge_lists(bonds, node_labels=atoms)).tolist()
    [0, 1, 0]
    """
    if isinstance(data, Graphs):
        return _identical_graphs(data)
    if isinstance(data, Documents):
        return _identical_documents(data)
    hierarchy = data.hierarchy if isinstance(data, NestedData) else data
    return _first_of(compress(hierarchy).top)


def _first_of(numbers: Array) -> NDArray[np.int64]:
    """For every number the position where it first occurs."""
    _, first, inverse = np.unique(numbers, return_index=True, return_inverse=True)
    return first[inverse.reshape(-1)].astype(np.int64)


def _numbered(columns: list[Array | None], n: int) -> NDArray[np.int64]:
    """Equal numbers for equal rows of all columns together."""
    numbers = np.zeros(n, dtype=np.int64)
    for column in columns:
        for values in () if column is None or not n else column.reshape(n, -1).T:
            own = np.unique(values, return_inverse=True)[1].reshape(-1)
            numbers = np.unique(numbers * (own.max(initial=0) + 1) + own, return_inverse=True)[1]
    return numbers.reshape(-1)


def _identical_documents(documents: Documents) -> NDArray[np.int64]:
    sentences = documents.sentences
    nodes = _numbered([sentences.node_labels, sentences.node_attributes], sentences.n_nodes)
    n_entries = len(sentences.indices)
    entries = _numbered([sentences.edge_labels, sentences.edge_attributes], n_entries)
    first: dict[tuple[bytes, ...], int] = {}
    out = np.empty(len(documents), dtype=np.int64)
    for number, own in enumerate(zip(documents.offsets, documents.offsets[1:], strict=False)):
        start, stop = sentences.node_offsets[[*own]]
        rows = slice(*sentences.indptr[[start, stop]])
        content = (
            sentences.sizes[slice(*own)],
            nodes[start:stop],
            np.diff(sentences.indptr[start : stop + 1]),
            sentences.indices[rows].astype(np.int64) - start,
            entries[rows],
        )
        out[number] = first.setdefault(tuple(each.tobytes() for each in content), number)
    return out


# -- graphs ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Nodes:
    """The nodes of some graphs: pointers and ends of their edges, and numbers of what they have.

    A directed edge is an entry from both ends. `labels` (n,) and `roles` (E,) are numbers of the
    labels and attributes of nodes and entries; `names` are those of the roles.
    """

    starts: NDArray[np.int64]
    indptr: NDArray[np.int64]
    ends: NDArray[np.int64]
    labels: NDArray[np.int64]
    roles: NDArray[np.int64]
    names: tuple[str, ...]

    @staticmethod
    def of(graphs: Graphs) -> _Nodes:
        n, n_entries = graphs.n_nodes, len(graphs.indices)
        labels = _numbered([graphs.node_labels, graphs.node_attributes], n)
        roles = _numbered([graphs.edge_labels, graphs.edge_attributes], n_entries)
        sources, ends = segment_ids(graphs.indptr), graphs.indices.astype(np.int64)
        n_roles = int(roles.max(initial=0)) + 1
        indptr = graphs.indptr
        if graphs.directed or n_roles > 1:  # the two directions may differ
            sources, ends = np.append(sources, ends), np.append(ends, sources)
            order = np.argsort(sources, kind="stable")
            ends, roles = ends[order], np.append(roles, roles + n_roles)[order]
            indptr = offsets(np.bincount(sources, minlength=n))
            n_roles *= 2
        return _Nodes(
            graphs.node_offsets, indptr, ends, labels, roles, tuple(map(str, range(n_roles)))
        )

    def take(self, graphs: Ints) -> _Nodes:
        """Some of these graphs."""
        sizes = np.diff(self.starts)[graphs]
        nodes = ranges(self.starts[graphs], sizes)
        lengths = np.diff(self.indptr)[nodes]
        entries = ranges(self.indptr[nodes], lengths)
        starts = offsets(sizes)
        moved = np.repeat(starts[:-1] - self.starts[graphs], sizes)
        return _Nodes(
            starts,
            offsets(lengths),
            self.ends[entries] + np.repeat(moved, lengths),
            self.labels[nodes],
            self.roles[entries],
            self.names,
        )

    def refined(self, keys: Keys) -> Keys:
        """Keys of nodes from their own and those of their neighbours."""
        codes = self.roles * len(keys) + self.ends
        around = row_keys(self.indptr, codes, np.ones(len(codes)), keys, self.names)
        return keys * np.uint64(3) + around  # a sum: what a node is, and what is around it

    def settled(self, keys: Keys) -> Keys:
        """Keys refined until that tells no more nodes apart."""
        count = _count(keys)
        while count < len(keys):
            keys = self.refined(keys)
            before, count = count, _count(keys)
            if count == before:
                break
        return keys

    def digests(self, keys: Keys) -> Keys:
        """A key of every graph from those of its nodes."""
        return segment_reduce(np.add, keys * keys + keys, self.starts)

    def owners(self) -> NDArray[np.int64]:
        """The graph of every node."""
        return segment_ids(self.starts)

    def arranged(self, order: NDArray[np.int64]) -> Iterator[tuple[bytes, ...]]:
        """The arrays of every graph with its nodes in this order, which is one graph by another."""
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        lengths = np.diff(self.indptr)[order]
        entries = ranges(self.indptr[order], lengths)
        roles, rows = self.roles[entries], np.repeat(np.arange(len(order)), lengths)
        ends = place[self.ends[entries]] - self.starts[self.owners()[rows]]
        within = np.lexsort((roles, ends, rows))
        ends, roles, labels = ends[within], roles[within], self.labels[order]
        cuts = offsets(lengths)[self.starts]
        for nodes, own in zip(_slices(self.starts), _slices(cuts), strict=True):
            arrays = (lengths[nodes], ends[own], roles[own], labels[nodes])
            yield tuple(each.tobytes() for each in arrays)


def _slices(pointers: Ints) -> Iterator[slice]:
    return map(slice, pointers[:-1].tolist(), pointers[1:].tolist())


def _count(keys: Keys) -> int:
    return len(np.unique(keys[:, 0]))


def _label_keys(labels: NDArray[np.int64]) -> Keys:
    return _number_keys(int(labels.max(initial=0)).bit_length())[labels]


def _rank_keys(ranks: NDArray[np.int64]) -> Keys:
    return _label_keys(ranks)[:, ::-1] * np.uint64(5)


@lru_cache(maxsize=8)
def _number_keys(bits: int) -> Keys:
    """Keys of the numbers below 2^bits."""
    numbers: list[Value] = [*range(1 << bits)]
    return value_keys(numbers, "label")


def _identical_graphs(graphs: Graphs) -> NDArray[np.int64]:
    nodes = _Nodes.of(graphs)
    out = np.arange(len(graphs))
    for groups in _batches(nodes, _candidates(nodes)):
        members = np.concatenate(groups)
        some = nodes.take(members)
        group = np.repeat(np.arange(len(groups)), [len(each) for each in groups])
        first: dict[Any, int] = {}
        arrays = some.arranged(_order(some))
        for graph, *content in zip(members.tolist(), group.tolist(), arrays, strict=True):
            out[graph] = first.setdefault(tuple(content), graph)
    return out


def _batches(
    nodes: _Nodes, groups: Iterable[NDArray[np.int64]]
) -> Iterator[list[NDArray[np.int64]]]:
    """Groups of graphs with about as many nodes together as arrays should have."""
    sizes, batch, done = np.diff(nodes.starts), [], 0
    for group in groups:
        batch.append(group)
        done += int(sizes[group].sum())
        if done >= NODES_PER_BATCH:
            yield batch
            batch, done = [], 0
    if batch:
        yield batch


def _candidates(nodes: _Nodes) -> Iterator[NDArray[np.int64]]:
    """Groups of graphs that refinement cannot tell apart, two or more each."""
    graphs = np.arange(len(nodes.starts) - 1)
    keys, count = _label_keys(nodes.labels), -1
    while True:
        sizes = np.diff(nodes.starts).astype(np.uint64)
        digests = np.column_stack([nodes.digests(keys), sizes])
        inverse, counts = np.unique(digests, axis=0, return_inverse=True, return_counts=True)[1:]
        inverse = inverse.reshape(-1)
        repeated = np.flatnonzero(counts[inverse] > 1)
        keys = keys[ranges(nodes.starts[repeated], np.diff(nodes.starts)[repeated])]
        nodes, graphs, inverse = nodes.take(repeated), graphs[repeated], inverse[repeated]
        before, count = count, _count(keys)
        if count == before or not len(graphs):
            break
        keys = nodes.refined(keys)
    order = np.argsort(inverse, kind="stable")
    cuts = np.flatnonzero(np.diff(inverse[order])) + 1
    yield from (np.sort(graphs[each]) for each in np.split(order, cuts) if len(each))


def _order(nodes: _Nodes) -> NDArray[np.int64]:
    """The nodes of every graph in an order that depends on them alone, if that can be found.

    Among nodes of equal keys one is chosen and told apart, with those that have the same edges as
    it, and the others are refined again.
    """
    # At once: as many nodes as have the same edges and labels, such as the leaves of a star.
    sums, owners = _edge_sums(nodes), nodes.owners()
    alike = _numbered([sums.view(np.int64), nodes.labels, owners], len(owners))
    keys = nodes.settled(_label_keys(nodes.labels) + _rank_keys(_ranks(alike)))
    graphs, some, own, rounds = np.arange(len(nodes.starts) - 1), nodes, keys, 0
    work = np.diff(nodes.starts) + np.diff(nodes.indptr[nodes.starts])
    while True:
        cells = _first_cells(some, own)
        more = np.zeros(len(graphs), dtype=np.bool_)
        more[some.owners()[cells]] = True
        more &= rounds * work[graphs] < MAX_STEPS
        chosen = np.flatnonzero(more)
        if not len(chosen):
            break
        in_cell = np.zeros(len(own), dtype=np.bool_)
        in_cell[cells] = True
        kept = ranges(some.starts[chosen], np.diff(some.starts)[chosen])
        graphs, some, own, in_cell = graphs[chosen], some.take(chosen), own[kept], in_cell[kept]
        twins, ranks = _twins(some, np.flatnonzero(in_cell))
        own[twins] += _rank_keys(ranks + 1)
        own = some.settled(own)
        keys[ranges(nodes.starts[graphs], np.diff(nodes.starts)[graphs])] = own
        rounds += 1
    return np.lexsort((keys[:, 1], keys[:, 0], owners))


def _first_cells(nodes: _Nodes, keys: Keys) -> NDArray[np.int64]:
    """Of every graph the nodes that share a key, the smallest such key."""
    owners = nodes.owners()
    order = np.lexsort((keys[:, 0], owners))
    same = np.zeros(len(order) + 1, dtype=np.bool_)  # as the one before
    same[1:-1] = (np.diff(keys[order, 0]) == 0) & (np.diff(owners[order]) == 0)
    shared = order[same[:-1] | same[1:]]
    first = np.unique(owners[shared], return_index=True)[1]
    smallest = np.zeros(len(nodes.starts) - 1, dtype=np.uint64)
    smallest[owners[shared[first]]] = keys[shared[first], 0]
    cells: NDArray[np.int64] = np.sort(shared[keys[shared, 0] == smallest[owners[shared]]])
    return cells


def _twins(nodes: _Nodes, cells: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Of every cell the first nodes that may be exchanged, and their ranks among these.

    They have the same edges, but for those among them.
    """
    owners = nodes.owners()
    first = cells[np.unique(owners[cells], return_index=True)[1]]  # of every graph
    around = _edge_sums(nodes)
    in_cell = np.zeros(len(owners), dtype=np.bool_)
    in_cell[cells] = True
    lengths = np.diff(nodes.indptr)[first]
    entries = ranges(nodes.indptr[first], lengths)
    ends = nodes.ends[entries]
    inside = np.flatnonzero(in_cell[ends] & (ends != np.repeat(first, lengths)))
    # Edges among them, as in a clique: every node counts as its own neighbour.
    role = np.full(len(nodes.starts) - 1, -1)
    role[owners[ends[inside]]] = nodes.roles[entries[inside]]
    closed = cells[role[owners[cells]] >= 0]
    around[closed] += _end_keys(closed, role[owners[closed]])
    alike = np.zeros(len(nodes.starts) - 1, dtype=np.uint64)
    alike[owners[first]] = around[first]
    twins = cells[around[cells] == alike[owners[cells]]]
    return twins, _ranks(owners[twins])


def _edge_sums(nodes: _Nodes) -> NDArray[np.uint64]:
    """Equal for nodes with edges to the same nodes, (n,)."""
    rows = _end_keys(nodes.ends, nodes.roles)
    sums: NDArray[np.uint64] = segment_reduce(np.add, rows, nodes.indptr)
    return sums


def _end_keys(ends: NDArray[np.int64], roles: NDArray[np.int64]) -> NDArray[np.uint64]:
    own = _label_keys(ends)[:, 0]
    mixed: NDArray[np.uint64] = own * (_label_keys(roles)[:, 1] | np.uint64(1))
    return mixed


def _ranks(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many before each are equal to it."""
    order = np.argsort(numbers, kind="stable")
    starts = offsets(np.bincount(numbers))
    ranks = np.empty_like(order)
    ranks[order] = np.arange(len(order)) - starts[numbers[order]]
    return ranks
