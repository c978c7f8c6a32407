"""From data to compressed hierarchies: which decomposition, and each of them made only once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import KW_ONLY, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from saen._util.arrays import Array, Floats, Ints
from saen._util.atomic import expand_user
from saen._util.remote import is_file
from saen.data.chunks import compress_graphs
from saen.data.collection import COMPUTED, Collection, Positions
from saen.data.compression import Compressed, compress
from saen.data.duplicates import identical_examples
from saen.data.graphs import Graphs
from saen.data.hierarchy import Hierarchy
from saen.decompositions import Decomposition, make_decomposition
from saen.decompositions.registry import (
    UnknownDecompositionError,
    decomposition_class,
    decomposition_from_json,
)
from saen.errors import FileError, InputError
from saen.io.libraries.coerce import as_data
from saen.io.libraries.rdkit import descriptors
from saen.io.store import container
from saen.learning import auto
from saen.learning.features import GIVEN, RDKIT, Features, with_features
from saen.learning.parameters import Parameters, parameter

Data = Collection | Hierarchy | Iterable[Any]
"""`Graphs`, `Documents`, `NestedData`, `Decompositions` of one of these, a `Hierarchy`, or graphs
of another library (networkx, PyTorch Geometric, RDKit)."""


@dataclass(frozen=True)
class DecompositionSpec:
    """The decomposition that is asked for; `auto` is resolved by looking at training examples."""

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

    def resolve(self, data: Decompositions, train: Ints) -> Decomposition:
        """The decomposition, not fitted yet, with `auto` replaced by what suits these examples."""
        if not isinstance(self.decomposition, str):
            return self.decomposition
        return make_decomposition(
            self.decomposition,
            overrides={
                "radii": None if self.radii == "auto" else self.radii,
                "node_labels": None if self.node_labels == "auto" else self.node_labels,
            },
            defaults={
                "radii": lambda: auto.radii(*data.facts(train)),
                "edges": "auto",  # benzene is not cyclohexane
                **({"depth": lambda: auto.depth(*data.facts(train))} if self.deep else {}),
            },
        )


@dataclass(frozen=True, eq=False)
class Decomposed:
    """Data as one decomposition takes them apart, compressed; None where they are a hierarchy."""

    decomposition: Decomposition | None
    compressed: Compressed

    @property
    def schema(self) -> Hierarchy:
        """The hierarchy without its objects: names, roles and vocabulary."""
        return self.compressed.hierarchy[[]]

    @property
    def graded(self) -> bool:
        """Whether the roles of the top are in order of size, so that a depth can be chosen."""
        return self.decomposition is not None and self.decomposition.graded

    def take(self, rows: Ints | None) -> Decomposed:
        """Of some examples, which share the unique objects of all."""
        if rows is None:
            return self
        return replace(self, compressed=self.compressed.of_examples(rows))


@dataclass(eq=False, repr=False)
class Decompositions(Collection):
    """Data, and all that decompositions make of them: each is made once, when it is needed.

    It takes the place of the data, and is indexed as they are, so `cross_val_score` and
    `GridSearchCV` decompose nothing twice. A subset shares the unique objects of all data.

    >>> import saen
    >>> from sklearn.model_selection import cross_val_score
    >>> data = Decompositions(saen.generate_threads(40, seed=1))
    >>> len(cross_val_score(saen.PartCountsClassifier(), data, data.data.targets, cv=4))
    4
    """

    data: Any
    rows: Ints | None = None
    progress: Callable[[int], object] | None = None
    _made: list[tuple[Any, Decomposed]] = field(default_factory=list)
    _facts: list[auto.GraphFacts] = field(default_factory=list)
    _same: list[Ints] = field(default_factory=list)
    _descriptors: list[Features] = field(default_factory=list)

    @staticmethod
    def of(X: Data, takes: str = "graphs") -> Decompositions:
        """The data, unless they are `Decompositions` already."""
        return X if isinstance(X, Decompositions) else Decompositions(as_data(X, takes))

    def __len__(self) -> int:
        return len(self.data) if self.rows is None else len(self.rows)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self):,} examples, {len(self._made)} decompositions)"

    def _take(self, rows: Positions) -> Decompositions:
        own = np.arange(len(self.data)) if self.rows is None else self.rows
        return replace(self, rows=own[rows])

    def facts(self, train: Ints) -> tuple[auto.GraphFacts, Ints]:
        """What rules look at, of all graphs, and which of them are these training graphs."""
        if not self._facts:
            self._facts.append(auto.GraphFacts.of(self.data))
        return self._facts[0], train if self.rows is None else self.rows[train]

    def features(self, source: str = GIVEN) -> Features | None:
        """The numbers about whole examples that the data have; of `rdkit`, with descriptors."""
        names = tuple(name for name in self._feature_names if name not in COMPUTED)
        given = self._feature_values
        found = [] if given is None else [Features(names, given)]
        source = RDKIT if RDKIT in self._feature_names else source
        if source == RDKIT:
            if not self._descriptors:
                self._descriptors.append(Features(*descriptors(self._molecules)))
            found.append(self._descriptors[0])
        if not found:
            return None
        values = np.hstack([each.values for each in found])
        own = values if self.rows is None else values[self.rows]
        return Features(sum((each.names for each in found), ()), own, source)

    @property
    def _feature_names(self) -> tuple[str, ...]:
        names: tuple[str, ...] = getattr(self.data, "feature_names", ())
        return names

    @property
    def _feature_values(self) -> Floats | None:
        values: Floats | None = getattr(self.data, "features", None)
        return values

    @property
    def _molecules(self) -> Graphs:
        if self.graphs is None:
            raise InputError("only molecules have descriptors: leave out the feature 'rdkit'")
        return self.graphs

    def same_data(self) -> Ints:
        """Equal numbers for examples that are identical as data, (n,).

        Of compressed examples, for those that look identical.
        """
        if not self._same:
            self._same.append(with_features(identical_examples(self.data), self._feature_values))
        return self._same[0] if self.rows is None else self._same[0][self.rows]

    @property
    def ids(self) -> Array | None:
        """Of the examples, where the data have any."""
        ids: Array | None = getattr(self.data, "ids", None)
        return ids if ids is None or self.rows is None else ids[self.rows]

    @property
    def selected(self) -> Any:
        """The data; of a subset, its examples alone."""
        return self.data if self.rows is None else self.data[self.rows]

    @property
    def is_ready(self) -> bool:
        """Whether anything has been decomposed."""
        return bool(self._made)

    @property
    def graphs(self) -> Graphs | None:
        """The data, where they are graphs."""
        return self.data if isinstance(self.data, Graphs) else None

    def decomposed(self, spec: DecompositionSpec, train: Ints) -> Decomposed:
        """The data as a decomposition takes them, whose choices look at training examples alone.

        Vocabularies are those of all data; with bins, both are those of the training examples.
        """
        if isinstance(self.data, Hierarchy):
            return self._once(None, lambda: Decomposed(None, compress(self.data)))
        wanted = spec.resolve(self, train)
        if wanted.learns_bins:
            own = train if self.rows is None else self.rows[train]
            fitted = wanted.fit(self.data[own])
            return self._once(fitted, lambda: self._compressed(fitted))
        return self._once(wanted, lambda: self._compressed(wanted.fit(self.data)))

    def forget_others(self, kept: Sequence[Decomposed]) -> None:
        """Give back what is made of the data but these; it is made again if it is asked for."""
        known = {id(each.compressed.hierarchy) for each in kept}
        self._made[:] = [each for each in self._made if id(each[1].compressed.hierarchy) in known]

    def like(
        self,
        decomposition: Decomposition | None,
        schema: Hierarchy,
        *,
        lower_inverse: bool = False,
    ) -> Compressed:
        """The data as those that a model was fitted to: same decomposition, roles and vocabulary.

        `decomposition` is None for a model of a hierarchy; `schema` is that without its objects.
        With `lower_inverse`, also which unique object each object of the lower levels is.
        """
        if isinstance(self.data, Hierarchy):
            like = Decomposed(None, compress(recode_like(self.data, schema)))
            return like.take(self.rows).compressed
        if decomposition is None:
            raise InputError("this estimator was fitted on hierarchies: pass a Hierarchy")
        if lower_inverse and self.rows is not None:
            return Decompositions(self.data[self.rows]).like(
                decomposition, schema, lower_inverse=True
            )
        for _, made in self._made:
            complete = made.compressed.inverse[0] is not None
            if made.decomposition == decomposition and (complete or not lower_inverse):
                return made.take(self.rows).compressed
        made = self._compressed(decomposition, lower_inverse)
        self._made.append((None, made))
        return made.take(self.rows).compressed

    def _compressed(self, fitted: Decomposition, lower_inverse: bool = False) -> Decomposed:
        compressed = compress_graphs(
            self.data, fitted, lower_inverse=lower_inverse, progress=self.progress
        )
        return Decomposed(fitted, compressed)

    def _once(self, key: Any, make: Callable[[], Decomposed]) -> Decomposed:
        """What is made for a decomposition that is to be fitted, once."""
        known = [made for other, made in self._made if other is not None and other == (key,)]
        if not known:
            known = [make()]
            self._made.append(((key,), known[0]))
        return known[0].take(self.rows)


class CompressedExamples(Decompositions):
    """What `saen compress` writes: examples compressed in one way, with targets, memory-mapped.

    Training cuts its batches from the file, so the hierarchy need not fit into memory.
    """

    targets: Array | None = None
    name: str = ""
    target_names: tuple[str, ...] = ()
    stored: Features | None = None

    @property
    def only(self) -> Decomposed:
        """The only decomposition that these data have."""
        return self._made[0][1]

    def _take(self, rows: Positions) -> CompressedExamples:
        subset = super()._take(rows)
        assert isinstance(subset, CompressedExamples)
        subset.name, subset.target_names = self.name, self.target_names
        subset.stored = self.stored
        subset.targets = None if self.targets is None else self.targets[rows]
        return subset

    @property
    def _feature_names(self) -> tuple[str, ...]:
        return () if self.stored is None else self.stored.names

    @property
    def _feature_values(self) -> Floats | None:
        return None if self.stored is None else self.stored.values

    def same_data(self) -> Ints:
        """By the only decomposition."""
        values = None if self.stored is None else self.stored.values
        top = with_features(self.only.compressed.top, values)
        return top if self.rows is None else top[self.rows]

    def forget_others(self, kept: Sequence[Decomposed]) -> None:
        """Nothing: there is no other."""

    def decomposed(self, spec: DecompositionSpec, train: Ints) -> Decomposed:
        """The only one, whatever is asked for."""
        return self.only.take(self.rows)

    def like(
        self,
        decomposition: Decomposition | None,
        schema: Hierarchy,
        *,
        lower_inverse: bool = False,
    ) -> Compressed:
        """The only one; `InputError` for a model of another."""
        if decomposition != self.only.decomposition:
            raise InputError("these data were compressed by another decomposition")
        if lower_inverse:
            raise InputError("compressed data have no objects of lower levels: pass the data")
        return self.only.take(self.rows).compressed

    @property
    def description(self) -> str:
        """Name and content in one line."""
        chain = self.only.compressed.hierarchy.chain()
        return f"{self.name}: {len(self):,} examples, compressed to {chain}"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.description})"


def is_compressed(source: str | Path) -> bool:
    """Whether a path is a file of a compressed hierarchy."""
    path = expand_user(source)
    if path.suffix != ".saen" or not is_file(path):
        return False
    return container.read_header(path).kind == "compressed"


def load_compressed(source: str | Path) -> CompressedExamples:
    """Examples to train on, from a file that `saen compress` wrote.

    Raises `FileError` if it is damaged, or has a hierarchy alone.
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
    decomposed = Decomposed(decomposition, stored.compressed)
    examples = CompressedExamples(stored.compressed, _made=[(decomposition, decomposed)])
    examples.targets, examples.target_names = stored.targets, stored.target_names
    examples.name = path.stem
    if stored.features is not None:
        examples.stored = Features(stored.feature_names, stored.features)
    return examples


