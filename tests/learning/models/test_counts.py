from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import saen
from saen import (
    Graphs,
    InputError,
    PartCountsClassifier,
    PartCountsRegressor,
    cross_validate,
    explain,
    explain_dataset,
    generate_threads,
    save,
)
from saen.jobs.inspect import inspect_file
from saen.learning.models import counts, forest
from saen.learning.models.base import Study
from saen.learning.prediction import predict_chunks
from saen.learning.presets import load_preset
from saen.learning.problem import Problem
from saen.learning.splits import Fold
from tests.cli.commandline import fails, invoke, run

THREADS = generate_threads(60, average_nodes=20, seed=1)
KINDS = np.array(["long", "short", "other"])[np.digitize(THREADS.sizes, [15, 25])]
FOREST = {"model": "forest"}
SMALL = {"decomposition": "neighbourhoods(depth=2)", "inner_folds": 2}
HALVES = [(np.arange(0, 60, 2), np.arange(1, 60, 2)), (np.arange(1, 60, 2), np.arange(0, 60, 2))]


@pytest.fixture(autouse=True)
def few_trees(monkeypatch):
    monkeypatch.setattr(forest, "N_TREES", 8)


def outputs_of(model, data):
    """The outputs that explanations are of, (n, outputs)."""
    return model.fitted_.outputs(model.prepare(data))


def fitted(y=THREADS.targets, **settings) -> PartCountsClassifier:
    return PartCountsClassifier(**SMALL | settings).fit(THREADS, y)


# -- fitting -----------------------------------------------------------------------------------


def test_the_classifier_learns_and_keeps_to_the_interface():
    model = fitted()
    assert model.score(THREADS, THREADS.targets) > 0.9
    shares, logs = model.predict_proba(THREADS), model.predict_log_proba(THREADS)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    np.testing.assert_allclose(np.exp(logs), shares)
    odds = model.decision_function(THREADS)
    np.testing.assert_allclose(odds, logs[:, 1] - logs[:, 0])
    assert model.predict(THREADS).tolist() == model.classes_[(odds > 0).astype(int)].tolist()
    assert model.embed(THREADS).shape[0] == 60
    with pytest.raises(NotFittedError):
        PartCountsClassifier().predict(THREADS)


def test_several_classes_have_a_logit_each():
    model = fitted(KINDS)
    logits = model.decision_function(THREADS)
    assert logits.shape == (60, 3)
    assert model.classes_[logits.argmax(axis=1)].tolist() == model.predict(THREADS).tolist()
    assert model.score(THREADS, KINDS) > 0.9


def several(numbers: bool) -> np.ndarray:
    """Two targets of the threads, the second unknown for every third of them."""
    table = np.column_stack([THREADS.sizes, THREADS.targets == "discussion"]).astype(float)
    if not numbers:
        table[:, 0] = table[:, 0] > 20
    table[::3, 1] = np.nan
    return table


@pytest.mark.parametrize("model", ["linear", "forest"])
@pytest.mark.parametrize("kind", [PartCountsClassifier, PartCountsRegressor])
def test_several_targets_are_those_of_one_each_where_known(kind, model, tmp_path):
    table = several(numbers=kind is PartCountsRegressor)
    settings = {**SMALL, "inner_folds": 0, "depth": 2, "C": 1.0, "model": model}
    model = kind(**settings).fit(THREADS, table)
    alone = kind(**settings).fit(THREADS, table[:, 0])
    np.testing.assert_allclose(model.predict(THREADS)[:, 0], alone.predict(THREADS), atol=0.05)
    if settings["model"] == "linear":  # a forest draws other columns where some parts are missing
        known = ~np.isnan(table[:, 1])
        alone = kind(**settings).fit(THREADS[known], table[known, 1])
        both, one = model.predict(THREADS[known])[:, 1], alone.predict(THREADS[known])
        np.testing.assert_allclose(both, one, atol=0.05)
    model.save(tmp_path / "model.saen")
    again = saen.load(tmp_path / "model.saen")
    np.testing.assert_array_equal(again.predict(THREADS), model.predict(THREADS))
    assert again.target_names_ == ["0", "1"]
    assert again.score(THREADS, table) == model.score(THREADS, table) > 0.7


