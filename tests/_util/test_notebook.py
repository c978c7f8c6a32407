"""Tables and progress bars in notebooks, with a stand-in for IPython."""

import re
import sys
from html import escape
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

import saen
from saen._util import notebook
from saen._util.progress import bar


class Handle:
    def __init__(self):
        self.shown = []

    def update(self, data, raw):
        assert raw
        self.shown.append(data["text/html"])


@pytest.fixture
def handle(monkeypatch):
    shell, display, handle = ModuleType("IPython"), ModuleType("IPython.display"), Handle()
    shell.get_ipython = lambda: SimpleNamespace(kernel="a kernel")

    def show(data, *, raw, display_id):
        handle.update(data, raw)
        return handle

    display.display = show
    monkeypatch.setitem(sys.modules, "IPython", shell)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    monkeypatch.setattr(notebook, "MIN_SECONDS", 0.0)
    return handle


def test_progress_in_a_notebook_is_shown_and_goes_away(handle, capsys):
    with bar("<training>", None) as update:
        update(1)
        update(3, "half", total=6)
    *_, unknown, half, last = handle.shown
    assert handle.shown[0] == "&lt;training&gt;"
    assert unknown == "&lt;training&gt; <progress></progress> 1 "
    assert half == '&lt;training&gt; <progress value="3" max="6"></progress> 3/6 half'
    assert last == ""
    assert capsys.readouterr().err == ""


def test_progress_in_a_notebook_goes_away_after_an_error_and_can_be_switched_off(handle):
    with pytest.raises(KeyboardInterrupt), bar("training", 2):
        raise KeyboardInterrupt
    assert handle.shown[-1] == ""
    del handle.shown[:]
    with bar("training", 2, shown=False) as update:
        update(1)
    assert handle.shown == []


def test_progress_in_the_terminal_of_ipython_is_a_bar_of_the_terminal(handle, monkeypatch):
    monkeypatch.setattr(sys.modules["IPython"], "get_ipython", lambda: SimpleNamespace())
    assert not notebook.in_notebook()


def cells(html):
    return [re.findall("<t[hd]>(.*?)</t[hd]>", row) for row in re.findall("<tr>(.*?)</tr>", html)]


def test_tables_show_the_first_examples_and_escape_what_is_in_the_data():
    path = saen.Graphs.from_edge_lists([[(0, 1), (1, 2)]] * 7, targets=["<b>"] * 7)
    html = path._repr_html_()
    assert cells(html) == [["id", "nodes", "edges", "target"]] + [
        [str(n), "3", "2", "&lt;b&gt;"] for n in range(5)
    ]
    assert "… and 2 more" in html
    two = path[:1].with_targets([[0.25, np.nan]], ["x", "y"])
    assert [row[3:] for row in cells(two._repr_html_())] == [["x", "y"], ["0.25", ""]]
    two = path[:1].with_targets([[0, 1]])
    assert [row[3:] for row in cells(two._repr_html_())] == [["target 0", "target 1"], ["0", "1"]]
    assert cells(path[:0]._repr_html_()) == [["id", "nodes", "edges", "target"]]


def test_evaluations_explanations_and_estimators_show_what_they_are():
    threads = saen.generate_threads(24, average_nodes=8, seed=1)
    model = saen.PartCountsClassifier(inner_folds=0).fit(threads, threads.targets)
    evaluation = saen.cross_validate(model, threads, threads.targets, n_repeats=1, n_folds=3)
    assert repr(evaluation).startswith("Evaluation(1 × 3 folds of 24 examples: accuracy 0.")
    header, accuracy, *_ = cells(evaluation._repr_html_())
    assert header == ["metric", "mean", "95 % interval"]
    assert accuracy[:2] == ["accuracy", f"{evaluation.summary()['mean']:.4g}"]
    explanation = saen.explain(model, threads, 2)
    dataset = saen.explain_dataset(model, threads)
    for each, numbers in (
        (explanation, [part.contribution for part in explanation.parts]),
        (dataset, [part.mean for part in dataset.parts]),
    ):
        html = each._repr_html_()
        assert [row[0] for row in cells(html)[1:]] == [f"{number:+.4f}" for number in numbers]
        assert escape(each.sentence) in html
    assert "PartCountsClassifier" in model._repr_html_()


def test_plot_draws_one_graph():
    pytest.importorskip("matplotlib")
    graphs = saen.Graphs.from_edge_lists([[(0, 1)], [(0, 1), (1, 2)]], node_labels=[*"CCCO$"])
    html = graphs.plot(1)._repr_html_()
    assert html.startswith("<svg")
    assert [text for text in "CO$" if f">{text}</text>" in html] == ["C", "O", "$"]
    with pytest.raises(IndexError):
        graphs.plot(2)
