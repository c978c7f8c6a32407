"""What every model is: a `Learner` that fits folds, and the `Fitted` model that it makes of one.

Everything that learns is `Learner.fit(study, folds)`: `fit` of an estimator is this with one fold
that trains on everything, cross-validation is this with many folds, and a blend is a learner over
learners. So what is evaluated is what is shipped.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isnan
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np

from saen._util.arrays import Array, Floats, Ints
from saen._util.executor import Tasks
from saen._util.progress import timed
from saen.data.compression import Compressed
from saen.data.hierarchy import Hierarchy
from saen.decompositions import Decomposition
from saen.decompositions.registry import decomposition_from_json, decomposition_to_json
from saen.errors import InputError
from saen.io.store.packing import pack_hierarchy, under, unpack_hierarchy
from saen.learning.calibration import Calibration
from saen.learning.decomposing import (
    Decomposed,
    DecompositionArguments,
    Decompositions,
    DecompositionSpec,
)
from saen.learning.features import with_features
from saen.learning.metrics import Metric
from saen.learning.parameters import settings_of
from saen.learning.problem import Problem, Targets, targets_from_json
from saen.learning.splits import Fold
from saen.network.settings import DivergenceError

Progress = Callable[[int, int], object]
"""Called with network-epochs (of part counts: models) done and their total."""


@dataclass
class Study:
    """What is learned from which data, by which seed, and how and where it is done.

    The rest changes no result:

    - `folder`: what is finished is kept there, and taken from there;
    - `parallel`: networks side by side, and processes for part counts; by default as many as fit;
    - `keep`: whether the fitted models are wanted, beside their predictions;
    - `last`: nobody asks for decompositions afterwards, so they go when they are done with.
    """

    data: Decompositions
    problem: Problem
    seed: int = 0
    folder: Path | None = None
    parallel: int | None = None
    keep: bool = True
    progress: Progress | None = None
    tasks: Tasks | None = None
    seconds: dict[str, float] = field(default_factory=lambda: {"compress": 0.0, "train": 0.0})
    done: int = 0
    total: int = 0
    last: bool = False

    def expect(self, work: int) -> None:
        """Add coming work to the total that progress counts to."""
        self.total += work

    def advance(self, work: int) -> None:
        """Work that is done."""
        self.done += work
        if self.progress is not None:
            self.progress(self.done, self.total)

    def split_inside(self, folds: Sequence[Fold], number: int | str) -> list[Fold]:
        """Folds with inner folds, see `Fold.split_inside`."""
        return [fold.split_inside(self.problem, number, self.seed) for fold in folds]

    def decomposed(self, spec: DecompositionSpec, train: Ints) -> Decomposed:
        """As `Decompositions.decomposed`, timed."""
        with timed(self.seconds, "compress"):
            return self.data.decomposed(spec, train)

    def keep_only(self, wanted: Iterable[tuple[DecompositionSpec, Ints]]) -> None:
        """Give back all decompositions but those that are wanted, if this is the last study."""
        if self.last:
            self.data.forget_others([self.decomposed(*each) for each in wanted])


@dataclass(frozen=True, eq=False)
class FoldResult:
    """What a learner made of a fold.

    - `fold`: with its inner folds, as they were decided;
    - `calibration`: learned from held-out examples; `tested` and `held_out` are calibrated;
    - `tested` (m, …): predictions for the test examples;
    - `held_out` (h, …): predictions for `fold.held_out`, each by models that have not seen it;
    - `loss`, `validation` (epochs, networks): training curves, and those on held-out examples;
    - `chosen`: what the learner decided by the inner folds, as JSON;
    - `tried`: what it decided among, as JSON;
    - `spread` (m, …): of a blend of numbers, how far its members are apart in `tested`;
    - `fitted`: the model, if it is kept.
    """

    fold: Fold
    calibration: Calibration
    tested: Floats
    held_out: Floats
    loss: Floats = field(default_factory=lambda: np.empty((0, 0)))
    validation: Floats = field(default_factory=lambda: np.empty((0, 0)))
    chosen: Any = field(default_factory=dict)
    tried: list[dict[str, Any]] = field(default_factory=list)
    spread: Floats | None = None
    fitted: Fitted | None = None


Results = Sequence[FoldResult | DivergenceError]
"""One per fold; an error where the training of a fold diverged."""


class Cost(NamedTuple):
    """What fitting takes, roughly: seconds of one core, bytes that stay, and bytes while it works.

    Of data that are decomposed already.
    """

    seconds: float
    kept: float
    working: float

    @staticmethod
    def of_all(costs: Iterable[Cost]) -> Cost:
        """Of fits one after the other."""
        seconds, kept, working = np.array([(0.0, 0.0, 0.0), *costs]).T
        return Cost(float(seconds.sum()), float(kept.sum()), float(working.max()))


class Learner(ABC):
    """How models are made of training examples: one per fold, which sees no other examples."""

    kind: ClassVar[str]
    """What files call the models that it makes."""
    vectors: ClassVar[str] = "attributes"
    """The label by which node attributes are best read."""
    cheap: ClassVar[bool] = False
    """Whether it takes seconds where others take minutes."""
    reads_features: ClassVar[bool] = False
    """Whether numbers about whole examples are read beside their parts."""

    @property
    def metric(self) -> Metric | None:
        """What decides beside losses, if anything."""
        return None

    @property
    def device(self) -> str:
        """Where it trains."""
        return "cpu"

    def first_stage(self, data: Decompositions, train: Ints) -> Learner | None:
        """A cheaper learner whose work is part of this one's, if there is any.

        Parameters
        ----------
        data : Decompositions
            The data.
        train : Ints
            Indices of the training examples.
        """
        return None

    @property
    @abstractmethod
    def spec(self) -> DecompositionSpec:
        """The decomposition that stands for the data; of a blend, that of the first candidate."""

    @abstractmethod
    def start(self, study: Study, folds: Sequence[Fold]) -> Callable[[], Results]:
        """Begin to fit folds; the result is a function that waits for it.

        Parameters
        ----------
        study : Study
            Data, targets, seed and what else the folds share.
        folds : Sequence[Fold]
            What to train and to test on.
        """

    def fit(self, study: Study, folds: Sequence[Fold]) -> list[FoldResult]:
        """Fit every fold; raises `DivergenceError` if a training diverges.

        Parameters
        ----------
        study : Study
            Data, targets, seed and what else the folds share.
        folds : Sequence[Fold]
            What to train and to test on.
        """
        done: list[FoldResult] = []
        for result in self.start(study, folds)():
            if isinstance(result, DivergenceError):
                raise result
            done.append(result)
        return done

    @abstractmethod
    def cost(self, study: Study, folds: Sequence[Fold]) -> Cost:
        """A forecast of what `fit` takes.

        Parameters
        ----------
        study : Study
            Data, targets, seed and what else the folds share.
        folds : Sequence[Fold]
            What to train and to test on.
        """

    def scored_by(self, metric: Metric) -> Learner:
        """The same, with this metric where scores decide anything."""
        return self

    def peek(self, study: Study, folds: Sequence[Fold]) -> tuple[list[FoldResult], int]:
        """The folds at the epoch at which their mean test accuracy is best, and that epoch.

        Parameters
        ----------
        study : Study
            Data, targets, seed and what else the folds share.
        folds : Sequence[Fold]
            What to train and to test on.
        """
        raise InputError("there is no epoch to choose: peek is for networks of one epoch or more")

    @abstractmethod
    def key(self) -> Any:
        """What two learners that do the same have in common, as JSON."""

    def identical(self, data: Decompositions, train: Ints) -> Ints:
        """Equal numbers for examples that look identical to the models, (n,).

        Parameters
        ----------
        data : Decompositions
            The data.
        train : Ints
            Indices of the training examples.
        """
        top = data.decomposed(self.spec, train).compressed.top
        known = data.features()
        return with_features(top, None if known is None else known.values)

    @abstractmethod
    def candidates(self, data: Decompositions, train: Ints) -> list[Candidate]:
        """What is tried for these training examples: the learner itself, or those of a blend.

        Parameters
        ----------
        data : Decompositions
            The data.
        train : Ints
            Indices of the training examples.
        """


@dataclass(frozen=True, eq=False)
class ModelLearner(Learner):
    """What learners of a single model share: the arguments of an estimator."""

    title: ClassVar[str]
    """What a candidate is called."""

    arguments: DecompositionArguments
    class_weight: Any = None

    @property
    def spec(self) -> DecompositionSpec:
        """The decomposition that the arguments ask for."""
        return self.arguments._spec  # noqa: SLF001 - arguments belong to their learner

    def key(self) -> Any:
        """Kind and settings."""
        return [self.kind, settings_of(self.arguments), self.class_weight]

    def candidates(self, data: Decompositions, train: Ints) -> list[Candidate]:
        """Itself."""
        return [Candidate({"candidate": self.title}, self)]


@dataclass(frozen=True, eq=False)
class Candidate:
    """A learner to choose, and what it is called in results."""

    name: Mapping[str, Any]
    learner: Learner

    @property
    def title(self) -> str:
        """The name in words: that of a blend's candidate, or the settings of a grid."""
        named = self.name.get("candidate")
        return named or ", ".join(f"{key}={value}" for key, value in self.name.items())


