from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from saen import Graphs
from saen.data.documents import Documents
from tests.properties.texts import drawn_documents, parsed_documents
from tests.refusals import refuses

BITE = [("dogs", 1, "nsubj"), ("bite", None, "root"), ("men", 1, "obj")]
SLEEP = [("men", 1, "nsubj"), ("sleep", None, "root")]
YES = [("yes", None, "root")]


def unpacked(documents: Documents) -> list[list[list[tuple[str, int | None, str]]]]:
    """Back to lists of lists of words, through the plain arrays."""
    out = []
    for first, last in zip(documents.offsets[:-1], documents.offsets[1:], strict=True):
        sentences = []
        for sentence in range(first, last):
            graph = documents.sentences[sentence]
            heads = {int(v): (int(u), None) for u, v in graph.edges()}
            labels = {
                int(v): str(r) for (_, v), r in zip(graph.edges(), graph.edge_labels, strict=True)
            }
            sentences.append(
                [
                    (str(word), heads[i][0], labels[i]) if i in heads else (str(word), None, "root")
                    for i, word in enumerate(graph.node_labels)
                ]
            )
        out.append(sentences)
    return out


@given(parsed_documents())
def test_documents_keep_every_word_head_and_relation(plain):
    documents = Documents.from_sentences(plain)
    assert unpacked(documents) == plain
    assert len(documents) == len(plain)
    assert documents.shape == (len(plain),)
    assert documents.sizes.tolist() == [len(document) for document in plain]
    words = [[word for sentence in document for word, _, _ in sentence] for document in plain]
    assert documents.words.tolist() == [word for document in words for word in document]
    assert np.diff(documents.word_offsets).tolist() == [len(document) for document in words]


@given(parsed_documents(), st.data())
def test_a_choice_of_documents_is_the_collection_of_the_chosen(plain, data):
    targets = np.arange(len(plain))
    documents = Documents.from_sentences(plain, targets=targets)
    rows = data.draw(st.lists(st.integers(0, len(plain) - 1), max_size=5)) if plain else []
    for key, chosen in ((rows, rows), (slice(1, None), list(range(1, len(plain))))):
        expected = Documents.from_sentences([plain[i] for i in chosen], targets=targets[chosen])
        assert documents[key] == expected


@given(st.lists(parsed_documents(), min_size=1, max_size=3))
def test_joined_collections_are_the_collection_of_all(parts):
    whole = Documents.from_sentences([document for part in parts for document in part])
    assert Documents.concatenate(map(Documents.from_sentences, parts)) == whole


def test_documents_tell_what_they_hold():
    documents = Documents.from_sentences([[BITE, SLEEP], []], targets=["x", "x"], name="toy")
    assert repr(documents) == "Documents(toy: 2 documents, 2 sentences, 5 words; 1 class)"
    assert documents.summary() == {
        "documents": 2,
        "sentences": 2,
        "words": 5,
        "distinct_words": 4,
        "relations": 2,
        "average_sentences": 1.0,
        "average_words": 2.5,
        "longest_sentence": 3,
        "classes": {"x": 2},
    }
    assert "classes" not in documents.with_targets([0.5, 1.5]).summary()
    nothing = Documents.from_sentences([])
    assert repr(nothing) == "Documents(0 documents, 0 sentences, 0 words)"
    assert nothing.summary()["average_words"] == 0


def test_documents_are_equal_by_content():
    documents = Documents.from_sentences([[BITE, SLEEP]], targets=[1])
    assert documents == Documents.from_sentences([[BITE, SLEEP]], targets=[1], name="other")
    assert documents != Documents.from_sentences([[SLEEP, BITE]], targets=[1])
    assert documents != Documents.from_sentences([[BITE], [SLEEP]], targets=[1, 1])
    assert documents != "documents"


def test_nothing_can_change_a_collection():
    offsets, targets = np.array([0, 1]), np.array(["a"])
    graph = Graphs.from_edge_lists([[(0, 1)]], node_labels=["x", "y"])
    documents = Documents(graph, offsets, targets)
    offsets[1], targets[0] = 0, "b"
    assert documents.offsets.tolist() == [0, 1]
    assert documents.targets.tolist() == ["a"]
    again = pickle.loads(pickle.dumps(documents))
    assert again == documents
    for kept in (documents, again, documents[:1], documents[[0]]):
        for array in (kept.offsets, kept.targets):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = array[0]


WORDS = Graphs.from_edge_lists([[(0, 1)]], node_labels=["x", "y"])


@pytest.mark.parametrize(
    ("sentences", "offsets", "targets", "message"),
    [
        ([], [0], None, "sentences must be Graphs, not list"),
        (
            Graphs.from_edge_lists([[(0, 1)]]),
            [0, 1],
            None,
            "the node labels of sentences must be their words, one string each, found none",
        ),
        (
            Graphs.from_edge_lists([[(0, 1)]], node_labels=[1, 2]),
            [0, 1],
            None,
            "the node labels of sentences must be their words, one string each, "
            "found int64 of shape (2,)",
        ),
        (WORDS, [], None, "offsets must be a flat array of integers that starts with 0"),
        (WORDS, [0.0], None, "offsets must be a flat array of integers that starts with 0"),
        (WORDS, [1, 1], None, "offsets must start at 0 and never decrease"),
        (WORDS, [0, 1, 0], None, "offsets must start at 0 and never decrease"),
        (WORDS, [0, 2], None, "offsets must end at 1, the number of sentences, not at 2"),
        (WORDS, [0, 1], [1, 2], "targets: expected 1 rows, found shape (2,)"),
        (WORDS, [0, 1], [None], "targets must be numbers or strings, not object"),
    ],
)
def test_what_makes_no_collection_is_refused(sentences, offsets, targets, message):
    with refuses(message):
        Documents(sentences, np.array(offsets), None if targets is None else np.array(targets))


@pytest.mark.parametrize("head", [-1, 2, 0])
def test_a_head_is_another_word_of_the_sentence(head):
    with refuses(
        f"document 1, sentence 1: the head of word 0 is {head}, expected another of its 2 words, "
        "counted from 0, or None"
    ):
        Documents.from_sentences([[YES], [YES, [("a", head, "x"), ("b", None, "root")]]])


@given(drawn_documents())
def test_sentences_of_any_shape_make_documents(documents):
    assert documents[np.arange(len(documents))] == documents
