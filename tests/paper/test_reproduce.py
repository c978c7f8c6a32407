"""The paper's tables: what is shown is what was found, and was found as the table says."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from typer.testing import CliRunner

from saen import Graphs, generate_threads
from saen._util.json_files import write_json
from saen.cli import app
from saen.errors import FileError, InputError
from saen.io.formats.tu import write_tu
from saen.jobs.evaluate import Protocol
from saen.jobs.job import Job
from saen.learning.presets import load_preset
from saen.paper import kernel, reproduce, tables, timing
from saen.paper.charts import plot_accuracy
from saen.paper.reproduce import AS_WRITTEN, RUNS, Missing, Run, Table, runs_of
from tests.properties.strategies import DrawnGraphs, graph_collections
from tests.references.hierarchies import refined
from tests.refusals import refuses

MEANS = {"written": 0.81, "paper": 0.84, "network": 0.86, "best": 0.87, "overlap": 0.8}


def protocol(repeats: int, folds: int, selection: str) -> dict[str, Any]:
    return {"protocol": {"repeats": repeats, "folds": folds, "selection": selection}}


def summary(name: str, kind: str) -> dict[str, Any]:
    """What `saen evaluate` would keep of a run of this kind."""
    run = runs_of(name)[kind]
    preset = load_preset(run.preset)
    return {
        "dataset": name,
        "preset": run.preset,
        "settings": preset.settings(name) | dict(run.overrides),
        "grid": preset.grid if run.selection == "nested" else {},
        **protocol(run.repeats, 10, run.selection),
        "seed": 0,
        "accuracy": {"mean": MEANS[kind], "interval": [MEANS[kind] - 0.015, MEANS[kind] + 0.015]},
        "duplicates": {"share": 0.1, "accuracy": 0.9, "accuracy_rest": 0.83},
        **({} if run.groups is None else {"groups": {"by": run.groups, "count": 9}}),
        "device": "abacus",
        "seconds": {"compress": 2.0, "train": 1.0},
        **({"log_loss": {"mean": 0.4}} if kind == "best" else {}),
        "tried": [
            {"candidate": "networks", "score": 0.8, "weight": 0.25},
            {"candidate": "part counts", "score": 0.9, "weight": 0.75},
            {"candidate": "coins", "score": 0.5, "weight": 0.0},
        ],
    }


def write_runs(folder: Path, name: str = "MUTAG") -> None:
    for kind in RUNS:
        (folder / kind / name).mkdir(parents=True)
        write_json(folder / kind / name / "summary.json", summary(name, kind))


def never(missing: Missing) -> None:
    raise AssertionError(f"{missing} were made again")


# -- tables ------------------------------------------------------------------------------------


def test_a_table_is_written_as_markdown_and_json(tmp_path: Path) -> None:
    made = Table("toys", "Toys", ("toy", "price"), [("ball", "3")], {"ball": 3}, ["In pence."])
    made.write(tmp_path / "new" / "folder")
    files = {file.name: file.read_text() for file in (tmp_path / "new" / "folder").iterdir()}
    assert set(files) == {"toys.md", "toys.json"}
    assert files["toys.md"] == "# Toys\n\n| toy | price |\n|---|---:|\n| ball | 3 |\n\nIn pence.\n"
    assert json.loads(files["toys.json"]) == {"ball": 3}


# -- accuracy ----------------------------------------------------------------------------------


def test_runs_that_are_not_there_are_made_in_their_own_way(tmp_path: Path) -> None:
    write_runs(tmp_path)
    asked = {}

    def make(missing: Missing) -> None:
        for name, run, folder in missing:
            kind = folder.parent.name
            asked[kind] = (name, run)
            write_json(folder / "summary.json", summary(name, kind))

    for kind in ("written", "paper", "best"):
        (tmp_path / kind / "MUTAG" / "summary.json").unlink()
    reproduce.accuracy(["MUTAG", "PTC_MR"], tmp_path, make)
    assert RUNS["best"].repeats == 3
    long = runs_of("REDDIT-MULTI-5K")
    assert long["best"] == replace(RUNS["best"], repeats=1)
    assert long["network"] == RUNS["network"]
    assert "overlap" not in long
    assert asked == {
        "written": ("MUTAG", Run("paper", 10, "fixed", AS_WRITTEN)),
        "paper": ("MUTAG", Run("paper", 10, "fixed")),
        "best": ("MUTAG", RUNS["best"]),
    }


def test_accuracies_stand_beside_the_paper_s_with_their_intervals(tmp_path: Path) -> None:
    write_runs(tmp_path)
    made = reproduce.accuracy(["MUTAG"], tmp_path, never)
    (row,) = (dict(zip(made.columns, cells, strict=True)) for cells in made.rows)
    assert row == {
        "dataset": "MUTAG",
        "DGK": "",
        "PATCHY-SAN": "92.63",
        "SAEN, paper": "84.99 ± 1.82",
        "as written": "81.0 (79.5 to 82.5)",
        "preset paper": "84.0 (82.5 to 85.5)",
        "Δ": "-1.0, level",
    }
    assert made.data["MUTAG"]["best"]["protocol"]["selection"] == "fixed"
    assert made.data["MUTAG"]["paper"]["device"] == "abacus"
    members = "part counts 0.75; networks 0.25"
    lines = made.markdown().splitlines()
    assert f"| MUTAG | {members} |" in lines
    ours = "86.0 (84.5 to 87.5) | 87.0 (85.5 to 88.5) | +2.0, above | 83.0 | 80.0 (78.5 to 81.5)"
    assert f"| MUTAG | {ours} |" in lines


def test_cells_of_runs_that_were_not_made_are_empty(tmp_path: Path) -> None:
    write_runs(tmp_path)
    write_runs(tmp_path, "PTC")
    for kind in ("best", "written"):
        (tmp_path / kind / "MUTAG" / "summary.json").unlink()
    made = reproduce.accuracy(["MUTAG", "PTC"], tmp_path, lambda missing: None)
    assert made.rows[0][4:] == ("", "84.0 (82.5 to 85.5)", "-1.0, level")
    lines = made.markdown().splitlines()
    assert "| MUTAG | 86.0 (84.5 to 87.5) |  |  |  | 80.0 (78.5 to 81.5) |" in lines
    members = lines[lines.index("| dataset | members of `best` |") :]
    assert [line.split(" | ")[0] for line in members[2:3]] == ["| PTC"]
    pytest.importorskip("matplotlib", reason="needs the extra 'plots'")
    heights = [bar.get_height() for bar in plot_accuracy(made.data).axes[0].patches]
    assert len(heights) == 12 - 2


@pytest.mark.parametrize(
    ("kind", "change", "message"),
    [
        ("paper", {"preset": "network"}, 'preset is "network", not "paper"'),
        ("network", protocol(2, 10, "fixed"), "repeats is 2, not 3"),
        ("network", protocol(3, 5, "fixed"), "folds is 5, not 10"),
        ("best", protocol(3, 10, "peek"), 'selection is "peek", not "fixed"'),
        ("best", {"grid": {"epochs": [1, 2]}}, 'grid is {"epochs": [1, 2]}, not {}'),
        ("network", {"settings": {"epochs": 2}}, "epochs is 2, not left out"),
        ("paper", {"settings": {}}, "epochs is left out, not 300"),
        ("paper", {"seed": 100}, "seed is 100, not 0"),
        ("paper", {"dataset": "PTC"}, 'dataset is "PTC", not "MUTAG"'),
        ("overlap", {"groups": {"by": "scaffold"}}, 'groups is "scaffold", not "overlap"'),
    ],
)
def test_a_run_made_otherwise_than_the_table_says_is_refused(
    tmp_path: Path, kind: str, change: dict[str, Any], message: str
) -> None:
    write_runs(tmp_path)
    file = tmp_path / kind / "MUTAG" / "summary.json"
    write_json(file, summary("MUTAG", kind) | change)
    with pytest.raises(InputError) as error:
        reproduce.accuracy(["MUTAG"], tmp_path, never)
    assert str(error.value).startswith(f"{file} is of another run than the table's: ")
    assert message in str(error.value)


@pytest.mark.parametrize("document", [[], {}, {"dataset": "MUTAG"}, summary("MUTAG", "paper")])
def test_a_summary_that_is_none_is_named(tmp_path: Path, document: Any) -> None:
    write_runs(tmp_path)
    file = tmp_path / "paper" / "MUTAG" / "summary.json"
    if document:
        document = {key: value for key, value in document.items() if key != "accuracy"}
    write_json(file, document)
    with refuses(f"{file}: does not hold the summary of a run", FileError):
        reproduce.accuracy(["MUTAG"], tmp_path, never)


def test_the_command_writes_the_accuracies_their_bars_and_the_gain(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="needs the extra 'plots'")
    for name in ("MUTAG", "COLLAB"):
        write_runs(tmp_path / "runs", name)
    arguments = ["reproduce", "accuracy", "--datasets", "mutag,COLLAB", "--out", str(tmp_path)]
    found = CliRunner().invoke(app, [*arguments, "--json"], catch_exceptions=False)
    assert found.exit_code == 0
    assert set(json.loads(found.stdout)["accuracy"]) == {"MUTAG", "COLLAB"}
    written = {file.name for file in tmp_path.iterdir() if file.is_file()}
    assert written == {"accuracy.md", "accuracy.json", "accuracy.png", "gain.png"}


def test_the_command_makes_missing_runs_as_the_table_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    threads = generate_threads(20, seed=0)
    monkeypatch.setattr(Job, "load", lambda _: threads)

    def evaluate_dataset(job: Job, protocol: Protocol, out: Path, **given: Any) -> None:
        asked.append((job, protocol))
        assert given["known"].data is threads  # loaded once
        assert given["known"]._made  # while the last run trained
        given["progress"](1, 2)
        out.mkdir(parents=True)
        write_json(out / "summary.json", summary(job.data, out.parent.name))

    monkeypatch.setattr(reproduce, "evaluate_dataset", evaluate_dataset)
    arguments = ["reproduce", "accuracy", "--datasets", "IMDB-BINARY", "--device", "cpu"]
    CliRunner().invoke(app, [*arguments, "--out", str(tmp_path)], catch_exceptions=False)
    assert asked == [
        (Job("IMDB-BINARY", "paper", AS_WRITTEN, device="cpu"), Protocol("fixed", 10, 10)),
        (Job("IMDB-BINARY", "paper", device="cpu"), Protocol("fixed", 10, 10)),
        (Job("IMDB-BINARY", "network", device="cpu"), Protocol("fixed", 3, 10)),
        (Job("IMDB-BINARY", "best", device="cpu"), Protocol("fixed", 3, 10)),
        (
            Job("IMDB-BINARY", "best", device="cpu"),
            Protocol("fixed", 1, 10, groups="overlap"),
        ),
    ]


def test_runs_that_are_kept_here_are_those_that_the_table_says() -> None:
    runs = Path(__file__).parents[2] / "docs" / "results" / "runs"
    kept = sorted(folder for kind in RUNS for folder in (runs / kind).glob("*"))
    assert {(each.name, each.parent.name) for each in kept} <= {
        (name, kind) for name in tables()["accuracy"] for kind in runs_of(name)
    }
    for folder in kept:
        kind, name = folder.parts[-2:]
        found = reproduce._result(folder / "summary.json", name, runs_of(name)[kind])
        assert 0 < found["accuracy"]["mean"] < 1


# -- sizes and runtimes ------------------------------------------------------------------------


def seconds(number: float, entries: int = 1000) -> dict[str, Any]:
    return {"seconds": number, "epochs": 10, "entries": entries}


OUT_OF = {"time": {"failed": "TO"}, "memory": {"failed": "OOM"}}


@pytest.mark.parametrize(
    ("before", "after", "shown"),
    [
        (seconds(8), seconds(2, 100), "4.0 × (800.00, 2000.00)"),
        (seconds(201), seconds(2), "TO"),
        (OUT_OF["time"], seconds(2), "TO"),
        (OUT_OF["memory"], seconds(2), "OOM"),
        (None, OUT_OF["memory"], "OOM"),
        ({"failed": "exit code 1"}, seconds(2), "exit code 1"),
    ],
)
def test_what_runs_out_of_time_or_memory_is_said_in_its_cell(
    monkeypatch: pytest.MonkeyPatch, before: Any, after: dict[str, Any], shown: str
) -> None:
    limits = []

    def measure(name: str, preset: str, *, compressed: bool, **options: Any) -> dict[str, Any]:
        limits.append((options["time_limit"], options["memory_limit"]))
        return after if compressed else before

    monkeypatch.setattr(reproduce, "measure", measure)
    assert reproduce._timing("IMDB-BINARY", "paper")["shown"] == shown
    assert limits[0] == (None, reproduce.MEMORY_LIMIT)
    if before is not None:
        assert limits[1] == (100 * 2 + 300, reproduce.MEMORY_LIMIT)


def test_the_median_of_several_pairs_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = iter([8, 40, 12, 10, 2])

    def measure(name: str, preset: str, *, compressed: bool, **options: Any) -> dict[str, Any]:
        return seconds(2 if compressed else next(slow))

    monkeypatch.setattr(reproduce, "measure", measure)
    found = reproduce._timing("IMDB-BINARY", "paper")
    assert found["speedups"] == [1, 4, 5, 6, 20]
    assert found["speedup"] == 5
    assert found["original"] == seconds(10)
    monkeypatch.setattr(reproduce, "PATIENCE", 0.0)
    slow = iter([8])
    assert reproduce._timing("IMDB-BINARY", "paper")["speedups"] == [4]


@pytest.fixture
def small_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Generated graphs by the names of two datasets of the paper; the folder to write to."""
    for name in ("IMDB-BINARY", "REDDIT-MULTI-5K"):
        write_tu(generate_threads(20, average_nodes=15), tmp_path / "data" / name)
    monkeypatch.setenv("SAEN_DATA", str(tmp_path / "data"))
    return tmp_path / "out"


