"""`check_decomposition`: the laws that every decomposition has to keep."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from scipy import sparse

from saen._util.arrays import Array, segment_ids
from saen.data.chunks import compress_graphs
from saen.data.compression import Compressed, compress, merge
from saen.data.documents import Documents
from saen.data.graphs import Graphs
from saen.data.hierarchy import Hierarchy
from saen.data.vocabulary import UNSEEN
from saen.decompositions import Decomposition
from saen.errors import InputError
from saen.network.architecture import Architecture
from saen.network.loss import Task
from saen.network.model import SAEN
from saen.network.settings import Settings
from saen.network.training import train

_PRECISION = 1e-9  # of the largest output, in float64


def check_decomposition(decomposition: Decomposition, data: Any = None) -> None:
    """Check the laws of decompositions on some data.

    - there is one top-level object per example, in order, and every run gives the same;
    - once fitted, all data have the vocabulary and the roles of the fitted ones, and labels beyond
      them are unseen;
    - the parts of an example depend neither on other examples nor on the numbering of nodes;
    - anchors name nodes and edges of the example that an object belongs to;
    - costs are one integer per example; settings are JSON and rebuild the decomposition;
    - compression is lossless: CD = I, M = DCM, chunks give what everything at once gives, networks
      compute the same with and without it, and train.

    Parameters
    ----------
    decomposition : Decomposition
        The decomposition to check.
    data : Any, default=None
        Data that it takes: two examples or more, the more varied the better. None: small graphs of
        all kinds, undirected and directed, with labels and attributes of nodes and edges, with
        loops, isolated nodes, or no nodes.

    Raises
    ------
    AssertionError
        Which names the broken law.
    InputError
        For too little data.

    Examples
    --------
    >>> from saen.decompositions import Ego
    >>> check_decomposition(Ego(radii=(0, 1)))
    """
    if data is None:
        if decomposition.takes != "graphs":
            raise InputError(f"{_name(decomposition)} takes {decomposition.takes}: pass some data")
        for directed in (False, True):
            check_decomposition(decomposition, _example_graphs(directed))
        return
    if len(data) < 2:
        raise InputError(f"a check needs two examples or more, not {len(data)}")
    unfitted = dict.fromkeys(f.name for f in fields(decomposition) if "fitted" in f.metadata)
    trial = _Trial(replace(decomposition, **unfitted), data)
    for law, find_violation in _LAWS.items():
        try:
            violation = find_violation(trial)
        except Exception as error:
            message = f"{type(error).__name__}: {error}".rstrip(": ")
            raise AssertionError(f"{_name(decomposition)}: {law} ({message})") from error
        if violation:
            raise AssertionError(f"{_name(decomposition)}: {law} ({violation})")


def _name(decomposition: Decomposition) -> str:
    return type(decomposition).__name__


@dataclass(frozen=True)
class _Trial:
    """An unfitted decomposition, and data to try it on."""

    decomposition: Decomposition
    data: Any

    @cached_property
    def hierarchy(self) -> Hierarchy:
        return self.decomposition.decompose(self.data)

    @cached_property
    def fitted(self) -> Decomposition:
        return self.decomposition.fit(self.data)

    @cached_property
    def after_fit(self) -> Hierarchy:
        return self.fitted.decompose(self.data)

    @cached_property
    def compressed(self) -> Compressed:
        return compress(self.after_fit)


# -- the laws: each returns what is wrong, or nothing ------------------------------------------


def _one_on_top(trial: _Trial) -> str:
    if not isinstance(trial.hierarchy, Hierarchy):
        return f"returned {type(trial.hierarchy).__name__}"
    for n in (len(trial.data), 0):
        n_objects = len(trial.decomposition.decompose(trial.data[:n]))
        if n_objects != n:
            return f"{n} examples, {n_objects} objects"
    return ""


def _repeatable(trial: _Trial) -> str:
    again = trial.decomposition.decompose(trial.data)
    return "" if again == trial.hierarchy else "a second run gives another hierarchy"


def _fitting_changes_nothing(trial: _Trial) -> str:
    if type(trial.fitted) is not type(trial.decomposition):
        return f"fit returns {type(trial.fitted).__name__}"
    same = trial.after_fit == trial.hierarchy
    return "" if same else "the fitted decomposition gives another hierarchy"


def _fitted_to_one_half(trial: _Trial) -> str:
    half = len(trial.data) // 2
    known, new = trial.data[:half], trial.data[half:]
    fitted = trial.decomposition.fit(known)
    here, there = fitted.decompose(known), fitted.decompose(new)
    if here.attributes.vocabulary != there.attributes.vocabulary:
        return f"the vocabulary becomes {there.attributes.vocabulary}"
    for level, (r, s) in enumerate(zip(here.relations, there.relations, strict=True), start=1):
        if r.alphabet != s.alphabet:
            return f"the roles of level {level} become {', '.join(s.alphabet)}"
    if there.attributes.vocabulary is not None:
        free = trial.decomposition.decompose(new).attributes
        expected, codes = free.recoded(there.attributes.vocabulary).codes, there.attributes.codes
        assert expected is not None
        assert codes is not None
        # Parts in unseen roles are left out, and bottom objects with them.
        if len(expected) == len(codes) and not np.array_equal(np.sort(expected), np.sort(codes)):
            return f"{(expected == UNSEEN).sum()} labels are new, {(codes == UNSEEN).sum()} unseen"
    return ""


def _piece_by_piece(trial: _Trial) -> str:
    pieces = [trial.fitted.decompose(trial.data[i : i + 1]) for i in range(len(trial.data))]
    if [len(piece) for piece in pieces] != [1] * len(pieces):
        return "one example alone gives several objects on top"
    return _difference(merge(map(compress, pieces)), trial.compressed)


def _numbering(trial: _Trial) -> str:
    if not isinstance(trial.data, Graphs):
        return ""
    renumbered = trial.fitted.decompose(_renumbered(trial.data))
    return _difference(compress(renumbered), trial.compressed)


def _difference(one: Compressed, other: Compressed) -> str:
    """Where two compressed datasets differ, whatever the order of their lower objects."""
    if one.top_only() == other.top_only():
        return ""
    for before, after in zip(other.levels(), one.levels(), strict=True):
        if before != after:
            what = next(key for key in before if before[key] != after[key])
            return f"{before[what]:,} {what} of {before['name']} become {after[what]:,}"
    if np.array_equal(one.top, other.top):
        return "as many objects as before, but others"
    row = int(np.flatnonzero(one.top != other.top)[0])
    return f"example {row} becomes another"


def _anchored(trial: _Trial) -> str:
    anchors = trial.fitted.anchors(trial.data)
    if anchors is None:
        return ""
    graphs, example_of_graph = trial.data, np.arange(len(trial.data))
    if isinstance(trial.data, Documents):
        graphs, example_of_graph = trial.data.sentences, segment_ids(trial.data.offsets)
    example_of_node = example_of_graph[segment_ids(graphs.node_offsets)]
    examples = {"nodes": example_of_node, "edges": example_of_node[graphs.edges()[:, 0]]}
    owners = _owners(trial.after_fit)
    for kind, example in examples.items():
        columns = getattr(anchors, kind)
        if len(columns) != len(owners):
            return f"{kind} of {len(columns)} levels, expected {len(owners)}"
        for level, (column, owner) in enumerate(zip(columns, owners, strict=True)):
            if column is None:
                continue
            if column.shape != owner.shape or column.dtype.kind != "i":
                return f"{kind} of level {level} are {column.dtype} of shape {column.shape}"
            if column.min(initial=0) < -1 or column.max(initial=-1) >= len(example):
                return f"{kind} of level {level} are not all between -1 and {len(example) - 1}"
            known = (column >= 0) & (owner >= 0)
            if not np.array_equal(example[column[known]], owner[known]):
                return f"{kind} of level {level} belong to other examples"
    return ""


def _owners(hierarchy: Hierarchy) -> list[Array]:
    """For every level the example that each object belongs to, -1 where nothing reaches it."""
    owners = [np.arange(len(hierarchy))]
    for relation in reversed(hierarchy.relations):
        owner = np.full(relation.n_parts, -1)
        owner[relation.parts] = owners[-1][relation.parents]
        owners.append(owner)
    return owners[::-1]


def _costs(trial: _Trial) -> str:
    costs = trial.fitted.costs(trial.data)
    if costs.shape != (len(trial.data),) or costs.dtype.kind not in "iu":
        return f"returned {costs.dtype} of shape {costs.shape}"
    return f"one is {costs.min()}" if costs.min() < 0 else ""


def _settings(trial: _Trial) -> str:
    settings = trial.decomposition.settings()
    plain = json.loads(json.dumps(settings))
    rebuilt = type(trial.decomposition)(**{k: v for k, v in plain.items() if k != "name"})
    if plain != settings or rebuilt.settings() != settings:
        return f"{settings} become {rebuilt.settings()}"
    same = rebuilt.decompose(trial.data) == trial.hierarchy
    return "" if same else "the rebuilt decomposition gives another hierarchy"


def _lossless(trial: _Trial) -> str:
    in_chunks = compress_graphs(trial.data, trial.fitted, lower_inverse=False)
    if in_chunks != trial.compressed.top_only():
        return "compress_graphs differs from compress"
    matrices = [trial.after_fit.attributes.matrix()]
    for level, R in enumerate(trial.after_fit.relations):
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
    network = _network(trial.after_fit, dtype=torch.float64)
    with torch.no_grad():
        uncompressed, compressed = network(trial.after_fit), network(trial.compressed)
    scale = uncompressed.abs().max().clamp(min=1.0)
    difference = float((uncompressed - compressed).abs().max() / scale)
    return "" if difference <= _PRECISION else f"outputs differ by {difference:.1e}"


def _trains(trial: _Trial) -> str:
    n = len(trial.data)
    task = Task("binary", np.arange(n) % 2, np.ones((n, 1)), n_classes=2)
    network = _network(trial.compressed.hierarchy, dtype=torch.float32)
    history = train(network, trial.compressed, task, Settings(epochs=3))
    return (
        ""
        if np.isfinite(np.array(history.loss, dtype=np.float64)).all()
        else f"losses {history.loss}"
    )


def _network(hierarchy: Hierarchy, dtype: torch.dtype) -> SAEN:
    layers = [*[[4]] * hierarchy.depth, [4, 1]]
    return SAEN(Architecture.over(hierarchy, layers), seeds=[0], dtype=dtype)


_LAWS: dict[str, Callable[[_Trial], str]] = {
    "decompose returns a Hierarchy with one top-level object per example": _one_on_top,
    "the same data give the same hierarchy": _repeatable,
    "fitting does not change the hierarchy of the fitted data": _fitting_changes_nothing,
    "once fitted, vocabulary and roles stay, and new labels are unseen": _fitted_to_one_half,
    "the parts of an example do not depend on other examples": _piece_by_piece,
    "the numbering of nodes does not matter": _numbering,
    "anchors name nodes and edges of the same example": _anchored,
    "costs are one integer ≥ 0 per example": _costs,
    "settings are JSON and rebuild the decomposition": _settings,
    "compression is lossless": _lossless,
    "networks compute the same on compressed data": _same_outputs,
    "networks train on it": _trains,
}


# -- graphs to try -----------------------------------------------------------------------------


def _example_graphs(directed: bool) -> Graphs:
    """Small graphs of all kinds; the second half has labels that the first half lacks."""
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
    # Node `old[v]` becomes node v: sorted by graph, in random order within it.
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
