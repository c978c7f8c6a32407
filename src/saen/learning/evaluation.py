"""`cross_validate`: a learner on many folds; `Evaluation`: its predictions and their scores.

Three ways to select settings:

- `fixed`: all settings are set in advance; what an estimator itself leaves open, it decides on
  inner folds of the training examples. The test folds are used once;
- `nested`: settings of a grid are chosen, for every fold, on inner folds of its training examples;
- `peek`: the best epoch of the test folds' mean curve, as some published numbers are obtained. It
  is optimistic, and only meant for comparison with such numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import is_regressor

from saen._util.arrays import Array, Floats, Ints
from saen._util.executor import Executor, Tasks
from saen._util.json_files import write_json
from saen._util.notebook import html_table
from saen._util.strings import plural
from saen.data.compression import ceiling
from saen.errors import InputError
from saen.io.result_tables import beside
from saen.learning.calibration import COVERAGE
from saen.learning.decomposing import Data, Decompositions
from saen.learning.metrics import (
    CLASSIFICATION_METRICS,
    REGRESSION_METRICS,
    Metric,
    classification_scores,
    corrected_interval,
    find_metric,
    regression_scores,
    several_scores,
)
from saen.learning.models.base import Candidate, FoldResult, Learner, Progress, Study
from saen.learning.models.blend import BlendLearner
from saen.learning.parameters import clone_with, validate
from saen.learning.problem import Classes, Numbers, Problem, checked_groups
from saen.learning.splits import (
    Fold,
    Split,
    Splits,
    check_splits,
    check_validation,
    make_splits,
    renumbered,
    splits_to_json,
)
from saen.network.settings import join_curves

if TYPE_CHECKING:
    import pandas as pd

SELECTIONS = ("fixed", "nested", "peek")
Grid = Sequence[dict[str, Any]]


@dataclass(frozen=True, repr=False)
class Evaluation:
    """The result of a repeated cross-validation or hold-out of n examples.

    - `classes` (C,), or (t, 2) of t targets, or None for real numbers;
    - `targets`: codes into the classes, (n,), or (n, t) with -1 where unknown; or numbers, (n,), or
      (n, t) with NaN where unknown;
    - `splits`: per repeat its folds, (train, test) indices each;
    - `outputs`: by networks that did not train on the example, probabilities (R, n, C) or numbers
      (R, n); of several targets, probabilities of the second classes, or numbers, (R, n, t); NaN
      where a repeat does not test it;
    - `rows` (n,): examples that look identical to the model have equal rows; `same` (n,): those
      that are identical as data have equal numbers, by default the rows; `overlapping` (R, n):
      which tests share more rare parts with a training example than chance explains, if that is
      known (see `saen.overlap`);
    - `loss` (epochs, networks): training curves of all networks of the final stage, NaN where a
      network trained for fewer epochs;
    - `seconds`: per step; `selection`, `metric`: the protocol;
    - `chosen`: what was decided for every repeat and fold; under `peek` the epoch;
    - `levels`: of the hierarchy, before and after compression;
    - `tried`: every candidate with its mean inner score and mean weight over the folds;
    - `target_names`: of several targets;
    - `radius`: of the intervals around predicted numbers, shaped as `outputs`, if there are any;
    - `ids` (n,): of the examples, by default their numbers;
    - `validation_loss` (epochs, networks): curves on inner folds of the training parts.
    """

    classes: NDArray[Any] | None
    targets: Array
    splits: Sequence[Sequence[Split]]
    outputs: Floats
    rows: NDArray[np.int64]
    loss: Floats
    seconds: dict[str, float]
    selection: str = "fixed"
    metric: str = "accuracy"
    chosen: list[Any] = field(default_factory=list)
    levels: list[dict[str, Any]] = field(default_factory=list)
    tried: list[dict[str, Any]] = field(default_factory=list)
    target_names: list[str] = field(default_factory=list)
    radius: Floats | None = None
    validation_loss: Floats = field(default_factory=lambda: np.empty((0, 0)))
    same: NDArray[np.int64] | None = None
    overlapping: NDArray[np.bool_] | None = None
    ids: Array | None = None

    @cached_property
    def fold_of(self) -> NDArray[np.int64]:
        """The fold that tests each example, (R, n); -1 where a repeat does not test it."""
        out = np.full((len(self.splits), len(self.targets)), -1)
        for repeat, fold, _, test in self._folds():
            out[repeat, test] = fold
        return out

    def _folds(self) -> Iterator[tuple[int, int, Ints, Ints]]:
        """Repeat, number, training and test examples of all folds."""
        for repeat, folds in enumerate(self.splits):
            for fold, (train, test) in enumerate(folds):
                yield repeat, fold, train, test

    @property
    def loss_name(self) -> str:
        """What the networks minimise."""
        return "squared error, standardised" if self.classes is None else "cross entropy"

    @property
    def curves(self) -> dict[str, Floats]:
        """Losses of all networks by name, (epochs, networks) each."""
        inner = self.validation_loss
        return {"training": self.loss} | ({"inner validation": inner} if inner.size else {})

    @property
    def probabilities(self) -> Floats:
        """Class probabilities, (R, n, C), or (R, n, t) of several targets."""
        assert self.classes is not None, "numbers are predicted, not classes"
        return self.outputs

    @property
    def predictions(self) -> Array:
        """Predicted codes or numbers, (R, n, …); of use only where `fold_of` is not -1."""
        if self.classes is None:
            return self.outputs
        several = self.classes.ndim == 2
        return (self.outputs > 0.5).astype(np.int64) if several else self.outputs.argmax(axis=2)

    def tested(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """All tests in a row: the repeat and the example of each."""
        repeats, examples = np.nonzero(self.fold_of >= 0)
        return repeats, examples

    def columns(self, kept: Mapping[str, Array] | None = None) -> dict[str, Array]:
        """All tests in a row, as the columns of `to_frame`; `kept` (n,) each follow the id."""
        repeats, examples = self.tested()
        names = tuple(self.target_names)
        kind = Numbers(names) if self.classes is None else Classes(names, self.classes)
        truth = kind.decoded(self.targets[examples])
        ids = np.arange(len(self.targets)) if self.ids is None else self.ids
        computed = {
            "id": ids[examples],
            "repeat": repeats,
            "fold": self.fold_of[repeats, examples],
            **{f"target_{name}": truth[:, k] for k, name in enumerate(names)},
            **({} if names else {"target": truth}),
            **kind.columns(
                self.outputs[repeats, examples],
                None if self.radius is None else self.radius[repeats, examples],
            ),
        }
        copied = {name: column[examples] for name, column in (kept or {}).items()}
        if np.array_equal(copied.get("target", ()), truth):
            del copied["target"]
        return beside(copied, computed)

    def to_frame(self) -> pd.DataFrame:
        """One row per test, by repeat: the out-of-fold predictions as a table.

        The columns are `id`, `repeat` and `fold` (from 0), `target`, `prediction`, and `p_CLASS`,
        the probability of each class, or `lower` and `upper`, the ends of the interval around a
        number. Of several targets: `target_NAME`, `prediction_NAME`, and `p_NAME`, the probability
        of the second class, or `lower_NAME` and `upper_NAME`.

        >>> import saen
        >>> threads = saen.generate_threads(40, seed=1)
        >>> counts = saen.PartCountsClassifier(inner_folds=0)
        >>> frame = cross_validate(counts, threads, threads.targets, n_folds=4).to_frame()
        >>> [*frame], len(frame)
        (['id', 'repeat', 'fold', 'target', 'prediction', 'p_discussion', 'p_questions'], 400)
        """
        import pandas as pd

        return pd.DataFrame(self.columns())

    def __repr__(self) -> str:
        mean = self.summary()["mean"]
        score = "not defined" if mean is None else f"{mean:.4g}"
        return (
            f"Evaluation({len(self.splits)} × {plural(len(self.splits[0]), 'fold')} of "
            f"{plural(len(self.targets), 'example')}: {self.find_metric(None).title} {score})"
        )

    def _repr_html_(self) -> str:
        """What notebooks show: every metric with its corrected interval."""
        each = {metric.title: self.summary(name) for name, metric in self.metrics.items()}
        columns = {
            "metric": list(each),
            "mean": [one["mean"] for one in each.values()],
            "95 % interval": [
                " to ".join(f"{end:.4g}" for end in one.get("interval", ()))
                for one in each.values()
            ],
        }
        return html_table(repr(self), columns)

    @property
    def metrics(self) -> dict[str, Metric]:
        """The metrics that apply, by name."""
        return REGRESSION_METRICS if self.classes is None else CLASSIFICATION_METRICS

    def scores(self, metric: str | None = None) -> Floats:
        """A metric, by default the chosen one, of every fold, (R, folds); NaN if not defined.

        Of several targets, the mean of their scores.
        """
        score = self.find_metric(metric)
        each = [
            score(self.targets[t], self.outputs[repeat, t]) for repeat, _, _, t in self._folds()
        ]
        return np.array(each).reshape(len(self.splits), -1)

    def target_scores(self, metric: str | None = None) -> dict[str, float | None]:
        """The mean of a metric over all folds, for each of several targets; None if not defined."""
        score = self.find_metric(metric)
        folds = np.stack(
            [score.each(self.targets[t], self.outputs[r, t]) for r, _, _, t in self._folds()]
        )
        columns = [column[np.isfinite(column)] for column in folds.T]
        means = [float(column.mean()) if len(column) else None for column in columns]
        return dict(zip(self.target_names, means, strict=True))

    def find_metric(self, name: str | None = None) -> Metric:
        """A metric by name, by default the chosen one."""
        return find_metric(name or self.metric, regression=self.classes is None)

    def accuracies(self) -> Floats:
        """Accuracy of every fold, (R, folds)."""
        return self.scores("accuracy")

    def summary(self, metric: str | None = None) -> dict[str, Any]:
        """The mean of a metric over repeats and folds, and its `interval`.

        That is the corrected resampled 95 % interval (see `corrected_interval`), if there are
        several scores.
        """
        folds = self.scores(metric)
        scored = np.isfinite(folds)
        if not scored.any():
            return {"mean": None, "per_repeat": [None] * len(folds)}
        sums = np.where(scored, folds, 0.0).sum(axis=1)
        counts = scored.sum(axis=1)
        per_repeat = sums / np.where(counts > 0, counts, np.nan)
        known = per_repeat[np.isfinite(per_repeat)]
        result = {
            "mean": float(known.mean()),
            "per_repeat": [float(v) if np.isfinite(v) else None for v in per_repeat],
        }
        if scored.sum() > 1:
            result["interval"] = corrected_interval(
                folds[scored], self.test_share(), self.find_metric(metric).bounds
            )
        return result

    def fold_ceiling(self) -> float:
        """The mean over folds of the accuracy that no single model can exceed on the test part."""
        tests = [test for _, _, _, test in self._folds()]
        return float(np.mean([ceiling(self.rows[test], self.targets[test]) for test in tests]))

    def duplicates(self) -> NDArray[np.bool_]:
        """Which test examples are identical to one of their training part, (R, n)."""
        return self._in_training(self.rows if self.same is None else self.same)

    def _in_training(self, numbers: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which test examples have the number of one of their training part, (R, n)."""
        out = np.zeros((len(self.splits), len(self.targets)), dtype=np.bool_)
        for repeat, _, train, test in self._folds():
            out[repeat, test] = np.isin(numbers[test], numbers[train])
        return out

    def pooled(self) -> dict[str, Any]:
        """Scores of all tests together, as JSON: with an interval that counts each once.

        Accuracy with its Wilson interval and the majority baseline, or errors; of several targets,
        means, and `targets` with those of each.
        """
        repeats, examples = self.tested()
        truth, outputs = self.targets[examples], self.outputs[repeats, examples]
        several: dict[str, Any] = {}
        if truth.ndim == 2:
            several = several_scores(truth, outputs, self.target_names)
        if self.classes is None:
            baseline = np.full(truth.shape, np.nan)
            for repeat, _, train, test in self._folds():
                own = np.isin(examples, test) & (repeats == repeat)
                baseline[own] = np.nanmean(self.targets[train], axis=0)
            return regression_scores(truth, outputs, baseline).to_json() | several
        if several:
            return several
        codes = np.arange(len(self.classes))
        return classification_scores(truth, outputs, codes).to_json()

    def pooled_json(self) -> dict[str, Any]:
        """Pooled scores, which examples were tested, and how many are duplicates."""
        _, examples = self.tested()
        tested = self.fold_of >= 0
        counts = {
            "duplicates": int(self.duplicates()[tested].sum()),
            "look_identical": int(self._in_training(self.rows)[tested].sum()),
        }
        return {**self.pooled(), "test": examples.tolist(), **counts}

    def _shares(self) -> dict[str, float]:
        """The share of tests that are identical to a training example, and that look so."""
        tested = self.fold_of >= 0
        alike = self._in_training(self.rows)
        return {
            "share": float(self.duplicates()[tested].mean()),
            "look_identical": float(alike[tested].mean()),
        }

    def to_json(self) -> dict[str, Any]:
        """Every metric, baselines, ceilings and the share of duplicates."""
        return {
            "metric": self.metric,
            **{name: self.summary(name) for name in self.metrics},
            **(self._of_numbers() if self.classes is None else self._of_classes()),
            **(
                {"targets": {name: self.target_scores(name) for name in self.metrics}}
                if self.target_names
                else {}
            ),
            "chosen": self.chosen,
            **({"tried": self.tried} if self.tried else {}),
            **({} if self.overlapping is None else {"overlap": self._of_overlap()}),
            "seconds": self.seconds,
        }

    def _of_overlap(self) -> dict[str, float | None]:
        """The share of tests that overlap with a training example, and accuracies with and without.

        Only of one target with classes are there accuracies.
        """
        assert self.overlapping is not None
        tested, found = self.fold_of >= 0, self.overlapping
        result: dict[str, float | None] = {"share": float(found[tested].mean())}
        if self.classes is not None and self.classes.ndim == 1:
            correct = self.predictions == self.targets
            result["accuracy"] = _mean(correct[tested & found])
            result["accuracy_rest"] = _mean(correct[tested & ~found])
        return result

    def _of_classes(self) -> dict[str, Any]:
        tested, duplicates = self.fold_of >= 0, self.duplicates()
        if self.targets.ndim == 2:
            return {"duplicates": self._shares()}
        correct = self.predictions == self.targets
        baseline = [
            np.mean(self.targets[test] == _most_frequent(self.targets[train]))
            for _, _, train, test in self._folds()
        ]
        return {
            "majority": float(np.mean(baseline)),
            "ceiling": ceiling(self.rows, self.targets),
            "ceiling_folds": self.fold_ceiling(),
            "duplicates": {
                **self._shares(),
                "accuracy": _mean(correct[tested & duplicates]),
                "accuracy_rest": _mean(correct[tested & ~duplicates]),
            },
        }

    def _of_numbers(self) -> dict[str, Any]:
        baseline = [
            np.nanmean(np.abs(self.targets[test] - np.nanmean(self.targets[train], axis=0)))
            for _, _, train, test in self._folds()
        ]
        return {
            "mae_of_mean": float(np.mean(baseline)),
            **({} if self.radius is None else {"intervals": self._of_intervals()}),
            "duplicates": self._shares(),
        }

    def _of_intervals(self) -> dict[str, float]:
        """The share of tests within their intervals, and the mean width of these."""
        assert self.radius is not None
        tested = np.isfinite(self.outputs) & np.isfinite(self.targets)
        inside = np.abs(self.outputs - self.targets) <= self.radius
        return {
            "coverage": COVERAGE,
            "observed": float(inside[tested].mean()),
            "width": float(2 * self.radius[tested].mean()),
        }

    def left_out(self) -> float:
        """The share of examples that a fold neither trains on nor tests, the mean over folds."""
        n = len(self.targets)
        used = [len(train) + len(test) for _, _, train, test in self._folds()]
        return 1 - float(np.mean(used)) / n

    def test_share(self) -> float:
        """Test examples per training example, the mean over folds."""
        return float(np.mean([len(test) / len(train) for _, _, train, test in self._folds()]))


