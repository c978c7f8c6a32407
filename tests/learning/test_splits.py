"""Splits: folds, hold-outs, groups and published splits, and what is refused."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace

import numpy as np
import pytest

import saen
from saen import InputError
from saen._util.json_files import write_json
from saen.errors import FileError
from saen.learning import auto
from saen.learning.evaluation import cross_validate
from saen.learning.problem import Problem
from saen.learning.splits import (
    Fold,
    LargeGroupWarning,
    SmallClassWarning,
    Splits,
    check_splits,
    check_validation,
    fold_splitter,
    hold_out_splitter,
    inner_folds,
    make_splits,
    splits_from_json,
    splits_to_json,
)

THREADS = saen.generate_threads(24, average_nodes=8, seed=2)
QUICK = {"epochs": 1, "n_models": 1, "radii": (0, 1)}


@pytest.mark.parametrize(
    ("splits", "message"),
    [
        ([], "no repeats"),
        ([[]], "no folds"),
        ([[(range(12), range(12, 23)), (range(12, 23), range(12))]], "exactly once"),
        ([[(range(13), range(12, 24)), (range(12, 24), range(12))]], "trains on examples that it"),
        ([[(range(20), range(19, 24))]], "trains on examples that it tests"),
        ([[(range(20), [20, 20])]], "one occurs twice"),
        ([[(range(20), [20, 24])]], "from 0 to 23"),
        ([[(range(20), [20, -1])]], "from 0 to 23"),
        ([[([], range(24))]], "needs training indices"),
        ([[(range(20), [0.5])]], "list of integers"),
    ],
)
def test_splits_from_python_are_checked(splits, message):
    model = saen.SAENClassifier(**QUICK)
    with pytest.raises(InputError, match=message):
        cross_validate(model, THREADS, THREADS.targets, splits=splits)


def test_a_hold_out_tests_only_its_part():
    train, test = np.arange(20), np.array([22, 20])
    model = saen.SAENClassifier(**QUICK)
    found = cross_validate(model, THREADS, THREADS.targets, splits=[[(train, test)]])
    assert np.flatnonzero(found.fold_of[0] == 0).tolist() == [20, 22]
    assert np.isnan(found.outputs[0, :20]).all()
    assert np.isnan(found.outputs[0, [21, 23]]).all()
    right = found.outputs[0, test].argmax(axis=1) == found.targets[test]
    assert found.to_json()["accuracy"] == {"mean": right.mean(), "per_repeat": [right.mean()]}


def test_repeated_hold_outs_are_stratified_and_differ():
    y = np.array([0] * 30 + [1] * 10)
    splits = make_splits(y, repeats=3, folds=10, seed=4, test_size=0.2)
    assert [len(folds) for folds in splits] == [1, 1, 1]
    tests = [set(folds[0][1].tolist()) for folds in splits]
    assert [np.bincount(y[list(test)]).tolist() for test in tests] == [[6, 2]] * 3
    assert tests[0] != tests[1] != tests[2]
    again = make_splits(y, repeats=1, folds=10, seed=5, test_size=0.2)
    assert set(again[0][0][1].tolist()) == tests[1]


@pytest.mark.parametrize("targets", [np.arange(40) % 2, np.linspace(0, 1, 40)])
@pytest.mark.parametrize("options", [{}, {"test_size": 0.3}])
def test_groups_are_never_split(targets, options):
    groups = np.array([f"lab {number % 9}" for number in range(40)])
    splits = make_splits(targets, 2, 3, seed=0, groups=groups, **options)
    for folds in splits:
        for train, test in folds:
            assert not set(groups[train]) & set(groups[test])
    assert not np.array_equal(splits[0][0][1], splits[1][0][1])
    for train, test in inner_folds(targets, 3, state=0, groups=groups):
        assert not set(groups[train]) & set(groups[test])


def test_nested_does_not_split_groups_inside_the_training_part(monkeypatch):
    from saen.learning import splits

    groups, seen = np.arange(24) // 3, []

    def spy(targets, folds, state, groups=None):
        result = inner_folds(targets, folds, state, groups)
        seen.extend((groups[train], groups[test]) for train, test in result)
        return result

    monkeypatch.setattr(splits, "inner_folds", spy)
    cross_validate(
        saen.SAENClassifier(**QUICK),
        THREADS,
        THREADS.targets,
        n_repeats=1,
        n_folds=2,
        groups=groups,
        selection="nested",
        inner_folds=3,
        grid=[{"epochs": 0}, {"epochs": 1}],
    )
    assert len(seen) == 2 * 3
    assert not any(set(train) & set(test) for train, test in seen)


@pytest.mark.parametrize(
    ("targets", "options", "message"),
    [
        ([0, 1] * 4, {"folds": 1}, "folds must be an integer ≥ 2"),
        ([0, 1] * 4, {"folds": 9}, "use at most 8 folds"),
        ([*range(8)], {"folds": 2}, r"every class has 1 member \(8 examples, as many classes\)"),
        ([0, 1, 2, 3] * 2, {"folds": 3}, "no class has 3 members, the largest has 2"),
        ([0, 1] * 4, {"repeats": 0}, "repeats must be"),
        ([0, 1] * 4, {"test_size": 0.0}, "between 0 and 1"),
        ([0, 1] * 4, {"test_size": 1.0}, "between 0 and 1"),
        ([0, 0, 0, 1], {"test_size": 0.5}, "cannot split 4 examples"),
        ([0, 1] * 4, {"groups": [1, 2]}, "one per example"),
        ([0, 1] * 4, {"groups": [1, 2] * 4, "folds": 3}, "use at most 2 folds"),
    ],
)
def test_splits_that_cannot_be_made_are_refused(targets, options, message):
    options = {"repeats": 1, "folds": 2, "seed": 0, **options}
    with pytest.raises(InputError, match=message):
        make_splits(targets, **options)


def test_a_class_with_one_member_is_a_warning_and_is_evaluated():
    y = ["rare"] + ["a", "b"] * 11 + ["a"]
    model = saen.SAENClassifier(class_weight="balanced", **QUICK)
    with pytest.warns(SmallClassWarning, match=r"class 'rare' has fewer members \(1\) than"):
        found = cross_validate(model, THREADS, y, n_repeats=1, n_folds=3)
    assert found.outputs.shape == (1, 24, 3)
    assert np.isfinite(found.outputs).all()
    report = found.to_json()
    assert all(report[name]["mean"] is not None for name in found.metrics)


def test_a_published_split_is_read_and_kept(tmp_path):
    write_json(
        tmp_path / "split.json",
        {"train": list(range(14)), "valid": [14, 15, 16, 17], "test": list(range(18, 24))},
    )
    splits = splits_from_json(tmp_path / "split.json", 24)
    [[(train, test)]], [valid] = splits.repeats, splits.validation
    assert [train.tolist(), valid.tolist(), test.tolist()] == [
        list(range(14)), list(range(14, 18)), list(range(18, 24)),
    ]  # fmt: skip
    write_json(tmp_path / "again.json", splits_to_json(splits))
    again = splits_from_json(tmp_path / "again.json", 24)
    np.testing.assert_array_equal(again.validation[0], valid)
    np.testing.assert_array_equal(again.repeats[0][0][0], train)


def test_validation_parts_need_splits_of_one_fold():
    splits = make_splits(THREADS.targets, 1, 2, seed=0)
    with pytest.raises(InputError, match="splits of one fold"):
        cross_validate(
            saen.SAENClassifier(**QUICK), THREADS, THREADS.targets, splits=splits, validation=[[0]]
        )


@pytest.mark.parametrize("options", [{"folds": 4}, {"folds": 2, "test_size": 0.25}])
def test_groups_larger_than_a_test_part_are_a_warning(options):
    groups = ["acyclic"] * 6 + [f"ring {number % 7}" for number in range(14)]
    message = r"the largest group has 6 of 20 examples, more than a test fold should have \(5\)"
    with pytest.warns(LargeGroupWarning, match=message):
        make_splits([0, 1] * 10, 1, seed=0, groups=groups, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        make_splits([0, 1] * 10, 1, seed=0, groups=[*groups[1:], "ring 0"], **options)


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"train": [0], "val": [1], "test": [2]}, r"unknown key 'val' \(did you mean valid\?\)"),
        ({"train": [0], "validation": [1], "test": [2]}, "'validation' .did you mean valid"),
        ({"training": [0], "test": [2]}, "'training' .did you mean train.*: expected train, valid"),
        ({"repeats": [[{"train": [0], "test": [1], "dev": [2]}]]}, "unknown key 'dev'"),
        ({"repeats": [[{"train": [0], "test": [1]}]], "valid": [2]}, "expected repeats"),
    ],
)
def test_splits_with_an_unknown_key_are_refused(tmp_path, document, message):
    write_json(tmp_path / "split.json", document)
    with pytest.raises(FileError, match=message):
        splits_from_json(tmp_path / "split.json", 3)


def test_splits_beyond_the_records_of_the_file_are_refused(tmp_path):
    write_json(tmp_path / "split.json", {"train": [0, 1], "test": [5]})
    assert splits_from_json(tmp_path / "split.json", 4, [2, 3]).repeats[0][0][1].tolist() == [3]
    with pytest.raises(FileError, match="needs test indices from 0 to 4"):
        splits_from_json(tmp_path / "split.json", 4, [2])


def test_splits_without_validation_have_none():
    assert "valid" not in json.dumps(splits_to_json(Splits(make_splits([0, 1] * 4, 1, 2, seed=0))))


def test_a_hold_out_of_real_numbers_is_drawn_at_random():
    [[(train, test)]] = make_splits(np.linspace(0, 1, 40), 1, 2, seed=0, test_size=0.25)
    assert len(test) == 10
    assert sorted([*train, *test]) == list(range(40))


def test_folds_are_stratified_and_decided_by_the_seed():
    y = np.array([0] * 30 + [1] * 10)
    repeats = [*make_splits(y, 2, 5, seed=3), *make_splits(y, 2, 5, seed=4)]
    tests = [[test.tolist() for _, test in folds] for folds in repeats]
    assert tests[1] == tests[2]
    assert tests[0] != tests[1] != tests[3]
    assert all(np.bincount(y[test]).tolist() == [6, 2] for folds in tests for test in folds)


# -- limits, which mutants moved unnoticed -------------------------------------------------------


def test_folds_are_allowed_up_to_the_number_of_examples_members_and_groups():
    assert len(make_splits(np.linspace(0, 1, 4), 1, 4, seed=0)[0]) == 4
    assert len(make_splits([0, 0, 0, 1, 1, 1], 1, 3, seed=0)[0]) == 3
    assert len(make_splits([0, 1] * 6, 1, 3, seed=0, groups=[0, 1, 2] * 4)[0]) == 3


@pytest.mark.parametrize("part", [[[0, 1]], [0.0, 1.0], [True, False]])
def test_check_splits_refuses_what_is_not_a_list_of_integers(part):
    with pytest.raises(InputError, match="repeat 0, fold 0 needs training indices: a list of int"):
        check_splits([[(np.array(part), [2])]], 3)
    with pytest.raises(InputError, match="repeat 0, fold 0 needs test indices: a list of integers"):
        check_splits([[([2], np.array(part))]], 3)
    with pytest.raises(InputError, match="repeat 0 needs validation indices: a list of integers"):
        check_validation([np.array(part)], [[([2], [3])]], 4)


def test_check_splits_takes_parts_of_one_example():
    check_splits([[([0], [1]), ([1], [0])]], 2)
    check_validation([np.array([2])], [[([0], [1])]], 3)


@pytest.mark.parametrize(("part", "name"), [(0, "training"), (1, "test")])
def test_check_validation_names_the_part_that_overlaps(part, name):
    with pytest.raises(InputError, match=f"repeat 0 validates on {name} examples"):
        check_validation([np.array([part])], [[([0], [1])]], 3)


def test_check_splits_needs_the_same_number_of_folds_everywhere():
    one, two = [([0, 1], [2])], [([0, 1], [2]), ([2], [0, 1])]
    with pytest.raises(InputError, match="the same number of folds"):
        check_splits([one, two], 3)


def test_splits_from_json_refuse_fractions(tmp_path):
    file = tmp_path / "splits.json"
    file.write_text('{"train": [0, 1.9], "test": [2]}')
    with pytest.raises(FileError, match="needs training indices: a list of integers"):
        splits_from_json(file, 3)


def test_inner_split_holds_out_a_bounded_number_of_examples(monkeypatch):
    monkeypatch.setattr(auto, "MAX_INNER_TEST", 12)
    y = np.repeat([0, 1], 300)
    [(train, test)] = inner_folds(y, 1, state=0)
    assert (len(train), np.bincount(y[test]).tolist()) == (588, [6, 6])
    [(_, test)] = inner_folds(y[::6], 1, state=0)
    assert len(test) == 10


def test_inner_folds_hold_every_class_in_equal_shares_where_they_can():
    y = np.array([0] * 9 + [1] * 3)
    folds = inner_folds(y, 3, state=5)
    assert [np.bincount(y[test]).tolist() for _, test in folds] == [[3, 1]] * 3
    y3 = np.array([0, 0, 0, 1, 1, 1])
    assert [y3[test].tolist() for _, test in inner_folds(y3, 3, state=1)] == [[0, 1]] * 3
    again, other = inner_folds(y, 3, state=5), inner_folds(y, 3, state=6)
    tests = [[test.tolist() for _, test in each] for each in (folds, again, other)]
    assert tests[0] == tests[1] != tests[2]


@pytest.mark.parametrize("y", [np.arange(4), np.array([0.5] * 5), np.arange(2)])
def test_inner_folds_are_never_refused(y):
    folds = inner_folds(y, 3, state=0)
    assert len(folds) == min(3, len(y))
    assert sorted(np.concatenate([test for _, test in folds])) == list(range(len(y)))


def test_inner_folds_keep_groups_together_where_there_are_two():
    y, groups = np.array([0, 1] * 6), np.repeat([0, 1, 2], 4)
    for train, test in inner_folds(y, 3, state=0, groups=groups):
        assert not set(groups[train]) & set(groups[test])
    assert len(inner_folds(y, 3, state=0, groups=groups % 2)) == 2
    assert len(inner_folds(y, 3, state=0, groups=groups * 0)) == 3


def test_folds_of_groups_are_stratified():
    y, groups = np.repeat([0, 1], 20), np.repeat(np.arange(8), 5)
    [folds] = make_splits(y, 1, 4, seed=0, groups=groups)
    assert [np.bincount(y[test]).tolist() for _, test in folds] == [[5, 5]] * 4


def test_a_single_inner_split_is_stratified_where_every_class_has_two_members():
    y = np.array([0] * 18 + [1] * 2)
    tests = [inner_folds(y, 1, state)[0][1] for state in range(20)]
    assert all(y[test].tolist() == [0, 0] for test in tests)
    assert inner_folds(y, 1, 0)[0][1].tolist() == tests[0].tolist() != tests[1].tolist()
    assert len(inner_folds(np.array([0] * 30 + [1]), 1, 0)[0][1]) == 4


@pytest.mark.parametrize("folds", [1, 2])
def test_inner_folds_keep_two_groups_together(folds):
    y, groups = np.array([0, 1] * 10), np.repeat([0, 1], 10)
    for train, test in inner_folds(y, folds, state=0, groups=groups):
        assert not set(groups[train]) & set(groups[test])


def test_folds_are_split_inside_their_training_part():
    problem = Problem.of(np.repeat([0, 1], 12), regression=False)
    fold = Fold(np.arange(0, 24, 2), np.arange(1, 24, 2), (0, 1)).split_inside(problem, 3, seed=7)
    assert len(fold.inner) == 3
    for fit, check in fold.inner:
        assert sorted([*fit, *check]) == fold.train.tolist()
        assert np.bincount(problem.values[check]).tolist() == [2, 2]
    assert sorted(fold.held_out) == fold.train.tolist()
    assert fold.held_out.tolist() == [row for _, check in fold.inner for row in check]
    assert fold.split_inside(problem, 5, seed=8) is fold  # once decided, it stays
    # The place in a repeat has no part in it: a fold is what `fit` makes of its examples.
    first = replace(fold, name=(0, 0), inner=None).split_inside(problem, 3, seed=7)
    again = replace(fold, name=(1, 1), inner=None).split_inside(problem, 3, seed=7)
    assert first.held_out.tolist() == fold.held_out.tolist() != again.held_out.tolist()


@pytest.mark.parametrize(
    ("number", "n", "expected"), [(3, 9, 0), (0, 20, 0), ("auto", 20, 5), (1, 20, 1)]
)
def test_inner_folds_of_a_fold_are_as_many_as_asked_for(number, n, expected):
    problem = Problem.of(np.arange(n) % 2, regression=False)
    fold = Fold(np.arange(n), np.arange(0)).split_inside(problem, number, seed=0)
    assert len(fold.inner) == expected
    assert (len(fold.held_out) > 0) == (expected > 0)


def test_inner_folds_of_a_fold_keep_groups_together():
    groups = np.arange(40) // 4
    problem = Problem.of(np.arange(40) % 2, regression=False, groups=groups)
    fold = Fold(np.arange(4, 40), np.arange(4)).split_inside(problem, "auto", seed=0)
    for fit, check in fold.inner:
        assert not set(groups[fit]) & set(groups[check])


def test_splitters_need_groups_only_if_asked():
    y = np.repeat([0, 1], 12)
    for splitter in (fold_splitter(3, 0, True), hold_out_splitter(0.25, 0, True)):
        assert all(np.ptp(np.bincount(y[test])) == 0 for _, test in splitter.split(y, y))


@pytest.mark.parametrize("n_groups", [2, 3, 4, 6])
def test_inner_folds_are_no_more_than_groups_and_never_split_one(n_groups):
    groups = np.arange(120) % n_groups
    folds = inner_folds(np.arange(120) // 7 % 2, 5, 0, groups)
    assert len(folds) == min(n_groups, 5)
    for fit, check in folds:
        assert not {*groups[fit]} & {*groups[check]}


def test_inner_folds_of_groups_with_unequal_classes_are_not_empty():
    targets = np.array([0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0, 0])
    groups = np.array([4, 4, 0, 3, 2, 2, 0, 0, 4, 1, 0, 0])
    folds = inner_folds(targets, 5, 0, groups)
    assert sorted(np.concatenate([check for _, check in folds])) == list(range(12))
    assert all(len(check) for _, check in folds)
