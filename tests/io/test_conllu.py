from __future__ import annotations

import contextlib
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from saen.data.documents import Documents
from saen.errors import FileError, InputError, MissingExtraError
from saen.io.formats.conllu import read_conllu
from saen.io.libraries.spacy import from_spacy
from tests.io.refusals import refusal
from tests.properties.texts import parsed_documents

# The contraction and the elided verb of the format's own examples.
UD = """\
# newdoc id = first
# label = news
# sent_id = 1
1-2\tvámonos\t_\t_\t_\t_\t_\t_\t_\t_
1\tVamos\tir\tVERB\t_\tMood=Imp|Number=Plur\t0\troot\t_\t_
2\tnos\tnosotros\tPRON\t_\t_\t1\tobj\t_\t_
3-4\tal\t_\t_\t_\t_\t_\t_\t_\t_
3\ta\ta\tADP\t_\t_\t5\tcase\t_\t_
4\tel\tel\tDET\t_\t_\t5\tdet\t_\t_
5\tmar\tmar\tNOUN\t_\t_\t1\tobl\t_\tSpaceAfter=No

# sent_id = 2
# a comment without a key
1\tSue\tSue\tPROPN\t_\t_\t2\tnsubj\t2:nsubj|2.1:nsubj\t_
2\tlikes\tlike\tVERB\t_\t_\t0\troot\t_\t_
2.1\tlikes\tlike\tVERB\t_\t_\t_\t_\t2:conj\t_
3\ttea\ttea\tNOUN\t_\t_\t2\tobj\t_\t_

# newdoc
# label = a = b
1\tYes\tyes\tINTJ\t_\t_\t0\troot\t_\t_
"""


def written(plain, newdoc: bool = True) -> str:
    """CoNLL-U by hand."""
    blocks = []
    for document in plain:
        for number, sentence in enumerate(document):
            lines = ["# newdoc"] if newdoc and number == 0 else []
            for place, (word, head, relation) in enumerate(sentence, start=1):
                columns = [place, word, word, "X", "_", "_", 0 if head is None else head + 1]
                lines.append("\t".join(map(str, [*columns, relation, "_", "_"])))
            blocks.append("\n".join(lines) + "\n")
    return "\n".join(blocks)


# -- reading -----------------------------------------------------------------------------------


@given(parsed_documents(min_size=1))
def test_conllu_what_is_written_is_read_back(plain):
    plain = [document for document in plain if document] or [[[("x", None, "root")]]]
    documents = Documents.from_sentences(plain)
    assert read_conllu(written(plain)) == documents
    flat = Documents.from_sentences([[sentence] for document in plain for sentence in document])
    assert read_conllu(written(plain), split="sentence") == flat
    unmarked = written(plain, newdoc=False)
    assert read_conllu(unmarked) == flat
    joined = [[sentence for document in plain for sentence in document]]
    assert read_conllu(unmarked, split="newdoc") == Documents.from_sentences(joined)


def test_conllu_a_file_is_read_as_its_text(tmp_path):
    path = tmp_path / "toy.conllu"
    path.write_text(UD, encoding="utf-8")
    documents = read_conllu(path)
    assert documents == read_conllu(UD) == read_conllu(str(path))
    assert documents.name == "toy"
    assert read_conllu(path, name="other").name == "other"
    path.write_bytes(b"\xef\xbb\xbf" + UD.replace("\n", "\r\n").encode())
    assert read_conllu(path) == documents


def test_conllu_multiword_tokens_and_empty_nodes_are_skipped():
    documents = read_conllu(UD)
    assert documents.words.tolist() == [
        *("vamos", "nos", "a", "el", "mar"),
        *("sue", "likes", "tea"),
        "yes",
    ]
    assert documents.sizes.tolist() == [2, 1]
    first = documents.sentences[0]
    assert first.directed
    assert first.edges().tolist() == [[0, 1], [0, 4], [4, 2], [4, 3]]
    assert first.edge_labels.tolist() == ["obj", "obl", "case", "det"]
    assert documents.sentences[2].n_edges == 0


def test_conllu_a_word_is_its_form_its_lemma_or_its_part_of_speech():
    assert read_conllu(UD, lowercase=False).words.tolist()[5:] == ["Sue", "likes", "tea", "Yes"]
    assert read_conllu(UD, word="lemma").words.tolist()[5:7] == ["sue", "like"]
    assert read_conllu(UD, word="upos").words.tolist()[5:7] == ["PROPN", "VERB"]