def _most_frequent(targets: Array) -> Any:
    classes, counts = np.unique(targets, return_counts=True)
    return classes[counts.argmax()]


def _mean(values: NDArray[np.bool_]) -> float | None:
    return float(values.mean()) if len(values) else None


# -- cross-validation ---------------------------------------------------------------------------


def cross_validate(
    estimator: Any,
    X: Data,
    y: ArrayLike | Problem,
    *,
    n_repeats: int = 10,
    n_folds: int = 10,
    random_state: int = 0,
    test_size: float | None = None,
    groups: ArrayLike | None = None,
    apart: Callable[[Ints, Ints], Ints] | None = None,
    splits: Sequence[Sequence[Split]] | None = None,
    validation: Sequence[Ints] | None = None,
    selection: str = "fixed",
    grid: Grid = ({},),
    metric: str | None = None,
    inner_folds: int | str = "auto",
    parallel_models: int | None = None,
    run_dir: Path | None = None,
    records: Ints | None = None,
    progress: Progress | None = None,
    executor: Executor | None = None,
) -> Evaluation:
    """Train and test an estimator on every fold of every repeat, many networks at once.

    What a fold gives is what `fit` on its training examples and `predict` on its test examples
    give: nothing that is decided looks at other examples. The data are decomposed and compressed
    once; compression never looks at targets.

    Parameters
    ----------
    estimator : Any
        The estimator to train and test.
    X : Data
        The examples. As `Decompositions` (see `prepare`), the data are decomposed once for several
        evaluations.
    y : ArrayLike | Problem
        One class or real number per example, or several with gaps; see `fit`.
    n_repeats : int, default=10
        Cross-validations with different folds.
    n_folds : int, default=10
        Folds of each, stratified by class.
    random_state : int, default=0
        Seed of the folds; it also replaces the estimator's.
    test_size : float | None, default=None
        Test one random share of this size per repeat (hold-out), instead of folds.
    groups : ArrayLike | None, default=None
        Examples of one group are never on both sides of a split, inner ones included; shape (n,).
    apart : Callable[[Ints, Ints], Ints] | None, default=None
        From the examples of a training and a test fold, those to train on: leaves out what must not
        stand next to the test examples, as by `saen.overlap(X).apart`.
    splits : Sequence[Sequence[Split]] | None, default=None
        Splits of your own, per repeat a list of (train, test) indices: several folds that test
        every example once, or one fold (a hold-out).
    validation : Sequence[Ints] | None, default=None
        Per repeat of one fold, the examples on which settings are decided, instead of inner folds;
        they are not trained on.
    selection : str, default='fixed'
        `fixed`: settings set in advance; `nested`: settings chosen from `grid` on inner folds;
        `peek`: the best epoch on the test folds, as in some papers.
    grid : Grid, default=({},)
        Under `nested`, the settings to choose from.
    metric : str | None, default=None
        The metric that decides under `nested`, and the weights of a blend; see
        `saen.learning.metrics`. None: accuracy, or the mean absolute error (for a blend, its loss).
    inner_folds : int | str, default='auto'
        Under `nested`, the folds of the training examples on which settings are compared.
    parallel_models : int | None, default=None
        Networks trained side by side; for part counts, processes. None: as many as fit.
    run_dir : Path | None, default=None
        Folder for finished stages: a second call resumes from it.
    records : Ints | None, default=None
        Where the examples are in their input, if some were skipped, shape (n,); `splits.json` in
        the folder counts all of it.
    progress : Progress | None, default=None
        Called with network-epochs (for part counts: models) done and their total.
    executor : Executor | None, default=None
        Trains groups of networks in tasks, see `saen.cluster`; the results are the same. Part
        counts are fitted in this process.

    Examples
    --------
    >>> import saen
    >>> threads = saen.generate_threads(40, seed=1)
    >>> counts = saen.PartCountsClassifier()
    >>> evaluation = cross_validate(counts, threads, threads.targets, n_repeats=1, n_folds=4)
    >>> evaluation.scores("roc_auc").shape
    (1, 4)
    """
    validate(estimator)
    regression = is_regressor(estimator)
    if not isinstance(y, Problem):
        y = Problem.of(y, regression=regression, groups=groups)
    problem = y if groups is None else replace(y, groups=checked_groups(groups, len(y)))
    score = problem.targets.metric(metric)
    if metric is None:
        score = estimator.learner().metric or score
    learner = _learner(estimator, selection, grid, score, metric is not None, inner_folds)
    if parallel_models is not None and parallel_models < 1:
        raise InputError(f"parallel_models must be an integer ≥ 1, not {parallel_models}")
    if not 0 <= random_state < 2**31:
        raise InputError(f"random_state must be from 0 to {2**31 - 1}, not {random_state}")
    data, values = Decompositions.of(X, learner.spec.takes), problem.values
    if len(values) != len(data):
        raise InputError(f"{len(data)} examples, but {len(values)} targets")
    if regression and (np.nanmin(values, axis=0) == np.nanmax(values, axis=0)).any():
        raise InputError("all targets are equal, there is nothing to learn")
    if splits is None:
        splits = make_splits(
            problem.targets.named(values),
            n_repeats,
            n_folds,
            random_state,
            test_size=test_size,
            groups=problem.groups if groups is None else groups,
        )
    else:
        check_splits(splits, len(values))
    if apart is not None:
        splits = [[_left(apart, *fold) for fold in each] for each in splits]
    if validation is not None:
        check_validation(validation, splits, len(values))
    if run_dir is not None:
        written = Splits(splits, validation)
        written = written if records is None else renumbered(written, records)
        write_json(run_dir / "splits.json", splits_to_json(written), sealed=True)
    folds = []
    for repeat, each in enumerate(splits):
        for number, (train, test) in enumerate(each):
            used = np.asarray(train)[problem.weights[train] > 0]
            inner = None if validation is None else ((used, np.asarray(validation[repeat])),)
            folds.append(Fold(used, np.asarray(test), (repeat, number), inner))
    tasks = None if executor is None else Tasks(executor)
    study = Study(data, problem, random_state, run_dir, parallel_models, False, progress, tasks)
    begun, before = perf_counter(), study.seconds["compress"]
    if selection == "peek":
        results, epoch = learner.peek(study, folds)
        chosen: list[Any] = [{"epoch": epoch}]
    else:
        results = learner.fit(study, folds)
        chosen = [result.chosen for result in results]
    compressing = study.seconds["compress"] - before
    study.seconds["train"] = perf_counter() - begun - compressing
    outputs, radius = _joined(problem, splits, results)
    every = np.arange(len(values))
    first = learner.candidates(data, every)[0].learner.spec
    return Evaluation(
        classes=problem.targets.known_classes,
        targets=values,
        splits=splits,
        outputs=outputs,
        # Duplicates and ceilings are those of all candidates for the whole data.
        rows=learner.identical(data, every).astype(np.int64),
        loss=join_curves([result.loss for result in results]),
        seconds=dict(study.seconds),
        selection=selection,
        metric=score.name,
        chosen=chosen if any(chosen) else [],
        levels=data.decomposed(first, every).compressed.levels(),
        tried=_mean_tried([result.tried for result in results]),
        target_names=list(problem.targets.names),
        radius=radius,
        validation_loss=join_curves([result.validation for result in results]),
        same=data.same_data().astype(np.int64),
        ids=data.ids,
    )


