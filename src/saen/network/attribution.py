"""Contributions: integrated gradients of a network's output, from the top level down.

f_L is the output that is explained as a function of an example's aggregate a_L. It is compared with
a reference r: the mean aggregate of the training examples, or nothing at all (r = 0) where the
network does not know it. Along the straight line between them,

    G = ∫₀¹ ∇f_L(r + t·(a_L - r)) dt,    f_L(a_L) = f_L(r) + ⟨G, a_L - r⟩.

Since a_L = Σ n·(z_π ⊗ h_i) over the entries (role π, part i, count n) of the example, an entry
adds n·⟨G_π, h_i⟩. What the reference has instead, -⟨G_π, r_π⟩, is shared equally by the parts in
that role (by all parts, for roles that the example lacks). So a part counts as evidence only as far
as it differs from the average, and all of them add up to f_L(a_L) - f_L(r). Part i receives the
linear function h ↦ ⟨g_i, h⟩ with g_i = Σ n·G_π over its entries, and contributes
c_i = ⟨g_i, h_i⟩ + s_i with its share s_i. It hands this down in a similar way: with h_i = f_l(a_i),

    G_i = ∫₀¹ ∇⟨g_i, f_l(t·a_i)⟩ dt,    ⟨g_i, h_i⟩ = ⟨g_i, f_l(0)⟩ + Σ n·⟨G_{i,π}, h_j⟩.

What the object would contribute without parts, e_i = ⟨g_i, f_l(0)⟩ + s_i, belongs to none of them;
its N_i = Σ n parts share it equally, and s_j = Σ n·e_i / N_i is what part j gets of it from above
(the parts of the example, whose own e is the baseline, have their share of the reference instead).
So an entry contributes

    n·⟨G_{i,π}, h_j⟩ + n·e_i / N_i,

a part c_j = ⟨g_j, h_j⟩ + s_j, the sum over its entries, and c_i is the sum over the parts of i.
Objects without parts keep what they contribute.

Outside training, f_l consists of affine maps (normalization included) and Leaky ReLUs: along the
line the first layer sees b + t·u with u = W a, and the mean slope of an activation between two
points is that of its chord. The integral is a sum over steps with the chords of every layer. Such a
sum is complete for any number of steps, and exact where no step has kinks of more than one
layer; steps are doubled until the contributions have settled.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from saen._util.arrays import Floats, Ints
from saen.data.hierarchy import Hierarchy, Relation
from saen.errors import InputError
from saen.network.aggregation import NonEmptyRows, entry_rows
from saen.network.model import SAEN, LaterLayers

TOLERANCE = 0.01
"""Share of a level's contributions that may still move when the number of steps is doubled."""
MAX_STEPS = 1 << 10
_BLOCK = 1 << 22  # numbers gathered at a time for the contributions of entries


@dataclass(frozen=True)
class Contributions:
    """The contributions on one level.

    - `objects`: c_i of every object, (n_l,); `empty`: e_i, (n_l,), on the bottom the same;
    - `entries`: of every entry of R_l, (entries,), none on the bottom;
    - `gradients`: g_i of every object, (n_l, M, d_l);
    - `steps`: of the integrals.
    """

    objects: Floats
    empty: Floats
    entries: Floats
    gradients: Tensor
    steps: int


@dataclass(frozen=True)
class Passed:
    """A network over a hierarchy, with the representations h_l of all objects, bottom first.

    The hierarchy may end below the network's top: see `parts`.
    """

    network: SAEN
    hierarchy: Hierarchy
    h: tuple[Tensor, ...]

    @staticmethod
    @torch.no_grad()
    def through(network: SAEN, hierarchy: Hierarchy) -> Passed:
        """The way up, outside training; the network is of float64 and on the CPU."""
        network.eval()
        tensors = network.to_tensors(hierarchy)
        lower = [network(tensors, level=level) for level in range(hierarchy.depth)]
        return Passed(network, hierarchy, (*lower, network(tensors)))

    def parts(self, groups: Sequence[Ints]) -> tuple[Passed, list[int]]:
        """The same for groups of parts of the top alone, and how many bottom objects each has.

        What several groups are made of is there once for each of them.
        """
        lower = Hierarchy(
            self.hierarchy.attributes, self.hierarchy.relations[:-1], self.hierarchy.names[:-1]
        )
        ids = [list(groups)]
        for relation in reversed(lower.relations):
            ids.append([relation.parts_of(own) for own in ids[-1]])
        h = [self.h[level][_longs(np.concatenate(own))] for level, own in enumerate(reversed(ids))]
        apart = Hierarchy.concatenate([lower[own] for own in groups])
        return Passed(self.network, apart, tuple(h)), [len(own) for own in ids[-1]]

    @torch.no_grad()
    def contributions(
        self, gradients: Tensor, shares: Floats | None = None
    ) -> Iterator[Contributions]:
        """Level by level from the top, whose objects receive g, (n_L, M, d_L).

        The top is compared with the reference; with `shares`, (n_L,), it is taken for parts of a
        larger example that received these, and hands them down.
        """
        g, whole = gradients, shares is None
        shares = np.zeros(len(self.hierarchy)) if shares is None else shares
        for level in range(self.hierarchy.depth, 0, -1):
            top = whole and level == self.hierarchy.depth
            contributions, g, shares = self._handed_down(level, g, shares, top)
            yield contributions
        objects = _inner(g, self.h[0]) + shares
        yield Contributions(objects, objects, np.empty(0), g, 1)

    def _handed_down(
        self, level: int, g: Tensor, shares: Floats, top: bool
    ) -> tuple[Contributions, Tensor, Floats]:
        """What is found on a level, and g_j and s_j for the one below, (n, M, d) and (n,)."""
        module, relation = self.network.level(level), self.hierarchy.relations[level - 1]
        weight, bias = module.first_layer()
        typical = module.typical() if top else None
        if typical is None:
            typical = torch.zeros_like(weight[..., 0])
        reference = torch.einsum("rmd,rmdo->rmo", typical, weight)  # W_π r_π
        bias = bias + reference.sum(0)
        below = self.h[level - 1].detach().requires_grad_()
        aggregation = NonEmptyRows(relation, below.dtype, below.device)
        with torch.enable_grad():
            a = aggregation.aggregate(below)
            u = aggregation.linear(a, weight, -reference.sum(0))
        q, steps = _settled(module.layers, bias[:, None], u.detach(), g.transpose(0, 1))
        # G = W_πᵀ q of every (role, parent), and g_j = Σ n·G_π of every part
        G, g_below = torch.autograd.grad(u, (a, below), q)
        nothing = module.layers(bias[:, None], None)[:, 0]  # f_l(r), (M, d_l)
        empty = _inner(g, nothing) + shares
        objects = _inner(g, self.h[level]) + shares
        if top:
            instead = torch.einsum("mno,rmo->nr", q, reference).numpy()  # ⟨G_π, r_π⟩
            shared = -_shared_by_role(relation, instead)
            empty = np.where(np.diff(relation.indptr) == 0, objects, empty)
        else:
            shared = relation.shared(empty)
        entries = _entry_products(G, self.h[level - 1], relation) + shared
        handed = np.bincount(relation.parts, shared, minlength=relation.n_parts)
        contributions = Contributions(objects, empty, entries, g, steps)
        return contributions, g_below, handed.astype(np.float64)


