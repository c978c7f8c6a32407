from __future__ import annotations

import copy
import functools
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
import sklearn
import sklearn.utils.estimator_checks as checks
import torch
from numpy.testing import assert_allclose, assert_array_equal
from rich.console import Console
from sklearn.base import BaseEstimator, clone
from sklearn.ensemble import BaggingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.inspection import permutation_importance
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.validation import check_is_fitted, validate_data

import saen._util.progress
import saen.network.training
from saen import (
    Attributes,
    Graphs,
    Hierarchy,
    InputError,
    PartCountsClassifier,
    PartCountsRegressor,
    Relation,
    SAENClassifier,
    SAENRegressor,
    SAENTransformer,
    Vocabulary,
    compress,
    generate_threads,
)
from saen.decompositions import Ego
from saen.io.libraries.coerce import as_data
from saen.io.libraries.networkx import to_networkx
from saen.learning import auto
from saen.learning.calibration import temperature_of, tempered
from tests.references.networks import assert_close, numbers
from tests.refusals import refuses

ALL: list[type[Any]] = [SAENClassifier, SAENRegressor, SAENTransformer]
SMALL: dict[str, Any] = {
    "hidden": [[4], [6, 4], [6]],
    "epochs": 3,
    "n_models": 2,
    "radii": (0, 1),
    "device": "cpu",  # where the same seed gives the same bits
    "inner_folds": 0,  # calibration has its own tests
}


@pytest.fixture(scope="module")
def threads() -> Graphs:
    return generate_threads(40, average_nodes=15, seed=1)


@pytest.fixture(scope="module")
def fitted(threads: Graphs) -> SAENClassifier:
    return SAENClassifier(**SMALL).fit(threads, threads.targets)


def labelled(letters: str, seed: int, n: int = 20) -> Graphs:
    """Random graphs with letters as node labels."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(3, 8, n)
    edges = [[(int(rng.integers(0, v)), v) for v in range(1, size)] for size in sizes]
    labels = rng.choice(list(letters), sizes.sum())
    return Graphs.from_edge_lists(edges, sizes.tolist(), node_labels=labels)


def same_weights(one: Any, other: Any) -> bool:
    there = other.network_.state_dict()
    return all(torch.equal(t, there[key]) for key, t in one.network_.state_dict().items())


# -- scikit-learn's conventions ----------------------------------------------------------------


def rows_as_structures(X: Any) -> Hierarchy:
    """Every row of a matrix as a structure of one part, whose vector it is."""
    n = len(X)
    row = Relation(np.arange(n + 1), np.arange(n), np.zeros(n, int), ("row",), n)
    return Hierarchy(Attributes(vectors=np.asarray(X, dtype=np.float64)), (row,))


class _OnRows:
    """Lets scikit-learn's checks, which speak of matrices, reach an estimator of structures."""

    def fit(self: Any, X: Any, y: Any, sample_weight: Any = None) -> Any:
        several = self.__sklearn_tags__().target_tags.multi_output
        X, y = validate_data(self, X, y, multi_output=several)
        return super().fit(rows_as_structures(X), y, sample_weight)  # type: ignore[misc]

    def _data(self: Any, X: Any) -> Any:
        check_is_fitted(self, "fitted_")
        X = validate_data(self, X, reset=False)
        return super()._data(rows_as_structures(X))  # type: ignore[misc]

    def __sklearn_tags__(self: Any) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.two_d_array = True
        return tags


class ClassifierOnRows(_OnRows, SAENClassifier):
    pass


class RegressorOnRows(_OnRows, SAENRegressor):
    pass


class TransformerOnRows(_OnRows, SAENTransformer):
    pass


# Run on the estimators as they are: these checks need no X.
WITHOUT_X = [
    checks.check_estimator_cloneable,
    checks.check_estimator_tags_renamed,
    checks.check_valid_tag_types,
    checks.check_estimator_repr,
    checks.check_no_attributes_set_in_init,
    checks.check_do_not_raise_errors_in_init_or_set_params,
    checks.check_mixin_order,
    checks.check_parameters_default_constructible,
    checks.check_get_params_invariance,
    checks.check_set_params,
]

# All others make matrices and run on the estimators over rows, except:
EXCLUDED = {
    "check_array_api_input": "needs SCIPY_ARRAY_API to be set; structures are no arrays at all",
}


# These want something to be learned; for the others a few epochs are enough.
LEARNING = {"check_classifiers_train", "check_class_weight_classifiers", "check_regressors_train"}


def checks_on_rows() -> Iterator[Any]:
    options = {
        "hidden": [[8], [8]],
        "n_models": 1,
        "batch_size": "all",
        "learning_rate": 0.05,
        "device": "cpu",
        "inner_folds": 0,  # two copies of an example fall into different folds
        "dtype": "float64",  # checks for equal results look more closely than float32 rounds
    }
    for cls in (ClassifierOnRows, RegressorOnRows, TransformerOnRows):
        for _, check in checks.estimator_checks_generator(cls(**options)):
            name = check.func.__name__
            if name in EXCLUDED:
                continue
            estimator = cls(epochs=40 if name in LEARNING else 4, **options)
            words = [name.removeprefix("check_"), *map(str, check.keywords.values())]
            yield pytest.param(estimator, check, id=f"{cls.__name__}-{'-'.join(words)}")


@pytest.mark.parametrize("check", WITHOUT_X, ids=lambda check: check.__name__)
@pytest.mark.parametrize("cls", ALL)
def test_scikit_learns_checks_that_need_no_data_pass(cls: type[Any], check: Any) -> None:
    check(cls.__name__, cls())


@pytest.mark.parametrize(("estimator", "check"), list(checks_on_rows()))
def test_scikit_learns_checks_pass_on_rows_as_structures(
    estimator: BaseEstimator, check: functools.partial[None]
) -> None:
    check(estimator)


def test_an_estimator_that_was_not_fitted_says_so(threads: Graphs) -> None:
    for cls, method in [
        (SAENClassifier, "predict"),
        (SAENClassifier, "predict_proba"),
        (SAENClassifier, "decision_function"),
        (SAENClassifier, "embed"),
        (SAENRegressor, "predict"),
        (SAENTransformer, "transform"),
    ]:
        with pytest.raises(NotFittedError):
            getattr(cls(), method)(threads)
    with pytest.raises(NotFittedError):
        SAENClassifier().save("nowhere")


@pytest.mark.parametrize("cls", ALL)
def test_fitting_changes_neither_parameters_nor_data(cls: type[Any], threads: Graphs) -> None:
    graphs = [graph.copy() for graph in to_networkx(threads)]
    before = [(dict(graph.nodes(data=True)), list(graph.edges(data=True))) for graph in graphs]
    y = threads.sizes.copy() % 2
    estimator = cls(**SMALL)
    parameters = copy.deepcopy(estimator.get_params())
    assert estimator.fit(graphs, y) is estimator
    assert estimator.get_params() == parameters
    after = [(dict(graph.nodes(data=True)), list(graph.edges(data=True))) for graph in graphs]
    assert after == before
    assert_array_equal(y, threads.sizes % 2)


def test_estimators_work_in_pipelines(threads: Graphs) -> None:
    take_all = FunctionTransformer(lambda graphs: graphs)
    classify = make_pipeline(take_all, SAENClassifier(**SMALL)).fit(threads, threads.targets)
    assert set(classify.predict(threads)) <= set(threads.targets)
    vectors = make_pipeline(SAENTransformer(**SMALL), LogisticRegression())
    vectors.fit(threads, threads.targets)
    assert vectors.score(threads, threads.targets) > 0.5
    assert vectors[0].transform(threads).shape == (40, 2 * 6)


# -- classification ----------------------------------------------------------------------------


def test_classes_may_be_strings_numbers_or_truth_values(threads: Graphs) -> None:
    codes = np.unique(threads.targets, return_inverse=True)[1]
    reference = SAENClassifier(**SMALL).fit(threads, codes)
    expected = reference.predict(threads)
    assert_array_equal(reference.classes_, [0, 1])
    for y in (
        np.array(["no", "yes"])[codes],
        np.array(["no", "yes"], dtype=object)[codes],
        np.array([-7, 100])[codes],
        codes == 1,
        (codes.astype(float)).tolist(),
    ):
        estimator = SAENClassifier(**SMALL).fit(threads, y)
        assert_array_equal(estimator.classes_, np.unique(y))
        assert_array_equal(estimator.predict(threads), np.unique(y)[expected])


@pytest.mark.parametrize("n_classes", [2, 3])
def test_probabilities_decisions_and_predictions_agree(n_classes: int) -> None:
    threads = generate_threads(45, n_classes=n_classes, average_nodes=15, seed=2)
    estimator = SAENClassifier(**SMALL).fit(threads, threads.targets)
    probabilities = estimator.predict_proba(threads)
    assert probabilities.shape == (45, n_classes)
    assert_close(probabilities.sum(axis=1), np.ones(45), 1e-12)
    assert (probabilities >= 0).all()
    predicted = estimator.predict(threads)
    assert_array_equal(predicted, estimator.classes_[probabilities.argmax(axis=1)])
    decision = estimator.decision_function(threads)
    if n_classes == 2:
        assert decision.shape == (45,)
        assert_array_equal(predicted, estimator.classes_[(decision > 0).astype(int)])
        assert_close(decision, np.log(probabilities[:, 1] / probabilities[:, 0]), 1e-9)
    else:
        assert decision.shape == (45, n_classes)
        assert_array_equal(predicted, estimator.classes_[decision.argmax(axis=1)])
        assert_close(decision, np.log(probabilities), 1e-9)
    assert estimator.score(threads, threads.targets) == np.mean(predicted == threads.targets)


@pytest.mark.parametrize("normalization", ["none", "batch"])
def test_a_sample_weight_of_two_is_two_copies_of_a_graph(
    threads: Graphs, normalization: str
) -> None:
    weights = np.random.default_rng(0).integers(1, 3, len(threads))
    copies = np.repeat(np.arange(len(threads)), weights)
    options = SMALL | {"batch_size": "all", "dtype": "float64", "normalization": normalization}
    for cls, y in [(SAENClassifier, threads.targets), (SAENRegressor, threads.sizes)]:
        weighted = cls(**options).fit(threads, y, sample_weight=weights)
        copied = cls(**options).fit(threads[copies], y[copies])
        assert_close(weighted.predict_each(threads), copied.predict_each(threads), 1e-7)


def test_class_weights_are_balanced_or_given(threads: Graphs) -> None:
    y = threads.targets
    names, counts = np.unique(y, return_counts=True)
    some = np.r_[np.flatnonzero(y == names[0])[:5], np.flatnonzero(y == names[1])]
    graphs, y = threads[some], y[some]
    counts = np.array([5, len(y) - 5])
    options = SMALL | {"dtype": "float64"}
    balanced = SAENClassifier(class_weight="balanced", **options).fit(graphs, y)
    given = dict(zip(names, len(y) / (2 * counts), strict=True))
    by_hand = SAENClassifier(class_weight=given, **options).fit(graphs, y)
    plain = SAENClassifier(**options).fit(graphs, y)
    assert same_weights(balanced, by_hand)
    assert not same_weights(balanced, plain)


def test_duplicated_graphs_train_once_but_count_as_often(threads: Graphs) -> None:
    # The same graphs with contradicting targets: the probability is the share of the targets.
    square = Graphs.from_edge_lists([[(0, 1), (1, 2), (2, 3), (3, 0)]] * 4 + [[(0, 1)]] * 2)
    estimator = SAENClassifier(
        **(SMALL | {"epochs": 200, "n_models": 1, "batch_size": "all", "learning_rate": 0.05})
    ).fit(square, ["a", "b", "b", "b", "a", "a"])
    assert estimator.predict_proba(square)[:, 1] == pytest.approx([0.75] * 4 + [0.0] * 2, abs=0.03)


# -- regression --------------------------------------------------------------------------------


def test_numbers_are_predicted_in_their_own_units(threads: Graphs) -> None:
    options = SMALL | {"epochs": 60, "learning_rate": 0.02, "n_models": 1}
    y = 1e6 + 1e3 * threads.sizes
    estimator = SAENRegressor(**options).fit(threads, y)
    assert estimator.score(threads, y) > 0.8
    assert abs(estimator.predict(threads).mean() - y.mean()) < y.std()
    plain = SAENRegressor(**options).fit(threads, threads.sizes)
    assert_close(estimator.predict(threads), 1e6 + 1e3 * plain.predict(threads), 1e-6)


@pytest.mark.parametrize("k", [1, 3])
def test_several_numbers_are_predicted_at_once(threads: Graphs, k: int) -> None:
    y = np.column_stack([threads.sizes * 10.0**i + i for i in range(k)])
    estimator = SAENRegressor(**(SMALL | {"epochs": 40})).fit(threads, y)
    assert estimator.predict(threads).shape == (40, k)
    assert estimator.predict(threads[:0]).shape == (0, k)
    assert np.isfinite(estimator.score(threads, y))
    flat = SAENRegressor(**(SMALL | {"epochs": 40})).fit(threads, y[:, 0])
    assert flat.predict(threads).shape == (40,)
    if k == 1:
        assert_close(estimator.predict(threads)[:, 0], flat.predict(threads), 1e-12)


def test_constant_targets_are_predicted(threads: Graphs) -> None:
    estimator = SAENRegressor(**(SMALL | {"epochs": 80})).fit(threads, np.full(40, 7.0))
    assert estimator.predict(threads) == pytest.approx(np.full(40, 7.0), abs=0.5)


# -- what X may be -----------------------------------------------------------------------------


def test_the_same_graphs_give_the_same_predictions_in_every_form(threads: Graphs) -> None:
    torch_geometric = pytest.importorskip("torch_geometric.data")
    ego = Ego((0, 1), "degree").fit(threads)
    data = [
        torch_geometric.Data(
            edge_index=torch.tensor(
                [pair for u, v in graph.edges for pair in ((u, v), (v, u))], dtype=torch.int64
            ).T.reshape(2, -1),
            num_nodes=graph.number_of_nodes(),
        )
        for graph in to_networkx(threads)
    ]
    forms = {
        "Graphs": threads,
        "networkx": list(to_networkx(threads)),
        "PyG": data,
        "Hierarchy": ego.decompose(threads),
    }
    options = SMALL | {"node_labels": "degree"}
    fitted = {name: SAENClassifier(**options).fit(X, threads.targets) for name, X in forms.items()}
    expected = fitted["Graphs"].predict_proba(threads)
    for name, estimator in fitted.items():
        assert same_weights(estimator, fitted["Graphs"]), name
        for other, X in forms.items():
            if name == "Hierarchy" and other != "Hierarchy":
                continue
            assert_array_equal(estimator.predict_proba(X), expected)


def test_an_estimator_of_hierarchies_wants_hierarchies(threads: Graphs) -> None:
    hierarchy = Ego((0, 1)).decompose(threads)
    estimator = SAENClassifier(**SMALL).fit(hierarchy, threads.targets)
    with pytest.raises(InputError, match="fitted on hierarchies: pass a Hierarchy"):
        estimator.predict(threads)
    with refuses(
        "fitted on roles [('root', 'elem'), ('radius 0', 'radius 1')], but the hierarchy has "
        "[('root', 'elem'), ('radius 0', 'radius 1', 'radius 2')]"
    ):
        estimator.predict(Ego((0, 1, 2)).decompose(threads))
    bottom = Attributes(vectors=np.zeros((hierarchy.sizes[0], 2)))
    with pytest.raises(InputError, match="bottom attributes differ in kind"):
        estimator.predict(Hierarchy(bottom, hierarchy.relations, hierarchy.names))


def test_hierarchies_of_any_depth_are_learned_from(threads: Graphs) -> None:
    words = ["abba", "bab", "aab", "xyxy", "yyx", "xxy"] * 3
    letters = np.array(list("".join(words)))
    vocabulary, codes = Vocabulary.fit([letters])
    bag = Relation(
        np.cumsum([0, *map(len, words)]),
        np.arange(len(letters)),
        np.zeros(len(letters), int),
        ("letter",),
        len(letters),
    )
    hierarchy = Hierarchy(Attributes(codes, vocabulary), (bag,))
    y = ["ab" if set(word) <= set("ab") else "xy" for word in words]
    estimator = SAENClassifier(epochs=30, learning_rate=0.05).fit(hierarchy, y)
    assert estimator.score(hierarchy, y) == 1.0
    assert len(estimator.network_.levels) == 2


def test_an_empty_list_is_called_empty() -> None:
    with refuses("X is empty: there are no graphs"):
        SAENClassifier().fit([], [0, 1])


@pytest.mark.parametrize("X", [3, [1, 2], np.zeros((4, 2)), "graphs", None])
def test_anything_else_is_refused(X: Any) -> None:
    with refuses(
        "X must be saen.Graphs, a list of networkx graphs, of PyG Data or of RDKit molecules, "
        "or a saen.Hierarchy, "
        f"not {type(X).__name__}"
    ):
        SAENClassifier().fit(X, [0, 1])


def test_structures_are_taken_as_they_come(threads: Graphs) -> None:
    assert as_data(threads) is threads
    assert len(as_data(nx.path_graph(n) for n in (2, 3))) == 2


# -- bad input ---------------------------------------------------------------------------------


def test_an_empty_collection_cannot_be_fitted_but_predicted(
    threads: Graphs, fitted: SAENClassifier
) -> None:
    with pytest.raises(InputError, match="nothing to fit: the data are empty"):
        SAENClassifier().fit(threads[:0], [0, 1])
    assert fitted.predict(threads[:0]).shape == (0,)
    assert fitted.predict_proba(threads[:0]).shape == (0, 2)
    assert fitted.decision_function(threads[:0]).shape == (0,)
    assert fitted.embed(threads[:0]).shape == (0, 12)
    assert fitted.embed(threads[:0], 0).shape == (0, 8)


def test_functions_over_columns_say_that_graphs_are_no_matrix(threads: Graphs) -> None:
    model = PartCountsClassifier(depth=0, inner_folds=0).fit(threads, threads.targets)
    for X in (threads, list(threads)):
        with pytest.raises(InputError, match="Graphs cannot be an array of numbers, as scikit-"):
            BaggingClassifier(model).fit(X, threads.targets)
    with pytest.raises(InputError, match=r"explain them by saen.explain_dataset"):
        permutation_importance(model, threads, threads.targets)


def test_weights_and_groups_are_routed_to_fit(threads: Graphs) -> None:
    groups = np.arange(len(threads)) // 2
    with sklearn.config_context(enable_metadata_routing=True):
        model = PartCountsClassifier(depth=0, inner_folds=2)
        model.set_fit_request(sample_weight=True, groups=True)
        model.set_score_request(sample_weight=False)
        found = cross_validate(
            model,
            threads,
            threads.targets,
            cv=GroupKFold(2),
            params={"sample_weight": np.ones(len(threads)), "groups": groups},
            return_estimator=True,
            return_indices=True,
        )
    for fitted, train in zip(found["estimator"], found["indices"]["train"], strict=True):
        alone = PartCountsClassifier(depth=0, inner_folds=2)
        alone.fit(threads[train], threads.targets[train], groups=groups[train])
        assert np.array_equal(alone.predict_proba(threads), fitted.predict_proba(threads))