def test_several_targets_share_depth_and_temperature():
    model = PartCountsClassifier(**SMALL, class_weight="balanced").fit(THREADS, several(False))
    assert model.classes_.tolist() == [[0, 1], [0, 1]]
    shares, odds = model.predict_proba(THREADS), model.decision_function(THREADS)
    assert shares.shape == odds.shape == (60, 2)
    np.testing.assert_allclose(np.exp(model.predict_log_proba(THREADS)), shares)
    np.testing.assert_array_equal(model.predict(THREADS), odds > 0)


def test_depth_and_cost_are_chosen_unless_given():
    chosen = fitted()
    assert chosen.depth_ in (1, 2)
    assert chosen.C_ in (0.1, 0.3, 1.0, 3.0, 10.0)
    given = fitted(depth=0, C=0.5)
    assert (given.depth_, given.C_) == (0, 0.5)
    roles = {int(place) & 0xFFFFFFFF for place in given.model_.encoder.ids[:, 0]}
    assert roles == {0}
    nothing = fitted(inner_folds=0)
    assert (nothing.depth_, nothing.C_, nothing.model_.score) == (2, 1.0, None)


def test_a_forest_chooses_a_small_depth_and_learns():
    model = fitted(KINDS, decomposition="neighbourhoods(depth=4)", **FOREST)
    assert model.depth_ <= 2
    assert model.C_ is None
    assert model.score(THREADS, KINDS) > 0.8
    again = fitted(KINDS, decomposition="neighbourhoods(depth=4)", encoding="counts", **FOREST)
    np.testing.assert_array_equal(again.predict_proba(THREADS), model.predict_proba(THREADS))


def test_a_forest_of_classes_reads_shares_and_the_number_of_parts_and_one_of_numbers_counts():
    """A graph of two copies of another has the same shares, and twice the parts and counts."""
    once = Graphs.from_edge_lists([[(0, 1), (1, 2)], [(0, 1)]])
    twice = Graphs.from_edge_lists([[(0, 1), (1, 2), (3, 4), (4, 5)], [(0, 1), (2, 3)]])
    classes = fitted(depth=1, **FOREST)
    n = classes.model_.encoder.n_columns
    one, two = classes.embed(once), classes.embed(twice)
    assert one.shape == (2, n)
    assert one.any()
    np.testing.assert_allclose(two, one)
    numbers = PartCountsRegressor(**SMALL, depth=1, **FOREST).fit(THREADS, THREADS.sizes)
    assert numbers.embed(once).any()
    np.testing.assert_array_equal(numbers.embed(twice), 2 * numbers.embed(once))


def test_a_forest_of_classes_tells_apart_graphs_that_differ_in_size_alone():
    copies = np.arange(60) % 6 + 1
    graphs = Graphs.from_edge_lists([[(2 * i, 2 * i + 1) for i in range(n)] for n in copies])
    model = PartCountsClassifier(**SMALL | FOREST, depth=1).fit(graphs, copies > 3)
    assert model.score(graphs, copies > 3) == 1
    vectors = model.embed(graphs)
    np.testing.assert_allclose(vectors, vectors[:1].repeat(60, axis=0))


@pytest.mark.parametrize("settings", [{}, FOREST])
def test_classes_without_training_examples_are_never_predicted(settings):
    weights = (KINDS != "other").astype(float)
    model = PartCountsClassifier(**SMALL | settings).fit(THREADS, KINDS, weights)
    shares = model.predict_proba(THREADS)
    assert shares[:, model.classes_.tolist().index("other")].max() < 0.1


@pytest.mark.parametrize("norm", ["l2", None])
def test_a_smaller_depth_is_that_of_the_smaller_decomposition(norm):
    settings = {"C": 1.0, "inner_folds": 0, "norm": norm}
    one = PartCountsClassifier("neighbourhoods(depth=3)", depth=1, **settings)
    other = PartCountsClassifier("neighbourhoods(depth=1)", depth=None, **settings)
    a, b = (each.fit(THREADS, THREADS.targets).decision_function(THREADS) for each in (one, other))
    np.testing.assert_allclose(a, b, rtol=0.02, atol=0.02)  # up to the solver's tolerance


