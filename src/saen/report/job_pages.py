"""HTML reports of the jobs: what was trained or evaluated, on what, and how well it did."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from saen.jobs.evaluate import EvaluationReport
from saen.jobs.store import digest, versions
from saen.jobs.train import Estimate, FitReport
from saen.learning.decomposing import Decompositions
from saen.learning.evaluation import Evaluation
from saen.learning.metrics import CLASSIFICATION_METRICS, REGRESSION_METRICS
from saen.learning.parameters import settings_of
from saen.report.evaluation_page import Predictions, Report, write_report
from saen.report.summaries import (
    describe_ceiling,
    describe_decomposition,
    describe_estimate,
    describe_evaluation,
    describe_protocol,
)


def write_training_report(path: Path, report: FitReport, command: str, preset: str) -> None:
    """Write a page about a training; `command` is what to type to repeat it."""
    facts, model = report.facts, report.model
    assert facts.decomposition is not None
    summary = {"parts": describe_decomposition(facts.decomposition, facts.candidates)}
    predictions = headline = None
    estimates = {"held out": report.held_out, "out of fold": report.evaluation}
    for kind, evaluation in estimates.items():
        if evaluation is None:
            continue
        summary |= describe_estimate(Estimate(kind, report.takes, evaluation))
        if headline is None:
            headline = _headline(evaluation, f"{kind}, on {_tested(evaluation)} examples")
            predictions = _predictions(evaluation)
    if predictions is not None:
        summary["all scores"] = _all_scores(predictions)
    if facts.ceiling is not None:
        summary["ceiling"] = describe_ceiling(facts.ceiling, facts.decomposition, facts.candidates)
    shown = report.evaluation
    examples = f"{facts.structures:,} {facts.levels[-1]['name']}"
    page = Report(
        title=f"{facts.name}: {facts.task}, trained on {examples}",
        summary=summary,
        data=report.data,
        levels=facts.levels,
        curves={} if shown is None or not shown.loss.size else {shown.loss_name: shown.curves},
        predictions=predictions,
        command=command,
        settings={
            "dataset": facts.name,
            "preset": preset,
            "seed": report.seed,
            "splits": "inner folds of the training"
            if report.held_out is None
            else f"{_tested(report.held_out)} held out, by the seed",
            "checksum of data": digest(report.data),
            **settings_of(model),
        },
        versions=versions(),
        headline=headline,
    )
    write_report(path, page)


def _tested(evaluation: Evaluation) -> str:
    return f"{len(evaluation.tested()[0]):,}"


def write_evaluation_report(
    path: Path, report: EvaluationReport, command: str, splits: Path | None = None
) -> None:
    """Write a page about an evaluation; `command` is what to type to repeat it."""
    document, evaluation = report.to_json(), report.evaluation
    protocol, seed = document["protocol"], document["seed"]
    estimator = report.estimator
    whole, every = Decompositions(report.data), np.arange(len(report.data))
    first = estimator.learner().candidates(whole, every)[0].learner
    decomposition = first.spec.resolve(whole, every).resolved(report.data)
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
            "settings are": protocol["selection"],
            "scored by": document["metric"],
            "seed": seed,
            "splits": drawn if splits is None else str(splits),
            "checksum of data": document["data"],
            **settings_of(estimator),
        },
        versions=document["versions"],
        headline=_headline(evaluation, "on test examples"),
    )
    write_report(path, page)


def _headline(evaluation: Evaluation, where: str) -> tuple[str, str]:
    """The score that was asked for, and what it is."""
    metric = evaluation.metrics[evaluation.metric]
    mean = evaluation.summary()["mean"]
    shown = "?" if mean is None else metric.show(mean) + metric.unit
    return shown, f"{metric.title} {where}"


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
