"""HTML reports of the jobs: what was trained or evaluated, on what, and how well it did."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from saen._util.arrays import Floats
from saen.learning.evaluation import Evaluation
from saen.learning.jobs.evaluate import EvaluationReport
from saen.learning.jobs.train import FitReport, HoldOut
from saen.learning.metrics import CLASSIFICATION_METRICS, REGRESSION_METRICS
from saen.learning.network_estimator import NetworkEstimator
from saen.learning.runs import digest, versions
from saen.network.settings import join_curves
from saen.report.evaluation_page import Predictions, Report, settings_of, write_report
from saen.report.summaries import (
    describe_ceiling,
    describe_decomposition,
    describe_evaluation,
    describe_hold_out,
    describe_protocol,
)


def write_training_report(path: Path, report: FitReport, command: str, preset: str) -> None:
    """Write a page about a training; `command` is what to type to repeat it."""
    facts, model = report.facts, report.model
    classes = getattr(model, "classes_", None)
    assert facts.decomposition is not None
    summary = {"parts": describe_decomposition(facts.decomposition, facts.candidates)}
    predictions = None
    if report.held_out is not None:
        test = report.held_out.test
        summary |= describe_hold_out(report.held_out)
        y, answers = report.data.targets[test], report.held_out.predictions
        if classes is not None and classes.ndim == 1:
            y, answers = np.searchsorted(classes, y), answers[None]
        rows = report.rows[test].astype(np.int64)
        if classes is None or classes.ndim == 1:
            predictions = Predictions(classes, y, answers, test, rows)
            summary["all scores"] = _all_scores(predictions)
    if facts.ceiling is not None:
        summary["ceiling"] = describe_ceiling(facts.ceiling, facts.decomposition, facts.candidates)
    curves = {}
    members = [each.estimator for each in getattr(model, "members_", [])] or [model]
    networks = [each for each in members if isinstance(each, NetworkEstimator)]
    if networks:
        units = ["loss"] if classes is None else ["loss", "accuracy"]
        curves = {unit: _curves(networks, unit) for unit in units}
    examples = f"{facts.structures:,} {facts.levels[-1]['name']}"
    page = Report(
        title=f"{facts.name}: {facts.task}, trained on {examples}",
        summary=summary,
        data=report.data,
        levels=facts.levels,
        curves=curves,
        predictions=predictions,
        command=command,
        settings={
            "dataset": facts.name,
            "preset": preset,
            "seed": report.seed,
            "splits": "nothing held out"
            if report.held_out is None
            else f"{len(report.held_out.test):,} held out, by the seed",
            "checksum of data": digest(report.data),
            **settings_of(model),
        },
        versions=versions(),
        headline=None if report.held_out is None else _held_out_headline(report.held_out),
    )
    write_report(path, page)


def _curves(networks: Sequence[NetworkEstimator], unit: str) -> dict[str, Floats]:
    """Learning curves of all networks of a model: its own, or those of the members of a blend."""
    own, inner = [n.history_ for n in networks], [n.inner_history_ for n in networks]
    return {
        "training": join_curves([getattr(each, unit) for each in own]),
        "held out": join_curves([getattr(each, f"validation_{unit}") for each in own]),
        "inner validation": join_curves([getattr(each, f"validation_{unit}") for each in inner]),
    }


def write_evaluation_report(
    path: Path, report: EvaluationReport, command: str, splits: Path | None = None
) -> None:
    """Write a page about an evaluation; `command` is what to type to repeat it."""
    document, evaluation = report.to_json(), report.evaluation
    protocol, seed = document["protocol"], document["seed"]
    estimator = report.estimator
    decomposition = estimator.spec.resolve(report.data).resolved(report.data)
    last = seed + protocol["repeats"] - 1
    drawn = f"{report.recorded['splits']}, seeds {seed} … {last}"
    page = Report(
        title=f"{document['dataset']}: {describe_protocol(document)} of preset "
        f"{document['preset']}",
        summary=describe_evaluation(report),
        data=report.data,
        levels=evaluation.levels,
        curves={evaluation.loss_name: evaluation.curves},
        predictions=_predictions(evaluation),
        command=command,
        settings={
            "dataset": document["dataset"],
            "preset": document["preset"],
            "parts": describe_decomposition(decomposition.settings()),
            "epochs are": protocol["stop"],
            "scored by": document["metric"],
            "seed": seed,
            "splits": drawn if splits is None else str(splits),
            "checksum of data": document["data"],
            **settings_of(estimator),
        },
        versions=document["versions"],
        headline=_headline(report),
    )
    write_report(path, page)


def _headline(report: EvaluationReport) -> tuple[str, str]:
    """The score that was asked for, and what it is."""
    evaluation = report.evaluation
    metric = evaluation.metrics[evaluation.metric]
    mean = report.to_json()[metric.name]["mean"]
    return (
        "?" if mean is None else metric.show(mean) + metric.unit
    ), f"{metric.title} on test examples"


def _held_out_headline(held_out: HoldOut) -> tuple[str, str] | None:
    where = f"on {len(held_out.test):,} held-out {held_out.takes}"
    for metric in (CLASSIFICATION_METRICS["accuracy"], *reversed(REGRESSION_METRICS.values())):
        value = held_out.scores.get(metric.name)
        if value is not None:
            return metric.show(value) + metric.unit, f"{metric.title} {where}"
    return None


def _all_scores(predictions: Predictions) -> str:
    """Every metric that is defined for single predictions."""
    numbers = predictions.classes is None
    metrics = REGRESSION_METRICS if numbers else CLASSIFICATION_METRICS
    outputs = predictions.outputs if numbers else predictions.outputs[0]
    scores = [(metric, metric(predictions.targets, outputs)) for metric in metrics.values()]
    return ", ".join(
        f"{m.title} {m.show(value)}{m.unit}" for m, value in scores if np.isfinite(value)
    )


def _predictions(evaluation: Evaluation) -> Predictions | None:
    """Repeated predictions of every example, or single ones where a repeat does not test it.

    None of several targets with classes: their scores are in the summary.
    """
    if evaluation.classes is not None and evaluation.classes.ndim == 2:
        return None
    if evaluation.classes is not None and (evaluation.fold_of >= 0).all():
        return Predictions(
            evaluation.classes, evaluation.targets, evaluation.probabilities, unique=evaluation.rows
        )
    repeats, examples = evaluation.tested()
    outputs = evaluation.outputs[repeats, examples]
    return Predictions(
        evaluation.classes,
        evaluation.targets[examples],
        outputs if evaluation.classes is None else outputs[None],
        examples,
        evaluation.rows[examples],
    )
