"""What people come to do, from their files to an answer, by the commands that they would type."""

from __future__ import annotations

import csv
import json
import random
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import GridSearchCV

import saen
from saen.io.writing import write_data
from tests.cli.commandline import fails, invoke, run

COUNTS = ("--preset", "counts")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where everybody works."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def rows_of(file: str) -> list[dict[str, str]]:
    return list(csv.DictReader(Path(file).read_text().splitlines()))


def test_a_chemist_gets_rows_back_and_sees_atoms_coloured() -> None:
    pytest.importorskip("rdkit")
    alcohols, amines = [f"{'C' * n}O" for n in range(1, 9)], [f"{'C' * n}N" for n in range(1, 9)]
    table = [f"m{n};{s};{s.endswith('O'):d};b{n % 3}" for n, s in enumerate(alcohols + amines)]
    Path("assay.csv").write_text("\n".join(["Name;Smiles;active;Batch", *table]))
    Path("new.csv").write_text("Name,Smiles,Batch\nx1,CCCO,p\nx2,C(C,q\nx3,CCCN,r\n")
    checked = invoke("validate", "assay.csv", "--target", "active")
    assert "column 'Smiles' read as molecules, 'Name' as ids" in checked.stderr
    assert "1 column not used: Batch" in checked.stdout
    invoke("train", "assay.csv", "--target", "active", "--out", "model.saen", *COUNTS)
    assert "new.csv, line 3: 'C(C': invalid SMILES" in fails("predict", "model.saen", "new.csv")
    predict = ("predict", "model.saen", "new.csv", "--skip-bad", "--keep", "all", "--out", "p.csv")
    assert "skipped: new.csv, line 3" in invoke(*predict).stderr
    found = [(r["id"], r["Smiles"], r["Batch"], r["prediction"]) for r in rows_of("p.csv")]
    assert found == [("x1", "CCCO", "p", "1"), ("x3", "CCCN", "r", "0")]
    pytest.importorskip("matplotlib")
    shown = invoke("explain", "model.saen", "new.csv", "--skip-bad", "-g", "x1", "--out", "x.html")
    assert "x1: predicted 1" in shown.stdout
    page = Path("x.html").read_text()
    assert page.count("<svg") > 1
    assert "the molecule goes on" in page


