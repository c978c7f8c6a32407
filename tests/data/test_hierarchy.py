from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from saen import Attributes, Graphs, Hierarchy, Relation, Vocabulary
from saen.data.compression import equivalent
from saen.decompositions import Ego
from tests.properties.strategies import (
    collections,
    graph_collections,
    hierarchies,
    orders,
    reordered,
    vocabularies,
)
from tests.references import hierarchies as reference
from tests.references.hierarchies import contents
from tests.refusals import refuses

CN = Vocabulary(["C", "N"])


def words(*codes: int) -> Attributes:
    return Attributes(np.array(codes, dtype=np.int64), CN)


def bags(indptr=(0, 2, 2, 3), parts=(0, 1, 1), roles=(0, 1, 0), **changes) -> Relation:
    settings = {"alphabet": ("root", "elem"), "n_parts": 2, **changes}
    return Relation(np.array(indptr), np.array(parts), np.array(roles), **settings)


@st.composite
def selections(draw):
    hierarchy = draw(hierarchies())
    row = st.integers(0, max(len(hierarchy) - 1, 0))
    return hierarchy, draw(st.lists(row, max_size=5 if len(hierarchy) else 0))


# -- attributes --------------------------------------------------------------------------------


@given(hierarchies())
def test_x_is_one_hot_labels_then_vectors(hierarchy):
    X = hierarchy.attributes.matrix()
    assert np.array_equal(X.toarray(), reference.attribute_matrix(hierarchy))
    assert X.shape == (len(hierarchy.attributes), hierarchy.attributes.width)


@given(hierarchies(kinds=("codes", "both")), vocabularies)
def test_recoding_keeps_the_labels_that_the_other_vocabulary_has(hierarchy, vocabulary):
    before = hierarchy.attributes
    after = before.recoded(vocabulary)
    assert after.vocabulary == vocabulary
    for old, new in zip(before.codes, after.codes, strict=True):
        value = before.vocabulary[old] if old >= 0 else None
        known = old >= 0 and value in vocabulary
        assert (vocabulary[new] == value) if known else new == -1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "bottom attributes need codes, vectors or both"),
        ({"codes": np.array([0])}, "codes and a vocabulary go together"),
        ({"vocabulary": CN, "vectors": np.zeros((1, 1))}, "codes and a vocabulary go together"),
        ({"codes": np.array([[0]]), "vocabulary": CN},
         "codes must be a flat array of signed integers"),
        ({"codes": np.array([0], np.uint8), "vocabulary": CN},
         "codes must be a flat array of signed integers"),
        ({"codes": np.array([0, 2]), "vocabulary": CN},
         "codes must lie between -1 (unseen) and 1, found 2"),
        ({"codes": np.array([0, -2]), "vocabulary": CN},
         "codes must lie between -1 (unseen) and 1, found -2"),
        ({"vectors": np.zeros(3)}, "vectors must be float32 or float64 of shape (n, p)"),
        ({"vectors": np.zeros((3, 1), np.int64)},
         "vectors must be float32 or float64 of shape (n, p)"),
        ({"codes": np.array([0]), "vocabulary": CN, "vectors": np.zeros((2, 1))},
         "1 codes, but 2 vectors"),
        ({"vectors": np.array([[0.0], [np.nan]])}, "the vector of bottom object 1 is not finite"),
    ],
)  # fmt: skip
def test_attributes_that_make_no_sense_are_refused(arguments, message):
    with refuses(message):
        Attributes(**arguments)


def test_attributes_are_equal_when_labels_and_numbers_are():
    assert words(0, 1) == words(0, 1)
    assert words(0, 1) != words(1, 0)
    assert words(0) != Attributes(np.array([0]), Vocabulary(["C"]))
    assert words(0) != Attributes(np.array([0]), CN, np.zeros((1, 1)))
    assert Attributes(vectors=np.zeros((1, 1))) != Attributes(vectors=np.ones((1, 1)))
    assert words(0) != "C"


def test_what_is_passed_in_is_neither_changed_nor_locked():
    codes, indptr, parts, roles = np.array([0, 1]), np.array([0, 1]), np.array([1]), np.array([0])
    made = Hierarchy(Attributes(codes, CN), [Relation(indptr, parts, roles, ("a",), 2)])
    for array in (codes, indptr, parts, roles):
        assert array.flags.writeable
    for array in (made.attributes.codes, made.relations[0].indptr, made.relations[0].parts):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


# -- relations ---------------------------------------------------------------------------------


