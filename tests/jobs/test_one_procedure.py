"""`saen train` on the training file is `saen evaluate --splits` of that fold."""

import csv
import json

import numpy as np
import pytest

import saen
from saen.io.conversion import write_data
from saen.jobs.evaluate import Protocol, evaluate_dataset
from saen.jobs.job import Job
from saen.jobs.predict import predict_dataset
from saen.jobs.train import train_model
from saen.learning.decomposing import Decompositions

N = 60
THREADS = saen.generate_threads(N, average_nodes=12, seed=3).with_extra(
    {"lab": np.array([f"lab {number // 4}" for number in range(N)])}
)
TEST = np.arange(0, N, 5)
TRAIN = np.setdiff1d(np.arange(N), TEST)
RNG = np.random.default_rng(2)
SEVERAL = np.column_stack([THREADS.sizes > 11, THREADS.targets == "questions"]).astype(str)
TARGETS = {
    "classes": THREADS,
    "numbers": THREADS.with_targets(np.log(THREADS.sizes) + RNG.normal(0, 0.1, N)),
    "several": THREADS.with_targets(SEVERAL, names=("large", "question")),
}
PRESETS = {
    "best": {"budget": "quick"},
    "counts": {},
    "network": {"epochs": 2, "dtype": "float64"},
}


@pytest.mark.parametrize(
    ("targets", "groups"),
    [("classes", None), ("classes", "lab"), ("numbers", "lab"), ("several", None)],
)
@pytest.mark.parametrize("preset", PRESETS)
def test_training_on_the_training_file_equals_evaluating_its_fold(
    preset, targets, groups, tmp_path
):
    data, suffix = TARGETS[targets], "saen" if targets == "several" else "jsonl"
    for name, rows in (("all", np.arange(N)), ("train", TRAIN), ("test", TEST)):
        write_data(data[rows], tmp_path / f"{name}.{suffix}")
    splits, table = tmp_path / "splits.json", tmp_path / "p.csv"
    splits.write_text(json.dumps({"train": TRAIN.tolist(), "test": TEST.tolist()}))
    whole, part = (
        Job(str(tmp_path / f"{name}.{suffix}"), preset, PRESETS[preset], seed=3, device="cpu")
        for name in ("all", "train")
    )
    evaluated = evaluate_dataset(whole, Protocol(splits=splits, groups=groups)).evaluation
    trained = train_model(part, tmp_path / "m.saen", groups=groups)
    expected = evaluated.outputs[0, TEST]
    model = saen.load(tmp_path / "m.saen").fitted_
    predicted = model.predictions(Decompositions(data[TEST]))
    np.testing.assert_allclose(predicted, expected, rtol=0, atol=1e-9)
    predict_dataset(tmp_path / "m.saen", str(tmp_path / f"test.{suffix}"), table)
    with table.open() as file:
        rows = list(csv.DictReader(file))
    radius = None if evaluated.radius is None else evaluated.radius[0, TEST]
    for name, column in model.targets.columns(expected, radius).items():
        if column.dtype.kind == "f":
            written = [float(row[name]) for row in rows]  # as many digits as are written
            np.testing.assert_allclose(written, column, rtol=1e-6, atol=1e-9)
    for one, other in zip(trained.model.tried_, evaluated.tried, strict=True):
        assert one["weight"] == pytest.approx(other["weight"], abs=1e-12)


def test_inner_folds_follow_the_groups_beside_splits(tmp_path):
    file, splits = tmp_path / "all.jsonl", tmp_path / "splits.json"
    write_data(THREADS, file)
    splits.write_text(json.dumps({"train": TRAIN.tolist(), "test": TEST.tolist()}))
    scores = {
        groups: evaluate_dataset(Job(str(file), "counts"), Protocol(splits=splits, groups=groups))
        for groups in (None, "lab")
    }
    outputs = [each.evaluation.outputs[0, TEST] for each in scores.values()]
    assert not np.array_equal(*outputs)
    assert scores["lab"].recorded["groups"]["count"] == N // 4
