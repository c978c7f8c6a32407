"""scikit-learn estimators: graphs in, classes, numbers or vectors out."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, softmax
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    ClassNamePrefixFeaturesOutMixin,
    RegressorMixin,
    TransformerMixin,
)
from sklearn.model_selection import ShuffleSplit, StratifiedShuffleSplit
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from saen._util.arrays import Array
from saen._util.progress import bar
from saen.data.compression import Compressed, compress, compress_graphs
from saen.data.hierarchy import Hierarchy
from saen.decompositions import Decomposition, make_decomposition
from saen.decompositions.registry import decomposition_class
from saen.errors import InputError
from saen.io.coerce import as_data
from saen.learning.defaults import modern_batch_size, modern_hidden, modern_labels, modern_radii
from saen.network.batches import hierarchy_and_top
from saen.network.loss import Task
from saen.network.model import SAEN, Architecture, derive_seed
from saen.network.training import History, Settings, outputs, train

Data = Any
"""What a decomposition takes (graphs of any library, documents, …), or a `Hierarchy`."""


@dataclass(frozen=True)
class Prepared:
    """Data taken apart and collapsed, to fit on more than once: what `prepare` gives."""

    decomposition: Decomposition | None
    compressed: Compressed

    def __len__(self) -> int:
        return len(self.compressed)


class InterruptedTrainingWarning(UserWarning):
    """Training was stopped by Ctrl-C; the estimator holds the last whole epoch."""


class _Estimator(BaseEstimator):
    """What the estimators share: from structures to trained networks and back to vectors."""

    decomposition_: Decomposition | None
    schema_: Hierarchy
    network_: SAEN
    history_: History

    def __init__(
        self,
        decomposition: str | Decomposition = "ego",
        *,
        radii: str | Sequence[int] = "auto",
        node_labels: str = "auto",
        hidden: str | Sequence[Sequence[int]] = "auto",
        slope: float = 0.2,
        normalisation: str = "batch",
        dropout: float = 0.0,
        n_models: int = 3,
        epochs: int = 40,
        batch_size: int | str = "auto",
        learning_rate: float = 0.01,
        schedule: str = "cosine",
        weight_decay: float = 0.0,
        min_count: int = 1,
        patience: int | None = None,
        validation_fraction: float = 0.1,
        device: str = "auto",
        dtype: str = "float32",
        checkpoint: str | Path | None = None,
        checkpoint_every: int = 10,
        random_state: int | np.random.RandomState | None = 0,
        progress: bool | None = None,
    ) -> None:
        self.decomposition = decomposition
        self.radii = radii
        self.node_labels = node_labels
        self.hidden = hidden
        self.slope = slope
        self.normalisation = normalisation
        self.dropout = dropout
        self.n_models = n_models
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.schedule = schedule
        self.weight_decay = weight_decay
        self.min_count = min_count
        self.patience = patience
        self.validation_fraction = validation_fraction
        self.device = device
        self.dtype = dtype
        self.checkpoint = checkpoint
        self.checkpoint_every = checkpoint_every
        self.random_state = random_state
        self.progress = progress

    # -- fitting -----------------------------------------------------------------------------

    def _fit(self, X: Data, task: _Targets, sample_weight: ArrayLike | None) -> Self:
        self._check_arguments()
        structures = X if isinstance(X, Prepared) else as_data(X, self._takes())
        n = len(structures)
        if n == 0:
            raise InputError("nothing to fit: the collection is empty")
        if len(task.values) != n:
            raise InputError(f"{n} structures, but {len(task.values)} targets")
        weights = _checked_weights(sample_weight, n)
        prepared = self.prepare(structures)
        self.decomposition_, compressed = prepared.decomposition, prepared.compressed
        # Names, roles and vocabulary, without any object: what later structures must agree with.
        self.schema_ = compressed.hierarchy[[]]
        seed = _seed(self.random_state)
        self.network_ = self._network(
            compressed.hierarchy, task.n_outputs, [(seed, model) for model in range(self.n_models)]
        )
        training = np.repeat(weights[:, None], self.n_models, axis=1)
        validation = None
        if self.patience is not None:
            held = self._held_out(task, n, seed)
            training, validation = training * ~held, training * held
        with _training_bar(self.epochs, self.progress) as shown:
            self.history_ = train(
                self.network_,
                compressed,
                task.task(training, validation),
                self._settings(n, seed),
                min_count=self.min_count,
                checkpoint=self.checkpoint,
                every=self.checkpoint_every,
                progress=shown,
            )
        if self.history_.interrupted:
            warnings.warn(
                f"training was interrupted after {len(self.history_.loss)} of {self.epochs} "
                "epochs; what was learned so far is kept",
                InterruptedTrainingWarning,
                stacklevel=3,
            )
        return self

    def _check_arguments(self) -> None:
        """Raise for arguments of the wrong kind, by name."""
        for name, least in (("epochs", 0), ("n_models", 1), ("min_count", 1), ("patience", 1)):
            value = getattr(self, name)
            whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
            if not (whole and value >= least) and not (name == "patience" and value is None):
                raise InputError(f"{name} must be a whole number from {least} on, not {value!r}")
        if not isinstance(self.node_labels, str):
            raise InputError(
                f"node_labels is a string such as 'node,degree', not {self.node_labels!r}"
            )
        for name in ("radii", "hidden"):
            if not isinstance(getattr(self, name), str | Sequence | np.ndarray):
                raise InputError(f"{name} is 'auto' or a list, not {getattr(self, name)!r}")

    def _takes(self) -> str:
        """What the decomposition takes apart."""
        chosen = self.decomposition
        if not isinstance(chosen, str):
            return chosen.takes
        return decomposition_class(chosen).takes

    def prepare(self, X: Data, *, progress: Callable[[int], object] | None = None) -> Prepared:
        """Take structures apart and collapse them, as `fit` does before it trains.

        `fit` takes what this gives in place of the structures, and so do `predict` and the like of
        an estimator that was fitted on it. `progress` is called with the number of structures
        done.

        >>> import saen
        >>> threads = saen.generate_threads(40, seed=1)
        >>> model = SAENClassifier(epochs=2)
        >>> prepared = model.prepare(threads)
        >>> model.fit(prepared, threads.targets).predict(prepared).shape
        (40,)
        """
        if isinstance(X, Prepared):
            return X
        structures = as_data(X, self._takes())
        if isinstance(structures, Hierarchy):
            return Prepared(None, compress(structures))
        fitted = self._chosen_decomposition(structures).fit(structures)
        compressed = compress_graphs(structures, fitted, lower_inverse=False, progress=progress)
        return Prepared(fitted, compressed)

    def _chosen_decomposition(self, structures: Any) -> Decomposition:
        if not isinstance(self.decomposition, str):
            return self.decomposition
        _only_auto("radii", self.radii)
        radii = None if isinstance(self.radii, str) else tuple(self.radii)
        labels = None if self.node_labels == "auto" else self.node_labels.split(",")
        if labels is not None and "auto" in labels:
            usual = modern_labels(structures)
            labels = [usual if kind == "auto" else kind for kind in labels]
        return make_decomposition(
            self.decomposition,
            overrides={"radii": radii, "node_labels": labels and ",".join(labels)},
            defaults={
                "radii": lambda: modern_radii(structures),
                "node_labels": lambda: modern_labels(structures),
            },
        )

    def _network(
        self, hierarchy: Hierarchy, n_outputs: int, seeds: Sequence[int | Sequence[int]]
    ) -> SAEN:
        if self.n_models < 1:
            raise InputError(f"n_models must be at least 1, not {self.n_models}")
        hidden = self.hidden
        _only_auto("hidden", hidden)
        layers = modern_hidden(hierarchy.depth) if isinstance(hidden, str) else hidden
        if len(layers) != hierarchy.depth + 1:
            raise InputError(
                f"hidden needs {hierarchy.depth + 1} lists of sizes, one per level, not {layers}"
            )
        architecture = Architecture.over(
            hierarchy,
            [*layers[:-1], (*layers[-1], n_outputs)],
            slope=self.slope,
            normalisation=self.normalisation,
            dropout=self.dropout,
        )
        network = SAEN(architecture, seeds, dtype=_dtype(self.dtype))
        return network.to(chosen_device(self.device))

    def _settings(self, n: int, seed: int) -> Settings:
        size: int | None
        if isinstance(self.batch_size, str):
            if self.batch_size not in ("auto", "all"):
                raise InputError(f"batch_size is a number, auto or all, not {self.batch_size!r}")
            size = modern_batch_size(n) if self.batch_size == "auto" else None
        else:
            size = self.batch_size
        return Settings(
            epochs=self.epochs,
            batch_size=size,
            learning_rate=self.learning_rate,
            schedule=self.schedule,
            weight_decay=self.weight_decay,
            patience=self.patience,
            seed=derive_seed(seed, "run") % 2**31,
        )

    def _held_out(self, task: _Targets, n: int, seed: int) -> NDArray[np.bool_]:
        """For every model the structures that early stopping looks at, (n, M)."""
        held = np.zeros((n, self.n_models), dtype=np.bool_)
        splitter = StratifiedShuffleSplit if task.stratify else ShuffleSplit
        for model in range(self.n_models):
            state = derive_seed((seed, model), "held out") % 2**31
            split = splitter(1, test_size=self.validation_fraction, random_state=state)
            try:
                held[next(split.split(np.empty(n), task.values))[1], model] = True
            except ValueError as error:
                raise InputError(f"cannot hold out a part for early stopping: {error}") from None
        return held

    # -- using -------------------------------------------------------------------------------

    def _compressed(self, X: Data, lower_inverse: bool = False) -> Compressed:
        check_is_fitted(self, "network_")
        fitted = self.decomposition_
        if isinstance(X, Prepared):
            if X.decomposition != fitted:
                raise InputError("these structures were prepared for another estimator")
            return X.compressed
        structures = as_data(X, "graphs" if fitted is None else fitted.takes)
        if not isinstance(structures, Hierarchy):
            if fitted is None:
                raise InputError("this estimator was fitted on hierarchies: pass a Hierarchy")
            return compress_graphs(structures, fitted, lower_inverse=lower_inverse)
        self._check_schema(structures)
        vocabulary = self.schema_.attributes.vocabulary
        attributes = structures.attributes
        if vocabulary is not None:
            attributes = attributes.recoded(vocabulary)
        return compress(Hierarchy(attributes, structures.relations, structures.names))

    def _check_schema(self, hierarchy: Hierarchy) -> None:
        here = [relation.alphabet for relation in self.schema_.relations]
        there = [relation.alphabet for relation in hierarchy.relations]
        if here != there:
            raise InputError(f"fitted on roles {here}, but the hierarchy has {there}")

    def _outputs(self, X: Data) -> tuple[Array, NDArray[np.int64]]:
        """Outputs of the distinct rows, (rows, M, outputs), and the row of every structure."""
        compressed = self._compressed(X)
        hierarchy, top = hierarchy_and_top(compressed)
        if len(top) == 0:
            n_outputs = self.network_.architecture.layers[-1][-1]
            return np.empty((0, self.network_.n_models, n_outputs)), top.astype(np.int64)
        made = outputs(self.network_, hierarchy)
        return made.double().cpu().numpy(), top.astype(np.int64)

    def embed(self, X: Data, level: int | None = None) -> NDArray[np.float64]:
        """The learned vectors of the objects of a level, shape (objects, n_models · width).

        `level` None is the top: one row per structure, the activations that the output layer
        sees. Lower levels give one row per original object, in the order of the decomposition.
        """
        compressed = self._compressed(X, lower_inverse=True)
        hierarchy = compressed.hierarchy
        chosen = hierarchy.depth if level is None else level
        if not 0 <= chosen <= hierarchy.depth:
            raise InputError(f"levels are 0 … {hierarchy.depth}, not {level}")
        vectors = outputs(self.network_, hierarchy, level=chosen)
        flat = vectors.flatten(1).double().cpu().numpy()
        return compressed.decompress(chosen, flat)

    def save(self, path: str | Path) -> int:
        """Write the fitted estimator to one file (no pickle); its size in bytes."""
        from saen.learning.persistence import save_estimator

        return save_estimator(self, path)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read an estimator of this class that `save` wrote."""
        from saen.learning.persistence import load_estimator

        loaded = load_estimator(path)
        if not isinstance(loaded, cls):
            raise InputError(f"{path} holds a {type(loaded).__name__}, not a {cls.__name__}")
        return loaded

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        return tags