def _left(apart: Callable[[Ints, Ints], Ints], train: Ints, test: Ints) -> Split:
    left = apart(train, test)
    if not len(left):
        raise InputError("no examples are left to train on: all overlap with test examples")
    return left, test


def out_of_fold(
    problem: Problem, result: FoldResult, ids: Array | None, identical: Ints
) -> Evaluation | None:
    """The predictions of a fit for what its inner folds held out, as an evaluation of these folds.

    `ids` are those of the examples, `identical` as of `Learner.identical`. Without inner folds,
    None.
    """
    fold = result.fold
    if not fold.inner:
        return None
    outputs = np.full((1, len(problem), *result.held_out.shape[1:]), np.nan)
    outputs[0, fold.held_out] = result.held_out
    radius = result.calibration.radius(result.calibration.spreads)
    radii = None if radius is None else np.full(outputs.shape, np.nan)
    if radii is not None:
        radii[0, fold.held_out] = radius
    return Evaluation(
        classes=problem.targets.known_classes,
        targets=problem.values,
        splits=[list(fold.inner)],
        outputs=outputs,
        radius=radii,
        rows=identical.astype(np.int64),
        loss=result.loss,
        seconds={},
        metric=problem.targets.metric().name,
        tried=result.tried,
        target_names=list(problem.targets.names),
        validation_loss=result.validation,
        ids=ids,
    )


