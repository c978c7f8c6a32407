"""Contributions of parts to a model over part counts: exact, since the model is a sum.

The entry (role π, part i, count n) of an example adds something: to a linear model, coefficient ×
feature value over the columns of (π, i); to a forest, the changes of value at the splits on them,
along the paths of the example. Its n occurrences share this equally. The example is compared with
the training examples, whose mean output is the baseline. What is left, -w·x̄ with their average x̄ in
a linear model and in a forest the splits on parts that the example does not have and on the number
of all, is shared equally by all parts that the model reads (those up to its depth). What a part
contributes is handed down to its own parts in equal shares, since the model tells whole parts apart
and not what is inside them.
"""

from __future__ import annotations

import numpy as np

from saen._util.arrays import Floats
from saen.data.compression import Compressed, compress
from saen.data.hierarchy import Hierarchy
from saen.errors import InputError
from saen.explanations.attribution import shared_equally
from saen.explanations.describe import DecomposedExample, Part
from saen.learning.part_counts import count_parts
from saen.learning.part_counts_models import PartCountsEstimator


def counts_outputs(
    model: PartCountsEstimator, compressed: Compressed, weights: Floats
) -> tuple[Floats, Floats, Floats]:
    """Outputs and baselines of the unique examples, (rows,), and what the top's entries add.

    An example without parts that the model reads is its own baseline.
    """
    _check_levels(model)
    table, fitted = count_parts(compressed, model.levels), model.model_
    outputs = fitted.outputs(table) @ weights
    typical = fitted.function.intercept if fitted.typical is None else fitted.typical
    baseline = float(weights @ typical)
    inside = table.ids[:, 0] <= table.last_place(fitted.depth)
    counts = np.where(inside[table.parts], table.counts, 0)
    sizes = table.sizes(fitted.depth)
    own = fitted.entry_outputs(table, weights)
    rest = outputs - baseline - np.bincount(table.rows, own, minlength=table.n_rows)
    own += counts * (rest / np.maximum(sizes, 1))[table.rows]
    entries = np.zeros(compressed.hierarchy.relations[-1].n_entries)
    entries[table.source] = own
    return outputs, np.where(sizes > 0, baseline, outputs), entries


def counts_contributions(
    model: PartCountsEstimator, hierarchy: Hierarchy, weights: Floats
) -> tuple[float, float, list[Floats], list[Floats]]:
    """Output and baseline, contributions of objects by level, and of entries by relation.

    The hierarchy is that of one example; levels and relations come bottom first.
    """
    compressed = compress(hierarchy)
    outputs, baselines, unique_entries = counts_outputs(model, compressed, weights)
    top, unique = hierarchy.relations[-1], compressed.hierarchy.relations[-1]
    per_occurrence = unique_entries / unique.multiplicity
    codes = unique.roles.astype(np.int64) * unique.n_parts + unique.parts
    order = np.argsort(codes)
    own = (
        top.roles.astype(np.int64) * unique.n_parts
        + compressed.unique_of(hierarchy.depth - 1)[top.parts]
    )
    places = order[np.searchsorted(codes, own, sorter=order)]
    entries = [per_occurrence[places] * top.multiplicity]
    objects = [np.array([outputs[0]]), np.bincount(top.parts, entries[0], minlength=top.n_parts)]
    for relation in reversed(hierarchy.relations[:-1]):
        shares = shared_equally(relation, objects[-1])
        entries.append(shares)
        objects.append(np.bincount(relation.parts, shares, minlength=relation.n_parts))
    return float(outputs[0]), float(baselines[0]), objects[::-1], entries[::-1]


def counts_parts(decomposed: DecomposedExample, contributions: Floats, k: int) -> tuple[Part, ...]:
    """The k strongest parts, with equal shares for the bottom objects inside them."""
    hierarchy = decomposed.hierarchy

    def inside(number: int) -> Floats:
        values = np.zeros_like(contributions)
        values[number] = contributions[number]
        for relation in reversed(hierarchy.relations[:-1]):
            shares = shared_equally(relation, values)
            below = np.bincount(relation.parts, shares, minlength=relation.n_parts)
            values = below.astype(np.float64)
        return values[decomposed.bottom_objects(hierarchy.depth - 1, number)]

    return decomposed.strongest_parts(hierarchy.depth - 1, contributions, k, inside)


def _check_levels(model: PartCountsEstimator) -> None:
    depth = model.schema_.depth
    if not isinstance(model.levels, str) and list(model.levels) != [depth - 1]:
        raise InputError("only counts of the level below the top are explained: levels='auto'")