def test_prepared_data_and_weights_of_zero_are_as_good_as_a_subset():
    model = PartCountsClassifier(**SMALL)
    prepared = model.prepare(THREADS)
    train, test = HALVES[0]
    weights = np.zeros(60)
    weights[train] = 1.0
    whole = clone(model).fit(prepared, THREADS.targets, sample_weight=weights)
    alone = clone(model).fit(THREADS[train], THREADS.targets[train])
    expected = alone.predict_proba(THREADS[test])
    np.testing.assert_allclose(whole.predict_proba(prepared)[test], expected, atol=1e-6)
    other = PartCountsClassifier("ego", inner_folds=0)
    one, two = (clone(other).fit(data, THREADS.targets) for data in (prepared, THREADS))
    np.testing.assert_array_equal(one.predict_proba(prepared), two.predict_proba(THREADS))


def test_class_weights_change_the_model():
    y = np.array(["rare", "usual"])[(np.arange(60) > 12).astype(int)]
    plain = fitted(y, C=0.1, inner_folds=0, depth=1).decision_function(THREADS)
    balanced = fitted(y, C=0.1, inner_folds=0, depth=1, class_weight="balanced")
    assert (balanced.decision_function(THREADS) < plain).all()  # towards the rare class


def test_unseen_parts_are_counted():
    train, test = HALVES[0]
    model = PartCountsClassifier(**SMALL).fit(THREADS[train], THREADS.targets[train])
    assert model.unseen_share(THREADS[train]) == 0
    assert 0 < model.unseen_share(THREADS[test]) < 1


@pytest.mark.parametrize("columns", [None, 2])
def test_the_regressor_predicts_sizes(columns):
    y = THREADS.sizes if columns is None else np.column_stack([THREADS.sizes, -THREADS.sizes])
    model = PartCountsRegressor(**SMALL).fit(THREADS[:40], y[:40])
    assert model.predict(THREADS).shape == y.shape
    assert model.score(THREADS[40:], y[40:]) > 0.7


@pytest.mark.parametrize(
    ("settings", "y", "message"),
    [
        ({"C": 0}, THREADS.targets, "C must be float > 0"),
        ({"depth": -1}, THREADS.targets, "depth must be int ≥ 0"),
        ({}, ["a"] * 60, "at least two classes"),
        ({}, ["a", "b"], "60 examples, but 2 targets"),
    ],
)
def test_wrong_arguments_are_refused(settings, y, message):
    with pytest.raises(InputError, match=message):
        PartCountsClassifier(**SMALL | settings).fit(THREADS, y)


# -- evaluating --------------------------------------------------------------------------------


def fold_results(model, data, y, folds, **study):
    """What the learner of an estimator makes of some folds."""
    problem = Problem.of(y, regression=False)
    return model.learner().fit(
        Study(model.prepare(data), problem, 5, **study), [Fold(*fold) for fold in folds]
    )


@pytest.mark.parametrize("min_graphs", [1, 3])
def test_folds_see_nothing_but_their_training_part(min_graphs):
    """Features of the whole dataset give what estimators give that never saw the test graphs."""
    model = PartCountsClassifier(**SMALL, min_graphs=min_graphs, random_state=5)
    results = fold_results(model, THREADS, THREADS.targets, HALVES)
    for (train, test), found in zip(HALVES, results, strict=True):
        alone = clone(model).fit(THREADS[train], THREADS.targets[train])
        np.testing.assert_allclose(found.tested, alone.predict_proba(THREADS[test]), atol=1e-6)
        assert found.chosen == {"depth": alone.depth_, "C": alone.C_}


def test_test_targets_change_nothing():
    model = PartCountsClassifier(**SMALL)
    prepared, (train, test) = model.prepare(THREADS), HALVES[0]
    other = THREADS.targets.copy()
    other[test] = other[test][::-1]
    [one], [two] = (
        fold_results(model, prepared, y, [(train, test)]) for y in (THREADS.targets, other)
    )
    assert np.array_equal(one.tested, two.tested)
    assert np.array_equal(one.held_out, two.held_out)


