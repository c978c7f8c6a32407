from __future__ import annotations

import numpy as np
import pytest
import torch

from saen import SAENClassifier, Settings, compress_graphs, generate_threads, train
from saen.network.cuda_graphs import Recorder
from saen.network.loss import Task

needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")


@needs_cuda
@pytest.mark.parametrize("normalisation", ["batch", "none"])
@pytest.mark.parametrize("batch_size", [None, 16])
def test_recorded_training_is_plain_training(normalisation, batch_size, monkeypatch):
    threads = generate_threads(60, seed=1)
    found = []
    for recorded in (True, False):
        estimator = SAENClassifier(normalisation=normalisation, dtype="float64", device="cuda")
        fitted = estimator._chosen_decomposition(threads).fit(threads)
        compressed = compress_graphs(threads, fitted)
        weights = np.random.default_rng(0).integers(0, 2, (60, 5)).astype(np.float64)
        task = Task(
            "binary", np.unique(threads.targets, return_inverse=True)[1], weights, None, None, 2
        )
        network = estimator._network(compressed.hierarchy, 1, [0, 1, 2, 3, 4])
        if not recorded:
            monkeypatch.setattr(Recorder, "step", lambda self, number, run: run())
        settings = Settings(epochs=6, batch_size=batch_size, schedule="cosine", learning_rate=0.01)
        history = train(network, compressed, task, settings)
        found.append((history.loss, [p.detach().cpu() for p in network.state_dict().values()]))
    np.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-9)
    for one, other in zip(found[0][1], found[1][1], strict=True):
        torch.testing.assert_close(one, other, rtol=1e-7, atol=1e-9)


@needs_cuda
def test_a_step_is_run_once_then_recorded_then_replayed():
    recorder, total, calls = Recorder(), torch.zeros((), device="cuda"), []

    def run() -> None:
        calls.append(1)
        total.add_(1)

    for _ in range(5):
        recorder.step(0, run)
    assert float(total) == 5
    assert len(calls) == 2
