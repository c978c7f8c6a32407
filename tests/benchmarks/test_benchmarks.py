from __future__ import annotations

import copy
import json
import shutil

import numpy as np
import pytest

from benchmarks import evaluations, floor, gpu_peers, groups, models, peers, pipeline, report, scale
from benchmarks.__main__ import PARTS, main
from benchmarks.measure import MeasurementError, Stopwatch, measure, typical
from saen import generate_threads
from saen.io.formats.tu import write_tu

# Every measurement is a process of its own.
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def quick_run(tmp_path_factory):
    """A run of the whole command on tiny data: the folder of its report."""
    folder = tmp_path_factory.mktemp("benchmarks")
    write_tu(generate_threads(12, seed=5), folder / "data" / "TINY")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SAEN_DATA", str(folder / "data"))
        patch.setattr(pipeline, "installed", lambda library: None)
        datasets = ["--datasets", "TINY", "ABSENT"]
        main(["--quick", "--out", str(folder), *datasets])
    return folder


@pytest.fixture(scope="module")
def document(quick_run):
    return json.loads((quick_run / "benchmarks.json").read_text(encoding="utf-8"))


def test_report_describes_the_machine(document):
    assert set(document) == {"machine", "quick", "parts"}
    described = {"cpu", "cores", "memory_bytes", "system", "python", "libraries"}
    assert set(document["machine"]) == described
    assert {"saen", "numpy", "scipy", "pandas"} <= set(document["machine"]["libraries"])
    assert list(document["parts"]) == list(PARTS)
    for part in document["parts"].values():
        assert {"date", "wall_seconds", "load_average", "checks", "skipped"} <= set(part)


def test_huge_graphs_are_compressed_from_fewer_entries_than_they_have(document):
    hub, larger, calls = document["parts"]["huge"]["rows"]
    assert larger["entries"] > 2 * hub["entries"] > 2 * hub["made"] > 0
    assert calls["made"] is None


def test_streams_are_read_and_predicted(document):
    part = document["parts"]["streams"]
    assert [row["graphs"] for row in part["reading"]] == [500]
    assert [row["graphs"] for row in part["predicting"]] == [100, 500]
    assert part["reading"][0]["seconds"]["read_graphs"] > 0
    assert [row["graphs"] for row in part["large"]] == [250] * 5


def test_large_data_are_predicted_explored_and_leave_outputs(document):
    part = document["parts"]["large"]
    predicted = [(row["format"], row["graphs"]) for row in part["predicting"]]
    assert predicted == [("jsonl", 100), ("jsonl", 500), ("csv", 100), ("csv", 500)]
    assert [row["graphs"] for row in part["exploring"]] == [250]
    few, more = part["growing"]
    assert few["graphs"] < more["graphs"]
    assert 0 < more["run"] < few["run"] * more["data"] / few["data"]


def test_startup_measures_processes_that_end_as_they_should(document):
    rows = {row["command"]: row for row in document["parts"]["startup"]["rows"]}
    assert rows["saen --help"]["cpu"] < rows["saen predict model.saen graph.jsonl"]["cpu"]


def test_pipeline_is_timed_step_by_step_cold_warm_and_from_text(document):
    (row,) = document["parts"]["pipeline"]["rows"]
    assert (row["dataset"], row["graphs"], row["radii"]) == ("TINY", 12, [0, 1])
    for way in pipeline.WAYS:
        assert list(row[way]["seconds"]) == ["load", "vocabulary", "compress", "total"]
        assert row[way]["entries"] == row["entries"] > row["nodes"]
        assert row[way]["peak_memory_bytes"] > 10**7


def test_pipeline_without_pytorch_geometric_says_how_to_install_it(document, quick_run):
    (row,) = document["parts"]["pipeline"]["rows"]
    assert "saen[bench]" in row["pytorch_geometric"]["missing"]
    assert "times_faster" not in row
    assert row["pytorch_geometric"]["missing"] in (quick_run / "benchmarks.md").read_text()


def test_report_lists_datasets_that_are_not_available_with_the_reason(document, quick_run):
    (skipped,) = document["parts"]["pipeline"]["skipped"]
    assert skipped["what"] == "ABSENT"
    assert "SAEN_DATA" in skipped["reason"]
    assert f"- ABSENT: {skipped['reason']}" in (quick_run / "benchmarks.md").read_text()


