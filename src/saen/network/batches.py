"""Batches: the parts of a hierarchy that some structures reach, with targets and weights."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from saen._util.arrays import Array, Ints, segment_ids
from saen.data.compression import Compressed
from saen.data.hierarchy import Hierarchy
from saen.network.loss import Floats, Task
from saen.network.model import SAEN, derive_seed
from saen.network.sparse import Unrolled


@dataclass(frozen=True)
class Batch:
    """Some structures: the part of the hierarchy that they reach, their targets and weights."""

    unrolled: Unrolled
    rows: Tensor
    uses: list[Tensor] | None
    active: Tensor


def cut_batches(
    network: SAEN, structures: Hierarchy | Compressed, task: Task, batch_size: int | None, seed: int
) -> list[Batch]:
    """The batches of a run, cut from the hierarchy once and used in another order every epoch.

    Which structures go together is drawn from the run's seed over the whole collection, so it is
    the same for every model and every grouping of models.
    """
    hierarchy, top = hierarchy_and_top(structures)
    n = len(top)
    order = generator(seed, "partition").permutation(n)
    if batch_size is None or batch_size >= n:
        spans = [np.arange(n)]
    else:
        spans = np.array_split(order, -(-n // batch_size))
    return [_cut(network, hierarchy, top, np.sort(span), task) for span in spans if len(span)]


def _cut(network: SAEN, hierarchy: Hierarchy, top: Ints, graphs: Ints, task: Task) -> Batch:
    used, row_of = np.unique(top[graphs], return_inverse=True)
    part = hierarchy if len(used) == len(hierarchy) else hierarchy[used]
    unrolled = Unrolled.of(part, dtype=network.dtype, device=network.device)

    def tensor(array: Array) -> Tensor:
        return torch.from_numpy(array).to(network.device, network.dtype)

    counts = np.zeros((len(used), network.n_models))
    np.add.at(counts, row_of, task.weights[graphs])
    uses = None
    if network.architecture.normalisation != "none":
        uses = unrolled.uses(tensor(counts))
    rows = tensor(task.rows(graphs, row_of, len(used), task.weights))
    active = torch.from_numpy(counts.sum(0) > 0).to(network.device)
    return Batch(unrolled, rows, uses, active)


def seen_in_training(
    hierarchy: Hierarchy, top: Ints, weights: Floats, min_count: int = 1
) -> tuple[Tensor, list[Tensor]]:
    """Which labels and roles each model meets in its training structures.

    Returns the entry of the label table that every label uses, (M, V + 1), the last for values
    that the vocabulary lacks: its own; V, shared, for labels that fewer than `min_count` training
    structures hold (and for unseen ones, when some label is rare); V + 1 for those that are
    unseen. And per relation the roles met, (n(l), M).
    """
    n_models = weights.shape[1]
    structures = np.zeros((len(hierarchy), n_models))
    np.add.at(structures, top, (weights > 0).astype(np.float64))
    reached = structures > 0
    roles: list[Tensor] = []
    holds = sparse.eye_array(len(hierarchy), dtype=np.bool_, format="csr")
    for relation in reversed(hierarchy.relations):
        ones = np.ones(relation.n_entries, dtype=np.bool_)
        shape = (relation.n_parents, relation.n_parts)
        parts = sparse.csr_array((ones, relation.parts, relation.indptr), shape=shape)
        parents = segment_ids(relation.indptr)
        met = np.zeros((relation.n_roles, relation.n_parents), dtype=np.bool_)
        met[relation.roles, parents] = True
        roles.append(torch.from_numpy((met.astype(np.float32) @ reached) > 0))
        reached = (parts.T.astype(np.float32) @ reached) > 0
        holds = sparse.csr_array(holds @ parts)
    vocabulary, codes = hierarchy.attributes.vocabulary, hierarchy.attributes.codes
    n_labels = 0 if vocabulary is None else len(vocabulary)
    entries = np.tile(np.arange(n_labels + 1), (n_models, 1))
    counts = np.zeros((n_models, n_labels + 1))
    if codes is not None and n_labels:
        known = np.flatnonzero(codes >= 0)
        to_label = sparse.csr_array(
            (np.ones(len(known), dtype=np.bool_), (known, codes[known])),
            shape=(len(codes), n_labels),
        )
        held = sparse.csr_array(holds @ to_label).astype(np.float64)
        counts[:, :-1] = np.asarray(held.T @ structures).T
    rare = (counts > 0) & (counts < min_count)
    shares = rare.any(axis=1, keepdims=True)
    entries[rare] = n_labels
    entries = np.where(counts == 0, np.where(shares, n_labels, n_labels + 1), entries)
    return torch.from_numpy(entries), roles[::-1]


def hierarchy_and_top(structures: Hierarchy | Compressed) -> tuple[Hierarchy, Ints]:
    """The hierarchy to run over, and for every original structure its row in the top level."""
    if isinstance(structures, Compressed):
        return structures.hierarchy, structures.top.astype(np.int64)
    return structures, np.arange(len(structures))


def generator(seed: int, purpose: str) -> np.random.Generator:
    """A stream of random numbers of its own for one purpose of a run."""
    return np.random.Generator(np.random.PCG64(derive_seed(seed, purpose)))
