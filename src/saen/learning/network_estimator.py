"""What the estimators over networks share: from data to trained networks and back to vectors."""

from __future__ import annotations

import sys
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
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from saen._util.arrays import Array, Floats, Ints
from saen._util.lazy import LazyModule
from saen._util.progress import bar
from saen._util.seeds import derive_seed, integer_seed
from saen.data.hierarchy import Hierarchy
from saen.errors import InputError
from saen.io.coerce import as_data
from saen.learning.decomposing import Decomposing
from saen.learning.defaults import default_batch_size, default_hidden, default_inner_folds
from saen.learning.fitted import Fitted
from saen.learning.load import Savable
from saen.learning.parameters import parameter as _parameter
from saen.learning.preparation import Data, Prepared
from saen.learning.splits import hold_out_splitter, inner_parts
from saen.network.architecture import NORMALISATIONS, Architecture
from saen.network.devices import CPU, choose_device
from saen.network.forward import TrainedNetworks
from saen.network.settings import (
    DivergenceWarning,
    History,
    Part,
    Settings,
    curve_step,
)

if TYPE_CHECKING:
    import torch

    from saen.network import ensemble, model, training
    from saen.network.ensemble import Plan
    from saen.network.loss import Task
    from saen.network.model import SAEN
else:  # fitting needs torch, predicting on a CPU does not
    torch = LazyModule("torch")
    ensemble, model, training = (
        LazyModule(f"saen.network.{name}") for name in ("ensemble", "model", "training")
    )

MAX_MODELS, MAX_EPOCHS = 10_000, 1_000_000
"""More would not end, or not fit into memory: a slip, or a preset by somebody else."""

_COUNT = Interval(Integral, 1, sys.maxsize, closed="both")
_MAX_RATE = 1e30  # well within float32


class InterruptedTrainingWarning(UserWarning):
    """Training was stopped by Ctrl-C; the estimator holds the last complete epoch."""


MAX_UNCOMPRESSED = 10_000
"""Entries of an example that is predicted without merging its identical parts."""

MIN_INNER_EXAMPLES = 10
"""Fewer training examples are not split once more to calibrate on."""


