"""`saen explain` as a newcomer types it."""

import json

import numpy as np
import pytest

import saen
from saen import SAENClassifier, SAENRegressor
from saen.cli import app
from saen.data.nested import NestedData
from saen.explanations.explanation import explain
from saen.io.nested import write_nested
from saen.report.explanation_page import can_be_drawn, draw_explanation, draw_part, explanation_page
from tests.cli.test_cli import fails, run, runner
from tests.report.test_page import Seen

pytest.importorskip("matplotlib", reason="needs the extra 'plots'")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model and the graphs that it learned from, with a class that looks like a tag."""
    place = tmp_path_factory.mktemp("explain")
    graphs = saen.generate_threads(30, average_nodes=12, seed=3, name="talk")
    names = np.where(graphs.targets == "questions", "<b>questions</b>", "[bold]chat")
    graphs = graphs.with_targets(names)
    saen.save(graphs, place / "talk.saen")
    SAENClassifier(radii=(0, 1), epochs=4).fit(graphs, names).save(place / "model.saen")
    return place


def arguments(folder, *more: str) -> list[str]:
    return ["explain", str(folder / "model.saen"), str(folder / "talk.saen"), *more]


def test_one_graph_is_explained_on_the_terminal(folder):
    shown = runner.invoke(app, arguments(folder, "--graph", "4", "--parts", "3")).stdout
    model = SAENClassifier.load(folder / "model.saen")
    found = explain(model, saen.load(folder / "talk.saen"), 4, k=3)
    lines = shown.splitlines()
    assert lines[0] == f"talk, graph 4: predicted {found.prediction}"
    assert lines[1].startswith(f"output {found.output:+.3f} for [bold]chat, ")
    assert len([line for line in lines if "radius" in line]) == 3
    assert f"{found.parts[0].contribution:+.4f}" in shown
    speaks = {found.speaks_for(part.contribution).removeprefix("for ") for part in found.parts}
    assert all(words in shown for words in speaks)


def test_json_is_what_python_gives(folder):
    printed = run(*arguments(folder, "-g", "4"))
    model = SAENClassifier.load(folder / "model.saen")
    found = explain(model, saen.load(folder / "talk.saen"), 4)
    about = printed.pop("about")
    assert printed == json.loads(json.dumps(found.to_json()))
    assert (about["model"], about["data"], about["networks"]) == ("model.saen", "talk", 3)
    assert about["saen"] == saen.__version__


def test_a_target_can_be_asked_for(folder):
    usual = run(*arguments(folder, "-g", "1"))
    other = run(*arguments(folder, "-g", "1", "--target", "<b>questions</b>"))
    assert usual["target"] == "[bold]chat"
    assert other["output"] == pytest.approx(-usual["output"])


def test_a_page_shows_graph_parts_and_the_check(folder, tmp_path):
    out = tmp_path / "report.html"
    run(*arguments(folder, "-g", "2", "--parts", "4", "--out", str(out)))
    seen = Seen(out.read_text(encoding="utf-8"))
    assert seen.open == []
    assert len(seen.named("svg")) == 1 + 4
    assert seen.named("b") == []
    text = " ".join(seen.texts)
    for words in (
        "talk, graph 2",
        "The strongest ego graphs",
        "The strongest nodes",
        "Do the contributions add up?",
        "Complete: on every level",
        "decomposition: radii",
        saen.__version__,
    ):
        assert words in text


def test_a_collection_is_explained_by_its_kinds_of_parts(folder, tmp_path):
    out = tmp_path / "all.html"
    printed = run(*arguments(folder, "--parts", "5", "--out", str(out)))
    assert len(printed["parts"]) == 5
    assert set(printed["targets"]) == {"<b>questions</b>", "[bold]chat"}
    seen = Seen(out.read_text(encoding="utf-8"))
    assert len(seen.named("svg")) == 5
    best = printed["parts"][0]
    text = " ".join(seen.texts)
    assert best["part"]["what"] in text
    assert f"{best['occurrences']:,}" in seen.texts
    shown = runner.invoke(app, arguments(folder)).stdout
    assert "talk: ego graphs that decide" in shown
    assert best["towards"] in shown


@pytest.mark.parametrize("name", ["one.json", "one.png", "one.svg", "one.pdf"])
@pytest.mark.parametrize("graph", [["-g", "0"], []])
def test_other_suffixes_give_other_files(folder, tmp_path, name, graph):
    out = tmp_path / name
    printed = run(*arguments(folder, *graph, "--out", str(out)))
    if name.endswith("json"):
        assert json.loads(out.read_text(encoding="utf-8")) == printed
    else:
        assert out.stat().st_size > 1000
    assert [file.name for file in tmp_path.iterdir()] == [name]


def test_nested_structures_are_listed_without_a_picture(tmp_path):
    pairs = [[("word", "yes"), ("word", "<no>")][: 1 + n % 2] for n in range(12)]
    structures = NestedData(pairs, np.arange(12) % 2, levels=("words", "notes"), name="notes")
    write_nested(structures, tmp_path / "notes.jsonl")
    model = SAENClassifier("nested", epochs=2).fit(structures, structures.targets)
    model.save(tmp_path / "model.saen")
    files = [str(tmp_path / name) for name in ("model.saen", "notes.jsonl", "out.html")]
    printed = run("explain", *files[:2], "-g", "1", "--out", files[2])
    assert {part["what"] for part in printed["parts"]} == {"yes", "<no>"}
    seen = Seen((tmp_path / "out.html").read_text(encoding="utf-8"))
    assert seen.named("svg") == []
    assert "<no>" in seen.texts
    run("explain", *files[:2], "--out", files[2])
    assert "<no>" in Seen((tmp_path / "out.html").read_text(encoding="utf-8")).texts


def test_mistakes_are_one_line(folder, monkeypatch, capsys, tmp_path):
    def said(*more: str) -> str:
        return fails(monkeypatch, capsys, *arguments(folder, *more))

    assert said("-g", "30") == (
        "saen: there is no structure 30 in this collection: the structures are 0 … 29\n"
    )
    assert "cannot write 'x.txt': use .html, .json, .svg, .png, .pdf" in said("--out", "x.txt")
    assert "there is no class 'maybe': choose from" in said("-g", "1", "--target", "maybe")
    assert "leave target out" in said("--target", "[bold]chat")
    missing = str(tmp_path / "none.saen")
    assert "none.saen" in fails(monkeypatch, capsys, "explain", missing, "threads", "-g", "1")
    assert "holds a graphs, not a model" in fails(
        monkeypatch, capsys, "explain", str(folder / "talk.saen"), "threads"
    )


def test_what_is_no_graph_cannot_be_drawn(folder, monkeypatch, capsys, tmp_path):
    structures = NestedData([[("word", "a")], [("word", "b")]] * 4, [0, 1] * 4)
    write_nested(structures, tmp_path / "n.jsonl")
    model = SAENClassifier("nested", epochs=0).fit(structures, structures.targets)
    model.save(tmp_path / "m.saen")
    files = [str(tmp_path / name) for name in ("m.saen", "n.jsonl", "p.png")]
    message = fails(monkeypatch, capsys, "explain", *files[:2], "-g", "0", "--out", files[2])
    assert "only graphs whose bottom objects are nodes or edges can be drawn" in message
    assert not (tmp_path / "p.png").exists()


# -- pictures ----------------------------------------------------------------------------------


def dots(figure):
    found = [c for axes in figure.axes for c in axes.collections if c.get_gid() == "nodes"]
    return found[0]


def test_colours_follow_the_sign_and_the_strength(folder):
    model = SAENClassifier.load(folder / "model.saen")
    graphs = saen.load(folder / "talk.saen")
    found = explain(model, graphs, 3)
    red, _, blue, _ = dots(draw_explanation(found)).get_facecolors().T
    values = found.contributions[0]
    assert len(red) == graphs[3].n_nodes
    assert ((red > blue) == (values > 0)).all()
    strong = np.abs(values).argmax()
    assert abs(red[strong] - blue[strong]) == np.abs(red - blue).max()


def test_a_large_graph_says_what_is_left_out():
    star = saen.Graphs.from_edge_lists([[(0, i) for i in range(1, 400)], [(0, 1)]])
    model = SAENRegressor(radii=(0, 1), epochs=1, n_models=1).fit(star, star.sizes)
    figure = draw_explanation(explain(model, star, 0))
    assert len(dots(figure).get_offsets()) == 300
    assert any("showing 300 of 400 nodes" in text.get_text() for text in figure.texts)


@pytest.mark.parametrize(
    "decomposition", ["edges", "ego(edges=objects)", "paths(node_labels='degree,distance')"]
)
@pytest.mark.parametrize("directed", [False, True])
def test_loops_arrows_and_edges_are_drawn(decomposition, directed):
    edges = [[(0, 1), (1, 2), (2, 2), (2, 0)], [(0, 1)]] * 3
    graphs = saen.Graphs.from_edge_lists(edges, directed=directed)
    model = SAENClassifier(decomposition, epochs=1, n_models=1).fit(graphs, [0, 1] * 3)
    found = explain(model, graphs, 0)
    html = explanation_page(found, "loops", {}).html()
    if can_be_drawn(found.whole):
        figure = draw_part(found.whole, found.parts[0], 1.0)
        assert len(dots(figure).get_offsets()) <= 3
        assert len(Seen(html).named("svg")) == 1 + len(found.parts)
    else:
        assert "distance" in decomposition  # which path ends lie where is not told
        assert Seen(html).named("svg") == []
