"""`cross_validate` equals literal loops over networks that are given `graphs[part]` only.

The loops below share nothing with the code under test but the network, its training and the seeds:
every network gets the graphs and targets of its own training part, and later the test graphs
without their targets. In float64 with full batches both must agree to rounding.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.metrics import accuracy_score, balanced_accuracy_score, log_loss
from sklearn.model_selection import KFold, StratifiedKFold, StratifiedShuffleSplit

import saen
from saen._util.seeds import derive_seed
from saen.data.chunks import compress_graphs
from saen.decompositions import Ego
from saen.learning.calibration import temperature_of, tempered
from saen.learning.cross_validation import cross_validate
from saen.network.architecture import Architecture
from saen.network.loss import Task
from saen.network.model import SAEN
from saen.network.settings import Settings
from saen.network.training import outputs, train

SEED, REPEATS, FOLDS, INNER = 11, 2, 3, 2
LEARNING_RATE = 0.05


def make_graphs():
    """Forty graphs, a few of them identical, with rare node labels and classes of unequal size."""
    noise = np.random.default_rng(5)
    edges, labels, targets = [], [], []
    for number in range(40):
        n = int(noise.integers(3, 7))
        target = int(number % 8 < 3)
        edges.append([(i, i + 1) for i in range(n - 1)] + [(0, n - 1)] * (noise.random() < 0.5))
        alphabet = "aab" if target else "abb"
        chosen = [alphabet[k] for k in noise.integers(0, 3, n)]
        if number % 9 == 0:
            chosen[0] = f"rare {number // 18}"  # in two or three graphs each
        labels += chosen
        targets.append("yes" if target else "no")
    return saen.Graphs.from_edge_lists(edges, node_labels=labels, targets=targets)


GRAPHS = make_graphs()
CODES = (GRAPHS.targets == "yes").astype(np.int64)
SIZES = GRAPHS.sizes + 0.1 * CODES
FITTED = Ego((0, 1), "node").fit(GRAPHS)  # the vocabulary, which fixes the shape of the networks


def estimator(kind=saen.SAENClassifier, **changes):
    arguments = {
        "decomposition": Ego((0, 1), "node"),
        "hidden": [(4,), (4,), (3,)],
        "n_models": 2,
        "epochs": 5,
        "batch_size": "all",
        "learning_rate": LEARNING_RATE,
        "dtype": "float64",
        "device": "cpu",
        "inner_folds": 0,
    }
    return kind(**{**arguments, **changes})


def literal_outputs(
    train_part,
    test_part,
    targets,
    seeds,
    *,
    epochs=5,
    until=None,
    width=4,
    min_count=1,
    weights=None,
    n_classes=2,
):
    """Outputs of new networks, one per seed, that saw the training part only: (tests, M, 1)."""
    seen = compress_graphs(GRAPHS[train_part], FITTED)
    if n_classes:
        task = Task.classification(
            targets, n_models=len(seeds), n_classes=n_classes, class_weights=weights
        )
    else:
        task = Task.regression(targets, n_models=len(seeds))
    layers = [(4,), (width,), (3, task.n_outputs)]
    architecture = Architecture.over(seen.hierarchy, layers, slope=0.2, normalisation="batch")
    network = SAEN(architecture, seeds, dtype=torch.float64)
    settings = Settings(epochs=epochs, learning_rate=LEARNING_RATE, schedule="cosine")
    train(network, seen, task, settings, min_count=min_count, until=until)
    unseen = compress_graphs(GRAPHS[test_part], FITTED)
    return outputs(network, unseen.hierarchy).numpy()[unseen.top]


def literal_probabilities(train_part, test_part, seeds, **options):
    """The mean probabilities of the networks, (tests, 2)."""
    logits = literal_outputs(train_part, test_part, CODES[train_part], seeds, **options)[..., 0]
    positive = (1 / (1 + np.exp(-logits))).mean(axis=1)
    return np.column_stack([1 - positive, positive])


def literal_folds():
    """Shuffled anew for every repeat."""
    for repeat in range(REPEATS):
        splitter = StratifiedKFold(FOLDS, shuffle=True, random_state=SEED + repeat)
        for fold, (train_part, test_part) in enumerate(splitter.split(CODES, CODES)):
            yield repeat, fold, train_part, test_part


def literal_inner_folds(repeat, fold, train_part):
    state = derive_seed((SEED, repeat, fold), "inner folds") % 2**31
    splitter = StratifiedKFold(INNER, shuffle=True, random_state=state)
    for number, (fit, check) in enumerate(splitter.split(train_part, CODES[train_part])):
        seeds = [(SEED, repeat, fold, number, model) for model in range(2)]
        yield train_part[fit], train_part[check], seeds


def outer_seeds(repeat, fold, n_models=2):
    return [(SEED, repeat, fold, model) for model in range(n_models)]


def balanced(codes):
    return len(codes) / (2 * np.bincount(codes, minlength=2))


def validated(model, y=GRAPHS.targets, **options):
    return cross_validate(model, GRAPHS, y, repeats=REPEATS, folds=FOLDS, seed=SEED, **options)


def assert_same(evaluation, expected):
    np.testing.assert_allclose(evaluation.outputs, expected, rtol=0, atol=1e-9)


# -- calibration and early stopping ------------------------------------------------------------


def literal_temperature(inner):
    """From what networks of every inner part predict for the rest of the training examples."""
    held_out = [
        literal_probabilities(
            part.train,
            part.test,
            [(SEED, *part.name, model) for model in range(2)],
            weights=balanced(CODES[part.train]),
        )
        for part in inner
    ]
    truth = np.concatenate([CODES[part.test] for part in inner])
    return temperature_of(np.concatenate(held_out), truth, np.ones(len(truth)))


def test_calibration_equals_a_literal_one_inside_the_training_part():
    model = estimator(inner_folds=3, class_weight="balanced")
    found = validated(model)
    for repeat, fold, train_part, test_part in literal_folds():
        weights = balanced(CODES[train_part])
        raw = literal_probabilities(
            train_part, test_part, outer_seeds(repeat, fold), weights=weights
        )
        inner = model.inner_parts(train_part, CODES, SEED, name=(repeat, fold))
        assert np.array_equal(np.sort(np.concatenate([p.test for p in inner])), train_part)
        expected = tempered(raw, literal_temperature(inner))
        np.testing.assert_allclose(found.outputs[repeat, test_part], expected, rtol=0, atol=1e-6)
    assert found.validation_loss.shape == (5, REPEATS * FOLDS * 3 * 2)


def test_calibration_of_fit_equals_a_literal_one():
    model = estimator(inner_folds=3, class_weight="balanced", random_state=SEED)
    model.fit(GRAPHS, GRAPHS.targets)
    inner = model.inner_parts(np.arange(len(GRAPHS)), CODES, SEED)
    # The data must be such that weights of all examples would show.
    assert any(not np.allclose(balanced(CODES[part.train]), balanced(CODES)) for part in inner)
    assert model.temperature_ == pytest.approx(literal_temperature(inner), rel=1e-6)


def test_early_stopping_of_fit_equals_literal_loops():
    epochs, share = 5, 0.3
    model = estimator(
        patience=epochs, validation_fraction=share, class_weight="balanced", random_state=SEED
    ).fit(GRAPHS, GRAPHS.targets)
    each = model.predict_each(GRAPHS)
    for number in range(2):
        state = derive_seed((SEED, number), "held out") % 2**31
        splitter = StratifiedShuffleSplit(1, test_size=share, random_state=state)
        train_part, valid = next(splitter.split(CODES, CODES))
        weights = balanced(CODES[train_part])
        everything = np.concatenate([valid, np.arange(len(GRAPHS))])
        curve = []
        for epoch in range(epochs):
            rows = literal_probabilities(
                train_part, everything, [(SEED, number)], until=epoch + 1, weights=weights
            )
            loss = log_loss(CODES[valid], rows[: len(valid)], sample_weight=weights[CODES[valid]])
            curve.append((loss, rows[len(valid) :]))
        found = np.array(model.history_.validation_loss)[:, number]
        np.testing.assert_allclose(found, [loss for loss, _ in curve], rtol=0, atol=1e-9)
        best = curve[int(found.argmin())][1]
        np.testing.assert_allclose(each[:, number], best, rtol=0, atol=1e-9)


# -- fixed -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "min_count", "class_weight"),
    [({}, 1, None), ({"min_count": 3}, 3, None), ({"class_weight": "balanced"}, 1, balanced)],
    ids=["plain", "rare labels", "class weights"],
)
def test_fixed_equals_literal_loops(arguments, min_count, class_weight):
    expected = np.full((REPEATS, len(GRAPHS), 2), np.nan)
    for repeat, fold, train_part, test_part in literal_folds():
        weights = None if class_weight is None else class_weight(CODES[train_part])
        expected[repeat, test_part] = literal_probabilities(
            train_part, test_part, outer_seeds(repeat, fold), min_count=min_count, weights=weights
        )
    assert_same(validated(estimator(**arguments)), expected)


def test_regression_equals_literal_loops():
    expected = np.full((REPEATS, len(GRAPHS)), np.nan)
    for repeat in range(REPEATS):
        splitter = KFold(FOLDS, shuffle=True, random_state=SEED + repeat)
        for fold, (train_part, test_part) in enumerate(splitter.split(SIZES)):
            mean, scale = SIZES[train_part].mean(), SIZES[train_part].std()
            standard = (SIZES[train_part] - mean) / scale
            each = literal_outputs(
                train_part, test_part, standard, outer_seeds(repeat, fold), n_classes=0
            )
            expected[repeat, test_part] = each[..., 0].mean(axis=1) * scale + mean
    assert_same(validated(estimator(saen.SAENRegressor), SIZES), expected)


# -- nested ------------------------------------------------------------------------------------


GRID = [{"epochs": 3}, {"epochs": 4}, {"hidden": [(4,), (2,), (3,)]}]
LITERAL_GRID = [{"epochs": 3}, {"epochs": 4}, {"width": 2}]


@pytest.fixture(scope="module")
def inner_predictions():
    """For every fold and setting, the truth and the probabilities of its inner folds."""
    return [
        [
            [
                (
                    CODES[check],
                    literal_probabilities(
                        fit, check, seeds, weights=balanced(CODES[fit]), **options
                    ),
                )
                for fit, check, seeds in literal_inner_folds(repeat, fold, train_part)
            ]
            for options in LITERAL_GRID
        ]
        for repeat, fold, train_part, _ in literal_folds()
    ]


def rank(settings, score):
    """Per setting its mean score, its mean likelihood, which breaks ties, and its place."""
    return [
        (
            round(np.mean([score(truth, rows.argmax(axis=1)) for truth, rows in inner]), 9),
            -np.mean([log_loss(truth, rows) for truth, rows in inner]),
            -number,
        )
        for number, inner in enumerate(settings)
    ]


@pytest.mark.parametrize("metric", ["accuracy", "balanced_accuracy"])
def test_nested_equals_literal_loops(inner_predictions, metric):
    score = {"accuracy": accuracy_score, "balanced_accuracy": balanced_accuracy_score}[metric]
    expected = np.full((REPEATS, len(GRAPHS), 2), np.nan)
    chosen, ties = [], 0
    for settings, (repeat, fold, train_part, test_part) in zip(
        inner_predictions, literal_folds(), strict=True
    ):
        ranking = rank(settings, score)
        best = -max(ranking)[2]
        ties += sum(entry[0] == max(ranking)[0] for entry in ranking) > 1
        chosen.append(best)
        expected[repeat, test_part] = literal_probabilities(
            train_part,
            test_part,
            outer_seeds(repeat, fold),
            weights=balanced(CODES[train_part]),
            **LITERAL_GRID[best],
        )
    # The data must be such that a wrong choice shows: several are made, one of them more than
    # once, and some by likelihood alone.
    assert 1 < len(set(chosen)) < len(chosen)
    assert ties
    found = validated(
        estimator(class_weight="balanced"), stop="nested", grid=GRID, metric=metric, inner=INNER
    )
    assert found.chosen == [GRID[choice] for choice in chosen]
    assert_same(found, expected)


def test_nested_chooses_on_the_validation_part_and_trains_on_the_training_part():
    order = np.random.default_rng(0).permutation(len(GRAPHS))
    train_part, valid, test_part = np.sort(order[:24]), order[24:32], order[32:]
    seeds = [(SEED, 0, 0, 0, model) for model in range(2)]
    rows = [literal_probabilities(train_part, valid, seeds, **options) for options in LITERAL_GRID]
    best = -max(rank([[(CODES[valid], each)] for each in rows], accuracy_score))[2]
    expected = np.full((1, len(GRAPHS), 2), np.nan)
    expected[0, test_part] = literal_probabilities(
        train_part, test_part, outer_seeds(0, 0), **LITERAL_GRID[best]
    )
    found = cross_validate(
        estimator(),
        GRAPHS,
        GRAPHS.targets,
        seed=SEED,
        splits=[[(train_part, test_part)]],
        validation=[valid],
        stop="nested",
        grid=GRID,
    )
    assert found.chosen == [GRID[best]]
    assert_same(found, expected)


# -- peek --------------------------------------------------------------------------------------


def test_peek_equals_literal_loops():
    epochs = 4
    accuracies = np.zeros((REPEATS * FOLDS, epochs))
    expected = np.full((epochs, REPEATS, len(GRAPHS), 2), np.nan)
    for row, (repeat, fold, train_part, test_part) in enumerate(literal_folds()):
        for epoch in range(epochs):
            rows = literal_probabilities(
                train_part, test_part, outer_seeds(repeat, fold, 1), epochs=epochs, until=epoch + 1
            )
            expected[epoch, repeat, test_part] = rows
            accuracies[row, epoch] = (rows.argmax(axis=1) == CODES[test_part]).mean()
    best = int(accuracies.mean(axis=0).round(9).argmax())
    assert best < epochs - 1  # else training to the end would look the same
    found = validated(estimator(epochs=epochs), stop="peek")
    assert found.chosen == [{"epoch": best + 1}]
    assert_same(found, expected[best])


# -- duplicates --------------------------------------------------------------------------------


def test_duplicates_are_not_looked_for_in_examples_that_were_not_trained_on():
    path, star = [(0, 1), (1, 2), (2, 3)], [(0, 1), (0, 2), (0, 3)]
    graphs = saen.Graphs.from_edge_lists([path, star, path, star, [(0, 1)], [(0, 1), (1, 2)]])
    hold_out = [[([3, 4, 5], [0, 1])]]  # the other path is in no part
    model = saen.SAENClassifier(epochs=1, n_models=1, radii=(0, 1))
    found = cross_validate(model, graphs, [0, 1, 0, 1, 0, 1], splits=hold_out)
    assert found.duplicates()[0, :2].tolist() == [False, True]
    assert found.to_json()["duplicates"]["share"] == 0.5
