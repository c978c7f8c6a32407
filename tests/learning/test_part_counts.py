from __future__ import annotations

import subprocess
import sys
from collections import Counter

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
from saen.learning.part_counts import SAFeatures
from tests.properties.strategies import graph_collections, hierarchies, reordered
from tests.references import hierarchies as reference

KINDS = ["linear", "classes"]


def at_least_one(drawn) -> bool:
    return len(drawn) > 0


# -- linear ------------------------------------------------------------------------------------


def dense_linear(hierarchy: Hierarchy) -> np.ndarray:
    """h_l = Σ over parts of z_π ⊗ h_{l-1}, term by term."""
    h = reference.attribute_matrix(hierarchy)
    for relation in hierarchy.relations:
        rows = np.zeros((relation.n_parents, relation.n_roles * h.shape[1]))
        for whole in range(relation.n_parents):
            for role, part, count in reference.entries_of(relation, whole):
                z = np.zeros(relation.n_roles)
                z[role] = 1
                rows[whole] += count * np.kron(z, h[part])
        h = rows
    return h


@given(hierarchies().filter(at_least_one))
def test_linear_features_are_the_literal_map(hierarchy):
    features = SAFeatures(kind="linear")
    found = features.fit_transform(hierarchy)
    expected = dense_linear(hierarchy)
    assert isinstance(found, sparse.csr_array)
    assert found.dtype == np.float64
    n_roles = [relation.n_roles for relation in hierarchy.relations]
    assert found.shape == (len(hierarchy), hierarchy.attributes.width * int(np.prod(n_roles)))
    np.testing.assert_allclose(found.toarray(), expected, rtol=1e-12, atol=1e-12)
    assert features.n_features_out_ == len(features.get_feature_names_out()) == found.shape[1]


def test_a_column_is_named_by_the_roles_from_the_top_and_the_label():
    bottom = Attributes(np.array([0, 1]), Vocabulary(["C", 7]), np.array([[0.5], [2.0]]))
    middle = Relation([0, 2, 3], [0, 1, 1], [0, 1, 0], ("root", "elem"), 2)
    top = Relation([0, 2], [0, 1], [1, 0], ("a", "b"), 2)
    features = SAFeatures()
    row = features.fit_transform(Hierarchy(bottom, [middle, top])).toarray()[0]
    named = dict(zip(features.get_feature_names_out().tolist(), row.tolist(), strict=True))
    assert {name: value for name, value in named.items() if value} == {
        "a > root > 'C'": 1.0,
        "a > root > attribute 0": 2.0,
        "b > root > 7": 1.0,
        "b > root > attribute 0": 0.5,
        "b > elem > 'C'": 1.0,
        "b > elem > attribute 0": 2.0,
    }
    assert len(named) == 2 * 2 * 3
    assert list(named)[:3] == ["a > root > 7", "a > root > 'C'", "a > root > attribute 0"]


@given(graph_collections(False).filter(lambda d: d.sizes), graph_collections(False))
def test_labels_that_fit_did_not_see_add_nothing(known, new):
    features = SAFeatures(Ego(node_labels="degree")).fit(known.graphs)
    seen = set(known.graphs.degrees().tolist())
    expected = dense_linear(Ego(node_labels="degree").fit(known.graphs).decompose(new.graphs))
    assert np.array_equal(features.transform(new.graphs).toarray(), expected)
    assert features.n_features_out_ == 2 * 2 * len(seen)


def test_more_ways_than_numbers_are_refused():
    alone = Graphs.from_edge_lists([[]], sizes=[2])
    wide = SAFeatures(Neighbourhoods(30)).fit_transform(alone)
    assert wide.shape == (1, 31 * 3**30)
    assert wide.data.tolist() == [2.0] * 31
    features = SAFeatures(Neighbourhoods(40))
    with pytest.raises(InputError) as error:
        features.fit(alone)
    assert str(error.value) == (
        f"kind='linear' would make {41 * 3**40} columns here, one for every way through the "
        "levels: use kind='classes'"
    )
    with pytest.raises(NotFittedError):
        features.transform(alone)


# -- classes -----------------------------------------------------------------------------------


def counted(hierarchy: Hierarchy) -> list[Counter]:
    """For every structure, how often it has each (role, part), parts as nested Python values."""
    below, top = reference.contents(hierarchy)[-2], hierarchy.relations[-1]
    out = []
    for whole in range(top.n_parents):
        found: Counter = Counter()
        for role, part, count in reference.entries_of(top, whole):
            found[role, below[part]] += count
        out.append(found)
    return out


def gram(rows: list[Counter], others: list[Counter]) -> np.ndarray:
    products = [[sum(n * b[key] for key, n in a.items()) for b in others] for a in rows]
    return np.array(products, dtype=np.float64).reshape(len(rows), len(others))


@given(hierarchies().filter(at_least_one))
def test_class_features_count_equal_parts(hierarchy):
    features = SAFeatures(kind="classes")
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


@pytest.mark.parametrize("edges", ["none", "roles", "objects"])
@given(
    graph_collections(False).filter(lambda d: d.sizes), graph_collections(False), st.integers(1, 3)
)
def test_later_parts_are_matched_with_the_classes_of_fit(edges, known, new, depth):
    made = Neighbourhoods(depth, "degree", edges=edges)
    features = SAFeatures(made, kind="classes").fit(known.graphs)
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
    features = SAFeatures(Neighbourhoods(depth), kind="classes")
    found = features.fit_transform(drawn.graphs._with(node_labels=labels))
    expected = refined_histograms(drawn, labels.tolist(), depth)
    assert np.array_equal((found @ found.T).toarray(), gram(expected, expected))
    for d in range(depth + 1):
        own = [name.startswith(f"depth {d} > ") for name in features.get_feature_names_out()]
        assert sum(own) == len({key for row in expected for key in row if key[0] == d})
        assert found[:, own].sum(axis=1).tolist() == drawn.sizes


def test_equal_classes_at_different_depths_are_counted_by_depth():
    # Isolated nodes look alike at every depth: one column for each, not one for all.
    alone = Graphs.from_edge_lists([[], []], sizes=[3, 5], node_labels=["C"] * 8)
    features = SAFeatures("neighbourhoods(depth=2)", kind="classes")
    assert features.fit_transform(alone).toarray().tolist() == [[3.0] * 3, [5.0] * 3]
    names = features.get_feature_names_out().tolist()
    assert [name.partition(" > ")[0] for name in names] == ["depth 0", "depth 1", "depth 2"]
    # One class of parts in two roles makes two columns.
    bottom = Attributes(np.array([0, 0]), Vocabulary(["C"]))
    twice = Hierarchy(bottom, [Relation([0, 2], [0, 1], [0, 1], ("a", "b"), 2)])
    features = SAFeatures(kind="classes")
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
        features = SAFeatures(Neighbourhoods(depth), kind="classes")
        known, later = graphs[:25], graphs[25:]
        found = features.fit_transform(known)
        assert np.array_equal((found @ found.T).toarray(), grakel_gram(known, depth))
        assert np.array_equal(
            (features.transform(later) @ found.T).toarray(), grakel_gram(known, depth, later)
        )


def test_grakel_agrees_on_mutag(dataset):
    mutag = dataset("MUTAG")
    found = SAFeatures("neighbourhoods(depth=3)", kind="classes").fit_transform(mutag)
    assert np.array_equal((found @ found.T).toarray(), grakel_gram(mutag, 3))


# -- a transformer among others ----------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@given(hierarchies().filter(at_least_one), st.data())
def test_features_do_not_depend_on_the_order_of_parts(kind, hierarchy, data):
    orders = [
        np.array(data.draw(st.permutations(range(size))), dtype=np.int64)
        for size in hierarchy.sizes
    ]
    one, other = SAFeatures(kind=kind), SAFeatures(kind=kind)
    expected = one.fit_transform(hierarchy).toarray()[orders[-1]]
    found = other.fit_transform(reordered(hierarchy, orders)).toarray()
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
    assert one.get_feature_names_out().tolist() == other.get_feature_names_out().tolist()


@pytest.mark.parametrize("kind", KINDS)
@given(hierarchies().filter(at_least_one))
def test_fitting_and_transforming_apart_is_the_same(kind, hierarchy):
    features = SAFeatures(kind=kind)
    together = features.fit_transform(hierarchy)
    apart = SAFeatures(kind=kind).fit(hierarchy).transform(hierarchy)
    assert (together != apart).nnz == 0
    rows = [features.transform(hierarchy[[row]]) for row in range(len(hierarchy))]
    assert np.array_equal(sparse.vstack(rows).toarray(), together.toarray())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "decomposition", ["ego", "neighbourhoods(depth=2)", "nodes", "edges(node_labels=degree)"]
)
def test_a_pipeline_tells_cycles_from_paths(decomposition, kind):
    paths = [[(v, v + 1) for v in range(size)] for size in range(3, 23)]
    graphs = Graphs.from_edge_lists([*paths, *([*path, (len(path), 0)] for path in paths)])
    targets = np.repeat(["path", "cycle"], len(paths))
    model = make_pipeline(SAFeatures(decomposition, kind=kind), MaxAbsScaler(), LinearSVC())
    assert cross_val_score(model, graphs, targets, cv=4).mean() > 0.9
    assert model.fit(graphs, targets).predict(graphs[[0, -1]]).tolist() == ["path", "cycle"]


def test_it_is_a_scikit_learn_transformer():
    features = SAFeatures("ego(radii=(0, 1, 2))", kind="classes")
    assert features.get_params() == {"decomposition": "ego(radii=(0, 1, 2))", "kind": "classes"}
    copy = clone(features).set_params(kind="linear")
    assert (copy.decomposition, copy.kind) == ("ego(radii=(0, 1, 2))", "linear")
    threads = generate_threads(10, seed=0)
    assert copy.fit(threads) is copy
    for call in (features.transform, lambda _: features.get_feature_names_out()):
        with pytest.raises(NotFittedError):
            call(threads)
    fitted = clone(SAFeatures(Ego(radii=(1,)), kind="classes").fit(threads))
    assert not hasattr(fitted, "schema_")


@pytest.mark.parametrize("kind", KINDS)
def test_no_structures_have_no_rows(kind):
    threads = generate_threads(10, seed=0)
    features = SAFeatures(kind=kind).fit(threads)
    assert features.transform(threads[:0]).shape == (0, features.n_features_out_)
    with pytest.raises(InputError, match=r"^nothing to fit: the collection is empty$"):
        SAFeatures(kind=kind).fit(threads[:0])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("made", [Nodes(), Edges(), Ego(), Neighbourhoods(1)])
def test_graphs_without_nodes_have_a_row_of_zeros(made, kind):
    empty = Graphs.from_edge_lists([[], []], sizes=[0, 0])
    found = SAFeatures(made, kind=kind).fit_transform(empty)
    assert found.shape[0] == 2
    assert found.nnz == 0
    later = SAFeatures(made, kind=kind).fit(Graphs.from_edge_lists([[(0, 1)]])).transform(empty)
    assert later.toarray().any() == 0
    assert later.shape[0] == 2


def test_networkx_graphs_are_graphs():
    networkx = pytest.importorskip("networkx")
    features = SAFeatures("nodes")
    found = features.fit_transform([networkx.path_graph(3), networkx.star_graph(3)])
    assert found.toarray().tolist() == [[2.0, 1.0, 0.0], [3.0, 0.0, 1.0]]


def test_what_was_fitted_on_hierarchies_wants_hierarchies_of_the_same_kind():
    threads = generate_threads(10, seed=0)
    hierarchy = Ego(radii=(0, 1)).decompose(threads)
    features = SAFeatures(kind="classes").fit(hierarchy)
    graphs = SAFeatures(Ego(radii=(0, 1)), kind="classes").fit(threads)
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
        with pytest.raises(InputError) as error:
            features.transform(given_)
        assert str(error.value) == message


def test_hierarchies_may_have_vocabularies_of_their_own():
    def bag(*labels):
        vocabulary = Vocabulary(labels)
        relation = Relation([0, len(labels)], range(len(labels)), [0] * len(labels), ("in",), 3)
        return Hierarchy(Attributes(vocabulary.codes(labels), vocabulary), [relation])

    linear = SAFeatures(kind="linear").fit(bag("C", "N", "O"))
    assert linear.get_feature_names_out().tolist() == ["in > 'C'", "in > 'N'", "in > 'O'"]
    assert linear.transform(bag("A", "N", "C")).toarray().tolist() == [[1.0, 1.0, 0.0]]
    classes = SAFeatures(kind="classes").fit(bag("C", "N", "O"))
    assert sorted(classes.transform(bag("A", "N", "C")).toarray()[0].tolist()) == [0.0, 1.0, 1.0]


@pytest.mark.parametrize("masks", [(0, 2**64 - 1), (2**64 - 1, 0)])
def test_both_halves_of_a_key_must_agree(masks, monkeypatch):
    threads = generate_threads(30, seed=1)
    features = SAFeatures("neighbourhoods(depth=1)", kind="classes").fit(threads[:20])
    expected = features.transform(threads[20:]) @ features.transform(threads[:20]).T
    monkeypatch.setattr("saen.data.content_hash.MASKS", tuple(map(np.uint64, masks)))
    features.fit(threads[:20])
    found = features.transform(threads[20:]) @ features.transform(threads[:20]).T
    assert (found != expected).nnz == 0


def test_an_unknown_kind_is_refused():
    with pytest.raises(InputError) as error:
        SAFeatures(kind="class").fit(generate_threads(2, seed=0))
    assert str(error.value) == (
        "kind must be one of linear, classes, not 'class' (did you mean classes?)"
    )


def test_the_collection_decides_nothing_but_the_columns():
    # Two collections, one vocabulary: rows of shared graphs agree on the columns they share.
    threads = generate_threads(40, seed=5)
    one, other = (SAFeatures(kind="classes") for _ in range(2))
    first, second = one.fit_transform(threads[:30]), other.fit_transform(threads[10:])
    names = [features.get_feature_names_out().tolist() for features in (one, other)]
    shared = sorted(set(names[0]) & set(names[1]))
    a = first[10:][:, [names[0].index(name) for name in shared]].toarray()
    b = second[:20][:, [names[1].index(name) for name in shared]].toarray()
    assert len(shared) > 5
    assert np.array_equal(a, b)


def test_features_need_no_torch():
    code = "import sys, saen.learning.part_counts; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_keys_of_fit_are_those_of_the_compressed_collection():
    threads = generate_threads(20, seed=2)
    made = Ego(radii=(0, 1)).fit(threads)
    names = SAFeatures(made, kind="classes").fit(threads).get_feature_names_out()
    keys = {f"{a:016x}{b:016x}" for a, b in compress(made.decompose(threads)).keys[1].tolist()}
    assert {name.rpartition(" > ")[2] for name in names} == keys
