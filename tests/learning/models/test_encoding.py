from __future__ import annotations

import subprocess
import sys
from collections import Counter
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler
from sklearn.svm import LinearSVC

from saen import (
    Attributes,
    Graphs,
    Hierarchy,
    InputError,
    Relation,
    Vocabulary,
    compress,
    generate_threads,
)
from saen.decompositions import Edges, Ego, Neighbourhoods, Nodes
from saen.learning.estimators import PartCounts
from saen.learning.models.encoding import Encoder, count_parts, feature_rows, narrow
from tests.properties.strategies import graph_collections, hierarchies, reordered
from tests.references import hierarchies as reference
from tests.refusals import refuses

ENCODINGS = ["counts", "unary"]


def counts(decomposition="ego", encoding="counts", **settings) -> PartCounts:
    return PartCounts(decomposition, encoding=encoding, norm=None, **settings)


def at_least_one(drawn) -> bool:
    return len(drawn) > 0


# -- counts ------------------------------------------------------------------------------------


def counted(hierarchy: Hierarchy) -> list[Counter]:
    """For every structure, how often it has each (role, part), parts as nested Python values."""
    below, top = reference.contents(hierarchy)[-2], hierarchy.relations[-1]
    out = []
    for parent in range(top.n_parents):
        found: Counter = Counter()
        for role, part, count in reference.entries_of(top, parent):
            found[role, below[part]] += count
        out.append(found)
    return out


def gram(rows: list[Counter], others: list[Counter]) -> np.ndarray:
    products = [[sum(n * b[key] for key, n in a.items()) for b in others] for a in rows]
    return np.array(products, dtype=np.float64).reshape(len(rows), len(others))


@given(hierarchies().filter(at_least_one))
def test_counts_are_those_of_equal_parts(hierarchy):
    features = counts()
    found = features.fit_transform(hierarchy)
    expected = counted(hierarchy)
    assert found.shape == (len(hierarchy), len(set().union(*expected)))
    assert found.dtype == np.float64
    # The same columns in another order: as multisets, and by their inner products.
    columns = Counter(map(tuple, found.toarray().T.tolist()))
    keys = set().union(*expected)
    assert columns == Counter(tuple(float(row[key]) for row in expected) for key in keys)
    assert np.array_equal((found @ found.T).toarray(), gram(expected, expected))
    names = features.get_feature_names_out().tolist()
    assert len(set(names)) == len(names) == found.shape[1]
    roles = Counter(hierarchy.relations[-1].alphabet[role] for role, _ in keys)
    assert Counter(name.rpartition(" > ")[0] for name in names) == roles


def directed_copy(graphs: Graphs) -> Graphs:
    """The same edges as arcs."""
    return Graphs.from_edges(graphs.edges(), graphs.sizes, directed=True)


@pytest.mark.parametrize("edges", ["none", "roles", "objects"])
@given(
    graph_collections(False).filter(lambda d: d.sizes), graph_collections(False), st.integers(1, 3)
)
def test_later_parts_are_matched_with_those_of_fit(edges, known, new, depth):
    if edges == "roles":  # which graphs without labels have only if they are directed
        known, new = (replace(drawn, graphs=directed_copy(drawn.graphs)) for drawn in (known, new))
    made = Neighbourhoods(depth, "degree", edges=edges)
    features = counts(made).fit(known.graphs)
    fitted = made.fit(known.graphs)
    old, later = (counted(fitted.decompose(drawn.graphs)) for drawn in (known, new))
    found = features.transform(new.graphs)
    assert found.shape == (len(new.sizes), features.n_features_out_)
    # Inner products with the graphs of fit see exactly the parts that both have.
    both = (found @ features.transform(known.graphs).T).toarray()
    assert np.array_equal(both, gram(later, old))
    seen = set().union(*old)
    totals = [sum(n for key, n in row.items() if key in seen) for row in later]
    assert found.sum(axis=1).tolist() == totals


