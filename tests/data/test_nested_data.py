from __future__ import annotations

from types import MappingProxyType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from saen import InputError, Vocabulary
from saen.data.nested import NestedData
from tests.references import nested as reference
from tests.references.nested import collections
from tests.refusals import refuses

PETS = [
    {"sentence": [{"word": ["the", "dog", "barks"]}, {"word": ["the", "dog", "barks"]}]},
    {"sentence": [{"word": ["a", "cat"]}], "title": [{"word": ["cat"]}]},
    {},
]
LEVELS = ("words", "sentences", "notes")


def pets(**options) -> NestedData:
    return NestedData(PETS, ["dog", "cat", "none"], levels=LEVELS, **options)


def chooser(data):
    """Hypothesis decides between n ways."""
    return lambda n: data.draw(st.integers(0, n - 1))


# -- reading -----------------------------------------------------------------------------------


@given(collections(), st.data())
def test_lists_mappings_and_generators_say_the_same(drawn, data):
    items, levels = drawn
    depth = len(levels) - 1
    written = [reference.written(item, chooser(data), depth) for item in items]
    structures = NestedData(iter(written), levels=levels)
    assert structures == NestedData(items, levels=levels)
    found = [reference.of_mapping(mapping, depth) for mapping in structures.to_mappings()]
    expected = [reference.content(item, depth) for item in items]
    assert [reference.content(item, depth) for item in found] == expected


@given(collections())
def test_what_a_structure_repeats_is_built_once(drawn):
    items, levels = drawn
    depth = len(levels) - 1
    structures = NestedData(items, levels=levels)
    distinct = [[len({*map(repr, reference.labels_within(item, depth))}) for item in items]]
    for level in range(1, depth + 1):
        distinct.append(
            [
                len(
                    {reference.content(w, level) for w in reference.parents_within(i, depth, level)}
                )
                for i in items
            ]
        )
    assert structures.hierarchy.sizes == tuple(map(sum, distinct))
    assert [np.diff(starts).tolist() for starts in structures.starts] == distinct


def test_equal_parts_in_another_order_are_one():
    item = [("s", [("w", 1), ("v", 2)]), ("s", [("v", 2), ("w", 1)]), ("s", [("v", 1), ("w", 2)])]
    structures = NestedData([item])
    assert structures.hierarchy.sizes == (2, 2, 1)
    assert sorted(structures.hierarchy.relations[1].counts.tolist()) == [1, 2]


@given(collections(), st.data())
def test_the_order_of_parts_means_nothing(drawn, data):
    items, levels = drawn
    depth = len(levels) - 1
    other = [
        reference.shuffled(item, lambda n: data.draw(st.permutations(range(n))), depth)
        for item in items
    ]
    assert NestedData(items, levels=levels) == NestedData(other, levels=levels)


@given(collections(min_size=2))
def test_different_structures_are_not_equal(drawn):
    items, levels = drawn
    depth = len(levels) - 1
    for one in items:
        for other in items:
            same = reference.content(one, depth) == reference.content(other, depth)
            assert (NestedData([one], levels=levels) == NestedData([other], levels=levels)) == same


def test_equality_looks_at_levels_but_not_at_the_name():
    assert pets() == pets(name="pets")
    assert pets() != NestedData(PETS, pets().targets)
    assert pets() != PETS


def test_a_generator_is_read_once_and_what_is_passed_in_is_not_kept():
    opened = []

    def note(number):
        opened.append(number)
        yield "word", f"word {number}"

    structures = NestedData(note(number) for number in range(3))
    assert [example["word"] for example in structures.to_mappings()] == [
        *(["word 0"], ["word 1"], ["word 2"])
    ]
    assert opened == [0, 1, 2]
    item = [("word", "dog")]
    structures = NestedData([item])
    item.append(("word", "cat"))
    assert structures.to_mappings() == [{"word": ["dog"]}]


def test_labels_keep_their_types():
    item = [("x", label) for label in (1, "1", np.int64(1), np.str_("1"), (1, "1"), ())]
    structures = NestedData([item])
    assert structures.hierarchy.attributes.vocabulary == Vocabulary([1, "1", (1, "1"), ()])
    assert structures.to_mappings() == [{"x": [1, 1, "1", "1", (1, "1"), ()]}]


def test_labels_may_turn_up_late_and_any_mapping_is_a_whole():
    late = NestedData([[], [("a", [])], MappingProxyType({"b": [{"c": [7]}]})])
    assert late.to_mappings() == [{}, {"a": [{}]}, {"b": [{"c": [7]}]}]
    assert late.hierarchy.sizes == (1, 2, 3)
    assert [starts.tolist() for starts in late.starts] == [
        [0, 0, 0, 1],
        [0, 0, 1, 2],
        [0, 1, 2, 3],
    ]


@pytest.mark.parametrize("levels", [(), ("words", "notes"), LEVELS])
def test_there_may_be_no_structures_and_no_parts(levels):
    depth = max(len(levels), 2)
    assert NestedData([], levels=levels).hierarchy.sizes == (0,) * depth
    assert NestedData([[], {}], levels=levels).hierarchy.sizes == (*[0] * (depth - 1), 2)
    assert NestedData([[], {}], levels=levels).to_mappings() == [{}, {}]


def test_representations_say_what_there_is():
    assert repr(pets(name="pets")) == (
        "NestedData(pets: 5 words → 3 sentences → 3 notes; 3 classes)"
    )


