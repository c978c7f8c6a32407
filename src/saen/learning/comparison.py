"""`saen.compare`: whether one evaluation is above, level with or below another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import stdtrit

from saen._util.arrays import Floats
from saen.errors import InputError
from saen.learning.evaluation import Evaluation
from saen.learning.metrics import Metric, corrected_variance


@dataclass(frozen=True)
class Comparison:
    """How one evaluation differs from another.

    - `metric`; `difference`: the mean score of the first less that of the other;
    - `interval`: a 95 % interval for the difference, None where there are too few folds;
    - `paired`: whether both were scored on the same `folds`, the number of those compared;
    - `verdict`: `above` (the first is better), `below` or `level`: zero lies within the interval.
    """

    metric: Metric
    difference: float
    interval: tuple[float, float] | None
    paired: bool
    folds: int

    @property
    def verdict(self) -> str:
        """`above`, `level` or `below`; a smaller loss is above."""
        if self.interval is None:
            return "level"
        return verdict(*self.metric.goodness(np.array(self.interval)).tolist())

    def __str__(self) -> str:
        """In one line."""
        difference = _signed(self.metric, self.difference)
        shown = f"{self.verdict}: {self.metric.title} {difference}{self.metric.unit}"
        if self.interval is None:
            return f"{shown} (no interval: too few folds)"
        low, high = (_signed(self.metric, end) for end in self.interval)
        how = f"paired over {self.folds} folds" if self.paired else "unpaired"
        return f"{shown} (95 % interval {low} to {high}, {how})"

    def to_json(self) -> dict[str, Any]:
        """All of it."""
        return {**vars(self), "metric": self.metric.name, "verdict": self.verdict}


def verdict(low: float, high: float) -> str:
    """Where a difference is whose interval has these ends, in any order.

    >>> verdict(0.1, 0.3), verdict(-0.1, 0.3), verdict(-0.1, -0.3)
    ('above', 'level', 'below')
    """
    if min(low, high) > 0:
        return "above"
    return "below" if max(low, high) < 0 else "level"


def compare(
    evaluation: Evaluation, other: Evaluation | float, metric: str | None = None
) -> Comparison:
    """Whether an evaluation is above, level with or below another one, by a 95 % interval.

    Scores of folds are not independent, since their training parts overlap: the variance of a mean
    is taken to be 1/J + (test examples / training examples) times that of the J scores (Nadeau and
    Bengio, 2003). On the same folds, the scores are the differences of each fold, which vary less;
    else the variances of both means are added (Welch).

    Parameters
    ----------
    evaluation : Evaluation
        What `cross_validate` returned.
    other : Evaluation | float
        Another evaluation, or a published score, whose own error is unknown and counts as none.
        Repeats with the same folds are paired.
    metric : str | None, default=None
        The metric to compare. None: that of the first evaluation, such as `accuracy`.

    Raises
    ------
    InputError
        For classes compared with numbers.

    Examples
    --------
    >>> import saen
    >>> threads = saen.generate_threads(60, seed=1)
    >>> counts, depth = saen.PartCountsClassifier(), saen.PartCountsClassifier(depth=0)
    >>> one, other = (
    ...     saen.cross_validate(model, threads, threads.targets, n_repeats=1, n_folds=4)
    ...     for model in (counts, depth)
    ... )
    >>> compare(one, one).difference, compare(one, other).paired, compare(one, 2.0).verdict
    (0.0, True, 'below')
    """
    score = evaluation.find_metric(metric)
    scores, share = evaluation.scores(score.name), evaluation.test_share()
    if not isinstance(other, Evaluation):
        return _comparison(score, [(scores - float(other), share)], paired=False)
    if (evaluation.classes is None) != (other.classes is None):
        raise InputError("one evaluation predicts classes, the other numbers")
    theirs = other.scores(score.name)
    shared = _shared_repeats(evaluation, other)
    if len(shared):
        return _comparison(score, [(scores[shared] - theirs[shared], share)], paired=True)
    return _comparison(score, [(scores, share), (-theirs, other.test_share())], paired=False)


def _comparison(score: Metric, terms: list[tuple[Floats, float]], *, paired: bool) -> Comparison:
    """From the scores of folds that are added, each with its test examples per training example."""
    known = [(values[np.isfinite(values)], share) for values, share in terms]
    folds = min(len(values) for values, _ in known)
    difference = float(sum(values.mean() for values, _ in known)) if folds else np.nan
    if folds < 2:
        return Comparison(score, difference, None, paired, folds)
    variances = np.array([corrected_variance(values, share) for values, share in known])
    total, freedom = variances.sum(), np.array([len(values) - 1 for values, _ in known])
    # Welch and Satterthwaite; of a single term, J - 1
    degrees = total**2 / (variances**2 / freedom).sum() if total > 0 else freedom.sum()
    half = float(stdtrit(degrees, 0.975) * np.sqrt(total))
    return Comparison(score, difference, (difference - half, difference + half), paired, folds)


def _shared_repeats(one: Evaluation, other: Evaluation) -> list[int]:
    """The repeats whose folds are the same in both."""
    if len(one.targets) != len(other.targets):
        return []
    return [
        repeat
        for repeat, (mine, theirs) in enumerate(zip(one.splits, other.splits, strict=False))
        if len(mine) == len(theirs)
        and all(
            np.array_equal(np.sort(a), np.sort(b))
            for fold, another in zip(mine, theirs, strict=True)
            for a, b in zip(fold, another, strict=True)
        )
    ]


def _signed(metric: Metric, difference: float) -> str:
    size = abs(difference)
    shown = f"{100 * size:.2f}" if metric.percent else f"{size:.4g}"
    return ("+" if difference >= 0 else "−") + shown
