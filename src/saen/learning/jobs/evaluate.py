"""Evaluate a preset on a dataset by cross-validation, in a run directory."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from saen._util.arrays import Array
from saen._util.executor import Executor
from saen._util.json_files import write_json
from saen._util.progress import bar
from saen.errors import FileError, InputError
from saen.io.rdkit import SMILES, murcko_scaffolds
from saen.io.reading import ReadOptions
from saen.io.tables import ID_COLUMNS, SUFFIXES, Table, find_column, read_table
from saen.learning.blend import BlendEstimator
from saen.learning.cross_validation import cross_validate
from saen.learning.evaluation import Evaluation
from saen.learning.jobs.job import Job, check_targets, named_targets
from saen.learning.metrics import find_metric
from saen.learning.network_estimator import NetworkEstimator
from saen.learning.preparation import Preparations
from saen.learning.presets import Estimator
from saen.learning.runs import digest, open_run, versions
from saen.learning.splits import Splits, splits_from_json
from saen.learning.trainers import Progress
from saen.learning.unused import unused_by
from saen.network.devices import choose_device, device_name

SCAFFOLD = "scaffold"


@dataclass(frozen=True)
class Protocol:
    """How to evaluate.

    - `stop`: when training stops, see `STOPS`;
    - `repeats`, `folds`: cross-validations, and folds of each;
    - `splits`: a file with splits, instead of folds;
    - `at_once`: networks trained side by side;
    - `metric`: what decides under `nested`, None for the default (of a blend, log or squared loss);
    - `test_size`: test one random part of this share per repeat, instead of folds;
    - `groups`: a column of the table that is evaluated, a file with one line per example, or
      `scaffold`; examples of one group are never on both sides of a split.
    """

    stop: str = "fixed"
    repeats: int = 10
    folds: int = 10
    splits: Path | None = None
    at_once: int | None = None
    metric: str | None = None
    test_size: float | None = None
    groups: str | None = None

    def __post_init__(self) -> None:
        given = [name for name in ("splits", "test_size", "groups") if getattr(self, name)]
        if "splits" in given and len(given) > 1:
            raise InputError(f"options 'splits' and {given[1]!r} exclude each other")


@dataclass(frozen=True)
class EvaluationReport:
    """An evaluation with everything that decided it: what a run directory's summary says."""

    recorded: dict[str, Any]
    evaluation: Evaluation
    seconds: dict[str, float]
    device: str
    data: Any = field(repr=False)
    estimator: Estimator = field(repr=False)

    def to_json(self) -> dict[str, Any]:
        """Settings, protocol, scores, versions and times."""
        return {
            **self.recorded,
            **self.evaluation.to_json(),
            "device": self.device,
            "seconds": self.seconds,
        }


def evaluate_dataset(
    job: Job,
    protocol: Protocol | None = None,
    out: Path | None = None,
    executor: Executor | None = None,
    *,
    preparations: Preparations | None = None,
    progress: Progress | None = None,
    notify: Callable[[str], object] | None = None,
) -> EvaluationReport:
    """Cross-validate a preset on a dataset, in a run directory if `out` names one.

    With an `executor`, groups of networks are trained in tasks; the results are the same.
    `preparations` are what the job loads, if it is there already, with what was prepared of it.
    `progress` is called instead of showing a bar, `notify` with one note for everything in the data
    that is ignored.

    >>> job = Job("threads", overrides={"epochs": 1, "n_models": 1})
    >>> report = evaluate_dataset(job, Protocol(repeats=1, folds=2))
    >>> sorted(report.to_json()["accuracy"])
    ['interval', 'mean', 'per_repeat', 'std_folds']
    """
    protocol = protocol or Protocol()
    preset = job.load_preset()
    if preset.model == "blend":
        if protocol.stop == "fixed":
            protocol = replace(protocol, stop="nested")  # which a blend is by nature
        # A metric that is asked for decides the weights, too, and so is one of the settings.
        job = replace(job, overrides={**job.overrides, "metric": protocol.metric})
    settings = job.settings()
    start = perf_counter()
    if preparations is None:
        preparations = Preparations(job.load())
    data = preparations.data
    loaded = perf_counter() - start
    targets = check_targets(data, data.name or job.data)
    estimator = job.estimator(targets)
    if notify is not None:
        columns = {"smiles": job.reading.smiles, "groups": protocol.groups}
        for line in unused_by(estimator, data, **columns):
            notify(f"note: {line}")
    asked = estimator.metric if isinstance(estimator, BlendEstimator) else protocol.metric
    metric = find_metric(asked, regression=targets.dtype.kind == "f")
    splits = None if protocol.splits is None else splits_from_json(protocol.splits, len(data))
    groups = None
    if protocol.groups is not None:
        groups = load_groups(protocol.groups, job.data, data, job.reading)
    recorded = {
        "dataset": data.name or job.data,
        "preset": preset.name,
        "settings": settings,
        "grid": preset.grid if protocol.stop == "nested" else {},
        "protocol": {
            "repeats": protocol.repeats if splits is None else len(splits.repeats),
            "folds": _n_folds(protocol, splits),
            "stop": str(protocol.stop),
        },
        "splits": _describe_splits(protocol, regression=targets.dtype.kind == "f"),
        "metric": metric.name,
        "seed": job.seed,
        "at_once": protocol.at_once,
        "data": digest(data, splits, groups),
        "versions": versions(),
    }
    network = isinstance(estimator, NetworkEstimator | BlendEstimator)
    with open_run(out, recorded) if out is not None else nullcontext() as folder:
        label = "networks × epochs" if network else "models"
        with bar(label, 1, shown=None if progress is None else False) as update:
            evaluation = cross_validate(
                estimator,
                preparations,
                named_targets(targets, data.target_names),
                repeats=protocol.repeats,
                folds=protocol.folds,
                seed=job.seed,
                test_size=protocol.test_size,
                groups=groups,
                splits=None if splits is None else splits.repeats,
                validation=None if splits is None else splits.validation,
                stop=protocol.stop,
                grid=preset.choices(),
                metric=asked,
                models_at_once=protocol.at_once,
                folder=folder,
                progress=progress or (lambda done, total: update(done, total=total)),
                executor=executor,
            )
        report = EvaluationReport(
            recorded,
            evaluation,
            {"load": loaded, **evaluation.seconds},
            device_name(choose_device(job.device)) if network else "cpu",
            data,
            estimator,
        )
        if folder is not None:
            write_json(folder / "summary.json", report.to_json(), sealed=True)
    return report