class Member(NamedTuple):
    """A model of a blend, its name, weight and score on the inner folds; or a model alone."""

    name: str
    model: Fitted
    weight: float
    score: float | None


TopEntries = tuple[Floats, Floats, Floats]
"""Outputs and baselines of unique examples, (rows,), and what the entries of the top add."""


class FeatureContribution(NamedTuple):
    """What a number about a whole example contributes; `value` is NaN where it is not known."""

    name: str
    value: float
    contribution: float

    @property
    def in_words(self) -> str:
        """The name and the number, if it is known."""
        return f"{self.name} " + ("missing" if isnan(self.value) else f"= {self.value:.4g}")


class Explained(NamedTuple):
    """What all objects of one example contribute to a linear function of a model's outputs.

    - `output`, and the `baseline` that it is compared with;
    - `objects`, `empty`: per level, bottom first; `entries`: per relation (see `Explanation`);
    - `inside`: from groups of parts, what the bottom objects inside each group contribute to it;
    - `steps`: of integrals;
    - `features`: numbers about the whole example, whose contributions are none of objects.
    """

    output: float
    baseline: float
    objects: list[Floats]
    empty: list[Floats]
    entries: list[Floats]
    inside: Callable[[Sequence[Ints]], list[Floats]]
    steps: int
    features: Sequence[FeatureContribution] = ()


