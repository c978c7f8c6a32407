"""Evaluations of presets on datasets, in run directories."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import saen
from saen import InputError
from saen.io.libraries.networkx import to_networkx
from saen.io.options import ReadOptions
from saen.jobs.evaluate import Protocol, evaluate_dataset
from saen.jobs.job import Job
from saen.jobs.store import open_run
from tests.cli.commandline import fails

PAIR = Protocol(repeats=1, folds=2)


def test_preset_best_chooses_on_inner_folds_of_every_training_part(tmp_path):
    job = Job("threads", "best", {"budget": "quick"})
    report = evaluate_dataset(job, PAIR, tmp_path / "run")
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert summary["protocol"]["selection"] == "fixed"
    assert len(summary["chosen"]) == 2
    assert {"candidate", "score", "weight"} <= set(summary["tried"][0])
    assert report.evaluation.outputs.shape[0] == 1


def test_preset_best_has_no_epoch_to_peek_at():
    message = fails("evaluate", "threads", "--selection", "peek", "--repeats", 1, "--folds", 2)
    assert "there is no epoch to choose" in message


def test_metric_of_a_blend_is_a_setting_of_runs_and_presets(tmp_path):
    data, run = tmp_path / "own.saen", tmp_path / "run"
    saen.save(saen.generate_threads(40, average_nodes=15, seed=3), data)
    job = Job(str(data), "best", {"budget": "quick"})
    plain = evaluate_dataset(job, PAIR, run)
    assert (plain.recorded["metric"], "metric" in plain.recorded["settings"]) == ("accuracy", False)
    with pytest.raises(InputError, match=r"other settings \(settings\)"):
        evaluate_dataset(job, Protocol(repeats=1, folds=2, metric="accuracy"), run)
    preset = tmp_path / "by-f1.toml"
    preset.write_text('model = "blend"\n[defaults]\nmetric = "f1"\nbudget = "quick"\n')
    f1 = Job(str(data), "best", {"budget": "quick", "metric": "f1"})
    for job in (Job(str(data), str(preset)), f1):
        report = evaluate_dataset(job, PAIR)
        assert (report.recorded["metric"], report.evaluation.metric) == ("f1", "f1")
        assert report.evaluation.tried != plain.evaluation.tried


def test_a_run_directory_of_other_settings_is_refused(tmp_path):
    with open_run(tmp_path, {"seed": 0, "dataset": "a"}):
        pass
    with pytest.raises(InputError, match=r"other settings \(seed\)"):  # noqa: SIM117
        with open_run(tmp_path, {"seed": 1, "dataset": "a"}):
            pass


def test_a_run_directory_refuses_other_graphs(tmp_path):
    path, run = tmp_path / "data.saen", tmp_path / "run"
    job = Job(str(path), "network", {"epochs": 1, "inner_folds": 0})
    saen.save(saen.generate_threads(20, seed=0), path)
    evaluate_dataset(job, PAIR, run)
    saen.save(saen.generate_threads(20, seed=1), path)
    with pytest.raises(InputError, match=r"other settings \(data\)"):
        evaluate_dataset(job, PAIR, run)


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="signals work otherwise on Windows")
def test_an_evaluation_killed_again_and_again_ends_with_the_identical_table(tmp_path):
    def command(folder):
        options = ["--preset", "network", "--repeats", "1", "--folds", "4", "--epochs", "30"]
        options += ["--parallel-models", "2", "--json", "--out", str(folder)]
        return [sys.executable, "-m", "saen", "evaluate", "threads", *options]

    subprocess.run(command(tmp_path / "whole"), check=True, stdout=subprocess.DEVNULL)
    kills = 0
    for attempt in range(20):
        process = subprocess.Popen(command(tmp_path / "killed"), stdout=subprocess.DEVNULL)
        try:
            process.wait(timeout=6 + 2 * attempt)
            break
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
            kills += 1
            time.sleep(0.1)
    assert kills > 0
    whole, killed = (
        json.loads((tmp_path / name / "summary.json").read_text()) for name in ("whole", "killed")
    )
    for report in (whole, killed):
        del report["seconds"], report["checksum"]  # which covers the seconds
    assert killed == whole


def table_of(run, report):
    """The predictions of a run directory, which are those of the evaluation, by repeat and id."""
    table = pd.read_csv(run / "predictions.csv")
    frame = report.evaluation.to_frame()
    assert [name for name in table if name in frame] == [*frame]
    for name in frame:
        pd.testing.assert_series_equal(table[name], frame[name].astype(table[name].dtype))
    assert not table.duplicated(["repeat", "id"]).any()
    return table


def test_predictions_of_a_run_are_those_that_its_scores_are_about(tmp_path):
    threads = saen.generate_threads(24, average_nodes=8, seed=2)
    lines = [
        {"id": f"t{n}", "nodes": len(g.nodes), "edges": [*g.edges], "target": str(y), "lab": n % 3}
        for n, (g, y) in enumerate(zip(to_networkx(threads), threads.targets, strict=True))
    ]
    file, run = tmp_path / "threads.jsonl", tmp_path / "run"
    lines[4]["edges"] = [[0, 99]]
    file.write_text("\n".join(map(json.dumps, lines)))
    reading = ReadOptions(skip_bad=True, report=lambda error: None)
    job = Job(str(file), "counts", reading=reading)
    report = evaluate_dataset(job, Protocol(repeats=2, folds=3), run, keep=["lab"])
    table = table_of(run, report)
    assert [*table][:5] == ["id", "lab", "repeat", "fold", "target"]
    assert len(table) == 2 * 23
    assert (
        table.id == "t" + table.index.map(lambda row: str([*range(4), *range(5, 24)][row % 23]))
    ).all()
    assert (table.lab == table.id.str[1:].astype(int) % 3).all()
    right = (table.target == table.prediction).groupby([table.repeat, table.fold]).mean()
    np.testing.assert_allclose(right, report.evaluation.accuracies().ravel())
    (run / "predictions.csv").unlink()
    evaluate_dataset(job, Protocol(repeats=2, folds=3), run, keep=["lab"])
    pd.testing.assert_frame_equal(pd.read_csv(run / "predictions.csv"), table)


def test_predictions_of_a_hold_out_of_several_targets_with_gaps_are_a_table(tmp_path):
    graphs = saen.generate_threads(40, average_nodes=8, seed=2)
    gaps = np.where(np.arange(40) % 5 == 0, np.nan, np.arange(40) % 2)
    values = np.column_stack([np.arange(40) % 2, gaps])
    own = {"classification": {"p_x", "p_y"}, "regression": {"lower_x", "upper_y"}}
    for task, columns in own.items():
        file, run = tmp_path / "data.saen", tmp_path / task
        saen.save(replace(graphs, targets=values, target_names=("x", "y")), file)
        job = Job(str(file), "counts", reading=ReadOptions(task=task))
        report = evaluate_dataset(job, Protocol(repeats=2, test_size=0.25), run)
        table = table_of(run, report)
        assert {"target_x", "prediction_x", "prediction_y", *columns} <= {*table}
        assert (table.fold == 0).all()
        assert len(table) == (report.evaluation.fold_of >= 0).sum() == 20
        np.testing.assert_array_equal(table.target_y, values[table.id, 1])


def test_seconds_of_an_evaluation_are_those_of_all_its_steps():
    start = time.perf_counter()
    report = evaluate_dataset(Job("threads", "counts"), Protocol(repeats=1, folds=2))
    taken = time.perf_counter() - start
    assert all(report.seconds[step] > 0 for step in ("load", "compress", "train"))
    assert sum(report.seconds.values()) < taken