def test_sample_weights_that_make_no_sense_are_refused(threads: Graphs) -> None:
    for weights, message in [
        (np.zeros(40), "zero"),
        (np.full(40, -1.0), "a finite number ≥ 0 for each of 40"),
        (np.ones(39), "a finite number ≥ 0 for each of 40"),
        (np.full(40, np.nan), "a finite number ≥ 0 for each of 40"),
    ]:
        for cls, y in [(SAENClassifier, threads.targets), (SAENRegressor, threads.sizes)]:
            estimator = cls(**SMALL)
            with pytest.raises(ValueError, match=message):
                estimator.fit(threads, y, sample_weight=weights)
            assert not hasattr(estimator, "network_")


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        (
            {"decomposition": "egg"},
            "unknown decomposition 'egg' (did you mean ego?): choose from ego",
        ),
        ({"n_models": 0}, "SAENClassifier: n_models must be int in ["),
        ({"hidden": [[4], [4]]}, "hidden needs 3 lists of sizes, one per level, not [[4], [4]]"),
        ({"hidden": "large"}, "SAENClassifier: hidden must be"),
        ({"radii": "large"}, "SAENClassifier: radii must be list of int or {'auto'}, not 'large'"),
        ({"hidden": [[4], [0], [4]]}, "layer sizes must be 1 … 10,000"),
        ({"hidden": [[10**30], [4], [4]]}, "layer sizes must be 1 … 10,000"),
        ({"hidden": [["a"], [4], [4]]}, "hidden has a list of layer sizes per level"),
        ({"hidden": [4, 4, 4]}, "hidden has a list of layer sizes per level"),
        *(
            ({name: 10**400}, f"SAENClassifier: {name} must be")
            for name in ("epochs", "n_models", "min_count", "learning_rate", "weight_decay")
        ),
        ({"class_weight": {"questions": 10**400}}, "class_weight: the weight of 'questions' must"),
        ({"class_weight": {"questions": "a"}}, "class_weight: the weight of 'questions' must"),
        ({"dropout": 1.5}, "SAENClassifier: dropout must be float "),
        ({"normalization": "layer"}, "SAENClassifier: normalization must be"),
        ({"epochs": -1}, "SAENClassifier: epochs must be int in [0"),
        ({"batch_size": 0}, "SAENClassifier: batch_size must be int "),
        ({"learning_rate": 0}, "SAENClassifier: learning_rate must be float "),
        ({"schedule": "steps"}, "SAENClassifier: schedule must be {"),
        ({"device": "toaster"}, "unknown device 'toaster': use auto, cpu or cuda"),
        ({"dtype": "float16"}, "SAENClassifier: dtype must be {"),
        ({"node_labels": "colour"}, "unknown label 'colour'"),
        ({"radii": (-1,)}, "radii must be one or more distinct integers ≥ 0, not (-1,)"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(
    threads: Graphs, parameters: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError) as raised:
        SAENClassifier(**(SMALL | parameters)).fit(threads, threads.targets)
    assert str(raised.value).startswith(message)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_a_device_that_is_not_there_is_refused(threads: Graphs) -> None:
    with pytest.raises(InputError, match="no CUDA device is available"):
        SAENClassifier(**(SMALL | {"device": "cuda"})).fit(threads, threads.targets)


# -- predicting --------------------------------------------------------------------------------


def test_predicting_needs_no_training_data_and_no_company(
    threads: Graphs, fitted: SAENClassifier
) -> None:
    assert len(fitted.schema_) == 0
    assert all(size == 0 for size in fitted.schema_.sizes)
    together = fitted.predict_proba(threads)
    one_by_one = np.concatenate([fitted.predict_proba(threads[[i]]) for i in range(len(threads))])
    assert_close(one_by_one, together, 1e-6)


def test_labels_that_were_never_seen_change_no_prediction() -> None:
    training = labelled("abc", seed=0)
    y = np.arange(len(training)) % 2
    estimator = SAENClassifier(**SMALL).fit(training, y)
    x, z = labelled("abx", seed=1), labelled("abz", seed=1)
    assert_array_equal(x.node_labels == "x", z.node_labels == "z")
    assert_array_equal(estimator.predict_proba(x), estimator.predict_proba(z))
    assert not np.array_equal(
        estimator.predict_proba(x), estimator.predict_proba(labelled("abc", seed=1))
    )


def test_unseen_labels_mean_the_same_in_cross_validation_and_in_prediction() -> None:
    # In cross-validation the vocabulary holds the labels of test graphs, which do not train.
    training, test = labelled("aabbccd", seed=0), labelled("abx", seed=1)
    both = Graphs.concatenate([training, test])
    y = np.arange(len(both)) % 2
    weights = np.r_[np.ones(len(training)), np.zeros(len(test))]
    for min_count in (1, 8):
        options = SMALL | {
            "batch_size": "all",
            "dtype": "float64",
            "epochs": 0,
            "node_labels": "node",
        }
        inside = SAENClassifier(min_count=min_count, **options).fit(both, y, weights)
        outside = SAENClassifier(min_count=min_count, **options).fit(training, y[: len(training)])
        here, there = inside.network_.bottom.entries, outside.network_.bottom.entries
        shared = len(outside.schema_.attributes.vocabulary)
        kind = {shared: "shared", shared + 1: "unseen"}
        kinds_there = [kind.get(entry, "own") for entry in there[0].tolist()]
        shared += 1  # x
        kind = {shared: "shared", shared + 1: "unseen"}
        kinds_here = [kind.get(entry, "own") for entry in here[0].tolist()]
        assert kinds_here == [*kinds_there, kinds_there[-1]]


def test_the_units_of_attributes_do_not_matter_to_networks() -> None:
    # Batches are another matter: which examples share one depends on what the examples are.
    options = {"radii": (0, 1), "epochs": 5, "inner_folds": 0, "batch_size": "all"}
    rng = np.random.default_rng(0)
    threads = generate_threads(30, average_nodes=8, seed=1)
    values = rng.normal(size=(threads.n_nodes, 2))
    edges = [graph.edges() for graph in threads]
    answers = []
    for scaled in (values, 1000 * values + 500):
        graphs = Graphs.from_edge_lists(edges, threads.sizes, node_attributes=scaled)
        model = SAENClassifier(node_labels="attributes", **options)
        answers.append(model.fit(graphs[:20], threads.targets[:20]).predict_proba(graphs))
    assert np.ptp(answers[0][:, 0]) > 0.1
    np.testing.assert_allclose(*answers, rtol=0, atol=1e-4)


def test_vectors_of_another_width_are_refused() -> None:
    def graphs(width: int) -> Graphs:
        attributes = np.random.default_rng(0).normal(size=(8, width))
        return Graphs.from_edge_lists([[(0, 1)]] * 4, node_attributes=attributes)

    estimator = SAENClassifier(**SMALL).fit(graphs(3), [0, 1, 0, 1])
    with pytest.raises(InputError, match="built for vectors 3, the hierarchy has 2"):
        estimator.predict(graphs(2))


# -- vectors -----------------------------------------------------------------------------------


@pytest.mark.parametrize("cls", ALL)
def test_the_vectors_of_a_level_are_those_of_its_original_objects(
    cls: type[Any], threads: Graphs
) -> None:
    y = threads.sizes if cls is SAENRegressor else threads.targets
    estimator = cls(**(SMALL | {"dtype": "float64"})).fit(threads, y)
    new = generate_threads(12, average_nodes=10, seed=5)
    hierarchy = estimator.decomposition_.decompose(new)
    widths = {0: 4, 1: 4, 2: 6, None: 6}
    for level, width in widths.items():
        vectors = estimator.embed(new, level)
        objects = hierarchy.sizes[2 if level is None else level]
        assert vectors.shape == (objects, 2 * width)
        assert vectors.dtype == np.float64
        with torch.no_grad():
            h = estimator.network_(hierarchy, level=2 if level is None else level)
        assert_close(vectors, h.reshape(objects, -1), 1e-10)
    assert_array_equal(estimator.embed(new), estimator.embed(new, 2))
    for level in (-1, 3):
        with pytest.raises(InputError, match=f"levels are 0 … 2, not {level}"):
            estimator.embed(new, level)


def test_a_transformer_gives_the_vectors_of_the_top(threads: Graphs) -> None:
    transformer = SAENTransformer(**SMALL)
    made = transformer.fit_transform(threads, threads.targets)
    assert_array_equal(made, transformer.transform(threads))
    assert_array_equal(made, transformer.embed(threads))
    # And its output layer makes of them what the classifier predicts.
    layers = transformer.network_.levels[-1].layers
    per_model = made.reshape(40, 2, 6)
    logits = np.einsum("nmd,md->nm", per_model, numbers(layers.weights[-1])[:, :, 0])
    logits = logits + numbers(layers.biases[-1])[:, 0]
    assert_close(
        (1 / (1 + np.exp(-logits))).mean(axis=1), transformer.predict_proba(threads)[:, 1], 1e-5
    )


# -- defaults ----------------------------------------------------------------------------------


def test_the_defaults_are_those_that_auto_decides(threads: Graphs) -> None:
    estimator = SAENClassifier(epochs=1).fit(threads, threads.targets)
    assert estimator.decomposition_.node_labels == "log-degree:4"
    facts = auto.GraphFacts.of(threads)
    assert estimator.decomposition_.radii == auto.radii(facts, np.arange(len(threads)))
    hidden = auto.hidden(2)
    assert estimator.network_.architecture.layers == (*hidden[:-1], (*hidden[-1], 1))
    assert estimator.network_.architecture.normalization == "batch"


def test_newcomers_get_a_strong_classifier() -> None:
    threads = generate_threads(200, average_nodes=30, seed=3)
    scores = cross_val_score(SAENClassifier(epochs=15), threads, threads.targets, cv=2)
    assert scores.mean() > 0.75


# -- random states -----------------------------------------------------------------------------


def test_the_same_random_state_gives_the_same_model(threads: Graphs) -> None:
    def fit(random_state: Any) -> SAENClassifier:
        options = SMALL | {"epochs": 2, "dropout": 0.2}
        return SAENClassifier(random_state=random_state, **options).fit(threads, threads.targets)

    assert same_weights(fit(0), fit(0))
    assert same_weights(fit(0), fit(np.int64(0)))
    assert not same_weights(fit(0), fit(1))
    assert not same_weights(fit(None), fit(None))
    assert same_weights(fit(np.random.RandomState(4)), fit(np.random.RandomState(4)))
    one = np.random.RandomState(4)
    assert not same_weights(fit(one), fit(one)), "a RandomState moves on"


def test_estimators_leave_global_random_states_alone(threads: Graphs) -> None:
    before = (
        torch.get_rng_state(),
        np.random.get_state()[1].tobytes(),  # noqa: NPY002
        random.getstate(),
    )
    for random_state in (0, None):
        options = SMALL | {"inner_folds": 2}
        model = SAENClassifier(**options, dropout=0.3, random_state=random_state)
        model.fit(threads, threads.targets).predict(threads)
    assert torch.equal(torch.get_rng_state(), before[0])
    assert np.random.get_state()[1].tobytes() == before[1]  # noqa: NPY002
    assert random.getstate() == before[2]


# -- inner folds -------------------------------------------------------------------------------


@pytest.mark.parametrize("cls", [SAENClassifier, SAENRegressor])
def test_the_networks_of_inner_folds_are_the_model(threads: Graphs, cls: type[Any]) -> None:
    y = threads.sizes if cls is SAENRegressor else threads.targets
    model = cls(**SMALL | {"inner_folds": 3}).fit(threads, y)
    assert model.network_.n_models == 3 * SMALL["n_models"]
    assert np.shape(model.history_.validation_loss) == (3, 6)
    each = model.predict_each(threads)
    # What a fold holds out is predicted by its own networks, and by no others.
    evaluation = model.evaluation_
    assert [len(folds) for folds in evaluation.splits] == [3]
    if cls is SAENClassifier:
        each = tempered(each, 1 / model.temperature_)
    checks = [check for _, check in evaluation.splits[0]]
    held_out = [each[check, 2 * k : 2 * k + 2] for k, check in enumerate(checks)]
    codes = np.unique(y, return_inverse=True)[1]
    for number, (check, own) in enumerate(zip(checks, held_out, strict=True)):
        if cls is SAENClassifier:  # at the temperature of what the others hold out
            rest = [k for k in range(3) if k != number]
            truth = np.concatenate([np.repeat(codes[checks[k]], 2) for k in rest])
            rows = np.concatenate([held_out[k].reshape(-1, 2) for k in rest])
            own = tempered(own, temperature_of(rows, truth))
        assert_close(evaluation.outputs[0, check], own.mean(axis=1), 1e-6)
    if cls is SAENRegressor:
        rows = np.concatenate(checks)
        assert_close(model.errors_, np.abs(evaluation.outputs[0] - y)[rows], 1e-6)


def test_without_inner_folds_there_is_nothing_to_calibrate_by(fitted: SAENClassifier) -> None:
    assert fitted.evaluation_ is None
    assert fitted.temperature_ == 1
    assert fitted.history_.validation_loss == []


def test_groups_stay_together_in_inner_folds(threads: Graphs) -> None:
    groups = np.arange(len(threads)) // 4
    model = SAENClassifier(**SMALL | {"inner_folds": 3})
    model.fit(threads, threads.targets, groups=groups)
    for train, check in model.evaluation_.splits[0]:
        assert not set(groups[train]) & set(groups[check])


# -- interruption ------------------------------------------------------------------------------


def interrupt(monkeypatch: pytest.MonkeyPatch, after: int, error: BaseException) -> list[int]:
    """Raise an error once so many epochs are trained; the epochs that are trained after that."""
    original, trained = saen.network.training._Run.train_epoch, []

    def break_off(self: Any, batches: Any) -> None:
        if len(trained) == after and not broken:
            trained.clear()
            broken.append(True)
            raise error
        trained.append(self.epoch)
        original(self, batches)

    broken: list[bool] = []
    monkeypatch.setattr(saen.network.training._Run, "train_epoch", break_off)
    return trained


class Killed(BaseException):
    pass


@pytest.mark.parametrize("error", [Killed(), KeyboardInterrupt()], ids=["killed", "Ctrl-C"])
def test_an_interrupted_fit_resumes_from_its_run_dir(
    threads: Graphs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    options = SMALL | {"epochs": 15}
    undisturbed = SAENClassifier(**options).fit(threads, threads.targets)
    estimator = SAENClassifier(**options, run_dir=tmp_path)
    trained = interrupt(monkeypatch, 12, error)
    with pytest.raises(type(error)):
        estimator.fit(threads, threads.targets)
    assert not hasattr(estimator, "fitted_")
    assert same_weights(estimator.fit(threads, threads.targets), undisturbed)
    assert trained == [10, 11, 12, 13, 14]
    assert estimator.history_ == undisturbed.history_
    # Once it is finished nothing is trained at all.
    assert same_weights(estimator.fit(threads, threads.targets), undisturbed)
    assert trained == [10, 11, 12, 13, 14]


def test_a_run_dir_gives_back_nothing_of_another_fit(threads: Graphs, tmp_path: Path) -> None:
    others = generate_threads(40, average_nodes=15, seed=2)
    y, weights = threads.targets, np.linspace(1, 2, 40)
    fits: list[Any] = [
        (SAENClassifier(**SMALL), threads, y, None),
        (SAENClassifier(**SMALL, random_state=1), threads, y, None),
        (SAENClassifier(**SMALL | {"epochs": 2}), threads, y, None),
        (SAENClassifier(**SMALL), others, y, None),
        (SAENClassifier(**SMALL), threads, others.targets, None),
        (SAENClassifier(**SMALL), threads, y, weights),
        (SAENRegressor(**SMALL), threads, np.arange(40.0), None),
        (PartCountsClassifier(), threads, y, None),
        (PartCountsClassifier(), others, y, None),
        (PartCountsClassifier(), threads, others.targets, None),
        (PartCountsClassifier(), threads, y, weights),
        (PartCountsRegressor(), threads, np.arange(40.0), None),
    ]
    assert (others.targets != y).any()
    for model, X, targets, own in fits:
        alone = clone(model).fit(X, targets, own).predict_each(threads)
        model.set_params(run_dir=tmp_path).fit(X, targets, own)
        assert_array_equal(model.predict_each(threads), alone)


def test_fitting_is_silent_unless_it_is_watched(
    threads: Graphs, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for progress in (None, False):
        SAENClassifier(**SMALL, progress=progress).fit(threads, threads.targets)
        assert capfd.readouterr() == ("", "")
    terminal = functools.partial(Console, force_terminal=True, width=100)
    monkeypatch.setattr("rich.console.Console", terminal)
    SAENClassifier(**SMALL, progress=True).fit(threads, threads.targets)
    out, err = capfd.readouterr()
    assert out == ""
    assert "training" in err
    assert "6/6" in err  # network-epochs


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")
def test_a_gpu_learns_what_the_processor_learns(
    threads: Graphs, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = SMALL | {"dtype": "float64"}
    here = SAENClassifier(**options).fit(threads, threads.targets)
    there = SAENClassifier(**(options | {"device": "cuda"})).fit(threads, threads.targets)
    assert there.network_.device.type == "cuda"
    assert_close(there.predict_proba(threads), here.predict_proba(threads), 1e-7)
    assert_close(there.embed(threads, 1), here.embed(threads, 1), 1e-6)
    monkeypatch.setattr("saen.network.devices._has_driver", lambda: True)
    auto = SAENClassifier(**(SMALL | {"device": "auto"})).fit(threads, threads.targets)
    assert auto.network_.device.type == "cuda"


# -- structures that are prepared once ---------------------------------------------------------


@pytest.mark.parametrize("cls", ALL)
def test_fitting_on_prepared_structures_is_fitting_on_the_structures(
    threads: Graphs, cls: type[Any]
) -> None:
    y = threads.sizes if cls is SAENRegressor else threads.targets
    one = cls(**SMALL).fit(threads, y)
    shared = cls(**SMALL).prepare(threads)
    assert len(shared) == len(threads)
    other = cls(**SMALL).fit(shared, y)
    assert same_weights(one, other)
    assert_array_equal(other.predict(shared), one.predict(threads))
    assert_array_equal(other.predict_each(shared), one.predict_each(threads))
    assert_array_equal(other.predict(threads[3:5]), one.predict(threads[3:5]))


def test_what_was_prepared_for_one_estimator_serves_another(threads: Graphs) -> None:
    shared = SAENClassifier(**SMALL).prepare(threads)
    other = SAENClassifier(**SMALL | {"node_labels": "degree,log-degree:1"})
    expected = clone(other).fit(threads, threads.targets).predict_proba(threads)
    SAENClassifier(**SMALL).fit(shared, threads.targets)
    assert_array_equal(other.fit(shared, threads.targets).predict_proba(shared), expected)
    with pytest.raises(InputError, match=r"\d+ examples, but 3 targets"):
        other.fit(shared, [0, 1, 0])


def test_preparing_tells_how_far_it_is(threads: Graphs) -> None:
    told: list[int] = []
    model = SAENClassifier(**SMALL)
    prepared = model.prepare(threads)
    prepared.progress = told.append
    model.fit(prepared, threads.targets)
    assert told[-1] == len(threads)


@pytest.mark.parametrize("class_weight", [None, "balanced"])
def test_structures_of_no_weight_are_as_if_they_were_not_there(
    threads: Graphs, class_weight: Any
) -> None:
    both = Graphs.concatenate([threads, threads])  # no label is lost with the second half
    y = np.concatenate([threads.targets, np.repeat(threads.targets[:1], len(threads))])
    options = SMALL | {"dtype": "float64", "batch_size": "all", "class_weight": class_weight}
    weights = np.repeat([1, 0], len(threads))
    one = SAENClassifier(**options).fit(both, y, sample_weight=weights)
    other = SAENClassifier(**options).fit(threads, threads.targets)
    assert_close(one.predict_proba(threads), other.predict_proba(threads), 1e-9)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_networks_one_by_one_average_to_the_ensemble(threads: Graphs, n_classes: int) -> None:
    model = SAENClassifier(**SMALL).fit(threads, np.arange(len(threads)) % n_classes)
    each = model.predict_each(threads)
    assert each.shape == (len(threads), 2, n_classes)
    assert_array_equal(each.mean(axis=1), model.predict_proba(threads))
    made = model.network_(compress(model.decomposition_.decompose(threads))).detach().double()
    alone = torch.softmax(made, 2) if n_classes > 2 else torch.sigmoid(made)
    assert_close(each[:, :, -1], alone[:, :, -1].numpy(), 1e-6)
    for y in (threads.sizes, np.column_stack([threads.sizes] * 2)):
        regressor = SAENRegressor(**SMALL).fit(threads, y)
        each = regressor.predict_each(threads)
        assert each.shape == (len(threads), 2, *y.shape[1:])
        assert_close(each.mean(axis=1), regressor.predict(threads), 1e-9)


@pytest.mark.parametrize("top", [[6], []])
def test_features_have_names_as_scikit_learn_gives_them(threads: Graphs, top: list[int]) -> None:
    model = SAENTransformer(**SMALL | {"hidden": [[4], [6, 4], top]})
    with pytest.raises(NotFittedError):
        model.get_feature_names_out()
    width = model.fit_transform(threads, threads.targets).shape[1]
    names = [f"saentransformer{i}" for i in range(width)]
    assert model.get_feature_names_out().tolist() == names
    frame = model.set_output(transform="pandas").transform(threads)
    assert list(frame) == names


@pytest.mark.parametrize("kind", [SAENClassifier, SAENRegressor])
def test_numbers_that_do_not_vary_in_training_do_not_spoil_predictions(kind: Any) -> None:
    """All graphs have eight nodes with one label: whatever sums over these alone is constant."""
    rng = np.random.default_rng(0)
    pairs = [(a, b) for a in range(8) for b in range(a)]
    edges = [[pair for pair in pairs if rng.random() < share] for share in rng.random(80)]
    graphs = Graphs.from_edge_lists(edges, [8] * 80, node_labels=["C"] * 640)
    sizes = np.array([len(each) for each in edges])
    y = (sizes > np.median(sizes)).astype(int) if kind is SAENClassifier else sizes / 10
    model = kind(n_models=1, inner_folds=0, random_state=0).fit(graphs, y)
    assert (model.network_.state_dict()["levels.2.norm.variance"] < 1e-9).any()
    assert model.score(graphs, y) > 0.9


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_attributes_with_a_large_offset_are_learned_and_predicted(dtype: Any) -> None:
    """Such as Julian dates, which differ by a few parts in a million."""
    rng = np.random.default_rng(0)
    y = np.arange(80) % 2
    signal = np.repeat(2 * y - 1, 3) + 0.1 * rng.standard_normal(240)
    graphs = Graphs.from_edge_lists(
        [[(0, 1), (1, 2)]] * 80, node_attributes=(2.46e6 + 10 * signal)[:, None].astype(dtype)
    )
    model = SAENClassifier(node_labels="attributes", n_models=1, inner_folds=0, random_state=0)
    assert model.fit(graphs, y).score(graphs, y) > 0.95


def test_attributes_that_are_the_same_in_training_do_not_count_in_prediction(
    threads: Graphs,
) -> None:
    attributes = np.column_stack([threads.degrees(), np.full(threads.n_nodes, 2.46e6)])
    graphs = threads._with(node_attributes=attributes)
    model = SAENClassifier(node_labels="attributes", epochs=5, n_models=1, random_state=0)
    model.fit(graphs, graphs.targets)
    others = graphs._with(node_attributes=attributes + np.array([0, 1000]))
    assert_allclose(model.predict_proba(others), model.predict_proba(graphs), rtol=1e-5)
