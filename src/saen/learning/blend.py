"""Blends: several models, chosen on inner folds of the training examples, averaged by weight."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, field
from numbers import Integral
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from saen._util.arrays import Array, Floats, Ints
from saen._util.progress import bar
from saen._util.seeds import integer_seed
from saen.data.compression import Compressed
from saen.data.hierarchy import Hierarchy
from saen.decompositions import Decomposition
from saen.errors import InputError
from saen.io.coerce import as_data
from saen.learning.calibration import temperature_of, tempered
from saen.learning.candidates import BUDGETS, default_candidates, named_candidate
from saen.learning.estimators import SAENClassifier, SAENRegressor
from saen.learning.fitted import Fitted
from saen.learning.load import Savable
from saen.learning.metrics import find_metric
from saen.learning.network_estimator import NetworkEstimator, fit_or_interrupt
from saen.learning.parameters import Parameters, parameter
from saen.learning.part_counts_models import PartCountsClassifier, PartCountsRegressor
from saen.learning.predictors import ClassPredictor, NumberPredictor
from saen.learning.preparation import Data, DecompositionSpec, Preparations, Prepared
from saen.learning.selection import (
    Candidate,
    Inner,
    Rule,
    blend,
    blend_by,
    describe_tried,
    leave_out,
    try_candidates,
)
from saen.learning.targets import Targets, given, sample_weights
from saen.learning.trainers import Classes, Estimator, Numbers, Trainer
from saen.network.devices import choose_device
from saen.network.settings import DivergenceError, Part


class Member(NamedTuple):
    """A fitted model of a blend, with its name, its weight and its score on the inner folds."""

    name: str
    estimator: Any
    weight: float
    score: float | None


@dataclass(eq=False, repr=False)
class BlendEstimator(Savable, Fitted, Parameters, BaseEstimator, ABC):
    """What classifier and regressor share: candidates, their trials, and the members."""

    _: KW_ONLY
    candidates: str | Sequence[Any] = parameter(
        "auto", StrOptions({"auto"}), list, tuple, runtime=True
    )
    decomposition: str = parameter("auto", str)
    budget: str = parameter("normal", StrOptions(set(BUDGETS)))
    inner_folds: int | str = parameter(
        "auto", Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})
    )
    metric: str | None = parameter(None, str, None)
    device: str = parameter("auto", str, runtime=True)
    checkpoint: str | Path | None = parameter(None, str, Path, None, runtime=True)
    random_state: int | np.random.RandomState | None = parameter(0, "random_state", runtime=True)
    progress: bool | None = parameter(None, "boolean", None, runtime=True)

    members_: list[Member] = field(init=False)
    tried_: list[dict[str, Any]] = field(init=False)

    # -- candidates --------------------------------------------------------------------------

    def validate(self) -> None:
        """Raise `InputError` for an argument of the wrong type or out of range."""
        super().validate()
        choose_device(self.device)
        find_metric(self.metric, regression=isinstance(self, RegressorMixin))
        if isinstance(self.candidates, str):
            return
        if not len(self.candidates):
            raise InputError("a blend needs at least one candidate")
        kinds: tuple[type[Estimator], ...] = SAENClassifier, PartCountsClassifier
        if isinstance(self, RegressorMixin):
            kinds = SAENRegressor, PartCountsRegressor
        for number, each in enumerate(self.candidates):
            if not isinstance(each, kinds):
                expected = " or ".join(kind.__name__ for kind in kinds)
                raise InputError(
                    f"candidate {_candidate_name(number, each)}: a {type(self).__name__} needs "
                    f"candidates of type {expected}"
                )
            each.validate()

    def listed(self, data: Data) -> list[Candidate]:
        """The candidates for these data."""
        if isinstance(self.candidates, str):
            numbers = isinstance(self, RegressorMixin)
            return default_candidates(
                data,
                self.decomposition,
                numbers=numbers,
                budget=self.budget,
                device=self.device,
            )
        return [
            named_candidate(_candidate_name(number, each), each)
            for number, each in enumerate(self.candidates)
        ]

    def rule(self, metric: str | None = None) -> Rule:
        """How candidates are weighed: by the blend's own metric, else by `metric`, else by loss."""
        name = metric if self.metric is None else self.metric
        if name is None:
            return blend
        return blend_by(find_metric(name, regression=isinstance(self, RegressorMixin)))

    @property
    def spec(self) -> DecompositionSpec:
        """The decomposition that stands for the data: of the first candidate."""
        if isinstance(self.candidates, str):
            auto = self.decomposition == "auto"
            return DecompositionSpec("neighbourhoods" if auto else self.decomposition, deep=True)
        first: Estimator = self.candidates[0]  # type: ignore[assignment]
        return first.spec

    def prepare(self, X: Data, *, progress: Any = None) -> Preparations:
        """The data, to fit and predict on: every decomposition is then made only once."""
        self.validate()
        if isinstance(X, Preparations):
            return X
        preparations = Preparations(as_data(X, self.spec.takes))
        preparations.of(self.listed(preparations.data)[0].estimator, progress)
        return preparations

    def identical(self, preparations: Preparations) -> Ints:
        """Equal numbers for examples that look identical to all candidates, (n,)."""
        candidates = self.listed(preparations.data)
        tops = [preparations.of(each.estimator).compressed.top for each in candidates]
        return np.unique(np.stack(tops), axis=1, return_inverse=True)[1].reshape(-1)

    # -- fitting -----------------------------------------------------------------------------

    def _fit(self, X: Data, y: Any, problem: Classes | Numbers, weights: Floats) -> Self:
        preparations = self.prepare(X)
        n = len(preparations)
        if n != len(problem.targets):
            raise InputError(f"{n} examples, but {len(problem.targets)} targets")
        candidates = self.listed(preparations.data)
        seed = integer_seed(self.random_state) % 2**31
        checkpoint = None if self.checkpoint is None else Path(self.checkpoint)
        part = Part((0, 0), np.flatnonzero(weights[:, 0] > 0), np.zeros(0, dtype=np.int64))
        metric = find_metric(self.metric, regression=problem.classes is None)
        inner = Inner(metric, self.inner_folds)
        with bar("candidates", 1, self.progress) as update:
            trainer = Trainer(
                preparations,
                problem,
                seed,
                folder=None if checkpoint is None else checkpoint.parent,
                progress=lambda done, total: update(done, total=total),
            )
            prefix = "" if checkpoint is None else f"{checkpoint.stem}-"
            trials = try_candidates(trainer, candidates, [part], inner, prefix)
        weight = self.rule()(trials, problem)
        fitted = {}
        for row in np.argsort(-weight[:, 0], kind="stable").tolist():
            number = trials.numbers[row]
            if weight[row, 0] == 0:
                continue
            member = clone(candidates[number].estimator).set_params(
                random_state=seed, **trials.chosen[row][0]
            )
            if isinstance(member, NetworkEstimator):
                # The blend is calibrated as a whole, on the predictions of the candidates.
                member.set_params(progress=self.progress, inner_folds=0)
                if checkpoint is not None:
                    file = checkpoint.with_name(f"{prefix}member-{number}.checkpoint")
                    member.set_params(checkpoint=file, checkpoint_every=1)
            prepared = preparations.fitted_on(member, part.train)
            try:
                fit_or_interrupt(member, prepared, y, weights[:, 0])
            except DivergenceError as error:
                weight = leave_out(candidates[number], weight, row, error)
                continue
            if number in trials.curves:
                member.inner_history_ = trials.curves[number][0]
            fitted[number] = member
        self.tried_ = describe_tried(candidates, trials.numbers, trials.scores[:, 0], weight[:, 0])
        self._calibrate(np.tensordot(weight[:, 0], trials.held_out[0], 1), trials.truth[0])
        self.members_ = [
            Member(tried["candidate"], member, tried["weight"], tried["score"])
            for number, member in fitted.items()
            for tried in [self.tried_[number]]
        ]
        return self

    @abstractmethod
    def _calibrate(self, held_out: Floats, truth: Array) -> None:
        """Learn from the blended predictions for the held-out examples of the inner folds."""

    # -- using -------------------------------------------------------------------------------

    @property
    def weights_(self) -> Floats:
        """The weights of the members, largest first, (members,)."""
        check_is_fitted(self, "members_")
        return np.array([member.weight for member in self.members_])

    @property
    def target_names_(self) -> list[str]:
        """The names of several targets."""
        names: list[str] = self.members_[0].estimator.target_names_
        return names

    @property
    def decomposition_(self) -> Decomposition | None:
        """The decomposition of the member with the largest weight."""
        result: Decomposition | None = self.members_[0].estimator.decomposition_
        return result

    @property
    def schema_(self) -> Hierarchy:  # type: ignore[override]
        """The hierarchy, without objects, of the member with the largest weight."""
        result: Hierarchy = self.members_[0].estimator.schema_
        return result

    def compress(self, X: Data, *, lower_inverse: bool = False) -> Compressed:
        """New data as the member with the largest weight compresses them."""
        check_is_fitted(self, "members_")
        result: Compressed = self.members_[0].estimator.compress(X, lower_inverse=lower_inverse)
        return result

    def embed(self, X: Data, level: int | None = None) -> Floats:
        """The vectors of the examples by all members, side by side, shape (n, Σ widths)."""
        check_is_fitted(self, "members_")
        if level not in (None, self.schema_.depth):
            raise InputError("a blend has vectors of whole examples only: omit the level")
        return np.hstack([model.embed(data) for model, data in self._inputs(X)])

    def _inputs(self, X: Data) -> Iterator[tuple[Any, Data]]:
        """Every member with the data as it takes them; equal decompositions are made once."""
        check_is_fitted(self, "members_")
        if isinstance(X, Preparations):
            yield from ((each.estimator, X.as_fitted(each.estimator)) for each in self.members_)
            return
        data = as_data(X, self.spec.takes)
        known: list[Prepared] = []
        for member in self.members_:
            model = member.estimator
            same = [each for each in known if each.decomposition == model.decomposition_]
            if not same:
                same = [Prepared(None, model.decomposition_, model.compress(data))]
                known += same
            yield model, same[0]