@pytest.mark.parametrize("encoding", ENCODINGS)
@given(hierarchies().filter(at_least_one), hierarchies(), st.integers(0, 3))
def test_joined_columns_change_no_inner_products(encoding, known, new, depth):
    table = count_parts(compress(known))
    plain = Encoder.fit(table, np.ones(table.n_rows, dtype=int), encoding=encoding)
    rows = feature_rows(plain.encode(table), table, plain.n_columns)
    joined = plain.joined(rows)
    joined.check()
    n = int((plain.ids[:, 0] <= depth).sum())
    for one, other in ((plain, joined), (plain.first_parts(n), joined.first_parts(n))):
        # A column is of one role, smaller ones first; the features of one row alone are one each.
        before, after = (
            feature_rows(each.encode(table), table, each.n_columns).toarray()
            for each in (one, other)
        )
        np.testing.assert_allclose(after @ after.T, before @ before.T, atol=1e-12)
        roles = np.repeat(one.ids[:, 0], np.diff(one.starts))
        alone, owner = (before > 0).sum(axis=0) == 1, before.argmax(axis=0)
        owners = {*zip(roles[alone].tolist(), owner[alone].tolist(), strict=True)}
        assert after.shape[1] == (~alone).sum() + len(owners)
        of_columns = {*zip(other.columns.tolist(), roles.tolist(), strict=True)}
        assert len(of_columns) == after.shape[1]
    # A model that is a sum over training rows sees the same of a new one, too.
    later = count_parts(compress(new))
    before, after = (
        feature_rows(each.encode(later), later, each.n_columns)
        @ feature_rows(each.encode(table), table, each.n_columns).T
        for each in (plain, joined)
    )
    np.testing.assert_allclose(after.toarray(), before.toarray(), atol=1e-12)


@pytest.mark.parametrize("collide", [False, True])
def test_parts_are_matched_by_role_and_the_whole_key(monkeypatch, collide):
    if collide:
        monkeypatch.setattr("saen.learning.models.encoding._part_codes", lambda ids: ids[:, 1] % 2)
    every = np.array([*product(range(2), range(3), range(3))], dtype=np.uint64)
    known = every[[0, 4, 5, 9, 16]]
    encoder = Encoder("counts", known, np.arange(6), np.arange(0))
    wanted = np.full(18, -1)
    wanted[[0, 4, 5, 9, 16]] = np.arange(5)
    assert encoder.match(every).tolist() == wanted.tolist()
    assert encoder.match(every[:0]).tolist() == []


def refined_histograms(drawn, labels: list, rounds: int) -> list[Counter]:
    """The Weisfeiler-Lehman feature map: for every graph, how often it has each colour."""
    histograms, first = [], 0
    for size, edges in zip(drawn.sizes, drawn.edge_lists, strict=True):
        near = reference.neighbours(size, edges, drawn.directed, "both")
        colours: list = labels[first : first + size]
        found = Counter((0, colour) for colour in colours)
        for depth in range(1, rounds + 1):
            colours = [
                (colours[v], tuple(sorted((colours[u] for u in near[v] - {v}), key=repr)))
                for v in range(size)
            ]
            found.update((depth, colour) for colour in colours)
        histograms.append(found)
        first += size
    return histograms


@given(graph_collections().filter(lambda d: d.sizes), st.integers(1, 3))
def test_over_neighbourhoods_they_are_the_features_of_weisfeiler_and_lehman(drawn, depth):
    labels = np.arange(sum(drawn.sizes)) % 2
    features = counts(Neighbourhoods(depth))
    found = features.fit_transform(drawn.graphs._with(node_labels=labels))
    expected = refined_histograms(drawn, labels.tolist(), depth)
    assert np.array_equal((found @ found.T).toarray(), gram(expected, expected))
    for d in range(depth + 1):
        own = [name.startswith(f"depth {d} > ") for name in features.get_feature_names_out()]
        assert sum(own) == len({key for row in expected for key in row if key[0] == d})
        assert found[:, own].sum(axis=1).tolist() == drawn.sizes


def test_equal_parts_at_different_depths_are_counted_by_depth():
    # Isolated nodes look alike at every depth: one column for each, not one for all.
    alone = Graphs.from_edge_lists([[], []], sizes=[3, 5], node_labels=["C"] * 8)
    features = counts("neighbourhoods(depth=2)")
    assert features.fit_transform(alone).toarray().tolist() == [[3.0] * 3, [5.0] * 3]
    names = features.get_feature_names_out().tolist()
    assert [name.partition(" > ")[0] for name in names] == ["depth 0", "depth 1", "depth 2"]
    # One unique part in two roles makes two columns.
    bottom = Attributes(np.array([0, 0]), Vocabulary(["C"]))
    twice = Hierarchy(bottom, [Relation([0, 2], [0, 1], [0, 1], ("a", "b"), 2)])
    features = counts()
    assert features.fit_transform(twice).toarray().tolist() == [[1.0, 1.0]]
    first, second = features.get_feature_names_out()
    assert (first[:4], second[:4]) == ("a > ", "b > ")
    assert first[4:] == second[4:]


