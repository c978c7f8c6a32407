"""Parts of one example in words, and where they lie in its graph."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import Any

import numpy as np

from saen._util.arrays import Floats, Ints
from saen._util.strings import short_label
from saen.data.content_hash import level_keys
from saen.data.documents import Documents
from saen.data.graphs import Graphs
from saen.data.hierarchy import Hierarchy
from saen.data.nested import NUMBER
from saen.data.vocabulary import UNSEEN
from saen.decompositions import Anchors

MAX_DESCRIPTION = 100  # characters


@dataclass(frozen=True, eq=False)
class Part:
    """An object of one example and its contribution.

    - `level`, `number`: which object it is; `roles`: its roles in its parents;
    - `node`: the node at its centre, or the node that it is, where the decomposition says so;
    - `edge`: the two ends of the edge that it is, source first, where it is one;
    - `contribution`: to the output that is explained, that of all `count` identical objects of the
      example together, of which this is the first;
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
    count: int = 1
    edge: tuple[int, int] | None = None

    def to_json(self) -> dict[str, Any]:
        """As plain numbers, lists and strings."""
        return {
            "level": self.level,
            "number": self.number,
            "roles": list(self.roles),
            "node": self.node,
            "edge": None if self.edge is None else list(self.edge),
            "contribution": self.contribution,
            "count": self.count,
            "what": self.what,
            "bottom": self.bottom.tolist(),
            "inside": None if self.inside is None else self.inside.tolist(),
        }


