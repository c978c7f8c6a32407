"""Results in one line each, by name: what commands print and pages show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from saen._util.strings import plural, some_of
from saen.learning.splits import PARTS

if TYPE_CHECKING:
    from saen.jobs.evaluate import EvaluationReport
    from saen.jobs.train import Estimate
    from saen.learning.metrics import Metric

MAX_TARGETS = 20  # listed in one line
MAX_FIXED = 1000
"""Scores beyond it are written with an exponent."""
SELECTION_MEANINGS = {
    "fixed": "settings set in advance",
    "nested": "settings chosen on inner folds",
    "peek": "stopped at the best epoch of the test folds",
}


def describe_decomposition(settings: dict[str, Any], candidates: int = 1) -> str:
    """A decomposition with its settings: the only one, or that of the first candidate of a blend.

    >>> describe_decomposition({"name": "ego", "radii": [0, 1], "edges": "none"})
    'ego decomposition (radii 0,1, edges none)'
    """
    shown = {
        key: ",".join(map(str, value)) if isinstance(value, list) else str(value)
        for key, value in settings.items()
        if key != "name"
    }
    words = ", ".join(f"{key} {value}" for key, value in shown.items())
    first = f" of the first of {candidates} candidates" if candidates > 1 else ""
    return f"{settings['name']} decomposition ({words}){first}"


def describe_ceiling(
    share: float, decomposition: Mapping[str, Any] | None = None, candidates: int = 1
) -> str:
    """The ceiling, and what to do about it with these settings of the decomposition.

    Of several candidates, it is that of all together.

    >>> describe_ceiling(1.0)
    '100.0 %'
    >>> describe_ceiling(0.9, {"name": "neighbourhoods", "depth": 5}, candidates=8)
    '90.0 %: examples with different targets look identical to all candidates'
    """
    if share == 1:
        return "100.0 %"
    which = "this decomposition" if candidates < 2 else "all candidates"
    advice = [words for key, words in _LARGER.items() if key in (decomposition or {})]
    hint = f"; try {advice[0]}" if advice and candidates < 2 else ""
    return f"{100 * share:.1f} %: examples with different targets look identical to {which}{hint}"


_LARGER = {"radii": "larger radii", "depth": "more depth", "max_length": "longer paths"}


def examples_of(takes: str) -> str:
    """What the examples of a kind of data are called: `graphs`, `documents`, …

    >>> examples_of("graphs"), examples_of("nested")
    ('graphs', 'examples')
    """
    return "examples" if takes == "nested" else takes


def count_examples(n: int, takes: str) -> str:
    """A number of examples of a kind of data.

    >>> count_examples(1, "graphs"), count_examples(2000, "nested")
    ('1 graph', '2,000 examples')
    """
    return plural(n, examples_of(takes).removesuffix("s"))


def describe_scores(scores: dict[str, Any]) -> list[str]:
    """Scores of predictions in one line; of several targets, those of each in another.

    >>> describe_scores({"r2": 0.5, "mae": 2.0})
    ['R² 0.500, mean absolute error 2']
    """
    if "accuracy" in scores:
        words = f"accuracy {_percent(scores['accuracy'])}"
        words = f"ROC-AUC {_percent(scores['roc_auc'])}, {words}" if "roc_auc" in scores else words
    else:
        words = f"{_r2(scores.get('r2'))}mean absolute error {scores['mae']:.4g}"
    if "targets" not in scores:
        return [words]
    n = len(scores["targets"])
    means = f", means over {n} targets," if n > 1 else ""
    return [words + means, _targets(scores)]


def _r2(value: float | None) -> str:
    """R², to stand before another score; compact where it is enormous."""
    if value is None:
        return ""
    return f"R² {value:.3f}, " if abs(value) < MAX_FIXED else f"R² {value:.3g}, "


def _targets(scores: dict[str, Any]) -> str:
    """The scores of several targets, one by one."""
    name = "roc_auc" if "roc_auc" in scores else "mae"
    title = "ROC-AUC" if name == "roc_auc" else "mean absolute error"
    values = {target: each[name] for target, each in scores["targets"].items()}
    return _per_target(title, values, percent=name == "roc_auc")


def candidate_rows(
    tried: Sequence[Mapping[str, Any]], metric: Metric
) -> list[tuple[str, str, str]]:
    """Name, cross-validated score and weight of each candidate, the largest weight first."""
    return [
        (
            each["candidate"],
            "–" if each["score"] is None else metric.show(each["score"]) + metric.unit,
            f"{100 * each['weight']:.0f} %",
        )
        for each in sorted(tried, key=lambda each: -each["weight"])
    ]


def describe_estimate(estimate: Estimate) -> dict[str, str]:
    """Scores on held-out examples, with baseline and interval."""
    scores, takes = estimate.evaluation.pooled(), examples_of(estimate.takes)
    document = estimate.evaluation.pooled_json()
    examples = count_examples(len(document["test"]), estimate.takes)
    if "accuracy" in scores and "targets" in scores:
        words = f"{describe_scores(scores)[0]} on {examples}"
    elif "accuracy" in scores:
        low, high = scores["interval"]
        words = (
            f"accuracy {100 * scores['accuracy']:.1f} % on {examples} (95 % interval "
            f"{100 * low:.1f} to {100 * high:.1f} %; majority baseline "
            f"{100 * scores['majority']:.1f} %)"
        )
    else:
        ends = scores["interval"]
        between = "" if ends is None else f"95 % interval {ends[0]:.4g} to {ends[1]:.4g}; "
        words = (
            f"{_r2(scores['r2'])}mean absolute error {scores['mae']:.4g} on {examples} "
            f"({between}mean baseline {scores['mae_of_mean']:.4g})"
        )
    lines = {estimate.kind: words}
    if "targets" in scores:
        lines["targets"] = _targets(scores)
    same, alike = document["duplicates"], document["look_identical"]
    if same:
        be = "is" if same == 1 else "are"
        lines["duplicates"] = f"{same:,} of these {takes} {be} identical to training {takes}"
    if alike > same > 0:
        lines["duplicates"] += f"; {alike:,} look identical to the model"
    elif alike > same:
        lines["duplicates"] = f"to the model, {alike:,} of these {takes} look like training {takes}"
    return lines


def describe_protocol(document: dict[str, Any]) -> str:
    """Repeats and folds of an evaluation.

    >>> describe_protocol({"protocol": {"repeats": 3, "folds": 10}})
    '3 × 10-fold cross-validation'
    """
    repeats, folds = document["protocol"]["repeats"], document["protocol"]["folds"]
    if folds > 1:
        return f"{repeats} × {folds}-fold cross-validation"
    return "one split" if repeats == 1 else f"{repeats} × hold-out"


def describe_evaluation(report: EvaluationReport) -> dict[str, str]:
    """Scores, the chosen one first, ceiling, duplicates and times of an evaluation."""
    document, evaluation = report.to_json(), report.evaluation
    metrics, duplicates = evaluation.metrics, document["duplicates"]
    first = metrics[evaluation.metric]
    lines = {}
    if "split" in document:
        split = document["split"]
        parts = ", ".join(f"{split[part]:,} {part}" for part in PARTS if part in split)
        lines["split"] = f"{parts} of {split['of']:,} examples"
    if "groups" in document:
        groups = document["groups"]
        lines["groups"] = (
            f"{groups['by']}: {plural(groups['count'], 'group')}, the largest "
            f"{groups['largest']:,} of {len(evaluation.targets):,} examples"
        )
        left_out = evaluation.left_out()
        if left_out:
            lines["groups"] += f"; {100 * left_out:.1f} % left out of training beside test examples"
    lines[first.title] = describe_score(first, document[first.name])
    others = [
        f"{metric.title} {_value(metric, document[metric.name]['mean'])}"
        for metric in metrics.values()
        if metric is not first
    ]
    lines["other scores"] = ", ".join(others)
    if evaluation.target_names:
        lines["targets"] = _per_target(
            first.title, evaluation.target_scores(first.name), percent=first.percent
        )
    if "intervals" in document:
        intervals = document["intervals"]
        lines["intervals"] = (
            f"{100 * intervals['observed']:.1f} % of test examples lie within their "
            f"{100 * intervals['coverage']:.0f} % intervals (mean width {intervals['width']:.4g})"
        )
    if evaluation.classes is None:
        lines["mean baseline"] = f"mean absolute error {document['mae_of_mean']:.4g}"
    elif "ceiling" in document:
        lines["majority baseline"] = f"accuracy {100 * document['majority']:.1f} %"
        candidates = sum("candidate" in each for each in evaluation.tried)
        if document["ceiling_folds"] < 1:
            lines["ceiling"] = (
                f"{describe_ceiling(document['ceiling'], candidates=candidates)} "
                f"({100 * document['ceiling_folds']:.1f} % with one model per fold)"
            )
    if duplicates["share"] or _alike(duplicates):
        rest = duplicates.get("accuracy_rest") if duplicates["share"] else None
        lines["duplicates"] = (
            f"{100 * duplicates['share']:.1f} % of test examples are identical to a training "
            "example"
            + _alike(duplicates)
            + _share("; accuracy on these", duplicates.get("accuracy"))
            + _share(", on the others", rest)
        )
    shared = document.get("overlap", {"share": 0.0})
    if shared["share"]:
        lines["overlap"] = (
            f"{100 * shared['share']:.1f} % of test graphs share rare parts with a training graph"
            + _share("; accuracy on these", shared.get("accuracy"))
            + _share(", on the others", shared.get("accuracy_rest"))
            + " (--groups overlap keeps them in one fold)"
        )
    lines["time"] = f"{describe_times(report.seconds)} on {report.device}"
    if document["protocol"]["selection"] == "peek":
        lines["warning"] = (
            "the epoch was chosen on the test folds, so this number is optimistic: compare it only "
            "with numbers obtained the same way"
        )
    return lines


def describe_selection(report: EvaluationReport) -> str:
    """How settings were selected, and what that means."""
    selection = report.recorded["protocol"]["selection"]
    epoch = f" ({report.evaluation.chosen[0]['epoch']})" if selection == "peek" else ""
    return f"{selection}: {SELECTION_MEANINGS[selection]}{epoch}"


def describe_score(metric: Metric, summary: dict[str, Any]) -> str:
    """The mean of a score with its corrected 95 % interval.

    >>> from saen.learning.metrics import CLASSIFICATION_METRICS
    >>> describe_score(CLASSIFICATION_METRICS["accuracy"], {"mean": 0.5, "interval": (0.4, 0.6)})
    '50.0 % (95 % interval 40.0 to 60.0)'
    """
    if summary["mean"] is None:
        return "not defined: no fold tests more than one class"
    shown = metric.show(summary["mean"]) + metric.unit
    if summary.get("interval") is None:
        return shown
    low, high = map(metric.show, summary["interval"])
    return f"{shown} (95 % interval {low} to {high})"


def _per_target(title: str, scores: dict[str, float | None], *, percent: bool) -> str:
    """The score of each of several targets, of the first ones if there are many."""

    def words(value: float | None) -> str:
        return _percent(value) if percent or value is None else f"{value:.4g}"

    shown = [f"{name} {words(value)}" for name, value in scores.items()]
    return f"{title}: {some_of(shown, MAX_TARGETS)}"


def _percent(value: float | None) -> str:
    return "not defined" if value is None else f"{100 * value:.1f} %"


def _value(metric: Metric, mean: float | None) -> str:
    return "not defined" if mean is None else metric.show(mean) + metric.unit


def describe_times(seconds: dict[str, float]) -> str:
    """The seconds of every step.

    >>> describe_times({"load": 0.5, "train": 12.0})
    'load 0.5 s, train 12.0 s'
    """
    return ", ".join(f"{step} {time:.1f} s" for step, time in seconds.items())


def _alike(duplicates: dict[str, float]) -> str:
    alike = duplicates.get("look_identical", 0.0)  # not in older files
    return f" ({100 * alike:.1f} % look so to the model)" if alike > duplicates["share"] else ""


def _share(words: str, value: float | None) -> str:
    return "" if value is None else f"{words} {100 * value:.1f} %"
