"""scikit-learn estimators: arguments → a `Learner`; `fit` is one fold that trains on everything."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from numbers import Integral
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    ClassNamePrefixFeaturesOutMixin,
    RegressorMixin,
    TransformerMixin,
)
from sklearn.utils.validation import check_is_fitted

from saen._util.arrays import Array, Floats, segment_ids
from saen._util.lazy import LazyModule
from saen._util.progress import bar
from saen._util.seeds import integer_seed
from saen.data._collection import known_targets
from saen.data.compression import Compressed
from saen.data.hierarchy import Hierarchy
from saen.decompositions import Decomposition
from saen.decompositions.words import object_words
from saen.errors import InputError
from saen.learning import files
from saen.learning.calibration import COVERAGE, logits_of
from saen.learning.candidates import BUDGETS, default_candidates
from saen.learning.decomposing import Data, Decompositions, DecompositionSpec
from saen.learning.evaluation import Evaluation, out_of_fold
from saen.learning.metrics import find_metric
from saen.learning.models.base import Candidate, Fitted, Learner, Member, Study
from saen.learning.models.blend import BlendLearner
from saen.learning.models.counts import (
    CountsArguments,
    CountsLearner,
    CountsModel,
    EncodingArguments,
    FittedCounts,
)
from saen.learning.models.encoding import (
    Encoder,
    PartTable,
    count_parts,
    feature_rows,
    narrow,
    scaled_rows,
)
from saen.learning.models.networks import FittedNetworks, NetworkArguments, NetworkLearner
from saen.learning.overlap import NearestTraining, TrainingGraphs
from saen.learning.parameters import Interval, Parameters, StrOptions, parameter
from saen.learning.problem import Problem, as_numbers, given
from saen.learning.splits import Fold
from saen.network.devices import choose_device
from saen.network.settings import History

# Explanations build on models and are imported when one is asked for, not with the models.
explanation = LazyModule("saen.explanations.explanation")


@dataclass(eq=False, repr=False)
class Estimator(Parameters, BaseEstimator, ABC):
    """What all estimators share: fitting, and the model that was fitted."""

    _: KW_ONLY
    run_dir: str | Path | None = parameter(None, str, Path, None, runtime=True)
    random_state: int | np.random.RandomState | None = parameter(0, "random_state", runtime=True)
    progress: bool | None = parameter(None, "boolean", None, runtime=True)

    fitted_: Fitted = field(init=False)
    tried_: list[dict[str, Any]] = field(init=False)
    evaluation_: Evaluation | None = field(init=False)

    reading_: Mapping[str, str] = field(init=False)
    """How the data were read that `saen train` fitted to: new data are read in the same way."""
    about_: Mapping[str, Any] = field(init=False)
    """What `saen train` says of a model in its file: data, score, date."""
    training_: TrainingGraphs | None = field(init=False)
    """What `remember` keeps of the training graphs."""
    regression: ClassVar[bool]
    """Whether real numbers are predicted."""

    @abstractmethod
    def learner(self) -> Learner:
        """How the arguments say to make a model."""

    def on(self, device: str) -> Self:
        """The same on a device, if it is not for the CPU alone."""
        return self

    def fit(
        self,
        X: Data,
        y: ArrayLike | None,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Fit data with one target per example, (n,), or several with gaps, (n, t).

        Examples of weight 0 are not looked at; other weights count in training, in calibration and
        in the losses that weigh the candidates of a blend, though not in a `metric`. Examples of
        one of the `groups` stay together in inner folds.
        """
        self.validate()
        problem = Problem.of(
            y, regression=self.regression, sample_weight=sample_weight, groups=groups
        )
        return self.fit_problem(X, problem)

    def fit_problem(self, X: Data, problem: Problem, learner: Learner | None = None) -> Self:
        """As `fit`, for targets that are coded already, or with another learner."""
        learner = learner or self.learner()
        data = Decompositions.of(X, learner.spec.takes)
        if len(data) == 0:
            raise InputError("nothing to fit: the data are empty")
        if len(data) != len(problem):
            raise InputError(f"{len(data)} examples, but {len(problem)} targets")
        train = np.flatnonzero(problem.weights > 0)
        seed = integer_seed(self.random_state) % 2**31
        folder = None if self.run_dir is None else Path(self.run_dir)
        with bar("training", 1, self.progress) as update:
            study = Study(data, problem, seed, folder, progress=lambda a, b: update(a, total=b))
            [result] = learner.fit(study, [Fold(train, train[:0])])
        assert result.fitted is not None
        self.fitted_, self.tried_ = result.fitted, result.tried
        self.reading_, self.about_, self.training_ = {}, {}, None
        self.evaluation_ = out_of_fold(problem, result, data, learner)
        return self

    def prepare(self, X: Data) -> Decompositions:
        """The data, to fit and predict on as often as needed: nothing is decomposed twice.

        >>> import saen
        >>> threads = saen.generate_threads(40, seed=1)
        >>> model = saen.PartCountsClassifier()
        >>> prepared = model.prepare(threads)
        >>> model.fit(prepared, threads.targets).predict(prepared).shape
        (40,)
        """
        self.validate()
        return Decompositions.of(X, self.learner().spec.takes)

    # -- the fitted model --------------------------------------------------------------------

    def fitted_model(self) -> Fitted:
        """The fitted model; `NotFittedError` without one."""
        check_is_fitted(self, "fitted_")
        return self.fitted_

    def _data(self, X: Data) -> Decompositions:
        """New data for the fitted model."""
        return Decompositions.of(X, self.fitted_model().takes)

    @property
    def target_names_(self) -> list[str]:
        """The names of several targets."""
        return list(self.fitted_.targets.names)

    @property
    def decomposition_(self) -> Decomposition | None:
        """The fitted decomposition, None over a `Hierarchy`; of a blend, its first member's."""
        return self.fitted_.decomposition

    @property
    def schema_(self) -> Hierarchy:
        """The hierarchy of the training data without its objects."""
        return self.fitted_.schema

    @property
    def feature_names_(self) -> NDArray[np.object_]:
        """What `fit` saw on the bottom level, in order: labels as text, then real attributes.

        >>> import saen
        >>> path = saen.Graphs.from_edge_lists([[(0, 1)]] * 2, node_labels=["C", "O"] * 2)
        >>> model = saen.SAENClassifier(epochs=0).fit(path, ["a", "b"])
        >>> model.feature_names_.tolist(), model.schema_.names
        (['C', 'O'], ('nodes', 'ego graphs', 'graphs'))
        """
        attributes = self.schema_.attributes
        labels = [] if attributes.vocabulary is None else map(str, attributes.vocabulary)
        width = 0 if attributes.vectors is None else attributes.vectors.shape[1]
        return np.array([*labels, *(f"attribute {n}" for n in range(width))], dtype=object)

    def compress(self, X: Data, *, lower_inverse: bool = False) -> Any:
        """New data decomposed and compressed as those of `fit`; a blend's by its first member."""
        data = self._data(X)
        return self.fitted_.compress(data, lower_inverse=lower_inverse)

    def embed(self, X: Data, level: int | None = None) -> Floats:
        """Vectors of the examples, or of all objects of a level, (objects, width).

        Networks give the activations that their output layers see; part counts at most 256
        features; a blend the vectors of all members, side by side.
        """
        data = self._data(X)
        return self.fitted_.embed(data, level)

    def explain(self, X: Data, index: int | str = 0, *, target: Any = None, k: int = 10) -> Any:
        """What every part of an example contributes to its prediction: see `saen.explain`.

        >>> import saen
        >>> threads = saen.generate_threads(40, average_nodes=10, seed=1)
        >>> model = saen.PartCountsClassifier().fit(threads, threads.targets)
        >>> model.explain(threads, 3).index
        3
        """
        return explanation.explain(self, X, index, target=target, k=k)

    def remember(self, X: Data) -> Self:
        """Keep what `nearest` needs of the training graphs `X`, also in the model's file.

        These are the ids and content keys of rare parts, from which no graph can be read, but with
        which anybody can test whether a graph was among them.
        """
        check_is_fitted(self, "fitted_")
        self.training_ = TrainingGraphs.of(self._data(X).selected)
        return self

    def nearest(self, X: Data) -> NearestTraining:
        """The most similar training graph for each of some graphs, once `remember` has seen them.

        Raises `InputError` without them.

        >>> import saen
        >>> threads = saen.generate_threads(60, seed=1)
        >>> train, test = threads[:50], threads[45:]
        >>> model = saen.PartCountsClassifier().fit(train, train.targets).remember(train)
        >>> nearest = model.nearest(test)
        >>> nearest.ids[:5].tolist(), float(nearest.similarity[:5].min())
        (['45', '46', '47', '48', '49'], 1.0)
        """
        check_is_fitted(self, "fitted_")
        if self.training_ is None:
            raise InputError(
                "this model does not know its training graphs: call remember(X) after fit, or use "
                "saen train --nearest"
            )
        return self.training_.nearest(self._data(X).selected)

    def save(self, path: str | Path) -> int:
        """Write the fitted estimator to one file (no pickle); its size in bytes."""
        check_is_fitted(self, "fitted_")
        return files.save_estimator(self, path)

    @classmethod
    def load(cls, path: str | Path, *, vectors: str | Path | None = None) -> Self:
        """Read an estimator of this class that `save` wrote; see `saen.load`."""
        loaded = files.load_estimator(path, vectors=vectors)
        if not isinstance(loaded, cls):
            raise InputError(f"{path} holds a {type(loaded).__name__}, not a {cls.__name__}")
        return loaded

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        return tags


