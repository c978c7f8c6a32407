"""What the collections share: indexing, targets, scikit-learn."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.model_selection import StratifiedKFold, train_test_split
from sklearn.utils import _safe_indexing, shuffle

from saen import Documents, Graphs, Hierarchy, InputError, NestedData, compress
from saen.decompositions import Ego
from tests.refusals import refuses


def graphs(n: int) -> Graphs:
    return Graphs.from_edges([], np.arange(n), targets=np.arange(n), name="toy")


def documents(n: int) -> Documents:
    return Documents.from_sentences(
        [[[("a", None, "root")]] * i for i in range(n)], targets=np.arange(n), name="toy"
    )


def nested(n: int) -> NestedData:
    return NestedData([{"x": [i]} for i in range(n)], np.arange(n), levels=("a", "b"), name="toy")


def hierarchy(n: int) -> Hierarchy:
    return Ego(radii=(0,)).decompose(graphs(n))


COLLECTIONS = (graphs, documents, nested, hierarchy)
WITH_TARGETS = (graphs, documents, nested)


def numbers(collection) -> list[int]:
    """Which examples these are."""
    if isinstance(collection, Hierarchy):
        return np.diff(collection.relations[-1].indptr).tolist()
    sizes = collection.targets.tolist()
    if not isinstance(collection, NestedData):
        assert collection.sizes.tolist() == sizes
    return sizes


@st.composite
def keys(draw, n: int):
    """Something to index a collection of n with, and what a plain list gives for it."""
    place = st.integers(-n, n - 1)
    kind = draw(st.sampled_from(["slice", "mask", "rows", *(["place"] if n else [])]))
    if kind == "slice":
        key = draw(st.slices(n))
        return key, list(range(n))[key]
    if kind == "place":
        key = draw(place)
        return draw(st.sampled_from([int, np.int64]))(key), [key % n]
    if kind == "mask":
        mask = draw(st.lists(st.booleans(), min_size=n, max_size=n))
        return np.array(mask, dtype=np.bool_), [i for i, wanted in enumerate(mask) if wanted]
    rows = draw(st.lists(place, max_size=6)) if n else []
    array = np.array(rows, dtype=draw(st.sampled_from([np.int8, np.int32, np.int64])))
    return draw(st.sampled_from([rows, array, (array, ...)])), [row % n for row in rows]


@given(st.sampled_from(COLLECTIONS), st.data())
def test_collections_are_indexed_like_lists(make, data):
    collection = make(data.draw(st.integers(0, 6)))
    key, expected = data.draw(keys(len(collection)))
    part = collection[key]
    assert type(part) is type(collection)
    assert numbers(part) == expected
    assert [numbers(one) for one in part] == [[number] for number in expected]
    assert getattr(part, "name", "toy") == "toy"
    again, further = data.draw(keys(len(part)))
    assert numbers(part[again]) == [expected[i] for i in further]


def test_collections_longer_than_a_short_integer_are_indexed_by_short_integers():
    assert numbers(graphs(300)[np.array([1, 255], dtype=np.uint8)]) == [1, 255]
    assert numbers(graphs(300)[np.array([127, -1], dtype=np.int8)]) == [127, 299]


@pytest.mark.parametrize("make", COLLECTIONS)
@pytest.mark.parametrize("key", [4, -5, np.int64(4), [0, 4], [-5]])
def test_collections_raise_index_error_out_of_range(make, key):
    with pytest.raises(IndexError, match="out of range for a collection of 4"):
        make(4)[key]


@pytest.mark.parametrize("make", COLLECTIONS)
@pytest.mark.parametrize(
    ("key", "message"),
    [
        ([True, False], r"a mask of shape \(2,\) for a collection of 4"),
        (True, r"a mask of shape \(\) for a collection of 4"),
        *(
            (key, "index by an integer, a slice, a mask or a flat array of integers")
            for key in ([0.0], "path", 1.5, [[0, 1]])
        ),
    ],
)
def test_collections_refuse_other_keys(make, key, message):
    with pytest.raises(InputError, match=f"^{message}$"):
        make(4)[key]


@pytest.mark.parametrize("make", COLLECTIONS)
def test_collections_are_split_indexed_and_shuffled_by_scikit_learn(make):
    collection, y = make(20), np.arange(20) % 2
    assert (collection.shape, collection.ndim) == ((20,), 1)
    train, test, y_train, _ = train_test_split(
        collection, y, test_size=6, stratify=y, random_state=0
    )
    assert [n % 2 for n in numbers(train)] == y_train.tolist()
    assert sorted(numbers(train) + numbers(test)) == list(range(20))
    folds = [numbers(collection[test]) for _, test in StratifiedKFold(4).split(collection, y)]
    assert sorted(np.concatenate(folds)) == list(range(20))
    for key in ([2, 0], y == 1, slice(1, 3)):
        assert numbers(_safe_indexing(collection, key)) == numbers(collection[key])
    assert sorted(numbers(shuffle(collection, random_state=0))) == list(range(20))


@pytest.mark.parametrize("make", COLLECTIONS)
def test_collections_cannot_be_hashed(make):
    with pytest.raises(TypeError, match="unhashable"):
        hash(make(2))


# -- targets -----------------------------------------------------------------------------------


@pytest.mark.parametrize("make", WITH_TARGETS)
def test_targets_are_copied_and_read_only(make):
    mine = np.array([1, 2, 3])
    collection = make(3).with_targets(mine)
    mine[0] = 7
    assert collection.targets.tolist() == [1, 2, 3]
    with pytest.raises(ValueError, match="read-only"):
        collection.targets[0] = 7
    with pytest.raises(AttributeError):
        collection.targets = mine


@pytest.mark.parametrize("make", WITH_TARGETS)
def test_targets_may_be_numbers_columns_or_strings_of_pandas(make):
    assert make(2).with_targets(None).targets is None
    assert make(2).with_targets([[0.5, 1], [1, 2]]).targets.shape == (2, 2)
    assert make(2).with_targets(pd.Series(["a", "b"])).targets.dtype.kind == "U"
    assert "real targets" in repr(make(2).with_targets([0.5, 1.5]))
    assert "1 class" in repr(make(2).with_targets(["a", "a"]))


@pytest.mark.parametrize("make", WITH_TARGETS)
@pytest.mark.parametrize(
    ("targets", "message"),
    [
        ([1, 2], "targets: expected 3 rows, found shape (2,)"),
        (7, "targets: expected 3 rows, found shape ()"),
        ([1, [2], 3], "targets differ in their number of columns"),
        ([1, "a", None], "targets must be numbers or strings, not object"),
    ],
)
def test_targets_of_another_shape_or_type_are_refused(make, targets, message):
    with refuses(message):
        make(3).with_targets(targets)


@pytest.mark.parametrize("make", WITH_TARGETS)
def test_targets_are_part_of_equality(make):
    kinds = [None, [1, 2], [1, 3], ["1", "2"], [1.5, np.nan], [2.5, np.nan]]
    collections = [make(2).with_targets(targets) for targets in kinds]
    for i, one in enumerate(collections):
        for j, other in enumerate(collections):
            assert (one == other) == (i == j)


@pytest.mark.parametrize("make", [graphs, documents])
def test_collections_concatenate_with_their_targets_and_a_common_name(make):
    one, concatenate = make(2), type(make(2)).concatenate
    joined = concatenate([one.with_targets(["a", "bb"]), one.with_targets(["c", "d"])])
    assert (joined.targets.tolist(), joined.name) == (["a", "bb", "c", "d"], "toy")
    assert concatenate([one, replace(one, name="other")]).name == ""
    with refuses("collection 1 has no targets"):
        concatenate([one, one.with_targets(None)])
    with refuses("nothing to concatenate: the list of collections is empty"):
        concatenate([])


def test_hierarchy_of_a_selection_shares_what_is_repeated():
    twice = hierarchy(4)[[3, 3]]
    assert twice.sizes == (3, 3, 2)
    assert compress(twice).top.tolist() == [0, 0]