@pytest.mark.slow
def test_several_processes_give_the_same():
    model = PartCountsClassifier(**SMALL)
    prepared = model.prepare(THREADS)
    one, two = (fold_results(model, prepared, THREADS.targets, HALVES, parallel=n) for n in (1, 2))
    for a, b in zip(one, two, strict=True):
        assert np.array_equal(a.tested, b.tested)
        assert np.array_equal(a.held_out, b.held_out)
        assert a.chosen == b.chosen
    assert not np.array_equal(one[0].tested, one[1].tested)


@pytest.mark.parametrize("settings", [{}, FOREST])
@pytest.mark.parametrize("keep", [True, False])
def test_finished_folds_are_read_and_not_fitted_again(tmp_path, monkeypatch, settings, keep):
    model = PartCountsClassifier(**SMALL | settings)
    how = {"folder": tmp_path, "keep": keep, "parallel": 1}
    first = fold_results(model, THREADS, KINDS, HALVES, **how)
    assert len(list(tmp_path.glob("counts-*.saen"))) == 2
    monkeypatch.setattr(counts._FoldProblem, "solve", None)
    second = fold_results(model, THREADS, KINDS, HALVES, **how)
    data = model.prepare(THREADS)
    for a, b in zip(first, second, strict=True):
        assert np.array_equal(a.tested, b.tested)
        assert np.array_equal(a.held_out, b.held_out)
        assert a.chosen == b.chosen
        assert (a.fitted is not None) == (b.fitted is not None) == keep
        if keep:
            assert np.array_equal(a.fitted.predictions(data), b.fitted.predictions(data))
    with pytest.raises(TypeError):  # other examples are another fold
        fold_results(model, THREADS, KINDS, [(HALVES[0][0][1:], HALVES[0][1])], **how)


def test_held_out_predictions_are_by_models_that_have_not_seen_them():
    """Outputs for held-out examples do not change with their own targets, but for the scale."""
    model = PartCountsClassifier(**{**SMALL, "inner_folds": 0}, depth=1, C=1.0)
    train, test = HALVES[0]
    inner = ((train[:20], train[20:]), (train[20:], train[:20]))
    problem = Problem.of(THREADS.targets, regression=False)
    learner, data = model.learner(), model.prepare(THREADS)
    [found] = learner.fit(Study(data, problem), [Fold(train, test, inner=inner)])
    assert found.held_out.shape == (30, 2)
    np.testing.assert_array_equal(found.fold.held_out, [*train[20:], *train[:20]])
    for fit, check in inner:
        [alone] = learner.fit(Study(data, problem), [Fold(fit, check, inner=())])
        place = np.isin(found.fold.held_out, check)
        odds = [
            np.diff(np.log(rows), axis=1)[:, 0] for rows in (found.held_out[place], alone.tested)
        ]
        ratio = odds[0] / odds[1]  # one temperature for all
        np.testing.assert_allclose(ratio, np.median(ratio), rtol=1e-6)


def test_cross_validation_knows_part_counts():
    model = PartCountsClassifier(**SMALL)
    options = {"n_repeats": 1, "n_folds": 3}
    evaluation = cross_validate(model, THREADS, KINDS, **options)
    assert evaluation.accuracies().mean() > 0.5
    assert [sorted(each) for each in evaluation.chosen] == [["C", "depth"]] * 3
    grid = [{"encoding": "unary"}, {"encoding": "counts"}]
    nested = cross_validate(model, THREADS, KINDS, **options, selection="nested", grid=grid)
    assert [sorted(each) for each in nested.chosen] == [["C", "depth", "encoding"]] * 3
    with pytest.raises(InputError, match="epoch"):
        cross_validate(model, THREADS, KINDS, selection="peek")


def test_a_class_that_a_training_part_lacks_is_improbable():
    model = PartCountsClassifier(**SMALL)
    train = np.flatnonzero(KINDS != "other")
    test = np.flatnonzero(KINDS == "other")
    [found] = fold_results(model, THREADS, KINDS, [(train, test)])
    assert found.tested.shape == (len(test), 3)
    assert (found.tested[:, 1] < 0.1).all()


