from __future__ import annotations

import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from saen._util import arrays
from saen._util.arrays import (
    codes_in_order,
    distinct_with_inverse,
    frozen,
    narrow,
    offsets,
    owned,
    ranges,
    segment_ids,
    segment_reduce,
    smallest_unsigned,
)

lengths_of_segments = st.lists(st.integers(0, 5), max_size=8)
whole_numbers = st.integers(-(2**31), 2**31)


def cut(values, lengths):
    """The values as one list per segment."""
    rest, out = list(values), []
    for length in lengths:
        out.append(rest[:length])
        rest = rest[length:]
    return out


@given(lengths_of_segments)
def test_offsets_are_running_sums_that_start_at_zero(lengths):
    expected = [sum(lengths[:end]) for end in range(len(lengths) + 1)]
    out = offsets(np.array(lengths, dtype=np.int32))
    assert out.tolist() == expected
    assert out.dtype == np.int64


@given(lengths_of_segments)
def test_segment_ids_say_to_which_segment_an_entry_belongs(lengths):
    expected = [number for number, length in enumerate(lengths) for _ in range(length)]
    assert segment_ids(offsets(np.array(lengths, dtype=np.int64))).tolist() == expected


@given(st.lists(st.tuples(st.integers(-9, 9), st.integers(0, 5)), max_size=8))
def test_ranges_are_counted_out_one_after_another(pairs):
    starts = np.array([start for start, _ in pairs], dtype=np.int64)
    lengths = np.array([length for _, length in pairs], dtype=np.int64)
    expected = [number for start, length in pairs for number in range(start, start + length)]
    assert ranges(starts, lengths).tolist() == expected


@pytest.mark.parametrize(
    ("ufunc", "reference", "empty"),
    [(np.add, sum, 0), (np.minimum, min, 99), (np.maximum, max, -7)],
)
@given(lengths=lengths_of_segments, data=st.data())
def test_segments_are_reduced_one_by_one_and_empty_ones_give_the_default(
    ufunc, reference, empty, lengths, data
):
    total = sum(lengths)
    values = data.draw(st.lists(whole_numbers, min_size=total, max_size=total))
    expected = [reference(part) if part else empty for part in cut(values, lengths)]
    out = segment_reduce(
        ufunc,
        np.array(values, dtype=np.int64),
        offsets(np.array(lengths, dtype=np.int64)),
        empty=empty,
    )
    assert out.tolist() == expected


def test_rows_of_matrices_are_reduced_by_column():
    values = np.arange(6.0).reshape(3, 2)
    assert segment_reduce(np.add, values, np.array([0, 0, 2, 3])).tolist() == [
        [0.0, 0.0],
        [2.0, 4.0],
        [4.0, 5.0],
    ]


@given(st.integers(0, 2**64 - 1))
def test_the_smallest_unsigned_type_holds_the_number_and_the_next_smaller_does_not(number):
    dtype = smallest_unsigned(number)
    assert dtype.kind == "u"
    assert number <= np.iinfo(dtype).max
    if dtype.itemsize > 1:
        assert number > np.iinfo(f"u{dtype.itemsize // 2}").max


@given(st.lists(st.integers(0, 2**40), max_size=5))
def test_narrowing_changes_the_type_alone(numbers):
    array = np.array(numbers, dtype=np.int64)
    out = narrow(array)
    assert out.tolist() == numbers
    assert out.dtype == smallest_unsigned(max(numbers, default=0))
    assert array.dtype == np.int64


def test_a_frozen_array_cannot_be_written_to_but_the_original_can():
    array = np.array([1, 2])
    view = frozen(array)
    with pytest.raises(ValueError, match="read-only"):
        view[0] = 3
    array[0] = 3
    assert view.tolist() == [3, 2]


def test_an_owned_array_is_a_copy_wherever_the_original_could_still_be_changed():
    array = np.array([1, 2, 3])
    hidden = array[1:]
    hidden.flags.writeable = False
    for source in (array, array[:], hidden, frozen(array)):
        ours = owned(source)
        assert not ours.flags.writeable
        assert not np.shares_memory(ours, array)
    array.flags.writeable = False
    assert owned(array) is array
    assert np.shares_memory(owned(array[1:]), array)
    assert owned([1, 2]).tolist() == [1, 2]


@given(
    st.sampled_from(["int8", "uint8", "int64", "uint64"]).flatmap(
        lambda name: st.tuples(
            st.just(name),
            st.lists(
                st.one_of(
                    st.integers(0, 5),
                    st.sampled_from([int(np.iinfo(name).min), int(np.iinfo(name).max)]),
                ),
                max_size=40,
            ),
        )
    )
)
def test_distinct_with_inverse_is_numpy_s_unique(drawn):
    name, values = drawn
    array = np.array(values, dtype=name)
    for own, expected in zip(
        distinct_with_inverse(array), np.unique(array, return_inverse=True), strict=True
    ):
        assert own.dtype == expected.dtype
        assert own.tolist() == expected.tolist()


@pytest.mark.parametrize("way", ["pyarrow", "pandas", "sorting"])
def test_codes_in_order_number_values_by_first_appearance(
    way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if way != "sorting":
        monkeypatch.setattr(arrays, "MIN_HASHED", 0)
    if way != "pyarrow":
        monkeypatch.setitem(sys.modules, "pyarrow", None)  # as if it were not installed
    keys = np.array([[2**64 - 1, 0], [5, 1], [2**64 - 1, 2], [0, 3]], np.uint64)
    assert codes_in_order(keys[:, 0]).tolist() == [0, 1, 0, 2]
    assert codes_in_order(keys[:0, 0]).tolist() == []


@pytest.mark.parametrize("dtype", [">i8", "<i8", ">u4", "<i2"])
def test_narrow_keeps_numbers_of_any_byte_order(dtype: str) -> None:
    numbers = np.array([1, 2 ** (8 * np.dtype(dtype).itemsize - 2)], dtype=dtype)
    narrowed = narrow(numbers)
    assert narrowed.tolist() == numbers.tolist()
    assert narrowed.dtype == f"u{numbers.itemsize}"
