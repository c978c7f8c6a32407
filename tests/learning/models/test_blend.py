"""Blends: weighed inside the training examples, averaged, saved, evaluated."""

from contextlib import nullcontext

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.base import clone
from sklearn.metrics import accuracy_score

import saen
from saen import InputError, cross_validate, explain
from saen.cluster.executors import open_executor
from saen.learning import auto, decomposing
from saen.learning.calibration import logits_of, temperature_of, tempered
from saen.learning.decomposing import Decompositions
from saen.learning.metrics import find_metric
from saen.learning.models.base import Candidate, Study
from saen.learning.models.blend import (
    GREEDY_ROUNDS,
    BlendLearner,
    blend_weights,
    mixture_weights,
)
from saen.learning.models.counts import FittedCounts
from saen.learning.models.networks import FittedNetworks
from saen.learning.problem import Problem
from saen.learning.splits import Fold, make_splits
from saen.network.settings import DivergenceError, DivergenceWarning

THREADS = saen.generate_threads(60, average_nodes=20, seed=3)
NAMES = ["0: PartCountsClassifier", "1: SAENClassifier", "2: SAENClassifier"]
PAIR = {"n_repeats": 1, "n_folds": 2}


def candidates():
    return [
        saen.PartCountsClassifier("neighbourhoods(depth=2)"),
        saen.SAENClassifier(epochs=6, n_models=2, batch_size=20, radii=(0, 1)),
        saen.SAENClassifier(epochs=0, n_models=1),
    ]


def counts_of_depths():
    return [
        saen.PartCountsClassifier(f"neighbourhoods(depth={depth})", C=C, depth=depth)
        for depth, C in ((1, 0.01), (1, 10.0), (2, 0.1))
    ]


def noisy_targets():
    """Classes of which some are wrong, so that several candidates have a weight."""
    rng = np.random.default_rng(2)
    return np.where(rng.random(60) < 0.3, rng.permutation(THREADS.targets), THREADS.targets)


def flipped(y, rows):
    changed = y.copy()
    changed[rows] = np.where(changed[rows] == "questions", "discussion", "questions")
    return changed


@pytest.fixture(scope="module")
def model():
    return saen.Classifier(candidates=candidates()).fit(THREADS, THREADS.targets)


def test_blend_is_the_weighted_mean_of_its_members(model):
    assert [each["candidate"] for each in model.tried_] == NAMES
    assert sum(each["weight"] for each in model.tried_) == pytest.approx(1)
    some = Decompositions(THREADS[:7])
    by_hand = sum(each.weight * each.model.predictions(some) for each in model.members_)
    calibrated = tempered(by_hand, model.temperature_)
    np.testing.assert_allclose(model.predict_proba(THREADS[:7]), calibrated)
    assert model.predict_each(THREADS[:7]).shape == (7, len(model.members_), 2)
    weights = model.weights_
    assert (np.diff(weights) <= 0).all()
    assert {each.name: each.weight for each in model.members_} == {
        each["candidate"]: each["weight"] for each in model.tried_ if each["weight"]
    }
    assert model.score(THREADS, THREADS.targets) > 0.8
    widths = [each.model.embed(some).shape[1] for each in model.members_]
    assert model.embed(THREADS[:7]).shape == (7, sum(widths))


def test_blend_gives_untrained_networks_little_weight(model):
    weights = {each["candidate"]: each["weight"] for each in model.tried_}
    assert weights["2: SAENClassifier"] < 0.2


def test_blend_of_few_labels_is_about_as_good_as_part_counts_where_networks_overfit():
    rng, n, nodes = np.random.default_rng(1), 400, 20
    ends = np.sort(rng.integers(0, nodes, (n, nodes + 4, 2)))
    edges = [sorted({(a, b) for a, b in pairs if a != b}) for pairs in ends.tolist()]
    labels = rng.choice(["a", "b", "c"], n * nodes)
    graphs = saen.Graphs.from_edge_lists(edges, [nodes] * n, node_labels=labels)
    shares = (labels == "a").reshape(n, nodes).sum(axis=1) + rng.normal(size=n)
    y = shares > nodes / 3
    blend = saen.Classifier(
        candidates=[
            saen.PartCountsClassifier("neighbourhoods(depth=2)"),
            saen.SAENClassifier(epochs=25, n_models=1, radii=(0, 1, 2)),
        ]
    ).fit(graphs[:60], y[:60])
    scores = {
        each.model.kind: accuracy_score(
            y[60:], each.model.predictions(Decompositions(graphs[60:])).argmax(axis=1)
        )
        for each in blend.members_
    }
    assert scores["networks"] < scores["counts"] - 0.05
    assert blend.score(graphs[60:], y[60:]) > scores["counts"] - 0.03


