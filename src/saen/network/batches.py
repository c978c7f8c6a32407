"""Batches: the part of a hierarchy that some examples reach, with targets and weights."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from saen._util.ahead import ahead
from saen._util.arrays import Array, Ints, chunk_ends, distinct, segment_ids
from saen._util.seeds import derive_seed
from saen.data.compression import Compressed
from saen.data.content_hash import Keys, level_keys, mix
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
    """The batches of a run: the first of them kept, the others cut again whenever they are needed.

    At least one is kept, and as many as have `MAX_KEPT_ENTRIES` entries together. A batch is the
    same either way.

    `members` lists the examples of every batch; with `numbers` (G, M), the batch that each example
    belongs to for each model, others have no weight for it there.
    """

    def __init__(
        self,
        network: SAEN,
        hierarchy: Hierarchy,
        top: Ints,
        task: Task,
        members: Sequence[Ints],
        numbers: Ints | None = None,
    ) -> None:
        self._source = network, hierarchy, top, task
        self._members, self._numbers = members, numbers
        self.kept: list[Batch] = []
        n_entries, limit = 0, MAX_KEPT_ENTRIES.get(network.device.type, MAX_KEPT_ENTRIES["cpu"])
        for number in range(len(members)):
            if n_entries > limit:
                break
            self.kept.append(self._cut(number))
            n_entries += sum(relation.n_entries for relation in self.kept[-1].tensors.relations)

    def __len__(self) -> int:
        return len(self._members)

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
        examples = self._members[number]
        weights = task.weights[examples]
        if self._numbers is not None:
            weights = weights * (self._numbers[examples] == number)
        return cut_batch(network, hierarchy, top, examples, task, weights)


def cut_batches(
    network: SAEN, data: Hierarchy | Compressed, task: Task, n_batches: int, seed: int
) -> Batches:
    """The batches of a run, visited in a different order every epoch.

    Which batch an example is in depends on the seed and on what the example is, and for identical
    training examples on their order: not on other examples, nor on other models.
    """
    hierarchy, top = hierarchy_and_top(data)
    if isinstance(data, Compressed):
        keys, same = data.keys[-1], top
    else:
        keys, same = np.unique(level_keys(hierarchy)[-1], axis=0, return_inverse=True)
    numbers = batch_numbers(keys, same, task.weights, n_batches, seed)
    return Batches(network, hierarchy, top, task, _members(numbers, n_batches), numbers)


def cut_validation_batches(
    network: SAEN, data: Hierarchy | Compressed, task: Task, n_batches: int
) -> Batches:
    """The examples with a weight, each once: the others have no part in a validation loss."""
    hierarchy, top = hierarchy_and_top(data)
    held_out = np.flatnonzero(task.weights.any(axis=1))
    members = np.array_split(held_out, min(n_batches, max(len(held_out), 1)))
    return Batches(network, hierarchy, top, task, members)


def batch_numbers(
    keys: Keys, top: Ints, weights: Floats, n_batches: int, seed: int
) -> NDArray[np.int32]:
    """The batch of every training example in every model, (G, M), -1 for other examples.

    `keys` are those of the unique examples, `top` (G,) says which of them each example is, and
    `weights` (G, M) are positive for training examples.

    >>> keys, top = np.arange(20, dtype=np.uint64).reshape(10, 2), np.arange(10)
    >>> numbers = batch_numbers(keys, top, np.ones((10, 1)), 3, seed=0)
    >>> sorted(set(numbers[:, 0].tolist()))
    [0, 1, 2]
    >>> (batch_numbers(keys, top[5:], np.ones((5, 1)), 3, seed=0) == numbers[5:]).all()
    np.True_
    """
    used = weights > 0
    if n_batches == 1:
        return np.where(used, 0, -1).astype(np.int32)
    # Of identical examples, how many training examples stand before each: (G, M).
    order = np.argsort(top, kind="stable")
    counted: NDArray[np.int64] = np.cumsum(used[order], axis=0) - used[order]
    ordered = top[order]
    first = np.searchsorted(ordered, ordered)
    before: NDArray[np.int64] = np.empty_like(counted)
    before[order] = counted - counted[first]
    salt = np.uint64(derive_seed(seed, "batches"))
    mixed = mix(mix(keys[:, 0] ^ salt)[top, None] + mix(before.astype(np.uint64)))
    numbers = (mixed >> np.uint64(32)) * np.uint64(n_batches) >> np.uint64(32)
    return np.where(used, numbers.astype(np.int32), -1).astype(np.int32)


def _members(numbers: NDArray[np.int32], n_batches: int) -> list[Ints]:
    """The examples that any model has in each batch, in ascending order."""
    example, model = np.nonzero(numbers >= 0)
    codes = distinct(numbers[example, model].astype(np.int64) * len(numbers) + example)
    batch, example = np.divmod(codes, max(len(numbers), 1))
    return np.split(example, np.searchsorted(batch, np.arange(1, n_batches)))


def cut_batch(
    network: SAEN,
    hierarchy: Hierarchy,
    top: Ints,
    examples: Ints,
    task: Task,
    weights: Floats,
) -> Batch:
    """The batch of some examples, with their weights (examples, M)."""
    used, row_of = np.unique(top[examples], return_inverse=True)
    tensors = HierarchyTensors(
        hierarchy,
        dtype=network.dtype,
        device=network.device,
        examples=None if len(used) == len(hierarchy) else used,
    )

    def tensor(array: Array) -> Tensor:
        return torch.from_numpy(array).to(network.device, network.dtype)

    counts = np.zeros((len(used), network.n_models))
    np.add.at(counts, row_of, weights)
    uses = None
    if network.architecture.normalization != "none":
        uses = tensors.uses(tensor(counts))
    targets = tensor(task.histograms(examples, row_of, len(used), weights))
    active = torch.from_numpy(counts.sum(0) > 0).to(network.device)
    return Batch(tensors, targets, uses, active)


def seen_in_training(
    hierarchy: Hierarchy,
    top: Ints,
    weights: Floats,
    min_count: int = 1,
) -> tuple[Tensor, list[Tensor]]:
    """Which labels and roles each model sees in its training examples, for `restrict_to_seen`.

    - `top` (G,): the row of every example in the top level;
    - `weights` (G, M): positive for the training examples of each model;
    - `min_count`: labels in fewer training examples than this share an entry.

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
    entries = _label_entries(counts, min_count)
    return torch.from_numpy(entries), [torch.from_numpy(seen > 0) for seen in roles]


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
