"""Splits: folds, hold-outs, groups and published splits, and what is refused."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest

import saen
from saen import InputError
from saen._util.json_files import write_json
from saen.errors import FileError
from saen.io.reading import ReadOptions
from saen.io.records import skipped_records
from saen.learning import splits
from saen.learning.cross_validation import cross_validate
from saen.learning.groups import load_groups
from saen.learning.jobs.evaluate import Protocol, evaluate_dataset
from saen.learning.jobs.job import Job
from saen.learning.splits import (
    LargeGroupWarning,
    SmallClassWarning,
    Splits,
    check_splits,
    check_validation,
    fold_splitter,
    hold_out_splitter,
    inner_folds,
    inner_parts,
    make_splits,
    splits_from_json,
    splits_to_json,
)
from saen.network.settings import Part
from saen.report.summaries import describe_evaluation

THREADS = saen.generate_threads(24, average_nodes=8, seed=2)
QUICK = {"epochs": 1, "n_models": 1, "radii": (0, 1)}


@pytest.mark.parametrize(
    ("splits", "message"),
    [
        ([], "no repeats"),
        ([[]], "no folds"),
        ([[(range(12), range(12, 23)), (range(12, 23), range(12))]], "exactly once"),
        ([[(range(13), range(12, 24)), (range(12, 24), range(12))]], "trains on examples that it"),
        ([[(range(20), range(19, 24))]], "trains on examples that it tests"),
        ([[(range(20), [20, 20])]], "one occurs twice"),
        ([[(range(20), [20, 24])]], "from 0 to 23"),
        ([[(range(20), [20, -1])]], "from 0 to 23"),
        ([[([], range(24))]], "needs training indices"),
        ([[(range(20), [0.5])]], "list of integers"),
    ],
)
def test_splits_from_python_are_checked(splits, message):
    model = saen.SAENClassifier(**QUICK)
    with pytest.raises(InputError, match=message):
        cross_validate(model, THREADS, THREADS.targets, splits=splits)


def test_a_hold_out_tests_only_its_part():
    train, test = np.arange(20), np.array([22, 20])
    model = saen.SAENClassifier(**QUICK)
    found = cross_validate(model, THREADS, THREADS.targets, splits=[[(train, test)]])
    assert np.flatnonzero(found.fold_of[0] == 0).tolist() == [20, 22]
    assert np.isnan(found.outputs[0, :20]).all()
    assert np.isnan(found.outputs[0, [21, 23]]).all()
    right = found.outputs[0, test].argmax(axis=1) == found.targets[test]
    assert found.to_json()["accuracy"] == {"mean": right.mean(), "per_repeat": [right.mean()]}


def test_repeated_hold_outs_are_stratified_and_differ():
    y = np.array([0] * 30 + [1] * 10)
    splits = make_splits(y, repeats=3, folds=10, seed=4, test_size=0.2)
    assert [len(folds) for folds in splits] == [1, 1, 1]
    tests = [set(folds[0][1].tolist()) for folds in splits]
    assert [np.bincount(y[list(test)]).tolist() for test in tests] == [[6, 2]] * 3
    assert tests[0] != tests[1] != tests[2]
    again = make_splits(y, repeats=1, folds=10, seed=5, test_size=0.2)
    assert set(again[0][0][1].tolist()) == tests[1]


@pytest.mark.parametrize("targets", [np.arange(40) % 2, np.linspace(0, 1, 40)])
@pytest.mark.parametrize("options", [{}, {"test_size": 0.3}])
def test_groups_are_never_split(targets, options):
    groups = np.array([f"lab {number % 9}" for number in range(40)])
    splits = make_splits(targets, 2, 3, seed=0, groups=groups, **options)
    for folds in splits:
        for train, test in folds:
            assert not set(groups[train]) & set(groups[test])
    assert not np.array_equal(splits[0][0][1], splits[1][0][1])
    for train, test in inner_folds(targets, 3, state=0, groups=groups):
        assert not set(groups[train]) & set(groups[test])


def test_nested_does_not_split_groups_inside_the_training_part(monkeypatch):
    from saen.learning import splits

    groups, seen = np.arange(24) // 3, []

    def spy(targets, folds, state, groups=None):
        result = inner_folds(targets, folds, state, groups)
        seen.extend((groups[train], groups[test]) for train, test in result)
        return result

    monkeypatch.setattr(splits, "inner_folds", spy)
    cross_validate(
        saen.SAENClassifier(**QUICK), THREADS, THREADS.targets, repeats=1, folds=2, groups=groups,
        stop="nested", grid=[{"epochs": 0}, {"epochs": 1}],
    )  # fmt: skip
    assert len(seen) == 2 * 3
    assert not any(set(train) & set(test) for train, test in seen)


@pytest.mark.parametrize(
    ("targets", "options", "message"),
    [
        ([0, 1] * 4, {"folds": 1}, "folds must be an integer ≥ 2"),
        ([0, 1] * 4, {"folds": 9}, "use at most 8 folds"),
        ([*range(8)], {"folds": 2}, r"every class has 1 member \(8 examples, as many classes\)"),
        ([0, 1, 2, 3] * 2, {"folds": 3}, "no class has 3 members, the largest has 2"),
        ([0, 1] * 4, {"repeats": 0}, "repeats must be"),
        ([0, 1] * 4, {"test_size": 0.0}, "between 0 and 1"),
        ([0, 1] * 4, {"test_size": 1.0}, "between 0 and 1"),
        ([0, 0, 0, 1], {"test_size": 0.5}, "cannot split 4 examples"),
        ([0, 1] * 4, {"groups": [1, 2]}, "one per example"),
        ([0, 1] * 4, {"groups": [1, 2] * 4, "folds": 3}, "use at most 2 folds"),
    ],
)
def test_splits_that_cannot_be_made_are_refused(targets, options, message):
    options = {"repeats": 1, "folds": 2, "seed": 0, **options}
    with pytest.raises(InputError, match=message):
        make_splits(targets, **options)


def test_a_class_with_one_member_is_a_warning_and_is_evaluated():
    y = ["rare"] + ["a", "b"] * 11 + ["a"]
    model = saen.SAENClassifier(class_weight="balanced", **QUICK)
    with pytest.warns(SmallClassWarning, match=r"class 'rare' has fewer members \(1\) than"):
        found = cross_validate(model, THREADS, y, repeats=1, folds=3)
    assert found.outputs.shape == (1, 24, 3)
    assert np.isfinite(found.outputs).all()
    report = found.to_json()
    assert all(report[name]["mean"] is not None for name in found.metrics)


def test_a_published_split_is_read_and_kept(tmp_path):
    write_json(
        tmp_path / "split.json",
        {"train": list(range(14)), "valid": [14, 15, 16, 17], "test": list(range(18, 24))},
    )
    splits = splits_from_json(tmp_path / "split.json", 24)
    [[(train, test)]], [valid] = splits.repeats, splits.validation
    assert [train.tolist(), valid.tolist(), test.tolist()] == [
        list(range(14)), list(range(14, 18)), list(range(18, 24)),
    ]  # fmt: skip
    write_json(tmp_path / "again.json", splits_to_json(splits))
    again = splits_from_json(tmp_path / "again.json", 24)
    np.testing.assert_array_equal(again.validation[0], valid)
    np.testing.assert_array_equal(again.repeats[0][0][0], train)


def test_evaluate_says_how_many_examples_a_published_split_uses(tmp_path):
    write_json(tmp_path / "split.json", {"train": [*range(14)], "test": [20, 21]})
    report = evaluate_dataset(Job("threads", "counts"), Protocol(splits=tmp_path / "split.json"))
    assert describe_evaluation(report)["split"] == "14 train, 2 test of 300 examples"


def test_evaluate_with_a_published_split_resumes(tmp_path):
    saen.save(THREADS, tmp_path / "threads.saen")
    split = {"train": list(range(14)), "valid": [14, 15, 16, 17], "test": list(range(18, 24))}
    write_json(tmp_path / "split.json", split)
    job = Job(str(tmp_path / "threads.saen"), overrides=QUICK)
    protocol = Protocol(splits=tmp_path / "split.json")
    first = evaluate_dataset(job, protocol, tmp_path / "run").to_json()
    again = evaluate_dataset(job, protocol, tmp_path / "run").to_json()
    assert first["accuracy"] == again["accuracy"]
    assert first["protocol"] == {"repeats": 1, "folds": 1, "stop": "fixed"}
    assert first["split"] == {"train": 14, "valid": 4, "test": 6, "of": 24}
    kept = json.loads((tmp_path / "run" / "splits.json").read_text())
    assert kept["repeats"] == [[split]]


def test_validation_parts_need_splits_of_one_fold():
    splits = make_splits(THREADS.targets, 1, 2, seed=0)
    with pytest.raises(InputError, match="splits of one fold"):
        cross_validate(
            saen.SAENClassifier(**QUICK), THREADS, THREADS.targets, splits=splits, validation=[[0]]
        )


def test_groups_come_from_a_column_a_file_or_scaffolds(tmp_path):
    chem = pytest.importorskip("rdkit.Chem", reason="needs the extra 'chem'")
    table = tmp_path / "molecules.csv"
    table.write_text("smiles,target,Lab\nCc1ccccc1,0.5,A\nOc1ccccc1,1.5,B\nCCO,2.5,A\n")

    def groups(name, source=table, **reading):
        plain = ReadOptions(report=lambda error: None, **reading)
        with skipped_records(plain) as (options, skipped):
            data = THREADS[:3] if source == "threads" else saen.load_dataset(source, options)
        return load_groups(str(name), str(source), data, plain, skipped).tolist()

    assert groups("lab") == ["A", "B", "A"]
    assert groups("scaffold") == ["c1ccccc1", "c1ccccc1", "(no rings)"]
    renamed = tmp_path / "renamed.csv"
    renamed.write_text(table.read_text().replace("smiles", "structure", 1))
    assert groups("scaffold", renamed, smiles="Structure")[2] == "(no rings)"
    skipped = tmp_path / "skipped.csv"
    skipped.write_text("id,smiles,lab\na,c1ccccc,A\na,CCO,B\nc,Oc1ccccc1,C\n")
    assert groups("scaffold", skipped, skip_bad=True) == ["(no rings)", "c1ccccc1"]
    assert groups("lab", skipped, skip_bad=True) == ["B", "C"]
    assert groups("ID", skipped, skip_bad=True) == ["a", "c"]
    lines = tmp_path / "groups.txt"
    lines.write_text("x\ny\nx\n")
    assert groups(lines, "threads") == ["x", "y", "x"]
    assert groups(lines, skipped, skip_bad=True) == ["y", "x"]
    lines.write_text("x\ny\nx\nx\n")
    with pytest.raises(FileError, match="4 groups for 3 examples"):
        groups(lines, "threads")
    with pytest.raises(InputError, match="a column or key of the data, a file"):
        groups("nothing")
    with pytest.raises(InputError, match=r"not 'labb' \(did you mean Lab\?\)"):
        groups("labb")
    with pytest.raises(InputError, match="table with a column 'smiles' or an SDF, not threads"):
        groups("scaffold", "threads")
    blocks = [chem.MolToMolBlock(chem.MolFromSmiles(text)) for text in ("Cc1ccccc1", "CCO")]
    (tmp_path / "molecules.sdf").write_text("".join(f"{block}$$$$\n" for block in blocks))
    assert groups("scaffold", tmp_path / "molecules.sdf") == ["c1ccccc1", "(no rings)"]
    saen.save(saen.load_dataset(tmp_path / "molecules.sdf"), tmp_path / "own.saen")
    assert groups("scaffold", tmp_path / "own.saen") == ["c1ccccc1", "(no rings)"]


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


def test_groups_with_empty_cells_are_refused(tmp_path):
    table = tmp_path / "molecules.csv"
    table.write_text("id,smiles,target,lab\na,C,0,A\nb,CC,1,\nc,CCC,0,\n")
    with pytest.raises(InputError, match=r"2 of 3 examples have no group in 'lab' \(first: b\)"):
        load_groups("lab", str(table), saen.load_dataset(table), ReadOptions())


@pytest.mark.parametrize("options", [{"folds": 4}, {"folds": 2, "test_size": 0.25}])
def test_groups_larger_than_a_test_part_are_a_warning(options):
    groups = ["acyclic"] * 6 + [f"ring {number % 7}" for number in range(14)]
    message = r"group 'acyclic' has 6 of 20 examples, more than a test part should have \(5\)"
    with pytest.warns(LargeGroupWarning, match=message):
        make_splits([0, 1] * 10, 1, seed=0, groups=groups, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        make_splits([0, 1] * 10, 1, seed=0, groups=[*groups[1:], "ring 0"], **options)


def test_scaffold_splits_keep_series_together(tmp_path):
    table = tmp_path / "molecules.csv"
    series = ["c1ccccc1", "C1CCCCC1", "c1ccncc1", "C1CCCC1", "c1ccsc1", "C1CC1"]
    rows = [f"{'C' * length}{ring},{length + 0.5}" for ring in series for length in range(1, 5)]
    table.write_text("smiles,target\n" + "\n".join(rows) + "\n")
    report = evaluate_dataset(
        Job(str(table), overrides=QUICK), Protocol(repeats=1, folds=3, groups="scaffold")
    )
    fold_of = report.evaluation.fold_of.reshape(6, 4)
    assert (fold_of == fold_of[:, :1]).all()
    assert report.recorded["splits"] == "random, by scaffold"


def test_splits_exclude_other_ways_to_split(tmp_path):
    for other in ({"test_size": 0.1}, {"groups": "lab"}, {"repeats": 2}, {"folds": 5}):
        name = next(iter(other)).replace("_", "-")
        with pytest.raises(InputError, match=f"splits and {name} exclude"):
            Protocol(splits=tmp_path / "splits.json", **other)


def test_a_hold_out_excludes_folds():
    with pytest.raises(InputError, match="test-size and folds exclude"):
        Protocol(test_size=0.1, folds=5)
    report = evaluate_dataset(Job("threads", "counts"), Protocol(repeats=2, test_size=0.1))
    assert report.recorded["protocol"] == {"repeats": 2, "folds": 1, "stop": "fixed"}


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"train": [0], "val": [1], "test": [2]}, r"unknown key 'val' \(did you mean valid\?\)"),
        ({"train": [0], "validation": [1], "test": [2]}, "'validation' .did you mean valid"),
        ({"training": [0], "test": [2]}, "'training' .did you mean train.*: expected train, valid"),
        ({"repeats": [[{"train": [0], "test": [1], "dev": [2]}]]}, "unknown key 'dev'"),
        ({"repeats": [[{"train": [0], "test": [1]}]], "valid": [2]}, "expected repeats"),
    ],
)
def test_splits_with_an_unknown_key_are_refused(tmp_path, document, message):
    write_json(tmp_path / "split.json", document)
    with pytest.raises(FileError, match=message):
        splits_from_json(tmp_path / "split.json", 3)


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


def test_splits_beyond_the_records_of_the_file_are_refused(tmp_path):
    write_json(tmp_path / "split.json", {"train": [0, 1], "test": [5]})
    assert splits_from_json(tmp_path / "split.json", 4, [2, 3]).repeats[0][0][1].tolist() == [3]
    with pytest.raises(FileError, match="needs test indices from 0 to 4"):
        splits_from_json(tmp_path / "split.json", 4, [2])


def test_splits_without_validation_have_none():
    assert "valid" not in json.dumps(splits_to_json(Splits(make_splits([0, 1] * 4, 1, 2, seed=0))))


def test_a_hold_out_of_real_numbers_is_drawn_at_random():
    [[(train, test)]] = make_splits(np.linspace(0, 1, 40), 1, 2, seed=0, test_size=0.25)
    assert len(test) == 10
    assert sorted([*train, *test]) == list(range(40))


def test_folds_are_stratified_and_decided_by_the_seed():
    y = np.array([0] * 30 + [1] * 10)
    repeats = [*make_splits(y, 2, 5, seed=3), *make_splits(y, 2, 5, seed=4)]
    tests = [[test.tolist() for _, test in folds] for folds in repeats]
    assert tests[1] == tests[2]
    assert tests[0] != tests[1] != tests[3]
    assert all(np.bincount(y[test]).tolist() == [6, 2] for folds in tests for test in folds)


# -- limits, which mutants moved unnoticed -------------------------------------------------------


def test_folds_are_allowed_up_to_the_number_of_examples_members_and_groups():
    assert len(make_splits(np.linspace(0, 1, 4), 1, 4, seed=0)[0]) == 4
    assert len(make_splits([0, 0, 0, 1, 1, 1], 1, 3, seed=0)[0]) == 3
    assert len(make_splits([0, 1] * 6, 1, 3, seed=0, groups=[0, 1, 2] * 4)[0]) == 3


@pytest.mark.parametrize("part", [[[0, 1]], [0.0, 1.0], [True, False]])
def test_check_splits_refuses_what_is_not_a_list_of_integers(part):
    with pytest.raises(InputError, match="repeat 0, fold 0 needs training indices: a list of int"):
        check_splits([[(np.array(part), [2])]], 3)
    with pytest.raises(InputError, match="repeat 0, fold 0 needs test indices: a list of integers"):
        check_splits([[([2], np.array(part))]], 3)
    with pytest.raises(InputError, match="repeat 0 needs validation indices: a list of integers"):
        check_validation([np.array(part)], [[([2], [3])]], 4)


def test_check_splits_takes_parts_of_one_example():
    check_splits([[([0], [1]), ([1], [0])]], 2)
    check_validation([np.array([2])], [[([0], [1])]], 3)


@pytest.mark.parametrize(("part", "name"), [(0, "training"), (1, "test")])
def test_check_validation_names_the_part_that_overlaps(part, name):
    with pytest.raises(InputError, match=f"repeat 0 validates on {name} examples"):
        check_validation([np.array([part])], [[([0], [1])]], 3)


def test_check_splits_needs_the_same_number_of_folds_everywhere():
    one, two = [([0, 1], [2])], [([0, 1], [2]), ([2], [0, 1])]
    with pytest.raises(InputError, match="the same number of folds"):
        check_splits([one, two], 3)


def test_splits_from_json_refuse_fractions(tmp_path):
    file = tmp_path / "splits.json"
    file.write_text('{"train": [0, 1.9], "test": [2]}')
    with pytest.raises(FileError, match="needs training indices: a list of integers"):
        splits_from_json(file, 3)


def test_inner_split_holds_out_a_bounded_number_of_examples(monkeypatch):
    monkeypatch.setattr(splits, "MAX_INNER_TEST", 12)
    y = np.repeat([0, 1], 300)
    [(train, test)] = inner_folds(y, 1, state=0)
    assert (len(train), np.bincount(y[test]).tolist()) == (588, [6, 6])
    [(_, test)] = inner_folds(y[::6], 1, state=0)
    assert len(test) == 10


def test_inner_folds_hold_every_class_in_equal_shares_where_they_can():
    y = np.array([0] * 9 + [1] * 3)
    folds = inner_folds(y, 3, state=5)
    assert [np.bincount(y[test]).tolist() for _, test in folds] == [[3, 1]] * 3
    y3 = np.array([0, 0, 0, 1, 1, 1])
    assert [y3[test].tolist() for _, test in inner_folds(y3, 3, state=1)] == [[0, 1]] * 3
    again, other = inner_folds(y, 3, state=5), inner_folds(y, 3, state=6)
    tests = [[test.tolist() for _, test in each] for each in (folds, again, other)]
    assert tests[0] == tests[1] != tests[2]


@pytest.mark.parametrize("y", [np.arange(4), np.array([0.5] * 5), np.arange(2)])
def test_inner_folds_are_never_refused(y):
    folds = inner_folds(y, 3, state=0)
    assert len(folds) == min(3, len(y))
    assert sorted(np.concatenate([test for _, test in folds])) == list(range(len(y)))


def test_inner_folds_keep_groups_together_where_there_are_two():
    y, groups = np.array([0, 1] * 6), np.repeat([0, 1, 2], 4)
    for train, test in inner_folds(y, 3, state=0, groups=groups):
        assert not set(groups[train]) & set(groups[test])
    assert len(inner_folds(y, 3, state=0, groups=groups % 2)) == 2
    assert len(inner_folds(y, 3, state=0, groups=groups * 0)) == 3


def test_folds_of_groups_are_stratified():
    y, groups = np.repeat([0, 1], 20), np.repeat(np.arange(8), 5)
    [folds] = make_splits(y, 1, 4, seed=0, groups=groups)
    assert [np.bincount(y[test]).tolist() for _, test in folds] == [[5, 5]] * 4


def test_a_single_inner_split_is_stratified_where_every_class_has_two_members():
    y = np.array([0] * 18 + [1] * 2)
    tests = [inner_folds(y, 1, state)[0][1] for state in range(20)]
    assert all(y[test].tolist() == [0, 0] for test in tests)
    assert inner_folds(y, 1, 0)[0][1].tolist() == tests[0].tolist() != tests[1].tolist()
    assert len(inner_folds(np.array([0] * 30 + [1]), 1, 0)[0][1]) == 4


@pytest.mark.parametrize("folds", [1, 2])
def test_inner_folds_keep_two_groups_together(folds):
    y, groups = np.array([0, 1] * 10), np.repeat([0, 1], 10)
    for train, test in inner_folds(y, folds, state=0, groups=groups):
        assert not set(groups[train]) & set(groups[test])


def test_inner_parts_are_inner_folds_of_the_training_part():
    y = np.repeat([0, 1], 12)
    part = Part((0, 1), np.arange(0, 24, 2), np.arange(1, 24, 2))
    inner = inner_parts(part, y, 3, state=7)
    assert [each.name for each in inner] == [(0, 1, 0), (0, 1, 1), (0, 1, 2)]
    folds = inner_folds(y[part.train], 3, state=7)
    for each, (fit, check) in zip(inner, folds, strict=True):
        assert each.train.tolist() == part.train[fit].tolist()
        assert each.test.tolist() == part.train[check].tolist()


def test_splitters_need_groups_only_if_asked():
    y = np.repeat([0, 1], 12)
    for splitter in (fold_splitter(3, 0, True), hold_out_splitter(0.25, 0, True)):
        assert all(np.ptp(np.bincount(y[test])) == 0 for _, test in splitter.split(y, y))


@pytest.mark.parametrize("n_groups", [2, 3, 4, 6])
def test_inner_folds_are_no_more_than_groups_and_never_split_one(n_groups):
    groups = np.arange(120) % n_groups
    folds = inner_folds(np.arange(120) // 7 % 2, 5, 0, groups)
    assert len(folds) == min(n_groups, 5)
    for fit, check in folds:
        assert not {*groups[fit]} & {*groups[check]}


def test_inner_folds_of_groups_with_unequal_classes_are_not_empty():
    targets = np.array([0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0, 0])
    groups = np.array([4, 4, 0, 3, 2, 2, 0, 0, 4, 1, 0, 0])
    folds = inner_folds(targets, 5, 0, groups)
    assert sorted(np.concatenate([check for _, check in folds])) == list(range(12))
    assert all(len(check) for _, check in folds)
