"""Shift and aggregate (Eq. 1) with the first layer of the extraction (Eq. 2), in three ways.

From the representations H = h_{l-1} of its parts, a level computes

    a_l = [R_{l,1} H, …, R_{l,n(l)} H]     Eq. 1: one block a_{l,π} per role
    x   = Σ_π a_{l,π} W_π + b              the first layer of MLP_l, Eq. 2

An `Aggregation` does this for one relation: `aggregate` gives a_l, `linear` gives x, and `moments`
the mean and variance that normalise a_l. The three classes compute the same numbers:

- `DenseRows`: a_l with one row per (parent, role);
- `NonEmptyRows`: a_l with only the (parent, role) rows that have parts;
- `ProjectFirst`: x = Σ_π R_{l,π} (H W_π) + b, so a_l is never computed.

Shapes, for M models: H (m, M, d), W (roles, M, d, out), b (M, out), x (M, n, out), `uses` (n, M).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor, nn

from saen._util.arrays import Ints, offsets, ranges, row_blocks, segment_ids
from saen.data.hierarchy import Relation
from saen.network.architecture import EPSILON, max_constant_deviation
from saen.network.sparse import SparseMatrix

Floats = NDArray[np.float64]
Moments = tuple[Tensor, Tensor]
"""Weighted mean and variance of a_l, (roles, M, d) both."""


class Aggregation(ABC):
    """One way to aggregate over a relation and apply the first layer."""

    @abstractmethod
    def aggregate(self, h: Tensor) -> Tensor:
        """a_l in the layout that `moments` and `linear` of this class take."""

    @abstractmethod
    def moments(self, a: Tensor, uses: Tensor) -> Moments:
        """Mean and variance of a_l over the parents, each weighted by its `uses`."""

    @abstractmethod
    def linear(self, a: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        """x = Σ_π a_{l,π} W_π + b."""


class DenseRows(Aggregation):
    """a_l as (n, roles, M, d), empty rows included: one sparse product for all roles."""

    def __init__(self, relation: Relation, dtype: torch.dtype, device: torch.device) -> None:
        self.n_parents, self.n_roles = relation.n_parents, relation.n_roles
        rows = segment_ids(relation.indptr) * self.n_roles + relation.roles.astype(np.int64)
        shape = (self.n_parents * self.n_roles, relation.n_parts)
        self.matrix: SparseMatrix = _matrix(relation, rows, relation.parts, shape, dtype, device)

    def aggregate(self, h: Tensor) -> Tensor:
        """a_l, (n, roles, M, d)."""
        return (self.matrix @ h.flatten(1)).view(self.n_parents, self.n_roles, *h.shape[1:])

    def moments(self, a: Tensor, uses: Tensor) -> Moments:
        """Moments over all rows."""
        return weighted_moments(a, uses)

    def linear(self, a: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        """Role by role, added to b."""
        x = bias[:, None]
        # `unbind` rather than indexing: the gradients of the blocks are concatenated once instead
        # of being added to zeros one by one.
        for block, block_weight in zip(a.unbind(1), weight.unbind(), strict=True):
            x = torch.baddbmm(x, block.transpose(0, 1), block_weight)
        return x

    def part_uses(self, uses: Tensor) -> Tensor:
        """w_{l-1} = Σ_π R_{l,π}ᵀ w_l: how often each part is used, (n, M) to (m, M)."""
        return self.matrix.T @ uses.repeat_interleave(self.n_roles, 0)


class NonEmptyRows(Aggregation):
    """a_l as (P, M, d): the P (role, parent) pairs that have parts, sorted by role."""

    def __init__(self, relation: Relation, dtype: torch.dtype, device: torch.device) -> None:
        n, n_roles = relation.n_parents, relation.n_roles
        pairs = np.flatnonzero(nonempty_pairs(relation))
        shape = (len(pairs), relation.n_parts)
        self.matrix: SparseMatrix = _matrix(
            relation, entry_rows(relation), relation.parts, shape, dtype, device
        )
        self.parents: Tensor = torch.from_numpy(pairs % n).to(device)
        self.rows_per_role: list[int] = np.bincount(pairs // n, minlength=n_roles).tolist()
        ones = np.ones(len(pairs))
        sum_roles = sparse.csr_array(
            (ones, (pairs % n, np.arange(len(pairs)))), shape=(n, len(pairs))
        )
        self.sum_roles: SparseMatrix = SparseMatrix.from_scipy(sum_roles, dtype, device)

    def aggregate(self, h: Tensor) -> Tensor:
        """a_l without its empty rows, (P, M, d)."""
        return (self.matrix @ h.flatten(1)).view(-1, *h.shape[1:])

    def moments(self, a: Tensor, uses: Tensor) -> Moments:
        """Moments of the rows, and of the zeros that are left out."""
        share = _shares(uses)[self.parents, :, None]
        blocks, shares = (torch.split(each, self.rows_per_role) for each in (a, share))
        mean = torch.stack([(rows * w).sum(0) for rows, w in zip(blocks, shares, strict=True)])
        present = torch.stack([w.sum(0) for w in shares])
        variance = torch.stack(
            [
                ((rows - center).square() * w).sum(0)
                for rows, center, w in zip(blocks, mean.unbind(), shares, strict=True)
            ]
        )
        # The rows that are left out are zero.
        return mean, variance + (1 - present) * mean.square()

    def linear(self, a: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        """Role by role, then summed over the roles of each parent."""
        blocks = torch.split(a, self.rows_per_role)
        mapped = torch.cat(
            [
                torch.bmm(rows.transpose(0, 1), block_weight)
                for rows, block_weight in zip(blocks, weight.unbind(), strict=True)
            ],
            dim=1,
        )
        x = self.sum_roles @ mapped.transpose(0, 1).flatten(1)
        return (x.view(-1, *bias.shape) + bias).transpose(0, 1)

    def part_uses(self, uses: Tensor) -> Tensor:
        """w_{l-1} = Σ_π R_{l,π}ᵀ w_l: how often each part is used, (n, M) to (m, M)."""
        return self.matrix.T @ uses[self.parents]


class ProjectFirst(Aggregation):
    """x = Σ_π R_{l,π} (H W_π) + b: the first layer is applied to the parts, which are fewer.

    `aggregate` returns H itself. The moments of a_l follow from those of the part counts, which
    `count_moments` computes once for given uses.
    """

    def __init__(self, relation: Relation, dtype: torch.dtype, device: torch.device) -> None:
        self.n_roles, self.n_parts = relation.n_roles, relation.n_parts
        roles, parts = relation.roles.astype(np.int64), relation.parts.astype(np.int64)
        shape = (relation.n_parents, self.n_roles * self.n_parts)
        rows = segment_ids(relation.indptr)
        columns = roles * self.n_parts + parts
        self.matrix: SparseMatrix = _matrix(relation, rows, columns, shape, dtype, device)
        self._count_moments: tuple[Tensor, Tensor] | None = None

    def aggregate(self, h: Tensor) -> Tensor:
        """H itself."""
        return h

    def moments(self, a: Tensor, uses: Tensor) -> Moments:
        """rᵀH and the squares of FH: see `count_moments`."""
        statistics = self.count_moments(uses)
        sums = torch.bmm(statistics.flatten(1, 2), a.transpose(0, 1))
        sums = sums.view(len(statistics), self.n_roles, 1 + self.n_parts, -1)
        variance = sums[:, :, 1:].square().sum(2)
        return sums[:, :, 0].transpose(0, 1), variance.transpose(0, 1)

    def linear(self, a: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        """Σ_π R_{l,π} (H W_π) + b."""
        mapped = torch.einsum("nmd,rmdo->rnmo", a, weight)
        x = self.matrix @ mapped.flatten(0, 1).flatten(1)
        return (x.view(-1, *bias.shape) + bias).transpose(0, 1)

    def count_moments(self, uses: Tensor) -> Tensor:
        """Moments of the part counts of the parents, (M, roles, 1 + m, m); the last are kept.

        The first row of a role is r, the mean count of each part in a parent; the other rows are
        F, where FᵀF = C is the covariance of the counts. So a_{l,π} has the mean rᵀH, and its
        variance is the column sum of the squares of FH. (HᵀCH would cancel the digits of small
        variances.) Training passes the same `uses` tensor in every epoch.
        """
        if self._count_moments is None or self._count_moments[0] is not uses:
            with torch.inference_mode(False):
                self._count_moments = (uses, self._compute_count_moments(uses))
        return self._count_moments[1]

    def _compute_count_moments(self, uses: Tensor) -> Tensor:
        k, m, n_models = self.n_roles, self.n_parts, uses.shape[1]
        counts = self.matrix.to_scipy()
        share = uses.double().cpu().numpy()
        share = share / np.maximum(share.sum(0), np.finfo(np.float64).tiny)
        mean = (counts.T @ share).reshape(k, 1, m, n_models)
        second = _second_moments(counts, k, share)
        covariance = (second - mean * mean.transpose(0, 2, 1, 3)).transpose(3, 0, 1, 2)
        eigenvalues, eigenvectors = np.linalg.eigh(covariance)
        roots = np.sqrt(np.maximum(eigenvalues, 0.0))
        out = np.empty((n_models, k, 1 + m, m))
        out[:, :, 0] = mean[:, 0].transpose(2, 0, 1)  # r
        out[:, :, 1:] = (eigenvectors * roots[:, :, None]).swapaxes(2, 3)  # F
        return torch.from_numpy(out).to(uses.device, uses.dtype)


def nonempty_pairs(relation: Relation) -> NDArray[np.bool_]:
    """Whether parent i has parts in role π, at π · n + i, shape (roles · n,)."""
    is_used = np.zeros(relation.n_roles * relation.n_parents, dtype=np.bool_)
    is_used[_pair_codes(relation)] = True
    return is_used


def entry_rows(relation: Relation) -> Ints:
    """The row of `NonEmptyRows` that every entry adds to, shape (entries,)."""
    rows: Ints = (np.cumsum(nonempty_pairs(relation)) - 1)[_pair_codes(relation)]
    return rows


def _pair_codes(relation: Relation) -> Ints:
    codes: Ints = relation.roles.astype(np.int64) * relation.n_parents
    return codes + segment_ids(relation.indptr)


def _matrix(
    relation: Relation,
    rows: Ints,
    columns: Ints,
    shape: tuple[int, int],
    dtype: torch.dtype,
    device: torch.device,
) -> SparseMatrix:
    """The counts of a relation's entries at these rows and columns."""
    values = relation.multiplicity.astype(np.float64)
    matrix = sparse.csr_array((values, (rows, columns.astype(np.int64))), shape=shape)
    return SparseMatrix.from_scipy(matrix, dtype, device)


