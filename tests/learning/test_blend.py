"""Blends: chosen inside the training examples, averaged, saved, evaluated."""

import json
from contextlib import nullcontext

import numpy as np
import pytest
from sklearn.base import clone

import saen
from saen import InputError, explain
from saen.cluster.executors import open_executor
from saen.learning import blend as blend_module
from saen.learning.blend import BlendEstimator
from saen.learning.calibration import logits_of, tempered
from saen.learning.cross_validation import cross_validate
from saen.learning.jobs.evaluate import Protocol, evaluate_dataset
from saen.learning.jobs.job import Job
from saen.learning.jobs.train import DataFacts, train_model
from saen.learning.splits import make_splits
from saen.learning.trainers import Trainer
from saen.network.settings import DivergenceError, DivergenceWarning
from tests.cli.commandline import fails, invoke

THREADS = saen.generate_threads(60, average_nodes=20, seed=3)


def candidates():
    return [
        saen.PartCountsClassifier("neighbourhoods(depth=2)"),
        saen.SAENClassifier(epochs=6, n_models=2, batch_size=20, radii=(0, 1)),
        saen.SAENClassifier(epochs=0, n_models=1),
    ]


def facts_of_training(job, out):
    """What is said up to the facts about the data; the training stops there."""
    told = []

    def notify(part):
        told.append(part)
        if isinstance(part, DataFacts):
            raise InputError("far enough")

    with pytest.raises(InputError, match="far enough"):
        train_model(job, out, limited=True, notify=notify)
    return told


@pytest.fixture(scope="module")
def model():
    return saen.BlendClassifier(candidates=candidates()).fit(THREADS, THREADS.targets)


def test_blend_is_the_weighted_mean_of_its_members(model):
    assert [each["candidate"] for each in model.tried_] == [
        "0: PartCountsClassifier",
        "1: SAENClassifier",
        "2: SAENClassifier",
    ]
    assert sum(each["weight"] for each in model.tried_) == pytest.approx(1)
    by_hand = sum(
        each.weight * each.estimator.predict_proba(THREADS[:7]) for each in model.members_
    )
    calibrated = tempered(by_hand, model.temperature_)
    np.testing.assert_allclose(model.predict_proba(THREADS[:7]), calibrated)
    weights = model.weights_
    assert (np.diff(weights) <= 0).all()
    assert model.score(THREADS, THREADS.targets) > 0.8
    assert model.embed(THREADS[:2]).shape[0] == 2


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
    blend = saen.BlendClassifier(
        candidates=[
            saen.PartCountsClassifier("neighbourhoods(depth=2)"),
            saen.SAENClassifier(epochs=25, n_models=1, radii=(0, 1, 2)),
        ]
    ).fit(graphs[:60], y[:60])
    counts, networks = (each.estimator.score(graphs[60:], y[60:]) for each in blend.members_)
    assert networks < counts - 0.05
    assert blend.score(graphs[60:], y[60:]) > counts - 0.03


def test_blend_members_are_refitted_with_all_their_networks(model):
    [networks] = [each for each in model.members_ if each.name == "1: SAENClassifier"]
    assert networks.estimator.network_.n_models == 2


def test_blend_is_the_same_when_fitted_again(model):
    again = clone(model).fit(THREADS, THREADS.targets)
    np.testing.assert_array_equal(again.predict_proba(THREADS), model.predict_proba(THREADS))


def test_blend_does_not_look_at_examples_of_weight_zero():
    kept = np.arange(60) % 4 > 0
    flipped = np.where(THREADS.targets == "questions", "discussion", "questions")
    changed = np.where(kept, THREADS.targets, flipped)
    first, second = (
        saen.BlendClassifier(candidates=candidates()[:2]).fit(
            THREADS, y, sample_weight=kept.astype(float)
        )
        for y in (THREADS.targets, changed)
    )
    assert first.tried_ == second.tried_
    np.testing.assert_array_equal(first.predict_proba(THREADS), second.predict_proba(THREADS))


