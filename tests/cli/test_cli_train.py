"""`saen train`: a model of one's own data, whatever happens on the way."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import saen
from saen import Graphs, SAENClassifier, SAENRegressor, generate_threads, load_dataset
from saen.cli.train import _print_facts
from saen.jobs.train import DataFacts
from tests.cli.commandline import fails, invoke, run

QUICK = ("--preset", "network", "--epochs", 2, "--device", "cpu")
"""Five networks of 40 graphs: one per inner fold."""


@pytest.fixture(scope="module")
def threads() -> Graphs:
    return generate_threads(40, average_nodes=12, seed=1)


@pytest.fixture
def data(threads: Graphs, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "threads.saen"
    saen.save(threads, path)
    return path


def saved(graphs: Graphs, targets: Any, folder: Path) -> Path:
    path = folder / "own.saen"
    saen.save(graphs.with_targets(targets), path)
    return path


def test_the_model_is_what_fitting_on_everything_gives(
    threads: Graphs, data: Path, tmp_path: Path
) -> None:
    out = tmp_path / "model.saen"
    report = run("train", data, "--out", out, *QUICK, "--seed", 3)
    model = saen.load(out)
    alone = SAENClassifier(epochs=2, device="cpu", random_state=3)
    alone.fit(threads, threads.targets)
    assert_array_equal(model.predict_proba(threads), alone.predict_proba(threads))
    assert report["model"] == str(out)
    assert report["bytes"] == out.stat().st_size
    assert (report["networks"], report["epochs"], report["structures"]) == (5, 2, 40)
    assert report["levels"] == saen.compress_graphs(threads, model.decomposition_).levels()
    assert report["task"] == "classification"
    assert list(tmp_path.iterdir()) == [out]  # nothing else stays


def test_the_score_is_of_networks_that_have_not_seen_what_they_predict(
    threads: Graphs, data: Path, tmp_path: Path
) -> None:
    report = run("train", data, "--out", tmp_path / "model.saen", *QUICK)
    found = report["out_of_fold"]
    assert found["test"] == list(range(40))
    model = SAENClassifier(epochs=2, device="cpu").fit(threads, threads.targets)
    assert model.evaluation_ is not None
    [folds] = model.evaluation_.splits
    assert len(folds) == 5
    each = model.predict_each(threads)
    right = 0
    for number, (train, test) in enumerate(folds):
        assert not set(train) & set(test)
        # Calibration, of two classes, does not change which one is more probable.
        chosen = model.classes_[each[test, number].argmax(axis=1)]
        right += (chosen == threads.targets[test]).sum()
    assert found["accuracy"] == right / 40
    assert np.trace(found["confusion"]) == right
    assert np.sum(found["confusion"]) == 40
    assert found["interval"][0] < right / 40 < found["interval"][1]
    assert "held_out" not in report
    about = saen.load(tmp_path / "model.saen").origin_.about
    assert about["out_of_fold"]["accuracy"] == found["accuracy"]


def test_the_estimate_is_that_of_a_model_which_never_saw_the_part_held_out(
    threads: Graphs, data: Path, tmp_path: Path
) -> None:
    options = (*QUICK, "--hold-out", 0.3)
    found = run("train", data, "--out", tmp_path / "model.saen", *options)["held_out"]
    test = np.array(found["test"])
    assert len(set(found["test"])) == len(test) == 12
    _, counts = np.unique(threads.targets[test], return_counts=True)
    assert counts.tolist() == [6, 6]
    weights = np.ones(40)
    weights[test] = 0
    blind = SAENClassifier(epochs=2, device="cpu")
    blind.fit(threads, threads.targets, sample_weight=weights)
    right = (blind.predict(threads[test]) == threads.targets[test]).sum()
    assert found["accuracy"] == right / 12
    assert np.trace(found["confusion"]) == right
    assert np.sum(found["confusion"]) == 12
    assert found["majority"] == 0.5
    assert found["interval"][0] < right / 12 < found["interval"][1]


def test_twins_of_the_part_held_out_are_counted(tmp_path: Path) -> None:
    graphs = Graphs.from_edge_lists([[(0, 1)]] * 10 + [[(0, 1), (1, 2)]] * 10)
    path = saved(graphs, [0] * 10 + [1] * 10, tmp_path)
    found = run("train", path, "-o", tmp_path / "m.saen", *QUICK, "--hold-out", 0.2)
    assert found["held_out"]["duplicates"] == len(found["held_out"]["test"]) == 4


@pytest.mark.parametrize("targets", [["a", "b"] * 19 + ["b", "c"], ["a", "b", "c", "d", "e"] * 8])
def test_a_part_that_cannot_have_all_classes_is_not_held_out(
    threads: Graphs, tmp_path: Path, targets: list[str]
) -> None:
    file = saved(threads, np.array(targets), tmp_path)
    options = ("train", file, "-o", tmp_path / "m.saen", *QUICK)
    told = fails(*options, "--hold-out", 0.1)
    assert told.startswith("cannot split 40 examples: ")
    assert told.endswith(": choose another --hold-out, or leave it out")
    assert run(*options)["out_of_fold"]["test"] == list(range(40))


def test_facts_of_numbers_that_need_no_line_are_printed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    _print_facts(DataFacts("mine", "regression", 20, None, None, [], 1.0, "20 graphs", 3))
    assert capsys.readouterr().out == "20 graphs\n"


def test_a_single_number_can_be_held_out(threads: Graphs, tmp_path: Path) -> None:
    file = saved(threads, threads.sizes / 2, tmp_path)
    options = ("train", file, "-o", tmp_path / "m.saen", *QUICK, "--hold-out", 0.01)
    told = invoke(*options).stdout
    assert "held out    mean absolute error " in told
    assert " on 1 graph (mean baseline " in told
    assert run(*options, "--force")["held_out"]["interval"] is None


def test_real_targets_make_a_regressor(threads: Graphs, tmp_path: Path) -> None:
    y = threads.sizes.astype(float)
    out = tmp_path / "model.saen"
    report = run("train", saved(threads, y, tmp_path), "--out", out, *QUICK, "--hold-out", 0.25)
    model = saen.load(out)
    assert isinstance(model, SAENRegressor)
    assert report["task"] == "regression"
    found = report["held_out"]
    test = np.array(found["test"])
    weights = np.ones(40)
    weights[test] = 0
    blind = SAENRegressor(epochs=2, device="cpu")
    blind.fit(threads, y, sample_weight=weights)
    misses = np.abs(blind.predict(threads[test]) - y[test])
    np.testing.assert_allclose(found["mae"], misses.mean(), rtol=1e-5)
    radius = 2.262 * np.std(misses, ddof=1) / 10**0.5  # Student's t of nine degrees of freedom
    ends = misses.mean() - radius, misses.mean() + radius
    np.testing.assert_allclose(found["interval"], ends, rtol=1e-3)
    mean = y[weights > 0].mean()
    r2 = 1 - (misses**2).sum() / ((y[test] - y[test].mean()) ** 2).sum()
    np.testing.assert_allclose(found["r2"], r2, rtol=1e-4)
    np.testing.assert_allclose(found["mae_of_mean"], np.abs(y[test] - mean).mean())


def test_several_real_targets_are_learned_together(threads: Graphs, tmp_path: Path) -> None:
    y = np.column_stack([threads.sizes, threads.sizes**2]).astype(float)
    report = run("train", saved(threads, y, tmp_path), "-o", tmp_path / "m.saen", *QUICK)
    assert saen.load(tmp_path / "m.saen").predict(threads).shape == (40, 2)
    assert report["out_of_fold"]["mae"] > 0


def test_what_is_told_to_people(data: Path, tmp_path: Path) -> None:
    told = invoke("train", data, "-o", tmp_path / "m.saen", *QUICK, "--radii", "0,1").stdout
    assert "threads: 40 graphs, " in told
    assert "classes     discussion 20, questions 20" in told
    assert "ego decomposition (radii 0,1, " in told
    assert len(told.splitlines()) <= 9
    [line] = [line for line in told.splitlines() if line.startswith("out of fold accuracy ")]
    assert "% on 40 graphs (95 % interval" in line
    assert "5 networks, 2 epochs, trained on all 40" in told
    assert "held out" not in told


def test_a_hold_out_changes_nothing_about_the_model(data: Path, tmp_path: Path) -> None:
    invoke("train", data, "-o", tmp_path / "m.saen", *QUICK)
    told = invoke("train", data, "-o", tmp_path / "n.saen", *QUICK, "--hold-out", 0.1).stdout
    [line] = [line for line in told.splitlines() if line.startswith("held out")]
    assert "% on 4 graphs (95 % interval" in line
    assert (tmp_path / "m.saen").read_bytes() == (tmp_path / "n.saen").read_bytes()


def test_without_inner_folds_there_is_no_estimate(data: Path, tmp_path: Path) -> None:
    preset = tmp_path / "own.toml"
    preset.write_text("[defaults]\nepochs = 1\ninner_folds = 0\n")
    options = ("train", data, "--preset", preset, "-o", tmp_path / "m.saen")
    assert "out of fold" not in invoke(*options).stdout
    assert "out_of_fold" not in run(*options, "--force")


@pytest.mark.parametrize(("hold_out", "size"), [((), 40), (("--hold-out", 0.25), 10)])
def test_groups_stay_on_one_side(
    threads: Graphs, tmp_path: Path, hold_out: tuple[Any, ...], size: int
) -> None:
    # Identical graphs of one maker: whoever knows one of them knows the others.
    groups = np.arange(40) // 4
    classes = np.random.default_rng(0).choice(["a", "b"], 10)[groups]
    lines = [
        {
            "nodes": 12,
            "edges": [[0, leaf] for leaf in range(1, 2 + group)],
            "target": kind,
            "maker": f"m{group}",
        }
        for group, kind in zip(groups.tolist(), classes.tolist(), strict=True)
    ]
    path = tmp_path / "own.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    options = ("-o", tmp_path / "m.saen", *QUICK, "--groups", "maker", *hold_out)
    report = run("train", path, *options)
    found = report["held_out" if hold_out else "out_of_fold"]
    tested = np.array(found["test"])
    if hold_out:
        assert not set(groups[tested]) & set(np.delete(groups, tested))
    else:
        assert len(tested) == size
    assert found["duplicates"] == 0


@pytest.mark.parametrize(
    ("targets", "options", "message"),
    [
        (None, (), "own has no targets to learn: name the column with --target"),
        (["a"] * 40, (), "own: all 40 targets are a, there is nothing to learn"),
        ([1.5] * 40, (), "own: all 40 targets are 1.5, there is nothing to learn"),
        ([0.5, np.nan, np.inf] + [1.5] * 37, (),
         "own: target 1 is not a finite number (and 1 others)"),
        (["a", "b"] * 20, ("--hold-out", 1), "hold_out must be between 0 and 1, not 1"),
        (["a", "b"] * 20, ("--epochs", 2),
         "epochs does not apply to preset best: choose preset network or paper"),
        (["a", "b"] * 20, ("--preset", "networks"), "did you mean network?"),
        (["a", "b"] * 20, ("-d", "ergo"), "did you mean ego?"),
        (["a", "b"] * 20, ("--radii", "x"), "radii are integers such as 0,1, not 'x'"),
        (["a", "b"] * 20, ("--device", "tpu"), "unknown device 'tpu': use auto, cpu or cuda"),
    ],
)  # fmt: skip
def test_what_cannot_be_learned_is_said_in_one_line_and_leaves_nothing(
    threads: Graphs,
    tmp_path: Path,
    targets: Any,
    options: tuple[Any, ...],
    message: str,
) -> None:
    graphs = threads._with(name="own")
    path = saved(graphs, targets, tmp_path)
    out = tmp_path / "model.saen"
    assert message in fails("train", path, "-o", out, *options)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(("option", "value"), [("--epochs", -1), ("--models", 0)])
def test_numbers_out_of_range_are_wrong_usage_before_any_work(
    option: str, value: int, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("saen.jobs.job.load_input", None)  # would be the first to work
    result = invoke("train", data, "-o", tmp_path / "model.saen", option, value, code=2)
    assert f"Invalid value for '{option}'" in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_places_that_cannot_hold_a_model_are_named_before_the_work(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("saen.jobs.job.load_input", None)  # would be the first to work
    told = fails("train", data, "-o", tmp_path)
    assert told == f"{tmp_path}: is a folder, not a file"
    nowhere = tmp_path / "no" / "such" / "model.saen"
    told = fails("train", data, "-o", nowhere)
    assert told == f"{nowhere}: cannot be written (no such folder)"
    assert list(tmp_path.iterdir()) == []


def test_a_class_of_one_member_can_be_learned(threads: Graphs, tmp_path: Path) -> None:
    path = saved(threads, ["a"] * 39 + ["b"], tmp_path)
    report = run("train", path, "-o", tmp_path / "m.saen", *QUICK)
    assert report["classes"] == {"a": 39, "b": 1}


def test_a_preset_of_one_s_own_is_used(threads: Graphs, tmp_path: Path) -> None:
    preset = tmp_path / "own.toml"
    preset.write_text('[defaults]\nepochs = 1\nn_models = 2\nclass_weight = "balanced"\n')
    path = saved(threads, threads.targets, tmp_path)
    report = run("train", path, "-o", tmp_path / "m.saen", "--preset", preset)
    assert (report["epochs"], report["networks"]) == (1, 10)
    path = saved(threads, threads.sizes / 2, tmp_path)
    told = fails("train", path, "-o", tmp_path / "n.saen", "--preset", preset)
    assert told == "the preset sets class_weight, but the targets are real numbers"


def test_a_training_that_diverges_leaves_nothing_to_go_on_from(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    preset = tmp_path / "wild.toml"
    preset.write_text('[defaults]\nlearning_rate = 1e30\nnormalization = "none"\nepochs = 9\n')
    options = ("train", data, "-o", tmp_path / "m.saen", "--preset", preset)
    assert "training diverged" in fails(*options)
    assert list(tmp_path.iterdir()) == [preset]

    def later(run: Any, _: Any) -> None:
        if run.epoch == 3:
            raise saen.InputError("training diverged")

    preset.write_text("[defaults]\nepochs = 9\n")
    monkeypatch.setattr("saen.network.training._Run.check_finite", later)
    assert fails(*options) == "training diverged"
    assert list(tmp_path.iterdir()) == [preset]


def test_the_target_of_graphs_can_be_chosen(tmp_path: Path) -> None:
    folder = tmp_path / "TOY"
    folder.mkdir()
    (folder / "TOY_A.txt").write_text("".join(f"{2 * i + 1}, {2 * i + 2}\n" for i in range(12)))
    (folder / "TOY_graph_indicator.txt").write_text("".join(f"{i // 2 + 1}\n" for i in range(24)))
    (folder / "TOY_graph_labels.txt").write_text("0\n1\n" * 6)
    (folder / "TOY_graph_attributes.txt").write_text("".join(f"{i / 4}\n" for i in range(12)))
    options = ("-o", tmp_path / "m.saen", "--force", *QUICK)
    assert run("train", folder, *options)["task"] == "classification"
    assert run("train", folder, *options, "--target", "attributes")["task"] == "regression"


# -- interruptions -----------------------------------------------------------------------------


def stops(monkeypatch: pytest.MonkeyPatch, *arguments: Any, code: int = 130) -> None:
    from saen.cli import main

    monkeypatch.setattr("sys.argv", ["saen", *map(str, arguments)])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == code


def test_an_interrupted_run_goes_on_with_what_it_knows(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    options = ("train", data, *QUICK, "--hold-out", 0.2, "-o")
    whole, out = tmp_path / "whole.saen", tmp_path / "model.saen"
    known = run(*options, whole)

    def interrupt(*arguments: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(SAENClassifier, "save", interrupt)
        stops(patch, *options, out)
    told = capsys.readouterr().err
    assert "saen: run the same command again to resume" in told
    assert told.endswith("saen: interrupted\n")
    left = tmp_path / ".model.saen.run"
    assert sorted(tmp_path.iterdir()) == [left, whole]
    kept = [file.name for file in left.glob("networks-*")]
    assert len(kept) >= 2  # of the part that is not held out, and of everything
    assert {Path(name).suffix for name in kept} == {".saen"}

    # Other settings are refused, unless by force, and the same ones go on.
    other = ("train", data, *QUICK, "--hold-out", 0.2, "--models", 2, "-o", out)
    assert fails(*other) == (
        f"{left} holds a run with other settings (settings): repeat its command to resume it, "
        "or start over with --force"
    )
    monkeypatch.setattr("saen.network.training._Run.train_epoch", None)  # nothing is left to train
    again = invoke(*options, out, "--json")
    assert "resuming an interrupted run" in again.stderr
    assert out.read_bytes() == whole.read_bytes()
    report = json.loads(again.stdout)
    assert report["held_out"] == known["held_out"]
    assert report["out_of_fold"] == known["out_of_fold"]
    assert sorted(tmp_path.iterdir()) == [out, whole]


def test_an_interrupted_evaluation_says_that_it_can_be_resumed(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    options = ("evaluate", data, "--repeats", 1, "--folds", 2, *QUICK)

    def interrupt(*arguments: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("saen.learning.models.networks.NetworkLearner._result", interrupt)
    stops(monkeypatch, *options, "--out", tmp_path / "run")
    told = capsys.readouterr().err
    assert told.endswith("saen: run the same command again to resume\nsaen: interrupted\n")
    stops(monkeypatch, *options)
    assert "resume" not in capsys.readouterr().err


def test_an_evaluation_says_what_it_takes_from_its_run_directory(tmp_path: Path) -> None:
    arguments = ["evaluate", "threads", "--preset", "network", "--epochs", "1", "--folds", "2"]
    arguments += ["--repeats", "1", "--out", str(tmp_path / "run")]
    first = invoke(*arguments)
    again = invoke(*arguments)
    assert "nothing is repeated" not in first.stderr
    assert f"{tmp_path / 'run'} holds this run already: nothing is repeated" in again.stderr
    assert again.stdout.splitlines()[:2] == first.stdout.splitlines()[:2]
    (tmp_path / "run" / "summary.json").unlink()
    assert "resuming an interrupted run" in invoke(*arguments).stderr


def test_integers_that_look_like_numbers_are_a_warning_that_names_the_option(
    threads: Graphs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    file = saved(threads, np.arange(40) % 21, tmp_path)
    options = ("evaluate", file, "--preset", "counts", "--repeats", 1, "--folds", 2)
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        stops(monkeypatch, *options, code=0)
    asked, small = capsys.readouterr().err.splitlines()
    assert asked == (
        "saen: warning: threads: 21 different integers as targets of 40 examples are read as "
        "classes: if they are numbers, use --task regression"
    )
    assert small.startswith("saen: warning: class '")


def test_an_interrupted_run_makes_place_by_force(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "model.saen"
    with monkeypatch.context() as patch:
        patch.setattr(SAENClassifier, "save", lambda *_: signal.raise_signal(signal.SIGINT))
        stops(patch, "train", data, "-o", out, *QUICK)
    report = run("train", data, "-o", out, *QUICK, "--epochs", 1, "--force")
    assert report["epochs"] == 1
    assert list(tmp_path.iterdir()) == [out]


def test_what_is_interrupted_before_the_first_epoch_leaves_nothing(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*arguments: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("saen.network.training._Run.train_epoch", interrupt)
    stops(monkeypatch, "train", data, "-o", tmp_path / "model.saen", *QUICK)
    assert list(tmp_path.iterdir()) == []


def start(*options: Any) -> subprocess.Popen[str]:
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    code = (
        # A shell that starts jobs in the background has them ignore Ctrl-C.
        "import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from saen.cli import main\nmain()\n"
    )
    return subprocess.Popen(
        [sys.executable, "-c", code, "train", "threads", *map(str, options)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="signals work otherwise on Windows")
def test_killed_at_any_moment_and_started_again_it_ends_with_the_same_model(
    tmp_path: Path,
) -> None:
    options = ("--preset", "network", "--epochs", 200, "--device", "cpu", "--hold-out", 0.1)
    options += ("--out",)
    whole, out = tmp_path / "whole.saen", tmp_path / "model.saen"
    with start(*options, whole) as process:
        process.communicate()
    moments = random.Random(0)
    kills = resumed = 0
    for _ in range(40):
        with start(*options, out) as process:
            if kills < 6:
                left = tmp_path / ".model.saen.run"
                deadline = time.monotonic() + 60
                while not left.exists() and process.poll() is None and time.monotonic() < deadline:
                    time.sleep(0.02)
                time.sleep(moments.uniform(0.0, 6.0))
                process.send_signal(signal.SIGKILL)
            _, errors = process.communicate()
        resumed += "resuming an interrupted run" in errors
        if process.returncode == 0:
            break
        assert process.returncode == -signal.SIGKILL
        kills += 1
        if out.exists():  # between the last write and the end of the process
            assert out.read_bytes() == whole.read_bytes()
            out.unlink()
    assert kills >= 3
    assert resumed >= 1
    assert out.read_bytes() == whole.read_bytes()
    graphs = load_dataset("threads")
    assert_array_equal(saen.load(out).predict_proba(graphs), saen.load(whole).predict_proba(graphs))


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="signals work otherwise on Windows")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_leaves_no_half_written_model(
    tmp_path: Path, number: signal.Signals, code: int
) -> None:
    out = tmp_path / "model.saen"
    left = tmp_path / ".model.saen.run"
    with start("--preset", "network", "--epochs", 10000, "--out", out) as process:
        deadline = time.monotonic() + 60
        while not list(left.glob("*.checkpoint")) and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(number)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == code
    assert "Traceback" not in errors
    assert "saen: run the same command again to resume" in errors
    assert [file.name for file in tmp_path.iterdir()] == [left.name]
    names = {file.name for file in left.iterdir() if file.suffix != ".checkpoint"}
    assert names <= {".lock", "settings.json"}


def test_several_targets_have_one_model_and_columns_of_their_own(tmp_path: Path) -> None:
    pytest.importorskip("rdkit")
    rng = np.random.default_rng(0)
    rows = ["id,smiles,Oxygen,Nitrogen"]
    for number in range(40):
        smiles = "C" + "".join(rng.choice(["C", "O", "N"], size=3))
        values = [str(int("O" in smiles)), str(int("N" in smiles))]
        rows.append(
            ",".join([str(number), smiles, *("" if rng.random() < 0.2 else v for v in values)])
        )
    data, model = tmp_path / "tox.csv", tmp_path / "model.saen"
    data.write_text("\n".join(rows) + "\n")
    options = ("--target", "Oxygen,Nitrogen", *QUICK)
    page = tmp_path / "page.html"
    report = run("train", data, "--out", model, *options, "--report", page)
    assert list(report["out_of_fold"]["targets"]) == ["Oxygen", "Nitrogen"]
    assert "inner validation" in page.read_text(encoding="utf-8")
    predictions = invoke("predict", model, data).stdout.splitlines()
    assert predictions[0] == "id,prediction_Oxygen,p_Oxygen,prediction_Nitrogen,p_Nitrogen"
    assert len(predictions) == 41
    evaluation = run("evaluate", data, *options, "--repeats", 1, "--folds", 2)
    assert set(evaluation["targets"]["roc_auc"]) == {"Oxygen", "Nitrogen"}
    shown = invoke("evaluate", data, *options, "--repeats", 1, "--folds", 2, "--metric", "roc_auc")
    assert "targets" in shown.stdout


def test_train_names_the_target_that_cannot_be_learned(tmp_path: Path) -> None:
    rows = "".join(f"{'C' * n},{n}.5,{'yes' if n % 2 else 'no'},\n" for n in range(1, 12))
    (tmp_path / "x.csv").write_text(f"smiles,size,odd,void\n{rows}")
    command = ["train", tmp_path / "x.csv", "-o", tmp_path / "m.saen", *QUICK, "--target"]
    assert "target 'size' has 11 classes: of several targets" in fails(*command, "size,odd")
    assert "target 'void' has no values: leave it out" in fails(*command, "odd,void")


def test_duplicates_are_those_of_the_data_whatever_the_model_sees(tmp_path: Path) -> None:
    letters = np.random.default_rng(0).choice([*"abcde"], size=120)
    graphs = Graphs.from_edge_lists([[(0, 1), (1, 2)]] * 40, node_labels=letters)
    path = saved(graphs, [0, 1] * 20, tmp_path)
    views = ((), ("--node-labels", "degree"), ("-d", "nodes"))
    train = ("train", path, "--preset", "counts", "--hold-out", 0.5)
    found = [run(*train, "-o", tmp_path / f"{n}.saen", *view) for n, view in enumerate(views)]
    (full, degrees, nodes) = (each["held_out"] for each in found)
    assert 0 < full["duplicates"] == degrees["duplicates"] == nodes["duplicates"] < 20
    assert degrees["look_identical"] == 20  # all are paths
    assert full["duplicates"] <= full["look_identical"] <= nodes["look_identical"] < 20
    told = invoke(*train, "-o", tmp_path / "again.saen", *views[1]).stdout
    assert f"{full['duplicates']} of these graphs are identical to training graphs; " in told
    assert "; 20 look identical to the model\n" in told
    evaluate = ("evaluate", path, "--preset", "counts", "--repeats", 1, "--folds", 2)
    shares = [run(*evaluate, *view)["duplicates"] for view in views]
    assert 0 < shares[0]["share"] == shares[1]["share"] == shares[2]["share"] < 1
    assert shares[1]["look_identical"] == 1.0
    assert " (100.0 % look so to the model)" in invoke(*evaluate, *views[1]).stdout
    different = Graphs.from_edge_lists([[(0, 1)]] * 40, node_labels=np.arange(80).astype(str))
    train = ("train", saved(different, [0, 1] * 20, tmp_path), "--preset", "counts")
    told = invoke(*train, "--hold-out", 0.5, "-o", tmp_path / "d.saen", "--node-labels", "degree")
    assert "duplicates  to the model, 20 of these graphs look like training graphs\n" in told.stdout


def test_a_target_that_is_blank_everywhere_is_named(tmp_path):
    table = tmp_path / "m.csv"
    table.write_text("smiles,dose,blank\n" + "".join(f"{'C' * n},{n},\n" for n in range(1, 20)))
    said = fails("train", table, "--target", "blank", "--out", tmp_path / "m.saen")
    assert "target 'blank' has no values" in said
