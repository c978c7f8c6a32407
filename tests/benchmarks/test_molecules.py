"""The scores and intervals that `benchmarks.molecules` writes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from benchmarks import molecules


def test_scores_are_those_of_scikit_learn() -> None:
    rng = np.random.default_rng(0)
    truth, predicted = rng.integers(2, size=(40, 2)).astype(float), rng.random((40, 2)).round(1)
    truth[:5, 1] = np.nan
    expected = [
        roc_auc_score(truth[:, 0], predicted[:, 0]),
        roc_auc_score(truth[5:, 1], predicted[5:, 1]),
    ]
    assert molecules.score("tox21", truth, predicted) == pytest.approx(np.mean(expected))
    assert molecules.score("esol", np.zeros(2), np.array([3.0, 4.0])) == pytest.approx(12.5**0.5)


def test_truth_has_gaps() -> None:
    classes = np.array([["0", ""], ["1", "1"]])
    np.testing.assert_equal(molecules.truth_of(classes), [[0, np.nan], [1, 1]])
    np.testing.assert_equal(molecules.truth_of(np.array([0.5, np.nan])), [0.5, np.nan])


def test_paired_intervals_hold_the_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(molecules, "BOOTSTRAPS", 200)
    rng = np.random.default_rng(0)
    truth = rng.normal(size=100)
    good, bad = truth + 0.1 * rng.normal(size=100), truth + rng.normal(size=100)
    own = {"truth": truth.tolist(), "predicted": good.tolist()}
    peer = {"truth": truth.tolist(), "predicted": bad.tolist()}
    mean, low, high = molecules.paired("esol", [(own, peer)] * 3)
    assert low < mean < high < 0
    run = {**own, "radius": [1.0] * 100, "similar": rng.random(100).tolist()}
    assert molecules.coverage([run])[:2] == [1.0, 1.0]  # type: ignore[index]
    assert molecules.coverage([own]) is None


def test_results_keep_models_of_which_there_are_no_runs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(molecules, "RUNS", tmp_path)
    monkeypatch.setattr(molecules, "OUT", tmp_path)
    monkeypatch.setattr(molecules, "RECORDED", tmp_path / "chemprop.json")
    known = {"scores": [0.5] * 3, "coverage": None}
    before = {"sets": {"bace": {molecules.CHEMPROP: known, "default": known}}}
    (tmp_path / "molecules.json").write_text(json.dumps(before))
    run = {"truth": [0, 1, 1], "predicted": [0.1, 0.2, 0.3], "cpu_seconds": 1.0}
    run |= {"versions": {}, "date": "2026-11-19"}
    molecules.run_file("bace", 0, "counts").write_text(json.dumps(run))
    rows = molecules.results()["sets"]["bace"]
    assert list(rows) == ["default", "counts", molecules.CHEMPROP]
    assert (rows["default"], rows["counts"]["scores"]) == (known, [1.0, None, None])