@dataclass(eq=False, kw_only=True)
class Fitted(ABC):
    """A trained model: what it predicts, and how it reads data."""

    kind: ClassVar[str]
    """What files call it."""

    targets: Targets
    calibration: Calibration
    decomposition: Decomposition | None
    schema: Hierarchy

    @property
    def members(self) -> list[Member]:
        """The models of a blend, largest weight first; otherwise the model alone."""
        return [Member("", self, 1.0, None)]

    @property
    def takes(self) -> str:
        """The kind of data that it reads: graphs, documents or nested."""
        return "graphs" if self.decomposition is None else self.decomposition.takes

    @abstractmethod
    def each(self, data: Decompositions) -> Floats:
        """What every network or member predicts alone, (n, members, …)."""

    @property
    def weights(self) -> Floats | None:
        """The weights in `each`; None for a model that is one alone."""
        return None

    def spread(self, each: Floats) -> Floats | None:
        """How far the members are apart in `each`, (n, …); None for a model that is one alone."""
        return None

    @abstractmethod
    def combined(self, each: Floats) -> Floats:
        """The mean, by weight, of what `each` gives, calibrated."""

    def predictions(self, data: Decompositions) -> Floats:
        """Probabilities (n, C), or (n, t) of the second classes of t targets; or numbers."""
        return self.combined(self.each(data))

    @abstractmethod
    def embed(self, data: Decompositions, level: int | None = None) -> Floats:
        """Vectors of the objects of a level, None for the examples.

        Parameters
        ----------
        data : Decompositions
            The examples.
        level : int | None, default=None
            The level, 0 for the bottom. None: the examples.
        """

    @abstractmethod
    def explained(
        self, hierarchy: Hierarchy, weights: Floats, data: Decompositions | None = None
    ) -> Explained:
        """What the objects of one example contribute to Σ weights · outputs, in the unit of y.

        Parameters
        ----------
        hierarchy : Hierarchy
            The example.
        weights : Floats
            Weights of the outputs.
        data : Decompositions | None, default=None
            The example with its features. None: average features.
        """

    @abstractmethod
    def top_entries(self, compressed: Compressed, weights: Sequence[Floats]) -> list[TopEntries]:
        """For each of some weights, what the entries of the top add to Σ weights · outputs.

        Parameters
        ----------
        compressed : Compressed
            The examples.
        weights : Sequence[Floats]
            Weights of the outputs, once per sum.
        """

    @property
    @abstractmethod
    def knows_average(self) -> bool:
        """Whether explanations compare with the average training example, or with nothing."""

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """What the model consists of, as JSON."""

    @property
    @abstractmethod
    def in_words(self) -> str:
        """The same in words."""

    def to(self, device: str) -> None:
        """Move what runs on a device there."""
        return

    def compress(self, data: Decompositions, *, lower_inverse: bool = False) -> Compressed:
        """New data as the model reads them; see `Decompositions.like`.

        Parameters
        ----------
        data : Decompositions
            The examples.
        lower_inverse : bool, default=False
            Whether to keep the unique object of every object below the top level, too.
        """
        return data.like(self.decomposition, self.schema, lower_inverse=lower_inverse)

    # -- files ------------------------------------------------------------------------------

    @abstractmethod
    def pack(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """The model as JSON and arrays, for `unpack`."""

    @classmethod
    @abstractmethod
    def unpack(cls, document: dict[str, Any], tensors: Mapping[str, Array]) -> Fitted:
        """The model; raises `InputError` for what `pack` never gives.

        Parameters
        ----------
        document : dict[str, Any]
            What `pack` gave, without arrays.
        tensors : Mapping[str, Array]
            The arrays by name.
        """

    def _pack_common(self) -> tuple[dict[str, Any], dict[str, Array]]:
        schema, tensors = pack_hierarchy(self.schema)
        document = {
            "kind": self.kind,
            "targets": self.targets.to_json(),
            "temperature": self.calibration.temperature,
            "schema": schema,
            "decomposition": None
            if self.decomposition is None
            else decomposition_to_json(self.decomposition),
        }
        arrays = {f"schema.{key}": array for key, array in tensors.items()}
        return document, arrays | self._pack_calibration()

    def _pack_calibration(self) -> dict[str, Array]:
        known = {"errors": self.calibration.errors, "spreads": self.calibration.spreads}
        return {f"calibration.{key}": each for key, each in known.items() if each is not None}


def unpack_common(document: dict[str, Any], tensors: Mapping[str, Array]) -> dict[str, Any]:
    """The fields that all models have."""
    settings = document["decomposition"]
    decomposition = None if settings is None else decomposition_from_json(settings)
    schema = unpack_hierarchy(document["schema"], under("schema.", tensors))
    if decomposition is not None and decomposition.vocabulary != schema.attributes.vocabulary:
        raise InputError("the vocabularies differ")
    return {
        "targets": targets_from_json(document["targets"]),
        "calibration": unpack_calibration(document, tensors),
        "decomposition": decomposition,
        "schema": schema,
    }


def unpack_calibration(document: dict[str, Any], tensors: Mapping[str, Array]) -> Calibration:
    """A calibration, checked."""
    temperature, errors = float(document["temperature"]), tensors.get("calibration.errors")
    if not 0 < temperature < np.inf:
        raise InputError("the temperature is wrong")
    spreads = tensors.get("calibration.spreads")
    if spreads is not None and (errors is None or spreads.shape != errors.shape):
        raise InputError("the spreads do not match the errors")
    own = [None if each is None else np.array(each) for each in (errors, spreads)]
    return Calibration(temperature, *own)


def problem_arrays(problem: Problem, compressed: Compressed) -> list[Array]:
    """What is learned from which examples, for `digest_of`: results of others are not taken up."""
    return [compressed.keys[-1][compressed.top], problem.values, problem.weights]


def calibrated(
    problem: Problem, fold: Fold, tested: Floats, held_out: Floats
) -> tuple[Calibration, Floats, Floats]:
    """What held-out predictions teach, and the means of predictions that are calibrated by it.

    `tested` (k, m, …) and `held_out` (j, h, …) are by k and j models. Each model is calibrated as
    it was measured, alone; they are averaged afterwards. So the average is no less likely than its
    members are, while a temperature of the average would be that of a model which nobody has
    measured: every held-out example is in the training part of most models. What an inner fold
    holds out is calibrated by the others.
    """
    rows, targets = fold.held_out, problem.targets
    if not len(rows):
        return Calibration(), tested.mean(axis=0), held_out.mean(axis=0)
    truth, weights, crossed = problem.values[rows], problem.weights[rows], held_out.copy()
    for part in fold.parts:
        some = fold.others(part)
        own = targets.calibrate(held_out[:, some], truth[some], weights[some])
        crossed[:, part] = own.apply(held_out[:, part], several=targets.several)
    result = targets.calibrate(held_out, truth, weights)
    means = result.apply(tested, several=targets.several).mean(axis=0), crossed.mean(axis=0)
    return result, *means
