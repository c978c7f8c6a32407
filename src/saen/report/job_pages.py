"""HTML reports of the jobs: what was trained or evaluated, on what, and how well it did."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from saen.explanations.dataset import explain_dataset
from saen.explanations.explanation import explain
from saen.jobs.evaluate import EvaluationReport
from saen.jobs.store import digest, versions
from saen.jobs.train import Estimate, FitReport
from saen.learning.decomposing import Decompositions
from saen.learning.evaluation import Evaluation
from saen.learning.metrics import CLASSIFICATION_METRICS, REGRESSION_METRICS, Metric
from saen.learning.parameters import settings_of
from saen.report.evaluation_page import Predictions, Report, write_report
from saen.report.figures import evenly_spaced
from saen.report.page import Table
from saen.report.summaries import (
    candidate_rows,
    describe_ceiling,
    describe_decomposition,
    describe_estimate,
    describe_evaluation,
    describe_protocol,
    describe_score,
)

MAX_EXPLAINED, MAX_TELLING = 300, 8
"""Examples whose parts a page compares, and parts that it lists."""


def write_training_report(path: Path, report: FitReport, command: str) -> None:
    """Write a page about a training; `command` is what to type to repeat it."""
    facts, model, job = report.facts, report.model, report.job
    assert facts.decomposition is not None
    summary = {"parts": describe_decomposition(facts.decomposition, facts.candidates)}
    predictions = headline = None
    estimates = {"held out": report.held_out, "out of fold": report.evaluation}
    for kind, evaluation in estimates.items():
        if evaluation is None:
            continue
        summary |= describe_estimate(Estimate(kind, report.takes, evaluation))
        if headline is None:
            headline = _pooled_headline(evaluation, f"{kind}, {_tested(evaluation)} examples")
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
        curves={} if shown is None else _curves(shown),
        predictions=predictions,
        command=command,
        settings={
            "dataset": facts.name,
            "preset": job.load_preset().name,
            "seed": job.seed,
            "splits": "inner folds of the training"
            if report.held_out is None
            else f"{_tested(report.held_out)} held out, by the seed",
            "checksum of data": digest(report.data),
            **settings_of(model),
        },
        versions=versions(),
        headline=headline,
        target=_target(report.data, job.reading.target),
        tried=_tried(model.tried_, report.inner_metric),
        telling=explain_dataset(model, _some(report.data), n_parts=MAX_TELLING),
        explain=lambda index: explain(model, report.data, index),
        explain_command=shlex.join(
            [
                *("saen", "explain", str(report.path), job.data),
                *(["--skip-bad"] if job.reading.skip_bad else []),
                "--graph",
            ]
        ),
    )
    write_report(path, page)


def _curves(evaluation: Evaluation) -> dict[str, Any]:
    """Learning curves, of models that are trained by epochs."""
    return {evaluation.loss_name: evaluation.curves} if evaluation.loss.size else {}


def _some(data: Any) -> Any:
    """Examples from all over the data."""
    return data[evenly_spaced(len(data), MAX_EXPLAINED)]


def _target(data: Any, named: str | None) -> str | Sequence[str]:
    """The names of several targets, or that of the only one."""
    return data.target_names or named or "target"


def _tried(tried: Sequence[Mapping[str, Any]], metric: Metric) -> Table | None:
    """The candidates of a blend, the largest weight first."""
    if not any("candidate" in each for each in tried):
        return None
    return Table(["candidate", f"CV {metric.title}", "weight"], candidate_rows(tried, metric))


def _tested(evaluation: Evaluation) -> str:
    return f"{len(evaluation.tested()[0]):,}"


def write_evaluation_report(
    path: Path,
    report: EvaluationReport,
    command: str,
    splits: Path | None = None,
    target: str | None = None,
) -> None:
    """Write a page about an evaluation; `command` is what to type to repeat it.

    `target` is the name of what is predicted, if it was named.
    """
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
        curves=_curves(evaluation),
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
        target=_target(report.data, target),
        tried=_tried(evaluation.tried, evaluation.find_metric()),
    )
    write_report(path, page)


def _headline(evaluation: Evaluation, where: str) -> tuple[str, str]:
    """The score that was asked for, and what it is."""
    metric = evaluation.metrics[evaluation.metric]
    summary = evaluation.summary()
    shown = "?" if summary["mean"] is None else metric.show(summary["mean"]) + metric.unit
    interval = summary.get("interval")
    if len(evaluation.splits) == 1 and metric.name == "accuracy":  # every example counts once
        interval = evaluation.pooled().get("interval", interval)
    words = describe_score(metric, summary | {"interval": interval})
    _, _, between = words.partition(" (")
    return shown, f"{metric.title} {where}{f' ({between}' if between else ''}"


def _pooled_headline(evaluation: Evaluation, where: str) -> tuple[str, str]:
    """The score of all tests together, which other lines of the page show, too, if there is one."""
    metric, pooled = evaluation.find_metric(), evaluation.pooled()
    value = pooled.get(metric.name)
    if value is None or "targets" in pooled:
        return _headline(evaluation, where)
    own = metric.name in ("accuracy", "mae")
    words = describe_score(metric, {"mean": value, "interval": pooled["interval"] if own else None})
    shown, _, between = words.partition(" (")
    return shown, f"{metric.title} {where}{f' ({between}' if between else ''}"


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
        None if evaluation.radius is None else evaluation.radius[repeats, examples],
    )
