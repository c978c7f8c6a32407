"""`saen convert` and `saen validate`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from saen import Graphs, PartCountsClassifier, generate_threads, load, load_dataset
from saen.data.nested import NestedData
from saen.errors import FileError
from saen.io.formats.jsonl import EXAMPLE
from saen.io.formats.nested import write_nested
from saen.io.loading import load_data
from saen.io.writing import write_data
from tests.cli.commandline import fails, invoke, run

TWO = Graphs.from_edge_lists([[(0, 1), (1, 2)], [(0, 1)]], targets=["long", "short"])


def test_a_newcomer_converts_checks_and_compresses_a_folder(tmp_path: Path) -> None:
    threads = generate_threads(20, average_nodes=8, seed=1)
    write_data(threads, tmp_path / "mine", format="graphml")
    shown = invoke("convert", tmp_path / "mine", tmp_path / "mine.jsonl")
    assert f"saved       {tmp_path / 'mine.jsonl'}" in shown.stdout
    assert load_dataset(tmp_path / "mine.jsonl") == threads
    checked = invoke("validate", tmp_path / "mine.jsonl")
    assert "20 graphs" in checked.stdout
    assert "no problems" in checked.stdout
    assert "classes             discussion: 10, questions: 10" in checked.stdout
    report = run("compress", tmp_path / "mine.jsonl")
    assert report["levels"][-1]["objects"] == 20


def test_convert_reports_files_and_what_was_skipped(tmp_path: Path) -> None:
    file = tmp_path / "x.jsonl"
    file.write_text('{"nodes": 1, "edges": [[0, 0]]}\n' + "nonsense\n" * 12)
    document = run("convert", file, tmp_path / "y.csv", "--skip-bad")
    assert document["graphs"] == 1
    assert document["files"] == [
        str(tmp_path / f"y{end}.csv") for end in ("", "_nodes", "_targets")
    ]
    assert len(document["skipped"]) == 12
    result = invoke("convert", file, tmp_path / "y.csv", "--skip-bad", "--force")
    assert result.stderr.count("saen: skipped: ") == 10
    assert "saen: skipped 12 records in total" in result.stderr


def test_validate_names_offending_lines_with_exit_code_2(tmp_path: Path) -> None:
    file = tmp_path / "x.jsonl"
    good, bad = '{"nodes": 2, "edges": [[0, 1]]}', '{"nodes": 2, "edges": [[0, 2]]}'
    lines = [good, bad, "", *"{{{{{{{", "["]
    file.write_text("\n".join(lines))
    result = invoke("validate", file, "--limit", 2, code=2)
    assert "1 graph, 2 nodes, 1 edge" in result.stdout
    assert "targets             none: graphs can be predicted, but not trained on" in result.stdout
    assert "9 problems (--skip-bad of other commands reads the rest)\n" in result.stdout
    assert f"  {file}, line 2: edge 0 refers to node 2, but nodes without" in result.stdout
    assert f"  {file}, lines 4, 5, 6, 7, 8 and 2 more: invalid JSON" in result.stdout
    assert "  … and 1 more" in result.stdout
    assert result.stdout.index("line 2") < result.stdout.index("1 graph, 2 nodes")
    document = run("validate", file, code=2)
    assert (document["ok"], document["count"], document["n_problems"]) == (False, 1, 9)
    assert [(each["line"], each["count"]) for each in document["problems"]] == [
        (2, 1), (4, 7), (11, 1)
    ]  # fmt: skip
    assert document["summary"]["edges"] == 1


def test_json_lines_on_standard_input(tmp_path: Path) -> None:
    write_data(TWO, tmp_path / "x.jsonl")
    text = (tmp_path / "x.jsonl").read_text()
    assert "2 graphs, 5 nodes, 3 edges" in invoke("validate", "-", input=text).stdout
    invoke("convert", "-", tmp_path / "y.saen", input=text)
    assert load(tmp_path / "y.saen") == TWO
    assert run("compress", "-", input=text)["levels"][-1]["objects"] == 2
    model = tmp_path / "model.saen"
    PartCountsClassifier(depth=1, C=1.0).fit(TWO, TWO.targets).save(model)
    rows = invoke("predict", model, "-", input=text).stdout.splitlines()
    assert [row.split(",")[0] for row in rows] == ["id", "0", "1"]
    with pytest.raises(FileError, match=r"^standard input, line 1: no 'nodes'"):
        invoke("compress", "-", input="{}\n")
    problem = invoke("validate", "-", input="{}\n", code=2).stdout
    assert "standard-input.jsonl, line 1: no 'nodes'" in problem


def test_documents_and_nested_data_are_converted_to_what_can_hold_them(tmp_path: Path) -> None:
    pytest.importorskip("conllu")
    (tmp_path / "x.conllu").write_text("1\tDogs\tdog\tNOUN\t_\t_\t0\troot\t_\t_\n")
    assert "1 word" in invoke("convert", tmp_path / "x.conllu", tmp_path / "x.saen").stdout
    assert load(tmp_path / "x.saen").words.tolist() == ["dogs"]
    invoke("convert", tmp_path / "x.conllu", tmp_path / "l.saen", "--word", "lemma")
    assert load(tmp_path / "l.saen").words.tolist() == ["dog"]
    error = fails("convert", tmp_path / "x.conllu", tmp_path / "x.jsonl")
    assert error == "documents are written as .saen, or as shards with --shards, not as x.jsonl"
    notes = NestedData([{"word": ["the", "dog"]}])
    write_nested(notes, tmp_path / "n.jsonl")
    invoke("convert", tmp_path / "n.jsonl", tmp_path / "n.saen")
    invoke("convert", tmp_path / "n.saen", tmp_path / "m.jsonl")
    assert (tmp_path / "m.jsonl").read_bytes() == (tmp_path / "n.jsonl").read_bytes()
    error = fails("convert", tmp_path / "n.jsonl", tmp_path / "n.csv")
    assert "nested data are written as .saen, .jsonl, .ndjson, or as shards" in error
    error = fails("validate", tmp_path / "n.jsonl", "--word", "lemma")
    assert error == "n.jsonl: option --word applies only to CoNLL-U"


def test_validate_takes_a_file_that_cannot_be_read_at_all(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("graph,source\n1,2\n")
    document = run("validate", tmp_path / "x.csv", code=2)
    assert (document["count"], document["n_problems"]) == (0, 1)
    assert "no column 'target'" in document["problems"][0]["message"]


def test_validate_looks_at_structures_and_real_targets_too(tmp_path: Path) -> None:
    write_nested(NestedData([{"word": ["the", "dog"]}]), tmp_path / "notes.jsonl")
    assert "no problems" in invoke("validate", tmp_path / "notes.jsonl").stdout
    write_data(TWO.with_targets([0.5, -2]), tmp_path / "x.jsonl")
    shown = invoke("validate", tmp_path / "x.jsonl").stdout
    assert "targets             real numbers from -2 to 0.5" in shown


def test_tables_are_named_by_options(tmp_path: Path) -> None:
    (tmp_path / "e.csv").write_text("graph,source,target\na,1,2\n")
    (tmp_path / "n.csv").write_text("graph,node\na,1\na,2\na,3\n")
    (tmp_path / "l.csv").write_text("graph,target\na,yes\n")
    options = [
        "--nodes-file",
        tmp_path / "n.csv",
        "--targets-file",
        tmp_path / "l.csv",
        "--directed",
    ]
    invoke("convert", tmp_path / "e.csv", tmp_path / "x.saen", *options)
    expected = Graphs.from_edge_lists([[(0, 1)]], [3], directed=True, targets=["yes"])
    assert load(tmp_path / "x.saen") == expected
    invoke("validate", tmp_path / "e.csv", *options)


def test_mistakes_are_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_data(TWO, tmp_path / "x.jsonl")
    assert fails("convert", "no.jsonl", "x.jsonl") == "no.jsonl: no such file or folder"
    write_data(TWO, tmp_path / "z.jsonl")
    error = fails("convert", "z.jsonl", "x.jsonl")
    assert error == "x.jsonl: already exists (use --force to overwrite)"
    error = fails("convert", "x.jsonl", "out")
    assert "for a folder, use --format tu or --format graphml" in error
    (tmp_path / "bad.jsonl").write_text("{}\n")
    error = fails("convert", "bad.jsonl", "y.jsonl")
    hint = f"a graph is a line such as {EXAMPLE}; convert with --as nested reads any JSON"
    assert error == f"bad.jsonl, line 1: no 'nodes': {hint}"
    assert not (tmp_path / "y.jsonl").exists()


def test_an_input_by_its_name_is_never_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SAEN_DATA", str(tmp_path))
    write_data(TWO, tmp_path / "toy.zip")
    before = (tmp_path / "toy.zip").read_bytes()
    for command in (("convert", "toy", tmp_path / "toy.zip"), ("compress", "toy", "-o", "toy.zip")):
        monkeypatch.chdir(tmp_path)
        assert "is an input of this command" in fails(*command, "--force")
    assert (tmp_path / "toy.zip").read_bytes() == before


def test_an_input_inside_the_output_folder_is_never_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_data(TWO, tmp_path / "mine", format="graphml")
    file = next((tmp_path / "mine").glob("*.graphml"))
    words = ("convert", file, tmp_path / "mine", "--format", "graphml", "--force")
    assert "is an input of this command" in fails(*words)
    assert file.exists()


def test_convert_streams_into_shards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    threads = generate_threads(20, average_nodes=8, seed=1)
    write_data(threads, tmp_path / "big.jsonl")
    parts: list[int] = []
    monkeypatch.setattr("saen.io.formats.jsonl.PART_BYTES", 1000)
    monkeypatch.setattr("saen.io.formats.jsonl._BLOCK_BYTES", 1000)
    monkeypatch.setattr(
        "saen.io.store.shards._weights",
        lambda graphs: parts.append(len(graphs)) or graphs.node_offsets,
    )
    report = run("convert", tmp_path / "big.jsonl", tmp_path / "shards", "--shards", 3)
    assert report["graphs"] == sum(parts) == 20
    assert max(parts) < 20
    assert len(report["files"]) == 3
    assert load_dataset(tmp_path / "shards") == threads


def test_convert_writes_any_json_and_documents_to_shards(tmp_path: Path) -> None:
    (tmp_path / "any.json").write_text('[{"a": 1.5, "id": "p"}, {"b": ["x", "y"], "id": "q"}]')
    run("convert", tmp_path / "any.json", tmp_path / "nested", "--as", "nested", "--shards", 2)
    assert load_data(tmp_path / "nested", "nested").ids.tolist() == ["p", "q"]
    (tmp_path / "two.conllu").write_text("1\tGo\tgo\tVERB\t_\t_\t0\troot\t_\t_\n\n" * 2)
    shown = invoke("convert", tmp_path / "two.conllu", tmp_path / "texts", "--shards", 2)
    assert "two: 2 documents in 2 shards" in shown.stdout
    assert run("compress", tmp_path / "texts")["levels"][-1]["objects"] == 2


def test_validate_describes_each_of_several_targets_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("smiles,toxic,soluble,logp\nC,1,,0.5\nCC,0,yes,\nCCC,,no,2\n")
    shown = invoke("validate", tmp_path / "x.csv", "--target", "toxic,soluble").stdout
    assert "target toxic        0: 1, 1: 1; 1 missing" in shown
    assert "target soluble      no: 1, yes: 1; 1 missing" in shown
    shown = invoke("validate", tmp_path / "x.csv", "--target", "logp,toxic").stdout
    assert "target logp         real numbers from 0.5 to 2; 1 missing" in shown
    document = run("validate", tmp_path / "x.csv", "--target", "toxic,soluble")
    expected = {"known": 2, "missing": 1, "classes": {"0": 1, "1": 1}}
    assert document["summary"]["targets"]["toxic"] == expected


@pytest.mark.parametrize("how", [[], ["--shards", 2]])
def test_convert_keeps_the_names_of_several_targets(tmp_path: Path, how: list[Any]) -> None:
    (tmp_path / "x.csv").write_text("smiles,b,a\nC,1,0\nCC,0,1\nCCC,,1\n")
    out = tmp_path / ("shards" if how else "x.saen")
    invoke("convert", tmp_path / "x.csv", out, "--target", "a,b", *how)
    assert load_dataset(out).target_names == ("a", "b")
    assert load_dataset(out)[1:].target_names == ("a", "b")
    invoke("compress", out, "--out", tmp_path / "c.saen")
    assert run("inspect", tmp_path / "c.saen")["targets"] == ["a", "b"]


def test_validate_names_attributes_that_models_refuse(tmp_path: Path) -> None:
    file = tmp_path / "far.jsonl"
    nodes = '[{"attributes": [1e300]}, {"attributes": [0.5]}]'
    file.write_text(f'{{"id": "a", "nodes": {nodes}, "edges": [[0, 1]]}}\n')
    assert "graph a: node attribute 0 is 1e+300" in invoke("validate", file, code=2).stdout


def test_convert_refuses_gaps_of_several_targets_that_tu_files_cannot_store(tmp_path: Path) -> None:
    file = tmp_path / "assays.csv"
    file.write_text("smiles,t1,t2\nCCO,yes,\nCCC,no,yes\nCCN,yes,no\n")
    told = fails("convert", file, tmp_path / "assays.zip", "--target", "t1,t2")
    assert "targets have 1 gap, which only .saen stores" in told
    assert list(tmp_path.iterdir()) == [file]
