"""What is learned: the targets of the examples, coded once, with weights and groups.

`Classes` and `Numbers` say what a model's outputs stand for; a `Problem` holds their values.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Number
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets

from saen._util.arrays import Array, Floats, Ints
from saen._util.lazy import LazyModule
from saen._util.strings import human_bytes, plural
from saen.data.collection import known_targets
from saen.errors import InputError
from saen.io.parsing.records import targets_for
from saen.learning.calibration import Calibration, probabilities, temperature_of
from saen.learning.metrics import (
    MIN_PROBABILITY,
    Metric,
    class_codes_of,
    find_metric,
    log_losses,
)

if TYPE_CHECKING:
    from saen.network import loss
    from saen.network.loss import Task
else:  # only networks need torch
    loss = LazyModule("saen.network.loss")

MAX_SCORES = 5 * 10**8
"""Pairs of an example, or a feature, and a class."""
MAX_TARGET = 1e100
"""Larger numbers to learn are refused: their squares are too large for float64."""


def given(y: ArrayLike | None) -> ArrayLike:
    """The targets; `InputError` where there are none."""
    if y is None:
        raise InputError("y is None: these data have no targets to learn from")
    return y


def as_classes(y: ArrayLike) -> Array:
    """Classes as an array of integers, Booleans or strings, shape (n,).

    Raises `InputError` for missing, infinite or fractional values, for values of different types,
    and for any other shape.

    >>> as_classes(["a", "b"]).shape
    (2,)
    >>> as_classes([1, "a"])
    Traceback (most recent call last):
        ...
    saen.errors.InputError: y mixes numbers and text: write all classes the same way
    """
    _check_types(y)
    labels = np.asarray(y)
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise InputError("y holds NaN or infinity, which is not a class")
    check_classification_targets(labels)
    if labels.ndim != 1:
        raise InputError(f"y must hold one class per example, not have shape {labels.shape}")
    return labels


def class_codes(labels: Array) -> tuple[Array, NDArray[np.int64]]:
    """The distinct classes in order, and the place of every label among them, shape (n,).

    Raises `InputError` with a forecast where one number per example and class is too much.

    >>> class_codes(np.array(["b", "a", "b"]))[1].tolist()
    [1, 0, 1]
    """
    classes, codes = np.unique(labels, return_inverse=True)
    check_scores(len(labels), len(classes), "examples")
    return classes, codes


def check_scores(rows: int, n_classes: int, what: str) -> None:
    """Raise `InputError` if a matrix of `rows` by `n_classes` would not fit into memory."""
    if rows * n_classes > MAX_SCORES:
        raise InputError(
            f"{n_classes:,} classes and {rows:,} {what}: one number for each pair would take "
            f"{human_bytes(8.0 * rows * n_classes)}, several times over; if the targets are "
            "numbers, write them with a decimal point, else merge rare classes"
        )


def encode_classes(y: ArrayLike, names: Sequence[str] = ()) -> tuple[Array, Ints]:
    """Classes, and the code of every example.

    For one target, y of shape (n,): classes (C,) and codes (n,). For several targets with two
    classes each, y of shape (n, t): classes (t, 2) and codes (n, t), -1 where y is missing (None,
    NaN or an empty string).

    >>> encode_classes(["b", "a", "b"])
    (array(['a', 'b'], dtype='<U1'), array([1, 0, 1]))
    >>> encode_classes([[0, 1], [1, np.nan], [1, 0]])[1].tolist()
    [[0, 1], [1, -1], [1, 0]]
    """
    if np.ndim(y) != 2:
        return class_codes(as_classes(y))
    table = np.asarray(y)
    known = known_targets(table)
    codes = np.full(table.shape, -1, dtype=np.int64)
    pairs = []
    for column, name in enumerate(names or target_names(y)):
        rows = known[:, column]
        values, codes[rows, column] = np.unique(
            _plain_classes(table[rows, column]), return_inverse=True
        )
        if len(values) != 2:
            raise InputError(
                f"target {name!r} has {plural(len(values), 'class', 'classes')}: of several "
                "targets at once, each must have two classes (or all be real numbers)"
            )
        pairs.append(values)
    return np.stack(pairs), codes


def _plain_classes(values: Array) -> Array:
    """Classes of one target without gaps; whole numbers among floats are integers."""
    labels = as_classes(values.tolist() if values.dtype.kind == "O" else values)
    return labels.astype(np.int64) if labels.dtype.kind == "f" else labels


def target_names(y: Any) -> list[str]:
    """Names of several targets: the columns of a data frame, or 0, 1, …"""
    columns = getattr(y, "columns", range(np.shape(y)[1]))
    return [str(column) for column in columns]


def as_numbers(y: ArrayLike) -> Floats:
    """Finite real numbers, shape (n,) or (n, k); `InputError` for anything else.

    Of several numbers per example, some may be missing (NaN), if not all of a column.

    >>> as_numbers([1, 2.5]).tolist()
    [1.0, 2.5]
    """
    try:
        values = np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError("y must be finite numbers of shape (n,) or (n, k)") from None
    if (
        values.ndim not in (1, 2)
        or np.isinf(values).any()
        or (values.ndim == 1 and np.isnan(values).any())
    ):
        raise InputError("y must be finite numbers of shape (n,) or (n, k)")
    if np.nanmax(np.abs(values), initial=0) > MAX_TARGET:
        raise InputError(f"y holds numbers beyond ±{MAX_TARGET:g}: rescale the targets")
    if values.ndim == 2 and len(values):
        empty = np.flatnonzero(np.isnan(values).all(axis=0))
        if len(empty):
            name = target_names(y)[empty[0]]
            raise InputError(f"target {name!r} has no numbers to learn from: leave it out")
    return values


def mean_and_scale(values: Array, weights: Floats) -> tuple[Array, Array]:
    """Weighted mean and standard deviation (1 where it is 0) of known targets, shape () or (k,).

    >>> mean, scale = mean_and_scale(np.array([1.0, 3.0, 9.0]), np.array([1.0, 1.0, 0.0]))
    >>> float(mean), float(scale)
    (2.0, 1.0)
    """
    known = np.isfinite(values)
    counted = known * weights.reshape(-1, *[1] * (values.ndim - 1))
    total = np.maximum(counted.sum(axis=0), np.finfo(np.float64).tiny)
    mean = (counted * np.where(known, values, 0.0)).sum(axis=0) / total
    gaps = np.where(known, values - mean, 0.0)
    # A power of two, so that squares of tiny numbers do not vanish and others keep their bits.
    unit = np.ldexp(1.0, np.frexp(np.abs(gaps).max(axis=0, initial=0.0))[1])
    deviation = unit * np.sqrt((counted * (gaps / unit) ** 2).sum(axis=0) / total)
    return mean, np.where(deviation > 0, deviation, 1.0)


def sample_weights(sample_weight: ArrayLike | None, n: int) -> Floats:
    """One finite weight per example, not negative and not all zero, shape (n,)."""
    if sample_weight is None:
        return np.ones(n)
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.shape != (n,) or not (np.isfinite(weights) & (weights >= 0)).all():
        raise InputError(f"sample_weight must have a finite number ≥ 0 for each of {n} examples")
    if not weights.any():
        raise InputError("sample_weight is zero everywhere: there is nothing to learn from")
    return weights


def _check_types(y: Any) -> None:
    """Raise for a list, or an array of objects, with missing values or with several types."""
    if isinstance(y, np.ndarray) and y.dtype.kind != "O":
        return
    values = y.ravel() if isinstance(y, np.ndarray) else y
    kinds = set()
    for number, value in enumerate(values):
        if value is None:
            raise InputError(f"y has no class for example {number}")
        if isinstance(value, bool | np.bool_):
            kinds.add("true or false")
        elif isinstance(value, Number):
            kinds.add("numbers")
        elif isinstance(value, str):
            kinds.add("text")
        elif not isinstance(value, list | tuple | np.ndarray):
            kinds.add(type(value).__name__)
    if len(kinds) > 1:
        raise InputError(f"y mixes {' and '.join(sorted(kinds))}: write all classes the same way")


# -- what outputs stand for ---------------------------------------------------------------------

T = TypeVar("T")
Unit = tuple[Array, Array]
"""Mean and standard deviation of training targets, (outputs,): networks learn numbers in it."""
PLAIN_UNIT: Unit = (np.zeros(1), np.ones(1))


@dataclass(frozen=True, eq=False)
class Targets(ABC):
    """What a model predicts: `Classes` or `Numbers`; `names` are those of several targets."""

    names: tuple[str, ...]

    @property
    def several(self) -> bool:
        """Whether every example has several targets."""
        return bool(self.names)

    @property
    @abstractmethod
    def n_outputs(self) -> int:
        """Outputs that a model needs for an example."""

    @abstractmethod
    def task(self, problem: Problem, trains: Sequence[Ints], class_weight: Any) -> Task:
        """What networks learn, with units and class weights of the training examples of each."""

    def weighted(self, problem: Problem, train: Ints, rows: Ints, class_weight: Any) -> Floats:
        """The weights of rows, with those of their classes among training examples, if asked."""
        if class_weight is not None:
            raise InputError("class_weight is for classes, but the targets are real numbers")
        return problem.weights[rows]

    @abstractmethod
    def unit(self, problem: Problem, train: Ints) -> Unit:
        """The unit in which networks learn the targets of these training examples."""

    @abstractmethod
    def read(self, outputs: Floats, unit: Unit = PLAIN_UNIT) -> Floats:
        """Predictions from outputs (…, n_outputs) in a unit, by default that of y."""

    @abstractmethod
    def decide(self, predictions: Floats) -> Array:
        """The most probable classes, (n,) or (n, t), or the numbers themselves."""

    def named(self, values: Array) -> Array:
        """The values as splits look at them: classes by their names."""
        return values

    @abstractmethod
    def decoded(self, values: Array) -> Array:
        """The values of a problem as they were given; None, or NaN, where unknown."""

    @abstractmethod
    def losses(self, truth: Array, predicted: Floats) -> Floats:
        """How bad several predictions, (k, n, …), are for their known targets, (k, n)."""

    def likelihoods(
        self, truth: Array, predicted: Floats, weights: Floats
    ) -> tuple[Floats, Floats] | None:
        """What several predictions, (k, n, …), give the known targets, (k, m), and their weights.

        None for numbers: how they scatter is not known.
        """
        return None

    @abstractmethod
    def calibrate(self, held_out: Floats, truth: Array, weights: Floats) -> Calibration:
        """What several predictions, (k, n, …), for held-out examples teach about new ones."""

    @abstractmethod
    def columns(self, predictions: Floats, radius: Floats | None) -> dict[str, Array]:
        """Predictions as columns of a table."""

    def agreement(self, each: Floats, predictions: Floats) -> Array | None:
        """Whether each of several models, (n, M, …), alone decides as the predictions do."""
        return None

    @property
    def known_classes(self) -> Array | None:
        """The classes, None for numbers."""
        return None

    @abstractmethod
    def known(self, column: Array, place: int) -> Array | None:
        """Other data's values of one of several targets, coded; None if of another kind."""

    @abstractmethod
    def compared(self) -> list[str]:
        """The columns that scores are computed from."""

    @abstractmethod
    def choose(self, for_classes: T, for_numbers: T) -> T:
        """The one of two things that is for targets like these."""

    @abstractmethod
    def metric(self, name: str | None = None) -> Metric:
        """The metric of that name, or the default."""

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """For files: the inverse of `targets_from_json`."""


