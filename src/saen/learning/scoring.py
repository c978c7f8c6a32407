"""How well the predictions of a model match the targets of other data, target by target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from saen._util.arrays import Array
from saen._util.strings import plural
from saen.data._collection import known_targets, n_targets
from saen.errors import InputError
from saen.io.records import targets_for
from saen.learning.metrics import class_codes_of, prediction_scores, several_scores
from saen.learning.presets import Classifier, Model

MAX_CLASSES = 10  # listed in one line


class Scored(NamedTuple):
    """Scores of predictions, and in one line what could not be scored, and why.

    `scores` are those of `prediction_scores`, or of several targets those of `several_scores`.
    """

    scores: dict[str, Any]
    not_scored: str


def scored_columns(model: Model) -> list[str]:
    """The columns of `predict_chunks` that scores are computed from."""
    prefix = "p" if isinstance(model, Classifier) else "prediction"
    return [f"{prefix}_{name}" for name in model.target_names_] or ["prediction"]


def score_predictions(
    model: Model, columns: Mapping[str, Array], targets: Array, names: Sequence[str] = ()
) -> Scored:
    """Compare predictions with targets; of several targets, those of the same name.

    `columns` are the `scored_columns`, (n,) each; `targets` (n,) or (n, t) with their `names`.
    """
    if not len(targets):
        return Scored({}, "")
    if model.target_names_:
        return _several(model, columns, targets, names)
    classes = model.classes_ if isinstance(model, Classifier) else None
    scores = prediction_scores(classes, targets, columns["prediction"])
    if scores:
        return Scored(scores, "")
    predicted = "real numbers" if classes is None else _described(classes)
    known = _described(targets) if targets.ndim == 1 else _listed(targets, names)
    return Scored({}, f"the model predicts {predicted}, the data have {known}")


def _several(
    model: Model, columns: Mapping[str, Array], targets: Array, names: Sequence[str]
) -> Scored:
    predicted = model.target_names_
    own = list(names) or ["target"] if targets.ndim == 1 else [*names] or _numbers(targets)
    if not {*predicted} & {*own}:
        known = _listed(targets, names)
        return Scored({}, f"the model predicts {', '.join(predicted)}, the data have {known}")
    table = targets.reshape(len(targets), -1)
    truth: dict[str, Array] = {}
    missing, other = [], []
    for place, name in enumerate(predicted):
        if name not in own:
            missing.append(name)
            continue
        column = table[:, own.index(name)]
        values = (
            _codes(column, model.classes_[place])
            if isinstance(model, Classifier)
            else _real_numbers(column)
        )
        if values is None:
            other.append(name)
        else:
            truth[name] = values
    reasons = [f"{', '.join(missing)} (not in the data)"] if missing else []
    kind = "classes other than the model's" if isinstance(model, Classifier) else "not numbers"
    reasons += [f"{', '.join(other)} ({kind})"] if other else []
    if not truth:
        return Scored({}, "; ".join(reasons))
    outputs = dict(zip(predicted, (columns[key] for key in scored_columns(model)), strict=True))
    scores = several_scores(
        np.column_stack([*truth.values()]),
        np.column_stack([outputs[name] for name in truth]),
        [*truth],
    )
    return Scored(scores, "; ".join(reasons))


def _codes(column: Array, classes: Array) -> Array | None:
    """Class codes, -1 where unknown; None where the data have other classes."""
    known = known_targets(column)
    values = column[known]
    if values.dtype.kind == "f" and (values == np.floor(values)).all():
        values = values.astype(np.int64)  # classes beside real numbers are read as such
    codes = np.full(len(column), -1, dtype=np.int64)
    codes[known] = class_codes_of(values, classes)
    return None if (codes[known] < 0).any() else codes


def _real_numbers(column: Array) -> Array | None:
    try:
        return targets_for(column, "regression")
    except InputError:
        return None


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
