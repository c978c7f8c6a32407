"""Parts of one example in words, and where they lie in its graph."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from saen._util.arrays import Ints, ranges
from saen._util.strings import short_label
from saen.data.graphs import Graphs
from saen.data.hierarchy import Hierarchy, Relation
from saen.data.vocabulary import UNSEEN

Floats = NDArray[np.float64]
MAX_DESCRIPTION = 100  # characters


@dataclass(frozen=True, eq=False)
class Part:
    """An object of one example and its contribution.

    - `level`, `number`: which object it is; `roles`: its roles in its parents;
    - `node`: the node at its centre, or the node that it is, where the decomposition says so;
    - `contribution`: to the output that is explained;
    - `what`: the labels that it is made of, in words;
    - `bottom`: the bottom objects that it is made of, ascending;
    - `inside`: the contribution of each of them within this part, if computed.
    """

    level: int
    number: int
    roles: tuple[str, ...]
    node: int | None
    contribution: float
    what: str
    bottom: Ints
    inside: Floats | None = None

    def to_json(self) -> dict[str, Any]:
        """As plain numbers, lists and strings."""
        return {
            "level": self.level,
            "number": self.number,
            "roles": list(self.roles),
            "node": self.node,
            "contribution": self.contribution,
            "what": self.what,
            "bottom": self.bottom.tolist(),
            "inside": None if self.inside is None else self.inside.tolist(),
        }


@dataclass(frozen=True, eq=False)
class DecomposedExample:
    """One example with its own hierarchy, and its graph if it is one.

    `radii` are those of the decomposition, where it has any.
    """

    hierarchy: Hierarchy
    graph: Graphs | None = None
    radii: tuple[int, ...] = ()

    def part(
        self, level: int, number: int, contribution: float, inside: Floats | None = None
    ) -> Part:
        """An object of a level in words."""
        around = self.centres[level]
        return Part(
            level=level,
            number=number,
            roles=self._roles(level, number),
            node=None if around is None or around[number] < 0 else int(around[number]),
            contribution=float(contribution),
            what=short_label(self._what(level, number), MAX_DESCRIPTION),
            bottom=self.bottom_objects(level, number),
            inside=inside,
        )

    def label(self, number: int) -> str:
        """The label of a bottom object, in words."""
        attributes = self.hierarchy.attributes
        if attributes.codes is not None and attributes.vocabulary is not None:
            code = int(attributes.codes[number])
            return "unseen" if code == UNSEEN else short_label(attributes.vocabulary[code], 40)
        assert attributes.vectors is not None
        return f"({', '.join(f'{value:.3g}' for value in attributes.vectors[number][:4].tolist())})"

    def bottom_objects(self, level: int, number: int) -> Ints:
        """The bottom objects that an object consists of, ascending."""
        objects: Ints = np.array([number])
        for relation in reversed(self.hierarchy.relations[:level]):
            objects = np.unique(relation.parts[_entries(relation, objects)])
        return objects

    @cached_property
    def nodes(self) -> Ints:
        """The node of every bottom object, -1 where it is none, shape (n_0,)."""
        n = self.hierarchy.sizes[0]
        none = np.full(n, -1)
        if self.graph is None:
            return none
        name, n_nodes = self.hierarchy.names[0], self.graph.n_nodes
        if name == "nodes" and n == n_nodes:
            return np.arange(n)
        if name == "nodes and edges":
            none[:n_nodes] = np.arange(n_nodes)
            return none
        first = self.hierarchy.relations[0]
        if name == "nodes" and "root" in first.alphabet:
            # Nodes at distances from a root: each begins with itself as the root.
            roots = np.unique(first.parts[first.roles == first.alphabet.index("root")])
            if len(roots) == n_nodes:
                return np.searchsorted(roots, np.arange(n), side="right") - 1
        return none

    @cached_property
    def edges(self) -> Ints:
        """The edge (of `graph.edges()`) of every bottom object, -1 where it is none, (n_0,)."""
        n = self.hierarchy.sizes[0]
        none = np.full(n, -1)
        if self.graph is None:
            return none
        name, n_edges = self.hierarchy.names[0], self.graph.n_edges
        if name == "edges" and n == n_edges:
            return np.arange(n)
        if name == "nodes and edges":
            none[self.graph.n_nodes :] = np.arange(n_edges)
        return none

    @cached_property
    def centres(self) -> tuple[Ints | None, ...]:
        """Per level, bottom first, the node that every object lies around, or None."""
        placed = (self.nodes >= 0).any()
        out: list[Ints | None] = [self.nodes if placed else None]
        for level, relation in enumerate(self.hierarchy.relations[:-1], start=1):
            below, n = out[-1], relation.n_parents
            kept = np.isin(relation.roles, [_place(relation, "root"), _place(relation, "carry")])
            parents = np.repeat(np.arange(n), np.diff(relation.indptr))[kept]
            if below is not None and np.array_equal(parents, np.arange(n)):
                out.append(below[relation.parts[kept]])
            elif level == self.hierarchy.depth - 1 and self.graph is not None and self.radii:
                # Ego graphs and subgraphs are numbered by node, then radius.
                fits = n == self.graph.n_nodes * len(self.radii)
                out.append(np.arange(n) // len(self.radii) if fits else None)
            else:
                out.append(None)
        return tuple(out)

    def _roles(self, level: int, number: int) -> tuple[str, ...]:
        if level == self.hierarchy.depth:
            return ()
        relation = self.hierarchy.relations[level]
        roles = np.unique(relation.roles[relation.parts == number])
        return tuple(relation.alphabet[role] for role in roles.tolist())

    def _what(self, level: int, number: int) -> str:
        """The labels that an object is made of: by role on level 1, in their order above."""
        if level == 0:
            return self.label(number)
        if level > 1:
            return _listed([self.label(i) for i in self.bottom_objects(level, number).tolist()])
        relation = self.hierarchy.relations[0]
        entries = _entries(relation, np.array([number]))
        counts = np.ones(len(entries)) if relation.counts is None else relation.counts[entries]
        by_role: dict[str, Counter[str]] = {}
        order = np.lexsort((relation.parts[entries], relation.roles[entries]))
        for entry, count in zip(entries[order].tolist(), counts[order].tolist(), strict=True):
            role = relation.alphabet[relation.roles[entry]]
            labels = by_role.setdefault(role, Counter())
            labels[self.label(int(relation.parts[entry]))] += int(count)
        return "; ".join(
            f"{role} {', '.join(_times(label, n) for label, n in labels.items())}"
            for role, labels in by_role.items()
        )


def singular(name: str) -> str:
    """The name of one object of a level.

    >>> singular("ego graphs"), singular("nodes")
    ('ego graph', 'node')
    """
    irregular = {"nodes and edges": "node or edge", "classes": "class"}
    return irregular.get(name, name.removesuffix("s"))


def _entries(relation: Relation, parents: Ints) -> NDArray[np.int64]:
    starts = relation.indptr[parents].astype(np.int64)
    return ranges(starts, relation.indptr[parents + 1].astype(np.int64) - starts)


def _place(relation: Relation, role: str) -> int:
    return relation.alphabet.index(role) if role in relation.alphabet else -1


def _listed(labels: list[str]) -> str:
    """Labels in order, runs of the same label merged."""
    runs: list[tuple[str, int]] = []
    for label in labels:
        if runs and runs[-1][0] == label:
            runs[-1] = (label, runs[-1][1] + 1)
        else:
            runs.append((label, 1))
    return ", ".join(_times(label, n) for label, n in runs)


def _times(label: str, n: int) -> str:
    return label if n == 1 else f"{label} ×{n}"
