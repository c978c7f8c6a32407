"""What is evaluated is what is shipped: a fold is `fit` on its training examples, and nothing else.

Choices, part counts and forests are the same bit for bit; networks and what follows from them
within 1e-9 in float64, since other networks beside them change the order of sums.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import saen
from saen.learning.decomposing import Decompositions
from saen.learning.models import forest
from saen.learning.models.base import Study
from saen.learning.problem import Problem
from saen.learning.splits import Fold, make_splits

N = 60
RNG = np.random.default_rng(5)
GRAPHS = saen.generate_threads(N, average_nodes=14, seed=3)
LABELLED = replace(
    GRAPHS,
    node_labels=RNG.choice(list("CNO"), GRAPHS.n_nodes, p=[0.6, 0.3, 0.1]),
    node_attributes=RNG.normal(size=(GRAPHS.n_nodes, 2)).round(2),
)
CLASSES = GRAPHS.targets
DESCRIBED = replace(
    GRAPHS,
    extra={"size": GRAPHS.sizes.astype(float), "noise": RNG.normal(size=N).round(2)},
    feature_names=("size", "noise"),
)
THREE = np.array(["small", "middle", "large"])[np.digitize(GRAPHS.sizes, [12, 15])]
NUMBERS = np.log(GRAPHS.sizes) + RNG.normal(0, 0.1, N)
SEVERAL = np.column_stack([GRAPHS.sizes > np.median(GRAPHS.sizes), CLASSES == "questions"]).astype(
    float
)
SEVERAL[::7, 0] = np.nan
SEVERAL_NUMBERS = np.column_stack([NUMBERS, GRAPHS.sizes * 1.0])
SEVERAL_NUMBERS[::5, 1] = np.nan
GROUPS = np.arange(N) // 2
WEIGHTS = RNG.integers(1, 3, N).astype(float)

NETWORK = {"epochs": 4, "dtype": "float64", "device": "cpu"}
SMALL = {"hidden": [[6], [6, 4], [6]], **NETWORK}


def networks(numbers, **arguments):
    kind = saen.SAENRegressor if numbers else saen.SAENClassifier
    return kind(**SMALL | arguments)


def counts(numbers, **arguments):
    kind = saen.PartCountsRegressor if numbers else saen.PartCountsClassifier
    return kind(**arguments)


def blend(numbers, **arguments):
    kind = saen.Regressor if numbers else saen.Classifier
    candidates = [
        counts(numbers),
        counts(numbers, norm=None, node_labels="degree"),
        networks(numbers, decomposition="ego"),
    ]
    return kind(candidates=candidates, **arguments)


MODELS = {
    "networks": (networks, {}),
    "networks on all examples": (networks, {"inner_folds": 0, "n_models": 2}),
    "networks by attributes": (networks, {"node_labels": "node,attributes", "min_count": 20}),
    "networks by bonds": (networks, {"decomposition": "ego(edges=roles, direction=both)"}),
    "networks in large batches": (networks, {"batch_size": 30}),
    "networks with dropout": (networks, {"dropout": 0.3}),
    "balanced networks": (networks, {"class_weight": "balanced"}),
    "networks on one split": (networks, {"inner_folds": 1}),
    "counts": (counts, {}),
    "counts by bins": (counts, {"node_labels": "attribute-bins:4"}),
    "counts with features": (counts, {}),
    "balanced counts": (counts, {"class_weight": "balanced"}),
    "counts on one split": (counts, {"inner_folds": 1}),
    "forest": (counts, {"model": "forest"}),
    "ego counts": (counts, {"decomposition": "ego", "node_labels": "degree"}),
    "blend": (blend, {}),
    "blend by errors": (blend, {"metric": "mae"}),
    "blend by areas": (blend, {"metric": "roc_auc"}),
}
TARGETS = {
    "classes": (CLASSES, False),
    "three classes": (THREE, False),
    "several": (SEVERAL, False),
    "numbers": (NUMBERS, True),
    "several numbers": (SEVERAL_NUMBERS, True),
}
EXACT = ("counts", "forest")
OF_CLASSES = ("classes", "three classes", "several")
CASES = [
    *[(m, target) for m in ("networks", "counts", "forest", "blend") for target in TARGETS],
    *[(m, target) for m in ("balanced networks", "balanced counts") for target in OF_CLASSES],
    *[(m, target) for m in ("counts on one split", "networks on one split") for target in TARGETS],
    ("counts with features", "classes"),
    ("counts with features", "several numbers"),
    ("blend by errors", "numbers"),
    ("blend by areas", "three classes"),
    *[
        (m, "classes")
        for m in MODELS
        if m not in ("networks", "counts", "forest", "blend", "blend by errors", "blend by areas")
        and not m.startswith(("balanced", "counts with", "counts on one", "networks on one"))
    ],
]


SELDOM = {("blend", "numbers"), ("blend", "several numbers"), ("networks", "several numbers")}
"""Two of whose kind are among the others: the slow tests have them."""


def marked(cases):
    return [pytest.param(*c, marks=pytest.mark.slow) if c in SELDOM else c for c in cases]


def data_for(model):
    if model in ("networks by attributes", "counts by bins"):
        return LABELLED
    if model == "counts with features":
        return DESCRIBED
    if model == "networks by bonds":
        kinds = np.where(RNG.random(GRAPHS.n_edges) < 0.03, "rare", "usual")
        return replace(GRAPHS, edge_labels=_both_ways(kinds))
    return GRAPHS


def _both_ways(kinds):
    """One label per neighbour, from one per edge."""
    edges = GRAPHS.edges()
    known = {(int(a), int(b)): kind for (a, b), kind in zip(edges, kinds, strict=True)}
    known |= {(b, a): kind for (a, b), kind in known.items()}
    rows = np.repeat(np.arange(GRAPHS.n_nodes), np.diff(GRAPHS.indptr))
    return np.array(
        [known[a, b] for a, b in zip(rows.tolist(), GRAPHS.indices.tolist(), strict=True)]
    )


def assert_same(one, other, exact):
    if exact:
        np.testing.assert_array_equal(one, other)
    else:
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-9)


def assert_same_choices(one, other, exact):
    """Equal names and settings, and weights within rounding."""
    if isinstance(one, list):
        assert len(one) == len(other)
        for a, b in zip(one, other, strict=True):
            assert_same_choices(a, b, exact)
        return
    numbers = [key for key, value in one.items() if isinstance(value, float)]
    assert {k: v for k, v in one.items() if k not in numbers} == {
        k: v for k, v in other.items() if k not in numbers
    }
    assert_same([one[k] for k in numbers], [other[k] for k in numbers], exact)


def assert_same_model(one, other):
    """All that is fitted: columns, coefficients, trees, parameters, calibrations, weights.

    Layers of a network have a row for every label and role of all data.
    """
    (_, first), (_, second) = one.pack(), other.pack()
    mine, theirs = (
        {key: array for key, array in tensors.items() if "schema." not in key}
        for tensors in (first, second)
    )
    assert mine.keys() == theirs.keys()
    for key, array in mine.items():
        if "levels.0." in key or ("levels." in key and array.shape != theirs[key].shape):
            continue
        exact = any(f"{kind}." in key for kind in ("counts", "linear", "forest"))
        assert_same(array, theirs[key], exact)


@pytest.fixture(autouse=True)
def one_thread(monkeypatch):
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(forest, "N_TREES", 10)
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize(("model", "target"), marked(CASES))
def test_every_fold_equals_fit_on_its_training_examples(model, target):
    (make, arguments), (y, numbers) = MODELS[model], TARGETS[target]
    estimator, graphs = make(numbers, **arguments), data_for(model)
    problem = Problem.of(y, regression=numbers, sample_weight=WEIGHTS, groups=GROUPS)
    n_folds = 10 if target == "classes" and model in ("networks", "counts", "blend") else 3
    [splits] = make_splits(problem.targets.named(problem.values), 1, n_folds, 1, groups=GROUPS)
    folds = [Fold(train, test, (0, k)) for k, (train, test) in enumerate(splits)]
    together = estimator.learner().fit(Study(Decompositions(graphs), problem), folds)
    exact = any(word in model for word in EXACT)
    for fold, result in list(zip(folds, together, strict=True))[:: n_folds - 1]:
        train, test = fold.train, fold.test
        alone = make(numbers, **arguments)
        alone.fit(graphs[train], y[train], sample_weight=WEIGHTS[train], groups=GROUPS[train])
        assert_same(alone.fitted_.predictions(Decompositions(graphs[test])), result.tested, exact)
        calibration = alone.fitted_.calibration
        assert_same(calibration.temperature, result.calibration.temperature, exact)
        if result.calibration.errors is not None:
            assert_same(calibration.errors, result.calibration.errors, exact)
        if alone.evaluation_ is not None:
            held_out = np.full((len(graphs), *result.held_out.shape[1:]), np.nan)
            held_out[result.fold.held_out] = result.held_out
            assert_same(alone.evaluation_.outputs[0], held_out[train], exact)
        assert_same_choices(alone.tried_, result.tried, exact)
        assert_same_model(alone.fitted_, result.fitted)


@pytest.mark.parametrize(
    "model", ["networks", "counts", pytest.param("blend", marks=pytest.mark.slow)]
)
def test_cross_validation_predicts_what_fit_does(model):
    make, arguments = MODELS[model]
    evaluation = saen.cross_validate(
        make(False, **arguments), GRAPHS, CLASSES, n_repeats=2, n_folds=3, random_state=4
    )
    for train, test in evaluation.splits[0]:
        alone = make(False, **arguments, random_state=4).fit(GRAPHS[train], CLASSES[train])
        expected = alone.predict_proba(GRAPHS[test])
        assert_same(evaluation.outputs[0, test], expected, model in EXACT)


def test_default_candidates_predict_what_fit_does():
    """With automatic choices: candidates, depth and radii are those of the training examples."""
    evaluation = saen.cross_validate(
        saen.Classifier(budget="quick"), LABELLED, CLASSES, n_repeats=1, n_folds=3
    )
    for train, test in evaluation.splits[0]:
        alone = saen.Classifier(budget="quick").fit(LABELLED[train], CLASSES[train])
        expected = alone.predict_proba(LABELLED[test])
        np.testing.assert_allclose(evaluation.outputs[0, test], expected, rtol=0, atol=1e-12)


def others(graphs, rows):
    """The graphs with other ones at these rows: large, dense, with labels of their own."""
    shape = saen.Graphs.from_edge_lists(
        [[(a, b) for a in range(18) for b in range(a)] for _ in rows],
        node_labels=None if graphs.node_labels is None else ["X"] * 18 * len(rows),
        node_attributes=None
        if graphs.node_attributes is None
        else np.full((18 * len(rows), 2), 40.0),
        edge_labels=None if graphs.edge_labels is None else ["new"] * 153 * len(rows),
    )
    if graphs.feature_names:
        columns = dict.fromkeys(graphs.extra, np.full(len(rows), 1e6))
        shape = replace(shape, extra=columns, feature_names=graphs.feature_names)
    kept = np.setdiff1d(np.arange(len(graphs)), rows)
    parts = [graphs[kept].with_targets(None), shape.with_targets(None)]
    joined = saen.Graphs.concatenate([part.with_ids(None) for part in parts])
    order = np.empty(len(graphs), dtype=np.int64)
    order[kept], order[rows] = np.arange(len(kept)), len(kept) + np.arange(len(rows))
    return joined[order]


@pytest.mark.parametrize(
    ("model", "target"),
    marked([case for case in CASES if case[0] != "counts by bins" or case[1] == "classes"]),
)
def test_test_examples_have_no_influence(model, target):
    """Other test graphs (labels, degrees, sizes) and targets change nothing that is fitted."""
    (make, arguments), (y, numbers) = MODELS[model], TARGETS[target]
    graphs, rows = data_for(model), np.arange(0, N, 5)
    train = np.setdiff1d(np.arange(N), rows)
    changed = y.copy()
    changed[rows] = changed[rows[-1]]
    weights, groups = WEIGHTS.copy(), GROUPS + N
    weights[rows], groups[rows] = 7.0, 0
    results = []
    for data, values, *about in (
        (graphs, y, WEIGHTS, GROUPS + N),
        (others(graphs, rows), changed, weights, groups),
    ):
        problem = Problem.of(values, regression=numbers, sample_weight=about[0], groups=about[1])
        shared = Decompositions(data)
        study = Study(shared, problem)
        [result] = make(numbers, **arguments).learner().fit(study, [Fold(train, rows)])
        assert result.fitted is not None
        results.append((result, result.fitted.predictions(shared)[train]))
    (one, first), (other, second) = results
    exact = any(word in model for word in EXACT)
    assert_same(first, second, exact)
    assert_same(one.held_out, other.held_out, exact)
    assert_same(one.calibration.temperature, other.calibration.temperature, exact)
    assert_same_choices(one.tried, other.tried, exact)
    assert_same_model(one.fitted, other.fitted)


def test_default_candidates_do_not_look_at_test_examples():
    rows = np.arange(0, N, 5)
    train = np.setdiff1d(np.arange(N), rows)
    learner = saen.Classifier().learner()
    first, second = (
        learner.candidates(Decompositions(data), train) for data in (GRAPHS, others(GRAPHS, rows))
    )
    assert [(each.title, each.learner.key()) for each in first] == [
        (each.title, each.learner.key()) for each in second
    ]
    specs = [each.learner.spec for each in first]
    resolved = [
        [spec.resolve(Decompositions(data), train) for spec in specs]
        for data in (GRAPHS, others(GRAPHS, rows))
    ]
    assert resolved[0] == resolved[1]
