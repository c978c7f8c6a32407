"""`check_decomposition`: what every decomposition has to keep, tried on structures."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from scipy import sparse

from saen._util.arrays import segment_ids
from saen.data.compression import Compressed, compress, compress_graphs, merge
from saen.data.graphs import Graphs
from saen.data.hierarchy import Hierarchy
from saen.data.vocabulary import UNSEEN
from saen.decompositions import Decomposition
from saen.errors import InputError
from saen.network.loss import Task
from saen.network.model import SAEN, Architecture
from saen.network.training import Settings, train

_PRECISION = 1e-9  # of the largest output, in float64


def check_decomposition(decomposition: Decomposition, structures: Any = None) -> None:
    """Try the laws of decompositions on structures; `AssertionError` says which one does not hold.

    `structures` is what the decomposition takes: two or more, the more varied the better. Graph
    decompositions are tried, if it is None, on small graphs of all kinds, undirected and directed:
    with labels and attributes of nodes and edges, with loops, isolated nodes, or no nodes.

    - there is one object on top per structure, in order, and every run gives the same;
    - once fitted, all collections have the vocabulary and the roles of the fitted one, and labels
      beyond it are unseen;
    - no structure's parts depend on another's, nor on the numbering of nodes;
    - costs are one whole number per structure; settings are JSON and build it again;
    - compression is lossless: CD = I, M = DCM, chunks give what the whole gives, networks compute
      the same with and without it, and train.

    >>> from saen import Ego
    >>> check_decomposition(Ego(radii=(0, 1)))
    """
    if structures is None:
        if decomposition.takes != "graphs":
            raise InputError(
                f"{_name(decomposition)} takes {decomposition.takes}: pass some to try it on"
            )
        for directed in (False, True):
            check_decomposition(decomposition, _example_graphs(directed))
        return
    if len(structures) < 2:
        raise InputError(f"a check needs two structures or more, not {len(structures)}")
    fitted = {f.name: None for f in fields(decomposition) if "fitted" in f.metadata}
    trial = _Trial(replace(decomposition, **fitted), structures)
    for law, broken in _LAWS.items():
        try:
            trouble = broken(trial)
        except Exception as error:
            message = f"{type(error).__name__}: {error}".rstrip(": ")
            raise AssertionError(f"{_name(decomposition)}: {law} ({message})") from error
        if trouble:
            raise AssertionError(f"{_name(decomposition)}: {law} ({trouble})")


def _name(decomposition: Decomposition) -> str:
    return type(decomposition).__name__


@dataclass(frozen=True)
class _Trial:
    """A decomposition that knows nothing yet, and structures to try it on."""

    decomposition: Decomposition
    structures: Any

    @cached_property
    def hierarchy(self) -> Hierarchy:
        return self.decomposition.decompose(self.structures)

    @cached_property
    def fitted(self) -> Decomposition:
        return self.decomposition.fit(self.structures)

    @cached_property
    def made(self) -> Hierarchy:
        return self.fitted.decompose(self.structures)

    @cached_property
    def compressed(self) -> Compressed:
        return compress(self.made)


# -- the laws: each returns what is wrong, or nothing ------------------------------------------


def _one_on_top(trial: _Trial) -> str:
    if not isinstance(trial.hierarchy, Hierarchy):
        return f"found {type(trial.hierarchy).__name__}"
    for n in (len(trial.structures), 0):
        found = len(trial.decomposition.decompose(trial.structures[:n]))
        if found != n:
            return f"{n} structures, {found} objects"
    return ""


def _repeatable(trial: _Trial) -> str:
    again = trial.decomposition.decompose(trial.structures)
    return "" if again == trial.hierarchy else "a second run gives something else"


def _fitting_changes_nothing(trial: _Trial) -> str:
    if type(trial.fitted) is not type(trial.decomposition):
        return f"fit gives a {type(trial.fitted).__name__}"
    same = trial.made == trial.hierarchy
    return "" if same else "the fitted decomposition gives something else"


def _fitted_to_one_half(trial: _Trial) -> str:
    half = len(trial.structures) // 2
    known, new = trial.structures[:half], trial.structures[half:]
    fitted = trial.decomposition.fit(known)
    here, there = fitted.decompose(known), fitted.decompose(new)
    if here.attributes.vocabulary != there.attributes.vocabulary:
        return f"the vocabulary becomes {there.attributes.vocabulary}"
    for level, (r, s) in enumerate(zip(here.relations, there.relations, strict=True), start=1):
        if r.alphabet != s.alphabet:
            return f"the roles of level {level} become {', '.join(s.alphabet)}"
    if there.attributes.vocabulary is not None:
        free = trial.decomposition.decompose(new).attributes
        expected, found = free.recoded(there.attributes.vocabulary).codes, there.attributes.codes
        assert expected is not None
        assert found is not None
        # Parts in unseen roles are left out, and bottom objects with them.
        if len(expected) == len(found) and not np.array_equal(np.sort(expected), np.sort(found)):
            return f"{(expected == UNSEEN).sum()} labels are new, {(found == UNSEEN).sum()} unseen"
    return ""


def _piece_by_piece(trial: _Trial) -> str:
    pieces = [trial.structures[i : i + 1] for i in range(len(trial.structures))]
    made = [trial.fitted.decompose(piece) for piece in pieces]
    if [len(piece) for piece in made] != [1] * len(made):
        return "one structure alone gives several objects on top"
    return _difference(merge(map(compress, made)), trial.compressed)


def _numbering(trial: _Trial) -> str:
    if not isinstance(trial.structures, Graphs):
        return ""
    renumbered = trial.fitted.decompose(_renumbered(trial.structures))
    return _difference(compress(renumbered), trial.compressed)


def _difference(one: Compressed, other: Compressed) -> str:
    """Where two collections differ, whatever the order of their lower objects."""
    if one.top_only() == other.top_only():
        return ""
    for before, after in zip(other.levels(), one.levels(), strict=True):
        if before != after:
            what = next(key for key in before if before[key] != after[key])
            return f"{before[what]:,} {what} of {before['name']} become {after[what]:,}"
    if np.array_equal(one.top, other.top):
        return "as many objects as before, but others"
    row = int(np.flatnonzero(one.top != other.top)[0])
    return f"structure {row} becomes another"


def _costs(trial: _Trial) -> str:
    costs = trial.fitted.costs(trial.structures)
    if costs.shape != (len(trial.structures),) or costs.dtype.kind not in "iu":
        return f"found {costs.dtype} of shape {costs.shape}"
    return f"one is {costs.min()}" if costs.min() < 0 else ""


def _settings(trial: _Trial) -> str:
    settings = trial.decomposition.settings()
    plain = json.loads(json.dumps(settings))
    rebuilt = type(trial.decomposition)(**{k: v for k, v in plain.items() if k != "name"})
    if plain != settings or rebuilt.settings() != settings:
        return f"{settings} become {rebuilt.settings()}"
    same = rebuilt.decompose(trial.structures) == trial.hierarchy
    return "" if same else "what they build gives something else"


def _lossless(trial: _Trial) -> str:
    if compress_graphs(trial.structures, trial.fitted) != trial.compressed:
        return "compress_graphs differs from compress"
    matrices = [trial.made.attributes.matrix()]
    for level, R in enumerate(trial.made.relations):
        _, D = trial.compressed.matrices(level)
        roles = [R.matrix(role) @ D for role in range(R.n_roles)]
        matrices.append(sparse.csr_array(sparse.hstack(roles)))
    for level, M in enumerate(matrices):
        C, D = trial.compressed.matrices(level)
        if abs(C @ D - sparse.eye_array(D.shape[1])).sum() > _PRECISION * D.shape[1]:
            return f"CD is not I on level {level}"
        if abs(D @ (C @ M) - M).sum() > _PRECISION * abs(M).sum():
            return f"M is not DCM on level {level}"
    return ""


def _same_outputs(trial: _Trial) -> str:
    network = _network(trial.made, dtype=torch.float64)
    with torch.no_grad():
        whole, small = network(trial.made), network(trial.compressed)
    difference = float((whole - small).abs().max() / whole.abs().max().clamp(min=1.0))
    return "" if difference <= _PRECISION else f"outputs differ by {difference:.1e}"


def _trains(trial: _Trial) -> str:
    n = len(trial.structures)
    task = Task("binary", np.arange(n) % 2, np.ones((n, 1)), n_classes=2)
    network = _network(trial.compressed.hierarchy, dtype=torch.float32)
    history = train(network, trial.compressed, task, Settings(epochs=3))
    return "" if np.isfinite(history.loss).all() else f"losses {history.loss}"


def _network(hierarchy: Hierarchy, dtype: torch.dtype) -> SAEN:
    layers = [*[[4]] * hierarchy.depth, [4, 1]]
    return SAEN(Architecture.over(hierarchy, layers), seeds=[0], dtype=dtype)


_LAWS: dict[str, Callable[[_Trial], str]] = {
    "decompose gives a Hierarchy with one object on top per structure": _one_on_top,
    "the same structures give the same hierarchy": _repeatable,
    "what was fitted is decomposed as before": _fitting_changes_nothing,
    "once fitted, vocabulary and roles stay, and new labels are unseen": _fitted_to_one_half,
    "no structure's parts depend on another's": _piece_by_piece,
    "the numbering of nodes does not matter": _numbering,
    "costs are one whole number per structure, not below 0": _costs,
    "settings are JSON and build it again": _settings,
    "compression is lossless": _lossless,
    "networks compute the same on compressed structures": _same_outputs,
    "networks train on it": _trains,
}


# -- graphs to try -----------------------------------------------------------------------------


def _example_graphs(directed: bool) -> Graphs:
    """Small graphs of all kinds; those of the second half hold labels that the first lacks."""
    random = np.random.Generator(np.random.PCG64(0))
    star, square = [(0, 1), (0, 2), (0, 3)], [(0, 1), (1, 2), (2, 3), (3, 0)]
    triangle, loops = [(0, 1), (1, 2), (2, 0)], [(0, 0), (0, 1)]
    edge_lists = [star, [], loops, square, triangle, [(0, 1), (2, 3)]]
    sizes = [4, 1, 2, 4, 5, 4]
    for size in (6, 8):
        pairs = [(u, v) for u in range(size) for v in range(u + 1)]
        edge_lists.append([pairs[i] for i in random.choice(len(pairs), 2 * size, replace=False)])
        sizes.append(size)
    if directed:
        star.append((1, 0))
    half = sum(sizes)
    edges = sum(map(len, edge_lists))
    return Graphs.from_edge_lists(
        [*edge_lists, *edge_lists[::-1], []],
        [*sizes, *sizes[::-1], 0],
        directed=directed,
        node_labels=np.array([*random.choice(["a", "b"], half), *random.choice(["a", "c"], half)]),
        node_attributes=random.choice([0.0, 0.5, -1.0], (2 * half, 2)),
        edge_labels=np.array([*random.choice([1, 2], edges), *random.choice([1, 3], edges)]),
        edge_attributes=random.choice([0.0, 0.5, -1.0], (2 * edges, 2)),
    )


def _renumbered(graphs: Graphs) -> Graphs:
    """The same graphs with their nodes in another order."""
    random = np.random.Generator(np.random.PCG64(0))
    # Node `old[v]` becomes node v: sorted by graph, and by chance within it.
    old = np.lexsort((random.random(graphs.n_nodes), segment_ids(graphs.node_offsets)))
    new = np.argsort(old)
    labels, vectors = graphs.node_labels, graphs.node_attributes
    return Graphs.from_edges(
        np.column_stack([new[segment_ids(graphs.indptr)], new[graphs.indices]]),
        graphs.sizes,
        directed=graphs.directed,
        edge_labels=graphs.edge_labels,
        edge_attributes=graphs.edge_attributes,
        targets=graphs.targets,
        name=graphs.name,
        node_labels=None if labels is None else labels[old],
        node_attributes=None if vectors is None else vectors[old],
    )
