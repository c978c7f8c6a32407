from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import saen
from saen import Graphs, InputError, Vocabulary, compress
from saen.data.nested import NestedData
from saen.data.vocabulary import UNSEEN
from saen.decompositions import Nested
from tests.references import nested as reference
from tests.references.nested import NAMES, collections, items
from tests.refusals import refuses

LEVELS = ("words", "sentences", "notes")


@st.composite
def pairs_of_collections(draw: st.DrawFn):
    """Two collections of one depth, which may hold roles and labels of their own."""
    depth = draw(st.integers(1, 3))
    lists = st.lists(items(depth), max_size=3)
    return draw(lists), draw(lists), NAMES[: depth + 1]


# -- what it makes -----------------------------------------------------------------------------


@given(collections())
def test_merging_duplicates_while_reading_loses_nothing(drawn):
    structures, levels = drawn
    found = compress(Nested(levels).decompose(NestedData(structures)))
    expected = compress(reference.naive(structures, levels))
    assert found.hierarchy == expected.hierarchy
    assert np.array_equal(found.top, expected.top)


def test_levels_are_called_as_the_structures_call_them_unless_told_otherwise():
    item = [("sentence", [("word", "dog")])]
    assert Nested().decompose(NestedData([item])).names == ("level 0", "level 1", "examples")
    assert Nested().decompose(NestedData([item], levels=LEVELS)).names == LEVELS
    other = ("a", "b", "c")
    assert Nested(other).decompose(NestedData([item], levels=LEVELS)).names == other
    assert Nested().fit(NestedData([item], levels=LEVELS)).levels == LEVELS


def test_an_alphabet_holds_the_roles_that_are_used():
    both = NestedData([[("x", 1)], [("y", 2)]])
    one = Nested().decompose(both[:1])
    assert one.relations[0].alphabet == ("x",)
    assert one.attributes.vocabulary == Vocabulary([1])
    assert Nested().decompose(both[:0]).relations[0].alphabet == ("part",)


def test_structures_without_labels_fit_any_number_of_levels():
    nested = Nested().fit(NestedData([[("s", [("w", "dog")])]], levels=LEVELS))
    for listed, sizes in (([], (0, 0, 0)), ([[], []], (0, 0, 2)), ([[("s", [])]], (0, 1, 1))):
        hierarchy = nested.decompose(NestedData(listed))
        assert hierarchy.sizes == sizes
        assert [relation.alphabet for relation in hierarchy.relations] == [("w",), ("s",)]


# -- fitting -----------------------------------------------------------------------------------


@given(pairs_of_collections())
def test_once_fitted_other_labels_are_unseen_and_parts_in_other_roles_left_out(drawn):
    known, new, levels = drawn
    depth = len(levels) - 1
    nested = Nested(levels).fit(NestedData(known))
    labels = Vocabulary(label for item in known for label in reference.labels_within(item, depth))
    roles = [reference.roles_within(known, depth, level) for level in range(1, depth + 1)]
    assert nested.vocabulary == labels
    found = compress(nested.decompose(NestedData(new)))
    expected = compress(reference.naive(new, levels, roles, labels))
    assert found.hierarchy == expected.hierarchy
    assert np.array_equal(found.top, expected.top)
    # What was fitted is decomposed as without fitting, and fitting again forgets.
    structures = NestedData(known)
    assert nested.decompose(structures) == Nested(levels).decompose(structures)
    assert nested.fit(NestedData(new)) == Nested(levels).fit(NestedData(new))


def test_what_only_left_out_parts_are_made_of_is_left_out_too():
    nested = Nested(LEVELS).fit(NestedData([[("s", [("w", "dog")])]]))
    new = NestedData([[("s", [("w", "cat"), ("v", "dog")]), ("t", [("w", "dog")])]])
    hierarchy = nested.decompose(new)
    assert hierarchy.sizes == (1, 1, 1)
    assert hierarchy.attributes.codes.tolist() == [UNSEEN]
    # A role of one level is not a role of another.
    assert nested.decompose(NestedData([[("w", [("s", "dog")])]])).sizes == (0, 0, 1)


def test_counts_stay_where_roles_are_left_out():
    both = NestedData([[("x", 1)], [("a", 1), ("x", 2), ("x", 1), ("x", 1), ("y", 1)]])
    for hierarchy in (
        Nested().fit(both[:1]).decompose(both[1:]),
        Nested().decompose(both)[1:],
    ):
        counts = hierarchy.relations[0].matrix("x") @ hierarchy.attributes.matrix()
        assert counts.toarray()[0, 0] == 2


@given(collections())
def test_costs_are_labels_and_entries(drawn):
    listed, levels = drawn
    structures = NestedData(listed)
    expected = []
    for piece in structures:
        made = Nested(levels).decompose(piece)
        expected.append(made.sizes[0] + sum(relation.n_entries for relation in made.relations))
    assert Nested().costs(structures).tolist() == expected


# -- settings, files, estimators ---------------------------------------------------------------


def notes(n: int = 24) -> NestedData:
    """Notes about dogs, which bark in pairs of equal sentences, and about cats."""
    random = np.random.default_rng(0)
    listed, targets = [], []
    for number in range(n):
        words = random.choice(["the", "a", "big", f"rare {number % 7}"], 3)
        barks = [("word", "barks"), *(("word", str(word)) for word in words)]
        sleeps = [("word", "sleeps"), *(("word", str(word)) for word in words)]
        dog = number % 2 == 0
        title = [("title", [("word", "pets")])] if number % 3 == 0 else []
        sentences = [barks, barks, sleeps] if dog else [barks, sleeps, sleeps]
        listed.append([*title, *(("sentence", sentence) for sentence in sentences)])
        targets.append("dog" if dog else "cat")
    return NestedData(listed, targets, levels=LEVELS)


def test_estimators_learn_from_structures_and_are_saved(tmp_path):
    pets = notes(60)
    model = saen.SAENClassifier(Nested(), epochs=30, n_models=1).fit(pets[:40], pets.targets[:40])
    assert model.score(pets[40:], pets.targets[40:]) > 0.85
    strange = NestedData([[("verse", [("word", "the")]), ("sentence", [("word", "moo")])]])
    chances = model.predict_proba(strange)
    assert chances.shape == (1, 2)
    model.save(tmp_path / "notes.model")
    again = saen.load(tmp_path / "notes.model")
    assert np.array_equal(again.predict_proba(pets), model.predict_proba(pets))
    assert np.array_equal(again.predict_proba(strange), chances)


@pytest.mark.parametrize("levels", ["words", ("words",), ("words", "words"), ("words", 3), 7])
def test_levels_that_make_no_sense_are_refused(levels):
    with pytest.raises(InputError, match=r"^levels must be"):
        Nested(levels)


def test_structures_of_another_depth_and_other_things_are_refused():
    with refuses("the data have 3 levels, but there are 2 names: words, notes"):
        Nested(("words", "notes")).decompose(notes())
    with refuses("the data have 3 levels, but there are 4 names: a, b, c, d"):
        Nested(("a", "b", "c", "d")).decompose(notes())
    with refuses("the data have 3 levels, but there are 2 names: words, notes"):
        Nested(("words", "notes")).decompose(NestedData([[("s", [])]]))
    for other, kind in (([[("x", 1)]], "list"), (Graphs.from_edge_lists([[]]), "Graphs")):
        with refuses(
            f"nested takes saen.NestedData, not {kind}: convert a list with saen.NestedData(list)"
        ):
            Nested().decompose(other)