@dataclass(frozen=True, eq=False)
class DecomposedExample:
    """One example with its own hierarchy, and the graph or document that it is, if it is one.

    `anchors` are those that its decomposition gives, where it has any; `describe_label` says what a
    bottom label means.
    """

    hierarchy: Hierarchy
    graph: Graphs | None = None
    anchors: Anchors | None = None
    describe_label: Callable[[Any], Any] = lambda label: label
    document: Documents | None = None

    def part(
        self,
        level: int,
        number: int,
        contribution: float,
        inside: Floats | None = None,
        count: int = 1,
    ) -> Part:
        """An object of a level in words."""
        around = None if self.anchors is None else self.anchors.nodes[level]
        return Part(
            level=level,
            number=number,
            roles=self._roles(level, number),
            node=None if around is None or around[number] < 0 else int(around[number]),
            contribution=float(contribution),
            what=short_label(self._what(level, number), MAX_DESCRIPTION),
            bottom=self.bottom_objects(level, number),
            inside=inside,
            count=count,
            edge=self._ends(level, number),
        )

    def place(self, part: Part) -> str:
        """Where a part lies, in words: its node, or the two ends of its edge; else nothing."""
        if part.edge is not None:
            arrow = "→" if self.graph is not None and self.graph.directed else "–"
            return f"{part.edge[0]} {arrow} {part.edge[1]}"
        return "" if part.node is None else str(part.node)

    def strongest_parts(
        self,
        level: int,
        contributions: Floats,
        k: int,
        inside: Callable[[int], Floats] | None = None,
    ) -> tuple[Part, ...]:
        """The k strongest kinds of objects of a level, with the contributions `inside` each.

        Identical objects in the same roles are one part, with the sum of their contributions.
        """
        first, kinds, counts = self._kinds[level]
        totals = np.bincount(kinds, contributions, minlength=len(first))
        return tuple(
            self.part(
                level,
                int(first[kind]),
                totals[kind],
                None if inside is None else inside(int(first[kind])),
                int(counts[kind]),
            )
            for kind in largest(np.abs(totals), k)
        )

    @cached_property
    def _kinds(self) -> list[tuple[Ints, Ints, Ints]]:
        """Per level below the top: the first object of every kind, the kind of every object, and
        how many there are of each."""
        found: list[tuple[Ints, Ints, Ints]] = []
        keys = level_keys(self.hierarchy)
        for level, relation in enumerate(self.hierarchy.relations):
            roles = np.zeros((relation.n_parts, relation.n_roles), dtype=np.uint64)
            roles[relation.parts, relation.roles] = 1
            described = np.column_stack([keys[level], roles])
            _, first, kinds = np.unique(described, axis=0, return_index=True, return_inverse=True)
            times = np.ones(relation.n_parts, dtype=np.int64)
            np.maximum.at(times, relation.parts, relation.multiplicity)
            counts = np.bincount(kinds.ravel(), times).astype(np.int64)
            order = np.argsort(first)  # in the order of the objects
            found.append((first[order], np.argsort(order)[kinds.ravel()], counts[order]))
        return found

    def label(self, number: int) -> str:
        """The label of a bottom object, in words."""
        attributes = self.hierarchy.attributes
        if attributes.codes is not None and attributes.vocabulary is not None:
            code = int(attributes.codes[number])
            if code == UNSEEN:
                return "unseen"
            label = attributes.vocabulary[code]
            if label == NUMBER and attributes.vectors is not None:
                return f"{attributes.vectors[number, 0]:.4g}"
            return short_label(self.describe_label(label), 40)
        assert attributes.vectors is not None
        return f"({', '.join(f'{value:.3g}' for value in attributes.vectors[number][:4].tolist())})"

    def bottom_objects(self, level: int, number: int) -> Ints:
        """The bottom objects that an object consists of, ascending."""
        objects: Ints = np.array([number])
        for relation in reversed(self.hierarchy.relations[:level]):
            objects = np.unique(relation.take(objects).parts)
        return objects

    @cached_property
    def nodes(self) -> Ints:
        """The node of every bottom object, -1 where it is none, shape (n_0,)."""
        return self._bottom(None if self.anchors is None else self.anchors.nodes[0])

    @cached_property
    def edges(self) -> Ints:
        """The edge (of `graph.edges()`) of every bottom object, -1 where it is none, (n_0,)."""
        return self._bottom(None if self.anchors is None else self.anchors.edges[0])

    def on_graph(self, values: Floats) -> tuple[Floats, Floats]:
        """Sums of values of bottom objects over nodes (words), (N,), and edges, (E,)."""
        graph = self.graph if self.document is None else self.document.sentences
        assert graph is not None
        nodes, edges = (
            np.bincount(places[places >= 0], values[places >= 0], minlength=n).astype(np.float64)
            for places, n in ((self.nodes, graph.n_nodes), (self.edges, graph.n_edges))
        )
        return nodes, edges

    def _ends(self, level: int, number: int) -> tuple[int, int] | None:
        edges = None if self.anchors is None else self.anchors.edges[level]
        if edges is None or self.graph is None or edges[number] < 0:
            return None
        source, target = self.graph.edges()[edges[number]].tolist()
        return source, target

    def _bottom(self, anchors: Ints | None) -> Ints:
        return np.full(self.hierarchy.sizes[0], -1) if anchors is None else anchors

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
            labels = map(self.label, self.bottom_objects(level, number).tolist())
            return ", ".join(_times(label, len(list(run))) for label, run in groupby(labels))
        own = self.hierarchy.relations[0].take(np.array([number])).canonical()
        by_role: dict[str, Counter[str]] = {}
        columns = (column.tolist() for column in (own.roles, own.parts, own.multiplicity))
        for role, part, count in zip(*columns, strict=True):
            by_role.setdefault(own.alphabet[role], Counter())[self.label(part)] += count
        return "; ".join(
            f"{role} {', '.join(_times(label, n) for label, n in counts.items())}"
            for role, counts in by_role.items()
        )


def singular(name: str) -> str:
    """The name of one object of a level.

    >>> singular("ego graphs"), singular("neighbourhoods up to depth 2")
    ('ego graph', 'neighbourhood')
    """
    irregular = {"nodes and edges": "node or edge", "classes": "class"}
    return irregular.get(name, name.partition(" up to ")[0].removesuffix("s"))


def largest(values: Floats, k: int) -> list[int]:
    """The indices of the k largest values; equal values keep their order."""
    indices: list[int] = np.argsort(-values, kind="stable")[:k].tolist()
    return indices


def _times(label: str, n: int) -> str:
    return label if n == 1 else f"{label} ×{n}"
