"""Graphs from and to networkx."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import ArrayLike

from saen.data.graphs import Graphs
from saen.errors import InputError
from saen.io.libraries.plain_graphs import check_both_directions, plain_graphs
from saen.io.parsing.columns import Items

_LABEL = "label"

_Row = tuple[int, Any, Mapping[str, Any]]
"""A node or an edge: its graph, its name and its attributes."""


def from_networkx(
    graphs: Iterable[nx.Graph[Any]],
    *,
    node_label: str | None = _LABEL,
    edge_label: str | None = _LABEL,
    node_attributes: Sequence[str] | None = None,
    edge_attributes: Sequence[str] | None = None,
    targets: ArrayLike | None = None,
) -> Graphs:
    """Build from networkx graphs, which are not modified.

    Nodes are numbered in the order in which networkx iterates over them. The graphs must be all
    directed or all undirected, and without parallel edges.

    `node_label` and `edge_label` name the attribute that holds the labels: integers, strings, or
    tuples of one of these. The default `"label"` is optional: either all nodes (edges) of all
    graphs have it, or none. Any other name must exist. `None` reads no labels. `node_attributes`
    and `edge_attributes` name attributes that hold numbers or flat sequences of numbers, which
    become columns in the order given. `targets` has one value per graph.

    Raises `InputError`, naming graph and node, if an attribute is missing or has the wrong type.

    >>> import networkx as nx
    >>> water = nx.Graph([("H1", "O"), ("H2", "O")])
    >>> nx.set_node_attributes(water, {"H1": "H", "H2": "H", "O": "O"}, "label")
    >>> graphs = from_networkx([water], targets=["wet"])
    >>> graphs
    Graphs(1 graph, 3 nodes, 2 edges, undirected; 1 class, 2 node labels)
    >>> graphs.node_labels.tolist()
    ['H', 'O', 'H']
    """
    if isinstance(graphs, nx.Graph):
        raise InputError("expected a list of networkx graphs, found a single one: pass [graph]")
    nodes: list[_Row] = []
    edges: list[_Row] = []
    sizes: list[int] = []
    pairs: list[tuple[int, int]] = []
    directed: bool | None = None
    for number, graph in enumerate(graphs):
        _check_graph(number, graph, directed)
        directed = graph.is_directed()
        position = {node: place for place, node in enumerate(graph, start=len(nodes))}
        sizes.append(len(graph))
        pairs += [(position[source], position[target]) for source, target in graph.edges]
        nodes += [(number, node, data) for node, data in graph.nodes(data=True)]
        edges += [(number, (u, v), data) for u, v, data in graph.edges(data=True)]
    return Graphs.from_edges(
        np.array(pairs, dtype=np.int64).reshape(-1, 2),
        np.array(sizes, dtype=np.int64),
        directed=bool(directed),
        targets=targets,
        **_columns("node", nodes, node_label, node_attributes),
        **_columns("edge", edges, edge_label, edge_attributes),
    )


def to_networkx(graphs: Graphs) -> list[nx.Graph[int]]:
    """Convert each graph to a networkx `Graph` (or `DiGraph`) with nodes 0 … n - 1.

    Labels are stored as the attribute `"label"` of nodes and edges (a tuple if there are several
    columns), real attributes as a list of floats under `"attributes"`, and the target as
    `graph.graph["target"]`. With these names, `from_networkx` restores everything.

    Raises `InputError` if the two directions of an undirected edge have different labels or
    attributes, which a networkx graph cannot store.

    >>> [triangle] = to_networkx(Graphs.from_edge_lists([[(0, 1), (1, 2), (2, 0)]], targets=["3"]))
    >>> triangle.edges
    EdgeView([(0, 1), (0, 2), (1, 2)])
    >>> triangle.graph["target"]
    '3'
    """
    kind = nx.DiGraph if graphs.directed else nx.Graph
    if not graphs.directed:
        check_both_directions(graphs, "networkx")
    out = []
    for plain in plain_graphs(graphs):
        graph: nx.Graph[int] = kind() if graphs.targets is None else kind(target=plain.target)
        graph.add_nodes_from(zip(range(plain.size), plain.node_data(), strict=True))
        edges = zip(plain.pairs, plain.edge_data(), strict=True)
        graph.add_edges_from((source, target, data) for (source, target), data in edges)
        out.append(graph)
    return out


def _columns(
    what: str, rows: list[_Row], label: str | None, attributes: Sequence[str] | None
) -> dict[str, Any]:
    """Labels and attributes of the nodes or the edges of all graphs, where there are any."""
    if isinstance(attributes, str):
        raise InputError(f"{what}_attributes must be a list of names: pass [{attributes!r}]")
    if isinstance(label, list | tuple | set):
        raise InputError(
            f"{what}_label must be the name of one attribute, not {label!r:.80} (labels of several "
            "parts are tuples under one name)"
        )
    if not rows:
        return {}
    items = Items(
        what,
        [data for _, _, data in rows],
        lambda row: f"graph {rows[row][0]}, {what} {rows[row][1]!r}",
    )
    try:
        labels = None if label is None else items.labels(label)
        if labels is None and label not in (None, _LABEL):
            raise InputError(f"no {what} has an attribute {label!r}")
    except InputError as error:
        raise InputError(
            f"{error} (pass {what}_label=None to read no labels, or numbers as {what}_attributes)"
        ) from None
    tables = []
    for name in attributes or ():
        tables.append(items.numbers(name))
        if tables[-1] is None:
            raise InputError(f"no {what} has an attribute {name!r}")
    stacked: Any = np.concatenate(tables, axis=1) if tables else None  # type: ignore[arg-type]
    return {f"{what}_labels": labels, f"{what}_attributes": stacked}


def _check_graph(number: int, graph: Any, directed: bool | None) -> None:
    if not isinstance(graph, nx.Graph):
        raise InputError(f"graph {number}: expected a networkx graph, found {type(graph).__name__}")
    if graph.is_multigraph():
        raise InputError(
            f"graph {number} is a {type(graph).__name__}: merge its parallel edges with "
            f"networkx.{'DiGraph' if graph.is_directed() else 'Graph'}(graph)"
        )
    if directed is not None and graph.is_directed() != directed:
        raise InputError(
            f"graph {number} is {'' if graph.is_directed() else 'un'}directed, but earlier graphs "
            "are not: convert them with to_directed() or to_undirected()"
        )
