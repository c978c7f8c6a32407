"""Real numbers as labels: bins by quantiles, clusters of vectors by k-means, both fitted once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from saen._util.arrays import Array
from saen.errors import InputError

MAX_BINS = 1000
MAX_FITTED = 50_000
"""Rows, evenly spaced, that clusters are fitted on."""
BLOCK = 1 << 16
"""Rows whose distances to all centres are computed at once."""


@dataclass(frozen=True)
class Bins:
    """Which label each row of real numbers gets, shape (n, k).

    - `edges` (bins - 1,): one number falls between two of them, in increasing order; or
    - `centres` (bins, k), of numbers divided by `scale` (k,): the label is that of the nearest.

    >>> bins = Bins.fit(np.array([[0.0], [1.0], [2.0], [3.0]]), 2)
    >>> bins.encode(np.array([[-5.0], [1.4], [9.0]])).tolist(), bins.describe(1)
    ([0, 0, 1], '≥ 1.5')
    """

    edges: tuple[float, ...] = ()
    scale: tuple[float, ...] = ()
    centres: tuple[tuple[float, ...], ...] = ()

    @classmethod
    def fit(cls, values: Array, number: int) -> Self:
        """At most so many bins: by quantiles of one number, by k-means of several, standardised."""
        rows = np.asarray(values, dtype=np.float64)
        if rows.shape[1] == 1:
            shares = np.arange(1, number) / number
            edges = np.quantile(rows[:, 0], shares) if len(rows) else np.zeros(0)
            return cls(edges=tuple(np.unique(edges).tolist()))
        rows = rows[:: -(-len(rows) // MAX_FITTED) or 1]
        deviation = rows.std(axis=0) if len(rows) else np.ones(rows.shape[1])
        scale = np.where(deviation > 0, deviation, 1.0)
        distinct = np.unique(rows / scale, axis=0)
        if len(distinct) <= number:
            centres = distinct
        else:
            from sklearn.cluster import KMeans  # slow to import, and seldom needed

            centres = KMeans(number, n_init=1, random_state=0).fit(rows / scale).cluster_centers_
        return cls(scale=tuple(scale.tolist()), centres=tuple(map(tuple, centres.tolist())))

    def encode(self, values: Array) -> NDArray[np.int64]:
        """The label of every row, shape (n,)."""
        rows = np.asarray(values, dtype=np.float64)
        width = len(self.scale) or 1
        if rows.shape[1] != width:
            raise InputError(f"bins of {width} attributes, but there are {rows.shape[1]}")
        if not self.scale:
            return np.searchsorted(np.array(self.edges), rows[:, 0], side="right")
        centres, out = np.array(self.centres), np.zeros(len(rows), dtype=np.int64)
        if len(centres):
            squares = (centres**2).sum(axis=1)
            for first in range(0, len(rows), BLOCK):
                block = rows[first : first + BLOCK] / np.array(self.scale)
                out[first : first + BLOCK] = (squares - 2 * block @ centres.T).argmin(axis=1)
        return out

    def describe(self, label: int) -> str:
        """The numbers that a label stands for."""
        if self.scale:
            return f"cluster {label}"
        texts = [f"{edge:.4g}" for edge in self.edges]
        if len({*texts}) < len(texts):
            texts = [repr(edge) for edge in self.edges]
        if not texts:
            return "any"
        if label == 0:
            return f"< {texts[0]}"
        low, *high = texts[label - 1 : label + 1]
        return f"{low} to {high[0]}" if high else f"≥ {low}"

    def to_json(self) -> dict[str, Any]:
        """The numbers, for files."""
        return {"edges": self.edges, "scale": self.scale, "centres": self.centres}

    @classmethod
    def from_json(cls, document: Any) -> Self:
        """The inverse of `to_json`; raises `InputError` for numbers that do not fit together."""
        edges, scale = (tuple(map(float, document[key])) for key in ("edges", "scale"))
        centres = tuple(tuple(map(float, row)) for row in document["centres"])
        if (
            not np.isfinite([*edges, *scale, *(x for row in centres for x in row)]).all()
            or list(edges) != sorted(set(edges))
            or any(each <= 0 for each in scale)
            or any(len(row) != len(scale) for row in centres)
            or len(edges) >= MAX_BINS
            or len(centres) > MAX_BINS
        ):
            raise InputError("the bins of attributes are wrong")
        return cls(edges, scale, centres)
