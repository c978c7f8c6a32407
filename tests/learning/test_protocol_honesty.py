"""`cross_validate` equals literal loops over networks that are given `graphs[part]` only.

The loops below share nothing with the code under test but the network, its training and the seeds:
every network gets the graphs and targets of its own training part, and later the test graphs
without their targets. The networks of inner folds have in common what the whole training part
decides: weights of classes, and the unit of numbers. In float64 with full batches both must agree
to rounding.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.metrics import accuracy_score, balanced_accuracy_score, log_loss
from sklearn.model_selection import KFold, StratifiedKFold

import saen
from saen import cross_validate
from saen._util.seeds import derive_seed
from saen.data.chunks import compress_graphs
from saen.decompositions import Ego
from saen.learning.calibration import temperature_of, tempered
from saen.network.architecture import Architecture
from saen.network.batches import seen_in_training
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
    architecture = Architecture.over(
        seen.hierarchy, layers, negative_slope=0.2, normalization="batch"
    )
    known = seen_in_training(seen.hierarchy, seen.top, task.weights, min_count)
    network = SAEN(architecture, seeds, dtype=torch.float64, schema=seen.hierarchy, seen=known)
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
        for train_part, test_part in splitter.split(CODES, CODES):
            yield repeat, train_part, test_part


def literal_inner_folds(repeat, train_part, folds, codes=CODES):
    """Training and held-out examples of every inner fold, and the seeds of its two networks."""
    state = derive_seed((SEED, repeat), "inner folds") % 2**31
    kind = StratifiedKFold if codes.dtype.kind == "i" else KFold
    splitter = kind(folds, shuffle=True, random_state=state)
    for number, (fit, check) in enumerate(splitter.split(train_part, codes[train_part])):
        yield train_part[fit], train_part[check], seeds_of(repeat, number)


def seeds_of(repeat, number=0, n_models=2):
    return [(SEED, repeat, number, model) for model in range(n_models)]


def balanced(codes):
    return len(codes) / (2 * np.bincount(codes, minlength=2))


def validated(model, y=GRAPHS.targets, **options):
    options = {"n_repeats": REPEATS, "n_folds": FOLDS, "random_state": SEED, **options}
    return cross_validate(model, GRAPHS, y, **options)


def assert_same(evaluation, expected, atol=1e-9):
    np.testing.assert_allclose(evaluation.outputs, expected, rtol=0, atol=atol)


# -- inner folds -------------------------------------------------------------------------------


def literal_model(inner, test_part, class_weight=None, **options):
    """The mean of the networks of all inner folds, each at the temperature of what it held out."""
    held_out, tested = [], []
    for fit, check, seeds in inner:
        weights = None if class_weight is None else class_weight(CODES[fit])
        for seed in seeds:
            own = {"seeds": [seed], "weights": weights, **options}
            held_out.append((CODES[check], literal_probabilities(fit, check, **own)))
            tested.append(literal_probabilities(fit, test_part, **own))
    truth, rows = (np.concatenate(each) for each in zip(*held_out, strict=True))
    temperature = temperature_of(rows, truth, np.ones(len(truth)))
    return np.mean([tempered(each, temperature) for each in tested], axis=0), temperature


def test_the_networks_of_inner_folds_and_their_calibration_equal_literal_ones():
    found = validated(estimator(inner_folds=3, class_weight="balanced"))
    expected = np.full((REPEATS, len(GRAPHS), 2), np.nan)
    for repeat, train_part, test_part in literal_folds():
        inner = list(literal_inner_folds(repeat, train_part, 3))
        # The data must be such that weights of other examples would show.
        for fit, _, _ in inner:
            assert not np.allclose(balanced(CODES[fit]), balanced(CODES), rtol=1e-3)
        expected[repeat, test_part] = literal_model(inner, test_part, balanced)[0]
    assert_same(found, expected, atol=1e-6)
    assert found.validation_loss.shape == (5, REPEATS * FOLDS * 3 * 2)


def test_fit_equals_a_literal_one():
    model = estimator(inner_folds=3, class_weight="balanced", random_state=SEED)
    model.fit(GRAPHS, GRAPHS.targets)
    every = np.arange(len(GRAPHS))
    inner = list(literal_inner_folds(0, every, 3))
    expected, temperature = literal_model(inner, every, balanced)
    assert model.temperature_ == pytest.approx(temperature, rel=1e-6)
    np.testing.assert_allclose(model.predict_proba(GRAPHS), expected, rtol=0, atol=1e-6)
    for fold, (_, check, _) in enumerate(inner):  # at the temperature of what the others held out
        rest = [each for number, each in enumerate(inner) if number != fold]
        _, temperature = literal_model(rest, check, balanced)
        own = literal_tempered(inner[fold], temperature)
        found = model.evaluation_.outputs[0, check]
        np.testing.assert_allclose(found, own, rtol=0, atol=1e-6)


def literal_tempered(inner_fold, temperature):
    """The mean of the networks of one inner fold for what it holds out."""
    fit, check, seeds = inner_fold
    weights = balanced(CODES[fit])
    each = [literal_probabilities(fit, check, [seed], weights=weights) for seed in seeds]
    return np.mean([tempered(one, temperature) for one in each], axis=0)


def literal_numbers(fit, test_part, seeds, bounds):
    """The mean numbers of networks that learn in the unit of their training part.

    Each stays within the targets of all that the model learns from, and a quarter of their range.
    """
    mean, scale = SIZES[fit].mean(), SIZES[fit].std()
    standard = (SIZES[fit] - mean) / scale
    each = literal_outputs(fit, test_part, standard, seeds, n_classes=0)[..., 0] * scale + mean
    low, high = SIZES[bounds].min(), SIZES[bounds].max()
    return each.clip(low - (high - low) / 4, high + (high - low) / 4).mean(axis=1)


def test_intervals_of_numbers_equal_literal_ones():
    model = estimator(saen.SAENRegressor, inner_folds=3, random_state=SEED).fit(GRAPHS, SIZES)
    every = np.arange(len(GRAPHS))
    errors, tested = [], []
    for fit, check, seeds in literal_inner_folds(0, every, 3, SIZES):
        errors.append(np.abs(literal_numbers(fit, check, seeds, every) - SIZES[check]))
        tested.append(literal_numbers(fit, every, seeds, every))
    np.testing.assert_allclose(model.errors_, np.concatenate(errors), rtol=0, atol=1e-9)
    np.testing.assert_allclose(model.predict(GRAPHS), np.mean(tested, axis=0), rtol=0, atol=1e-9)
    lower, upper = model.predict_interval(GRAPHS, 0.8)
    # Of 40 errors the one of rank ⌈41 · 0.8⌉.
    radius = np.sort(np.concatenate(errors))[33 - 1]
    np.testing.assert_allclose(upper - lower, 2 * radius, rtol=0, atol=1e-9)


# -- fixed -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "min_count", "class_weight"),
    [({}, 1, None), ({"min_count": 3}, 3, None), ({"class_weight": "balanced"}, 1, balanced)],
    ids=["plain", "rare labels", "class weights"],
)
def test_fixed_equals_literal_loops(arguments, min_count, class_weight):
    expected = np.full((REPEATS, len(GRAPHS), 2), np.nan)
    for repeat, train_part, test_part in literal_folds():
        weights = None if class_weight is None else class_weight(CODES[train_part])
        expected[repeat, test_part] = literal_probabilities(
            train_part, test_part, seeds_of(repeat), min_count=min_count, weights=weights
        )
    assert_same(validated(estimator(**arguments)), expected)


def test_regression_equals_literal_loops():
    expected = np.full((REPEATS, len(GRAPHS)), np.nan)
    for repeat in range(REPEATS):
        splitter = KFold(FOLDS, shuffle=True, random_state=SEED + repeat)
        for train_part, test_part in splitter.split(SIZES):
            expected[repeat, test_part] = literal_numbers(
                train_part, test_part, seeds_of(repeat), train_part
            )
    assert_same(validated(estimator(saen.SAENRegressor), SIZES), expected)


# -- nested ------------------------------------------------------------------------------------


GRID = [{"epochs": 3}, {"epochs": 4}, {"hidden": [(4,), (2,), (3,)]}]
LITERAL_GRID = [{"epochs": 3}, {"epochs": 4}, {"width": 2}]


@pytest.fixture(scope="module")
def inner_predictions():
    """For every fold and setting, the truth and the calibrated probabilities of inner folds."""
    return [
        [
            calibrated(
                [
                    literal_networks(inner_fold, **options)
                    for inner_fold in literal_inner_folds(repeat, train_part, INNER)
                ]
            )
            for options in LITERAL_GRID
        ]
        for repeat, train_part, _ in literal_folds()
    ]


def literal_networks(inner_fold, **options):
    """Truth of what an inner fold holds out, and the probabilities by each of its networks."""
    fit, check, seeds = inner_fold
    weights = balanced(CODES[fit])
    each = [literal_probabilities(fit, check, [s], weights=weights, **options) for s in seeds]
    return CODES[check], each


def calibrated(inner):
    """Truth and mean probabilities of inner folds, at the temperature of the other ones."""
    out = []
    for number, (truth, each) in enumerate(inner):
        others = [one for k, one in enumerate(inner) if k != number] or inner
        codes = np.concatenate([np.tile(own, len(rows)) for own, rows in others])
        temperature = temperature_of(np.concatenate([r for _, rows in others for r in rows]), codes)
        out.append((truth, np.mean([tempered(rows, temperature) for rows in each], axis=0)))
    return out


def rank(settings, score):
    """Per setting its mean score, its mean likelihood, which breaks ties, and its place."""
    ranking = []
    for number, inner in enumerate(settings):
        truth, rows = (np.concatenate(each) for each in zip(*inner, strict=True))
        mean = np.mean([score(truth, rows.argmax(axis=1)) for truth, rows in inner])
        ranking.append((round(mean, 9), -log_loss(truth, rows), -number))
    return ranking


def temperature_of_choice(settings, score):
    """That of what an inner fold is predicted by the setting that the other inner folds choose."""
    held_out = []
    for fold in range(INNER):
        others = [[each for n, each in enumerate(inner) if n != fold] for inner in settings]
        held_out.append(settings[-max(rank(others, score))[2]][fold])
    truth, rows = (np.concatenate(each) for each in zip(*held_out, strict=True))
    return temperature_of(rows, truth, np.ones(len(truth)))


@pytest.mark.parametrize("again", [True, False], ids=["trained again", "inner folds"])
@pytest.mark.parametrize("metric", ["accuracy", "balanced_accuracy"])
def test_nested_equals_literal_loops(inner_predictions, metric, again):
    score = {"accuracy": accuracy_score, "balanced_accuracy": balanced_accuracy_score}[metric]
    expected = np.full((REPEATS, len(GRAPHS), 2), np.nan)
    chosen, ties = [], 0
    for settings, (repeat, train_part, test_part) in zip(
        inner_predictions, literal_folds(), strict=True
    ):
        ranking = rank(settings, score)
        best = -max(ranking)[2]
        ties += sum(entry[0] == max(ranking)[0] for entry in ranking) > 1
        chosen.append(best)
        options = LITERAL_GRID[best]
        if again:
            options = {"weights": balanced(CODES[train_part]), **options}
            expected[repeat, test_part] = literal_probabilities(
                train_part, test_part, seeds_of(repeat), **options
            )
        else:
            inner = list(literal_inner_folds(repeat, train_part, INNER))
            rows, _ = literal_model(inner, test_part, balanced, **options)
            expected[repeat, test_part] = tempered(rows, temperature_of_choice(settings, score))
    # The data must be such that a wrong choice shows: several are made, one of them more than
    # once, and some by likelihood alone.
    assert 1 < len(set(chosen)) < len(chosen)
    assert ties
    model = estimator(class_weight="balanced", inner_folds=0 if again else "auto")
    options = {"selection": "nested", "grid": GRID, "metric": metric, "inner_folds": INNER}
    found = validated(model, **options)
    assert found.chosen == [GRID[choice] for choice in chosen]
    assert_same(found, expected, atol=1e-9 if again else 1e-6)


def test_nested_chooses_on_the_validation_part_and_trains_on_the_training_part():
    order = np.random.default_rng(0).permutation(len(GRAPHS))
    train_part, valid, test_part = np.sort(order[:24]), order[24:32], order[32:]
    settings = [
        calibrated(
            [
                (
                    CODES[valid],
                    [literal_probabilities(train_part, valid, [s], **o) for s in seeds_of(0)],
                )
            ]
        )
        for o in LITERAL_GRID
    ]
    best = -max(rank(settings, accuracy_score))[2]
    expected = np.full((1, len(GRAPHS), 2), np.nan)
    expected[0, test_part] = literal_probabilities(
        train_part, test_part, seeds_of(0), **LITERAL_GRID[best]
    )
    found = cross_validate(
        estimator(),
        GRAPHS,
        GRAPHS.targets,
        random_state=SEED,
        splits=[[(train_part, test_part)]],
        validation=[valid],
        selection="nested",
        grid=GRID,
    )
    assert found.chosen == [GRID[best]]
    assert_same(found, expected)


# -- peek --------------------------------------------------------------------------------------


def test_peek_equals_literal_loops():
    epochs = 8
    accuracies = np.zeros((REPEATS * FOLDS, epochs))
    expected = np.full((epochs, REPEATS, len(GRAPHS), 2), np.nan)
    for row, (repeat, train_part, test_part) in enumerate(literal_folds()):
        for epoch in range(epochs):
            rows = literal_probabilities(
                train_part, test_part, seeds_of(repeat, 0, 1), epochs=epochs, until=epoch + 1
            )
            expected[epoch, repeat, test_part] = rows
            accuracies[row, epoch] = (rows.argmax(axis=1) == CODES[test_part]).mean()
    best = int(accuracies.mean(axis=0).round(9).argmax())
    assert best < epochs - 1  # else training to the end would look the same
    found = validated(estimator(epochs=epochs), selection="peek")
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