def grakel_gram(graphs: Graphs, rounds: int, later: Graphs | None = None) -> np.ndarray:
    kernels = pytest.importorskip("grakel.kernels")
    kernel = kernels.WeisfeilerLehman(
        n_iter=rounds, base_graph_kernel=kernels.VertexHistogram, normalize=False
    )

    def plain(collection):
        return [
            [graph.adjacency().toarray().astype(int), dict(enumerate(graph.node_labels.tolist()))]
            for graph in collection
        ]

    found = kernel.fit_transform(plain(graphs))
    return found if later is None else kernel.transform(plain(later))


def test_grakel_agrees_on_generated_graphs():
    rng = np.random.default_rng(0)
    sizes = rng.integers(1, 12, 40)
    edge_lists = [
        [(u, v) for v in range(size) for u in range(v) if rng.random() < 0.3] for size in sizes
    ]
    graphs = Graphs.from_edge_lists(
        edge_lists, sizes.tolist(), node_labels=rng.integers(0, 3, sizes.sum())
    )
    for depth in (1, 2, 4):
        features = counts(Neighbourhoods(depth))
        known, later = graphs[:25], graphs[25:]
        found = features.fit_transform(known)
        assert np.array_equal((found @ found.T).toarray(), grakel_gram(known, depth))
        assert np.array_equal(
            (features.transform(later) @ found.T).toarray(), grakel_gram(known, depth, later)
        )


def test_grakel_agrees_on_mutag(dataset):
    mutag = dataset("MUTAG")
    found = counts("neighbourhoods(depth=3, edges=none)").fit_transform(mutag)
    assert np.array_equal((found @ found.T).toarray(), grakel_gram(mutag, 3))


# -- unary -------------------------------------------------------------------------------------


def least(rows: list[Counter], others: list[Counter]) -> np.ndarray:
    """Σ min(x, y) over the parts of every pair."""
    sums = [[sum(min(n, b[key]) for key, n in a.items()) for b in others] for a in rows]
    return np.array(sums, dtype=np.float64).reshape(len(rows), len(others))


@given(
    graph_collections(False).filter(lambda d: d.sizes), graph_collections(False), st.integers(1, 3)
)
def test_unary_products_are_sums_of_the_smaller_counts(known, new, depth):
    made = Neighbourhoods(depth, "degree")
    features = counts(made, "unary")
    found = features.fit_transform(known.graphs)
    fitted = made.fit(known.graphs)
    old, later = (counted(fitted.decompose(drawn.graphs)) for drawn in (known, new))
    np.testing.assert_allclose((found @ found.T).toarray(), least(old, old), atol=1e-9)
    # New counts lie between, or above, those of fit: products with the graphs of fit are exact.
    transformed = features.transform(new.graphs)
    np.testing.assert_allclose((transformed @ found.T).toarray(), least(later, old), atol=1e-9)
    totals = sum(sum(row.values()) for row in later)
    seen = set().union(*old)
    unseen = sum(n for row in later for key, n in row.items() if key not in seen)
    assert features.unseen_share_ == pytest.approx(unseen / totals if totals else 0.0)


def stars(*leaves: int) -> Graphs:
    edge_lists = [[(0, leaf + 1) for leaf in range(n)] for n in leaves]
    sizes = [n + 1 for n in leaves]
    return Graphs.from_edge_lists(edge_lists, sizes, node_labels=["C"] * sum(sizes))


def test_thresholds_that_nothing_tells_apart_share_a_column():
    features = PartCounts("nodes", norm=None)
    found = features.fit_transform(stars(2, 6))  # counts 3 and 7
    np.testing.assert_allclose(found.toarray(), [[3**0.5, 0], [3**0.5, 2.0]])
    assert [name.split(" ≥ ")[1] for name in features.get_feature_names_out()] == ["3", "7"]
    # 1, 5 and 10 nodes: a third of the first column, half of the second, and no more than both.
    found = features.transform(stars(0, 4, 9)).toarray()
    np.testing.assert_allclose(found, [[3**-0.5, 0], [3**0.5, 1.0], [3**0.5, 2.0]])


