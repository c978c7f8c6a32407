"""`explain_dataset`: what the unique parts of a dataset contribute to all of its predictions.

Identical parts have identical representations, so one pass over the compressed data is enough.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from saen._util.arrays import Array, Floats, Ints, frozen
from saen._util.executor import Executor
from saen._util.notebook import html_table
from saen._util.strings import plural
from saen.data.compression import Compressed
from saen.data.content_hash import Keys, level_keys
from saen.data.hierarchy import Hierarchy, Relation
from saen.errors import InputError
from saen.explanations.describe import DecomposedExample, Part, bracketed, largest, singular
from saen.explanations.goal import (
    Goal,
    check_complete,
    checked,
    decompose_one,
    decomposition_settings,
    example_id,
    explained_share,
    fitted_model,
)
from saen.learning.decomposing import Data, Decompositions
from saen.learning.models.base import Fitted

EXAMPLES_PER_TASK = 500
"""Unique examples that a task of an executor explains."""
CANDIDATES = 5
"""Times as many parts as are asked for are looked at: some lie at the same places."""


@dataclass(frozen=True, eq=False)
class UniquePart:
    """One of the unique parts of a dataset, and what its occurrences contribute.

    - `number`: among the unique parts; `same`: the numbers of all that lie at the same places, of
      which this is the first, and whose contributions are counted together; `contrast`: how much it
      tells the classes apart, see `contrasts`;
    - `mean`: its mean contribution per occurrence; of two classes to the log-odds of the second, of
      a regression to the prediction: negative ones are evidence for the first class, or `lower`.
      Of more classes, to the logit of `towards`: the class that it is most evidence for;
    - `occurrences`: how often it occurs; `examples`: in how many examples;
    - `part`: one occurrence, in the example number `index`, called `id`, which is `decomposed`.
    """

    number: int
    same: tuple[int, ...]
    contrast: float
    towards: str
    mean: float
    occurrences: int
    examples: int
    part: Part
    index: int
    id: Any
    decomposed: DecomposedExample

    @property
    def total(self) -> float:
        """The contribution of all occurrences together."""
        return self.mean * self.occurrences


@dataclass(frozen=True, eq=False, repr=False)
class DatasetExplanation:
    """What the unique parts of a dataset contribute to all of its predictions.

    - `name`: of the level below the top, whose unique parts these are;
    - `targets`: the classes that parts are evidence for; `lower` and `higher` for a regression;
    - `means`: the mean contribution per occurrence of every unique part towards every target,
      (unique parts, targets);
    - `occurrences`, `examples`: how often each occurs, and in how many examples, (unique parts,);
    - `parts`: those that tell the classes apart most, by descending `contrast`;
    - `quantity`: what is explained, in words; `noun`: what an example is;
    - `explained`: of a blend, whose parts these are, in words;
    - `n_examples`: of the dataset; `gap`: the largest difference between an output and what
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
    explained: str = ""
    quantity: str = "prediction"
    noun: str = "example"

    @property
    def sentence(self) -> str:
        """What was found, in one sentence: the most telling part for every target."""
        first = {each.towards: each for each in reversed(self.parts)}
        told = [
            f"{bracketed(each.part.name)} is evidence for {name} ({each.mean:+.3g} each, in "
            f"{each.examples:,} of {plural(self.n_examples, self.noun)})"
            for name in self.targets
            if (each := first.get(name)) is not None
        ]
        return "; ".join(told[:4]) + "." if told else "No part tells predictions apart."

    def to_json(self) -> dict[str, Any]:
        """The strongest unique parts as plain numbers, lists and strings."""
        return {
            "structures": self.n_examples,
            "explained": self.explained,
            "quantity": self.quantity,
            "sentence": self.sentence,
            "level": self.name,
            "unique_parts": len(self.means),
            "targets": list(self.targets),
            "gap": self.gap,
            "decomposition": self.settings,
            "parts": [
                {
                    "number": each.number,
                    "same": list(each.same),
                    "contrast": each.contrast,
                    "towards": each.towards,
                    "mean": each.mean,
                    "total": each.total,
                    "means": dict(zip(self.targets, self.means[each.number].tolist(), strict=True)),
                    "occurrences": each.occurrences,
                    "structures": each.examples,
                    "example": each.index,
                    "id": each.id,
                    "part": each.part.to_json(),
                }
                for each in self.parts
            ],
        }

    def table(self) -> dict[str, list[str]]:
        """Columns about the strongest unique parts, as text."""
        return {
            "contribution": [f"{each.mean:+.4f}" for each in self.parts],
            "contrast": [f"{each.contrast:.4f}" for each in self.parts],
            "times": [f"{each.occurrences:,}" for each in self.parts],
            f"{self.noun}s": [f"{each.examples:,}" for each in self.parts],
            "evidence for": [each.towards for each in self.parts],
            "part": [each.part.name for each in self.parts],
        }

    def _repr_html_(self) -> str:
        """What notebooks show: what was found, and the strongest unique parts."""
        return html_table(f"{self.sentence} (Contributions to the {self.quantity})", self.table())

    def __repr__(self) -> str:
        return (
            f"DatasetExplanation({self.n_examples:,} examples, {len(self.means):,} unique "
            f"{self.name}, targets {', '.join(self.targets)})"
        )


