"""Ids go along with their examples, and decide nothing."""

import pickle

import numpy as np
import pytest

import saen
from saen import Documents, Graphs, NestedData
from saen.errors import InputError
from saen.jobs.store import digest

GRAPHS = Graphs.from_edge_lists([[(0, 1)], [(0, 1), (1, 2)], []], ids=["a", "b", "c"])
DOCUMENTS = Documents.from_sentences([[[("yes", None, "root")]]] * 3, ids=["a", "b", "c"])
NESTED = NestedData([{"word": ["x"]}, {"word": ["y"]}, {"word": ["z"]}], ids=["a", "b", "c"])

each_kind = pytest.mark.parametrize("data", [GRAPHS, DOCUMENTS, NESTED])


@each_kind
def test_ids_follow_every_kind_of_index(data):
    assert data[1].ids.tolist() == ["b"]
    assert data[1:].ids.tolist() == ["b", "c"]
    assert data[[2, 0, 0]].ids.tolist() == ["c", "a", "a"]
    assert data[np.array([True, False, True])].ids.tolist() == ["a", "c"]
    assert pickle.loads(pickle.dumps(data)).ids.tolist() == ["a", "b", "c"]


@each_kind
def test_ids_are_row_numbers_unless_given(data):
    assert data.with_ids(None)[1:].ids.tolist() == [1, 2]


@each_kind
def test_ids_change_neither_equality_nor_digest(data):
    other = data.with_ids([7, 8, 9])
    assert other == data
    assert digest(other) == digest(data)


@each_kind
def test_ids_stay_with_other_targets(data):
    assert data.with_targets([1, 2, 3]).ids.tolist() == ["a", "b", "c"]


@pytest.mark.parametrize(("cls", "data"), [(Graphs, GRAPHS), (Documents, DOCUMENTS)])
def test_ids_survive_concatenation_and_numbers_become_text(cls, data):
    joined = cls.concatenate([data[:2], data.with_ids(None)[2:]])
    assert joined.ids.tolist() == ["a", "b", "2"]


@each_kind
@pytest.mark.parametrize("ids", [[1, 2], [1.5, 2, 3], [[1], [2], [3]], [True, False, True]])
def test_ids_of_another_shape_or_type_are_refused(data, ids):
    with pytest.raises(InputError, match="ids"):
        data.with_ids(ids)


@pytest.mark.parametrize("ids", [["é", "", "𝔘nicode"], [-5, 2, 2], [2, 1, 0], [0, 1, 2]])
def test_ids_survive_saen_files(tmp_path, ids):
    saen.save(GRAPHS.with_ids(ids), tmp_path / "graphs.saen")
    loaded = saen.load(tmp_path / "graphs.saen")
    assert loaded.ids.tolist() == ids
    assert loaded == GRAPHS


def test_extra_columns_follow_their_graphs():
    graphs = GRAPHS.with_extra({"year": [1999, 2000, 2001]})
    assert graphs[[2, 0]].extra["year"].tolist() == [2001, 1999]
    assert Graphs.concatenate([graphs[2:], graphs[:1]]).extra["year"].tolist() == [2001, 1999]
    assert graphs == GRAPHS
    with pytest.raises(InputError, match="'year': expected 3 values"):
        GRAPHS.with_extra({"year": [1999]})
