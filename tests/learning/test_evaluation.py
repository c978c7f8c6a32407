"""Cross-validation: protocols, splits, run directories."""

import json
from time import perf_counter

import numpy as np
import pytest
from sklearn.base import clone, is_regressor
from sklearn.model_selection import PredefinedSplit, cross_val_predict

import saen
from saen import InputError, cross_validate
from saen._util.json_files import write_json
from saen.cluster.executors import SerialExecutor
from saen.data.nested import NestedData
from saen.errors import FileError
from saen.io.libraries.networkx import to_networkx
from saen.jobs.store import open_run
from saen.learning.decomposing import Decompositions
from saen.learning.presets import load_preset
from saen.learning.problem import Problem
from saen.learning.splits import Fold, make_splits, splits_from_json
from saen.paper import tables


@pytest.fixture(scope="module")
def threads():
    return saen.generate_threads(60, average_nodes=30, seed=3)


@pytest.fixture
def quick():
    return saen.SAENClassifier(epochs=4, n_models=2, radii=(0, 1), batch_size=20, inner_folds=0)


def test_every_structure_is_tested_once_per_repeat(threads, quick):
    found = cross_validate(quick, threads, threads.targets, n_repeats=2, n_folds=3)
    assert found.fold_of.shape == (2, 60)
    assert all(np.bincount(fold_of).tolist() == [20, 20, 20] for fold_of in found.fold_of)
    np.testing.assert_allclose(found.probabilities.sum(axis=2), 1)


def test_results_do_not_depend_on_how_many_networks_train_at_once(threads):
    exact = saen.SAENClassifier(
        radii=(0, 1), epochs=3, n_models=2, inner_folds=2, dtype="float64", batch_size=20
    )
    found = [
        cross_validate(
            exact, threads, threads.targets, n_repeats=2, n_folds=3, parallel_models=size
        )
        for size in (1, 5, 12)
    ]
    for other in found[1:]:
        np.testing.assert_allclose(other.probabilities, found[0].probabilities, atol=1e-9)


@pytest.mark.parametrize(("selection", "stages"), [("fixed", 1), ("nested", 2)])
def test_all_tasks_begin_before_any_is_waited_for(threads, selection, stages):
    class Watched(SerialExecutor):
        def __init__(self):
            super().__init__()
            self.submitted, self.first = [], 0

        def submit(self, name, *task):
            self.submitted.append(name)
            super().submit(name, *task)

        def completed(self):
            self.first = self.first or len(self.submitted)
            return super().completed()

    model = saen.SAENRegressor(epochs=1, n_models=1, radii=(0, 1), inner_folds=2)
    options = {"n_repeats": 1, "n_folds": 2, "parallel_models": 1, "selection": selection}
    if selection == "nested":
        options |= {"grid": [{"epochs": 1}, {"epochs": 2}], "inner_folds": 2}
    sizes, executor = threads.sizes.astype(float), Watched()
    here = cross_validate(model, threads, sizes, **options)
    found = cross_validate(model, threads, sizes, **options, executor=executor)
    assert executor.first == len(executor.submitted) == 2 * 2 * stages
    assert len({name.rsplit("-", 1)[0] for name in executor.submitted}) == stages
    assert np.isfinite(here.radius).all()
    for name in ("outputs", "radius", "loss", "validation_loss"):
        np.testing.assert_array_equal(getattr(found, name), getattr(here, name))


def test_the_seconds_of_part_counts_are_those_of_training(threads):
    start = perf_counter()
    made = saen.cross_validate(
        saen.PartCountsClassifier(), threads, threads.targets, n_repeats=1, n_folds=3
    )
    whole = perf_counter() - start
    assert made.seconds["compress"] > 0
    assert 0.2 * whole < made.seconds["train"]
    assert made.seconds["compress"] + made.seconds["train"] <= whole


def test_splits_are_those_of_the_class_names(threads):
    model = saen.SAENClassifier(epochs=0, n_models=1, radii=(0, 1))
    y = np.where(threads.targets == "questions", 10, 2)  # as names, in the other order
    found = cross_validate(model, threads, y, n_repeats=2, random_state=5, test_size=0.25)
    expected = make_splits(y.astype(str), 2, 10, 5, test_size=0.25)
    for one, other in zip(found.splits, expected, strict=True):
        np.testing.assert_array_equal(one[0][1], other[0][1])
    assert found.radius is None
    default = cross_validate(model, threads, y)
    assert [len(folds) for folds in default.splits] == [10] * 10


