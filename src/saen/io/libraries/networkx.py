"""Graphs from and to networkx."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import ArrayLike

from saen._util.caller import warn_caller
from saen._util.strings import plural
from saen.data.graphs import Graphs
from saen.errors import InputError
from saen.io.libraries.plain_graphs import check_both_directions, plain_graphs
from saen.io.parsing.columns import LABEL, Choice, Items, text_columns

AUTO = "auto"

MAX_NAMES = 5
"""Attributes that are not read of which a warning gives the names."""

_Row = tuple[int, Any, Mapping[str, Any]]
"""A node or an edge: its graph, its name and its attributes."""


def from_networkx(
    graphs: Iterable[nx.Graph[Any]],
    *,
    node_label: str | Sequence[str] | None = AUTO,
    edge_label: str | Sequence[str] | None = AUTO,
    node_attributes: Sequence[str] | None = AUTO,
    edge_attributes: Sequence[str] | None = AUTO,
    targets: ArrayLike | None = None,
) -> Graphs:
    """Build from networkx graphs, which are not modified.

    Nodes are numbered in the order in which networkx iterates over them. An attribute that is read
    must be there for all nodes (edges) of all graphs; text that is missing is empty.

    Parameters
    ----------
    graphs : Iterable[nx.Graph[Any]]
        The graphs, all directed or all undirected, without parallel edges.
    node_label : str | Sequence[str] | None, default=AUTO
        The node attributes that hold labels: integers, strings, or tuples of one of these; each is
        a label of its own. By default `"label"` and all attributes of text; None reads none.
    edge_label : str | Sequence[str] | None, default=AUTO
        The same for edges.
    node_attributes : Sequence[str] | None, default=AUTO
        The node attributes that hold numbers or flat sequences of numbers, which become columns in
        the order given. By default all of these, in alphabetical order; None reads none.
    edge_attributes : Sequence[str] | None, default=AUTO
        The same for edges.
    targets : ArrayLike | None, default=None
        One target per graph.

    Raises
    ------
    InputError
        If an attribute is missing or has the wrong type; the message names graph and node.

    Examples
    --------
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
        **_columns("node", nodes, _names(node_label), _names(node_attributes)),
        **_columns("edge", edges, _names(edge_label), _names(edge_attributes)),
    )


def to_networkx(graphs: Graphs) -> list[nx.Graph[int]]:
    """Convert each graph to a networkx `Graph` (or `DiGraph`) with nodes 0 … n - 1.

    Labels are stored as the attribute `"label"` of nodes and edges (a tuple if there are several
    columns), real attributes as a list of floats under `"attributes"`, and the target as
    `graph.graph["target"]`. With these names, `from_networkx` restores everything.

    Parameters
    ----------
    graphs : Graphs
        The graphs.

    Raises
    ------
    InputError
        If the two directions of an undirected edge have different labels or attributes, which a
        networkx graph cannot store.

    Examples
    --------
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


def _names(given: str | Sequence[str] | None) -> list[str] | None:
    """The attributes that are named; None where they are chosen automatically."""
    if isinstance(given, str):
        return None if given == AUTO else [given]
    return [] if given is None else list(given)


def _columns(
    what: str, rows: list[_Row], labels: list[str] | None, attributes: list[str] | None
) -> dict[str, Any]:
    """Labels and attributes of the nodes or the edges of all graphs, where there are any."""
    if not rows:
        return {}
    data = [own for _, _, own in rows]
    kinds = text_columns(data)
    automatic = labels is None and attributes is None
    if attributes is None:  # sequences of numbers, too, but only what all have
        numbers = [name for name in kinds if name not in (LABEL, *(labels or ()))]
        attributes = [name for name in numbers if _all_numbers(data, name)]
    items = Items(what, data, lambda row: f"graph {rows[row][0]}, {what} {rows[row][1]!r}")
    choice = Choice.of(what, kinds, labels, attributes)
    try:
        read, _ = items.chosen(choice)
    except InputError as error:
        raise InputError(
            f"{error} (name what to read as {what}_label and {what}_attributes, or pass None)"
        ) from None
    if choice.unread and automatic:
        listed = ", ".join(repr(name) for name in choice.unread[:MAX_NAMES])
        others = len(choice.unread) - MAX_NAMES
        more = f" and {plural(others, 'other')}" if others > 0 else ""
        warn_caller(f"attributes of {what}s not read: {listed}{more}")
    return read


def _all_numbers(data: list[Mapping[str, Any]], name: str) -> bool:
    """Whether all have a number, or all a sequence of numbers."""
    values = [own.get(name) for own in data]
    plain = [value.tolist() if isinstance(value, np.ndarray) else value for value in values]
    flat = [v for value in plain for v in (value if isinstance(value, list | tuple) else [value])]
    return all(isinstance(value, int | float | np.number) for value in flat)


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
