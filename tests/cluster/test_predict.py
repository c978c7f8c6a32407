"""Shards predicted and embedded in tasks: the same rows, whatever dies."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from saen import NestedData, PartCountsClassifier, SAENClassifier, generate_threads
from saen.cluster.executors import SerialExecutor
from saen.cluster.predict import embed_shards, predict_shards
from saen.errors import FileError, InputError
from saen.io.store.container import save
from saen.io.store.shards import split_graphs, write_shards
from saen.jobs.inspect import inspect_file
from saen.jobs.predict import embed_dataset, predict_dataset
from tests.cli.commandline import fails, invoke, run
from tests.cluster.faulty import Stopping

GRAPHS = generate_threads(30, average_nodes=10, seed=1)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model, graphs in one file, and the same graphs in shards."""
    folder = tmp_path_factory.mktemp("place")
    SAENClassifier(epochs=2, n_models=2).fit(GRAPHS, GRAPHS.targets).save(folder / "model.saen")
    save(GRAPHS, folder / "graphs.saen")
    write_shards(split_graphs(GRAPHS, 4), folder / "shards")
    return folder


def test_predict_over_shards_gives_the_rows_of_all_graphs(place: Path, tmp_path: Path) -> None:
    model = place / "model.saen"
    predict_dataset(model, str(place / "graphs.saen"), tmp_path / "whole.csv")
    expected = predict_dataset(model, str(place / "shards"), tmp_path / "here.csv")
    report = predict_shards(model, place / "shards", SerialExecutor(), tmp_path / "shards.csv")
    assert (tmp_path / "shards.csv").read_bytes() == (tmp_path / "here.csv").read_bytes()
    whole, rows = (pd.read_csv(tmp_path / f"{name}.csv") for name in ("whole", "shards"))
    pd.testing.assert_frame_equal(rows, whole, rtol=1e-5)  # batches of other graphs
    assert report.scores == expected.scores
    assert report.unseen == expected.unseen
    assert sorted(f.name for f in tmp_path.iterdir()) == ["here.csv", "shards.csv", "whole.csv"]


@pytest.mark.parametrize("level", [None, "0"])
def test_embed_over_shards_gives_the_vectors_of_all_graphs(
    place: Path, tmp_path: Path, level: str | None
) -> None:
    model = place / "model.saen"
    embed_dataset(model, str(place / "graphs.saen"), tmp_path / "whole.csv", level=level)
    embed_dataset(model, str(place / "shards"), tmp_path / "here.csv", level=level)
    report = embed_shards(
        model, place / "shards", SerialExecutor(), tmp_path / "shards.csv", level=level
    )
    assert (tmp_path / "shards.csv").read_bytes() == (tmp_path / "here.csv").read_bytes()
    whole, rows = (pd.read_csv(tmp_path / f"{name}.csv") for name in ("whole", "shards"))
    pd.testing.assert_frame_equal(rows, whole, rtol=1e-4, atol=1e-5)
    assert report.rows == len(whole)


def test_predict_over_shards_with_part_counts(place: Path, tmp_path: Path) -> None:
    model = tmp_path / "counts.saen"
    PartCountsClassifier().fit(GRAPHS, GRAPHS.targets).save(model)
    expected = predict_dataset(model, str(place / "graphs.saen"), tmp_path / "whole.csv")
    report = predict_shards(model, place / "shards", SerialExecutor(), tmp_path / "shards.csv")
    assert report.scores == expected.scores


def test_predict_over_shards_of_nested_data(place: Path, tmp_path: Path) -> None:
    data = NestedData([{"size": [str(size)]} for size in GRAPHS.sizes % 3], GRAPHS.targets)
    model = tmp_path / "counts.saen"
    PartCountsClassifier("nested").fit(data, data.targets).save(model)
    shards = write_shards([data], tmp_path / "shards", 3).folder
    expected = predict_dataset(model, str(shards), tmp_path / "here.csv")
    assert expected.takes == "nested"
    report = predict_shards(model, shards, SerialExecutor(), tmp_path / "shards.csv")
    assert (tmp_path / "shards.csv").read_bytes() == (tmp_path / "here.csv").read_bytes()
    assert report.scores == expected.scores
    with pytest.raises(InputError, match="these shards hold nested, but this model reads graphs"):
        predict_shards(place / "model.saen", shards, SerialExecutor())


@pytest.mark.parametrize("after", [1, 3])
def test_predict_in_two_parts_does_only_what_is_missing(
    place: Path, tmp_path: Path, after: int
) -> None:
    model, shards, out = place / "model.saen", place / "shards", tmp_path / "out.csv"
    predict_shards(model, shards, SerialExecutor(), tmp_path / "clean.csv")
    with pytest.raises(KeyboardInterrupt):
        predict_shards(model, shards, Stopping(after), out)
    assert not out.exists()
    kept = inspect_file(tmp_path / "out.csv.parts" / "shard-00000.saen")
    assert (kept["kind"], kept["columns"][:2]) == ("predictions", ["id", "prediction"])
    (tmp_path / "out.csv.parts" / "shard-00000.saen").write_bytes(b"damaged")
    second = Stopping(99)
    predict_shards(model, shards, second, out)
    assert len(second.ran) == 5 - after
    assert out.read_bytes() == (tmp_path / "clean.csv").read_bytes()


def test_predict_and_embed_commands_on_a_cluster(place: Path, tmp_path: Path) -> None:
    model, shards = place / "model.saen", place / "shards"
    out = tmp_path / "out.csv"
    report = run("predict", model, shards, "--cluster", "serial", "--out", out)
    assert report["structures"] == 30
    shown = invoke("predict", model, shards, "--cluster", "serial").stdout
    assert shown == out.read_text()
    vectors = tmp_path / "out.npy"
    run("embed", model, shards, "--cluster", "serial", "--out", vectors)
    assert len(np.load(vectors)) == 30
    for arguments, words in [
        (("predict", model, "threads", "--cluster", "serial"), "--shards N"),
        (("predict", model, shards, "--cluster", "serial", "--keep", "all"), "not shards yet"),
    ]:
        assert words in fails(*arguments)


def test_predict_names_the_shard_that_cannot_be_read(place: Path, tmp_path: Path) -> None:
    written = write_shards(split_graphs(GRAPHS, 3), tmp_path / "shards")
    written.files[2].unlink()
    with pytest.raises(FileError, match=r"part-00002.saen: no such file"):
        predict_shards(
            place / "model.saen", tmp_path / "shards", SerialExecutor(), tmp_path / "out.csv"
        )
    with pytest.raises(InputError, match="cannot write"):
        predict_shards(
            place / "model.saen", tmp_path / "shards", SerialExecutor(), tmp_path / "out.xyz"
        )