@dataclass(frozen=True, eq=False)
class Classes(Targets):
    """One of C classes, or several targets with two classes each; predictions are probabilities.

    - `classes` (C,), or (t, 2) of t targets. Probabilities are (…, C), or (…, t): those of the
      second classes.
    """

    classes: Array

    @property
    def n_outputs(self) -> int:
        """One for two classes, else one per class (or target)."""
        return 1 if self.classes.shape == (2,) else len(self.classes)

    def task(self, problem: Problem, trains: Sequence[Ints], class_weight: Any) -> Task:
        """Classes, weighted for every network by these training examples."""
        factors = None
        if class_weight is not None:
            each = [class_factors(class_weight, problem.values[t], self.classes) for t in trains]
            factors = np.column_stack([one.T.ravel() for one in each])
        return loss.Task.classification(
            problem.values,
            problem.weights[:, None],
            n_classes=self.classes.shape[-1],
            class_weights=factors,
        )

    def weighted(self, problem: Problem, train: Ints, rows: Ints, class_weight: Any) -> Floats:
        """The weights of rows times those of their classes, (rows,), or (rows, t) of t targets."""
        if class_weight is None:
            return problem.weights[rows]
        factors = class_factors(class_weight, problem.values[train], self.classes)
        codes, weights = problem.values[rows], problem.weights[rows]
        if not self.several:
            return weights * factors[codes]
        return weights[:, None] * np.take_along_axis(factors.T, np.maximum(codes, 0), axis=0)

    def unit(self, problem: Problem, train: Ints) -> Unit:
        """Probabilities have none."""
        return np.zeros(self.n_outputs), np.ones(self.n_outputs)

    def read(self, outputs: Floats, unit: Unit = PLAIN_UNIT) -> Floats:
        """Probabilities."""
        return probabilities(outputs, several=self.several)

    def decide(self, predictions: Floats) -> Array:
        """The most probable classes."""
        if self.several:
            several: Array = np.where(predictions > 0.5, self.classes[:, 1], self.classes[:, 0])
            return several
        chosen: Array = self.classes[predictions.argmax(axis=1)]
        return chosen

    def named(self, values: Array) -> Array:
        """Classes by their names; several targets as they are."""
        named: Array = values if self.several else self.classes.astype(str)[values]
        return named

    def decoded(self, values: Array) -> Array:
        """The classes of the codes."""
        if not self.several:
            one: Array = self.classes[values]
            return one
        several = self.classes[np.arange(len(self.names)), values].astype(object)
        several[values < 0] = None
        return several

    def losses(self, truth: Array, predicted: Floats) -> Floats:
        """Log losses; of several targets, the mean over the known ones."""
        if not self.several:
            return np.stack([log_losses(truth, rows[None]) for rows in predicted])
        right = np.where(truth == 1, predicted, 1 - predicted)
        return _mean_of_known(-np.log(np.maximum(right, MIN_PROBABILITY)), truth >= 0)

    def likelihoods(
        self, truth: Array, predicted: Floats, weights: Floats
    ) -> tuple[Floats, Floats]:
        """The probabilities of the true classes."""
        if self.several:
            right = np.where(truth == 1, predicted, 1 - predicted)[:, truth >= 0]
            weights = np.repeat(weights, (truth >= 0).sum(axis=1))
        else:
            right = predicted[:, np.arange(len(truth)), truth]
        return np.maximum(right, MIN_PROBABILITY), weights

    def calibrate(self, held_out: Floats, truth: Array, weights: Floats) -> Calibration:
        """The temperature that makes held-out classes most likely, of each prediction alone."""
        rows = np.tile(np.arange(len(truth)), len(held_out))
        return Calibration(temperature_of(np.concatenate(held_out), truth[rows], weights[rows]))

    def columns(self, predictions: Floats, radius: Floats | None) -> dict[str, Array]:
        """The most probable classes, and all probabilities (of several, of the second classes)."""
        decided = self.decide(predictions)
        if not self.several:
            shares = {f"p_{c}": predictions[:, k] for k, c in enumerate(self.classes.tolist())}
            return {"prediction": decided, **shares}
        columns: dict[str, Array] = {}
        for k, name in enumerate(self.names):
            columns |= {f"prediction_{name}": decided[:, k], f"p_{name}": predictions[:, k]}
        return columns

    def agreement(self, each: Floats, predictions: Floats) -> Array | None:
        """Of one target."""
        if self.several:
            return None
        votes: Array = each.argmax(axis=2) == predictions.argmax(axis=1)[:, None]
        return votes

    @property
    def known_classes(self) -> Array:
        """All of them."""
        return self.classes

    def known(self, column: Array, place: int) -> Array | None:
        """Class codes, -1 where unknown."""
        known = known_targets(column)
        values = column[known]
        if values.dtype.kind == "f" and (values == np.floor(values)).all():
            values = values.astype(np.int64)  # classes beside real numbers are read as such
        codes = np.full(len(column), -1, dtype=np.int64)
        codes[known] = class_codes_of(values, self.classes[place])
        return None if (codes[known] < 0).any() else codes

    def compared(self) -> list[str]:
        """Classes, or the probabilities of several targets."""
        return [f"p_{name}" for name in self.names] or ["prediction"]

    def choose(self, for_classes: T, for_numbers: T) -> T:
        """The first."""
        return for_classes

    def metric(self, name: str | None = None) -> Metric:
        """Accuracy unless another is named."""
        return find_metric(name, regression=False)

    def to_json(self) -> dict[str, Any]:
        """Classes are of any type that sorts: strings, integers of any width, Booleans."""
        classes = {"dtype": self.classes.dtype.str, "values": self.classes.tolist()}
        return {"names": list(self.names), "classes": classes}


