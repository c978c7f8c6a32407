"""`saen explain` as a newcomer types it."""

import json

import numpy as np
import pandas as pd
import pytest

import saen
from saen import (
    Graphs,
    PartCountsClassifier,
    PartCountsRegressor,
    Regressor,
    SAENClassifier,
    explain,
)
from saen.data.nested import NestedData
from saen.decompositions.bags import Edges
from saen.io.formats.nested import write_nested
from tests.cli.commandline import fails, invoke, run

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


def test_explain_takes_the_id_of_an_example(folder):
    graphs = saen.load(folder / "talk.saen")
    saen.save(graphs.with_ids([f"t{n}" for n in range(30)]), folder / "named.saen")
    command = ["explain", str(folder / "model.saen"), str(folder / "named.saen"), "--graph"]
    for name in ("t4", "4"):
        assert invoke(*command, name).stdout.startswith("talk, graph t4: predicted")
    assert fails(*command, "t30") == "there is no example with the id 't30'"
    model = SAENClassifier.load(folder / "model.saen")
    with pytest.raises(saen.InputError, match="2 examples have the id 'a': their indices are 0, 1"):
        explain(model, graphs[:2].with_ids(["a", "a"]), "a")


def test_explain_shows_one_graph_on_the_terminal(folder):
    shown = invoke(*arguments(folder, "--graph", "4", "--parts", "3")).stdout
    model = SAENClassifier.load(folder / "model.saen")
    explanation = explain(model, saen.load(folder / "talk.saen"), 4, n_parts=3)
    lines = shown.splitlines()
    assert lines[0] == f"talk, graph 4: predicted {explanation.prediction}"
    assert lines[1] == explanation.sentence
    assert lines[2] == (
        f"log-odds of {explanation.prediction}: {explanation.output:.3f}, probability "
        f"{explanation.probability:.3f} "
        f"(the average graph of the training data: {explanation.baseline:.3f})"
    )
    assert lines[3].split() == ["contribution", "times", "node", "evidence", "part"]
    assert len(lines) == 7
    for part in explanation.parts:
        assert f"{part.contribution:+.4f}" in shown
        assert explanation.evidence(part.contribution) in shown


def test_explain_prints_json_as_python_gives_it(folder):
    printed = run(*arguments(folder, "-g", "4"))
    model = SAENClassifier.load(folder / "model.saen")
    explanation = explain(model, saen.load(folder / "talk.saen"), 4)
    about = printed.pop("about")
    assert printed == json.loads(json.dumps(explanation.to_json()))
    assert (about["model"], about["data"], about["networks"]) == ("model.saen", "talk", 5)
    assert about["saen"] == saen.__version__


def test_explain_takes_a_target(folder):
    default = run(*arguments(folder, "-g", "1"))
    names = {"[bold]chat", "<b>questions</b>"}
    assert default["target"] == default["prediction"]
    [opposite] = names - {default["target"]}
    other = run(*arguments(folder, "-g", "1", "--explain-target", opposite))
    printed = invoke(*arguments(folder, "-g", "1", "--explain-target", opposite)).stdout
    assert f"probability of {opposite} {other['probability']:.3f}" in printed
    assert other["output"] == pytest.approx(-default["output"])


def test_explain_shows_the_unique_parts_of_all_graphs(folder):
    printed = run(*arguments(folder, "--parts", "5"))
    assert len(printed["parts"]) == 5
    assert set(printed["targets"]) == {"<b>questions</b>", "[bold]chat"}
    shown = invoke(*arguments(folder)).stdout
    assert "talk: the parts that tell predictions apart" in shown
    assert printed["parts"][0]["towards"] in shown


@pytest.mark.parametrize("name", ["one.html", "one.json", "one.png"])
@pytest.mark.parametrize("graph", [["-g", "0"], []])
def test_explain_writes_the_format_of_the_suffix(folder, tmp_path, name, graph):
    out = tmp_path / name
    printed = run(*arguments(folder, *graph, "--out", str(out)))
    if name.endswith("json"):
        assert json.loads(out.read_text(encoding="utf-8")) == printed
    assert out.stat().st_size > 1000
    assert [file.name for file in tmp_path.iterdir()] == [name]


