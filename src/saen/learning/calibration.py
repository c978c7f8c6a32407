"""Calibrated probabilities and intervals, from predictions of held-out examples.

Models are too sure of themselves on examples that they have not seen. Their predictions for the
held-out examples of inner folds show how much: a single temperature corrects probabilities (Guo et
al., 2017), and the errors of numbers give intervals (conformal prediction).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, log_expit, log_softmax, softmax

from saen._util.arrays import Array, Floats
from saen.errors import InputError

COVERAGE = 0.9
"""Of the intervals of predicted numbers, unless told otherwise."""


def probabilities(logits: Floats, *, several: bool = False) -> Floats:
    """Class probabilities from the outputs of networks, (…, 1 or C) to (…, C).

    Of `several` targets with two classes each, the probabilities of the second classes, (…, t).
    """
    if several:
        positive: Floats = expit(logits)
        return positive
    if logits.shape[-1] == 1:
        positive = expit(logits)
        return np.concatenate([1 - positive, positive], axis=-1)
    result: Floats = softmax(logits, axis=-1)
    return result


def log_probabilities(logits: Floats) -> Floats:
    """Logarithms of class probabilities, (…, 1 or C) to (…, C)."""
    if logits.shape[-1] == 1:
        return np.concatenate([log_expit(-logits), log_expit(logits)], axis=-1)
    rows: Floats = log_softmax(logits, axis=-1)
    return rows


def logits_of(proba: Floats, *, several: bool = False) -> Floats:
    """Logits with these probabilities, the inverse of `probabilities`."""
    tiny = np.finfo(np.float64).tiny
    logarithms: Floats = np.log(np.maximum(proba, tiny))
    if several:
        return logarithms - np.log(np.maximum(1 - proba, tiny))
    return logarithms[..., 1:] - logarithms[..., :1] if proba.shape[-1] == 2 else logarithms


def fit_temperature(logits: Floats, codes: Array, weights: Floats) -> tuple[float, float]:
    """The temperature T for which logits / T make held-out classes most likely, and the log loss.

    - `logits` (n, 1 or C), `codes` (n,): outputs and true classes of held-out examples;
    - `weights` (n,): how much each example counts.

    A temperature far from 1 needs evidence: the square of its logarithm, divided by n, is added to
    the mean log loss. Classes that are all right would ask for a temperature of 0.

    >>> sure = np.array([[4.0], [4.0], [4.0], [4.0]] * 25)
    >>> bool(fit_temperature(sure, np.array([1, 1, 1, 0] * 25), np.ones(100))[0] > 3)
    True
    """
    from scipy.optimize import minimize_scalar  # slow to import

    def loss(logarithm: float) -> float:
        rows = log_probabilities(logits * np.exp(-logarithm))
        likelihood = np.average(rows[np.arange(len(codes)), codes], weights=weights)
        return -float(likelihood) + logarithm**2 / len(codes)

    best = minimize_scalar(loss, bounds=(-4, 3), method="bounded", options={"xatol": 1e-2})
    return float(np.exp(best.x)), float(best.fun)


def temperature_of(proba: Floats, codes: Array, weights: Floats | None = None) -> float:
    """The temperature for held-out probabilities, (n, C), or (n, t) of several targets.

    `codes` are (n,), or (n, t) with -1 where a target is unknown; all targets share a temperature.
    """
    logits, weights = logits_of(proba), np.ones(len(codes)) if weights is None else weights
    if codes.ndim == 2:
        example, target = np.nonzero(codes >= 0)
        logits = logits_of(proba[example, target], several=True)[:, None]
        codes, weights = codes[example, target], weights[example]
    return fit_temperature(logits, codes, weights)[0] if weights.any() else 1.0


def tempered(proba: Floats, temperature: float, *, several: bool = False) -> Floats:
    """Probabilities at a temperature; above 1 they are less sure. The order of classes stays.

    >>> tempered(np.array([[0.2, 0.8]]), 2.0).round(3).tolist()
    [[0.333, 0.667]]
    """
    if temperature == 1:
        return proba
    return probabilities(logits_of(proba, several=several) / temperature, several=several)


@dataclass(frozen=True, eq=False)
class Calibration:
    """What predictions for held-out examples tell about predictions for new ones.

    - `temperature`: by which the logits of probabilities are divided;
    - `errors` (m,) or (m, k): absolute errors of held-out numbers, NaN where unknown;
    - `spreads`, of the same shape: how far the members of a blend were apart there, None of others.
    """

    temperature: float = 1.0
    errors: Floats | None = None
    spreads: Floats | None = None

    def apply(self, predictions: Floats, *, several: bool = False) -> Floats:
        """Calibrated probabilities; numbers stay as they are."""
        return tempered(predictions, self.temperature, several=several)

    def radius(self, spread: Floats | None = None, coverage: float = COVERAGE) -> Floats | None:
        """The radius of intervals around numbers, () or (k,), None where no error is known.

        With the `spread` of members over new examples, (n,) or (n, k), the radius is one for each:
        errors are measured in units of the spread, and of its median, which is added to it
        (normalised conformal prediction).
        """
        if self.errors is None or not len(self.errors):
            return None
        if self.spreads is None or spread is None:
            return np.asarray(interval_radius(self.errors, coverage))
        usual = np.median(self.spreads, axis=0)
        usual = np.where(usual > 0, usual, np.maximum(self.spreads.max(axis=0), 1.0))
        quantile = interval_radius(self.errors / (self.spreads + usual), coverage)
        return np.asarray(quantile * (spread + usual))


def interval_radius(errors: ArrayLike | None, coverage: float) -> Any:
    """How far the true number is from the prediction at most, in a share `coverage` of all cases.

    `errors` (m,) or (m, k): absolute errors of held-out examples, NaN where unknown. The result,
    () or (k,), is infinite where m is too small: a coverage of 90 % needs 9 errors.

    >>> float(interval_radius(np.arange(1.0, 20.0), 0.9))
    18.0
    """
    if not 0 < coverage < 1:
        raise InputError(f"coverage must be between 0 and 1, not {coverage:g}")
    values = np.sort(np.asarray(errors, dtype=np.float64), axis=0)  # NaN last
    count = np.isfinite(values).sum(axis=0)
    # The small number: 0.9 · 20 is not more than 18.
    rank = np.ceil((count + 1) * coverage - 1e-9).astype(np.int64)
    padded = np.concatenate([values, np.full((1, *values.shape[1:]), np.inf)])
    place = np.where(rank > count, len(padded) - 1, rank - 1)
    return np.take_along_axis(padded, place[None], axis=0)[0]