@pytest.mark.parametrize(
    ("items", "message"),
    [
        ([[], 5], "example 1: expected parts, found 5"),
        (["dog"], "example 0: expected parts, found 'dog'"),
        ([("x", 1)], "example 0: expected parts, found ('x', 1)"),
        ([b"dog"], "example 0: expected parts, found b'dog'"),
        ([["xy"]], "example 0, part 0: expected a (role, part) pair, found 'xy'"),
        (
            [[("x", 1), ("x", 1, 2)]],
            "example 0, part 1: expected a (role, part) pair, found ('x', 1, 2)",
        ),
        ([[(3, 1)]], "example 0, part 0: a role is a non-empty string, found 3"),
        ([[("", 1)]], "example 0, part 0: a role is a non-empty string, found ''"),
        ([{3: [1]}], "example 0, part 0: a role is a non-empty string, found 3"),
        ([{"x": "dog"}], "example 0: expected a list of parts of role 'x', found 'dog'"),
        (
            [{"x": {"y": [7]}}],
            "example 0: expected a list of parts of role 'x', found {'y': [7]}",
        ),
        (
            [[("y", 1), ("x", 1), ("x", None)]],
            "example 0, part 1 of role 'x': a label must be an integer, a string or a tuple of "
            "these, not None",
        ),
        (
            [[("x", (1, 1)), ("x", (1, True))]],
            "example 0, part 1 of role 'x': a label must be an integer, a string or a tuple of "
            "these, not True",
        ),
        (
            [[], [("y", []), ("x", [("z", None)])]],
            "example 1, part 0 of role 'x', part 0 of role 'z': a label must be an integer, a "
            "string or a tuple of these, not None",
        ),
        (
            [[("x", 1)], [("x", 1), ("x", [("y", 1)])]],
            "example 1, part 1 of role 'x': expected a label, found parts "
            "(labels lie 1 level below the top)",
        ),
        (
            [[("x", [("y", 1)])], [("x", 1)]],
            "example 1, part 0 of role 'x': expected parts, found the label 1 "
            "(labels lie 2 levels below the top)",
        ),
        (
            [[("x", []), ("y", 3)]],
            "example 0, part 0 of role 'y': expected parts, found the label 3 "
            "(labels lie 2 levels below the top)",
        ),
    ],
)
def test_what_is_no_structure_is_refused_with_its_place(items, message):
    with refuses(message):
        NestedData(items)


def test_declared_levels_say_how_deep_labels_lie():
    with refuses(
        "example 0, part 0 of role 'x': expected parts, found the label 1 "
        "(labels lie 2 levels below the top)"
    ):
        NestedData([[("x", 1)]], levels=LEVELS)
    with refuses(
        "example 0, part 0 of role 'x': expected a label, found parts "
        "(labels lie 1 level below the top)"
    ):
        NestedData([[("x", [])]], levels=LEVELS[:2])


def test_a_list_that_holds_itself_is_refused():
    item: list = []
    item.append(("x", item))
    with pytest.raises(InputError, match=r"^example 0: nested too deeply$"):
        NestedData([item])


def test_errors_of_a_generator_are_its_own():
    def note():
        yield "word", "dog"
        raise KeyError("cat")

    with pytest.raises(KeyError, match="cat"):
        NestedData([note()])


@pytest.mark.parametrize(
    ("levels", "message"),
    [
        ("words", "levels must be names, bottom first, not 'words'"),
        (7, "levels must be names, bottom first, not 7"),
        (("words", 7), "levels must be names, bottom first, not ('words', 7)"),
        (("words", ""), "levels must be names, bottom first, not ('words', '')"),
        (("words",), "levels must be two or more different names, not ('words',)"),
        (("words", "words"), "levels must be two or more different names, not ('words', 'words')"),
    ],
)
def test_levels_that_make_no_sense_are_refused(levels, message):
    with refuses(message):
        NestedData([], levels=levels)


# -- targets and slices ------------------------------------------------------------------------


@given(collections(min_size=1), st.data())
def test_a_slice_is_what_its_structures_alone_would_be(drawn, data):
    items, levels = drawn
    n = len(items)
    structures = NestedData(items, np.arange(n), levels=levels, name="drawn")
    rows = data.draw(st.lists(st.integers(0, n - 1), max_size=6))
    for key, chosen in ((rows, rows), (slice(1, None), list(range(1, n)))):
        part = structures[key]
        alone = NestedData([items[row] for row in chosen], np.arange(n)[chosen], levels=levels)
        assert part == alone
        assert part.hierarchy.sizes == alone.hierarchy.sizes
        assert all(map(np.array_equal, part.starts, alone.starts))


def test_from_hierarchy_refuses_examples_that_share_parts():
    data = NestedData([{"a": [1]}, {"a": [2, 3]}])
    again = NestedData.from_hierarchy(data.hierarchy, data.starts)
    assert again == data
    assert again[1].to_mappings() == [{"a": [2, 3]}]
    with pytest.raises(InputError, match="an example has parts of another"):
        NestedData.from_hierarchy(data.hierarchy, [[0, 2, 3], [0, 1, 2]])
    for starts in ([[0, 1, 3]], [[0, 1, 2], [0, 1, 2]], [[0, 3], [0, 2]]):
        with pytest.raises(InputError, match="starts"):
            NestedData.from_hierarchy(data.hierarchy, starts)


def test_concatenate_needs_the_same_levels():
    one, other = NestedData([{"a": [1]}]), NestedData([{"a": [{"b": [1]}]}])
    with pytest.raises(InputError, match="levels differ"):
        NestedData.concatenate([one, other])