class _Targets:
    """Targets as numbers, and the task that they make."""

    def __init__(self, values: Array, loss: str, n_classes: int, class_weights: Any = None) -> None:
        self.values = values
        self.loss = loss
        self.n_classes = n_classes
        self.class_weights = class_weights
        self.stratify = loss != "squares"

    @property
    def n_outputs(self) -> int:
        return self.task(np.empty((0, 1)), None).n_outputs

    def task(self, weights: Array, validation: Array | None) -> Task:
        return Task(
            self.loss,  # type: ignore[arg-type]
            self.values,
            weights,
            validation,
            self.class_weights,
            self.n_classes,
        )


class SAENClassifier(ClassifierMixin, _Estimator):
    """Classify graphs and other structures with Shift Aggregate Extract Networks.

    `X` is `Graphs`, a list of networkx graphs, of PyG `Data` or of RDKit molecules, whatever
    else the decomposition takes (`Documents`, `Data`), or a ready `Hierarchy`; `y` holds
    integers or strings. What the arguments leave open follows the modern recipe
    (`saen.learning.defaults`).

    - `decomposition`: an object, a name, or a name with parameters as in
      `"neighbourhoods(depth=4)"`; `radii` and `node_labels` set up a decomposition by name (`auto`
      may be joined with others, as in `auto,degree`);
    - `hidden`: sizes of the hidden layers of every level, bottom first, without the output layer;
      `slope`, `normalisation`, `dropout`: see `saen.network.model.Architecture`;
    - `n_models`: how many networks are trained; their probabilities are averaged;
    - `epochs`, `batch_size` (or `auto`, `all`), `learning_rate`, `schedule`, `weight_decay`: see
      `saen.network.training.Settings`; `min_count`: labels in fewer training structures share one
      entry;
    - `patience`: stop early on a held-out `validation_fraction`, if not None;
    - `class_weight`: None, `"balanced"`, or a dictionary;
    - `device`: `auto`, `cpu`, `cuda`, …; `dtype`: `float32` or `float64`;
    - `checkpoint`: a file to continue from after an interruption, rewritten `checkpoint_every` so
      many epochs;
    - `random_state`: an integer gives the same result every time; `progress`: show a bar (None: on
      a terminal).

    After `fit`: `classes_`, `decomposition_`, `network_`, `history_`.

    >>> import saen
    >>> threads = saen.generate_threads(60, seed=1)
    >>> model = SAENClassifier(epochs=10).fit(threads, threads.targets)
    >>> model.predict_proba(threads[:3]).shape
    (3, 2)
    """

    classes_: Array

    def __init__(
        self,
        decomposition: str | Decomposition = "ego",
        *,
        radii: str | Sequence[int] = "auto",
        node_labels: str = "auto",
        hidden: str | Sequence[Sequence[int]] = "auto",
        slope: float = 0.2,
        normalisation: str = "batch",
        dropout: float = 0.0,
        n_models: int = 3,
        epochs: int = 40,
        batch_size: int | str = "auto",
        learning_rate: float = 0.01,
        schedule: str = "cosine",
        weight_decay: float = 0.0,
        min_count: int = 1,
        patience: int | None = None,
        validation_fraction: float = 0.1,
        class_weight: Any = None,
        device: str = "auto",
        dtype: str = "float32",
        checkpoint: str | Path | None = None,
        checkpoint_every: int = 10,
        random_state: int | np.random.RandomState | None = 0,
        progress: bool | None = None,
    ) -> None:
        super().__init__(
            decomposition,
            radii=radii,
            node_labels=node_labels,
            hidden=hidden,
            slope=slope,
            normalisation=normalisation,
            dropout=dropout,
            n_models=n_models,
            epochs=epochs,
            batch_size=batch_size,
            learning_rate=learning_rate,
            schedule=schedule,
            weight_decay=weight_decay,
            min_count=min_count,
            patience=patience,
            validation_fraction=validation_fraction,
            device=device,
            dtype=dtype,
            checkpoint=checkpoint,
            checkpoint_every=checkpoint_every,
            random_state=random_state,
            progress=progress,
        )
        self.class_weight = class_weight

    def fit(self, X: Data, y: ArrayLike, sample_weight: ArrayLike | None = None) -> SAENClassifier:
        """Train on structures X with classes y, shape (n,)."""
        labels = np.asarray(y)
        if labels.dtype.kind == "f" and not np.isfinite(labels).all():
            raise InputError("y holds NaN or infinity, which is no class")
        check_classification_targets(labels)
        if labels.ndim != 1:
            raise InputError(f"y must be one class per structure, not of shape {labels.shape}")
        self.classes_, codes = np.unique(labels, return_inverse=True)
        n_classes = len(self.classes_)
        if n_classes < 2:
            raise InputError(f"a classifier needs at least two classes, y holds {n_classes} class")
        weights = None
        if self.class_weight is not None:
            used = _checked_weights(sample_weight, len(labels)) > 0
            weights = compute_class_weight(self.class_weight, classes=self.classes_, y=labels[used])
        loss = "binary" if n_classes == 2 else "classes"
        return self._fit(X, _Targets(codes, loss, n_classes, weights), sample_weight)

    def predict_each(self, X: Data) -> NDArray[np.float64]:
        """Class probabilities by every network alone, shape (n, n_models, classes)."""
        made, top = self._outputs(X)
        return probabilities(made)[top]

    def predict_proba(self, X: Data) -> NDArray[np.float64]:
        """Class probabilities, averaged over the models, shape (n, classes)."""
        made, top = self._outputs(X)
        rows: NDArray[np.float64] = probabilities(made).mean(axis=1)[top]
        return rows

    def decision_function(self, X: Data) -> NDArray[np.float64]:
        """Log-odds of the second of two classes, (n,), or log-probabilities, (n, classes)."""
        tiny = np.finfo(np.float64).tiny
        logarithms = np.log(np.maximum(self.predict_proba(X), tiny))
        return logarithms[:, 1] - logarithms[:, 0] if len(self.classes_) == 2 else logarithms

    def predict(self, X: Data) -> Array:
        """The most probable class of every structure, shape (n,)."""
        check_is_fitted(self, "network_")
        chosen: Array = self.classes_[self.predict_proba(X).argmax(axis=1)]
        return chosen