def _candidate_name(number: int, estimator: Any) -> str:
    return f"{number}: {type(estimator).__name__}"


@dataclass(eq=False, repr=False)
class BlendClassifier(ClassPredictor, BlendEstimator):
    """Classify graphs and other structured data with the best of several models, averaged.

    Networks and linear models over part counts are tried on inner folds of the training examples;
    greedy selection by log loss, or by `metric`, gives every candidate a weight (with fewer than
    500 examples and no metric, the most likely mixture does). Those with a weight are fitted on all
    training examples, and their probabilities averaged. Of several targets, all have the same
    members and weights.

    Parameters
    ----------
    candidates : estimators to choose from (`SAENClassifier`, `PartCountsClassifier`); `auto` is a
        list by the facts of the data, see `saen.learning.candidates`.
    decomposition : for `auto` candidates: one decomposition for all of them, instead of ego graphs
        and neighbourhoods.
    budget : for `auto` candidates: `quick`, `normal` or `thorough`, from few to many.
    inner_folds : of the training examples, to compare candidates on; 1 is one split with a tenth,
        at most 10,000 examples, held out. `auto`: 5 below 500 examples, 3 below 8,000, else 1.
    metric : what decides the weights, see `saen.learning.metrics`: the mean over inner folds, and
        the log loss where it is equal or not defined. By default the log loss alone.
    device : of the `auto` candidates' networks: `auto`, `cpu`, `cuda`, ….
    checkpoint : what is finished is kept in files beside this one, and a second `fit` resumes.
    random_state : an integer gives the same result every time.
    progress : show progress bars (None: on a terminal).

    After `fit`: `classes_`, `members_` (name, fitted estimator, weight and inner score, largest
    weight first) and `tried_` (all candidates). Inner scores are by `metric`, else accuracies.

    >>> import saen
    >>> threads = saen.generate_threads(60, average_nodes=20, seed=1)
    >>> counts = [saen.PartCountsClassifier(f"neighbourhoods(depth={d})") for d in (1, 2)]
    >>> model = BlendClassifier(candidates=counts).fit(threads, threads.targets)
    >>> model.predict_proba(threads[:3]).shape, len(model.tried_)
    ((3, 2), 2)
    """

    classes_: Array = field(init=False)
    temperature_: float = field(init=False)

    def fit(self, X: Data, y: Targets, sample_weight: ArrayLike | None = None) -> Self:
        """Fit data X with classes y, shape (n,), or (n, t) for t targets of two classes.

        Examples of weight 0 are not looked at; other weights count for the members, not for the
        choice among the candidates.
        """
        self.validate()
        problem = Classes(given(y))
        self.classes_ = problem.classes
        weights = sample_weights(sample_weight, len(problem.targets))
        return self._fit(X, y, problem, weights)

    def predict_each(self, X: Data) -> Floats:
        """Class probabilities by every member, shape (n, members, classes or targets)."""
        return np.stack([model.predict_proba(data) for model, data in self._inputs(X)], axis=1)

    def _calibrate(self, held_out: Floats, truth: Array) -> None:
        self.temperature_ = temperature_of(held_out, truth, np.ones(len(truth)))

    def combine(self, each: Floats) -> Floats:
        """The calibrated mean, by weight, of what `predict_each` gives, (n, classes or targets)."""
        mean = np.tensordot(self.weights_, each, (0, 1))
        return tempered(mean, self.temperature_, several=self.several_)

    def predict_proba(self, X: Data) -> Floats:
        """Class probabilities, averaged by weight over the members and calibrated, (n, classes).

        Of several targets, the probabilities of their second classes, (n, t).
        """
        return self.combine(self.predict_each(X))


