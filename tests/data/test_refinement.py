from __future__ import annotations

from collections import Counter

from saen import Graphs, compress, compress_graphs
from saen.data.refinement import compress_refinement
from saen.decompositions import Neighbourhoods
from tests.references.hierarchies import same_arrays

STARS = Graphs.from_edge_lists([[(0, leaf) for leaf in range(1, 11)]] * 7)


def test_compress_graphs_reports_the_levels_of_a_refinement_as_graphs():
    done: list[int] = []
    compress_graphs(STARS, Neighbourhoods(depth=2), progress=done.append)
    assert done == [2, 4, 7]


def test_compress_refinement_lets_the_threads_share_every_step():
    shared: Counter[str] = Counter()

    def apply(function, *arguments):
        shared[function.__name__] += 1
        return map(function, *arguments)

    neighbourhoods = Neighbourhoods(depth=2)
    compressed = compress_refinement(neighbourhoods.refinement(STARS), True, apply, None)
    assert same_arrays(compressed, compress(neighbourhoods.decompose(STARS)))
    assert shared == {"merged": 3, "hash_block": 3, "compare": 2}  # the top is compared in one go