def test_rows_have_the_length_of_the_unary_vector():
    features = PartCounts("nodes").fit(stars(2, 6))
    rows = features.transform(stars(2, 4, 9))  # 3, 5 and 10 nodes, of which 7 have columns
    expected = np.array([[3**0.5, 0], [3**0.5, 1.0], [3**0.5, 2.0]]) / np.sqrt([[3], [5], [10]])
    np.testing.assert_allclose(rows.toarray(), expected)
    one = PartCounts("nodes", encoding="counts").fit_transform(stars(2, 6))
    np.testing.assert_allclose(one.toarray(), 1.0)


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_products_with_new_examples_do_not_depend_on_what_was_seen(encoding):
    threads = generate_threads(40, average_nodes=20, seed=1)
    together = PartCounts("neighbourhoods(depth=2)", encoding=encoding).fit_transform(threads)
    features = PartCounts("neighbourhoods(depth=2)", encoding=encoding).fit(threads[:20])
    new, old = features.transform(threads[20:]), features.transform(threads[:20])
    products = (together[20:] @ together[:20].T).toarray()
    np.testing.assert_allclose((new @ old.T).toarray(), products)


def test_grakel_agrees_on_optimal_assignments():
    kernels = pytest.importorskip("grakel.kernels")
    rng = np.random.default_rng(1)
    sizes = rng.integers(1, 12, 30)
    edge_lists = [
        [(u, v) for v in range(size) for u in range(v) if rng.random() < 0.3] for size in sizes
    ]
    labels = rng.integers(0, 3, sizes.sum())
    graphs = Graphs.from_edge_lists(edge_lists, sizes.tolist(), node_labels=labels)
    plain = [
        [graph.adjacency().toarray().astype(int), dict(enumerate(graph.node_labels.tolist()))]
        for graph in graphs
    ]
    for depth in (1, 3):
        kernel = kernels.WeisfeilerLehmanOptimalAssignment(n_iter=depth, normalize=False)
        found = counts(Neighbourhoods(depth), "unary").fit_transform(graphs)
        np.testing.assert_allclose((found @ found.T).toarray(), kernel.fit_transform(plain))


def test_max_thresholds_keeps_products_of_counts_that_have_one():
    graphs = stars(*range(60))
    exact = counts("nodes", "unary").fit_transform(graphs)
    coarse = counts("nodes", "unary", max_thresholds=8).fit_transform(graphs)
    assert exact.shape[1] == 60
    assert 4 <= coarse.shape[1] <= 9
    products, expected = (coarse @ coarse.T).toarray(), (exact @ exact.T).toarray()
    assert np.array_equal(expected[:3, :3], [[1, 1, 1], [1, 2, 2], [1, 2, 3]])
    np.testing.assert_allclose(products[:, -1], expected[:, -1])  # with the largest of all
    assert np.abs(products - expected).max() < 0.15 * 60


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_min_graphs_leaves_rare_parts_out(encoding):
    labels = ["C", "C", "N", "C", "N", "O"]
    graphs = Graphs.from_edge_lists([[]] * 3, sizes=[2, 2, 2], node_labels=labels)
    features = counts("nodes", encoding, min_graphs=2).fit(graphs)
    rows = features.transform(graphs)
    assert rows.sum(axis=1).tolist() == pytest.approx([2, 2, 1])
    assert features.unseen_share_ == pytest.approx(1 / 6)
    parts = {name.partition(" ≥ ")[0] for name in features.get_feature_names_out()}
    assert len(parts) == 2


# -- a transformer among others ----------------------------------------------------------------


@pytest.mark.parametrize("encoding", ENCODINGS)
@given(hierarchies().filter(at_least_one), st.data())
def test_features_do_not_depend_on_the_order_of_parts(encoding, hierarchy, data):
    orders = [
        np.array(data.draw(st.permutations(range(size))), dtype=np.int64)
        for size in hierarchy.sizes
    ]
    one, other = counts(encoding=encoding), counts(encoding=encoding)
    expected = one.fit_transform(hierarchy).toarray()[orders[-1]]
    found = other.fit_transform(reordered(hierarchy, orders)).toarray()
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
    assert one.get_feature_names_out().tolist() == other.get_feature_names_out().tolist()