class SAENRegressor(RegressorMixin, _Estimator):
    """Predict real numbers of graphs and other structures.

    Arguments as for `SAENClassifier`, without `class_weight`. `y` has shape (n,) or (n, k) and is
    standardised inside; predictions are averaged over the models and come in y's own units.

    >>> import saen
    >>> threads = saen.generate_threads(40, seed=1)
    >>> model = SAENRegressor(epochs=5).fit(threads, threads.sizes)
    >>> model.predict(threads[:2]).shape
    (2,)
    """

    mean_: Array
    scale_: Array

    def fit(self, X: Data, y: ArrayLike, sample_weight: ArrayLike | None = None) -> SAENRegressor:
        """Train on structures X with numbers y, shape (n,) or (n, k)."""
        values = np.asarray(y, dtype=np.float64)
        if values.ndim not in (1, 2) or not np.isfinite(values).all():
            raise InputError("y must be finite numbers of shape (n,) or (n, k)")
        if len(values) == 0:
            raise InputError("nothing to fit: y is empty")
        weights = _checked_weights(sample_weight, len(values))
        self.mean_ = np.average(values, axis=0, weights=weights)
        deviation = np.sqrt(np.average((values - self.mean_) ** 2, axis=0, weights=weights))
        self.scale_ = np.where(deviation > 0, deviation, 1.0)
        standard = ((values - self.mean_) / self.scale_).reshape(len(values), -1)
        return self._fit(X, _Targets(standard, "squares", 0), sample_weight)

    def predict_each(self, X: Data) -> NDArray[np.float64]:
        """What every network predicts alone, shape (n, n_models) or (n, n_models, k)."""
        made, top = self._outputs(X)
        return self._scaled(made)[top]

    def predict(self, X: Data) -> NDArray[np.float64]:
        """Predicted numbers, shape (n,) or (n, k)."""
        made, top = self._outputs(X)
        return self._scaled(made.mean(axis=1))[top]

    def _scaled(self, made: Array) -> NDArray[np.float64]:
        """Outputs of networks in the units of y, (…, k), or (…,) where y was flat."""
        rows = made[..., 0] if np.ndim(self.mean_) == 0 else made
        scaled: NDArray[np.float64] = rows * self.scale_ + self.mean_
        return scaled


class SAENTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, SAENClassifier):
    """Learned vectors of structures as features for another estimator.

    Trains like `SAENClassifier`; `transform` gives `embed(X)`, one row per structure.

    >>> import saen
    >>> threads = saen.generate_threads(40, seed=1)
    >>> SAENTransformer(epochs=5).fit_transform(threads, threads.targets).shape
    (40, 96)
    """

    @property
    def _n_features_out(self) -> int:
        """What `get_feature_names_out` counts."""
        sizes = self.network_.architecture.layers[-1]
        return int(self.network_.n_models * sizes[-2 if len(sizes) > 1 else -1])

    def transform(self, X: Data) -> NDArray[np.float64]:
        """The vectors of structures, shape (n, n_models · width)."""
        return self.embed(X)


@contextmanager
def _training_bar(
    epochs: int, shown: bool | None = None
) -> Iterator[Callable[[int, History], None]]:
    """A bar over epochs with the loss, for `saen.network.training.train`."""
    with bar("training", epochs, shown) as update:

        def epoch_done(epoch: int, history: History) -> None:
            update(epoch, f"loss {np.mean(history.loss[-1]):.3f}")

        yield epoch_done


def probabilities(made: NDArray[np.float64]) -> NDArray[np.float64]:
    """Class probabilities from the outputs of networks, (n, M, 1 or C) to (n, M, C)."""
    if made.shape[2] == 1:
        positive = expit(made)
        return np.concatenate([1 - positive, positive], axis=2)
    rows: NDArray[np.float64] = softmax(made, axis=2)
    return rows