def _second_moments(counts: sparse.csr_array, n_roles: int, share: Floats) -> Floats:
    """Σ_i share_i c_i c_iᵀ of the part counts c_i of parent i, per role: (roles, m, m, M).

    `counts` is (n, roles · m). Only pairs of parts of the same parent and role contribute.
    """
    n, m = counts.shape[0], counts.shape[1] // n_roles
    starts, columns = counts.indptr, counts.indices
    parents = segment_ids(starts)
    groups = parents * n_roles + columns // max(m, 1)  # (parent, role); entries are sorted by it
    sizes = np.bincount(groups, minlength=n * n_roles)
    group_starts = offsets(sizes)
    out = np.zeros((n_roles * m * m, share.shape[1]))
    for start, stop in row_blocks(offsets((sizes**2).reshape(n, n_roles).sum(1))):
        block = slice(starts[start], starts[stop])
        n_partners = sizes[groups[block]]
        first = np.repeat(np.arange(block.start, block.stop), n_partners)
        second = ranges(group_starts[groups[block]], n_partners)
        cells = columns[first].astype(np.int64) * m + columns[second] % m
        products = counts.data[first] * counts.data[second]
        shape = (len(out), stop - start)
        pairs = sparse.csr_array((products, (cells, parents[first] - start)), shape)
        out += pairs @ share[start:stop]
    return out.reshape(n_roles, m, m, share.shape[1])


