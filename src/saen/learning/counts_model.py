"""A fitted model over part counts: what is saved, predicts and can be explained."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from saen._util.arrays import Floats, Ints
from saen.errors import InputError
from saen.learning.forest import Forest
from saen.learning.part_counts import (
    Encoded,
    Encoder,
    PartTable,
    feature_rows,
    row_scales,
    scaled_rows,
)

EMBEDDING_WIDTH = 256
"""Columns of `embed` where there are more features."""


@dataclass(frozen=True, eq=False)
class Linear:
    """Outputs = features · coefᵀ + intercept: `coef` (outputs, columns), `intercept` (outputs,)."""

    coef: Floats
    intercept: Floats

    @property
    def n_outputs(self) -> int:
        """How many numbers there are per example."""
        return len(self.intercept)

    def check(self, n_columns: int) -> None:
        """Raise unless the arrays fit together and to so many columns."""
        if (
            self.intercept.ndim != 1
            or self.coef.shape != (self.n_outputs, n_columns)
            or any(each.dtype != np.float64 for each in (self.coef, self.intercept))
            or not all(np.isfinite(each).all() for each in (self.coef, self.intercept))
        ):
            raise InputError("the linear model does not match its columns")

    def scaled(self, factor: float) -> Linear:
        """With all outputs multiplied."""
        return Linear(self.coef * factor, self.intercept * factor)

    def outputs(self, X: sparse.csr_array) -> Floats:
        """Of every row of X (n, columns), (n, outputs)."""
        rows: Floats = X @ self.coef.T + self.intercept
        return rows

    def entry_outputs(
        self, X: sparse.csr_array, entries: tuple[Ints, Ints, Floats], weights: Floats
    ) -> Floats:
        """What entries (row, column, value) of X add to Σ weights · outputs."""
        _, columns, values = entries
        added: Floats = (weights @ self.coef)[columns] * values
        return added


@dataclass(frozen=True, eq=False)
class CountsModel:
    """A fitted model over encoded part counts.

    - `norm`: None, `l2`, or of a forest `SHARES`;
    - `function`: from features to outputs; calibrated, so that two classes have the log-odds of
      the second as the only output, several classes one logit each, and several targets the
      log-odds of their second classes;
    - `depth`, `C`: as given or chosen (a forest has no C); `score`: of the inner folds, None
      without any;
    - `errors` (m, outputs): absolute errors of numbers on the inner folds, NaN where unknown;
    - `typical` (outputs,): the mean output over the training examples, by weight, which is for a
      linear model that of the average of their features; None in models of older versions.
    """

    encoder: Encoder
    norm: str | None
    function: Linear | Forest
    depth: int | None
    C: float | None
    score: float | None
    errors: Floats | None = None
    typical: Floats | None = None

    @property
    def choices(self) -> dict[str, Any]:
        """The settings that were left open, as they were decided."""
        return {"depth": self.depth} if self.C is None else {"depth": self.depth, "C": self.C}

    def outputs(self, table: PartTable) -> Floats:
        """Of every unique example of a table, (rows, outputs)."""
        return self.function.outputs(self._features(self.encoder.encode(table), table))

    def entry_outputs(self, table: PartTable, weights: Floats) -> Floats:
        """What every entry of a table adds to Σ weights · outputs, (entries,)."""
        encoded = self.encoder.encode(table)
        rows = table.rows[encoded.entries]
        scales = row_scales(self.encoder, table, self.norm, self.depth)
        entries = (rows, encoded.columns, encoded.values * scales[rows])
        values = self.function.entry_outputs(self._features(encoded, table), entries, weights)
        return np.bincount(encoded.entries, values, minlength=len(table.parts)).astype(np.float64)

    def embedding(self, table: PartTable) -> Floats:
        """Dense features of the unique examples: as they are if few, else hashed, (rows, width).

        Without the number of all parts, which a forest reads, too: no other column would count.
        """
        n = self.encoder.n_columns
        features = self._features(self.encoder.encode(table), table)[:, :n]
        if n > EMBEDDING_WIDTH:
            rng = np.random.default_rng(n)
            places = rng.integers(EMBEDDING_WIDTH, size=n)
            signs = rng.choice([-1.0, 1.0], size=n)
            shape = (n, EMBEDDING_WIDTH)
            features = features @ sparse.csr_array((signs, (np.arange(n), places)), shape=shape)
        dense: Floats = features.toarray()
        return dense

    def _features(self, encoded: Encoded, table: PartTable) -> sparse.csr_array:
        rows = feature_rows(encoded, table, self.encoder.n_columns)
        return scaled_rows(rows, self.encoder, table, self.norm, self.depth)
