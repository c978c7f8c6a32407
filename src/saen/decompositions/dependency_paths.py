"""The paper's example of text: documents made of sentences made of dependency paths of words."""

from __future__ import annotations

import operator
import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from saen._util.arrays import Array, Ints, offsets, ranges, segment_ids, segment_reduce
from saen._util.strings import plural
from saen.data.documents import Documents
from saen.data.graphs import Graphs
from saen.data.hierarchy import Attributes, Hierarchy, Relation
from saen.data.vocabulary import UNSEEN, Vocabulary
from saen.data.word_vectors import read_word_vectors
from saen.decompositions.base import FITTED, Decomposition, one_of
from saen.decompositions.edge_roles import Links, kind_names
from saen.decompositions.ego import Ego
from saen.decompositions.shortest_paths import Reader, Rows, shortest_paths
from saen.errors import FileError, InputError


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

    Words are told apart by a vocabulary, or with `vectors` by the vectors of a file in the text
    format of word2vec or GloVe, zeros for a word that it lacks. These stay as they are, unless
    `tune` gives every word of the vocabulary a trainable correction beside its vector. The file is
    read whenever documents are decomposed: words that `fit` did not see have their vectors too.

    >>> bite = [("dogs", 1, "nsubj"), ("bite", None, "root"), ("men", 1, "obj")]
    >>> hierarchy = DependencyPaths().decompose(Documents.from_sentences([[bite]]))
    >>> hierarchy
    Hierarchy(3 words → 6 paths → 1 sentences → 1 documents)
    >>> hierarchy.relations[0].matrix("index 1").toarray()[-1]  # dogs – bite – men
    array([0, 1, 0])
    """

    name: ClassVar[str] = "dependency_paths"
    takes: ClassVar[str] = "documents"

    max_length: int = field(default=4, metadata={"help": "arcs of a path at most"})
    sentences: str = field(
        default="none", metadata={"help": "what sentences tell: none, or their position"}
    )
    buckets: int = field(default=3, metadata={"help": "positions that sentences can have"})
    relations: bool = field(
        default=False, metadata={"help": "dependency relations as roles of the words"}
    )
    both_ways: bool = field(default=False, metadata={"help": "read paths in both directions"})
    vectors: str | os.PathLike[str] | None = field(
        default=None, metadata={"help": "file of word vectors, as word2vec and GloVe write them"}
    )
    tune: bool = field(default=False, metadata={"help": "learn corrections of the word vectors"})
    kinds: Vocabulary | None = field(default=None, kw_only=True, metadata=FITTED)

    def __post_init__(self) -> None:
        for name, least in (("max_length", 0), ("buckets", 2)):
            try:
                number = operator.index(getattr(self, name))
            except TypeError:
                found = f"found {getattr(self, name)!r}"
                raise InputError(f"{name} must be a whole number, {found}") from None
            if number < least:
                raise InputError(f"{name} must be at least {least}, found {number}")
            object.__setattr__(self, name, number)
        one_of("sentences", self.sentences, ("none", "position"))
        for name in ("relations", "both_ways", "tune"):
            if not isinstance(getattr(self, name), bool):
                raise InputError(f"{name} is True or False, not {getattr(self, name)!r}")
        if self.vectors is None and self.tune:
            raise InputError("tune=True needs vectors to correct")
        if self.vectors is not None:
            if not isinstance(self.vectors, str | os.PathLike):
                raise InputError(f"vectors is the path of a file, not {self.vectors!r}")
            object.__setattr__(self, "vectors", os.fspath(self.vectors))

    def fit(self, documents: Documents) -> DependencyPaths:
        """A copy with the vocabularies of words and relations of these documents."""
        words = np.unique(_checked(documents).words).tolist()
        vocabulary = kinds = None
        if self.vectors is None or self.tune:
            vocabulary = Vocabulary(words)
        if self.vectors is not None and words and not read_word_vectors(self.vectors, words)[0]:
            distinct = plural(len(words), "distinct word")
            raise FileError(f"has none of the documents' {distinct}", path=Path(self.vectors))
        if self.relations:
            kinds, _ = Vocabulary.fit(_links(documents.sentences).kinds)
        return replace(self, vocabulary=vocabulary, kinds=kinds)

    def decompose(self, documents: Documents) -> Hierarchy:
        """The hierarchy of these documents; once fitted, other words and relations are unseen."""
        sentences = _checked(documents).sentences
        attributes, ranks = self._words(documents.words)
        arcs = self._arcs(sentences)
        reader = Reader.of(arcs.adjacency, ranks)
        paths = shortest_paths(arcs.adjacency, self.max_length, both_ways=self.both_ways)
        if not self.both_ways:
            paths = [reader.oriented(rows) for rows in paths]
        # Numbered by sentence, then by length.
        lengths = np.repeat(np.arange(len(paths)), [len(rows) for rows in paths])
        owners = segment_ids(sentences.node_offsets)[np.concatenate([rows[:, 0] for rows in paths])]
        order = np.argsort(owners, kind="stable")
        numbers = np.empty_like(order)
        numbers[order] = np.arange(len(order))
        entries = [
            arcs.entries(numbers[lengths == length], rows, reader.steps(rows))
            for length, rows in enumerate(paths)
        ]
        parents, parts, roles = (np.concatenate(column) for column in zip(*entries, strict=True))
        grouped = np.argsort(parents, kind="stable")
        return Hierarchy(
            attributes,
            (
                Relation(
                    offsets(np.bincount(parents, minlength=len(order))),
                    parts[grouped],
                    roles[grouped],
                    arcs.alphabet,
                    len(attributes),
                ),
                Relation(
                    offsets(np.bincount(owners, minlength=len(sentences))),
                    np.arange(len(order)),
                    lengths[order],
                    tuple(f"length {length}" for length in range(self.max_length + 1)),
                    len(order),
                ),
                self._documents(documents),
            ),
            ("words", "paths", "sentences", "documents"),
        )

    def costs(self, documents: Documents) -> NDArray[np.int64]:
        """Upper bound of the entries of R_1 per document where sentences are trees, shape (D,)."""
        sentences = _checked(documents).sentences
        pairs = Ego(radii=(self.max_length,)).costs(sentences)  # ends of a path, in either order
        paths = pairs if self.both_ways else (pairs + sentences.sizes) // 2
        entries = segment_reduce(np.add, paths * (self.max_length + 1), documents.offsets)
        return entries.astype(np.int64)

    def _words(self, words: Array) -> tuple[Attributes, NDArray[np.int64]]:
        """Bottom attributes, and the order in which words come on paths, shape (N,)."""
        distinct, local = np.unique(words, return_inverse=True)
        values = distinct.tolist()
        known = np.zeros(len(values), dtype=np.bool_)
        codes = vocabulary = vectors = None
        if self.vectors is None or self.tune:
            vocabulary = Vocabulary(values) if self.vocabulary is None else self.vocabulary
            own = vocabulary.codes(values)
            known |= own != UNSEEN
            codes = own[local]
        if self.vectors is not None:
            found, rows = read_word_vectors(self.vectors, values)
            places = np.searchsorted(distinct, np.array(found, dtype=distinct.dtype))
            table = np.zeros((len(values), rows.shape[1]), dtype=np.float32)
            table[places] = rows
            known[places] = True
            vectors = table[local]
        # Words of which nothing is known are one word.
        ranks = np.where(known, np.arange(len(values)), UNSEEN)
        return Attributes(codes, vocabulary, vectors), ranks[local]

    def _arcs(self, sentences: Graphs) -> _Arcs:
        indices = range(self.max_length + 1)
        if not self.relations:
            return _Arcs(sentences.adjacency(), tuple(f"index {i}" for i in indices))
        links = _links(sentences)
        kinds = Vocabulary.fit(links.kinds)[0] if self.kinds is None else self.kinds
        names = [f"index {i} {kind}" for i in indices[1:] for kind in kind_names(kinds)]
        return _Arcs.of(links, kinds.encode(links.kinds), len(kinds), ("index 0", *names))

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


@dataclass(frozen=True)
class _Arcs:
    """Where paths may go, and the roles that words have on them.

    Entry e of the `adjacency` stands for the links `pointers[e] … pointers[e + 1] - 1`, whose
    kinds are `kinds`, out of `n_kinds`; without pointers all arcs are alike.
    """

    adjacency: sparse.csr_array
    alphabet: tuple[str, ...]
    pointers: NDArray[np.int64] | None = None
    kinds: Ints | None = None
    n_kinds: int = 0

    @staticmethod
    def of(links: Links, codes: Ints, n_kinds: int, alphabet: tuple[str, ...]) -> _Arcs:
        """Arcs from links and their codes, of which those that are unseen are no part's role."""
        n = len(links.indptr) - 1
        tails = segment_ids(links.indptr)
        pairs = tails * n + links.neighbours
        first = np.flatnonzero(np.append(True, pairs[1:] != pairs[:-1])[: len(pairs)])
        ends = np.append(first, len(pairs))
        # At most two links join two words, one each way: lowest and highest say which.
        low = segment_reduce(np.minimum, codes, ends).astype(np.int64)
        high = segment_reduce(np.maximum, codes, ends).astype(np.int64)
        values = (low + 1) * (n_kinds + 1) + high + 1
        adjacency = sparse.csr_array(
            (values, links.neighbours[first], offsets(np.bincount(tails[first], minlength=n))),
            shape=(n, n),
        )
        seen = codes != UNSEEN
        pointers = offsets(seen.astype(np.int64))[ends]
        return _Arcs(adjacency, alphabet, pointers, codes[seen], n_kinds)

    def entries(self, numbers: Ints, rows: Rows, steps: Rows) -> tuple[Ints, Ints, Ints]:
        """Parents, parts and roles of paths that have these numbers, rows of words and steps."""
        n_paths, width = rows.shape
        if self.pointers is None or self.kinds is None:
            roles = np.tile(np.arange(width), n_paths)
            return np.repeat(numbers, width), rows.ravel(), roles
        starts, stops = self.pointers[steps.ravel()], self.pointers[steps.ravel() + 1]
        links = ranges(starts, stops - starts)
        path, step = np.divmod(np.repeat(np.arange(len(starts)), stops - starts), max(width - 1, 1))
        return (
            np.concatenate([numbers, numbers[path]]),
            np.concatenate([rows[:, 0], rows[path, step + 1]]),
            np.concatenate(
                [np.zeros(n_paths, dtype=np.int64), 1 + step * self.n_kinds + self.kinds[links]]
            ),
        )


def _checked(documents: Documents) -> Documents:
    if not isinstance(documents, Documents):
        raise InputError(
            f"dependency_paths takes Documents apart, not {type(documents).__name__}: read_conllu, "
            "from_spacy "
            "and Documents.from_sentences make them"
        )
    return documents


def _links(sentences: Graphs) -> Links:
    links = Links.of(sentences)
    if not links.kinds:
        raise InputError("relations=True, but the arcs of these sentences have no labels")
    return links
