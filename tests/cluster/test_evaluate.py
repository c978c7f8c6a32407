"""Groups of networks trained in tasks: the same bits as here, whatever dies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from saen import (
    Classifier,
    PartCountsClassifier,
    SAENClassifier,
    SAENRegressor,
    generate_threads,
)
from saen.cluster.executors import SerialExecutor
from saen.learning.evaluation import Evaluation, cross_validate
from tests.cli.commandline import run
from tests.cluster.faulty import Stopping

THREADS = generate_threads(40, average_nodes=8, seed=1)
GRID = ({"learning_rate": 0.01}, {"learning_rate": 0.1})


def evaluate(selection: str = "fixed", numbers: bool = False, **options: Any) -> Evaluation:
    kind = SAENRegressor if numbers else SAENClassifier
    targets = THREADS.sizes.astype(float) if numbers else THREADS.targets
    grid = {"grid": GRID, "inner_folds": 2} if selection == "nested" else {}
    return cross_validate(
        kind(epochs=3, n_models=2, inner_folds=2),
        THREADS,
        targets,
        n_repeats=1,
        n_folds=2,
        selection=selection,
        parallel_models=2,
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
    ("selection", "numbers"),
    [("fixed", False), ("nested", False), ("peek", False), ("nested", True)],
)
def test_evaluate_in_tasks_gives_the_same_bits(selection: str, numbers: bool) -> None:
    here = evaluate(selection, numbers)
    assert same(evaluate(selection, numbers, executor=SerialExecutor()), here)


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
    clean = evaluate("nested", run_dir=_made(tmp_path / "clean"))
    with pytest.raises(KeyboardInterrupt):
        evaluate("nested", run_dir=_made(tmp_path / "out"), executor=Stopping(5))
    finished = len(list((tmp_path / "out").glob("networks*.saen")))
    assert finished
    second = Stopping(99)
    assert same(evaluate("nested", run_dir=tmp_path / "out", executor=second), clean)
    assert len(second.ran) == 2 * 2 * 2 - finished
    for file in (tmp_path / "clean").glob("*.saen"):
        assert (tmp_path / "out" / file.name).read_bytes() == file.read_bytes()


def test_evaluate_fits_part_counts_here_and_networks_in_tasks() -> None:
    results = [
        cross_validate(
            PartCountsClassifier(),
            THREADS,
            THREADS.targets,
            n_repeats=1,
            n_folds=2,
            executor=executor,
        ).outputs.tobytes()
        for executor in (None, SerialExecutor())
    ]
    assert results[0] == results[1]


def test_evaluate_of_a_blend_in_tasks_gives_the_same_bits() -> None:
    network = SAENClassifier(epochs=2)
    blend = Classifier(candidates=[PartCountsClassifier(), network], inner_folds=2)
    options: dict[str, Any] = {"n_repeats": 1, "n_folds": 2, "parallel_models": 1}
    here = cross_validate(blend, THREADS, THREADS.targets, **options)
    executor = Stopping(99)
    assert same(cross_validate(blend, THREADS, THREADS.targets, executor=executor, **options), here)
    assert len(executor.ran) == 2 * 2  # folds × inner folds


def test_evaluate_command_on_a_cluster(tmp_path: Path) -> None:
    options = ("--repeats", 1, "--folds", 2, "--epochs", 2, "--parallel-models", 1)
    options += ("--preset", "network")
    here = run("evaluate", "threads", *options, "--out", tmp_path / "run")
    there = run("evaluate", "threads", *options, "--out", tmp_path / "run", "--cluster", "serial")
    for key in here.keys() - {"seconds"}:
        assert here[key] == there[key]


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder
