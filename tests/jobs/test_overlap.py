"""Overlap between graphs: found from Python, told by validate and evaluate, kept in one fold."""

from __future__ import annotations

import numpy as np
import pytest

import saen
from saen.errors import InputError
from saen.jobs.evaluate import Protocol, evaluate_dataset
from saen.jobs.job import Job
from saen.jobs.train import train_model
from saen.jobs.validate import validate_dataset
from saen.report.summaries import describe_evaluation


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """Threads of which the last twenty contain one large tree, each with a tail of its own."""
    rng = np.random.default_rng(0)
    threads = saen.generate_threads(100, average_nodes=40, seed=2)
    parents = [int(rng.integers(max(i - 12, 0), i)) for i in range(1, 250)]
    common = [(parent, i + 1) for i, parent in enumerate(parents)]
    grown = [common + [(249 + i, 250 + i) for i in range(1 + k % 4)] for k in range(20)]
    same = saen.Graphs.from_edge_lists(grown, targets=["questions"] * 20)
    both = saen.Graphs.concatenate([threads.with_ids(None), same])
    file = tmp_path_factory.mktemp("overlap") / "shared.saen"
    saen.save(both.with_ids(None), file)
    return both, file


def test_overlap_is_found_from_python(shared):
    found = saen.overlap(shared[0])
    assert found.overlapping[100:].all()
    assert found.share == pytest.approx(20 / 120, abs=0.02)
    assert len(set(found.groups[100:].tolist())) == 1


def test_overlap_is_of_graphs_alone():
    with pytest.raises(InputError, match="overlap is found between graphs"):
        saen.overlap(saen.decompositions.Ego().decompose(saen.generate_threads(3, seed=0)))


def test_validate_tells_of_overlap(shared):
    report = validate_dataset(str(shared[1]))
    assert report.to_json(0)["overlap"]["largest"] >= 20


def test_validate_is_quiet_on_independent_graphs():
    assert validate_dataset("threads").overlap.share == 0


def test_evaluate_scores_overlapping_graphs_apart(shared):
    report = evaluate_dataset(Job(str(shared[1]), "counts"), Protocol(repeats=1, folds=3))
    document = report.to_json()["overlap"]
    assert document["share"] == pytest.approx(20 / 120, abs=0.02)
    assert document["accuracy"] == 1.0
    assert document["accuracy_rest"] < 1.0
    assert "share rare parts" in describe_evaluation(report)["overlap"]


def test_no_overlap_is_left_where_a_chain_is_larger_than_a_fold(tmp_path):
    """Trees, each of which holds most of the one before: all are one group."""
    rng = np.random.default_rng(0)
    threads = saen.generate_threads(60, average_nodes=40, seed=2)
    parents = [0, *(int(rng.integers(max(i - 12, 0), i)) for i in range(1, 900))]
    windows = [range(30 * k, 30 * k + 150) for k in range(24)]
    moved = [[(max(parents[i], w[0]) - w[0], i - w[0]) for i in w[1:]] for w in windows]
    chain = saen.Graphs.from_edge_lists(moved, targets=["questions"] * len(moved))
    both = saen.Graphs.concatenate([threads.with_ids(None), chain]).with_ids(None)
    assert saen.overlap(both).largest > len(both) // 5
    saen.save(both, tmp_path / "chain.saen")
    report = evaluate_dataset(
        Job(str(tmp_path / "chain.saen"), "counts"), Protocol(repeats=1, folds=5, groups="overlap")
    )
    assert report.to_json()["overlap"]["share"] == 0
    assert 0 < report.evaluation.left_out() < 0.3
    assert "left out of training" in describe_evaluation(report)["groups"]
    literal = saen.overlap(both)
    linked = {(i, j) for i, j in zip(literal.pairs.first, literal.pairs.second, strict=True)}
    for train, test in report.evaluation.splits[0]:
        assert not any((i, j) in linked or (j, i) in linked for i in train for j in test)


@pytest.mark.parametrize("by", ["overlap", "duplicates"])
def test_overlapping_graphs_stay_in_one_fold(shared, by):
    protocol = Protocol(repeats=1, folds=3, groups=by)
    evaluation = evaluate_dataset(Job(str(shared[1]), "counts"), protocol).evaluation
    kinds = evaluation.same if by == "duplicates" else saen.overlap(shared[0]).split(12)
    for train, test in evaluation.splits[0]:
        assert not np.isin(kinds[test], kinds[train]).any()


def test_overlapping_graphs_stay_in_one_inner_fold_of_a_training(shared, tmp_path):
    report = train_model(Job(str(shared[1]), "counts"), tmp_path / "m.saen", groups="overlap")
    kinds = saen.overlap(shared[0]).split(12)
    assert len(np.unique(kinds)) < 110
    assert report.evaluation is not None
    together = np.unique(np.column_stack([kinds, report.evaluation.fold_of[0]]), axis=0)
    assert len(together) == len(np.unique(kinds))