# -- arguments of estimators --------------------------------------------------------------------


@dataclass(eq=False, repr=False)
class DecompositionArguments(Parameters):
    """Arguments of estimators that decompose and compress their data in one way.

    Parameters
    ----------
    decomposition
        How examples are taken apart: a decomposition, its name, or a name with parameters such as
        `"neighbourhoods(depth=4)"`.
    radii
        Radii of ego graphs, for a decomposition that is given by name and has radii. `auto`: 0, 1,
        … 3 as long as ego graphs have at most 16 nodes on average.
    node_labels
        Node labels to read, for a decomposition that is given by name: `node`, `degree`, `rings`,
        …, or several, as in `"auto,degree"`. `auto`: the node labels of the data, or the degree if
        there are none.
    """

    decomposition: str | Decomposition = parameter("ego", str, Decomposition)
    _: KW_ONLY
    radii: str | Sequence[int] = parameter("auto", {"auto"}, Sequence)
    node_labels: str = parameter("auto", str)

    _deep: ClassVar[bool] = False
    """Whether a depth left open is as deep as the size of the data allows."""

    @property
    def _spec(self) -> DecompositionSpec:
        """The decomposition that the arguments ask for."""
        radii = self.radii if isinstance(self.radii, str) else tuple(map(int, self.radii))
        return DecompositionSpec(self.decomposition, radii, self.node_labels, self._deep)


# -- several parts of the data ------------------------------------------------------------------


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