@given(hierarchies())
def test_the_paper_s_matrices_count_the_entries_of_each_role(hierarchy):
    for relation in hierarchy.relations:
        expected = reference.relation_matrices(relation)
        for role, matrix in enumerate(expected):
            assert np.array_equal(relation.matrix(role).toarray(), matrix)
            assert np.array_equal(relation.matrix(relation.alphabet[role]).toarray(), matrix)
        assert np.array_equal(relation.matrix().toarray(), np.hstack(expected))


@given(hierarchies())
def test_a_canonical_relation_is_the_same_relation_sorted_and_merged(hierarchy):
    for relation in hierarchy.relations:
        canonical = relation.canonical()
        assert canonical == relation
        assert np.array_equal(canonical.matrix().toarray(), relation.matrix().toarray())
        for parent in range(canonical.n_parents):
            entries = [entry[:2] for entry in reference.entries_of(canonical, parent)]
            assert entries == sorted(set(entries))
        assert canonical.counts is None or canonical.counts.max() > 1


@given(hierarchies(), st.integers(0, 9), st.integers(0, 9))
def test_a_span_of_parents_is_what_taking_them_gives(hierarchy, start, length):
    for relation in hierarchy.relations:
        first = min(start, relation.n_parents)
        last = min(first + length, relation.n_parents)
        assert relation.span(first, last) == relation.take(np.arange(first, last))


@given(hierarchies())
def test_relations_are_equal_whatever_the_order_of_their_entries(hierarchy):
    same = [np.arange(size) for size in hierarchy.sizes]
    turned = reordered(hierarchy, same)
    assert turned == hierarchy
    for relation in hierarchy.relations:
        if relation.counts is None:
            assert replace(relation, counts=np.ones(relation.n_entries, int)) == relation
        else:
            assert (replace(relation, counts=None) == relation) == (relation.counts == 1).all()


def test_relations_differ_in_roles_parts_counts_and_names():
    assert bags() == bags()
    assert bags() != bags(roles=(0, 0, 0))
    assert bags() != bags(parts=(0, 0, 1))
    assert bags() != bags(n_parts=3)
    assert bags() != bags(counts=np.array([1, 2, 1]))
    assert bags() != bags(alphabet=("root", "part"))
    assert bags() != bags(indptr=(0, 1, 2, 3))
    assert bags() != 0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"indptr": ()}, "indptr must be a flat array of integers that starts with 0"),
        ({"indptr": (1, 3)}, "indptr must start at 0 and never decrease"),
        ({"indptr": (0, 2, 1, 3)}, "indptr must start at 0 and never decrease"),
        ({"indptr": (0, 2)}, "indptr ends at 2, with 3 parts and 3 roles"),
        ({"roles": (0, 1)}, "indptr ends at 3, with 3 parts and 2 roles"),
        ({"counts": np.array([1])}, "3 parts, but 1 counts"),
        ({"counts": np.array([1, 0, 1])}, "counts must be at least 1"),
        ({"parts": (0, 2, 1)}, "parts must lie between 0 and 1"),
        ({"parts": (0, -1, 1)}, "parts must lie between 0 and 1"),
        ({"roles": (0, 2, 1)}, "roles must lie between 0 and 1"),
        ({"roles": (0, -1, 1)}, "roles must lie between 0 and 1"),
        ({"parts": (0.0, 1.0, 1.0)}, "parts must be a flat array of integers"),
        ({"roles": ((0, 1, 1),)}, "roles must be a flat array of integers"),
        ({"alphabet": ()}, "role names must be distinct and at least one: ()"),
        ({"alphabet": ("a", "a")}, "role names must be distinct and at least one: ('a', 'a')"),
        ({"alphabet": ("a", "")}, "role names must be non-empty strings: ('a', '')"),
        ({"alphabet": (0, 1)}, "role names must be non-empty strings: (0, 1)"),
    ],
)
def test_relations_that_make_no_sense_are_refused(changes, message):
    with refuses(message):
        bags(**changes)


@pytest.mark.parametrize("role", ["part", 2, -1])
def test_an_unknown_role_has_no_matrix(role):
    with refuses(f"no role {role!r}: choose from root, elem"):
        bags().matrix(role)


def test_a_relation_says_what_it_is():
    assert repr(bags()) == "Relation(3 parents, 2 parts, 3 entries, roles: root, elem)"
    many = bags(alphabet=tuple("abcdefgh"))
    assert repr(many) == "Relation(3 parents, 2 parts, 3 entries, roles: a, b, c, d, e, f …)"


# -- hierarchies -------------------------------------------------------------------------------


@given(selections())
def test_selected_objects_are_what_they_were(case):
    hierarchy, rows = case
    top = contents(hierarchy)[-1]
    chosen = hierarchy[rows]
    assert contents(chosen)[-1] == [top[row] for row in rows]
    assert chosen.names == hierarchy.names