def test_nested_data_are_taken_as_fit_takes_them():
    nested = NestedData([{"word": ["a"]}, {"word": ["b", "c"]}] * 10)
    model = saen.SAENClassifier("nested", epochs=0, n_models=1)
    bags = cross_validate(model, nested, [0, 1] * 10, n_repeats=1, n_folds=2)
    assert bags.outputs.shape == (1, 20, 2)


@pytest.mark.parametrize(
    ("selection", "total"),
    [("fixed", 2 * 5 * 2), ("nested", 2 * 2 * 2 * 2), ("peek", None)],  # folds, inner ones, epochs
)
def test_progress_counts_to_a_total_that_is_reached(threads, selection, total):
    once, told = saen.SAENClassifier(epochs=2, n_models=1, radii=(0, 1)), []
    grid = [{"learning_rate": rate} for rate in (0.01, 0.1)] if selection == "nested" else [{}]
    found = cross_validate(
        once, threads, threads.targets, n_repeats=1, n_folds=2, inner_folds=2, selection=selection,
        grid=grid, progress=lambda *counts: told.append(counts),
    )  # fmt: skip
    if selection == "peek":  # which trains again, up to the best epoch
        total = 2 * (2 + found.chosen[0]["epoch"])
    assert told[-1] == (total, total)
    assert sorted(told) == told
    assert len(found.tried) == (2 if selection == "nested" else 0)


def test_inner_folds_do_not_split_groups_inside_the_training_part(threads, monkeypatch):
    groups, seen, split_inside = np.arange(60) // 3, [], Fold.split_inside

    def spy(*arguments):
        fold = split_inside(*arguments)
        seen.extend((groups[train], groups[check]) for train, check in fold.inner)
        return fold

    monkeypatch.setattr(Fold, "split_inside", spy)
    model = saen.SAENClassifier(epochs=1, n_models=1, radii=(0, 1))
    found = cross_validate(model, threads, threads.targets, n_repeats=1, n_folds=2, groups=groups)
    seen += [(groups[train], groups[test]) for train, test in found.splits[0]]
    assert len(seen) == 2 * 5 + 2
    assert not any(set(train) & set(test) for train, test in seen)


def test_evaluations_share_what_was_prepared(threads, quick, monkeypatch):
    prepared = Decompositions(threads)
    arguments = {"n_repeats": 1, "n_folds": 3}
    found = cross_validate(quick, prepared, threads.targets, **arguments)
    expected = cross_validate(quick, threads, threads.targets, **arguments)
    np.testing.assert_array_equal(found.outputs, expected.outputs)
    # What is there is not made again.
    monkeypatch.setattr("saen.learning.decomposing.compress_graphs", None)
    again = cross_validate(quick, prepared, threads.targets, **arguments)
    np.testing.assert_array_equal(again.outputs, expected.outputs)


def test_accuracy_of_a_repeat_is_the_mean_over_its_folds(threads, quick):
    found = cross_validate(quick, threads, threads.targets, n_repeats=2, n_folds=3)
    right = found.predictions == found.targets
    by_hand = [
        np.mean([right[r][found.fold_of[r] == f].mean() for f in range(3)]) for r in range(2)
    ]
    report = found.to_json()["accuracy"]
    assert report["per_repeat"] == pytest.approx(by_hand)
    assert report["mean"] == pytest.approx(np.mean(by_hand))
    low, high = report["interval"]
    assert low <= report["mean"] <= high


def test_duplicates_and_ceilings_against_a_literal_count():
    path, star = [(0, 1), (1, 2), (2, 3)], [(0, 1), (0, 2), (0, 3)]
    graphs = saen.Graphs.from_edge_lists([path, star] * 6 + [path] * 4)
    y = np.array([0, 1] * 6 + [1] * 4)
    quick = saen.SAENClassifier(epochs=1, n_models=1)
    found = cross_validate(quick, graphs, y, n_repeats=2, n_folds=4)
    kinds = np.array([0, 1] * 6 + [0] * 4)
    for fold_of, duplicates in zip(found.fold_of, found.duplicates(), strict=True):
        for i in range(16):
            others = (kinds == kinds[i]) & (fold_of != fold_of[i])
            assert duplicates[i] == others.any()
    assert found.to_json()["ceiling"] == pytest.approx((6 + 6) / 16)
    folds = []
    for fold_of in found.fold_of:
        for fold in range(4):
            test = fold_of == fold
            best = sum(max(np.sum(test & (kinds == k) & (y == c)) for c in (0, 1)) for k in (0, 1))
            folds.append(best / test.sum())
    assert found.fold_ceiling() == pytest.approx(np.mean(folds))


@pytest.mark.parametrize(
    "estimator",
    [
        saen.SAENClassifier(epochs=5, n_models=2),
        saen.PartCountsClassifier(),
        saen.SAENRegressor(epochs=5),
        saen.PartCountsRegressor(),
    ],
    ids=lambda each: type(each).__name__,
)
def test_it_is_scikit_learn_s_cross_validation_on_the_same_folds(estimator):
    threads = saen.generate_threads(48, average_nodes=15, seed=5)
    y = threads.sizes.astype(float) if is_regressor(estimator) else threads.targets
    found = cross_validate(estimator, threads, y, n_repeats=1, n_folds=3)
    folds = PredefinedSplit(found.fold_of[0])
    method = "predict" if is_regressor(estimator) else "predict_proba"
    expected = cross_val_predict(estimator, threads, y, cv=folds, method=method)
    np.testing.assert_allclose(found.outputs[0], expected, rtol=1e-4, atol=1e-5)


def test_nested_chooses_settings_without_the_test_fold(threads):
    base = saen.SAENClassifier(n_models=1, radii=(0, 1), batch_size=20, epochs=2)
    grid = [{"epochs": 0}, {"epochs": 12}]
    splits = make_splits(threads.targets, 1, 3, seed=0)
    options = {"n_repeats": 1, "n_folds": 3, "selection": "nested", "grid": grid}
    found = cross_validate(base, threads, threads.targets, **options)
    assert all(choice in grid for choice in found.chosen)
    assert {"epochs": 12} in found.chosen  # untrained networks lose on any inner split
    trained = found.chosen.count({"epochs": 12})
    assert found.curves["inner validation"].shape == (12, 5 * trained)  # inner folds
    # Other targets in a test fold must not change what is chosen for it or what it predicts.
    test = splits[0][0][1]
    changed = threads.targets.copy()
    flipped = {"discussion": "questions", "questions": "discussion"}
    changed[test] = [flipped[label] for label in changed[test]]
    again = cross_validate(base, threads, changed, splits=splits, selection="nested", grid=grid)
    assert again.chosen[0] == found.chosen[0]
    # To rounding: another number of networks may have trained beside it.
    np.testing.assert_allclose(
        again.probabilities[0, test], found.probabilities[0, test], atol=1e-5
    )


def test_nested_reports_the_levels_of_the_first_settings_and_duplicates_for_all(threads, quick):
    quick.set_params(epochs=1, n_models=1)
    grid = [{"radii": (0,)}, {"radii": (0, 2)}]
    options = {"n_repeats": 1, "n_folds": 2}
    first, second = (
        cross_validate(clone(quick).set_params(**each), threads, threads.targets, **options)
        for each in grid
    )
    nested = cross_validate(
        quick, threads, threads.targets, selection="nested", grid=grid, inner_folds=2, **options
    )
    assert nested.levels == first.levels != second.levels
    both = np.unique([first.rows, second.rows], axis=1, return_inverse=True)[1].reshape(-1)
    np.testing.assert_array_equal(nested.rows, both)
    assert len({*both}) > len({*first.rows})


def test_nested_settings_without_inner_folds_are_trained_again_on_all_training_examples(threads):
    base = saen.SAENClassifier(n_models=2, radii=(0, 1), epochs=3, inner_folds=0)
    grid = [{"epochs": 0}, {"epochs": 3}]
    options = {"n_repeats": 1, "n_folds": 2}
    nested = cross_validate(
        base, threads, threads.targets, selection="nested", grid=grid, inner_folds=2, **options
    )
    fixed = cross_validate(base, threads, threads.targets, **options)
    assert nested.chosen == [{"epochs": 3}] * 2
    np.testing.assert_allclose(nested.outputs, fixed.outputs, atol=1e-5)


