"""The command line as a newcomer types it, in a process of its own where that matters."""

import os
import signal
import subprocess
import sys
import time

import pytest

import saen
from tests.cli.commandline import fails, invoke, run


def test_the_version_is_printed():
    assert invoke("--version").stdout == f"saen {saen.__version__}\n"


def test_the_catalog_lists_the_paper_s_eleven_datasets_and_both_versions_of_ptc():
    listed = run("datasets")["datasets"]
    assert len(listed) == 12
    assert {"PTC", "PTC_MR", "REDDIT-MULTI-12K"} <= {entry["name"] for entry in listed}


def test_statistics_of_a_collection_are_those_of_its_summary():
    found = run("datasets", "threads")
    assert found["graphs"] == 300
    assert found["average_nodes"] == saen.generate_threads().summary()["average_nodes"]
    assert found["paper"] is None


def test_compressing_reports_levels_sizes_and_ceiling_and_keeps_the_result(tmp_path):
    out, picture = tmp_path / "threads.saen", tmp_path / "levels.png"
    report = run("compress", "threads", "--out", str(out), "--plot", str(picture))
    kept = saen.load(out)
    assert report["levels"] == kept.levels()
    assert report["distinct_graphs"] == len(kept.hierarchy)
    assert report["bytes"]["ratio"] == report["bytes"]["compressed"] / report["bytes"]["original"]
    assert 0 < report["ceiling"] <= 1
    assert set(report["seconds"]) == {"load", "fit", "compress", "save"}
    assert picture.exists()


def test_tables_for_people_name_levels_and_the_ceiling():
    shown = invoke("compress", "threads", "--radii", "0,1").stdout
    assert "ego graphs" in shown
    assert "ceiling" in shown


def test_the_paper_s_parameters_need_no_data(tmp_path):
    made = run("reproduce", "parameters", "--out", str(tmp_path))["parameters"]
    assert made["MUTAG"]["layers"] == [[10], [5, 5], [5, 5, 1]]
    assert (tmp_path / "parameters.md").exists()


@pytest.mark.parametrize("figure", ["decomposition", "compression"])
def test_drawing_writes_the_picture_it_names(tmp_path, figure):
    out = tmp_path / "figure.svg"
    assert run("draw", "threads", "-g", "3", "--figure", figure, "--out", str(out))["graph"] == 3
    assert "ego graphs" in out.read_text(encoding="utf-8")


def test_evaluating_gives_accuracy_ceilings_and_twins():
    report = run(
        *("evaluate", "threads", "--repeats", "2", "--folds", "3"),
        *("--preset", "network", "--epochs", "2", "--radii", "0"),
    )
    assert report["protocol"] == {"repeats": 2, "folds": 3, "selection": "fixed"}
    assert report["settings"]["epochs"] == 2
    assert len(report["accuracy"]["per_repeat"]) == 2
    assert report["majority"] == 0.5
    assert report["ceiling_folds"] >= report["ceiling"]
    assert 0 <= report["duplicates"]["share"] <= 1


def test_an_unknown_dataset_suggests_a_near_name(monkeypatch):
    monkeypatch.setattr("saen.io.sources.catalog.BASE_URL", "http://127.0.0.1:9")
    assert "Did you mean MUTAG" in fails("compress", "MUTGA")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("compress", "threads", "--radii", "x"), "radii are integers such as 0,1, not 'x'"),
        (("compress", "threads", "--node-labels", "degre"), "did you mean degree?"),
        (("compress", "threads", "--decomposition", "ergo"), "did you mean ego?"),
        (("compress", "threads", "--node-labels", "node"), "have no node labels"),
        (
            ("evaluate", "threads", "--preset", "network", "--epochs", "9" * 400),
            "SAENClassifier: epochs must be int in [0, 1000000]",
        ),
        (
            ("train", "threads", "--preset", "network", "--models", "9" * 400, "--out", "m.saen"),
            "SAENClassifier: n_models must be int in [1, 10000]",
        ),
        (
            ("train", "threads", "--epochs", "2", "--out", "m.saen"),
            "choose preset network or paper",
        ),
        (("draw", "threads", "--graph", "300"), "there is no graph 300: the graphs are 0 … 299"),
        (("draw", "threads", "--out", "figure.bmp"), "figure.bmp"),
        (("compress", "threads", "--out", "no/such/folder/x.saen"), "cannot be written"),
        (("draw", "threads", "--out", "/dev/null/x/figure.svg"), "cannot be written"),
        (("reproduce", "parameters", "--out", "/dev/null/x"), "cannot be used as a folder"),
        (("reproduce", "statistics", "--datasets", "nonsense"), "not in the catalog"),
        (("evaluate", "threads", "--folds", "200"), "use fewer folds"),
    ],
)
def test_a_mistake_is_one_message_with_exit_code_2(arguments, message):
    assert message in fails(*arguments)


@pytest.mark.skipif(os.name == "nt", reason="signals work otherwise on Windows")
@pytest.mark.slow
def test_ctrl_c_leaves_nothing_half_written(tmp_path):
    out = tmp_path / "big.saen"
    code = (
        # A shell that starts jobs in the background has them ignore Ctrl-C.
        "import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "import sys, saen.io.sources.threads as d, saen.jobs.compress as c\n"
        "def stream(*_):\n    print('ready', flush=True)\n"
        "    while True:\n        yield d.generate_threads(4000, average_nodes=200)\n"
        "c.stream_data = stream\n"
        "from saen.cli import main\n"
        f"sys.argv = ['saen', 'compress', 'threads', '--out', {str(out)!r}]\n"
        "main()\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in errors
    assert list(tmp_path.iterdir()) == []
