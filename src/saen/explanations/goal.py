"""What is explained: one output of a fitted model, as a linear function of what it computes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from saen._util.arrays import Floats
from saen.data.documents import Documents
from saen.data.graphs import Graphs
from saen.data.hierarchy import Hierarchy
from saen.errors import InputError
from saen.explanations.describe import DecomposedExample
from saen.io.libraries.coerce import as_data
from saen.learning.decomposing import Data, recode_like
from saen.learning.estimators import Estimator
from saen.learning.models.base import Fitted

TOLERANCE = 0.01
"""Largest gap between the output and its parts, as a share of what is explained."""


@dataclass(frozen=True)
class Goal:
    """The output that is explained: a linear function of what the model computes.

    `quantity` is what it is, in words: `log-odds of questions`, `prediction`, ….
    """

    classes: tuple[str, ...]
    target: Any
    weights: Floats
    quantity: str

    @staticmethod
    def of(model: Fitted, target: Any, prediction: Any) -> Goal:
        """That of a target, or of the default one."""
        return model.targets.choose(_of_classes, _of_numbers)(model, target, prediction)

    @staticmethod
    def all(model: Fitted, target: Any) -> list[Goal]:
        """One for every class, or one alone where its opposite is the other one."""
        classes = model.targets.known_classes
        if classes is None or classes.ndim == 2 or len(classes) == 2:
            return [Goal.of(model, target, None)]
        return [Goal.of(model, each, None) for each in classes]


def _of_numbers(model: Fitted, target: Any, prediction: Any) -> Goal:
    names = list(model.targets.names)
    unit = np.eye(model.targets.n_outputs)
    if not names:
        columns = [*map(str, range(len(unit)))]
        place = _position("column of y", 0 if target is None else target, columns)
        return Goal((), place, unit[place], "prediction")
    place = _position("target", names[0] if target is None else target, names)
    return Goal((), names[place], unit[place], f"prediction of target {names[place]}")


def _of_classes(model: Fitted, target: Any, prediction: Any) -> Goal:
    classes, several = model.targets.known_classes, list(model.targets.names)
    assert classes is not None
    if several:  # the log-odds of one of several targets
        place = _position("target", several[0] if target is None else target, several)
        quantity = f"log-odds of target {several[place]} being {classes[place, 1]}"
        return Goal((), several[place], np.eye(len(several))[place], quantity)
    names = tuple(map(str, classes.tolist()))
    binary = len(names) == 2
    if target is None:
        target = names[1] if prediction is None else prediction
    place = _position("class", target, names)
    weights = np.array([2.0 * place - 1]) if binary else np.eye(len(names))[place]
    quantity = f"{'log-odds' if binary else 'logit'} of {names[place]}"
    return Goal(names, plain(classes[place]), weights, quantity)


def _position(what: str, target: Any, names: Sequence[str]) -> int:
    """The position of a target, which a command line can only give as text."""
    if str(target) not in names:
        raise InputError(f"there is no {what} {str(target)!r}: choose from {', '.join(names)}")
    return names.index(str(target))


def fitted_model(estimator: Any) -> Fitted:
    """The model of a fitted estimator, or the model itself."""
    if isinstance(estimator, Fitted):
        return estimator
    if not isinstance(estimator, Estimator):
        raise InputError(f"explain takes a fitted estimator, not {type(estimator).__name__}")
    check_is_fitted(estimator, "fitted_")
    return estimator.fitted_


def explained_share(model: Fitted) -> str:
    """Of a blend, whose parts are explained: `part counts, 83 % of this blend`, else nothing."""
    first = model.members[0]
    return member_share(first.name, first.weight) if first.name else ""


def member_share(name: str, weight: float) -> str:
    """A member of a blend and its weight, in words."""
    return f"{name}, {100 * weight:.0f} % of this blend"


def example_id(data: Any, index: int) -> Any:
    """The id of an example, or its index where the data have no ids."""
    return plain(data.ids[index]) if hasattr(data, "ids") else index


def checked(model: Fitted, X: Data) -> Any:
    """The data as a collection that can be sliced."""
    data = as_data(X, model.takes)
    if model.decomposition is None and not isinstance(data, Hierarchy):
        raise InputError("this estimator was fitted on hierarchies: pass a Hierarchy")
    return data


def decompose_one(model: Fitted, one: Any) -> DecomposedExample:
    """One example with its original hierarchy, over the vocabulary of the model."""
    if isinstance(one, Hierarchy):
        return DecomposedExample(recode_like(one, model.schema))
    decomposition = model.decomposition
    assert decomposition is not None
    hierarchy = decomposition.decompose(one)
    graph = one if isinstance(one, Graphs) else None
    document = one if isinstance(one, Documents) else None
    anchors = None if graph is None and document is None else decomposition.anchors(one)
    return DecomposedExample(hierarchy, graph, anchors, decomposition, document)


def decomposition_settings(model: Fitted) -> dict[str, Any]:
    """The settings of the decomposition, for reports."""
    return {} if model.decomposition is None else model.decomposition.settings()


def check_complete(outputs: Floats, baselines: Floats, gaps: Floats) -> None:
    """Raise unless baseline and contributions add up to the output of every example."""
    rounding = 1e-9 * (np.abs(outputs) + np.abs(baselines))
    wrong = np.flatnonzero(~(gaps <= TOLERANCE * np.abs(outputs - baselines) + rounding))
    if len(wrong):
        raise InputError(
            f"contributions do not add up: they miss an output of {outputs[wrong[0]]:.6g} by "
            f"{gaps[wrong[0]]:.3g}, more than {TOLERANCE:.0%} of its distance from the baseline "
            f"{baselines[wrong[0]]:.6g}"
        )


def plain(value: Any) -> Any:
    """Without numpy."""
    return value.tolist() if isinstance(value, np.generic | np.ndarray) else value
