from __future__ import annotations

from types import MappingProxyType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.model_selection import StratifiedKFold, train_test_split

from saen import InputError, Vocabulary
from saen.data.nested import NestedData
from tests.references import nested as reference
from tests.references.nested import collections

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
                len({reference.content(w, level) for w in reference.wholes_within(i, depth, level)})
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


def test_equality_looks_at_targets_and_levels_but_not_at_the_name():
    assert pets() == pets(name="pets")
    assert pets() != pets().with_targets(["dog", "cat", "cat"])
    assert pets() != pets().with_targets(None)
    assert pets().with_targets(None) == pets().with_targets(None)
    assert pets() != NestedData(PETS, pets().targets)
    assert pets() != PETS


def test_a_generator_is_read_once_and_what_is_passed_in_is_not_kept():
    opened = []

    def note(number):
        opened.append(number)
        yield "word", f"word {number}"

    structures = NestedData(note(number) for number in range(3))
    assert [whole["word"] for whole in structures.to_mappings()] == [
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
    assert repr(NestedData([[("x", 1)]], [0.5])) == (
        "NestedData(1 level 0 → 1 level 1; real targets)"
    )


@pytest.mark.parametrize(
    ("items", "message"),
    [
        ([[], 5], "structure 1: expected parts, found 5"),
        (["dog"], "structure 0: expected parts, found 'dog'"),
        ([("x", 1)], "structure 0: expected parts, found ('x', 1)"),
        ([None], "structure 0: expected parts, found None"),
        ([b"dog"], "structure 0: expected parts, found b'dog'"),
        ([["xy"]], "structure 0, part 0: expected a (role, part) pair, found 'xy'"),
        (
            [[("x", 1), ("x", 1, 2)]],
            "structure 0, part 1: expected a (role, part) pair, found ('x', 1, 2)",
        ),
        ([[(3, 1)]], "structure 0, part 0: a role is a string, and not an empty one: found 3"),
        ([[("", 1)]], "structure 0, part 0: a role is a string, and not an empty one: found ''"),
        ([{3: [1]}], "structure 0, part 0: a role is a string, and not an empty one: found 3"),
        ([{"x": "dog"}], "structure 0: expected a list of parts of role 'x', found 'dog'"),
        ([{"x": 7}], "structure 0: expected a list of parts of role 'x', found 7"),
        (
            [{"x": {"y": [7]}}],
            "structure 0: expected a list of parts of role 'x', found {'y': [7]}",
        ),
        (
            [[("y", 1), ("x", 1), ("x", 2.5)]],
            "structure 0, part 1 of role 'x': a label must be an integer, a string or a tuple of "
            "these, not 2.5",
        ),
        (
            [[("x", 1), ("x", True)]],
            "structure 0, part 1 of role 'x': a label must be an integer, a string or a tuple of "
            "these, not True",
        ),
        (
            [[("x", (1, 1)), ("x", (1, True))]],
            "structure 0, part 1 of role 'x': a label must be an integer, a string or a tuple of "
            "these, not True",
        ),
        (
            [[], [("y", []), ("x", [("z", None)])]],
            "structure 1, part 0 of role 'x', part 0 of role 'z': a label must be an integer, a "
            "string or a tuple of these, not None",
        ),
        (
            [[("x", 1)], [("x", 1), ("x", [("y", 1)])]],
            "structure 1, part 1 of role 'x': expected a label, found parts "
            "(labels lie 1 level below a structure)",
        ),
        (
            [{"x": [{"y": [1, 2]}, {"y": [1, [("z", 1)]]}]}],
            "structure 0, part 1 of role 'x', part 1 of role 'y': expected a label, found parts "
            "(labels lie 2 levels below a structure)",
        ),
        (
            [[("x", [("y", 1)])], [("x", 1)]],
            "structure 1, part 0 of role 'x': expected parts, found the label 1 "
            "(labels lie 2 levels below a structure)",
        ),
        (
            [[("x", []), ("y", 3)]],
            "structure 0, part 0 of role 'y': expected parts, found the label 3 "
            "(labels lie 2 levels below a structure)",
        ),
    ],
)
def test_what_is_no_structure_is_refused_with_its_place(items, message):
    with pytest.raises(InputError) as error:
        NestedData(items)
    assert str(error.value) == message


def test_declared_levels_say_how_deep_labels_lie():
    with pytest.raises(InputError) as error:
        NestedData([[("x", 1)]], levels=LEVELS)
    assert str(error.value) == (
        "structure 0, part 0 of role 'x': expected parts, found the label 1 "
        "(labels lie 2 levels below a structure)"
    )
    with pytest.raises(InputError) as error:
        NestedData([[("x", [])]], levels=LEVELS[:2])
    assert str(error.value) == (
        "structure 0, part 0 of role 'x': expected a label, found parts "
        "(labels lie 1 level below a structure)"
    )


def test_a_list_that_holds_itself_is_refused():
    item: list = []
    item.append(("x", item))
    with pytest.raises(InputError, match=r"^structure 0: nested too deeply$"):
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
        ("words", "levels are names, bottom first, not 'words'"),
        (7, "levels are names, bottom first, not 7"),
        (("words", 7), "levels are names, bottom first, not ('words', 7)"),
        (("words", ""), "levels are names, bottom first, not ('words', '')"),
        (("words",), "levels are two or more different names, not ('words',)"),
        (("words", "words"), "levels are two or more different names, not ('words', 'words')"),
    ],
)
def test_levels_that_make_no_sense_are_refused(levels, message):
    with pytest.raises(InputError) as error:
        NestedData([], levels=levels)
    assert str(error.value) == message


