"""Vertex labels: what the bottom objects of a graph decomposition are told apart by."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from saen.arrays import Array
from saen.errors import InputError
from saen.graphs import Direction, Graphs
from saen.hierarchy import Attributes
from saen.text import did_you_mean
from saen.vocabulary import Vocabulary

LABELS = "vertex labels, joined by commas"
DIRECTIONS = "edges of directed graphs to follow: both, out or in"
"""Help of the parameters that graph decompositions share."""

KINDS = ("node", "degree", "log-degree", "attributes")


def resolve_labels(labels: str, graphs: Graphs) -> str:
    """The labels that `"auto"` stands for: node labels where there are any, else the degree."""
    if labels != "auto":
        return labels
    return "node" if graphs.node_labels is not None else "degree"


def check_labels(labels: str) -> None:
    """Raise for a specification that names no known kind of label."""
    if labels == "auto":
        return
    for kind in labels.split(","):
        name, _, argument = kind.strip().partition(":")
        if name not in KINDS:
            hint = did_you_mean(name, KINDS)
            raise InputError(f"unknown label {name!r}{hint}: choose from {', '.join(KINDS)}")
        if argument and name != "log-degree":
            raise InputError(f"the label {name!r} takes no argument, found {kind!r}")
        if argument and not (argument.isdecimal() and int(argument) > 0):
            raise InputError(
                f"log-degree:b needs a whole number of bins per doubling, found {kind!r}"
            )


def label_columns(graphs: Graphs, labels: str, direction: Direction = "both") -> list[Array]:
    """One array of shape (N,) per categorical label of a specification such as `node,degree`.

    `log-degree:b` is floor(b · log2(1 + degree)), `log-degree` is `log-degree:1`.

    >>> path = Graphs.from_edge_lists([[(0, 1), (1, 2)]])
    >>> [column.tolist() for column in label_columns(path, "degree,log-degree:2")]
    [[1, 2, 1], [2, 3, 2]]
    """
    check_labels(labels)
    columns: list[Array] = []
    for kind in labels.split(","):
        name, _, argument = kind.strip().partition(":")
        if name == "node":
            if graphs.node_labels is None:
                raise InputError("these graphs have no node labels: use labels='degree'")
            columns.extend(np.atleast_2d(graphs.node_labels.T))  # one label or several
        elif name == "degree":
            columns.append(graphs.degrees(direction))
        elif name == "log-degree":
            columns.append(_log_bins(graphs.degrees(direction), int(argument or 1)))
    return columns


def _log_bins(degrees: NDArray[np.int64], per_doubling: int) -> NDArray[np.int64]:
    """floor(b · log2(1 + degree)) in whole numbers: a rounded logarithm is not everywhere the same.

    >>> _log_bins(np.array([0, 1, 6, 7]), 1).tolist()
    [0, 1, 2, 3]
    """
    values, inverse = np.unique(degrees, return_inverse=True)
    bins = [((1 + degree) ** per_doubling).bit_length() - 1 for degree in values.tolist()]
    return np.array(bins, dtype=np.int64)[inverse]


def vertex_attributes(
    graphs: Graphs, labels: str, vocabulary: Vocabulary | None, direction: Direction = "both"
) -> Attributes:
    """Bottom attributes of all vertices: categorical labels, and vectors for `attributes`.

    With a fitted `vocabulary`, labels that it lacks are unseen; without one it is built here.
    """
    columns = label_columns(graphs, labels, direction)
    vectors = None
    if "attributes" in [kind.strip() for kind in labels.split(",")]:
        if graphs.node_attributes is None:
            raise InputError("these graphs have no node attributes")
        vectors = graphs.node_attributes
    if not columns:
        return Attributes(vectors=vectors)
    if vocabulary is None:
        vocabulary, codes = Vocabulary.fit(columns)
    else:
        codes = vocabulary.encode(columns)
    return Attributes(codes, vocabulary, vectors)
