"""What users say about their data: which columns hold what, and what becomes of the others."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from saen import Graphs, NestedData, from_json, load_dataset
from saen.errors import FileError, InputError
from saen.io.formats.edge_tables import UnknownGraphsWarning
from saen.io.formats.nested import read_nested, write_nested
from saen.io.loading import DuplicateIdsWarning, load_data
from saen.io.sources.local import catalog_entry, local_path
from saen.io.writing import write_data

GRAPH = '"nodes": 2, "edges": [[0, 1]]'
EDGES = "graph,source,target\na,1,2\nb,1,2\nb,2,3\n"


def put(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


# -- columns and keys --------------------------------------------------------------------------


@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("suffix", [".csv", ".tsv"])
def test_columns_of_molecules_are_chosen_by_name(
    tmp_path: Path, separator: str, suffix: str
) -> None:
    pytest.importorskip("rdkit")
    rows = [["Structure", "Log P", "code", "lab"], ["CCO", "-1", "e7", "x"], ["CC", "2", "e8", "y"]]
    text = "\n".join(separator.join(row) for row in rows)
    file = put(tmp_path, f"m{suffix}", text)
    told: list[str] = []
    graphs = load_dataset(
        file, smiles="structure", target="log p", id="CODE", task="regression", notify=told.append
    )
    assert graphs.targets is not None
    assert graphs.extra is not None
    assert graphs.targets.dtype == np.float64
    assert (graphs.targets.tolist(), graphs.ids.tolist()) == ([-1, 2], ["e7", "e8"])
    assert graphs.extra["lab"].tolist() == ["x", "y"]
    assert told == []
    with pytest.raises(FileError, match=r"no column 'cod' .did you mean code"):
        load_dataset(file, smiles="structure", id="cod")


def test_columns_found_by_name_are_reported_in_one_line(tmp_path: Path) -> None:
    pytest.importorskip("rdkit")
    file = put(tmp_path, "m.csv", "name,smiles,label\nethanol,CCO,1\n")
    told: list[str] = []
    load_dataset(file, notify=told.append)
    assert told == ["m.csv: column 'smiles' read as molecules, 'label' as targets, 'name' as ids"]
    put(tmp_path, "targets.csv", "graph,target\na,1\nb,2\n")
    load_dataset(put(tmp_path, "edges.csv", EDGES), notify=told.append)
    assert told[1:] == ["targets.csv: column 'target' read as targets"]


def test_keys_of_json_lines_are_chosen_and_the_others_kept(tmp_path: Path) -> None:
    lines = [
        f'{{{GRAPH}, "y": 3, "z": 0, "code": "a", "lab": "x", "mass": 1}}',
        f'{{{GRAPH}, "y": 5, "z": 1, "code": "b", "mass": 2.5}}',
    ]
    file = put(tmp_path, "g.jsonl", "\n".join(lines))
    graphs = load_dataset(file, target="y", id="code")
    assert graphs.targets is not None
    assert graphs.extra is not None
    assert (graphs.targets.tolist(), graphs.ids.tolist()) == ([3, 5], ["a", "b"])
    extra = {name: column.tolist() for name, column in graphs.extra.items()}
    assert extra == {"z": [0, 1], "lab": ["x", ""], "mass": [1, 2.5]}
    assert load_dataset(file, target="y,z").targets.tolist() == [[3, 0], [5, 1]]  # type: ignore[union-attr]
    with pytest.raises(FileError, match=r"line 1: no 'cod' .did you mean code"):
        load_dataset(file, id="cod")
    for out in ("h.jsonl", "edges.csv"):
        write_data(graphs, tmp_path / out)
        again = load_dataset(tmp_path / out).extra
        assert again is not None
        assert again["lab"].tolist() == ["x", ""]


def test_tables_of_targets_have_ids_and_extra_columns(tmp_path: Path) -> None:
    file = put(tmp_path, "edges.csv", EDGES)
    put(tmp_path, "targets.csv", "graph,y,code,lab\nb,1.5,7,l\na,2.5,8,m\nzz,0,9,n\n")
    with pytest.warns(UnknownGraphsWarning, match="1 row without a graph, not used .first: 'zz'"):
        graphs = load_dataset(file, target="y", id="code")
    assert graphs.targets is not None
    assert graphs.extra is not None
    assert (graphs.targets.tolist(), graphs.ids.tolist()) == ([1.5, 2.5], [7, 8])
    assert graphs.extra["lab"].tolist() == ["l", "m"]


@pytest.mark.parametrize(
    ("targets", "task", "expected"),
    [
        ([1, 2], "regression", [1.0, 2.0]),
        ([1.5, 2], "regression", [1.5, 2.0]),
        (["a", "b"], "regression", "a regression needs numbers as targets"),
        ([1.0, 2.0], "classification", [1, 2]),
        ([1.5, 2.0], "classification", "a target is 1.5"),
        (["a", "b"], "classification", ["a", "b"]),
    ],
)
def test_task_says_whether_targets_are_classes_or_numbers(
    tmp_path: Path, targets: Any, task: Any, expected: Any
) -> None:
    graphs = Graphs.from_edge_lists([[(0, 1)]] * 2, targets=targets)
    write_data(graphs, tmp_path / "x.saen")
    if isinstance(expected, str):
        with pytest.raises(InputError, match=expected):
            load_dataset(tmp_path / "x.saen", task=task)
        return
    found = load_dataset(tmp_path / "x.saen", task=task).targets
    assert found is not None
    assert (found.tolist(), found.dtype.kind) == (expected, np.array(expected).dtype.kind)


@pytest.mark.parametrize("setting", [{"task": "both"}, {"atom_labels": "poor"}])
def test_values_that_do_not_exist_are_refused(setting: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=f"{next(iter(setting))} must be"):
        load_dataset("threads", **setting)


# -- molecules ---------------------------------------------------------------------------------


def test_smi_files_have_a_name_on_every_line(tmp_path: Path) -> None:
    pytest.importorskip("rdkit")
    file = put(tmp_path, "m.smi", "CCO\tethyl alcohol\n\nC[N+](=O)[O-]\nXX bad\n")
    bad: list[FileError] = []
    graphs = load_dataset(file, skip_bad=True, report=bad.append)
    assert graphs.ids.tolist() == ["ethyl alcohol", "C[N+](=O)[O-]"]
    assert [str(error) for error in bad] == [
        f"{file}: molecule 3: 'XX': invalid SMILES: syntax error around position 1"
    ]


@pytest.mark.parametrize("text", ["\x1c\n", "SMILES name\n"])
def test_smi_files_without_molecules_are_refused(tmp_path: Path, text: str) -> None:
    pytest.importorskip("rdkit")
    with pytest.raises(FileError, match="no molecules"):
        load_dataset(put(tmp_path, "m.smi", text))


def test_sdf_titles_are_ids_and_fields_are_columns(tmp_path: Path) -> None:
    chem = pytest.importorskip("rdkit.Chem")
    pytest.importorskip("rdkit.Chem.AllChem")
    file = tmp_path / "m.sdf"
    with chem.SDWriter(str(file)) as writer:
        for title, smiles, activity in (("one", "CCO", 3), ("two", "c1ccccc1", 5)):
            molecule = chem.AddHs(chem.MolFromSmiles(smiles))
            molecule.SetProp("_Name", title)
            molecule.SetProp("Activity", str(activity))
            molecule.SetProp("Source", "lab")
            writer.write(molecule)
    graphs = load_dataset(file, target="activity")
    assert graphs.sizes.tolist() == [3, 6]  # hydrogens are not nodes
    assert graphs.targets is not None
    assert graphs.extra is not None
    assert (graphs.ids.tolist(), graphs.targets.tolist()) == (["one", "two"], [3, 5])
    assert graphs.extra["Source"].tolist() == ["lab", "lab"]
    broken = file.read_text().replace("  3  2", "  x  y").replace("  9  8", "  x  y", 1)
    with pytest.raises(FileError, match="molecule 1: invalid molecule block"):
        load_dataset(put(tmp_path, "b.sdf", broken))


def test_targets_true_and_false_are_the_same_classes_in_every_format(tmp_path: Path) -> None:
    pytest.importorskip("rdkit")
    pytest.importorskip("pyarrow")
    import pandas as pd

    truths = [True, False]
    lines = [{"nodes": 1, "edges": [], "target": truth} for truth in truths]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, lines)))
    nested = [{"parts": {"x": ["y"]}, "target": truth} for truth in truths]
    (tmp_path / "b.jsonl").write_text("\n".join(map(json.dumps, nested)))
    (tmp_path / "c.csv").write_text("smiles,target\nC,true\nO,false\n")
    pd.DataFrame({"smiles": ["C", "O"], "target": truths}).to_parquet(tmp_path / "d.parquet")
    kinds = {"b.jsonl": "nested"}
    for name in ("a.jsonl", "b.jsonl", "c.csv", "d.parquet"):
        data = load_data(str(tmp_path / name), kinds.get(name, "graphs"))
        assert data.targets.tolist() == ["true", "false"], name
    gaps = pd.DataFrame({"smiles": ["C", "O", "N"], "a": [True, None, False], "b": [1, 0, 1]})
    gaps.to_parquet(tmp_path / "e.parquet")
    targets = load_dataset(tmp_path / "e.parquet", target="a,b").targets
    assert targets.tolist() == [["true", "1"], ["", "0"], ["false", "1"]]
    documents = [{"size": 1, "target": truth} for truth in truths]
    assert from_json(documents).targets.tolist() == ["true", "false"]


def test_molecules_are_read_from_parquet(tmp_path: Path) -> None:
    pytest.importorskip("rdkit")
    pytest.importorskip("pyarrow")
    import pandas as pd

    columns = {"smiles": ["CCO", "CC"], "target": [0.5, 2.0], "id": [4, 2], "batch": ["a", "b"]}
    pd.DataFrame(columns).to_parquet(tmp_path / "m.parquet")
    graphs = load_dataset(tmp_path / "m.parquet")
    assert graphs.targets is not None
    assert graphs.extra is not None
    assert (graphs.ids.tolist(), graphs.targets.tolist()) == ([4, 2], [0.5, 2.0])
    assert graphs.extra["batch"].tolist() == ["a", "b"]


def test_rich_atoms_tell_charges_and_aromaticity(tmp_path: Path) -> None:
    pytest.importorskip("rdkit")
    file = put(tmp_path, "m.csv", "smiles\nC[N+](=O)[O-]\nc1ccccc1\n")
    plain, rich = (
        load_dataset(file, atom_labels=each).node_labels for each in ("element", "smiles")
    )
    assert plain is not None
    assert rich is not None
    assert {*plain.tolist()} == {"C", "N", "O"}
    assert {*rich.tolist()} == {"C", "[N+]", "O", "[O-]", "c"}


# -- ids ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("ids", [["x/1", "ä b", "x/1"], [7, 3, 5]])
@pytest.mark.parametrize(
    ("out", "format"),
    [("t.zip", None), ("t", "tu"), ("g", "graphml"), ("edges.csv", None), ("g.jsonl", None)],
)
@pytest.mark.parametrize("targets", [None, ["a", "b", "c"]])
def test_ids_are_written_and_read_back(
    tmp_path: Path, ids: Any, out: str, format: str | None, targets: Any
) -> None:
    graphs = Graphs.from_edge_lists([[(0, 1)], [(0, 1), (1, 2)], [(0, 1)]], ids=ids)
    write_data(graphs.with_targets(targets), tmp_path / out, format=format)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DuplicateIdsWarning)
        again = load_dataset(tmp_path / out)
    assert again.ids.tolist() == ids
    assert again.sizes.tolist() == [2, 3, 2]


def test_ids_that_repeat_are_a_warning_for_documents_and_nested_data_too(tmp_path: Path) -> None:
    nested = put(tmp_path, "n.jsonl", '{"id": "a", "parts": {"w": ["x"]}}\n' * 2)
    with pytest.warns(DuplicateIdsWarning, match="1 id used by more than one example: 'a'"):
        load_data(nested, "nested")
    pytest.importorskip("conllu")
    sentence = "# newdoc id = a\n1\tyes\tyes\tINTJ\t_\t_\t0\troot\t_\t_\n\n"
    with pytest.warns(DuplicateIdsWarning, match="1 id used by more than one document: 'a'"):
        load_data(put(tmp_path, "d.conllu", sentence * 2), "documents")


# -- names and paths ---------------------------------------------------------------------------


def test_a_path_is_never_taken_for_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert catalog_entry("MUTAG") is not None
    (tmp_path / "MUTAG").mkdir()
    put(tmp_path / "MUTAG", "a.edges", "1 2\n")
    assert catalog_entry("MUTAG") is None
    assert local_path("MUTAG") == Path("MUTAG")
    assert len(load_dataset("MUTAG")) == 1
    put(tmp_path, "stdlib-functions", "")
    with pytest.raises(FileError, match="stdlib-functions: unknown format"):
        load_data("stdlib-functions", "nested")


# -- nested data and any JSON ------------------------------------------------------------------


def test_nested_leaves_may_be_numbers(tmp_path: Path) -> None:
    items: list[Any] = [{"size": [3.0, 2.5, 3.0], "name": ["x", 3]}, {"size": [-1.0]}]
    data = NestedData(items)
    assert data.to_mappings()[0] == {"name": [3, "x"], "size": [2.5, 3.0, 3.0]} or (
        sorted(data.to_mappings()[0]["size"]) == [2.5, 3.0, 3.0]
    )
    attributes = data[1].hierarchy.attributes
    assert attributes.vectors is not None
    assert attributes.vectors.tolist() == [[-1.0]]
    write_nested(data, tmp_path / "n.jsonl")
    assert read_nested(tmp_path / "n.jsonl") == data
    with pytest.raises(InputError, match="a number must be finite, found nan"):
        NestedData([{"size": [float("nan")]}])


def test_from_json_makes_levels_and_roles_of_objects_and_lists() -> None:
    document = {"a": "x", "b": {"c": [1, 2.5, None]}, "d": [[True, "y"], []], "e": None, "": "z"}
    [parts] = from_json([document]).to_mappings()
    assert parts["a"] == [{"carry": ["x"]}]
    assert parts["b"] == [{"c": [1.0, 2.5]}]
    assert parts['""'] == [{"carry": ["z"]}]
    assert {} in parts["d"]
    assert {"item": ["true", "y"]} in parts["d"]
    assert "e" not in parts


def test_from_json_takes_targets_ids_and_a_depth() -> None:
    documents = [{"id": "u", "y": "pos", "a": "x"}, {"id": "v", "y": "neg", "a": {"b": "x"}}]
    data = from_json(documents, target="y", name="j")
    assert data.targets is not None
    assert (data.targets.tolist(), data.ids.tolist()) == (["pos", "neg"], ["u", "v"])
    assert len(data.levels) == 3
    assert from_json(documents[:1], target="y", depth=2).levels == data.levels
    with pytest.raises(InputError, match="document 1 has 2 levels below the top, expected at most"):
        from_json(documents, depth=1)
    with pytest.raises(InputError, match="document 1 has no target"):
        from_json([{"target": 1, "a": 2}, {"a": 3}])
    deep: Any = 1
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(InputError, match="nested too deeply"):
        from_json([deep])
