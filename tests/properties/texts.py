"""Random documents: few words and relations, so that equal paths, ties and palindromes abound."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from saen.data.documents import Documents, Word
from tests.properties.strategies import graph_collections, least

WORDS = ["dog", "man", "bites", "bites", "é", ""]
RELATIONS = ["nsubj", "obj", "out"]

Plain = list[list[list[Word]]]


@st.composite
def parses(draw: st.DrawFn, max_size: int = 7) -> list[Word]:
    """A sentence whose words depend on each other as trees, in any order."""
    size = draw(st.integers(1, max_size))
    order = draw(st.permutations(range(size)))
    heads: dict[int, int | None] = {order[0]: None}
    for place in range(1, size):
        # Now and then a second root.
        chosen = draw(st.integers(0, place if place < 3 else place - 1))
        heads[order[place]] = None if chosen == place else order[chosen]
    return [
        (
            draw(st.sampled_from(WORDS)),
            heads[place],
            "root" if heads[place] is None else draw(st.sampled_from(RELATIONS)),
        )
        for place in range(size)
    ]


def parsed_documents(min_size: int = 0) -> st.SearchStrategy[Plain]:
    """Documents of none, one or several sentences."""
    document = st.lists(parses(), max_size=4)
    return st.lists(document, min_size=min_size, max_size=4)


@st.composite
def drawn_documents(draw: st.DrawFn, labelled: bool | None = None) -> Documents:
    """Documents whose sentences are any graphs: loops, cycles, isolated words, no words at all."""
    drawn = draw(graph_collections())
    n = drawn.graphs.n_nodes
    words = np.array(draw(st.lists(st.sampled_from(WORDS), min_size=n, max_size=n)), dtype=np.str_)
    columns: dict[str, np.ndarray] = {"node_labels": words}
    if draw(st.booleans()) if labelled is None else labelled:
        m = len(drawn.graphs.indices)
        relations = draw(st.lists(st.sampled_from(RELATIONS), min_size=m, max_size=m))
        columns["edge_labels"] = np.array(relations, dtype=np.str_)
    cuts = draw(st.lists(st.integers(0, len(drawn.graphs)), max_size=draw(least) or 1))
    offsets = np.array(sorted([0, *cuts, len(drawn.graphs)]), dtype=np.int64)
    return Documents(drawn.graphs.with_columns(**columns), offsets)