def _learner(
    estimator: Any,
    selection: str,
    grid: Grid,
    score: Metric,
    given: bool,
    inner_folds: int | str,
) -> Learner:
    """What to fit on every fold; a score that was `given` decides the weights of a blend, too."""
    if selection not in SELECTIONS:
        raise InputError(f"selection is one of {', '.join(SELECTIONS)}, not {selection!r}")
    if inner_folds != "auto" and (isinstance(inner_folds, str) or inner_folds < 2):
        raise InputError(f"inner_folds must be auto or an integer ≥ 2, not {inner_folds}")
    learner: Learner = estimator.learner()
    if selection == "peek":
        if is_regressor(estimator):
            raise InputError("peek looks at accuracies: use fixed or nested for real numbers")
        return learner
    if selection == "fixed":
        return learner.scored_by(score) if given else learner
    if len(grid) < 2:
        raise InputError("nested needs a grid of at least two settings to choose from")
    tried = [clone_with(estimator, **each) for each in grid]
    for each in tried:
        validate(each)
    listed = [Candidate(name, each.learner()) for name, each in zip(grid, tried, strict=True)]
    return BlendLearner(
        lambda data, train: listed,
        listed[0].learner.spec,
        inner_folds,
        score,
        single=True,
        refit=estimator.inner_folds == 0,
    )


def _joined(
    problem: Problem, splits: Sequence[Sequence[Split]], results: Sequence[FoldResult]
) -> tuple[Floats, Floats | None]:
    """Predictions of all repeats, NaN where an example is not tested, and radii of intervals."""
    shape = len(splits), len(problem), *results[0].tested.shape[1:]
    outputs, radii = np.full(shape, np.nan), np.full(shape, np.nan)
    for result in results:
        place = result.fold.name[0], result.fold.test
        outputs[place] = result.tested
        radius = result.calibration.radius(result.spread)
        if radius is not None:
            radii[place] = radius
    return outputs, None if np.isnan(radii).all() else radii


def _mean_tried(each: Sequence[list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Every candidate with its mean score and weight over the folds; 0 where it was not listed."""
    merged: dict[str, dict[str, Any]] = {}
    for tried in each:
        for one in tried:
            name = {key: value for key, value in one.items() if key not in ("score", "weight")}
            known = merged.setdefault(repr(name), {**name, "score": [], "weight": 0.0})
            known["score"] += [] if one["score"] is None else [one["score"]]
            known["weight"] += one["weight"] / len(each)
    return [
        {**one, "score": float(np.mean(one["score"])) if one["score"] else None}
        for one in merged.values()
    ]