def explain_dataset(
    estimator: Any,
    X: Data,
    *,
    target: Any = None,
    n_parts: int = 10,
    executor: Executor | None = None,
) -> DatasetExplanation:
    """Explain all predictions: what every unique part contributes to them.

    Identical parts are merged, so this is one pass over the compressed data.

    Parameters
    ----------
    estimator : Any
        A fitted estimator; for a blend, the member with the largest weight is explained.
    X : Data
        Data as the estimator takes them.
    target : Any, default=None
        The name of one of several targets. None: the first. Classifiers are explained towards all
        of their classes.
    n_parts : int, default=10
        How many of the strongest unique parts to describe by an example.
    executor : Executor | None, default=None
        Explains examples in tasks, see `saen.cluster`.

    Raises
    ------
    InputError
        For empty data, and for a class as target.

    Examples
    --------
    >>> import saen
    >>> threads = saen.generate_threads(60, seed=1)
    >>> model = saen.SAENClassifier(epochs=5).fit(threads, threads.targets)
    >>> explain_dataset(model, threads)
    DatasetExplanation(60 examples, ... unique ego graphs, targets discussion, questions)
    """
    whole = fitted_model(estimator)
    share, model = explained_share(whole), whole.members[0].model
    data = checked(model, X)
    if len(data) == 0:
        raise InputError("nothing to explain: the data are empty")
    classes = model.targets.known_classes
    if target is not None and classes is not None and classes.ndim == 1:
        raise InputError("collections are explained towards all classes: omit the target")
    compressed = model.compress(Decompositions(data))
    relation = compressed.hierarchy.relations[-1]
    rows = relation.parents
    uses = np.bincount(compressed.top, minlength=relation.n_parents)
    found = (
        top_contributions(model, compressed, target)
        if executor is None
        else _in_tasks(model, compressed, target, executor)
    )
    totals, occurrences = part_totals(compressed, found)
    if totals.shape[1] == 1:
        totals = np.column_stack([-totals, totals])
    names = found.classes or ("lower", "higher")
    pairs = np.unique(np.column_stack([rows, relation.parts]), axis=0)
    examples = np.bincount(pairs[:, 1], uses[pairs[:, 0]], minlength=relation.n_parts)
    means = totals / np.maximum(occurrences, 1)[:, None]
    contrast = contrasts(compressed, found).max(axis=1)
    level = compressed.hierarchy.depth - 1

    signed = means[:, 1:] if len(names) == 2 else means

    @cache
    def keyed_example(index: int) -> tuple[DecomposedExample, Keys, Ints]:
        decomposed = decompose_one(model, data[index : index + 1])
        return decomposed, level_keys(decomposed.hierarchy)[level], decomposed.places(level)

    def found_at(number: int) -> tuple[int, int, frozenset[int]]:
        """An example with a part, the first such object in it, and the places of all."""
        row = rows[np.flatnonzero(relation.parts == number)[0]]
        index = int(np.flatnonzero(compressed.top == row)[0])
        _, keys, places = keyed_example(index)
        own = np.flatnonzero((keys == compressed.keys[level][number]).all(axis=1))
        return index, int(own[0]), frozenset(places[own].tolist())

    def describe(numbers: list[int], index: int, own: int) -> UniquePart:
        number, decomposed = numbers[0], keyed_example(index)[0]
        total = (signed[numbers] * occurrences[numbers][:, None]).sum(axis=0)
        mean = total / occurrences[number]
        best = int(mean.argmax())
        towards = names[best] if len(names) > 2 else names[int(mean[0] > 0)]
        return UniquePart(
            number=number,
            same=tuple(numbers),
            contrast=float(contrast[numbers].sum()),
            towards=towards,
            mean=float(mean[best]),
            occurrences=int(occurrences[number]),
            examples=int(examples[number]),
            part=decomposed.part(level, own, mean[best]),
            index=index,
            id=example_id(data, index),
            decomposed=decomposed,
        )

    # Neighbourhoods of several depths are often the same nodes wherever they occur.
    groups: dict[tuple[int, int, frozenset[int]], tuple[int, list[int]]] = {}
    for number in largest(contrast, CANDIDATES * n_parts):
        index, own, places = found_at(number)
        groups.setdefault((index, int(examples[number]), places), (own, []))[1].append(number)
    strongest = sorted(groups.items(), key=lambda group: -float(contrast[group[1][1]].sum()))
    parts = [describe(numbers, key[0], own) for key, (own, numbers) in strongest[:n_parts]]

    return DatasetExplanation(
        name=compressed.hierarchy.names[-2],
        targets=names,
        means=frozen(means),
        occurrences=frozen(occurrences),
        examples=frozen(examples.astype(np.int64)),
        parts=tuple(parts),
        n_examples=len(data),
        gap=found.gap,
        settings=decomposition_settings(model),
        explained=share,
        quantity="logit of the class" if len(names) > 2 else Goal.of(model, target, None).quantity,
        noun=singular(compressed.hierarchy.names[-1]),
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
    model: Fitted, compressed: Compressed, target: Any = None
) -> TopContributions:
    """The contributions of all parts of all unique examples, in one pass.

    `compressed` is what the model's own `compress` gives; `target` the column of y of a
    regression.
    """
    goals = Goal.all(model, target)
    found = model.top_entries(compressed, [goal.weights for goal in goals])
    rows = compressed.hierarchy.relations[-1].parents
    gap = 0.0
    for outputs, baselines, entries in found:
        attributed = np.bincount(rows, entries, minlength=len(outputs))
        gaps = np.abs(outputs - baselines - attributed)
        check_complete(outputs, baselines, gaps)
        gap = max(gap, float(gaps.max(initial=0.0)))
    outputs, baselines, entries = (np.column_stack(arrays) for arrays in zip(*found, strict=True))
    return TopContributions(goals[0].classes, outputs, baselines, entries, gap)


