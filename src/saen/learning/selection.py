"""Choosing and blending: which of some candidates predict a part, decided inside its training part.

Every candidate predicts the held-out examples of inner folds of the training part. A rule turns
these predictions into weights of the candidates; those with a weight are trained again on all of
the training part, and their predictions averaged by weight.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from saen._util.arrays import Array, Floats, Ints
from saen._util.caller import warn_caller
from saen._util.seeds import derive_seed
from saen.errors import InputError
from saen.learning.metrics import Metric
from saen.learning.part_counts_models import PartCountsEstimator
from saen.learning.splits import class_counts, inner_parts
from saen.learning.trainers import Estimator, PartOutputs, Problem, Trainer, curve_interval
from saen.network.settings import DivergenceError, DivergenceWarning, History, Part, join_curves

INNER_FOLDS = 3
"""Folds of a training part on which settings are compared, unless told otherwise."""
FEW_EXAMPLES, MANY_EXAMPLES = 500, 8000
"""Below the first, held-out losses hardly tell candidates apart: there are more inner folds, and
classes are blended by `mixture_weights`, since greedy selection fits chance. From the second on, a
tenth of the examples is enough to compare candidates on, if all classes are frequent."""
FREQUENT = 100
"""Members of a class that is frequent enough for that."""
GREEDY_ROUNDS = 30
"""Selections of `blend_weights`: weights are multiples of one over this and the candidates."""
MIXTURE_STEPS = 300
"""Of expectation maximisation in `mixture_weights`."""


@dataclass(frozen=True)
class Candidate:
    """An estimator to choose, and how it is called in results.

    `trial` stands for it on the inner folds: a cheaper one, such as a single network; `prior` is
    the share of an example that `mixture_weights` imagines for it.
    """

    name: dict[str, Any]
    estimator: Estimator
    trial: Estimator
    prior: float = 1.0

    def __post_init__(self) -> None:
        # Trials are tested on the inner folds for their curves: they would stop early by them.
        if getattr(self.estimator, "patience", None) is not None:
            raise InputError(
                f"{self.title} stops early (patience): candidates are compared after all "
                "of their epochs; try several numbers of epochs instead"
            )

    @property
    def title(self) -> str:
        """The name in words: that of a blend's candidate, or the settings of a grid."""
        named = self.name.get("candidate")
        return named or ", ".join(f"{key}={value}" for key, value in self.name.items())


@dataclass(frozen=True)
class Inner:
    """How training parts are split once more, and scored; `auto` folds go by the examples."""

    metric: Metric
    folds: int | str
    validation: Sequence[Ints] | None = None
    groups: Array | None = None

    def parts(self, part: Part, targets: Array, seed: int) -> list[Part]:
        """The training part of a fold, split once more to compare candidates on."""
        if self.validation is not None:
            return [Part((*part.name, 0), part.train, np.asarray(self.validation[part.name[0]]))]
        state = derive_seed((seed, *part.name), "inner folds") % 2**31
        folds = self.folds
        if isinstance(folds, str):
            folds = usual_inner_folds(targets[part.train], grouped=self.groups is not None)
        return inner_parts(part, targets, folds, state, self.groups)


def usual_inner_folds(targets: Array, *, grouped: bool = False) -> int:
    """Inner folds of training examples to compare a blend's candidates on; 1 is a single split.

    That must hold out some of every class, and groups may be too large for it.

    >>> [usual_inner_folds(np.arange(n) % 2) for n in (300, 3000, 30000)]
    [5, 3, 1]
    """
    counts = class_counts(targets)
    if len(targets) < FEW_EXAMPLES:
        return 5 if counts.max() == 0 or counts.max() >= 5 else INNER_FOLDS
    frequent = targets.ndim == 1 and (counts.max() == 0 or counts.min() >= FREQUENT)
    return 1 if len(targets) >= MANY_EXAMPLES and frequent and not grouped else INNER_FOLDS


