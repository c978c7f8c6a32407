"""Examples explained in tasks: the same contributions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from saen import PartCountsClassifier, SAENClassifier, generate_threads
from saen.cluster.executors import SerialExecutor
from saen.explanations.dataset import explain_dataset
from saen.io.store.container import save
from tests.cli.commandline import run

THREADS = generate_threads(30, average_nodes=8, seed=1)


@pytest.mark.parametrize("kind", [SAENClassifier, PartCountsClassifier])
def test_explain_in_tasks_gives_the_same_contributions(
    kind: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("saen.explanations.dataset.EXAMPLES_PER_TASK", 7)
    model = (kind(epochs=2) if kind is SAENClassifier else kind()).fit(THREADS, THREADS.targets)
    here = explain_dataset(model, THREADS)
    there = explain_dataset(model, THREADS, executor=SerialExecutor())
    np.testing.assert_allclose(there.means, here.means, rtol=1e-9, atol=1e-12)
    assert [part.number for part in there.parts] == [part.number for part in here.parts]


def test_explain_command_on_a_cluster(tmp_path: Path) -> None:
    model = tmp_path / "model.saen"
    SAENClassifier(epochs=1, n_models=1).fit(THREADS, THREADS.targets).save(model)

    save(THREADS, tmp_path / "graphs.saen")
    here, there = (
        run("explain", model, tmp_path / "graphs.saen", *options)
        for options in ((), ("--cluster", "serial"))
    )
    assert [part["occurrences"] for part in here["parts"]] == [
        part["occurrences"] for part in there["parts"]
    ]
