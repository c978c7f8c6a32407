"""The options that say how to read data, in every command that reads some."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import get_args

import numpy as np
import pandas as pd
import pytest

import saen
from saen import Graphs, load, load_dataset
from saen.cli.lazy import load_command
from saen.cli.options import PRESETS, READING, Metric
from saen.io.formats.nested import read_nested
from saen.io.writing import write_data
from saen.learning import metrics, presets
from tests.cli.commandline import fails, invoke, run
from tests.cli.test_startup import NETWORKS, commands_import

READERS = ["train", "evaluate", "predict", "embed", "explain", "explore"]
READERS += ["compress", "draw", "validate", "convert"]
RINGS = [[(0, 1), (1, 2), (2, 0)], [(0, 1), (1, 2)]] * 6


@pytest.fixture
def rings(tmp_path: Path) -> Path:
    """Two kinds of graphs as JSON lines, with keys of its own."""
    lines = [
        {"nodes": 3, "edges": edges, "size": n, "code": f"g{n}", "lab": "x"}
        for n, edges in enumerate(RINGS)
    ]
    path = tmp_path / "rings.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


@pytest.mark.parametrize("name", READERS)
def test_every_command_that_reads_data_has_the_same_options(name: str) -> None:
    options = {parameter.name for parameter in load_command(name).params}
    assert options >= {*READING} - ({"skip_bad"} if name == "validate" else set())


def test_choices_are_those_of_the_library() -> None:
    assert presets.NAMES == PRESETS
    choices, _ = get_args(get_args(Metric)[0])
    known = {*metrics.CLASSIFICATION_METRICS, *metrics.REGRESSION_METRICS}
    assert {*get_args(choices)} == known


def test_whole_numbers_are_learned_as_a_regression_and_keys_are_kept(
    rings: Path, tmp_path: Path
) -> None:
    model, out = tmp_path / "m.saen", tmp_path / "p.csv"
    reading = ["--target", "size", "--id", "code"]
    quick = ["--preset", "network", "--epochs", 1]
    found = run("train", rings, "--out", model, *quick, *reading, "--task", "regression")
    assert found["task"] == "regression"
    invoke("predict", model, rings, "--out", out, *reading, "--keep", "all")
    rows = list(csv.DictReader(out.read_text().splitlines()))
    assert [row["id"] for row in rows] == [f"g{n}" for n in range(len(RINGS))]
    assert {row["lab"] for row in rows} == {"x"}


COUNTS = ("--preset", "counts")


@pytest.fixture
def molecules(tmp_path: Path) -> Path:
    """Charged atoms against neutral ones, which only `--atom-labels smiles` tells apart."""
    pytest.importorskip("rdkit")
    pairs = [(f"{'C' * n}[NH3+]", f"{'C' * n}N") for n in range(1, 9)]
    rows = [
        f"{smiles},{target}" for pair in pairs for smiles, target in zip(pair, "+0", strict=True)
    ]
    path = tmp_path / "mols.csv"
    path.write_text("\n".join(["smiles,target", *rows]))
    return path


def test_predict_reads_molecules_as_the_model_was_trained(molecules: Path, tmp_path: Path) -> None:
    model, table = tmp_path / "m.saen", tmp_path / "p.csv"
    invoke("train", molecules, *COUNTS, "--atom-labels", "smiles", "--out", model)
    assert load(model).origin_.reading == {"atom_labels": "smiles"}
    assert run("inspect", model)["reading"] == {"atom_labels": "smiles"}
    for option in ((), ("--atom-labels", "smiles")):
        found = run("predict", model, molecules, *option, "--out", table, "--force")
        assert (found["accuracy"], found["unseen"]) == (1, 0)
    refusal = (
        "option --atom-labels is element, but the data of the model were read with smiles: omit it"
    )
    own = ("--out", tmp_path / "e.csv")
    assert fails("predict", model, molecules, "--atom-labels", "element") == refusal
    assert fails("embed", model, molecules, *own, "--atom-labels", "element") == refusal
    assert fails("explain", model, molecules, "-g", 0, "--atom-labels", "element") == refusal
    assert fails("explore", model, molecules, "--atom-labels", "element") == refusal
    invoke("embed", model, molecules, *own)
    assert "[NH3+]" in invoke("explain", model, molecules).stdout
    # Formats without the option are read as they are.
    graphs = load_dataset(molecules, atom_labels="smiles")
    write_data(graphs, tmp_path / "mols.jsonl")
    assert run("predict", model, tmp_path / "mols.jsonl", "--out", table, "--force")["unseen"] == 0


def test_predict_refuses_atoms_in_smiles_for_a_model_of_elements(
    molecules: Path, tmp_path: Path
) -> None:
    model, stored = tmp_path / "m.saen", tmp_path / "mols.saen"
    invoke("train", molecules, *COUNTS, "--atom-labels", "element", "--out", model)
    assert "--atom-labels is smiles, but" in fails(
        "predict", model, molecules, "--atom-labels", "smiles"
    )
    # Where the model does not know how its data were read, any choice is possible.
    invoke("convert", molecules, stored, "--atom-labels", "smiles")
    invoke("train", stored, *COUNTS, "--out", model, "--force")
    assert load(model).origin_.reading == {}
    found = run("predict", model, molecules, "--atom-labels", "smiles", "--out", tmp_path / "p.csv")
    assert found["accuracy"] == 1


def test_predict_reads_the_words_that_the_model_was_trained_on(tmp_path: Path) -> None:
    pytest.importorskip("conllu")
    lines = [
        f"# newdoc\n# label = {lemma}\n1\t{form}\t{lemma}\t_\t_\t_\t0\troot\t_\t_\n"
        for form, lemma in (("dogs", "dog"), ("cats", "cat"), ("dog", "dog"), ("cat", "cat")) * 3
    ]
    data, model, table = tmp_path / "x.conllu", tmp_path / "m.saen", tmp_path / "p.csv"
    data.write_text("\n".join(lines))
    options = (*COUNTS, "--target", "label", "--word", "lemma")
    invoke("train", data, *options, "--out", model)
    assert load(model).origin_.reading == {"word": "lemma"}
    assert run("predict", model, data, "--target", "label", "--out", table)["unseen"] == 0
    assert "--word is form" in fails("predict", model, data, "--word", "form")


def test_columns_found_by_name_are_said_on_standard_error(tmp_path: Path) -> None:
    pytest.importorskip("rdkit")
    table = tmp_path / "m.csv"
    table.write_text("smiles;target\nCCO;1\nCC;2\n")
    shown = invoke("validate", table)
    note = "saen: note: m.csv: column 'smiles' read as molecules, 'target' as targets"
    assert note in shown.stderr


def test_the_decomposition_follows_the_data(tmp_path: Path) -> None:
    nested = tmp_path / "n.jsonl"
    nested.write_text('{"parts": {"w": ["x", 2.5]}}\n')
    assert run("compress", nested)["decomposition"]["name"] == "nested"
    assert run("draw", nested, "--out", tmp_path / "n.svg")["decomposition"]["name"] == "nested"
    bonds = Graphs.from_edge_lists([[(0, 1), (1, 2)]], edge_labels=["single", "double"])
    write_data(bonds, tmp_path / "bonds.saen")
    assert run("compress", tmp_path / "bonds.saen")["decomposition"]["edges"] == "roles"


@pytest.mark.parametrize("command", ["compress", "draw"])
def test_roles_need_edges_with_kinds(command: str, tmp_path: Path) -> None:
    write_data(Graphs.from_edge_lists([[(0, 1)]]), tmp_path / "x.saen")
    error = fails(
        command, tmp_path / "x.saen", "-d", "ego(edges=roles)", "--out", tmp_path / "o.svg"
    )
    assert error == "edges='roles' needs edge labels or directions, but these graphs have neither"


def test_the_catalog_says_nothing_about_a_folder_with_the_name_of_a_dataset(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "MUTAG").mkdir()
    (tmp_path / "MUTAG" / "a.edges").write_text("1 2\n")
    assert run("compress", "MUTAG")["decomposition"]["radii"] == [0, 1]


def test_any_json_is_converted_to_nested_data(tmp_path: Path) -> None:
    source, out = tmp_path / "any.jsonl", tmp_path / "out.jsonl"
    source.write_text('{"kind": "a", "size": 3, "tags": ["x", {"y": true}]}\n{"kind": "b"}\n')
    invoke("convert", source, out, "--as", "nested", "--target", "kind", "--depth", 3)
    data = read_nested(out)
    assert data.targets is not None
    assert (data.targets.tolist(), len(data.levels)) == (["a", "b"], 4)
    assert fails("convert", source, tmp_path / "o.csv", "--as", "nested").startswith("nested data")
    whole = tmp_path / "all.json"
    whole.write_text('[{"a": 1}, {"a": 2}]')
    invoke("convert", whole, out, "--as", "nested", "--force")
    assert [parts["a"] for parts in read_nested(out).to_mappings()] == [[1.0], [2.0]]


def test_columns_that_a_format_cannot_store_are_named(rings: Path, tmp_path: Path) -> None:
    shown = invoke("convert", rings, tmp_path / "x.zip", "--id", "code")
    assert "note: TUDataset files have no place for other columns: size, lab" in shown.stderr
    for stored in ("x.jsonl", "x.saen"):
        assert "note" not in invoke("convert", rings, tmp_path / stored).stderr
    assert [*load(tmp_path / "x.saen").extra] == ["size", "code", "lab"]


def test_directed_edges_are_read_where_graphs_are(tmp_path: Path) -> None:
    (tmp_path / "edges.csv").write_text("graph,source,target\na,1,2\na,2,3\n")
    invoke("convert", tmp_path / "edges.csv", tmp_path / "x.saen", "--directed")
    assert load(tmp_path / "x.saen").directed
    found = run("compress", tmp_path / "edges.csv", "--directed")
    assert found["decomposition"]["edges"] == "roles"


def test_early_mistakes_are_reported_without_networks() -> None:
    modules = commands_import(
        "train nosuch.csv --out x.saen",
        "predict nosuch.saen threads",
        "evaluate threads --preset modren",
        "train threads --out x.saen -d egoo",
        "train threads --out x.saen --device gpu",
        "evaluate threads --metric acuracy",
    )
    assert "saen.cli.evaluate" in modules
    assert not modules & NETWORKS


def test_a_model_remembers_which_columns_are_labels(tmp_path: Path) -> None:
    write_data(saen.generate_threads(30), tmp_path / "edges.csv")
    nodes = pd.read_csv(tmp_path / "nodes.csv")
    nodes["kind"], nodes["note"] = np.where(nodes.node % 2, "odd", "even"), "x"
    nodes.to_csv(tmp_path / "nodes.csv", index=False)
    out = tmp_path / "m.saen"
    options = ("--node-label", "kind", "--preset", "counts")
    said = invoke("train", tmp_path / "edges.csv", "--out", out, *options).stderr
    assert "nodes.csv: 'kind' read as node labels, 'note' not read" in said
    assert load(out).origin_.reading == {"node_label": "kind"}
    said = invoke("predict", out, tmp_path / "edges.csv", "--out", tmp_path / "p.csv").stderr
    assert "'note' not read" in said


def test_predict_looks_for_the_keys_of_the_training_in_json_lines(tmp_path: Path) -> None:
    lines = [
        {"nodes": 2 + n % 2, "edges": [[0, 1]], "kind": "ab"[n % 2], "code": f"g{n}"}
        for n in range(20)
    ]
    data, model, table = tmp_path / "g.jsonl", tmp_path / "m.saen", tmp_path / "p.csv"
    data.write_text("\n".join(map(json.dumps, lines)))
    invoke("train", data, "--target", "kind", "--id", "code", *COUNTS, "--out", model)
    assert "accuracy 100.0 %" in invoke("predict", model, data, "--out", table).stderr
    assert table.read_text().splitlines()[1].startswith("g0,a,")
    bare = [{key: line[key] for key in ("nodes", "edges")} for line in lines]
    data.write_text("\n".join(map(json.dumps, bare)))
    assert "accuracy" not in invoke("predict", model, data, "--out", table, "--force").stderr
    assert table.read_text().splitlines()[1].startswith("0,a,")