def _shares(uses: Tensor) -> Tensor:
    return uses / uses.sum(0).clamp_min(torch.finfo(uses.dtype).tiny)


def weighted_moments(a: Tensor, uses: Tensor) -> Moments:
    """Mean and variance of a (n, roles, M, d) over n, weighted by `uses` (n, M)."""
    moments: Moments = _WeightedMoments.apply(a, uses)  # type: ignore[no-untyped-call]
    return moments


class _WeightedMoments(torch.autograd.Function):
    """Keeps nothing of the size of its input for the backward pass but the input."""

    @staticmethod
    def forward(ctx: Any, a: Tensor, uses: Tensor) -> Moments:
        share = _shares(uses)
        # Products and sums in the layout of `a`: an einsum would rewrite it model by model.
        scratch = a * share[:, None, :, None]
        mean = scratch.sum(0)
        deviation = torch.sub(a, mean, out=scratch)
        variance = deviation.square_().mul_(share[:, None, :, None]).sum(0)
        ctx.save_for_backward(a, share, mean)
        return mean, variance

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        a, share, mean = ctx.saved_tensors
        g_mean, g_variance = gradients
        # ∂variance/∂mean vanishes, since the weighted deviations sum to zero. What remains,
        # (2 (a - mean) g_variance + g_mean) share, is linear in a.
        slope = 2 * g_variance
        out = torch.addcmul(g_mean - slope * mean, a, slope)
        return out.mul_(share[:, None, :, None]), None


