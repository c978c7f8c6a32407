from __future__ import annotations

import json
from contextlib import contextmanager

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import saen.data.evidence
import saen.data.rarity
from saen import Graphs, compress, compress_graphs, generate_threads, make_decomposition
from saen.data.overlap import DECOMPOSITION, OverlapIndex, find_overlap
from tests.properties.strategies import hierarchies, hierarchies_of, schemas
from tests.references import overlap as reference
from tests.refusals import refuses

DENSE = "neighbourhoods(depth=1, node_labels='degree,triangles')"


def collected(networks, labels=None) -> Graphs:
    """Graphs of networkx graphs, whose nodes may be anything."""
    relabelled = [nx.convert_node_labels_to_integers(network) for network in networks]
    edges = [np.array(network.edges, dtype=np.int64).reshape(-1, 2) for network in relabelled]
    starts = np.cumsum([0, *map(len, relabelled)])
    return Graphs.from_edges(
        np.concatenate([each + start for each, start in zip(edges, starts[:-1], strict=True)]),
        np.array(list(map(len, relabelled))),
        node_labels=labels,
    )


def decomposed(graphs, specification):
    return compress_graphs(graphs, make_decomposition(specification).fit(graphs))


def overlap_of(graphs, specification, **options):
    return find_overlap(decomposed(graphs, specification), **options)


def trees(n, low, high, seed=0):
    random = np.random.default_rng(seed)
    return [
        nx.random_labeled_tree(int(random.integers(low, high)), seed=int(random.integers(1 << 30)))
        for _ in range(n)
    ]


def random_graphs(n, low, high, seed=0, *, mean=None, density=None):
    random = np.random.default_rng(seed)
    sizes = random.integers(low, high, n).tolist()
    return [
        nx.gnp_random_graph(
            size, density or min(mean / (size - 1), 1), seed=int(random.integers(1 << 30))
        )
        for size in sizes
    ]


def molecules(n, low, high, seed=0) -> Graphs:
    """Rings, chains and single atoms, joined at random, with labels of very unequal frequency."""
    random = np.random.default_rng(seed)
    networks, labels = [], []
    for _ in range(n):
        size, network = int(random.integers(low, high)), nx.Graph()
        while len(network) < size:
            kind, first = random.random(), len(network)
            length = (6 if random.random() < 0.75 else 5) if kind < 0.35 else 1
            length = int(random.integers(1, 6)) if 0.35 <= kind < 0.7 else length
            free = [atom for atom in network if network.degree(atom) < 3]
            nx.add_path(network, range(first, first + length))
            if length > 4 and kind < 0.35:
                network.add_edge(first, first + length - 1)
            if free:
                network.add_edge(first + int(random.integers(length)), int(random.choice(free)))
        networks.append(network)
        labels.append(random.choice(5, len(network), p=[0.75, 0.12, 0.08, 0.03, 0.02]))
    return collected(networks, np.concatenate(labels))


def grown(networks, size=20, seed=3):
    """Larger trees that hold those."""
    out = []
    for number, tree in enumerate(networks):
        both = nx.disjoint_union(tree, trees(1, size, size + 1, seed=seed + number)[0])
        both.add_edge(0, len(tree))
        out.append(both)
    return out


# -- the formulas ------------------------------------------------------------------------------


