"""Predictions and vectors of collections of any size, a few examples at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from saen._util.ahead import ahead
from saen._util.arrays import Array, chunk_ends, offsets
from saen._util.strings import did_you_mean
from saen.data.compression import Compressed
from saen.data.hierarchy import Hierarchy
from saen.data.vocabulary import UNSEEN
from saen.errors import InputError
from saen.io.embeddings import Embedded
from saen.learning.decomposing import Decompositions
from saen.learning.models.base import Fitted
from saen.learning.models.networks import NotFiniteError

CHUNK = 1 << 20
"""Entries of the uncompressed hierarchy, about, that are held at a time."""


@dataclass(frozen=True)
class Predicted:
    """What a model says of some examples, in order.

    - `start`: the first of them;
    - `columns`: `prediction` and what belongs to it, one row per example; those `copied` are the
      input's;
    - `unseen`, `objects`: bottom objects with labels that the model has not seen, and all of them.
    """

    start: int
    columns: dict[str, Array]
    unseen: int
    objects: int
    copied: tuple[str, ...] = ()


def predict_chunks(model: Fitted, examples: Any, *, limit: int = CHUNK) -> Iterator[Predicted]:
    """Predict a collection in chunks: memory does not grow with the number of examples.

    Classes come with one probability each (`p_CLASS`) and with `agreement`, the share of the
    networks (of a blend: of its members, by weight) that would have said the same alone; linear
    models over part counts have none. Numbers come with `lower` and `upper`, between which nine of
    ten true ones should lie, if there were inner folds. Of several targets, `prediction_NAME` is
    the prediction of each, with `p_NAME`, the probability of the second of its two classes, or
    `lower_NAME` and `upper_NAME`.

    >>> import saen
    >>> threads = saen.generate_threads(40, seed=1)
    >>> model = saen.SAENClassifier(epochs=2).fit(threads, threads.targets)
    >>> [list(part.columns) for part in predict_chunks(model.fitted_, threads)]
    [['prediction', 'p_discussion', 'p_questions', 'agreement']]
    """
    ends = chunk_ends(_costs(model, examples), limit)
    starts = [0, *ends[:-1]]
    chunks = (_chunk(model, examples[a:b]) for a, b in zip(starts, ends, strict=True))
    for start, (data, compressed) in zip(
        starts, ahead(chunks) if len(ends) > 1 else chunks, strict=True
    ):
        try:
            columns = _columns(model, data)
        except NotFiniteError as error:  # numbered within the chunk
            raise NotFiniteError(start + error.first, error.count) from None
        yield Predicted(start, columns, _unseen(compressed), compressed.objects[0])


def _chunk(model: Fitted, examples: Any) -> tuple[Decompositions, Compressed]:
    data = Decompositions(examples)
    return data, model.compress(data, lower_inverse=True)


def _columns(model: Fitted, data: Decompositions) -> dict[str, Array]:
    """What is said of some examples, by the names of the columns."""
    each = model.each(data)
    predictions = model.combined(each)
    radius = model.calibration.radius(model.spread(each))
    columns = model.targets.columns(predictions, radius)
    votes = None if model.weights is None else model.targets.agreement(each, predictions)
    return (
        columns
        if votes is None
        else columns | {"agreement": np.minimum(votes @ model.weights, 1.0)}
    )


def embed_chunks(
    model: Fitted, examples: Any, level: int | None = None, *, limit: int = CHUNK
) -> Iterator[Embedded]:
    """The learned vectors of the objects of a level (None: the examples), in chunks.

    >>> import saen
    >>> threads = saen.generate_threads(40, average_nodes=20, seed=1)
    >>> model = saen.SAENClassifier(epochs=2, inner_folds=0).fit(threads, threads.targets)
    >>> [part.vectors.shape for part in embed_chunks(model.fitted_, threads)]
    [(40, 32)]
    """
    top = model.schema.depth
    start = 0
    for stop in chunk_ends(_costs(model, examples), limit):
        owner, number = np.arange(stop - start), np.zeros(stop - start, dtype=np.int64)
        if level not in (None, top):
            assert level is not None
            assert model.decomposition is not None
            owner = owners(model.decomposition.decompose(examples[start:stop]), level)
            number = _numbers_within(owner)
        try:
            vectors = model.embed(Decompositions(examples[start:stop]), level)
        except NotFiniteError as error:  # numbered within the chunk
            raise NotFiniteError(start + int(owner[error.first]), error.count) from None
        yield Embedded(owner + start, number, vectors.astype(np.float32, copy=False))
        start = stop


def owners(hierarchy: Hierarchy, level: int) -> NDArray[np.int64]:
    """The object of the top level that every object of a level belongs to, shape (|S_l|,).

    Objects of one example lie side by side; one that is part of nothing is counted with the
    object before it.

    >>> from saen import Graphs
    >>> from saen.decompositions import Ego
    >>> graphs = Graphs.from_edge_lists([[(0, 1)], [(0, 1), (1, 2)]])
    >>> owners(Ego(radii=(0,)).decompose(graphs), level=0).tolist()
    [0, 0, 1, 1, 1]
    """
    owner = np.arange(len(hierarchy))
    for relation in reversed(hierarchy.relations[level:]):
        above = owner[relation.parents]
        last = np.zeros(relation.n_parts, dtype=np.int64)  # the last object so far with an owner
        last[relation.parts] = relation.parts
        owner = np.zeros(relation.n_parts, dtype=np.int64)
        owner[relation.parts] = above
        owner = owner[np.maximum.accumulate(last)]
    return owner


def level_number(hierarchy: Hierarchy, text: str) -> int:
    """The level that a number, or the name of its objects, stands for.

    >>> from saen import Graphs
    >>> from saen.decompositions import Ego
    >>> level_number(Ego().decompose(Graphs.from_edge_lists([[(0, 1)]])), "ego graphs")
    1
    """
    names = hierarchy.names
    if text.isdecimal() and int(text) <= hierarchy.depth:
        return int(text)
    if text not in names:
        known = ", ".join(f"{number} ({name})" for number, name in enumerate(names))
        raise InputError(f"there is no level {text!r}{did_you_mean(text, names)}: choose {known}")
    return names.index(text)


def _costs(model: Fitted, examples: Any) -> NDArray[np.int64]:
    """About how many entries each example has."""
    if model.decomposition is None:
        raise InputError(
            "this model was fitted on hierarchies, which nothing takes apart: "
            "use its predict and embed in Python"
        )
    return model.decomposition.costs(examples)


def _unseen(compressed: Compressed) -> int:
    """Original bottom objects whose labels are not in the vocabulary."""
    codes = compressed.hierarchy.attributes.codes
    return 0 if codes is None else int((codes[compressed.unique_of(0)] == UNSEEN).sum())


def _numbers_within(owner: NDArray[np.int64]) -> NDArray[np.int64]:
    """For every object how many before it have its owner.

    >>> _numbers_within(np.array([0, 0, 1, 1, 0])).tolist()
    [0, 1, 0, 1, 2]
    """
    order = np.argsort(owner, kind="stable")
    first = offsets(np.bincount(owner))[owner[order]]
    out = np.empty_like(order)
    out[order] = np.arange(len(order)) - first
    return out
