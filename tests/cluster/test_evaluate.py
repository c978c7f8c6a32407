"""Groups of networks trained in tasks: the same bits as here, whatever dies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from saen import (
    BlendClassifier,
    PartCountsClassifier,
    SAENClassifier,
    SAENRegressor,
    generate_threads,
)
from saen.cluster.executors import SerialExecutor
from saen.learning.cross_validation import cross_validate
from saen.learning.evaluation import Evaluation
from tests.cli.commandline import run
from tests.cluster.faulty import Stopping

THREADS = generate_threads(40, average_nodes=8, seed=1)
GRID = ({"learning_rate": 0.01}, {"learning_rate": 0.1})


def evaluate(stop: str = "fixed", numbers: bool = False, **options: Any) -> Evaluation:
    kind = SAENRegressor if numbers else SAENClassifier
    targets = THREADS.sizes.astype(float) if numbers else THREADS.targets
    grid = {"grid": GRID, "inner": 2} if stop == "nested" else {}
    return cross_validate(
        kind(epochs=3, n_models=2),
        THREADS,
        targets,
        repeats=1,
        folds=2,
        stop=stop,
        models_at_once=2,
        **grid,
        **options,
    )


def same(one: Evaluation, other: Evaluation) -> bool:
    return (
        one.outputs.tobytes() == other.outputs.tobytes()
        and one.loss.tobytes() == other.loss.tobytes()
        and one.chosen == other.chosen
    )


@pytest.mark.parametrize(
    ("stop", "numbers"), [("fixed", False), ("nested", False), ("peek", False), ("nested", True)]
)
def test_evaluate_in_tasks_gives_the_same_bits(stop: str, numbers: bool) -> None:
    here = evaluate(stop, numbers)
    assert same(evaluate(stop, numbers, executor=SerialExecutor()), here)


def test_evaluate_submits_all_settings_of_a_grid_at_once() -> None:
    class Counting(SerialExecutor):
        first = 0

        def completed(self) -> Any:
            self.first = self.first or len(self._tasks)
            return super().completed()

    executor = Counting()
    evaluate("nested", executor=executor)
    assert executor.first == 2 * 2 * 2  # settings × folds × inner folds, two networks a group


def test_evaluate_in_two_parts_does_only_what_is_missing(tmp_path: Path) -> None:
    clean = evaluate("nested", folder=_made(tmp_path / "clean"))
    with pytest.raises(KeyboardInterrupt):
        evaluate("nested", folder=_made(tmp_path / "out"), executor=Stopping(5))
    finished = len(list((tmp_path / "out").glob("inner*.saen")))
    assert finished
    second = Stopping(99)
    assert same(evaluate("nested", folder=tmp_path / "out", executor=second), clean)
    inner = [name for name in second.ran if name.startswith("inner")]
    assert len(inner) == 2 * 2 * 2 - finished
    for file in (tmp_path / "clean").glob("*.saen"):
        assert (tmp_path / "out" / file.name).read_bytes() == file.read_bytes()


def test_evaluate_fits_part_counts_here_and_networks_in_tasks() -> None:
    results = [
        cross_validate(
            PartCountsClassifier(),
            THREADS,
            THREADS.targets,
            repeats=1,
            folds=2,
            executor=executor,
        ).outputs.tobytes()
        for executor in (None, SerialExecutor())
    ]
    assert results[0] == results[1]


def test_evaluate_of_a_blend_in_tasks_gives_the_same_bits() -> None:
    network = SAENClassifier(epochs=2, n_models=1)
    blend = BlendClassifier(candidates=[PartCountsClassifier(), network], inner_folds=2)
    options: dict[str, Any] = {"repeats": 1, "folds": 2, "models_at_once": 1}
    here = cross_validate(blend, THREADS, THREADS.targets, **options)
    executor = Stopping(99)
    assert same(cross_validate(blend, THREADS, THREADS.targets, executor=executor, **options), here)
    assert len(executor.ran) >= 2 * (2 + 1)  # folds × (inner folds + the whole)


def test_evaluate_command_on_a_cluster(tmp_path: Path) -> None:
    options = ("--repeats", 1, "--folds", 2, "--epochs", 2, "--models", 1, "--at-once", 1)
    here = run("evaluate", "threads", *options, "--out", tmp_path / "run")
    there = run("evaluate", "threads", *options, "--out", tmp_path / "run", "--cluster", "serial")
    for key in here.keys() - {"seconds"}:
        assert here[key] == there[key]


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder
