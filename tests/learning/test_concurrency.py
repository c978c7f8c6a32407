"""Fits in threads and in other processes: the same results as alone, and an end."""

from __future__ import annotations

import json
import multiprocessing
import os
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.model_selection import cross_val_score

import saen

THREADS = saen.generate_threads(40, average_nodes=10, seed=4)
LIMIT = 120
"""Seconds after which a fit hangs."""


def fitted(seed: int, model: Any = None) -> Any:
    if model is None:  # on the CPU: a process forked from one that uses CUDA cannot use it
        options = {"epochs": 3, "n_models": 1, "radii": (0, 1), "device": "cpu"}
        model = saen.SAENClassifier(**options, random_state=seed)
    return model.fit(THREADS, THREADS.targets).predict_proba(THREADS)


def test_fits_in_two_threads_are_those_of_one():
    alone = [fitted(seed) for seed in range(4)]
    with ThreadPoolExecutor(2) as pool:
        together = list(pool.map(fitted, range(4), timeout=LIMIT))
    np.testing.assert_array_equal(together, alone)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
@pytest.mark.parametrize("model", [None, saen.PartCountsClassifier("neighbourhoods(depth=2)")])
def test_a_fit_in_a_forked_process_is_that_of_its_parent(model):
    alone = fitted(0, model)
    with ProcessPoolExecutor(1, multiprocessing.get_context("fork")) as pool:
        np.testing.assert_array_equal(pool.submit(fitted, 0, model).result(timeout=LIMIT), alone)


@pytest.mark.slow
def test_cross_val_score_with_two_jobs_is_that_with_one():
    model = saen.SAENClassifier(epochs=3, n_models=1, radii=(0, 1))
    scores = [
        cross_val_score(model, THREADS, THREADS.targets, cv=4, n_jobs=jobs, scoring="neg_log_loss")
        for jobs in (1, 2)
    ]
    np.testing.assert_array_equal(*scores)


FIT = """
import json, os, signal, sys, saen, torch
threads = saen.generate_threads(40, average_nodes=60, seed=4)
def fit(name):
    model = saen.SAENClassifier(epochs=2, n_models=2, radii=(0, 1), device="cpu")
    model.fit(threads, threads.targets)
    json.dump(model.predict_proba(threads).tolist(), open(name, "w"))
fit(sys.argv[1])
torch.rand(600, 600) @ torch.rand(600, 600)  # several threads have been used
process = os.fork()
if process == 0:
    signal.alarm(60)
    fit(sys.argv[1] + "-forked")
    os._exit(0)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]))
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_another_number_of_threads_changes_rounding_only_and_forks_end(tmp_path: Path):
    results = []
    for n, name in ((2, "two"), (2, "again"), (1, "one")):
        subprocess.run(
            [sys.executable, "-c", FIT, str(tmp_path / name)],
            env=os.environ | {"OMP_NUM_THREADS": str(n)},
            check=True,
            timeout=LIMIT,
        )
        results.append(json.loads((tmp_path / name).read_text()))
    two, again, one = results
    assert two == again  # the same number of threads, the same bits
    np.testing.assert_allclose(one, two, atol=1e-4)
    forked = json.loads((tmp_path / "two-forked").read_text())  # in one thread
    np.testing.assert_allclose(forked, two, atol=1e-4)