class RunningMoments(nn.Module):
    """Running mean and variance of a_l, (roles, M, d), as in batch normalization.

    Parents are weighted by how often the training examples of each model use them. Compressed and
    original objects therefore give the same moments, and no model's moments see its test examples.
    """

    mean: Tensor
    variance: Tensor
    started: Tensor
    momentum: float = 0.1
    epsilon: float = EPSILON

    def __init__(self, level: int, n_models: int, n_roles: int, width: int) -> None:
        super().__init__()
        self.level = level
        self.register_buffer("mean", torch.zeros(n_roles, n_models, width))
        self.register_buffer("variance", torch.ones(n_roles, n_models, width))
        self.register_buffer("started", torch.zeros(n_models, dtype=torch.bool))

    def forward(self, moments: Moments, uses: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and 1 / standard deviation of a batch; updates the running moments."""
        mean, variance = moments
        with torch.no_grad():
            self._update(mean, variance, active=uses.sum(0) > 0)
        return mean, (variance + self.epsilon).rsqrt()

    def running(self) -> tuple[Tensor, Tensor]:
        """Mean and 1 / standard deviation over the training so far, 0 for what was constant."""
        limit = max_constant_deviation(self.level, torch.finfo(self.mean.dtype).eps)
        varies = self.variance > (limit * self.mean).square()
        return self.mean, (self.variance + self.epsilon).rsqrt() * varies

    def _update(self, mean: Tensor, variance: Tensor, active: Tensor) -> None:
        """Move the running moments of the models that have examples in this batch."""
        # The first batch replaces the initial values 0 and 1, which would take long to forget.
        step = torch.full_like(mean[0, :, :1], self.momentum)
        step.masked_fill_(~self.started[:, None], 1.0).mul_(active[:, None])
        self.mean.lerp_(mean, step)
        self.variance.lerp_(variance, step)
        self.started.logical_or_(active)
