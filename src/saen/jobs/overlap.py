"""`saen.overlap`: which graphs of a dataset are made of the same thing as another one."""

from __future__ import annotations

from typing import Any

from saen.data.chunks import compress_graphs
from saen.data.graphs import Graphs
from saen.data.overlap import DECOMPOSITION, Overlap, find_overlap
from saen.decompositions import Decomposition, make_decomposition
from saen.errors import InputError
from saen.io.libraries.coerce import as_data

LABELLED = "neighbourhoods(depth=2)"
"""The decomposition for graphs with node labels."""


def overlap(X: Any, decomposition: str | Decomposition | None = None) -> Overlap:
    """Find graphs that share so many rare parts that it cannot be chance.

    A model that was trained on one of them has seen a part of the other, so a score on it says
    little about new graphs. Targets are not looked at. The formula, the null model and its rate of
    false positives are those of `saen.data.overlap`.

    Parameters
    ----------
    X
        `Graphs`, or graphs of another library.
    decomposition
        Into which parts; by default neighbourhoods of up to two steps, over node labels, or where
        there are none over degrees.

    Returns an `Overlap`: `share` of the graphs, `largest` group, `groups` (n,), overlapping
    `pairs`, `duplicates`; `split(max_size)` cuts groups that are larger than a fold.

    Raises `InputError` for data that are not graphs.

    >>> import saen
    >>> overlap(saen.generate_threads(100, seed=1)).share
    0.0
    """
    graphs = as_data(X)
    if not isinstance(graphs, Graphs):
        raise InputError(f"overlap is found between graphs, not in {type(graphs).__name__}")
    if decomposition is None:
        decomposition = DECOMPOSITION if graphs.node_labels is None else LABELLED
    if isinstance(decomposition, str):
        decomposition = make_decomposition(decomposition, defaults={"edges": "auto"})
    return find_overlap(compress_graphs(graphs, decomposition.fit(graphs), lower_inverse=False))
