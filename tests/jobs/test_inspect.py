"""`saen inspect`: what a file is, from what it says about itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import saen
from saen import FileError, Graphs, SAENClassifier, SAENRegressor, generate_threads
from saen.decompositions import Ego
from saen.io.store import container
from saen.io.store.container import read_header
from saen.io.store.shards import write_shards
from saen.jobs.inspect import inspect_file
from tests.cli.commandline import fails, invoke, run

SMALL: dict[str, Any] = {
    "epochs": 2,
    "n_models": 3,
    "inner_folds": 0,
    "device": "cpu",
    "hidden": [[3], [5, 4], [6]],
}


@pytest.fixture(scope="module")
def threads() -> Graphs:
    return generate_threads(20, average_nodes=10, seed=1)


@pytest.fixture(scope="module")
def classifier(threads: Graphs) -> SAENClassifier:
    return SAENClassifier(radii=(0, 1), node_labels="degree", **SMALL).fit(threads, threads.targets)


def test_inspect_graphs(threads: Graphs, tmp_path: Path) -> None:
    size = saen.save(threads, tmp_path / "g.saen")
    assert run("inspect", tmp_path / "g.saen") == {
        "file": str(tmp_path / "g.saen"),
        "kind": "graphs",
        "format": 1,
        "bytes": size,
        "name": "threads",
        "graphs": 20,
        "nodes": threads.n_nodes,
        "entries": 2 * threads.n_edges,
        "directed": False,
        "columns": ["targets"],
        "targets": 1,
    }


def test_inspect_shards(threads: Graphs, tmp_path: Path) -> None:
    shards = write_shards([threads], tmp_path / "shards", 3)
    found = run("inspect", shards.folder)
    assert (found["kind"], found["shards"], found["graphs"]) == ("shards", 3, 20)
    assert (found["nodes"], found["edges"]) == (threads.n_nodes, threads.n_edges)
    assert found["bytes"] == sum(file.stat().st_size for file in shards.files)
    assert "shards" in invoke("inspect", shards.folder).stdout


def test_inspect_hierarchies_before_and_after_compression(threads: Graphs, tmp_path: Path) -> None:
    hierarchy = Ego().fit(threads).decompose(threads)
    compressed = saen.compress(hierarchy)
    saen.save(hierarchy, tmp_path / "h.saen")
    saen.save(compressed, tmp_path / "c.saen")
    found = inspect_file(tmp_path / "h.saen")
    assert found["kind"] == "hierarchy"
    assert [level["objects"] for level in found["levels"]] == list(hierarchy.sizes)
    assert [level["name"] for level in found["levels"]] == list(hierarchy.names)
    assert found["levels"][1]["entries"] == hierarchy.relations[0].n_entries
    assert found["levels"][1]["roles"] == ["root", "elem"]
    assert found["labels"] == len(hierarchy.attributes.vocabulary)
    found = inspect_file(tmp_path / "c.saen")
    assert found["kind"] == "compressed"
    assert [level["objects"] for level in found["levels"]] == list(compressed.hierarchy.sizes)
    assert [level["objects_before"] for level in found["levels"]] == list(hierarchy.sizes)
    assert [level["entries_before"] for level in found["levels"]] == list(compressed.entries)


def test_inspect_models(classifier: SAENClassifier, threads: Graphs, tmp_path: Path) -> None:
    size = classifier.save(tmp_path / "m.saen")
    found = run("inspect", tmp_path / "m.saen")
    assert (found["kind"], found["format"], found["saen"]) == ("model", 1, saen.__version__)
    assert found["bytes"] == size
    assert found["estimator"] == "SAENClassifier"
    assert found["classes"] == ["discussion", "questions"]
    assert found["decomposition"] == classifier.decomposition_.settings()
    assert found["levels"] == ["nodes", "ego graphs", "graphs"]
    assert found["labels"] == len(classifier.decomposition_.vocabulary)
    assert found["networks"] == 3
    assert found["epochs"] == 2
    assert found["layers"] == [[3], [5, 4], [6, 1]]
    assert found["settings"]["learning_rate"] == 0.01
    numbers = sum(tensor.numel() for tensor in classifier.network_.state_dict().values())
    assert found["numbers"] == numbers
    SAENRegressor(**SMALL).fit(threads, threads.sizes).save(tmp_path / "r.saen")
    found = inspect_file(tmp_path / "r.saen")
    assert (found["estimator"], found["classes"]) == ("SAENRegressor", None)
    SAENRegressor(**SMALL | {"inner_folds": 2}).fit(threads, threads.sizes).save(
        tmp_path / "r.saen"
    )
    assert inspect_file(tmp_path / "r.saen")["networks"] == 2 * 3
    SAENClassifier(**SMALL).fit(Ego().decompose(threads), threads.targets).save(tmp_path / "h.saen")
    assert inspect_file(tmp_path / "h.saen")["decomposition"] is None


def test_inspect_blends(threads: Graphs, tmp_path: Path) -> None:
    members = [saen.PartCountsClassifier("neighbourhoods(depth=1)"), SAENClassifier(**SMALL)]
    for each in members:
        each.set_params(inner_folds="auto")
    model = saen.Classifier(candidates=members).fit(threads, threads.targets)
    model.save(tmp_path / "b.saen")
    found = run("inspect", tmp_path / "b.saen")
    assert (found["kind"], found["estimator"]) == ("model", "Classifier")
    assert found["classes"] == ["discussion", "questions"]
    assert [(each["candidate"], each["weight"], each["score"]) for each in found["members"]] == [
        (each.name, each.weight, each.score) for each in model.members_
    ]
    assert {each["decomposition"] for each in found["members"]} == {"neighbourhoods", "ego"}
    assert found["tried"] == model.tried_


@pytest.mark.parametrize("diverged", [False, True])
def test_inspect_checkpoints(threads: Graphs, tmp_path: Path, diverged: bool) -> None:
    path = tmp_path / "run.checkpoint"
    compressed = saen.compress_graphs(threads, Ego().fit(threads))
    task = saen.network.Task.classification(1 * (threads.targets == "questions"), n_models=3)
    shape = saen.network.Architecture.over(compressed.hierarchy, [[3], [4], [1]])
    network = saen.network.SAEN(shape, seeds=range(3))
    if diverged:
        with torch.no_grad():
            network.level(1).bias[1] = torch.nan
    history = saen.network.train(
        network, compressed, task, saen.network.Settings(epochs=2), checkpoint=path, tolerant=True
    )
    found = inspect_file(path)
    assert (found["kind"], found["epoch"], found["networks"]) == ("checkpoint", 2, 3)
    known = [loss for loss in history.loss[-1] if loss is not None]
    assert len(known) == 3 - diverged
    assert found["loss"] == pytest.approx(np.mean(known))


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_inspect_tables_of_predictions(
    classifier: SAENClassifier, threads: Graphs, tmp_path: Path, suffix: str
) -> None:
    classifier.save(tmp_path / "m.saen")
    saen.save(threads, tmp_path / "g.saen")
    out = tmp_path / f"p{suffix}"
    invoke("predict", tmp_path / "m.saen", tmp_path / "g.saen", "-o", out)
    assert inspect_file(out) == {
        "kind": "predictions",
        "bytes": out.stat().st_size,
        "rows": 20,
        "classes": ["discussion", "questions"],
        "columns": ["id", "prediction", "p_discussion", "p_questions", "agreement"],
    }


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".npy", ".safetensors"])
def test_inspect_embeddings(
    classifier: SAENClassifier, threads: Graphs, tmp_path: Path, suffix: str
) -> None:
    classifier.save(tmp_path / "m.saen")
    saen.save(threads, tmp_path / "g.saen")
    out = tmp_path / f"e{suffix}"
    invoke("embed", tmp_path / "m.saen", tmp_path / "g.saen", "-o", out, "--level", 0)
    found = inspect_file(out)
    assert (found["kind"], found["rows"], found["width"]) == ("embeddings", threads.n_nodes, 9)
    if suffix != ".npy":
        assert set(found["columns"]) == {"id", "object", "target"}
    if suffix == ".safetensors":
        assert found["level"] == "nodes"


def test_inspect_run_directories(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    options = ("--repeats", 1, "--folds", 3, "--epochs", 1, "--models", 1, "--out", folder)
    report = run("evaluate", "threads", "--preset", "network", *options)
    found = run("inspect", folder)
    assert (found["kind"], found["done"], found["dataset"]) == ("run", True, "threads")
    assert found["accuracy"] == report["accuracy"]
    assert found["saen"] == saen.__version__
    assert "summary.json" in found["files"]
    groups = [folder / name for name in found["files"] if name.startswith("networks-")]
    kept = [inspect_file(group) for group in groups]
    assert {each["kind"] for each in kept} == {"predictions"}
    assert sum(each["networks"] for each in kept) == 3 * 5  # of five inner folds each
    # Every network was asked about a fifth of 200 training examples, and about 100 tests.
    assert sum(each["rows"] for each in kept) == 3 * (200 + 5 * 100)
    (folder / "summary.json").unlink()
    assert inspect_file(folder)["done"] is False


def test_inspect_predictions_of_part_counts(threads: Graphs, tmp_path: Path) -> None:
    counts = saen.PartCountsClassifier(C=1.0, depth=1, inner_folds=0)
    saen.cross_validate(counts, threads, threads.targets, n_repeats=1, n_folds=2, run_dir=tmp_path)
    files = [*tmp_path.glob("counts-*.saen")]
    assert len(files) == 2
    for file in files:
        found = inspect_file(file)
        assert (found["kind"], found["rows"], found["models"]) == ("predictions", 10, 1)


def test_inspect_prints_for_people(classifier: SAENClassifier, tmp_path: Path) -> None:
    classifier.save(tmp_path / "m.saen")
    told = invoke("inspect", tmp_path / "m.saen").stdout
    lines = [line.split() for line in told.splitlines()]
    assert lines[0] == [f"{tmp_path / 'm.saen'}:", "model"]
    assert ["layers", "[3]", "[5,", "4]", "[6,", "1]"] in lines
    assert ["decomposition", "ego,"] in [line[:2] for line in lines]
    assert "radii 0, 1" in told
    assert ["classes", "discussion,", "questions"] in lines


def test_inspect_does_not_read_large_arrays(threads: Graphs, tmp_path: Path) -> None:
    path = tmp_path / "g.saen"
    saen.save(threads, path)
    whole = inspect_file(path)
    damaged = bytearray(path.read_bytes())
    damaged[-1] ^= 1
    path.write_bytes(damaged)
    assert inspect_file(path) == whole
    with pytest.raises(FileError, match="checksum does not match"):
        saen.load(path)


def test_inspect_header_alone_gives_what_reading_everything_gives(
    classifier: SAENClassifier, tmp_path: Path
) -> None:
    classifier.save(tmp_path / "m.saen")
    header = read_header(tmp_path / "m.saen")
    kind, document, arrays = container.read(tmp_path / "m.saen")
    assert (header.kind, header.document) == (kind, document)
    assert header.shapes == {key: array.shape for key, array in arrays.items()}


def test_inspect_describes_unknown_kinds_by_their_arrays(tmp_path: Path) -> None:
    container.write(tmp_path / "x.saen", "surprise", {}, {"a": np.zeros((2, 3))})
    found = inspect_file(tmp_path / "x.saen")
    assert (found["kind"], found["arrays"]) == ("surprise", {"a": [2, 3]})


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("x.saen", "a letter", "not a readable saen file"),
        ("x.csv", "a,b\n1,2\n", "neither predictions nor embeddings; saen validate describes"),
        ("x.csv", "", "neither predictions nor embeddings"),
        ("x.csv", b"\xff\xfe", "not readable as csv"),
        ("x.jsonl", "[1, 2", "not readable as jsonl"),
        ("x.jsonl", "7", "not readable as jsonl"),
        ("x.jsonl", "", "neither predictions nor embeddings"),
        ("x.jsonl", '{"id": 1, "nodes": 2, "edges": []}', "saen validate describes a file of data"),
        ("x.parquet", "nonsense", "not readable as parquet"),
        ("x.npy", "nonsense", "invalid npy file"),
        ("x.txt", "a letter", "not a readable saen file"),
        ("nothing", None, "nothing: no such file"),
        (".", None, "a folder, but neither a run directory nor shards"),
    ],
)
def test_inspect_names_foreign_files(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    content: Any,
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    if content is not None:
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    assert message in fails("inspect", name)


def test_inspect_names_newer_formats_and_damaged_metadata(
    threads: Graphs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x.saen"
    container.write(path, "graphs", {"name": "x"}, {"indptr": np.zeros(2)})
    with pytest.raises(FileError, match="damaged: its metadata is not what saen writes"):
        inspect_file(path)
    monkeypatch.setattr(container, "VERSION", 2)
    saen.save(threads, path)
    monkeypatch.undo()
    with pytest.raises(FileError, match="format version 2, but this saen reads up to 1"):
        inspect_file(path)
    (tmp_path / "settings.json").write_text(json.dumps([1]))
    with pytest.raises(FileError, match="has no checksum"):
        inspect_file(tmp_path)
