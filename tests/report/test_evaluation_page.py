"""The page about a training or an evaluation, read back as HTML."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pytest

import saen
from saen import Documents, Graphs, NestedData, compress_graphs
from saen.decompositions import Ego
from saen.errors import MissingExtraError
from saen.learning.metrics import CLASSIFICATION_METRICS, classification_scores
from saen.report.evaluation_page import (
    MAX_CLASSES,
    MAX_HARDEST,
    Predictions,
    Report,
    check_report,
    write_report,
)
from tests.cli.commandline import fails, invoke, run
from tests.report.html_reader import Element, pairs, read_html, tables

pytest.importorskip("matplotlib", reason="needs the extra 'plots'")

HOSTILE = "<script>alert('1')</script>&\"$x^{$"


def read(path: Path) -> Element:
    return read_html(path.read_text(encoding="utf-8"))


def headings(page: Element) -> list[str]:
    return [heading.text for heading in page.all("h2")]


def captions(page: Element) -> list[str]:
    return [caption.text for caption in page.all("figcaption")]


def made_up(data=None, predictions=None, **changes) -> Report:
    """Everything that a report needs, about made-up predictions of some trees."""
    if data is None:
        data = saen.generate_threads(40, average_nodes=12, seed=2)
    if predictions is None:
        classes, codes = np.unique(data.targets, return_inverse=True)
        random = np.random.default_rng(0)
        outputs = random.dirichlet(np.ones(len(classes)), (3, len(codes)))
        predictions = Predictions(classes, codes, outputs)
    levels = [
        {"level": 0, "name": "nodes", "objects": 900, "unique": 4},
        {"level": 1, "name": "parents", "objects": 40, "unique": 39},
    ]
    for level in levels:
        level |= {"entries": 900 * level["level"], "entries_compressed": 77 * level["level"]}
    fields = {
        "title": "threads: made up",
        "summary": {"accuracy": "50 %"},
        "data": data,
        "levels": levels,
        "curves": {"loss": {"training": np.linspace(1, 0, 20)[:, None] * [1.0, 1.1, 1.2]}},
        "predictions": predictions,
        "command": "saen evaluate threads",
        "settings": {"seed": 3, "hidden": [[8], [4]]},
        "versions": {"saen": "1"},
    }
    return Report(**fields | changes)


def written(tmp_path: Path, **changes) -> Element:
    write_report(tmp_path / "page.html", made_up(**changes))
    return read(tmp_path / "page.html")


# -- from the command line ---------------------------------------------------------------------


def test_evaluation_page_says_what_json_says(tmp_path, monkeypatch):
    path = tmp_path / "page.html"
    typed = ["evaluate", "threads", "--repeats", "2", "--folds", "3"]
    typed += ["--preset", "network", "--epochs", "2"]
    typed += ["--report", str(path)]
    monkeypatch.setattr("sys.argv", ["saen", *typed])
    report = run(*typed)
    page = read(path)
    said, accuracy, duplicates = pairs(page), report["accuracy"], report["duplicates"]
    assert page.all("h1")[0].text == "threads: 2 × 3-fold cross-validation of preset network"
    assert said["accuracy"].startswith(f"{100 * accuracy['mean']:.1f} % (95 % interval ")
    assert page.all("strong")[0].text == f"{100 * accuracy['mean']:.1f} %"
    others = [metric.title for metric in CLASSIFICATION_METRICS.values()][1:]
    assert len(others) == 6
    assert all(title in said["other scores"] for title in others)
    assert said["majority baseline"] == "accuracy 50.0 %"
    assert ("ceiling" in said) == (report["ceiling_folds"] < 1)
    assert ("duplicates" in said) == (duplicates["share"] > 0)
    assert said["graphs"] == "300"
    assert said["seed"] == "0"
    assert said["splits"] == "stratified, seeds 0 … 1"
    assert said["checksum of data"] == report["data"]
    assert said["epochs"] == "2"
    assert "labels log-degree:4" in said["parts"]
    assert page.all("code")[0].text == f"saen {' '.join(typed)}"
    assert f"torch {report['versions']['torch']}" in page.text
    assert headings(page) == [
        "How good it is",
        "Calibration",
        "Hardest graphs",
        "Learning curves",
        "Data",
        "Hierarchy before and after compression",
        "How to reproduce",
    ]
    threads = saen.load_dataset("threads")
    compressed = compress_graphs(threads, Ego((0, 1), "log-degree:4").fit(threads))
    for row, level in zip(tables(page)[2][1:], compressed.levels(), strict=True):
        assert row[:3] == [level["name"], f"{level['objects']:,}", f"{level['unique']:,}"]
    # 2 repeats × 3 folds × 5 inner folds
    assert "cross entropy of 30 networks over 2 epochs" in page.text
    # Tests of the table of classes: every graph once in each repeat.
    assert [row[1] for row in tables(page)[0][1:]] == ["300", "300"]
    right = sum(float(row[2]) / 100 * 300 for row in tables(page)[0][1:]) / 600
    assert right == pytest.approx(accuracy["mean"], abs=1e-3)


TRAIN = ("train", "threads", "--preset", "network")


def test_training_page_is_about_what_was_held_out(tmp_path):
    path = tmp_path / "page.html"
    typed = [*TRAIN, "--epochs", "2", "--hold-out", "0.1", "--out", tmp_path / "m.saen"]
    report = run(*typed, "--report", path)
    page = read(path)
    assert "answers" not in report["held_out"]
    assert f"{100 * report['held_out']['accuracy']:.1f} % on 30" in pairs(page)["held out"]
    assert page.all("strong")[0].text == f"{100 * report['held_out']['accuracy']:.1f} %"
    said = pairs(page)["all scores"]
    assert all(name in said for name in ("balanced accuracy", "ROC-AUC", "log loss", "Matthews"))
    assert "inner validation" in page.text  # the curve beside that of training
    assert "cross entropy of 5 networks over 2 epochs" in page.text
    confusion = np.array(report["held_out"]["confusion"])
    assert [row[1] for row in tables(page)[0][1:]] == [str(n) for n in confusion.sum(axis=1)]
    recall = [round(100 * row[i] / row.sum(), 1) for i, row in enumerate(confusion)]
    assert [float(row[2]) for row in tables(page)[0][1:]] == recall
    found = [re.match(r"graph (\d+): true", words) for words in captions(page)]
    drawn = [int(match[1]) for match in found if match]
    assert len(drawn) == len(page.all("details")) == MAX_HARDEST
    assert set(drawn) <= set(report["held_out"]["test"])
    # Each comes with what the model says of it, and the command that shows everything.
    model = saen.load(tmp_path / "m.saen")
    explanation = saen.explain(model, saen.load_dataset("threads"), drawn[0])
    told = page.all("details")[0].text
    assert explanation.sentence in told
    assert f"saen explain {tmp_path / 'm.saen'} threads --graph {drawn[0]} --out" in told
    telling = tables(page)[1]
    assert telling[0][:2] == ["contribution", "evidence for"]


def test_training_page_is_about_inner_folds_where_nothing_else_was_held_out(tmp_path):
    path = tmp_path / "page.html"
    report = run(*TRAIN, "--epochs", "1", "--out", tmp_path / "m.saen", "--report", path)
    page, found = read(path), report["out_of_fold"]
    assert pairs(page)["splits"] == "inner folds of the training"
    assert f"{100 * found['accuracy']:.1f} % on 300" in pairs(page)["out of fold"]
    assert sum(int(row[1]) for row in tables(page)[0][1:]) == 300
    assert any(words.startswith("Hardest") for words in headings(page))


def test_training_page_without_inner_folds_says_so(tmp_path):
    path, preset = tmp_path / "page.html", tmp_path / "own.toml"
    preset.write_text("[defaults]\nepochs = 1\ninner_folds = 0\n")
    typed = ["train", "threads", "--preset", preset, "--out", tmp_path / "m.saen"]
    invoke(*typed, "--report", path)
    page = read(path)
    assert "Nothing was held out" in page.text
    assert not any(words.startswith("Hardest") for words in headings(page))


def test_training_page_of_a_resumed_run_is_the_same(tmp_path, monkeypatch):
    # What was predicted for the held-out part is remembered beside the model, not computed anew.
    saen.save(saen.generate_threads(60, average_nodes=12, seed=1), tmp_path / "few.saen")
    typed = ["train", tmp_path / "few.saen", "--preset", "network", "--epochs", "2"]
    typed += ["--hold-out", "0.1", "--out", tmp_path / "m.saen"]
    whole, resumed = tmp_path / "whole.html", tmp_path / "resumed.html"
    monkeypatch.setattr("sys.argv", ["saen", "train", "threads"])
    invoke(*typed, "--report", whole)

    def killed(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("saen.learning.estimators.Estimator.save", killed)
        with pytest.raises((KeyboardInterrupt, AssertionError)):
            invoke(*typed, "--force", "--report", resumed)
    assert not resumed.exists()
    (tmp_path / "m.saen").unlink()
    invoke(*typed, "--report", resumed)
    assert resumed.read_bytes() == whole.read_bytes()


@pytest.mark.parametrize("command", ["evaluate", "train"])
def test_report_that_cannot_be_written_is_refused_before_the_work(tmp_path, monkeypatch, command):
    def work(*_, **__):
        raise AssertionError

    monkeypatch.setattr("saen.jobs.job.load_input", work)
    out = ["--out", tmp_path / "run"]
    error = fails(command, "threads", *out, "--report", tmp_path)
    assert error == f"{tmp_path}: is a folder, not a file"
    nowhere = tmp_path / "no" / "page.html"
    error = fails(command, "threads", *out, "--report", nowhere)
    assert error == f"{nowhere}: cannot be written (no such folder)"
    assert list(tmp_path.iterdir()) == []


# -- the page ----------------------------------------------------------------------------------


def test_page_is_self_contained(tmp_path):
    page = written(tmp_path)
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert page.all("html")[0].attributes["lang"] == "en"
    assert any(meta.attributes.get("name") == "viewport" for meta in page.all("meta"))
    assert not re.search(r"@import|url\((?!#)|<script|<link|https?://", text)
    every = [
        element for tag in set(re.findall(r"<(\w+)", text.lower())) for element in page.all(tag)
    ]
    for element in every:
        for name in ("src", "href"):
            target = element.attributes.get(name)
            assert target is None or target.startswith(("#", "data:"))
    ids = [element.attributes["id"] for element in every if "id" in element.attributes]
    assert len(ids) == len(set(ids))
    references = re.findall(r'(?:href="|url\()#([^")]+)', text)
    assert references
    assert set(references) <= set(ids)


def test_page_tells_screen_readers_what_figures_show(tmp_path):
    page = written(tmp_path)
    drawings = page.all("svg")
    # Confusion, ROC, calibration, the hardest, loss, sizes.
    assert len(drawings) == len(page.all("figure")) == 5 + MAX_HARDEST
    for drawing, caption in zip(drawings, captions(page), strict=True):
        assert drawing.attributes["role"] == "img"
        assert drawing.attributes["aria-label"] == caption != ""


def test_page_of_equal_reports_has_equal_bytes(tmp_path):
    for name in ("a", "b"):
        write_report(tmp_path / name, made_up())
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_page_shows_recall_precision_and_calibration(tmp_path):
    predictions = made_up().predictions
    classes = predictions.classes
    scores = classification_scores(classes[predictions.targets], predictions.outputs, classes)
    page = written(tmp_path)
    for code, row in enumerate(tables(page)[0][1:]):
        assert row[:2] == [classes[code], str(scores.confusion[code].sum())]
        assert float(row[2]) == round(100 * scores.recall[code], 1)
        assert float(row[3]) == round(100 * scores.precision[code], 1)
    assert f"Expected calibration error: {100 * scores.calibration.error:.1f} %." in page.text


def test_hardest_examples_come_first_and_identical_ones_once(tmp_path):
    graphs = Graphs.from_edge_lists([[(0, 1)]] * 4, targets=["a", "b", "b", "a"])
    truth = np.array([0.1, 0.9, 0.01, 0.4])  # probability of the true class
    codes = np.array([0, 1, 1, 0])
    answers = np.where(codes[:, None] == [0, 1], truth[:, None], 1 - truth[:, None])[None]
    plain = Predictions(np.array(["a", "b"]), codes, answers)
    assert captions(written(tmp_path, data=graphs, predictions=plain))[3:7] == [
        "graph 2: true b, predicted a (99\u00a0%), loss 4.61",
        "graph 0: true a, predicted b (90\u00a0%), loss 2.30",
        "graph 3: true a, predicted b (60\u00a0%), loss 0.92",
        "graph 1: true b, predicted b (90\u00a0%), loss 0.11",
    ]
    equal = Predictions(
        plain.classes, codes, answers, np.array([7, 5, 6, 4]), np.array([0, 1, 0, 0])
    )
    many = Graphs.from_edge_lists([[(0, 1)]] * 8, targets=["a", "b"] * 4)
    assert captions(written(tmp_path, data=many, predictions=equal))[3:5] == [
        "graph 6: true b, predicted a (99\u00a0%), loss 4.61; 2 of 3 graphs with "
        "identical parts have another class",
        "graph 5: true b, predicted b (90\u00a0%), loss 0.11",
    ]


def test_hardest_examples_over_repeats_are_so_on_average(tmp_path):
    graphs = Graphs.from_edge_lists([[(0, 1)]] * 2, targets=[5, 9])
    answers = np.array([[[0.2, 0.8], [0.5, 0.5]], [[0.8, 0.2], [0.9, 0.1]]])
    predictions = Predictions(np.array([5, 9]), np.array([0, 1]), answers)
    first, second = captions(written(tmp_path, data=graphs, predictions=predictions))[3:5]
    assert first == "graph 1: true 9, predicted 5 (70\u00a0%), loss 1.50, wrong in 2 of 2 repeats"
    assert second == "graph 0: true 5, predicted 5 (50\u00a0%), loss 0.92, wrong in 1 of 2 repeats"


@pytest.mark.parametrize("outputs", [1, 2])
def test_page_of_a_regression_plots_predicted_against_true_values(tmp_path, outputs):
    true = np.array([[1.0, 10.0], [2.0, 30.0], [4.0, 20.0]])[:, :outputs]
    made = true + np.array([[0.0, 3.0], [1.0, 0.0], [0.0, 0.0]])[:, :outputs]
    targets, answers = (true, made) if outputs == 2 else (true[:, 0], made[:, 0])
    graphs = Graphs.from_edge_lists([[(0, 1)]] * 3, targets=targets)
    names = ["energy (kJ)", "mass"][:outputs]
    predictions = Predictions(None, targets, answers, radius=np.full(answers.shape, 0.5))
    page = written(tmp_path, data=graphs, predictions=predictions, target=names)
    assert "Calibration" not in headings(page)
    told = captions(page)
    for name in names:
        assert (
            f"Predicted against observed {name}; on the line they agree. Bars: 90 % intervals."
            in (told)
        )
        assert f"Residuals: errors of predicted {name}." in told
        assert any(words.startswith(f"{name}: 1") for words in told)  # the distribution
    row = tables(page)[0][1]
    assert row[0] == "energy (kJ)"
    assert float(row[1]) == pytest.approx((1 / 3) ** 0.5, rel=1e-3)
    assert float(row[2]) == pytest.approx(1 / 3, rel=1e-3)
    assert float(row[3]) == pytest.approx(1 - 1 / (14 / 3), rel=1e-3)
    hardest = told[2 * outputs]
    shown = "true 2, 30, predicted 3, 30" if outputs == 2 else "true 2, predicted 3"
    assert hardest == f"graph 1: {shown}"


def test_hardest_documents_are_listed_with_their_words(tmp_path):
    sleep = [("men", 1, "nsubj"), (HOSTILE, None, "root")]
    long = [("word", None, "root")] * 50
    documents = Documents.from_sentences([[sleep, sleep], [long]], targets=["x", "y"])
    answers = np.array([[[0.4, 0.6], [0.2, 0.8]]])
    predictions = Predictions(np.array(["x", "y"]), np.array([0, 1]), answers)
    page = written(tmp_path, data=documents, predictions=predictions)
    assert "Hardest documents" in headings(page)
    head, first, second = tables(page)[1]
    assert head == ["document", "prediction", "first words"]
    assert first[:2] == ["0", "true x, predicted y (60\u00a0%), loss 0.92"]
    assert first[2].startswith("men <script>alert('1')")
    assert second[2].split() == ["word"] * 30 + ["…"]


def test_hardest_nested_data_are_listed_with_their_labels(tmp_path):
    structures = NestedData(
        [{"a": [3, 7]}, {"b": ["x"]}], [0, 1], levels=("labels $x^{$", "parents")
    )
    predictions = Predictions(
        np.array([0, 1]), np.array([0, 1]), np.array([[[0.4, 0.6], [0.2, 0.8]]])
    )
    page = written(tmp_path, data=structures, predictions=predictions)
    assert tables(page)[1][1] == ["0", "true 0, predicted 1 (60\u00a0%), loss 0.92", "3 7"]
    assert pairs(page)["labels $x^{$"] == "3"
    assert "distinct labels $x^{$ per example: 1 to 2" in captions(page)[-1]


def test_page_shows_hostile_names_as_text(tmp_path):
    graphs = Graphs.from_edge_lists(
        [[(0, 1), (1, 2)]] * 2,
        node_labels=[HOSTILE, "\x07bell\x00", "\ud800"] * 2,
        targets=[HOSTILE, "$\\frac{"],
        name=HOSTILE,
    )
    classes = np.array([HOSTILE, "$\\frac{"])
    predictions = Predictions(classes, np.array([0, 1]), np.full((1, 2, 2), 0.5))
    level = {"level": 0, "objects": 1, "unique": 1, "entries": 0, "entries_compressed": 0}
    page = written(
        tmp_path,
        data=graphs,
        predictions=predictions,
        title=HOSTILE,
        summary={HOSTILE: HOSTILE},
        levels=[level | {"name": HOSTILE}],
        curves={"loss": {HOSTILE: np.ones((3, 1)), "$^{$": np.ones((3, 1))}},
        command=f"saen train {HOSTILE} \udcff",
        settings={HOSTILE: HOSTILE, "list": [HOSTILE]},
        versions={HOSTILE: HOSTILE},
    )
    assert page.all("script") == []
    assert page.all("title")[0].text == page.all("h1")[0].text == HOSTILE
    assert pairs(page)[HOSTILE] == HOSTILE
    assert {row[0] for row in tables(page)[1][1:]} == {HOSTILE, "$\\frac{"}


@pytest.mark.slow
def test_page_does_not_grow_with_the_data(tmp_path):
    def size(n, epochs, n_classes):
        random = np.random.default_rng(1)
        clique = np.argwhere(np.triu(np.ones((50, 50)), 1)).tolist()
        graphs = Graphs.from_edge_lists([clique] * n, targets=random.integers(0, n_classes, n))
        classes, codes = np.unique(graphs.targets, return_inverse=True)
        answers = random.dirichlet(np.ones(len(classes)), (2, n))
        curves = {"loss": {"training": random.random((epochs, 60))}}
        predictions = Predictions(classes, codes, answers)
        path = tmp_path / "page.html"
        write_report(path, made_up(graphs, predictions, curves=curves))
        # Two tables of classes and one of the two levels, with their heads.
        assert path.read_text(encoding="utf-8").count("<tr>") <= 2 * (MAX_CLASSES + 1) + 3
        return path.stat().st_size

    small, large = size(30, 200, 20), size(600, 20_000, 300)
    assert large < 1.3 * small
    assert large < 2_000_000


def test_page_of_many_numbers_is_thinned_out(tmp_path):
    n = 20_000
    graphs = Graphs.from_edge_lists([[]] * n, sizes=[1] * n, targets=np.arange(n) / n)
    predictions = Predictions(None, graphs.targets, graphs.targets[::-1])
    written(tmp_path, data=graphs, predictions=predictions)
    assert (tmp_path / "page.html").stat().st_size < 400_000


def test_page_without_epochs_has_no_curve(tmp_path):
    page = written(tmp_path, curves={"loss": {"training": np.empty((0, 3))}})
    assert "No epoch was trained" in page.text


def test_check_report_without_matplotlib_names_the_extra(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtraError, match=r"saen\[plots\]"):
        check_report(tmp_path / "page.html", force=False)