def test_blend_members_are_the_models_of_the_inner_folds(model):
    """Nothing is trained again: networks are those of five inner folds, two of each."""
    models = {each.name: each.model for each in model.members_}
    assert isinstance(models[NAMES[0]], FittedCounts)
    networks = models[NAMES[1]]
    assert isinstance(networks, FittedNetworks)
    assert networks.n_models == 5 * 2
    alone = candidates()[1].fit(THREADS, THREADS.targets)
    np.testing.assert_array_equal(
        networks.predictions(Decompositions(THREADS)), alone.predict_proba(THREADS)
    )


def test_blend_is_the_same_when_fitted_again(model):
    again = clone(model).fit(THREADS, THREADS.targets)
    np.testing.assert_array_equal(again.predict_proba(THREADS), model.predict_proba(THREADS))


def test_blend_does_not_look_at_examples_of_weight_zero():
    kept = np.arange(60) % 4 > 0
    first, second = (
        saen.Classifier(candidates=candidates()[:2]).fit(
            THREADS, y, sample_weight=kept.astype(float)
        )
        for y in (THREADS.targets, flipped(THREADS.targets, ~kept))
    )
    assert first.tried_ == second.tried_
    np.testing.assert_array_equal(first.predict_proba(THREADS), second.predict_proba(THREADS))


def test_blend_decomposes_once_for_all_candidates_of_a_decomposition(monkeypatch):
    calls = []
    original = decomposing.compress_graphs
    monkeypatch.setattr(
        decomposing, "compress_graphs", lambda *a, **k: calls.append(1) or original(*a, **k)
    )
    same = [saen.SAENClassifier(epochs=epochs, n_models=1, radii=(0, 1)) for epochs in (1, 2)]
    blend = saen.Classifier(candidates=same)
    prepared = blend.prepare(THREADS)
    blend.fit(prepared, THREADS.targets).predict(prepared)
    assert len(calls) == 1


def test_blend_takes_a_decomposition_as_an_object(tmp_path):
    ego = saen.decompositions.Ego(radii=(0, 2))
    blends = [
        saen.Classifier(decomposition=each, budget="quick") for each in (ego, "ego(radii=(0, 2))")
    ]
    by_object, by_name = (clone(each).fit(THREADS, THREADS.targets) for each in blends)
    np.testing.assert_array_equal(by_object.predict_proba(THREADS), by_name.predict_proba(THREADS))
    by_object.save(tmp_path / "model.saen")
    loaded = saen.Classifier.load(tmp_path / "model.saen")
    np.testing.assert_array_equal(loaded.predict(THREADS), by_object.predict(THREADS))


def test_blend_is_saved_and_loaded(model, tmp_path):
    model.save(tmp_path / "model.saen")
    loaded = saen.load(tmp_path / "model.saen")
    assert isinstance(loaded, saen.Classifier)
    assert [each.name for each in loaded.members_] == [each.name for each in model.members_]
    assert loaded.tried_ == model.tried_
    np.testing.assert_array_equal(loaded.predict(THREADS), model.predict(THREADS))
    np.testing.assert_allclose(
        loaded.predict_proba(THREADS), model.predict_proba(THREADS), atol=1e-6
    )
    with pytest.raises(InputError, match="not a SAENClassifier"):
        saen.SAENClassifier.load(tmp_path / "model.saen")


def test_blend_of_numbers(tmp_path):
    blend = saen.Regressor(
        candidates=[
            saen.PartCountsRegressor("neighbourhoods(depth=1)"),
            saen.SAENRegressor(epochs=4, n_models=1, radii=(0, 1)),
        ]
    )
    sizes = THREADS.sizes.astype(float)
    blend.fit(THREADS, sizes)
    assert blend.score(THREADS, sizes) > 0.5
    blend.save(tmp_path / "numbers.saen")
    again = saen.Regressor.load(tmp_path / "numbers.saen")
    np.testing.assert_allclose(again.predict(THREADS), blend.predict(THREADS), rtol=1e-5)
    result = cross_validate(blend, THREADS, sizes, n_repeats=1, n_folds=3)
    assert result.scores("mae").mean() < np.abs(sizes - sizes.mean()).mean()


def test_blend_of_nothing_and_of_one_class_are_refused():
    with pytest.raises(InputError, match="at least one candidate"):
        saen.Classifier(candidates=[]).fit(THREADS, THREADS.targets)
    with pytest.raises(InputError, match="two classes"):
        saen.Classifier().fit(THREADS, ["a"] * 60)
    with pytest.raises(InputError, match="60 examples, but 59 targets"):
        saen.Classifier(candidates=candidates()).fit(THREADS, THREADS.targets[:59])


def test_blend_needs_examples_to_choose_on():
    few = auto.MIN_INNER_EXAMPLES - 1
    with pytest.raises(InputError, match="a blend needs at least 10 for training"):
        saen.Classifier(candidates=candidates()).fit(THREADS[:few], THREADS.targets[:few])


