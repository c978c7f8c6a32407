"""`explain`: which parts of a structure, and what in them, carried a network's decision.

How contributions are defined stands in `saen.explanations.attribution`. Ensembles explain the mean
output of their networks. All arithmetic is float64 on the CPU.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from saen._util.arrays import Array, Ints, frozen, segment_ids
from saen.data.compression import Compressed, compress
from saen.data.graphs import Graphs
from saen.data.hierarchy import Hierarchy, Relation
from saen.errors import InputError
from saen.explanations.attribution import Passed
from saen.explanations.describe import Part, Whole
from saen.io.coerce import as_data
from saen.learning.estimators import Data, SAENClassifier, SAENRegressor
from saen.network.model import SAEN

Floats = NDArray[np.float64]
Estimator = SAENClassifier | SAENRegressor

TOLERANCE = 0.01
"""How far baseline and contributions may be from the output, as a share of what is explained."""


@dataclass(frozen=True, eq=False, repr=False)
class Explanation:
    """The contributions of all parts of one structure to one output of a network.

    - `index`: of the structure; `prediction`: what the estimator predicts for it;
    - `classes`: the names of all classes, none for a regression; `target`: the class (or column of
      y) that is explained;
    - `output`: the logit of the target, mean over the networks (of two classes, the log-odds), or
      the predicted number;
    - `whole`: the structure's own hierarchy, whose objects the arrays below are about;
    - `contributions[l]`: of every object of level l, (n_l,); the one object of the top contributes
      the `output`;
    - `empty[l]`: what the objects would contribute without parts, (n_l,), which their parts share
      equally. On the bottom it is the contribution, on the top the `baseline`, which nobody shares;
    - `entries[l - 1]`: of every entry of R_l, (entries,);
    - `parts`: the strongest parts of the structure, with what every bottom object did inside them;
    - `steps`: into how many the integrals were divided; `settings`: those of the decomposition.

    The entries of an object sum up to its contribution (above the baseline, on the top), and so do
    the entries in which it stands; objects without parts keep what they contribute.
    """

    index: int
    prediction: Any
    classes: tuple[str, ...]
    target: Any
    output: float
    whole: Whole
    contributions: tuple[Floats, ...]
    empty: tuple[Floats, ...]
    entries: tuple[Floats, ...]
    parts: tuple[Part, ...]
    steps: int
    settings: dict[str, Any]

    @property
    def baseline(self) -> float:
        """The output for a structure without parts."""
        return float(self.empty[-1][0])

    @property
    def gap(self) -> float:
        """How far what stayed and what was contributed are from the output, on the worst level."""
        return max(abs(self.output - stayed - given) for _, stayed, given in self.balance())

    def balance(self) -> list[tuple[str, float, float]]:
        """Per level below the top: its name, what stayed above it, what its objects contributed.

        The baseline stays above, and what objects without parts contribute. On every level the two
        numbers add up to the output.
        """
        hierarchy, stayed, rows = self.whole.hierarchy, self.baseline, []
        for level in range(hierarchy.depth - 1, -1, -1):
            given = self.contributions[level]
            rows.append((hierarchy.names[level], stayed, float(given.sum())))
            if level:
                bare = np.diff(hierarchy.relations[level - 1].indptr) == 0
                stayed += float(given[bare].sum())
        return rows

    def speaks_for(self, contribution: float) -> str:
        """What a contribution speaks for, in words."""
        if not self.classes:
            return "higher" if contribution > 0 else "lower"
        if len(self.classes) > 2:
            return f"{'for' if contribution > 0 else 'against'} {self.target}"
        return f"for {self.classes[(str(self.target) == self.classes[1]) == (contribution > 0)]}"

    def top_parts(self, level: int | None = None, k: int = 10) -> list[Part]:
        """The k objects of a level that contributed most, either way, the strongest first.

        `level` None is that of the structure's own parts, one below the top.
        """
        depth = self.whole.hierarchy.depth
        chosen = depth - 1 if level is None else level
        if not 0 <= chosen < depth:
            raise InputError(f"parts lie on levels 0 … {depth - 1}, not {level}")
        values = self.contributions[chosen]
        return [self.whole.part(chosen, i, values[i]) for i in _strongest(np.abs(values), k)]

    def to_json(self) -> dict[str, Any]:
        """Everything as plain numbers, lists and strings."""
        hierarchy = self.whole.hierarchy
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
                    "whole": segment_ids(relation.indptr).tolist(),
                    "part": relation.parts.tolist(),
                    "role": [relation.alphabet[role] for role in relation.roles.tolist()],
                    "count": relation.multiplicity.tolist(),
                    "contribution": self.entries[level - 1].tolist(),
                }
        return {
            "index": self.index,
            "prediction": self.prediction,
            "classes": list(self.classes),
            "target": self.target,
            "output": self.output,
            "baseline": self.baseline,
            "gap": self.gap,
            "steps": self.steps,
            "decomposition": self.settings,
            "labels": [self.whole.label(i) for i in range(hierarchy.sizes[0])],
            "parts": [part.to_json() for part in self.parts],
            "levels": levels,
        }

    def __repr__(self) -> str:
        return (
            f"Explanation(structure {self.index}, output {self.output:.3f} for {self.target}, "
            f"baseline {self.baseline:.3f}, {self.whole.hierarchy})"
        )


@dataclass(frozen=True, eq=False)
class PartClass:
    """A class of equal parts, and what they contribute over a collection.

    - `number`: of the class; `towards`: the class of structures (or the direction) that it speaks
      for most; `mean`: its mean contribution towards that, per occurrence;
    - `occurrences`: how often it occurs, in how many `structures`;
    - `part`: one of them, in the structure number `example`, which is `whole`.
    """

    number: int
    towards: str
    mean: float
    occurrences: int
    structures: int
    part: Part
    example: int
    whole: Whole

    @property
    def total(self) -> float:
        """The contribution of all occurrences together."""
        return self.mean * self.occurrences


@dataclass(frozen=True, eq=False, repr=False)
class CollectionExplanation:
    """What classes of equal parts contribute over a whole collection.

    - `name`: of the level below the top, whose classes these are;
    - `targets`: the classes that parts speak for; `lower` and `higher` for a regression;
    - `means`: the mean contribution per occurrence of every class of parts towards every target,
      (classes of parts, targets);
    - `occurrences`, `structures`: how often each occurs, in how many structures, (classes of
      parts,);
    - `parts`: the strongest, by the total of all occurrences towards one target less the mean over
      the targets;
    - `n_structures`: of the collection; `gap`: how far baseline and contributions are from the
      output of a structure, at worst; `settings`: those of the decomposition.
    """

    name: str
    targets: tuple[str, ...]
    means: Floats
    occurrences: Ints
    structures: Ints
    parts: tuple[PartClass, ...]
    n_structures: int
    gap: float
    settings: dict[str, Any]

    def to_json(self) -> dict[str, Any]:
        """The strongest classes of parts as plain numbers, lists and strings."""
        return {
            "structures": self.n_structures,
            "level": self.name,
            "classes_of_parts": len(self.means),
            "targets": list(self.targets),
            "gap": self.gap,
            "decomposition": self.settings,
            "parts": [
                {
                    "class": each.number,
                    "towards": each.towards,
                    "mean": each.mean,
                    "total": each.total,
                    "means": dict(zip(self.targets, self.means[each.number].tolist(), strict=True)),
                    "occurrences": each.occurrences,
                    "structures": each.structures,
                    "example": each.example,
                    "part": each.part.to_json(),
                }
                for each in self.parts
            ],
        }

    def __repr__(self) -> str:
        return (
            f"CollectionExplanation({self.n_structures:,} structures, {len(self.means):,} classes "
            f"of {self.name}, targets {', '.join(self.targets)})"
        )


def explain(
    estimator: Estimator, X: Data, index: int = 0, *, target: Any = None, k: int = 10
) -> Explanation:
    """Which parts of structure `index` of X carried what a fitted estimator says about it.

    `target` is the class whose logit is explained: by default the second of two classes, and of
    more than two the predicted one; for a regression it is a column of y. `k` is the number of
    strongest parts to look into.

    Raises `InputError` where there is no such structure or class.

    >>> import saen
    >>> threads = saen.generate_threads(60, seed=1)
    >>> model = saen.SAENClassifier(epochs=5).fit(threads, threads.targets)
    >>> found = explain(model, threads, index=3)
    >>> found.target, found.gap < 1e-9
    ('questions', True)
    >>> len(found.contributions[0]) == threads[3].n_nodes
    True
    """
    structures = _checked(estimator, X)
    if not 0 <= index < len(structures):
        there = (
            f"the structures are 0 … {len(structures) - 1}" if len(structures) else "it is empty"
        )
        raise InputError(f"there is no structure {index} in this collection: {there}")
    one = structures[index : index + 1]
    whole = _whole(estimator, one)
    prediction = _plain(estimator.predict(one)[0])
    goal = _Goal.of(estimator, target, prediction)
    network = _exact(estimator.network_)
    passed = Passed.through(network, whole.hierarchy)
    output = goal.outputs(passed.h[-1])
    top, *below = passed.contributions(goal.gradient(network)[None])
    levels = [*reversed(below), top]  # bottom first
    parts = below[0]
    level = whole.hierarchy.depth - 1
    shift = [0.0] * len(below) + [goal.shift]
    made = Explanation(
        index=index,
        prediction=prediction,
        classes=goal.classes,
        target=goal.target,
        output=float(output[0]),
        whole=whole,
        contributions=tuple(frozen(f.objects + s) for f, s in zip(levels, shift, strict=True)),
        empty=tuple(frozen(f.empty + s) for f, s in zip(levels, shift, strict=True)),
        entries=tuple(frozen(found.entries) for found in levels[1:]),
        parts=tuple(
            whole.part(
                level,
                number,
                parts.objects[number],
                _inside(passed, number, parts.told[number]),
            )
            for number in _strongest(np.abs(parts.objects), k)
        ),
        steps=max(found.steps for found in levels),
        settings=_settings(estimator),
    )
    _check_complete(output, np.array([made.baseline]), np.array([made.gap]))
    return made


def explain_collection(
    estimator: Estimator, X: Data, *, target: Any = None, k: int = 10
) -> CollectionExplanation:
    """Which kinds of parts carry what a fitted estimator says about a whole collection.

    Equal parts are one class, so this is one pass over the collapsed collection. Classifiers are
    explained towards all of their classes; `target` is the column of y for a regression. `k` is
    the number of strongest classes of parts to describe by an example.

    >>> import saen
    >>> threads = saen.generate_threads(60, seed=1)
    >>> model = saen.SAENClassifier(epochs=5).fit(threads, threads.targets)
    >>> explain_collection(model, threads)
    CollectionExplanation(60 structures, ... classes of ego graphs, targets discussion, questions)
    """
    structures = _checked(estimator, X)
    if len(structures) == 0:
        raise InputError("nothing to explain: the collection is empty")
    if target is not None and isinstance(estimator, SAENClassifier):
        raise InputError("a collection is explained towards all of its classes: leave target out")
    compressed = estimator._compressed(structures)
    relation = compressed.hierarchy.relations[-1]
    rows = segment_ids(relation.indptr)
    uses = np.bincount(compressed.top, minlength=relation.n_parents)
    goals = _Goal.all(estimator, target)
    totals, gap = _totals(_exact(estimator.network_), compressed, goals)
    if len(goals) == 1:
        totals = np.column_stack([-totals, totals])
    names = goals[0].classes or ("lower", "higher")
    occurrences = _summed(relation, uses[rows] * relation.multiplicity).astype(np.int64)
    pairs = np.unique(np.column_stack([rows, relation.parts]), axis=0)
    held = np.bincount(pairs[:, 1], uses[pairs[:, 0]], minlength=relation.n_parts)
    means = totals / np.maximum(occurrences, 1)[:, None]

    def described(number: int) -> PartClass:
        row = rows[np.flatnonzero(relation.parts == number)[0]]
        example = int(np.flatnonzero(compressed.top == row)[0])
        whole = _whole(estimator, structures[example : example + 1])
        own, level = compress(whole.hierarchy), whole.hierarchy.depth - 1
        equal = (own.keys[level] == compressed.keys[level][number]).all(axis=1)
        at = int(np.flatnonzero(equal[own.unique_of(level)])[0])
        best = int(means[number].argmax())
        return PartClass(
            number=number,
            towards=names[best],
            mean=float(means[number, best]),
            occurrences=int(occurrences[number]),
            structures=int(held[number]),
            part=whole.part(level, at, means[number, best]),
            example=example,
            whole=whole,
        )

    return CollectionExplanation(
        name=compressed.hierarchy.names[-2],
        targets=names,
        means=frozen(means),
        occurrences=frozen(occurrences),
        structures=frozen(held.astype(np.int64)),
        parts=tuple(
            described(number) for number in _strongest(totals.max(axis=1) - totals.mean(axis=1), k)
        ),
        n_structures=len(structures),
        gap=gap,
        settings=_settings(estimator),
    )


# -- what is explained -------------------------------------------------------------------------


@dataclass(frozen=True)
class _Goal:
    """The number that is explained: a linear function of the outputs of the networks."""

    classes: tuple[str, ...]
    target: Any
    weights: Floats
    shift: float

    @staticmethod
    def of(estimator: Estimator, target: Any, prediction: Any) -> _Goal:
        """That of a target, or of the usual one."""
        if isinstance(estimator, SAENRegressor):
            scale, mean = np.atleast_1d(estimator.scale_), np.atleast_1d(estimator.mean_)
            names = tuple(map(str, range(len(scale))))
            place = _found("column of y", "0" if target is None else target, names)
            weights = np.eye(len(scale))[place] * scale
            return _Goal((), place, weights, float(mean[place]))
        names = tuple(map(str, estimator.classes_.tolist()))
        binary = len(names) == 2
        if target is None:
            target = names[1] if binary else prediction
        place = _found("class", target, names)
        weights = np.array([2.0 * place - 1]) if binary else np.eye(len(names))[place]
        return _Goal(names, _plain(estimator.classes_[place]), weights, 0.0)

    @staticmethod
    def all(estimator: Estimator, target: Any) -> list[_Goal]:
        """One for every class, or one alone where its opposite is the other one."""
        if isinstance(estimator, SAENRegressor) or len(estimator.classes_) == 2:
            return [_Goal.of(estimator, target, None)]
        return [_Goal.of(estimator, each, None) for each in estimator.classes_]

    def gradient(self, network: SAEN) -> Tensor:
        """Of the number with respect to the outputs, (M, outputs)."""
        return (torch.from_numpy(self.weights) / network.n_models).expand(network.n_models, -1)

    def outputs(self, made: Tensor) -> Floats:
        """The number for outputs of shape (n, M, outputs)."""
        numbers: Floats = made.mean(dim=1).numpy() @ self.weights + self.shift
        if not np.isfinite(numbers).all():
            raise InputError("the output of the network is not finite: there is nothing to explain")
        return numbers


def _found(what: str, target: Any, names: tuple[str, ...]) -> int:
    """The place of a target, which a command line can only give as text."""
    if str(target) not in names:
        raise InputError(f"there is no {what} {str(target)!r}: choose from {', '.join(names)}")
    return names.index(str(target))


def _checked(estimator: Estimator, X: Data) -> Any:
    """The structures as a collection that can be sliced."""
    if not isinstance(estimator, SAENClassifier | SAENRegressor):
        raise InputError(f"explain takes a fitted estimator, not {type(estimator).__name__}")
    check_is_fitted(estimator, "network_")
    fitted = estimator.decomposition_
    structures = as_data(X, "graphs" if fitted is None else fitted.takes)
    if fitted is None and not isinstance(structures, Hierarchy):
        raise InputError("this estimator was fitted on hierarchies: pass a Hierarchy")
    return structures


def _whole(estimator: Estimator, one: Any) -> Whole:
    """One structure with its original hierarchy, over the vocabulary of the estimator."""
    if isinstance(one, Hierarchy):
        estimator._check_schema(one)
        known = estimator.schema_.attributes.vocabulary
        attributes = one.attributes if known is None else one.attributes.recoded(known)
        return Whole(Hierarchy(attributes, one.relations, one.names))
    assert estimator.decomposition_ is not None
    hierarchy = estimator.decomposition_.decompose(one)
    if not isinstance(one, Graphs):
        return Whole(hierarchy)
    return Whole(hierarchy, one, estimator.decomposition_.anchors(one))


def _settings(estimator: Estimator) -> dict[str, Any]:
    return {} if estimator.decomposition_ is None else estimator.decomposition_.settings()


def _exact(network: SAEN) -> SAEN:
    """A copy in float64 on the CPU."""
    return deepcopy(network).to("cpu", torch.float64)


# -- contributions -----------------------------------------------------------------------------


def _inside(passed: Passed, number: int, told: Tensor) -> Floats:
    """What the bottom objects of a part of the structure contribute within it, in their order."""
    if passed.hierarchy.depth == 1:
        return frozen([float((told * passed.h[0][number]).sum())])
    *_, bottom = passed.part(number).contributions(told[None], share_top=True)
    return frozen(bottom.objects)


def _totals(network: SAEN, compressed: Compressed, goals: list[_Goal]) -> tuple[Floats, float]:
    """What each class of parts contributes over all structures, (classes, goals), and the gap."""
    hierarchy = compressed.hierarchy
    relation = hierarchy.relations[-1]
    rows = segment_ids(relation.indptr)
    uses = np.bincount(compressed.top, minlength=len(hierarchy))
    passed = Passed.through(network, hierarchy)
    totals, gap = np.empty((relation.n_parts, len(goals))), 0.0
    for column, goal in enumerate(goals):
        told = goal.gradient(network).expand(len(hierarchy), -1, -1)
        outputs = goal.outputs(passed.h[-1])
        found = next(passed.contributions(told))
        totals[:, column] = _summed(relation, uses[rows] * found.entries)
        baselines = found.empty + goal.shift
        given = np.bincount(rows, found.entries, minlength=len(hierarchy))
        gaps = np.abs(outputs - baselines - given)
        _check_complete(outputs, baselines, gaps)
        gap = max(gap, float(gaps.max()))
    return totals, gap


def _check_complete(outputs: Floats, baselines: Floats, gaps: Floats) -> None:
    """Raise unless baseline and contributions add up to the output of every structure."""
    rounding = 1e-9 * (np.abs(outputs) + np.abs(baselines))
    wrong = np.flatnonzero(~(gaps <= TOLERANCE * np.abs(outputs - baselines) + rounding))
    if len(wrong):
        raise InputError(
            f"contributions miss an output of {outputs[wrong[0]]:.6g} by {gaps[wrong[0]]:.3g}, "
            f"more than {TOLERANCE:.0%} of its distance from {baselines[wrong[0]]:.6g}, the "
            "output without parts"
        )


def _strongest(values: Floats, k: int) -> list[int]:
    """The places of the k largest values, those of equal ones in order."""
    chosen: list[int] = np.argsort(-values, kind="stable")[:k].tolist()
    return chosen


def _summed(relation: Relation, values: Array) -> Floats:
    """The sum over the entries of every part."""
    return np.bincount(relation.parts, values, minlength=relation.n_parts).astype(np.float64)


def _plain(value: Any) -> Any:
    """Without numpy."""
    return value.tolist() if isinstance(value, np.generic | np.ndarray) else value