# -- targets and slices ------------------------------------------------------------------------


def test_targets_are_columns_of_numbers_or_strings():
    assert pets().targets.tolist() == ["dog", "cat", "none"]
    assert pets().with_targets(np.array(["a", "b", "c"], dtype=object)).targets.dtype.kind == "U"
    assert pets().with_targets([[0.5, 1], [1, 2], [3, 4]]).targets.shape == (3, 2)
    mine = np.array([1, 2, 3])
    structures = pets().with_targets(mine)
    mine[0] = 7
    assert structures.targets.tolist() == [1, 2, 3]
    with pytest.raises(ValueError, match="read-only"):
        structures.targets[0] = 7
    with pytest.raises(AttributeError):
        structures.targets = mine


@pytest.mark.parametrize(
    ("targets", "message"),
    [
        ([1, 2], "targets: expected 3 rows, found shape (2,)"),
        (7, "targets: expected 3 rows, found shape ()"),
        ([1, [2], 3], "targets differ in their number of columns"),
        ([1, "a", None], "targets must be numbers or strings, not object"),
    ],
)
def test_other_targets_are_refused(targets, message):
    for attempt in (lambda: NestedData(PETS, targets), lambda: pets().with_targets(targets)):
        with pytest.raises(InputError) as error:
            attempt()
        assert str(error.value) == message


@given(collections(min_size=1), st.data())
def test_a_slice_is_what_its_structures_alone_would_be(drawn, data):
    items, levels = drawn
    n = len(items)
    structures = NestedData(items, np.arange(n), levels=levels, name="drawn")
    rows = data.draw(st.lists(st.integers(-n, n - 1), max_size=6))
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=n, max_size=n)))
    place = data.draw(st.integers(-n, n - 1))
    span = slice(*data.draw(st.tuples(*[st.none() | st.integers(-5, 5)] * 2)))
    for key, chosen in (
        (rows, rows),
        (np.array(rows, dtype=np.int64), rows),
        (mask, np.flatnonzero(mask).tolist()),
        (place, [place]),
        (span, list(range(n))[span]),
        (slice(None, None, -1), list(range(n))[::-1]),
        ((np.array(rows, dtype=np.int64), ...), rows),
    ):
        part = structures[key]
        alone = NestedData([items[row] for row in chosen], np.arange(n)[chosen], levels=levels)
        assert part == alone
        assert part.hierarchy.sizes == alone.hierarchy.sizes
        assert all(map(np.array_equal, part.starts, alone.starts))
        assert part.name == "drawn"
    assert [one == structures[i] for i, one in enumerate(structures)] == [True] * n


@pytest.mark.parametrize("key", [3, -4, [0, 3], np.array([True, False]), "a", 1.5])
def test_indices_beyond_the_collection_are_refused(key):
    with pytest.raises(IndexError):
        pets()[key]


def test_splitters_take_the_collection_whole():
    structures = NestedData([{"word": [number]} for number in range(12)], np.arange(12) % 3)
    assert structures.shape == (12,)
    known, new = train_test_split(
        structures, test_size=3, stratify=structures.targets, random_state=0
    )
    assert isinstance(known, NestedData)
    assert sorted(new.targets) == [0, 1, 2]
    folds = [test for _, test in StratifiedKFold(4).split(structures, structures.targets)]
    assert sorted(np.concatenate(folds)) == list(range(12))