@pytest.mark.parametrize("wrong", [saen.PartCountsRegressor(), "network"])
def test_blend_refuses_candidates_of_another_kind(wrong):
    blend = saen.Classifier(candidates=[*candidates()[:1], wrong])
    name = type(wrong).__name__
    message = f"candidate 1: {name}: a Classifier needs candidates that are classifiers of saen"
    with pytest.raises(InputError, match=message):
        blend.fit(THREADS, THREADS.targets)
    with pytest.raises(InputError, match=message):
        cross_validate(blend, THREADS, THREADS.targets, **PAIR)
    numbers = saen.Regressor(candidates=[saen.PartCountsClassifier()])
    with pytest.raises(InputError, match="candidate 0: PartCountsClassifier: a Regressor needs"):
        numbers.fit(THREADS, THREADS.sizes)


def test_blend_refuses_a_candidate_with_a_wrong_argument_before_anything_is_trained():
    wrong = saen.SAENClassifier(epochs=-1)
    with pytest.raises(InputError, match="epochs"):
        saen.Classifier(candidates=[wrong]).fit(THREADS, THREADS.targets)


def test_blend_explains_its_largest_member(model):
    first = model.members_[0]
    explanation = saen.explain(model, THREADS, 0)
    assert first.name == NAMES[0]
    alone = saen.explain(candidates()[0].fit(THREADS, THREADS.targets), THREADS, 0)
    assert explanation.output == alone.output


# -- calibration and the score of a fit ---------------------------------------------------------


def held_out_alone(y, splits):
    """What every candidate alone predicts for what these inner folds hold out, and the truth."""
    problem, every = Problem.of(y, regression=False), np.arange(len(y))
    fold, data = Fold(every, every[:0], inner=tuple(splits)), Decompositions(THREADS)
    learners = [each.learner() for each in counts_of_depths()]
    rows = [learner.fit(Study(data, problem), [fold])[0].held_out for learner in learners]
    return np.stack(rows), problem.values[fold.held_out]


@pytest.mark.parametrize("metric", [None, "accuracy"])
def test_blend_is_scored_by_weights_that_other_inner_folds_decide(metric):
    y = noisy_targets()
    blend = saen.Classifier(candidates=counts_of_depths(), inner_folds=3, metric=metric)
    model = blend.fit(THREADS, y)
    [splits] = model.evaluation_.splits
    rows, truth = held_out_alone(y, splits)

    def weights_by(folds):
        if metric is None:
            rest = np.concatenate(folds)
            return mixture_weights(rows[:, rest][:, np.arange(len(rest)), truth[rest]])

        def key(average):
            score = np.mean([np.mean(average[f].argmax(axis=1) == truth[f]) for f in folds])
            rest = np.concatenate(folds)
            return round(score, 9), -log_losses(truth[rest])(average[rest][None]).mean()

        return slow_greedy(rows, key)

    folds = np.split(np.arange(60), np.cumsum([len(check) for _, check in splits])[:-1])
    out = np.empty_like(rows[0])
    for number, fold in enumerate(folds):
        weights = weights_by(folds[:number] + folds[number + 1 :])
        out[fold] = np.tensordot(weights, rows[:, fold], 1)
    temperature = temperature_of(out, truth, np.ones(60))
    assert model.temperature_ == pytest.approx(temperature, rel=1e-6)
    found = model.evaluation_.outputs[0, np.concatenate([check for _, check in splits])]
    for number, fold in enumerate(folds):
        rest = np.concatenate(folds[:number] + folds[number + 1 :])
        temperature = temperature_of(out[rest], truth[rest])
        np.testing.assert_allclose(found[fold], tempered(out[fold], temperature), atol=1e-9)
    # The data must be such that weights by all of them would show.
    everything = np.tensordot(weights_by(folds), rows, 1)
    assert np.abs(everything - out).max() > 1e-3


def test_blend_scores_are_the_means_over_inner_folds():
    y = noisy_targets()
    model = saen.Classifier(candidates=counts_of_depths(), inner_folds=3).fit(THREADS, y)
    [splits] = model.evaluation_.splits
    rows, truth = held_out_alone(y, splits)
    ends = np.cumsum([len(check) for _, check in splits])[:-1]
    for own, tried in zip(rows, model.tried_, strict=True):
        right = np.split(own.argmax(axis=1) == truth, ends)
        assert tried["score"] == pytest.approx(np.mean([fold.mean() for fold in right]))


# -- candidates that diverge -------------------------------------------------------------------

LEFT_OUT = r"1: SAENClassifier: diverged, left out \(lower learning_rate"


def diverging():
    return saen.SAENClassifier(epochs=3, n_models=1, learning_rate=1e30, normalization="none")


def with_a_diverging_candidate():
    own = candidates()
    return saen.Classifier(candidates=[own[0], diverging(), own[1]])


