from __future__ import annotations

import json
import os
from collections import Counter
from dataclasses import replace
from itertools import combinations, pairwise, product

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import saen
from saen import FileError, Graphs, Hierarchy, InputError, Vocabulary, compress
from saen.data.compression import equivalent
from saen.data.documents import Documents
from saen.data.vocabulary import UNSEEN
from saen.decompositions import DependencyPaths
from saen.decompositions.registry import decomposition_from_json, decomposition_to_json
from tests.properties.texts import drawn_documents, parsed_documents
from tests.references.hierarchies import contents
from tests.refusals import refuses

BITE = [("dogs", 1, "nsubj"), ("bite", None, "root"), ("men", 1, "obj")]
HOWL = [("dogs", 1, "nsubj"), ("howl", None, "root")]
YES = [("yes", None, "root")]

any_length = st.integers(0, 5)
truth = st.booleans()


# -- the definition, by networkx and nested Python values --------------------------------------


def arcs_of(sentence: Graphs) -> dict[tuple[int, int], set[str]]:
    """What a step from one word to another may be called."""
    steps: dict[tuple[int, int], set[str]] = {}
    labels = sentence.edge_labels
    for u in range(sentence.n_nodes):
        for entry in range(sentence.indptr[u], sentence.indptr[u + 1]):
            v = int(sentence.indices[entry])
            name = "" if labels is None else str(labels[entry])
            ways = ("out", "in") if sentence.directed else ("", "")
            for pair, way in (((u, v), ways[0]), ((v, u), ways[1]))[: 1 + sentence.directed]:
                steps.setdefault(pair, set()).add(" ".join(filter(None, [name, way])))
    return steps


def expected_sentence(sentence: Graphs, text: DependencyPaths) -> frozenset:
    """The multiset of (length, path), a path the multiset of (role, word)."""
    steps = arcs_of(sentence)
    words = [str(word) for word in sentence.node_labels]
    graph = nx.Graph(list(steps))
    graph.add_nodes_from(range(sentence.n_nodes))
    found = [[node] for node in graph]
    for u, v in combinations(sorted(graph), 2):
        if nx.has_path(graph, u, v):
            found += list(nx.all_shortest_paths(graph, u, v))

    def names(path: list[int]) -> list[list[str]]:
        return [sorted(steps[pair]) for pair in pairwise(path)]

    def reading(path: list[int]) -> tuple:
        content = [words[node] for node in path]
        return content, [(kinds[0], kinds[-1]) for kinds in names(path)] if text.relations else []

    def parts(path: list[int]) -> frozenset:
        out = Counter()
        for i, node in enumerate(path):
            word = (("label", words[node]), None)
            if text.relations and i:
                for kind in names(path)[i - 1]:
                    out[f"index {i} {kind}", word] += 1
            else:
                out[f"index {i}", word] += 1
        return frozenset(out.items())

    out = Counter()
    for path in found:
        if len(path) > text.max_length + 1:
            continue
        readings = [path] if len(path) == 1 else [path, path[::-1]]
        if not text.both_ways:
            readings = [min(readings, key=reading)]
        out.update((f"length {len(path) - 1}", parts(one)) for one in readings)
    return frozenset(out.items())


@pytest.mark.parametrize("both_ways", [False, True])
@given(drawn_documents(), any_length)
def test_sentences_are_made_of_their_shortest_paths(both_ways, documents, max_length):
    text = DependencyPaths(max_length, both_ways=both_ways)
    hierarchy = text.decompose(documents)
    sentences = [expected_sentence(sentence, text) for sentence in documents.sentences]
    found = contents(hierarchy)
    assert found[2] == sentences
    assert found[3] == [
        frozenset(Counter(("sentence", one) for one in sentences[first:last]).items())
        for first, last in zip(documents.offsets[:-1], documents.offsets[1:], strict=True)
    ]
    assert hierarchy.sizes[1] == sum(n for sentence in sentences for _, n in sentence)
    alphabets = [relation.alphabet for relation in hierarchy.relations]
    indices, lengths = (
        tuple(f"{what} {i}" for i in range(max_length + 1)) for what in ("index", "length")
    )
    assert alphabets == [indices, lengths, ("sentence",)]