def test_a_chemist_asks_about_new_scaffolds_and_the_nearest_molecule() -> None:
    """A table with a bad SMILES, a gap, a salt, a repeated molecule, and names of its own."""
    pytest.importorskip("rdkit")
    pytest.importorskip("matplotlib")
    rings = ["c1ccccc1", "c1ccncc1", "C1CCCCC1", "c1ccsc1", "C1CCNCC1", "c1ccc2ccccc2c1"]
    smiles = [f"{'C' * n}{end}{ring}" for n in range(1, 5) for end in ("", "O") for ring in rings]
    rows = [f"K{n};{s};{1.5 * len(s) + n % 3 / 7:.2f};{n % 5}" for n, s in enumerate(smiles)]
    mess = [f"K90;{smiles[3]};20;0", "K91;C1CC(;3;1", "K92;CCN.Cl;;2", "K93;CCOCC;;3"]
    Path("assay.csv").write_text("\n".join(["Compound No;Structure;IC50, nM;pH", *rows, *mess]))
    checked = invoke("validate", "assay.csv", code=2)
    assert "'Structure' looks like SMILES" in checked.stdout
    names = ("--smiles", "Structure", "--target", "IC50, nM", "--id", "Compound No")
    checked = invoke("validate", "assay.csv", *names, code=2)
    assert "line 51: 'C1CC(': invalid SMILES" in checked.stdout
    assert "lines 52, 53: no target" in checked.stdout
    assert "1 molecule of several fragments" in checked.stderr
    assert "1 molecule on several rows (2 in all), 1 of them with different" in checked.stdout
    new_scaffolds = ("--groups", "scaffold", "--features", "pH", "--skip-bad", *COUNTS)
    folds = ("--repeats", 1, "--folds", 3, "--report", "evaluation.html")
    folds += ("--predictions", "oof.csv", "--keep", "pH")
    shown = invoke("evaluate", "assay.csv", *names, *new_scaffolds, *folds)
    assert "scaffold: 6 groups" in shown.stdout
    assert "not used" not in shown.stderr
    assert "Learning curves" not in Path("evaluation.html").read_text()  # of part counts
    assert list(rows_of("oof.csv")[0]) == [
        *("id", "pH", "repeat", "fold", "target", "prediction", "lower", "upper")
    ]
    kept = ("--nearest", "--out", "m.saen", "--report", "report.html")
    trained = invoke("train", "assay.csv", *names, *new_scaffolds, *kept)
    assert "groups by scaffold: 6, the largest 9 of 49 examples" in trained.stderr
    page = Path("report.html").read_text()
    assert "IC50, nM: " in page
    assert "Bars: 90 % intervals" in page
    assert page.count("saen explain m.saen") > 3
    # The model knows the names of its columns, and takes usual ones where there are no such.
    Path("new.csv").write_text("Compound No,Structure,pH\nx,CCCCCOc1ccccc1,1\ny,FC(F)(F)F,2\n")
    invoke("predict", "m.saen", "new.csv", "--out", "p.csv")
    x, y = rows_of("p.csv")
    assert (x["id"], x["unlike_training"], y["unlike_training"]) == ("x", "False", "True")
    assert float(x["lower"]) < float(x["prediction"]) < float(x["upper"])
    assert x["nearest"].startswith("K")
    Path("other.csv").write_text("id,smiles,pH\nz,CCCCCOc1ccccc1,1\n")
    invoke("predict", "m.saen", "other.csv", "--out", "z.csv")
    assert rows_of("z.csv")[0]["prediction"] == x["prediction"]
    scored = invoke("predict", "m.saen", "assay.csv", "--skip-bad", "--out", "all.csv")
    assert "with targets" in scored.stderr
    assert "pH" in invoke("explain", "m.saen", "new.csv", "-g", "x", "--out", "why.html").stdout
    assert "atom" in Path("why.html").read_text()


def test_an_analyst_of_networks_is_told_what_is_not_used(folder: Path) -> None:
    rng = np.random.default_rng(0)
    graphs = saen.generate_threads(16, average_nodes=8, seed=2)
    ties = np.where(rng.random(len(graphs.indices)) < 0.5, "weak", "strong")
    weights = rng.random((len(graphs.indices), 1))
    pairs = [graph.edges() for graph in graphs]
    graphs = saen.Graphs.from_edge_lists(
        pairs,
        graphs.sizes,
        targets=graphs.targets,
        edge_labels=ties[: graphs.n_edges],
        edge_attributes=weights[: graphs.n_edges],
        ids=[f"club-{n}" for n in range(len(graphs))],
    )
    write_data(graphs, folder / "clubs", format="graphml")
    assert "not used" not in invoke("validate", "clubs").stdout  # the default uses them
    invoke("convert", "clubs", "edges.csv")
    plain = ("-d", "ego(radii=(0, 1), edges=none)", "--preset", "counts")
    trained = invoke("train", "edges.csv", "--out", "plain.saen", *plain)
    assert "edge labels are not used (use them with" in trained.output
    assert "edge attributes are not used (use them with" in trained.output
    quick = (*plain, "--repeats", "1", "--folds", "2", "--json")
    evaluated = invoke("evaluate", "edges.csv", *quick)
    assert "note: edge labels are not used (use them with" in evaluated.stderr
    assert json.loads(evaluated.stdout)["metric"] == "accuracy"
    roles = ("-d", "neighbourhoods(edges=roles)", *COUNTS)
    trained = invoke("train", "edges.csv", "--out", "m.saen", *roles)
    assert "edge labels are not used" not in trained.output
    invoke("predict", "m.saen", "clubs", "--out", "p.csv")
    assert sorted(row["id"] for row in rows_of("p.csv")) == sorted(graphs.ids.tolist())
    write_data(saen.generate_threads(4, average_nodes=8, seed=1), folder / "bare.jsonl")
    assert "neither edge labels nor directions" in fails("predict", "m.saen", "bare.jsonl")
    refused = fails("train", "bare.jsonl", "--out", "n.saen", *roles)
    assert refused.startswith("edges='roles' needs edge labels or directions")