def test_explain_names_mistakes_in_one_line(folder, tmp_path):
    def error(*more: str) -> str:
        return fails(*arguments(folder, *more))

    assert error("-g", "30") == "there is no example 30: the examples are 0 … 29"
    assert "cannot write 'x.txt': use .html, .json, .svg, .png, .pdf" in error("--out", "x.txt")
    assert "there is no class 'maybe': choose from" in error("-g", "1", "--explain-target", "maybe")
    assert "omit the target" in error("--explain-target", "[bold]chat")
    missing = str(tmp_path / "none.saen")
    assert "none.saen" in fails("explain", missing, "threads", "-g", "1")
    assert "not a model, but a file of kind 'graphs'" in fails(
        "explain", str(folder / "talk.saen"), "threads"
    )


def test_explain_draws_only_graphs(tmp_path):
    nested = NestedData([[("word", "a")], [("word", "b")]] * 4, [0, 1] * 4)
    write_nested(nested, tmp_path / "n.jsonl")
    SAENClassifier("nested", epochs=0).fit(nested, nested.targets).save(tmp_path / "m.saen")
    files = [str(tmp_path / name) for name in ("m.saen", "n.jsonl", "p.png")]
    message = fails("explain", *files[:2], "-g", "0", "--out", files[2])
    assert "only graphs whose bottom objects are nodes or edges can be drawn" in message
    assert not (tmp_path / "p.png").exists()


def test_explain_names_the_target_of_several_and_says_what_its_number_is(tmp_path):
    rows = "".join(f"{'C' * n},{n % 2},{n // 6}\n" for n in range(1, 12))
    (tmp_path / "x.csv").write_text(f"smiles,odd,long\n{rows}")
    graphs = saen.load_dataset(tmp_path / "x.csv", target="odd,long")
    y = pd.DataFrame(graphs.targets, columns=graphs.target_names)
    model = PartCountsClassifier(inner_folds=0).fit(graphs, y)
    model.save(tmp_path / "m.saen")
    command = ["explain", tmp_path / "m.saen", tmp_path / "x.csv"]
    one, two = model.predict(graphs[2])[0]
    shown = invoke(*command, "--graph", 2).stdout
    assert f"predicted odd {one}, long {two}\nLog-odds of target odd being 1: " in shown
    assert (
        "log-odds of target long being 1: "
        in invoke(*command, "-g", 2, "--explain-target", "long").stdout
    )
    assert "to the log-odds of target odd being 1, per occurrence\n" in invoke(*command).stdout
    assert (
        run(*command, "--explain-target", "long")["quantity"] == "log-odds of target long being 1"
    )
    numbers = y.astype(float)
    PartCountsRegressor(inner_folds=0).fit(graphs, numbers).save(tmp_path / "r.saen")
    shown = invoke("explain", tmp_path / "r.saen", tmp_path / "x.csv", "-g", 2).stdout
    assert "prediction of target odd: " in shown


def test_explain_says_which_member_of_a_blend_a_number_is_of(folder, tmp_path):
    threads = saen.load(folder / "talk.saen")
    numbers = threads.sizes.astype(float)
    blend = Regressor(budget="quick", inner_folds=2).fit(threads, numbers)
    blend.save(tmp_path / "b.saen")
    shown = invoke("explain", tmp_path / "b.saen", folder / "talk.saen", "-g", 3).stdout
    first = blend.members_[0]
    data = blend.prepare(threads[3])
    own, all_of_it = (each.predictions(data)[0] for each in (first.model, blend.fitted_))
    assert f"predicted {all_of_it:.4g}\n" in shown
    line = f"prediction by {first.name}, {100 * first.weight:.0f} % of this blend: {own:.3f} ("
    assert line in shown


def test_explain_shows_the_ends_of_edges(tmp_path):
    labels = ["C", "O", "N"] * 8
    graphs = Graphs.from_edge_lists([[(1, 0)], [(2, 1), (0, 2)]] * 4, [3] * 8, directed=True)
    graphs = graphs.with_columns(node_labels=labels, targets=[0, 1] * 4)
    model = SAENClassifier(Edges(), epochs=2, n_models=1).fit(graphs, graphs.targets)
    model.save(tmp_path / "m.saen")
    saen.save(graphs, tmp_path / "g.saen")
    command = ["explain", tmp_path / "m.saen", tmp_path / "g.saen", "-g", 0]
    shown = " ".join(invoke(*command).stdout.split())
    assert "contribution times edge evidence part" in shown
    assert "1 → 0" in shown
    assert shown.endswith("O to C")
    assert run(*command)["parts"][0]["edge"] == [1, 0]


def test_explain_orders_the_unique_parts_of_all_graphs_by_contrast(folder):
    parts = run(*arguments(folder))["parts"]
    contrasts = [part["contrast"] for part in parts]
    assert contrasts == sorted(contrasts, reverse=True)
    assert contrasts[0] > 0