def test_conllu_the_class_is_a_comment_of_the_first_sentence():
    assert read_conllu(UD).targets.tolist() == ["news", "a = b"]
    assert read_conllu(UD, target=None).targets is None
    assert read_conllu(UD, target="none").targets is None
    assert read_conllu(UD.replace("# label", "# target")).targets.tolist() == ["news", "a = b"]
    assert read_conllu(UD.replace("# label", "# topic"), target="topic") == read_conllu(UD)
    other = UD.replace("# sent_id = 2", "# label = not the document's")
    assert read_conllu(other).targets.tolist() == ["news", "a = b"]


def test_conllu_what_stands_before_the_first_mark_is_a_document():
    assert read_conllu(UD.replace("# newdoc id = first\n", "")).sizes.tolist() == [2, 1]


# -- what is wrong -----------------------------------------------------------------------------

GOOD = "1\tDogs\tdog\tNOUN\t_\t_\t2\tnsubj\t_\t_\n2\tbite\tbite\tVERB\t_\t_\t0\troot\t_\t_\n\n"


def row(head, place=1) -> str:
    return f"{place}\tA\ta\tX\t_\t_\t{head}\tdet\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", ": no sentences"),
        ("\n\n", ": no sentences"),
        (
            GOOD + "1 Dogs dog\n",
            ", line 4: invalid CoNLL-U: Invalid line format, line must contain ",
        ),
        (GOOD + row(0, "x"), ", line 4: invalid CoNLL-U: Failed parsing field 'id': 'x' is not "),
        (GOOD + row(0, "4-3"), ", line 4: invalid CoNLL-U: Failed parsing field 'id': '4-3' "),
        (
            GOOD + "# a comment\n" + row("x"),
            ", line 5: invalid CoNLL-U: Failed parsing field 'head'",
        ),
        (GOOD + "1\tA\ta\n", ", line 4: 3 columns, expected 10"),
        (GOOD + "1\tA\ta\tX\t_\t_\t0\n", ", line 4: 7 columns, expected 10"),
        (GOOD + row(0, 2), ", line 4: the id of a word is 2, expected 1"),
        (GOOD + row(0, "_"), ", line 4: the id of a word is None, expected 1"),
        (GOOD + row("_"), ", line 4: word 1 has no head: the text is not parsed"),
        (GOOD + "\n\n# x\n" + row(2), ", line 7: the head of word 1 is 2, expected 0 or another "),
        (GOOD + row(1), ", line 4: the head of word 1 is 1, expected 0 or another word of the "),
        (GOOD + row(-1), ", line 4: the head of word 1 is -1, expected 0 or another word of the "),
        ("# only a comment\n\n" + GOOD, ", line 1: a sentence without words"),
        ("\n1-2\tab\t_\t_\t_\t_\t_\t_\t_\t_\n\n" + GOOD, ", line 2: a sentence without words"),
        ("# label = x\n" + GOOD + GOOD, ", line 5: document 1 has no comment '# label = …', but "),
        (
            "# label =\n" + GOOD + "# label = x\n" + GOOD,
            ", line 1: document 0 has no comment '# la",
        ),
        (GOOD.encode() + b"# \xc3\xa9\xff\n", ", line 4: not UTF-8 (byte 0xff at column 5)"),
    ],
)
def test_conllu_a_file_that_is_no_parse_is_refused_with_its_line(text, message, tmp_path):
    path = tmp_path / "toy.conllu"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    assert refusal(FileError, read_conllu, path).startswith(f"{path}{message}")


def test_conllu_files_that_cannot_be_read_are_named(tmp_path):
    for path, message in (
        (tmp_path / "none.conllu", "no such file or folder"),
        (tmp_path, "cannot be read (Is a directory)"),
    ):
        assert refusal(FileError, read_conllu, path) == f"{path}: {message}"
    assert refusal(FileError, read_conllu, "1\tA\n") == "text, line 1: 2 columns, expected 10"


def test_conllu_lemmas_that_no_word_has_are_refused():
    assert (
        refusal(
            FileError,
            read_conllu,
            GOOD.replace("\tdog\t", "\t_\t").replace("\tbite\tV", "\t_\tV"),
            word="lemma",
        )
        == "text: no word has a lemma"
    )


