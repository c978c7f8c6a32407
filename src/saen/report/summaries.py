"""Results in one line each, by name: what commands print and pages show."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from saen._util.strings import plural

if TYPE_CHECKING:
    from saen.learning.jobs.evaluate import EvaluationReport
    from saen.learning.jobs.train import HoldOut

STOP_MEANINGS = {
    "fixed": "epochs set in advance",
    "nested": "settings chosen inside each training part",
    "peek": "stopped at the best epoch of the test folds",
}


def describe_decomposition(settings: dict[str, Any]) -> str:
    """A decomposition with its settings.

    >>> describe_decomposition({"name": "ego", "radii": [0, 1], "edges": "none"})
    'ego decomposition (radii 0,1, edges none)'
    """
    shown = {
        key: ",".join(map(str, value)) if isinstance(value, list) else str(value)
        for key, value in settings.items()
        if key != "name"
    }
    words = ", ".join(f"{key} {value}" for key, value in shown.items())
    return f"{settings['name']} decomposition ({words})"


def describe_ceiling(share: float) -> str:
    """The ceiling, and what to do about it.

    >>> describe_ceiling(1.0)
    '100.0 %'
    """
    if share == 1:
        return "100.0 %"
    return (
        f"{100 * share:.1f} %: graphs with different targets look identical to this "
        "decomposition; try edges=roles or larger radii"
    )


def describe_hold_out(held_out: HoldOut) -> dict[str, str]:
    """Scores on a held-out part, with baseline and interval."""
    scores, n, takes = held_out.scores, len(held_out.test), held_out.takes
    if "accuracy" in scores:
        low, high = scores["interval"]
        words = (
            f"{100 * scores['accuracy']:.1f} % accuracy on {n:,} {takes} (95 % interval "
            f"{100 * low:.1f} to {100 * high:.1f} %; majority baseline "
            f"{100 * scores['majority']:.1f} %)"
        )
    else:
        r2 = "" if scores["r2"] is None else f"R² {scores['r2']:.3f}, "
        words = (
            f"{r2}mean absolute error {scores['mae']:.4g} ± {scores['mae_error']:.2g} on {n:,} "
            f"{takes} (mean baseline {scores['mae_of_mean']:.4g})"
        )
    lines = {"held out": words}
    if held_out.duplicates:
        lines["duplicates"] = (
            f"{held_out.duplicates:,} of the held-out {takes} are identical to training {takes}"
        )
    return lines


def describe_evaluation(report: EvaluationReport) -> dict[str, str]:
    """Accuracy, ceiling, duplicates and times of an evaluation."""
    document = report.to_json()
    accuracy, duplicates = document["accuracy"], document["duplicates"]
    lines = {
        "accuracy": f"{100 * accuracy['mean']:.2f} ± {100 * accuracy['std']:.2f} % "
        f"(over repeats; ± {100 * accuracy['std_folds']:.2f} over folds)",
        "ceiling": f"{describe_ceiling(document['ceiling'])} "
        f"({100 * document['ceiling_folds']:.2f} % with one model per fold)",
        "duplicates": f"{100 * duplicates['share']:.1f} % of test examples are identical to a "
        "training example"
        + _share("; accuracy on these", duplicates["accuracy"])
        + _share(", on the others", duplicates["accuracy_rest"]),
        "time": f"{describe_times(report.seconds)} on {report.device}",
    }
    if document["protocol"]["stop"] == "peek":
        lines["warning"] = (
            "the epoch was chosen on the test folds, so this number is optimistic: compare it only "
            "with numbers obtained the same way"
        )
    return lines


def describe_model(model: Any) -> str:
    """What a fitted model consists of: networks and epochs, or columns and settings."""
    if hasattr(model, "network_"):
        networks = plural(model.network_.n_models, "network")
        return f"{networks}, {plural(len(model.history_.loss), 'epoch')}"
    linear = model.linear_
    depth = "" if linear.depth is None else f", depth {linear.depth}"
    return f"linear over {linear.encoder.n_columns:,} part counts{depth}, C = {linear.C:g}"


def describe_times(seconds: dict[str, float]) -> str:
    """The seconds of every step.

    >>> describe_times({"load": 0.5, "train": 12.0})
    'load 0.5 s, train 12.0 s'
    """
    return ", ".join(f"{step} {time:.1f} s" for step, time in seconds.items())


def _share(words: str, value: float | None) -> str:
    return "" if value is None else f"{words} {100 * value:.1f} %"
