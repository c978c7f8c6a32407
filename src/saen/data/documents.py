"""`Documents`: a dataset of parsed documents as a handful of flat arrays."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from saen._util.arrays import Array, frozen, offsets, owned, ranges
from saen._util.strings import plural
from saen.data._collection import (
    Collection,
    Rows,
    checked_ids,
    checked_targets,
    class_counts,
    concatenate_columns,
    concatenate_ids,
    describe_targets,
    equal_targets,
)
from saen.data.graphs import Graphs
from saen.errors import InputError

Word = tuple[str, int | None, str]
"""A word, the place of its head in the sentence (None for a root), and its relation to it."""


@dataclass(frozen=True, eq=False, repr=False)
class Documents(Collection):
    """An immutable, columnar collection of documents: sentences whose words depend on each other.

    Document d owns sentences `offsets[d] … offsets[d + 1] - 1`. Each sentence is a graph whose
    nodes are its words in order. Where the graphs are directed, edges lead from head to
    dependent; edge labels are dependency relations.

    Shapes, for D documents of S sentences and N words:

    - `sentences`: a `Graphs` of S graphs with `node_labels` (N,), the words as strings
    - `offsets`: (D + 1,)
    - `targets`: (D,) classes (integers or strings) or numbers, or (D, k) floats
    - `ids`: (D,) integers or strings, the name of every document in outputs; by default 0 … D - 1

    Indexing with an integer, a slice, a mask or an array of indices gives another `Documents`.

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

    def __post_init__(self) -> None:
        if not isinstance(self.sentences, Graphs):
            raise InputError(f"sentences must be Graphs, not {type(self.sentences).__name__}")
        self._check_words()
        pointers = np.asarray(self.offsets)
        if pointers.ndim != 1 or len(pointers) == 0 or pointers.dtype.kind not in "iu":
            raise InputError("offsets must be a flat array of integers that starts with 0")
        if pointers[0] != 0 or (pointers[1:] < pointers[:-1]).any():
            raise InputError("offsets must start at 0 and never decrease")
        if pointers[-1] != len(self.sentences):
            raise InputError(
                f"offsets must end at {len(self.sentences)}, the number of sentences, "
                f"not at {pointers[-1]}"
            )
        object.__setattr__(self, "offsets", owned(pointers.astype(np.int64, copy=False)))
        object.__setattr__(self, "targets", checked_targets(self.targets, len(self)))
        object.__setattr__(self, "ids", checked_ids(self.ids, len(self)))

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        for key in ("offsets", "targets", "ids"):  # numpy's own copies are writeable again
            if state[key] is not None:
                object.__setattr__(self, key, frozen(state[key]))

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
        given = checked_ids(ids, len(lengths))
        return cls(sentences, pointers, checked_targets(targets, len(lengths)), name, given)

    @staticmethod
    def concatenate(collections: Iterable[Documents]) -> Documents:
        """One collection of all documents, in order.

        >>> one = Documents.from_sentences([[[("yes", None, "root")]]])
        >>> Documents.concatenate([one, one])
        Documents(2 documents, 2 sentences, 2 words)
        """
        parts = list(collections)
        if not parts:
            raise InputError("nothing to concatenate: the list of collections is empty")
        return Documents(
            Graphs.concatenate([part.sentences for part in parts]),
            offsets(np.concatenate([part.sizes for part in parts])),
            concatenate_columns("targets", [part.targets for part in parts]),
            parts[0].name if len({part.name for part in parts}) == 1 else "",
            concatenate_ids([part.ids for part in parts]),
        )

    def with_targets(self, targets: ArrayLike | None) -> Documents:
        """The same documents with other targets (or none)."""
        return replace(self, targets=checked_targets(targets, len(self)))

    def with_ids(self, ids: ArrayLike | None) -> Documents:
        """The same documents with other ids (None: their numbers)."""
        return replace(self, ids=checked_ids(ids, len(self)))

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
            **class_counts(self.targets),
        }

    def __repr__(self) -> str:
        targets = "" if self.targets is None else f"; {describe_targets(self.targets)}"
        return (
            f"Documents({self.name + ': ' if self.name else ''}{plural(len(self), 'document')}, "
            f"{plural(len(self.sentences), 'sentence')}, "
            f"{plural(self.sentences.n_nodes, 'word')}{targets})"
        )

    def __eq__(self, other: object) -> bool:
        """Same documents in the same order with equal targets (name and ids do not matter)."""
        if not isinstance(other, Documents):
            return NotImplemented
        return (
            self.sentences == other.sentences
            and np.array_equal(self.offsets, other.offsets)
            and equal_targets(self.targets, other.targets)
        )

    __hash__ = None  # type: ignore[assignment]

    def _take(self, rows: Rows) -> Documents:
        lengths = self.sizes[rows]
        if isinstance(rows, slice):
            sentences: Any = slice(int(self.offsets[rows.start]), int(self.offsets[rows.stop]))
        else:
            sentences = ranges(self.offsets[rows], lengths)
        return replace(
            self,
            sentences=self.sentences[sentences],
            offsets=offsets(lengths),
            targets=None if self.targets is None else self.targets[rows],
            ids=self.ids[rows],
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