def load_groups(groups: str, source: str, data: Any, reading: ReadOptions) -> Array:
    """The group of each example of the data, which were read from `source`: see `Protocol.groups`.

    >>> import saen
    >>> file = getfixture("tmp_path") / "acids.csv"
    >>> _ = file.write_text("smiles,target,lab\\nCC(=O)O,acid,A\\nCCO,alcohol,B\\n")
    >>> acids = saen.load_dataset(file)
    >>> [load_groups(g, str(file), acids, ReadOptions()).tolist() for g in ("lab", "scaffold")]
    [['A', 'B'], ['', '']]
    """
    path = Path(source)
    table = read_table(path) if path.suffix in SUFFIXES and path.is_file() else None
    if groups == SCAFFOLD:
        column = None if table is None else find_column(table, reading.smiles, (SMILES,))
        if table is None or column is None:
            raise InputError(f"scaffolds need a table with a column {SMILES!r}, not {source}")
        result = murcko_scaffolds(table.texts(column).iloc[_rows(table, data, reading)])
    elif table is not None and groups.lower() in table.columns:
        rows = _rows(table, data, reading)
        result = table.texts(groups.lower()).iloc[rows].to_numpy().astype(str)
    else:
        try:
            result = np.array(Path(groups).read_text(encoding="utf-8").splitlines())
        except (OSError, UnicodeDecodeError):
            raise InputError(
                f"groups must be a column of the table, a file with one line per example, or "
                f"{SCAFFOLD}, not {groups!r}"
            ) from None
    if len(result) != len(data):
        raise FileError(f"{len(result)} groups for {len(data)} examples", path=groups)
    return result


def _rows(table: Table, data: Any, reading: ReadOptions) -> Array:
    """The rows of a table that examples were read from: all, or those with their ids."""
    every = np.arange(len(table))
    if len(table) == len(data):
        return every
    column = find_column(table, reading.id, ID_COLUMNS) or find_column(
        table, reading.smiles, (SMILES,)
    )
    if column is None:
        return every
    ids = table.labels(column, every).astype(str)
    return np.flatnonzero(np.isin(ids, data.ids.astype(str)))


def _n_folds(protocol: Protocol, splits: Splits | None) -> int:
    if splits is not None:
        return len(splits.repeats[0])
    return protocol.folds if protocol.test_size is None else 1


def _describe_splits(protocol: Protocol, *, regression: bool) -> str:
    """The kind of splits in words."""
    if protocol.splits is not None:
        return "from a file"
    kind = "random" if regression else "stratified"
    if protocol.groups is not None:
        kind += f", by {protocol.groups}" if protocol.groups == SCAFFOLD else ", by groups"
    return kind if protocol.test_size is None else f"{kind}, {protocol.test_size:g} held out"