@dataclass(frozen=True, eq=False)
class Numbers(Targets):
    """One real number per example, or one for each of several names."""

    @property
    def n_outputs(self) -> int:
        """One per number."""
        return max(len(self.names), 1)

    def task(self, problem: Problem, trains: Sequence[Ints], class_weight: Any) -> Task:
        """Numbers in the unit of these training examples."""
        units = [self.unit(problem, train) for train in trains]
        columns = [(problem.values - mean) / scale for mean, scale in units]
        own = np.stack(columns, axis=1).reshape(len(problem), len(units), -1)
        return loss.Task("squares", own, problem.weights[:, None])

    def unit(self, problem: Problem, train: Ints) -> Unit:
        """Mean and standard deviation, by weight."""
        mean, scale = mean_and_scale(problem.values[train], problem.weights[train])
        return np.atleast_1d(mean), np.atleast_1d(scale)

    def read(self, outputs: Floats, unit: Unit = PLAIN_UNIT) -> Floats:
        """Numbers in the unit of y, (…,), or (…, k) of several."""
        mean, scale = unit
        with np.errstate(over="ignore", invalid="ignore"):
            rows = outputs * scale + mean
        result: Floats = rows if self.several else rows[..., 0]
        if not np.isfinite(result).all():
            raise InputError("a predicted number is too large for float64: rescale the targets")
        return result

    def decide(self, predictions: Floats) -> Array:
        """The numbers themselves."""
        return predictions

    def decoded(self, values: Array) -> Array:
        """The numbers themselves."""
        return values

    def losses(self, truth: Array, predicted: Floats) -> Floats:
        """Squared errors; of several numbers, the mean over the known ones, standardised."""
        if not self.several:
            return np.square(truth - predicted)
        _, scale = mean_and_scale(truth, np.ones(len(truth)))
        return _mean_of_known(np.square((truth - predicted) / scale), np.isfinite(truth))

    def calibrate(self, held_out: Floats, truth: Array, weights: Floats) -> Calibration:
        """The absolute errors of the mean, whose quantiles are the radii of intervals."""
        return Calibration(errors=np.abs(held_out.mean(axis=0) - truth))

    def columns(self, predictions: Floats, radius: Floats | None) -> dict[str, Array]:
        """Numbers, and the ends of their intervals."""
        columns = {"prediction": predictions}
        if radius is not None:
            columns |= {"lower": predictions - radius, "upper": predictions + radius}
        if not self.several:
            return columns
        return {
            f"{key}_{name}": column[:, k]
            for k, name in enumerate(self.names)
            for key, column in columns.items()
        }

    def known(self, column: Array, place: int) -> Array | None:
        """Real numbers."""
        try:
            return targets_for(column, "regression")
        except InputError:
            return None

    def compared(self) -> list[str]:
        """The numbers."""
        return [f"prediction_{name}" for name in self.names] or ["prediction"]

    def choose(self, for_classes: T, for_numbers: T) -> T:
        """The second."""
        return for_numbers

    def metric(self, name: str | None = None) -> Metric:
        """The mean absolute error unless another is named."""
        return find_metric(name, regression=True)

    def to_json(self) -> dict[str, Any]:
        """The names alone."""
        return {"names": list(self.names)}


