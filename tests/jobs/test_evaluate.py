"""Evaluations of presets on datasets, in run directories."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

import saen
from saen import InputError
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
    saen.save(saen.generate_threads(60, average_nodes=20, seed=3), data)
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
