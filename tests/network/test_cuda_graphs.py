from __future__ import annotations

import numpy as np
import pytest
import torch

from saen.network import Settings, train
from saen.network.cuda_graphs import Recorder
from tests.references.networks import make_network, random_hierarchy, random_task

needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")


@needs_cuda
@pytest.mark.parametrize("normalization", ["batch", "none"])
@pytest.mark.parametrize("batch_size", [None, 16])
def test_recorded_training_equals_eager_training(normalization, batch_size, monkeypatch):
    hierarchy, task = random_hierarchy(0, n=60, patterns=40), random_task(1, 60, 5, "binary")
    settings = Settings(epochs=6, batch_size=batch_size, schedule="cosine", learning_rate=0.01)
    results = []
    for eager in (False, True):
        network = make_network(hierarchy, 1, range(5), normalization=normalization).to("cuda")
        if eager:
            monkeypatch.setattr(Recorder, "step", lambda self, number, run: run())
        history = train(network, hierarchy, task, settings)
        results.append((history.loss, [p.cpu() for p in network.state_dict().values()]))
    np.testing.assert_allclose(results[0][0], results[1][0], rtol=1e-9)
    for recorded, expected in zip(results[0][1], results[1][1], strict=True):
        torch.testing.assert_close(recorded, expected, rtol=1e-7, atol=1e-9)


@needs_cuda
def test_recorder_runs_a_step_once_then_records_then_replays_it():
    recorder, total, calls = Recorder(), torch.zeros((), device="cuda"), []

    def run() -> None:
        calls.append(1)
        total.add_(1)

    for _ in range(5):
        recorder.step(0, run)
    assert float(total) == 5
    assert len(calls) == 2