def targets_from_json(document: dict[str, Any]) -> Targets:
    """What a model predicts, from a file; raises `InputError` for what `to_json` never gives."""
    names = document["names"]
    if not (isinstance(names, list) and all(isinstance(name, str) for name in names)):
        raise InputError("the names of the targets are wrong")
    if "classes" not in document:
        return Numbers(tuple(names))
    values, dtype = np.array(document["classes"]["values"]), np.dtype(document["classes"]["dtype"])
    kinds = {"U": "UO", "b": "bO", "i": "iuO", "u": "iuO", "f": "fO"}.get(values.dtype.kind, "")
    fits = values.shape == (len(names), 2) if names else values.ndim == 1 and len(values) > 1
    if dtype.kind not in kinds or not fits:
        raise InputError(f"expected a list of classes of type {dtype}")
    # The width of strings is that of the longest, whatever the file says.
    classes: Array = values if dtype.kind == "U" else values.astype(dtype)
    for row in np.atleast_2d(classes):
        if not np.array_equal(row, np.unique(row)):
            raise InputError("classes must be distinct and in order")
    return Classes(tuple(names), classes)


@dataclass(frozen=True, eq=False)
class Problem:
    """Targets of n examples, made once per command.

    - `targets`: what they stand for;
    - `values`: codes into the classes, (n,), or (n, t) with -1 where unknown; or numbers, (n,), or
      (n, k) with NaN where unknown;
    - `weights` (n,): how much each example counts in training, 0 for not at all;
    - `groups` (n,): examples of one group are never on both sides of a split.
    """

    targets: Targets
    values: Array
    weights: Floats
    groups: Array | None = None

    @staticmethod
    def of(
        y: ArrayLike | None,
        *,
        regression: bool,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        names: Sequence[str] = (),
    ) -> Problem:
        """Check and encode targets, several with `names`; `InputError` if nothing can be learned.

        >>> Problem.of(["b", "a", "b"], regression=False).values.tolist()
        [1, 0, 1]
        """
        y = given(y)
        names = tuple(names or target_names(y)) if np.ndim(y) == 2 else ()
        values: Array
        if regression:
            values = as_numbers(y)
            targets: Targets = Numbers(names)
            if len(values) == 0:
                raise InputError("nothing to fit: y is empty")
        else:
            classes, values = encode_classes(y, names)
            n = classes.shape[-1]
            if n < 2:
                found = plural(n, "class", "classes")
                raise InputError(f"a classifier needs at least two classes, y holds {found}")
            targets = Classes(names, classes)
        weights = sample_weights(sample_weight, len(values))
        return Problem(targets, values, weights, checked_groups(groups, len(values)))

    def __len__(self) -> int:
        return len(self.values)


