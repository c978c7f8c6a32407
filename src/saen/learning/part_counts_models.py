"""Models over part counts, behind the interface of the network estimators.

`saen.learning.learners` fits linear models or forests. What is left open (`depth`, `C`) is chosen
on inner folds of the training examples, by log loss or squared error; the decision values of the
held-out folds also give the temperature that turns decision values into probabilities. Then the
model is fitted again on all of the training examples. Of several targets, depth, C and temperature
are common to all.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from numbers import Integral, Real
from typing import Any, NamedTuple, Self

import numpy as np
from joblib import Parallel, cpu_count, delayed  # type: ignore[import-untyped]
from numpy.typing import ArrayLike
from scipy.special import log_expit
from sklearn.base import clone
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from saen._util.arrays import Array, Floats, Ints
from saen._util.seeds import integer_seed
from saen.errors import InputError
from saen.learning.calibration import log_probabilities, probabilities
from saen.learning.counts_model import CountsModel, Linear
from saen.learning.fitted import Fitted
from saen.learning.forest import MIN_LEAF
from saen.learning.learners import Learner, class_learner, number_learner
from saen.learning.load import Savable
from saen.learning.parameters import parameter
from saen.learning.part_counts import (
    MAX_ROLE,
    SHARES,
    CountSettings,
    Encoder,
    PartTable,
    count_parts,
    feature_rows,
    scaled_rows,
)
from saen.learning.predictors import ClassPredictor, NumberPredictor, class_factors
from saen.learning.preparation import Data, Preparations, Prepared
from saen.learning.splits import Fold
from saen.learning.targets import (
    Targets,
    as_numbers,
    encode_classes,
    given,
    sample_weights,
    target_names,
)

USUAL_C = 1.0
MAX_THRESHOLDS = 32
MIN_PARALLEL_ENTRIES = 2_000_000
"""Entries of all fits together from which on several processes are worth their start."""
MAX_FOREST_DEPTH = 2
"""Up to which a forest chooses its depth: larger parts are too rare to split on."""
FOREST_WORK = 50
"""How many times as long as a linear model a forest takes, roughly."""


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
    def learner(self, n_classes: int, *, several: bool) -> Learner:
        """How the targets, one or several, are learned; `n_classes` is 0 for numbers."""

    def _fit(self, X: Data, y: Array, weights: Floats, n_classes: int = 0) -> Self:
        X = self._some_data(X)
        if len(X) != len(y):
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
    model : `linear`, or `forest`: decision trees over the shares of the most frequent parts and the
        number of all (a regressor's: over plain counts), for which `encoding`, `norm` and `C` do
        not apply, and `n_features` is not allowed.
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
        classes, codes = encode_classes(y)
        if classes.shape[-1] < 2:
            raise InputError(f"a classifier needs at least two classes, y holds {len(classes)}")
        self.classes_, self.target_names_ = classes, names or []
        weights = sample_weights(sample_weight, len(codes))[:, 0]
        return self._fit(X, codes, self.weighted(codes, classes, weights), classes.shape[-1])

    def weighted(self, codes: Array, classes: Array, weights: Floats) -> Floats:
        """The weights (n,) of the examples times those of their classes, (n,) or (n, t)."""
        if self.class_weight is None:
            return weights
        factors = class_factors(self.class_weight, codes[weights > 0], classes)
        if codes.ndim == 1:
            return weights * factors[codes]
        return weights[:, None] * np.take_along_axis(factors.T, np.maximum(codes, 0), axis=0)

    def learner(self, n_classes: int, *, several: bool) -> Learner:
        """How the classes are learned."""
        return class_learner(n_classes, several=several, forest=self.model == "forest")

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

    def learner(self, n_classes: int, *, several: bool) -> Learner:
        """How the numbers are learned."""
        return number_learner(forest=self.model == "forest")

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
    folds: Sequence[list[Fold]] | None = None,
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
    learner: Learner
    graded: bool
    seed: int

    def __post_init__(self) -> None:
        self.encoder = self.estimator.fit_encoder(self.table)
        encoded = self.encoder.encode(self.table)
        self.features = feature_rows(encoded, self.table, self.encoder.n_columns)

    def solve(self, folds: list[Fold] | None = None) -> tuple[CountsModel, Floats | None]:
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

    def _errors(self, best: _Trial | None, folds: list[Fold]) -> Floats | None:
        """Of numbers on the inner folds."""
        if best is None or self.y.dtype.kind != "f":
            return None
        places = np.concatenate([held_out for _, held_out in folds])
        errors: Floats = np.abs(best.outputs - self.y[places])
        return errors

    def _climb(self, depth: int | None, by_cost: dict[float, _Trial], folds: list[Fold]) -> float:
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

    def _try(self, depth: int | None, C: float, folds: list[Fold]) -> _Trial:
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
        X = scaled_rows(features, encoder, self.table, norm, depth)[self.table.top]
        if norm is not None or not self.learner.costs:  # trees compare counts as they are
            return encoder, X, 1.0
        # Without a norm of their own, rows have length 1 on average: C means the same.
        squares = encoder.squared_lengths(self.table, depth)
        mean_square = squares.sum() / max(self.table.n_rows, 1)
        scale = 1 / float(np.sqrt(mean_square or 1.0))
        return encoder, X * scale, scale

    def _folds(self) -> list[Fold]:
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
    folds: list[Fold] | None,
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
        # Numbers often grow with the counts themselves; classes are rather told apart by shares.
        norm = SHARES if n_classes else None
        plain = {"encoding": "counts", "norm": norm, "min_graphs": fewest}
        estimator = clone(estimator).set_params(**plain)
    learner = estimator.learner(n_classes, several=y.ndim == 2)
    problem = _Problem(
        estimator, table.take(train), y[train], weights[train], learner, graded, seed
    )
    fitted, held_out = problem.solve(folds)
    tests = table.take(test)
    return fitted, fitted.outputs(tests)[tests.top], held_out
