from __future__ import annotations

import numpy as np
import pytest

from saen import Graphs
from saen.decompositions import Ego, k_hop
from saen.decompositions.k_hop import list_k_hops
from tests.references import hierarchies as reference

SIZES = (0, 1, 63, 64, 65, 0, 150)


def random_graphs(directed: bool) -> Graphs:
    """Sparse random graphs around the size of a word, with loops and single nodes."""
    rng = np.random.default_rng(7)
    edges = [
        [(int(a), int(b)) for a, b in rng.integers(max(n, 1), size=(n and n + 20, 2))]
        for n in SIZES
    ]
    return Graphs.from_edge_lists(edges, sizes=SIZES, directed=directed, duplicates="merge")


@pytest.mark.parametrize("direction", ["both", "out", "in"])
def test_balls_as_bits_are_those_of_a_search(direction, monkeypatch):
    monkeypatch.setattr(k_hop, "_HALVES_PER_BLOCK", 7)
    monkeypatch.setattr("saen._util.arrays.BLOCK", 500)
    graphs = random_graphs(directed=True)
    pointers, nodes = graphs.neighbours(direction)
    near = [set(part.tolist()) for part in np.split(nodes, pointers[1:-1])]
    radii = (3, 0, 2)
    indptr, members, roots = list_k_hops(
        pointers, nodes, graphs.node_offsets, radii, np.dtype(np.int32)
    )
    expected = [
        sorted(reference.ball(near, root, radius)) for root in range(len(near)) for radius in radii
    ]
    assert [part.tolist() for part in np.split(members, indptr[1:-1])] == expected
    assert members[roots].tolist() == np.repeat(np.arange(len(near)), len(radii)).tolist()
    assert ((indptr[:-1] <= roots) & (roots < indptr[1:])).all()


@pytest.mark.parametrize("directed", [False, True])
def test_ego_graphs_from_bits_equal_those_from_sparse_matrices(directed, monkeypatch):
    graphs, ego = random_graphs(directed), Ego((0, 1, 3))
    hierarchies = []
    for least in (0, np.inf):
        monkeypatch.setattr("saen.decompositions.ego.MIN_PER_WORD", least)
        hierarchies.append(ego.decompose(graphs))
    assert hierarchies[0] == hierarchies[1]
    bits, matrices = (hierarchy.relations[0] for hierarchy in hierarchies)
    assert bits.parts.dtype == matrices.parts.dtype
    assert not np.array_equal(bits.parts, matrices.parts)  # the order shows that both were used
