"""Explanations as pages and pictures: text as text, colours as contributions."""

import re
from dataclasses import replace

import numpy as np
import pytest

import saen
from saen import Documents, Graphs, SAENClassifier, SAENRegressor, explain, explain_dataset
from saen.data.nested import NestedData
from saen.explanations.molecules import as_molecule
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
    explanation = explain(model, graphs, 2, n_parts=4)
    page = written(tmp_path, explanation, name="talk", about={"model": HOSTILE})
    assert page.all("h1")[0].text == "talk, graph 2"
    assert [heading.text for heading in page.all("h2")] == [
        "The parts that count most",
        "Settings",
    ]
    assert len(page.all("svg")) == 1 + 4
    assert all(drawing.attributes["aria-label"] for drawing in page.all("svg"))
    [parts] = tables(page)
    assert [row[2] for row in parts[1:]] == [part.what for part in explanation.parts]
    # On a phone, what is on the right has to be scrolled to: the contribution is not.
    assert parts[0][:2] == ["contribution", "picture"]
    assert [row[3] for row in parts[1:]] == [str(part.count) for part in explanation.parts]
    assert explanation.sentence in page.text
    assert pairs(page)["decomposition: radii"] == "0, 1"
    assert pairs(page)["model"] == HOSTILE
    assert page.all("b") == page.all("script") == []


def test_page_of_a_collection_shows_its_unique_parts(model, graphs, tmp_path):
    explanation = explain_dataset(model, graphs, n_parts=5)
    page = written(tmp_path, explanation, name="talk")
    assert page.all("h1")[0].text == "talk: the parts that tell predictions apart"
    assert len(page.all("svg")) == 5
    head, *rows = tables(page)[0]
    assert head[0] == "contribution"
    for row, part in zip(rows, explanation.parts, strict=True):
        shown = dict(zip(head, row, strict=True))
        assert shown["evidence for"] == part.towards
        assert (shown["contribution"][0] == "−") == (part.towards == explanation.targets[0])
        assert shown["times"] == f"{part.occurrences:,}"
        assert shown["graphs"] == f"{part.examples:,}"
        assert shown["part"] == part.part.what


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
    for explanation in (explain(model, nested, 1), explain_dataset(model, nested)):
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


def test_draw_explanation_numbers_the_nodes(model, graphs):
    figure = draw_explanation(explain(model, graphs, 2))
    written = [text.get_text() for text in figure.axes[0].texts]
    assert {str(node) for node in range(graphs[2].n_nodes)} <= set(written)


def test_draw_explanation_of_a_large_graph_says_what_is_left_out():
    star = Graphs.from_edge_lists([[(0, i) for i in range(1, 400)], [(0, 1)]])
    model = SAENRegressor(radii=(0, 1), epochs=1, n_models=1).fit(star, star.sizes)
    figure = draw_explanation(explain(model, star, 0))
    shown = len(artists(figure)["graph-nodes"].get_offsets())
    assert shown <= 120
    assert any(f"{shown} of 400 nodes" in text.get_text() for text in figure.texts)


def test_a_large_graph_is_drawn_around_its_strongest_parts():
    """The strong parts in colour, what surrounds them without; the rest is left out."""
    chain = [(i, i + 1) for i in range(399)]
    graphs = Graphs.from_edge_lists(
        [chain] * 8, [400] * 8, node_labels=np.tile(np.where(np.arange(400) == 77, "N", "C"), 8)
    )
    labels = graphs.node_labels.copy()
    labels[np.arange(0, 8, 2) * 400 + 77] = "C"
    graphs = replace(graphs, node_labels=labels)
    model = SAENClassifier("ego(radii=(1,))", epochs=10, n_models=1).fit(graphs, np.arange(8) % 2)
    explanation = explain(model, graphs, 1, n_parts=3)
    assert 77 in {part.node for part in explanation.parts} | {76, 78}
    figure = draw_explanation(explanation)
    assert len(artists(figure)["graph-nodes"].get_offsets()) < 60


def test_molecules_are_drawn_by_rdkit_with_contributions_on_atoms_and_bonds(tmp_path):
    pytest.importorskip("rdkit", reason="needs the extra 'chem'")
    smiles = ["CC(=O)O", "c1ccccc1O", "CCO", "C[N+](C)(C)C"] * 3
    graphs = saen.from_smiles(smiles)
    model = SAENClassifier("ego(edges=objects)", epochs=2).fit(graphs, np.arange(12) % 2)
    page = written(tmp_path, explain(model, graphs, 1, n_parts=2))
    drawing = page.all("svg")[0]
    bonds = {e.attributes.get("class", "") for e in drawing.all("path")}
    assert any(name.startswith("bond-") for name in bonds)
    for suffix, start in ((".svg", b"<?xml"), (".png", b"\x89PNG"), (".pdf", b"%PDF")):
        write_explanation(tmp_path / f"m{suffix}", explain(model, graphs, 1))
        assert (tmp_path / f"m{suffix}").read_bytes().startswith(start)
    assert as_molecule(saen.generate_threads(3, average_nodes=5, seed=0)[0]) is None


def test_documents_are_shown_as_text_with_coloured_words(tmp_path):
    bites = [("dogs", 1, "nsubj"), ("bite<b>", None, "root"), ("men", 1, "obj")]
    sleep = [("men", 1, "nsubj"), ("sleep", None, "root")]
    texts = Documents.from_sentences([[bites, sleep], [sleep]] * 4, targets=["long", "short"] * 4)
    model = SAENClassifier("dependency_paths", epochs=3, n_models=1).fit(texts, texts.targets)
    explanation = explain(model, texts, 0)
    page = written(tmp_path, explanation)
    sentences = [e for e in page.all("p") if e.attributes.get("class") == "text"]
    assert [s.text.split() for s in sentences] == [["dogs", "bite<b>", "men"], ["men", "sleep"]]
    numbers = [e.attributes["title"].replace("−", "-") for s in sentences for e in s.all("span")]
    np.testing.assert_allclose([float(n) for n in numbers], explanation.contributions[0], rtol=1e-3)


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
