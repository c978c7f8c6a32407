"""Numbers that say how good predictions are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

SMALLEST = 1e-12
"""Probabilities below count as this much, so that losses stay finite."""


@dataclass(frozen=True)
class Calibration:
    """Predictions by confidence, in bins of equal width from 0 to 1.

    For every bin the mean confidence, the share of predictions that came true, and how many there
    are; shape (bins,) each. The first two are 0 where there are none.
    """

    confidence: NDArray[np.float64]
    accuracy: NDArray[np.float64]
    counts: NDArray[np.int64]

    @property
    def error(self) -> float:
        """The expected calibration error: the mean over predictions of their bin's gap."""
        gaps = np.abs(self.accuracy - self.confidence)
        return float(gaps @ self.counts / max(self.counts.sum(), 1))


def calibrate(targets: ArrayLike, probabilities: ArrayLike, bins: int = 10) -> Calibration:
    """How far the largest probability of each prediction can be believed.

    `targets` are codes of shape (…, n), `probabilities` of shape (…, n, classes); targets of shape
    (n,) serve predictions that were repeated.

    >>> round(calibrate([0, 1, 1], [[0.75, 0.25], [0.75, 0.25], [0.25, 0.75]]).error, 3)
    0.083
    """
    rows = np.asarray(probabilities, dtype=np.float64)
    confidence = rows.max(axis=-1)
    right = rows.argmax(axis=-1) == np.asarray(targets)
    into = np.minimum((confidence * bins).astype(np.int64), bins - 1).ravel()
    counts = np.bincount(into, minlength=bins)
    n = np.maximum(counts, 1)
    return Calibration(
        np.bincount(into, confidence.ravel(), bins) / n,
        np.bincount(into, right.ravel().astype(np.float64), bins) / n,
        counts,
    )


def confusion(targets: ArrayLike, predictions: ArrayLike, n_classes: int) -> NDArray[np.int64]:
    """How often each true class (row) was predicted as each class (column), shape (C, C).

    `predictions` are codes of shape (…, n), `targets` those of shape (n,).

    >>> confusion([0, 1, 1], [[0, 1, 0], [0, 1, 1]], 2)
    array([[2, 0],
           [1, 3]])
    """
    made = np.asarray(predictions)
    pairs = np.broadcast_to(targets, made.shape) * n_classes + made
    counts = np.bincount(pairs.ravel(), minlength=n_classes**2)
    return counts.reshape(n_classes, n_classes)


def log_losses(targets: ArrayLike, probabilities: ArrayLike) -> NDArray[np.float64]:
    """-log of the probability of the true class, the mean over repeats, shape (n,).

    `targets` are codes of shape (n,), `probabilities` of shape (repeats, n, classes).

    >>> log_losses([0, 1], [[[1.0, 0.0], [0.5, 0.5]]]).round(3).tolist()
    [0.0, 0.693]
    """
    rows = np.asarray(probabilities, dtype=np.float64)
    codes = np.broadcast_to(targets, rows.shape[:-1])[..., None]
    true = np.take_along_axis(rows, codes, axis=-1)[..., 0]
    losses: NDArray[np.float64] = -np.log(np.maximum(true, SMALLEST)).mean(axis=0) + 0.0
    return losses
