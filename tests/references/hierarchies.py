"""Slow and literal: what the library must agree with, written without any of its algorithms."""

from __future__ import annotations

import math
import struct
from collections import Counter, deque
from collections.abc import Collection, Hashable, Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from saen import Compressed, Hierarchy, Relation

# -- compression by nested Python values -------------------------------------------------------


def contents(hierarchy: Hierarchy) -> list[list[Hashable]]:
    """What every object of every level is: its attributes, or the multiset of (role, part)."""
    attributes = hierarchy.attributes
    bottom: list[Hashable] = []
    for row in range(len(attributes)):
        label: Hashable = None
        if attributes.codes is not None:
            code = int(attributes.codes[row])
            label = "unseen" if code == -1 else ("label", attributes.vocabulary[code])
        vector: Hashable = None
        if attributes.vectors is not None:
            vector = tuple(struct.pack("<d", float(x)) for x in attributes.vectors[row])
        bottom.append((label, vector))
    levels = [bottom]
    for relation in hierarchy.relations:
        below = levels[-1]
        parents: list[Hashable] = []
        for parent in range(relation.n_parents):
            parts: Counter[Hashable] = Counter()
            for role, part, count in entries_of(relation, parent):
                parts[relation.alphabet[role], below[part]] += count
            parents.append(frozenset(parts.items()))
        levels.append(parents)
    return levels


def entries_of(relation: Relation, parent: int) -> list[tuple[int, int, int]]:
    """(role, part, count) of every entry of a parent."""
    return [
        (
            int(relation.roles[e]),
            int(relation.parts[e]),
            1 if relation.counts is None else int(relation.counts[e]),
        )
        for e in range(int(relation.indptr[parent]), int(relation.indptr[parent + 1]))
    ]


def named_entries(hierarchy: Hierarchy, number: int) -> list[tuple[str, int]]:
    """(role, part) of every entry of an object of level 1, sorted."""
    relation = hierarchy.relations[0]
    entries = entries_of(relation, number)
    return sorted((relation.alphabet[role], part) for role, part, _ in entries)


def first_met(values: Sequence[Hashable]) -> list[int]:
    """The same partition with classes numbered in the order in which they are met."""
    numbers: dict[Hashable, int] = {}
    return [numbers.setdefault(value, len(numbers)) for value in values]


# -- Algorithm 1 of the paper by dense matrices ------------------------------------------------


