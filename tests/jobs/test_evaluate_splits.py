"""Evaluations by splits of one's own, by groups, and of hold-outs."""

from __future__ import annotations

import json

import numpy as np
import pytest

import saen
from saen import InputError
from saen._util.json_files import write_json
from saen.errors import FileError
from saen.io.options import ReadOptions
from saen.jobs.evaluate import Protocol, evaluate_dataset
from saen.jobs.job import Job
from saen.report.summaries import describe_evaluation

THREADS = saen.generate_threads(24, average_nodes=8, seed=2)
QUICK = {"epochs": 1, "n_models": 1, "radii": (0, 1)}


def test_evaluate_says_how_many_examples_a_published_split_uses(tmp_path):
    write_json(tmp_path / "split.json", {"train": [*range(14)], "test": [20, 21]})
    report = evaluate_dataset(Job("threads", "counts"), Protocol(splits=tmp_path / "split.json"))
    assert describe_evaluation(report)["split"] == "14 train, 2 test of 300 examples"


def test_evaluate_with_a_published_split_resumes(tmp_path):
    saen.save(THREADS, tmp_path / "threads.saen")
    split = {"train": list(range(14)), "valid": [14, 15, 16, 17], "test": list(range(18, 24))}
    write_json(tmp_path / "split.json", split)
    job = Job(str(tmp_path / "threads.saen"), preset="network", overrides=QUICK)
    protocol = Protocol(splits=tmp_path / "split.json")
    first = evaluate_dataset(job, protocol, tmp_path / "run").to_json()
    again = evaluate_dataset(job, protocol, tmp_path / "run").to_json()
    assert first["accuracy"] == again["accuracy"]
    assert first["protocol"] == {"repeats": 1, "folds": 1, "selection": "fixed"}
    assert first["split"] == {"train": 14, "valid": 4, "test": 6, "of": 24}
    kept = json.loads((tmp_path / "run" / "splits.json").read_text())
    assert kept["repeats"] == [[split]]


def test_groups_come_from_a_key_of_json_lines(tmp_path):
    lines = [
        {"nodes": 3, "edges": [[0, 1]], "target": "ab"[number % 2], "batch": number // 2}
        for number in range(8)
    ]
    file = tmp_path / "graphs.jsonl"
    file.write_text("\n".join(map(json.dumps, lines)))
    protocol = Protocol(repeats=1, folds=2, groups="batch")
    report = evaluate_dataset(Job(str(file), "counts"), protocol)
    fold_of = report.evaluation.fold_of.reshape(4, 2)
    assert (fold_of[:, 0] == fold_of[:, 1]).all()
    assert report.recorded["groups"] == {"by": "batch", "count": 4, "largest": 2}
    assert describe_evaluation(report)["groups"] == "batch: 4 groups, the largest 2 of 8 examples"
    del lines[3]["batch"]
    file.write_text("\n".join(map(json.dumps, lines)))
    with pytest.raises(InputError, match=r"1 of 8 examples has no group in 'batch' \(first: 3\)"):
        evaluate_dataset(Job(str(file), "counts"), protocol)


def test_scaffold_splits_keep_series_together(tmp_path):
    table = tmp_path / "molecules.csv"
    series = ["c1ccccc1", "C1CCCCC1", "c1ccncc1", "C1CCCC1", "c1ccsc1", "C1CC1"]
    rows = [f"{'C' * length}{ring},{length + 0.5}" for ring in series for length in range(1, 5)]
    table.write_text("smiles,target\n" + "\n".join(rows) + "\n")
    report = evaluate_dataset(
        Job(str(table), preset="network", overrides=QUICK),
        Protocol(repeats=1, folds=3, groups="scaffold"),
    )
    fold_of = report.evaluation.fold_of.reshape(6, 4)
    assert (fold_of == fold_of[:, :1]).all()
    assert report.recorded["splits"] == "random, by scaffold"


def test_splits_exclude_other_ways_to_split(tmp_path):
    for other in ({"test_size": 0.1}, {"repeats": 2}, {"folds": 5}):
        name = next(iter(other)).replace("_", "-")
        with pytest.raises(InputError, match=f"splits and {name} exclude"):
            Protocol(splits=tmp_path / "splits.json", **other)


def test_a_hold_out_excludes_folds():
    with pytest.raises(InputError, match="test-size and folds exclude"):
        Protocol(test_size=0.1, folds=5)
    report = evaluate_dataset(Job("threads", "counts"), Protocol(repeats=2, test_size=0.1))
    assert report.recorded["protocol"] == {"repeats": 2, "folds": 1, "selection": "fixed"}


def _write_lines(folder):
    """JSON lines of eight graphs, of which the third cannot be read and the sixth has no target."""
    lines = [
        {"id": f"g{number}", "nodes": 3, "edges": [[0, 1]], "target": "ab"[number % 2]}
        for number in range(8)
    ]
    lines[2]["edges"] = [[0, 7]]
    del lines[5]["target"]
    file = folder / "graphs.jsonl"
    file.write_text("\n\n".join(map(json.dumps, lines)))
    return file


def _write_table(folder):
    """A table of eight molecules: the third row is broken, the sixth is no molecule."""
    rows = [f"g{number},{'C' * (number + 1)},{'ab'[number % 2]}" for number in range(8)]
    rows[2] += ",more"
    rows[5] = "g5,C(,b"
    file = folder / "molecules.csv"
    file.write_text("\n".join(["id,smiles,target", *rows]))
    return file


def _write_folder(folder):
    """A folder with eight files of one graph: the third is broken, the sixth has no target."""
    folder = folder / "graphs"
    folder.mkdir()
    for number in range(8):
        (folder / f"g{number}.edgelist").write_text("0 1\n" if number != 2 else "0 1 2 3 4\n")
    targets = [f"g{number},{'ab'[number % 2]}" for number in range(8) if number != 5]
    (folder / "targets.csv").write_text("\n".join(["graph,target", *targets]))
    return folder


@pytest.mark.parametrize("write", [_write_lines, _write_table, _write_folder])
def test_splits_count_the_records_of_the_file_also_those_that_are_skipped(tmp_path, write):
    split = {"train": [7, 6, 5, 4], "valid": [0, 2], "test": [1, 3]}
    write_json(tmp_path / "split.json", split)
    notes = []
    reading = ReadOptions(skip_bad=True, report=lambda error: None)
    job = Job(str(write(tmp_path)), "counts", reading=reading)
    protocol = Protocol(splits=tmp_path / "split.json")
    report = evaluate_dataset(job, protocol, tmp_path / "run", notify=notes.append)
    [[(train, test)]] = report.evaluation.splits
    assert report.data.ids.tolist() == ["g0", "g1", "g3", "g4", "g6", "g7"]
    assert report.data.ids[train].tolist() == ["g7", "g6", "g4"]
    assert report.data.ids[test].tolist() == ["g1", "g3"]
    assert notes[-1] == "note: split.json: 2 of 8 examples left out, skipped as bad"
    kept = json.loads((tmp_path / "run" / "splits.json").read_text())["repeats"]
    assert kept == [[{"train": [7, 6, 4], "valid": [0], "test": [1, 3]}]]
    again = evaluate_dataset(job, Protocol(splits=tmp_path / "run" / "splits.json"))
    assert again.evaluation.splits[0][0][1].tolist() == test.tolist()


def test_folds_of_a_run_that_skipped_records_are_read_again(tmp_path):
    reading = ReadOptions(skip_bad=True, report=lambda error: None)
    job = Job(str(_write_lines(tmp_path)), "counts", reading=reading)
    first = evaluate_dataset(job, Protocol(repeats=1, folds=2), tmp_path / "run")
    again = evaluate_dataset(job, Protocol(splits=tmp_path / "run" / "splits.json"))
    np.testing.assert_array_equal(first.evaluation.fold_of, again.evaluation.fold_of)


def test_splits_are_refused_where_the_skipped_graphs_have_no_number(tmp_path):
    rows = [f"{graph},0,1" for graph in range(6)]
    (tmp_path / "edges.csv").write_text("\n".join(["graph,source,target", *rows, "2,0,"]))
    targets = [f"{graph},{'ab'[graph % 2]}" for graph in range(6)]
    (tmp_path / "targets.csv").write_text("\n".join(["graph,target", *targets]))
    write_json(tmp_path / "split.json", {"train": [0, 1], "test": [3, 4]})
    reading = ReadOptions(skip_bad=True, report=lambda error: None)
    job = Job(str(tmp_path / "edges.csv"), "counts", reading=reading)
    with pytest.raises(FileError, match="which of them were skipped is not known"):
        evaluate_dataset(job, Protocol(splits=tmp_path / "split.json"))
