"""Kills, clashes and hostile data at the command line: nothing is lost, nothing is made up."""

from __future__ import annotations

import io
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from saen import PartCountsRegressor, SAENRegressor, load, save
from saen._util.atomic import remove_folder
from saen.cli import main
from saen.errors import FileError
from saen.io.sources.threads import generate_threads
from saen.io.writing import write_data
from tests.cli.commandline import fails, invoke, run

QUICK = ("--preset", "network", "--epochs", "1")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "model.saen"
    invoke("train", "threads", "--out", path, *QUICK)
    return path


@pytest.fixture
def data(tmp_path: Path) -> Path:
    write_data(generate_threads(20, average_nodes=8, seed=1), tmp_path / "data.jsonl")
    return tmp_path / "data.jsonl"


def stop_before_removal(monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(_: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("saen.jobs.train.remove_folder", stopped)


# -- train -------------------------------------------------------------------------------------


def test_train_that_was_stopped_after_writing_the_model_ends_when_repeated(tmp_path, monkeypatch):
    out = tmp_path / "model.saen"
    with monkeypatch.context() as patch:
        stop_before_removal(patch)
        with pytest.raises(AssertionError):
            invoke("train", "threads", "--out", out, *QUICK)
    before = out.read_bytes()
    report = run("train", "threads", "--out", out, *QUICK)
    assert out.read_bytes() == before
    assert report["bytes"] == len(before)
    assert list(tmp_path.iterdir()) == [out]
    assert "already exists" in fails("train", "threads", "--out", out, *QUICK)


def test_train_never_takes_over_the_scores_of_other_data(tmp_path, monkeypatch):
    data, other, out = (tmp_path / name for name in ("data.saen", "other.saen", "model.saen"))
    for path, seed in ((data, 1), (other, 2)):  # as many, with the same targets
        save(generate_threads(20, average_nodes=8, seed=seed), path)
    folder = tmp_path / ".model.saen.run"
    with monkeypatch.context() as patch:
        stop_before_removal(patch)
        with pytest.raises(AssertionError):
            invoke("train", other, "--out", out, *QUICK)
    left = [*tmp_path.rglob("networks-*.saen")]
    assert left
    for file in left:
        file.rename(tmp_path / file.name)
    remove_folder(folder)
    out.unlink()
    expected = run("train", data, "--out", out, *QUICK)
    before = out.read_bytes()
    out.unlink()
    with monkeypatch.context() as patch:
        stop_before_removal(patch)
        with pytest.raises(AssertionError):
            invoke("train", data, "--out", out, *QUICK)
    out.unlink()
    for file in folder.glob("networks-*"):
        file.unlink()
    for file in left:  # whatever brought it there
        (tmp_path / file.name).rename(file)
    report = run("train", data, "--out", out, *QUICK)
    assert report["out_of_fold"] == expected["out_of_fold"]
    assert out.read_bytes() == before


@pytest.mark.parametrize("kind", [SAENRegressor, PartCountsRegressor])
def test_what_fit_keeps_of_other_data_is_not_taken_over(tmp_path, kind):
    settings = {"epochs": 1} if kind is SAENRegressor else {}
    one, other = (generate_threads(20, average_nodes=8, seed=seed) for seed in (1, 2))
    sizes = np.arange(20.0)
    fresh = kind(**settings).fit(one, sizes).predict(one)
    for data, targets in ((other, sizes), (one, sizes[::-1]), (one, sizes)):
        model = kind(**settings, run_dir=tmp_path).fit(data, targets)
    np.testing.assert_array_equal(model.predict(one), fresh)
    again = kind(**settings, run_dir=tmp_path).fit(one, sizes)
    np.testing.assert_array_equal(again.predict(one), fresh)


def test_train_leaves_a_folder_that_is_not_its_own(tmp_path):
    folder = tmp_path / ".model.saen.run"
    folder.mkdir()
    (folder / "thesis.tex").write_text("years of work")
    message = fails("train", "threads", "-o", tmp_path / "model.saen", *QUICK)
    assert "is not a run directory, and contains thesis.tex" in message
    assert (folder / "thesis.tex").read_text() == "years of work"


def test_train_keeps_a_first_model_while_the_rest_is_trained(tmp_path, data, monkeypatch):
    out, partial = tmp_path / "model.saen", tmp_path / "model.partial.saen"
    partial.write_text("mine")
    invoke("train", data, "--out", out, *QUICK)  # has no first stage
    assert partial.read_text() == "mine"
    out.unlink()
    message = fails("train", data, "--out", out)
    assert message == f"{partial}: already exists (use --force to overwrite)"
    assert partial.read_text() == "mine"
    partial.unlink()

    def interrupted(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("saen.network.training._Run.train_epoch", interrupted)
        stopped = invoke("train", data, "--out", out, code=130)
    assert f"{partial} holds the model so far" in stopped.stderr
    assert not out.exists()
    assert len(load(partial).predict(generate_threads(20, average_nodes=8, seed=1))) == 20
    invoke("train", data, "--out", out)
    assert not partial.exists()
    assert {file.name for file in tmp_path.iterdir()} == {"data.jsonl", "model.saen"}


# -- evaluate ----------------------------------------------------------------------------------


def test_evaluate_leaves_a_summary_that_is_not_its_own(tmp_path):
    (tmp_path / "summary.json").write_text('{"mine": true}')
    message = fails("evaluate", "threads", "--out", tmp_path, *QUICK)
    assert "is not a run directory, and contains summary.json" in message
    assert json.loads((tmp_path / "summary.json").read_text()) == {"mine": True}


def test_evaluate_prints_its_result_before_what_cannot_be_written(
    tmp_path, data, monkeypatch, capsys
):
    def full(*_):
        raise FileError("cannot be written (No space left on device)", path=tmp_path / "r.svg")

    monkeypatch.setattr("saen.report.figures.save_figure", full)
    command = ("evaluate", data, "--plot", tmp_path / "r.svg", "--repeats", 1, "--folds", 2)
    monkeypatch.setattr("sys.argv", ["saen", *map(str, command), *QUICK])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 2
    printed = capsys.readouterr()
    assert "accuracy" in printed.out
    assert "No space left" in printed.err


def test_a_flipped_digit_in_a_run_directory_is_found(tmp_path):
    out = tmp_path / "run"
    invoke("evaluate", "threads", "--out", out, "--repeats", 1, "--folds", 2, *QUICK)
    for name in ("summary.json", "settings.json"):
        good = (out / name).read_text()
        (out / name).write_text(good.replace('"seed": 0', '"seed": 4'))
        assert "the checksum does not match" in fails("inspect", out)
        (out / name).write_text(good)
    shutil.rmtree(out)


# -- outputs -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "out"),
    [
        (("predict", "MODEL", "threads", "--out"), "p.csv"),
        (("embed", "MODEL", "threads", "--out"), "e.csv"),
        (("explain", "MODEL", "threads", "--graph", "0", "--out"), "x.json"),
        (("compress", "threads", "--out"), "c.saen"),
        (("compress", "threads", "--plot"), "c.svg"),
        (("draw", "threads", "--out"), "d.svg"),
        (("plot", "embeddings", "e.csv", "--out"), "m.svg"),
        (("evaluate", "threads", "--report"), "r.html"),
        (("evaluate", "threads", "--plot"), "r.svg"),
        (("train", "threads", "--out", "new.saen", "--report"), "r.html"),
        (("train", "threads", "--out"), "t.saen"),
        (("convert", "threads"), "t.jsonl"),
    ],
)
def test_an_existing_file_is_never_overwritten_unasked(tmp_path, model, command, out):
    (tmp_path / out).write_text("mine")
    words = [model if word == "MODEL" else word for word in command]
    message = fails(*words, tmp_path / out)
    assert message == f"{tmp_path / out}: already exists (use --force to overwrite)"
    assert (tmp_path / out).read_text() == "mine"


@pytest.mark.parametrize("out", [".", "", "./", "/", ".."])
@pytest.mark.parametrize(
    "command",
    [
        ("train", "threads", "--out"),
        ("evaluate", "threads", "--report"),
        ("predict", "MODEL", "threads", "--out"),
        ("embed", "MODEL", "threads", "--out"),
        ("explain", "MODEL", "threads", "--out"),
        ("explore", "MODEL", "threads", "--out"),
        ("compress", "threads", "--out"),
        ("draw", "threads", "--out"),
        ("convert", "threads"),
        ("convert", "threads", "--shards", "2"),
        ("convert", "threads", "--format", "tu"),
        ("convert", "threads", "--format", "graphml"),
    ],
    ids=" ".join,
)
def test_an_output_without_a_name_is_one_line(tmp_path, model, monkeypatch, command, out):
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    message = fails(*(model if word == "MODEL" else word for word in command), out)
    assert "\n" not in message
    assert not [*(tmp_path / "empty").iterdir()]


def test_force_overwrites_but_never_the_input(tmp_path, model, data):
    out = tmp_path / "out.jsonl"
    invoke("predict", model, data, "--out", out)
    invoke("predict", model, data, "--out", out, "--force")
    before = data.read_bytes()
    for words in (("predict", model, data, "--out", data), ("convert", data, data)):
        message = fails(*words, "--force")
        assert message == f"{data}: is an input of this command: choose another output"
    assert data.read_bytes() == before


def test_tables_of_one_dataset_are_never_read_half_old_and_half_new(tmp_path, monkeypatch):
    out = tmp_path / "edges.csv"
    write_data(generate_threads(5, seed=1), out)
    replace, replaced = Path.replace, []

    def stop_at_the_last(source: Path, target: Path) -> None:
        if target == out:
            raise KeyboardInterrupt
        replaced.append(target.name)
        replace(source, target)

    monkeypatch.setattr(Path, "replace", stop_at_the_last)
    with pytest.raises(KeyboardInterrupt):
        write_data(generate_threads(7, seed=2), out, force=True)
    assert sorted(replaced) == ["nodes.csv", "targets.csv"]
    assert not out.exists()


# -- numbers that are none ---------------------------------------------------------------------


def attributed(path: Path, values: list[float]) -> Path:
    lines = [
        {
            "nodes": [{"attributes": [value]}, {"attributes": [0.5]}],
            "edges": [[0, 1]],
            "target": "ab"[n % 2],
        }
        for n, value in enumerate(values)
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_a_prediction_that_is_not_a_number_is_an_error(tmp_path):
    small = attributed(tmp_path / "small.jsonl", [n / 10 for n in range(20)])
    huge = attributed(tmp_path / "huge.jsonl", [0.1, 0.2, 1e38, 0.3])
    model = tmp_path / "model.saen"
    labels = ("--node-labels", "attributes")
    invoke("train", small, "--out", model, *labels, *QUICK)
    for out in ("-", tmp_path / "p.jsonl"):
        message = fails("predict", model, huge, "--out", out)
        assert "the output for example 2 is NaN or infinite" in message
    assert not (tmp_path / "p.jsonl").exists()
    for level in (0, 1, 2):
        command = ("embed", model, huge, "--level", level, "--out", tmp_path / "e.csv")
        message = fails(*command)
        assert "the output for example 2 is NaN or infinite" in message
    assert not (tmp_path / "e.csv").exists()


# -- terminals ---------------------------------------------------------------------------------


def test_markup_and_escape_sequences_in_data_are_printed_as_text(tmp_path, data):
    lines = [json.loads(line) for line in data.read_text().splitlines()]
    for number, line in enumerate(lines):
        line["target"] = ("[/b]", "\x1b[31mred")[number % 2]
    source = tmp_path / "[nH] own.jsonl"
    source.write_text("".join(json.dumps(line) + "\n" for line in lines))
    model = tmp_path / "model.saen"
    printed = [
        invoke("validate", source),
        invoke("datasets", source),
        invoke("train", source, "--out", model, *QUICK),
        invoke("inspect", model),
        invoke("explain", model, source, "--graph", 0),
        invoke("compress", source, "--out", tmp_path / "[y].saen"),
        invoke("draw", source, "--out", tmp_path / "[z].svg"),
    ]
    for result in printed:
        assert "\x1b" not in result.output
    for result in printed[:4]:
        assert "[/b]" in result.stdout
        assert r"\x1b[31mred" in result.stdout
    assert "[y].saen" in printed[5].stdout
    assert "[z].svg" in printed[6].stdout


def test_every_command_prints_ascii_where_there_is_nothing_else(tmp_path, data, monkeypatch):
    lines = [json.loads(line) for line in data.read_text().splitlines()]
    for number, line in enumerate(lines):
        line["target"] = "é→"[number % 2]
    source = tmp_path / "…é.jsonl"
    source.write_text("".join(json.dumps(line) + "\n" for line in lines))
    own = tmp_path / "é.saen"
    counts = ("--preset", "counts")
    for command in (
        ("train", source, "--out", own, *counts),
        ("evaluate", source, "--repeats", 1, "--folds", 2, *counts),
        ("predict", own, source),
        ("embed", own, source, "--out", tmp_path / "é.csv"),
        ("explain", own, source, "--graph", 0),
        ("explain", own, source),
        ("inspect", own),
        ("validate", source),
        ("compress", source, "--out", tmp_path / "→.saen"),
        ("convert", source, tmp_path / "→.csv"),
        ("draw", source, "--out", tmp_path / "→.svg"),
        ("datasets", source),
        ("decompositions",),
    ):
        out, errors = io.BytesIO(), io.BytesIO()
        for stream, written in (("stdout", out), ("stderr", errors)):
            text = io.TextIOWrapper(written, "ascii", write_through=True)
            monkeypatch.setattr(f"sys.{stream}", text)
        monkeypatch.setattr("sys.argv", ["saen", *map(str, command)])
        with pytest.raises(SystemExit) as stopped:
            main()
        assert not stopped.value.code, errors.getvalue()
        assert out.getvalue().isascii()
