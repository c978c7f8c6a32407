"""`Documents`: a dataset of parsed documents as a handful of flat arrays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from saen._util.arrays import Array, offsets, owned, ranges
from saen._util.strings import plural
from saen.data.collection import (
    Dataset,
    Positions,
    check_pointers,
    checked_ids,
    checked_names,
    checked_targets,
    concatenated,
    equal_columns,
    targets_summary,
)
from saen.data.graphs import Graphs
from saen.errors import InputError

Word = tuple[str, int | None, str]
"""A word, the place of its head in the sentence (None for a root), and its relation to it."""


@dataclass(frozen=True, eq=False, repr=False)
class Documents(Dataset):
    """An immutable, columnar collection of documents: sentences whose words depend on each other.

    Document d owns sentences `offsets[d] … offsets[d + 1] - 1`. Each sentence is a graph whose
    nodes are its words in order. Where the graphs are directed, edges lead from head to
    dependent; edge labels are dependency relations.

    Shapes, for D documents of S sentences and N words:

    - `sentences`: a `Graphs` of S graphs with `node_labels` (N,), the words as strings
    - `offsets`: (D + 1,)
    - `targets`: (D,) classes (integers or strings) or numbers, or (D, k) floats
    - `ids`: (D,) integers or strings, the name of every document in outputs; by default 0 … D - 1

    >>> bites = [("dogs", 1, "nsubj"), ("bite", None, "root"), ("men", 1, "obj")]
    >>> sleep = [("men", 1, "nsubj"), ("sleep", None, "root")]
    >>> two = Documents.from_sentences([[bites, sleep], [sleep]], targets=["long", "short"])
    >>> two
    Documents(2 documents, 3 sentences, 7 words; 2 classes)
    >>> two[1].words.tolist()
    ['men', 'sleep']
    """

    sentences: Graphs
    offsets: NDArray[np.int64]
    targets: Array | None = None
    name: str = ""
    ids: Array = None  # type: ignore[assignment]  # filled with row numbers
    extra: Mapping[str, Array] | None = None
    target_names: tuple[str, ...] = ()
    feature_names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.sentences, Graphs):
            raise InputError(f"sentences must be Graphs, not {type(self.sentences).__name__}")
        self._check_words()
        pointers = np.asarray(self.offsets)
        check_pointers("offsets", pointers)
        if pointers[-1] != len(self.sentences):
            raise InputError(
                f"offsets must end at {len(self.sentences)}, the number of sentences, "
                f"not at {pointers[-1]}"
            )
        object.__setattr__(self, "offsets", owned(pointers.astype(np.int64, copy=False)))
        object.__setattr__(self, "targets", checked_targets(self.targets, len(self)))
        names = checked_names(self.target_names, self.targets)
        object.__setattr__(self, "target_names", names)
        object.__setattr__(self, "ids", checked_ids(self.ids, len(self)))

    # -- construction ------------------------------------------------------------------------

    @classmethod
    def from_sentences(
        cls,
        documents: Iterable[Iterable[Sequence[Word]]],
        *,
        targets: ArrayLike | None = None,
        name: str = "",
        ids: ArrayLike | None = None,
    ) -> Documents:
        """Build from documents that are lists of sentences that are lists of words.

        A word is `(word, head, relation)`, where `head` is the place of its head in the sentence,
        counted from 0, or None for a root.

        Parameters
        ----------
        documents : Iterable[Iterable[Sequence[Word]]]
            Documents as lists of sentences, which are lists of words. A word is `(word, head,
            relation)`, where `head` is the position of its head in the sentence, from 0, or None
            for a root.
        targets : ArrayLike | None, default=None
            One target per document, or several.
        name : str, default=''
            The name of the dataset.
        ids : ArrayLike | None, default=None
            One id per document. None: their positions.
        """
        lengths: list[int] = []
        sizes: list[int] = []
        words: list[str] = []
        edges: list[tuple[int, int]] = []
        relations: list[str] = []
        for document in documents:
            before = len(sizes)
            for sentence in document:
                first, size = len(words), len(sentence)
                for place, (word, head, relation) in enumerate(sentence):
                    if head is not None:
                        if not 0 <= head < size or head == place:
                            raise InputError(
                                f"document {len(lengths)}, sentence {len(sizes) - before}: the "
                                f"head of word {place} is {head}, expected another of its "
                                f"{plural(size, 'word')}, counted from 0, or None"
                            )
                        edges.append((first + head, first + place))
                        relations.append(relation)
                    words.append(word)
                sizes.append(size)
            lengths.append(len(sizes) - before)
        sentences = Graphs.from_edges(
            np.array(edges, dtype=np.int64).reshape(-1, 2),
            np.array(sizes, dtype=np.int64),
            directed=True,
            node_labels=np.array(words, dtype=np.str_),
            edge_labels=np.array(relations, dtype=np.str_),
        )
        pointers = offsets(np.array(lengths, dtype=np.int64))
        return cls(sentences, pointers, name=name).with_targets(targets).with_ids(ids)

    @staticmethod
    def concatenate(collections: Iterable[Documents]) -> Documents:
        """One collection of all documents, in order.

        >>> one = Documents.from_sentences([[[("yes", None, "root")]]])
        >>> Documents.concatenate([one, one])
        Documents(2 documents, 2 sentences, 2 words)
        """
        parts = list(collections)
        return Documents._unchecked(
            **concatenated(parts),
            sentences=Graphs.concatenate([part.sentences for part in parts]),
            offsets=offsets(np.concatenate([part.sizes for part in parts])),
        )

    # -- what it is --------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Sentences per document, shape (D,)."""
        return np.diff(self.offsets)

    @property
    def words(self) -> Array:
        """All words in order, shape (N,)."""
        words = self.sentences.node_labels
        return np.empty(0, dtype=np.str_) if words is None else words

    @property
    def word_offsets(self) -> NDArray[np.int64]:
        """The first word of every document, and the end of the last, shape (D + 1,)."""
        return self.sentences.node_offsets[self.offsets]

    def summary(self) -> dict[str, Any]:
        """Statistics of the collection.

        >>> Documents.from_sentences([[[("yes", None, "root")]]]).summary()["average_words"]
        1.0
        """
        n = max(len(self), 1)
        relations = self.sentences.edge_labels
        return {
            "documents": len(self),
            "sentences": len(self.sentences),
            "words": self.sentences.n_nodes,
            "distinct_words": len(np.unique(self.words)),
            "relations": 0 if relations is None else len(np.unique(relations)),
            "average_sentences": len(self.sentences) / n,
            "average_words": self.sentences.n_nodes / n,
            "longest_sentence": int(self.sentences.sizes.max(initial=0)),
            **targets_summary(self.targets, self.target_names),
        }

    def __repr__(self) -> str:
        return self._described(
            f"{plural(len(self), 'document')}, {plural(len(self.sentences), 'sentence')}, "
            f"{plural(self.sentences.n_nodes, 'word')}"
        )

    def __eq__(self, other: object) -> bool:
        """Same documents in the same order with equal targets (name and ids do not matter)."""
        if not isinstance(other, Documents):
            return NotImplemented
        return (
            self.sentences == other.sentences
            and np.array_equal(self.offsets, other.offsets)
            and equal_columns(self.targets, other.targets)
        )

    def _take(self, rows: Positions) -> Documents:
        lengths = self.sizes[rows]
        if isinstance(rows, slice):
            sentences: Any = slice(int(self.offsets[rows.start]), int(self.offsets[rows.stop]))
        else:
            sentences = ranges(self.offsets[rows], lengths)
        return self._with(
            sentences=self.sentences[sentences],
            offsets=offsets(lengths),
            **self._per_example(rows),
        )

    def _check_words(self) -> None:
        words = self.sentences.node_labels
        if self.sentences.n_nodes == 0:
            return
        if words is None or words.ndim != 1 or words.dtype.kind != "U":
            found = "none" if words is None else f"{words.dtype} of shape {words.shape}"
            raise InputError(
                f"the node labels of sentences must be their words, one string each, found {found}"
            )