@pytest.mark.parametrize("both_ways", [False, True])
@given(drawn_documents(labelled=True), any_length)
def test_with_relations_arcs_are_roles_of_the_words_they_lead_to(both_ways, documents, max_length):
    text = DependencyPaths(max_length, relations=True, both_ways=both_ways)
    sentences = [expected_sentence(sentence, text) for sentence in documents.sentences]
    assert contents(text.decompose(documents))[2] == sentences
    fitted = text.fit(documents)
    assert fitted.decompose(documents) == text.decompose(documents)
    kinds = {
        kind
        for sentence in documents.sentences
        for pair, names in arcs_of(sentence).items()
        for kind in names
        if pair[0] != pair[1]
    }
    roles = text.decompose(documents).relations[0].alphabet
    assert set(roles) == {"index 0"} | {
        f"index {i} {kind}" for i, kind in product(range(1, max_length + 1), kinds)
    }


def test_who_does_what_to_whom_is_told_by_relations_alone():
    swapped = [("men", 1, "nsubj"), ("bite", None, "root"), ("dogs", 1, "obj")]
    documents = Documents.from_sentences([[BITE], [swapped]])
    assert len(set(compress(DependencyPaths().decompose(documents)).top.tolist())) == 1
    assert (
        len(set(compress(DependencyPaths(relations=True).decompose(documents)).top.tolist())) == 2
    )


# -- positions ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sizes", "buckets", "expected"),
    [
        ([1, 2, 3], 3, [0, 0, 2, 0, 1, 2]),
        ([0, 5, 0, 4], 3, [0, 1, 1, 2, 2, 0, 1, 1, 2]),
        ([6], 2, [0, 0, 0, 1, 1, 1]),
        ([3], 5, [0, 2, 4]),
    ],
)
def test_a_sentence_has_the_nearest_of_evenly_spaced_positions(sizes, buckets, expected):
    documents = Documents.from_sentences([[YES] * size for size in sizes])
    text = DependencyPaths(sentences="position", buckets=buckets)
    relation = text.decompose(documents).relations[2]
    assert relation.roles.tolist() == expected
    assert relation.alphabet == tuple(f"position {bucket}" for bucket in range(buckets))


@given(st.integers(1, 30), st.integers(2, 7))
def test_positions_go_from_the_first_to_the_last(size, buckets):
    documents = Documents.from_sentences([[YES] * size])
    roles = (
        DependencyPaths(sentences="position", buckets=buckets)
        .decompose(documents)
        .relations[2]
        .roles
    )
    for place, role in enumerate(roles.tolist()):
        away = [abs(place / max(size - 1, 1) - bucket / (buckets - 1)) for bucket in range(buckets)]
        assert away[role] <= min(away) + 1e-12
    assert roles[0] == 0
    assert size == 1 or roles[-1] == buckets - 1


# -- what does not matter ----------------------------------------------------------------------


@given(parsed_documents(), truth, truth, st.data())
def test_the_order_of_words_does_not_matter(plain, relations, both_ways, data):
    moved = []
    for document in plain:
        moved.append([])
        for sentence in document:
            place = data.draw(st.permutations(range(len(sentence))))
            words = {
                place[i]: (word, None if head is None else place[head], relation)
                for i, (word, head, relation) in enumerate(sentence)
            }
            moved[-1].append([words[i] for i in range(len(sentence))])
    one, other = map(Documents.from_sentences, (plain, moved))
    text = DependencyPaths(relations=relations, both_ways=both_ways).fit(one)
    assert equivalent(text.decompose(one), text.decompose(other))


