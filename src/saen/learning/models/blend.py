"""Blends: a learner over learners, chosen and weighted by what inner folds hold out.

Every candidate predicts the held-out examples of the inner folds of the training examples. A rule
turns these predictions into weights of the candidates; those with a weight are the members, as they
are: nothing is trained again. The blend is calibrated by its predictions for held-out examples with
weights that other inner folds decided (cross-fitted), which also tell how good it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from saen._util.arrays import Array, Floats, Ints
from saen._util.caller import warn_caller
from saen._util.strings import plural, some_of
from saen.data.compression import Compressed
from saen.data.hierarchy import Hierarchy
from saen.errors import InputError
from saen.io.store.packing import under
from saen.learning import auto
from saen.learning.decomposing import Decompositions, DecompositionSpec
from saen.learning.metrics import Metric
from saen.learning.models.base import (
    Candidate,
    Cost,
    Explained,
    Fitted,
    FoldResult,
    Learner,
    Member,
    Results,
    Study,
    TopEntries,
    calibrated,
    unpack_calibration,
)
from saen.learning.models.counts import FittedCounts
from saen.learning.models.networks import FittedNetworks
from saen.learning.problem import Problem
from saen.learning.splits import Fold
from saen.network.memory import trim_memory
from saen.network.settings import DivergenceError, DivergenceWarning, join_curves

GREEDY_ROUNDS = 30
"""Selections of `blend_weights`: weights are multiples of one over this and the candidates."""
MAX_SHOWN = 5
"""Members that are listed in words."""
MIXTURE_STEPS = 300
"""Of expectation maximisation in `mixture_weights`."""

Listed = Callable[[Decompositions, Ints], list[Candidate]]
"""The candidates for some training examples."""


@dataclass(frozen=True, eq=False)
class BlendLearner(Learner):
    """Weighs candidates on inner folds, and averages those that have a weight.

    - `listed`: the candidates; `first`: the decomposition of the first of them;
    - `inner_folds`: `auto`, or how many;
    - `metric`: what decides the weights, by default the loss;
    - `single`: take the one best candidate, in place of a blend;
    - `refit`: fit the chosen candidate again on all training examples, without inner folds.
    """

    kind: ClassVar[str] = "blend"

    listed: Listed
    first: DecompositionSpec
    inner_folds: int | str = "auto"
    metric: Metric | None = None
    single: bool = False
    refit: bool = False
    device: str = "cpu"

    @property
    def spec(self) -> DecompositionSpec:
        """That of the first candidate."""
        return self.first

    def scored_by(self, metric: Metric) -> Learner:
        """With weights by this metric."""
        return replace(self, metric=metric)

    def key(self) -> Any:
        """Nothing that another blend has."""
        return id(self)

    def identical(self, data: Decompositions, train: Ints) -> Ints:
        """Equal numbers for examples that look identical to all candidates, (n,)."""
        tops = [each.learner.identical(data, train) for each in self.listed(data, train)]
        return np.unique(np.stack(tops), axis=1, return_inverse=True)[1].reshape(-1)

    def candidates(self, data: Decompositions, train: Ints) -> list[Candidate]:
        """Those that are listed."""
        return self.listed(data, train)

    def cost(self, study: Study, folds: Sequence[Fold]) -> Cost:
        """That of all candidates."""
        folds = study.split_inside(folds, self.inner_folds)
        return Cost.of_all(
            candidate.learner.cost(study, [fold])
            for fold in folds
            for candidate in self.listed(study.data, fold.train)
        )

    def first_stage(self, data: Decompositions, train: Ints) -> Learner | None:
        """The blend of the cheap candidates, where there are others."""
        every = self.listed(data, train)
        cheap = [each for each in every if each.learner.cheap]
        if not 0 < len(cheap) < len(every):
            return None
        return replace(self, listed=lambda data, train: cheap)

    def start(self, study: Study, folds: Sequence[Fold]) -> Callable[[], Results]:
        """Begin all candidates, each on the folds whose training examples list it."""
        folds = study.split_inside(folds, self.inner_folds)
        if not all(fold.inner for fold in folds):
            raise InputError(
                f"too few examples to choose among candidates: a blend needs at least "
                f"{auto.MIN_INNER_EXAMPLES} for training"
            )
        listed = [self.listed(study.data, fold.train) for fold in folds]
        tried: list[tuple[Candidate, list[int]]] = []
        for place, own in enumerate(listed):
            for candidate in own:
                for other, places in tried:
                    if _same(candidate, other):
                        places.append(place)
                        break
                else:
                    tried.append((candidate, [place]))
        begun = [
            each.learner.start(study, [folds[place] for place in places]) for each, places in tried
        ]

        def results() -> Results:
            trials: list[list[tuple[Candidate, FoldResult]]] = [[] for _ in folds]
            errors: list[list[tuple[Candidate, DivergenceError]]] = [[] for _ in folds]
            for number, (candidate, places) in enumerate(tried):
                study.keep_only(
                    (each.learner.spec, folds[place].train)
                    for each, own in tried[number:]
                    for place in own
                )
                trim_memory()
                found = begun.pop(0)()
                for place, result in zip(places, found, strict=True):
                    if isinstance(result, DivergenceError):
                        errors[place].append((candidate, result))
                    else:
                        trials[place].append((candidate, result))
            out: list[FoldResult | DivergenceError] = []
            for fold, own, failed in zip(folds, trials, errors, strict=True):
                for candidate, error in failed:
                    if own:
                        message = f"{candidate.title}: diverged, left out ({error.advice})"
                        warn_caller(message, DivergenceWarning)
                out.append(self._blended(study.problem, fold, own, failed) if own else failed[0][1])
            if self.refit:
                return self._refitted(study, out, [candidate for candidate, _ in tried])
            return out

        return results

    def _blended(
        self,
        problem: Problem,
        fold: Fold,
        trials: Sequence[tuple[Candidate, FoldResult]],
        failed: Sequence[tuple[Candidate, DivergenceError]],
    ) -> FoldResult:
        """The weights of candidates, and the average of those that have one."""
        candidates, results = zip(*trials, strict=True)
        rows = np.stack([result.held_out for result in results])
        truth, shares = problem.values[fold.held_out], problem.weights[fold.held_out]
        sizes = [len(check) for _, check in fold.inner or ()]
        part_of = np.repeat(np.arange(len(sizes)), sizes)
        few = len(truth) < auto.FEW_EXAMPLES
        weights = self._weights(problem, rows, truth, shares, part_of, few)
        held_out = np.tensordot(weights, rows, 1)
        for part in range(len(sizes)) if len(sizes) > 1 else ():
            here, rest = part_of == part, part_of != part  # which decide the weights
            others = rows[:, rest], truth[rest], shares[rest], part_of[rest]
            held_out[here] = np.tensordot(self._weights(problem, *others, few), rows[:, here], 1)
        members = np.stack([result.tested for result in results])
        tested, spread = np.tensordot(weights, members, 1), None
        calibration, tested, held_out = calibrated(problem, fold, tested[None], held_out[None])
        if calibration.errors is not None and (weights > 0).sum() > 1:
            calibration = replace(calibration, spreads=_spread(rows, weights))
            spread = _spread(members, weights)
        metric = self.metric or problem.targets.metric()
        scores = metric.goodness(_mean_goodness(metric, truth, part_of, rows))
        tried = [
            {**each.name, "score": float(s) if np.isfinite(s) else None, "weight": float(w)}
            for each, s, w in zip(candidates, scores, weights, strict=True)
        ] + [{**each.name, "score": None, "weight": 0.0} for each, _ in failed]
        order = [k for k in np.argsort(-weights, kind="stable").tolist() if weights[k] > 0]
        chosen = [{**tried[k], **_as_mapping(results[k].chosen)} for k in sorted(order)]
        fitted = [results[k].fitted for k in order]
        model: Fitted | None = None
        if None not in fitted:
            named = [
                Member(candidates[k].title, each, float(weights[k]), tried[k]["score"])
                for k, each in zip(order, fitted, strict=True)
                if each is not None
            ]
            model = FittedBlend.of(named, replace(calibration))
        if self.single and model is not None:
            model = model.members[0].model
        return FoldResult(
            fold=fold,
            calibration=calibration,
            tested=tested,
            held_out=held_out,
            loss=join_curves([results[k].loss for k in order]),
            validation=join_curves([results[k].validation for k in order]),
            chosen={k: v for k, v in chosen[0].items() if k not in ("score", "weight")}
            if self.single
            else chosen,
            tried=tried,
            spread=spread,
            fitted=model,
        )

    def _weights(
        self,
        problem: Problem,
        rows: Floats,
        truth: Array,
        shares: Floats,
        part_of: Ints,
        few: bool,
    ) -> Floats:
        """By the metric or losses: the most likely mixture of few, greedy selection of many."""

        def losses(predicted: Floats) -> Floats:
            weighted: Floats = problem.targets.losses(truth, predicted) * shares / shares.mean()
            return weighted

        metric = self.metric
        if self.single:
            goodness = _mean_goodness(metric or problem.targets.metric(), truth, part_of, rows)
            return np.eye(len(rows))[choose_best(goodness, -losses(rows).mean(axis=1))]
        if metric is not None:
            return blend_weights(rows, losses, partial(_mean_goodness, metric, truth, part_of))
        known = problem.targets.likelihoods(truth, rows, shares) if few else None
        return blend_weights(rows, losses) if known is None else mixture_weights(*known)

    def _refitted(
        self,
        study: Study,
        results: Sequence[FoldResult | DivergenceError],
        tried: Sequence[Candidate],
    ) -> list[FoldResult | DivergenceError]:
        """The chosen candidates, each trained on all training examples of its folds."""
        out = list(results)
        for candidate in tried:
            places = [
                place
                for place, each in enumerate(results)
                if isinstance(each, FoldResult)
                and any(_is_of(one, candidate) for one in each.tried if one["weight"] > 0)
            ]
            folds = [replace(results[place].fold, inner=()) for place in places]  # type: ignore[union-attr]
            again = candidate.learner.start(study, folds)() if folds else []
            for place, result in zip(places, again, strict=True):
                known = out[place]
                if isinstance(result, FoldResult) and isinstance(known, FoldResult):
                    result = replace(result, chosen=known.chosen, tried=known.tried)
                out[place] = result
        return out


def _spread(rows: Floats, weights: Floats) -> Floats:
    """The standard deviation over the first axis, by weight."""
    mean = np.tensordot(weights, rows, 1)
    spread: Floats = np.sqrt(np.tensordot(weights, (rows - mean) ** 2, 1))
    return spread


def _is_of(tried: Mapping[str, Any], candidate: Candidate) -> bool:
    """Whether a line of what was tried is about a candidate."""
    name = {key: value for key, value in tried.items() if key not in ("score", "weight")}
    return name == dict(candidate.name)


def _same(one: Candidate, other: Candidate) -> bool:
    """Whether two lists mean one candidate: the same name, with the same arguments."""
    return one.name == other.name and one.learner.key() == other.learner.key()


def _as_mapping(chosen: Any) -> dict[str, Any]:
    """What a candidate decided; one that is itself a blend lists its members."""
    return chosen if isinstance(chosen, dict) else {"members": chosen}


@dataclass(eq=False, kw_only=True)
class FittedBlend(Fitted):
    """Several fitted models, averaged by weight."""

    kind = BlendLearner.kind

    blended: list[Member]

    @staticmethod
    def of(members: list[Member], calibration: Any) -> FittedBlend:
        """A blend of these members, largest weight first."""
        first = members[0].model
        return FittedBlend(
            targets=first.targets,
            calibration=calibration,
            decomposition=first.decomposition,
            schema=first.schema,
            blended=members,
        )

    @property
    def members(self) -> list[Member]:
        """Largest weight first."""
        return self.blended

    @property
    def weights(self) -> Floats:
        """The weights of the members."""
        return np.array([each.weight for each in self.blended])

    def each(self, data: Decompositions) -> Floats:
        """What every member predicts; equal decompositions are made once."""
        return np.stack([each.model.predictions(data) for each in self.blended], axis=1)

    def spread(self, each: Floats) -> Floats:
        """Standard deviations over the members, by weight."""
        return _spread(np.moveaxis(each, 1, 0), self.weights)

    def combined(self, each: Floats) -> Floats:
        """The calibrated mean, by weight."""
        mean = np.tensordot(self.weights, each, (0, 1))
        return self.calibration.apply(mean, several=self.targets.several)

    def embed(self, data: Decompositions, level: int | None = None) -> Floats:
        """The vectors of the examples by all members, side by side."""
        if level not in (None, self.schema.depth):
            raise InputError("a blend has vectors of whole examples only: omit the level")
        return np.hstack([each.model.embed(data) for each in self.blended])

    def to(self, device: str) -> None:
        """Move the members."""
        for each in self.blended:
            each.model.to(device)

    @property
    def knows_average(self) -> bool:
        """As the first member."""
        return self.blended[0].model.knows_average

    def explained(
        self, hierarchy: Hierarchy, weights: Floats, data: Decompositions | None = None
    ) -> Explained:
        """By the first member."""
        return self.blended[0].model.explained(hierarchy, weights, data)

    def top_entries(self, compressed: Compressed, weights: Sequence[Floats]) -> list[TopEntries]:
        """By the first member."""
        return self.blended[0].model.top_entries(compressed, weights)

    def describe(self) -> dict[str, Any]:
        """All members."""
        return {
            "members": [
                {
                    **{"candidate": each.name, "weight": each.weight, "score": each.score},
                    "decomposition": each.model.decomposition and each.model.decomposition.name,
                    **each.model.describe(),
                }
                for each in self.blended
            ]
        }

    @property
    def in_words(self) -> str:
        """The members, those of the largest weights first."""
        shares = [f"{each.name} {100 * each.weight:.0f} %" for each in self.blended]
        members = some_of(shares, MAX_SHOWN)
        return f"blend of {plural(len(shares), 'model')} ({members})"

    def pack(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """Every member with its name and weight."""
        document: dict[str, Any] = {
            "kind": self.kind,
            "temperature": self.calibration.temperature,
            "members": [],
        }
        tensors = self._pack_calibration()
        for number, member in enumerate(self.blended):
            own, arrays = member.model.pack()
            about = {"name": member.name, "weight": member.weight, "score": member.score}
            document["members"].append({**about, "model": own})
            tensors |= {f"{number}.{key}": array for key, array in arrays.items()}
        return document, tensors

    @classmethod
    def unpack(cls, document: dict[str, Any], tensors: Mapping[str, Array]) -> FittedBlend:
        """Members that predict the same, with weights that are shares."""
        members = [
            Member(
                each["name"],
                unpack_fitted(each["model"], under(f"{number}.", tensors)),
                float(each["weight"]),
                each["score"],
            )
            for number, each in enumerate(document["members"])
        ]
        blend = cls.of(members, unpack_calibration(document, tensors))
        first = blend.targets.to_json()
        if any(each.model.targets.to_json() != first for each in members):
            raise InputError("members of other targets")
        if not np.isfinite(blend.weights).all() or blend.weights.min() < 0:
            raise InputError("the weights of members are wrong")
        return blend


def unpack_fitted(document: dict[str, Any], tensors: Mapping[str, Array]) -> Fitted:
    """A model of any kind, from a file."""
    kinds: dict[str, type[Fitted]] = {
        each.kind: each for each in (FittedNetworks, FittedCounts, FittedBlend)
    }
    if document["kind"] not in kinds:
        raise InputError(f"unknown kind of model {document['kind']!r}")
    return kinds[document["kind"]].unpack(document, tensors)


# -- weights -------------------------------------------------------------------------------------


def _mean_goodness(metric: Metric, truth: Array, fold_of: Ints, predictions: Floats) -> Floats:
    """The goodness of predictions (k, n, …), the mean over folds where it is defined, (k,).

    Each fold is predicted by other models, whose outputs are not to be ranked together.
    """
    folds = [fold_of == number for number in np.unique(fold_of)]
    scores = [[metric(truth[fold], rows[fold]) for fold in folds] for rows in predictions]
    means: Floats = np.ma.masked_invalid(scores).mean(axis=1).filled(np.nan)
    return metric.goodness(means)


def choose_best(scores: Floats, ties: Floats) -> NDArray[np.int64]:
    """The best setting (row) for every part (column), (parts,); the first of equal ones.

    `scores` (settings, parts), or (settings,) of one part, decide, and `ties` among equal scores,
    of which small parts have many; more is better, NaN is worst. Scores are equal that agree in
    nine digits of the part's largest, so that units do not matter.

    >>> choose_best(np.array([[0.5, 0.7], [0.5, 0.6]]), np.array([[-2.0, -2.0], [-1.0, -1.0]]))
    array([1, 0])
    """
    largest = np.abs(np.where(np.isfinite(scores), scores, 0.0)).max(axis=0)
    # A power of ten, which is 1 for scores such as accuracies.
    unit = 10.0 ** np.ceil(np.log10(np.where(largest > 0, largest, 1.0)))
    comparable = np.nan_to_num(np.round(scores / unit, 9), nan=-np.inf)
    tied = comparable == comparable.max(axis=0)
    best: NDArray[np.int64] = np.where(tied, np.nan_to_num(ties, nan=-1e300), -np.inf).argmax(0)
    return best


def blend_weights(
    predictions: Floats,
    losses: Callable[[Floats], Floats],
    goodness: Callable[[Floats], Floats] | None = None,
) -> Floats:
    """Weights of predictions (candidates, n, …), by greedy selection with replacement.

    The prediction that lowers the mean loss of the average most is added to it, again and again
    (Caruana et al., ICML 2004); its weight is the share of the rounds that selected it.
    `losses` maps predictions (k, n, …) to losses (k, n). With `goodness`, which maps them to
    scores (k,), the score decides, and the loss among equal scores, as in `choose_best`.

    >>> truth = np.array([0.0, 1.0])
    >>> blend_weights(np.array([[-1.0, 0.0], [1.0, 2.0]]), lambda rows: (rows - truth) ** 2)
    array([0.5, 0.5])
    """
    counts = np.zeros(len(predictions))
    total = np.zeros_like(predictions[0])
    for number in range(1, GREEDY_ROUNDS + 1):
        average = (total + predictions) / number
        scores = np.zeros(len(predictions)) if goodness is None else goodness(average)
        best = choose_best(scores, -losses(average).mean(axis=1))
        counts[best] += 1
        total = total + predictions[best]
    weights: Floats = counts / GREEDY_ROUNDS
    return weights


def mixture_weights(likelihoods: Floats, counts: Floats | None = None) -> Floats:
    """The weights with which a mixture of candidates is most likely, (candidates,).

    `likelihoods` (candidates, n) are what each gives the truth, and `counts` (n,) how much each
    example counts. One example more that it alone explains is imagined for every candidate (a
    Dirichlet prior): candidates that are about equally good have about equal weights, and none is
    0. By expectation maximisation.

    >>> mixture_weights(np.array([[0.9, 0.9, 0.1], [0.1, 0.1, 0.9]])).round(2)
    array([0.6, 0.4])
    """
    times = np.ones(likelihoods.shape[1]) if counts is None else counts / counts.mean()
    weights: Floats = np.full(len(likelihoods), 1 / len(likelihoods))
    for _ in range(MIXTURE_STEPS):
        shares = weights[:, None] * likelihoods
        weights = (shares / shares.sum(axis=0)) @ times + 1.0
        weights /= weights.sum()
    return weights
