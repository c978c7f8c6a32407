"""What a training is said to take before it begins."""

import json
import subprocess
import sys

import numpy as np
import pytest

import saen
from saen.jobs import job as jobs
from saen.jobs.job import forecast_line
from saen.learning.decomposing import Decompositions
from saen.learning.models import counts
from saen.learning.models.base import Study
from saen.learning.problem import Problem
from saen.learning.splits import Fold
from tests.cli.commandline import invoke

THREADS = saen.generate_threads(60, average_nodes=20, seed=3)
MEASURE = """
import sys
import numpy as np
import saen
from saen._util.memory import peak_memory
from saen.jobs.job import forecast
from saen.learning.decomposing import Decompositions
from saen.learning.models.base import Study
from saen.learning.problem import Problem
from saen.learning.splits import Fold
data = saen.generate_threads(int(sys.argv[1]), n_classes=5, average_nodes=80, seed=0)
counts = saen.Classifier(budget="quick")
networks = saen.SAENClassifier("neighbourhoods(depth=2)", epochs=1)
learner = (counts if sys.argv[2] == "counts" else networks).learner()
known, problem = Decompositions(data), Problem.of(data.targets, regression=False)
_, said = forecast(learner, Study(known, problem), 1)
learner.fit(Study(known, problem), [Fold(np.arange(len(data)), np.arange(0))])
print([said, peak_memory()])
"""


def study():
    return Study(Decompositions(THREADS), Problem.of(THREADS.targets, regression=False))


def test_only_long_trainings_are_announced(monkeypatch):
    learner = saen.Classifier(budget="quick").learner()
    assert forecast_line(learner, study()) is None
    line = forecast_line(learner, study(), times=10_000)
    assert line.startswith("training will take about")
    assert line.endswith("GB of memory")
    assert "minutes" in line
    monkeypatch.setattr(jobs, "resident_memory", lambda: None)
    assert "memory" not in forecast_line(learner, study(), times=10_000)


@pytest.mark.parametrize("more", [{"epochs": 80}, {"n_models": 2}, {"inner_folds": 10}])
def test_more_training_is_forecast_to_take_longer(more):
    all_of_them = [Fold(np.arange(len(THREADS)), np.arange(0))]
    usual = saen.SAENClassifier().learner().cost(study(), all_of_them)
    longer = saen.SAENClassifier(**more).learner().cost(study(), all_of_them)
    assert longer.seconds > 1.5 * usual.seconds


def test_classes_are_forecast_to_share_passes_over_the_counts():
    every = [Fold(np.arange(len(THREADS)), np.arange(0))]
    seconds = {}
    for classes in (2, 5, 30):
        problem = Problem.of(np.arange(len(THREADS)) % classes, regression=False)
        learner = saen.PartCountsClassifier(inner_folds=2).learner()
        seconds[classes] = learner.cost(Study(Decompositions(THREADS), problem), every).seconds
    assert seconds[5] == pytest.approx(2 * seconds[2])  # five outputs instead of one
    assert seconds[30] == pytest.approx((1 + 29 / 4) * seconds[2])


def test_forests_are_forecast_by_the_columns_they_read(monkeypatch):
    every = [Fold(np.arange(len(THREADS)), np.arange(0))]
    learner = saen.PartCountsClassifier(model="forest").learner()
    seconds = []
    for columns in (1, 2, 10**6, 10**7):
        monkeypatch.setattr(counts, "MAX_COLUMNS", columns)
        seconds.append(learner.cost(study(), every).seconds)
    assert seconds[1] == 2 * seconds[0]
    assert seconds[2] == seconds[3] > seconds[1]  # no more than there are


def test_a_blend_takes_as_long_as_its_candidates_together():
    fold = Fold(np.arange(len(THREADS)), np.arange(0))
    blend, known = saen.Classifier().learner(), study()
    each = [c.learner.cost(known, [fold]) for c in blend.candidates(known.data, fold.train)]
    together = blend.cost(known, [fold])
    assert together.seconds == pytest.approx(sum(cost.seconds for cost in each))
    assert together.working == max(cost.working for cost in each)


def test_train_and_evaluate_announce_what_takes_long(monkeypatch, tmp_path):
    monkeypatch.setattr(jobs, "LONG", 0.0)
    options = ("threads", "--budget", "quick")
    printed = invoke("train", *options, "--out", tmp_path / "model.saen")
    assert "will take about" in printed.stderr
    printed = invoke("evaluate", *options, "--repeats", 1, "--folds", 2)
    assert "will take about" in printed.stderr


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["counts", "networks"])
def test_memory_is_forecast_within_a_factor_of_two(kind):
    command = [sys.executable, "-c", MEASURE, "1500", kind]
    said, taken = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    assert taken / 2 <= said <= 2 * taken