def test_the_command_shows_failures_in_table_and_picture(
    small_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mpl = pytest.importorskip("matplotlib", reason="needs the extra 'plots'")

    def measure(name: str, preset: str, *, compressed: bool, **options: Any) -> dict[str, Any]:
        if name == "IMDB-BINARY" or compressed:
            return seconds(2 if compressed else 12)
        return OUT_OF["time" if preset == "paper" else "memory"]

    figures = []
    monkeypatch.setattr(reproduce, "measure", measure)
    monkeypatch.setattr(reproduce, "save_figure", lambda *drawn: figures.append(drawn))
    arguments = ["reproduce", "compression", "--out", str(small_data)]
    result = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    lines = (small_data / "sizes_and_runtimes.md").read_text().splitlines()
    rows = {line.split(" | ")[0]: line.strip(" |").split(" | ") for line in lines}
    assert lines[-3].startswith("Size: of an uncompressed .saen file")
    assert rows["| IMDB-BINARY"][-3:] == [
        "6.3",
        "6.0 × (1200.00, 200.00)",
        "6.0 × (1200.00, 200.00)",
    ]
    assert rows["| REDDIT-MULTI-5K"][-3:] == ["OOM", "TO", "OOM"]
    ((figure, path),) = figures
    assert path == small_data / "sizes_and_runtimes.png"
    sizes, speeds = figure.axes
    words = Counter(text.get_text() for text in speeds.findobj(mpl.text.Annotation))
    assert words == {"6.3": 1, "6.0": 2, "OOM": 2, "≥ 100.0": 1}
    drawn = [bar.get_height() for bar in speeds.patches]
    assert np.isnan(drawn).sum() == 2
    assert sorted(height for height in drawn if height > 0) == [6.0, 6.0, 6.3, 100.0]
    written = json.loads((small_data / "sizes_and_runtimes.json").read_text())
    found = [row["bytes"] for row in written.values()]
    ratios = [0.50, 0.17, *(size["compressed"] / size["original"] for size in found)]
    assert [bar.get_height() for bar in sizes.patches] == pytest.approx(ratios)


def test_the_paper_s_own_timeout_is_a_lower_bound_in_table_and_picture() -> None:
    mpl = pytest.importorskip("matplotlib", reason="needs the extra 'plots'")
    from saen.paper.charts import plot_compression

    timing = {"shown": "OOM", "compressed": OUT_OF["memory"]}
    row = {
        "published": tables()["sizes_and_runtimes"]["REDDIT-BINARY"],
        "bytes": {"original": 100, "compressed": 10},
        "timings": {"paper": timing, "network": timing},
    }
    cells = reproduce._compression_row("REDDIT-BINARY", row)
    assert cells == ("REDDIT-BINARY", "0.17", "100 B → 10 B", "0.100", "≥ 100.0", "OOM", "OOM")
    figure = plot_compression({"REDDIT-BINARY": row})
    words = {text.get_text() for text in figure.findobj(mpl.text.Annotation)}
    assert words == {"0.17", "0.10", "≥ 100.0", "OOM"}


# -- a training in a process of its own --------------------------------------------------------

THREADS: dict[str, Any] = {"dataset": "threads", "preset": "network", "compressed": False}


@pytest.mark.slow
def test_a_training_without_memory_is_out_of_memory() -> None:
    found = timing.measure(**THREADS, epochs=2, time_limit=None, memory_limit=10**6)
    assert found == {"failed": "OOM"}


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs Linux's list of processes")
def test_a_training_without_time_is_timed_out_and_its_process_gone() -> None:
    epochs = 987_654_321  # by which the process can be recognised
    found = timing.measure(**THREADS, epochs=epochs, time_limit=0.3, memory_limit=10**10)
    assert found == {"failed": "TO"}
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            assert str(epochs) not in file.read_bytes().decode(errors="replace")
        except OSError:
            continue  # ended in the meantime


@pytest.mark.slow
def test_with_enough_memory_the_same_training_ends_with_and_without_compression() -> None:
    limits: dict[str, Any] = {"epochs": 2, "time_limit": 200, "memory_limit": 10**10}
    before = timing.measure(**THREADS, **limits)
    after = timing.measure(**THREADS | {"compressed": True}, **limits)
    assert before["epochs"] == after["epochs"] == 2
    assert before["entries"] > after["entries"]
    assert min(before["seconds"], after["seconds"]) > 0


@pytest.mark.slow
def test_another_failure_is_not_taken_for_a_limit(capsys: pytest.CaptureFixture[str]) -> None:
    given = THREADS | {"preset": "nonsense"}
    found = timing.measure(**given, epochs=2, time_limit=200, memory_limit=10**10)
    assert found == {"failed": "exit code 1"}
    assert "unknown preset 'nonsense'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("code", "errors", "expected"),
    [
        (timing.OUT_OF_MEMORY, "", True),
        (-9, "", True),
        (-6, "terminate called\n  what():  std::bad_alloc\n", True),
        (-6, "Fatal glibc error: failed to register TLS destructor: out of memory", True),
        (-6, "memory is fine\nassertion failed", False),
        (-11, "", False),
        (1, "ValueError: memory of an elephant", False),
        (0, "", False),
    ],
)
def test_deaths_for_want_of_memory_are_told_from_others(
    code: int, errors: str, expected: bool
) -> None:
    assert timing._ran_out_of_memory(code, errors) is expected