@given(st.text(max_size=60), st.integers(0, len(UD)))
def test_conllu_any_text_gives_documents_or_a_clear_error(noise, place):
    with contextlib.suppress(FileError):
        assert isinstance(read_conllu(UD[:place] + noise + UD[place:]), Documents)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"word": "xpos"}, "word must be one of form, lemma, upos, not 'xpos'"),
        ({"split": "newpar"}, "split must be one of auto, newdoc, sentence, not 'newpar'"),
    ],
)
def test_conllu_options_that_are_invalid_are_refused(options, message):
    assert refusal(InputError, read_conllu, UD, **options) == message


def test_conllu_without_the_package_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "conllu.parser", None)
    assert (
        refusal(MissingExtraError, read_conllu, UD) == 'this needs conllu: pip install "saen[text]"'
    )


# -- spaCy -------------------------------------------------------------------------------------


class Token:
    """As much of spaCy's token as is used."""

    def __init__(self, i, text, dep):
        self.i, self.text, self.dep_, self.lemma_, self.pos_ = i, text, dep, text.lower(), "X"
        self.head = self


class Doc:
    """As much of spaCy's document as is used."""

    def __init__(self, sentences):
        self.sents, start = [], 0
        for sentence in sentences:
            tokens = [Token(start + i, w, r) for i, (w, _, r) in enumerate(sentence)]
            for token, (_, head, _) in zip(tokens, sentence, strict=True):
                token.head = token if head is None else tokens[head]
            self.sents.append(tokens)
            start += len(tokens)


@given(parsed_documents())
def test_spacy_documents_keep_every_word_head_and_relation(plain):
    words = [word for document in plain for sentence in document for word, _, _ in sentence]
    arcs = [h for d in plain for s in d for _, h, _ in s if h is not None]
    if (words and not any(words)) or not arcs:
        return
    assert from_spacy(map(Doc, plain)) == Documents.from_sentences(plain)


def test_spacy_itself_is_read():
    spacy = pytest.importorskip("spacy")
    tokens = pytest.importorskip("spacy.tokens")
    vocab = spacy.blank("en").vocab
    docs = [
        tokens.Doc(
            vocab,
            words=["Dogs", "bite", "men", ".", "So", "what"],
            heads=[1, 1, 1, 1, 5, 5],
            deps=["nsubj", "ROOT", "obj", "punct", "advmod", "ROOT"],
            lemmas=["dog", "bite", "man", ".", "so", "what"],
            pos=["NOUN", "VERB", "NOUN", "PUNCT", "ADV", "PRON"],
            sent_starts=[True, False, False, False, True, False],
        ),
        tokens.Doc(vocab, words=[]),
        tokens.Doc(vocab, words=["Yes"], heads=[0], deps=["ROOT"], sent_starts=[True]),
    ]
    documents = from_spacy(docs, targets=[1, 0, 0], name="spaCy")
    first = [("dogs", 1, "nsubj"), ("bite", None, ""), ("men", 1, "obj"), (".", 1, "punct")]
    second = [("so", 1, "advmod"), ("what", None, "")]
    plain = [[first, second], [], [[("yes", None, "")]]]
    assert documents == Documents.from_sentences(plain, targets=[1, 0, 0])
    assert documents.name == "spaCy"
    assert from_spacy(docs, lowercase=False).words[0] == "Dogs"
    assert from_spacy(docs[:1], word="lemma").words[2] == "man"
    assert from_spacy(docs[:1], word="upos").words[2] == "NOUN"
    assert refusal(
        InputError, from_spacy, [docs[0], tokens.Doc(vocab, words=["not", "parsed"])]
    ) == ("document 1 has no sentence boundaries: use a pipeline with a parser")


@pytest.mark.parametrize(
    ("docs", "options", "message"),
    [
        (["text"], {}, "document 0: expected a spaCy Doc, found str"),
        ([Doc([])], {"word": "tag"}, "word must be one of form, lemma, upos, not 'tag'"),
        (
            [Doc([[("a", None, ""), ("b", None, "")]])],
            {},
            "there are no dependencies: use a pipeline with a parser",
        ),
        (
            [Doc([[("", None, "")]])],
            {"word": "lemma"},
            "no word has a lemma: the pipeline does not set it",
        ),
    ],
)
def test_conllu_what_spacy_did_not_parse_is_refused(docs, options, message):
    assert refusal(InputError, from_spacy, docs, **options) == message


def test_conllu_no_documents_are_an_empty_collection():
    assert from_spacy([]) == Documents.from_sentences([])
    assert np.array_equal(from_spacy([Doc([])]).offsets, [0, 0])
