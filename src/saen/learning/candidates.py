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
SMALL = 2000
"""Examples up to which networks are also tried with strong regularisation."""
HUGE_ENTRIES = 60_000_000
"""Nodes and neighbours of all graphs above which a single network is tried."""


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
    attributes = graphs.node_attributes is not None
    kinds = graphs.edge_labels is not None or graphs.directed
    edges = "edges=roles" if kinds else ""
    own = "node" if labelled else "log-degree:4"
    counted = "neighbourhoods" + (f"({edges})" if edges else "")
    ego = "ego" + (f"({edges})" if edges else "")
    deep = f"neighbourhoods(depth={4 if labelled else 3}{', ' * bool(edges)}{edges})"
    huge = graphs.n_nodes + len(graphs.indices) > HUGE_ENTRIES

    yield _Listed("part counts", False, {"decomposition": counted, "node_labels": own})
    if labelled:
        yield _Listed(
            "part counts, degree",
            False,
            {"decomposition": counted, "node_labels": "node,log-degree:1"},
        )
    else:
        yield _Listed(
            "part counts, degree and triangles",
            False,
            {"decomposition": counted, "node_labels": "degree,triangles"},
        )
    yield _Listed("ego networks", True, {"decomposition": ego, "node_labels": own})
    if huge:
        return
    yield _Listed(
        "neighbourhood networks", True, {"decomposition": deep, "node_labels": own}, "normal"
    )
    if labelled:
        yield _Listed(
            "ego networks, degree",
            True,
            {"decomposition": ego, "node_labels": "node,log-degree:1"},
            "normal",
        )
    if attributes:
        yield _Listed(
            "ego networks, attributes",
            True,
            {"decomposition": ego, "node_labels": f"{own},attributes"},
            "normal",
        )
    if len(graphs) <= SMALL:
        yield _Listed(
            "ego networks, regularised",
            True,
            {
                "decomposition": ego,
                "node_labels": own,
                "hidden": [[16], [16], [16]],
                "weight_decay": 1.0,
                "dropout": 0.1,
                "epochs": 20,
            },
            "normal",
        )
