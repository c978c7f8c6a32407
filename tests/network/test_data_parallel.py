"""Several processes train as one would."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from saen import SAEN, Architecture, Ego, Settings, Task, compress_graphs, generate_threads
from saen.cluster.executors import LocalExecutor
from saen.errors import InputError
from saen.network.data_parallel import train_data_parallel
from tests.cluster import tasks


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sizes", "batch_size", "normalisation"),
    [((13, 0, 17), 8, "batch"), ((25, 5), None, "none")],
)
def test_data_parallel_training_equals_one_process(
    tmp_path: Path, sizes: tuple[int, ...], batch_size: int | None, normalisation: str
) -> None:
    expected, losses = tasks.train_rank(tmp_path, 0, (sum(sizes),), batch_size, normalisation)
    executor = LocalExecutor(len(sizes))
    try:
        for rank in range(len(sizes)):
            arguments = tmp_path, rank, sizes, batch_size, normalisation
            executor.submit(str(rank), tasks.train_rank, *arguments)
        results = dict(executor.completed())
    finally:
        executor.close()
    for state, history in results.values():
        np.testing.assert_allclose(history, losses, rtol=1e-9)
        for key, value in expected.items():
            np.testing.assert_allclose(state[key], value, rtol=0, atol=1e-9, err_msg=key)


def test_data_parallel_training_refuses_dropout_and_patience() -> None:
    threads = generate_threads(10, average_nodes=8, seed=3)
    compressed = compress_graphs(threads, Ego().fit(threads))
    task = Task.classification(np.arange(10) % 2)
    for dropout, patience, words in [(0.5, None, "dropout"), (0.0, 3, "patience")]:
        architecture = Architecture.over(compressed.hierarchy, [[4], [4], [1]], dropout=dropout)
        with pytest.raises(InputError, match=words):
            train_data_parallel(SAEN(architecture), compressed, task, Settings(patience=patience))