def test_an_engineer_searches_settings_with_scikit_learn(folder: Path) -> None:
    threads = saen.generate_threads(24, average_nodes=10, seed=1)
    model = saen.SAENClassifier(radii=(0, 1), epochs=3)
    prepared = model.prepare(threads)
    assert repr(prepared).startswith("Decompositions(24 examples")
    search = GridSearchCV(model, {"learning_rate": [0.01, 0.1]}, cv=2)
    search.fit(prepared, threads.targets)
    best = search.best_estimator_
    assert len(best.history_.loss) == 3
    assert best.evaluation_.pooled()["accuracy"] >= 0
    assert len(prepared._made) == 1  # for all trainings
    log = best.predict_log_proba(prepared[:5])
    np.testing.assert_allclose(np.exp(log).sum(axis=1), 1, rtol=1e-6)
    assert best.explain(threads, 0).prediction == best.predict(threads[:1])[0]
    saen.SAENClassifier(radii=(0,), epochs=1).fit(prepared, threads.targets)  # makes its own
    assert len(prepared._made) == 2
    best.save(folder / "model.saen")
    assert saen.load(folder / "model.saen").score(threads, threads.targets) == best.score(
        prepared, threads.targets
    )


def test_a_linguist_reads_lemmas_and_coloured_words() -> None:
    pytest.importorskip("conllu")
    lines: list[str] = []
    for n in range(12):
        noun, verb, lemma = ("Dogs", "barked", "bark") if n % 2 else ("Men", "slept", "sleep")
        lines += [f"# newdoc id = d{n}", f"# topic = {('people', 'animals')[n % 2]}"]
        lines += [f"1\t{noun}\t{noun[:3].lower()}\tNOUN\t_\t_\t2\tnsubj\t_\t_"]
        lines += [f"2\t{verb}\t{lemma}\tVERB\t_\t_\t0\troot\t_\t_", ""]
    Path("texts.conllu").write_text("\n".join(lines))
    reading = ("--target", "topic", "--word", "lemma")
    assert "12 documents" in invoke("validate", "texts.conllu", *reading).stdout
    invoke("train", "texts.conllu", "--out", "m.saen", *reading, *COUNTS)
    invoke("predict", "m.saen", "texts.conllu", "--word", "lemma", "--out", "p.csv")
    found = [(row["id"], row["prediction"]) for row in rows_of("p.csv")]
    assert found == [(f"d{n}", ("people", "animals")[n % 2]) for n in range(12)]
    # Without --word, new texts are read as those of the training were; in another way they are not.
    invoke("predict", "m.saen", "texts.conllu", "--out", "again.csv")
    assert Path("again.csv").read_text() == Path("p.csv").read_text()
    assert "lemma" in fails("predict", "m.saen", "texts.conllu", "--word", "form")
    invoke("convert", "texts.conllu", "texts.saen", *reading)
    invoke("explain", "m.saen", "texts.saen", "-g", "d1", "--out", "why.html")
    assert '<p class="text"><span style="background' in Path("why.html").read_text()


def test_a_programmer_learns_from_any_json() -> None:
    events = [
        {"user": f"u{n}", "ok": ("no", "yes")[n % 2], "load": 0.5 + n % 2,
         "calls": [{"name": ("read", "write")[n % 2], "args": ["x", n % 3]}]}
        for n in range(12)
    ]  # fmt: skip
    text = "".join(json.dumps(event) + "\n" for event in events)
    convert = ("convert", "-", "events.jsonl", "--as", "nested", "--target", "ok", "--id", "user")
    invoke(*convert, input=text)
    assert run("validate", "events.jsonl")["count"] == 12
    invoke("train", "events.jsonl", "--out", "m.saen", *COUNTS)
    shown = invoke("predict", "m.saen", "-", input=Path("events.jsonl").read_text())
    rows = list(csv.DictReader(shown.stdout.splitlines()))
    assert [(row["id"], row["prediction"]) for row in rows[:2]] == [("u0", "no"), ("u1", "yes")]
    assert "accuracy 100.0 % on 12 examples" in shown.stderr
    assert "write" in invoke("explain", "m.saen", "events.jsonl", "-g", "u1").stdout


