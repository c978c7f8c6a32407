"""Edge labels and directions, as roles of neighbours or as objects of their own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from saen._util.arrays import Array, offsets, segment_ids
from saen._util.strings import some_of
from saen.data.adjacency import by_column
from saen.data.graphs import Direction, Graphs
from saen.data.hierarchy import Attributes
from saen.data.vocabulary import UNSEEN, Value, Vocabulary
from saen.decompositions.bins import Bins
from saen.decompositions.node_labels import label_columns
from saen.decompositions.real_attributes import real_attributes
from saen.errors import InputError

EDGES_HELP = (
    "use of edges: none, roles (their labels and directions), auto (roles where there are any), "
    "bins (roles, with edge attributes in four bins) or objects (parts themselves)"
)
EDGE_MODES = ("none", "roles", "auto", "bins", "objects")
EDGE_BINS = 4


@dataclass(frozen=True)
class Links:
    """The neighbours of every node, without loops: one CSR over all nodes.

    `edges` is the number of each link's edge in `graphs.edges()`; `kinds` holds the columns that
    distinguish links: edge labels where there are any, and `out` or `in` where links of directed
    graphs are followed both ways. A node that is a neighbour both ways then appears twice.
    """

    indptr: NDArray[np.int64]
    neighbours: NDArray[np.int64]
    edges: NDArray[np.int64]
    kinds: list[Array]

    @staticmethod
    def of(graphs: Graphs, direction: Direction = "both") -> Links:
        """The links along edges of one direction, sorted by node, then neighbour.

        >>> arrow = Graphs.from_edge_lists([[(0, 1)]], directed=True)
        >>> links = Links.of(arrow)
        >>> links.neighbours.tolist(), [kind.tolist() for kind in links.kinds]
        ([1, 0], [['out', 'in']])
        """
        rows = segment_ids(graphs.indptr)
        columns = graphs.indices.astype(np.int64)
        entries, ways = np.arange(len(columns)), None
        if graphs.directed and direction == "in":
            rows, columns = columns, rows
        elif graphs.directed and direction == "both":
            rows, columns = np.concatenate([rows, columns]), np.concatenate([columns, rows])
            ways = np.repeat(WAYS, len(entries))
            entries = np.tile(entries, 2)
        proper = np.flatnonzero(rows != columns)
        if graphs.directed and direction != "out":
            proper = proper[np.lexsort((columns[proper], rows[proper]))]
        kinds: list[Array] = []
        if graphs.edge_labels is not None:
            kinds.extend(np.atleast_2d(graphs.edge_labels[entries[proper]].T))
        if ways is not None:
            kinds.append(ways[proper])
        return Links(
            offsets(np.bincount(rows[proper], minlength=graphs.n_nodes)),
            columns[proper],
            _edge_of_entry(graphs)[entries[proper]],
            kinds,
        )


def coded_links(
    graphs: Graphs, direction: Direction, kinds: Vocabulary | None
) -> tuple[Links, Vocabulary, NDArray[np.int32]] | None:
    """Links, their kinds and the code of every link's kind; None where links have no kinds.

    With fitted `kinds`, others are `UNSEEN`; raises `InputError` for graphs without any.
    """
    links = Links.of(graphs, direction)
    if kinds is not None and not len(links.neighbours):  # nothing says of what make these are
        return links, kinds, np.empty(0, np.int32)
    if links.kinds:
        if kinds is not None and len(kinds):
            _check_kinds(links.kinds, kinds, graphs.directed and direction == "both")
        known = Vocabulary.fit(links.kinds)[0] if kinds is None else kinds
        return links, known, known.encode(links.kinds)
    if kinds is None:
        return None
    raise InputError(
        "these graphs have neither edge labels nor directions, but the decomposition was fitted "
        f"on edges of the kinds {', '.join(kind_names(kinds))}"
    )


WAYS = ("out", "in")


def _check_kinds(columns: list[Array], kinds: Vocabulary, directed: bool) -> None:
    """Raise `InputError` for kinds of another make, none of which could be known.

    Graphs that are read as undirected, or without labels, would else be predicted as if they had
    no edges at all. If links are `directed`, the last column is their way.
    """
    values = [value if isinstance(value, tuple) else (value,) for value in kinds]
    fitted_on_ways = all(value[-1] in WAYS for value in values)
    # Labels of undirected edges may happen to be the words of ways.
    other = not directed and len(columns[-1]) > 0 and not np.isin(columns[-1], WAYS).any()
    if len(values[0]) != len(columns) or (other if fitted_on_ways else directed):
        advice = "read them as the training data"
        if directed and not fitted_on_ways:
            advice += ", whose edges have no direction"
        elif fitted_on_ways and not directed:
            advice += ", whose edges have a direction"
        raise InputError(
            "edge labels and directions of these graphs are not of the kinds that the "
            f"decomposition was fitted on ({some_of(kind_names(kinds), 4)}): {advice}"
        )


@dataclass(frozen=True)
class KnownLinks:
    """The links of known kinds, sorted by node: both ends, the code of the kind, all roles."""

    nodes: NDArray[np.int64]
    neighbours: NDArray[np.int64]
    codes: NDArray[np.int32]
    roles: tuple[str, ...]

    @staticmethod
    def of(graphs: Graphs, direction: Direction, kinds: Vocabulary | None) -> KnownLinks | None:
        """Links with the role `elem KIND`; None where links have no kinds (see `coded_links`)."""
        coded = coded_links(graphs, direction, kinds)
        if coded is None:
            return None
        links, known, codes = coded
        seen = codes != UNSEEN
        roles = tuple(f"elem {kind}" for kind in kind_names(known))
        nodes = segment_ids(links.indptr)[seen]
        return KnownLinks(nodes, links.neighbours[seen], codes[seen], roles)


def kind_names(kinds: Vocabulary) -> list[str]:
    """The names of the kinds of links in roles.

    >>> kind_names(Vocabulary([(1, "out"), (1, "in")]))
    ['1 in', '1 out']
    """
    return [
        " ".join(map(str, value)) if isinstance(value, tuple) else str(value) for value in kinds
    ]


def with_binned_edges(graphs: Graphs, bins: Bins | None) -> Graphs:
    """The graphs with the bins of their edge attributes as another edge label.

    The bins are by default those of these graphs.

    >>> weighted = Graphs.from_edge_lists([[(0, 1), (1, 2)]], edge_attributes=[[0.0], [1.0]])
    >>> with_binned_edges(weighted, Bins(edges=(0.5,))).edge_labels.tolist()
    ['< 0.5', '< 0.5', '≥ 0.5', '≥ 0.5']
    """
    if graphs.edge_attributes is None:
        if bins is not None and not len(graphs.indices):
            return graphs
        raise InputError("edges='bins' needs edge attributes, but these graphs have none")
    values = real_attributes(graphs, "edge")
    known = Bins.fit(values, EDGE_BINS) if bins is None else bins
    codes = known.encode(values)
    names = np.array([known.describe(code) for code in range(int(codes.max(initial=-1)) + 1)])
    own = names[codes] if len(codes) else np.zeros(0, dtype=np.str_)
    if graphs.edge_labels is not None:
        own = np.column_stack([graphs.edge_labels.astype(np.str_), own])
    return graphs.with_columns(edge_labels=own)


def edge_values(
    graphs: Graphs, labels: str, direction: Direction = "both", bins: Bins | None = None
) -> tuple[NDArray[np.int64], list[Value]]:
    """The label of every edge of `graphs.edges()`: codes into a list of distinct values.

    A value is `("edge", label of one end, label of the other)`, followed by the edge's own labels.
    The ends of undirected edges stand in the order of the vocabulary, those of directed ones from
    source to target.

    >>> path = Graphs.from_edge_lists([[(0, 1), (1, 2)]])
    >>> edge_values(path, "degree")
    (array([0, 0]), [('edge', 1, 2)])
    """
    ends, codes = Vocabulary.fit(label_columns(graphs, labels, direction, bins))
    pairs = codes[graphs.edges()].astype(np.int64).reshape(-1, 2)
    if not graphs.directed:
        pairs.sort(axis=1)
    columns: list[Array] = [*pairs.T]
    names: list[tuple[Any, ...]] = [()]
    if graphs.edge_labels is not None:
        own, labelled = Vocabulary.fit(list(np.atleast_2d(graphs.edge_labels.T)))
        names = [value if isinstance(value, tuple) else (value,) for value in own]
        # Where the two directions of an undirected edge disagree, the first label counts.
        first = np.full(len(pairs), len(names))
        np.minimum.at(first, _edge_of_entry(graphs), labelled)
        columns.append(first)
    rows, local = Vocabulary.fit(columns)
    values: list[Value] = [
        ("edge", ends[a], ends[b], *names[label[0] if label else 0])
        for a, b, *label in list[Any](rows)
    ]
    return local.astype(np.int64), values


def nodes_and_edges(
    graphs: Graphs,
    labels: str,
    vocabulary: Vocabulary | None,
    direction: Direction = "both",
    bins: Bins | None = None,
) -> Attributes:
    """Bottom attributes of all nodes, followed by all edges of `graphs.edges()`."""
    columns = label_columns(graphs, labels, direction, bins)
    if "attributes" in [kind.strip() for kind in labels.split(",")]:
        raise InputError("edges as objects have no node attributes: leave 'attributes' out")
    own, codes = Vocabulary.fit(columns)
    local, values = edge_values(graphs, labels, direction, bins)
    known = vocabulary if vocabulary is not None else Vocabulary([*own, *values])
    return Attributes(np.concatenate([known.codes(own)[codes], known.codes(values)[local]]), known)


def _edge_of_entry(graphs: Graphs) -> NDArray[np.int64]:
    """For every adjacency entry the number of its edge in `graphs.edges()`."""
    if graphs.directed:
        return np.arange(len(graphs.indices))
    # Entries are sorted and stand in both directions.
    reverse = by_column(graphs.indptr, graphs.indices)
    listed = segment_ids(graphs.indptr) <= graphs.indices
    number = np.cumsum(listed) - 1
    return np.where(listed, number, number[reverse])
