"""scikit-learn estimators over networks: graphs in, classes, numbers or vectors out."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import KW_ONLY, dataclass, field, replace
from numbers import Integral, Real
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.model_selection import ShuffleSplit, StratifiedShuffleSplit
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from saen._util.arrays import Array, Floats, Ints
from saen._util.lazy import LazyModule
from saen._util.progress import bar
from saen._util.seeds import derive_seed
from saen.data.compression import Compressed
from saen.data.hierarchy import Hierarchy
from saen.decompositions import Decomposition
from saen.errors import InputError
from saen.io.coerce import as_data
from saen.learning.calibration import logits_of, probabilities, temperature_of, tempered
from saen.learning.defaults import default_batch_size, default_hidden, default_inner_folds
from saen.learning.fitted import Fitted
from saen.learning.load import Savable
from saen.learning.parameters import Parameters
from saen.learning.parameters import parameter as _parameter
from saen.learning.predictors import ClassPredictor, NumberPredictor, class_factors
from saen.learning.preparation import Data, DecompositionSpec, Prepared, compress_like, prepare
from saen.learning.splits import inner_folds
from saen.learning.targets import Targets, as_numbers, encode_classes, given, target_names
from saen.network.architecture import NORMALISATIONS, Architecture
from saen.network.devices import CPU, choose_device
from saen.network.forward import TrainedNetworks
from saen.network.settings import DivergenceWarning, History, Part, Settings

if TYPE_CHECKING:
    import torch

    from saen.network import ensemble, loss, model, training
    from saen.network.ensemble import PartResults, Plan
    from saen.network.loss import Task
    from saen.network.model import SAEN
else:  # fitting needs torch, predicting on a CPU does not
    torch = LazyModule("torch")
    ensemble, loss, model, training = (
        LazyModule(f"saen.network.{name}") for name in ("ensemble", "loss", "model", "training")
    )

_COUNT = Interval(Integral, 1, None, closed="left")


class InterruptedTrainingWarning(UserWarning):
    """Training was stopped by Ctrl-C; the estimator holds the last complete epoch."""


MAX_UNCOMPRESSED = 10_000
"""Entries of an example that is predicted without merging its identical parts."""

MIN_INNER_EXAMPLES = 10
"""Fewer training examples are not split once more to calibrate on."""


@dataclass(eq=False, repr=False)
class NetworkEstimator(Savable, Fitted, Parameters, BaseEstimator, ABC):
    """What the estimators share: from data to trained networks and back to vectors."""

    decomposition: str | Decomposition = _parameter(
        "ego", str, HasMethods(["fit", "decompose", "costs"])
    )
    _: KW_ONLY
    radii: str | Sequence[int] = _parameter("auto", StrOptions({"auto"}), "array-like")
    node_labels: str = _parameter("auto", str)
    hidden: str | Sequence[Sequence[int]] = _parameter("auto", StrOptions({"auto"}), list, tuple)
    slope: float = _parameter(0.2, Real)
    normalisation: str = _parameter("batch", StrOptions(set(NORMALISATIONS)))
    dropout: float = _parameter(0.0, Interval(Real, 0, 1, closed="left"))
    output_activation: bool = _parameter(False, "boolean")
    n_models: int = _parameter(3, _COUNT)
    epochs: int = _parameter(40, Interval(Integral, 0, None, closed="left"))
    batch_size: int | str = _parameter("auto", _COUNT, StrOptions({"auto", "all"}))
    learning_rate: float = _parameter(0.01, Interval(Real, 0, None, closed="neither"))
    schedule: str = _parameter("cosine", StrOptions({"constant", "cosine"}))
    weight_decay: float = _parameter(0.0, Interval(Real, 0, None, closed="left"))
    min_count: int = _parameter(1, _COUNT)
    patience: int | None = _parameter(None, _COUNT, None)
    validation_fraction: float = _parameter(0.1, Interval(Real, 0, 1, closed="neither"))
    inner_folds: int | str = _parameter(
        "auto", Interval(Integral, 0, None, closed="left"), StrOptions({"auto"})
    )
    dtype: str = _parameter("float32", StrOptions({"float32", "float64"}))
    device: str = _parameter("auto", str, runtime=True)
    checkpoint: str | Path | None = _parameter(None, str, Path, None, runtime=True)
    checkpoint_every: int = _parameter(10, _COUNT, runtime=True)
    callback: Callable[[int, History], object] | None = _parameter(
        None, callable, None, runtime=True
    )
    warm_start: bool = _parameter(False, "boolean", runtime=True)
    random_state: int | np.random.RandomState | None = _parameter(0, "random_state", runtime=True)
    progress: bool | None = _parameter(None, "boolean", None, runtime=True)

    decomposition_: Decomposition | None = field(init=False)
    schema_: Hierarchy = field(init=False)
    _network: SAEN | TrainedNetworks = field(init=False)
    history_: History = field(init=False)
    inner_history_: History = field(init=False)
    target_names_: list[str] = field(init=False)

    # -- arguments ---------------------------------------------------------------------------

    def validate(self) -> None:
        """Raise `InputError` for an argument of the wrong type or out of range."""
        super().validate()
        choose_device(self.device)

    @property
    def spec(self) -> DecompositionSpec:
        """The decomposition that the arguments ask for."""
        return DecompositionSpec.of(self.decomposition, self.radii, self.node_labels)

    # -- fitting -----------------------------------------------------------------------------

    def prepare(self, X: Data, *, progress: Callable[[int], object] | None = None) -> Prepared:
        """Decompose and compress data, as `fit` does before it trains.

        `fit` accepts the result in place of the data, and so do `predict` and the like of an
        estimator that was fitted on it. `progress` is called with the number of examples done.

        >>> import saen
        >>> threads = saen.generate_threads(40, seed=1)
        >>> model = SAENClassifier(epochs=2)
        >>> prepared = model.prepare(threads)
        >>> model.fit(prepared, threads.targets).predict(prepared).shape
        (40,)
        """
        self.validate()
        return prepare(X, self.spec, progress)

    def architecture(self, hierarchy: Hierarchy, n_outputs: int) -> Architecture:
        """The shape of networks with `n_outputs` units for hierarchies like this one."""
        hidden = default_hidden(hierarchy.depth) if isinstance(self.hidden, str) else self.hidden
        if len(hidden) != hierarchy.depth + 1:
            raise InputError(
                f"hidden needs {hierarchy.depth + 1} lists of sizes, one per level, not {hidden}"
            )
        return Architecture.over(
            hierarchy,
            [*hidden[:-1], (*hidden[-1], n_outputs)],
            slope=self.slope,
            normalisation=self.normalisation,
            dropout=self.dropout,
            output_activation=self.output_activation,
        )

    def training_settings(self, n: int, seed: int = 0) -> Settings:
        """How to train on `n` examples; `seed` decides which of them share a batch."""
        batch_size = self.batch_size
        if isinstance(batch_size, str):
            batch_size = default_batch_size(n) if batch_size == "auto" else max(n, 1)
        return Settings(
            epochs=self.epochs,
            batch_size=batch_size,
            learning_rate=self.learning_rate,
            schedule=self.schedule,
            weight_decay=self.weight_decay,
            patience=self.patience,
            seed=derive_seed(seed, "run") % 2**31,
        )

    def plan(self, prepared: Prepared, n_outputs: int, seed: int = 0) -> Plan:
        """How the arguments say to train networks with `n_outputs` units on prepared data."""
        self.validate()
        return ensemble.Plan(
            prepared.compressed,
            self.architecture(prepared.compressed.hierarchy, n_outputs),
            self.training_settings(len(prepared), seed),
            n_models=self.n_models,
            min_count=self.min_count,
            device=torch.device(choose_device(self.device)),
            dtype=getattr(torch, self.dtype),
        )

    def inner_parts(
        self,
        train: Ints,
        targets: Array,
        seed: int,
        *,
        name: tuple[int, ...] = (),
        groups: Array | None = None,
    ) -> list[Part]:
        """The training examples split once more, as `inner_folds` says, to calibrate on.

        `name` is that of the part that the examples are from; examples of one of the `groups` stay
        together.
        """
        number = self.inner_folds
        if isinstance(number, str):
            number = default_inner_folds(len(train))
        if number == 0 or len(train) < MIN_INNER_EXAMPLES:
            return []
        state = derive_seed((seed, *name), "calibration") % 2**31
        folds = inner_folds(
            targets[train], number, state, None if groups is None else groups[train]
        )
        return [
            Part((*name, fold), train[fit], train[check]) for fold, (fit, check) in enumerate(folds)
        ]

    def _fit(self, X: Data, task: Task) -> Self:
        """Train on `task`, whose weights have shape (n, 1)."""
        data = X if isinstance(X, Prepared) else as_data(X, self.spec.takes)
        n = len(data)
        if n == 0:
            raise InputError("nothing to fit: the data are empty")
        if len(task.targets) != n:
            raise InputError(f"{n} examples, but {len(task.targets)} targets")
        prepared = self._prepare_again(data) if self._continues else self.prepare(data)
        seed = integer_seed(self.random_state)
        plan = self.plan(prepared, task.n_outputs, seed)
        earlier = self.network_ if self._continues else None
        self.network_ = self._first_networks(plan, seed)
        self.decomposition_ = prepared.decomposition
        # Names, roles and vocabulary, without any object: what later data must agree with.
        self.schema_ = plan.compressed.hierarchy[[]]
        weights = np.repeat(task.weights, self.n_models, axis=1)
        validation = None
        if self.patience is not None:
            held_out = self._held_out(task, seed)
            weights, validation = weights * ~held_out, weights * held_out
        with _training_bar(self.epochs, self.progress, self.callback) as epoch_done:
            self.history_ = training.train(
                self.network_,
                plan.compressed,
                replace(task, weights=weights, validation=validation),
                plan.settings,
                min_count=self.min_count,
                checkpoint=self.checkpoint,
                every=self.checkpoint_every,
                progress=epoch_done,
            )
        if earlier is not None:
            self.network_.remember(earlier)
        # Nothing is calibrated yet; what an earlier fit knew belongs to other networks.
        self.inner_history_ = History()
        self._calibrate([], [], task)
        if not self.history_.interrupted and self.epochs > 0:
            try:
                self._train_inner(plan, task, seed)
            except KeyboardInterrupt:
                self.history_.interrupted = True
        if self.history_.interrupted:
            warnings.warn(
                f"training was interrupted after {len(self.history_.loss)} of {self.epochs} "
                "epochs; the model keeps what it has learned so far",
                InterruptedTrainingWarning,
                stacklevel=3,
            )
        return self

    @property
    def _continues(self) -> bool:
        """Whether `fit` continues with the networks of the last one."""
        return self.warm_start and hasattr(self, "_network")

    def _prepare_again(self, data: Data) -> Prepared:
        """The data as those of the last fit: its vocabulary and roles stay."""
        self.validate()
        return Prepared(self.spec, self.decomposition_, self.compress(data))

    def _first_networks(self, plan: Plan, seed: int) -> SAEN:
        """Networks to train: new ones, or those of the last fit."""
        if not self._continues:
            return plan.network([(seed, model) for model in range(self.n_models)])
        if (self.network_.architecture, self.network_.n_models) != (
            plan.architecture,
            plan.n_models,
        ):
            raise InputError(
                "warm_start continues the networks of the last fit, but the arguments ask for "
                "others: keep n_models, hidden and the targets, or set warm_start=False"
            )
        return deepcopy(self.network_).to(plan.device, plan.dtype)

    def _train_inner(self, plan: Plan, task: Task, seed: int) -> None:
        """Train networks on inner folds, and calibrate by what they predict for the rest."""
        parts = self.inner_parts(np.flatnonzero(task.weights[:, 0] > 0), task.targets, seed)
        if not parts:
            return
        until = int(np.median(self.best_epoch_))  # as the networks kept of their training
        weights = task.class_weights
        file = None if self.checkpoint is None else Path(self.checkpoint)
        total = self.epochs * self.n_models * len(parts)
        with bar("calibrating", total, self.progress) as update, warnings.catch_warnings():
            warnings.simplefilter("ignore", DivergenceWarning)  # said of the networks themselves
            done = 0

            def advance(network_epochs: int) -> None:
                nonlocal done
                done += network_epochs
                update(done)

            results = ensemble.PartTraining(
                replace(plan, settings=replace(plan.settings, patience=None)),
                replace(
                    task,
                    class_weights=None
                    if weights is None
                    else np.repeat(weights[:, None], len(parts), axis=1),
                ),
                parts,
                seed=seed,
                until=until,
                test_curves=True,
                # The checkpoint of the networks themselves has been found to belong to this run.
                folder=None if file is None else file.parent,
                stage="" if file is None else f"{file.stem}-inner-{len(parts)}",
                progress=advance,
            ).run()
        self.inner_history_ = _inner_history(results)
        self._calibrate(parts, results.outputs, task)

    @abstractmethod
    def _calibrate(self, parts: Sequence[Part], outputs: Sequence[Floats], task: Task) -> None:
        """Learn from the outputs for the test examples of inner parts, (tests, M, k) each."""

    def _held_out(self, task: Task, seed: int) -> NDArray[np.bool_]:
        """For every model the examples that early stopping looks at, (n, M)."""
        n = len(task.targets)
        held_out = np.zeros((n, self.n_models), dtype=np.bool_)
        stratified = task.loss != "squares" and task.targets.ndim == 1
        splitter = StratifiedShuffleSplit if stratified else ShuffleSplit
        for model in range(self.n_models):
            state = derive_seed((seed, model), "held out") % 2**31
            split = splitter(1, test_size=self.validation_fraction, random_state=state)
            try:
                held_out[next(split.split(np.empty(n), task.targets))[1], model] = True
            except ValueError as error:
                raise InputError(f"cannot hold out a part for early stopping: {error}") from None
        return held_out

    # -- using -------------------------------------------------------------------------------

    @property
    def network_(self) -> SAEN:
        """The networks in PyTorch; those of a file are made when first asked for."""
        if isinstance(self._network, TrainedNetworks):
            self._network = model.SAEN.from_state(self._network.architecture, self._network.state)
        return self._network

    @network_.setter
    def network_(self, networks: SAEN | TrainedNetworks) -> None:
        self._network = networks

    @property
    def weights_(self) -> TrainedNetworks:
        """The networks as arrays, as they are now, for the forward pass in numpy."""
        networks = self._network
        return networks if isinstance(networks, TrainedNetworks) else TrainedNetworks.of(networks)

    @property
    def best_epoch_(self) -> NDArray[np.int64]:
        """The epoch, from 1, whose weights each network has, (n_models,).

        With `patience`, that of the lowest loss on the held-out part, else the last one.
        """
        losses = np.array(self.history_.validation_loss)
        if self.patience is None or len(losses) == 0:
            return np.full(self._network.n_models, len(self.history_.loss))
        best: NDArray[np.int64] = np.argmin(losses, axis=0) + 1
        return best

    def compress(self, X: Data, *, lower_inverse: bool = False) -> Compressed:
        """New data decomposed and compressed as those of `fit`.

        `lower_inverse` keeps, for the objects of the lower levels too, which unique object each is.
        """
        check_is_fitted(self, "_network")
        return compress_like(X, self.decomposition_, self.schema_, lower_inverse=lower_inverse)

    def _decomposed_alone(self, X: Data) -> Hierarchy | None:
        """A single small example, not compressed: that would take longer than it saves."""
        check_is_fitted(self, "_network")
        decomposition = self.decomposition_
        if decomposition is None or isinstance(X, Prepared):
            return None
        data = as_data(X, decomposition.takes)
        if isinstance(data, Hierarchy) or len(data) != 1:
            return None
        small = decomposition.costs(data).sum() <= MAX_UNCOMPRESSED
        return decomposition.decompose(data) if small else None

    def _outputs(self, X: Data) -> tuple[Array, NDArray[np.int64]]:
        """Outputs of the unique examples, (rows, M, outputs), and the row of every example."""
        hierarchy, rows = self._decomposed_alone(X), np.zeros(1, dtype=np.int64)
        if hierarchy is None:
            compressed = self.compress(X)
            hierarchy, rows = compressed.hierarchy, compressed.top.astype(np.int64)
        result = self._forward(hierarchy)
        _check_finite(result, rows)
        return result, rows

    def _forward(self, hierarchy: Hierarchy, level: int | None = None) -> Array:
        """Outputs of all networks, or their representations of a level, (objects, M, d)."""
        networks = self._network
        if not isinstance(networks, TrainedNetworks) and networks.device.type != CPU:
            return training.outputs(networks, hierarchy, level=level).double().cpu().numpy()
        return self.weights_.outputs(hierarchy, level).astype(np.float64)

    def embed(self, X: Data, level: int | None = None) -> Floats:
        """The learned vectors of the objects of a level, shape (objects, n_models · width).

        `level` None is the top: one row per example, the activations that the output layer sees.
        Lower levels give one row per original object, in the order of the decomposition.
        """
        compressed = self.compress(X, lower_inverse=True)
        depth = compressed.hierarchy.depth
        number = depth if level is None else level
        if not 0 <= number <= depth:
            raise InputError(f"levels are 0 … {depth}, not {level}")
        unique = self._forward(compressed.hierarchy, number)
        unique = unique.reshape(len(unique), unique.shape[1] * unique.shape[2])
        what = "example" if number == depth else f"object (level {number})"
        _check_finite(unique, compressed.unique_of(number), what)
        return compressed.decompress(number, unique)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        return tags


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
        classes, codes = encode_classes(y, names)
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
        return self._fit(
            X,
            loss.Task.classification(
                codes,
                weights,
                n_classes=n_classes,
                class_weights=self.class_weights(codes, self.classes_, weights[:, 0]),
            ),
        )

    def class_weights(self, codes: Array, classes: Array, weights: Floats) -> Floats | None:
        """The factor of every class in the loss, from the examples with a weight.

        Shape (C,); for t targets (2t,), the first classes of all before the second ones. It is 1,
        and of no effect, for classes without such examples.
        """
        if self.class_weight is None:
            return None
        return class_factors(self.class_weight, codes, classes, weights).T.ravel()

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
    squares = np.where(known, values - mean, 0.0) ** 2
    deviation = np.sqrt((counted * squares).sum(axis=0) / total)
    return mean, np.where(deviation > 0, deviation, 1.0)


def _inner_history(results: PartResults) -> History:
    assert results.test_loss is not None
    assert results.test_accuracy is not None
    return History(
        loss=results.loss.tolist(),
        validation_loss=results.test_loss.tolist(),
        validation_accuracy=results.test_accuracy.tolist(),
    )


def _check_finite(values: Floats, rows: Ints, what: str = "example") -> None:
    """Raise `InputError`, naming the first example or object, if an output is NaN or infinite.

    `values` has one row per unique example, `rows` the row of every example.
    """
    finite = np.isfinite(values).all(axis=tuple(range(1, values.ndim)))
    if not np.all(finite):
        bad = np.flatnonzero(~np.asarray(finite)[rows])
        raise NotFiniteError(int(bad[0]), len(bad), what)


class NotFiniteError(InputError):
    """The outputs for some examples, `first` of them the first, are NaN or infinite."""

    def __init__(self, first: int, count: int, what: str = "example") -> None:
        others = f" (and for {count - 1:,} others)" if count > 1 else ""
        super().__init__(
            f"the output for {what} {first} is NaN or infinite{others}: its attributes "
            "are probably far outside the range that the model was trained on"
        )
        self.first, self.count = first, count


@contextmanager
def _training_bar(
    epochs: int, shown: bool | None, callback: Callable[[int, History], object] | None
) -> Iterator[Callable[[int, History], bool]]:
    """A progress bar over epochs with the training loss; the callback says whether to stop."""
    with bar("training", epochs, shown) as update:

        def epoch_done(epoch: int, history: History) -> bool:
            update(epoch, f"loss {np.mean(history.loss[-1]):.3f}")
            return callback is not None and bool(callback(epoch, history))

        yield epoch_done


def sample_weights(sample_weight: ArrayLike | None, n: int) -> Floats:
    """One finite weight per example, not negative and not all zero, shape (n, 1)."""
    if sample_weight is None:
        return np.ones((n, 1))
    weights: Floats = _check_sample_weight(
        sample_weight, np.empty((n, 1)), dtype=np.float64, ensure_non_negative=True
    )
    if not weights.any():
        raise InputError("sample_weight is zero everywhere: there is nothing to learn from")
    return weights[:, None]


def integer_seed(random_state: int | np.random.RandomState | None) -> int:
    """A seed from scikit-learn's kinds of random state; the global state is left alone."""
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1)[0])
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31))
    return int(random_state)