def test_blend_decomposes_once_for_all_candidates_of_a_decomposition(monkeypatch):
    from saen.learning import preparation

    calls = []
    original = preparation.compress_graphs
    monkeypatch.setattr(
        preparation, "compress_graphs", lambda *a, **k: calls.append(1) or original(*a, **k)
    )
    same = [saen.SAENClassifier(epochs=epochs, n_models=1, radii=(0, 1)) for epochs in (1, 2)]
    blend = saen.BlendClassifier(candidates=same)
    prepared = blend.prepare(THREADS)
    blend.fit(prepared, THREADS.targets).predict(prepared)
    assert len(calls) == 1


def test_blend_is_saved_and_loaded(model, tmp_path):
    model.save(tmp_path / "model.saen")
    loaded = saen.load(tmp_path / "model.saen")
    assert isinstance(loaded, saen.BlendClassifier)
    assert [each.name for each in loaded.members_] == [each.name for each in model.members_]
    assert loaded.tried_ == model.tried_
    np.testing.assert_array_equal(loaded.predict(THREADS), model.predict(THREADS))
    np.testing.assert_allclose(
        loaded.predict_proba(THREADS), model.predict_proba(THREADS), atol=1e-6
    )
    with pytest.raises(InputError, match="not a SAENClassifier"):
        saen.SAENClassifier.load(tmp_path / "model.saen")


def test_blend_of_numbers(tmp_path):
    blend = saen.BlendRegressor(
        candidates=[
            saen.PartCountsRegressor("neighbourhoods(depth=1)"),
            saen.SAENRegressor(epochs=4, n_models=1, radii=(0, 1)),
        ]
    )
    sizes = THREADS.sizes.astype(float)
    blend.fit(THREADS, sizes)
    assert blend.score(THREADS, sizes) > 0.5
    blend.save(tmp_path / "numbers.saen")
    again = saen.BlendRegressor.load(tmp_path / "numbers.saen")
    np.testing.assert_allclose(again.predict(THREADS), blend.predict(THREADS), rtol=1e-5)
    result = cross_validate(blend, THREADS, sizes, repeats=1, folds=3)
    assert result.scores("mae").mean() < np.abs(sizes - sizes.mean()).mean()


def test_blend_of_nothing_and_of_one_class_are_refused():
    with pytest.raises(InputError, match="at least one candidate"):
        saen.BlendClassifier(candidates=[]).fit(THREADS, THREADS.targets)
    with pytest.raises(InputError, match="two classes"):
        saen.BlendClassifier().fit(THREADS, ["a"] * 60)
    with pytest.raises(InputError, match="60 examples, but 59 targets"):
        saen.BlendClassifier(candidates=candidates()).fit(THREADS, THREADS.targets[:59])
    early = [*candidates(), saen.SAENClassifier(patience=3)]
    with pytest.raises(InputError, match=r"^\d: SAENClassifier stops early \(patience\)"):
        saen.BlendClassifier(candidates=early).fit(THREADS, THREADS.targets)


@pytest.mark.parametrize("wrong", [saen.PartCountsRegressor(), "modern"])
def test_blend_refuses_candidates_of_another_kind(wrong):
    blend = saen.BlendClassifier(candidates=[*candidates()[:1], wrong])
    name = type(wrong).__name__
    message = f"candidate 1: {name}: a BlendClassifier needs candidates of type SAENClassifier or "
    with pytest.raises(InputError, match=message):
        blend.fit(THREADS, THREADS.targets)
    with pytest.raises(InputError, match=message):
        cross_validate(blend, THREADS, THREADS.targets, repeats=1, folds=2)
    numbers = saen.BlendRegressor(candidates=[saen.PartCountsClassifier()])
    with pytest.raises(InputError, match="candidate 0: PartCountsClassifier: a BlendRegressor"):
        numbers.fit(THREADS, THREADS.sizes)


