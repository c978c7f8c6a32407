"""Forests of decision trees over part counts, as arrays.

scikit-learn grows the trees; outputs, and what each column adds to them, are computed here from
arrays that are saved as they are. A tree adds to the outputs the value of the leaf that an example
reaches. On the way there, every split changes the value from that of a node to that of its child:
added up by the column that is split on, these changes and the values of the roots are the output.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse

from saen._util.arrays import Array, Floats, Ints
from saen.errors import InputError

N_TREES = 100
MIN_LEAF = 2
"""Training examples in a leaf, at least: single ones make probabilities of small sets too sure."""
MAX_COLUMNS = 300
"""Columns that a forest reads: those that most training examples have."""
MAX_PATHS = 1 << 20
"""Pairs of an example and a tree that are followed at once."""


@dataclass(frozen=True, eq=False)
class Forest:
    """Trees over columns of features: outputs = intercept + Σ over trees of the leaf's value.

    - `roots`, `targets` (trees,): the first node of every tree, and the first output it adds to;
    - `children` (nodes, 2): where x ≤ threshold, and where not; a leaf has itself;
    - `column`, `threshold` (nodes,): what is compared, 0 in a leaf;
    - `value` (nodes, width): what a leaf adds, and other nodes' mean over training examples;
    - `intercept` (outputs,).
    """

    name: ClassVar[str] = "forest"

    roots: Ints
    targets: Ints
    children: Ints
    column: Ints
    threshold: Floats
    value: Floats
    intercept: Floats

    @staticmethod
    def constant(intercept: Floats, width: int = 1) -> Forest:
        """Without trees: every example has the same outputs."""
        none = np.zeros(0, dtype=np.int32)
        return Forest(
            none, none, none.reshape(0, 2), none, np.zeros(0), np.zeros((0, width)), intercept
        )

    @staticmethod
    def of(trees: Sequence[Any], columns: Ints) -> Forest:
        """The mean of scikit-learn's trees, which are over some columns."""
        starts = np.cumsum([0, *(tree.node_count for tree in trees)])
        own = np.arange(starts[-1])
        left, right, column, threshold = (
            np.concatenate([getattr(tree, name) for tree in trees])
            for name in ("children_left", "children_right", "feature", "threshold")
        )
        value = np.concatenate([tree.value[:, :, 0] for tree in trees])
        leaf, shift = left < 0, np.repeat(starts[:-1], np.diff(starts))
        children = np.stack([np.where(leaf, own, each + shift) for each in (left, right)], axis=1)
        return Forest(
            starts[:-1].astype(np.int32),
            np.zeros(len(trees), dtype=np.int32),
            children.astype(np.int32),
            np.where(leaf, 0, columns[np.maximum(column, 0)]).astype(np.int32),
            np.where(leaf, 0.0, threshold),
            value / len(trees),
            np.zeros(value.shape[1]),
        )

    @staticmethod
    def joined(forests: Sequence[Forest]) -> Forest:
        """One forest with the outputs of several, side by side."""
        nodes = np.cumsum([0, *(len(each.value) for each in forests)])
        outputs = np.cumsum([0, *(len(each.intercept) for each in forests)])
        shifts = {"roots": nodes, "children": nodes, "targets": outputs}
        arrays = {
            f.name: np.concatenate(
                [
                    getattr(each, f.name) + np.int32(shifts[f.name][i] if f.name in shifts else 0)
                    for i, each in enumerate(forests)
                ]
            )
            for f in fields(Forest)
        }
        return Forest(**arrays)

    def check(self, n_columns: int) -> None:
        """Raise unless every path ends, inside the arrays: children stand after their parents."""
        n, numbers = len(self.value), (self.threshold, self.value, self.intercept)
        indices = (self.roots, self.targets, self.children, self.column)
        own = np.arange(n)[:, None]
        if (
            any(each.dtype.kind != "i" for each in indices)
            or any(each.dtype != np.float64 or not np.isfinite(each).all() for each in numbers)
            or (self.roots.ndim, self.value.ndim, self.intercept.ndim) != (1, 2, 1)
            or self.targets.shape != self.roots.shape
            or self.children.shape != (n, 2)
            or not self.column.shape == self.threshold.shape == (n,)
            or _outside(self.roots, n)
            or (n > 0 and (self.roots[0] != 0 or (np.diff(self.roots) < 1).any()))
            or _outside(self.targets, len(self.intercept) - self.value.shape[1] + 1)
            or (self.children >= n).any()
            or (self.children < own).any()
            or ((self.children == own).any(axis=1) != (self.children == own).all(axis=1)).any()
            or _outside(self.column, n_columns)
        ):
            raise InputError("the trees of the forest are wrong")

    @property
    def n_outputs(self) -> int:
        """How many numbers there are per example."""
        return len(self.intercept)

    def scaled(self, factor: float) -> Self:
        """With all outputs multiplied."""
        arrays = {f.name: getattr(self, f.name) for f in fields(self)}
        arrays |= {"value": self.value * factor, "intercept": self.intercept * factor}
        return type(self)(**arrays)

    def with_columns_scaled(self, factors: Floats) -> Forest:
        """Trees compare features as they are: all factors are 1."""
        return self

    def outputs(self, X: sparse.csr_array) -> Floats:
        """Of every row of X (n, columns), (n, outputs)."""
        out = np.tile(self.intercept, (X.shape[0], 1))
        width = self.value.shape[1]
        for rows, x in self._blocks(X):
            *_, (_, at) = self._steps(x)
            for first in np.unique(self.targets).tolist():
                leaves = self.value[at[:, self.targets == first]]
                out[rows, first : first + width] += leaves.sum(axis=1)
        return out

    def entry_outputs(
        self, X: sparse.csr_array, entries: tuple[Ints, Ints, Floats], weights: Floats
    ) -> Floats:
        """What entries (row, column, value) of X add to Σ weights · outputs.

        Columns that are 0 add something too, as do the roots: both have no entry.
        """
        width, (columns, place) = self.value.shape[1], self._columns
        tree = np.searchsorted(self.roots, np.arange(len(self.value)), side="right") - 1
        own = weights[self.targets[tree][:, None] + np.arange(width)]
        value = (self.value * own).sum(axis=1)
        added = np.zeros((X.shape[0], len(columns) + 1))  # the last: columns that no tree looks at
        for block, x in self._blocks(X):
            total = added[block].ravel()
            first = np.arange(len(x))[:, None] * added.shape[1]
            for at, then in self._steps(x):
                changes = (value[then] - value[at]).ravel()
                total += np.bincount((first + place[at]).ravel(), changes, minlength=len(total))
            added[block] = total.reshape(len(x), -1)
        found = np.full(X.shape[1], len(columns))
        found[columns] = np.arange(len(columns))
        values: Floats = added[entries[0], found[entries[1]]]
        return values

    @cached_property
    def _columns(self) -> tuple[Ints, Ints]:
        """The columns that are looked at, and for every node its place among them."""
        columns, places = np.unique(self.column, return_inverse=True)
        return columns, places

    def _blocks(self, X: sparse.csr_array) -> Iterator[tuple[slice, Array]]:
        """Rows, and their columns that are looked at, in the precision of scikit-learn's trees."""
        columns, _ = self._columns
        if len(columns):
            size = max(1, MAX_PATHS // max(len(self.roots), len(columns)))
            for first in range(0, X.shape[0], size):
                rows = slice(first, min(first + size, X.shape[0]))
                yield rows, X[rows][:, columns].toarray().astype(np.float32)

    def _steps(self, x: Array) -> Iterator[tuple[Ints, Ints]]:
        """The nodes (rows, trees) of all paths before and after every step; the last stays."""
        _, place = self._columns
        rows = np.arange(len(x))[:, None]
        at, then = None, np.broadcast_to(self.roots, (len(x), len(self.roots)))
        while at is None or not np.array_equal(then, at):
            at = then
            right = x[rows, place[at]] > self.threshold[at]
            then = self.children[at, right.astype(np.int8)]
            yield at, then


def _outside(indices: Ints, n: int) -> bool:
    return len(indices) > 0 and bool(indices.min() < 0 or indices.max() >= n)


# -- growing -----------------------------------------------------------------------------------


def grow_classes(X: sparse.csr_array, y: Array, weights: Floats, n_classes: int) -> Forest:
    """Outputs that grow with the shares of the classes in the leaves: about the logits.

    The log-odds of a share p are about 4 (p - 1/2) around p = 1/2; of C classes, logits are about
    C p around p = 1/C. Calibration does the rest.
    """
    if n_classes == 2:
        return _grow(X, 4 * y[:, None] - 2.0, weights, "sqrt")
    return _grow(X, n_classes * np.eye(n_classes)[y], weights, "sqrt")


def grow_numbers(X: sparse.csr_array, y: Floats, weights: Floats) -> Forest:
    """The means of the leaves for numbers (n,)."""
    return _grow(X, y[:, None], weights, 1 / 3)


def _grow(X: sparse.csr_array, y: Floats, weights: Floats, max_features: float | str) -> Forest:
    """Trees that lower the squared error of y (n, width): of classes, this is the Gini impurity."""
    from sklearn.ensemble import RandomForestRegressor  # slow to import

    frequency = np.bincount(X.indices, minlength=X.shape[1])
    columns = np.sort(np.argsort(-frequency, kind="stable")[:MAX_COLUMNS])
    forest = RandomForestRegressor(
        N_TREES, min_samples_leaf=MIN_LEAF, max_features=max_features, random_state=0
    )
    forest.fit(X[:, columns].toarray(), y[:, 0] if y.shape[1] == 1 else y, sample_weight=weights)
    return Forest.of([each.tree_ for each in forest.estimators_], columns)