@dataclass(frozen=True)
class Trials:
    """What candidates predicted on the inner folds of every part.

    Candidates are those whose training did not diverge; in `tested` and `curves`, as everywhere
    outside, they go by their number in the list of all.

    - `numbers`: of the candidates in the list of all;
    - `held_out`: per part the predictions for all held-out examples, (candidates, n, …);
    - `truth`: per part their targets, (n,);
    - `folds`: per part which of them each inner fold holds out;
    - `scores`, `losses` (candidates, parts): means over inner folds, NaN where not defined;
    - `chosen`: per candidate and part what the candidate itself chose;
    - `tested`: what candidates that were trained on all of each part on the way predict;
    - `curves`: of the networks of a candidate on the inner folds of every part;
    - `priors` (candidates,).
    """

    numbers: list[int]
    held_out: list[Floats]
    truth: list[Array]
    folds: list[list[slice]]
    scores: Floats
    losses: Floats
    chosen: list[list[dict[str, Any]]]
    tested: dict[int, PartOutputs]
    curves: dict[int, list[History]]
    priors: Floats


Rule = Callable[[Trials, Problem], Floats]
"""Weights of the candidates for every part, (candidates, parts), whose columns add up to 1."""


def try_candidates(
    trainer: Trainer,
    candidates: Sequence[Candidate],
    parts: Sequence[Part],
    inner: Inner,
    prefix: str = "",
) -> Trials:
    """Train every candidate on the inner folds of every part, all networks of one side by side.

    One that diverges on any of them is left out, with a warning, as long as another remains.
    """
    targets = trainer.problem.targets
    splits = [inner.parts(part, targets, trainer.seed) for part in parts]
    flat = [part for each in splits for part in each]
    ends = np.cumsum([0, *(sum(len(part.test) for part in each) for each in splits)])
    for candidate in candidates:
        trainer.expect(candidate.trial, len(parts if _shares(candidate, inner) else flat))
    for index, candidate in enumerate(candidates):
        every = curve_interval(candidate.trial)
        trainer.start(f"{prefix}inner-{index}", candidate.trial, flat, test_every=every)
    numbers, rows, chosen, tested, curves = [], [], [], {}, {}
    diverged: list[tuple[Candidate, DivergenceError]] = []
    first = np.cumsum([0, *map(len, splits)])
    for index, candidate in enumerate(candidates):
        stage = f"{prefix}inner-{index}"
        if _shares(candidate, inner):
            # Part counts choose on inner folds anyway: these, and once for both purposes.
            folds = [_positions(part, each) for part, each in zip(parts, splits, strict=True)]
            tested[index], by_part = trainer.train_counts(stage, candidate.trial, parts, folds)
            rows.append(np.concatenate(by_part))
            chosen.append(tested[index].chosen)
        elif isinstance(candidate.trial, PartCountsEstimator):
            rows.append(np.concatenate(trainer.train(stage, candidate.trial, flat).outputs))
            chosen.append([{}] * len(parts))
        else:
            try:
                outputs, results = trainer.train_networks(
                    stage, candidate.trial, flat, test_every=curve_interval(candidate.trial)
                )
            except DivergenceError as error:
                diverged.append((candidate, error))
                continue
            rows.append(np.concatenate(outputs.outputs))
            chosen.append([{}] * len(parts))
            curves[index] = [
                results.history(a, b) for a, b in pairwise(first * candidate.trial.n_models)
            ]
        numbers.append(index)
    for candidate, reason in diverged:
        if not numbers:
            raise reason
        _warn_left_out(candidate, reason)
    held_out = np.stack(rows)
    truth = np.concatenate([targets[part.test] for part in flat])
    losses = trainer.problem.losses(truth, held_out)
    inner_ends = np.cumsum([0, *(len(part.test) for part in flat)])
    by_fold = list(pairwise(inner_ends))
    score = np.array(
        [[inner.metric(truth[a:b], each[a:b]) for a, b in by_fold] for each in held_out]
    )
    loss = np.stack([losses[:, a:b].mean(axis=1) for a, b in by_fold], axis=1)
    return Trials(
        numbers,
        [held_out[:, a:b] for a, b in pairwise(ends)],
        [truth[a:b] for a, b in pairwise(ends)],
        [_slices([len(part.test) for part in each]) for each in splits],
        np.stack([_mean_of_known(score[:, a:b]) for a, b in pairwise(first)], axis=1),
        np.stack([_mean_of_known(loss[:, a:b]) for a, b in pairwise(first)], axis=1),
        chosen,
        tested,
        curves,
        np.array([candidates[number].prior for number in numbers]),
    )