@dataclass(eq=False, repr=False)
class BlendRegressor(NumberPredictor, BlendEstimator):
    """Predict real numbers with the best of several models, averaged.

    Parameters and attributes as for `BlendClassifier`; without a `metric`, squared errors decide,
    and the inner scores are mean absolute errors. `y` has shape (n,), or (n, k) with NaN where
    unknown.

    >>> import saen
    >>> threads = saen.generate_threads(40, average_nodes=20, seed=1)
    >>> model = BlendRegressor(candidates=[saen.PartCountsRegressor()])
    >>> model.fit(threads, threads.sizes).predict(threads[:2]).shape
    (2,)
    """

    errors_: Array = field(init=False)

    def fit(self, X: Data, y: Targets, sample_weight: ArrayLike | None = None) -> Self:
        """Fit data X with numbers y, shape (n,) or (n, k); weights as for `BlendClassifier`."""
        self.validate()
        problem = Numbers(given(y))
        weights = sample_weights(sample_weight, len(problem.targets))
        return self._fit(X, y, problem, weights)

    def predict_each(self, X: Data) -> Floats:
        """What every member predicts, shape (n, members) or (n, members, k)."""
        return np.stack([model.predict(data) for model, data in self._inputs(X)], axis=1)

    def predict(self, X: Data) -> Floats:
        """Predicted numbers, shape (n,) or (n, k)."""
        result: Floats = np.tensordot(self.weights_, self.predict_each(X), (0, 1))
        return result

    def _calibrate(self, held_out: Floats, truth: Array) -> None:
        self.errors_ = np.abs(held_out - truth)