def test_arcs_both_ways_between_two_words_all_decide_how_a_path_is_read():
    arcs = {(0, 1): "x", (1, 0): "z", (2, 1): "x", (1, 2): "y"}
    hierarchies = []
    for place in ([0, 1, 2], [2, 1, 0]):
        sentence = Graphs.from_edge_lists(
            [[(place[u], place[v]) for u, v in arcs]],
            directed=True,
            node_labels=["a", "b", "a"],
            edge_labels=list(arcs.values()),
        )
        documents = Documents(sentence, np.array([0, 1]))
        hierarchies.append(DependencyPaths(relations=True).decompose(documents))
    assert equivalent(*hierarchies)


@given(parsed_documents(), truth, st.data())
def test_the_order_of_sentences_matters_only_by_their_positions(plain, relations, data):
    moved = [data.draw(st.permutations(document)) for document in plain]
    text = DependencyPaths(relations=relations)
    one, other = map(Documents.from_sentences, (plain, moved))
    assert equivalent(text.decompose(one), text.decompose(other))
    placed = replace(text, sentences="position")
    one, other = (Documents.from_sentences([sentences]) for sentences in ([BITE, YES], [YES, BITE]))
    assert not equivalent(placed.decompose(one), placed.decompose(other))


@given(parsed_documents(), any_length, truth)
def test_costs_are_never_below_the_entries_of_trees(plain, max_length, both_ways):
    documents = Documents.from_sentences(plain)
    text = DependencyPaths(max_length, both_ways=both_ways)
    words, paths, _ = text.decompose(documents).relations
    entries = np.diff(words.indptr[paths.indptr[documents.offsets]])
    costs = text.costs(documents)
    assert costs.shape == entries.shape
    assert (costs >= entries).all()


# -- what was seen -----------------------------------------------------------------------------


@given(parsed_documents(), parsed_documents(), truth)
def test_once_fitted_other_words_are_unseen_and_other_relations_left_out(known, new, relations):
    one, other = map(Documents.from_sentences, (known, new))
    text = DependencyPaths(relations=relations)
    fitted = text.fit(one)
    found, free = fitted.decompose(other), text.decompose(other)
    assert found.attributes.vocabulary == Vocabulary(one.words.tolist())
    for code, word in zip(found.attributes.codes, other.words.tolist(), strict=True):
        assert code == (UNSEEN if word not in one.words else fitted.vocabulary.codes([word])[0])
    assert found.relations[0].alphabet == text.decompose(one).relations[0].alphabet
    # Unseen words may turn paths round, so entries are counted by relation, not by direction.
    seen = {"", *one.sentences.edge_labels.tolist()}
    expected = {kind: n for kind, n in relations_of(free).items() if kind in seen}
    assert relations_of(found) == expected


def relations_of(hierarchy: Hierarchy) -> Counter[str]:
    relation = hierarchy.relations[0]
    return Counter(" ".join(relation.alphabet[role].split()[2:3]) for role in relation.roles)


def test_words_of_which_nothing_is_known_are_alike():
    text = DependencyPaths().fit(Documents.from_sentences([[BITE]]))
    new = [
        [[(word, 1, "nsubj"), ("bite", None, "root")]] for word in ("aardvarks", "zebras", "birds")
    ]
    assert len(compress(text.decompose(Documents.from_sentences(new))).hierarchy) == 1


# -- word vectors ------------------------------------------------------------------------------

VECTORS = "4 2\nbite 1 2\ndogs 0.5 -1\nmen 3 4\nzebras 7 8\n"


@pytest.fixture
def vectors(tmp_path):
    path = tmp_path / "vectors.txt"
    path.write_text(VECTORS)
    return path


