"""From data to a compressed hierarchy: what every estimator does before it learns or predicts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from saen._util.arrays import Array, Ints
from saen._util.atomic import expand_user
from saen.data._collection import Collection, Rows
from saen.data.chunks import compress_graphs
from saen.data.compression import Compressed, compress
from saen.data.documents import Documents
from saen.data.duplicates import identical_examples
from saen.data.graphs import Graphs
from saen.data.hierarchy import Hierarchy
from saen.data.nested import NestedData
from saen.decompositions import Decomposition, make_decomposition
from saen.decompositions.registry import (
    UnknownDecompositionError,
    decomposition_class,
    decomposition_from_json,
)
from saen.errors import FileError, InputError
from saen.io import container
from saen.io.coerce import as_data
from saen.learning.defaults import default_depth, default_radii

Data = Any
"""What a decomposition takes (graphs of any library, documents, nested data), or a `Hierarchy`."""


@dataclass(frozen=True)
class DecompositionSpec:
    """The decomposition that an estimator asks for; `auto` is resolved by looking at the data."""

    decomposition: str | Decomposition = "ego"
    radii: str | tuple[int, ...] = "auto"
    node_labels: str = "auto"
    deep: bool = False
    """Whether a depth left open is as deep as the size of the data allows (part counts)."""

    @property
    def takes(self) -> str:
        """The kind of data that the decomposition reads: graphs, documents or nested."""
        if not isinstance(self.decomposition, str):
            return self.decomposition.takes
        return decomposition_class(self.decomposition).takes

    @property
    def learns_bins(self) -> bool:
        """Whether `fit` makes labels or roles of real numbers, by the values that it sees."""
        decomposition = self.decomposition
        if isinstance(decomposition, str):
            labels = None if self.node_labels == "auto" else self.node_labels
            decomposition = make_decomposition(decomposition, overrides={"node_labels": labels})
        return decomposition.learns_bins

    def resolve(self, data: Data) -> Decomposition:
        """The decomposition, not fitted yet, with `auto` replaced by what suits the data."""
        if not isinstance(self.decomposition, str):
            return self.decomposition
        return make_decomposition(
            self.decomposition,
            overrides={
                "radii": None if self.radii == "auto" else self.radii,
                "node_labels": None if self.node_labels == "auto" else self.node_labels,
            },
            defaults={
                "radii": lambda: default_radii(data),
                "edges": "auto",  # benzene is not cyclohexane
                **({"depth": lambda: default_depth(data)} if self.deep else {}),
            },
        )


@dataclass(frozen=True, repr=False)
class Prepared(Collection):
    """Data decomposed and compressed once, to fit and predict on as often as needed.

    It is indexed as the data are, so `cross_val_score` and `GridSearchCV` take it in their place
    and nothing is decomposed again. A subset shares the unique objects of all data.

    >>> import saen
    >>> from sklearn.model_selection import cross_val_score
    >>> threads = saen.generate_threads(40, seed=1)
    >>> model = saen.SAENClassifier(epochs=2)
    >>> model.prepare(threads)
    Prepared(40 examples, compressed to ... → 40 graphs)
    >>> len(cross_val_score(model, model.prepare(threads), threads.targets, cv=4))
    4
    """

    spec: DecompositionSpec | None
    decomposition: Decomposition | None
    compressed: Compressed

    def __len__(self) -> int:
        return len(self.compressed)

    def __repr__(self) -> str:
        chain = self.compressed.hierarchy.chain()
        return f"{type(self).__name__}({len(self):,} examples, compressed to {chain})"

    def _take(self, rows: Rows) -> Prepared:
        compressed, top = self.compressed, self.compressed.top[rows]
        subset = Compressed(
            compressed.hierarchy,
            (*[None] * compressed.hierarchy.depth, top),
            (*compressed.objects[:-1], len(top)),
            compressed.entries,
        )
        return replace(self, compressed=subset)


@dataclass(frozen=True, repr=False)
class CompressedExamples(Prepared):
    """What `saen compress` writes: examples compressed, with targets, memory-mapped.

    Training cuts its batches from the file, so the hierarchy need not fit into memory.
    """

    targets: Array | None
    name: str
    target_names: tuple[str, ...] = ()

    def _take(self, rows: Rows) -> CompressedExamples:
        compressed = super()._take(rows).compressed
        targets = None if self.targets is None else self.targets[rows]
        return replace(self, compressed=compressed, targets=targets)

    def __repr__(self) -> str:
        chain = self.compressed.hierarchy.chain()
        return f"{type(self).__name__}({self.name}: {len(self):,} examples, compressed to {chain})"


def is_compressed(source: str | Path) -> bool:
    """Whether a path is a file of a compressed hierarchy."""
    path = expand_user(source)
    if path.suffix != ".saen" or not path.is_file():
        return False
    return container.read_header(path).kind == "compressed"


def load_compressed(source: str | Path) -> CompressedExamples:
    """Examples to train on, from a file that `saen compress` wrote.

    Raises `FileError` if it is damaged, or has a hierarchy alone.

    >>> from saen.learning.jobs.compress import compress_dataset, dataset_decomposition
    >>> file = getfixture("tmp_path") / "threads.saen"
    >>> _ = compress_dataset("threads", dataset_decomposition("threads"), file)
    >>> load_compressed(file)
    CompressedExamples(threads: 300 examples, compressed to ... → 300 graphs)
    """
    path = expand_user(source)
    stored = container.load_examples(path)
    with container.consistent(path, "damaged: invalid decomposition"):
        try:
            decomposition = decomposition_from_json(dict(stored.decomposition))
        except UnknownDecompositionError as error:
            raise FileError(str(error), path=path) from None
        if decomposition.vocabulary != stored.compressed.hierarchy.attributes.vocabulary:
            raise InputError("the vocabularies differ")
    return CompressedExamples(
        None, decomposition, stored.compressed, stored.targets, path.stem, stored.target_names
    )


def prepare(
    X: Data, spec: DecompositionSpec, progress: Callable[[int], object] | None = None
) -> Prepared:
    """Decompose and compress data, unless that was done before with the same `spec`.

    `progress` is called with the number of examples done.
    """
    if isinstance(X, Prepared):
        if X.spec not in (None, spec):
            raise InputError(
                f"prepared with {X.spec}, but this estimator has {spec}: prepare the data anew"
            )
        return X
    data = as_data(X, spec.takes)
    if isinstance(data, Hierarchy):
        return Prepared(None, None, compress(data))
    fitted = spec.resolve(data).fit(data)
    compressed = compress_graphs(data, fitted, lower_inverse=False, progress=progress)
    return Prepared(spec, fitted, compressed)


@dataclass(frozen=True)
class Preparations:
    """Data and all that is prepared of them: every decomposition is made once, when needed.

    But one with bins of real numbers is made anew for all training examples that these are of.
    """

    data: Data
    known: dict[str, Prepared] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.data)

    def of(self, estimator: Any, progress: Callable[[int], object] | None = None) -> Prepared:
        """The data as an estimator decomposes them, compressed."""
        key = repr(estimator.spec)
        if key not in self.known:
            self.known[key] = estimator.prepare(self.data, progress=progress)
        return self.known[key]

    def fitted_on(self, estimator: Any, train: Ints) -> Prepared:
        """As `of`, with bins of the training examples alone, if there are any."""
        spec: DecompositionSpec = estimator.spec
        if not spec.learns_bins:
            return self.of(estimator)
        decomposition = spec.resolve(self.data).fit(self.data[train])
        compressed = compress_graphs(self.data, decomposition, lower_inverse=False)
        return Prepared(spec, decomposition, compressed)

    def as_fitted(self, model: Any) -> Prepared:
        """The data as a fitted model decomposes them."""
        if not model.spec.learns_bins:
            return self.of(model)
        compressed = compress_graphs(self.data, model.decomposition_, lower_inverse=False)
        return Prepared(model.spec, model.decomposition_, compressed)


def same_data(data: Any, rows: Ints) -> Ints:
    """Equal numbers for examples that are the same as data, (n,).

    Of compressed examples, only `rows` are known, which are equal where they look identical.
    """
    known = isinstance(data, Graphs | Documents | NestedData)
    return identical_examples(data) if known else rows


class DifferentKindsError(InputError):
    """Two parts of the data have other kinds of labels or edges, so their parts differ in kind."""


def fitted_fields(decomposition: Decomposition) -> list[str]:
    """What is fitted, the vocabulary of the bottom aside: the names of fields that are filled."""
    names = (f.name for f in fields(decomposition) if "fitted" in f.metadata)
    return [n for n in names if n != "vocabulary" and getattr(decomposition, n) is not None]


def joined_fit(one: Decomposition, other: Decomposition) -> Decomposition:
    """The decomposition for two parts of the data together, from those resolved or fitted to each.

    Raises `DifferentKindsError` if their settings differ.
    """
    if one.settings() != other.settings():
        raise DifferentKindsError("its labels or edges are of other kinds than those before")
    if one.learns_bins:
        raise DifferentKindsError("bins of attributes are fitted to all examples at once")
    names = [*fitted_fields(one), *(["vocabulary"] if one.vocabulary is not None else [])]
    return replace(one, **{name: getattr(one, name).union(getattr(other, name)) for name in names})


def compress_like(
    X: Data, decomposition: Decomposition | None, schema: Hierarchy, *, lower_inverse: bool = False
) -> Compressed:
    """Compress new data as the data of `fit` were: same decomposition, same roles and vocabulary.

    `decomposition` is None for an estimator that was fitted on a `Hierarchy`; `schema` is that
    hierarchy without its objects.
    """
    if isinstance(X, Prepared):
        if X.decomposition != decomposition:
            raise InputError("these data were prepared for another estimator")
        return X.compressed
    data = as_data(X, "graphs" if decomposition is None else decomposition.takes)
    if not isinstance(data, Hierarchy):
        if decomposition is None:
            raise InputError("this estimator was fitted on hierarchies: pass a Hierarchy")
        return compress_graphs(data, decomposition, lower_inverse=lower_inverse)
    return compress(recode_like(data, schema))


def recode_like(hierarchy: Hierarchy, schema: Hierarchy) -> Hierarchy:
    """The hierarchy with the vocabulary of `schema`; `InputError` if its roles are others."""
    expected, roles = ([r.alphabet for r in each.relations] for each in (schema, hierarchy))
    if expected != roles:
        raise InputError(f"fitted on roles {expected}, but the hierarchy has {roles}")
    attributes = hierarchy.attributes
    if schema.attributes.kind != attributes.kind:
        raise InputError("bottom attributes differ in kind (codes, vectors, or their width)")
    if schema.attributes.vocabulary is not None:
        attributes = attributes.recoded(schema.attributes.vocabulary)
    return Hierarchy(attributes, hierarchy.relations, hierarchy.names)
