"""What a command imports: nothing that takes long before it is needed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from saen import SAENClassifier, generate_threads, save
from saen.cli.app import Commands
from saen.cli.lazy import load_command

NETWORKS = {"torch", "sklearn"}
TABLES = {"pandas", "pyarrow"}
ARRAYS = {"numpy", "scipy"}
SELDOM = {
    *("pandas", "pyarrow", "matplotlib", "jinja2", "requests"),
    *(f"sklearn.{name}" for name in ("ensemble", "linear_model", "svm", "tree")),
    *("torch._dynamo", "torch._inductor", "sympy"),
}
"""What estimators need for some tasks only, and takes as long to import as torch."""
SCORES = {"scipy.stats", "scipy.optimize", "sklearn.metrics", "sklearn.model_selection"}
"""What only those need that split or score data."""


def imported(code: str, *arguments: str, **environment: str) -> set[str]:
    """The modules that a new process has imported when it ends."""
    report = "import atexit, sys\natexit.register(lambda: print('\\n' + ' '.join(sys.modules)))\n"
    done = subprocess.run(
        [sys.executable, "-c", report + code, *arguments],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Traceback" not in done.stderr
    return set(done.stdout.splitlines()[-1].split())


def command_imports(*arguments: str, **environment: str) -> set[str]:
    return imported("from saen.cli import main\nmain()", *arguments, **environment)


COMMANDS = """
import json
from saen.cli import main
for sys.argv[1:] in json.loads(sys.argv[1]):
    try:
        main()
        print("0 of", sys.argv)
    except SystemExit as stop:
        print(stop.code, "of", sys.argv)
"""


def commands_import(*commands: str) -> set[str]:
    """What several command lines import together, one after another in one process."""
    return imported(COMMANDS, json.dumps([line.split() for line in commands]))


def test_help_and_usage_errors_import_no_arrays_tables_or_networks() -> None:
    modules = commands_import("--help", "--version", "", "trian", "train --wrong", "train --help")
    assert "saen.cli.app" in modules
    assert not modules & (NETWORKS | TABLES | ARRAYS)


def test_no_command_needs_arrays_tables_or_networks_to_show_its_help() -> None:
    modules = imported(
        "from saen.cli.app import Commands\nfrom saen.cli.lazy import load_command\n"
        "[load_command(name) for panel in Commands.panels.values() for name in panel]"
    )
    assert {
        f"saen.cli.{name}"
        for name in [name for panel in Commands.panels.values() for name in panel]
    } <= modules
    assert not modules & (NETWORKS | TABLES | ARRAYS | {"matplotlib"})


def test_the_list_of_datasets_imports_no_tables_or_networks(tmp_path: Path) -> None:
    modules = command_imports("datasets", SAEN_DATA=str(tmp_path))
    assert "saen.io.sources.catalog" in modules
    assert not modules & (NETWORKS | TABLES | {"scipy", "requests"})


def test_validate_imports_no_scipy_for_small_files_and_pandas_only_for_tables(
    tmp_path: Path,
) -> None:
    lines, table = tmp_path / "small.jsonl", tmp_path / "small.csv"
    lines.write_text('{"nodes": 3, "edges": [[0, 1], [1, 2]], "target": 1}\n')
    table.write_text("graph,source,target\n0,0,1\n")
    assert not command_imports("validate", str(lines)) & (NETWORKS | TABLES | {"scipy"})
    modules = command_imports("validate", str(table))
    assert "pandas" in modules
    assert not modules & NETWORKS


def test_predicting_on_a_cpu_imports_no_torch(tmp_path: Path) -> None:
    threads, model = generate_threads(20, seed=1), tmp_path / "model.saen"
    SAENClassifier(epochs=1, inner_folds=0).fit(threads, threads.targets).save(model)
    save(threads, data := tmp_path / "threads.saen")
    modules = command_imports("predict", str(model), str(data), "--device", "cpu")
    assert "saen.network.forward" in modules
    assert not modules & (SELDOM | SCORES | {"torch"})


@pytest.fixture
def few(tmp_path: Path) -> str:
    """A file of a few graphs."""
    save(generate_threads(30, average_nodes=12, seed=1), tmp_path / "few.saen")
    return str(tmp_path / "few.saen")


def test_evaluating_part_counts_imports_no_torch(few: str) -> None:
    counts = ("--preset", "counts", "--repeats", "1", "--folds", "2")
    assert "torch" not in command_imports("evaluate", few, *counts)


def test_training_without_networks_imports_no_torch(tmp_path: Path) -> None:
    lines, model = tmp_path / "labelled.jsonl", tmp_path / "model.saen"
    graph = {"nodes": ["C", "N", "O"], "edges": [[0, 1], [1, 2]], "target": 0}
    records = [graph, graph | {"nodes": ["C", "C", "O"], "target": 1}] * 10
    lines.write_text("".join(f"{json.dumps(each)}\n" for each in records))
    modules = command_imports("train", str(lines), "--out", str(model))
    assert model.exists()
    assert "torch" not in modules


def test_evaluating_networks_imports_nothing_that_only_other_tasks_need(few: str) -> None:
    paper = ("--preset", "paper", "--repeats", "1", "--folds", "2", "--epochs", "1")
    modules = command_imports("evaluate", few, *paper, "--device", "cpu")
    assert {"saen.network.training", "sklearn.base"} <= modules
    assert not modules & SELDOM


def test_import_saen_imports_no_arrays() -> None:
    assert not imported("import saen; dir(saen)") & (NETWORKS | TABLES | ARRAYS)


def test_completion_of_commands_imports_none_of_them() -> None:
    modules = imported(
        "from saen.cli import app; app(prog_name='saen')",
        _SAEN_COMPLETE="complete_bash",
        COMP_WORDS="saen tr",
        COMP_CWORD="1",
    )
    assert not modules & {"saen.cli.train", "numpy"}


SUMMARIES = {name: line for panel in Commands.panels.values() for name, line in panel.items()}


@pytest.mark.parametrize("name", SUMMARIES)
def test_a_command_is_listed_by_the_first_sentence_of_its_help(name: str) -> None:
    first, *_ = load_command(name).help.split("\n\n")
    assert " ".join(first.split()) == SUMMARIES[name]


def test_every_module_with_a_command_is_listed() -> None:
    folder = Path(sys.modules["saen.cli"].__file__ or "").parent
    modules = {
        file.stem
        for file in folder.glob("*.py")
        if "\ndef command(" in (text := file.read_text("utf-8")) or "\n@app.command(" in text
    }
    assert modules == set(SUMMARIES)