def test_blend_leaves_out_a_candidate_that_diverges(tmp_path):
    with pytest.warns(DivergenceWarning, match=LEFT_OUT) as caught:
        model = with_a_diverging_candidate().fit(THREADS, THREADS.targets)
    left_out = [each for each in caught if "left out" in str(each.message)]
    assert [each.filename for each in left_out] == [__file__]
    assert {each["candidate"] for each in model.tried_} == {*NAMES}
    assert {"candidate": NAMES[1], "score": None, "weight": 0.0} in model.tried_
    own = candidates()
    plain = saen.Classifier(candidates=[own[0], own[1]]).fit(THREADS, THREADS.targets)
    np.testing.assert_array_equal(model.predict_proba(THREADS), plain.predict_proba(THREADS))
    model.save(tmp_path / "model.saen")
    assert saen.load(tmp_path / "model.saen").tried_ == model.tried_


@pytest.mark.parametrize("cluster", [None, "serial"])
def test_blend_evaluation_leaves_out_a_candidate_that_diverges_and_resumes(cluster, tmp_path):
    blend = with_a_diverging_candidate()
    options = PAIR | {"run_dir": tmp_path}
    with (
        open_executor(cluster) if cluster else nullcontext() as executor,
        pytest.warns(DivergenceWarning, match=LEFT_OUT),
    ):
        first = cross_validate(blend, THREADS, THREADS.targets, executor=executor, **options)
    assert {"candidate": NAMES[1], "score": None, "weight": 0.0} in first.tried
    assert np.isfinite(first.probabilities).all()
    for members in first.chosen:
        assert sum(each["weight"] for each in members) == pytest.approx(1)
    assert not [*tmp_path.glob("*.checkpoint")]
    with pytest.warns(DivergenceWarning, match=LEFT_OUT):
        again = cross_validate(blend, THREADS, THREADS.targets, **options)
    np.testing.assert_array_equal(again.probabilities, first.probabilities)


def test_blend_of_nothing_but_candidates_that_diverge_is_an_error():
    with pytest.raises(
        DivergenceError, match=r"training diverged in epoch \d.*: lower learning_rate"
    ):
        saen.Classifier(candidates=[diverging()]).fit(THREADS, THREADS.targets)


# -- evaluation --------------------------------------------------------------------------------


def test_blend_is_chosen_without_the_test_fold():
    blend = saen.Classifier(candidates=candidates()[:2])
    splits = make_splits(THREADS.targets, 1, 3, seed=0)
    result = cross_validate(blend, THREADS, THREADS.targets, splits=splits)
    assert result.selection == "fixed"
    test = splits[0][0][1]
    again = cross_validate(blend, THREADS, flipped(THREADS.targets, test), splits=splits)
    assert again.chosen[0] == result.chosen[0]
    np.testing.assert_allclose(
        again.probabilities[0, test], result.probabilities[0, test], atol=1e-5
    )
    for members in result.chosen:
        assert sum(each["weight"] for each in members) == pytest.approx(1)
    assert [each["candidate"] for each in result.tried] == NAMES[:2]


def test_blend_evaluation_is_fit_and_predict_of_every_fold():
    blend = saen.Classifier(candidates=candidates())
    result = cross_validate(blend, THREADS, THREADS.targets, **PAIR, random_state=4)
    for train, test in result.splits[0]:
        model = clone(blend).set_params(random_state=4)
        model.fit(THREADS[train], THREADS.targets[train])
        np.testing.assert_allclose(
            model.predict_proba(THREADS[test]), result.probabilities[0, test], atol=1e-5
        )


def test_blend_with_one_candidate_equals_it():
    networks = saen.SAENClassifier(epochs=3, n_models=2, radii=(0, 1), dtype="float64")
    options = {"n_repeats": 1, "n_folds": 3}
    blend = saen.Classifier(candidates=[networks])
    blended = cross_validate(blend, THREADS, THREADS.targets, **options)
    alone = cross_validate(networks, THREADS, THREADS.targets, **options)
    for _, test in alone.splits[0]:  # the same but for the temperature of the fold
        odds = [logits_of(each.probabilities[0, test]) for each in (blended, alone)]
        temperature = odds[1][0, 0] / odds[0][0, 0]
        np.testing.assert_allclose(odds[0] * temperature, odds[1], rtol=1e-6)


def test_blend_takes_for_identical_what_no_candidate_tells_apart():
    path, star = [(0, 1), (1, 2), (2, 3)], [(0, 1), (0, 2), (0, 3)]
    graphs = saen.Graphs.from_edge_lists([path, star] * 12, node_labels=["C"] * 96)
    blind = saen.PartCountsClassifier("nodes", node_labels="node", depth=None)
    seeing = saen.PartCountsClassifier("neighbourhoods(depth=1)")
    for own, share in (([blind], 0.5), ([blind, seeing], 1.0)):
        blend = saen.Classifier(candidates=own)
        result = cross_validate(blend, graphs, [0, 1] * 12, **PAIR)
        assert result.to_json()["ceiling"] == share


def nothing_is_trained(monkeypatch):
    monkeypatch.setattr("saen.learning.models.counts._FoldProblem.solve", None)
    monkeypatch.setattr("saen.network.ensemble.train", None)


