"""Models over part counts, behind the interface of the network estimators.

Classes are told apart by linear support vector machines (scikit-learn's `LinearSVC`, one against
the rest), numbers predicted by ridge regression; or both by forests of decision trees. What is
left open (`depth`, `C`) is chosen on inner folds of the training examples, by log loss or squared
error; the decision values of the held-out folds also give the temperature that turns decision
values into probabilities. Then the model is fitted again on all of the training examples. Of
several targets, each is fitted on the examples where it is known; depth, C and temperature are
common to all.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from numbers import Integral, Real
from typing import Any, NamedTuple, Self

import numpy as np
from joblib import Parallel, cpu_count, delayed  # type: ignore[import-untyped]
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.special import log_expit
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold, ShuffleSplit, StratifiedKFold, StratifiedShuffleSplit
from sklearn.svm import LinearSVC
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from saen._util.arrays import Array, Ints
from saen.errors import InputError
from saen.io.coerce import as_data
from saen.learning.calibration import fit_temperature, log_probabilities, probabilities
from saen.learning.estimators import integer_seed, mean_and_scale, sample_weights
from saen.learning.fitted import Fitted
from saen.learning.forest import MIN_LEAF, Forest, grow_classes, grow_numbers
from saen.learning.load import Savable
from saen.learning.parameters import parameter
from saen.learning.part_counts import (
    MAX_ROLE,
    CountSettings,
    Encoded,
    Encoder,
    PartTable,
    count_parts,
    feature_rows,
    row_scales,
    scale_rows,
)
from saen.learning.predictors import ClassPredictor, NumberPredictor, class_factors
from saen.learning.preparation import Data, Preparations, Prepared
from saen.learning.targets import (
    Targets,
    as_numbers,
    check_scores,
    encode_classes,
    given,
    target_names,
)

Floats = NDArray[np.float64]
Folds = list[tuple[Ints, Ints]]
"""Pairs of examples to fit on and to hold out."""

USUAL_C = 1.0
CLASS_CS = (0.1, 0.3, 1.0, 3.0, 10.0)
NUMBER_CS = (0.1, 1.0, 10.0, 100.0, 1000.0)
"""From which `C="auto"` is chosen."""
MAX_THRESHOLDS = 32
EMBEDDING_WIDTH = 256
"""Columns of `embed` where there are more features."""
INNER_TEST_SIZE = 0.1
"""Share of a training part that a single inner split holds out."""
MIN_PARALLEL_ENTRIES = 2_000_000
"""Entries of all fits together from which on several processes are worth their start."""
ABSENT = 10.0
"""Minus the logit of a class that the training examples do not have."""
SOLVER_TOLERANCE = 1e-2
MAX_ITERATIONS = 200
"""Of LinearSVC; stricter ones cost several times the time and no accuracy."""
RIDGE_TOLERANCE = 1e-4
MAX_FOREST_DEPTH = 2
"""Up to which a forest chooses its depth: larger parts are too rare to split on."""
FOREST_WORK = 50
"""How many times as long as a linear model a forest takes, roughly."""


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
        entries = (rows, encoded.columns, encoded.values * self._scales(table)[rows])
        values = self.function.entry_outputs(self._features(encoded, table), entries, weights)
        return np.bincount(encoded.entries, values, minlength=len(table.parts)).astype(np.float64)

    def embedding(self, table: PartTable) -> Floats:
        """Dense features of the unique examples: as they are if few, else hashed, (rows, width)."""
        features = self._features(self.encoder.encode(table), table)
        n = features.shape[1]
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
        return scale_rows(rows, self._scales(table))

    def _scales(self, table: PartTable) -> Floats:
        return row_scales(self.encoder.squared_lengths(table, self.depth), self.norm)


@dataclass(frozen=True, eq=False)
class _Learner:
    """How one kind of target is learned.

    `fit(X, y, weights, C)` gives a function of features; `judge` gives the score of held-out
    outputs, from their targets and weights, and the factor of the outputs that makes it best;
    `split(y, number, seed)` makes inner folds; `costs` are the C to choose from, if any.
    """

    fit: Callable[[Any, Array, Floats, float], Linear | Forest]
    judge: Callable[[Floats, Array, Floats], tuple[float, float]]
    split: Callable[[Array, int, int], Folds]
    costs: tuple[float, ...]


@dataclass(eq=False, repr=False)
class PartCountsEstimator(Savable, Fitted, CountSettings, ABC):
    """What classifier and regressor share: from data to a model over part counts and back."""

    _: KW_ONLY
    model: str = parameter("linear", StrOptions({"linear", "forest"}))
    max_thresholds: int | None = parameter(
        MAX_THRESHOLDS, Interval(Integral, 1, None, closed="left"), None
    )
    depth: int | str | None = parameter(
        "auto", Interval(Integral, 0, None, closed="left"), StrOptions({"auto"}), None
    )
    C: float | str = parameter(
        "auto", Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})
    )
    inner_folds: int | str = parameter(
        "auto", Interval(Integral, 0, None, closed="left"), StrOptions({"auto"})
    )
    random_state: int | np.random.RandomState | None = parameter(0, "random_state", runtime=True)

    model_: CountsModel = field(init=False)
    target_names_: list[str] = field(init=False)

    @property
    def depth_(self) -> int | None:
        """The depth (or number of radii less 1) whose parts are counted; None: all of them."""
        return self.model_.depth

    @property
    def C_(self) -> float | None:  # noqa: N802 - scikit-learn's name
        """The inverse strength of regularisation that was used; a forest has none."""
        return self.model_.C

    def validate(self) -> None:
        """Raise `InputError` for an argument of the wrong type or out of range."""
        super().validate()
        if self.model == "forest" and self.n_features is not None:
            raise InputError("a forest reads one column per part: omit n_features")

    # -- fitting -----------------------------------------------------------------------------

    @abstractmethod
    def learner(self, n_classes: int, *, several: bool) -> _Learner:
        """How the targets, one or several, are learned; `n_classes` is 0 for numbers."""

    def _fit(self, X: Data, y: Array, weights: Floats, n_classes: int = 0) -> Self:
        if not isinstance(X, Prepared):
            X = as_data(X, self.spec.takes)
        if len(X) and len(X) != len(y):
            raise InputError(f"{len(X)} examples, but {len(y)} targets")
        used = weights.reshape(len(y), -1).any(axis=1)
        if not isinstance(X, Prepared) and not used.all():
            X = Preparations(X).fitted_on(self, np.flatnonzero(used))
        prepared, table = self._begin_fit(X)
        part = np.flatnonzero(used), np.zeros(0, dtype=np.int64)
        graded, seed = is_graded(prepared), integer_seed(self.random_state) % 2**31
        self.model_, *_ = _fit_part(self, table, y, weights, part, None, n_classes, graded, seed)
        return self

    # -- using -------------------------------------------------------------------------------

    def _outputs(self, X: Data) -> Floats:
        """Of every example, (n, outputs)."""
        table = self.part_table(X)
        return self.model_.outputs(table)[table.top]

    def part_table(self, X: Data) -> PartTable:
        """The parts of new data, counted per example."""
        check_is_fitted(self, "model_")
        return count_parts(self.compress(X), self.levels)

    def unseen_share(self, X: Data) -> float:
        """The share of part occurrences in X, up to `depth_`, without a column in the model."""
        table = self.part_table(X)
        return self.model_.encoder.encode(table).unseen_share(table, self.depth_)

    def embed(self, X: Data, level: int | None = None) -> Floats:
        """Dense vectors of the examples, shape (n, at most 256).

        Up to 256 features are returned as they are; more are added up with random signs in 256
        columns, which keeps inner products up to an error of about 1/16 of the lengths.
        """
        check_is_fitted(self, "model_")
        if level not in (None, self.schema_.depth):
            raise InputError("part counts have vectors of whole examples only: omit the level")
        table = self.part_table(X)
        return self.model_.embedding(table)[table.top]


@dataclass(eq=False, repr=False)
class PartCountsClassifier(ClassPredictor, PartCountsEstimator):
    """Classify graphs and other structured data by their part counts.

    Parameters
    ----------
    decomposition, radii, node_labels, levels, encoding, max_count, max_thresholds, n_features,
    norm, min_graphs : see `PartCounts`.
    model : `linear`, or `forest`: decision trees over plain counts of the most frequent parts (for
        which `encoding`, `norm` and `C` do not apply, and `n_features` is not allowed).
    depth : count the parts of depths (or radii) up to this; None is all that the decomposition has,
        `auto` chooses on inner folds, for a forest from 0, 1 and 2. Applies to `neighbourhoods` and
        `ego`.
    C : inverse strength of regularisation; `auto` chooses on inner folds, from 1 in both
        directions as long as the score improves.
    inner_folds : of the training examples, to choose and to calibrate on; 1 is one split with a
        tenth held out, 0 is none (then `auto` is the largest depth and C = 1). `auto`: 10 below
        1,000 examples, 5 below 3,000, 3 below 8,000, else 1.
    class_weight : None, `"balanced"`, or a dictionary.
    random_state : decides the inner folds.

    `y` holds classes, shape (n,), or several targets of two classes each, shape (n, t), with None
    or NaN where a target is unknown; then probabilities are those of the second classes, (n, t).

    After `fit`: `classes_`, `decomposition_`, `model_`, `depth_`, `C_`; of several targets,
    `classes_` has shape (t, 2), and there are `target_names_`.

    >>> import saen
    >>> threads = saen.generate_threads(60, seed=1)
    >>> model = PartCountsClassifier().fit(threads, threads.targets)
    >>> model.predict_proba(threads[:3]).shape
    (3, 2)
    """

    _: KW_ONLY
    class_weight: Any = parameter(None, dict, StrOptions({"balanced"}), None)

    classes_: Array = field(init=False)

    def fit(self, X: Data, y: Targets, sample_weight: ArrayLike | None = None) -> Self:
        """Fit data X with classes y, shape (n,) or (n, t); weight 0 is not looked at."""
        self.validate()
        y = given(y)
        names = target_names(y) if np.ndim(y) == 2 else None
        classes, codes = encode_classes(y, names)
        if classes.shape[-1] < 2:
            raise InputError(f"a classifier needs at least two classes, y holds {len(classes)}")
        self.classes_, self.target_names_ = classes, names or []
        weights = sample_weights(sample_weight, len(codes))[:, 0]
        return self._fit(X, codes, self.weighted(codes, classes, weights), classes.shape[-1])

    def weighted(self, codes: Array, classes: Array, weights: Floats) -> Floats:
        """The weights (n,) of the examples times those of their classes, (n,) or (n, t)."""
        if self.class_weight is None:
            return weights
        factors = class_factors(self.class_weight, codes, classes, weights)
        if codes.ndim == 1:
            return weights * factors[codes]
        return weights[:, None] * np.take_along_axis(factors.T, np.maximum(codes, 0), axis=0)

    def learner(self, n_classes: int, *, several: bool) -> _Learner:
        """One machine against the rest for every class, or one for two classes; or a forest."""
        forest = self.model == "forest"
        costs = () if forest else CLASS_CS
        if several:
            fit = _grow_several if forest else _fit_several
            return _Learner(fit, _judge_several, _shuffled, costs)
        one = _grow_classes if forest else _fit_classes
        return _Learner(
            lambda X, y, weights, C: one(X, y, weights, C, n_classes),
            _judge_classes,
            _stratified,
            costs,
        )

    def decision_function(self, X: Data) -> Floats:
        """Log-odds of the second of two classes, (n,), or one logit per class, (n, classes).

        Of several targets, the log-odds of their second classes, (n, t).
        """
        outputs = self._outputs(X)
        return outputs[:, 0] if self.classes_.shape == (2,) else outputs

    def predict_proba(self, X: Data) -> Floats:
        """Class probabilities, shape (n, classes); (n, t) of the second classes of t targets."""
        outputs = self._outputs(X)
        return probabilities(outputs, several=self.several_)

    def predict_log_proba(self, X: Data) -> Floats:
        """Their logarithms, shape (n, classes) or (n, t)."""
        return log_expit(self._outputs(X)) if self.several_ else log_probabilities(self._outputs(X))


@dataclass(eq=False, repr=False)
class PartCountsRegressor(NumberPredictor, PartCountsEstimator):
    """Predict real numbers for graphs and other structured data by their part counts.

    The linear model is ridge regression. Parameters as for `PartCountsClassifier`, without
    `class_weight`, and with `norm=None`: many quantities grow with the size of an example. `y` has
    shape (n,), or (n, k) with NaN where a number is unknown.

    >>> import saen
    >>> threads = saen.generate_threads(40, seed=1)
    >>> model = PartCountsRegressor().fit(threads, threads.sizes)
    >>> model.predict(threads[:2]).shape
    (2,)
    """

    _: KW_ONLY
    norm: str | None = parameter(None, StrOptions({"l2"}), None)

    flat_: bool = field(init=False)

    def fit(self, X: Data, y: Targets, sample_weight: ArrayLike | None = None) -> Self:
        """Fit data X with numbers y, shape (n,) or (n, k); weight 0 is not looked at."""
        self.validate()
        y = given(y)
        values = as_numbers(y)
        if len(values) == 0:
            raise InputError("nothing to fit: y is empty")
        self.flat_ = values.ndim == 1
        self.target_names_ = [] if self.flat_ else target_names(y)
        weights = sample_weights(sample_weight, len(values))[:, 0]
        return self._fit(X, values.reshape(len(values), -1), weights)

    def learner(self, n_classes: int, *, several: bool) -> _Learner:
        """Ridge regression, of all columns of y at once where none has gaps; or forests."""
        if self.model == "forest":
            return _Learner(_grow_several, _judge_numbers, _shuffled, ())
        return _Learner(_fit_numbers, _judge_numbers, _shuffled, NUMBER_CS)

    @property
    def errors_(self) -> Floats:  # type: ignore[override]
        """Absolute errors on the inner folds, (m,) or (m, k)."""
        errors = self.model_.errors
        if errors is None:
            errors = np.empty((0, self.model_.function.n_outputs))
        return errors[:, 0] if self.flat_ else errors

    def predict(self, X: Data) -> Floats:
        """Predicted numbers, shape (n,) or (n, k)."""
        outputs = self._outputs(X)
        return outputs[:, 0] if self.flat_ else outputs


def part_counts_probabilities(
    prepared: Prepared,
    y: ArrayLike,
    parts: Sequence[tuple[Ints, Ints]],
    settings: Sequence[PartCountsClassifier],
    *,
    seed: int = 0,
    n_jobs: int | None = None,
    progress: Callable[[int], object] | None = None,
) -> list[list[Floats]]:
    """Class probabilities of the test examples of many parts, for every one of some settings.

    Parts are counted once for all of the data; columns, choices and coefficients of every part
    come from its training examples alone, as if the estimator had been fitted on them.

    Parameters
    ----------
    prepared : data as `prepare` of the settings gives them.
    y : the class of every example, (n,), or several targets with gaps, (n, t).
    parts : pairs of training and test indices.
    settings : classifiers, not fitted, of one decomposition.
    seed : decides the inner folds.
    n_jobs : processes; None is as many as there are cores, one for small data.
    progress : called with the number of fits done.

    Returns, per setting and part, probabilities of shape (tests, classes), in the order of
    `numpy.unique(y)`; of several targets, those of their second classes, (tests, t).

    >>> import saen
    >>> threads = saen.generate_threads(40, seed=1)
    >>> model = PartCountsClassifier()
    >>> halves = [(np.arange(0, 40, 2), np.arange(1, 40, 2))]
    >>> rows = part_counts_probabilities(model.prepare(threads), threads.targets, halves, [model])
    >>> rows[0][0].shape
    (20, 2)
    """
    results = fit_parts(prepared, y, parts, settings, seed=seed, n_jobs=n_jobs, progress=progress)
    return [[fit.tested for fit in each] for each in results]


class PartFit(NamedTuple):
    """One part: its model and the predictions (probabilities or numbers) for its test examples.

    `held_out`: those for the held-out examples of its inner folds, one fold after another.
    """

    model: CountsModel
    tested: Floats
    held_out: Floats | None


def fit_parts(
    prepared: Prepared,
    y: ArrayLike,
    parts: Sequence[tuple[Ints, Ints]],
    settings: Sequence[PartCountsEstimator],
    *,
    folds: Sequence[Folds] | None = None,
    seed: int = 0,
    n_jobs: int | None = None,
    progress: Callable[[int], object] | None = None,
) -> list[list[PartFit]]:
    """Like `part_counts_probabilities`, with the fitted models, and for numbers as well.

    `folds`, per part, are inner folds to choose and calibrate on, in place of the estimator's own:
    positions within the part's training examples.
    """
    numbers = isinstance(settings[0], PartCountsRegressor)
    several = np.ndim(y) == 2
    classes, codes = (
        (np.zeros(0), as_numbers(y).reshape(len(np.asarray(y)), -1))
        if numbers
        else encode_classes(y)
    )
    tables: dict[Any, PartTable] = {}
    jobs = []
    for estimator in settings:
        estimator.validate()
        levels = estimator.levels if isinstance(estimator.levels, str) else tuple(estimator.levels)
        if levels not in tables:
            tables[levels] = estimator.count(prepared)
        for number, part in enumerate(parts):
            used = np.zeros(len(codes))
            used[part[0]] = 1.0
            if isinstance(estimator, PartCountsClassifier):
                used = estimator.weighted(codes, classes, used)
            given = None if folds is None else folds[number]
            jobs.append((clone(estimator), tables[levels], codes, used, part, given))
    entries = sum(
        len(job[1].parts) * (FOREST_WORK if job[0].model == "forest" else 1) for job in jobs
    )
    if n_jobs is None:
        n_jobs = 1 if entries < MIN_PARALLEL_ENTRIES else min(len(jobs), cpu_count())
    graded, done = is_graded(prepared), []
    run = Parallel(n_jobs=n_jobs, return_as="generator")

    def predictions(rows: Floats) -> Floats:
        if numbers:
            return rows if several else rows[:, 0]
        return probabilities(rows, several=several)

    for fitted, rows, held_out in run(
        delayed(_fit_part)(*job, classes.shape[-1], graded, seed) for job in jobs
    ):
        unseen = None if held_out is None else predictions(held_out)
        done.append(PartFit(fitted, predictions(rows), unseen))
        if progress is not None:
            progress(len(done))
    return [done[i * len(parts) : (i + 1) * len(parts)] for i in range(len(settings))]


def is_graded(prepared: Prepared) -> bool:
    """Whether the roles of the top are in order of size, so that a depth can be chosen."""
    return prepared.decomposition is not None and prepared.decomposition.graded


# -- fitting one part --------------------------------------------------------------------------


class _Trial(NamedTuple):
    """Inner folds with some settings: their score, and calibrated outputs of held-out examples."""

    score: float
    temperature: float
    outputs: Floats


@dataclass(eq=False)
class _Problem:
    """One training part: its features at every depth, choices, calibration and the final fit."""

    estimator: PartCountsEstimator
    table: PartTable
    y: Array
    weights: Floats
    learner: _Learner
    graded: bool
    seed: int

    def __post_init__(self) -> None:
        self.encoder = self.estimator.fit_encoder(self.table)
        encoded = self.encoder.encode(self.table)
        self.features = feature_rows(encoded, self.table, self.encoder.n_columns)

    def solve(self, folds: Folds | None = None) -> tuple[CountsModel, Floats | None]:
        """The model, with everything that was left open decided by the inner folds.

        Also the calibrated outputs of the held-out examples, one fold after another.
        """
        depths, given = self._depths(), self.estimator.C
        C, depth, best = USUAL_C, depths[-1], None
        if not isinstance(given, str):
            C = float(given)
        folds = self._folds() if folds is None else folds
        if folds:
            trials = {each: self._try(each, C, folds) for each in depths}
            depth = max(depths, key=lambda each: trials[each].score)
            by_cost = {C: trials[depth]}
            if isinstance(given, str) and self.learner.costs:
                C = self._climb(depth, by_cost, folds)
            best = by_cost[C]
        temperature = 1.0 if best is None else best.temperature
        encoder, X, scale = self._at(depth)
        function = self.learner.fit(X, self.y, self.weights, C).scaled(temperature)
        typical = self._typical(function.outputs(X))
        if isinstance(function, Linear):
            function = Linear(function.coef * scale, function.intercept)
        model = CountsModel(
            encoder,
            self.estimator.norm,
            function,
            depth,
            C if self.learner.costs else None,
            None if best is None else best.score,
            self._errors(best, folds),
            typical,
        )
        return model, None if best is None else best.outputs

    def _typical(self, outputs: Floats) -> Floats:
        """The mean output, by weight; of several targets, over all examples, known or not."""
        weights = self.weights.reshape(len(outputs), -1) + np.zeros(outputs.shape[1])
        mean: Floats = np.average(outputs, axis=0, weights=weights)
        return mean

    def _errors(self, best: _Trial | None, folds: Folds) -> Floats | None:
        """Of numbers on the inner folds."""
        if best is None or self.y.dtype.kind != "f":
            return None
        places = np.concatenate([held_out for _, held_out in folds])
        errors: Floats = np.abs(best.outputs - self.y[places])
        return errors

    def _climb(self, depth: int | None, by_cost: dict[float, _Trial], folds: Folds) -> float:
        """The best C, from the usual one in both directions as long as the score improves."""
        costs = self.learner.costs
        start = costs.index(USUAL_C)
        for way in (costs[start + 1 :], costs[:start][::-1]):
            score = by_cost[USUAL_C].score
            for cost in way:
                by_cost[cost] = self._try(depth, cost, folds)
                if by_cost[cost].score <= score:
                    break
                score = by_cost[cost].score
        return max(by_cost, key=lambda cost: by_cost[cost].score)

    def _try(self, depth: int | None, C: float, folds: Folds) -> _Trial:
        _, X, _ = self._at(depth)
        outputs = []
        for fit, held_out in folds:
            function = self.learner.fit(X[fit], self.y[fit], self.weights[fit], C)
            outputs.append(function.outputs(X[held_out]))
        places = np.concatenate([held_out for _, held_out in folds])
        rows = np.concatenate(outputs)
        score, temperature = self.learner.judge(rows, self.y[places], self.weights[places])
        return _Trial(score, temperature, rows * temperature)

    def _depths(self) -> list[int | None]:
        """The depths to choose from; None stands for all parts."""
        wanted = self.estimator.depth
        if wanted is None or not self.graded or self.encoder.occupied is not None:
            return [None]
        n_roles = int(self.table.ids[:, 0].max(initial=0) & np.uint64(MAX_ROLE)) + 1
        if isinstance(wanted, str):
            return list(range(n_roles))
        return [min(wanted, n_roles - 1)]

    def _at(self, depth: int | None) -> tuple[Encoder, Any, float]:
        """Columns and features (n, columns) up to a depth, and the scale common to all rows."""
        encoder, features = self.encoder, self.features
        if depth is not None:
            # Sorted by level and role, so that smaller depths are the first parts and columns.
            limit = self.table.last_place(depth)
            encoder = encoder.first_parts(int(np.searchsorted(encoder.ids[:, 0], limit, "right")))
            features = features[:, : encoder.n_columns]
        norm = self.estimator.norm
        squares = encoder.squared_lengths(self.table, depth)
        scales = row_scales(squares, norm)
        # Without a norm of their own, rows have length 1 on average: C means the same. Trees
        # compare counts as they are.
        mean_square = squares.sum() / max(self.table.n_rows, 1)
        as_is = norm is not None or mean_square == 0 or not self.learner.costs
        scale = 1.0 if as_is else 1 / float(np.sqrt(mean_square))
        return encoder, scale_rows(features, scales * scale)[self.table.top], scale

    def _folds(self) -> Folds:
        """Inner folds, none where the part is too small for any."""
        n, number = len(self.y), self.estimator.inner_folds
        if isinstance(number, str):
            number = 10 if n < 1000 else 5 if n < 3000 else 3 if n < 8000 else 1
        if number == 0 or n < 4:
            return []
        return self.learner.split(self.y, number, self.seed)


def _fit_part(
    estimator: PartCountsEstimator,
    table: PartTable,
    y: Array,
    weights: Floats,
    part: tuple[Ints, Ints],
    folds: Folds | None,
    n_classes: int,
    graded: bool,
    seed: int,
) -> tuple[CountsModel, Floats, Floats | None]:
    """The model of one part, and its outputs for the test and the held-out inner examples."""
    train, test = part
    if estimator.model == "forest":
        depth = MAX_FOREST_DEPTH if isinstance(estimator.depth, str) else estimator.depth
        if graded and depth is not None:
            table = table.up_to(depth)
        fewest = max(estimator.min_graphs, MIN_LEAF)  # a part of one example splits nothing off
        plain = {"encoding": "counts", "norm": None, "min_graphs": fewest}
        estimator = clone(estimator).set_params(**plain)
    learner = estimator.learner(n_classes, several=y.ndim == 2)
    problem = _Problem(
        estimator, table.take(train), y[train], weights[train], learner, graded, seed
    )
    fitted, held_out = problem.solve(folds)
    tests = table.take(test)
    return fitted, fitted.outputs(tests)[tests.top], held_out


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
    machine = LinearSVC(C=C, tol=SOLVER_TOLERANCE, max_iter=MAX_ITERATIONS, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # close enough: C is chosen by score
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


def _grow_classes(X: Any, y: Array, weights: Floats, C: float, n_classes: int) -> Forest:
    """A forest, with no votes for classes that the examples do not have."""
    constant = _constant_classes(X, y, weights, n_classes)
    if constant is not None:
        return Forest.constant(constant)
    forest = grow_classes(X, y, weights, n_classes)
    absent = np.bincount(y, minlength=n_classes) == 0
    return replace(forest, intercept=-ABSENT * absent) if absent.any() else forest


def _fit_several(X: Any, y: Array, weights: Floats, C: float) -> Linear:
    """One row of coefficients per target, from the examples where it is known."""
    check_scores(X.shape[1], y.shape[1], "features")
    coef, intercept = np.zeros((y.shape[1], X.shape[1])), np.zeros(y.shape[1])
    for target, (known, codes, own) in enumerate(_known(y, weights)):
        if len(known):
            function = _fit_classes(X[known], codes, own, C, 2)
            coef[target], intercept[target] = function.coef[0], function.intercept[0]
    return Linear(coef, intercept)


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
    known = np.isfinite(y)
    if not known.all():
        columns = [
            _fit_numbers(X[rows], column[rows, None], weights[rows], C)
            if rows.any()
            else Linear(np.zeros((1, X.shape[1])), np.zeros(1))
            for column, rows in zip(y.T, known.T, strict=True)
        ]
        return Linear(
            np.concatenate([each.coef for each in columns]),
            np.concatenate([each.intercept for each in columns]),
        )
    mean = np.average(y, axis=0, weights=weights)
    if X.shape[1] == 0:
        return Linear(np.zeros((y.shape[1], 0)), mean)
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


def _stratified(y: Array, number: int, seed: int) -> Folds:
    """Folds with some of every class in each, fewer where a class has too few members."""
    _, counts = np.unique(y, return_counts=True)
    n_test = max(int(np.ceil(INNER_TEST_SIZE * len(y))), len(counts))
    if counts.min() < 2 or len(y) - n_test < len(counts):
        return _shuffled(y, number, seed)
    if number == 1:
        splitter = StratifiedShuffleSplit(1, test_size=n_test, random_state=seed)
    else:
        folds = int(np.clip(counts.min(), 2, number))
        splitter = StratifiedKFold(folds, shuffle=True, random_state=seed)
    return list(splitter.split(np.empty(len(y)), y))


def _shuffled(y: Array, number: int, seed: int) -> Folds:
    if number == 1:
        splitter = ShuffleSplit(1, test_size=INNER_TEST_SIZE, random_state=seed)
    else:
        splitter = KFold(min(number, len(y)), shuffle=True, random_state=seed)
    return list(splitter.split(np.empty(len(y))))
