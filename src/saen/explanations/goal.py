"""What is explained: one output of a fitted estimator, as a function of what its networks give."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from saen._util.arrays import Floats
from saen.data.documents import Documents
from saen.data.graphs import Graphs
from saen.data.hierarchy import Hierarchy
from saen.errors import InputError
from saen.explanations.describe import DecomposedExample
from saen.io.coerce import as_data
from saen.learning.blend import BlendEstimator
from saen.learning.part_counts_models import PartCountsEstimator, PartCountsRegressor
from saen.learning.preparation import Data, recode_like
from saen.learning.presets import Classifier, Regressor
from saen.network.model import SAEN

Estimator = Classifier | Regressor

TOLERANCE = 0.01
"""Largest gap between the output and its parts, as a share of what is explained."""


@dataclass(frozen=True)
class Goal:
    """The output that is explained: a linear function of the outputs of the networks.

    `quantity` is what it is, in words: `log-odds of questions`, `prediction`, ….
    """

    classes: tuple[str, ...]
    target: Any
    weights: Floats
    shift: float
    quantity: str

    @staticmethod
    def of(estimator: Estimator, target: Any, prediction: Any) -> Goal:
        """That of a target, or of the default one."""
        if isinstance(estimator, Regressor):
            if isinstance(estimator, PartCountsRegressor):
                scale = np.ones(estimator.model_.function.n_outputs)
                mean = np.zeros_like(scale)
            else:
                scale, mean = np.atleast_1d(estimator.scale_), np.atleast_1d(estimator.mean_)
            weights, several = np.diag(scale), estimator.target_names_
            if not several:
                columns = [*map(str, range(len(scale)))]
                place = _position("column of y", 0 if target is None else target, columns)
                return Goal((), place, weights[place], float(mean[place]), "prediction")
            place = _position("target", several[0] if target is None else target, several)
            name = several[place]
            return Goal(
                (), name, weights[place], float(mean[place]), f"prediction of target {name}"
            )
        if estimator.classes_.ndim == 2:  # several targets: the log-odds of one of them
            several = estimator.target_names_
            place = _position("target", several[0] if target is None else target, several)
            quantity = f"log-odds of target {several[place]} being {estimator.classes_[place, 1]}"
            return Goal((), several[place], np.eye(len(several))[place], 0.0, quantity)
        names = tuple(map(str, estimator.classes_.tolist()))
        binary = len(names) == 2
        if target is None:
            target = names[1] if prediction is None else prediction
        place = _position("class", target, names)
        weights = np.array([2.0 * place - 1]) if binary else np.eye(len(names))[place]
        quantity = f"{'log-odds' if binary else 'logit'} of {names[place]}"
        return Goal(names, plain(estimator.classes_[place]), weights, 0.0, quantity)

    @staticmethod
    def all(estimator: Estimator, target: Any) -> list[Goal]:
        """One for every class, or one alone where its opposite is the other one."""
        single = isinstance(estimator, Regressor) or estimator.classes_.ndim == 2
        if single or len(estimator.classes_) == 2:
            return [Goal.of(estimator, target, None)]
        return [Goal.of(estimator, each, None) for each in estimator.classes_]

    def gradient(self, network: SAEN) -> Tensor:
        """With respect to all outputs, (M, outputs)."""
        return (torch.from_numpy(self.weights) / network.n_models).expand(network.n_models, -1)

    def outputs(self, raw: Tensor) -> Floats:
        """The output that is explained, from all outputs, shape (n, M, outputs)."""
        numbers: Floats = raw.mean(dim=1).numpy() @ self.weights + self.shift
        if not np.isfinite(numbers).all():
            raise InputError("the output of the network is not finite: there is nothing to explain")
        return numbers


def _position(what: str, target: Any, names: Sequence[str]) -> int:
    """The position of a target, which a command line can only give as text."""
    if str(target) not in names:
        raise InputError(f"there is no {what} {str(target)!r}: choose from {', '.join(names)}")
    return names.index(str(target))


def largest_member(estimator: Any) -> Any:
    """Whose parts are explained: the estimator, or of a blend the member of largest weight."""
    if not isinstance(estimator, BlendEstimator):
        return estimator
    check_is_fitted(estimator, "members_")
    return estimator.members_[0].estimator


def explained_share(estimator: Any) -> str:
    """Of a blend, whose parts are explained: `part counts, 83 % of this blend`, else nothing."""
    if not isinstance(estimator, BlendEstimator):
        return ""
    first = estimator.members_[0]
    return member_share(first.name, first.weight)


def member_share(name: str, weight: float) -> str:
    """A member of a blend and its weight, in words."""
    return f"{name}, {100 * weight:.0f} % of this blend"


def example_id(data: Any, index: int) -> Any:
    """The id of an example, or its index where the data have no ids."""
    return plain(data.ids[index]) if hasattr(data, "ids") else index


def checked(estimator: Estimator, X: Data) -> Any:
    """The data as a collection that can be sliced."""
    if not isinstance(estimator, Estimator):
        raise InputError(f"explain takes a fitted estimator, not {type(estimator).__name__}")
    check_is_fitted(estimator, "schema_")
    fitted = estimator.decomposition_
    data = as_data(X, "graphs" if fitted is None else fitted.takes)
    if fitted is None and not isinstance(data, Hierarchy):
        raise InputError("this estimator was fitted on hierarchies: pass a Hierarchy")
    return data


def decompose_one(estimator: Estimator, one: Any) -> DecomposedExample:
    """One example with its original hierarchy, over the vocabulary of the estimator."""
    if isinstance(one, Hierarchy):
        return DecomposedExample(recode_like(one, estimator.schema_))
    assert estimator.decomposition_ is not None
    hierarchy = estimator.decomposition_.decompose(one)
    if not isinstance(one, Graphs):
        anchors = estimator.decomposition_.anchors(one) if isinstance(one, Documents) else None
        return DecomposedExample(
            hierarchy, anchors=anchors, document=one if isinstance(one, Documents) else None
        )
    decomposition = estimator.decomposition_
    return DecomposedExample(
        hierarchy, one, decomposition.anchors(one), decomposition.describe_label
    )


def decomposition_settings(estimator: Estimator | PartCountsEstimator) -> dict[str, Any]:
    """The settings of the decomposition, for reports."""
    return {} if estimator.decomposition_ is None else estimator.decomposition_.settings()


def exact_copy(network: SAEN) -> SAEN:
    """A copy in float64 on the CPU."""
    return deepcopy(network).to("cpu", torch.float64)


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
