"""`explain`: which parts of an example, and what in them, drive a network's prediction.

Contributions are defined in `saen.network.attribution`. Ensembles explain the mean output of
their networks. All arithmetic is float64 on the CPU.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from saen._util.arrays import Floats, frozen
from saen._util.notebook import html_table
from saen.errors import InputError
from saen.explanations.describe import DecomposedExample, Part, bracketed, singular
from saen.explanations.goal import (
    Goal,
    check_complete,
    checked,
    decompose_one,
    decomposition_settings,
    example_id,
    fitted_model,
    member_share,
    plain,
)
from saen.learning.decomposing import Data, Decompositions
from saen.learning.models.base import FeatureContribution, Fitted


class ExplainedMember(NamedTuple):
    """A model of a blend, its weight, and its own explanation of the class that the blend names."""

    name: str
    weight: float
    explanation: Explanation

    @property
    def share(self) -> str:
        """Which member it is: `part counts, 83 % of this blend`."""
        return member_share(self.name, self.weight)


class LevelBalance(NamedTuple):
    """How the output divides on one level: the two numbers add up to it.

    - `attributed`: the sum of the contributions of the objects of this level;
    - `not_attributed`: the baseline, and contributions of features and of objects without parts
      further up.
    """

    name: str
    attributed: float
    not_attributed: float


@dataclass(frozen=True, eq=False, repr=False)
class Explanation:
    """The contributions of all parts of one example to one output of a network.

    - `index`, `id`: of the example; `prediction`: what the estimator predicts for it;
    - `classes`: the names of all classes, none for a regression and for several targets, which have
      `target_names`; `target`: the class (or one of several targets) that is explained;
      `probability`: of that class;
    - `quantity`: what the output is, in words: `log-odds of questions`, `prediction`, …;
    - `reference`: what the example is compared with, in words;
    - `output`: the logit of the target, mean over the networks (of two classes, the log-odds), or
      the predicted number;
    - `decomposed`: the example with its own hierarchy, whose objects the arrays below are about;
    - `contributions[l]`: of every object of level l, (n_l,); the one object of the top contributes
      the `output`;
    - `empty[l]`: what the objects would contribute without parts, (n_l,), which their parts share
      equally. On the bottom it is the contribution, on the top the `baseline`, which is not shared;
    - `entries[l - 1]`: of every entry of R_l, (entries,);
    - `parts`: the strongest parts of the example, at most `n_parts`, with the contributions of the
      bottom objects inside them; identical ones are one part with a count;
    - `steps`: of the integrals; `settings`: those of the decomposition;
    - `features`: what numbers about the whole example contribute, the strongest first;
    - `members`: of a blend, its models, largest weight first. `prediction`, `target` and
      `probability` are the blend's, and so is `on_graph`; everything else is about the first.

    The entries of an object sum up to its contribution (above the baseline, on the top), and so do
    the entries in which it is a part; objects without parts keep their contribution.
    """

    index: int
    id: Any
    prediction: Any
    classes: tuple[str, ...]
    target: Any
    quantity: str
    probability: float | None
    reference: str
    output: float
    decomposed: DecomposedExample
    contributions: tuple[Floats, ...]
    empty: tuple[Floats, ...]
    entries: tuple[Floats, ...]
    parts: tuple[Part, ...]
    n_parts: int
    steps: int
    settings: dict[str, Any]
    target_names: tuple[str, ...] = ()
    members: tuple[ExplainedMember, ...] = ()
    features: tuple[FeatureContribution, ...] = ()

    def on_graph(self) -> tuple[Floats, Floats]:
        """What nodes (of documents: words), (N,), and edges, (E,), contribute.

        Of a blend, the sum over its members by weight: contributions to the weighted mean of their
        outputs.
        """
        if not self.members:
            return self.decomposed.on_graph(self.contributions[0])
        each = [
            [each.weight * values for values in each.explanation.on_graph()]
            for each in self.members
        ]
        nodes, edges = (np.sum(values, axis=0) for values in zip(*each, strict=True))
        return nodes, edges

    @property
    def baseline(self) -> float:
        """The output for the reference."""
        return float(self.empty[-1][0])

    @property
    def predicted(self) -> str:
        """The prediction in words; of several targets, each with its name."""
        if not self.target_names:
            return _in_words(self.prediction)
        pairs = zip(self.target_names, self.prediction, strict=True)
        return ", ".join(f"{name} {_in_words(value)}" for name, value in pairs)

    @property
    def sentence(self) -> str:
        """What was found, in one sentence: the parts that count most, for and against."""
        higher = self.output >= self.baseline
        found_by: list[Part | FeatureContribution] = [*self.parts, *self.features]
        found_by.sort(key=lambda each: -abs(each.contribution))
        for_it = [each for each in found_by if (each.contribution > 0) == higher][:2]
        against = [each for each in found_by if (each.contribution > 0) != higher][:1]
        found = f"{self.quantity[0].upper()}{self.quantity[1:]}: {self.output:.4g}, "
        if self.classes and higher and self.target == self.prediction:
            found = f"Predicted {self.predicted}"
        elif self.output == self.baseline:
            return f"{found}as for {self.reference}."
        else:
            than = "more" if higher else "less"
            found += f"{than} than for {self.reference} ({self.baseline:.4g})"
        if for_it:
            found += f" because of {' and '.join(map(_mention, for_it))}"
        if against:
            found += f", in spite of {_mention(against[0])}"
        return f"{found}."

    @property
    def gap(self) -> float:
        """The largest difference, over the levels, between the output and what adds up to it."""
        return max(
            abs(self.output - level.attributed - level.not_attributed) for level in self.balance()
        )

    def balance(self) -> list[LevelBalance]:
        """How the output divides on every level below the top, from the top down."""
        hierarchy, levels = self.decomposed.hierarchy, list[LevelBalance]()
        not_attributed = self.baseline + sum(each.contribution for each in self.features)
        for level in range(hierarchy.depth - 1, -1, -1):
            values = self.contributions[level]
            levels.append(LevelBalance(hierarchy.names[level], float(values.sum()), not_attributed))
            if level:
                without_parts = np.diff(hierarchy.relations[level - 1].indptr) == 0
                not_attributed += float(values[without_parts].sum())
        return levels

    def evidence(self, contribution: float) -> str:
        """What a contribution is evidence for, in words: `for questions`, `lower`, …"""
        if contribution == 0:
            return ""
        if not self.classes:
            return "higher" if contribution > 0 else "lower"
        if len(self.classes) > 2:
            return f"{'for' if contribution > 0 else 'against'} {self.target}"
        return f"for {self.classes[(str(self.target) == self.classes[1]) == (contribution > 0)]}"

    def top_parts(self, level: int | None = None, n_parts: int = 10) -> tuple[Part, ...]:
        """The `n_parts` unique objects of a level with the largest absolute contributions.

        Identical objects in the same roles are one part with a count.

        Parameters
        ----------
        level : int | None, default=None
            The level of the parts. None: that of the example's own parts, one below the top.
        n_parts : int, default=10
            How many parts to list.

        Raises
        ------
        InputError
            For a level that holds no parts.
        """
        depth = self.decomposed.hierarchy.depth
        number = depth - 1 if level is None else level
        if not 0 <= number < depth:
            raise InputError(f"parts lie on levels 0 … {depth - 1}, not {level}")
        return self.decomposed.strongest_parts(number, self.contributions[number], n_parts)

    def table(self) -> dict[str, list[str]]:
        """Columns about the strongest parts and numbers about the whole example, as text."""
        parts, features = self.parts, self.features[: self.n_parts]
        both: list[Part | FeatureContribution] = [*parts, *features]
        empty = [""] * len(features)
        places = [self.decomposed.place(one) for one in parts]
        return {
            "contribution": [f"{one.contribution:+.4f}" for one in both],
            "times": [*(f"×{one.count}" for one in parts), *empty],
            self.decomposed.place_noun(parts): places + empty,
            "evidence": [self.evidence(one.contribution) for one in both],
            "part": [one.name for one in parts] + [each.in_words for each in features],
        }

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
                    "parent": relation.parents.tolist(),
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
            "target_names": list(self.target_names),
            "target": self.target,
            "quantity": self.quantity,
            "probability": self.probability,
            "reference": self.reference,
            "output": self.output,
            "baseline": self.baseline,
            "gap": self.gap,
            "sentence": self.sentence,
            "steps": self.steps,
            "decomposition": self.settings,
            "labels": self.decomposed.describe(0, np.arange(hierarchy.sizes[0])),
            "parts": [part.to_json() for part in self.parts],
            "features": [each._asdict() for each in self.features],
            "levels": levels,
            "members": [
                {
                    "name": each.name,
                    "weight": each.weight,
                    "prediction": each.explanation.prediction,
                    "probability": each.explanation.probability,
                    "output": each.explanation.output,
                    "baseline": each.explanation.baseline,
                }
                for each in self.members
            ],
        }

    def _repr_html_(self) -> str:
        """What notebooks show: what was found, and the strongest parts."""
        caption = f"{self.id}: {self.sentence} ({self.quantity} {self.output:.3f})"
        return html_table(caption, self.table())

    def __repr__(self) -> str:
        return (
            f"Explanation(example {self.index}, output {self.output:.3f} for {self.target}, "
            f"baseline {self.baseline:.3f}, {self.decomposed.hierarchy})"
        )


def explain(
    estimator: Any, X: Data, index: int | str = 0, *, target: Any = None, n_parts: int = 10
) -> Explanation:
    """Explain one prediction: what every part of an example contributes to it.

    Parameters
    ----------
    estimator : Any
        A fitted estimator. If its model is a blend, nodes are explained by all members, parts by
        the one with the largest weight (see `Explanation.members`).
    X : Data
        Data as the estimator takes them.
    index : int | str, default=0
        Which example of X to explain; text is its id, or its index where no example has that id.
    target : Any, default=None
        The class whose logit is explained, or the name of one of several targets. None: the
        predicted class, or the first target.
    n_parts : int, default=10
        How many of the strongest parts to look into.

    Raises
    ------
    InputError
        Where there is no such example or class.

    Examples
    --------
    >>> import saen
    >>> threads = saen.generate_threads(60, seed=1)
    >>> model = saen.SAENClassifier(epochs=5).fit(threads, threads.targets)
    >>> explanation = explain(model, threads, index=3)
    >>> explanation.target == explanation.prediction, explanation.gap < 1e-9
    (True, True)
    >>> len(explanation.contributions[0]) == threads[3].n_nodes
    True
    """
    model = fitted_model(estimator)
    data = checked(model, X)
    if isinstance(index, str):
        index = _example_index(data, index)
    if not 0 <= index < len(data):
        known = f"the examples are 0 … {len(data) - 1}" if len(data) else "the data are empty"
        raise InputError(f"there is no example {index}: {known}")
    one = Decompositions(data[index : index + 1])
    row = model.predictions(one)
    prediction = plain(model.targets.decide(row)[0])
    classes = model.targets.known_classes
    if target is None and classes is not None and classes.ndim == 1:
        target = prediction
    each = [
        ExplainedMember(name, weight, _explained(own, one, data, index, target, n_parts))
        for name, own, weight, _ in model.members
    ]
    first = each[0].explanation
    return replace(
        first,
        prediction=prediction,
        probability=_probability(first, row),
        members=tuple(each) if model.members[0].name else (),
    )


def _explained(
    model: Fitted, one: Decompositions, data: Any, index: int, target: Any, n_parts: int
) -> Explanation:
    """What a single model says of the only example in `one`."""
    row = model.predictions(one)
    prediction = plain(model.targets.decide(row)[0])
    decomposed = decompose_one(model, one.data)
    goal = Goal.of(model, target, prediction)
    found = model.explained(decomposed.hierarchy, goal.weights, one)
    average = f"the average {singular(model.schema.names[-1])} of the training data"
    explanation = Explanation(
        index=index,
        id=example_id(data, index),
        prediction=prediction,
        classes=goal.classes,
        target=goal.target,
        quantity=goal.quantity,
        probability=None,
        reference=average if model.knows_average else "an example without parts",
        output=found.output,
        decomposed=decomposed,
        contributions=tuple(map(frozen, found.objects)),
        empty=tuple(map(frozen, found.empty)),
        entries=tuple(map(frozen, found.entries)),
        parts=decomposed.strongest_parts(
            decomposed.hierarchy.depth - 1, found.objects[-2], n_parts, found.inside
        ),
        n_parts=n_parts,
        steps=found.steps,
        settings=decomposition_settings(model),
        target_names=model.targets.names,
        features=tuple(sorted(found.features, key=lambda each: -abs(each.contribution))),
    )
    check_complete(*(np.array([getattr(explanation, f)]) for f in ("output", "baseline", "gap")))
    return replace(explanation, probability=_probability(explanation, row))


def _mention(found: Part | FeatureContribution) -> str:
    """A part or a feature in a sentence, with its contribution."""
    times = f"{found.count} × " if isinstance(found, Part) and found.count > 1 else ""
    name = found.name if isinstance(found, Part) else found.in_words
    return f"{times}{bracketed(name)} ({found.contribution:+.3g})"


def _in_words(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _example_index(data: Any, name: str) -> int:
    """The index of the example with an id, else of the one that an integer counts from 0."""
    own = np.flatnonzero(np.asarray(getattr(data, "ids", ())).astype(str) == name)
    if len(own) > 1:
        places = ", ".join(map(str, own[:5].tolist()))
        raise InputError(f"{len(own)} examples have the id {name!r}: their indices are {places}")
    if len(own):
        return int(own[0])
    try:
        return int(name)
    except ValueError:
        raise InputError(f"there is no example with the id {name!r}") from None


def _probability(explained: Explanation, row: Floats) -> float | None:
    """The probability of the explained class among predictions (1, classes)."""
    if not explained.classes:
        return None
    return float(row[0, explained.classes.index(str(explained.target))])