@pytest.mark.parametrize("encoding", ENCODINGS)
@given(hierarchies().filter(at_least_one))
def test_fitting_and_transforming_apart_is_the_same(encoding, hierarchy):
    features = counts(encoding=encoding)
    together = features.fit_transform(hierarchy)
    apart = counts(encoding=encoding).fit(hierarchy).transform(hierarchy)
    assert (together != apart).nnz == 0
    rows = [features.transform(hierarchy[[row]]) for row in range(len(hierarchy))]
    assert np.array_equal(sparse.vstack(rows).toarray(), together.toarray())


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize(
    "decomposition", ["ego", "neighbourhoods(depth=2)", "nodes", "edges(node_labels=degree)"]
)
def test_a_pipeline_tells_cycles_from_paths(decomposition, encoding):
    paths = [[(v, v + 1) for v in range(size)] for size in range(3, 23)]
    graphs = Graphs.from_edge_lists([*paths, *([*path, (len(path), 0)] for path in paths)])
    targets = np.repeat(["path", "cycle"], len(paths))
    model = make_pipeline(counts(decomposition, encoding), MaxAbsScaler(), LinearSVC())
    assert cross_val_score(model, graphs, targets, cv=4).mean() > 0.9
    assert model.fit(graphs, targets).predict(graphs[[0, -1]]).tolist() == ["path", "cycle"]


def test_it_is_a_scikit_learn_transformer():
    features = PartCounts("ego(radii=(0, 1, 2))", min_graphs=2)
    params = features.get_params()
    assert (params["decomposition"], params["min_graphs"]) == ("ego(radii=(0, 1, 2))", 2)
    copy = clone(features).set_params(encoding="counts")
    assert (copy.min_graphs, copy.encoding, features.encoding) == (2, "counts", "unary")
    threads = generate_threads(10, seed=0)
    assert copy.fit(threads) is copy
    for call in (features.transform, lambda _: features.get_feature_names_out()):
        with pytest.raises(NotFittedError):
            call(threads)
    assert not hasattr(clone(copy), "schema_")


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_no_structures_have_no_rows(encoding):
    threads = generate_threads(10, seed=0)
    features = counts(encoding=encoding).fit(threads)
    assert features.transform(threads[:0]).shape == (0, features.n_features_out_)
    with pytest.raises(InputError, match=r"^nothing to fit: the data are empty$"):
        counts(encoding=encoding).fit(threads[:0])


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("made", [Nodes(), Edges(), Ego(), Neighbourhoods(1)])
def test_graphs_without_nodes_have_a_row_of_zeros(made, encoding):
    empty = Graphs.from_edge_lists([[], []], sizes=[0, 0])
    found = counts(made, encoding).fit_transform(empty)
    assert found.shape[0] == 2
    assert found.nnz == 0
    later = counts(made, encoding).fit(Graphs.from_edge_lists([[(0, 1)]])).transform(empty)
    assert later.toarray().any() == 0
    assert later.shape[0] == 2


def test_networkx_graphs_are_graphs():
    networkx = pytest.importorskip("networkx")
    features = counts("nodes(node_labels=degree)")
    found = features.fit_transform([networkx.path_graph(3), networkx.star_graph(3)])
    assert sorted(found.toarray().T.tolist()) == [[0.0, 1.0], [1.0, 0.0], [2.0, 3.0]]


def test_what_was_fitted_on_hierarchies_wants_hierarchies_of_the_same_kind():
    threads = generate_threads(10, seed=0)
    hierarchy = Ego(radii=(0, 1)).decompose(threads)
    features = counts().fit(hierarchy)
    graphs = counts(Ego(radii=(0, 1))).fit(threads)
    assert (features.transform(hierarchy) != graphs.transform(threads)).nnz == 0
    assert (graphs.transform(hierarchy) != graphs.transform(threads)).nnz == 0
    for given_, message in [
        (threads, "this estimator was fitted on hierarchies: pass a Hierarchy"),
        (
            Nodes().decompose(threads),
            "fitted on roles [('root', 'elem'), ('radius 0', 'radius 1')], but the hierarchy has "
            "[('node',)]",
        ),
        (
            Hierarchy(
                Attributes(vectors=np.ones((hierarchy.sizes[0], 1))),
                hierarchy.relations,
                hierarchy.names,
            ),
            "bottom attributes differ in kind (codes, vectors, or their width)",
        ),
        (
            5,
            "X must be saen.Graphs, a list of networkx graphs, of PyG Data or of RDKit molecules, "
            "or a saen.Hierarchy, not int",
        ),
    ]:
        with refuses(message):
            features.transform(given_)