def test_blend_evaluation_resumes(tmp_path, monkeypatch):
    blend = saen.Classifier(candidates=candidates()[:2])
    options = PAIR | {"run_dir": tmp_path}
    first = cross_validate(blend, THREADS, THREADS.targets, **options)
    nothing_is_trained(monkeypatch)
    again = cross_validate(blend, THREADS, THREADS.targets, **options)
    np.testing.assert_array_equal(again.probabilities, first.probabilities)
    assert again.chosen == first.chosen


def test_blend_resumes_a_fit(model, tmp_path, monkeypatch):
    first = clone(model).set_params(run_dir=tmp_path).fit(THREADS, THREADS.targets)
    np.testing.assert_array_equal(first.predict_proba(THREADS), model.predict_proba(THREADS))
    nothing_is_trained(monkeypatch)
    again = clone(first).fit(THREADS, THREADS.targets)
    np.testing.assert_array_equal(again.predict_proba(THREADS), model.predict_proba(THREADS))
    assert again.tried_ == model.tried_


@pytest.mark.parametrize("others", [[1, 0, 2], [0, 1]])
def test_blend_evaluation_resumed_with_other_candidates_trains_them(others, tmp_path):
    """As after an update of saen, whose default candidates are others."""
    listed = [*counts_of_depths()[:1], *candidates()[:2]]
    blend = saen.Classifier(candidates=listed)
    cross_validate(blend, THREADS, THREADS.targets, run_dir=tmp_path, **PAIR)
    changed = saen.Classifier(candidates=[listed[i] for i in others])
    fresh = cross_validate(changed, THREADS, THREADS.targets, **PAIR)
    resumed = cross_validate(changed, THREADS, THREADS.targets, run_dir=tmp_path, **PAIR)
    assert resumed.tried == fresh.tried
    np.testing.assert_array_equal(resumed.probabilities, fresh.probabilities)


def test_blend_tries_a_candidate_on_the_folds_that_list_it():
    """Rules look at training examples, so that folds may have other candidates."""
    first, second = (
        Candidate({"candidate": name}, each.learner())
        for name, each in zip("ab", counts_of_depths()[1:], strict=True)
    )

    def listed(data, train):
        return [first, second] if 0 in train else [second]

    learner = BlendLearner(listed, first.learner.spec, 2)
    problem = Problem.of(THREADS.targets, regression=False)
    data, every = Decompositions(THREADS), np.arange(60)
    folds = [
        Fold(train, np.setdiff1d(every, train), (0, number))
        for number, train in enumerate((every[:30], every[30:]))
    ]
    both = learner.fit(Study(data, problem, keep=False), folds)
    assert [[each["candidate"] for each in result.tried] for result in both] == [["a", "b"], ["b"]]
    for fold, result in zip(folds, both, strict=True):
        [alone] = learner.fit(Study(data, problem, keep=False), [fold])
        np.testing.assert_array_equal(result.tested, alone.tested)


def test_the_last_fit_gives_back_the_decompositions_that_are_done_with():
    counts = [saen.PartCountsClassifier(f"neighbourhoods(depth={depth})") for depth in (2, 1)]
    tried = [*counts, saen.PartCountsClassifier("neighbourhoods(depth=1)", encoding="counts")]
    listed = [Candidate({"candidate": str(n)}, each.learner()) for n, each in enumerate(tried)]
    kept: list[int] = []

    class Watched(Decompositions):
        def forget_others(self, others):
            super().forget_others(others)
            kept.append(len(self._made))

    learner = BlendLearner(lambda data, train: listed, listed[0].learner.spec, 2)
    problem = Problem.of(THREADS.targets, regression=False)
    folds = [Fold(np.arange(0, 60, 2), np.arange(1, 60, 2))]
    [usual] = learner.fit(Study(Watched(THREADS), problem), folds)
    assert kept == []
    [result] = learner.fit(Study(Watched(THREADS), problem, last=True), folds)
    assert kept == [2, 1, 1]
    np.testing.assert_array_equal(result.tested, usual.tested)


@pytest.mark.parametrize("kind", ["Classifier", "Regressor"])
def test_one_inner_split_is_enough_to_choose_and_calibrate(kind):
    y = THREADS.targets if kind == "Classifier" else THREADS.sizes.astype(float)
    counts = getattr(saen, f"PartCounts{kind}")
    networks = getattr(saen, f"SAEN{kind}")(epochs=2, n_models=1)
    blend = getattr(saen, kind)(candidates=[counts(), networks], inner_folds=1)
    model = clone(blend).fit(THREADS, y)
    assert sum(each["weight"] for each in model.tried_) == pytest.approx(1)
    assert model.predict(THREADS).shape == (60,)
    evaluation = cross_validate(blend, THREADS, y, **PAIR)
    assert np.isfinite(evaluation.outputs).all()