def test_blend_refuses_a_candidate_with_a_wrong_argument_before_anything_is_trained():
    wrong = saen.SAENClassifier(epochs=-1)
    with pytest.raises(InputError, match="epochs"):
        saen.BlendClassifier(candidates=[wrong]).fit(THREADS, THREADS.targets)


def test_blend_explains_its_largest_member(model):
    explanation = saen.explain(model, THREADS, 0)
    alone = saen.explain(model.members_[0].estimator, THREADS, 0)
    assert explanation.output == alone.output


# -- candidates that diverge -------------------------------------------------------------------

LEFT_OUT = r"1: SAENClassifier: diverged, left out \(lower learning_rate"


def diverging():
    return saen.SAENClassifier(epochs=3, n_models=1, learning_rate=1e30, normalisation="none")


def with_a_diverging_candidate():
    own = candidates()
    return saen.BlendClassifier(candidates=[own[0], diverging(), own[1]])


def test_blend_leaves_out_a_candidate_that_diverges(tmp_path):
    with pytest.warns(DivergenceWarning, match=LEFT_OUT) as caught:
        model = with_a_diverging_candidate().fit(THREADS, THREADS.targets)
    left_out = [each for each in caught if "left out" in str(each.message)]
    assert [each.filename for each in left_out] == [__file__]
    names = ["0: PartCountsClassifier", "1: SAENClassifier", "2: SAENClassifier"]
    assert [each["candidate"] for each in model.tried_] == names
    assert model.tried_[1] == {"candidate": names[1], "score": None, "weight": 0.0}
    own = candidates()
    plain = saen.BlendClassifier(candidates=[own[0], own[1]]).fit(THREADS, THREADS.targets)
    np.testing.assert_array_equal(model.predict_proba(THREADS), plain.predict_proba(THREADS))
    model.save(tmp_path / "model.saen")
    assert saen.load(tmp_path / "model.saen").tried_ == model.tried_


@pytest.mark.parametrize("cluster", [None, "serial"])
def test_blend_evaluation_leaves_out_a_candidate_that_diverges_and_resumes(cluster, tmp_path):
    blend = with_a_diverging_candidate()
    options = {"repeats": 1, "folds": 2, "folder": tmp_path}
    with (
        open_executor(cluster) if cluster else nullcontext() as executor,
        pytest.warns(DivergenceWarning, match=LEFT_OUT),
    ):
        first = cross_validate(blend, THREADS, THREADS.targets, executor=executor, **options)
    assert first.tried[1] == {"candidate": "1: SAENClassifier", "score": None, "weight": 0.0}
    assert np.isfinite(first.probabilities).all()
    for members in first.chosen:
        assert sum(each["weight"] for each in members) == pytest.approx(1)
    assert not [*tmp_path.glob("*.checkpoint")]
    with pytest.warns(DivergenceWarning, match=LEFT_OUT):
        again = cross_validate(blend, THREADS, THREADS.targets, **options)
    np.testing.assert_array_equal(again.probabilities, first.probabilities)


def test_blend_of_nothing_but_candidates_that_diverge_is_an_error():
    with pytest.raises(DivergenceError, match="training diverged in epoch"):
        saen.BlendClassifier(candidates=[diverging()]).fit(THREADS, THREADS.targets)