def train_chosen(
    trainer: Trainer,
    candidates: Sequence[Candidate],
    parts: Sequence[Part],
    weights: Floats,
    trials: Trials,
) -> tuple[PartOutputs, Floats, list[list[dict[str, Any]]]]:
    """Train the candidates with a weight on all of each part, and average their predictions.

    Also the weights, in which one that diverges has none, and what each candidate itself chose for
    each part.
    """
    tested = trials.tested
    columns = {
        row: np.flatnonzero(weights[row]).tolist()
        for row in np.flatnonzero(weights.any(axis=1)).tolist()
    }
    for row, own in columns.items():
        number = trials.numbers[row]
        if number not in tested:
            trainer.expect(candidates[number].estimator, len(own))
            own_parts = [parts[column] for column in own]
            trainer.start(f"outer-{number}", candidates[number].estimator, own_parts)
    results: dict[int, PartOutputs] = {}
    for row, own in columns.items():
        number = trials.numbers[row]
        if number in tested:
            known = tested[number]
            results[row] = PartOutputs(
                [known.outputs[c] for c in own],
                known.loss[:, own],
                [known.chosen[c] for c in own],
            )
            continue
        own_parts = [parts[column] for column in own]
        try:
            results[row] = trainer.train(f"outer-{number}", candidates[number].estimator, own_parts)
        except DivergenceError as error:
            weights = leave_out(candidates[number], weights, row, error)
    outputs: list[Any] = [0.0] * len(parts)
    inside: list[list[dict[str, Any]]] = [[{}] * len(parts) for _ in trials.numbers]
    for row, result in results.items():
        for column, rows in zip(columns[row], result.outputs, strict=True):
            outputs[column] = outputs[column] + weights[row, column] * rows
        for column, choice in zip(columns[row], result.chosen, strict=False):
            inside[row][column] = choice
    curves = [result.loss for result in results.values()]
    return PartOutputs(outputs, join_curves(curves)), weights, inside


def leave_out(candidate: Candidate, weights: Floats, row: int, error: DivergenceError) -> Floats:
    """Weights (candidates, parts) without a candidate that diverged, whose row becomes 0.

    Its error is raised where no other candidate has a weight.
    """
    rest: Floats = weights.copy()
    rest[row] = 0.0
    sums: Floats = rest.sum(axis=0)
    if (sums == 0).any():
        raise error
    _warn_left_out(candidate, error)
    rest /= sums
    return rest


def _warn_left_out(candidate: Candidate, error: DivergenceError) -> None:
    warn_caller(f"{candidate.title}: diverged, left out ({error.advice})", DivergenceWarning)


def _shares(candidate: Candidate, inner: Inner) -> bool:
    """Whether a candidate chooses on the inner folds themselves."""
    return isinstance(candidate.trial, PartCountsEstimator) and inner.validation is None


def _slices(sizes: Sequence[int]) -> list[slice]:
    """Where segments of these sizes are that follow one another."""
    return [slice(a, b) for a, b in pairwise(np.cumsum([0, *sizes]).tolist())]


def _positions(part: Part, inner: Sequence[Part]) -> list[tuple[Ints, Ints]]:
    """Inner parts as positions within the training examples of a part, which are sorted."""
    order = np.argsort(part.train)
    sorted_train = part.train[order]

    def places(examples: Ints) -> Ints:
        return order[np.searchsorted(sorted_train, examples)]

    return [(places(each.train), places(each.test)) for each in inner]


def _mean_of_known(values: Floats) -> Floats:
    """The mean of every row without its NaNs, NaN for a row of NaNs."""
    mean: Floats = np.ma.masked_invalid(values).mean(axis=1).filled(np.nan)
    return mean


# -- rules -------------------------------------------------------------------------------------