def chosen_device(name: str) -> torch.device:
    """The device of that name; `auto` is a GPU where there is one."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        raise InputError(f"unknown device {name!r}: use auto, cpu or cuda") from None
    if device.type == "cuda" and not torch.cuda.is_available():
        raise InputError("there is no CUDA device here: use device='cpu' or 'auto'")
    return device


def device_name(device: torch.device) -> str:
    """What results should say they were made on."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else device.type


def _only_auto(name: str, value: object) -> None:
    if isinstance(value, str) and value != "auto":
        raise InputError(f"{name} is auto or a sequence, not {value!r}")


def _checked_weights(sample_weight: ArrayLike | None, n: int) -> NDArray[np.float64]:
    """One finite weight per structure, not negative and not all zero, shape (n,)."""
    if sample_weight is None:
        return np.ones(n)
    weights: NDArray[np.float64] = _check_sample_weight(
        sample_weight, np.empty((n, 1)), dtype=np.float64, ensure_non_negative=True
    )
    if not weights.any():
        raise InputError("sample_weight is zero everywhere: there is nothing to learn from")
    return weights


def _dtype(name: str) -> torch.dtype:
    kinds = {"float32": torch.float32, "float64": torch.float64}
    if name not in kinds:
        raise InputError(f"dtype is float32 or float64, not {name!r}")
    return kinds[name]


def _seed(random_state: int | np.random.RandomState | None) -> int:
    """A seed from scikit-learn's kinds of random state; the global state is left alone."""
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1)[0])
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31))
    return int(random_state)
