"""The candidates that a blend tries by default: a list that depends on facts of the data alone.

The facts are the kind of data, which labels, attributes and directions there are, and how much of
it there is; never a dataset's name, and never the targets' values.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

from sklearn.base import clone

from saen.data.graphs import Graphs
from saen.decompositions.node_labels import ATTRIBUTE_BINS
from saen.learning.estimators import SAENClassifier, SAENRegressor
from saen.learning.network_estimator import NetworkEstimator
from saen.learning.part_counts_models import PartCountsClassifier, PartCountsRegressor
from saen.learning.selection import Candidate
from saen.learning.trainers import Estimator

BUDGETS = ("quick", "normal", "thorough")
LARGE = 2000
"""Examples from which on networks are trained longer: smaller collections are soon overfitted."""
EPOCHS_SMALL, EPOCHS_LARGE, EPOCHS_DEEP, EPOCHS_NODES = 30, 80, 40, 80
"""Of networks over ego graphs, by the size of the collection (with attributes always the second);
at most, of those over neighbourhoods, which cost several times as much; of those over single nodes,
which cost little."""
EPOCHS_DIVISOR = 4
"""Networks are also tried with their epochs divided by this."""
DENSE = 4
"""Neighbours per node, on average, from which on graphs without labels are told apart by their
triangles and exact degrees. In sparser ones, such as trees, degrees of hubs are nearly unique."""
RING_NEIGHBOURS, RING_DEGREE = 3, 16
"""Neighbours per node, on average and at most, up to which graphs with labels have rings that tell
their nodes apart, as molecules do: where there are more links, all nodes are in triangles."""
PAIR_DISTANCE = 6
"""Up to which pairs of nodes of such graphs are counted: about the width of three rings."""
MAX_EXAMPLES, MAX_ENTRIES = 20_000, 10_000_000
"""Examples, and nodes and neighbours of all graphs, above which `saen train` does not try
candidates unless it is asked to: they take hours there."""
MAX_LINKS = 100_000_000
"""Nodes and neighbours of all graphs above which networks over neighbourhoods are not tried."""
MAX_FOREST_EXAMPLES = 5_000
"""Examples above which forests are not tried: they would take minutes there."""


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
    ['part counts', 'part counts, hubs', 'part counts, sizes', 'ego networks']
    """
    if decomposition != "auto" or not isinstance(data, Graphs):
        base = {} if decomposition == "auto" else {"decomposition": decomposition}
        listed = iter([_Listed("part counts", False, base), _Listed("networks", True, base)])
    else:
        listed = _for_graphs(data, numbers)
    affordable = BUDGETS[: BUDGETS.index(budget) + 1]
    candidates = [
        named_candidate(each.name, _estimator(each, numbers, device))
        for each in listed
        if each.budget in affordable
    ]
    few = isinstance(data, Graphs) and len(data) < LARGE
    if budget == "thorough" or (budget == "normal" and few):
        candidates = _of_two_lengths(candidates)
    return candidates


def too_many(data: Any) -> str | None:
    """What of the data is too much to try candidates on without being asked to, if anything.

    >>> import saen
    >>> too_many(saen.generate_threads(40, seed=1)) is None
    True
    """
    if len(data) > MAX_EXAMPLES:
        return f"{len(data):,} examples (more than {MAX_EXAMPLES:,})"
    entries = data.n_nodes + len(data.indices) if isinstance(data, Graphs) else 0
    if entries > MAX_ENTRIES:
        return f"{entries:,} nodes and neighbours (more than {MAX_ENTRIES:,})"
    return None


def named_candidate(name: str, estimator: Estimator) -> Candidate:
    """A candidate for a blend: one network stands for several on the inner folds."""
    network = isinstance(estimator, NetworkEstimator)
    trial = clone(estimator).set_params(n_models=1) if network else estimator
    return Candidate({"candidate": name}, estimator, trial)