def _in_tasks(
    model: Fitted, compressed: Compressed, target: Any, executor: Executor
) -> TopContributions:
    """`top_contributions`, a few unique examples per task."""
    hierarchy = compressed.hierarchy
    shared = executor.put(hierarchy)
    starts = range(0, len(hierarchy), EXAMPLES_PER_TASK)
    for start in starts:
        executor.submit(f"examples from {start}", _explain_some, model, shared, start, target)
    results = dict(executor.completed())
    parts: list[TopContributions] = [results[f"examples from {start}"] for start in starts]
    outputs, baselines, entries = (
        np.concatenate([getattr(part, name) for part in parts])
        for name in ("outputs", "baselines", "entries")
    )
    gap = max(part.gap for part in parts)
    return TopContributions(parts[0].classes, outputs, baselines, entries, gap)


def _explain_some(model: Fitted, hierarchy: Hierarchy, start: int, target: Any) -> TopContributions:
    some = hierarchy[start : start + EXAMPLES_PER_TASK]
    top = np.arange(len(some))
    sizes, entries = some.sizes, (0, *(relation.n_entries for relation in some.relations))
    alone = Compressed(some, (*[None] * some.depth, top), sizes, entries)
    return top_contributions(model, alone, target)


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
    rows = relation.parents
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


def _sum_by_part(relation: Relation, values: Array) -> Floats:
    """The sum over the entries of every part."""
    return np.bincount(relation.parts, values, minlength=relation.n_parts).astype(np.float64)
