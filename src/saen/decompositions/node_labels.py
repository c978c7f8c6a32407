"""Node labels: what distinguishes the bottom objects of a graph decomposition."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from saen._util.arrays import (
    Array,
    Ints,
    distinct_with_inverse,
    offsets,
    segment_ids,
)
from saen._util.strings import did_you_mean
from saen.data.graphs import Direction, Graphs
from saen.data.hierarchy import Attributes
from saen.data.molecules import elements
from saen.data.vocabulary import Vocabulary
from saen.decompositions.bins import MAX_BINS, Bins
from saen.decompositions.real_attributes import real_attributes
from saen.decompositions.structure import (
    MAX_HUB_DISTANCE,
    core_numbers,
    hub_distances,
    ring_labels,
    triangle_counts,
)
from saen.errors import InputError

LABELS_HELP = "node labels, joined by commas"
DIRECTION_HELP = "edges of directed graphs to follow: both, out or in"

AUTO = "auto"
"""Stands for the labels that suit the graphs, see `resolve_labels`."""
COUNTS = ("degree", "core", "triangles")
"""Integers that the graph itself gives its nodes; `log-…:b` puts them into bins."""
HUB = "hub"
"""The distance to the nearest node of highest degree."""
RINGS = "rings"
"""Two labels: the length of the shortest ring through a node, and its number of ring edges."""
ATTRIBUTE_BINS = "attribute-bins"
"""Node attributes as labels: `attribute-bins:b` puts them into b bins, see `Bins`."""
USUAL_BINS = 16
ELEMENT = "element"
"""The element of an atom, of whose label `node` is all."""
KINDS = (
    "node",
    ELEMENT,
    *COUNTS,
    *(f"log-{count}" for count in COUNTS),
    RINGS,
    HUB,
    "distance",
    "attributes",
    ATTRIBUTE_BINS,
)

NEEDS_ROOT = "the label 'distance' needs a root: use it with ego or paths"


def resolve_labels(labels: str, graphs: Graphs) -> str:
    """The specification with `auto`, alone or among others, replaced by what suits the graphs.

    That is node labels where there are any; else degrees in four bins per doubling (plain degrees
    of hubs are nearly unique and let a model recognise single graphs), and attributes.

    >>> path = Graphs.from_edge_lists([[(0, 1), (1, 2)]])
    >>> resolve_labels("auto", path), resolve_labels("auto,core", path)
    ('log-degree:4', 'log-degree:4,core')
    """
    if graphs.node_labels is not None:
        usual = "node"
    else:
        usual = "log-degree:4" if graphs.node_attributes is None else "log-degree:4,attributes"
    return ",".join(usual if kind == AUTO else kind for kind in _listed(labels))


def check_labels(labels: str) -> None:
    """Raise for a specification with an unknown kind of label."""
    if not isinstance(labels, str):
        raise InputError(f"node_labels must be text such as 'node,degree', not {labels!r:.60}")
    known = (AUTO, *KINDS)
    for kind in _listed(labels):
        name, _, argument = kind.partition(":")
        if name not in known:
            hint = did_you_mean(name, known)
            raise InputError(f"unknown label {name!r}{hint}: choose from {', '.join(known)}")
        if argument and name == ATTRIBUTE_BINS:
            _check_bins(argument)
            continue
        if argument and not name.startswith("log-"):
            raise InputError(f"the label {name!r} takes no argument, found {kind!r}")
        if argument and not (argument.isdecimal() and int(argument) > 0):
            raise InputError(f"{name}:b needs an integer ≥ 1, the bins per doubling, not {kind!r}")


def _check_bins(argument: str) -> None:
    if not (argument.isdecimal() and len(argument) < 5 and 2 <= int(argument) <= MAX_BINS):
        raise InputError(
            f"{ATTRIBUTE_BINS}:b needs an integer from 2 to {MAX_BINS}, the number of bins, "
            f"not {argument!r:.40}"
        )


def fit_bins(graphs: Graphs, labels: str) -> Bins | None:
    """The bins of the attributes of these graphs, where they are among the labels.

    >>> path = Graphs.from_edge_lists([[(0, 1)]], node_attributes=[[0.0], [1.0]])
    >>> fit_bins(path, "degree,attribute-bins:2").edges
    (0.5,)
    """
    for kind in _listed(labels):
        name, _, argument = kind.partition(":")
        if name == ATTRIBUTE_BINS:
            return Bins.fit(real_attributes(graphs, "node"), int(argument or USUAL_BINS))
    return None


def uses_distance(labels: str) -> bool:
    """Whether the distance to a root is among the labels: see `rooted_attributes`."""
    return "distance" in _listed(labels)


def uses_bins(labels: str) -> bool:
    """Whether attributes are among the labels in bins, which are fitted."""
    return any(kind.partition(":")[0] == ATTRIBUTE_BINS for kind in _listed(labels))


def _listed(labels: str) -> list[str]:
    return [kind.strip() for kind in labels.split(",")]


def label_columns(
    graphs: Graphs, labels: str, direction: Direction = "both", bins: Bins | None = None
) -> list[Array]:
    """One array of shape (N,) per categorical label of a specification such as `node,degree`.

    `core` is the core number of a node and `triangles` the number of triangles through it, both
    in the undirected graph without loops, whatever `direction` says. `log-degree:b`, `log-core:b`
    and `log-triangles:b` are floor(b · log2(1 + x)), with b = 1 where it is left out. `rings` are
    two labels, see `ring_labels`, and `hub` is a distance, see `hub_distances`. For
    `attribute-bins:b`, `bins` are those that were fitted, by default those of these graphs.

    >>> path = Graphs.from_edge_lists([[(0, 1), (1, 2)]])
    >>> [column.tolist() for column in label_columns(path, "degree,log-degree:2,core")]
    [[1, 2, 1], [2, 3, 2], [1, 1, 1]]
    """
    check_labels(labels)
    columns: list[Array] = []
    for kind in _listed(labels):
        name, _, argument = kind.partition(":")
        count = name.removeprefix("log-")
        if name == "node":
            if graphs.node_labels is None:
                raise InputError(
                    "these graphs have no node labels: add labels to their nodes, or train with "
                    'node_labels="degree"'
                )
            columns.extend(np.atleast_2d(graphs.node_labels.T))  # one label or several
        elif name == ELEMENT:
            symbols = None if graphs.node_labels is None else elements(graphs.node_labels)
            if symbols is None:
                raise InputError(
                    "the node labels of these graphs are not atoms: 'element' has none"
                )
            columns.append(symbols)
        elif count in COUNTS:
            values = _counts(graphs, count, direction)
            columns.append(values if name == count else _log_bins(values, int(argument or 1)))
        elif name == RINGS:
            columns.extend(ring_labels(graphs))
        elif name == HUB:
            columns.append(hub_distances(graphs))
        elif name == ATTRIBUTE_BINS:
            known = fit_bins(graphs, kind) if bins is None else bins
            assert known is not None
            columns.append(known.encode(real_attributes(graphs, "node")))
        elif name == "distance":
            raise InputError(NEEDS_ROOT)
    return columns


def _counts(graphs: Graphs, name: str, direction: Direction) -> NDArray[np.int64]:
    if name == "degree":
        return graphs.degrees(direction)
    return core_numbers(graphs) if name == "core" else triangle_counts(graphs)


def _log_bins(counts: NDArray[np.int64], per_doubling: int) -> NDArray[np.int64]:
    """floor(b · log2(1 + x)) in integers: rounded logarithms differ between machines.

    >>> _log_bins(np.array([0, 1, 6, 7]), 1).tolist()
    [0, 1, 2, 3]
    """
    values, inverse = distinct_with_inverse(counts)
    bins = [((1 + count) ** per_doubling).bit_length() - 1 for count in values.tolist()]
    return np.array(bins, dtype=np.int64)[inverse]


def describe_label(labels: str, label: Any, bins: Bins | None = None) -> Any:
    """A label of such a specification in words, with the range of numbers that a bin stands for.

    >>> describe_label("log-degree:4", 13), describe_label("node,log-degree", ("C", 2))
    ('degree 9–10', ('C', 'degree 3–6'))
    >>> describe_label("node,rings", ("C", 6, 2)), describe_label("hub", 1)
    (('C', 'ring of 6', '2 ring edges'), '1 from hub')
    """
    kinds = [kind for kind in _listed(labels) if kind != "attributes"]
    values = label if isinstance(label, tuple) else (label,)
    if not any(kind.startswith(("log-", ATTRIBUTE_BINS, RINGS, HUB, *COUNTS)) for kind in kinds):
        return label
    if "distance" in kinds:  # stands last
        kinds.sort(key="distance".__eq__)
    if RINGS in kinds:  # are two
        place = kinds.index(RINGS)
        kinds[place : place + 1] = [RINGS, "ring edges"]
    if "node" in kinds:  # may be several labels
        several = ["node"] * (len(values) - len(kinds) + 1)
        place = kinds.index("node")
        kinds[place : place + 1] = several
    if len(kinds) != len(values):  # of an edge
        return label

    def text(kind: str, value: Any) -> Any:
        if kind.startswith(ATTRIBUTE_BINS):
            return value if bins is None else bins.describe(value)
        if kind.startswith("log-"):
            name, _, argument = kind.removeprefix("log-").partition(":")
            return f"{name} {_bin_range(value, int(argument or 1))}"
        if kind in COUNTS:
            return f"{kind} {value}"
        if kind == RINGS:
            return f"ring of {value}" if value else "no ring"
        if kind == "ring edges":
            return f"{value} ring edges"
        if kind == HUB:
            steps = f"{value}{'+' if value == MAX_HUB_DISTANCE else ''}"
            return "hub" if value == 0 else f"{steps} from hub"
        return value

    texts = tuple(text(kind, value) for kind, value in zip(kinds, values, strict=True))
    return texts if len(texts) > 1 else texts[0]


def _bin_range(number: int, per_doubling: int) -> str:
    """The counts x with floor(b · log2(1 + x)) = number, as text."""
    low, high = (_first_of_bin(each, per_doubling) for each in (number, number + 1))
    return str(low) if high - low <= 1 else f"{low}–{high - 1}"


def _first_of_bin(number: int, per_doubling: int) -> int:
    """The least x with (1 + x)^b ≥ 2^number."""
    x = max(int(2 ** (number / per_doubling)) - 2, 0)
    while (1 + x) ** per_doubling < 2**number:
        x += 1
    return x


def node_attributes(
    graphs: Graphs,
    labels: str,
    vocabulary: Vocabulary | None,
    direction: Direction = "both",
    bins: Bins | None = None,
) -> Attributes:
    """Bottom attributes of all nodes: categorical labels, and vectors for `attributes`.

    With a fitted `vocabulary`, labels that it lacks are unseen; without one it is built here.
    """
    columns = label_columns(graphs, labels, direction, bins)
    return _attributes(columns, vocabulary, _vectors(graphs, labels))


def rooted_attributes(
    graphs: Graphs,
    labels: str,
    vocabulary: Vocabulary | None,
    direction: Direction,
    nodes: Ints,
    distances: Ints,
    bins: Bins | None = None,
) -> tuple[Attributes, NDArray[np.int64]]:
    """Bottom attributes of nodes at distances from a root, for labels with `distance`.

    Entry e of a relation, shape (E,), holds node `nodes[e]` at `distances[e]`. Every pair that
    occurs is one bottom object; these stand in the order of nodes, then distances. Its label
    is that of the node, followed by the distance. Returns the attributes of the pairs and for
    every entry the number of its pair, shape (E,).

    >>> path = Graphs.from_edge_lists([[(0, 1), (1, 2)]])
    >>> attributes, parts = rooted_attributes(
    ...     path, "degree,distance", None, "both", np.array([1, 0, 2, 1]), np.array([0, 1, 1, 0])
    ... )
    >>> [attributes.vocabulary[code] for code in attributes.codes], parts.tolist()
    ([(1, 1), (2, 0), (1, 1)], [1, 0, 2, 1])
    """
    node, distance, parts = distance_pairs(graphs.n_nodes, nodes, distances)
    others = ",".join(kind for kind in _listed(labels) if kind != "distance")
    columns = label_columns(graphs, others, direction, bins) if others else []
    vectors = _vectors(graphs, labels)
    return (
        _attributes(
            [*(column[node] for column in columns), distance],
            vocabulary,
            None if vectors is None else vectors[node],
        ),
        parts,
    )


def distance_pairs(
    n_nodes: int, nodes: Ints, distances: Ints
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """The distinct (node, distance) pairs in order, and for every entry the number of its pair.

    >>> distance_pairs(2, np.array([1, 0, 1]), np.array([0, 2, 0]))
    (array([0, 1]), array([2, 0]), array([1, 0, 1]))
    """
    farthest = np.full(n_nodes, -1, dtype=np.int64)
    np.maximum.at(farthest, nodes, distances)
    starts = offsets(farthest + 1)
    places = starts[nodes] + distances  # a table of all distances up to each node's farthest
    used = np.zeros(starts[-1], dtype=np.bool_)
    used[places] = True
    pairs = np.flatnonzero(used)
    node = segment_ids(starts)[pairs]
    return node, pairs - starts[node], (np.cumsum(used) - 1)[places]


def _vectors(graphs: Graphs, labels: str) -> Array | None:
    """Node attributes, where they are among the labels."""
    if "attributes" not in _listed(labels):
        return None
    return real_attributes(graphs, "node")


def _attributes(
    columns: list[Array], vocabulary: Vocabulary | None, vectors: Array | None
) -> Attributes:
    if not columns:
        return Attributes(vectors=vectors)
    if vocabulary is None:
        vocabulary, codes = Vocabulary.fit(columns)
    else:
        codes = vocabulary.encode(columns)
    return Attributes(codes, vocabulary, vectors)
