"""`Documents`: a whole collection of parsed documents as a handful of flat arrays."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from saen._util.arrays import Array, frozen, offsets, owned, ranges
from saen._util.strings import plural
from saen.data.graphs import Graphs
from saen.errors import InputError

Word = tuple[str, int | None, str]
"""A word, the place of its head in the sentence (None for a root), and its relation to it."""


@dataclass(frozen=True, eq=False, repr=False)
class Documents:
    """An immutable, columnar collection of documents: sentences whose words depend on each other.

    Document d owns sentences `offsets[d] … offsets[d + 1] - 1`. Each sentence is a graph whose
    nodes are its words in order. Where the graphs are directed, edges lead from head to
    dependent; edge labels are dependency relations.

    Shapes, for D documents of S sentences and N words:

    - `sentences`: a `Graphs` of S graphs with `node_labels` (N,), the words as strings
    - `offsets`: (D + 1,)
    - `targets`: (D,) classes (integers or strings) or numbers, or (D, k) floats

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

    def __post_init__(self) -> None:
        if not isinstance(self.sentences, Graphs):
            raise InputError(f"sentences must be Graphs, not {type(self.sentences).__name__}")
        self._check_words()
        pointers = np.asarray(self.offsets)
        if pointers.ndim != 1 or len(pointers) == 0 or pointers.dtype.kind not in "iu":
            raise InputError("offsets must be a flat array of whole numbers that starts with 0")
        if pointers[0] != 0 or (pointers[1:] < pointers[:-1]).any():
            raise InputError("offsets must start at 0 and never decrease")
        if pointers[-1] != len(self.sentences):
            raise InputError(
                f"offsets must end at {len(self.sentences)}, the number of sentences, "
                f"not at {pointers[-1]}"
            )
        object.__setattr__(self, "offsets", owned(pointers.astype(np.int64, copy=False)))
        if self.targets is not None:
            targets = np.asarray(self.targets)
            if targets.dtype.kind in "OT" and all(isinstance(v, str) for v in targets.flat):
                targets = targets.astype(np.str_)  # as pandas holds them
            if targets.ndim not in (1, 2) or len(targets) != len(self):
                raise InputError(f"targets: expected {len(self)} rows, found shape {targets.shape}")
            if targets.dtype.kind not in "iufUb":
                raise InputError(f"targets must be classes or numbers, not {targets.dtype}")
            object.__setattr__(self, "targets", owned(targets))

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        for key in ("offsets", "targets"):  # numpy's own copies are writeable again
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
        kept = None if targets is None else np.asarray(targets)
        return cls(sentences, offsets(np.array(lengths, dtype=np.int64)), kept, name)

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
        # Graphs know how targets of different kinds go together.
        tops = [
            Graphs.from_edge_lists([[]] * len(part), targets=part.targets, name=part.name)
            for part in parts
        ]
        top = Graphs.concatenate(tops)
        lengths = np.concatenate([np.diff(part.offsets) for part in parts])
        sentences = Graphs.concatenate([part.sentences for part in parts])
        return Documents(sentences, offsets(lengths), top.targets, top.name)

    def with_targets(self, targets: ArrayLike | None) -> Documents:
        """The same documents with other targets (or none)."""
        return replace(self, targets=None if targets is None else np.asarray(targets))

    # -- what it is --------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def shape(self) -> tuple[int]:
        """`(number of documents,)`, so that scikit-learn's splitters take the collection whole."""
        return (len(self),)

    @property
    def ndim(self) -> int:
        """1: a collection is a column of documents."""
        return 1

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
        out: dict[str, Any] = {
            "documents": len(self),
            "sentences": len(self.sentences),
            "words": self.sentences.n_nodes,
            "distinct_words": len(np.unique(self.words)),
            "relations": 0 if relations is None else len(np.unique(relations)),
            "average_sentences": len(self.sentences) / n,
            "average_words": self.sentences.n_nodes / n,
            "longest_sentence": int(self.sentences.sizes.max(initial=0)),
        }
        if self.targets is not None and self.targets.dtype.kind != "f":
            values, counts = np.unique(self.targets, return_counts=True)
            out["classes"] = {str(v): int(c) for v, c in zip(values, counts, strict=True)}
        return out

    def __repr__(self) -> str:
        targets = ""
        if self.targets is not None:
            real = self.targets.dtype.kind == "f"
            distinct = plural(len(np.unique(self.targets)), "class", "classes")
            targets = "; real targets" if real else f"; {distinct}"
        return (
            f"Documents({self.name + ': ' if self.name else ''}{plural(len(self), 'document')}, "
            f"{plural(len(self.sentences), 'sentence')}, "
            f"{plural(self.sentences.n_nodes, 'word')}{targets})"
        )

    def __eq__(self, other: object) -> bool:
        """Same documents in the same order with equal targets (the name does not matter)."""
        if not isinstance(other, Documents):
            return NotImplemented
        if self.sentences != other.sentences or not np.array_equal(self.offsets, other.offsets):
            return False
        mine, theirs = self.targets, other.targets
        if mine is None or theirs is None:
            return mine is theirs
        real = mine.dtype.kind == theirs.dtype.kind == "f"
        return np.array_equal(mine, theirs, equal_nan=real)

    __hash__ = None  # type: ignore[assignment]

    # -- slicing -----------------------------------------------------------------------------

    def __getitem__(self, key: Any) -> Documents:
        if isinstance(key, tuple) and len(key) == 2 and key[1] is Ellipsis:
            key = key[0]  # scikit-learn slices arrays as X[rows, ...]
        rows = np.atleast_1d(np.arange(len(self))[key])
        if rows.ndim != 1:
            raise InputError("index documents by an integer, a slice, a mask or a flat array")
        first, lengths = self.offsets[rows], self.sizes[rows]
        whole: Any = ranges(first, lengths)
        if len(rows) and (np.diff(rows) == 1).all():
            whole = slice(int(first[0]), int(first[-1] + lengths[-1]))  # views, not copies
        return replace(
            self,
            sentences=self.sentences[whole],
            offsets=offsets(lengths),
            targets=None if self.targets is None else self.targets[rows],
        )

    def __iter__(self) -> Iterator[Documents]:
        return (self[document] for document in range(len(self)))

    def _check_words(self) -> None:
        words = self.sentences.node_labels
        if self.sentences.n_nodes == 0:
            return
        if words is None or words.ndim != 1 or words.dtype.kind != "U":
            found = "none" if words is None else f"{words.dtype} of shape {words.shape}"
            raise InputError(
                f"the node labels of sentences must be their words, one string each, found {found}"
            )
