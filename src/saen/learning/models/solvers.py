"""How features are learned from: linear models or forests, for classes or numbers.

Classes are told apart by linear support vector machines (scikit-learn's `LinearSVC`, one against
the rest), numbers predicted by ridge regression; or both by forests of decision trees. Of several
targets, each is fitted on the examples where it is known.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from saen._util.arrays import Array, Floats, Ints
from saen.errors import InputError
from saen.learning.calibration import fit_temperature
from saen.learning.models.encoding import SHARES
from saen.learning.models.forest import Forest, grow_classes, grow_numbers
from saen.learning.problem import Targets, check_scores, mean_and_scale

CLASS_CS = (0.1, 0.3, 1.0, 3.0, 10.0)
NUMBER_CS = (0.1, 1.0, 10.0, 100.0, 1000.0)
"""From which `C="auto"` is chosen."""
ABSENT = 10.0
"""Minus the logit of a class that the training examples do not have."""
SOLVER_TOLERANCE = 1e-2
MAX_ITERATIONS = 200
"""Of LinearSVC; stricter ones cost several times the time and no accuracy."""
RIDGE_TOLERANCE = 1e-4


@dataclass(frozen=True, eq=False)
class Linear:
    """Outputs = features · coefᵀ + intercept: `coef` (outputs, columns), `intercept` (outputs,)."""

    name: ClassVar[str] = "linear"

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

    def with_columns_scaled(self, factors: Floats) -> Linear:
        """For columns that are not multiplied by these factors."""
        return Linear(self.coef * factors, self.intercept)

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


@dataclass(frozen=True)
class Solver:
    """How one kind of target is learned.

    - `fit(X, y, weights, C)` gives a function of features;
    - `judge` gives the score of held-out outputs, from their targets and weights, and the factor of
      the outputs that makes it best;
    - `costs` are the C to choose from, none for a forest, which has a `norm` of its own;
    - `wide`: targets are a column each, even if there is only one.
    """

    fit: Callable[[Any, Array, Floats, float], Linear | Forest]
    judge: Callable[[Floats, Array, Floats], tuple[float, float]]
    costs: tuple[float, ...]
    norm: str | None = None
    wide: bool = False

    @staticmethod
    def of(targets: Targets, *, forest: bool) -> Solver:
        """For classes one machine against the rest for each; for numbers ridge regression."""
        return targets.choose(_classes_solver, _numbers_solver)(targets, forest)

    def shaped(self, y: Array) -> Array:
        """Targets as `fit` takes them."""
        return y.reshape(len(y), -1) if self.wide else y


def _classes_solver(targets: Targets, forest: bool) -> Solver:
    """Numbers often grow with the counts themselves; classes are rather told apart by shares."""
    costs, norm = ((), SHARES) if forest else (CLASS_CS, None)
    if targets.several:
        fit = _grow_several if forest else _fit_several
        return Solver(fit, _judge_several, costs, norm)
    one = partial(_grow_classes if forest else _fit_classes, n_classes=max(targets.n_outputs, 2))
    return Solver(one, _judge_classes, costs, norm)


def _numbers_solver(targets: Targets, forest: bool) -> Solver:
    """All columns of y at once where none has gaps."""
    if forest:
        return Solver(_grow_several, _judge_numbers, (), wide=True)
    return Solver(_fit_numbers, _judge_numbers, NUMBER_CS, wide=True)


@contextmanager
def quiet() -> Iterator[None]:
    """Without what solvers warn of: close enough is enough, since settings are chosen by score."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        # Of a part of the data this says nothing.
        warnings.filterwarnings("ignore", "The number of unique classes", UserWarning)
        yield


def _constant_classes(X: Any, y: Array, weights: Floats, n_classes: int) -> Floats | None:
    """Outputs where nothing can be learned: a single class, or no parts; None elsewhere."""
    known = np.unique(y)
    if len(known) == 1:
        if n_classes == 2:
            return np.array([ABSENT * (2.0 * known[0] - 1)])
        return np.where(np.arange(n_classes) == known[0], ABSENT, -ABSENT)
    if X.shape[1] == 0:  # no part is left: the shares of the classes are all that is known
        shares = np.bincount(y, weights, minlength=n_classes) / weights.sum()
        logits: Floats = np.log(np.maximum(shares, np.exp(-ABSENT)))
        return logits[1:] - logits[:1] if n_classes == 2 else logits
    return None


