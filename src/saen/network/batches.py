"""Batches: the part of a hierarchy that some examples reach, with targets and weights."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from saen._util.ahead import ahead
from saen._util.arrays import Array, Ints, chunk_ends, segment_ids
from saen._util.seeds import derive_seed
from saen.data.compression import Compressed
from saen.data.hierarchy import Hierarchy, Relation
from saen.network.loss import Floats, Task
from saen.network.model import SAEN
from saen.network.tensors import HierarchyTensors

MAX_KEPT_ENTRIES = {"cpu": 1 << 23, "cuda": 1 << 27}
"""Entries of the batches of a run that are kept on a device: 40 to 60 bytes each."""
MAX_SEEN_ENTRIES = 1 << 22
"""Entries of the top level whose labels and roles are looked up at a time."""


@dataclass(frozen=True)
class Batch:
    """Some examples: the part of the hierarchy that they reach, their targets and weights."""

    tensors: HierarchyTensors
    targets: Tensor
    uses: list[Tensor] | None
    active: Tensor


class Batches:
    """The batches of a run: the first of them kept, the others cut anew whenever they are needed.

    At least one is kept, and as many as have `MAX_KEPT_ENTRIES` entries together. A batch is the
    same either way.
    """

    def __init__(
        self, network: SAEN, hierarchy: Hierarchy, top: Ints, task: Task, examples: list[Ints]
    ) -> None:
        self._source = network, hierarchy, top, task
        self._examples = examples
        self.kept: list[Batch] = []
        n_entries, limit = 0, MAX_KEPT_ENTRIES.get(network.device.type, MAX_KEPT_ENTRIES["cpu"])
        for number in range(len(examples)):
            if n_entries > limit:
                break
            self.kept.append(self._cut(number))
            n_entries += sum(relation.n_entries for relation in self.kept[-1].tensors.relations)

    def __len__(self) -> int:
        return len(self._examples)

    def in_order(self, numbers: Ints) -> Iterator[Batch]:
        """These batches, each cut while the caller works on the one before."""
        batches = (self._batch(number) for number in numbers.tolist())
        return batches if len(self.kept) == len(self) else ahead(batches)

    def __iter__(self) -> Iterator[Batch]:
        return self.in_order(np.arange(len(self)))

    def _batch(self, number: int) -> Batch:
        return self.kept[number] if number < len(self.kept) else self._cut(number)

    def _cut(self, number: int) -> Batch:
        network, hierarchy, top, task = self._source
        return cut_batch(network, hierarchy, top, self._examples[number], task)


def cut_batches(
    network: SAEN, data: Hierarchy | Compressed, task: Task, batch_size: int | None, seed: int
) -> Batches:
    """The batches of a run, visited in a different order every epoch.

    Which examples go together depends on the seed and the whole dataset only, so it is the same for
    every model and every group of models.
    """
    hierarchy, top = hierarchy_and_top(data)
    return Batches(network, hierarchy, top, task, batch_examples(len(top), batch_size, seed))


def cut_validation_batches(
    network: SAEN, data: Hierarchy | Compressed, task: Task, batch_size: int | None
) -> Batches:
    """The examples with a weight, each once: the others have no part in a validation loss."""
    hierarchy, top = hierarchy_and_top(data)
    held_out = np.flatnonzero(task.weights.any(axis=1))
    n_batches = 1 if batch_size is None else max(-(-len(held_out) // batch_size), 1)
    return Batches(network, hierarchy, top, task, np.array_split(held_out, n_batches))


def batch_examples(n: int, batch_size: int | None, seed: int) -> list[Ints]:
    """Which of n examples go together, in ascending order."""
    order = generator(seed, "partition").permutation(n)
    if batch_size is None or batch_size >= n:
        parts = [np.arange(n)]
    else:
        parts = np.array_split(order, -(-n // batch_size))
    return [np.sort(part) for part in parts if len(part)]


def cut_batch(network: SAEN, hierarchy: Hierarchy, top: Ints, examples: Ints, task: Task) -> Batch:
    """The batch of some examples."""
    used, row_of = np.unique(top[examples], return_inverse=True)
    reached = hierarchy if len(used) == len(hierarchy) else hierarchy[used]
    tensors = HierarchyTensors(reached, dtype=network.dtype, device=network.device)

    def tensor(array: Array) -> Tensor:
        return torch.from_numpy(array).to(network.device, network.dtype)

    counts = np.zeros((len(used), network.n_models))
    np.add.at(counts, row_of, task.weights[examples])
    uses = None
    if network.architecture.normalisation != "none":
        uses = tensors.uses(tensor(counts))
    targets = tensor(task.histograms(examples, row_of, len(used), task.weights))
    active = torch.from_numpy(counts.sum(0) > 0).to(network.device)
    return Batch(tensors, targets, uses, active)


def seen_in_training(
    hierarchy: Hierarchy,
    top: Ints,
    weights: Floats,
    min_count: int = 1,
    total: Callable[[Floats], Floats] = lambda counts: counts,
) -> tuple[Tensor, list[Tensor]]:
    """Which labels and roles each model sees in its training examples, for `restrict_to_seen`.

    - `top` (G,): the row of every example in the top level;
    - `weights` (G, M): positive for the training examples of each model;
    - `min_count`: labels in fewer training examples than this share an entry;
    - `total`: sums counts over the processes that train together.

    Returns the entry of the label table that every label uses, (M, V + 1), the last for values
    outside the vocabulary: its own; V, shared, for rare labels (and for unseen ones, if some label
    is rare); V + 1 for unseen ones. And per relation the roles seen, (n(l), M).
    """
    n_models = weights.shape[1]
    examples = np.zeros((len(hierarchy), n_models))
    np.add.at(examples, top, (weights > 0).astype(np.float64))
    vocabulary = hierarchy.attributes.vocabulary
    counts = np.zeros((n_models, 1 + len(vocabulary or ())))
    roles = [np.zeros((relation.n_roles, n_models)) for relation in hierarchy.relations]
    ends = chunk_ends(np.diff(hierarchy.relations[-1].indptr), MAX_SEEN_ENTRIES)
    for start, stop in zip([0, *ends[:-1]], ends, strict=True):
        part = hierarchy if len(ends) == 1 else hierarchy[start:stop]
        _count_seen(part, examples[start:stop], counts, roles)
    entries = _label_entries(total(counts), min_count)
    return torch.from_numpy(entries), [torch.from_numpy(total(seen) > 0) for seen in roles]


def _count_seen(
    hierarchy: Hierarchy, examples: Floats, counts: Floats, roles: Sequence[Floats]
) -> None:
    """Add the training examples (n_L, M) with each label, and the objects with each role."""
    reached = examples > 0
    contains = sparse.eye_array(len(hierarchy), dtype=np.bool_, format="csr")
    for relation, seen in zip(reversed(hierarchy.relations), reversed(roles), strict=True):
        has_role = np.zeros((relation.n_roles, relation.n_parents), dtype=np.bool_)
        has_role[relation.roles, segment_ids(relation.indptr)] = True
        seen += has_role.astype(np.float64) @ reached
        parts = _part_of(relation)
        reached = (parts.T.astype(np.float32) @ reached) > 0
        contains = sparse.csr_array(contains @ parts)
    counts += _label_counts(hierarchy, contains, examples)


def _part_of(relation: Relation) -> sparse.csr_array:
    """Which parts each parent has, in whatever role, (n, m)."""
    ones = np.ones(relation.n_entries, dtype=np.bool_)
    shape = (relation.n_parents, relation.n_parts)
    return sparse.csr_array((ones, relation.parts, relation.indptr), shape=shape)


def _label_counts(hierarchy: Hierarchy, contains: sparse.csr_array, examples: Floats) -> Floats:
    """In how many training examples of each model each label occurs, (M, V + 1), the last 0."""
    vocabulary, codes = hierarchy.attributes.vocabulary, hierarchy.attributes.codes
    n_labels = 0 if vocabulary is None else len(vocabulary)
    counts = np.zeros((examples.shape[1], n_labels + 1))
    if codes is not None and n_labels:
        known = np.flatnonzero(codes >= 0)
        has_label = sparse.csr_array(
            (np.ones(len(known), dtype=np.bool_), (known, codes[known])),
            shape=(len(codes), n_labels),
        )
        contains_label = sparse.csr_array(contains @ has_label).astype(np.float64)
        counts[:, :-1] = np.asarray(contains_label.T @ examples).T
    return counts


def _label_entries(counts: Floats, min_count: int) -> Ints:
    """The table entry of every label, (M, V + 1), from its counts."""
    shared = counts.shape[1] - 1
    rare = (counts > 0) & (counts < min_count)
    unseen = np.where(rare.any(axis=1, keepdims=True), shared, shared + 1)
    entries = np.where(rare, shared, np.arange(shared + 1))
    return np.where(counts == 0, unseen, entries)


def hierarchy_and_top(data: Hierarchy | Compressed) -> tuple[Hierarchy, Ints]:
    """The hierarchy to run over, and for every original example its row in the top level."""
    if isinstance(data, Compressed):
        return data.hierarchy, data.top.astype(np.int64)
    return data, np.arange(len(data))


def generator(seed: int, purpose: str) -> np.random.Generator:
    """An independent stream of random numbers for one purpose of a run."""
    return np.random.Generator(np.random.PCG64(derive_seed(seed, purpose)))