def test_a_reader_of_the_paper_finds_its_procedures_and_protocol(folder: Path) -> None:
    C, D = saen.compute_cd(np.array([[0, 0], [1, 1], [0, 0]]))
    np.testing.assert_array_equal((C @ D).toarray(), np.eye(2))
    write_data(saen.generate_threads(18, average_nodes=8, seed=1), folder / "threads.jsonl")
    levels = run("compress", "threads.jsonl", "--radii", "0,1", "--out", "c.saen")["levels"]
    assert [level["name"] for level in levels] == ["nodes", "ego graphs", "graphs"]
    assert levels[1]["unique"] < levels[1]["objects"]
    pytest.importorskip("matplotlib")
    for figure in ("decomposition", "compression"):
        invoke("draw", "threads.jsonl", "-g", 3, "--figure", figure, "--out", f"{figure}.svg")
    protocol = ("--preset", "paper", "--repeats", 2, "--folds", 3, "--epochs", 2)
    result = run("evaluate", "threads.jsonl", *protocol, "--out", "run")
    assert 0 <= result["accuracy"]["mean"] <= 1
    assert invoke("evaluate", "threads.jsonl", *protocol, "--out", "run").exit_code == 0  # resumed
    assert len(json.loads(Path("run/splits.json").read_text())["repeats"]) == 2


def test_an_analyst_of_many_threads_looks_around(folder: Path) -> None:
    pytest.importorskip("bokeh")
    threads = saen.generate_threads(60, average_nodes=10, seed=4)
    targets = threads.targets.copy()
    again = saen.Graphs.concatenate([threads, threads[:1]]).with_ids(np.arange(61))
    other = "questions" if targets[0] == "discussion" else "discussion"
    write_data(again.with_targets([*targets, other]), folder / "threads.saen")
    invoke("train", "threads.saen", "--out", "m.saen", *COUNTS)
    found = run("explore", "m.saen", "threads.saen", "--parts", 30, "--out", "page.html")
    assert (found["examples"], found["listed_parts"]) == (61, 30)
    assert found["conflicts"] >= 1
    write_data(saen.generate_threads(5, average_nodes=10, seed=9), folder / "new.jsonl")
    beside = ("--training", "threads.saen", "--out", "new.html")
    assert run("explore", "m.saen", "new.jsonl", *beside)["examples"] == 66
    page = Path("page.html").read_text()
    assert "Unique neighbourhoods of depth ≤" in page
    assert "default-src 'none'" in page
    best: dict[str, Any] = run("explain", "m.saen", "threads.saen", "--parts", 3)
    assert len(best["parts"]) == 3


def firms(n: int) -> list[nx.Graph[int]]:
    """Who writes to whom, with columns whose alphabetical order is not that of the tables."""
    draw = random.Random(n)
    graphs: list[nx.Graph[int]] = []
    for seed in range(n):
        graph = nx.powerlaw_cluster_graph(12, 2, 0.9 * (seed % 2), seed=seed)
        for person in graph:
            office = {"office": draw.choice("NS"), "city": draw.choice(["Rome", "Pisa"])}
            graph.nodes[person].update(office, tenure=draw.randint(1, 9), age=draw.randint(20, 60))
        for edge in graph.edges.values():
            edge.update(via=draw.choice(["mail", "phone"]), weight=draw.randint(1, 5))
        graphs.append(graph)
    return graphs


