"""Graphs from and to networkx."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import ArrayLike

from saen._util.arrays import Array
from saen.data.graphs import Graphs
from saen.errors import InputError
from saen.io.records import check_both_directions, plain_graphs

_LABEL = "label"


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
    nodes, edges = _Items("node", node_label), _Items("edge", edge_label)
    sizes: list[int] = []
    pairs: list[tuple[int, int]] = []
    directed: bool | None = None
    for number, graph in enumerate(graphs):
        _check_graph(number, graph, directed)
        directed = graph.is_directed()
        start = len(nodes.data)
        position = dict(zip(graph, range(start, start + len(graph)), strict=True))
        sizes.append(len(graph))
        nodes.add(number, list(graph), [graph.nodes[node] for node in graph])
        ends = [(source, target) for source, target in graph.edges]
        pairs.extend((position[source], position[target]) for source, target in ends)
        edges.add(number, ends, [data for _, _, data in graph.edges(data=True)])
    return Graphs.from_edges(
        np.array(pairs, dtype=np.int64).reshape(-1, 2),
        np.array(sizes, dtype=np.int64),
        directed=bool(directed),
        node_labels=nodes.labels(),
        node_attributes=nodes.attributes(node_attributes),
        edge_labels=edges.labels(),
        edge_attributes=edges.attributes(edge_attributes),
        targets=targets,
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


@dataclass
class _Items:
    """The nodes or the edges of all graphs: their graphs, names and attributes."""

    what: str
    label: str | None

    def __post_init__(self) -> None:
        self.names: list[tuple[int, Any]] = []
        self.data: list[Mapping[str, Any]] = []

    def add(self, graph: int, names: list[Any], data: list[Mapping[str, Any]]) -> None:
        self.names.extend((graph, name) for name in names)
        self.data.extend(data)

    def place(self, row: int) -> str:
        graph, name = self.names[row]
        return f"graph {graph}, {self.what} {name!r}"

    def values(self, name: str, hint: str = "") -> list[Any]:
        for row, data in enumerate(self.data):
            if name not in data:
                raise InputError(f"{self.place(row)}: no attribute {name!r}{hint}")
        return [data[name] for data in self.data]

    def labels(self) -> Array | None:
        if self.label is None or not self.data:
            return None
        if not any(self.label in data for data in self.data):
            if self.label == _LABEL:
                return None
            raise InputError(
                f"no {self.what} has an attribute {self.label!r} "
                f"(pass {self.what}_label=None to read no labels)"
            )
        values = self.values(
            self.label, f", but others have one (pass {self.what}_label=None to read no labels)"
        )
        kinds = [_kind_of_label(value) for value in values]
        for row, kind in enumerate(kinds):
            if kind is None:
                raise InputError(
                    f"{self.place(row)}: the label {values[row]!r} is neither an integer nor "
                    f"a string (for real numbers, pass {self.what}_attributes=[{self.label!r}])"
                )
            if kind != kinds[0]:
                raise InputError(
                    f"{self.place(row)}: the label {values[row]!r} is {_describe(kind)}, but "
                    f"that of {self.place(0)} is {_describe(kinds[0])}"
                )
        return np.array(values)

    def attributes(self, names: Sequence[str] | None) -> Array | None:
        if names is None:
            return None
        if isinstance(names, str):
            raise InputError(f"{self.what}_attributes must be a list of names: pass [{names!r}]")
        columns = [self._columns(name) for name in names]
        return np.concatenate(columns, axis=1) if columns else None

    def _columns(self, name: str) -> Array:
        """The named attribute of all nodes or edges as floats, shape (n, k)."""
        rows: list[Array] = []
        for row, value in enumerate(self.values(name)):
            try:
                numbers = np.atleast_1d(np.asarray(value))
            except ValueError:  # nested, with parts of different lengths
                numbers = np.empty((0, 0))
            if numbers.ndim != 1 or numbers.dtype.kind not in "iufb":
                raise InputError(
                    f"{self.place(row)}: the attribute {name!r} must be a number or a flat "
                    f"sequence of numbers, not {value!r}"
                )
            if rows and len(numbers) != len(rows[0]):
                raise InputError(
                    f"{self.place(row)}: {len(numbers)} numbers in the attribute {name!r}, but "
                    f"{len(rows[0])} in that of {self.place(0)}"
                )
            rows.append(numbers)
        return np.array(rows, dtype=np.float64).reshape(len(rows), -1 if rows else 1)


def _kind_of_label(value: Any) -> tuple[type, int | None] | None:
    """`int` or `str`, and the length of a tuple; None for anything else."""
    if isinstance(value, tuple):
        kinds = {_kind_of_label(part) for part in value}
        if len(kinds) != 1:
            return None
        [kind] = kinds
        return None if kind is None or kind[1] is not None else (kind[0], len(value))
    if isinstance(value, str):
        return (str, None)
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        return (int, None)
    return None


def _describe(kind: tuple[type, int | None] | None) -> str:
    assert kind is not None
    plural, one = {int: ("integers", "an integer"), str: ("strings", "a string")}[kind[0]]
    return one if kind[1] is None else f"a tuple of {kind[1]} {plural}"


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
