"""Cross-validation: all trainings of all folds and repeats over shared compressed hierarchies.

Three ways to stop:

- `fixed`: the number of epochs is set in advance; the test folds are used once;
- `nested`: settings are chosen, for every fold, on inner folds of its training part, then the
  networks are trained again on all of it and the test fold is used once;
- `peek`: the best epoch of the test folds' mean curve, as some published numbers are obtained. It
  is optimistic, and only meant for comparison with such numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone, is_regressor

from saen._util.arrays import Ints
from saen._util.executor import Executor, Tasks
from saen._util.json_files import write_json
from saen.errors import InputError
from saen.io.coerce import as_data
from saen.learning.blend import BlendClassifier, BlendEstimator, BlendRegressor
from saen.learning.estimators import SAENClassifier, SAENRegressor
from saen.learning.evaluation import Evaluation
from saen.learning.metrics import find_metric
from saen.learning.part_counts_models import PartCountsEstimator
from saen.learning.preparation import Data, Preparations, same_data
from saen.learning.selection import (
    INNER_FOLDS,
    Candidate,
    Inner,
    Rule,
    best_one,
    describe_members,
    describe_tried,
    train_chosen,
    try_candidates,
)
from saen.learning.splits import (
    Fold,
    Splits,
    check_splits,
    check_validation,
    make_splits,
    renumbered,
    splits_to_json,
)
from saen.learning.targets import target_names
from saen.learning.trainers import (
    Classes,
    Estimator,
    Numbers,
    PartOutputs,
    Problem,
    Progress,
    Trainer,
    curve_interval,
)
from saen.network.settings import Part, join_curves

STOPS = ("fixed", "nested", "peek")
Grid = Sequence[dict[str, Any]]


def cross_validate(
    estimator: Estimator | BlendClassifier | BlendRegressor,
    X: Data | Preparations,
    y: ArrayLike,
    *,
    repeats: int = 10,
    folds: int = 10,
    seed: int = 0,
    test_size: float | None = None,
    groups: ArrayLike | None = None,
    splits: Sequence[Sequence[Fold]] | None = None,
    validation: Sequence[Ints] | None = None,
    stop: str = "fixed",
    grid: Grid = ({},),
    metric: str | None = None,
    inner: int = INNER_FOLDS,
    models_at_once: int | None = None,
    folder: Path | None = None,
    records: Ints | None = None,
    progress: Progress | None = None,
    executor: Executor | None = None,
) -> Evaluation:
    """Train and test an estimator on every fold of every repeat, many networks at once.

    The data are decomposed and compressed once; compression never looks at targets. Each network
    sees the targets, labels and statistics of its own training part only; `auto` radii and batch
    sizes look at all examples, without their targets.

    Parameters
    ----------
    estimator, X, y : what to train, on which data, with one class or real number per example, or
        several with gaps (see `SAENClassifier`). As `Preparations`, the data are decomposed once
        for several evaluations.
    repeats, folds, seed : folds, stratified by class; `seed` also replaces the estimator's
        `random_state`.
    test_size : test one random part of this share per repeat (hold-out), instead of folds.
    groups : (n,), examples of one group are never on both sides of a split.
    splits : splits of your own, per repeat a list of (train, test) indices: several folds that
        test every example once, or one fold (a hold-out).
    validation : per repeat of one fold, the examples on which `nested` chooses; they are not
        trained on.
    stop : `fixed`, `nested` or `peek`, see the module; a blend is always `nested`.
    grid : under `nested`, the settings to choose from.
    metric : what decides under `nested`, see `saen.learning.metrics`; by default accuracy, or the
        mean absolute error of numbers. The weights of a blend are decided by its own `metric`, else
        by this one, and by the log loss or squared error if neither is given.
    inner : under `nested`, the folds of each training part on which settings are compared (of a
        blend, its own `inner_folds`).
    models_at_once : networks trained side by side, by default as many as fit; for part counts,
        processes.
    folder : finished groups of networks are kept there, and a second call resumes from them.
    records : (n,), where the examples are in their input, if some were skipped; `splits.json` in
        the folder counts all of it.
    progress : called with network-epochs done and their total.
    executor : trains groups of networks in tasks, see `saen.cluster`; the results are the same.
        Part counts are fitted here.

    >>> import saen
    >>> threads = saen.generate_threads(40, seed=1)
    >>> quick = SAENClassifier(epochs=3, n_models=1)
    >>> evaluation = cross_validate(quick, threads, threads.targets, repeats=1, folds=4)
    >>> evaluation.scores("roc_auc").shape
    (1, 4)
    """
    _check_protocol(estimator, stop, grid, inner, models_at_once, seed)
    problem: Problem = (Numbers if is_regressor(estimator) else Classes)(y)
    own = estimator.metric if isinstance(estimator, BlendEstimator) else None
    score = find_metric(own if metric is None else metric, regression=problem.classes is None)
    preparations = X
    if not isinstance(X, Preparations):
        preparations = Preparations(as_data(X, estimator.spec.takes))
    data, targets = preparations.data, problem.targets
    if len(targets) != len(data):
        raise InputError(f"{len(data)} examples, but {len(targets)} targets")
    if splits is None:
        named = targets
        if problem.classes is not None and targets.ndim == 1:
            named = problem.classes.astype(str)[targets]
        splits = make_splits(named, repeats, folds, seed, test_size=test_size, groups=groups)
    else:
        check_splits(splits, len(targets))
    if validation is not None:
        check_validation(validation, splits, len(targets))
    if folder is not None:
        written = Splits(splits, validation)
        written = written if records is None else renumbered(written, records)
        write_json(folder / "splits.json", splits_to_json(written), sealed=True)
    parts = [
        Part((repeat, fold), np.asarray(train), np.asarray(test))
        for repeat, each in enumerate(splits)
        for fold, (train, test) in enumerate(each)
    ]
    within = None if groups is None else np.asarray(groups)
    rule: Rule
    if isinstance(estimator, BlendEstimator):
        stop, inside = "nested", Inner(score, estimator.inner_folds, validation, within)
        candidates = estimator.listed(data)
        rule = estimator.rule(metric)
    else:
        settings = [clone(estimator).set_params(**each) for each in grid]
        candidates = [Candidate(*each) for each in zip(grid, settings, settings, strict=True)]
        inside, rule = Inner(score, inner, validation, within), best_one(score)
    protocol = _Protocol(candidates, rule, inside)
    tasks = None if executor is None else Tasks(executor)
    trainer = Trainer(preparations, problem, seed, models_at_once, folder, progress, tasks)
    outer = _PROTOCOLS[stop](trainer, estimator, parts, protocol)
    predicted = outer.tested.outputs
    outputs = np.full((len(splits), len(targets), *predicted[0].shape[1:]), np.nan)
    radius = np.full_like(outputs, np.nan) if outer.tested.radius else None
    for part, tested in zip(parts, predicted, strict=True):
        outputs[part.name[0], part.test] = tested
    for part, each in zip(parts, outer.tested.radius, strict=False):
        radius[part.name[0], part.test] = each  # type: ignore[index]
    # Ceilings are those of the estimator's own decomposition, whatever was chosen; to a blend,
    # examples are identical that look so to all candidates.
    if isinstance(estimator, BlendEstimator):
        compressed = trainer.prepare(candidates[0].estimator).compressed
        rows = estimator.identical(preparations)
    else:
        compressed = trainer.prepare(estimator).compressed
        rows = compressed.top
    return Evaluation(
        problem.classes,
        targets,
        splits,
        outputs,
        rows.astype(np.int64),
        outer.tested.loss,
        dict(trainer.seconds),
        stop,
        score.name,
        outer.chosen,
        compressed.levels(),
        dict(trainer.group_sizes),
        outer.tried,
        target_names(y) if targets.ndim == 2 else [],
        radius,
        outer.tested.validation_loss,
        same_data(data, rows).astype(np.int64),
    )


def _check_protocol(
    estimator: Estimator | BlendClassifier | BlendRegressor,
    stop: str,
    grid: Grid,
    inner: int,
    models_at_once: int | None,
    seed: int,
) -> None:
    estimator.validate()
    if stop not in STOPS:
        raise InputError(f"stop is one of {', '.join(STOPS)}, not {stop!r}")
    network = isinstance(estimator, SAENClassifier | SAENRegressor)
    blended = isinstance(estimator, BlendEstimator)
    if stop == "nested" and len(grid) < 2 and not blended:
        raise InputError("nested needs a grid of at least two settings to choose from")
    if stop == "peek" and is_regressor(estimator):
        raise InputError("peek looks at accuracies: use fixed or nested for real numbers")
    if stop == "peek" and not (network and estimator.epochs):
        raise InputError("there is no epoch to choose: epochs must be at least 1")
    if network and estimator.patience is not None:
        raise InputError(
            "cross-validation does not stop early (patience): the training part is used in full, "
            "and test folds must not decide when to stop"
        )
    if inner < 2:
        raise InputError(f"inner must be an integer ≥ 2, not {inner}")
    if models_at_once is not None and models_at_once < 1:
        raise InputError(f"models_at_once must be an integer ≥ 1, not {models_at_once}")
    if not 0 <= seed < 2**31:
        raise InputError(f"seed must be an integer from 0 to {2**31 - 1}, not {seed}")


# -- the protocols -----------------------------------------------------------------------------


@dataclass(frozen=True)
class _Protocol:
    """What is chosen from under `nested`, by which rule, and on which inner folds."""

    candidates: Sequence[Candidate]
    rule: Rule
    inner: Inner


@dataclass(frozen=True)
class _Outer:
    """Predictions and curves of all parts, what was chosen for each, and what was tried."""

    tested: PartOutputs
    chosen: list[Any]
    tried: list[dict[str, Any]] = field(default_factory=list)


def _fixed(
    trainer: Trainer, estimator: Estimator, parts: Sequence[Part], protocol: _Protocol
) -> _Outer:
    inner = trainer.inner_parts(estimator, parts, protocol.inner.groups)
    trainer.expect(estimator, len(parts) + sum(map(len, inner)))
    flat = [part for each in inner for part in each]
    trainer.start("fixed", estimator, parts)
    trainer.start("fixed-calibration", estimator, flat, test_every=curve_interval(estimator))
    tested = trainer.train("fixed", estimator, parts)
    if not isinstance(estimator, PartCountsEstimator):
        tested = trainer.calibrate_networks("fixed", estimator, inner, tested)
    return _Outer(tested, tested.chosen)


def _nested(
    trainer: Trainer,
    estimator: Estimator | BlendEstimator,
    parts: Sequence[Part],
    protocol: _Protocol,
) -> _Outer:
    """Every part is predicted by what did best on inner folds of its training examples."""
    candidates = protocol.candidates
    trials = try_candidates(trainer, candidates, parts, protocol.inner)
    weights = protocol.rule(trials, trainer.problem)
    tested, weights, inside = train_chosen(trainer, candidates, parts, weights, trials)
    if estimator.inner_folds != 0:  # what was held out to choose is good to calibrate on, too
        held_out = [
            np.tensordot(w, rows, 1) for w, rows in zip(weights.T, trials.held_out, strict=True)
        ]
        tested = trainer.calibrated(tested, held_out, trials.truth)
    watched = [
        trials.curves[trials.numbers[row]][column].validation_loss
        for row, column in zip(*np.nonzero(weights), strict=True)
        if trials.numbers[row] in trials.curves
    ]
    tested = replace(tested, validation_loss=join_curves(watched) if watched else None)
    means = trials.scores.mean(axis=1), weights.mean(axis=1)
    tried = describe_tried(candidates, trials.numbers, *means)
    if isinstance(estimator, BlendEstimator):
        return _Outer(tested, describe_members(candidates, trials, weights, inside), tried)
    best = weights.argmax(axis=0).tolist()
    chosen = [
        {**candidates[trials.numbers[row]].name, **inside[row][column]}
        for column, row in enumerate(best)
    ]
    return _Outer(tested, chosen, tried)


def _peek(trainer: Trainer, estimator: Estimator, parts: Sequence[Part], _: _Protocol) -> _Outer:
    """The epoch at which the mean test accuracy is best, trained again up to just there."""
    assert isinstance(estimator, SAENClassifier)
    single = clone(estimator).set_params(n_models=1)
    trainer.expect(single, 2 * len(parts))
    watched = trainer.train_networks("peek", single, parts, test_every=1)[1]
    assert watched.test_accuracy is not None
    epoch = int(watched.test_accuracy.mean(axis=1).argmax()) + 1
    tested = trainer.train_networks("peeked", single, parts, until=epoch)[0]
    return _Outer(tested, [{"epoch": epoch}])


_PROTOCOLS = {"fixed": _fixed, "nested": _nested, "peek": _peek}