@dataclass(eq=False, repr=False)
class NetworkEstimator(Savable, Fitted, Decomposing, ABC):
    """What the estimators share: from data to trained networks and back to vectors."""

    _: KW_ONLY
    hidden: str | Sequence[Sequence[int]] = _parameter("auto", StrOptions({"auto"}), list, tuple)
    slope: float = _parameter(0.2, Real)
    normalisation: str = _parameter("batch", StrOptions(set(NORMALISATIONS)))
    dropout: float = _parameter(0.0, Interval(Real, 0, 1, closed="left"))
    output_activation: bool = _parameter(False, "boolean")
    n_models: int = _parameter(3, Interval(Integral, 1, MAX_MODELS, closed="both"))
    epochs: int = _parameter(40, Interval(Integral, 0, MAX_EPOCHS, closed="both"))
    batch_size: int | str = _parameter("auto", _COUNT, StrOptions({"auto", "all"}))
    learning_rate: float = _parameter(0.01, Interval(Real, 0, _MAX_RATE, closed="right"))
    schedule: str = _parameter("cosine", StrOptions({"constant", "cosine"}))
    weight_decay: float = _parameter(0.0, Interval(Real, 0, _MAX_RATE, closed="both"))
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

    _network: SAEN | TrainedNetworks = field(init=False)
    history_: History = field(init=False)
    inner_history_: History = field(init=False)
    target_names_: list[str] = field(init=False)

    # -- arguments ---------------------------------------------------------------------------

    def validate(self) -> None:
        """Raise `InputError` for an argument of the wrong type or out of range."""
        super().validate()
        sizes = [] if isinstance(self.hidden, str) else self.hidden
        if not all(
            isinstance(level, list | tuple) and all(isinstance(size, Integral) for size in level)
            for level in sizes
        ):
            raise InputError(f"hidden has a list of layer sizes per level, not {self.hidden}")
        choose_device(self.device)

    # -- fitting -----------------------------------------------------------------------------

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
        return inner_parts(Part(name, train, train[:0]), targets, number, state, groups)

    def _fit(self, X: Data, task: Task) -> Self:
        """Train on `task`, whose weights have shape (n, 1); classes get their weights here."""
        data = self._some_data(X)
        if len(task.targets) != len(data):
            raise InputError(f"{len(data)} examples, but {len(task.targets)} targets")
        if self._continues:  # with the vocabulary and the roles of the last fit
            prepared = Prepared(self.spec, self.decomposition_, self.compress(data))
        else:
            prepared = self.prepare(data)
        seed = integer_seed(self.random_state)
        plan = self.plan(prepared, task.n_outputs, seed)
        earlier = self.network_ if self._continues else None
        self.network_ = self._first_networks(plan, seed)
        self._fitted_to(prepared)
        weights = np.repeat(task.weights, self.n_models, axis=1)
        validation = None
        if self.patience is not None:
            held_out = self._held_out(task, seed)
            weights, validation = weights * ~held_out, weights * held_out
        factors = self._class_weights(task, [column > 0 for column in weights.T])
        with _training_bar(self.epochs, self.progress, self.callback) as epoch_done:
            self.history_ = training.train(
                self.network_,
                plan.compressed,
                replace(task, weights=weights, validation=validation, class_weights=factors),
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
        factors = self._class_weights(task, [part.train for part in parts])
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
                replace(task, class_weights=factors),
                parts,
                seed=seed,
                until=until,
                test_every=curve_step(until),
                # The checkpoint of the networks themselves has been found to belong to this run.
                folder=None if file is None else file.parent,
                stage="" if file is None else f"{file.stem}-inner-{len(parts)}",
                progress=advance,
            ).run()
        self.inner_history_ = results.history(0, results.loss.shape[1])
        self._calibrate(parts, results.outputs, task)

    def _class_weights(self, task: Task, parts: Sequence[Array]) -> Floats | None:
        """The factors of classes for networks trained on these parts of the data, (C, parts)."""
        return None

    @abstractmethod
    def _calibrate(self, parts: Sequence[Part], outputs: Sequence[Floats], task: Task) -> None:
        """Learn from the outputs for the test examples of inner parts, (tests, M, k) each."""

    def _held_out(self, task: Task, seed: int) -> NDArray[np.bool_]:
        """For every model the examples that early stopping looks at, (n, M)."""
        n = len(task.targets)
        held_out = np.zeros((n, self.n_models), dtype=np.bool_)
        stratified = task.loss != "squares" and task.targets.ndim == 1
        for model in range(self.n_models):
            state = derive_seed((seed, model), "held out") % 2**31
            split = hold_out_splitter(self.validation_fraction, state, stratified)
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
        losses = np.array(self.history_.validation_loss, dtype=np.float64)
        if self.patience is None or len(losses) == 0:
            return np.full(self._network.n_models, len(self.history_.loss))
        best: NDArray[np.int64] = np.argmin(losses, axis=0) + 1
        return best

    def _decomposed_alone(self, data: Data) -> Hierarchy | None:
        """A single small example, not compressed: that would take longer than it saves."""
        decomposition = self.decomposition_
        if decomposition is None or isinstance(data, Prepared | Hierarchy) or len(data) != 1:
            return None
        small = decomposition.costs(data).sum() <= MAX_UNCOMPRESSED
        return decomposition.decompose(data) if small else None

    def _outputs(self, X: Data) -> tuple[Array, NDArray[np.int64]]:
        """Outputs of the unique examples, (rows, M, outputs), and the row of every example."""
        check_is_fitted(self, "_network")
        if self.decomposition_ is not None and not isinstance(X, Prepared):
            X = as_data(X, self.decomposition_.takes)
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


def _check_finite(values: Floats, rows: Ints, what: str = "example") -> None:
    """Raise `InputError`, naming the first example or object, if an output is NaN or infinite.

    `values` has one row per unique example, `rows` the row of every example.
    """
    finite = np.isfinite(values).all(axis=tuple(range(1, values.ndim)))
    if not np.all(finite):
        bad = np.flatnonzero(~np.asarray(finite)[rows])
        raise NotFiniteError(int(bad[0]), len(bad), what)


def fit_or_interrupt(model: Any, X: Data, y: Any, weights: Floats | None) -> None:
    """Fit any estimator; Ctrl-C is passed on, where networks alone would keep what they have."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InterruptedTrainingWarning)
        model.fit(X, y, sample_weight=weights)
    if isinstance(model, NetworkEstimator) and model.history_.interrupted:
        raise KeyboardInterrupt


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
