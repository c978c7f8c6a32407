"""Shift Aggregate Extract Networks as a model: trained on inner folds, averaged, calibrated.

A network is trained on the training part of every inner fold (`n_models` of each), and predicts
what that fold holds out: these predictions calibrate every network, and the model is the average of
them all. Without inner folds, networks learn from all training examples and nothing is calibrated.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import KW_ONLY, asdict, dataclass, replace
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from joblib import cpu_count

from saen._util.arrays import Array, Floats, Ints
from saen._util.digests import digest_of
from saen._util.lazy import LazyModule, torch
from saen._util.seeds import derive_seed
from saen._util.strings import plural
from saen.data.compression import Compressed
from saen.data.hierarchy import Hierarchy
from saen.errors import InputError
from saen.io.store.packing import under
from saen.learning import auto
from saen.learning.decomposing import (
    Decomposed,
    DecompositionArguments,
    Decompositions,
)
from saen.learning.models.base import (
    Cost,
    Explained,
    Fitted,
    FoldResult,
    ModelLearner,
    Results,
    Study,
    TopEntries,
    calibrated,
    problem_arrays,
    unpack_common,
)
from saen.learning.parameters import Interval, clone_with, parameter
from saen.learning.problem import Problem
from saen.learning.splits import Fold
from saen.network.architecture import NORMALIZATIONS, Architecture, join_models
from saen.network.devices import CPU, choose_device
from saen.network.forward import TrainedNetworks
from saen.network.settings import DivergenceError, History, Run, Settings, curve_step

if TYPE_CHECKING:
    from saen.network import attribution, ensemble, model, training
    from saen.network.model import SAEN
else:  # fitting needs torch, predicting on a CPU does not
    attribution, ensemble, model, training = (
        LazyModule(f"saen.network.{name}")
        for name in ("attribution", "ensemble", "model", "training")
    )

MAX_MODELS, MAX_EPOCHS = 10_000, 1_000_000
"""More would not end, or not fit into memory: a slip, or a preset by somebody else."""
MAX_UNCOMPRESSED = 10_000
"""Entries of an example that is predicted without merging its identical parts."""
PADDING = 0.25
"""Of the range of training targets, on either side of it: further away networks predict nothing."""
STEP_SECONDS, SECONDS_PER_OBJECT = 1e-3, 8e-8
"""Of forecasts: a step of one network, and what it adds per object and entry of a batch."""
TORCH_BYTES = 200_000_000
MAX_KEPT_OBJECTS, BYTES_PER_KEPT, BYTES_PER_OBJECT = 1 << 23, 60, 256
"""Of forecasts: batches that are kept, and activations of a step."""
_COUNT = Interval(Integral, 1, sys.maxsize, "both")
_MAX_RATE = 1e30  # well within float32


@dataclass(eq=False, repr=False)
class NetworkArguments(DecompositionArguments):
    """The arguments of estimators over networks.

    Parameters
    ----------
    hidden
        Sizes of the hidden layers: one list per level, bottom first, without the output layer.
        `auto`: `[[32], [32, 16], [32]]` for three levels.
    negative_slope
        Negative slope of the leaky ReLU.
    normalization
        `batch` normalises the aggregates of every level by their mean and variance over the
        training examples.
    dropout
        Share of units dropped after every hidden layer above the bottom.
    output_activation
        Whether the leaky ReLU also follows the last layer.
    n_models
        Networks per inner fold (in total, if there are no inner folds). The model is their average.
    epochs
        Passes over the training examples.
    batch_size
        Examples per step; `all` is one step per epoch. `auto`: a sixteenth of the training
        examples, from 16 to 100.
    learning_rate
        Learning rate of Adam.
    schedule
        `cosine` lowers the learning rate to zero over the epochs.
    weight_decay
        Decay of the weights (not the biases), decoupled from the gradient.
    min_count
        Labels that fewer training examples have share one entry.
    inner_folds
        Networks are trained on each of these folds of the training examples and tested on the rest,
        which calibrates them. 1 is a single split with a tenth held out (at most 10,000 examples);
        0 trains on all examples and does not calibrate. `auto`: 5 below 500 examples, 3 below 8,000
        (or with groups, several targets or a rare class), else 1.
    dtype
        Floating-point type of the networks.
    device
        Where to train: `auto`, `cpu`, `cuda`, ….
    """

    _: KW_ONLY
    hidden: str | Sequence[Sequence[int]] = parameter("auto", {"auto"}, list, tuple)
    negative_slope: float = parameter(0.2, Real)
    normalization: str = parameter("batch", set(NORMALIZATIONS))
    dropout: float = parameter(0.0, Interval(Real, 0, 1, "left"))
    output_activation: bool = parameter(False, bool)
    n_models: int = parameter(1, Interval(Integral, 1, MAX_MODELS, "both"))
    epochs: int = parameter(40, Interval(Integral, 0, MAX_EPOCHS, "both"))
    batch_size: int | str = parameter("auto", _COUNT, {"auto", "all"})
    learning_rate: float = parameter(0.01, Interval(Real, 0, _MAX_RATE, "right"))
    schedule: str = parameter("cosine", {"constant", "cosine"})
    weight_decay: float = parameter(0.0, Interval(Real, 0, _MAX_RATE, "both"))
    min_count: int = parameter(1, _COUNT)
    inner_folds: int | str = parameter("auto", Interval(Integral, 0, None, "left"), {"auto"})
    dtype: str = parameter("float32", {"float32", "float64"})
    device: str = parameter("auto", str, runtime=True)

    def _check(self) -> None:
        """Raise `InputError` for sizes that are not integers, or an unknown device."""
        super()._check()
        sizes = [] if isinstance(self.hidden, str) else self.hidden
        if not all(
            isinstance(level, list | tuple) and all(isinstance(size, Integral) for size in level)
            for level in sizes
        ):
            raise InputError(f"hidden has a list of layer sizes per level, not {self.hidden}")
        choose_device(self.device)


@dataclass(frozen=True, eq=False)
class NetworkLearner(ModelLearner):
    """Trains networks by these arguments."""

    kind: ClassVar[str] = "networks"
    title: ClassVar[str] = "networks"

    arguments: NetworkArguments
    until: int | None = None
    """The epoch to stop at, if not the last."""

    @property
    def device(self) -> str:
        """As the arguments say."""
        return self.arguments.device

    def key(self) -> Any:
        """Also where it stops."""
        return [*super().key(), self.until]

    def architecture(self, hierarchy: Hierarchy, n_outputs: int) -> Architecture:
        """The shape of networks with `n_outputs` units for hierarchies like this one."""
        a = self.arguments
        hidden = auto.hidden(hierarchy.depth) if isinstance(a.hidden, str) else a.hidden
        if len(hidden) != hierarchy.depth + 1:
            raise InputError(
                f"hidden needs {hierarchy.depth + 1} lists of sizes, one per level, not {hidden}"
            )
        return Architecture.over(
            hierarchy,
            [*hidden[:-1], (*hidden[-1], n_outputs)],
            negative_slope=a.negative_slope,
            normalization=a.normalization,
            dropout=a.dropout,
            output_activation=a.output_activation,
        )

    def settings(self, seed: int) -> Settings:
        """How to train, batches aside; the seed decides which examples share one."""
        a = self.arguments
        return Settings(
            epochs=a.epochs,
            learning_rate=a.learning_rate,
            schedule=a.schedule,
            weight_decay=a.weight_decay,
            seed=derive_seed(seed, "run") % 2**31,
        )

    def plan(self, compressed: Compressed, n_outputs: int, seed: int) -> ensemble.Plan:
        """How the arguments say to train networks on compressed data."""
        a = self.arguments
        return ensemble.Plan(
            compressed,
            self.architecture(compressed.hierarchy, n_outputs),
            self.settings(seed),
            min_count=a.min_count,
            device=torch.device(choose_device(a.device)),
            dtype=getattr(torch, a.dtype),
        )

    def start(self, study: Study, folds: Sequence[Fold]) -> Callable[[], Results]:
        """Begin to train the networks of all folds; those of one hierarchy side by side."""
        folds = study.split_inside(folds, self.arguments.inner_folds)
        decomposed = [study.decomposed(self.spec, fold.train) for fold in folds]
        shared: dict[int, list[int]] = {}
        for place, each in enumerate(decomposed):
            shared.setdefault(id(each.compressed.hierarchy), []).append(place)
        started = []
        for places in shared.values():
            runs = [self._runs(folds[place], study.seed) for place in places]
            first = decomposed[places[0]].compressed
            started.append((places, runs, self._training(study, first, runs)))

        def results() -> Results:
            done: dict[int, FoldResult | DivergenceError] = {}
            for places, runs, training in started:
                trained = training.run()
                ends = np.cumsum([0, *map(len, runs)]).tolist()
                for place, own, a, b in zip(places, runs, ends, ends[1:], strict=False):
                    error = _divergence(training, trained, slice(a, b))
                    done[place] = error or self._result(
                        study.problem, folds[place], decomposed[place], own, trained, slice(a, b)
                    )
            return [done[place] for place in range(len(folds))]

        return results

    def cost(self, study: Study, folds: Sequence[Fold]) -> Cost:
        """By the objects that the examples of a batch reach, in every step."""
        costs = []
        for fold in study.split_inside(folds, self.arguments.inner_folds):
            compressed = study.decomposed(self.spec, fold.train).compressed
            hierarchy, runs = compressed.hierarchy, self._runs(fold, study.seed)
            sample = np.arange(0, len(compressed), runs[0].n_batches)
            reached = hierarchy[np.unique(compressed.top[sample])]
            objects = sum(reached.sizes) + sum(each.n_entries for each in reached.relations)
            steps = self.arguments.epochs * sum(run.n_batches for run in runs)
            batches = min(objects * runs[0].n_batches, MAX_KEPT_OBJECTS) * BYTES_PER_KEPT
            working = (batches + objects * BYTES_PER_OBJECT) * min(len(runs), cpu_count())
            costs.append(Cost(steps * (STEP_SECONDS + objects * SECONDS_PER_OBJECT), 0, working))
        torch_itself = 0 if "torch" in sys.modules else TORCH_BYTES
        return Cost.of_all([*costs, Cost(0, torch_itself, 0)])

    def _runs(self, fold: Fold, seed: int) -> list[Run]:
        """The networks of a fold: of every inner fold, or of all training examples."""
        a = self.arguments
        size = auto.batch_size(len(fold.train))
        if not isinstance(a.batch_size, str):
            size = a.batch_size
        return [
            Run(
                (seed, fold.name[0], number, network),
                train,
                check,
                fold.test,
                1 if a.batch_size == "all" else max(-(-len(train) // size), 1),
            )
            for number, (train, check) in enumerate(fold.inner or ((fold.train, fold.train[:0]),))
            for network in range(a.n_models)
        ]

    def _training(
        self,
        study: Study,
        compressed: Compressed,
        runs: Sequence[Sequence[Run]],
        test_every: int | None = None,
    ) -> ensemble.Training:
        """The trainings of some folds, begun where they are tasks."""
        a, problem, flat = self.arguments, study.problem, [run for own in runs for run in own]
        task = problem.targets.task(problem, [run.train for run in flat], self.class_weight)
        test_every = curve_step(a.epochs) if test_every is None else test_every
        name = digest_of(
            self.key(),
            study.seed,
            study.keep,
            test_every,
            *(problem_arrays(problem, compressed) if study.folder is not None else ()),
            *(each for run in flat for each in (run.train, run.held_out, run.test)),
        )
        study.expect((self.until or a.epochs) * len(flat))
        training = ensemble.Training(
            self.plan(compressed, task.n_outputs, study.seed),
            task,
            flat,
            until=self.until,
            test_every=test_every,
            group_size=study.parallel,
            folder=study.folder,
            stage=f"networks-{name}",
            keep=study.keep,
            progress=study.advance,
            tasks=study.tasks,
        )
        training.submit()
        return training

    def _result(
        self,
        problem: Problem,
        fold: Fold,
        decomposed: Decomposed,
        runs: Sequence[Run],
        trained: ensemble.Trained,
        among: slice,
    ) -> FoldResult:
        """The average of a fold's networks, calibrated by what each has not seen."""
        targets, n = problem.targets, self.arguments.n_models
        bounds = _bounds(problem, fold.train)
        units = [targets.unit(problem, run.train) for run in runs]
        each = [
            np.clip(targets.read(rows, unit), *bounds)
            for rows, unit in zip(trained.outputs[among], units, strict=True)
        ]
        tested = [rows[len(run.held_out) :] for run, rows in zip(runs, each, strict=True)]
        held_out = [rows[: len(run.held_out)] for run, rows in zip(runs, each, strict=True)]
        calibration, mean, held_out_mean = calibrated(
            problem,
            fold,
            np.stack(tested),
            np.stack([np.concatenate(held_out[first::n]) for first in range(n)]),
        )
        fitted, states = None, trained.states[among]
        history = trained.history(among.start, among.stop)
        if not fold.inner:  # nothing was held out
            history = replace(history, validation_loss=[], validation_accuracy=[])
        if states[0]:
            layers = self.architecture(decomposed.compressed.hierarchy, problem.targets.n_outputs)
            fitted = FittedNetworks(
                targets=targets,
                calibration=calibration,
                decomposition=decomposed.decomposition,
                schema=decomposed.schema,
                networks=TrainedNetworks(layers, join_models(states)),
                mean=np.stack([mean for mean, _ in units]),
                scale=np.stack([scale for _, scale in units]),
                bounds=bounds,
                history=history,
            )
        curve = (
            trained.test_loss[:, among] if fold.inner and trained.test_loss is not None else None
        )
        return FoldResult(
            fold=fold,
            calibration=calibration,
            tested=mean,
            held_out=held_out_mean,
            loss=trained.loss[:, among],
            validation=np.empty((0, 0)) if curve is None else curve,
            fitted=fitted,
        )

    def peek(self, study: Study, folds: Sequence[Fold]) -> tuple[list[FoldResult], int]:
        """The folds at the epoch at which their mean test accuracy is best, and that epoch.

        As some published numbers are obtained: optimistic, and only meant for such comparisons.
        """
        if not self.arguments.epochs:
            return super().peek(study, folds)
        alone = replace(self, arguments=clone_with(self.arguments, inner_folds=0, n_models=1))
        compressed = study.decomposed(self.spec, folds[0].train).compressed
        watched = [
            [replace(run, held_out=run.test, test=run.test[:0])]
            for fold in folds
            for run in alone._runs(replace(fold, inner=()), study.seed)  # noqa: SLF001 - its own
        ]
        training = alone._training(study, compressed, watched, test_every=1)  # noqa: SLF001
        curves = training.run()
        if error := _divergence(training, curves, slice(None)):
            raise error
        assert curves.test_accuracy is not None
        epoch = int(curves.test_accuracy.mean(axis=1).argmax()) + 1
        return replace(alone, until=epoch).fit(study, folds), epoch


