"""Numbers about whole examples: kept by files, read beside the parts, and explained."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import saen
from saen.errors import InputError
from saen.io.options import ReadOptions
from saen.io.writing import write_data
from saen.jobs.compress import compress_dataset, dataset_decomposition
from saen.jobs.job import Job
from saen.jobs.notes import unused_by
from saen.jobs.train import train_model
from saen.learning.decomposing import Decompositions, load_compressed
from saen.learning.evaluation import cross_validate
from saen.learning.features import FeatureReader, Features

N = 90


def noisy(seed: int = 0) -> tuple[saen.Graphs, Any]:
    """Threads whose targets are their sizes and a feature, which has gaps."""
    rng = np.random.default_rng(seed)
    threads = saen.generate_threads(N, average_nodes=15, seed=1)
    dose = rng.normal(size=N)
    targets = threads.sizes + 30 * dose
    dose[::10] = np.nan
    wild = np.where(rng.random(N) < 0.1, np.inf, rng.lognormal(5, 50, N))
    features = {"dose": dose, "wild": wild, "constant": np.ones(N)}
    return threads.with_features(features), targets


def finite(graphs: saen.Graphs) -> saen.Graphs:
    """Without the infinities, which text does not hold."""
    columns = {name: graphs.extra[name] for name in ("dose", "constant")}  # type: ignore[index]
    return graphs.with_extra(columns)


def test_features_go_along_with_the_examples() -> None:
    graphs, _ = noisy()
    both = saen.Graphs.concatenate([graphs[:40], graphs[40:]])
    assert both == graphs
    assert graphs[::-1].features is not None
    assert np.array_equal(graphs[::-1].features, graphs.features[::-1], equal_nan=True)  # type: ignore[index]
    assert graphs.with_features(["constant"]).features.tolist() == [[1.0]] * N  # type: ignore[union-attr]
    assert graphs.with_features([]).features is None
    assert graphs.with_features([]) != graphs
    with pytest.raises(InputError, match="did you mean dose"):
        graphs.with_features(["dosis"])
    with pytest.raises(InputError, match="'high' is not a number"):
        graphs.with_features({"dose": ["high", *["1"] * (N - 1)]})
    with pytest.raises(InputError, match="other features"):
        saen.Graphs.concatenate([graphs[:2], graphs[2:].with_features(["dose"])])


@pytest.mark.parametrize("name", ["d.jsonl", "d.parquet", "d.csv", "d.saen"])
def test_files_keep_features(tmp_path: Path, name: str) -> None:
    graphs, _ = noisy()
    graphs = finite(graphs)
    write_data(graphs, tmp_path / name)
    how = {} if name.endswith(".saen") else {"features": "DOSE, constant"}
    again = saen.load_dataset(tmp_path / name, **how)
    assert again.feature_names == ("dose", "constant")
    assert np.array_equal(again.features, graphs.features, equal_nan=True)  # type: ignore[arg-type]


@pytest.mark.parametrize("model", ["linear", "forest"])
def test_counts_read_features_beside_the_parts(tmp_path: Path, model: str) -> None:
    graphs, y = noisy()
    regressor = saen.PartCountsRegressor(model=model, inner_folds=2)
    alone = regressor.fit(graphs.with_features([]), y).evaluation_.pooled()["rmse"]  # type: ignore[union-attr]
    regressor.fit(graphs, y)
    assert regressor.evaluation_.pooled()["rmse"] < 0.8 * alone  # type: ignore[union-attr]
    explanation = regressor.explain(graphs, 1)
    assert explanation.gap < 1e-9
    assert explanation.features[0].name == "dose"
    assert np.isclose(explanation.output, regressor.predict(graphs)[1])
    regressor.save(tmp_path / "m.saen")
    loaded = saen.load(tmp_path / "m.saen")
    assert np.array_equal(loaded.predict(graphs), regressor.predict(graphs))
    with pytest.raises(InputError, match="reads the feature 'dose'"):
        loaded.predict(graphs.with_features(["wild"]))


@pytest.mark.parametrize("model", ["linear", "forest"])
def test_parts_of_a_dataset_with_features_add_up(model: str) -> None:
    graphs, y = noisy()
    fitted = saen.PartCountsRegressor(model=model, inner_folds=2).fit(graphs, y)
    assert saen.explain_dataset(fitted, graphs).gap < 1e-9


def test_unknown_features_are_told_as_missing() -> None:
    graphs, y = noisy()
    explanation = saen.PartCountsRegressor().fit(graphs, y).explain(graphs, 0)
    [dose] = [each for each in explanation.features if each.name == "dose"]
    assert dose.in_words == "dose missing"


def test_what_is_trained_is_what_is_evaluated() -> None:
    graphs, y = noisy()
    train, test = np.arange(60), np.arange(60, N)
    model = saen.PartCountsRegressor()
    evaluation = cross_validate(model, graphs, y, splits=[[(train, test)]])
    predicted = model.fit(graphs[train], y[train]).predict(graphs[test])
    assert np.allclose(evaluation.predictions[0][test].reshape(-1), predicted, rtol=0, atol=1e-9)


def test_identical_graphs_with_other_features_stay_apart() -> None:
    graphs, _ = noisy()
    twice = saen.Graphs.concatenate([graphs[:1]] * N).with_features({"dose": np.arange(N)})
    model = saen.PartCountsRegressor().fit(twice, np.arange(N) * 2.0)
    assert len(np.unique(model.predict(twice))) == N
    assert len(np.unique(Decompositions(twice).same_data())) == N


def test_compressed_files_keep_features(tmp_path: Path) -> None:
    graphs, y = noisy()
    saen.save(graphs.with_targets(y), tmp_path / "d.saen")
    compress_dataset(
        str(tmp_path / "d.saen"),
        dataset_decomposition(str(tmp_path / "d.saen"), "neighbourhoods(depth=2)"),
        tmp_path / "c.saen",
    )
    stored = load_compressed(tmp_path / "c.saen")
    direct = saen.PartCountsRegressor("neighbourhoods(depth=2)").fit(graphs, y)
    again = saen.PartCountsRegressor("neighbourhoods(depth=2)").fit(stored, y)
    assert np.array_equal(direct.predict(graphs), again.predict(stored))


def test_models_remember_features(tmp_path: Path) -> None:
    graphs, y = noisy()
    write_data(finite(graphs).with_targets(y), tmp_path / "d.jsonl")
    reading = ReadOptions(features="dose,constant")
    report = train_model(
        Job(str(tmp_path / "d.jsonl"), "counts", reading=reading), tmp_path / "m.saen"
    )
    assert report.model.origin_.reading == {"features": "dose,constant"}
    from saen.jobs.predict import predict_dataset

    assert predict_dataset(tmp_path / "m.saen", str(tmp_path / "d.jsonl"), None).scored == N


def test_gaps_and_readers_without_features_are_said() -> None:
    graphs, _ = noisy()
    lines = unused_by(saen.PartCountsRegressor().learner(), graphs)
    assert any("'dose': 9 of 90 values are missing" in line for line in lines)
    lines = unused_by(saen.SAENRegressor().learner(), graphs)
    assert any(line.startswith("features are not used") for line in lines)
    assert not any("values are missing" in line for line in lines)


def test_reader_bounds_what_it_has_not_seen() -> None:
    values = np.array([[1.0, np.nan, -np.inf], [2.0, np.nan, 3.0], [3.0, np.nan, np.inf]])
    reader = FeatureReader.fit(Features(("a", "b", "c"), values))
    new = reader.read(np.array([[1e300, 5.0, np.inf], [np.nan, np.inf, np.nan]]))
    assert np.isfinite(new).all()
    assert new[0, 0] == reader.read(values)[2, 0]
    assert (new[:, 1] == 0).all()
    with pytest.raises(InputError, match="wrong"):
        FeatureReader.unpack({"source": "given", "names": ["a"]}, np.full((5, 1), np.nan))


def test_molecules_are_described_wherever_they_come_from(tmp_path: Path) -> None:
    pytest.importorskip("rdkit")
    smiles = [f"{'C' * n}{end}" for n in range(1, 13) for end in ("O", "N", "[NH3+]")]
    y = np.array([len(text) + 5.0 * text.endswith("O") for text in smiles])
    graphs = saen.from_smiles(smiles)
    train, test = np.arange(30), np.arange(30, 36)
    model = saen.PartCountsRegressor(inner_folds=2)
    described = graphs.with_features(["rdkit"])
    evaluation = cross_validate(model, described, y, splits=[[(train, test)]])
    model.fit(described[train], y[train])
    assert np.allclose(evaluation.outputs[0, test], model.predict(described[test]), atol=1e-9)
    assert model.fitted_.describe()["features"] > 200
    model.save(tmp_path / "m.saen")  # type: ignore[attr-defined]
    again = saen.load(tmp_path / "m.saen").predict(graphs[test])  # which are not said to have any
    assert np.array_equal(again, model.predict(described[test]))
    blend = saen.Regressor(inner_folds=2, budget="normal").fit(graphs[train], y[train])
    tried = [each["candidate"] for each in blend.tried_]
    assert {"part counts (atoms)", "part counts (descriptors)"} <= {*tried}
    assert blend.predict(graphs[test]).shape == (6,)


@pytest.mark.parametrize("known", [0, 1])
def test_features_without_values_in_training_say_nothing(known: int) -> None:
    graphs, targets = noisy()
    values = np.where(np.arange(N) < known, 1.0, np.nan)
    model = saen.PartCountsRegressor(random_state=0)
    own = model.fit(graphs.with_features({"dose": values}), targets, sample_weight=np.arange(N) > 1)
    found = own.predict(graphs.with_features({"dose": np.arange(float(N))}))
    alone = model.fit(graphs.with_features([]), targets, sample_weight=np.arange(N) > 1)
    np.testing.assert_allclose(found, alone.predict(graphs.with_features([])))
