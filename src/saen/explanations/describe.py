"""Parts of one example in words, and where they lie in its graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from saen._util.arrays import Floats, Ints
from saen.data.content_hash import level_keys
from saen.data.documents import Documents
from saen.data.graphs import Graphs
from saen.data.hierarchy import Hierarchy
from saen.decompositions import Anchors
from saen.decompositions.base import Decomposition
from saen.decompositions.words import object_words
from saen.explanations.molecules import as_molecule, fragment_smiles

MAX_REACHED = 20_000_000
"""Pairs of an object and what it is made of: with more, parts at the same places are not merged."""


@dataclass(frozen=True, eq=False)
class Part:
    """An object of one example and its contribution.

    - `level`, `number`: which object it is; `roles`: its roles in its parents;
    - `node`: the node at its centre, or the node that it is, where the decomposition says so;
    - `edge`: the two ends of the edge that it is, source first, where it is one;
    - `contribution`: to the output that is explained, that of all objects of the example together
      that are identical, or made of the same bottom objects: they lie at `count` places;
    - `what`: what it is made of, in words; `smiles`: of a molecule, the fragment, with `*` where
      the molecule goes on;
    - `bottom`: the bottom objects that it is made of, ascending; `everywhere`: at all places;
    - `inside`: the contribution of each of `bottom` within this part, if computed.
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
    smiles: str = ""
    everywhere: Ints | None = None

    @property
    def name(self) -> str:
        """The fragment, or what it is made of."""
        return self.smiles or self.what

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
            "smiles": self.smiles,
            "bottom": self.bottom.tolist(),
            "inside": None if self.inside is None else self.inside.tolist(),
        }


