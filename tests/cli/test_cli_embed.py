"""`saen embed` and `saen plot embeddings`: vectors with their owners, and maps of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from safetensors.numpy import load_file

import saen
from saen import Graphs, SAENClassifier
from saen.decompositions.registry import make_decomposition
from saen.io.embeddings import FORMATS, read_embeddings
from saen.learning.prediction import embed_chunks, owners
from saen.report.embedding_map import plot_embeddings, project
from tests.cli.commandline import fails, invoke, run
from tests.properties.strategies import graph_collections


@pytest.mark.parametrize("suffix", FORMATS)
def test_every_format_holds_one_vector_per_graph(
    classifier: SAENClassifier, threads: Graphs, model: Path, suffix: str
) -> None:
    out = model.with_name(f"e{suffix}")
    report = run("embed", model, model.with_name("threads.saen"), "--out", out)
    assert report == {
        "out": str(out),
        "level": 2,
        "name": "graphs",
        "rows": 30,
        "width": 30,  # a network of each of five inner folds
    }
    vectors, columns = read_embeddings(out)
    assert_allclose(vectors, classifier.embed(threads), rtol=1e-5, atol=1e-6)
    if suffix == ".npy":
        assert columns == {}
        return
    assert list(columns) == ["id", "target"]
    assert_array_equal(columns["id"], np.arange(30))
    assert_array_equal(columns["target"], threads.targets)


def test_others_can_read_the_files(threads: Graphs, model: Path) -> None:
    data = model.with_name("threads.saen")
    for suffix in FORMATS:
        invoke("embed", model, data, "-o", model.with_name(f"e{suffix}"), "--level", 0)
    table = pd.read_csv(model.with_name("e.csv"))
    wide = pd.read_parquet(model.with_name("e.parquet"))
    names = ["id", "object", "target", *(f"e{i}" for i in range(20))]
    assert list(table) == list(wide) == names
    arrays = load_file(model.with_name("e.safetensors"))
    assert_array_equal(arrays["id"], table["id"])
    assert_array_equal(arrays["object"], wide["object"])
    matrix = np.load(model.with_name("e.npy"))
    assert matrix.dtype == np.float32
    assert matrix.shape == (threads.n_nodes, 20)
    assert_array_equal(matrix, arrays["vectors"])
    assert_array_equal(matrix, wide[[f"e{i}" for i in range(20)]])


@pytest.mark.parametrize(
    ("level", "chosen"), [("0", 0), ("nodes", 0), ("1", 1), ("ego graphs", 1), ("graphs", 2)]
)
def test_rows_of_any_level_say_whose_they_are(
    classifier: SAENClassifier, threads: Graphs, model: Path, level: str, chosen: int
) -> None:
    out = model.with_name("e.parquet")
    report = run("embed", model, model.with_name("threads.saen"), "-o", out, "--level", level)
    vectors, columns = read_embeddings(out)
    assert report["level"] == chosen
    assert_allclose(vectors, classifier.embed(threads, chosen), rtol=1e-5, atol=1e-6)
    # A node is one object, and has one ego graph of each of the two radii.
    each = [threads.sizes, 2 * threads.sizes, np.ones(30, dtype=int)][chosen]
    assert_array_equal(columns["id"], np.repeat(np.arange(30), each))
    assert_array_equal(columns["target"], threads.targets[columns["id"]])
    if chosen < 2:
        numbers = np.concatenate([np.arange(size) for size in each])
        assert_array_equal(columns["object"], numbers)


def test_chunks_of_any_size_give_the_same_vectors(
    classifier: SAENClassifier, threads: Graphs
) -> None:
    for level in (None, 2, 1, 0):
        (whole,) = embed_chunks(classifier.fitted_, threads, level)
        parts = list(embed_chunks(classifier.fitted_, threads, level, limit=1))
        assert len(parts) == 30
        for name in ("graphs", "objects"):
            joined = np.concatenate([getattr(part, name) for part in parts])
            assert_array_equal(joined, getattr(whole, name))
        joined = np.concatenate([part.vectors for part in parts])
        assert_allclose(joined, whole.vectors, rtol=1e-5, atol=1e-6)


@given(
    graph_collections(),
    st.sampled_from(["ego", "ego(radii=(2,))", "paths", "neighbourhoods", "nodes", "edges"]),
)
def test_owners_are_those_of_graphs_that_are_taken_apart_one_by_one(drawn: Any, name: str) -> None:
    graphs = drawn.graphs
    decomposition = make_decomposition(name, defaults={"node_labels": "degree"}).fit(graphs)
    hierarchy = decomposition.decompose(graphs)
    alone = [decomposition.decompose(graph).sizes for graph in graphs]
    for level in range(hierarchy.depth + 1):
        each = [sizes[level] for sizes in alone]
        expected = np.repeat(np.arange(len(graphs)), each)
        assert_array_equal(owners(hierarchy, level), expected)


def test_an_object_that_is_part_of_nothing_is_counted_with_the_one_before_it() -> None:
    labels = saen.Attributes(np.zeros(6, dtype=int), saen.Vocabulary(["a"]))
    bags = saen.Relation([0, 1, 3], [1, 3, 4], [0, 0, 0], ("in",), 6)
    hierarchy = saen.Hierarchy(labels, (bags,))
    assert owners(hierarchy, 0).tolist() == [0, 0, 0, 1, 1, 1]
    assert owners(hierarchy, 1).tolist() == [0, 1]


def test_targets_may_be_missing_or_numbers(
    classifier: SAENClassifier, threads: Graphs, model: Path
) -> None:
    for targets in (None, threads.sizes, threads.sizes / 4):
        data = model.with_name("own.saen")
        saen.save(threads.with_targets(targets), data)
        for suffix in (".csv", ".safetensors", ".parquet"):
            invoke("embed", model, data, "-o", model.with_name(f"e{suffix}"), "--force")
            _, columns = read_embeddings(model.with_name(f"e{suffix}"))
            if targets is None:
                assert "target" not in columns
            else:
                assert_allclose(columns["target"], targets)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("-o", "e.xlsx"), "cannot write 'e.xlsx': use .parquet, .csv, .npy, .safetensors"),
        (("-o", "e.npy", "--level", "3"), "choose 0 (nodes), 1 (ego graphs), 2 (graphs)"),
        (("-o", "e.npy", "--level", "ego graph"), "did you mean ego graphs?"),
        (("-o", "e.npy", "--level", "-1"), "there is no level '-1'"),
        (("-o", "no/such/e.csv"), "cannot be written"),
    ],
)
def test_mistakes_in_embedding_are_one_line(
    model: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    message: str,
) -> None:
    monkeypatch.chdir(model.parent)
    assert message in fails("embed", model, "threads.saen", *arguments)
    assert not list(model.parent.glob("*e.*[!n]"))


# -- maps --------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["pca", "tsne"])
def test_a_map_shows_every_graph_in_the_colour_of_its_class(model: Path, method: str) -> None:
    invoke("embed", model, model.with_name("threads.saen"), "-o", model.with_name("e.parquet"))
    options = ("--method", method, "--by", "target", "--out", model.with_name("map.svg"))
    report = run("plot", "embeddings", model.with_name("e.parquet"), *options)
    assert (report["points"], report["method"], report["by"]) == (30, method, "target")
    drawn = model.with_name("map.svg").read_text(encoding="utf-8")
    for words in ("discussion (15)", "questions (15)", "target", "30 vectors"):
        assert f">{words}<" in drawn or words in drawn
    again = model.with_name("again.svg")
    run("plot", "embeddings", model.with_name("e.parquet"), *options[:-1], again)
    assert again.read_text() == model.with_name("map.svg").read_text()


def test_the_first_direction_of_a_map_is_that_of_most_variance() -> None:
    rng = np.random.default_rng(0)
    along = rng.normal(size=50)
    vectors = np.outer(along, [3.0, 4.0, 0.0]) + rng.normal(size=(50, 3)) * 1e-3
    points = project(vectors)
    assert abs(np.corrcoef(points[:, 0], along)[0, 1]) > 0.999
    assert points[:, 0].std() > 1000 * points[:, 1].std()
    with pytest.raises(saen.InputError, match="a map needs at least 3 vectors, not 2"):
        project(vectors[:2])
    assert project(vectors[:, :1]).shape == (50, 2)
    assert project(vectors[:4], "tsne").shape == (4, 2)


def legend(figure: Any) -> list[str]:
    return [text.get_text() for text in figure.axes[0].get_legend().get_texts()]


def test_colours_are_by_class_by_number_or_one() -> None:
    points = np.random.default_rng(0).normal(size=(60, 2))
    assert legend(plot_embeddings(points, np.array(["_a", "$b$", "$b$"] * 20))) == [
        "$b$ (40)",
        "_a (20)",
    ]
    many = legend(plot_embeddings(points, np.array([f"class {i % 20}" for i in range(60)])))
    assert len(many) == 7
    assert many[-1] == "14 others (42)"
    for scale in (np.arange(60), np.linspace(0, 1, 60)):
        figure = plot_embeddings(points, scale, "size")
        assert figure.axes[0].get_legend() is None
        assert figure.axes[1].get_ylabel() == "size"
    assert len(plot_embeddings(points).axes) == 1


@pytest.mark.parametrize(
    ("name", "content", "options", "message"),
    [
        ("e.csv", "id,e0\n0,1\n1,2\n2,4\n", ("--by", "targt"), "has no column 'targt'"),
        ("e.csv", "id,e0\n0,1\n", (), "a map needs at least 3 vectors, not 1"),
        ("e.csv", "id,target\n0,1\n", (), "expected vectors in columns e0, e1, …, found none"),
        ("e.csv", "id,e0\n0,x\n", (), "expected a matrix of numbers"),
        ("e.csv", "id,e0\n0,inf\n", (), "a vector contains NaN or infinity"),
        ("e.csv", "", (), "the file is empty"),
        ("e.npy", "nonsense", (), "invalid npy file"),
        ("e.parquet", "nonsense", (), "invalid Parquet"),
        ("e.safetensors", "nonsense", (), "not a readable saen file"),
        ("e.txt", "nonsense", (), "expected embeddings in .parquet, .csv, .npy, .safetensors"),
        ("e.csv", "id,e0\n0,1\n1,2\n2,4\n", ("-o", "map.bmp"), "use .svg, .png, .pdf"),
    ],
)
def test_mistakes_in_drawing_are_one_line(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    content: str,
    options: tuple[str, ...],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_text(content)
    assert message in fails("plot", "embeddings", name, *options)
    assert [file.name for file in tmp_path.iterdir()] == [name]
    for missing in ("no.csv", "no.npy", "no.parquet", "no.safetensors"):
        told = fails("plot", "embeddings", missing)
        assert told.startswith(f"{missing}: no such file")