def test_blend_leaves_out_a_candidate_that_diverges_only_on_all_examples(monkeypatch):
    rng = np.random.default_rng(2)  # noisy classes, so that several candidates have a weight
    y = np.where(rng.random(60) < 0.3, rng.permutation(THREADS.targets), THREADS.targets)
    blend = saen.BlendClassifier(candidates=candidates())
    usual = clone(blend).fit(THREADS, y)
    assert usual.tried_[1]["weight"] > 0
    original_fit, original_train = blend_module.fit_or_interrupt, Trainer.train

    def fit(member, *others):
        if isinstance(member, saen.SAENClassifier) and member.epochs == 6:
            raise DivergenceError("epoch 2", "rescale it")
        original_fit(member, *others)

    def train(trainer, stage, *others):
        if stage == "outer-1":
            raise DivergenceError("epoch 2", "rescale it")
        return original_train(trainer, stage, *others)

    monkeypatch.setattr(blend_module, "fit_or_interrupt", fit)
    monkeypatch.setattr(Trainer, "train", train)
    left_out = r"1: SAENClassifier: diverged, left out \(rescale it\)"
    with pytest.warns(DivergenceWarning, match=left_out):
        model = clone(blend).fit(THREADS, y)
    assert [each["weight"] for each in model.tried_][1] == 0
    assert model.weights_.sum() == pytest.approx(1)
    with pytest.warns(DivergenceWarning, match=left_out):
        result = cross_validate(blend, THREADS, y, repeats=1, folds=2)
    assert result.tried[1]["weight"] == 0
    np.testing.assert_allclose(result.probabilities.sum(axis=-1), 1)


def test_train_survives_one_wild_edge_weight(tmp_path):
    rng = np.random.default_rng(0)
    lines = []
    for number in range(40):
        weights = rng.normal(2 * (number % 2), 0.3, 4).round(3).tolist()
        weights[0] = 1e20 if number == 7 else weights[0]
        edges = [{"source": i, "target": i + 1, "attributes": [w]} for i, w in enumerate(weights)]
        lines.append({"nodes": 5, "edges": edges, "target": "ab"[number % 2]})
    data, out = tmp_path / "wild.jsonl", tmp_path / "model.saen"
    data.write_text("\n".join(map(json.dumps, lines)))
    with pytest.warns(
        DivergenceWarning, match=r"left out \(attribute 0 of the edges reaches 1e\+20"
    ):
        invoke("train", data, "--budget", "quick", "--no-holdout", "--out", out)
    weights = {each["candidate"]: each["weight"] for each in saen.load(out).tried_}
    assert weights["edge networks, attributes"] == 0
    assert weights["part counts, edge bins"] > 0.5


# -- evaluation --------------------------------------------------------------------------------


def test_blend_is_chosen_without_the_test_fold():
    blend = saen.BlendClassifier(candidates=candidates()[:2])
    splits = make_splits(THREADS.targets, 1, 3, seed=0)
    result = cross_validate(blend, THREADS, THREADS.targets, splits=splits)
    assert result.stop == "nested"
    test = splits[0][0][1]
    changed = THREADS.targets.copy()
    changed[test] = np.where(changed[test] == "questions", "discussion", "questions")
    again = cross_validate(blend, THREADS, changed, splits=splits)
    assert again.chosen[0] == result.chosen[0]
    np.testing.assert_allclose(
        again.probabilities[0, test], result.probabilities[0, test], atol=1e-5
    )
    for members in result.chosen:
        assert sum(each["weight"] for each in members) == pytest.approx(1)
    assert [each["candidate"] for each in result.tried] == [
        "0: PartCountsClassifier",
        "1: SAENClassifier",
    ]


def test_blend_with_one_candidate_equals_it():
    networks = saen.SAENClassifier(epochs=3, n_models=2, radii=(0, 1), dtype="float64")
    options = {"repeats": 1, "folds": 3}
    blend = saen.BlendClassifier(candidates=[networks])
    blended = cross_validate(blend, THREADS, THREADS.targets, **options)
    networks.set_params(inner_folds=0)
    alone = cross_validate(networks, THREADS, THREADS.targets, **options)
    for _, test in alone.splits[0]:  # the same but for the temperature of the fold
        odds = [logits_of(each.probabilities[0, test]) for each in (blended, alone)]
        temperature = odds[1][0, 0] / odds[0][0, 0]
        np.testing.assert_allclose(odds[0] * temperature, odds[1], rtol=1e-6)


