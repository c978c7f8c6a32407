"""What is decided where nothing is given."""

import numpy as np
import pytest

from saen.learning import auto
from saen.learning.problem import Problem
from saen.learning.splits import Fold, class_sizes


def usual(values, **options):
    return auto.inner_folds(values, class_sizes(values), **options)


@pytest.mark.parametrize(
    ("n", "tests"), [(9, []), (400, [80] * 5), (600, [200] * 3), (9000, [900])]
)
def test_inner_folds_go_by_the_number_of_training_examples(n, tests):
    problem = Problem.of(np.arange(n + 1) % 2, regression=False)
    inner = Fold(np.arange(n), np.array([n])).split_inside(problem, "auto", seed=0).inner
    assert [len(check) for _, check in inner] == tests
    for train, check in inner:
        assert np.array_equal(np.sort(np.concatenate([train, check])), np.arange(n))


def test_a_single_inner_split_holds_out_no_more_than_enough():
    n = 20 * auto.MAX_INNER_TEST
    problem = Problem.of(np.arange(n) % 2, regression=False)
    [(train, check)] = Fold(np.arange(n), np.arange(0)).split_inside(problem, "auto", 0).inner
    assert (len(train), len(check)) == (n - auto.MAX_INNER_TEST, auto.MAX_INNER_TEST)


def test_one_inner_split_of_many_needs_frequent_classes_and_no_groups():
    many = np.arange(9000) % 3
    rare = np.where(np.arange(9000) < 50, 3, many)
    assert usual(many) == 1
    assert usual(many / 2) == 1  # numbers
    assert usual(rare) == 3
    assert usual(many, grouped=True) == 3
    assert usual(np.stack([many % 2, many % 2], axis=1)) == 3
    assert usual(np.arange(40) // 4) == 3  # no class has five members


def test_inner_folds_are_those_of_the_examples_wherever_they_are():
    """A fold of a cross-validation is split inside as `fit` splits its training examples."""
    y = np.arange(80) % 2
    problem, part = (Problem.of(each, regression=False) for each in (y, y[20:]))
    here = Fold(np.arange(20, 80), np.arange(20), (0, 3)).split_inside(problem, 4, seed=7).inner
    there = Fold(np.arange(60), np.arange(0)).split_inside(part, 4, seed=7).inner
    for one, other in zip(here, there, strict=True):
        np.testing.assert_array_equal(one[0], other[0] + 20)
        np.testing.assert_array_equal(one[1], other[1] + 20)
    again = Fold(np.arange(20, 80), np.arange(20), (1, 3)).split_inside(problem, 4, seed=7).inner
    assert not np.array_equal(again[0][1], here[0][1])  # another repeat
