"""Features without learning: shift and aggregate, and leave the extract step out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from saen._util.arrays import segment_ids
from saen.data.compression import Compressed, compress, compress_graphs
from saen.data.content_hash import Keys
from saen.data.graphs import Graphs
from saen.data.hierarchy import Hierarchy
from saen.decompositions import Decomposition, make_decomposition
from saen.decompositions.base import one_of
from saen.errors import InputError
from saen.io.coerce import as_data
from saen.learning.preparation import compress_like

Data = Graphs | Hierarchy | Sequence[Any]


class SAFeatures(TransformerMixin, BaseEstimator):
    """Sparse features of graphs and other structures, one row each, without any learning.

    `X` is whatever the estimators take: `Graphs`, a list of networkx graphs or of PyG `Data`, or a
    ready `Hierarchy`. `decomposition` is a name, with or without parameters, or an object.

    - `kind="linear"`: the network's map with the identity for every extract step. h_0 = x, the
      bottom attributes (one column per label, then the vectors); h_l puts the sums of h_{l-1} over
      the parts in every role side by side. That makes p · Π n(l) columns, the role in the top
      level outermost, the attribute innermost.
    - `kind="classes"`: how often each class of equal parts (`saen.compress`) belongs to a
      structure in each role. One column per role of the top level and class of the level below
      that occurred in `fit`, ordered by role, then key. Over `neighbourhoods` these are the
      features of the Weisfeiler-Lehman subtree kernel.

    Columns are fixed by `fit`: labels and classes that it did not see contribute nothing. Within
    one collection the equality of parts is proved; parts of later structures are matched with the
    classes of `fit` by content key, all 128 bits of it.

    After `fit`: `decomposition_` (None over a `Hierarchy`), `schema_`, `n_features_out_`.

    >>> import saen
    >>> threads = saen.generate_threads(60, seed=1)
    >>> SAFeatures("neighbourhoods(depth=2)", kind="classes").fit_transform(threads).shape[0]
    60
    >>> path = Graphs.from_edge_lists([[(0, 1), (1, 2)]])
    >>> features = SAFeatures("ego(radii=(0, 1))")
    >>> features.fit_transform(path).toarray()
    array([[2., 1., 0., 0., 2., 1., 2., 2.]])
    >>> features.get_feature_names_out()[-1]
    'radius 1 > elem > 2'
    """

    decomposition_: Decomposition | None
    schema_: Hierarchy
    n_features_out_: int
    _keys: Keys
    _columns: NDArray[np.int64]

    def __init__(self, decomposition: str | Decomposition = "ego", *, kind: str = "linear") -> None:
        self.decomposition = decomposition
        self.kind = kind

    def fit(self, X: Data, y: object = None) -> SAFeatures:
        """Fix the columns by the labels, roles and classes of these structures."""
        self._fit(X)
        return self

    def fit_transform(self, X: Data, y: object = None) -> sparse.csr_array:
        """`fit(X).transform(X)`, decomposed and compressed once."""
        return self._features(self._fit(X))

    def transform(self, X: Data) -> sparse.csr_array:
        """Features of structures, shape (n, `n_features_out_`), float64."""
        check_is_fitted(self, "schema_")
        return self._features(self._compressed(X))

    def get_feature_names_out(self, input_features: object = None) -> NDArray[np.object_]:
        """What every column says: roles from the top down, then a label, a number or a key."""
        check_is_fitted(self, "schema_")
        alphabets = [relation.alphabet for relation in self.schema_.relations]
        if self.kind == "linear":
            attributes = self.schema_.attributes
            labels = [] if attributes.vocabulary is None else map(repr, attributes.vocabulary)
            numbers = (f"attribute {i}" for i in range(attributes.kind[1] or 0))
            names = list(product(*reversed(alphabets), [*labels, *numbers]))
        else:
            roles, classes = np.divmod(self._columns, len(self._keys))
            names = [
                (alphabets[-1][role], f"{one:016x}{other:016x}")
                for role, (one, other) in zip(roles, self._keys[classes].tolist(), strict=True)
            ]
        return np.array([" > ".join(name) for name in names], dtype=np.object_)

    # -- how ---------------------------------------------------------------------------------

    def _fit(self, X: Data) -> Compressed:
        one_of("kind", self.kind, ("linear", "classes"))
        given = self.decomposition
        chosen = make_decomposition(given) if isinstance(given, str) else given
        structures = as_data(X, chosen.takes)
        if len(structures) == 0:
            raise InputError("nothing to fit: the collection is empty")
        if isinstance(structures, Hierarchy):
            self.decomposition_ = None
            compressed = compress(structures)
        else:
            self.decomposition_ = chosen.fit(structures)
            compressed = compress_graphs(structures, self.decomposition_, lower_inverse=False)
        # Names, roles and vocabulary, without any object: what later structures must agree with.
        schema = compressed.hierarchy[[]]
        if self.kind == "linear":
            n_roles = [r.n_roles for r in schema.relations]
            self.n_features_out_ = math.prod(n_roles, start=schema.attributes.width)
            if self.n_features_out_ >= 2**63:
                raise InputError(
                    f"kind='linear' would make {self.n_features_out_} columns here, one for every "
                    "way through the levels: use kind='classes'"
                )
        else:
            relation = compressed.hierarchy.relations[-1]
            self._keys = compressed.keys[-2]
            self._columns = np.unique(
                relation.roles.astype(np.int64) * relation.n_parts + relation.parts
            )
            self.n_features_out_ = len(self._columns)
        self.schema_ = schema
        return compressed

    def _compressed(self, X: Data) -> Compressed:
        return compress_like(X, self.decomposition_, self.schema_)

    def _features(self, compressed: Compressed) -> sparse.csr_array:
        rows = (
            _aggregated(compressed.hierarchy)
            if self.kind == "linear"
            else self._class_counts(compressed)
        )
        out = sparse.csr_array(rows[compressed.top])
        if max(out.nnz, out.shape[1]) < 2**31:  # many estimators take no wider indices
            out.indices, out.indptr = out.indices.astype(np.int32), out.indptr.astype(np.int32)
        return out

    def _class_counts(self, compressed: Compressed) -> sparse.csr_array:
        """For every top class, how often it has a class of `fit` in a role."""
        relation = compressed.hierarchy.relations[-1]
        places = _places(self._keys, compressed.keys[-2])[relation.parts]
        codes = relation.roles.astype(np.int64) * len(self._keys) + places
        columns = np.where(places < 0, -1, pd.Index(self._columns).get_indexer(codes))
        seen = columns >= 0
        rows = segment_ids(relation.indptr)[seen]
        shape = (relation.n_parents, self.n_features_out_)
        counts = relation.multiplicity[seen].astype(np.float64)
        return sparse.csr_array((counts, (rows, columns[seen])), shape=shape)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        return tags


def _aggregated(hierarchy: Hierarchy) -> sparse.csr_array:
    """h_L with the identity for every f_l, one row per object of the top, columns p · Π n(l)."""
    h = hierarchy.attributes.matrix().astype(np.float64)
    width = h.shape[1]
    # Products need room for every column, so h has those in use alone: these, among `width`.
    columns = np.arange(width)
    for relation in hierarchy.relations:
        n, n_roles = relation.n_parents, relation.n_roles
        rows = segment_ids(relation.indptr) * n_roles + relation.roles
        shape = (n * n_roles, relation.n_parts)
        counts = relation.multiplicity.astype(np.float64)
        sums = sparse.csr_array((counts, (rows, relation.parts)), shape=shape) @ h
        # One row per (object, role) so far: the rows of an object move side by side.
        role = segment_ids(sums.indptr) % n_roles
        columns, places = np.unique(role * width + columns[sums.indices], return_inverse=True)
        parts = (sums.data, places, sums.indptr[::n_roles])
        h = sparse.csr_array(parts, shape=(n, len(columns)))
        width *= n_roles
    h.sort_indices()
    return sparse.csr_array((h.data, columns[h.indices], h.indptr), shape=(len(hierarchy), width))


def _places(known: Keys, keys: Keys) -> NDArray[np.int64]:
    """For every key its place among the known ones, -1 where it is not there.

    >>> one, other = np.array([[1, 2], [1, 3]], dtype=np.uint64), np.array([[1, 3], [2, 2]])
    >>> _places(one, other.astype(np.uint64)).tolist()
    [1, -1]
    """
    both = np.concatenate([known, keys])
    order = np.lexsort(both.T)  # stable: of equal keys, a known one stands first
    new = np.ones(len(both), dtype=np.bool_)
    new[1:] = (both[order[1:]] != both[order[:-1]]).any(axis=1)
    first = np.empty(len(both), dtype=np.int64)
    first[order] = order[new][np.cumsum(new) - 1]
    found = first[len(known) :]
    return np.where(found < len(known), found, -1)