def test_blend_by_a_metric_in_fit_and_in_evaluation():
    y = noisy_targets()
    blend = saen.Classifier(candidates=counts_of_depths(), inner_folds=2)
    own = clone(blend).set_params(metric="roc_auc")
    model, plain = own.fit(THREADS, y), clone(blend).fit(THREADS, y)
    assert [each["weight"] for each in model.tried_] != [each["weight"] for each in plain.tried_]
    prepared = blend.prepare(THREADS)
    by_loss, asked, by_own, both = (
        cross_validate(each, prepared, y, metric=metric, **PAIR)
        for each, metric in (
            (blend, None),
            (blend, "roc_auc"),
            (own, None),
            (own, "accuracy"),
        )
    )
    assert asked.chosen == by_own.chosen
    assert [e.metric for e in (by_loss, asked, by_own)] == ["accuracy", "roc_auc", "roc_auc"]

    def weights(evaluation):
        return [each["weight"] for each in evaluation.tried]

    assert weights(asked) != weights(by_loss)
    # The metric that is asked for decides, whatever the blend's own is.
    by_accuracy = clone(blend).set_params(metric="accuracy")
    assert both.metric == "accuracy"
    assert weights(both) == weights(cross_validate(by_accuracy, prepared, y, **PAIR))


def test_blend_refuses_a_metric_of_another_task():
    with pytest.raises(InputError, match=r"metric for classes is one of accuracy, .*, not 'mae'"):
        saen.Classifier(metric="mae").fit(THREADS, THREADS.targets)
    with pytest.raises(InputError, match="metric for real numbers is one of mae"):
        saen.Regressor(metric="f1").fit(THREADS, THREADS.sizes)


def test_blend_has_no_epoch_to_peek_at():
    with pytest.raises(InputError, match="no epoch"):
        cross_validate(saen.Classifier(), THREADS, THREADS.targets, selection="peek")


def test_blend_settings_are_chosen_from_a_grid_as_those_of_other_models():
    blend = saen.Classifier(candidates=counts_of_depths())
    with pytest.raises(InputError, match="at least two settings"):
        cross_validate(blend, THREADS, THREADS.targets, selection="nested", **PAIR)
    grid = [{"candidates": [candidates()[2]]}, {"candidates": counts_of_depths()}]
    options = PAIR | {"selection": "nested", "grid": grid}
    found = cross_validate(blend, THREADS, THREADS.targets, **options)
    assert [each["candidates"] for each in found.chosen] == [grid[1]["candidates"]] * 2
    fixed = cross_validate(blend, THREADS, THREADS.targets, **PAIR, inner_folds=5)
    for chosen, members in zip(found.chosen, fixed.chosen, strict=True):
        assert chosen["members"] == members


@pytest.mark.parametrize("numbers", [False, True])
def test_blend_of_several_targets_with_gaps(numbers, tmp_path):
    graphs = THREADS[:40]
    table = np.column_stack([graphs.sizes, -graphs.sizes]).astype(float)
    if not numbers:
        table = (table > np.median(table, axis=0)).astype(float)
    table[::7, 1] = np.nan
    kind = "Regressor" if numbers else "Classifier"
    own = [
        getattr(saen, f"PartCounts{kind}")("neighbourhoods(depth=1)", C=1.0, depth=1),
        getattr(saen, f"SAEN{kind}")(epochs=2, n_models=1, radii=(0,)),
    ]
    metric = "mae" if numbers else "roc_auc"
    blend = getattr(saen, kind)(candidates=own, inner_folds=2, metric=metric)
    model = clone(blend).fit(graphs, table)
    assert model.score(graphs, table) > 0.6
    model.save(tmp_path / "model.saen")
    again = saen.load(tmp_path / "model.saen")
    np.testing.assert_array_equal(again.predict(graphs), model.predict(graphs))
    assert again.target_names_ == ["0", "1"]
    assert explain(again, graphs, 1, target="1").target == "1"
    evaluation = cross_validate(blend, graphs, table, **PAIR)
    assert evaluation.metric == metric
    assert evaluation.outputs.shape == (1, 40, 2)
    assert set(evaluation.target_scores()) == {"0", "1"}


# -- weights -----------------------------------------------------------------------------------


def squares(truth):
    return lambda rows: (rows - truth) ** 2


def log_losses(truth):
    return lambda rows: -np.log(np.maximum(rows[:, np.arange(len(truth)), truth], 1e-12))


def test_blend_weights_leave_out_what_only_makes_it_worse():
    rng = np.random.default_rng(0)
    truth = rng.normal(size=200)
    good = truth + 0.1 * rng.normal(size=200)
    weights = blend_weights(np.stack([good, -truth, np.full(200, 9.0)]), squares(truth))
    np.testing.assert_allclose(weights, [1, 0, 0])


def test_blend_weights_use_models_that_err_in_different_places():
    rng = np.random.default_rng(1)
    truth = rng.integers(2, size=400)
    logits = (2 * truth - 1)[None] + 2 * rng.normal(size=(2, 400))
    positive = 1 / (1 + np.exp(-logits))
    rows = np.stack([1 - positive, positive], axis=-1)
    weights = blend_weights(rows, log_losses(truth))
    assert weights.min() > 0.3
    losses = log_losses(truth)
    mixed = losses(np.tensordot(weights, rows, 1)[None]).mean()
    assert mixed < losses(rows).mean(axis=1).min()


