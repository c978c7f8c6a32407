"""`explain`: which parts of an example, and what in them, drive a network's prediction.

Contributions are defined in `saen.explanations.attribution`. Ensembles explain the mean output of
their networks. All arithmetic is float64 on the CPU.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from saen._util.arrays import Array, Ints, frozen, segment_ids
from saen._util.executor import Executor
from saen.data.compression import Compressed
from saen.data.content_hash import Keys, level_keys
from saen.data.documents import Documents
from saen.data.graphs import Graphs
from saen.data.hierarchy import Hierarchy, Relation
from saen.errors import InputError
from saen.explanations.attribution import Passed
from saen.explanations.describe import DecomposedExample, Part, largest, singular
from saen.explanations.linear import linear_contributions, linear_outputs, linear_parts
from saen.io.coerce import as_data
from saen.learning.blend import BlendEstimator
from saen.learning.part_counts_models import PartCountsEstimator, PartCountsRegressor
from saen.learning.preparation import Data, recode_like
from saen.learning.presets import Classifier, Regressor
from saen.network.model import SAEN

Floats = NDArray[np.float64]
Estimator = Classifier | Regressor

EXAMPLES_PER_TASK = 500
"""Unique examples that a task of an executor explains."""

TOLERANCE = 0.01
"""Largest gap between the output and its parts, as a share of what is explained."""


class LevelBalance(NamedTuple):
    """How the output divides on one level: the two numbers add up to it.

    - `attributed`: the sum of the contributions of the objects of this level;
    - `not_attributed`: the baseline, and contributions of objects without parts further up.
    """

    name: str
    attributed: float
    not_attributed: float


@dataclass(frozen=True, eq=False, repr=False)
class Explanation:
    """The contributions of all parts of one example to one output of a network.

    - `index`, `id`: of the example; `prediction`: what the estimator predicts for it;
    - `classes`: the names of all classes, none for a regression; `target`: the class (or column of
      y) that is explained; `probability`: of that class;
    - `reference`: what the example is compared with, in words;
    - `output`: the logit of the target, mean over the networks (of two classes, the log-odds), or
      the predicted number;
    - `decomposed`: the example with its own hierarchy, whose objects the arrays below are about;
    - `contributions[l]`: of every object of level l, (n_l,); the one object of the top contributes
      the `output`;
    - `empty[l]`: what the objects would contribute without parts, (n_l,), which their parts share
      equally. On the bottom it is the contribution, on the top the `baseline`, which is not shared;
    - `entries[l - 1]`: of every entry of R_l, (entries,);
    - `parts`: the strongest parts of the example, at most `k`, with the contributions of the bottom
      objects inside them; identical ones are one part with a count;
    - `steps`: of the integrals; `settings`: those of the decomposition.

    The entries of an object sum up to its contribution (above the baseline, on the top), and so do
    the entries in which it is a part; objects without parts keep their contribution.
    """

    index: int
    id: Any
    prediction: Any
    classes: tuple[str, ...]
    target: Any
    probability: float | None
    reference: str
    output: float
    decomposed: DecomposedExample
    contributions: tuple[Floats, ...]
    empty: tuple[Floats, ...]
    entries: tuple[Floats, ...]
    parts: tuple[Part, ...]
    k: int
    steps: int
    settings: dict[str, Any]

    @property
    def baseline(self) -> float:
        """The output for the reference."""
        return float(self.empty[-1][0])

    @property
    def quantity(self) -> str:
        """What the output is, in words: `log-odds of questions`, `prediction`, …"""
        if self.classes:
            return f"{'log-odds' if len(self.classes) == 2 else 'logit'} of {self.target}"
        several = isinstance(self.prediction, list)
        return f"prediction of target {self.target}" if several else "prediction"

    @property
    def gap(self) -> float:
        """The largest difference, over the levels, between the output and what adds up to it."""
        return max(
            abs(self.output - level.attributed - level.not_attributed) for level in self.balance()
        )

    def balance(self) -> list[LevelBalance]:
        """How the output divides on every level below the top, from the top down."""
        hierarchy, not_attributed, levels = self.decomposed.hierarchy, self.baseline, []
        for level in range(hierarchy.depth - 1, -1, -1):
            values = self.contributions[level]
            levels.append(LevelBalance(hierarchy.names[level], float(values.sum()), not_attributed))
            if level:
                without_parts = np.diff(hierarchy.relations[level - 1].indptr) == 0
                not_attributed += float(values[without_parts].sum())
        return levels

    def evidence(self, contribution: float) -> str:
        """What a contribution is evidence for, in words: `for questions`, `lower`, …"""
        if not self.classes:
            return "higher" if contribution > 0 else "lower"
        if len(self.classes) > 2:
            return f"{'for' if contribution > 0 else 'against'} {self.target}"
        return f"for {self.classes[(str(self.target) == self.classes[1]) == (contribution > 0)]}"

    def top_parts(self, level: int | None = None, k: int = 10) -> tuple[Part, ...]:
        """The k kinds of objects of a level with the largest contributions, positive or negative.

        Identical objects in the same roles are one part with a count. `level` None is that of the
        example's own parts, one below the top.

        Raises `InputError` for a level that holds no parts.
        """
        depth = self.decomposed.hierarchy.depth
        number = depth - 1 if level is None else level
        if not 0 <= number < depth:
            raise InputError(f"parts lie on levels 0 … {depth - 1}, not {level}")
        return self.decomposed.strongest_parts(number, self.contributions[number], k)

    def to_json(self) -> dict[str, Any]:
        """Everything as plain numbers, lists and strings."""
        hierarchy = self.decomposed.hierarchy
        levels: list[dict[str, Any]] = []
        for level, name in enumerate(hierarchy.names):
            levels.append(
                {
                    "level": level,
                    "name": name,
                    "contributions": self.contributions[level].tolist(),
                    "empty": self.empty[level].tolist(),
                }
            )
            if level:
                relation = hierarchy.relations[level - 1]
                levels[-1]["entries"] = {
                    "parent": segment_ids(relation.indptr).tolist(),
                    "part": relation.parts.tolist(),
                    "role": [relation.alphabet[role] for role in relation.roles.tolist()],
                    "count": relation.multiplicity.tolist(),
                    "contribution": self.entries[level - 1].tolist(),
                }
        return {
            "index": self.index,
            "id": self.id,
            "prediction": self.prediction,
            "classes": list(self.classes),
            "target": self.target,
            "probability": self.probability,
            "reference": self.reference,
            "output": self.output,
            "baseline": self.baseline,
            "gap": self.gap,
            "steps": self.steps,
            "decomposition": self.settings,
            "labels": [self.decomposed.label(i) for i in range(hierarchy.sizes[0])],
            "parts": [part.to_json() for part in self.parts],
            "levels": levels,
        }

    def __repr__(self) -> str:
        return (
            f"Explanation(example {self.index}, output {self.output:.3f} for {self.target}, "
            f"baseline {self.baseline:.3f}, {self.decomposed.hierarchy})"
        )


@dataclass(frozen=True, eq=False)
class UniquePart:
    """One of the unique parts of a collection, and what its occurrences contribute.

    - `number`: among the unique parts; `towards`: the class (or the direction) that it is most
      evidence for; `mean`: its mean contribution towards that, per occurrence;
    - `occurrences`: how often it occurs; `examples`: in how many examples;
    - `part`: one occurrence, in the example number `index`, which is `decomposed`.
    """

    number: int
    towards: str
    mean: float
    occurrences: int
    examples: int
    part: Part
    index: int
    decomposed: DecomposedExample

    @property
    def total(self) -> float:
        """The contribution of all occurrences together."""
        return self.mean * self.occurrences


@dataclass(frozen=True, eq=False, repr=False)
class CollectionExplanation:
    """What the unique parts of a collection contribute to all of its predictions.

    - `name`: of the level below the top, whose unique parts these are;
    - `targets`: the classes that parts are evidence for; `lower` and `higher` for a regression;
    - `means`: the mean contribution per occurrence of every unique part towards every target,
      (unique parts, targets);
    - `occurrences`, `examples`: how often each occurs, and in how many examples, (unique parts,);
    - `parts`: those that tell the classes apart most, see `contrasts`;
    - `n_examples`: of the collection; `gap`: the largest difference between an output and what
      adds up to it; `settings`: those of the decomposition.
    """

    name: str
    targets: tuple[str, ...]
    means: Floats
    occurrences: Ints
    examples: Ints
    parts: tuple[UniquePart, ...]
    n_examples: int
    gap: float
    settings: dict[str, Any]

    def to_json(self) -> dict[str, Any]:
        """The strongest unique parts as plain numbers, lists and strings."""
        return {
            "structures": self.n_examples,
            "level": self.name,
            "unique_parts": len(self.means),
            "targets": list(self.targets),
            "gap": self.gap,
            "decomposition": self.settings,
            "parts": [
                {
                    "number": each.number,
                    "towards": each.towards,
                    "mean": each.mean,
                    "total": each.total,
                    "means": dict(zip(self.targets, self.means[each.number].tolist(), strict=True)),
                    "occurrences": each.occurrences,
                    "structures": each.examples,
                    "example": each.index,
                    "part": each.part.to_json(),
                }
                for each in self.parts
            ],
        }

    def __repr__(self) -> str:
        return (
            f"CollectionExplanation({self.n_examples:,} examples, {len(self.means):,} unique "
            f"{self.name}, targets {', '.join(self.targets)})"
        )


def explain(
    estimator: Estimator, X: Data, index: int = 0, *, target: Any = None, k: int = 10
) -> Explanation:
    """Explain one prediction: what every part of an example contributes to it.

    Parameters
    ----------
    estimator
        A fitted `SAENClassifier`, `SAENRegressor`, `PartCountsClassifier` or
        `PartCountsRegressor`; of a blend, the member with the largest weight is explained.
    X
        Data as the estimator takes them.
    index
        Which example of X to explain.
    target
        The class whose logit is explained, by default the predicted one. For a regression, the
        column of y.
    k
        How many of the strongest parts to look into.

    Raises `InputError` where there is no such example or class.

    >>> import saen
    >>> threads = saen.generate_threads(60, seed=1)
    >>> model = saen.SAENClassifier(epochs=5).fit(threads, threads.targets)
    >>> explanation = explain(model, threads, index=3)
    >>> explanation.target == explanation.prediction, explanation.gap < 1e-9
    (True, True)
    >>> len(explanation.contributions[0]) == threads[3].n_nodes
    True
    """
    estimator = largest_member(estimator)
    data = checked(estimator, X)
    if not 0 <= index < len(data):
        known = f"the examples are 0 … {len(data) - 1}" if len(data) else "the data are empty"
        raise InputError(f"there is no example {index}: {known}")
    one = data[index : index + 1]
    prediction = _plain(estimator.predict(one)[0])
    decomposed = _decomposed(estimator, one)
    goal = _Goal.of(estimator, target, prediction)
    computed = (
        _linear_explanation(estimator, decomposed, goal, k)
        if isinstance(estimator, PartCountsEstimator)
        else _network_explanation(_exact(estimator.network_), decomposed, goal, k)
    )
    explanation = Explanation(
        index=index,
        id=_plain(data.ids[index]) if hasattr(data, "ids") else index,
        prediction=prediction,
        classes=goal.classes,
        target=goal.target,
        probability=_probability(estimator, one, goal),
        reference=_reference(estimator),
        decomposed=decomposed,
        k=k,
        settings=_settings(estimator),
        **computed,
    )
    _check_complete(*(np.array([getattr(explanation, f)]) for f in ("output", "baseline", "gap")))
    return explanation


def largest_member(estimator: Any) -> Any:
    """What is explained: the estimator, or of a blend the member with the largest weight."""
    return estimator.members_[0].estimator if isinstance(estimator, BlendEstimator) else estimator


def explain_collection(
    estimator: Estimator,
    X: Data,
    *,
    target: Any = None,
    k: int = 10,
    executor: Executor | None = None,
) -> CollectionExplanation:
    """Explain all predictions: what every unique part contributes to them.

    Identical parts are merged, so this is one pass over the compressed data.

    `estimator` and `X` are those of `explain`; of a blend, the member with the largest weight is
    explained. `k` is how many of the strongest unique parts to describe by an example. For a
    regression, `target` is the column of y; classifiers are explained towards all of their classes.
    With an `executor`, examples are explained in tasks.

    Raises `InputError` for empty data, and for a class as target.

    >>> import saen
    >>> threads = saen.generate_threads(60, seed=1)
    >>> model = saen.SAENClassifier(epochs=5).fit(threads, threads.targets)
    >>> explain_collection(model, threads)
    CollectionExplanation(60 examples, ... unique ego graphs, targets discussion, questions)
    """
    estimator = largest_member(estimator)
    data = checked(estimator, X)
    if len(data) == 0:
        raise InputError("nothing to explain: the data are empty")
    if target is not None and isinstance(estimator, Classifier):
        raise InputError("collections are explained towards all classes: omit the target")
    compressed = estimator.compress(data)
    relation = compressed.hierarchy.relations[-1]
    rows = segment_ids(relation.indptr)
    uses = np.bincount(compressed.top, minlength=relation.n_parents)
    found = (
        top_contributions(estimator, compressed, target)
        if executor is None
        else _in_tasks(estimator, compressed, target, executor)
    )
    totals, occurrences = part_totals(compressed, found)
    if totals.shape[1] == 1:
        totals = np.column_stack([-totals, totals])
    names = found.classes or ("lower", "higher")
    pairs = np.unique(np.column_stack([rows, relation.parts]), axis=0)
    examples = np.bincount(pairs[:, 1], uses[pairs[:, 0]], minlength=relation.n_parts)
    means = totals / np.maximum(occurrences, 1)[:, None]
    contrast = contrasts(compressed, found)
    level = compressed.hierarchy.depth - 1

    @cache
    def keyed_example(index: int) -> tuple[DecomposedExample, Keys]:
        decomposed = _decomposed(estimator, data[index : index + 1])
        return decomposed, level_keys(decomposed.hierarchy)[level]

    def describe(number: int) -> UniquePart:
        row = rows[np.flatnonzero(relation.parts == number)[0]]
        index = int(np.flatnonzero(compressed.top == row)[0])
        decomposed, keys = keyed_example(index)
        own = int(np.flatnonzero((keys == compressed.keys[level][number]).all(axis=1))[0])
        best = int(means[number].argmax())
        return UniquePart(
            number=number,
            towards=names[best],
            mean=float(means[number, best]),
            occurrences=int(occurrences[number]),
            examples=int(examples[number]),
            part=decomposed.part(level, own, means[number, best]),
            index=index,
            decomposed=decomposed,
        )

    return CollectionExplanation(
        name=compressed.hierarchy.names[-2],
        targets=names,
        means=frozen(means),
        occurrences=frozen(occurrences),
        examples=frozen(examples.astype(np.int64)),
        parts=tuple(map(describe, largest(contrast.max(axis=1), k))),
        n_examples=len(data),
        gap=found.gap,
        settings=_settings(estimator),
    )


@dataclass(frozen=True, eq=False, repr=False)
class TopContributions:
    """What the parts of unique examples contribute to their outputs.

    - `classes`: the names of all classes, none for a regression;
    - `outputs`, `baselines` (rows, k): of every unique example, for k classes; of two classes, and
      for a regression, k is 1: the log-odds of the second one, or the number;
    - `entries` (entries, k): of every entry of the top relation;
    - `gap`: the largest difference between an output and what adds up to it.
    """

    classes: tuple[str, ...]
    outputs: Floats
    baselines: Floats
    entries: Floats
    gap: float


def top_contributions(
    estimator: Estimator, compressed: Compressed, target: Any = None
) -> TopContributions:
    """The contributions of all parts of all unique examples, in one pass.

    `compressed` is what the estimator's own `compress` gives; `target` the column of y of a
    regression.
    """
    goals = _Goal.all(estimator, target)
    found = [*map(_explained(estimator, compressed), goals)]
    rows = segment_ids(compressed.hierarchy.relations[-1].indptr)
    gap = 0.0
    for outputs, baselines, entries in found:
        attributed = np.bincount(rows, entries, minlength=len(outputs))
        gaps = np.abs(outputs - baselines - attributed)
        _check_complete(outputs, baselines, gaps)
        gap = max(gap, float(gaps.max(initial=0.0)))
    outputs, baselines, entries = (np.column_stack(arrays) for arrays in zip(*found, strict=True))
    return TopContributions(goals[0].classes, outputs, baselines, entries, gap)


def _in_tasks(
    estimator: Estimator, compressed: Compressed, target: Any, executor: Executor
) -> TopContributions:
    """`top_contributions`, a few unique examples per task."""
    hierarchy = compressed.hierarchy
    shared = executor.put(hierarchy)
    starts = range(0, len(hierarchy), EXAMPLES_PER_TASK)
    for start in starts:
        executor.submit(f"examples from {start}", _explain_some, estimator, shared, start, target)
    results = dict(executor.completed())
    parts: list[TopContributions] = [results[f"examples from {start}"] for start in starts]
    outputs, baselines, entries = (
        np.concatenate([getattr(part, name) for part in parts])
        for name in ("outputs", "baselines", "entries")
    )
    gap = max(part.gap for part in parts)
    return TopContributions(parts[0].classes, outputs, baselines, entries, gap)


def _explain_some(
    estimator: Estimator, hierarchy: Hierarchy, start: int, target: Any
) -> TopContributions:
    some = hierarchy[start : start + EXAMPLES_PER_TASK]
    top = np.arange(len(some))
    sizes, entries = some.sizes, (0, *(relation.n_entries for relation in some.relations))
    alone = Compressed(some, (*[None] * some.depth, top), sizes, entries)
    return top_contributions(estimator, alone, target)


def part_totals(compressed: Compressed, found: TopContributions) -> tuple[Floats, Ints]:
    """What all occurrences of every unique part contribute, (unique parts, k), and their number."""
    relation = compressed.hierarchy.relations[-1]
    uses = np.bincount(compressed.top, minlength=relation.n_parents)[relation.parents]
    totals = [_sum_by_part(relation, uses * column) for column in found.entries.T]
    occurrences = _sum_by_part(relation, uses * relation.multiplicity)
    return np.column_stack(totals), occurrences.astype(np.int64)


def contrasts(compressed: Compressed, found: TopContributions) -> Floats:
    """How much the presence of every unique part tells the classes apart, (unique parts, classes).

    For a class: what the part contributes to its logit in an example that is predicted to be of
    that class, less the same in the others, on average. A part that all examples have alike has
    none, however often it occurs. Of two classes, one is the negative of the other. For a
    regression, one column: the standard deviation of what the part contributes.
    """
    relation = compressed.hierarchy.relations[-1]
    rows = segment_ids(relation.indptr)
    uses = np.bincount(compressed.top, minlength=relation.n_parents).astype(np.float64)
    if not found.classes:
        # An example may hold a part in several roles.
        pairs, own = np.unique(
            rows * relation.n_parts + relation.parts.astype(np.int64), return_inverse=True
        )
        values = np.bincount(own, found.entries[:, 0])
        parts, weight = pairs % relation.n_parts, uses[pairs // relation.n_parts] / uses.sum()
        mean, square = (
            np.bincount(parts, weight * values**power, minlength=relation.n_parts)
            for power in (1, 2)
        )
        spread: Floats = np.sqrt(np.maximum(square - mean**2, 0.0))[:, None]
        return spread
    binary = found.entries.shape[1] == 1
    predicted = found.outputs[:, 0] > 0 if binary else found.outputs.argmax(axis=1)

    def contrast(column: int, code: int) -> Floats:
        mine = predicted == code
        inside, outside = (np.where(side, uses, 0.0) for side in (mine, ~mine))
        share = inside / max(inside.sum(), 1.0) - outside / max(outside.sum(), 1.0)
        return _sum_by_part(relation, share[rows] * found.entries[:, column])

    if binary:
        second = contrast(0, 1)
        return np.column_stack([-second, second])
    return np.column_stack([contrast(code, code) for code in range(found.entries.shape[1])])


# -- what is explained -------------------------------------------------------------------------


@dataclass(frozen=True)
class _Goal:
    """The output that is explained: a linear function of the outputs of the networks."""

    classes: tuple[str, ...]
    target: Any
    weights: Floats
    shift: float

    @staticmethod
    def of(estimator: Estimator, target: Any, prediction: Any) -> _Goal:
        """That of a target, or of the default one."""
        if isinstance(estimator, Regressor):
            if isinstance(estimator, PartCountsRegressor):
                scale = np.ones(len(estimator.linear_.intercept))
                mean = np.zeros_like(scale)
            else:
                scale, mean = np.atleast_1d(estimator.scale_), np.atleast_1d(estimator.mean_)
            names = tuple(map(str, range(len(scale))))
            place = _position("column of y", "0" if target is None else target, names)
            return _Goal((), place, np.eye(len(scale))[place] * scale, float(mean[place]))
        if estimator.classes_.ndim == 2:  # several targets: the log-odds of one of them
            names = tuple(estimator.target_names_)
            place = _position("target", names[0] if target is None else target, names)
            return _Goal((), place, np.eye(len(names))[place], 0.0)
        names = tuple(map(str, estimator.classes_.tolist()))
        binary = len(names) == 2
        if target is None:
            target = names[1] if prediction is None else prediction
        place = _position("class", target, names)
        weights = np.array([2.0 * place - 1]) if binary else np.eye(len(names))[place]
        return _Goal(names, _plain(estimator.classes_[place]), weights, 0.0)

    @staticmethod
    def all(estimator: Estimator, target: Any) -> list[_Goal]:
        """One for every class, or one alone where its opposite is the other one."""
        single = isinstance(estimator, Regressor) or estimator.classes_.ndim == 2
        if single or len(estimator.classes_) == 2:
            return [_Goal.of(estimator, target, None)]
        return [_Goal.of(estimator, each, None) for each in estimator.classes_]

    def gradient(self, network: SAEN) -> Tensor:
        """With respect to all outputs, (M, outputs)."""
        return (torch.from_numpy(self.weights) / network.n_models).expand(network.n_models, -1)

    def outputs(self, raw: Tensor) -> Floats:
        """The output that is explained, from all outputs, shape (n, M, outputs)."""
        numbers: Floats = raw.mean(dim=1).numpy() @ self.weights + self.shift
        if not np.isfinite(numbers).all():
            raise InputError("the output of the network is not finite: there is nothing to explain")
        return numbers


def _position(what: str, target: Any, names: tuple[str, ...]) -> int:
    """The position of a target, which a command line can only give as text."""
    if str(target) not in names:
        raise InputError(f"there is no {what} {str(target)!r}: choose from {', '.join(names)}")
    return names.index(str(target))


def checked(estimator: Estimator, X: Data) -> Any:
    """The data as a collection that can be sliced."""
    if not isinstance(estimator, Estimator):
        raise InputError(f"explain takes a fitted estimator, not {type(estimator).__name__}")
    check_is_fitted(estimator, "schema_")
    fitted = estimator.decomposition_
    data = as_data(X, "graphs" if fitted is None else fitted.takes)
    if fitted is None and not isinstance(data, Hierarchy):
        raise InputError("this estimator was fitted on hierarchies: pass a Hierarchy")
    return data


def _decomposed(estimator: Estimator, one: Any) -> DecomposedExample:
    """One example with its original hierarchy, over the vocabulary of the estimator."""
    if isinstance(one, Hierarchy):
        return DecomposedExample(recode_like(one, estimator.schema_))
    assert estimator.decomposition_ is not None
    hierarchy = estimator.decomposition_.decompose(one)
    if not isinstance(one, Graphs):
        anchors = estimator.decomposition_.anchors(one) if isinstance(one, Documents) else None
        return DecomposedExample(
            hierarchy, anchors=anchors, document=one if isinstance(one, Documents) else None
        )
    decomposition = estimator.decomposition_
    return DecomposedExample(
        hierarchy, one, decomposition.anchors(one), decomposition.describe_label
    )


def _probability(estimator: Estimator, one: Any, goal: _Goal) -> float | None:
    """The probability that the estimator gives the explained class."""
    if not goal.classes:
        return None
    place = goal.classes.index(str(goal.target))
    return float(estimator.predict_proba(one)[0, place])


def _reference(estimator: Estimator) -> str:
    """What examples are compared with, in words."""
    if isinstance(estimator, PartCountsEstimator):
        typical: Any = estimator.linear_.typical
    else:
        typical = estimator.network_.level(estimator.schema_.depth).typical()
    if typical is None:
        return "an example without parts"
    return f"the average {singular(estimator.schema_.names[-1])} of the training data"


def _settings(estimator: Estimator | PartCountsEstimator) -> dict[str, Any]:
    return {} if estimator.decomposition_ is None else estimator.decomposition_.settings()


def _exact(network: SAEN) -> SAEN:
    """A copy in float64 on the CPU."""
    return deepcopy(network).to("cpu", torch.float64)


# -- contributions -----------------------------------------------------------------------------


def _network_explanation(
    network: SAEN, decomposed: DecomposedExample, goal: _Goal, k: int
) -> dict[str, Any]:
    """The fields of an `Explanation` that networks determine."""
    passed = Passed.through(network, decomposed.hierarchy)
    output = goal.outputs(passed.h[-1])
    top, *below = passed.contributions(goal.gradient(network)[None])
    levels = [*reversed(below), top]  # bottom first
    shift = [0.0] * len(below) + [goal.shift]

    def inside(number: int) -> Floats:
        gradient, own = below[0].gradients[number], below[0].objects[number]
        if passed.hierarchy.depth == 1:
            return frozen([own])
        share = np.array([own - float((gradient * passed.h[-2][number]).sum())])
        *_, bottom = passed.part(number).contributions(gradient[None], share)
        return frozen(bottom.objects)

    return {
        "output": float(output[0]),
        "contributions": tuple(frozen(f.objects + s) for f, s in zip(levels, shift, strict=True)),
        "empty": tuple(frozen(f.empty + s) for f, s in zip(levels, shift, strict=True)),
        "entries": tuple(frozen(level.entries) for level in levels[1:]),
        "parts": decomposed.strongest_parts(len(below) - 1, below[0].objects, k, inside),
        "steps": max(level.steps for level in levels),
    }


def _linear_explanation(
    model: PartCountsEstimator, decomposed: DecomposedExample, goal: _Goal, k: int
) -> dict[str, Any]:
    """The same for a linear model over part counts, whose contributions are exact."""
    output, baseline, objects, entries = linear_contributions(
        model, decomposed.hierarchy, goal.weights
    )
    return {
        "output": output,
        "contributions": tuple(map(frozen, objects)),
        "empty": tuple(map(frozen, [*objects[:-1], np.array([baseline])])),
        "entries": tuple(map(frozen, entries)),
        "parts": linear_parts(decomposed, objects[-2], k),
        "steps": 1,
    }


def _explained(
    estimator: Estimator, compressed: Compressed
) -> Callable[[_Goal], tuple[Floats, Floats, Floats]]:
    """Outputs and baselines of the unique examples, and what the entries of the top contribute."""
    if isinstance(estimator, PartCountsEstimator):
        return lambda goal: linear_outputs(estimator, compressed, goal.weights)
    network = _exact(estimator.network_)
    passed = Passed.through(network, compressed.hierarchy)

    def networks(goal: _Goal) -> tuple[Floats, Floats, Floats]:
        top = next(passed.contributions(goal.gradient(network).expand(len(passed.h[-1]), -1, -1)))
        return goal.outputs(passed.h[-1]), top.empty + goal.shift, top.entries

    return networks


def _check_complete(outputs: Floats, baselines: Floats, gaps: Floats) -> None:
    """Raise unless baseline and contributions add up to the output of every example."""
    rounding = 1e-9 * (np.abs(outputs) + np.abs(baselines))
    wrong = np.flatnonzero(~(gaps <= TOLERANCE * np.abs(outputs - baselines) + rounding))
    if len(wrong):
        raise InputError(
            f"contributions do not add up: they miss an output of {outputs[wrong[0]]:.6g} by "
            f"{gaps[wrong[0]]:.3g}, more than {TOLERANCE:.0%} of its distance from the baseline "
            f"{baselines[wrong[0]]:.6g}"
        )


def _sum_by_part(relation: Relation, values: Array) -> Floats:
    """The sum over the entries of every part."""
    return np.bincount(relation.parts, values, minlength=relation.n_parts).astype(np.float64)


def _plain(value: Any) -> Any:
    """Without numpy."""
    return value.tolist() if isinstance(value, np.generic | np.ndarray) else value