@pytest.mark.parametrize("tune", [False, True])
def test_word_vectors_stand_for_words_or_beside_them(vectors, tune):
    documents = Documents.from_sentences([[BITE, HOWL]])
    text = DependencyPaths(vectors=vectors, tune=tune).fit(documents)
    attributes = text.decompose(documents).attributes
    assert attributes.vectors.tolist() == [[0.5, -1], [1, 2], [3, 4], [0.5, -1], [0, 0]]
    new = text.decompose(Documents.from_sentences([[[("zebras", None, "root")]]])).attributes
    assert new.vectors.tolist() == [[7, 8]]
    if tune:
        assert attributes.vocabulary == Vocabulary(["dogs", "bite", "men", "howl"])
        assert attributes.codes.tolist() == attributes.vocabulary.codes(documents.words).tolist()
        assert new.codes.tolist() == [UNSEEN]
    else:
        assert (attributes.codes, text.vocabulary) == (None, None)


@pytest.mark.parametrize("tune", [False, True])
def test_words_with_vectors_alone_have_an_order_on_paths(vectors, tune):
    vectors.write_text("x 1\ny 2\n")
    text = DependencyPaths(vectors=vectors, tune=tune).fit(
        Documents.from_sentences([[[("x", None, "root")]]])
    )
    one, other = ([("y", 1, "d"), ("x", None, "root")], [("x", None, "root"), ("y", 0, "d")])
    hierarchies = [text.decompose(Documents.from_sentences([[s]])) for s in (one, other)]
    assert equivalent(*hierarchies)


def test_a_file_without_any_of_the_words_is_refused(vectors):
    with refuses(f"{vectors}: has none of the documents' 2 distinct words", FileError):
        DependencyPaths(vectors=vectors).fit(Documents.from_sentences([[YES, HOWL[1:2]]]))


def test_a_file_that_changed_or_went_away_is_named(vectors):
    documents = Documents.from_sentences([[BITE]])
    text = DependencyPaths(vectors=vectors).fit(documents)
    assert text.decompose(documents).attributes.vectors.shape == (3, 2)
    vectors.write_text(VECTORS + "extra 1 2\n")
    with pytest.raises(FileError, match="not the word vectors that the model was trained with"):
        text.decompose(documents)
    vectors.unlink()
    with refuses(f"{vectors}: cannot be read (No such file or directory)", FileError):
        text.decompose(documents)


@pytest.mark.parametrize("place", ["/dev/zero", "pipe"])
def test_word_vectors_are_read_from_regular_files_only(place, tmp_path):
    path = tmp_path / place
    if place == "pipe":
        os.mkfifo(path)
    with pytest.raises(FileError, match="not a regular file"):
        DependencyPaths(vectors=path).fit(Documents.from_sentences([[BITE]]))


def test_word_vectors_in_a_file_are_a_name_and_a_digest(vectors):
    documents = Documents.from_sentences([[BITE]])
    text = DependencyPaths(vectors=vectors).fit(documents)
    document = json.loads(json.dumps(decomposition_to_json(text)))
    assert str(vectors.parent) not in json.dumps(document)
    assert document["file"]["name"] == "vectors.txt"
    again = decomposition_from_json(document)
    for use in (again.decompose, again.fit):
        with pytest.raises(InputError, match=r"word vectors of 'vectors\.txt': name that file"):
            use(documents)
    with pytest.raises(InputError, match="must not name a file"):
        decomposition_from_json(document | {"vectors": str(vectors)})
    moved = replace(again, vectors=vectors.rename(vectors.with_name("moved.txt")))
    assert moved.decompose(documents) == replace(text, vectors=moved.vectors).decompose(documents)


# -- settings ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"max_length": -1}, "max_length must be an integer ≥ 0, not -1"),
        ({"max_length": "2"}, "max_length must be an integer ≥ 0, not '2'"),
        ({"buckets": 1}, "buckets must be an integer ≥ 2, not 1"),
        ({"sentences": "place"}, "sentences must be one of none, position, not 'place'"),
        ({"relations": "yes"}, "relations must be True or False, not 'yes'"),
        ({"both_ways": 1}, "both_ways must be True or False, not 1"),
        ({"vectors": 3}, "vectors must be the path of a file, not 3"),
        ({"tune": True}, "tune=True needs vectors to correct"),
    ],
)
def test_settings_that_make_no_sense_are_refused(arguments, message):
    with refuses(message):
        DependencyPaths(**arguments)