def _bounds(problem: Problem, train: Ints) -> Floats:
    """The least and the largest number that networks may predict, (2,) or (2, k).

    Networks extrapolate wildly: they stay within the training targets and a quarter of their range
    on either side. Probabilities have bounds of their own.
    """
    if problem.targets.choose(for_classes=True, for_numbers=False):
        return np.array([-np.inf, np.inf])
    values = problem.values[train]
    known = np.isfinite(values)
    low = np.where(known, values, np.inf).min(axis=0)
    high = np.where(known, values, -np.inf).max(axis=0)
    some = known.any(axis=0)
    pad = PADDING * np.where(some, high - low, 0.0)
    return np.stack([np.where(some, low - pad, -np.inf), np.where(some, high + pad, np.inf)])


def _divergence(
    training: ensemble.Training, trained: ensemble.Trained, among: slice
) -> DivergenceError | None:
    """The error of the first network that diverged, which says when; None if none has."""
    diverged = trained.diverged[among]
    if not diverged.any():
        return None
    network = int(diverged.argmax())
    epoch = int(np.isnan(trained.loss[:, among][:, network]).argmax()) + 1
    where = f"epoch {epoch} (network {network} of {len(diverged)})"
    return DivergenceError(where, training.plan.advice())


@dataclass(eq=False, kw_only=True)
class FittedNetworks(Fitted):
    """Trained networks: in numpy, or in PyTorch once that is asked for.

    Each predicts numbers in the unit of its own training examples: `mean`, `scale` (M, outputs).
    """

    kind = NetworkLearner.kind

    networks: TrainedNetworks | SAEN
    mean: Array
    scale: Array
    bounds: Floats
    history: History

    @property
    def arrays(self) -> TrainedNetworks:
        """The networks as arrays, as they are now, for the forward pass in numpy."""
        own = self.networks
        return own if isinstance(own, TrainedNetworks) else TrainedNetworks.of(own)

    @property
    def module(self) -> SAEN:
        """The networks in PyTorch, made when first asked for."""
        if isinstance(self.networks, TrainedNetworks):
            self.networks = model.SAEN.from_state(self.networks.architecture, self.networks.state)
        return self.networks

    @property
    def n_models(self) -> int:
        """How many networks there are."""
        return self.networks.n_models

    @property
    def weights(self) -> Floats:
        """Equal ones."""
        return np.full(self.n_models, 1 / self.n_models)

    def each(self, data: Decompositions) -> Floats:
        """Of every network alone, calibrated."""
        hierarchy, rows = self._alone(data), np.zeros(1, dtype=np.int64)
        if hierarchy is None:
            compressed = self.compress(data)
            hierarchy, rows = compressed.hierarchy, compressed.top.astype(np.int64)
        outputs = self._forward(hierarchy)
        _check_finite(outputs, rows)
        each = np.clip(self.targets.read(outputs, (self.mean, self.scale)), *self.bounds)
        return self.calibration.apply(each, several=self.targets.several)[rows]

    def combined(self, each: Floats) -> Floats:
        """The mean."""
        result: Floats = each.mean(axis=1)
        return result

    def _alone(self, data: Decompositions) -> Hierarchy | None:
        """A single small example, not compressed: that would take longer than it saves."""
        ready = data.is_ready or data.rows is not None or isinstance(data.data, Hierarchy)
        if self.decomposition is None or len(data) != 1 or ready:
            return None
        small = self.decomposition.costs(data.data).sum() <= MAX_UNCOMPRESSED
        return self.decomposition.decompose(data.data) if small else None

    def _forward(self, hierarchy: Hierarchy, level: int | None = None) -> Floats:
        """Outputs of all networks, or their representations of a level, (objects, M, d)."""
        own = self.networks
        if not isinstance(own, TrainedNetworks) and own.device.type != CPU:
            found: Floats = training.outputs(own, hierarchy, level=level).double().cpu().numpy()
            return found
        return self.arrays.outputs(hierarchy, level).astype(np.float64)

    def embed(self, data: Decompositions, level: int | None = None) -> Floats:
        """The activations of a level, (objects, n_models · width); see `SAENTransformer`."""
        compressed = self.compress(data, lower_inverse=level is not None)
        depth = compressed.hierarchy.depth
        number = depth if level is None else level
        if not 0 <= number <= depth:
            raise InputError(f"levels are 0 … {depth}, not {level}")
        unique = self._forward(compressed.hierarchy, number)
        unique = unique.reshape(len(unique), unique.shape[1] * unique.shape[2])
        what = "example" if number == depth else f"object (level {number})"
        _check_finite(unique, compressed.unique_of(number), what)
        return compressed.decompress(number, unique)

    def to(self, device: str) -> None:
        """Move the networks."""
        if device != CPU:
            self.module.to(device)

    # -- explanations ------------------------------------------------------------------------

    @property
    def knows_average(self) -> bool:
        """Normalised networks know the mean aggregate of their training examples."""
        return self.module.level(self.schema.depth).typical() is not None

    def _exact(self) -> SAEN:
        """A copy in float64 on the CPU."""
        return deepcopy(self.module).to("cpu", torch.float64)

    def _gradient(self, weights: Floats) -> torch.Tensor:
        """With respect to all outputs of Σ weights · their mean in the unit of y, (M, outputs)."""
        return torch.from_numpy(weights * self.scale / self.n_models)

    def _weighted(self, raw: torch.Tensor, weights: Floats) -> Floats:
        """Σ weights · the mean in the unit of y of the outputs (n, M, outputs), (n,)."""
        own = raw.numpy() * self.scale + self.mean
        numbers: Floats = own.mean(axis=1) @ weights
        if not np.isfinite(numbers).all():
            raise InputError("the output of the network is not finite: there is nothing to explain")
        return numbers

    def _shift(self, weights: Floats) -> float:
        """What is added to outputs of 0."""
        return float(self.mean.mean(axis=0) @ weights)

    def explained(
        self, hierarchy: Hierarchy, weights: Floats, data: Decompositions | None = None
    ) -> Explained:
        """By integrated gradients, see `saen.network.attribution`."""
        network = self._exact()
        passed = attribution.Passed.through(network, hierarchy)
        top, *below = passed.contributions(self._gradient(weights)[None])
        levels, shift = [*reversed(below), top], self._shift(weights)  # bottom first

        def inside(groups: Sequence[Ints]) -> list[Floats]:
            if hierarchy.depth == 1 or not groups:
                return [below[0].objects[own] for own in groups]
            numbers = np.concatenate(groups)
            gradients, own = below[0].gradients[numbers], below[0].objects[numbers]
            shares = own - (gradients * passed.h[-2][numbers]).sum(dim=(1, 2)).numpy()
            apart, sizes = passed.parts(groups)
            *_, bottom = apart.contributions(gradients, shares)
            return np.split(bottom.objects, np.cumsum(sizes)[:-1])

        return Explained(
            float(self._weighted(passed.h[-1], weights)[0]),
            float(top.empty[0] + shift),
            [*(each.objects for each in levels[:-1]), top.objects + shift],
            [*(each.empty for each in levels[:-1]), top.empty + shift],
            [each.entries for each in levels[1:]],
            inside,
            max(each.steps for each in levels),
        )

    def top_entries(self, compressed: Compressed, weights: Sequence[Floats]) -> list[TopEntries]:
        """By integrated gradients, in one pass."""
        network, found = self._exact(), []
        passed = attribution.Passed.through(network, compressed.hierarchy)
        for each in weights:
            gradient = self._gradient(each).expand(len(compressed.hierarchy), -1, -1)
            top = next(passed.contributions(gradient))
            empty = top.empty + self._shift(each)
            found.append((self._weighted(passed.h[-1], each), empty, top.entries))
        return found

    # -- files ------------------------------------------------------------------------------

    def describe(self) -> dict[str, Any]:
        """Networks, their layers and parameters, and epochs."""
        state, layers = self.arrays.state, self.arrays.architecture.layers
        return {
            "networks": self.n_models,
            "numbers": sum(array.size for array in state.values()),
            "layers": [list(sizes) for sizes in layers],
            "epochs": len(self.history.loss),
        }

    @property
    def in_words(self) -> str:
        """Networks and epochs."""
        epochs = plural(len(self.history.loss), "epoch")
        return f"{plural(self.n_models, 'network')}, {epochs}"

    def pack(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """Architecture, parameters and curves."""
        document, tensors = self._pack_common()
        arrays = self.arrays
        document |= {
            "architecture": asdict(arrays.architecture),
            "history": asdict(self.history),
            "mean": self.mean.tolist(),
            "scale": self.scale.tolist(),
        }
        tensors["bounds"] = self.bounds
        return document, tensors | {f"network.{key}": a for key, a in arrays.state.items()}

    @classmethod
    def unpack(cls, document: dict[str, Any], tensors: Mapping[str, Array]) -> FittedNetworks:
        """Checked against schema and targets."""
        common = unpack_common(document, tensors)
        fields = dict(document["architecture"])
        fields["roles"] = tuple(fields["roles"])
        fields["layers"] = tuple(tuple(sizes) for sizes in fields["layers"])
        architecture = Architecture(**fields)
        architecture.check_fits(common["schema"])
        own = {key: np.array(array) for key, array in under("network.", tensors).items()}
        history = History(**document["history"])
        if not all(isinstance(v, list) for k, v in vars(history).items() if k != "interrupted"):
            raise InputError("the history of the training is wrong")
        mean, scale = (np.array(document[key], dtype=np.float64) for key in ("mean", "scale"))
        n_outputs, needed = architecture.layers[-1][-1], common["targets"].n_outputs
        if n_outputs != needed:
            raise InputError(f"{n_outputs} outputs, but the targets need {needed}")
        bounds = np.array(tensors["bounds"], dtype=np.float64)
        if bounds.shape not in ((2,), (2, needed)) or not (bounds[0] <= bounds[1]).all():
            raise InputError("the bounds of the predictions are wrong")
        networks = TrainedNetworks(architecture, own)
        units = {mean.shape, scale.shape}
        if units != {(networks.n_models, needed)} or not np.isfinite([mean, scale]).all():
            raise InputError("the mean and scale of the targets are wrong")
        return cls(
            **common, networks=networks, mean=mean, scale=scale, bounds=bounds, history=history
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
