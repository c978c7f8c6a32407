"""Forests as arrays: the outputs of scikit-learn's, and what every column adds to them."""

from dataclasses import replace
from importlib.metadata import version

import numpy as np
import pytest
from packaging.version import Version
from scipy import sparse
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

from saen import InputError
from saen.learning.models import forest
from saen.learning.models.forest import Forest, grow_classes, grow_numbers

RNG = np.random.default_rng(0)
COUNTS = RNG.poisson(0.5, size=(80, 12)).astype(float)
X, NEW = sparse.csr_array(COUNTS[:60]), sparse.csr_array(COUNTS[60:])
Y = np.digitize(COUNTS[:60, 0] + COUNTS[:60, 3] + RNG.normal(size=60), [0.5, 2.0])
WEIGHTS = RNG.uniform(0.5, 2.0, size=60)


@pytest.fixture(autouse=True)
def few_trees(monkeypatch):
    monkeypatch.setattr(forest, "N_TREES", 8)


def grown(n_classes: int) -> Forest:
    return grow_classes(X, np.minimum(Y, n_classes - 1), WEIGHTS, n_classes)


SETTINGS = {"n_estimators": 8, "min_samples_leaf": 2, "random_state": 0}


@pytest.mark.skipif(
    Version(version("scikit-learn")) < Version("1.8"),
    reason="its trees of classes broke ties otherwise than those of numbers",
)
def test_outputs_for_classes_are_those_of_scikit_learn():
    classes = RandomForestClassifier(**SETTINGS).fit(COUNTS[:60], Y, WEIGHTS)
    outputs = grown(3).outputs(NEW)
    np.testing.assert_allclose(outputs / 3, classes.predict_proba(COUNTS[60:]), atol=1e-12)
    two = RandomForestClassifier(**SETTINGS).fit(COUNTS[:60], np.minimum(Y, 1), WEIGHTS)
    shares = grown(2).outputs(NEW)[:, 0] / 4 + 0.5
    np.testing.assert_allclose(shares, two.predict_proba(COUNTS[60:])[:, 1], atol=1e-12)


def test_outputs_for_numbers_are_those_of_scikit_learn():
    numbers = RandomForestRegressor(**SETTINGS, max_features=1 / 3)
    expected = numbers.fit(COUNTS[:60], COUNTS[:60].sum(1), WEIGHTS).predict(COUNTS[60:])
    own = grow_numbers(X, COUNTS[:60].sum(1), WEIGHTS).outputs(NEW)
    np.testing.assert_allclose(own[:, 0], expected, atol=1e-12)


@pytest.mark.parametrize("paths", [1 << 20, 1])
def test_columns_and_roots_add_up_to_the_outputs(paths, monkeypatch):
    monkeypatch.setattr(forest, "MAX_PATHS", paths)  # in blocks of one row
    both = Forest.joined([grown(3), Forest.constant(np.ones(1), 3), grown(3).scaled(2.0)])
    weights = RNG.normal(size=7)
    everywhere = (*map(np.ravel, np.indices(NEW.shape)), COUNTS[60:].ravel())
    added = both.entry_outputs(NEW, everywhere, weights).reshape(NEW.shape)
    outputs = both.outputs(NEW)
    np.testing.assert_array_equal(outputs[:, 3], 1.0)
    np.testing.assert_allclose(outputs[:, 4:], 2 * outputs[:, :3])
    roots = both.intercept.copy()
    np.add.at(roots, both.targets[:, None] + np.arange(3), both.value[both.roots])
    np.testing.assert_allclose(added.sum(axis=1) + weights @ roots, outputs @ weights, atol=1e-12)
    # A column that no tree looks at adds nothing.
    unused = np.setdiff1d(np.arange(12), both.column)
    assert (added[:, unused] == 0).all()


def test_forest_reads_the_most_frequent_columns(monkeypatch):
    monkeypatch.setattr(forest, "MAX_COLUMNS", 3)
    frequency = (COUNTS[:60] > 0).sum(axis=0)
    own = grown(2)
    inner = (own.children != np.arange(len(own.children))[:, None]).any(axis=1)
    assert frequency[np.unique(own.column[inner])].min() >= np.sort(frequency)[-3]


def change(array: np.ndarray, place: tuple[int, ...] | int, value: float) -> np.ndarray:
    array = array.copy()
    array[place] = value
    return array


@pytest.mark.parametrize(
    "damage",
    [
        lambda f: {"children": change(f.children, (0, 1), len(f.children))},
        lambda f: {"children": change(f.children, (2, 0), 1)},
        lambda f: {"children": change(f.children, (0, 0), 0)},
        lambda f: {"children": change(f.children, (0, 0), -1)},
        lambda f: {"children": f.children[1:]},
        lambda f: {"children": f.children.astype(float)},
        lambda f: {"column": change(f.column, 0, 12)},
        lambda f: {"column": change(f.column, 0, -1)},
        lambda f: {"threshold": change(f.threshold, 0, np.nan)},
        lambda f: {"value": change(f.value, (0, 0), np.inf)},
        lambda f: {"value": f.value[:-1]},
        lambda f: {"roots": change(f.roots, 0, 1)},
        lambda f: {"roots": change(f.roots, -1, len(f.value))},
        lambda f: {"roots": f.roots[::-1].copy()},
        lambda f: {"targets": change(f.targets, 0, 1)},
        lambda f: {"targets": f.targets[1:]},
        lambda f: {"intercept": f.intercept[:, None]},
    ],
)
def test_trees_that_do_not_fit_together_are_refused(damage):
    good = grown(3)
    good.check(12)
    Forest.constant(np.zeros(3)).check(0)
    with pytest.raises(InputError, match="trees of the forest"):
        replace(good, **damage(good)).check(12)
