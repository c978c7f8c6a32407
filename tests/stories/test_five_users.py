"""Five people who have not seen the tool before, on data that come with other packages."""

from __future__ import annotations

import ast
import inspect
import json
import shutil
import textwrap
import tokenize
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_predict, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler

import saen
from tests.cli.commandline import fails, invoke

COUNTS = ("--preset", "counts")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where everybody works."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_chemist_joins_two_files_of_a_publication() -> None:
    """SMILES of inhibitors in one file, their activities in another, names in both."""
    rdkit = pytest.importorskip("rdkit.RDConfig")
    source = Path(rdkit.RDContribDir, "FreeWilson", "data")
    if not source.is_dir():
        pytest.skip("this RDKit comes without its Contrib folder")
    smiles = (source / "CHEMBL2321810.smi").read_text()
    Path("set.smi").write_text(smiles)
    swapped = [" ".join(line.split()[::-1]) for line in smiles.splitlines()]
    Path("swapped.smi").write_text("\n".join(swapped))
    assert saen.load_dataset("set.smi") == saen.load_dataset("swapped.smi")
    by_name = dict(line.split() for line in swapped)
    activities = (source / "CHEMBL2321810_act.csv").read_text().splitlines()[1:]
    rows = [f"{by_name[row.split(',')[0]]},{row}" for row in activities[::12]]
    Path("bare.csv").write_text("\n".join(rows))
    checked = invoke("validate", "bare.csv", code=2)
    assert "no header: the first line must name the columns" in checked.stdout
    Path("act.csv").write_text("\n".join(["Smiles,Name,Act", *rows[:-9]]))
    Path("new.csv").write_text("\n".join(["Smiles,Name,Act", *(row[:-4] for row in rows[-9:])]))
    asked = fails("train", "act.csv", "--out", "m.saen", *COUNTS)
    assert asked.endswith("name the column with --target (columns: Act)")
    kept = ("--target", "Act", "--groups", "scaffold", "--out", "m.saen")
    trained = invoke("train", "act.csv", *kept, *COUNTS)
    assert "out of fold R² " in trained.stdout
    predicted = invoke("predict", "m.saen", "new.csv", "--keep", "all").stdout.splitlines()
    assert predicted[0] == "id,Smiles,Name,Act,prediction,lower,upper"
    assert len(predicted) == 10


def digit(image: Any) -> nx.Graph[Any]:
    """The inked pixels of a picture, with edges between neighbours."""
    graph: nx.Graph[Any] = nx.Graph()
    for row, column in np.argwhere(image > 4).tolist():
        graph.add_node((row, column), place=("top", "middle", "low")[(row > 2) + (row > 4)])
    for row, column in list(graph):
        for down, right in ((0, 1), (1, 0), (1, 1), (1, -1)):
            if (row + down, column + right) in graph:
                kind = "diagonal" if down and right else "straight"
                graph.add_edge((row, column), (row + down, column + right), kind=kind)
    return graph


def test_an_engineer_of_scikit_learn_classifies_pictures() -> None:
    data = load_digits(n_class=3)
    pictures, y = [digit(image) for image in data.images[:90]], data.target[:90]
    train, test, y_train, y_test = train_test_split(pictures, y, stratify=y, random_state=0)
    model = saen.PartCountsClassifier(inner_folds=0).fit(train, y_train)
    assert model.score(test, y_test) > 0.7
    with pytest.raises(saen.InputError, match=r"a single Graph: pass a list, \[X\]"):
        model.predict(test[0])
    graphs = saen.from_networkx(pictures)
    counts = saen.PartCounts("neighbourhoods(depth=1)")
    pipeline = make_pipeline(counts, MaxAbsScaler(), LogisticRegression(max_iter=1000))
    grid = {"partcounts__decomposition": ["nodes", "neighbourhoods(depth=1)"]}
    best = GridSearchCV(pipeline, grid, cv=3).fit(graphs, y).best_estimator_
    names = best[:1].get_feature_names_out()
    assert len(set(names)) == len(names)
    assert any("next to diagonal" in name for name in names)
    probabilities = cross_val_predict(pipeline, graphs, y, cv=3, method="predict_proba")
    assert (probabilities.argmax(axis=1) == y).mean() > 0.7
    evaluation = saen.cross_validate(model, graphs, y, n_repeats=1, n_folds=3)
    frame = evaluation.to_frame()
    assert (frame["target"] == y[frame["id"]]).all()
    assert (frame["prediction"] == frame["target"]).mean() == pytest.approx(
        evaluation.pooled()["accuracy"]
    )
    assert "middle" in model.explain(graphs, 1).sentence
    assert "middle" in saen.explain_dataset(model, graphs).sentence


