"""Predictions and vectors of collections of any size, a few examples at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from saen._util.ahead import ahead
from saen._util.arrays import Array, Floats, chunk_ends, offsets
from saen._util.strings import did_you_mean
from saen.data.compression import Compressed, compress
from saen.data.hierarchy import Hierarchy
from saen.data.vocabulary import UNSEEN
from saen.errors import InputError
from saen.io.embeddings import Embedded
from saen.learning.blend import BlendEstimator
from saen.learning.calibration import COVERAGE, interval_radius
from saen.learning.network_estimator import NotFiniteError
from saen.learning.part_counts_models import PartCountsClassifier
from saen.learning.preparation import Prepared
from saen.learning.presets import Classifier, Model, Regressor

CHUNK = 1 << 20
"""Entries of the uncompressed hierarchy, about, that are held at a time."""


@dataclass(frozen=True)
class Predicted:
    """What a model says of some examples, in order.

    - `start`: the first of them;
    - `columns`: `prediction` and what belongs to it, one row per example;
    - `unseen`, `objects`: bottom objects with labels that the model has not seen, and all of them.
    """

    start: int
    columns: dict[str, Array]
    unseen: int
    objects: int


def predict_chunks(model: Model, examples: Any, *, limit: int = CHUNK) -> Iterator[Predicted]:
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
    >>> [list(part.columns) for part in predict_chunks(model, threads)]
    [['prediction', 'p_discussion', 'p_questions', 'agreement']]
    """
    decomposition = _decomposition(model)
    ends = chunk_ends(decomposition.costs(examples), limit)
    starts = [0, *ends[:-1]]
    chunks = (
        (examples[start:stop], model.compress(examples[start:stop], lower_inverse=True))
        for start, stop in zip(starts, ends, strict=True)
    )
    blend = isinstance(model, BlendEstimator)  # every member decomposes on its own
    for start, (part, compressed) in zip(
        starts, ahead(chunks) if len(ends) > 1 else chunks, strict=True
    ):
        prepared = part if blend else Prepared(None, decomposition, compressed)
        try:
            columns = (
                _classes(model, prepared)
                if isinstance(model, Classifier)
                else _numbers(model, prepared)
            )
        except NotFiniteError as error:  # numbered within the chunk
            raise NotFiniteError(start + error.first, error.count) from None
        yield Predicted(start, columns, _unseen(compressed), compressed.objects[0])


def embed_chunks(
    model: Model, examples: Any, level: int | None = None, *, limit: int = CHUNK
) -> Iterator[Embedded]:
    """The learned vectors of the objects of a level (None: the examples), in chunks.

    >>> import saen
    >>> threads = saen.generate_threads(40, average_nodes=20, seed=1)
    >>> model = saen.SAENClassifier(epochs=2).fit(threads, threads.targets)
    >>> [part.vectors.shape for part in embed_chunks(model, threads)]
    [(40, 96)]
    """
    decomposition = _decomposition(model)
    top = model.schema_.depth
    start = 0
    for stop in chunk_ends(decomposition.costs(examples), limit):
        owner, number = np.arange(stop - start), np.zeros(stop - start, dtype=np.int64)
        data = examples[start:stop]
        if level not in (None, top):
            assert level is not None
            hierarchy = decomposition.decompose(data)
            data = Prepared(None, decomposition, compress(hierarchy))
            owner = owners(hierarchy, level)
            number = _numbers_within(owner)
        try:
            vectors = model.embed(data, level)
        except NotFiniteError as error:  # numbered within the chunk
            raise NotFiniteError(start + int(owner[error.first]), error.count) from None
        yield Embedded(owner + start, number, vectors.astype(np.float32, copy=False))
        start = stop


def owners(hierarchy: Hierarchy, level: int) -> NDArray[np.int64]:
    """The object of the top level that every object of a level belongs to, shape (|S_l|,).

    Objects of one example lie side by side; one that is part of nothing is counted with the
    object before it.

    >>> from saen import Ego, Graphs
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

    >>> from saen import Ego, Graphs
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


def _decomposition(model: Model) -> Any:
    if model.decomposition_ is None:
        raise InputError(
            "this model was fitted on hierarchies, which nothing takes apart: "
            "use its predict and embed in Python"
        )
    return model.decomposition_


def _classes(model: Classifier, prepared: Prepared) -> dict[str, Array]:
    if isinstance(model, PartCountsClassifier):
        proba = model.predict_proba(prepared)
    else:
        each = model.predict_each(prepared)
        proba = model.combine(each)
    if model.classes_.ndim == 2:
        values = model.classes_at(proba)
        columns: dict[str, Array] = {}
        for k, name in enumerate(model.target_names_):
            columns |= {f"prediction_{name}": values[:, k], f"p_{name}": proba[:, k]}
        return columns
    chosen = proba.argmax(axis=1)
    shares = {f"p_{name}": proba[:, code] for code, name in enumerate(model.classes_.tolist())}
    if isinstance(model, PartCountsClassifier):
        return {"prediction": model.classes_[chosen], **shares}
    agreement = (each.argmax(axis=2) == chosen[:, None]) @ _weights(model, each)
    return {"prediction": model.classes_[chosen], **shares, "agreement": agreement}


def _numbers(model: Regressor, prepared: Prepared) -> dict[str, Array]:
    values = model.predict(prepared)
    radius = interval_radius(model.errors_, COVERAGE)
    columns = {"prediction": values}
    if len(model.errors_):
        columns |= {"lower": values - radius, "upper": values + radius}
    if values.ndim == 1:
        return columns
    # Older files of part counts have no names.
    names = model.target_names_ or range(values.shape[1])
    return {
        f"{key}_{name}": column[:, k]
        for k, name in enumerate(names)
        for key, column in columns.items()
    }


def _weights(model: Model, each: Floats) -> Floats:
    """The weight of every network or member, (M,)."""
    if isinstance(model, BlendEstimator):
        return model.weights_
    return np.full(each.shape[1], 1 / each.shape[1])


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