# -- saving and explaining ---------------------------------------------------------------------


@pytest.mark.parametrize("settings", [{}, {"encoding": "counts"}, FOREST])
def test_models_are_the_same_after_saving(settings, tmp_path):
    model = fitted(KINDS, **settings)
    model.save(tmp_path / "model.saen")
    loaded = saen.load(tmp_path / "model.saen")
    assert type(loaded) is PartCountsClassifier
    assert np.array_equal(loaded.predict_proba(THREADS), model.predict_proba(THREADS))
    assert (loaded.depth_, loaded.C_) == (model.depth_, model.C_)
    described = inspect_file(tmp_path / "model.saen")
    assert described["columns"] == model.model_.encoder.n_features
    numbers = PartCountsRegressor(**SMALL | settings).fit(THREADS, THREADS.sizes)
    numbers.save(tmp_path / "numbers.saen")
    again = PartCountsRegressor.load(tmp_path / "numbers.saen")
    assert np.array_equal(again.predict(THREADS), numbers.predict(THREADS))
    with pytest.raises(InputError, match="not a PartCountsRegressor"):
        PartCountsRegressor.load(tmp_path / "model.saen")


@pytest.mark.parametrize("settings", [{}, {"encoding": "counts"}, FOREST])
@pytest.mark.parametrize("y", [THREADS.targets, KINDS], ids=["two classes", "three"])
def test_contributions_add_up_to_the_decision_value(settings, y):
    model = fitted(y, **settings)
    explanation = explain(model, THREADS, 3)
    decision = outputs_of(model, THREADS[3:4])[0]
    place = model.classes_.tolist().index(explanation.target)
    decision = decision[0] * (2 * place - 1) if len(model.classes_) == 2 else decision[place]
    assert explanation.output == pytest.approx(decision)
    assert explanation.gap < 1e-9
    own = explanation.contributions[-2]
    assert explanation.baseline + own.sum() == pytest.approx(decision)
    alone = [part for part in explanation.parts if part.count == 1]
    assert alone
    for part in alone:
        assert part.inside.sum() == pytest.approx(part.contribution)
    # Equal parts in equal roles contribute equally.
    collection = explain_dataset(model, THREADS)
    assert collection.gap < 1e-9
    outputs = outputs_of(model, THREADS)
    column = outputs[:, 0]
    totals = (collection.means * collection.occurrences[:, None]).sum(axis=0)
    place = 1 if outputs.shape[1] == 1 else 0
    baseline = explain(model, THREADS, 0, target=model.classes_[place]).baseline
    assert totals[place] == pytest.approx((column - baseline).sum())


@pytest.mark.parametrize("settings", [{}, {"norm": None}, {"encoding": "counts"}, FOREST])
def test_contributions_are_differences_from_the_average_training_example(settings, tmp_path):
    model = fitted(KINDS, depth=1, **settings)
    mean = outputs_of(model, THREADS).mean(axis=0)
    explanations = [explain(model, THREADS, 3, target=name) for name in model.classes_]
    assert explanations[0].reference == "the average graph of the training data"
    np.testing.assert_allclose([each.baseline for each in explanations], mean)
    assert max(each.gap for each in explanations) < 1e-9
    # Over the training data, the parts of all examples together contribute nothing.
    collection = explain_dataset(model, THREADS)
    totals = (collection.means * collection.occurrences[:, None]).sum(axis=0)
    np.testing.assert_allclose(totals, 0, atol=1e-9)
    # Parts beyond the depth of the model are not read, and have no share.
    deeper = explanations[0].decomposed.hierarchy.relations[-1].roles > 1
    assert deeper.any()
    assert (explanations[0].entries[-1][deeper] == 0).all()
    assert (explanations[0].entries[-1][~deeper] != 0).any()
    model.save(tmp_path / "model.saen")
    again = explain(saen.load(tmp_path / "model.saen"), THREADS, 3, target=model.classes_[0])
    assert again.baseline == explanations[0].baseline