def test_a_reader_of_the_paper_compresses_the_atlas_of_graphs() -> None:
    """1,245 graphs with an edge, no two of them isomorphic."""
    atlas = [graph for graph in nx.graph_atlas_g() if graph.number_of_edges()]
    planar = [nx.check_planarity(graph)[0] for graph in atlas]
    graphs = saen.from_networkx(atlas, targets=planar)
    ego = saen.decompositions.Ego(radii=(0, 1, 2)).fit(graphs)
    hierarchy = ego.decompose(graphs)
    compressed = saen.compress(hierarchy)
    assert compressed.hierarchy.sizes[0] == len({d for g in atlas for _, d in g.degree()})
    layers = [[8], [8], [8, 1]]
    network = saen.network.SAEN(
        saen.network.Architecture.over(compressed.hierarchy, layers), seeds=[0]
    ).double()
    gap = (network(hierarchy) - network(compressed)).abs().max().item()
    assert gap < 1e-10
    evaluation = saen.cross_validate(
        saen.PartCountsClassifier(inner_folds=0), graphs, planar, n_repeats=1, n_folds=3
    )
    assert not evaluation.duplicates().any()


def functions(*modules: Any) -> list[dict[str, Any]]:
    """The functions of modules of the standard library as syntax trees."""
    lines = []
    for module in modules:
        for name, function in inspect.getmembers(module, inspect.isfunction)[:24]:
            tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
            kinds, edges = [], []
            queue: list[tuple[ast.AST, int]] = [(tree, -1)]
            for node, parent in queue:
                edges += [[parent, len(kinds)]] if parent >= 0 else []
                queue += [(child, len(kinds)) for child in ast.iter_child_nodes(node)]
                kinds.append(type(node).__name__)
            line = {"nodes": kinds, "edges": edges, "directed": True, "function": name}
            lines.append(line | {"module": module.__name__})
    return lines


def test_an_impatient_person_is_told_what_to_type() -> None:
    lines = functions(shutil, tokenize, inspect, textwrap)
    Path("trees.jsonl").write_text("\n".join(map(json.dumps, lines)))
    assert "saen demo makes a small example" in invoke().stdout
    Path("mine.jsonl").write_text('{"tree": "x"}')
    hint = 'a graph is a line such as {"nodes": ["C", "O"]'
    assert hint in fails("train", "mine.jsonl", "--out", "m.saen")
    asked = fails("train", "trees.jsonl", "--out", "m.saen", *COUNTS)
    assert asked.endswith("name the column with --target (columns: function, module)")
    typo = fails("train", "trees.jsonl", "--out", "m.saen", "--target", "modul")
    assert typo.endswith("no 'modul' (did you mean module?)")
    named = ("--target", "module", "--id", "function")
    for place in (".", "/"):
        assert "is a folder, not a file" in fails("train", "trees.jsonl", *named, "--out", place)
    trained = invoke("train", "trees.jsonl", *named, "--out", "m.saen", *COUNTS)
    assert "out of fold accuracy" in trained.stdout
    assert "the model comes first" in fails("predict", "trees.jsonl", "m.saen")
    again = fails("train", "trees.jsonl", *named, "--out", "m.saen", *COUNTS)
    assert again == "m.saen: already exists (use --force to overwrite)"
    for line in lines:
        del line["module"]
    Path("new.jsonl").write_text("\n".join(map(json.dumps, lines)))
    rows = invoke("predict", "m.saen", "new.jsonl").stdout.splitlines()
    assert rows[1].startswith(f"{lines[0]['function']},")
    why = invoke("explain", "m.saen", "new.jsonl", "--graph", lines[0]["function"]).stdout
    assert "because of" in why
