"""Numbers about whole examples: where they come from, and how models read them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from saen._util.arrays import Array, Floats, Ints
from saen.errors import InputError

GIVEN = "given"
"""The features that the data have."""
RDKIT = "rdkit"
"""These, and the descriptors of molecules."""
TAIL = 0.005
"""The share of training examples at either end whose numbers are cut to those of the others."""


@dataclass(frozen=True, eq=False)
class Features:
    """Numbers about examples, (n, k), NaN where unknown, their names, and where they are from."""

    names: tuple[str, ...]
    values: Floats
    source: str = GIVEN

    def named(self, names: tuple[str, ...]) -> Floats:
        """The columns of these names; `InputError` for the first that there is not."""
        if names == self.names:
            return self.values
        lacking = [name for name in names if name not in self.names]
        if lacking:
            raise InputError(
                f"the model reads the feature {lacking[0]!r}, which the data do not have: name "
                "their features as for the training"
            )
        places: Floats = self.values[:, [self.names.index(name) for name in names]]
        return places


def with_features(same: Ints, values: Floats | None) -> Ints:
    """Equal numbers for examples that have equal ones in `same`, and equal features, (n,).

    >>> with_features(np.array([0, 0, 0]), np.array([[1.0], [np.nan], [1.0]])).tolist()
    [0, 1, 0]
    """
    if values is None:
        return same
    rows = np.column_stack([same, np.where(np.isnan(values), np.nan, values).view(np.int64)])
    return np.unique(rows, axis=0, return_inverse=True)[1].reshape(-1)


@dataclass(frozen=True, eq=False)
class FeatureReader:
    """How a model reads features: as the training examples say, one number each, (k,).

    Unknown numbers are taken for the `middle` (median), others are cut to `low` and `high`, then
    `mean` is subtracted and the rest multiplied by `scale`, so that all columns together have
    length 1 on average. What hardly ever differs is multiplied by 0.
    """

    source: str
    names: tuple[str, ...]
    middle: Floats
    low: Floats
    high: Floats
    mean: Floats
    scale: Floats

    @staticmethod
    def fit(features: Features) -> FeatureReader:
        """By the features of training examples.

        >>> values = np.array([[1.0, 5], [np.nan, 5], [2, 5], [3, 5]])
        >>> known = Features(("pH", "constant"), values)
        >>> FeatureReader.fit(known).read(values)[:, 0].round(2).tolist()
        [-1.41, 0.0, 0.0, 1.41]
        """
        values = np.where(np.isnan(features.values), np.nan, features.values)
        k = values.shape[1]
        middle, low, high = np.zeros(k), np.zeros(k), np.zeros(k)
        known = np.flatnonzero(~np.isnan(values).all(axis=0))
        # Of two values in the data, and not in between, which infinities do not allow.
        if len(known):
            low[known], middle[known], high[known] = np.nanquantile(
                values[:, known], [TAIL, 0.5, 1 - TAIL], axis=0, method="closest_observation"
            )
        largest = np.finfo(np.float32).max
        low, middle, high = (np.clip(each, -largest, largest) for each in (low, middle, high))
        filled = np.clip(np.where(np.isnan(values), middle, values), low, high)
        mean, spread = filled.mean(axis=0), filled.std(axis=0)
        differ = spread > 1e-9 * np.maximum(np.abs(mean), 1e-30)
        n = max(int(differ.sum()), 1)
        scale = np.where(differ, 1 / np.where(differ, spread, 1.0), 0.0) / np.sqrt(n)
        return FeatureReader(features.source, features.names, middle, low, high, mean, scale)

    def read(self, values: Floats) -> Floats:
        """The numbers as models read them, (n, k)."""
        filled = np.clip(np.where(np.isnan(values), self.middle, values), self.low, self.high)
        read: Floats = (filled - self.mean) * self.scale
        return read

    def pack(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """As JSON and arrays."""
        columns = [self.middle, self.low, self.high, self.mean, self.scale]
        document = {"source": self.source, "names": list(self.names)}
        return document, {"features": np.stack(columns)}

    @staticmethod
    def unpack(document: Mapping[str, Any], numbers: Array) -> FeatureReader:
        """The inverse of `pack`, checked."""
        names = tuple(map(str, document["names"]))
        if numbers.shape != (5, len(names)) or not np.isfinite(numbers).all():
            raise InputError("the features of the model are wrong")
        return FeatureReader(str(document["source"]), names, *numbers.astype(np.float64))
