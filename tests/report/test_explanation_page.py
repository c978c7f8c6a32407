"""Explanations as pages and pictures: text as text, colours as contributions."""

import re

import numpy as np
import pytest

import saen
from saen import Graphs, SAENClassifier, SAENRegressor, explain, explain_collection
from saen.data.nested import NestedData
from saen.report.explanation_drawing import can_draw, draw_explanation, draw_part
from saen.report.explanation_page import write_explanation
from tests.report.html_reader import pairs, read_html, tables
from tests.report.pictures import artists

pytest.importorskip("matplotlib", reason="needs the extra 'plots'")

HOSTILE = "<b>questions</b> $x^{$"


@pytest.fixture(scope="module")
def graphs() -> Graphs:
    """Graphs with a class that looks like a tag."""
    graphs = saen.generate_threads(30, average_nodes=12, seed=3, name="talk")
    return graphs.with_targets(np.where(graphs.targets == "questions", HOSTILE, "chat"))


@pytest.fixture(scope="module")
def model(graphs) -> SAENClassifier:
    return SAENClassifier(radii=(0, 1), epochs=4).fit(graphs, graphs.targets)


def written(tmp_path, explanation, **options):
    path = tmp_path / "page.html"
    write_explanation(path, explanation, **options)
    return read_html(path.read_text(encoding="utf-8"))


def test_page_shows_the_graph_its_parts_and_the_check(model, graphs, tmp_path):
    explanation = explain(model, graphs, 2, k=4)
    page = written(tmp_path, explanation, name="talk", about={"model": HOSTILE})
    assert page.all("h1")[0].text == "talk, graph 2"
    assert [heading.text for heading in page.all("h2")] == [
        "Most influential ego graphs",
        "Most influential nodes",
        "Do the contributions add up?",
        "Settings",
    ]
    assert len(page.all("svg")) == 1 + 4
    assert all(drawing.attributes["aria-label"] for drawing in page.all("svg"))
    parts, nodes, balance = tables(page)
    assert [row[-1] for row in parts[1:]] == [part.what for part in explanation.parts]
    assert len(nodes) == 1 + 4
    assert balance[0] == ["level", "attributed", "not attributed", "sum", "output"]
    assert {row[3] for row in balance[1:]} == {row[4] for row in balance[1:]}
    assert pairs(page)["decomposition: radii"] == "[0, 1]"
    assert pairs(page)["model"] == HOSTILE
    assert page.all("b") == page.all("script") == []


def test_page_of_a_collection_shows_its_unique_parts(model, graphs, tmp_path):
    explanation = explain_collection(model, graphs, k=5)
    page = written(tmp_path, explanation, name="talk")
    assert page.all("h1")[0].text == "talk: most influential ego graphs"
    assert len(page.all("svg")) == 5
    head, *rows = tables(page)[0]
    for row, part in zip(rows, explanation.parts, strict=True):
        shown = dict(zip(head, row, strict=True))
        assert shown["evidence for"] == part.towards
        assert shown["occurrences"] == f"{part.occurrences:,}"
        assert shown["examples"] == f"{part.examples:,}"
        assert shown["made of"] == part.part.what


def test_page_of_an_explanation_is_self_contained_and_deterministic(model, graphs, tmp_path):
    explanation = explain(model, graphs, 2)
    for name in ("a.html", "b.html"):
        write_explanation(tmp_path / name, explanation)
    text = (tmp_path / "a.html").read_text(encoding="utf-8")
    assert text == (tmp_path / "b.html").read_text(encoding="utf-8")
    assert "default-src 'none'" in text
    assert not re.search(r"@import|url\((?!#)|<script|<link|https?://", text)


def test_page_of_a_regression_says_what_raises_the_prediction(graphs, tmp_path):
    y = np.column_stack([graphs.sizes, -graphs.sizes]).astype(float)
    model = SAENRegressor(radii=(0, 1), epochs=1).fit(graphs, y)
    page = written(tmp_path, explain(model, graphs, 1, target=1))
    assert "the prediction of target 1" in page.text
    assert "Positive contributions raise it." in page.text


def test_page_of_nested_data_lists_parts_without_pictures(tmp_path):
    pairs = [[("word", "yes"), ("word", "<no>")][: 1 + n % 2] for n in range(12)]
    nested = NestedData(pairs, np.arange(12) % 2, levels=("words", "notes"), name="notes")
    model = SAENClassifier("nested", epochs=2).fit(nested, nested.targets)
    for explanation in (explain(model, nested, 1), explain_collection(model, nested)):
        page = written(tmp_path, explanation)
        assert page.all("svg") == []
        assert "<no>" in {cell for row in tables(page)[0] for cell in row}


def test_draw_explanation_colours_by_sign_and_strength(model, graphs):
    explanation = explain(model, graphs, 3)
    nodes = artists(draw_explanation(explanation))["graph-nodes"]
    red, _, blue, _ = nodes.get_facecolors().T
    values = explanation.contributions[0]
    assert len(red) == graphs[3].n_nodes
    assert ((red > blue) == (values > 0)).all()
    strong = np.abs(values).argmax()
    assert abs(red[strong] - blue[strong]) == np.abs(red - blue).max()


def test_draw_explanation_of_a_large_graph_says_what_is_left_out():
    star = Graphs.from_edge_lists([[(0, i) for i in range(1, 400)], [(0, 1)]])
    model = SAENRegressor(radii=(0, 1), epochs=1, n_models=1).fit(star, star.sizes)
    figure = draw_explanation(explain(model, star, 0))
    assert len(artists(figure)["graph-nodes"].get_offsets()) == 300
    assert any("showing 300 of 400 nodes" in text.get_text() for text in figure.texts)


@pytest.mark.parametrize(
    "decomposition", ["edges", "ego(edges=objects)", "paths(node_labels='degree,distance')"]
)
@pytest.mark.parametrize("directed", [False, True])
def test_page_draws_loops_arrows_and_edges(decomposition, directed, tmp_path):
    edges = [[(0, 1), (1, 2), (2, 2), (2, 0)], [(0, 1)]] * 3
    graphs = Graphs.from_edge_lists(edges, directed=directed)
    model = SAENClassifier(decomposition, epochs=1, n_models=1).fit(graphs, [0, 1] * 3)
    explanation = explain(model, graphs, 0)
    page = written(tmp_path, explanation)
    if can_draw(explanation.decomposed):
        figure = draw_part(explanation.decomposed, explanation.parts[0], 1.0)
        assert len(artists(figure)["graph-nodes"].get_offsets()) <= 3
        assert len(page.all("svg")) == 1 + len(explanation.parts)
    else:
        assert "distance" in decomposition  # where the ends of paths lie is not known
        assert page.all("svg") == []