def checked_groups(groups: ArrayLike | None, n: int) -> Array | None:
    """Groups as codes, (n,), checked."""
    if groups is None:
        return None
    group_of = np.asarray(groups)
    if group_of.shape != (n,):
        raise InputError(f"groups must have shape ({n},), one per example, not {group_of.shape}")
    codes: Array = np.unique(group_of.astype(str), return_inverse=True)[1]
    return codes


def _mean_of_known(values: Floats, known: Array) -> Floats:
    """The mean over the last axis of what is known, 0 where nothing is."""
    sums = np.where(known, values, 0.0).sum(axis=-1)
    result: Floats = sums / np.maximum(known.sum(axis=-1), 1)
    return result


# -- weights of classes -------------------------------------------------------------------------

MAX_CLASS_WEIGHT = 1e30
"""Well within float32."""


def class_factors(class_weight: Any, codes: Array, classes: Array) -> Floats:
    """The factor of every class, from the examples that count, (C,), or (t, 2) of t targets.

    `class_weight` is as for scikit-learn, `codes` are (n,), or (n, t) with -1 where a target is
    unknown. A class without examples has no effect, and no influence if weights are balanced.

    >>> codes, classes = np.array([0, 0, 0, 1]), np.array(["a", "b"])
    >>> class_factors("balanced", codes, classes).round(2).tolist()
    [0.67, 2.0]
    """
    if codes.ndim == 2:
        columns = zip(codes.T, classes, strict=True)
        return np.stack([class_factors(class_weight, c[c >= 0], own) for c, own in columns])
    for name, weight in class_weight.items() if isinstance(class_weight, dict) else ():
        if not isinstance(weight, int | float | np.number) or not 0 <= weight <= MAX_CLASS_WEIGHT:
            raise InputError(
                f"class_weight: the weight of {name!r} must be a number from 0 to "
                f"{MAX_CLASS_WEIGHT:g}"
            )
    factors = np.ones(len(classes))
    if isinstance(class_weight, dict):
        factors[:] = compute_class_weight(class_weight, classes=classes, y=classes)
    elif class_weight is not None and len(codes):
        known = np.unique(codes)
        factors[known] = compute_class_weight(class_weight, classes=known, y=codes)
    return factors