class ClassPredictor(ClassifierMixin, Estimator):
    """Predictions of classes."""

    regression = False

    @property
    def classes_(self) -> Array:
        """The classes in order, (C,), or (t, 2) of t targets."""
        classes: Array = self.fitted_.targets.classes  # type: ignore[attr-defined]
        return classes

    @property
    def temperature_(self) -> float:
        """By which the logits of every network, or of a blend's mean, are divided."""
        return self.fitted_.calibration.temperature

    def predict_proba(self, X: Data) -> Floats:
        """Calibrated class probabilities, (n, C); (n, t) of the second classes of t targets."""
        data = self._data(X)
        return self.fitted_.predictions(data)

    def predict(self, X: Data) -> Array:
        """The most probable class of every example, (n,), or (n, t) of several targets."""
        proba = self.predict_proba(X)
        return self.fitted_.targets.decide(proba)

    def predict_each(self, X: Data) -> Floats:
        """Probabilities by every network or member alone, (n, members, C or t)."""
        data = self._data(X)
        return self.fitted_.each(data)

    def predict_log_proba(self, X: Data) -> Floats:
        """Logarithms of the class probabilities."""
        logarithms: Floats = np.log(np.maximum(self.predict_proba(X), np.finfo(np.float64).tiny))
        return logarithms

    def decision_function(self, X: Data) -> Floats:
        """Log-odds of the second of two classes, (n,), or log-probabilities, (n, C).

        Of several targets, the log-odds of their second classes, (n, t).
        """
        proba = self.predict_proba(X)
        logits = logits_of(proba, several=self.fitted_.targets.several)
        return logits[:, 0] if self.classes_.shape == (2,) else logits

    def score(self, X: Data, y: ArrayLike | None, sample_weight: ArrayLike | None = None) -> float:
        """The accuracy; of several targets, the mean of theirs over the examples where known."""
        table = np.asarray(given(y))
        if table.ndim == 1:
            return float(super().score(X, table, sample_weight))
        right, weights = self.predict(X) == table, known_targets(table)
        if sample_weight is not None:
            weights = weights * np.asarray(sample_weight)[:, None]
        counted = weights.any(axis=0)
        return float(np.average(right[:, counted], axis=0, weights=weights[:, counted]).mean())


