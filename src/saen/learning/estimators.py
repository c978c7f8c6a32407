"""scikit-learn estimators: arguments → a `Learner`; `fit` is one fold that trains on everything."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import partial
from numbers import Integral
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import is_regressor
from sklearn.utils.validation import check_is_fitted

from saen._util.arrays import Array, Floats, segment_ids
from saen._util.progress import bar
from saen._util.seeds import integer_seed
from saen.data.collection import known_targets
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
from saen.learning.files import Origin
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
from saen.learning.parameters import (
    SEED,
    Interval,
    Parameters,
    documented,
    parameter,
    validate,
)
from saen.learning.problem import Problem, as_numbers, given
from saen.learning.sklearn_types import (
    BaseEstimator,
    ClassifierMixin,
    ClassNamePrefixFeaturesOutMixin,
    RegressorMixin,
    TransformerMixin,
)
from saen.learning.splits import Fold
from saen.network.devices import choose_device
from saen.network.settings import History


@dataclass(eq=False, repr=False)
class Estimator(Parameters, BaseEstimator, ABC):
    """What all estimators share: fitting, and the model that was fitted.

    Parameters
    ----------
    run_dir
        Folder for finished stages: an interrupted `fit` continues from there.
    random_state
        Random seed. An integer gives the same model every time.
    progress
        Whether to show a progress bar. None: on a terminal.
    """

    _: KW_ONLY
    run_dir: str | Path | None = parameter(None, str, Path, None, runtime=True)
    random_state: int | np.random.RandomState | None = parameter(0, *SEED, runtime=True)
    progress: bool | None = parameter(None, bool, None, runtime=True)

    fitted_: Fitted = field(init=False)
    """The fitted model, which knows nothing of the arguments."""
    tried_: list[dict[str, Any]] = field(init=False)
    """Candidates that were compared on inner folds, with scores and weights; empty if none."""
    evaluation_: Evaluation | None = field(init=False)
    """Predictions and scores on the inner folds; None without inner folds."""
    origin_: Origin = field(init=False)
    """What `saen train` and `remember` keep of the training data."""

    @abstractmethod
    def learner(self) -> Learner:
        """The `Learner` that these arguments describe."""

    def fit(
        self,
        X: Data,
        y: ArrayLike | None,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : Graphs, list or Hierarchy
            The training examples.
        y : array-like of shape (n,) or (n, t)
            Targets: one per example, or several, with None or NaN where a target is unknown.
        sample_weight : array-like of shape (n,) or None, default=None
            Weights of the examples in training, calibration and the losses that weigh the
            candidates of a blend, though not in a `metric`. Examples of weight 0 are ignored.
        groups : array-like of shape (n,) or None, default=None
            Examples of one group stay together in inner folds.

        Returns
        -------
        Self
            The fitted estimator.
        """
        validate(self)
        problem = Problem.of(
            y, regression=is_regressor(self), sample_weight=sample_weight, groups=groups
        )
        fit_problem(self, X, problem)
        return self

    def prepare(self, X: Data) -> Decompositions:
        """Decompose data once, to fit and predict on them several times.

        Parameters
        ----------
        X : Graphs, list or Hierarchy
            The examples.

        Returns
        -------
        Decompositions
            The data in a form that `fit`, `predict` and `cross_validate` take in place of `X`.

        Examples
        --------
        >>> import saen
        >>> threads = saen.generate_threads(40, seed=1)
        >>> model = saen.PartCountsClassifier()
        >>> prepared = model.prepare(threads)
        >>> model.fit(prepared, threads.targets).predict(prepared).shape
        (40,)
        """
        validate(self)
        return Decompositions.of(X, self.learner().spec.takes)

    # -- the fitted model --------------------------------------------------------------------

    def _data(self, X: Data) -> Decompositions:
        """New data for the fitted model; `NotFittedError` without one."""
        check_is_fitted(self, "fitted_")
        return Decompositions.of(X, self.fitted_.takes)

    @property
    def target_names_(self) -> list[str]:
        """The names of several targets."""
        return list(self.fitted_.targets.names)

    @property
    def decomposition_(self) -> Decomposition | None:
        """The fitted decomposition (of a blend's first member); None if `X` was a `Hierarchy`."""
        return self.fitted_.decomposition

    @property
    def schema_(self) -> Hierarchy:
        """The hierarchy of the training data without its objects."""
        return self.fitted_.schema

    @property
    def feature_names_(self) -> NDArray[np.object_]:
        """Node labels as text, then real attributes, in the order of the bottom level.

        Examples
        --------
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
        """Decompose and compress new data like the training data (of a blend's first member).

        Parameters
        ----------
        X : Graphs, list or Hierarchy
            The examples.
        lower_inverse : bool, default=False
            Whether to keep the unique object of every object below the top level, too.

        Returns
        -------
        Compressed
            The compressed hierarchy.
        """
        data = self._data(X)
        return self.fitted_.compress(data, lower_inverse=lower_inverse)

    def predict_each(self, X: Data) -> Floats:
        """Predict by every network, or member of a blend, alone.

        Parameters
        ----------
        X : Graphs, list or Hierarchy
            The examples.

        Returns
        -------
        ndarray of shape (n, members, C), (n, members, t) or (n, members)
            Probabilities, as `predict_proba` has them, or numbers, as `predict` has them.
        """
        data = self._data(X)
        return self.fitted_.each(data)

    def embed(self, X: Data, level: int | None = None) -> Floats:
        """Compute vectors of the examples, or of all objects of a level.

        Parameters
        ----------
        X : Graphs, list or Hierarchy
            The examples.
        level : int or None, default=None
            The level whose objects are embedded, 0 for the bottom. None: the examples.

        Returns
        -------
        ndarray of shape (objects, width)
            For networks, the activations below the output layer; for part counts, at most 256
            features; for a blend, the vectors of all members side by side.
        """
        data = self._data(X)
        return self.fitted_.embed(data, level)

    def explain(
        self, X: Data, index: int | str = 0, *, target: Any = None, n_parts: int = 10
    ) -> Any:
        """Explain the prediction for one example; see `saen.explain`.

        Parameters
        ----------
        X : Graphs, list or Hierarchy
            The data that hold the example.
        index : int or str, default=0
            Its position, or its id.
        target : object, default=None
            The class, or the name of the target, to explain. None: the predicted class.
        n_parts : int, default=10
            Number of parts to list.

        Returns
        -------
        Explanation
            The contribution of every part and node.

        Examples
        --------
        >>> import saen
        >>> threads = saen.generate_threads(40, average_nodes=10, seed=1)
        >>> model = saen.PartCountsClassifier().fit(threads, threads.targets)
        >>> model.explain(threads, 3).index
        3
        """
        from saen.explanations.explanation import explain  # builds on models

        return explain(self, X, index, target=target, n_parts=n_parts)

    def remember(self, X: Data) -> Self:
        """Keep ids and content keys of the training graphs, which `nearest` needs.

        They are saved with the model. No graph can be read from them, but anybody who has a graph
        can test whether it was among the training graphs.

        Parameters
        ----------
        X : Graphs
            The training graphs.

        Returns
        -------
        Self
            The estimator.
        """
        check_is_fitted(self, "fitted_")
        known = TrainingGraphs.of(self._data(X).selected)
        self.origin_ = replace(self.origin_, training=known)
        return self

    def nearest(self, X: Data) -> NearestTraining:
        """Find the most similar training graph of each example, after `remember`.

        Parameters
        ----------
        X : Graphs
            The examples.

        Returns
        -------
        NearestTraining
            Ids and similarities.

        Raises
        ------
        InputError
            If the model does not know its training graphs.

        Examples
        --------
        >>> import saen
        >>> threads = saen.generate_threads(60, seed=1)
        >>> train, test = threads[:50], threads[45:]
        >>> model = saen.PartCountsClassifier().fit(train, train.targets).remember(train)
        >>> nearest = model.nearest(test)
        >>> nearest.ids[:5].tolist(), float(nearest.similarity[:5].min())
        (['45', '46', '47', '48', '49'], 1.0)
        """
        check_is_fitted(self, "fitted_")
        if self.origin_.training is None:
            raise InputError(
                "this model does not know its training graphs: call remember(X) after fit"
            )
        return self.origin_.training.nearest(self._data(X).selected)

    def save(self, path: str | Path) -> int:
        """Write the fitted estimator to one file (no pickle).

        Parameters
        ----------
        path : str or path
            The file to write.

        Returns
        -------
        int
            Its size in bytes.
        """
        check_is_fitted(self, "fitted_")
        return files.save_estimator(self, path)

    @classmethod
    def load(cls, path: str | Path, *, vectors: str | Path | None = None) -> Self:
        """Read an estimator of this class from a file that `save` wrote; see `saen.load`.

        Parameters
        ----------
        path : str or path
            The file.
        vectors : str, path or None, default=None
            The file of word vectors that the model was trained with, if any.

        Returns
        -------
        Self
            The fitted estimator.
        """
        loaded = files.load_estimator(path, vectors=vectors)
        if not isinstance(loaded, cls):
            raise InputError(f"{path} holds a {type(loaded).__name__}, not a {cls.__name__}")
        return loaded

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        return tags


def fit_problem(
    estimator: Estimator,
    X: Data,
    problem: Problem,
    learner: Learner | None = None,
    *,
    last: bool | None = None,
) -> None:
    """Fit an estimator to targets that are coded already, or with another learner than its own.

    The `last` fit to the same `Decompositions` may use them up.
    """
    learner = learner or estimator.learner()
    data = Decompositions.of(X, learner.spec.takes)
    if len(data) == 0:
        raise InputError("nothing to fit: the data are empty")
    if len(data) != len(problem):
        raise InputError(f"{len(data)} examples, but {len(problem)} targets")
    train = np.flatnonzero(problem.weights > 0)
    seed = integer_seed(estimator.random_state) % 2**31
    folder = None if estimator.run_dir is None else Path(estimator.run_dir)
    identical = learner.identical(data, train)
    with bar("training", 1, estimator.progress) as update:
        study = Study(data, problem, seed, folder, progress=lambda a, b: update(a, total=b))
        study.last = data is not X if last is None else last
        [result] = learner.fit(study, [Fold(train, train[:0])])
    assert result.fitted is not None
    estimator.fitted_, estimator.tried_ = result.fitted, result.tried
    estimator.origin_ = Origin()
    estimator.evaluation_ = out_of_fold(problem, result, data.ids, identical)


class ClassPredictor(ClassifierMixin, Estimator):
    """Predictions of classes."""

    @property
    def classes_(self) -> Array:
        """The classes in order: shape (C,), or (t, 2) for t targets."""
        classes = self.fitted_.targets.known_classes
        assert classes is not None
        return classes

    @property
    def temperature_(self) -> float:
        """The temperature that calibrates probabilities: logits are divided by it."""
        return self.fitted_.calibration.temperature

    def predict_proba(self, X: Data) -> Floats:
        """Predict calibrated class probabilities.

        Parameters
        ----------
        X : Graphs, list or Hierarchy
            The examples.

        Returns
        -------
        ndarray of shape (n, C) or (n, t)
            The probability of each class; for t targets, of the second class of each.
        """
        data = self._data(X)
        return self.fitted_.predictions(data)

    def predict(self, X: Data) -> Array:
        """Predict the most probable class of every example.

        Parameters
        ----------
        X : Graphs, list or Hierarchy
            The examples.

        Returns
        -------
        ndarray of shape (n,) or (n, t)
            The classes; one column per target if there are several.
        """
        proba = self.predict_proba(X)
        return self.fitted_.targets.decide(proba)

    def predict_log_proba(self, X: Data) -> Floats:
        """Compute the logarithms of `predict_proba`.

        Parameters
        ----------
        X : Graphs, list or Hierarchy
            The examples.

        Returns
        -------
        ndarray of shape (n, C) or (n, t)
            The logarithms.
        """
        logarithms: Floats = np.log(np.maximum(self.predict_proba(X), np.finfo(np.float64).tiny))
        return logarithms

    def decision_function(self, X: Data) -> Floats:
        """Compute log-odds or log-probabilities.

        Parameters
        ----------
        X : Graphs, list or Hierarchy
            The examples.

        Returns
        -------
        ndarray of shape (n,), (n, C) or (n, t)
            With two classes, the log-odds of the second; with more, log-probabilities; with
            several targets, the log-odds of the second class of each.
        """
        proba = self.predict_proba(X)
        logits = logits_of(proba, several=self.fitted_.targets.several)
        return logits[:, 0] if self.classes_.shape == (2,) else logits

    def score(self, X: Data, y: ArrayLike | None, sample_weight: ArrayLike | None = None) -> float:
        """Compute the accuracy (with several targets, the mean over known targets of each).

        Parameters
        ----------
        X : Graphs, list or Hierarchy
            The examples.
        y : array-like of shape (n,) or (n, t)
            Their targets.
        sample_weight : array-like of shape (n,) or None, default=None
            Weights of the examples.

        Returns
        -------
        float
            The accuracy.
        """
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

    @property
    def errors_(self) -> Floats:
        """Absolute errors on the inner folds, shape (m,) or (m, k); m = 0 without them."""
        errors = self.fitted_.calibration.errors
        k = len(self.target_names_)
        return np.empty((0, k) if k else 0) if errors is None else errors

    def predict(self, X: Data) -> Floats:
        """Predict real values.

        Parameters
        ----------
        X : Graphs, list or Hierarchy
            The examples.

        Returns
        -------
        ndarray of shape (n,) or (n, k)
            The predictions, in the units of `y`.
        """
        data = self._data(X)
        return self.fitted_.predictions(data)

    def predict_interval(self, X: Data, coverage: float = COVERAGE) -> tuple[Floats, Floats]:
        """Predict intervals, by conformal prediction from the errors on inner folds.

        On average over data from the training distribution, a share `coverage` of the true values
        lies inside. Intervals of a blend are wider where its members disagree; others all have the
        same width, which is infinite without inner folds or with too few errors (a coverage of 0.9
        needs 9).

        Parameters
        ----------
        X : Graphs, list or Hierarchy
            The examples.
        coverage : float, default=0.9
            The share of true values that the intervals shall contain.

        Returns
        -------
        tuple of ndarray
            Lower and upper ends, each of shape (n,) or (n, k).
        """
        each = self.fitted_.each(self._data(X))
        middle = self.fitted_.combined(each)
        radius = self.fitted_.calibration.radius(self.fitted_.spread(each), coverage)
        radius = np.asarray(np.inf) if radius is None else radius
        return middle - radius, middle + radius

    def score(self, X: Data, y: ArrayLike | None, sample_weight: ArrayLike | None = None) -> float:
        """Compute R² (with several targets, the mean over known values of each).

        Parameters
        ----------
        X : Graphs, list or Hierarchy
            The examples.
        y : array-like of shape (n,) or (n, k)
            Their targets.
        sample_weight : array-like of shape (n,) or None, default=None
            Weights of the examples.

        Returns
        -------
        float
            R².
        """
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
        """The `Learner` that these arguments describe."""
        return NetworkLearner(self, getattr(self, "class_weight", None))

    @property
    def network_(self) -> Any:
        """The networks in PyTorch."""
        return self.fitted_.module

    @property
    def history_(self) -> History:
        """Learning curves of all networks, (epochs, networks); validation is on inner folds."""
        return self.fitted_.history


@documented
@dataclass(eq=False, repr=False)
class SAENClassifier(ClassPredictor, NetworkEstimator):
    """Classify graphs and other structured data with Shift Aggregate Extract Networks.

    `X` is `Graphs`, a list of networkx graphs, PyG `Data` or RDKit molecules, other data that the
    decomposition reads (`Documents`, `NestedData`), or a `Hierarchy`. `y` holds integers or
    strings, shape (n,), or several targets of two classes each, shape (n, t), with None or NaN
    where a target is unknown; then `predict_proba` has shape (n, t), `classes_` has shape (t, 2),
    and `target_names_` has their names. Arguments set to `auto` are resolved by
    `saen.learning.auto`.

    Parameters
    ----------
    class_weight
        Weights of classes. `balanced`: inversely proportional to their frequencies.

    Examples
    --------
    >>> import saen
    >>> threads = saen.generate_threads(60, seed=1)
    >>> model = SAENClassifier(epochs=10).fit(threads, threads.targets)
    >>> model.predict_proba(threads[:3]).shape
    (3, 2)
    """

    _: KW_ONLY
    class_weight: Any = parameter(None, dict, {"balanced"}, None)


@documented
@dataclass(eq=False, repr=False)
class SAENRegressor(NumberPredictor, NetworkEstimator):
    """Predict real values for graphs and other structured data with SAEN networks.

    `X` is as for `SAENClassifier`; `y` has shape (n,), or (n, k) with NaN where a value is unknown.
    It is standardised internally; predictions are averaged over the networks, in the units of `y`.

    Examples
    --------
    >>> import saen
    >>> threads = saen.generate_threads(40, seed=1)
    >>> model = SAENRegressor(epochs=5).fit(threads, threads.sizes)
    >>> model.predict(threads[:2]).shape
    (2,)
    """


@documented
@dataclass(eq=False, repr=False)
class SAENTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, SAENClassifier):
    """Turn graphs and other structured data into learned vectors for another estimator.

    Trains like `SAENClassifier`, by default three networks without inner folds; `transform` gives
    one row per example.

    Examples
    --------
    >>> import saen
    >>> threads = saen.generate_threads(40, seed=1)
    >>> SAENTransformer(epochs=5).fit_transform(threads, threads.targets).shape
    (40, 96)
    """

    _: KW_ONLY
    n_models: int = parameter(3, Interval(Integral, 1, 10_000, "both"))
    inner_folds: int | str = parameter(0, Interval(Integral, 0, None, "left"), {"auto"})

    @property
    def _n_features_out(self) -> int:
        """What `get_feature_names_out` counts."""
        sizes = self.fitted_.arrays.architecture.layers[-1]
        return int(self.fitted_.n_models * sizes[-2 if len(sizes) > 1 else -1])

    def transform(self, X: Data) -> Floats:
        """Compute the vectors of the examples, as `embed` does.

        Parameters
        ----------
        X : Graphs, list or Hierarchy
            The examples.

        Returns
        -------
        ndarray of shape (n, n_models · width)
            One row per example.
        """
        return self.embed(X)


# -- part counts --------------------------------------------------------------------------------


class PartCountsEstimator(CountsArguments, Estimator):
    """Estimators over part counts."""

    fitted_: FittedCounts

    def learner(self) -> Learner:
        """The `Learner` that these arguments describe."""
        return CountsLearner(self, getattr(self, "class_weight", None))

    @property
    def model_(self) -> CountsModel:
        """The linear model or forest: its columns and coefficients."""
        return self.fitted_.model

    @property
    def depth_(self) -> int | None:
        """The depth (or number of radii less 1) up to which parts are counted; None: all."""
        return self.model_.depth

    @property
    def C_(self) -> float | None:  # noqa: N802 - scikit-learn's name
        """The inverse strength of regularisation; None for a forest."""
        return self.model_.C

    def unseen_share(self, X: Data) -> float:
        """Compute the share of part occurrences, up to `depth_`, that the model does not know.

        Parameters
        ----------
        X : Graphs, list or Hierarchy
            The examples.

        Returns
        -------
        float
            The share.
        """
        data = self._data(X)
        return self.fitted_.unseen_share(data)


@documented
@dataclass(eq=False, repr=False)
class PartCountsClassifier(ClassPredictor, PartCountsEstimator):
    """Classify graphs and other structured data by the counts of their unique parts.

    `X` and `y` are as for `SAENClassifier`. The model is logistic regression, or a forest.

    Parameters
    ----------
    class_weight
        Weights of classes. `balanced`: inversely proportional to their frequencies.

    Examples
    --------
    >>> import saen
    >>> threads = saen.generate_threads(60, seed=1)
    >>> model = PartCountsClassifier().fit(threads, threads.targets)
    >>> model.predict_proba(threads[:3]).shape
    (3, 2)
    """

    _: KW_ONLY
    class_weight: Any = parameter(None, dict, {"balanced"}, None)


@documented
@dataclass(eq=False, repr=False)
class PartCountsRegressor(NumberPredictor, PartCountsEstimator):
    """Predict real values for graphs and other structured data by their part counts.

    `X` and `y` are as for `SAENRegressor`. The model is ridge regression, or a forest. Counts are
    not normalised by default, since many quantities grow with the size of an example.

    Examples
    --------
    >>> import saen
    >>> threads = saen.generate_threads(40, seed=1)
    >>> model = PartCountsRegressor().fit(threads, threads.sizes)
    >>> model.predict(threads[:2]).shape
    (2,)
    """

    _: KW_ONLY
    norm: str | None = parameter(None, {"l2"}, None)


# -- blends: the default -------------------------------------------------------------------------


@dataclass(eq=False, repr=False)
class BlendEstimator(Estimator):
    """The default estimators: a blend of candidates.

    Parameters
    ----------
    candidates
        Estimators to choose from, such as `PartCountsClassifier()` and `SAENClassifier()`. `auto`:
        a list that depends on the data.
    decomposition
        With `auto` candidates: one decomposition for all of them, by name or as an object.
    budget
        With `auto` candidates: `quick` (part counts only), `normal` (networks where they pay) or
        `thorough` (networks everywhere).
    inner_folds
        Inner folds of the training examples to compare candidates on. 1 is a single split with a
        tenth held out (at most 10,000 examples). `auto`: 5 below 500 examples, 3 below 8,000 (or
        with groups, several targets or a rare class), else 1.
    metric
        The metric that decides the weights, such as `roc_auc`; ties go to the lower log loss
        (regression: squared error). None: that loss alone.
    device
        Where to train the networks among `auto` candidates: `auto`, `cpu`, `cuda`, ….
    """

    _: KW_ONLY
    candidates: str | Sequence[Any] = parameter("auto", {"auto"}, list, tuple, runtime=True)
    decomposition: str | Decomposition = parameter("auto", str, Decomposition)
    budget: str = parameter("normal", set(BUDGETS))
    inner_folds: int | str = parameter("auto", Interval(Integral, 1, None, "left"), {"auto"})
    metric: str | None = parameter(None, str, None)
    device: str = parameter("auto", str, runtime=True)

    def _check(self) -> None:
        """Raise `InputError` for an unknown device or metric, or candidates of the other kind."""
        super()._check()
        choose_device(self.device)
        find_metric(self.metric, regression=is_regressor(self))
        if isinstance(self.candidates, str):
            return
        if not len(self.candidates):
            raise InputError("a blend needs at least one candidate")
        for number, each in enumerate(self.candidates):
            if not isinstance(each, Estimator) or is_regressor(each) != is_regressor(self):
                kind = "regressors" if is_regressor(self) else "classifiers"
                raise InputError(
                    f"candidate {number}: {type(each).__name__}: a {type(self).__name__} needs "
                    f"candidates that are {kind} of saen"
                )
            validate(each)

    def learner(self) -> Learner:
        """The `Learner` that these arguments describe."""
        regression = is_regressor(self)
        metric = None if self.metric is None else find_metric(self.metric, regression=regression)
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
            numbers=regression,
            budget=self.budget,
            device=self.device,
        )
        return BlendLearner(listed, first, folds, metric, device=self.device)

    @property
    def members_(self) -> list[Member]:
        """Name, fitted model, weight and CV score of every member, largest weight first."""
        return self.fitted_.members

    @property
    def weights_(self) -> Floats:
        """The weights of the members, largest first."""
        return np.array([member.weight for member in self.members_])


@documented
@dataclass(eq=False, repr=False)
class Classifier(ClassPredictor, BlendEstimator):
    """Classify graphs and other structured data: the default, with nothing to choose.

    Automatic model selection and ensembling (AutoML): several candidates (linear models over part
    counts, and networks where they pay) are compared on inner folds of the training examples,
    weighted by log loss or by `metric`, and averaged. `X` and `y` are as for `SAENClassifier`; with
    several targets, all have the same members and weights.

    Examples
    --------
    >>> import saen
    >>> threads = saen.generate_threads(60, average_nodes=20, seed=1)
    >>> model = Classifier(budget="quick").fit(threads, threads.targets)
    >>> model.predict_proba(threads[:3]).shape, len(model.tried_)
    ((3, 2), 3)
    """


@documented
@dataclass(eq=False, repr=False)
class Regressor(NumberPredictor, BlendEstimator):
    """Predict real values for graphs and other structured data: the default.

    As `Classifier`, with squared errors instead of log losses; the scores in `tried_` are mean
    absolute errors. `X` and `y` are as for `SAENRegressor`.

    Examples
    --------
    >>> import saen
    >>> threads = saen.generate_threads(40, average_nodes=20, seed=1)
    >>> model = Regressor(budget="quick").fit(threads, threads.sizes)
    >>> model.predict(threads[:2]).shape
    (2,)
    """


# -- features -----------------------------------------------------------------------------------


@documented
@dataclass(eq=False, repr=False)
class PartCounts(TransformerMixin, EncodingArguments, BaseEstimator):
    """Count how often each unique part occurs in each example: sparse features.

    `X` is as for `SAENClassifier`. `fit` fixes the columns: parts that it did not see have none.
    Equal parts are found by content key, all 128 bits of it.

    Examples
    --------
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
    """The fitted decomposition; None if `X` was a `Hierarchy`."""
    schema_: Hierarchy = field(init=False)
    """The hierarchy of the training data without its objects."""
    parts_: Compressed = field(init=False)
    """The compressed training data, whose parts `get_feature_names_out` describes."""
    encoder_: Encoder = field(init=False)
    """The columns."""
    n_features_out_: int = field(init=False)
    """The number of columns."""
    unseen_share_: float = field(init=False)
    """The share of part occurrences in the last `transform` that have no column."""

    def fit(self, X: Data, y: object = None) -> Self:
        """Fix the columns by the parts of these examples.

        Parameters
        ----------
        X : Graphs, list or Hierarchy
            The training examples.
        y : object, default=None
            Ignored.

        Returns
        -------
        Self
            The fitted transformer.
        """
        self._fit(X)
        return self

    def fit_transform(self, X: Data, y: object = None) -> sparse.csr_array:
        """Fit and transform examples, which are decomposed and compressed once.

        Parameters
        ----------
        X : Graphs, list or Hierarchy
            The training examples.
        y : object, default=None
            Ignored.

        Returns
        -------
        csr_array of shape (n, n_features_out_)
            The features.
        """
        return self._features(self._fit(X))

    def transform(self, X: Data) -> sparse.csr_array:
        """Compute the features of examples.

        Parameters
        ----------
        X : Graphs, list or Hierarchy
            The examples.

        Returns
        -------
        csr_array of shape (n, n_features_out_)
            The features.
        """
        check_is_fitted(self, "encoder_")
        data = Decompositions.of(X, self._spec.takes)
        compressed = data.like(self.decomposition_, self.schema_)
        return self._features(count_parts(compressed))

    def get_feature_names_out(self, input_features: object = None) -> NDArray[np.object_]:
        """Describe every column: a role, the part in words, and a threshold.

        The digits after # are the first of the part's content key. They distinguish parts with the
        same words and do not depend on the other data.

        Parameters
        ----------
        input_features : object, default=None
            Ignored.

        Returns
        -------
        ndarray of str
            One name per column.

        Examples
        --------
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
        validate(self)
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