def test_blend_takes_for_identical_what_no_candidate_tells_apart(tmp_path, monkeypatch):
    path, star = [(0, 1), (1, 2), (2, 3)], [(0, 1), (0, 2), (0, 3)]
    graphs = saen.Graphs.from_edge_lists([path, star] * 6, node_labels=["C"] * 48)
    blind = saen.PartCountsClassifier("nodes", node_labels="node", depth=None)
    seeing = saen.PartCountsClassifier("neighbourhoods(depth=1)")
    for candidates, share in (([blind], 0.5), ([blind, seeing], 1.0)):
        blend = saen.BlendClassifier(candidates=candidates)
        result = cross_validate(blend, graphs, [0, 1] * 6, repeats=1, folds=2)
        assert result.to_json()["ceiling"] == share
    saen.save(graphs.with_targets([0, 1] * 6), tmp_path / "own.saen")
    both = blend.listed(graphs)
    monkeypatch.setattr(BlendEstimator, "listed", lambda *_: both)
    told = facts_of_training(Job(str(tmp_path / "own.saen"), "best"), tmp_path / "model.saen")
    assert (told[-1].ceiling, told[-1].candidates) == (1.0, 2)


def test_blend_evaluation_resumes(tmp_path, monkeypatch):
    blend = saen.BlendClassifier(candidates=candidates()[:2])
    options = {"repeats": 1, "folds": 2, "folder": tmp_path}
    first = cross_validate(blend, THREADS, THREADS.targets, **options)
    # Everything that was trained is there: nothing is fitted a second time.
    monkeypatch.setattr("saen.learning.trainers.fit_parts", None)
    monkeypatch.setattr("saen.network.ensemble.train", None)
    again = cross_validate(blend, THREADS, THREADS.targets, **options)
    np.testing.assert_array_equal(again.probabilities, first.probabilities)
    assert again.chosen == first.chosen


@pytest.mark.parametrize("others", [[1, 0, 2], [0, 1]])
def test_blend_evaluation_resumed_with_other_candidates_trains_them(others, tmp_path):
    """As after an update of saen, whose default candidates are others."""
    listed = [*counts_of_depths()[:1], *candidates()[:2]]
    options = {"repeats": 1, "folds": 2}
    blend = saen.BlendClassifier(candidates=listed)
    cross_validate(blend, THREADS, THREADS.targets, folder=tmp_path, **options)
    changed = saen.BlendClassifier(candidates=[listed[i] for i in others])
    fresh = cross_validate(changed, THREADS, THREADS.targets, **options)
    resumed = cross_validate(changed, THREADS, THREADS.targets, folder=tmp_path, **options)
    assert resumed.tried == fresh.tried
    np.testing.assert_array_equal(resumed.probabilities, fresh.probabilities)


def counts_of_depths():
    return [
        saen.PartCountsClassifier(f"neighbourhoods(depth={depth})", C=C, depth=depth)
        for depth, C in ((1, 0.01), (1, 10.0), (2, 0.1))
    ]


@pytest.mark.parametrize("kind", ["Classifier", "Regressor"])
def test_one_inner_split_is_enough_to_choose_and_calibrate(kind):
    y = THREADS.targets if kind == "Classifier" else THREADS.sizes.astype(float)
    counts = getattr(saen, f"PartCounts{kind}")
    networks = getattr(saen, f"SAEN{kind}")(epochs=2, n_models=1)
    blend = getattr(saen, f"Blend{kind}")(candidates=[counts(), networks], inner_folds=1)
    model = clone(blend).fit(THREADS, y)
    assert sum(each["weight"] for each in model.tried_) == pytest.approx(1)
    assert model.predict(THREADS).shape == (60,)
    evaluation = cross_validate(blend, THREADS, y, repeats=1, folds=2)
    assert np.isfinite(evaluation.outputs).all()