@contextmanager
def tiny(min_bin=2, min_examples=3):
    """Every seam is met: bins of sizes, items that are not rare, blocks of entries."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(saen.data.rarity, "MIN_BIN", min_bin)
        patch.setattr(saen.data.rarity, "_MAX_GATHERED", 3)
        patch.setattr(saen.data.evidence, "MIN_EXAMPLES", min_examples)
        patch.setattr(saen.data.evidence, "_BLOCK_PRODUCTS", 5)
        patch.setattr(saen.data.evidence, "_BLOCK_ENTRIES", 5)
        yield


TINY = {"min_bin": 2, "min_examples": 3}


@given(hierarchy=hierarchies(), alpha=st.sampled_from([0.01, 1.0]))
def test_overlap_evidence_content_and_chance_are_as_defined(hierarchy, alpha):
    with tiny():
        found = find_overlap(compress(hierarchy), false_positives=alpha)
        literal = reference.Collection(hierarchy, **TINY)
    evidence, n, row = found._evidence, len(hierarchy), found._unique
    shared = (evidence.features @ evidence.features.T).toarray()[row][:, row]
    items = [each for each, _ in literal.examples]
    for i in range(n):
        assert evidence.content[row[i]] == pytest.approx(literal.content(items[i]))
        assert literal.bin(literal.sizes[i]) == evidence.bins[row[i]]
        by_chance = [literal.by_chance(items[i], bin, alpha) for bin in range(literal.n_bins)]
        assert evidence.thresholds[row[i]] == pytest.approx(by_chance, rel=1e-5)
        for j in range(n):
            assert shared[i, j] == pytest.approx(literal.evidence(items[i], items[j], 2))


def related(seed) -> Graphs:
    """Trees, some of which grew from others, duplicates, and very small ones."""
    random = np.random.default_rng(seed)
    networks = trees(25, 2, 80, seed)
    for _ in range(25):
        old = networks[int(random.integers(len(networks)))]
        new = trees(1, 2, 30, int(random.integers(1 << 30)))[0]
        both = nx.disjoint_union(old, new)
        both.add_edge(0, len(old))
        networks.append(both if random.random() < 0.7 else old)
    return collected(networks)


@pytest.mark.parametrize("seed", range(3))
def test_overlap_pairs_and_groups_are_as_defined(seed):
    graphs = related(seed)
    hierarchy = make_decomposition(DECOMPOSITION).decompose(graphs)
    rule = {"min_containment": 0.7, "min_strength": 1.1}
    sizes = {"min_bin": 20, "min_examples": 20}
    with tiny(**sizes):
        found = find_overlap(compress(hierarchy), **rule)
        literal = reference.Collection(hierarchy, **sizes)
    items = [each for each, _ in literal.examples]
    n = len(items)
    similar, contained, strong = (
        np.array([[measure(one, other) for other in items] for one in items])
        for measure in (
            literal.similarity,
            literal.containment,
            lambda one, other: literal.strength(one, other, 0.01),
        )
    )
    overlaps = (contained >= 0.7) & (strong >= 1.1)
    joined = [(i, j) for j in range(n) for i in range(j) if overlaps[i, j]]
    assert len(joined) > 5
    assert found.groups.tolist() == reference.groups(n, joined)
    assert found.share == np.mean(np.bincount(found.groups)[found.groups] > 1)
    assert found.duplicates.tolist() == [items.count(each) > 1 for each in items]
    pairs = found.pairs
    ends = [tuple(sorted(each)) for each in zip(pairs.first, pairs.second, strict=True)]
    firsts = [i for i in range(n) if items.index(items[i]) == i]
    assert sorted(ends) == [(i, j) for i, j in sorted(joined) if i in firsts and j in firsts]
    for k, (i, j) in enumerate(ends):
        assert pairs.similarity[k] == pytest.approx(similar[i, j])
        assert pairs.containment[k] == pytest.approx(contained[i, j])
        assert pairs.strength[k] == pytest.approx(strong[i, j], rel=1e-5)


@given(hierarchy=hierarchies(), data=st.data())
def test_overlap_does_not_depend_on_the_order_of_examples(hierarchy, data):
    order = np.array(data.draw(st.permutations(range(len(hierarchy)))), dtype=np.int64)
    options = {"min_containment": 1e-3, "min_strength": 1.0, "false_positives": 1.0}
    with tiny():
        found = find_overlap(compress(hierarchy), **options)
        again = find_overlap(compress(hierarchy[order]), **options)
    assert found.to_json() == again.to_json()
    together = found.groups[:, None] == found.groups
    assert np.array_equal(together[order][:, order], again.groups[:, None] == again.groups)


def test_overlap_of_many_does_not_depend_on_the_order_of_examples():
    graphs = related(0)
    order = np.random.default_rng(0).permutation(len(graphs))
    found, again = (
        overlap_of(each, DECOMPOSITION, min_strength=1) for each in (graphs, graphs[order])
    )
    assert len(found.pairs) == len(again.pairs) > 3
    for groups, other in [(found.groups, again.groups), (found.split(3), again.split(3))]:
        together = groups[:, None] == groups
        assert np.array_equal(together[order][:, order], other[:, None] == other)


# -- chance ------------------------------------------------------------------------------------

INDEPENDENT = {
    "trees": lambda n: collected(trees(n, 5, 60)),
    "small trees": lambda n: collected(trees(n, 2, 10)),
    "large trees": lambda n: collected(trees(n, 100, 300)),
    "sparse": lambda n: collected(random_graphs(n, 5, 80, mean=4)),
    "a tenth": lambda n: collected(random_graphs(n, 10, 70, density=0.1)),
    "half": lambda n: collected(random_graphs(n, 8, 40, density=0.5)),
    "one degree": lambda n: collected(
        [nx.random_regular_graph(3, 10 + 2 * (i % 35), i) for i in range(n)]
    ),
    "nearly complete": lambda n: collected(random_graphs(n, 5, 40, density=0.9)),
    "scale-free": lambda n: collected(
        [nx.barabasi_albert_graph(6 + i % 100, 1 + i % 3, seed=i) for i in range(n)]
    ),
    "molecules": lambda n: molecules(n, 8, 40),
    "small molecules": lambda n: molecules(n, 2, 12),
    "threads": lambda n: generate_threads(n),
    "long threads": lambda n: generate_threads(n, average_nodes=250),
}
MAX_FALSE_POSITIVES = 0.01
FEW = ("trees", "sparse", "one degree", "nearly complete", "molecules", "threads")
"""Of all kinds; the slow tests have the others."""


@pytest.mark.parametrize(
    "kind", [k if k in FEW else pytest.param(k, marks=pytest.mark.slow) for k in INDEPENDENT]
)
def test_overlap_of_independent_graphs_is_chance(kind):
    graphs = INDEPENDENT[kind](400)
    for specification in (DECOMPOSITION, DENSE):
        assert overlap_of(graphs, specification).share <= MAX_FALSE_POSITIVES


def test_overlap_does_not_tell_graphs_of_like_nodes_from_shared_cliques():
    """A limit that the documentation states: what decides such a graph is in each of its nodes."""
    sizes = np.random.default_rng(0).integers(3, 80, 400).tolist()
    complete = collected([nx.complete_graph(size) for size in sizes])
    assert overlap_of(complete, DENSE).share > 0.5
    cycles = collected([nx.cycle_graph(size) for size in sizes])
    assert overlap_of(cycles, DENSE).share == 0  # all nodes of all graphs are alike


def test_overlap_is_more_than_being_small_and_identical():
    """Nearly all are identical to others, as small graphs are."""
    graphs = collected([nx.path_graph(1 + i % 5) for i in range(300)] + trees(100, 2, 8))
    found = overlap_of(graphs, DECOMPOSITION)
    assert found.duplicates.mean() > 0.95
    assert (found.share, found.largest, len(found.pairs)) == (0, 1, 0)
    assert found.groups.tolist() == list(range(400))


# -- what overlaps -----------------------------------------------------------------------------


def test_overlap_finds_large_graphs_that_are_there_twice():
    networks = trees(200, 60, 90)
    found = overlap_of(collected([*networks, *networks[:3]]), DECOMPOSITION)
    assert found.groups.tolist() == [*range(200), 0, 1, 2]
    assert len(found.pairs) == 0  # of unique ones
    assert found.duplicates.sum() == 6


def test_overlap_finds_a_graph_that_lies_inside_another():
    networks = trees(300, 120, 150)
    found = overlap_of(collected([*networks, *grown(networks[:10], 300)]), DECOMPOSITION)
    ends = zip(found.pairs.first.tolist(), found.pairs.second.tolist(), strict=True)
    assert sorted(map(sorted, ends)) == [[i, 300 + i] for i in range(10)]
    assert min(found.pairs.containment) > 0.8
    assert max(found.pairs.similarity) < 0.5


def test_overlap_finds_ego_networks_of_one_large_network():
    """Of neighbours in a network with local structure: nodes at the border look different."""
    random = np.random.default_rng(0)
    network = nx.random_geometric_graph(8_000, 0.018, seed=1)
    centres = random.choice(8_000, 200, replace=False).tolist()
    centres += [int(random.choice(list(network[centre]) or [centre])) for centre in centres[:40]]
    egos = [nx.ego_graph(network, centre, radius=6) for centre in centres]
    common = np.array([[len(set(a) & set(b)) / min(len(a), len(b)) for b in egos] for a in egos])
    found = overlap_of(collected(egos), DENSE)
    ends = zip(found.pairs.first.tolist(), found.pairs.second.tolist(), strict=True)
    pairs = {tuple(sorted(pair)) for pair in ends}
    close = {(i, j) for i, j in np.argwhere(np.triu(common > 0.8, 1)).tolist()}
    assert len(pairs & close) > 0.7 * len(close) > 20
    assert all(common[pair] > 0.5 for pair in pairs)
    index = OverlapIndex.of(decomposed(collected(egos[:200]), DENSE))
    nearest = index.nearest(decomposed(collected(egos[200:]), DENSE)).example
    assert common[nearest, range(200, 240)].mean() > 0.8


def test_overlap_finds_a_large_clique_in_different_surroundings():
    """One paper of many authors, in the networks of some of them; small papers are by chance."""
    random = np.random.default_rng(0)

    def network(papers):
        out, n = nx.star_graph(sum(papers)), sum(papers)
        for authors in papers:
            others = random.choice(np.arange(1, n + 1), authors - 1, replace=False).tolist()
            out.update(nx.complete_graph([0, *others]))
        used = [node for node in out if out.degree(node) > 1]
        return out.subgraph([0, *used])

    def papers():
        return (2 + random.zipf(1.8, random.integers(1, 6))).clip(0, 25).tolist()

    alone, shared = (
        [network([*large, *papers()]) for _ in range(n)] for n, large in [(1500, []), (15, [90])]
    )
    found = overlap_of(collected([*alone, *shared]), DENSE)
    assert np.bincount(found.groups[1500:]).max() == 15
    assert found.overlapping[:1500].mean() <= MAX_FALSE_POSITIVES


def test_overlap_of_very_many_is_found_by_the_rarest_parts(monkeypatch):
    networks = trees(300, 80, 120)
    graphs = collected([*networks, *grown(networks[:9])])
    everything = overlap_of(graphs, DECOMPOSITION)
    monkeypatch.setattr(saen.data.evidence, "MAX_PRODUCTS", 0)
    monkeypatch.setattr(saen.data.evidence, "PRODUCTS_PER_ENTRY", 4)
    quicker = overlap_of(graphs, DECOMPOSITION)
    assert quicker._evidence.features.nnz < 0.9 * everything._evidence.features.nnz
    assert quicker.groups.tolist() == everything.groups.tolist() == [*range(300), *range(9)]


# -- groups that fit ---------------------------------------------------------------------------


def chain(n) -> Graphs:
    """Windows on a chain of trees, each of which overlaps with those beside it; and other trees."""
    pieces = trees(n + 3, 70, 90)
    windows = []
    for start in range(n):
        window = nx.disjoint_union_all(pieces[start : start + 4])
        roots = np.cumsum([0, *map(len, pieces[start : start + 3])]).tolist()
        nx.add_path(window, roots)
        windows.append(window)
    return collected([*windows, *trees(300, 100, 400, seed=1)])


def test_overlap_splits_chains_that_are_too_long():
    found = overlap_of(chain(40), DECOMPOSITION)
    assert found.largest == 40
    assert np.array_equal(found.split(40), found.groups)
    for limit in (39, 10, 3, 1):
        groups = found.split(limit)
        assert np.bincount(groups).max() <= limit
        refined = np.unique(np.column_stack([groups, found.groups]), axis=0)
        assert len(refined) == len(np.unique(groups))
    assert np.bincount(found.split(10)).max() > 2
    assert np.array_equal(found.split(1), np.arange(340))


def test_overlap_never_separates_large_duplicates():
    networks = trees(200, 60, 90)
    found = overlap_of(collected([*networks, *networks[:2] * 4]), DECOMPOSITION)
    assert found.largest == 5
    assert np.array_equal(found.split(2), found.groups)


# -- new examples ------------------------------------------------------------------------------


@given(
    pair=schemas().flatmap(lambda s: st.tuples(hierarchies_of(s), hierarchies_of(s))),
    alpha=st.sampled_from([0.01, 1.0]),
)
def test_overlap_with_training_examples_is_as_defined(pair, alpha):
    training, new = pair
    with tiny():
        index = OverlapIndex.of(compress(training), false_positives=alpha)
        nearest = index.nearest(compress(new))
        literal = reference.Collection(training, **TINY)
    known = [each for each, _ in literal.examples]
    typical = literal.typical()
    for k, (items, _) in enumerate(reference.examples_of(new)):
        over = [
            min(
                literal.containment(items, each) * 3,
                literal.strength_of_new(items, each, alpha) / 2,
            )
            for each in known
        ]
        if all(abs(each - 1) > 1e-5 for each in over):
            assert nearest.overlapping[k] == any(each > 1 for each in over)
        if abs(nearest.similarity[k] - typical) > 1e-5:
            unlike = nearest.similarity[k] < typical and literal.content(items) > 0
            assert nearest.unlike[k] == unlike
        if items in known:
            assert (nearest.example[k], nearest.similarity[k]) == (known.index(items), 1)
            continue
        similar = [literal.similarity(items, each) for each in known]
        best = max(similar, default=0.0)
        assert nearest.similarity[k] == pytest.approx(best, rel=1e-5)
        if best == 0:
            assert nearest.example[k] == -1
        else:
            assert similar[nearest.example[k]] == pytest.approx(best, rel=1e-5)


def test_overlap_with_training_examples_is_found_by_content():
    networks = trees(300, 80, 120)
    decomposition = make_decomposition(DECOMPOSITION)
    index = OverlapIndex.of(compress_graphs(collected(networks), decomposition))
    new = collected([*grown(networks[5:9]), *trees(100, 80, 120, seed=9), networks[3]])
    nearest = index.nearest(compress_graphs(new, decomposition))
    assert nearest.example[[0, 1, 2, 3, -1]].tolist() == [5, 6, 7, 8, 3]
    assert nearest.overlapping[[0, 1, 2, 3, -1]].all()
    assert not nearest.overlapping[4:-1].any()
    assert nearest.similarity[-1] == nearest.containment[-1] == 1


def test_overlap_index_is_arrays_and_back():
    networks = trees(150, 40, 90)
    decomposition = make_decomposition(DECOMPOSITION)
    index = OverlapIndex.of(compress_graphs(collected(networks), decomposition))
    arrays = index.arrays()
    assert all(
        isinstance(each, np.ndarray) and each.dtype.kind in "iuf" for each in arrays.values()
    )
    again = OverlapIndex.from_arrays(arrays)
    new = compress_graphs(collected(grown(networks[:9])), decomposition)
    for one, other in zip(
        vars(index.nearest(new)).values(), vars(again.nearest(new)).values(), strict=True
    ):
        assert np.array_equal(one, other)


def test_overlap_index_keeps_a_sample_of_large_examples():
    networks = trees(100, 200, 300)
    decomposition = make_decomposition(DECOMPOSITION)
    compressed = compress_graphs(collected(networks), decomposition)
    new = compress_graphs(collected(grown(networks[:30])), decomposition)
    whole, sampled = (OverlapIndex.of(compressed, max_parts=k) for k in (10_000, 40))
    assert np.diff(sampled.indptr).max() == 40 < np.diff(whole.indptr).min()
    exact, estimate = whole.nearest(new), sampled.nearest(new)
    assert np.array_equal(estimate.example, exact.example)
    assert np.array_equal(estimate.example, np.arange(30))
    assert abs(estimate.similarity / exact.similarity - 1).max() < 0.5
    assert abs(np.mean(estimate.similarity / exact.similarity) - 1) < 0.1


# -- at the edges ------------------------------------------------------------------------------


def test_overlap_of_nothing_is_nothing():
    graphs = collected(trees(3, 5, 9))
    for few in (graphs[[]], graphs[[0]], Graphs.from_edges(np.empty((0, 2), int), [0, 0])):
        found = overlap_of(few, DECOMPOSITION)
        assert len(found) == len(few)
        assert (found.share, found.n_groups, len(found.pairs)) == (0, 0, 0)
        index = OverlapIndex.of(decomposed(few, DECOMPOSITION))
        assert len(index.nearest(decomposed(graphs, DECOMPOSITION)).example) == 3


def test_overlap_as_json_says_how_much():
    networks = trees(100, 60, 90)
    found = overlap_of(collected([*networks, networks[0]]), DECOMPOSITION)
    assert json.loads(json.dumps(found.to_json())) == {
        "examples": 101,
        "share": 2 / 101,
        "groups": 1,
        "largest": 2,
        "pairs": 0,
        "duplicates": 2 / 101,
        "min_containment": 1 / 3,
        "min_strength": 2.0,
        "false_positives": 0.01,
    }


def test_overlap_refuses_what_makes_no_sense():
    graphs = collected(trees(3, 5, 9))
    compressed = decomposed(graphs, DECOMPOSITION)
    with refuses("min_containment must lie between 0 and 1, not 2"):
        find_overlap(compressed, min_containment=2)
    with refuses("min_strength must be a number ≥ 1, not 0.5"):
        find_overlap(compressed, min_strength=0.5)
    with refuses("false_positives must lie between 0 and 1, not 0"):
        OverlapIndex.of(compressed, false_positives=0)
    with refuses("max_parts must be an integer ≥ 1, not 0"):
        OverlapIndex.of(compressed, max_parts=0)
    found = find_overlap(compressed)
    with refuses("max_size must be an integer ≥ 1, not 0"):
        found.split(0)
    with refuses("the hierarchies differ: 3 and 2 levels above the bottom"):
        OverlapIndex.of(compressed).nearest(decomposed(graphs, DENSE))
