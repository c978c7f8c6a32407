"""From `Graphs` to one object per graph, node and edge, for formats that have these."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from saen._util.arrays import Array, segment_ids
from saen.data.adjacency import by_column
from saen.data.graphs import Graphs
from saen.errors import InputError
from saen.io.parsing.records import EDGE_COLUMNS


def check_both_directions(graphs: Graphs, library: str) -> None:
    """Raise if the two directions of an undirected edge differ in labels or attributes.

    For formats that store an undirected edge once.
    """
    opposite = by_column(graphs.indptr, graphs.indices)
    for key in EDGE_COLUMNS:
        column = getattr(graphs, key)
        if column is None:
            continue
        differ = column != column[opposite]
        if column.dtype.kind == "f":
            differ &= ~(np.isnan(column) & np.isnan(column[opposite]))
        if differ.any():
            entry = int(np.flatnonzero(differ.reshape(len(column), -1).any(axis=1))[0])
            source, target = int(segment_ids(graphs.indptr)[entry]), int(graphs.indices[entry])
            graph = int(segment_ids(graphs.node_offsets)[source])
            start = int(graphs.node_offsets[graph])
            raise InputError(
                f"graph {graph}: the two directions of edge {source - start} – {target - start} "
                f"have different {key.replace('_', ' ')}, but {library} stores only one"
            )


@dataclass(frozen=True)
class PlainGraph:
    """One graph as Python values, with undirected edges once: one row per node and per edge."""

    size: int
    pairs: list[list[int]]
    nodes: dict[str, list[Any]]
    edges: dict[str, list[Any]]
    target: Any
    id: int | str
    extra: dict[str, Any]

    def node_data(self) -> list[dict[str, Any]]:
        """`label` and `attributes` of each node, as far as there are any."""
        return _dictionaries(self.nodes, self.size)

    def edge_data(self) -> list[dict[str, Any]]:
        """`label` and `attributes` of each edge, as far as there are any."""
        return _dictionaries(self.edges, len(self.pairs))


def plain_graphs(graphs: Graphs) -> Iterator[PlainGraph]:
    """Each graph as Python values, for formats and libraries that have one object per node.

    >>> [edge] = plain_graphs(Graphs.from_edge_lists([[(0, 1)]], node_labels=["C", "O"]))
    >>> edge.pairs, edge.nodes, edge.edge_data()
    ([[0, 1]], {'label': ['C', 'O']}, [{}])
    """
    listed = slice(None) if graphs.directed else segment_ids(graphs.indptr) <= graphs.indices
    node_columns = {"label": graphs.node_labels, "attributes": graphs.node_attributes}
    edge_columns = {
        key: None if column is None else column[listed]
        for key, column in (("label", graphs.edge_labels), ("attributes", graphs.edge_attributes))
    }
    ends = graphs.edges()
    extra = graphs.extra or {}
    first_nodes = graphs.node_offsets.tolist()
    first_edges = np.searchsorted(ends[:, 0], graphs.node_offsets).tolist()
    for graph in range(len(graphs)):
        nodes = slice(first_nodes[graph], first_nodes[graph + 1])
        edges = slice(first_edges[graph], first_edges[graph + 1])
        yield PlainGraph(
            nodes.stop - nodes.start,
            (ends[edges] - nodes.start).tolist(),
            _plain_columns(node_columns, nodes),
            _plain_columns(edge_columns, edges),
            None if graphs.targets is None else graphs.targets[graph].tolist(),
            graphs.ids[graph].item(),
            {name: column[graph].item() for name, column in extra.items()},
        )


def _plain_columns(columns: Mapping[str, Array | None], rows: slice) -> dict[str, list[Any]]:
    return {
        key: [*map(tuple, column[rows].tolist())]
        if key == "label" and column.ndim == 2
        else column[rows].tolist()
        for key, column in columns.items()
        if column is not None
    }


def _dictionaries(columns: Mapping[str, list[Any]], count: int) -> list[dict[str, Any]]:
    if not columns:
        return [{} for _ in range(count)]
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
