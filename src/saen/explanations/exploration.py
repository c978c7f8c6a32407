"""`explore`: a whole dataset as a model sees it, ready for a page to look around in.

Every example comes with its prediction, its learned vector, its nearest neighbours and its
duplicates; every unique part with where it occurs and what it contributes; and every node with
the parts around it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import pairwise_distances_argmin
from sklearn.neighbors import NearestNeighbors

from saen._util.arrays import Array, Floats, Ints, chunk_ends
from saen.data.compression import Compressed, compress
from saen.data.content_hash import Keys, level_keys
from saen.data.graphs import Graphs
from saen.errors import InputError
from saen.explanations.dataset import (
    TopContributions,
    contrasts,
    part_totals,
    top_contributions,
)
from saen.explanations.describe import plural, singular
from saen.explanations.goal import checked, decompose_one, explained_share, fitted_model
from saen.explanations.molecules import as_molecule
from saen.learning.decomposing import Data, Decompositions
from saen.learning.models.base import Fitted
from saen.learning.overlap import overlap
from saen.learning.prediction import CHUNK, predict_chunks

MAX_EXAMPLES = 50_000
N_NEAREST = 5
MAX_EXACT = 5_000
"""Candidates that every example is compared with; of more, with those in cells close to it."""
CELL_SIZE, N_CELLS = 200, 32


@dataclass(frozen=True, eq=False, repr=False)
class PartStatistics:
    """The strongest unique parts of a dataset, strongest first.

    - `what`, `roles`: each in words, and its roles;
    - `occurrences`, `examples` (parts,): how often each occurs, and in how many examples;
    - `per_class` (parts, classes): in how many examples of every target class, none without;
    - `means` (parts, k): mean contribution per occurrence, see `TopContributions`;
    - `strength` (parts,): what they are ranked by, see `contrasts`;
    - `members`: per part the examples that it occurs in, ascending.
    """

    what: tuple[str, ...]
    roles: tuple[str, ...]
    occurrences: Ints
    examples: Ints
    per_class: Ints
    means: Floats
    strength: Floats
    members: tuple[Ints, ...]


@dataclass(frozen=True, eq=False, repr=False)
class Occurrences:
    """The parts of all examples, one after another: those of example i are `starts[i]:starts[i+1]`.

    - `parts`: the place of each among the listed unique parts, -1 for one that is not listed;
    - `nodes`: the node that it is centred on, numbered within its example, or -1;
    - `contributions`: towards what is predicted.
    """

    starts: Ints
    parts: Ints
    nodes: Ints
    contributions: Floats


@dataclass(frozen=True, eq=False, repr=False)
class Exploration:
    """What `explore` found.

    - `noun`: what an example is; `part_name`: what its parts are;
    - `classes`: of a classifier, none for a regression;
    - `ids`, `targets`, `predictions`, `confidence`, `errors` (n,): `targets` is None where the data
      have none; confidence is the probability of the predicted class, None for a regression; errors
      are 1 for a wrong class, or the difference to the target;
    - `vectors` (n, width): learned; `nearest` (n, k): the nearest others, nearest first;
    - `training` (n,): which examples are the training data that were given beside the others, and
      that alone are among the nearest; None without any;
    - `conflicts`: groups of examples with identical parts but different targets;
    - `overlap`: groups of graphs that are made of the same thing, the largest first, see
      `saen.overlap`; None of other data;
    - `data`: the examples;
    - `explained`: of a blend, whose parts and vectors these are, in words; predictions are by all.
    """

    name: str
    noun: str
    part_name: str
    classes: tuple[str, ...]
    ids: Array
    targets: Array | None
    predictions: Array
    confidence: Floats | None
    errors: Floats | None
    vectors: Floats
    nearest: Ints
    conflicts: tuple[Ints, ...]
    parts: PartStatistics
    occurrences: Occurrences
    n_unique_parts: int
    gap: float
    data: Any
    explained: str = ""
    training: NDArray[np.bool_] | None = None
    overlap: tuple[Ints, ...] | None = None

    def to_json(self) -> dict[str, Any]:
        """How much there is of everything."""
        errors = self.errors
        score = None if errors is None else float(np.abs(errors).mean())
        return {
            "name": self.name,
            "examples": len(self.ids),
            "error": score,
            "unique_parts": self.n_unique_parts,
            "listed_parts": len(self.parts.what),
            "conflicts": len(self.conflicts),
            "overlap": len(self.overlap or ()),
        }

    def __repr__(self) -> str:
        return f"Exploration({self.description})"

    @property
    def description(self) -> str:
        """How many examples and parts it lists."""
        return (
            f"{len(self.ids):,} {self.noun}s, {len(self.parts.what):,} of "
            f"{self.n_unique_parts:,} unique {self.part_name}"
        )


def explore(
    estimator: Any,
    X: Data,
    *,
    training: Data | None = None,
    n_parts: int = 500,
    name: str = "data",
) -> Exploration:
    """Look at a whole dataset with a fitted model.

    Parameters
    ----------
    estimator : Any
        A fitted classifier or regressor.
    X : Data
        Data as the estimator takes them, with targets if there are any; at most 50,000 examples.
    training : Data | None, default=None
        Training data to show before them, of which the nearest are found.
    n_parts : int, default=500
        How many of the unique parts to list: those that separate the classes best, see `contrasts`.
    name : str, default='data'
        The name of the dataset.

    Raises
    ------
    InputError
        For fewer than three examples, or too many.

    Examples
    --------
    >>> import saen
    >>> threads = saen.generate_threads(60, seed=1)
    >>> model = saen.SAENClassifier(epochs=5).fit(threads, threads.targets)
    >>> explore(model, threads, n_parts=20)
    Exploration(60 graphs, 20 of ... unique ego graphs)
    """
    whole = fitted_model(estimator)
    model = whole.members[0].model
    data, is_training = checked(model, X), None
    if training is not None:
        known = checked(model, training)
        is_training = np.arange(len(known) + len(data)) < len(known)
        data = _together(known, data)
    if not 3 <= len(data) <= MAX_EXAMPLES:
        raise InputError(f"explore takes 3 to {MAX_EXAMPLES:,} examples, not {len(data):,}")
    if model.decomposition is None:
        raise InputError("explore needs a model that decomposes the data itself")
    shared = Decompositions(data)
    compressed = model.compress(shared)
    found = top_contributions(model, compressed)
    predictions, confidence = _predicted(whole, data)
    targets = _usable_targets(model, data)
    vectors = np.asarray(model.embed(shared), dtype=np.float64)
    parts, listed = _statistics(compressed, found, targets, n_parts)
    toward = _towards(model, predictions)
    occurrences, what, roles = _occurrences(model, data, compressed, found, toward, listed)
    hierarchy = compressed.hierarchy
    return Exploration(
        name=name,
        noun=singular(hierarchy.names[-1]),
        part_name=plural(hierarchy.names[-2]),
        classes=found.classes,
        ids=np.asarray(data.ids) if hasattr(data, "ids") else np.arange(len(data)),
        targets=targets,
        predictions=predictions,
        confidence=confidence,
        errors=_errors(targets, predictions),
        vectors=vectors,
        nearest=_nearest(vectors, is_training),
        conflicts=_conflicts(compressed, targets),
        parts=PartStatistics(what, roles, *parts),
        occurrences=occurrences,
        n_unique_parts=hierarchy.sizes[-2],
        gap=found.gap,
        data=data,
        explained=explained_share(whole),
        training=is_training,
        overlap=overlap(data).members() if isinstance(data, Graphs) else None,
    )


def _together(training: Any, data: Any) -> Any:
    """Training and other data, with targets if both have them."""
    parts = [training, data]
    if any(part.targets is None for part in parts):
        parts = [part.with_targets(None) for part in parts]
    elif any(part.targets.dtype.kind != "f" for part in parts):
        parts = [part.with_targets(part.targets.astype(str)) for part in parts]
    return type(data).concatenate(parts)


def _predicted(model: Fitted, data: Any) -> tuple[Array, Floats | None]:
    """Predictions, and the probability of each predicted class."""
    chunks = [chunk.columns for chunk in predict_chunks(model, data)]
    if "prediction" not in chunks[0]:
        raise InputError("explore shows one target: train on one of them")
    predictions = np.concatenate([columns["prediction"] for columns in chunks])
    shares = [name for name in chunks[0] if name.startswith("p_")]
    if not shares:
        return predictions, None
    each = [np.column_stack([columns[name] for name in shares]) for columns in chunks]
    return predictions, np.concatenate(each).max(axis=1)


def _usable_targets(model: Fitted, data: Any) -> Array | None:
    """The targets of the data, where they are of the kind that the model predicts."""
    targets = getattr(data, "targets", None)
    if targets is None or np.ndim(targets) != 1:
        return None
    if model.targets.known_classes is not None:
        return np.asarray(targets).astype(str)
    return np.asarray(targets, dtype=np.float64) if targets.dtype.kind in "iuf" else None


def _errors(targets: Array | None, predictions: Array) -> Floats | None:
    if targets is None:
        return None
    if targets.dtype.kind == "f":
        return np.asarray(predictions - targets, dtype=np.float64)
    return np.asarray(predictions.astype(str) != targets, dtype=np.float64)


def _nearest(vectors: Floats, among: NDArray[np.bool_] | None) -> Ints:
    """The nearest others of every example, of all or those `among` them.

    Exact up to `MAX_EXACT` candidates. More are sorted into cells around some of them, and an
    example is compared with those in the `N_CELLS` cells that are closest to its own.
    """
    candidates = np.arange(len(vectors)) if among is None else np.flatnonzero(among)
    n = min(N_NEAREST, len(candidates) - 1)
    found = np.empty((len(vectors), n + 1), dtype=np.int64)
    rows = vectors.astype(np.float32)
    for queries, near in _blocks(rows, candidates):
        search = NearestNeighbors(n_neighbors=n + 1).fit(rows[near])
        found[queries] = near[search.kneighbors(rows[queries], return_distance=False)]
    left_out = found == np.arange(len(vectors))[:, None]
    left_out[~left_out.any(axis=1), -1] = True
    nearest: Ints = found[~left_out].reshape(len(vectors), n)
    return nearest


def _blocks(vectors: NDArray[np.floating[Any]], candidates: Ints) -> Iterator[tuple[Ints, Ints]]:
    """Examples, and the candidates that they are compared with."""
    if len(candidates) <= MAX_EXACT:
        yield np.arange(len(vectors)), candidates
        return
    rng = np.random.default_rng(0)
    centres = rng.choice(candidates, len(candidates) // CELL_SIZE, replace=False)
    cell = _closest(vectors[candidates], vectors[centres])
    order = np.argsort(cell, kind="stable")
    # Cells that are too large, such as those of equal vectors, are cut.
    within = np.arange(len(order)) - np.searchsorted(cell[order], cell[order])
    cells = np.split(candidates[order], np.flatnonzero(within % (2 * CELL_SIZE) == 0)[1:])
    middles = np.stack([vectors[members].mean(axis=0) for members in cells])
    search = NearestNeighbors(n_neighbors=min(N_CELLS, len(cells))).fit(middles)
    own = _closest(vectors, middles)
    order = np.argsort(own, kind="stable")
    numbers, starts = np.unique(own[order], return_index=True)
    close = search.kneighbors(middles[numbers], return_distance=False)
    for queries, around in zip(np.split(order, starts[1:]), close.tolist(), strict=True):
        yield queries, np.concatenate([cells[number] for number in around])


def _closest(vectors: NDArray[np.floating[Any]], centres: NDArray[np.floating[Any]]) -> Ints:
    """The number of the closest centre of every vector."""
    closest: Ints = pairwise_distances_argmin(vectors, centres)
    return closest


def _conflicts(compressed: Compressed, targets: Array | None) -> tuple[Ints, ...]:
    """Examples with identical parts and different classes, the largest groups first."""
    if targets is None or targets.dtype.kind == "f":
        return ()
    pairs = np.unique(np.column_stack([compressed.top, np.unique(targets, return_inverse=True)[1]]),
                      axis=0)  # fmt: skip
    unique, n_targets = np.unique(pairs[:, 0], return_counts=True)
    starts, members = compressed.members(compressed.hierarchy.depth)
    groups = [members[starts[u] : starts[u + 1]] for u in unique[n_targets > 1].tolist()]
    return tuple(sorted(groups, key=len, reverse=True))


def _statistics(
    compressed: Compressed, found: TopContributions, targets: Array | None, n_parts: int
) -> tuple[tuple[Any, ...], Ints]:
    """The fields of `PartStatistics` after the words, and the numbers of the listed parts."""
    relation = compressed.hierarchy.relations[-1]
    rows = relation.parents
    totals, occurrences = part_totals(compressed, found)
    means = totals / np.maximum(occurrences, 1)[:, None]
    strength = contrasts(compressed, found).max(axis=1)
    listed = np.argsort(-strength, kind="stable")[:n_parts]
    place = np.full(relation.n_parts, -1)
    place[listed] = np.arange(len(listed))
    shown = place[relation.parts] >= 0
    pairs = np.unique(np.column_stack([place[relation.parts], rows])[shown], axis=0)
    starts, members = compressed.members(compressed.hierarchy.depth)
    ends = np.searchsorted(pairs[:, 0], np.arange(len(listed) + 1))
    occurs = tuple(
        np.sort(np.concatenate([members[starts[r] : starts[r + 1]] for r in pairs[a:b, 1]]))
        for a, b in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True)
    )
    per_class = np.empty((len(listed), 0), dtype=np.int64)
    if targets is not None and found.classes:
        codes = np.searchsorted(np.sort(found.classes), targets)
        order = np.argsort(np.argsort(found.classes))
        known = np.isin(targets, found.classes)
        columns = [
            np.bincount(codes[m][known[m]], minlength=len(found.classes))[order] for m in occurs
        ]
        per_class = np.array(columns).reshape(len(listed), -1)
    examples = np.array([len(m) for m in occurs], dtype=np.int64)
    fields = occurrences[listed], examples, per_class, means[listed], strength[listed], occurs
    return fields, listed


def _towards(model: Fitted, predictions: Array) -> tuple[Ints, Floats]:
    """Per example the column of contributions that belongs to its prediction, and its sign."""
    zeros = np.zeros(len(predictions), dtype=np.int64)
    classes = model.targets.known_classes
    if classes is None:
        return zeros, np.ones(len(predictions))
    codes = np.searchsorted(classes, predictions)
    if len(classes) == 2:
        return zeros, np.where(codes == 1, 1.0, -1.0)
    return codes, np.ones(len(predictions))


def _occurrences(
    model: Fitted,
    data: Any,
    compressed: Compressed,
    found: TopContributions,
    toward: tuple[Ints, Floats],
    listed: Ints,
) -> tuple[Occurrences, tuple[str, ...], tuple[str, ...]]:
    """All parts of all examples, and the listed ones in words."""
    decomposition = model.decomposition
    assert decomposition is not None
    relation, level = compressed.hierarchy.relations[-1], compressed.hierarchy.depth - 1
    place = np.full(relation.n_parts, -1)
    place[listed] = np.arange(len(listed))
    entry_codes = _codes(relation.parents, relation.roles, relation.parts, relation)
    order = np.argsort(entry_codes)
    entry_codes = entry_codes[order]
    per_occurrence = found.entries / relation.multiplicity[:, None]
    chunks, start = [], 0
    for stop in chunk_ends(decomposition.costs(data), CHUNK):
        chunk = data[start:stop]
        hierarchy = decomposition.decompose(chunk)
        anchors = decomposition.anchors(chunk) if isinstance(chunk, Graphs) else None
        shard = compress(hierarchy)
        unique = _matched(shard.keys[level], compressed.keys[level])[shard.unique_of(level)]
        top = hierarchy.relations[-1]
        owner = top.parents
        codes = _codes(compressed.top[start + owner], top.roles, unique[top.parts], relation)
        entry = order[np.searchsorted(entry_codes, codes)]
        column, sign = (array[start + owner] for array in toward)
        nodes = np.full(len(owner), -1)
        if anchors is not None and anchors.nodes[level] is not None:
            nodes = np.asarray(anchors.nodes[level])[top.parts]
            nodes = np.where(nodes < 0, -1, nodes - chunk.node_offsets[owner])
        contributions = per_occurrence[entry, column] * sign * top.multiplicity
        chunks.append((start + owner, place[unique[top.parts]], nodes, contributions))
        start = stop
    owner, parts, nodes, contributions = (
        np.concatenate(arrays) for arrays in zip(*chunks, strict=True)
    )
    starts = np.searchsorted(owner, np.arange(len(data) + 1))
    what = _in_words(model, data, compressed, listed)
    own = np.flatnonzero(place[relation.parts] >= 0)
    pairs = np.unique(np.column_stack([place[relation.parts[own]], relation.roles[own]]), axis=0)
    roles: list[list[str]] = [[] for _ in what]
    for part, role in pairs.tolist():
        roles[part].append(relation.alphabet[role])
    return Occurrences(starts, parts, nodes, contributions), what, tuple(map(", ".join, roles))


def _in_words(model: Fitted, data: Any, compressed: Compressed, listed: Ints) -> tuple[str, ...]:
    """The parts in the first example that has each; those of molecules as fragments."""
    decomposition = model.decomposition
    assert decomposition is not None
    relation, level = compressed.hierarchy.relations[-1], compressed.hierarchy.depth - 1
    parts, first = np.unique(relation.parts, return_index=True)
    rows, at = np.unique(compressed.top, return_index=True)
    of_part = at[np.searchsorted(rows, relation.parents[first])][np.searchsorted(parts, listed)]
    examples = np.unique(of_part)
    hierarchy = decomposition.decompose(data[examples])
    numbers = _matched(level_keys(hierarchy)[level], compressed.keys[level])
    known, first = np.unique(numbers, return_index=True)
    texts = decomposition.describe(hierarchy, level, first[np.searchsorted(known, listed)])
    if not isinstance(data, Graphs) or as_molecule(data[0]) is None:
        return tuple(texts)
    for index in examples.tolist():
        example = decompose_one(model, data[index])
        keys = level_keys(example.hierarchy)[level]
        for place in np.flatnonzero(of_part == index).tolist():
            own = (keys == compressed.keys[level][listed[place]]).all(axis=1)
            texts[place] = example.smiles(level, int(np.flatnonzero(own)[0])) or texts[place]
    return tuple(texts)


def _codes(rows: Ints, roles: Ints, parts: Ints, relation: Any) -> Ints:
    """One number for every (unique example, role, unique part)."""
    codes: Ints = (rows.astype(np.int64) * relation.n_roles + roles) * relation.n_parts + parts
    return codes


def _matched(keys: Keys, known: Keys) -> Ints:
    """For every key its place among the known ones, which ascend; each of them is known."""
    place: Ints = np.searchsorted(known[:, 0], keys[:, 0])
    while (later := known[place, 1] != keys[:, 1]).any():  # keys with equal first halves
        place[later] += 1
    return place