class NumberPredictor(RegressorMixin, Estimator):
    """Predictions of real numbers."""

    regression = True

    @property
    def errors_(self) -> Floats:
        """Absolute errors on the inner folds, (m,) or (m, k); none without inner folds."""
        errors = self.fitted_.calibration.errors
        k = len(self.target_names_)
        return np.empty((0, k) if k else 0) if errors is None else errors

    def predict(self, X: Data) -> Floats:
        """Predicted numbers, (n,) or (n, k)."""
        data = self._data(X)
        return self.fitted_.predictions(data)

    def predict_each(self, X: Data) -> Floats:
        """What every network or member predicts alone, (n, members) or (n, members, k)."""
        data = self._data(X)
        return self.fitted_.each(data)

    def predict_interval(self, X: Data, coverage: float = COVERAGE) -> tuple[Floats, Floats]:
        """Lower and upper ends of intervals around `predict`, (n,) or (n, k) each.

        They are as wide as the errors on inner folds ask for (conformal prediction): about a share
        `coverage` of new examples like those of `fit` lies inside. Intervals of a blend are wider
        where its members disagree, others all have one width, which is infinite where there are too
        few errors (a coverage of 90 % needs 9) or no inner folds.
        """
        each = self.fitted_.each(self._data(X))
        middle = self.fitted_.combined(each)
        radius = self.fitted_.calibration.radius(self.fitted_.spread(each), coverage)
        radius = np.asarray(np.inf) if radius is None else radius
        return middle - radius, middle + radius

    def score(self, X: Data, y: ArrayLike | None, sample_weight: ArrayLike | None = None) -> float:
        """R²; of several numbers, the mean of theirs over the examples where known."""
        from sklearn.metrics import r2_score  # slow to import

        true, predicted = as_numbers(given(y)), self.predict(X)
        columns = zip(
            true.reshape(len(true), -1).T, predicted.reshape(len(true), -1).T, strict=True
        )
        weights = np.ones(len(true)) if sample_weight is None else np.asarray(sample_weight)
        known = [(*pair, np.isfinite(pair[0])) for pair in columns]
        return float(np.mean([r2_score(a[i], b[i], sample_weight=weights[i]) for a, b, i in known]))


