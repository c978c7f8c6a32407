"""Documents from spaCy."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from numpy.typing import ArrayLike

from saen.data.documents import Documents, Word
from saen.errors import InputError
from saen.io.formats.conllu import COLUMNS
from saen.io.options import WordColumn

_ATTRIBUTES = {"form": "text", "lemma": "lemma_", "upos": "pos_"}


def from_spacy(
    docs: Iterable[Any],
    *,
    word: WordColumn = "form",
    lowercase: bool = True,
    targets: ArrayLike | None = None,
    name: str = "",
) -> Documents:
    """Build from parsed spaCy documents, as `nlp.pipe(texts)` returns them.

    Edges go from head to dependent, labelled by `token.dep_`.

    Parameters
    ----------
    docs : Iterable[Any]
        Parsed documents.
    word : WordColumn, default='form'
        What to read as the word: its `form`, its `lemma` or its part of speech (`upos`).
    lowercase : bool, default=True
        Whether to convert forms and lemmas to lower case.
    targets : ArrayLike | None, default=None
        One target per document.
    name : str, default=''
        The name of the dataset.

    Raises
    ------
    InputError
        If there are no sentences or no dependencies: the pipeline needs a parser; the message names
        the document.
    """
    if word not in COLUMNS:
        raise InputError(f"word must be one of {', '.join(COLUMNS)}, not {word!r}")
    attribute = _ATTRIBUTES[word]
    documents: list[list[list[Word]]] = []
    for number, doc in enumerate(docs):
        try:
            sentences = [list(sentence) for sentence in doc.sents]
        except ValueError:
            raise InputError(
                f"document {number} has no sentence boundaries: use a pipeline with a parser"
            ) from None
        except AttributeError:
            raise InputError(
                f"document {number}: expected a spaCy Doc, found {type(doc).__name__}"
            ) from None
        documents.append([_words(sentence, attribute) for sentence in sentences])
    words = [word for document in documents for sentence in document for word in sentence]
    if any(len(s) > 1 for d in documents for s in d) and all(head is None for _, head, _ in words):
        raise InputError("there are no dependencies: use a pipeline with a parser")
    if words and not any(text for text, _, _ in words):
        raise InputError(f"no word has a {word}: the pipeline does not set it")
    if lowercase and word != "upos":
        documents = [[[(w.lower(), h, r) for w, h, r in s] for s in d] for d in documents]
    return Documents.from_sentences(documents, targets=targets, name=name)


def _words(sentence: list[Any], attribute: str) -> list[Word]:
    first = sentence[0].i if sentence else 0
    return [
        (
            getattr(token, attribute),
            None if token.head.i == token.i else token.head.i - first,
            token.dep_,
        )
        for token in sentence
    ]
