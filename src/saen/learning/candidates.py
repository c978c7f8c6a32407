"""The candidates that a blend tries by default: a list that depends on facts of the data alone.

The facts are the kind of data, which labels, attributes and directions there are, and how much of
it there is; never a dataset's name, and never the targets' values.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from sklearn.base import clone

from saen.data.graphs import Graphs
from saen.learning.estimators import (
    NetworkEstimator,
    SAENClassifier,
    SAENRegressor,
)
from saen.learning.part_counts_models import PartCountsClassifier, PartCountsRegressor
from saen.learning.selection import Candidate
from saen.learning.trainers import Estimator

BUDGETS = ("quick", "normal", "thorough")
LARGE = 2000
"""Examples from which on networks are trained longer: smaller collections are soon overfitted."""
FEW_EPOCHS, MANY_EPOCHS = 30, 80
MAX_LINKS = 100_000_000
"""Nodes and neighbours of all graphs above which networks over neighbourhoods are not tried."""


class _Listed(NamedTuple):
    """A candidate: networks or part counts, their arguments, and from which budget on."""

    name: str
    network: bool
    arguments: dict[str, Any]
    budget: str = "quick"


def default_candidates(
    data: Any,
    decomposition: str = "auto",
    *,
    numbers: bool = False,
    budget: str = "normal",
    device: str = "auto",
) -> list[Candidate]:
    """Networks and part counts to choose from, for these data.

    >>> import saen
    >>> threads = saen.generate_threads(40, seed=1)
    >>> [each.name["candidate"] for each in default_candidates(threads, budget="quick")]
    ['part counts', 'part counts, degree and triangles', 'ego networks']
    """
    if decomposition != "auto" or not isinstance(data, Graphs):
        base = {} if decomposition == "auto" else {"decomposition": decomposition}
        listed = iter([_Listed("part counts", False, base), _Listed("networks", True, base)])
    else:
        listed = _for_graphs(data)
    affordable = BUDGETS[: BUDGETS.index(budget) + 1]
    return [
        named_candidate(each.name, _estimator(each, numbers, device))
        for each in listed
        if each.budget in affordable
    ]


def named_candidate(name: str, estimator: Estimator) -> Candidate:
    """A candidate for a blend: one network stands for several on the inner folds."""
    network = isinstance(estimator, NetworkEstimator)
    trial = clone(estimator).set_params(n_models=1) if network else estimator
    return Candidate({"candidate": name}, estimator, trial)


def _estimator(listed: _Listed, numbers: bool, device: str) -> Estimator:
    if listed.network:
        kind: Any = SAENRegressor if numbers else SAENClassifier
        estimator: Estimator = kind(**listed.arguments, device=device)
    else:
        kind = PartCountsRegressor if numbers else PartCountsClassifier
        estimator = kind(**listed.arguments)
    return estimator


def _for_graphs(graphs: Graphs) -> Iterator[_Listed]:
    labelled = graphs.node_labels is not None
    own = "node" if labelled else "log-degree:4"
    deep = f"neighbourhoods(depth={4 if labelled else 3})"
    epochs = MANY_EPOCHS if len(graphs) >= LARGE else FEW_EPOCHS

    def counts(
        name: str, labels: str, budget: str = "quick", parts: str = "neighbourhoods"
    ) -> _Listed:
        return _Listed(name, False, {"decomposition": parts, "node_labels": labels}, budget)

    def networks(name: str, parts: str, labels: str, budget: str, **others: Any) -> _Listed:
        settings = {"decomposition": parts, "node_labels": labels, "epochs": epochs, **others}
        return _Listed(name, True, settings, budget)

    if labelled:
        yield counts("part counts", "node")
        yield counts("part counts, degree", "node,log-degree:1")
    else:
        yield counts("part counts", "log-degree:2")
        yield counts("part counts, degree and triangles", "degree,triangles")
    yield networks("ego networks", "ego", own, "quick")
    yield networks("ego networks, degree", "ego", f"{own},degree", "normal")
    if graphs.n_nodes + len(graphs.indices) <= MAX_LINKS:
        yield networks("neighbourhood networks", deep, own, "normal")
    if graphs.node_attributes is not None:
        yield networks("ego networks, attributes", "ego", f"{own},attributes", "normal")
    if graphs.edge_labels is not None or graphs.directed:
        plain = "neighbourhoods(edges=none)"
        yield counts("part counts, edges ignored", own, "thorough", plain)
    narrow = {"hidden": [[16], [16], [16]], "weight_decay": 1.0, "dropout": 0.1, "epochs": 20}
    small = "normal" if len(graphs) < LARGE else "thorough"
    yield networks("ego networks, regularised", "ego", own, small, **narrow)