def test_average_of_numbers_counts_by_weight():
    weights = np.arange(len(THREADS)) % 3
    model = PartCountsRegressor(**SMALL).fit(THREADS, THREADS.sizes, weights)
    expected = np.average(model.predict(THREADS), weights=weights)
    assert explain(model, THREADS, 5).baseline == pytest.approx(expected)


@pytest.mark.parametrize("settings", [{}, FOREST])
def test_example_without_parts_is_its_own_baseline(settings):
    model = fitted(**settings)
    empty = saen.Graphs.from_edge_lists([[]], sizes=[0])
    explanation = explain(model, empty, 0)
    assert explanation.output == explanation.baseline
    assert explanation.gap == 0


def test_numbers_are_explained_too():
    model = PartCountsRegressor(**SMALL).fit(THREADS, THREADS.sizes)
    explanation = explain(model, THREADS, 5)
    assert explanation.output == pytest.approx(model.predict(THREADS[5:6])[0])
    assert explanation.gap < 1e-9


def test_embeddings_keep_inner_products():
    wide = fitted(inner_folds=0, decomposition="neighbourhoods(depth=3)")
    assert wide.model_.encoder.n_columns > 256
    vectors = wide.embed(THREADS)
    assert vectors.shape == (60, 256)
    np.testing.assert_allclose((vectors**2).sum(axis=1), 1.0, atol=0.4)
    narrow = fitted(decomposition="nodes(node_labels=degree)")
    assert narrow.embed(THREADS).shape[1] == narrow.model_.encoder.n_columns <= 256
    with pytest.raises(InputError, match="whole examples only"):
        wide.embed(THREADS, level=0)


def test_predictions_have_no_agreement():
    assert [list(part.columns) for part in predict_chunks(fitted().fitted_, THREADS)] == [
        ["prediction", "p_discussion", "p_questions"]
    ]


# -- the command line --------------------------------------------------------------------------


def test_the_preset_names_its_model(tmp_path):
    assert load_preset("counts").classifier is PartCountsClassifier
    own = tmp_path / "own.toml"
    own.write_text('model = "part_counts"\n[defaults]\nepochs = 3\n')
    with pytest.raises(InputError, match="unknown key 'epochs'"):
        load_preset(str(own))
    own.write_text('model = "forest"\n')
    with pytest.raises(InputError, match="blend, not 'forest'"):
        load_preset(str(own))


def test_commands_take_the_preset(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "quick.toml").write_text(
        'model = "part_counts"\n[defaults]\n'
        'decomposition = "neighbourhoods(depth=1)"\ninner_folds = 2\n'
    )
    save(generate_threads(120, average_nodes=40, seed=3), "threads.saen")
    trained = run("train", "threads.saen", "--preset", "quick.toml", "-o", "m.saen")
    assert trained["depth"] == 1
    assert trained["out_of_fold"]["accuracy"] > 0.7
    assert "inner log loss" in invoke("inspect", "m.saen").stdout
    invoke("predict", "m.saen", "threads.saen", "-o", "p.csv")
    assert (tmp_path / "p.csv").read_text().startswith("id,prediction,p_discussion,p_questions\n")
    invoke("embed", "m.saen", "threads.saen", "-o", "e.npy")
    invoke("explain", "m.saen", "threads.saen", "--graph", "1", "-o", "one.html")
    invoke("explain", "m.saen", "threads.saen", "-o", "all.svg")
    line = ("evaluate", "threads.saen", "--preset", "quick.toml", "--repeats", "1", "--folds", "2")
    found = run(*line, "--plot", "p.svg", "--report", "r.html")
    assert found["accuracy"]["mean"] > 0.7
    assert {"e.npy", "one.html", "all.svg", "p.svg", "r.html"} <= {
        path.name for path in tmp_path.iterdir()
    }
    message = fails(*line, "--epochs", "3")
    assert message == ("epochs does not apply to preset quick: choose preset network or paper")


def test_cross_validation_of_numbers_knows_part_counts():
    sizes = THREADS.sizes.astype(float)
    result = cross_validate(PartCountsRegressor(), THREADS, sizes, n_repeats=1, n_folds=3)
    assert result.scores("r2").mean() > 0.9
    assert {"depth", "C"} <= set(result.chosen[0])