# -- networks -----------------------------------------------------------------------------------


class NetworkEstimator(NetworkArguments, Estimator):
    """Estimators over Shift Aggregate Extract Networks."""

    fitted_: FittedNetworks

    def learner(self) -> Learner:
        """Networks by these arguments."""
        return NetworkLearner(self, getattr(self, "class_weight", None))

    def on(self, device: str) -> Self:
        """The same on a device."""
        self.device = device
        return self

    @property
    def network_(self) -> Any:
        """The networks in PyTorch."""
        return self.fitted_.module

    @property
    def history_(self) -> History:
        """Curves of all networks, (epochs, networks); validation on what inner folds hold out."""
        return self.fitted_.history


@dataclass(eq=False, repr=False)
class SAENClassifier(ClassPredictor, NetworkEstimator):
    """Classify graphs and other structured data with Shift Aggregate Extract Networks.

    `X` is `Graphs`, a list of networkx graphs, of PyG `Data` or of RDKit molecules, whatever
    else the decomposition reads (`Documents`, `NestedData`), or a ready `Hierarchy`; `y` holds
    integers or strings, shape (n,); or, for several targets with two classes each, shape (n, t),
    with None or NaN where a target is unknown. Arguments that are `auto` are decided by
    `saen.learning.auto`.

    Parameters
    ----------
    decomposition : an object, a name, or a name with parameters such as
        `"neighbourhoods(depth=4)"`.
    radii, node_labels : parameters of a decomposition given by name; `auto` may be joined with
        others, as in `auto,degree`.
    hidden : sizes of the hidden layers of every level, bottom first, without the output layer.
    slope, normalisation, dropout, output_activation : see `saen.Architecture`.
    n_models : networks per inner fold (without inner folds: in all), which are averaged.
    epochs, batch_size, learning_rate, schedule, weight_decay : see `saen.Settings`; `batch_size`
        may be `auto` or `all`.
    min_count : labels that fewer training examples hold share one entry.
    inner_folds : networks are trained on each of these folds of the training examples and tested
        on the rest, which calibrates them; the model is their average. 1 is one split with a tenth,
        at most 10,000 examples, held out; 0 trains on all examples and calibrates nothing. `auto`:
        5 below 500 examples, 3 below 8,000, else 1.
    class_weight : None, `"balanced"`, or a dictionary.
    dtype : `float32` or `float64`.
    device : `auto`, `cpu`, `cuda`, ….
    run_dir : a folder where finished networks are kept: a second `fit` resumes from it.
    random_state : an integer gives the same result every time.
    progress : show a progress bar (None: on a terminal).

    After `fit`: `classes_`, `decomposition_`, `network_`, `history_`, `feature_names_` (the labels
    and attributes of the bottom level), `temperature_`, and `evaluation_`, the scores on what inner
    folds held out; of several targets, `classes_` has shape (t, 2), and there are `target_names_`.

    >>> import saen
    >>> threads = saen.generate_threads(60, seed=1)
    >>> model = SAENClassifier(epochs=10).fit(threads, threads.targets)
    >>> model.predict_proba(threads[:3]).shape
    (3, 2)
    """

    _: KW_ONLY
    class_weight: Any = parameter(None, dict, StrOptions({"balanced"}), None)