# -- the kernel --------------------------------------------------------------------------------


@given(graph_collections(), st.integers(1, 3))
def test_the_kernel_is_the_cosine_of_counts_of_colours(drawn: DrawnGraphs, depth: int) -> None:
    graphs = drawn.graphs
    assume(graphs.n_nodes)
    labels = drawn.degrees() if graphs.node_labels is None else graphs.node_labels.tolist()
    rounds = list(enumerate(refined(labels, drawn.neighbours(), depth)))
    counts = [
        Counter((number, colour) for number, row in rounds for colour in row[first:last])
        for first, last in pairwise(graphs.node_offsets.tolist())
    ]
    products = np.array([[sum(a[c] * b[c] for c in a) for b in counts] for a in counts])
    lengths = np.sqrt(np.maximum(np.diag(products), 1))
    expected = products / lengths[:, None] / lengths
    np.testing.assert_allclose(kernel.gram_matrix(graphs, depth), expected, atol=1e-12)


def test_the_kernel_tells_all_degrees_apart() -> None:
    stars = Graphs.from_edge_lists([[(0, leaf) for leaf in range(1, n)] for n in (8, 9)])
    # Of 49 + 1 and 64 + 1, twice, the leaves alone have a colour in common, in the first round.
    assert kernel.gram_matrix(stars, 1)[0, 1] == pytest.approx(56 / np.sqrt(2 * 50 * 2 * 65))