def test_candidates_of_a_blend_are_those_for_the_data(threads):
    model, options = saen.Classifier(budget="quick"), {"n_repeats": 1, "n_folds": 2}
    found, expected = (
        cross_validate(model, data, threads.targets, **options)
        for data in (to_networkx(threads), threads)
    )
    assert [each["candidate"] for each in found.tried] == [
        "part counts",
        "part counts (hubs)",
        "part counts (sizes)",
    ]
    np.testing.assert_array_equal(found.outputs, expected.outputs)


def test_peeking_reports_the_epoch_and_never_does_worse_than_the_last_epoch(threads, quick):
    options = {"n_repeats": 2, "n_folds": 3}
    single = quick.set_params(n_models=1, epochs=8)
    peeked = cross_validate(single, threads, threads.targets, selection="peek", **options)
    fixed = cross_validate(single, threads, threads.targets, **options)
    assert 1 <= peeked.chosen[0]["epoch"] <= 8
    assert peeked.accuracies().mean() >= fixed.accuracies().mean() - 1e-9


def test_a_run_directory_keeps_settings_splits_and_results(threads, quick, tmp_path):
    with open_run(tmp_path / "run", {"seed": 0}) as folder:
        options = {"n_repeats": 1, "n_folds": 3, "run_dir": folder}
        first = cross_validate(quick, threads, threads.targets, **options)
        written = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
        second = cross_validate(quick, threads, threads.targets, **options)
        results = [name for name in written if name.startswith("networks")]
        assert results
        for name in results:
            assert (folder / name).stat().st_mtime_ns == written[name]
    np.testing.assert_array_equal(first.probabilities, second.probabilities)
    assert splits_from_json(tmp_path / "run" / "splits.json", 60)


def test_a_run_directory_keeps_the_validation_part_under_a_checksum(threads, tmp_path):
    model = saen.SAENClassifier(epochs=0, n_models=1, radii=(0, 1))
    part = [np.arange(10, 20)]
    cross_validate(
        model, threads, threads.targets, run_dir=tmp_path, selection="nested",
        splits=[[(np.arange(20, 60), np.arange(10))]], validation=part,
        grid=[{"negative_slope": 0.1}, {"negative_slope": 0.2}],
    )  # fmt: skip
    kept = splits_from_json(tmp_path / "splits.json", 60)
    np.testing.assert_array_equal(kept.validation, part)
    assert "checksum" in json.loads((tmp_path / "splits.json").read_text())


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ([], "expected"),
        ([[0, 1], [2]], 'expected {"repeats"'),
        ({"repeats": []}, "there are no repeats"),
        ({"repeats": [[{"train": [0, 0], "test": [1]}]]}, "one occurs twice"),
        ({"train": [0, 1], "valid": [1], "test": [2]}, "validates on training examples"),
        (
            {"repeats": [[{"train": "x", "test": [2]}]]},
            "needs training indices: a list of integers",
        ),
    ],
)
def test_splits_that_make_no_sense_are_refused(tmp_path, document, message):
    write_json(tmp_path / "splits.json", document)
    with pytest.raises(FileError, match=message):
        splits_from_json(tmp_path / "splits.json", 4)


def test_the_paper_s_preset_has_the_layers_and_radii_of_its_table():
    preset = load_preset("paper")
    for dataset, published in tables()["parameters"].items():
        assert preset.datasets[dataset]["layers"] == published["layers"]
        assert preset.datasets[dataset]["radii"] == published["radii"]


def test_class_weights_by_label_work_as_in_fit(threads, quick):
    quick.set_params(class_weight={"discussion": 1.0, "questions": 1000.0}, epochs=8)
    found = cross_validate(quick, threads, threads.targets, n_repeats=1, n_folds=3)
    assert (found.classes[found.predictions] == "questions").mean() > 0.9


