from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from saen import Vocabulary
from saen.data.vocabulary import UNSEEN
from tests.properties.strategies import labels, vocabularies
from tests.refusals import refuses


@given(st.lists(labels), st.randoms(use_true_random=False))
def test_the_order_in_which_labels_are_met_does_not_matter(values, random):
    shuffled = random.sample(values, len(values))
    assert Vocabulary(shuffled) == Vocabulary(values)
    assert hash(Vocabulary(shuffled)) == hash(Vocabulary(values))
    assert set(Vocabulary(values)) == set(values)


def test_integers_come_before_strings_and_strings_before_tuples():
    values = [("b", 1), "b", 10, ("a",), 9, "a", (1, "z"), -1, "B"]
    assert list(Vocabulary(values)) == [-1, 9, 10, "B", "a", "b", ("a",), (1, "z"), ("b", 1)]


def test_a_number_is_not_its_name():
    vocabulary = Vocabulary([1, "1", (1,), ("1",)])
    assert len(vocabulary) == 4
    assert vocabulary.encode([np.array([1])]).tolist() == [0]
    assert vocabulary.encode([np.array(["1"])]).tolist() == [1]


def test_labels_are_plain_python_values():
    vocabulary = Vocabulary([np.int32(3), np.str_("C"), [np.int64(1), "x"]])
    assert [type(value) for value in vocabulary] == [int, str, tuple]
    assert type(vocabulary[2][0]) is int


@pytest.mark.parametrize("value", [1.5, None, True, b"C", {"a": 1}, (1, 2.0)])
def test_other_labels_are_refused(value):
    wrong = value[1] if isinstance(value, tuple) else value
    with refuses(f"a label must be an integer, a string or a tuple of these, not {wrong!r}"):
        Vocabulary([value])


columns = st.integers(1, 12).flatmap(
    lambda n: st.lists(
        st.one_of(
            st.lists(st.integers(-2, 2), min_size=n, max_size=n).map(
                lambda c: np.array(c, np.int64)
            ),
            st.lists(st.integers(0, 3), min_size=n, max_size=n).map(lambda c: np.array(c, "u1")),
            st.lists(st.sampled_from(["", "1", "C", "Cl"]), min_size=n, max_size=n).map(
                lambda c: np.array(c, np.str_)
            ),
        ),
        min_size=1,
        max_size=3,
    )
)


def rows_of(drawn):
    rows = list(zip(*[column.tolist() for column in drawn], strict=True))
    return rows if len(drawn) > 1 else [row[0] for row in rows]


@given(columns)
def test_fitting_gives_every_row_the_code_of_its_label(drawn):
    vocabulary, codes = Vocabulary.fit(drawn)
    assert codes.dtype == np.int32
    assert [vocabulary[code] for code in codes] == rows_of(drawn)
    assert vocabulary == Vocabulary(rows_of(drawn))
    assert vocabulary.encode(drawn).tolist() == codes.tolist()


@given(columns, vocabularies)
def test_a_label_beyond_the_vocabulary_is_unseen(drawn, vocabulary):
    expected = [
        list(vocabulary).index(row) if row in vocabulary else UNSEEN for row in rows_of(drawn)
    ]
    assert vocabulary.encode(drawn).tolist() == expected
    with pytest.MonkeyPatch.context() as patch:  # as many rows
        patch.setattr("saen.data.vocabulary.MAX_LOOKED_UP", -1)
        assert vocabulary.encode(drawn).tolist() == expected


def test_fitting_nothing_gives_nothing():
    vocabulary, codes = Vocabulary.fit([np.empty(0, np.int64), np.empty(0, "U1")])
    assert len(vocabulary) == 0
    assert codes.shape == (0,)


@given(vocabularies, vocabularies)
def test_a_union_holds_both_and_nothing_else(one, other):
    both = one.union(other)
    assert both == other.union(one)
    assert set(both) == set(one) | set(other)
    assert both.union(one) == both


@given(vocabularies, vocabularies)
def test_recoding_finds_every_label_again(one, other):
    table = one.recode(other)
    assert len(table) == len(one) + 1
    assert table[UNSEEN] == UNSEEN
    for code, value in enumerate(one):
        assert table[code] == (list(other).index(value) if value in other else UNSEEN)


@given(vocabularies)
def test_json_and_back(vocabulary):
    assert Vocabulary(json.loads(json.dumps(list(vocabulary)))) == vocabulary


def test_a_long_vocabulary_is_shown_in_part():
    assert repr(Vocabulary(range(3))) == "Vocabulary(0, 1, 2)"
    assert repr(Vocabulary(range(100))) == "Vocabulary(0, 1, 2, 3, 4, 5, 6, 7, … 100 in all)"


@pytest.mark.parametrize(
    ("drawn", "message"),
    [
        ([], "a label needs at least one column"),
        ([np.zeros((2, 2), int)], "label columns must be flat and equally long, not (2, 2)"),
        (
            [np.zeros(2, int), np.zeros(3, int)],
            "label columns must be flat and equally long, not (3,)",
        ),
        ([np.zeros(2)], "labels must be integers or strings, not float64"),
    ],
)
def test_columns_that_cannot_be_labels_are_refused(drawn, message):
    with refuses(message):
        Vocabulary.fit(drawn)