def shorter_networks(candidates: list[Candidate], divisor: int) -> list[Candidate]:
    """The networks among some candidates with fewer epochs, which their names say.

    >>> networks = named_candidate("networks", SAENClassifier(epochs=30))
    >>> [each.name["candidate"] for each in shorter_networks([networks], 4)]
    ['networks, 7 epochs']
    """
    return [
        named_candidate(
            f"{each.name['candidate']}, {epochs} epochs",
            clone(each.estimator).set_params(epochs=epochs),
        )
        for each in candidates
        if isinstance(each.estimator, NetworkEstimator)
        for epochs in [each.estimator.epochs // divisor]
    ]


def _of_two_lengths(candidates: list[Candidate]) -> list[Candidate]:
    """With every network once more, shorter; the two count as one where all have a weight."""
    return [
        replace(each, prior=0.5) if isinstance(each.estimator, NetworkEstimator) else each
        for each in candidates + shorter_networks(candidates, EPOCHS_DIVISOR)
    ]


def _estimator(listed: _Listed, numbers: bool, device: str) -> Estimator:
    if listed.network:
        kind: Any = SAENRegressor if numbers else SAENClassifier
        estimator: Estimator = kind(**listed.arguments, device=device)
    else:
        kind = PartCountsRegressor if numbers else PartCountsClassifier
        estimator = kind(**listed.arguments)
    return estimator


def _for_graphs(graphs: Graphs, numbers: bool) -> Iterator[_Listed]:
    labelled, n_links = graphs.node_labels is not None, len(graphs.indices)
    dense, ringed = n_links >= DENSE * graphs.n_nodes, labelled and _has_rings(graphs)
    small = len(graphs) < LARGE
    own = "node" if labelled else "log-degree:4"
    epochs = EPOCHS_SMALL if small else EPOCHS_LARGE

    def counts(name: str, labels: str, budget: str = "quick", **others: Any) -> _Listed:
        settings = {"decomposition": "neighbourhoods", "node_labels": labels, **others}
        return _Listed(name, False, settings, budget)

    def networks(name: str, labels: str, budget: str, **others: Any) -> _Listed:
        settings = {"decomposition": "ego", "node_labels": labels, "epochs": epochs, **others}
        return _Listed(name, True, settings, budget)

    yield counts("part counts", own if labelled else "log-degree:2")
    if ringed:
        scaled = "node,rings,log-degree:1"
        yield counts("part counts, rings", scaled)
    elif labelled:
        scaled = "node,log-degree:1"
        yield counts("part counts, coarse degree", scaled)
    elif dense:
        scaled = "degree"
        yield counts("part counts, triangles", "degree,triangles")
    else:
        scaled = "log-degree:2,hub"
        yield counts("part counts, hubs", "log-degree:1,hub")
    # Some numbers do not grow with the graph, as means over its nodes. For classes, rows of length
    # 1 hide how large a graph is, which alone tells some of them apart.
    other, norm = ("shares", "l2") if numbers else ("sizes", None)
    yield counts(f"part counts, {other}", scaled, norm=norm)
    if ringed and small:
        pairs = f"pairs(max_distance={PAIR_DISTANCE})"
        yield counts("part counts, pairs", scaled, decomposition=pairs)
        yield counts(f"part counts, pairs, {other}", scaled, decomposition=pairs, norm=norm)
    if len(graphs) <= MAX_FOREST_EXAMPLES:
        labels = "node,rings" if ringed else "node" if labelled else "log-degree:2"
        budget = "normal" if labelled and small else "thorough"
        yield counts("part counts, forest", labels, budget, model="forest")
    yield networks("ego networks", own, "quick")
    if labelled and small:
        bag = {"decomposition": "nodes", "epochs": EPOCHS_NODES}
        yield networks("node networks", "node", "normal", **bag)
    if labelled or dense:
        yield networks("ego networks, degree", f"{own},degree", "normal")
    if labelled and not ringed:
        yield networks("ego networks, triangles", f"{own},log-triangles:1", "normal")
    if graphs.n_nodes + n_links <= MAX_LINKS:
        deep = {
            "decomposition": f"neighbourhoods(depth={4 if labelled else 3})",
            "epochs": min(epochs, EPOCHS_DEEP),
        }
        labels = "node,rings" if ringed else own if labelled or dense else "log-degree:2,hub"
        yield networks("neighbourhood networks", labels, "normal", **deep)
    if graphs.node_attributes is not None:
        binned = f"node,{ATTRIBUTE_BINS}" if labelled else ATTRIBUTE_BINS
        yield counts("part counts, attribute bins", binned)
        # Attributes say more than labels, and take longer to learn.
        vectors = f"{own},attributes"
        yield networks("ego networks, attributes", vectors, "normal", epochs=EPOCHS_LARGE)
        yield networks(
            "neighbourhood networks, attributes",
            vectors,
            "normal" if small else "thorough",
            decomposition="neighbourhoods(depth=2)",
            epochs=EPOCHS_DEEP,
        )
    if graphs.edge_attributes is not None:
        # Bins tell parts apart as labels do: with fine degrees, hardly any two would be the same.
        coarse = "node" if labelled else "log-degree:1"
        weighted = "neighbourhoods(edges=bins)"
        yield counts("part counts, edge bins", coarse, decomposition=weighted)
        yield networks(
            "edge networks, attributes", f"{coarse},attributes", "quick", decomposition="edges"
        )
    if graphs.edge_labels is not None or graphs.directed:
        plain = "neighbourhoods(edges=none)"
        yield counts("part counts, edges ignored", own, "thorough", decomposition=plain)
    narrow = {"hidden": [[16], [16], [16]], "weight_decay": 1.0, "dropout": 0.1, "epochs": 20}
    yield networks("ego networks, regularised", own, "normal" if small else "thorough", **narrow)


def _has_rings(graphs: Graphs) -> bool:
    """Whether rings are looked for: few nodes have more neighbours than a chain."""
    degrees = graphs.degrees()
    few = degrees.sum() < RING_NEIGHBOURS * len(degrees)
    return bool(few) and int(degrees.max(initial=0)) <= RING_DEGREE