@pytest.mark.parametrize(
    ("parameters", "options", "message"),
    [
        ({}, {"random_state": -1}, "random_state must be from 0"),
        ({}, {"random_state": 2**31}, "random_state must be from 0 to 2147483647"),
        ({}, {"random_state": 2**31 - 1, "n_repeats": 0}, "repeats must be an integer ≥ 1"),
        ({}, {"parallel_models": 0}, "parallel_models must be an integer ≥ 1"),
        ({}, {"inner_folds": 1}, "inner_folds must be auto or an integer ≥ 2"),
        ({}, {"selection": "nested"}, "at least two settings"),
        (
            {},
            {"selection": "nested", "grid": [{"epochs": 2}, {"epochs": -1}]},
            "SAENClassifier: epochs must be",
        ),
        ({}, {"selection": "sometimes"}, "fixed, nested, peek"),
        ({"epochs": 0}, {"selection": "peek"}, "no epoch to choose"),
        ({"radii": 1}, {}, "SAENClassifier: radii must be"),
        ({"epochs": "x"}, {}, "SAENClassifier: epochs must be"),
    ],
)
def test_a_protocol_that_makes_no_sense_is_refused(threads, quick, parameters, options, message):
    with pytest.raises(InputError, match=message):
        cross_validate(quick.set_params(**parameters), threads, threads.targets, **options)


def test_peeking_at_numbers_is_refused(threads):
    with pytest.raises(InputError, match="peek looks at accuracies"):
        cross_validate(saen.SAENRegressor(), threads, threads.sizes, selection="peek")


def test_a_preset_of_the_user_s_own_is_used(tmp_path):
    path = tmp_path / "mine.toml"
    settings = "[defaults]\nepochs = 3\n[datasets.threads]\nepochs = 5\n"
    path.write_text(f"{settings}[grid]\nnegative_slope=[0.1]\n")
    preset = load_preset(str(path))
    assert preset.settings("threads") == {"epochs": 5}
    assert preset.settings("other") == {"epochs": 3}
    assert preset.choices() == [{"negative_slope": 0.1}]


def test_an_unknown_preset_suggests_a_near_one():
    with pytest.raises(InputError, match="did you mean network"):
        load_preset("netwrok")


@pytest.mark.parametrize(
    "grid", [[{"C": 10.0}, {}], [{"depth": 8}, {"depth": 9}], [{"norm": None}, {"norm": "l2"}]]
)
def test_nested_evaluation_fits_again_what_was_chosen(threads, grid):
    model = saen.PartCountsClassifier("neighbourhoods(depth=2)", inner_folds=0)
    evaluation = saen.cross_validate(
        model, threads, threads.targets, n_repeats=1, n_folds=3, selection="nested", grid=grid
    )
    for chosen, (train, test) in zip(evaluation.chosen, evaluation.splits[0], strict=True):
        own = [each for each in grid if each.items() <= chosen.items()] or grid[:1]
        fits = [
            saen.PartCountsClassifier("neighbourhoods(depth=2)", inner_folds=0, **each)
            .fit(threads[train], threads.targets[train])
            .predict_proba(threads[test])
            for each in own
        ]
        assert any(np.array_equal(evaluation.outputs[0, test], fit) for fit in fits)


def test_examples_of_weight_zero_are_left_out_as_in_fit(threads):
    weights = np.ones(len(threads))
    weights[::3] = 0.0
    problem = Problem.of(threads.targets, regression=False, sample_weight=weights)
    model = saen.PartCountsClassifier()
    evaluation = saen.cross_validate(model, threads, problem, n_repeats=1, n_folds=3)
    train, test = evaluation.splits[0][0]
    alone = saen.PartCountsClassifier()
    alone.fit(threads[train], threads.targets[train], sample_weight=weights[train])
    np.testing.assert_array_equal(evaluation.outputs[0, test], alone.predict_proba(threads[test]))


def test_groups_reach_inner_folds_of_targets_that_are_coded_already(threads):
    groups = np.arange(len(threads)) // 2
    problem = Problem.of(threads.targets, regression=False)
    model = saen.PartCountsClassifier()
    one, other = (
        saen.cross_validate(model, threads, y, n_repeats=1, n_folds=3, groups=groups)
        for y in (problem, threads.targets)
    )
    np.testing.assert_array_equal(one.outputs, other.outputs)


def test_balanced_weights_of_a_target_that_a_training_part_does_not_know(threads):
    y = np.full((len(threads), 2), np.nan)
    y[:, 0] = threads.targets == "questions"
    y[:8, 1] = np.arange(8) % 2
    train, test = np.arange(8, len(threads)), np.arange(8)
    evaluation = saen.cross_validate(
        saen.PartCountsClassifier(class_weight="balanced"), threads, y, splits=[[(train, test)]]
    )
    assert np.isfinite(evaluation.outputs[0, test, 0]).all()