def _shared_by_role(relation: Relation, values: Floats) -> Floats:
    """Values of every (parent, role), shared by its parts, (entries,); none is lost.

    The values of roles that a parent lacks are shared by all of its parts.
    """
    parents, counts = relation.parents, relation.multiplicity
    codes = parents * relation.n_roles + relation.roles.astype(np.int64)
    sizes = np.bincount(codes, counts, minlength=values.size).reshape(values.shape)
    per_part = values / np.maximum(sizes, 1)
    lacking = np.where(sizes == 0, values, 0.0).sum(axis=1)
    shares: Floats = counts * per_part.ravel()[codes]
    return shares + relation.shared(lacking)


def _entry_products(G: Tensor, h: Tensor, relation: Relation) -> Floats:
    """n·⟨G_π, h_j⟩ of every entry, (entries,)."""
    pairs, parts = _longs(entry_rows(relation)), _longs(relation.parts)
    out = np.empty(len(pairs))
    size = max(_BLOCK // (G.shape[1] * G.shape[2]), 1)
    for start in range(0, len(out), size):
        block = slice(start, start + size)
        out[block] = _inner(G[pairs[block]], h[parts[block]])
    return out * relation.multiplicity


def _settled(layers: LaterLayers, bias: Tensor, u: Tensor, g: Tensor) -> tuple[Tensor, int]:
    """∫₀¹ ∂⟨g, f(b + t·u)⟩/∂u dt, (M, n, out), in steps enough, and their number."""
    steps, integral = 1, _integral(layers, bias, u, g, 1)
    while steps < MAX_STEPS:
        finer = _integral(layers, bias, u, g, 2 * steps)
        moved = ((finer - integral) * u).abs().sum()
        steps, integral = 2 * steps, finer
        if moved <= TOLERANCE * (finer * u).abs().sum():
            return integral, steps
    raise InputError(
        f"the contributions did not converge within {MAX_STEPS} steps: are all weights finite?"
    )


def _integral(layers: LaterLayers, bias: Tensor, u: Tensor, g: Tensor, steps: int) -> Tensor:
    """The integral as a sum over steps, with the chord of every activation within each."""
    total = torch.zeros_like(u)
    before = _preactivations(layers, bias.expand_as(u))
    for step in range(1, steps + 1):
        after = _preactivations(layers, bias + (step / steps) * u)
        slopes = [_chord(x, y, layers.slope) for x, y in zip(before, after, strict=True)]
        back = g if layers.ends_linear else g * slopes[-1]
        for layer in reversed(range(len(layers.weights))):
            back = torch.bmm(back, layers.weights[layer].transpose(1, 2)) * slopes[layer]
        total += back
        before = after
    return total / steps


def _preactivations(layers: LaterLayers, x: Tensor) -> list[Tensor]:
    """What every layer of the level gives before its activation, the first layer's first."""
    out = [x]
    for weight, bias in zip(layers.weights, layers.biases, strict=True):
        x = torch.baddbmm(bias[:, None], torch.nn.functional.leaky_relu(x, layers.slope), weight)
        out.append(x)
    return out


def _chord(x: Tensor, y: Tensor, slope: float) -> Tensor:
    """The slope of the Leaky ReLU's chord between x and y; its own slope where they are equal."""
    run = y - x
    flat = run == 0
    share = torch.where(flat, (y > 0).to(y), (y.relu() - x.relu()) / run.masked_fill(flat, 1.0))
    return slope + (1 - slope) * share


def _inner(g: Tensor, h: Tensor) -> Floats:
    """⟨g_i, h_i⟩ of every object, (n,)."""
    numbers: Floats = (g * h).sum(dim=(1, 2)).numpy()
    return numbers


def _longs(values: Ints) -> Tensor:
    return torch.from_numpy(values.astype(np.int64))