def test_scale_of_streaming_has_the_same_result_and_time_is_fitted_against_entries(
    document, quick_run
):
    part = document["parts"]["scale"]
    (row,) = part["rows"]
    assert row["same_result"]
    assert row["direct"]["entries"] == row["streaming"]["entries"] == row["entries"]
    half, whole = part["scaling"]["points"]
    assert half["graphs"] == whole["graphs"] // 2
    assert half["entries"] < whole["entries"] == row["entries"]
    rise = np.log(whole["seconds"] / half["seconds"]) / np.log(whole["entries"] / half["entries"])
    assert part["scaling"]["slope"] == pytest.approx(rise)
    assert (quick_run / part["scaling"]["figure"]).read_bytes().startswith(b"\x89PNG")


def test_report_markdown_is_generated_from_the_json_alone(document, quick_run):
    text = (quick_run / "benchmarks.md").read_text(encoding="utf-8")
    assert report.markdown(document, PARTS) == text
    edited = copy.deepcopy(document)
    edited["parts"]["pipeline"]["rows"][0]["dataset"] = "ANOTHER NAME"
    changed = report.markdown(edited, PARTS)
    assert changed == text.replace("| TINY |", "| ANOTHER NAME |")
    assert changed != text


def test_report_of_one_part_keeps_the_others(quick_run, document, tmp_path, capsys):
    shutil.copy(quick_run / "benchmarks.json", tmp_path)
    main(["pipeline", "--quick", "--out", str(tmp_path), "--datasets", "ABSENT"])
    after = json.loads((tmp_path / "benchmarks.json").read_text())["parts"]
    assert after["scale"] == document["parts"]["scale"]
    assert after["pipeline"]["rows"] == []
    assert "ABSENT" in capsys.readouterr().out


def test_commands_of_a_quick_run_are_on_generated_threads(document, quick_run):
    (row,) = document["parts"]["commands"]["rows"]
    assert (row["dataset"], row["graphs"]) == ("threads", 300)
    assert 0 < row["accuracy"] < 1
    assert row["evaluate"]["peak_memory_bytes"] > 10**8
    assert "saen evaluate threads" in (quick_run / "benchmarks.md").read_text()


def test_compression_does_not_change_the_losses(document):
    part = document["parts"]["compression"]
    (row,) = part["rows"]
    assert row["networks"] == 10
    assert row["compressed"]["entries"] < row["uncompressed"]["entries"]
    ratio = row["uncompressed"]["epoch"] / row["compressed"]["epoch"]
    assert row["times_faster"] == pytest.approx(ratio)
    assert row["loss_difference"] < 1e-3
    assert part["exact"]["loss_difference"] < 1e-12


def test_groups_are_timed_beside_one_network(document):
    rows = document["parts"]["groups"]["rows"]
    assert [row["preset"] for row in rows] == list(groups.PRESETS)
    for row in rows:
        assert 1 <= row["at_once"] <= row["networks"]
        assert row["times_faster"] == pytest.approx(row["alone"] / row["together"])


def test_evaluations_run_and_are_checked(document):
    part = document["parts"]["evaluations"]
    (row,) = part["rows"]
    assert row["seconds"] > 0
    assert 0 < row["accuracy"] < 1
    (check,) = evaluations._checks([{**row, "dataset": "MUTAG", "seconds": 21.0}])
    assert not check["met"]


def test_peers_are_compared_with_saen(document):
    rows = {row["way"]: row for row in document["parts"]["peers"]["rows"]}
    assert set(rows) <= set(peers.WAYS)
    assert {"saen", "obvious"} <= set(rows)
    ours, obvious = rows["saen"], rows["obvious"]
    assert 0 < ours["accuracy"] <= 1
    assert obvious["times_evaluation"] == obvious["evaluation"] / ours["evaluation"]
    assert obvious["times_model_epoch"] == obvious["model_epoch"] / ours["model_epoch"]


def test_peers_have_targets_for_one_dataset():
    ours = {"dataset": "REDDIT-BINARY", "way": "saen", "model_epoch": 0.01, "evaluation": 5.0}
    gin = {"dataset": "REDDIT-BINARY", "way": "gin", "model_epoch": 2.0, "evaluation": 100.0}
    rows = [ours, gin]
    peers._compare(rows)
    checks = peers._checks(rows)
    assert [check["met"] for check in checks] == [True, False]
    assert "extrapolated" in checks[1]["what"]