@dataclass(eq=False, repr=False)
class SAENRegressor(NumberPredictor, NetworkEstimator):
    """Predict real numbers for graphs and other structured data.

    Parameters as for `SAENClassifier`, without `class_weight`. `y` has shape (n,), or (n, k) with
    NaN where a number is unknown, and is standardised inside; predictions are averaged over the
    networks and come in y's own units. The errors on inner folds, `errors_`, give intervals.

    >>> import saen
    >>> threads = saen.generate_threads(40, seed=1)
    >>> model = SAENRegressor(epochs=5).fit(threads, threads.sizes)
    >>> model.predict(threads[:2]).shape
    (2,)
    """


@dataclass(eq=False, repr=False)
class SAENTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, SAENClassifier):
    """Learned vectors of graphs and other structured data as features for another estimator.

    Trains like `SAENClassifier`, by default three networks without inner folds; `transform` gives
    `embed(X)`, one row per example.

    >>> import saen
    >>> threads = saen.generate_threads(40, seed=1)
    >>> SAENTransformer(epochs=5).fit_transform(threads, threads.targets).shape
    (40, 96)
    """

    _: KW_ONLY
    n_models: int = parameter(3, Interval(Integral, 1, 10_000, closed="both"))
    inner_folds: int | str = parameter(
        0, Interval(Integral, 0, None, closed="left"), StrOptions({"auto"})
    )

    @property
    def _n_features_out(self) -> int:
        """What `get_feature_names_out` counts."""
        sizes = self.fitted_.arrays.architecture.layers[-1]
        return int(self.fitted_.n_models * sizes[-2 if len(sizes) > 1 else -1])

    def transform(self, X: Data) -> Floats:
        """The vectors of the examples, shape (n, n_models · width)."""
        return self.embed(X)


# -- part counts --------------------------------------------------------------------------------


class PartCountsEstimator(CountsArguments, Estimator):
    """Estimators over part counts."""

    fitted_: FittedCounts

    def learner(self) -> Learner:
        """Part counts by these arguments."""
        return CountsLearner(self, getattr(self, "class_weight", None))

    @property
    def model_(self) -> CountsModel:
        """Columns and coefficients."""
        return self.fitted_.model

    @property
    def depth_(self) -> int | None:
        """The depth (or number of radii less 1) whose parts are counted; None: all of them."""
        return self.model_.depth

    @property
    def C_(self) -> float | None:  # noqa: N802 - scikit-learn's name
        """The inverse strength of regularisation that was used; a forest has none."""
        return self.model_.C

    def unseen_share(self, X: Data) -> float:
        """The share of part occurrences in X, up to `depth_`, without a column in the model."""
        data = self._data(X)
        return self.fitted_.unseen_share(data)


