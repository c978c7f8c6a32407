"""Evaluate a preset on a dataset by cross-validation, in a run directory."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

from saen._util.json_files import write_json
from saen._util.progress import bar
from saen.errors import InputError
from saen.learning.cross_validation import Evaluation, cross_validate
from saen.learning.estimators import NetworkEstimator, choose_device, device_name
from saen.learning.jobs.job import Job
from saen.learning.presets import Estimator
from saen.learning.runs import digest, open_run, splits_from_json, versions


@dataclass(frozen=True)
class Protocol:
    """How to evaluate: repeats and folds or given splits, and when to stop (see `STOPS`)."""

    stop: str = "fixed"
    repeats: int = 10
    folds: int = 10
    splits: Path | None = None
    at_once: int | None = None


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
    job: Job, protocol: Protocol | None = None, out: Path | None = None
) -> EvaluationReport:
    """Cross-validate a preset on a dataset, in a run directory if `out` names one.

    >>> job = Job("threads", overrides={"epochs": 1, "n_models": 1})
    >>> report = evaluate_dataset(job, Protocol(repeats=1, folds=2))
    >>> sorted(report.to_json()["accuracy"])
    ['mean', 'per_repeat', 'std', 'std_folds']
    """
    protocol = protocol or Protocol()
    preset, settings = job.load_preset(), job.settings()
    start = perf_counter()
    data = job.load()
    loaded = perf_counter() - start
    if data.targets is None or data.targets.dtype.kind == "f":
        raise InputError(
            f"{job.data} has no classes to predict (saen train learns numbers as well as classes)"
        )
    splits = None if protocol.splits is None else splits_from_json(protocol.splits, len(data))
    recorded = {
        "dataset": data.name or job.data,
        "preset": preset.name,
        "settings": settings,
        "grid": preset.grid if protocol.stop == "nested" else {},
        "protocol": {
            "repeats": protocol.repeats if splits is None else len(splits),
            "folds": protocol.folds if splits is None else len(splits[0]),
            "stop": str(protocol.stop),
        },
        "seed": job.seed,
        "at_once": protocol.at_once,
        "data": digest(data, splits),
        "versions": versions(),
    }
    estimator = job.estimator()
    network = isinstance(estimator, NetworkEstimator)
    with open_run(out, recorded) if out is not None else nullcontext() as folder:
        with bar("networks × epochs" if network else "models", 1) as update:
            evaluation = cross_validate(
                estimator,
                data,
                data.targets,
                repeats=protocol.repeats,
                folds=protocol.folds,
                seed=job.seed,
                stop=protocol.stop,
                grid=preset.choices(),
                splits=splits,
                models_at_once=protocol.at_once,
                folder=folder,
                progress=lambda done, total: update(done, total=total),
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
            write_json(folder / "summary.json", report.to_json())
    return report