def test_floor_is_below_or_near_the_measured_time(document):
    part = document["parts"]["floor"]
    assert {row["batch"] for row in part["rows"]} == {"mini-batch", "all"}
    for row in part["rows"]:
        assert set(floor.KERNELS[:2]) <= set(row["kernels"]) <= set(floor.KERNELS)
        for entry in row["kernels"].values():
            assert entry["share"] == pytest.approx(entry["floor"] / entry["seconds"])
            assert 0 < entry["share"] < 5


def test_prediction_is_timed_one_by_one_and_all_at_once(document):
    (row,) = document["parts"]["prediction"]["rows"]
    assert row["single"] == 20
    assert 0 < row["latency"] <= row["latency_95"]
    assert row["per_second"] > 1 / row["latency"]


def test_what_a_gpu_measures_runs_on_small_data_anywhere(document):
    (row,) = document["parts"]["recording"]["rows"]
    assert row["candidate"] == "neighbourhood networks (hubs)"
    assert {"width", "recorded", "eager", "at_once"} == set(row["widths"][0])
    (first,) = document["parts"]["first_run"]["rows"]
    assert first["seconds"]["next"] > 0
    assert 0 < first["accuracy"] <= 1
    ways = [row["way"] for row in document["parts"]["gpu_peers"]["rows"]]
    assert ways in (list(gpu_peers.WAYS), ["saen"])


@pytest.mark.parametrize(
    ("measured", "at_least", "missed"),
    [(4.0, False, 0), (6.0, False, 1), (4.0, True, 1), (6.0, True, 0)],
)
def test_targets_that_were_missed_are_listed(measured, at_least, missed):
    row = report.check("loading", measured, 5, "s", at_least=at_least)
    sign = "≥" if at_least else "≤"
    line = f"missed: loading: {measured:.2f} s, not {sign} 5.00 s"
    assert report.missed({"parts": {"pipeline": {"checks": [row]}}}) == [line] * missed


def test_pipeline_targets_are_those_of_the_datasets_that_have_one():
    way = {"seconds": {"total": 4.0}, "peak_memory_bytes": 4 * 10**9}
    row = {"cold": way, "warm": way, "text": way, "times_faster": 16.0}
    checks = pipeline._checks({"dataset": "COLLAB", **row})
    assert [check["met"] for check in checks] == [True, False, True, False, True]
    checks = pipeline._checks({"dataset": "REDDIT-BINARY", **row})
    assert [check["met"] for check in checks] == [True, False, False, False, True]
    assert pipeline._checks({"dataset": "MUTAG", **row}) == []


def test_typical_run_has_the_median_seconds_and_the_largest_memory():
    runs = [
        {
            "seconds": {"load": load, "total": load + 1},
            "cpu_seconds": 2 * load,
            "peak_memory_bytes": peak,
            "graphs": 2,
        }
        for load, peak in ((3.0, 5), (1.0, 7), (2.0, 6))
    ]
    assert typical(runs) == {
        "seconds": {"load": 2.0, "total": 3.0},
        "cpu_seconds": 4.0,
        "peak_memory_bytes": 7,
        "graphs": 2,
        "runs": 3,
    }


def test_stopwatch_keeps_the_order_of_the_steps_and_returns_results():
    watch = Stopwatch()
    assert watch("later", max, 1, 2) == 2
    assert watch("sooner", min, 1, 2) == 1
    assert list(watch.seconds) == ["later", "sooner"]


def test_measurement_that_fails_gives_the_reason(tmp_path):
    with pytest.raises(MeasurementError, match=r"missing\.saen"):
        measure(scale.direct, path=str(tmp_path / "missing.saen"), every=1)


def test_options_out_of_range_are_refused(capsys):
    for arguments in (["speed"], ["--repeats", "0"]):
        with pytest.raises(SystemExit):
            main(arguments)
    errors = capsys.readouterr().err
    assert "unknown part 'speed'" in errors
    assert "--repeats must be an integer ≥ 1" in errors


def test_models_count_degrees_of_neighbours():
    graphs = generate_threads(6, average_nodes=10, seed=5)
    features = models.degree_profiles(graphs)
    assert features.shape == (6, 5 * models.BINS)
    np.testing.assert_array_equal(features.sum(axis=1), 5 * graphs.sizes)


def test_models_are_reported_with_score_and_time():
    row = {"score": 0.5, "seconds": {"total": 2.0}, "cpu_seconds": 1.5}
    found = {"MUTAG": {"one": row, "two": {"failed": "no memory"}}, models.MOLECULES: {"one": row}}
    page = models.markdown({"rows": found, "machine": {"cores": 2}})
    assert "50.0 %" in page
    assert "0.500" in page
    assert "no memory" in page