def best_one(metric: Metric) -> Rule:
    """The rule that takes the candidate with the best score, of equal ones that of least loss."""

    def rule(trials: Trials, _: Problem) -> Floats:
        best = choose_best(metric.goodness(trials.scores), -trials.losses)
        return np.eye(len(trials.scores))[:, best]

    return rule


def blend(trials: Trials, problem: Problem) -> Floats:
    """The rule that blends candidates by their losses: `mixture_weights`, or `blend_weights`."""
    columns = []
    for rows, truth in zip(trials.held_out, trials.truth, strict=True):
        likelihoods = problem.likelihoods(truth, rows) if len(truth) < FEW_EXAMPLES else None
        if likelihoods is None:
            columns.append(blend_weights(rows, partial(problem.losses, truth)))
        else:
            columns.append(mixture_weights(likelihoods, trials.priors))
    return np.stack(columns, axis=1)


def blend_by(metric: Metric) -> Rule:
    """The rule that blends candidates by a metric, of equal scores by their losses.

    The score of a blend is the mean over inner folds: each is predicted by other models, whose
    outputs have other scales and are not to be ranked together.
    """

    def rule(trials: Trials, problem: Problem) -> Floats:
        columns = []
        for rows, truth, folds in zip(trials.held_out, trials.truth, trials.folds, strict=True):
            goodness = partial(_mean_goodness, metric, truth, folds)
            columns.append(blend_weights(rows, partial(problem.losses, truth), goodness))
        return np.stack(columns, axis=1)

    return rule


def _mean_goodness(
    metric: Metric, truth: Array, folds: Sequence[slice], predictions: Floats
) -> Floats:
    """The goodness of predictions (k, n, …), the mean over folds where it is defined, (k,)."""
    scores = [[metric(truth[fold], rows[fold]) for fold in folds] for rows in predictions]
    return metric.goodness(_mean_of_known(np.array(scores)))


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


def mixture_weights(likelihoods: Floats, priors: Floats) -> Floats:
    """The weights with which a mixture of candidates is most likely, (candidates,).

    `likelihoods` (candidates, n) are what each gives the truth. Some examples more that it alone
    explains, `priors` (candidates,), are imagined for every candidate (a Dirichlet prior): weights
    of candidates that are about equally good are about as the priors, and none is 0. By
    expectation maximisation.

    >>> mixture_weights(np.array([[0.9, 0.9, 0.1], [0.1, 0.1, 0.9]]), np.ones(2)).round(2)
    array([0.6, 0.4])
    """
    weights: Floats = priors / priors.sum()
    for _ in range(MIXTURE_STEPS):
        shares = weights[:, None] * likelihoods
        weights = (shares / shares.sum(axis=0)).sum(axis=1) + priors
        weights /= weights.sum()
    return weights


# -- results -----------------------------------------------------------------------------------


def describe_tried(
    candidates: Sequence[Candidate], numbers: Sequence[int], scores: Floats, weights: Floats
) -> list[dict[str, Any]]:
    """All candidates with their score, None where it is not defined, and weight, as JSON.

    `scores` and `weights` are those of the candidates with these numbers; others have none.
    """
    tried: list[dict[str, Any]] = [
        {**each.name, "score": None, "weight": 0.0} for each in candidates
    ]
    for number, score, weight in zip(numbers, scores, weights, strict=True):
        tried[number]["score"] = float(score) if np.isfinite(score) else None
        tried[number]["weight"] = float(weight)
    return tried


def describe_members(
    candidates: Sequence[Candidate],
    trials: Trials,
    weights: Floats,
    chosen: Sequence[Sequence[dict[str, Any]]],
) -> list[list[dict[str, Any]]]:
    """For every part the members of its blend, with what they themselves chose."""
    listed = [candidates[number] for number in trials.numbers]
    rows = range(len(listed))
    return [
        [
            {**each, **choices[column]}
            for each, choices in zip(
                describe_tried(listed, rows, trials.scores[:, column], weights[:, column]),
                chosen,
                strict=True,
            )
            if each["weight"] > 0
        ]
        for column in range(weights.shape[1])
    ]
