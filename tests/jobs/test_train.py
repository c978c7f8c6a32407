"""Training a blend, the default, on data of one's own."""

import json

import numpy as np
import pytest

import saen
from saen.jobs.job import Job
from saen.jobs.train import train_model
from saen.learning.estimators import BlendEstimator
from saen.network.settings import DivergenceWarning
from tests.cli.commandline import fails, invoke

THREADS = saen.generate_threads(60, average_nodes=20, seed=3)
LEARNER = BlendEstimator.learner


@pytest.fixture
def data(tmp_path):
    file = tmp_path / "own.saen"
    saen.save(THREADS, file)
    return file


def only(monkeypatch, *estimators):
    """Let blends have these candidates."""
    learner = LEARNER(saen.Classifier(candidates=list(estimators)))
    monkeypatch.setattr(BlendEstimator, "learner", lambda _: learner)


def test_train_uses_the_best_by_default(data, tmp_path):
    out, table = tmp_path / "model.saen", tmp_path / "p.csv"
    printed = invoke("train", data, "--budget", "quick", "--out", out).stdout
    assert "CV accuracy" in printed
    assert "out of fold" in printed
    assert "blend of" in printed
    assert {*tmp_path.iterdir()} == {data, out}
    assert isinstance(saen.load(out), saen.Classifier)
    invoke("predict", out, data, "--out", table)
    header = table.read_text().splitlines()[0]
    assert header == "id,prediction,p_discussion,p_questions,agreement"
    assert "of this blend" in invoke("explain", out, data, "--graph", 3).output
    found = json.loads(invoke("inspect", out, "--json").stdout)
    assert found["members"][0]["score"] > 0.5
    assert set(found["tried"][0]) == {"candidate", "score", "weight"}
    assert found["settings"]["metric"] is None


def test_train_by_a_metric_says_so(data, tmp_path):
    preset, out = tmp_path / "by-f1.toml", tmp_path / "model.saen"
    preset.write_text('model = "blend"\n[defaults]\nmetric = "f1"\nbudget = "quick"\n')
    assert "CV F1 (macro)" in invoke("train", data, "--preset", preset, "--out", out).stdout
    assert saen.load(out).metric == "f1"
    printed = invoke("inspect", out).stdout
    assert "f1" in printed


def test_train_scores_a_blend_on_what_it_has_not_seen(data, tmp_path):
    job = Job(str(data), "best", {"budget": "quick"})
    report = train_model(job, tmp_path / "model.saen", hold_out=0.25)
    assert report.evaluation.fold_of.shape == (1, 60)
    assert (report.evaluation.fold_of >= 0).all()
    assert (report.held_out.fold_of >= 0).sum() == 15
    document = report.to_json()
    assert document["out_of_fold"] == report.evaluation.pooled_json()
    assert document["held_out"]["test"] == np.flatnonzero(report.held_out.fold_of[0] >= 0).tolist()


def test_train_says_what_no_candidate_tells_apart(tmp_path, monkeypatch):
    path, star = [(0, 1), (1, 2), (2, 3)], [(0, 1), (0, 2), (0, 3)]
    graphs = saen.Graphs.from_edge_lists([path, star] * 6, node_labels=["C"] * 48)
    saen.save(graphs.with_targets([0, 1] * 6), tmp_path / "own.saen")
    blind = saen.PartCountsClassifier("nodes", node_labels="node", depth=None)
    seeing = saen.PartCountsClassifier("neighbourhoods(depth=1)")
    for candidates, ceiling in (([blind], 0.5), ([blind, seeing], 1.0)):
        only(monkeypatch, *candidates)
        job = Job(str(tmp_path / "own.saen"), "best")
        facts = train_model(job, tmp_path / "model.saen", force=True).facts
        assert (facts.ceiling, facts.candidates) == (ceiling, len(candidates))


def test_train_says_where_a_gpu_is_of_no_use(data, tmp_path, monkeypatch):
    monkeypatch.setattr("saen.jobs.train.choose_device", lambda name: "cuda")
    line = "note: no networks are tried; part counts are trained on the CPU"
    for preset, overrides, expected in (("counts", {}, True), ("network", {"epochs": 1}, False)):
        said = []
        job = Job(str(data), preset, overrides)
        train_model(job, tmp_path / f"{preset}.saen", notify=said.append)
        assert (line in said) == expected


def test_training_page_of_a_blend_shows_the_curves_of_its_networks(data, tmp_path, monkeypatch):
    page = tmp_path / "page.html"
    only(monkeypatch, saen.SAENClassifier(epochs=6, n_models=2, radii=(0, 1), inner_folds=5))
    done = invoke("train", data, "--out", tmp_path / "model.saen", "--report", page)
    assert "cross entropy of 10 networks over 6 epochs" in page.read_text()
    header, row = done.stdout.partition("candidate")[2].splitlines()[:2]
    assert header.split() == ["CV", "accuracy", "weight"]
    assert f"<td>{' '.join(row.split()[-4:-2])}</td>" in page.read_text().replace(
        ' class="text"', ""
    )


def test_train_refuses_options_that_the_preset_does_not_have(tmp_path):
    message = fails("train", "threads", "--epochs", 3, "--out", tmp_path / "model.saen")
    assert message == "epochs does not apply to preset best: choose preset network or paper"


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
        invoke("train", data, "--out", out)
    weights = {each["candidate"]: each["weight"] for each in saen.load(out).tried_}
    assert weights["edge networks (attributes)"] == 0
    assert weights["part counts (edge bins)"] > 0.5


def test_train_resumes_a_blend(data, tmp_path, monkeypatch):
    out = tmp_path / "model.saen"
    arguments = ("train", data, "--budget", "quick", "--out", out)

    def stop(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("saen.learning.models.blend.BlendLearner._blended", stop)
        with pytest.raises((KeyboardInterrupt, SystemExit, AssertionError)):
            invoke(*arguments)
    assert not out.exists()
    with monkeypatch.context() as patch:  # the candidates are not tried again
        patch.setattr("saen.learning.models.counts._FoldProblem.solve", None)
        assert "resuming" in invoke(*arguments).output
    resumed = saen.load(out)
    invoke(*arguments, "--force")
    assert saen.load(out).tried_ == resumed.tried_
