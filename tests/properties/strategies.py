"""Random hierarchies and graphs, small and full of coincidences."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from saen import Attributes, Graphs, Hierarchy, Relation, Vocabulary
from tests.references import hierarchies as reference

LABELS = [0, 1, 7, -3, "1", "C", "", "π", (1, "1"), (1, 1), ("C",), (7, "C", 0)]
ROLES = ["root", "elem", "carry", "radius 0", "π"]
# Values that are easily taken for one another: 0.1 + 0.2 is not 0.3, and -0.0 has its own bits.
REALS = [0.0, -0.0, 0.3, 0.1 + 0.2, 1.0, -2.5]
COUNTS = [1, 2, 3, 255, 256]  # the last does not fit a byte

labels = st.sampled_from(LABELS)
# An empty level empties everything above it, so it may not come too often.
least = st.sampled_from([2, 2, 2, 2, 2, 2, 2, 0])
vocabularies = st.lists(labels, max_size=5).map(Vocabulary)


@dataclass(frozen=True)
class Schema:
    """What hierarchies must have in common to be joined."""

    alphabets: tuple[tuple[str, ...], ...]
    with_codes: bool
    n_reals: int | None


@st.composite
def schemas(draw: st.DrawFn, kinds: Sequence[str] = ("codes", "vectors", "both")) -> Schema:
    alphabet = st.lists(st.sampled_from(ROLES), min_size=1, max_size=3, unique=True)
    depth = draw(st.integers(1, 5))
    kind = draw(st.sampled_from(kinds))
    return Schema(
        tuple(tuple(draw(alphabet)) for _ in range(depth)),
        kind != "vectors",
        None if kind == "codes" else draw(st.integers(0, 2)),
    )


@st.composite
def attributes(draw: st.DrawFn, schema: Schema, n: int) -> Attributes:
    codes = vocabulary = vectors = None
    if schema.with_codes:
        vocabulary = draw(vocabularies)
        drawn = draw(st.lists(st.integers(-1, len(vocabulary) - 1), min_size=n, max_size=n))
        codes = np.array(drawn, dtype=draw(st.sampled_from([np.int8, np.int32, np.int64])))
    if schema.n_reals is not None:
        size = n * schema.n_reals
        values = draw(st.lists(st.sampled_from(REALS), min_size=size, max_size=size))
        width = draw(st.sampled_from([np.float32, np.float64]))
        vectors = np.array(values, dtype=width).reshape(n, schema.n_reals)
    return Attributes(codes, vocabulary, vectors)


@st.composite
def relations(draw: st.DrawFn, alphabet: tuple[str, ...], n_parts: int) -> Relation:
    """Parents drawn from a few patterns, so that equal ones, empty ones and shared parts abound."""
    counted = draw(st.booleans())
    counts = COUNTS if counted else [1]
    # One number says part, role and count: fewer draws make faster tests.
    shape = (max(n_parts, 1), len(alphabet), len(counts))
    entry = st.integers(0, math.prod(shape) - 1)
    pattern = st.lists(entry, max_size=4 if n_parts else 0)
    patterns = draw(st.lists(pattern, min_size=draw(least), max_size=4)) or [[]]
    turned = [pattern[::-1] for pattern in patterns]
    parent = st.sampled_from(patterns + turned)
    parents = draw(st.lists(parent, min_size=draw(least), max_size=6))
    parts, roles, places = np.unravel_index(
        np.array([e for w in parents for e in w], dtype=np.int64), shape
    )
    integer = draw(st.sampled_from([np.int64, np.int32, np.uint8, np.uint64]))
    return Relation(
        np.cumsum([0, *map(len, parents)]),
        parts.astype(integer),
        roles.astype(integer),
        alphabet,
        n_parts,
        np.array(counts)[places] if counted else None,
    )


@st.composite
def hierarchies_of(draw: st.DrawFn, schema: Schema) -> Hierarchy:
    size = draw(st.integers(draw(least), 6))
    bottom = draw(attributes(schema, size))
    levels = []
    for alphabet in schema.alphabets:
        levels.append(draw(relations(alphabet, size)))
        size = levels[-1].n_parents
    return Hierarchy(bottom, tuple(levels))


def hierarchies(**options: Sequence[str]) -> st.SearchStrategy[Hierarchy]:
    """1 to 5 levels, any roles, multiplicities, attributes, unreached objects, empty levels."""
    return schemas(**options).flatmap(hierarchies_of)


def collections(min_size: int = 1) -> st.SearchStrategy[list[Hierarchy]]:
    """Hierarchies that can be joined, with vocabularies of their own."""
    return schemas().flatmap(lambda s: st.lists(hierarchies_of(s), min_size=min_size, max_size=4))


@st.composite
def orders(draw: st.DrawFn, hierarchy: Hierarchy) -> list[np.ndarray]:
    """A new order of the objects of every level."""
    drawn = [draw(st.permutations(range(size))) for size in hierarchy.sizes]
    return [np.array(order, dtype=np.int64) for order in drawn]


def reordered(hierarchy: Hierarchy, new_orders: list[np.ndarray]) -> Hierarchy:
    """Object i of a level becomes what object `new_orders[level][i]` was; entries turn round."""
    levels = []
    for relation, parents, parts in zip(
        hierarchy.relations, new_orders[1:], new_orders[:-1], strict=True
    ):
        rows = relation.take(parents)
        number = np.argsort(parts)
        turned = np.concatenate(
            [np.empty(0, np.int64)]
            + [
                np.arange(b - 1, a - 1, -1)
                for a, b in zip(rows.indptr[:-1], rows.indptr[1:], strict=True)
            ]
        ).astype(np.int64)
        levels.append(
            Relation(
                rows.indptr,
                number[rows.parts[turned]],
                rows.roles[turned],
                rows.alphabet,
                rows.n_parts,
                None if rows.counts is None else rows.counts[turned],
            )
        )
    bottom = hierarchy.attributes.take(new_orders[0])
    return Hierarchy(bottom, tuple(levels), hierarchy.names)


@dataclass(frozen=True)
class DrawnGraphs:
    """A collection beside the plain lists that it was made of."""

    graphs: Graphs
    sizes: list[int]
    edge_lists: list[list[tuple[int, int]]]
    directed: bool

    def degrees(self, direction: str = "both") -> list[int]:
        """Of all nodes, slow and literal."""
        return [
            degree
            for size, edges in zip(self.sizes, self.edge_lists, strict=True)
            for degree in reference.degrees(size, edges, self.directed, direction)
        ]

    def neighbours(self, direction: str = "both") -> list[set[int]]:
        """The other nodes beside every node, numbered across the graphs, slow and literal."""
        out: list[set[int]] = []
        for size, edges in zip(self.sizes, self.edge_lists, strict=True):
            first = len(out)
            near = reference.neighbours(size, edges, self.directed, direction)
            out += [{first + u for u in others if u != v} for v, others in enumerate(near)]
        return out


@st.composite
def graph_collections(draw: st.DrawFn, directed: bool | None = None) -> DrawnGraphs:
    """Graphs with loops, isolated nodes, several components, empty graphs, or none at all."""
    arrows = draw(st.booleans()) if directed is None else directed
    sizes = draw(st.lists(st.integers(0, 7), min_size=draw(least), max_size=4))
    edge_lists = []
    for size in sizes:
        node = st.integers(0, max(size - 1, 0))
        edges = draw(
            st.lists(
                st.tuples(node, node),
                min_size=min(2 * draw(least), size),
                max_size=12 if size else 0,
                unique_by=(lambda edge: edge) if arrows else (lambda edge: tuple(sorted(edge))),
            )
        )
        edge_lists.append(edges)
    n = sum(sizes)
    node_labels = draw(
        st.one_of(
            st.none(),
            st.lists(st.sampled_from("CNO"), min_size=n, max_size=n).map(
                lambda column: np.array(column, dtype=np.str_)
            ),
            st.lists(st.integers(-1, 2), min_size=n, max_size=n).map(
                lambda column: np.array(column, dtype=np.int64)
            ),
        )
    )
    graphs = Graphs.from_edge_lists(edge_lists, sizes, directed=arrows, node_labels=node_labels)
    return DrawnGraphs(graphs, sizes, edge_lists, arrows)
