"""The nearest training graph of a prediction: found by content, kept in the model's file."""

from __future__ import annotations

import csv

import numpy as np
import pytest

import saen
from saen.errors import FileError, InputError
from saen.io.store import container
from saen.jobs.job import Job
from saen.jobs.predict import predict_dataset
from saen.jobs.train import train_model
from saen.learning.overlap import TrainingGraphs

COLUMNS = ["nearest", "similarity", "overlaps_training", "unlike_training"]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A model of a hundred threads that knows them, and its file."""
    threads = saen.generate_threads(100, average_nodes=40, seed=3)
    folder = tmp_path_factory.mktemp("nearest")
    data = folder / "threads.saen"
    saen.save(threads.with_ids([f"thread {n}" for n in range(100)]), data)
    train_model(Job(str(data), "counts"), folder / "model.saen", nearest=True)
    return data, folder / "model.saen"


def test_predictions_name_the_nearest_training_graph(model, tmp_path):
    data, file = model
    seen, new = saen.load(data)[40:60], saen.generate_threads(30, average_nodes=40, seed=4)
    saen.save(
        saen.Graphs.concatenate([seen.with_ids(None), new]).with_ids(None), tmp_path / "n.saen"
    )
    report = predict_dataset(file, str(tmp_path / "n.saen"), tmp_path / "p.csv")
    with (tmp_path / "p.csv").open(newline="") as lines:
        rows = list(csv.DictReader(lines))
    assert [row["nearest"] for row in rows[:20]] == [f"thread {n}" for n in range(40, 60)]
    assert {row["similarity"] for row in rows[:20]} == {"1"}
    assert all(0 <= float(row["similarity"]) < 1 for row in rows[20:])
    for column in COLUMNS[2:]:
        share = np.mean([row[column] == "True" for row in rows])
        assert report.to_json()[column] == pytest.approx(share)


def test_nearest_of_a_loaded_model_is_that_of_the_saved_one(model, tmp_path):
    threads = saen.load(model[0])
    fitted = saen.PartCountsClassifier().fit(threads, threads.targets).remember(threads)
    fitted.save(tmp_path / "again.saen")
    new = saen.generate_threads(30, average_nodes=40, seed=4)
    for loaded in (saen.load(tmp_path / "again.saen"), saen.load(model[1])):
        found, expected = loaded.nearest(new).columns(), fitted.nearest(new).columns()
        assert [*found] == COLUMNS
        assert all(np.array_equal(found[key], expected[key]) for key in found)


def test_nearest_takes_a_part_of_prepared_data(model):
    loaded = saen.load(model[1])
    threads = saen.load(model[0])
    part = loaded.prepare(threads)[np.array([7, 3])]
    assert loaded.nearest(part).ids.tolist() == ["thread 7", "thread 3"]


def test_graphs_of_another_kind_are_unlike_training(model):
    """At most a twentieth of like ones are; of cliques, nearly all are."""
    loaded = saen.load(model[1])
    like = loaded.nearest(saen.generate_threads(400, average_nodes=40, seed=5))
    assert like.unlike.mean() < 0.1
    cliques = [[(i, j) for j in range(n) for i in range(j)] for n in range(30, 40)]
    assert loaded.nearest(saen.Graphs.from_edge_lists(cliques)).unlike.mean() >= 0.8


def test_nearest_of_labelled_graphs_reads_their_labels():
    """Rings with one other atom, whose places tell them apart."""
    rng = np.random.default_rng(0)
    edges = [[(i, (i + 1) % 12) for i in range(12)] for _ in range(40)]
    labels = rng.choice(list("CNOS"), 480)
    rings = saen.Graphs.from_edge_lists(edges, node_labels=labels.tolist())
    known = TrainingGraphs.of(rings)
    turned = np.roll(labels.reshape(40, 12), 5, axis=1).reshape(-1)
    again = saen.Graphs.from_edge_lists(edges, node_labels=turned.tolist())
    nearest = known.nearest(again)
    assert nearest.ids.tolist() == [*map(str, range(40))]
    assert (nearest.similarity == 1).all()


def test_a_model_without_training_graphs_says_how_to_get_them(model):
    threads = saen.load(model[0])
    fitted = saen.PartCountsClassifier().fit(threads, threads.targets)
    with pytest.raises(InputError, match=r"call remember\(X\) after fit$"):
        fitted.nearest(threads)
    assert fitted.remember(threads).fit(threads, threads.targets).origin_.training is None


@pytest.mark.parametrize("name", ["bins", "indptr", "content", "item_keys", "rates.0.logs", "ids"])
def test_damaged_training_graphs_are_refused(model, tmp_path, name):
    kind, document, tensors = container.read(model[1])
    tensors = dict(tensors)
    tensors[f"training.{name}"] = tensors[f"training.{name}"][:-1]
    container.write(tmp_path / "damaged.saen", kind, document, tensors)
    with pytest.raises(FileError, match="damaged"):
        saen.load(tmp_path / "damaged.saen")
