"""Which rule blends candidates best."""

import json

import numpy as np

from benchmarks import blending
from benchmarks.measure import ROOT


def test_page_on_blending_is_written_from_its_results():
    folder = ROOT / "docs/results"
    document = json.loads((folder / "blending.json").read_text(encoding="utf-8"))
    assert blending.report(document) == (folder / "blending.md").read_text(encoding="utf-8")
    for found in document.values():
        default = found["rules"]["greedy by log loss"]["inside"]
        assert found["lengths"]["blend, all epochs"] == default


def test_best_lengths_blend_one_row_of_each_candidate():
    right = np.array([[0.99, 0.3], [0.3, 0.99], [0.6, 0.6], [0.2, 0.2]])  # of two examples, by row
    rows = np.stack([right, 1 - right], axis=-1)

    def losses(mixed):
        return -np.log(mixed[..., 0])

    truth = np.zeros(2, dtype=int)
    assert blending.blend_weights(rows, losses)[0] > 0
    weights = blending.best_lengths(np.array([0, 1, 0, 1]))(rows, truth, losses)
    assert (weights > 0).tolist() == [False, True, True, False]
    assert weights.sum() == 1
