"""scikit-learn estimators over networks: graphs in, classes, numbers or vectors out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils._param_validation import Interval, StrOptions

from saen._util.arrays import Array, Floats
from saen._util.lazy import LazyModule
from saen.errors import InputError
from saen.learning.calibration import logits_of, probabilities, temperature_of, tempered
from saen.learning.network_estimator import NetworkEstimator
from saen.learning.parameters import parameter as _parameter
from saen.learning.predictors import ClassPredictor, NumberPredictor, class_factors
from saen.learning.preparation import Data
from saen.learning.targets import (
    Targets,
    as_numbers,
    encode_classes,
    given,
    mean_and_scale,
    sample_weights,
    target_names,
)
from saen.network.settings import Part

if TYPE_CHECKING:
    from saen.network import loss
    from saen.network.loss import Task
else:  # fitting needs torch, predicting on a CPU does not
    loss = LazyModule("saen.network.loss")


@dataclass(eq=False, repr=False)
class SAENClassifier(ClassPredictor, NetworkEstimator):
    """Classify graphs and other structured data with Shift Aggregate Extract Networks.

    `X` is `Graphs`, a list of networkx graphs, of PyG `Data` or of RDKit molecules, whatever
    else the decomposition reads (`Documents`, `NestedData`), or a ready `Hierarchy`; `y` holds
    integers or strings, shape (n,); or, for several targets with two classes each, shape (n, t),
    with None or NaN where a target is unknown. What the arguments leave open is decided by
    `saen.learning.defaults`.

    Parameters
    ----------
    decomposition : an object, a name, or a name with parameters such as
        `"neighbourhoods(depth=4)"`.
    radii, node_labels : parameters of a decomposition given by name; `auto` may be joined with
        others, as in `auto,degree`.
    hidden : sizes of the hidden layers of every level, bottom first, without the output layer.
    slope, normalisation, dropout, output_activation : see `saen.Architecture`.
    n_models : networks to train; their probabilities are averaged.
    epochs, batch_size, learning_rate, schedule, weight_decay : see `saen.Settings`; `batch_size`
        may be `auto` or `all`.
    min_count : labels that fewer training examples hold share one entry.
    patience, validation_fraction : stop early on a held-out part, if `patience` is not None.
    class_weight : None, `"balanced"`, or a dictionary.
    inner_folds : of the training examples, to calibrate on: as many networks again are trained on
        each, and tested on the rest; 1 is one split with a tenth, at most 10,000 examples,
        held out, 0 is none. `auto`: 3 below 2,000 examples, else 1.
    dtype : `float32` or `float64`.
    device : `auto`, `cpu`, `cuda`, ….
    checkpoint, checkpoint_every : a file to resume from, rewritten every so many epochs.
    callback : called after every epoch with its number, from 1, and the `History` of all losses and
        accuracies so far; training stops when it returns True.
    warm_start : a second `fit` continues the networks of the first, with its vocabulary, for
        `epochs` more.
    random_state : an integer gives the same result every time.
    progress : show a progress bar (None: on a terminal).

    After `fit`: `classes_`, `decomposition_`, `network_`, `history_`, `best_epoch_`,
    `feature_names_` (the labels and attributes of the bottom level); `temperature_`, by which
    the logarithms of probabilities are divided, and `inner_history_`, the curves of the inner
    folds; of several targets, `classes_` has shape (t, 2), and there are `target_names_`.

    >>> import saen
    >>> threads = saen.generate_threads(60, seed=1)
    >>> model = SAENClassifier(epochs=10).fit(threads, threads.targets)
    >>> model.predict_proba(threads[:3]).shape
    (3, 2)
    """

    _: KW_ONLY
    class_weight: Any = _parameter(None, dict, StrOptions({"balanced"}), None)

    classes_: Array = field(init=False)
    temperature_: float = field(init=False)

    def fit(self, X: Data, y: Targets, sample_weight: ArrayLike | None = None) -> SAENClassifier:
        """Train on data X with classes y, shape (n,), or (n, t) for t targets of two classes."""
        self.validate()
        y = given(y)
        names = target_names(y) if np.ndim(y) == 2 else None
        classes, codes = encode_classes(y)
        n_classes = classes.shape[-1]
        if n_classes < 2:
            raise InputError(f"a classifier needs at least two classes, y holds {n_classes} class")
        if self._continues and not np.array_equal(classes, self.classes_):
            raise InputError(
                f"warm_start continues with the classes {', '.join(map(str, self.classes_.flat))}: "
                "y must hold the same ones"
            )
        self.classes_ = classes
        self.target_names_ = names or []
        weights = sample_weights(sample_weight, len(codes))
        return self._fit(X, loss.Task.classification(codes, weights, n_classes=n_classes))

    def class_weights(self, codes: Array, classes: Array, parts: Sequence[Array]) -> Floats | None:
        """The factor of every class in the loss of networks trained on these parts of the examples.

        Shape (C, parts); for t targets (2t, parts), the first classes of all before the second
        ones. Examples outside a part have no say in its factors.
        """
        if self.class_weight is None:
            return None
        factors = [class_factors(self.class_weight, codes[part], classes) for part in parts]
        return np.column_stack([each.T.ravel() for each in factors])

    def _class_weights(self, task: Task, parts: Sequence[Array]) -> Floats | None:
        return self.class_weights(task.targets, self.classes_, parts)

    def _calibrate(self, parts: Sequence[Part], outputs: Sequence[Floats], task: Task) -> None:
        self.temperature_ = 1.0
        if parts:
            tests = np.concatenate([part.test for part in parts])
            each = probabilities(np.concatenate(outputs), several=self.several_)
            codes, weights = task.targets[tests], task.weights[tests, 0]
            self.temperature_ = temperature_of(each.mean(axis=1), codes, weights)

    def predict_each(self, X: Data) -> Floats:
        """Class probabilities by every network alone, not calibrated, (n, n_models, classes).

        Of several targets, the probabilities of their second classes, (n, n_models, t).
        """
        unique, rows = self._outputs(X)
        return probabilities(unique, several=self.several_)[rows]

    def combine(self, each: Floats) -> Floats:
        """The calibrated mean of what `predict_each` gives, (n, classes) or (n, t)."""
        return tempered(each.mean(axis=1), self.temperature_, several=self.several_)

    def predict_proba(self, X: Data) -> Floats:
        """Class probabilities, averaged over the networks and calibrated, shape (n, classes).

        Of several targets, the probabilities of their second classes, (n, t).
        """
        unique, rows = self._outputs(X)
        return self.combine(probabilities(unique, several=self.several_))[rows]

    def decision_function(self, X: Data) -> Floats:
        """Log-odds of the second of two classes, (n,), or log-probabilities, (n, classes).

        Of several targets, the log-odds of their second classes, (n, t).
        """
        if self.several_:
            return logits_of(self.predict_proba(X), several=True)
        logarithms = self.predict_log_proba(X)
        return logarithms[:, 1] - logarithms[:, 0] if len(self.classes_) == 2 else logarithms


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

    mean_: Array = field(init=False)
    scale_: Array = field(init=False)
    errors_: Array = field(init=False)

    def fit(self, X: Data, y: Targets, sample_weight: ArrayLike | None = None) -> SAENRegressor:
        """Train on data X with numbers y, shape (n,) or (n, k)."""
        self.validate()
        y = given(y)
        values = as_numbers(y)
        if len(values) == 0:
            raise InputError("nothing to fit: y is empty")
        weights = sample_weights(sample_weight, len(values))
        self.target_names_ = target_names(y) if values.ndim == 2 else []
        if not self._continues:
            self.mean_, self.scale_ = mean_and_scale(values, weights[:, 0])
        standard = ((values - self.mean_) / self.scale_).reshape(len(values), -1)
        return self._fit(X, loss.Task.regression(standard, weights))

    def predict_each(self, X: Data) -> Floats:
        """What every network predicts alone, shape (n, n_models) or (n, n_models, k)."""
        unique, rows = self._outputs(X)
        return self._rescaled(unique)[rows]

    def predict(self, X: Data) -> Floats:
        """Predicted numbers, shape (n,) or (n, k)."""
        unique, rows = self._outputs(X)
        return self._rescaled(unique.mean(axis=1))[rows]

    def _calibrate(self, parts: Sequence[Part], outputs: Sequence[Floats], task: Task) -> None:
        self.errors_ = np.empty((0, *np.shape(self.mean_)))
        if parts:
            tests = np.concatenate([part.test for part in parts])
            wrong = np.concatenate(outputs).mean(axis=1) - task.targets[tests]
            self.errors_ = np.abs(wrong).reshape(-1, *np.shape(self.mean_)) * self.scale_

    def _rescaled(self, values: Array) -> Floats:
        """Outputs of networks in the units of y, (…, k), or (…,) where y was flat."""
        rows = values[..., 0] if np.ndim(self.mean_) == 0 else values
        with np.errstate(over="ignore", invalid="ignore"):
            result: Floats = rows * self.scale_ + self.mean_
        if not np.isfinite(result).all():
            raise InputError("a predicted number is too large for float64: rescale the targets")
        return result


@dataclass(eq=False, repr=False)
class SAENTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, SAENClassifier):
    """Learned vectors of graphs and other structured data as features for another estimator.

    Trains like `SAENClassifier`; `transform` gives `embed(X)`, one row per example.

    >>> import saen
    >>> threads = saen.generate_threads(40, seed=1)
    >>> SAENTransformer(epochs=5).fit_transform(threads, threads.targets).shape
    (40, 96)
    """

    _: KW_ONLY
    inner_folds: int | str = _parameter(
        0, Interval(Integral, 0, None, closed="left"), StrOptions({"auto"})
    )

    @property
    def _n_features_out(self) -> int:
        """What `get_feature_names_out` counts."""
        sizes = self._network.architecture.layers[-1]
        return int(self._network.n_models * sizes[-2 if len(sizes) > 1 else -1])

    def transform(self, X: Data) -> Floats:
        """The vectors of the examples, shape (n, n_models · width)."""
        return self.embed(X)