@pytest.mark.parametrize("method", ["fit", "decompose", "costs"])
def test_other_structures_are_refused(method):
    with refuses(
        "dependency_paths takes Documents, not Graphs: read_conllu, from_spacy and "
        "Documents.from_sentences return them"
    ):
        getattr(DependencyPaths(), method)(Graphs.from_edge_lists([[(0, 1)]]))


@pytest.mark.parametrize("method", ["fit", "decompose"])
def test_relations_that_sentences_do_not_have_are_refused(method):
    words = Graphs.from_edge_lists([[(0, 1)]], node_labels=["a", "b"])
    with refuses("relations=True, but the arcs of these sentences have no labels"):
        getattr(DependencyPaths(relations=True), method)(Documents(words, np.array([0, 1])))


# -- estimators --------------------------------------------------------------------------------


def actors() -> Documents:
    """Animals act on people, or people on animals, with the same words."""
    sentences, targets = [], []
    for animal, person, verb in product(["dogs", "cats"], ["men", "boys"], ["bite", "see", "like"]):
        for subject, other, target in ((animal, person, "animals"), (person, animal, "people")):
            sentences.append([(subject, 1, "nsubj"), (verb, None, "root"), (other, 1, "obj")])
            targets.append(target)
    return Documents.from_sentences([[sentence] for sentence in sentences], targets=targets)


def test_an_estimator_takes_documents(tmp_path):
    documents = actors()
    model = saen.SAENClassifier(
        "dependency_paths(max_length=2, relations=True)", epochs=12, n_models=1
    )
    model.fit(documents, documents.targets)
    assert model.score(documents, documents.targets) == 1
    model.save(tmp_path / "model")
    again = saen.load(tmp_path / "model")
    assert np.array_equal(again.predict_proba(documents), model.predict_proba(documents))
    # Without relations the two sides of every pair are one object.
    blind = saen.SAENClassifier(DependencyPaths(), epochs=2, n_models=1).fit(
        documents, documents.targets
    )
    assert blind.score(documents, documents.targets) == 0.5
    new = Documents.from_sentences([[[("wolves", 1, "nsubj"), ("howl", None, "root")]], []])
    assert np.isfinite(model.predict_proba(new)).all()


@pytest.mark.parametrize("tune", [False, True])
def test_a_model_over_word_vectors_asks_for_their_file(vectors, tune, tmp_path):
    vectors.write_text("dogs 1 0\nmen 0 1\ncats 0.9 0\nboys 0 1.1\nwolves 1 0\n")
    documents = actors()
    text = DependencyPaths(max_length=1, relations=True, vectors=vectors, tune=tune)
    model = saen.SAENClassifier(text, epochs=2, n_models=1).fit(documents, documents.targets)
    model.save(tmp_path / "model")
    expected = model.predict_proba(documents)
    with pytest.raises(InputError, match="vectors=FILE"):
        saen.load(tmp_path / "model").predict(documents)
    moved = vectors.rename(tmp_path / "moved.txt")
    again = saen.load(tmp_path / "model", vectors=moved)
    assert np.array_equal(again.predict_proba(documents), expected)
    again.fit(documents, documents.targets)
    again.save(tmp_path / "again")
    third = saen.SAENClassifier.load(tmp_path / "again", vectors=moved)
    assert np.array_equal(third.predict_proba(documents), expected)
    moved.write_text("dogs 1 0\n")
    with pytest.raises(FileError, match="not the word vectors that the model was trained with"):
        saen.load(tmp_path / "model", vectors=moved)
