"""The paper's example of text: documents made of sentences made of dependency paths of words."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from saen._util.arrays import Array, segment_ids, segment_reduce
from saen._util.strings import plural
from saen.data.documents import Documents
from saen.data.graphs import Graphs
from saen.data.hierarchy import Attributes, Hierarchy, Relation
from saen.data.vocabulary import UNSEEN, Vocabulary
from saen.decompositions.base import (
    FITTED,
    Anchors,
    Decomposition,
    integer,
    one_of,
    true_or_false,
)
from saen.decompositions.edge_roles import Links
from saen.decompositions.ego import Ego
from saen.decompositions.path_parts import Steps, path_relations
from saen.decompositions.shortest_paths import Reader, shortest_paths
from saen.errors import FileError, InputError
from saen.io.word_vectors import VectorsFile, read_word_vectors


@dataclass(frozen=True)
class DependencyPaths(Decomposition):
    """Shortest paths in the dependency graph of every sentence.

    - level 0: words;
    - level 1: shortest paths of at most `max_length` arcs (a word alone is one of length 0), the
      words with role `index i`;
    - level 2: sentences, with the length of each path as its role, `length k`;
    - level 3: documents, with one role `sentence`, or with `sentences="position"` the roles
      `position 0` … : as many evenly spaced places as `buckets` says, from the first sentence to
      the last, of which a sentence has the nearest (the later of two).

    Paths follow arcs both ways. A path and its reverse are one, read in the direction in which its
    words come first, unless `both_ways` keeps both readings. With `relations` the word at index
    i > 0 has the role `index i RELATION out` where the step to it leads from head to dependent,
    `index i RELATION in` where it leads from dependent to head (and neither where sentences are
    undirected); relations that `fit` did not see are left out.

    Words are distinguished by a vocabulary, or with `vectors` by the vectors of a file in the text
    format of word2vec or GloVe, zeros for a word that it lacks. These stay as they are, unless
    `tune` gives every word of the vocabulary a trainable correction beside its vector. The file is
    read whenever documents are decomposed: words that `fit` did not see have their vectors too.
    Once fitted, it must have the content that `fit` saw; a saved model knows its name and digest
    (`file`), not its path.

    >>> bite = [("dogs", 1, "nsubj"), ("bite", None, "root"), ("men", 1, "obj")]
    >>> hierarchy = DependencyPaths().decompose(Documents.from_sentences([[bite]]))
    >>> hierarchy
    Hierarchy(3 words → 6 paths → 1 sentences → 1 documents)
    >>> hierarchy.relations[0].matrix("index 1").toarray()[-1]  # dogs – bite – men
    array([0, 1, 0])
    """

    name: ClassVar[str] = "dependency_paths"
    takes: ClassVar[str] = "documents"

    max_length: int = field(default=4, metadata={"help": "maximum number of arcs of a path"})
    sentences: str = field(
        default="none", metadata={"help": "roles of sentences: none, or their position"}
    )
    buckets: int = field(default=3, metadata={"help": "number of positions of sentences"})
    relations: bool = field(
        default=False, metadata={"help": "dependency relations as roles of the words"}
    )
    both_ways: bool = field(default=False, metadata={"help": "read paths in both directions"})
    vectors: str | os.PathLike[str] | None = field(
        default=None,
        metadata={"help": "file of word vectors, as word2vec and GloVe write them", "path": True},
    )
    tune: bool = field(default=False, metadata={"help": "learn corrections of the word vectors"})
    kinds: Vocabulary | None = field(default=None, kw_only=True, metadata=FITTED)
    file: VectorsFile | None = field(default=None, kw_only=True, metadata={"fitted": VectorsFile})

    def __post_init__(self) -> None:
        object.__setattr__(self, "max_length", integer("max_length", self.max_length, 0))
        object.__setattr__(self, "buckets", integer("buckets", self.buckets, 2))
        one_of("sentences", self.sentences, ("none", "position"))
        for name in ("relations", "both_ways", "tune"):
            true_or_false(name, getattr(self, name))
        if self.tune and not self._has_vectors:
            raise InputError("tune=True needs vectors to correct")
        if self.vectors is not None:
            if not isinstance(self.vectors, str | os.PathLike):
                raise InputError(f"vectors must be the path of a file, not {self.vectors!r}")
            object.__setattr__(self, "vectors", os.fspath(self.vectors))

    def resolved(self, documents: Documents) -> Self:
        """A copy with the dependency relations of these documents."""
        if self.file is not None and self.vectors is None:
            self.file.check(None)  # says that the file must be named again
        fresh = super().resolved(_checked(documents))
        if self.vectors is not None:
            fresh = replace(fresh, file=VectorsFile.of(self.vectors))
        if not self.relations:
            return fresh
        return replace(fresh, kinds=Vocabulary.fit(_links(documents.sentences).kinds)[0])

    def bottom_vocabulary(self, documents: Documents) -> Vocabulary | None:
        """The words; None where only their vectors count."""
        words = np.unique(documents.words).tolist()
        if self._has_vectors and words and not self._read_vectors(words)[0]:
            distinct = plural(len(words), "distinct word")
            raise FileError(f"has none of the documents' {distinct}", path=str(self.vectors))
        return Vocabulary(words) if not self._has_vectors or self.tune else None

    def decompose(self, documents: Documents) -> Hierarchy:
        """The hierarchy of these documents; once fitted, other words and relations are unseen."""
        sentences = _checked(documents).sentences
        attributes, ranks = self._words(documents.words)
        steps = self._steps(sentences)
        reader = Reader.of(steps.adjacency, ranks)
        paths = shortest_paths(steps.adjacency, self.max_length, both_ways=self.both_ways)
        if not self.both_ways:
            paths = [reader.oriented(rows) for rows in paths]
        owners = segment_ids(sentences.node_offsets)
        sizes = len(attributes), len(sentences)
        return Hierarchy(
            attributes,
            (*path_relations(paths, steps, reader, owners, sizes), self._documents(documents)),
            ("words", "paths", "sentences", "documents"),
        )

    def anchors(self, documents: Documents) -> Anchors:
        """Bottom objects are words, the nodes of `documents.sentences`."""
        return Anchors((np.arange(len(documents.words)), None, None, None), (None,) * 4)

    def costs(self, documents: Documents) -> NDArray[np.int64]:
        """Upper bound of the entries of R_1 per document where sentences are trees, shape (D,)."""
        sentences = _checked(documents).sentences
        pairs = Ego(radii=(self.max_length,)).costs(sentences)  # ends of a path, in either order
        paths = pairs if self.both_ways else (pairs + sentences.sizes) // 2
        entries = segment_reduce(np.add, paths * (self.max_length + 1), documents.offsets)
        return entries.astype(np.int64)

    @property
    def _has_vectors(self) -> bool:
        return self.vectors is not None or self.file is not None

    def _read_vectors(self, words: list[str]) -> tuple[list[str], NDArray[np.float32]]:
        path = self.vectors if self.file is None else self.file.check(self.vectors)
        assert path is not None
        return read_word_vectors(path, words)

    def _words(self, words: Array) -> tuple[Attributes, NDArray[np.int64]]:
        """Bottom attributes, and the order in which words come on paths, shape (N,)."""
        distinct, local = np.unique(words, return_inverse=True)
        values = distinct.tolist()
        known = np.zeros(len(values), dtype=np.bool_)
        codes = vocabulary = vectors = None
        if not self._has_vectors or self.tune:
            vocabulary = Vocabulary(values) if self.vocabulary is None else self.vocabulary
            own = vocabulary.codes(values)
            known |= own != UNSEEN
            codes = own[local]
        if self._has_vectors:
            present, rows = self._read_vectors(values)
            places = np.searchsorted(distinct, np.array(present, dtype=distinct.dtype))
            table = np.zeros((len(values), rows.shape[1]), dtype=np.float32)
            table[places] = rows
            known[places] = True
            vectors = table[local]
        # Words that are neither in the vocabulary nor in the file are all the same.
        ranks = np.where(known, np.arange(len(values)), UNSEEN)
        return Attributes(codes, vocabulary, vectors), ranks[local]

    def _steps(self, sentences: Graphs) -> Steps:
        if not self.relations:
            return Steps.plain(sentences.adjacency(), self.max_length)
        links = _links(sentences)
        kinds = Vocabulary.fit(links.kinds)[0] if self.kinds is None else self.kinds
        return Steps.by_kind(links, kinds, kinds.encode(links.kinds), self.max_length)

    def _documents(self, documents: Documents) -> Relation:
        """R_3: every sentence belongs to its document, with or without its position."""
        n, sizes = len(documents.sentences), documents.sizes
        roles, names = np.zeros(n, dtype=np.int64), ["sentence"]
        if self.sentences == "position":
            names = [f"position {bucket}" for bucket in range(self.buckets)]
            last = np.repeat(sizes - 1, sizes)
            place = np.arange(n) - np.repeat(documents.offsets[:-1], sizes)
            # place / last of the way from the first bucket to the last, rounded half up.
            roles = (2 * place * (self.buckets - 1) + last) // np.maximum(2 * last, 1)
        return Relation(documents.offsets, np.arange(n), roles, tuple(names), n)


def _checked(documents: Documents) -> Documents:
    if not isinstance(documents, Documents):
        raise InputError(
            f"dependency_paths takes Documents, not {type(documents).__name__}: "
            "read_conllu, from_spacy and Documents.from_sentences return them"
        )
    return documents


def _links(sentences: Graphs) -> Links:
    links = Links.of(sentences)
    if not links.kinds:
        raise InputError("relations=True, but the arcs of these sentences have no labels")
    return links