def test_hierarchies_may_have_vocabularies_of_their_own():
    def bag(*labels):
        vocabulary = Vocabulary(labels)
        relation = Relation([0, len(labels)], range(len(labels)), [0] * len(labels), ("in",), 3)
        return Hierarchy(Attributes(vocabulary.codes(labels), vocabulary), [relation])

    classes = counts().fit(bag("C", "N", "O"))
    assert sorted(classes.transform(bag("A", "N", "C")).toarray()[0].tolist()) == [0.0, 1.0, 1.0]


@pytest.mark.parametrize("masks", [(0, 2**64 - 1), (2**64 - 1, 0)])
def test_both_halves_of_a_key_must_agree(masks, monkeypatch):
    threads = generate_threads(30, seed=1)
    features = counts("neighbourhoods(depth=1)").fit(threads[:20])
    expected = features.transform(threads[20:]) @ features.transform(threads[:20]).T
    monkeypatch.setattr("saen.data.content_hash.MASKS", tuple(map(np.uint64, masks)))
    features.fit(threads[:20])
    found = features.transform(threads[20:]) @ features.transform(threads[:20]).T
    assert (found != expected).nnz == 0


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"encoding": "binary"}, "PartCounts: encoding must be"),
        ({"min_graphs": 0}, "PartCounts: min_graphs must be"),
    ],
)
def test_wrong_arguments_are_refused(settings, message):
    with pytest.raises(InputError, match=message):
        PartCounts("ego", **settings).fit(generate_threads(2, seed=0))


def test_the_collection_decides_nothing_but_the_columns():
    # Two collections, one vocabulary: rows of shared graphs agree on the columns they share.
    threads = generate_threads(40, seed=5)
    one, other = (counts() for _ in range(2))
    first, second = one.fit_transform(threads[:30]), other.fit_transform(threads[10:])
    names = [features.get_feature_names_out().tolist() for features in (one, other)]
    shared = sorted(set(names[0]) & set(names[1]))
    a = first[10:][:, [names[0].index(name) for name in shared]].toarray()
    b = second[:20][:, [names[1].index(name) for name in shared]].toarray()
    assert len(shared) > 5
    assert np.array_equal(a, b)


@pytest.mark.slow
def test_features_need_no_torch():
    code = (
        "import sys, saen; saen.PartCounts().fit_transform(saen.generate_threads(9)); "
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_keys_of_fit_are_those_of_the_compressed_collection():
    threads = generate_threads(20, seed=2)
    made = Ego(radii=(0, 1)).fit(threads)
    names = counts(made).fit(threads).get_feature_names_out()
    keys = {f"{a:016x}"[:8] for a, _ in compress(made.decompose(threads)).keys[1].tolist()}
    assert {name.rpartition(" #")[2] for name in names} == keys
    assert len(set(names)) == len(names)
    # The same part has the same name in other data.
    other = counts(made).fit(generate_threads(20, seed=3)).get_feature_names_out()
    by_key = {name.rpartition(" #")[2]: name for name in names}
    shared = [name for name in other if name.rpartition(" #")[2] in by_key]
    assert shared
    assert all(by_key[name.rpartition(" #")[2]] == name for name in shared)


@pytest.mark.parametrize(("n_columns", "dtype"), [(2**31 - 1, np.int32), (2**31, np.int64)])
def test_counts_of_more_than_2_31_parts_keep_wide_indices(n_columns, dtype):
    last = np.array([n_columns - 1], dtype=np.int64)
    matrix = narrow(sparse.csr_array((np.ones(1), (np.zeros(1, int), last)), (1, n_columns)))
    assert matrix.indices.dtype == matrix.indptr.dtype == dtype
    assert matrix.indices.tolist() == last.tolist()


@pytest.mark.parametrize("n", [255, 256, 257])
def test_examples_are_taken_where_rows_fill_their_narrow_type(n):
    chains = Graphs.from_edge_lists([[(i, i + 1) for i in range(k)] for k in range(1, n + 1)])
    table = count_parts(compress(Neighbourhoods(depth=1).fit(chains).decompose(chains)))
    assert table.n_rows == n
    taken = table.take(np.arange(n)[::-1])
    assert taken.sizes()[taken.top].tolist() == table.sizes()[table.top][::-1].tolist()