@settings(max_examples=30, deadline=None)
@given(arrays(np.float64, (4, 12), elements=st.floats(-5, 5)))
def test_blend_weights_are_shares_and_never_worse_than_the_best_candidate(rows):
    truth = np.linspace(-1, 1, 12)
    weights = blend_weights(rows, squares(truth))
    assert weights.min() >= 0
    assert np.isclose(weights.sum(), 1)
    alone = squares(truth)(rows).mean(axis=1)
    # Greedy steps come close to the optimum, which is no worse than the best alone.
    assert squares(truth)(weights @ rows).mean() <= alone.min() * 1.1 + 1e-9


def test_blend_of_few_examples_is_the_most_likely_mixture():
    """With one imagined example for every candidate: no other weights are more likely."""
    rows, truth = noisy_candidates()
    right = rows[:, np.arange(len(truth)), truth]

    def evidence(weights):
        return np.log(weights @ right).sum() + np.log(weights).sum()

    weights = weights_of(rows, truth)
    np.testing.assert_array_equal(weights, mixture_weights(right))
    assert np.isclose(weights.sum(), 1)
    rng = np.random.default_rng(0)
    for spread in (0.001, 0.01, 0.1, 1.0):
        for _ in range(50):
            other = weights * np.exp(spread * rng.normal(size=len(weights)))
            assert evidence(other / other.sum()) < evidence(weights) + 1e-9


@pytest.mark.parametrize("n", [20, 100, 400])
def test_blend_of_few_examples_shares_among_equals_and_not_with_nonsense(n):
    truth = np.arange(n) % 2
    good = of_two_classes(0.5 + 0.4 * (2 * truth - 1))
    rows = np.stack([good, good, 1 - good])
    weights = weights_of(rows, truth)
    assert np.isclose(weights[0], weights[1])
    assert weights[2] < 2 / (n + 3)


def test_blend_of_few_examples_with_several_targets_counts_known_ones():
    rng = np.random.default_rng(0)
    truth = rng.integers(-1, 2, size=(50, 3))
    rows = rng.random((2, 50, 3))
    right = np.where(truth == 1, rows, 1 - rows)[:, truth >= 0]
    found = weights_of(rows, np.where(truth < 0, np.nan, truth))
    np.testing.assert_allclose(found, mixture_weights(right))


# -- by a metric -------------------------------------------------------------------------------


def weights_of(rows, truth, metric=None, folds=1, counts=None):
    """The weights by held-out examples that are in equal inner folds."""
    numbers = truth.dtype.kind == "f" and truth.ndim == 1
    problem = Problem.of(truth, regression=numbers)
    fold_of = np.arange(len(truth)) // (len(truth) // folds)
    known = None if metric is None else find_metric(metric, regression=numbers)
    blend = BlendLearner(lambda data, train: [], saen.SAENClassifier().learner().spec, metric=known)
    counts = np.ones(len(truth)) if counts is None else counts
    few = len(truth) < auto.FEW_EXAMPLES
    return blend._weights(problem, rows, problem.values, counts, fold_of, few)


@pytest.mark.parametrize("n", [60, auto.FEW_EXAMPLES])
def test_blend_weighs_candidates_by_examples_as_often_as_they_count(n):
    rows, truth = noisy_candidates(n)
    counts = np.random.default_rng(1).integers(0, 4, n)
    copies = np.repeat(np.arange(n), counts)
    found = weights_of(rows, truth, counts=counts.astype(float))
    plain = weights_of(rows, truth)
    if n < auto.FEW_EXAMPLES:  # as likely as a mixture, whatever the counts are together
        right = rows[:, np.arange(n), truth]
        np.testing.assert_allclose(found, weights_of(rows, truth, counts=counts * 5.0))
        np.testing.assert_allclose(found, mixture_weights(right, counts))
        assert found != pytest.approx(plain, abs=1e-3)
    else:
        expected = blend_weights(rows[:, copies], log_losses(truth[copies]))
        np.testing.assert_array_equal(found, expected)
        assert not np.array_equal(found, plain)


def slow_greedy(rows, key):
    """Shares of the rounds in which the best sum by `key` was that with each candidate."""
    chosen = []
    for _ in range(GREEDY_ROUNDS):
        averages = [np.mean([*rows[chosen], each], axis=0) for each in rows]
        chosen.append(max(range(len(rows)), key=lambda i: key(averages[i])))
    return np.bincount(chosen, minlength=len(rows)) / GREEDY_ROUNDS


def pairs_in_order(truth, scores):
    """ROC-AUC: the share of pairs of both classes whose scores are in order, half of equal ones."""
    differences = scores[truth == 1][:, None] - scores[truth == 0]
    return (np.sign(differences) / 2 + 0.5).mean()


