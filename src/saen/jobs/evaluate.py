"""Evaluate a preset on a dataset by cross-validation, in a run directory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from saen._util.arrays import Array
from saen._util.executor import Executor
from saen._util.json_files import write_json
from saen._util.progress import bar, timed
from saen.data.graphs import Graphs
from saen.data.overlap import Overlap
from saen.errors import InputError
from saen.io.result_tables import open_table
from saen.jobs.groups import DUPLICATES, OVERLAP, SCAFFOLD, overlap_groups
from saen.jobs.job import Job, forecast_line, kept_columns
from saen.jobs.store import RESUME, RESUMING, SUMMARY, digest, has_begun, open_run, versions
from saen.learning.decomposing import Decompositions
from saen.learning.estimators import Estimator
from saen.learning.evaluation import Evaluation, cross_validate
from saen.learning.metrics import find_metric
from saen.learning.models.base import Progress, Study
from saen.learning.overlap import overlap
from saen.learning.splits import Splits, remaining_records, splits_from_json
from saen.network.devices import choose_device, device_name

N_REPEATS, N_FOLDS = 10, 10
PREDICTIONS = "predictions.csv"
"""In a run directory: what `Evaluation.to_frame` has."""
_EXCLUDE = {"splits": ("test_size", "repeats", "folds"), "test_size": ("folds",)}
"""Options of a `Protocol` that decide the same thing."""


@dataclass(frozen=True)
class Protocol:
    """How to evaluate.

    - `selection`: how settings are selected, see `saen.learning.evaluation`;
    - `repeats`, `folds`: cross-validations, and folds of each, by default 10;
    - `splits`: a file with splits, instead of folds;
    - `parallel_models`: networks trained side by side;
    - `metric`: what decides under `nested`, None for the default (of a blend, log or squared loss);
    - `test_size`: test one random part of this share per repeat, instead of folds;
    - `groups`: a column of the table (a key of the JSON lines) that is evaluated, a file with one
      line per example, or `scaffold`; examples of one group are never on both sides of a split.
      With `splits`, this holds for the inner folds.
    """

    selection: str = "fixed"
    repeats: int | None = None
    folds: int | None = None
    splits: Path | None = None
    parallel_models: int | None = None
    metric: str | None = None
    test_size: float | None = None
    groups: str | None = None

    def __post_init__(self) -> None:
        for option, others in _EXCLUDE.items():
            for other in others:
                if getattr(self, option) is not None and getattr(self, other) is not None:
                    both = f"{option} and {other}".replace("_", "-")
                    raise InputError(f"options {both} exclude each other")


@dataclass(frozen=True)
class EvaluationReport:
    """An evaluation with everything that decided it: what a run directory's summary says."""

    recorded: dict[str, Any]
    evaluation: Evaluation
    seconds: dict[str, float]
    device: str
    data: Any = field(repr=False)
    estimator: Estimator = field(repr=False)
    kept: dict[str, Array] = field(repr=False, default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Settings, protocol, scores, versions and times."""
        return {
            **self.recorded,
            **self.evaluation.to_json(),
            "device": self.device,
            "seconds": self.seconds,
        }

    def write_predictions(self, path: Path) -> None:
        """Write the out-of-fold predictions as a table, see `Evaluation.to_frame`."""
        with open_table(path) as write:
            columns = self.evaluation.columns(self.kept)
            input = columns.keys() - self.evaluation.columns().keys()
            write(columns, {*input, *(name for name in columns if name.startswith("target"))})


def evaluate_dataset(
    job: Job,
    protocol: Protocol | None = None,
    out: Path | None = None,
    executor: Executor | None = None,
    *,
    known: Decompositions | None = None,
    keep: Sequence[str] = (),
    progress: Progress | None = None,
    notify: Callable[[str], object] | None = None,
) -> EvaluationReport:
    """Cross-validate a preset on a dataset, in a run directory if `out` names one.

    With an `executor`, groups of networks are trained in tasks; the results are the same.
    `known` are the data that the job loads, if they are there already, and what was made of them.
    `keep` names columns of the input that the table of predictions has, too (`["all"]`: all).
    `progress` is called instead of showing a bar, `notify` with one note for everything in the data
    that is ignored.

    >>> job = Job("threads", "network", {"epochs": 1, "inner_folds": 0})
    >>> report = evaluate_dataset(job, Protocol(repeats=1, folds=2))
    >>> sorted(report.to_json()["accuracy"])
    ['interval', 'mean', 'per_repeat']
    """
    protocol = protocol or Protocol()
    preset = job.load_preset()
    if preset.accepts("metric") and protocol.metric is not None:
        # It decides the weights, too, and so is one of the settings.
        job = replace(job, overrides={**job.overrides, "metric": protocol.metric})
    seconds: dict[str, float] = {}
    with timed(seconds, "load"):
        loaded = job.read(None if known is None else known.data, all_columns=bool(keep))
    data, targets, estimator = loaded.data, loaded.targets, loaded.estimator
    known = known or Decompositions(data)
    kept = kept_columns(data, keep, job.reading)
    learner = estimator.learner()

    def note(line: str) -> None:
        if notify is not None:
            notify(f"note: {line}")

    told = "saen evaluate" if protocol.groups is None and protocol.splits is None else ""
    for line in loaded.notes(protocol.groups, told):
        note(line)
    asked = find_metric(protocol.metric, regression=targets.dtype.kind == "f")
    splits = None
    if protocol.splits is not None:
        splits = splits_from_json(protocol.splits, len(data), loaded.skipped, note)
    repeats = N_REPEATS if protocol.repeats is None else protocol.repeats
    folds = N_FOLDS if protocol.folds is None else protocol.folds
    if protocol.test_size is not None:
        folds = 1
    found = overlap(data) if isinstance(data, Graphs) else None
    groups, apart = None, None
    if protocol.groups == OVERLAP and found is not None:
        groups, apart = overlap_groups(found), found.apart if splits is None else None
    else:
        groups = loaded.groups(protocol.groups)
    recorded = {
        "dataset": loaded.name,
        "preset": preset.name,
        "settings": job.settings(),
        "grid": preset.grid if protocol.selection == "nested" else {},
        "protocol": {
            "repeats": repeats if splits is None else len(splits.repeats),
            "folds": folds if splits is None else len(splits.repeats[0]),
            "selection": str(protocol.selection),
        },
        "splits": _describe_splits(protocol, regression=targets.dtype.kind == "f"),
        "metric": (learner.metric or asked).name,
        "seed": job.seed,
        "parallel_models": protocol.parallel_models,
        "data": digest(data, splits, groups),
        "versions": versions(),
    }
    if splits is not None and len(splits.repeats) == len(splits.repeats[0]) == 1:
        recorded["split"] = _count_split(splits, len(data))
    if groups is not None:
        sizes = np.unique(groups, return_counts=True)[1]
        recorded["groups"] = {
            "by": protocol.groups,
            "count": len(sizes),
            "largest": int(sizes.max()),
        }
    with _run_directory(out, recorded, notify) as folder:
        problem = loaded.problem(groups)
        study = Study(known, problem, job.seed)
        times = repeats * folds if splits is None else sum(map(len, splits.repeats))
        with timed(seconds, "compress"):
            expected = forecast_line(learner, study, times)
        if expected is not None and notify is not None:
            notify(expected)
        with bar("training", 1, shown=None if progress is None else False) as update:
            evaluation = cross_validate(
                estimator,
                known,
                problem,
                n_repeats=repeats,
                n_folds=folds,
                random_state=job.seed,
                test_size=protocol.test_size,
                apart=apart,
                splits=None if splits is None else splits.repeats,
                validation=None if splits is None else splits.validation,
                selection=protocol.selection,
                grid=preset.choices(),
                metric=protocol.metric,
                parallel_models=protocol.parallel_models,
                run_dir=folder,
                records=remaining_records(len(data), loaded.skipped) if loaded.skipped else None,
                progress=progress or (lambda done, total: update(done, total=total)),
                executor=executor,
            )
        compressing = seconds["compress"] + evaluation.seconds["compress"]
        if found is not None:
            evaluation = replace(evaluation, overlapping=_overlapping(found, evaluation))
        report = EvaluationReport(
            recorded,
            evaluation,
            seconds | evaluation.seconds | {"compress": compressing},
            device_name(choose_device(learner.device)),
            data,
            estimator,
            kept,
        )
        if folder is not None:
            report.write_predictions(folder / PREDICTIONS)
            write_json(folder / SUMMARY, report.to_json(), sealed=True)
    return report


def _overlapping(found: Overlap, evaluation: Evaluation) -> NDArray[np.bool_]:
    """Which tests overlap with an example that was trained on, (R, n)."""
    out = np.zeros(evaluation.fold_of.shape, dtype=np.bool_)
    for repeat, folds in enumerate(evaluation.splits):
        for train, test in folds:
            out[repeat, test] = found.overlaps(test, train)
    return out


@contextmanager
def _run_directory(
    out: Path | None, recorded: dict[str, Any], notify: Callable[[str], object] | None
) -> Iterator[Path | None]:
    """The run directory, if there is one; `notify` says that it goes on, or can be resumed."""
    if out is None:
        yield None
        return
    with open_run(out, recorded) as folder:
        if notify is not None and has_begun(folder):
            finished = (folder / SUMMARY).exists()
            notify(f"{out} holds this run already: nothing is repeated" if finished else RESUMING)
        try:
            yield folder
        except (KeyboardInterrupt, SystemExit):
            if notify is not None and has_begun(folder):
                notify(RESUME)
            raise


def _count_split(splits: Splits, n: int) -> dict[str, int]:
    """How many examples there are in each part of a single split, and `of` how many."""
    [[(train, test)]] = splits.repeats
    valid = {} if splits.validation is None else {"valid": len(splits.validation[0])}
    return {"train": len(train), **valid, "test": len(test), "of": n}


def _describe_splits(protocol: Protocol, *, regression: bool) -> str:
    """The kind of splits in words."""
    if protocol.splits is not None:
        return "from a file"
    kind = "random" if regression else "stratified"
    if protocol.groups is not None:
        known = (SCAFFOLD, OVERLAP, DUPLICATES)
        kind += f", by {protocol.groups}" if protocol.groups in known else ", by groups"
    return kind if protocol.test_size is None else f"{kind}, {protocol.test_size:g} held out"