def compute_cd(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """C and D from the equal rows of a dense matrix, classes in order of appearance."""
    classes = first_met([tuple(row) for row in matrix.tolist()])
    D = np.zeros((len(classes), max(classes, default=-1) + 1))
    for row, label in enumerate(classes):
        D[row, label] = 1
    C = np.array([column / column.sum() for column in D.T]).reshape(D.shape[::-1])
    return C, D


def attribute_matrix(hierarchy: Hierarchy) -> np.ndarray:
    """X: one-hot labels (nothing where unseen), then the vectors."""
    attributes = hierarchy.attributes
    n_labels = 0 if attributes.vocabulary is None else len(attributes.vocabulary)
    n_reals = 0 if attributes.vectors is None else attributes.vectors.shape[1]
    X = np.zeros((len(attributes), n_labels + n_reals))
    for row in range(len(attributes)):
        if attributes.codes is not None and attributes.codes[row] >= 0:
            X[row, attributes.codes[row]] = 1
        if attributes.vectors is not None:
            X[row, n_labels:] = attributes.vectors[row]
    return X


def relation_matrices(relation: Relation) -> list[np.ndarray]:
    """R_{l,π} for every role π."""
    matrices = [np.zeros((relation.n_parents, relation.n_parts)) for _ in relation.alphabet]
    for parent in range(relation.n_parents):
        for role, part, count in entries_of(relation, parent):
            matrices[role][parent, part] += count
    return matrices


def domain_compression(
    X: np.ndarray, R: list[list[np.ndarray]]
) -> tuple[np.ndarray, list[list[np.ndarray]], list[np.ndarray], list[np.ndarray]]:
    """DOMAIN-COMPRESSION, line by line: X^comp, R^comp, and all C_l and D_l."""
    C, D = compute_cd(X)
    Cs, Ds, R_comp = [C], [D], []
    X_comp = C @ X
    for matrices in R:
        col_comp = [matrix @ Ds[-1] for matrix in matrices]
        C, D = compute_cd(np.hstack(col_comp))
        R_comp.append([C @ matrix for matrix in col_comp])
        Cs.append(C)
        Ds.append(D)
    return X_comp, R_comp, Cs, Ds


# -- a network by its definition ---------------------------------------------------------------


def network(hierarchy: Hierarchy, seed: int, width: int = 3) -> list[np.ndarray]:
    """H_0 … H_L of a network with random weights: shift, aggregate, extract, object by object."""
    rng = np.random.default_rng(seed)
    H = [_extract(attribute_matrix(hierarchy), rng, width)]
    for relation in hierarchy.relations:
        A = np.zeros((relation.n_parents, relation.n_roles * width))
        for parent in range(relation.n_parents):
            for role, part, count in entries_of(relation, parent):
                z = np.zeros(relation.n_roles)
                z[role] = 1
                A[parent] += count * np.kron(z, H[-1][part])
        H.append(_extract(A, rng, width))
    return H


def _extract(A: np.ndarray, rng: np.random.Generator, width: int) -> np.ndarray:
    hidden = rng.normal(size=(A.shape[1], 5)), rng.normal(size=5)
    skip, last = rng.normal(size=(A.shape[1], width)), rng.normal(size=(5, width))
    # The linear way past the hidden layer keeps differences visible where tanh saturates.
    return np.tanh(A @ hidden[0] + hidden[1]) @ last + A @ skip


# -- ego graphs by breadth-first search --------------------------------------------------------

Edges = Sequence[tuple[int, int]]


def neighbours(size: int, edges: Edges, directed: bool, direction: str) -> list[set[int]]:
    """Who is next to whom, following edges as `direction` says."""
    near: list[set[int]] = [set() for _ in range(size)]
    for u, v in edges:
        if not directed or direction in ("both", "out"):
            near[u].add(v)
        if not directed or direction in ("both", "in"):
            near[v].add(u)
    return near


def ball(near: list[set[int]], root: int, radius: int) -> set[int]:
    """Nodes within a distance of the root."""
    distance = {root: 0}
    queue = deque([root])
    while queue:
        node = queue.popleft()
        if distance[node] == radius:
            continue
        for other in near[node]:
            if other not in distance:
                distance[other] = distance[node] + 1
                queue.append(other)
    return set(distance)


def degrees(size: int, edges: Edges, directed: bool, direction: str) -> list[int]:
    """Ends of edges at every node; a loop has both of its ends there."""
    out, into = [0] * size, [0] * size
    for u, v in edges:
        out[u] += 1
        into[v] += 1
    if not directed or direction == "both":
        return [a + b for a, b in zip(out, into, strict=True)]
    return out if direction == "out" else into


def refined(
    colours: Sequence[Hashable], near: Sequence[Collection[int]], rounds: int
) -> list[list[int]]:
    """Weisfeiler-Lehman: the colour of every node after 0, 1, … rounds, numbered as met."""
    out = [first_met(colours)]
    for _ in range(rounds):
        old = out[-1]
        out.append(
            first_met(
                [(old[v], tuple(sorted([old[u] for u in near[v]]))) for v in range(len(near))]
            )
        )
    return out


def log_bin(degree: int, per_doubling: int) -> int:
    """floor(b · log2(1 + degree)): the largest k with 2^k ≤ (1 + degree)^b."""
    k = max(0, math.floor(per_doubling * math.log2(1 + degree)) - 2)
    while 2 ** (k + 1) <= (1 + degree) ** per_doubling:
        k += 1
    return k


# -- comparing ---------------------------------------------------------------------------------


def same_arrays(one: Any, other: Any) -> bool:
    """Whether two (compressed) hierarchies are equal array for array, types and order included."""
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return (
            isinstance(one, np.ndarray)
            and isinstance(other, np.ndarray)
            and one.dtype == other.dtype
            and one.shape == other.shape
            and one.tobytes() == other.tobytes()
        )
    if type(one) is not type(other):
        return False
    if isinstance(one, tuple):
        return len(one) == len(other) and all(map(same_arrays, one, other))
    if isinstance(one, Compressed | Hierarchy | Relation) or hasattr(one, "__dataclass_fields__"):
        return all(same_arrays(getattr(one, f.name), getattr(other, f.name)) for f in fields(one))
    return bool(one == other)
