"""How well the predictions of a model match the targets of other data, target by target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

from saen._util.arrays import Array, Floats
from saen._util.strings import plural
from saen.data.collection import known_targets, n_targets
from saen.learning.metrics import prediction_scores, several_scores
from saen.learning.problem import Targets

MAX_CLASSES = 10  # listed in one line


class Scored(NamedTuple):
    """Scores of predictions, and in one line what could not be scored, and why.

    `scores` are those of `prediction_scores`, or of several targets those of `several_scores`;
    `n_scored` is the number of examples that they are about.
    """

    scores: dict[str, Any]
    not_scored: str
    n_scored: int = 0


def score_predictions(
    model: Targets, columns: Mapping[str, Array], targets: Array, names: Sequence[str] = ()
) -> Scored:
    """Compare predictions with targets; of several targets, those of the same name.

    `columns` are those that are `compared`, (n,) each; `targets` (n,) or (n, t) with their `names`.
    """
    if not len(targets):
        return Scored({}, "")
    if model.several:
        return _several(model, columns, targets, names)
    classes, predictions = model.known_classes, columns["prediction"]
    known, unreadable = targets, 0
    if classes is None and targets.ndim == 1 and targets.dtype.kind == "U":
        numbers = _readable_numbers(targets)
        readable = np.isfinite(numbers)
        known, predictions = numbers[readable], predictions[readable]
        unreadable = len(targets) - len(known)
    scores = prediction_scores(classes, known, predictions)
    if scores:
        reason = f"{plural(unreadable, 'target')} that cannot be read as a number"
        return Scored(scores, reason if unreadable else "", len(known))
    predicted = "real numbers" if classes is None else _described(classes)
    found = _described(targets) if targets.ndim == 1 else _listed(targets, names)
    return Scored({}, f"the model predicts {predicted}, the data have {found}")


def _several(
    model: Targets, columns: Mapping[str, Array], targets: Array, names: Sequence[str]
) -> Scored:
    predicted = list(model.names)
    own = list(names) or ["target"] if targets.ndim == 1 else [*names] or _numbers(targets)
    if not {*predicted} & {*own}:
        known = _listed(targets, names)
        return Scored({}, f"the model predicts {', '.join(predicted)}, the data have {known}")
    table = targets.reshape(len(targets), -1)
    truth: dict[str, Array] = {}
    missing, other = [], []
    for place, name in enumerate(predicted):
        column = table[:, own.index(name)] if name in own else table[:0, 0]
        if not known_targets(column).any():
            missing.append(name)
            continue
        values = model.known(column, place)
        if values is None:
            other.append(name)
        else:
            truth[name] = values
    reasons = [f"{', '.join(missing)} (not in the data)"] if missing else []
    kind = model.choose("classes other than the model's", "not numbers")
    reasons += [f"{', '.join(other)} ({kind})"] if other else []
    if not truth:
        return Scored({}, "; ".join(reasons))
    outputs = dict(zip(predicted, (columns[key] for key in model.compared()), strict=True))
    scores = several_scores(
        np.column_stack([*truth.values()]),
        np.column_stack([outputs[name] for name in truth]),
        [*truth],
    )
    return Scored(scores, "; ".join(reasons), len(targets))


def _readable_numbers(texts: Array) -> Floats:
    """The numbers among some texts, NaN for the others."""
    out = np.full(len(texts), np.nan)
    for row, text in enumerate(texts.tolist()):
        with suppress(ValueError):
            out[row] = float(text)
    return out


def _described(values: Array) -> str:
    """What targets are: real numbers, or these classes."""
    if values.dtype.kind == "f":
        return "real numbers"
    classes = np.unique(values).astype(str).tolist()
    more = " …" if len(classes) > MAX_CLASSES else ""
    return f"the classes {', '.join(classes[:MAX_CLASSES])}{more}"


def _listed(targets: Array, names: Sequence[str]) -> str:
    return ", ".join(names) or f"{plural(n_targets(targets), 'target')} without names"


def _numbers(targets: Array) -> list[str]:
    """What targets without names are called."""
    return [*map(str, range(n_targets(targets)))]