def test_an_analyst_of_networks_has_one_answer_from_every_format(folder: Path) -> None:
    graphs, kinds = firms(24), ["loose", "dense"] * 12
    for form in ("graphml", "gml"):
        Path(form).mkdir()
        for number, graph in enumerate(graphs):
            getattr(nx, f"write_{form}")(graph, f"{form}/firm{number:02}.{form}")
        rows = [f"firm{number:02},{kind}" for number, kind in enumerate(kinds)]
        Path(form, "targets.csv").write_text("\n".join(["graph,kind", *rows]))
    tables: dict[str, list[Any]] = {"nodes": [], "edges": []}
    for number, graph in enumerate(graphs):
        nodes = pd.DataFrame(dict(graph.nodes(data=True))).T.rename_axis("node").reset_index()
        tables["nodes"].append(nodes.assign(graph=f"firm{number:02}"))
        tables["edges"].append(nx.to_pandas_edgelist(graph).assign(graph=f"firm{number:02}"))
    for name, parts in tables.items():
        pd.concat(parts).to_csv(f"{name}.csv", index=False)
    Path("targets.csv").write_text(Path("gml/targets.csv").read_text())
    named = ("--target", "kind", "--node-label", "city,office")  # in GML, labels are node names
    expected = saen.from_networkx(graphs, targets=kinds)
    lines = [
        {**nx.node_link_data(graph, edges="edges"), "kind": kind}
        for graph, kind in zip(graphs, kinds, strict=True)
    ]
    Path("firms.jsonl").write_text("\n".join(map(json.dumps, lines)))
    for file in ("graphml", "edges.csv", "firms.jsonl"):
        assert saen.load_dataset(file, target="kind") == expected
    assert saen.load_dataset("gml", target="kind", node_label="city,office") == expected
    invoke("train", "graphml", "--target", "kind", "--out", "m.saen", *COUNTS)
    invoke("predict", "m.saen", "graphml", "--out", "p.csv")
    shown = invoke("predict", "m.saen", "edges.csv", "--target", "kind", "--out", "q.csv")
    assert "has not seen" not in shown.stderr
    assert "with targets (the training graphs: not an estimate)" in shown.stderr
    assert Path("p.csv").read_text() == Path("q.csv").read_text()
    # A model looks for the columns that it knows, whatever else new data have.
    nodes = pd.read_csv("nodes.csv")
    nodes.assign(mood="sad", height=1.8).to_csv("nodes.csv", index=False)
    invoke("predict", "m.saen", "edges.csv", "--out", "r.csv")
    assert Path("r.csv").read_text() == Path("p.csv").read_text()
    nodes.drop(columns="city").to_csv("nodes.csv", index=False)
    assert "nodes.csv: no node has 'city'" in fails("predict", "m.saen", "edges.csv")
    names = "no two nodes of a graph have the same labels, as if these were names"
    assert f"note: {names}" in invoke("validate", "gml", "--target", "kind").stdout
    few = (*COUNTS, "--repeats", 1, "--folds", 3)
    assert names in invoke("evaluate", "gml", "--target", "kind", *few).stderr
    assert names not in invoke("evaluate", "gml", *named, *few).stderr
    sentence = invoke("explain", "m.saen", "graphml", "-g", "firm03").stdout.splitlines()[1]
    assert "Rome" in sentence or "Pisa" in sentence


def test_an_analyst_of_one_network_is_told_what_models_learn_from(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    club = nx.karate_club_graph()
    nx.write_graphml(club, "club.graphml")
    nx.to_pandas_edgelist(club).to_csv("club.csv", index=False)
    nx.write_weighted_edgelist(club, "club.edgelist")
    single = fails("train", "club.graphml", "--out", "m.saen")
    assert "club is a single example: models learn from many" in single
    assert "no column 'graph', which says which graph a row is about" in fails(
        "train", "club.csv", "--out", "m.saen"
    )
    assert "(weights and labels stand in a table, GraphML or JSON lines)" in fails(
        "train", "club.edgelist", "--out", "m.saen"
    )
    Path("one").mkdir()
    Path("club.graphml").rename("one/club.graphml")
    monkeypatch.chdir("one")
    checked = invoke("validate", ".")
    assert "note: one: 'club' read as node labels" in checked.stderr
    assert "one: 1 graph, 34 nodes" in checked.stdout