def of_two_classes(positive):
    return np.stack([1 - positive, positive], axis=-1)


def noisy_candidates(n=60, seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.permutation(np.arange(n) % 2)
    noise = rng.normal(size=(4, n)) * np.array([0.8, 1.0, 1.5, 4.0])[:, None]
    return of_two_classes(1 / (1 + np.exp(-(2 * truth - 1 + noise)))), truth


def test_blend_by_a_metric_is_a_literal_greedy_selection():
    rows, truth = noisy_candidates()
    loss = log_losses(truth)

    def key(average):
        folds = zip(np.split(truth, 3), np.split(average[:, 1], 3), strict=True)
        score = np.mean([pairs_in_order(y, scores) for y, scores in folds])
        return round(score, 9), -loss(average[None]).mean()

    weights = weights_of(rows, truth, "roc_auc", folds=3)
    np.testing.assert_allclose(weights, slow_greedy(rows, key))
    assert (weights > 0).sum() > 1
    assert not np.array_equal(weights, weights_of(rows, truth))


def test_blend_of_many_examples_without_a_metric_selects_by_loss_alone():
    rows, truth = noisy_candidates(auto.FEW_EXAMPLES)
    loss = log_losses(truth)
    counts, total = np.zeros(4), np.zeros_like(rows[0])
    for number in range(1, GREEDY_ROUNDS + 1):
        best = loss((total + rows) / number).mean(axis=1).argmin()
        counts[best] += 1
        total = total + rows[best]
    np.testing.assert_array_equal(weights_of(rows, truth), counts / GREEDY_ROUNDS)


def test_blend_by_roc_auc_prefers_the_right_order_to_sure_probabilities():
    truth = np.arange(40) % 2
    order = 0.5 + 1e-3 * (2 * truth - 1)  # nothing wrong, nothing sure
    sure = np.where(np.arange(40) < 36, truth, 1 - truth) * 0.8 + 0.1
    rows = of_two_classes(np.stack([sure, order]))
    assert blend_weights(rows, log_losses(truth)).tolist() == [1, 0]
    weights = weights_of(rows, truth, "roc_auc")
    assert pairs_in_order(truth, weights @ rows[..., 1]) == 1
    assert weights[1] == 1


def test_blend_by_a_metric_takes_the_lesser_loss_of_equal_scores():
    truth = np.arange(40) % 2
    positive = np.stack([0.5 + each * (2 * truth - 1) for each in (0.1, 0.3, 0.2)])
    assert weights_of(of_two_classes(positive), truth, "accuracy").tolist() == [0, 1, 0]


def test_blend_by_a_metric_does_not_compare_predictions_across_inner_folds():
    truth = np.arange(40) % 2
    shifted = np.repeat([0.1, 0.8], 20) + 0.1 * truth  # in order within each fold
    flawed = np.where(np.arange(40) % 20 < 17, truth, 1 - truth) * 0.8 + 0.1
    rows = of_two_classes(np.stack([flawed, shifted]))
    apart, together = (weights_of(rows, truth, "roc_auc", folds=n)[1] for n in (2, 1))
    assert apart > 0.8 > together


def test_blend_by_a_metric_that_is_not_defined_goes_by_loss():
    rows, truth = noisy_candidates()
    rows, truth = rows[:, np.argsort(truth, kind="stable")], np.sort(truth)
    np.testing.assert_array_equal(
        weights_of(rows, truth, "roc_auc", folds=2), blend_weights(rows, log_losses(truth))
    )
    # Of three folds only the one in the middle has both classes: it decides alone.
    middle = slice(20, 40)
    loss = log_losses(truth)

    def key(average):
        score = pairs_in_order(truth[middle], average[middle, 1])
        return round(score, 9), -loss(average[None]).mean()

    found = weights_of(rows, truth, "roc_auc", folds=3)
    np.testing.assert_allclose(found, slow_greedy(rows, key))


@pytest.mark.parametrize("unit", [1e-9, 1e9])
def test_blend_of_numbers_by_mae_is_the_same_in_any_units(unit):
    truth = np.linspace(0, 1, 50)
    far = truth + np.where(np.arange(50) == 7, 9.0, 0.01)
    rows = np.stack([truth + 0.5, far])
    weights = weights_of(unit * rows, unit * truth, "mae")
    np.testing.assert_array_equal(weights, weights_of(rows, truth, "mae"))
    assert not np.array_equal(weights, weights_of(unit * rows, unit * truth))


def test_blend_of_numbers_by_mae_forgives_one_large_error():
    truth = np.linspace(0, 1, 50)
    far = truth + np.where(np.arange(50) == 7, 9.0, 0.01)
    rows = np.stack([truth + 0.5, far])

    def key(average):
        return -round(np.abs(average - truth).mean(), 9), -np.square(average - truth).mean()

    weights = weights_of(rows, truth, "mae")
    np.testing.assert_allclose(weights, slow_greedy(rows, key))
    assert weights[1] > 0.5 > weights_of(rows, truth)[1]