def test_blend_by_a_metric_in_fit_and_in_evaluation():
    rng = np.random.default_rng(2)
    noisy = rng.random(60) < 0.3
    y = np.where(noisy, rng.permutation(THREADS.targets), THREADS.targets)
    options = {"repeats": 1, "folds": 2}
    blend = saen.BlendClassifier(candidates=counts_of_depths(), inner_folds=2)
    own = clone(blend).set_params(metric="roc_auc")
    model, plain = own.fit(THREADS, y), clone(blend).fit(THREADS, y)
    assert [each["weight"] for each in model.tried_] != [each["weight"] for each in plain.tried_]
    prepared = blend.prepare(THREADS)
    by_loss, asked, by_own, both = (
        cross_validate(each, prepared, y, metric=metric, **options)
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
    # What is shown is one thing, what the blend was asked to weigh by another.
    assert both.metric == "accuracy"
    assert weights(both) == weights(asked)


def test_blend_refuses_a_metric_of_another_task():
    with pytest.raises(InputError, match=r"metric for classes is one of accuracy, .*, not 'mae'"):
        saen.BlendClassifier(metric="mae").fit(THREADS, THREADS.targets)
    with pytest.raises(InputError, match="metric for real numbers is one of mae"):
        saen.BlendRegressor(metric="f1").fit(THREADS, THREADS.sizes)


def test_blend_metric_is_a_setting_of_runs_presets_and_models(tmp_path, monkeypatch):
    data, run = tmp_path / "own.saen", tmp_path / "run"
    saen.save(THREADS, data)
    listed = saen.BlendClassifier(candidates=counts_of_depths()).listed(THREADS)
    monkeypatch.setattr(BlendEstimator, "listed", lambda *_: listed)
    job = Job(str(data), "best")
    plain = evaluate_dataset(job, Protocol(repeats=1, folds=2), run)
    assert (plain.recorded["metric"], "metric" in plain.recorded["settings"]) == ("accuracy", False)
    with pytest.raises(InputError, match=r"other settings \(settings\)"):
        evaluate_dataset(job, Protocol(repeats=1, folds=2, metric="accuracy"), run)
    preset = tmp_path / "by-f1.toml"
    preset.write_text('model = "blend"\n[defaults]\nmetric = "f1"\n')
    for job in (Job(str(data), str(preset)), Job(str(data), "best", {"metric": "f1"})):
        report = evaluate_dataset(job, Protocol(repeats=1, folds=2))
        assert (report.recorded["metric"], report.evaluation.metric) == ("f1", "f1")
    out = tmp_path / "model.saen"
    trained = invoke("train", data, "--preset", preset, "--no-holdout", "--out", out)
    assert "inner F1 (macro)" in trained.stdout
    assert saen.load(out).metric == "f1"
    printed = invoke("inspect", out).stdout
    assert "weights by" in printed
    assert "F1 (macro)" in printed
    assert "inner f1" in printed


def test_blend_has_no_epoch_to_peek_at():
    with pytest.raises(InputError, match="no epoch"):
        cross_validate(saen.BlendClassifier(), THREADS, THREADS.targets, stop="peek")


@pytest.fixture
def few_candidates(monkeypatch):
    """The default list, with networks that train for two epochs."""
    original = BlendEstimator.listed

    def quick(self, data):
        listed = original(self, data)
        for each in listed:
            for estimator in (each.estimator, each.trial):
                if hasattr(estimator, "epochs"):
                    estimator.set_params(epochs=2)
        return listed

    monkeypatch.setattr(BlendEstimator, "listed", quick)


def test_preset_best_is_evaluated_nested(few_candidates, tmp_path):
    job = Job("threads", "best", {"budget": "quick"})
    report = evaluate_dataset(job, Protocol(repeats=1, folds=2), tmp_path / "run")
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert summary["protocol"]["stop"] == "nested"
    assert len(summary["chosen"]) == 2
    assert {"candidate", "score", "weight"} <= set(summary["tried"][0])
    assert report.evaluation.outputs.shape[0] == 1


def test_train_uses_the_best_by_default(few_candidates, tmp_path):
    out, table = tmp_path / "model.saen", tmp_path / "p.csv"
    printed = invoke("train", "threads", "--budget", "quick", "--out", out).stdout
    assert "inner accuracy" in printed
    assert "blend of" in printed
    assert list(tmp_path.iterdir()) == [out]
    assert isinstance(saen.load(out), saen.BlendClassifier)
    invoke("predict", out, "threads", "--out", table)
    header = table.read_text().splitlines()[0]
    assert header == "id,prediction,p_discussion,p_questions,agreement"
    assert "of this blend" in invoke("explain", out, "threads", "--graph", 3).output
    found = json.loads(invoke("inspect", out, "--json").stdout)
    assert found["weights_by"] == "log loss"
    assert found["members"][0]["inner_accuracy"] > 0.5
    assert set(found["tried"][0]) == {"candidate", "inner_accuracy", "weight"}


def test_training_page_of_a_blend_shows_the_curves_of_its_networks(tmp_path, monkeypatch):
    data, page = tmp_path / "own.saen", tmp_path / "page.html"
    saen.save(THREADS, data)
    networks = saen.BlendClassifier(candidates=candidates()[1:2]).listed(THREADS)
    monkeypatch.setattr(BlendEstimator, "listed", lambda *_: networks)
    out = ("--no-holdout", "--out", tmp_path / "model.saen", "--report", page)
    invoke("train", data, "--preset", "best", *out)
    assert "loss of 2 networks over 6 epochs" in page.read_text()


def test_train_on_large_data_uses_networks_unless_asked(tmp_path, monkeypatch):
    data = tmp_path / "own.saen"
    saen.save(THREADS[:12], data)
    monkeypatch.setattr("saen.learning.candidates.MAX_EXAMPLES", 10)
    told = facts_of_training(Job(str(data), "best"), tmp_path / "model.saen")
    assert "12 examples (more than 10): preset modern is used" in told[0]
    assert told[1].decomposition["name"] == "ego"


def test_train_with_options_of_networks_uses_networks(tmp_path):
    out = tmp_path / "model.saen"
    invoke("train", "threads", "--epochs", 1, "--no-holdout", "--out", out)
    assert isinstance(saen.load(out), saen.SAENClassifier)


def test_train_refuses_options_that_the_preset_does_not_have(tmp_path):
    arguments = ("train", "threads", "--preset", "best", "--epochs", 3)
    message = fails(*arguments, "--out", tmp_path / "model.saen")
    assert message == "epochs does not apply to preset best"


def test_train_resumes_a_blend(few_candidates, tmp_path, monkeypatch):
    out = tmp_path / "model.saen"
    arguments = ("train", "threads", "--budget", "quick", "--no-holdout", "--out", out)

    def stop(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("saen.learning.blend.fit_or_interrupt", stop)
        with pytest.raises((KeyboardInterrupt, SystemExit, AssertionError)):
            invoke(*arguments)
    assert not out.exists()
    with monkeypatch.context() as patch:  # the candidates are not tried again
        patch.setattr("saen.network.ensemble.train", None)
        patch.setattr("saen.learning.trainers.fit_parts", None)
        assert "resuming" in invoke(*arguments).output
    resumed = saen.load(out)
    invoke(*arguments, "--force")
    assert saen.load(out).tried_ == resumed.tried_


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
    blend = getattr(saen, f"Blend{kind}")(candidates=own, inner_folds=2, metric=metric)
    model = clone(blend).fit(graphs, table)
    assert model.score(graphs, table) > 0.6
    model.save(tmp_path / "model.saen")
    again = saen.load(tmp_path / "model.saen")
    np.testing.assert_array_equal(again.predict(graphs), model.predict(graphs))
    assert again.target_names_ == ["0", "1"]
    assert explain(again, graphs, 1, target="1").target == "1"
    evaluation = cross_validate(blend, graphs, table, repeats=1, folds=2)
    assert evaluation.metric == metric
    assert evaluation.outputs.shape == (1, 40, 2)
    assert set(evaluation.target_scores()) == {"0", "1"}