@dataclass(frozen=True, eq=False)
class DecomposedExample:
    """One example with its own hierarchy, and the graph or document that it is, if it is one.

    `anchors` are those that its decomposition gives, where it has any.
    """

    hierarchy: Hierarchy
    graph: Graphs | None = None
    anchors: Anchors | None = None
    decomposition: Decomposition | None = None
    document: Documents | None = None

    def describe(self, level: int, numbers: Ints) -> list[str]:
        """Objects of a level in words."""
        if self.decomposition is None:
            return object_words(self.hierarchy, level, numbers, lambda label: label)
        return self.decomposition.describe(self.hierarchy, level, numbers.astype(np.int64))

    def part(
        self, level: int, number: int, contribution: float, what: str = "", **merged: Any
    ) -> Part:
        """An object of a level in words; `merged` are fields about all that it stands for."""
        around = None if self.anchors is None else self.anchors.nodes[level]
        bottom = self.bottom_objects(level, number)
        own = {"roles": self._roles(level, np.array([number])), "everywhere": bottom} | merged
        return Part(
            level=level,
            number=number,
            node=None if around is None or around[number] < 0 else int(around[number]),
            contribution=float(contribution),
            what=what or self.describe(level, np.array([number]))[0],
            bottom=bottom,
            edge=self._ends(level, number),
            smiles=self._smiles(bottom),
            **own,
        )

    def place(self, part: Part) -> str:
        """Where a part lies, in words: its node, or the two ends of its edge; else nothing."""
        if part.edge is not None:
            arrow = "→" if self.graph is not None and self.graph.directed else "–"
            return f"{part.edge[0]} {arrow} {part.edge[1]}"
        return "" if part.node is None else str(part.node)

    @property
    def noun(self) -> str:
        """What the example is called."""
        return "molecule" if self.molecule is not None else singular(self.hierarchy.names[-1])

    def place_noun(self, parts: Sequence[Part]) -> str:
        """What the places of parts are called."""
        if any(part.edge is not None for part in parts):
            return "edge"
        return "node" if self.molecule is None else "atom"

    def strongest_parts(
        self,
        level: int,
        contributions: Floats,
        n_parts: int,
        inside: Callable[[Sequence[Ints]], list[Floats]] | None = None,
    ) -> tuple[Part, ...]:
        """The `n_parts` strongest parts of a level, with the contributions `inside` each.

        One part are identical objects in the same roles, and all that lie at the same places: in a
        small molecule, the neighbourhoods of depth 2, 3 and 4 are often the whole of it. What
        contributes nothing is left out.
        """
        places = self.places(level)
        members, first = self._fragments(level, places)
        totals = np.bincount(members, contributions, minlength=len(first))
        strongest = [each for each in largest(np.abs(totals), n_parts) if totals[each]]
        words = self.describe(level, first[strongest]) if strongest else []
        relation = self.hierarchy.relations[level]
        times = np.ones(relation.n_parts, dtype=np.int64)
        np.maximum.at(times, relation.parts, relation.multiplicity)
        everywhere = [np.flatnonzero(members == fragment) for fragment in strongest]
        here = [
            own[places[own] == places[first[fragment]]]
            for fragment, own in zip(strongest, everywhere, strict=True)
        ]
        values = [None] * len(strongest) if inside is None else inside(here)
        parts = []
        for fragment, what, own, value in zip(strongest, words, everywhere, values, strict=True):
            by_place = own[np.lexsort((-times[own], places[own]))]
            once = by_place[np.flatnonzero(np.diff(places[by_place], prepend=-1))]
            about = {
                "inside": value,
                "count": int(times[once].sum()),
                "roles": self._roles(level, own),
                "everywhere": self.bottom_objects(level, once),
            }
            number = int(first[fragment])
            parts.append(self.part(level, number, totals[fragment], what, **about))
        return tuple(parts)

    def places(self, level: int) -> Ints:
        """A number for every object of a level, the same for those of the same bottom objects."""
        reached = sparse.eye_array(self.hierarchy.sizes[0], format="csr", dtype=np.uint64)
        for relation in self.hierarchy.relations[:level]:
            ones = np.ones(relation.n_entries, dtype=np.uint64)
            shape = (relation.n_parents, relation.n_parts)
            parts = sparse.csr_array((ones, relation.parts, relation.indptr), shape)
            if (parts @ np.diff(reached.indptr).astype(np.uint64)).sum() > MAX_REACHED:
                return np.arange(self.hierarchy.sizes[level])
            reached = sparse.csr_array(parts @ reached)
            reached.data[:] = 1
        random = _random(self.hierarchy.sizes[0])
        _, places = np.unique(reached @ random, axis=0, return_inverse=True)
        return np.asarray(places.ravel(), dtype=np.int64)

    def _fragments(self, level: int, places: Ints) -> tuple[Ints, Ints]:
        """The fragment of every object, and the first object of each: kinds at the same places."""
        relation = self.hierarchy.relations[level]
        roles = np.zeros((relation.n_parts, relation.n_roles), dtype=np.uint64)
        roles[relation.parts, relation.roles] = 1
        described = np.column_stack([level_keys(self.hierarchy)[level], roles])
        _, kinds = np.unique(described, axis=0, return_inverse=True)
        pairs = np.unique(np.column_stack([kinds.ravel(), places]), axis=0)
        random = _random(len(places))[pairs[:, 1]]
        starts = np.flatnonzero(np.diff(pairs[:, 0], prepend=-1))
        signatures = np.add.reduceat(random, starts, axis=0) if len(starts) else random
        _, of_kind = np.unique(signatures, axis=0, return_inverse=True)
        _, first, members = np.unique(
            of_kind.ravel()[kinds.ravel()], return_index=True, return_inverse=True
        )
        order = np.argsort(first)  # in the order of the objects
        return np.argsort(order)[members.ravel()], first[order]

    def bottom_objects(self, level: int, numbers: int | Ints) -> Ints:
        """The bottom objects that objects consist of, ascending."""
        objects: Ints = np.atleast_1d(numbers)
        for relation in reversed(self.hierarchy.relations[:level]):
            objects = relation.parts_of(objects)
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

    def _roles(self, level: int, numbers: Ints) -> tuple[str, ...]:
        if level == self.hierarchy.depth:
            return ()
        relation = self.hierarchy.relations[level]
        roles = np.unique(relation.roles[np.isin(relation.parts, numbers)])
        return tuple(relation.alphabet[role] for role in roles.tolist())

    @cached_property
    def molecule(self) -> Any:
        """The graph as an RDKit molecule, None where it is none."""
        return None if self.graph is None else as_molecule(self.graph)

    def region(self, bottom: Ints) -> Ints:
        """The nodes of bottom objects, ascending: their own, and the ends of their edges."""
        assert self.graph is not None
        nodes, edges = self.nodes[bottom], self.edges[bottom]
        ends = self.graph.edges()[edges[edges >= 0]]
        return np.unique(np.concatenate([nodes[nodes >= 0], ends.ravel()]))

    def smiles(self, level: int, number: int) -> str:
        """An object of a molecule as a fragment in SMILES; else nothing."""
        return self._smiles(self.bottom_objects(level, number))

    def _smiles(self, bottom: Ints) -> str:
        """The fragment of some bottom objects."""
        return "" if self.molecule is None else fragment_smiles(self.molecule, self.region(bottom))


def plural(name: str) -> str:
    """The name of the objects of a level in a sentence.

    >>> plural("ego graphs"), plural("depth ≤ 2")
    ('ego graphs', 'neighbourhoods of depth ≤ 2')
    """
    return f"neighbourhoods of {name}" if name.startswith("depth ≤") else name


def singular(name: str) -> str:
    """The name of one object of a level.

    >>> singular("ego graphs"), singular("depth ≤ 2")
    ('ego graph', 'neighbourhood')
    """
    irregular = {"nodes and edges": "node or edge", "classes": "class"}
    if name.startswith("depth ≤"):
        return "neighbourhood"
    return irregular.get(name, name.removesuffix("s"))


def bracketed(name: str) -> str:
    """The name of a part in a sentence: in brackets, but for those of one word, such as SMILES.

    >>> bracketed("c1ccccc1"), bracketed("degree 3")
    ('c1ccccc1', '[degree 3]')
    """
    return f"[{name}]" if " " in name else name


def largest(values: Floats, k: int) -> list[int]:
    """The indices of the k largest values; equal values keep their order."""
    indices: list[int] = np.argsort(-values, kind="stable")[:k].tolist()
    return indices


def _random(n: int) -> Any:
    """Two random words for each of n objects, whose sums stand for sets of them."""
    return np.random.default_rng(n).integers(2**64, size=(n, 2), dtype=np.uint64)