def test_the_kernel_tells_generated_classes_apart_but_not_random_ones() -> None:
    threads = generate_threads(120, average_nodes=25, seed=3)
    found = kernel.evaluate_kernel(threads, repeats=2, folds=3, seed=5)
    assert found == kernel.evaluate_kernel(threads, repeats=2, folds=3, seed=5)
    assert found["accuracy"]["mean"] == pytest.approx(np.mean(found["accuracy"]["per_repeat"]))
    assert found["accuracy"]["mean"] > 0.7
    assert len(found["chosen"]) == 6
    assert {choice["depth"] for choice in found["chosen"]} <= set(kernel.DEPTHS)
    shuffled = np.random.default_rng(0).permutation(threads.targets)
    noise = kernel.evaluate_kernel(threads._with(targets=shuffled), repeats=2, folds=3)
    assert noise["accuracy"]["mean"] < 0.62


def test_graphs_without_classes_have_no_accuracy() -> None:
    graphs = Graphs.from_edge_lists([[(0, 1)], [(0, 1)]], name="toy")
    with pytest.raises(InputError, match="toy has no classes to predict"):
        kernel.evaluate_kernel(graphs)


def test_the_table_of_the_kernel_stands_beside_the_number_quoted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_tu(generate_threads(40, average_nodes=15), tmp_path / "NCI1")
    monkeypatch.setenv("SAEN_DATA", str(tmp_path))
    monkeypatch.setattr(kernel, "DEPTHS", (1, 2))
    said: list[str] = []
    made = reproduce.kernel(["NCI1", "MUTAG"], said.append)
    row = made.data["NCI1"]
    ours = 100 * row["accuracy"]["mean"]
    ((name, quoted, here, gain, _),) = made.rows
    assert (name, quoted, here) == (
        "NCI1",
        "80.13",
        reproduce.percent_interval(row["accuracy"]),
    )
    assert float(gain) == pytest.approx(ours - 80.13, abs=0.006)
    assert row["protocol"] == {"repeats": 3, "folds": 10, "selection": "nested"}
    assert said == ["NCI1: Weisfeiler-Lehman subtree kernel"]