def _fit_classes(X: Any, y: Array, weights: Floats, C: float, n_classes: int) -> Linear:
    """One row of coefficients for two classes, else one per class."""
    n_outputs = 1 if n_classes == 2 else n_classes
    check_scores(X.shape[1], n_outputs, "features")
    coef, intercept = np.zeros((n_outputs, X.shape[1])), np.full(n_outputs, -ABSENT)
    constant = _constant_classes(X, y, weights, n_classes)
    if constant is not None:
        return Linear(coef, constant)
    from sklearn.svm import LinearSVC  # slow to import, and not needed for networks

    machine = LinearSVC(C=C, tol=SOLVER_TOLERANCE, max_iter=MAX_ITERATIONS, random_state=0)
    machine.fit(X, y, sample_weight=weights)
    if n_classes == 2:
        return Linear(machine.coef_, machine.intercept_)
    known = machine.classes_
    if len(known) == 2:
        coef[known] = [-machine.coef_[0], machine.coef_[0]]
        intercept[known] = [-machine.intercept_[0], machine.intercept_[0]]
    else:
        coef[known], intercept[known] = machine.coef_, machine.intercept_
    return Linear(coef, intercept)


_fit_two = partial(_fit_classes, n_classes=2)


def _grow_classes(X: Any, y: Array, weights: Floats, C: float, n_classes: int) -> Forest:
    """A forest, with no votes for classes that the examples do not have."""
    constant = _constant_classes(X, y, weights, n_classes)
    if constant is not None:
        return Forest.constant(constant)
    forest = grow_classes(X, y, weights, n_classes)
    absent = np.bincount(y, minlength=n_classes) == 0
    return replace(forest, intercept=-ABSENT * absent) if absent.any() else forest


def _fit_several(
    X: Any, y: Array, weights: Floats, C: float, fit: Callable[..., Linear] = _fit_two
) -> Linear:
    """One row of coefficients per target, from the examples where it is known."""
    check_scores(X.shape[1], y.shape[1], "features")
    none = Linear(np.zeros((1, X.shape[1])), np.zeros(1))
    each = [
        fit(X[known], values, own, C) if len(known) else none
        for known, values, own in _known(y, weights)
    ]
    coef = np.concatenate([one.coef for one in each])
    return Linear(coef, np.concatenate([one.intercept for one in each]))


def _grow_several(X: Any, y: Array, weights: Floats, C: float) -> Forest:
    """One forest per target, from the examples where it is known."""
    forests = []
    for known, values, own in _known(y, weights):
        if len(known) == 0:
            forests.append(Forest.constant(np.zeros(1)))
        elif values.dtype.kind == "f":
            mean = np.average(values, weights=own, keepdims=True)
            empty = X.shape[1] == 0
            forests.append(Forest.constant(mean) if empty else grow_numbers(X[known], values, own))
        else:
            forests.append(_grow_classes(X[known], values, own, C, 2))
    return Forest.joined(forests)


def _known(y: Array, weights: Floats) -> Iterator[tuple[Ints, Array, Floats]]:
    """Of every target the examples where it is known, its values and their weights there."""
    for target, values in enumerate(y.T):
        own = weights if weights.ndim == 1 else weights[:, target]
        given = np.isfinite(values) if values.dtype.kind == "f" else values >= 0
        known = np.flatnonzero(given & (own > 0))
        yield known, values[known], own[known]


def _fit_numbers(X: Any, y: Array, weights: Floats, C: float) -> Linear:
    y = y.reshape(len(y), -1)
    if not np.isfinite(y).all():
        return _fit_several(X, y, weights, C, _fit_numbers)
    mean = np.average(y, axis=0, weights=weights)
    if X.shape[1] == 0:
        return Linear(np.zeros((y.shape[1], 0)), mean)
    from sklearn.linear_model import Ridge  # as `LinearSVC`

    ridge = Ridge(alpha=1 / C, solver="sparse_cg", tol=RIDGE_TOLERANCE)
    ridge.fit(X, y - mean, sample_weight=weights)
    coef = np.reshape(ridge.coef_, (y.shape[1], -1))
    return Linear(coef, np.reshape(ridge.intercept_, -1) + mean)


def _judge_classes(outputs: Floats, y: Array, weights: Floats) -> tuple[float, float]:
    """Minus the log loss with the temperature that makes the held-out classes most likely.

    Accuracies of some hundred examples differ by chance more than settings do; losses less so.
    """
    temperature, loss = fit_temperature(outputs, y, weights)
    return -loss, 1 / temperature


def _judge_several(outputs: Floats, y: Array, weights: Floats) -> tuple[float, float]:
    """As `_judge_classes`, over all known targets together."""
    known = y >= 0
    own = np.broadcast_to(weights.reshape(len(y), -1), y.shape)[known]
    if not own.any():
        return 0.0, 1.0
    return _judge_classes(outputs[known][:, None], y[known], own)


def _judge_numbers(outputs: Floats, y: Array, weights: Floats) -> tuple[float, float]:
    """Minus the squared error, relative to the spread of the targets, where these are known."""
    known = np.isfinite(y)
    _, scale = mean_and_scale(y, np.ones(len(y)))
    squares = np.where(known, (outputs - y) / scale, 0.0) ** 2
    return -float((weights @ squares).sum() / max((weights @ known).sum(), 1e-300)), 1.0