@given(selections())
def test_a_selection_holds_nothing_that_it_does_not_reach(case):
    hierarchy, rows = case
    chosen = hierarchy[rows]
    assert len(chosen) == len(rows)
    for relation in chosen.relations:
        assert np.unique(relation.parts).tolist() == list(range(relation.n_parts))


@given(graph_collections(), st.data())
def test_selecting_graphs_is_decomposing_them_alone(drawn, data):
    graphs, ego = drawn.graphs, Ego(radii=(0, 1, 2)).fit(drawn.graphs)
    row = st.integers(0, max(len(graphs) - 1, 0))
    rows = data.draw(st.lists(row, unique=True, max_size=4 if len(graphs) else 0))
    whole = ego.decompose(graphs)
    assert equivalent(whole[rows], ego.decompose(graphs[rows]))
    assert whole[sorted(rows)] == ego.decompose(graphs[sorted(rows)])


@given(collections())
def test_concatenation_keeps_every_object_of_every_level(parts):
    joined = contents(Hierarchy.concatenate(parts))
    apart = [contents(part) for part in parts]
    for level, objects in enumerate(joined):
        assert objects == [thing for part in apart for thing in part[level]]


@given(collections())
def test_what_was_concatenated_can_be_selected_again(parts):
    joined, start = Hierarchy.concatenate(parts), 0
    for part in parts:
        again = joined[np.arange(start, start + len(part))]
        everything = part[np.arange(len(part))]
        assert equivalent(again, everything)
        assert again.relations == everything.relations
        start += len(part)


@given(hierarchies(), st.data())
def test_hierarchies_in_another_order_are_equivalent_and_equal_only_if_the_same(hierarchy, data):
    other = reordered(hierarchy, data.draw(orders(hierarchy)))
    assert equivalent(hierarchy, other)
    if contents(hierarchy) != contents(other):
        assert hierarchy != other


def three() -> Hierarchy:
    graphs = Graphs.from_edge_lists([[(0, 1)], [(0, 1), (1, 2)], []], sizes=[2, 3, 1])
    return Ego(radii=(0, 1)).decompose(graphs)


def test_statistics_come_level_by_level():
    assert three().levels() == [
        {"level": 0, "name": "nodes", "objects": 6, "entries": 0, "roles": []},
        {
            "level": 1,
            "name": "ego graphs",
            "objects": 12,
            "entries": 18,
            "roles": ["root", "elem"],
        },
        {
            "level": 2,
            "name": "graphs",
            "objects": 3,
            "entries": 12,
            "roles": ["radius 0", "radius 1"],
        },
    ]
    assert repr(three()) == "Hierarchy(6 nodes → 12 ego graphs → 3 graphs)"
    assert (three().depth, three().sizes, three().shape, len(three())) == (2, (6, 12, 3), (3,), 3)


def test_levels_have_names_even_when_nobody_gives_any():
    assert Hierarchy(words(0, 1), [bags()]).names == ("level 0", "level 1")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((words(0, 1), []), "a hierarchy needs at least one relation"),
        ((words(0, 1, 0), [bags()]), "relation 1 has 2 parts, but level 0 has 3 objects"),
        ((words(0, 1), [bags(), bags()]), "relation 2 has 2 parts, but level 1 has 3 objects"),
        ((words(0, 1), [bags()], ("atoms",)), "2 levels, but 1 names"),
    ],
)  # fmt: skip
def test_hierarchies_that_make_no_sense_are_refused(arguments, message):
    with refuses(message):
        Hierarchy(*arguments)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ([], "nothing to concatenate: the list of hierarchies is empty"),
        (
            [Hierarchy(words(0, 1), [bags()]), Hierarchy(words(0, 1), [bags()], ("a", "b"))],
            "levels differ: ('level 0', 'level 1') and ('a', 'b')",
        ),
        (
            [
                Hierarchy(words(0, 1), [bags()]),
                Hierarchy(words(0, 1), [bags(alphabet=("elem", "root"))]),
            ],
            "roles of level 1 differ: ('root', 'elem'), ('elem', 'root')",
        ),
        (
            [
                Hierarchy(words(0, 1), [bags()]),
                Hierarchy(Attributes(vectors=np.zeros((2, 1))), [bags()]),
            ],
            "bottom attributes differ in kind (codes, vectors, or their width)",
        ),
        (
            [
                Hierarchy(Attributes(vectors=np.zeros((2, 2))), [bags()]),
                Hierarchy(Attributes(vectors=np.zeros((2, 1))), [bags()]),
            ],
            "bottom attributes differ in kind (codes, vectors, or their width)",
        ),
    ],
)
def test_hierarchies_that_do_not_fit_cannot_be_joined(parts, message):
    with refuses(message):
        Hierarchy.concatenate(parts)
