from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from saen import SAENClassifier, generate_threads
from saen.learning.cross_validation import cross_validate
from saen.network.ensemble import FIRST, GROUPS, Trainer, cheapest

SIZES = GROUPS["cpu"]


@pytest.mark.parametrize("sizes", GROUPS.values())
def test_every_device_has_groups_of_the_first_size(sizes):
    assert FIRST in sizes
    assert list(sizes) == sorted(sizes)


@given(st.integers(0, len(SIZES) - 1), st.lists(st.floats(1.2, 3.0), min_size=5, max_size=5))
def test_the_cheapest_of_all_is_found_where_costs_rise_to_both_sides(lowest, factors):
    costs = {SIZES[lowest]: 1.0}
    for step, place in enumerate(range(lowest + 1, len(SIZES))):
        costs[SIZES[place]] = costs[SIZES[place - 1]] * factors[step]
    for step, place in enumerate(range(lowest - 1, -1, -1)):
        costs[SIZES[place]] = costs[SIZES[place + 1]] * factors[-1 - step]
    assert cheapest(SIZES, costs.__getitem__) == (SIZES[lowest], 1.0)


def test_smaller_groups_are_not_timed_where_larger_ones_pay():
    timed = []

    def seconds(size):
        timed.append(size)
        return 1.0 / size

    assert cheapest(SIZES, seconds) == (300, 1 / 300)
    assert timed == [10, 30, 100, 300]


def test_a_group_is_never_slower_than_one_network_after_another():
    costs = {1: 1.0, 3: 1.05, 10: 1.1, 30: 1.3, 100: 1.5, 300: 2.0}
    assert cheapest(SIZES, costs.__getitem__) == (1, 1.0)


@pytest.fixture
def timed(monkeypatch):
    """The sizes of the groups that were timed."""
    sizes = []
    whole = Trainer._group

    def group(self, name, *arguments, **options):
        if name == "timing":
            sizes.append(len(arguments[3]))
        return whole(self, name, *arguments, **options)

    monkeypatch.setattr(Trainer, "_group", group)
    return sizes


def test_few_networks_train_at_once_without_timing(timed):
    threads = generate_threads(30, seed=1)
    quick = SAENClassifier(epochs=1, n_models=1, device="cpu")
    found = cross_validate(quick, threads, threads.targets, repeats=1, folds=FIRST)
    assert timed == []
    assert found.loss.shape == (1, FIRST)


def test_many_networks_train_in_groups_of_the_size_that_was_timed_best(timed, tmp_path):
    threads = generate_threads(30, seed=1)
    quick = SAENClassifier(epochs=3, n_models=4, device="cpu")
    found = cross_validate(quick, threads, threads.targets, repeats=1, folds=4, folder=tmp_path)
    assert timed[:2] == [10, 16]
    note = json.loads((tmp_path / "fixed-group.json").read_text())
    assert note["models_at_once"] in timed
    assert note["seconds_per_network_epoch"] > 0
    assert np.isfinite(found.loss).all()
    assert found.loss.shape == (3, 16)