@dataclass(eq=False, repr=False)
class PartCountsClassifier(ClassPredictor, PartCountsEstimator):
    """Classify graphs and other structured data by their part counts.

    Parameters
    ----------
    decomposition, radii, node_labels, encoding, max_thresholds, norm, min_graphs : see
        `PartCounts`.
    model : `linear`, or `forest`: decision trees over the shares of the most frequent parts and the
        number of all (a regressor's: over plain counts), for which `encoding`, `norm` and `C` do
        not apply.
    depth : count the parts of depths (or radii) up to this; None is all that the decomposition has,
        `auto` chooses on inner folds, for a forest from 0, 1 and 2. Applies to `neighbourhoods` and
        `ego`.
    C : inverse strength of regularisation; `auto` chooses on inner folds, from 1 in both
        directions as long as the score improves.
    inner_folds : of the training examples, to choose and to calibrate on; 1 is one split with a
        tenth held out, 0 is none (then `auto` is the largest depth and C = 1). `auto`: 5 below
        500 examples, 3 below 8,000, else 1.
    class_weight : None, `"balanced"`, or a dictionary.
    run_dir, random_state, progress : see `SAENClassifier`.

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


# -- blends: the default -------------------------------------------------------------------------


@dataclass(eq=False, repr=False)
class BlendEstimator(Estimator):
    """The default estimators: a blend of candidates."""

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

    def validate(self) -> None:
        """Raise `InputError` for an argument of the wrong type or out of range."""
        super().validate()
        choose_device(self.device)
        find_metric(self.metric, regression=self.regression)
        if isinstance(self.candidates, str):
            return
        if not len(self.candidates):
            raise InputError("a blend needs at least one candidate")
        for number, each in enumerate(self.candidates):
            if getattr(each, "regression", None) is not self.regression:
                kind = "regressors" if self.regression else "classifiers"
                raise InputError(
                    f"candidate {number}: {type(each).__name__}: a {type(self).__name__} needs "
                    f"candidates that are {kind} of saen"
                )
            each.validate()

    def on(self, device: str) -> Self:
        """The same on a device."""
        self.device = device
        return self

    def learner(self) -> Learner:
        """A blend of the candidates."""
        metric = (
            None if self.metric is None else find_metric(self.metric, regression=self.regression)
        )
        folds, known = self.inner_folds, self.candidates
        if not isinstance(known, str):
            given = [
                Candidate({"candidate": f"{number}: {type(each).__name__}"}, each.learner())
                for number, each in enumerate(known)
            ]
            return BlendLearner(
                lambda data, train: given, given[0].learner.spec, folds, metric, device=self.device
            )
        auto = self.decomposition == "auto"
        first = DecompositionSpec("neighbourhoods" if auto else self.decomposition, deep=True)
        listed = partial(
            default_candidates,
            decomposition=self.decomposition,
            numbers=self.regression,
            budget=self.budget,
            device=self.device,
        )
        return BlendLearner(listed, first, folds, metric, device=self.device)

    @property
    def members_(self) -> list[Member]:
        """Name, fitted model, weight and inner score of every member, largest weight first."""
        return self.fitted_.members

    @property
    def weights_(self) -> Floats:
        """The weights of the members, largest first, (members,)."""
        return np.array([member.weight for member in self.members_])


@dataclass(eq=False, repr=False)
class Classifier(ClassPredictor, BlendEstimator):
    """Classify graphs and other structured data: the default, with nothing to choose.

    Several models (linear models over part counts, and networks where they pay) are tried on inner
    folds of the training examples, weighted by log loss, or by `metric`, and averaged: automatic
    model selection and ensembling. Of several targets, all have the same members and weights.

    Parameters
    ----------
    candidates : estimators to choose from (`PartCountsClassifier`, `SAENClassifier`); `auto` is a
        list by the facts of the data, see `saen.learning.candidates`.
    decomposition : for `auto` candidates: one decomposition for all of them, such as `ego`.
    budget : for `auto` candidates: `quick` (part counts alone), `normal` (networks where they pay)
        or `thorough` (networks everywhere).
    inner_folds : of the training examples, to compare candidates on; 1 is one split with a tenth,
        at most 10,000 examples, held out. `auto`: 5 below 500 examples, 3 below 8,000, else 1.
    metric : what decides the weights, see `saen.learning.metrics`: the mean over inner folds, and
        the log loss where it is equal or not defined. By default the log loss alone.
    device : of the `auto` candidates' networks: `auto`, `cpu`, `cuda`, ….
    run_dir, random_state, progress : see `SAENClassifier`.

    After `fit`: `classes_`, `members_` (name, fitted model, weight and inner score, largest weight
    first), `tried_` (all candidates; inner scores are by `metric`, else accuracies), and
    `evaluation_`: the scores of the blend on what inner folds held out, with weights that other
    inner folds decided.

    >>> import saen
    >>> threads = saen.generate_threads(60, average_nodes=20, seed=1)
    >>> model = Classifier(budget="quick").fit(threads, threads.targets)
    >>> model.predict_proba(threads[:3]).shape, len(model.tried_)
    ((3, 2), 3)
    """


@dataclass(eq=False, repr=False)
class Regressor(NumberPredictor, BlendEstimator):
    """Predict real numbers for graphs and other structured data: the default.

    Parameters and attributes as for `Classifier`; without a `metric`, squared errors decide, and
    the inner scores are mean absolute errors. `y` has shape (n,), or (n, k) with NaN where unknown.

    >>> import saen
    >>> threads = saen.generate_threads(40, average_nodes=20, seed=1)
    >>> model = Regressor(budget="quick").fit(threads, threads.sizes)
    >>> model.predict(threads[:2]).shape
    (2,)
    """


# -- features -----------------------------------------------------------------------------------


@dataclass(eq=False, repr=False)
class PartCounts(TransformerMixin, EncodingArguments, BaseEstimator):
    """How often each unique part occurs in each example, as sparse features.

    `X` is whatever the estimators take: `Graphs`, a list of networkx graphs, of PyG `Data` or of
    RDKit molecules, other data that the decomposition reads, or a ready `Hierarchy`. Columns are
    fixed by `fit`: parts that it did not see have none. Equal parts are found by content key, all
    128 bits of it.

    Parameters
    ----------
    decomposition, radii, node_labels : as for `SAENClassifier`; the depth of `neighbourhoods`, if
        not given, is 5, or less for large collections.
    encoding : `counts`, or `unary`: a count c becomes the features "at least 1", …, "at least c",
        whose inner product is Σ min(x, y). Thresholds that no example of `fit` tells apart share
        a column, without any change of the inner products.
    max_thresholds : at most about so many columns per part in unary: the first thresholds exact,
        then ever wider apart, with counts between them interpolated.
    norm : `l2` divides rows by their length (in unary, that of the unary vector), None does not.
        Parts without a column count, so that inner products are those of the normalised kernel.
    min_graphs : leave out parts that fewer examples of `fit` have.

    After `fit`: `decomposition_` (None over a `Hierarchy`), `schema_`, `encoder_`, `parts_` (the
    compressed data, whose parts `get_feature_names_out` describes), `n_features_out_`, and
    `unseen_share_`: the share of part occurrences in the last `transform` that have no column.

    >>> from saen import Graphs
    >>> path, star = [(0, 1), (1, 2), (2, 3)], [(0, 1), (0, 2), (0, 3)]
    >>> graphs = Graphs.from_edge_lists([path, star], node_labels=["C"] * 8)
    >>> features = PartCounts("neighbourhoods(depth=1)", encoding="counts", norm=None)
    >>> features.fit_transform(graphs).toarray()
    array([[4., 0., 2., 2.],
           [4., 1., 3., 0.]])
    >>> unary = PartCounts("neighbourhoods(depth=1)", norm=None).fit_transform(graphs)
    >>> (unary @ unary.T).toarray().round(6)  # Σ min(x, y)
    array([[8., 6.],
           [6., 8.]])
    """

    decomposition_: Decomposition | None = field(init=False)
    schema_: Hierarchy = field(init=False)
    parts_: Compressed = field(init=False)
    encoder_: Encoder = field(init=False)
    n_features_out_: int = field(init=False)
    unseen_share_: float = field(init=False)

    def fit(self, X: Data, y: object = None) -> Self:
        """Fix the columns by the parts of these examples."""
        self._fit(X)
        return self

    def fit_transform(self, X: Data, y: object = None) -> sparse.csr_array:
        """`fit(X).transform(X)`, decomposed and compressed once."""
        return self._features(self._fit(X))

    def transform(self, X: Data) -> sparse.csr_array:
        """Features of examples, shape (n, `n_features_out_`), float64."""
        check_is_fitted(self, "encoder_")
        data = Decompositions.of(X, self._spec.takes)
        compressed = data.like(self.decomposition_, self.schema_)
        return self._features(count_parts(compressed))

    def get_feature_names_out(self, input_features: object = None) -> NDArray[np.object_]:
        """What every column counts: a role, the part in words, and a threshold.

        The digits after # are the first of the part's content key: they tell parts apart whose
        words are the same, and stay the same whatever the data.

        >>> from saen import Graphs
        >>> path = Graphs.from_edge_lists([[(0, 1), (1, 2)]], node_labels=["C", "O", "C"])
        >>> features = PartCounts("neighbourhoods(depth=1)", encoding="counts").fit(path)
        >>> [name.partition(" #")[0] for name in features.get_feature_names_out()]
        ['depth 0 > C', 'depth 0 > O', 'depth 1 > O next to C ×2', 'depth 1 > C next to O']
        """
        check_is_fitted(self, "encoder_")
        encoder, hierarchy = self.encoder_, self.parts_.hierarchy
        roles, level = self.schema_.relations[-1].alphabet, hierarchy.depth - 1
        places = {
            key: place for place, key in enumerate(map(tuple, self.parts_.keys[level].tolist()))
        }
        numbers = np.array([places[a, b] for _, a, b in encoder.ids.tolist()], dtype=np.int64)
        own = self.decomposition_
        words = (
            object_words(hierarchy, level, numbers, lambda label: label)
            if own is None
            else own.describe(hierarchy, level, numbers)
        )
        names = [
            f"{roles[role]} > {what} #{a:016x}"[: -len("00000000")]
            for (role, a, _), what in zip(encoder.ids.tolist(), words, strict=True)
        ]
        if self.encoding == "unary":
            pairs = zip(segment_ids(encoder.starts), encoder.thresholds.tolist(), strict=True)
            names = [f"{names[part]} ≥ {threshold}" for part, threshold in pairs]
        return np.array(names, dtype=np.object_)

    def _fit(self, X: Data) -> PartTable:
        self.validate()
        data = Decompositions.of(X, self._spec.takes)
        if len(data) == 0:
            raise InputError("nothing to fit: the data are empty")
        decomposed = data.decomposed(self._spec, np.arange(len(data)))
        table = count_parts(decomposed.compressed)
        self.decomposition_, self.schema_ = decomposed.decomposition, decomposed.schema
        self.parts_ = decomposed.compressed
        self.encoder_ = self._encoder(table, np.bincount(table.top, minlength=table.n_rows))
        self.n_features_out_ = self.encoder_.n_columns
        return table

    def _features(self, table: PartTable) -> sparse.csr_array:
        encoded = self.encoder_.encode(table)
        self.unseen_share_ = encoded.unseen_share(table)
        rows = feature_rows(encoded, table, self.n_features_out_)
        return narrow(scaled_rows(rows, self.encoder_, table, self.norm)[table.top])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        return tags