# -- all of them -------------------------------------------------------------------------------


def test_a_table_without_the_datasets_asked_for_is_an_error_unless_there_are_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_tu(generate_threads(20, average_nodes=15), tmp_path / "data" / "MUTAG")
    monkeypatch.setenv("SAEN_DATA", str(tmp_path / "data"))
    write_runs(tmp_path / "runs")
    arguments = ["--datasets", "MUTAG", "--out", str(tmp_path), "--json"]
    with pytest.raises(InputError, match="the paper's table has none of MUTAG"):
        CliRunner().invoke(app, ["reproduce", "kernel", *arguments], catch_exceptions=False)
    found = CliRunner().invoke(app, ["reproduce", "all", *arguments], catch_exceptions=False)
    assert list(json.loads(found.stdout)) == ["statistics", "parameters", "accuracy"]


@pytest.mark.slow
def test_compression_is_reproduced_end_to_end_on_generated_data(
    small_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("matplotlib", reason="needs the extra 'plots'")
    monkeypatch.setattr(reproduce, "PATIENCE", 0.0)
    arguments = ["reproduce", "compression", "--datasets", "IMDB-BINARY", "--out", str(small_data)]
    found = CliRunner().invoke(app, [*arguments, "--json"], catch_exceptions=False)
    timings = json.loads(found.stdout)["compression"]["IMDB-BINARY"]["timings"]
    assert {preset: "speedup" in timing for preset, timing in timings.items()} == {
        "paper": True,
        "network": True,
    }
    assert (small_data / "sizes_and_runtimes.png").read_bytes().startswith(b"\x89PNG")
