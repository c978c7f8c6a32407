"""Overlap between graphs, and between new graphs and those that a model was trained on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from saen._util.arrays import Array, Floats
from saen.data.chunks import compress_graphs
from saen.data.compression import Compressed
from saen.data.graphs import Graphs
from saen.data.overlap import DECOMPOSITION, Overlap, OverlapIndex, find_overlap
from saen.decompositions import Decomposition, make_decomposition
from saen.decompositions.registry import decomposition_from_json, decomposition_to_json
from saen.errors import InputError
from saen.io.libraries.coerce import as_data
from saen.io.store.packing import pack_column, under, unpack_column

LABELLED = "neighbourhoods(depth=2)"
"""The decomposition for graphs with node labels."""
_PREFIX = "training."


def overlap(X: Any, decomposition: str | Decomposition | None = None) -> Overlap:
    """Find graphs that share so many rare parts that it cannot be chance.

    A model that was trained on one of them has seen a part of the other, so a score on it says
    little about new graphs. Targets are not looked at. The formula, the null model and its rate of
    false positives are those of `saen.data.overlap`.

    Returns an `Overlap`: `share` of the graphs, `largest` group, `groups` (n,), overlapping
    `pairs`, `duplicates`; `split(max_size)` cuts groups that are larger than a fold.

    Parameters
    ----------
    X : Any
        `Graphs`, or graphs of another library.
    decomposition : str | Decomposition | None, default=None
        Into which parts; by default neighbourhoods of up to two steps, over node labels, or where
        there are none, over degrees and numbers of triangles.

    Raises
    ------
    InputError
        For data that are not graphs.

    Examples
    --------
    >>> import saen
    >>> overlap(saen.generate_threads(100, seed=1)).share
    0.0
    """
    return find_overlap(compress_for_overlap(_graphs(X), decomposition))


def compress_for_overlap(
    graphs: Graphs, decomposition: str | Decomposition | None = None
) -> Compressed:
    """The parts that `overlap` looks at, for `saen.data.overlap.find_overlap`."""
    return _compressed(graphs, _fitted(graphs, decomposition))


@dataclass(frozen=True, eq=False)
class NearestTraining:
    """The most similar training graph for each of some graphs, (n,) each.

    - `ids`: its id as text, empty where nothing rare is shared with any;
    - `similarity`: the Jaccard index of the rare parts of both by weight, 1 for an identical graph;
    - `overlaps`: whether any training graph shares more rare parts than chance explains: the model
      has seen a part of this graph, and a good prediction says little about others;
    - `unlike`: whether the similarity is below that of 95 % of the training graphs to their nearest
      others: nothing like this is in the training data, and the model has to extrapolate.
    """

    ids: NDArray[np.str_]
    similarity: Floats
    overlaps: NDArray[np.bool_]
    unlike: NDArray[np.bool_]

    def columns(self) -> dict[str, Array]:
        """As `saen predict` writes them."""
        return {
            "nearest": self.ids,
            "similarity": self.similarity,
            "overlaps_training": self.overlaps,
            "unlike_training": self.unlike,
        }


@dataclass(frozen=True, eq=False)
class TrainingGraphs:
    """What a model keeps of its training graphs: ids and content keys of rare parts, no graphs."""

    decomposition: Decomposition
    index: OverlapIndex
    ids: NDArray[np.str_]

    @staticmethod
    def of(X: Any) -> TrainingGraphs:
        """Of graphs; raises `InputError` for other data."""
        graphs = _graphs(X)
        decomposition = _fitted(graphs)
        index = OverlapIndex.of(_compressed(graphs, decomposition))
        return TrainingGraphs(decomposition, index, graphs.ids.astype(str))

    def nearest(self, X: Any) -> NearestTraining:
        """The most similar one of them for each of some graphs."""
        found = self.index.nearest(_compressed(_graphs(X), self.decomposition))
        ids = np.append(self.ids, "")[found.example]
        return NearestTraining(ids, found.similarity, found.overlapping, found.unlike)

    def pack(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """As JSON and arrays, whose names begin with `training.`."""
        document = {"decomposition": decomposition_to_json(self.decomposition)}
        tensors = self.index.arrays()
        pack_column("ids", self.ids, document, tensors)
        return document, {_PREFIX + name: array for name, array in tensors.items()}

    @staticmethod
    def unpack(document: dict[str, Any], tensors: Mapping[str, Array]) -> TrainingGraphs:
        """What `pack` gave, among other arrays."""
        own = under(_PREFIX, tensors)
        ids, index = unpack_column("ids", document, own), OverlapIndex.from_arrays(own)
        if ids.ndim != 1 or ids.dtype.kind != "U" or index.examples.max(initial=-1) >= len(ids):
            raise InputError("the ids of training examples do not fit together")
        return TrainingGraphs(decomposition_from_json(document["decomposition"]), index, ids)


def _graphs(X: Any) -> Graphs:
    graphs = as_data(X)
    if not isinstance(graphs, Graphs):
        raise InputError(f"overlap is found between graphs, not in {type(graphs).__name__}")
    return graphs


def _fitted(graphs: Graphs, decomposition: str | Decomposition | None = None) -> Decomposition:
    if decomposition is None:
        decomposition = DECOMPOSITION if graphs.node_labels is None else LABELLED
    if isinstance(decomposition, str):
        decomposition = make_decomposition(decomposition, defaults={"edges": "auto"})
    return decomposition.fit(graphs)


def _compressed(graphs: Graphs, decomposition: Decomposition) -> Compressed:
    return compress_graphs(graphs, decomposition, lower_inverse=False)
